"""A study as the sampler of one arm sees it: only the trials of that arm.

Samplers read a study through its storage, so it is the storage that is filtered, and private
reads are as good as public ones. What samplers store for the whole study (a place in a
quasi-random sequence) is kept apart for every arm. With ``_private`` the only module that touches
what Optuna does not promise to keep; ``tests/adapters/optuna/test_private.py`` watches both.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Container
from typing import Any

from optuna.storages import BaseStorage
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

Belongs = Callable[[FrozenTrial], bool]


class ArmStorage:
    """A storage with the trials of one arm, everything else as it is.

    Args:
        storage: The storage.
        name: Name of the arm, for what is stored for the whole study.
        belongs: Whether a trial is one of the arm's.
    """

    def __init__(self, storage: BaseStorage, name: str, belongs: Belongs) -> None:
        self._storage = storage
        self._prefix = f"automl_plugins:{name}:"
        self._belongs = belongs

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_storage"], name)

    def get_all_trials(
        self,
        study_id: int,
        deepcopy: bool = True,
        states: Container[TrialState] | None = None,
    ) -> list[FrozenTrial]:
        """The arm's trials."""
        trials = self._storage.get_all_trials(study_id, deepcopy=False, states=states)
        return self.of_arm(trials, deepcopy)

    def of_arm(self, trials: list[FrozenTrial], deepcopy: bool) -> list[FrozenTrial]:
        """Those of ``trials`` that are the arm's, copied on demand."""
        own = [trial for trial in trials if self._belongs(trial)]
        return copy.deepcopy(own) if deepcopy else own

    def get_n_trials(
        self, study_id: int, state: TrialState | tuple[TrialState, ...] | None = None
    ) -> int:
        """Number of the arm's trials."""
        states = (state,) if isinstance(state, TrialState) else state
        return len(self.get_all_trials(study_id, deepcopy=False, states=states))

    def get_best_trial(self, study_id: int) -> FrozenTrial:
        """The arm's best complete trial.

        Raises:
            ValueError: If none is complete.
        """
        trials = self.get_all_trials(study_id, deepcopy=False, states=(TrialState.COMPLETE,))
        if not trials:
            raise ValueError("No trials are completed yet.")
        direction = self._storage.get_study_directions(study_id)[0]
        better = max if direction == StudyDirection.MAXIMIZE else min
        return better(trials, key=lambda trial: trial.values[0])

    def get_study_system_attrs(self, study_id: int) -> dict[str, Any]:
        """What the arm's sampler stored for the study, and what belongs to all."""
        stored = self._storage.get_study_system_attrs(study_id)
        common = {key: v for key, v in stored.items() if not key.startswith("automl_plugins:")}
        own = {key: v for key, v in stored.items() if key.startswith(self._prefix)}
        return common | {key.removeprefix(self._prefix): v for key, v in own.items()}

    def set_study_system_attr(self, study_id: int, key: str, value: Any) -> None:
        """Store under a key of the arm's own."""
        self._storage.set_study_system_attr(study_id, self._prefix + key, value)


class ArmStudy(Study):
    """A study, or one of its Hyperband brackets, with the trials of one arm.

    One object serves one trial of one thread: it keeps the trials it has listed.

    Args:
        study: As Optuna gave it to the sampler.
        storage: Its storage, filtered.
    """

    def __init__(self, study: Study, storage: ArmStorage) -> None:
        # Not through Study.__init__, which looks the study up in the storage again.
        self.study_name = study.study_name
        self.sampler = study.sampler
        self.pruner = study.pruner
        self._base = study
        self._storage: Any = storage
        self._study_id = study._study_id
        self._directions = study._directions
        self._bracket_id = getattr(study, "_bracket_id", -1)
        self._thread_local = type(study._thread_local)()
        self._stop_flag = False

    def get_trials(
        self, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        """The arm's trials, of the bracket if it is one."""
        trials = self._base.get_trials(deepcopy=False, states=states)
        own: list[FrozenTrial] = self._storage.of_arm(trials, deepcopy)
        return own

    def stop(self) -> None:
        """Nothing: a sampler that has nothing left to try ends its arm, not the study."""
