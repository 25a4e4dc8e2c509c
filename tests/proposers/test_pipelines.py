"""The proposer of a memory's configurations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Integer

from automl_plugins.meta import MetaDataset, TaskRecord
from automl_plugins.meta.factorization import MatrixFactorization, recommendation
from automl_plugins.proposers.pipelines import PipelineProposer, matrix
from automl_plugins.proposers.proposal import Proposal
from automl_plugins.recipes import gbqr, pmf
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

FloatArray = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
FAST = MatrixFactorization(3, epochs=2)
STREAMS = Streams(0)
TASKS = 12


def _space() -> VectorSpace:
    space = ConfigurationSpace()
    kind = Categorical("kind", ["tree", "svm"])
    depth, degree = Integer("depth", (1, 10)), Integer("degree", (1, 10))
    space.add(
        kind,
        depth,
        degree,
        EqualsCondition(depth, kind, "tree"),
        EqualsCondition(degree, kind, "svm"),
    )
    return VectorSpace(space)


CONFIGS: list[dict[str, Any]] = [{"kind": "tree", "depth": i} for i in range(1, 9)] + [
    {"kind": "svm", "degree": i} for i in range(1, 9)
]


def _loss(task: int, config: dict[str, Any]) -> float:
    """Trees are good on even tasks, support vector machines on odd ones."""
    value = int(config.get("depth", config.get("degree", 0)))
    wrong = (config["kind"] == "tree") == bool(task % 2)
    return 0.1 * float(wrong) + 0.01 * abs(value - 2 - task % 5) + 0.02 * task


def _memory(space: VectorSpace, *, tasks: int = TASKS) -> MetaDataset:
    return MetaDataset.from_records(
        TaskRecord(
            f"task {t}",
            CONFIGS,
            np.array([_loss(t, c) for c in CONFIGS]),
            space=space.space,
            meta_features={"odd": float(t % 2), "five": float(t % 5)},
        )
        for t in range(tasks)
    )


def _proposer(space: VectorSpace, **options: Any) -> PipelineProposer:
    known: dict[str, Any] = {"model": FAST, "fallback": gbqr()}
    return PipelineProposer(_memory(space), **(known | options))


def _configs(space: VectorSpace, vectors: FloatArray) -> list[dict[str, Any]]:
    from automl_plugins.spaces.values import to_values

    return [dict(c) for c in to_values(space.space, vectors)]


def _search(
    proposer: PipelineProposer, space: VectorSpace, task: int, n: int
) -> tuple[list[Proposal], History]:
    proposals: list[Proposal] = []
    history = History.of(np.empty((0, space.d)), [])
    for k in range(n):
        proposals.append(proposer.propose(space, history, STREAMS, k))
        vectors = np.array([p.vector for p in proposals])
        losses = [_loss(task, c) for c in _configs(space, vectors)]
        history = History.of(vectors, losses)
    return proposals, history


class _Fallback:
    """Tells that it was asked."""

    timed = False

    def propose(
        self,
        space: VectorSpace,
        history: History,
        streams: Streams,
        k: int,
        fixed: FloatArray | None = None,
    ) -> Proposal:
        return Proposal(np.full(space.d, 0.5), "random", loss=-1.0)


def test_the_matrix_is_that_of_the_memory() -> None:
    space = _space()
    vectors, Y = matrix(_memory(space))
    configs = _configs(space, vectors)
    assert len(configs) == len(CONFIGS)
    assert all(config in configs for config in CONFIGS)
    for row, config in enumerate(configs):
        np.testing.assert_allclose(Y[row], [_loss(t, config) for t in range(TASKS)])


def test_failed_runs_are_the_worst_and_repeated_ones_are_averaged() -> None:
    space = _space()
    records = [
        TaskRecord(
            "a",
            [CONFIGS[0], CONFIGS[0], CONFIGS[1], CONFIGS[2], CONFIGS[3]],
            np.array([0.2, 0.4, 0.9, np.nan, np.nan]),
            status=np.array([0, 0, 0, 2, 2]),
            space=space.space,
        ),
        TaskRecord("b", CONFIGS[:3], np.array([0.1, 0.2, 0.3]), space=space.space),
    ]
    vectors, Y = matrix(MetaDataset.from_records(records))
    rows = [_configs(space, vectors).index(c) for c in CONFIGS[:3]]
    assert len(Y) == 3  # CONFIGS[3] never completed
    np.testing.assert_allclose(Y[rows], [[0.3, 0.1], [0.9, 0.2], [0.9, 0.3]])


def test_the_best_of_a_new_task_is_found_soon() -> None:
    space = _space()
    for task in (20, 21):
        proposals, history = _search(_proposer(space), space, task, 8)
        best = min(_loss(task, config) for config in CONFIGS)
        assert history.losses.min() == pytest.approx(best)
        assert [p.origin for p in proposals] == ["design"] * 5 + ["model"] * 3
        assert len(np.unique(space.keys(history.vectors))) == 8
        assert proposals[0].loss is None and proposals[-1].loss is not None


def test_the_nearest_tasks_start_the_search() -> None:
    space = _space()
    proposer = _proposer(space, meta_features={"odd": 1.0, "five": 3.0})
    first = proposer.propose(space, History.of(np.empty((0, space.d)), []), STREAMS, 0)
    assert first.shares is not None
    assert max(first.shares, key=first.shares.__getitem__) == "task 3"
    assert _configs(space, first.vector[None])[0] == {"kind": "svm", "degree": 5}


@pytest.mark.parametrize("meta_features", [None, {"odd": 0.0, "five": 1.0}])
def test_shares_are_parts_of_one(meta_features: dict[str, float] | None) -> None:
    space = _space()
    proposals, _ = _search(_proposer(space, meta_features=meta_features), space, 20, 9)
    for proposal in proposals:
        assert proposal.shares is not None
        values = np.array(list(proposal.shares.values()))
        assert (values >= 0).all() and values.sum() <= 1 + 1e-9
        assert set(proposal.shares) <= {f"task {t}" for t in range(TASKS)}
    shares = proposals[-1].shares
    assert shares is not None
    even = sum(v for name, v in shares.items() if int(name.split()[1]) % 2 == 0)
    assert even > 0.5 * sum(shares.values())  # task 20 is even


def test_running_configurations_are_not_proposed_again() -> None:
    space = _space()
    proposer = _proposer(space)
    _, history = _search(proposer, space, 20, 6)
    vectors, losses, status = history.vectors, history.losses, history.status
    for k in range(6, len(CONFIGS)):
        state = History.of(vectors, losses, status=status)
        vector = proposer.propose(space, state, STREAMS, k).vector
        assert not space.seen(vector[None], np.sort(space.keys(vectors)))[0]
        vectors = np.vstack([vectors, vector])
        losses, status = np.append(losses, np.nan), np.append(status, Status.RUNNING)


def test_a_search_of_nothing_but_failures_goes_on() -> None:
    space = _space()
    proposer = _proposer(space)
    vectors = np.empty((0, space.d))
    for k in range(len(CONFIGS)):
        failed = History.of(vectors, np.full(k, np.nan), status=np.full(k, Status.FAILED))
        vector = proposer.propose(space, failed, STREAMS, k).vector
        assert not space.seen(vector[None], np.sort(space.keys(vectors)))[0]
        vectors = np.vstack([vectors, vector])


def test_failed_configurations_count_as_the_worst() -> None:
    space = _space()
    proposer = _proposer(space)
    _, history = _search(proposer, space, 20, 7)
    status = history.status.copy()
    status[2] = Status.FAILED
    losses = history.losses.copy()
    failed = History.of(
        history.vectors, np.where(status == Status.FAILED, np.nan, losses), status=status
    )
    losses[2] = np.delete(losses, 2).max()
    worst = History.of(history.vectors, losses)
    a = proposer.propose(space, failed, STREAMS, 7)
    b = proposer.propose(space, worst, STREAMS, 7)
    np.testing.assert_array_equal(a.vector, b.vector)
    assert a.loss == b.loss


def test_the_fallback_follows_when_all_are_evaluated() -> None:
    space = _space()
    proposer = _proposer(space, fallback=_Fallback())
    proposals, history = _search(proposer, space, 20, len(CONFIGS))
    assert len(np.unique(space.keys(history.vectors))) == len(CONFIGS)
    assert all(p.loss != -1.0 for p in proposals)
    assert proposer.propose(space, history, STREAMS, len(CONFIGS)).loss == -1.0


def test_the_fallback_proposes_what_is_new() -> None:
    space = _space()
    proposer = _proposer(space)
    _, history = _search(proposer, space, 20, len(CONFIGS))
    vector = proposer.propose(space, history, STREAMS, 16).vector
    assert not space.seen(vector[None], np.sort(space.keys(history.vectors)))[0]


def test_other_evaluations_are_left_aside_by_the_model() -> None:
    space = _space()
    proposer = _proposer(space)
    _, history = _search(proposer, space, 20, 7)
    foreign = space.space.get_default_configuration()
    other = dict(foreign) | {"kind": "tree", "depth": 10}
    from ConfigSpace import Configuration

    vector = np.asarray(Configuration(space.space, other).get_array())
    more = History.of(np.vstack([history.vectors, vector]), np.append(history.losses, -9.0))
    a = proposer.propose(space, history, STREAMS, 7)
    b = proposer.propose(space, more, STREAMS, 7)
    np.testing.assert_array_equal(a.vector, b.vector)


def test_decided_values_restrict_the_configurations() -> None:
    space = _space()
    proposer = _proposer(space)
    _, history = _search(proposer, space, 20, 6)
    fixed = np.full(space.d, np.nan)
    fixed[space.space.index_of["kind"]] = 1.0
    name = space.space["kind"].to_value(1.0)
    vector = proposer.propose(space, history, STREAMS, 6, fixed).vector
    config = _configs(space, vector[None])[0]
    assert config["kind"] == name and config in CONFIGS
    column = space.space.index_of["depth"]  # no configuration has this value
    fixed = np.full(space.d, np.nan)
    fixed[space.space.index_of["kind"]] = float(space.space["kind"].to_vector("tree"))
    fixed[column] = float(space.space["depth"].to_vector(10))
    proposal = proposer.propose(space, history, STREAMS, 6, fixed)
    assert _configs(space, proposal.vector[None]) == [{"kind": "tree", "depth": 10}]
    assert proposal.origin == "design" and proposal.loss is None


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e4])
def test_the_unit_of_the_losses_hardly_matters(unit: float) -> None:
    space = _space()
    proposer = _proposer(space)
    _, history = _search(proposer, space, 20, 6)
    vectors = history.vectors
    for k in range(6, 10):
        losses = [unit * _loss(20, c) for c in _configs(space, vectors)]
        vector = proposer.propose(space, History.of(vectors, losses), STREAMS, k).vector
        vectors = np.vstack([vectors, vector])
    best = min(_loss(20, c) for c in _configs(space, vectors))
    assert best == pytest.approx(min(_loss(20, c) for c in CONFIGS))


def test_configurations_of_single_tasks_are_estimated() -> None:
    space = _space()
    records = [
        TaskRecord(
            f"task {t}",
            CONFIGS[4 * t : 4 * t + 4],
            np.array([_loss(t, c) for c in CONFIGS[4 * t : 4 * t + 4]]),
            space=space.space,
        )
        for t in range(4)
    ]
    memory = MetaDataset.from_records(records)
    assert not np.isnan(matrix(memory)[1]).any()
    proposer = PipelineProposer(memory, model=FAST, fallback=gbqr())
    _, history = _search(proposer, space, 20, len(CONFIGS))
    assert len(np.unique(space.keys(history.vectors))) == len(CONFIGS)


def test_a_memory_of_one_task_is_enough() -> None:
    space = _space()
    proposer = PipelineProposer(_memory(space, tasks=1), model=FAST, fallback=gbqr())
    _, history = _search(proposer, space, 20, 8)
    assert len(np.unique(space.keys(history.vectors))) == 8


def test_a_fitted_model_is_used_as_it_is() -> None:
    space = _space()
    fitted = MatrixFactorization(3, epochs=0).fit(matrix(_memory(space))[1])
    before = fitted.embedding_.copy()
    _search(_proposer(space, model=fitted), space, 20, 7)
    np.testing.assert_array_equal(fitted.embedding_, before)
    other = MatrixFactorization(3, epochs=0).fit(np.arange(6.0).reshape(3, 2))
    with pytest.raises(ValueError, match="fitted on 3 pipelines, the memory has 16"):
        _search(_proposer(space, model=other), space, 20, 1)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_start": 0}, ValueError, "n_start"),
        ({"xi": -0.1}, ValueError, "xi"),
        ({"model": "se"}, TypeError, "MatrixFactorization"),
        ({"model": MatrixFactorization(epochs=-1)}, ValueError, "epochs"),
        ({"fallback": "random"}, TypeError, "fallback"),
    ],
)
def test_what_is_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        _proposer(_space(), **options)


def _nothing(space: VectorSpace) -> History:
    return History.of(np.empty((0, space.d)), [])


def test_the_improvement_that_counts_as_none_reaches_the_choice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    space, seen = _space(), []

    def spy(mean: Any, std: Any, best: float, xi: float, rows: Any) -> int:
        seen.append(xi)
        return int(rows[0])

    monkeypatch.setattr(recommendation, "most_improving", spy)
    history = History.of(
        _proposer(space).propose(space, _nothing(space), STREAMS, 0).vector[None], [0.3]
    )
    for proposer in (
        _proposer(space, n_start=1, xi=0.25),
        pmf(_memory(space), model=FAST, n_start=1, xi=0.25),
    ):
        proposer.propose(space, history, STREAMS, 1)
    assert seen == [0.25, 0.25]


def test_what_is_running_lowers_the_doubt() -> None:
    space = _space()
    proposer, (vectors, _) = _proposer(space, n_start=1), matrix(_memory(space))
    # The third is the only one with these values, so it is proposed with and without the second.
    finished, running, wanted = vectors[:3]
    both = History.of(
        np.vstack([finished, running]), [0.3, np.nan], status=[Status.COMPLETE, Status.RUNNING]
    )
    alone = both.first(1)
    a, b = (proposer.propose(space, h, STREAMS, 2, wanted) for h in (alone, both))
    np.testing.assert_array_equal(a.vector, wanted)
    np.testing.assert_array_equal(b.vector, wanted)
    assert a.loss and b.loss and a.bound and b.bound
    assert a.loss == pytest.approx(b.loss)
    assert a.loss - b.bound < a.loss - a.bound - 1e-6
