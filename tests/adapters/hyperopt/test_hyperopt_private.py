"""Fails loudly when Hyperopt changes what ``_private`` relies on."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from automl_plugins.adapters.hyperopt import _private
from hyperopt import JOB_STATE_DONE, JOB_STATE_ERROR, Domain, Trials, hp, rand
from hyperopt_database import DatabaseTrials, minimise_in_database, work
from hyperopt_runs import minimise


def test_trials_that_raised_are_listed() -> None:
    trials = Trials()

    def objective(x: float) -> float:
        if len(trials.trials) == 2:
            raise RuntimeError("on purpose")
        return x

    with pytest.raises(RuntimeError):
        minimise(objective, hp.uniform("x", 0, 1), rand.suggest, 5, trials=trials)
    states = [document["state"] for document in _private.all_documents(trials)]
    assert states == [JOB_STATE_DONE, JOB_STATE_ERROR]
    assert len(trials.trials) == 1  # why the private list is needed


def fail_below_a_half(x: float) -> float:
    if x < 0.5:
        raise RuntimeError("on purpose")
    return x


def test_trials_of_a_database_that_raised_are_listed() -> None:
    trials = minimise_in_database(fail_below_a_half, hp.uniform("x", 0, 1), rand.suggest, 12)
    documents = _private.all_documents(trials)
    assert [document["tid"] for document in documents] == list(range(12))
    raised = [document for document in documents if document["state"] == JOB_STATE_ERROR]
    assert all(document["misc"]["vals"]["x"][0] < 0.5 for document in raised)
    assert len(trials.trials) == 12 - len(raised) < 12  # why the database is asked


def test_a_trial_of_a_database_that_raised_is_fetched_once() -> None:
    space = hp.uniform("x", 0, 0.5)
    trials, domain = DatabaseTrials(), Domain(fail_below_a_half, space)
    jobs = trials.handle.jobs
    for _ in range(5):
        trials.insert_trial_docs(rand.suggest(trials.new_trial_ids(1), domain, trials, 0))
        trials.refresh()  # when it is new
        work(trials, domain)
    before, fetched = _private.all_documents(trials), jobs.n_fetched
    assert [document["state"] for document in before] == [JOB_STATE_ERROR] * 5
    again = _private.all_documents(trials)
    assert all(a is b for a, b in zip(before, again, strict=True)) and jobs.n_fetched == fetched
    jobs.stored[2]["version"] += 1
    changed = _private.all_documents(trials)
    assert [a is b for a, b in zip(before, changed, strict=True)] == [
        True,
        True,
        False,
        True,
        True,
    ]
    jobs.stored[2]["state"] = JOB_STATE_DONE  # by hand
    trials.refresh()
    assert [d["state"] for d in _private.all_documents(trials)].count(JOB_STATE_ERROR) == 4


def test_other_experiments_in_a_database_are_not_listed() -> None:
    space = hp.uniform("x", 0, 0.5)
    trials = minimise_in_database(fail_below_a_half, space, rand.suggest, 3, exp_key="mine")
    assert len(_private.all_documents(trials)) == 3
    assert len(_private.all_documents(DatabaseTrials(trials.handle))) == 3
    assert not _private.all_documents(DatabaseTrials(trials.handle, exp_key="other"))


def test_other_experiments_in_the_same_trials_are_not_listed() -> None:
    trials = Trials()
    documents: list[dict[str, Any]] = trials.new_trial_docs(
        [0, 1], [None] * 2, [{}] * 2, [{"tid": i, "cmd": None} for i in range(2)]
    )
    documents[1]["exp_key"] = "other"
    trials._insert_trial_docs(documents)
    assert _private.all_documents(trials) == documents
    assert _private.all_documents(trials.view("other")) == documents[1:]


def test_saved_trials_are_those_of_fmin(tmp_path: Path) -> None:
    trials = minimise(abs, hp.uniform("x", 0, 1), rand.suggest, 2)
    path = tmp_path / "trials.pkl"
    with open(path, "wb") as file:
        _private.dump(trials, file)
    # what fmin reads when trials=None
    for load in (importlib.import_module("hyperopt.fmin").pickler.load, _private.load):
        with open(path, "rb") as file:
            assert load(file).trials == trials.trials
