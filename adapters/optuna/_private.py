"""The only place that touches what Optuna does not promise to keep.

Optuna has no public way for a sampler to write to a trial, to tell studies apart, or to see the
values that ``PartialFixedSampler`` holds back. ``tests/adapters/optuna/test_private.py`` fails
loudly when one of these changes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from optuna.samplers import PartialFixedSampler
from optuna.storages import InMemoryStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

_PREFIX = "automl_plugins"
_OVERHEAD = f"{_PREFIX}:overhead"
_CHUNK = 2045  # relational storages keep 2048 characters of a value


def study_key(study: Study) -> tuple[int, int, int]:
    """Identifies a study, or the bracket of it that ``HyperbandPruner`` shows to a sampler."""
    bracket = getattr(study, "_bracket_id", -1)
    return id(study._storage), study._study_id, bracket


def storage_of(study: Study) -> Any:
    """The storage, held by caches so that its identity cannot be taken over by another one."""
    return study._storage


def write_proposal(study: Study, trial: FrozenTrial, values: Mapping[str, float]) -> None:
    """Publish the joint proposal of a running trial, in internal values, for other workers."""
    text = json.dumps(dict(values))
    for i, start in enumerate(range(0, len(text), _CHUNK)):
        key = f"{_PREFIX}:proposal:{i}"
        chunk = text[start : start + _CHUNK]
        study._storage.set_trial_system_attr(trial._trial_id, key, chunk)


def read_proposal(trial: FrozenTrial) -> dict[str, float]:
    """What ``write_proposal`` published, empty if nothing or not all of it is there yet."""
    chunks: list[str] = []
    while (chunk := trial.system_attrs.get(f"{_PREFIX}:proposal:{len(chunks)}")) is not None:
        chunks.append(chunk)
    try:
        return dict(json.loads("".join(chunks))) if chunks else {}
    except json.JSONDecodeError:  # another worker is still writing its chunks
        return {}


def write_overhead(study: Study, trial: FrozenTrial, seconds: float) -> None:
    """Store the sampler's own time within the trial's duration."""
    study._storage.set_trial_system_attr(trial._trial_id, _OVERHEAD, seconds)


def read_overhead(trial: FrozenTrial) -> float:
    """The sampler's own seconds within the trial's duration."""
    return float(trial.system_attrs.get(_OVERHEAD, 0.0))


def write_explanation(study: Study, trial: FrozenTrial, facts: Mapping[str, Any]) -> None:
    """Store why a configuration was proposed, as the user attribute ``automl_plugins``."""
    study._storage.set_trial_user_attr(trial._trial_id, _PREFIX, dict(facts))


def read_explanation(trial: FrozenTrial | Trial) -> dict[str, Any]:
    """What ``write_explanation`` stored, empty if nothing."""
    return dict(trial.user_attrs.get(_PREFIX, {}))


def held_values(study: Study, trial: FrozenTrial) -> dict[str, Any]:
    """Values of this trial that are decided already: enqueued, or held by a partial fixing."""
    held: dict[str, Any] = {}
    sampler = study.sampler
    if isinstance(sampler, PartialFixedSampler):
        held.update(sampler._fixed_params)
    held.update(trial.system_attrs.get("fixed_params", {}))
    held.update(trial.params)
    return held


class SimulatedStorage(InMemoryStorage):
    """In-memory storage whose trials begin and end when a simulated clock says so.

    Samplers that weigh durations then see the simulated ones.
    """

    def __init__(self) -> None:
        super().__init__()
        self._moments: dict[int, tuple[datetime, datetime]] = {}

    def schedule(self, trial: Trial, started: datetime, finished: datetime) -> None:
        """Set the moments that a running trial will have once it is told."""
        self._moments[trial._trial_id] = started, finished

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        """As in the base class; simulated durations hold no overhead that could be taken off."""
        if key != _OVERHEAD:
            super().set_trial_system_attr(trial_id, key, value)

    def set_trial_state_values(
        self, trial_id: int, state: TrialState, values: Sequence[float] | None = None
    ) -> bool:
        """As in the base class; a scheduled trial gets its moments."""
        updated = super().set_trial_state_values(trial_id, state, values)
        if state.is_finished() and trial_id in self._moments:
            stored = self._get_trial(trial_id)
            stored.datetime_start, stored.datetime_complete = self._moments.pop(trial_id)
        return updated
