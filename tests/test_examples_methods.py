"""The examples of transfer and of Hyperopt's algos run, in their quick forms."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["transfer_optuna.py", "--n-earlier", "4", "--n-trials", "4", "--seeds", "1"], "TST"),
        (["pmf_recommend.py"], "pipelines x"),
        (["hyperopt_gbqr.py", "--n-trials", "10", "--seeds", "1"], "What drove it: {'algo': 'gb"),
        (["benchmark_hyperopt.py", "functions", "--n-trials", "2", "--seeds", "1"], "noisy_wave"),
    ],
)
def test_it_runs(command: list[str], expected: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / command[0]), *command[1:]],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
