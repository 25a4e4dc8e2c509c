"""``explain`` on every kind of trial: it never raises, and what it says is so."""

from __future__ import annotations

import math
from typing import Any

import optuna
import pytest
from arm_objectives import zoo
from automl_plugins.adapters.optuna import (
    AutoSampler,
    BanditSampler,
    BlendedSampler,
    BOASFSampler,
    EIPerSecondSampler,
    GBQRSampler,
    PMFSampler,
    SurrogateSampler,
    TSTSampler,
    WeightedModelSampler,
    enqueue_initial_design,
    explain,
    member_trust,
    meta_dataset_from_studies,
    source_shares,
)
from objectives import fixing, search, studied
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import RandomSampler, TPESampler
from optuna.trial import TrialState, create_trial

from automl_plugins.bandits import UCB1
from automl_plugins.proposers.explanation import Explanation


def kinds(trial: optuna.Trial) -> float:
    """Every third trial fails or is pruned."""
    value = zoo(trial)
    if trial.number % 6 == 2:
        raise ArithmeticError
    if trial.number % 6 == 5:
        trial.report(value, 1)
        raise optuna.TrialPruned
    return value


def earlier() -> list[optuna.Study]:
    return [studied(f"earlier {k}", zoo, n=12, seed=k) for k in range(2)]


ALL: dict[str, Any] = {
    "GBQR": lambda: GBQRSampler(seed=1),
    "random start": lambda: SurrogateSampler(startup="random", seed=1),
    "TST": lambda: TSTSampler(earlier(), seed=1),
    "PMF": lambda: PMFSampler(earlier(), seed=1),
    "Blended": lambda: BlendedSampler(earlier(), seed=1),
    "auto with a memory": lambda: AutoSampler(earlier(), seed=1),
    "bandit": lambda: BanditSampler(seed=1),
    "bandit over GBQR": lambda: BanditSampler(inner=GBQRSampler, seed=1),
    "BOASF": lambda: BOASFSampler(n_trials=10, seed=1),
    "weighted": lambda: WeightedModelSampler(seed=1),
    "random": lambda: RandomSampler(seed=1),
    "TPE": lambda: TPESampler(seed=1),
}
SUGGESTING = ("PMF", "Blended", "auto with a memory")
ARMS = ("bandit", "bandit over GBQR", "BOASF", "weighted")


def troubled(name: str, n: int = 11) -> optuna.Study:
    study = optuna.create_study(sampler=ALL[name]())
    study.enqueue_trial({"algorithm": "svm", "C": 1.0, "eps": 0.5})
    study.optimize(kinds, n_trials=n, catch=(ArithmeticError,))
    study.enqueue_trial({"algorithm": "tree"})
    study.enqueue_trial({"algorithm": "tree", "depth": 3})
    study.optimize(kinds, n_trials=1, catch=(ArithmeticError,))  # the second one keeps waiting
    study.add_trial(
        create_trial(params={"x": 0.5}, distributions={"x": FloatDistribution(0, 1)}, value=1.0)
    )
    study.add_trial(create_trial(value=1.0))
    return study


@pytest.mark.parametrize("name", ALL)
def test_every_trial_of_a_study_is_explained(name: str) -> None:
    study = troubled(name)
    said = {t.number: explain(t) for t in study.trials}
    n = len(study.trials) - 4  # of the first trials
    assert all(str(why).startswith(f"Trial {k} ") for k, why in said.items())
    assert said[0].origin == "enqueued" and said[0].value is None
    assert [said[k].origin for k in (n + 1, n + 2, n + 3)] == ["enqueued", "foreign", "unasked"]
    assert said[n].fixed == ("algorithm",)
    origins = {said[k].origin for k in range(1, n)}
    if name in ("random", "TPE"):
        assert origins == {"foreign"}
    elif name in ARMS:
        assert origins <= {"inner", "model", "design", "independent"} and "foreign" not in origins
        for k in range(1, n):
            arm = said[k].arm
            assert arm is not None and arm.parameter == "algorithm"
            assert arm.arm == study.trials[k].params["algorithm"]
            assert f"algorithm={arm.arm}" in str(said[k])
    else:
        assert "model" in origins and "foreign" not in origins
        assert ("suggested" in origins) == (name in SUGGESTING)
        assert ("random" in origins) == (name == "random start")
    running = study.ask()
    assert explain(running) == explain(study.trials[running.number])
    zoo(running)
    assert explain(running).origin in (*origins, "enqueued")
    states = {t.state for t in study.trials}
    assert states >= {TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL, TrialState.RUNNING}


def test_only_trials_are_explained() -> None:
    study: Any = optuna.create_study()
    with pytest.raises(TypeError, match="explain takes a trial, such as"):
        explain(study)


def test_what_a_trial_has_not_been_asked_yet() -> None:
    for sampler in (GBQRSampler(seed=0), RandomSampler(seed=0)):
        study = optuna.create_study(sampler=sampler)
        trial = study.ask()
        assert explain(trial).origin == "pending"
        zoo(trial)
        ours = isinstance(sampler, GBQRSampler)
        assert explain(trial).origin == ("independent" if ours else "foreign")
        study.tell(trial, 1.0)
        assert explain(study.trials[0]).origin == ("independent" if ours else "foreign")


def test_a_trial_without_parameters_is_not_said_to_be_another_samplers() -> None:
    study = optuna.create_study(sampler=GBQRSampler(seed=0))
    study.optimize(lambda trial: 1.0, n_trials=1)
    assert explain(study.trials[0]).origin == "unasked"
    assert str(explain(study.trials[0])) == "Trial 0 asked for no parameter."


@pytest.mark.parametrize("name", ["GBQR", "bandit", "TPE"])
def test_a_trial_whose_parameters_have_one_value_is_not_said_to_be_another_samplers(
    name: str,
) -> None:
    study = optuna.create_study(sampler=ALL[name]())
    study.optimize(lambda trial: trial.suggest_int("n", 2, 2), n_trials=2)
    assert [explain(trial).origin for trial in study.trials] == ["constant"] * 2
    assert str(explain(study.trials[1])).endswith("each of its parameters has one value.")
    running = study.ask()
    running.suggest_int("n", 2, 2)
    assert explain(running).origin == "pending"
    running.suggest_float("x", 0, 1)
    assert explain(running).origin not in ("constant", "pending")


def test_values_are_those_of_a_maximised_objective() -> None:
    def objective(trial: optuna.Trial) -> float:
        return 5.0 + trial.suggest_float("x", 0, 1)

    low = explain(search(GBQRSampler(seed=0), objective, 9).trials[-1])
    upside_down = search(GBQRSampler(seed=0), lambda t: -objective(t), 9, direction="maximize")
    high = explain(upside_down.trials[-1])
    assert low.value is not None and low.bound is not None
    assert high.value is not None and high.bound is not None
    assert 4.0 < low.bound <= low.value < 7.0
    assert -7.0 < high.value <= high.bound < -4.0


def test_predictions_are_of_the_trials_before() -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.set_user_attr("seconds", 1.0)
        return zoo(trial)

    study = search(EIPerSecondSampler(cost="seconds", seed=0), objective, 20)
    assert explain(study.trials[0]).origin == "independent"  # its names were not known yet
    assert "evenly over its range, beginning in the middle" in str(explain(study.trials[0]))
    own = search(EIPerSecondSampler(cost=lambda trial: 2.0, seed=0), objective, 9).trials[-1]
    assert "predicted cost 2;" in f"{explain(own)};".replace(".;", ";")
    assert explain(study.trials[2]).origin == "design"
    why = explain(study.trials[-1])
    assert why.origin == "model" and why.n_rows == 19
    assert why.bound is not None and why.value is not None and why.bound <= why.value
    assert why.seconds == pytest.approx(1.0, rel=0.05) and "predicted cost 1 s" in str(why)
    assert (why.shares, why.own_share, why.source, why.source_share) == (None, None, None, 0.0)
    assert source_shares(study) == {}


def test_a_cost_is_in_seconds_where_that_is_sure() -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.set_user_attr("seconds", 1.0)
        trial.set_user_attr("euros", 2.0)
        return trial.suggest_float("x", 0, 1)

    def unit(cost: Any) -> str:
        study = search(
            GBQRSampler(cost=cost, seed=0, n_startup_trials=3, n_models=1), objective, 6
        )
        return str(explain(study.trials[-1]).unit)

    costs: list[Any] = ["duration", "seconds", "euros", lambda trial: 2.0]
    assert list(map(unit, costs)) == ["s", "s", "", ""]


def test_members_of_a_committee_and_how_much_they_were_trusted() -> None:
    study = search(AutoSampler(seed=0, n_startup_trials=4), zoo, 14)
    said = {t.number: explain(t) for t in study.trials}
    asked = {k: why for k, why in said.items() if why.member is not None}
    assert 3 not in asked and len(asked) > 6
    for why in asked.values():
        assert why.trust is not None and why.member in why.trust
        assert sum(why.trust.values()) == pytest.approx(1.0)
        assert list(why.trust.values()) == sorted(why.trust.values(), reverse=True)
        assert f"the member {why.member!r}" in str(why) and "trusted with" in str(why)
    assert member_trust(study) == {k: why.trust for k, why in asked.items()}
    assert member_trust(search(GBQRSampler(seed=0), zoo, 9)) == {}


def test_what_a_dashboard_shows_are_plain_values_and_the_facts_themselves() -> None:
    sampler = AutoSampler(cost=lambda trial: 1.0 + trial.params["x"], seed=0)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(lambda trial: -trial.suggest_float("x", 0.0, 1.0), n_trials=8)
    started, modelled = study.trials[0].user_attrs, study.trials[-1].user_attrs
    assert not [key for key in started if key.startswith("automl_plugins:")]
    facts = modelled["automl_plugins"]
    assert {key: value for key, value in modelled.items() if ":" in key} == {
        "automl_plugins:member": facts["member"],
        "automl_plugins:predicted_bound": facts["bound"],
        "automl_plugins:predicted_seconds": facts["seconds"],
    }


def test_scores_rounds_and_inner_samplers_of_arms() -> None:
    study = search(BanditSampler(policy=UCB1(), seed=0), zoo, 14)
    arms = [explain(t).arm for t in study.trials]
    assert {a.sampler for a in arms if a is not None} == {"TPESampler"}
    scored = [a for a in arms if a is not None and a.score is not None]
    assert scored and all("UCB1" in a.reason and a.score > 0.5 for a in scored if a.score)
    assert "guaranteed minimum of UCB1" in str(explain(study.trials[1]))
    assert "proposed by TPESampler, the sampler of its arm" in str(explain(study.trials[-1]))

    study = search(BOASFSampler(n_trials=12, seed=0), zoo, 14)
    arms = [explain(t).arm for t in study.trials]
    rounds = [a.round for a in arms if a is not None]
    assert rounds[0] == 1 and rounds[11] == 3 and rounds[12:] == [None, None]
    last = arms[11]
    assert last is not None and last.score is not None and 0 < last.score <= 1
    assert "round 3" in str(explain(study.trials[11]))
    assert "MaxUCB" in str(explain(study.trials[13]))


def test_a_model_inside_an_arm() -> None:
    sampler = BanditSampler(inner=lambda seed: GBQRSampler(n_startup_trials=2, seed=seed), seed=0)
    study = search(sampler, zoo, 20)
    said = [explain(t) for t in study.trials if explain(t).origin == "model"]
    assert said and all(0 < why.n_rows < 19 and why.arm is not None for why in said)
    assert all(why.arm is not None and why.arm.sampler == "GBQRSampler" for why in said)


def test_an_initial_design_was_suggested_and_not_enqueued_by_the_user() -> None:
    space = {"C": FloatDistribution(1e-3, 1e3, log=True), "eps": FloatDistribution(0, 1)}
    study = optuna.create_study(sampler=GBQRSampler(seed=0))
    enqueue_initial_design(study, memory=meta_dataset_from_studies(earlier()), search_space=space)
    study.enqueue_trial({"C": 1.0, "eps": 0.25})
    said = explain(study.trials[0])
    assert said.origin == "suggested" and "by earlier tasks (initial design)" in str(said)
    assert explain(study.trials[-1]).origin == "enqueued"


def test_a_parameter_that_was_not_part_of_the_proposal_is_named() -> None:
    def grows(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        return x + (trial.suggest_float("new", 0, 1) if trial.number == 8 else 0.0)

    study = search(GBQRSampler(seed=0), grows, 9)
    said = explain(study.trials[8])
    assert said.origin == "model" and said.independent == ("new",)
    assert "new chosen independently" in str(said)
    assert explain(study.trials[7]).independent == ()


def remembered() -> optuna.Study:
    """A study of a share, a number of steps and a choice."""
    study = optuna.create_study(study_name="remembered")
    space = {
        "share": FloatDistribution(0, 1),
        "n": IntDistribution(0, 59),
        "kind": CategoricalDistribution(["a", "b"]),
    }
    for i in range(60):
        values = {"share": i / 60, "n": i * 7 % 60, "kind": "ab"[i % 2]}
        study.add_trial(create_trial(value=i % 7, params=values, distributions=space))
    return study


@pytest.mark.parametrize("sampler", [AutoSampler, TSTSampler, BlendedSampler])
def test_a_memory_has_no_share_in_a_trial_that_asks_for_nothing_of_it(sampler: Any) -> None:
    def both(trial: optuna.Trial) -> float:
        return trial.suggest_float("a", 0, 1) + trial.suggest_float("b", 0, 1)

    study = search(sampler([remembered()], seed=1), both, 1)
    said = explain(study.trials[0])
    assert (said.origin, said.own_share, said.shares) == ("independent", None, None)
    assert "the memory" not in str(said) and "earlier tasks" not in str(said)
    assert source_shares(study) == {}
    inside = BanditSampler(inner=lambda seed: sampler([remembered()], seed=seed), seed=0)
    study = search(inside, lambda t: both(t) + len(t.suggest_categorical("algorithm", "xy")), 2)
    said = explain(study.trials[1])
    assert (said.origin, said.shares, source_shares(study)) == ("independent", None, {})
    assert said.arm is not None and "chosen by itself" in str(said)


@pytest.mark.filterwarnings("ignore:The distribution is specified by")
@pytest.mark.parametrize("sampler", [AutoSampler, TSTSampler, BlendedSampler])
@pytest.mark.parametrize(
    "asks",
    [
        lambda t: t.suggest_float("step__share", 0, 1) + t.suggest_int("step__n", 0, 59),
        lambda t: len(t.suggest_categorical("kind", ["b", "a"])),
        lambda t: t.suggest_int("n", 1, 59, step=9),
        lambda t: t.suggest_float("share", 0, 1) + t.suggest_float("new", 0, 1),
    ],
    ids=["another name", "another order", "other steps", "something new, too"],
)
def test_what_a_memory_proposed_is_its_own_however_it_is_asked_for(
    sampler: Any, asks: Any
) -> None:
    study = search(sampler([remembered()], seed=1), asks, 1)
    said = explain(study.trials[0])
    assert said.origin in ("suggested", "model") and said.source_share == 1.0
    assert said.independent == tuple(n for n in study.trials[0].params if n == "new")
    assert source_shares(study) == {0: said.shares}


def test_the_local_member_of_a_long_search() -> None:
    study = optuna.create_study(sampler=AutoSampler(seed=1))
    x = FloatDistribution(0.0, 1.0)
    for i in range(128):
        known = create_trial(
            params={"x": i / 127}, distributions={"x": x}, value=(i / 127 - 0.3) ** 2
        )
        study.add_trial(known)
    study.optimize(lambda trial: (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2, n_trials=2)
    local, other = (explain(trial) for trial in study.trials[-2:])
    assert local.member == "local process" != other.member
    assert "the region around the best trial) proposed it;" in str(local) and local.trust is None
    assert abs(study.trials[-2].params["x"] - 0.3) < 0.05
    assert list(member_trust(study)) == [129]


def test_no_member_is_trusted_with_a_trial_that_asks_for_nothing_of_its_proposal() -> None:
    def renames(trial: optuna.Trial) -> float:
        return trial.suggest_float("x" if trial.number < 8 else "u", 0, 1)

    study = search(AutoSampler(memory=None, seed=0), renames, 9)
    assert "member" in study.trials[8].user_attrs["automl_plugins"]
    said = explain(study.trials[8])
    assert (said.origin, said.member, said.trust) == ("independent", None, None)
    assert 7 in member_trust(study) and 8 not in member_trust(study)
    running = study.ask()
    running.suggest_float("v", 0, 1)  # it may yet ask for what was proposed
    assert explain(running).origin != "independent"


def test_a_value_that_was_held_is_named() -> None:
    both = lambda t: t.suggest_float("x", 0, 1) + t.suggest_float("y", 0, 1)  # noqa: E731
    said = explain(search(fixing({"x": 0.5}, GBQRSampler(seed=0)), both, 9).trials[8])
    assert said.origin == "model" and said.fixed == ("x",) and said.independent == ()
    assert "x decided beforehand" in str(said)


def test_a_trial_of_which_all_was_held_is_no_members() -> None:
    study = search(AutoSampler(memory=None, seed=0), zoo, 13)
    assert 12 in member_trust(study)
    study.sampler = fixing({"algorithm": "svm"}, study.sampler)
    study.optimize(
        lambda trial: len(trial.suggest_categorical("algorithm", ["svm", "net", "tree", "dummy"])),
        1,
    )
    assert 13 not in member_trust(study)
    said = explain(study.trials[13])
    assert (said.origin, said.member, said.fixed) == ("given", None, ("algorithm",))
    assert str(said) == "Trial 13 has only values that were decided beforehand."


@pytest.mark.parametrize("kind", ["bandit", "BOASF"])
def test_an_arm_that_its_policy_chose_is_not_decided_beforehand(kind: str) -> None:
    """For the sampler inside it is; not for the user."""
    if kind == "bandit":
        sampler: Any = BanditSampler(inner=GBQRSampler, seed=1)
    else:
        sampler = BOASFSampler(n_trials=12, inner=GBQRSampler, seed=1)
    said = [explain(trial) for trial in search(sampler, zoo, 12).trials]
    assert any(why.origin in ("model", "design") for why in said)
    assert all(why.fixed == () and "algorithm" not in why.independent for why in said)
    held = search(fixing({"algorithm": "svm"}, sampler), zoo, 12)
    assert explain(held.trials[-1]).fixed == ("algorithm",)


DAMAGED: tuple[Any, ...] = (
    *("a text", 3, [], {}, None, {"origin": 4}, {"origin": "nowhere", "value": "x"}),
    {"origin": "model", "value": float("nan"), "n_rows": "x", "fixed": 3},
    {"origin": "model", "member": ["x"], "trust": {"x": "much"}, "fixed": [{}, ["x"]]},
    *({"own": "x", "sources": [1]}, {"own": 1.0, "sources": {"a": "b"}}),
    *({"arm": 3, "score": True, "round": 1.5}, {"arm": None, "sampler": []}),
)


@pytest.mark.parametrize("damage", DAMAGED, ids=str)
def test_damaged_attributes_are_left_out(damage: Any) -> None:
    for sampler in (GBQRSampler(seed=0), BanditSampler(seed=0), RandomSampler(seed=0)):
        study = search(sampler, zoo, 2)
        trial = study.ask()
        zoo(trial)
        for key in ("automl_plugins", "automl_plugins:arm", "automl_plugins:sources"):
            trial.set_user_attr(key, damage)
        study.tell(trial, 1.0)
        for stored in study.trials:
            why = explain(stored)
            assert isinstance(why, Explanation) and str(why).endswith(".")
            assert "nan" not in str(why)


def test_shares_that_are_no_numbers_are_left_out() -> None:
    study = search(RandomSampler(seed=0), zoo, 1)
    for own, share in ((0.6, 0.4), (0.6, math.nan), (math.nan, 0.4)):
        trial = study.ask()
        zoo(trial)
        trial.set_user_attr("automl_plugins", {"origin": "model"})
        trial.set_user_attr("automl_plugins:sources", {"own": own, "sources": {"a": share}})
        study.tell(trial, 1.0)
    assert source_shares(study) == {1: {"a": 0.4}, 2: {}}
    assert not any("nan" in str(explain(trial)) for trial in study.trials)


def test_a_retried_trial_does_not_keep_why_the_dead_one_was_proposed() -> None:
    old = search(AutoSampler(earlier(), seed=1), zoo, 13).trials[-1]
    assert old.user_attrs.keys() >= {"automl_plugins:member", "automl_plugins:sources"}
    study = optuna.create_study(sampler=GBQRSampler(seed=1))
    study.add_trial(create_trial(state=TrialState.WAITING, user_attrs=old.user_attrs))
    study.optimize(zoo, n_trials=1)
    assert explain(study.trials[0]).member is None
    assert source_shares(study) == member_trust(study) == {}
    shown = {
        n: v for n, v in study.trials[0].user_attrs.items() if n.startswith("automl_plugins:")
    }
    assert set(shown.values()) == {None}
