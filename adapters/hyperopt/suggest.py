"""Suggest functions for ``fmin``: how they take options, and what they get inside an arm.

Options may also be given by a call, ``gbqr(alpha=0.2)``. Inside an arm, a suggest function gets a
domain and trials in the arm's own values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from inspect import Parameter, Signature, signature
from operator import is_
from typing import Any, Generic, ParamSpec, Self, overload
from weakref import WeakKeyDictionary, ref

from hyperopt import Domain, Trials

from automl_plugins._arguments import describe, document_arguments, hint_of_seed, refuse_foreign
from automl_plugins.streams import Streams

from ._private import replace_documents
from ._pyll import active_among
from .space import PyllSpace
from .trials import Document

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
_NAMED = ("new_ids", "domain", "trials", "seed")  # the same as ``tpe.suggest`` names them


def _by_position(args: tuple[Any, ...], given: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of ``fmin`` by position; those that ``mix`` passes by name leave ``given``."""
    named = [name for name in _NAMED[len(args) :] if name in given]
    if len(args) + len(named) < len(_NAMED):  # a call with options only
        return args
    return (*args, *map(given.pop, named))


class _WithOptions(partial[Any]):
    """A suggest function with options; its ``seed`` wins over the one that ``mix`` passes."""

    def __call__(self, /, *args: Any, **keywords: Any) -> Any:
        return super().__call__(*_by_position(args, keywords), **keywords)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={describe(value)}" for name, value in self.keywords.items())
        return f"<suggest function {self.func.__name__}({shown})>"


class Algorithm(Generic[P]):
    """The suggest function of a method, whose options are the arguments of its class.

    Called with options only, it checks them and returns a suggest function with these options;
    options given by ``functools.partial`` are checked at the first trial. The option ``seed``
    replaces the seed that ``fmin`` draws from ``rstate``.

    Args:
        described: The class, whose name (in small letters) and documentation are taken; options
            that it does not document are documented by the ``owners``. Its objects have
            ``suggest(new_ids, domain, trials, streams)``.
    """

    def __init__(self, described: Callable[P, Any]) -> None:
        self.described: Callable[..., Any] = described
        self.__module__ = described.__module__  # where pickle looks for the name in ``__reduce__``
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
        """The seed of a call without the option; ``drawn`` is the seed that ``fmin`` passes."""
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
            *args: What ``fmin`` passes; by keyword with the names that ``tpe.suggest`` has.
            seed: Seed of the proposals; None takes what ``fmin`` draws from ``rstate``. Algorithms
                that fit models keep the seed that it drew for their first trial.
            **options: Options of the algorithm.
        """
        args = _by_position(args, options)
        if args and not any(isinstance(argument, Domain) for argument in args):
            example = next((p.name for p in self.parameters()), "seed")
            raise TypeError(
                f"{self.name} takes its options by keyword, as in"
                f" algo={self.name}({example}={describe(args[0])}): its options are"
                f" {', '.join(self._options)}.{hint_of_seed(args[0])}"
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


# --- inside an arm --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Place:
    """Where an arm lies in a search space.

    It refers to no domain: it is held by caches whose weak keys are domains, and would keep its
    own key alive.
    """

    known: PyllSpace  # the space that is divided into arms
    translate: Callable[[Mapping[str, Any]], dict[str, Any] | None]  # None: not of the arm
    outer: Place | None  # the place of ``known``, if that is an arm itself

    @property
    def whole(self) -> PyllSpace:
        """The outermost search space, which is the one of the trials."""
        return self.known if self.outer is None else self.outer.whole

    def inside(self, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """Translate values of the whole search space; None if they do not lie in the arm."""
        found = values if self.outer is None else self.outer.inside(values)
        if found is None:
            return None
        return self.translate(active_among(found, self.known.expr))


class ArmDomain(Domain):  # type: ignore[misc]
    """The domain of the suggest function inside an arm, without an objective."""

    def __init__(self, expr: Any, place: Place) -> None:
        super().__init__(None, expr, pass_expr_memo_ctrl=False)
        self.place = place


class View:
    """The trials of an arm, always as the same object; only changed ones are translated again."""

    def __init__(self, source: Trials) -> None:
        self.trials = Trials()
        self._shown: dict[int, tuple[tuple[Any, ...], Document]] = {}
        _SOURCES[self.trials] = ref(source)

    def show(
        self,
        documents: Iterable[Document],
        translate: Callable[[Document], Document],
    ) -> Trials:
        """Make the trials those of ``documents``, each translated, and return them."""
        shown = {}
        for document in documents:
            # Before the translation, in which a worker may change it; also keeps the ``id`` taken.
            parts = (document, *document.values(), *document["misc"].values())
            known = self._shown.get(id(document))
            if known is None or len(known[0]) != len(parts) or not all(map(is_, known[0], parts)):
                known = parts, translate(document)
            shown[id(document)] = known
        self._shown = shown
        replace_documents(self.trials, [own for _, own in shown.values()])
        return self.trials


#: The source of each view. Weak on both sides: views are cached by their source, and a view that
#: held its source would keep both in that cache for ever.
_SOURCES: WeakKeyDictionary[Trials, ref[Trials]] = WeakKeyDictionary()


def source_of_view(trials: Trials) -> Trials:
    """The trials that ``fmin`` was given, if ``trials`` is a view of them; else ``trials``."""
    while (source := _SOURCES.get(trials)) is not None and (found := source()) is not None:
        trials = found
    return trials
