"""Suggest functions for ``fmin`` that also take their options by a call: ``gbqr(alpha=0.2)``.

Those of the recipes ask a proposer of the core. They cache one proposer for each search space and
set of options; a proposal depends only on the trials, the seed and the number of the trial. The
seed is the option, else that with which the search began: with another one at each trial, as
``fmin`` draws them, every model would have to be fitted anew each time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from inspect import Parameter, Signature, signature
from operator import itemgetter
from typing import Any, Generic, ParamSpec, Self, TypeGuard, overload
from weakref import WeakKeyDictionary

from hyperopt import Domain, Trials

from automl_plugins import recipes
from automl_plugins._arguments import describe, document_arguments, refuse_foreign
from automl_plugins.formats import format_count
from automl_plugins.frameworks import adapter_of
from automl_plugins.meta.coverage import MemoryMismatch
from automl_plugins.meta.memories import AUTO, TaskMemory
from automl_plugins.meta.recognition import task_memory
from automl_plugins.meta.sources import read_source
from automl_plugins.meta.tasks import describe_options
from automl_plugins.proposers.model_based import ProposerSettings
from automl_plugins.proposers.proposal import (
    Proposal,
    Proposer,
    SurrogateFailure,
    ask,
    propose_randomly,
)
from automl_plugins.recipes.without_memory import Options
from automl_plugins.records.history import History
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.spaces.values import to_values
from automl_plugins.streams import Streams

from ._private import all_documents
from ._views import ArmDomain, Place, source_of_view
from .space import PyllSpace, translate
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

#: ``algo(new_ids, domain, trials, seed)`` returns trial documents.
Suggest = Callable[..., list[Document]]
P = ParamSpec("P")

#: What options of Optuna's samplers and of ``tpe.suggest`` are called here.
_CALLED_HERE = {
    "n_startup_trials": "n_startup",
    "n_startup_jobs": "n_startup",
    "n_EI_candidates": "n_candidates",
    "cost": "per_second",
    "arm": "label",
    "n_trials": "max_evals",
    "seconds": "budget_seconds",
}

_PASSED = ("new_ids", "domain", "trials", "seed_of_call")  # arguments that ``fmin`` passes


class _WithOptions(partial[Any]):
    """A suggest function with options, among which ``seed`` wins over that of ``mix.suggest``."""

    def __call__(self, /, *args: Any, **keywords: Any) -> Any:
        if len(args) == 3 and "seed" in keywords:  # as ``hyperopt.mix`` calls it
            args = (*args, keywords.pop("seed"))
        return super().__call__(*args, **keywords)


class Algorithm(Generic[P]):
    """The suggest function of a method, whose options are the arguments of its class.

    Called with options only, it checks them and returns a suggest function with these options;
    those of ``functools.partial`` are checked at the first trial. The option ``seed`` replaces
    what ``fmin`` draws from ``rstate``.

    Args:
        described: The class, whose name (in small letters) and documentation are taken; options
            that it does not document are documented by the ``owners``. Its objects have
            ``suggest(new_ids, domain, trials, streams)``.
    """

    def __init__(self, described: Callable[P, Any]) -> None:
        self.described: Callable[..., Any] = described
        self.__module__ = described.__module__
        self.name = self.__name__ = self.__qualname__ = described.__name__.lower()

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Write docstrings when they are read: importing an algorithm imports no recipe."""
        super().__init_subclass__(**arguments)
        cls.__doc__ = property(cls.document)  # type: ignore[assignment]

    @property
    def suggest(self) -> Self:
        """The algorithm itself, for those who are used to ``tpe.suggest``."""
        return self

    def document(self) -> str | None:
        """The docstring of ``described``, with the documentation of every option."""
        return document_arguments({n: n for n in self._options}, self.described, *self.owners())

    def check_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options, with opened files; ``described`` raises for invalid ones."""
        self.described(**options)
        return options

    def propose(
        self,
        new_ids: Sequence[int],
        domain: Domain,
        trials: Trials,
        streams: Streams,
        options: Mapping[str, Any],
    ) -> list[Document]:
        """A document for each new id, or fewer if there is nothing left to propose."""
        documents: list[Document] = self.described(**options).suggest(
            new_ids, domain, trials, streams
        )
        return documents

    def seed_of(self, trials: Trials, drawn: int) -> int:
        """The seed of a call without the option; ``drawn`` is that which ``fmin`` passes."""
        return drawn

    def parameters(self) -> Sequence[Parameter]:
        """The options without ``seed``."""
        return [p for p in signature(self.described).parameters.values() if p.name != "seed"]

    def owners(self) -> Sequence[Any]:
        """Objects whose docstrings document the options that ``described`` does not."""
        return [Algorithm.__call__]

    @cached_property
    def __signature__(self) -> Signature:
        passed = [Parameter(name, Parameter.POSITIONAL_ONLY) for name in _PASSED]
        options = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in self.parameters()]
        seed = Parameter("seed", Parameter.KEYWORD_ONLY, default=None)
        return Signature([*passed, *options, seed])

    @overload
    def __call__(self, *args: P.args, **options: P.kwargs) -> Suggest: ...

    @overload
    def __call__(
        self, new_ids: Sequence[int], domain: Domain, trials: Trials, seed: int, /, **options: Any
    ) -> list[Document]: ...

    def __call__(self, /, *args: Any, **options: Any) -> Any:  # type: ignore[misc]
        """Called by ``fmin``, return documents; called with options only, a suggest function.

        Args:
            *args: What ``fmin`` passes; ``hyperopt.mix`` passes the last as the keyword ``seed``.
            seed: Seed of the proposals; None takes what ``fmin`` draws from ``rstate``. Algorithms
                that fit models keep what it drew for their first trial.
            **options: Options of the algorithm.
        """
        if len(args) == 3 and "seed" in options:
            args = (*args, options.pop("seed"))
        if args and not any(isinstance(argument, Domain) for argument in args):
            example = next((p.name for p in self.parameters()), "seed")
            raise TypeError(
                f"{self.name} takes its options by keyword, as in"
                f" algo={self.name}({example}={describe(args[0])}): its options are"
                f" {', '.join(self._options)}."
            )
        here = {o: f"here it is {n}=" for o, n in _CALLED_HERE.items() if n in self._options}
        refuse_foreign(self.name, options, self._options, here)
        try:
            # Their names stand for the arguments that ``fmin`` will pass.
            self.__signature__.bind(*(args or _PASSED), **options)
        except TypeError as error:
            raise TypeError(
                f"{self.name}: {error}. Its options are {', '.join(self._options)}."
            ) from None
        seed = options.pop("seed", None)
        if args:
            new_ids, domain, trials, drawn = args
            streams = Streams(self.seed_of(trials, int(drawn)) if seed is None else seed)
            return self.propose(new_ids, domain, trials, streams, options)
        Streams(seed)  # refuses a bad seed now, not at the first trial
        options = self.check_options(options)
        return _WithOptions(self, **options, **({} if seed is None else {"seed": seed}))

    @cached_property
    def _options(self) -> list[str]:
        return [*(p.name for p in self.parameters()), "seed"]

    def __reduce__(self) -> str:
        return self.name  # pickled as the name of a global of its module

    def __repr__(self) -> str:
        return f"<suggest function {self.name}>"


Algorithm.__init_subclass__()  # for its own algorithms too


# --- proposers of the core -------------------------------------------------------------------


@dataclass(eq=False)
class _Search:
    """A proposer on one search space; keeps its options alive, for their ``id``s are its key."""

    proposer: Proposer
    reader: TrialReader
    options: Mapping[str, Any]
    warned: bool = False


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
                if type(seed) is int and seed >= 0:
                    return seed
        return drawn

    def check_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """See the base class; a memory is opened, and data become meta-features."""
        if options.get("memory") is None:  # the recipe raises if it needs one
            checked = super().check_options(options)
            # The recipe has warned that it does not use them: it would again in ``fmin``.
            unused = {"X", "y", "meta_features"} if "memory" in options else ()
            return {n: v for n, v in checked.items() if n not in unused}
        options, task = describe_options(options), options.get("task")
        options["memory"] = _read_others(options["memory"])
        if (named := _trials_by_name(options["memory"])) is None:
            options["memory"] = task_memory(options["memory"], task=task)
            return super().check_options(options)
        if not set(named) - {task}:
            raise MemoryMismatch("memory has no trials of another task: nothing to learn from.")
        # They can only be read once the space is known.
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
        own = next((name for name, source in named.items() if source is searched), None)
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
            proposal = self._propose(search, history, streams, unique_number(tid, known_now))
            (found,) = to_values(search.reader.known.space, proposal.vector[None])
            values = search.reader.known.labels(found)
            note = {"algo": self.name, "seed": streams.seed, **proposal.to_dict()}
            new.append(new_document(trials, domain, tid, values))
            new[-1]["misc"][NOTE] = {PROPOSAL: note}
        return new

    def _propose(self, search: _Search, history: History, streams: Streams, tid: int) -> Proposal:
        space = search.reader.vectors
        if space.d:
            try:
                return ask(search.proposer, space, history, streams, tid)
            except SurrogateFailure as failure:
                if not search.warned:
                    search.warned = True
                    logger.warning(
                        f"{self.name}: {failure} Trial {tid} is drawn at random instead."
                    )
        return next(propose_randomly(space, history, tid, streams.generator("fallback", tid)))

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
            given["memory"] = TaskMemory(earlier, task=options.get("task"), filling=True)
        return _Search(self.described(**given), reader, options)


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
        trials: The trials, and records of searches of other frameworks among them.
        known: The search space; in an arm it is the arm.
        place: Where the arm lies in the space of the trials, of which it gets its own.
    """

    trials: Mapping[str, Trials | TaskRecord]
    known: PyllSpace
    place: Place | None = None

    def records(self) -> list[TaskRecord]:
        """The trials that are of the search space; MemoryMismatch if all are of another one."""
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
        """Values by name; None in another arm; ValueError for those of another search space."""
        whole = self.known if self.place is None else self.place.whole
        drawn = values_of(document)
        # Labels that the space does not have are ignored, unless a trial has no others.
        shared = {label: v for label, v in drawn.items() if label in whole.space}
        config = whole.values(shared or drawn)
        if self.place is None:
            return config
        inside = self.place.inside(shared)
        return None if inside is None else self.known.values(inside)


def _trials_by_name(memory: Any) -> Mapping[str, Any] | None:
    """``memory`` if there are trials by name in it, else None; TypeError for those without one."""
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
    """Sources by name, all read but trials, whose space ``fmin`` tells; else as they are."""
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
                f"memory[{name!r}] must be hyperopt.Trials, got {source!r}. Searches of Optuna and"
                " SMAC and records of tasks are taken, too."
            )
    return read


def _is_by_name(memory: Any) -> TypeGuard[Mapping[Any, Any]]:
    # A run history of SMAC is a mapping, too.
    return isinstance(memory, Mapping) and adapter_of(memory) is None
