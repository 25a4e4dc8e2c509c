"""Which part may import which: adapters know the core, those of the core import downwards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from architecture import (
    ADAPTERS,
    CORE,
    GROUND,
    ROOT,
    all_imports,
    circle,
    imports_of,
    layers,
    module_of,
    modules,
    package_of,
)

FRAMEWORKS = {path.parent.name for path in (ROOT / "adapters").glob("*/__init__.py")}

BELOW: dict[str, set[str]] = {
    GROUND: set(),
    "spaces": set(),
    "records": set(),
    "surrogates": {"spaces", "records"},
    "bandits": {"spaces", "records"},
    "frameworks": {"records", "bandits"},
    "meta": {"spaces", "records", "surrogates", "frameworks"},
    "proposers": {"spaces", "records", "surrogates", "meta"},
    "recipes": {"spaces", "records", "surrogates", "meta", "proposers"},
    "replay": {"spaces", "records", "proposers", "frameworks"},
    "statistics": {"records", "frameworks"},
    "visualization": {"spaces", "records", "meta", "bandits", "statistics", "frameworks"},
}
"""Packages that each may import, besides itself and the ground. Above them: adapters, commands."""

DEFERRED = {
    "automl_plugins.meta.store": "SQLAlchemy is an optional library",
    "automl_plugins.meta.meta_learner": "most searches have no meta-learner, and LightGBM is slow",
    "automl_plugins.meta.factorization": "most searches do not factorise, and it loads much",
    "automl_plugins.proposers.pipelines": "it stands on the factorisation",
}
"""What may be imported inside a function, and why."""


def forbidden(module: str, imported: str) -> bool:
    """Whether ``module`` must not import ``imported``, for frameworks and adapters."""
    own = module.removeprefix(ADAPTERS + ".").split(".") if module.startswith(ADAPTERS) else []
    framework = own[0] if len(own) > 1 else None  # None: the core, or what all adapters share
    parts = imported.split(".")
    if parts[0] == "adapters":
        return True
    if parts[:2] == ADAPTERS.split("."):
        is_adapter = len(parts) > 2 and (ROOT / "adapters" / parts[2]).is_dir()
        return not own or (is_adapter and parts[2] != framework)
    return parts[0] in FRAMEWORKS and parts[0] != framework


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        ("automl_plugins.spaces.vector_space", "import ConfigSpace, numpy.linalg", False),
        ("automl_plugins.spaces.vector_space", "def f():\n    import optuna.trial", True),
        ("automl_plugins.spaces.vector_space", "from smac import Scenario", True),
        ("automl_plugins.recipes", "from . import adapters", True),
        ("automl_plugins.meta.store", "from ..adapters.optuna import record", True),
        ("automl_plugins.meta.store", "from ..records import History", False),
        ("automl_plugins.adapters.optuna.record", "import optuna", False),
        ("automl_plugins.adapters.optuna.record", "import hyperopt", True),
        ("automl_plugins.adapters.optuna.record", "from ..optuna import trials", False),
        ("automl_plugins.adapters.smac.record", "from .. import optuna", True),
        ("automl_plugins.adapters.smac.record", "from automl_plugins.records import H", False),
        ("automl_plugins.adapters.smac.record", "from adapters.smac import curves", True),
        ("automl_plugins.adapters.shared", "from .optuna import record", True),
        ("automl_plugins.adapters.shared", "import optuna", True),
    ],
)
def test_the_rule_for_frameworks(module: str, source: str, expected: bool) -> None:
    found = [one.imported for one in imports_of(module, source)]
    assert any(forbidden(module, imported) for imported in found) == expected


def test_only_an_adapter_knows_its_framework() -> None:
    found = [
        one
        for name, path in modules().items()
        for one in imports_of(name, path.read_text(encoding="utf-8"))
    ]
    assert [one for one in found if forbidden(one.module, one.imported)] == []


def test_arrows_go_down() -> None:
    wrong = set()
    for one in all_imports():
        target = module_of(one.imported)
        if target is None or target.endswith(f"{CORE}.__init__"):
            continue
        package, below = package_of(one.module), package_of(target)
        if package in BELOW and below not in BELOW[package] | {package, GROUND}:
            wrong.add(f"{one.module} -> {target}")
    assert sorted(wrong) == []


def test_the_rule_for_packages() -> None:
    assert module_of("automl_plugins.meta.MetaStore") not in (None, "automl_plugins.meta.__init__")
    assert package_of("automl_plugins.meta.store.rows") == "meta"
    assert package_of("automl_plugins.streams") == GROUND
    assert set(layers()) >= {*BELOW, "adapters"}
    assert max(layers(), key=layers().__getitem__) in ("adapters", "__main__")


def test_no_files_import_each_other_in_a_circle() -> None:
    assert circle() == []


def test_the_project_is_imported_at_the_head_of_a_file() -> None:
    """Commands are exempt: they start quickly."""
    deferred = {
        f"{one.module} -> {one.imported}"
        for one in all_imports()
        if one.deferred
        and module_of(one.imported)
        and package_of(one.module) in BELOW
        and not one.imported.startswith(tuple(DEFERRED))
    }
    assert sorted(deferred) == []


IMPORT_CORE = """
import importlib, pkgutil, sys
import automl_plugins
for module in pkgutil.walk_packages(automl_plugins.__path__, "automl_plugins."):
    if not module.name.startswith("automl_plugins.adapters") and "__main__" not in module.name:
        importlib.import_module(module.name)
        print(module.name)
found = {*sys.argv[1:], "automl_plugins.adapters"} & set(sys.modules)
sys.exit(f"the core brings in {sorted(found)}" if found else 0)
"""


def test_importing_the_core_brings_in_no_framework(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-c", IMPORT_CORE, *sorted(FRAMEWORKS)]
    imported = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert imported.returncode == 0, imported.stderr
    core = [name for name in modules() if not name.startswith(ADAPTERS + ".")]
    expected = {name.removesuffix(".__init__") for name in core} - {CORE, f"{CORE}.__main__"}
    assert set(imported.stdout.split()) == expected
