"""Storages that are far away, or that show nothing of running trials."""

from __future__ import annotations

import copy
import time
from collections.abc import Container
from typing import Any

from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial, TrialState

STATEMENTS = (
    "create_new_trial",
    "get_all_trials",
    "set_trial_param",
    "set_trial_state_values",
    "set_trial_system_attr",
    "set_trial_user_attr",
)


class SlowStorage(InMemoryStorage):
    """In memory, but every statement takes a while.

    Args:
        seconds: Time of a statement.
    """

    def __init__(self, seconds: float = 0.01) -> None:
        super().__init__()
        self._seconds = seconds

    def __getattribute__(self, name: str) -> Any:
        method = super().__getattribute__(name)
        if name not in STATEMENTS:
            return method

        def delayed(*args: Any, **options: Any) -> Any:
            time.sleep(self._seconds)
            return method(*args, **options)

        return delayed


class UnpublishedStorage(InMemoryStorage):
    """Shows no value of running trials: what workers see that ask at one moment."""

    def get_all_trials(
        self,
        study_id: int,
        deepcopy: bool = True,
        states: Container[TrialState] | None = None,
    ) -> list[FrozenTrial]:
        found = super().get_all_trials(study_id, deepcopy, states)
        return [_bare(trial) if trial.state == TrialState.RUNNING else trial for trial in found]


def _bare(trial: FrozenTrial) -> FrozenTrial:
    bare = copy.copy(trial)
    bare.params, bare.distributions, bare.system_attrs = {}, {}, {}
    return bare
