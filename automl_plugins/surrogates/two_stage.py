"""Two-stage transfer surrogate (TST): earlier tasks vote, weighted by their agreement.

The equations are those of Wistuba, Schilling and Schmidt-Thieme, "Two-stage transfer surrogate
model for automatic hyperparameter optimization" (ECML-PKDD 2016), called "TST".
Notation of this module::

    f_s   prediction of the earlier task s, its losses scaled to [0, 1]; S of them
    k_s   weight of the task s; k_0 weight of the new task's own process
    mu    mean of the own process, sigma its standard deviation
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from automl_plugins._arguments import check_choice, check_finite, check_integer
from automl_plugins.arrays import FloatArray
from automl_plugins.surrogates.averaged_process import (
    Candidate,
    EvidenceAverage,
    uninformed_kernels,
)
from automl_plugins.surrogates.base import as_features, as_training, informative_rows
from automl_plugins.surrogates.gaussian_process import Kernel
from automl_plugins.surrogates.two_stage_sources import EarlierTasks, Sources

Distance = Literal["ranks", "meta_features"]
Scale = Literal["anchored", "raw"]
Spread = Literal["votes", "own"]
Ties = Literal["half", "strict"]

# Bandwidths that measured well on recorded tables of one and of twelve algorithms.
_BANDWIDTHS: dict[Distance, float] = {"ranks": 0.3, "meta_features": 0.69}
_FULL = 0.75  # k at distance 0
_INFLATION = 2.0  # variance of the votes: the tasks' own errors are part of it
_FLAT = 1e-3  # deviation of predicted losses below which they give no scale
_LOG_PRIOR = 3.0  # of the kernel learnt from earlier tasks: 20 times the prior of any other
_CHUNK = 2_000_000  # pairs compared at a time, 16 MB in an array


@dataclass(eq=False, repr=False)
class TwoStageTransfer(BaseEstimator):  # type: ignore[misc]
    """Nadaraya-Watson average of the processes of earlier tasks and of the new one.

    ``mean = (sum_s k_s f_s + k_0 mu) / (sum_s k_s + k_0)`` (TST eq. 8), ``k`` the Epanechnikov
    kernel of the distance between the tasks. Distances by ranks are 0 before two observations.

    What differs from the paper by default, because it measured better (``paper`` goes back):

    * The new task's losses have a scale of their own. Each ``f_s`` is shifted to the mean of the
      losses where they were observed, and all are stretched to their deviation.
    * ``std`` includes the disagreement of the tasks: with ``a = sum k_s / (sum k_s + k_0)`` the
      variance is ``(1 - a) sigma^2 + 2 a Var_k(f_s)``. As all agree where there are observations,
      the next proposal goes where some task expects more, not beside the last one.
    * ``k_0 = 0.75 (1 + growth n)`` after n observations, so that no vote lasts forever.
    * Kernel Matern-5/2; the own process averages the kernel learnt from the earlier tasks and
      uninformed ones by their evidence.

    Without votes both outputs are those of the own process.

    Args:
        sources: The earlier tasks; None for none. Each copy of this surrogate fits a
            ``MetaDataset`` at its first use; ``Sources`` are fitted, and shared by the copies.
            Leave out the new task itself (``MetaDataset.without``), if it is there.
        distance: ``"ranks"`` (TST-R, eqs. 12 and 13) or ``"meta_features"`` (TST-M).
        bandwidth: Distance from which a task has no vote; None for 0.3 (ranks) or 0.69
            (root mean square difference of meta-features in [0, 1]).
        meta_features: Meta-features of the new task, for ``"meta_features"``.
        own_weight: k_0 without observations.
        growth: Gain of k_0 with each observation, as a share of ``own_weight``.
        scale: ``"anchored"``, or ``"raw"`` for f_s as it is.
        spread: ``"votes"``, or ``"own"`` for sigma alone (TST eq. 11).
        ties: How tied losses count, see ``discordance``.
        uninformed: Whether the own process considers kernels besides the one of the sources.
        kernel: Kernel of the own process without sources, and of a ``MetaDataset``.
        max_rows: Largest number of rows to learn from, see ``informative_rows``.

    Attributes:
        weights_: k_s of every source (S,).
        own_weight_: k_0; 0 before the first observation, as long as a task votes.
        distances_: Distance of every source (S,).
        shares_: Share of the vote by name of the source.
        own_share_: Share of the vote of the own process.
        own_: The own process.

    Example::

        model = TwoStageTransfer(memory).fit(features, losses)  # memory: a MetaDataset
        mean, std = model.predict(features)
        print(model.shares_)
    """

    sources: Sources | EarlierTasks | None = None
    _: KW_ONLY
    distance: Distance = "ranks"
    bandwidth: float | None = None
    meta_features: Mapping[str, float] | None = None
    own_weight: float = _FULL
    growth: float = 1.0
    scale: Scale = "anchored"
    spread: Spread = "votes"
    ties: Ties = "half"
    uninformed: bool = True
    kernel: Kernel = "matern52"
    max_rows: int = 300

    @classmethod
    def paper(cls, sources: Sources | EarlierTasks | None = None, **options: Any) -> Self:
        """The authors' choices; ``options`` replace single ones, None stands for the authors'.

        SE-ARD (fit ``Sources`` with ``kernel="se"``), raw scale, constant own weight, sigma of the
        own process, whose kernel is learnt from the earlier tasks, strict pairs, bandwidth 0.1.

        What differs from the authors: their program weighs mu by 1 in the numerator of eq. 8, so
        that without votes it would not be the plain process; it learns the own kernel anew in up
        to 100 epochs, 5 fewer with each trial, and one for each earlier task, where here all have
        the same one; expected improvement begins at 0.01 there, at 0 here; and processes here see
        at most ``max_rows`` rows. The losses of the new task are centred and standardised for
        the own process, so that its sigma is in units of their deviation, and those of an earlier
        task are centred; the program takes both as they are. As in their program, and not in the
        paper, a pair counts as discordant where strict comparisons differ. ``"meta_features"``
        compares all meta-features that the tasks have in common by their root mean square
        difference, where the paper has the sum over the 22 of its Table 1, so that the bandwidth
        of 0.69 hardly leaves out any task. 0.1 is their bandwidth for support vector machines; for
        the choice among Weka's algorithms they took 0.9. Ranks are compared by the share of
        discordant pairs, as in the program, where eq. 9 is the root of their number.

        What differs around the model: an inactive hyperparameter has 0.5 and a flag of its own,
        where theirs has 0; losses far from all others are moved near them (``records.scores``);
        failed and pruned runs of earlier tasks count as their worst; the final loss of a pruned
        evaluation is predicted, and running evaluations repel.
        """
        own: dict[str, Any] = {
            "bandwidth": 0.69 if options.get("distance") == "meta_features" else 0.1,
            "growth": 0.0,
            "scale": "raw",
            "spread": "own",
            "ties": "strict",
            "uninformed": False,
            "kernel": "se",
        }
        given = {name: value for name, value in options.items() if value is not None}
        return cls(sources, **(own | given))

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Learn from features ``X`` (n, f) and losses ``y`` (n,), n >= 0; weigh the tasks."""
        self.check_arguments()
        X, y = as_training(X, y, least=0)
        rows, n = informative_rows(y, self.max_rows), len(y)
        self._rows, self._n_rows = rows, n
        # n counts the rows left out, too: the votes fade with all that this search has seen.
        X, y = X[rows], y[rows]
        self.sources_ = sources = self._sources(X)
        self.n_features_in_ = X.shape[1]
        inputs = sources.inputs(X)
        candidates = (
            uninformed_kernels(inputs.shape[1]) if self.uninformed or not len(sources) else []
        )
        if len(sources):
            # Relative to a constant of up to 1000 the noise may be too small for a factorisation.
            candidates.append(Candidate(sources.scales, max(sources.noise, 1e-6), _LOG_PRIOR))
        self.own_ = EvidenceAverage(candidates, sources.kernel).fit(inputs, y)
        # By all sources: the weights and ``held_out`` depend on each of them.
        self._seen = seen = sources.predict(X)  # (S, n)
        self.weights_, self.distances_ = self._weigh(sources, seen, y)
        self._votes = votes = float(self.weights_.sum())
        # Before the first observation the own process knows nothing, not even the level.
        self.own_weight_ = self.own_weight * (1.0 + self.growth * n) if n or not votes else 0.0
        total = votes + self.own_weight_
        self.shares_ = dict(zip(sources.names, (self.weights_ / total).tolist(), strict=True))
        self.own_share_ = self.own_weight_ / total
        self._shift, self._stretch = self._scale_of(seen, y)
        return self

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation (m,) of the losses at features ``X`` (m, f).

        Before the first observation they are in units of the earlier tasks, whose losses lie in
        [0, 1].
        """
        check_is_fitted(self, "own_")
        X = as_features(X, self.n_features_in_)
        mean, std = self.own_.predict(self.sources_.inputs(X))
        k, votes = self.weights_, self._votes
        if votes == 0.0:
            return mean, std
        # Others are not asked, as predictions of sources take most of the time.
        voting = k > 0
        predicted = self.sources_.predict(X, voting)[voting]
        f = self._shift[voting, None] + self._stretch * predicted
        share = k[voting] / votes
        centre = share @ f
        a = votes / (votes + self.own_weight_)
        mean = a * centre + (1.0 - a) * mean  # TST eq. 8
        if self.spread == "votes":
            variance = share @ (f - centre) ** 2
            std = np.sqrt((1.0 - a) * std**2 + a * _INFLATION * variance)
        return mean, std

    def held_out(self) -> FloatArray:
        """Predictions (S, n) of each earlier task for the rows, none of which it has seen.

        Not the vote of all: its weights depend on the rows, and some of many tasks agree with any
        few rows by chance. NaN for rows not learnt from. Without sources, the prediction (n,) of
        the own process for each row, made without this row.
        """
        check_is_fitted(self, "own_")
        predicted = self._seen if len(self.sources_) else self.own_.held_out()
        out = np.full((*predicted.shape[:-1], self._n_rows), np.nan)
        out[..., self._rows] = predicted
        return out

    def promise(self, X: FloatArray) -> FloatArray:
        """Losses (m,) that the votes promise at ``X`` (m, f), in units of the earlier tasks.

        Each task had losses in [0, 1], so its process extrapolates below 0. NaN without votes.
        """
        check_is_fitted(self, "own_")
        if self._votes == 0.0:
            return np.full(len(X), np.nan)
        return self.weights_ @ self.sources_.predict(X, self.weights_ > 0) / self._votes

    def check_arguments(self) -> None:
        """Raise ValueError or TypeError for the first illegal argument."""
        check_choice("distance", self.distance, get_args(Distance))
        check_choice("scale", self.scale, get_args(Scale))
        check_choice("spread", self.spread, get_args(Spread))
        check_choice("ties", self.ties, get_args(Ties))
        check_integer("max_rows", self.max_rows, 2)
        check_finite("bandwidth", self.bandwidth, positive=True, optional=True)
        check_finite("own_weight", self.own_weight, positive=True)
        check_finite("growth", self.growth)
        if self.distance == "meta_features" and self.meta_features is None:
            raise ValueError(
                "distance='meta_features' needs the meta-features of the new task: pass"
                " meta_features, or use distance='ranks'."
            )

    # --- the parts ----------------------------------------------------------------------------

    def _sources(self, X: FloatArray) -> Sources:
        """The sources for features like ``X`` (n, f)."""
        sources = self.sources
        if sources is None:
            flagged = np.flatnonzero(np.isnan(X).any(axis=0))
            n, none = X.shape[1], np.zeros((0, 0))
            return Sources((), n, self.kernel, np.zeros(0), flagged, (), (), none)
        if not isinstance(sources, Sources):
            # Kept with its memory, because ``sources`` may have been set to another one since.
            fitted: tuple[object, Sources] | None = getattr(self, "_fitted", None)
            if fitted is None or fitted[0] is not sources:
                self._fitted = fitted = (sources, Sources.fit(sources, kernel=self.kernel))
            sources = fitted[1]
        if sources.n_features != X.shape[1]:
            raise ValueError(
                f"The sources are of a search space with {sources.n_features} features, X has"
                f" {X.shape[1]} columns: align the memory to the space with MetaDataset.aligned."
            )
        return sources

    def _weigh(
        self, sources: Sources, seen: FloatArray, y: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Weights and distances (S,) of the sources."""
        if self.distance == "meta_features":
            own, names = self.meta_features or {}, sources.meta_feature_names
            distances = meta_feature_distance(own, sources.meta_features, names)
        else:
            distances = discordance(y, seen, self.ties)  # 0 before two observations
        return epanechnikov(distances, self.bandwidth or _BANDWIDTHS[self.distance]), distances

    def _scale_of(self, seen: FloatArray, y: FloatArray) -> tuple[FloatArray, float]:
        """Shift (S,) and stretch that bring predictions to the scale of the new task's losses."""
        if self.scale == "raw" or not len(y) or self._votes == 0.0:
            return np.zeros(len(seen)), 1.0
        stretch = 1.0
        # Equal losses would shrink all predictions to one.
        if y.min() < y.max():
            # Predictions that hardly differ give no scale, and would be stretched without limit.
            deviation = float(self.weights_ @ seen.std(axis=1)) / self._votes
            stretch = float(y.std()) / max(deviation, _FLAT)
        return y.mean() - stretch * seen.mean(axis=1), stretch


def discordance(losses: FloatArray, predicted: FloatArray, ties: Ties = "half") -> FloatArray:
    """Share of the pairs of observations that each earlier task would rank the other way round.

    The distance of TST eqs. 12 and 13. The paper's vectors have a coordinate for (i, j) and one
    for (j, i); here each pair counts once.

    Args:
        losses: Observed losses (t,).
        predicted: Losses that the earlier tasks predict (S, t).
        ties: ``"half"``: a pair that only one side ties counts half, a pair that both tie not at
            all; this is the share of the paper's coordinates that differ. ``"strict"``: a pair is
            discordant where y_i > y_j differs, i before j, as in the authors' program; the result
            depends on the order of tied observations.

    Returns:
        Shares (S,) in [0, 1]; 0 with fewer than two observations.
    """
    n_sources, t = predicted.shape
    if t < 2:
        return np.zeros(n_sources)
    i, j = np.triu_indices(t, 1)
    own = np.sign(losses[i] - losses[j])
    total = np.empty(n_sources)
    step = max(1, _CHUNK // len(i))  # bounds the memory, whatever the number of tasks
    for start in range(0, n_sources, step):
        part = predicted[start : start + step]
        theirs = np.sign(part[:, i] - part[:, j])
        if ties == "strict":
            a, b = (own > 0).astype(np.float64), (theirs > 0).astype(np.float64)
            count = a.sum() + b.sum(axis=1) - 2.0 * (b @ a)
        else:
            # For signs a and b: |a - b| / 2 = (a^2 + b^2 - a b - a^2 b^2) / 2.
            a, b = own * own, theirs * theirs
            count = 0.5 * (a.sum() + b.sum(axis=1) - theirs @ own - b @ a)
        total[start : start + step] = count
    return total / len(i)


def epanechnikov(distance: FloatArray, bandwidth: float) -> FloatArray:
    """Weights 3/4 (1 - u^2) for u = distance / bandwidth <= 1, else 0 (TST eqs. 9, 10)."""
    u = np.asarray(distance) / bandwidth  # inf for a task that shares no meta-feature
    return np.where(u <= 1.0, _FULL * (1.0 - np.minimum(u, 1.0) ** 2), 0.0)


def meta_feature_distance(
    own: Mapping[str, float], earlier: FloatArray, names: Sequence[str]
) -> FloatArray:
    """Root mean square difference of the meta-features, each scaled to [0, 1] over all tasks.

    TST has a sum; with the mean, tasks that know different meta-features can be compared.

    Args:
        own: Meta-features of the new task by name.
        earlier: Those of the earlier tasks (S, m), NaN where unknown.
        names: Their names (m).

    Returns:
        Distances (S,) in [0, 1]; inf for a task that shares no known meta-feature.
    """
    new = np.array([own.get(name, np.nan) for name in names], dtype=np.float64)
    every = np.vstack([earlier, new])
    every[~np.isfinite(every)] = np.nan
    every *= 0.5  # differences of halves do not overflow, and their ratios are the same
    low, high = np.fmin.reduce(every), np.fmax.reduce(every)  # NaN where nobody knows it
    spread = np.where(high > low, high - low, 1.0)
    squares = ((every[:-1] - every[-1]) / spread) ** 2
    n_known = (~np.isnan(squares)).sum(axis=1)
    # A mean over what both know: nanmean would warn of tasks that share nothing.
    mean = np.nan_to_num(squares).sum(axis=1) / np.maximum(n_known, 1)
    return np.where(n_known > 0, np.sqrt(mean), np.inf)
