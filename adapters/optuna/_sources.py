"""Sources of a transfer sampler, whatever they are given as: usable tasks by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.logging import get_logger
from optuna.storages import BaseStorage
from optuna.study import Study

from automl_plugins.addresses import check_exists
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.memories import Memory, TaskMemory
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.spaces.union import union_space
from automl_plugins.spaces.values import to_values

from ._foresight import Foresight
from .memory import Studies, read_record
from .space import distributions_of
from .trials import finished_trials, owns, studies_in

_logger = get_logger("optuna.automl_plugins")

#: Studies, as ``meta_dataset_from_studies`` takes them, or a memory.
AnySources = Studies | Memory
Distributions = dict[str, BaseDistribution]


@dataclass(frozen=True)
class Sources:
    """Earlier tasks, and what they tell of a search that has only begun.

    Attributes:
        memory: The tasks.
        foresight: What they tell of the search space.
        marks: Name of the task of each study, by what identifies the study.
    """

    memory: TaskMemory
    foresight: Foresight
    marks: Mapping[str, str] = field(default_factory=dict)

    def being(self, study: Study) -> set[str]:
        """Names of the tasks that are the study itself."""
        return {task_name(study), self.marks.get(_mark(study), "")} & set(self.memory.names)

    def __deepcopy__(self, memo: dict[int, Any]) -> Sources:
        return self  # nothing in it ever changes


def read_sources(sources: AnySources, task: str | None = None) -> Sources:
    """Read what was given, the runs of ``task`` left out.

    Raises:
        TypeError: For what holds no tasks.
        ValueError: For a path or address of nothing, or studies of several objectives.
        MemoryMismatch: If there is nothing to learn from.
    """
    marks: dict[str, str] = {}
    if _holds_studies(sources):
        records, distributions, marks = _of_studies(sources)  # type: ignore[arg-type]
        memory = TaskMemory(records, task=task, growing=True, logger=_logger)
    elif isinstance(sources, Mapping):
        raise TypeError(f"sources by name must be optuna studies, got {sources!r}.")
    else:
        try:
            memory = TaskMemory(sources, task=task, growing=True, logger=_logger)  # type: ignore[arg-type]
        except TypeError:
            raise TypeError(
                "sources must be optuna studies (one, several, or by name), a storage, or a"
                " memory: a MetaDataset, a MetaStore, its path or address, records of tasks, or"
                f" the name of a bundled one. Got {sources!r}."
            ) from None
        distributions = _expected(memory.known)
    known = memory.known
    tasks: list[Sequence[Mapping[str, Any]]]
    if isinstance(known, MetaDataset):
        tasks = [to_values(known.space, known.distinct[0])]
    else:
        tasks = [record.configurations for record in known]
    return Sources(memory, Foresight(distributions, tasks), marks)


def task_name(study: Study) -> str:
    """Name of a study's task."""
    return str(study.user_attrs.get("table", study.study_name))


# --- what is given ------------------------------------------------------------------------------


def _holds_studies(sources: Any) -> bool:
    if isinstance(sources, Study | BaseStorage):
        return True
    if isinstance(sources, Mapping):
        return all(isinstance(study, Study) for study in sources.values())
    if isinstance(sources, Sequence) and not isinstance(sources, str):
        return any(isinstance(study, Study) for study in sources)
    return isinstance(sources, str) and owns(sources) and not _is_store(sources)


def _is_store(address: str) -> bool:
    """Whether a database, as opposed to a journal, holds no studies.

    Raises:
        ValueError: If there is no such database.
    """
    if "://" not in address:
        return False
    engine = sa.create_engine(check_exists(address))
    try:
        return not {"studies", "trials"} <= set(sa.inspect(engine).get_table_names())
    finally:
        engine.dispose()


def _of_studies(
    sources: Studies,
) -> tuple[list[TaskRecord], Distributions, dict[str, str]]:
    """Runs, the union of the distributions, and the name of the task by mark of the study."""
    if isinstance(sources, Mapping):
        named = [(str(name), study) for name, study in sources.items()]
    else:
        named = [(task_name(study), study) for study in studies_in(sources)]
    records: list[TaskRecord] = []
    marks: dict[str, str] = {}
    found: dict[str, list[BaseDistribution]] = {}
    for name, study in named:
        trials = finished_trials(study)
        mark = _mark(study)
        if mark in marks:
            _logger.warning(f"Source {name!r} is left out: the same study was given before.")
            continue
        records.append(read_record(study, trials, name))
        if mark:
            marks[mark] = name
        for trial in trials:
            for parameter, distribution in trial.distributions.items():
                found.setdefault(parameter, []).append(distribution)
    return records, {n: d for n, ds in found.items() if (d := _widest(ds)) is not None}, marks


def _mark(study: Study) -> str:
    """Identifies a study wherever it is stored; empty as long as it has no trial."""
    trials = study.get_trials(deepcopy=False)
    first = trials[0] if trials else None
    return "" if first is None else f"{study.study_name} {first.datetime_start} {first.number}"


def _widest(distributions: Sequence[BaseDistribution]) -> BaseDistribution | None:
    """The distribution that holds all values of the given ones; None if they differ in kind."""
    distinct = list(dict.fromkeys(distributions))
    first = distinct[-1]
    if len(distinct) == 1:
        return first
    if any(type(d) is not type(first) for d in distinct):
        return None
    if isinstance(first, CategoricalDistribution):
        choices: list[Any] = []
        for distribution in distinct:
            assert isinstance(distribution, CategoricalDistribution)
            choices += [c for c in distribution.choices if all(c is not k for k in choices)]
        places = {(type(c).__name__, str(c)): c for c in choices}
        return CategoricalDistribution(list(places.values()))
    kind: type[Any] = type(first)
    wide = [d for d in distinct if not d.single()] or distinct
    low, high = min(d.low for d in distinct), max(d.high for d in distinct)  # type: ignore[attr-defined]
    log = all(d.log for d in wide)  # type: ignore[attr-defined]
    steps = {d.step for d in wide}  # type: ignore[attr-defined]
    same = len(steps) == 1 and all((d.low - low) % (d.step or 1) == 0 for d in wide)  # type: ignore[attr-defined]
    if isinstance(first, IntDistribution):
        return IntDistribution(low, high, log=log, step=steps.pop() if same and not log else 1)
    assert issubclass(kind, FloatDistribution)
    step = steps.pop() if same and not log else None
    return FloatDistribution(low, high, log=log, step=step)


def _expected(known: MetaDataset | list[TaskRecord]) -> Distributions:
    """Distributions of the recorded spaces; none where they are not known or contradictory."""
    try:
        return distributions_of(
            known.space if isinstance(known, MetaDataset) else union_space(known)
        )
    except ValueError:
        return {}
