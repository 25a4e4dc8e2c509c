"""Methods of the core as SMAC facades: ``GBQRFacade`` and ``AutoFacade``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import getfullargspec
from typing import Any, ClassVar, Unpack, cast

from ConfigSpace import Configuration
from smac import HyperparameterOptimizationFacade, Scenario
from smac.acquisition.function import EI, EIPS
from smac.acquisition.function.abstract_acquisition_function import AbstractAcquisitionFunction
from smac.acquisition.maximizer import AbstractAcquisitionMaximizer
from smac.callback import Callback
from smac.initial_design import AbstractInitialDesign, RandomInitialDesign
from smac.intensifier.abstract_intensifier import AbstractIntensifier
from smac.main.config_selector import ConfigSelector
from smac.model import AbstractModel
from smac.model.multi_objective_model import MultiObjectiveModel
from smac.random_design import AbstractRandomDesign, ProbabilityRandomDesign
from smac.runhistory.encoder import AbstractRunHistoryEncoder, RunHistoryEIPSEncoder
from smac.utils.logging import setup_logging

from automl_plugins._arguments import check_share, refuse_foreign
from automl_plugins.meta.memories import AlignedMemory
from automl_plugins.meta.sources import AUTO, Memory
from automl_plugins.proposers.explanation import Explanation
from automl_plugins.recipes import auto, gbqr, gbqr_surrogate
from automl_plugins.recipes.with_memory import AutoOptions
from automl_plugins.recipes.without_memory import GBQROptions
from automl_plugins.spaces.values import is_same_space

from ._private import Facade
from .model_parts import (
    CostAndSecondsEncoder,
    CostEncoder,
    EIPerSecond,
    QuantileBound,
    SurrogateModel,
)
from .proposing import ExplainCallback, ProposerConfigSelector, check_part
from .trials import check_configurations, check_one_objective


class GBQRFacade(Facade):
    """SMAC with GBQR: a proposal takes tens of milliseconds.

    ``GBQRFacade(scenario, train)`` is the whole recipe. A ``ProposerConfigSelector`` chooses: it
    learns from failures and running trials, and from seconds if asked to (``per_second=True``).

    Every part can be replaced, by an argument or by its ``get_model`` and so on in a subclass:

    * ``initial_design``: its configurations come first; GBQR's own start-up only adds what is
      missing. The default has only ``additional_configs`` and the scenario's default.
    * ``random_design``: decides which configurations are random. By default none are, but every
      fifth if the scenario has budgets, see ``ProposerConfigSelector``.
    * ``intensifier``: any; with ``Hyperband`` or ``SuccessiveHalving`` GBQR proposes the
      configurations that start their brackets, and learns from the highest budget with enough
      configurations.
    * ``config_selector``: a ``ProposerConfigSelector`` with any other proposer, or one of SMAC's.
    * ``model``, ``acquisition_function``, ``acquisition_maximizer``, ``runhistory_encoder``: with
      any of them SMAC's own ``ConfigSelector`` chooses, which does not see running trials. It fits
      a model for each configuration, so it takes several times as long as SMAC's facades, which
      fit one for every eighth; add ``config_selector=ConfigSelector(scenario)`` to do the same.
      ``get_model`` and so on return those of the four that are not given; the initial design is
      SMAC's (Sobol points).
    * ``callbacks``, ``logging_level``, ``overwrite``, ``dask_client``: as in every facade.

    ``facade.explain(config)`` says why a configuration was tried.

    After an interruption, ``optimize`` of the same facade, or of a new one with
    ``overwrite=False``, first evaluates the trials that were running, unless the scenario has
    cutoffs; not those that ``ask`` of the same facade returned. A new facade also continues the
    run of a scenario with the same ``name`` if its ``n_trials``, ``n_workers``, limits of time or
    ``dask_client`` differ, or if its folder was moved; if one of the two runs on Dask, another
    objective is not noticed. An initial design that has been evaluated is kept, even if new limits
    give it another size. Suggestions of a memory are kept, even if the memory now has others.

    With several workers (of Dask) a trial that kills its process counts as crashed, and the search
    continues. Dask first retries it on three other workers, unless
    ``dask.config.set({"distributed.scheduler.allowed-failures": 0})`` is called before the facade
    is made.

    Args:
        scenario: The scenario, with one objective.
        target_function: The function to minimise; None for ask and tell.
        **parts: See above; and arguments of ``get_config_selector``, which are those of
            ``automl_plugins.recipes.gbqr``.

    Raises:
        TypeError: For an unknown argument.
        ValueError: For several objectives, no trials, a selector of another space, arguments or
            parts that would not be used, or do not fit together.

    Example::

        scenario = Scenario(space, n_trials=100, deterministic=True)
        best = GBQRFacade(scenario, train).optimize()
    """

    #: Arguments of ``get_config_selector``.
    _options: ClassVar[tuple[str, ...]] = (*GBQROptions.__annotations__, "min_trials")

    def __init__(self, scenario: Scenario, target_function: Any = None, **parts: Any) -> None:
        self.check_parts(parts)
        options = {name: parts.pop(name) for name in self._options if name in parts}
        check_one_objective(type(self).__name__, scenario)
        if scenario.n_trials < 1:  # SMAC's facades refuse it because their designs are larger
            raise ValueError(
                f"n_trials of the scenario must be at least 1, got {scenario.n_trials}."
            )
        if parts.get("multi_objective_algorithm") is not None:
            raise ValueError(
                f"multi_objective_algorithm would not be used: {type(self).__name__} takes one"
                " objective. Leave it out, or use a facade with parts of SMAC only."
            )
        # None stands for SMAC's own part: nothing is replaced by it.
        parts = {name: part for name, part in parts.items() if part is not None}
        for name, kind in _KINDS.items():
            check_part(name, parts.get(name), kind)
        given = parts.get("callbacks", [])
        if not (isinstance(given, list) and all(isinstance(one, Callback) for one in given)):
            raise TypeError(f"callbacks must be a list of SMAC's callbacks, got {given!r}.")
        selector = parts.get("config_selector")
        # A subclass may define parts instead of passing them.
        if selector is None:
            self._take_own(parts, [n for n in _MODEL_PARTS if self._chooses_by(n)], scenario)
        replaced = [name for name in _MODEL_PARTS if name in parts]
        self._refuse_unused(options, replaced if selector is None else ["config_selector"])
        if selector is None and not replaced:
            # SMAC does it later, but a memory logs when the selector is made.
            setup_logging(parts.get("logging_level"))
            selector = self.get_config_selector(scenario, **options)
        if isinstance(selector, ProposerConfigSelector):
            if selector.random_design is None:
                self._take_own(parts, ["random_design"], scenario)
            _check_fits(selector, scenario, replaced, parts.get("random_design"))
            selector.random_design = parts.get("random_design", selector.random_design)
            parts["callbacks"] = [*parts.get("callbacks", []), ExplainCallback(selector)]
        else:
            selector = selector or ConfigSelector(scenario, retrain_after=1)
            self._take_own(parts, ["initial_design", *_MODEL_PARTS], scenario)
            _complete(parts, scenario)
        super().__init__(scenario, target_function, **parts | {"config_selector": selector})

    def optimize(self, *, data_to_scatter: dict[str, Any] | None = None) -> Configuration:
        """Evaluate trials until the budget is spent; the best configuration, as in SMAC."""
        # Of one objective there is one best; SMAC's type allows for several.
        return cast(Configuration, super().optimize(data_to_scatter=data_to_scatter))

    def explain(self, config: Configuration) -> Explanation:
        """Why a configuration was tried, see ``ProposerConfigSelector.explain``.

        Raises:
            TypeError: For anything but a configuration, or if SMAC's own selector chooses.
        """
        selector = self.intensifier.config_selector
        if not isinstance(selector, ProposerConfigSelector):
            raise TypeError(
                f"{type(selector).__name__} chooses, which explains nothing. Leave out the model,"
                " the acquisition function, its maximizer, the encoder and config_selector, or"
                " pass a ProposerConfigSelector."
            )
        return selector.explain(config)

    @classmethod
    def _chooses_by(cls, part: str) -> bool:
        """Whether ``get_<part>`` is of a more derived class than ``get_config_selector``."""

        def distance(name: str) -> int:
            return next(i for i, known in enumerate(cls.__mro__) if f"get_{name}" in vars(known))

        return distance(part) < distance("config_selector")

    @classmethod
    def _take_own(cls, parts: dict[str, Any], names: Iterable[str], scenario: Scenario) -> None:
        """Add the missing parts of these names for which a subclass has its own ``get_...``."""
        for name in names:
            make = getattr(cls, f"get_{name}")
            if name not in parts and make is not getattr(GBQRFacade, f"get_{name}"):
                parts[name] = make(scenario)

    @classmethod
    def check_parts(cls, parts: Mapping[str, Any]) -> None:
        """Raise TypeError for an argument that the facade does not take, or a class as a part."""
        refuse_foreign(cls.__name__, parts, [*_PARTS, *cls._options], _OF_SCENARIO)
        given = parts.get("callbacks")
        listed = given if isinstance(given, list) else []  # in a replay a function makes them
        for name, part in [*parts.items(), *(("each of callbacks", one) for one in listed)]:
            if isinstance(part, type):
                raise TypeError(
                    f"{name} must be an object, got the class {part.__name__}: make one of it."
                )

    @classmethod
    def _refuse_unused(cls, options: Mapping[str, Any], replacing: list[str]) -> None:
        """Raise ValueError for ``options`` of a selector if any parts are ``replacing`` it."""
        # None and False are defaults that are passed on, as ``per_second`` of ``AutoFacade``.
        unused = [n for n, value in options.items() if value is not None and value is not False]
        if unused and replacing:
            raise ValueError(
                f"{' and '.join(unused)} would not be used: {' and '.join(replacing)} given here"
                " replaces the selector that takes them. Give them to the selector:"
                f" config_selector={cls.__name__}.get_config_selector(scenario,"
                f" {', '.join(f'{name}=...' for name in unused)})."
            )

    @staticmethod
    def get_config_selector(  # type: ignore[override]
        scenario: Scenario,
        *,
        min_trials: int | None = None,
        **options: Unpack[GBQROptions],
    ) -> ProposerConfigSelector:
        """A selector that asks GBQR.

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
        """Costs as normal scores: only their ranks count."""
        return CostEncoder(scenario, target="normal_scores")

    @staticmethod
    def get_initial_design(  # type: ignore[override]
        scenario: Scenario,
        *,
        n_configs: int | None = None,
        n_configs_per_hyperparameter: int = 0,
        max_ratio: float = 0.25,
        additional_configs: list[Configuration] | None = None,
    ) -> AbstractInitialDesign:
        """Only ``additional_configs``, as GBQR fills the space itself; Sobol points if asked for.

        The arguments are the same as in SMAC's own facades.
        """
        if n_configs is None:
            n_configs = n_configs_per_hyperparameter * len(scenario.configspace)
        # A new list, because SMAC adds the default configuration to it.
        more = check_configurations(additional_configs or [])
        if n_configs == 0:
            return RandomInitialDesign(scenario, n_configs=0, additional_configs=more)
        return HyperparameterOptimizationFacade.get_initial_design(
            scenario, n_configs=n_configs, max_ratio=max_ratio, additional_configs=more
        )

    @staticmethod
    def get_random_design(
        scenario: Scenario, *, probability: float = 0.0
    ) -> ProbabilityRandomDesign:
        """No random configurations, unless asked for."""
        check_share("probability", probability)
        return ProbabilityRandomDesign(probability, seed=scenario.seed)


class AutoFacade(GBQRFacade):
    """SMAC with a committee of models, drawn by how well they rank the trials.

    ``AutoFacade(scenario, train)`` is the whole recipe, and the one to use. The members are the
    models of ``GBQRFacade`` and Gaussian processes averaged over kernels; with a memory earlier
    tasks and a meta-learner as well, and the memory suggests the first configurations.
    ``facade.explain(best)`` says which member proposed, and how much each was trusted.

    Parts can be replaced as in ``GBQRFacade``. Parts that need SMAC's own selector replace the
    committee by one model: the given one, else the model of ``GBQRFacade.get_model``.

    Args:
        scenario: The scenario, with one objective.
        target_function: The function to minimise; None for ask and tell.
        memory: The earlier tasks: a ``MetaDataset``, a ``MetaStore``, its path or address; named
            facades, folders, records of tasks and searches of other frameworks, one or several;
            these or run histories by name of their task; or the name of a bundled memory.
            ``"auto"`` takes the bundled memory of the learner whose hyperparameters, by their
            names in the learner's library, are in the space; the log names it. None for no
            memory. Runs of the task with the name of the scenario are left out.
        per_second: Whether the gain is divided by the predicted seconds.
        **parts: See ``GBQRFacade``; and further arguments of ``get_config_selector``, which are
            those of ``automl_plugins.recipes.auto``, such as ``X=X, y=y``.

    Raises:
        TypeError: For a memory of the wrong type, or an unknown argument.
        MemoryMismatch: For a memory that shares nothing with the search space.
        ValueError: As ``GBQRFacade``.

    Example::

        scenario = Scenario(space, n_trials=100, deterministic=True)
        best = AutoFacade(scenario, train, memory="lightgbm").optimize()
    """

    _options = ("memory", *AutoOptions.__annotations__, "min_trials")

    def __init__(
        self,
        scenario: Scenario,
        target_function: Any = None,
        *,
        memory: Memory | AlignedMemory | None = AUTO,
        per_second: bool = False,
        **parts: Any,
    ) -> None:
        # The user did not give the default, so it may go unused, see ``_refuse_unused``.
        if not (isinstance(memory, str) and memory == AUTO):
            parts["memory"] = memory
        super().__init__(scenario, target_function, per_second=per_second, **parts)

    @staticmethod
    def get_config_selector(  # type: ignore[override]
        scenario: Scenario,
        *,
        min_trials: int | None = None,
        memory: Memory | AlignedMemory | None = AUTO,
        **options: Unpack[AutoOptions],
    ) -> ProposerConfigSelector:
        """A selector that asks the committee.

        Args:
            scenario: The scenario.
            min_trials: See ``ProposerConfigSelector``.
            memory: See ``AutoFacade``.
            **options: Arguments of ``automl_plugins.recipes.auto``; ``task`` is the name of the
                scenario unless given.
        """
        options = {"task": scenario.name, **options}
        return ProposerConfigSelector(scenario, auto(memory, **options), min_trials=min_trials)


#: Keywords of SMAC's facades.
_PARTS = getfullargspec(HyperparameterOptimizationFacade).kwonlyargs
#: Arguments of other samplers, and where SMAC has them.
_OF_SCENARIO = {
    **dict.fromkeys(("seed", "n_trials", "n_workers"), "an argument of Scenario"),
    "cost": "SMAC measures the seconds: per_second=True",
}
#: The class of each part, by its keyword.
_KINDS: dict[str, type] = {
    "model": AbstractModel,
    "acquisition_function": AbstractAcquisitionFunction,
    "acquisition_maximizer": AbstractAcquisitionMaximizer,
    "runhistory_encoder": AbstractRunHistoryEncoder,
    "initial_design": AbstractInitialDesign,
    "random_design": AbstractRandomDesign,
    "intensifier": AbstractIntensifier,
    "config_selector": ConfigSelector,
}
_MODEL_PARTS = ("acquisition_function", "acquisition_maximizer", "model", "runhistory_encoder")


def _check_fits(
    selector: ProposerConfigSelector,
    scenario: Scenario,
    replaced: list[str],
    design: AbstractRandomDesign | None,
) -> None:
    if replaced:
        raise ValueError(
            f"{' and '.join(replaced)} would not be used: a ProposerConfigSelector chooses by"
            " itself. Leave out config_selector, or pass one of SMAC's."
        )
    if not is_same_space(selector.scenario.configspace, scenario.configspace):
        raise ValueError(
            "config_selector was made for another search space: make it from the same scenario."
        )
    if design is not None and selector.random_design not in (None, design):
        raise ValueError(
            "random_design was given twice, to the facade and to its selector: leave out one."
        )


def _complete(parts: dict[str, Any], scenario: Scenario) -> None:
    """Add missing parts for SMAC's own selector; ValueError if the given ones do not fit."""
    if "initial_design" not in parts:
        parts["initial_design"] = HyperparameterOptimizationFacade.get_initial_design(scenario)
    # Missing parts follow from given ones: either all three must use seconds, or none.
    if isinstance(parts.get("runhistory_encoder"), CostAndSecondsEncoder):
        parts.setdefault("acquisition_function", EIPerSecond())
    function = parts.get("acquisition_function")
    timed = isinstance(function, EIPerSecond)
    if timed and "runhistory_encoder" not in parts:
        parts["runhistory_encoder"] = CostAndSecondsEncoder(scenario, target="normal_scores")
    if "model" not in parts:
        parts["model"] = GBQRFacade.get_model(scenario, per_second=timed)
    encoder, model = parts.get("runhistory_encoder"), parts["model"]
    if isinstance(encoder, RunHistoryEIPSEncoder) and not isinstance(function, EIPS):
        raise ValueError(
            "RunHistoryEIPSEncoder encodes seconds as only SMAC's EIPS reads them: pass"
            " acquisition_function=EIPS(), or leave out runhistory_encoder."
        )
    with_seconds = isinstance(encoder, CostAndSecondsEncoder)
    if timed and not with_seconds:
        raise ValueError(
            f"EIPerSecond needs seconds, which {type(encoder).__name__} does not encode: leave"
            " out runhistory_encoder, or pass CostAndSecondsEncoder(scenario)."
        )
    if with_seconds and not isinstance(function, EIPerSecond | QuantileBound):
        raise ValueError(
            f"CostAndSecondsEncoder encodes seconds, which {type(function).__name__} does not"
            " use: pass EIPerSecond() or QuantileBound(), or CostEncoder(scenario)."
        )
    if with_seconds and not isinstance(model, SurrogateModel | MultiObjectiveModel):
        raise ValueError(
            f"{type(model).__name__} does not predict seconds: pass"
            " SurrogateModel(scenario.configspace), or a MultiObjectiveModel of a list of two."
        )
