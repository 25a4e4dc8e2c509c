"""The packages for OptunaHub: their files, their front matter, and that they do what they show."""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from types import ModuleType

import optuna
import optunahub
import pytest
from automl_plugins.adapters import optuna as installed

from automl_plugins._imports import lower_bounds

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "package"
FILES = {"__init__.py", "README.md", "LICENSE", "example.py", "requirements.txt"}
TAGS = {"samplers": "sampler", "pruners": "pruner"}  # that the registry asks for, by folder

PACKAGES = {
    "samplers/committee": "AutoSampler",
    "samplers/gbqr": "GBQRSampler",
    "samplers/ei_per_second": "EIPerSecondSampler",
    "samplers/two_stage_transfer": "TSTSampler",
    "samplers/boasf": "BOASFSampler BanditSampler",
    "pruners/successive_filtering": "SuccessiveFilteringPruner",
}
PRINTED = {
    "samplers/committee": r"best: \d+\.\d{4} at \{.*'shape'",
    "samplers/gbqr": r"best: \d\.\d{4} at \{.*'kernel'.*\d+ trials failed",
    "samplers/ei_per_second": r"TPESampler: .* s\nEIPerSecondSampler: \d\.\d{4} after \d+ s",
    "samplers/two_stage_transfer": r"best: \d+\.\d{4} at .*trial 11: .*nearer \d+%",
    "samplers/boasf": r"BOASFSampler: best .*3 arms.*BanditSampler: best .*3 arms",
    "pruners/successive_filtering": r"NopPruner: .* 324 steps\nSuccessiveF.* steps",
}


@pytest.fixture(autouse=True)
def few_lines() -> Iterator[None]:
    """Optuna logs every trial, and a failure shows all of it."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(optuna.logging.INFO)


def load(name: str) -> ModuleType:
    return optunahub.load_local_module(name, registry_root=str(PACKAGE))


def front_matter(text: str) -> dict[str, str]:
    """The lines between the first two rules, as the registry reads them."""
    _, head, _ = text.split("---\n", 2)
    return dict(line.split(": ", 1) for line in head.splitlines())


def entries(text: str) -> list[str]:
    """The entries of a list on one line."""
    assert text.startswith("[") and text.endswith("]"), text
    return text[1:-1].split(", ")


def snippets(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_every_package_is_tested() -> None:
    folders = {path.parent for path in PACKAGE.rglob("__init__.py")}
    assert {str(folder.relative_to(PACKAGE)) for folder in folders} == set(PACKAGES)


@pytest.mark.parametrize("name", PACKAGES)
def test_files(name: str) -> None:
    folder = PACKAGE / name
    assert {path.name for path in folder.iterdir()} - {"__pycache__"} == FILES
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    (requirement,) = (folder / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert requirement == "automl_plugins[optuna]>=0.1.0"


@pytest.mark.parametrize("name", PACKAGES)
def test_front_matter(name: str) -> None:
    facts = front_matter((PACKAGE / name / "README.md").read_text(encoding="utf-8"))
    assert list(facts) == ["author", "title", "description", "tags", "optuna_versions", "license"]
    assert all(value.strip() == value and value for value in facts.values())
    # in YAML they would begin something else
    assert not any(": " in facts[key] or " #" in facts[key] for key in facts)
    assert TAGS[name.partition("/")[0]] in entries(facts["tags"])
    assert facts["license"] == "MIT License"
    oldest, newest = entries(facts["optuna_versions"])
    assert oldest.startswith(lower_bounds()["optuna"][0])
    assert newest.partition(".")[0] == "5"


@pytest.mark.parametrize("name", PACKAGES)
def test_modules_hand_on_the_installed_classes(name: str) -> None:
    module = load(name)
    text = (PACKAGE / name / "README.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"## Class or Function Names\n(.*?)\n## ", text, re.DOTALL)
    assert set(re.findall(r"^- `(\w+)`", section, re.MULTILINE)) == set(module.__all__)
    assert set(PACKAGES[name].split()) <= set(module.__all__)
    for public in module.__all__:
        assert getattr(module, public) is getattr(installed, public)
    for public in PACKAGES[name].split():
        base = optuna.pruners.BasePruner if "pruner" in name else optuna.samplers.BaseSampler
        assert issubclass(getattr(module, public), base)


@pytest.mark.parametrize("name", PACKAGES)
def test_readmes_show_what_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The snippet, its packages taken from this folder instead of from the hub."""
    monkeypatch.setattr(optunahub, "load_module", lambda package: load(package))
    text = (PACKAGE / name / "README.md").read_text(encoding="utf-8")
    (snippet,) = snippets(text)
    few = re.sub(r"n_trials=\d+", "n_trials=12", snippet)
    found: dict[str, object] = {}
    exec(compile(few, f"{name}/README.md", "exec"), found)
    study = found["study"]
    assert isinstance(study, optuna.Study) and len(study.trials) == 12
    assert f"https://hub.optuna.org/{name}/requirements.txt" in text


@pytest.mark.parametrize("name", PACKAGES)
def test_arguments_that_readmes_name_exist(name: str) -> None:
    module = load(name)
    text = (PACKAGE / name / "README.md").read_text(encoding="utf-8")
    calls = re.findall(r"^- `(\w+)\((.*)\)`$", text, re.MULTILINE)
    assert {called for called, _ in calls} == set(PACKAGES[name].split())
    for called, arguments in calls:
        parameters = signature(getattr(module, called)).parameters
        for argument in re.findall(r"(\w+)=([^,]+)", arguments):
            assert repr(parameters[argument[0]].default) == argument[1].replace('"', "'")


@pytest.mark.parametrize("name", PACKAGES)
def test_examples(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = PACKAGE / name / "example.py"
    text = script.read_text(encoding="utf-8")
    assert f"python package/{name}/example.py [" in text and len(text.splitlines()) < 60
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", [str(script), "--n-trials", "12"])
    monkeypatch.setattr(sys, "modules", sys.modules.copy())
    runpy.run_path(str(script), run_name="__main__")
    assert re.search(PRINTED[name], capsys.readouterr().out, re.DOTALL)
