"""The families of problems that samplers are measured on: functions, searches, figures."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import families
import family_memories as memories
import family_page as page
import family_report as report
import family_searches as searches
import numpy as np
import pandas as pd
import pytest
import smooth_functions
from ConfigSpace import ConfigurationSpace

from automl_plugins.frameworks import NamedMethod
from automl_plugins.meta.bundled_memories import LEARNERS, bundled
from automl_plugins.replay import Outcome, Problem, Proposal

# --- functions -------------------------------------------------------------------------------


def test_the_least_value_of_every_function_is_0_at_its_own_point() -> None:
    known = {
        "branin_2": np.array([(np.pi + 5) / 15, 2.275 / 15]),
        "hartmann_6": np.array([0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573]),
    }
    rng = np.random.default_rng(0)
    smooth = smooth_functions.SMOOTH
    assert len(smooth) >= 12 and {d for _, d in smooth.values()} >= {2, 20}
    for name, (function, d) in smooth.items():
        centre = known[name] if name in known else function.args[2]  # type: ignore[attr-defined]
        assert np.all((centre > 0) & (centre < 1)), name
        assert abs(function(centre)) < (1e-5 if name == "hartmann_6" else 1e-12), name
        assert min(function(x) for x in rng.random((200, d))) > 0, name


def test_half_of_a_family_is_tuned_on_and_the_other_judged() -> None:
    tuned, judged = families.half("smooth", "tuned"), families.half("smooth", "judged")
    names = [task.name for task in families.family("smooth")]
    assert [t.name for t in tuned] == names[::2] and [t.name for t in judged] == names[1::2]
    assert all(task.numeric and task.best == 0.0 and task.worst is None for task in judged)


# --- a search --------------------------------------------------------------------------------

LOSSES = [0.5, math.nan, 0.7, 0.2, 0.2, 0.1]


class _Counting:
    """Proposes the numbers from 0 on and remembers what it was told."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.told: list[Outcome] = []

    def ask(self) -> Proposal | None:
        return Proposal({"x": len(self.told)}) if len(self.told) < len(LOSSES) else None

    def tell(self, proposal: Proposal, outcome: Outcome) -> None:
        self.told.append(outcome)


def _task() -> Any:
    def loss(config: Mapping[str, Any]) -> float:
        return LOSSES[int(config["x"])]

    space = ConfigurationSpace({"x": (0, len(LOSSES) - 1)})
    return families.Task("made/up", space, loss, 0.0, 1.0, lambda _: 2.0)


def test_a_search_keeps_the_trials_at_which_it_improved() -> None:
    started: list[_Counting] = []

    def start(problem: Problem) -> _Counting:
        started.append(_Counting(problem))
        return started[-1]

    search, method = searches.search, NamedMethod("counting", start)
    assert search(method, _task(), 0, 10).improvements == [(1, 0.5), (4, 0.2), (6, 0.1)]
    assert [(o.started, o.finished) for o in started[0].told[:2]] == [(0.0, 2.0), (2.0, 4.0)]
    assert [o.status.name for o in started[0].told[:2]] == ["COMPLETE", "FAILED"]
    # Two evaluations that count as one trial.
    assert search(method, _task(), 0, 3, 2).improvements == [(1, 0.5), (2, 0.2), (3, 0.1)]
    assert started[0].problem.n_trials == 10 and started[1].problem.n_trials == 6
    assert started[0].problem.seed == started[1].problem.seed


def test_finished_searches_are_not_run_again(tmp_path: Path) -> None:
    extra = tmp_path / "extra.py"
    extra.write_text(
        "from automl_plugins.frameworks import load_adapter\n"
        "METHODS = {'mine': lambda: load_adapter('optuna').optimizer('RandomSampler')}\n"
    )
    tuned = partial(families.half, which="tuned")
    arguments = (["smooth"], ["mine", "random 2x"], tuned, range(2), tmp_path)
    for _ in range(2):
        searches.run(*arguments, extra=extra, n_trials=3, limit=1)
        assert len(list(searches.read_results(tmp_path))) == 4
    with searches.file_of(tmp_path, "smooth", "mine").open("a") as file:
        file.write('{"task": "smooth/sph')  # a run that was killed
    found = list(searches.read_results(tmp_path))
    assert len(found) == 4
    searches.pack(tmp_path)
    assert [p.name for p in tmp_path.glob("*.jsonl*")] == ["smooth.jsonl.xz"]
    searches.run(*arguments, extra=extra, n_trials=3, limit=1)
    assert sorted(map(str, searches.read_results(tmp_path))) == sorted(map(str, found))


# --- figures ---------------------------------------------------------------------------------


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two tables of one family, two seeds; a surrogate's task; a smooth function."""
    scales = ["task,best,worst", "svm_grid/a,0,1", "svm_grid/b,1,3", "lcbench/c,-5,-1"]
    (tmp_path / "scales.csv").write_text("\n".join([*scales, "smooth/d,0,"]))
    made: list[tuple[str, str, int, list[tuple[int, float]]]] = [
        ("svm_grid/a", "mine", 0, [(1, 0.5), (20, 0.0)]),
        ("svm_grid/a", "mine", 1, [(1, 0.5), (30, 0.2)]),
        ("svm_grid/b", "mine", 0, [(1, 2.0)]),
        ("svm_grid/a", "mine, honest memory", 0, [(1, 0.5), (2, 0.3), (3, 0.2)]),
        ("svm_grid/a", "mine, described memory", 0, [(1, 0.5)]),
        ("svm_grid/a", "mine, negated memory", 1, [(1, 0.5), (40, 0.1)]),
        ("svm_grid/a", "peer", 0, [(1, 0.4), (45, 0.2)]),
        ("svm_grid/a", "peer", 1, [(3, 0.4)]),
        ("svm_grid/b", "peer", 0, [(1, 1.5)]),
        ("svm_grid/b", "peer", 1, [(1, 1.0)]),  # mine has not searched it
        ("lcbench/c", "mine", 0, [(1, -4.0), (2, -6.0)]),  # better than random ones ever were
        ("lcbench/c", "peer", 0, [(1, -5.0)]),
        ("smooth/d", "mine", 0, [(1, 0.01)]),
        ("smooth/d", "peer", 0, [(1, 1e-12)]),
    ]
    names = ("task", "method", "seed", "improvements")
    lines = [dict(zip(names, row, strict=True)) for row in made]
    for line in lines:
        n = 60 if line["task"] == "smooth/d" else 50
        line |= {"n_trials": n, "proposing": n / 100}
    (tmp_path / "judged").mkdir()
    (tmp_path / "judged" / "all.jsonl").write_text("".join(json.dumps(r) + "\n" for r in lines))
    return tmp_path


def test_regret_by_hand(results: Path) -> None:
    curves: Any
    curves, times = report.read_curves(results, "judged")
    assert set(times) == {10.0}
    assert curves.loc[("svm_grid", "svm_grid/a", 0, "mine"), [1, 19, 20, 50]].tolist() == [
        50.0,
        50.0,
        0.0,
        0.0,
    ]
    assert curves.loc[("svm_grid", "svm_grid/a", 1, "peer"), 2] == 100.0  # nothing found yet
    assert curves.loc[("lcbench", "lcbench/c", 0, "peer"), 1] == pytest.approx(20.0)
    assert curves.loc[("smooth", "smooth/d", 0, "peer"), 1] == -8.0
    assert math.isnan(curves.loc[("lcbench", "lcbench/c", 0, "peer"), 51])


def test_comparison_by_hand(results: Path) -> None:
    curves, _ = report.read_curves(results, "judged")
    values = report.at(report.blocks(curves, ["mine", "peer"]).loc[["svm_grid"]], 50)
    # Table a: means over two seeds; table b: the one seed that both have.
    np.testing.assert_allclose(values["mine"], [10.0, 50.0])
    np.testing.assert_allclose(values["peer"], [30.0, 25.0])
    ratio = report.against(curves, "mine", "peer", "svm_grid", 50)
    assert ratio == pytest.approx(math.sqrt(10 * 50 / (30 * 25)))
    floored = report.against(curves, "mine", "peer", "lcbench", 50)
    assert floored == pytest.approx(0.1 / 20)
    assert report.against(curves, "mine", "peer", "smooth", 50) == pytest.approx(-2 + 8)
    # Mean curve of a: 50 until trial 19, then 25, which is below the peer's 30.
    assert list(report.trials_to(curves, "mine", "peer", "svm_grid")) == [20.0, 51.0]
    assert list(report.trials_to(curves, "mine", "peer", "lcbench")) == [2.0]
    assert math.isnan(report.against(curves, "mine", "nobody", "svm_grid", 50))


def test_the_page_shows_every_family(results: Path, tmp_path: Path) -> None:
    curves, times = report.read_curves(results, "judged")
    text = page.page(curves, times, "mine", ["peer"], "ranks.svg")
    assert "![Average rank by trials](ranks.svg)" in text and "Seeds: mine 1 to 2, peer" in text
    assert "## svm_grid\n\n2 blocks" in text and "0.82 [0.82] peer" in text
    assert text.count("\n## ") == 8
    # On seed 1, trials 20 to 50: alone 50 % until 29, then 20 %; lied to 50 % until 39, then 10 %.
    # Alone, trials 15 to 45: 15 times 50 % and 16 times 20 %, 1 070 in place of 920.
    cells = [re.split(r" *\| *", line.strip("| ")) for line in text.splitlines()]
    assert ["svm_grid", "peer", "36 (1 of 2)", "3 (0 of 1)", "51 (1 of 1)"] in cells
    page.save_picture(curves, ["mine", "peer"], tmp_path / "ranks.svg")
    drawn = (tmp_path / "ranks.svg").read_text(encoding="utf-8")
    assert all(text in drawn for text in ("Average rank", "4 tables", ">mine<", ">peer<"))
    lies = ["svm_grid, negated", f"{920 / 31:.2f}", f"{1110 / 31:.2f}", "+21%", "+16%"]
    assert lies in cells


def test_the_page_shows_what_a_bundled_memory_changes(results: Path) -> None:
    curves, times = report.read_curves(results, "judged")
    without = searches.NO_MEMORY

    def named(frame: Any, change: float) -> Any:
        own = frame.xs("mine", level="method", drop_level=False)
        return own.rename(index={"mine": without}, level="method") + change

    more = named(curves, 0.0)
    more[more.index.get_level_values("family") == "svm_grid"] += 60.0
    both = pd.concat([curves, more]), pd.concat([times, named(times, 0.0)])
    text = page.page(*both, "mine", ["peer"], "ranks.svg")
    assert "with the package: on `svm_grid`.\n" in text
    assert f"### {without}\n\n|" in text
    cells = [re.split(r" *\| *", line.strip("| ")) for line in text.splitlines()]
    assert ["svm_grid", "peer", "2", "36 (50%)", "51 (100%)"] in cells
    assert ["svm_grid", "peer", "51 (2 of 2)", "3 (0 of 1)", "51 (1 of 1)"] in cells
    # First of two on lcbench, second on the other families.
    assert any(row[:2] == [without, "1.67 (1.75)"] for row in cells)
    sections = text.split("\n## ")
    assert without in next(part for part in sections if part.startswith("svm_grid"))
    assert without not in next(part for part in sections if part.startswith("lcbench"))


def test_a_bundled_memory_does_not_know_the_searched_data(tmp_path: Path) -> None:
    sources = {task.tags["family"] for learner in LEARNERS for task in bundled(learner).tasks}
    for known in memories._SOURCES.values():
        assert set(known.values()) <= sources

    def left_out(name: str) -> frozenset[str]:
        task = families.Task(name, ConfigurationSpace(), lambda config: 0.0)
        excluded: frozenset[str] = memories.without_itself(task).exclude
        return excluded

    assert left_out("svm_grid/crx") == {"crx", "australian"}
    assert left_out("rbv2_xgboost_tuned/1510") == {"1510", "wdbc", "wisconsin"}
    assert left_out("svm/saheart") == {"saheart"} and left_out("svm_grid/W8A") == {"W8A"}


def test_the_page_says_how_many_problems_there_are(recorded_runs: ModuleType) -> None:
    rows = re.findall(r"^\| (\w+) \|.*\| (\d+)[^|]*\| (\d+), (\d+) \|", page._INTRODUCTION, re.M)
    found = {name: (int(d), int(n), int(judged)) for name, d, n, judged in rows}
    assert found.keys() == families.FAMILIES.keys()
    for name, (d, n, judged) in found.items():
        tasks = families.family(name)
        assert (len(tasks), len(families.half(name, "judged"))) == (n, judged)
        assert min(len(task.space) for task in tasks) == d
