"""Every example and every benchmark runs, as small as it can be: ``make smoke``.

    python tests/smoke.py [PART OF A NAME ...]

Benchmarks that need recorded runs get small invented tables of the same form. Examples run without
pandas. Two scripts run at a time; the commands of one script run in their order, because the later
ones read what the earlier ones have written.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SECONDS = 1800  # on a busy machine
AT_A_TIME = 2  # scripts

FEW = "--n-trials 3 --seeds 1"

# Examples, run without pandas as if one framework's extra was installed, and their output.
PLAIN = {
    f"quickstart.py {FEW}": r"TPESampler: mean log loss 0\.\d+.*AutoSampler: mean log loss 0\.\d+",
    f"transfer_lightgbm.py {FEW}": r"wine, TPE: .*wine, TPE, default first: .*wine, AutoSampler: ",
    f"transfer_optuna.py {FEW}": r"TPESampler \[.*AutoSampler \[.*Trial \d+ was",
    f"warm_start_optuna.py {FEW}": r"30 trials.*cold: best.*expected regret.*warm: best",
    f"warm_start_hyperopt.py {FEW}": r"cold: best error.*warm: best error",
    f"warm_start_smac.py {FEW}": r"Sobol +best error.*meta-learned +best error",
    f"hyperopt_gbqr.py {FEW}": r"tpe\.suggest: best.*gbqr: best.*drove it: Trial \d+ fills a gap",
    f"smac_gbqr.py {FEW}": r"HyperparameterOptimizationFacade: best error.*GBQRFacade: best",
    "pmf_recommend.py --n-trials 3": r"(error 0\.\d+, best so far.*){3}at random: 0\.\d+",
    "boasf_optuna.py --seconds 2": r"4 arms, .*Round 1 \(\d+\.\d s\).*Best accuracy 0\.",
    "boasf_hyperopt.py --seconds 2": r"4 arms, .*Round 1 \(\d+\.\d s\).*Least error 0\.",
    "weighted_hyperband.py --seconds 2": r"3 arms, .*Best accuracy 0\.",
}
BENCHMARKS = (
    "benchmark_arms.py run --seeds 1 --every 2 --methods 'BOASF,Hyperopt TPE'",
    "benchmark_arms.py report --every 2",
    "benchmark_classifiers.py boasf --data breast_cancer --seconds 2",
    "benchmark_choices.py --spaces '1 number, 5 choices' --seeds 1 --trials 12",
    "benchmark_ranges.py --changes shrunk 'fixed, anew' --seeds 1",
    "benchmark_claims.py overhead --at 20 --cycles 3 --repeats 1",
    "benchmark_claims.py failures --seeds 1 --n-trials 16",
    "benchmark_claims.py chance --seeds 1 --n-trials 8",
    "benchmark_claims.py constraints --seeds 1 --n-trials 16",
    "benchmark_claims.py cost --every 15 --seeds 1",
    "benchmark_claims.py long --at 5 12 --seeds 1",
    "benchmark_designs.py regret --sources svm_grid --n-jobs 1",
    "benchmark_designs.py learner --sources svm_grid --folds 2",
    "benchmark_families.py scale --families svm_grid oboe smooth",
    "benchmark_families.py run --families svm_grid oboe smooth --limit 1 --seeds 1"
    " --methods GBQR 'Optuna TPE' 'random 2x'",
    "benchmark_families.py report",
    "benchmark_families.py page --half tuned --control GBQR --out build/families --path page.md",
    'benchmark_fidelity.py --setups HyperbandPruner "SMAC\'s Hyperband" --curves alike --seeds 1'
    " --at 10",
    "benchmark_hyperopt.py quality --every-svm-grid 6 --every-oboe 15 --seeds 1",
    "benchmark_outside.py run --learners knn --data digits --out outside.csv",
    "benchmark_invented.py --objectives layers --seeds 1 --trials 13",
    "benchmark_plateaus.py --spaces '2 numbers' --seeds 1 --trials 22",
    "benchmark_pmf.py oboe --methods random portfolio svd pmf --trials 4",
    "benchmark_public.py scale --families svm --limit 1 --trainings 5",
    "benchmark_public.py run --families svm --limit 1 --seeds 1"
    " --methods GBQR 'Optuna TPE' random",
    "benchmark_public.py page --control GBQR --path public.md",
    "benchmark_seconds.py scale --families oboe",
    "benchmark_seconds.py run --families oboe --limit 1 --seeds 1 --n-trials 12",
    "benchmark_seconds.py page --path seconds.md",
    "benchmark_spaces.py --spaces SVM --data digits --seeds 1 --n-trials 2",
    "benchmark_smac.py seconds --tables 1",
    "benchmark_smac.py overhead --at 20 --cycles 1",
    "benchmark_speedup.py --samplers GBQRSampler --storages memory --workers 1 2 --trials 4"
    " --seconds 0.1 --repeats 1",
    "benchmark_store.py kills writers reading --quick",
    "benchmark_transfer.py regret --tables svm_grid --trials 10 --every 3",
    "benchmark_tst.py --every 2 --trials 4",
    "benchmark_warm_start.py --learners knn --data digits --seeds 1 --trials 12 --optimizers Auto",
    "benchmark_weighted.py record --quick --out pools",
    "benchmark_weighted.py report --repetitions 3 --quick --out pools",
    "benchmark_workers.py --methods GBQR random --families smooth --limit 1 --seeds 1",
    "build_memory.py status --journal journal",
    "idea_pictures.py --out pictures",
)


def invent_tables(folder: Path) -> None:
    """Write invented runs of two sources in the files that ``recorded_tables.py`` reads."""
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
    """Make a folder that hides pandas when it is on ``PYTHONPATH``."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'pandas':\n"
        "            raise ModuleNotFoundError(\"No module named 'pandas'\", name=name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
    )


def judge(commands: Sequence[str], folder: Path) -> int:
    """Run the commands of one script in ``folder``, and return how many have failed."""
    n_failed = 0
    for command in commands:
        plain = command in PLAIN
        script, *arguments = shlex.split(command)
        environment = {"OMP_NUM_THREADS": "1", "AUTOML_PLUGINS_DATA": str(folder / "data")}
        if plain:
            environment["PYTHONPATH"] = str(folder / "plain")
        place = EXAMPLES if plain else EXAMPLES / "benchmarks"
        start, failure = time.monotonic(), ""
        try:
            output = subprocess.run(
                [sys.executable, str(place / script), *arguments],
                cwd=folder,
                env=os.environ | environment,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=True,
            ).stdout
            if not re.search(PLAIN.get(command, ""), output, re.DOTALL):
                failure = f"{output}prints no {PLAIN[command]!r}"
        except subprocess.TimeoutExpired:
            failure = f"takes more than {SECONDS} s"
        except subprocess.CalledProcessError as error:
            failure = f"{error.stdout}{error.stderr}"
        n_failed += bool(failure)
        seconds = time.monotonic() - start
        more = f": FAILED\n{failure}" if failure else ""
        print(f"{seconds:5.1f} s  {command}{more}", flush=True)
    return n_failed


def main() -> int:
    scripts: dict[str, list[str]] = {}
    for command in (*PLAIN, *BENCHMARKS):
        if not sys.argv[1:] or any(part in command for part in sys.argv[1:]):
            scripts.setdefault(command.partition(" ")[0], []).append(command)
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(AT_A_TIME) as pool:
        folder = Path(name)
        invent_tables(folder / "data")
        block_pandas(folder / "plain")
        n_failed = sum(pool.map(judge, scripts.values(), [folder] * len(scripts)))
    n = sum(map(len, scripts.values()))
    print(f"{n - n_failed} of {n} commands run.")
    return min(n_failed, 1)


if __name__ == "__main__":
    sys.exit(main())
