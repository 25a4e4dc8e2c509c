"""What is between a study and a proposer: the order of rows, lost trials, errors, leftovers."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

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
    seeded_sampler,
)
from automl_plugins.adapters.optuna._study import StudyReader
from automl_plugins.adapters.optuna.proposer_sampler import ProposerSampler
from automl_plugins.adapters.optuna.trials import read_trial
from objectives import bowl, branches, earlier, params, search
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.samplers import RandomSampler
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial, TrialState
from storages import ReusingStorage, storage_in

from automl_plugins.proposers.proposal import SurrogateFailure


def numbers(memory: StudyReader, study: optuna.Study, trial: FrozenTrial) -> list[int]:
    return [row.number for row in memory.view(study, trial).columns]


def new_trial(study: optuna.Study) -> FrozenTrial:
    return study._storage.get_trial(study.ask()._trial_id)


def test_rows_stand_in_the_order_in_which_their_trials_finished() -> None:
    study = optuna.create_study(sampler=RandomSampler(seed=0))
    asked = [study.ask() for _ in range(4)]
    for number in (2, 0, 3, 1):
        study.tell(asked[number], bowl(asked[number]))
    memory = StudyReader(study, None, {}, {})
    assert numbers(memory, study, new_trial(study)) == [2, 0, 3, 1]


def test_one_object_of_a_study_may_ask_and_another_tell(tmp_path: Path) -> None:
    for sampler in (GBQRSampler(seed=0), BanditSampler("a", inner=RandomSampler(seed=0), seed=0)):
        name = type(sampler).__name__
        stored = storage_in(tmp_path, "sqlite")
        asking = optuna.create_study(storage=stored, study_name=name, sampler=sampler)
        trial = asking.ask()
        trial.suggest_categorical("a", ["b", "c"])
        value = trial.suggest_float("x", 0, 1)
        other = storage_in(tmp_path, "sqlite")
        telling = optuna.load_study(storage=other, study_name=name, sampler=sampler)
        telling.tell(trial.number, value)
        assert _private.read_overhead(telling.trials[0]) > 0.0


def test_trials_that_another_process_tells_are_not_kept_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(seeded_sampler, "_MAX_TRIALS", 3)
    storage = optuna.storages.InMemoryStorage()
    for i, sampler in enumerate((GBQRSampler(seed=0), BanditSampler("a", seed=0))):
        study = optuna.create_study(storage=storage, study_name=f"{i}", sampler=sampler)
        theirs = optuna.load_study(
            storage=storage, study_name=f"{i}", sampler=RandomSampler(seed=0)
        )
        for _ in range(6):
            trial = study.ask()
            trial.suggest_categorical("a", ["b", "c"])
            theirs.tell(trial.number, trial.suggest_float("x", 0, 1))
        kept = [len(c) for c in vars(sampler).values() if isinstance(c, seeded_sampler.Cache)]
        assert max(kept) == 3


def test_intermediate_values_are_losses() -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        for step in range(3):
            trial.report(x + step, step)
        if trial.number == 2:
            raise optuna.TrialPruned
        return x + 3

    study = optuna.create_study(direction="maximize", sampler=RandomSampler(seed=0))
    study.optimize(objective, n_trials=3)
    reader = StudyReader(study, None, {}, {})
    view = reader.view(study, new_trial(study))
    history = reader.history(view, reader.space(view, {}))
    x = np.array([trial.params["x"] for trial in study.trials[:3]])
    expected = [{step: -(at + step) for step in range(3)} for at in x]
    assert history.curves[:3].tolist() == expected
    assert history.losses[:3] == pytest.approx([-x[0] - 3, -x[1] - 3, -x[2] - 2])
    assert history.budget[2] == 2.0


def test_trials_that_never_asked_for_values_are_dead_after_a_minute() -> None:
    study = search(RandomSampler(seed=0), bowl, 3)
    asking, dead, published = (new_trial(study) for _ in range(3))
    _private.write_proposal(study, published, {"x": 0.5})
    new = new_trial(study)
    assert new.datetime_start is not None
    for trial, seconds in ((dead, 61.0), (published, 3600.0), (asking, 59.0)):
        stored = study.get_trials(deepcopy=False)[trial.number]
        stored.datetime_start = new.datetime_start - timedelta(seconds=seconds)
    view = StudyReader(study, None, {}, {}).view(study, new)
    assert [row.number for row in view.running] == [asking.number, published.number]


def test_a_trial_that_is_read_late_takes_its_place_among_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = search(RandomSampler(seed=0), bowl, 3)
    new = new_trial(study)
    trials = study.get_trials()[:3]
    late = optuna.trial.create_trial(state=TrialState.RUNNING)
    late.number = 1
    seen = [trials[0], late, trials[2]]
    monkeypatch.setattr(study, "get_trials", lambda deepcopy=True: seen)
    memory = StudyReader(study, None, {}, {})
    assert numbers(memory, study, new) == [0, 2]
    seen[1] = trials[1]  # another worker finished it before trial 2; its storage shows it now
    assert numbers(memory, study, new) == [0, 1, 2]


def test_trials_that_a_storage_lost_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    study = search(RandomSampler(seed=0), bowl, 5)
    new = new_trial(study)
    trials = study.get_trials()[:5]
    seen = trials[:4]
    monkeypatch.setattr(study, "get_trials", lambda deepcopy=True: seen)
    memory = StudyReader(study, None, {}, {})
    assert numbers(memory, study, new) == [0, 1, 2, 3]
    seen[2:] = [trials[3]]  # one is gone
    assert numbers(memory, study, new) == [0, 1, 3]
    seen[2:] = [trials[2], trials[4]]  # it is there again, and another one has its place
    assert numbers(memory, study, new) == [0, 1, 2, 4]


MADE_AGAIN = {
    "gbqr": lambda: GBQRSampler(seed=0),
    "auto": lambda: AutoSampler(seed=0, memory=None),
    "bandit": lambda: BanditSampler("kind", inner=GBQRSampler, seed=0),
    "bandit of a copy": lambda: BanditSampler("kind", inner=GBQRSampler(seed=1), seed=0),
    "boasf": lambda: BOASFSampler("kind", n_trials=24, seed=0),
    "cells": lambda: BOASFSampler(split=2, n_trials=24, inner=RandomSampler, seed=0),
}


@pytest.mark.parametrize("n_added", [0, 12])
@pytest.mark.parametrize("make", MADE_AGAIN.values(), ids=MADE_AGAIN)
def test_a_study_made_again_in_the_place_of_a_deleted_one_is_another(
    make: Any, n_added: int
) -> None:
    storage = ReusingStorage()

    def run(sampler: Any, kinds: list[str], best: float, n: int) -> optuna.Study:
        kind, x = CategoricalDistribution(kinds), FloatDistribution(0, 1)

        def objective(trial: optuna.Trial) -> float:
            trial.suggest_categorical("kind", kinds)
            return abs(trial.suggest_float("x", 0, 1) - best)

        study = optuna.create_study(study_name="s", storage=storage, sampler=sampler)
        for i in range(n):
            at = i * 0.618 % 1
            study.add_trial(
                optuna.create_trial(
                    params={"kind": kinds[i % len(kinds)], "x": at},
                    distributions={"kind": kind, "x": x},
                    value=abs(at - best),
                )
            )
        study.optimize(objective, n_trials=4)
        return study

    used = make()
    first = run(used, ["a", "b"], 0.1, 8)
    found = []
    for sampler in (used, make()):
        optuna.delete_study(study_name="s", storage=storage)
        second = run(sampler, ["c", "d", "e"], 0.9, n_added)
        assert second._study_id == first._study_id
        found.append(params(second))
    assert found[0] == found[1]


class Mistaken:
    """A proposer with a mistake in its code."""

    def propose(self, *_: Any) -> Any:
        raise KeyError("a mistake")


def test_a_mistake_in_the_code_is_no_failure_of_a_surrogate() -> None:
    with pytest.raises(KeyError, match="a mistake"):
        search(ProposerSampler(Mistaken(), seed=0), bowl, 3)


def labelled(trial: optuna.Trial) -> float:
    return bowl(trial) + (trial.suggest_categorical("label", ["a", "b"]) == "a")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AutoSampler(cost="secnds", seed=0), "cost='secnds'"),
        (lambda: AutoSampler(cost=lambda trial: "5 s", seed=0), "gave '5 s'"),
        (lambda: BOASFSampler(arm="lable", n_trials=9, seed=0), "Did you mean arm='label'"),
        (lambda: GBQRSampler(ordinal={"label": ["a", "c"]}, seed=0), "must list each choice"),
        (
            lambda: optuna.samplers.PartialFixedSampler({"x": 0.5}, AutoSampler(cost="secnds")),
            "cost='secnds'",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_setting_that_does_not_fit_the_study_ends_the_search_in_spite_of_catch(
    make: Any, message: str
) -> None:
    study = optuna.create_study(sampler=make())
    with pytest.raises(ValueError, match=message):
        study.optimize(labelled, n_trials=9, catch=(Exception,))
    assert [t.state.name for t in study.trials] == ["COMPLETE", "FAIL", "FAIL"]
    with pytest.raises(ValueError, match=message):  # whoever does not catch it gets it at once
        study.optimize(labelled, n_trials=9)
    assert study.trials[-1].state == TrialState.FAIL


def test_arms_of_a_number_end_the_search_in_spite_of_catch() -> None:
    study = optuna.create_study(sampler=BOASFSampler(arm="x", n_trials=9, seed=0))
    with pytest.raises(ValueError, match="arm='x' names a parameter with FloatDistribution"):
        study.optimize(labelled, n_trials=9, catch=(Exception,))
    assert [t.state.name for t in study.trials] == ["FAIL", "FAIL"]
    study.optimize(lambda t: t.suggest_categorical("x", [1, 2]), n_trials=2)  # mended meanwhile
    assert study.trials[-1].state == TrialState.COMPLETE


@pytest.mark.parametrize(
    "inner", [GBQRSampler(ordinal={"x": [1]}), partial(GBQRSampler, ordinal={"x": [1]})]
)
def test_a_setting_of_the_sampler_inside_the_arms_ends_the_search_in_spite_of_catch(
    inner: Any,
) -> None:
    study = optuna.create_study(sampler=BanditSampler(arm="label", inner=inner, seed=0))
    with pytest.raises(ValueError, match="ordinal names 'x', which is not categorical"):
        study.optimize(labelled, n_trials=9, catch=(Exception,))
    assert [t.state.name for t in study.trials][-2:] == ["FAIL", "FAIL"]


def test_several_objectives_end_the_search_in_spite_of_catch() -> None:
    study = optuna.create_study(directions=["minimize"] * 2, sampler=AutoSampler(seed=0))
    with pytest.raises(ValueError, match="optimises one objective"):
        study.optimize(lambda trial: (bowl(trial), 0.0), n_trials=9, catch=(Exception,))
    assert [t.state.name for t in study.trials] == ["FAIL", "FAIL"]


def test_an_error_of_one_proposal_fails_one_trial() -> None:
    errors = [SurrogateFailure("again"), SurrogateFailure("on purpose"), ValueError("a mistake")]

    class Once:
        def propose(self, *_: Any) -> Any:
            raise errors.pop()

    study = search(ProposerSampler(Once(), seed=0), bowl, 4, catch=(Exception,))
    assert [t.state.name for t in study.trials] == ["COMPLETE", "FAIL", "COMPLETE", "COMPLETE"]


def test_a_setting_that_fits_by_now_is_taken() -> None:
    def costly(trial: optuna.Trial) -> float:
        trial.set_user_attr("secs", 1.0)
        return bowl(trial)

    study = search(AutoSampler(cost="secs", seed=0), bowl, 1)
    with pytest.raises(ValueError, match="no complete trial"):
        study.optimize(costly, n_trials=1)
    frozen = optuna.create_trial(value=1.0, user_attrs={"secs": 2.0})
    study.add_trial(frozen)
    study.optimize(costly, n_trials=2)
    assert study.trials[-1].state == TrialState.COMPLETE


class Failing:
    """A proposer that never proposes."""

    def propose(self, *args: Any, **kwargs: Any) -> Any:
        raise SurrogateFailure("on purpose")


def test_independent_categories_are_drawn_by_name_and_by_number() -> None:
    names = [f"c{i}" for i in range(6)]

    def objective(trial: optuna.Trial) -> float:
        return float(sum(map(ord, (trial.suggest_categorical(name, "abcd") for name in names))))

    sampler = ProposerSampler(Failing(), warn_independent_sampling=False, seed=0)
    found = params(search(sampler, objective, 16))
    drawn = np.array([["abcd".index(values[name]) for name in names] for values in found])
    assert len(set(drawn[0].tolist())) > 1  # names differ within a trial
    blocks = drawn.reshape(4, 4, 6)  # every choice once in four trials
    assert (np.sort(blocks, axis=1) == np.arange(4)[:, None]).all()
    assert not (blocks == blocks[0]).all()  # and in another order each time


@pytest.mark.parametrize("running", [0, 2, 3])
def test_the_usual_one_of_numbers_comes_first(running: int) -> None:
    choices: dict[str, list[Any]] = {
        "a": [7, 3, 9, 5],
        "b": [0.1, 1.0, 10.0, 100.0],
        "c": ["x", 4, 4.0, "y", 9],
        "no limit": [3, 5, None, 7],
    }
    sampler = ProposerSampler(Failing(), warn_independent_sampling=False, seed=0)
    study = optuna.create_study(sampler=sampler)
    trials = [study.ask() for _ in range(1 + running)]
    found = [{n: trial.suggest_categorical(n, c) for n, c in choices.items()} for trial in trials]
    assert found[0] == {"a": 5, "b": 1.0, "c": 4, "no limit": None}
    assert all(values["a"] != 5 for values in found[1:])  # the others in turn
    study.tell(trials[0], 0.0)
    later = {study.ask().suggest_categorical("a", choices["a"]) for _ in range(3 - running)}
    assert {5, *(values["a"] for values in found[1:]), *later} == {3, 5, 7, 9}


@pytest.mark.parametrize("failing", [False, True])
def test_nothing_is_kept_of_a_trial_that_has_finished(failing: bool) -> None:
    def objective(trial: optuna.Trial) -> float:
        return branches(trial) / (not failing)

    sampler = TSTSampler(earlier(), seed=0)
    study = search(sampler, objective, 3, catch=ZeroDivisionError)
    assert len(study.trials) == 3
    kept = (
        sampler._asked,
        sampler._unawaited,
        sampler._overheads,
        sampler._refused,
    )
    assert not any(kept), kept


class Unwritten(InMemoryStorage):
    """A storage in which the sampler's own seconds cannot be written."""

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        if key.endswith("overhead"):
            raise RuntimeError("transient")
        super().set_trial_system_attr(trial_id, key, value)


@pytest.mark.parametrize("make", [GBQRSampler, partial(BanditSampler, "kind")])
def test_seconds_that_cannot_be_stored_end_no_search(make: Any, log: Any) -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.suggest_categorical("kind", ["a", "b"])
        return trial.suggest_float("x", 0, 1) / (trial.number != 3)

    study = search(make(seed=0), objective, 6, catch=ZeroDivisionError, storage=Unwritten())
    states = [TrialState.FAIL if i == 3 else TrialState.COMPLETE for i in range(6)]
    assert [trial.state for trial in study.trials] == states
    assert sum("could not be stored" in record.message for record in log.records) == 1
    seconds = [read_trial(trial, maximize=False).seconds for trial in study.trials]
    for trial, known in zip(study.trials, seconds, strict=True):
        # As the one that failed looks like one that Optuna failed as stale, its time is unknown.
        assert trial.duration is not None
        assert known == trial.duration.total_seconds() or (trial.number == 3 and np.isnan(known))


@pytest.mark.filterwarnings("ignore:the 'timedelta' type")  # of the duration
def test_tables_of_trials_can_be_counted_and_stored() -> None:
    """As the FAQ says."""
    study = optuna.create_study(sampler=GBQRSampler(n_startup_trials=3))
    study.enqueue_trial({"x": 0.5})
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=6)
    df = study.trials_dataframe()
    with pytest.raises(TypeError, match="unhashable type: 'dict'"):
        df.nunique()
    text = df.map(lambda value: json.dumps(value) if isinstance(value, dict) else value)
    for frame in (text, study.trials_dataframe(attrs=("number", "value", "params", "state"))):
        assert frame.nunique()["number"] == len(frame.drop_duplicates()) == 6
        with closing(sqlite3.connect(":memory:")) as database:
            assert frame.to_sql("trials", database) == 6
