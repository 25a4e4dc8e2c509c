"""Real faults in small: killed workers, locked storages, full disks; ``make faults`` has more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("faults.py")

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the workers are forked")


REPORTED = (
    "4 workers killed",
    "0 of them lost",
    "the same rows as in one go",
    "30 trials, ",
    "all trials are there",
    "it continues",
    "the search continued",
    "the export before",
)


@pytest.mark.slow
def test_nothing_is_lost() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--quick"],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert all(part in done.stdout for part in REPORTED), done.stdout
