"""``weighted`` and ``bandit`` as algorithms of ``fmin``."""

from __future__ import annotations

import math
import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import (
    PyllSpace,
    arm_report,
    bandit,
    boasf,
    explain,
    gbqr,
    optimizer,
    weighted,
)
from automl_plugins.adapters.hyperopt.trials import read_trial
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer
from hyperopt import (
    JOB_STATE_ERROR,
    JOB_STATE_RUNNING,
    STATUS_FAIL,
    STATUS_OK,
    Domain,
    Trials,
    hp,
    mix,
    rand,
    space_eval,
    tpe,
)
from hyperopt.base import JOB_STATE_CANCEL, trials_from_docs
from hyperopt.fmin import generate_trials_to_calculate
from hyperopt_database import minimise_in_database
from hyperopt_runs import configs, minimise, options_of, values_of

from automl_plugins.bandits.confidence import UCB1, MaxUCB
from automl_plugins.bandits.policy import Policy, Standing
from automl_plugins.frameworks import Outcome, Problem, TrialStatus
from automl_plugins.records.trial import Status


class Recorder(Policy):
    """The arm with the best mean; keeps what it was shown."""

    def __init__(self) -> None:
        super().__init__(min_pulls=1, min_share=0.0)
        self.shown: list[Any] = []

    def choose(self, arms: Any, records: Any, streams: Any, k: int) -> int:
        self.shown.append((list(arms), records, k))
        return super().choose(arms, records, streams, k)

    def _pick(self, standing: Standing, rng: Any) -> int:
        return int(standing.arms[np.argmax(standing.of.mean)])


def space() -> Any:
    kernel = hp.choice("kernel", [{"k": "lin"}, {"k": "rbf", "gamma": hp.uniform("gamma", 0, 4)}])
    return hp.choice(
        "model",
        [
            {"type": "svm", "C": hp.loguniform("C", -5, 5), "kernel": kernel},
            {"type": "rf", "depth": hp.uniformint("depth", 1, 50)},
            {"type": "nb"},
        ],
    )


def loss_of(config: dict[str, Any]) -> float:
    if config["type"] == "svm":
        gamma = float(config["kernel"].get("gamma", 2))
        return 0.2 + 0.05 * abs(math.log(config["C"]) - 1) + 0.01 * gamma
    return 0.5 if config["type"] == "nb" else 0.4 + 0.001 * float(config["depth"])


def search(algo: Any, n: int, *, fn: Any = loss_of, where: Any = None, **options: Any) -> Trials:
    where = space() if where is None else where
    return minimise(fn, where, algo, n, catch_eval_exceptions=True, **options)


BOTH = pytest.mark.parametrize("algo", [weighted, partial(bandit, policy=Recorder())])


# --- documents ----------------------------------------------------------------------------


@BOTH
def test_documents_are_those_of_hyperopt_and_tpe_continues_with_them(algo: Any) -> None:
    trials = search(algo, 12)
    every = {"model", "kernel", "C", "gamma", "depth"}
    for document in trials.trials:
        misc, tid = document["misc"], document["tid"]
        assert set(misc["idxs"]) == set(misc["vals"]) == every
        for label in every:
            assert misc["idxs"][label] == [tid] * len(misc["vals"][label])
        config = space_eval(space(), values_of(document))  # no value is missing
        assert loss_of(config) == document["result"]["loss"]
        active = {"model"} | {key for key in config if key in every}
        active |= {"gamma"} & set(config.get("kernel", {}))
        assert set(values_of(document)) == active
    search(partial(tpe.suggest, n_startup_jobs=5), 16, trials=trials)
    assert len(search(algo, 20, trials=trials)) == 20


@BOTH
def test_several_are_asked_for_at_a_time_and_while_others_run(algo: Any) -> None:
    domain, trials = Domain(loss_of, space()), Trials()
    documents = algo(trials.new_trial_ids(4), domain, trials, 7)
    assert [document["tid"] for document in documents] == [0, 1, 2, 3]
    trials.insert_trial_docs(documents)  # they are valid
    for k in range(8):
        trials.refresh()
        (document,) = algo(trials.new_trial_ids(1), domain, trials, k)
        document["state"] = JOB_STATE_RUNNING
        trials.insert_trial_docs([document])
    trials.refresh()
    assert set(options_of(trials)) >= {0, 1}
    assert len({str(values) for values in configs(trials)}) >= 11
    assert set(pickle.loads(pickle.dumps(domain)).params) == set(domain.params)


@BOTH
def test_with_its_own_seed_a_run_can_be_continued(algo: Any) -> None:
    assert configs(search(algo, 9)) == configs(search(algo, 9))
    assert configs(search(algo, 9)) != configs(search(algo, 9, seed=1))
    own = partial(algo, seed=3)
    parts = search(own, 9, seed=8)
    assert configs(search(own, 16, seed=9, trials=parts)) == configs(search(own, 16))


def test_options_are_given_by_partial_or_call() -> None:
    options = {"weights": [1, 0, 0], "label": "model"}
    for algo in (weighted(**options), partial(weighted, **options)):
        assert set(options_of(search(algo, 6))) == {0}
        assert set(options_of(search(pickle.loads(pickle.dumps(algo)), 3))) == {0}
    with pytest.raises(TypeError, match="weigths"):
        weighted(weigths=[1, 0, 0])
    with pytest.raises(TypeError, match=r"no argument polcy; it takes policy, label"):
        bandit(polcy=None)
    with pytest.raises(TypeError, match=r"such as UCB1\(\), or None; got"):
        bandit(policy=Recorder)
    for inner, error in (("tpee", ValueError), (3, TypeError)):
        with pytest.raises(error, match=r"'random', 'tpe' or a suggest function"):
            bandit(inner=inner)


# --- weighted -----------------------------------------------------------------------------


def test_a_weighted_search_with_tpe_is_tpe_on_the_trials_of_each_option() -> None:
    seeds: dict[int, int] = {}

    def spied(ids: Any, domain: Any, trials: Any, seed: int) -> Any:
        seeds[ids[0]] = seed
        return tpe.suggest(ids, domain, trials, seed, n_startup_jobs=4, verbose=False)

    options = [{"x": hp.uniform("x", 0, 1)}, {"y": hp.normal("y", 0, 1), "z": hp.randint("z", 9)}]
    where = hp.choice("model", options)
    trials = search(weighted(inner=spied), 24, where=where, fn=lambda c: len(str(c)) / 99)
    assert len(set(seeds.values())) == 24
    for document in trials.trials:
        tid, option = document["tid"], document["misc"]["vals"]["model"][0]
        own = [d for d in trials.trials[:tid] if d["misc"]["vals"]["model"] == [option]]
        # An independent search in the option alone, on the same trials and seed.
        alone = Domain(None, options[option], pass_expr_memo_ctrl=False)
        (expected,) = tpe.suggest(
            [tid], alone, trials_from_docs(own), seeds[tid], n_startup_jobs=4, verbose=False
        )
        assert values_of(document) == {"model": option} | values_of(expected)


# --- bandit -------------------------------------------------------------------------------


def test_the_policy_gets_every_trial_as_a_record() -> None:
    policy, domain = Recorder(), Domain(loss_of, space())
    trials = search(weighted(weights=[1, 1, 1]), 8, seed=5)
    changes: list[dict[str, Any]] = [
        {"state": JOB_STATE_RUNNING, "result": {"status": "new"}},
        {"state": JOB_STATE_ERROR, "result": {"status": "new"}},
        {"result": {"status": STATUS_FAIL}},
        {"result": {"status": STATUS_OK, "loss": math.nan}},
        {"state": JOB_STATE_CANCEL},
        {"result": {"status": STATUS_OK, "loss": 0.25, "seconds": 17.0}},
    ]
    for document, change in zip(trials.trials, changes, strict=False):
        document.update(change)
    arms = options_of(trials)
    documents = bandit([8, 9], domain, trials, 0, policy=policy)
    (_, records, k), (_, later, _) = policy.shown
    assert k == 8
    # finished ones in the order in which they finished, then the running one; no cancelled one
    assert records.arm.tolist() == [arms[i] for i in (1, 2, 3, 5, 6, 7, 0)]
    expected = [Status.FAILED] * 3 + [Status.COMPLETE] * 3 + [Status.RUNNING]
    assert records.status.tolist() == expected
    assert records.reward[3] == 0.75 and records.seconds[3] == 17.0
    assert np.isnan(records.reward[:3]).all()
    # the first of two asked for is pending for the second
    assert len(later) == len(records) + 1
    assert later.arm[-1] == documents[0]["misc"]["vals"]["model"][0]
    assert later.status[-1] == Status.RUNNING


@pytest.mark.parametrize("algo", [bandit(inner="random"), boasf(max_evals=24, inner="random")])
def test_trials_that_raise_count_where_they_are_in_a_database(algo: Any) -> None:
    def fn(config: dict[str, Any]) -> float:
        if "broken" in config:
            raise RuntimeError("on purpose")
        return float(config["works"])

    options = [{"broken": hp.uniform("x", 0, 1)}, {"works": hp.uniform("y", 0, 1)}]
    where = hp.choice("model", options)
    trials = minimise_in_database(fn, where, algo, 24)
    stored = [values_of(document) for document in trials.handle.jobs.stored]
    assert stored == configs(search(algo, 24, fn=fn, where=where))
    assert [values["model"] for values in stored].count(0) == 3
    assert "3 failed" in str(arm_report(trials))


def test_the_default_policy_looks_for_the_best_maximum() -> None:
    default, named = search(bandit, 15), search(bandit(policy=MaxUCB()), 15)
    assert configs(default) == configs(named)
    assert configs(default) != configs(search(bandit(policy=UCB1()), 15))


def test_losses_of_any_scale_are_rescaled() -> None:
    policy = Recorder()
    search(bandit(policy=policy), 12, fn=lambda c: 1000 * loss_of(c) - 300)
    rewards = policy.shown[-1][1].reward
    assert rewards.min() == 0.0 and rewards.max() == 1.0
    search(bandit(policy=policy, reward_range=(0.0, 2.0)), 6)
    _, records, _ = policy.shown[-1]
    assert (np.abs(records.reward - 0.75) < 0.25).all()


def test_trials_that_lack_labels_are_lived_with() -> None:
    # as fmin(points_to_evaluate=) writes them
    trials = search(bandit(policy=Recorder()), 6)
    for document in trials.trials:
        for column in ("idxs", "vals"):
            full = document["misc"][column]
            document["misc"][column] = {k: v for k, v in full.items() if v}
    again, domain = trials_from_docs(trials.trials), Domain(loss_of, space())
    assert all(len(bandit([k], domain, again, k, policy=Recorder())) == 1 for k in range(6, 12))


def test_points_with_labels_of_all_branches_end_no_arm_early() -> None:
    # as fmin(points_to_evaluate=) takes them: ``depth`` is not active
    kernel = hp.choice("kernel", [{"depth": hp.choice("depth", [1, 2, 3])}, "linear"])
    where = hp.choice("model", [{"svm": kernel}, {"nb": hp.choice("prior", [0.1, 0.2])}])
    points = generate_trials_to_calculate([{"model": 0, "kernel": 1, "depth": 2}])
    seen: list[str] = []

    def fn(config: Any) -> float:
        seen.append(str(config))
        return 0.5

    search(bandit(inner="random"), 20, fn=fn, where=where, trials=points)
    assert len(seen) == len(set(seen)) == 6


def test_a_report_before_a_search_is_continued_changes_nothing() -> None:
    depth = {"depth": hp.choice("depth", [1, 2, 3])}
    # the option of the first point is nearly always drawn
    where = hp.choice("model", [{"svm": hp.pchoice("kernel", [(0.02, depth), (0.98, "linear")])}])
    seen: list[str] = []

    def fn(config: Any) -> float:
        seen.append(str(config))
        return 0.5

    points = generate_trials_to_calculate([{"model": 0, "kernel": 1, "depth": 2}])
    begun = search(bandit(inner="random"), 2, fn=fn, where=where, trials=points)
    loaded = pickle.loads(pickle.dumps(begun))
    arm_report(loaded)  # knows the arms, and not which labels are active
    search(bandit(inner="random"), 6, fn=fn, where=where, trials=loaded)
    assert len(seen) == len(set(seen)) == 4


def test_algorithms_are_replayed_on_conditional_spaces() -> None:
    made = ConfigurationSpace(seed=0)
    model, c, k = Categorical("m", ["svm", "rf", "nb"]), Float("C", (0, 1)), Integer("k", (1, 3))
    made.add(model, c, k, Categorical("scaler", ["no", "yes"]))
    made.add(EqualsCondition(c, model, "svm"), EqualsCondition(k, model, "rf"))
    method = optimizer(bandit, policy=Recorder())
    assert method.name == "automl_plugins.adapters.hyperopt.algos.bandit"
    replayed, models = method.start(Problem(made, seed=1)), []
    for i in range(30):
        proposal = replayed.ask()
        assert proposal is not None
        models.append(proposal.config["m"])
        loss = {"svm": 0.1, "rf": 0.3, "nb": 0.5}[models[-1]]
        replayed.tell(proposal, Outcome(TrialStatus.COMPLETE, loss, i, i + 1.0))
    assert models.count("svm") > 15


@pytest.mark.parametrize("algo", [gbqr(n_startup=3), bandit], ids=["gbqr", "bandit"])
def test_algorithms_may_be_mixed(algo: Any) -> None:
    """``hyperopt.mix`` passes the seed as a keyword."""
    mixed = partial(mix.suggest, p_suggest=[(0.7, algo), (0.3, tpe.suggest)])

    def loss(config: dict[str, Any]) -> float:
        return float(config.get("C", 1.0))

    found, again = (minimise(loss, space(), mixed, 10, seed=3) for _ in range(2))
    assert configs(found) == configs(again)
    other = minimise(loss, space(), mixed, 10, seed=4)
    assert configs(found) != configs(other)


@pytest.mark.parametrize("algo", [gbqr, gbqr(n_startup=3), bandit], ids=["gbqr", "with", "bandit"])
def test_arguments_of_a_call_have_the_names_of_tpe(algo: Any) -> None:
    """So that a wrapper of ``tpe.suggest`` is one of ours."""

    def named(new_ids: Any, domain: Any, trials: Any, seed: int) -> Any:
        return algo(new_ids=new_ids, domain=domain, trials=trials, seed=seed)

    def mixed(new_ids: Any, domain: Any, trials: Any, seed: int) -> Any:
        return algo(new_ids, domain, seed=seed, trials=trials)

    expected = configs(minimise(loss_of, space(), algo, 5))
    for wrapper in (named, mixed):
        assert configs(minimise(loss_of, space(), wrapper, 5)) == expected


@pytest.mark.parametrize("algo", [gbqr(n_startup=3, seed=5), bandit(inner="random", seed=5)])
def test_a_seed_of_its_own_counts_in_a_mixture_too(algo: Any) -> None:
    alone = minimise(loss_of, space(), algo, 6, seed=1)
    mixed = partial(mix.suggest, p_suggest=[(1.0, pickle.loads(pickle.dumps(algo)))])
    for seed in (2, 3):
        assert configs(minimise(loss_of, space(), mixed, 6, seed=seed)) == configs(alone)


@pytest.mark.parametrize("algo", [weighted, bandit(inner="random"), gbqr(n_startup=20)])
def test_numbers_that_hyperopt_gives_twice_do_not_repeat_proposals(algo: Any) -> None:
    calls = iter(range(99))

    def failing(config: dict[str, Any]) -> float:
        if next(calls) == 2:
            raise MemoryError
        return loss_of(config)

    left = search(algo(seed=1), 6, fn=failing)
    read = trials_from_docs(left.trials)  # without the trial that raised
    found = search(algo(seed=1), 12, trials=read)
    numbers = [document["tid"] for document in found.trials]
    assert numbers.count(5) == 8  # else Hyperopt numbers them by now as one expects
    assert len({str(values) for values in configs(found)}) > 9
    with pytest.raises(
        ValueError, match="There are 8 trials with the number 5: pass the document"
    ):
        explain(found, 5)
    assert explain(found).number == explain(found.trials[-1]).number == 5


# --- effort -------------------------------------------------------------------------------


def two_choices() -> Any:
    """Two models, and two kernels of either."""
    models = [{"x": hp.uniform("x", 0, 1)}, {"y": hp.uniform("y", 0, 1)}]
    kernels = [{"g": hp.uniform("g", 0, 1)}, {"d": hp.uniform("d", 0, 1)}]
    return {"model": hp.choice("model", models), "kernel": hp.choice("kernel", kernels)}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of the trials that were read."""
    numbers: list[int] = []

    def spy(document: dict[str, Any]) -> Any:
        numbers.append(document["tid"])
        return read_trial(document)

    for module in ("trials", "_pulls"):
        monkeypatch.setattr(f"automl_plugins.adapters.hyperopt.{module}.read_trial", spy)
    return numbers


@pytest.mark.parametrize(
    "inner",
    [gbqr(n_startup=99, seed=0), bandit(label="kernel", inner="random", seed=0)],
    ids=["proposer", "arms"],
)
def test_a_trial_is_read_once_inside_an_arm(inner: Any, read: list[int]) -> None:
    search(bandit(label="model", inner=inner), 20, where=two_choices(), fn=lambda c: 0.5)
    assert len(read) <= 2 * 19  # as a pull of the outer arm, and in it


def test_algorithms_that_are_mixed_read_a_trial_once_each(read: list[int]) -> None:
    algos = [bandit(label=label, inner="random") for label in ("model", "kernel")]
    mixed = partial(mix.suggest, p_suggest=[(0.5, algo) for algo in algos])
    search(mixed, 30, where=two_choices(), fn=lambda c: 0.5)
    assert len(read) <= 2 * 29


def test_the_configurations_of_an_arm_are_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    n_listed = 0

    def spy(known: PyllSpace, values: Any) -> Any:
        nonlocal n_listed
        n_listed += 1
        return labels_of(known, values)

    labels_of = PyllSpace.labels
    monkeypatch.setattr(PyllSpace, "labels", spy)
    where = hp.choice("model", [{"x": hp.randint("x", 12)}, {"y": hp.randint("y", 8)}])
    trials = search(bandit(inner="random"), 30, where=where, fn=lambda c: 0.5)
    assert len(trials) == 20 and n_listed == 20


# --- trials of a search before ------------------------------------------------------------------

ALL = pytest.mark.parametrize("algo", [weighted, bandit(inner="random"), boasf(max_evals=20)])


@ALL
def test_trials_of_another_space_are_refused(algo: Any) -> None:
    other = hp.choice("other", [{"x": hp.uniform("x", 0, 1)}, {}])
    trials = search(weighted, 4, where=other, fn=lambda config: -1.0)
    with pytest.raises(ValueError, match=r"Trial 0 has the labels .*; the search space has "):
        search(algo, 8, trials=trials)
    assert len(trials) == 4


@ALL
def test_trials_of_a_space_that_was_changed_are_continued(algo: Any) -> None:
    trials = pickle.loads(pickle.dumps(search(tpe.suggest, 8)))
    svm = {"type": "svm", "C": hp.loguniform("C", -9, 9), "kernel": {"k": "lin"}}
    forest = {"type": "rf", "depth": hp.uniformint("depth", 1, 90), "m": hp.uniform("m", 0, 1)}
    search(algo, 12, where=hp.choice("model", [svm, forest]), trials=trials)
    assert len(trials) == 12


@pytest.mark.parametrize(
    ("before", "after", "end", "sign"),
    [
        (lambda: hp.randint("x", 9), lambda: hp.randint("x", 2), 2, -1),
        (lambda: hp.randint("x", 9), lambda: hp.randint("x", 5, 9), 9, 1),
        (lambda: hp.uniform("x", -1, 1), lambda: hp.loguniform("x", -3, 0), 1, 1),
    ],
)
def test_tpe_is_not_shown_what_a_changed_space_cannot_draw(
    before: Any, after: Any, end: int, sign: int
) -> None:
    """It would fail, with a message of NumPy's, or propose a value beyond the range."""
    algo, trials = bandit(inner=partial(tpe.suggest, n_startup_jobs=2)), Trials()
    for suggest, x, n in ((rand.suggest, before(), 9), (algo, after(), 14)):
        where = hp.choice("model", [[x, hp.uniform("y", 0, 1)]])
        search(suggest, n, where=where, fn=lambda c: sign * c[0] + c[1], trials=trials)
    assert len(trials) == 14
    assert all(values_of(document)["x"] < end for document in trials.trials[9:])


@pytest.mark.parametrize(
    "algo",
    [
        partial(bandit, seed=1),
        partial(weighted, weights=[0.9, 0.1], seed=1),
        partial(boasf, max_evals=20, seed=1),
    ],
)
def test_an_arm_that_proposes_nothing_leaves_the_trials_to_the_others(algo: Any) -> None:
    def four_of_a(new_ids: Any, domain: Domain, trials: Trials, seed: int) -> Any:
        if "a" in domain.params and len(trials.trials) >= 4:
            return []
        return rand.suggest(new_ids, domain, trials, seed)

    expr = hp.choice("m", [hp.uniform("a", 0, 1), hp.uniform("b", 5, 6)])
    trials = minimise(lambda x: x, expr, algo(inner=four_of_a), 20)
    options = options_of(trials, "m")
    assert (options.count(0), options.count(1)) == (4, 16)
