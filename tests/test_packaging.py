"""What is shipped."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from architecture import FOLDERS, ROOT, modules

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


# --- the wheel -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, where no left-overs of earlier builds can slip in."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for folder in FOLDERS.values():
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(folder, source / folder.name, ignore=ignore)
    # no isolation: setuptools comes from this environment, not from the network
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist"]
    built = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = (source / "dist").glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the installed wheel and nothing else."""
    target = tmp_path_factory.mktemp("installed")
    options = ["--no-deps", "--no-index", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target)]
    subprocess.run([*command, str(wheel)], check=True)
    return target


def test_wheel_holds_all_modules_and_no_top_level_adapters(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    top_level = {name.partition("/")[0] for name in names}
    metadata = {name for name in top_level if name.endswith(".dist-info")}
    assert top_level - metadata == {"automl_plugins"}
    assert "automl_plugins/py.typed" in names
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    expected = {name.replace(".", "/") + ".py" for name in modules()}
    assert {name for name in names if name.endswith(".py")} == expected


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
from automl_plugins._versions import require
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
