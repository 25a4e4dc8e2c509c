"""Suggest functions that ask a proposer of the core, and the memories that they take.

They cache one proposer for each search space and set of options; a proposal depends only on the
trials, the seed and the number of the trial. The seed is the option ``seed``, else the seed that
``fmin`` drew for the algorithm's first trial: with a new one at each trial, as ``fmin`` draws
them, every model would have to be fitted anew each time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter, signature
from operator import itemgetter
from typing import Any, TypeGuard
from weakref import WeakKeyDictionary

from hyperopt import Domain, Trials

from automl_plugins import recipes
from automl_plugins._arguments import describe
from automl_plugins.formats import format_count
from automl_plugins.frameworks import adapter_of
from automl_plugins.meta.coverage import MemoryMismatch
from automl_plugins.meta.memories import TaskMemory
from automl_plugins.meta.recognition import task_memory
from automl_plugins.meta.sources import AUTO, read_source
from automl_plugins.meta.tasks import describe_options
from automl_plugins.proposers.model_based import ProposerSettings
from automl_plugins.proposers.proposal import Asker, Proposer
from automl_plugins.recipes.without_memory import Options
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.spaces.values import to_values
from automl_plugins.streams import Streams

from ._private import all_documents
from .space import SearchSpace, translate
from .suggest import Algorithm, ArmDomain, P, Place, source_of_view
from .trials import (
    NOTE,
    PROPOSAL,
    Document,
    TrialReader,
    finished_documents,
    new_document,
    note_of,
    read_trial,
    unique_number,
    values_of,
)

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class _Search:
    """A proposer on one search space; keeps its options alive, for their ``id``s are its key."""

    asker: Asker
    reader: TrialReader
    options: Mapping[str, Any]


class ProposerAlgorithm(Algorithm[P]):
    """The suggest function of a recipe.

    Args:
        recipe: Returns the proposer; if it takes ``memory``, that may be trials by name. If the
            core has a recipe of this name, its signature and docstring describe the options.
    """

    described: Callable[..., Proposer]

    def __init__(self, recipe: Callable[P, Proposer]) -> None:
        super().__init__(recipe)
        self._searches: WeakKeyDictionary[Domain, dict[Any, _Search]] = WeakKeyDictionary()

    def parameters(self) -> Sequence[Parameter]:
        """See the base class."""
        recipe = getattr(recipes, self.name, self.described)
        own = [p for p in signature(recipe).parameters.values() if p.kind != p.VAR_KEYWORD]
        if recipe is not self.described:  # the core's recipes hide shared ones in ``**options``
            shared = signature(ProposerSettings).parameters
            own += [shared[name] for name in Options.__annotations__]
        return own

    def owners(self) -> Sequence[Any]:
        """See the base class."""
        recipe = getattr(recipes, self.name, self.described)
        return [recipe, ProposerSettings, *super().owners()]

    def seed_of(self, trials: Trials, drawn: int) -> int:
        """The seed of the first trial that this algorithm proposed, ``drawn`` if there is none."""
        for document in sorted(all_documents(trials), key=itemgetter("tid")):
            note = note_of(document).get(PROPOSAL)
            if isinstance(note, Mapping) and note.get("algo") == self.name:
                seed = note.get("seed")
                if type(seed) is int and seed >= 0:  # else somebody has edited the note
                    return seed
        return drawn

    def check_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """See the base class; a memory is opened, and data become meta-features."""
        if options.get("memory") is None:  # the recipe raises if it needs one
            checked = super().check_options(options)
            # The recipe has warned that it does not use them, and would warn again in ``fmin``.
            unused = {"X", "y", "meta_features"} if "memory" in options else ()
            return {n: v for n, v in checked.items() if n not in unused}
        options, task = describe_options(options), options.get("task")
        options["memory"] = _read_others(options["memory"])
        if (named := _trials_by_name(options["memory"])) is None:
            options["memory"] = task_memory(options["memory"], task=task)
            return super().check_options(options)
        if not set(named) - {task}:
            raise MemoryMismatch("memory has no trials of another task: nothing to learn from.")
        # The trials can only be read once the space is known.
        return super().check_options(options | {"memory": AUTO}) | {"memory": named}

    def propose(
        self,
        new_ids: Sequence[int],
        domain: Domain,
        trials: Trials,
        streams: Streams,
        options: Mapping[str, Any],
    ) -> list[Document]:
        """A document for each new id; earlier ones count as running."""
        named = _trials_by_name(options.get("memory")) or {}
        searched = source_of_view(trials)
        # ``fmin`` may continue trials that are in the memory, too.
        own = next((name for name, source in named.items() if source is searched), None)
        # With ``own``: the memory of a search leaves out its own trials.
        key = tuple(sorted((n, _identity(value)) for n, value in options.items())), own
        known = self._searches.setdefault(domain, {})
        if key not in known:
            known[key] = self._begin(domain, options, own)
        search = known[key]
        documents = all_documents(trials)
        new: list[Document] = []
        for tid in new_ids:
            known_now = [*documents, *new]
            history = search.reader.read(trials, known_now)
            number = unique_number(tid, known_now)
            proposal = search.asker.ask(search.reader.vectors, history, streams, number)
            (found,) = to_values(search.reader.known.space, proposal.vector[None])
            values = search.reader.known.labels(found)
            # The first two are for ``seed_of``.
            note = {"algo": self.name, "seed": streams.seed, **proposal.to_dict()}
            new.append(new_document(trials, domain, tid, values))
            new[-1]["misc"][NOTE] = {PROPOSAL: note}
        return new

    def _begin(self, domain: Domain, options: Mapping[str, Any], own: str | None) -> _Search:
        """A proposer on a search space, without the trials named ``own`` in its memory."""
        reader, given = TrialReader(translate(domain.expr)), dict(options)
        if (named := _trials_by_name(options.get("memory"))) is not None:
            if own is not None:
                logger.info(
                    f"The trials {own!r} of the memory are those of this search: left out."
                )
            place = domain.place if isinstance(domain, ArmDomain) else None
            others = {n: t for n, t in _read_others(named).items() if n != own}
            earlier = NamedTrials(others, reader.known, place)
            # Filling: if the trials have nothing to teach, there is a warning, and no error.
            given["memory"] = TaskMemory(earlier, task=options.get("task"), filling=True)
        return _Search(Asker(self.described(**given), logger), reader, options)


def _identity(value: Any) -> tuple[str, Any]:
    if value is None or isinstance(value, str | int | float):
        return type(value).__name__, repr(value)
    # Options may have no hash; ``_Search`` keeps them alive, so no other gets their ``id``.
    return "object", str(id(value))


# --- memories --------------------------------------------------------------------------------


@dataclass(frozen=True)
class NamedTrials:
    """Trials of earlier searches by name of their task, which are read as a store is.

    Attributes:
        trials: The trials; records of other frameworks may be among them.
        known: The search space; inside an arm the space of the arm.
        place: Where the arm lies in the space of the trials: only trials in the arm are read.
    """

    trials: Mapping[str, Trials | TaskRecord]
    known: SearchSpace
    place: Place | None = None

    def records(self) -> list[TaskRecord]:
        """Records of the trials that fit the search space; MemoryMismatch if none does."""
        found: list[TaskRecord] = []
        refused: list[ValueError] = []
        elsewhere = 0  # in other arms
        for name, trials in self.trials.items():
            if isinstance(trials, TaskRecord):
                found.append(trials)
                continue
            fitting = []
            for document in finished_documents(trials):
                try:
                    config = self._configuration(document)
                except ValueError as error:
                    refused.append(error)
                    continue
                if config is None:
                    elsewhere += 1
                else:
                    fitting.append(replace(read_trial(document), config=config))
            if fitting:
                space = self.known.space
                found.append(TaskRecord.of(name, fitting, space=space, framework="hyperopt"))
        if refused:
            message = (
                f"memory has {format_count(len(refused), 'trial')} of another search space, left"
                f" out. {refused[0]} Or pass memory=meta_dataset_from_trials(trials, {{name: the"
                " search space of these trials})."
            )
            if not (found or elsewhere):
                raise MemoryMismatch(message)
            logger.warning(message)
        return found

    def _configuration(self, document: Document) -> dict[str, Any] | None:
        """Values by name; None for a trial in another arm, ValueError for one of another space."""
        whole = self.known if self.place is None else self.place.whole
        drawn = values_of(document)
        # Labels that the space does not have are ignored, unless a trial has no others.
        shared = {label: v for label, v in drawn.items() if label in whole.space}
        config = whole.values(shared or drawn)
        if self.place is None:
            return config
        inside = self.place.inside(shared)
        return None if inside is None else self.known.values(inside)


def with_named_trials(memory: Any, known: SearchSpace) -> Any:
    """A memory, its trials by name read with a search space; any other memory as it is."""
    if not _trials_by_name(memory):
        return memory
    return NamedTrials(_read_others(memory), known).records()


def _trials_by_name(memory: Any) -> Mapping[str, Any] | None:
    """``memory`` if it has trials by name, else None; TypeError for trials without a name."""
    listed = memory if isinstance(memory, list | tuple) else [memory]
    if any(isinstance(trials, Trials) for trials in listed):
        raise TypeError(
            "Trials do not store what was tuned: pass memory={name of the task: its trials}."
        )
    if not _is_by_name(memory):
        return None
    of_trials = not memory or any(isinstance(source, Trials) for source in memory.values())
    return memory if of_trials else None


def _read_others(memory: Any) -> Any:
    """Read sources by name, except trials, whose space is unknown yet; else return ``memory``."""
    if not _is_by_name(memory) or all(isinstance(s, Trials) for s in memory.values()):
        return memory
    read: dict[str, Trials | TaskRecord] = {}
    for name, source in memory.items():
        if isinstance(source, Trials):
            read[name] = source
        elif (records := read_source(source, str(name))) is not None:
            (read[name],) = records
        else:
            raise TypeError(
                f"memory[{name!r}] must be hyperopt.Trials, got {describe(source)}. Searches of"
                " Optuna and SMAC and records of tasks are taken, too."
            )
    return read


def _is_by_name(memory: Any) -> TypeGuard[Mapping[Any, Any]]:
    # A run history of SMAC is a mapping, too.
    return isinstance(memory, Mapping) and adapter_of(memory) is None
