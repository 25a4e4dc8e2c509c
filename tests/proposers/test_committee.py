"""The committee: trust by hand, draws by trust, and the contract of every proposer."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, Float, ForbiddenEqualsClause
from proposing import SQUARE, Told, a_space, branches, observed, search

from automl_plugins.arrays import FloatArray
from automl_plugins.proposers.acquisition import LocalSearch
from automl_plugins.proposers.committee import Committee, judging_point, trust_in
from automl_plugins.proposers.model_based import ModelBasedProposer, ProposerSettings
from automl_plugins.proposers.proposal import Proposal, SurrogateFailure
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams
from automl_plugins.surrogates import (
    AveragedProcess,
    Feasibility,
    LocalProcess,
    QuantileBoosting,
)


class Funnel:
    """Predicts its minimum at ``place``, and ranks the share ``right`` of held-out rows right."""

    def __init__(self, place: float, right: float = 1.0) -> None:
        self.place, self.right = place, right

    def fit(self, X: Any, y: Any) -> Any:
        self.y = y
        return self

    def predict(self, X: Any) -> Any:
        return np.abs(X - self.place).max(axis=1), np.full(len(X), 0.1)

    def held_out(self) -> FloatArray:
        is_right = np.arange(len(self.y)) < self.right * len(self.y)
        return np.asarray(np.where(is_right, self.y, -self.y))


class Unasked(Funnel):
    """Fails when it is asked for a prediction."""

    def predict(self, X: Any) -> Any:
        raise AssertionError("This member is not to be asked.")


def member(surrogate: Any, **settings: Any) -> ModelBasedProposer:
    return ModelBasedProposer(ProposerSettings(surrogate, target="standardize", **settings))


def committee(**settings: Any) -> Committee:
    """Members like those of the recipe, but cheaper."""
    process = member(AveragedProcess(), search=LocalSearch(n_gradients=20), **settings)
    return Committee({"trees": member(QuantileBoosting(), **settings), "process": process})


def disputed(n: int) -> History:
    """A history of random losses, which neither member predicts well."""
    return observed(SQUARE, n, losses=np.random.default_rng(2).normal(size=n))


def propose(
    proposer: Any, history: History, k: int | None = None, seed: int = 0, space: Any = SQUARE
) -> Proposal:
    proposal = proposer.propose(space, history, Streams(seed), len(history) if k is None else k)
    assert isinstance(proposal, Proposal)
    return proposal


def essence(proposal: Proposal) -> tuple[object, ...]:
    """The facts of a proposal, except the seconds of its fit."""
    return proposal.vector.tobytes(), proposal.member, proposal.trust, proposal.loss


# Trust


@pytest.mark.parametrize(
    ("merits", "n", "prior", "tempering", "trust"),
    [
        # 0.64^-2 to 0.36^-2, which is 0.1296 to 0.4096; and the same, tempered
        ([0.6, 0.8], 4, [1, 1], 1.0, [0.1296 / 0.5392, 0.4096 / 0.5392]),
        ([0.6, 0.8], 8, [1, 1], 0.5, [0.1296 / 0.5392, 0.4096 / 0.5392]),
        ([0.6, 0.8], 4, [0.36**-2, 0.64**-2], 1.0, [0.5, 0.5]),
        # No rows, no tempering, no merit: the prior
        ([0.6, 0.8], 0, [1, 3], 1.0, [0.25, 0.75]),
        ([0.6, 0.8], 50, [1, 3], 0.0, [0.25, 0.75]),
        ([0.0, 0.0, 0.0], 50, [1.5, 1.5, 1], 0.5, [0.375, 0.375, 0.25]),
        # A negative correlation counts as none
        ([-0.9, 0.0], 10, [1, 1], 0.5, [0.5, 0.5]),
        ([-0.9, 0.6], 4, [1, 1], 1.0, [0.4096 / 1.4096, 1 / 1.4096]),
        # Below 5 % becomes 0, and the others share it
        ([0.0, 0.99, 0.99], 9, [1, 1, 3], 0.5, [0.0, 0.25, 0.75]),
        ([0.0, 0.0], 9, [1, 19.1], 0.5, [0.0, 1.0]),
        ([0.0, 0.0], 9, [1, 18.9], 0.5, [1 / 19.9, 18.9 / 19.9]),
        # The trust of a perfect member stays finite
        ([0.99, 1.0], 1000, [1, 1], 1.0, [0.5, 0.5]),
        (np.zeros(30), 9, np.ones(30), 0.5, np.full(30, 1 / 30)),
        ([0.7], 9, [0.1], 0.5, [1.0]),
        # One of two models has no merit: half of 0.64^-2 and half of 1
        ([[0.6, 0.0], 0.0], 4, [1, 1], 1.0, [1.4096 / 2.2288, 0.8192 / 2.2288]),
        ([[0.6, 0.6, 0.6], 0.6], 4, [1, 1], 1.0, [0.5, 0.5]),
        ([[-0.9, 0.0], [0.0]], 10, [1, 1], 0.5, [0.5, 0.5]),
    ],
)
@pytest.mark.filterwarnings("error")
def test_trust_by_hand(merits: Any, n: int, prior: Any, tempering: float, trust: Any) -> None:
    each = [np.array(merit) for merit in merits]
    found = trust_in(each, n, np.array(prior, dtype=float), tempering)
    np.testing.assert_allclose(found, np.array(trust), rtol=1e-6)
    assert found.sum() == pytest.approx(1.0)


def test_trust_grows_with_the_merit_and_the_number_of_rows() -> None:
    for n in (5, 20, 80):
        shares = [trust_in(np.array([0.5, r]), n, np.ones(2), 0.5)[1] for r in (0.3, 0.5, 0.7)]
        assert shares == sorted(shares) and shares[1] == 0.5
    shares = [trust_in(np.array([0.5, 0.7]), n, np.ones(2), 0.5)[1] for n in (0, 2, 4, 8, 100)]
    assert shares == sorted(shares) and shares[0] == 0.5 and shares[-1] == 1.0
    doubled = trust_in(np.array([0.2, 0.4]), 9, np.array([2.0, 6.0]), 0.5)
    np.testing.assert_allclose(
        doubled, trust_in(np.array([0.2, 0.4]), 9, np.array([1.0, 3.0]), 0.5)
    )


def test_chance_agreement_among_many_models_earns_no_trust() -> None:
    rng = np.random.default_rng(0)
    for n in (8, 20, 60):
        chance = [
            np.corrcoef(np.vstack([np.arange(n), [rng.permutation(n) for _ in range(100)]]))[0, 1:]
            for _ in range(50)
        ]
        best = [trust_in([r.max(), 0.0], n, np.ones(2), 0.5)[0] for r in chance]
        every = [trust_in([r, 0.0], n, np.ones(2), 0.5)[0] for r in chance]
        assert np.median(best) > 0.75 and np.median(every) < 0.6 and np.max(every) < 0.75
    # The one of a hundred that is right is found in time
    right = [trust_in([np.r_[0.8, np.zeros(99)], 0.0], n, np.ones(2), 0.5)[0] for n in (8, 16, 30)]
    assert right[0] < 0.55 and right[-1] > 0.9 and right == sorted(right)


def test_judging_points_by_hand() -> None:
    points = {0: 0, 1: 1, 15: 15, 16: 16, 17: 16, 31: 30, 32: 32, 35: 32, 36: 36, 63: 60}
    points |= {64: 64, 79: 64, 80: 80, 127: 112, 1000: 896, 1024: 1024, 1279: 1024}
    assert {n: judging_point(n) for n in points} == points
    rows, every = np.arange(1, 3000), np.array([judging_point(n) for n in range(1, 3000)])
    behind = np.where(rows < 64, every / 8, every / 4)
    assert (np.diff(every) >= 0).all() and (rows - every <= behind).all()
    assert all(judging_point(int(n)) == n for n in every)


def test_members_share_the_model_of_success(monkeypatch: pytest.MonkeyPatch) -> None:
    fits: list[Feasibility] = []
    fit = Feasibility.fit

    def counted(self: Feasibility, *data: Any) -> Feasibility:
        fits.append(self)
        return fit(self, *data)

    monkeypatch.setattr(Feasibility, "fit", counted)
    status = np.where(np.arange(12) % 4 == 0, Status.FAILED, Status.COMPLETE)
    complete = observed(SQUARE, 12)
    failing = History.of(complete.vectors, complete.losses, status=status)
    one, alone = committee(), committee().members["trees"]
    proposal = propose(one, failing, 12)
    assert len(fits) == 1
    models, _ = alone.models(SQUARE, failing, Streams(0))
    assert len(fits) == 2 and models.feasibility is not None
    features = SQUARE.features(proposal.vector[None])
    assert float(models.success(features)[0]) == proposal.success


# The member that proposes


def rated(**right: float) -> Committee:
    """Members by name, far apart, with the share of the rows that each would rank right."""
    places = np.linspace(0.2, 0.8, len(right))
    return Committee(
        {
            name: member(Funnel(place, share))
            for (name, share), place in zip(right.items(), places, strict=True)
        }
    )


def test_the_member_is_drawn_by_its_trust() -> None:
    history, one = observed(SQUARE, 12), rated(good=1.0, fair=0.9, wrong=0.0)
    assert judging_point(12) == 12
    merits = [
        float(m.models(SQUARE, history, Streams(0))[0].merits[0]) for m in one.members.values()
    ]
    assert merits[0] == 1.0 > merits[1] > 0.0 > merits[2] == -1.0
    # So little evidence that every member is asked
    one.tempering = 0.05
    shares = trust_in(np.array(merits), 12, np.ones(3), 0.05)
    assert (shares > 0.1).all()
    drawn = []
    for k in range(12, 72):
        proposal = propose(one, history, k)
        assert proposal.trust == dict(zip(one.members, shares, strict=True))
        drawn.append(proposal.member)
        lot = Streams(0).generator("member", k).choice(3, p=shares)
        assert proposal.member == list(one.members)[lot]
        if k < 40:  # and it is the member's own proposal
            assert proposal.member is not None
            own = propose(one.members[proposal.member], history, k)
            np.testing.assert_array_equal(proposal.vector, own.vector)
    counts = np.array([drawn.count(name) for name in one.members])
    deviation = np.sqrt(60 * shares * (1.0 - shares))
    assert (np.abs(counts - 60 * shares) < 4.0 * deviation).all()


class Near(Told):
    """A local surrogate with a region of 0.1 around ``place``."""

    def __init__(self, place: float) -> None:
        super().__init__(lambda X: (np.abs(X - place).max(axis=1), np.full(len(X), 0.1)))
        self.low_, self.high_ = np.full(2, place - 0.1), np.full(2, place + 0.1)


def in_turn() -> Committee:
    return Committee({"all": member(Funnel(0.2))}, local=member(Near(0.5)))


def along_a_line(n: int) -> History:
    rows = np.column_stack([np.linspace(0.0, 1.0, n), np.full(n, 0.5)])
    return History.of(rows, np.abs(rows[:, 0] - 0.501))


def test_a_long_search_asks_the_local_member_in_turn() -> None:
    one, history = in_turn(), along_a_line(64)
    members = [propose(one, history, k).member for k in range(64, 70)]
    assert members == ["local process", "all"] * 3
    local = propose(one, history, 64)
    assert local.trust is None and np.abs(local.vector - 0.5).max() <= 0.1
    assert propose(one, history.first(63), 64).member == "all"  # see ``has_region``
    for fixed, name in (([np.nan, np.nan], "local process"), ([0.9, np.nan], "all")):
        proposal = one.propose(SQUARE, history, Streams(0), 64, np.array(fixed))
        assert proposal.member == name


def test_where_a_region_is_exhausted_a_member_is_drawn() -> None:
    space = VectorSpace(ConfigurationSpace({"x": (0.0, 1.0), "n": (0, 99)}))
    x = np.linspace(0.0, 1.0, 64)
    rows = space.canonical(np.column_stack([x, np.full(64, 0.005)]))
    history = History.of(rows, np.abs(x - 0.501))

    class Nowhere(Near):
        def __init__(self) -> None:
            super().__init__(0.5)
            self.low_ = self.high_ = np.array([0.5, 0.005])

    one = Committee({"all": member(Funnel(0.2))}, local=member(Nowhere()))
    proposal = one.propose(space, history, Streams(0), 64)
    assert proposal.member == "all" and proposal.trust == {"all": 1.0}


def test_branches_keep_their_balanced_turns() -> None:
    space = VectorSpace(a_space())
    history = observed(space, 128, losses=np.arange(128.0))
    for balance, expected in ((None, [130, 132]), (5, [132]), (4, [130]), (2, [])):
        local = member(LocalProcess(), balance=balance)
        one = Committee({"all": member(AveragedProcess(), balance=balance)}, local=local)
        members = {k: one.propose(space, history, Streams(0), k).member for k in range(129, 134)}
        assert [k for k, name in members.items() if name == "local process"] == expected
    flat = Committee({"all": member(Funnel(0.2), balance=2)}, local=member(Near(0.5), balance=2))
    assert propose(flat, along_a_line(64), 64).member == "local process"


def test_a_member_without_merit_is_not_asked() -> None:
    history = observed(SQUARE, 25)
    good, useless = member(Funnel(0.3)), member(Unasked(0.7, 0.0))
    one = Committee({"useless": useless, "good": good}, tempering=1.0)
    for k in range(25, 45):
        proposal = propose(one, history, k)
        assert (proposal.member, proposal.trust) == ("good", {"good": 1.0})
        assert np.abs(proposal.vector - 0.3).max() < 0.1


def test_equal_members_share_and_one_member_is_that_member() -> None:
    history = observed(SQUARE, 20)
    twins = rated(first=1.0, second=1.0)
    assert propose(twins, history).trust == {"first": 0.5, "second": 0.5}
    assert {propose(twins, history, k).member for k in range(20, 40)} == {"first", "second"}
    twins = Committee(twins.members, prior={"second": 3.0})
    assert propose(twins, history).trust == pytest.approx({"first": 0.25, "second": 0.75})
    alone = propose(Committee({"only": member(QuantileBoosting())}), history)
    assert (alone.member, alone.trust) == ("only", {"only": 1.0})
    own = propose(member(QuantileBoosting()), history)
    np.testing.assert_array_equal(alone.vector, own.vector)


def test_members_are_judged_at_the_judging_points() -> None:
    history, one = disputed(40), committee()
    trusts = [propose(one, history.first(n)).trust for n in (32, 33, 35, 36)]
    assert trusts[0] == trusts[1] == trusts[2] != trusts[3]


def test_members_that_rank_a_smooth_function_right_are_trusted() -> None:
    history = observed(SQUARE, 24)
    trust = propose(committee(), history).trust
    assert trust is not None and trust["process"] > 0.8
    shuffled = np.random.default_rng(0).permutation(history.losses)
    trust = propose(committee(), History.of(history.vectors, shuffled)).trust
    assert trust is not None and trust["process"] < 0.8


class Noise(Funnel):
    """Has learnt a noise."""

    noise_ = 0.02


@pytest.mark.parametrize(
    ("n", "noise", "exact", "asked"),
    [
        (12, 0.02, ["a"], {"b"}),
        (12, 0.02, [], {"a", "b"}),
        (11, 0.02, ["a"], {"a", "b"}),  # too few to tell
        (12, 0.009, ["a"], {"a", "b"}),
        (12, 0.02, ["b"], {"a", "b"}),  # noise about its own idea of the losses
    ],
)
def test_members_that_take_losses_for_exact_are_not_asked_once_there_is_noise(
    n: int, noise: float, exact: list[str], asked: set[str]
) -> None:
    noisy = Noise(0.5, 0.5)
    noisy.noise_ = noise
    members = {"a": member(Funnel(0.5, 0.5)), "b": member(noisy)}
    found = propose(Committee(members, exact=exact, tempering=0.0), disputed(n))
    assert found.trust is not None and found.trust.keys() == asked
    assert sum(found.trust.values()) == pytest.approx(1.0)


def test_failed_rows_do_not_make_the_judgement_more_certain() -> None:
    """Failures of which the trees learn no loss say nothing of how losses are ranked."""
    history = disputed(11)
    vectors = np.vstack([history.vectors, SQUARE.sample(33, np.random.default_rng(8))])
    status = np.repeat([Status.COMPLETE, Status.FAILED], [11, 33])
    more = History.of(vectors, np.append(history.losses, np.full(33, np.nan)), status=status)
    members = {"a": member(Funnel(0.2, 0.5)), "b": member(Funnel(0.7, 0.6))}
    few, many = (propose(Committee(members), known).trust for known in (history, more))
    assert few == many and few is not None and 0.5 < few["b"] < 1.0


# The contract of a proposer


def test_a_proposal_is_a_pure_function() -> None:
    history, used = disputed(33), committee()
    for n, k in ((12, 12), (33, 34), (7, 7)):  # earlier calls change nothing
        propose(used, history.first(n), k)
    for k in range(33, 37):
        warm = propose(used, history, k)
        assert warm.trust is not None and len(warm.trust) == 2
        for other in (used, pickle.loads(pickle.dumps(used)), committee()):
            assert essence(propose(other, history, k)) == essence(warm)
    assert not np.array_equal(propose(used, history, 33, seed=6).vector, warm.vector)
    members = {propose(rated(a=1.0, b=1.0), history, 33, seed=seed).member for seed in range(8)}
    assert members == {"a", "b"}


def test_a_committee_is_judged_again_when_the_history_changes() -> None:
    history, one = observed(SQUARE, 14), committee()
    before = propose(one, history).trust
    other = History.of(history.vectors, np.random.default_rng(1).permutation(history.losses))
    assert propose(one, other).trust == propose(committee(), other).trust != before


def test_it_begins_as_its_first_member() -> None:
    for n in range(6):
        history = observed(SQUARE, n)
        found, first = propose(committee(), history), propose(member(QuantileBoosting()), history)
        np.testing.assert_array_equal(found.vector, first.vector)
        assert (found.origin, found.member, found.trust) == ("design", None, None)
    assert propose(committee(), observed(SQUARE, 6)).member is not None
    assert propose(committee(n_startup=3), observed(SQUARE, 3)).member is not None


def test_a_member_in_its_own_start_continues_its_design() -> None:
    early, late = member(Funnel(0.3), n_startup=2), member(QuantileBoosting(), n_startup=8)
    one = Committee({"late": late, "early": early}, tempering=0.0)
    assert propose(one, observed(SQUARE, 1)).member is None
    for n in (2, 7, 8):
        history = observed(SQUARE, n)
        proposals = {p.member: p for p in (propose(one, history, k) for k in range(8, 20))}
        assert proposals["early"].origin == "model"
        assert proposals["late"].origin == ("model" if n == 8 else "design")
        assert proposals["late"].trust == {"late": 0.5, "early": 0.5}


def test_members_are_not_judged_before_a_trial_is_complete() -> None:
    status = np.full(66, Status.FAILED)
    failed = observed(SQUARE, 66, losses=np.full(66, np.nan), status=status)
    assert propose(committee(), failed.first(20)).origin == "design"
    # The first complete row is newer than the rows that members are judged by, or fitted on
    for n in (17, 65):
        losses, status = np.full(n, np.nan), np.full(n, Status.FAILED)
        losses[-1], status[-1] = 1.0, Status.COMPLETE
        proposal = propose(committee(), History.of(failed.vectors[:n], losses, status=status))
        assert proposal.trust == {"trees": 0.5, "process": 0.5}


def test_evaluations_under_way_change_no_trust_and_repel() -> None:
    history, points = disputed(20), list[np.ndarray]()
    one, alone = committee(), propose(committee(), history)
    assert alone.trust is not None and len(alone.trust) == 2
    for worker in range(6):
        pending = History.of(
            np.vstack([history.vectors, *points]),
            np.concatenate([history.losses, np.full(worker, np.nan)]),
            status=[Status.COMPLETE] * 20 + [Status.RUNNING] * worker,
        )
        proposal = propose(one, pending, 26)
        assert proposal.trust == alone.trust
        points.append(proposal.vector)
    gaps = np.abs(np.array(points)[:, None] - np.array(points)[None]).max(axis=2)
    assert gaps[np.triu_indices(6, 1)].min() > 1e-3  # with one and the same k


def test_fixed_values_are_kept_and_the_rest_follows_them() -> None:
    space = branches()
    kind, a, b = (space.names.index(name) for name in ("kind", "a", "b"))
    fixed, history = np.full(space.d, np.nan), observed(space, 6)
    free, nothing = (committee().propose(space, history, Streams(0), 6, f) for f in (None, fixed))
    np.testing.assert_array_equal(nothing.vector, free.vector)
    fixed[kind] = 1.0
    for k in range(6, 12):
        vector = committee(n_startup=4).propose(space, history, Streams(0), k, fixed).vector
        assert vector[kind] == 1.0 and np.isnan(vector[a]) and not np.isnan(vector[b])
    fixed = np.array([0.25, np.nan])
    for k in range(20, 24):
        proposal = committee().propose(SQUARE, observed(SQUARE, 20), Streams(0), k, fixed)
        assert proposal.vector[0] == 0.25 and proposal.member is not None


def test_conditions_forbidden_clauses_and_earlier_trials_are_respected() -> None:
    history = search(branches(), committee(n_startup=3), 7)
    assert len(np.unique(branches().keys(history.vectors))) == 7
    space = ConfigurationSpace()
    kind, x = Categorical("kind", ["a", "b", "c"]), Float("x", (0, 1))
    space.add([kind, x])
    space.add(ForbiddenEqualsClause(kind, "b"))
    vectors = VectorSpace(space)
    assert vectors.allowed(search(vectors, committee(n_startup=3), 9).vectors).all()


@pytest.mark.parametrize("told_by", ["status", "constraints"])
def test_failures_and_broken_constraints_are_avoided(told_by: str) -> None:
    vectors = SQUARE.sample(40, np.random.default_rng(1))
    broken = vectors[:, 0] > 0.5
    losses = 1.0 - vectors[:, 0]  # better and better up to the border
    if told_by == "status":
        status = np.where(broken, Status.FAILED, Status.COMPLETE)
        history = History.of(vectors, np.where(broken, np.nan, losses), status=status)
    else:
        history = History.of(vectors, losses, constraints=np.where(broken, 1.0, -1.0)[:, None])
    one = committee()
    proposals = [propose(one, history, k) for k in range(40, 50)]
    assert np.mean([p.vector[0] > 0.55 for p in proposals]) < 0.3
    assert all(p.success is not None for p in proposals)


def test_expensive_configurations_must_be_worth_it() -> None:
    vectors = SQUARE.sample(40, np.random.default_rng(1))
    losses = (vectors[:, 1] - 0.5) ** 2
    history = History.of(vectors, losses, seconds=np.exp(6 * vectors[:, 0]))

    def mean_x(**cost: Any) -> float:
        one = committee(timed=True, **cost)
        points = [propose(one, history, k) for k in range(40, 46)]
        assert all(point.seconds is not None and point.seconds > 0 for point in points)
        return float(np.mean([point.vector[0] for point in points]))

    free = mean_x(cost_exponent=0.0)
    assert mean_x(cost_exponent=1.0) < 0.7 * free
    assert mean_x(cost_exponent=1.0, cost_budget=40) == free  # spent: cost no longer counts


# Models that fail


def test_the_failure_of_a_member_is_raised() -> None:
    def broken(X: Any) -> Any:
        raise KeyError("no such leaf")

    class Held(Told):
        def held_out(self) -> FloatArray:
            return np.arange(20.0)

    with pytest.raises(SurrogateFailure, match="no such leaf"):
        propose(Committee({"broken": member(Held(broken))}), observed(SQUARE, 20))
