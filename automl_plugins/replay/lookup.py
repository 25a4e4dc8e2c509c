"""The recorded configurations of a table, and the nearest of them to any configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace
from scipy.spatial.distance import cdist

from automl_plugins.arrays import FloatArray
from automl_plugins.records.task_record import check_configuration
from automl_plugins.spaces.conditions import active_names
from automl_plugins.spaces.values import ABSENT, encoder, kind_of, reader, values_of
from automl_plugins.spaces.vector_space import VectorSpace


@dataclass(frozen=True)
class Answer:
    """The recorded run that stands for a configuration.

    Attributes:
        row: Its row in the table.
        distance: 0 if the configuration was recorded. Else the sum over its hyperparameters of
            the difference on their scale in [0, 1]; 1 for another category, at least 1 for a
            value that the recorded run lacks.

    Example::

        answer = table.find({"C": 0.5, "depth": 3})
        print(table.config(answer.row), answer.distance)
    """

    row: int
    distance: float


class RecordedConfigurations:
    """Recorded configurations, checked and read once; messages begin with ``of``.

    Attributes:
        values: The values of each configuration, parents first, ``ABSENT`` where inactive.
        first: The row (n,) where each configuration occurs first: its own unless ``repeats``.

    Raises:
        ValueError: For a configuration outside the space, or recorded twice without ``repeats``.
    """

    def __init__(
        self,
        of: str,
        space: ConfigurationSpace,
        configs: Sequence[Mapping[str, Any]],
        *,
        repeats: bool = False,
    ) -> None:
        self.of = of
        self.space = space
        self._vectors = VectorSpace(space)
        self.values = [self._read_row(row, config) for row, config in enumerate(configs)]
        self._rows: dict[tuple[Any, ...], int] = {}
        rows = enumerate(map(_key, self.values))
        # A configuration that occurs again keeps its first row.
        self.first = np.array([self._rows.setdefault(key, row) for row, key in rows], np.int64)
        again = np.flatnonzero(self.first != np.arange(len(self)))
        if len(again) and not repeats:
            row = int(again[0])
            raise ValueError(
                f"{self.of}: rows {self.first[row]} and {row} record one configuration,"
                f" {self.config(row)}. Build it with repeats='mean' to average them."
            )

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def _readers(self) -> dict[str, Callable[[Any], Any]]:
        return {name: reader(self.space[name]) for name in self.space}

    @cached_property
    def _encoders(self) -> dict[str, Callable[[Any], float]]:
        return {name: encoder(self.space[name]) for name in self._vectors.names}

    def __getstate__(self) -> dict[str, Any]:
        made_again = ("_readers", "_encoders")  # closures, which pickle does not store
        return {key: value for key, value in self.__dict__.items() if key not in made_again}

    def _read_row(self, row: int, config: Mapping[str, Any]) -> tuple[Any, ...]:
        check_configuration(self.of, row, config)
        known = {k: v for k, v in config.items() if not self._is_absent(k, v)}
        if foreign := sorted(set(known) - set(self._vectors.names)):
            raise ValueError(
                f"{self.of}, row {row}: {', '.join(foreign)} not in the search space,"
                f" which has {', '.join(self._vectors.names)}."
            )
        try:
            values = {name: self._read(name, value) for name, value in known.items()}
        except ValueError as error:
            raise ValueError(f"{self.of}, row {row}: {error}") from None
        active: dict[str, Any] = {}
        for name in active_names(self.space, active):
            if name in values:
                active[name] = values[name]
        return tuple(active.get(name, ABSENT) for name in self._vectors.names)

    def _is_absent(self, name: str, value: Any) -> bool:
        """Whether a value marks an inactive hyperparameter: NaN, or None unless it is a choice."""
        if value is ABSENT:
            return True
        if kind_of(value) not in ("none", "missing"):
            return False
        return name not in self._readers or self._readers[name](value) is ABSENT

    def _read(self, name: str, value: Any) -> Any:
        if (found := self._readers[name](value)) is ABSENT:
            raise ValueError(f"{name}={value!r} is not a value of {self.space[name]}.")
        return found

    @property
    def complete(self) -> bool:
        """See ``Table.complete``."""
        # The limit counts forbidden configurations too, which are removed afterwards.
        everything = self._vectors.enumerate(10 * len(self))
        if everything is None:
            return False
        # Compared by keys, which are equal for vectors that differ by rounding only.
        recorded = self._vectors.keys(self._encode(map(self.config, range(len(self)))))
        return bool(self._vectors.seen(everything, np.sort(recorded)).all())

    def config(self, row: int) -> dict[str, Any]:
        """The active values recorded in a row."""
        pairs = zip(self._vectors.names, self.values[row], strict=True)
        return {name: value for name, value in pairs if value is not ABSENT}

    # --- look-up ------------------------------------------------------------------------------

    def find(self, config: Mapping[str, Any]) -> Answer:
        """See ``Table.find``."""
        if isinstance(config, Configuration):
            config = values_of(config)
        names, active = self._vectors.names, config
        # Conditions are slow to evaluate, and an exact match does not need them.
        row = self._rows.get(_key([config.get(name, ABSENT) for name in names]))
        if row is None:
            active = self._active(config)
            row = self._rows.get(_key([active.get(name, ABSENT) for name in names]))
        if row is not None:
            return Answer(row, 0.0)
        point = self._embed(self._encode([active]))
        distances = cdist(point, self._points, metric="cityblock")[0]
        row = int(distances.argmin())  # the first of equally near ones
        return Answer(row, float(distances[row]))

    def _active(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The active values of a configuration, checked."""
        active: dict[str, Any] = {}
        for name in active_names(self.space, active):
            value = config.get(name, ABSENT)
            if self._is_absent(name, value):
                raise ValueError(
                    f"The configuration {dict(config)} has no value for {name}, which is active."
                )
            active[name] = self._read(name, value)
        return active

    def _encode(self, configs: Iterable[Mapping[str, Any]]) -> FloatArray:
        """Vectors (n, d) of active values."""
        pairs = self._encoders.items()
        return np.array([[f(c[n]) if n in c else np.nan for n, f in pairs] for c in configs])

    def _embed(self, vectors: FloatArray) -> FloatArray:
        """Points (n, f) whose L1 distance is that of ``Answer``; inactive numbers count as 0.

        One-hot codes of two categories differ in two places, so each difference counts half. A
        missing number lies at -1: at least 1 from every other.
        """
        _, missing = self._vectors.find_missing(vectors)
        numbers = self._vectors.numbers(np.where(missing, -self._vectors.largest, vectors))
        numbers[np.isnan(numbers)] = 0.0
        codes = []
        for i in np.flatnonzero(self._vectors.categorical):
            code = 0.5 * (vectors[:, [i]] == np.arange(self._vectors.n_values[i]))
            # At distance 1 from each category: 0.5 in two places, from the first 1 in one place.
            code[missing[:, i], 0] = -0.5
            codes.append(code)
        # With a column of zeros, since a space may have no hyperparameter.
        return np.hstack([np.zeros((len(vectors), 1)), numbers, *codes])

    @cached_property
    def _points(self) -> FloatArray:
        return self._embed(self._encode(map(self.config, range(len(self)))))


def _key(values: Sequence[Any]) -> tuple[Any, ...]:
    """A dictionary key that distinguishes truth values from the numbers they equal."""
    hashed = map(_freeze, values)
    return (*hashed, *(isinstance(value, bool | np.bool_) for value in values))


def _freeze(value: Any) -> Any:
    """A value with tuples in place of lists, which are the same values."""
    return tuple(map(_freeze, value)) if isinstance(value, list | tuple) else value
