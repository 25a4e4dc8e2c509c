"""The tour runs, with its pictures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOUR = Path(__file__).resolve().parents[1] / "examples" / "tour.ipynb"


def cells_of(path: Path) -> list[dict[str, Any]]:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


@pytest.mark.slow
def test_the_tour_runs_and_shows_its_pictures(tmp_path: Path) -> None:
    execute = "from nbclient.cli import main; main()"  # the command jupyter-execute
    output = str(tmp_path / "done.ipynb")
    command = [sys.executable, "-c", execute, str(TOUR), "--output", output]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "IPYTHONDIR": str(tmp_path)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    n_pictures = 0
    for cell in cells_of(tmp_path / "done.ipynb"):
        shown = "application/vnd.plotly.v1+json" in str(cell["outputs"])
        last = "".join(cell["source"]).splitlines()[-1]
        assert shown == ("plot_" in last), last
        n_pictures += shown
    assert n_pictures == 4


def test_the_tour_is_kept_without_what_it_printed() -> None:
    assert not [cell for cell in cells_of(TOUR) if cell["outputs"] or cell["execution_count"]]
