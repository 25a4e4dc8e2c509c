"""Arms are chosen once, known to all, and each is tuned on its own trials alone."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import optuna
import pytest
from arm_objectives import Even, Spy, alike, arm_choices, counts, spies, zoo
from automl_plugins.adapters.optuna import (
    BanditSampler,
    BOASFSampler,
    GBQRSampler,
    WeightedModelSampler,
    _private,
    arm_report,
    explain,
    seeded_sampler,
)
from automl_plugins.adapters.optuna._inner import tpe
from automl_plugins.adapters.optuna.arm_sampler import ArmSampler
from objectives import fixing, needs_constraints, params, reporting, search
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import (
    BaseSampler,
    CmaEsSampler,
    GPSampler,
    QMCSampler,
    RandomSampler,
    TPESampler,
)
from optuna.trial import TrialState, create_trial

from automl_plugins.bandits import AlwaysBest
from automl_plugins.bandits.records import Pulls
from automl_plugins.records.trial import Status

UNIT = FloatDistribution(0, 1)
even = partial(BanditSampler, policy=Even(), inner=RandomSampler, seed=0)
RECIPES: dict[str, Callable[..., ArmSampler]] = {
    "bandit": even,
    "boasf": partial(BOASFSampler, n_trials=40, inner=RandomSampler, seed=0),
    "weighted": partial(WeightedModelSampler, seed=0),
}
recipes = pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)


def run(sampler: BaseSampler, n: int, objective: Any = zoo, **options: Any) -> optuna.Study:
    return search(sampler, objective, n, catch=ArithmeticError, **options)


# --- isolation ------------------------------------------------------------------------------


@recipes
def test_the_sampler_of_an_arm_sees_its_trials_alone(recipe: Callable[..., ArmSampler]) -> None:
    sampler = recipe(inner=Spy(seed=0))
    study = run(sampler, 30)
    found, shown = spies(sampler), 0
    assert {number for _, number, _, _ in found.pop(None).log} == {0}
    for index, spy in found.items():
        arm = ["svm", "net", "tree", "dummy"][index or 0]
        own = {t.number for t in study.trials if t.params["algorithm"] == arm}
        for hook, number, arms, numbers in spy.log:
            assert number in own and arms <= {arm}, hook
            # All earlier trials of the arm are there, and no other ones.
            assert {n for n in own if n < number} <= numbers <= own, hook
            shown += len(numbers)
    assert shown > 100


def test_every_hook_reaches_the_arms_own_sampler_in_order() -> None:
    sampler = even(inner=Spy(seed=0))
    study = run(sampler, 12, alike)
    hooks: dict[int, list[str]] = {}
    for spy in spies(sampler).values():
        for hook, number, _, _ in spy.log:
            hooks.setdefault(number, []).append(hook)
    assert hooks.keys() == {t.number for t in study.trials}
    joint = ["before", "infer", "relative", "after"]
    for number, calls in hooks.items():
        if number == 0:  # asked while the arms were unknown, then again by the arm
            assert calls.count("before") == 2 and calls.count("after") == 1
        else:
            first_of_its_arm = "independent" in calls
            assert [c for c in calls if c != "independent"] == joint
            assert first_of_its_arm == (number in {1, 2})


def test_an_arm_sees_the_trials_of_its_hyperband_bracket() -> None:
    seen: list[tuple[set[int], set[int], set[int]]] = []

    class Watch(RandomSampler):
        def infer_relative_search_space(self, study: optuna.Study, trial: Any) -> dict[str, Any]:
            pruner: Any = study.pruner
            bracket = pruner._get_bracket_id(study, trial)
            everything = [t for t in study._get_trials(deepcopy=False) if t.params]
            public = {t.number for t in study.get_trials(deepcopy=False) if t.params}
            same = {t.number for t in everything if pruner._get_bracket_id(study, t) == bracket}
            seen.append((public, {t.number for t in everything}, same))
            assert study._is_multi_objective() is False and study.direction.name == "MINIMIZE"
            return {}

    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9)
    made = {"pruner": pruner, "study_name": "brackets"}
    study = run(even(inner=Watch()), 40, reporting(zoo), **made)
    assert all(public == same for public, _, same in seen)
    assert any(public < private for public, private, _ in seen)
    # The arms are chosen over all brackets; "dummy" has one configuration, which is pruned thrice.
    assert sorted(counts(study).values()) == [3, 12, 12, 13]
    assert counts(study)["dummy"] == 3


# --- the samplers inside --------------------------------------------------------------------

JOINT: dict[str, Any] = {"multivariate": True, "constant_liar": True}  # defaults of Optuna 5
INNER: dict[str, Any] = {
    "tpe": partial(TPESampler, n_startup_trials=2, **JOINT),
    "grouped_tpe": partial(TPESampler, n_startup_trials=2, group=True, **JOINT),
    "univariate_tpe": partial(TPESampler, n_startup_trials=2, multivariate=False),
    "gp": partial(GPSampler, n_startup_trials=2, warn_independent_sampling=False),  # slow
    "cma_es": partial(CmaEsSampler, n_startup_trials=2, warn_independent_sampling=False),
    "qmc": partial(QMCSampler, warn_independent_sampling=False),
    "random": RandomSampler,
    "gbqr": partial(GBQRSampler, n_startup_trials=2, warn_independent_sampling=False),
}


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("form", ["factory", "instance"])
@pytest.mark.parametrize("name", INNER)
def test_every_sampler_works_inside(name: str, form: str) -> None:
    if name == "gp":
        pytest.importorskip("torch", reason="Optuna's GPSampler needs torch")
    inner = INNER[name] if form == "factory" else INNER[name](seed=1)
    study = run(even(inner=inner), 13)
    assert {t.state for t in study.trials} == {TrialState.COMPLETE}
    assert min(counts(study)[arm] for arm in counts(study) if arm != "dummy") >= 3
    # A joint proposal is published under TPE's own name, and seen by TPE as of a running trial.
    if "tpe" in name and name != "univariate_tpe":
        zoo(study.ask())
        attributes = [key for t in study.trials for key in t.system_attrs]
        assert any(key.startswith("tpe:relative_params") for key in attributes)


def test_instances_are_copied_once_for_every_arm() -> None:
    given = TPESampler(seed=1)
    sampler = even(inner=given)
    run(sampler, 12, alike)
    # Three arms, and the first trial before they were known
    assert len({id(s) for s in [given, *spies(sampler).values()]}) == 5


def test_the_start_up_scales_with_the_arms() -> None:
    made = [vars(tpe(k)(seed=0)) for k in (1, 2, 4, 5, 8, 12, 16, 100)]
    assert [known["_n_startup_trials"] for known in made] == [10, 10, 10, 8, 5, 4, 3, 3]
    sampler = BanditSampler(policy=Even(), seed=0)
    run(sampler, 2, zoo)
    fresh = sampler._samplers.of_trial(1, {}, 16, 5)
    assert isinstance(fresh, TPESampler) and fresh._n_startup_trials == 3


@pytest.mark.parametrize(
    "inner",
    [
        TPESampler,
        lambda s: TPESampler(seed=s),
        lambda seed: TPESampler(seed=seed),
        partial(TPESampler, n_startup_trials=1),
    ],
)
def test_factories_of_every_form(inner: Any) -> None:
    study = run(even(inner=inner), 5)
    assert len(study.trials) == 5


# --- which arm ------------------------------------------------------------------------------


def test_enqueued_arms_are_taken_and_tuned_by_their_own_sampler() -> None:
    study = run(even(inner=Spy(seed=0)), 8)
    for _ in range(3):
        study.enqueue_trial({"algorithm": "svm"})
    study.enqueue_trial({"algorithm": "svm", "C": 1.0, "eps": 0.5})
    study.optimize(zoo, n_trials=4)
    assert [p["algorithm"] for p in params(study)[8:]] == ["svm"] * 4
    assert params(study)[-1] == {"algorithm": "svm", "C": 1.0, "eps": 0.5}
    assert {n for _, n, _, _ in spies(study.sampler)[0].log} >= {8, 9, 10, 11}


def test_partially_fixed_arms_and_parameters() -> None:
    study = run(even(), 8)
    sampler = study.sampler
    study.sampler = fixing({"algorithm": "net"}, sampler)
    study.optimize(zoo, n_trials=3)
    assert [p["algorithm"] for p in params(study)[8:]] == ["net"] * 3
    study.sampler = fixing({"depth": 7}, sampler)
    study.optimize(zoo, n_trials=8)
    depths = [p["depth"] for p in params(study)[11:] if "depth" in p]
    assert depths and set(depths) == {7}


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution")
@recipes
def test_choices_none_bool_and_nan(recipe: Callable[..., ArmSampler]) -> None:
    choices = [None, True, 1.5, float("nan")]

    def objective(trial: optuna.Trial) -> float:
        kind = trial.suggest_categorical("algorithm", choices)
        if kind is None:
            return 0.2 + 0.1 * trial.suggest_float("rate", 0, 1)
        return 0.5 + 0.1 * trial.suggest_float("other", 0, 1)

    study = run(recipe(), 16, objective)
    arms = {str(t.params["algorithm"]) for t in study.trials}
    assert arms == {"None", "True", "1.5", "nan"}


@recipes
def test_one_choice_is_no_choice(recipe: Callable[..., ArmSampler]) -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.suggest_categorical("algorithm", ["only"])
        return trial.suggest_float("x", 0, 1)

    study = run(recipe(inner=partial(TPESampler, n_startup_trials=3)), 8, objective)
    assert counts(study) == {"only": 8}
    assert _private.read_arm(study.trials[-1], "algorithm") == 0


# --- rewards, failures, costs ---------------------------------------------------------------


@pytest.mark.parametrize("is_raised", [True, False], ids=["an error", "infinite"])
@pytest.mark.parametrize(("name", "most"), [("bandit", 3), ("boasf", 14), ("weighted", 8)])
def test_arms_that_always_fail_are_dropped_and_named_once(
    name: str, most: int, is_raised: bool, log: Any
) -> None:
    arms = ["good", "broken", "fine"]

    def objective(trial: optuna.Trial) -> float:
        algorithm = trial.suggest_categorical("algorithm", arms)
        x = trial.suggest_float("x", 0, 1)
        if algorithm == "broken":
            return 1 / 0 if is_raised else -math.inf  # the better infinity, too
        return x

    equal = {"weights": dict.fromkeys(arms, 1)} if name == "weighted" else {}
    study = run(RECIPES[name](**equal), 40, objective)
    n = counts(study)["broken"]
    assert 1 <= n <= most
    said = [r.message for r in log.records if "algorithm='broken' has failed in all" in r.message]
    assert len(said) == (1 if n >= 3 else 0)
    assert all("NaN and infinite values count as failures" in message for message in said)


def pulls_of(study: optuna.Study) -> Pulls:
    """What the policy of the study's sampler is shown."""
    assert isinstance(study.sampler, ArmSampler)
    known = study.sampler._reader(study)
    view = known.everything(study)
    assert known.arms is not None
    pulls: Pulls = known.situation(view, known.arms, len(view)).pulls
    return pulls


@needs_constraints
def test_infinite_pruned_and_infeasible_trials(log: Any) -> None:
    def objective(trial: optuna.Trial) -> float:
        algorithm = trial.suggest_categorical("algorithm", ["inf", "pruned", "infeasible", "ok"])
        x = trial.suggest_float("x", 0, 1)
        if algorithm == "inf":
            return float("inf")
        if algorithm == "pruned":
            trial.report(0.5 + x, 1)
            raise optuna.TrialPruned
        if algorithm == "infeasible":
            trial.set_constraint("c", 1.0)
            return -5.0  # would be the best of all, and would set the scale
        return x

    study = run(even(), 40, objective)
    best = min(t.value for t in study.trials if t.value is not None and t.value >= 0.0)
    assert f"best {best:.6g}, by ok" in str(arm_report(study))
    pulls = pulls_of(study)
    arm, rewards = pulls.records.arm, pulls.records.reward
    assert set(pulls.records.status[arm == 0]) == {Status.FAILED}
    assert set(rewards[arm == 2]) == {0.0}
    fine = np.isin(arm, [1, 3])
    losses = pulls.losses[fine]
    assert pulls.scale.worst > 1.0 or losses.max() <= 1.0
    assert (np.diff(rewards[fine][np.argsort(losses)]) <= 0).all()
    assert rewards[fine].min() >= 0.0


def test_rescaling_is_said_once(log: Any) -> None:
    run(even(), 10, lambda t: 100 * alike(t))
    assert sum("lie outside [0, 1]" in r.message for r in log.records) == 1
    log.clear()
    run(RECIPES["boasf"](), 10, lambda t: 100 * alike(t))
    (said,) = (r.message for r in log.records if "lie outside [0, 1]" in r.message)
    worst, best = re.findall(r"(\S+) (?:counts as reward 0|as 1)", said)
    assert float(worst) > float(best)  # not of a single value
    log.clear()
    run(even(reward_range=(0, 70)), 10, lambda t: 100 * alike(t))
    run(even(), 10, alike)
    assert not any("outside" in r.message for r in log.records)


def test_costs_are_read_as_everywhere() -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.set_user_attr("seconds", 3.0)
        value = alike(trial)
        if trial.number == 4:
            raise ZeroDivisionError
        return value

    study = run(even(cost="seconds"), 6, objective)
    assert pulls_of(study).records.seconds.tolist() == [3.0] * 6  # the failing trial too
    with pytest.raises(ValueError, match="no complete trial has a user attribute"):
        run(even(cost="minutes"), 6, alike)


def test_trials_from_before_the_search_by_cost_may_lack_it() -> None:
    def measured(trial: optuna.Trial) -> float:
        value = alike(trial)
        trial.set_user_attr("minutes", 2.0)
        return value

    study = run(even(), 3, alike)
    study.sampler = even(cost="minutes")
    study.optimize(measured, n_trials=3)
    seconds = pulls_of(study).records.seconds
    np.testing.assert_equal(np.sort(seconds), [2.0, 2.0, 2.0, np.nan, np.nan, np.nan])
    study.sampler = even(cost="hours")
    with pytest.raises(ValueError, match="no complete trial has a user attribute"):
        study.optimize(measured, n_trials=2)
    assert len(study.trials) == 8  # of which the first could not know better


def test_the_samplers_time_is_no_cost() -> None:
    class Slow(RandomSampler):
        def sample_independent(self, *args: Any, **kwargs: Any) -> Any:
            time.sleep(0.05)
            return super().sample_independent(*args, **kwargs)

    for trial in run(even(inner=Slow()), 3, alike).trials:
        assert trial.duration is not None and trial.duration.total_seconds() >= 0.1
        assert _private.read_overhead(trial) >= 0.1


# --- bad input ------------------------------------------------------------------------------


@recipes
def test_a_wrong_name_of_the_arm_fails_with_the_second_trial(
    recipe: Callable[..., ArmSampler],
) -> None:
    study = optuna.create_study(sampler=recipe(arm="algoritm"))
    study.add_trial(create_trial(value=1.0))  # says nothing of the objective
    with pytest.raises(ValueError, match=r"study: algorithm\. Did you mean arm='algorithm'\?"):
        study.optimize(zoo, n_trials=10)
    assert [t.state for t in study.trials[1:]] == [TrialState.COMPLETE, TrialState.FAIL]
    study.sampler = recipe()
    study.optimize(zoo, n_trials=3)
    study = optuna.create_study(sampler=recipe(arm="model"))
    with pytest.raises(ValueError, match="Categorical parameters of the study: none"):
        study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=10)


NESTED: dict[str, Callable[..., Any]] = {
    "instance": lambda **options: even("solver", **options),
    "factory": lambda **options: lambda seed: even("solver", **options | {"seed": seed}),
}
nested = pytest.mark.parametrize("inside", NESTED.values(), ids=NESTED)


@nested
def test_a_wrong_name_is_found_around_and_inside_other_arms(inside: Callable[..., Any]) -> None:
    study = optuna.create_study(sampler=even("algoritm", inner=inside()))
    with pytest.raises(ValueError, match=r"Did you mean arm='algorithm'\?"):
        study.optimize(zoo, n_trials=10)
    # Only the net asks for a solver.
    study = optuna.create_study(sampler=even(inner=inside()))
    with pytest.raises(ValueError, match=r"arm='solver': trial \d is .*, declare it: search_spa"):
        study.optimize(zoo, n_trials=10)


@nested
def test_arms_within_arms(inside: Callable[..., Any]) -> None:
    solvers = {"solver": CategoricalDistribution(["adam", "sgd"])}
    study = run(even(inner=inside(search_space=solvers)), 40)
    assert set(counts(study).values()) == {13, 1}  # the dummy has one configuration
    assert sorted(counts(study, "solver").values()) == [6, 7, 27]
    for trial in study.trials[1:]:  # the first was asked for its solver before its algorithm
        outer, inner = (_private.read_arm_facts(trial, within) for within in ("", "solver"))
        assert (outer["parameter"], outer["sampler"]) == ("algorithm", "BanditSampler")
        assert outer["arm"] == trial.params["algorithm"]
        assert (inner["parameter"], inner["sampler"]) == ("solver", "RandomSampler")
        assert inner.get("arm") == trial.params.get("solver", inner.get("arm"))
        assert inner.get("reason") != "decided by another worker"
        assert f"algorithm={trial.params['algorithm']} (" in str(explain(trial))


def test_a_declared_arm_that_is_never_asked_for(log: Any) -> None:
    sampler = even(
        arm="model",
        search_space={"model": CategoricalDistribution(["a", "b"])},
        inner=Spy(seed=0),
    )
    study = run(sampler, 10)
    assert counts(study).total() == 10
    assert spies(sampler)[None].log[-1][3] == set(range(10))  # all of them
    said = [r.message for r in log.records if "no complete trial has asked" in r.message]
    assert len(said) == 1 and "['algorithm', 'solver']" in said[0]


def test_an_arm_that_only_some_trials_ask_for() -> None:
    def now_and_then(trial: optuna.Trial) -> float:
        return zoo(trial) if trial.number % 3 == 2 else trial.suggest_float("x", 0, 1)

    declared = arm_choices("svm", "net", "tree", "dummy")
    study = run(even(search_space=declared), 30, now_and_then)
    assert set(counts(study)) == {None, "svm", "net", "tree", "dummy"}


def test_a_trial_that_fails_before_it_asks_is_no_failure_of_an_arm() -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.suggest_float("first", 0, 1)
        return 1 / 0 if trial.number % 2 else zoo(trial)

    records = pulls_of(run(even(), 12, objective)).records
    assert records.status.tolist() == [Status.COMPLETE] * 6


def test_a_numerical_arm_is_refused_with_advice() -> None:
    with pytest.raises(ValueError, match="choices of a categorical parameter"):
        run(even(), 2, lambda t: t.suggest_int("algorithm", 0, 3))
    study = optuna.create_study(sampler=even())
    number = create_trial(
        params={"algorithm": 1}, distributions={"algorithm": IntDistribution(0, 3)}, value=0.0
    )
    study.add_trial(number)
    with pytest.raises(ValueError, match="suggest_categorical"):
        study.optimize(zoo, n_trials=1)


@pytest.mark.parametrize("choices", [(0, "a", False), (1, True), (1.0, 1), ("a", "a")])
@recipes
def test_equal_choices_are_refused(recipe: Callable[..., ArmSampler], choices: Any) -> None:
    """Optuna stores the first of them for all, so the others would never have a trial."""
    words = f"equal choices {choices[0]!r} and {choices[-1]!r}: Optuna stores the first"
    study = optuna.create_study(sampler=recipe())
    with pytest.raises(ValueError, match=words):
        study.optimize(lambda t: t.suggest_categorical("algorithm", choices), n_trials=9)
    assert [t.state for t in study.trials] == [TrialState.FAIL]
    with pytest.raises(ValueError, match=words):
        recipe(search_space=arm_choices(*choices))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"arm": 3}, TypeError, r"name of a categorical parameter, got 3\. A seed .* seed=3\."),
        ({"arm": None}, TypeError, "name of a categorical"),
        ({"inner": "tpe"}, TypeError, "inner must be a sampler"),
        ({"inner": int}, TypeError, "got <class 'int'>"),
        ({"inner": lambda seed: seed}, TypeError, "which returns 0"),
        ({"inner": lambda: RandomSampler()}, TypeError, "of a seed .* too many positional"),
        ({"inner": lambda seed, n: n}, TypeError, "of a seed .* missing a required argument: 'n'"),
        ({"cost": 3}, TypeError, "cost must be"),
        ({"warn_independent_sampling": "no"}, TypeError, "True or False, got 'no'"),
        ({"reward_range": (1, 1)}, ValueError, "two different finite"),
        ({"reward_range": (0, float("nan"))}, ValueError, "two different finite"),
        ({"reward_range": 3}, ValueError, "two different finite"),
        ({"seed": -1}, ValueError, "seed"),
        ({"search_space": {"x": UNIT}}, ValueError, r"no parameter 'algorithm'.*\[\]"),
        ({"search_space": {"algorithm": UNIT}}, ValueError, "suggest_categorical"),
        ({"search_space": {"algorithm": ["svm"]}}, TypeError, "distributions by name"),
        ({"search_space": arm_choices("a") | {1: UNIT}}, TypeError, "distributions by name"),
    ],
)
def test_bad_arguments_fail_at_once(arguments: dict[str, Any], error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        even(**arguments)


def test_several_objectives_are_refused() -> None:
    study = optuna.create_study(sampler=even(), directions=["minimize", "maximize"])
    with pytest.raises(ValueError, match="optimises one objective"):
        study.optimize(lambda t: (zoo(t), 0.0), n_trials=1)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_independent_sampling_is_warned_of_once(log: Any) -> None:
    inner = partial(TPESampler, n_startup_trials=1, **JOINT)
    run(even(inner=inner), 30)
    said = [r.message for r in log.records if "sampled independently:" in r.message]
    assert len(said) == 1 and "'momentum'" in said[0] and "algorithm='net'" in said[0]
    log.clear()
    run(even(inner=inner, warn_independent_sampling=False), 30)
    run(even(inner=None), 30)  # nobody chose the sampler that does so
    assert not any("sampled independently:" in r.message for r in log.records)


# --- ask, tell and threads ------------------------------------------------------------------


def test_trials_told_by_another_sampler_object() -> None:
    study = run(even(inner=Spy(seed=0)), 5)
    trial = study.ask()
    value = zoo(trial)
    study.sampler = even(inner=Spy(seed=0))
    study.tell(trial, value)
    (spy,) = spies(study.sampler).values()
    assert [hook for hook, *_ in spy.log] == ["after"]


@recipes
def test_two_threads(recipe: Callable[..., ArmSampler]) -> None:
    study = optuna.create_study(sampler=recipe())
    study.optimize(zoo, n_trials=30, n_jobs=2)
    assert all(t.state == TrialState.COMPLETE for t in study.trials)
    sampler = study.sampler
    assert isinstance(sampler, ArmSampler)
    assert not sampler._pulls and not sampler._overheads


def test_reseeding_reaches_instances_only() -> None:
    class Counting(RandomSampler):
        n = 0

        def reseed_rng(self) -> None:
            Counting.n += 1

    sampler = even(inner=Counting())
    run(sampler, 12, alike)
    sampler.reseed_rng()
    assert Counting.n == 5  # four copies and the original
    sampler = even(inner=Counting)
    run(sampler, 3, alike)
    sampler.reseed_rng()
    assert Counting.n == 5


@pytest.mark.parametrize("base", [RandomSampler, GBQRSampler])
def test_copies_of_an_instance_leave_with_their_study(
    base: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = type("Kept", (base,), {})  # counted by the garbage collector
    monkeypatch.setattr(seeded_sampler, "_MAX_STUDIES", 2)
    sampler = even(inner=kept(seed=0))
    for _ in range(4):
        run(sampler, 5, alike)
        gc.collect()
    alive = sum(type(known) is kept for known in gc.get_objects())
    # Each has four: of three arms, and of the first trial before they were known. A study that is
    # forgotten as the last one begins may have its copies yet.
    assert alive <= 1 + 3 * 4


def test_pickles_and_deep_copies_begin_with_the_instance_as_it_was_given() -> None:
    sampler = even(inner=RandomSampler(seed=0))
    first = run(sampler, 7, alike)
    for twin in (pickle.loads(pickle.dumps(sampler)), copy.deepcopy(sampler)):
        assert params(run(twin, 7, alike)) == params(first)


def test_an_arm_that_another_worker_has_promised_is_kept() -> None:
    def workers(arm: int) -> BanditSampler:
        policy = AlwaysBest(arm=arm, min_pulls=1, min_share=0.0)
        return BanditSampler(policy=policy, inner=RandomSampler, seed=arm)

    study = run(even(), 6, alike)
    for promised, own in ((0, 2), (2, 1), (1, 0)):
        study.sampler = workers(promised)
        trial = study.ask()
        trial.suggest_float("x", 0, 1)  # the arm is decided and published, and not asked for yet
        study.sampler = workers(own)
        assert alike(optuna.Trial(study, trial._trial_id)) > 0
        assert study.trials[trial.number].params["algorithm"] == "abc"[promised]


def test_independent_values_in_an_arm_are_drawn_by_name_and_by_number() -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.suggest_categorical("algorithm", ["a", "b"])
        return trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, 1)

    study = run(BanditSampler(inner=RandomSampler, seed=0), 6, objective)
    assert len({t.params[name] for t in study.trials for name in ("x", "y")}) == 12
