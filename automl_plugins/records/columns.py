"""Trials as growing columns, so that each trial is read once.

Reading 10 000 trials takes a tenth of a second; a sampler is asked before every one of them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Generic, Self

import numpy as np
import numpy.typing as npt

from automl_plugins.records.trial import AnyTrial, in_order

FloatArray = npt.NDArray[np.float64]


class Columns(Generic[AnyTrial]):
    """Trials in their order (``Trial.place``), and the same by column; append-only.

    Args:
        trials: All trials, in any order.

    Attributes:
        trials: The trials in their order.
        numbers: Their numbers.
        constraint_names: Names of the constraints that any of them has.
    """

    def __init__(self, trials: Iterable[AnyTrial] = ()) -> None:
        self.trials: list[AnyTrial] = []
        self.numbers: set[int] = set()
        self.constraint_names: set[str] = set()
        self._arrays: dict[tuple[str, str], tuple[Callable[[AnyTrial], float], FloatArray]] = {}
        self._append(in_order(trials))

    def extended(self, trials: Iterable[AnyTrial]) -> Self:
        """New columns that hold ``trials`` too."""
        new = in_order(trials)
        if self.trials and new and new[0].place < self.trials[-1].place:
            return type(self)([*self.trials, *new])
        longer = copy.copy(self)
        longer._append(new)
        longer._arrays = {
            key: (read, np.concatenate([known, _column(new, read)]))
            for key, (read, known) in self._arrays.items()
        }
        return longer

    def _append(self, new: list[AnyTrial]) -> None:
        """Add trials that are in order; nothing that a copy shares is changed."""
        self.trials = [*self.trials, *new]
        self.numbers = self.numbers | {trial.number for trial in new}
        self.constraint_names = self.constraint_names.union(*(t.constraints for t in new))

    def facts(self, name: str) -> FloatArray:
        """A number that is an attribute of each trial (n,)."""
        return self._array("fact", name, attrgetter(name))

    def constraint(self, name: str) -> FloatArray:
        """Values of a constraint (n,), NaN where it was not set."""
        return self._array("constraint", name, lambda t: t.constraints.get(name, math.nan))

    def _array(self, kind: str, name: str, read: Callable[[AnyTrial], float]) -> FloatArray:
        """A column, read once: ``read`` gives its value for one trial."""
        if (kind, name) not in self._arrays:
            self._arrays[kind, name] = read, _column(self.trials, read)
        return self._arrays[kind, name][1]

    def __iter__(self) -> Iterator[AnyTrial]:
        return iter(self.trials)

    def __len__(self) -> int:
        return len(self.trials)


def _column(trials: list[AnyTrial], read: Callable[[AnyTrial], float]) -> FloatArray:
    return np.array([read(trial) for trial in trials], dtype=np.float64)
