"""Checks of the contents of a release's archives, for ``make release`` and the tests.

python tests/shared/archives.py dist
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from architecture import ROOT, modules

MOST_BYTES = 5_000_000  # of the wheel
LEFT_OUT = (".ci/", ".git")  # not part of a source archive


def sources(root: Path = ROOT) -> list[str]:
    """The project's files by path: those of git, new ones included.

    Raises:
        FileNotFoundError: If there is no repository.
    """
    if not (root / ".git").exists():
        raise FileNotFoundError(f"{root} is not a git repository, so its files are unknown.")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.splitlines() if (root / name).is_file()]


def wrong_in_wheel(path: Path) -> Iterator[str]:
    """Missing and superfluous files of a wheel, as messages."""
    with zipfile.ZipFile(path) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    of_package = {name for name in names if not name.partition("/")[0].endswith(".dist-info")}
    data = (ROOT / "automl_plugins" / "data").glob("*.json.xz")
    expected = {name.replace(".", "/") + ".py" for name in modules()}
    expected |= {f"automl_plugins/data/{file.name}" for file in data}
    expected |= {"automl_plugins/py.typed"}
    yield from _differences(path, expected, of_package)
    if not any(name.endswith("/licenses/LICENSE") for name in names):
        yield f"{path.name} lacks the licence"
    if path.stat().st_size > MOST_BYTES:
        yield f"{path.name} has {path.stat().st_size / 1e6:.1f} MB, more than {MOST_BYTES / 1e6}"


def wrong_in_sdist(path: Path) -> Iterator[str]:
    """Missing and superfluous files of a source archive, as messages."""
    with tarfile.open(path) as archive:
        files = [PurePosixPath(one.name).parts[1:] for one in archive if one.isfile()]
    made = {("PKG-INFO",), ("setup.cfg",)}  # by the build
    found = {"/".join(parts) for parts in files if not (parts in made or "egg-info" in parts[0])}
    expected = {name for name in sources() if not name.startswith(LEFT_OUT)}
    yield from _differences(path, expected, found)


def _differences(path: Path, expected: set[str], found: set[str]) -> Iterator[str]:
    yield from (f"{path.name} lacks {name}" for name in sorted(expected - found))
    yield from (f"{path.name} should not have {name}" for name in sorted(found - expected))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="output of `python -m build`")
    folder = parser.parse_args().folder
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    for archive in (wheel, sdist):
        print(f"{archive.name}: {archive.stat().st_size / 1e6:.2f} MB")
    wrong = [*wrong_in_wheel(wheel), *wrong_in_sdist(sdist)]
    print("\n".join(wrong) or "Both archives are complete.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
