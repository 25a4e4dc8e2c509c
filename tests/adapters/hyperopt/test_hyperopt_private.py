"""Fails loudly when Hyperopt changes what ``_private`` relies on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import _private
from hyperopt import JOB_STATE_DONE, JOB_STATE_ERROR, Trials, fmin, hp, rand


def test_trials_that_raised_are_listed() -> None:
    trials = Trials()

    def objective(x: float) -> float:
        if len(trials.trials) == 2:
            raise RuntimeError("on purpose")
        return x

    with pytest.raises(RuntimeError):
        fmin(
            objective,
            hp.uniform("x", 0, 1),
            algo=rand.suggest,
            max_evals=5,
            trials=trials,
            rstate=np.random.default_rng(0),
            show_progressbar=False,
        )
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
