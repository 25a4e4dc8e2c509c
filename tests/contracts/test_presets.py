"""The presets named after a source do what it says: each against a plain computation of its own.

That they are the same in every framework is in ``test_same_proposal``.
"""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np
import numpy.typing as npt
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer

from automl_plugins import recipes
from automl_plugins.history import History, Status
from automl_plugins.proposer import Proposer
from automl_plugins.space import VectorSpace
from automl_plugins.streams import Streams
from automl_plugins.surrogates import RunningTime

FloatArray = npt.NDArray[np.float64]


def grid_space() -> VectorSpace:
    """300 configurations."""
    space = ConfigurationSpace()
    space.add(Integer("a", (0, 9)), Integer("b", (0, 9)), Categorical("c", ["u", "v", "w"]))
    return VectorSpace(space)


def bumpy(vectors: FloatArray) -> FloatArray:
    rng = np.random.default_rng(3)
    noise = rng.random(10_000)[(vectors @ np.array([100.0, 10.0, 1.0]) * 7).astype(int) % 10_000]
    return np.asarray((vectors[:, 0] - 0.3) ** 2 + (vectors[:, 1] - 0.7) ** 2 + 0.3 * noise)


# --- GBQR, van Hoof 2018, 5.3 --------------------------------------------------------------------


def thesis_bounds(X: FloatArray, losses: FloatArray, others: FloatArray) -> FloatArray:
    """Thesis 5.3.2: LightGBM, 100 estimators of 8 leaves, the bound of the loss."""
    data = lightgbm.Dataset(X, losses, params={"min_data_in_bin": 1, "feature_pre_filter": False})
    parameters = {
        "objective": "quantile",
        "alpha": 0.1,  # the 0.9 of a score
        "num_leaves": 8,
        "min_data_in_leaf": 1,
        "deterministic": True,
        "num_threads": 1,
        "verbosity": -1,
    }
    return np.asarray(lightgbm.train(parameters, data, 100).predict(others))


def test_the_thesis_is_its_loop() -> None:
    space = grid_space()
    everything = space.enumerate(300)
    assert everything is not None
    proposer = recipes.gbqr_thesis()
    tried = np.empty((0, 3))
    for k in range(30):
        history = History.of(tried, bumpy(tried))
        proposal = proposer.propose(space, history, Streams(1), k)
        if k < 3:
            assert proposal.origin == "random"
        else:
            left = everything[~space.seen(everything, np.sort(space.keys(tried)))]
            X, y = space.features(tried), bumpy(tried)
            bounds = thesis_bounds(X, y, space.features(left))
            chosen = thesis_bounds(X, y, space.features(proposal.vector[None]))
            assert chosen[0] == pytest.approx(bounds.min(), abs=1e-5)
            assert proposal.bound == pytest.approx(max(chosen[0], y.min()), abs=1e-5)
        tried = np.vstack([tried, proposal.vector])


@pytest.mark.parametrize("n", [131, 700, 1500])
def test_the_thesis_fits_all_rows_each_time_and_learns_no_failures(n: int) -> None:
    space = ConfigurationSpace()
    space.add(Integer("a", (0, 49)), Integer("b", (0, 49)), Categorical("c", ["u", "v", "w"]))
    vectors = VectorSpace(space)
    everything = vectors.enumerate(7500)
    assert everything is not None
    rows = everything[np.random.default_rng(0).permutation(len(everything))[:n]]
    failed = rows[:, 0] < 0.1
    losses = np.where(failed, np.nan, bumpy(rows))
    status = np.where(failed, Status.FAILED, Status.COMPLETE)
    history = History.of(rows, losses, status=status)
    vector = recipes.gbqr_thesis().propose(vectors, history, Streams(1), n).vector
    X, y = vectors.features(rows[~failed]), losses[~failed]
    left = everything[~vectors.seen(everything, np.sort(vectors.keys(rows)))]
    chosen = thesis_bounds(X, y, vectors.features(vector[None]))[0]
    assert chosen == pytest.approx(thesis_bounds(X, y, vectors.features(left)).min(), abs=1e-5)


def test_the_thesis_searches_a_large_space_as_smac_does(monkeypatch: pytest.MonkeyPatch) -> None:
    space = ConfigurationSpace()
    space.add([Float(f"x{i}", (0.0, 1.0)) for i in range(3)])
    vectors = VectorSpace(space)
    rows = vectors.sample(300, np.random.default_rng(0))
    sizes, starts = [], []
    predict, neighbourhoods = lightgbm.Booster.predict, VectorSpace.neighbourhoods

    def counted(self: lightgbm.Booster, data: FloatArray, **options: Any) -> FloatArray:
        sizes.append(len(data))
        return np.asarray(predict(self, data, **options))

    def seen(self: VectorSpace, points: FloatArray, *args: Any, **options: Any) -> Any:
        starts.append(points)
        return neighbourhoods(self, points, *args, **options)

    monkeypatch.setattr(lightgbm.Booster, "predict", counted)
    monkeypatch.setattr(VectorSpace, "neighbourhoods", seen)
    losses = bumpy(rows)
    recipes.gbqr_thesis().propose(vectors, History.of(rows, losses), Streams(1), 300)
    assert sizes[0] == 10_000
    bounds = thesis_bounds(rows, losses, rows)
    expected = np.sort(bounds)[:10]
    found = thesis_bounds(rows, losses, starts[0])
    assert np.sort(found) == pytest.approx(expected, abs=1e-5)


def test_the_thesis_per_second_is_equation_5_2_in_true_seconds() -> None:
    space = grid_space()
    everything = space.enumerate(300)
    assert everything is not None
    rows = everything[np.random.default_rng(0).permutation(300)[:40]]
    seconds = np.exp(3 * rows[:, 0])
    history = History.of(rows, bumpy(rows), seconds=seconds)
    proposal = recipes.gbqr_thesis(per_second=True).propose(space, history, Streams(1), 40)
    left = everything[~space.seen(everything, np.sort(space.keys(rows)))]
    upper = -thesis_bounds(space.features(rows), bumpy(rows), space.features(left))
    clock = RunningTime(random_state=0).fit(space.features(rows), seconds)
    cost = clock.predict_seconds(space.features(left))
    quality = (upper - np.median(upper)) / cost
    place = np.flatnonzero((left == proposal.vector).all(axis=1))
    assert quality[place[0]] == pytest.approx(quality.max(), rel=1e-3)


@pytest.mark.parametrize(
    "options", [{"alpha": 0.2}, {"n_models": 3}, {"balance": None}, {"cost_budget": 9}]
)
def test_the_thesis_refuses_what_it_does_not_have(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ValueError, match=f"thesis=True takes no {name}"):
        recipes.gbqr(thesis=True, **options)


def test_options_replace_those_of_a_preset_and_none_does_not() -> None:
    plain, same = recipes.gbqr_thesis(), recipes.gbqr(thesis=True, n_startup=None)
    assert isinstance(same, Proposer)
    assert plain.settings.n_startup == same.settings.n_startup == 3
    other = recipes.gbqr_thesis(n_startup=5, failed_trials="avoid").settings
    assert (other.n_startup, other.models.failed_trials) == (5, "avoid")
