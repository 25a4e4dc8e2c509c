"""Optuna samplers and pruners replayed: the very study that a user would have run."""

from __future__ import annotations

import logging
import math
import pickle
import warnings
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters.optuna import SECONDS, AutoSampler, GBQRSampler, curves, optimizer
from automl_plugins.adapters.optuna.studies import quiet
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    Float,
    Integer,
    OrdinalHyperparameter,
)
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import TrialState
from pandas.testing import assert_frame_equal

from automl_plugins.replay import Outcome, Problem, Table, TrialStatus, replay, search_frame

NAN = math.nan


def mixed_space() -> ConfigurationSpace:
    space = ConfigurationSpace()
    kernel, gamma = Categorical("kernel", ["linear", "rbf"]), Float("gamma", (1e-3, 1), log=True)
    space.add(
        kernel,
        gamma,
        OrdinalHyperparameter("size", [16, 64, 256]),
        Integer("n", (1, 1000), log=True),
        Float("x", (-1.0, 1.0)),
        Constant("solver", "adam"),
    )
    space.add(EqualsCondition(gamma, kernel, "rbf"))
    return space


def mixed_table(n: int = 200) -> Table:
    space = mixed_space()
    space.seed(0)
    configs = [dict(c) for c in space.sample_configuration(n)]
    losses = np.random.default_rng(0).normal(size=n)
    return Table("mixed", space, configs, losses, seconds=np.linspace(1, 2, n))


def by_hand(trial: optuna.Trial) -> dict[str, Any]:
    """The define-by-run objective that a user would write for ``mixed_space``."""
    config = {
        "kernel": trial.suggest_categorical("kernel", ["linear", "rbf"]),
        "n": trial.suggest_int("n", 1, 1000, log=True),
        "size": [16, 64, 256][trial.suggest_int("size", 0, 2)],
        "solver": "adam",
        "x": trial.suggest_float("x", -1, 1),
    }
    if config["kernel"] == "rbf":
        config["gamma"] = trial.suggest_float("gamma", 1e-3, 1, log=True)
    return config


def study_of(table: Table, budget: int = 10, pruner: Any = None, **arguments: Any) -> Any:
    """The study of one search by random, and its frame."""
    studies: list[optuna.Study] = []

    class Keeping(RandomSampler):
        """Each search has an instance of its own."""

        def after_trial(self, study: optuna.Study, *_: Any) -> None:
            studies[:] = [study]

    method = optimizer(Keeping, pruner=pruner)
    frame = replay(method, table, budget=budget, progress=False, **arguments)
    return studies[0], frame


# --- what is asked --------------------------------------------------------------------------


@pytest.mark.parametrize("multivariate", [False, True])
def test_the_search_is_that_of_a_loop_written_by_hand(multivariate: bool) -> None:
    table, seed = mixed_table(), 5
    arguments: dict[str, Any] = {"n_startup_trials": 5, "multivariate": multivariate}
    arguments |= {"group": True} if multivariate else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        method = optimizer(TPESampler, **arguments)
        search: Any = method.start(Problem(mixed_space(), seed))
        study = optuna.create_study(sampler=TPESampler(seed=seed, **arguments))
    for moment in range(20):
        proposal = search.ask()
        trial = study.ask()
        config = by_hand(trial)
        assert proposal.config == config
        loss = float(table.losses[table.find(config).row])
        study.tell(trial, loss)
        search.tell(proposal, Outcome(TrialStatus.COMPLETE, loss, moment, moment + 1))
    assert [t.params for t in search.study.trials] == [t.params for t in study.trials]
    assert [t.value for t in search.study.trials] == [t.value for t in study.trials]


# --- samplers and their names ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("sampler", "arguments", "name", "kind"),
    [
        ("RandomSampler", {}, "RandomSampler", RandomSampler),
        ("TPESampler", {"n_startup_trials": 3}, "TPESampler", TPESampler),
        (TPESampler, {"n_startup_trials": 3}, "TPESampler", TPESampler),
        ("AutoSampler", {"memory": "svm"}, "AutoSampler", AutoSampler),
        ("GBQRSampler", {}, "GBQRSampler", GBQRSampler),
        ("GBQRSampler.thesis", {}, "GBQRSampler.thesis", GBQRSampler),
        (GBQRSampler.thesis, {}, "GBQRSampler.thesis", GBQRSampler),
        (RandomSampler(seed=0), {}, "RandomSampler", RandomSampler),
    ],
)
def test_samplers_come_by_class_name_factory_and_instance(
    sampler: Any, arguments: dict[str, Any], name: str, kind: type[BaseSampler]
) -> None:
    method = optimizer(sampler, **arguments)
    assert method.name == name
    search: Any = method.start(Problem(mixed_space(), 1))
    assert isinstance(search.study.sampler, kind)
    assert optimizer(sampler, name="mine", **arguments).name == "mine"


@pytest.mark.parametrize(
    ("sampler", "options", "match"),
    [
        ("NoSampler", {}, r"No sampler 'NoSampler' in optuna.samplers or"),
        ("GBQRSampler.nope", {}, "No sampler 'GBQRSampler.nope'"),
        ("TPE", {}, "which have BruteForceSampler, .*, TPESampler, AutoSampler, "),
        (RandomSampler(), {"b": 1, "a": 2}, "a, b cannot be given with an instance: pass the cl"),
        ("RandomSampler", {"pruner": "NoPruner"}, r"No pruner 'NoPruner' in optuna.pruners"),
        ("RandomSampler", {"seed": 1}, "seed cannot be given: the replay sets it"),
    ],
)
def test_what_cannot_be_a_method_is_refused(
    sampler: Any, options: dict[str, Any], match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        optimizer(sampler, **options)


def test_arguments_that_a_sampler_does_not_take_are_refused_at_once() -> None:
    with pytest.raises(TypeError, match=r"TPESampler does not take these arguments: .*n_start'"):
        optimizer("TPESampler", n_start=3)


@pytest.mark.parametrize("pruner", [3, optuna.pruners.MedianPruner().prune])
def test_what_is_no_pruner_is_refused(pruner: Any) -> None:
    with pytest.raises(TypeError, match="optimizer takes a pruner as pruner=, its class or its"):
        optimizer("RandomSampler", pruner=pruner)
    assert optimizer("RandomSampler", pruner=optuna.pruners.MedianPruner).name == "RandomSampler"


def test_searches_in_threads_leave_the_log_as_it_was() -> None:
    before = optuna.logging.get_verbosity()
    first, second = quiet(logging.ERROR), quiet(logging.WARNING)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)  # as two threads do that overlap
    assert optuna.logging.get_verbosity() == logging.WARNING
    second.__exit__(None, None, None)
    assert optuna.logging.get_verbosity() == before < logging.WARNING


def test_the_seed_of_an_instance_rules() -> None:
    sampler = RandomSampler(seed=4)
    frame = replay(sampler, mixed_table(), budget=5, seed=[0, 1], progress=False)
    rows = frame.groupby("seed")["row"].apply(list)
    assert rows[0] == rows[1]
    # Every search had a copy: the instance still is at its beginning.
    study = optuna.create_study(sampler=sampler)
    fresh = optuna.create_study(sampler=RandomSampler(seed=4))
    assert study.ask().suggest_float("x", 0, 1) == fresh.ask().suggest_float("x", 0, 1)


@pytest.mark.parametrize(
    "method",
    [
        optimizer("TPESampler", pruner=optuna.pruners.MedianPruner(), n_startup_trials=3),
        optimizer("GBQRSampler.thesis"),
        optimizer("AutoSampler"),
        optimizer(RandomSampler(seed=1)),
    ],
)
def test_methods_can_be_pickled(method: Any) -> None:
    other = pickle.loads(pickle.dumps(method))
    assert other.name == method.name
    problem = Problem(mixed_space(), 3)
    assert method.start(problem).ask().config == other.start(problem).ask().config


# --- what is told ---------------------------------------------------------------------------


def line(losses: Sequence[float], **arguments: Any) -> Table:
    n = len(losses)
    space = ConfigurationSpace({"n": (0, n - 1)})
    return Table("line", space, [{"n": i} for i in range(n)], losses, **arguments)


def test_durations_are_the_simulated_seconds() -> None:
    table = line(range(6), seconds=[1.0, 2.5, 10.0, 0.125, 7200.0, 3.0])
    study, frame = study_of(table, budget=12, n_workers=3)
    clock = 0.0
    for trial in study.trials:
        seconds = table.seconds[trial.params["n"]]  # type: ignore[index]
        assert trial.duration == timedelta(seconds=seconds)
        assert trial.user_attrs[SECONDS] == pytest.approx(seconds, abs=1e-9)
        assert trial.value == trial.params["n"]
        clock = max(clock, (trial.datetime_complete - datetime(2000, 1, 1)).total_seconds())
    assert clock == pytest.approx(frame["seconds"].max())
    begin = [t.datetime_start for t in study.trials]
    assert begin == sorted(begin)


def test_the_study_of_a_replay_reads_as_the_replay_itself() -> None:
    table = line([(i * 7) % 10 for i in range(10)], seconds=[1.0] * 10)
    study, frame = study_of(table, 8, n_workers=2, seed=3)
    (search,) = curves(study, table="line", method=frame["method"][0], seed=3)
    ours = search_frame([search])
    assert_frame_equal(ours, frame[list(ours.columns)])


# --- pruners --------------------------------------------------------------------------------


def curved(n: int = 30, steps: Sequence[float] = (1, 2, 4, 8)) -> Table:
    quality = np.random.default_rng(0).permutation(n).astype(float)
    curves = quality[:, None] + 10 / np.arange(1, len(steps) + 1)
    return line(quality.tolist(), seconds=8.0, curves=curves, steps=steps)


@pytest.mark.parametrize(
    "pruner",
    [
        optuna.pruners.MedianPruner(n_startup_trials=3),
        optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=2),
        "MedianPruner",
    ],
)
@pytest.mark.parametrize("n_workers", [1, 4])
def test_pruned_trials_end_at_the_second_of_their_step(pruner: Any, n_workers: int) -> None:
    table = curved()
    study, frame = study_of(table, 60, pruner, n_workers=n_workers)
    pruned = [t for t in study.trials if t.state == TrialState.PRUNED]
    assert 0 < len(pruned) < 60
    for trial in study.trials:
        last = trial.last_step
        assert trial.duration == timedelta(seconds=last)
        column = table.steps.index(last)
        assert table.curves is not None
        row = trial.params["n"]
        expected = dict(zip((1, 2, 4, 8), table.curves[row, : column + 1], strict=False))
        assert trial.intermediate_values == expected
    assert (frame["status"] == "pruned").sum() == len(pruned)
    assert frame["seconds"].max() < 60 * 8 / n_workers
    # The last report of a pruned evaluation is its loss, but never the best one.
    complete = frame["loss"].where(frame["status"] == "complete")
    np.testing.assert_array_equal(frame["best"], complete.cummin().ffill())


@pytest.mark.parametrize("steps", [(0.25, 0.5, 0.75), (0.5, 1.0, 1.5)])
def test_steps_that_are_no_whole_numbers_are_counted(steps: tuple[float, ...]) -> None:
    table = curved(steps=steps)
    study, _ = study_of(table, 5)
    assert table.curves is not None
    for trial in study.trials:
        reported = [v for _, v in sorted(trial.intermediate_values.items())]
        assert reported == table.curves[trial.params["n"]].tolist()


def test_the_brackets_of_hyperband_are_those_of_the_seed() -> None:
    """Optuna draws them by the name of the study."""
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=8, reduction_factor=2)
    frames = [study_of(curved(), 30, pruner, seed=seed)[1] for seed in (0, 0, 1)]
    assert_frame_equal(frames[0], frames[1])
    assert (frames[0]["status"] == "pruned").any() and not frames[0].equals(frames[2])


# --- the log --------------------------------------------------------------------------------


class Failing(RandomSampler):
    def sample_independent(self, *arguments: Any, **named: Any) -> Any:
        raise ValueError("nope")


@pytest.mark.parametrize("level", [logging.INFO, logging.DEBUG])
def test_the_level_of_the_log_is_as_it_was(level: int) -> None:
    logger = logging.getLogger("optuna")
    logger.setLevel(level)
    replay(RandomSampler, line([1.0, 2.0]), budget=3, progress=False)
    assert logger.level == level
    with pytest.raises(ValueError, match="nope"):
        replay(Failing, line([1.0, 2.0]), budget=3, progress=False)
    assert logger.level == level


def test_a_search_writes_no_log(log: pytest.LogCaptureFixture) -> None:
    replay(RandomSampler, line([1.0, NAN]), budget=5, progress=False)
    assert not [r for r in log.records if r.name.startswith("optuna")]
