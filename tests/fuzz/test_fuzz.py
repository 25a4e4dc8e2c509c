"""Some of the cases of ``make fuzz``, the same in every run, and what judges them."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fuzz import BLOCK, CHEAP, TARGETS, plan, quiet, try_block
from histories import Case
from judging import judge
from spaces import Parameter, as_configspace, as_plain_configspace

EXPENSIVE = ("recipe auto", "Optuna AutoSampler", "Hyperopt auto", "SMAC")


@pytest.mark.parametrize("name", TARGETS)
def test_a_valid_proposal_or_a_documented_error(name: str) -> None:
    size = 8 if name.startswith(CHEAP) else 2 if name.startswith(EXPENSIVE) else 4
    with quiet():
        outcomes = try_block(name, 0, size)
    assert len(outcomes) == size
    assert not [(o.failure, o.place, case) for o, case in outcomes if o.failure]


@pytest.mark.parametrize("translate", [as_configspace, as_plain_configspace])
def test_what_is_below_a_constant_is_active_where_the_constant_is(translate: Any) -> None:
    outer = Parameter("outer", "choice", choices=("a", "b"))
    one = Parameter("one", "choice", choices=("only",), parent="outer", options=(1,))
    below = Parameter("below", parent="one", options=(0,))
    space = translate((outer, one, below))
    active = {(c["outer"], "below" in c) for c in space.sample_configuration(40)}
    assert active == {("a", False), ("b", True)}


# --- the judge ------------------------------------------------------------------------------

CASE = Case((Parameter("x"),))


def _warn(case: Case) -> None:
    warnings.warn("odd", RuntimeWarning, stacklevel=1)


def _raise(error: Exception) -> Callable[[Case], None]:
    def target(case: Case) -> None:
        raise error

    return target


def _loop(case: Case) -> None:
    while True:
        pass


@pytest.mark.parametrize(
    ("target", "verdict", "failure"),
    [
        (lambda case: None, "valid", ""),
        (_raise(ValueError("A search of another space needs trials of its own.")), "trials", ""),
        (_raise(ValueError("something else")), "failure", "something else"),
        (_raise(TypeError("A search of another space needs trials")), "failure", "TypeError"),
        (_warn, "failure", "RuntimeWarning"),
        (_loop, "failure", "0.05 s of CPU"),
        (lambda case: random.random(), "failure", "Python's global random state"),
        (lambda case: np.random.rand(), "failure", "numpy's global random state"),  # noqa: NPY002
    ],
)
def test_what_is_judged(target: Callable[[Case], None], verdict: str, failure: str) -> None:
    found = judge(target, CASE, limit=0.05 if target is _loop else 2.0)
    assert found.verdict.startswith(verdict) and failure in found.failure
    assert bool(found.failure) == bool(failure)


def test_every_target_has_its_share_and_the_cheap_ones_the_rest() -> None:
    names = list(TARGETS)
    jobs = list(plan(50_000, 1000, names))
    assert len(jobs) == len(set(jobs)) and len(jobs) * BLOCK >= 50_000
    counts = {name: sum(job[0] == name for job in jobs) * BLOCK for name in names}
    assert min(counts.values()) == 1000
    assert {n for n, count in counts.items() if count > 1000} <= {
        n for n in names if n.startswith(CHEAP)
    }
