"""What comes from somebody else is data: never code, never SQL, never a path; nothing is sent."""

from __future__ import annotations

import ast
import base64
import contextlib
import hashlib
import json
import lzma
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import Distribution
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from audit import changed_files, known_vulnerabilities, pinned, wrong_versions
from automl_plugins.adapters.hyperopt._private import load
from automl_plugins.adapters.optuna import curves as optuna_curves
from automl_plugins.adapters.smac import curves as smac_curves

from automl_plugins.__main__ import main
from automl_plugins.meta import MetaStore
from automl_plugins.meta.factorization import MatrixFactorization
from automl_plugins.meta.files import read_records
from automl_plugins.meta.sources import read_memory
from automl_plugins.replay import read_runs
from automl_plugins.replay.config import read_config
from automl_plugins.replay.csv_files import Journal

ROOT = Path(__file__).resolve().parents[1]
SOURCES = [*(ROOT / "automl_plugins").rglob("*.py"), *(ROOT / "adapters").rglob("*.py")]


@cache
def calls(path: Path) -> list[tuple[str, ast.Call]]:
    """Calls in a file, and what is called, as it is written."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [(ast.unparse(node.func), node) for node in nodes if isinstance(node, ast.Call)]


# --- no code ----------------------------------------------------------------------------------

RUNS_CODE = re.compile(
    r"(eval|exec|compile|__import__|os\.system|os\.popen|subprocess\..*|runpy\..*"
    r"|(.*\.)?(pickle|pickler|cloudpickle|dill|marshal|shelve|joblib|yaml|torch)\."
    r"(load|loads|open|Unpickler|full_load|unsafe_load)|(.*\.)?read_pickle|Unpickler)"
)
# By names of the code, or that the user calls a method by: none of a file that is read.
IMPORTS = ["_arguments", "_drawing", "_imports", "frameworks", "replaying"]
# Hyperopt's own file of trials, which only ``boasf_fmin(trials_save_file=...)`` reads.
ALLOWED = {("adapters/hyperopt/_private.py", "pickler.load")}


def test_nothing_runs_code_that_it_has_read() -> None:
    assert len(SOURCES) > 100
    found = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in SOURCES
        for name, _ in calls(path)
        if RUNS_CODE.fullmatch(name)
    }
    assert found == ALLOWED
    for path in SOURCES:
        for name, call in calls(path):
            if name in ("np.load", "numpy.load"):
                given = {k.arg: ast.unparse(k.value) for k in call.keywords}
                assert given.get("allow_pickle") == "False", path
            if name in ("import_module", "importlib.import_module"):
                assert path.stem in IMPORTS, path


class Evil:
    """Its pickle makes a file when it is read."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, (str(self.marker),)


READERS: dict[str, Callable[[str], object]] = {
    "read_records": read_records,
    "memory": read_memory,
    "store": MetaStore,
    "factorisation": MatrixFactorization.load,
    "runs": read_runs,
    "journal": lambda path: Journal(path, {}, {}),
    "config": lambda path: read_config(Path(path)),
    "studies": optuna_curves,
    "smac": smac_curves,
    "import": lambda path: refuse(["store", "import", f"{path}.new.db", path]),
    "compare": lambda path: refuse(["compare", path]),
    "tasks": lambda path: refuse(["store", "tasks", path]),
}


READING = KeyError, OSError, lzma.LZMAError


def refuse(arguments: list[str]) -> None:
    if main(arguments):
        raise ValueError("refused")


@pytest.mark.parametrize("name", READERS)
def test_no_reader_unpickles(name: str, tmp_path: Path) -> None:
    marker = tmp_path / "was here"
    evil = pickle.dumps(Evil(marker))
    arrays = tmp_path / "arrays.npz"
    np.savez(arrays, header=np.array([Evil(marker)], dtype=object))
    contents = [evil, lzma.compress(evil), arrays.read_bytes()]
    for content in contents:
        for suffix in (".json", ".json.xz", ".db", ".npz", ".csv", ".log", ".toml", ".pkl"):
            path = tmp_path / f"evil{suffix}"
            path.write_bytes(content)
            for log in (".journal", ".new.db"):
                Path(f"{path}{log}").unlink(missing_ok=True)
            if name == "journal":
                Path(f"{path}.journal").write_bytes(b"{}\n" + content)
            with contextlib.suppress(ValueError, TypeError, RuntimeError, *READING):
                READERS[name](str(path))
            assert not marker.exists()
    folder = tmp_path / "run"
    folder.mkdir()
    for file in ("runhistory.json", "scenario.json", "configspace.json", "optimization.json"):
        (folder / file).write_bytes(evil)
    if name in ("smac", "studies", "compare"):
        with pytest.raises((ValueError, TypeError, OSError)):
            READERS[name](str(folder))
    assert not marker.exists()
    with pytest.raises(OSError, match="File exists"):  # and it would have been noticed
        pickle.loads(evil), pickle.loads(evil)


def test_who_may_hand_over_hyperopts_pickle_is_told_so() -> None:
    """The one pickle is that of ``fmin``: its documentation says whose files may be read."""
    assert "only the user's own" in (load.__doc__ or "")
    text = (ROOT / "adapters/hyperopt/boasf.py").read_text(encoding="utf-8")
    assert "Hyperopt's own pickle: read your own files only" in text


# --- no SQL -----------------------------------------------------------------------------------

TAKES_SQL = ("text", "sa.text", "execute", "exec_driver_sql", "executescript", "executemany")
# Words of our own: settings of SQLite, and how a transaction begins.
CONSTANT = {"f'PRAGMA {setting}'", "f'BEGIN {mode}'"}


def test_sql_is_written_in_the_code_only() -> None:
    n = 0
    for path in SOURCES:
        for name, call in calls(path):
            if name.rpartition(".")[2] in TAKES_SQL and call.args:
                n += 1
                built = [
                    part
                    for part in ast.walk(call.args[0])
                    if isinstance(part, ast.JoinedStr)
                    or (isinstance(part, ast.BinOp) and "'" in ast.unparse(part))
                    or (isinstance(part, ast.Call) and ast.unparse(part.func).endswith(".format"))
                ]
                assert all(ast.unparse(part) in CONSTANT for part in built), (path, call.lineno)
    assert n > 20


# --- files and network ------------------------------------------------------------------------

SEARCH = """
import os, sys

allowed, seen = sys.argv[1], []
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
ENDS = ("/dev/null",)

def watch(event, arguments):
    if event.startswith("socket.") and event not in ("socket.__new__", "socket.gethostname"):
        seen.append((event, str(arguments[1:])))
    elif event in ("subprocess.Popen", "os.system", "os.exec", "pickle.find_class"):
        if arguments[0] != "/sbin/ldconfig":  # asked where a library is, by older threadpoolctl
            seen.append((event, str(arguments)[:300]))
    elif event in ("os.mkdir", "os.rename", "os.remove", "os.symlink", "shutil.rmtree"):
        if not str(arguments[0]).startswith(allowed):
            seen.append((event, str(arguments)))
    elif event == "open" and isinstance(arguments[0], (str, bytes)):
        path, mode, flags = arguments
        writes = flags & WRITES if mode is None else set(mode) & set("wax+")
        path = os.path.abspath(os.fsdecode(path))
        if writes and not path.startswith(allowed) and path not in ENDS:
            seen.append((event, path))

import logging, warnings
warnings.simplefilter("ignore")
from pathlib import Path
import numpy as np
import optuna
from ConfigSpace import ConfigurationSpace, Float, Integer
from hyperopt import Trials, fmin, hp
from smac import Scenario
import automl_plugins.adapters.hyperopt as ours_hyperopt
import automl_plugins.adapters.optuna as ours
from automl_plugins.adapters.smac import AutoFacade, GBQRFacade, MetaInitialDesign
from automl_plugins.meta import MetaStore, bundled

logging.disable(logging.ERROR)
given = Path(allowed)
sys.dont_write_bytecode = True
sys.addaudithook(watch)

store = given / "memory.db"
space = ConfigurationSpace(seed=0)
space.add(Float("gamma", (1e-5, 8.0), log=True), Float("C", (0.01, 1000.0), log=True))

def objective(trial):
    if trial.suggest_categorical("algorithm", ["a", "b"]) == "a":
        return trial.suggest_float("gamma", 1e-5, 8, log=True)
    return 0.1 + trial.suggest_float("C", 0.01, 1000, log=True)

choice = {"algorithm": optuna.distributions.CategoricalDistribution(["a", "b"])}
for i in range(3):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=i))
    study.optimize(objective, n_trials=8, callbacks=[ours.record(store, task=f"../../evil{i}")])
memory, recorder = str(store), ours.record(store, task="task")
for sampler in (
    ours.AutoSampler(seed=1), ours.GBQRSampler(seed=1), ours.EIPerSecondSampler(seed=1),
    ours.SurrogateSampler(surrogate="random_forest", seed=1), ours.TSTSampler(memory, seed=1),
    ours.PMFSampler(memory, seed=1), ours.BlendedSampler(memory, seed=1),
    ours.BanditSampler(seed=1, search_space=choice),
    ours.BOASFSampler(n_trials=20, seed=1, search_space=choice),
    ours.WeightedModelSampler(seed=1, search_space=choice),
):
    study = optuna.create_study(sampler=sampler, study_name=f"/tmp/../{type(sampler).__name__}")
    study.optimize(objective, n_trials=8, callbacks=[recorder])
study = optuna.create_study()
ours.enqueue_initial_design(study, memory="svm", n_configs=3, search_space={
    "C": optuna.distributions.FloatDistribution(0.01, 1000, log=True),
    "gamma": optuna.distributions.FloatDistribution(1e-5, 8, log=True),
})
with MetaStore(store) as opened:
    assert len(opened.records()) >= 4, len(opened.records())
    opened.export(given / "all.json.xz")
    opened.import_(given / "all.json.xz")

tree = hp.choice("m", [{"C": hp.uniform("C", 0, 3)}, {"d": hp.uniform("d", 0, 1)}])
for algo in ("auto", "gbqr", "bandit", "boasf", "weighted"):
    options = {"max_evals": 8} if algo == "boasf" else {}
    fmin(lambda c: c.get("C", 1.0), tree, algo=getattr(ours_hyperopt, algo)(seed=1, **options),
         max_evals=8, trials=Trials(), rstate=np.random.default_rng(0), show_progressbar=False)

for i, facade in enumerate((GBQRFacade, AutoFacade)):
    scenario = Scenario(space, n_trials=8, deterministic=True, output_directory=given / f"smac{i}")
    facade(scenario, lambda config, seed=0: config["C"], logging_level=False).optimize()

print(seen)
"""


@pytest.mark.slow
def test_searches_write_only_where_they_are_told_and_send_nothing(tmp_path: Path) -> None:
    given, places = tmp_path / "given", {}
    for name in ("cwd", "HOME", "TMPDIR", "XDG_CACHE_HOME"):
        (tmp_path / name).mkdir()
        places[name] = str(tmp_path / name)
    given.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", SEARCH, str(given)],
        cwd=places.pop("cwd"),
        env=os.environ | places | {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "[]"
    others = [p for n in ("cwd", *places) for p in (tmp_path / n).rglob("*")]
    assert not others, others
    assert (given / "memory.db").is_file() and (given / "all.json.xz").is_file()


# --- what is installed ------------------------------------------------------------------------


def test_pins_are_versions_and_nothing_else() -> None:
    known = pinned("constraints.txt", "constraints-oldest.txt")
    assert len(known) > 80
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert not re.search(r"\bgit\+|@\s*(https?|file):", text)
    others = {name: v for name, v in wrong_versions(known).items() if name in known}
    assert not others, f"not the versions of constraints.txt: {others}"


def test_a_changed_file_of_a_distribution_is_noticed(tmp_path: Path) -> None:
    code, folder = tmp_path / "thing.py", tmp_path / "thing-1.0.dist-info"
    folder.mkdir()
    code.write_text("x = 1\n")
    hashed = base64.urlsafe_b64encode(hashlib.sha256(b"x = 1\n").digest()).rstrip(b"=").decode()
    (folder / "METADATA").write_text("Name: thing\nVersion: 1.0\n")
    (folder / "RECORD").write_text(f"thing.py,sha256={hashed},6\nthing-1.0.dist-info/RECORD,,\n")
    assert changed_files(Distribution.at(folder)) == []
    code.write_text("x = 2\n")
    assert changed_files(Distribution.at(folder)) == ["thing.py"]
    code.unlink()
    assert changed_files(Distribution.at(folder)) == ["thing.py"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("audit.distributions", lambda: [Distribution.at(folder)])
        assert wrong_versions({}) == wrong_versions({"thing": {"2.0"}}) == {"thing": "1.0"}
        assert wrong_versions({"thing": {"1.0"}}) == {}


def test_the_list_of_vulnerabilities_is_asked_for_each_version() -> None:
    asked: list[Any] = []

    class Vulnerabilities(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.extend(
                json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
            )
            known = {("thing", "1.0"): {"vulns": [{"id": "GHSA-1"}, {"id": "CVE-2"}]}}
            results = [known.get((q["package"]["name"], q["version"]), {}) for q in asked]
            body = json.dumps({"results": results}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Vulnerabilities) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        Thread(target=server.handle_request, daemon=True).start()
        found = known_vulnerabilities({"thing": "1.0", "other": "2.0"}, url)
    assert found == {"thing": ["GHSA-1", "CVE-2"]}
    assert asked[0] == {"package": {"name": "other", "ecosystem": "PyPI"}, "version": "2.0"}
    with pytest.raises(OSError):
        known_vulnerabilities({"thing": "1.0"}, url)  # nobody answers there now
