"""The algorithms of this package in Hyperopt beside its own TPE, on recorded tables.

    benchmark_hyperopt.py quality

Shown are the mean normalised regret in percent, and whether the difference to TPE is significant.
"""

from __future__ import annotations

from automl_plugins.adapters.hyperopt import ei_per_second, gbqr, optimizer
from common import make_parser, mean_regrets, silence
from hyperopt import tpe
from recorded_tables import oboe, svm_grid

from automl_plugins.replay import replay
from automl_plugins.statistics import compare

AT = (10, 20, 30, 50)  # trials at which regrets are shown
METHODS = {
    name: optimizer(algo, name=name)
    for name, algo in {"tpe": tpe.suggest, "gbqr": gbqr, "ei_per_second": ei_per_second}.items()
}


def main() -> None:
    parser = make_parser(__doc__, "quality")
    parser.add_argument("--every-svm-grid", type=int, default=1)
    parser.add_argument("--every-oboe", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--n-jobs", type=int, default=1)
    args = parser.parse_args()
    silence()
    tables = {"svm_grid": svm_grid()[:: args.every_svm_grid], "oboe": oboe(args.every_oboe)}
    for source, chosen in tables.items():
        seeds = range(args.seeds)
        runs = replay(METHODS, chosen, budget=max(AT), seed=seeds, n_jobs=args.n_jobs)
        print(f"{source}, {len(chosen)} tables, {args.seeds} seeds: regret in %")
        print(mean_regrets(runs, AT).to_string(), flush=True)
        for n in (30, 50):
            result = compare(runs[runs["trial"] <= n], control="tpe")
            print(f"after {n} trials, against tpe:\n{result}\n", flush=True)


if __name__ == "__main__":
    main()
