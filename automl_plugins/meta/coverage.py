"""How much of recorded runs a search space can use, and how to say it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


class MemoryMismatch(ValueError):
    """A memory of which a search can use nothing.

    Args:
        message: What is missing.
        final: Whether it stays so; False as long as the search space may still grow.
    """

    def __init__(self, message: str, *, final: bool = True) -> None:
        super().__init__(message)
        self.final = final


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
        converted: Runs used with a count that is a fraction in the space, or the reverse, by
            hyperparameter.
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

    @property
    def n_dropped(self) -> int:
        """Runs that are not used."""
        return self.n_runs - self.n_kept

    def __str__(self) -> str:
        parts = [f"{self.task}: {self.n_kept} of {self.n_runs} runs"]
        if self.n_partial:
            parts.append(f"{self.n_partial} at a lower budget")
        for verb, counts in (
            ("dropped for", self.dropped),
            ("clipped", self.clipped),
            ("imputed", self.imputed),
            ("converted between counts and fractions", self.converted),
        ):
            if counts:
                told = (f"{name} in {n}" for name, n in counts.items())
                parts.append(f"{verb} " + " and ".join(told))
        if self.ignored:
            parts.append("ignored " + " and ".join(self.ignored))
        return ", ".join(parts)


def notes(coverage: Sequence[Coverage]) -> tuple[str, ...]:
    """What a user should know of the runs of several tasks, a sentence each."""
    n_runs, n_kept = sum(c.n_runs for c in coverage), sum(c.n_kept for c in coverage)
    out = []
    if n_kept < n_runs:
        causes = _summed(coverage, lambda c: c.dropped)
        n_partial = sum(c.n_partial for c in coverage)
        told = [f"{name} in {n}" for name, n in causes.items()]
        told += [f"a lower budget in {n_partial}"] * bool(n_partial)
        because = f" because of {' and '.join(told)}" if told else ""
        out.append(f"{n_runs - n_kept} of {n_runs} runs are left out{because}.")
    for name, n in _summed(coverage, lambda c: c.clipped).items():
        out.append(f"{name} was moved into its range in {n} of {n_kept} runs.")
    for name, n in _summed(coverage, lambda c: c.imputed).items():
        out.append(f"{name} is not known of {n} of {n_kept} runs, its default is taken.")
    for name, n in _summed(coverage, lambda c: c.converted).items():
        out.append(f"{name} was converted between counts and fractions in {n} of {n_kept} runs.")
    return tuple(out)


def nothing_left(coverage: Sequence[Coverage]) -> MemoryMismatch:
    """The error for runs of which a search space can use none."""
    told = "; ".join(str(covered) for covered in coverage[:3])
    return MemoryMismatch(f"No run of the memory lies in the search space: {told}.")


def _summed(
    coverage: Sequence[Coverage], counts: Callable[[Coverage], Mapping[str, int]]
) -> dict[str, int]:
    total = Counter[str]()
    for covered in coverage:
        total.update(counts(covered))
    return dict(total.most_common())
