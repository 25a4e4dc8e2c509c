"""The samplers that learn from earlier tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Self, Unpack

from optuna.study import Study

from automl_plugins import recipes
from automl_plugins._arguments import preset
from automl_plugins.meta.sources import AUTO
from automl_plugins.meta.tasks import describe_options
from automl_plugins.proposers.proposal import Proposer
from automl_plugins.proposers.with_memory import check_fits
from automl_plugins.recipes.with_memory import (
    AutoArguments,
    BlendedArguments,
    PMFArguments,
    TSTArguments,
)

from . import _private
from ._sources import AnySources, Sources, read_sources
from ._study import key_of_space
from ._union import UnionSpace
from .proposer_sampler import ProposerSampler
from .samplers import CostOptions, SamplerOptions, split, takes
from .seeded_sampler import Cache


class AutoOptions(AutoArguments, CostOptions, total=False):
    """Arguments of ``AutoSampler``."""


class TSTOptions(TSTArguments, SamplerOptions, total=False):
    """Arguments of ``TSTSampler``."""


class PMFOptions(PMFArguments, SamplerOptions, total=False):
    """Arguments of ``PMFSampler``."""


class BlendedOptions(BlendedArguments, SamplerOptions, total=False):
    """Arguments of ``BlendedSampler``."""


class TransferSampler(ProposerSampler):
    """Bayesian optimisation that learns from earlier tasks; the named samplers are its recipes.

    The first trial already profits: the search space of the sources, with its conditions, counts
    until the trials contradict it. A study among its own sources is left out, which is logged; so
    is an uninformative source (fewer than two complete trials, equal losses, the same runs as
    another). If the objective has no parameter in common with the sources, on any branch, a
    warning is logged and the fallback of the recipe proposes: the committee without a memory for
    ``AutoSampler``, GBQR for the others. If ``"auto"`` finds no learner, there is no warning.

    Args:
        memory: See ``TSTSampler``; None is legal unless it is ``required``.
        recipe: Makes the proposer, given the memory of a study and the recipe's own options.
        options: Arguments of the sampler, also ``sources``, the earlier name of ``memory``.
        required: Whether a memory is required.
    """

    def __init__(
        self,
        memory: AnySources | None,
        recipe: Callable[..., Proposer],
        options: Mapping[str, Any],
        *,
        required: bool = True,
    ) -> None:
        # A copy, from which the memory may be taken out.
        options = dict(options)
        if required and memory is None:
            memory = options.pop("sources", None)
        of_recipe, of_sampler = split(type(self), options)
        self._sources: Sources | None = None
        if memory is None and not required:
            super().__init__(recipe(None, **of_recipe), **of_sampler)
            return
        self._sources = sources = read_sources(memory, of_recipe.pop("task", None))
        # Meta-features are computed here once, not for the memory of each study.
        self._recipe = partial(recipe, **describe_options(of_recipe))
        # By study, because each study is left out of its own memory.
        self._adapted: Cache[_private.StudyKey, Proposer] = Cache()
        super().__init__(self._recipe(sources.memory), foresight=sources.foresight, **of_sampler)
        if self._search_space:  # raises a MemoryMismatch if the memory shares no parameter
            known = self._search_space, sources.foresight.rules({}, self._search_space)
            # A first trial has the same space, to which the memory is aligned by then.
            space = self._declared.get(
                key_of_space(*known), lambda: UnionSpace(*known, self._ordinal)
            )
            check_fits(sources.memory, space.vectors)

    def _proposer_of(self, study: Study) -> Proposer:
        sources = self._sources
        if sources is None:
            return self._proposer
        return self._adapted.of(
            _private.study_key(study),
            lambda: self._recipe(sources.without(_private.whole_study(study))),
        )


@takes(recipes.auto, CostOptions)
class AutoSampler(TransferSampler):
    """The one to use: a committee of models, drawn by how well they rank the trials.

    Its members are the quantile boosting of ``GBQRSampler`` and Gaussian processes averaged over
    kernels; earlier tasks and a meta-learner join them if there is a ``memory``, which also
    suggests the first trials. The better a model predicts the order of held-out trials, the more
    often it proposes. In a long search a process of the region around the best trial has every
    second turn. ``docs/evidence/README.md`` shows the cost of misleading memories.
    ``explain(trial)`` says which member proposed; ``visualization.plot_member_trust`` draws how
    much each was trusted.

    Args:
        memory: The earlier tasks: studies, storages or their addresses, records of tasks and
            searches of other frameworks, one or several; or a ``MetaStore``, its path or address,
            a ``MetaDataset``, or the name of a bundled memory (more under ``TSTSampler``).
            ``"auto"`` takes the bundled memory of a learner if the objective asks for at least
            two of its hyperparameters, by their names in the learner's library, and if these are
            at least half of all; the log names it. A search among several algorithms has no
            learner: if there is a choice that the learner does not have, and not of numbers, the
            memory waits until two of its options, or three trials, are complete. Without
            ``search_space`` the names are known from the second trial on. None for a search
            without a memory.
        cost: See ``ProposerSampler``. If given, the gain is divided by the predicted seconds.

    Raises:
        TypeError, MemoryMismatch, ValueError: See ``TSTSampler``.

    Example::

        study = optuna.create_study(sampler=AutoSampler(seed=1))
        study.optimize(objective, n_trials=60)
    """

    def __init__(self, memory: AnySources | None = AUTO, **options: Unpack[AutoOptions]) -> None:
        recipe = partial(recipes.auto, per_second=options.get("cost") is not None)
        super().__init__(memory, recipe, options, required=False)


@takes(recipes.tst, SamplerOptions)
class TSTSampler(TransferSampler):
    """Two-stage transfer (Wistuba 2016): earlier studies vote as long as they agree with this one.

    Each source has a Gaussian process, weighted by how well its ranking agrees with that of the
    trials so far. The search's own process weighs more with each trial.
    ``explain(trial)`` gives the weights; ``visualization.plot_source_weights`` draws them.

    Args:
        memory: The earlier tasks: studies (one, several, several by name of the task), minimised
            or maximised; storages, their addresses or journal files (one or several), for all
            studies in them; records of tasks and searches of other frameworks in the same forms,
            also along with studies; or a memory, which is a ``MetaDataset``, a ``MetaStore``, its
            path or address, the name of a bundled one, or ``"auto"``: the bundled one of the
            learner that is recognised by the names of the parameters, see ``AutoSampler``.
        n_startup_trials: Trials that fill the space before the sources are used; None is 0.

    Raises:
        TypeError: For a memory of the wrong type, or an unknown option.
        MemoryMismatch: For a memory from which nothing can be learnt, or that shares no parameter
            with ``search_space``.
        ValueError: For an argument outside its range.

    Example::

        earlier = [optuna.load_study(study_name=n, storage=storage) for n in names]
        study = optuna.create_study(sampler=TSTSampler(earlier, seed=1))
        study.optimize(objective, n_trials=30)
    """

    def __init__(self, memory: AnySources | None = None, **options: Unpack[TSTOptions]) -> None:
        super().__init__(memory, recipes.tst, options)

    @classmethod
    @preset
    def paper(cls, memory: AnySources | None = None, **options: Unpack[TSTOptions]) -> Self:
        """The authors' choices; ``bandwidth=None`` is their 0.1 for ranks.

        ``TwoStageTransfer.paper`` and ``automl_plugins.recipes.tst`` explain the remaining
        differences.
        """
        options["paper"] = True
        return cls(memory, **options)


@takes(recipes.pmf, SamplerOptions)
class PMFSampler(TransferSampler):
    """Probabilistic matrix factorisation (Fusi 2018): the memory's configurations, best first.

    A Gaussian-process latent variable model of configurations x tasks predicts this task's losses
    from those already observed. Only configurations of the memory are proposed; after them
    ``GBQRSampler`` continues.

    Args:
        memory: See ``TSTSampler``; its tasks should share configurations.

    Raises:
        TypeError, ValueError: See ``TSTSampler``.

    Example::

        study = optuna.create_study(sampler=PMFSampler("lightgbm", seed=1))
        study.optimize(objective, n_trials=30)  # num_leaves, learning_rate, ...
    """

    def __init__(self, memory: AnySources | None = None, **options: Unpack[PMFOptions]) -> None:
        super().__init__(memory, recipes.pmf, options)

    @classmethod
    @preset
    def paper(cls, memory: AnySources | None = None, **options: Unpack[PMFOptions]) -> Self:
        """The paper's start and model; ``automl_plugins.recipes.pmf`` lists the differences.

        Maximise balanced accuracy, rescaled so that chance level is 0: the prior mean is 0.
        """
        options["paper"] = True
        return cls(memory, **options)


@takes(recipes.blended, SamplerOptions)
class BlendedSampler(TransferSampler):
    """Blended optimisation (thesis ch. 6): the sources decide first, GBQR more and more.

    The first trials are those that ``meta.diverse`` suggests; then a meta-learner and GBQR vote.

    Args:
        memory: See ``TSTSampler``.

    Raises:
        TypeError, ValueError: See ``TSTSampler``.

    Example::

        study = optuna.create_study(sampler=BlendedSampler("lightgbm", X=X, y=y, seed=1))
        study.optimize(objective, n_trials=30)  # num_leaves, learning_rate, ...
    """

    def __init__(
        self, memory: AnySources | None = None, **options: Unpack[BlendedOptions]
    ) -> None:
        super().__init__(memory, recipes.blended, options)
