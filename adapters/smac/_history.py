"""A run history as the core's ``History``: one row for each configuration.

Several seeds and instances of a configuration are one row. Its loss is the mean cost, of several
instances without the effect of each: racing evaluates most configurations on a few instances
only, and a configuration is not good because its instances were easy.

Of several budgets, the loss is that of the highest budget which enough configurations have
finished (``loss_budget``). Who has not come so far is a PRUNED row with the cost at its own
highest budget: the intensifier preferred others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from ConfigSpace import Configuration, ConfigurationSpace
from smac import RunHistory
from smac.runhistory import StatusType, TrialKey, TrialValue

from automl_plugins.records.history import History
from automl_plugins.records.trial import Status

FloatArray = npt.NDArray[np.float64]
Trial = tuple[TrialKey, TrialValue]

_HUGE = 1e150


@dataclass
class Rows:
    """Reads a run history; keeps nothing but vectors, which come back the same.

    Args:
        space: The search space.
        min_trials: Configurations that must have finished a budget before it gives the loss.
    """

    space: ConfigurationSpace
    min_trials: int = 1
    _vectors: dict[int, tuple[Configuration, FloatArray]] = field(default_factory=dict, repr=False)

    def read(self, history: RunHistory, waiting: Sequence[Configuration] = ()) -> History:
        """All configurations: finished ones by their first end, running ones, ``waiting`` ones.

        A row's number is that of its configuration, from 0.
        """
        finished: dict[int, list[Trial]] = {}
        ends: dict[int, tuple[float, int]] = {}
        running: dict[int, None] = {}
        for place, (key, value) in enumerate(history.items()):
            if value.status == StatusType.RUNNING:
                running[key.config_id] = None
                continue
            finished.setdefault(key.config_id, []).append((key, value))
            end = value.endtime, place  # without clocks: the order of asking
            ends[key.config_id] = min(ends.get(key.config_id, end), end)
        order = sorted(finished, key=ends.__getitem__)
        level = loss_budget([finished[i] for i in order], self.min_trials)
        counted = [_counted(finished[i], level) for i in order]
        losses = _losses(counted)
        last = [i for i in running if i not in finished]
        known = [*order, *last]
        n, n_open = len(order), len(last) + len(waiting)
        first_free = max(known, default=0)
        vectors = [self._vector(i, history.ids_config[i]) for i in known]
        vectors += [canonical(config) for config in waiting]
        return History.of(
            np.array(vectors).reshape(len(vectors), len(self.space)),
            np.append(losses, np.full(n_open, np.nan)),
            seconds=np.append([_mean_seconds(trials) for trials in counted], [np.nan] * n_open),
            status=[_status(trials, level) for trials in counted] + [Status.RUNNING] * n_open,
            number=[i - 1 for i in known] + [first_free + i for i in range(len(waiting))],
            budget=[_budget(trials) for trials in counted] + [np.nan] * n_open if n else None,
        )

    def vectors(self, history: RunHistory) -> FloatArray:
        """Vectors (n, d) of all configurations in a run history."""
        found = [self._vector(i, config) for i, config in history.ids_config.items()]
        return np.array(found).reshape(len(found), len(self.space))

    def _vector(self, config_id: int, config: Configuration) -> FloatArray:
        held = self._vectors.get(config_id)
        if held is None or held[0] is not config:
            held = self._vectors[config_id] = config, canonical(config)
        return held[1]


def canonical(config: Configuration) -> FloatArray:
    """The vector (d,) of a configuration's values: the same before and after a run is saved."""
    space = config.config_space
    vector = np.full(len(space), np.nan)
    for name, value in config.items():
        vector[space.index_of[name]] = space[name].to_vector(value)
    return vector


def seconds_of(value: TrialValue) -> float:
    """How long a trial took; NaN where nobody said.

    SMAC leaves ``time`` at 0 where a trial crashed or ran out of time or memory, but notes when
    it began and ended. Ask and tell has ``time`` only.
    """
    spent = float(value.time if value.time > 0.0 else value.endtime - value.starttime)
    return spent if 0.0 < spent < math.inf else math.nan


def succeeded(value: TrialValue) -> bool:
    """Whether a trial has a cost that says something; a crash cost does not."""
    cost = value.cost
    return (
        value.status == StatusType.SUCCESS and not isinstance(cost, list) and math.isfinite(cost)
    )


def loss_budget(configs: Iterable[Sequence[Trial]], min_trials: int) -> float | None:
    """The budget whose costs are the losses; None without budgets.

    The highest one at which ``min_trials`` configurations have succeeded; before there is one,
    that at which most have, the higher one of equals.

    Args:
        configs: Finished trials of each configuration.
        min_trials: Enough configurations.
    """
    counts = Counter[float]()
    for trials in configs:
        counts.update({k.budget: 0 for k, _ in trials if k.budget is not None})
        counts.update({k.budget for k, v in trials if k.budget is not None and succeeded(v)})
    enough = [budget for budget, n in counts.items() if n >= min_trials]
    if enough:
        return max(enough)
    return max(counts, key=lambda budget: (counts[budget], budget), default=None)


def _counted(trials: Sequence[Trial], level: float | None) -> list[Trial]:
    """Trials at the lowest budget from the level on; without one, at the highest budget."""
    budgets = [key.budget for key, _ in trials if key.budget is not None]
    if level is None or not budgets:
        return list(trials)
    budget = min((b for b in budgets if b >= level), default=max(budgets))
    return [(key, value) for key, value in trials if key.budget == budget]


def _budget(trials: Sequence[Trial]) -> float:
    budget = trials[0][0].budget
    return math.nan if budget is None else float(budget)


def _status(trials: Sequence[Trial], level: float | None) -> Status:
    if not all(succeeded(value) for _, value in trials):
        return Status.FAILED
    below = level is not None and _budget(trials) < level
    return Status.PRUNED if below else Status.COMPLETE


def _mean_seconds(trials: Sequence[Trial]) -> float:
    known = [seconds for _, value in trials if not math.isnan(seconds := seconds_of(value))]
    return sum(known) / len(known) if known else math.nan


def _losses(configs: Sequence[Sequence[Trial]]) -> FloatArray:
    """Loss (n,) of each configuration; NaN where one of its trials failed."""
    rows, instances, costs = [], [], []
    names: dict[str | None, int] = {}
    for row, trials in enumerate(configs):
        if all(succeeded(value) for _, value in trials):
            for key, value in trials:
                rows.append(row)
                instances.append(names.setdefault(key.instance, len(names)))
                costs.append(value.cost)
    # Sums must not overflow where the largest number there is marks a bad configuration.
    return adjusted_means(
        np.clip(np.array(costs, dtype=np.float64), -_HUGE, _HUGE),
        np.array(rows, dtype=np.int64),
        np.array(instances, dtype=np.int64),
        len(configs),
    )


def adjusted_means(
    costs: FloatArray,
    rows: npt.NDArray[np.int64],
    instances: npt.NDArray[np.int64],
    n_rows: int,
) -> FloatArray:
    """Mean cost of each row, had it been evaluated on all instances.

    Least squares of cost = a[row] + b[instance] with sum b = 0. With one instance, or all rows on
    all instances, a is the plain mean.

    Args:
        costs: Cost of each trial (t,).
        rows: Row of each trial (t,).
        instances: Instance of each trial (t,), counted from 0.
        n_rows: Number of rows.

    Returns:
        The means (n_rows,); NaN for a row without trials.
    """
    n_instances = int(instances.max(initial=0)) + 1
    met = np.zeros((n_rows, n_instances))
    np.add.at(met, (rows, instances), 1.0)
    total, trials = np.bincount(rows, costs, n_rows), met.sum(axis=1)
    effect = np.zeros(n_instances)
    if n_instances > 1:
        # The normal equations without a: a[row] = (total[row] - met[row] b) / trials[row].
        share = met / np.maximum(trials, 1.0)[:, None]
        per_instance = np.bincount(instances, costs, n_instances)
        matrix = np.diag(met.sum(axis=0)) - met.T @ share
        effect = np.linalg.lstsq(matrix, per_instance - share.T @ total)[0]
        effect -= effect.mean()
    with np.errstate(invalid="ignore"):
        return np.asarray((total - met @ effect) / trials, dtype=np.float64)
