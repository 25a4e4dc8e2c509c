"""From searches and the objects of frameworks to a tidy frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from automl_plugins.formats import join_names
from automl_plugins.frameworks import searches_of
from automl_plugins.records.search import Search, search_frame

if TYPE_CHECKING:
    import pandas as pd

#: (task, method) or (task, method, seed)
Label = tuple[Any, ...]


def searches_frame(
    data: Mapping[Label, Any] | Iterable[Any], label: Callable[[Any], Label] | None = None
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """A tidy frame of searches, and sentences on what was left out of it.

    Args:
        data: ``Search`` objects or objects of a framework, such as Optuna studies: a sequence of
            them, or a mapping from (task, method) or (task, method, seed) to them.
        label: Gives (task, method) or (task, method, seed) of an object in a sequence; without it
            the searches keep the labels that the framework knows. Searches that get the same
            task and method but no seed are numbered in their order.

    Raises:
        ValueError: For a label that is no such tuple, two searches with the same labels, or none
            with a finished trial.
        TypeError: If an object belongs to no framework that is known.
    """
    searches, notes = _label_searches(data, label)
    places = Counter(map(_place, searches))
    if twice := [place for place, count in places.items() if count > 1]:
        raise ValueError(
            f"Several searches have the same task, method and seed: {'; '.join(twice[:3])}. Name"
            " them by label=... or by a mapping {(task, method, seed): search}."
        )
    notes += _left_out_notes(searches)
    if empty := [_place(search) for search in searches if not len(search.trials)]:
        notes.append(f"Left out, since they have no finished trial: {'; '.join(empty)}.")
    if len(empty) == len(searches):
        raise ValueError("There are no searches with finished trials.")
    return search_frame(s for s in searches if len(s.trials)), tuple(notes)


def _label_searches(
    data: Mapping[Label, Any] | Iterable[Any], label: Callable[[Any], Label] | None
) -> tuple[list[Search], list[str]]:
    searches: list[Search] = []
    unseeded: dict[Label, list[int]] = {}
    for name, thing in _with_labels(data, label):
        found = _read_searches(thing, name)
        if len(name) == 2:
            positions = range(len(searches), len(searches) + len(found))
            unseeded.setdefault(name, []).extend(positions)
        searches += found
    numbered = []
    for (task, method), members in unseeded.items():
        if len({searches[i].seed for i in members}) < len(members):
            for seed, i in enumerate(members):
                searches[i] = replace(searches[i], seed=seed)
            numbered.append(f"{method} on {task} ({len(members)})")
    if not numbered:
        return searches, []
    return searches, [f"Without seeds, so numbered in the order given: {join_names(numbered)}."]


def _with_labels(
    data: Mapping[Label, Any] | Iterable[Any], label: Callable[[Any], Label] | None
) -> list[tuple[Label, Any]]:
    """Each object with its label, () where it has none."""
    if isinstance(data, Mapping):
        if label is not None:
            raise ValueError("label names the objects of a sequence; a mapping has names already.")
        return [(_check_label(name), thing) for name, thing in data.items()]
    things = data if isinstance(data, Iterable) else [data]
    return [(_check_label(label(thing)) if label else (), thing) for thing in things]


def _check_label(name: Label) -> Label:
    if not isinstance(name, tuple) or len(name) not in (2, 3):
        raise ValueError(f"A label is (task, method) or (task, method, seed), got {name!r}.")
    return name


def _read_searches(thing: Any, name: Label) -> list[Search]:
    labels = dict(zip(("table", "method", "seed"), name, strict=False))
    if isinstance(thing, Search):
        return [replace(thing, **labels)]
    return searches_of(thing, **{"table": None, "method": None, "seed": None, **labels})


def _left_out_notes(searches: Iterable[Search]) -> list[str]:
    """What readers left out, each sentence once, with the searches it is about."""
    about: dict[str, list[str]] = {}
    for search in searches:
        for sentence in search.left_out:
            about.setdefault(sentence, []).append(_place(search))
    return [f"{'; '.join(places)}: {sentence}" for sentence, places in about.items()]


def _place(search: Search) -> str:
    return join_names((search.table, search.method, f"seed {search.seed}"))
