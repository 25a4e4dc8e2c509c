"""Storages of every kind: in files, far away, or such that show nothing of running trials."""

from __future__ import annotations

import copy
import time
from collections.abc import Container
from pathlib import Path
from typing import Any

from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

PATIENCE = 600  # seconds; the machine may be busy
STATEMENTS = (
    "create_new_trial",
    "get_all_trials",
    "set_trial_param",
    "set_trial_state_values",
    "set_trial_system_attr",
    "set_trial_user_attr",
)


def storage_in(folder: Path, kind: str) -> BaseStorage:
    """A storage in memory, or one in a folder, which is opened again if it is there."""
    if kind == "sqlite":
        options = {"connect_args": {"timeout": PATIENCE}}
        return RDBStorage(f"sqlite:///{folder / 'study.db'}", engine_kwargs=options)
    if kind == "journal":
        return JournalStorage(JournalFileBackend(str(folder / "study.log")))
    return InMemoryStorage()


class SlowStorage(InMemoryStorage):
    """In memory, but every statement takes a hundredth of a second."""

    def __getattribute__(self, name: str) -> Any:
        method = super().__getattribute__(name)
        if name not in STATEMENTS:
            return method

        def delayed(*args: Any, **options: Any) -> Any:
            time.sleep(0.01)
            return method(*args, **options)

        return delayed


class ReusingStorage(InMemoryStorage):
    """Gives the id of a deleted study to the next one, as databases do."""

    def delete_study(self, study_id: int) -> None:
        super().delete_study(study_id)
        self._max_study_id = study_id - 1


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
