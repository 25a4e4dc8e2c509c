"""Test problems, one for each difficulty that Hyperopt's own tests cover.

Each has a search space, and a loss that is made from a seed, since some are noisy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hyperopt import hp

Loss = Callable[[Any], float]
#: Functions that make the space, and the loss from a seed.
Function = tuple[Callable[[], Any], Callable[[int], Loss]]


def _exact(loss: Loss) -> Callable[[int], Loss]:
    return lambda seed: loss


def _arms(seed: int) -> Loss:
    """Two options with noisy rewards, of mean 1 and 0."""
    rng = np.random.default_rng(seed)
    return lambda arm: float(rng.normal([-1.0, 0.0][arm], 1.0))


def _wave(config: dict[str, Any]) -> float:
    """A fast sine on a broad bump, which one of two options shifts by half a period."""
    t = config["x"] + config["shift"]
    return -math.sin(t) - 2.0 * math.exp(-((t / 5.0) ** 2))


def _branin(config: dict[str, Any]) -> float:
    """Branin and Hoo's function; three global minima."""
    x, y = config["x"], config["y"]
    valley = y - 5.1 / (4.0 * math.pi**2) * x**2 + 5.0 * x / math.pi - 6.0
    return float(valley**2 + 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * math.cos(x) + 10.0)


def _many() -> dict[str, Any]:
    """One hyperparameter of every kind."""
    return {
        "a": hp.choice("a", [0, 1, 2]),
        "b": hp.randint("b", 10),
        "bb": hp.randint("bb", 12, 25),
        "c": hp.uniform("c", 4, 7),
        "d": hp.loguniform("d", -2, 0),
        "e": hp.quniform("e", 0, 10, 3),
        "f": hp.qloguniform("f", 0, 3, 2),
        "g": hp.normal("g", 4, 7),
        "h": hp.lognormal("h", -2, 2),
        "i": hp.qnormal("i", 0, 10, 2),
        "j": hp.qlognormal("j", 0, 2, 1),
        "k": hp.pchoice("k", [(0.1, 0), (0.9, 1)]),
    }


def _halves() -> Any:
    """The same bowl twice, the optimum in a different half."""
    return hp.choice(
        "half",
        [
            {"at": -3.0, "x": hp.uniform("x_left", -5, 5)},
            {"at": 3.0, "x": hp.uniform("x_right", -5, 5)},
        ],
    )


FUNCTIONS: dict[str, Function] = {
    "halves": (_halves, _exact(lambda c: float((c["at"] - c["x"]) ** 2))),
    "arms": (lambda: hp.choice("arm", [0, 1]), _arms),
    "wave": (
        lambda: {"x": hp.uniform("x", -20, 20), "shift": hp.choice("curve", [0.0, math.pi])},
        _exact(_wave),
    ),
    "many_kinds": (_many, _exact(lambda c: math.log(1e-12 + float(sum(c.values())) ** 2))),
    "branin": (
        lambda: {"x": hp.uniform("x", -5.0, 10.0), "y": hp.uniform("y", 0.0, 15.0)},
        _exact(_branin),
    ),
}
