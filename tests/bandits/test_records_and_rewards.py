"""Records of pulls, their statistics, and losses as rewards."""

from __future__ import annotations

import math
from statistics import fmean, pvariance
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from automl_plugins.bandits.records import (
    ArmRecords,
    ArmStatistics,
    Pulls,
    RewardScale,
    loss_range,
)
from automl_plugins.records.trial import Status

NAN = math.nan


def test_statistics_by_hand() -> None:
    records = ArmRecords.of(
        [0, 0, 1, 0, 2],
        [0.5, 0.7, NAN, NAN, 0.2],
        seconds=[1.0, 2.0, 4.0, NAN, 8.0],
        status=[Status.COMPLETE, Status.COMPLETE, Status.FAILED, Status.RUNNING, Status.PRUNED],
    )
    s = ArmStatistics.from_records(records, 4)
    assert s.pulls.tolist() == [3, 1, 1, 0]
    assert s.scored.tolist() == [2, 1, 1, 0]
    assert s.failed.tolist() == [0, 1, 0, 0]
    np.testing.assert_allclose(s.mean, [0.6, 0, 0.2, 0])
    np.testing.assert_allclose(s.variance, [0.01, 0, 0, 0], atol=1e-12)
    assert s.best.tolist() == [0.7, -math.inf, 0.2, -math.inf]
    assert s.seconds.tolist() == [3.0, 4.0, 8.0, 0.0]


@given(st.lists(st.tuples(st.integers(0, 4), st.none() | st.floats(0, 1)), max_size=40))
def test_statistics_are_those_of_a_plain_loop(pulls: list[tuple[int, float | None]]) -> None:
    records = ArmRecords.of([a for a, _ in pulls], [NAN if r is None else r for _, r in pulls])
    s = ArmStatistics.from_records(records, 5)
    for arm in range(5):
        own = [r for a, r in pulls if a == arm]
        scores = [0.0 if r is None else r for r in own]
        assert s.pulls[arm] == s.scored[arm] == len(own)
        assert s.failed[arm] == own.count(None)
        assert s.mean[arm] == pytest.approx(fmean(scores) if scores else 0.0)
        assert s.variance[arm] == pytest.approx(pvariance(scores) if scores else 0.0, abs=1e-9)
        assert s.best[arm] == max((r for r in own if r is not None), default=-math.inf)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"arm": [0, -1]}, "arm must be >= 0; row 1 has -1"),
        ({"reward": [0.5, 1.5]}, r"reward must lie in \[0, 1\]; row 1 has 1.5"),
        ({"reward": [-0.1, 0.5]}, "row 0"),
        ({"seconds": [1.0, -1.0]}, "seconds"),
        ({"seconds": [math.inf, 1.0]}, "seconds"),
        ({"status": [0, 7]}, "status must be a Status; row 1 has 7"),
        ({"reward": [NAN, 0.5]}, "reward of a COMPLETE pull must be known"),
        ({"reward": [0.5]}, r"reward must have shape \(2,\), got \(1,\)"),
    ],
)
def test_wrong_records_name_the_row(columns: dict[str, list[float]], message: str) -> None:
    given = {"arm": [0, 1], "reward": [0.5, 0.5], "seconds": [1.0, 1.0], "status": [0, 0]}
    kinds = {"arm": np.int64, "reward": np.float64, "seconds": np.float64, "status": np.int64}
    arrays: dict[str, Any] = {n: np.array((given | columns)[n], kinds[n]) for n in given}
    with pytest.raises(ValueError, match=message):
        ArmRecords(**arrays)


def test_losses_that_are_errors_or_scores_are_taken_as_they_are() -> None:
    np.testing.assert_allclose(RewardScale.of([0.2, 0.9]).rewards([0.2, 0.9]), [0.8, 0.1])
    np.testing.assert_allclose(RewardScale.of([-0.2, -0.9]).rewards([-0.2, -0.9]), [0.2, 0.9])
    assert "1 - loss" in RewardScale.of([0.2, 0.9]).reason
    assert RewardScale.of([]).rewards([0.25]).tolist() == [0.75]


def test_scores_that_are_all_0_are_the_worst() -> None:
    """So are errors that are all 0 the best: only the direction tells them apart."""
    scale = RewardScale.of([-0.0, -0.0], maximize=True)
    assert scale.rewards([-0.0, -0.25]).tolist() == [0.0, 0.25]
    assert "the reward is the score" in scale.describe(maximize=True)
    assert RewardScale.of([0.0, 0.0]).rewards([0.0, 0.25]).tolist() == [1.0, 0.75]
    # Negated errors are maximised, too.
    assert RewardScale.of([0.0, 0.5], maximize=True).rewards([0.5]).tolist() == [0.5]


def test_other_losses_are_rescaled_and_one_diverged_run_does_not_hide_the_rest() -> None:
    scale = RewardScale.of([2.0, 4.0, 6.0])
    np.testing.assert_allclose(scale.rewards([2.0, 4.0, 6.0]), [1.0, 0.5, 0.0])
    assert "6 counts as reward 0 and 2 as 1" in scale.describe()
    zero = RewardScale.of([0.0, -1.0, -2.0]).describe(maximize=True)
    assert zero.endswith(": 0 counts as reward 0 and 2 as 1")  # not -0
    # best 2, median 4: what is worse than 2 + 4 (4 - 2) = 10 counts as 10
    cut = RewardScale.of([2.0, 3.0, 4.0, 5.0, 1e30])
    np.testing.assert_allclose(cut.rewards([2.0, 6.0, 10.0, 1e30]), [1.0, 0.5, 0.0, 0.0])


def test_the_largest_losses_are_rescaled_like_others() -> None:
    losses = [1e308, -1e308, 3.0]
    assert RewardScale.of(losses).rewards(losses).tolist() == [0.0, 1.0, 0.5]


def test_equal_losses_are_all_good() -> None:
    assert RewardScale.of([7.0, 7.0]).rewards([7.0, math.inf]).tolist() == [1.0, 0.0]
    assert math.isnan(RewardScale.of([7.0, 7.0]).rewards([7.0, NAN])[1])
    said = "values lie outside [0, 1]: all are 7 so far, which counts as reward 1"
    assert RewardScale.of([-7.0, -7.0]).describe(maximize=True) == said
    pulls = Pulls.from_losses([0], [7.0], seconds=[NAN], status=[Status.COMPLETE])
    assert not pulls.rescaled  # there is nothing to scale by yet


def test_a_given_range_overrides() -> None:
    scale = RewardScale.of([0.2, 0.9], reward_range=(0.0, 0.5))
    np.testing.assert_allclose(scale.rewards([0.0, 0.25, 0.9, -1.0]), [1.0, 0.5, 0.0, 1.0])


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=20))
def test_rewards_keep_the_order_and_stay_in_range(losses: list[float]) -> None:
    rewards = RewardScale.of(losses).rewards(losses)
    known = ~np.isnan(losses)
    assert (np.isnan(rewards) == ~known).all()
    assert ((rewards[known] >= 0) & (rewards[known] <= 1)).all()
    order = np.argsort(np.array(losses)[known], kind="stable")
    assert (np.diff(rewards[known][order]) <= 1e-12).all()


def test_pulls_keep_infeasible_and_infinite_losses_off_the_scale() -> None:
    pulls = Pulls.from_losses(
        [0, 1, 1, 0, 2],
        [2.0, 6.0, math.inf, 900.0, NAN],
        seconds=[NAN] * 5,
        status=[Status.COMPLETE] * 4 + [Status.FAILED],
        infeasible=np.array([False, False, False, True, True]),
    )
    np.testing.assert_array_equal(pulls.records.reward, [1.0, 0.0, 0.0, 0.0, NAN])
    np.testing.assert_array_equal(pulls.losses, [2.0, 6.0, math.inf, NAN, NAN])  # none is the best
    assert (pulls.scale.best, pulls.scale.worst, pulls.rescaled) == (2.0, 6.0, True)
    assert pulls.given_up() == set()
    failed = Pulls.from_losses(
        [0, 1, 1, 1], [0.5, NAN, NAN, NAN], seconds=[NAN] * 4,
        status=[Status.COMPLETE] + [Status.FAILED] * 3,
    )  # fmt: skip
    assert failed.given_up() == {1} and not failed.rescaled


def test_reward_ranges_come_in_either_order() -> None:
    assert loss_range(None) is None
    assert loss_range((0.2, 0.9)) == loss_range((0.9, 0.2)) == (0.2, 0.9)
    assert loss_range((0.2, 0.9), maximize=True) == (-0.9, -0.2)
    for wrong in ((1, 1), (0, math.inf), (0, 1, 2), "ab", 3):
        with pytest.raises(ValueError, match="two different finite values"):
            loss_range(wrong)  # type: ignore[arg-type]


def test_what_is_longer_than_any_duration_is_unknown() -> None:
    """Sums of such seconds would be infinite, and differences of sums no number."""
    records = ArmRecords.of([0, 0, 1], [0.5, 0.4, 0.3], seconds=[1e308, 1e308, 2.0])
    np.testing.assert_array_equal(records.seconds, [NAN, NAN, 2.0])
