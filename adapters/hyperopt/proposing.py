"""Suggest functions for ``fmin`` that ask a proposer of the core.

``algorithm`` makes one of any recipe. What it keeps between calls, for each search space and set
of options, is a cache: a proposal depends on the trials, the seed and the number of the trial.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial, update_wrapper
from inspect import Parameter, Signature, signature
from typing import Any
from weakref import WeakKeyDictionary

from hyperopt import Domain, Trials

from automl_plugins import recipes
from automl_plugins.proposers.pending import ask
from automl_plugins.proposers.proposal import Proposal, Proposer, SurrogateFailure
from automl_plugins.records.history import History
from automl_plugins.streams import Streams

from ._documents import NOTE, Document, new_document
from ._history import TrialReader
from ._private import all_documents
from ._sources import in_space, opened, own_name
from .space import translate

logger = logging.getLogger(__name__)

PROPOSAL = "proposal"  # our key in the note of a document
_FACTS = ("loss", "bound", "seconds", "success")

#: ``algo(new_ids, domain, trials, seed)`` returns trial documents.
Suggest = Callable[..., Any]
Recipe = Callable[..., Proposer]


class Search:
    """A proposer on one search space.

    Args:
        name: Name of the algorithm.
        proposer: What proposes.
        reader: Reads trials of the space.
    """

    def __init__(self, name: str, proposer: Proposer, reader: TrialReader) -> None:
        self.name, self.proposer, self.reader = name, proposer, reader
        self._warned = False

    def suggest(
        self, new_ids: Sequence[int], domain: Domain, trials: Trials, streams: Streams
    ) -> list[Document]:
        """A document for each id; those before it count as running."""
        known = all_documents(trials)
        new: list[Document] = []
        for tid in new_ids:
            history = self.reader.read(trials, [*known, *new], timed=self.proposer.timed)
            proposal = self._propose(history, streams, tid)
            document = new_document(
                trials, domain, tid, self.reader.known.labels_of(proposal.vector)
            )
            document["misc"][NOTE] = {PROPOSAL: self._note(proposal, streams)}
            new.append(document)
        return new

    def _propose(self, history: History, streams: Streams, tid: int) -> Proposal:
        space = self.reader.vectors
        rng = streams.generator("fallback", tid)
        if not space.d:
            return Proposal(space.sample(1, rng)[0], "random")
        try:
            return ask(self.proposer, space, history, streams, tid)
        except SurrogateFailure as failure:
            if not self._warned:
                self._warned = True
                logger.warning(f"{self.name}: {failure} Trial {tid} is drawn at random instead.")
            return Proposal(space.sample(1, rng)[0], "random")

    def _note(self, proposal: Proposal, streams: Streams) -> dict[str, Any]:
        """What drove the proposal, in builtins."""
        note: dict[str, Any] = {"algo": self.name, "seed": streams.seed, "origin": proposal.origin}
        for fact in _FACTS:
            if (value := getattr(proposal, fact)) is not None:
                note[fact] = float(value)
        if proposal.n_rows:
            note["n_rows"] = int(proposal.n_rows)
        if proposal.shares is not None:
            note["shares"] = {str(name): float(w) for name, w in proposal.shares.items()}
        return note


def algorithm(recipe: Recipe) -> Callable[[Callable[[], None]], Suggest]:
    """Decorator that makes a suggest function of a function without a body.

    The suggest function takes the options of the recipe by keyword, and ``seed``. Called with
    options only it returns one with these options, which are checked then; ``functools.partial``
    of it has them checked at the first proposal.

    Args:
        recipe: Returns the proposer; if it takes ``memory``, trials by name are one.
    """

    def decorator(described: Callable[[], None]) -> Suggest:
        name = described.__name__
        expected = _signature(recipe)
        searches: WeakKeyDictionary[Domain, dict[Any, tuple[Search, Any]]] = WeakKeyDictionary()

        def algo(*args: Any, **options: Any) -> Any:
            try:
                expected.bind(*(args or (None,) * 4), **options)
            except TypeError as error:
                allowed = [n for n, p in expected.parameters.items() if p.kind == p.KEYWORD_ONLY]
                raise TypeError(
                    f"{name}: {error}. Its options are {', '.join(allowed)}."
                ) from None
            own_seed = options.pop("seed", None)
            if not args:
                Streams(own_seed)
                options = opened(options)
                recipe(**in_space(options, None))
                return partial(algo, **options, **({} if own_seed is None else {"seed": own_seed}))
            new_ids, domain, trials, seed = args
            streams = Streams(int(seed) if own_seed is None else own_seed)
            own = own_name(options.get("memory"), trials)
            key = tuple(sorted((n, _identity(value)) for n, value in options.items())), own
            known = searches.setdefault(domain, {})
            if key not in known:
                reader = TrialReader(translate(domain.expr))
                proposer = recipe(**in_space(options, reader.known, own))
                known[key] = Search(name, proposer, reader), options  # keeps identities unique
            return known[key][0].suggest(new_ids, domain, trials, streams)

        update_wrapper(algo, described)
        del algo.__wrapped__  # type: ignore[attr-defined]  # its signature is not this one's
        algo.__signature__ = expected  # type: ignore[attr-defined]
        return algo

    return decorator


def _signature(recipe: Recipe) -> Signature:
    """Of the suggest function: what ``fmin`` passes, and the options by keyword."""
    passed = [
        Parameter(name, Parameter.POSITIONAL_ONLY)
        for name in ("new_ids", "domain", "trials", "seed_of_call")
    ]
    own = signature(recipe).parameters
    options = [p for p in own.values() if p.kind != p.VAR_KEYWORD]
    if len(options) < len(own):  # it takes the shared ones too
        shared = signature(recipes.make_proposer).parameters
        options += [shared[name] for name in recipes.Options.__annotations__]
    options.append(Parameter("seed", Parameter.KEYWORD_ONLY, default=None))
    return Signature([*passed, *(p.replace(kind=Parameter.KEYWORD_ONLY) for p in options)])


def _identity(value: Any) -> tuple[str, Any]:
    if value is None or isinstance(value, str | int | float):
        return type(value).__name__, repr(value)
    return "object", str(id(value))


def explanation(document: Mapping[str, Any]) -> dict[str, Any]:
    """What drove a proposal, empty for one that is not of these algorithms."""
    note: dict[str, Any] = document["misc"].get(NOTE, {}).get(PROPOSAL, {})
    return note
