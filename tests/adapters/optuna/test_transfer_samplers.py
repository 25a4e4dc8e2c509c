"""Samplers that learn from earlier studies: the first trial, manners, what they tell."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters.optuna import (
    ADAPTER,
    AutoSampler,
    TSTSampler,
    _private,
    explain,
    source_shares,
)
from automl_plugins.adapters.optuna._union import UnionSpace
from automl_plugins.adapters.optuna.proposer_sampler import ProposerSampler
from automl_plugins.adapters.optuna.transfer_samplers import TransferSampler
from objectives import (
    TRANSFER,
    Refusing,
    branches,
    distinct,
    earlier,
    fixing,
    params,
    reporting,
    search,
    studied,
)
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import TrialState

from automl_plugins.meta import MetaStore
from automl_plugins.records.task_record import TaskRecord

EVERY = pytest.mark.parametrize("make", TRANSFER.values(), ids=TRANSFER)
# Where the proposer does not matter: one model, and a committee.
SOME = pytest.mark.parametrize("make", [TSTSampler, AutoSampler])


def quadratic(trial: optuna.Trial, best: float = 0.7) -> float:
    return (trial.suggest_float("x", 0, 1) - best) ** 2 + 0.1 * trial.suggest_float("y", 0, 1)


def bowls(n: int = 3, sign: float = 1.0) -> list[optuna.Study]:
    return [
        studied(f"bowl {i}", lambda t, b=0.7 + i / 50: quadratic(t, b), n=20, seed=i, sign=sign)  # type: ignore[misc]
        for i in range(n)
    ]


def union_of(study: optuna.Study) -> UnionSpace:
    """The space that the last proposal was made in."""
    assert isinstance(study.sampler, ProposerSampler)
    space = study.sampler._reader(study)._space._last
    assert space is not None
    return space[1]


def in_names(new: dict[str, str]) -> list[dict[str, Any]]:
    """Configurations of a search with the bundled memory, in the names of the memory."""

    def objective(trial: optuna.Trial) -> float:
        rate = trial.suggest_float(new.get("learning_rate", "learning_rate"), 1e-3, 0.5, log=True)
        leaves = trial.suggest_int(new.get("num_leaves", "num_leaves"), 2, 128, log=True)
        penalty = trial.suggest_float(new.get("reg_lambda", "reg_lambda"), 1e-8, 10.0, log=True)
        return (rate - 0.1) ** 2 + abs(leaves - 20) / 100 + penalty / 100

    study = optuna.create_study(sampler=AutoSampler("lightgbm", seed=0))
    study.optimize(objective, n_trials=6)
    old = {name: known for known, name in new.items()}
    return [{old.get(n, n): value for n, value in t.params.items()} for t in study.trials]


@pytest.mark.slow
def test_suggestions_are_evaluated_under_other_names_too() -> None:
    names = ("learning_rate", "num_leaves", "reg_lambda")
    plain = in_names({})
    for new in ({n: f"clf__{n}" for n in names}, {"reg_lambda": "lambda_l2"}):
        found = in_names(new)
        assert found[:3] == plain[:3]
        assert len({tuple(sorted(values.items())) for values in found}) == 6
    # Without the memory's names the first trial is in the middle of the ranges.
    assert in_names({n: f"x{n}" for n in names}) != plain


def warnings_in(log: pytest.LogCaptureFixture) -> list[str]:
    return [r.message for r in log.records if r.levelno == logging.WARNING]


# --- from the first trial on --------------------------------------------------------------------


@EVERY
def test_the_first_trial_is_that_of_the_sources(make: type[TransferSampler]) -> None:
    sources = bowls()
    study = search(make(sources, seed=0), quadratic, 1)
    assert len(source_shares(study)[0]) > 0
    told = "surrogate model" if make is TSTSampler else "suggest"
    assert told in str(explain(study.trials[0]))
    assert study.best_value < sorted(t.value or 0.0 for t in sources[0].trials)[3]


@SOME
def test_branches_are_known_before_they_are_asked_for(make: type[TransferSampler]) -> None:
    study = search(make(earlier(), seed=0, independent_sampler=Refusing()), branches, 10)
    assert len(union_of(study).vectors.space.conditions) == 2
    json.dumps(params(study))  # builtins only


def test_other_ranges_than_those_of_the_sources(log: pytest.LogCaptureFixture) -> None:
    def elsewhere(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 2, 3)  # outside
        y = trial.suggest_float("y", 0, 10)  # wider
        return (x - 2.2) ** 2 + y + trial.suggest_int("new", 1, 3)

    study = search(TSTSampler(bowls(), seed=0), elsewhere, 6)
    assert all(2 <= values["x"] <= 3 and 0 <= values["y"] <= 10 for values in params(study))
    assert study.trials[0].params["y"] <= 1  # where the sources have been
    assert union_of(study).distributions["x"] == FloatDistribution(2, 3)
    assert "sampled independently" not in log.text


def test_the_first_trial_moves_what_is_outside_its_range_to_the_end_of_it() -> None:
    sources = [studied("wide", lambda t: t.suggest_float("x", 0, 10) + t.suggest_float("s", 0, 1))]

    def narrow(trial: optuna.Trial) -> float:
        return trial.suggest_float("x", 20, 30, log=True) + trial.suggest_int("s", 5, 9)

    first = search(AutoSampler(sources, seed=0), narrow, 1).trials[0]
    # A share is not moved to a count: it is the middle.
    assert first.params == {"x": 20.0, "s": 7}
    assert "; s chosen independently" in str(explain(first))


@pytest.mark.parametrize("kinds", [[True, None, "tree"], ["tree", "forest"], [0, "tree", 1.5]])
def test_other_choices_and_kinds_of_distributions(kinds: list[Any]) -> None:
    """Optuna itself fails a trial that asks for another kind than was announced."""

    def objective(trial: optuna.Trial) -> float:
        kind = trial.suggest_categorical("kind", kinds)
        rate = trial.suggest_float("rate", 0.01, 0.9)  # not logarithmic
        leaf = trial.suggest_float("leaf", 1.0, 30.0)  # not an integer
        return float(kind == "tree") + rate + leaf / 30

    study = search(TSTSampler(earlier(), seed=0), objective, 6)
    assert all(t.state == TrialState.COMPLETE for t in study.trials)


def test_parameters_that_are_never_asked_for_are_given_up() -> None:
    study = search(TSTSampler(bowls(), seed=0), lambda t: t.suggest_float("x", 0, 1), 1)
    study.ask().suggest_float("x", 0, 1)
    assert union_of(study).vectors.names == ("x",)


def test_a_declared_space_is_the_space(log: pytest.LogCaptureFixture) -> None:
    space = {"x": FloatDistribution(0.5, 1.0), "z": FloatDistribution(0, 1)}
    study = optuna.create_study(sampler=TSTSampler(bowls(), search_space=space, seed=0))
    first = study.ask()
    assert set(first.relative_params) == {"x", "z"}
    assert abs(first.relative_params["x"] - 0.7) < 0.2
    assert any("x is outside the range of this search" in r.message for r in log.records)


def test_a_declared_space_has_the_conditions_of_the_sources() -> None:
    space: dict[str, BaseDistribution] = {
        "kind": CategoricalDistribution(["tree", None, True]),
        "rate": FloatDistribution(1e-3, 1.0, log=True),
        "x": FloatDistribution(0.0, 1.0, step=0.25),
    }
    study = optuna.create_study(sampler=TSTSampler(earlier(), search_space=space, seed=0))
    study.ask(space)
    assert [c.child.name for c in union_of(study).vectors.space.conditions] == ["x"]


def test_records_without_a_space_serve_once_the_objective_has_asked() -> None:
    rng = np.random.default_rng(0)
    runs = [{"x": float(x), "y": float(y)} for x, y in rng.uniform(size=(20, 2))]
    losses = np.array([(r["x"] - 0.7) ** 2 + 0.1 * r["y"] for r in runs])
    study = search(TSTSampler([TaskRecord("t", runs, losses)], seed=0), quadratic, 3)
    assert explain(study.trials[0]).origin == "independent"
    assert explain(study.trials[1]).source == "t"


# --- the study itself among the sources, nothing in common --------------------------------------


def test_a_study_among_its_own_sources_is_left_out(log: pytest.LogCaptureFixture) -> None:
    sources = bowls()
    study = sources[1]
    for given in (sources, {"a": sources[0], "b": study, "c": sources[2]}):
        log.clear()
        study.sampler = sampler = TSTSampler(given, seed=0)
        trial = study.ask()
        quadratic(trial)
        shares = source_shares(study)[trial.number]
        others = {"a", "c"} if isinstance(given, dict) else {"bowl 0", "bowl 2"}
        assert set(shares) <= others and shares
        assert sum("left out" in r.message for r in log.records) == 1
        study.tell(trial, state=TrialState.FAIL)
    other = sources[0]  # the same sampler for several studies
    other.sampler = sampler
    quadratic(other.ask())
    assert "a" not in source_shares(other)[20]


def test_the_task_of_a_store_is_left_out_by_name(
    tmp_path: Path, log: pytest.LogCaptureFixture
) -> None:
    with MetaStore(tmp_path / "store.db") as store:
        for study in bowls():
            store.add(ADAPTER.read_task(study))
        for new, options in (
            (optuna.create_study(study_name="bowl 0"), {}),
            (optuna.create_study(), {"task": "bowl 0"}),
        ):
            new.sampler = TSTSampler(store, seed=0, **options)
            quadratic(new.ask())
            assert set(source_shares(new)[0]) == {"bowl 1", "bowl 2"}
    assert sum("bowl 0" in r.message and "left out" in r.message for r in log.records) == 2


def test_a_study_alone_among_its_sources_continues_without(log: pytest.LogCaptureFixture) -> None:
    study = bowls(1)[0]
    study.sampler = TSTSampler(study, seed=0)
    study.optimize(quadratic, n_trials=3)
    (told,) = warnings_in(log)
    assert "the task itself" in told and "without its memory" in told
    assert explain(study.trials[-1]).origin == "model"


def matching(trial: optuna.Trial) -> float:
    """Three branches, of which one is what the bundled memory of "svm" knows."""
    algorithm = trial.suggest_categorical("algorithm", ["forest", "svm", "neighbours"])
    if algorithm == "svm":
        c = trial.suggest_float("C", 0.1, 100, log=True)
        return abs(c - 10) + trial.suggest_float("gamma", 0.001, 1)
    return foreign_branch(trial, algorithm) + 1


def foreign(trial: optuna.Trial) -> float:
    return foreign_branch(trial, trial.suggest_categorical("algorithm", ["forest", "neighbours"]))


def foreign_branch(trial: optuna.Trial, algorithm: str) -> float:
    if algorithm == "forest":
        return trial.suggest_float("share", 0, 1)
    return trial.suggest_int("k", 1, 50) / 50


@pytest.mark.slow
@SOME
def test_another_branch_first_is_no_mismatch(
    make: type[TransferSampler], log: pytest.LogCaptureFixture
) -> None:
    for seed in (1, 2) if make is TSTSampler else (1,):
        study = search(make("svm", seed=seed), matching, 10)
        assert warnings_in(log) == []
        assert any(sum((explain(t).shares or {}).values()) > 0 for t in study.trials[1:])


def test_a_mismatch_is_named_once_no_branch_is_left_that_could_fit(
    log: pytest.LogCaptureFixture,
) -> None:
    search(TSTSampler("svm", seed=0), foreign, 8)
    (told,) = warnings_in(log)
    assert "share no hyperparameter" in told


def test_a_search_among_algorithms_tries_them_all_first() -> None:
    """The first trial may show the hyperparameters of a learner, and nothing but these."""

    def objective(trial: optuna.Trial) -> float:
        algorithm = trial.suggest_categorical("algorithm", ["svm", "forest", "bayes"])
        if algorithm == "svm":
            return trial.suggest_float("C", 1e-3, 1e3, log=True) + trial.suggest_float(
                "gamma", 0, 1
            )
        if algorithm == "forest":
            return trial.suggest_int("n_estimators", 5, 50) + trial.suggest_int("max_depth", 1, 9)
        return 1.0

    for seed in range(6):
        first = params(search(AutoSampler(seed=seed), objective, 3))
        assert {values["algorithm"] for values in first} == {"svm", "forest", "bayes"}


# --- what it tells ------------------------------------------------------------------------------


@pytest.mark.slow
@EVERY
def test_shares_are_on_the_trial(make: type[TransferSampler]) -> None:
    storage = optuna.storages.RDBStorage("sqlite:///:memory:")
    study = search(make(bowls(), seed=0), quadratic, 12, storage=storage)
    for trial in study.trials:
        stored = trial.user_attrs["automl_plugins:sources"]
        assert set(stored) == {"own", "sources"}
        named = stored["sources"]
        assert set(named) <= {"bowl 0", "bowl 1", "bowl 2", "meta-learner"}
        assert stored["own"] + sum(named.values()) == pytest.approx(1.0, abs=1e-5)
        assert list(named.values()) == sorted(named.values(), reverse=True)
        explained = explain(trial)
        assert explained.own_share == stored["own"] and explained.shares == named
        if named:
            assert explained.source == next(iter(named))
            assert explained.source_share == max(named.values())
            assert str(explained.source) in str(explained)
        assert source_shares(study)[trial.number] == named


def test_shares_of_very_many_sources_stay_below_64_kilobytes() -> None:
    study = optuna.create_study()
    frozen = study._storage.get_trial(study.ask()._trial_id)
    shares = {f"openml/{i:05d}/a rather long name of a task": 1 / 20_000 for i in range(10_000)}
    _private.write_explanation(study, frozen, {}, {**shares, "first": 0.3, "none": 0.0})
    stored = study.trials[0].user_attrs["automl_plugins:sources"]
    assert len(json.dumps(stored)) < 2**16
    assert next(iter(stored["sources"])) == "first" and "none" not in stored["sources"]
    assert stored["own"] == pytest.approx(0.2)


# --- manners ------------------------------------------------------------------------------------


@SOME
def test_enqueued_fixed_pruned_failed_and_running_trials(make: type[TransferSampler]) -> None:
    sampler = make(earlier(), seed=0)
    study = optuna.create_study(sampler=sampler)
    study.enqueue_trial({"kind": None, "x": 0.5})
    study.optimize(branches, n_trials=1)
    assert study.trials[0].params["kind"] is None and study.trials[0].params["x"] == 0.5

    def troubled(trial: optuna.Trial) -> float:
        value = branches(trial)
        if trial.number % 3 == 0:
            raise ValueError("out of memory")
        if trial.number % 3 == 1:
            trial.report(value, 1)
            raise optuna.TrialPruned
        return value

    study.optimize(troubled, n_trials=6, catch=ValueError)
    running = [study.ask() for _ in range(3)]
    for trial in running:
        branches(trial)
    assert distinct([trial.params for trial in running]) == 3
    study.sampler = fixing({"kind": "tree"}, sampler)
    study.optimize(branches, n_trials=2)
    assert [t.params["kind"] for t in study.trials[-2:]] == ["tree"] * 2


def kinds_and_rates(trial: optuna.Trial, **asked: BaseDistribution) -> float:
    """Asks in the ranges of the earlier studies, where no others are given."""
    known = {
        "rate": FloatDistribution(1e-6, 10.0, log=True),
        "depth": IntDistribution(1, 30),
        "kind": CategoricalDistribution(["a", "b", "c"]),
    }
    rate, depth, kind = (trial._suggest(name, d) for name, d in (known | asked).items())
    return float(abs(rate - 0.3) + abs(depth - 20) / 10 + "abc".index(kind))


@EVERY
@pytest.mark.parametrize(
    "asked",
    [
        {"rate": FloatDistribution(1e-4, 0.1, log=True), "depth": IntDistribution(1, 10)},
        {"kind": CategoricalDistribution(["c", "a", "b"])},
        {"rate": FloatDistribution(0.0, 0.1, step=0.05), "depth": IntDistribution(1, 10, step=3)},
    ],
    ids=["narrower", "other order", "steps"],
)
def test_before_a_trial_has_ended_others_differ_from_it_in_the_ranges_of_the_objective(
    make: type[TransferSampler], asked: dict[str, BaseDistribution]
) -> None:
    memory = [studied(f"m{i}", kinds_and_rates, n=20, seed=i) for i in range(2)]
    study = optuna.create_study(sampler=make(memory, seed=1))
    running = [study.ask() for _ in range(4)]
    for trial in running:
        kinds_and_rates(trial, **asked)
    # They ask one after the other, else nobody knows the ranges of the objective.
    later = []
    for _ in range(4):
        later.append(study.ask())
        kinds_and_rates(later[-1], **asked)
    assert distinct([trial.params for trial in later]) == 4
    assert not [t.params for t in later if t.params in [known.params for known in running]]


def test_hyperband_and_several_objectives() -> None:
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9)
    study = search(TSTSampler(bowls(), seed=0), reporting(quadratic), 10, pruner=pruner)
    assert len(source_shares(study)) == 10
    several = optuna.create_study(directions=["minimize"] * 2, sampler=TSTSampler(bowls(), seed=0))
    with pytest.raises(ValueError, match="one objective"):
        several.ask().suggest_float("x", 0, 1)


@EVERY
def test_workers_that_ask_at_one_moment_are_told_what_one_after_the_other_would_be(
    make: type[TransferSampler], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = search(make(bowls(), seed=1), quadratic, 2)
    trials = [study.ask() for _ in range(3)]
    told = []
    with monkeypatch.context() as unpublished:
        unpublished.setattr(_private, "write_proposal", lambda *_: None)
        for trial in trials:
            worker = make(bowls(), seed=1)
            frozen = study.get_trials()[trial.number]
            asked = worker.infer_relative_search_space(study, frozen)
            told.append(worker.sample_relative(study, frozen, asked))
    for trial in trials:
        quadratic(trial)
    assert [trial.params for trial in trials] == told
    assert distinct(told) == 3
