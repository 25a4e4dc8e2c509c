"""Every list of options that a user writes, through all algos: none may fail or mix up options."""

import logging
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
    tst,
    weighted,
)
from automl_plugins.adapters.hyperopt._arms import arms_of
from automl_plugins.adapters.hyperopt.space import translate
from hyperopt import Domain, Trials, fmin, hp, rand
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
_ATOMS = st.sampled_from([value for values in KNOWN.values() for value in values])
_LISTS = st.lists(st.lists(_ATOMS, min_size=1, max_size=4), min_size=1, max_size=4)


def space_of(lists: Lists) -> dict[str, Any]:
    """The lists as choices, one as ``pchoice``, one nested, one that decides about a number."""
    space: dict[str, Any] = {"x": hp.uniform("x", 0, 1)}
    for i, (name, options) in enumerate(lists.items()):
        if i % 3 == 0:
            space[name] = hp.choice(name, options)
        elif i % 3 == 1:
            space[name] = hp.pchoice(name, [(1 / len(options), option) for option in options])
        else:
            below = [*options, [hp.uniform(f"{name} u", 0, 1), hp.choice(f"{name} b", options)]]
            space[name] = hp.choice(name, below)
    return space


def objective(config: Mapping[str, Any]) -> float:
    return float(config["x"]) + sum(len(repr(value)) for value in config.values())


def searched(algo: Any, space: Any, n: int, trials: Trials | None = None) -> Trials:
    trials = Trials() if trials is None else trials
    fmin(
        objective,
        space,
        algo=algo,
        max_evals=n,
        trials=trials,
        rstate=np.random.default_rng(0),
        show_progressbar=False,
    )
    return trials


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


def check(lists: Lists, names: list[str], n: int) -> None:
    space = space_of(lists)
    old = searched(rand.suggest, space, 6)
    memory = {"a": old, "b": old}
    known = translate(space)
    for name in names:
        if name == "boasf_fmin":
            trials = Trials()
            boasf_fmin(
                objective,
                space,
                max_evals=n,
                label=next(iter(lists)),
                trials=trials,
                rstate=np.random.default_rng(0),
                show_progressbar=False,
            )
        elif name == "initial_trials":
            dataset = meta_dataset_from_trials(memory, space)
            for values in to_values(dataset.space, dataset.vectors):
                assert known.values(known.labels(values)) == values
            trials = initial_trials(space, memory=dataset, n_configs=2)
            searched(rand.suggest, space, n, trials)
        else:
            trials = searched(ALGOS[name](memory, next(iter(lists))), space, n)
        assert len(trials) == n, name
        for document in trials.trials:
            assert document["result"]["status"] == "ok", name
            drawn = {k: v[0] for k, v in document["misc"]["vals"].items() if len(v)}
            # What was evaluated is what was drawn, and has a name that leads back to it.
            assert known.labels(known.values(drawn)) == drawn, name


ALL = [*ALGOS, "boasf_fmin", "initial_trials"]


@pytest.mark.parametrize("name", ALL)
def test_lists_that_users_write(name: str) -> None:
    check(KNOWN, [name], 5)


@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(_LISTS)
def test_lists_that_nobody_thought_of(lists: list[list[Any]]) -> None:
    check({f"c{i}": options for i, options in enumerate(lists)}, ALL, 4)


def test_options_have_names_of_their_own() -> None:
    """Also where a text is what another option would be called."""
    space = translate({name: hp.choice(name, options) for name, options in KNOWN.items()})
    for name, options in KNOWN.items():
        assert len(set(space.options[name])) == len(options), name
        assert [space.labels({name: n})[name] for n in space.options[name]] == [
            *range(len(options))
        ]


def test_a_value_that_is_no_option_is_refused() -> None:
    space = translate({"b": hp.choice("b", [True, False])})
    assert space.labels({"b": "true"}) == {"b": 0}  # as files have it
    with pytest.raises(ValueError, match="1 is no option of 'b'; its options are called True"):
        space.labels({"b": 1})


@pytest.mark.parametrize("name", KNOWN)
def test_options_are_arms_and_parts_of_cells(name: str) -> None:
    n = len(KNOWN[name])
    domain = Domain(None, hp.choice("c", KNOWN[name]), pass_expr_memo_ctrl=False)
    options, cells = arms_of(domain), arms_of(domain, split=2)
    assert [options.arms.find({"c": i}) for i in range(n)] == [*range(n)]
    assert [options.grid(i) for i in range(n)] == [[{"c": i}] for i in range(n)]
    listed = [values["c"] for i in range(2) for values in cells.grid(i) or ()]
    assert listed == [*range(n)]
