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
from smac.runhistory import TrialKey, TrialValue

from automl_plugins.records.history import History
from automl_plugins.records.scores import HUGE
from automl_plugins.records.trial import Status, Trial, sortable

from .trials import read_trial

FloatArray = npt.NDArray[np.float64]
Pair = tuple[TrialKey, Trial]


@dataclass
class Rows:
    """Reads a run history, each trial and configuration once.

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

        A row's number is that of its configuration, from 0.
        """
        finished: dict[int, list[Pair]] = {}
        ends: dict[int, tuple[float, int]] = {}
        running: dict[int, None] = {}
        for place, (key, value) in enumerate(history.items()):
            trial = self._read(history, key, value)
            if trial.status == Status.RUNNING:
                running[key.config_id] = None
                continue
            finished.setdefault(key.config_id, []).append((key, trial))
            end = sortable(trial.ended), place  # without clocks: the order of asking
            ends[key.config_id] = min(ends.get(key.config_id, end), end)
        order = sorted(finished, key=ends.__getitem__)
        level = loss_budget([[trial for _, trial in finished[i]] for i in order], self.min_trials)
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
            seconds=np.append([_mean_seconds(pairs) for pairs in counted], [np.nan] * n_open),
            status=[_status(pairs, level) for pairs in counted] + [Status.RUNNING] * n_open,
            number=[i - 1 for i in known] + [first_free + i for i in range(len(waiting))],
            budget=[pairs[0][1].budget for pairs in counted] + [np.nan] * n_open if n else None,
        )

    def _read(self, history: RunHistory, key: TrialKey, value: TrialValue) -> Trial:
        known = self._trials.get(key)
        if known is None or known[0] is not value:
            trial = read_trial(history.get_config(key.config_id), key, value)
            known = self._trials[key] = value, trial
        return known[1]

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


def loss_budget(configs: Iterable[Sequence[Trial]], min_trials: int) -> float | None:
    """The budget whose costs are the losses; None without budgets.

    The highest one at which ``min_trials`` configurations are complete; before there is one, that
    at which most are, the higher one of equals. Infinite where configurations were evaluated in
    full, without a budget, beside those with one.

    Args:
        configs: Finished trials of each configuration.
        min_trials: Enough configurations.
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


def _counted(pairs: Sequence[Pair], level: float | None) -> list[Pair]:
    """Trials at the lowest budget from the level on; without one, at the highest budget."""
    budgets = [trial.step for _, trial in pairs if trial.step is not None]
    if level is None or len(budgets) < len(pairs):
        return [(key, trial) for key, trial in pairs if level is None or trial.step is None]
    budget = min((b for b in budgets if b >= level), default=max(budgets))
    return [(key, trial) for key, trial in pairs if trial.step == budget]


def _status(pairs: Sequence[Pair], level: float | None) -> Status:
    found = {trial.status for _, trial in pairs}
    below = level is not None and pairs[0][1].budget < level
    if Status.FAILED in found:
        return Status.FAILED
    return Status.PRUNED if below or Status.PRUNED in found else Status.COMPLETE


def _mean_seconds(pairs: Sequence[Pair]) -> float:
    known = [trial.seconds for _, trial in pairs if not math.isnan(trial.seconds)]
    return sum(known) / len(known) if known else math.nan


def _losses(configs: Sequence[Sequence[Pair]]) -> FloatArray:
    """Loss (n,) of each configuration; NaN where one of its trials has none."""
    rows, instances, costs = [], [], []
    names: dict[str | None, int] = {}
    for row, pairs in enumerate(configs):
        if not any(math.isnan(trial.loss) for _, trial in pairs):
            for key, trial in pairs:
                rows.append(row)
                instances.append(names.setdefault(key.instance, len(names)))
                costs.append(trial.loss)
    # Sums must not overflow where the largest number there is marks a bad configuration.
    return adjusted_means(
        np.clip(np.array(costs, dtype=np.float64), -HUGE, HUGE),
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
