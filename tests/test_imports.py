"""What is too old is refused when it is imported, and an import loads only what it needs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import FunctionType

import optuna
import pytest

from automl_plugins import _imports, frameworks
from automl_plugins._imports import (
    OutdatedError,
    is_older,
    lower_bounds,
    refuse_outdated,
    require,
)

ROOT = Path(__file__).resolve().parents[1]


def test_versions_are_compared_by_their_numbers() -> None:
    for older in ("4.9.0", "5.0.0b1", "5.0.0rc2", "5.0.0.dev0", "4"):
        assert is_older(older, "5.0"), older
    for other in ("5.0.0", "5", "10.0", "5.10", "5.1.0.dev0", "5.0.0.post1", "5.0+1", "unknown"):
        assert not is_older(other, "5.0"), other
    assert is_older("5", "5.0.1") and not is_older("1.10", "1.9")


def test_the_bounds_are_the_versions_that_the_oldest_tests_run_on() -> None:
    text = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8")
    oldest = dict(re.findall(r"^([\w-]+)==([\d.]+)", text, flags=re.MULTILINE))
    bounds = {name: b for name, (b, extra) in lower_bounds().items() if extra != "dev"}
    assert bounds.keys() == oldest.keys()
    for name, bound in bounds.items():
        assert not is_older(oldest[name], bound) and not is_older(bound, oldest[name]), name


def test_what_is_too_old_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    bound, extra = lower_bounds()["plotly"]
    monkeypatch.setattr(_imports, "version", lambda _: "5.24.1")
    with pytest.raises(OutdatedError) as caught:
        require("plotly", needed_by="plots", extra="plot")
    assert str(caught.value) == (
        f"plots needs plotly >= {bound}, and 5.24.1 is installed:"
        f" pip install --upgrade 'plotly>={bound}' 'automl_plugins[{extra}]'"
    )
    monkeypatch.setattr(_imports, "version", lambda _: bound)
    require("plotly", needed_by="plots", extra="plot")


def test_what_has_no_bound_or_no_metadata_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(_imports, "version", lambda _: "0.0.1")
    refuse_outdated("nobody-asks-for-it", needed_by="x")
    monkeypatch.setattr(_imports, "version", missing)
    refuse_outdated("optuna", needed_by="x")


IMPORTS = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
for module in sys.argv[2:]:
    try:
        importlib.import_module(module)
    except ImportError as error:
        print(error)
print(sorted({"optuna", "smac", "hyperopt", "numpy"} & set(sys.modules)))
"""


def install(folder: Path, name: str, version: str) -> None:
    """The metadata of a version, found before that of the real one."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (info / "METADATA").write_text(text, encoding="utf-8")


def errors(folder: Path, *modules: str) -> list[str]:
    """The lines that are printed when the modules are imported."""
    command = [sys.executable, "-I", "-c", IMPORTS, str(folder), *modules]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    return done.stdout.splitlines()


def test_adapters_refuse_old_frameworks_before_they_import_them(tmp_path: Path) -> None:
    old = {"hyperopt": "0.2.7", "optuna": "4.5.0", "smac": "2.3.1"}
    for name, version in old.items():
        install(tmp_path, name, version)
    *lines, imported = errors(tmp_path, *(f"automl_plugins.adapters.{name}" for name in old))
    assert len(lines) == 3
    for line, (name, version) in zip(lines, old.items(), strict=True):
        assert line.startswith(f"automl_plugins.adapters.{name} needs {name} >= ")
        assert f"and {version} is installed: pip install" in line
    assert imported == "[]"


def test_the_core_refuses_old_numerics(tmp_path: Path) -> None:
    install(tmp_path, "scikit-learn", "1.5.2")
    first, imported = errors(tmp_path, "automl_plugins.spaces.vector_space")
    assert first.startswith("automl_plugins needs scikit-learn >= ")
    assert imported == "[]"


def test_an_old_framework_is_no_hindrance_to_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    whole = frameworks.load_adapter
    address = f"sqlite:///{tmp_path / 'runs.db'}"
    optuna.create_study(storage=address)

    def adapter(name: str) -> object:
        if name == "hyperopt":
            raise OutdatedError("hyperopt is too old")
        return whole(name)

    monkeypatch.setattr(frameworks, "load_adapter", adapter)
    assert frameworks.reader_of(address).name == "optuna"
    assert "hyperopt is too old" in caplog.text


# --- packages loaded in parts offer all of their names ----------------------------------------

PACKAGES = {
    "automl_plugins.adapters.hyperopt": ROOT / "adapters" / "hyperopt",
    "automl_plugins.adapters.optuna": ROOT / "adapters" / "optuna",
    "automl_plugins.adapters.smac": ROOT / "adapters" / "smac",
    **{
        f"automl_plugins.{name}": ROOT / "automl_plugins" / name
        for name in ("bandits", "meta", "recipes", "surrogates")
    },
}


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_and_python_find_the_same_names(package: str) -> None:
    tree = ast.parse((PACKAGES[package] / "__init__.py").read_text(encoding="utf-8"))
    (typed,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname: (node.module or "").removeprefix(f"{package}.")  # `name as name` is public
        for node in typed.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    (call,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) == "import_when_used"
    )
    homes = ast.literal_eval(call.args[1])
    assert {name: home for home, names in homes.items() for name in names} == seen
    module = import_module(package)
    assert set(module.__all__) == set(seen) <= set(dir(module))
    assert all(n.startswith("__") for n in set(dir(module)) - set(seen))
    for name in module.__all__:
        home = seen[name]
        whole = home if home.startswith("automl_plugins.") else f"{package}.{home}"
        assert getattr(module, name) is getattr(import_module(whole), name)


def test_a_public_name_wins_over_the_module_of_that_name(monkeypatch: pytest.MonkeyPatch) -> None:
    package = import_module("automl_plugins.adapters.optuna")
    monkeypatch.delitem(sys.modules, "automl_plugins.adapters.optuna.explain", raising=False)
    monkeypatch.delitem(vars(package), "explain", raising=False)
    import_module("automl_plugins.adapters.optuna.explain")
    assert isinstance(package.explain, FunctionType)


def test_a_name_that_is_none_is_an_attribute_error() -> None:
    package = import_module("automl_plugins.adapters.optuna")
    with pytest.raises(AttributeError, match=r"optuna' has no attribute 'GbqrSampler'"):
        package.GbqrSampler  # noqa: B018
    assert not hasattr(package, "__wrapped__")


LOADED = """
import importlib, sys
unneeded, framework, statement = sys.argv[1:]
if framework:
    importlib.import_module(framework)
before = set(sys.modules)
exec(statement)
print(*sorted(set(unneeded.split()) & (set(sys.modules) - before)))
"""
MODELS = "lightgbm sklearn pandas automl_plugins.surrogates.gaussian_process"
NUMERICS = f"ConfigSpace scipy scipy.stats {MODELS}"
OF_A_FITTED_MEMORY = (
    "sqlalchemy plotly tabulate automl_plugins.meta.factorization automl_plugins.meta.store"
    " automl_plugins.meta.meta_learner automl_plugins.meta.features.extraction"
    " automl_plugins.proposers.pipelines"
)
LATER = (
    f"{OF_A_FITTED_MEMORY} automl_plugins.surrogates.two_stage automl_plugins.surrogates.blended"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("framework", "statement", "unneeded"),
    [
        *(
            (name, f"import automl_plugins.adapters.{name}", f"{NUMERICS} {LATER}")
            for name in ("optuna", "hyperopt", "smac")
        ),
        *(
            (framework, f"from automl_plugins.adapters.{framework} import {name}", unneeded)
            for framework, name, unneeded in (
                ("optuna", "AutoSampler", f"{MODELS} {LATER}"),
                ("optuna", "BOASFSampler, BanditSampler", f"{MODELS} {LATER}"),
                ("optuna", "SuccessiveFilteringPruner", f"{NUMERICS} {LATER}"),
                ("hyperopt", "auto, boasf_fmin", f"{MODELS} {LATER}"),
                ("smac", "AutoFacade", f"{MODELS} {LATER}"),
            )
        ),
        (
            "optuna",
            "from automl_plugins.adapters.optuna import AutoSampler; AutoSampler(None, seed=0)",
            LATER,
        ),
        (
            "optuna",
            "from automl_plugins.adapters.optuna import AutoSampler; AutoSampler(seed=0)",
            OF_A_FITTED_MEMORY,
        ),
        ("", "import automl_plugins.__main__", f"{NUMERICS} {LATER}"),
        (
            "",
            "import automl_plugins.statistics as s; s.finner([0.1]); s.average_ranks([[1, 2]])",
            "pandas tabulate optuna smac hyperopt",
        ),
    ],
)
def test_an_import_loads_what_it_needs(
    framework: str, statement: str, unneeded: str, tmp_path: Path
) -> None:
    """Beyond what the framework loads by itself. ConfigSpace brings scipy.stats with it."""
    command = [sys.executable, "-c", LOADED, unneeded, framework, statement]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == []
