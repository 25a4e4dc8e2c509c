"""Trials as searches and as tasks of a memory, and recorded while ``fmin`` continues."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import (
    ADAPTER,
    boasf_fmin,
    curves,
    meta_dataset_from_trials,
    optimizer,
    record,
)
from automl_plugins.adapters.hyperopt._pyll import expression
from ConfigSpace import ConfigurationSpace
from effort import Clock
from hyperopt import STATUS_FAIL, STATUS_OK, Trials, fmin, hp, rand
from known_runs import FakeStore

from automl_plugins.frameworks import Outcome, Problem
from automl_plugins.records.trial import Status

owns = ADAPTER.owns
read_task = ADAPTER.read_task
write_history = ADAPTER.write_history

SPACE = hp.choice(
    "model",
    [
        {"type": "svm", "C": hp.loguniform("C", -5, 5)},
        {"type": "forest", "n": hp.uniformint("n", 1, 50), "depth": hp.choice("depth", [None, 5])},
    ],
)


def loss_of(point: dict[str, Any]) -> float:
    return abs(math.log(point["C"])) if "C" in point else point["n"] / 50


def mixed(point: dict[str, Any]) -> Any:
    """Plain losses, dictionaries, failures and infinite losses."""
    loss = loss_of(point)
    if loss > 3:
        return {"status": STATUS_FAIL}
    if loss > 2:
        return {"status": STATUS_OK, "loss": math.inf}
    return loss if loss > 1 else {"status": STATUS_OK, "loss": loss, "seconds": 9.0}


def run(fn: Any, trials: Trials, n: int, space: Any = SPACE, **options: Any) -> None:
    fmin(
        fn,
        space,
        rand.suggest,
        n,
        trials=trials,
        rstate=np.random.default_rng(len(trials)),
        show_progressbar=False,
        return_argmin=False,
        **options,
    )


def searched(objective: Any, n: int) -> Trials:
    trials = Trials()
    space = {"x": hp.uniform("x", 0, 1), "m": hp.choice("m", [{"y": hp.randint("y", 3)}, 7])}
    run(objective, trials, n, space)
    return trials


# --- searches ---------------------------------------------------------------------------------


def test_what_fmin_did_is_read() -> None:
    def objective(config: dict[str, Any]) -> float:
        time.sleep(0.003)
        return float(config["x"])

    trials = searched(objective, 6)
    (search,) = curves(trials, table="t", method="m", seed=4)
    assert (search.table, search.method, search.seed) == ("t", "m", 4)
    assert search.space is None and search.left_out == ()
    assert [t.loss for t in search.trials] == trials.losses()
    assert [t.config["x"] for t in search.trials] == trials.losses()
    for trial in search.trials:
        assert trial.status == Status.COMPLETE and trial.step is None
        assert trial.config["m"] in (0, 1)  # the index of the option
        assert ("y" in trial.config) == (trial.config["m"] == 0)
        assert all(type(v) in (int, float) for v in trial.config.values())
        assert trial.seconds >= 0.002
    finished = [t.finished for t in search.trials]
    assert finished == sorted(finished) and finished[-1] >= 0.012
    assert sum(t.seconds for t in search.trials) <= finished[-1] + 0.006  # whole milliseconds


def test_what_has_not_finished_is_left_out() -> None:
    trials = searched(lambda _: 1.0, 3)
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
    search.tell(second, Outcome(Status.COMPLETE, 2.0, 0.0, 1.5))
    search.tell(first, Outcome(Status.FAILED, math.nan, 0.0, 4.0))
    (read,) = curves(search.trials, table="t", method="m")
    assert [t.config for t in read.trials] == [second.config, first.config]
    assert [(t.seconds, t.finished) for t in read.trials] == [(1.5, 1.5), (4.0, 4.0)]
    assert read.left_out == ("1 running trial left out.",)


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


# --- tasks -----------------------------------------------------------------------------------


def test_trials_are_a_task() -> None:
    trials = Trials()
    run(mixed, trials, 40)
    task = read_task(trials, name="iris", space=SPACE)
    assert (task.name, task.framework, len(task)) == ("iris", "hyperopt", 40)
    kinds = set()
    for i, document in enumerate(trials.trials):
        vals = {k: v[0] for k, v in document["misc"]["vals"].items() if v}
        expected: dict[str, Any] = {"model": ["svm", "forest"][vals["model"]]}
        if "C" in vals:
            expected["C"] = vals["C"]
        else:
            expected |= {"n": int(vals["n"]), "depth": [None, 5][vals["depth"]]}
        assert task.configurations[i] == expected
        result = document["result"]
        kinds.add(int(task.status[i]))
        if result["status"] == STATUS_OK and math.isfinite(result["loss"]):
            assert (task.status[i], task.losses[i]) == (Status.COMPLETE, result["loss"])
        else:
            assert task.status[i] == Status.FAILED and math.isnan(task.losses[i])
        if "seconds" in result:
            assert task.seconds[i] == 9.0
    assert kinds == {Status.COMPLETE, Status.FAILED}
    assert task.times == pytest.approx(task.times[0], abs=60.0)


def test_trials_of_a_configuration_space() -> None:
    space = ConfigurationSpace({"m": ["a", "b"], "x": (0.0, 1.0), "n": (1, 9)})
    trials = Trials()
    run(lambda values: values["x"], trials, 5, expression(space))
    task = read_task(trials, name="t", space=space)
    for i, document in enumerate(trials.trials):
        vals = document["misc"]["vals"]
        values = {"m": "ab"[vals["m"][0]], "x": vals["x"][0], "n": int(vals["n"][0])}
        assert task.configurations[i] == values


def test_what_trials_do_not_know_is_asked_for() -> None:
    wrong: Any = []
    trials = Trials()
    run(loss_of, trials, 2)
    with pytest.raises(ValueError, match="pass name="):
        read_task(trials, space=SPACE)
    with pytest.raises(ValueError, match="pass space="):
        read_task(trials, name="t")
    with pytest.raises(TypeError, match=r"reads hyperopt\.Trials"):
        read_task(wrong, name="t", space=SPACE)
    with pytest.raises(ValueError, match="not of this search space"):
        read_task(trials, name="t", space=ConfigurationSpace({"other": (0.0, 1.0)}))
    assert (
        read_task(
            write_history(read_task(trials, name="t", space=SPACE), SPACE, exp_key="e"),
            space=SPACE,
        ).name
        == "e"
    )


def test_trials_of_several_tasks_are_a_data_set() -> None:
    wrong: Any = Trials()
    named = {"a": Trials(), "b": Trials()}
    for trials in named.values():
        run(mixed, trials, 8)
    data = meta_dataset_from_trials(named, SPACE, meta_features={"a": {"rows": 3.0}})
    assert [task.name for task in data.tasks] == ["a", "b"] and len(data) == 16
    assert data.tasks[0].meta_features == {"rows": 3.0}
    own = {"a": SPACE, "b": SPACE}
    np.testing.assert_array_equal(meta_dataset_from_trials(named, own).vectors, data.vectors)
    with pytest.raises(TypeError, match="name of the task"):
        meta_dataset_from_trials(wrong, SPACE)


# --- recording -------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [True, False])
def test_every_trial_is_recorded_once(given: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    store, trials, clock = FakeStore(), Trials(), Clock(monkeypatch)

    def slow(point: Any) -> Any:
        clock.sleep(0.25)
        return mixed(point)

    recorded = record(
        slow, store, "iris", space=SPACE if given else None, meta_features={"rows": 150.0}
    )
    run(recorded, trials, 30)
    plain = Trials()
    run(mixed, plain, 30)
    assert trials.losses() == plain.losses()  # the search does not notice
    whole = read_task(trials, name="iris", space=SPACE)
    assert len(store.single) == 30
    for i, told in enumerate(store.single):
        assert told.name == "iris" and told.meta_features == {"rows": 150.0}
        assert told.configurations[0] == whole.configurations[i]
        np.testing.assert_array_equal(told.losses[0], whole.losses[i])
        assert told.status[0] == whole.status[i]
        # told by the objective, or those of its call, by a finer clock than Hyperopt's
        assert told.seconds[0] == (9.0 if whole.seconds[i] == 9.0 else 0.25)
    assert record(mixed, store, "iris").add(trials, SPACE) == 0
    assert (recorded.n_recorded, recorded.n_lost) == (30, 0)
    run(recorded, trials, 33)  # taken up again
    assert len(store.runs) == 33


def test_an_exception_is_a_failed_trial_and_goes_on_its_way() -> None:
    def raises(point: dict[str, Any]) -> float:
        raise RuntimeError("on purpose")

    store = FakeStore()
    with pytest.raises(RuntimeError, match="on purpose"):
        run(record(raises, store, "t", SPACE), Trials(), 5)
    (told,) = store.single
    assert told.status[0] == Status.FAILED and told.seconds[0] >= 0
    run(record(raises, store, "t", SPACE), Trials(), 3, catch_eval_exceptions=True)
    assert len(store.runs) == 4


def test_an_objective_that_asks_for_the_graph_gets_it() -> None:
    def asks(expr: Any, memo: Any, ctrl: Any) -> float:
        return float(ctrl.current_trial["tid"])

    asks.fmin_pass_expr_memo_ctrl = True  # type: ignore[attr-defined]
    store, trials = FakeStore(), Trials()
    run(record(asks, store, "t", SPACE), trials, 3)
    assert [told.losses[0] for told in store.single] == [0.0, 1.0, 2.0] == trials.losses()


def test_boasf_is_recorded_too() -> None:
    store, trials = FakeStore(), Trials()
    boasf_fmin(
        record(loss_of, store, "t"),
        SPACE,
        max_evals=8,
        trials=trials,
        rstate=np.random.default_rng(0),
        show_progressbar=False,
    )
    assert len(store.runs) == 8 == len(trials)


def test_trials_of_different_spaces_are_different_searches() -> None:
    store = FakeStore()
    run(record(lambda x: x, store, "t"), Trials(), 2, hp.uniform("x", 0, 1))
    run(record(lambda x: x, store, "t"), Trials(), 2, hp.uniform("x", 0, 2))
    assert len({search for _, search, _ in store.runs}) == 2


def test_a_space_that_cannot_be_translated_is_told_as_early_as_possible() -> None:
    low = hp.uniform("a", 0, 1)
    space = {"a": low, "b": hp.uniform("b", 0, low + 1)}
    with pytest.raises(ValueError, match="high of 'b' depends"):
        record(lambda point: point["b"], FakeStore(), "t", space)
    recorded, trials = record(lambda point: point["b"], FakeStore(), "t"), Trials()
    run(recorded, trials, 3, space)
    assert len(trials) == 3 and recorded.n_lost == 3


def test_wrong_arguments_are_told_at_once() -> None:
    store: Any = FakeStore()
    wrong: Any = 3
    with pytest.raises(TypeError, match="objective must be callable"):
        record(wrong, store, "t")
    with pytest.raises(TypeError, match="task must be"):
        record(loss_of, store, wrong)
    with pytest.raises(TypeError, match="store must be a MetaStore"):
        record(loss_of, wrong, "t")
    with pytest.raises(ValueError, match="pass space="):
        record(loss_of, store, "t").add(Trials())
