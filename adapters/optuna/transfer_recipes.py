"""The named samplers that learn from earlier tasks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from automl_plugins import recipes
from automl_plugins.proposers.pipelines import Start
from automl_plugins.representation import preset
from automl_plugins.surrogates.two_stage import Distance

from ._options import TransferOptions, of_proposer
from ._sources import AnySources
from .transfer_sampler import TransferSampler

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from automl_plugins.meta.factorization import MatrixFactorization


class TSTSampler(TransferSampler):
    """Two-stage transfer (Wistuba 2016): earlier studies vote as long as they agree with this one.

    A Gaussian process of each source predicts; its weight is the agreement of its ranking with
    that of the trials so far. The process of the search itself weighs more with each trial.
    ``explain(trial)`` tells the weights; ``visualization.plot_source_weights`` draws them.

    Args:
        sources: Earlier tasks, see ``TransferSampler``.
        task: Name of the task of this search; its runs in the sources are left out.
        meta_features: Meta-features of this task, for ``distance="meta_features"``.
        distance: ``"ranks"`` (TST-R) or ``"meta_features"`` (TST-M).
        bandwidth: Distance from which a source has no vote; None for the measured default.
        **options: ``seed``, ``n_startup_trials``, ``n_candidates``, ``max_rows``,
            ``search_space``, ``ordinal``, ``independent_sampler``, ``warn_independent_sampling``
            and ``failed_trials``: see ``SurrogateSampler``. The default are no start-up trials.

    Raises:
        TypeError: For sources that are none.
        ValueError: For sources of which nothing can be learnt, or that share no parameter with
            ``search_space``; for an argument outside its range.

    Example::

        earlier = [optuna.load_study(study_name=n, storage=storage) for n in names]
        study = optuna.create_study(sampler=TSTSampler(earlier, seed=1))
        study.optimize(objective, n_trials=30)
    """

    def __init__(
        self,
        sources: AnySources,
        *,
        task: str | None = None,
        meta_features: Mapping[str, float] | None = None,
        distance: Distance = "ranks",
        bandwidth: float | None = None,
        **options: Unpack[TransferOptions],
    ) -> None:
        recipe = partial(
            recipes.tst,
            meta_features=meta_features,
            distance=distance,
            bandwidth=bandwidth,
            **of_proposer(options),
        )
        super().__init__(sources, recipe, task=task, options=options)

    @classmethod
    @preset
    def paper(
        cls,
        sources: AnySources,
        *,
        task: str | None = None,
        meta_features: Mapping[str, float] | None = None,
        distance: Distance = "ranks",
        bandwidth: float | None = None,
        **options: Unpack[TransferOptions],
    ) -> Self:
        """The authors' choices; ``bandwidth=None`` is their 0.1 for ranks.

        What differs: the sum of eq. 8 weighs the own process alike in numerator and denominator,
        its kernel is that of the earlier tasks and not learnt anew, each process sees at most 300
        rows, and in a space of more than ``n_candidates=1000`` configurations, where the authors
        predict a whole grid, random ones and local searches are predicted. Reasons are in
        ``TwoStageTransfer.paper`` and ``automl_plugins.recipes.tst``.
        """
        recipe = partial(
            recipes.tst,
            meta_features=meta_features,
            distance=distance,
            bandwidth=bandwidth,
            paper=True,
            **of_proposer(options),
        )
        return cls._made(sources, recipe, task=task, options=options)


class PMFSampler(TransferSampler):
    """Probabilistic matrix factorisation (Fusi 2018): the sources' configurations, best first.

    A Gaussian-process latent variable model of configurations x tasks predicts this task's entries
    from those already evaluated. Only configurations of the sources are proposed; after them
    ``GBQRSampler`` goes on.

    Args:
        sources: Earlier tasks, see ``TransferSampler``; they should share configurations.
        task: Name of the task of this search; its runs in the sources are left out.
        meta_features: Meta-features of this task; without them the start is the same for all.
        model: Settings of the factorisation; None takes the default.
        n_start: Configurations that are proposed before the model is asked.
        xi: Improvement below which EI gains nothing.
        start: ``"portfolio"``, configurations that together are best on the sources, or
            ``"nearest"``, the best ones of the sources nearest by their meta-features.
        **options: See ``TSTSampler``.

    Raises:
        TypeError: See ``TSTSampler``.
        ValueError: See ``TSTSampler``.
    """

    def __init__(
        self,
        sources: AnySources,
        *,
        task: str | None = None,
        meta_features: Mapping[str, float] | None = None,
        model: MatrixFactorization | None = None,
        n_start: int = 5,
        xi: float = 0.01,
        start: Start = "portfolio",
        **options: Unpack[TransferOptions],
    ) -> None:
        recipe = partial(
            recipes.pmf,
            meta_features=meta_features,
            model=model,
            n_start=n_start,
            xi=xi,
            start=start,
            **of_proposer(options),
        )
        super().__init__(sources, recipe, task=task, options=options)

    @classmethod
    @preset
    def paper(
        cls,
        sources: AnySources,
        *,
        task: str | None = None,
        meta_features: Mapping[str, float] | None = None,
        **options: Unpack[TransferOptions],
    ) -> Self:
        """The authors' start and model; what still differs is in ``automl_plugins.recipes.pmf``.

        Maximise balanced accuracy, rescaled so that guessing has 0: the prior mean is 0.
        """
        recipe = partial(
            recipes.pmf, meta_features=meta_features, paper=True, **of_proposer(options)
        )
        return cls._made(sources, recipe, task=task, options=options)


class BlendedSampler(TransferSampler):
    """Blended optimisation (thesis ch. 6): the sources decide first, GBQR more and more.

    The first trials are those that ``meta.diverse`` suggests; then a meta-learner and GBQR vote.

    Args:
        sources: Earlier tasks, see ``TransferSampler``.
        task: Name of the task of this search; its runs in the sources are left out.
        meta_features: Meta-features of this task; without them the meta-learner predicts for a
            mean task.
        surrogate: What votes more and more, with ``fit(X, y)`` and ``predict(X)``; None takes
            that of ``GBQRSampler``.
        n_suggested: Trials before anything is voted on; 0 begins with the meta-learner.
        **options: See ``TSTSampler``.

    Raises:
        TypeError: See ``TSTSampler``.
        ValueError: See ``TSTSampler``.
    """

    def __init__(
        self,
        sources: AnySources,
        *,
        task: str | None = None,
        meta_features: Mapping[str, float] | None = None,
        surrogate: Any = None,
        n_suggested: int = 5,
        **options: Unpack[TransferOptions],
    ) -> None:
        recipe = partial(
            recipes.blended,
            meta_features=meta_features,
            surrogate=surrogate,
            n_suggested=n_suggested,
            **of_proposer(options),
        )
        super().__init__(sources, recipe, task=task, options=options)
