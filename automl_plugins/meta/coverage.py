"""How much of a memory a search space can use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from automl_plugins.spaces.values import kind_of, same

_MOST_NAMES = 10  # that a note lists


class MemoryMismatch(ValueError):
    """A memory of which a search can use nothing.

    Args:
        message: What is missing.
        final: Whether it stays so; False as long as the search space may still grow.
        expected: Whether this is normal, as for ``"auto"`` and a store that is still empty: then
            the search continues without the memory, and without a warning.

    Example::

        try:
            memory.aligned(other_space)
        except MemoryMismatch as error:
            print(error)
    """

    def __init__(self, message: str, *, final: bool = True, expected: bool = False) -> None:
        super().__init__(message)
        self.final = final
        self.expected = expected


class Beyond(NamedTuple):
    """Numbers of a whole memory, nearly all of which lie outside the range of a search."""

    n_outside: int
    n: int  # recorded
    n_at_end: int  # of those outside; the others are not known
    least: float
    most: float
    low: float  # of the search
    high: float


@dataclass(frozen=True)
class Coverage:
    """How much of a task's runs a search space can use.

    Attributes:
        task: Name of the task.
        n_runs: Runs that were recorded.
        n_kept: Runs that are used.
        n_clipped: Runs used with a value that was moved into its range.
        imputed: Runs used for which a hyperparameter had to be imputed, by name, also if a value
            was recorded.
        shared: Hyperparameters of both the runs and the space.
        ignored: Hyperparameters of the runs that the space does not have.
        clipped: Runs used with a value that was moved into its range, by hyperparameter.
        dropped: Runs left out for a value that the space does not have, by hyperparameter.
        n_partial: Runs left out because they were evaluated at a lower budget.
        converted: Runs used with a count for a fraction, or the reverse, by hyperparameter.
        n_unrelated: Runs left out that are of a branch which the space lacks, see ``align``.
        rounded: Runs used with a value between two of the space, moved to the nearer one, by name.
        unusable: Runs used with a recorded value that says nothing here, by name: it is imputed.
        beyond: Numbers of the memory, nearly all of which lie outside, by name; for some of the
            runs they are at the end of the range, for the others they are imputed.
        lacking: Runs used with a value of a hyperparameter that the space does not have, by name,
            where these values differ: one value for all makes no difference.

    Example::

        for coverage in memory.aligned(space).coverage:
            print(coverage.task, coverage.n_kept, coverage.imputed)
    """

    task: str
    n_runs: int
    n_kept: int
    n_clipped: int
    imputed: Mapping[str, int]
    shared: tuple[str, ...]
    ignored: tuple[str, ...]
    clipped: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    n_partial: int = 0
    converted: Mapping[str, int] = field(default_factory=dict)
    n_unrelated: int = 0
    rounded: Mapping[str, int] = field(default_factory=dict)
    unusable: Mapping[str, int] = field(default_factory=dict)
    beyond: Mapping[str, Beyond] = field(default_factory=dict)
    lacking: Mapping[str, int] = field(default_factory=dict)

    @property
    def n_dropped(self) -> int:
        """Number of runs that are not used."""
        return self.n_runs - self.n_kept

    def __str__(self) -> str:
        parts = [f"{self.task}: {self.n_kept} of {self.n_runs} runs"]
        if self.n_partial:
            parts.append(f"{self.n_partial} at a lower budget")
        if self.n_unrelated:
            parts.append(f"{self.n_unrelated} of another branch")
        for verb, counts in (
            ("dropped for", self.dropped),
            ("clipped", self.clipped),
            ("moved to the nearest value", self.rounded),
            ("imputed", self.imputed),
            ("converted between counts and fractions", self.converted),
        ):
            if counts:
                where = (f"{name} in {n}" for name, n in counts.items())
                parts.append(f"{verb} " + " and ".join(where))
        if self.ignored:
            parts.append("ignored " + " and ".join(self.ignored))
        return ", ".join(parts)


def count_varied(runs: Sequence[Mapping[str, Any]], names: Iterable[str]) -> dict[str, int]:
    """How many of the runs have a value, for each of ``names`` whose values differ."""
    found: dict[str, int] = {}
    for name in names:
        values = [run[name] for run in runs if name in run and kind_of(run[name]) != "missing"]
        # A fixed value is mostly the same object, which is quick to see.
        if any(value is not values[0] and not same(value, values[0]) for value in values):
            found[name] = len(values)
    return found


class Note(NamedTuple):
    """How the runs of several tasks fit a search space, in one point."""

    text: str
    is_warning: bool = False  # something may be a mistake of the user
    of_names: bool = False  # the space lacks hyperparameters, which a growing one may still get


def note_coverage(coverage: Sequence[Coverage], bundled: Collection[str] = ()) -> tuple[Note, ...]:
    """Notes on how the runs of several tasks fit the space, warnings first.

    ``bundled`` names the tasks that come with the package. They have more hyperparameters than
    most searches, which is no news.
    """
    notes = [
        *_note_ranges(coverage),
        *_note_left_out(coverage),
        *_note_values(coverage),
        *_note_names(coverage, bundled),
    ]
    return tuple(sorted(notes, key=lambda note: not note.is_warning))


def _note_ranges(coverage: Sequence[Coverage]) -> Iterator[Note]:
    """Warnings of memories that lie outside a range."""
    beyond = {name: found for c in coverage for name, found in c.beyond.items()}
    for name, found in beyond.items():
        text = (
            f"{name} was recorded from {found.least:g} to {found.most:g}, and {found.n_outside} of"
            f" these {found.n} values lie outside the range of this search, {found.low:g} to"
            f" {found.high:g}: little is known of it there. The nearest end counts for"
            f" {found.n_at_end} of them, the default for the others. If this is not meant, widen"
            " the range, or use a memory of it."
        )
        yield Note(text, is_warning=True)


def _note_left_out(coverage: Sequence[Coverage]) -> Iterator[Note]:
    n_runs, n_kept = sum(c.n_runs for c in coverage), sum(c.n_kept for c in coverage)
    if n_kept == n_runs:
        return
    counted = [
        *_sum_up(coverage, "dropped"),
        ("a lower budget", sum(c.n_partial for c in coverage)),
        ("another branch", sum(c.n_unrelated for c in coverage)),
    ]
    reasons = " and ".join(f"{name} in {n}" for name, n in counted if n)
    because = f" because of {reasons}" if reasons else ""
    yield Note(f"{n_runs - n_kept} of {n_runs} recorded runs are left out{because}.")


def _note_values(coverage: Sequence[Coverage]) -> Iterator[Note]:
    """What became of the values of the runs that are used, unless ``_note_ranges`` says it."""
    n_kept = sum(c.n_kept for c in coverage)
    beyond = {name for c in coverage for name in c.beyond}
    unusable = dict(_sum_up(coverage, "unusable"))
    imputed = _sum_up(coverage, "imputed")
    for counted, sentence in (
        (
            [(name, n) for name, n in _sum_up(coverage, "clipped") if name not in beyond],
            "{} is outside the range of this search in {} of {} recorded runs: there the nearest"
            " value inside counts, and nothing need be done.",
        ),
        (
            _sum_up(coverage, "rounded"),
            "{} is between the values of this search in {} of {} recorded runs: there the nearest"
            " one counts.",
        ),
        (
            [(name, n - unusable.get(name, 0)) for name, n in imputed],
            "{} is missing in {} of {} recorded runs and is imputed.",
        ),
        (
            [(name, unusable.get(name, 0)) for name, _ in imputed if name not in beyond],
            "{} has values that cannot be used in {} of {} recorded runs, as they are none of this"
            " search, and is imputed there.",
        ),
        (
            _sum_up(coverage, "converted"),
            "{} was converted between counts and fractions in {} of {} recorded runs.",
        ),
    ):
        yield from (Note(sentence.format(name, n, n_kept)) for name, n in counted if n)


def _note_names(coverage: Sequence[Coverage], bundled: Collection[str]) -> Iterator[Note]:
    """Notes on hyperparameters that the runs have and the space lacks.

    It is a warning where the space has a hyperparameter that no run has: the two may be one,
    renamed.
    """
    lacking = _sum_up([c for c in coverage if c.task not in bundled], "lacking")
    if not lacking:
        return
    n_kept = sum(c.n_kept for c in coverage)
    listed = _listed([f"{name} in {n}" for name, n in lacking])
    text = (
        "Hyperparameters of the runs that this search does not have are ignored:"
        f" {listed} of {n_kept} recorded runs."
    )
    shared = {name for c in coverage for name in c.shared}
    unknown = [name for name, _ in _sum_up(coverage, "imputed") if name not in shared]
    if unknown:
        text += (
            f" The search has {_listed(unknown)}, which no run has. If two of these are one by"
            " different names, rename it in the runs or in the search; else nothing need be done."
        )
    yield Note(text, is_warning=bool(unknown), of_names=True)


def _listed(parts: Sequence[str]) -> str:
    more = len(parts) - _MOST_NAMES
    shown = [*parts[:_MOST_NAMES], f"{more} more"] if more > 0 else parts
    return " and ".join(shown)


def _sum_up(coverage: Sequence[Coverage], counts: str) -> list[tuple[str, int]]:
    total = Counter[str]()
    for covered in coverage:
        total.update(getattr(covered, counts))
    return total.most_common()
