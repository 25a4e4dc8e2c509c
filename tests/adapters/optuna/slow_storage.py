"""A storage as far away as a database server."""

from __future__ import annotations

import time
from typing import Any

from optuna.storages import InMemoryStorage

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
