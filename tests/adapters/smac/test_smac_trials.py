"""A run history of SMAC becomes one row for each configuration."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.smac import ADAPTER, GBQRFacade
from automl_plugins.adapters.smac.rows import (
    Rows,
    adjusted_means,
    adjusted_seconds,
    loss_budget,
)
from automl_plugins.adapters.smac.trials import adopt, canonical, runs_of
from ConfigSpace import (
    Categorical,
    Configuration,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    InCondition,
    NotEqualsCondition,
)
from hypothesis import given
from hypothesis import strategies as st
from smac import RunHistory, Scenario
from smac.runhistory import StatusType, TrialInfo
from smac_runs import search_space

from automl_plugins.proposers.targets import effective_losses
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status, Trial
from automl_plugins.spaces.values import as_configuration

NAN = math.nan
COMPLETE, PRUNED, FAILED, RUNNING = Status
SPACE = search_space()
CONFIGS = SPACE.sample_configuration(6)
Facts = tuple[int, dict[str, Any]]


def run_history(*trials: Facts) -> RunHistory:
    """Trials by the number of their configuration, in the order in which they were asked."""
    history = RunHistory()
    for number, facts in trials:
        arguments: dict[str, Any] = {"cost": 1.0, "seed": 0} | facts
        history.add(CONFIGS[number], **arguments)
    return history


def read(*trials: Facts, min_trials: int = 1) -> History:
    history: History = Rows(SPACE, min_trials).read(run_history(*trials))
    return history


# --- one trial each ---------------------------------------------------------------------------


def test_running_trials_come_last_and_waiting_ones_after_them() -> None:
    history = run_history((2, {}), (0, {"cost": 3.0}))
    history.add_running_trial(TrialInfo(CONFIGS[1], seed=0))
    found = Rows(SPACE).read(history, [CONFIGS[4]])
    assert found.status.tolist() == [COMPLETE, COMPLETE, RUNNING, RUNNING]
    assert found.number.tolist() == [0, 1, 2, 3]
    expected = [CONFIGS[i].get_array() for i in (2, 0, 1, 4)]
    np.testing.assert_allclose(found.vectors, expected, atol=1e-12)
    np.testing.assert_equal(found.losses, [1.0, 3.0, NAN, NAN])


def test_rows_are_in_the_order_in_which_they_finished_first() -> None:
    trials = [(i, {"endtime": end, "cost": i}) for i, end in enumerate((9.0, 2.0, 5.0))]
    assert read(*trials).losses.tolist() == [1.0, 2.0, 0.0]
    assert read(*trials).number.tolist() == [1, 2, 0]
    again = read(*trials, (1, {"endtime": 30.0, "seed": 7, "cost": 6.0}))
    assert again.number.tolist() == [1, 2, 0] and again.losses.tolist() == [3.5, 2.0, 0.0]


def test_trials_told_without_times_stay_where_they_were_told() -> None:
    told = [1.0, 0.5, 0.2, 0.9]
    ends = [7.0, 0.0, 9.0, 0.0]
    trials = [(i, {"cost": told[i], "endtime": ends[i]}) for i in range(4)]
    assert read(*trials).losses.tolist() == told
    (run,) = runs_of(run_history(*trials))
    assert [value.cost for _, _, value in run.finished()] == told


def test_an_empty_run_history_is_an_empty_history() -> None:
    history = Rows(SPACE).read(RunHistory())
    assert len(history) == 0 and history.vectors.shape == (0, 3)


# --- seeds and instances ----------------------------------------------------------------------


def test_seeds_are_averaged_and_one_failure_fails_the_configuration() -> None:
    history = read(
        (0, {"cost": 1.0, "seed": 1, "time": 4.0}),
        (0, {"cost": 3.0, "seed": 2, "time": 2.0}),
        (1, {"cost": 1.5, "seed": 1}),
        (2, {"seed": 1}),
        (2, {"seed": 2, "status": StatusType.CRASHED}),
    )
    np.testing.assert_equal(history.losses, [2.0, 1.5, NAN])
    np.testing.assert_equal(history.seconds, [3.0, NAN, NAN])
    assert history.status.tolist() == [COMPLETE, COMPLETE, FAILED]


def test_the_largest_numbers_do_not_overflow() -> None:
    """They are marks of bad configurations, and two of them are still worse than any other."""
    huge, trials = sys.float_info.max, run_history((0, {}), (1, {"cost": -5.0}))
    for seed in range(2):
        for instance in "ab":
            with np.errstate(over="ignore"):  # SMAC's own mean
                trials.add(CONFIGS[2], cost=huge, seed=seed, instance=instance)
    history = Rows(SPACE).read(trials)
    assert np.isfinite(history.losses).all() and history.losses.argmax() == 2
    assert (history.status == COMPLETE).all()


def test_easy_instances_make_no_good_configuration() -> None:
    """Instance b is easier by 10: row 1 is as good as row 0, not better by 5."""
    costs = ((0, 12.0, "a"), (0, 2.0, "b"), (1, 2.0, "b"))
    history = read(*((i, {"cost": cost, "instance": name}) for i, cost, name in costs))
    np.testing.assert_allclose(history.losses, [7.0, 7.0])


def test_easy_instances_make_no_fast_configuration() -> None:
    """Instance b takes a hundredth of the time of a, and says so by successes only."""
    quick = {"instance": "a", "time": 0.01, "status": StatusType.CRASHED}
    times = ((0, 100.0, "a"), (0, 1.0, "b"), (1, 1.0, "b"), (2, 100.0, "a"), (3, 3.0, "b"))
    trials = [(i, {"time": seconds, "instance": name}) for i, seconds, name in times]
    history = read(*trials, (3, quick))
    np.testing.assert_allclose(history.seconds, [50.5, 50.5, 50.5, 1.505])
    assert history.status.tolist() == [COMPLETE] * 3 + [FAILED]


def test_adjusted_seconds_are_plain_means_where_all_met_the_same_instances() -> None:
    rows, instances = map(np.ravel, np.indices((8, 4)))
    seconds, typical = np.exp(3.0 * np.random.default_rng(1).normal(size=32)), np.full(8, True)
    found = adjusted_seconds(seconds, rows, instances, typical)
    np.testing.assert_allclose(found, seconds.reshape(8, 4).mean(axis=1))
    alone = adjusted_seconds(seconds, rows, np.zeros(32, dtype=np.int64), typical)
    np.testing.assert_array_equal(alone, [sum(own) / 4 for own in seconds.reshape(8, 4).tolist()])
    # Rows that share no instance, directly or by others, are not compared; row 1 has no trial.
    apart = adjusted_seconds(
        np.array([2.0, 1e9]), np.array([0, 2]), np.array([0, 1]), np.full(3, True)
    )
    np.testing.assert_allclose(apart, [2.0, NAN, 1e9])


@pytest.mark.parametrize("shortest", [1e-300, 1e-9, 1e-3])
def test_a_trial_that_a_cache_answered_makes_no_slow_configuration(shortest: float) -> None:
    """Less than a millisecond is one; and no mean is longer than the longest trial."""
    times = [(0, shortest, "a"), (0, 100.0, "b"), (1, 2.0, "a")]
    history = read(*((i, {"time": seconds, "instance": name}) for i, seconds, name in times))
    np.testing.assert_allclose(history.seconds, [50.0, 100.0], rtol=1e-3)
    # With another pair, of equal seconds: the factor is the root of 1e-3 / 10.
    times = [(0, shortest, "a"), (0, 10.0, "b"), (1, 10.0, "a"), (1, 10.0, "b"), (2, 0.1, "a")]
    history = read(*((i, {"time": seconds, "instance": name}) for i, seconds, name in times))
    np.testing.assert_allclose(history.seconds, [5.0, 10.0, 0.1 * (100 + 1) / 2], rtol=1e-3)


@pytest.mark.parametrize("least", [5e-324, 1e-12])
def test_the_shortest_and_the_longest_seconds_do_not_overflow(least: float) -> None:
    times = ((0, least, "b"), (0, 1e18, "a"), (1, least, "b"), (2, 1e18, "a"), (3, 1.0, "b"))
    history = read(*((i, {"time": seconds, "instance": name}) for i, seconds, name in times))
    assert (history.seconds[:3] > 0.0).all()


def test_adjusted_means_solve_the_least_squares_problem() -> None:
    rng = np.random.default_rng(1)
    rows, instances = map(np.ravel, np.indices((8, 4)))
    costs = rng.normal(size=8)[rows] + 3.0 * rng.normal(size=4)[instances] + rng.random(32)
    plain = adjusted_means(costs, rows, instances, 8)
    np.testing.assert_allclose(plain, costs.reshape(8, 4).mean(axis=1))  # all on all instances
    kept = rng.random(32) < 0.7
    rows, instances, costs = rows[kept], instances[kept], costs[kept]
    design = np.hstack([np.eye(8)[rows], np.eye(4)[instances]])
    design = np.vstack([design, np.append(np.zeros(8), np.ones(4))])  # sum b = 0
    best = np.linalg.lstsq(design, np.append(costs, 0.0), rcond=None)[0][:8]
    np.testing.assert_allclose(adjusted_means(costs, rows, instances, 8), best, atol=1e-9)
    unknown = adjusted_means(np.array([2.0]), np.array([1]), np.array([0]), 3)
    np.testing.assert_equal(unknown, [NAN, 2.0, NAN])  # rows without trials


# --- budgets ----------------------------------------------------------------------------------


def at(budget: float, cost: float = 1.0, **facts: Any) -> dict[str, Any]:
    return {"budget": budget, "cost": cost, **facts}


def test_the_highest_budget_with_enough_configurations_is_the_loss() -> None:
    trials = [*((i, at(1.0, i)) for i in range(4)), (0, at(3.0, 10.0)), (1, at(3.0, 20.0))]
    trials.append((0, at(9.0, 100.0)))
    history = read(*trials, min_trials=2)
    assert history.status.tolist() == [COMPLETE, COMPLETE, PRUNED, PRUNED]
    assert history.losses.tolist() == [10.0, 20.0, 2.0, 3.0]
    assert history.budget.tolist() == [3.0, 3.0, 1.0, 1.0]
    history = read(*trials, min_trials=1)
    assert history.losses.tolist() == [100.0, 20.0, 2.0, 3.0]
    assert history.status.tolist() == [COMPLETE, PRUNED, PRUNED, PRUNED]


def test_one_known_at_a_higher_budget_only_counts_there() -> None:
    history = read((0, at(1.0)), (1, at(1.0)), (2, at(9.0, 5.0)), min_trials=2)
    assert history.losses.tolist() == [1.0, 1.0, 5.0]
    assert history.status.tolist() == [COMPLETE] * 3


def test_rows_know_the_losses_at_lower_budgets() -> None:
    trials = [(i, at(1.0, 10.0 - i)) for i in range(5)] + [(i, at(3.0, 5.0 - i)) for i in range(4)]
    history = read(*trials, min_trials=3)
    assert history.curves.tolist() == [
        *({1.0: 10.0 - i, 3.0: 5.0 - i} for i in range(4)),
        {1.0: 6.0},
    ]
    # The loss falls by 1 from one row to the next at both budgets, but not below the best
    assert effective_losses(history).tolist() == [5.0, 4.0, 3.0, 2.0, 2.0]
    assert read((0, {"cost": 1.0}), (1, {"cost": 2.0})).curves.tolist() == [{}, {}]


def test_a_failure_above_the_counted_budget_is_one() -> None:
    crashed = at(9.0, status=StatusType.CRASHED)
    history = read((0, at(3.0)), (1, at(3.0)), (0, crashed), (1, at(9.0, 0.5)), (2, at(1.0)))
    assert dict(zip(history.number.tolist(), history.status.tolist(), strict=True))[0] == FAILED
    history = read((0, at(3.0)), (1, at(3.0)), (0, crashed), min_trials=2)
    assert history.status.tolist() == [FAILED, COMPLETE]
    assert history.budget.tolist() == [9.0, 3.0]


def test_a_failure_at_the_counted_budget_is_one() -> None:
    crash = at(3.0, math.inf, status=StatusType.CRASHED)
    history = read((0, at(1.0)), (0, crash), (1, at(1.0)), (1, at(3.0, 2.0)))
    assert history.status.tolist() == [FAILED, COMPLETE]


@pytest.mark.parametrize(
    ("trials", "enough", "expected"),
    [
        ([(1.0, COMPLETE), (1.0, COMPLETE), (3.0, COMPLETE)], 5, 1.0),  # too few: the fullest
        ([(1.0, COMPLETE), (3.0, COMPLETE)], 5, 3.0),
        ([(9.0, FAILED), (9.0, FAILED), (1.0, COMPLETE)], 1, 1.0),
        ([(9.0, FAILED)], 1, 9.0),
        ([], 1, None),
        ([(None, COMPLETE), (None, COMPLETE)], 1, None),
        ([(None, COMPLETE), (3.0, COMPLETE)], 1, math.inf),
    ],
)
def test_the_budget_of_the_losses(trials: Any, enough: int, expected: float | None) -> None:
    configs = [[Trial({}, status, 1.0, step=budget)] for budget, status in trials]
    assert loss_budget(configs, enough) == expected


# --- vectors and values -----------------------------------------------------------------------


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


def test_a_configuration_is_adopted_by_its_values() -> None:
    one, other = ConfigurationSpace(), ConfigurationSpace()
    one.add(Categorical("k", ["x", "y", "z"], default="x"))
    other.add(Categorical("k", ["z", "y", "x"], default="x"))
    assert one == other
    assert dict(adopt(Configuration(one, {"k": "z"}), other)) == {"k": "z"}


def test_a_stored_run_history_reads_the_same(tmp_path: Path) -> None:
    history = run_history(*((i, {"cost": i / 7, "time": 1.0 + i}) for i in range(6)))
    history.save(tmp_path / "runhistory.json")
    loaded = RunHistory()
    loaded.load(tmp_path / "runhistory.json", search_space())
    before, after = Rows(SPACE).read(history), Rows(SPACE).read(loaded)
    for name in ("vectors", "losses", "seconds", "number", "status"):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name))


def test_vectors_are_kept_until_an_id_is_given_to_another_configuration() -> None:
    rows = Rows(SPACE)
    rows.read(run_history((0, {})))
    found = rows.read(run_history((1, {})))
    np.testing.assert_array_equal(found.vectors[0], canonical(CONFIGS[1]))


def test_what_an_inactive_parent_makes_active_is_searched_and_read(tmp_path: Path) -> None:
    space = ConfigurationSpace(seed=0)
    algorithm, kernel = Categorical("algo", ["svm", "tree"]), Categorical("kernel", ["rbf", "lin"])
    gamma = Float("gamma", (0.0, 1.0))
    space.add(algorithm, kernel, gamma)
    space.add(EqualsCondition(kernel, algorithm, "svm"), NotEqualsCondition(gamma, kernel, "lin"))

    def count(config: Configuration, seed: int = 0) -> float:
        return len(config)

    run = Scenario(
        space, name="t", n_trials=14, deterministic=True, output_directory=tmp_path, seed=1
    )
    smac = GBQRFacade(run, count, logging_level=False)
    smac.optimize()
    for config in smac.runhistory.get_configs():
        config.check_valid_configuration()
    found = ADAPTER.read_task(run.output_directory).configurations
    assert {frozenset(values) for values in found if values["algo"] == "tree"} == {
        frozenset(("algo", "gamma"))
    }
    again = GBQRFacade(run, count, logging_level=False, overwrite=False)
    assert len(again.runhistory) == 14


def test_choices_are_searched_and_read_as_they_are(tmp_path: Path) -> None:
    lists: dict[str, list[Any]] = {
        "bools": [True, False],
        "numbers and a bool": [1.5, True],  # an array of floats for ConfigSpace
        "integers and floats": [1, 2.5],
        "text of values": ["True", True, "None", None],
        "tuples": [(64, 32), (64,)],
    }
    space = ConfigurationSpace(seed=0)
    space.add([Categorical(name, choices) for name, choices in lists.items()])
    space.add(Float("y", (0.0, 1.0)))
    space.add(InCondition(space["y"], space["numbers and a bool"], [True]))
    run = Scenario(
        space, name="t", n_trials=14, deterministic=True, output_directory=tmp_path, seed=1
    )
    smac = GBQRFacade(run, lambda config, seed=0: len(str(dict(config))), logging_level=False)
    smac.optimize()
    found = ADAPTER.read_task(smac).configurations
    assert len(found) == 14
    for name, choices in lists.items():
        assert {repr(v[name]) for v in found} == {repr(choice) for choice in choices}, name
    assert all(("y" in values) == (values["numbers and a bool"] is True) for values in found)
