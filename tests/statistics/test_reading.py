"""``compare`` of searches and of the objects of frameworks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import pytest

from automl_plugins.frameworks import TrialStatus
from automl_plugins.records.search import RecordedTrial, Search, search_frame
from automl_plugins.statistics import Comparison, compare, reading


def search(table: str, method: str, losses: Sequence[float], seed: int = 0) -> Search:
    trials = [RecordedTrial({"x": loss}, TrialStatus.COMPLETE, loss) for loss in losses]
    return Search(table, method, seed, trials)


SEARCHES = [
    search("t0", "A", [3.0, 1.0]),
    search("t0", "B", [5.0, 2.0]),
    search("t1", "A", [0.5, 0.25]),
    search("t1", "B", [1.0, 0.0]),
]


def noted(comparison: Comparison, *parts: str) -> bool:
    """Whether one note has all the parts."""
    return any(all(part in note for part in parts) for note in comparison.notes)


def assert_same(one: Comparison, other: Comparison) -> None:
    pd.testing.assert_frame_equal(one.budgets[0].scores, other.budgets[0].scores)
    pd.testing.assert_frame_equal(one.pairs, other.pairs)


# Searches


def test_a_sequence_of_searches_is_their_frame() -> None:
    expected = compare(search_frame(SEARCHES))
    assert_same(compare(SEARCHES), expected)
    assert_same(compare(iter(SEARCHES)), expected)
    assert compare(SEARCHES).notes == expected.notes


def test_a_mapping_names_searches() -> None:
    nameless = [replace(s, table="", method="") for s in SEARCHES]
    keys = [(s.table, s.method) for s in SEARCHES]
    assert_same(compare(dict(zip(keys, nameless, strict=True))), compare(SEARCHES))
    seeded = {(*key, 7): s for key, s in zip(keys, nameless, strict=True)}
    assert_same(compare(seeded), compare(SEARCHES))


def test_searches_without_seeds_are_numbered() -> None:
    twice = [*SEARCHES, search("t0", "A", [9.0, 9.0])]
    with pytest.raises(ValueError, match=r"same task, method and seed: t0, A, seed 0\. Name"):
        compare(twice)
    comparison = compare(twice, label=lambda s: (s.table, s.method))
    numbered = compare([*SEARCHES, search("t0", "A", [9.0, 9.0], seed=1)])
    assert_same(comparison, numbered)
    assert noted(comparison, "Without seeds, so numbered in the order given: A on t0 (2).")
    assert not noted(compare(SEARCHES, label=lambda s: (s.table, s.method)), "Without seeds")


def test_what_readers_left_out_is_noted_once() -> None:
    sentence = "1 running trial."
    searches = [replace(s, left_out=(sentence,)) for s in SEARCHES[:2]] + SEARCHES[2:]
    comparison = compare(searches)
    assert f"t0, A, seed 0; t0, B, seed 0: {sentence}" in comparison.notes


def test_a_search_without_trials_is_noted() -> None:
    comparison = compare([*SEARCHES, search("t0", "A", [], seed=1)])
    assert_same(comparison, compare(SEARCHES))
    assert noted(comparison, "no finished trial: t0, A, seed 1.")
    gap = compare([*SEARCHES[:3], search("t1", "B", [])])
    assert noted(gap, "no finished trial: t1, B, seed 0.")
    assert noted(gap, "no run of B: t1.")


def test_failed_and_pruned_trials_are_not_dropped() -> None:
    failed = RecordedTrial({}, TrialStatus.FAILED, math.nan)
    pruned = RecordedTrial({}, TrialStatus.PRUNED, -5.0)
    first = replace(SEARCHES[0], trials=[failed, pruned, *SEARCHES[0].trials])
    comparison = compare([first, *SEARCHES[1:]], budgets=[2, 4])
    assert comparison.at(2).scores.loc["t0", "A"] == 1.0
    assert comparison.at(4).scores.loc["t0", "A"] == 0.0
    assert noted(comparison, "2 of 10 evaluations have no complete and finite loss (A 2)")


@pytest.mark.parametrize("searches", [[], [search("t", "A", [])]])
def test_no_trials_at_all(searches: list[Search]) -> None:
    with pytest.raises(ValueError, match="no searches with finished trials"):
        compare(searches)


def test_illegal_labels() -> None:
    with pytest.raises(ValueError, match=r"A label is \(task, method\) .* got 't0'"):
        compare(SEARCHES, label=lambda s: s.table)
    with pytest.raises(ValueError, match="A label is"):
        compare({("t0",): SEARCHES[0]})
    with pytest.raises(ValueError, match="a mapping has names already"):
        compare({("t0", "A"): SEARCHES[0]}, label=lambda s: ("t0", "A"))
    with pytest.raises(ValueError, match="leave out higher_is_better"):
        compare(SEARCHES, higher_is_better=True)


# Objects of frameworks


@dataclass
class Study:
    """What only an adapter can read."""

    name: str
    losses: Sequence[float]


def searches_of(
    thing: Any, table: str | None = None, method: str | None = None, seed: int | None = None
) -> list[Search]:
    own_table, own_method = thing.name.split("/")
    return [search(table or own_table, method or own_method, thing.losses, seed or 0)]


STUDIES = [Study(f"{s.table}/{s.method}", [t.loss for t in s.trials]) for s in SEARCHES]


def test_studies_are_read_by_their_adapters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "searches_of", searches_of)
    expected = compare(SEARCHES)
    assert_same(compare(STUDIES), expected)
    keys = [(s.table, s.method) for s in SEARCHES]
    assert_same(compare(dict(zip(keys, STUDIES, strict=True))), expected)
    assert_same(compare([*SEARCHES[:2], *STUDIES[2:]]), expected)


def test_studies_get_the_labels_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "searches_of", searches_of)
    comparison = compare(STUDIES, label=lambda study: (study.name[:2], f"my {study.name[3:]}", 3))
    assert comparison.methods == ("my A", "my B")
    assert list(comparison.budgets[0].scores.index) == ["t0", "t1"]
    repeated = compare([*STUDIES, *STUDIES], label=lambda s: tuple(s.name.split("/")))
    assert noted(repeated, "Without seeds", "A on t0 (2), B on t0 (2), A on t1 (2)")


def test_an_unknown_object_is_refused() -> None:
    for data in (object(), [object()], 5):
        with pytest.raises(TypeError, match="Cannot read the searches"):
            compare(data)  # type: ignore[arg-type]
