"""Any proposer of the core as a config selector of SMAC."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ConfigSpace import Configuration
from smac import Scenario
from smac.callback import Callback
from smac.facade.abstract_facade import AbstractFacade
from smac.main.smbo import SMBO
from smac.random_design import AbstractRandomDesign
from smac.runhistory import RunHistory, TrialInfo, TrialValue

from automl_plugins._arguments import check_integer, check_kind
from automl_plugins.arrays import FloatArray
from automl_plugins.proposers.explanation import Explanation, Parts, read_parts
from automl_plugins.proposers.proposal import Asker, Proposal, Proposer, propose_randomly
from automl_plugins.proposers.with_memory import SuggestedStart, WithFallback, check_fits
from automl_plugins.records.history import History
from automl_plugins.spaces.values import as_configuration
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

from ._private import Selector
from .continuing import SUGGESTED, describe
from .rows import Rows
from .trials import adopt, canonical, check_one_objective, read_note, write_note

_logger = logging.getLogger("smac.automl_plugins")

_NOTE = "proposal"  # our key in ``additional_info``
_DEFAULT = "Initial Design: Default"  # begins SMAC's origin of the default
_RANDOM = 0.2  # share of random ones in a scenario with budgets, as in SMAC's own facade


class ProposerConfigSelector(Selector):
    """Asks a proposer for each configuration, for ``config_selector=`` of any facade.

    The configurations of the facade's initial design come first, then the proposals. The
    proposer sees the run history itself: failures as failures whatever their crash cost, the
    seconds of every trial, and configurations that are running, or were passed to the intensifier
    and are not in the run history yet. So use ``GBQRFacade``, whose initial design is empty; the
    model, acquisition function, maximizer, encoder and random design of another facade are not
    used.

    A proposal depends only on the seed, the number of configurations so far and the run history:
    a resumed run continues as if it had never stopped, except that a ``random_design``, and SMAC's
    order of several instances or seeds, are drawn anew. Trials that were interrupted stay running
    ones, except in ``optimize`` of ``GBQRFacade`` and ``AutoFacade``; with ask and tell,
    ``runhistory.get_running_trials()`` has those to evaluate or to tell. Seeds and instances are
    averaged, see ``automl_plugins.adapters.smac.rows``. If the proposer's model fails, a random
    configuration is taken, with one warning in SMAC's log. The search ends when the space is
    exhausted; SMAC waits for running trials.

    Args:
        scenario: The scenario, with one objective.
        proposer: Such as ``automl_plugins.recipes.gbqr()`` or ``tst(memory, task=...)``.
        min_trials: The losses are the costs at the highest budget that so many configurations have
            finished; None takes one more than the largest number of active hyperparameters.
        random_design: Decides when a random configuration is taken instead. None: never; but in a
            scenario with budgets every fifth one on average, after the memory's suggestions, as
            in SMAC's ``MultiFidelityFacade``, because a bracket of similar configurations has
            little to choose from.
        seed: Non-negative integer; None takes the scenario's.

    Raises:
        TypeError: For a proposer without ``propose``.
        MemoryMismatch: For a proposer whose memory shares nothing with the search space.
        ValueError: For several objectives, or an argument outside its range.

    Example::

        selector = ProposerConfigSelector(scenario, tst("lightgbm", task="iris"))
        smac = GBQRFacade(scenario, train, config_selector=selector)
        best = smac.optimize()
        print(selector.explain(best).shares)
    """

    def __init__(
        self,
        scenario: Scenario,
        proposer: Proposer,
        *,
        min_trials: int | None = None,
        random_design: AbstractRandomDesign | None = None,
        seed: int | None = None,
    ) -> None:
        check_one_objective(type(self).__name__, scenario)
        if isinstance(proposer, type) or not callable(getattr(proposer, "propose", None)):
            raise TypeError(
                "proposer must be one of the core, such as automl_plugins.recipes.gbqr(),"
                f" got {proposer!r}."
            )
        check_integer("min_trials", min_trials, 1, optional=True)
        check_part("random_design", random_design, AbstractRandomDesign)
        self.space = VectorSpace(scenario.configspace)
        enough = 1 + self.space.depth if min_trials is None else min_trials
        super().__init__(scenario, retrain_after=1, min_trials=enough)
        n_suggested = 0
        if isinstance(proposer, WithFallback):
            if proposer.memory.logger.name.startswith("automl_plugins"):
                proposer.memory.logger = _logger  # hidden together with SMAC's log
            check_fits(proposer.memory, self.space)
            if isinstance(proposer.proposer, SuggestedStart):
                # Suggestions are counted like all others: random ones would take their places.
                n_suggested = proposer.proposer.n_suggested
        self.proposer = proposer
        self._asker = Asker(proposer, _logger)
        self.random_design = random_design
        has_budgets = scenario.min_budget is not None and scenario.max_budget is not None
        self._random_from = n_suggested if has_budgets else math.inf
        self._streams = Streams(scenario.seed if seed is None else seed)
        self._rows = Rows(scenario.configspace, enough)
        self._waiting: dict[int, Configuration] = {}  # yielded, not in the run history yet
        self._proposals: dict[int, Proposal] = {}
        self._proposed_for: RunHistory | None = None  # of ``_proposals``

    @property
    def meta(self) -> dict[str, Any]:
        """What SMAC stores of the selector: only one with equal ``meta`` continues a run."""
        design = self.random_design
        return {
            "name": type(self).__name__,
            "proposer": describe(self.proposer),
            "min_trials": self._rows.min_trials,
            "random_design": None if design is None else design.meta,
            "seed": self._streams.seed,
        }

    def __iter__(self) -> Iterator[Configuration]:
        """Yield configurations, each once, until the space is exhausted."""
        # Forget those of an earlier facade, or lost by an intensifier when it was interrupted.
        self._waiting = {}
        if self._proposed_for is not self.runhistory:
            self._proposed_for, self._proposals = self.runhistory, {}
        for config in self.initial_configurations:
            if self._key(config) not in self._known() | self._waiting.keys():
                self.begin()
                # Canonical, so that the run history gives equal configurations one number.
                again = adopt(config, self.space.space)
                yield self._give(again, config.origin or "Initial design")
        while True:
            self.begin()
            proposal = self._next()
            if proposal is None:
                message = "All configurations were proposed: the search ends."
                if n := len(self._waiting):
                    message += (
                        f" {n} of them were never evaluated: the intensifier starts a bracket only"
                        " when it is full. Use smaller brackets, or another intensifier."
                    )
                _logger.warning(message)
                return
            config = as_configuration(self.space.space, proposal.vector)
            # ConfigSpace rounds values, so the vector is computed from them again.
            proposal = replace(proposal, vector=canonical(config))
            self._proposals[self._key(config)] = proposal
            yield self._give(config, f"Proposer: {proposal.origin}")

    def history(self) -> History:
        """The proposer's next input: the run history and the configurations not in it yet."""
        known = self._known()
        self._waiting = {k: config for k, config in self._waiting.items() if k not in known}
        return self._rows.read(self.runhistory, list(self._waiting.values()))

    def explain(self, config: Configuration) -> Explanation:
        """Why a configuration was tried: predictions, and the shares of earlier tasks.

        It is read from the notes of its trials, so it is also known after a run is resumed, except
        of a configuration that Hyperband held but had not begun.

        Raises:
            TypeError: For anything but a configuration.
            ValueError: For a configuration that is not one of this run.
        """
        allowed = "a configuration, such as what optimize() of the facade returns"
        check_kind("explain", config, Configuration, allowed)
        key, known = self._key(config), self.runhistory.ids_config
        number = next((n for n, other in known.items() if self._key(other) == key), None)
        if number is None:
            if key not in self._proposals | self._waiting:
                raise ValueError(
                    f"The configuration is not among the {len(known)} of this run: {dict(config)}."
                )
            number = len(known) + 1
        config = known.get(number, config)  # the run's own, whose origin is known
        values = (v for k, v in self.runhistory.items() if k.config_id == number)
        stored = next(filter(None, map(_read_note, values)), None)
        if (proposal := self._proposals.get(key)) is not None:
            stored = proposal.to_dict()
        return Explanation.from_proposal(number, stored, origin=_origin_of(config))

    def proposal_of(self, config: Configuration) -> Proposal | None:
        """The proposal of a configuration since the facade was made; None if there is none."""
        return self._proposals.get(self._key(config))

    def _next(self) -> Proposal | None:
        """The next proposal; None when there is nothing new."""
        history, design = self.history(), self.random_design
        k = len(history)
        is_random = False
        if design is not None:
            design.next_iteration()
            is_random = design.check(k)
        elif k >= self._random_from:
            is_random = self._streams.generator("interleave", k).random() < _RANDOM
        if not is_random:
            proposal = self._asker.ask(self.space, history, self._streams, k)
            if self._is_new(proposal.vector, history):
                return proposal
        drawn = propose_randomly(self.space, history, k, self._streams.generator("random", k))
        return next((found for found in drawn if self._is_new(found.vector, history)), None)

    def _is_new(self, vector: FloatArray, history: History) -> bool:
        """Whether the values of a vector, which ConfigSpace rounds, have not been tried."""
        key = self._key(as_configuration(self.space.space, vector))
        return key not in self.space.keys(history.vectors).tolist()

    def _give(self, config: Configuration, origin: str) -> Configuration:
        config.origin = origin
        self._waiting[self._key(config)] = config
        self.end(config)
        return config

    def _known(self) -> set[int]:
        """Keys of the configurations in the run history."""
        return set(self.space.keys(self._rows.vectors(self.runhistory)).tolist())

    def _key(self, config: Configuration) -> int:
        return int(self.space.keys(canonical(config, self.space.space)[None])[0])


def check_part(name: str, part: Any, kind: type) -> None:
    """Raise TypeError unless a part is an instance of SMAC's class ``kind``, or None."""
    if not isinstance(part, kind | None):
        raise TypeError(
            f"{name} must be one of SMAC's, got {part!r}: give an instance of {kind.__name__},"
            f" such as get_{name}(scenario) of a facade returns."
        )


class ExplainCallback(Callback):
    """Writes why each configuration was proposed into ``additional_info`` of its trials.

    ``GBQRFacade`` adds it by itself; pass it to another facade together with the selector.

    Args:
        selector: The selector that proposes.

    Raises:
        TypeError: For anything but a ``ProposerConfigSelector``.

    Example::

        selector = ProposerConfigSelector(scenario, tst("lightgbm", task="iris"))
        HyperparameterOptimizationFacade(
            scenario, train, config_selector=selector, callbacks=[ExplainCallback(selector)]
        )
    """

    def __init__(self, selector: ProposerConfigSelector) -> None:
        allowed = "the ProposerConfigSelector of the facade"
        check_kind(type(self).__name__, selector, ProposerConfigSelector, allowed)
        super().__init__()
        self.selector = selector

    def on_tell_start(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> bool | None:
        """Add the note, unless its key is in use.

        Raises:
            ValueError: For a configuration that is not one of the search space.
        """
        proposal = self.selector.proposal_of(info.config)
        if proposal is not None and not read_note(value, _NOTE):
            write_note(value, _NOTE, proposal.to_dict())
        return None


def member_trust(source: RunHistory | AbstractFacade) -> dict[int, dict[str, float]]:
    """How much each member of the committee was trusted when each configuration was proposed.

    Args:
        source: A run history or facade, of a search by ``AutoFacade``.

    Returns:
        By number of the configuration, probabilities by name of the member; configurations for
        which no member was drawn are absent.

    Raises:
        TypeError: For anything but a run history or facade.
    """
    return _read_parts("member_trust", source, "trust")


def source_shares(source: RunHistory | AbstractFacade) -> dict[int, dict[str, float]]:
    """Share of each earlier task in the proposal of each configuration.

    Args:
        source: A run history or facade, of a search that learns from earlier tasks.

    Returns:
        By number of the configuration, shares by name of the earlier task; the rest to 1 is the
        search's own. Configurations that no such method proposed are absent.

    Raises:
        TypeError: For anything but a run history or facade.
    """
    return _read_parts("source_shares", source, "shares")


def _read_parts(
    function: str, source: RunHistory | AbstractFacade, which: Parts
) -> dict[int, dict[str, float]]:
    allowed = "a run history or a facade, such as the one whose optimize() was called"
    check_kind(function, source, RunHistory | AbstractFacade, allowed)
    history = source.runhistory if isinstance(source, AbstractFacade) else source
    stored = ((key.config_id, _read_note(value)) for key, value in history.items())
    return {n: parts for n, note in stored if (parts := read_parts(note, which)) is not None}


def _origin_of(config: Configuration) -> str:
    """Why a configuration without a note was tried, as a name of ``ORIGINS``."""
    origin = config.origin or ""
    if origin.startswith("Proposer: "):  # its trial was interrupted, so it has no note
        return origin.removeprefix("Proposer: ")
    if origin == "Initial design":  # SMAC writes that on ``additional_configs``
        return "enqueued"
    if not origin.startswith("Initial") or origin.startswith(_DEFAULT):
        return "foreign"
    return "suggested" if origin.endswith(SUGGESTED) else "design"


def _read_note(value: TrialValue) -> Mapping[str, Any] | None:
    """The note of ``ExplainCallback`` on a trial; None if absent, or the user's own."""
    note = read_note(value, _NOTE)
    return note if "origin" in note else None
