"""``boasf_fmin`` behaves as ``fmin``: stops, files, points, exceptions, progress, executors."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import _run, arm_report, boasf_fmin
from automl_plugins.adapters.hyperopt._arms import arms_of
from automl_plugins.adapters.hyperopt._pulls import Situation, read_pulls
from automl_plugins.adapters.hyperopt.trials import note_of
from effort import Clock
from hyperopt import (
    JOB_STATE_DONE,
    JOB_STATE_ERROR,
    JOB_STATE_NEW,
    JOB_STATE_RUNNING,
    STATUS_FAIL,
    STATUS_OK,
    Domain,
    Trials,
    hp,
    rand,
    space_eval,
)
from hyperopt.early_stop import no_progress_loss
from hyperopt.exceptions import AllTrialsFailed, InvalidAnnotatedParameter, InvalidLoss
from hyperopt.fmin import fmin_pass_expr_memo_ctrl, generate_trials_to_calculate
from hyperopt_runs import configs, minimise, values_of


def space() -> Any:
    return hp.choice(
        "model",
        [
            {"type": "svm", "C": hp.uniform("C", 0, 1)},
            {"type": "rf", "depth": hp.uniformint("depth", 1, 50)},
            {"type": "nb"},
        ],
    )


def loss_of(config: dict[str, Any]) -> float:
    return float(config.get("C", config.get("depth", 30) / 50))


def slow(config: dict[str, Any]) -> dict[str, Any]:
    time.sleep(0.01)
    return {"status": STATUS_OK, "loss": loss_of(config), "took": 2.0, "attachments": {"a": b"b"}}


def failing(config: dict[str, Any]) -> float:
    if config["type"] == "rf":
        raise ZeroDivisionError("on purpose")
    return loss_of(config)


def run(fn: Any = loss_of, **options: Any) -> Any:
    quiet: dict[str, Any] = {"show_progressbar": False, "return_argmin": False}
    settings = {"max_evals": 15, "inner": "random", "rstate": np.random.default_rng(0)}
    settings = settings | quiet | options
    return boasf_fmin(fn, settings.pop("space", space()), **settings)


# --- what is returned ---------------------------------------------------------------------


def test_results_are_those_of_fmin_for_trials_of_the_users_own_kind() -> None:
    class Mine(Trials):  # type: ignore[misc]
        inserted = 0

        def insert_trial_docs(self, docs: Any) -> Any:
            self.inserted += len(docs)
            return super().insert_trial_docs(docs)

    trials = Mine(exp_key="mine")
    best = run(return_argmin=True, trials=trials)
    assert best == trials.argmin
    point = run(trials=trials)  # the budget is spent: the same trials
    assert point == space_eval(space(), best)
    assert loss_of(point) == min(trials.losses())
    assert trials.inserted == len(trials) == 15
    assert {d["exp_key"] for d in trials.trials} == {"mine"}


def test_asynchronous_trials_are_refused() -> None:
    class Remote(Trials):  # type: ignore[misc]
        asynchronous = True

    with pytest.raises(ValueError, match=r"Remote evaluates .*executor=.*algo=bandit"):
        run(trials=Remote())


def test_the_environment_may_set_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(rstate: Any) -> list[Any]:
        trials = Trials()
        run(trials=trials, rstate=rstate)
        return configs(trials)

    monkeypatch.setenv("HYPEROPT_FMIN_SEED", "7")
    assert drawn(None) == drawn(np.random.default_rng(7))
    monkeypatch.delenv("HYPEROPT_FMIN_SEED")
    assert drawn(None) != drawn(None)
    with pytest.raises(TypeError, match="default_rng"):
        drawn(7)


def annotated(x: hp.choice("x", [0.5, hp.uniform("y", 0, 1)])) -> float:  # type: ignore[valid-type]
    return float(x)


def test_the_space_may_be_in_the_type_hints() -> None:
    # With postponed annotations hints are texts: give them as they are without.
    annotated.__annotations__ = {"x": hp.choice("x", [0.5, hp.uniform("y", 0, 1)])}
    best = run(annotated, space="annotated", return_argmin=True)
    assert set(best) <= {"x", "y"}
    annotated.__annotations__ = {"x": float}
    with pytest.raises(InvalidAnnotatedParameter):
        run(annotated, space="annotated")


# --- stops --------------------------------------------------------------------------------


def test_loss_threshold_stops() -> None:
    trials = Trials()
    run(trials=trials, max_evals=200, loss_threshold=0.2)
    assert min(trials.losses()) < 0.2 <= min(trials.losses()[:-1])
    n = len(trials)
    run(trials=trials, max_evals=200, loss_threshold=0.2)
    assert len(trials) == n  # good enough already


def test_timeout_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    trials, clock = Trials(), Clock(monkeypatch)
    start = clock.now
    run(slow, trials=trials, max_evals=10_000, timeout=0.295)
    assert len(trials) == 30 and clock.now - start == pytest.approx(0.3)
    for wrong in (0, -1, True, "1"):
        with pytest.raises(Exception, match="timeout argument"):
            run(timeout=wrong)
    with pytest.raises(Exception, match="loss_threshold argument"):
        run(loss_threshold="0")


@pytest.mark.parametrize(
    ("seconds", "options", "warns"),
    [
        (0.2, {}, True),
        (2.0, {}, False),
        (0.2, {"timeout": 30}, False),
        (0.2, {"cost": "took"}, False),  # of any unit: the clock says nothing
        (0.2, {"budget_seconds": None, "max_evals": 15}, False),
    ],
)
def test_proposals_that_take_longer_than_the_budget_are_said_once(
    seconds: float,
    options: dict[str, Any],
    warns: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    Clock(monkeypatch)

    def propose(*arguments: Any) -> Any:
        time.sleep(1.0)
        return rand.suggest(*arguments)

    def objective(config: dict[str, Any]) -> dict[str, Any]:
        time.sleep(seconds)
        return {"loss": loss_of(config), "status": STATUS_OK, "took": seconds}

    run(objective, **({"max_evals": None, "budget_seconds": 10, "inner": propose} | options))
    said = [r.message for r in caplog.records if "the time of proposals" in r.message]
    assert len(said) == warns
    if warns:
        assert said[0].startswith("After 11 s evaluations have spent 2 s of the budget of 10 s")
        assert "timeout=10 ends the search by the clock" in said[0]


@pytest.mark.parametrize("n_workers", [1, 3])
@pytest.mark.parametrize("fails", ["nothing", "rf"])
def test_early_stop_survives_failed_trials(n_workers: int, fails: str) -> None:
    def some_fail(config: dict[str, Any]) -> dict[str, Any]:
        failed = config["type"] == fails
        return {"status": STATUS_FAIL} if failed else {"status": STATUS_OK, "loss": 1.0}

    trials = Trials()
    with ThreadPoolExecutor(n_workers) as pool:
        executor = pool if n_workers > 1 else None
        stop = no_progress_loss(6)
        run(some_fail, trials=trials, max_evals=60, early_stop_fn=stop, executor=executor)
    statuses = [result["status"] for result in trials.results]
    assert (STATUS_FAIL in statuses) == (fails == "rf") and len(statuses) < 60
    assert 6 <= statuses.count(STATUS_OK) <= 7 + n_workers
    assert {document["state"] for document in trials.trials} == {JOB_STATE_DONE}


def test_an_early_stop_that_raises_ends_the_search_and_loses_nothing() -> None:
    def raising(trials: Trials, *args: Any) -> tuple[bool, Any]:
        raise KeyError("on purpose")

    trials, meet, calls = Trials(), threading.Barrier(3), []

    def together(config: dict[str, Any]) -> float:
        calls.append(config)
        meet.wait(30)  # all end at once
        return loss_of(config)

    with ThreadPoolExecutor(3) as workers, pytest.raises(KeyError, match="on purpose"):
        run(together, trials=trials, executor=workers, early_stop_fn=raising)
    assert len(calls) == 3
    assert [d["state"] for d in trials._dynamic_trials] == [JOB_STATE_DONE] * 3


def test_early_stop_keeps_its_arguments_as_in_fmin() -> None:
    calls: list[tuple[int, tuple[Any, ...]]] = []

    def stop(trials: Trials, *args: Any) -> tuple[bool, list[int]]:
        calls.append((len(trials.trials), args))
        return len(calls) == 4, [len(calls)]

    trials = Trials()
    run(trials=trials, early_stop_fn=stop)
    assert len(trials) == 4
    assert calls == [(1, ()), (2, (1,)), (3, (2,)), (4, (3,))]


# --- files --------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # fmin leaves it open
def test_trials_are_saved_and_the_search_goes_on_from_the_file(tmp_path: Path) -> None:
    path, whole, left = tmp_path / "trials.pkl", Trials(), iter(range(6))

    def killed(config: dict[str, Any]) -> float:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return loss_of(config)

    run(trials=whole)
    with pytest.raises(KeyboardInterrupt):
        run(killed, trials_save_file=str(path))
    assert len(pickle.loads(path.read_bytes()).trials) == 6
    run(trials_save_file=str(path))
    trials = pickle.loads(path.read_bytes())
    assert configs(trials) == configs(whole)
    # fmin reads it as well
    minimise(loss_of, space(), rand.suggest, 18, trials=trials, trials_save_file=str(path))
    assert len(pickle.loads(path.read_bytes()).trials) == 18


def test_a_crash_while_trials_are_saved_loses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, dump, calls = tmp_path / "trials.pkl", _run.dump, iter("123")

    def crashing(trials: Trials, file: Any) -> None:
        if next(calls, None) is None:
            file.write(b"\x80")
            raise MemoryError
        dump(trials, file)

    monkeypatch.setattr(_run, "dump", crashing)
    with pytest.raises(MemoryError):
        run(trials_save_file=str(path), max_evals=8)
    assert len(pickle.loads(path.read_bytes()).trials) == 3


# --- points -------------------------------------------------------------------------------

POINTS = [{"model": 1, "depth": 7}, {"model": 0, "C": 0.25, "depth": 3}]


def test_trials_that_are_all_given_have_a_report() -> None:
    """As many as the budget, so that nothing is proposed."""
    given, waiting = Trials(), generate_trials_to_calculate(POINTS[:2])
    run(trials=given, points_to_evaluate=POINTS[:2], max_evals=2)
    run(trials=waiting, max_evals=2)
    for trials in (given, waiting):
        report = arm_report(trials).to_frame()
        assert len(trials) == report["pulls"].sum() == 2


@pytest.mark.parametrize("before", [0, 4])
def test_points_are_evaluated_first(before: int) -> None:
    trials, seen = Trials(), list[Any]()
    if before:
        run(trials=trials, max_evals=before)

    def objective(config: dict[str, Any]) -> float:
        seen.append(config)
        return loss_of(config)

    run(objective, trials=trials, points_to_evaluate=POINTS, max_evals=15)
    assert seen[:2] == [{"type": "rf", "depth": 7}, {"type": "svm", "C": 0.25}]
    assert len(seen) == 15 - before
    assert configs(trials)[before:][:2] == [POINTS[0], {"model": 0, "C": 0.25}]
    if not before:
        assert arm_report(trials, space()).records.arm[:2].tolist() == [1, 0]
    # Called again they are there already.
    run(objective, trials=trials, points_to_evaluate=POINTS, max_evals=16)
    assert len(trials) == 16
    run(trials=None, points_to_evaluate=POINTS, max_evals=3)


def test_trials_made_of_points_are_evaluated_first() -> None:
    trials = generate_trials_to_calculate([{"model": 1, "depth": 7.0}, {"model": 2}])
    run(trials=trials, max_evals=12)
    assert trials.losses()[:2] == [7 / 50, 0.6] and len(trials) == 12
    assert all(set(d["misc"]["vals"]) == {"model", "C", "depth"} for d in trials.trials)


def test_a_point_that_is_given_twice_is_evaluated_twice_with_and_without_a_stop() -> None:
    whole, stopped = Trials(), Trials()
    options = {"points_to_evaluate": [POINTS[0], POINTS[0]], "max_evals": 6}
    run(trials=whole, **options)
    run(trials=stopped, early_stop_fn=lambda trials: (True, ()), **options)
    run(trials=stopped, **options)
    assert configs(stopped) == configs(whole)
    assert configs(whole)[:2] == [POINTS[0], POINTS[0]]


def test_points_with_labels_of_other_options_are_there_already() -> None:
    point = {"model": 0, "C": 0.25, "depth": 7.0}
    trials = generate_trials_to_calculate([point])
    run(trials=trials, points_to_evaluate=[point], max_evals=4)
    assert [values.get("C") for values in configs(trials)].count(0.25) == 1


def test_trials_of_another_space_are_refused(tmp_path: Path) -> None:
    path, other = (
        str(tmp_path / "trials.pkl"),
        {"space": hp.choice("k", [{"x": hp.uniform("x", 0, 1)}, {}])},
    )
    run(max_evals=4, trials_save_file=path)
    before = Path(path).read_bytes()
    with pytest.raises(ValueError, match=r"Trial 0 has the labels .*; the search space has k, x"):
        run(lambda c: 1.0, max_evals=9, trials_save_file=path, **other)
    assert Path(path).read_bytes() == before


def test_trials_need_not_be_refreshed() -> None:
    whole, known = Trials(), Trials()
    run(trials=whole)
    known._insert_trial_docs(whole.trials[:6])
    run(trials=known)
    assert configs(known) == configs(whole) and len(known) == 15


@pytest.mark.parametrize("content", [b"", b"some text", pickle.dumps({"a": 1})])
def test_a_file_without_trials_is_refused_by_its_name(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "trials.pkl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"trials\.pkl' exists, but does not contain trials"):
        run(trials_save_file=str(path))
    assert path.read_bytes() == content
    calls: list[Any] = []
    with pytest.raises(ValueError, match=r"there is no folder '.*nowhere'"):
        run(calls.append, trials_save_file=str(tmp_path / "nowhere" / "trials.pkl"))
    with pytest.raises(ValueError, match="is a folder: name a file in it"):
        run(calls.append, trials_save_file=str(tmp_path), trials=Trials())
    with pytest.raises(TypeError, match=r"boasf_fmin takes hyperopt\.Trials"):
        run(calls.append, trials=[])
    assert not calls


def test_more_points_than_evaluations_are_refused_or_left() -> None:
    with pytest.raises(ValueError, match="2 points, but max_evals is 1"):
        run(points_to_evaluate=POINTS, max_evals=1)
    trials = generate_trials_to_calculate([{"model": 1, "depth": float(i)} for i in range(1, 9)])
    run(trials=trials, max_evals=5)
    assert [d["state"] for d in trials.trials] == [JOB_STATE_DONE] * 5 + [JOB_STATE_NEW] * 3


@pytest.mark.parametrize("label", ["r", "s"])
def test_a_point_is_a_value_and_not_its_logarithm(label: str) -> None:
    options = [{"r": hp.loguniform("r", -5, 0)}, {"s": hp.lognormal("s", 0, 1)}]
    point = {"model": ["r", "s"].index(label), label: -1.0}
    with pytest.raises(ValueError, match=f"'{label}' must be above 0, got -1.0"):
        run(space=hp.choice("model", options), points_to_evaluate=[point])
    rounded = [{"q": hp.qloguniform("q", -3, 4, 1)}, {"n": hp.normal("n", 0, 1)}]
    points = [{"model": 0, "q": 0.0}, {"model": 1, "n": -1.0}]
    trials = Trials()
    run(
        lambda config: 0.0,
        space=hp.choice("model", rounded),
        points_to_evaluate=points,
        trials=trials,
    )
    assert configs(trials)[:2] == points


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ({"model": 0}, "has no value for 'C'"),
        ({"C": 0.5}, "has no value for 'model'"),
        ({"model": 0, "C": 0.5, "c": 1}, "no label 'c'; there are model, C, depth"),
        ({"model": 7}, "'model' must be the index of an option, one of 0, 1, 2, got 7"),
        ({"model": "svm"}, "'model' must be the index of an option"),
        ({"model": True}, "'model' must be the index of an option"),
        ({"model": 0, "C": "a"}, "'C' must be a finite number, got 'a'"),
        ({"model": 0, "C": None}, "'C' must be a finite number, got None"),
        ({"model": 1, "depth": [3]}, r"'depth' must be a finite number, got \[3\]"),
        ({"model": 0, "C": float("nan")}, "'C' must be a finite number, got nan"),
    ],
)
def test_points_that_are_none_of_the_space_are_refused(point: Any, message: str) -> None:
    trials = Trials()
    with pytest.raises(ValueError, match=message):
        run(points_to_evaluate=[point], trials=trials)
    assert not trials._dynamic_trials


def test_a_point_outside_a_list_is_refused() -> None:
    with pytest.raises(TypeError, match=r"points_to_evaluate takes a list of points, each {lab"):
        run(points_to_evaluate={"model": 1, "depth": 7})


def test_an_index_may_be_written_as_a_float() -> None:
    trials = Trials()
    run(points_to_evaluate=[{"model": 1.0, "depth": np.int64(7)}], max_evals=3, trials=trials)
    assert configs(trials)[0] == {"model": 1, "depth": 7}


def test_trials_with_foreign_values_can_be_continued() -> None:
    trials = generate_trials_to_calculate([{"model": 0, "C": "a"}])
    run(trials=trials, max_evals=8, catch_eval_exceptions=True)
    states = [document["state"] for document in trials._dynamic_trials]
    assert states == [JOB_STATE_ERROR] + [JOB_STATE_DONE] * 7


@pytest.mark.parametrize("return_argmin", [True, False])
def test_a_search_whose_trials_all_raise_has_no_best(return_argmin: bool) -> None:
    def raising(config: Any) -> float:
        raise ArithmeticError

    with pytest.raises(AllTrialsFailed):
        boasf_fmin(
            *(raising, space()),
            max_evals=5,
            catch_eval_exceptions=True,
            return_argmin=return_argmin,
            rstate=np.random.default_rng(0),
            verbose=False,
        )


@pytest.mark.parametrize("executor", [4, dict])
def test_what_is_no_executor_is_refused(executor: Any) -> None:
    trials = Trials()
    error: Any = TypeError if executor == 4 else AttributeError
    with pytest.raises(error, match=r"submit|executor must be an executor of concurrent\.futures"):
        run(executor=executor, n_workers=2, trials=trials)
    assert all(d["state"] != JOB_STATE_RUNNING for d in trials._dynamic_trials)


def test_an_executor_that_was_shut_down_leaves_no_running_trial() -> None:
    trials, executor = Trials(), ThreadPoolExecutor(2)
    executor.shutdown()
    with pytest.raises(RuntimeError, match="after shutdown"):
        run(executor=executor, trials=trials)
    assert [d["state"] for d in trials._dynamic_trials] == [JOB_STATE_NEW]


# --- exceptions ---------------------------------------------------------------------------


@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor(2)])
def test_an_exception_ends_the_search_unless_it_is_caught(executor: Any) -> None:
    trials = Trials()
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        run(failing, trials=trials, executor=executor)
    assert sum("error" in d["misc"] for d in trials._dynamic_trials) >= 1
    assert JOB_STATE_RUNNING not in {d["state"] for d in trials._dynamic_trials}
    trials = Trials()
    run(failing, trials=trials, executor=executor, catch_eval_exceptions=True)
    assert len(trials._dynamic_trials) == 15


@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor(1)])
def test_results_are_checked_as_fmin_does(executor: Any) -> None:
    with pytest.raises(InvalidLoss):
        run(lambda c: {"status": STATUS_OK}, executor=executor)


def test_the_objective_may_want_expr_memo_and_ctrl() -> None:
    @fmin_pass_expr_memo_ctrl  # type: ignore[untyped-decorator]
    def objective(expr: Any, memo: Any, ctrl: Any) -> dict[str, Any]:
        ctrl.attachments["seen"] = b"yes"
        return {"status": STATUS_OK, "loss": 0.5}

    trials = Trials()
    run(objective, trials=trials, max_evals=5)
    assert trials.trial_attachments(trials.trials[0])["seen"] == b"yes"
    with ThreadPoolExecutor(1) as executor, pytest.raises(ValueError, match="leave out executor"):
        run(objective, executor=executor)


# --- progress -----------------------------------------------------------------------------


def test_progress_is_shown_as_in_fmin(capsys: pytest.CaptureFixture[str]) -> None:
    run(show_progressbar=True)
    shown = capsys.readouterr()
    assert "15/15" in shown.err + shown.out and "best loss: 0." in shown.err + shown.out
    run(slow, max_evals=None, budget_seconds=30, cost="took", show_progressbar=True)
    shown = capsys.readouterr()
    assert "30.0/30.0 s" in shown.err and "best loss: 0." in shown.err
    run(show_progressbar=True, verbose=False)
    assert capsys.readouterr() == ("", "")


class Bars:
    """Progress contexts of one's own, and what they were told."""

    def __init__(self) -> None:
        self.postfix, self.shown = "", list[float]()
        self.opened = list[tuple[float, float]]()

    def update(self, n: float) -> None:
        self.shown.append(n)

    @contextmanager
    def __call__(self, initial: float, total: float) -> Iterator[Bars]:
        self.opened.append((initial, total))
        yield self


def test_progress_may_be_ones_own_and_ends_at_the_budget() -> None:
    trials, bars = Trials(), Bars()
    run(trials=trials, max_evals=6, show_progressbar=bars)
    run(trials=trials, max_evals=10, show_progressbar=bars)
    assert bars.opened == [(0, 6), (6, 10)] and sum(bars.shown) == 10
    assert bars.postfix.startswith("best loss: ")

    def overrunning(config: dict[str, Any]) -> dict[str, Any]:
        return {"loss": loss_of(config), "status": "ok", "took": 7.0}

    bars = Bars()
    run(overrunning, max_evals=None, budget_seconds=10, cost="took", show_progressbar=bars)
    assert sum(bars.shown) == 10.0


def test_progress_counts_trials_that_end_when_no_other_may_begin() -> None:
    bars = Bars()
    with ThreadPoolExecutor(4) as executor:
        run(max_evals=3, executor=executor, n_workers=4, show_progressbar=bars)
    assert sum(bars.shown) == 3 and "best loss: 0." in bars.postfix


# --- executors ----------------------------------------------------------------------------


def loky() -> Executor:
    from joblib.externals.loky import get_reusable_executor

    executor: Executor = get_reusable_executor(max_workers=1)  # slow to start
    return executor


@contextmanager
def dask() -> Iterator[Executor]:
    distributed = pytest.importorskip("dask.distributed")
    local = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(processes=False, **local) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client.get_executor()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")  # of this process
@pytest.mark.parametrize(
    "make", [partial(ThreadPoolExecutor, 2), partial(ProcessPoolExecutor, 2), loky, dask]
)
def test_any_executor_evaluates(make: Any) -> None:
    def objective(config: dict[str, Any]) -> dict[str, Any]:
        import time  # sent as it is written here: other processes may not find this file

        time.sleep(0.01)
        loss = float(config.get("C", config.get("depth", 30) / 50))
        return {"status": "ok", "loss": loss, "attachments": {"a": b"b"}}

    trials = Trials()
    with make() as executor:
        # The standard library sends functions by name.
        fn = slow if isinstance(executor, ProcessPoolExecutor) else objective
        run(fn, trials=trials, executor=executor, n_workers=2)
    assert len(trials) == 15 and set(trials.statuses()) == {STATUS_OK}
    for document in trials.trials:
        config = space_eval(space(), values_of(document))
        assert document["result"]["loss"] == loss_of(config)
        assert trials.trial_attachments(document)["a"] == b"b"
        assert note_of(document)["seconds"] >= 0.01
        assert document["book_time"] <= document["refresh_time"]
    assert len(arm_report(trials, space()).rounds) == 3


def test_executors_made_for_a_search_end_with_it() -> None:
    made: list[ThreadPoolExecutor] = []

    def make() -> ThreadPoolExecutor:
        made.append(ThreadPoolExecutor(1))
        return made[-1]

    run(executor=make, n_workers=2)
    assert made
    for executor in made:
        with pytest.raises(RuntimeError, match="after shutdown"):
            executor.submit(print)


@pytest.mark.parametrize(("n", "pool", "options"), [(3, 8, {"n_workers": 3}), (4, 4, {})])
def test_as_many_as_workers_are_evaluated_at_a_time(n: int, pool: int, options: Any) -> None:
    # Without a number the pool is asked how many workers it has.
    lock, together, trials = threading.Lock(), threading.Barrier(n), Trials()
    running, most, too_many = [0], [0], threading.Event()

    def objective(config: dict[str, Any]) -> float:
        with lock:
            running[0] += 1
            most.append(running[0])
            first = len(most) <= n + 1
            if running[0] > n:
                too_many.set()
        if first:  # they wait for each other, and leave one too many the time to begin
            together.wait(timeout=600)
            too_many.wait(timeout=1.0)
        with lock:
            running[0] -= 1
        return loss_of(config)

    with ThreadPoolExecutor(pool) as executor:
        run(objective, trials=trials, executor=executor, max_evals=24, **options)
    assert len(trials) == 24 and max(most) == n


def test_no_more_begin_at_once_than_the_budget_has_left() -> None:
    trials = Trials()
    with ThreadPoolExecutor(16) as executor:
        run(loss_of, trials=trials, executor=executor, max_evals=15, n_workers=16)
    assert len(trials) == 15


def test_a_long_trial_counts_however_many_overtake_it() -> None:
    """Elsewhere the worker of a trial that 128 others have overtaken is presumed dead."""
    trials, overtaken, calls = Trials(), threading.Event(), Counter[str]()

    def objective(config: dict[str, Any]) -> float:
        calls["all"] += 1
        if calls["all"] == 1:
            assert overtaken.wait(60)
        elif calls["all"] == 140:  # later, so that one too many would begin before
            threading.Timer(0.5, overtaken.set).start()
        return loss_of(config)

    with ThreadPoolExecutor(2) as executor:
        run(objective, trials=trials, executor=executor, max_evals=140)
    assert len(trials) == calls["all"] == 140


def leaving(config: dict[str, Any]) -> float:
    if config["type"] == "rf":
        raise SystemExit(3)
    return loss_of(config)


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_a_worker_that_calls_exit_fails_its_trial_only(pool: Any) -> None:
    trials = Trials()
    with pool(2) as executor:
        run(leaving, trials=trials, executor=executor, catch_eval_exceptions=True)
        states = Counter(document["state"] for document in trials._dynamic_trials)
        assert states[JOB_STATE_ERROR] > 0 and states[JOB_STATE_DONE] > 0
        assert states.total() == 15 and JOB_STATE_RUNNING not in states
        with pytest.raises(RuntimeError, match=r"has called sys\.exit\(\)"):
            run(leaving, executor=executor)


@pytest.mark.parametrize("n_workers", [2, 5])
def test_a_budget_in_seconds_is_kept_by_several_workers(n_workers: int) -> None:
    trials = Trials()
    with ThreadPoolExecutor(n_workers) as executor:
        run(slow, trials=trials, executor=executor, max_evals=None, budget_seconds=41, cost="took")
    spent = sum(result["took"] for result in trials.results)
    assert 41 - 2 * n_workers <= spent <= 41 + 2 * n_workers


def test_an_executor_of_unknown_size_gets_one_trial_at_a_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Unknown(Executor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            return pool.submit(fn, *args, **kwargs)

    with caplog.at_level(logging.WARNING), ThreadPoolExecutor(2) as pool, Unknown() as executor:
        run(executor=executor, max_evals=5)
    assert "Pass n_workers=" in caplog.text
    with pytest.raises(ValueError, match="n_workers must be an integer >= 1"):
        run(executor=executor, n_workers=0)


class Dying(Executor):
    """Evaluates at once until a worker dies, with all evaluations under way.

    A real one may or may not notice the death before it is given another task: here both happen.
    """

    def __init__(self, lives: int, *, notices: bool) -> None:
        self._lives, self._notices = lives, notices

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._lives -= 1
        if self._lives >= 0:
            future.set_result(fn(*args, **kwargs))
        elif self._notices and self._lives < -1:
            raise BrokenProcessPool("A child process terminated abruptly")
        else:
            future.set_exception(BrokenProcessPool("A child process terminated abruptly"))
        return future


@pytest.mark.parametrize("notices", [True, False])
@pytest.mark.parametrize("caught", [True, False])
def test_a_worker_that_dies_leaves_nothing_running(
    notices: bool, caught: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def states() -> Counter[int]:
        return Counter(document["state"] for document in trials._dynamic_trials)

    trials = Trials()
    search = partial(run, trials=trials, n_workers=3, max_evals=20, catch_eval_exceptions=caught)
    dies = nullcontext() if caught else pytest.raises(BrokenProcessPool)
    with dies:
        search(executor=Dying(6, notices=notices))
    assert ("A worker died" in caplog.text) == caught
    assert states()[JOB_STATE_DONE] == 6 and not states()[JOB_STATE_RUNNING]
    assert 1 <= states()[JOB_STATE_ERROR] <= 3
    with ThreadPoolExecutor(3) as executor:  # the same trials with a new executor
        search(executor=executor)
    assert states().total() == 20 and {*states()} == {JOB_STATE_DONE, JOB_STATE_ERROR}


def killing(config: dict[str, Any]) -> float:
    """Kills its process, in either way, for a quarter of the space."""
    if config["type"] == "svm" and config["C"] > 0.75:
        os.kill(os.getpid(), signal.SIGKILL)
    if config["type"] == "rf" and config["depth"] > 38:
        os._exit(1)
    return loss_of(config)


def kills(document: dict[str, Any]) -> bool:
    values = values_of(document)
    return bool(values.get("C", 0.0) > 0.75 or values.get("depth", 0) > 38)


def saved(path: Path) -> list[tuple[int, int, Any]]:
    trials = pickle.loads(path.read_bytes())
    return [(d["tid"], d["state"], d["result"].get("loss")) for d in trials._dynamic_trials]


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")  # of this process
def test_a_process_that_dies_takes_its_own_trial_only_where_executors_are_made_anew(
    tmp_path: Path,
) -> None:
    trials, path = Trials(), tmp_path / "trials.pkl"
    made = partial(ProcessPoolExecutor, 1)
    search = partial(run, killing, trials=trials, trials_save_file=str(path), max_evals=24)
    search(executor=made, n_workers=2, catch_eval_exceptions=True)
    documents = trials._dynamic_trials
    assert len(documents) == 24 and 2 <= sum(map(kills, documents)) < 24
    for document in documents:
        assert document["state"] == (JOB_STATE_ERROR if kills(document) else JOB_STATE_DONE)
        assert ("BrokenProcessPool" in str(document["misc"].get("error"))) == kills(document)
        assert note_of(document)["seconds"] >= 0
    assert saved(path) == [(d["tid"], d["state"], d["result"].get("loss")) for d in documents]
    failed = arm_report(trials, space()).records
    assert np.count_nonzero(np.isnan(failed.reward)) == sum(map(kills, documents))
    with pytest.raises(ValueError, match="n_workers= is needed"):
        run(executor=made)


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")  # of this process
def test_a_search_whose_processes_die_ends_with_what_it_has_and_continues(tmp_path: Path) -> None:
    path, ended = tmp_path / "trials.pkl", set[Any]()
    search = partial(run, killing, trials_save_file=str(path), catch_eval_exceptions=True)
    for _ in range(12):  # at most: the search ends at a death, and each is a trial
        with ProcessPoolExecutor(2) as executor:
            search(executor=executor, max_evals=12)
        known, ended = ended, {trial for trial in saved(path) if trial[1] != JOB_STATE_NEW}
        assert known <= ended
        assert {state for _, state, _ in ended} <= {JOB_STATE_DONE, JOB_STATE_ERROR}
        if len(ended) == 12:
            break
    assert len(ended) == 12 and {JOB_STATE_DONE, JOB_STATE_ERROR} == {s for _, s, _ in ended}


@pytest.mark.slow
def test_a_trial_that_kills_its_worker_of_dask_has_failed_and_the_search_goes_on() -> None:
    distributed, dask = pytest.importorskip("dask.distributed"), pytest.importorskip("dask")

    def objective(config: dict[str, Any]) -> float:
        import os  # sent as it is written here: the workers do not find this file
        import signal

        if config["type"] == "nb":
            os.kill(os.getpid(), signal.SIGKILL)
        return float(config.get("C", config.get("depth", 30) / 50))

    trials, local = Trials(), {"threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        # Killed once is enough: Dask would try another three times.
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(n_workers=2, silence_logs=logging.CRITICAL, **local) as cluster,
        distributed.Client(cluster) as client,
    ):
        executor = client.get_executor()
        run(
            objective,
            trials=trials,
            executor=executor,
            n_workers=2,
            max_evals=8,
            catch_eval_exceptions=True,
        )
    documents = trials._dynamic_trials
    assert len(documents) == 8
    assert {d["state"] for d in documents} == {JOB_STATE_DONE, JOB_STATE_ERROR}
    for document in documents:
        # The other way round Dask is not exact: a trial that waits for the same worker fails too.
        if document["misc"]["vals"]["model"] == [2]:
            assert document["state"] == JOB_STATE_ERROR
            assert "KilledWorker" in document["misc"]["error"][0]


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


def test_trials_that_never_began_are_new_again(tmp_path: Path) -> None:
    trials, path = Trials(), tmp_path / "trials.pkl"
    with pytest.raises(ZeroDivisionError):
        run(
            trials=trials,
            executor=FirstFails(),
            n_workers=3,
            max_evals=8,
            trials_save_file=str(path),
        )
    assert [state for _, state, _ in saved(path)] == [JOB_STATE_ERROR, *[JOB_STATE_NEW] * 2]
    waiting = trials._dynamic_trials[1:]
    assert [d["state"] for d in waiting] == [JOB_STATE_NEW] * 2
    assert {d["book_time"] for d in waiting} == {None}
    run(trials=trials, max_evals=8)  # they are evaluated when the search is taken up again
    assert [d["state"] for d in waiting] == [JOB_STATE_DONE] * 2


def test_a_pull_is_read_again_when_its_result_was_replaced() -> None:
    trials = Trials()
    run(trials=trials, max_evals=8)
    arms, document = arms_of(Domain(loss_of, space())).arms, trials.trials[0]
    before = read_pulls(trials, arms).pulls.losses
    document["result"] = {**document["result"], "loss": before[0] + 1.0}
    assert read_pulls(trials, arms).pulls.losses[0] == before[0] + 1.0


@pytest.mark.parametrize("n_workers", [1, 3])
def test_pulls_are_read_when_a_trial_has_begun_or_ended(
    n_workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_read = 0

    def spy(*args: Any, **options: Any) -> Situation:
        nonlocal n_read
        n_read += 1
        return read_pulls(*args, **options)

    monkeypatch.setattr("automl_plugins.adapters.hyperopt.algos.read_pulls", spy)
    with ThreadPoolExecutor(n_workers) as executor:
        together = {"executor": executor, "n_workers": n_workers} if n_workers > 1 else {}
        run(max_evals=20, loss_threshold=-1.0, **together)
    assert n_read <= (20 if n_workers == 1 else 2 * 20) + 1
