"""Trials begin with what a memory suggests."""

from __future__ import annotations

import json
import math
import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import (
    INITIAL_DESIGN,
    initial_trials,
    meta_dataset_from_trials,
    translate,
)
from automl_plugins.adapters.hyperopt.expressions import expression
from hyperopt import JOB_STATE_DONE, JOB_STATE_NEW, Trials, anneal, hp, rand, tpe
from hyperopt.exceptions import AllTrialsFailed
from hyperopt.fmin import generate_trials_to_calculate
from hyperopt_runs import configs, minimise
from known_runs import TASK, loss, model_space, records

from automl_plugins.meta import MetaDataset, bundled, diverse

SPACE = hp.choice(
    "model",
    [
        {"type": "svm", "C": hp.loguniform("C", math.log(0.001), math.log(1000.0))},
        {"type": "forest", "depth": hp.uniformint("depth", 1, 10)},
        {"type": "nb"},
    ],
)
QUICK_TPE = partial(tpe.suggest, n_startup_jobs=6, verbose=False)


@pytest.fixture
def memory() -> MetaDataset:
    return MetaDataset.from_records(records())


def search(trials: Trials, n: int, algo: Any = QUICK_TPE, objective: Any = loss) -> Trials:
    return minimise(objective, SPACE, algo, n, trials=trials)


def suggested(memory: MetaDataset, n: int) -> list[dict[str, Any]]:
    return diverse(translate(SPACE).space, memory, TASK, n).configurations


@pytest.mark.parametrize(
    ("mode", "n_suggested", "n_random", "left"),
    [("part", 3, 0, [3, 4, 5]), ("replace", 6, 0, []), ("add", 3, 6, [])],
)
def test_modes(
    memory: MetaDataset,
    monkeypatch: pytest.MonkeyPatch,
    mode: Any,
    n_suggested: int,
    n_random: int,
    left: list[int],
) -> None:
    trials = initial_trials(SPACE, memory=memory, meta_features=TASK, mode=mode, n_startup_jobs=6)
    n = n_suggested + n_random
    assert len(trials) == n and all(d["state"] == JOB_STATE_NEW for d in trials.trials)
    labels = [
        {**c, "model": ["svm", "forest"].index(c["model"])} for c in suggested(memory, n_suggested)
    ]
    assert configs(trials)[:n_suggested] == labels
    notes = [d["misc"][INITIAL_DESIGN] for d in trials.trials]
    assert all(note["design"] == "diverse" and note["reason"] for note in notes[:n_suggested])
    assert notes[n_suggested:] == [{"design": "random"}] * n_random
    json.dumps(notes, allow_nan=False)
    calls: list[int] = []
    at_random: list[int] = []  # by TPE, as far as the suggestions leave it any
    suggest = rand.suggest

    def spy(new_ids: list[int], *arguments: Any) -> Any:
        at_random.extend(new_ids)
        return suggest(new_ids, *arguments)

    def counted(new_ids: list[int], *arguments: Any) -> Any:
        calls.extend(new_ids)
        return QUICK_TPE(new_ids, *arguments)

    monkeypatch.setattr(tpe.rand, "suggest", spy)
    search(trials, n + 4, counted)
    assert calls == [n, n + 1, n + 2, n + 3] and at_random == left
    assert configs(trials)[:n_suggested] == labels
    assert all(d["state"] == JOB_STATE_DONE for d in trials.trials) and len(trials) == n + 4


def test_max_evals_counts_them(memory: MetaDataset) -> None:
    """Why the docs say so: Hyperopt takes trials that wait for trials that are done."""
    assert len(search(initial_trials(SPACE, memory=memory, n_configs=4), 5)) == 5
    waiting = initial_trials(SPACE, memory=memory, n_configs=4)
    with pytest.raises(AllTrialsFailed):
        search(waiting, 4)
    assert all(d["state"] == JOB_STATE_NEW for d in waiting.trials)


@pytest.mark.parametrize("algo", [rand.suggest, QUICK_TPE, anneal.suggest])
def test_every_label_is_there_and_objectives_see_what_was_meant(
    memory: MetaDataset, algo: Any
) -> None:
    seen: list[dict[str, Any]] = []

    def objective(config: dict[str, Any]) -> float:
        seen.append({"model" if k == "type" else k: v for k, v in config.items()})
        return loss(config)

    trials = initial_trials(SPACE, memory=memory, meta_features=TASK, n_configs=6)
    for document in trials.trials:
        vals, idxs = document["misc"]["vals"], document["misc"]["idxs"]
        assert vals.keys() == idxs.keys() == {"model", "C", "depth"}
        for label in vals:
            assert idxs[label] == [document["tid"]] * len(vals[label])
        assert (vals["C"] == []) == (vals["model"] != [0])
    assert len(search(trials, 10, algo, objective).losses()) == 10
    assert seen[:6] == suggested(memory, 6)
    assert all(isinstance(c["depth"], int) for c in seen if "depth" in c)


def test_a_configuration_space(memory: MetaDataset) -> None:
    space = model_space()
    trials = initial_trials(space, memory=memory, meta_features=TASK, n_configs=3, mode="add")
    assert len(trials) == 23
    minimise(lambda c: float(len(str(c))), expression(space), QUICK_TPE, 24, trials=trials)
    assert len(trials.losses()) == 24


def test_a_memory_of_choices_that_are_no_text_fits_an_expression() -> None:
    space = bundled("random_forest").space
    found = initial_trials(expression(space), memory="random_forest", n_configs=5)
    assert configs(found) == configs(initial_trials(space, memory="random_forest", n_configs=5))


def test_trials_that_are_there_already(memory: MetaDataset) -> None:
    trials = Trials(exp_key="study")

    def add(n: int) -> Trials:
        return initial_trials(SPACE, memory=memory, meta_features=TASK, n_configs=n, trials=trials)

    for _ in range(2):  # the second time there is nothing new
        assert add(4) is trials and len(trials) == 4
    search(trials, 6)
    assert len(add(4)) == 6
    add(6)
    assert sorted(trials.tids) == list(range(len(trials))) and len(trials) > 6
    assert {d["exp_key"] for d in trials.trials} == {"study"}
    search(trials, 9)
    assert all(d["state"] == JOB_STATE_DONE for d in trials.trials)


def test_points_with_labels_of_other_options_are_there_already(memory: MetaDataset) -> None:
    found = configs(initial_trials(SPACE, memory=memory, meta_features=TASK, n_configs=2))
    trials = generate_trials_to_calculate([{"C": 1.0, "depth": 3.0} | own for own in found])
    initial_trials(SPACE, memory=memory, meta_features=TASK, n_configs=2, trials=trials)
    assert len(found) == 2 == len(trials)


def test_seeds_and_pickles(memory: MetaDataset) -> None:
    def values(seed: int) -> list[Any]:
        return configs(initial_trials(SPACE, memory=memory, n_configs=2, mode="add", seed=seed))

    assert values(0) == values(0)
    assert values(0)[:2] == values(1)[:2] and values(0)[2:] != values(1)[2:]
    trials = pickle.loads(pickle.dumps(initial_trials(SPACE, memory=memory, n_configs=3)))
    assert len(search(trials, 5)) == 5


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"mode": "only"}, ValueError, "'replace'"),
        ({"design": "best"}, ValueError, "design must be one of"),
        ({"X": np.zeros((9, 1))}, ValueError, "X without y"),
        ({"n_configs": 0}, ValueError, "an integer >= 1"),
        ({"n_startup_jobs": -1}, ValueError, "n_startup_jobs must be an integer >= 0"),
        ({"memory": "nothing"}, ValueError, "no memory 'nothing'"),
        ({"space": {"a": hp.uniform("a", 0, 1)}}, ValueError, "share no hyperparameter"),
        ({"space": hp.uniform("a", 0, hp.uniform("b", 1, 2))}, ValueError, "depends on other"),
        ({"trials": [1]}, TypeError, "initial_trials takes hyperopt.Trials"),
    ],
)
def test_bad_input_inserts_nothing(
    memory: MetaDataset, options: dict[str, Any], error: Any, message: str
) -> None:
    trials = Trials()
    with pytest.raises(error, match=message):
        initial_trials(**({"space": SPACE, "memory": memory, "trials": trials} | options))
    assert not trials.trials and not trials.new_trial_ids(1)[0]


def test_trials_by_name_are_read_with_the_space_of_the_search() -> None:
    earlier = {
        "a": search(Trials(), 8, rand.suggest),
        "b": search(Trials(), 8, rand.suggest, lambda config: -loss(config)),
    }
    known = meta_dataset_from_trials(earlier, SPACE)
    begun, same = (initial_trials(SPACE, memory=m, n_configs=3) for m in (earlier, known))
    assert configs(begun) == configs(same)
    without = initial_trials(SPACE, memory=earlier, n_configs=3, exclude=["a"])
    assert configs(without) != configs(begun)
    assert configs(without) == configs(
        initial_trials(SPACE, memory={"b": earlier["b"]}, n_configs=3)
    )
    of_both = initial_trials(SPACE, memory=earlier | {"c": records()[0]}, n_configs=3)
    assert configs(of_both) != configs(begun)


def test_trials_of_another_space_are_refused_with_what_to_do() -> None:
    other = minimise(lambda x: x, hp.uniform("x", 0, 1), rand.suggest, 3)
    with pytest.raises(ValueError, match="meta_dataset_from_trials"):
        initial_trials(SPACE, memory={"a": other})
