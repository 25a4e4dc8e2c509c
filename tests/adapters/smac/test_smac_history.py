"""A run history of SMAC becomes one row for each configuration."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.smac.trials import (
    Rows,
    adjusted_means,
    canonical,
    loss_budget,
)
from ConfigSpace import Categorical, Configuration, ConfigurationSpace, EqualsCondition, Float
from hypothesis import given
from hypothesis import strategies as st
from smac import RunHistory
from smac.runhistory import StatusType, TrialInfo

from automl_plugins.records.history import History
from automl_plugins.records.trial import Status, Trial
from automl_plugins.spaces.values import as_configuration

NAN = math.nan


def space() -> ConfigurationSpace:
    made = ConfigurationSpace(seed=0)
    kind, c = Categorical("kind", ["linear", "rbf"]), Float("C", (1e-5, 1e3), log=True)
    made.add(kind, c, Float("x", (0.1, 0.7)), EqualsCondition(c, kind, "rbf"))
    return made


SPACE = space()
CONFIGS = SPACE.sample_configuration(6)


def run_history(*trials: tuple[int, dict[str, Any]]) -> RunHistory:
    """Trials by the number of their configuration, in the order in which they were asked."""
    history = RunHistory()
    for number, facts in trials:
        arguments: dict[str, Any] = {"cost": 1.0, "seed": 0} | facts
        history.add(CONFIGS[number], **arguments)
    return history


def read(*trials: tuple[int, dict[str, Any]], min_trials: int = 1) -> History:
    history: History = Rows(SPACE, min_trials).read(run_history(*trials))
    return history


# --- one trial each ---------------------------------------------------------------------------


@pytest.mark.parametrize("cost", [math.inf, 1e9, 2_147_483_647.0])
@pytest.mark.parametrize("status", [StatusType.CRASHED, StatusType.TIMEOUT, StatusType.MEMORYOUT])
def test_the_crash_cost_is_no_loss(cost: float, status: StatusType) -> None:
    history = read((0, {"cost": 0.5}), (1, {"cost": cost, "status": status}))
    assert history.status.tolist() == [Status.COMPLETE, Status.FAILED]
    np.testing.assert_equal(history.losses, [0.5, NAN])


def test_running_trials_come_last_and_waiting_ones_after_them() -> None:
    history = run_history((2, {}), (0, {"cost": 3.0}))
    history.add_running_trial(TrialInfo(CONFIGS[1], seed=0))
    found = Rows(SPACE).read(history, [CONFIGS[4]])
    assert found.status.tolist() == [0, 0, Status.RUNNING, Status.RUNNING]
    assert found.number.tolist() == [0, 1, 2, 3]
    for row, config in zip(found.vectors, [CONFIGS[i] for i in (2, 0, 1, 4)], strict=True):
        np.testing.assert_allclose(row, config.get_array(), atol=1e-12)
    np.testing.assert_equal(found.losses, [1.0, 3.0, NAN, NAN])


def test_rows_are_in_the_order_in_which_they_finished() -> None:
    history = read(
        (0, {"endtime": 9.0, "cost": 0.0}),
        (1, {"endtime": 2.0, "cost": 1.0}),
        (2, {"endtime": 5.0, "cost": 2.0}),
    )
    assert history.losses.tolist() == [1.0, 2.0, 0.0]
    assert history.number.tolist() == [1, 2, 0]


def test_a_second_seed_does_not_move_a_row() -> None:
    trials = [(0, {"endtime": 1.0}), (1, {"endtime": 2.0})]
    again = (0, {"endtime": 3.0, "seed": 7, "cost": 5.0})
    assert read(*trials, again).number.tolist() == read(*trials).number.tolist() == [0, 1]
    assert read(*trials, again).losses.tolist() == [3.0, 1.0]


def test_an_empty_run_history_is_an_empty_history() -> None:
    history = Rows(SPACE).read(RunHistory())
    assert len(history) == 0 and history.vectors.shape == (0, 3)


# --- seeds and instances ----------------------------------------------------------------------


def test_seeds_are_averaged() -> None:
    history = read(
        (0, {"cost": 1.0, "seed": 1, "time": 4.0}),
        (0, {"cost": 3.0, "seed": 2, "time": 2.0}),
        (1, {"cost": 1.5, "seed": 1}),
    )
    assert history.losses.tolist() == [2.0, 1.5]
    np.testing.assert_equal(history.seconds, [3.0, NAN])


def test_the_largest_numbers_do_not_overflow() -> None:
    """They are marks of bad configurations, and two of them are still worse than any other."""
    huge, trials = sys.float_info.max, run_history((0, {}), (1, {"cost": -5.0}))
    for seed in range(2):
        for instance in "ab":
            with np.errstate(over="ignore"):  # SMAC's own mean
                trials.add(CONFIGS[2], cost=huge, seed=seed, instance=instance)
    history = Rows(SPACE).read(trials)
    assert np.isfinite(history.losses).all() and history.losses.argmax() == 2
    assert (history.status == Status.COMPLETE).all()


def test_one_failed_seed_fails_the_configuration() -> None:
    history = read((0, {"seed": 1}), (0, {"seed": 2, "status": StatusType.CRASHED}))
    assert history.status.tolist() == [Status.FAILED]


def test_easy_instances_make_no_good_configuration() -> None:
    """Instance b is easier by 10: row 1 is as good as row 0, not better by 5."""
    history = read(
        (0, {"cost": 12.0, "instance": "a"}),
        (0, {"cost": 2.0, "instance": "b"}),
        (1, {"cost": 2.0, "instance": "b"}),
    )
    np.testing.assert_allclose(history.losses, [7.0, 7.0])


def test_balanced_instances_are_plainly_averaged() -> None:
    costs = np.random.default_rng(0).random((5, 4))
    rows, instances = np.indices(costs.shape)
    means = adjusted_means(costs.ravel(), rows.ravel(), instances.ravel(), 5)
    np.testing.assert_allclose(means, costs.mean(axis=1), rtol=1e-12)


def test_adjusted_means_solve_the_least_squares_problem() -> None:
    rng = np.random.default_rng(1)
    rows, instances = map(np.ravel, np.indices((8, 4)))
    kept = rng.random(32) < 0.7
    rows, instances = rows[kept], instances[kept]
    costs = rng.normal(size=8)[rows] + 3.0 * rng.normal(size=4)[instances]
    design = np.hstack([np.eye(8)[rows], np.eye(4)[instances]])
    design = np.vstack([design, np.append(np.zeros(8), np.ones(4))])  # sum b = 0
    best = np.linalg.lstsq(design, np.append(costs, 0.0), rcond=None)[0][:8]
    means = adjusted_means(costs, rows, instances, 8)
    np.testing.assert_allclose(means, best, atol=1e-9)


def test_a_row_without_trials_has_no_mean() -> None:
    means = adjusted_means(np.array([2.0]), np.array([1]), np.array([0]), 3)
    np.testing.assert_equal(means, [NAN, 2.0, NAN])


# --- budgets ----------------------------------------------------------------------------------


def at(budget: float, cost: float = 1.0, **facts: Any) -> dict[str, Any]:
    return {"budget": budget, "cost": cost, **facts}


def test_the_highest_budget_with_enough_configurations_is_the_loss() -> None:
    trials = [
        *((i, at(1.0, i)) for i in range(4)),
        (0, at(3.0, 10.0)),
        (1, at(3.0, 20.0)),
        (0, at(9.0, 100.0)),
    ]
    history = read(*trials, min_trials=2)
    assert history.status.tolist() == [0, 0, Status.PRUNED, Status.PRUNED]
    assert history.losses.tolist() == [10.0, 20.0, 2.0, 3.0]
    assert history.budget.tolist() == [3.0, 3.0, 1.0, 1.0]
    history = read(*trials, min_trials=1)
    assert history.losses.tolist() == [100.0, 20.0, 2.0, 3.0]
    assert history.status.tolist() == [0, Status.PRUNED, Status.PRUNED, Status.PRUNED]


def test_who_is_known_at_a_higher_budget_only_counts_there() -> None:
    history = read((0, at(1.0)), (1, at(1.0)), (2, at(9.0, 5.0)), min_trials=2)
    assert history.losses.tolist() == [1.0, 1.0, 5.0]
    assert history.status.tolist() == [Status.COMPLETE] * 3


def test_a_failure_at_the_counted_budget_is_one() -> None:
    crash = at(3.0, math.inf, status=StatusType.CRASHED)
    history = read((0, at(1.0)), (0, crash), (1, at(1.0)), (1, at(3.0, 2.0)))
    assert history.status.tolist() == [Status.FAILED, Status.COMPLETE]


def test_too_few_at_every_budget_takes_the_fullest() -> None:
    def trial(budget: float | None, status: Status = Status.COMPLETE) -> list[Trial]:
        return [Trial({}, status, 1.0, step=budget)]

    assert loss_budget([trial(1.0), trial(1.0), trial(3.0)], 5) == 1.0
    assert loss_budget([trial(1.0), trial(3.0)], 5) == 3.0
    crashed = trial(9.0, Status.FAILED)
    assert loss_budget([crashed, crashed, trial(1.0)], 1) == 1.0
    assert loss_budget([crashed], 1) == 9.0
    assert loss_budget([], 1) is None
    assert loss_budget([trial(None), trial(None)], 1) is None
    assert loss_budget([trial(None), trial(3.0)], 1) == math.inf


# --- vectors ----------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 1), min_size=2, max_size=2), st.sampled_from([0.0, 1.0]))
def test_vectors_are_canonical(numbers: list[float], kind: float) -> None:
    vector = np.empty(3)
    vector[SPACE.index_of["kind"]] = kind
    vector[SPACE.index_of["x"]] = numbers[0]
    vector[SPACE.index_of["C"]] = numbers[1] if kind == 1.0 else NAN
    config = as_configuration(SPACE, vector)
    config.check_valid_configuration()
    # What the values alone say, as after a run has been stored.
    stored = Configuration(SPACE, values={k: config[k] for k in config})
    assert np.array_equal(canonical(config), canonical(stored), equal_nan=True)
    np.testing.assert_allclose(canonical(config), vector, atol=1e-9)


def test_a_stored_run_history_reads_the_same(tmp_path: Path) -> None:
    history = run_history(*((i, {"cost": i / 7, "time": 1.0 + i}) for i in range(6)))
    history.save(tmp_path / "runhistory.json")
    loaded = RunHistory()
    loaded.load(tmp_path / "runhistory.json", space())
    before, after = Rows(SPACE).read(history), Rows(SPACE).read(loaded)
    for name in ("vectors", "losses", "seconds", "number", "status"):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name))


def test_vectors_are_kept_until_an_id_is_given_to_another_configuration() -> None:
    rows = Rows(SPACE)
    rows.read(run_history((0, {})))
    found = rows.read(run_history((1, {})))
    np.testing.assert_array_equal(found.vectors[0], canonical(CONFIGS[1]))
