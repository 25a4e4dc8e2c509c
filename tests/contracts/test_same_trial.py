"""The sampler, the store, the curves and the memory read a trial in the same way.

Each case is one trial of a framework, some of them foreign or damaged, and the reading expected of
all readers. Each reader is called through its own interface.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import hyperopt
import numpy as np
import optuna
import pytest
import smac.runhistory
from automl_plugins.adapters import hyperopt as with_hyperopt
from automl_plugins.adapters import optuna as with_optuna
from automl_plugins.adapters import smac as with_smac
from automl_plugins.adapters.hyperopt.trials import TrialReader
from automl_plugins.adapters.optuna._study import StudyReader
from automl_plugins.adapters.smac.rows import Rows
from ConfigSpace import ConfigurationSpace, Float
from hyperopt import JOB_STATE_DONE, JOB_STATE_ERROR, JOB_STATE_RUNNING, STATUS_FAIL, STATUS_OK
from optuna.study import StudyDirection
from optuna.trial import TrialState
from smac.runhistory import StatusType, TrialInfo, TrialValue

from automl_plugins.meta import MetaStore, TaskRecord
from automl_plugins.records.history import History
from automl_plugins.records.search import Search
from automl_plugins.records.trial import Status

COMPLETE, PRUNED, FAILED, RUNNING = Status
NAN = math.nan
BEGIN = datetime(2026, 1, 1)


class Seen(NamedTuple):
    """A trial as a reader reads it; None stands for a trial that is left out."""

    status: Status
    loss: float
    seconds: float
    budget: float = NAN


class Case(NamedTuple):
    trial: Any
    expected: Seen


def of_history(history: History) -> Seen:
    (status,), (loss,), (seconds,), (budget,) = (
        history.status, history.losses, history.seconds, history.budget
    )  # fmt: skip
    return Seen(Status(status), loss, seconds, budget)


def of_record(record: TaskRecord) -> Seen | None:
    if not len(record):
        return None
    return Seen(Status(record.status[0]), record.losses[0], record.seconds[0], record.budget[0])


def of_searches(searches: list[Search]) -> Seen | None:
    (search,) = searches
    if not search.trials:
        assert search.left_out
        return None
    (trial,) = search.trials
    return Seen(trial.status, trial.loss, trial.seconds, trial.budget)


def of_store(record: Callable[[MetaStore], Any]) -> Seen | None:
    with TemporaryDirectory() as folder, MetaStore(f"{folder}/store.db") as store:
        record(store)
        records = store.records()
    return of_record(records[0]) if records else None


# --- Optuna -----------------------------------------------------------------------------------


def study_trial(
    state: TrialState = TrialState.COMPLETE,
    value: float | None = 2.0,
    *,
    seconds: float = 5.0,
    reports: dict[int, float] | None = None,
    noted: Any = None,
    overhead: Any = None,
) -> optuna.trial.FrozenTrial:
    done = state.is_finished()
    return optuna.trial.FrozenTrial(
        number=0,
        trial_id=0,
        state=state,
        value=value if state == TrialState.COMPLETE else None,
        datetime_start=BEGIN,
        datetime_complete=BEGIN + timedelta(seconds=seconds) if done else None,
        params={"x": 0.5},
        distributions={"x": optuna.distributions.FloatDistribution(0, 1)},
        user_attrs={} if noted is None else {"seconds": noted},
        system_attrs={} if overhead is None else {"automl_plugins:overhead": overhead},
        intermediate_values=reports or {},
    )


OPTUNA = {
    "complete": Case(study_trial(), Seen(COMPLETE, 2.0, 5.0)),
    "infinite": Case(study_trial(value=math.inf), Seen(FAILED, NAN, 5.0)),
    "minus infinity": Case(study_trial(value=-math.inf), Seen(FAILED, NAN, 5.0)),
    "failed": Case(study_trial(TrialState.FAIL), Seen(FAILED, NAN, 5.0)),
    "pruned": Case(
        study_trial(TrialState.PRUNED, reports={1: 4.0, 3: 3.0}), Seen(PRUNED, 3.0, 5.0, 3.0)
    ),
    "pruned at once": Case(study_trial(TrialState.PRUNED), Seen(PRUNED, NAN, 5.0)),
    "pruned at infinity": Case(
        study_trial(TrialState.PRUNED, reports={1: math.inf}), Seen(PRUNED, NAN, 5.0, 1.0)
    ),
    "added, not run": Case(study_trial(seconds=0.0), Seen(COMPLETE, 2.0, NAN)),
    "clock set back": Case(study_trial(seconds=-5.0), Seen(COMPLETE, 2.0, NAN)),
    "own seconds": Case(study_trial(noted=1), Seen(COMPLETE, 2.0, 1.0)),
    **{
        f"seconds are {name}": Case(study_trial(noted=noted), Seen(COMPLETE, 2.0, 5.0))
        for name, noted in {"text": "3", "zero": 0.0, "negative": -1.0, "true": True}.items()
    },
    "sampler's time": Case(study_trial(overhead=2.0), Seen(COMPLETE, 2.0, 3.0)),
    "damaged time": Case(study_trial(overhead="2"), Seen(COMPLETE, 2.0, 5.0)),
    "running": Case(study_trial(TrialState.RUNNING), Seen(RUNNING, NAN, NAN)),
}


def in_optuna(case: Case, maximize: bool) -> dict[str, Seen | None]:
    direction = StudyDirection.MAXIMIZE if maximize else StudyDirection.MINIMIZE
    study = optuna.create_study(study_name="task/method", direction=direction)
    study.add_trial(case.trial)
    (trial,) = study.get_trials()
    other = optuna.trial.create_trial(state=TrialState.WAITING)
    other.number = -1
    memory = StudyReader(study, None, {}, {})
    view = memory.view(study, other)
    return {
        "sampler": of_history(memory.history(view, memory.space(view, {}))),
        "memory": of_record(with_optuna.ADAPTER.read_task(study)),
        "curves": of_searches(with_optuna.curves(study)),
        "store": of_store(lambda store: with_optuna.record(store)(study, trial)),
        "store, added": of_store(lambda store: with_optuna.record(store).add(study)),
    }


# --- Hyperopt ---------------------------------------------------------------------------------


def document(
    result: dict[str, Any], state: int = JOB_STATE_DONE, *, seconds: float = 5.0, note: Any = None
) -> dict[str, Any]:
    misc = {"tid": 0, "cmd": None, "idxs": {"x": [0]}, "vals": {"x": [0.5]}}
    return {
        "tid": 0,
        "spec": None,
        "result": result,
        "misc": misc if note is None else misc | {"automl_plugins": note},
        "state": state,
        "owner": None,
        "version": 0,
        "exp_key": None,
        "book_time": BEGIN,
        "refresh_time": None if state == JOB_STATE_RUNNING else BEGIN + timedelta(seconds=seconds),
    }


OK = {"status": STATUS_OK, "loss": 2.0}
PARTIAL = {"status": int(PRUNED), "loss": 3.0, "budget": 4.0}
HYPEROPT = {
    "complete": Case(document(OK), Seen(COMPLETE, 2.0, 5.0)),
    "infinite": Case(document(OK | {"loss": math.inf}), Seen(FAILED, NAN, 5.0)),
    "not a number": Case(document(OK | {"loss": NAN}), Seen(FAILED, NAN, 5.0)),
    "no loss": Case(document({"status": STATUS_OK}), Seen(FAILED, NAN, 5.0)),
    "a text for a loss": Case(document(OK | {"loss": "2.0"}), Seen(FAILED, NAN, 5.0)),
    "failed": Case(document({"status": STATUS_FAIL, "loss": 2.0}), Seen(FAILED, NAN, 5.0)),
    "raised": Case(document({"status": "new"}, JOB_STATE_ERROR), Seen(FAILED, NAN, 5.0)),
    "nothing": Case(document({}), Seen(FAILED, NAN, 5.0)),
    "clock set back": Case(document(OK, seconds=-5.0), Seen(COMPLETE, 2.0, NAN)),
    "within a millisecond": Case(document(OK, seconds=0.0), Seen(COMPLETE, 2.0, NAN)),
    "own seconds": Case(document(OK | {"seconds": 1}), Seen(COMPLETE, 2.0, 1.0)),
    "seconds are a text": Case(document(OK | {"seconds": "1"}), Seen(COMPLETE, 2.0, 5.0)),
    "seconds are negative": Case(document(OK | {"seconds": -1.0}), Seen(COMPLETE, 2.0, 5.0)),
    "charged seconds": Case(
        document(OK | {"seconds": 3.0}, note={"seconds": 1.0}), Seen(COMPLETE, 2.0, 1.0)
    ),
    "a note without seconds": Case(
        document(OK | {"seconds": 3.0}, note={"arm": 1}), Seen(COMPLETE, 2.0, 3.0)
    ),
    "written as pruned": Case(
        document({"status": STATUS_FAIL, "automl_plugins": PARTIAL}), Seen(PRUNED, 3.0, 5.0, 4.0)
    ),
    "a damaged note": Case(
        document({"status": STATUS_FAIL, "automl_plugins": {"status": "?"}}),
        Seen(FAILED, NAN, 5.0),
    ),
    "a note of a running trial": Case(
        document({"status": STATUS_FAIL, "automl_plugins": PARTIAL | {"status": int(RUNNING)}}),
        Seen(FAILED, NAN, 5.0),
    ),
    "running": Case(document({"status": "new"}, JOB_STATE_RUNNING), Seen(RUNNING, NAN, NAN)),
}


def in_hyperopt(case: Case) -> dict[str, Seen | None]:
    space = {"x": hyperopt.hp.uniform("x", 0, 1)}
    trials = hyperopt.Trials()
    trials.insert_trial_docs([case.trial])
    trials.refresh()
    reader = TrialReader(with_hyperopt.translate(space))

    def add(store: MetaStore) -> None:
        with_hyperopt.record(print, store, "task", space).add(trials)

    return {
        "sampler": of_history(reader.read(trials, trials._dynamic_trials)),
        "memory": of_record(with_hyperopt.ADAPTER.read_task(trials, name="task", space=space)),
        "curves": of_searches(with_hyperopt.curves(trials, table="task", method="method")),
        "store": of_store(add),
    }


# --- SMAC -------------------------------------------------------------------------------------


def value_of(
    status: StatusType = StatusType.SUCCESS, cost: float = 2.0, **facts: Any
) -> TrialValue:
    given = {"time": 5.0, "starttime": 1e9 * 2, "endtime": 1e9 * 2 + 7.0} | facts
    return TrialValue(cost, status=status, **given)


SMAC = {
    "complete": Case(value_of(), Seen(COMPLETE, 2.0, 5.0)),
    "infinite": Case(value_of(cost=math.inf), Seen(FAILED, NAN, 5.0)),
    "crashed": Case(value_of(StatusType.CRASHED, cost=9.0), Seen(FAILED, NAN, 5.0)),
    "out of time": Case(value_of(StatusType.TIMEOUT, time=0.0), Seen(FAILED, NAN, 7.0)),
    "out of memory": Case(value_of(StatusType.MEMORYOUT, time=0.0), Seen(FAILED, NAN, 7.0)),
    "ask and tell": Case(value_of(starttime=0.0, endtime=0.0), Seen(COMPLETE, 2.0, 5.0)),
    "no clock": Case(value_of(time=0.0, starttime=0.0, endtime=0.0), Seen(COMPLETE, 2.0, NAN)),
    "clock set back": Case(value_of(time=0.0, endtime=1e9), Seen(COMPLETE, 2.0, NAN)),
    "endless": Case(value_of(time=math.inf), Seen(COMPLETE, 2.0, 7.0)),
    "own seconds": Case(
        value_of(additional_info={"automl_plugins": {"seconds": 1.0}}), Seen(COMPLETE, 2.0, 1.0)
    ),
    "written as pruned": Case(
        value_of(StatusType.TIMEOUT, additional_info={"automl_plugins": PARTIAL}),
        Seen(PRUNED, 3.0, 5.0, 4.0),
    ),
    "a damaged note": Case(
        value_of(StatusType.TIMEOUT, additional_info={"automl_plugins": {"status": "?"}}),
        Seen(FAILED, NAN, 5.0),
    ),
    "a note with a truth value": Case(
        value_of(StatusType.TIMEOUT, additional_info={"automl_plugins": {"status": True}}),
        Seen(FAILED, NAN, 5.0),
    ),
    "running": Case(value_of(StatusType.RUNNING), Seen(RUNNING, NAN, NAN)),
}


def in_smac(case: Case) -> dict[str, Seen | None]:
    space = ConfigurationSpace(seed=0)
    space.add(Float("x", (0.0, 1.0)))
    config, history = space.sample_configuration(), smac.RunHistory()
    info = TrialInfo(config, seed=0)
    if case.trial.status == StatusType.RUNNING:
        history.add_running_trial(info)
    else:
        history.add_trial(info, case.trial)

    def add(store: MetaStore) -> None:
        with_smac.RecordCallback(store, "task").add(history)

    return {
        "sampler": of_history(Rows(space).read(history)),
        "memory": of_record(with_smac.ADAPTER.read_task(history, name="task")),
        "curves": of_searches(with_smac.curves(history, table="task", method="method")),
        "store": of_store(add),
    }


# --- all of them ------------------------------------------------------------------------------

CASES = [
    *(("optuna", name, maximize) for name in OPTUNA for maximize in (False, True)),
    *(("hyperopt", name, False) for name in HYPEROPT),
    *(("smac", name, False) for name in SMAC),
]


@pytest.mark.parametrize(("framework", "name", "maximize"), CASES)
def test_all_see_the_same(framework: str, name: str, maximize: bool) -> None:
    if framework == "optuna":
        case = OPTUNA[name]
        seen = in_optuna(case, maximize)
    else:
        case = {"hyperopt": HYPEROPT, "smac": SMAC}[framework][name]
        seen = {"hyperopt": in_hyperopt, "smac": in_smac}[framework](case)
    expected = case.expected
    if maximize:
        expected = expected._replace(loss=-expected.loss)
    for reader, found in seen.items():
        if expected.status == RUNNING and reader != "sampler":
            assert found is None, reader  # only samplers read running trials
        else:
            assert found is not None, reader
            np.testing.assert_array_equal(found, expected, err_msg=reader)
