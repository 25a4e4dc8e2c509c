"""Initial designs of SMAC from a memory of earlier tasks."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any, TypedDict, Unpack

from ConfigSpace import Configuration, ConfigurationSpace
from smac import Scenario
from smac.initial_design import AbstractInitialDesign, SobolInitialDesign

from automl_plugins._arguments import check_integer, check_kind, check_share, refuse_foreign
from automl_plugins.meta.designs import diverse, knn
from automl_plugins.meta.sources import Memory
from automl_plugins.meta.tasks import TaskDescription
from automl_plugins.meta.warm_start import (
    AnyDesign,
    WarmStart,
    advise,
    n_remaining,
    n_suggestions,
    name_of,
)
from automl_plugins.records.trial import finite_or_none
from automl_plugins.spaces.values import as_configuration, to_values

from .continuing import SUGGESTED
from .trials import adopt, check_configurations

_logger = logging.getLogger("smac.automl_plugins")

_MOST = 25  # suggestions by default, as in auto-sklearn
_SHARE = 0.25  # of the trials, as in SMAC's own designs


class MetaInitialDesign(AbstractInitialDesign):
    """The suggestions of a memory for the task, for ``initial_design=`` of any facade.

    All suggestions are made on construction, so a memory that does not fit is refused there.

    When a run is continued, the memory may suggest other configurations, because more has been
    recorded into it. ``GBQRFacade`` and ``AutoFacade`` then continue the run if its scenario has a
    name, and keep the suggestions with which it began. SMAC's own facades ask at the keyboard,
    unless the suggestions are made once and kept, see ``design``.

    Args:
        scenario: The scenario; its ``configspace`` is matched with the memory by names.
        memory: A ``MetaDataset``; a ``MetaStore``, its path or address; named facades, folders,
            records of tasks and searches of other frameworks, one or several; these or run
            histories by name of their task; or the name of a bundled memory. None for a ready
            ``Design``.
        X: The data of the task, from which meta-features are computed.
        y: Its target.
        meta_features: The task's meta-features, if X is not given. Without both all known tasks
            weigh the same. They are part of ``meta``: to continue a run, give the same ones.
        design: A design of ``automl_plugins.meta``, its name, or the ``Design`` it has returned,
            such as the ``suggestions`` of another ``MetaInitialDesign``, which may be pickled.
        mode: ``"add"``: suggestions, then the whole default design; ``"part"``: suggestions in
            place of its first configurations; ``"replace"``: suggestions only.
        n_configs: Number of suggestions; None takes the size of the default design, half of it
            for ``"add"`` and ``"part"``, at most 25.
        default: The design that suggestions are added to or replace; None takes the Sobol points
            of ``HyperparameterOptimizationFacade``. For another facade pass its
            ``get_initial_design(scenario)``.
        max_ratio: Share of the trials that suggestions and default design may take. None does not
            limit ``n_configs``, unlike SMAC's own designs, but warns if more than half of the
            trials are suggestions.
        additional_configs: Configurations that come last.
        seed: Seed of the default design; None takes the scenario's.
        exclude: Names of tasks of the memory to leave out, such as the task itself if its runs are
            recorded into the same store.

    Attributes:
        suggestions: The suggestions with scores and reasons, and notes on how they were made.

    Raises:
        TypeError: For a memory, design or default design of the wrong type.
        ValueError: For a memory that shares no hyperparameter with the space, an unknown design or
            mode, X without y, more configurations than trials, or additional ones that are not
            of the space.

    Example::

        design = MetaInitialDesign(scenario, memory=bundled("lightgbm"), X=X, y=y)
        print(design.suggestions)
        facade = HyperparameterOptimizationFacade(scenario, train, initial_design=design)
    """

    _number = "n_configs"  # the argument that is the number of suggestions

    def __init__(
        self,
        scenario: Scenario,
        memory: Memory | None,
        *,
        X: Any = None,
        y: Any = None,
        meta_features: TaskDescription = None,
        design: AnyDesign = diverse,
        mode: WarmStart = "part",
        n_configs: int | None = None,
        default: AbstractInitialDesign | None = None,
        max_ratio: float | None = None,
        additional_configs: list[Configuration] | None = None,
        seed: int | None = None,
        exclude: Collection[str] = (),
    ) -> None:
        check_kind(type(self).__name__, scenario, Scenario, "a Scenario first, then the memory")
        self._space = space = scenario.configspace
        ratio = 1.0 if max_ratio is None else max_ratio
        check_share("max_ratio", ratio)
        additional = _distinct(check_configurations(additional_configs or []), space)
        usual = _usual(scenario, default, seed)
        k = n_suggestions(mode, len(usual), n_configs)
        k = min(k, _MOST) if n_configs is None else k
        self.suggestions, _, task = advise(
            space, memory, k=k, X=X, y=y, task=meta_features, design=design, exclude=exclude
        )
        suggested = [as_configuration(space, s.vector) for s in self.suggestions]
        for config in suggested:
            config.origin = f"Initial Design: {self.suggestions.method}{SUGGESTED}"
        others = [config for config in usual if config not in suggested]
        rest = others[: n_remaining(mode, len(suggested), len(usual))]
        self._configs = [*suggested, *rest]
        more = [config for config in additional if config not in self._configs]
        n_additional = len(more) + scenario.use_default_config  # which SMAC adds to ``more``
        n = len(self._configs)
        if ratio < 1:  # as SMAC cuts it
            n = min(n, int(max(1, ratio * scenario.n_trials)))
        if n + n_additional > scenario.n_trials:
            raise ValueError(
                f"{len(suggested)} suggestions, {len(rest)} configurations of the default design"
                f" and {n_additional} additional ones are more than the {scenario.n_trials} trials"
                f" of the scenario: lower {self._number}, take another mode, or raise n_trials."
            )
        super().__init__(
            scenario,
            n_configs=len(self._configs),
            max_ratio=ratio,
            additional_configs=more,
            seed=seed,
        )
        if max_ratio is None and len(suggested) > max(1, scenario.n_trials / 2):
            _logger.warning(
                f"{len(suggested)} of the {scenario.n_trials} trials, more than half, are"
                f" suggestions of the memory. Lower {self._number}, or pass max_ratio=1 if that is"
                " meant."
            )
        described = {name: finite_or_none(value) for name, value in (task or {}).items()}
        # Nothing that one more run in the memory changes: no scores, reasons, notes or sizes.
        self._meta = {
            "name": type(self).__name__,
            "n_configs": self._n_configs,
            "additional_configs": _values(self._additional_configs),
            "default_configs": _values(rest),
            "seed": self._seed,
            "design": name_of(design),
            "mode": mode,
            "default": SobolInitialDesign.__name__ if default is None else type(default).__name__,
            "meta_features": described or None,
            "suggestions": [{"configuration": dict(s.configuration)} for s in self.suggestions],
        }

    @property
    def meta(self) -> dict[str, Any]:
        """What SMAC stores of the design; only builtins, as the name of a run is a hash of it."""
        return self._meta

    def select_configurations(self) -> list[Configuration]:
        """Suggestions, the rest of the default design, additional configurations; none twice."""
        return _distinct(super().select_configurations(), self._space)

    def _select_configurations(self) -> list[Configuration]:
        return self._configs[: self._n_configs]


class KNNOptions(TypedDict, total=False):
    """Arguments of ``MetaInitialDesign`` that ``KNNInitialDesign`` has too."""

    X: Any
    y: Any
    meta_features: TaskDescription
    default: AbstractInitialDesign | None
    max_ratio: float | None
    additional_configs: list[Configuration] | None
    seed: int | None
    exclude: Collection[str]


class KNNInitialDesign(MetaInitialDesign):
    """The best configuration of each of the k nearest tasks (Feurer 2015, auto-sklearn).

    Tasks are nearest by L1 distance of meta-features, see ``automl_plugins.meta.knn``; without
    meta-features the design is the greedy portfolio. As in auto-sklearn the suggestions replace
    the default design. auto-sklearn takes k = 25 for any budget, here at most a quarter of the
    trials are suggestions, unless ``k`` or ``max_ratio`` is given.

    Args:
        scenario: The scenario.
        memory: As in ``MetaInitialDesign``, such as a ``MetaStore``, records of tasks or the name
            of a bundled memory.
        k: Number of suggestions; no more than the scenario has trials. None takes a quarter of
            the trials, as SMAC's own designs do, or ``max_ratio`` of them: at least one, at most
            25.
        mode: How the default design is used.
        **options: The other arguments of ``MetaInitialDesign``; its errors apply, too.

    Example::

        design = KNNInitialDesign(scenario, "lightgbm", k=5, X=X, y=y)
        facade = HyperparameterOptimizationFacade(scenario, train, initial_design=design)
    """

    _number = "k"

    def __init__(
        self,
        scenario: Scenario,
        memory: Memory,
        *,
        k: int | None = None,
        mode: WarmStart = "replace",
        **options: Unpack[KNNOptions],
    ) -> None:
        name = type(self).__name__
        check_kind(name, scenario, Scenario, "a Scenario first, then the memory")
        known = ("k", "mode", *KNNOptions.__annotations__)
        refuse_foreign(name, options, known, {"design": "it is knn", "n_configs": "it is k"})
        if k is None:
            ratio = options.get("max_ratio")
            ratio = _SHARE if ratio is None else ratio
            check_share("max_ratio", ratio)
            k = max(1, min(_MOST, int(ratio * scenario.n_trials)))
        check_integer("k", k, 1)
        others = len(options.get("additional_configs") or ()) + scenario.use_default_config
        n = max(1, min(k, scenario.n_trials - others))
        super().__init__(scenario, memory, design=knn, mode=mode, n_configs=n, **options)


def _usual(
    scenario: Scenario, default: AbstractInitialDesign | None, seed: int | None
) -> list[Configuration]:
    """The configurations of the default design."""
    if default is None:
        default = SobolInitialDesign(scenario, seed=seed)
    if not isinstance(default, AbstractInitialDesign):
        raise TypeError(
            "default must be an initial design of SMAC, such as the facade's"
            f" get_initial_design(scenario), got {default!r}."
        )
    found = default.select_configurations()
    if any(config.config_space != scenario.configspace for config in found):
        raise ValueError(
            "default is an initial design for another search space: make it from this scenario."
        )
    return _distinct(found, scenario.configspace)


def _distinct(configs: list[Configuration], space: ConfigurationSpace) -> list[Configuration]:
    """Distinct configurations of ``space``, in canonical form: equal ones have equal hashes."""
    return list(dict.fromkeys(adopt(config, space) for config in configs))


def _values(configs: list[Configuration]) -> list[dict[str, Any]]:
    return [to_values(c.config_space, c.get_array()[None, :])[0] for c in configs]
