"""Random histories: what a search may have seen, however odd."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from drawing import ByHypothesis, ByNumpy, Source
from hypothesis import strategies as some
from spaces import Parameter, Space, Values, altered, draw_space, draw_values

ODD = [
    math.nan,
    math.inf,
    -math.inf,
    0.0,
    -0.0,
    1.0,
    1e308,
    -1e308,
    sys.float_info.max,
    -sys.float_info.max,
    sys.float_info.min,
    5e-324,
    1e-300,
]
SECONDS: list[Any] = [None, 1.0, 0.0, -1.0, 1e9, 1e-9, math.nan, math.inf, "12", True, 1e308]
STATES = ("complete", "failed", "pruned", "running")

_MOST_CELLS = 60_000  # of a history; a larger one has fewer rows


@dataclass(frozen=True)
class Run:
    """An evaluation as somebody recorded it; ``parameters`` had the ranges of its time."""

    values: Values
    parameters: Space
    state: str
    loss: float
    seconds: Any = None
    curve: tuple[tuple[int, float], ...] = ()
    constraints: tuple[float, ...] = ()


@dataclass(frozen=True)
class Case:
    """What a target is tried on."""

    space: Space
    runs: tuple[Run, ...] = ()
    tasks: tuple[tuple[Run, ...], ...] = ()
    maximize: bool = False
    seed: int = 0
    lots: tuple[int, ...] = (0,) * 8  # decide about options of the target
    meta_features: dict[str, float] = field(default_factory=dict)

    def pick(self, lot: int, options: Any) -> Any:
        """One of the options, by a lot."""
        return options[self.lots[lot] % len(options)]

    def __repr__(self) -> str:
        runs = f"{len(self.runs)} runs" if len(self.runs) > 12 else f"runs={self.runs!r}"
        return (
            f"Case(space={self.space!r}, {runs}, tasks={[len(t) for t in self.tasks]},"
            f" maximize={self.maximize}, seed={self.seed}, lots={self.lots},"
            f" meta_features={self.meta_features})"
        )


def draw_loss(source: Source) -> float:
    how = source.whole(0, 9)
    if how < 6:
        return source.unit()
    if how < 8:
        return source.pick(ODD)
    return (source.unit() - 0.5) * 10.0 ** source.whole(-12, 12)


def draw_run(source: Source, space: Space, *, odd: bool) -> Run:
    """A run; an ``odd`` one may have other ranges, lack values or report nonsense."""
    asked = space
    if odd and source.chance(25):
        asked = tuple(altered(source, p) if source.chance(30) else p for p in space)
    values = draw_values(source, asked)
    if odd and source.chance(20):  # late parameters, or a trial that stopped half-way
        kept = source.whole(0, len(values))
        values = dict(list(values.items())[:kept])
    state = source.pick(STATES) if odd else ("failed" if source.chance(10) else "complete")
    loss = draw_loss(source) if odd else source.unit()
    seconds = source.pick(SECONDS) if odd else 1.0 + source.unit()
    curve: tuple[tuple[int, float], ...] = ()
    if odd and source.chance(40):
        steps = source.pick([(1,), (1, 2, 4), (0, 3), (1, 10**9), (7,), (-1, 1)])
        curve = tuple((step, draw_loss(source)) for step in steps)
    constraints = (draw_loss(source),) if odd and source.chance(10) else ()
    return Run(values, asked, state, loss, seconds, curve, constraints)


def draw_runs(source: Source, space: Space, n: int, *, odd: bool) -> tuple[Run, ...]:
    runs: list[Run] = []
    for _ in range(n):
        if odd and runs and source.chance(15):
            runs.append(source.pick(runs[-20:]))  # the very same again
        else:
            runs.append(draw_run(source, space, odd=odd))
    return tuple(runs)


@some.composite
def cases(draw: Any, *, arm: bool = False, tasks: bool = False, most_rows: int = 10_000) -> Case:
    """Cases for one target.

    Args:
        arm: Whether most spaces have a choice named "algorithm".
        tasks: Whether there are earlier tasks.
        most_rows: Longest history.
    """
    source: Source = ByHypothesis(draw)
    seed = source.whole(0, 2**16)
    size = source.whole(0, 99)
    large = size >= 96
    if large or size >= 80:
        source = ByNumpy(seed)
    n = source.whole(0, 200) if large else source.pick([1, 2, 3, 4, 5, 6, 0])
    space = draw_space(source, n, arm=arm and not source.chance(10))
    odd = source.chance(70)
    if large:
        rows = 10 ** source.whole(1, 4)
        rows = min(rows, most_rows, _MOST_CELLS // (n + 1))
    else:
        rows = source.whole(0, 12) if size < 80 else source.whole(0, 60)
    runs = draw_runs(source, space, rows, odd=odd)
    earlier: tuple[tuple[Run, ...], ...] = ()
    if tasks:
        other = space
        if source.chance(20):
            other = tuple(altered(source, p) if source.chance(30) else p for p in space)
        earlier = tuple(
            draw_runs(source, other, source.pick([4, 8, 6, 2, 1, 0]), odd=source.chance(40))
            for _ in range(source.whole(1, 4))
        )
    features: dict[str, float] = {}
    if source.chance(50):
        features = {name: draw_loss(source) for name in ("n", "größe")}
    lots = tuple(source.whole(0, 59) for _ in range(8))
    return Case(space, runs, earlier, source.chance(30), seed, lots, features)


def loss_column(runs: tuple[Run, ...]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([run.loss for run in runs], dtype=np.float64)


__all__ = ["Case", "Parameter", "Run", "cases"]
