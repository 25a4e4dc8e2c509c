"""Searches of Hyperopt without output, and their trials."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from hyperopt import Trials, fmin


def minimise(
    fn: Callable[[Any], Any],
    space: Any,
    algo: Any,
    n: int,
    *,
    seed: int = 0,
    trials: Trials | None = None,
    **options: Any,
) -> Trials:
    """The trials of ``fmin``."""
    trials = Trials() if trials is None else trials
    fmin(
        fn,
        space,
        algo=algo,
        max_evals=n,
        trials=trials,
        rstate=np.random.default_rng(seed),
        show_progressbar=False,
        return_argmin=False,
        **options,
    )
    return trials


def values_of(document: dict[str, Any]) -> dict[str, Any]:
    """Active values of a trial by label."""
    return {label: drawn[0] for label, drawn in document["misc"]["vals"].items() if len(drawn)}


def configs(trials: Trials) -> list[dict[str, Any]]:
    """Active values of all trials, including those that raised."""
    return [values_of(document) for document in trials._dynamic_trials]


def options_of(trials: Trials, label: str = "model") -> list[int]:
    """The option of each trial that has asked for a choice."""
    return [values[label] for values in configs(trials)]


def explanation(document: Mapping[str, Any]) -> dict[str, Any]:
    """The stored note on a proposal; empty if it is not from a proposer of this package."""
    note: dict[str, Any] = document["misc"].get("automl_plugins", {}).get("proposal", {})
    return note
