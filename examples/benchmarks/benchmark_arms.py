"""Which arm to pull: BOASF and every bandit against TPE over the whole space, by the clock.

Twelve scikit-learn algorithms on recorded data sets (``oboe`` of the recorded runs). The clock
runs on recorded seconds; a search has 10 % or 25 % of the time that the full grid of its data set
takes, and evaluations that end later do not count. Searches are appended to a file, so an
interrupted run continues where it stopped.

    benchmark_arms.py run --n-jobs 2  # what is missing
    benchmark_arms.py run --methods "BOASF"  # some methods
    benchmark_arms.py run --every 9  # 40 data sets in place of 120
    benchmark_arms.py report
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pandas as pd
from automl_plugins.adapters import hyperopt, optuna
from automl_plugins.adapters.optuna import AutoSampler
from common import Quiet, run_command
from hyperopt import rand, tpe
from recorded_tables import oboe

from automl_plugins import bandits
from automl_plugins.replay import Method, Table, read_runs, replay
from automl_plugins.statistics import compare

FOLDER = Path("build/arms")
BUDGETS = (0.10, 0.25)  # of the time of the full grid
TWICE = "random 2x"
CONTROL = "Hyperopt TPE"


def blind_methods() -> dict[str, Method]:
    """Methods that ignore the budget: a search with a shorter one begins a longer one."""
    policies = {
        "epsilon-greedy": bandits.EpsilonGreedy(),
        "decreasing epsilon": bandits.DecreasingEpsilon(),
        "UCB1": bandits.UCB1(),
        "UCB1-tuned": bandits.UCB1Tuned(),
        "Thompson": bandits.Thompson(),
        "top-two Thompson": bandits.TopTwoThompson(),
        "increasing effort": bandits.IncreasingEffort(),
        "random arm": bandits.RandomArm(),
        "always the first best": bandits.AlwaysBest(),
        "MaxUCB": bandits.MaxUCB(),
        "MaxUCB by seconds": bandits.MaxUCB(unit="seconds"),
    }
    return {
        CONTROL: hyperopt.optimizer(tpe.suggest),
        "random": hyperopt.optimizer(rand.suggest),
        "weighted": hyperopt.optimizer(hyperopt.weighted),
        "AutoSampler": optuna.optimizer("AutoSampler"),
        "AutoSampler by seconds": optuna.optimizer("AutoSampler", cost=optuna.SECONDS),
        **{name: hyperopt.optimizer(hyperopt.bandit, policy=p) for name, p in policies.items()},
    }


def planning_methods(budget: float) -> dict[str, Method]:
    """Methods that divide a budget among the arms."""
    boasf = partial(hyperopt.optimizer, "boasf", budget_seconds=budget)
    in_optuna = partial(
        optuna.optimizer, "BOASFSampler", arm="algorithm", seconds=budget, cost=optuna.SECONDS
    )
    return {
        "BOASF": boasf(),
        "BOASF mean": boasf(score="mean"),
        "BOASF as printed": boasf(score="mean", carry_debts=False),
        "BOASF in Optuna": in_optuna(),
        "BOASF of AutoSampler": in_optuna(inner=partial(AutoSampler, memory=None)),
        "BOASF of AutoSampler by seconds": in_optuna(
            inner=partial(AutoSampler, memory=None, cost=optuna.SECONDS)
        ),
    }


def tables(every: int) -> list[Table]:
    """Every ``every``-th data set; the unit of time is that of its full grid."""
    found = []
    for table in oboe(every):
        assert table.seconds is not None
        seconds = table.seconds / table.seconds.sum()
        found.append(table.with_losses(table.name, table.losses, seconds=seconds))
    return found


def run(methods: str = "", every: int = 3, seeds: int = 3, n_jobs: int = 1) -> None:
    """Run the missing searches of some methods (separated by commas) or of all."""
    chosen = tables(every)
    wanted = [name.strip() for name in methods.split(",") if name.strip()]

    def search(every_method: dict[str, Method], budget: float, file: str) -> None:
        picked = {n: Quiet(m) for n, m in every_method.items() if not wanted or n in wanted}
        if picked:
            replay(
                picked,
                chosen,
                budget=budget,
                unit="seconds",
                seed=range(seeds),
                n_jobs=n_jobs,
                max_trials=2000,
                path=FOLDER / file,
            )

    for budget in BUDGETS:
        search(planning_methods(budget), budget, f"planned-{budget:.2f}.csv")
    twice = 2 * max(BUDGETS)
    search({TWICE: blind_methods()["random"]}, twice, "twice.csv")
    search(blind_methods(), max(BUDGETS), "blind.csv")


def final(budget: float) -> pd.DataFrame:
    """Regret at the end of a budget, data sets x methods, mean over the seeds."""
    parts = []
    for file, scale in (("blind.csv", 1), ("twice.csv", 2), (f"planned-{budget:.2f}.csv", 1)):
        if (FOLDER / file).exists():
            runs = read_runs(FOLDER / file)
            in_time = runs[runs.seconds <= scale * budget]
            best = in_time.groupby(["table", "method", "seed"]).regret.min()
            parts.append(best.reindex(searches(FOLDER / file), fill_value=1.0))
    means = pd.concat(parts).groupby(["table", "method"]).mean()
    return pd.DataFrame(means.unstack())


def searches(path: Path) -> pd.MultiIndex:
    """All searches of a file, also those in which nothing finished in time."""
    lines = Path(f"{path}.journal").read_text(encoding="utf-8").splitlines()[1:]
    entries = [json.loads(line) for line in lines]
    keys = [(e["table"], e["method"], e["seed"]) for e in entries]
    return pd.MultiIndex.from_tuples(keys, names=["table", "method", "seed"])


def report(every: int = 3, control: str = CONTROL) -> None:
    """Print a table for each budget, against one of the methods."""
    for budget in BUDGETS:
        means = final(budget)
        wanted = [t.name for t in oboe(every)]
        means = means.loc[[name for name in wanted if name in means.index]]
        complete = means.dropna(axis=1)
        if missing := [m for m in means if m not in complete]:
            print(f"not yet run in full: {', '.join(map(str, missing))}")
        result = compare(complete, control=control)
        pairs = result.pairs.set_index("method_b")
        rows = {}
        for method in complete.mean().sort_values().index:
            values, gap = 100 * complete[method], complete[method] - complete[control]
            counts = f"{sum(gap < 0)}/{sum(gap == 0)}/{sum(gap > 0)}"
            rows[method] = values.mean(), values.median(), counts, pairs.p_finner.get(method)
        columns = ["mean regret %", "median %", f"against {control}", "p (Finner)"]
        table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
        print(f"\n## {budget:.0%} of the full grid's time, {len(complete)} data sets\n")
        print(table.to_markdown(floatfmt=("", ".2f", ".2f", "", ".2g")))


if __name__ == "__main__":
    run_command(__doc__, run, report)
