"""Trials of Hyperopt as searches."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import curves, optimizer, owns
from ConfigSpace import ConfigurationSpace
from hyperopt import JOB_STATE_ERROR, Trials, fmin, hp, rand

from automl_plugins.replay.protocol import Outcome, Problem, TrialStatus


def run(objective: Any, n: int, **options: Any) -> Trials:
    trials = Trials()
    space = {"x": hp.uniform("x", 0, 1), "m": hp.choice("m", [{"y": hp.randint("y", 3)}, 7])}
    fmin(
        objective,
        space,
        algo=rand.suggest,
        max_evals=n,
        trials=trials,
        rstate=np.random.default_rng(0),
        show_progressbar=False,
        **options,
    )
    return trials


def test_what_fmin_did_is_read() -> None:
    def objective(config: dict[str, Any]) -> float:
        time.sleep(0.003)
        return float(config["x"])

    trials = run(objective, 6)
    (search,) = curves(trials, table="t", method="m", seed=4)
    assert (search.table, search.method, search.seed) == ("t", "m", 4)
    assert search.space is None and search.left_out == ()
    assert [t.loss for t in search.trials] == trials.losses()
    assert [t.config["x"] for t in search.trials] == trials.losses()
    for trial in search.trials:
        assert trial.status == TrialStatus.COMPLETE and trial.step is None
        assert trial.config["m"] in (0, 1)  # the index of the option
        assert ("y" in trial.config) == (trial.config["m"] == 0)
        assert all(type(v) in (int, float) for v in trial.config.values())
        assert trial.seconds >= 0.002
    finished = [t.finished for t in search.trials]
    assert finished == sorted(finished) and finished[-1] >= 0.012
    assert sum(t.seconds for t in search.trials) <= finished[-1] + 0.006  # whole milliseconds


def test_what_failed_is_failed() -> None:
    results: list[Any] = [
        1.0,
        {"status": "fail"},
        math.nan,
        {"status": "ok", "loss": 2.0, "seconds": 9.0},
        math.inf,
    ]
    trials = run(lambda _: results.pop(0), 5)
    trials._dynamic_trials[0]["state"] = JOB_STATE_ERROR
    trials.refresh()
    (search,) = curves(trials, table="t", method="m")
    assert search.seed == 0
    statuses = [t.status for t in search.trials]
    assert statuses == [TrialStatus.FAILED] * 3 + [TrialStatus.COMPLETE, TrialStatus.FAILED]
    assert [t.loss for t in search.trials if t.status == TrialStatus.COMPLETE] == [2.0]
    assert all(math.isnan(t.loss) for t in search.trials if t.status == TrialStatus.FAILED)
    assert search.trials[3].seconds == 9.0


def test_what_has_not_finished_is_left_out() -> None:
    trials = run(lambda _: 1.0, 3)
    trials._dynamic_trials[1]["state"] = 1
    trials._dynamic_trials[2]["state"] = 0
    (search,) = curves(trials, table="t", method="m")
    assert len(search.trials) == 1
    assert search.left_out == ("1 new trial left out.", "1 running trial left out.")


def test_a_replayed_search_comes_back_in_order_of_its_results() -> None:
    space = ConfigurationSpace({"x": (0.0, 1.0)}, seed=0)
    search = optimizer("rand").start(Problem(space, seed=0))
    first, second, third = search.ask(), search.ask(), search.ask()
    assert first is not None and second is not None and third is not None
    search.tell(second, Outcome(TrialStatus.COMPLETE, 2.0, 0.0, 1.5))
    search.tell(first, Outcome(TrialStatus.FAILED, math.nan, 0.0, 4.0))
    (read,) = curves(search.trials, table="t", method="m")
    assert [t.config for t in read.trials] == [second.config, first.config]
    assert [(t.seconds, t.finished) for t in read.trials] == [(1.5, 1.5), (4.0, 4.0)]
    assert read.left_out == ("1 running trial left out.",)


def test_trials_without_times_are_read() -> None:
    trials = run(lambda _: 1.0, 2)
    for document in trials.trials:
        document["book_time"] = document["refresh_time"] = None
    (search,) = curves(trials, table="t", method="m")
    assert [math.isnan(t.seconds) and math.isnan(t.finished) for t in search.trials] == [True] * 2


def test_labels_must_be_given() -> None:
    for given in ({}, {"table": "t"}, {"method": "m"}):
        with pytest.raises(ValueError, match="pass table= and method="):
            curves(Trials(), **given)
    assert curves(Trials(), table="", method="")[0].trials == []


@pytest.mark.parametrize("source", ["trials.pkl", Path("trials.pkl")])
def test_files_are_not_unpickled(source: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="pickles"):
        curves(source, table="t", method="m")
    assert not owns(str(tmp_path))
