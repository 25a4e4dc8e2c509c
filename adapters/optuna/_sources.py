"""What samplers learn from: studies, or a memory. A study is left out of its own sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.logging import get_logger
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial

from automl_plugins._arguments import describe
from automl_plugins.addresses import (
    file_of,
    holds_studies,
    is_to_come,
    tables_of,
    without_password,
)
from automl_plugins.formats import one_line
from automl_plugins.meta.bundled_memories import LEARNERS
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.memories import TaskMemory
from automl_plugins.meta.recognition import RecognisedMemory
from automl_plugins.meta.sources import (
    AUTO,
    Known,
    Memory,
    hint_of_kind,
    log_left_out,
    named_sources,
    read_memory,
    read_source,
    recorded_space,
)
from automl_plugins.meta.tasks import check_task
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.spaces.values import to_values

from ._foresight import Foresight
from .callbacks import key_of
from .memory import Studies, read_study, read_task, task_name
from .space import Distributions, distributions_of, widest
from .studies import StudySource, finished_trials, one_study, owns, studies_in

_logger = get_logger("optuna.automl_plugins")

#: Studies, as ``meta_dataset_from_studies`` takes them, or a memory; both in one list or mapping.
AnySources = Studies | Memory | RecognisedMemory

# The beginnings of two messages; what was given follows.
_BY_NAME = (
    "memory by name must be optuna studies, searches of another framework or records of tasks, got"
)
_EXPECTED = (
    "memory must be optuna studies (one, several, or by name), a storage or its address (one or"
    " several), searches of another framework in the same forms, or a memory: a MetaDataset, a"
    " MetaStore, its path or address, records of tasks, the name of a bundled one, or 'auto'. Got"
)


@dataclass(frozen=True)
class Sources:
    """Earlier tasks, the search space expected from them, and names of tasks by ``_mark``."""

    memory: TaskMemory | RecognisedMemory
    foresight: Foresight
    marks: Mapping[str, str]

    def without(self, study: Study) -> TaskMemory | RecognisedMemory:
        """The memory without the study itself; logged if it was there."""
        read_as = _find(study, finished_trials(study), self.marks) if self.marks else None
        name = task_name(study)
        itself = set() if read_as is None else {read_as}
        # If a study of this name was read, its mark decides whether it is this one: another
        # storage may have a study of the same name. All runs of one table are one task.
        if name != study.study_name or name not in self.marks.values():
            itself.add(name)
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
        TypeError: For an object without tasks, and a task that is no name.
        ValueError: For a path or address that does not exist, or studies of several objectives.
        MemoryMismatch: If there is nothing to learn from, unless a place is still filling up.
    """
    check_task(task)
    if isinstance(sources, str) and sources == AUTO:
        sources = RecognisedMemory(logger=_logger)
    if isinstance(sources, RecognisedMemory):
        own = sources.without(() if task is None else {task})
        own.growing = True  # the trials show the conditions
        return Sources(own, Foresight({}, ()), {})
    if isinstance(sources, Iterator):
        sources = list(sources)  # read twice
    found = _read_studies(sources)
    tried, filling = (sources, False) if found is None else (found.records, found.filling)
    try:
        memory = TaskMemory(tried, task=task, growing=True, filling=filling, logger=_logger)  # type: ignore[arg-type]
    except TypeError:
        expected = _BY_NAME if isinstance(sources, Mapping) else _EXPECTED
        hint = hint_of_kind(sources)
        raise TypeError(f"{expected} {describe(sources)}.{hint}") from None
    tasks: list[Sequence[Mapping[str, Any]]]
    if isinstance(known := memory.known, MetaDataset):
        tasks = [to_values(known.space, known.distinct[0])]
    else:
        tasks = [record.configurations for record in known]
    if found is None:
        return Sources(memory, Foresight(_recorded_distributions(known), tasks), {})
    return Sources(memory, Foresight(found.distributions, tasks), found.marks)


def read_known(memory: AnySources | None) -> Known:
    """Like ``read_memory``, but studies are read as samplers read them."""
    if isinstance(memory, Iterator):
        memory = list(memory)
    found = _read_studies(memory)
    return read_memory(memory if found is None else found.records)  # type: ignore[arg-type]


def read_tasks(source: StudySource, *, name: str | None = None) -> list[TaskRecord]:
    """All studies of a source, each as a task; unusable ones of a storage are left out.

    Given a name, the source must be one study.
    """
    if name is not None:
        return [read_task(source, name=name)]
    found = _read_studies([source])
    return [read_task(source)] if found is None else found.records


@dataclass
class _Found:
    """The contents of sources that include studies."""

    filling: bool  # whether a source is a storage, whose studies the user has not picked
    records: list[TaskRecord] = field(default_factory=list)  # studies and other tasks, in order
    others: list[TaskRecord] = field(default_factory=list)  # those that are not studies
    # Name of each study's task by the ``_mark`` of the study's first finished trial.
    marks: dict[str, str] = field(default_factory=dict)
    asked: dict[str, list[BaseDistribution]] = field(default_factory=dict)  # by the studies

    def add_study(self, study: Study, name: str, *, picked: bool) -> None:
        """Add a study as a task, once; an unusable one is left out if it was not ``picked``."""
        if not picked and len(study.directions) > 1:
            log_left_out(_logger, name, "it has several objectives.")
            return
        trials = finished_trials(study)
        if _find(study, trials, self.marks) is not None:
            _logger.warning(f"Source {name!r} is left out: the same study was given before.")
            return
        if not picked and not trials:  # such as the study itself, which has just been made
            return
        self.records.append(read_study(study, name, trials=trials))
        if trials:
            self.marks[_mark(study, min(trials, key=lambda trial: trial.number))] = name
        for trial in trials:
            for parameter, distribution in trial.distributions.items():
                self.asked.setdefault(parameter, []).append(distribution)

    @property
    def distributions(self) -> Distributions:
        """By name, the union of the distributions of the studies and of the recorded spaces."""
        given = {name: list(asked) for name, asked in self.asked.items()}
        for name, distribution in _recorded_distributions(self.others).items():
            given.setdefault(name, []).append(distribution)
        return {n: d for n, each in given.items() if (d := widest(each)) is not None}


def _read_studies(sources: Any) -> _Found | None:
    """Read studies, and the sources given along with them; None if no source has studies.

    Unusable studies of a storage are left out; a study that is given itself is refused.
    """
    named = [(None, sources)] if isinstance(sources, str) else named_sources(sources) or []
    stored = [_is_stored(source) for _, source in named]
    if all(one is None for one in stored):
        return None
    found = _Found(any(stored))
    for (given, source), is_stored in zip(named, stored, strict=True):
        if is_stored is None:
            records = _read_other(source, given)
            found.records += records
            found.others += records
            continue
        for study in studies_in(source) if given is None else [one_study(source)]:
            name = task_name(study) if given is None else given
            found.add_study(study, name, picked=not is_stored)
    return found


def _read_other(source: Any, name: str | None) -> list[TaskRecord]:
    """The tasks of a source that is given along with studies; TypeError for any other object."""
    if (found := read_source(source, name)) is not None:
        return found
    if name is not None:
        raise TypeError(f"{_BY_NAME} {describe(source)} as {name!r}.")
    hint = hint_of_kind([source]) if isinstance(source, str) and source in LEARNERS else ""
    raise TypeError(
        "Expected optuna studies, a storage, its address or its journal file, records of tasks,"
        f" searches of another framework, or several of them, got {describe(source)}.{hint}"
    )


def _recorded_distributions(known: Known) -> Distributions:
    """The distributions of the recorded spaces; empty if these are unknown or contradictory."""
    space = recorded_space(known)
    return {} if space is None else distributions_of(space)


def _is_stored(source: Any) -> bool | None:
    """True for a storage or its address, False for a study; None for a source without studies."""
    if isinstance(source, str):
        return True if owns(source) and not _is_store(source) else None
    if isinstance(source, Study | BaseStorage):
        return isinstance(source, BaseStorage)
    return None


def _is_store(address: str) -> bool:
    """Whether an address is a database without studies, or does not exist yet.

    False for a journal, and for a database without tables, in which Optuna may create its own.
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
    return bool(tables) and not holds_studies(tables)


def _find(study: Study, trials: Iterable[FrozenTrial], marks: Mapping[str, str]) -> str | None:
    """The name under which a study with these finished trials was read; None if it was not."""
    # By any trial: one with a lower number may have ended since the study was read.
    known = (marks.get(_mark(study, trial)) for trial in trials)
    return next((name for name in known if name is not None), None)


def _mark(study: Study, trial: FrozenTrial) -> str:
    """Identity of a study in any storage, by one of its finished trials."""
    # Not by its id: a copy in another storage has another one, but the same name and trials. A
    # finished trial, as the key of a waiting one changes when it begins.
    return f"{study.study_name} {key_of(trial)}"
