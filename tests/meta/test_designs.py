"""Meta-learned initial designs."""

import math
import pickle
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau
from sklearn.exceptions import NotFittedError

from automl_plugins.meta import (
    Design,
    MetaDataset,
    MetaLearner,
    TaskRecord,
    bad_start,
    delta,
    diverse,
    knn,
    opt,
    portfolio,
    top_k,
)
from automl_plugins.meta.designs import InitialDesign
from automl_plugins.meta.designs.methods import delta_scores, greedy
from automl_plugins.meta.designs.performance import (
    Performance,
    coordinates,
    kernel_means,
    performance,
)
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace

SPACE = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})
ALL = [top_k, delta, diverse, knn, portfolio, bad_start]


def loss(x: np.ndarray, where: float) -> np.ndarray:
    return (x[:, 0] - where) ** 2 + 0.1 * x[:, 1]


def memory(n_tasks: int = 15, *, seed: int = 0, described: bool = True) -> MetaDataset:
    """The same 60 configurations on each task; the best x is its meta-feature "where"."""
    rng = np.random.default_rng(seed)
    rows = rng.random((60, 2))
    return MetaDataset.from_records(
        TaskRecord(
            f"t{t}",
            [{"x": x, "y": y} for x, y in rows.tolist()],
            loss(rows, where),
            space=SPACE,
            meta_features={"where": where} if described else {},
        )
        for t, where in enumerate(rng.random(n_tasks).tolist())
    )


@pytest.mark.parametrize("design", ALL)
def test_what_no_run_has_is_spread(design: InitialDesign) -> None:
    wider = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0), "z": (0.0, 1.0)})
    made = design(wider, memory(), {"where": 0.3}, 8).configurations
    expected = [0.5] * 5 + [0.75, 0.25, 0.375]  # knn has one for each task, without repetitions
    assert [run.pop("z") for run in made] == expected[: len(made)] and len(made) > 6
    assert made == design(SPACE, memory(), {"where": 0.3}, 8).configurations


def memory_of(*tasks: dict[float, float], **options: Any) -> MetaDataset:
    """Tasks that recorded losses by x, at y = 0.5; each has its number as meta-feature "n"."""
    return MetaDataset.from_records(
        TaskRecord(
            f"t{i}",
            [{"x": x, "y": 0.5} for x in task],
            np.array(list(task.values())),
            space=SPACE,
            meta_features={"n": float(i)},
            **options,
        )
        for i, task in enumerate(tasks)
    )


def regret(design: Design, where: float, k: int) -> float:
    rows = np.array([[c["x"], c["y"]] for c in design.configurations[:k]])
    everything = memory().distinct[0]
    losses = loss(everything, where)
    return float((loss(rows, where).min() - losses.min()) / np.ptp(losses))


@pytest.mark.parametrize("design", ALL)
def test_every_design_returns_distinct_legal_configurations(design: InitialDesign) -> None:
    data = memory()
    made = design(SPACE, data, {"where": 0.3}, 6)
    assert len(made) == 6 == len({str(c) for c in made.configurations})
    assert made.method == design.__name__
    for suggestion in made:
        assert SPACE.get_default_configuration().keys() == suggestion.configuration.keys()
        assert suggestion.reason
    again = design(SPACE, memory(), {"where": 0.3}, 6)
    assert again.configurations == made.configurations
    np.testing.assert_array_equal(again.scores, made.scores)
    assert made.method in str(made) and made[0].reason in str(made)


@pytest.mark.slow
def test_designs_that_know_the_task_beat_those_that_do_not() -> None:
    data = memory()
    for k in (1, 3):
        means = {
            design.__name__: np.mean(
                [
                    regret(design(SPACE, data.without(t.name), t.meta_features, k), where, k)
                    for t in data.tasks
                    for where in [t.meta_features["where"]]
                ]
            )
            for design in (diverse, portfolio, top_k, knn, bad_start)
        }
        assert means["diverse"] < 0.5 * means["portfolio"], means
        assert max(means["diverse"], means["top_k"], means["knn"]) < means["portfolio"]
        assert means["bad_start"] == max(means.values())


def a_search_that_converged(name: str, where: float, seed: int) -> TaskRecord:
    """A few points everywhere, then many beside the best."""
    rng = np.random.default_rng(seed)
    wide, narrow = rng.random((20, 2)), rng.normal([where, 0.0], 0.01, (40, 2))
    rows = np.vstack([wide, np.clip(narrow, 0.0, 1.0)])
    configurations = [{"x": x, "y": y} for x, y in rows.tolist()]
    return TaskRecord(name, configurations, loss(rows, where), space=SPACE)


@pytest.mark.parametrize("n_tasks", [1, 2, 3])
def test_the_picks_spread_when_tasks_are_few(n_tasks: int) -> None:
    found = [a_search_that_converged(f"t{i}", 0.3 + 0.05 * i, seed=i) for i in range(n_tasks)]
    made = diverse(SPACE, MetaDataset.from_records(found), None, 5)
    points = np.array([[c["x"], c["y"]] for c in made.configurations])
    gaps = np.linalg.norm(points[:, None] - points[None], axis=2)
    assert gaps[np.triu_indices(5, 1)].mean() > 0.1 and (gaps + np.eye(5)).min() > 0.015
    assert np.abs(points[0] - [0.35, 0.0]).max() < 0.1  # the best that is known
    assert n_tasks > 1 or "unlike the picks before it" in made[1].reason


def test_the_trust_in_the_prediction_fades_from_pick_to_pick() -> None:
    picks = [c["x"] for c in diverse(SPACE, memory(20), {"where": 0.1}, 6).configurations]
    assert picks[0] < 0.3  # what is predicted; the later ones serve any task
    assert max(picks) > 0.8


def test_of_many_equal_tasks_the_far_ones_count_least() -> None:
    """The median distance is 0: more than half of the known tasks are described as the new one."""
    near, far = {0.1: 0.0, 0.5: 5.0, 0.9: 10.0}, {0.1: 10.0, 0.5: 5.0, 0.9: 0.0}
    data = memory_of(near, near, near, far, far)
    tasks = [replace(t, meta_features={"n": float(i > 2)}) for i, t in enumerate(data.tasks)]
    data = replace(data, tasks=tuple(tasks))
    for design in (diverse, knn):
        made = design(SPACE, data, {"n": 0.0}, 1)
        assert made.configurations[0]["x"] == pytest.approx(0.1)
    assert made.scores[0] == 0.0  # nothing of the far ones


@pytest.mark.parametrize("design", [top_k, delta, diverse, knn, bad_start])
@pytest.mark.parametrize("task", [None, {}, {"other": 3.0}])
def test_an_undescribed_task_is_told(design: InitialDesign, task: dict[str, float] | None) -> None:
    made = design(SPACE, memory(), task, 3)
    assert len(made) == 3 and "all of them count alike" in made.notes[0]


def test_the_portfolio_by_hand() -> None:
    data = memory_of({0.1: 0.0, 0.5: 4.0, 0.9: 10.0}, {0.1: 10.0, 0.5: 3.0, 0.9: 0.0})
    made = portfolio(SPACE, data, None, 3)
    assert [c["x"] for c in made.configurations] == pytest.approx([0.5, 0.1, 0.9])
    np.testing.assert_allclose(made.scores, [0.35, 0.5, 0.5])
    assert "expected regret 0.350" in made[0].reason
    # 0.1 saves 0.4 on t0; then 0.9 saves 0.3 on t1
    assert made[1].reason == "lowers the expected regret by 0.200, on tasks like t0"
    assert made[2].reason == "lowers the expected regret by 0.150, on tasks like t1"


def test_knn_takes_the_best_of_the_nearest() -> None:
    data = memory()
    made = knn(SPACE, data, {"where": 0.31}, 4)
    where = np.array([t.meta_features["where"] for t in data.tasks])
    below = [(where < value).mean() / 2 + (where <= value).mean() / 2 for value in (*where, 0.31)]
    order = np.argsort([abs(rank - below[-1]) for rank in below[:-1]], kind="stable")
    nearest = data.rows[order[0]]
    best = data.vectors[nearest][np.argmin(data.losses[nearest])]
    np.testing.assert_allclose(made[0].vector, best)
    assert f"the best on t{order[0]}, distance" in made[0].reason
    assert (made.scores >= 0).all() and (made.scores <= 1).all()


def test_knn_ranks_meta_features_where_its_sources_standardise_them() -> None:
    """A task of a million rows would hide that 100 rows are not 200."""
    sizes = zip([100.0, 200.0, 1e6, 1e6], [10.0, 11.0, 10.0, 30.0], strict=True)
    records = memory_of(*({i / 10: 0.0} for i in range(4))).records()
    data = MetaDataset.from_records(
        record.described(meta_features={"rows": rows, "columns": columns})
        for record, (rows, columns) in zip(records, sizes, strict=True)
    )
    # Standardised, 100 and 1 are one and the columns decide for t1; ranked, the rows do not.
    made = knn(SPACE, data, {"rows": 1.0, "columns": 10.9}, 1)
    assert made[0].reason.startswith("the best on t0")


def test_opt_knows_the_true_ranking() -> None:
    data = memory()
    own = data.subset(lambda task: task.name == "t3")
    left = data.without("t3")
    made = opt(SPACE, left, None, 2, vectors=own.vectors, losses=own.losses)
    tau = [kendalltau(left.losses[rows], own.losses).statistic for rows in left.rows]
    assert f"the best on {left.tasks[int(np.argmax(tau))].name}," in made[0].reason


def test_opt_leaves_out_what_failed_and_says_if_nothing_is_left() -> None:
    data = memory(4)
    vectors, truth = data.vectors[data.rows[2]], data.losses[data.rows[2]].copy()
    truth[7] = np.nan
    made = opt(SPACE, data, None, 2, vectors=vectors, losses=truth)
    assert made[0].reason == "the best on t2, rank correlation 1.00" and not made.notes
    for unknown in (np.full(60, np.nan), np.zeros(60)):
        made = opt(SPACE, data, None, 2, vectors=vectors, losses=unknown)
        assert "No known task has a rank correlation" in made.notes[0]
    for wrong in ({"vectors": vectors[0]}, {"losses": truth[:5]}, {"losses": np.append(truth, 1)}):
        with pytest.raises(ValueError, match="must have shape"):
            opt(SPACE, data, None, 2, **{"vectors": vectors, "losses": truth} | wrong)


def test_top_k_follows_the_learner() -> None:
    data = memory()
    learner = MetaLearner(n_trees=50).fit(data)
    task = {"where": 0.7}
    made = top_k(SPACE, data, task, 3, learner=learner)
    candidates, _ = data.distinct
    predicted = learner.predict(candidates, task)
    np.testing.assert_allclose(made.scores, np.sort(predicted)[:3])
    worst = bad_start(SPACE, data, task, 3, learner=learner)
    np.testing.assert_allclose(worst.scores, -np.sort(-predicted)[:3])
    assert "number 1 of the 60" in made[0].reason and "number 60 of" in worst[0].reason


def test_delta_zero_is_top_k() -> None:
    data = memory()
    options: Any = {"learner": MetaLearner(n_trees=50).fit(data)}
    zero, some = (delta(SPACE, data, {"where": 0.7}, 5, delta=d, **options) for d in (0.0, 0.1))
    top = top_k(SPACE, data, {"where": 0.7}, 5, **options).configurations
    assert zero.configurations == top != some.configurations
    for wrong in (-0.1, np.inf, np.nan):
        with pytest.raises(ValueError, match="delta must be a finite number >= 0"):
            delta(SPACE, data, None, 5, delta=wrong)


def test_the_users_space_counts() -> None:
    space = ConfigurationSpace()
    kind, x = Categorical("kind", ["a", "b"]), Float("x", (0.4, 0.6))
    space.add(kind, x)
    space.add(EqualsCondition(x, kind, "a"))
    for design in ALL:
        for configuration in design(space, memory(), {"where": 0.5}, 3).configurations:
            assert configuration["kind"] == "a" and 0.4 <= configuration["x"] <= 0.6


@pytest.mark.parametrize(
    "design", [*ALL, partial(opt, vectors=np.zeros((1, 2)), losses=np.ones(1))]
)
def test_errors_teach(design: Any) -> None:
    for k, error, match in (
        (0, ValueError, "k must be an integer >= 1, got 0"),
        (1.5, TypeError, "k must be an integer >= 1, got 1.5"),
    ):
        with pytest.raises(error, match=match):
            design(SPACE, memory(), None, k)
    with pytest.raises(ValueError, match="share no hyperparameter"):
        design(ConfigurationSpace({"z": (0.0, 1.0)}), memory(), None, 3)
    with pytest.raises(ValueError, match="None of the 1 runs of the memory completed"):
        design(SPACE, memory_of({0.1: np.nan}), None, 2)
    with pytest.raises(TypeError, match="memory must be a MetaDataset, got list"):
        design(SPACE, memory().records(), None, 3)
    with pytest.raises(TypeError, match="space must be a ConfigurationSpace, got dict"):
        design({"x": (0.0, 1.0)}, memory(), None, 3)
    with pytest.raises(TypeError, match="Meta-features must be numbers by name, got 'iris'"):
        design(SPACE, memory(), "iris", 3)
    with pytest.raises(ValueError, match="The meta-feature n is a whole number too large for a"):
        design(SPACE, memory(), {"n": 10**400}, 3)


@pytest.mark.parametrize("design", ALL)
def test_none_is_a_meta_feature_that_is_not_known(design: Any) -> None:
    unknown = design(SPACE, memory(), {"where": np.nan}, 3)
    assert str(design(SPACE, memory(), {"where": None}, 3)) == str(unknown)


@pytest.mark.parametrize("design", [top_k, delta, bad_start])
def test_a_learner_is_fitted_before(design: Any) -> None:
    with pytest.raises(TypeError, match="learner must be a fitted MetaLearner or None, got 'gbm'"):
        design(SPACE, memory(), None, 3, learner="gbm")
    with pytest.raises(NotFittedError, match="not fitted yet"):
        design(SPACE, memory(), None, 3, learner=MetaLearner())
    of_x = memory_of({0.1: 0.0, 0.5: 1.0}).aligned(ConfigurationSpace({"x": (0.0, 1.0)}))
    learner = MetaLearner(n_trees=2).fit(of_x)
    with pytest.raises(ValueError, match="learner was fitted in another search space"):
        design(SPACE, memory(), None, 3, learner=learner)


def test_a_learner_knows_the_order_of_choices_and_no_defaults() -> None:
    def made(choices: str, default: float = 0.5) -> ConfigurationSpace:
        c, x = Categorical("c", [*choices], default="a"), Float("x", (0.0, 1.0), default=default)
        return ConfigurationSpace({"c": c, "x": x})

    rows = [{"c": c, "x": x} for c in "abd" for x in np.linspace(0.0, 1.0, 20).tolist()]
    losses = [{"a": 0.0, "b": 1.0, "d": 2.0}[row["c"]] + 0.1 * row["x"] for row in rows]
    known = [TaskRecord(f"t{i}", rows, np.array(losses), space=made("abd")) for i in range(3)]
    here = MetaDataset.from_records(known)
    learner = MetaLearner(n_trees=20).fit(here)
    design = top_k(made("abd", default=0.25), here, {}, 1, learner=learner)
    assert design.suggestions[0].configuration["c"] == "a"
    other = pickle.loads(pickle.dumps(learner))
    assert len(top_k(made("abd"), here, {}, 1, learner=other)) == 1
    reordered = MetaLearner(n_trees=20).fit(MetaDataset.from_records(known, made("dba")))
    with pytest.raises(ValueError, match="learner was fitted in another search space"):
        top_k(made("abd"), here, {}, 1, learner=reordered)


@pytest.mark.parametrize("design", ALL)
@pytest.mark.parametrize("losses", [[1.0, 1.0], [np.nan, 2.0]])
def test_tasks_that_say_little(losses: list[float], design: InitialDesign) -> None:
    data = memory_of(*[dict(zip([0.1, 0.9], losses, strict=True))] * 3)
    made = design(SPACE, data, {"n": 1.0}, 2)
    n = 2 if design is bad_start else int(np.isfinite(losses).sum())
    assert len(made) == (min(n, 1) if design is knn else n)
    # what never completed is not suggested
    assert design is bad_start or np.isfinite(losses[0]) or made.configurations[0]["x"] > 0.5


def test_pruned_runs_are_not_the_best() -> None:
    status = np.array([Status.PRUNED, Status.COMPLETE])
    data = memory_of(*[{0.1: 0.0, 0.9: 1.0}] * 3, status=status)
    assert knn(SPACE, data, {"n": 1.0}, 1).configurations[0]["x"] == pytest.approx(0.9)


def test_once_every_best_is_chosen_the_next_ones_are_good_on_average() -> None:
    data = memory_of(
        *({x / 40: abs(x / 40 - 0.8) + 0.001 * i for x in range(40)} for i in range(3))
    )
    for design in (diverse, portfolio, knn):
        picks = [c["x"] for c in design(SPACE, data, None, 6).configurations]
        assert max(abs(x - 0.8) for x in picks) <= 0.08
    assert "the least of the rest" in portfolio(SPACE, data, None, 6)[5].reason


def test_knn_says_which_tasks_it_leaves_aside() -> None:
    described = memory(6).records()
    described[2] = described[2].described(meta_features={})
    made = knn(SPACE, MetaDataset.from_records(described), {"where": 0.5}, 6)
    assert "1 of 6 known tasks have no meta-features" in made.notes[0]


@pytest.mark.parametrize("design", [diverse, knn])
def test_tasks_that_share_no_meta_feature_are_not_near(design: InitialDesign) -> None:
    rows = [{"x": i / 10, "y": 0.0} for i in range(11)]
    x = np.arange(11) / 10
    data = MetaDataset.from_records(
        TaskRecord(name, rows, abs(x - best), space=SPACE, meta_features=described)
        for name, best, described in (
            ("low", 0.1, {"n": 1.0}),
            ("high", 0.2, {"n": 3.0}),
            ("other", 0.9, {"p": 1.0}),
            ("none", 0.9, {}),
        )
    )
    # A task of which nothing is known lies in the middle, where the new one does.
    made = design(SPACE, data, {"n": 2.0}, 1)
    alone = design(SPACE, data.without("other", "none"), {"n": 2.0}, 1)
    assert made.configurations == alone.configurations
    np.testing.assert_allclose(made.scores, alone.scores, atol=1e-12)


def equal(k: int, n: int) -> np.ndarray:
    return np.full((k, n), 1.0 / n)


def test_greedy_by_hand() -> None:
    # 2 is best on average; given 2, configuration 0 mends scenario a, 1 mends b less
    scenarios = np.array([[0.0, 0.9, 0.4], [1.0, 0.1, 0.3]])
    assert greedy(scenarios, equal(3, 2)) == [2, 0, 1]


def test_doubt_spreads_what_the_scenarios_tie() -> None:
    # 0 and 1 are near-copies; 2 is a little worse and far from both
    scenarios = np.array([[0.0, 0.01, 0.02, 0.9]])
    doubt = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]]) * 0.1
    assert greedy(scenarios, equal(4, 1)) == [0, 1, 2, 3]
    assert greedy(scenarios, equal(4, 1), doubt) == [0, 2, 1, 3]
    assert greedy(scenarios, equal(4, 1), 0.0 * doubt) == [0, 1, 2, 3]


@given(seed=st.integers(0, 10_000), k=st.integers(1, 3))
@settings(max_examples=50, deadline=None)
def test_greedy_is_nearly_as_good_as_the_best_set(seed: int, k: int) -> None:
    scenarios = np.random.default_rng(seed).random((6, 7))

    def gain(chosen: tuple[int, ...]) -> float:  # against a regret of 1 everywhere
        return float((1.0 - scenarios[:, list(chosen)].min(axis=1)).mean())

    best = max(gain(chosen) for chosen in combinations(range(7), k))
    assert gain(tuple(greedy(scenarios, equal(k, 6)))) >= (1 - 1 / math.e) * best - 1e-12


def test_delta_by_hand() -> None:
    predicted = np.array([0.0, 1.0, 2.0, 10.0])  # p = 1, 0.9, 0.8, 0
    scores = delta_scores(predicted, 0.1)
    np.testing.assert_allclose(scores, [1.0, 0.1**0.1 + 0.9, 0.2**0.1 + 0.8, 1.0], rtol=1e-12)
    assert scores.argmax() == 1
    # both ends of the ranking score least
    assert scores[0] == scores[3] == scores.min()
    assert np.unique(delta_scores(np.ones(3), 0.1)).size == 1


def test_measured_regrets_by_hand() -> None:
    known = performance(memory_of({0.1: 1.0, 0.5: 2.0, 0.9: 3.0}, {0.5: 7.0, 0.3: 5.0}))
    assert known.candidates[:, 0].tolist() == pytest.approx([0.1, 0.5, 0.9, 0.3])
    np.testing.assert_allclose(
        known.measured, [[0.0, 0.5, 1.0, np.nan], [np.nan, 1.0, np.nan, 0.0]]
    )
    assert not np.isnan(known.filled).any() and not np.isnan(known.smoothed).any()
    np.testing.assert_allclose(known.filled[0, :3], [0.0, 0.5, 1.0])
    assert known.smoothed[0, 0] == pytest.approx(0.5 * known.estimated[0, 0])
    assert known.smoothed[0, 3] == known.estimated[0, 3]


def test_a_failure_is_bad_and_its_neighbours_are_not() -> None:
    whole = performance(memory_of({0.1: 1.0, 0.5: 2.0, 0.9: 3.0}, {0.5: 7.0, 0.3: 5.0}))
    failed = {0.1: 1.0, 0.3: np.nan, 0.5: 2.0, 0.9: 3.0}
    known = performance(memory_of(failed, {0.5: 7.0, 0.3: 5.0}))
    at = [known.candidates[:, 0].tolist().index(x) for x in whole.candidates[:, 0].tolist()]
    np.testing.assert_allclose(known.estimated[:, at], whole.estimated)
    assert known.measured[0, at].tolist() == [0.0, 0.5, 1.0, 1.0]  # the last one failed there


def test_kernel_means_by_hand() -> None:
    runs, values = np.array([[0.0], [0.2]]), np.array([0.0, 1.0])
    weight = np.exp(-0.5)  # one width away
    expected = [weight / (1 + weight), 1 / (1 + weight), 0.5]
    got = kernel_means(np.array([[0.0], [0.2], [0.1]]), runs, values)
    np.testing.assert_allclose(got, expected)


def of_the_best(memory: MetaDataset, most: int) -> Performance:
    """``performance`` of so many candidates at most."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("automl_plugins.meta.designs.performance.MAX_CANDIDATES", most)
        return performance(memory)


def test_of_many_configurations_the_best_of_each_task() -> None:
    rng = np.random.default_rng(0)
    tasks = [{float(x): float(rng.random()) for x in rng.random(50)} for _ in range(4)]
    known = of_the_best(memory_of(*tasks), 8)
    best = [sorted(task, key=lambda x, task=task: task[x])[:2] for task in tasks]  # type: ignore[misc]
    expected = sorted(x for pair in best for x in pair)
    assert sorted(known.candidates[:, 0].tolist()) == pytest.approx(expected)
    assert known.measured.shape == (4, 8)


@pytest.mark.parametrize("design", [diverse, portfolio, knn, top_k, delta])
def test_tasks_without_usable_runs_change_nothing(design: InitialDesign) -> None:
    space = ConfigurationSpace({"x": (0.0, 1.0), "k": ["q", "r"]})
    rng = np.random.default_rng(0)
    records = [
        TaskRecord(
            f"t{i}",
            [{"k": str(k), "x": float(x)} for k, x in zip("qrqr", rng.random(4), strict=True)],
            rng.random(4),
            meta_features={"n": float(i)},
        )
        for i in range(4)
    ]
    others = [
        TaskRecord("f", records[0].configurations, np.full(4, np.nan), meta_features={"n": 2.0}),
        TaskRecord("p", [{"k": "p", "x": 0.1}], np.zeros(1), meta_features={"n": 2.0}),
        TaskRecord("c", [{"c": 0.1}, {"c": 0.2}], np.arange(2.0), meta_features={"n": 3.0}),
    ]
    found, beside = (
        design(space, MetaDataset.from_records(known, space), {"n": 2.0}, 3)
        for known in (records, [*others[:2], *records, others[2]])
    )
    assert beside.configurations == found.configurations
    np.testing.assert_array_equal(beside.scores, found.scores)


def test_inactive_numbers_lie_apart() -> None:
    space = ConfigurationSpace()
    parent, child = Categorical("k", ["a", "b"]), Float("c", (0.0, 1.0))
    space.add(parent, child, Float("x", (0.0, 1.0)))
    space.add(EqualsCondition(child, parent, "a"))
    vectors = VectorSpace(space)
    rows = np.full((3, 3), 0.5)
    rows[:, space.index_of["k"]] = [0, 0, 1]
    rows[:, space.index_of["c"]] = [0.0, 1.0, np.nan]
    points = coordinates(vectors, rows)
    assert not np.isnan(points).any()
    column = [i for i in range(points.shape[1]) if len(set(points[:, i])) == 3]
    assert points[:, column[0]].tolist() == pytest.approx([1 / 3, 1.0, 0.0])


def test_large_memories_keep_the_best_of_each_task_and_the_best_on_average() -> None:
    """The configuration that suits all tasks is the best on none."""
    n_tasks, n_own = 12, 6
    places = np.random.default_rng(0).permutation(np.linspace(0.0, 1.0, n_tasks * n_own + 1))
    losses = np.ones((n_tasks, len(places)))
    for task in range(n_tasks):
        losses[task, task * n_own : (task + 1) * n_own] = 0.001 * np.arange(n_own)
    losses[:, -1] = 0.1
    memory = memory_of(*(dict(zip(places.tolist(), row.tolist(), strict=True)) for row in losses))
    for most in (20, 13, 4):
        found = set(of_the_best(memory, most).candidates[:, 0].round(9).tolist())
        wanted = {places[-1], *(places[row.argmin()] for row in losses)}
        assert {round(place, 9) for place in wanted} <= found
        assert len(found) <= max(most, most // 2 + n_tasks)
    # What few tasks have run is no best on average.
    few = memory_of({0.1: 0.0, 0.2: 1.0}, {0.3: 0.0, 0.4: 0.5, 0.5: 1.0}, {0.6: 0.0, 0.7: 1.0})
    assert of_the_best(few, 3).candidates[:, 0].tolist() == [0.1, 0.3, 0.6]


def test_the_best_on_average_is_the_best_whoever_has_run_it_more_often() -> None:
    tasks = [{0.1 + i / 100: 0.0, 0.6: 0.2, **({0.5: 0.3} if i < 2 else {})} for i in range(4)]
    found = of_the_best(memory_of(*tasks), 2).candidates[:, 0].round(9)
    assert 0.6 in found and 0.5 not in found
