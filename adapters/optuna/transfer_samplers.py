"""The samplers that learn from earlier tasks, which each study sees without itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Self, Unpack

from optuna.logging import get_logger
from optuna.study import Study

from automl_plugins import recipes
from automl_plugins._arguments import preset
from automl_plugins.meta.memories import TaskMemory
from automl_plugins.meta.tasks import describe_options
from automl_plugins.proposers.proposal import Proposal, Proposer, ask
from automl_plugins.recipes.with_memory import BlendedArguments, PMFArguments, TSTArguments
from automl_plugins.records.history import History
from automl_plugins.surrogates.base import FloatArray

from . import _private
from ._foresight import Foresight
from ._options import SamplerOptions, split, takes
from ._sources import AnySources, read_sources
from .proposer_sampler import Cache, ProposerSampler
from .space import UnionSpace

_logger = get_logger("optuna.automl_plugins")


class TSTOptions(TSTArguments, SamplerOptions, total=False):
    """Arguments of ``TSTSampler``."""


class PMFOptions(PMFArguments, SamplerOptions, total=False):
    """Arguments of ``PMFSampler``."""


class BlendedOptions(BlendedArguments, SamplerOptions, total=False):
    """Arguments of ``BlendedSampler``."""


class TransferSampler(ProposerSampler):
    """Bayesian optimisation that learns from earlier tasks; the named samplers are its recipes.

    The first trial already profits: what the sources searched counts as the search space until
    the trials say otherwise, their conditions included. A study that is among its own sources is
    left out, which is logged; so is a source with nothing to tell (fewer than two complete
    trials, losses that are all alike, the same runs again). If the objective asks for nothing
    that the sources know, whatever option it takes, a warning says so and ``GBQRSampler``
    continues in its place.

    Args:
        sources: Earlier tasks: studies (one, several, several by name of the task), minimised or
            maximised; a storage, its address or its journal file, for all studies in it; or a
            memory, which is a ``MetaDataset``, a ``MetaStore``, its path or address, records of
            tasks, or the name of a bundled one.
        recipe: Makes the proposer, given the memory of a study and the options that are not those
            of all samplers.
        options: Arguments of the sampler, see ``TSTSampler``.

    Raises:
        TypeError: For sources that are none, or an unknown option.
        MemoryMismatch: For sources of which nothing can be learnt, or that share no parameter with
            ``search_space``.
        ValueError: For an argument outside its range.
    """

    def __init__(
        self,
        sources: AnySources,
        recipe: Callable[..., Proposer],
        options: Mapping[str, Any],
    ) -> None:
        of_recipe, of_sampler = split(type(self), options)
        self._sources = read_sources(sources, of_recipe.pop("task", None))
        self._recipe = partial(recipe, **describe_options(of_recipe))
        memory = self._sources.memory
        declared, foresight = options.get("search_space"), self._sources.foresight
        super().__init__(
            self._recipe(memory),
            foresight=foresight.expecting({}) if declared else foresight,
            **of_sampler,
        )
        if declared:
            self._check_declared(memory, foresight)
        self._adapted: Cache[tuple[int, int], Proposer] = Cache()

    def _check_declared(self, memory: TaskMemory, foresight: Foresight) -> None:
        """Raise a MemoryMismatch if nothing known lies in the declared search space."""
        rules = foresight.rules({}, self._search_space)
        union = UnionSpace(self._search_space, rules, self._ordinal)
        memory.on(union.vectors)

    # --- one study --------------------------------------------------------------------------

    def _ask(
        self, study: Study, union: UnionSpace, history: History, k: int, fixed: FloatArray
    ) -> Proposal:
        key = _private.study_key(study)[:2]
        proposer = self._adapted.of(key, lambda: self._adapt(_private.whole_study(study)))
        return ask(proposer, union.vectors, history, self._streams, k, fixed)

    def _adapt(self, study: Study) -> Proposer:
        """The proposer of a study."""
        itself = self._sources.being(study)
        if itself:
            _logger.info(
                f"Study {study.study_name!r} is one of its own sources; what is known of"
                f" {', '.join(sorted(itself))} is left out."
            )
        return self._recipe(self._sources.memory.without(itself))


@takes(recipes.tst, SamplerOptions)
class TSTSampler(TransferSampler):
    """Two-stage transfer (Wistuba 2016): earlier studies vote as long as they agree with this one.

    A Gaussian process of each source predicts; its weight is the agreement of its ranking with
    that of the trials so far. The process of the search itself weighs more with each trial.
    ``explain(trial)`` tells the weights; ``visualization.plot_source_weights`` draws them.

    Args:
        sources: Earlier tasks, see ``TransferSampler``.
        task: Name of the task of this search; its runs in the sources are left out.
        meta_features: Meta-features of this task, for ``distance="meta_features"``.
        X: The data of this task instead, of which meta-features are computed.
        y: Its target.
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

    def __init__(self, sources: AnySources, **options: Unpack[TSTOptions]) -> None:
        super().__init__(sources, recipes.tst, options)

    @classmethod
    @preset
    def paper(cls, sources: AnySources, **options: Unpack[TSTOptions]) -> Self:
        """The authors' choices; ``bandwidth=None`` is their 0.1 for ranks.

        What differs: the sum of eq. 8 weighs the own process alike in numerator and denominator,
        its kernel is that of the earlier tasks and not learnt anew, each process sees at most 300
        rows, and in a space of more than ``n_candidates=1000`` configurations, where the authors
        predict a whole grid, random ones and local searches are predicted. Reasons are in
        ``TwoStageTransfer.paper`` and ``automl_plugins.recipes.tst``.
        """
        options["paper"] = True
        return cls(sources, **options)


@takes(recipes.pmf, SamplerOptions)
class PMFSampler(TransferSampler):
    """Probabilistic matrix factorisation (Fusi 2018): the sources' configurations, best first.

    A Gaussian-process latent variable model of configurations x tasks predicts this task's entries
    from those already evaluated. Only configurations of the sources are proposed; after them
    ``GBQRSampler`` goes on.

    Args:
        sources: Earlier tasks, see ``TransferSampler``; they should share configurations.
        task: Name of the task of this search; its runs in the sources are left out.
        meta_features: Meta-features of this task, or its data ``X`` and ``y``; without them the
            start is the same for all.
        X: See ``TSTSampler``.
        y: See ``TSTSampler``.
        model: Settings of the factorisation; None takes the default.
        n_start: Configurations that are proposed before the model is asked.
        xi: Improvement below which EI gains nothing.
        start: ``"portfolio"``, configurations that together are best on the sources, or
            ``"nearest"``, the best ones of the sources nearest by their meta-features.
        **options: See ``TSTSampler``.

    Raises:
        TypeError: See ``TSTSampler``.
        ValueError: See ``TSTSampler``.

    Example::

        study = optuna.create_study(sampler=PMFSampler("lightgbm", seed=1))
        study.optimize(objective, n_trials=30)  # num_leaves, learning_rate, ...
    """

    def __init__(self, sources: AnySources, **options: Unpack[PMFOptions]) -> None:
        super().__init__(sources, recipes.pmf, options)

    @classmethod
    @preset
    def paper(cls, sources: AnySources, **options: Unpack[PMFOptions]) -> Self:
        """The authors' start and model; what still differs is in ``automl_plugins.recipes.pmf``.

        Maximise balanced accuracy, rescaled so that guessing has 0: the prior mean is 0.
        """
        options["paper"] = True
        return cls(sources, **options)


@takes(recipes.blended, SamplerOptions)
class BlendedSampler(TransferSampler):
    """Blended optimisation (thesis ch. 6): the sources decide first, GBQR more and more.

    The first trials are those that ``meta.diverse`` suggests; then a meta-learner and GBQR vote.

    Args:
        sources: Earlier tasks, see ``TransferSampler``.
        task: Name of the task of this search; its runs in the sources are left out.
        meta_features: Meta-features of this task, or its data ``X`` and ``y``; without them the
            meta-learner predicts for a mean task.
        X: See ``TSTSampler``.
        y: See ``TSTSampler``.
        surrogate: What votes more and more, with ``fit(X, y)`` and ``predict(X)``; None takes
            that of ``GBQRSampler``.
        n_suggested: Trials before anything is voted on; 0 begins with the meta-learner.
        **options: See ``TSTSampler``.

    Raises:
        TypeError: See ``TSTSampler``.
        ValueError: See ``TSTSampler``.

    Example::

        study = optuna.create_study(sampler=BlendedSampler("lightgbm", X=X, y=y, seed=1))
        study.optimize(objective, n_trials=30)  # num_leaves, learning_rate, ...
    """

    def __init__(self, sources: AnySources, **options: Unpack[BlendedOptions]) -> None:
        super().__init__(sources, recipes.blended, options)
