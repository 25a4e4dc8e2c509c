"""How much of a memory a search space can use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


class MemoryMismatch(ValueError):
    """A memory of which a search can use nothing.

    Args:
        message: What is missing.
        final: Whether it stays so; False as long as the search space may still grow.
        expected: Whether no user has claimed that the memory fits: then the search does without
            it, and needs no warning.

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


@dataclass(frozen=True)
class Coverage:
    """How much of a task's runs a search space can use.

    Attributes:
        task: Name of the task.
        n_runs: Runs that were recorded.
        n_kept: Those that are used.
        n_clipped: Those among them with a value that was moved into its range.
        imputed: Runs used for which a hyperparameter had to be imputed, by name.
        shared: Hyperparameters that both know.
        ignored: Hyperparameters of the runs that the space does not have.
        clipped: Runs used with a value that was moved into its range, by hyperparameter.
        dropped: Runs left out for a value that the space does not have, by hyperparameter.
        n_partial: Runs left out because they were evaluated at a lower budget.
        converted: Runs used with a count for a fraction, or the reverse, by hyperparameter.
        n_unrelated: Runs left out that are of a branch which the space lacks, see ``align``.

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
            ("imputed", self.imputed),
            ("converted between counts and fractions", self.converted),
        ):
            if counts:
                where = (f"{name} in {n}" for name, n in counts.items())
                parts.append(f"{verb} " + " and ".join(where))
        if self.ignored:
            parts.append("ignored " + " and ".join(self.ignored))
        return ", ".join(parts)


def note_coverage(coverage: Sequence[Coverage]) -> tuple[str, ...]:
    """Notes on how the runs of several tasks fit the space, one sentence each."""
    n_runs, n_kept = sum(c.n_runs for c in coverage), sum(c.n_kept for c in coverage)
    out = []
    if n_kept < n_runs:
        n_partial = sum(c.n_partial for c in coverage)
        n_unrelated = sum(c.n_unrelated for c in coverage)
        reasons = [f"{name} in {n}" for name, n in _sum_up(coverage, "dropped")]
        reasons += [f"a lower budget in {n_partial}"] * bool(n_partial)
        reasons += [f"another branch in {n_unrelated}"] * bool(n_unrelated)
        because = f" because of {' and '.join(reasons)}" if reasons else ""
        out.append(f"{n_runs - n_kept} of {n_runs} recorded runs are left out{because}.")
    for counts, sentence in (
        (
            "clipped",
            "{} is outside the range of this search in {} of {} recorded runs: there the nearest"
            " value inside counts, and nothing need be done.",
        ),
        ("imputed", "{} is missing in {} of {} recorded runs and is imputed."),
        ("converted", "{} was converted between counts and fractions in {} of {} recorded runs."),
    ):
        out += [sentence.format(name, n, n_kept) for name, n in _sum_up(coverage, counts)]
    return tuple(out)


def _sum_up(coverage: Sequence[Coverage], counts: str) -> list[tuple[str, int]]:
    total = Counter[str]()
    for covered in coverage:
        total.update(getattr(covered, counts))
    return total.most_common()
