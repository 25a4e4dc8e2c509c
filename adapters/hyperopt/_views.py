"""What a suggest function inside an arm is given: a domain and trials, in the arm's own values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import is_
from typing import Any
from weakref import WeakKeyDictionary, ref

from hyperopt import Domain, Trials

from ._private import replace_documents
from ._pyll import active_among
from .space import PyllSpace
from .trials import Document


@dataclass(frozen=True, eq=False)
class Place:
    """Where an arm lies in a search space.

    It refers to no domain: caches hold it, and live as long as the domain that is their key.
    """

    known: PyllSpace  # what is divided into the arms
    translate: Callable[[Mapping[str, Any]], dict[str, Any] | None]  # None: not of the arm
    outer: Place | None  # of what is divided, if that is an arm itself

    @property
    def whole(self) -> PyllSpace:
        """The search space of which no arm is made: that of the trials."""
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
    """Trials of an arm; they are the same object, and a trial is translated when it changes."""

    def __init__(self, source: Trials) -> None:
        self.trials = Trials()
        self._shown: dict[int, tuple[tuple[Any, ...], Document]] = {}
        _SOURCES[self.trials] = ref(source)

    def show(
        self,
        documents: Iterable[Document],
        translate: Callable[[Document], Document],
    ) -> Trials:
        """The trials, which are those of the documents from now on."""
        shown = {}
        for document in documents:
            # First, for a worker may change it while it is translated; they keep the ``id`` alive.
            parts = (document, *document.values(), *document["misc"].values())
            known = self._shown.get(id(document))
            if known is None or len(known[0]) != len(parts) or not all(map(is_, known[0], parts)):
                known = parts, translate(document)
            shown[id(document)] = known
        self._shown = shown
        replace_documents(self.trials, [own for _, own in shown.values()])
        return self.trials


#: The trials of which others are a view. Weak on both sides, for views are cached by their source:
#: one that held it would keep it, and so itself, in the cache.
_SOURCES: WeakKeyDictionary[Trials, ref[Trials]] = WeakKeyDictionary()


def source_of_view(trials: Trials) -> Trials:
    """The trials that ``fmin`` was given, where these are a view of them; else these."""
    while (source := _SOURCES.get(trials)) is not None and (found := source()) is not None:
        trials = found
    return trials
