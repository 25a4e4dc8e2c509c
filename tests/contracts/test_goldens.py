"""Proposals, round trips, replays and searches of arms are as recorded in the goldens.

``python tests/contracts/write_goldens.py`` writes the goldens.
"""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from golden_cases import cases
from goldens import FOLDER, Case, arithmetic, differences, plain, read, versions

CASES = cases()
cached = cache(read)


@pytest.fixture(autouse=True)
def _quietly() -> Any:
    """Log no line for each trial, for the report of a failure."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


def named(*beginnings: str) -> pytest.MarkDecorator:
    found = [case for case in CASES if case.golden.startswith(beginnings)]
    return pytest.mark.parametrize("case", found, ids=lambda case: str(case.id))


ARMS = ("proposals_weighted", "proposals_bandit", "proposals_boasf")
OF_MODELS = {case.golden for case in CASES if case.golden.startswith("proposals")} - {*ARMS}
# Another arithmetic changes one of fifty; what changes a tenth is no arithmetic.
PROCESSES = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
MOST = 0.1 * sum(case.golden in OF_MODELS for case in CASES) / PROCESSES
differing: list[str] = []  # in this process


def check(case: Case, folder: Path, *, of_models: bool = False) -> None:
    golden, today = cached(case.golden), versions()
    other = [
        f"{library} {golden['versions'][library]} (here {today[library]})"
        for library in case.needs
        if golden["versions"][library] != today[library]
    ]
    if other:
        pytest.skip(f"was written with {', '.join(other)}, whose numbers may differ")
    found = list(differences(plain(case.compute(folder)), golden["cases"][case.name]))
    if found and of_models and golden["arithmetic"] != arithmetic():
        differing.append(case.id)
        assert len(differing) <= MOST, f"too many differ: {', '.join(differing)}"
        pytest.skip("was written on a processor that rounds differently, and differs here")
    assert not found, "\n".join(found)


@named(*OF_MODELS)
def test_proposals_are_as_they_were(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path, of_models=True)


@named(*ARMS)
def test_proposals_in_arms_are_as_they_were(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


@named("round_trips")
def test_round_trips_are_as_they_were(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


@named("replays")
def test_replays_are_as_they_were(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


@named("boasf")
def test_boasf_is_as_it_was(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


def test_every_case_is_written_and_nothing_else() -> None:
    expected: dict[str, list[str]] = {}
    for case in CASES:
        expected.setdefault(case.golden, []).append(case.name)
    written = {path.stem: list(read(path.stem)["cases"]) for path in FOLDER.glob("*.json")}
    assert written == expected


def test_differences_are_found() -> None:
    a = {"x": 1.0, "n": 3, "ok": [True, None, "a"]}
    assert not list(differences(a, a))
    assert not list(differences(a | {"x": 1.0 + 1e-7}, a))
    others: list[dict[str, Any]] = [
        {"x": 1.00001},
        {"x": 1},
        {"n": 3.0},
        {"n": True},
        {"ok": [True, None]},
        {"ok": [1, None, "a"]},
        {"more": 0},
    ]
    for other in others:
        assert len(list(differences(a | other, a))) == 1
    assert list(differences({"x": 1.0}, a))
    assert plain({"a": np.array([1, math.nan, 1 / 3]), 1: (np.int64(2), math.inf)}) == {
        "a": [1.0, None, 0.33333333],
        "1": [2, "inf"],
    }
