"""Ranges that ConfigSpace would round: every value there and back, in order."""

from __future__ import annotations

import copy
import json
import math
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import UniformFloatHyperparameter, UniformIntegerHyperparameter
from hypothesis import given, settings
from hypothesis import strategies as st

from automl_plugins.meta.plain import parse_space, plain_space
from automl_plugins.spaces.ranges import (
    ExactFloat,
    ExactInteger,
    float_range,
    integer_range,
    multiples_on_a_log_scale,
    part_of,
)
from automl_plugins.spaces.scales import LogScale, Steps
from automl_plugins.spaces.values import to_values, to_vector
from automl_plugins.spaces.vector_space import VectorSpace

LARGEST = sys.float_info.max
ENDS = [0.0, 5e-324, 1e-310, 1e-20, 1e-14, 0.1, 1.0, 100.0, 1e15, 1e200, 1e300, LARGEST]
ends = st.sampled_from(ENDS + [-end for end in ENDS]) | st.floats(
    allow_nan=False, allow_infinity=False
)
near = st.integers(1, 40)
units = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=5)


def beyond(low: float, n: int) -> float:
    for _ in range(n):
        low = math.nextafter(low, math.inf)
    return low


@settings(max_examples=80, deadline=None)
@given(ends, ends | near, st.booleans(), units)
def test_floats_survive_and_keep_their_order(
    low: float, high: float | int, log: bool, units: list[float]
) -> None:
    if isinstance(high, int):
        high = beyond(low, high)
    low, high = min(low, high), max(low, high)
    if not low < high or math.isinf(high) or (log and low <= 0.0):
        return
    hyperparameter = float_range("x", low, high, log=log)
    vectors = np.sort(np.array([0.0, *units, 1.0]))
    values = hyperparameter.to_value(vectors)
    # What ConfigSpace may round away.
    below, above = (low, high) if log else (high / 2 - low / 2, high / 2 - low / 2)
    assert values.min() >= low - 1e-9 * below and values.max() - 1e-9 * above <= high
    assert (np.diff(values) >= 0).all()
    back = hyperparameter.to_value(hyperparameter.to_vector(values))
    np.testing.assert_allclose(back, values, rtol=1e-12 if log else 1e-15, atol=0 if log else
                               4e-16 * max(high / 2 - low / 2, 0.0))  # fmt: skip
    if isinstance(hyperparameter, ExactFloat):
        assert hyperparameter.lower == low and hyperparameter.upper == high
        span = 0.0 if log else 1e-15 * (high / 2 - low / 2)
        assert values[0] == pytest.approx(low, rel=1e-12, abs=span)
        assert values[-1] == pytest.approx(high, rel=1e-12, abs=span)


@pytest.mark.parametrize(
    ("low", "step"), [(0.0, 0.1), (1e5, 1e-3), (-1e7, 0.01), (1e9, 0.1), (1e12, 1e-3), (0.3, 1e-9)]
)
def test_every_step_has_its_own_place(low: float, step: float) -> None:
    steps = Steps(low, step, 301, is_integer=False)
    values = steps.to_value(np.linspace(0.0, 1.0, 301))
    np.testing.assert_array_equal(steps.index(values), np.arange(301))
    assert steps.legal_value(values).all() and not steps.legal_value(values + 0.4 * step).any()


@settings(max_examples=40, deadline=None)
@given(st.integers(-(2**62), 2**62) | st.sampled_from([0, 2**53 - 3, 10**18]), near, units)
def test_few_integers_and_floats_are_all_reached(low: int, n: int, units: list[float]) -> None:
    few = VectorSpace(
        ConfigurationSpace(space=[float_range("x", float(low), beyond(float(low), n))])
    )
    found = few.enumerate(100)
    assert found is not None and len(found) == n + 1
    values = few.space["x"].to_value(found[:, 0])
    assert [beyond(float(low), i) for i in range(n + 1)] == values.tolist()
    for start in (1, 0.5):  # each step leads to another value
        column = np.full(50, start if n > 1 else 1.0)
        moved, _ = few.neighbours(few.canonical(column[:, None]), np.random.default_rng(0))
        assert (moved != few.canonical(column[:, None])[0]).all()


@pytest.mark.parametrize(
    ("low", "high", "log"),
    [
        (-(2**62), 2**62, False),
        (1, 2**63 - 1, True),
        (0, 10**30, False),
        (10**18, 10**18 + 1000, False),
        (10**18, 10**18 + 1000, True),
        (10**15, 10**15 + 10, True),
    ],
)
def test_large_integers(low: int, high: int, log: bool) -> None:
    hyperparameter = integer_range("x", low, high, log=log)
    assert isinstance(hyperparameter, ExactInteger)
    space = VectorSpace(ConfigurationSpace(space=[hyperparameter]))
    drawn = space.sample(200, np.random.default_rng(0))
    values = [hyperparameter.to_value(v) for v in drawn[:, 0]]
    assert all(isinstance(v, int) and low <= v <= high and int(float(v)) == v for v in values)
    assert len(set(values)) >= min(8, high - low + 1)
    # Canonical: what is proposed again counts as seen.
    np.testing.assert_array_equal(space.keys(space.canonical(drawn)), space.keys(drawn))


@pytest.mark.parametrize("log", [False, True])
def test_integers_of_a_wide_range_are_kept(log: bool) -> None:
    space = ConfigurationSpace(space=[integer_range("x", 1, 2**60, log=log)])
    known = [1, 2, 5, 1000, 123456789, 2**53 - 1, 2**60]
    if log:  # whose large values differ in the last digits of their logarithms
        known = known[:5]
    whole: Any = space["x"]
    assert (whole.lower, whole.upper) == (1, 2**60)
    assert all(whole.legal_value(value) for value in known)
    found = to_values(space, np.array([to_vector(space, {"x": value}) for value in known]))
    assert [row["x"] for row in found] == known
    assert all(type(row["x"]) is int for row in found)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (1, 10**18),
        (-(10**18), 7),
        (-(2**53), 2**60),
        (-1, 2**53),
        (3, 10**30),
        (-(10**30), 10**30),
    ],
)
def test_what_has_a_vector_of_its_own_comes_back(low: int, high: int) -> None:
    whole: Any = integer_range("x", low, high)
    ends = np.array([whole.lower, whole.upper], dtype=np.float64)
    rng = np.random.default_rng(0)
    sizes = 2.0 ** rng.uniform(0.0, math.log2(high - low), 4000)
    values = np.unique(np.clip(np.rint([low + sizes, high - sizes]), *ends))
    vectors = whole.to_vector(values)
    assert whole.to_value(np.array([0.0, 1.0])).tolist() == ends.tolist()
    step = np.maximum(np.spacing(np.abs(values)), 1.0)
    below, above = (whole.to_vector(np.clip(values + s, *ends)) for s in (-step, step))
    alone = ((below < vectors) | (values == ends[0])) & ((vectors < above) | (values == ends[1]))
    assert alone.sum() > 900
    back = whole.to_value(vectors)
    np.testing.assert_array_equal(back[alone], values[alone])
    np.testing.assert_array_equal(whole.to_vector(back), vectors)


def test_large_integers_around_a_power_of_two_are_listed() -> None:
    few = VectorSpace(ConfigurationSpace(space=[integer_range("x", 2**60 - 256, 2**60 + 512)]))
    found = few.enumerate(100)
    assert found is not None
    values = [row["x"] for row in to_values(few.space, found)]
    assert values == [2**60 + i for i in (-256, -128, 0, 256, 512)]


def test_small_integers_of_a_wide_logarithmic_range_count_as_one_vector() -> None:
    space = VectorSpace(ConfigurationSpace(space=[integer_range("x", 1, 2**62, log=True)]))
    near_one = space.canonical(np.linspace(0.0, 0.009, 20)[:, None])
    assert len(np.unique(near_one)) == 1


def test_ordinary_ranges_are_those_of_configspace() -> None:
    assert type(float_range("x", 1e-5, 0.1, log=True)) is UniformFloatHyperparameter
    assert type(float_range("x", -3.0, 1e6)) is UniformFloatHyperparameter
    assert type(integer_range("x", 1, 10**6, log=True)) is UniformIntegerHyperparameter
    assert type(integer_range("x", 0, 2**53 - 1)) is UniformIntegerHyperparameter


@pytest.mark.parametrize("bad", [(1.0, 1.0, False), (0.0, 1.0, True), (0.0, math.inf, False)])
def test_what_is_no_range_says_so(bad: tuple[float, float, bool]) -> None:
    with pytest.raises(ValueError, match=r"'x'.*low < high"):
        float_range("x", bad[0], bad[1], log=bad[2])


def test_two_integers_that_floats_cannot_tell_apart() -> None:
    with pytest.raises(ValueError, match="no two integers"):
        integer_range("x", 10**18, 10**18 + 10)


def test_multiples_on_a_logarithmic_scale() -> None:
    found = multiples_on_a_log_scale("x", 2.0, 500.0, 16.0)
    unit = np.linspace(0.0, 1.0, 2001)
    values = found.to_value(unit)
    multiples = set(np.arange(16.0, 497.0, 16.0))
    assert set(values.tolist()) == {2.0} | multiples
    assert ((values == 16.0).mean()) > 5 * ((values == 480.0).mean())
    space = ConfigurationSpace(space=[found])
    (vector,) = VectorSpace(space).canonical(np.array([[0.43]]))
    np.testing.assert_array_equal(found.to_vector(found.to_value(vector)), vector)
    stored = parse_space(json.loads(json.dumps(plain_space(space))))
    np.testing.assert_array_equal(stored["x"].to_value(unit), values)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(20.0, 100.0, (32.0, 96.0)), (2.0, 40.0, (2.0, 32.0)), (400.0, 500.0, (400.0, 500.0))],
)
def test_a_part_of_multiples_begins_and_ends_with_one(
    low: float, high: float, expected: tuple[float, float]
) -> None:
    part = LogScale(2.0, 500.0, step=16.0).part(low, high)
    assert part is not None and (part.low, part.high) == expected


def test_exact_ranges_are_stored_and_copied() -> None:
    space = ConfigurationSpace(
        space=[
            float_range("x", 1e-14, 2e-14),
            integer_range("y", -(2**62), 2**62),
            integer_range("z", -(2**53) - 1, -(2**53) + 1834),  # no float is the low end
            integer_range("listed", 2**53 - 100, 2**53 + 200),
        ]
    )
    assert space["listed"].scale.listed  # type: ignore[attr-defined]
    units = np.linspace(0.0, 1.0, 11)
    stored = parse_space(json.loads(json.dumps(plain_space(space))))
    for other in (stored, copy.deepcopy(space), pickle.loads(pickle.dumps(space))):
        assert other == space
        for name in space:
            expected = space[name].to_value(units)
            np.testing.assert_array_equal(other[name].to_value(units), expected)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 13), (3, 10), (-4, 2)])
def test_quantiles_are_those_of_configspaces_integers(low: int, high: int) -> None:
    columns = []
    own = ExactInteger("x", Steps(low, 1, high - low + 1))
    for hyperparameter in (own, UniformIntegerHyperparameter("x", low, high)):
        space = ConfigurationSpace()
        space.add(hyperparameter)
        columns.append(VectorSpace(space))
    u = np.array([0.0, 0.1, 0.25, 0.5, 0.5 + 1e-9, 0.75, 1.0 - 1e-9])
    exact, rounded = (column.quantile(0, u) for column in columns)
    np.testing.assert_allclose(exact, rounded)


@pytest.mark.parametrize(
    ("whole", "low", "high", "default"),
    [
        (integer_range("x", -(2**62), 2**62), 0, 9, 2),
        (float_range("x", 1e-14, 1.0, log=True), 0.25, 1.0, 0.375),
    ],
)
def test_a_part_that_configspace_can_hold_keeps_its_default(
    whole: Any, low: float, high: float, default: float
) -> None:
    part = part_of(whole, low, high, default)
    assert type(part) is not type(whole) and part.default_value == default


@pytest.mark.parametrize(
    "make",
    [
        lambda: float_range("x", 1e-14, 1e-3, log=True, default=1e-5),
        lambda: integer_range("x", 0, 2**60, default=5),
        lambda: ExactFloat("x", Steps(0.0, 1e-4, 9, is_integer=False), default=3e-4),
        lambda: ExactFloat("x", LogScale(0.1, 100.0, step=0.1), log=True, default=0.3),
    ],
    ids=["floats", "integers", "steps", "multiples"],
)
def test_the_default_is_written(make: Callable[[], Any]) -> None:
    hyperparameter = make()
    space = ConfigurationSpace(space=[hyperparameter])
    written = json.loads(json.dumps(plain_space(space)))
    assert parse_space(written) == space
    default = parse_space(written)["x"].default_value
    assert (default, type(default)) == (hyperparameter.default_value, type(hyperparameter.lower))
