"""A ConfigSpace search space as arrays: features, candidates, neighbours, enumeration.

Notation of this module::

    d         number of hyperparameters, columns ordered by ``space.index_of``
    vectors   configurations, (n, d) float64: numbers in [0, 1] on their own scale, categories
              and ordinals as index, inactive = NaN
    features  what the surrogates see, (n, f): numbers as they are, ordinals scaled to [0, 1],
              categories one-hot, inactive = NaN

All functions work on whole arrays: 10 000 Configuration objects would cost half a second.
"""

from __future__ import annotations

import math
import threading
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

import numpy as np
from ConfigSpace import ConfigurationSpace

from automl_plugins.arrays import FARTHEST, BoolArray, FloatArray, IndexArray, KeyArray
from automl_plugins.spaces.columns import Column, random_steps, reflect
from automl_plugins.spaces.conditions import Deactivation, deactivations, make_sound, satisfied

_CONTINUOUS_BITS = 4.0  # a continuous hyperparameter weighs as much as a grid of 16 values
# Of a hash; the first one is 2^64 over the golden ratio, which spreads neighbouring integers.
_MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93], dtype=np.uint64)
_SHIFT = np.uint64(32)
# Configurations drawn at once, and in all, before a forbidden region counts as the whole space.
_MOST_AT_ONCE, _MOST_DRAWN = 1 << 15, 1 << 20
# Neighbours by one number, and most by one category: its one-hot features make each expensive.
_STEPS, _MOST_OTHERS = 4, 100
_ROUNDING = 1e-9  # largest difference of entries of one value: reading a value back rounds


class _Drawing(threading.local):
    """The random state of ConfigSpace's draws, one for each thread; seeded before each use.

    To make a new one takes 60 times as long as to seed it.
    """

    def __init__(self) -> None:
        self.state = np.random.RandomState(0)


_drawing = _Drawing()


class _Layout(NamedTuple):
    """Where the features of a space are, see ``VectorSpace.features``."""

    columns: IndexArray  # column of each feature (f,), ascending
    scales: FloatArray | None  # of each feature (f,); None where all are 1
    plain: IndexArray  # features that are not one-hot
    categories: IndexArray  # columns (c,) of the one-hot ones
    first: IndexArray  # feature of the first option of each category (c,)
    last: FloatArray  # its last option (c,)


class VectorSpace:
    """Vectorised view of a ``ConfigurationSpace``, which must not change afterwards.

    Attributes:
        names: Hyperparameter names by column.
        categorical: Mask (d,) of the columns that hold unordered categories.
        n_values: Number of legal values of each column (d,), inf for real numbers.
        largest: Largest vector entry of each numerical column (d,).
    """

    def __init__(self, space: ConfigurationSpace) -> None:
        self.space = space
        self.names: tuple[str, ...] = tuple(space.at)
        self._columns = [Column(space[name]) for name in self.names]
        self.categorical = np.array([c.is_categorical for c in self._columns], dtype=bool)
        self.n_values = np.array([c.n_values for c in self._columns])
        self.largest = np.array([c.largest for c in self._columns])
        self._uniform = np.array([c.is_uniform for c in self._columns], dtype=bool)
        # ``space.at`` is sorted by depth, so the conditions of a column's parents come first.
        self._conditions = [
            (column, condition)
            for column, name in enumerate(self.names)
            for condition in space.parent_conditions_of[name]
        ]
        self._forbidden = [make_sound(clause) for clause in space.forbidden_clauses]
        for clause in self._forbidden:
            clause.set_vector_idx(space.index_of)
        self._everything: tuple[FloatArray, int] | None = None  # cache of ``enumerate``
        self._too_small = 0  # the largest limit that was not enough

    @property
    def d(self) -> int:
        """Number of columns."""
        return len(self.names)

    def __reduce__(self) -> tuple[type[VectorSpace], tuple[ConfigurationSpace]]:
        return VectorSpace, (self.space,)  # made anew: functions and caches are not pickled

    # --- validity -------------------------------------------------------------------------

    def activate(self, vectors: FloatArray) -> FloatArray:
        """Copy of ``vectors`` (n, d) in which inactive columns are NaN."""
        return self.find_missing(vectors)[0]

    def find_missing(self, vectors: FloatArray) -> tuple[FloatArray, BoolArray]:
        """``activate``, and a mask (n, d) of the active hyperparameters without a value."""
        out = np.array(vectors, dtype=np.float64)
        missing = np.isnan(out)
        for each in self._deactivations:
            inactive = each.inactive(out)
            # A slice is a view of ``out``; a list of columns would be a copy, and writes be lost.
            out[:, each.children][inactive] = np.nan
            missing[:, each.children][inactive] = False
        return out, missing

    @cached_property
    def _deactivations(self) -> list[Deactivation]:
        return deactivations(self._conditions, self.n_values, self.categorical)

    def canonical(self, vectors: FloatArray) -> FloatArray:
        """Copy of ``vectors`` (n, d) clipped and snapped to the legal values of each column."""
        out = np.array(vectors, dtype=np.float64)
        out[:, self._uniform] = np.clip(out[:, self._uniform], 0.0, 1.0)
        for i in np.flatnonzero(~self._uniform):
            rows = np.flatnonzero(~np.isnan(out[:, i]))
            if rows.size:
                out[rows, i] = self._columns[i].snap(out[rows, i])
        return out

    def allowed(self, vectors: FloatArray) -> BoolArray:
        """Mask (n,) of the configurations that no forbidden clause rules out."""
        mask = np.ones(len(vectors), dtype=bool)
        for clause in self._forbidden:
            mask &= ~np.asarray(clause.is_forbidden_vector_array(vectors.T), dtype=bool)
        return mask

    # --- candidates -----------------------------------------------------------------------

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw ``n`` valid configurations, each hyperparameter from its own distribution.

        If fewer than ``n`` of about a million draws are allowed, some of these are repeated;
        ValueError if none is.
        """
        found = np.empty((0, self.d))
        n_drawn, size = 0, n
        while len(found) < n and n_drawn < _MOST_DRAWN:
            drawn = self.activate(self._draw(size, _draw_seed(rng)))
            found = np.concatenate([found, drawn[self.allowed(drawn)]])
            n_drawn, missing = n_drawn + size, n - len(found)
            share = max(len(found), 1) / n_drawn  # not 0, as it divides below
            # To draw only as many as are missing would take many rounds if few are valid. A fifth
            # more, as the share is an estimate.
            size = missing if share > 0.5 else min(math.ceil(1.2 * missing / share), _MOST_AT_ONCE)
        if n and not len(found):
            raise ValueError(
                f"None of {n_drawn} configurations that were drawn is valid: the forbidden clauses"
                " leave almost nothing of the search space."
            )
        if len(found) < n:  # callers count on n rows
            found = np.concatenate([found, found[rng.integers(len(found), size=n - len(found))]])
        return found[:n]

    def neighbours(
        self, vectors: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, IndexArray]:
        """One-exchange neighbours of all ``vectors`` (b, d) in one array.

        Every other value of one categorical (100 at random where there are more), four random
        steps of one number (their widths log-uniform from 0.01 to 0.3, at least one grid value);
        hyperparameters that become active are drawn at random (SMAC's neighbourhood, GBQR thesis
        2.5.2).

        Returns:
            Valid vectors (m, d), without the configurations themselves, and the row of
            ``vectors`` that each belongs to (m,).
        """
        active = ~np.isnan(vectors) & (self.n_values > 1)
        columns = np.flatnonzero(active.any(axis=0))
        owners, steps = [np.empty(0, dtype=np.intp)], [np.empty(0)]  # for no columns
        for column in columns:
            rows = np.flatnonzero(active[:, column])
            if self.categorical[column]:
                # Steps are numbers of places, modulo the number of values: each leads to another.
                others = np.arange(1.0, self.n_values[column])
                if len(others) > _MOST_OTHERS:
                    others = rng.choice(others, _MOST_OTHERS, replace=False)
                owners.append(np.repeat(rows, len(others)))
                steps.append(np.tile(others, len(rows)))
            else:
                owners.append(np.repeat(rows, _STEPS))
                steps.append(random_steps(len(owners[-1]), rng))
        owner, changed = np.concatenate(owners), np.repeat(columns, [len(o) for o in owners[1:]])
        old = vectors[owner, changed]
        new = self._step_from(old, np.concatenate(steps), changed)
        differs = new != old
        moved, owner = vectors[owner[differs]], owner[differs]
        moved[np.arange(len(moved)), changed[differs]] = new[differs]
        moved = self.complete(moved, rng)
        allowed = self.allowed(moved)
        return moved[allowed], owner[allowed]

    def _step_from(self, old: FloatArray, step: FloatArray, columns: IndexArray) -> FloatArray:
        """The legal entries (m,) after steps from ``old`` (m,), in ascending ``columns`` (m,)."""
        # All uniform columns at once; one after the other takes several times as long.
        new = np.clip(reflect(old, step), 0.0, 1.0)  # a long step leaves by either side
        others = np.unique(columns[~self._uniform[columns]])
        low, high = (np.searchsorted(columns, others, side) for side in ("left", "right"))
        for column, first, last in zip(others, low, high, strict=True):
            part = slice(first, last)
            new[part] = self._columns[column].step_from(old[part], step[part])
        return new

    def complete(
        self, vectors: FloatArray, rng: np.random.Generator, fixed: FloatArray | None = None
    ) -> FloatArray:
        """Copies of ``vectors`` (n, d): missing values drawn at random, inactive ones NaN.

        Values may be missing where a changed parent activates children. Conditions hold
        afterwards; forbidden clauses are not checked, see ``allowed``. The values ``fixed`` (d,),
        NaN where free, are imposed on every row.
        """
        if fixed is not None:
            vectors = np.where(np.isnan(fixed), vectors, fixed)
        if not self._conditions and not np.isnan(vectors).any():
            return vectors
        # Always drawn, so that the stream after it does not depend on what is missing.
        seed = _draw_seed(rng)
        activated, missing = self.find_missing(vectors)
        if not missing.any():
            return activated
        drawn = self._draw(len(vectors), seed)
        # Again, because a drawn parent may leave its children inactive.
        return self.activate(np.where(np.isnan(vectors), drawn, vectors))

    def agrees(self, vectors: FloatArray, fixed: FloatArray | None) -> BoolArray:
        """Whether each of ``vectors`` (n, d) has the values ``fixed`` (d,), NaN where free."""
        if fixed is None:
            return np.ones(len(vectors), dtype=bool)
        decided = ~np.isnan(fixed)
        close = np.abs(vectors[:, decided] - fixed[decided]) <= _ROUNDING
        return np.asarray(close.all(axis=1))

    def within_reach(self, vectors: FloatArray, fixed: FloatArray | None) -> BoolArray:
        """Mask (n,) of the ``vectors`` (n, d) whose active values may be proposed.

        No number lies outside its present range, and no value differs from the ``fixed`` ones
        (d,), NaN where free.
        """
        middle = 0.5 * self.largest  # entries of ordinals are indices
        off = ~self.categorical & (np.abs(vectors - middle) > middle + _ROUNDING)
        if fixed is not None:
            off |= np.abs(vectors - fixed) > _ROUNDING
        return np.asarray(~off.any(axis=1))

    def fill(self, vector: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Copy of ``vector`` (d,) with random values in place of the inactive ones."""
        return np.where(np.isnan(vector), self._draw(1, _draw_seed(rng))[0], vector)

    def quantile(self, column: int, u: FloatArray) -> FloatArray:
        """Legal vector entries (n,) of ``column`` at ``u`` (n,), see ``Column.quantile``."""
        return self._columns[column].quantile(u)

    def _draw(self, n: int, seed: int) -> FloatArray:
        state = _drawing.state
        state.seed(seed)
        drawn = np.empty((n, self.d))
        for is_uniform, columns in self._runs:
            if is_uniform:  # the numbers that ConfigSpace would draw for one after the other
                drawn[:, columns] = state.uniform(size=(len(columns), n)).T
                continue
            for column in columns:
                drawn[:, column] = self._columns[column].draw(n, state)
        return drawn

    @cached_property
    def _runs(self) -> list[tuple[bool, IndexArray]]:
        """The columns, in runs that are all uniform or all not."""
        runs = groupby(range(self.d), key=lambda column: bool(self._uniform[column]))
        return [(is_uniform, np.array(list(columns))) for is_uniform, columns in runs]

    def enumerate(self, limit: int) -> FloatArray | None:
        """All configurations as vectors (n, d), or None when there are more than ``limit``.

        Forbidden ones count, although they are left out.
        """
        found = self._everything
        if found is None and limit > self._too_small:  # proposals ask again and again
            found = self._everything = self._enumerate(limit)
            if found is None:
                self._too_small = limit
        # Whether they are too many must not depend on the limits of earlier calls.
        return found[0] if found is not None and found[1] <= limit else None

    def _enumerate(self, limit: int) -> tuple[FloatArray, int] | None:
        """The allowed configurations, and how many there are with the forbidden ones."""
        rows = np.full((1, self.d), np.nan)
        for column in range(self.d):
            mask = np.ones(len(rows), dtype=bool)
            for child, condition in self._conditions:
                if child == column:  # its parents have their values: they come first
                    mask &= satisfied(condition, rows.T)
            if not mask.any():
                continue
            size = self.n_values[column]
            # Before the rows are made. Forbidden rows count, too: they are left out at the end.
            if (~mask).sum() + mask.sum() * size > limit:
                return None
            values = self._columns[column].legal_vectors()
            grown = np.repeat(rows[mask], len(values), axis=0)
            grown[:, column] = np.tile(values, int(mask.sum()))
            rows = np.concatenate([rows[~mask], grown])
        return rows[self.allowed(rows)], len(rows)

    # --- what models and designs need -----------------------------------------------------

    @cached_property
    def _features(self) -> list[tuple[str, int, int | None]]:
        """Name and column of each feature, and its category for one-hot features."""
        found: list[tuple[str, int, int | None]] = []
        for column, name in enumerate(self.names):
            if self.categorical[column] and self.n_values[column] > 2:
                values = range(int(self.n_values[column]))
                found += [(f"{name}={value}", column, value) for value in values]
            elif self.n_values[column] > 1:
                found.append((name, column, None))
        return found

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the feature columns (f,); the only one is "constant" where nothing varies."""
        return tuple(name for name, _, _ in self._features) or ("constant",)

    def features(self, vectors: FloatArray) -> FloatArray:
        """Features (n, f) of ``vectors`` (n, d); inactive hyperparameters stay NaN.

        Constants are omitted; a category with two values is one 0/1 column, others are one-hot.
        """
        if not self._features:  # nothing can vary: one constant feature keeps the shapes legal
            return np.zeros((len(vectors), 1))
        layout = self._layout
        if not len(layout.categories):
            features = np.take(vectors, layout.columns, axis=1)
        else:  # to compare with each option takes 50 times as long where there are hundreds
            features = np.zeros((len(vectors), len(layout.columns)))
            features[:, layout.plain] = np.take(vectors, layout.columns[layout.plain], axis=1)
            entries = np.take(vectors, layout.categories, axis=1)
            option = np.fmin(np.fmax(entries, 0.0), layout.last).astype(np.intp)
            # An option of an old space, or NaN, must not count as the nearest option.
            features[np.arange(len(vectors))[:, None], layout.first + option] = option == entries
            if np.isnan(entries).any():
                missing = np.take(np.isnan(vectors), layout.columns, axis=1)
                np.putmask(features, missing, np.nan)
        if layout.scales is not None:
            features /= layout.scales
        return features

    @cached_property
    def _layout(self) -> _Layout:
        columns = np.array([column for _, column, _ in self._features], dtype=np.intp)
        is_option = np.array([option is not None for _, _, option in self._features])
        scales = self.largest[columns]
        categories = np.unique(columns[is_option])
        return _Layout(
            columns=columns,
            scales=None if (scales == 1.0).all() else scales,
            plain=np.flatnonzero(~is_option),
            categories=categories,
            first=np.searchsorted(columns, categories),
            last=self.n_values[categories] - 1.0,
        )

    def numbers(self, vectors: FloatArray) -> FloatArray:
        """The numerical columns (n, c) of ``vectors``, ordinals scaled to [0, 1]."""
        numerical = ~self.categorical & (self.n_values > 1)
        return np.asarray(vectors[:, numerical] / self.largest[numerical])  # > 0: they vary

    def keys(self, vectors: FloatArray) -> KeyArray:
        """A hash (n,) of each canonical vector, equal for equal configurations."""
        entries = np.where(np.isnan(vectors), -1.0, vectors)
        # No legal entry is near these limits, which keep all entries in the range of int64.
        np.clip(entries, -FARTHEST, FARTHEST, out=entries)
        entries *= 2.0**40  # to be rounded to about 1e-12, below which entries differ by rounding
        mixed = np.rint(entries, out=entries).astype(np.int64).view(np.uint64)
        mixed += _MULTIPLIERS[0] * np.arange(1, self.d + 1, dtype=np.uint64)  # columns differ
        for multiplier in _MULTIPLIERS:
            mixed ^= mixed >> _SHIFT
            mixed *= multiplier
        mixed ^= mixed >> _SHIFT
        return np.asarray(mixed.sum(axis=1, dtype=np.uint64))  # modulo 2^64

    def seen(self, vectors: FloatArray, observed: KeyArray) -> BoolArray:
        """Mask (m,) of the ``vectors`` (m, d) whose keys are among the sorted ``observed``."""
        if not len(observed):
            return np.zeros(len(vectors), dtype=bool)
        keys = self.keys(vectors)
        place = np.minimum(np.searchsorted(observed, keys), len(observed) - 1)
        return np.asarray(observed[place] == keys)

    @cached_property
    def deciding(self) -> tuple[int, ...]:
        """Columns that decide which other columns are active, ascending."""
        parents = {
            self.space.index_of[parent.name]
            for name in self.names
            for parent in self.space.parents_of[name]
        }
        return tuple(sorted(parents))

    @cached_property
    def branching(self) -> tuple[int, ...]:
        """Columns of ``deciding`` that are categorical."""
        return tuple(c for c in self.deciding if self.categorical[c])

    @cached_property
    def implied(self) -> tuple[int, ...]:
        """Features of the columns that only numbers and ordinals activate, ascending.

        A number of layers, say, implies which widths there are.
        """
        found = []
        for feature, (_, column, _) in enumerate(self._features):
            parents = self.space.parents_of[self.names[column]]
            columns = [self.space.index_of[parent.name] for parent in parents]
            if columns and not self.categorical[columns].any():
                found.append(feature)
        return tuple(found)

    @cached_property
    def depth(self) -> int:
        """Largest number of varying hyperparameters found active together."""
        sample = self.sample(64, np.random.default_rng(0))  # the same in every search
        return int((~np.isnan(sample) & (self.n_values > 1)).sum(axis=1).max())

    def volume_bits(self, vectors: FloatArray) -> FloatArray:
        """log2 of the number of configurations (n,) in the branch that each vector lies in.

        A continuous hyperparameter counts as 4 bits, so branches of grids and of real numbers
        can be compared.
        """
        bits = np.minimum(np.log2(self.n_values), _CONTINUOUS_BITS)
        return np.asarray(~np.isnan(vectors) @ bits, dtype=np.float64)


def _draw_seed(rng: np.random.Generator) -> int:
    """Seed for ConfigSpace's draws, from our own stream."""
    return int(rng.integers(2**32))
