"""Trials begin with what a memory suggests."""

from __future__ import annotations

import json
import math
import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import translate
from automl_plugins.adapters.hyperopt._pyll import expression
from automl_plugins.adapters.hyperopt.initial_design import INITIAL_DESIGN, initial_trials
from hyperopt import JOB_STATE_DONE, JOB_STATE_NEW, Trials, anneal, fmin, hp, rand, tpe
from hyperopt.exceptions import AllTrialsFailed
from known_runs import TASK, loss, model_space, records

from automl_plugins.meta import MetaDataset, diverse

SPACE = hp.choice(
    "model",
    [
        {"type": "svm", "C": hp.loguniform("C", math.log(0.001), math.log(1000.0))},
        {"type": "forest", "depth": hp.uniformint("depth", 1, 10)},
        {"type": "nb"},
    ],
)


@pytest.fixture
def memory() -> MetaDataset:
    return MetaDataset.from_records(records())


def drawn(trials: Trials) -> list[dict[str, Any]]:
    return [{k: v[0] for k, v in sorted(d["misc"]["vals"].items()) if v} for d in trials.trials]


def run(
    trials: Trials, n: int, algo: Any = tpe.suggest, space: Any = SPACE, objective: Any = loss
) -> Any:
    return fmin(
        objective,
        space,
        algo=algo,
        max_evals=n,
        trials=trials,
        rstate=np.random.default_rng(0),
        show_progressbar=False,
        verbose=False,
    )


# --- modes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "suggested", "random"), [("part", 4, 0), ("replace", 8, 0), ("add", 4, 8)]
)
def test_modes(memory: MetaDataset, mode: Any, suggested: int, random: int) -> None:
    trials = initial_trials(SPACE, memory=memory, meta_features=TASK, mode=mode, n_startup_jobs=8)
    assert len(trials) == suggested + random
    expected = diverse(translate(SPACE).space, memory, TASK, suggested).configurations
    labels = [{**c, "model": ["svm", "forest"].index(c["model"])} for c in expected]
    assert drawn(trials)[:suggested] == labels
    notes = [d["misc"][INITIAL_DESIGN] for d in trials.trials]
    assert all(note["design"] == "diverse" and note["reason"] for note in notes[:suggested])
    assert notes[suggested:] == [{"design": "random"}] * random
    json.dumps(notes, allow_nan=False)
    assert all(d["state"] == JOB_STATE_NEW for d in trials.trials)
    calls: list[int] = []

    def counted(new_ids: list[int], domain: Any, trials: Trials, seed: int) -> Any:
        calls.extend(new_ids)
        return tpe.suggest(new_ids, domain, trials, seed, n_startup_jobs=8, verbose=False)

    n = suggested + random
    run(trials, n + 3, counted)
    assert calls == [n, n + 1, n + 2]
    assert drawn(trials)[:suggested] == labels
    assert all(d["state"] == JOB_STATE_DONE for d in trials.trials) and len(trials) == n + 3


def test_tpe_models_from_where_the_suggestions_end(
    memory: MetaDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn_at_random: list[int] = []
    suggest = rand.suggest

    def spy(new_ids: list[int], *arguments: Any) -> Any:
        drawn_at_random.extend(new_ids)
        return suggest(new_ids, *arguments)

    monkeypatch.setattr(tpe.rand, "suggest", spy)
    algo = partial(tpe.suggest, n_startup_jobs=6, verbose=False)
    run(initial_trials(SPACE, memory=memory, mode="replace", n_startup_jobs=6), 8, algo)
    assert drawn_at_random == []
    run(initial_trials(SPACE, memory=memory, mode="part", n_startup_jobs=6), 8, algo)
    assert drawn_at_random == [3, 4, 5]


def test_max_evals_counts_them(memory: MetaDataset) -> None:
    """Why the docs say so: Hyperopt takes trials that wait for trials that are done."""
    trials = initial_trials(SPACE, memory=memory, n_configs=4)
    run(trials, 5)
    assert len(trials) == 5
    waiting = initial_trials(SPACE, memory=memory, n_configs=4)
    with pytest.raises(AllTrialsFailed):
        run(waiting, 4)
    assert all(d["state"] == JOB_STATE_NEW for d in waiting.trials)


# --- conditional spaces ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "algo", [rand.suggest, partial(tpe.suggest, n_startup_jobs=2), anneal.suggest]
)
def test_every_label_is_there(memory: MetaDataset, algo: Any) -> None:
    trials = initial_trials(SPACE, memory=memory, n_configs=6)
    for document in trials.trials:
        vals, idxs = document["misc"]["vals"], document["misc"]["idxs"]
        assert vals.keys() == idxs.keys() == {"model", "C", "depth"}
        for label in vals:
            assert idxs[label] == [document["tid"]] * len(vals[label])
        assert (vals["C"] == []) == (vals["model"] != [0])
    run(trials, 12, algo)
    assert len(trials.losses()) == 12


def test_objectives_see_the_values_that_were_meant(memory: MetaDataset) -> None:
    seen: list[dict[str, Any]] = []

    def objective(config: dict[str, Any]) -> float:
        seen.append({"model" if k == "type" else k: v for k, v in config.items()})
        return loss(config)

    trials = initial_trials(SPACE, memory=memory, meta_features=TASK, n_configs=6)
    run(trials, 7, objective=objective)
    expected = diverse(translate(SPACE).space, memory, TASK, 6).configurations
    assert seen[:6] == expected
    assert all(isinstance(c["depth"], int) for c in seen if "depth" in c)


NESTED = {
    "kernel": hp.choice(
        "kernel",
        [
            {"name": "rbf", "gamma": hp.lognormal("gamma", 0, 2)},
            {
                "name": "poly",
                "degree": hp.quniform("degree", 2, 5, 1),
                "shift": hp.choice("shift", [None, hp.uniform("coef0", -1, 1)]),
            },
        ],
    ),
    "weights": hp.pchoice("weights", [(0.3, "uniform"), (0.7, "distance")]),
    "units": hp.qloguniform("units", math.log(8), math.log(128), 8),
    "fine": hp.quniform("fine", 0, 10_000, 0.5),
    "size": hp.randint("size", 4),
}


def test_a_configuration_space(memory: MetaDataset) -> None:
    space = model_space()
    trials = initial_trials(space, memory=memory, meta_features=TASK, n_configs=3, mode="add")
    assert len(trials) == 23
    seen: list[Any] = []

    def objective(config: Any) -> float:
        seen.append(config)
        return float(len(seen))

    run(trials, 24, space=expression(space), objective=objective)
    assert len(seen) == 24


# --- trials, designs and memories -----------------------------------------------------------


def test_trials_that_are_there_already(memory: MetaDataset) -> None:
    trials = Trials(exp_key="study")
    for _ in range(2):  # the second time there is nothing new
        found = initial_trials(
            SPACE, memory=memory, meta_features=TASK, n_configs=4, trials=trials
        )
        assert found is trials and len(trials) == 4
    run(trials, 6)
    initial_trials(SPACE, memory=memory, meta_features=TASK, n_configs=4, trials=trials)
    assert len(trials) == 6
    initial_trials(SPACE, memory=memory, meta_features=TASK, n_configs=6, trials=trials)
    assert sorted(trials.tids) == list(range(len(trials))) and len(trials) > 6
    assert {d["exp_key"] for d in trials.trials} == {"study"}
    run(trials, 9)
    assert all(d["state"] == JOB_STATE_DONE for d in trials.trials)


def test_seeds_and_pickles(memory: MetaDataset) -> None:
    def values(seed: int) -> list[Any]:
        return drawn(initial_trials(SPACE, memory=memory, n_configs=2, mode="add", seed=seed))

    assert values(0) == values(0)
    assert values(0)[:2] == values(1)[:2] and values(0)[2:] != values(1)[2:]
    trials = pickle.loads(pickle.dumps(initial_trials(SPACE, memory=memory, n_configs=3)))
    run(trials, 5)
    assert len(trials) == 5


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"mode": "only"}, "'replace'"),
        ({"design": "best"}, "design must be one of"),
        ({"X": np.zeros((9, 1))}, "X without y"),
        ({"n_configs": 0}, "at least 1"),
        ({"n_startup_jobs": -1}, "n_startup_jobs must be at least 0"),
        ({"memory": "nothing"}, "no memory 'nothing'"),
        ({"space": {"alpha": hp.uniform("alpha", 0, 1)}}, "share no hyperparameter"),
        ({"space": hp.uniform("a", 0, hp.uniform("b", 1, 2))}, "depends on other"),
    ],
)
def test_bad_input_inserts_nothing(
    memory: MetaDataset, options: dict[str, Any], error: str
) -> None:
    trials = Trials()
    with pytest.raises(ValueError, match=error):
        initial_trials(**({"space": SPACE, "memory": memory, "trials": trials} | options))
    assert not trials.trials and not trials.new_trial_ids(1)[0]
