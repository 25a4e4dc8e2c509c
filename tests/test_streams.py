"""Streams: the same place gives the same numbers, any other place gives others."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from automl_plugins.streams import Streams


def draw(streams: Streams, name: str, *index: int) -> tuple[int, ...]:
    return tuple(streams.generator(name, *index).integers(2**63, size=4).tolist())


def test_all_places_and_seeds_differ_and_equal_ones_give_equal_numbers() -> None:
    # [5] against [5, 0] is the collision of ``default_rng`` with a list of entropy.
    assert np.random.default_rng([5, 0]).random() == np.random.default_rng(5).random()
    seeds = (0, 1, 5, 7, 2**32, 2**32 + 7, 2**64, 2**200)
    names = ("", "a", "b", "candidates", "rows", "Rows", "ä")
    places = ((), (0,), (1,), (5,), (0, 0), (5, 0), (0, 5), (5, 0, 0), (2**31,), (2**32 - 1,))

    def everything() -> list[tuple[int, ...]]:
        return [
            draw(Streams(s), name, *index) for s in seeds for name in names for index in places
        ]

    drawn = everything()
    assert len(set(drawn)) == len(drawn)
    assert everything() == drawn


def test_a_generator_does_not_depend_on_what_was_drawn_before() -> None:
    streams = Streams(7)
    for place in (("a", 3), ("b", 2), ("b", 3)):
        streams.generator(*place).normal(size=1000)
    assert draw(streams, "b", 3) == draw(Streams(7), "b", 3)
    assert draw(pickle.loads(pickle.dumps(streams)), "b", 3) == draw(streams, "b", 3)


def test_neighbouring_streams_are_uncorrelated() -> None:
    streams = Streams(0)
    drawn = np.stack([streams.generator("candidates", k).normal(size=4000) for k in range(20)])
    correlations = np.asarray(np.corrcoef(drawn))[~np.eye(20, dtype=bool)]
    assert np.abs(correlations).max() < 4.5 / np.sqrt(4000)  # 190 pairs: 4.5 sigma is 1e-3
    first = np.array([streams.generator("candidates", k).random() for k in range(2000)])
    assert first.mean() == pytest.approx(0.5, abs=0.02)  # as is the first number of each
    assert np.asarray(np.corrcoef(first[:-1], first[1:]))[0, 1] == pytest.approx(0.0, abs=0.1)


def test_integers_are_seeds() -> None:
    drawn = [Streams(3).integer("surrogate", k) for k in range(500)]
    assert all(type(seed) is int and 0 <= seed < 2**31 for seed in drawn)
    assert len(set(drawn)) == 500


def test_equal_in_another_process() -> None:
    code = (
        "from automl_plugins.streams import Streams\n"
        "print(Streams(11).generator('candidates', 3).integers(2**63, size=4).tolist())"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "99"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.strip() == str(list(draw(Streams(11), "candidates", 3)))


def test_a_seed_is_drawn_and_can_be_used_again() -> None:
    streams = Streams()
    assert type(streams.seed) is int and streams.seed >= 0
    assert draw(Streams(streams.seed), "a") == draw(streams, "a")
    assert len({Streams().seed for _ in range(10)}) > 1
    for seed in (np.int64(3), np.uint8(3)):
        assert type(Streams(seed).seed) is int  # type: ignore[arg-type]
        assert draw(Streams(seed), "a") == draw(Streams(3), "a")  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [-1, np.int64(-5), -(2**70)])
def test_negative_seeds_are_refused(seed: Any) -> None:
    with pytest.raises(
        ValueError, match=rf"seed must be an integer >= 0, or None, got .*{int(seed)}"
    ):
        Streams(seed)


@pytest.mark.parametrize("seed", [1.0, "1", True, np.float64(1), np.bool_(True), [1], (1,)])
def test_other_seeds_are_refused(seed: Any) -> None:
    with pytest.raises(TypeError, match="seed must be an integer >= 0, or None, got"):
        Streams(seed)


@pytest.mark.parametrize("index", [-1, 2**32, 2**70, np.int64(-3)])
def test_indices_out_of_range_are_refused(index: Any) -> None:
    for place in ((index,), (0, index)):
        with pytest.raises(ValueError, match=rf"index must lie in \[0, 2\^32\), got {index}\."):
            Streams(0).integer("a", *place)
