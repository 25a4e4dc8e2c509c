"""How SMAC recognises a run: what it stores of its parts, and what may differ in a new facade."""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace
from smac import Scenario

from automl_plugins.meta.memories import TaskMemory
from automl_plugins.spaces.values import as_configuration, to_vector

#: End of the origin of a configuration that a memory has suggested.
SUGGESTED = ", suggested by earlier tasks"

#: Entry of ``meta`` of a continued run, see ``begun_with``.
BEGUN = "automl_plugins:begun"

#: Settings of the scenario that may differ when a run is continued. The folder is the one in which
#: the run was found, whatever it was called before.
_MAY_DIFFER = ("n_trials", "walltime_limit", "cputime_limit", "n_workers", "output_directory")
#: The runner of several workers, as it is stored.
_DASK = {"name": "DaskParallelRunner"}
#: Entries of an initial design that follow from its size, and so from the number of trials.
_SIZES = ("n_configs", "default_configs", "suggestions")
#: Entries that follow from a memory, into which others may have recorded since the run began.
_ADVISED = (*_SIZES, "additional_configs", "meta_features")


class Continuation(NamedTuple):
    """How to continue a run whose scenario differs from the one in its file."""

    begun: dict[str, Any]  # see ``begun_with``
    resized: bool = False  # its initial design has another size, which follows from the limits
    design: list[Configuration] | None = None  # to be evaluated instead of the scenario's


def continuation(scenario: Scenario, known: Scenario) -> Continuation | None:
    """How ``scenario`` continues the run of ``known``; None if too much differs.

    Limits, the number of workers and the folder may differ, and entries that follow from limits or
    from a memory. A run keeps the suggestions with which it began: new ones would be evaluated in
    addition. If one of the two runs on Dask (with ``dask_client=`` even one worker does), the code
    of the objective is not compared: SMAC does not store it for Dask.
    """
    compared = [_compared_of(one) for one in (scenario, known)]
    runners = [one["_meta"].get("runner") for one in compared]
    if _DASK in runners:
        for one in compared:
            del one["_meta"]["runner"]
    if compared[0] != compared[1]:
        return None
    begun, new = begun_with(known), design_of(scenario)
    first = begun["initial_design"]
    if new == first:
        return Continuation(begun)
    if scenario.n_trials != begun["n_trials"] and _is_resized(new, first):
        return Continuation(begun, resized=True)
    if not _is_advised_anew(new, first):
        return None
    if _configurations(new) == _configurations(first):
        return Continuation(begun)
    try:
        return Continuation(begun, design=_rebuild(first, scenario.configspace))
    except ValueError:  # a file that somebody has changed
        return None


def begun_with(scenario: Scenario) -> dict[str, Any]:
    """Number of trials and initial design with which a run has begun."""
    first = {"n_trials": scenario.n_trials, "initial_design": design_of(scenario)}
    return dict(scenario.meta.get(BEGUN, first))  # it may have been continued before


def design_of(scenario: Scenario) -> dict[str, Any]:
    """The initial design as it is stored."""
    stored = Scenario.make_serializable(scenario)["_meta"]
    return dict(stored.get("initial_design", {}))


def _compared_of(scenario: Scenario) -> dict[str, Any]:
    """The entries that SMAC compares, without ``_MAY_DIFFER`` and the initial design."""
    compared = Scenario.make_serializable(scenario)
    for name in _MAY_DIFFER:
        del compared[name]
    for name in ("initial_design", BEGUN):
        compared["_meta"].pop(name, None)
    return compared


# --- two initial designs, as they are stored --------------------------------------------------


def _is_resized(new: Mapping[str, Any], first: Mapping[str, Any]) -> bool:
    """Whether two designs differ only in their sizes."""
    # As many as both have: the larger design must begin with the smaller one.
    pairs = zip(_suggested(new), _suggested(first), strict=False)
    return _agree(new, first, _SIZES) and all(a == b for a, b in pairs)


def _is_advised_anew(new: Mapping[str, Any], first: Mapping[str, Any]) -> bool:
    """Whether two designs differ only in entries that follow from a memory."""
    if not ("suggestions" in new and "suggestions" in first and _agree(new, first, _ADVISED)):
        return False
    # Meta-features of the task are computed only if the memory has meta-features.
    described = [design.get("meta_features") for design in (new, first)]
    if all(described) and described[0] != described[1]:
        return False
    # A configuration that is suggested by now is not listed as an additional one any more.
    return all(
        config in _configurations(other)
        for design, other in ((new, first), (first, new))
        for config in design.get("additional_configs", ())
    )


def _agree(new: Mapping[str, Any], first: Mapping[str, Any], but: tuple[str, ...]) -> bool:
    return all(new.get(name) == first.get(name) for name in (new.keys() | first.keys()) - {*but})


def _suggested(design: Mapping[str, Any]) -> list[Any]:
    return [suggestion["configuration"] for suggestion in design.get("suggestions", ())]


def _configurations(design: Mapping[str, Any]) -> list[Any]:
    """Values of the configurations of a design with suggestions, in order."""
    found = [*_suggested(design), *design.get("default_configs", ())]
    return [*found[: design.get("n_configs")], *design.get("additional_configs", ())]


def _rebuild(design: Mapping[str, Any], space: ConfigurationSpace) -> list[Configuration]:
    """Configurations of a stored design, with origins; ValueError if one is not of the space."""
    suggested, usual = _suggested(design), design.get("default_configs", ())
    found = []
    for values in _configurations(design):
        config = as_configuration(space, to_vector(space, values))
        config.check_valid_configuration()
        config.origin = "Initial design"  # as SMAC calls additional ones
        if values in suggested:
            config.origin = f"Initial Design: {design.get('design')}{SUGGESTED}"
        elif values in usual:
            config.origin = f"Initial Design: {design.get('default')}"
        found.append(config)
    return found


# --- what is stored of a part -----------------------------------------------------------------

_DEPTH = 16  # levels of a description; an object and its settings are two
_SHORT = 20  # longest list whose entries are described one by one


def describe(part: Any, depth: int = _DEPTH) -> Any:
    """Class names and settings of a part, as builtins that JSON keeps.

    The name of a run is a hash of it, so it must be reproducible. It contains only the number of
    large data, such as many tasks of a memory, and nothing of a store, which grows: change the
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
