"""What is shipped."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from architecture import FOLDERS, ROOT, modules
from archives import MOST_BYTES, sources, wrong_in_sdist, wrong_in_wheel

import automl_plugins

FRAMEWORKS = {path.parent.name for path in (ROOT / "adapters").glob("*/__init__.py")}

PUBLIC_NAMES = {
    package: names.split()
    for package, names in {
        "automl_plugins.adapters.optuna": """
            AutoSampler BOASFSampler BanditSampler BlendedSampler EIPerSecondSampler GBQRSampler
            NoImprovement PMFSampler SuccessiveFilteringPruner SurrogateSampler TSTSampler
            WeightedModelSampler arm_report curves enqueue_initial_design explain
            meta_dataset_from_studies optimizer record
        """,
        "automl_plugins.adapters.hyperopt": """
            arm_report auto bandit blended boasf boasf_fmin curves ei_per_second explain expression
            gbqr initial_trials meta_dataset_from_trials optimizer pmf record surrogate tst
            weighted
        """,
        "automl_plugins.adapters.smac": """
            AutoFacade CostAndSecondsEncoder EIPerSecond GBQRFacade KNNInitialDesign
            MetaInitialDesign ProposerConfigSelector QuantileBound RecordCallback SurrogateModel
            curves meta_dataset_from_runhistory optimizer
        """,
        "automl_plugins.bandits": """
            UCB1 AlwaysBest DecreasingEpsilon EpsilonGreedy Hyperband IncreasingEffort
            MaxUCB RandomArm SuccessiveFiltering SuccessiveHalving Thompson TopTwoThompson
            UCB1Tuned failure_probability model_weights partition
        """,
        "automl_plugins.meta": """
            MatrixFactorization MetaDataset MetaLearner MetaStore bad_start bundled convert
            delta diverse knn meta_features opt portfolio top_k
        """,
        "automl_plugins.replay": """
            Optimizer Table regret replay
        """,
        "automl_plugins.visualization": """
            plot_arm_allocation plot_member_trust plot_pipeline_embedding plot_rank_diagram
            plot_ranks plot_regret plot_source_weights
        """,
        "automl_plugins.statistics": """
            average_ranks compare finner iman_davenport
        """,
        "automl_plugins.surrogates": """
            Blended ExtraTrees Feasibility GaussianProcess QuantileBoosting RandomForest
            RunningTime TwoStageTransfer
        """,
    }.items()
}


def run_python(script: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a script as an installed package sees it: the current folder is not on the path."""
    command = [sys.executable, "-I", "-c", script, *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


# --- the list of packages ------------------------------------------------------------------


def configuration() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_package_list_equals_the_tree() -> None:
    folders = {name.rpartition(".")[0]: path.parent for name, path in modules().items()}
    listed = configuration()["tool"]["setuptools"]["packages"]
    assert sorted(listed) == sorted(folders)
    without_init = [str(f) for f in folders.values() if not (f / "__init__.py").is_file()]
    assert without_init == []


# --- the archives --------------------------------------------------------------------------


def build(source: Path, *options: str) -> Path:
    """The archive that is built of a folder."""
    # no isolation: setuptools comes from this environment, not from the network
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist", *options]
    built = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = (source / "dist").iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, where no left-overs of earlier builds can slip in."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for folder in FOLDERS.values():
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(folder, source / folder.name, ignore=ignore)
    return build(source, "--wheel")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the installed wheel and nothing else."""
    target = tmp_path_factory.mktemp("installed")
    options = ["--no-deps", "--no-index", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target)]
    subprocess.run([*command, str(wheel)], check=True)
    return target


def test_wheel_holds_all_modules_and_no_top_level_adapters(wheel: Path) -> None:
    assert list(wrong_in_wheel(wheel)) == []


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git says which files belong")
def test_source_archive_holds_all_that_is_tested(tmp_path: Path) -> None:
    for name in sources():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    sdist = build(tmp_path, "--sdist")
    assert list(wrong_in_sdist(sdist)) == []


def test_what_is_wrong_with_an_archive_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("adapters/__init__.py", "")
        archive.writestr("noise", np.random.default_rng(0).bytes(MOST_BYTES))
    wrong = list(wrong_in_wheel(path))
    assert "a.whl lacks automl_plugins/py.typed" in wrong
    assert "a.whl should not have adapters/__init__.py" in wrong
    assert wrong[-2:] == ["a.whl lacks the licence", "a.whl has 5.0 MB, more than 5.0"]


def test_versions_agree() -> None:
    project = configuration()["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest, date = re.findall(r"^## \[(\d[^]]*)\] - (\S+)$", changes, re.MULTILINE)[0]
    assert newest == citation["version"] == project["version"] == automl_plugins.__version__
    assert date == str(citation["date-released"])
    assert citation["license"] == project["license"]
    tried = {name.rpartition(" ")[2] for name in project["classifiers"] if "3." in name}
    assert min(tried, key=lambda v: int(v[2:])) == project["requires-python"].removeprefix(">=")


def test_the_citation_names_the_thesis_and_the_papers() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors", "type"} <= citation.keys()
    first = {work["authors"][0]["family-names"]: work for work in citation["references"]}
    assert first.keys() == {"van Hoof", "Wistuba", "Fusi", "Sarigiannis", "Zhu"}
    offered = {name for names in PUBLIC_NAMES.values() for name in names}
    for work in first.values():
        assert {"type", "title", "year", "notes"} <= work.keys()
        assert set(re.findall(r"\w+", work["notes"])) <= offered


IMPORT_NAMES = """
import importlib, json, sys
target, modules = sys.argv[1], json.loads(sys.argv[2])
sys.path.insert(0, target)
found = {name: importlib.import_module(name) for name in modules}
print(json.dumps({
    "missing": [f"{m}.{n}" for m in modules for n in modules[m] if not hasattr(found[m], n)],
    "hidden": [f"{m}.{n}" for m in modules for n in modules[m] if n not in found[m].__all__],
    # an editable install must not step in for what the wheel lacks
    "elsewhere": [
        name for name, m in sorted(sys.modules.items())
        if name.partition(".")[0] == "automl_plugins" and not str(m.__file__).startswith(target)
    ],
    "version": sys.modules["automl_plugins"].__version__,
}))
"""


@pytest.mark.slow
def test_public_names_can_be_imported_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    imported = run_python(IMPORT_NAMES, str(installed), json.dumps(PUBLIC_NAMES), cwd=tmp_path)
    assert imported.returncode == 0, imported.stderr
    version = configuration()["project"]["version"]
    expected = {"missing": [], "hidden": [], "elsewhere": [], "version": version}
    assert json.loads(imported.stdout) == expected


# --- a missing framework -------------------------------------------------------------------

IMPORT_WITHOUT = """
import importlib, sys
framework = sys.argv[1]

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == framework:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
try:
    importlib.import_module(f"automl_plugins.adapters.{framework}")
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize("framework", sorted(FRAMEWORKS))
def test_missing_framework_gives_one_helpful_sentence(framework: str, tmp_path: Path) -> None:
    imported = run_python(IMPORT_WITHOUT, framework, cwd=tmp_path)
    assert imported.returncode == 0, imported.stderr
    (sentence,) = imported.stdout.splitlines()
    assert f"pip install automl_plugins[{framework}]" in sentence


BROKEN = """
import sys
from automl_plugins._imports import require
sys.path.insert(0, sys.argv[1])
try:
    require("broken_framework", needed_by="this", extra="broken")
except ModuleNotFoundError as error:
    print(error)
"""


def test_broken_framework_shows_its_own_error(tmp_path: Path) -> None:
    (tmp_path / "broken_framework.py").write_text("import not_installed_either\n")
    imported = run_python(BROKEN, str(tmp_path), cwd=tmp_path)
    assert imported.stdout == "No module named 'not_installed_either'\n", imported.stderr
