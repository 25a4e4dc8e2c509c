"""Arm policies: formulas by hand and by plain loops, and what the rules do with them."""

from __future__ import annotations

import math
import random
import statistics as st
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy import stats

from automl_plugins.bandits.confidence import (
    UCB1,
    IncreasingEffort,
    MaxUCB,
    Thompson,
    TopTwoThompson,
    UCB1Tuned,
    Unit,
    arm_scales,
    beta_parameters,
    effort,
    log_t_tail,
    pulls_by_time,
)
from automl_plugins.bandits.policy import (
    AlwaysBest,
    DecreasingEpsilon,
    EpsilonGreedy,
    Policy,
    RandomArm,
)
from automl_plugins.bandits.records import ArmRecords
from automl_plugins.records.trial import Status
from automl_plugins.streams import Streams

NAN = float("nan")
FREE: dict[str, Any] = {"min_pulls": 1, "min_share": 0.0}
Pulls = list[tuple[int, float]]

# Three arms with at least one pull each, rewards with two digits; a reward of -1 is a failure.
reward = some.integers(-20, 100).map(lambda r: r / 100 if r >= 0 else -1.0)
searches = some.lists(some.tuples(some.integers(0, 2), reward), max_size=40).flatmap(
    lambda more: some.tuples(reward, reward, reward).map(lambda first: [*enumerate(first), *more])
)


def records_of(pulls: Pulls, running: Sequence[int] = ()) -> ArmRecords:
    """Records of (arm, reward) pairs, and of running pulls; a negative reward is a failure."""
    status = [Status.FAILED if r < 0 else Status.COMPLETE for _, r in pulls]
    return ArmRecords.of(
        [arm for arm, _ in pulls] + list(running),
        [NAN if r < 0 else r for _, r in pulls] + [NAN] * len(running),
        status=status + [Status.RUNNING] * len(running),
    )


def by_arm(pulls: Pulls) -> dict[int, list[float]]:
    """Rewards of each arm, 0 for a failure."""
    return {arm: [max(r, 0.0) for a, r in pulls if a == arm] for arm in {a for a, _ in pulls}}


def working_arms(pulls: Pulls) -> list[int]:
    """Arms that are not given up."""
    own = {arm: [r for a, r in pulls if a == arm] for arm in sorted({a for a, _ in pulls})}
    left = [arm for arm, rs in own.items() if len(rs) < 3 or any(r >= 0 for r in rs)]
    return left or list(own)


def choices(policy: Policy, records: ArmRecords, arms: Sequence[int], n: int = 200) -> list[int]:
    return [policy.choose(arms, records, Streams(1), k) for k in range(n)]


def shares(policy: Policy, records: ArmRecords, n_arms: int, n: int = 2000) -> np.ndarray:
    """How often each arm is chosen."""
    return np.bincount(choices(policy, records, range(n_arms), n), minlength=n_arms) / n


def largest(scores: dict[int, float]) -> set[int]:
    """Arms whose score is the largest, up to rounding."""
    top = max(scores.values())
    return {arm for arm, score in scores.items() if score >= top - 1e-9}


# --- upper bounds -----------------------------------------------------------------------------


def test_bounds_by_hand() -> None:
    def score(policy: Policy, records: ArmRecords) -> float | None:
        return policy.decide([0], records, Streams(0), 0).score

    records = records_of([(0, 0.2), (0, 0.8)])  # t = 2, ln 2 = 0.693147: mean .5, variance .09
    assert score(UCB1(**FREE), records) == pytest.approx(0.5 + math.sqrt(0.693147))
    assert score(UCB1(c=0.0, **FREE), records) == pytest.approx(0.5)
    # V = 0.09 + sqrt(0.693147) is more than 1/4: 0.5 + sqrt(0.346574 / 4)
    assert score(UCB1Tuned(**FREE), records) == pytest.approx(0.5 + 0.294353, abs=1e-6)
    # (0.5 * 0.693147 / 2)^2
    assert score(MaxUCB(scale="unit", **FREE), records) == pytest.approx(0.830028, abs=1e-6)


def test_a_policy_may_choose_an_arm_that_is_given_up() -> None:
    class Stubborn(UCB1):
        def choose(self, arms: Any, records: ArmRecords, streams: Streams, k: int) -> int:
            return 5

    records = records_of([(0, 0.1), (1, 0.2), (5, 0.3)])
    chosen = Stubborn(**FREE).decide([0, 1], records, Streams(0), 3)
    assert (chosen.arm, chosen.score) == (5, None)


def test_scales_by_hand() -> None:
    # Maxima .9 .5 .6: median .6, deviations .3 .1 0, their median .1. Deficits: .3 .1 .2 over
    # 2 1 1 free pulls, .15 for all; with 3 pulls of that, .75/5, .55/4 and .65/4.
    scales = arm_scales(np.array([0.9, 0.5, 0.6]), np.array([3, 2, 2]), np.array([2.4, 0.9, 1.0]))
    np.testing.assert_allclose(scales**2, [0.1 * 0.15, 0.1 * 0.1375, 0.1 * 0.1625])
    # Two of three maxima equal: the mean deviation, 0.4 / 3, stands in
    scales = arm_scales(np.array([0.5, 0.5, 0.9]), np.array([2, 2, 2]), np.array([0.9, 0.9, 1.7]))
    np.testing.assert_allclose(scales**2, 0.4 / 3 * 0.1)


@given(searches)
def test_bounds_by_plain_loops(pulls: Pulls) -> None:
    records, arms = records_of(pulls), working_arms(pulls)
    own = {arm: rs for arm, rs in by_arm(pulls).items() if arm in arms}
    t = sum(len(rs) for rs in own.values())
    log_t = math.log(t)
    plain, tuned, published, scaled = {}, {}, {}, {}
    best = {arm: max(rs) for arm, rs in own.items()}
    good = {arm: [r for a, r in pulls if a == arm and r >= 0] for arm in arms}
    deviations = [abs(m - st.median(best.values())) for m in best.values()]
    apart = st.median(deviations) if st.median(deviations) > 0 else st.fmean(deviations)
    below = {arm: sum(best[arm] - r for r in rs) for arm, rs in good.items()}
    free = {arm: max(len(rs) - 1, 0) for arm, rs in good.items()}
    pooled = sum(below.values()) / max(sum(free.values()), 1)
    for arm, rs in own.items():
        n = len(rs)
        plain[arm] = st.fmean(rs) + math.sqrt(2 * log_t / n)
        v = st.pvariance(rs) + math.sqrt(2 * log_t / n)
        tuned[arm] = st.fmean(rs) + math.sqrt(log_t / n * min(0.25, v))
        published[arm] = best[arm] + (0.5 * log_t / n) ** 2
        scale = math.sqrt(apart * (below[arm] + 3 * pooled) / (free[arm] + 3))
        scaled[arm] = best[arm] + scale * (1.75 * math.log(1 + t / len(arms)) / n) ** 2
    for policy, scores in (
        (UCB1(**FREE), plain),
        (UCB1Tuned(**FREE), tuned),
        (MaxUCB(scale="unit", **FREE), published),
        (MaxUCB(**FREE), scaled),
    ):
        chosen = policy.decide(arms, records, Streams(0), 0)
        assert chosen.arm in largest(scores)
        assert chosen.score == pytest.approx(scores[chosen.arm])


UNITS: tuple[Unit, ...] = ("pulls", "seconds")


def test_pulls_by_time_by_hand() -> None:
    # 10 pulls in 40 s: 4 s each; the arms took 20, 19 and 1 s
    done = np.array([2, 5, 3])
    equal = pulls_by_time(done, done, np.array([20.0, 19.0, 1.0]))
    np.testing.assert_allclose(equal, [5.0, 4.75, 0.3])  # 0.25 is less than a tenth of 3
    np.testing.assert_allclose(pulls_by_time(done, done, np.zeros(3)), done)
    # running: 2 + 2 pulls of 3 s in 12 s; an arm without known seconds has the mean of all, 3 s
    running = pulls_by_time(np.array([4, 2]), np.array([2, 0]), np.array([6.0, 0.0]))
    np.testing.assert_allclose(running, [4.0, 2.0])
    # finished: 6 pulls each of 10 s, of which one arm has told 2 only
    partly = pulls_by_time(np.array([6, 6]), np.array([6, 2]), np.array([60.0, 20.0]))
    np.testing.assert_allclose(partly, [6.0, 6.0])


def test_pulls_without_seconds_are_neither_cheap_nor_free() -> None:
    arm, reward = [0, 1, 2] * 6, [0.8, 0.75, 0.3, 0.75, 0.7, 0.2] * 3
    policy, streams = MaxUCB(unit="seconds"), Streams(0)
    known = ArmRecords.of(arm, reward, seconds=[10.0] * 18)
    partly = ArmRecords.of(arm, reward, seconds=[10.0] * 6 + [10.0, NAN, 10.0] * 4)
    one, other = (policy.decide([0, 1, 2], r, streams, 18) for r in (known, partly))
    assert one == other and one.arm == 0  # not 1, as if it took a third of the time


def test_of_two_arms_that_look_alike_the_cheap_one_is_pulled_more_often() -> None:
    rewards, costs = np.random.default_rng(0).uniform(0.5, 0.7, size=(2, 400)), (1.0, 9.0)
    counts = {}
    for unit in UNITS:
        arm: list[int] = []
        for k in range(200):
            known = [rewards[a, arm[:i].count(a)] for i, a in enumerate(arm)]
            records = ArmRecords.of(arm, known, seconds=[costs[a] for a in arm])
            arm.append(MaxUCB(unit=unit).choose([0, 1], records, Streams(1), k))
        counts[unit] = arm.count(0)
    assert counts["seconds"] > counts["pulls"] + 20
    assert 200 - counts["seconds"] >= 24  # the guarantee of the other one
    # Seconds that nobody knows change nothing.
    records = ArmRecords.of([0, 0, 1, 1, 2, 2], [0.5, 0.6, 0.7, 0.8, 0.3, 0.2])
    for k in range(5):
        chosen = [MaxUCB(unit=u).choose(range(3), records, Streams(0), k) for u in UNITS]
        assert chosen[0] == chosen[1]


def test_equal_rewards_lie_on_their_end_whatever_their_sum_rounds_to() -> None:
    assert sum([0.37] * 7) > 7 * 0.37
    records = ArmRecords.of([0] * 7 + [1] * 7, [0.0] * 7 + [0.37] * 7)
    assert MaxUCB().choose([0, 1], records, Streams(1), k=99) == 1


def test_no_result_yet_is_neither_good_nor_bad() -> None:
    # Arm 2 runs; the others have maxima and means around 0.5. Its fewer pulls bring it on, and
    # more running ones put it back: a slow arm does not take all workers.
    pulls = [(0, 0.5), (0, 0.52), (0, 0.5), (1, 0.5), (1, 0.49), (1, 0.48)]
    for policy in (UCB1(**FREE), UCB1Tuned(**FREE), MaxUCB(**FREE), MaxUCB(scale="unit", **FREE)):
        name = type(policy).__name__
        assert set(choices(policy, records_of(pulls, [2]), range(3))) == {2}, name
        assert 2 not in choices(policy, records_of(pulls, [2] * 30), range(3)), name
        # Nothing known of any arm: the fewest pulls
        blank = ArmRecords.of([0, 0, 1, 2, 2], [NAN] * 5, status=[Status.RUNNING] * 5)
        tied = isinstance(policy, MaxUCB) and policy.scale == "arms"
        assert set(choices(policy, blank, range(3))) == ({0, 1, 2} if tied else {1}), name


# --- greedy and random ------------------------------------------------------------------------


def test_epsilon_greedy_shares_by_hand() -> None:
    records = records_of([(0, 0.2), (1, 0.9), (1, 0.5), (2, 0.6), (3, -1.0)])
    # Best mean: arm 1, 0.7. All arms share the 0.4.
    found = shares(EpsilonGreedy(epsilon=0.4, **FREE), records, 4)
    np.testing.assert_allclose(found, [0.1, 0.7, 0.1, 0.1], atol=0.04)
    assert set(choices(EpsilonGreedy(epsilon=0.0, **FREE), records, range(4))) == {1}


@pytest.mark.parametrize(("t", "epsilon"), [(10, 0.8), (20, 0.6), (40, 0.2), (60, 0.2)])
def test_epsilon_falls_linearly(t: int, epsilon: float) -> None:
    policy = DecreasingEpsilon(start=1.0, end=0.2, horizon=40, **FREE)
    pulls: Pulls = [(0, 1.0), (1, 0.0)]
    for records in (records_of(pulls * (t // 2)), records_of(pulls, [0, 1] * (t // 2 - 1))):
        assert shares(policy, records, 2, 1000)[1] == pytest.approx(epsilon / 2, abs=0.05)


def test_random_arms_have_the_given_weights_exactly() -> None:
    records = records_of([(arm, arm / 4) for arm in range(4)] * 3)
    for weights in ({0: 1, 1: 2, 2: 4, 3: 1}, [1.0, 2.0, 4.0, 1.0], np.array([2, 4, 8, 2])):
        policy = RandomArm(weights=weights, **FREE)
        counts = np.bincount(choices(policy, records, range(4), 1200), minlength=4)
        assert stats.chisquare(counts, 1200 * np.array([1, 2, 4, 1]) / 8).pvalue > 1e-3
        # Among the arms that are left, in proportion
        counts = np.bincount(choices(policy, records, [0, 1], 900), minlength=2)
        assert stats.chisquare(counts, [300, 600]).pvalue > 1e-3
    counts = np.bincount(choices(RandomArm(**FREE), records, range(4), 2000), minlength=4)
    assert stats.chisquare(counts).pvalue > 1e-3


def test_random_arms_with_and_without_a_guarantee() -> None:
    policy = RandomArm(weights=[0.0, 1.0, 3.0], min_pulls=0, min_share=0.0)
    found = shares(policy, ArmRecords.of([], []), 3)
    assert found[0] == 0 and found[1] == pytest.approx(0.25, abs=0.04)
    # One pull of each, then the weights
    policy = RandomArm(weights=[0.0, 1.0, 3.0], **FREE)
    assert set(choices(policy, ArmRecords.of([1, 2], [0.1, 0.2]), range(3))) == {0}
    records = ArmRecords.of([0, 1, 2], [0.1, 0.2, 0.3])
    assert set(choices(policy, records, range(3))) == {1, 2}
    assert set(choices(RandomArm(weights=[1e308] * 3, **FREE), records, range(3))) == {0, 1, 2}
    assert set(choices(RandomArm(weights=[1e-308, 0, 0], **FREE), records, range(3))) == {0}
    # Only arms without weight are left: drawn alike
    assert set(choices(RandomArm(weights=[1, 0, 0], **FREE), records, [1, 2])) == {1, 2}
    policy = RandomArm(weights={0: 1.0, 2: 1.0}, min_pulls=0, min_share=0.0)
    with pytest.raises(ValueError, match=r"name arms \[0, 2\], but not \[1\]"):
        policy.choose([0, 1, 2], ArmRecords.of([], []), Streams(0), 0)


@pytest.mark.parametrize(
    ("arm", "arms", "expected"),
    [
        (None, [0, 1, 2, 3], 1),
        (None, [0, 2, 3], 0),
        (None, [2, 3], 2),  # a failure is a 0
        (2, [0, 1, 2, 3], 2),
        (2, [0, 1], 1),
    ],
)
def test_always_best_keeps_to_the_first_rewards(
    arm: int | None, arms: list[int], expected: int
) -> None:
    pulls = [(1, 0.6), (0, 0.5), (2, -1.0), (0, 1.0), (2, 1.0), (1, 0.0)]
    records = records_of(pulls, running=[3])
    assert set(choices(AlwaysBest(arm=arm, **FREE), records, arms)) == {expected}


@pytest.mark.parametrize("policy", [AlwaysBest, IncreasingEffort])
def test_a_failed_pull_is_worth_nothing_whatever_it_has_reported(policy: Any) -> None:
    pulls = [(0, 0.7), (0, 0.6), (0, 0.9), (0, 0.9), (1, -1.0), (0, -1.0), (0, 0.5), (0, 0.9)]
    pulls.append((1, 0.1))
    silent = records_of(pulls)
    loud = replace(silent, reward=np.nan_to_num(silent.reward, nan=1.0))
    assert choices(policy(**FREE), loud, [0, 1]) == choices(policy(**FREE), silent, [0, 1])


# --- Thompson sampling ------------------------------------------------------------------------


@given(some.floats(0.01, 0.99), some.floats(0.01, 0.95))
def test_beta_parameters_have_the_moments(mean: float, part: float) -> None:
    variance = part * mean * (1 - mean)
    alpha, beta = beta_parameters(np.array([mean]), np.array([variance]))
    # eq. 2.24 and 2.15, as printed
    a = ((1 - mean) / variance - 1 / mean) * mean**2
    np.testing.assert_allclose([alpha[0], beta[0]], [a, a * (1 / mean - 1)], rtol=1e-9)
    np.testing.assert_allclose(stats.beta.stats(alpha[0], beta[0]), [mean, variance], rtol=1e-9)


def test_beta_parameters_by_hand_and_for_all_moments() -> None:
    alpha, beta = beta_parameters(np.array([0.5, 0.8]), np.array([0.05, 0.01]))
    np.testing.assert_allclose([alpha, beta], [[2.0, 12.0], [2.0, 3.0]])
    grid = np.meshgrid(np.linspace(0, 1, 21), np.linspace(0, 0.25, 21))
    alpha, beta = beta_parameters(grid[0].ravel(), grid[1].ravel())
    assert (alpha > 0).all() and (beta > 0).all()
    draws = np.random.default_rng(0).beta(alpha, beta, size=(200, len(alpha)))
    assert ((draws >= 0) & (draws <= 1)).all()
    # Rewards that are all 0 or 1: mu (1 - mu) is the variance, and draws are 0 or 1 too
    alpha, beta = beta_parameters(np.array([0.3]), np.array([0.21]))
    draws = np.random.default_rng(0).beta(alpha, beta, 9999)
    assert draws.mean() == pytest.approx(0.3, abs=0.03)
    assert np.mean((draws < 0.01) | (draws > 0.99)) > 0.9


def test_thompson_plays_what_wins_the_draw() -> None:
    rng = random.Random(0)
    pulls = [
        (arm, min(max(rng.gauss(m, 0.15), 0.0), 1.0))
        for arm, m in enumerate((0.4, 0.5, 0.55))
        for _ in range(9)
    ]
    shapes = []
    for rs in by_arm(pulls).values():
        m, v = st.fmean(rs), st.pvariance(rs)
        a = ((1 - m) / v - 1 / m) * m**2
        shapes.append((a, a * (1 / m - 1)))
    wins = [0, 0, 0]
    for _ in range(8000):
        draw = [rng.betavariate(a, b) for a, b in shapes]
        wins[draw.index(max(draw))] += 1
    expected = np.array(wins) / 8000
    found = shares(Thompson(**FREE), records_of(pulls), 3)
    np.testing.assert_allclose(found, expected, atol=0.04)
    # Top two: the second is the winner of the draws in which the first does not win, so arm j
    # is played with p_j (gamma + (1 - gamma) sum over i != j of p_i / (1 - p_i)).
    odds = expected / (1 - expected)
    for gamma in (0.0, 0.5, 1.0):
        found = shares(TopTwoThompson(gamma=gamma, **FREE), records_of(pulls), 3)
        played = expected * (gamma + (1 - gamma) * (odds.sum() - odds))
        np.testing.assert_allclose(found, played, atol=0.04)


def test_top_two_plays_the_best_other_arm_against_a_sure_winner() -> None:
    # The draw of arm 0 never falls below that of another: no redraw changes the winner.
    records = records_of([(0, 0.9), (1, 0.1), (2, 0.3)] * 5)
    found = shares(TopTwoThompson(**FREE), records, 3, 1000)
    assert found[1] == 0 and found[2] == pytest.approx(0.5, abs=0.07)
    assert set(choices(TopTwoThompson(gamma=0.0, **FREE), records, [0])) == {0}


@pytest.mark.parametrize(
    ("second", "running", "expected"), [([], [], 1), ([(1, 0.5)], [], 0), ([], [1], 0)]
)
def test_an_arm_without_variation_is_pulled_until_it_has_two(
    second: Pulls, running: list[int], expected: int
) -> None:
    # The trap: s = 0 for ever took 100 of 100 pulls
    records = records_of([(0, 0.9), (0, 0.8), (1, 0.5), *second], running)
    assert set(choices(Thompson(**FREE), records, range(2))) == {expected}


# --- increasing effort ------------------------------------------------------------------------


def test_effort_by_hand() -> None:
    # Four rewards, s / sqrt(n) = sqrt(0.04) / 2 = 0.1, mean 0.5. Student's t with 3 degrees at
    # 90, 95, 97.5 and 98.75 %: 1.6377, 2.3534, 3.1824, 4.1765.
    best = np.array([0.66, 0.67, 0.73, 0.74, 0.81, 0.82, 0.91, 0.92])
    efforts = effort(np.full(8, 4), np.full(8, 0.5), np.full(8, 0.03), best)
    np.testing.assert_array_equal(efforts, [0, 1, 1, 2, 2, 3, 3, 4])
    efforts = effort([0, 1, 2, 5], [0.0, 0.4, 0.4, 0.9], np.zeros(4), 0.9)  # without a limit
    np.testing.assert_array_equal(efforts, [0, 0, np.inf, np.inf])


def test_tails_of_t_where_they_underflow() -> None:
    z, degrees = np.array([0.0, 1.5, 8.0, 30.0]), np.array([1.0, 4.0, 20.0, 99.0])
    np.testing.assert_allclose(log_t_tail(z, degrees), stats.t.logsf(z, degrees), rtol=1e-9)
    # The tail of t is C z^-d (1 + d / z^2)^-((d + 1) / 2) (1 / d + ...): its slope in log z is
    # near -d where z is much larger than sqrt(d)
    far = log_t_tail(np.array([1e10, 1e11]), np.array([60.0, 60.0]))
    assert far[0] < -1000 and far[0] - far[1] == pytest.approx(60 * math.log(10), rel=1e-9)
    # And many degrees are nearly the normal distribution: log sf(40) = -804.608442
    assert log_t_tail(np.array([40.0]), np.array([1e9]))[0] == pytest.approx(-804.608442, abs=1e-2)
    both = log_t_tail(np.array([37.0, 37.5, 38.0, 38.5, 39.0]), np.full(5, 2000.0))
    assert (np.abs(np.diff(both, 2)) < 0.3).all()  # no jump where the computation changes


def plain_candidates(pulls: Pulls, arms: list[int]) -> set[int]:
    """Candidates after all pulls, with the loop of the thesis."""
    ran_out, candidates = 0, set(arms)
    for n in range(1, len(pulls) + 1):
        own = {arm: [max(r, 0.0) for a, r in pulls[:n] if a == arm] for arm in arms}
        best = max(0.0, *(r for _, r in pulls[:n]))
        vary = {arm for arm in arms if len(own[arm]) < 2 or len(set(own[arm])) > 1}
        if not vary:
            candidates = set(arms)
            continue
        while True:
            candidates = set()
            for arm in vary:
                m = len(own[arm])
                limit = math.inf
                if m >= 2:
                    width = stats.t.isf(0.1 / 2**ran_out, m - 1) / math.sqrt(m)
                    limit = st.fmean(own[arm]) + width * st.stdev(own[arm])
                if limit > best:
                    candidates.add(arm)
            if candidates:
                break
            ran_out += 1
    return candidates


@settings(max_examples=40)
@given(searches)
def test_increasing_effort_by_plain_loops(pulls: Pulls) -> None:
    arms = working_arms(pulls)
    candidates = plain_candidates(pulls, arms)
    count = {arm: sum(a == arm for a, _ in pulls) for arm in candidates}
    fewest = {arm for arm in candidates if count[arm] == min(count.values())}
    assert set(choices(IncreasingEffort(**FREE), records_of(pulls), arms, 40)) == fewest


def test_increasing_effort_remembers_how_often_it_ran_out() -> None:
    # Arm 0 is far ahead and hardly varies, so effort is needed; then arm 2 begins to vary. At a
    # level of 90 % arm 2 alone would be a candidate; the effort made before keeps arm 1 in.
    calm = [(0, 0.9), (0, 0.9), (1, 0.48), (1, 0.52), (2, 0.5), (2, 0.5)]
    wild = [*calm, (2, 0.89), (2, 0.0)]
    last = effort([2, 2, 4], [0.9, 0.5, 0.4725], [0.0, 0.0004, 0.0997688], 0.9)
    assert last[2] == 1 and last[1] >= 2
    assert plain_candidates(wild, [0, 1, 2]) == {1, 2}
    assert set(choices(IncreasingEffort(**FREE), records_of(wild), [0, 1, 2])) == {1}
    # Running pulls count, and so does the best reward of an arm that is gone.
    pulls = [(0, 0.5), (0, 0.6), (1, 0.5), (1, 0.6), (2, 0.7), (2, 0.75)]
    policy = IncreasingEffort(**FREE)
    assert set(choices(policy, records_of(pulls), [0, 1])) == {0, 1}
    assert set(choices(policy, records_of(pulls, running=[0]), [0, 1])) == {1}
    # A better reward of arm 1 raises the effort of arm 0, which is not pulled any more.
    jump = [(0, 0.5), (0, 0.52), (0, 0.51), (1, 0.5), (1, 0.52), (1, 0.9), (1, 0.3)]
    assert plain_candidates(jump, [0, 1]) == {1}
    assert set(choices(policy, records_of(jump), [0, 1])) == {1}


# --- what they do -----------------------------------------------------------------------------


def share_of_the_first(policy: Policy, seed: int, scale: float = 1.0) -> float:
    """Part of 150 pulls that arm 0 gets, with the best maximum, 0.9, and the worst mean, 0.65."""
    rng = np.random.default_rng(seed)
    pulls: Pulls = []
    for t in range(150):
        pick = policy.choose(range(4), records_of(pulls), Streams(seed), t)
        low, width = (0.4, 0.5) if pick == 0 else (0.7, 0.05)
        pulls.append((pick, 1 - scale * (1 - low - width * rng.random())))
    return sum(arm == 0 for arm, _ in pulls) / 150


def test_the_best_maximum_wins_over_the_better_mean() -> None:
    means = {
        type(policy): np.mean([share_of_the_first(policy, seed) for seed in range(3)])
        for policy in (MaxUCB(), EpsilonGreedy(), UCB1Tuned())
    }
    assert means[MaxUCB] > 0.5 > 0.3 > max(means[EpsilonGreedy], means[UCB1Tuned])
    # The bound has no unit, the published one has.
    small, published = (share_of_the_first(p, 0, 0.01) for p in (MaxUCB(), MaxUCB(scale="unit")))
    assert small == pytest.approx(share_of_the_first(MaxUCB(), 0)) and published < small


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (EpsilonGreedy, {"epsilon": 1.1}, "epsilon must be a number in"),
        (EpsilonGreedy, {"epsilon": NAN}, "epsilon must be a number in"),
        (DecreasingEpsilon, {"start": -0.1}, "start must be a number in"),
        (DecreasingEpsilon, {"end": 2.0}, "end must be a number in"),
        (DecreasingEpsilon, {"horizon": 0}, "horizon must be an integer >= 1"),
        (RandomArm, {"weights": []}, "positive entry"),
        (RandomArm, {"weights": [0.0, 0.0]}, "positive entry"),
        (RandomArm, {"weights": {0: 1.0, 3: -1.0}}, r"finite and >= 0, got \{3: -1.0\}"),
        (RandomArm, {"weights": [1.0, math.inf]}, "finite and >= 0"),
        (RandomArm, {"min_pulls": -1}, "min_pulls must be an integer >= 0"),
        (AlwaysBest, {"arm": -1}, "arm must be"),
        (UCB1, {"c": -1.0}, "c must be"),
        (MaxUCB, {"alpha": NAN}, "alpha must be"),
        (MaxUCB, {"scale": "log"}, "scale must be one of 'arms', 'unit'"),
        (MaxUCB, {"unit": "hours"}, "unit must be one of 'pulls', 'seconds', got 'hours'"),
        (TopTwoThompson, {"gamma": 1.5}, "gamma must be a number in"),
    ],
)
def test_wrong_arguments_are_refused(
    make: Callable[..., Policy], arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make(**arguments)
