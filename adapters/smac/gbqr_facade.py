"""``GBQRFacade``: gradient boosting with quantile regression, in SMAC."""

from __future__ import annotations

from typing import Any, Unpack

from ConfigSpace import Configuration
from smac import HyperparameterOptimizationFacade, Scenario
from smac.acquisition.function import EI
from smac.acquisition.function.abstract_acquisition_function import AbstractAcquisitionFunction
from smac.callback import Callback
from smac.initial_design import RandomInitialDesign
from smac.main.config_selector import ConfigSelector
from smac.model import AbstractModel
from smac.model.multi_objective_model import MultiObjectiveModel
from smac.multi_objective.abstract_multi_objective_algorithm import (
    AbstractMultiObjectiveAlgorithm,
)
from smac.random_design import AbstractRandomDesign, ProbabilityRandomDesign
from smac.runhistory.encoder import AbstractRunHistoryEncoder

from automl_plugins.recipes import gbqr, gbqr_surrogate
from automl_plugins.recipes.without_memory import GBQROptions

from .acquisition import EIPerSecond, QuantileBound
from .cost_and_seconds import CostAndSecondsEncoder, CostEncoder
from .proposing import ExplainCallback, ProposerConfigSelector
from .surrogate_model import SurrogateModel


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
                "GBQRFacade minimises one objective: combine several into one cost, or use"
                " HyperparameterOptimizationFacade."
            )
        parts = {name: part for name, part in parts.items() if part is not None}
        selector = parts.get("config_selector")
        replaced = sorted(parts.keys() & set(_MODEL_PARTS))
        if selector is None:
            selector = (
                ConfigSelector(scenario, retrain_after=1)
                if replaced
                else self.get_config_selector(scenario)
            )
        if isinstance(selector, ProposerConfigSelector):
            _check_proposing(selector, scenario, replaced)
            _take_random_design(selector, parts.get("random_design"))
            callbacks: list[Callback] = list(parts.get("callbacks", []))
            parts["callbacks"] = [*callbacks, ExplainCallback(selector)]
        else:
            _complete(parts, scenario)
        parts["config_selector"] = selector
        super().__init__(scenario, target_function, **parts)

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
        raise ValueError("GBQRFacade minimises one objective.")


_MODEL_PARTS = ("acquisition_function", "acquisition_maximizer", "model", "runhistory_encoder")


def _check_proposing(
    selector: ProposerConfigSelector, scenario: Scenario, replaced: list[str]
) -> None:
    if replaced:
        raise ValueError(
            f"{' and '.join(replaced)} would never be asked: a ProposerConfigSelector chooses by"
            " itself. Leave out config_selector, or pass one of SMAC's."
        )
    if selector.scenario.configspace != scenario.configspace:
        raise ValueError("config_selector was made for another search space.")


def _take_random_design(
    selector: ProposerConfigSelector, design: AbstractRandomDesign | None
) -> None:
    if design is None:
        return
    if selector.random_design is not None and selector.random_design is not design:
        raise ValueError("random_design was given twice: to the facade and to its selector.")
    selector.random_design = design


def _complete(parts: dict[str, Any], scenario: Scenario) -> None:
    """Add the parts that fit those given, for SMAC's own selector.

    Raises:
        ValueError: If those given do not fit each other.
    """
    parts.setdefault(
        "initial_design", HyperparameterOptimizationFacade.get_initial_design(scenario)
    )
    function: AbstractAcquisitionFunction | None = parts.get("acquisition_function")
    encoder: AbstractRunHistoryEncoder | None = parts.get("runhistory_encoder")
    model: AbstractModel | None = parts.get("model")
    if function is None and isinstance(encoder, CostAndSecondsEncoder):
        function = parts["acquisition_function"] = EIPerSecond()
    timed = isinstance(function, EIPerSecond)
    if encoder is None and timed:
        encoder = CostAndSecondsEncoder(scenario, target="normal_scores")
        parts["runhistory_encoder"] = encoder
    if model is None:
        parts["model"] = GBQRFacade.get_model(scenario, per_second=timed)
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
    if with_seconds and not isinstance(model, SurrogateModel | MultiObjectiveModel | None):
        raise ValueError(
            f"{type(model).__name__} does not predict seconds: pass"
            " SurrogateModel(scenario.configspace), or a MultiObjectiveModel of a list of two."
        )
