"""With sources, too, a proposal follows from the seed, the number and the stored trials alone."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters.optuna import source_shares
from automl_plugins.adapters.optuna.transfer_samplers import TransferSampler
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from transfer_objectives import SAMPLERS, branches, earlier

EVERY = pytest.mark.parametrize("name", SAMPLERS)


def made(name: str) -> TransferSampler:
    return SAMPLERS[name](earlier(), seed=3, n_candidates=60)


def params(study: optuna.Study) -> list[dict[str, Any]]:
    return [trial.params for trial in study.get_trials(deepcopy=False)]


@cache
def whole(name: str) -> tuple[list[dict[str, Any]], dict[int, dict[str, float]]]:
    """All trials in one go."""
    study = optuna.create_study(sampler=made(name))
    study.optimize(branches, n_trials=50 if name == "tst" else 20)
    return params(study), source_shares(study)


def opened(kind: str, folder: Path) -> BaseStorage:
    if kind == "sqlite":
        return RDBStorage(f"sqlite:///{folder / 'study.db'}")
    if kind == "journal":
        return JournalStorage(JournalFileBackend(str(folder / "study.log")))
    return optuna.storages.InMemoryStorage()


@pytest.mark.parametrize(
    ("name", "kind", "n"),
    [
        ("tst", "memory", 25),
        ("tst", "sqlite", 5),
        ("tst", "journal", 25),
        ("pmf", "journal", 10),
        ("blended", "journal", 10),
    ],
)
def test_n_and_n_trials_equal_2n_in_one_go(name: str, kind: str, n: int, tmp_path: Path) -> None:
    storage = opened(kind, tmp_path)
    study = optuna.create_study(study_name="s", storage=storage, sampler=made(name))
    study.optimize(branches, n_trials=n)
    again = optuna.load_study(study_name="s", storage=storage, sampler=made(name))
    again.optimize(branches, n_trials=n)
    expected, shares = whole(name)
    assert params(again) == expected[: 2 * n]
    assert source_shares(again) == {k: v for k, v in shares.items() if k < 2 * n}


@EVERY
def test_a_pickled_sampler_goes_on_the_same(name: str) -> None:
    study = optuna.create_study(sampler=made(name))
    study.optimize(branches, n_trials=6)
    study.sampler = pickle.loads(pickle.dumps(study.sampler))
    study.optimize(branches, n_trials=6)
    assert params(study) == whole(name)[0][:12]


@EVERY
def test_maximising_f_equals_minimising_its_negative(name: str) -> None:
    study = optuna.create_study(sampler=made(name), direction="maximize")
    study.optimize(lambda t: -branches(t), n_trials=15)
    assert params(study) == whole(name)[0][:15]
    upside_down = SAMPLERS[name](earlier(sign=-1.0), seed=3, n_candidates=60)
    study = optuna.create_study(sampler=upside_down)
    study.optimize(branches, n_trials=15)
    assert params(study) == whole(name)[0][:15]


SCRIPT = """
import json, sys
sys.path.insert(0, sys.argv[1])
import optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
from transfer_objectives import SAMPLERS, branches, earlier
found = {}
for name, make in SAMPLERS.items():
    study = optuna.create_study(sampler=make(earlier(), seed=3, n_candidates=60))
    study.optimize(branches, n_trials=12)
    found[name] = [trial.params for trial in study.trials]
print(json.dumps(found))
"""


def test_same_points_in_a_fresh_process_with_another_hash_seed() -> None:
    output = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(Path(__file__).parent)],
        env=os.environ | {"PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert json.loads(output) == {name: whole(name)[0][:12] for name in SAMPLERS}


@EVERY
def test_global_random_state_is_left_alone(name: str) -> None:
    np.random.seed(7)  # noqa: NPY002 - the state that must not move
    before = np.random.get_state()  # noqa: NPY002
    optuna.create_study(sampler=made(name)).optimize(branches, n_trials=3)
    after = np.random.get_state()  # noqa: NPY002
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
