"""What an import loads, and that packages loaded in parts offer all of their names."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import FunctionType

import pytest

ROOT = Path(__file__).resolve().parents[1]
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
    monkeypatch.delitem(sys.modules, "automl_plugins.adapters.optuna.arm_report", raising=False)
    monkeypatch.delitem(vars(package), "arm_report", raising=False)
    import_module("automl_plugins.adapters.optuna.arm_report")
    assert isinstance(package.arm_report, FunctionType)


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
