"""The algorithms of this package in Hyperopt beside its own TPE, on recorded tables.

    benchmark_hyperopt.py quality

Prints the mean normalised regret in percent, and whether the difference to TPE is significant.
"""

from __future__ import annotations

from automl_plugins.adapters.hyperopt import auto, ei_per_second, gbqr, optimizer
from common import mean_regrets, run_command
from hyperopt import tpe
from recorded_tables import oboe, svm_grid

from automl_plugins.replay import replay
from automl_plugins.statistics import compare

AT = (10, 20, 30, 50)  # trials at which regrets are shown
ALGOS = {
    **{"tpe": tpe.suggest, "auto": auto(memory=None), "gbqr": gbqr},
    "ei_per_second": ei_per_second,
}
METHODS = {name: optimizer(algo, name=name) for name, algo in ALGOS.items()}


def quality(every_svm_grid: int = 1, every_oboe: int = 6, seeds: int = 3, n_jobs: int = 1) -> None:
    """Compare the algorithms on both sources."""
    tables = {"svm_grid": svm_grid()[::every_svm_grid], "oboe": oboe(every_oboe)}
    for source, chosen in tables.items():
        runs = replay(METHODS, chosen, budget=max(AT), seed=range(seeds), n_jobs=n_jobs)
        print(f"{source}, {len(chosen)} tables, {seeds} seeds: regret in %")
        print(mean_regrets(runs, AT).to_string(), flush=True)
        for n in (30, 50):
            result = compare(runs[runs["trial"] <= n], control="tpe")
            print(f"after {n} trials, against tpe:\n{result}\n", flush=True)


if __name__ == "__main__":
    run_command(__doc__, quality)
