"""Successive halving and Hyperband: the paper's table, budgets, promotion, and whole runs."""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from automl_plugins.bandits.successive_halving import (
    Evaluation,
    Hyperband,
    Rung,
    SuccessiveHalving,
    best,
    promote,
    promotions,
)

# Schedules


def test_table_1_of_the_paper() -> None:
    n = 36
    assert SuccessiveHalving.of_budget(n, 0).rungs == (Rung(n, 1.0),)
    assert SuccessiveHalving.of_budget(n, 1).rungs == (Rung(54, 1 / 3), Rung(18, 1.0))
    explore = SuccessiveHalving.of_budget(n, 2)
    assert explore.rungs == (Rung(108, 1 / 9), Rung(36, 1 / 3), Rung(12, 1.0))
    assert explore == SuccessiveHalving(108, r_min=1 / 9)
    # The least resource is never undercut.
    assert [r.resource for r in SuccessiveHalving(9, r_min=0.1).rungs] == [1 / 9, 1 / 3, 1.0]


def test_budgets_of_the_paper() -> None:
    budgets = [SuccessiveHalving.of_budget(33, s).budget for s in (0, 1, 2)]
    assert budgets == pytest.approx([33, 32 + 1 / 3, 33])
    assert Hyperband(33).budget == pytest.approx(98 + 1 / 3)
    assert Hyperband(36).budget == pytest.approx(3 * 36)
    assert [b.n for b in Hyperband(33).brackets] == [99, 49, 33]


@given(st.integers(3, 12_000))
def test_hyperband_lacks_four_thirds_of_an_evaluation_at_most(n: int) -> None:
    missing = 3 * n - Hyperband(n).budget
    assert -1e-9 < missing < 4 / 3 + 1e-9
    assert n % 6 or missing < 1e-9


@given(st.integers(3, 12_000), st.sampled_from([0, 1, 2]))
def test_budgets_are_within_one_evaluation_for_all_others(n: int, s: int) -> None:
    schedule = SuccessiveHalving.of_budget(n, s)
    assert n - 1 <= schedule.budget <= n + 1e-9
    exact = sum(Fraction(rung.n, 3 ** (s - i)) for i, rung in enumerate(schedule.rungs))
    assert schedule.budget == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("eta", [2, 3, 4, 7, 10])
def test_number_of_promotions_has_no_rounding(eta: int) -> None:
    for s in range(13):
        assert promotions(1 / eta**s, eta) == promotions(float(eta) ** -s, eta) == s
        assert promotions(0.999 / eta**s, eta) == s
        assert promotions(min(1.0, 1.001 / eta**s), eta) == max(s - 1, 0)


@given(st.integers(2, 5), st.integers(0, 4), st.integers(0, 1_000))
def test_rungs(eta: int, s: int, more: int) -> None:
    schedule = SuccessiveHalving(eta**s + more, r_min=1 / eta**s, eta=eta)
    rungs = schedule.rungs
    assert len(rungs) == s + 1 and rungs[0].n == schedule.n and rungs[-1].resource == 1.0
    assert all(b.n == a.n // eta >= 1 for a, b in itertools.pairwise(rungs))
    assert [r.resource * eta ** (s - i) for i, r in enumerate(rungs)] == pytest.approx(
        [1] * (s + 1)
    )


@given(st.integers(2, 5), st.integers(0, 3), st.integers(0, 200))
def test_hyperband_is_its_brackets(eta: int, s: int, more: int) -> None:
    band = Hyperband(s + 1 + more, r_min=1 / eta**s, eta=eta)
    assert [len(b.rungs) for b in band.brackets] == list(range(s + 1, 0, -1))
    assert band.budget == pytest.approx(sum(b.budget for b in band.brackets))
    assert band.budget <= (s + 1) * band.n + 1e-9


# Promotion


def test_promotion_by_hand() -> None:
    losses = [0.3, math.nan, 0.1, math.inf, 0.3, -math.inf]
    assert promote(losses, 6).tolist() == [5, 2, 0, 4, 3, 1]
    assert promote(losses, 3).tolist() == [5, 2, 0] and promote([], 2).tolist() == []


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, math.inf, math.nan])), st.integers(0, 9))
def test_promotion_is_a_stable_sort(losses: list[float], keep: int) -> None:
    key = [(math.isnan(x), 0.0 if math.isnan(x) else x) for x in losses]
    assert promote(losses, keep).tolist() == sorted(range(len(losses)), key=key.__getitem__)[:keep]


# Runs


def test_a_run_by_hand() -> None:
    calls: list[tuple[int, float]] = []

    def loss(x: int, resource: float) -> float:
        calls.append((x, resource))
        return x if resource == 1.0 else -x

    results = SuccessiveHalving(7, r_min=1 / 4, eta=2).run(lambda i: 10 * i, loss)
    assert calls == [
        *((x, 1 / 4) for x in range(0, 70, 10)),
        *((x, 1 / 2) for x in (60, 50, 40)),
        (60, 1.0),
    ]
    assert results[-1] == Evaluation(6, 60, 0, 2, 1.0, 60.0)
    assert [(e.number, e.rung) for e in results[7:]] == [(6, 1), (5, 1), (4, 1), (6, 2)]
    assert best(results).configuration == 60


def test_every_bracket_draws_its_own_configurations() -> None:
    band = Hyperband(6)
    asked: list[int] = []

    def sample(i: int) -> float:
        asked.append(i)
        return (7 * i % 36) / 36

    results = band.run(sample, lambda x, r: abs(x - 0.5) + 0.01 / r)
    assert asked == list(range(18 + 9 + 6))
    assert sum(e.resource for e in results) == pytest.approx(band.budget)
    for b, bracket in enumerate(band.brackets):
        for r, rung in enumerate(bracket.rungs):
            found = [e for e in results if (e.bracket, e.rung) == (b, r)]
            assert len(found) == rung.n
            assert {e.resource for e in found} == {rung.resource}
    full = [e.loss for e in results if e.resource == 1.0]
    assert best(results).loss == min(full)


def test_failures() -> None:
    def loss(x: int, resource: float) -> float:
        if x == 0:
            raise MemoryError("too large")
        return math.nan if x < 7 else 1 / x

    schedule = SuccessiveHalving(9, r_min=1 / 3)
    with pytest.raises(MemoryError):
        schedule.run(lambda i: i, loss)
    results = schedule.run(lambda i: i, loss, catch=(MemoryError,))
    # Two have not failed and three are promoted: the first failed one goes with them.
    assert [e.number for e in results[9:]] == [8, 7, 0]
    assert best(results).number == 8
    with pytest.raises(ValueError, match="No evaluation has succeeded"):
        best(results[:7])
    with pytest.raises(ValueError, match="No evaluation has succeeded"):
        best([])
    diverged = schedule.run(lambda i: i, lambda x, r: math.inf if r == 1.0 else 1.0 + x)
    assert best(diverged).loss == 1.0  # none has succeeded with the full resource


def bowl(x: float, resource: float) -> float:
    return (x - 0.3) ** 2 / resource


def test_an_executor_changes_nothing() -> None:
    xs = np.random.default_rng(0).random(99).tolist()
    with ThreadPoolExecutor(3) as executor:
        parallel = Hyperband(12).run(xs.__getitem__, bowl, map=executor.map)
    assert parallel == Hyperband(12).run(xs.__getitem__, bowl)


# Bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 8}, "n must be at least 9 with r_min=0.111111 and eta=3"),
        ({"n": 0, "r_min": 1}, "n must be an integer >= 1"),
        ({"n": 33, "r_min": 0.0}, r"r_min must lie in \(0, 1\]"),
        ({"n": 33, "r_min": 1.5}, r"r_min must lie in \(0, 1\]"),
        ({"n": 33, "r_min": math.nan}, r"r_min must lie in \(0, 1\]"),
        ({"n": 33, "eta": 1}, "eta must be an integer >= 2"),
    ],
)
def test_bad_schedules(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SuccessiveHalving(**arguments)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Hyperband(2), "n must be at least 3"),
        (lambda: Hyperband(-33), "n must be an integer >= 1"),
        (lambda: SuccessiveHalving.of_budget(2, 2), "budget must be an integer >= 3"),
        (lambda: SuccessiveHalving.of_budget(33, -1), "s must be an integer >= 0"),
        (lambda: SuccessiveHalving.of_budget(33, 1, eta=0), "eta must be an integer >= 2"),
    ],
)
def test_bad_budgets(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_whole_numbers() -> None:
    assert SuccessiveHalving(np.int64(33), eta=np.int64(3)).rungs[0] == Rung(33, 1 / 9)  # type: ignore[arg-type]
    for bad in (33.0, True, "33"):
        with pytest.raises(TypeError, match="n must be an integer"):
            SuccessiveHalving(bad)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="n must be an integer"):
            Hyperband(bad)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="eta must be an integer"):
        Hyperband(33, eta=2.5)  # type: ignore[arg-type]
