"""What reads a search says what it takes, and what it was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hyperopt
import optuna
import pytest
from automl_plugins.adapters import hyperopt as in_hyperopt
from automl_plugins.adapters import optuna as in_optuna
from automl_plugins.adapters import smac as in_smac
from automl_plugins.adapters.smac import ProposerConfigSelector
from ConfigSpace import ConfigurationSpace
from smac import RunHistory, Scenario

from automl_plugins.recipes import gbqr
from automl_plugins.statistics import compare
from automl_plugins.visualization import plot_member_trust, plot_source_weights


def selector() -> ProposerConfigSelector:
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    return ProposerConfigSelector(Scenario(space, n_trials=5, deterministic=True), gbqr())


READERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "optuna.explain": (in_optuna.explain, "explain takes a trial"),
    "optuna.source_shares": (in_optuna.source_shares, "source_shares takes a study"),
    "optuna.member_trust": (in_optuna.member_trust, "member_trust takes a study"),
    "optuna.arm_report": (in_optuna.arm_report, "arm_report takes a study"),
    "optuna.enqueue_initial_design": (
        in_optuna.enqueue_initial_design,
        "enqueue_initial_design takes a study",
    ),
    "hyperopt.explain": (in_hyperopt.explain, r"explain takes hyperopt\.Trials"),
    "hyperopt.member_trust": (in_hyperopt.member_trust, r"member_trust takes hyperopt\.Trials"),
    "hyperopt.source_shares": (
        in_hyperopt.source_shares,
        r"source_shares takes hyperopt\.Trials",
    ),
    "hyperopt.arm_report": (in_hyperopt.arm_report, r"arm_report takes hyperopt\.Trials"),
    "smac.explain": (lambda given: selector().explain(given), "explain takes a configuration"),
    "smac.member_trust": (in_smac.member_trust, "member_trust takes a run history or a facade"),
    "smac.source_shares": (in_smac.source_shares, "source_shares takes a run history or a facad"),
}


@pytest.mark.parametrize("given", ["study", None, 3, [1.0], {"x": 1.0}], ids=repr)
@pytest.mark.parametrize("name", READERS)
def test_a_reader_refuses_what_is_no_search(name: str, given: Any) -> None:
    read, takes = READERS[name]
    with pytest.raises(TypeError, match=f"^{takes}.* got "):
        read(given)


def test_a_reader_takes_no_search_of_another_framework() -> None:
    study, trials = optuna.create_study(), hyperopt.Trials()
    for name, (read, takes) in READERS.items():
        with pytest.raises(TypeError, match=takes):
            read(trials if name.startswith("optuna") else study)


def test_the_number_of_a_trial_is_checked() -> None:
    with pytest.raises(TypeError, match="tid must be an integer"):
        in_hyperopt.explain(hyperopt.Trials(), "0")


def test_several_searches_are_refused_like_one() -> None:
    for nothing in (None, 3):
        with pytest.raises(TypeError, match=f"Expected optuna studies, .* got {nothing}"):
            in_optuna.meta_dataset_from_studies(nothing)
        with pytest.raises(TypeError, match=f"is a run history, .* got {nothing}"):
            in_smac.meta_dataset_from_runhistory(nothing)
    named: Any = {"iris": 3}
    with pytest.raises(TypeError, match=r"A memory by name takes a study, .* got 3"):
        in_optuna.meta_dataset_from_studies(named)


def test_a_run_history_is_one_search_though_it_is_a_mapping() -> None:
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    history = RunHistory()
    for configuration in space.sample_configuration(3):
        history.add(configuration, cost=configuration["x"])
    with pytest.raises(ValueError, match="No evaluation was proposed by a committee"):
        plot_member_trust(history)
    with pytest.raises(ValueError, match="was proposed with the help of earlier tasks"):
        plot_source_weights(history)
    with pytest.raises(ValueError, match="compare needs two methods, got random"):
        compare(history, label=lambda _: ("t", "random"))
    names = {("t", "a"): history, ("t", "b"): history}
    assert compare(names).methods == ("a", "b")


def test_trials_of_hyperopt_are_one_search_though_they_are_iterable() -> None:
    trials = hyperopt.Trials()
    space = {"x": hyperopt.hp.uniform("x", 0, 1)}
    options: dict[str, Any] = {"trials": trials, "show_progressbar": False, "verbose": False}
    hyperopt.fmin(lambda p: p["x"], space, hyperopt.rand.suggest, max_evals=2, **options)
    with pytest.raises(ValueError, match="compare needs two methods, got random"):
        compare(trials, label=lambda _: ("t", "random"))


@pytest.mark.parametrize("given", [None, 3, [], {"x": 1.0}], ids=repr)
@pytest.mark.parametrize("adapter", [in_optuna, in_hyperopt, in_smac], ids=lambda a: a.__name__)
def test_a_replay_refuses_what_is_no_optimizer(adapter: Any, given: Any) -> None:
    with pytest.raises(TypeError, match=r"^optimizer takes a "):
        adapter.optimizer(given)
