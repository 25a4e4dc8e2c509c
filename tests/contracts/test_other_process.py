"""The same stored trials give the same proposals in any process.

The other process has another hash seed, time zone, locale (with a decimal comma) and folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import optuna
import pytest
from known_runs import write_records
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import TrialState, create_trial

from automl_plugins.meta import TaskRecord

BRANCHES = CategoricalDistribution(["a", "b"])
BERLIN = "CET-1CEST,M3.5.0,M10.5.0/3"  # needs no data base of time zones
X = FloatDistribution(1e-3, 10.0, log=True)

PROPOSE = """
import json, locale, sys, time
locale.setlocale(locale.LC_ALL, "")
import numpy as np
import optuna
from automl_plugins.adapters import hyperopt as ours
from automl_plugins.adapters.optuna import *
from automl_plugins.adapters.smac import AutoFacade, GBQRFacade, MetaInitialDesign
from automl_plugins.adapters.optuna.studies import finished_trials
from automl_plugins.adapters.optuna.trials import StudyColumns, read_trial
from automl_plugins.meta.files import read_records
from automl_plugins.bandits import Thompson
from ConfigSpace import ConfigurationSpace
from hyperopt import Trials, fmin, hp
from smac import Scenario
from smac.runhistory import TrialValue

optuna.logging.set_verbosity(optuna.logging.ERROR)
memory = read_records("memory.json")
choice = {"kind": optuna.distributions.CategoricalDistribution(["a", "b"])}
study = optuna.load_study(study_name="s", storage="sqlite:///study.db")
done = finished_trials(study)
columns = StudyColumns(read_trial(trial, maximize=False) for trial in done)
found = {"order": [[t.number for t in done], columns.facts("number").tolist()]}
for name, sampler in {
    "gbqr": GBQRSampler(seed=1),
    "seconds": EIPerSecondSampler(seed=1),
    "auto": AutoSampler(seed=1, memory=None),
    "auto with memory": AutoSampler(memory, seed=1),
    "forest": SurrogateSampler("random_forest", seed=1),
    "thesis": GBQRSampler.thesis(seed=1),
    "blended": BlendedSampler(memory, seed=1),
    "weighted": WeightedModelSampler("kind", seed=1, search_space=choice),
    "thompson": BanditSampler("kind", policy=Thompson(), seed=1, search_space=choice),
    "tst": TSTSampler(memory, seed=1),
    "pmf": PMFSampler(memory, seed=1),
    "bandit": BanditSampler("kind", seed=1, search_space=choice),
    "boasf": BOASFSampler("kind", n_trials=60, seed=1, search_space=choice),
}.items():
    study = optuna.load_study(study_name="s", storage="sqlite:///study.db", sampler=sampler)
    trial = study.ask()
    kind = trial.suggest_categorical("kind", ["a", "b"])
    found[name] = [kind, trial.suggest_float("x", 1e-3, 10.0, log=True)]
    study.tell(trial, state=optuna.trial.TrialState.FAIL)
space = {
    "x": hp.loguniform("x", -6, 2),
    "kind": hp.choice("kind", [{"type": "a"}, {"type": "b", "y": hp.uniform("y", 0, 1)}]),
}
options = {"auto": {}, "gbqr": {}, "ei_per_second": {}, "surrogate": {}, "weighted": {},
           "bandit": {}, "boasf": {"max_evals": 30}} | {
    name: {"memory": memory} for name in ("tst", "pmf", "blended")
}
for name, given in options.items():
    trials = Trials()
    fmin(lambda c: {"loss": c["x"] + len(c["kind"]), "status": "ok", "seconds": c["x"]},
         space, algo=getattr(ours, name)(seed=1, **given), max_evals=9, trials=trials,
         rstate=np.random.default_rng(0), show_progressbar=False)
    found["hyperopt " + name] = [d["misc"]["vals"] for d in trials.trials]
config_space = ConfigurationSpace({"x": (1e-3, 10.0), "kind": ["a", "b"]})
for facade in (GBQRFacade, AutoFacade):
    told = {"n_trials": 30, "deterministic": True, "seed": 1, "name": facade.__name__}
    scenario = Scenario(config_space, **told)
    smac = facade(scenario, logging_level=False, overwrite=True)
    asked = []
    for _ in range(14):
        info = smac.ask()
        asked.append(dict(info.config))
        loss = info.config["x"] + (info.config["kind"] == "a")
        smac.tell(info, TrialValue(loss, time=1.0, starttime=1.0, endtime=2.0))
    found[facade.__name__] = repr(asked)
design = MetaInitialDesign(Scenario(config_space, n_trials=30, seed=1), memory)
found["design"] = repr([dict(config) for config in design.select_configurations()])
shown = locale.str(1.5), time.tzname[0], hash("x") % 1000
print(json.dumps([found, shown]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study whose trials ended while clocks were set forward in Europe, and a memory."""
    folder = tmp_path_factory.mktemp("anywhere")
    study = optuna.create_study(study_name="s", storage=f"sqlite:///{folder}/study.db")
    night = datetime(2026, 3, 29)
    for i in range(24):
        kind, x = "ab"[i % 2], 10 ** (i * 7 % 24 / 6 - 3)
        trial = create_trial(
            state=TrialState.COMPLETE,
            value=(x - 1) ** 2 + i % 2,
            params={"kind": kind, "x": x},
            distributions={"kind": BRANCHES, "x": X},
        )
        trial.datetime_start = night + timedelta(minutes=10 * i)
        trial.datetime_complete = trial.datetime_start + timedelta(minutes=8)
        study.add_trial(trial)
    records = [
        TaskRecord(
            f"täsk {t}",
            [{"kind": "ab"[i % 2], "x": 10 ** (i / 6 - 3)} for i in range(20)],
            [abs(i - 3 * t) / 10 for i in range(20)],  # type: ignore[arg-type]
        )
        for t in range(4)
    ]
    write_records(folder / "memory.json", records)
    return folder


def comma_locale(folder: Path) -> dict[str, str]:
    """Settings of a locale with a decimal comma, if it can be compiled; else of locale C."""
    if shutil.which("localedef") is None or not Path("/usr/share/i18n/locales/de_DE").is_file():
        return {"LC_ALL": "C"}
    made = folder / "locales"
    made.mkdir(exist_ok=True)
    options = ["-i", "de_DE", "-f", "ISO-8859-1", str(made / "de_DE.ISO-8859-1")]
    subprocess.run(["localedef", *options], capture_output=True, check=False)
    return {"LOCPATH": str(made), "LC_ALL": "de_DE.ISO-8859-1", "PYTHONUTF8": "0"}


def propose(folder: Path, place: Path, **settings: str) -> tuple[dict[str, object], list[object]]:
    """Proposals of a child process, and its text for 1.5, time zone and hash of a text."""
    for name in ("study.db", "memory.json"):
        shutil.copy(folder / name, place / name)
    known = {n: v for n, v in os.environ.items() if not n.startswith("LC_") and n != "LANG"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROPOSE],
        cwd=place,
        env=known | {"OMP_NUM_THREADS": "1"} | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found, shown = json.loads(done.stdout)
    return found, shown


@pytest.mark.slow
def test_hash_seed_time_zone_and_locale_change_no_proposal(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    places = [tmp_path_factory.mktemp("there") for _ in range(2)]
    comma = comma_locale(folder)
    here, shown = propose(folder, places[0], PYTHONHASHSEED="1", TZ="UTC", LC_ALL="C.UTF-8")
    there, other = propose(folder, places[1], PYTHONHASHSEED="2", TZ=BERLIN, **comma)
    assert here == there
    assert here["order"] == [list(range(24))] * 2
    assert shown[0] == "1.5" and other[0] == ("1.5" if comma["LC_ALL"] == "C" else "1,5")
    assert other[1] == "CET" and shown[2] != other[2]
