"""The proposer of the configurations of a memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ConfigSpace import Categorical, Configuration, ConfigurationSpace, EqualsCondition, Integer

from automl_plugins.arrays import FloatArray
from automl_plugins.meta import MetaDataset, TaskRecord
from automl_plugins.meta.factorization import MatrixFactorization, recommendation
from automl_plugins.proposers.pipelines import PipelineProposer, matrix
from automl_plugins.proposers.proposal import Proposal
from automl_plugins.recipes import gbqr, pmf
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.values import to_values
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

FAST = MatrixFactorization(3, epochs=2)
STREAMS = Streams(0)
TASKS = 12
CONFIGS: list[dict[str, Any]] = [{"kind": "tree", "depth": i} for i in range(1, 9)]
CONFIGS += [{"kind": "svm", "degree": i} for i in range(1, 9)]
N = len(CONFIGS)


def a_space() -> VectorSpace:
    space = ConfigurationSpace()
    kind = Categorical("kind", ["tree", "svm"])
    depth, degree = Integer("depth", (1, 10)), Integer("degree", (1, 10))
    tree, svm = EqualsCondition(depth, kind, "tree"), EqualsCondition(degree, kind, "svm")
    space.add(kind, depth, degree, tree, svm)
    return VectorSpace(space)


SPACE = a_space()
NOTHING = History.of(np.empty((0, SPACE.d)), [])


def loss(task: int, config: dict[str, Any]) -> float:
    """Trees are good on even tasks, support vector machines on odd ones."""
    value = int(config.get("depth", config.get("degree", 0)))
    wrong = (config["kind"] == "tree") == bool(task % 2)
    return 0.1 * float(wrong) + 0.01 * abs(value - 2 - task % 5) + 0.02 * task


def record(task: int, configs: list[dict[str, Any]] = CONFIGS) -> TaskRecord:
    return TaskRecord(
        f"task {task}",
        configs,
        np.array([loss(task, c) for c in configs]),
        space=SPACE.space,
        meta_features={"odd": float(task % 2), "five": float(task % 5)},
    )


def a_memory(tasks: int = TASKS) -> MetaDataset:
    return MetaDataset.from_records(record(t) for t in range(tasks))


MEMORY = a_memory()


def pipelines(memory: MetaDataset = MEMORY, **options: Any) -> PipelineProposer:
    known: dict[str, Any] = {"model": FAST, "fallback": gbqr()}
    return PipelineProposer(memory, **(known | options))


def configs(vectors: FloatArray) -> list[dict[str, Any]]:
    return [dict(c) for c in to_values(SPACE.space, vectors)]


def config(proposal: Proposal) -> dict[str, Any]:
    return configs(proposal.vector[None])[0]


def search(proposer: PipelineProposer, n: int, task: int = 20) -> tuple[list[Proposal], History]:
    proposals, history = list[Proposal](), NOTHING
    for k in range(n):
        proposals.append(proposer.propose(SPACE, history, STREAMS, k))
        vectors = np.array([p.vector for p in proposals])
        history = History.of(vectors, [loss(task, c) for c in configs(vectors)])
    assert len(np.unique(SPACE.keys(history.vectors))) == n
    return proposals, history


class Fallback:
    """Its proposals have a loss of -1."""

    def propose(self, space: VectorSpace, *args: Any) -> Proposal:
        return Proposal(np.full(space.d, 0.5), "random", loss=-1.0)


def test_the_matrix_is_that_of_the_memory() -> None:
    vectors, Y = matrix(MEMORY)
    found = configs(vectors)
    assert len(found) == N and all(c in found for c in CONFIGS)
    np.testing.assert_allclose(Y, [[loss(t, c) for t in range(TASKS)] for c in found])


def test_failed_runs_are_the_worst_and_repeated_ones_are_averaged() -> None:
    tried = [CONFIGS[0], *CONFIGS[:4]]
    losses, status = np.array([0.2, 0.4, 0.9, np.nan, np.nan]), np.array([0, 0, 0, 2, 2])
    records = [
        TaskRecord("a", tried, losses, status=status, space=SPACE.space),
        TaskRecord("b", CONFIGS[:3], np.array([0.1, 0.2, 0.3]), space=SPACE.space),
    ]
    vectors, Y = matrix(MetaDataset.from_records(records))
    rows = [configs(vectors).index(c) for c in CONFIGS[:3]]
    assert len(Y) == 3  # the fourth never completed
    np.testing.assert_allclose(Y[rows], [[0.3, 0.1], [0.9, 0.2], [0.9, 0.3]])


@pytest.mark.parametrize("task", [20, 21])
def test_the_best_of_a_new_task_is_found_soon(task: int) -> None:
    proposals, history = search(pipelines(), 8, task)
    assert history.losses.min() == pytest.approx(min(loss(task, c) for c in CONFIGS))
    assert [p.origin for p in proposals] == ["design"] * 5 + ["model"] * 3
    assert proposals[0].loss is None and proposals[-1].loss is not None


def test_the_nearest_tasks_start_the_search() -> None:
    proposer = pipelines(meta_features={"odd": 1.0, "five": 3.0})
    first = proposer.propose(SPACE, NOTHING, STREAMS, 0)
    assert first.shares is not None
    assert max(first.shares, key=first.shares.__getitem__) == "task 3"
    assert config(first) == {"kind": "svm", "degree": 5}


@pytest.mark.parametrize("meta_features", [None, {"odd": 0.0, "five": 1.0}])
def test_shares_are_parts_of_one(meta_features: dict[str, float] | None) -> None:
    shares: Any = None
    for proposal in search(pipelines(meta_features=meta_features), 9)[0]:
        shares = proposal.shares or {}
        assert min(shares.values()) >= 0 and sum(shares.values()) <= 1 + 1e-9
        assert set(shares) <= {f"task {t}" for t in range(TASKS)}
    even = sum(v for name, v in shares.items() if int(name.split()[1]) % 2 == 0)
    assert even > 0.5 * sum(shares.values())  # task 20 is even


@pytest.mark.parametrize("status", [Status.RUNNING, Status.FAILED])
def test_running_and_failed_configurations_are_not_proposed_again(status: Status) -> None:
    proposer = pipelines()
    vectors, losses = NOTHING.vectors, np.full(N, np.nan)
    for k in range(N):
        known = History.of(vectors, losses[:k], status=np.full(k, status))
        vectors = np.vstack([vectors, proposer.propose(SPACE, known, STREAMS, k).vector])
    assert len(np.unique(SPACE.keys(vectors))) == N


def test_what_the_memory_does_not_know_tells_no_configurations_apart() -> None:
    """The first trial of a define-by-run objective decides a parameter that no task has."""
    wider = ConfigurationSpace()
    wider.add(*SPACE.space.values(), Categorical("unknown", ["a", "b"]))
    wider.add(*SPACE.space.conditions)
    space = VectorSpace(wider)
    proposer = pipelines(MEMORY.aligned(wider))
    first = proposer.propose(space, History.of(np.empty((0, space.d)), []), STREAMS, 0).vector
    other = first.copy()
    other[wider.index_of["unknown"]] = 1.0
    found = proposer.propose(space, History.of(other[None], [0.1]), STREAMS, 1)
    assert not space.agrees(found.vector[None], first).any() and found.n_rows == 1


def test_failed_configurations_count_as_the_worst_and_others_not_at_all() -> None:
    proposer = pipelines()
    _, history = search(proposer, 7)
    status, losses = history.status.copy(), history.losses.copy()
    status[2], losses[2] = Status.FAILED, np.delete(losses, 2).max()
    failed = np.where(status == Status.FAILED, np.nan, losses)
    a = proposer.propose(SPACE, History.of(history.vectors, failed, status=status), STREAMS, 7)
    b = proposer.propose(SPACE, History.of(history.vectors, losses), STREAMS, 7)
    np.testing.assert_array_equal(a.vector, b.vector)
    assert a.loss == b.loss
    foreign = Configuration(SPACE.space, {"kind": "tree", "depth": 10}).get_array()
    more = History.of(np.vstack([history.vectors, foreign]), np.append(losses, -9.0))
    np.testing.assert_array_equal(proposer.propose(SPACE, more, STREAMS, 7).vector, b.vector)


def test_what_is_likely_to_violate_a_constraint_is_not_proposed() -> None:
    proposer, broken = pipelines(), np.array([c["kind"] == "tree" for c in CONFIGS])
    vectors = np.array([Configuration(SPACE.space, c).get_array() for c in CONFIGS])
    tried = [0, 1, 2, 8, 9, 10, 11]
    losses = np.array([loss(20, CONFIGS[i]) for i in tried])  # trees are the better ones
    limits = np.where(broken[tried], 1.0, -1.0)[:, None]
    for k in range(7, 11):  # until there is no other
        told = History.of(vectors[tried], losses, constraints=limits)
        chosen = proposer.propose(SPACE, told, STREAMS, k)
        (i,) = np.flatnonzero(SPACE.keys(vectors) == SPACE.keys(chosen.vector[None]))
        assert not broken[i] and chosen.origin == "model"
        tried.append(int(i))
        losses = np.append(losses, loss(20, CONFIGS[i]))
        limits = np.vstack([limits, [[-1.0]]])
    free = proposer.propose(SPACE, History.of(vectors[tried[:7]], losses[:7]), STREAMS, 7)
    assert config(free)["kind"] == "tree"


def test_the_fallback_looks_for_the_first_feasible_configuration() -> None:
    proposer = pipelines(fallback=Fallback(), n_start=3)
    _, history = search(proposer, 3)
    for n, origin in ((2, "design"), (3, "random")):
        told = History.of(history.vectors[:n], history.losses[:n], constraints=np.ones((n, 1)))
        assert proposer.propose(SPACE, told, STREAMS, n).origin == origin


def test_the_fallback_follows_when_all_are_evaluated() -> None:
    proposals, history = search(pipelines(fallback=Fallback()), N)
    assert all(p.loss != -1.0 for p in proposals)
    assert pipelines(fallback=Fallback()).propose(SPACE, history, STREAMS, N).loss == -1.0
    vector = pipelines().propose(SPACE, history, STREAMS, N).vector
    assert not SPACE.seen(vector[None], np.sort(SPACE.keys(history.vectors)))[0]


def test_decided_values_restrict_the_configurations() -> None:
    proposer = pipelines()
    _, history = search(proposer, 6)
    kind, depth = (SPACE.names.index(name) for name in ("kind", "depth"))
    fixed = np.full(SPACE.d, np.nan)
    fixed[kind] = 1.0
    found = config(proposer.propose(SPACE, history, STREAMS, 6, fixed))
    assert found["kind"] == SPACE.space["kind"].to_value(1.0) and found in CONFIGS
    fixed[kind] = float(SPACE.space["kind"].to_vector("tree"))
    fixed[depth] = float(SPACE.space["depth"].to_vector(10))  # no configuration has this value
    proposal = proposer.propose(SPACE, history, STREAMS, 6, fixed)
    assert config(proposal) == {"kind": "tree", "depth": 10}
    assert proposal.origin == "design" and proposal.loss is None


@pytest.mark.parametrize("unit", [1e-3, 1e4])
def test_the_unit_of_the_losses_hardly_matters(unit: float) -> None:
    proposer = pipelines()
    vectors = search(proposer, 6)[1].vectors
    for k in range(6, 10):
        history = History.of(vectors, [unit * loss(20, c) for c in configs(vectors)])
        vectors = np.vstack([vectors, proposer.propose(SPACE, history, STREAMS, k).vector])
    best = min(loss(20, c) for c in configs(vectors))
    assert best == pytest.approx(min(loss(20, c) for c in CONFIGS))


def test_configurations_of_single_tasks_are_estimated_and_one_task_is_enough() -> None:
    memory = MetaDataset.from_records(record(t, CONFIGS[4 * t : 4 * t + 4]) for t in range(4))
    assert not np.isnan(matrix(memory)[1]).any()
    search(pipelines(memory), N)
    search(pipelines(a_memory(1)), 8)


def test_a_fitted_model_is_used_as_it_is() -> None:
    fitted = MatrixFactorization(3, epochs=0).fit(matrix(MEMORY)[1])
    before = fitted.embedding_.copy()
    search(pipelines(model=fitted), 7)
    np.testing.assert_array_equal(fitted.embedding_, before)
    other = MatrixFactorization(3, epochs=0).fit(np.arange(6.0).reshape(3, 2))
    with pytest.raises(ValueError, match="fitted on 3 pipelines, the memory has 16"):
        search(pipelines(model=other), 1)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_start": 0}, ValueError, "n_start must be an integer >= 1"),
        ({"xi": -0.1}, ValueError, "xi must be a finite number >= 0"),
        ({"start": "middle"}, ValueError, "start must be one of 'portfolio', 'nearest'"),
        ({"model": "se"}, TypeError, "model must be a MatrixFactorization"),
        ({"model": MatrixFactorization(epochs=-1)}, ValueError, "epochs"),
    ],
)
def test_what_is_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pipelines(**options)


def test_xi_reaches_the_choice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[float] = []

    def spy(mean: Any, std: Any, best: float, xi: float, rows: Any) -> int:
        seen.append(xi)
        return int(rows[0])

    monkeypatch.setattr(recommendation, "most_improving", spy)
    vector = pipelines().propose(SPACE, NOTHING, STREAMS, 0).vector
    for proposer in (pipelines(n_start=1, xi=0.25), pmf(MEMORY, model=FAST, n_start=1, xi=0.25)):
        proposer.propose(SPACE, History.of(vector[None], [0.3]), STREAMS, 1)
    assert seen == [0.25, 0.25]


def test_running_configurations_lower_the_standard_deviation() -> None:
    proposer, (vectors, _) = pipelines(n_start=1), matrix(MEMORY)
    # The third is the only one with these values, so it is proposed with and without the second.
    wanted, status = vectors[2], [Status.COMPLETE, Status.RUNNING]
    both = History.of(vectors[:2], [0.3, np.nan], status=status)
    a, b = (proposer.propose(SPACE, h, STREAMS, 2, wanted) for h in (both.first(1), both))
    np.testing.assert_array_equal([a.vector, b.vector], [wanted, wanted])
    assert a.loss and b.loss and a.bound and b.bound
    assert a.loss == pytest.approx(b.loss)
    assert a.loss - b.bound < a.loss - a.bound - 1e-6


def test_meta_features_as_large_as_floats_have_a_nearest_task() -> None:
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    records = [
        TaskRecord(
            f"task {i}",
            [{"x": 0.1}, {"x": 0.9}],
            np.array([0.0, 1.0]),
            space=space,
            meta_features={"n": size, "p": 1.0 if i else np.nan},
        )
        for i, size in enumerate((1.79e308, 1.78e308, -1e308))
    ]
    proposer = pmf(records, start="nearest", meta_features={"n": 1.7e308, "p": 1.0})
    vector = proposer.propose(
        VectorSpace(space), History.of(np.empty((0, 1)), []), Streams(0), 0
    ).vector
    assert vector.tolist() == [0.1]
