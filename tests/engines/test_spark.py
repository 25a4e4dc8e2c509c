"""Searches of Hyperopt on Apache Spark: what fails, what is killed, what is cancelled."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import (
    arm_report,
    auto,
    bandit,
    explain,
    gbqr,
    member_trust,
    record,
    weighted,
)
from automl_plugins.adapters.hyperopt.trials import finished_documents, read_trial
from hyperopt import (
    JOB_STATE_DONE,
    JOB_STATE_ERROR,
    STATUS_FAIL,
    STATUS_OK,
    Domain,
    SparkTrials,
    hp,
)
from hyperopt.base import JOB_STATE_CANCEL, trials_from_docs
from hyperopt_runs import minimise, values_of

from automl_plugins.meta import MetaStore
from automl_plugins.records.trial import Status

pytestmark = [
    # Hyperopt's threads have no session.
    pytest.mark.filterwarnings("ignore:Spark session is not provided:UserWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # sockets to the JVM
]

SPACE = hp.choice(
    "does",
    [
        {"does": "works", "x": hp.uniform("x", 0, 1)},
        {"does": "works too", "y": hp.uniform("y", 0, 1)},
        {"does": "raises"},
        {"does": "fails"},
        {"does": "kills"},
    ],
)
STATES = [JOB_STATE_DONE] * 2 + [JOB_STATE_ERROR, JOB_STATE_DONE, JOB_STATE_ERROR]  # by option


# --- what runs on the workers -------------------------------------------------------------------


def objective(config: dict[str, Any], *, kill: Callable[[], None] | None = None) -> Any:
    if config["does"] == "raises":
        raise ValueError("on purpose")
    if config["does"] == "kills":
        (kill or kill_worker)()
    if config["does"] == "fails":
        return {"status": STATUS_FAIL}
    return {"status": STATUS_OK, "loss": config.get("x", config.get("y", 1.0)) + 0.1}


def kill_worker() -> None:
    """Kill the process of Python that runs the trial."""
    os.kill(os.getpid(), signal.SIGKILL)


def kill_executor() -> None:
    """Kill the executor, a process of Java: it started the daemon that forked this one."""
    status = Path(f"/proc/{os.getppid()}/status").read_text(encoding="utf-8")
    (parent,) = [line.split()[1] for line in status.splitlines() if line.startswith("PPid:")]
    command = Path(f"/proc/{parent}/cmdline").read_text(encoding="utf-8")
    assert "CoarseGrainedExecutorBackend" in command, command
    os.kill(int(parent), signal.SIGKILL)
    time.sleep(600)  # until Spark notices


def fatal(config: dict[str, Any]) -> Any:
    return objective(config, kill=kill_executor)


def late(config: dict[str, Any]) -> float:
    time.sleep(20)  # a job that begins while the others are cancelled runs to its end
    return 0.0


# --- Spark --------------------------------------------------------------------------------------


@contextmanager
def session(master: str, **settings: str) -> Iterator[Any]:
    """A session of Spark's with workers of this Python."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        from pyspark import cloudpickle
        from pyspark.sql import SparkSession
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not find this file
    assert SparkSession.getActiveSession() is None
    builder = SparkSession.builder.master(master)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.python.daemon.module": "warm_daemon",
        "spark.task.maxFailures": "1",
        # Java starts in half of the time.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    } | {f"spark.{name}": value for name, value in settings.items()}
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")  # deaths on purpose
    try:
        yield spark
    finally:
        spark.stop()


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with session("local[2]") as started:
        yield started


def trials_on(spark: Any, **options: Any) -> SparkTrials:
    return SparkTrials(parallelism=2, spark_session=spark, **options)


def option_of(document: dict[str, Any]) -> int:
    return int(values_of(document)["does"])


def check_ended(documents: list[dict[str, Any]]) -> None:
    """Each trial has ended as its option says, and is read as such."""
    for document in documents:
        option, trial = option_of(document), read_trial(document)
        assert document["state"] == STATES[option]
        assert trial.status == (Status.COMPLETE if option < 2 else Status.FAILED)
        assert trial.seconds >= 0


def check_next(algo: Any, trials: SparkTrials) -> None:
    """The documents alone say what comes next, wherever they are."""
    domain, tid = Domain(objective, SPACE), len(trials._dynamic_trials)
    copies = pickle.loads(pickle.dumps(trials._dynamic_trials))
    (here,) = algo([tid], domain, trials, 1)
    (there,) = algo([tid], domain, trials_from_docs(copies, validate=False), 1)
    assert values_of(here) == values_of(there)


# --- searches -----------------------------------------------------------------------------------


def test_killed_executors_are_failed_trials() -> None:
    """They are processes of their own, and Spark starts others in place of those killed.

    It comes first: the other tests share a session, and there is one at a time.
    """
    with session("local-cluster[2,1,600]", **{"executor.memory": "512m"}) as cluster:
        trials = trials_on(cluster)
        minimise(fatal, SPACE, auto(seed=1), 6, trials=trials)
        documents = trials._dynamic_trials
        assert len(documents) == 6 and 4 in map(option_of, documents)
        check_ended(documents)
        check_next(auto(seed=1), trials)


@pytest.mark.parametrize("recipe", [auto, gbqr, bandit, weighted])
def test_trials_fail_and_kill_their_worker(recipe: Any, spark: Any, tmp_path: Path) -> None:
    trials, algo = trials_on(spark), recipe(seed=1)
    minimise(objective, SPACE, algo, 10, trials=trials)
    documents = trials._dynamic_trials
    assert len(documents) == 10 and {option_of(d) for d in documents} == set(range(5))
    check_ended(documents)
    assert min(filter(None, trials.losses())) == trials.best_trial["result"]["loss"]
    check_next(algo, trials)
    for document in documents:
        assert str(explain(trials, document["tid"]))
    if recipe is auto:
        assert member_trust(trials)
    if recipe in (bandit, weighted):
        report = arm_report(trials, SPACE)
        ended = finished_documents(trials)
        assert report.records.arm.tolist() == [option_of(document) for document in ended]
    with MetaStore(tmp_path / "memory.db") as store:
        record(objective, store, "spark").add(trials, SPACE)
        (task,) = store.records()
    works = [option_of(document) < 2 for document in documents]
    assert np.isfinite(task.losses).sum() == sum(works) < len(task) == 10


def test_a_timeout_cancels_what_runs(spark: Any) -> None:
    trials = trials_on(spark)
    minimise(objective, SPACE, gbqr(seed=1), 4, trials=trials)
    ended = pickle.loads(pickle.dumps(trials._dynamic_trials))
    minimise(late, SPACE, gbqr(seed=1), 8, trials=trials, timeout=3)
    assert trials._dynamic_trials[:4] == ended
    cancelled = trials._dynamic_trials[4:]
    assert cancelled and {d["state"] for d in cancelled} == {JOB_STATE_CANCEL}
    check_next(gbqr(seed=1), trials)  # they are left out
