"""Adaptive successive filtering: formulas, rounds, debts."""

from __future__ import annotations

import json
import math
import statistics
from typing import Any

import numpy as np
import pytest
from effort import count_calls
from hypothesis import example, given, settings
from hypothesis import strategies as st

from automl_plugins.bandits.records import ArmRecords
from automl_plugins.bandits.report import describe_dropped_best
from automl_plugins.bandits.successive_filtering import (
    Round,
    SuccessiveFiltering,
    advance_probabilities,
    softmax_shares,
)
from automl_plugins.records.trial import Status
from automl_plugins.streams import Streams

REWARDS = st.floats(0.0, 1.0).map(lambda x: round(x, 6))
NAN = math.nan
NONE = ArmRecords.of([], [])


def two_rounds(
    method: SuccessiveFiltering, n: int, records: ArmRecords, seed: int = 0, left: Any = None
) -> tuple[Round, Round]:
    """The first round of n arms, and the second after some records."""
    first = method.open(range(n), NONE, None, Streams(seed))
    return first, method.open(left or range(n), records, first, Streams(seed))


# --- formulas -------------------------------------------------------------------------------


def test_probabilities_by_hand() -> None:
    np.testing.assert_allclose(advance_probabilities([0.9, 0.5, 0.6]), [1.0, 0.0, 0.25])
    np.testing.assert_array_equal(advance_probabilities([0.5, 0.5, 0.5]), [1, 1, 1])
    np.testing.assert_array_equal(advance_probabilities([0.3]), [1])
    np.testing.assert_array_equal(advance_probabilities([math.inf, 0.2, 0.7]), [1, 0, 1])
    assert len(advance_probabilities([])) == 0


def test_softmax_by_hand() -> None:
    ratio = softmax_shares([0.9, 0.6])
    assert ratio[0] / ratio[1] == pytest.approx(math.exp(0.3))  # nearly uniform: 1.35
    sharp = softmax_shares([0.9, 0.6], 0.1)
    assert sharp[0] / sharp[1] == pytest.approx(math.exp(3.0))
    np.testing.assert_allclose(
        softmax_shares([math.inf, 0.5, 0.1]), softmax_shares([0.5, 0.5, 0.1])
    )
    np.testing.assert_allclose(softmax_shares([math.inf, math.inf]), [0.5, 0.5])
    np.testing.assert_allclose(softmax_shares([900.0, 0.0], 1e-3), [1.0, 0.0])  # no overflow


@given(st.lists(REWARDS, min_size=1, max_size=12), st.floats(0.01, 10.0))
def test_invariants_of_the_formulas(scores: list[float], temperature: float) -> None:
    p = advance_probabilities(scores)
    assert ((p >= 0) & (p <= 1)).all()
    assert p[int(np.argmax(scores))] == 1.0
    if len(set(scores)) > 1:
        assert p[int(np.argmin(scores))] == 0.0
    shares = softmax_shares(scores, temperature)
    assert shares.sum() == pytest.approx(1.0)
    order = np.argsort(scores, kind="stable")
    assert (np.diff(shares[order]) >= -1e-12).all()


# --- rounds ---------------------------------------------------------------------------------


def paper_round(
    rewards: dict[int, list[float]], lots: np.ndarray, budget: float, c: float
) -> dict[int, float]:
    """One filtering of algorithm 1, written from the paper: shares of those who advance."""
    bound = {
        a: statistics.fmean(r) + c * statistics.pstdev(r) / math.sqrt(len(r))
        for a, r in rewards.items()
    }
    low, high = min(bound.values()), max(bound.values())
    left = {}
    for a, value in bound.items():
        p = 1.0 if high == low else (value - low) / (high - low)
        if lots[a] < p:
            left[a] = value
    total = sum(math.exp(v) for v in left.values())
    return {a: budget * math.exp(v) / total for a, v in left.items()}


@settings(deadline=None)
@given(
    st.lists(st.lists(REWARDS, min_size=1, max_size=6), min_size=1, max_size=8),
    st.integers(0, 2**31),
    st.floats(0.0, 5.0),
)
def test_a_round_as_the_paper_prints_it(rewards: list[list[float]], seed: int, c: float) -> None:
    method, n = SuccessiveFiltering(90, score="mean", c=c, carry_debts=False), len(rewards)
    arms = [a for a, r in enumerate(rewards) for _ in r]
    records = ArmRecords.of(arms, [x for r in rewards for x in r])
    first, second = two_rounds(method, n, records, seed)
    assert [d.share for d in first.decisions] == pytest.approx([30 / n] * n)
    lots = Streams(seed).generator("filter", 1).random(n)
    expected = paper_round(dict(enumerate(rewards)), lots, 30.0, c)
    if 0 < np.ptp([d.score or 0 for d in second.decisions]) < 1e-9:
        return  # rounding decides who is the best of equals
    assert dict.fromkeys(second.arms) == dict.fromkeys(expected)
    shares = {d.arm: d.share for d in second.decisions if d.advances}
    assert shares == pytest.approx(expected)


@settings(deadline=None, max_examples=50)
@example([[0.1], [0.8]], 0, 0.0, 0.9)
@given(
    st.lists(st.lists(REWARDS, min_size=1, max_size=4), min_size=1, max_size=6),
    st.integers(0, 2**31),
    st.floats(0.0, 5.0),
    st.floats(0.0, 1.0),
)
def test_the_arm_of_the_best_trial_stays(
    rewards: list[list[float]], seed: int, c: float, pruned: float
) -> None:
    arms = [a for a, r in enumerate(rewards) for _ in r]
    values = [x for r in rewards for x in r]
    status = [Status.COMPLETE] * len(arms)
    # A pruned pull may report more than any complete one.
    records = ArmRecords.of([*arms, 0], [*values, pruned], status=[*status, Status.PRUNED])
    for method in (SuccessiveFiltering(90), SuccessiveFiltering(90, score="maximum", c=c)):
        _, second = two_rounds(method, len(rewards), records, seed)
        assert {arms[i] for i, x in enumerate(values) if x == max(values)} <= set(second.arms)


def test_the_mean_of_the_paper_drops_it_and_this_is_known() -> None:
    records = ArmRecords.of([0, 0, 1, 1], [0.95, 0.1, 0.8, 0.8])
    first, second = two_rounds(SuccessiveFiltering(40, score="mean", c=0.0), 2, records)
    assert second.arms == (1,)
    names = ("svm", "knn")
    (line,) = describe_dropped_best([first, second], records, range(2), names)
    assert line.startswith("Round 2 drops svm, the arm of the best trial so far: score='mean'")
    # There was nothing left to try in it.
    assert describe_dropped_best([first, second], records, [1], names) == []
    as_good = ArmRecords.of([0, 0, 1, 1], [0.8, 0.1, 0.8, 0.8])
    assert describe_dropped_best([second], as_good, range(2), names) == []
    best_was_pruned = ArmRecords.of(
        [0, 0, 1], [0.95, 0.1, 0.8], status=[Status.PRUNED, Status.COMPLETE, Status.COMPLETE]
    )
    assert describe_dropped_best([second], best_was_pruned, range(2), names) == []


def test_failing_and_exhausted_arms_leave() -> None:
    records = ArmRecords.of([0, 0, 1, 2, 2, 3], [NAN, NAN, 0.4, NAN, 0.1, 0.9])
    method = SuccessiveFiltering(40, score="mean")
    _, second = two_rounds(method, 5, records, left=[0, 1, 2, 4])
    reasons = {d.arm: (d.advances, d.reason) for d in second.decisions}
    assert reasons[0] == (False, "failed every time")
    assert reasons[3] == (False, "has nothing left to try")
    assert reasons[4] == (True, "no result yet")
    assert reasons[1] == (True, "best")
    assert reasons[2][0] is False  # a failure counts as reward 0: 0.05 on average
    assert Round.from_dict(json.loads(json.dumps(second.to_dict()))) == second


def test_reasons_say_what_was_certain_and_what_was_drawn() -> None:
    records = ArmRecords.of([0, 1, 2], [0.9, 0.1, 0.5])
    drawn = {}
    for seed in range(20):
        _, second = two_rounds(SuccessiveFiltering(40), 3, records, seed)
        best, worst, middle = second.decisions
        assert (best.advances, best.reason) == (True, "best")
        assert (worst.advances, worst.reason) == (False, "worst")
        drawn[middle.advances] = middle.reason
    assert drawn == {True: "drawn to advance", False: "drawn to leave"}


@pytest.mark.parametrize("score", ["mean", "maximum"])
def test_where_all_arms_failed_the_round_says_how_often(score: Any) -> None:
    records = ArmRecords.of([0, 0, 1, 3], [NAN, NAN, NAN, 0.9])
    _, second = two_rounds(SuccessiveFiltering(40, score=score), 2, records)
    assert [d.reason for d in second.decisions] == ["failed 2 times", "failed 1 time"]


def test_an_arm_that_is_gone_before_its_first_pull_leaves() -> None:
    method, records = SuccessiveFiltering(6), ArmRecords.of([0, 0, 0], [0.5, 0.4, 0.3])
    first = method.open(range(2), NONE, None, Streams(0))
    turn = method.next([0], records, [first], Streams(0), 3)
    assert turn.arm == 0 and turn.current is not None and turn.current.arms == (0,)
    gone = {d.arm: (d.score, d.reason) for d in turn.current.decisions}[1]
    assert gone == (None, "has nothing left to try")


@pytest.mark.parametrize(
    ("arms", "rewards", "left", "expected"),
    [
        ([0, 1, 2], [0.5, 0.5, 0.5], [0, 1, 2], (0, 1, 2)),  # equals all stay
        ([0, 1], [NAN, NAN], [0, 1], (0, 1)),  # where everything fails the search continues
        ([0, 1, 1, 1], [0.5, NAN, NAN, NAN], [1], (1,)),  # and where the good are exhausted
    ],
)
def test_somebody_always_stays(
    arms: list[int], rewards: list[float], left: list[int], expected: tuple[int, ...]
) -> None:
    for score in ("mean", "maximum"):
        method = SuccessiveFiltering(40, score=score)
        n = len(set(arms))
        assert two_rounds(method, n, ArmRecords.of(arms, rewards), left=left)[1].arms == expected


def test_those_who_left_come_back_when_all_others_are_exhausted() -> None:
    method, records = SuccessiveFiltering(40), ArmRecords.of(range(3), [0.1, 0.1, 0.9])
    _, second = two_rounds(method, 3, records)
    assert second.arms == (2,)
    assert method.open([0, 1], records, second, Streams(0)).arms == (0, 1)


# --- spending -------------------------------------------------------------------------------


def spend(
    method: SuccessiveFiltering,
    costs: list[float],
    means: list[float],
    seed: int = 0,
    pools: list[int] | None = None,
) -> tuple[ArmRecords, list[Round]]:
    """A whole search with arms of constant cost and noisy rewards, one evaluation at a time."""
    rng, streams = np.random.default_rng(seed), Streams(seed)
    left = list(pools or [10**6] * len(costs))
    arm: list[int] = []
    reward: list[float] = []
    seconds: list[float] = []
    rounds: list[Round] = []
    for k in range(100_000):
        records = ArmRecords.of(arm, reward, seconds=seconds)
        ready = [a for a in range(len(costs)) if left[a]]
        if not ready:
            break
        turn = method.next(ready, records, rounds, streams, k)
        rounds += turn.opened
        chosen = turn.arm
        if chosen is None:
            break
        left[chosen] -= 1
        arm.append(chosen)
        reward.append(float(np.clip(rng.normal(means[chosen], 0.05), 0, 1)))
        seconds.append(costs[chosen])
    return ArmRecords.of(arm, reward, seconds=seconds), rounds


@pytest.mark.parametrize("score", ["mean", "maximum"])
def test_trials_are_all_used(score: str) -> None:
    for n, seed in ((60, 0), (37, 1)):
        method = SuccessiveFiltering(n, score=score)  # type: ignore[arg-type]
        records, rounds = spend(method, [1.0] * 6, [0.3, 0.4, 0.5, 0.6, 0.7, 0.8], seed)
        assert len(records) == n
        assert len(rounds) == 3
        counts = np.bincount(records.arm, minlength=6)
        assert counts.min() >= max(2, n // 18)
        assert counts.argmax() in rounds[-1].arms


def test_seconds_are_not_overrun() -> None:
    costs = [1.0, 3.0, 10.0, 30.0]
    for seed in range(8):
        method = SuccessiveFiltering(600, unit="seconds")
        records, _ = spend(method, costs, [0.5, 0.6, 0.7, 0.65], seed)
        spent = records.seconds.sum()
        assert 570 <= spent <= 600


@pytest.mark.parametrize(
    ("cost", "budget", "n"), [(0.1, 0.3, 3), (0.1, 2.0, 20), (0.01, 1.0, 100), (0.7, 7.0, 10)]
)
@pytest.mark.parametrize("carry_debts", [True, False])
def test_sums_of_seconds_fill_a_budget(
    cost: float, budget: float, n: int, carry_debts: bool
) -> None:
    """In floats 0.1 + 0.1 + 0.1 is more than 0.3, and the sum of ten 0.7 more than 7.0."""
    method = SuccessiveFiltering(budget, unit="seconds", carry_debts=carry_debts)
    records, _ = spend(method, [cost] * 2, [0.5, 0.6])
    assert len(records) == n


def test_pulls_of_unknown_cost_are_not_free() -> None:
    """They cost what the known ones of the arm did, or of all arms: 3 x 100 s and 5 x 200 s."""
    arms, costs = (
        [0, 0, 0, 1, 1, 1, 1, 1],
        [100.0, np.nan, np.nan, 200.0, 200.0, 200.0, np.nan, np.nan],
    )
    method = SuccessiveFiltering(1300, unit="seconds", rounds=1)
    first = method.open(range(2), NONE, None, Streams(0))
    records = ArmRecords.of(arms, [0.5] * 8, seconds=costs)
    assert method.choose(first, records, range(2), Streams(0), 8) is None
    fewer = ArmRecords.of(arms[:-1], [0.5] * 7, seconds=costs[:-1])
    assert method.choose(first, fewer, range(2), Streams(0), 7) is not None
    unknown = ArmRecords.of([0, 1], [0.5] * 2, seconds=[700.0, np.nan])  # of arm 1 nothing
    assert method.choose(first, unknown, range(2), Streams(0), 2) is None


@pytest.mark.parametrize(("carry_debts", "pulls"), [(False, [2, 2, 2]), (True, [1, 1, 1])])
def test_the_papers_loop_overruns_its_shares(carry_debts: bool, pulls: list[int]) -> None:
    """Three shares of 400 s, evaluations of 300 s: the paper's loop spends 1800 s of 1200."""
    method = SuccessiveFiltering(3600, unit="seconds", carry_debts=carry_debts)
    first = method.open(range(3), NONE, None, Streams(0))
    arm: list[int] = []
    while True:
        records = ArmRecords.of(arm, [0.5] * len(arm), seconds=[300.0] * len(arm))
        chosen = method.choose(first, records, range(3), Streams(0), len(arm))
        if chosen is None:
            break
        arm.append(chosen)
    assert np.bincount(arm).tolist() == pulls


def test_debts_are_paid_and_savings_kept() -> None:
    method = SuccessiveFiltering(300, unit="seconds")
    records = ArmRecords.of([0, 1, 1], [0.5, 0.5, 0.5], seconds=[90.0, 20.0, 20.0])
    first, second = two_rounds(method, 2, records)
    assert [d.limit for d in first.decisions] == [50, 50]
    # 170 s are left for two rounds; arm 0 owes 40 s, arm 1 has 10 s to its credit
    owed, saved = second.decisions
    assert owed.share == saved.share == pytest.approx((85 + 40 - 10) / 2)
    assert owed.limit - 90 == pytest.approx(owed.share - 40)
    assert saved.limit - 40 == pytest.approx(saved.share + 10)
    assert second.limit == pytest.approx(130 + 85)
    assert (owed.limit - 90) + (saved.limit - 40) == pytest.approx(85)


def test_no_round_ends_beyond_the_budget() -> None:
    """The paper's first rounds overrun theirs: 4 of 6 trials are spent before the second."""
    method = SuccessiveFiltering.paper(6, rounds=2)
    first, second = two_rounds(method, 2, ArmRecords.of([0, 1, 0, 1], [0.5, 0.4, 0.5, 0.4]))
    assert (first.limit, second.limit) == (3.0, 6.0)
    assert sum(d.share for d in second.decisions) == pytest.approx(3.0)


def test_running_pulls_are_counted_with_their_expected_cost() -> None:
    method = SuccessiveFiltering(120, unit="seconds")
    first = method.open(range(2), NONE, None, Streams(0))
    status = [Status.COMPLETE, Status.COMPLETE, Status.RUNNING, Status.RUNNING]
    rewards, seconds = [0.5, 0.5, NAN, NAN], [12.0, 2.0, NAN, NAN]
    records = ArmRecords.of([0, 1, 0, 1], rewards, seconds=seconds, status=status)
    # arm 0 has spent 12 + 12 of its 20 s, arm 1 2 + 2
    assert method.choose(first, records, range(2), Streams(0), 4) == 1


def test_every_arm_is_seen_once_even_if_it_costs_more_than_a_share() -> None:
    method = SuccessiveFiltering(300, unit="seconds")
    records, _ = spend(method, [60.0, 1.0, 1.0, 40.0], [0.5] * 4)
    assert set(records.arm[:4]) == {0, 1, 2, 3}
    assert records.seconds.sum() <= 300
    records, _ = spend(SuccessiveFiltering(6), [1.0] * 12, [0.5] * 12)  # more arms than trials
    assert len(records) == len(set(records.arm.tolist())) == 6


def test_exhausted_arms_leave_their_shares_to_others() -> None:
    records, _ = spend(SuccessiveFiltering(60), [1.0] * 3, [0.9, 0.5, 0.4], pools=[2, 1, 1000])
    assert np.bincount(records.arm).tolist() == [2, 1, 57]


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_in_the_papers_loop_too_no_share_is_lost_with_an_exhausted_arm(rounds: int) -> None:
    method = SuccessiveFiltering.paper(60, rounds=rounds)
    records, _ = spend(method, [1.0] * 2, [0.9, 0.5], pools=[2, 1000])
    assert np.bincount(records.arm).tolist() == [2, 58]


def test_choosing_does_not_go_through_the_records_one_by_one() -> None:
    rng = np.random.default_rng(0)
    method = SuccessiveFiltering(1e6, unit="seconds")
    first = method.open(range(12), NONE, None, Streams(0))

    def calls(n: int) -> int:
        records = ArmRecords.of(np.arange(n) % 12, rng.random(n), seconds=rng.random(n))
        return count_calls(lambda: method.choose(first, records, range(12), Streams(0), n))

    assert calls(10_000) < 2 * calls(100)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": 0}, "budget must be a finite number > 0, got 0"),
        ({"budget": -3.0, "unit": "seconds"}, "budget must be a finite number > 0"),
        ({"budget": NAN}, "budget"),
        ({"budget": math.inf}, "budget"),
        ({"budget": 9, "rounds": 0}, "rounds must be an integer >= 1"),
        ({"budget": 9, "c": -1}, "c must be"),
        ({"budget": 9, "temperature": 0}, "temperature must be"),
        ({"budget": 9, "score": "median"}, "score must be 'maximum' .* or 'mean'"),
        ({"budget": 9, "unit": "hours"}, "one of 'trials', 'seconds'"),
        ({"budget": 9, "min_pulls": 0}, "min_pulls"),
    ],
)
def test_bad_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SuccessiveFiltering(**arguments)  # type: ignore[arg-type]


def test_no_arm_at_all() -> None:
    with pytest.raises(ValueError, match="no arm"):
        SuccessiveFiltering(9).open([], NONE, None, Streams(0))


def test_an_arm_that_fails_at_once_does_not_hold_up_its_round() -> None:
    method = SuccessiveFiltering(300, unit="seconds")
    first = method.open(range(2), NONE, None, Streams(0))
    failures, seconds = [NAN] * 3, [1e-3] * 3
    records = ArmRecords.of([0, 0, 0, 1], [*failures, 0.5], seconds=[*seconds, 40.0])
    assert method.choose(first, records, range(2), Streams(0), 4) is None
    assert method.choose(first, records, [0], Streams(0), 4) == 0  # nothing else is left


# --- the loop -------------------------------------------------------------------------------


def test_rounds_end_with_their_limits_and_none_is_opened_when_the_budget_is_spent() -> None:
    method, streams = SuccessiveFiltering(9, rounds=3), Streams(0)
    rounds: list[Round] = []
    for k in range(12):
        records = ArmRecords.of([i % 3 for i in range(k)], [0.5] * k)  # equal arms all stay
        turn = method.next(range(3), records, rounds, streams, k)
        rounds += turn.opened
        assert [r.index for r in turn.opened] == ([k // 3] if k in (0, 3, 6) else [])
        assert (turn.arm is None) == (k >= 9)
        assert all(r.finished == k for r in turn.opened)
    spent = ArmRecords.of([0] * 9, [0.5] * 9)
    assert method.next(range(3), spent, rounds[:1], streams, 9).opened == ()
    assert method.next([], spent, [], streams, 9).arm is None


def test_one_more_round_takes_back_the_arms_that_left_when_nothing_else_is_left() -> None:
    method, streams = SuccessiveFiltering(20, rounds=2), Streams(0)
    records = ArmRecords.of([0, 1, 1, 2], [0.9, 0.1, 0.1, 0.1])
    first = method.next(range(3), NONE, [], streams, 0).opened[0]
    second = method.open(range(3), records, first, streams)
    assert second.arms == (0,)
    turn = method.next([1, 2], records, [first, second], streams, 4)
    assert [r.index for r in turn.opened] == [2] and turn.opened[0].arms == (1, 2)
    assert turn.arm in (1, 2)
    # An arm that always fails is not taken back, unless there is no other.
    failed = ArmRecords.of([0, 1, 1, 1, 2], [0.9, NAN, NAN, NAN, 0.1])
    assert method.next([1, 2], failed, [first, second], streams, 5).arm == 2
    assert method.next([1], failed, [first, second], streams, 5).arm == 1
    # Nor does the last round begin again with its only arm, if that always fails.
    failed = ArmRecords.of([0, 0, 0, 1, 2], [NAN, NAN, NAN, 0.1, 0.2])
    turn = method.next(range(3), failed, [first, second], streams, 5)
    assert turn.arm == 2 and [r.index for r in turn.opened] == [2]
