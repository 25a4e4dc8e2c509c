"""Trials read as the history that proposers see."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import translate
from automl_plugins.adapters.hyperopt.trials import TrialReader, new_document, values_of
from ConfigSpace import Configuration
from hyperopt import (
    JOB_STATE_DONE,
    JOB_STATE_ERROR,
    JOB_STATE_RUNNING,
    STATUS_OK,
    Domain,
    Trials,
    hp,
    rand,
)
from hyperopt.base import JOB_STATE_CANCEL

from automl_plugins.records.history import History
from automl_plugins.records.trial import Status

START = datetime(2024, 1, 1)


def everything() -> Any:
    """All distributions, nested choices, a shared label."""
    shared = hp.loguniform("shared", -5, 5)
    inner = hp.pchoice("inner", [(0.3, None), (0.7, {"g": hp.lognormal("g", 0, 1)})])
    return {
        "model": hp.choice(
            "model",
            [
                {"inner": inner, "C": shared},
                {"depth": hp.randint("depth", 2, 9), "C": shared},
                {"k": hp.uniformint("k", 1, 30), "w": hp.choice("w", [[1, 2], math.nan, "text"])},
            ],
        ),
        "u": hp.uniform("u", -1, 3),
        "q": hp.quniform("q", 0, 1, 0.1),
        "fine": hp.quniform("fine", 0, 1, 0.0003),
        "ql": hp.qloguniform("ql", 0, 4, 2),
        "n": hp.normal("n", 2, 3),
        "qn": hp.qnormal("qn", 0, 10, 2),
        "qn1": hp.qnormal("qn1", 0, 10, 1),
        "qln": hp.qlognormal("qln", 0, 2, 1),
        "r": hp.randint("r", 4),
        "one": hp.choice("one", ["only"]),
    }


def drawn(expr: Any, n: int, seed: int = 0) -> tuple[Domain, Trials]:
    domain, trials = Domain(None, expr, pass_expr_memo_ctrl=False), Trials()
    trials.insert_trial_docs(rand.suggest(trials.new_trial_ids(n), domain, trials, seed))
    trials.refresh()
    return domain, trials


def read(trials: Trials, expr: Any, *, timed: bool = True) -> History:
    reader = TrialReader(translate(expr))
    history: History = reader.read(trials, trials._dynamic_trials, timed=timed)
    return history


def test_vectors_are_those_of_config_space() -> None:
    """The reference goes through values, Configuration objects and their vectors, one by one."""
    expr = everything()
    known = translate(expr)
    _, trials = drawn(expr, 60)
    history = read(trials, expr)
    assert set(history.status) == {Status.RUNNING} and not history.missing.any()
    assert np.array_equal(history.number, np.arange(60))
    for row, document in zip(history.vectors, trials.trials, strict=True):
        values = known.values(values_of(document))
        for name, value in values.items():  # the normals have no bounds in Hyperopt
            hyperparameter = known.space[name]
            if hasattr(hyperparameter, "lower"):
                values[name] = min(max(value, hyperparameter.lower), hyperparameter.upper)
        expected = Configuration(known.space, values=values).get_array()
        assert np.allclose(row, expected, equal_nan=True, atol=1e-12)


def test_what_was_read_is_written_back() -> None:
    expr = everything()
    known = translate(expr)
    domain, trials = drawn(expr, 60)
    beyond = {"g": (0, 41), "n": (-9, 13), "qn": (-38, 38), "qn1": (-37, 37), "qln": (0, 1700)}
    for row, document in zip(read(trials, expr).vectors, trials.trials, strict=True):
        written = known.labels(dict(Configuration(known.space, vector=row)))
        original = values_of(document)
        assert set(written) == set(original)
        for label, value in original.items():
            low, high = beyond.get(label, (-math.inf, math.inf))
            if not low <= value <= high:
                continue
            assert written[label] == pytest.approx(value, rel=1e-9, abs=1e-9), label
            whole = domain.params[label].name in ("randint", "categorical")
            assert type(written[label]) is (int if whole else float)


def test_multiples_of_q_are_exactly_those_of_hyperopt() -> None:
    expr = {"a": hp.quniform("a", 0, 1, 0.1), "b": hp.quniform("b", 0, 1, 0.0003)}
    known = translate(expr)
    _, trials = drawn(expr, 50)
    for row, document in zip(read(trials, expr).vectors, trials.trials, strict=True):
        written = known.labels(dict(Configuration(known.space, vector=row)))
        assert written == {k: float(v) for k, v in values_of(document).items()}


def finished(
    trials: Trials, tid: int, state: int, result: Mapping[str, Any], begin: float, end: float
) -> None:
    document = trials._dynamic_trials[tid]
    document["state"], document["result"] = state, dict(result)
    document["book_time"] = START + timedelta(seconds=begin)
    document["refresh_time"] = START + timedelta(seconds=end)


def test_trials_are_in_the_order_in_which_they_finished() -> None:
    expr = {"x": hp.uniform("x", 0, 1)}
    _, trials = drawn(expr, 6)
    ok = {"status": STATUS_OK}
    finished(trials, 0, JOB_STATE_DONE, ok | {"loss": 1.0}, 0, 9)
    finished(trials, 1, JOB_STATE_DONE, ok | {"loss": 0.5}, 0, 3)
    finished(trials, 2, JOB_STATE_ERROR, {"status": "new"}, 0, 3)
    finished(trials, 3, JOB_STATE_CANCEL, {"status": "new"}, 1, 8)
    finished(trials, 5, JOB_STATE_DONE, ok | {"loss": 3.0}, 8, 10)
    trials._dynamic_trials[5]["book_time"] = trials._dynamic_trials[5]["refresh_time"] = None
    trials._dynamic_trials[4]["state"] = JOB_STATE_RUNNING
    history = read(trials, expr)
    assert history.number.tolist() == [5, 1, 2, 0, 4]
    assert history.vectors[0, 0] == pytest.approx(trials.vals["x"][5])
    np.testing.assert_array_equal(history.seconds, [math.nan, 3.0, 3.0, 9.0, math.nan])
    assert np.isnan(read(trials, expr, timed=False).seconds).all()


def test_results_are_read_again_and_trials_told_apart() -> None:
    expr = {"x": hp.uniform("x", 0, 1)}
    reader = TrialReader(translate(expr))
    _, first = drawn(expr, 2, seed=0)
    _, second = drawn(expr, 2, seed=1)
    before = reader.read(first, first.trials, timed=False)
    other = reader.read(second, second.trials, timed=False)
    assert not np.array_equal(before.vectors, other.vectors)
    finished(first, 1, JOB_STATE_DONE, {"status": STATUS_OK, "loss": 4.0}, 0, 1)
    after = reader.read(first, first.trials, timed=False)
    assert after.number.tolist() == [1, 0] and after.losses[0] == 4.0
    assert np.array_equal(after.vectors, before.vectors[::-1])
    first._dynamic_trials[1]["result"]["loss"] = 5.0
    assert reader.read(first, first.trials, timed=False).losses[0] == 5.0


def test_no_trials() -> None:
    history = read(Trials(), everything())
    assert len(history) == 0 and history.vectors.shape == (0, 17)


def document_of(expr: Any, values: Mapping[str, Any]) -> tuple[Trials, dict[str, Any]]:
    trials, domain = Trials(), Domain(None, expr, pass_expr_memo_ctrl=False)
    return trials, new_document(trials, domain, 0, values)


def test_missing_inactive_foreign_and_clipped_values() -> None:
    expr = hp.choice("m", [{"a": hp.uniform("a", 0, 1)}, {"b": hp.quniform("b", 0, 10, 2)}])
    reader = TrialReader(translate(expr))
    column = {name: i for i, name in enumerate(reader.vectors.names)}

    def row(values: Mapping[str, Any]) -> tuple[dict[str, float], list[str]]:
        trials, document = document_of(expr, values)
        history = reader.read(trials, [document], timed=False)
        return (
            {name: history.vectors[0, column[name]] for name in column},
            [name for name in column if history.missing[0, column[name]]],
        )

    vector, missing = row({"m": 1, "b": 99.0})
    assert vector["m"] == 1 and vector["b"] == 5 and math.isnan(vector["a"]) and not missing
    vector, missing = row({"m": 1})
    assert math.isnan(vector["b"]) and missing == ["b"]
    vector, missing = row({"m": 0, "a": -3.0, "b": 4.0})  # b is not active
    assert vector["a"] == 0.0 and math.isnan(vector["b"]) and not missing


def test_documents_of_points_to_evaluate_lack_inactive_labels() -> None:
    expr = hp.choice("m", [{"a": hp.uniform("a", 0, 1)}, {"b": hp.uniform("b", 0, 10)}])
    trials, document = document_of(expr, {"m": 0, "a": 0.25})
    for part in ("idxs", "vals"):
        del document["misc"][part]["b"]
    history = TrialReader(translate(expr)).read(trials, [document], timed=False)
    assert sorted(history.vectors[0][~np.isnan(history.vectors[0])]) == [0.0, 0.25]


def test_trials_of_another_space_are_refused() -> None:
    reader = TrialReader(translate({"x": hp.uniform("x", 0, 1)}))
    _, other = drawn({"y": hp.uniform("y", 0, 1)}, 1)
    with pytest.raises(ValueError, match=r"has the labels y; the search space has x"):
        reader.read(other, other.trials, timed=False)
    fewer = TrialReader(translate({"c": hp.choice("c", [1, 2])}))
    trials, document = document_of({"c": hp.choice("c", [1, 2, 3])}, {"c": 2})
    with pytest.raises(ValueError, match=r"option 2 of 'c', which has 2"):
        fewer.read(trials, [document], timed=False)


def test_zero_of_a_long_logarithmic_grid_is_an_octave() -> None:
    """A lognormal with q = 1 has 0, 1, 2, ... 1700: too many for an ordinal, most below 10."""
    expr = {"j": hp.qlognormal("j", 0, 2, 1)}
    known = translate(expr)
    assert known.space["j"].log and known.space["j"].lower == 0.25
    _, trials = drawn(expr, 60)
    vectors = read(trials, expr).vectors
    for vector, document in zip(vectors, trials.trials, strict=True):
        written = known.labels(dict(Configuration(known.space, vector=vector)))
        assert written == {"j": float(document["misc"]["vals"]["j"][0])}
    values = known.space["j"].sample_value(2000, seed=np.random.RandomState(0))
    zeros = np.mean([known.labels({"j": value})["j"] == 0.0 for value in values])
    assert zeros == pytest.approx(math.log(2) / math.log(1700 / 0.25), abs=0.02)
