"""A run history as the ``History`` that proposers see.

All seeds and instances of a configuration are one row. Its loss is the mean cost, adjusted for the
effects of the instances: racing evaluates most configurations on few instances, and easy instances
do not make a configuration good. Its seconds are the mean seconds, adjusted in the same way: easy
instances do not make a configuration fast.

With several budgets, the loss is the cost at the highest budget that enough configurations have
finished (``loss_budget``). A configuration that has not reached it is a PRUNED row with the cost
at its own highest budget: the intensifier preferred others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace
from scipy.linalg import lstsq
from smac import RunHistory
from smac.runhistory import TrialKey, TrialValue

from automl_plugins.arrays import BoolArray, FloatArray, IntArray
from automl_plugins.records.history import History
from automl_plugins.records.scores import HUGE
from automl_plugins.records.trial import Status, Trial

from .trials import canonical, known_ends, read_trial

Pair = tuple[TrialKey, Trial]

TICK = 1e-3  # seconds: below a millisecond, clocks mostly measure their own overhead
_LEAST_FACTOR = 1e-18  # of an instance's seconds: its inverse, and sums of these, stay finite


@dataclass
class Rows:
    """Reads a run history incrementally, each trial and configuration once.

    Args:
        space: The search space.
        min_trials: Configurations that must have finished a budget before it gives the loss.
    """

    space: ConfigurationSpace
    min_trials: int = 1
    _trials: dict[TrialKey, tuple[TrialValue, Trial]] = field(default_factory=dict, repr=False)
    _vectors: dict[int, tuple[Configuration, FloatArray]] = field(default_factory=dict, repr=False)

    def read(self, history: RunHistory, waiting: Sequence[Configuration] = ()) -> History:
        """All configurations: finished ones by their first end, running ones, ``waiting`` ones.

        A row's number is SMAC's number of its configuration, less 1.
        """
        finished: dict[int, list[Pair]] = {}
        ends: dict[int, tuple[float, int]] = {}
        running: dict[int, None] = {}  # a set in the order of asking
        given = known_ends(value.endtime for value in history.values())
        for place, (key, value) in enumerate(history.items()):
            trial = self._read(history, key, value)
            if trial.status == Status.RUNNING:
                running[key.config_id] = None
                continue
            finished.setdefault(key.config_id, []).append((key, trial))
            end = given[place], place  # trials that ended together: in the order of asking
            ends[key.config_id] = min(ends.get(key.config_id, end), end)
        order = sorted(finished, key=ends.__getitem__)
        level = loss_budget([[trial for _, trial in finished[i]] for i in order], self.min_trials)
        counted = [_count(finished[i], level) for i in order]
        known = [*order, *(i for i in running if i not in finished)]
        # SMAC counts configurations from 1; waiting ones get the numbers after the last.
        free = max(known, default=0)
        losses = _losses(counted)
        unknown = [math.nan] * (len(known) - len(order) + len(waiting))
        vectors = [self._vector(i, history.ids_config[i]) for i in known]
        vectors += [canonical(config, self.space) for config in waiting]
        return History.of(
            np.array(vectors).reshape(len(vectors), len(self.space)),
            np.append(losses, unknown),
            seconds=np.append(_seconds(counted, ~np.isnan(losses)), unknown),
            status=[_status(pairs, level) for pairs in counted] + [Status.RUNNING] * len(unknown),
            number=[i - 1 for i in known] + [free + i for i in range(len(waiting))],
            budget=[pairs[0][1].budget for pairs in counted] + unknown if order else None,
            curves=[*(_curve(finished[i]) for i in order), *({} for _ in unknown)],
        )

    def vectors(self, history: RunHistory) -> FloatArray:
        """Vectors (n, d) of all configurations in a run history."""
        found = [self._vector(i, config) for i, config in history.ids_config.items()]
        return np.array(found).reshape(len(found), len(self.space))

    def _read(self, history: RunHistory, key: TrialKey, value: TrialValue) -> Trial:
        known = self._trials.get(key)
        # A result replaces the value of the running trial.
        if known is None or known[0] is not value:
            trial = read_trial(history.get_config(key.config_id), key, value)
            known = self._trials[key] = value, trial
        return known[1]

    def _vector(self, config_id: int, config: Configuration) -> FloatArray:
        held = self._vectors.get(config_id)
        # In another run history another configuration may have the number.
        if held is None or held[0] is not config:
            held = self._vectors[config_id] = config, canonical(config, self.space)
        return held[1]


def loss_budget(configs: Iterable[Sequence[Trial]], min_trials: int) -> float | None:
    """The budget whose costs are the losses; ``configs`` are each configuration's finished trials.

    The highest budget at which ``min_trials`` configurations are complete; until there is one, the
    budget with most complete configurations, in a tie the higher one. None without budgets;
    infinite if only some trials have a budget, as those without one are full evaluations.
    """
    counts, in_full = Counter[float](), False
    for trials in configs:
        steps = {t.step: 0 for t in trials if t.status != Status.PRUNED}
        steps |= {t.step: 1 for t in trials if t.status == Status.COMPLETE}
        in_full |= None in steps
        counts.update({step: n for step, n in steps.items() if step is not None})
    if in_full:
        return math.inf if counts else None
    enough = [budget for budget, n in counts.items() if n >= min_trials]
    if enough:
        return max(enough)
    return max(counts, key=lambda budget: (counts[budget], budget), default=None)


def _count(pairs: Sequence[Pair], level: float | None) -> list[Pair]:
    """Trials at the lowest budget >= ``level``; if there is none, at the highest budget.

    If trials at budgets >= ``level`` failed, those at the lowest such budget, as a full evaluation
    may fail, too.
    """
    budgets = [trial.step for _, trial in pairs if trial.step is not None]
    if level is None or len(budgets) < len(pairs):
        return [(key, trial) for key, trial in pairs if level is None or trial.step is None]
    full = [(b, t) for b, (_, t) in zip(budgets, pairs, strict=True) if b >= level]
    failed = [b for b, trial in full if trial.status == Status.FAILED]
    budget = min(failed or [b for b, _ in full], default=max(budgets))
    return [(key, trial) for key, trial in pairs if trial.step == budget]


def _curve(pairs: Sequence[Pair]) -> dict[float, float]:
    """Mean loss of a configuration by budget."""
    losses: dict[float, list[float]] = {}
    for _, trial in pairs:
        if trial.step is not None:
            losses.setdefault(trial.step, []).append(trial.loss)
    return {step: sum(found) / len(found) for step, found in losses.items()}


def _status(pairs: Sequence[Pair], level: float | None) -> Status:
    found = {trial.status for _, trial in pairs}
    # If there is a level, ``_count`` has returned trials at one budget.
    below = level is not None and pairs[0][1].budget < level
    if Status.FAILED in found:
        return Status.FAILED
    return Status.PRUNED if below or Status.PRUNED in found else Status.COMPLETE


def _losses(configs: Sequence[Sequence[Pair]]) -> FloatArray:
    """Loss (n,) of each configuration; NaN if one of its trials has no loss."""
    rows, instances, costs = _columns(
        (row, key, trial.loss)
        for row, pairs in enumerate(configs)
        if not any(math.isnan(trial.loss) for _, trial in pairs)
        for key, trial in pairs
    )
    # Users mark bad configurations with the largest float: clip, so that sums do not overflow.
    return adjusted_means(np.clip(costs, -HUGE, HUGE), rows, instances, len(configs))


def _seconds(configs: Sequence[Sequence[Pair]], typical: BoolArray) -> FloatArray:
    """Seconds (n,) of each configuration, NaN where none are known; see ``adjusted_seconds``."""
    rows, instances, seconds = _columns(
        (row, key, trial.seconds)
        for row, pairs in enumerate(configs)
        for key, trial in pairs
        if not math.isnan(trial.seconds)
    )
    return adjusted_seconds(seconds, rows, instances, typical)


def _columns(
    trials: Iterable[tuple[int, TrialKey, float]],
) -> tuple[IntArray, IntArray, FloatArray]:
    """Row, instance and value (t,) of trials; instances are counted from 0 as they come."""
    names: dict[str | None, int] = {}
    table = [
        (row, names.setdefault(key.instance, len(names)), value) for row, key, value in trials
    ]
    rows, instances, values = np.array(table, dtype=np.float64).reshape(-1, 3).T
    return rows.astype(np.int64), instances.astype(np.int64), values


def adjusted_means(
    costs: FloatArray, rows: IntArray, instances: IntArray, n_rows: int
) -> FloatArray:
    """Estimated mean cost (n_rows,) of each row on all instances; NaN for rows without trials.

    Least squares of cost = a[row] + b[instance] with sum b = 0, for trials (t,) of known row and
    instance, both counted from 0. With one instance, or all rows on all instances, a is the plain
    mean.
    """
    met = _meetings(rows, instances, n_rows, int(instances.max(initial=0)) + 1)
    effect = _effects(costs, rows, instances, met)
    effect -= effect.mean()
    with np.errstate(invalid="ignore"):  # 0 / 0 where a row has no trials
        total = np.bincount(rows, costs, n_rows) - met @ effect
        return np.asarray(total / met.sum(axis=1), dtype=np.float64)


def adjusted_seconds(
    seconds: FloatArray, rows: IntArray, instances: IntArray, typical: BoolArray
) -> FloatArray:
    """Estimated mean seconds (n,) of each row on all instances; NaN for rows without trials.

    As ``adjusted_means``, but an instance multiplies the seconds, and its factor is learnt from
    the ``typical`` rows (n,): the time until a failure does not show how long an instance takes.
    With one instance, or all rows on all instances, the result is the plain mean too.

    A factor may come from a single pair of trials, one of which a cache answered at once, say. So
    factors are learnt from ``TICK`` seconds at least, and no mean exceeds the longest trial.
    """
    n_rows, n_instances = len(typical), int(instances.max(initial=0)) + 1
    learnt = typical[rows]
    own, on = rows[learnt], instances[learnt]
    known = np.log(np.maximum(seconds[learnt], TICK))
    effect = _effects(known, own, on, _meetings(own, on, n_rows, n_instances))
    # Only ratios of factors matter below: scaled to a maximum of 1, with a lower bound.
    factor = np.maximum(np.exp(effect - effect.max()), _LEAST_FACTOR)
    met = _meetings(rows, instances, n_rows, n_instances)
    # Seconds are a[row] factor[instance]: a is the total over the factors of the row's trials.
    with np.errstate(invalid="ignore"):
        mean = np.bincount(rows, seconds, n_rows) / (met @ factor) * factor.mean()
    return np.asarray(np.minimum(mean, seconds.max(initial=0.0)), dtype=np.float64)


def _meetings(rows: IntArray, instances: IntArray, n_rows: int, n_instances: int) -> FloatArray:
    """Number of trials (n_rows, n_instances) of each row on each instance."""
    met = np.zeros((n_rows, n_instances))
    np.add.at(met, (rows, instances), 1.0)  # counts a pair again for each of its seeds
    return met


def _effects(
    values: FloatArray, rows: IntArray, instances: IntArray, met: FloatArray
) -> FloatArray:
    """Effect b of each instance: least squares of value = a[row] + b[instance]; the shortest b."""
    n_rows, n_instances = met.shape
    if n_instances == 1:
        return np.zeros(1)
    # The normal equations without a: a[row] = (total[row] - met[row] b) / trials[row].
    share = met / np.maximum(met.sum(axis=1), 1.0)[:, None]
    right = np.bincount(instances, values, n_instances)
    right = right - share.T @ np.bincount(rows, values, n_rows)
    matrix = np.diag(met.sum(axis=0)) - met.T @ share
    # Singular: a constant added to b changes nothing, nor one for each group of instances that no
    # row connects to the others. The shortest solution has the mean 0 in each group.
    # Many instances: a rank-revealing QR takes a quarter of the time of the singular values.
    return np.asarray(lstsq(matrix, right, cond=1e-10, lapack_driver="gelsy")[0])
