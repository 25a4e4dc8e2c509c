"""The examples of SMAC run, in a quick form."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def test_gbqr_against_the_default(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "smac_gbqr.py"), "--n-trials", "5"],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    errors = {row[0]: float(row[1]) for row in rows if row and row[0] in ("SMAC", "GBQR")}
    assert errors.keys() == {"SMAC", "GBQR"} and max(errors.values()) < 40.0
