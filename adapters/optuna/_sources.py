"""What samplers learn from: studies, or a memory. A study is left out of its own sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.logging import get_logger
from optuna.storages import BaseStorage
from optuna.study import Study

from automl_plugins._arguments import describe
from automl_plugins.addresses import file_of, is_to_come, without_password
from automl_plugins.formats import one_line
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.memories import (
    AUTO,
    Known,
    Memory,
    TaskMemory,
    hint_of_kind,
    read_memory,
    recorded_space,
)
from automl_plugins.meta.recognition import RecognisedMemory
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.spaces.values import to_values

from ._foresight import Foresight
from .memory import Studies, key_of, named_studies, read_study, task_name
from .space import Distributions, distributions_of, space_of_trials
from .trials import STORE, STUDIES, finished_trials, owns, tables_of

_logger = get_logger("optuna.automl_plugins")

#: Studies, as ``meta_dataset_from_studies`` takes them, or a memory.
AnySources = Studies | Memory | RecognisedMemory


@dataclass(frozen=True)
class Sources:
    """Earlier tasks, the search space expected from them, and their names by mark of the study."""

    memory: TaskMemory | RecognisedMemory
    foresight: Foresight
    marks: Mapping[str, str]

    def without(self, study: Study) -> TaskMemory | RecognisedMemory:
        """The memory without the study itself; logged if it was there."""
        itself = {task_name(study), self.marks.get(_mark(study), "")}
        if isinstance(self.memory, TaskMemory):
            itself &= set(self.memory.names)
            if itself:
                _logger.info(
                    f"Study {study.study_name!r} is one of its own sources; tasks left out:"
                    f" {', '.join(sorted(itself))}."
                )
        return self.memory.without(itself)


def read_sources(sources: AnySources | None, task: str | None = None) -> Sources:
    """Read the argument ``memory`` of a sampler, without the runs of ``task``.

    Raises:
        TypeError: For an object without tasks.
        ValueError: For a path or address that does not exist, or studies of several objectives.
        MemoryMismatch: If there is nothing to learn from, unless a place is still filling up.
    """
    marks: dict[str, str] = {}
    if isinstance(sources, str) and sources == AUTO:
        sources = RecognisedMemory(logger=_logger)
    if isinstance(sources, RecognisedMemory):
        own = sources.without(() if task is None else {task})
        own.growing = True  # conditions are found out by the trials
        return Sources(own, Foresight({}, ()), marks)
    of_storage = _are_stored(sources)
    if of_storage is not None:
        records, distributions, marks = _of_studies(sources, of_storage)  # type: ignore[arg-type]
        memory = TaskMemory(records, task=task, growing=True, filling=of_storage, logger=_logger)
    elif isinstance(sources, Mapping):
        raise TypeError(f"memory by name must be optuna studies, got {describe(sources)}.")
    else:
        try:
            memory = TaskMemory(sources, task=task, growing=True, logger=_logger)  # type: ignore[arg-type]
        except TypeError:
            raise TypeError(
                "memory must be optuna studies (one, several, or by name), a storage or its"
                " address (one or several), or a memory: a MetaDataset, a MetaStore, its path or"
                " address, records of tasks, the name of a bundled one, or 'auto'. Got"
                f" {describe(sources)}.{hint_of_kind(sources)}"
            ) from None
        space = recorded_space(memory.known)  # None if they are unknown or contradictory
        distributions = {} if space is None else distributions_of(space)
    tasks: list[Sequence[Mapping[str, Any]]]
    if isinstance(known := memory.known, MetaDataset):
        tasks = [to_values(known.space, known.distinct[0])]
    else:
        tasks = [record.configurations for record in known]
    return Sources(memory, Foresight(distributions, tasks), marks)


def read_known(memory: AnySources | None) -> Known:
    """``read_memory``, which takes a storage of studies, and its address, too."""
    of_storage = _are_stored(memory)
    if of_storage is None:
        return read_memory(memory)  # type: ignore[arg-type]
    return _of_studies(memory, of_storage)[0]  # type: ignore[arg-type]


def _are_stored(sources: Any) -> bool | None:
    """Whether studies come from a storage, in which the user has not picked them.

    None if there are no studies among the sources.
    """
    if isinstance(sources, str):
        return True if owns(sources) and not _is_store(sources) else None
    if isinstance(sources, Study | BaseStorage):
        return isinstance(sources, BaseStorage)
    if isinstance(sources, Mapping):
        return False if all(isinstance(study, Study) for study in sources.values()) else None
    found = map(_are_stored, sources) if isinstance(sources, Sequence) else ()
    # One of a storage is enough, for the user has not picked that one.
    return max((stored for stored in found if stored is not None), default=None)


def _is_store(address: str) -> bool:
    """Whether an address is a database of something else than studies, or not there yet.

    False for a journal, and for a database without tables, in which Optuna may make its own.
    """
    if "://" not in address:
        return False
    if is_to_come(address):  # TaskMemory says so
        return True
    import sqlalchemy as sa  # few sources are databases

    try:
        tables = tables_of(address)
    except sa.exc.DatabaseError as error:
        if file_of(address) is None:
            cause = one_line(str(error.orig))
            raise ValueError(
                f"memory={without_password(address)!r} cannot be read: {cause}."
            ) from None
        return True  # it is damaged, or no database: a store says so in plain words
    return bool(tables) and (STORE in tables or not tables >= STUDIES)


def _of_studies(
    sources: Studies, of_storage: bool
) -> tuple[list[TaskRecord], Distributions, dict[str, str]]:
    """Runs, the union of the distributions, and the name of the task by mark of the study.

    The user did not pick the studies ``of_storage``: unusable ones are left out, not refused.
    """
    records: list[TaskRecord] = []
    marks: dict[str, str] = {}
    found: dict[str, list[BaseDistribution]] = {}
    for name, study in named_studies(sources):
        if of_storage and len(study.directions) > 1:
            _logger.warning(f"Source {name!r} is left out: it has several objectives.")
            continue
        mark = _mark(study)
        if mark in marks:
            _logger.warning(f"Source {name!r} is left out: the same study was given before.")
            continue
        trials = finished_trials(study)
        if of_storage and not trials:  # such as the study itself, which has just been made
            continue
        records.append(read_study(study, name, space_of_trials(trials), trials=trials))
        if mark:
            marks[mark] = name
        for trial in trials:
            for parameter, distribution in trial.distributions.items():
                found.setdefault(parameter, []).append(distribution)
    return records, {n: d for n, ds in found.items() if (d := _widest(ds)) is not None}, marks


def _mark(study: Study) -> str:
    """Identity of a study in any storage; empty as long as it has no trial."""
    # A copy in another storage has another id, but the same name and first trial.
    trials = study.get_trials(deepcopy=False)
    return f"{study.study_name} {key_of(trials[0])}" if trials else ""


def _widest(distributions: Sequence[BaseDistribution]) -> BaseDistribution | None:
    """The distribution with all values of the given ones; None if they differ in kind."""
    # By their text, for those of choices that are lists have no hash.
    distinct: list[Any] = list({repr(d): d for d in distributions}.values())
    kind = type(distinct[-1])
    if len(distinct) == 1:
        return distributions[0]
    if any(type(d) is not kind for d in distinct):
        return None
    if kind is CategoricalDistribution:
        choices = [choice for d in distinct for choice in d.choices]
        return CategoricalDistribution(list({(type(c), str(c)): c for c in choices}.values()))
    wide = [d for d in distinct if not d.single()] or distinct
    low, high = min(d.low for d in distinct), max(d.high for d in distinct)
    # A range that had one value may lie below a logarithmic scale, or between the steps.
    log = low > 0 and all(d.log for d in wide)
    step = wide[0].step
    if log or any(d.step != step for d in wide):
        step = None
    elif step is not None:
        if any(abs(_on_steps(d.low, wide[0]) - d.low) > 1e-9 * step for d in distinct):
            step = None
        else:  # Optuna shortens a range that ends beside a step by a rounding error
            low, high = _on_steps(low, wide[0]), _on_steps(high, wide[0])
    if step is None and kind is IntDistribution:
        step = 1
    made: BaseDistribution = kind(low, high, log=log, step=step)
    return made


def _on_steps(value: float, grid: Any) -> float:
    """The nearest value on the steps of ``grid``, also beyond its ends, without rounding error."""
    numbers = (value, grid.low, grid.step)
    exact = [Fraction(n if isinstance(n, int) else f"{n:.15g}") for n in numbers]
    first, step = exact[1:]
    return type(value)(first + round((exact[0] - first) / step) * step)
