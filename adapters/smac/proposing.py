"""Proposers of the core in SMAC: any one by ``ProposerConfigSelector``, two as facades."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from ConfigSpace import Configuration
from smac import HyperparameterOptimizationFacade, Scenario
from smac.acquisition.function import EI
from smac.acquisition.function.abstract_acquisition_function import AbstractAcquisitionFunction
from smac.callback import Callback
from smac.facade.abstract_facade import AbstractFacade
from smac.initial_design import RandomInitialDesign
from smac.main.config_selector import ConfigSelector
from smac.main.smbo import SMBO
from smac.model.multi_objective_model import MultiObjectiveModel
from smac.multi_objective.abstract_multi_objective_algorithm import (
    AbstractMultiObjectiveAlgorithm,
)
from smac.random_design import AbstractRandomDesign, ProbabilityRandomDesign
from smac.runhistory import RunHistory, TrialInfo, TrialValue

from automl_plugins.meta.memories import AlignedMemory, Memory
from automl_plugins.proposers.explanation import Explanation, read_trust
from automl_plugins.proposers.proposal import Proposal, Proposer, SurrogateFailure, ask
from automl_plugins.proposers.with_memory import WithFallback
from automl_plugins.recipes import auto, gbqr, gbqr_surrogate
from automl_plugins.recipes.auto import AutoOptions
from automl_plugins.recipes.without_memory import GBQROptions
from automl_plugins.records.history import History
from automl_plugins.spaces.values import as_configuration
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

from ._private import Selector
from .initial_design import SUGGESTED
from .model_parts import (
    CostAndSecondsEncoder,
    CostEncoder,
    EIPerSecond,
    QuantileBound,
    SurrogateModel,
    describe,
)
from .trials import Rows, canonical

_logger = logging.getLogger("smac.automl_plugins")

_NOTE = "proposal"  # our key in ``additional_info``
_POOL = 512  # random configurations among which one is new
_SMALL = 100_000  # configurations of a space that may be exhausted


class ProposerConfigSelector(Selector):
    """Asks a proposer for each configuration, for ``config_selector=`` of any facade.

    First come the configurations of the facade's initial design, then a proposal each. The
    proposer is shown the run history itself: failures as failures whatever their crash cost, the
    seconds of every trial, and configurations that are running, or were given to the intensifier
    and are not in the run history yet. So ``GBQRFacade``, whose initial design is empty, is the
    facade to use; the model, acquisition function, maximizer, encoder and random design of
    another facade are not asked.

    A proposal depends on the seed, the number of configurations so far and the run history alone:
    a run that is resumed continues as if it had never stopped, but for a ``random_design`` that
    draws anew. Seeds and instances of a configuration are averaged, see
    ``automl_plugins.adapters.smac.trials``; with budgets, the highest one with enough
    configurations counts. A proposer whose model fails is replaced by a random configuration,
    with one warning in SMAC's log. The search ends when the space is exhausted; SMAC waits for
    what is still running.

    Args:
        scenario: The scenario, of one objective.
        proposer: Such as ``automl_plugins.recipes.gbqr()`` or ``tst(memory, task=...)``.
        min_trials: Configurations that must have finished a budget before its costs are the
            losses; None takes one more than the hyperparameters that are active together.
        random_design: When to take a random configuration instead; None never does.
        seed: Non-negative integer; None takes the scenario's.

    Raises:
        TypeError: For a proposer without ``propose``.
        MemoryMismatch: For one whose memory shares nothing with the search space.
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
        if scenario.count_objectives() > 1:
            raise ValueError(
                f"The proposers of automl_plugins minimise one objective, the scenario has"
                f" {scenario.count_objectives()}: {scenario.objectives}. Combine them into one"
                " cost, or use a facade of SMAC without ProposerConfigSelector."
            )
        if isinstance(proposer, type) or not callable(getattr(proposer, "propose", None)):
            raise TypeError(
                "proposer must be one of the core, such as automl_plugins.recipes.gbqr(),"
                f" got {proposer!r}."
            )
        if min_trials is not None and min_trials < 1:
            raise ValueError(f"min_trials must be None or >= 1, got {min_trials!r}.")
        if random_design is not None and not isinstance(random_design, AbstractRandomDesign):
            raise TypeError(f"random_design must be one of SMAC's, got {random_design!r}.")
        self.space = VectorSpace(scenario.configspace)
        if isinstance(proposer, WithFallback):
            proposer.check(self.space)
        enough = 1 + self.space.depth if min_trials is None else min_trials
        super().__init__(scenario, retrain_after=1, min_trials=enough)
        self.proposer = proposer
        self.random_design = random_design
        self._streams = Streams(scenario.seed if seed is None else seed)
        self._rows = Rows(scenario.configspace, enough)
        self._waiting: dict[int, Configuration] = {}  # given away, not in the run history yet
        self._proposals: dict[int, Proposal] = {}
        self._warned = False

    @property
    def meta(self) -> dict[str, Any]:
        """What SMAC stores of the selector: a run is continued by an equal one only."""
        design = self.random_design
        return {
            "name": type(self).__name__,
            "proposer": describe(self.proposer),
            "min_trials": self._rows.min_trials,
            "random_design": None if design is None else design.meta,
            "seed": self._streams.seed,
        }

    def __iter__(self) -> Iterator[Configuration]:
        """Configurations, each once, until there are no others."""
        self._waiting, self._proposals = {}, {}  # of the facade it was given to before
        for config in self.initial_configurations:
            if self._key(config) not in self._known() | self._waiting.keys():
                self.begin()
                again = as_configuration(self.space.space, config.get_array())
                yield self._give(again, config.origin or "Initial design")
        while True:
            self.begin()
            proposal = self._next()
            if proposal is None:
                unused = (
                    f" {len(self._waiting)} of them were never evaluated: the intensifier starts"
                    " no bracket before it is full. Take smaller brackets, or another intensifier."
                )
                _logger.warning(
                    "All configurations were tried: the search ends."
                    + (unused if self._waiting else "")
                )
                return
            config = as_configuration(self.space.space, proposal.vector)
            # The values decide: ConfigSpace rounds them.
            proposal = replace(proposal, vector=canonical(config))
            self._proposals[self._key(config)] = proposal
            yield self._give(config, f"Proposer: {proposal.origin}")

    def history(self) -> History:
        """What the proposer is shown next: the run history, and what is not in it yet."""
        known = self._known()
        self._waiting = {k: config for k, config in self._waiting.items() if k not in known}
        return self._rows.read(self.runhistory, list(self._waiting.values()))

    def explain(self, config: Configuration) -> Explanation:
        """Why a configuration was tried: predictions, and the shares of earlier tasks.

        It is read from what was noted with its trials, so it is known of a continued run too.
        """
        key, known = self._key(config), self.runhistory.config_ids.items()
        number = next((n for other, n in known if self._key(other) == key), len(known) + 1)
        stored: Mapping[str, Any] | None = None
        if (proposal := self._proposals.get(key)) is not None:
            stored = proposal.to_dict()
        else:
            values = (v for k, v in self.runhistory.items() if k.config_id == number)
            stored = next(filter(None, map(_read_note, values)), None)
        origin = config.origin or ""
        initial = "suggested" if origin.endswith(SUGGESTED) else "design"
        return Explanation.from_proposal(
            number, stored, origin=initial if origin.startswith("Initial") else "foreign"
        )

    def proposal_of(self, config: Configuration) -> Proposal | None:
        """What was proposed since the facade was made; None for what comes from elsewhere."""
        return self._proposals.get(self._key(config))

    def _next(self) -> Proposal | None:
        """The next proposal; None when there is nothing new."""
        history, design = self.history(), self.random_design
        k = len(history)
        if design is not None:
            design.next_iteration()
            if design.check(k):
                return self._random(history, k)
        try:
            proposal = ask(self.proposer, self.space, history, self._streams, k)
        except SurrogateFailure as failure:
            if not self._warned:
                self._warned = True
                _logger.warning(
                    f"{failure} Random configurations are taken instead; this is said once."
                )
            return self._random(history, k)
        config = as_configuration(self.space.space, proposal.vector)
        new = self._key(config) not in self.space.keys(history.vectors).tolist()
        return proposal if new else self._random(history, k)

    def _random(self, history: History, k: int) -> Proposal | None:
        """A configuration that was not tried; None if there is none."""
        rng = self._streams.generator("random", k)
        seen = np.sort(self.space.keys(history.vectors))
        for exhaustive in (False, True):
            pool = self.space.enumerate(_SMALL) if exhaustive else self.space.sample(_POOL, rng)
            if pool is None:
                continue
            fresh = pool[~self.space.seen(self.space.canonical(pool), seen)]
            if len(fresh):
                return Proposal(fresh[rng.integers(len(fresh))], "random")
        return None

    def _give(self, config: Configuration, origin: str) -> Configuration:
        config.origin = origin
        self._waiting[self._key(config)] = config
        self.end(config)
        return config

    def _known(self) -> set[int]:
        """Keys of the configurations in the run history."""
        return set(self.space.keys(self._rows.vectors(self.runhistory)).tolist())

    def _key(self, config: Configuration) -> int:
        return int(self.space.keys(canonical(config)[None])[0])


class ExplainCallback(Callback):
    """Writes why each configuration was proposed into ``additional_info`` of its trials.

    ``GBQRFacade`` has it; another facade is given it with its selector.

    Args:
        selector: What proposes.

    Example::

        selector = ProposerConfigSelector(scenario, tst("lightgbm", task="iris"))
        HyperparameterOptimizationFacade(
            scenario, train, config_selector=selector, callbacks=[ExplainCallback(selector)]
        )
    """

    def __init__(self, selector: ProposerConfigSelector) -> None:
        super().__init__()
        self.selector = selector

    def on_tell_start(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> bool | None:
        """Add the note, where there is no other under its name."""
        proposal = self.selector.proposal_of(info.config)
        if proposal is not None and isinstance(value.additional_info, dict):
            value.additional_info.setdefault(_NOTE, proposal.to_dict())
        return None


def member_trust(source: RunHistory | AbstractFacade) -> dict[int, dict[str, float]]:
    """How much each member of the committee was trusted when each configuration was proposed.

    Args:
        source: A run history or facade, of a search by ``AutoFacade``.

    Returns:
        Probabilities by name of the member, by number of the configuration; those that the
        committee did not propose are absent.
    """
    history = source.runhistory if isinstance(source, AbstractFacade) else source
    stored = ((key.config_id, _read_note(value)) for key, value in history.items())
    return {number: trust for number, note in stored if (trust := read_trust(note))}


def _read_note(value: TrialValue) -> Mapping[str, Any] | None:
    """Our note on a trial; None where the target function has one of its own under its name."""
    info = value.additional_info
    note = info.get(_NOTE) if isinstance(info, Mapping) else None
    return note if isinstance(note, Mapping) and "origin" in note else None


# --- a facade -------------------------------------------------------------------------------


class GBQRFacade(HyperparameterOptimizationFacade):
    """SMAC with GBQR: a new model for each configuration, in milliseconds.

    ``GBQRFacade(scenario, train)`` is the whole recipe. A ``ProposerConfigSelector`` chooses: it
    learns from failures and running trials, and from seconds if it is told to
    (``config_selector=GBQRFacade.get_config_selector(scenario, per_second=True)``).

    Every part can be exchanged:

    * ``initial_design``: its configurations come first; GBQR's own start only adds what is still
      missing. The default has none but ``additional_configs`` and the scenario's default.
    * ``random_design``: configurations it asks for are random ones. The default asks for none.
    * ``intensifier``: any; with ``Hyperband`` or ``SuccessiveHalving`` GBQR proposes what their
      brackets start with, and the highest budget with enough configurations counts.
    * ``config_selector``: a ``ProposerConfigSelector`` with any other proposer, or one of SMAC's.
    * ``model``, ``acquisition_function``, ``acquisition_maximizer``, ``runhistory_encoder``: any
      of them hands the choice over to SMAC's own ``ConfigSelector``, with a new model for each
      configuration; the others of the four are those of ``get_model`` and so on, the initial
      design is SMAC's (Sobol points). Running trials are then unknown to the model, as in all of
      SMAC, and proposals take SMAC's time.
    * ``callbacks``, ``logging_level``, ``overwrite``, ``dask_client``: as in every facade.

    Args:
        scenario: The scenario, of one objective.
        target_function: What is minimised; None for ask and tell.
        **parts: See above.

    Raises:
        ValueError: For several objectives; for a ``ProposerConfigSelector`` together with a part
            that it does not ask; for one of another search space; for ``EIPerSecond`` without
            an encoder of seconds or a model that predicts them, and the reverse.

    Example::

        scenario = Scenario(space, n_trials=100, deterministic=True)
        best = GBQRFacade(scenario, train).optimize()
    """

    def __init__(self, scenario: Scenario, target_function: Any = None, **parts: Any) -> None:
        if scenario.count_objectives() > 1 or parts.get("multi_objective_algorithm") is not None:
            raise ValueError(
                f"{type(self).__name__} minimises one objective: combine several into one cost, or"
                " use HyperparameterOptimizationFacade."
            )
        parts = {name: part for name, part in parts.items() if part is not None}
        replaced = sorted(parts.keys() & _MODEL_PARTS)
        selector = parts.get("config_selector")
        if selector is None and not replaced:
            selector = self.get_config_selector(scenario)
        if isinstance(selector, ProposerConfigSelector):
            _check_fits(selector, scenario, replaced, parts.get("random_design"))
            selector.random_design = parts.get("random_design", selector.random_design)
            parts["callbacks"] = [*parts.get("callbacks", []), ExplainCallback(selector)]
        else:
            selector = selector or ConfigSelector(scenario, retrain_after=1)
            _complete(parts, scenario)
        super().__init__(scenario, target_function, **parts | {"config_selector": selector})

    @staticmethod
    def get_config_selector(  # type: ignore[override]
        scenario: Scenario,
        *,
        min_trials: int | None = None,
        **options: Unpack[GBQROptions],
    ) -> ProposerConfigSelector:
        """GBQR as the chooser.

        Args:
            scenario: The scenario.
            min_trials: See ``ProposerConfigSelector``.
            **options: Arguments of ``automl_plugins.recipes.gbqr``.
        """
        return ProposerConfigSelector(scenario, gbqr(**options), min_trials=min_trials)

    @staticmethod
    def get_model(scenario: Scenario, *, per_second: bool = False) -> SurrogateModel:  # type: ignore[override]
        """GBQR's surrogate; ``per_second`` for use with ``EIPerSecond``."""
        return SurrogateModel(
            scenario.configspace,
            gbqr_surrogate(per_second=per_second),
            instance_features=scenario.instance_features,
            seed=scenario.seed,
        )

    @staticmethod
    def get_acquisition_function(  # type: ignore[override]
        scenario: Scenario, *, xi: float = 0.0
    ) -> AbstractAcquisitionFunction:
        """Expected improvement of the normal scores."""
        return EI(xi=xi)

    @staticmethod
    def get_runhistory_encoder(scenario: Scenario) -> CostEncoder:  # type: ignore[override]
        """Costs as normal scores: only their order counts."""
        return CostEncoder(scenario, target="normal_scores")

    @staticmethod
    def get_initial_design(  # type: ignore[override]
        scenario: Scenario, *, additional_configs: list[Configuration] | None = None
    ) -> RandomInitialDesign:
        """None but ``additional_configs``, for GBQR's own start fills the space."""
        return RandomInitialDesign(
            scenario, n_configs=0, additional_configs=list(additional_configs or [])
        )

    @staticmethod
    def get_random_design(
        scenario: Scenario, *, probability: float = 0.0
    ) -> ProbabilityRandomDesign:
        """No random configurations, unless asked for."""
        return ProbabilityRandomDesign(probability, seed=scenario.seed)

    @staticmethod
    def get_multi_objective_algorithm(  # type: ignore[override]
        scenario: Scenario,
    ) -> AbstractMultiObjectiveAlgorithm:
        """There is none.

        Raises:
            ValueError: Always.
        """
        raise ValueError("This facade minimises one objective.")


class AutoFacade(GBQRFacade):
    """SMAC with a committee of models: whoever ranks the trials right chooses the next one.

    ``AutoFacade(scenario, train)`` is the whole recipe, and the one to use. The members are the
    models of ``GBQRFacade`` and Gaussian processes averaged over kernels; with a memory earlier
    tasks and a meta-learner as well, and the memory suggests the first configurations. Its
    ``ProposerConfigSelector`` explains them: ``facade.intensifier.config_selector.explain(best)``.

    Parts can be exchanged as in ``GBQRFacade``. SMAC's own selector, to which a ``model``,
    ``acquisition_function``, ``acquisition_maximizer`` or ``runhistory_encoder`` hands the choice
    over, asks one model: that is the one given or, from ``get_model``, that of ``GBQRFacade``.
    There is no committee then.

    Args:
        scenario: The scenario, of one objective.
        target_function: What is minimised; None for ask and tell.
        memory: The earlier tasks: a ``MetaDataset``, a ``MetaStore``, its path or address, records
            of tasks, or the name of a bundled memory; None for a search by itself. ``"auto"`` is
            the bundled memory of the learner whose hyperparameters the space has, by the names of
            scikit-learn and LightGBM, if there is one; a line in the log says which. Runs of the
            task that has the name of the scenario are left out.
        per_second: Whether the gain is divided by the predicted seconds.
        **parts: See ``GBQRFacade``. Further arguments of the recipe are given to the selector:
            ``config_selector=AutoFacade.get_config_selector(scenario, memory=memory, X=X, y=y)``.

    Raises:
        TypeError: For a memory that is none.
        MemoryMismatch: For one of which the search space can use nothing.
        ValueError: As ``GBQRFacade``; for ``memory`` or ``per_second`` beside a part that is asked
            in place of the committee.

    Example::

        scenario = Scenario(space, n_trials=100, deterministic=True)
        best = AutoFacade(scenario, train, memory="lightgbm").optimize()
    """

    def __init__(
        self,
        scenario: Scenario,
        target_function: Any = None,
        *,
        memory: Memory | AlignedMemory | None = None,
        per_second: bool = False,
        **parts: Any,
    ) -> None:
        choosing = {n for n in _MODEL_PARTS | {"config_selector"} if parts.get(n) is not None}
        own = {"memory": memory is not None, "per_second": per_second}
        if choosing and any(own.values()):
            raise ValueError(
                f"{' and '.join(n for n, given in own.items() if given)} would not be used: the"
                f" committee is not asked beside {' and '.join(sorted(choosing))}. Give them to"
                " the selector: config_selector=AutoFacade.get_config_selector(scenario,"
                " memory=..., per_second=...)."
            )
        if not choosing and scenario.count_objectives() == 1:
            parts["config_selector"] = self.get_config_selector(
                scenario, memory=memory, per_second=per_second
            )
        super().__init__(scenario, target_function, **parts)

    @staticmethod
    def get_config_selector(  # type: ignore[override]
        scenario: Scenario,
        *,
        min_trials: int | None = None,
        memory: Memory | AlignedMemory | None = None,
        **options: Unpack[AutoOptions],
    ) -> ProposerConfigSelector:
        """The committee as the chooser.

        Args:
            scenario: The scenario.
            min_trials: See ``ProposerConfigSelector``.
            memory: See ``AutoFacade``.
            **options: Arguments of ``automl_plugins.recipes.auto``; ``task`` is the name of the
                scenario unless given.
        """
        options = {"task": scenario.name, **options}
        return ProposerConfigSelector(scenario, auto(memory, **options), min_trials=min_trials)


_MODEL_PARTS = {"acquisition_function", "acquisition_maximizer", "model", "runhistory_encoder"}


def _check_fits(
    selector: ProposerConfigSelector,
    scenario: Scenario,
    replaced: list[str],
    design: AbstractRandomDesign | None,
) -> None:
    if replaced:
        raise ValueError(
            f"{' and '.join(replaced)} would never be asked: a ProposerConfigSelector chooses by"
            " itself. Leave out config_selector, or pass one of SMAC's."
        )
    if selector.scenario.configspace != scenario.configspace:
        raise ValueError("config_selector was made for another search space.")
    if design is not None and selector.random_design not in (None, design):
        raise ValueError("random_design was given twice: to the facade and to its selector.")


def _complete(parts: dict[str, Any], scenario: Scenario) -> None:
    """Add the parts that fit those given, for SMAC's own selector; ValueError if these do not."""
    usual_design = HyperparameterOptimizationFacade.get_initial_design(scenario)
    parts.setdefault("initial_design", usual_design)
    if isinstance(parts.get("runhistory_encoder"), CostAndSecondsEncoder):
        parts.setdefault("acquisition_function", EIPerSecond())
    function = parts.get("acquisition_function")
    timed = isinstance(function, EIPerSecond)
    if timed and "runhistory_encoder" not in parts:
        parts["runhistory_encoder"] = CostAndSecondsEncoder(scenario, target="normal_scores")
    if "model" not in parts:
        parts["model"] = GBQRFacade.get_model(scenario, per_second=timed)
    encoder, model = parts.get("runhistory_encoder"), parts["model"]
    with_seconds = isinstance(encoder, CostAndSecondsEncoder)
    if timed and not with_seconds:
        raise ValueError(
            f"EIPerSecond needs seconds, which {type(encoder).__name__} does not encode: leave"
            " out runhistory_encoder, or pass CostAndSecondsEncoder(scenario)."
        )
    if with_seconds and not isinstance(function, EIPerSecond | QuantileBound):
        raise ValueError(
            f"CostAndSecondsEncoder encodes seconds, which {type(function).__name__} does not"
            " know: pass EIPerSecond() or QuantileBound(), or CostEncoder(scenario)."
        )
    if with_seconds and not isinstance(model, SurrogateModel | MultiObjectiveModel):
        raise ValueError(
            f"{type(model).__name__} does not predict seconds: pass"
            " SurrogateModel(scenario.configspace), or a MultiObjectiveModel of a list of two."
        )
