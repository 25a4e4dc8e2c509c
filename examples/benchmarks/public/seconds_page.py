"""The page of searches by the clock: as measured, also where a sampler falls short."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from family_searches import FAILURE_AS, SCALES

from public.llm_trainings import (
    HOURS,
    JUDGE,
    N_NEAREST,
    SECONDS_OF_FAILURE,
    SECONDS_OF_TRAINING,
    validate,
)
from public.suites import LLM, MEAN_TRIALS, TIMED_TRIALS

Search = dict[str, Any]  # a line of the kept searches
PEER = "Optuna TPE"
VALIDATION = "validation.csv"  # of the models of trainings, beside the searches
#: Ferreira et al. 2026: share of failed trainings, best bits per byte after 24 h, 3 seeds.
PUBLISHED = {
    "TPE": ("11 %", "0.9768"),
    "CMA-ES": ("16 %", "0.9785"),
    "SMAC": ("36 %", "0.9778"),
    "random": ("56 %", "0.9873"),
}
SHARES = (0.1, 0.25, 0.5, 1.0)  # of the seconds of a search

_TITLE = """\
# Searches by the clock

How samplers do when a search has seconds, not trials. Written from the kept searches by

    python examples/benchmarks/benchmark_seconds.py page
"""

_MEMORY = """\
## Trainings that run out of memory

A search of {hours} simulated hours over the 14 hyperparameters of a small language model. Two
models answer, learnt from the trainings that Ferreira et al. (2026, arXiv 2603.24647) recorded:
from the 10,200 of 11,172 whose hyperparameters are all known.

- One model says whether a training runs out of memory. Then it takes {failure:.0f} s and has no
  loss.
- The other says how many bits per byte a training reaches in its {training:.0f} s. Models promise
  losses that nobody measured, so no answer is better than the best of the {nearest} nearest
  recorded runs.
- Three hyperparameters are rounded to powers of two, as in the recorded searches.
- {validation}

In the table, *failures as {penalty:g}* is a sampler that is told a loss of {penalty:g} for a
failed training, as one does who cannot report failures; all others are told of the failure. The
target is the mean of the best losses of {peer}. Best bits per byte: mean and standard deviation of
the searches; less is better.
"""

_PUBLISHED = """\
Published figures of real searches, **measured under other conditions** (real trainings, three
seeds, settings of that paper), for orientation only:
"""

_SECONDS = """\
## Tables with recorded seconds

A search may spend {mean} times the mean seconds of a random configuration, and has at most {n}
trials. No default was chosen on these tables: 20 of oboe, 15 tasks of the surrogate rbv2_xgboost,
the three of NAS-Bench-201.

- `AutoSampler, cost` is `AutoSampler(cost="seconds")`, which divides the expected improvement by
  the predicted seconds.
- On rbv2_xgboost `AutoSampler` begins with the memory of XGBoost that comes with the package,
  without runs on the searched data; `no memory` is `memory=None`.
- The tables of a family show the regret in percent, as on the [evidence page](README.md), after a
  share of the seconds: the mean over the searches that all samplers made.
"""


def page(searches: Sequence[Search], folder: Path) -> str:
    """The whole page as markdown."""
    trainings = [s for s in searches if s["task"].startswith(f"{LLM}/")]
    others = [s for s in searches if not s["task"].startswith(f"{LLM}/")]
    parts = [_TITLE.strip()]
    if trainings:
        parts += _out_of_memory(trainings, folder)
    if others:
        parts += _by_seconds(others, folder)
    return "\n\n".join(parts) + "\n"


# --- out of memory ---------------------------------------------------------------------------


def write_validation(folder: Path) -> None:
    """Write how well the models of the trainings predict; the recorded runs are needed for it."""
    pd.Series(validate(), name="value").rename_axis("figure").to_csv(folder / VALIDATION)


def _out_of_memory(searches: Sequence[Search], folder: Path) -> list[str]:
    found = pd.read_csv(folder / VALIDATION, index_col="figure")["value"]
    listed = "; ".join(f"{what} {value:.3f}" for what, value in found.items())
    text = _MEMORY.format(
        hours=HOURS,
        failure=SECONDS_OF_FAILURE,
        training=SECONDS_OF_TRAINING,
        nearest=N_NEAREST,
        penalty=FAILURE_AS,
        peer=PEER,
        validation=f"Models fitted without the runs of {JUDGE.lower()} search, judged on these:"
        f" {listed}.",
    )
    published = pd.DataFrame.from_dict(
        PUBLISHED, orient="index", columns=["failed", "best bits per byte"]
    )
    return [
        text.strip(),
        failures_table(searches).to_markdown(disable_numparse=True),
        _PUBLISHED.strip(),
        published.to_markdown(disable_numparse=True),
    ]


def failures_table(searches: Sequence[Search]) -> pd.DataFrame:
    """What each method made of its hours; best first."""
    by_method: dict[str, list[Search]] = {}
    for search in searches:
        by_method.setdefault(search["method"], []).append(search)
    best = {m: [_final(s) for s in found] for m, found in by_method.items()}
    target = float(np.mean(best[PEER])) if PEER in best else math.nan
    rows = {}
    for method, found in sorted(by_method.items(), key=lambda item: np.mean(best[item[0]])):
        finished = np.array([s["n_finished"] for s in found])
        failed = np.array([s["n_failed"] for s in found])
        hours = [time_to(s, target) / 3600 for s in found]
        rows[method] = {
            "searches": str(len(found)),
            "trainings": f"{finished.mean():.0f}",
            "failed": f"{failed.sum() / finished.sum():.1%}",
            "best bits per byte": f"{np.mean(best[method]):.4f} ± {np.std(best[method]):.4f}",
            "median hours to the target": _number(float(np.median(hours)), 1),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def _final(search: Search) -> float:
    """The best loss of a search."""
    return float(search["improvements"][-1][1]) if search["improvements"] else math.inf


def time_to(search: Search, target: float) -> float:
    """Seconds until a search is as good as ``target``; infinite if it never is."""
    for (_, loss), end in zip(search["improvements"], search["seconds"], strict=False):
        if loss <= target + 1e-12:
            return float(end)
    return math.inf


def _number(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else "never"


# --- seconds ---------------------------------------------------------------------------------


def _by_seconds(searches: Sequence[Search], folder: Path) -> list[str]:
    scales = pd.read_csv(folder / SCALES).set_index("task")
    parts = [_SECONDS.format(mean=MEAN_TRIALS, n=TIMED_TRIALS).strip()]
    families = sorted({s["task"].partition("/")[0] for s in searches})
    parts.append(
        f"Seconds until a search is as good as {PEER} at its end, divided by the seconds that"
        f" {PEER} itself took to get there, on the same table and seed: median, in brackets the"
        f" share of searches that never are as good.\n\n{_ratios(searches)}"
    )
    for family in families:
        own = [s for s in searches if s["task"].startswith(f"{family}/")]
        n, table = regret_table(own, scales)
        text = table.to_markdown(disable_numparse=True)
        parts.append(f"### {family}\n\n{n} searches of each.\n\n{text}")
    return parts


def _ratios(searches: Sequence[Search]) -> str:
    of_peer = {(s["task"], s["seed"]): s for s in searches if s["method"] == PEER}
    found = [
        (s["method"], s["task"].partition("/")[0], ratio_to(s, of_peer[s["task"], s["seed"]]))
        for s in searches
        if s["method"] != PEER and (s["task"], s["seed"]) in of_peer
    ]
    ratios = pd.DataFrame(found, columns=["method", "family", "ratio"])
    cells = ratios.groupby(["method", "family"])["ratio"].agg(
        lambda own: f"{_number(own.median())} ({np.isinf(own).mean():.0%})"
    )
    table = cells.unstack("family").fillna("").rename_axis(None)
    return str(table.to_markdown(disable_numparse=True))


def ratio_to(search: Search, peer: Search) -> float:
    """Seconds until a search is as good as a peer's best, over those that the peer took."""
    return time_to(search, _final(peer)) / time_to(peer, _final(peer))


def regret_table(searches: Sequence[Search], scales: pd.DataFrame) -> tuple[int, pd.DataFrame]:
    """Mean regret in percent by method after shares of the seconds; the number of searches."""
    low = {task: float(scales["best"][task]) for task in {s["task"] for s in searches}}
    for search in searches:  # a search may beat what random configurations have found
        low[search["task"]] = min(low[search["task"]], _final(search))
    rows = []
    for search in searches:
        best, worst = low[search["task"]], float(scales["worst"][search["task"]])
        row = {"method": search["method"], "place": (search["task"], search["seed"])}
        row |= {"trials": search["n_finished"]}
        for share in SHARES:
            loss = _at(search, share * search["until"], worst)
            row[f"{share:.0%}"] = 100 * (loss - best) / (worst - best)
        rows.append(row)
    frame = pd.DataFrame(rows)
    n_methods = frame["method"].nunique()
    complete = frame.groupby("place")["method"].transform("nunique") == n_methods
    means = frame[complete].drop(columns="place").groupby("method").mean()
    shown = means.sort_values(f"{SHARES[-1]:.0%}").map("{:.2f}".format)
    shown["trials"] = means["trials"].map("{:.0f}".format)
    return int(complete.sum()) // n_methods, shown


def _at(search: Search, seconds: float, worst: float) -> float:
    """The best loss after so many seconds."""
    loss = worst
    for (_, found), end in zip(search["improvements"], search["seconds"], strict=False):
        if end <= seconds:
            loss = found
    return loss
