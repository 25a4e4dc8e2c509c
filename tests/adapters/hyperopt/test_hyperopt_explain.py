"""``explain``: why a trial of Hyperopt was proposed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import (
    bandit,
    boasf,
    boasf_fmin,
    explain,
    gbqr,
    initial_trials,
    meta_dataset_from_trials,
    tst,
    weighted,
)
from hyperopt import Trials, fmin, hp, rand

from automl_plugins.proposers.explanation import Explanation

SPACE = hp.choice(
    "m", [{"t": "a", "x": hp.uniform("x", 0, 1)}, {"t": "b", "y": hp.uniform("y", 0, 1)}]
)


def search(algo: Any, n: int, trials: Trials | None = None) -> Trials:
    trials = Trials() if trials is None else trials
    fmin(
        lambda c: c.get("x", 0.5) / 2 + c.get("y", 0.0) / 4,
        SPACE,
        algo=algo,
        max_evals=n,
        trials=trials,
        rstate=np.random.default_rng(0),
        show_progressbar=False,
    )
    return trials


def test_a_proposal_of_the_model_is_predicted() -> None:
    trials = search(gbqr(n_startup=4), 9)
    last = explain(trials)
    assert last == explain(trials, 8)
    assert (last.number, last.origin, last.n_rows) == (8, "model", 8)
    assert last.bound is not None and last.arm is None
    assert str(last).startswith("Trial 8 was chosen by the surrogate model, fitted on 8 trials; ")
    assert explain(trials, 0).origin == "design"


def test_shares_of_earlier_tasks() -> None:
    earlier = {"one": search(rand.suggest, 12), "two": search(rand.suggest, 6)}
    trials = search(tst(memory=earlier), 6)
    last = explain(trials)
    assert last.shares is not None and set(last.shares) == {"one", "two"}
    assert list(last.shares.values()) == sorted(last.shares.values(), reverse=True)
    assert last.own_share == pytest.approx(1.0 - sum(last.shares.values()))
    assert "among the sources" in str(last)


def test_an_arm_and_why_it_was_chosen() -> None:
    trials = search(boasf(max_evals=6, inner="random"), 6)
    found = explain(trials, 0)
    assert found.origin == "inner" and found.arm is not None
    assert str(found) == (
        f"Trial 0 was proposed by random, the sampler of its arm; arm: m={found.arm.arm} (round 1,"
        " share of BOASF)."
    )
    drawn = explain(search(weighted, 3)).arm
    assert drawn is not None and drawn.reason == "drawn by its weight, with probability 0.5"
    chosen = explain(search(bandit(inner=gbqr(n_startup=2)), 14))
    assert chosen.origin == "model" and chosen.arm is not None
    assert (chosen.arm.sampler, chosen.arm.parameter) == ("gbqr", "m")
    assert chosen.arm.reason == "chosen by MaxUCB" and chosen.arm.score is not None


def test_what_was_given_and_what_comes_from_elsewhere() -> None:
    trials = search(rand.suggest, 3)
    assert explain(trials).origin == "foreign"
    boasf_fmin(
        lambda c: 0.5,
        SPACE,
        max_evals=4,
        points_to_evaluate=[{"m": 0, "x": 0.5}],
        trials=trials,
        inner="random",
        rstate=np.random.default_rng(0),
        verbose=False,
    )
    assert explain(trials).origin == "enqueued"
    memory = meta_dataset_from_trials({"one": search(rand.suggest, 9)}, SPACE)
    start = initial_trials(SPACE, memory=memory, n_configs=2, mode="add")
    origins = [explain(start, document["tid"]).origin for document in start._dynamic_trials]
    assert origins[:2] == ["suggested"] * 2 and set(origins[2:]) <= {"random"}


@pytest.mark.parametrize(
    "note", [None, 3, {"proposal": 3, "why": []}, {"proposal": {"loss": "a"}}]
)
def test_damaged_notes_are_left_out(note: Any) -> None:
    trials = search(gbqr(n_startup=2), 4)
    trials.trials[-1]["misc"]["automl_plugins"] = note
    assert explain(trials) == Explanation(3, "foreign")
    trials.trials[-1]["misc"]["automl_plugins"] = {"proposal": {"origin": "model", "shares": 1}}
    assert explain(trials) == Explanation(3, "model")


def test_a_trial_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="no trial 7; there are 2 trials"):
        explain(search(rand.suggest, 2), 7)
    with pytest.raises(ValueError, match="no trial None; there are 0"):
        explain(Trials())
