"""Suggest functions for ``fmin`` that also take their options by a call: ``gbqr(alpha=0.2)``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial, update_wrapper
from inspect import Parameter, Signature, signature
from typing import Any, Generic, ParamSpec, overload

from hyperopt import Domain, Trials

from automl_plugins.streams import Streams

from .trials import Document

#: ``algo(new_ids, domain, trials, seed)`` returns trial documents.
Suggest = Callable[..., list[Document]]
P = ParamSpec("P")

_PASSED = ("new_ids", "domain", "trials", "seed_of_call")  # what fmin passes


class Algorithm(ABC, Generic[P]):
    """A suggest function with options.

    Called with options only it returns a suggest function that has them, and they are checked
    then; those of ``functools.partial`` are checked at the first trial. The option ``seed``
    replaces what ``fmin`` draws from ``rstate``.

    Args:
        described: A function with the options by keyword, whose name and documentation are taken.
    """

    def __init__(self, described: Callable[P, Any]) -> None:
        self.described = described
        self.name = described.__name__
        update_wrapper(self, described)
        del self.__dict__["__wrapped__"]  # its signature is not this one's

    @abstractmethod
    def checked(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options, opened where that is done once; raises for illegal ones."""

    @abstractmethod
    def suggest(
        self,
        new_ids: Sequence[int],
        domain: Domain,
        trials: Trials,
        streams: Streams,
        options: Mapping[str, Any],
    ) -> list[Document]:
        """A document for each new id."""

    def parameters(self) -> Sequence[Parameter]:
        """The options, but for ``seed``."""
        return [p for p in signature(self.described).parameters.values() if p.name != "seed"]

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
        self._check_names(args, options)
        seed = options.pop("seed", None)
        if args:
            new_ids, domain, trials, drawn = args
            streams = Streams(int(drawn) if seed is None else seed)
            return self.suggest(new_ids, domain, trials, streams, options)
        Streams(seed)
        options = self.checked(options)
        return partial(self, **options, **({} if seed is None else {"seed": seed}))

    def _check_names(self, args: Sequence[Any], options: Mapping[str, Any]) -> None:
        try:
            self.__signature__.bind(*(args or _PASSED), **options)
        except TypeError as error:
            known = self.__signature__.parameters.values()
            allowed = [p.name for p in known if p.kind == p.KEYWORD_ONLY]
            raise TypeError(
                f"{self.name}: {error}. Its options are {', '.join(allowed)}."
            ) from None

    def __reduce__(self) -> str:
        return self.name  # it is found by its name in its module

    def __repr__(self) -> str:
        return f"<suggest function {self.name}>"
