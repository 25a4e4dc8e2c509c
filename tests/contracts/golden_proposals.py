"""Proposals of every method, each from a given history; the cases cover all pairs of factors.

A case is named after its framework, space, history and seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
from automl_plugins.adapters import hyperopt as our_hyperopt
from automl_plugins.adapters import optuna as our_optuna
from ConfigSpace import (
    ConfigurationSpace,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    ForbiddenGreaterThanRelation,
    ForbiddenInClause,
)
from goldens import FOLDER, NUMERICS, Case, read
from searches import (
    Parameter,
    Run,
    Space,
    Values,
    as_configspace,
    as_pyll,
    as_study,
    as_trials,
    draw_runs,
    draw_tasks,
    in_hyperopt,
    in_optuna,
    in_smac,
    values_of,
)

from automl_plugins import recipes
from automl_plugins.meta import MetaStore, TaskRecord

# --- factors ----------------------------------------------------------------------------------

FLAT = (
    Parameter("x", "float", -2, 3),
    Parameter("rate", "log", -6, 0),
    Parameter("depth", "int", 1, 9),
    Parameter("width", "log_int", 2, 300),
    Parameter("outer", "choice", high=3),
)
CONDITIONAL = (
    Parameter("rate", "log", -6, 0),
    Parameter("outer", "choice", high=3),
    Parameter("depth", "int", 1, 9, parent="outer"),
    Parameter("inner", "choice", high=2, parent="outer"),
    Parameter("deep", "float", 0, 1, parent="inner", options=(1,)),
    Parameter("width", "log_int", 2, 300, parent="outer", options=(1,)),
    Parameter("both", "float", -1, 4, parent="outer", options=(0, 1)),
)
WIDE = (
    *(Parameter(f"x{i}", "float", -i, i + 1) for i in range(20)),
    *(Parameter(f"rate{i}", "log", -i - 2, 1) for i in range(8)),
    *(Parameter(f"depth{i}", "int", 0, i + 3) for i in range(6)),
    *(Parameter(f"width{i}", "log_int", 1, 40 * (i + 1)) for i in range(3)),
    *(Parameter(name, "choice", high=3) for name in ("outer", "other", "third")),
)
SPACES: dict[str, Space] = {
    "flat": FLAT,
    "conditional": CONDITIONAL,
    "wide": WIDE,
    "forbidden": (*CONDITIONAL, Parameter("height", "int", 1, 9, parent="outer")),
}
HISTORIES: dict[str, Callable[..., list[Run]]] = {
    "begun": partial(draw_runs, n=2),
    "complete": partial(draw_runs, n=30),
    "failed": partial(draw_runs, n=32, failed=0.3),
    "pruned": partial(draw_runs, n=34, pruned=0.3),
    "running": partial(draw_runs, n=30, running=3),
    "all": partial(draw_runs, n=60, failed=0.1, pruned=0.1, running=2),
}
META_FEATURES = {"NumberOfInstances": 300.0, "NumberOfFeatures": 7.0}
TASKS = ("monday", "tuesday", "wednesday")


def with_forbidden(space: ConfigurationSpace) -> ConfigurationSpace:
    space.add(
        ForbiddenGreaterThanRelation(space["depth"], space["height"]),
        ForbiddenAndConjunction(
            ForbiddenEqualsClause(space["outer"], "outer0"),
            ForbiddenInClause(space["depth"], [2, 3, 7]),
        ),
    )
    return space


def is_allowed(values: Values) -> bool:
    depth = values.get("depth")
    return depth is None or (depth <= values["height"] and depth not in (2, 3, 7))


@dataclass(frozen=True)
class Situation:
    """The input of a method: a space, a history, earlier tasks and a seed."""

    space: str
    history: str
    seed: int
    folder: Path

    @property
    def parameters(self) -> Space:
        return SPACES[self.space]

    @property
    def configspace(self) -> ConfigurationSpace:
        space = as_configspace(self.parameters)
        return with_forbidden(space) if self.space == "forbidden" else space

    @property
    def runs(self) -> list[Run]:
        rng = np.random.default_rng([1, self.seed])
        options: Any = {"allowed": is_allowed} if self.space == "forbidden" else {}
        return HISTORIES[self.history](self.parameters, rng=rng, **options)

    @property
    def tasks(self) -> dict[str, list[Run]]:
        """Tasks of 40 configurations, which contain those of the history or lie among them."""
        rng = np.random.default_rng([1, self.seed])
        options: Any = {"allowed": is_allowed} if self.space == "forbidden" else {}
        return draw_tasks(self.parameters, 40, rng, TASKS, **options)

    @property
    def records(self) -> list[TaskRecord]:
        return [
            TaskRecord(
                name,
                [run.values for run in runs],
                np.array([run.loss for run in runs]),
                space=self.configspace,
                meta_features={
                    "NumberOfInstances": 100.0 * (i + 1),
                    "NumberOfFeatures": 9.0 - i,
                },
            )
            for i, (name, runs) in enumerate(self.tasks.items())
        ]

    def stored(self) -> str:
        address = f"sqlite:///{self.folder / 'runs.db'}"
        with MetaStore(address) as store:
            for record in self.records:
                store.add(record)
        return address


# --- methods ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """A method in every framework.

    Attributes:
        core: Makes a proposer, from earlier tasks if it takes them.
        optuna: Makes a sampler in the same way.
        hyperopt: Makes an algo, with earlier tasks as ``memory=``.
        transfers: Whether it takes earlier tasks.
    """

    core: Callable[..., Any]
    optuna: Callable[..., Any]
    hyperopt: Callable[..., Any]
    transfers: bool = False

    def in_optuna(self, at: Situation) -> Values:
        if not self.transfers:
            sampler = self.optuna(seed=at.seed)
        elif at.seed:  # earlier studies
            studies = {name: as_study(at.parameters, runs) for name, runs in at.tasks.items()}
            sampler = self.optuna(studies, seed=at.seed)
        else:
            sampler = self.optuna(at.records, seed=at.seed)
        return in_optuna(sampler, at.parameters, at.runs)

    def in_hyperopt(self, at: Situation) -> Values:
        memory: dict[str, Any] = {}
        if self.transfers and at.seed:
            memory["memory"] = {n: as_trials(at.parameters, r) for n, r in at.tasks.items()}
        elif self.transfers:
            memory["memory"] = at.records
        return in_hyperopt(self.hyperopt(**memory, seed=at.seed), at.parameters, at.runs)

    def in_smac(self, at: Situation) -> Values:
        if not self.transfers:
            proposer = self.core()
        else:
            proposer = self.core(at.stored() if at.seed else at.records)
        return in_smac(proposer, at.configspace, at.runs, at.folder, at.seed)


def surrogate(name: str, **options: Any) -> Method:
    return Method(
        partial(recipes.surrogate, name, **options),
        partial(our_optuna.SurrogateSampler, name, **options),
        partial(our_hyperopt.surrogate, surrogate=name, **options),
    )


METHODS: dict[str, Method] = {
    "auto": Method(recipes.auto, our_optuna.AutoSampler, our_hyperopt.auto),
    "auto_per_second": Method(
        partial(recipes.auto, per_second=True),
        partial(our_optuna.AutoSampler, cost="seconds"),
        partial(our_hyperopt.auto, per_second=True),
    ),
    "auto_with_memory": Method(
        partial(recipes.auto, meta_features=META_FEATURES),
        partial(our_optuna.AutoSampler, meta_features=META_FEATURES),
        partial(our_hyperopt.auto, meta_features=META_FEATURES),
        transfers=True,
    ),
    "gbqr": Method(recipes.gbqr, our_optuna.GBQRSampler, our_hyperopt.gbqr),
    "gbqr_per_second": Method(
        partial(recipes.gbqr, per_second=True),
        partial(our_optuna.GBQRSampler, cost="seconds"),
        partial(our_hyperopt.gbqr, per_second=True),
    ),
    "gbqr_thesis": Method(
        recipes.gbqr_thesis,
        our_optuna.GBQRSampler.thesis,
        partial(our_hyperopt.gbqr, thesis=True),
    ),
    "ei_per_second": Method(
        recipes.ei_per_second,
        partial(our_optuna.EIPerSecondSampler, cost="seconds"),
        our_hyperopt.ei_per_second,
    ),
    "random_forest": surrogate("random_forest", interleave=4),
    "extra_trees": surrogate(
        "extra_trees", acquisition="bound_per_second", beta=1.5, cost_exponent=0.5
    ),
    "gaussian_process": surrogate("gaussian_process", target="standardize"),
    "tst": Method(recipes.tst, our_optuna.TSTSampler, our_hyperopt.tst, transfers=True),
    "tst_paper": Method(
        partial(recipes.tst, paper=True),
        our_optuna.TSTSampler.paper,
        partial(our_hyperopt.tst, paper=True),
        transfers=True,
    ),
    "blended": Method(
        partial(recipes.blended, meta_features=META_FEATURES),
        partial(our_optuna.BlendedSampler, meta_features=META_FEATURES),
        partial(our_hyperopt.blended, meta_features=META_FEATURES),
        transfers=True,
    ),
    "pmf": Method(
        partial(recipes.pmf, meta_features=META_FEATURES),
        partial(our_optuna.PMFSampler, meta_features=META_FEATURES),
        partial(our_hyperopt.pmf, meta_features=META_FEATURES),
        transfers=True,
    ),
}


# --- methods that choose arms -----------------------------------------------------------------


def arm_in_optuna(sampler: Callable[..., Any], at: Situation) -> Values:
    return in_optuna(sampler("outer", seed=at.seed), at.parameters, at.runs)


def arm_in_hyperopt(algo: Callable[..., Any], at: Situation) -> Values:
    return in_hyperopt(algo(label="outer", seed=at.seed), at.parameters, at.runs)


def boasf_in_hyperopt(at: Situation) -> Values:
    trials = as_trials(at.parameters, [run for run in at.runs if run.status != "running"])
    our_hyperopt.boasf_fmin(
        lambda values: 0.5,
        as_pyll(at.parameters),
        max_evals=len(trials) + 1,
        trials=trials,
        label="outer",
        rstate=np.random.default_rng(at.seed),
        verbose=False,
    )
    return values_of(trials.trials[-1], at.parameters)


Ask = Callable[[Situation], Values]
ARMS: dict[str, dict[str, Ask]] = {
    "weighted": {
        "optuna": partial(arm_in_optuna, our_optuna.WeightedModelSampler),
        "hyperopt": partial(arm_in_hyperopt, our_hyperopt.weighted),
    },
    "bandit": {
        "optuna": partial(arm_in_optuna, our_optuna.BanditSampler),
        "hyperopt": partial(arm_in_hyperopt, our_hyperopt.bandit),
    },
    "boasf": {
        "optuna": partial(
            arm_in_optuna, partial(our_optuna.BOASFSampler, n_trials=90, cost="seconds")
        ),
        "hyperopt": boasf_in_hyperopt,
    },
}
ASKS: dict[str, dict[str, Ask]] = {
    **{
        name: {"optuna": m.in_optuna, "hyperopt": m.in_hyperopt, "smac": m.in_smac}
        for name, m in METHODS.items()
    },
    **ARMS,
}


# --- which of all combinations ----------------------------------------------------------------

Factors = tuple[str, str, str, str, int]  # method, framework, space, history, seed


#: Other seeds for cases in which two proposals are almost equally good, so that the last bit of a
#: sum decides, which processors round differently.
SEEDS: dict[Factors, int] = {
    ("auto_per_second", "optuna", "conditional", "pruned", 0): 2,
    ("auto_per_second", "optuna", "conditional", "running", 0): 2,
    ("auto_per_second", "smac", "conditional", "failed", 1): 2,
    ("auto_with_memory", "hyperopt", "wide", "complete", 0): 2,
    ("auto_with_memory", "optuna", "wide", "running", 0): 3,
    ("gbqr", "optuna", "wide", "running", 1): 3,
    ("gaussian_process", "hyperopt", "conditional", "failed", 1): 3,
    ("gaussian_process", "hyperopt", "wide", "all", 1): 2,
    ("gaussian_process", "optuna", "wide", "failed", 1): 2,
    ("tst", "hyperopt", "wide", "running", 0): 3,
    ("tst_paper", "smac", "forbidden", "complete", 0): 2,
    ("tst_paper", "smac", "wide", "running", 0): 3,
}


def chosen() -> list[Factors]:
    """A few of all combinations: those with a golden, and further ones for missing ``parts``.

    They are added greedily until no part is missing. A new method adds cases and changes none.
    Optuna and Hyperopt have no forbidden clauses; SMAC has no methods that choose arms.
    """
    left = [
        (method, framework, space, history, seed)
        for method, asks in ASKS.items()
        for framework, space, history, seed in product(asks, SPACES, HISTORIES, (0, 1))
        if space != "forbidden" or framework == "smac"
    ]
    planned = {(*factors[:4], seed): factors for factors, seed in SEEDS.items()}
    found = [planned.get(factors, factors) for factors in written()]
    missing = {part for factors in left for part in parts(factors)}
    missing -= {part for factors in found for part in parts(factors)}
    used: Counter[Any] = Counter(factor for factors in found for factor in factors)
    while missing:
        best = max(
            left,
            key=lambda factors: (len(missing & parts(factors)), -sum(used[f] for f in factors)),
        )
        found.append(best)
        missing -= parts(best)
        used.update(best)
    found = [(*factors[:4], SEEDS.get(factors, factors[4])) for factors in found]
    return sorted(found, key=lambda f: (list(ASKS).index(f[0]), f[1:]))


def written() -> list[Factors]:
    """The cases with a golden, of methods and levels that still exist."""
    found = []
    for method, asks in ASKS.items():
        path = FOLDER / f"proposals_{method}.json"
        for name in read(path.stem)["cases"] if path.exists() else ():
            framework, space, history, seed = name.split("-")
            if framework in asks and space in SPACES and history in HISTORIES:
                found.append((method, framework, space, history, int(seed)))
    return found


def parts(factors: Factors) -> set[Any]:
    """Each pair of levels; that frameworks propose alike is held by ``test_same_proposal.py``."""
    return set(combinations(enumerate(factors), 2))


def compute(ask: Ask, space: str, history: str, seed: int, folder: Path) -> Any:
    return ask(Situation(space, history, seed, folder))


def cases() -> Sequence[Case]:
    return [
        Case(
            f"proposals_{method}",
            f"{framework}-{space}-{history}-{seed}",
            partial(compute, ASKS[method][framework], space, history, seed),
            (*NUMERICS, framework),
        )
        for method, framework, space, history, seed in chosen()
    ]
