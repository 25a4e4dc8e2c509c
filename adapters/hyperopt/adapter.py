"""Hyperopt as the core sees it."""

from automl_plugins.frameworks import Adapter

from ._pulls import arm_report
from .explain import member_trust, source_shares
from .memory import curves, read_task, write_history
from .replaying import optimizer
from .space import is_space

ADAPTER = Adapter(
    name="hyperopt",
    owns=lambda source: False,  # Hyperopt writes only pickles, which are not read
    is_space=is_space,
    curves=curves,
    read_task=read_task,
    read_tasks=lambda source, name=None: [read_task(source, name=name)],
    write_history=write_history,
    optimizer=optimizer,
    arm_report=arm_report,
    source_shares=source_shares,
    member_trust=member_trust,
)
