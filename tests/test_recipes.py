"""The methods by name: what each framework's classes are made of."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from proposing import a_space

from automl_plugins import recipes
from automl_plugins.meta import MetaDataset, TaskRecord
from automl_plugins.proposers.committee import Committee
from automl_plugins.proposers.model_based import ModelBasedProposer
from automl_plugins.proposers.pipelines import PipelineProposer
from automl_plugins.proposers.proposal import Proposal, Proposer
from automl_plugins.proposers.with_memory import SuggestedStart, WithFallback
from automl_plugins.recipes import with_memory, without_memory
from automl_plugins.recipes.with_memory import AutoOptions
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.values import to_values
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams
from automl_plugins.surrogates.two_stage import TwoStageTransfer

RNG = np.random.default_rng(0)


def a_memory() -> MetaDataset:
    space = a_space()
    configurations: list[dict[str, Any]] = [{"kind": "a", "x": v} for v in RNG.random(10).tolist()]
    configurations += [{"kind": "b", "x": v, "y": w} for v, w in RNG.random((10, 2)).tolist()]
    return MetaDataset.from_records(
        [
            TaskRecord(
                f"task {i}",
                configurations,
                np.array([abs(c["x"] - best) + (c["kind"] == "b") for c in configurations]),
                space=space,
                meta_features={"best": best},
            )
            for i, best in enumerate((0.2, 0.25, 0.7))
        ],
        space,
    )


MEMORY = a_memory()
SPACE = VectorSpace(a_space())
EMPTY = History.of(np.empty((0, 3)), [])

PLAIN: dict[str, Callable[..., Proposer]] = {
    "auto": recipes.auto,
    "auto_per_second": lambda **o: recipes.auto(per_second=True, **o),
    "gbqr": recipes.gbqr,
    "gbqr_per_second": lambda **o: recipes.gbqr(per_second=True, **o),
    "gbqr_thesis": recipes.gbqr_thesis,
    "ei_per_second": recipes.ei_per_second,
}
TRANSFER: dict[str, Callable[..., Proposer]] = {
    "auto_with_memory": lambda **o: recipes.auto(MEMORY, **o),
    "tst": lambda **o: recipes.tst(MEMORY, **o),
    "tst_paper": lambda **o: recipes.tst(MEMORY, paper=True, **o),
    "tst_m": lambda **o: recipes.tst(
        MEMORY, distance="meta_features", meta_features={"best": 0.22}, **o
    ),
    "blended": lambda **o: recipes.blended(MEMORY, meta_features={"best": 0.22}, **o),
    "blended_mean": lambda **o: recipes.blended(MEMORY, **o),
    "pmf": lambda **o: recipes.pmf(MEMORY, **o),
}


def observed(n: int = 12) -> History:
    vectors = SPACE.sample(n, np.random.default_rng(4))
    losses = np.abs(vectors[:, SPACE.space.index_of["x"]] - 0.3)
    status = np.full(n, Status.COMPLETE)
    status[n // 2] = Status.FAILED
    losses[n // 2] = np.nan
    return History.of(vectors, losses, seconds=1.0 + np.arange(n), status=status)


def same(a: Proposal, b: Proposal) -> None:
    np.testing.assert_array_equal(a.vector, b.vector)
    assert (a.origin, a.loss, a.bound, a.shares) == (b.origin, b.loss, b.bound, b.shares)
    assert (a.member, a.trust) == (b.member, b.trust)


# The same models as others, with seconds or without meta-features.
ALIKE = {"auto_per_second", "gbqr_per_second", "blended_mean"}


@pytest.mark.parametrize("name", [n for n in (*PLAIN, *TRANSFER) if n not in ALIKE])
def test_a_proposal_is_a_function_of_its_arguments(name: str) -> None:
    make = (PLAIN | TRANSFER)[name]
    proposer, history = make(), observed()
    first = proposer.propose(SPACE, history, Streams(1), 12)
    assert SPACE.allowed(first.vector[None]).all()
    assert not SPACE.seen(first.vector[None], np.sort(SPACE.keys(history.vectors)))[0]
    proposer.propose(SPACE, history.first(7), Streams(1), 7)  # a cache must not matter
    same(proposer.propose(SPACE, history, Streams(1), 12), first)
    same(pickle.loads(pickle.dumps(make())).propose(SPACE, history, Streams(1), 12), first)


@pytest.mark.parametrize("name", list(TRANSFER))
def test_a_memory_answers_before_the_first_evaluation(name: str) -> None:
    proposal = TRANSFER[name]().propose(SPACE, EMPTY, Streams(0), 0)
    columns = SPACE.space.index_of
    assert proposal.vector[columns["kind"]] == 0.0  # better by one on every task
    assert np.isnan(proposal.vector[columns["y"]])


def error_rate(vector: np.ndarray) -> float:
    """As of a classifier on few rows: steps, a plateau at the best, useless settings at 0.4."""
    place = SPACE.space.index_of
    x, y = vector[place["x"]], vector[place["y"]]
    if vector[place["kind"]] == 0.0:
        exact = 0.4 if x < 0.25 else 0.03 + (x - 0.6) ** 2
    else:
        exact = 0.4 if y > 0.7 else 0.02 + 0.5 * (x - 0.7) ** 2 + (y - 0.3) ** 2
    luck = 0.01 * np.sin(60.0 * x + 40.0 * np.nan_to_num(y))
    return round(500.0 * float(exact + luck)) / 500.0


def runs_of_the_same_task(n_tasks: int, n: int = 30) -> MetaDataset:
    records = []
    for i in range(n_tasks):
        vectors = SPACE.sample(n, np.random.default_rng(10 + i))
        losses = np.array([error_rate(vector) for vector in vectors])
        configurations = to_values(SPACE.space, vectors)
        records.append(TaskRecord(f"run {i}", configurations, losses, space=SPACE.space))
    return MetaDataset.from_records(records, SPACE.space)


def begun(proposer: Proposer, n: int) -> tuple[History, list[float]]:
    """The first ``n`` evaluations of a search."""
    vectors: list[np.ndarray] = []
    losses: list[float] = []
    history = EMPTY
    for k in range(n):
        vectors.append(proposer.propose(SPACE, history, Streams(0), k).vector)
        losses.append(error_rate(vectors[-1]))
        history = History.of(vectors, losses)
    return history, losses


@pytest.mark.parametrize("n_tasks", [1, 2, 3])
def test_transfer_finds_the_best_of_the_same_task_again(n_tasks: int) -> None:
    memory = runs_of_the_same_task(n_tasks)
    assert min(begun(recipes.tst(memory), 3)[1]) <= memory.losses.min()


def test_what_was_recorded_comes_first_where_the_best_is_promised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory = runs_of_the_same_task(3)
    best = [memory.vectors[rows][memory.losses[rows].argmin()].tobytes() for rows in memory.rows]

    def recorded(promised: float, paper: bool = False) -> list[bool]:
        monkeypatch.setattr(TwoStageTransfer, "promise", lambda _, X: np.full(len(X), promised))
        history, _ = begun(recipes.tst(memory, paper=paper), 4)
        return [vector.tobytes() in best for vector in history.vectors]

    assert recorded(0.0499) == [True, True, True, False]
    assert recorded(0.05) == recorded(0.0, paper=True) == [False] * 4
    monkeypatch.undo()
    first = recipes.tst(memory).propose(SPACE, EMPTY, Streams(0), 0).vector
    assert first.tobytes() in best
    # decided values are kept
    kind = SPACE.space.index_of["kind"]
    for option in (0.0, 1.0):
        fixed = np.where(np.arange(3) == kind, option, np.nan)
        proposal = recipes.tst(memory).propose(SPACE, EMPTY, Streams(0), 0, fixed)
        assert proposal.vector[kind] == option


@pytest.mark.parametrize("name", ["tst", "tst_paper", "blended"])
def test_shares_are_of_earlier_tasks(name: str) -> None:
    for history, k in ((EMPTY, 0), (observed(), 12)):
        proposal = TRANSFER[name]().propose(SPACE, history, Streams(0), k)
        assert proposal.shares is not None
        assert all(0.0 <= share <= 1.0 for share in proposal.shares.values())
        assert sum(proposal.shares.values()) <= 1.0 + 1e-12
        expected = {"meta-learner"} if name == "blended" else {t.name for t in MEMORY.tasks}
        assert set(proposal.shares) == expected


@pytest.mark.parametrize("name", ["auto", "tst", "blended", "pmf"])
def test_the_task_itself_tells_nothing(name: str) -> None:
    make = getattr(recipes, name)
    made = [make(MEMORY, task="task 2"), make(MEMORY.without("task 2"))]
    same(*(proposer.propose(SPACE, observed(), Streams(3), 12) for proposer in made))


@pytest.mark.parametrize("name", list(PLAIN))
def test_without_a_memory_it_starts_by_a_design(name: str) -> None:
    proposer, timed = PLAIN[name](n_startup=2), name.endswith("_per_second")
    proposal = proposer.propose(SPACE, EMPTY, Streams(0), 0)
    assert proposal.origin in ("design", "random") and proposal.shares is None
    later = proposer.propose(SPACE, observed(), Streams(0), 13)
    assert later.origin == "model" and later.shares is None
    assert timed == (later.seconds is not None)


def model_based(proposer: Proposer) -> ModelBasedProposer:
    """The proposer with the model, inside of those that hand over to it."""
    return members_of(proposer)[0]


def members_of(proposer: Proposer) -> list[ModelBasedProposer]:
    """Those of a committee; else the one."""
    while not isinstance(proposer, ModelBasedProposer):
        if isinstance(proposer, Committee):
            return list(proposer.members.values())
        if isinstance(proposer, PipelineProposer):
            proposer = proposer.fallback
        else:
            assert isinstance(proposer, WithFallback | SuggestedStart)
            proposer = proposer.proposer
    return [proposer]


@pytest.mark.parametrize("name", [*PLAIN, "tst", "tst_paper"])
def test_only_presets_of_a_source_stay_on_plateaus(name: str) -> None:
    proposer = model_based((PLAIN | TRANSFER)[name]())
    assert (proposer.settings.plateau_reach is None) == (name in ("gbqr_thesis", "tst_paper"))


def test_what_misleads_is_made_up_for_by_a_start_design() -> None:
    for n in (5, 2):
        members = members_of(recipes.auto(MEMORY, n_suggested=n))
        assert [one.n_startup(SPACE) for one in members] == [6, 6, 6, n, n]
        by_default = members_of(recipes.auto(MEMORY, n_suggested=n, n_startup=None))
        assert [one.n_startup(SPACE) for one in by_default] == [6, 6, 6, n, n]
    assert {one.n_startup(SPACE) for one in members_of(recipes.auto(MEMORY, n_startup=9))} == {9}


def test_of_noisy_losses_the_process_alone_is_asked() -> None:
    known = observed(40)
    x = known.vectors[:, SPACE.space.index_of["x"]]
    noise = np.random.default_rng(5).normal(scale=0.15, size=40)
    noisy = History.of(known.vectors, (x - 0.3) ** 2 + noise)
    exact = History.of(known.vectors, (x - 0.3) ** 2)
    for memory, others in ((None, set()), (MEMORY, {"earlier tasks", "meta-learner"})):
        proposer = recipes.auto(memory)
        trusts = [proposer.propose(SPACE, h, Streams(0), 40).trust or {} for h in (noisy, exact)]
        assert "process" in trusts[0] and trusts[0].keys() <= {"process"} | others
        assert trusts[1].keys() & {"trees", "log process"}


def test_a_search_that_has_come_near_ends_at_the_optimum() -> None:
    space = VectorSpace(ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(5)}))
    top, steep, rng = np.linspace(0.3, 0.6, 5), np.logspace(0.0, 3.0, 5), np.random.default_rng(0)
    near = np.clip(top + 0.03 * rng.normal(size=(100, 5)), 0.0, 1.0)
    found = []
    for has_local in (True, False):
        proposer: Any = recipes.auto(None)
        proposer.local = proposer.local if has_local else None
        rows = [*space.sample(28, np.random.default_rng(1)), *near]
        for k in range(128, 148):
            history = History.of(rows, (np.array(rows) - top) ** 2 @ steep)
            rows.append(proposer.propose(space, history, Streams(0), k).vector)
        found.append(((np.array(rows) - top) ** 2 @ steep).min())
    assert found[0] < 0.2 * found[1]


def test_auto_ends_beside_a_border() -> None:
    space = VectorSpace(ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)}))
    spread, rng = 0.05, np.random.default_rng(0)
    best, forbidden = np.array([0.25, 0.3]), np.array([0.8, 0.7])
    rows = np.repeat([best, forbidden], 70, axis=0) + spread * rng.normal(size=(140, 2))
    is_broken = np.arange(140) >= 70
    losses = np.where(is_broken, 0.0, 1.0) + 100.0 * spread * rng.random(140)
    history = History.of(rows, losses, constraints=np.where(is_broken, 1.0, -1.0)[:, None])
    proposal = recipes.auto(None).propose(space, history, Streams(0), 140)
    assert proposal.member == "local process"
    np.testing.assert_allclose(proposal.vector, best, atol=4.0 * spread)


def test_no_number_of_candidates_is_the_default_of_the_local_member_too() -> None:
    for options, expected in (
        ({}, 300),
        ({"n_candidates": None}, 300),
        ({"n_candidates": 50}, 50),
    ):
        proposer: Any = recipes.auto(None, **options)
        assert proposer.local.settings.n_candidates == expected


def test_the_local_member_proposes_with_a_memory_too() -> None:
    proposer = recipes.auto(MEMORY)
    members = [proposer.propose(SPACE, observed(140), Streams(0), k).member for k in (142, 143)]
    assert members[0] == "local process" != members[1]


def test_the_fallback_balances_as_the_search_does() -> None:
    for balance in (None, 3):
        proposer = recipes.blended(MEMORY, balance=balance)
        parts = members_of(proposer) + members_of(proposer.fallback)
        assert [part.settings.balance for part in parts] == [balance, balance]


def test_options_reach_the_settings() -> None:
    options = {"n_startup": 9, "n_candidates": 77, "max_rows": 33, "failed_trials": "ignore"}
    for make in (PLAIN | TRANSFER).values():
        proposer = make(**options)
        parts = members_of(proposer)
        if isinstance(proposer, WithFallback):
            parts += members_of(proposer.fallback)
        for settings in (part.settings for part in parts):
            assert (settings.n_startup, settings.n_candidates) == (9, 77)
            assert (settings.max_rows, settings.failed_trials) == (33, "ignore")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: recipes.gbqr(alpha=1.5), ValueError, "alpha"),
        (
            lambda: recipes.gbqr(doubt=-0.1),
            ValueError,
            "doubt must be a finite number >= 0, got -0.1",
        ),
        (lambda: recipes.gbqr(doubt="x"), TypeError, "doubt must be a finite number"),  # type: ignore[arg-type]
        (lambda: recipes.gbqr(n_candidates=10.5), TypeError, "n_candidates must be an integer"),  # type: ignore[arg-type]
        (lambda: recipes.surrogate(xi=None), TypeError, "xi must be a finite number >= 0, got N"),  # type: ignore[arg-type]
        (lambda: recipes.surrogate(beta=math.inf), ValueError, "beta must be a finite number"),
        (
            lambda: recipes.gbqr(per_second=True, cost_exponent="x"),  # type: ignore[arg-type]
            TypeError,
            "cost_exponent must be a number in",
        ),
        (
            lambda: recipes.auto(None, cost_exponent=2.0),
            ValueError,
            r"cost_exponent must be .*got 2",
        ),
        (lambda: recipes.gbqr(sed=1), TypeError, "takes no argument sed; it takes n_startup, "),  # type: ignore[call-arg]
        (lambda: recipes.tst("svm", seed=1), TypeError, r"\(seed: an argument of the optimizer\)"),  # type: ignore[call-arg]
        (lambda: recipes.auto(n_suggested=-1), ValueError, "n_suggested must be an integer >= 0"),
        *(
            (
                partial(recipes.auto, memory, task=3),  # type: ignore[arg-type]
                TypeError,
                "task must be the name of this task",
            )
            for memory in ("svm", "auto", None)
        ),
        *(
            (
                partial(make, per_second="yes"),  # type: ignore[arg-type]
                TypeError,
                "per_second must be True or False, got 'yes'",
            )
            for make in (recipes.auto, recipes.gbqr, recipes.gbqr_thesis)
        ),
        (lambda: recipes.tst(MEMORY, bandwidth=0.0), ValueError, "bandwidth"),
        (lambda: recipes.tst(MEMORY, distance="meta_features"), ValueError, "meta_features"),
        (lambda: recipes.tst(3), TypeError, "memory must be"),  # type: ignore[arg-type]
        (lambda: recipes.blended([]), ValueError, "no sources to learn from"),
        (lambda: recipes.pmf(None), TypeError, "memory must be"),  # type: ignore[arg-type]
        (
            lambda: recipes.ei_per_second(cost_exponent=2.0),
            ValueError,
            r"cost_exponent must be a number in \[0, 1\], got 2",
        ),
        (
            lambda: recipes.gbqr(per_second=True, cost_budget=0),
            ValueError,
            "cost_budget must be an integer >= 1, or None, got 0",
        ),
        (
            lambda: recipes.gbqr(balance=0),
            ValueError,
            "balance must be an integer >= 1, or None, got 0",
        ),
        *(
            (
                partial(PLAIN["gbqr"], **{option: "many"}),
                TypeError,
                f"{option} must be an integer >= .*got 'many'",
            )
            for option in ("n_startup", "n_candidates", "max_rows", "balance")
        ),
    ],
)
def test_what_is_refused_at_once(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("n_candidates", 0, "n_candidates must be an integer >= 1, or None, got 0"),
        ("max_rows", -1, "max_rows must be an integer >= 2, or None, got -1"),
        ("n_startup", -1, "n_startup must be an integer >= 0, or None, got -1"),
        ("failed_trials", "never", "failed_trials must be one of 'avoid', 'ignore', got 'never'"),
    ],
)
@pytest.mark.parametrize("name", ["auto", "gbqr", "ei_per_second", "tst", "pmf", "blended"])
def test_options_outside_their_range_are_refused_at_once(
    name: str, option: str, value: object, message: str
) -> None:
    memory = () if name in PLAIN else (MEMORY,)
    with pytest.raises(ValueError, match=message):
        getattr(recipes, name)(*memory, **{option: value})


@pytest.mark.parametrize(
    ("recipe", "options", "given"),
    [
        (recipes.auto, AutoOptions, {"memory"}),
        (recipes.gbqr, without_memory.GBQROptions, set()),
        (recipes.ei_per_second, without_memory.EIPerSecondOptions, set()),
        (recipes.surrogate, without_memory.SurrogateOptions, {"surrogate"}),
        (recipes.tst, with_memory.TSTOptions, {"memory"}),
        (recipes.blended, with_memory.BlendedOptions, {"memory"}),
        (recipes.pmf, with_memory.PMFOptions, {"memory"}),
    ],
)
def test_adapters_offer_all_arguments_of_a_recipe(
    recipe: Callable[..., Any], options: type, given: set[str]
) -> None:
    own = set(signature(recipe).parameters) - {"options"} - given
    assert options.__annotations__.keys() == own | without_memory.Options.__annotations__.keys()
