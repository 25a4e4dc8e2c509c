"""``auto``, ``tst``, ``pmf`` and ``blended`` as ``algo=`` of ``fmin``: memories and shares."""

from __future__ import annotations

import copy
import logging
import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from automl_plugins.adapters.hyperopt import (
    ADAPTER,
    auto,
    bandit,
    blended,
    boasf,
    meta_dataset_from_trials,
    pmf,
    translate,
    tst,
)
from automl_plugins.adapters.hyperopt._arms import arms_of
from automl_plugins.adapters.hyperopt.proposing import NamedTrials
from automl_plugins.adapters.hyperopt.suggest import ArmDomain
from hyperopt import Domain, Trials, hp, rand, tpe
from hyperopt_runs import configs, explanation, minimise

from automl_plugins.meta import MetaStore

ALGOS = {"auto": auto, "tst": tst, "pmf": pmf, "blended": blended}
SPACE = hp.choice(
    "model",
    [
        {"type": "svm", "C": hp.loguniform("C", -5, 5), "n": hp.qnormal("n", 0, 10, 2)},
        {"type": "rf", "depth": hp.randint("depth", 2, 9)},
    ],
)


def search(algo: Any, n: int, best: float = 2.0, *, trials: Trials | None = None) -> Trials:
    def loss(config: Any) -> float:
        if config["type"] == "rf":
            return 4.0 + float(config["depth"])
        return float((math.log(config["C"]) - best) ** 2 + (config["n"] / 20) ** 2)

    return minimise(loss, SPACE, algo, n, trials=trials)


def shares_of(trials: Trials) -> set[str]:
    return set(explanation(trials.trials[-1])["shares"])


@pytest.fixture(scope="module")
def earlier() -> dict[str, Trials]:
    """Three tasks with one grid of configurations; two of them are like the new one, best = 2."""
    found = {"near": 2.0, "nearer": 1.5, "far": -4.0}
    return {name: search(rand.suggest, 12, best) for name, best in found.items()}


@pytest.mark.parametrize("name", ALGOS)
def test_tpe_goes_on_with_them_and_they_with_it(name: str, earlier: dict[str, Trials]) -> None:
    trials = search(tpe.suggest, 3)
    search(ALGOS[name](memory=earlier), 6, trials=trials)
    search(lambda *args: tpe.suggest(*args, n_startup_jobs=2), 8, trials=trials)
    names = [explanation(document).get("algo") for document in trials.trials]
    assert names == [None] * 3 + [name] * 3 + [None] * 2


def test_all_kinds_of_memory_are_the_same(earlier: dict[str, Trials], tmp_path: Path) -> None:
    dataset = meta_dataset_from_trials(earlier, SPACE)
    records = [ADAPTER.read_task(trials, name=n, space=SPACE) for n, trials in earlier.items()]
    path = tmp_path / "memory.db"
    with MetaStore(path) as store:
        for record in records:
            store.add(record)
    expected = configs(search(tst(memory=earlier, seed=0), 2))
    for memory in (dataset, records, path):
        found = configs(search(tst(memory=memory, seed=0), 2))
        assert found == [{k: pytest.approx(v, rel=1e-6) for k, v in c.items()} for c in expected]


def test_the_trials_of_the_search_are_no_source_of_it(
    earlier: dict[str, Trials], caplog: pytest.LogCaptureFixture
) -> None:
    trials = Trials()
    with caplog.at_level(logging.INFO, logger="automl_plugins"):
        search(tst(memory={**earlier, "mine": trials}, seed=0), 1, trials=trials)
        search(tst(memory={**earlier, "mine": trials}, seed=0), 3, trials=trials)
    assert "'mine' of the memory are those of this search" in caplog.text
    assert shares_of(trials) == set(earlier)
    assert configs(trials) == configs(search(tst(memory=earlier, seed=0), 3))


def test_each_search_of_one_space_leaves_its_own_trials_out(earlier: dict[str, Trials]) -> None:
    domain = Domain(None, SPACE, pass_expr_memo_ctrl=False)
    for own in ("near", "far", "near"):
        [document] = tst([100], domain, earlier[own], 0, memory=earlier)
        assert set(explanation(document)["shares"]) == set(earlier) - {own}


def test_the_task_itself_and_tasks_without_a_finished_trial_are_left_out(
    earlier: dict[str, Trials],
) -> None:
    memory = {**earlier, "new": Trials()}
    assert shares_of(search(tst(memory=memory, task="near", seed=0), 1)) == {"nearer", "far"}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"memory": "nowhere"}, ValueError, "There is no memory 'nowhere'"),
        ({"memory": "lightgm"}, ValueError, "Did you mean 'lightgbm'?"),
        ({"memory": Path("svm")}, ValueError, "Did you mean the text 'svm'?"),
        ({"memory": Trials()}, TypeError, "pass memory={name of the task: its trials}"),
        ({"memory": {"a": 3}}, TypeError, r"memory\['a'\] must be hyperopt.Trials, got 3"),
        ({"memory": {"a": [3] * 99}}, TypeError, r"hyperopt.Trials, got <list of 99>\. Searches"),
        ({"memory": {}}, ValueError, "no trials of another task"),
        ({"memory": {"a": Trials()}, "task": "a"}, ValueError, "no trials of another task"),
        (
            {"memory": {"a": Trials()}, "tusk": "a"},
            TypeError,
            "no argument tusk; it takes memory",
        ),
        (
            {"memory": {"a": Trials()}, "n_candidates": 0},
            ValueError,
            "n_candidates must be an integer >= 1",
        ),
    ],
)
def test_bad_memories_and_options_are_refused_at_once(
    options: dict[str, Any], error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        tst(**options)


@pytest.mark.parametrize("name", ALGOS)
def test_every_algo_refuses_them(name: str) -> None:
    with pytest.raises(TypeError, match="memory must be a MetaDataset"):
        ALGOS[name](memory=3)
    with pytest.raises(ValueError, match="no trials of another task"):
        ALGOS[name](memory={"a": Trials()}, task="a")
    with pytest.raises(TypeError, match="no argument tusk; it takes memory"):
        ALGOS[name](memory={"a": Trials()}, tusk="a")


def test_a_memory_that_does_not_fit_says_how_it_could(
    earlier: dict[str, Trials], caplog: pytest.LogCaptureFixture
) -> None:
    minimise(abs, hp.uniform("z", 0, 1), tst(memory=earlier), 2)
    (told,) = [record.message for record in caplog.records]
    assert "another search space" in told and "meta_dataset_from_trials" in told
    caplog.clear()
    assert len(search(tst(memory={"a": Trials()}), 3)) == 3
    (told,) = [record.message for record in caplog.records]
    assert "There are no sources to learn from" in told


@pytest.mark.parametrize("wrong", [{"model": 7}, {"model": "svm"}, {"C": None}, {"n": "many"}])
def test_a_memory_loses_only_the_trials_that_do_not_fit(
    wrong: dict[str, Any], earlier: dict[str, Trials], caplog: pytest.LogCaptureFixture
) -> None:
    memory = copy.deepcopy(earlier)
    numbers = [d["tid"] for d in memory["near"].trials if d["misc"]["vals"]["C"]]
    document = memory["near"].trials[numbers[0]]
    document["misc"]["vals"] |= {label: [value] for label, value in wrong.items()}
    trials = search(tst(memory=memory, seed=0), 2)
    (told,) = [record.message for record in caplog.records]
    assert "has 1 trial of another search space, left out. A trial has" in told
    del memory["near"]._dynamic_trials[numbers[0]]
    memory["near"].refresh()
    assert configs(trials) == configs(search(tst(memory=memory, seed=0), 2))


def test_a_memory_may_have_labels_that_the_space_has_not(
    earlier: dict[str, Trials], caplog: pytest.LogCaptureFixture
) -> None:
    memory = copy.deepcopy(earlier)
    for document in memory["near"].trials:
        document["misc"]["vals"]["verbose"] = [1]
    trials = search(tst(memory=memory, seed=0), 2)
    assert not caplog.records and shares_of(trials) == set(earlier)
    assert configs(trials) == configs(search(tst(memory=earlier, seed=0), 2))


# --- inside an arm ----------------------------------------------------------------------------

LOSSES = {"adam": 0.0, "sgd": 5.0, "rms": 9.0, "lion": 3.0}


def optimizers() -> Any:
    return {"opt": hp.choice("opt", list(LOSSES)), "x": hp.uniform("x", 0, 1)}


def loss_of(config: Any) -> float:
    return LOSSES[config["opt"]] + 0.01 * float(config["x"])


@pytest.fixture(scope="module")
def monday() -> Trials:
    return minimise(loss_of, optimizers(), rand.suggest, 40)


def told(domain: ArmDomain, memory: Trials) -> list[tuple[str, dict[str, Any]]]:
    """The runs of a memory that an arm is told: the option, by its loss, and the values."""
    named = NamedTrials({"monday": memory}, translate(domain.expr), domain.place)
    options = {loss: name for name, loss in LOSSES.items()}
    return [
        (options[round(loss - 0.01 * values["x"], 6)], values)
        for record in named.records()
        for values, loss in zip(record.configurations, record.losses, strict=True)
    ]


def test_cells_are_told_the_runs_that_lie_in_them(monday: Trials) -> None:
    cells = arms_of(Domain(None, optimizers(), pass_expr_memo_ctrl=False), split=2)
    n = 0
    for number, cell in enumerate(cells.arms.arms):
        runs = told(cells.domain(number), monday)
        kept = {list(LOSSES)[option] for option in cell.options["opt"]}
        assert {option for option, _ in runs} == kept and len(kept) == 2
        assert all(values["opt"] == option for option, values in runs)
        assert all(values["x"] in cell.parts["x"] for _, values in runs)
        n += len(runs)
    assert n == 40


def test_arms_inside_a_cell_are_told_the_runs_that_lie_in_them(monday: Trials) -> None:
    cells = arms_of(Domain(None, optimizers(), pass_expr_memo_ctrl=False), split={"opt": 2})
    found = []
    for cell in (cells.domain(number) for number in range(2)):
        arms = arms_of(cell)
        for number in range(2):
            assert {*arms.arms.arms[number].labels} == {"x"}
            runs = told(arms.domain(number), monday)
            found.append({option for option, _ in runs})
    assert found == [{"adam"}, {"sgd"}, {"rms"}, {"lion"}]


@pytest.mark.parametrize(
    "method", [bandit, boasf(max_evals=9), boasf(max_evals=9, split={"model": 2})], ids=str
)
def test_a_memory_is_read_once_in_each_arm(
    method: Any,
    earlier: dict[str, Trials],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read, records = [], NamedTrials.records

    def spy(named: NamedTrials) -> Any:
        read.append(named)
        return records(named)

    monkeypatch.setattr(NamedTrials, "records", spy)
    trials = Trials()
    inner = tst(memory={**earlier, "mine": trials}, seed=0)
    with caplog.at_level(logging.WARNING, logger="automl_plugins"):
        search(partial(method, inner=inner), 9, trials=trials)
    assert "another search space" not in caplog.text and len(trials.trials) == 9
    assert 1 < len(read) == len({named.place for named in read})
    assert all(set(named.trials) == set(earlier) for named in read)  # not its own


def test_a_memory_of_one_arm_is_none_of_another(
    earlier: dict[str, Trials], caplog: pytest.LogCaptureFixture
) -> None:
    memory = copy.deepcopy(earlier)
    for trials in memory.values():
        trials._dynamic_trials = [d for d in trials.trials if d["misc"]["vals"]["model"] == [0]]
        trials.refresh()
    trials = search(bandit(inner=tst(memory=memory, seed=0), seed=0), 8)
    (note,) = [record.message for record in caplog.records]
    assert "There are no sources to learn from" in note
    shares = [set(explanation(d).get("shares", ())) for d in trials.trials]
    for document, found in zip(trials.trials, shares, strict=True):
        assert found == (set(earlier) if document["misc"]["vals"]["model"] == [0] else set())
    caplog.clear()
    minimise(
        float, hp.choice("z", [0, hp.uniform("y", 0, 1)]), bandit(inner=tst(memory=earlier)), 2
    )
    assert "another search space" in caplog.text and "meta_dataset_from_trials" in caplog.text
