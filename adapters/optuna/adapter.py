"""Optuna as the core sees it."""

from automl_plugins.frameworks import Adapter

from ._sources import read_tasks
from .explain import arm_report, member_trust, source_shares
from .memory import curves, read_task, write_history
from .replaying import optimizer
from .space import is_space
from .studies import owns

ADAPTER = Adapter(
    name="optuna",
    owns=owns,
    is_space=is_space,
    curves=curves,
    read_task=read_task,
    read_tasks=read_tasks,
    write_history=write_history,
    optimizer=optimizer,
    arm_report=arm_report,
    source_shares=source_shares,
    member_trust=member_trust,
)
