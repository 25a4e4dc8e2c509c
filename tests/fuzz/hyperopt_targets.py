"""Suggest functions and initial trials of Hyperopt, tried on a case."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import numpy as np
from automl_plugins.adapters import hyperopt as ours
from core_targets import POLICIES, SURROGATES, memory_of
from core_targets import options_of as recipe_options
from histories import Case, Run
from hyperopt import STATUS_FAIL, STATUS_OK, Domain, Trials, space_eval
from hyperopt.base import (
    JOB_STATE_CANCEL,
    JOB_STATE_DONE,
    JOB_STATE_ERROR,
    JOB_STATE_NEW,
    JOB_STATE_RUNNING,
)
from searches import as_document
from spaces import Parameter, Refused, Space, as_pyll

BEGIN = datetime(2026, 1, 1)


def domain_of(space: Space) -> Domain:
    """The space, as Hyperopt sees it.

    Raises:
        Refused: By Hyperopt.
    """
    try:
        return Domain(lambda values: 0.0, as_pyll(space))
    except Exception as error:
        raise Refused(f"Hyperopt: {error}") from error


def trials_of(space: Space, runs: tuple[Run, ...], domain: Domain) -> Trials:
    """The runs as documents; labels that the space lacks are there too."""
    trials = Trials()
    documents = []
    for tid, run in enumerate(runs):
        known = {p.name: p for p in run.parameters}
        vals: dict[str, list[Any]] = {p.name: [] for p in space}
        for name, value in run.values.items():
            vals[name] = [_kept(known[name], value)]
        if run.seconds == -1.0:  # as points_to_evaluate leaves them
            vals = {name: value for name, value in vals.items() if value}
        result: dict[str, Any] = {"status": STATUS_OK, "loss": run.loss}
        if run.state == "failed":
            result = {"status": STATUS_FAIL}
        elif run.state == "pruned":
            result["status"] = STATUS_FAIL
        elif run.state == "running":
            result = {"status": "new"}
        if run.seconds is not None:
            result["seconds"] = run.seconds
        document = as_document(trials, domain, tid, vals, result)
        state = JOB_STATE_DONE
        if run.state == "running":
            state = JOB_STATE_NEW if tid % 2 else JOB_STATE_RUNNING
        elif run.state == "failed":
            state = (JOB_STATE_DONE, JOB_STATE_ERROR, JOB_STATE_CANCEL)[tid % 3]
        document["state"] = state
        document["book_time"] = BEGIN + timedelta(seconds=tid)
        wrong = isinstance(run.seconds, float) and run.seconds < 0
        document["refresh_time"] = BEGIN + timedelta(seconds=tid - 3 if wrong else tid + 1)
        if run.seconds is None:
            document["book_time"] = document["refresh_time"] = None
        documents.append(document)
    trials.insert_trial_docs(documents)
    trials.refresh()
    return trials


def _kept(p: Parameter, value: Any) -> Any:
    """What Hyperopt keeps of a value: of a choice its index."""
    if p.kind != "choice":
        return value if p.n > 1 else 0
    return next(i for i, c in enumerate(p.choices) if c is value or c == value)


def check_document(document: dict[str, Any], case: Case, domain: Domain) -> None:
    """Every label is there, active where it should be, finite, and Hyperopt can evaluate it."""
    vals = document["misc"]["vals"]
    assert vals.keys() == domain.params.keys(), "labels are missing"
    places: dict[str, int] = {}
    for p in case.space:
        active = p.is_active(places)
        if p.name not in vals:  # below options that are never taken
            continue
        assert (len(vals[p.name]) == 1) == active, f"{p.name!r} is {vals[p.name]}"
        assert document["misc"]["idxs"][p.name] == ([document["tid"]] if active else [])
        if not active:
            continue
        (value,) = vals[p.name]
        if p.kind == "choice" or p.n == 1:
            assert int(value) == value and 0 <= value < max(len(p.choices), 1)
            places[p.name] = int(value)
        else:
            assert math.isfinite(value), f"{p.name!r} is {value!r}"
            _check_number(p, value)
    space_eval(domain.expr, {name: v[0] for name, v in vals.items() if len(v)})


def _check_number(p: Parameter, value: float) -> None:
    normal = p.kind == "float" and p.step is None and not p.log
    if normal and (p.low, p.high) in ((-5.0, 5.0), (0.1, 0.3)):  # drawn from a normal there
        return
    # Hyperopt's own quantised draws round beyond the ends by up to half a step.
    beyond = abs(p.step or (1 if p.kind == "int" and p.log else 0)) / 2
    slack = 1e-9 * max(abs(p.low), abs(p.high)) * (1 + p.log)
    low, high = p.low - beyond - slack, p.high + beyond + slack
    assert low <= value <= high, f"{p.name!r} is {value!r}, not in {p}"


def suggest(make: Callable[[Case], Any], case: Case) -> None:
    if not case.space:
        return  # Hyperopt cannot hold an empty space
    domain = domain_of(case.space)
    trials = trials_of(case.space, case.runs, domain)
    algo = make(case)
    ids = trials.new_trial_ids(case.pick(7, [1, 1, 2]))
    documents = algo(ids, domain, trials, case.seed)
    assert len(documents) <= len(ids)
    for document in documents:
        check_document(document, case, domain)
    trials.insert_trial_docs(documents)
    trials.refresh()


def options_of(case: Case) -> dict[str, Any]:
    return recipe_options(case) | {"seed": case.seed}


def _surrogate(case: Case) -> Any:
    return ours.surrogate(
        surrogate=case.pick(4, ["quantile_boosting", *SURROGATES]),
        acquisition=case.pick(6, ["ei", "bound", "ei_per_second", "bound_per_second"]),
        **options_of(case),
    )


def is_tame(space: Space) -> bool:
    """Whether Hyperopt's TPE can draw from it; in odd ranges it never ends."""
    numbers = [p for p in space if p.kind != "choice" and p.n > 1]
    return all(1e-6 < p.high - p.low <= 1e6 and abs(p.low) <= 1e6 for p in numbers)


def _arms(case: Case) -> dict[str, Any]:
    return {
        "label": case.pick(4, ["algorithm", "algorithm", None]),
        "inner": case.pick(3, ["tpe", "random"]) if is_tame(case.space) else "random",
        "seed": case.seed,
    }


def _boasf(case: Case) -> Any:
    split = case.pick(1, [None, None, 2])
    options = _arms(case)
    if split is not None:
        options["label"] = None
    budget = case.pick(0, [{"max_evals": 200}, {"max_evals": 1}, {"budget_seconds": 100.0}])
    return ours.boasf(split=split, **budget, **options)


ALGOS: dict[str, Callable[[Case], Any]] = {
    "auto": lambda c: ours.auto(per_second=c.pick(4, [False, True]), **options_of(c)),
    "gbqr": lambda c: ours.gbqr(per_second=c.pick(4, [False, True]), **options_of(c)),
    "ei_per_second": lambda c: ours.ei_per_second(**options_of(c)),
    "surrogate": _surrogate,
    "weighted": lambda c: ours.weighted(weights=c.pick(0, ["2^N", "volume"]), **_arms(c)),
    "bandit": lambda c: ours.bandit(policy=c.pick(0, list(POLICIES.values()))(), **_arms(c)),
    "boasf": _boasf,
}


def _memory(case: Case) -> Any:
    """Records, or trials by name."""
    if case.pick(5, [0, 1]):
        return memory_of(case)
    domain = domain_of(case.space)
    return {f"task {i}": trials_of(case.space, t, domain) for i, t in enumerate(case.tasks)}


WITH_MEMORY: dict[str, Callable[[Case], Any]] = {
    name: lambda c, algo=algo: algo(memory=_memory(c), **options_of(c))  # type: ignore[misc]
    for name, algo in {
        "auto with memory": ours.auto,
        "tst": ours.tst,
        "pmf": ours.pmf,
        "blended": ours.blended,
    }.items()
}


def run_boasf(case: Case) -> None:
    """The loop of its own, on an objective that answers with what the case has seen."""
    if not case.space:
        return
    domain = domain_of(case.space)
    losses = [run.loss for run in case.runs] or [0.5]
    told = iter(losses * 20)
    ours.boasf_fmin(
        lambda values: next(told),
        domain.expr,
        max_evals=case.pick(0, [3, 8]),
        split=case.pick(1, [None, 2]),
        rounds=case.pick(2, [2, 3]),
        inner="random",
        trials=trials_of(case.space, case.runs[:4], domain) if case.pick(3, [0, 1]) else None,
        rstate=np.random.default_rng(case.seed),
        verbose=False,
        catch_eval_exceptions=True,
    )


def begin(case: Case) -> None:
    if not case.space:
        return
    domain = domain_of(case.space)
    trials = ours.initial_trials(
        domain.expr,
        case.pick(0, ["diverse", "portfolio", "knn", "top_k"]),
        memory=memory_of(case),
        meta_features=case.meta_features or None,
        mode=case.pick(1, ["part", "replace", "add"]),
        n_configs=case.pick(2, [None, 1, 3]),
        n_startup_jobs=case.pick(3, [10, 1, 3]),
        trials=trials_of(case.space, case.runs, domain) if case.pick(4, [0, 1]) else None,
        seed=case.seed,
    )
    for document in trials._dynamic_trials:
        if "initial_design" in document["misc"]:
            check_document(document, case, domain)


TARGETS: dict[str, Callable[[Case], None]] = {
    **{f"Hyperopt {name}": partial(suggest, make) for name, make in ALGOS.items()},
    **{f"Hyperopt {name}": partial(suggest, make) for name, make in WITH_MEMORY.items()},
    "Hyperopt boasf_fmin": run_boasf,
    "Hyperopt initial_trials": begin,
}
