"""``TransferSampler``: a proposer with a memory, which each study sees without itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any, Self

from optuna.logging import get_logger
from optuna.study import Study

from automl_plugins.proposers.pending import ask
from automl_plugins.proposers.proposal import FloatArray, Proposal, Proposer
from automl_plugins.records.history import History

from . import _private
from ._cache import Cache
from ._options import TransferOptions, of_sampler
from ._sources import AnySources, read_sources
from ._task_memory import UnionMemory
from .proposer_sampler import ProposerSampler
from .space import UnionSpace

_logger = get_logger("optuna.automl_plugins")


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
        recipe: Makes the proposer, given the memory of a study.
        task: Name of the task of this search; its runs in the sources are left out.
        options: Those of all samplers.

    Raises:
        TypeError: For sources that are none, or an unknown option.
        MemoryMismatch: For sources of which nothing can be learnt, or that share no parameter with
            ``search_space``.
        ValueError: For an argument outside its range.
    """

    def __init__(
        self,
        sources: AnySources,
        recipe: Callable[[UnionMemory], Proposer],
        *,
        task: str | None,
        options: Mapping[str, Any],
    ) -> None:
        if foreign := sorted(options.keys() - TransferOptions.__annotations__):
            raise TypeError(
                f"{type(self).__name__} takes no argument {', '.join(foreign)}; it takes"
                f" {', '.join(_arguments(type(self)))}."
            )
        self._sources = read_sources(sources)
        self._recipe = recipe
        self._task = task
        self._sources.without(self._named(task))  # nothing to learn from fails here, not later
        whole = UnionMemory(self._sources, self._named(task))
        declared, foresight = options.get("search_space"), self._sources.foresight
        super().__init__(
            recipe(whole),
            foresight=foresight.expecting({}) if declared else foresight,
            **of_sampler(options),
        )
        if declared:
            self._check_declared(whole)
        self._adapted: Cache[tuple[int, int], Proposer] = Cache()

    @classmethod
    def _made(
        cls,
        sources: AnySources,
        recipe: Callable[[UnionMemory], Proposer],
        *,
        task: str | None,
        options: Mapping[str, Any],
    ) -> Self:
        """A sampler of this class with another recipe."""
        sampler = cls.__new__(cls)
        TransferSampler.__init__(sampler, sources, recipe, task=task, options=options)
        return sampler

    def _named(self, task: str | None) -> set[str]:
        return set() if task is None else {task}

    def _check_declared(self, whole: UnionMemory) -> None:
        """Raise a MemoryMismatch if nothing known lies in the declared search space."""
        assert self._foresight is not None
        rules = self._foresight.rules({}, self._search_space)
        union = UnionSpace(self._search_space, rules, self._ordinal)
        whole.on(union.vectors)

    @property
    def _model_name(self) -> str:
        return type(self).__name__.removesuffix("Sampler")

    # --- one study --------------------------------------------------------------------------

    def _ask(
        self, study: Study, union: UnionSpace, history: History, k: int, fixed: FloatArray
    ) -> Proposal:
        key = _private.study_key(study)[:2]
        proposer = self._adapted.of(key, lambda: self._adapt(_private.whole_study(study)))
        return ask(proposer, union.vectors, history, self._streams, k, fixed)

    def _adapt(self, study: Study) -> Proposer:
        """The proposer of a study."""
        exclude = self._sources.being(study) | self._named(self._task)
        if left_out := sorted(exclude & set(self._sources.names)):
            _logger.info(
                f"Study {study.study_name!r} is one of its own sources; what is known of"
                f" {', '.join(left_out)} is left out."
            )
        return self._recipe(UnionMemory(self._sources, exclude))


def _arguments(sampler: type) -> list[str]:
    """Names of all arguments of a sampler by keyword, its own first."""
    own = signature(sampler).parameters.values()
    named = [p.name for p in own if p.kind != p.VAR_KEYWORD]
    return [*named, *TransferOptions.__annotations__]
