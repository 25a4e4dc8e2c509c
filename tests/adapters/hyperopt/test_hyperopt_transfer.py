"""``tst``, ``pmf`` and ``blended`` as ``algo=`` of ``fmin``: memories and shares."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import ADAPTER, blended, meta_dataset_from_trials, pmf, tst
from automl_plugins.adapters.hyperopt.trials import values_of
from hyperopt import Domain, Trials, fmin, hp, rand, tpe
from hyperopt_runs import explanation

from automl_plugins.meta import MetaStore

read_task = ADAPTER.read_task

ALGOS = {"tst": tst, "pmf": pmf, "blended": blended}
N = 12  # trials of each earlier task


def space() -> Any:
    return hp.choice(
        "model",
        [
            {"type": "svm", "C": hp.loguniform("C", -5, 5), "n": hp.qnormal("n", 0, 10, 2)},
            {"type": "rf", "depth": hp.randint("depth", 2, 9)},
        ],
    )


def loss_at(best: float) -> Callable[[Any], float]:
    def loss(config: Any) -> float:
        if config["type"] == "rf":
            return 4.0 + float(config["depth"])
        return float((math.log(config["C"]) - best) ** 2 + (config["n"] / 20) ** 2)

    return loss


def minimise(algo: Any, n: int, best: float, *, trials: Trials | None = None) -> Trials:
    trials = Trials() if trials is None else trials
    fmin(
        loss_at(best),
        space(),
        algo=algo,
        max_evals=n,
        trials=trials,
        rstate=np.random.default_rng(0),
        show_progressbar=False,
        verbose=False,
    )
    return trials


@pytest.fixture(scope="module")
def earlier() -> dict[str, Trials]:
    """Three tasks with one grid of configurations; two of them are like the new one, best = 2."""
    found = {"near": 2.0, "nearer": 1.5, "far": -4.0}
    return {name: minimise(rand.suggest, N, best) for name, best in found.items()}


@pytest.mark.parametrize("name", list(ALGOS))
def test_tpe_goes_on_with_them_and_they_with_it(name: str, earlier: dict[str, Trials]) -> None:
    trials = minimise(tpe.suggest, 3, 2.0)
    minimise(ALGOS[name](memory=earlier), 6, 2.0, trials=trials)
    minimise(lambda *args: tpe.suggest(*args, n_startup_jobs=2), 8, 2.0, trials=trials)
    names = [explanation(document).get("algo") for document in trials.trials]
    assert names == [None] * 3 + [name] * 3 + [None] * 2


def test_all_kinds_of_memory_are_the_same(earlier: dict[str, Trials], tmp_path: Path) -> None:
    dataset = meta_dataset_from_trials(earlier, space())
    records = [read_task(trials, name=name, space=space()) for name, trials in earlier.items()]
    path = tmp_path / "memory.db"
    with MetaStore(path) as store:
        for record in records:
            store.add(record)
    expected = [d["misc"]["vals"] for d in minimise(tst(memory=earlier, seed=0), 2, 2.0).trials]
    for memory in (dataset, records, path):
        trials = minimise(tst(memory=memory, seed=0), 2, 2.0)
        for document, vals in zip(trials.trials, expected, strict=True):
            for label, value in vals.items():
                assert document["misc"]["vals"][label] == pytest.approx(value, rel=1e-6)


def test_the_trials_of_the_search_are_no_source_of_it(
    earlier: dict[str, Trials], caplog: pytest.LogCaptureFixture
) -> None:
    trials = Trials()
    with caplog.at_level(logging.INFO, logger="automl_plugins"):
        minimise(tst(memory={**earlier, "mine": trials}, seed=0), 1, 2.0, trials=trials)
        minimise(tst(memory={**earlier, "mine": trials}, seed=0), 3, 2.0, trials=trials)
    assert "'mine' of the memory are those of this search" in caplog.text
    assert set(explanation(trials.trials[-1])["shares"]) == set(earlier)
    without = minimise(tst(memory=earlier, seed=0), 3, 2.0)
    assert [values_of(d) for d in trials.trials] == [values_of(d) for d in without.trials]


def test_the_task_itself_is_left_out_by_name(earlier: dict[str, Trials]) -> None:
    trials = minimise(tst(memory=earlier, task="near", seed=0), 1, 2.0)
    assert set(explanation(trials.trials[-1])["shares"]) == {"nearer", "far"}


def test_tasks_without_a_finished_trial_are_left_out(earlier: dict[str, Trials]) -> None:
    trials = minimise(tst(memory={**earlier, "new": Trials()}, seed=0), 1, 2.0)
    assert set(explanation(trials.trials[-1])["shares"]) == set(earlier)


@pytest.mark.parametrize("name", list(ALGOS))
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"memory": 3}, TypeError, "memory must be a MetaDataset"),
        ({"memory": "nowhere"}, ValueError, "There is no memory 'nowhere'"),
        ({"memory": Trials()}, TypeError, "pass memory={name of the task: its trials}"),
        ({"memory": {"a": 3}}, TypeError, r"memory\['a'\] must be hyperopt.Trials, got 3"),
        ({"memory": {}}, ValueError, "no trials of another task"),
        ({"memory": {"a": Trials()}, "task": "a"}, ValueError, "no trials of another task"),
        ({"memory": {"a": Trials()}, "tusk": "a"}, TypeError, "Its options are memory, task"),
    ],
)
def test_bad_memories_are_refused_at_once(
    name: str, options: dict[str, Any], error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        ALGOS[name](**options)


def test_trials_of_another_space_say_how_they_can_be_a_memory(
    earlier: dict[str, Trials], caplog: pytest.LogCaptureFixture
) -> None:
    other = hp.uniform("z", 0, 1)
    search = {"algo": tst(memory=earlier), "rstate": np.random.default_rng(0)}
    fmin(abs, other, max_evals=2, show_progressbar=False, verbose=False, **search)
    (told,) = [record.message for record in caplog.records]
    assert "another search space" in told and "meta_dataset_from_trials" in told


def test_nothing_to_learn_from_is_said_at_the_first_trial(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert len(minimise(tst(memory={"a": Trials()}), 3, 2.0)) == 3
    (told,) = [record.message for record in caplog.records]
    assert "no finished trials of another task, only a" in told


@pytest.mark.parametrize("name", list(ALGOS))
def test_options_outside_their_range_are_refused_at_once(
    name: str, earlier: dict[str, Trials]
) -> None:
    with pytest.raises(ValueError, match="n_candidates must be >= 1"):
        ALGOS[name](memory=earlier, n_candidates=0)


def test_each_search_of_one_space_leaves_its_own_trials_out(earlier: dict[str, Trials]) -> None:
    domain = Domain(loss_at(2.0), space())
    for own in ("near", "far", "near"):
        [document] = tst([100], domain, earlier[own], 0, memory=earlier)
        assert set(explanation(document)["shares"]) == set(earlier) - {own}
