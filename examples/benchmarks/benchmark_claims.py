"""Overhead, failures, constraints and cost awareness, beside Optuna's TPE in the same run.

benchmark_claims.py overhead  # ms of a trial, 10 floats, 50 parameters, branches, XGBoost's names
benchmark_claims.py overhead --spaces wide options many --at 100 --cycles 5 --repeats 1
benchmark_claims.py failures
benchmark_claims.py chance  # failures that no configuration is to blame for
benchmark_claims.py constraints
benchmark_claims.py cost  # needs the recorded runs
benchmark_claims.py long  # several hundred trials on functions of many optima
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import optuna
from automl_plugins.adapters.optuna import (
    SECONDS,
    AutoSampler,
    EIPerSecondSampler,
    GBQRSampler,
    optimizer,
)
from common import by_search, mean_regrets, run_command
from optuna.samplers import BaseSampler, CmaEsSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState
from recorded_tables import oboe
from smooth_functions import SMOOTH

from automl_plugins.replay import Method, replay

COST_RUNS = Path("build/cost.csv")  # an interrupted run continues from it

# --- overhead of a proposal ---------------------------------------------------------------


def floats(trial: optuna.Trial, n: int) -> float:
    """A bowl of ``n`` floats."""
    return sum((trial.suggest_float(f"x{i}", 0, 1) - 0.4) ** 2 for i in range(n))


def mixed(trial: optuna.Trial) -> float:
    """50 parameters: 30 floats, 10 whole numbers, 10 choices."""
    value = floats(trial, 30)
    value += sum(abs(trial.suggest_int(f"n{i}", 1, 100) - 40) / 100 for i in range(10))
    return value + sum(trial.suggest_categorical(f"c{i}", "abcd") != "b" for i in range(10))


def branches(trial: optuna.Trial) -> float:
    """16 branches with 3 floats each."""
    branch = trial.suggest_categorical("branch", range(16))
    return branch + sum((trial.suggest_float(f"{branch}.{i}", 0, 1) - 0.4) ** 2 for i in range(3))


def boosting(trial: optuna.Trial) -> float:
    """The 9 hyperparameters of XGBoost by their names, so that a bundled memory is used."""
    shares = [trial.suggest_float(n, 0.3, 1) for n in ("subsample", "colsample_bytree")]
    names = ("learning_rate", "reg_alpha", "reg_lambda", "gamma", "min_child_weight")
    logs = [math.log10(trial.suggest_float(n, 1e-3, 1, log=True)) / 3 for n in names]
    sizes = [
        trial.suggest_int("n_estimators", 10, 500) / 500,
        trial.suggest_int("max_depth", 1, 12),
    ]
    return sum((x - 0.4) ** 2 for x in [*shares, *logs, sizes[0], sizes[1] / 12])


def options(trial: optuna.Trial, n: int) -> float:
    """5 floats, and a choice of ``n`` options without parameters of its own."""
    return floats(trial, 5) + trial.suggest_categorical("choice", range(n)) / n


Objective = Callable[[optuna.Trial], float]
SPACES: dict[str, Objective] = {
    "floats": partial(floats, n=10),
    "mixed": mixed,
    "branches": branches,
    "boosting": boosting,
}
LARGE: dict[str, Objective] = {
    "wide": partial(floats, n=200),
    "options": partial(options, n=300),
    "many": partial(options, n=3_000),
}


def milliseconds(
    make: Callable[..., BaseSampler],
    objective: Objective,
    n_trials: int,
    cycles: int,
) -> list[float]:
    """Time of each of ``cycles`` trials after ``n_trials`` random ones, refits included."""
    study = optuna.create_study(sampler=RandomSampler(seed=0))
    study.optimize(objective, n_trials=n_trials)
    study.sampler = make(seed=0)
    # Outside the measurement: the stored trials are read, and the models of both turns fitted.
    study.optimize(objective, n_trials=2)
    ends = [time.perf_counter()]
    study.optimize(
        objective, n_trials=cycles, callbacks=[lambda *_: ends.append(time.perf_counter())]
    )
    return list(1e3 * np.diff(ends))


def _one(_: FrozenTrial) -> float:
    return 1.0


def overhead(
    spaces: Sequence[str] = tuple(SPACES),
    at: Sequence[int] = (100, 200, 1_000, 10_000),
    cycles: int = 50,
    repeats: int = 3,
) -> None:
    """Print milliseconds for a trial, median and mean, and the ratio of the mean to TPE's.

    Samplers take turns. Most trials need no fit: the mean, refits included, lies above the median.
    """
    samplers: dict[str, Callable[..., BaseSampler]] = {
        "TPESampler": TPESampler,
        "AutoSampler": AutoSampler,
        "GBQRSampler": GBQRSampler,
        "EIPerSecondSampler": partial(EIPerSecondSampler, cost=_one),
    }
    print(f"{'space':9s} {'sampler':20s} {'trials':>7s} {'median':>7s} {'mean':>7s} {'/ TPE':>6s}")
    for space, n_trials in product(spaces, at):
        times: dict[str, list[float]] = {name: [] for name in samplers}
        for _ in range(repeats):
            for name, make in samplers.items():
                times[name] += milliseconds(make, (SPACES | LARGE)[space], n_trials, cycles)
        for name, values in times.items():
            median, mean = np.median(values), np.mean(values)
            ratio = mean / np.mean(times["TPESampler"])
            shown = f"{n_trials:7d} {median:7.1f} {mean:7.1f} {ratio:6.2f}"
            print(f"{space:9s} {name:20s} {shown}", flush=True)


# --- failing region -----------------------------------------------------------------------


def failing(trial: optuna.Trial, how: str) -> float:
    """A bowl whose optimum lies behind the border of a crash region."""
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    if x > 0.6:
        if how == "raise":
            raise RuntimeError("out of memory")
        return math.nan
    return (x - 0.62) ** 2 + (y - 0.3) ** 2


def failures(seeds: int = 12, n_trials: int = 100) -> None:
    """Print the share of crashes in the second half of the trials, and the best loss."""
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)  # failing trials are errors in its log
    late = n_trials // 2
    span = f"crashes {late}-{n_trials - 1}"
    print(f"{'sampler':20s} {'fails by':>9s} {span:>14s} {'best loss':>10s}")
    for how in ("raise", "nan"):
        for make in (TPESampler, AutoSampler, GBQRSampler, EIPerSecondSampler):
            crashes, best = [], []
            for seed in range(seeds):
                study = optuna.create_study(sampler=make(seed=seed))
                study.optimize(partial(failing, how=how), n_trials=n_trials, catch=(RuntimeError,))
                crashes.append(np.mean([t.state == TrialState.FAIL for t in study.trials[late:]]))
                best.append(study.best_value)
            name = make.__name__
            print(f"{name:20s} {how:>9s} {np.mean(crashes):14.1%} {np.mean(best):10.5f}")


def chance(seeds: int = 10, n_trials: int = 50) -> None:
    """Print regrets where trials fail by chance, whatever their configuration."""
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    print(f"{'sampler':20s} {'fail':>5s} {'median regret':>14s} {'largest':>9s}")
    for share, make in product((0.0, 0.2, 0.4), (TPESampler, AutoSampler, GBQRSampler)):
        best = []
        for seed in range(seeds):
            study = optuna.create_study(sampler=make(seed=seed))
            objective = partial(failing_by_chance, np.random.default_rng(seed), share)
            study.optimize(objective, n_trials=n_trials, catch=(RuntimeError,))
            best.append(study.best_value)
        print(f"{make.__name__:20s} {share:5.0%} {np.median(best):14.2g} {max(best):9.2g}")


def failing_by_chance(rng: np.random.Generator, share: float, trial: optuna.Trial) -> float:
    """A bowl of a number and an integer; ``share`` of the trials fail."""
    x, y = trial.suggest_float("x", -5, 5), trial.suggest_int("y", 0, 10)
    if rng.random() < share:
        raise RuntimeError("the machine was taken away")
    return x**2 + y


# --- constraints --------------------------------------------------------------------------


Told = Callable[[float], float]  # what a search is told of a constraint


def line(trial: optuna.Trial, told: Told) -> float:
    """A bowl whose optimum lies behind a line; the best that is allowed is 0.11."""
    x, y = trial.suggest_float("x", 0, 2), trial.suggest_float("y", 0, 2)
    trial.set_constraint("line", told(x + y - 1.13))
    return (x - 1.0) ** 2 + (y - 0.6) ** 2


def curves(trial: optuna.Trial, told: Told) -> float:
    """A bowl of three numbers whose optimum lies in a ball, and beyond a cylinder."""
    x = np.array([trial.suggest_float(name, 0, 1) for name in "xyz"])
    trial.set_constraint("ball", told(0.09 - float(((x - 0.6) ** 2).sum())))
    trial.set_constraint("cylinder", told(float((x[:2] ** 2).sum()) - 0.6))
    return float(((x - (0.55, 0.65, 0.6)) ** 2).sum())


def network(trial: optuna.Trial) -> float:
    """Larger networks are better, as far as memory and time allow."""
    layers = trial.suggest_int("layers", 1, 12)
    width = trial.suggest_int("width", 16, 2048, log=True)
    batch = trial.suggest_int("batch", 8, 1024, log=True)
    rate = math.log10(trial.suggest_float("rate", 1e-5, 1.0, log=True))
    sparse = trial.suggest_categorical("layer", ("dense", "sparse")) == "sparse"
    weights = layers * width**2 * (0.1 if sparse else 1.0)
    trial.set_constraint("memory", math.log10((16 * weights + 8 * batch * layers * width) / 5e7))
    trial.set_constraint("time", math.log10(weights * (1.0 + 64.0 / batch) * (1 + sparse) / 2e6))
    loss = 0.05 * (7.0 - math.log10(weights)) ** 2 + 0.1 * (rate + 3.0 - 0.001 * batch) ** 2
    return loss + 0.02 * abs(math.log2(batch) - 6.0) + 0.02 * abs(layers - 5) + 0.05 * sparse


CONSTRAINED: dict[str, Objective] = {
    "line": partial(line, told=float),
    "yes_or_no": partial(line, told=lambda excess: float(excess > 0.0)),
    "curves": partial(curves, told=float),
    "hinges": partial(curves, told=lambda excess: max(0.0, excess)),
    "network": network,
}


def constraints(seeds: int = 10, n_trials: int = 50, late: int = 30) -> None:
    """Print how many of the last trials break a constraint, and the best loss that keeps all."""
    print(f"{'objective':10s} {'sampler':12s} {'broken':>7s} {'mean best loss':>15s}")
    for objective, make in product(CONSTRAINED, (TPESampler, AutoSampler, GBQRSampler)):
        broken, best = [], []
        for seed in range(seeds):
            study = optuna.create_study(sampler=make(seed=seed))
            study.optimize(CONSTRAINED[objective], n_trials=n_trials)
            breaks = np.array([max(t.constraints.values()) > 0.0 for t in study.trials])
            losses = np.array([t.values[0] for t in study.trials])
            broken.append(breaks[-late:].mean())
            best.append(losses[~breaks].min(initial=math.inf))
        shown = f"{np.mean(broken):7.0%} {np.mean(best):15.4f}"
        print(f"{objective:10s} {make.__name__:12s} {shown}", flush=True)


# --- expected improvement per second ------------------------------------------------------


COST_SAMPLERS: dict[str, Method] = {
    "TPESampler": optimizer(TPESampler),
    "EIPerSecondSampler": optimizer(EIPerSecondSampler, cost=SECONDS),
    "cost-blind self": optimizer(EIPerSecondSampler, cost=SECONDS, cost_exponent=0.0),
    "equal costs": optimizer(EIPerSecondSampler, cost=_one),
}


def cost(every: int = 6, seeds: int = 3, n_jobs: int = 1) -> None:
    """Print the simulated time to TPE's final best on oboe, as a ratio to TPE's own time."""
    frame = replay(
        COST_SAMPLERS, oboe(every), budget=100, seed=range(seeds), n_jobs=n_jobs, path=COST_RUNS
    )
    searches = by_search(frame)
    for name in ("EIPerSecondSampler", "cost-blind self"):
        ratios, early = [], 0
        for key, tpe in searches["TPESampler"].items():
            own, target = searches[name][key], tpe["regret"].iloc[-1]
            first = int(np.argmax(tpe["regret"] <= target))
            reached = np.flatnonzero(own["regret"] <= target)
            # Both were still in their start designs (TPE: 10 trials, ours: 13).
            if first < 10 and len(reached) and reached[0] < 13:
                early += 1
            elif len(reached):
                ratios.append(own["seconds"].iloc[reached[0]] / tpe["seconds"].iloc[first])
            else:
                ratios.append(math.inf)
        print(
            f"{name}: median ratio {np.median(ratios):.3f} over {len(ratios)} pairs, never reached"
            f" {np.mean(np.isinf(ratios)):.1%}; {early} pairs decided in the start designs"
        )
    print(f"percent regret\n{mean_regrets(frame, (30, 50, 100)).to_string()}")


# --- long searches --------------------------------------------------------------------------


def waves_in_branches(trial: optuna.Trial) -> float:
    """8 branches, each a bowl with waves of 3 numbers."""
    branch = trial.suggest_categorical("branch", range(8))
    x = np.array([trial.suggest_float(f"{branch}.{i}", -3, 3) for i in range(3)])
    x += 0.15 * branch - 0.7
    return float(branch + (x**2 - 3 * np.cos(2 * np.pi * x) + 3).sum())


def smooth(name: str, trial: optuna.Trial) -> float:
    """One of the smooth functions, on the unit cube."""
    function, d = SMOOTH[name]
    return function(np.array([trial.suggest_float(f"x{i}", 0, 1) for i in range(d)]))


LONG: dict[str, Objective] = {
    **{name: partial(smooth, name) for name in ("rastrigin_5", "rosenbrock_8", "ackley_12")},
    "waves_in_branches": waves_in_branches,
}


def long(
    at: Sequence[int] = (100, 200, 300, 400, 500), seeds: int = 5, first_seed: int = 0
) -> None:
    """Print the best loss (geometric mean over seeds) after some trials; the least one is 0."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    print(f"{'function':17s} {'sampler':12s} {' '.join(f'{n:>7d}' for n in at)}")
    for function, make in product(LONG, (TPESampler, CmaEsSampler, AutoSampler)):
        if function == "waves_in_branches" and make is CmaEsSampler:
            continue  # which draws the parameters of a branch at random
        logs = []
        for seed in range(first_seed, first_seed + seeds):
            study = optuna.create_study(sampler=make(seed=seed))
            study.optimize(LONG[function], n_trials=max(at))
            best = np.minimum.accumulate([trial.values[0] for trial in study.trials])
            logs.append(np.log(best[np.array(at) - 1]))
        shown = " ".join(f"{value:7.3g}" for value in np.exp(np.mean(logs, axis=0)))
        print(f"{function:17s} {make.__name__:12s} {shown}", flush=True)


if __name__ == "__main__":
    run_command(
        __doc__, overhead, failures, chance, constraints, cost, long, spaces=SPACES | LARGE
    )
