"""One extra is enough: ``make extras`` runs this where nothing but that extra is installed.

    python tests/extras.py optuna|smac|hyperopt

The adapter is imported, a search of ten trials is run and its answer looked at. What belongs to
other extras must be missing, or this would say nothing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

N_TRIALS = 10
FOREIGN = {
    "optuna": ("smac", "hyperopt", "plotly", "pandas"),
    "smac": ("optuna", "hyperopt", "plotly"),
    "hyperopt": ("optuna", "smac", "plotly", "pandas", "sqlalchemy"),
}


def loss(values: Mapping[str, Any], seed: int = 0) -> float:
    """A search space with a condition."""
    return float(values["x"] ** 2 + (values["depth"] / 9 if values["kind"] == "tree" else 0.5))


def in_optuna() -> int:
    import optuna
    from automl_plugins.adapters.optuna import AutoSampler, TSTSampler, explain

    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial: optuna.Trial) -> float:
        values: dict[str, Any] = {"x": trial.suggest_float("x", -1, 1)}
        values["kind"] = trial.suggest_categorical("kind", ["tree", "line"])
        if values["kind"] == "tree":
            values["depth"] = trial.suggest_int("depth", 1, 9)
        return loss(values)

    study = optuna.create_study(sampler=AutoSampler(seed=0))
    study.optimize(objective, n_trials=N_TRIALS)
    assert explain(study.best_trial)
    after = optuna.create_study(sampler=TSTSampler({"before": study}, seed=0))
    after.optimize(objective, n_trials=3)
    return len(study.trials)


def in_smac() -> int:
    from automl_plugins.adapters.smac import AutoFacade
    from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer
    from smac import Scenario

    space = ConfigurationSpace(seed=0)
    kind = Categorical("kind", ["tree", "line"])
    depth = Integer("depth", (1, 9))
    space.add(Float("x", (-1, 1)), kind, depth, EqualsCondition(depth, kind, "tree"))
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            space, n_trials=N_TRIALS, deterministic=True, output_directory=Path(folder)
        )
        facade = AutoFacade(scenario, loss, logging_level=False)
        facade.optimize()
        return len(facade.runhistory)


def in_hyperopt() -> int:
    from automl_plugins.adapters.hyperopt import auto
    from hyperopt import Trials, fmin, hp

    options = [{"kind": "tree", "depth": hp.uniformint("depth", 1, 9)}, {"kind": "line"}]
    space = {"x": hp.uniform("x", -1, 1), "model": hp.choice("model", options)}
    trials = Trials()
    fmin(
        lambda values: loss({"x": values["x"], **values["model"]}),
        space,
        algo=auto(seed=0),
        max_evals=N_TRIALS,
        trials=trials,
        show_progressbar=False,
    )
    return len(trials.losses())


SEARCHES: dict[str, Callable[[], int]] = {
    "optuna": in_optuna,
    "smac": in_smac,
    "hyperopt": in_hyperopt,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("extra", choices=list(SEARCHES))
    extra = parser.parse_args().extra
    present = [name for name in FOREIGN[extra] if find_spec(name)]
    if present:
        print(f"This environment has {', '.join(present)}, which {extra} does not need.")
        return 1
    n_trials = SEARCHES[extra]()
    print(f"{extra} alone: {n_trials} trials.")
    return int(n_trials != N_TRIALS)


if __name__ == "__main__":
    sys.exit(main())
