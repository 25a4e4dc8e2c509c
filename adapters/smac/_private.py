"""The only module that uses private parts of SMAC.

``tests/adapters/smac/test_smac_private.py`` fails loudly when one of these changes.
"""

from __future__ import annotations

import atexit
import json
import logging
import time
import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from inspect import GEN_CLOSED, getgeneratorstate, isgenerator
from itertools import chain
from typing import Any, Self

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace
from distributed.scheduler import KilledWorker
from smac import HyperparameterOptimizationFacade, RunHistory, Scenario
from smac.callback import Callback
from smac.initial_design import AbstractInitialDesign
from smac.intensifier.hyperband import Hyperband
from smac.intensifier.successive_halving import SuccessiveHalving
from smac.main.config_selector import ConfigSelector
from smac.main.exceptions import ConfigurationSpaceExhaustedException
from smac.main.smbo import SMBO
from smac.model.abstract_model import AbstractModel
from smac.runhistory import StatusType, TrialInfo, TrialValue
from smac.runner.abstract_runner import AbstractRunner
from smac.runner.dask_runner import DaskParallelRunner
from smac.utils.numpyencoder import NumpyEncoder

from automl_plugins.logs import hidden
from automl_plugins.spaces.values import (
    as_configuration,
    is_same_space,
    to_vector,
    values_of,
)

from .continuing import BEGUN, continuation

_logger = logging.getLogger("smac.automl_plugins")

#: Seconds to wait for Dask to restart a worker when there is none.
_PATIENCE = 300

#: Beginnings of the origins of configurations that come after the initial design.
_SEARCHED = ("Proposer: ", "Acquisition Function Maximizer", "Random Search")

_WARNINGS: tuple[tuple[type[Warning], str], ...] = (
    # AbstractInitialDesign.meta calls Configuration.get_dictionary
    (DeprecationWarning, "Please use `dict"),
    # LocalSearch logs the mean duration of evaluations, even if there are none
    (RuntimeWarning, "Mean of empty slice"),
    (RuntimeWarning, "invalid value encountered in scalar divide"),
)


def scenario_of(smbo: SMBO) -> Scenario:
    """The scenario, which callbacks do not get."""
    return smbo._scenario


def space_of(model: AbstractModel) -> ConfigurationSpace:
    """The search space of a model, which acquisition functions do not get."""
    return model._configspace


class Model(AbstractModel):
    """A model also for spaces whose types SMAC cannot compute: with a normal or beta child."""

    def __init__(self, configspace: ConfigurationSpace, *args: Any, **options: Any) -> None:
        try:
            super().__init__(configspace, *args, **options)
        except ValueError:
            # Without conditions SMAC can compute the types; here it only checks their number.
            # The space itself is kept, because acquisition functions sample from it.
            unconditional = ConfigurationSpace()
            unconditional.add(configspace.values())
            super().__init__(unconditional, *args, **options)
            self._configspace = configspace


class Selector(ConfigSelector):
    """A config selector that needs neither a model nor an acquisition function.

    Other parts of a facade are accepted and ignored.
    """

    def __init__(self, scenario: Scenario, **options: Any) -> None:
        super().__init__(scenario, **options)
        self.scenario = scenario

    def _set_components(  # type: ignore[override]
        self,
        initial_design: AbstractInitialDesign,
        runhistory: RunHistory,
        callbacks: list[Callback] | None = None,
        **others: Any,
    ) -> None:
        self._runhistory = runhistory
        self._callbacks = [] if callbacks is None else callbacks
        self._initial_design_configs = initial_design.select_configurations()
        # SMBO.update_model and update_acquisition_function replace these.
        self._model = others.get("model")
        self._acquisition_function = others.get("acquisition_function")
        self._acquisition_maximizer = others.get("acquisition_maximizer")

    @property
    def initial_configurations(self) -> list[Configuration]:
        """The configurations of the initial design, which come first."""
        return self._initial_design_configs

    @property
    def runhistory(self) -> RunHistory:
        """The run history of the selector's facade; RuntimeError without a facade."""
        if self._runhistory is None:
            raise RuntimeError(
                "This config selector has no facade yet: pass it as config_selector= first."
            )
        return self._runhistory

    def begin(self) -> None:
        """Tell the callbacks that the search for a configuration begins."""
        self._call_callbacks_on_start()

    def end(self, config: Configuration) -> None:
        """Tell the callbacks which configuration was found."""
        self._call_callbacks_on_end(config)


class Facade(HyperparameterOptimizationFacade):
    """A facade whose search outlives its Dask workers and interruptions."""

    def _get_optimizer(self) -> SMBO:
        if isinstance(self._runner, DaskParallelRunner):
            self._runner = DaskRunner.replacing(self._runner)
        # Made here, because SMAC's constructor calls this method.
        self._asked: list[TrialInfo] = []
        return _Loop(
            self._asked,
            scenario=self._scenario,
            runner=self._runner,
            runhistory=self._runhistory,
            intensifier=self._intensifier,
            overwrite=self._overwrite,
        )

    def ask(self) -> TrialInfo:
        """SMAC's next trial; the caller evaluates it."""
        self._asked.append(trial := super().ask())
        return trial


class _Loop(SMBO):
    """SMAC's loop, except that interruptions lose nothing.

    * Trials that were interrupted come first; SMAC leaves them running. Trials that were ``asked``
      for, or that workers of Dask still run, do not count as interrupted.
    * A search that was interrupted while it looked for a configuration looks again; SMAC ends it.
    * A search without trials left ends at once; SMAC looks at the limit after one more trial.
    * A run continues also with other limits or workers, in a folder that was moved, and after its
      memory has changed (see ``continuing``); SMAC asks at the keyboard what to do with it.
    """

    def __init__(self, asked: list[TrialInfo], **parts: Any) -> None:
        # First, because SMAC's constructor calls ``reset`` if it continues a run.
        self._asked = asked
        self._again: list[TrialInfo] = []
        self._interrupted = False  # while it looked for a configuration
        super().__init__(**parts)
        self._trials = self._trial_generator  # the intensifier's, without ``_take``

    def _initialize_state(self) -> None:
        """Continue the run in the folder if ``continuation`` allows it; else as SMAC does."""
        scenario, found = self._scenario, None
        if not self._overwrite and self.exists(folder := scenario.output_directory):
            known = Scenario.load(folder)
            # SMAC can write numbers of numpy, such as a default, but cannot compare them.
            scenario.meta.update(json.loads(json.dumps(scenario.meta, cls=NumpyEncoder)))
            # Spaces are compared here: ``save`` writes the space, but SMAC does not compare it. A
            # pickled space equals the stored one only after it has been written and read, too.
            written = ConfigurationSpace.from_serialized_dict(
                scenario.configspace.to_serialized_dict()
            )
            same_space = is_same_space(written, known.configspace)
            if same_space and scenario != known:
                found = continuation(scenario, known)
            if found is not None:
                scenario.meta[BEGUN] = found.begun
                # Saved, because SMAC compares them again, and asks at the keyboard if they differ.
                if scenario != known:
                    scenario.save()
        super()._initialize_state()
        if found is not None and found.design is not None:
            _logger.info("The suggestions are others than when the run began: it keeps its own.")
            self._intensifier.config_selector._initial_design_configs = found.design
        if found is not None and found.resized:
            origins = [config.origin or "" for config in self._runhistory.get_configs()]
            if any(origin.startswith(_SEARCHED) for origin in origins):
                # The initial design has been evaluated. One of another size may have other points.
                self._intensifier.config_selector._initial_design_configs = []
        # It may have been saved as finished within lower limits.
        self._finished = self._finished and self.budget_exhausted

    def load(self) -> None:
        """Load the run as SMAC does, and let Hyperband promote before it fills a bracket."""
        super().load()
        if isinstance(self._intensifier, SuccessiveHalving):
            # A stage whose trials have all ended promotes at once, but SMAC looks only into stages
            # that its tracker, which makes what is asked of it, has had from the beginning.
            tracker = self._intensifier._tracker
            for bracket, stage in [*tracker]:
                tracker[bracket, stage + 1]

    @property
    def remaining_trials(self) -> int:
        """SMAC's number plus the interrupted trials, which SMAC counts as submitted."""
        return super().remaining_trials + len(self._again)

    def reset(self) -> None:
        """Forget all trials, as SMAC does; the selector begins anew, too."""
        # SMAC's setter asks the selector for a new iterator.
        self._intensifier.config_selector = self._intensifier.config_selector
        super().reset()
        self._trials = self._trial_generator
        self._asked.clear()
        self._again.clear()

    def ask(self) -> TrialInfo:
        """SMAC's next trial, also after an interruption."""
        intensifier = self._intensifier
        if self._interrupted:
            if _is_closed(intensifier.config_generator):  # SMAC's setter makes a new one
                intensifier.config_selector = intensifier.config_selector
            self._trials = iter(intensifier)
            self._trial_generator = chain(self._take(), self._trials)
            self._interrupted = False
        bracket = intensifier._next_bracket if isinstance(intensifier, Hyperband) else 0
        try:
            return super().ask()
        except (StopIteration, ConfigurationSpaceExhaustedException):
            raise
        except BaseException:
            # An exception closes the generators that it passes: to SMAC they look exhausted. An
            # exception of a callback passes none.
            self._interrupted = _is_closed(self._trials)
            # Hyperband has counted the bracket that the selector was about to fill.
            if isinstance(intensifier, Hyperband) and _is_closed(intensifier.config_generator):
                intensifier._next_bracket = bracket
            raise

    def tell(self, info: TrialInfo, value: TrialValue, save: bool = True) -> None:
        """Take a result, also one of a copy of the trial that was asked for."""
        super().tell(replace(info, config=self._own(info.config)), value, save)

    def _own(self, config: Configuration) -> Configuration:
        """The configuration by which the run knows the values; for new ones ``config`` itself.

        Equal values may be two configurations for SMAC, which loses trials when it reads such a
        run. Choices hash otherwise in a configuration that is made of values, as those of a run
        that was read are; and ConfigSpace finds pickled ones unequal if the space has integers on
        a log scale or normal distributions.
        """
        values, space, known = dict(config), self._configspace, self._runhistory.has_config
        if known(config):
            return config
        made = as_configuration(space, to_vector(space, values))
        try:
            read = Configuration(space, values_of(made))
        except ValueError:  # it is not of this space
            return config
        if dict(made) != values:
            return config
        made.origin = config.origin
        return next(filter(known, [made, read]), config if made == config else made)

    def optimize(self, **options: Any) -> Configuration | list[Configuration]:
        """Evaluate the interrupted trials, then continue as SMAC does."""
        if not self._intensifier.uses_cutoffs:  # a run history does not store cutoffs
            runner = self._runner
            others = [*self._asked, *(runner.submitted if isinstance(runner, DaskRunner) else [])]
            running = self._runhistory.get_running_trials()
            self._again = [trial for trial in running if trial not in others]
            self._trial_generator = chain(self._take(), self._trial_generator)
        if self.remaining_trials <= 0 and not self._finished:
            # Interrupted at its very end, or limited to fewer trials than it has.
            self._trial_generator = iter(())
        return super().optimize(**options)

    def validate(self, config: Configuration, *, seed: int | None = None) -> Any:
        """The mean cost, as in SMAC; unlike SMAC this waits for the workers of Dask."""
        if not isinstance(self._runner, DaskRunner):
            return super().validate(config, seed=seed)
        seed = self._scenario.seed if seed is None else seed
        trials = self._intensifier.get_trials_of_interest(config, validate=True, seed=seed)
        return np.mean([value.cost for value in self._runner.evaluate(trials)], axis=0)

    def _take(self) -> Iterator[TrialInfo]:
        while self._again:
            yield self._again.pop(0)


def _is_closed(generator: Iterator[Any]) -> bool:
    """Whether a generator has ended, by itself or by an exception."""
    return isgenerator(generator) and getgeneratorstate(generator) == GEN_CLOSED


class _Surviving:
    """A worker whose trials also count as crashed if they raise a ``BaseException``.

    Dask never ends the future of a trial that panics, in a Rust library for example. A trial that
    calls ``sys.exit()`` would end the worker, and then three more on which Dask retries it.
    """

    def __init__(self, runner: AbstractRunner) -> None:
        self._runner = runner
        self.run = runner.run

    def run_wrapper(self, trial_info: TrialInfo, **data: Any) -> tuple[TrialInfo, TrialValue]:
        """Run a trial, see ``AbstractRunner``."""
        began = time.time()
        try:
            return self._runner.run_wrapper(trial_info, **data)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return trial_info, _make_crashed(self._runner._crash_cost, began, error)


def _make_crashed(cost: Any, began: float, error: BaseException) -> TrialValue:
    """The result of a trial that did not return one, ended now."""
    ended = time.time()
    return TrialValue(
        cost=cost,
        time=ended - began,
        status=StatusType.CRASHED,
        starttime=began,
        endtime=ended,
        additional_info={"error": repr(error)},
    )


class DaskRunner(DaskParallelRunner):
    """SMAC's runner on Dask, except that a trial that killed its worker counts as crashed.

    SMAC's own runner ends the search with Dask's ``KilledWorker`` and leaves the trial running,
    waits without end for a trial that raises a ``BaseException`` (see ``_Surviving``), gives new
    workers five seconds to start, and at the end of Python closes its client after Dask has closed
    it, which takes a minute.
    """

    @classmethod
    def replacing(cls, runner: DaskParallelRunner) -> Self:
        """A runner that takes over the workers of another, which must not be used any more."""
        new = cls(runner._single_worker, runner._patience, dask_client=runner._client)
        new._single_worker = _Surviving(runner._single_worker)  # type: ignore[assignment]
        # Else the old runner, when it is collected, closes the client of the new one.
        new._close_client_at_del, runner._close_client_at_del = runner._close_client_at_del, False
        new._scheduler_file = runner._scheduler_file
        new._submitted = {}
        # By a weak reference, so that a runner that nobody uses any more is collected.
        # Registered after Dask's own exit function, so called before it.
        atexit.register(_close, weakref.ref(new))
        return new

    _submitted: dict[Any, tuple[TrialInfo, float]]  # by key of the future: trial, Unix time

    @property
    def submitted(self) -> list[TrialInfo]:
        """The trials whose results the search has not been told yet."""
        # An interrupted search leaves results in the queue, which come first when it continues.
        waiting = [info for info, _ in self._results_queue]
        return [*waiting, *(info for info, _ in self._submitted.values())]

    @property
    def meta(self) -> dict[str, Any]:
        """The ``meta`` of SMAC's own runner, so that each can continue a run of the other."""
        return {"name": DaskParallelRunner.__name__}

    def submit_trial(self, trial_info: TrialInfo, **data: Any) -> None:
        """Submit a trial once a worker is free.

        Raises:
            TimeoutError: If no worker is restarted within five minutes.
        """
        while self.is_running() and self.count_available_workers() <= 0:
            self.wait()
            self._process_pending_trials()
        if self.count_available_workers() <= 0:
            self._client.wait_for_workers(1, timeout=_PATIENCE)
        # Not by SMAC's method, which counts the workers once more and raises if the last one has
        # died since; Dask holds the trial until there is a worker.
        trial = self._client.submit(self._single_worker.run_wrapper, trial_info=trial_info, **data)
        self._pending_trials.append(trial)
        self._submitted[trial.key] = trial_info, time.time()

    def evaluate(self, trials: Sequence[TrialInfo]) -> list[TrialValue]:
        """The results of trials that are not part of the search."""
        run = self._single_worker.run_wrapper
        futures = [self._client.submit(run, trial_info=trial) for trial in trials]
        return [future.result()[1] for future in futures]

    def _process_pending_trials(self) -> None:
        for future in [future for future in list[Any](self._pending_trials) if future.done()]:
            info, began = self._submitted[future.key]
            try:
                # Not with the trial's copy: SMAC may not know its costs, see ``_Loop._own``.
                result = info, future.result()[1]
            except KilledWorker as error:
                _logger.warning(f"A trial that killed its worker is treated as CRASHED: {error}")
                result = info, _make_crashed(self._crash_cost, began, error)
            self._results_queue.append(result)
            self._pending_trials.remove(future)
        pending = {future.key for future in self._pending_trials}
        self._submitted = {k: v for k, v in self._submitted.items() if k in pending}


def _close(reference: weakref.ref[DaskRunner]) -> None:
    runner = reference()
    if runner is not None:
        runner.close()


@contextmanager
def quiet() -> Iterator[None]:
    """Hide SMAC's log and the warnings that it causes: a replay runs hundreds of searches."""
    with hidden("smac", logging.ERROR), warnings.catch_warnings():
        for category, message in _WARNINGS:
            warnings.filterwarnings("ignore", message, category)
        yield
