"""The quick start, the benchmark of workers and the evidence page run; smoke.py runs the rest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(tmp_path: Path, name: str, *arguments: str) -> str:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_quickstart(tmp_path: Path) -> None:
    output = run(tmp_path, "quickstart.py", "--quick")
    assert "GBQRSampler" in output and "TPESampler (default)" in output
    assert (tmp_path / "build" / "quickstart.html").stat().st_size > 0


def test_benchmark_of_workers(tmp_path: Path) -> None:
    output = run(tmp_path, "benchmarks/benchmark_workers.py", "--smoke")
    assert "geometric mean regret of 8 workers is" in output
    assert output == run(
        tmp_path, "benchmarks/benchmark_workers.py", "--smoke"
    )  # read from the file


@pytest.mark.usefixtures("recorded_runs")
def test_evidence_page(tmp_path: Path) -> None:
    arguments = ["--methods", "GBQR,random", "--sources", "svm_grid,oboe", "--n-trials", "12"]
    run(tmp_path, "benchmarks/compare_samplers.py", *arguments, "--quick", "--out", "evidence")
    page = (tmp_path / "evidence" / "README.md").read_text(encoding="utf-8")
    assert "random 2x" in page and "#### 3 methods on 4 tasks at 10 trials" in page
    for line in page.splitlines():
        if line.startswith("!["):
            assert (tmp_path / "evidence" / line.partition("(")[2].rstrip(")")).is_file()
