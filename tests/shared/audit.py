"""Check that the installed distributions are those that were tested: ``make audit``.

Every distribution has the version that constraints.txt pins, its requirements are installed, and
its files have the hashes that its wheel recorded. OSV, the open list of known vulnerabilities, is
queried for these versions; if it cannot be reached, the audit only reports that.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OSV = "https://api.osv.dev/v1/querybatch"
UNPINNED = {"automl-plugins", "pip", "setuptools", "wheel"}  # ours, and what installs the others


def normal(name: str) -> str:
    """The name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned(*files: str) -> dict[str, set[str]]:
    """The versions that are tested, by name; ValueError for a line that pins no version."""
    found: dict[str, set[str]] = {}
    for file in files:
        for line in (ROOT / file).read_text(encoding="utf-8").splitlines():
            if line := line.split("#")[0].strip():
                if not (match := re.fullmatch(r"([\w.-]+)==([\w.!+]+)(\s*;.*)?", line)):
                    raise ValueError(f"{file}: {line!r} is not NAME==VERSION")
                found.setdefault(normal(match[1]), set()).add(match[2])
    return found


def wrong_versions(known: dict[str, set[str]]) -> dict[str, str]:
    """Versions by name of distributions with another version than pinned, or not pinned."""
    here = {normal(d.metadata["Name"]): d.version for d in distributions()}
    return {
        name: version
        for name, version in sorted(here.items())
        if name not in UNPINNED and version not in known.get(name, ())
    }


def changed_files(distribution: Distribution) -> list[str]:
    """Files that differ from their recorded hash; compiled and generated files have none."""
    # From Python 3.12 on Distribution.files leaves out what is missing, so the record itself.
    rows = csv.reader((distribution.read_text("RECORD") or "").splitlines())
    return [
        name
        for name, recorded, _ in rows
        if recorded and not is_intact(Path(str(distribution.locate_file(name))), recorded)
    ]


def is_intact(path: Path, recorded: str) -> bool:
    """Whether a file has the hash that was recorded, as ``sha256=...``."""
    if not path.is_file():
        return False
    algorithm, _, value = recorded.partition("=")
    found = hashlib.new(algorithm, path.read_bytes()).digest()
    return base64.urlsafe_b64encode(found).rstrip(b"=").decode() == value


def known_vulnerabilities(versions: Mapping[str, str], url: str = OSV) -> dict[str, list[str]]:
    """Known vulnerabilities by distribution; OSError if the list cannot be reached."""
    names = sorted(versions)
    queries = [
        {"package": {"name": name, "ecosystem": "PyPI"}, "version": versions[name]}
        for name in names
    ]
    request = urllib.request.Request(
        url, json.dumps({"queries": queries}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        results = json.load(answer)["results"]
    found = {
        name: [entry["id"] for entry in result.get("vulns", ())]
        for name, result in zip(names, results, strict=True)
    }
    return {name: ids for name, ids in found.items() if ids}


def main() -> None:
    problems = [
        f"{name} {version} is not pinned in constraints.txt"
        for name, version in wrong_versions(pinned("constraints.txt")).items()
    ]
    versions: dict[str, str] = {}
    for distribution in distributions():
        if (name := normal(distribution.metadata["Name"])) not in UNPINNED:
            versions[name] = distribution.version
            problems += [f"{name}: {file} has changed" for file in changed_files(distribution)]
    asked = "no known vulnerability"
    try:
        for name, ids in known_vulnerabilities(versions).items():
            problems.append(f"{name} {versions[name]} has known vulnerabilities: {', '.join(ids)}")
    except (OSError, ValueError) as error:
        asked = f"known vulnerabilities not checked, the list cannot be reached ({error})"
    if subprocess.run([sys.executable, "-m", "pip", "check"], check=False).returncode:
        problems.append("pip check: requirements are missing")
    if problems:
        raise SystemExit("\n".join(problems))
    print(
        f"{len(versions)} distributions: pinned versions, recorded files, no requirement missing;"
    )
    print(asked)


if __name__ == "__main__":
    main()
