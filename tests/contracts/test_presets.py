"""Presets named after a paper follow it: each is compared with a plain computation.

``test_same_proposal`` checks that they are the same in every framework.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import lightgbm
import numpy as np
import optuna
import pytest
from automl_plugins.adapters.hyperopt import weighted
from automl_plugins.adapters.hyperopt.algos import Boasf
from automl_plugins.adapters.optuna import BOASFSampler, WeightedModelSampler
from ConfigSpace import Categorical, Configuration, ConfigurationSpace, Float, Integer
from hyperopt import Domain, Trials, hp
from scipy.stats import norm

from automl_plugins import recipes
from automl_plugins.arrays import FloatArray
from automl_plugins.bandits import SuccessiveFiltering
from automl_plugins.bandits.records import ArmRecords
from automl_plugins.bandits.successive_filtering import Round
from automl_plugins.meta import MatrixFactorization, MetaDataset, TaskRecord
from automl_plugins.meta.factorization.processes import Parameters
from automl_plugins.proposers.model_based import ModelBasedProposer
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams
from automl_plugins.surrogates import RunningTime
from automl_plugins.surrogates.base import log_expected_improvement
from automl_plugins.surrogates.two_stage_sources import Sources


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
    """Thesis 5.3.2: LightGBM, 100 estimators of 8 leaves, the bound of the score, negated."""
    data = lightgbm.Dataset(X, -losses, params={"min_data_in_bin": 1, "feature_pre_filter": False})
    parameters = {
        "objective": "quantile",
        "alpha": 0.9,
        "num_leaves": 8,
        "min_data_in_leaf": 1,
        "deterministic": True,
        "num_threads": 1,
        "verbosity": -1,
    }
    return -np.asarray(lightgbm.train(parameters, data, 100).predict(others))


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
    predict, neighbours = lightgbm.Booster.predict, VectorSpace.neighbours

    def counted(self: lightgbm.Booster, data: FloatArray, **options: Any) -> FloatArray:
        sizes.append(len(data))
        return np.asarray(predict(self, data, **options))

    def seen(self: VectorSpace, points: FloatArray, *args: Any, **options: Any) -> Any:
        starts.append(points)
        return neighbours(self, points, *args, **options)

    monkeypatch.setattr(lightgbm.Booster, "predict", counted)
    monkeypatch.setattr(VectorSpace, "neighbours", seen)
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
    assert isinstance(same, ModelBasedProposer)
    assert plain.settings.n_startup == same.settings.n_startup == 3
    other = recipes.gbqr_thesis(n_startup=5, failed_trials="avoid").settings
    assert (other.n_startup, other.failed_trials) == (5, "avoid")


# --- TST, Wistuba 2016, 4 ------------------------------------------------------------------------


def se(A: FloatArray, B: FloatArray, scales: FloatArray) -> FloatArray:
    """The squared exponential kernel with a length scale for each input."""
    gaps = (A[:, None, :] - B[None, :, :]) / scales
    return np.asarray(np.exp(-0.5 * (gaps**2).sum(axis=2)))


def tst_memory(space: VectorSpace) -> tuple[MetaDataset, FloatArray]:
    """Five tasks that know 60 of the 300 configurations, and the losses of a sixth."""
    everything = space.enumerate(300)
    assert everything is not None
    rng = np.random.default_rng(0)
    known = everything[rng.permutation(300)[:60]]

    def losses(vectors: FloatArray, at: float) -> FloatArray:
        scale = np.array([1.0, 1.0, 0.2])
        return np.asarray(((np.abs(vectors - at) * scale) ** 2).sum(axis=1))

    records = [
        TaskRecord(
            f"task {i}",
            [dict(Configuration(space.space, vector=v)) for v in known],
            # Losses on very different scales: each task is scaled to [0, 1].
            10.0**i * losses(known, at),
            space=space.space,
        )
        for i, at in enumerate((0.2, 0.35, 0.5, 0.8, 0.1))
    ]
    return MetaDataset.from_records(records, space.space), losses(everything, 0.4).round(2)


def test_tst_of_the_authors_is_its_equations() -> None:
    space = grid_space()
    everything = space.enumerate(300)
    assert everything is not None
    X = space.features(everything)
    memory, losses = tst_memory(space)
    sources = Sources.fit(memory, kernel="se")
    scales, noise = sources.scales, sources.noise
    # First stage: a process for each task, its losses scaled to [0, 1].
    f = []
    for rows in memory.rows:
        A, y = space.features(memory.vectors[rows]), memory.losses[rows]
        y = (y - y.min()) / np.ptp(y)
        K = se(A, A, scales) + noise * np.eye(len(A))
        f.append(y.mean() + se(X, A, scales) @ np.linalg.solve(K, y - y.mean()))
    first_stage = np.array(f)

    proposer = recipes.tst(memory, paper=True)
    tried: list[int] = []
    voters = set()
    for k in range(16):
        history = History.of(everything[tried].reshape(-1, 3), losses[tried])
        vector = proposer.propose(space, history, Streams(1), k).vector
        chosen = int(np.flatnonzero((everything == vector).all(axis=1))[0])
        free = np.setdiff1d(np.arange(300), tried)
        if k == 0:
            utility = -first_stage.mean(axis=0)[free]
        else:
            y = losses[tried]
            distances = []
            for seen in first_stage[:, tried]:
                pairs = [(i, j) for j in range(k) for i in range(j)]  # i was tried before j
                wrong = [(y[i] > y[j]) != (seen[i] > seen[j]) for i, j in pairs]
                distances.append(np.mean(wrong) if pairs else 0.0)  # eqs. 12 and 13
            u = np.array(distances) / 0.1
            weights = np.where(u <= 1.0, 0.75 * (1.0 - u**2), 0.0)  # eq. 10
            voters.add(int((weights > 0).sum()))
            own_mean, own_std = plain_process(X[tried], y, X[free], scales, noise)
            total = weights.sum() + 0.75
            mean = (weights @ first_stage[:, free] + 0.75 * own_mean) / total  # eq. 8
            utility = log_expected_improvement(mean, own_std, float(y.min()))  # eqs. 6, 11
        best = free[np.argmax(utility)]
        value = dict(zip(free.tolist(), utility.tolist(), strict=True))
        assert value[chosen] == pytest.approx(value[int(best)], abs=1e-3)
        tried.append(chosen)
    assert {0, 5} & voters and len(voters) > 1  # the bandwidth decided


def plain_process(
    A: FloatArray, y: FloatArray, X: FloatArray, scales: FloatArray, noise: float
) -> tuple[FloatArray, FloatArray]:
    """Posterior of a process around the mean of ``y``, in units of their deviation."""
    K = se(A, A, scales) + max(noise, 1e-6) * np.eye(len(A))
    k, size = se(X, A, scales), float(y.std()) or 1.0
    mean = y.mean() + k @ np.linalg.solve(K, y - y.mean())
    variance = 1.0 - np.einsum("mn,nm->m", k, np.linalg.solve(K, k.T))
    return mean, size * np.sqrt(np.maximum(variance, 0.0))


# --- PMF, Fusi 2018, 3 and 4 ---------------------------------------------------------------------

N_PIPELINES, N_DATA_SETS = 14, 6


def scores() -> FloatArray:
    """Losses (N, D) that are negated balanced accuracies; a fifth is missing."""
    rng = np.random.default_rng(2)
    places, data_sets = rng.random((N_PIPELINES, 2)), rng.random((2, N_DATA_SETS))
    Y = -(places @ data_sets) / 2 - 0.05 * rng.random((N_PIPELINES, N_DATA_SETS))
    return np.where(rng.random(Y.shape) < 0.2, np.nan, Y)


def likelihood(p: Parameters, Y: FloatArray) -> float:
    """Equation 6, with the Gaussian's own 1/2 of the log determinant."""
    total = 0.0
    for y in Y.T:
        e = ~np.isnan(y)
        K = np.exp(p.log_amplitude[0]) * se(p.places[e], p.places[e], np.exp(p.log_lengths))
        C = K + np.diag(np.exp(p.log_noise[e]))
        total += 0.5 * np.linalg.slogdet(2 * np.pi * C)[1] + 0.5 * y[e] @ np.linalg.solve(C, y[e])
    return float(total)


def test_pmf_descends_the_likelihood_of_the_losses_as_they_are() -> None:
    Y, rate = scores(), 1e-4
    quick = {"n_components": 2, "learning_rate": rate}
    start = MatrixFactorization.paper(epochs=0, **quick).fit(Y).parameters_
    end = MatrixFactorization.paper(epochs=1, **quick).fit(Y).parameters_
    assert np.ptp(start.log_noise) == np.ptp(end.log_noise) == 0.0
    step = 1e-6
    for name in ("places", "log_lengths", "log_amplitude", "log_noise"):
        old = getattr(start, name)
        directions = list(np.ndindex(old.shape)) if name != "log_noise" else [slice(None)]
        for place in directions:
            moved = []
            for sign in (1.0, -1.0):
                changed = old.copy()
                changed[place] += sign * step
                moved.append(likelihood(replace(start, **{name: changed}), Y))
            expected = old[place] - rate * (moved[0] - moved[1]) / (2 * step)
            assert getattr(end, name)[place] == pytest.approx(expected, abs=1e-8)
    paper = MatrixFactorization.paper()
    assert (paper.n_components, paper.learning_rate, paper.epochs) == (20, 1e-7, 300)
    assert (paper.batch, paper.validation) == (50, 0.0)


def test_pmf_of_the_paper_begins_with_the_nearest_and_improves_as_expected() -> None:
    Y = scores()
    space = ConfigurationSpace()
    space.add(Integer("p", (0, N_PIPELINES - 1)))
    vectors = VectorSpace(space)
    features = np.random.default_rng(5).random((N_DATA_SETS, 2)) * [1.0, 1000.0]
    records = []
    for d, y in enumerate(Y.T):
        e = np.flatnonzero(~np.isnan(y))
        described = {"a": float(features[d, 0]), "b": float(features[d, 1])}
        configurations = [{"p": int(n)} for n in e]
        records.append(
            TaskRecord(f"t{d}", configurations, y[e], space=space, meta_features=described)
        )
    memory = MetaDataset.from_records(records, space)
    new = np.array([0.3, 500.0])
    proposer = recipes.pmf(memory, paper=True, meta_features={"a": 0.3, "b": 500.0})
    model = MatrixFactorization.paper().fit(Y)
    p = model.parameters_
    truth = -np.random.default_rng(9).random(N_PIPELINES)
    gaps = (np.abs(features - new) / features.std(axis=0)).sum(axis=1)
    nearest = list(dict.fromkeys(int(np.nanargmin(Y[:, d])) for d in np.argsort(gaps)))
    n_start = min(5, len(nearest))
    tried: list[int] = []
    for k in range(10):
        rows = np.array([vectors.space["p"].to_vector(n) for n in tried]).reshape(-1, 1)
        history = History.of(rows, truth[tried])
        vector = proposer.propose(vectors, history, Streams(1), k).vector
        chosen = int(Configuration(space, vector=vector)["p"])
        if k < n_start:
            assert chosen == nearest[k]
        else:
            lengths, noise = np.exp(p.log_lengths), np.exp(p.log_noise[0])
            K = np.exp(p.log_amplitude[0]) * se(p.places, p.places, lengths)
            C = K[np.ix_(tried, tried)] + noise * np.eye(len(tried))
            mean = K[:, tried] @ np.linalg.solve(C, truth[tried])
            left = K[:, tried] @ np.linalg.solve(C, K[tried])
            std = np.sqrt(np.diagonal(K) + noise - np.diagonal(left))
            gain = (truth[tried].min() - mean - 0.01) / std
            improvement = std * (gain * norm.cdf(gain) + norm.pdf(gain))
            improvement[tried] = -np.inf
            assert chosen == int(improvement.argmax())
        tried.append(chosen)


# --- BOASF, Zhu 2020, algorithm 1 ----------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_boasf_of_the_paper_is_algorithm_1(seed: int) -> None:
    budget, n_arms = 60, 4
    table = np.random.default_rng(seed).random((n_arms, budget)) * [[0.9], [0.8], [0.7], [0.6]]
    rules = SuccessiveFiltering.paper(budget)
    arms: list[int] = []
    previous: Round | None = None

    def records() -> ArmRecords:
        return ArmRecords.of(arms, [table[a, arms[:i].count(a)] for i, a in enumerate(arms)])

    def plain_scores(alive: list[int]) -> FloatArray:
        rewards = [table[a, : arms.count(a)] for a in alive]
        return np.array([r.mean() + 2.0 * r.std() / np.sqrt(len(r)) for r in rewards])  # eq. 6

    alive = list(range(n_arms))
    for i in range(3):
        opened = rules.open(range(n_arms), records(), previous, Streams(seed))
        if i:
            scores = plain_scores(alive)
            p = (scores - scores.min()) / np.ptp(scores) if len(alive) > 1 else np.ones(1)  # eq. 7
            assert [d.probability for d in opened.decisions] == pytest.approx(p.tolist())
            alive = [a for a in alive if a in opened.arms]
            assert set(alive) == set(opened.arms)  # no arm comes back
            weights = np.exp(plain_scores(alive))  # eq. 8
        else:
            weights = np.ones(n_arms)
        shares = weights / weights.sum() * budget / 3
        before = [arms.count(a) for a in alive]
        while (
            arm := rules.choose(opened, records(), alive, Streams(seed), len(arms))
        ) is not None:
            arms.append(arm)
            if len(arms) == budget:
                break
        after = [arms.count(a) for a in alive]
        if len(arms) < budget:  # while res(a) > 0, so that the last evaluation overruns
            spent = np.array(after) - np.array(before)
            assert spent.tolist() == np.ceil(shares - 1e-9).astype(int).tolist()
        previous = opened
    assert i == 2


def test_boasf_of_the_paper_is_the_same_in_every_framework() -> None:
    rules = SuccessiveFiltering.paper(30.0, unit="seconds", rounds=4)
    ours = vars(rules)
    assert vars(BOASFSampler.paper(seconds=30.0, rounds=4, seed=0).filtering) == ours
    options = Boasf(budget_seconds=30.0, rounds=4, paper=True)
    assert vars(options.filtering) == ours
    assert (rules.score, rules.c, rules.temperature) == ("mean", 2.0, 1.0)
    assert not rules.carry_debts
    with pytest.raises(ValueError, match="paper=True takes no score, min_pulls"):
        Boasf(max_evals=9, paper=True, score="mean", min_pulls=2)


# --- weighted model sampling, Sarigiannis 2019, 3 ------------------------------------------------


def test_weighted_sampling_of_the_paper_draws_by_2_to_the_n_alone() -> None:
    counts = {"a": 0, "b": 1, "c": 3}
    sampler = WeightedModelSampler.paper("model", n_hyperparameters=counts, seed=2)
    study = optuna.create_study(sampler=sampler)

    def objective(trial: optuna.Trial) -> float:
        model = trial.suggest_categorical("model", list(counts))
        values = [trial.suggest_float(f"{model}{i}", 0, 1) for i in range(counts[model])]
        if model == "c":  # a failing model is not given up
            raise RuntimeError
        return sum(values)

    study.optimize(objective, n_trials=200, catch=(RuntimeError,))
    models = [trial.params["model"] for trial in study.trials]
    seen = np.array([models.count(m) for m in "abc"])
    weights = 2.0 ** np.array(list(counts.values()))
    # "a" has one configuration only and may leave after it.
    share = seen[1:] / seen[1:].sum()
    assert share == pytest.approx(weights[1:] / weights[1:].sum(), abs=0.06)
    space = {
        "model": hp.choice(
            "model",
            [
                {"b": hp.uniform("b0", 0, 1)},
                {f"c{i}": hp.uniform(f"c{i}", 0, 1) for i in range(3)},
            ],
        )
    }
    domain = Domain(lambda values: 0.0, space)
    drawn = [
        document["misc"]["vals"]["model"][0]
        for seed in range(6)  # what a document costs grows with those before it
        for document in weighted(list(range(100)), domain, Trials(), seed, paper=True)
    ]
    assert np.mean(drawn) == pytest.approx(0.8, abs=0.06)
    plain = weighted(list(range(9)), domain, Trials(), 1)
    same = weighted(list(range(9)), domain, Trials(), 1, paper=True)
    assert [d["misc"]["vals"] for d in plain] == [d["misc"]["vals"] for d in same]
    for other in ({"inner": "tpe"}, {"weights": "volume"}, {"weights": np.ones(2)}):
        with pytest.raises(ValueError, match="paper=True has weights"):
            weighted(paper=True, **other)([0], domain, Trials(), 1)
