"""What a meta-learned design returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Suggestion:
    """A configuration to start with.

    Attributes:
        vector: In the vector form of the search space (d,); NaN = inactive.
        configuration: Values of the active hyperparameters by name.
        score: Predicted loss, less is better: in standard deviations of a task's losses for the
            designs of the meta-learner, as a regret in [0, 1] for the others.
        reason: Why it was picked, in a sentence.
    """

    vector: FloatArray
    configuration: Mapping[str, Any]
    score: float
    reason: str

    def __repr__(self) -> str:
        return f"Suggestion({dict(self.configuration)}, score {self.score:.4g}: {self.reason})"


@dataclass(frozen=True)
class Design(Sequence[Suggestion]):
    """Configurations to start with, best first.

    Attributes:
        method: Name of the design.
        suggestions: The configurations, distinct.
        notes: What the user should know: which fall-back was taken, and why.
    """

    method: str
    suggestions: tuple[Suggestion, ...]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.suggestions)

    def __getitem__(self, index: Any) -> Any:
        return self.suggestions[index]

    def __iter__(self) -> Iterator[Suggestion]:
        return iter(self.suggestions)

    @property
    def configurations(self) -> list[dict[str, Any]]:
        """Values by name of each configuration."""
        return [dict(suggestion.configuration) for suggestion in self.suggestions]

    @property
    def scores(self) -> FloatArray:
        """Predicted score of each configuration (k,), less is better."""
        return np.array([suggestion.score for suggestion in self.suggestions])

    def __repr__(self) -> str:
        notes = f", {len(self.notes)} notes" if self.notes else ""
        return f"Design({self.method!r}, {len(self)} configurations{notes}; print it to read them)"

    def __str__(self) -> str:
        lines = [
            f"{place}. {suggestion.configuration} ({suggestion.reason})"
            for place, suggestion in enumerate(self.suggestions, start=1)
        ]
        return "\n".join([f"{self.method}:", *lines, *self.notes])
