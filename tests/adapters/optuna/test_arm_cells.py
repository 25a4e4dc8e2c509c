"""Cells of the search space as arms: ``BOASFSampler(split=...)``."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters.optuna import (
    BOASFSampler,
    GBQRSampler,
    _private,
    arm_report,
    explain,
)
from automl_plugins.adapters.optuna._arms import Split
from objectives import distinct, fixing, params, search
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import RandomSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from automl_plugins.visualization import plot_arm_allocation

SPACE: dict[str, BaseDistribution] = {
    "x": FloatDistribution(0, 1),
    "rate": FloatDistribution(1e-3, 1, log=True),
    "depth": IntDistribution(1, 9),
    "part": FloatDistribution(0.1, 0.9, step=0.1),
    "kind": CategoricalDistribution(["p", None, True]),
}


def five(trial: optuna.Trial) -> float:
    """A number of each sort; the best values are in one cell."""
    x, rate = trial.suggest_float("x", 0, 1), trial.suggest_float("rate", 1e-3, 1, log=True)
    depth, part = trial.suggest_int("depth", 1, 9), trial.suggest_float("part", 0.1, 0.9, step=0.1)
    kind = trial.suggest_categorical("kind", ["p", None, True])
    return (
        (x - 0.3) ** 2 + (rate - 0.1) ** 2 + abs(depth - 3) / 9 + abs(part - 0.3) + (kind != "p")
    )


def grid(trial: optuna.Trial) -> float:
    """Twelve configurations."""
    return 0.1 * trial.suggest_int("i", 1, 4) + 0.05 * trial.suggest_categorical("j", [0, 1, 2])


boasf = partial(BOASFSampler, split=2, inner=RandomSampler, seed=1)


def run(sampler: Any, n: int, objective: Any = five, **options: Any) -> Study:
    return search(sampler, objective, n, catch=ArithmeticError, **options)


def given(study: Study) -> list[str | None]:
    """The cell that each trial was given."""
    return [t.user_attrs.get("automl_plugins:arm", {}).get("arm") for t in study.trials]


def cell_by_hand(values: dict[str, Any]) -> tuple[bool, ...]:
    """Halves of five parameters: geometric middle on a log scale, 4 of 9 steps, 1 of 3 choices."""
    return (
        values["kind"] != "p",
        values["depth"] > 4,
        values["part"] > 0.45,
        values["rate"] >= math.sqrt(1e-3),
        values["x"] >= 0.5,
    )


# --- cells ----------------------------------------------------------------------------------


def test_trials_without_parameters_define_no_cells() -> None:
    sampler = BOASFSampler(split=2, n_trials=12, seed=1)
    study = optuna.create_study(sampler=sampler)
    study.add_trial(optuna.create_trial(value=1.0))  # a baseline
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) + trial.suggest_int("n", 1, 4), 12)
    assert len(study.trials) == 13
    assert len({cell for cell in given(study) if cell is not None}) > 1


def test_five_parameters_make_the_papers_32_cells() -> None:
    cells = Split(2).cells(SPACE)
    assert len(cells) == 32 == len(set(cells.names))
    assert cells.names[0] == (
        "depth in [1, 4], kind = p, part in [0.1, 0.4], rate in [0.001, 0.03162), x in [0, 0.5)"
    )
    for name, parts in cells.parts.items():
        whole: Any = SPACE[name]
        first, last = parts
        if isinstance(whole, CategoricalDistribution):
            assert (*first.choices, *last.choices) == whole.choices
        else:
            assert (first.low, last.high) == (whole.low, whole.high)
    assert [len(parts) for parts in cells.parts.values()] == [2] * 5


def test_every_configuration_lies_in_one_cell() -> None:
    cells = Split({"x": 3, "part": 2, "depth": 4, "kind": 2}, max_arms=99).cells(SPACE)
    assert len(cells) == 48
    for trial in run(RandomSampler(seed=0), 60).trials:
        internal = {n: np.array([SPACE[n].to_internal_repr(v)]) for n, v in trial.params.items()}
        (owner,) = cells.allowed(trial.params)
        for i in range(48):
            held = [cells.contains(i, n, internal[n])[0] for n in cells.whole]
            assert all(held) == (i == owner)
        for name, value in trial.params.items():
            part = cells.narrow(owner, name, SPACE[name])
            assert _private.contains(part, part.to_internal_repr(value))


@pytest.mark.parametrize("inner", [None, RandomSampler(seed=0)])
def test_a_cell_has_the_choices_that_the_objective_asks_for(inner: Any) -> None:
    """1 may mean one feature and 1.0 all of them; for Optuna they are equal."""
    split = {"features": 2}

    def search(choices: list[Any], n: int) -> list[Any]:
        sampler = BOASFSampler(split=split, n_trials=20, inner=inner, seed=0)
        study.sampler = sampler
        asked = []

        def objective(trial: optuna.Trial) -> float:
            asked.append(trial.suggest_categorical("features", choices))
            return trial.suggest_float("x", 0, 1)

        study.optimize(objective, n)
        return asked

    study = optuna.create_study()
    first, then = search([1, True, 0.5, "sqrt"], 2), search([1.0, 1.0, 0.5, "sqrt"], 12)
    assert {*map(type, first)} <= {int, bool, float, str}
    assert {*map(type, then)} == {float, str} and 1.0 in then and 0.5 in then


@pytest.mark.parametrize(
    ("distribution", "firsts"),
    [
        (FloatDistribution(0.0, 0.7, step=0.1), [0.0, 0.2, 0.5]),
        (IntDistribution(0, 10, step=5), [0, 5, 10]),
        (IntDistribution(1, 1000, log=True), [1, 7, 80]),
        (IntDistribution(5, 6), [5, 6]),
        (CategoricalDistribution(list("abcdefg")), ["a", "c", "e"]),
    ],
)
def test_parts_by_hand(distribution: BaseDistribution, firsts: list[Any]) -> None:
    parts = Split(3).cells({"a": distribution}).parts["a"]
    found = [p.choices[0] if isinstance(p, CategoricalDistribution) else p.low for p in parts]
    assert found == (firsts if isinstance(firsts[0], str) else pytest.approx(firsts))
    values = [value for part in parts for value in _values(part)]
    whole = _values(distribution)
    assert values == (whole if isinstance(firsts[0], str) else pytest.approx(whole))


@pytest.mark.parametrize(
    ("low", "step", "high"),
    [
        (0.1, 0.1, 0.9),
        (-1e-05, 7000000000.000007, 6999999999.999997),  # rounded, its end lies outside
        (1e-5, 1e10, 1e10 + 1e-5),
        (0.3, 1e-7, 0.4),
    ],
)
def test_ends_of_steps_are_values_as_optuna_tells_them(
    low: float, step: float, high: float
) -> None:
    whole = FloatDistribution(low, high, step=step)
    parts: Any = Split(2).cells({"a": whole}).parts["a"]  # Optuna warns of ends that are not steps
    assert (parts[0].low, parts[-1].high) == (low, high)
    assert all(_private.contains(whole, end) for p in parts for end in (p.low, p.high))


@pytest.mark.parametrize("n_parts", [2, 3, 4])
@pytest.mark.parametrize(
    ("low", "step", "high"),
    [
        (0.5, 1 / 3, 2.1666666666666665),
        (0.0, 1 / 7, 9 / 7),
        (1.0, 2.0999999999999996, 11.499999999999998),
        (0.001, 1 / 7, 0.8581428571428571),
        (-1.0, 0.30000000000000004, 2.0000000000000004),
    ],
)
@pytest.mark.filterwarnings("ignore:The distribution is specified by")  # as the whole grid itself
def test_no_value_of_a_grid_is_lost_where_its_step_is_no_decimal(
    low: float, step: float, high: float, n_parts: int
) -> None:
    whole = FloatDistribution(low, high, step=step)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parts: Any = Split(n_parts).cells({"a": whole}).parts["a"]
    found = [_values(part) for part in parts]
    assert [value for values in found for value in values] == pytest.approx(_values(whole))
    for part, values in zip(parts, found, strict=True):
        assert part.single() == (len(values) == 1)
        assert all(_private.contains(whole, value) for value in (part.low, part.high))

    study = search(
        boasf(n_trials=90, split=n_parts, search_space={"a": whole}),
        lambda trial: trial.suggest_float("a", low, high, step=step),
        90,
    )
    drawn = {round((t.params["a"] - low) / step) for t in study.trials}
    assert drawn == set(range(len(_values(whole))))


def _values(d: Any) -> list[Any]:
    if isinstance(d, CategoricalDistribution):
        return list(d.choices)
    step = d.step if d.step else 1
    return [d.low + i * step for i in range(round((d.high - d.low) / step) + 1)]


# --- the search -----------------------------------------------------------------------------


def test_proposals_lie_in_the_cell_that_was_chosen() -> None:
    study = run(BOASFSampler(split=2, n_trials=90, seed=0), 90)  # TPE inside
    report = arm_report(study)
    assert len(report.names) == 32 and len(report.records) == 90
    assert given(study)[0] is None  # before a trial is complete no cell is known
    by_name: dict[str | None, tuple[bool, ...]] = {}
    for trial, name in zip(study.trials[1:], given(study)[1:], strict=True):
        assert by_name.setdefault(name, cell_by_hand(trial.params)) == cell_by_hand(trial.params)
    first = cell_by_hand(study.trials[0].params)  # counts in its cell, found by its values
    assert len(set(by_name.values())) == len(by_name) and len({first, *by_name.values()}) == 32
    best = Counter(given(study)).most_common(1)[0][0]
    assert by_name[best][:3] == (False, False, False)  # where the best values are
    assert "; arm: depth in [1, 4], kind" in str(explain(study.best_trial))


class Watch(RandomSampler):
    """Notes which trials and distributions it is shown."""

    seen: list[tuple[int, list[FrozenTrial]]]

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: Any
    ) -> Any:
        done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        self.seen.append((trial.number, done))
        assert all(t.distributions[param_name] == param_distribution for t in done)
        return super().sample_independent(study, trial, param_name, param_distribution)


def test_the_sampler_inside_sees_the_cell_as_the_search_space() -> None:
    seen: list[tuple[int, list[FrozenTrial]]] = []

    def inner(seed: int) -> Watch:
        watch = Watch(seed)
        watch.seen = seen
        return watch

    study = run(boasf(n_trials=80, inner=inner, search_space=SPACE), 80)
    cells = [cell_by_hand(t.params) for t in study.trials]
    assert sum(len(done) for _, done in seen) > 80
    for number, done in seen:
        own = [i for i in range(number) if cells[i] == cells[number]]
        assert [t.number for t in done] == own


@pytest.mark.parametrize("inner", [None, GBQRSampler])
def test_a_running_trial_is_shown_to_the_cells_that_it_may_belong_to(inner: Any) -> None:
    """A worker may have died between two parameters."""

    def objective(trial: optuna.Trial) -> float:
        c = trial.suggest_categorical("c", ["a", "b", "c", "d"])
        return trial.suggest_float("x", 0.0, 1.0) + "abcd".index(c)

    study = optuna.create_study(sampler=BOASFSampler(split=2, n_trials=40, seed=1, inner=inner))
    first, second = study.ask(), study.ask()
    second.suggest_categorical("c", ["a", "b", "c", "d"])
    study.tell(first, objective(first))
    study.optimize(objective, n_trials=14)
    assert [t.state.name for t in study.trials[2:]] == ["COMPLETE"] * 14
    assert {t.params["c"] in "ab" for t in study.trials[2:]} == {True, False}


def test_rounds_are_stored_followed_and_plotted() -> None:
    study = run(boasf(n_trials=80, search_space=SPACE, temperature=0.1), 80)
    report = arm_report(study)
    assert len(report.rounds[0].arms) == 32 and len(report.rounds) == 3
    assert report.opened[0] == 0 and len(set(given(study)[:32])) == 32
    for number, outcome in enumerate(report.rounds):
        first, last = (*report.opened, 80)[number : number + 2]
        pulled = {report.names.index(str(name)) for name in given(study)[first:last]}
        assert pulled <= set(outcome.arms)
    figure = plot_arm_allocation(study)
    assert any("kind = p" in str(trace.name) for trace in figure.data)


@pytest.mark.parametrize("space", [{"search_space": SPACE}, {}])
def test_a_search_goes_on_as_if_it_had_never_stopped(space: dict[str, Any]) -> None:
    inner = partial(TPESampler, n_startup_trials=3)
    sampler = partial(BOASFSampler, split=2, n_trials=60, inner=inner, seed=4, **space)
    whole, rest = run(sampler(), 50), run(sampler(), 20)
    rest.sampler = sampler()
    rest.optimize(five, n_trials=30)
    assert params(rest) == params(whole)
    assert arm_report(rest).rounds == arm_report(whole).rounds


def test_workers_get_different_cells_and_share_the_rounds() -> None:
    sampler = partial(boasf, n_trials=200, search_space=SPACE)
    study = optuna.create_study(sampler=sampler())
    other = optuna.load_study(
        study_name=study.study_name, storage=study._storage, sampler=sampler()
    )
    trials = [worker.ask() for _ in range(16) for worker in (study, other)]
    for trial in trials:
        trial.suggest_float("x", 0, 1)
    assert len(set(given(study))) == 32
    for trial in trials:
        study.tell(trial, five(trial))
    for worker in (study, other):
        worker.optimize(five, n_trials=60)
    rounds = arm_report(study).rounds
    assert rounds == arm_report(other).rounds
    assert [r.index for r in rounds] == [*range(len(rounds))]


def test_cells_that_have_nothing_left_leave() -> None:
    study = run(boasf(n_trials=40, max_arms=4), 11, grid)
    report = arm_report(study)
    assert report.names == (
        "i in [1, 2], j = 0", "i in [1, 2], j in {1, 2}",
        "i in [3, 4], j = 0", "i in [3, 4], j in {1, 2}",
    )  # fmt: skip
    assert sum("has no configuration left to try" in note for note in report.notes) == 3
    study.optimize(grid, n_trials=1)
    assert distinct(params(study)) == 12
    assert [row.pulls for row in arm_report(study).table()] == [2, 4, 2, 4]


# --- values that are decided beforehand -------------------------------------------------------


def test_held_values_decide_the_cell_as_far_as_they_go() -> None:
    study = run(boasf(n_trials=100, search_space=SPACE), 40)
    rounds = arm_report(study).rounds
    whole = {"x": 0.9, "rate": 0.5, "depth": 9, "part": 0.9, "kind": True}
    study.enqueue_trial(whole)
    study.enqueue_trial({"x": 0.75, "kind": None})
    study.optimize(five, n_trials=2)
    first, second = study.trials[-2:]
    assert first.params == whole and second.params["x"] == 0.75 and second.params["kind"] is None
    cells = Split(2).cells(SPACE)
    assert given(study)[-1] == cells.names[cells.allowed(second.params)[0]]
    assert arm_report(study).rounds == rounds  # nobody's round was opened for them
    study.sampler = fixing({"x": 0.2}, study.sampler)
    study.optimize(five, n_trials=20)
    assert {p["x"] for p in params(study)[42:]} == {0.2}
    assert len(set(given(study)[42:])) > 4


def test_a_trial_that_asks_for_less_belongs_to_the_cell_that_it_was_given() -> None:
    def objective(trial: optuna.Trial) -> float:
        if trial.number and trial.suggest_categorical("skip", [False, True]):
            return 0.5
        return trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, 1)

    study = run(boasf(n_trials=60), 40, objective)
    report = arm_report(study)
    assert len(report.names) == 4 and len(report.records) == 40
    assert any("x" not in p for p in params(study))
    for row, cell in zip(report.table(), report.names, strict=True):
        assert row.pulls == given(study).count(cell) + (cell == _first(study, report.names))


def _first(study: Study, names: tuple[str, ...]) -> str:
    """The cell of the trial that was drawn before there were cells."""
    x, y = (study.trials[0].params[n] >= 0.5 for n in "xy")
    return str(names[2 * x + y])


# --- arguments ------------------------------------------------------------------------------


def test_a_report_needs_no_sampler_and_other_splits_do_not_mix() -> None:
    study = run(boasf(n_trials=40), 40)
    rounds = arm_report(study).rounds
    study.sampler = RandomSampler(seed=0)
    assert arm_report(study, split=2).rounds == rounds
    assert arm_report(study, split={"x": 3}).rounds == ()
    study.sampler = boasf(n_trials=60, split={"x": 4})
    study.optimize(five, n_trials=20)
    assert len(arm_report(study).names) == 4 and len(arm_report(study).rounds) >= 1
    assert arm_report(study, split=2).rounds == rounds


def test_rounds_of_the_cells_of_another_search_space_do_not_count() -> None:
    few = {"x": SPACE["x"], "rate": SPACE["rate"]}
    study = run(boasf(n_trials=100, search_space=few), 4)
    rounds = arm_report(study).rounds
    study.sampler = boasf(n_trials=100, search_space=SPACE)
    study.optimize(five, n_trials=29)
    assert [row.pulls > 0 for row in arm_report(study).table()] == [True] * 32
    study.sampler = boasf(n_trials=100, search_space=few)
    assert arm_report(study).rounds == rounds


def test_a_retried_trial_does_not_get_a_cell_that_is_gone() -> None:
    study = run(boasf(n_trials=60, search_space=SPACE), 4)
    copied = {"automl_plugins:arm:split=2": 32}  # of 64 cells
    study.add_trial(optuna.trial.create_trial(state=TrialState.WAITING, system_attrs=copied))
    study.optimize(five, n_trials=1)
    assert given(study)[4] in Split(2).cells(SPACE).names


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"split": 1}, "split must be an integer >= 2"),
        ({"split": {"x": 1}}, r"split\['x'\] must be an integer >= 2"),
        ({"split": {}}, "split is empty"),
        ({"split": 2, "max_arms": 1}, "max_arms must be an integer >= 2"),
        ({"split": 2, "arm": "kind"}, "give one of them"),
        ({"split": {"z": 2}, "search_space": SPACE}, "'z' is not a parameter"),
        ({"split": 64, "search_space": {"x": SPACE["x"]}}, "max_arms is 32"),
    ],
)
def test_bad_arguments(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        BOASFSampler(n_trials=9, **options)


def test_what_cannot_be_split_is_said_in_the_first_trial_that_would_have_a_cell() -> None:
    study = run(boasf(n_trials=9), 1, lambda t: t.suggest_float("x", 0, 1))
    study.sampler = boasf(n_trials=9, split={"y": 2})
    with pytest.raises(ValueError, match="'y' is not a parameter of the space"):
        study.optimize(five, n_trials=1)
    with pytest.raises(ValueError, match="its cells are not known yet"):
        arm_report(optuna.create_study(), split=2)
    constant = run(boasf(n_trials=9), 3, lambda t: t.suggest_float("x", 1, 1))
    with pytest.raises(ValueError, match="No trial of the study has a parameter to split: its"):
        arm_report(constant)
    study = run(boasf(n_trials=20, max_arms=8), 3)
    assert any("max_arms is 8: rate, x." in note for note in arm_report(study).notes)
