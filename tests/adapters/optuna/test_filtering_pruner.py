"""Successive filtering of trials at their rungs."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters.optuna import SuccessiveFilteringPruner, _private
from automl_plugins.adapters.optuna.filtering_pruner import advance_probability
from hypothesis import given
from hypothesis import strategies as st
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

everybody = SuccessiveFilteringPruner(n_startup_trials=0, seed=0)


def ask(study: optuna.Study, values: dict[int, float]) -> list[bool]:
    """Whether a new trial is pruned after each of its reports."""
    trial = study.ask()
    pruned = []
    for step, value in values.items():
        trial.report(value, step)
        pruned.append(trial.should_prune())
    return pruned


# --- the probability ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "others", "expected"),
    [
        (0.3, [], 1.0),  # alone
        (0.3, [0.3, 0.3], 1.0),  # all equal
        (0.1, [0.3, 0.5], 1.0),  # the best
        (0.5, [0.3, 0.1], 0.0),  # the worst
        (0.3, [0.1, 0.5], 0.5),
        (0.2, [0.1, 0.5], 0.75),
        (30.0, [10.0, 50.0], 0.5),  # of any scale
        (-0.3, [-0.5, -0.1], 0.5),
        (math.nan, [0.1], 0.0),
        (math.inf, [], 0.0),
        (-math.inf, [0.1], 1.0),
        (0.3, [0.1, 0.5, math.inf, -math.inf], 0.5),  # infinities set no scale
        (2.5, [0.0, 1.0, 2.0, 1e9], 1 - 2.5 / 8.0),  # nor does a diverged trial: 4 x median 2
    ],
)
def test_hand_values(loss: float, others: list[float], expected: float) -> None:
    assert advance_probability(loss, np.array(others)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("loss", "others", "expected"),
    [(0.9, [0.1, 0.2], 1.0), (0.9, [0.1, 0.2, 0.3], 0.0), (math.nan, [], 0), (math.inf, [0.1], 0)],
)
def test_start_up(loss: float, others: list[float], expected: float) -> None:
    assert advance_probability(loss, np.array(others), 4) == expected


@pytest.mark.parametrize("unit", [100.0, 1e-3, 1.0])
def test_the_unit_of_the_losses_does_not_matter(unit: float) -> None:
    """Also for errors in [0, 1], of which one has diverged: its distance counts as 4 medians."""
    others = np.array([0.010, 0.011, 0.012, 0.013, 0.9])
    reach = 0.0125 - 0.010  # of the median of all six
    for loss, expected in ((0.012, 1 - 0.002 / (4 * 0.002)), (0.03, 0.0), (0.010, 1.0)):
        if loss == 0.03:
            expected = 0.0 if 4 * reach < 0.03 - 0.010 else 1.0
        assert advance_probability(unit * loss, unit * others) == pytest.approx(expected)
        assert advance_probability(-unit * (1 - loss), -unit * (1 - others)) == pytest.approx(
            expected
        )


LOSSES = st.integers(-10_000, 10_000).map(lambda n: n / 16)


@given(st.lists(LOSSES, min_size=1, max_size=20), LOSSES)
def test_invariants(others: list[float], loss: float) -> None:
    array = np.array(others)
    p = advance_probability(loss, array)
    assert 0.0 <= p <= 1.0
    if loss <= array.min():
        assert p == 1.0
    elif loss > array.max():
        assert p == 0.0
    better = advance_probability(loss - 1.0, array)
    assert better >= p - 1e-9 or loss >= array.max()


# --- rungs ----------------------------------------------------------------------------------


def test_rungs_are_at_powers_of_the_factor() -> None:
    study = optuna.create_study(pruner=SuccessiveFilteringPruner(2, 3, n_startup_trials=0, seed=0))
    ask(study, dict.fromkeys(range(1, 20), 0.5))
    attributes = study.trials[0].system_attrs
    assert {key for key in attributes if "rung" in key} == {
        "automl_plugins:rung:0", "automl_plugins:rung:1", "automl_plugins:rung:2",
    }  # fmt: skip
    assert ask(study, {1: 0.9, 2: 0.9}) == [False, True]  # the worst, at step 2


def test_the_share_that_advances_is_the_probability() -> None:
    study = optuna.create_study(pruner=SuccessiveFilteringPruner(n_startup_trials=0, seed=3))
    ask(study, {1: 0.0})
    ask(study, {1: 1.0})
    kept = [not ask(study, {1: 0.3})[0] for _ in range(300)]
    assert np.mean(kept) == pytest.approx(0.7, abs=0.08)  # three standard errors


def test_the_outcome_is_drawn_once_and_stored() -> None:
    study = optuna.create_study(pruner=everybody)
    for value in (0.0, 1.0):
        ask(study, {1: value})
    trial = study.ask()
    trial.report(0.5, 1)
    first = trial.should_prune()
    stored = _private.read_rung(study.trials[-1], 0)
    assert stored is not None
    assert stored["value"] == 0.5 and stored["probability"] == 0.5
    assert stored["advances"] is not first
    study.pruner = SuccessiveFilteringPruner(n_startup_trials=0, seed=99)  # another worker
    assert [trial.should_prune() for _ in range(5)] == [first] * 5
    if first:  # an objective that does not listen is told again
        trial.report(0.0, 9)
        assert trial.should_prune()


def test_a_retried_trial_is_judged_by_its_own_report_and_counts_once() -> None:
    study = optuna.create_study(pruner=everybody)
    ask(study, {1: 1.0})
    dead = study.ask()
    dead.report(0.0, 1)
    assert not dead.should_prune()
    study.tell(dead, state=TrialState.FAIL)
    attributes = study.trials[1].system_attrs  # Optuna's callbacks for retries copy them
    waiting = optuna.trial.create_trial(state=TrialState.WAITING, system_attrs=attributes)
    study.add_trial(waiting)
    again = study.ask()
    assert again.number == 2 and "automl_plugins:rung:0" in study.trials[2].system_attrs
    assert _private.read_rung(study.trials[2], 0) is None
    again.report(2.0, 1)
    assert again.should_prune()
    decided = _private.read_rung(study.trials[2], 0)
    assert decided == {"value": 2.0, "probability": 0.0, "advances": False}


def test_a_retried_trial_that_inherits_reports_has_at_each_rung_the_one_made_there() -> None:
    study = optuna.create_study(pruner=everybody)
    curve = {step: 9.0 / step for step in range(1, 10)}
    dead = study.ask()
    for step, value in curve.items():
        dead.report(value, step)
    study.tell(dead, state=TrialState.FAIL)
    # As Optuna's callback for retries does it, if it is asked to.
    study.add_trial(optuna.trial.create_trial(state=TrialState.WAITING, intermediate_values=curve))
    again = study.ask()
    again.report(0.9, 10)
    assert not again.should_prune()
    decided = [_private.read_rung(study.trials[1], rung) or {} for rung in range(3)]
    assert [outcome["value"] for outcome in decided] == [9.0, 3.0, 1.0]
    ask(study, {1: 10.0})
    assert ask(study, {1: 9.0}) == [False]  # as good as any other after one step


def test_nan_and_the_bad_infinity_are_pruned() -> None:
    study = optuna.create_study(pruner=everybody)
    assert ask(study, {1: math.nan}) == [True]
    assert ask(study, {1: math.inf}) == [True]
    assert ask(study, {1: -math.inf}) == [False]
    assert ask(study, {1: 0.5}) == [False]  # none of them is a rival
    high = optuna.create_study(pruner=everybody, direction="maximize")
    assert ask(high, {1: math.inf}) == [False]
    assert ask(high, {1: -math.inf}) == [True]


def test_maximising_is_minimising_the_negative() -> None:
    table = np.random.default_rng(0).random((40, 3)).tolist()
    low, high = (
        optuna.create_study(direction=direction, pruner=SuccessiveFilteringPruner(seed=5))
        for direction in ("minimize", "maximize")
    )
    for row in table:
        values = dict(zip((1, 3, 9), row, strict=True))
        assert ask(low, values) == ask(high, {step: -value for step, value in values.items()})


def test_a_report_that_jumps_passes_all_rungs_on_its_way_and_others_are_no_rivals() -> None:
    study = optuna.create_study(pruner=everybody)
    ask(study, {1: 0.1})
    assert ask(study, {1: 0.05, 3: 0.9}) == [False, False]  # alone at the second rung
    ask(study, {1: 0.9, 3: 0.9, 9: 0.9})
    assert ask(study, {9: 0.05}) == [False]
    assert sum("rung" in key for key in study.trials[-1].system_attrs) == 3


def test_a_report_that_reaches_several_rungs_is_judged_at_the_highest_alone() -> None:
    study = optuna.create_study(pruner=everybody)
    ask(study, {1: 0.0, 3: 0.0})
    ask(study, {1: 1.0})
    late = study.ask()
    late.report(2.0, 10)  # the worst of rungs 0 and 1, alone at rung 2
    assert not late.should_prune()
    late.report(0.0, 27)
    assert not late.should_prune()
    decided = [_private.read_rung(study.trials[2], rung) or {} for rung in range(4)]
    assert [outcome["value"] for outcome in decided] == [2.0, 2.0, 2.0, 0.0]
    ask(study, {3: 1.0})
    beside = _private.read_rung(study.trials[3], 1) or {}
    assert beside["probability"] == 0.5  # halfway from 0.0 to the 2.0 of the late one
    assert ask(study, {10: 2.5, 27: 0.0}) == [True, True]  # the worst where it is judged
    assert ask(study, {10: math.nan}) == [True]


def learning(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", 0, 1)
    for step in (1, 3, 9):
        trial.report(x + 1 / step if x < 0.95 else math.nan, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return x


def test_a_search_is_the_same_in_a_file_and_resumed(tmp_path: Path) -> None:
    storage = JournalStorage(JournalFileBackend(str(tmp_path / "study.log")))
    whole, part = (
        optuna.create_study(
            storage=where,
            sampler=optuna.samplers.RandomSampler(seed=0),
            pruner=SuccessiveFilteringPruner(seed=2),
        )
        for where in (None, storage)
    )
    whole.optimize(learning, n_trials=16)
    part.optimize(learning, n_trials=8)
    part.pruner = pickle.loads(pickle.dumps(part.pruner))
    part.optimize(learning, n_trials=8)
    assert [t.last_step for t in part.trials] == [t.last_step for t in whole.trials]
    pruned = [t for t in part.trials if t.state == TrialState.PRUNED]
    assert len(pruned) > 3
    # It costs less and does not lose the best one.
    best = min(t.params["x"] for t in part.trials)
    assert part.best_value == best


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("min_resource", 0, ValueError),
        *(("min_resource", value, TypeError) for value in ("auto", 1.5)),
        ("reduction_factor", 1, ValueError),
        ("reduction_factor", True, TypeError),
        ("n_startup_trials", -1, ValueError),
        ("seed", -1, ValueError),
    ],
)
def test_bad_arguments(name: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=name):
        SuccessiveFilteringPruner(**{name: value})


def test_a_drawn_seed_is_kept() -> None:
    pruner = SuccessiveFilteringPruner()
    assert pickle.loads(pickle.dumps(pruner)).seed == pruner.seed
    assert SuccessiveFilteringPruner().seed != pruner.seed


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_stored_of_a_report_that_is_no_number_is_json(value: float) -> None:
    study = optuna.create_study(pruner=SuccessiveFilteringPruner(seed=0))
    trial = study.ask()
    trial.report(value, 1)
    assert trial.should_prune() is (value != -math.inf)
    stored = study._storage.get_trial(trial._trial_id).system_attrs
    assert json.loads(json.dumps(stored, allow_nan=False)) == stored
