"""Weighted against uniform model sampling: random search, successive halving and Hyperband.

The protocol of Sarigiannis, Parnell and Pozidis (2019, section 5) on data that scikit-learn has,
with these changes:

- one split into training, validation and test data in place of ten times ten: only the searches
  are repeated, over recorded pools of configurations;
- the chosen configuration is tested as it was trained, not trained again with the validation data.

    benchmark_weighted.py record  # trains; continues where it stopped
    benchmark_weighted.py report
    benchmark_weighted.py record --quick --out pools  # two tasks, a few models each
"""

from __future__ import annotations

import math
import time
import zlib
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import keep_rows, run_command
from ConfigSpace import Categorical, ConfigurationSpace
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from weighted_tasks import MODELS, STREAMS, Data, estimator, pool, stream, tasks

from automl_plugins.arrays import FloatArray
from automl_plugins.bandits.model_weights import model_weights
from automl_plugins.bandits.successive_halving import Hyperband, SuccessiveHalving, best
from automl_plugins.spaces.branches import hyperparameter_counts
from automl_plugins.statistics import compare

FOLDER = Path("build/weighted")
RESOURCES = ("1/9", "1/3", "1")  # parts of the training rows

# --- record -------------------------------------------------------------------------------

COLUMNS = ("validation", "test", "seconds")
Pool = dict[str, FloatArray]  # (size, 3 resources, 3 columns) by model


def split(data: Data, rng: np.random.Generator) -> tuple[list[Data], Data, Data]:
    """Nested stratified training sets for 1/9, 1/3 and 1, then validation and test data.

    40, 30 and 30 % of the rows; features are standardised by the largest training set.
    """
    X, y = data
    seeds = [int(s) for s in rng.integers(2**31, size=2)]
    X, X_rest, y, y_rest = train_test_split(
        X, y, train_size=0.4, stratify=y, random_state=seeds[0]
    )
    scaler = StandardScaler().fit(X)
    halves = train_test_split(
        scaler.transform(X_rest), y_rest, train_size=0.5, stratify=y_rest, random_state=seeds[1]
    )
    X = scaler.transform(X)
    training = []
    for part in (9, 3, 1):
        rows = [np.flatnonzero(y == c) for c in (0, 1)]
        chosen = np.concatenate([r[: max(2, round(len(r) / part))] for r in rows])
        training.append((X[chosen], y[chosen]))
    return training, (halves[0], halves[2]), (halves[1], halves[3])


def losses(
    configurations: dict[str, list[dict[str, Any]]],
    training: list[Data],
    validation: Data,
    test: Data,
    *place: Any,
) -> dict[str, float]:
    """Logistic losses and seconds of the configuration at a place: model, number, resource.

    The losses are NaN if the model cannot be fitted.
    """
    model, number, resource = place
    before, found = time.process_time(), [np.nan, np.nan]
    try:
        fitted = estimator(model, configurations[model][number])
        fitted.fit(*training[RESOURCES.index(resource)])
        held = (validation, test)
        found = [float(log_loss(y, fitted.predict_proba(X), labels=[0, 1])) for X, y in held]
    except (ValueError, np.linalg.LinAlgError):
        pass
    return dict(zip(COLUMNS, (*found, time.process_time() - before), strict=True))


def chosen(quick: bool) -> tuple[dict[str, Data], dict[str, list[dict[str, Any]]]]:
    """Tasks by name, configurations by model; ``quick``: two tasks, four of each model."""
    some = dict(list(tasks().items())[: 2 if quick else None])
    return some, {model: pool(model)[: 4 if quick else None] for model in MODELS}


def file_of(folder: Path, task: str) -> Path:
    """The rows of a task, in the order in which they were recorded: model, number, resource."""
    return folder / ("".join(c if c.isalnum() else "_" for c in task) + ".csv")


def record(out: Path = FOLDER, quick: bool = False) -> None:
    """Train what is missing; ``quick``: two tasks, four configurations of each model."""
    some, configurations = chosen(quick)
    wanted = [
        (model, number, resource)
        for model, of_model in configurations.items()
        for number, resource in product(range(len(of_model)), RESOURCES)
    ]
    for task, data in some.items():
        start = time.perf_counter()
        train = partial(losses, configurations, *split(data, stream("split", task)))
        keep_rows(file_of(out, task), ("model", "number", "resource"), wanted, train)
        print(f"{task}: {time.perf_counter() - start:.0f} s", flush=True)


def load(folder: Path, quick: bool) -> dict[str, Pool]:
    """What was recorded, of the tasks that are complete."""
    some, configurations = chosen(quick)
    n = len(RESOURCES) * sum(map(len, configurations.values()))
    found = {}
    for path, task in ((file_of(folder, task), task) for task in some):
        rows = pd.read_csv(path) if path.exists() else pd.DataFrame()
        if len(rows) == n:
            found[task] = {
                str(model): own[list(COLUMNS)].to_numpy().reshape(-1, len(RESOURCES), len(COLUMNS))
                for model, own in rows.groupby("model", sort=False)
            }
    return found


# --- report -------------------------------------------------------------------------------


def space() -> ConfigurationSpace:
    """All models in one space, which the weights are computed from."""
    out = ConfigurationSpace()
    choice = Categorical("model", list(MODELS))
    out.add(choice)
    for name, (_, hyperparameters) in MODELS.items():
        branch = ConfigurationSpace()
        branch.add(hyperparameters)
        parent = {"parent": choice, "value": name}
        out.add_configuration_space(name, branch, parent_hyperparameter=parent)
    return out


Draw = tuple[str, int]


def draw(weights: FloatArray, recorded: Pool, n: int, rng: np.random.Generator) -> list[Draw]:
    """Configurations (model, number).

    Within a model without replacement, which is the same as drawing anew, until it is used up.
    """
    names = list(recorded)
    orders = {name: rng.permutation(len(rows)) for name, rows in recorded.items()}
    used = dict.fromkeys(names, 0)
    out = []
    for i in rng.choice(len(names), size=n, p=weights).tolist():
        order = orders[names[i]]
        out.append((names[i], int(order[used[names[i]] % len(order)])))
        used[names[i]] += 1
    return out


Schedule = SuccessiveHalving | Hyperband


def methods(n: int) -> dict[str, Schedule]:
    """Random search, successive halving that explores most, and Hyperband, with equal budgets."""
    halving = SuccessiveHalving.of_budget
    return {"RS": halving(n, 0), "SH": halving(n, 2), "HB": Hyperband(n // 3)}


BUDGETS = (33, 99)  # sections 5.2 and 5.3


def search(schedule: Schedule, recorded: Pool, drawn: list[Draw]) -> list[float]:
    """Test loss of the configuration with the least validation loss, seconds of the search."""

    def cell(draw: Draw, resource: float) -> FloatArray:
        name, number = draw
        return np.asarray(recorded[name][number, round(math.log(9 * resource, 3))])

    done = schedule.run(drawn.__getitem__, lambda d, r: float(cell(d, r)[0]))
    seconds = sum(float(cell(e.configuration, e.resource)[2]) for e in done)
    return [float(cell(best(done).configuration, 1.0)[1]), seconds]


def report(out: Path = FOLDER, quick: bool = False, repetitions: int = 100) -> None:
    """Replay all searches and print what the paper reports."""
    recorded = load(out, quick)
    branches = space()
    rules = {
        "": np.full(len(MODELS), 1 / len(MODELS)),
        ".W": np.array(list(model_weights(branches).values())),
    }
    print(f"{len(recorded)} tasks, {repetitions} repetitions of every search\n")
    lowest = {t: {m: np.nanmin(v[:, 2, 0]) for m, v in p.items()} for t, p in recorded.items()}
    wins = [min(losses, key=losses.__getitem__) for losses in lowest.values()]
    models = pd.DataFrame(
        {
            "N": hyperparameter_counts(branches),
            "2^N": dict(zip(MODELS, rules[".W"], strict=True)),
            "tasks won": {name: wins.count(name) for name in MODELS},
        }
    )
    print(models.to_markdown(floatfmt=".3g"), "\n")
    for budget in BUDGETS:
        schedules = methods(budget)
        n = max(sum(b.n for b in schedule.brackets) for schedule in schedules.values())
        rows: list[tuple[Any, ...]] = []
        for (task, pools), (rule, weights) in product(recorded.items(), rules.items()):
            for repetition in range(repetitions):
                # The schedules of a rule see the same sequence of configurations.
                key = zlib.crc32(f"{task}{rule}".encode())
                drawn = draw(weights, pools, n, STREAMS.generator("draws", key, repetition))
                for name, schedule in schedules.items():
                    rows.append((task, name + rule, *search(schedule, pools, drawn)))
        runs = pd.DataFrame(rows, columns=["task", "method", "test", "seconds"])
        means = runs.groupby(["task", "method"]).mean()
        print_ranks(f"Budget {budget}, test loss", means, list(schedules))


def print_ranks(title: str, means: pd.DataFrame, schedules: list[str]) -> None:
    """Ranks, the omnibus test, and each schedule weighted against itself uniform."""
    scores = means["test"].unstack()[[s + rule for s in schedules for rule in ("", ".W")]]
    result = compare(scores)
    table = pd.DataFrame(
        {
            "average rank": result.ranks,
            "mean loss": scores.mean(),
            "seconds": means["seconds"].unstack()[scores.columns].mean(),
        }
    ).sort_values("average rank")
    print(f"## {title}\n\n{table.to_markdown(floatfmt='.3g')}\n")
    if result.iman_davenport is not None:
        print(f"Iman-Davenport: p = {result.iman_davenport.F_p:.2g}\n")
    for pair in result.pairs.to_dict("records"):
        names = pair["method_a"], pair["method_b"]
        if len({name.removesuffix(".W") for name in names}) == 1:
            counts = [pair["wins"], pair["ties"], pair["losses"]]
            counts = counts if names[0].endswith(".W") else counts[::-1]
            print(
                f"{min(names)}: weighted wins, ties and loses {counts} tasks,"
                f" p = {pair['p_wilcoxon']:.2g}, {pair['p_finner']:.2g} by Finner over all pairs"
            )


if __name__ == "__main__":
    run_command(__doc__, record, report)
