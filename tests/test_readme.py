"""The README is run: its snippets exactly as printed, its commands as far as their arguments."""

from __future__ import annotations

import argparse
import re
import runpy
import shlex
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperopt
import numpy as np
import optuna
import pandas as pd
import plotly.graph_objects as go
import pytest
from automl_plugins.adapters import hyperopt as ours_in_hyperopt
from ConfigSpace import ConfigurationSpace, Float
from sklearn.datasets import load_iris, load_wine
from smac import Scenario

from automl_plugins import replay
from automl_plugins.__main__ import main

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
N_TRIALS = 4  # of each search here, whatever the page says


# --- what the user has ------------------------------------------------------------------------


def branches(trial: optuna.Trial) -> float:
    algorithm = trial.suggest_categorical("algorithm", ["svm", "forest"])
    if algorithm == "svm":
        return abs(trial.suggest_float("C", 1e-3, 1e3, log=True) - 1.0)
    return trial.suggest_int("depth", 1, 9) / 9 + 0.1


def of_lightgbm(trial: optuna.Trial) -> float:
    leaves = trial.suggest_int("num_leaves", 4, 255, log=True)
    return abs(leaves - 31) + trial.suggest_float("learning_rate", 0.01, 0.5, log=True)


def in_optuna(_: Path) -> dict[str, Any]:
    quiet = optuna.samplers.RandomSampler(seed=0)
    earlier = [optuna.create_study(study_name=name, sampler=quiet) for name in ("one", "two")]
    for study in earlier:
        study.optimize(branches, n_trials=6)
    return {"objective": branches, "earlier_studies": earlier}


def loss(config: dict[str, Any]) -> float:
    time.sleep(0.005)  # else a budget in seconds is very many evaluations
    return float(config.get("C", config.get("depth", 3) / 9))


def in_hyperopt(_: Path) -> dict[str, Any]:
    hp = hyperopt.hp
    space = hp.choice("model", [{"C": hp.uniform("C", 0, 1)}, {"depth": hp.uniformint("d", 1, 9)}])

    def searched(seed: int) -> hyperopt.Trials:
        trials = hyperopt.Trials()
        rng = np.random.default_rng(seed)
        hyperopt.fmin(
            loss,
            space,
            hyperopt.rand.suggest,
            6,
            trials=trials,
            rstate=rng,
            show_progressbar=False,
        )
        return trials

    given = {
        "space": space,
        "trials": hyperopt.Trials(),
        "trials_1": searched(1),
        "trials_2": searched(2),
    }
    return {**given, "fn": loss, "objective": loss}


def in_smac(path: Path) -> dict[str, Any]:
    space = ConfigurationSpace()
    space.add(Float("learning_rate", (0.01, 0.5), log=True), Float("subsample", (0.4, 1.0)))
    scenario = Scenario(
        space, deterministic=True, n_trials=N_TRIALS, seed=1, output_directory=path / "smac"
    )

    def train(config: Any, seed: int = 0) -> float:
        return float(config["learning_rate"] + config["subsample"])

    X, y = load_iris(return_X_y=True)
    return {"scenario": scenario, "train": train, "X": X, "y": y}


def quick_start(path: Path) -> dict[str, Any]:
    return in_hyperopt(path) | in_smac(path)


def a_store(path: Path) -> dict[str, Any]:
    from automl_plugins.adapters.optuna import record

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(of_lightgbm, n_trials=6)
    with_store = record("runs.db", task="iris", meta_features={"NumberOfClasses": 3.0})
    with_store.add(study)
    return in_smac(path)


def with_data(path: Path) -> dict[str, Any]:
    space = {
        "num_leaves": optuna.distributions.IntDistribution(4, 255, log=True),
        "learning_rate": optuna.distributions.FloatDistribution(0.01, 0.5, log=True),
    }
    X, y = load_iris(return_X_y=True)
    X_new, y_new = load_wine(return_X_y=True)
    return {
        **{"objective": of_lightgbm, "space": space, "X": X, "y": y},
        **{"X_new": X_new, "y_new": y_new},
        "study": optuna.create_study(),
        "new_study": optuna.create_study(),
    }


def recorded(path: Path) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    grid = [(c, d) for c in np.geomspace(0.01, 100, 5) for d in range(1, 7)]
    rows = [
        {"C": c, "depth": d, "dataset": name, "seconds": 1.0 + d, "loss": loss}
        for name in ("one", "two", "three")
        for (c, d), loss in zip(grid, rng.random(len(grid)), strict=True)
    ]
    pd.DataFrame(rows).to_csv(path / "runs.csv", index=False)
    return {}


PREPARED: dict[str, Callable[[Path], dict[str, Any]]] = {
    "create_study(sampler=GBQRSampler())": in_optuna,
    "best = GBQRFacade(scenario, train).optimize()": quick_start,
    "GBQRSampler.thesis()  #": lambda _: {},
    "plot_arm_allocation": in_optuna,
    "boasf_fmin": in_hyperopt,
    "algo=ei_per_second": in_hyperopt,
    "ProposerConfigSelector": a_store,
    "enqueue_initial_design": with_data,
    "MetaInitialDesign": in_smac,
    "plot_source_weights": in_optuna,
    "Table.from_frame": recorded,
}
"""What a snippet needs of its user, by a text that only this snippet has."""


# --- small budgets ----------------------------------------------------------------------------


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[go.Figure]:
    """Small budgets, in an empty folder; the figures that were shown."""
    monkeypatch.chdir(tmp_path)
    figures: list[go.Figure] = []
    monkeypatch.setattr(go.Figure, "show", lambda figure: figures.append(figure))
    limits: list[tuple[Any, str, dict[str, Any]]] = [
        (optuna.Study, "optimize", {"n_trials": N_TRIALS}),
        (hyperopt, "fmin", {"max_evals": N_TRIALS, "timeout": 60}),
        (ours_in_hyperopt, "boasf", {"max_evals": 8, "budget_seconds": 0.03}),
        (ours_in_hyperopt, "boasf_fmin", {"max_evals": 8, "budget_seconds": 0.03}),
        (replay, "replay", {"budget": 3, "seed": 0, "n_jobs": 1}),
    ]
    for owner, name, limit in limits:
        monkeypatch.setattr(owner, name, _limited(getattr(owner, name), limit))
    return figures


def _limited(function: Callable[..., Any], limits: dict[str, Any]) -> Callable[..., Any]:
    """``function`` with options that are given replaced by smaller ones."""

    def limited(*args: Any, **options: Any) -> Any:
        if options.get("timeout"):
            options["max_evals"] = N_TRIALS
        return function(*args, **{**options, **{k: limits[k] for k in limits if k in options}})

    return limited


SNIPPETS = [code for language, code in BLOCKS if language == "python"]


@pytest.mark.parametrize("code", SNIPPETS, ids=lambda code: _keys(code)[0].replace(" ", ""))
@pytest.mark.filterwarnings("default")  # of the frameworks, as users see them
def test_a_snippet_runs_as_it_is_printed(
    code: str, shown: list[go.Figure], tmp_path: Path
) -> None:
    (key,) = _keys(code)
    namespace = PREPARED[key](tmp_path)
    exec(compile(code, "README.md", "exec"), namespace)
    assert len(shown) == code.count(".show()")


def _keys(code: str) -> list[str]:
    return [key for key in PREPARED if key in code] or ["unprepared"]


def test_the_configuration_of_a_replay_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = [code for language, code in BLOCKS if language == "toml"]
    monkeypatch.chdir(tmp_path)
    recorded(tmp_path)
    (tmp_path / "replay.toml").write_text(code, encoding="utf-8")
    assert "`automl-plugins replay replay.toml`" in TEXT
    assert not main(["replay", "replay.toml"])
    runs = pd.read_csv("replay.csv")
    assert set(runs.table) == {"mine/one", "mine/two", "mine/three"} and set(runs.seed) == {
        0,
        1,
        2,
    }
    assert (runs.groupby(["table", "seed"]).size() == tomllib.loads(code)["budget"]).all()


def test_the_command_that_compares_studies_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (command,) = re.findall(r"`(automl-plugins compare [^`]*)`", TEXT)
    monkeypatch.chdir(tmp_path)
    for table in ("a", "b"):
        for method in ("TPE", "random"):
            study = optuna.create_study(
                storage="sqlite:///studies.db",
                study_name=f"{table}/{method}/0",
                sampler=optuna.samplers.RandomSampler(seed=0),
            )
            study.optimize(branches, n_trials=2)
    assert not main(shlex.split(command)[1:])
    assert "TPE" in capsys.readouterr().out


def test_shell_commands_name_what_there_is() -> None:
    shell = "\n".join(code for language, code in BLOCKS if not language)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = re.findall(r"pip install \"\.\[([^\]]*)\]\"", TEXT)
    assert extras
    for extra in extras:
        assert set(extra.split(",")) <= project["optional-dependencies"].keys()
    targets = re.findall(r"^make (\w+)", shell, re.M) + re.findall(r"`make (\w+)", TEXT)
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert len(targets) >= 3
    for target in targets:
        assert re.search(rf"^{target}:", rules, re.M), target


# --- commands of figures ----------------------------------------------------------------------

COMMANDS = sorted(
    {
        " ".join(command.split())
        for command in re.findall(
            r"`(?:OMP_NUM_THREADS=1 )?(?:python )?(?:examples/benchmarks/)?"
            r"((?:benchmark_\w+|compare_samplers|build_memory)\.py [^`]*)`",
            TEXT,
        )
    }
)


class Understood(Exception):
    """The arguments of a command are legal; it goes no further."""


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_of_a_figure_is_understood(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parse = argparse.ArgumentParser.parse_args

    def stop(parser: argparse.ArgumentParser, *args: Any) -> None:
        parse(parser, *args)
        raise Understood

    script, *arguments = shlex.split(command)
    path = ROOT / "examples" / "benchmarks" / script
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)
    monkeypatch.setattr(sys, "argv", [str(path), *arguments])
    monkeypatch.syspath_prepend(str(path.parent))
    with pytest.raises(Understood):
        runpy.run_path(str(path), run_name="__main__")


def test_files_that_the_page_names_are_there() -> None:
    for name in re.findall(r"`((?:examples|tests|docs)/[\w./]+)`", TEXT):
        assert (ROOT / name).exists(), name
