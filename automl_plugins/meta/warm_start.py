"""Warm starts: how many suggestions of a memory a search begins with, and what comes after them.

Frameworks begin with n points that look at nothing, their start-up. Suggestions can be put before
it, into it or in its place:

===========  ===================  =====================================
mode         suggestions          then of the start-up
===========  ===================  =====================================
``add``      k                    all n points
``part``     k                    the n - k points that are left
``replace``  k, n unless given    none
===========  ===================  =====================================
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np
from ConfigSpace import ConfigurationSpace

from automl_plugins._arguments import check_choice, check_integer
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.designs.design import Design
from automl_plugins.meta.tasks import TaskDescription, describe_task, meta_feature_row, read_names
from automl_plugins.spaces.values import to_values
from automl_plugins.spaces.vector_space import VectorSpace

from . import designs
from .alignment import align
from .bundled_memories import bundled_among
from .coverage import note_coverage
from .designs import InitialDesign
from .memories import note_unknown
from .readings import read_runs
from .sources import Memory, names_of, open_memory, read_memory, tasks_of

logger = logging.getLogger(__name__)

WarmStart = Literal["add", "part", "replace"]
MODES: tuple[WarmStart, ...] = get_args(WarmStart)

#: Designs by name; ``opt`` needs the truth and is for benchmarks only.
DESIGNS: Mapping[str, InitialDesign] = {
    "diverse": designs.diverse,
    "portfolio": designs.portfolio,
    "knn": designs.knn,
    "delta": designs.delta,
    "top_k": designs.top_k,
    "bad_start": designs.bad_start,
}


AnyDesign = InitialDesign | Design | str


# --- how many -------------------------------------------------------------------------------


def n_suggestions(mode: str, n_default: int, k: int | None = None) -> int:
    """Number of suggestions for a start-up of ``n_default`` points.

    ``k`` is what the user wants; None takes all of the start-up to replace it, else half.
    """
    if mode not in MODES:
        raise ValueError(
            f"mode must be 'add' (suggestions, then the whole start-up), 'part' (suggestions take"
            f" its first places) or 'replace' (suggestions only), got {mode!r}."
        )
    if k is None:
        # At least one, also for a sampler without a start-up.
        return max(1, n_default if mode == "replace" else -(-n_default // 2))
    check_integer("The number of suggestions", k, 1)
    return k


def n_remaining(mode: str, n_suggested: int, n_default: int) -> int:
    """Number of points of the start-up after the suggestions."""
    if mode == "add":
        return n_default
    return max(0, n_default - n_suggested) if mode == "part" else 0


# --- what is suggested ----------------------------------------------------------------------


class Advice(NamedTuple):
    """What a memory suggests, and from what, unless it is a ready ``Design``."""

    design: Design
    dataset: MetaDataset | None = None  # the memory as the space sees it
    described: Mapping[str, float] | None = None  # meta-features of the new task


def advise(
    space: ConfigurationSpace,
    memory: Memory | None,
    *,
    k: int,
    X: Any = None,
    y: Any = None,
    task: TaskDescription = None,
    design: AnyDesign = designs.diverse,
    exclude: Collection[str] = (),
) -> Advice:
    """Suggest configurations from a memory.

    Args:
        space: The search space of the new task.
        memory: A ``MetaDataset``; a ``MetaStore``, its path or address; the name of a bundled
            memory; or records of tasks and searches of any framework that is installed, its
            objects, addresses, files and folders: one, several, or by name of the task, which
            those without a name need. Not needed for a ready ``Design``.
        k: Number of suggestions.
        X: The data of the new task, of which meta-features are computed if the memory has any.
        y: Its target.
        task: Its meta-features, if X is not given. Without both all known tasks count alike.
        design: A design, its name, or the ``Design`` that one has returned, whose configurations
            are then fitted to the space.
        exclude: Names of tasks to leave out, such as the new one itself if its runs go to the same
            store. A search that is continued then gets the same advice, unless others have
            recorded meanwhile.

    Returns:
        The design has at most k distinct configurations of the space; its notes say if there are
        fewer, what the space cannot use of the memory, and what meta-features are missing.

    Raises:
        TypeError: For a memory, design or k of the wrong type.
        ValueError: For k < 1, a memory without runs or that shares no hyperparameter with the
            space, an unknown design, X without y, or meta-features beside them.
    """
    check_integer("The number of suggestions", k, 1)
    exclude = read_names("exclude", exclude)
    function = design_of(design)
    if isinstance(function, Design):
        found = fit_design(function, space)
        found = replace(found, suggestions=found.suggestions[:k])
        return Advice(_add_notes(found, k, []))
    records = read_memory(memory)
    dataset = open_memory(records, space, exclude=exclude)
    known = dataset.meta_feature_names()
    described = describe_task(task, X, y, wanted=bool(known)) or {}
    found = function(space, dataset, described, k)
    if not isinstance(found, Design):
        raise TypeError(f"A design must return a Design, {design!r} returned {found!r}.")
    notes: list[str] = []
    n = int(np.isfinite(meta_feature_row(described, known)).sum())
    # If it has none at all, the design itself says so.
    if 0 < n < len(known) / 2:
        notes.append(
            f"The task has {n} of the memory's {len(known)} meta-features: is it of the same"
            " kind, and described in the same way?"
        )
    for note in note_coverage(dataset.coverage, bundled_among(tasks_of(records))):
        notes.append(note.text)
        if note.is_warning:
            logger.warning(note.text)
    notes += note_unknown("exclude", exclude, names_of(records))
    return Advice(_add_notes(found, k, notes), dataset, described)


def _add_notes(found: Design, k: int, notes: list[str]) -> Design:
    """The design with further notes, which are logged with it."""
    if len(found) < k:
        notes.append(f"{k} suggestions were asked for, there are {len(found)}.")
    found = replace(found, notes=(*found.notes, *notes))
    logger.info("%s", found)
    return found


def design_of(design: AnyDesign) -> InitialDesign | Design:
    """The design of that name; a design itself is returned as it is."""
    if isinstance(design, str):
        check_choice("design", design, list(DESIGNS))
        return DESIGNS[design]
    if not isinstance(design, Design) and not callable(design):
        raise TypeError(
            f"design must be one of {', '.join(DESIGNS)}, a function design(space, memory, task,"
            f" k), or a Design, got {design!r}."
        )
    return design


def name_of(design: AnyDesign) -> str:
    """Name of a design."""
    if isinstance(design, Design):
        return design.method
    while isinstance(design, partial):
        design = cast("AnyDesign", design.func)
    return design if isinstance(design, str) else getattr(design, "__name__", repr(design))


def fit_design(design: Design, space: ConfigurationSpace) -> Design:
    """A design fitted to a search space (``align``), none twice; ValueError if nothing is left."""
    vectors = VectorSpace(space)
    reading = read_runs(vectors, design.configurations)
    rows, keep, coverage, _ = align(vectors, reading, design.method)
    if not coverage.shared or not keep.any():
        raise ValueError(
            f"The design has nothing for this search space ({coverage}), whose hyperparameters are"
            f" {', '.join(vectors.names)}."
        )
    kept = np.flatnonzero(keep)
    _, first = np.unique(vectors.keys(rows[kept]), return_index=True)
    kept = kept[np.sort(first)]  # best first, as they came, not in the order of their hashes
    suggestions = tuple(
        replace(design.suggestions[i], vector=rows[i], configuration=values)
        for i, values in zip(kept.tolist(), to_values(space, rows[kept]), strict=True)
    )
    notes = design.notes
    moved = coverage.n_clipped or coverage.rounded
    if coverage.n_dropped or moved or coverage.imputed or coverage.ignored:
        notes = (*notes, f"Fitted to the search space: {coverage}.")
    return replace(design, suggestions=suggestions, notes=notes)
