"""Fails loudly when Hyperopt changes what ``_private`` relies on."""

from __future__ import annotations

import importlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import _private
from hyperopt import (
    JOB_STATE_DONE,
    JOB_STATE_ERROR,
    Domain,
    Trials,
    fmin,
    hp,
    pyll,
    rand,
    tpe,
)
from hyperopt.base import Ctrl


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


def test_saved_trials_are_those_of_fmin(tmp_path: Path) -> None:
    trials = Trials()
    trials.insert_trial_docs(
        trials.new_trial_docs(
            [0], [None], [{"status": "ok", "loss": 1.0}], [{"tid": 0, "cmd": None} | _NO_VALUES]
        )
    )
    trials.refresh()
    with open(tmp_path / "trials.pkl", "wb") as file:
        _private.dump(trials, file)
    # what fmin reads when trials=None
    with open(tmp_path / "trials.pkl", "rb") as file:
        assert importlib.import_module("hyperopt.fmin").pickler.load(file).trials == trials.trials
    with open(tmp_path / "trials.pkl", "rb") as file:
        assert _private.load(file).trials == trials.trials


_NO_VALUES: dict[str, Any] = {"idxs": {}, "vals": {}}


# --- what is public but written down nowhere ----------------------------------------------


def test_choices_are_switches_on_a_labelled_index() -> None:
    space = pyll.as_apply(hp.choice("a", [1, 2]))
    assert space.name == "switch" and len(space.pos_args) == 3
    param = space.pos_args[0]
    assert param.name == "hyperopt_param" and param.arg["label"].obj == "a"
    assert param.arg["obj"].name == "randint"
    weighted = pyll.as_apply(hp.pchoice("a", [(0.25, 1), (0.75, 2)])).pos_args[0].arg["obj"]
    assert weighted.name == "categorical" and pyll.rec_eval(weighted.arg["p"]) == (0.25, 0.75)


@pytest.mark.parametrize(
    ("node", "name", "arguments"),
    [
        (hp.uniform("x", 0, 1), "uniform", {"low": 0, "high": 1}),
        (hp.loguniform("x", 0, 1), "loguniform", {"low": 0, "high": 1}),
        (hp.quniform("x", 0, 9, 2), "quniform", {"low": 0, "high": 9, "q": 2}),
        (hp.uniformint("x", 0, 9), "quniform", {"low": 0, "high": 9, "q": 1}),
        (hp.qloguniform("x", 0, 3, 1), "qloguniform", {"low": 0, "high": 3, "q": 1}),
        (hp.randint("x", 3, 9), "randint", {"low": 3, "high": 9}),
        (hp.randint("x", 3), "randint", {"low": 3, "high": pyll.base.MissingArgument}),
    ],
)
def test_distributions_name_their_arguments(node: Any, name: str, arguments: Any) -> None:
    (param,) = [n for n in pyll.dfs(node) if n.name == "hyperopt_param"]
    distribution = param.arg["obj"]
    assert distribution.name == name
    given = {
        key: getattr(distribution.arg[key], "obj", distribution.arg[key]) for key in arguments
    }
    assert given == arguments


def test_a_point_may_be_made_here_and_evaluated_elsewhere() -> None:
    domain = Domain(lambda config: {"loss": config + 1, "status": "ok"}, hp.uniform("x", 0, 1))
    ctrl = Ctrl(Trials())
    fn, point = domain.evaluate_async({"x": 0.5}, ctrl)
    assert point == 0.5
    assert domain.evaluate_async2(fn(point), ctrl) == domain.evaluate({"x": 0.5}, ctrl)


def test_other_keys_in_misc_are_left_alone() -> None:
    trials, domain = Trials(), Domain(lambda x: x, hp.uniform("x", 0, 1))
    (document,) = rand.suggest([0], domain, trials, 0)
    document["misc"]["automl_plugins"] = note = {"arm": 0, "opened": [{"share": 0.5, "why": None}]}
    trials.insert_trial_docs([document])
    trials.refresh()
    fmin(
        lambda x: x,
        hp.uniform("x", 0, 1),
        algo=partial(tpe.suggest, n_startup_jobs=2),
        max_evals=5,
        trials=trials,
        rstate=np.random.default_rng(0),
        show_progressbar=False,
    )
    assert trials.trials[0]["misc"]["automl_plugins"] == note and trials.losses()[0] is not None
