"""SMAC as the core sees it."""

from ConfigSpace import ConfigurationSpace

from automl_plugins.frameworks import Adapter

from .memory import curves, read_task, read_tasks, write_history
from .proposing import member_trust, source_shares
from .replaying import optimizer
from .trials import owns

ADAPTER = Adapter(
    name="smac",
    owns=owns,
    is_space=lambda thing: isinstance(thing, ConfigurationSpace),
    curves=curves,
    read_task=read_task,
    read_tasks=read_tasks,
    write_history=write_history,
    optimizer=optimizer,
    source_shares=source_shares,
    member_trust=member_trust,
)
