"""Where a local model proposes: what moves, how far, and what happens when all was tried."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    ForbiddenEqualsClause,
    Integer,
    OrdinalHyperparameter,
)
from proposing import SQUARE, a_space, branches, observed

from automl_plugins.proposers.acquisition import LocalSearch
from automl_plugins.proposers.model_based import ModelBasedProposer, ProposerSettings
from automl_plugins.proposers.models import fit_models
from automl_plugins.proposers.proposal import Question
from automl_plugins.proposers.trust_region import (
    RegionExhausted,
    TrustRegion,
    has_region,
    trust_region,
)
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams
from automl_plugins.surrogates import AveragedProcess, LocalProcess

SEARCH = LocalSearch(n_observed=0, n_candidates=0, n_gradients=20)
LOCAL = ProposerSettings(LocalProcess(), target="standardize", search=SEARCH, feasible_only=True)


def region_of(space: VectorSpace, history: History) -> TrustRegion:
    asked = Question(space, history, len(history), None, np.random.default_rng(0))
    region = trust_region(asked, fit_models(LOCAL, space, history, Streams(0)))
    assert region is not None
    return region


def test_only_a_local_model_has_a_region() -> None:
    history = observed(SQUARE, 12)
    asked = Question(SQUARE, history, 12, None, np.random.default_rng(0))
    settings = ProposerSettings(AveragedProcess(), target="standardize")
    assert trust_region(asked, fit_models(settings, SQUARE, history, Streams(0))) is None


def test_it_lies_around_the_best_row_within_the_ranges() -> None:
    vectors = np.column_stack([np.linspace(0.0, 0.18, 10), np.linspace(0.5, 0.59, 10)])
    region = region_of(SQUARE, History.of(vectors, np.arange(10.0)))
    np.testing.assert_array_equal(region.centre, vectors[0])
    np.testing.assert_allclose(region.low, [0.0, 0.455])
    np.testing.assert_allclose(region.high, [0.09, 0.545])
    drawn, complete = region.unseen(200)
    assert not complete and len(drawn) == 200
    assert (drawn >= region.low).all() and (drawn <= region.high).all()
    assert np.ptp(drawn, axis=0) == pytest.approx([0.09, 0.09], rel=0.1)


def test_it_lies_around_the_best_row_that_breaks_no_constraint() -> None:
    vectors = np.column_stack([np.linspace(0.0, 0.9, 40), np.full(40, 0.5)])
    constraints = np.where(np.arange(40) < 20, 1.0, -1.0)[:, None]
    history = History.of(vectors, np.arange(40.0), constraints=constraints)
    region = region_of(SQUARE, history)
    np.testing.assert_array_equal(region.centre, vectors[20])
    # Half the width is the mean distance of the ten best of the others.
    assert region.high[0] - region.centre[0] == pytest.approx(4.5 * 0.9 / 39)
    alone = np.where(np.arange(40) == 30, -1.0, 1.0)[:, None]
    wide = region_of(SQUARE, History.of(vectors, np.arange(40.0), constraints=alone))
    np.testing.assert_array_equal(wide.centre, vectors[30])
    assert wide.high[1] - wide.low[1] == pytest.approx(0.9)  # nine of ten are not known


def test_where_all_rows_break_a_constraint_it_lies_around_the_least_violation() -> None:
    vectors = np.column_stack([np.linspace(0.0, 0.9, 40), np.full(40, 0.5)])
    violation = 1.0 + np.abs(np.arange(40.0) - 7)
    history = History.of(vectors, np.arange(40.0), constraints=violation[:, None])
    np.testing.assert_array_equal(region_of(SQUARE, history).centre, vectors[7])


def mixed() -> VectorSpace:
    """A kind that decides about ``a``, a number of layers about ``width``, and others."""
    space = ConfigurationSpace()
    kind, layers = Categorical("kind", ["a", "b"]), Integer("layers", (1, 3))
    a, width = Float("a", (0.0, 1.0)), Integer("width", (1, 64))
    space.add(kind, layers, a, width, OrdinalHyperparameter("size", [1, 4, 9, 16]))
    space.add(EqualsCondition(a, kind, "a"), EqualsCondition(width, layers, 2))
    return VectorSpace(space)


def best_in(space: VectorSpace, value: dict[str, float], n: int = 60) -> History:
    """Random rows, the first of which has these entries and is the best one."""
    vectors = space.sample(n, np.random.default_rng(0))
    for name, entry in value.items():
        vectors[0, space.names.index(name)] = entry
    vectors = space.complete(vectors, np.random.default_rng(0))
    return History.of(vectors, np.arange(float(n)))


def test_categories_and_what_decides_about_others_stay() -> None:
    space = mixed()
    region = region_of(space, best_in(space, {"kind": 0, "layers": 0.5}))
    moves = {name for name, low in zip(space.names, region.low, strict=True) if low == low}
    assert moves == {"a", "width", "size"}
    size = space.names.index("size")
    assert 0.0 <= region.low[size] < region.high[size] - 1.0 <= 2.0  # indices of the ordinal
    drawn, _ = region.unseen(100)
    assert space.allowed(drawn).all()
    np.testing.assert_array_equal(np.isnan(drawn), np.isnan(region.centre)[None].repeat(100, 0))
    stays = [space.names.index(name) for name in ("kind", "layers")]
    assert (drawn[:, stays] == region.centre[stays]).all()


def test_forbidden_configurations_are_left_out() -> None:
    space = ConfigurationSpace({"n": (1, 4), "x": (0.0, 1.0)})
    space.add(ForbiddenEqualsClause(space["n"], 3))
    entries = np.column_stack([np.tile([1.0 / 3.0, 1.0], 10), np.linspace(0.0, 1.0, 20)])
    drawn, _ = region_of(VectorSpace(space), History.of(entries, np.arange(20.0))).unseen(200)
    # One, two and three lie in it, for its half width is the mean distance of 1/3.
    assert set(drawn[:, 0].round(2)) == {0.0, 0.33} and 50 < len(drawn) < 190


def test_a_region_ends_where_all_in_it_was_tried() -> None:
    space = VectorSpace(ConfigurationSpace({"n": (0, 99)}))
    entries = space.canonical((np.arange(100.0)[:, None] + 0.5) / 100.0)
    near = entries[40:60]
    history = History.of(near, np.abs(near[:, 0] - near[10, 0]))
    region = region_of(space, history)
    assert region.high[0] < near[-1, 0] and region.low[0] > near[0, 0]
    with pytest.raises(RegionExhausted):
        region.unseen(100)
    known = History.of(np.delete(near, 9, axis=0), np.delete(history.losses, 9))
    left, complete = region_of(space, known).unseen(100)
    assert not complete
    np.testing.assert_array_equal(np.unique(left), near[9])


@pytest.mark.parametrize(
    ("n", "changes", "expected"),
    [
        (64, {}, True),
        (63, {}, False),
        (64, {"losses": {5: 0.0, 40: 0.0}}, False),  # a plateau
        (
            66,
            {
                "losses": {5: -1.0, 40: -1.0},
                "status": {5: Status.FAILED, 40: Status.FAILED},
            },
            True,
        ),  # of failures
        (64, {"status": {20: Status.PRUNED}}, False),
        (64, {"status": {63: Status.RUNNING}}, False),
        (65, {"constraints": {0: 1.0}}, True),  # the best one; around another one
        (64, {"constraints": {0: 1.0}}, False),
        (66, {"constraints": {0: 1.0, 1: 1.0}, "losses": {5: 2.0}}, False),  # a plateau of others
        (64, {"vectors": {0: 1.3}}, False),  # outside a range that has shrunk
    ],
)
def test_when_a_search_has_a_region(n: int, changes: dict[str, Any], expected: bool) -> None:
    vectors, losses = np.random.default_rng(0).random((n, 2)), np.arange(float(n))
    status, constraints = np.full(n, Status.COMPLETE), np.full((n, 1), -1.0)
    columns: dict[str, Any] = dict(
        vectors=vectors, losses=losses, status=status, constraints=constraints
    )
    for name, values in changes.items():
        for row, value in values.items():
            columns[name][row] = value
    assert has_region(SQUARE, History.of(**columns)) is expected


def test_branches_and_what_does_not_move() -> None:
    branching = VectorSpace(a_space())
    numbers = {n: observed(branching, n, losses=np.arange(float(n))) for n in (127, 128)}
    assert [has_region(branching, history) for history in numbers.values()] == [False, True]
    space = VectorSpace(ConfigurationSpace({"kind": ["a", "b", "c"], "other": ["d", "e", "f"]}))
    assert not has_region(space, observed(space, 70, losses=np.arange(70.0)))


def test_an_old_range_and_new_conditions() -> None:
    beyond = History.of([[1.4, 0.2], [1.2, 0.3], [0.4, 0.4]], [0.0, 1.0, 2.0])
    region = region_of(SQUARE, beyond)
    assert region.centre.tolist() == [1.0, 0.2]
    assert region.low[0] < region.high[0] == 1.0
    unfinished = History.of([[0.0, np.nan, np.nan], [1.0, np.nan, 0.5]], [0.0, 1.0])
    assert not np.isnan(region_of(branches(), unfinished).unseen(5)[0][:, 0]).any()


def test_proposals_find_the_minimum_of_the_region() -> None:
    vectors = np.clip([0.6, 0.2] + 0.1 * np.random.default_rng(0).normal(size=(60, 2)), 0.0, 1.0)
    history = History.of(vectors, ((vectors - [0.62, 0.21]) ** 2).sum(axis=1))
    proposal = ModelBasedProposer(LOCAL).propose(SQUARE, history, Streams(0), 60)
    assert np.abs(proposal.vector - [0.62, 0.21]).max() < 0.01
    assert proposal.loss is not None and abs(proposal.loss) < 1e-3


def test_on_a_slope_proposals_end_at_the_end_of_the_region() -> None:
    vectors = np.clip([0.6, 0.4] + 0.05 * np.random.default_rng(0).normal(size=(60, 2)), 0.0, 1.0)
    history = History.of(vectors, vectors @ [-3.0, 1.0])
    region = region_of(SQUARE, history)
    assert region.high[0] < 0.9 and region.low[1] > 0.1
    proposal = ModelBasedProposer(LOCAL).propose(SQUARE, history, Streams(0), 60)
    np.testing.assert_allclose(proposal.vector, [region.high[0], region.low[1]])
