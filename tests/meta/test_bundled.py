"""The memories that come with the package."""

import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from ConfigSpace import Configuration

import automl_plugins
from automl_plugins.meta import bundled
from automl_plugins.meta.memories import LEARNERS, METRICS
from automl_plugins.records.trial import Status

DATA = Path(automl_plugins.__file__).parent / "data"


@pytest.mark.parametrize("learner", LEARNERS)
def test_enough_was_measured(learner: str) -> None:
    data = bundled(learner)
    assert len(data.tasks) >= 50
    distinct, which = data.distinct
    assert len(distinct) >= 60
    for rows in data.rows:  # the same configurations on every task
        assert len(np.unique(which[rows])) == len(distinct)
    complete = data.status == Status.COMPLETE
    assert complete.mean() > 0.95
    assert (data.losses[complete] >= 0).all() and (data.losses[complete] <= 1).all()
    assert np.isnan(data.seconds).mean() < 0.05 and not (data.seconds <= 0).any()
    for vector in distinct:
        Configuration(data.space, vector=vector.copy()).check_valid_configuration()


@pytest.mark.parametrize("learner", LEARNERS)
def test_no_zero_is_packed_for_seconds_that_are_unknown(learner: str) -> None:
    # The text of the file: what reads it would make zeros unknown.
    document = json.loads(lzma.decompress((DATA / f"{learner}.json.xz").read_bytes()))
    seconds = [s for record in document["records"] for s in record["seconds"]]
    assert len(seconds) > 9000
    assert all(s is None or s > 0.0 for s in seconds)


@pytest.mark.parametrize("learner", LEARNERS)
def test_tasks_are_described(learner: str) -> None:
    data = bundled(learner)
    names = data.meta_feature_names()
    assert {"NumberOfInstances", "NumberOfClasses"} <= set(names)
    assert np.isfinite(data.meta_features(names)).mean() > 0.9
    assert all(task.tags["family"] for task in data.tasks)
    assert len({task.tags["family"] for task in data.tasks}) >= 40
    assert all(None not in task.size for task in data.tasks)


def test_metrics_share_everything_but_the_losses() -> None:
    a, b, c = (bundled("knn", metric=metric) for metric in METRICS)
    for other in (b, c):
        np.testing.assert_array_equal(a.vectors, other.vectors)
        np.testing.assert_array_equal(a.seconds, other.seconds)
        assert (a.losses != other.losses).any()


def test_they_are_small() -> None:
    files = sorted(DATA.glob("*.json.xz"))
    assert {file.name.removesuffix(".json.xz") for file in files} == set(LEARNERS)
    assert sum(file.stat().st_size for file in files) < 3e6


def test_unknown_names() -> None:
    with pytest.raises(ValueError, match="learner must be one of 'lightgbm', 'random_forest'"):
        bundled("xgboost")
    with pytest.raises(ValueError, match="metric must be one of 'error', 'balanced_error'"):
        bundled("svm", metric="rmse")
