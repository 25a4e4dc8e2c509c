"""Fails loudly when Hyperopt changes what ``_private`` relies on."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from automl_plugins.adapters.hyperopt import _private
from hyperopt import JOB_STATE_DONE, JOB_STATE_ERROR, Trials, hp, rand
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
