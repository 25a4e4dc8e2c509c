"""Samplers, pruner and initial design of Optuna, tried on a case."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import optuna
from automl_plugins.adapters import optuna as ours
from core_targets import POLICIES, SURROGATES, memory_of
from histories import Case, Run
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState
from spaces import Values, distribution, is_in

BEGIN = datetime(2026, 1, 1)
STATES = {
    "complete": TrialState.COMPLETE,
    "failed": TrialState.FAIL,
    "pruned": TrialState.PRUNED,
    "running": TrialState.RUNNING,
}


# --- a study of the case ----------------------------------------------------------------------


def study_of(case: Case, sampler: BaseSampler | None, **options: Any) -> optuna.Study:
    options["direction"] = "maximize" if case.maximize else "minimize"
    study = optuna.create_study(sampler=sampler, **options)
    for i, run in enumerate(case.runs):
        study._storage.create_new_trial(study._study_id, template_trial=frozen(run, i))
    return study


def frozen(run: Run, i: int) -> FrozenTrial:
    """The run as a trial; a complete one always has a number, for Optuna refuses others."""
    state = STATES[run.state]
    if state == TrialState.COMPLETE and math.isnan(run.loss):
        state = TrialState.FAIL
    begin = BEGIN + timedelta(seconds=i)
    wrong = isinstance(run.seconds, float) and run.seconds < 0
    end = begin - timedelta(seconds=3) if wrong else begin + timedelta(seconds=1)
    by_name = {p.name: distribution(p) for p in run.parameters if p.name in run.values}
    # Optuna reckons the steps of integers beyond 2^53 in floats, and refuses some values.
    values = {
        name: value
        for name, value in run.values.items()
        if by_name[name]._contains(by_name[name].to_internal_repr(value))
    }
    by_name = {name: by_name[name] for name in values}
    attributes = {} if run.seconds is None else {"seconds": run.seconds}
    constraints = {f"c{i}": c for i, c in enumerate(run.constraints) if not math.isnan(c)}
    told: dict[str, Any] = {}
    if constraints and hasattr(FrozenTrial, "constraints"):
        told = {"constraints": constraints}
    elif constraints:  # Optuna 4 keeps them so
        told = {"system_attrs": {"constraints": list(constraints.values())}}
    trial = optuna.trial.create_trial(
        state=state,
        value=run.loss if state == TrialState.COMPLETE else None,
        params=values,
        distributions=by_name,
        user_attrs=attributes,
        intermediate_values=dict(run.curve),
        **told,
    )
    trial.datetime_start = begin
    trial.datetime_complete = None if state == TrialState.RUNNING else end
    return trial


def check_notes(trial: FrozenTrial) -> None:
    """What we have stored with a trial is JSON that every reader takes, without NaN."""
    ours = {k: v for k, v in trial.system_attrs.items() if k.startswith("automl_plugins")}
    json.dumps(ours, allow_nan=False)


def ask_and_check(study: optuna.Study, case: Case) -> tuple[optuna.Trial, Values]:
    """The next trial, its values in the ranges that were asked for and of their types."""
    trial = study.ask()
    values: Values = {}
    places: dict[str, int] = {}
    for p in case.space:
        if not p.is_active(places):
            continue
        asked = distribution(p)
        value = values[p.name] = trial._suggest(p.name, asked)
        assert is_in(value, p), f"{p.name!r} is {value!r}, none of {asked}"
        if p.kind == "choice":
            places[p.name] = int(asked.to_internal_repr(value))
    kept = study._storage.get_trial(trial._trial_id)
    assert kept.params.keys() == values.keys()
    check_notes(kept)
    kept._validate()
    return trial, values


def search_on(case: Case, study: optuna.Study) -> None:
    """Two proposals, the first of which is answered with something odd."""
    trial, _ = ask_and_check(study, case)
    how = case.pick(7, ["complete", "failed", "running", "pruned", "complete"])
    if how == "complete":
        study.tell(trial, case.pick(6, [0.5, math.inf, -math.inf, -0.0, 1e308]))
    elif how == "pruned":
        trial.report(case.pick(6, [0.5, math.nan, math.inf]), 1)
        study.tell(trial, state=TrialState.PRUNED)
    elif how == "failed":
        study.tell(trial, state=TrialState.FAIL)
    trial, _ = ask_and_check(study, case)
    study.tell(trial, 0.25)


# --- samplers ---------------------------------------------------------------------------------


def options_of(case: Case) -> dict[str, Any]:
    declared = None
    if case.pick(4, [0, 0, 0, 1]):
        declared = {p.name: distribution(p) for p in case.space}
    return {
        "seed": case.seed,
        "n_startup_trials": case.pick(0, [None, 0, 0, 3]),
        "n_candidates": case.pick(1, [50, 20, 100, 50, 50, None]),
        "max_rows": case.pick(2, [None, 2, 500]),
        "failed_trials": case.pick(3, ["avoid", "avoid", "ignore"]),
        "search_space": declared,
        "ordinal": ordered(case) if case.pick(5, [0, 0, 1]) else None,
        "independent_sampler": RandomSampler(seed=0) if case.pick(5, [0, 0, 0, 1]) else None,
        "warn_independent_sampling": False,
    }


def ordered(case: Case) -> dict[str, list[Any]] | None:
    """The first choice, the other way round, where its history has the same choices."""
    for p in case.space:
        if p.kind == "choice":
            same = all(q in case.space for run in case.runs for q in run.parameters)
            return {p.name: list(p.choices[::-1])} if same else None
    return None


def cost_of(case: Case) -> Any:
    return case.pick(6, [None, "duration", "seconds", lambda trial: 1.0])


def sample(make: Callable[[Case], BaseSampler], case: Case) -> None:
    search_on(case, study_of(case, make(case)))


def _surrogate(case: Case) -> Any:
    return ours.SurrogateSampler(
        case.pick(4, ["quantile_boosting", *SURROGATES]),
        acquisition=case.pick(6, ["ei", "bound", "ei_per_second", "bound_per_second"]),
        interleave=case.pick(5, [None, 2, 3]),
        **options_of(case),
    )


def _arm_options(case: Case) -> dict[str, Any]:
    declared = None
    if case.pick(4, [0, 0, 0, 1]):
        declared = {p.name: distribution(p) for p in case.space}
    return {
        "seed": case.seed,
        "search_space": declared,
        "reward_range": case.pick(5, [None, None, (0.0, 1.0), (-1e308, 1e308)]),
        "cost": cost_of(case),
        "warn_independent_sampling": False,
        "inner": case.pick(3, [None, None, RandomSampler, TPESampler(seed=0)]),
    }


def _boasf(case: Case) -> Any:
    budget = case.pick(0, [{"n_trials": 20}, {"n_trials": 1}, {"seconds": 100.0}])
    split = case.pick(1, [None, None, 2])
    options = _arm_options(case)
    if budget.get("seconds") is None:
        options.pop("cost")
    return ours.BOASFSampler(split=split, **budget, **options)


SAMPLERS: dict[str, Callable[[Case], BaseSampler]] = {
    "AutoSampler": lambda c: ours.AutoSampler(**options_of(c), cost=cost_of(c)),
    "GBQRSampler": lambda c: ours.GBQRSampler(**options_of(c), cost=cost_of(c)),
    "GBQRSampler.thesis": lambda c: ours.GBQRSampler.thesis(
        **options_of(c) | {"n_candidates": 50}, cost=cost_of(c)
    ),
    "EIPerSecondSampler": lambda c: ours.EIPerSecondSampler(**options_of(c)),
    "SurrogateSampler": _surrogate,
    "WeightedModelSampler": lambda c: ours.WeightedModelSampler(
        weights=c.pick(0, ["2^N", "volume"]), **_arm_options(c)
    ),
    "BanditSampler": lambda c: ours.BanditSampler(
        policy=c.pick(0, list(POLICIES.values()))(), **_arm_options(c)
    ),
    "BOASFSampler": _boasf,
}
WITH_MEMORY: dict[str, Callable[[Case], BaseSampler]] = {
    "AutoSampler with memory": lambda c: ours.AutoSampler(memory_of(c), **options_of(c)),
    "TSTSampler": lambda c: ours.TSTSampler(memory_of(c), **options_of(c)),
    "PMFSampler": lambda c: ours.PMFSampler(memory_of(c), **options_of(c)),
    "BlendedSampler": lambda c: ours.BlendedSampler(memory_of(c), **options_of(c)),
}


def refuse_objectives(case: Case) -> None:
    """Several objectives, which every sampler refuses."""
    makes = {**SAMPLERS, **WITH_MEMORY}
    name = case.pick(0, sorted(makes))
    study = optuna.create_study(
        sampler=makes[name](case), directions=["minimize"] * case.pick(1, [2, 3])
    )
    study.ask().suggest_float("x", 0, 1)
    raise AssertionError(f"{name} has taken several objectives")


# --- pruner and initial design ----------------------------------------------------------------


def prune(case: Case) -> None:
    pruner = ours.SuccessiveFilteringPruner(
        case.pick(0, [1, 2, 100]),
        case.pick(1, [3, 2]),
        n_startup_trials=case.pick(2, [4, 0, 1]),
        seed=case.seed,
    )
    study = study_of(case, RandomSampler(seed=0), pruner=pruner)
    for run in (*case.runs[:6], *case.runs[-2:]):
        trial = study.ask()
        for step, value in run.curve:
            if step >= 0:
                trial.report(value, step)
            first = trial.should_prune()
            assert type(first) is bool and trial.should_prune() == first
        kept = study._storage.get_trial(trial._trial_id)
        check_notes(kept)
        study.tell(trial, state=TrialState.PRUNED if kept.intermediate_values else TrialState.FAIL)


def enqueue(case: Case) -> None:
    study = study_of(case, RandomSampler(seed=0))
    design = ours.enqueue_initial_design(
        study,
        case.pick(0, ["diverse", "portfolio", "knn", "top_k"]),
        memory=memory_of(case),
        meta_features=case.meta_features or None,
        search_space={p.name: distribution(p) for p in case.space} or None,
        mode=case.pick(1, ["part", "replace", "add"]),
        n_configs=case.pick(2, [None, 1, 3]),
        n_startup_trials=case.pick(3, [10, 1, 3]),
        seed=case.seed,
    )
    for _ in range(min(len(design), 2)):
        ask_and_check(study, case)


TARGETS: dict[str, Callable[[Case], None]] = {
    **{f"Optuna {name}": partial(sample, make) for name, make in SAMPLERS.items()},
    **{f"Optuna {name}": partial(sample, make) for name, make in WITH_MEMORY.items()},
    "Optuna several objectives": refuse_objectives,
    "Optuna SuccessiveFilteringPruner": prune,
    "Optuna enqueue_initial_design": enqueue,
}
