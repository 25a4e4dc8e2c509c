"""Eight processes and 400 trials on every storage: none lost, none twice, none dearer than others.

No assertion depends on who is faster.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState
from study_workers import SAMPLERS, TRIALS, WORKERS, open_storage, run_workers

N = WORKERS * TRIALS
MOST_ASKED = 1.25  # of trials near the 400th, as a multiple of those near the 20th
MOST_ANSWERED = 2.0  # how much is new since the last trial depends on the other workers


@pytest.fixture
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of the storage that is tested."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'study.db'}"
    if request.param == "journal":
        return str(tmp_path / "study.log")
    return str(request.getfixturevalue(request.param))


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("address", ["sqlite", "journal", "postgresql", "mariadb"], indirect=True)
def test_eight_processes(address: str, sampler: str, tmp_path: Path) -> None:
    notes = np.array(run_workers(address, sampler, tmp_path))
    study = optuna.load_study(study_name=sampler, storage=open_storage(address))
    trials = study.get_trials(deepcopy=False)
    assert [trial.number for trial in trials] == list(range(N))
    assert {trial.state for trial in trials} == {TrialState.COMPLETE}
    assert len({repr(sorted(trial.params.items())) for trial in trials}) == N
    assert notes[:, 0].tolist() == list(range(N))
    early, middle, late = (
        np.median(notes[near - 20 : near + 20, 1:], axis=0) for near in (20, 200, 380)
    )
    print(f"asked and answered near trials 20, 200 and 380: {early}, {middle}, {late}")
    assert max(middle[0], late[0]) <= MOST_ASKED * early[0]
    assert max(middle[1], late[1]) <= MOST_ANSWERED * early[1]
