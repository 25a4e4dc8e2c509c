"""Figures of the families, from the kept searches.

Regret is the gap between the best loss so far and the best known one, in percent of the range of a
task. On functions (smooth, BBOB) it is the decimal logarithm of the gap itself, at least -8.
Methods are compared on the searches (task and seed) that all of them have made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from family_searches import SCALES, read_results

BUDGETS = (10, 20, 30, 50)
LAST = 60  # trials on smooth functions
FLOOR = 0.1  # percent: in geometric means, a regret is at least this
SMOOTH = "smooth"
FUNCTIONS = (SMOOTH, "bbob_2", "bbob_5", "bbob_10")  # whose regret is a logarithm
SEEDS_ARE_BLOCKS = (  # families of ten tasks or fewer
    *("xgboost_random", "hpobench_mlp", "hpolib_fcnet"),
    *("hpobench", "hpolib", "nasbench201", "lcbench_tuned", "rbv2_xgboost_tuned"),
    "real training",
)
SEARCH = ["family", "task", "seed"]


def read_curves(folder: Path, half: str) -> tuple[pd.DataFrame, pd.Series[float]]:
    """Regret after each trial of each search, and the milliseconds of a proposal.

    Returns:
        Frame and series with the index family, task, seed, method; a column for each trial.
    """
    scales = pd.read_csv(folder / SCALES).set_index("task")
    found = list(read_results(folder / half))
    best = scales["best"].to_dict()
    for r in found:  # a search may beat what random configurations of a surrogate have found
        best[r["task"]] = min([best[r["task"]], *(loss for _, loss in r["improvements"][-1:])])
    longest = max((r["n_trials"] for r in found), default=0)
    keys, curves, times = [], [], []
    for r in found:
        low, high = best[r["task"]], float(scales["worst"][r["task"]])
        losses = np.full(longest, math.nan if math.isnan(high) else high)
        for trial, loss in r["improvements"]:
            losses[trial - 1 :] = loss
        losses[r["n_trials"] :] = math.nan
        keys.append((r["task"].partition("/")[0], r["task"], r["seed"], r["method"]))
        curves.append(
            np.log10(np.maximum(losses - low, 1e-8))
            if math.isnan(high)
            else 100 * (losses - low) / (high - low)
        )
        times.append(1e3 * r["proposing"] / r["n_trials"])
    index = pd.MultiIndex.from_tuples(keys, names=[*SEARCH, "method"])
    frame = pd.DataFrame(curves, index, range(1, longest + 1))
    return frame[~index.duplicated(keep="last")], pd.Series(times, index)[
        ~index.duplicated(keep="last")
    ]


def methods_of(curves: pd.DataFrame, control: str) -> set[str]:
    """The methods that have searched something.

    Raises:
        ValueError: If the control is not one of them.
    """
    made = set(curves.index.get_level_values("method"))
    if control not in made:
        raise ValueError(f"No searches of {control!r}; there are those of {sorted(made)}.")
    return made


def families_of(curves: pd.DataFrame) -> set[tuple[str, str]]:
    """The pairs of a family and a method that searched it."""
    index: Any = curves.index
    return set(index.droplevel(["task", "seed"]))


def blocks(curves: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Curves by family, block and method, of the searches that all methods have made.

    A block is a task, its curve the mean over the seeds; or a search, in families of few tasks.
    """
    chosen = curves[curves.index.isin(methods, level="method")]
    complete = chosen.groupby(SEARCH)[1].transform("count") == len(methods)
    chosen = chosen[complete].reset_index()
    seeds = chosen["seed"].astype(str).where(chosen["family"].isin(SEEDS_ARE_BLOCKS), "")
    block = (chosen["task"] + " " + seeds).str.strip()
    mean = chosen.drop(columns=["task", "seed"]).assign(block=block)
    return pd.DataFrame(mean.groupby(["family", "block", "method"]).mean())


def at(of_family: pd.DataFrame, budget: int) -> pd.DataFrame:
    """Regret of each block (rows) and method (columns) of a family."""
    return pd.DataFrame(of_family[budget].unstack("method"))


def typical(values: pd.DataFrame, family: str, floor: float = FLOOR) -> pd.Series[float]:
    """Geometric mean over blocks, by method; on functions the mean of logarithms."""
    if family in FUNCTIONS:
        return values.mean()
    return pd.Series(np.exp(np.log(values.clip(lower=floor)).mean()))


def against(
    curves: pd.DataFrame, control: str, peer: str, family: str, budget: int, floor: float = FLOOR
) -> float:
    """Ratio of typical regrets of the control and a peer; difference on functions.

    NaN where they have no search in common.
    """
    both = blocks(curves, [control, peer])
    if family not in both.index.get_level_values("family"):
        return math.nan
    found = typical(at(both.loc[[family]], budget), family, floor)
    if family in FUNCTIONS:
        return float(found[control] - found[peer])
    return float(found[control] / found[peer])


def trials_to(
    curves: pd.DataFrame, control: str, peer: str, family: str, budget: int = 50
) -> pd.Series[float]:
    """Trials, by block, until the control is as good as the peer after ``budget``.

    ``budget + 1`` if it never is.
    """
    of_family = blocks(curves, [control, peer]).loc[[family]]
    own = of_family.xs(control, level="method").to_numpy()[:, :budget]
    target = of_family.xs(peer, level="method")[budget].to_numpy()
    reached = own <= target[:, None] + 1e-12
    return pd.Series(np.where(reached.any(axis=1), reached.argmax(axis=1) + 1.0, budget + 1.0))


def hardest(
    curves: pd.DataFrame, control: str, peers: Sequence[str], family: str, budget: int
) -> tuple[str, float]:
    """The peer with the best result, and the ratio of the control's regret to its regret."""
    ratios = {p: against(curves, control, p, family, budget) for p in peers}
    known = {p: r for p, r in ratios.items() if not math.isnan(r)}
    return max(known.items(), key=lambda entry: entry[1])


def family_table(
    curves: pd.DataFrame,
    times: pd.Series[float],
    methods: Sequence[str],
    family: str,
    budgets: Sequence[int] = (),
) -> tuple[int, pd.DataFrame]:
    """The number of blocks; mean and geometric mean regret as text, by method and budget."""
    found = blocks(curves[curves.index.get_level_values("family") == family], methods)
    if not len(found):
        return 0, pd.DataFrame()
    of_family = found.loc[[family]]
    columns: dict[str, dict[str, str]] = {}
    for budget in budgets or (*BUDGETS, *((LAST,) if family == SMOOTH else ())):
        values = at(of_family, budget)
        means, geometric = values.mean(), typical(values, family)
        columns[str(budget)] = {
            m: f"{means[m]:.2f}" + ("" if family in FUNCTIONS else f" ({geometric[m]:.2f})")
            for m in methods
        }
    spent = times.xs(family, level="family").groupby("method").mean()
    columns["ms"] = {m: f"{spent[m]:.1f}" for m in methods}
    return len(at(of_family, 10)), pd.DataFrame(columns)
