"""Runs written to a memory during a search; what the adapters' recorders share."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from ConfigSpace import ConfigurationSpace

from automl_plugins.meta.plain import (
    check_name,
    digest,
    encode,
    plain_meta_features,
    plain_space,
    plain_tags,
)
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.records.trial import FIRST_MOMENT, unix_time

from .sources import check_no_name, open_store

logger = logging.getLogger(__name__)

_LONGEST = 400  # characters of a name


class WritableStore(Protocol):
    """The methods of a ``MetaStore`` that a recorder needs."""

    def add(
        self,
        record: TaskRecord,
        *,
        search: str | None = None,
        keys: Sequence[str | int] | None = None,
    ) -> int:
        """Keep the runs whose keys are new in their search; returns how many."""
        ...


class Recorder:
    """Writes runs to a store, and never stops the search that makes them.

    Wrong arguments raise an error here. Later failures, such as a full disk or a configuration
    that cannot be stored, are counted, and the first is logged as a warning.

    Args:
        store: A ``MetaStore``, or its address or path; not the bare name of a bundled memory.
        task: Name of the task; None takes the name in the records.
        meta_features: Properties of the data by name.
        tags: What else is known of the task.

    Attributes:
        n_recorded: Runs that were written and not there before.
        n_lost: Runs that could not be written.

    Raises:
        StoreError: If the store cannot be opened.
        TypeError: For a store of the wrong type, meta-features that are not numbers, or tags that
            are not text.
        ValueError: For an empty name, an infinite meta-feature, an address that cannot be read, or
            the name of a bundled memory.
    """

    def __init__(
        self,
        store: WritableStore | str | os.PathLike[str],
        *,
        task: str | None = None,
        meta_features: Mapping[str, float] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        if task is not None:
            check_name(task, "The name of a task")
        meta_features = {} if meta_features is None else meta_features
        tags = {} if tags is None else tags
        # Checked before the store is opened, which may make it.
        check_no_name(store)
        plain_meta_features(meta_features, task=task or "")
        plain_tags(tags, task=task or "")
        self.store: WritableStore = (
            open_store(store) if isinstance(store, str | os.PathLike) else store
        )
        if not callable(getattr(self.store, "add", None)):
            raise TypeError(f"store must be a MetaStore, or its address or path, got {store!r}.")
        self.task = task
        self.meta_features, self.tags = dict(meta_features), dict(tags)
        self.n_recorded = 0
        self.n_lost = 0

    @contextmanager
    def survive(self) -> Iterator[None]:
        """Context in which one run is written: errors are logged and do not stop the search."""
        try:
            yield
        # ``KeyboardInterrupt`` is none, and ends the search.
        except Exception as error:
            self.n_lost += 1
            if self.n_lost == 1:
                logger.warning(
                    "A run could not be recorded, the search continues without: %s: %s Further"
                    " ones are counted in n_lost.",
                    type(error).__name__,
                    f"{error}".removesuffix(".") + ".",
                )

    def add(self, record: TaskRecord, *, search: str, keys: Sequence[str]) -> int:
        """Write runs; those that are there already are left alone. Returns how many are new."""
        if self.task is not None:
            record = replace(record, name=self.task)
        record = record.described(
            meta_features={**record.meta_features, **self.meta_features},
            tags={**record.tags, **self.tags},
        )
        if len(search) > _LONGEST:
            search = f"{search[: _LONGEST // 2]}-{digest(search)}"
        new = self.store.add(record, search=search, keys=keys)
        self.n_recorded += new
        return new


class SearchRecorder:
    """The counters of the recorders of all frameworks."""

    recorder: Recorder

    @property
    def n_recorded(self) -> int:
        """Trials that were written and not there before."""
        return self.recorder.n_recorded

    @property
    def n_lost(self) -> int:
        """Trials that could not be written."""
        return self.recorder.n_lost


def run_key(number: int, began: datetime | None, *facts: object) -> str:
    """Key of a run among the runs of all searches of one name.

    Its number and start make it unique; where the start is not known, its number and the
    ``facts``, such as its configuration and loss.
    """
    # Simulated clocks begin at ``CLOCK_START`` in every search.
    if not isinstance(began, datetime) or unix_time(began) < unix_time(FIRST_MOMENT):
        return f"{number}@{digest(*facts)}"
    return f"{number}@{began.isoformat()}"


def search_name(kind: str, space: ConfigurationSpace, seed: int | None = None) -> str:
    """Name of the searches of one kind in equal spaces: the same in every process."""
    name = f"{kind}-{digest(encode(plain_space(space)))}"
    return name if seed is None else f"{name}-{seed}"
