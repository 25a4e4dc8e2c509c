"""Sources of a transfer sampler, whatever they are given as: usable tasks by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
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

from automl_plugins.addresses import existing
from automl_plugins.meta.alignment import MemoryMismatch
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.memories import Memory, read_memory, store_of
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.records.trial import Status
from automl_plugins.spaces.union import union_space
from automl_plugins.spaces.values import to_values

from ._foresight import Foresight
from .memory import Studies, read_record
from .space import distributions_of
from .trials import finished_trials, owns, studies_in

if TYPE_CHECKING:
    from automl_plugins.meta.store import MetaStore

_logger = get_logger("optuna.automl_plugins")

#: Studies, as ``meta_dataset_from_studies`` takes them, or a memory.
AnySources = Studies | Memory
Distributions = dict[str, BaseDistribution]


@dataclass(frozen=True)
class Sources:
    """Earlier tasks that have something to tell.

    Attributes:
        known: Their runs.
        foresight: What they tell of the search space.
        store: The store that they come from, if any.
        marks: Name of the task of each study, by what identifies the study.
    """

    known: MetaDataset | list[TaskRecord]
    foresight: Foresight
    store: MetaStore | None = None
    marks: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tasks."""
        tasks = self.known.tasks if isinstance(self.known, MetaDataset) else self.known
        return tuple(dict.fromkeys(task.name for task in tasks))

    def being(self, study: Study) -> set[str]:
        """Names of the tasks that are the study itself."""
        return {task_name(study), self.marks.get(_mark(study), "")} & set(self.names)

    def without(self, names: set[str]) -> MetaDataset | list[TaskRecord]:
        """The runs of all other tasks.

        Raises:
            MemoryMismatch: If there is none.
        """
        if not set(self.names) - names:
            raise MemoryMismatch(
                f"There is no source but {', '.join(self.names)}, which is the task itself."
                " Pass studies of other tasks."
            )
        if isinstance(self.known, MetaDataset):
            return self.known.without(*names)
        return [record for record in self.known if record.name not in names]

    def __deepcopy__(self, memo: dict[int, Any]) -> Sources:
        return self  # nothing in it ever changes


def read_sources(sources: AnySources) -> Sources:
    """Read what was given; what tells nothing is left out, which is logged.

    Raises:
        TypeError: For what holds no tasks.
        ValueError: For a path or address of nothing, or studies of several objectives.
        MemoryMismatch: If nothing usable is left.
    """
    store = store_of(sources)
    if _holds_studies(sources):
        return _usable(*_of_studies(sources), store=None)  # type: ignore[arg-type]
    if isinstance(sources, Mapping):
        raise TypeError(f"sources by name must be optuna studies, got {sources!r}.")
    try:
        known = read_memory(sources)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            "sources must be optuna studies (one, several, or by name), a storage, or a memory: a"
            " MetaDataset, a MetaStore, its path or address, records of tasks, or the name of a"
            f" bundled one. Got {sources!r}."
        ) from None
    if isinstance(known, MetaDataset):
        distributions = distributions_of(known.space)
    else:
        distributions = _expected(known)
    return _usable(known, distributions, {}, store=store)


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
    engine = sa.create_engine(existing(address))
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


def _expected(records: Sequence[TaskRecord]) -> Distributions:
    """Distributions of the recorded spaces; none where they are not known or contradictory."""
    try:
        return distributions_of(union_space(records)) if records else {}
    except ValueError:
        return {}


# --- what tells something -----------------------------------------------------------------------


def _usable(
    known: MetaDataset | list[TaskRecord],
    distributions: Distributions,
    marks: Mapping[str, str],
    *,
    store: MetaStore | None,
) -> Sources:
    reasons = _useless(known)
    names = {task.name for task in (known.tasks if isinstance(known, MetaDataset) else known)}
    if not names - set(reasons):
        told = "".join(f" {name}: {why}." for name, why in list(reasons.items())[:5])
        raise MemoryMismatch(
            "There are no sources to learn from."
            f"{told} Pass finished studies of other tasks, each with several trials that differ"
            " in their value, or a memory of them."
        )
    if reasons:
        told = "; ".join(f"{name}: {why}" for name, why in list(reasons.items())[:10])
        more = len(reasons) - 10
        _logger.warning(
            f"{len(reasons)} of {len(names)} sources left out. {told}"
            + (f"; and {more} more." if more > 0 else ".")
        )
        if isinstance(known, MetaDataset):
            known = known.without(*reasons)
        else:
            known = [record for record in known if record.name not in reasons]
    tasks: list[Sequence[Mapping[str, Any]]]
    if isinstance(known, MetaDataset):
        tasks = [to_values(known.space, known.distinct[0])]
    else:
        tasks = [record.configurations for record in known]
    return Sources(known, Foresight(distributions, tasks), store, dict(marks))


def _useless(known: MetaDataset | list[TaskRecord]) -> dict[str, str]:
    """Why a task tells nothing, by name."""
    losses: dict[str, list[np.ndarray[Any, Any]]] = {}
    contents: dict[str, list[Any]] = {}
    if isinstance(known, MetaDataset):
        for task, rows in zip(known.tasks, known.rows, strict=True):
            losses[task.name] = [known.complete_losses[rows]]
            contents[task.name] = [known.vectors[rows].tobytes()]
    else:
        for record in known:
            full = (record.status == Status.COMPLETE) & np.isnan(record.budget)
            losses.setdefault(record.name, []).append(np.where(full, record.losses, np.nan))
            contents.setdefault(record.name, []).append(repr(record.configurations))
    out: dict[str, str] = {}
    seen: dict[Any, str] = {}
    for name, parts in losses.items():
        values = np.concatenate(parts)
        finite = values[np.isfinite(values)]
        content = (values.tobytes(), tuple(contents[name]))
        if len(finite) < 2:
            out[name] = f"{len(finite)} complete trials in full"
        elif finite.min() == finite.max():
            out[name] = f"all its losses are {finite[0]:g}"
        elif content in seen:
            out[name] = f"the same runs as {seen[content]}"
        seen.setdefault(content, name)
    return out
