"""Problems that try a search: one for each difficulty that Hyperopt's own tests are about.

Each has a search space, a loss, made anew with a seed since some are noisy, and its least loss
(the mean of it where it is noisy).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hyperopt import hp

Loss = Callable[[Any], float]
#: How to make the space, how to make the loss from a seed, the least loss.
Function = tuple[Callable[[], Any], Callable[[int], Loss], float]


def _exact(loss: Loss) -> Callable[[int], Loss]:
    return lambda seed: loss


def _arms(seed: int) -> Loss:
    """Two options with noisy rewards, of mean 1 and 0."""
    rng = np.random.default_rng(seed)
    return lambda arm: float(rng.normal([-1.0, 0.0][arm], 1.0))


def _distractor(x: float) -> float:
    """A long slope up to the right, and a higher spike at -10."""
    return -1.0 / (1.0 + math.exp(-x)) - 2.0 * math.exp(-((x + 10.0) ** 2))


def _wave(config: dict[str, Any]) -> float:
    """A fast sine on a broad bump, which one of two options shifts by half a period."""
    t = config["x"] + config["shift"]
    return -math.sin(t) - 2.0 * math.exp(-((t / 5.0) ** 2))


def _noisy_wave(seed: int) -> Loss:
    """The bump with noise; an option adds a sine with an amplitude of its own."""
    rng = np.random.default_rng(seed)

    def loss(config: dict[str, Any]) -> float:
        x, sine = config["x"], config["sine"]
        bump = 2.0 * math.exp(-((x / 5.0) ** 2)) + rng.normal(0.0, 0.1)
        return float(-bump - (math.sin(x) * sine["amplitude"] if sine else 0.0))

    return loss


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
    "quadratic": (lambda: hp.uniform("x", -5, 5), _exact(lambda x: float((x - 3.0) ** 2)), 0.0),
    "lognormal": (
        lambda: hp.lognormal("x", 0, 2),
        _exact(lambda x: float(min(0.1 * (x - 10.0) ** 2, 10.0))),
        0.0,
    ),
    "halves": (_halves, _exact(lambda c: float((c["at"] - c["x"]) ** 2)), 0.0),
    "arms": (lambda: hp.choice("arm", [0, 1]), _arms, -1.0),
    "distractor": (lambda: hp.uniform("x", -15, 15), _exact(_distractor), -2.0),
    "wave": (
        lambda: {"x": hp.uniform("x", -20, 20), "shift": hp.choice("curve", [0.0, math.pi])},
        _exact(_wave),
        -2.835,
    ),
    "noisy_wave": (
        lambda: {
            "x": hp.uniform("x", -20, 20),
            "sine": hp.choice("hf", [None, {"amplitude": hp.uniform("amplitude", 0, 1)}]),
        },
        _noisy_wave,
        -2.835,
    ),
    "many_kinds": (
        _many,
        _exact(lambda c: math.log(1e-12 + float(sum(c.values())) ** 2)),
        math.log(1e-12),
    ),
    "branin": (
        lambda: {"x": hp.uniform("x", -5.0, 10.0), "y": hp.uniform("y", 0.0, 15.0)},
        _exact(_branin),
        0.398,
    ),
}
