"""Functions of 2 to 20 dimensions on the unit cube, shifted, rotated, ill-conditioned, with waves.

The minimum of each is 0, each at another point.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

Vector = np.ndarray[Any, np.dtype[np.float64]]
Function = Callable[[Vector], float]


def _sphere(z: Vector) -> float:
    return float(10 * (z**2).sum())


def _ellipsoid(z: Vector) -> float:
    """Condition number 100."""
    return float(10 * (10 ** np.linspace(0, 2, len(z)) * z**2).sum())


def _rosenbrock(z: Vector) -> float:
    z = 3 * z + 1
    return float((100 * (z[1:] - z[:-1] ** 2) ** 2 + (1 - z[:-1]) ** 2).sum() / 10)


def _rastrigin(z: Vector) -> float:
    z = 3 * z
    return float((10 * len(z) + (z**2 - 10 * np.cos(2 * np.pi * z)).sum()) / 5)


def _ackley(z: Vector) -> float:
    z = 8 * z
    near, waves = np.sqrt((z**2).mean()), np.cos(2 * np.pi * z).mean()
    return float(-20 * np.exp(-0.2 * near) - np.exp(waves) + 20 + np.e)


def _levy(z: Vector) -> float:
    w = 1 + 2.5 * z
    waves = (w[:-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:-1] + 1) ** 2)
    last = (w[-1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[-1]) ** 2)
    return float(np.sin(np.pi * w[0]) ** 2 + waves.sum() + last)


def _branin(x: Vector) -> float:
    a, b = 15 * x[0] - 5, 15 * x[1]
    bowl = (b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6) ** 2
    return float(bowl + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10 - 0.39788735772973816)


_HARTMANN = (
    np.array([1.0, 1.2, 3.0, 3.2]),
    np.array(
        [
            [10, 3, 17, 3.5, 1.7, 8],
            [0.05, 10, 17, 0.1, 8, 14],
            [3, 3.5, 1.7, 10, 17, 8],
            [17, 8, 0.05, 10, 0.1, 14],
        ]
    ),
    1e-4
    * np.array(
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ]
    ),
)


def _hartmann(x: Vector) -> float:
    heights, scales, centres = _HARTMANN
    peaks = heights * np.exp(-(scales * (x - centres) ** 2).sum(axis=1))
    return float(3.322368011415515 - peaks.sum())


#: Name, function, dimensions, whether its optimum is shifted and its axes rotated at random.
_FUNCTIONS: tuple[tuple[str, Function, int, str], ...] = (
    ("sphere", _sphere, 2, "shifted"),
    ("ellipsoid", _ellipsoid, 3, "shifted, rotated"),
    ("rosenbrock", _rosenbrock, 2, "shifted"),
    ("rastrigin", _rastrigin, 2, "shifted, rotated"),
    ("ackley", _ackley, 3, "shifted, rotated"),
    ("branin", _branin, 2, ""),
    ("hartmann", _hartmann, 6, ""),
    ("levy", _levy, 4, "shifted"),
    ("ellipsoid", _ellipsoid, 6, "shifted, rotated"),
    ("rosenbrock", _rosenbrock, 4, "shifted"),
    ("ackley", _ackley, 6, "shifted, rotated"),
    ("sphere", _sphere, 10, "shifted"),
    ("ellipsoid", _ellipsoid, 10, "shifted, rotated"),
    ("levy", _levy, 8, "shifted"),
    ("rastrigin", _rastrigin, 5, "shifted, rotated"),
    ("rosenbrock", _rosenbrock, 8, "shifted"),
    ("sphere", _sphere, 20, "shifted"),
    ("ackley", _ackley, 12, "shifted, rotated"),
)


def _moved(i: int, function: Function, d: int, how: str) -> Function:
    rng = np.random.default_rng(100 + i)
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    centre = rng.uniform(0.2, 0.8, d)
    if "shifted" not in how:
        return function
    return partial(_at, function, rotation if "rotated" in how else np.eye(d), centre)


def _at(function: Function, rotation: Vector, centre: Vector, x: Vector) -> float:
    return function(rotation @ (x - centre))


#: Function and dimensions, by name.
SMOOTH: dict[str, tuple[Function, int]] = {
    f"{name}_{d}": (_moved(i, function, d, how), d)
    for i, (name, function, d, how) in enumerate(_FUNCTIONS)
}
