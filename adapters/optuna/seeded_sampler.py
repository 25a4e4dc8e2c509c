"""Base classes of samplers and the pruner: seed, measured time and caches of studies."""

from __future__ import annotations

import copy
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, Self, TypeVar

from optuna.logging import get_logger
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from automl_plugins._arguments import ShowsArguments
from automl_plugins.streams import Streams

from . import _private

K = TypeVar("K")
V = TypeVar("V")

_logger = get_logger("optuna.automl_plugins")

_MAX_STUDIES = 16  # studies remembered by one sampler, each with all of its trials
_MAX_TRIALS = 1024  # trials remembered: where another process tells, nothing takes them out
#: Arguments of Optuna's own samplers that none of ours takes, and what to use instead.
NOT_OURS = {
    "constraints_func": "constraints are set in the objective: trial.set_constraint (Optuna 5)"
}


class Cache(dict[K, V]):
    """A dictionary that is empty when it is copied or unpickled.

    Keys contain ``id``s of objects, which are invalid in another process. There is no lock: each
    step is one operation of a dictionary, and threads that make the same entry make equal ones.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()

    def __setitem__(self, key: K, value: V) -> None:
        """Set the entry of a trial; the oldest entries are dropped."""
        super().__setitem__(key, value)
        # A list, for other threads may add entries meanwhile, or have dropped these.
        for old in list(self)[:-_MAX_TRIALS] if len(self) > _MAX_TRIALS else ():
            self.pop(old, None)

    def of(self, key: K, make: Callable[[], V]) -> V:
        """The entry of a study, made if it is new; the oldest studies are dropped."""
        found = self.get(key)
        if found is None:
            # If two threads make an entry at once, both get the first.
            found = self.setdefault(key, make())
            for old in list(self)[:-_MAX_STUDIES]:
                self.pop(old, None)
        return found


class WithSeed(ShowsArguments):
    """A sampler or pruner with a seed.

    Args:
        seed: Non-negative integer; None draws one and logs it.
    """

    def __init__(self, seed: int | None) -> None:
        self._streams = Streams(seed)
        if seed is None:
            _logger.info(f"{self} drew seed={self.seed}; pass it to repeat the search.")

    @property
    def seed(self) -> int:
        """The seed in use."""
        return self._streams.seed


class SeededSampler(WithSeed, BaseSampler):
    """A sampler of one objective with a seed, which measures its own time."""

    def __init__(self, seed: int | None) -> None:
        super().__init__(seed)
        self._refused: Cache[_private.StudyKey, bool] = Cache()  # a trial raised a ValueError
        self._overheads: Cache[tuple[Any, ...], float] = Cache()  # seconds, see ``_clocked``
        self._unstored: Cache[_private.StudyKey, bool] = Cache()  # seconds were lost
        # Held by the thread that proposes. Its proposer may run a study by the same sampler.
        self._turn = RLock()

    def __getstate__(self) -> dict[str, Any]:
        # Locks are not pickled.
        return {name: value for name, value in self.__dict__.items() if name != "_turn"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _turn=RLock())

    def with_seed(self, seed: int) -> Self:
        """The same sampler with another seed; both have the same caches and the same turn."""
        other = copy.copy(self)
        other._streams, other._turn = Streams(seed), self._turn
        return other

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Check the settings again if the last trial was refused; then this trial fails.

        Samplers are called within the objective, where ``catch=`` of ``Study.optimize`` holds: a
        setting that does not fit the study would fail each trial. This event is outside of it.
        """
        # If all values of the trial are held, no more time is measured.
        self._overheads[_moment(study, trial)] = 0.0
        # Inside an arm this is called within the objective, where an error ends the trial anyway.
        within = isinstance(study, _private.ArmStudy)
        if self._refused.pop(_private.study_key(study), False) and not within:
            try:
                self._refuse_multi_objective(study)
                self._check_settings(study, trial)
            except ValueError:
                _private.write_failure(study, trial)
                raise

    @abstractmethod
    def _check_settings(self, study: Study, trial: FrozenTrial) -> None:
        """Raise the ValueError that each trial of the study would raise, if there is one."""

    @contextmanager
    def _clocked(self, study: Study, trial: FrozenTrial) -> Iterator[None]:
        """Add the time spent to the trial's overhead, which is not a cost of the objective.

        A ValueError, such as that for several objectives, is remembered: see ``before_trial``.
        """
        start = time.perf_counter()
        try:
            self._refuse_multi_objective(study)
            yield
        except ValueError:
            self._refused[_private.study_key(study)] = True
            raise
        finally:
            key = _moment(study, trial)
            spent = time.perf_counter() - start
            self._overheads[key] = self._overheads.get(key, 0.0) + spent

    def _store_overhead(self, study: Study, trial: FrozenTrial) -> None:
        """Store the time of a trial; if the storage fails, warn once in each study.

        No ``catch=`` of ``Study.optimize`` holds here, and the trial is worth more than its cost.
        """
        overhead = self._overheads.pop(_moment(study, trial), None)
        if overhead is None:
            # Another object proposed the trial. Its seconds stay unknown, for example if it was
            # failed by hand after its worker died.
            if not _private.has_overhead(trial):
                return
            overhead = 0.0  # replaces the dead trial's, which a retry copies
        try:
            _private.write_overhead(study, trial, overhead)
        except Exception as error:  # of any storage
            key = _private.study_key(study)
            if key not in self._unstored:
                self._unstored[key] = True
                _logger.warning(
                    f"{self}: the {overhead:.3g} seconds that were spent on proposing trial"
                    f" {trial.number} could not be stored, and may count as the objective's:"
                    f" {error!r}. Further failures of this kind are not logged."
                )

    def _refuse_multi_objective(self, study: Study) -> None:
        if len(study.directions) > 1:
            raise ValueError(
                f"{type(self).__name__} optimises one objective, the study has"
                f" {len(study.directions)}: directions={[d.name for d in study.directions]}. Use"
                " NSGAIISampler or TPESampler for several."
            )


def check_parameter(name: Any) -> None:
    """Raise a TypeError for the name of a parameter that is no text, which Optuna lets pass."""
    if not isinstance(name, str):
        raise TypeError(
            f"The name of a parameter must be a text, got {name!r}: pass {str(name)!r} to"
            " trial.suggest_float, or whichever asks for it."
        )


def _moment(study: Study, trial: FrozenTrial) -> tuple[Any, ...]:
    """Key of a trial, equal for all ``Study`` objects of a study: one may ask, another tell."""
    return study.study_name, trial.number, trial.datetime_start
