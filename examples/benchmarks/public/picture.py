"""The summary in one picture: regret over trials on the public tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from family_report import FLOOR, FUNCTIONS, SEARCH, blocks
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator
from static_figures import save_svg

from public.page import RANDOM, TPE
from public.suites import N_TRIALS, SEEN

CMA = "Optuna CMA-ES"
#: Distinct on white and on black, and to colour-blind readers.
COLORS = {TPE: "#3b82d0", CMA: "#2a9d8f", RANDOM: "#8a8a8a"}
OWN = "#e0701a"
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)  # percent
FIRST = 3  # trials before it show the first draws only
PANELS = (("All", (TPE, RANDOM)), ("Where all parameters are numbers", (TPE, CMA, RANDOM)))


def mean_curves(curves: pd.DataFrame, methods: Sequence[str]) -> tuple[int, pd.DataFrame]:
    """The number of tables, and the geometric mean regret by trial (rows) and method.

    Only tables that all methods have searched and that were not tuned on count; all blocks have
    the same weight. BBOB is left out: its regret has another scale.
    """
    index = curves.index.get_level_values("family")
    chosen = curves[~index.isin([*FUNCTIONS, *SEEN])]
    chosen = chosen[chosen.index.isin(methods, level="method")]
    complete = chosen.groupby(SEARCH)[1].transform("count") == len(methods)
    n = chosen[complete].index.get_level_values("task").nunique()
    every = blocks(chosen, methods)[list(range(FIRST, N_TRIALS + 1))]
    logs = every.clip(lower=FLOOR).map(math.log).groupby("method").mean()
    return n, logs.map(math.exp).T


def draw(curves: pd.DataFrame, control: str) -> Figure:
    """Two panels: all public tables, and those that CMA-ES can search, if it has."""
    figure = Figure(figsize=(8.8, 3.6))
    made = set(curves.index.get_level_values("method"))
    panels = [panel for panel in PANELS if made.issuperset(panel[1])]
    axes: Sequence[Axes] = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for ax, (title, peers) in zip(axes, panels, strict=True):
        n, means = mean_curves(curves, [control, *peers])
        for method in (control, *peers):
            own = method == control
            ax.plot(
                means.index,
                means[method],
                color=OWN if own else COLORS[method],
                linewidth=2.4 if own else 1.6,
                label=method,
                zorder=3 if own else 2,
            )
        ax.set_title(f"{title} ({n} tables)", fontsize=10, loc="left")
        ax.set(yscale="log", xlabel="trials", xlim=(FIRST, N_TRIALS))
        ax.yaxis.set_major_locator(FixedLocator(TICKS))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_locator(NullLocator())
        ax.grid(True, color="#e5e5e5", linewidth=0.8)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.legend(frameon=False, loc="lower left", fontsize=9)
    axes[0].set_ylabel("regret, % (geometric mean)")
    figure.tight_layout()
    return figure


def save(curves: pd.DataFrame, control: str, path: Path) -> None:
    """Write the picture as SVG."""
    save_svg(draw(curves, control), path)
