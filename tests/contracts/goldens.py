"""Recorded behaviour of the package, case by case: the contents of ``goldens/``.

Each golden is a JSON file with its cases, and the versions and the arithmetic that it was written
with. A case uses public names only, draws its inputs with ``rng.random`` of ``numpy``, does not
depend on a clock, and is independent of other cases, so that one difference does not spread.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import cholesky

FOLDER = Path(__file__).parent / "goldens"
#: Libraries whose versions may change the fit of a model, and so a proposal.
NUMERICS = ("numpy", "scipy", "scikit-learn", "lightgbm", "ConfigSpace")
LIBRARIES = (*NUMERICS, "optuna", "smac", "hyperopt")
RTOL = 1e-6

_DIGITS = 8
_WIDTH = 98


@dataclass(frozen=True)
class Case:
    """A computation and the place of its expected result.

    Attributes:
        golden: The file, without its suffix.
        name: The case in the file.
        compute: Returns the result, given an empty folder.
        needs: Libraries whose versions must be those of the golden.
    """

    golden: str
    name: str
    compute: Callable[[Path], Any]
    needs: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.golden}-{self.name}"


def arithmetic() -> str:
    """A digest of the processor, and of functions whose last digits differ between processors.

    From the first such difference on, a search that refits its models may diverge. Matrix products
    are cut into blocks by the sizes of caches, which differ where instructions are the same.
    """
    x = np.random.RandomState(0).rand(64, 64)
    products = x @ x.T + 64.0 * np.eye(64)
    candidates = np.random.RandomState(1).rand(1000, 64)
    parts = [np.exp(x), np.log(x), x**1.7, products, np.linalg.inv(products), cholesky(products)]
    parts += [candidates[:, :d] @ x[:n, :d].T for d in (3, 10, 64) for n in (7, 30, 64)]
    digest = hashlib.blake2b(digest_size=8)
    digest.update(str(np.show_config("dicts")["SIMD Extensions"]["found"]).encode())
    digest.update(str(_cache_sizes()).encode())
    for part in parts:
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def _cache_sizes() -> list[str]:
    """Those of the first core, where the system says them."""
    folder = Path("/sys/devices/system/cpu/cpu0/cache")
    return [path.read_text(encoding="utf-8") for path in sorted(folder.glob("index*/size"))]


@cache  # reads the metadata of each library
def versions() -> dict[str, str]:
    return {library: version(library) for library in LIBRARIES}


def read(golden: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{golden}.json").read_text(encoding="utf-8"))
    return found


def write(golden: str, cases: Mapping[str, Any]) -> None:
    FOLDER.mkdir(exist_ok=True)
    about = {"versions": versions(), "arithmetic": arithmetic()}
    lines = _lines(about | {"cases": dict(cases)})
    (FOLDER / f"{golden}.json").write_text("\n".join(lines) + "\n", encoding="utf-8")


def plain(thing: Any) -> Any:
    """Convert to plain JSON types; floats have few digits, NaN is None."""
    if isinstance(thing, Mapping):
        return {str(key): plain(value) for key, value in thing.items()}
    if isinstance(thing, np.ndarray):
        return plain(thing.tolist())
    if isinstance(thing, list | tuple):
        return [plain(value) for value in thing]
    value = thing.item() if isinstance(thing, np.generic) else thing
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else _unusual(value)
    assert value is None or isinstance(value, bool | int | str), value
    return value


def _unusual(value: float) -> str | None:
    return None if math.isnan(value) else str(value)


def differences(found: Any, expected: Any, at: str = "") -> Iterator[str]:
    """A line for each difference: of floats beyond ``RTOL``, else of any value or type."""
    if type(found) is not type(expected):
        yield f"{at}: {found!r} instead of {expected!r}"
    elif isinstance(expected, dict):
        if found.keys() != expected.keys():
            yield f"{at}: {', '.join(found)} instead of {', '.join(expected)}"
        for key in sorted(expected.keys() & found.keys()):
            yield from differences(found[key], expected[key], f"{at}/{key}")
    elif isinstance(expected, list):
        if len(found) != len(expected):
            yield f"{at}: {len(found)} instead of {len(expected)} entries"
        for i, (a, b) in enumerate(zip(found, expected, strict=False)):
            yield from differences(a, b, f"{at}/{i}")
    elif isinstance(expected, float):
        if not math.isclose(found, expected, rel_tol=RTOL, abs_tol=1e-12):
            yield f"{at}: {found!r} instead of {expected!r}"
    elif found != expected:
        yield f"{at}: {found!r} instead of {expected!r}"


def _lines(thing: Any, indent: str = "", before: str = "", after: str = "") -> Sequence[str]:
    """JSON with as much on a line as fits."""
    line = f"{indent}{before}{json.dumps(thing)}{after}"
    if len(line) <= _WIDTH or not isinstance(thing, dict | list):
        return [line]
    entries = (
        [(f"{json.dumps(key)}: ", value) for key, value in thing.items()]
        if isinstance(thing, dict)
        else [("", value) for value in thing]
    )
    opening, closing = "{}" if isinstance(thing, dict) else "[]"
    inner = f"{indent} "
    if any(isinstance(value, dict | list) for _, value in entries):
        lines = [
            line
            for i, (key, value) in enumerate(entries)
            for line in _lines(value, inner, key, "," if i + 1 < len(entries) else "")
        ]
    else:
        lines = [inner]
        for i, (key, value) in enumerate(entries):
            entry = f"{key}{json.dumps(value)}{',' if i + 1 < len(entries) else ''}"
            if len(lines[-1]) + len(entry) > _WIDTH:
                lines.append(inner)
            lines[-1] += (" " if lines[-1].strip() else "") + entry
    return [f"{indent}{before}{opening}", *lines, f"{indent}{closing}{after}"]
