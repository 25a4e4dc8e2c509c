"""The only place that touches what SMAC does not promise to keep.

``tests/adapters/smac/test_smac_private.py`` fails loudly when one of these changes.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ConfigSpace import Configuration, ConfigurationSpace
from smac import RunHistory, Scenario
from smac.callback import Callback
from smac.facade.abstract_facade import AbstractFacade
from smac.initial_design import AbstractInitialDesign
from smac.main.config_selector import ConfigSelector
from smac.main.exceptions import ConfigurationSpaceExhaustedException
from smac.main.smbo import SMBO
from smac.model.abstract_model import AbstractModel
from smac.runhistory import TrialInfo

_WARNINGS: tuple[tuple[type[Warning], str], ...] = (
    # AbstractInitialDesign.meta calls Configuration.get_dictionary
    (DeprecationWarning, "Please use `dict"),
    # LocalSearch logs the mean duration of evaluations of which there may be none
    (RuntimeWarning, "Mean of empty slice"),
    (RuntimeWarning, "invalid value encountered in scalar divide"),
)


def next_trial(facade: AbstractFacade) -> TrialInfo | None:
    """What ``ask`` returns; None where SMAC has no further trial, for which it raises."""
    try:
        return facade.ask()
    except (StopIteration, ConfigurationSpaceExhaustedException):
        return None


def uses_budgets(facade: AbstractFacade) -> bool:
    """Whether trials are evaluated at a part of their budget."""
    return bool(facade.intensifier.uses_budgets)


def scenario_of(smbo: SMBO) -> Scenario:
    """The scenario, which callbacks are not told."""
    return smbo._scenario


def facade_name(meta: Mapping[str, Any]) -> str | None:
    """Name of the facade's class in the meta data of a scenario, None where it is not there."""
    name = meta.get("facade", {}).get("name")
    return None if name is None else str(name)


def space_of(model: AbstractModel) -> ConfigurationSpace:
    """The search space of a model, which acquisition functions are not told."""
    return model._configspace


class Selector(ConfigSelector):
    """A config selector that is told of the run and needs neither model nor acquisition.

    Whatever else a facade has is accepted and left alone.
    """

    def _set_components(  # type: ignore[override]
        self,
        initial_design: AbstractInitialDesign,
        runhistory: RunHistory,
        callbacks: list[Callback] | None = None,
        **others: Any,
    ) -> None:
        # A facade that sets up its log disables all loggers that exist.
        for name, logger in logging.root.manager.loggerDict.items():
            if name.startswith("automl_plugins") and isinstance(logger, logging.Logger):
                logger.disabled = False
        self._runhistory = runhistory
        self._callbacks = [] if callbacks is None else callbacks
        self._initial_design_configs = initial_design.select_configurations()
        # SMBO.update_model and update_acquisition_function exchange these.
        self._model = others.get("model")
        self._acquisition_function = others.get("acquisition_function")
        self._acquisition_maximizer = others.get("acquisition_maximizer")

    @property
    def scenario(self) -> Scenario:
        """The scenario it was made for."""
        return self._scenario

    @property
    def runhistory(self) -> RunHistory:
        """That of the facade it has been given to; RuntimeError before."""
        if self._runhistory is None:
            raise RuntimeError("This config selector has not been given to a facade.")
        return self._runhistory

    @property
    def initial_configurations(self) -> list[Configuration]:
        """What the facade's initial design has selected."""
        return self._initial_design_configs

    def begin(self) -> None:
        """Tell the callbacks that a configuration is looked for."""
        self._call_callbacks_on_start()

    def end(self, config: Configuration) -> None:
        """Tell the callbacks which one was found."""
        self._call_callbacks_on_end(config)


@contextmanager
def quiet() -> Iterator[None]:
    """Hide SMAC's log, for there are hundreds of searches, and the warnings that it provokes."""
    logger = logging.getLogger("smac")
    level = logger.level
    logger.setLevel(max(level, logging.ERROR))
    try:
        with warnings.catch_warnings():
            for category, message in _WARNINGS:
                warnings.filterwarnings("ignore", message, category)
            yield
    finally:
        logger.setLevel(level)
