"""One extra is enough: ``make extras`` runs this where the wheel and that extra are installed.

    python tests/extras.py core|optuna|smac|hyperopt|plot|store|evidence

A search of ten trials is run, drawn, stored or compared, and the answer looked at. ``core`` is the
package without extras, installed from the source archive. What belongs to other extras must be
missing, or this would say nothing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

N_TRIALS = 10
FRAMEWORKS = ("optuna", "smac", "hyperopt")
FOREIGN = {
    "core": (*FRAMEWORKS, "plotly", "pandas", "sqlalchemy", "tabulate"),
    "optuna": ("smac", "hyperopt", "plotly", "pandas"),
    "smac": ("optuna", "hyperopt", "plotly"),
    "hyperopt": ("optuna", "smac", "plotly", "pandas", "sqlalchemy"),
    "plot": (*FRAMEWORKS, "pandas", "sqlalchemy"),
    "store": (*FRAMEWORKS, "plotly", "pandas"),
    "evidence": (*FRAMEWORKS, "plotly", "sqlalchemy"),
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


def in_core() -> int:
    from ConfigSpace import ConfigurationSpace

    from automl_plugins.recipes import auto
    from automl_plugins.records.history import History
    from automl_plugins.spaces.vector_space import VectorSpace
    from automl_plugins.streams import Streams

    space = VectorSpace(ConfigurationSpace({"x": (-1.0, 1.0), "y": (-1.0, 1.0)}))
    proposer = auto()
    vectors: list[Any] = []
    losses: list[float] = []
    for k in range(N_TRIALS):
        history = History.of(np.array(vectors).reshape(k, 2), losses)
        vectors.append(proposer.propose(space, history, Streams(0), k).vector)
        losses.append(float(np.sum((vectors[-1] - 0.5) ** 2)))
    return len(losses)


def in_plots() -> int:
    from automl_plugins.bandits import ArmRecords, ArmReport
    from automl_plugins.visualization import plot_arm_allocation

    losses = [0.1 * k for k in range(N_TRIALS)]
    records = ArmRecords.of([0, 1] * (N_TRIALS // 2), [1 - loss for loss in losses])
    figure = plot_arm_allocation(ArmReport(("svm", "forest"), records, losses))
    assert "forest" in figure.to_json()
    return len(losses)


def in_store() -> int:
    from automl_plugins.meta import MetaStore

    with tempfile.TemporaryDirectory() as folder, MetaStore(Path(folder) / "runs.db") as store:
        for k in range(N_TRIALS):
            store.record(
                "wine", {"x": k / 10, "kind": "line"}, loss({"x": k / 10, "kind": "line"})
            )
        (record,) = store.records()
        return len(record.configurations)


def in_evidence() -> int:
    import pandas as pd

    from automl_plugins.recipes import gbqr
    from automl_plugins.replay import Table, proposing, replay
    from automl_plugins.statistics import compare

    rng = np.random.default_rng(0)
    tables = [
        Table.from_frame(
            pd.DataFrame({"x": rng.random(30), "loss": rng.random(30)}), loss="loss", name=name
        )
        for name in ("a", "b", "c")
    ]
    methods = [proposing("0.3", lambda _: gbqr()), proposing("0.1", lambda _: gbqr(alpha=0.1))]
    runs = replay(methods, tables, budget=N_TRIALS, seed=0, progress=False)
    assert "0.1" in str(compare(runs))
    return len(runs[(runs["method"] == "0.3") & (runs["table"] == "a")])


SEARCHES: dict[str, Callable[[], int]] = {
    "core": in_core,
    "optuna": in_optuna,
    "smac": in_smac,
    "hyperopt": in_hyperopt,
    "plot": in_plots,
    "store": in_store,
    "evidence": in_evidence,
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
