"""Descriptions that SMAC stores of models, acquisition functions and proposers."""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from automl_plugins.meta.memories import TaskMemory

_DEPTH = 16  # levels of a description; an object and its settings are two
_SHORT = 20  # longest list whose entries are described one by one


def describe(part: Any, depth: int = _DEPTH) -> Any:
    """Class names and settings of a part, as builtins that JSON keeps.

    The name of a run is a hash of it, so it must be reproducible. For large data, such as the
    tasks of a memory, it has their number only, and of a store, which grows, nothing: change the
    name of the scenario if a run must not be continued with other data.
    """
    part = part.item() if isinstance(part, np.generic) else part
    if part is None or isinstance(part, bool | int | str):
        return part
    if isinstance(part, float):
        return part if math.isfinite(part) else str(part)  # JSON has no infinity
    if isinstance(part, np.ndarray):
        return {"shape": list(part.shape)}
    if isinstance(part, logging.Logger):
        return part.name  # handlers may keep the messages, which differ from run to run
    if isinstance(part, Mapping | list | tuple):
        if depth <= 0 or len(part) > _SHORT:
            return {"entries": len(part)}
        if isinstance(part, Mapping):
            return {str(key): describe(value, depth - 1) for key, value in part.items()}
        return [describe(value, depth - 1) for value in part]
    name = {"name": type(part).__name__}
    if depth <= 0:
        return name
    return name | {key: describe(value, depth - 2) for key, value in _settings(part).items()}


def _settings(part: Any) -> dict[str, Any]:
    """Public settings by name, without fitted attributes and caches."""
    if isinstance(part, type):
        return {"class": part.__name__}
    if isinstance(part, TaskMemory):
        if part.is_store:  # others record into it while this search is interrupted
            return {"tasks": "those of a store"}
        return {"tasks": sorted(set(part.names) - part.exclude)}
    if hasattr(part, "get_params"):  # scikit-learn
        return dict(part.get_params(deep=False))
    if dataclasses.is_dataclass(part):
        found = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
    else:
        found = getattr(part, "__dict__", {})
    return {n: value for n, value in found.items() if not n.startswith("_") and n[-1:] != "_"}
