"""What every arm policy keeps to, whatever its rule: guarantees, failures, purity, labels."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from effort import count_calls
from hypothesis import given, settings
from hypothesis import strategies as some

from automl_plugins.bandits import (
    UCB1,
    AlwaysBest,
    ArmRecords,
    DecreasingEpsilon,
    EpsilonGreedy,
    IncreasingEffort,
    MaxUCB,
    Policy,
    RandomArm,
    Thompson,
    TopTwoThompson,
    UCB1Tuned,
)
from automl_plugins.records.trial import Status
from automl_plugins.streams import Streams

Make = Callable[..., Policy]

MAKES: dict[str, Make] = {
    "EpsilonGreedy": EpsilonGreedy,
    "DecreasingEpsilon": DecreasingEpsilon,
    "RandomArm": RandomArm,
    "RandomArm, weighted": lambda **a: RandomArm(weights=2.0 ** np.arange(50), **a),
    "AlwaysBest": AlwaysBest,
    "AlwaysBest, one": lambda **a: AlwaysBest(arm=3, **a),
    "UCB1": UCB1,
    "UCB1Tuned": UCB1Tuned,
    "MaxUCB": MaxUCB,
    "MaxUCB, published": lambda **a: MaxUCB(scale="unit", **a),
    "Thompson": Thompson,
    "TopTwoThompson": TopTwoThompson,
    "IncreasingEffort": IncreasingEffort,
}
every_policy = pytest.mark.parametrize("make", MAKES.values(), ids=MAKES.keys())


def some_records(seed: int, arms: Sequence[int], n: int = 40) -> ArmRecords:
    """Records of all kinds: rewards with ties, failures, pruned pulls, at the end running ones."""
    rng = np.random.default_rng(seed)
    arm = rng.choice(arms, size=n)
    status = rng.choice([Status.COMPLETE, Status.PRUNED, Status.FAILED], p=[0.8, 0.1, 0.1], size=n)
    status[n - rng.integers(4) :] = Status.RUNNING
    rewards = np.round(rng.random(n), 1)
    rewards[(status == Status.FAILED) | (status == Status.RUNNING)] = np.nan
    rewards[(status == Status.PRUNED) & (rng.random(n) < 0.5)] = np.nan
    return ArmRecords.of(arm, rewards, status=status)


class Search:
    """Pulls of one search; results come back ``workers`` - 1 pulls later."""

    def __init__(self, reward: Callable[[int, int], float], workers: int = 1) -> None:
        self.reward, self.workers = reward, workers
        self.pulls: list[int] = []

    def records(self) -> ArmRecords:
        n = len(self.pulls)
        running = min(self.workers - 1, n)
        rewards = [self.reward(arm, i) for i, arm in enumerate(self.pulls[: n - running])]
        status = [Status.FAILED if np.isnan(r) else Status.COMPLETE for r in rewards]
        return ArmRecords.of(
            self.pulls,
            rewards + [float("nan")] * running,
            status=status + [Status.RUNNING] * running,
        )

    def run(self, policy: Policy, arms: Sequence[int], n: int, seed: int = 0) -> None:
        for _ in range(n):
            arm = policy.choose(arms, self.records(), Streams(seed), len(self.pulls))
            assert arm in arms and type(arm) is int
            self.pulls.append(arm)


@every_policy
@pytest.mark.parametrize(("k", "workers"), [(2, 1), (7, 5)])
def test_nobody_starves(make: Make, k: int, workers: int) -> None:
    # Arm 0 always has the best reward and the others the worst
    search = Search(lambda arm, i: 1.0 if arm == 0 else 0.001 * (i % 7), workers)
    search.run(make(), range(k), 100)
    for t in range(1, 101):
        pulls = np.bincount(search.pulls[:t], minlength=k)
        assert t < 2 * k or pulls.min() >= max(2, t / (4 * k)), t
        assert t > k or pulls.max() == 1  # the first k pulls are one of each
    # Running pulls count: eight workers ask before anything has finished.
    search = Search(lambda arm, i: 0.5, workers=100)
    search.run(make(), range(4), 8)
    assert np.bincount(search.pulls).tolist() == [2, 2, 2, 2]


@every_policy
def test_guarantees_can_be_chosen(make: Make) -> None:
    for min_pulls, min_share in ((5, 0.0), (1, 1.0), (3, 0.6)):

        def due(t: int, share: float = min_share) -> float:
            # All arms cannot have an equal share of a number that four does not divide.
            return t // 4 if share == 1.0 else share * t / 4 - 1e-9

        search = Search(lambda arm, i: 1.0 if arm == 3 else 0.001 * (i % 7))
        search.run(make(min_pulls=min_pulls, min_share=min_share), range(4), 80)
        for t in range(4 * min_pulls, 81):
            pulls = np.bincount(search.pulls[:t], minlength=4)
            assert pulls.min() >= max(min_pulls, due(t))
    for wrong in ({"min_pulls": -1}, {"min_share": -0.1}, {"min_share": 1.1}):
        with pytest.raises(ValueError, match="min_"):
            make(**wrong)


@every_policy
@settings(max_examples=25)
@given(
    some.integers(0, 2**32 - 1), some.sets(some.integers(0, 9), min_size=1), some.integers(0, 60)
)
def test_it_chooses_one_of_the_arms(make: Make, seed: int, arms: set[int], n: int) -> None:
    # Arms with gaps in their numbers, arms without records, records of arms that are closed
    records = some_records(seed, range(12), n)
    for free in ({}, {"min_pulls": 1, "min_share": 0.0}):
        arm = make(**free).choose(list(arms), records, Streams(seed), n)
        assert arm in arms and type(arm) is int


@every_policy
def test_arms_far_apart_and_one_alone(make: Make) -> None:
    search = Search(lambda arm, i: (arm % 10) / 10)
    search.run(make(), [41, 3, 17], 30)
    assert set(search.pulls) == {41, 3, 17}
    for policy in (make(), make(min_pulls=1, min_share=0.0)):
        assert policy.choose([17], search.records(), Streams(0), 30) == 17
        assert policy.choose([40], search.records(), Streams(0), 30) == 40
    with pytest.raises(ValueError, match="no arm"):
        make().choose([], search.records(), Streams(0), 30)


@every_policy
def test_an_arm_that_fails_three_times_is_given_up(make: Make) -> None:
    nan = float("nan")
    search = Search(lambda arm, i: nan if arm in (1, 3) else 0.5 + 0.01 * (i % 5))
    search.run(make(), range(4), 100)
    pulls = np.bincount(search.pulls, minlength=4)
    assert pulls[[1, 3]].max() <= 3
    assert pulls[[0, 2]].sum() >= 94
    assert pulls[[0, 2]].min() >= 12  # a quarter of an equal share of two arms
    # A success keeps an arm in
    search = Search(lambda arm, i: nan if arm == 1 and i > 4 else 0.5)
    search.run(make(), range(2), 60)
    assert np.bincount(search.pulls)[1] >= 7
    # If all fail the run continues
    search = Search(lambda arm, i: nan)
    search.run(make(), range(4), 60)
    assert np.bincount(search.pulls, minlength=4).min() >= 60 / 16


@every_policy
def test_what_was_asked_before_changes_nothing(make: Make) -> None:
    free = {"min_pulls": 1, "min_share": 0.0}
    busy = make(**free)
    np.random.seed(0)  # noqa: NPY002
    state: Any = np.random.get_state()  # noqa: NPY002
    for seed in range(10):
        records = some_records(seed, range(5))
        expected = make(**free).choose(range(5), records, Streams(seed), 7)
        other = some_records(seed + 100, range(5), 60)
        prefix = ArmRecords.of(records.arm[:9], records.reward[:9], status=records.status[:9])
        for k in (7, 8):
            busy.choose(range(5), other, Streams(seed), k)
            busy.choose([4, 2], records, Streams(seed + 1), k)
            busy.choose(range(5), prefix, Streams(seed), k)
        assert busy.choose(range(5), records, Streams(seed), 7) == expected
        copy = pickle.loads(pickle.dumps(busy))
        assert copy.choose([3, 1, 0, 4, 2], records, Streams(seed), 7) == expected
    after: Any = np.random.get_state()  # noqa: NPY002
    np.testing.assert_array_equal(after[1], state[1])


@pytest.mark.parametrize("name", sorted(set(MAKES) - {"RandomArm, weighted", "AlwaysBest, one"}))
def test_labels_do_not_matter(name: str) -> None:
    free = {"min_pulls": 1, "min_share": 0.0}
    records = some_records(0, range(5))
    new = np.array([3, 0, 4, 1, 2])
    renamed = ArmRecords.of(new[records.arm], records.reward, status=records.status)
    n, counts = 60, np.zeros((2, 5))
    for k in range(n):
        counts[0, MAKES[name](**free).choose(range(5), records, Streams(0), k)] += 1
        counts[1, MAKES[name](**free).choose(range(5), renamed, Streams(1), k)] += 1
    # 4.5 standard deviations of a difference of two shares
    assert np.abs(counts[0] - counts[1][new]).max() < 4.5 * np.sqrt(2 * n * 0.25)
    assert ((counts[0] == n) == (counts[1][new] == n)).all()


@every_policy
def test_choosing_does_not_go_through_the_records_one_by_one(make: Make) -> None:
    rng = np.random.default_rng(0)

    def calls(n: int) -> int:
        arm = np.arange(n) % 12
        records = ArmRecords.of(arm, rng.random(n), seconds=rng.random(n))
        policy = make()
        policy.choose(range(12), records, Streams(0), 0)
        return count_calls(lambda: policy.choose(range(12), records, Streams(0), n))

    assert calls(10_000) < 2 * calls(100)
