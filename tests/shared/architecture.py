"""Figures of the architecture, measured from its imports: ``python tests/shared/architecture.py``.

Files, lines, import cycles, layers and the longest chain of modules behind a proposal; with
``paths`` also how many modules run on each of the six paths that docs/architecture.md describes.
"""

from __future__ import annotations

import ast
import inspect
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CORE, ADAPTERS = "automl_plugins", "automl_plugins.adapters"
FOLDERS = {CORE: ROOT / "automl_plugins", ADAPTERS: ROOT / "adapters"}
GROUND = "ground"
"""The modules of the top level that import no package above them."""


@dataclass(frozen=True)
class Import:
    """One import statement of a name or module.

    Attributes:
        module: Dotted name of the importing module.
        imported: Full name of the import; ``from a import b`` is ``a.b``, which may be a module.
        deferred: Whether it stands inside a function.
    """

    module: str
    imported: str
    deferred: bool


@cache
def modules() -> Mapping[str, Path]:
    """Files of all modules by dotted name as installed; a package is named ``x.__init__``."""
    return {
        ".".join((top, *path.relative_to(folder).with_suffix("").parts)): path
        for top, folder in FOLDERS.items()
        for path in sorted(folder.rglob("*.py"))
    }


def imports_of(module: str, source: str) -> Iterator[Import]:
    """All imports of a module, at any depth of its code."""
    package = module.rpartition(".")[0]

    def visit(node: ast.AST, deferred: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (Import(module, alias.name, deferred) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                relative = "." * child.level + (child.module or "")
                base = resolve_name(relative, package) if child.level else relative
                for alias in child.names:
                    yield Import(module, f"{base}.{alias.name}", deferred)
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from visit(child, deferred or inside)

    yield from visit(ast.parse(source), False)


@cache
def all_imports() -> tuple[Import, ...]:
    """The imports of all modules except the ``__init__`` files, which only re-export names."""
    return tuple(
        found
        for name, path in modules().items()
        if not name.endswith(".__init__")
        for found in imports_of(name, path.read_text(encoding="utf-8"))
    )


@cache
def _reexports() -> Mapping[str, str]:
    """Where the names are defined that the ``__init__`` files re-export."""
    reexports = {}
    for name, path in modules().items():
        package = name.removesuffix(".__init__")
        if package != name:
            for found in imports_of(name, path.read_text(encoding="utf-8")):
                public = f"{package}.{found.imported.rpartition('.')[2]}"
                if found.imported.startswith(f"{CORE}.") and found.imported != public:
                    reexports[public] = found.imported
    return reexports


def module_of(imported: str) -> str | None:
    """The module of this project that an imported name belongs to."""
    if imported in modules():
        return imported
    if imported in _reexports():
        return module_of(_reexports()[imported])
    if f"{imported}.__init__" in modules():
        return f"{imported}.__init__"
    parent = imported.rpartition(".")[0]
    return module_of(parent) if parent.startswith(CORE) else None


def package_of(module: str) -> str:
    """The folder of a module; of the core's top level the module itself, or the ground."""
    if module.startswith(f"{ADAPTERS}."):
        return "adapters"
    parts = module.split(".")
    if len(parts) > 2:
        return parts[1]
    return parts[1] if parts[1] in ("frameworks", "__main__") else GROUND


def arrows() -> dict[str, set[str]]:
    """The modules that each module imports, imports for type checkers included."""
    found: dict[str, set[str]] = {name: set() for name in modules()}
    for one in all_imports():
        target = module_of(one.imported)
        if target is not None and target != one.module and not target.endswith(".__init__"):
            found[one.module].add(target)
    return found


def circle() -> list[str]:
    """The modules of one import cycle; empty if there is none."""
    try:
        TopologicalSorter(arrows()).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def layers() -> dict[str, int]:
    """The layer of each package: one above the highest one that it imports."""
    packages: dict[str, set[str]] = defaultdict(set)
    for module, targets in arrows().items():
        packages[package_of(module)] |= {package_of(target) for target in targets}
    for package, targets in packages.items():
        targets.discard(package)
    found: dict[str, int] = {}
    for package in TopologicalSorter(packages).static_order():
        found[package] = 1 + max((found[below] for below in packages[package]), default=0)
    return found


def longest_chain(start: str) -> list[str]:
    """The longest chain of imports below a module; needs imports without cycles."""
    graph = arrows()

    @cache
    def below(module: str) -> tuple[str, ...]:
        chains = [below(target) for target in sorted(graph[module])]
        return (module, *max(chains, key=len, default=()))

    return list(below(start))


def count_modules(run: Callable[[], Any]) -> set[str]:
    """The modules of this project in which a function runs meanwhile."""
    files = {str(path): name for name, path in modules().items()}
    touched: set[str] = set()

    def note(frame: Any, event: str, _: Any) -> None:
        # code of functions is optimised; bodies of modules and classes, run at import, are not
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            name = files.get(frame.f_code.co_filename)
            if name is not None:
                touched.add(name)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return touched


def paths(folder: Path) -> dict[str, Callable[[], Any]]:
    """The six paths through the code of docs/architecture.md, each as short as it can be."""
    import hyperopt
    import numpy as np
    import optuna
    import pandas as pd
    from automl_plugins.adapters import hyperopt as our_hyperopt
    from automl_plugins.adapters import optuna as our_optuna
    from automl_plugins.adapters import smac as our_smac
    from ConfigSpace import ConfigurationSpace, Float
    from smac import HyperparameterOptimizationFacade, Scenario

    from automl_plugins.replay import Table, replay
    from automl_plugins.statistics import compare

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = {"x": hyperopt.hp.uniform("x", 0, 1), "y": hyperopt.hp.choice("y", ["a", "b"])}
    configspace = ConfigurationSpace({"x": Float("x", (0.0, 1.0)), "y": ["a", "b"]})

    def objective(trial: optuna.Trial) -> float:
        y = trial.suggest_categorical("y", ["a", "b"])
        return float(trial.suggest_float("x", 0, 1) ** 2 + (y == "a"))

    def run(sampler: optuna.samplers.BaseSampler, n_trials: int) -> optuna.Study:
        study = optuna.create_study(sampler=sampler)
        study.optimize(objective, n_trials)
        return study

    def loss(values: Mapping[str, Any]) -> float:
        return float(values["x"] ** 2 + (values["y"] == "a"))

    def search(algo: Any, n_trials: int) -> hyperopt.Trials:
        trials = hyperopt.Trials()
        rstate = np.random.default_rng(0)
        hyperopt.fmin(loss, space, algo, n_trials, trials=trials, rstate=rstate, verbose=False)
        return trials

    earlier = run(optuna.samplers.RandomSampler(seed=1), 20)

    def transfer() -> None:
        memory = our_optuna.meta_dataset_from_studies([earlier])
        run(our_optuna.TSTSampler(memory, seed=0), 12)

    def design() -> None:
        scenario = Scenario(configspace, n_trials=5, output_directory=folder)
        suggested = our_smac.MetaInitialDesign(
            scenario, memory=our_optuna.meta_dataset_from_studies([earlier]), n_configs=2
        )
        HyperparameterOptimizationFacade(
            scenario,
            lambda config, seed=0: loss(config),
            initial_design=suggested,
            logging_level=False,
            overwrite=True,
        ).optimize()

    def evidence() -> None:
        rng = np.random.default_rng(0)
        tables = [
            Table.from_frame(
                pd.DataFrame({"x": rng.random(20), "loss": rng.random(20)}),
                loss="loss",
                name=str(name),
            )
            for name in range(4)
        ]
        methods = {"TPE": optuna.samplers.TPESampler, "random": optuna.samplers.RandomSampler}
        str(compare(replay(methods, tables, budget=5, seed=[0, 1])))

    return {
        "an Optuna trial to LightGBM and back": lambda: run(our_optuna.GBQRSampler(seed=0), 15),
        "gbqr in Hyperopt": lambda: search(our_hyperopt.gbqr, 15),
        "BOASF in Hyperopt": lambda: our_hyperopt.boasf_fmin(
            loss, {**space, "y": hyperopt.hp.choice("y", ["a", "b"])}, max_evals=12, verbose=False
        ),
        "TST from a study to a vote": transfer,
        "SMAC's initial design": design,
        "a table to a p-value": evidence,
    }


def main() -> None:
    files = modules()
    n_lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files.values())
    print(f"{len(files)} files, {n_lines} lines, {'a circle' if circle() else 'no circles'}")
    if not circle():
        chain = longest_chain(f"{ADAPTERS}.optuna.samplers")
        print(f"{max(layers().values())} layers; {len(chain)} modules in the longest chain:")
        print("  " + " -> ".join(chain))
        for package, layer in sorted(layers().items(), key=lambda item: -item[1]):
            print(f"  {layer} {package}")
    if "paths" in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            for name, run in paths(Path(folder)).items():
                print(f"{len(count_modules(run)):3d} modules: {name}", flush=True)


if __name__ == "__main__":
    main()
