"""Write the goldens: today's behaviour becomes what ``test_goldens.py`` expects.

    python tests/contracts/write_goldens.py [PART OF THE NAME OF A CASE ...]

Cases that agree with the written ones keep their digits, so that a golden changes only where the
behaviour did; the cases that changed are listed. Write them only for an intended change, in a
separate commit that says why. With other versions of the libraries all are written anew.
"""

# ruff: noqa: E402  # tests/shared is put on the path first

from __future__ import annotations

import logging
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / "shared")]

import optuna
from golden_cases import cases
from goldens import FOLDER, differences, plain, read, versions, write


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    by_golden: dict[str, dict[str, Any]] = {}
    for case in cases():
        known = read(case.golden) if (FOLDER / f"{case.golden}.json").exists() else {}
        written = known.get("cases", {})
        new = by_golden.setdefault(case.golden, {})
        same_versions = known.get("versions") == versions()
        asked = not sys.argv[1:] or any(part in case.id for part in sys.argv[1:])
        if same_versions and not asked and case.name in written:
            new[case.name] = written[case.name]
            continue
        with tempfile.TemporaryDirectory() as folder:
            new[case.name] = plain(case.compute(Path(folder)))
        if case.name not in written:
            print(f"{case.id} is new")
        elif not (changes := list(differences(new[case.name], written[case.name]))):
            new[case.name] = written[case.name]
        else:
            print(f"{case.id}: {changes[0]}, {len(changes)} differences")
    for golden, found in by_golden.items():
        write(golden, found)
    for path in FOLDER.glob("*.json"):
        if path.stem not in by_golden:
            print(f"{path.name} is deleted, for it has no cases any more.")
            path.unlink()


if __name__ == "__main__":
    main()
