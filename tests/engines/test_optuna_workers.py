"""Eight processes on one storage: no trial is lost, twice, or dearer than the ones before.

400 trials, with ``--quick`` 80. No assertion depends on who is faster.
"""

from __future__ import annotations

from pathlib import Path

import benchmark_speedup
import numpy as np
import optuna
import pytest
from optuna.trial import TrialState
from study_workers import SAMPLERS, WORKERS, opened, run_workers

MOST = 2.0  # of a trial near the 400th, as a multiple of one near the 20th: load makes some of it


@pytest.fixture
def n_trials(pytestconfig: pytest.Config) -> int:
    """Trials of each worker."""
    return 10 if pytestconfig.getoption("quick") else 50


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
def test_eight_processes(address: str, sampler: str, n_trials: int, tmp_path: Path) -> None:
    n = WORKERS * n_trials
    notes = np.array(run_workers(address, sampler, tmp_path, n_trials))
    with opened(address) as storage:
        trials = optuna.load_study(study_name=tmp_path.name, storage=storage).get_trials()
    assert [trial.number for trial in trials] == list(range(n))
    assert {trial.state for trial in trials} == {TrialState.COMPLETE}
    assert len({repr(sorted(trial.params.items())) for trial in trials}) == n
    assert notes[:, 0].tolist() == list(range(n))
    early, middle, late = (
        np.median(notes[near - 20 : near + 20, 1:], axis=0) for near in (20, n // 2, n - 20)
    )
    print(f"asked and answered near trials 20, {n // 2} and {n - 20}: {early}, {middle}, {late}")
    assert (np.maximum(middle, late) <= MOST * early).all()


@pytest.mark.parametrize("address", ["postgresql", "mariadb"], indirect=True)
def test_eight_trials_run_at_once(address: str, tmp_path: Path) -> None:
    # Whatever is locked while a worker proposes, it is not while its trial runs.
    notes = run_workers(address, "GBQRSampler", tmp_path, 8, together=True)
    assert [number for number, *_ in notes] == list(range(8 * WORKERS))


def test_the_speed_up_is_measured(postgresql: str) -> None:
    # How large it is depends on the load, and is on the page of the docs.
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    for n in (1, 2):
        assert benchmark_speedup.by_processes("AutoSampler", n, 4, 0.05, postgresql) > 0.05
        assert benchmark_speedup.by_threads("AutoSampler", n, 4, 0.05) > 0.05
