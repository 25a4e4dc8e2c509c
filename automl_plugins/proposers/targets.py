"""The targets of models: comparable losses of all rows, and their transforms.

Notation: y losses (n,), z targets (n,); every transform is increasing, so the best stays best.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from automl_plugins._arguments import check_choice
from automl_plugins.arrays import BoolArray, FloatArray, IntArray
from automl_plugins.records.history import History
from automl_plugins.records.scores import HUGE, divergence_limit, tame
from automl_plugins.records.trial import Status
from automl_plugins.surrogates.base import standardise

Target = Literal["log_regret", "normal_scores", "standardize", "raw"]
TARGETS: tuple[Target, ...] = get_args(Target)
Substitute = Literal["progress", "violations"]

_VISIBLE = 1e-6  # relative difference of losses, far larger than rounding
_ROUNDING = 1e-12  # relative difference of reports that may differ from their mean by rounding
_SAME = 1e-15  # relative difference of losses that differ by rounding only
_PAIRS = 3  # fewest complete rows that predict the final loss of others: any two fit a line
_MOST_STEPS = 100  # steps with predictions, by falling number of rows; each reads all curves
_BEHIND = 2.0  # how far such a loss may lie behind the worst complete one, in their range
_FLOOR = 0.15  # regret, as a share of the median regret, below which differences are compressed
_INCUMBENTS = 64  # best rows among which the best prediction is the incumbent
_MOST = 1e300  # regret, as a share of the median regret, beyond which losses are equally bad


@dataclass(frozen=True)
class Targets:
    """Transformed losses, and their inverse.

    Attributes:
        losses: The losses (n,).
        values: The targets (n,), increasing in the losses.
    """

    losses: FloatArray
    values: FloatArray

    def to_loss(self, target: float) -> float:
        """The loss that corresponds to ``target``, interpolated; the observed range is kept."""
        order = np.argsort(self.values)  # np.interp takes ascending values only
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
    check_choice("target", kind, TARGETS)
    if kind == "log_regret":
        regret = 0.5 * losses - 0.5 * losses.min()  # of halves, whose difference is finite
        # The median is 0 where more than half of the rows are as good as the best one.
        typical = float(np.median(regret)) or float(regret.max()) or 1.0
        with np.errstate(over="ignore"):  # a pruned row may be 1 behind losses of 1e-310
            shares = np.minimum(regret / typical, _MOST)
        return Targets(losses, np.log(_FLOOR + shares))
    if kind == "normal_scores":
        return Targets(losses, ndtri((rankdata(losses) - 0.5) / len(losses)))
    if kind == "standardize":
        return Targets(losses, standardise(losses)[0])
    return Targets(losses, losses.astype(np.float64))


def effective_losses(history: History, penalised: BoolArray | None = None) -> FloatArray:
    """Losses (n,) that can be compared, pruned rows included; NaN where a row has none.

    A pruned loss belongs to a smaller budget and cannot be compared with complete losses. Where
    complete rows reported at the same step, the final loss is predicted from theirs (see
    ``_predict_final``). Elsewhere the pruner's verdict counts, worse than the typical evaluation:
    the pruned rows, later steps first and better losses first within a step, are spread evenly
    over the worse half of the complete losses. If that half is all alike, as with a single
    complete evaluation, these rows follow behind, as far apart as their own losses: otherwise
    nothing could be learnt. The rows ``penalised`` (n,) get the worst loss, so the model expects
    nothing of their region. Far outliers are tamed first (``records.scores.tame``).
    """
    losses = tame(np.where(history.status == Status.COMPLETE, history.losses, np.nan))
    pruned = np.flatnonzero(history.status == Status.PRUNED)
    complete = losses[~np.isnan(losses)]
    if len(pruned) and len(complete):
        rows, worst = _by_progress(history, pruned), complete.max()
        # Middles of equal parts of (1/2, 1): neither the median itself nor the worst.
        share = 0.5 + 0.5 * (np.arange(len(pruned)) + 0.5) / len(pruned)
        final = np.full(len(losses), np.nan)
        # Else every prediction would be the one loss that all complete rows have.
        if complete.min() < worst:
            final = _predict_final(history, losses)
        if np.median(complete) == worst:
            reports = tame(history.losses[pruned])
            apart = np.ptp(reports[~np.isnan(reports)]) if not np.isnan(reports).all() else 0.0
            width = max(apart, _VISIBLE * abs(worst)) or 1.0
            losses[rows] = worst + width * (2.0 * share - 1.0)
        else:
            losses[rows] = np.quantile(complete, share)
        losses = np.where(np.isnan(final), losses, final)
    # After the pruned rows, which may lie behind the worst complete one.
    if penalised is not None and len(complete):
        losses[penalised] = np.nanmax(losses)
    return losses


def _between(curve: Mapping[float, float], steps: list[float], step: float) -> float:
    """The loss of a curve at a step without a report, interpolated; NaN before or after them all.

    ``steps`` are the steps of the curve, ascending; sorting thousands in each call is slow.
    """
    place = bisect_left(steps, step)
    if place in (0, len(steps)):
        return np.nan
    before, after = steps[place - 1], steps[place]
    share = (step - before) / (after - before)
    return (1.0 - share) * curve[before] + share * curve[after]


def _predict_final(history: History, losses: FloatArray) -> FloatArray:
    """Final losses (n,) that pruned rows would have had; NaN where that cannot be predicted.

    A least-squares line leads from the loss at the step at which a row was pruned to the final
    loss. It is fitted to the complete rows that reported at this step, or before and after it, at
    least ``_PAIRS`` of them; where it would fall, the mean of their final losses is predicted.
    Predictions lie between the best complete loss and ``_BEHIND`` ranges behind the worst.

    Args:
        history: The history.
        losses: Losses (n,) of the complete rows, NaN elsewhere.
    """
    final = np.full(len(history), np.nan)
    pruned = np.flatnonzero((history.status == Status.PRUNED) & ~np.isnan(history.losses))
    complete = np.flatnonzero(~np.isnan(losses))
    steps, counts = np.unique(history.budget[pruned], return_counts=True)
    low, high = losses[complete].min(), losses[complete].max()
    curves = [history.curves[i] for i in complete]
    ascending: dict[int, list[float]] = {}  # sorted steps of the curves that are interpolated
    for step in steps[np.argsort(-counts, kind="stable")[:_MOST_STEPS]].tolist():
        rows = pruned[history.budget[pruned] == step]
        # Between two steps, for trials may report at steps of their own.
        for i, curve in enumerate(curves):
            if step not in curve and i not in ascending:
                ascending[i] = sorted(curve)
        reports = [
            curve[step] if step in curve else _between(curve, ascending[i], step)
            for i, curve in enumerate(curves)
        ]
        # Tamed together: a single diverged report would decide the whole line.
        shown = tame(np.append(reports, history.losses[rows]))
        early, ends = shown[: len(complete)], losses[complete]
        known = ~np.isnan(early)
        if known.sum() < _PAIRS:
            continue
        x, y = early[known] - early[known].mean(), ends[known] - ends[known].mean()
        width, predicted = np.abs(x).max(), np.full(len(rows), ends[known].mean())
        # Equal reports may differ from their mean by rounding, which predicts nothing.
        if width > _ROUNDING * np.abs(early[known]).max():
            x /= width  # its squares could be too small for a float
            slope = float(x @ y) / float(x @ x)
            if slope > 0.0:
                with np.errstate(over="ignore"):  # predictions are bounded below
                    beyond = (shown[len(complete) :] - early[known].mean()) / width
                    predicted += slope * beyond
        final[rows] = np.clip(predicted, low, high + _BEHIND * (high - low))
    return final


def is_informative(history: History) -> bool:
    """Whether a model can learn from the rows: one is complete, or pruned with a loss."""
    reported = (history.status == Status.PRUNED) & ~np.isnan(history.losses)
    return bool(reported.any() or np.any(history.status == Status.COMPLETE))


def all_alike(history: History) -> bool:
    """Whether there are several complete rows, all of the same loss, and nothing was pruned.

    Then no model of losses knows where to search. At least one row must be feasible: otherwise
    violations are modelled, and say more. Differences by rounding do not count.
    """
    complete = history.status == Status.COMPLETE
    losses = history.losses[complete]
    if len(losses) < 2 or (history.status == Status.PRUNED).any():
        return False
    if not history.feasible[complete].any():
        return False
    low, high = float(losses.min()), float(losses.max())
    return high - _SAME * abs(high) <= low


def with_diverged_as_failed(history: History) -> History:
    """The history with FAILED in place of COMPLETE for rows with a diverged loss.

    They show where not to search, as failures do. Their losses would be a cliff, or outliers among
    good rows, that no smooth model fits. The losses of feasible rows set the limit.
    """
    complete = history.status == Status.COMPLETE
    limit = divergence_limit(history.losses[complete & history.feasible])
    diverged = complete & (history.losses > limit)
    if not diverged.any():
        return history
    return replace(history, status=np.where(diverged, Status.FAILED, history.status))


def find_substitute(history: History) -> Substitute | None:
    """The substitute for losses until a row is complete and feasible; None from then on."""
    complete = history.status == Status.COMPLETE
    if (complete & history.feasible).any():
        return None
    return "violations" if complete.any() else "progress"


def successes(history: History) -> BoolArray:
    """Mask (n,) of the rows that neither failed nor violate a constraint.

    Violations do not count while they stand for the losses, which then show where constraints
    hold, nor if no row would succeed: failures could not be told from the other rows.
    """
    done = np.asarray(history.status != Status.FAILED)
    kept = done & history.feasible
    return done if find_substitute(history) == "violations" or not kept.any() else kept


def with_substitute_losses(history: History) -> History:
    """The history with substitutes for the losses until a row is complete and feasible.

    Without a complete row they are the ranks of the pruned rows, later steps first and better
    losses first within a step. Without a feasible row they are the sums of the violations of the
    constraints, each divided by its mean violation; an unknown one counts as the mean. A pruned
    row with a known constraint gets such a sum, too. Rows with a substitute count as complete.
    """
    substitute = find_substitute(history)
    if substitute is None:
        return history
    pruned = history.status == Status.PRUNED
    status, losses = history.status.copy(), history.losses.copy()
    if substitute == "progress":
        status[pruned] = Status.COMPLETE
        losses[:] = np.nan
        losses[_by_progress(history, np.flatnonzero(pruned))] = np.arange(pruned.sum())
        return replace(history, losses=losses, status=status)
    known = ~np.isnan(history.constraints)
    status[pruned & known.any(axis=1)] = Status.COMPLETE
    rows = status == Status.COMPLETE
    # Bounded, as an infinite violation divided by an infinite mean is NaN.
    excess, known = np.clip(history.constraints[rows], 0.0, HUGE), known[rows]
    # Each constraint in units of its own violations: one may be in metres, another in seconds.
    scale = np.where(known, excess, 0.0).sum(axis=0) / np.maximum((excess > 0.0).sum(axis=0), 1)
    shares = np.where(known, excess, scale) / np.where(scale > 0.0, scale, 1.0)
    losses[rows] = shares.sum(axis=1)
    return replace(history, losses=losses, status=status)


def _by_progress(history: History, rows: IntArray) -> IntArray:
    """Pruned rows, later steps first and better losses first within a step."""
    budget = np.nan_to_num(history.budget[rows], nan=-np.inf)
    loss = np.nan_to_num(history.losses[rows], nan=np.inf)
    return np.asarray(rows[np.lexsort((history.number[rows], loss, -budget))])


def choose_rows(
    targets: FloatArray, wanted: BoolArray, max_rows: int | None, rng: np.random.Generator
) -> IntArray:
    """Positions of at most ``max_rows`` wanted rows: the best half, the others drawn at random."""
    rows = np.flatnonzero(wanted)
    if max_rows is None or len(rows) <= max_rows:
        return rows
    order = rows[np.argsort(targets[rows], kind="stable")]
    n_best = max_rows // 2
    others = rng.choice(order[n_best:], max_rows - n_best, replace=False)
    return np.sort(np.concatenate([order[:n_best], others]))


def incumbents(rows: IntArray, success: BoolArray) -> IntArray:
    """At most 64 first ``rows`` (n,), n > 0, best first; only successes if the best row is one."""
    return np.asarray(rows[success[rows] == success[rows[0]]][:_INCUMBENTS])
