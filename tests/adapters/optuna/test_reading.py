"""Optuna studies and storages read as searches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters.optuna import curves, owns
from ConfigSpace import Categorical, Float, InCondition, Integer, OrdinalHyperparameter
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.storages import InMemoryStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState
from pandas.testing import assert_frame_equal

from automl_plugins.replay import Search, Table, TrialStatus, replay, search_frame

NAN = math.nan
START = datetime(2024, 2, 28, 23, 59)


def trial_of(
    begin: float,
    end: float,
    value: float | None = None,
    params: Mapping[str, Any] | None = None,
    distributions: Mapping[str, BaseDistribution] | None = None,
    state: TrialState = TrialState.COMPLETE,
    reports: Mapping[int, float] | None = None,
) -> FrozenTrial:
    """A finished trial from ``begin`` to ``end`` seconds after ``START``."""
    finished = state.is_finished()
    return FrozenTrial(
        number=-1,
        state=state,
        value=value,
        datetime_start=None if state == TrialState.WAITING else START + timedelta(seconds=begin),
        datetime_complete=START + timedelta(seconds=end) if finished else None,
        params=dict(params or {}),
        distributions=dict(distributions or {}),
        user_attrs={},
        system_attrs={},
        intermediate_values=dict(reports or {}),
        trial_id=-1,
    )


def study_of(trials: Sequence[FrozenTrial], name: str = "t/m", **arguments: Any) -> Study:
    study = optuna.create_study(study_name=name, **arguments)
    study.add_trials(trials)
    return study


def read(trials: Sequence[FrozenTrial], **arguments: Any) -> Search:
    search: Search
    (search,) = curves(study_of(trials, **arguments))
    return search


# --- trials ---------------------------------------------------------------------------------


def test_trials_by_hand() -> None:
    x = {"x": FloatDistribution(0, 1)}
    search = read(
        [
            trial_of(10, 14, 3.0, {"x": 0.5}, x),
            trial_of(11, 12, 5.0, {"x": 0.25}, x),
            trial_of(12, 13.5, None, {"x": 1.0}, x, TrialState.PRUNED, {1: 9.0, 4: 7.0}),
            trial_of(20, 26, None, {"x": 0.0}, x, TrialState.FAIL),
            trial_of(30, 30, 1.0, {"x": 0.75}, x, reports={2: 6.0, 1: 8.0}),
        ]
    )
    complete, pruned, failed = TrialStatus.COMPLETE, TrialStatus.PRUNED, TrialStatus.FAILED
    # In the order of finishing; a trial that took no time at all was added, not run.
    expected = [
        ({"x": 0.25}, complete, 5.0, 1.0, 2.0, {}),
        ({"x": 1.0}, pruned, 7.0, 1.5, 3.5, {1.0: 9.0, 4.0: 7.0}),
        ({"x": 0.5}, complete, 3.0, 4.0, 4.0, {}),
        ({"x": 0.0}, failed, NAN, 6.0, 16.0, {}),
        ({"x": 0.75}, complete, 1.0, NAN, 20.0, {1.0: 8.0, 2.0: 6.0}),
    ]
    found = [(t.config, t.status, t.loss, t.seconds, t.finished, t.curve) for t in search.trials]
    assert repr(found) == repr(expected)  # NaN is not equal to itself
    assert search.left_out == ()
    frame = search_frame([search])
    np.testing.assert_array_equal(frame["seconds"], [2, 3.5, 4, 16, 20])
    np.testing.assert_array_equal(frame["loss"], [5, 7, 3, NAN, 1])
    np.testing.assert_array_equal(frame["best"], [5, 5, 3, 3, 1])
    assert frame["trial"].tolist() == [1, 2, 3, 4, 5]
    assert frame["status"].tolist() == ["complete", "pruned", "complete", "failed", "complete"]


def test_losses_of_a_maximising_study_change_sign() -> None:
    search = read(
        [
            trial_of(0, 1, 3.0, reports={1: 2.0}),
            trial_of(1, 2, None, state=TrialState.PRUNED, reports={1: -4.0}),
            trial_of(2, 3, 5.0),
        ],
        direction="maximize",
    )
    assert [t.loss for t in search.trials] == [-3.0, 4.0, -5.0]
    assert [dict(t.curve) for t in search.trials] == [{1.0: -2.0}, {1.0: 4.0}, {}]
    assert search_frame([search])["best"].tolist() == [-3.0, -3.0, -5.0]


def test_a_pruned_trial_without_a_report_has_no_loss() -> None:
    search = read([trial_of(0, 1, state=TrialState.PRUNED)])
    assert math.isnan(search.trials[0].loss)


def test_trials_under_way_are_left_out_and_named() -> None:
    study = study_of([trial_of(0, 1, 3.0)], "t/m/2")
    study.ask()
    study.ask()
    study.enqueue_trial({"x": 0.5})
    (search,) = curves(study)
    assert len(search.trials) == 1
    assert search.left_out == (
        "Study 't/m/2': 2 running trials left out.",
        "Study 't/m/2': 1 waiting trial left out.",
    )


def test_an_empty_study_is_an_empty_search() -> None:
    search = read([])
    assert (list(search.trials), search.space, search.left_out) == ([], None, ())


# --- labels ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "attributes", "arguments", "expected"),
    [
        ("iris/tpe/7", {}, {}, ("iris", "tpe", 7)),
        ("iris/tpe", {}, {}, ("iris", "tpe", 0)),
        ("s", {"table": "iris", "method": "tpe", "seed": 3}, {}, ("iris", "tpe", 3)),
        ("s", {"table": "iris"}, {"method": "tpe", "seed": 0}, ("iris", "tpe", 0)),
        ("s", {}, {"table": "iris", "method": "tpe"}, ("iris", "tpe", 0)),
        # Arguments before attributes before the name.
        ("a/b/1", {"table": "c", "seed": 2}, {"seed": 5}, ("c", "b", 5)),
        ("a/b/1", {"seed": 2}, {"table": "", "method": ""}, ("", "", 2)),
        ("a/b/1", {}, {"seed": 0}, ("a", "b", 0)),
        ("iris/tpe/007", {}, {}, ("iris", "tpe", 7)),
    ],
)
def test_labels_come_from_arguments_attributes_and_name(
    name: str,
    attributes: dict[str, Any],
    arguments: dict[str, Any],
    expected: tuple[str, str, int],
) -> None:
    study = study_of([], name)
    for key, value in attributes.items():
        study.set_user_attr(key, value)
    (search,) = curves(study, **arguments)
    assert (search.table, search.method, search.seed) == expected


def test_a_study_that_does_not_say_what_was_tuned_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'s' does not say its table and method: name it '<tab"):
        curves(study_of([], "s"))
    with pytest.raises(ValueError, match=r"does not say its method: name it"):
        curves(study_of([], "s"), table="iris")
    with pytest.raises(ValueError, match=r"the seed 'x' is no whole number"):
        curves(study_of([], "a/b/x"))


def test_a_study_of_two_objectives_is_refused() -> None:
    study = optuna.create_study(study_name="a/b", directions=["minimize", "maximize"])
    with pytest.raises(ValueError, match="'a/b' has 2 objectives; a search has one"):
        curves(study)


# --- sources --------------------------------------------------------------------------------


def fill(storage: Any) -> None:
    for name in ("iris/tpe/1", "iris/random/1", "digits/tpe/0"):
        study = optuna.create_study(
            study_name=name, storage=storage, sampler=optuna.samplers.RandomSampler(seed=0)
        )
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)


def check(searches: Sequence[Search]) -> None:
    assert [(s.table, s.method, s.seed) for s in searches] == [
        ("digits", "tpe", 0),
        ("iris", "random", 1),
        ("iris", "tpe", 1),
    ]
    for search in searches:
        assert [t.loss for t in search.trials] == [t.config["x"] for t in search.trials]
        assert len(search.trials) == 3
        assert search.space is not None
        assert search.space["x"] == Float("x", (0.0, 1.0))


def test_all_studies_of_a_storage_are_read() -> None:
    storage = InMemoryStorage()
    fill(storage)
    check(curves(storage))


def test_all_studies_of_a_database_are_read(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'studies.db'}"
    storage = optuna.storages.RDBStorage(address)
    fill(storage)
    storage.engine.dispose()
    assert owns(address)
    check(curves(address))


def test_all_studies_of_a_journal_are_read(tmp_path: Path) -> None:
    path = str(tmp_path / "studies.log")
    assert not owns(path)
    fill(JournalStorage(JournalFileBackend(path)))
    assert owns(path)
    check(curves(path))


def test_other_files_are_not_ours(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").touch()
    assert not owns(str(tmp_path / "runs.csv"))
    assert not owns(str(tmp_path))


# --- the space ------------------------------------------------------------------------------


def space_of(distributions: Mapping[str, BaseDistribution], rows: Sequence[Any]) -> Any:
    trials = [
        trial_of(i, i + 1, 1.0, row, {name: distributions[name] for name in row})
        for i, row in enumerate(rows)
    ]
    return read(trials).space


def test_distributions_become_hyperparameters() -> None:
    distributions = {
        "x": FloatDistribution(-1, 2),
        "rate": FloatDistribution(1e-3, 1, log=True),
        "n": IntDistribution(1, 9),
        "wide": IntDistribution(1, 1024, log=True),
        "kind": CategoricalDistribution(("b", "a")),
        "even": IntDistribution(2, 8, step=2),
        "quarters": FloatDistribution(0, 1, step=0.25),
    }
    row = {"x": 0, "rate": 0.5, "n": 3, "wide": 5, "kind": "a", "even": 4, "quarters": 0.5}
    space = space_of(distributions, [row])
    assert dict(space) == {
        "x": Float("x", (-1.0, 2.0)),
        "rate": Float("rate", (1e-3, 1.0), log=True),
        "n": Integer("n", (1, 9)),
        "wide": Integer("wide", (1, 1024), log=True),
        "kind": Categorical("kind", ["b", "a"]),
        "even": OrdinalHyperparameter("even", [2, 4, 6, 8]),
        "quarters": OrdinalHyperparameter("quarters", [0.0, 0.25, 0.5, 0.75, 1.0]),
    }


def test_a_step_of_one_between_real_numbers_is_a_grid_too() -> None:
    space = space_of({"x": FloatDistribution(0, 4, step=1.0)}, [{"x": 2.0}])
    assert space["x"] == OrdinalHyperparameter("x", [0.0, 1.0, 2.0, 3.0, 4.0])


def test_a_grid_of_very_many_values_counts_as_continuous() -> None:
    space = space_of({"x": FloatDistribution(0, 1, step=1e-4)}, [{"x": 0.5}])
    assert space["x"] == Float("x", (0.0, 1.0))


def test_conditions_of_a_space_are_inferred() -> None:
    distributions = {
        "kernel": CategoricalDistribution(("linear", "poly", "rbf")),
        "gamma": FloatDistribution(0, 1),
        "degree": IntDistribution(2, 5),
    }
    rows = [
        {"kernel": "linear"},
        {"kernel": "rbf", "gamma": 0.5},
        {"kernel": "poly", "gamma": 0.1, "degree": 3},
    ]
    conditions = {c.child.name: c for c in space_of(distributions, rows).conditions}
    assert conditions.keys() == {"gamma", "degree"}
    assert all(isinstance(c, InCondition) for c in conditions.values())
    assert set(conditions["gamma"].values) == {"poly", "rbf"}
    assert list(conditions["degree"].values) == ["poly"]


def test_values_on_a_grid_of_tenths_are_found_in_their_table() -> None:
    def objective(trial: optuna.Trial) -> float:
        return trial.suggest_float("x", 0, 1, step=0.1) + trial.suggest_float("y", -1, 2, step=0.3)

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=60)
    table = Table.from_studies(study, name="t")
    for trial in study.trials:
        assert table.find(trial.params).distance == 0


def test_values_that_a_user_enqueued_on_such_a_grid_are_legal() -> None:
    study = optuna.create_study(study_name="t/m")
    study.enqueue_trial({"x": 0.3})  # the grid's own value is 0.30000000000000004
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1, step=0.1), n_trials=3)
    assert len(Table.from_studies(study, name="t", repeats="mean")) >= 1


def test_choices_that_configspace_cannot_express_leave_no_space() -> None:
    space = space_of({"k": CategoricalDistribution((None, 1))}, [{"k": 1}])
    assert space is None or set(space["k"].choices) == {None, 1}


def test_a_single_value_does_not_lose_the_space() -> None:
    distributions = {"one": IntDistribution(3, 3), "rate": FloatDistribution(1e-3, 1, log=True)}
    space = space_of(distributions, [{"one": 3, "rate": 0.5}])
    assert space is not None
    assert space["rate"] == Float("rate", (1e-3, 1.0), log=True)
    assert space["one"].size == 1


# --- there and back -------------------------------------------------------------------------


def test_the_study_of_a_replay_reads_as_the_replay_itself() -> None:
    x = {"n": IntDistribution(0, 9)}
    trials = [trial_of(i, i + 1, float((i * 7) % 10), {"n": i}, x) for i in range(10)]
    table = Table.from_studies(study_of(trials), name="t")
    studies: list[Study] = []

    class Keeping(optuna.samplers.RandomSampler):
        def after_trial(self, study: Study, *_: Any) -> None:
            studies[:] = [study]

    frame = replay({"Keeping": Keeping}, table, budget=8, n_workers=2, seed=3, progress=False)
    (search,) = curves(studies[0], table="t", method="Keeping", seed=3)
    ours = search_frame([search])
    assert_frame_equal(ours, frame[list(ours.columns)])
