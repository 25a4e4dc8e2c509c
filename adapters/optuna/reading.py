"""Optuna studies and storages as ``Search`` objects, for comparisons and tables."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from ConfigSpace import Categorical, ConfigurationSpace
from ConfigSpace.hyperparameters import Constant, Hyperparameter, OrdinalHyperparameter
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.storages import BaseStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from automl_plugins.addresses import did_you_mean, existing
from automl_plugins.records.search import RecordedTrial, Search
from automl_plugins.replay.protocol import TrialStatus
from automl_plugins.spaces.conditions import Rule, as_condition
from automl_plugins.spaces.ranges import float_range, integer_range

from ._columns import cost_of
from ._space import infer_rules
from ._steps import Steps, steps_of

_STATUS = {
    TrialState.COMPLETE: TrialStatus.COMPLETE,
    TrialState.PRUNED: TrialStatus.PRUNED,
    TrialState.FAIL: TrialStatus.FAILED,
}
_GRID = 1000  # stepped parameters with more values count as continuous


def owns(source: str) -> bool:
    """Whether ``curves`` can read a source: a storage address or a journal file."""
    return "://" in source or (source.endswith(".log") and Path(source).is_file())


def curves(
    source: Study | BaseStorage | str,
    *,
    table: str | None = None,
    method: str | None = None,
    seed: int | None = None,
) -> list[Search]:
    """The searches that studies record.

    Args:
        source: A study; or a storage, its address or its journal file, for all studies in it.
        table: What was tuned. None reads the study's user attribute ``"table"``, else its name:
            ``"<table>/<method>"`` or ``"<table>/<method>/<seed>"``.
        method: What tuned it; None as above.
        seed: Number of the repetition; None as above, 0 where there is none.

    Returns:
        One search for each study. Losses are minimised: those of a maximising study change sign.
        Running and waiting trials are left out, which the search says.

    Raises:
        ValueError: For a study of several objectives, or one that does not say what was tuned.
    """
    if isinstance(source, Study):
        studies = [source]
    else:
        storage = open_storage(source) if isinstance(source, str) else source
        names = optuna.get_all_study_names(storage)
        studies = [optuna.load_study(study_name=name, storage=storage) for name in sorted(names)]
    return [_search(study, table, method, seed) for study in studies]


def open_storage(source: str) -> BaseStorage | str:
    """What Optuna takes as a storage, for an address or a journal file.

    Raises:
        ValueError: If there is none; Optuna would create one.
    """
    existing(source)
    if "://" in source:
        return source
    path = Path(source).expanduser()
    if not path.is_file() or not _is_journal(path):
        raise ValueError(
            f"{source!r} is no journal file of Optuna."
            + (
                did_you_mean(source)
                or " Studies are read from such a file, or from a database by its address, as in"
                " 'sqlite:///studies.db'."
            )
        )
    return optuna.storages.JournalStorage(JournalFileBackend(str(path)))


def _is_journal(path: Path) -> bool:
    with path.open("rb") as file:
        first = file.readline()
    try:
        return not first or "op_code" in json.loads(first)
    except (ValueError, TypeError):
        return False


def _search(study: Study, table: str | None, method: str | None, seed: int | None) -> Search:
    if len(study.directions) > 1:
        raise ValueError(
            f"Study {study.study_name!r} has {len(study.directions)} objectives; a search has one."
        )
    table, method, seed = _labels(study, table, method, seed)
    sign = -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0
    trials = study.get_trials(deepcopy=False)
    done = [t for t in trials if t.state.is_finished() and t.datetime_complete is not None]
    done.sort(key=lambda t: (t.datetime_complete or datetime.max, t.number))
    begin = min((t.datetime_start for t in done if t.datetime_start is not None), default=None)
    return Search(
        table,
        method,
        seed,
        [recorded_trial(t, sign, begin) for t in done],
        space_of_trials(done),
        _left_out(study.study_name, trials),
    )


def _labels(
    study: Study, table: str | None, method: str | None, seed: int | None
) -> tuple[str, str, int]:
    attributes: dict[str, Any] = study.user_attrs
    parts = study.study_name.split("/")
    named = dict(zip(("table", "method", "seed"), parts, strict=False)) if len(parts) > 1 else {}
    found = {
        key: given if given is not None else attributes.get(key, named.get(key))
        for key, given in (("table", table), ("method", method), ("seed", seed))
    }
    if absent := [key for key in ("table", "method") if found[key] is None]:
        raise ValueError(
            f"Study {study.study_name!r} does not say its {' and '.join(absent)}: name it"
            " '<table>/<method>/<seed>', set these user attributes, or pass them."
        )
    try:
        number = int(found["seed"] or 0)
    except ValueError:
        raise ValueError(
            f"Study {study.study_name!r}: the seed {found['seed']!r} is no whole number."
        ) from None
    return str(found["table"]), str(found["method"]), number


def _left_out(name: str, trials: Sequence[FrozenTrial]) -> tuple[str, ...]:
    counts = {
        state: sum(t.state == state for t in trials)
        for state in (TrialState.RUNNING, TrialState.WAITING)
    }
    return tuple(
        f"Study {name!r}: {n} {state.name.lower()} trial{'s' if n > 1 else ''} left out."
        for state, n in counts.items()
        if n
    )


def recorded_trial(trial: FrozenTrial, sign: float, begin: datetime | None) -> RecordedTrial:
    """A finished trial; ``begin`` is the start of its search."""
    loss = math.nan
    if trial.state == TrialState.COMPLETE and trial.value is not None:
        loss = sign * trial.value
    elif trial.state == TrialState.PRUNED and trial.last_step is not None:
        loss = sign * trial.intermediate_values[trial.last_step]
    finished = math.nan
    if begin is not None and trial.datetime_complete is not None:
        finished = (trial.datetime_complete - begin).total_seconds()
    curve = {float(s): sign * v for s, v in sorted(trial.intermediate_values.items())}
    status = _STATUS[trial.state]
    params = {name: _snapped(trial.distributions[name], v) for name, v in trial.params.items()}
    return RecordedTrial(params, status, loss, cost_of(trial, "duration"), finished, curve)


# --- the search space -----------------------------------------------------------------------


def space_of_trials(trials: Sequence[FrozenTrial]) -> ConfigurationSpace | None:
    """The union of all parameters, conditions inferred; None if ConfigSpace cannot express it."""
    distributions: dict[str, BaseDistribution] = {}
    for trial in trials:
        distributions.update(trial.distributions)
    if not distributions:
        return None
    space = ConfigurationSpace()
    try:
        space.add([hyperparameter_of(name, d) for name, d in distributions.items()])
    except (TypeError, ValueError):  # choices such as [None, 1] or [True, 1]
        return None
    complete = [t for t in trials if t.state == TrialState.COMPLETE]
    values = {
        name: np.array(
            [
                d.to_internal_repr(t.params[name]) if name in t.params else math.nan
                for t in complete
            ],
            dtype=np.float64,
        )
        for name, d in distributions.items()
    }
    for rule in infer_rules(values, distributions):
        parent_values = _parent_values(rule, distributions[rule.parent])
        space.add(as_condition(space, rule, parent_values))
    return space


def _parent_values(rule: Rule, parent: BaseDistribution) -> list[Any]:
    if isinstance(parent, CategoricalDistribution):
        return [parent.choices[int(i)] for i in rule.values]
    return [int(v) for v in rule.values]


def hyperparameter_of(name: str, distribution: BaseDistribution) -> Hyperparameter[Any, Any]:
    """The hyperparameter of a distribution.

    Raises:
        TypeError, ValueError: For choices that ConfigSpace does not take.
    """
    if isinstance(distribution, CategoricalDistribution):
        if distribution.single():
            return Constant(name, distribution.choices[0])
        return Categorical(name, list(distribution.choices))
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    if distribution.single():
        return Constant(name, distribution.low)
    if (steps := _grid(distribution)) is not None:
        if steps.n == 1:
            return Constant(name, _grid_value(steps, 0))
        return OrdinalHyperparameter(name, [_grid_value(steps, i) for i in range(steps.n)])
    low, high = distribution.low, distribution.high
    log = distribution.log
    if isinstance(distribution, IntDistribution):
        return integer_range(name, distribution.low, distribution.high, log=log)
    return float_range(name, low, high, log=log)


def _grid(distribution: BaseDistribution) -> Steps | None:
    """The values of a parameter with steps, None if it counts as a range."""
    steps = steps_of(distribution)
    if steps is None or steps.n > _GRID:
        return None
    if isinstance(distribution, IntDistribution) and distribution.step == 1:
        return None if steps.listed is None else steps
    return steps


def _grid_value(steps: Steps, i: int) -> Any:
    return steps.value(i) if steps.listed is not None else steps.low + i * steps.step


def _snapped(distribution: BaseDistribution, value: Any) -> Any:
    """A value as the grid has it: 0.3 is 0.30000000000000004 in steps of 0.1."""
    if isinstance(distribution, FloatDistribution) and (steps := _grid(distribution)) is not None:
        return _grid_value(steps, round(steps.index(np.array([value]))[0]))
    return value
