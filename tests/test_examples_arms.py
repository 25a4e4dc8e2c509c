"""The examples of algorithm selection run, and their two search spaces are one."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
QUICK = ("--data", "breast_cancer", "--seconds", "2")


def run(tmp_path: Path, name: str, *arguments: str) -> str:
    command = [sys.executable, str(EXAMPLES / name), *QUICK, *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    return done.stdout


def rows(output: str) -> dict[str, list[str]]:
    """Rows of the first report by arm."""
    lines = output.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("Arm "))
    return {line.split()[0]: line.split()[1:] for line in lines[start + 2 : start + 18]}


@pytest.fixture(scope="module")
def classifiers() -> Iterator[ModuleType]:
    path = EXAMPLES / "classifiers.py"
    spec = importlib.util.spec_from_file_location("classifiers", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["classifiers"] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["classifiers"]


# --- the examples ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("example", "peer"),
    [("boasf_hyperopt", "fmin(tpe.suggest)"), ("boasf_optuna", "TPESampler (default)")],
)
def test_boasf(example: str, peer: str, tmp_path: Path, classifiers: ModuleType) -> None:
    output = run(tmp_path, f"{example}.py", "--compare")
    before, _, after = output.partition("16 arms, ")
    assert before.count("Round 1 (0.7 s): ") == 1  # a live line, before the report
    assert set(rows(output)) == set(classifiers.CLASSIFIERS)
    pulls = sum(int(row[0]) for row in rows(output).values())
    assert pulls == int(after.split()[0]) > 0
    results = re.findall(
        r"^(.+): \d+ (?:evaluations|trials), ([\d.]+) s; balanced accuracy ([\d.]+)",
        output,
        re.MULTILINE,
    )
    assert [name for name, *_ in results][1] == peer
    for _, seconds, score in results:
        assert float(seconds) > 0.0
        assert 0.5 <= float(score) <= 1.0  # a busy machine may get no further than one pull
    assert (tmp_path / "build" / f"{example}.html").stat().st_size > 0


def test_weighted_hyperband(tmp_path: Path) -> None:
    output = run(tmp_path, "weighted_hyperband.py", "--compare")
    assert re.findall(r"^== (.+): \d+ trials, stopped", output, re.MULTILINE) == [
        "weights 2^N",
        "equal weights",
    ]
    for score in re.findall(r"^Balanced accuracy ([\d.]+)", output, re.MULTILINE):
        assert 0.5 <= float(score) <= 1.0


# --- the classifiers ------------------------------------------------------------------------


def drawn(classifiers: ModuleType, n: int) -> Iterator[tuple[Any, dict[str, Any], dict[str, Any]]]:
    """Per classifier n trials, with the configuration of each and one drawn by Hyperopt."""
    import optuna
    from hyperopt import pyll

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    options = classifiers.hyperopt_space().pos_args[1:]
    generator = np.random.default_rng(0)
    for name, option in zip(classifiers.CLASSIFIERS, options, strict=True):
        for _ in range(n):
            study.enqueue_trial({"classifier": name})
            trial = study.ask()
            asked = classifiers.suggest(trial)
            yield trial, asked, classifiers.flat(pyll.stochastic.sample(option, generator))


def test_both_spaces_are_one(classifiers: ModuleType) -> None:
    from hyperopt import pyll

    ours: dict[str, Any] = {}
    for trial, *_ in drawn(classifiers, 30):
        for label, d in trial.distributions.items():
            if hasattr(d, "choices"):
                ours[label] = "randint", len(d.choices)
            else:
                kind = "q" * (type(d).__name__ == "IntDistribution") + "log" * d.log + "uniform"
                ends = np.log([d.low, d.high]) if d.log else (d.low, d.high)
                ours[label] = kind, tuple(map(float, ends))
    theirs = {}
    for node in pyll.dfs(classifiers.hyperopt_space()):
        if node.name == "hyperopt_param":
            draw = node.arg["obj"]
            if draw.name == "randint":
                drawn_from: Any = draw.arg["low"].obj  # the upper end, if there is one only
            else:
                drawn_from = float(draw.arg["low"].obj), float(draw.arg["high"].obj)
            theirs[node.arg["label"].obj] = draw.name, drawn_from
    assert ours == theirs
    assert len(ours) == 54


def test_both_give_configurations_of_one_form(classifiers: ModuleType) -> None:
    forms: list[dict[str, set[Any]]] = [{}, {}]
    for _, *both in drawn(classifiers, 30):
        for form, configuration in zip(forms, both, strict=True):
            for name, value in configuration.items():
                kinds = form.setdefault(f"{configuration['classifier']}.{name}", set())
                kinds.add(value if isinstance(value, str | bool) else type(value))
    assert forms[0] == forms[1]


def test_children_are_asked_for_below_their_option_only(classifiers: ModuleType) -> None:
    for _, *both in drawn(classifiers, 20):
        for c in both:
            if c["classifier"] == "svm":
                assert ("degree" in c) == (c["kernel"] == "poly")
                assert ("coef0" in c) == (c["kernel"] != "rbf")
            if c["classifier"] == "linear_svm":
                assert ("loss" in c) == (c["penalty"] == "l2")
            if c["classifier"] == "gaussian_nb":
                assert c == {"classifier": "gaussian_nb"}


def test_every_classifier_can_be_scored_without_warnings(classifiers: ModuleType) -> None:
    task = classifiers.Task("breast_cancer")
    for _, one, other in drawn(classifiers, 1):
        score = task.score(one, 1 / 9)
        assert 0.3 < score <= 1.0, one
        assert score == task.score(one, 1 / 9)
        assert 0.4 < task.score(other) <= 1.0, other


def test_list_of_the_paper(classifiers: ModuleType) -> None:
    assert len(classifiers.CLASSIFIERS) == 16
    for name, classifier in classifiers.CLASSIFIERS.items():
        assert bool(classifier.parameters) == (name != "gaussian_nb")


def test_task_keeps_a_quarter_and_takes_stratified_parts(classifiers: ModuleType) -> None:
    task = classifiers.Task("digits")
    assert (len(task.train), len(task.test)) == (1347, 450)
    assert sorted([*task.train, *task.test]) == list(range(1797))
    assert set(np.bincount(task.y[task.test]).tolist()) <= {43, 44, 45, 46}
    for train, valid in task.folds:
        assert sorted([*train, *valid]) == sorted(task.train)
    good, bad = ({"classifier": "k_nearest_neighbors", "n_neighbors": n} for n in (3, 29))
    assert task.score(good) > task.score(good, 1 / 3) > task.score(good, 1 / 9) > 0.8
    assert task.score(good) > task.score(bad)
    assert task.test_score(good) > 0.95
    with pytest.raises(ValueError, match="n_neighbors"):
        task.score({"classifier": "k_nearest_neighbors", "n_neighbors": 150}, 1 / 9)
