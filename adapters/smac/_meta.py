"""What SMAC stores of a part: the name of a run is a hash of it, so it repeats exactly."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

_DEPTH = 16  # an object and its settings are two levels
_SHORT = 20  # entries of a list that are told one by one


def described(part: Any, depth: int = _DEPTH) -> Any:
    """Class names and settings of a part, as builtins that JSON keeps.

    Large data, such as the tasks of a memory, are told by their number: change the name of the
    scenario if a run must not be continued with others.
    """
    if part is None or isinstance(part, bool | int | str):
        return part
    if isinstance(part, np.generic):
        return described(part.item(), depth)
    if isinstance(part, float):
        return part if math.isfinite(part) else str(part)
    if isinstance(part, Mapping):
        if depth == 0 or len(part) > _SHORT:
            return {"entries": len(part)}
        return {str(key): described(value, depth - 1) for key, value in part.items()}
    if isinstance(part, list | tuple):
        if depth == 0 or len(part) > _SHORT:
            return {"entries": len(part)}
        return [described(value, depth - 1) for value in part]
    if isinstance(part, np.ndarray):
        return {"shape": list(part.shape)}
    told = {"name": type(part).__name__}
    return told if depth == 0 else told | described(_settings(part), depth - 1)


def _settings(part: Any) -> dict[str, Any]:
    """Public settings by name, without what a fit or a cache has left."""
    if isinstance(part, type):
        return {"class": part.__name__}
    if hasattr(part, "get_params"):  # scikit-learn
        return dict(part.get_params(deep=False))
    if dataclasses.is_dataclass(part):
        return {f.name: getattr(part, f.name) for f in dataclasses.fields(part) if _public(f.name)}
    return {name: value for name, value in getattr(part, "__dict__", {}).items() if _public(name)}


def _public(name: str) -> bool:
    return not name.startswith("_") and not name.endswith("_")
