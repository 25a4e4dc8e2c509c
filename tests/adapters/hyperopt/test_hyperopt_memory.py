"""Trials as searches and as tasks of a memory, and recorded while ``fmin`` continues."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import (
    ADAPTER,
    auto,
    boasf_fmin,
    curves,
    initial_trials,
    meta_dataset_from_trials,
    record,
)
from automl_plugins.adapters.hyperopt.expressions import expression
from ConfigSpace import ConfigurationSpace
from effort import Clock
from hyperopt import STATUS_FAIL, STATUS_OK, Trials, hp, rand
from hyperopt.base import trials_from_docs
from hyperopt_runs import minimise, values_of
from known_runs import FakeStore

from automl_plugins.records.trial import Status

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


def search(fn: Any, n: int, space: Any = SPACE, **options: Any) -> Trials:
    seed = len(options.get("trials", ()))
    return minimise(fn, space, rand.suggest, n, seed=seed, **options)


# --- searches ---------------------------------------------------------------------------------


def test_what_fmin_did_is_read() -> None:
    def objective(config: dict[str, Any]) -> float:
        time.sleep(0.003)
        return float(config["x"])

    space = {"x": hp.uniform("x", 0, 1), "m": hp.choice("m", [{"y": hp.randint("y", 3)}, 7])}
    trials = search(objective, 6, space)
    (found,) = curves(trials, table="t", method="m", seed=4)
    assert (found.table, found.method, found.seed) == ("t", "m", 4)
    assert found.space is None and found.left_out == ()
    assert [t.loss for t in found.trials] == trials.losses()
    assert [t.config["x"] for t in found.trials] == trials.losses()
    for trial in found.trials:
        assert trial.status == Status.COMPLETE and trial.step is None
        assert trial.config["m"] in (0, 1)  # the index of the option
        assert ("y" in trial.config) == (trial.config["m"] == 0)
        assert all(type(v) in (int, float) for v in trial.config.values())
        assert trial.seconds >= 0.002
    finished = [t.finished for t in found.trials]
    assert finished == sorted(finished) and finished[-1] >= 0.012
    assert sum(t.seconds for t in found.trials) <= finished[-1] + 0.006  # whole milliseconds
    trials._dynamic_trials[1]["state"], trials._dynamic_trials[2]["state"] = 1, 0
    (found,) = curves(trials, table="t", method="m")
    assert len(found.trials) == 4
    assert found.left_out == ("1 new trial left out.", "1 running trial left out.")


def test_labels_must_be_given_and_files_are_not_unpickled(tmp_path: Path) -> None:
    for given in ({}, {"table": "t"}, {"method": "m"}):
        with pytest.raises(ValueError, match="pass table= and method="):
            curves(Trials(), **given)
    assert curves(Trials(), table="", method="")[0].trials == []
    files: list[Any] = ["trials.pkl", Path("trials.pkl")]
    for source in files:
        with pytest.raises(TypeError, match="pickles"):
            curves(source, table="t", method="m")
    assert not ADAPTER.owns(str(tmp_path))


# --- tasks -----------------------------------------------------------------------------------


def test_trials_are_a_task() -> None:
    trials = search(mixed, 40)
    task = read_task(trials, name="iris", space=SPACE)
    assert (task.name, task.framework, len(task)) == ("iris", "hyperopt", 40)
    assert set(task.status.tolist()) == {Status.COMPLETE, Status.FAILED}
    for i, document in enumerate(trials.trials):
        drawn, result = values_of(document), document["result"]
        expected: dict[str, Any] = {"model": ["svm", "forest"][drawn["model"]]}
        if "C" in drawn:
            expected["C"] = drawn["C"]
        else:
            expected |= {"n": int(drawn["n"]), "depth": [None, 5][drawn["depth"]]}
        assert task.configurations[i] == expected
        if result["status"] == STATUS_OK and math.isfinite(result["loss"]):
            assert (task.status[i], task.losses[i]) == (Status.COMPLETE, result["loss"])
        else:
            assert task.status[i] == Status.FAILED and math.isnan(task.losses[i])
        assert "seconds" not in result or task.seconds[i] == 9.0
    assert task.times == pytest.approx(task.times[0], abs=60.0)


def test_trials_of_a_configuration_space() -> None:
    space = ConfigurationSpace({"m": ["a", "b"], "x": (0.0, 1.0), "n": (1, 9)})
    trials = search(lambda values: values["x"], 5, expression(space))
    task = read_task(trials, name="t", space=space)
    for i, document in enumerate(trials.trials):
        drawn = values_of(document)
        values = {"m": "ab"[drawn["m"]], "x": drawn["x"], "n": int(drawn["n"])}
        assert task.configurations[i] == values


def test_what_trials_do_not_know_is_asked_for() -> None:
    trials, wrong = search(loss_of, 2), []  # type: tuple[Trials, Any]
    with pytest.raises(ValueError, match="pass name="):
        read_task(trials, space=SPACE)
    with pytest.raises(ValueError, match="pass space="):
        read_task(trials, name="t")
    nameless: list[Any] = [trials, [trials]]
    for memory in nameless:
        with pytest.raises(TypeError, match=r"pass memory=\{name of the task: its trials\}"):
            initial_trials(SPACE, memory=memory)
    with pytest.raises(TypeError, match=r"takes hyperopt\.Trials"):
        read_task(wrong, name="t", space=SPACE)
    with pytest.raises(ValueError, match="not of this search space"):
        read_task(trials, name="t", space=ConfigurationSpace({"other": (0.0, 1.0)}))
    named = write_history(read_task(trials, name="t", space=SPACE), SPACE, exp_key="e")
    assert read_task(named, space=SPACE).name == "e"


def test_trials_of_several_tasks_are_a_data_set() -> None:
    wrong: Any = Trials()
    named = {name: search(mixed, 8) for name in "ab"}
    data = meta_dataset_from_trials(named, SPACE, meta_features={"a": {"rows": 3.0}})
    assert [task.name for task in data.tasks] == ["a", "b"] and len(data) == 16
    assert data.tasks[0].meta_features == {"rows": 3.0}
    own = {"a": SPACE, "b": SPACE}
    np.testing.assert_array_equal(meta_dataset_from_trials(named, own).vectors, data.vectors)
    with pytest.raises(TypeError, match="name of the task"):
        meta_dataset_from_trials(wrong, SPACE)
    with pytest.raises(TypeError, match="name of the task: its trials"):
        minimise(mixed, SPACE, auto(memory=[Trials()]), 1)


def test_spaces_by_name_may_be_of_more_tasks() -> None:
    spaces = {"a": hp.uniform("u", 0, 1), "b": hp.uniform("v", 0, 1)}
    one = minimise(lambda u: u, spaces["a"], rand.suggest, 5)
    assert list(meta_dataset_from_trials({"a": one}, spaces).space) == ["u"]


def test_parts_of_one_space_may_be_called_as_the_tasks_are() -> None:
    space = {"a": hp.uniform("u", 0, 1), "b": hp.uniform("v", 0, 1), "c": 3}
    named = {
        name: minimise(lambda p: p["a"] + p["b"], space, rand.suggest, 5, seed=seed)
        for seed, name in enumerate("ab")
    }
    for trials in (named, {"a": named["a"]}):
        assert list(meta_dataset_from_trials(trials, space).space) == ["u", "v"]
    with pytest.raises(ValueError, match=r"label 'v'; the search space has u\. Pass the space of"):
        meta_dataset_from_trials(named, {"a": space["a"], "b": space["a"]})


# --- recording -------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [True, False])
def test_the_search_does_not_notice_that_it_is_recorded(
    given: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, clock = FakeStore(), Clock(monkeypatch)

    def slow(point: Any) -> Any:
        clock.sleep(0.25)
        return mixed(point)

    recorded = record(slow, store, "iris", space=SPACE if given else None)
    trials = search(recorded, 30)
    assert trials.losses() == search(mixed, 30).losses()
    whole = read_task(trials, name="iris", space=SPACE)
    for i, told in enumerate(store.single):
        assert told.configurations[0] == whole.configurations[i]
        np.testing.assert_array_equal(told.losses[0], whole.losses[i])
        # told by the objective, or those of its call, by a finer clock than Hyperopt's
        assert told.seconds[0] == (9.0 if whole.seconds[i] == 9.0 else 0.25)
    assert record(mixed, store, "iris").add(trials, SPACE) == 0 and len(store.single) == 30
    search(recorded, 33, trials=trials)  # taken up again
    assert len(store.runs) == 33


def test_an_exception_is_a_failed_trial_and_goes_on_its_way() -> None:
    def raises(point: dict[str, Any]) -> float:
        raise RuntimeError("on purpose")

    store = FakeStore()
    with pytest.raises(RuntimeError, match="on purpose"):
        search(record(raises, store, "t", SPACE), 5)
    (told,) = store.single
    assert told.status[0] == Status.FAILED and told.seconds[0] >= 0
    search(record(raises, store, "t", SPACE), 3, catch_eval_exceptions=True)
    assert len(store.runs) == 4


@pytest.mark.parametrize("loss", [True, np.bool_(True), "1", np.array(1)])
def test_a_loss_is_recorded_as_hyperopt_reads_it(loss: Any) -> None:
    store = FakeStore()
    trials = search(record(lambda _: {"status": STATUS_OK, "loss": loss}, store, "t", SPACE), 1)
    (told,) = store.single
    assert trials.losses() == [1.0] == [*told.losses] and told.status[0] == Status.COMPLETE


def test_an_objective_that_asks_for_the_graph_gets_it() -> None:
    def asks(expr: Any, memo: Any, ctrl: Any) -> float:
        return float(ctrl.current_trial["tid"])

    asks.fmin_pass_expr_memo_ctrl = True  # type: ignore[attr-defined]
    store = FakeStore()
    trials = search(record(asks, store, "t", SPACE), 3)
    assert [told.losses[0] for told in store.single] == [0.0, 1.0, 2.0] == trials.losses()


def test_a_recorded_objective_needs_the_trial() -> None:
    with pytest.raises(TypeError, match="fmin without pass_expr_memo_ctrl=False"):
        search(record(loss_of, FakeStore(), "t"), 1, pass_expr_memo_ctrl=False)


def test_boasf_is_recorded_too() -> None:
    store, trials = FakeStore(), Trials()
    options: dict[str, Any] = {"rstate": np.random.default_rng(0), "verbose": False}
    boasf_fmin(record(loss_of, store, "t"), SPACE, max_evals=8, trials=trials, **options)
    assert len(store.runs) == 8 == len(trials)
    told = r"an objective of record .* afterwards, by record\(\.\.\.\)\.add\(trials, space\)"
    with ThreadPoolExecutor(1) as threads, pytest.raises(ValueError, match=told):
        boasf_fmin(record(loss_of, store, "u"), SPACE, max_evals=8, executor=threads)


def test_trials_of_different_spaces_are_different_searches() -> None:
    store = FakeStore()
    for high in (1, 2):
        search(record(lambda x: x, store, "t"), 2, hp.uniform("x", 0, high))
    assert len({name for _, name, _ in store.runs}) == 2


def test_a_space_with_labels_that_were_never_drawn_is_refused() -> None:
    store, drawn = FakeStore(), {"x": hp.uniform("x", 0, 1)}
    wider = drawn | {"y": hp.choice("y", [0, hp.uniform("z", 0, 1)])}
    trials = search(record(lambda point: point["x"], store, "t"), 3, drawn)
    with pytest.raises(ValueError, match=r"No trial has a value for 'y'.*pass the space of these"):
        record(loss_of, store, "t").add(trials, wider)
    recorded = record(lambda point: point["x"], store, "t", wider)
    assert len(search(recorded, 2, drawn)) == 2 == recorded.n_lost
    assert len(store.runs) == 3
    # A search that was continued in a wider space has drawn all labels.
    search(lambda point: point["x"], 9, wider, trials=trials)
    assert record(loss_of, store, "u").add(trials, wider) == 9


def test_times_that_came_back_as_texts_are_unknown_starts() -> None:
    """As from trials that were kept as JSON."""
    store, trials = FakeStore(), search(loss_of, 3)
    documents = [{**d, "book_time": str(d["book_time"])} for d in trials.trials]
    recorded, kept = record(loss_of, store, "t", SPACE), trials_from_docs(documents)
    assert recorded.add(kept) == 3 == len(store.runs) and recorded.add(kept) == 0


def test_an_option_that_was_never_drawn_is_no_other_space() -> None:
    store, trials = FakeStore(), Trials()
    point = {"model": 0, "C": 1.0}
    boasf_fmin(
        loss_of, SPACE, max_evals=1, points_to_evaluate=[point], trials=trials, verbose=False
    )
    assert record(loss_of, store, "t").add(trials, SPACE) == 1 == len(store.runs)


def test_a_space_that_cannot_be_translated_is_told_as_early_as_possible() -> None:
    low = hp.uniform("a", 0, 1)
    space = {"a": low, "b": hp.uniform("b", 0, low + 1)}
    with pytest.raises(ValueError, match="high of 'b' depends"):
        record(lambda point: point["b"], FakeStore(), "t", space)
    recorded = record(lambda point: point["b"], FakeStore(), "t")
    assert len(search(recorded, 3, space)) == 3 and recorded.n_lost == 3


def test_draws_of_a_rounded_logarithm_fit_their_own_space(
    recwarn: pytest.WarningsRecorder,
) -> None:
    where = {"q": hp.qloguniform("q", -3, 4, 1)}  # 0 is among its draws
    trials = search(lambda values: values["q"], 10, where)
    drawn = [document["misc"]["vals"]["q"][0] for document in trials.trials]
    assert 0.0 in drawn
    written = write_history(read_task(trials, name="t", space=where), where)
    assert [document["misc"]["vals"]["q"][0] for document in written.trials] == drawn
    assert not recwarn


def test_wrong_arguments_are_told_at_once() -> None:
    store, wrong = FakeStore(), 3  # type: tuple[Any, Any]
    with pytest.raises(TypeError, match="objective must be callable"):
        record(wrong, store, "t")
    with pytest.raises(TypeError, match="task must be"):
        record(loss_of, store, wrong)
    with pytest.raises(ValueError, match="pass space="):
        record(loss_of, store, "t").add(Trials())
    for given in (("trials.pkl",), (SPACE, Trials())):
        with pytest.raises(TypeError, match=r"add takes hyperopt\.Trials"):
            record(loss_of, store, "t").add(*given)
