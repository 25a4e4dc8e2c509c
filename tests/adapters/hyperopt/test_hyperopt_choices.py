"""Every list of options and range that a user writes, through the algos: none may fail."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import (
    bandit,
    blended,
    boasf_fmin,
    ei_per_second,
    gbqr,
    initial_trials,
    meta_dataset_from_trials,
    pmf,
    translate,
    tst,
    weighted,
)
from automl_plugins.adapters.hyperopt._arms import arms_of
from hyperopt import Domain, Trials, hp, rand
from hyperopt_runs import minimise, values_of

from automl_plugins.spaces.values import to_values

Lists = Mapping[str, list[Any]]

# What users write, and what ConfigSpace turns into something else or takes for equal.
KNOWN: Lists = {
    "bools": [True, False],
    "numbers and a bool": [1.5, True],
    "equal": [1, True, 1.0, 1],
    "None": ["auto", None, 0.5],
    "text of values": ["True", True, "1", 1, "None", None],
    "nan": [float("nan"), None, float("inf")],
    "tuples": [(64, 32), (64,), [64], ()],
    "huge": [2**60 + 1, 0.5, 2**63, -1],
    "numpy": [np.int64(3), np.float32(0.1), np.bool_(True), np.nan],
    "names": ["names[1]", float("nan"), "names[1]", 1j],
    "objects": [int, len, b"a", {"k": 1}, {"k": (1, 2)}],
    "NUL": ["a", "a\0"],
}


def space_of(lists: Lists) -> dict[str, Any]:
    """The lists as choices, one as ``pchoice``, one nested, one that decides about a number."""
    space: dict[str, Any] = {"x": hp.uniform("x", 0, 1)}
    for i, (name, options) in enumerate(lists.items()):
        if i % 3 == 1:
            space[name] = hp.pchoice(name, [(1 / len(options), option) for option in options])
            continue
        below = [[hp.uniform(f"{name} u", 0, 1), hp.choice(f"{name} b", options)]]
        space[name] = hp.choice(name, [*options, *below] if i % 3 else options)
    return space


def objective(config: Mapping[str, Any]) -> float:
    return float(config["x"]) + sum(len(repr(value)) for value in config.values())


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("hyperopt"), "disabled", True)


ALGOS: dict[str, Callable[[Mapping[str, Trials], str], Any]] = {
    "gbqr": lambda memory, arm: gbqr(n_startup=2),
    "ei_per_second": lambda memory, arm: ei_per_second(n_startup=2),
    "tst": lambda memory, arm: tst(memory=memory),
    "pmf": lambda memory, arm: pmf(memory=memory, n_start=1),
    "blended": lambda memory, arm: blended(memory=memory, n_suggested=1),
    "bandit": lambda memory, arm: bandit(label=arm, inner=gbqr),
    "weighted": lambda memory, arm: weighted(label=arm),
}
ALL = [*ALGOS, "boasf_fmin", "initial_trials"]


@pytest.mark.parametrize("name", ALL)
def test_lists_that_users_write(name: str) -> None:
    space, arm, n, trials = space_of(KNOWN), next(iter(KNOWN)), 5, Trials()
    old = minimise(objective, space, rand.suggest, 6)
    memory = {"a": old, "b": old}
    known = translate(space)
    if name == "boasf_fmin":
        rstate = np.random.default_rng(0)
        options: dict[str, Any] = {"trials": trials, "rstate": rstate, "verbose": False}
        boasf_fmin(objective, space, max_evals=n, label=arm, **options)
    elif name == "initial_trials":
        dataset = meta_dataset_from_trials(memory, space)
        for values in to_values(dataset.space, dataset.vectors):
            assert known.values(known.labels(values)) == values
        trials = initial_trials(space, memory=dataset, n_configs=2)
        minimise(objective, space, rand.suggest, n, trials=trials)
    else:
        minimise(objective, space, ALGOS[name](memory, arm), n, trials=trials)
    assert len(trials) == n
    for document in trials.trials:
        assert document["result"]["status"] == "ok"
        drawn = values_of(document)
        # What was evaluated is what was drawn, and has a name that leads back to it.
        assert known.labels(known.values(drawn)) == drawn


@pytest.mark.parametrize("name", KNOWN)
def test_options_have_names_of_their_own_and_are_arms_and_parts_of_cells(name: str) -> None:
    """Also where a text is what another option would be called."""
    options, n = KNOWN[name], len(KNOWN[name])
    space = translate({name: hp.choice(name, options)})
    assert len(set(space.options[name])) == n
    assert [space.labels({name: o})[name] for o in space.options[name]] == [*range(n)]
    domain = Domain(None, hp.choice("c", options), pass_expr_memo_ctrl=False)
    arms, cells = arms_of(domain), arms_of(domain, split=2)
    assert [arms.arms.find({"c": i}) for i in range(n)] == [*range(n)]
    assert [arms.grid(i) for i in range(n)] == [[{"c": i}] for i in range(n)]
    listed = [values["c"] for i in range(2) for values in cells.grid(i) or ()]
    assert listed == [*range(n)]


# --- ranges that ConfigSpace would round -----------------------------------------------------

EVERY = (-math.inf, math.inf)
EXTREMES: dict[str, tuple[Any, tuple[float, float]]] = {
    "tiny": (hp.uniform("x", 1e-14, 1e-13), (1e-14, 1e-13)),
    "two floats": (hp.uniform("x", 100, 100.00000000000001), (100, 100.00000000000001)),
    "denormal": (hp.uniform("x", 0, 1e-310), (0, 1e-310)),
    "largest": (hp.uniform("x", 0, 1.7e308), EVERY),
    "log": (hp.loguniform("x", math.log(1e-14), math.log(1e-3)), (0.999e-14, 1.001e-3)),
    "log of all": (hp.loguniform("x", -700, 700), EVERY),
    "log of nothing": (hp.loguniform("x", -2000, -100), EVERY),
    "many steps": (hp.quniform("x", 0, 1e16, 1e-3), EVERY),
    "tiny steps": (hp.quniform("x", 0, 1e-14, 1e-15), EVERY),
    "large steps": (hp.quniform("x", 0, 1e300, 1), EVERY),
    "integers": (hp.randint("x", -(2**62), 2**62), (-(2**62), 2**62)),
    "few large integers": (hp.randint("x", 2**60, 2**60 + 5), (2**60, 2**60 + 4)),
    "normal": (hp.normal("x", 0, 1e-15), EVERY),
    "normal integers": (hp.qnormal("x", 0, 1e20, 1), EVERY),
    "one value": (hp.normal("x", 1, 0), EVERY),
    "lognormal": (hp.lognormal("x", -50, 1), EVERY),
    "qlognormal": (hp.qlognormal("x", 0, 30, 1), EVERY),
    "qloguniform": (hp.qloguniform("x", -60, -50, 1e-27), EVERY),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_extremes_are_searched_with_as_many_values_as_at_random(name: str) -> None:
    space, (low, high) = EXTREMES[name]

    def search(algo: Any) -> list[Any]:
        values: list[Any] = []
        minimise(lambda x: values.append(x) or float(len(values) % 4), space, algo, 10)  # type: ignore[func-returns-value]
        return values

    random = search(rand.suggest)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = search(gbqr(n_candidates=100))
    assert np.isfinite(np.array(values, dtype=np.float64)).all()
    assert len(set(values)) >= len(set(random))
    assert all(low <= value <= high for value in values)
