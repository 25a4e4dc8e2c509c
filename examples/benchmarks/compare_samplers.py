"""The evidence page: every sampler of this package against the samplers one would use instead.

One protocol for all: recorded tables, one search space, 60 trials, a seed of its own for every
search. Searches are appended to a file, so an interrupted run goes on where it stopped; the page
is written from that file.

    compare_samplers.py  # run what is missing, write the page
    compare_samplers.py --quick  # two tables of each source
    compare_samplers.py --methods "GBQR,GBQR without doubt" --no-page
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
from automl_plugins.adapters import hyperopt, optuna, smac
from common import Quiet, run_command
from optuna.samplers import CmaEsSampler, GPSampler, RandomSampler, TPESampler
from recorded_tables import adaboost, oboe, svm_grid
from static_figures import save_svg

from automl_plugins.replay import Method, Table, replay
from automl_plugins.statistics import BudgetComparison, Comparison, compare
from automl_plugins.visualization import plot_rank_diagram, plot_ranks, plot_regret

N_TRIALS = 60
SOURCES: dict[str, Callable[[], list[Table]]] = {
    "svm_grid": lambda: svm_grid()[::2],
    "oboe": partial(oboe, every=18),
    "adaboost": partial(adaboost, every=4),
}
OURS: dict[str, Method] = {
    "AutoSampler": optuna.optimizer("AutoSampler"),
    "GBQR": optuna.optimizer("GBQRSampler"),
    "GBQR thesis": optuna.optimizer("GBQRSampler.thesis"),
    "EI per second": optuna.optimizer("EIPerSecondSampler", cost=optuna.SECONDS),
    "Forest EI": optuna.optimizer("SurrogateSampler", surrogate="random_forest"),
}
PEERS: dict[str, Method] = {
    "Optuna TPE": optuna.optimizer(TPESampler),
    "Optuna TPE grouped": optuna.optimizer(TPESampler, multivariate=True, group=True),
    "Optuna GP": optuna.optimizer(GPSampler, warn_independent_sampling=False),
    "Optuna CMA-ES": optuna.optimizer(CmaEsSampler, warn_independent_sampling=False),
    "Hyperopt TPE": hyperopt.optimizer("tpe"),
    "SMAC": smac.optimizer("HyperparameterOptimizationFacade"),
    "random": optuna.optimizer(RandomSampler),
}
#: Each of their proposals takes a tenth of a second or more: they get seeds of their own.
SLOW = ("GBQR thesis", "Optuna GP", "SMAC")
#: Not on the page: what each part of GBQR is worth.
ABLATIONS: dict[str, Method] = {
    "GBQR without doubt": optuna.optimizer("GBQRSampler", doubt=0.0),
    "GBQR without balance": optuna.optimizer("GBQRSampler", balance=None),
    "GBQR one model": optuna.optimizer("GBQRSampler", n_models=1),
}
TWICE = "random 2x"


def run(
    methods: Mapping[str, Method],
    tables: list[Table],
    seeds: int,
    n_jobs: int,
    folder: Path,
    n_trials: int = N_TRIALS,
) -> pd.DataFrame:
    """All searches as one tidy frame; what the folder holds already is not run again."""
    shared: dict[str, Any] = {"seed": range(seeds), "n_jobs": n_jobs}
    quiet = {name: Quiet(method) for name, method in methods.items()}
    frames = [replay(quiet, tables, budget=n_trials, path=folder / "runs.csv", **shared)]
    if "random" in methods:
        twice = replay(
            {TWICE: quiet["random"]},
            tables,
            budget=2 * n_trials,
            path=folder / "random.csv",
            **shared,
        )
        frames.append(halved(twice))
    return pd.concat(frames, ignore_index=True)


def halved(runs: pd.DataFrame) -> pd.DataFrame:
    """Two evaluations counted as one trial, as if made on two machines."""
    second = runs[runs.trial % 2 == 0]
    return second.assign(trial=second.trial // 2, seconds=second.seconds / 2)


# --- the page -------------------------------------------------------------------------------

BUDGETS = (10, 30, 60)
_INTRODUCTION = """\
# Evidence

How the samplers of this package compare with the ones you would use instead, on recorded tuning
runs: real models, really trained. Losses are shown like wins. Written by

    {command}

{n_methods} methods, {n_tables} tables ({tables}).
Repetitions: {seeds}.
Every search has a seed of its own, and a table counts with the mean of its searches. *Regret* is
the distance of the best loss so far to the best recorded one, as a share of the distance between
the best and the worst; its mean over the tables is the ADTM. `random 2x` is random search with
twice the trials. All methods run with their defaults unless the name says more; Optuna's TPE is
multivariate with constant liar by default since version 5. Each table below says which method is
better than `{control}` and which is worse, in its W/T/L column: tables that `{control}` wins, ties
and loses. The defaults of `AutoSampler` were chosen on half of the tables of these sources, so
the [families of problems](families.md), judged on the other half, are the stricter test of it.
"""


def write_page(runs: pd.DataFrame, folder: Path, *, control: str, ours: list[str]) -> Path:
    """Write ``README.md`` and its plots into ``folder``."""
    runs = runs.assign(source=runs["table"].str.partition("/")[0])
    present = list(runs["method"].unique())
    control = control if control in present else present[0]
    last = int(runs.groupby(["table", "method", "seed"])["trial"].max().max())
    budgets = [b for b in BUDGETS if b <= last] or [last]
    sources = runs.groupby("source", sort=False)["table"].nunique()
    parts = [
        _INTRODUCTION.format(
            command="python examples/benchmarks/compare_samplers.py --out docs/evidence",
            n_methods=len(present),
            n_tables=int(sources.sum()),
            tables=", ".join(f"{name} {n}" for name, n in sources.items()),
            seeds=_repetitions(runs),
            control=control,
        )
    ]
    overall = compare(runs, control=control, budgets=budgets)
    parts.append("## All tables\n\n" + _losses(overall, ours))
    parts.append(_plots(runs, folder, "all", budgets[-1]))
    parts.append(_tables(overall))
    for source in sources.index:
        of_source = runs[runs["source"] == source]
        parts.append(f"## {source}\n\n" + _plots(of_source, folder, str(source), budgets[-1]))
        parts.append(_tables(compare(of_source, control=control, budgets=budgets)))
        if of_source["seconds"].notna().all():
            parts.append(_by_seconds(of_source, folder, str(source), control))
    page = folder / "README.md"
    page.write_text("\n\n".join(part.strip() for part in parts) + "\n", encoding="utf-8")
    return page


def _repetitions(runs: pd.DataFrame) -> str:
    """``5, but 1 of SMAC``: what most methods have, then the exceptions."""
    counts = runs.groupby("method", sort=False)["seed"].nunique()
    most = int(counts.mode().max())
    others = [f"{n} of {method}" for method, n in counts.items() if n != most]
    return f"{most}, but {', '.join(others)}" if others else str(most)


def _by_seconds(runs: pd.DataFrame, folder: Path, source: str, control: str) -> str:
    """Comparison at equal simulated seconds: on each table, a share of what random search took."""
    total = runs[runs["method"] == "random"].groupby("table")["seconds"].max()
    if not len(total):
        return ""
    shares = runs.assign(seconds=runs["seconds"] / runs["table"].map(total))
    comparison = compare(shares, control=control, budgets=[0.1, 0.3, 1.0], unit="seconds")
    figure = plot_regret(shares, unit="seconds")
    figure.update_xaxes(title="Time, in that of random search")
    save_svg(figure, folder / f"{source}_seconds.svg")
    return (
        f"### {source} by time\n\nThe unit is the time that random search took for all its trials"
        f" on the same table.\n\n![regret by time]({source}_seconds.svg)\n\n" + _tables(comparison)
    )


def _tables(comparison: Comparison) -> str:
    """The comparison one level deeper than it renders itself."""
    return comparison.to_markdown().replace("\n### ", "\n#### ").replace("### ", "#### ", 1)


def _plots(runs: pd.DataFrame, folder: Path, name: str, budget: int) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        "ranks": plot_rank_diagram(compare(runs, budgets=budget)),
        "regret": plot_regret(runs),
        "rank_curves": plot_ranks(runs),
    }
    links = []
    for kind, figure in figures.items():
        file = f"{name}_{kind}.svg"
        save_svg(figure, folder / file)
        links.append(f"![{kind}]({file})")
    return "\n\n".join(links)


def _losses(comparison: Comparison, ours: list[str]) -> str:
    """Where the samplers of this package stand, the losses first."""
    lines = []
    for result in comparison.budgets:
        best = result.ranks.index[0]
        lines.append(
            f"- After {result.budget:g} trials the best average rank is that of {best}"
            f" ({result.ranks.iloc[0]:.2f}). {_worse(result, comparison.control)}"
        )
        for method in ours:
            if method in result.ranks.index and method != comparison.control:
                lines.append(
                    f"  - {method}: rank {result.ranks[method]:.2f}, regret"
                    f" {100 * result.adtm[method]:.2f} %."
                )
    return "\n".join(lines)


def _worse(result: BudgetComparison, control: object) -> str:
    pairs = result.pairs
    lost = pairs[pairs["losses"] > pairs["wins"]]
    columns = lost[["method_b", "wins", "ties", "losses"]]
    ahead = [f"{b} ({w}/{t}/{n})" for b, w, t, n in columns.itertuples(index=False)]
    same = list(pairs[~pairs["different"]]["method_b"])
    return (
        f"{control} loses to {', '.join(ahead) or 'none'} in the number of tables; it is not"
        f" significantly different from {', '.join(map(str, same)) or 'none'}."
    )


def main(
    methods: str = "",
    sources: str = ",".join(SOURCES),
    seeds: int = 5,
    slow_seeds: int = 1,
    n_jobs: int = 1,
    n_trials: int = N_TRIALS,
    quick: bool = False,
    control: str = "AutoSampler",
    no_page: bool = False,
    runs: Path = Path("build/evidence"),
    out: Path | None = None,
) -> None:
    """Run what is missing and write the page.

    Args:
        methods: Names, separated by commas; all but the ablations.
        sources: The same of ``SOURCES``.
        seeds: Searches of each method on each table.
        slow_seeds: The same of each method in ``SLOW``.
        n_jobs: Processes.
        n_trials: Trials of a search.
        quick: Whether two tables of each source are enough.
        control: What the others are compared with.
        no_page: Whether to run only.
        runs: Folder of the searches.
        out: Folder of the page; that of the runs.
    """
    every = OURS | PEERS | ABLATIONS
    names = methods.split(",") if methods else [*OURS, *PEERS]
    if "Optuna GP" in names and find_spec("torch") is None:
        print("Optuna GP is left out: it needs torch, which is not installed.")
        names.remove("Optuna GP")
    tables = [t for s in sources.split(",") for t in SOURCES[s]()[: 2 if quick else None]]
    found = pd.concat(
        [
            run({name: every[name] for name in group}, tables, n, n_jobs, runs, n_trials)
            for group, n in (
                ([name for name in names if name not in SLOW], seeds),
                ([name for name in names if name in SLOW], slow_seeds),
            )
            if group
        ],
        ignore_index=True,
    )
    if not no_page:
        write_page(found, out or runs, control=control, ours=list(OURS))


if __name__ == "__main__":
    run_command(__doc__, main)
