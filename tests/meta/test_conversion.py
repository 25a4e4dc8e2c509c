"""Histories of one framework as those of another, there and back."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters import hyperopt as in_hyperopt
from automl_plugins.adapters import optuna as in_optuna
from automl_plugins.adapters import smac as in_smac
from automl_plugins.adapters.optuna.space import space_of_trials
from ConfigSpace import (
    AndConjunction,
    Categorical,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    Float,
    ForbiddenEqualsClause,
    InCondition,
    Integer,
    OrdinalHyperparameter,
)
from hyperopt import Trials, fmin, hp, rand, space_eval
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from automl_plugins.frameworks import reader_of
from automl_plugins.meta import TaskRecord
from automl_plugins.meta.conversion import conform, convert, dataset_of
from automl_plugins.records.trial import Status
from automl_plugins.spaces.values import to_values
from automl_plugins.spaces.vector_space import VectorSpace

UNIT = ConfigurationSpace({"x": (0.0, 1.0)}, seed=0)
FRAMEWORKS = {"optuna": in_optuna, "smac": in_smac, "hyperopt": in_hyperopt}

optuna.logging.set_verbosity(optuna.logging.WARNING)


# --- random histories ------------------------------------------------------------------------


def random_space(rng: np.random.Generator) -> ConfigurationSpace:
    """Every kind of hyperparameter; two levels of conditions."""
    space = ConfigurationSpace(seed=int(rng.integers(10**6)))
    kinds: list[Any] = [
        lambda name: Float(name, (-1.5, 3.0)),
        lambda name: Float(name, (1e-4, 10.0), log=True),
        lambda name: Integer(name, (2, 9)),
        lambda name: Integer(name, (1, 1000), log=True),
        lambda name: Categorical(name, ["x", "y", "z"]),
        lambda name: Categorical(name, [True, False]),
        lambda name: Categorical(name, [None, 3, 0.5], weights=[1, 2, 3]),
        lambda name: OrdinalHyperparameter(name, ["low", "mid", "high"]),
        lambda name: OrdinalHyperparameter(name, [0.1, 0.2, 0.30000000000000004]),
        lambda name: OrdinalHyperparameter(name, [2, 4, 6]),
        lambda name: Constant(name, "fixed"),
        lambda name: Constant(name, 7),
    ]
    root, inner = Categorical("root", ["a", "b", "c"]), Categorical("inner", ["d", "e"])
    space.add([root, inner])
    space.add(EqualsCondition(inner, root, "a"))
    for i in range(int(rng.integers(2, 7))):
        child = kinds[rng.integers(len(kinds))](f"h{i}")
        space.add(child)
        where = rng.integers(5)
        if where == 0:
            space.add(InCondition(child, root, ["b", "c"]))
        elif where == 1:
            space.add(EqualsCondition(child, inner, "e"))
        elif where == 2:  # two parents: Hyperopt draws it every time
            both = EqualsCondition(child, root, "a"), EqualsCondition(child, inner, "d")
            space.add(AndConjunction(*both))
    return space


def random_record(rng: np.random.Generator, n: int = 12) -> TaskRecord:
    space = random_space(rng)
    vectors = VectorSpace(space).sample(n, rng)
    status = rng.choice([Status.COMPLETE, Status.PRUNED, Status.FAILED], n, p=[0.6, 0.2, 0.2])
    status[0] = Status.COMPLETE
    seconds = np.where(rng.random(n) < 0.2, np.nan, rng.exponential(10.0, n))
    return TaskRecord(
        "the task",
        to_values(space, vectors),
        np.where(status == Status.FAILED, np.nan, rng.normal(0, 3, n)),
        seconds=seconds,
        status=status,
        budget=np.where(status == Status.PRUNED, rng.integers(1, 9, n), np.nan),
        times=1.7e9 + np.cumsum(rng.random(n)) if rng.random() < 0.5 else np.empty(0),
        space=space,
    )


def read(history: Any, to: str, space: ConfigurationSpace | None) -> TaskRecord:
    record: TaskRecord = FRAMEWORKS[to].ADAPTER.read_task(history, name="the task", space=space)
    return record


def assert_same_runs(one: TaskRecord, other: TaskRecord) -> None:
    assert len(one) == len(other)
    for mine, its in zip(one.configurations, other.configurations, strict=True):
        assert mine.keys() == its.keys()
        for name, value in mine.items():
            if isinstance(value, float):
                assert its[name] == pytest.approx(value, rel=1e-9, abs=1e-11)
            else:
                assert its[name] == value and type(its[name]) is type(value), name
    np.testing.assert_array_equal(one.losses, other.losses)
    np.testing.assert_array_equal(one.status, other.status)
    np.testing.assert_array_equal(one.seconds, other.seconds)
    np.testing.assert_array_equal(one.budget, other.budget)
    np.testing.assert_allclose(one.times, other.times, rtol=0, atol=1e-5)


# --- there and back --------------------------------------------------------------------------


@pytest.mark.parametrize("to", FRAMEWORKS)
@settings(max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_there_and_back(to: str, seed: int) -> None:
    record = random_record(np.random.default_rng(seed))
    assert_same_runs(record, read(convert(record, to), to, record.space))


PYLL = hp.choice(
    "model",
    [
        {"type": "svm", "C": hp.loguniform("C", -5, 5), "k": hp.choice("k", ["rbf", "poly"])},
        {"type": "forest", "n": hp.quniform("n", 1, 50, 1), "d": hp.choice("d", [None, 5])},
        {"type": "bayes"},
    ],
)


@pytest.mark.parametrize("to", ["optuna", "smac"])
def test_indices_of_options_become_values_and_indices_again(to: str) -> None:
    trials, loss = Trials(), lambda point: float(len(repr(point)))
    rstate = np.random.default_rng(0)
    fmin(loss, PYLL, rand.suggest, 30, trials=trials, rstate=rstate, show_progressbar=False)
    there = convert(trials, to, space=PYLL)
    found = read(there, to, None).configurations
    for values, document in zip(found, trials.trials, strict=True):
        drawn = {k: v[0] for k, v in document["misc"]["vals"].items() if v}
        point = space_eval(PYLL, drawn)
        point["model"] = point.pop("type")
        assert values.keys() == point.keys()
        for name, value in point.items():
            number = isinstance(value, float)
            assert values[name] == (pytest.approx(value) if number else value)
    back = convert(there, "hyperopt", space=PYLL, name="t")
    for document, other in zip(trials.trials, back.trials, strict=True):
        vals = document["misc"]["vals"]
        assert other["misc"]["vals"].keys() == vals.keys()  # every label, active or not
        for label, value in vals.items():
            assert other["misc"]["vals"][label] == pytest.approx(value)
            assert other["misc"]["idxs"][label] == document["misc"]["idxs"][label]
        assert other["result"]["loss"] == document["result"]["loss"]
        # Within one of Hyperopt's milliseconds: a duration of zero, which is unknown.
        assert other["result"].get("seconds", 0.0) == pytest.approx(
            (document["refresh_time"] - document["book_time"]).total_seconds()
        )


@pytest.mark.parametrize("to", FRAMEWORKS)
@pytest.mark.parametrize(
    ("seconds", "end"), [(1.0, 1e20), (1.0, -1e20), (1e17, math.nan), (1e17, 1.7e9), (1.0, 1e12)]
)
def test_times_that_no_date_can_have(to: str, seconds: float, end: float) -> None:
    record = TaskRecord(
        "t",
        [{"x": 0.25}, {"x": 0.5}, {"x": 0.75}],
        np.array([1.0, 2.0, 3.0]),
        seconds=np.array([1.0, seconds, 1.0]),
        times=np.array([1.7e9, end, 1.7e9 + 5]),
    )
    if to == "smac":
        assert len(convert(record, to, space=UNIT)) == 3
        return
    with pytest.warns(
        UserWarning, match="1 run of 't' took or ended at a time that no date"
    ) as warned:
        again = read(convert(record, to, space=UNIT), to, UNIT)
    assert warned[0].filename == __file__
    np.testing.assert_array_equal(again.losses, record.losses)
    np.testing.assert_array_equal(again.seconds, record.seconds)
    np.testing.assert_allclose(again.times, [1.7e9, 1.7e9, 1.7e9 + 5])


def test_a_maximised_study_changes_sign() -> None:
    study = optuna.create_study(direction="maximize")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=5)
    losses = convert(study, "hyperopt", space=UNIT).losses()
    assert losses == [-(t.value or 0.0) for t in study.trials]
    mirrored = optuna.create_study(direction="maximize")
    in_optuna.ADAPTER.write_history(in_optuna.ADAPTER.read_task(study), study=mirrored)
    assert [t.value for t in mirrored.trials] == [t.value for t in study.trials]


def test_folders_and_addresses_are_histories(tmp_path: Path) -> None:
    rows = [dict(config) for config in UNIT.sample_configuration(5)]
    UNIT.to_json(tmp_path / "configspace.json")
    record = TaskRecord("t", rows, np.array([1.0, 2.0, 3.0, np.nan, 5.0]), space=UNIT)
    convert(record, "smac").save(tmp_path / "runhistory.json")
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    stored = optuna.create_study(storage=url, study_name="one")
    for source in (tmp_path, str(tmp_path)):
        study = convert(source, "optuna", name="t")
        assert len(study.trials) == 5 and study.study_name == "t"
    stored.add_trials(study.trials)
    assert convert(url, "hyperopt", space=UNIT).losses()[0] == study.trials[0].value
    assert convert(tmp_path, "optuna").study_name == "converted"
    with pytest.raises(ValueError, match="name= elsewhere"):
        FRAMEWORKS["smac"].ADAPTER.read_task(tmp_path)  # a memory tells tasks by their names


# --- what does not fit -----------------------------------------------------------------------


def test_what_a_framework_has_no_word_for_is_ranked_last_and_found_again() -> None:
    record = TaskRecord(
        "t",
        [{"x": v} for v in (0.1, 0.2, 0.3, 0.4)],
        np.array([1.0, 0.5, np.nan, 2.0]),
        status=np.array([Status.COMPLETE, Status.PRUNED, Status.FAILED, Status.COMPLETE]),
        budget=np.array([np.nan, 3.0, np.nan, np.nan]),
        space=UNIT,
    )
    values = list(convert(record, "smac").values())
    assert [v.status.name for v in values] == ["SUCCESS", "TIMEOUT", "CRASHED", "SUCCESS"]
    assert [v.cost for v in values] == [1.0, 2.0, 2.0, 2.0]
    trials = convert(record, "hyperopt")
    assert [r["status"] for r in trials.results] == ["ok", "fail", "fail", "ok"]
    assert trials.losses() == [1.0, None, None, 2.0]
    (_, pruned, failed, _) = convert(record, "optuna").trials
    assert pruned.state == optuna.trial.TrialState.PRUNED
    assert (pruned.value, pruned.intermediate_values) == (0.5, {3: 0.5})
    assert failed.state == optuna.trial.TrialState.FAIL and failed.value is None


def test_repeated_configurations_and_lower_budgets() -> None:
    rows, budget = [{"x": 0.1}] * 3, np.array([4.5, np.nan, np.nan])
    record = TaskRecord("t", rows, np.array([1.0, 2.0, 3.0]), budget=budget, space=UNIT)
    back = {to: read(convert(record, to), to, UNIT) for to in FRAMEWORKS}
    assert back["optuna"].status.tolist() == [Status.PRUNED, Status.COMPLETE, Status.COMPLETE]
    assert back["optuna"].budget[0] == 4  # steps are whole
    for to in ("smac", "hyperopt"):
        assert_same_runs(record, back[to])
    assert {key.config_id for key in convert(record, "smac")} == {1}


def test_a_history_without_runs_is_one_elsewhere() -> None:
    space = ConfigurationSpace({"rf__max_features": (0.1, 1.0)})
    empty = TaskRecord("t", [], np.empty(0), space=space)
    assert convert(empty, "optuna").trials == []


def test_runs_of_another_space_are_fitted_and_it_is_said() -> None:
    space = ConfigurationSpace({"x": (0.0, 1.0), "m": ["a", "b"]})
    record = TaskRecord(
        "t",
        [{"x": 0.5, "m": "a"}, {"x": 7.0, "m": "b", "w": 1}, {"x": 0.2}, {"x": 0.1, "m": "c"}, {}],
        np.array([1.0, 2.0, 3.0, 4.0, np.nan]),
    )
    expected = r"4 runs of 't' .* 2 of 3 runs, dropped for m in 1, clipped x in 1, imputed m in 1"
    with pytest.warns(UserWarning, match=expected) as warned:
        fitted = conform(record, space)
    assert warned[0].filename == __file__
    assert fitted.configurations == [
        {"x": 0.5, "m": "a"},
        {"x": 1.0, "m": "b"},
        {"x": 0.2, "m": "a"},
    ]
    assert fitted.losses.tolist() == [1.0, 2.0, 3.0]
    with pytest.warns(UserWarning, match="3 runs"):
        partly = conform(record, space, partial=True)  # the failed run stays as it is
    assert partly.configurations[3] == {} and partly.status[3] == Status.FAILED


def test_forbidden_runs_are_left_out() -> None:
    space = ConfigurationSpace({"x": (0.0, 1.0), "m": ["a", "b"]})
    space.add(ForbiddenEqualsClause(space["m"], "b"))
    record = TaskRecord("t", [{"x": 0.5, "m": "a"}, {"x": 0.5, "m": "b"}], np.array([1.0, 2.0]))
    with pytest.warns(UserWarning, match="0 of 1 runs"):
        assert conform(record, space).configurations == [{"x": 0.5, "m": "a"}]


def test_runs_none_of_which_is_complete_may_be_forbidden() -> None:
    space = ConfigurationSpace({"x": (0.0, 1.0), "m": ["a", "b"]}, seed=0)
    space.add(ForbiddenEqualsClause(space["m"], "b"))
    with pytest.warns(UserWarning, match="'t'"):
        fitted = conform(TaskRecord("t", [{"x": 0.5}], np.array([1.0])), space)
    assert fitted.configurations == [{"x": 0.5, "m": "a"}]


def test_distributions_by_name_are_a_space_for_optuna() -> None:
    record = TaskRecord(
        "t", [{"x": 0.5, "b": 1, "z": 3}, {"x": 2.0, "b": True}], np.array([1.0, 2.0])
    )
    distributions = {"x": FloatDistribution(0, 1), "b": CategoricalDistribution([True, 1])}
    with pytest.warns(UserWarning, match="1 run of 't' left out") as warned:
        study = convert(record, "optuna", space=distributions)
    assert warned[0].filename == __file__
    (trial,) = study.trials
    assert trial.distributions == distributions and trial.params == {"x": 0.5, "b": 1}


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("to", ["optuna", "smac", "hyperopt"])
def test_integers_of_a_wide_range_stay_as_they_are(to: str, log: bool) -> None:
    known = [1, 5, 123456789]
    wide = IntDistribution(1, 2**60, log=log)
    study = optuna.create_study(study_name="wide")
    for n in known:
        study.add_trial(
            optuna.trial.create_trial(value=0.1, params={"n": n}, distributions={"n": wide})
        )
    there = convert(study, to)
    back = reader_of(there).read_task(there, name="t", space=space_of_trials(study.trials))
    assert [dict(run) for run in back.configurations] == [{"n": n} for n in known]
    dataset = in_optuna.meta_dataset_from_studies({"t": study})
    assert [dict(run) for run in dataset.records()[0].configurations] == [{"n": n} for n in known]
    assert not dataset.coverage[0].clipped


def test_grids_come_back_as_the_distributions_they_were() -> None:
    distributions = {
        "a": FloatDistribution(0.0, 0.3, step=0.1),
        "b": IntDistribution(2, 12, step=5),
        "c": FloatDistribution(0.1, 0.9, step=0.2),
    }
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for _ in range(20):
        study.tell(study.ask(distributions), 1.0)
    again = convert(study, "optuna")
    assert again.trials[0].distributions == distributions
    for one, other in zip(study.trials, again.trials, strict=True):
        assert one.params == pytest.approx(other.params)


# --- bad input -------------------------------------------------------------------------------

RECORD = TaskRecord("t", [{"x": 0.5}], np.array([1.0]))
OF_OPTUNA = {"x": FloatDistribution(0, 1)}


@pytest.mark.parametrize(
    ("history", "to", "options", "error", "told"),
    [
        *(
            (RECORD, to, {}, ValueError, "space of 't' is not known: pass space=")
            for to in FRAMEWORKS
        ),
        (RECORD, "ray", {}, ValueError, "no adapter 'ray'; there are hyperopt, optuna, smac"),
        ({}, "optuna", {}, TypeError, "Cannot read a dict as a history"),
        ("nowhere", "optuna", {}, ValueError, "There is no file 'nowhere'"),
        (optuna.create_study(), "smac", {"space": {"x": 1}}, TypeError, "of either framework"),
        (Trials(), "optuna", {"space": {"x": 1}}, TypeError, "of either framework"),
        (Trials(), "optuna", {"name": "t"}, ValueError, "Trials store only the index"),
        (Trials(), "optuna", {"space": OF_OPTUNA}, ValueError, "space that fmin was given"),
    ],
)
def test_bad_input_is_explained(
    history: Any, to: str, options: dict[str, Any], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        convert(history, to, **options)


def test_names_that_mean_nothing_together_are_refused() -> None:
    with pytest.raises(ValueError, match=r"share no hyperparameter: the runs have x; .* has y"):
        conform(RECORD, ConfigurationSpace({"y": (0.0, 1.0)}))
    with pytest.raises(ValueError, match=r"None of the 2 runs of 't' lies in the .*low=20"):
        far = TaskRecord("t", [{"x": 1}, {"x": 9}], losses=np.array([1.0, 2.0]))
        convert(far, "optuna", space={"x": IntDistribution(20, 30)})
    with pytest.raises(ValueError, match="share no parameter"):
        convert(RECORD, "optuna", space={"y": FloatDistribution(0, 1)})


def test_records_with_their_meta_features_are_a_data_set() -> None:
    records = [replace(RECORD, name=name, space=UNIT) for name in "ab"]
    data = dataset_of(records, None, meta_features={"a": {"n": 3.0}}, tags={"b": {"k": "v"}})
    assert data.tasks[0].meta_features == {"n": 3.0} and data.tasks[1].tags == {"k": "v"}
    with pytest.raises(ValueError, match="meta_features names 'c'; the tasks are 'a', 'b'"):
        dataset_of(records, None, meta_features={"c": {"n": 3.0}})
