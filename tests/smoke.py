"""Every example and every benchmark runs, as small as it can be: ``make smoke``.

    python tests/smoke.py [PART OF A NAME ...]

Benchmarks that need recorded runs get small invented tables of the same form. Examples that state
no need of the extra ``evidence`` run without pandas.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SECONDS = 1800  # on a busy machine

# Without pandas, like who installs an extra of one framework.
PLAIN = (
    "quickstart.py --quick",
    "transfer_lightgbm.py --n-trials 3 --seeds 1",
    "transfer_optuna.py --n-earlier 3 --n-trials 4 --seeds 1",
    "pmf_recommend.py",
    "hyperopt_gbqr.py --n-trials 8 --seeds 1",
    "smac_gbqr.py --n-trials 5",
    "warm_start_optuna.py --n-trials 3 --seeds 1",
    "warm_start_smac.py --n-trials 3 --seeds 1",
    "warm_start_hyperopt.py --n-trials 3 --seeds 1",
    "boasf_optuna.py --data breast_cancer --seconds 2",
    "boasf_hyperopt.py --data breast_cancer --seconds 2",
    "weighted_hyperband.py --data breast_cancer --seconds 2",
)
BENCHMARKS = (
    "benchmarks/benchmark_arms.py run --seeds 1 --every 2 --methods 'BOASF,Hyperopt TPE'",
    "benchmarks/benchmark_arms.py report --every 2",
    "benchmarks/benchmark_claims.py overhead --at 20 --cycles 3 --repeats 1",
    "benchmarks/benchmark_claims.py failures --quick",
    "benchmarks/benchmark_claims.py cost --every 15 --seeds 1",
    "benchmarks/benchmark_designs.py regret --sources svm_grid --n-jobs 1",
    "benchmarks/benchmark_designs.py learner --sources svm_grid --folds 2",
    "benchmarks/benchmark_hyperopt.py quality --every-svm-grid 6 --every-oboe 15 --seeds 1",
    "benchmarks/benchmark_hyperopt.py functions --n-trials 3 --seeds 1",
    "benchmarks/benchmark_hyperopt.py overhead --at 20 --cycles 2 --repeats 1",
    "benchmarks/benchmark_plateaus.py --smoke",
    "benchmarks/benchmark_pmf.py oboe --methods random portfolio svd pmf --trials 4",
    "benchmarks/benchmark_smac.py quality --tables 1",
    "benchmarks/benchmark_smac.py seconds --tables 1",
    "benchmarks/benchmark_smac.py overhead --at 20 --cycles 1",
    "benchmarks/benchmark_store.py kills writers reading --quick",
    "benchmarks/benchmark_transfer.py regret --tables svm_grid --trials 10 --every 3",
    "benchmarks/benchmark_transfer.py adversarial --tables svm_grid --trials 10 --every 3",
    "benchmarks/benchmark_tst.py --every 2 --trials 4",
    "benchmarks/benchmark_warm_start.py --learners knn --data digits --seeds 1 --trials 12"
    " --optimizers TST",
    "benchmarks/benchmark_weighted.py record --quick --out pools",
    "benchmarks/benchmark_weighted.py report --repetitions 3 --quick --out pools",
    "benchmarks/build_memory.py status --journal journal",
    "benchmarks/compare_samplers.py --methods GBQR,random --sources svm_grid,oboe --n-trials 12"
    " --quick",
)

EXPECTED = {
    "quickstart.py": "TPESampler (default)",
    "transfer_optuna.py": "TST",
    "pmf_recommend.py": "pipelines x",
    "hyperopt_gbqr.py": "What drove it: {'algo': 'gb",
    "benchmarks/benchmark_claims.py failures": "GBQRSampler",
    "benchmarks/benchmark_hyperopt.py functions": "noisy_wave",
}
"""What commands print that begin so."""


def invent_tables(folder: Path) -> None:
    """Runs of two sources, in the files that ``recorded_tables.py`` reads."""
    rng = np.random.default_rng(0)
    svm, oboe = folder / "svm_grid", folder / "oboe"
    for path in (svm, oboe):
        path.mkdir(parents=True)
    names = [f"set{i}" for i in range(6)]
    costs = 2.0 ** np.arange(-6, 6)
    grid = [("linear", c, np.nan, np.nan) for c in costs]
    grid += [("rbf", c, np.nan, gamma) for c, gamma in product(costs, (0.01, 0.1, 1.0))]
    grid += [("poly", c, degree, np.nan) for c, degree in product(costs, (2, 3))]
    frame = pd.DataFrame(grid, columns=["kernel", "C", "degree", "gamma"])
    frame["config_id"] = range(len(frame))
    quality = rng.normal(size=len(frame))
    parts = [
        frame.assign(dataset=n, accuracy=0.7 + 0.05 * (quality + rng.normal(size=len(frame))))
        for n in names
    ]
    pd.concat(parts).to_csv(svm / "svm_grid.csv.gz", index=False)
    features = pd.DataFrame(rng.random((len(names), 4)), columns=list("abcd"))
    features.assign(dataset=names).to_csv(svm / "metafeatures.csv", index=False)

    configs = pd.DataFrame(
        [("AB", json.dumps({"n_estimators": n, "rate": r})) for n in (50, 100) for r in (1, 2)]
        + [("kNN", json.dumps({"k": k})) for k in range(1, 70)]
        + [("GNB", json.dumps({}))],
        columns=["algorithm", "hyperparameters"],
    )
    configs.insert(0, "config_id", range(len(configs)))
    configs.to_csv(oboe / "configs.csv", index=False)
    good = rng.normal(size=len(configs))
    runs = [
        configs.assign(
            dataset_id=i,
            balanced_error_rate=0.3 + 0.05 * (good + rng.normal(size=len(configs))),
            runtime_s=np.exp(rng.normal(size=len(configs))),
        )
        for i in range(1, 16)
    ]
    pd.concat(runs).to_csv(oboe / "oboe.csv.gz", index=False)
    sizes = pd.DataFrame({"dataset_id": range(1, 16), "n": rng.integers(50, 500, 15)})
    sizes.assign(d=7).to_csv(oboe / "dataset_sizes.csv", index=False)


def block_pandas(folder: Path) -> None:
    """Make a folder on ``PYTHONPATH`` hide pandas."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'pandas':\n"
        "            raise ModuleNotFoundError(\"No module named 'pandas'\", name=name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
    )


def run(command: str, folder: Path, environment: dict[str, str]) -> str:
    """Empty if the command runs and prints what is expected, else what it wrote."""
    script, *arguments = shlex.split(command)
    try:
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / script), *arguments],
            cwd=folder,
            env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"takes more than {SECONDS} s"
    if done.returncode == 0:
        missing = [
            text
            for begin, text in EXPECTED.items()
            if command.startswith(begin) and text not in done.stdout
        ]
        return f"{done.stdout}prints no {missing[0]!r}" if missing else ""
    return f"{done.stdout}{done.stderr}"


def main() -> int:
    chosen = [
        (command, plain)
        for commands, plain in ((PLAIN, True), (BENCHMARKS, False))
        for command in commands
        if not sys.argv[1:] or any(part in command for part in sys.argv[1:])
    ]
    n_failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        invent_tables(folder / "data")
        block_pandas(folder / "plain")
        for command, plain in chosen:
            environment = {"AUTOML_PLUGINS_DATA": str(folder / "data")}
            if plain:
                environment["PYTHONPATH"] = str(folder / "plain")
            start = time.monotonic()
            trouble = run(command, folder, environment)
            n_failed += bool(trouble)
            seconds = time.monotonic() - start
            print(f"{seconds:5.1f} s  {command}{': FAILED' if trouble else ''}", flush=True)
            if trouble:
                print(trouble)
    print(f"{len(chosen) - n_failed} of {len(chosen)} commands run.")
    return min(n_failed, 1)


if __name__ == "__main__":
    sys.exit(main())
