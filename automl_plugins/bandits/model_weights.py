"""How often random search draws each model: p proportional to 2^N (Sarigiannis 2019, section 3).

======  ===========================================================================================
M       number of models, the options of one categorical parameter
N       number of hyperparameters of a model, nested ones included; constants do not count
theta   volume of a model's ranges (eq. 7); the number of its configurations if that is finite
p       probability of drawing a model: 2^N / sum 2^N (eq. 5), or theta / sum theta (eq. 9)
K       number of draws
P_F     probability of missing the best configuration, if every model is the best one equally often
======  ===========================================================================================

Weighting is an empirical heuristic. The paper's theorem 1, that p ~ theta always fails less often
than p = 1 / M, does not hold as printed: its proof needs (1 - 1 / (M theta))^K to be convex, so
every theta <= (K + 1) / (2 M). With the paper's own 11 models and theta = 2^N, P_F is .991
weighted and .730 uniform at K = 33, .443 and .213 at 3 000; weighting wins from K = 7 774 on only.
It helps where the models with many hyperparameters are the strong ones, and costs most where a
simple model is the best: examples/benchmarks/benchmark_weighted.py measures both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from ConfigSpace import ConfigurationSpace
from scipy.special import softmax

from automl_plugins._arguments import check_integer
from automl_plugins.arrays import FloatArray
from automl_plugins.spaces.branches import (
    choice_of,
    hyperparameter_counts,
    log_volumes,
    options_of,
)
from automl_plugins.spaces.restriction import restrict_space

from .policy import ArmChoice, weights_from_numbers


def draw_weighted(arms: Sequence[int], p: FloatArray, rng: np.random.Generator) -> ArmChoice:
    """One of the arms (K,), drawn with the probabilities ``p`` (K,)."""
    place = int(rng.choice(len(arms), p=p))
    return ArmChoice(int(arms[place]), f"drawn by its weight, with probability {p[place]:.2g}")


def model_weights(
    space: ConfigurationSpace,
    choice: str | None = None,
    *,
    rule: str | Mapping[Any, float] = "2^N",
) -> dict[Any, float]:
    """The probability of each option of ``choice``.

    An option that the forbidden clauses exclude entirely has probability 0.

    Args:
        space: The search space.
        choice: Name of the categorical parameter that selects the model; None is the only
            unconditional one with children.
        rule: ``"2^N"`` counts hyperparameters (eq. 5); ``"volume"`` takes theta (eq. 9), see
            ``log_volumes``; a mapping has a weight for each option, with any sum.

    Returns:
        Probabilities by option, in the order of the options; their sum is 1.

    Raises:
        ValueError: For a ``choice`` that selects nothing, or a ``rule`` that does not fit it.
    """
    choice = choice_of(space, choice)
    if isinstance(rule, Mapping):
        options = options_of(space, choice)
        weights = weights_by_option(options, rule, "rule must give a weight to each option")
        return dict(zip(options, weights_from_numbers(weights).tolist(), strict=True))
    check_rule("rule", rule, "a mapping from options to weights")
    if rule == "2^N":
        counts = hyperparameter_counts(space, choice)
        logs = {option: n * math.log(2.0) for option, n in counts.items()}
    else:
        logs = dict(zip(options_of(space, choice), log_volumes(space, choice), strict=True))
    if space.forbidden_clauses:
        empty = [o for o in logs if restrict_space(space, {choice: (o,)}) is None]
        logs |= dict.fromkeys(empty, -math.inf)
    return dict(zip(logs, weights_from_logs(list(logs.values())).tolist(), strict=True))


def check_rule(argument: str, rule: Any, others: str) -> None:
    """ValueError unless ``rule`` is ``"2^N"`` or ``"volume"``; it says that ``others`` are too."""
    if not isinstance(rule, str) or rule not in ("2^N", "volume"):
        raise ValueError(f"{argument} must be '2^N', 'volume' or {others}, got {rule!r}.")


def weights_from_counts(counts: npt.ArrayLike) -> FloatArray:
    """Probabilities 2^N / sum 2^N (M,) of models with N hyperparameters each (eq. 5)."""
    n = np.asarray(counts, dtype=np.float64)
    if n.ndim != 1 or not n.size or not ((n >= 0) & (n == np.rint(n)) & np.isfinite(n)).all():
        raise ValueError(f"counts must be whole numbers >= 0, one for each model, got {counts!r}.")
    return weights_from_logs(n * math.log(2.0))


def weights_from_logs(logs: npt.ArrayLike) -> FloatArray:
    """Probabilities (M,) proportional to weights that are given by their logarithms (M,)."""
    values = np.asarray(logs, dtype=np.float64)
    if values.ndim != 1 or not values.size or not values.max() > -np.inf:
        raise ValueError(f"There is no model with a positive weight; logarithms are {logs!r}.")
    if not (values < np.inf).all():
        raise ValueError(f"Weights must be finite numbers; logarithms are {logs!r}.")
    return np.asarray(softmax(values))


def failure_probability(weights: npt.ArrayLike, theta: npt.ArrayLike, n_draws: int) -> float:
    """The probability P_F that random search misses the best configuration (lemma 1, eq. 6).

    P_F is the mean over the models of (1 - p / theta)^K. It assumes the worst case of the paper:
    each model is the best one equally often, and so is each of its configurations.

    Args:
        weights: Probability p of drawing each model (M,).
        theta: Volume of each model (M,), > 0, in units in which p <= theta: p / theta is the
            probability that a draw hits the best configuration.
        n_draws: Number of draws K, >= 0.

    Raises:
        ValueError: For an argument outside its range, or a model with p > theta.
    """
    p, volume = np.asarray(weights, dtype=np.float64), np.asarray(theta, dtype=np.float64)
    if p.ndim != 1 or not p.size or p.shape != volume.shape:
        raise ValueError(
            "weights and theta must have one number for each model, got shapes"
            f" {p.shape} and {volume.shape}."
        )
    if not (p >= 0).all() or abs(p.sum() - 1.0) > 1e-9:
        raise ValueError(f"weights must be probabilities that sum to 1, got {weights!r}.")
    if not (volume > 0).all():
        raise ValueError(f"theta must be positive, got {theta!r}.")
    check_integer("n_draws", n_draws, 0)
    hit = p / volume
    if (hit > 1.0 + 1e-12).any():
        m = int(hit.argmax())
        raise ValueError(
            f"Model {m} has p = {p[m]:.4g} > theta = {volume[m]:.4g}, and p / theta is no"
            " probability: measure theta in smaller units, so that it is at least p."
        )
    if n_draws == 0:  # 0 times -inf is NaN
        return 1.0
    # ``hit`` may exceed 1 by the rounding allowed above, where log1p(-hit) is NaN.
    with np.errstate(divide="ignore"):  # a model that is surely hit: exp(-inf)
        return float(np.exp(n_draws * np.log1p(-np.minimum(hit, 1.0))).mean())


def weights_by_option(
    options: Sequence[Any], weights: Mapping[Any, float], demand: str
) -> FloatArray:
    """The weights in the order of the options (K,).

    ValueError that begins with ``demand`` if an option is missing or unknown, or a weight is no
    number.
    """
    missing = [o for o in options if o not in weights]
    unknown = [o for o in weights if o not in options]
    if missing or unknown:
        raise ValueError(
            f"{demand}, {', '.join(map(str, options))}; missing: {missing or 'none'}, unknown:"
            f" {unknown or 'none'}."
        )
    try:
        return np.array([weights[o] for o in options], dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{demand}, got {dict(weights)}.") from None
