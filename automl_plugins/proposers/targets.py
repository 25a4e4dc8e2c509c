"""Losses as regression targets: transforms fitted on the observed losses.

Notation: y losses (n,), z targets (n,); every transform is increasing, so the best stays best.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import rankdata

from automl_plugins.records.history import History
from automl_plugins.records.scores import tame
from automl_plugins.records.trial import Status
from automl_plugins.surrogates.base import standardise

FloatArray = npt.NDArray[np.float64]
Target = Literal["log_regret", "normal_scores", "standardize", "raw"]
TARGETS: tuple[Target, ...] = get_args(Target)

_FLOOR = 0.15  # regret, in that of the median row, below which differences are compressed


@dataclass(frozen=True)
class Targets:
    """Targets with the way back to losses.

    Attributes:
        losses: The losses (n,).
        values: The targets (n,), increasing in the losses.
    """

    losses: FloatArray
    values: FloatArray

    def to_loss(self, target: float) -> float:
        """The loss that corresponds to ``target``, interpolated; the observed range is kept."""
        order = np.argsort(self.values)
        return float(np.interp(target, self.values[order], self.losses[order]))


def transform(losses: FloatArray, kind: Target) -> Targets:
    """Targets of ``losses`` (n,).

    * ``"log_regret"``: z = ln(0.15 + (y - min y) / (median y - min y)). Near the best loss small
      differences count, far from it large ones do not; after SMAC's log-scaled losses, with the
      median in place of the worst loss, which one diverged trial can move anywhere.
    * ``"normal_scores"``: z = Phi^-1((rank - 1/2) / n), ties share their mean rank. Losses of any
      scale, with any outliers, become standard normal: only their order counts (the Gaussian
      copula transform of Salinas et al. 2020).
    * ``"standardize"``: mean 0 and standard deviation 1; constant losses become 0.
    * ``"raw"``: the losses.

    Raises:
        ValueError: For an unknown kind.
    """
    if kind == "log_regret":
        regret = losses - losses.min()
        typical = float(np.median(regret)) or float(regret.max()) or 1.0
        return Targets(losses, np.log(_FLOOR + regret / typical))
    if kind == "normal_scores":
        return Targets(losses, ndtri((rankdata(losses) - 0.5) / len(losses)))
    if kind == "standardize":
        return Targets(losses, standardise(losses)[0])
    if kind == "raw":
        return Targets(losses, losses.astype(np.float64))
    raise ValueError(f"target must be one of {', '.join(map(repr, TARGETS))}, got {kind!r}.")


def effective_losses(history: History, *, penalise_failures: bool = False) -> FloatArray:
    """Losses (n,) with those of pruned rows made comparable; NaN = tells nothing about the loss.

    A pruned loss belongs to a smaller budget, where others would have looked the same, so it
    cannot stand beside complete losses. What the pruner said can: worse than the typical
    evaluation. The pruned rows, later steps first and better losses first within a step, are
    spread evenly over the worse half of the complete losses. With ``penalise_failures`` a failed
    row has the worst complete loss: the model then knows the region, and expects nothing of it.
    Far outliers are tamed first (``outliers.tame``).
    """
    losses = tame(np.where(history.status == Status.COMPLETE, history.losses, np.nan))
    pruned = np.flatnonzero(history.status == Status.PRUNED)
    complete = losses[~np.isnan(losses)]
    if len(pruned) and len(complete):
        budget = np.nan_to_num(history.budget[pruned], nan=-np.inf)
        loss = np.nan_to_num(history.losses[pruned], nan=np.inf)
        order = np.lexsort((history.number[pruned], loss, -budget))
        share = 0.5 + 0.5 * (np.arange(len(pruned)) + 0.5) / len(pruned)
        losses[pruned[order]] = np.quantile(complete, share)
    if penalise_failures and len(complete):
        losses[history.status == Status.FAILED] = complete.max()
    return losses
