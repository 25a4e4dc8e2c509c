"""What is between Hyperopt's trials and ours: files that survive, trials taken back, errors."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import _running, boasf_fmin
from automl_plugins.adapters.hyperopt._arms import arms_of
from automl_plugins.adapters.hyperopt._pulls import PullReader
from automl_plugins.adapters.hyperopt.proposing import ProposerAlgorithm
from hyperopt import JOB_STATE_DONE, JOB_STATE_NEW, Domain, Trials, fmin, hp

from automl_plugins.proposers.proposal import Proposer

SPACE = hp.choice("model", [{"C": hp.uniform("C", 0, 1)}, {"depth": hp.uniformint("depth", 1, 9)}])


def loss_of(config: dict[str, Any]) -> float:
    return float(config.get("C", config.get("depth", 30) / 10))


def run(fn: Callable[[dict[str, Any]], float] = loss_of, **options: Any) -> Any:
    return boasf_fmin(
        fn,
        SPACE,
        max_evals=8,
        inner="random",
        show_progressbar=False,
        rstate=np.random.default_rng(0),
        **options,
    )


def test_a_crash_while_trials_are_saved_loses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trials.pkl"
    dump, calls = _running.dump, []

    def crashing(trials: Trials, file: Any) -> None:
        calls.append(len(trials))
        if len(calls) == 4:
            file.write(b"\x80")
            raise MemoryError
        dump(trials, file)

    monkeypatch.setattr(_running, "dump", crashing)
    with pytest.raises(MemoryError):
        run(trials_save_file=str(path))
    with path.open("rb") as file:
        assert len(pickle.load(file).trials) == 3


class FirstFails(Executor):
    """Its first task raises, the others never begin."""

    def __init__(self) -> None:
        self.futures: list[Future[Any]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.futures.append(Future())
        if len(self.futures) == 3:
            self.futures[0].set_running_or_notify_cancel()
            self.futures[0].set_exception(ZeroDivisionError("on purpose"))
        return self.futures[-1]


def test_trials_that_never_began_are_new_again() -> None:
    trials = Trials()
    with pytest.raises(ZeroDivisionError):
        run(trials=trials, executor=FirstFails(), n_workers=3)
    waiting = trials._dynamic_trials[1:]
    assert [d["state"] for d in waiting] == [JOB_STATE_NEW] * 2
    assert {d["book_time"] for d in waiting} == {None}
    run(trials=trials)  # they are evaluated when the search is taken up again
    assert [d["state"] for d in waiting] == [JOB_STATE_DONE] * 2


class Mistaken:
    """A proposer with a mistake in its code."""

    timed = False

    def propose(self, *_: Any) -> Any:
        raise KeyError("a mistake")


def test_a_mistake_in_the_code_is_no_failure_of_a_surrogate() -> None:
    def mistaken() -> Proposer:
        return Mistaken()

    algo = ProposerAlgorithm(mistaken)
    with pytest.raises(KeyError, match="a mistake"):
        fmin(
            loss_of,
            SPACE,
            algo=algo,
            max_evals=2,
            show_progressbar=False,
            rstate=np.random.default_rng(0),
        )


def test_a_pull_is_read_again_when_its_result_was_replaced() -> None:
    trials = Trials()
    run(trials=trials)
    reader = PullReader(arms_of(Domain(loss_of, SPACE)).arms)
    document = trials.trials[0]
    before = reader.read([document]).pulls.losses
    document["result"] = {**document["result"], "loss": before[0] + 1.0}
    assert reader.read([document]).pulls.losses == [before[0] + 1.0]
