"""Suggest functions for ``fmin`` that ask a proposer of the core.

What one keeps between calls, for each search space and set of options, is a cache: a proposal
depends on the trials, the seed and the number of the trial.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any, ParamSpec
from weakref import WeakKeyDictionary

from hyperopt import Domain, Trials

from automl_plugins import recipes
from automl_plugins.proposers.pending import ask
from automl_plugins.proposers.proposal import Proposal, Proposer, SurrogateFailure
from automl_plugins.recipes.without_memory import Options
from automl_plugins.records.history import History
from automl_plugins.streams import Streams

from ._private import all_documents
from ._sources import in_space, opened, own_name
from ._suggest import Algorithm
from .space import translate
from .trials import NOTE, PROPOSAL, Document, TrialReader, new_document

logger = logging.getLogger(__name__)

P = ParamSpec("P")


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
            note = {"algo": self.name, "seed": streams.seed, **proposal.to_dict()}
            document["misc"][NOTE] = {PROPOSAL: note}
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


class ProposerAlgorithm(Algorithm[P]):
    """The suggest function of a recipe.

    Args:
        recipe: Returns the proposer; if it takes ``memory``, trials by name are one. Where the
            core has a recipe of its name, the options are shown as there.
    """

    described: Callable[P, Proposer]

    def __init__(self, recipe: Callable[P, Proposer]) -> None:
        super().__init__(recipe)
        self._searches: WeakKeyDictionary[Domain, dict[Any, tuple[Search, Any]]] = (
            WeakKeyDictionary()
        )

    def parameters(self) -> Sequence[Parameter]:
        """The options, but for ``seed``."""
        recipe = getattr(recipes, self.name, self.described)
        own = [p for p in signature(recipe).parameters.values() if p.kind != p.VAR_KEYWORD]
        shared = signature(recipes.make_proposer).parameters
        if recipe is not self.described:  # whose shared options are behind ``**options``
            own += [shared[name] for name in Options.__annotations__]
        return own

    def checked(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options with an opened memory; the recipe raises for illegal ones."""
        options = opened(options)
        self._proposer(in_space(options, None))
        return options

    def suggest(
        self,
        new_ids: Sequence[int],
        domain: Domain,
        trials: Trials,
        streams: Streams,
        options: Mapping[str, Any],
    ) -> list[Document]:
        """A document for each new id."""
        own = own_name(options.get("memory"), trials)
        key = tuple(sorted((n, _identity(value)) for n, value in options.items())), own
        known = self._searches.setdefault(domain, {})
        if key not in known:
            reader = TrialReader(translate(domain.expr))
            proposer = self._proposer(in_space(options, reader.known, own))
            known[key] = Search(self.name, proposer, reader), options  # keeps identities unique
        return known[key][0].suggest(new_ids, domain, trials, streams)

    def _proposer(self, options: Mapping[str, Any]) -> Proposer:
        recipe: Callable[..., Proposer] = self.described
        return recipe(**options)


def _identity(value: Any) -> tuple[str, Any]:
    if value is None or isinstance(value, str | int | float):
        return type(value).__name__, repr(value)
    return "object", str(id(value))
