"""Ranges that depend on other parameters are searched by the position of the range."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import optuna
import pytest
from automl_plugins.adapters.optuna import (
    AutoSampler,
    BanditSampler,
    BOASFSampler,
    GBQRSampler,
    TSTSampler,
    _private,
    explain,
    meta_dataset_from_studies,
    record,
)
from automl_plugins.adapters.optuna._study import StudyReader, mark_spent
from automl_plugins.adapters.optuna._union import POSITION, position_of, positions_in, value_at
from automl_plugins.adapters.optuna.proposer_sampler import _Asked
from automl_plugins.adapters.optuna.trials import StudyColumns, read_trial
from objectives import Objective, search
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, PartialFixedSampler, RandomSampler
from optuna.trial import FrozenTrial, TrialState, create_trial

from automl_plugins.meta import MetaStore
from automl_plugins.proposers.proposal import Repeats


def dependent(trial: optuna.Trial) -> float:
    """Best at first=20, second=3; at random the median of the best of 40 is 0.5."""
    first = trial.suggest_int("first", 1, 50)
    second = trial.suggest_int("second", 1, first)
    return (first - 20) ** 2 / 100 + (second - 3) ** 2 / 10


def branches(trial: optuna.Trial) -> float:
    """One name in two branches, with ranges that do not overlap; best at 2.1."""
    kind = trial.suggest_categorical("kind", ["a", "b"])
    low, best = (0.0, 0.9) if kind == "a" else (2.0, 2.1)
    return abs(trial.suggest_float("x", low, low + 1.0) - best) + 0.1 * (kind == "a")


@pytest.mark.slow
@pytest.mark.parametrize("make", [AutoSampler, GBQRSampler])
def test_what_depends_on_a_range_is_learned(make: Callable[..., BaseSampler]) -> None:
    studies = [search(make(seed=seed), dependent, 40) for seed in range(3)]
    assert np.median([study.best_value for study in studies]) < 0.1
    for study in studies:
        assert len({tuple(trial.params.values()) for trial in study.trials}) >= 34


def test_models_learn_from_the_position_that_was_proposed() -> None:
    """If it gives the value: an enqueued trial has another one. Of 1 to 2, 0.9 gives 2."""
    trial = read_trial(
        create_trial(value=1.0, params={"m": 2}, distributions={"m": IntDistribution(1, 2)}),
        maximize=False,
    )
    for proposed, found in (({"m": 0.9}, 0.9), ({"m": 0.1}, 1.0), ({}, 1.0)):
        assert positions_in(replace(trial, positions=proposed), {"m"}) == {"m": found}
    alone = replace(trial, values={}, distributions={}, constants={"m": 1.0})
    assert positions_in(replace(alone, positions={"m": 0.9}), {"m"}) == {"m": 0.9}


@pytest.mark.parametrize("make", [AutoSampler, GBQRSampler])
def test_a_small_range_that_moves_is_tried_once(make: Callable[..., BaseSampler]) -> None:
    """Where first is 1, second has one value, and any position in its range gives this value."""

    def small(trial: optuna.Trial) -> float:
        first = trial.suggest_int("first", 1, 9)
        second = trial.suggest_int("second", 1, first)
        return first + second + 0.1 * len(trial.suggest_categorical("kind", ["", "a", "ab"]))

    study = search(make(seed=0), small, 30)
    assert len({tuple(trial.params.items()) for trial in study.trials}) == 30


@pytest.mark.slow
def test_a_name_may_have_another_range_in_each_branch() -> None:
    bests = [search(AutoSampler(seed=seed), branches, 40).best_value for seed in range(3)]
    assert np.median(bests) < 0.01


def test_only_the_first_trials_are_sampled_independently(log: pytest.LogCaptureFixture) -> None:
    study = search(GBQRSampler(seed=1), dependent, 30)
    warned = [r.message for r in log.records if "is sampled independently" in r.message]
    assert 0 < len(warned) <= 4 and all("'second'" in message for message in warned)
    assert all(explain(trial).independent == () for trial in study.trials[8:])
    log.clear()
    search(GBQRSampler(seed=1, warn_independent_sampling=False), dependent, 10)
    assert "is sampled independently" not in log.text


@pytest.mark.parametrize(
    "distribution",
    [
        IntDistribution(3, 9),
        IntDistribution(2, 64, log=True),
        IntDistribution(0, 30, step=10),
        FloatDistribution(-1.0, 5.0),
        FloatDistribution(1e-4, 1e2, log=True),
        FloatDistribution(0.0, 1.0, step=0.25),
    ],
)
def test_positions_and_values_are_each_other_s_inverse(distribution: BaseDistribution) -> None:
    low, high = distribution.low, distribution.high  # type: ignore[attr-defined]
    assert value_at(distribution, 0.0) == pytest.approx(low, rel=1e-12)
    assert value_at(distribution, 1.0) == pytest.approx(high, rel=1e-12)
    for position in np.linspace(0, 1, 11):
        value = value_at(distribution, float(position))
        again = position_of(distribution, distribution.to_internal_repr(value))
        assert value_at(distribution, again) == pytest.approx(value, rel=1e-12)
        assert type(value) is type(low)
    middle = position_of(distribution, distribution.to_internal_repr(value_at(distribution, 0.5)))
    assert middle == pytest.approx(0.5, abs=0.2)


def test_a_value_that_is_taken_may_be_larger_than_64_bits() -> None:
    distribution = IntDistribution(0, 2**66, step=2**60)
    assert value_at(distribution, 0.5, taken={2.0**65}) == 2**65 + 2**60


def trial_of(number: int, **ranges: tuple[float, float]) -> FrozenTrial:
    distributions: dict[str, BaseDistribution] = {
        name: FloatDistribution(*ends) for name, ends in ranges.items()
    }
    return create_trial(
        value=float(number),
        params={name: ends[0] for name, ends in ranges.items()},
        distributions=distributions,
    )


def columns_of(*highs: float | None) -> StudyColumns:
    """Columns of trials with a parameter from 0 to each of these; None does not ask for it."""
    trials = [
        trial_of(i, **({} if high is None else {"x": (0, high)})) for i, high in enumerate(highs)
    ]
    columns = StudyColumns()
    for i, trial in enumerate(trials):
        trial.number = i
        columns = columns.extended([read_trial(trial, maximize=False)])
    whole = StudyColumns([read_trial(trial, maximize=False) for trial in trials])
    assert whole.moving == columns.moving
    return columns


def test_a_range_moves_if_it_changes_four_times_in_ten_trials() -> None:
    assert not columns_of(1, 1, 1, 1).moving
    assert not columns_of(1, 2, 3, 4).moving
    assert columns_of(1, 2, 3, 4, 5).moving == {"x"}
    assert columns_of(1, 2, 1, 2, 1).moving == {"x"}
    assert columns_of(1, None, 2, None, 1, None, 2, 0.0, 1).moving == {"x"}
    edited = [high for high in (1, 2, 3, 4, 5, 6) for _ in range(10)]
    assert not columns_of(*edited).moving
    within = [1, *[2] * 3, *[3] * 3, *[4] * 3, 5]
    assert columns_of(*within).moving
    assert not columns_of(*within[:-1], 4, 5).moving
    assert columns_of(1, 2, 3, 4, 5, *[5] * 50).moving  # once it has moved, it stays so


def test_rows_have_positions_of_each_trial_s_own_range() -> None:
    study = optuna.create_study()
    for high in (1, 2, 4, 8, 10):
        params = {"x": 1.0, "y": 3}
        study.add_trial(
            create_trial(
                value=0.0,
                params=params,
                distributions={
                    "x": FloatDistribution(0, high),
                    "y": IntDistribution(3, high // 5 + 3),
                },
            )
        )
    running = study.ask()
    _private.write_proposal(study, running._cached_frozen_trial, {"y": 3.0}, {"x": 0.3})
    reader = StudyReader(study, None, {}, {})
    view = reader.view(study, create_trial(state=TrialState.WAITING))
    assert view.columns.moving == {"x"} and view.distributions["x"] == POSITION
    union = reader.space(view, {})
    history = reader.history(view, union)
    positions = history.vectors[:, union.column["x"]]
    assert positions == pytest.approx([1.0, 0.5, 0.25, 0.125, 0.1, 0.3])
    # In the first trials y had one value, which counts: it is no value that is missing.
    y = history.vectors[:, union.column["y"]]
    assert not np.isnan(y).any() and not history.missing[:5].any()


def test_a_range_of_one_value_is_no_condition() -> None:
    """Where second is 1 of 1 to 1 it was asked for, so it does not depend on first."""
    study = search(GBQRSampler(seed=0), dependent, 12)
    study.enqueue_trial({"first": 1})
    study.optimize(dependent, n_trials=1)
    reader = StudyReader(study, None, {}, {})
    view = reader.view(study, create_trial(state=TrialState.WAITING))
    assert "second" not in study.trials[-1].distributions or study.trials[-1].params["second"] == 1
    union = reader.space(view, {})
    history = reader.history(view, union)
    assert history.vectors[-1, union.column["second"]] == 0.5
    assert not history.missing.any()


def test_positions_are_spent_once_all_values_of_the_range_were_tried() -> None:
    study = optuna.create_study()
    kinds = [IntDistribution(1, 2), IntDistribution(1, 4, log=True), FloatDistribution(0, 2)]
    tried: list[tuple[int, int, BaseDistribution, TrialState]] = [
        (6, 1, IntDistribution(1, 1), TrialState.COMPLETE),  # says since when it is asked for
        (3, 0, kinds[2], TrialState.COMPLETE),
        (0, 1, kinds[0], TrialState.COMPLETE),  # spent by the next one, of the same range
        (0, 2, kinds[0], TrialState.PRUNED),
        (1, 1, kinds[0], TrialState.COMPLETE),  # spent by the failed one
        (1, 2, kinds[0], TrialState.FAIL),
        *((2, value, kinds[1], TrialState.COMPLETE) for value in (1, 2, 3, 3)),  # 4 is left
        (3, 1, kinds[2], TrialState.COMPLETE),
        (4, 1, IntDistribution(1, 1), TrialState.COMPLETE),  # has one value
        (5, 1, kinds[0], TrialState.COMPLETE),  # 2 is left
    ]
    for first, value, kind, state in tried:
        study.add_trial(
            create_trial(
                state=state,
                value=0.0 if state == TrialState.COMPLETE else None,
                params={"first": first, "second": value},
                distributions={"first": IntDistribution(0, 9), "second": kind},
            )
        )
    reader = StudyReader(study, None, {}, {})
    view = reader.view(study, create_trial(state=TrialState.WAITING))
    assert view.columns.moving == {"second"}
    union = reader.space(view, {})
    marked = mark_spent(reader.history(view, union), view, union)
    rows = np.argsort(marked.number)
    spent = marked.missing[rows, union.column["second"]]
    assert np.flatnonzero(spent).tolist() == [2, 3, 4, 11]
    assert not marked.missing[:, union.column["first"]].any()
    # Rows with one value in their range count, though other trials were the first to have several.
    again = marked.vectors[rows[[0, 11]]] + [0.0, 0.1]
    repeats = Repeats(union.vectors, marked, 20)
    assert repeats.seen(again).tolist() == [False, False]
    assert repeats.among(again).tolist() == [False, True]


def test_a_thread_that_does_not_know_yet_that_a_range_moves() -> None:
    """It was told the newest range, and another thread has seen a change since."""
    study = optuna.create_study()
    for high in (1, 2, 4, 8, 10):
        study.add_trial(
            create_trial(
                value=0.0, params={"x": 1.0}, distributions={"x": FloatDistribution(0, high)}
            )
        )
    reader = StudyReader(study, None, {}, {})
    view = reader.view(study, create_trial(state=TrialState.WAITING))
    union = reader.space(view, {"x": FloatDistribution(0, 10)})
    assert not union.moving
    assert reader.history(view, union).vectors[:, 0] == pytest.approx([0.1] * 5)


def test_a_range_that_begins_to_move_is_no_parent_any_more() -> None:
    """Conditions were inferred from 64 trials, and are again after 66."""
    study = optuna.create_study()
    reader = StudyReader(study, None, {}, {})
    for i, high in enumerate([*[6] * 61, 7, 8, 9, 10]):
        params: dict[str, float] = {"n": i % 6 + 1}
        ranges: dict[str, BaseDistribution] = {"n": IntDistribution(1, high)}
        if i % 6 >= 3:
            params["c"], ranges["c"] = 0.5, FloatDistribution(0, 1)
        study.add_trial(create_trial(value=0.0, params=params, distributions=ranges))
        view = reader.view(study, create_trial(state=TrialState.WAITING))
        space = reader.space(view, {}).vectors.space
        if i >= 4:
            assert bool(space.conditional_hyperparameters) == (i < 64)
    assert view.columns.moving == {"n"}


def test_decided_values_are_kept() -> None:
    study = search(GBQRSampler(seed=0), dependent, 12)
    study.enqueue_trial({"second": 1, "first": 7})
    study.optimize(dependent, n_trials=1)
    assert study.trials[-1].params == {"first": 7, "second": 1}
    reader = StudyReader(study, None, {}, {})
    union = reader.space(reader.view(study, create_trial(state=TrialState.WAITING)), {})
    assert np.isnan(union.fixed({"second": 7})).all()  # its range is not known yet
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        study.sampler = PartialFixedSampler({"first": 30}, GBQRSampler(seed=0))
    study.optimize(dependent, n_trials=10)
    assert {trial.params["first"] for trial in study.trials[-10:]} == {30}
    assert len({trial.params["second"] for trial in study.trials[-10:]}) > 3


def test_values_of_a_range_are_tried_once() -> None:
    """Positions that differ little are the same integer."""

    def values(trial: optuna.Trial) -> tuple[int, int]:
        first = trial.suggest_int("first", 1, 40)
        return first, trial.suggest_int("second", first, first + 30)

    study = search(AutoSampler(seed=0), lambda t: float((values(t)[0] - 30) ** 2), 12)
    asked = [study.ask() for _ in range(10)]
    together = [values(trial) for trial in asked]
    assert len(set(together)) == 10
    json.dumps(together)  # builtins


def test_the_last_open_position_makes_a_configuration_that_is_new() -> None:
    """Both depend on first; the range of kind had one value when all this was tried."""
    study = optuna.create_study()
    ranges: dict[str, BaseDistribution] = {
        "first": IntDistribution(1, 9),
        "kind": IntDistribution(5, 5),
    }
    ranges |= {"second": IntDistribution(1, 3), "third": IntDistribution(1, 3)}
    tried = {"first": 3, "kind": 5, "second": 2, "third": 2}
    study.add_trial(create_trial(value=0.0, params=tried, distributions=ranges))
    study.enqueue_trial({"first": 3, "kind": 5, "second": 2, "third": 2})
    trial, sampler = study.ask(), GBQRSampler(seed=0)
    positions = {"second": 0.5, "third": 0.5}
    known = {"first": 3.0, "kind": 5.0}

    def value(name: str) -> int:
        _private.write_proposal(study, study.trials[-1], known, positions)
        asked = _Asked(moving=frozenset({name}), foretold={name: 0.5})
        return int(sampler._foretold(study, study.trials[-1], asked, name, IntDistribution(1, 3)))

    trial.suggest_int("first", 1, 9)
    trial.suggest_int("kind", 5, 6)
    assert value("second") == 2  # with another third it is new
    known["second"] = trial.suggest_int("second", 1, 3)
    assert value("third") == 3


@pytest.mark.parametrize("objective", [dependent, branches])
def test_all_values_of_a_range_that_moves_are_recorded(
    objective: Objective, tmp_path: Path
) -> None:
    """The range of the last trial does not hold those of others."""
    with MetaStore(tmp_path / "runs.db") as store:
        study = optuna.create_study(sampler=RandomSampler(seed=0))
        study.optimize(objective, n_trials=15, callbacks=[record(store, "t")])
        for dataset in (meta_dataset_from_studies(study), store.dataset()):
            runs = dataset.records()[0].configurations
            for run, trial in zip(runs, study.trials, strict=True):
                assert run == pytest.approx(trial.params)
            assert not dataset.coverage[0].clipped


def test_recorded_values_are_no_positions() -> None:
    """A one that was recorded would be the upper end of every range."""
    earlier = search(RandomSampler(seed=0), dependent, 12)
    sampler = TSTSampler(earlier, seed=0)
    study = search(sampler, dependent, 8)
    view = sampler._reader(study).view(study, create_trial(state=TrialState.WAITING))
    union = sampler._reader(study).space(view, {})
    assert union.moving == {"second"}
    assert sampler._sources is not None
    memory = sampler._sources.memory.on(union.vectors)
    np.testing.assert_array_equal(memory.vectors[:, union.column["second"]], 0.5)
    assert memory.coverage[0].unusable == {"second": 12} and not memory.coverage[0].clipped


@pytest.mark.slow
def test_with_a_memory_and_in_arms(log: pytest.LogCaptureFixture) -> None:
    def objective(trial: optuna.Trial) -> float:
        return trial.suggest_categorical("arm", ["a", "b"]) == "a" or dependent(trial)

    earlier = search(AutoSampler(seed=5), dependent, 20)
    for sampler in (AutoSampler(memory=earlier, seed=0), TSTSampler(earlier, seed=0)):
        assert search(sampler, dependent, 20).best_value < 2.0
    for sampler in (BanditSampler("arm", seed=0), BOASFSampler("arm", n_trials=25, seed=0)):
        assert len(search(sampler, objective, 25).trials) == 25
    assert "failed" not in log.text.lower()
