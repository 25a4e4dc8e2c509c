"""Recipes, policies, schedules and designs of the core, tried on a case."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from histories import Case, Run
from spaces import Parameter, as_configspace

from automl_plugins import bandits, recipes
from automl_plugins.bandits.records import Pulls
from automl_plugins.meta import MetaDataset, TaskRecord
from automl_plugins.meta import designs as designs_of_memory
from automl_plugins.proposers.proposal import Proposer, ask
from automl_plugins.records.history import History
from automl_plugins.records.trial import Columns, Status, Trial
from automl_plugins.spaces.values import to_values
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

STATUS = {
    "complete": Status.COMPLETE,
    "failed": Status.FAILED,
    "pruned": Status.PRUNED,
    "running": Status.RUNNING,
}

# --- what they are given ----------------------------------------------------------------------


def options_of(case: Case) -> dict[str, Any]:
    """Arguments that all recipes share."""
    return {
        "n_startup": case.pick(0, [None, 0, 0, 3]),
        "n_candidates": case.pick(1, [50, 20, 100, 50, 50, None]),
        "max_rows": case.pick(2, [None, 2, 500]),
        "failed_trials": case.pick(3, ["avoid", "avoid", "ignore"]),
    }


def trials_of(case: Case) -> list[Trial]:
    return [as_trial(run, i) for i, run in enumerate(case.runs)]


def as_trial(run: Run, number: int) -> Trial:
    seconds = run.seconds if isinstance(run.seconds, float) else math.nan
    return Trial(
        run.values,
        STATUS[run.state],
        run.loss,
        seconds,
        curve=dict(run.curve),
        number=number,
        ended=float(number),
        constraints={f"c{i}": c for i, c in enumerate(run.constraints)},
    )


def history_of(case: Case, space: VectorSpace) -> History:
    """The runs in the vectors of a space, as an adapter would encode them."""
    columns = Columns(trials_of(case))
    known = {p.name: p for p in case.space}
    vectors = np.full((len(columns), space.d), np.nan)
    for row, trial in enumerate(columns):
        for column, name in enumerate(space.names):
            if name in trial.config:
                vectors[row, column] = _entry(space, known[name], trial.config[name])
    active = ~np.isnan(space.activate(np.nan_to_num(vectors)))
    missing = np.isnan(vectors) & active
    return History.of_trials(columns, vectors=space.activate(vectors), missing=missing)


def _entry(space: VectorSpace, parameter: Parameter, value: Any) -> float:
    hyperparameter = space.space[parameter.name]
    try:
        with np.errstate(all="ignore"):  # the log of 0, of an old range
            entry = float(hyperparameter.to_vector(value))
    except (TypeError, ValueError, KeyError, OverflowError):
        return math.nan
    return entry if math.isfinite(entry) else math.nan


def memory_of(case: Case) -> list[TaskRecord]:
    """The earlier tasks."""
    features = case.meta_features
    return [
        TaskRecord.of(
            f"task {i}",
            [as_trial(run, k) for k, run in enumerate(runs) if run.state != "running"],
            space=as_configspace(case.space) if case.pick(4, [True, True, False]) else None,
        ).described(meta_features={n: v + i if i else v for n, v in features.items()})
        for i, runs in enumerate(case.tasks)
    ]


def check_vectors(space: VectorSpace, vectors: Any, seen: Any = None) -> None:
    """Valid configurations: complete, conditions respected, on the grid, allowed."""
    vectors = np.asarray(vectors, dtype=np.float64)
    assert vectors.shape[1:] == (space.d,), "the vectors have another width"
    assert not np.isinf(vectors).any(), "a vector is infinite"
    filled = np.where(np.isnan(vectors), 0.0, vectors)
    inactive = np.isnan(space.activate(filled)) if len(vectors) else np.isnan(vectors)
    del filled
    again = space.activate(vectors)
    assert np.array_equal(np.isnan(again), np.isnan(vectors)), "an inactive value is proposed"
    assert np.array_equal(np.isnan(vectors), inactive), "an active value is missing"
    assert np.allclose(space.canonical(vectors), vectors, equal_nan=True), "off the grid"
    assert space.allowed(vectors).all(), "a forbidden configuration is proposed"
    to_values(space.space, vectors)


# --- recipes ----------------------------------------------------------------------------------


def propose(make: Callable[[Case], Proposer], case: Case) -> None:
    space = VectorSpace(as_configspace(case.space, case.pick(5, [0, 0, 1])))
    if not space.d:
        return  # adapters ask for nothing then
    history = history_of(case, space)
    proposal = ask(make(case), space, history, Streams(case.seed), len(history))
    check_vectors(space, proposal.vector[None])
    everything = space.enumerate(1000)
    new = not space.seen(proposal.vector[None], np.sort(space.keys(history.vectors)))[0]
    assert new or everything is not None, "a configuration is repeated, and there are others"
    proposal.to_dict()
    repr(proposal)


SURROGATES = [*("random_forest", "extra_trees", "gaussian_process", "averaged_process")]


def surrogate(case: Case) -> Proposer:
    return recipes.surrogate(
        case.pick(4, ["quantile_boosting", *SURROGATES]),
        acquisition=case.pick(6, ["ei", "bound", "ei_per_second", "bound_per_second"]),
        target=case.pick(7, ["log_regret", "raw", "standardize", "normal_scores"]),
        interleave=case.pick(5, [None, 2, 3]),
        **options_of(case),
    )


RECIPES: dict[str, Callable[[Case], Proposer]] = {
    "auto": lambda c: recipes.auto(per_second=c.pick(4, [False, True]), **options_of(c)),
    "gbqr": lambda c: recipes.gbqr(per_second=c.pick(4, [False, True]), **options_of(c)),
    "gbqr_thesis": lambda c: recipes.gbqr_thesis(
        per_second=c.pick(4, [False, True]), n_candidates=50
    ),
    "surrogate": surrogate,
    "ei_per_second": lambda c: recipes.ei_per_second(**options_of(c)),
}


def _described(case: Case) -> dict[str, Any]:
    return {"meta_features": case.meta_features or None}


WITH_MEMORY: dict[str, Callable[[Case], Proposer]] = {
    "auto with memory": lambda c: recipes.auto(memory_of(c), **_described(c), **options_of(c)),
    "tst": lambda c: recipes.tst(
        memory_of(c),
        paper=c.pick(6, [False, False, True]),
        **options_of(c),
    ),
    "blended": lambda c: recipes.blended(memory_of(c), **_described(c), **options_of(c)),
    "pmf": lambda c: recipes.pmf(
        memory_of(c), start=c.pick(6, [None, "nearest"]), **_described(c), **options_of(c)
    ),
}

# --- arms -------------------------------------------------------------------------------------

POLICIES: dict[str, Callable[..., bandits.Policy]] = {
    "EpsilonGreedy": bandits.EpsilonGreedy,
    "DecreasingEpsilon": bandits.DecreasingEpsilon,
    "RandomArm": bandits.RandomArm,
    "AlwaysBest": bandits.AlwaysBest,
    "UCB1": bandits.UCB1,
    "UCB1Tuned": bandits.UCB1Tuned,
    "MaxUCB": bandits.MaxUCB,
    "Thompson": bandits.Thompson,
    "TopTwoThompson": bandits.TopTwoThompson,
    "IncreasingEffort": bandits.IncreasingEffort,
}


def arms_of(case: Case) -> tuple[list[int], Pulls]:
    """Arms, some of them closed or with a gap in their numbers, and their pulls."""
    rng = np.random.default_rng(case.seed)
    n = case.pick(0, [1, 2, 3, 10, 200])
    arms = sorted(set(rng.integers(0, n, n).tolist()))
    trials = list(Columns(trials_of(case)))
    infeasible = np.array([any(v > 0 for v in t.constraints.values()) for t in trials], bool)
    pulls = Pulls.from_losses(
        rng.integers(0, n + 2, len(trials)),
        np.array([t.loss for t in trials]),
        seconds=np.array([t.seconds for t in trials]),
        status=np.array([t.status for t in trials], dtype=np.int64),
        reward_range=case.pick(1, [None, None, (0.0, 1.0), (-1e308, 1e308), (0.0, 5e-324)]),
        infeasible=infeasible if case.pick(2, [True, False]) else None,
    )
    return arms, pulls


def choose_arm(make: Callable[..., bandits.Policy], case: Case) -> None:
    arms, pulls = arms_of(case)
    policy = make(**case.pick(3, [{}, {"min_pulls": 1, "min_share": 0.0}]))
    choice = policy.decide(arms, pulls.records, Streams(case.seed), len(pulls.records))
    assert type(choice.arm) is int and choice.arm in arms
    assert choice.score is None or not math.isnan(choice.score)
    repr(policy)


def filter_arms(case: Case) -> None:
    arms, pulls = arms_of(case)
    unit = case.pick(3, ["trials", "seconds"])
    filtering = bandits.SuccessiveFiltering(
        case.pick(4, [10, 1, 1000, 100]),
        unit=unit,
        rounds=case.pick(5, [3, 1, 7]),
        score=case.pick(6, ["maximum", "mean"]),
        min_pulls=case.pick(7, [1, 3]),
    )
    turn = filtering.next(arms, pulls.records, (), Streams(case.seed), len(pulls.records))
    assert turn.arm is None or (type(turn.arm) is int and turn.arm in arms)
    for opened in turn.opened:
        assert bandits.Round.from_dict(opened.to_dict()) == opened
    later = filtering.next(
        arms, pulls.records, turn.opened, Streams(case.seed), len(pulls.records)
    )
    assert later.arm == turn.arm and not later.opened


def halve(case: Case) -> None:
    kind = case.pick(0, [bandits.SuccessiveHalving, bandits.Hyperband])
    schedule = kind(
        n=case.pick(1, [1, 9, 30]),
        r_min=case.pick(2, [1 / 9, 1.0, 0.5, 1e-3]),
        eta=case.pick(3, [3, 2]),
    )
    losses = [run.loss for run in case.runs] or [0.0]
    done = list(schedule.run(lambda number: number, lambda c, r: losses[c % len(losses)]))
    assert done and all(0.0 < e.resource <= 1.0 for e in done)


# --- designs ----------------------------------------------------------------------------------

DESIGNS = ["diverse", "portfolio", "knn", "top_k", "delta", "bad_start", "opt"]


def design(name: str, case: Case) -> None:
    space = as_configspace(case.space)
    if not len(space):
        return
    memory = MetaDataset.from_records(memory_of(case), space)
    function = getattr(designs_of_memory, name)
    if name == "opt":
        vectors = VectorSpace(space).sample(5, np.random.default_rng(case.seed))
        function = partial(function, vectors=vectors, losses=np.arange(5.0))
    k = case.pick(0, [1, 3, 10])
    found = function(space, memory, case.meta_features or None, k)
    assert len(found) <= k
    vectors = np.array([s.vector for s in found]).reshape(-1, len(space))
    check_vectors(VectorSpace(space), vectors)
    assert len(set(VectorSpace(space).keys(vectors).tolist())) == len(found), "twice the same"
    str(found)


TARGETS: dict[str, Callable[[Case], None]] = {
    **{f"recipe {name}": partial(propose, make) for name, make in RECIPES.items()},
    **{f"recipe {name}": partial(propose, make) for name, make in WITH_MEMORY.items()},
    **{f"policy {name}": partial(choose_arm, make) for name, make in POLICIES.items()},
    "policy SuccessiveFiltering": filter_arms,
    "schedules of halving": halve,
    **{f"design {name}": partial(design, name) for name in DESIGNS},
}
