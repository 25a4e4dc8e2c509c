"""The samplers that learn from earlier tasks; a study is left out of its own sources."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, Unpack

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    IntDistribution,
)
from optuna.logging import get_logger
from optuna.storages import BaseStorage
from optuna.study import Study

from automl_plugins import recipes
from automl_plugins._arguments import preset
from automl_plugins.addresses import check_exists, file_of
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.memories import AUTO, Memory, RecognisedMemory, TaskMemory
from automl_plugins.meta.tasks import describe_options
from automl_plugins.meta.union import union_space
from automl_plugins.proposers.proposal import Proposer
from automl_plugins.proposers.with_memory import check_fits
from automl_plugins.recipes.auto import AutoArguments
from automl_plugins.recipes.with_memory import BlendedArguments, PMFArguments, TSTArguments
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.spaces.values import to_values

from . import _private
from ._study import Foresight
from .memory import Studies, key_of, named_studies, read_study, task_name
from .proposer_sampler import ProposerSampler
from .samplers import CostOptions, SamplerOptions, split, takes
from .seeded_sampler import Cache
from .space import UnionSpace, distributions_of, space_of_trials
from .trials import finished_trials, owns

_logger = get_logger("optuna.automl_plugins")

#: Studies, as ``meta_dataset_from_studies`` takes them, or a memory.
AnySources = Studies | Memory | RecognisedMemory
Distributions = dict[str, BaseDistribution]


@dataclass(frozen=True)
class Sources:
    """Earlier tasks, the search space expected from them, and their names by mark of the study."""

    memory: TaskMemory | RecognisedMemory
    foresight: Foresight
    marks: Mapping[str, str]

    def without(self, study: Study) -> TaskMemory | RecognisedMemory:
        """The memory without the study itself; logged if it was there."""
        itself = {task_name(study), self.marks.get(_mark(study), "")}
        if isinstance(self.memory, TaskMemory):
            itself &= set(self.memory.names)
            if itself:
                _logger.info(
                    f"Study {study.study_name!r} is one of its own sources; tasks left out:"
                    f" {', '.join(sorted(itself))}."
                )
        return self.memory.without(itself)


def read_sources(
    sources: AnySources | None, task: str | None = None, *, called: str = "sources"
) -> Sources:
    """Read the argument that is ``called`` so, without the runs of ``task``.

    Raises:
        TypeError: For an object without tasks.
        ValueError: For a path or address that does not exist, or studies of several objectives.
        MemoryMismatch: If there is nothing to learn from, unless a place is still filling up.
    """
    marks: dict[str, str] = {}
    if isinstance(sources, str) and sources == AUTO:
        sources = RecognisedMemory(task=task, logger=_logger)
    if isinstance(sources, RecognisedMemory):
        own = sources if task is None else sources.without({task})
        return Sources(own, Foresight({}, ()), marks)
    if _holds_studies(sources):
        of_storage = isinstance(sources, BaseStorage | str)
        records, distributions, marks = _of_studies(sources, of_storage)  # type: ignore[arg-type]
        memory = TaskMemory(records, task=task, growing=True, filling=of_storage, logger=_logger)
    elif isinstance(sources, Mapping):
        raise TypeError(f"{called} by name must be optuna studies, got {sources!r}.")
    else:
        try:
            memory = TaskMemory(sources, task=task, growing=True, logger=_logger)  # type: ignore[arg-type]
        except TypeError:
            raise TypeError(
                f"{called} must be optuna studies (one, several, or by name), a storage, or a"
                " memory: a MetaDataset, a MetaStore, its path or address, records of tasks, the"
                f" name of a bundled one, or 'auto'. Got {sources!r}."
            ) from None
        distributions = _expected(memory.known)
    tasks: list[Sequence[Mapping[str, Any]]]
    if isinstance(known := memory.known, MetaDataset):
        tasks = [to_values(known.space, known.distinct[0])]
    else:
        tasks = [record.configurations for record in known]
    return Sources(memory, Foresight(distributions, tasks), marks)


def _holds_studies(sources: Any) -> bool:
    if isinstance(sources, Study | BaseStorage):
        return True
    if isinstance(sources, Mapping):
        return all(isinstance(study, Study) for study in sources.values())
    if isinstance(sources, Sequence) and not isinstance(sources, str):
        return any(isinstance(study, Study) for study in sources)
    return isinstance(sources, str) and owns(sources) and not _is_store(sources)


def _is_store(address: str) -> bool:
    """Whether an address is a database without studies; False for a journal.

    Raises:
        ValueError: If there is no such database.
    """
    if "://" not in address:
        return False
    import sqlalchemy as sa  # few sources are databases

    engine = sa.create_engine(check_exists(address))
    try:
        return not {"studies", "trials"} <= set(sa.inspect(engine).get_table_names())
    except sa.exc.DatabaseError:
        if file_of(address) is None:  # a server says itself what is wrong
            raise
        return True  # it is damaged, or no database: a store says so in plain words
    finally:
        engine.dispose()


def _of_studies(
    sources: Studies, of_storage: bool
) -> tuple[list[TaskRecord], Distributions, dict[str, str]]:
    """Runs, the union of the distributions, and the name of the task by mark of the study.

    The user did not pick the studies ``of_storage``: unusable ones are left out, not refused.
    """
    records: list[TaskRecord] = []
    marks: dict[str, str] = {}
    found: dict[str, list[BaseDistribution]] = {}
    for name, study in named_studies(sources):
        if of_storage and len(study.directions) > 1:
            _logger.warning(f"Source {name!r} is left out: it has several objectives.")
            continue
        mark = _mark(study)
        if mark in marks:
            _logger.warning(f"Source {name!r} is left out: the same study was given before.")
            continue
        trials = finished_trials(study)
        if of_storage and not trials:  # such as the study itself, which has just been made
            continue
        records.append(read_study(study, name, space_of_trials(trials), trials=trials))
        if mark:
            marks[mark] = name
        for trial in trials:
            for parameter, distribution in trial.distributions.items():
                found.setdefault(parameter, []).append(distribution)
    return records, {n: d for n, ds in found.items() if (d := _widest(ds)) is not None}, marks


def _mark(study: Study) -> str:
    """Identity of a study in any storage; empty as long as it has no trial."""
    trials = study.get_trials(deepcopy=False)
    return f"{study.study_name} {key_of(trials[0])}" if trials else ""


def _widest(distributions: Sequence[BaseDistribution]) -> BaseDistribution | None:
    """The distribution with all values of the given ones; None if they differ in kind."""
    # By their text, for those of choices that are lists have no hash.
    distinct: list[Any] = list({repr(d): d for d in distributions}.values())
    kind = type(distinct[-1])
    if len(distinct) == 1:
        return distributions[0]
    if any(type(d) is not kind for d in distinct):
        return None
    if kind is CategoricalDistribution:
        choices = [choice for d in distinct for choice in d.choices]
        return CategoricalDistribution(list({(type(c), str(c)): c for c in choices}.values()))
    wide = [d for d in distinct if not d.single()] or distinct
    low, high = min(d.low for d in distinct), max(d.high for d in distinct)
    # A range that had one value may lie below a logarithmic scale, or between the steps.
    log = low > 0 and all(d.log for d in wide)
    step = wide[0].step
    is_even = all(d.step == step for d in wide)
    if log or not is_even or any(_is_between(d.low, low, step) for d in distinct):
        step = 1 if kind is IntDistribution else None
    made: BaseDistribution = kind(low, high, log=log, step=step)
    return made


def _is_between(value: float, low: float, step: float | None) -> bool:
    """Whether a value lies between the steps from ``low``."""
    if step is None or isinstance(step, int):
        return bool(step and (value - low) % step)
    # Not %, by which 0.3 is nearly a whole step of 0.1 too far.
    return abs(math.remainder(value - low, step)) > 1e-9 * step


def _expected(known: MetaDataset | list[TaskRecord]) -> Distributions:
    """Distributions of the recorded spaces; empty if they are unknown or contradictory."""
    try:
        return distributions_of(
            known.space if isinstance(known, MetaDataset) else union_space(known)
        )
    except ValueError:
        return {}


# --- the samplers ---------------------------------------------------------------------------


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
    warning is logged and ``GBQRSampler`` continues in its place.

    Args:
        sources: See ``TSTSampler``.
        recipe: Makes the proposer, given the memory of a study and the recipe's own options.
        options: Arguments of the sampler, see ``TSTSampler``.
        required: Whether sources are required; else they may be None.

    Raises:
        TypeError, ValueError: See ``TSTSampler``.
    """

    def __init__(
        self,
        sources: AnySources | None,
        recipe: Callable[..., Proposer],
        options: Mapping[str, Any],
        *,
        required: bool = True,
    ) -> None:
        of_recipe, of_sampler = split(type(self), options)
        self._sources: Sources | None = None
        if sources is None and not required:
            super().__init__(recipe(None, **of_recipe), **of_sampler)
            return
        called = "sources" if required else "memory"
        self._sources = read_sources(sources, of_recipe.pop("task", None), called=called)
        self._recipe = partial(recipe, **describe_options(of_recipe))
        self._adapted: Cache[tuple[int, int], Proposer] = Cache()
        memory = self._sources.memory
        foresight = self._sources.foresight
        super().__init__(self._recipe(memory), foresight=foresight, **of_sampler)
        if self._search_space:  # raises a MemoryMismatch if the memory has nothing in it
            rules = foresight.rules({}, self._search_space)
            check_fits(memory, UnionSpace(self._search_space, rules, self._ordinal).vectors)

    def _proposer_of(self, study: Study) -> Proposer:
        sources = self._sources
        if sources is None:
            return self._proposer
        key = _private.study_key(study)[:2]
        return self._adapted.of(
            key, lambda: self._recipe(sources.without(_private.whole_study(study)))
        )


@takes(recipes.auto, CostOptions)
class AutoSampler(TransferSampler):
    """The one to use: a committee of models, drawn by how well they rank the trials.

    Its members are the quantile boosting of ``GBQRSampler`` and Gaussian processes averaged over
    kernels; earlier tasks and a meta-learner join them if there is a ``memory``, which also
    suggests the first trials. The better a model predicts the order of held-out trials, the more
    often it proposes. ``docs/evidence/README.md`` shows the cost of misleading memories.
    ``explain(trial)`` says which member proposed; ``visualization.plot_member_trust`` draws how
    much each was trusted.

    Args:
        memory: As ``sources`` of ``TSTSampler``. ``"auto"`` takes the bundled memory of a learner
            if the objective asks for at least two of its hyperparameters, by their names in the
            learner's library, and if these are at least half of all; the log names it. Without
            ``search_space`` the names are known from the second trial on. None for a search
            without a memory.
        cost: See ``ProposerSampler``. If given, the gain is divided by the predicted seconds.

    Raises:
        TypeError: For a memory of the wrong type, or an unknown option.
        MemoryMismatch: For a memory from which nothing can be learnt, or that shares no parameter
            with ``search_space``.
        ValueError: For an argument outside its range.

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
        sources: Earlier tasks: studies (one, several, several by name of the task), minimised or
            maximised; a storage, its address or its journal file, for all studies in it; or a
            memory, which is a ``MetaDataset``, a ``MetaStore``, its path or address, records of
            tasks, the name of a bundled one, or ``"auto"``: the bundled one of the learner that
            is recognised by the names of the parameters, see ``AutoSampler``.
        n_startup_trials: Trials that fill the space before the sources are used; None is 0.

    Raises:
        TypeError: For sources of the wrong type, or an unknown option.
        MemoryMismatch: For sources from which nothing can be learnt, or that share no parameter
            with ``search_space``.
        ValueError: For an argument outside its range.

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

        ``TwoStageTransfer.paper`` and ``automl_plugins.recipes.tst`` explain the remaining
        differences.
        """
        options["paper"] = True
        return cls(sources, **options)


@takes(recipes.pmf, SamplerOptions)
class PMFSampler(TransferSampler):
    """Probabilistic matrix factorisation (Fusi 2018): the sources' configurations, best first.

    A Gaussian-process latent variable model of configurations x tasks predicts this task's losses
    from those already observed. Only configurations of the sources are proposed; after them
    ``GBQRSampler`` continues.

    Args:
        sources: See ``TSTSampler``; they should share configurations.

    Raises:
        TypeError, ValueError: See ``TSTSampler``.

    Example::

        study = optuna.create_study(sampler=PMFSampler("lightgbm", seed=1))
        study.optimize(objective, n_trials=30)  # num_leaves, learning_rate, ...
    """

    def __init__(self, sources: AnySources, **options: Unpack[PMFOptions]) -> None:
        super().__init__(sources, recipes.pmf, options)

    @classmethod
    @preset
    def paper(cls, sources: AnySources, **options: Unpack[PMFOptions]) -> Self:
        """The authors' start and model; ``automl_plugins.recipes.pmf`` lists the differences.

        Maximise balanced accuracy, rescaled so that chance level is 0: the prior mean is 0.
        """
        options["paper"] = True
        return cls(sources, **options)


@takes(recipes.blended, SamplerOptions)
class BlendedSampler(TransferSampler):
    """Blended optimisation (thesis ch. 6): the sources decide first, GBQR more and more.

    The first trials are those that ``meta.diverse`` suggests; then a meta-learner and GBQR vote.

    Args:
        sources: See ``TSTSampler``.

    Raises:
        TypeError, ValueError: See ``TSTSampler``.

    Example::

        study = optuna.create_study(sampler=BlendedSampler("lightgbm", X=X, y=y, seed=1))
        study.optimize(objective, n_trials=30)  # num_leaves, learning_rate, ...
    """

    def __init__(self, sources: AnySources, **options: Unpack[BlendedOptions]) -> None:
        super().__init__(sources, recipes.blended, options)
