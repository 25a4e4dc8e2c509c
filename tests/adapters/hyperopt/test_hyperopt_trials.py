"""Trials read as the history that proposers see, and why each was proposed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import (
    auto,
    bandit,
    boasf,
    boasf_fmin,
    explain,
    gbqr,
    initial_trials,
    member_trust,
    meta_dataset_from_trials,
    source_shares,
    translate,
    tst,
    weighted,
)
from automl_plugins.adapters.hyperopt._arms import arms_of
from automl_plugins.adapters.hyperopt._pulls import read_pulls
from automl_plugins.adapters.hyperopt.trials import TrialReader, begin, new_document, values_of
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
from hyperopt.base import JOB_STATE_CANCEL, trials_from_docs
from hyperopt.fmin import generate_trials_to_calculate
from hyperopt_runs import minimise

from automl_plugins.proposers.explanation import Explanation
from automl_plugins.records.history import History
from automl_plugins.records.trial import Status

START = datetime(2024, 1, 1)
X = {"x": hp.uniform("x", 0, 1)}


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


def read(trials: Trials, expr: Any) -> History:
    reader = TrialReader(translate(expr))
    history: History = reader.read(trials, trials._dynamic_trials)
    return history


def test_vectors_are_those_of_config_space_and_written_back() -> None:
    """The reference goes through values, Configuration objects and their vectors, one by one."""
    expr = everything()
    known = translate(expr)
    domain, trials = drawn(expr, 60)
    history = read(trials, expr)
    assert set(history.status) == {Status.RUNNING} and not history.missing.any()
    assert np.array_equal(history.number, np.arange(60))
    for row, document in zip(history.vectors, trials.trials, strict=True):
        original = values_of(document)
        values, inside = known.values(original), set(original)
        for name, value in values.items():  # the normals have no bounds in Hyperopt
            hyperparameter: Any = known.space[name]
            if hasattr(hyperparameter, "lower"):
                values[name] = min(max(value, hyperparameter.lower), hyperparameter.upper)
                inside -= {name} if values[name] != value else set()
        expected = Configuration(known.space, values=values).get_array()
        assert np.allclose(row, expected, equal_nan=True, atol=1e-12)
        written = known.labels(dict(Configuration(known.space, vector=row)))
        assert set(written) == set(original)
        for label in inside:
            # multiples of q are exactly those of Hyperopt
            exact = 0.0 if label in ("q", "fine") else 1e-9
            assert written[label] == pytest.approx(original[label], rel=exact, abs=exact), label
        for label, value in written.items():
            whole = domain.params[label].name in ("randint", "categorical")
            assert type(value) is (int if whole else float)


def finished(
    trials: Trials, tid: int, state: int, result: Mapping[str, Any], begin: float, end: float
) -> None:
    document = trials._dynamic_trials[tid]
    document["state"], document["result"] = state, dict(result)
    document["book_time"] = START + timedelta(seconds=begin)
    document["refresh_time"] = START + timedelta(seconds=end)


OK = {"status": STATUS_OK}


def test_trials_are_in_the_order_in_which_they_finished() -> None:
    _, trials = drawn(X, 6)
    finished(trials, 0, JOB_STATE_DONE, OK | {"loss": 1.0}, 0, 9)
    finished(trials, 1, JOB_STATE_DONE, OK | {"loss": 0.5}, 0, 3)
    finished(trials, 2, JOB_STATE_ERROR, {"status": "new"}, 0, 3)
    finished(trials, 3, JOB_STATE_CANCEL, {"status": "new"}, 1, 8)
    finished(trials, 5, JOB_STATE_DONE, OK | {"loss": 3.0}, 8, 10)
    trials._dynamic_trials[5]["book_time"] = trials._dynamic_trials[5]["refresh_time"] = None
    trials._dynamic_trials[4]["state"] = JOB_STATE_RUNNING
    history = read(trials, X)
    assert history.number.tolist() == [5, 1, 2, 0, 4]
    assert history.vectors[0, 0] == pytest.approx(trials.vals["x"][5])
    np.testing.assert_array_equal(history.seconds, [math.nan, 3.0, 3.0, 9.0, math.nan])


def test_results_are_read_again_and_trials_told_apart() -> None:
    reader = TrialReader(translate(X))
    (_, first), (_, second) = drawn(X, 2, seed=0), drawn(X, 2, seed=1)
    before = reader.read(first, first.trials)
    other = reader.read(second, second.trials)
    assert not np.array_equal(before.vectors, other.vectors)
    finished(first, 1, JOB_STATE_DONE, OK | {"loss": 4.0}, 0, 1)
    after = reader.read(first, first.trials)
    assert after.number.tolist() == [1, 0] and after.losses[0] == 4.0
    assert np.array_equal(after.vectors, before.vectors[::-1])
    first._dynamic_trials[1]["result"]["loss"] = 5.0
    assert reader.read(first, first.trials).losses[0] == 5.0


class Finishing(dict[str, Any]):
    """A document that a worker, such as a thread of ``SparkTrials``, finishes while it is read."""

    def __getitem__(self, key: str) -> Any:
        found = super().__getitem__(key)
        if key == "book_time":
            self.update(state=JOB_STATE_DONE, result=OK | {"loss": 0.5})
        return found


def test_a_trial_that_finishes_while_it_is_read_is_read_again() -> None:
    domain, trials = drawn({"c": hp.choice("c", [1, 2])}, 1)
    trials._dynamic_trials = [Finishing(trials._dynamic_trials[0])]
    reader, arms = TrialReader(translate(domain.expr)), arms_of(domain).arms
    reader.read(trials, trials._dynamic_trials)
    assert reader.read(trials, trials._dynamic_trials).losses.tolist() == [0.5]
    trials._dynamic_trials[0].update(state=JOB_STATE_RUNNING, result={"status": "new"})
    read_pulls(trials, arms)
    assert read_pulls(trials, arms).pulls.losses.tolist() == [0.5]


def test_no_trials() -> None:
    history = read(Trials(), everything())
    assert len(history) == 0 and history.vectors.shape == (0, 17)


BRANCHES = hp.choice("m", [{"a": hp.uniform("a", 0, 1)}, {"b": hp.quniform("b", 0, 10, 2)}])


@pytest.mark.parametrize(
    ("values", "expected", "missing"),
    [
        ({"m": 1, "b": 11.0}, {"m": 1, "b": 5}, []),  # but for rounding to the step
        ({"m": 1}, {"m": 1}, ["b"]),
        ({"m": 0, "a": -3.0, "b": 4.0}, {"m": 0, "a": -3}, []),  # stays; b is not active
        ({"m": 0, "a": 1.0 + 1e-12}, {"m": 0, "a": 1}, []),  # but for rounding
    ],
)
@pytest.mark.parametrize("lacks", [False, True])
def test_missing_inactive_and_illegal_values(
    values: dict[str, Any], expected: dict[str, float], missing: list[str], lacks: bool
) -> None:
    """Documents of ``points_to_evaluate`` lack the inactive labels."""
    reader, trials = TrialReader(translate(BRANCHES)), Trials()
    domain = Domain(None, BRANCHES, pass_expr_memo_ctrl=False)
    document = new_document(trials, domain, 0, values)
    for part in ("idxs", "vals") if lacks else ():
        kept = {label: drawn for label, drawn in document["misc"][part].items() if drawn}
        document["misc"][part] = kept
    history = reader.read(trials, [document])
    row = dict(zip(reader.vectors.names, history.vectors[0].tolist(), strict=True))
    assert {name: entry for name, entry in row.items() if not math.isnan(entry)} == expected
    absent = zip(reader.vectors.names, history.missing[0], strict=True)
    assert [name for name, is_missing in absent if is_missing] == missing


def test_a_normal_value_beyond_the_range_is_not_taken_for_its_end() -> None:
    expr = {"n": hp.normal("n", 0, 1), "l": hp.lognormal("l", 0, 1)}
    reader, trials = TrialReader(translate(expr)), Trials()
    domain = Domain(None, expr, pass_expr_memo_ctrl=False)
    values = ({"n": 5.5, "l": math.exp(5.5)}, {"n": -5.5, "l": 0.0})  # 0: rounded, as by q
    documents = [new_document(trials, domain, i, v) for i, v in enumerate(values)]
    history = reader.read(trials, documents)
    place = 0.5 + 0.5 * 5.5 / 3.7190165
    named = dict(zip(reader.vectors.names, history.vectors.T, strict=True))
    np.testing.assert_allclose(named["n"], [place, 1.0 - place], atol=1e-6)
    np.testing.assert_allclose(named["l"], [place, 0.0], atol=1e-6)


def test_integers_and_steps_of_a_wider_search_are_not_taken_for_the_ends() -> None:
    expr = {
        "n": hp.quniform("n", 15, 25, 1),
        "r": hp.randint("r", 10, 21),
        "l": hp.qloguniform("l", math.log(10), math.log(1000), 1),
        "s": hp.quniform("s", 15, 25, 2.5),
        "one": hp.randint("one", 7, 8),
    }
    reader, trials = TrialReader(translate(expr)), Trials()
    domain = Domain(None, expr, pass_expr_memo_ctrl=False)
    inside = {"n": 15, "r": 20, "l": 10, "s": 14.0, "one": 7}
    others: tuple[dict[str, float], ...] = (
        {},
        {"n": 10, "r": 30, "l": 10_000},
        {"s": 12.5},
        {"s": 27.5},
        {"one": 1},
    )
    values = [inside | other for other in others]
    documents = [new_document(trials, domain, i, v) for i, v in enumerate(values)]
    history = reader.read(trials, documents)
    rows = [dict(zip(reader.vectors.names, row, strict=True)) for row in history.vectors.tolist()]
    assert rows[0] == {"n": 0, "r": 1, "l": 0, "s": 0, "one": 0}
    # the others are left out
    assert rows[1:] == [pytest.approx({"n": -0.5, "r": 2, "l": 1.5, "s": 0, "one": 0})]


def test_trials_of_another_space_are_refused() -> None:
    _, other = drawn({"y": hp.uniform("y", 0, 1)}, 1)
    with pytest.raises(ValueError, match=r"has the labels y; the search space has x"):
        read(other, X)


KERNELS = hp.choice("k", ["rbf", "linear"])


@pytest.mark.parametrize("algo", [auto, gbqr])
@pytest.mark.parametrize("point", [{"k": "rbf"}, {"k": None}, {"k": 2}, {"k": 0, "x": "a"}])
def test_a_point_that_is_none_is_left_out_with_one_warning(
    algo: Any, point: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Hyperopt cannot evaluate it, but goes on where exceptions are caught."""
    expr = [KERNELS, hp.uniform("x", 0, 1)]
    trials = generate_trials_to_calculate([{"k": 0, "x": 0.5, **point}] * 2)
    algo = algo(n_startup=3, seed=1)
    found = minimise(lambda c: 1 + c[1], expr, algo, 7, trials=trials, catch_eval_exceptions=True)
    said = [r.message for r in caplog.records if r.name.startswith("automl_plugins")]
    assert len(said) == 1 and said[0].endswith("left out.")
    label = "x" if "x" in point else "k"
    assert re.match(
        f"A trial has (.* for '{label}', which must|option 2 of 'k', which has)", said[0]
    )
    # the others are proposed as if it had never been there
    assert [explain(d).origin for d in found.trials] == ["design"] * 3 + ["model"] * 4
    assert [explain(d).n_rows for d in found.trials[3:]] == [3, 4, 5, 6]


def test_a_choice_may_have_lost_an_option(caplog: pytest.LogCaptureFixture) -> None:
    def cost(c: Any) -> float:
        return float((c["x"] - 1) ** 2 + c["z"])

    space = {"x": hp.uniform("x", -5, 5), "z": hp.choice("z", [1, 2, 3])}
    trials = minimise(cost, space, rand.suggest, 12)
    lost = [d["tid"] for d in trials.trials if values_of(d)["z"] == 2]
    assert 0 < len(lost) < 12
    space["z"] = hp.choice("z", [1, 2])
    minimise(cost, space, auto(seed=0), 16, trials=trials)
    (said,) = [r.message for r in caplog.records if r.name.startswith("automl_plugins")]
    assert said.startswith(
        "A trial has option 2 of 'z', which has 2 options: an index may mean an"
    )
    history = TrialReader(translate(space)).read(trials, trials._dynamic_trials)
    assert sorted(history.number.tolist()) == [t for t in range(16) if t not in lost]
    assert explain(trials).n_rows == 15 - len(lost)


# --- explanations ----------------------------------------------------------------------------

SPACE = hp.choice(
    "m", [{"t": "a", "x": hp.uniform("x", 0, 1)}, {"t": "b", "y": hp.uniform("y", 0, 1)}]
)


def search(algo: Any, n: int) -> Trials:
    return minimise(lambda c: c.get("x", 0.5) / 2 + c.get("y", 0.0) / 4, SPACE, algo, n)


def test_a_proposal_of_the_model_is_predicted() -> None:
    trials = search(gbqr(n_startup=4), 9)
    last = explain(trials)
    assert last == explain(trials, 8)
    assert (last.number, last.origin, last.n_rows) == (8, "model", 8)
    assert last.bound is not None and last.arm is None
    assert str(last).startswith("Trial 8 was chosen by the surrogate model, fitted on 8 trials; ")
    assert explain(trials, 0).origin == "design"


def test_a_document_is_explained_too() -> None:
    trials = search(gbqr(n_startup=4), 9)
    best = trials.best_trial
    assert explain(best) == explain(trials, best["tid"])
    with pytest.raises(ValueError, match="is of trial 8: leave out tid=3"):
        explain(trials.trials[8], 3)
    for wrong in ({"x": 1.0}, [best], None):
        with pytest.raises(TypeError, match="or a document of theirs"):
            explain(wrong)


def test_shares_of_earlier_tasks() -> None:
    earlier = {"one": search(rand.suggest, 12), "two": search(rand.suggest, 6)}
    trials = search(tst(memory=earlier), 6)
    last = explain(trials)
    assert source_shares(trials)[5] == last.shares and set(source_shares(trials)) == set(range(6))
    assert source_shares(earlier["one"]) == {}
    assert last.shares is not None and set(last.shares) == {"one", "two"}
    assert list(last.shares.values()) == sorted(last.shares.values(), reverse=True)
    assert last.own_share == pytest.approx(1.0 - sum(last.shares.values()))
    assert "the most" in str(last)


def test_members_of_a_committee_and_how_much_they_were_trusted() -> None:
    trials = search(auto(n_startup=4), 9)
    last = explain(trials)
    assert last.trust is not None and last.member in last.trust
    assert f"proposed it, trusted with {last.trust[last.member]:.0%}" in str(last)
    told = member_trust(trials)
    assert told[8] == last.trust and 0 not in told and set(told) <= set(range(4, 9))


def test_an_arm_and_why_it_was_chosen() -> None:
    found = explain(search(boasf(max_evals=6, inner="random"), 6), 0)
    assert found.origin == "inner" and found.arm is not None
    assert str(found) == (
        f"Trial 0 was proposed by random, the sampler of its arm; arm: m={found.arm.arm} (round 1,"
        " share of BOASF)."
    )
    cell = explain(search(boasf(max_evals=6, split=2, inner="random"), 6), 0)
    assert cell.arm is not None and f"; arm: {cell.arm.arm} (round 1, share" in str(cell)
    drawn = explain(search(weighted, 3)).arm
    assert drawn is not None and drawn.reason == "drawn by its weight, with probability 0.5"
    chosen = explain(search(bandit(inner=gbqr(n_startup=2)), 14))
    assert chosen.origin == "model" and chosen.arm is not None
    assert (chosen.arm.sampler, chosen.arm.parameter) == ("gbqr", "m")
    assert chosen.arm.reason == "chosen by MaxUCB" and chosen.arm.score is not None


def test_what_was_given_and_what_comes_from_elsewhere() -> None:
    trials = search(rand.suggest, 3)
    assert explain(trials).origin == "foreign"
    boasf_fmin(
        lambda c: 0.5,
        SPACE,
        max_evals=4,
        points_to_evaluate=[{"m": 0, "x": 0.5}],
        trials=trials,
        inner="random",
        rstate=np.random.default_rng(0),
        verbose=False,
    )
    assert explain(trials).origin == "enqueued"
    memory = meta_dataset_from_trials({"one": search(rand.suggest, 9)}, SPACE)
    start = initial_trials(SPACE, memory=memory, n_configs=2, mode="add")
    origins = [explain(start, document["tid"]).origin for document in start._dynamic_trials]
    assert origins[:2] == ["suggested"] * 2 and set(origins[2:]) <= {"random"}


@pytest.mark.parametrize(
    ("note", "origin"),
    [
        (None, "foreign"),
        (3, "foreign"),
        ({"proposal": 3, "why": []}, "foreign"),
        ({"proposal": {"loss": "a"}}, "foreign"),
        ({"proposal": {"origin": "model", "shares": 1}}, "model"),
    ],
)
def test_damaged_notes_are_left_out(note: Any, origin: str) -> None:
    trials = search(gbqr(n_startup=2), 4)
    trials.trials[-1]["misc"]["automl_plugins"] = note
    assert explain(trials) == Explanation(3, origin)


def test_a_trial_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="no trial 7; there are 2 trials"):
        explain(search(rand.suggest, 2), 7)
    with pytest.raises(ValueError, match="There are no trials yet"):
        explain(Trials())


def test_numbers_that_hyperopt_gives_twice_are_told_apart() -> None:
    """It counts trials for the next number, and leaves out those that raised."""
    domain, old = Domain(lambda c: 0.0, X), Trials()
    documents = [new_document(old, domain, tid, {"x": 0.1 * (tid + 1)}) for tid in range(3)]
    for document in documents:
        document["state"] = JOB_STATE_ERROR if document["tid"] == 1 else JOB_STATE_DONE
        document["result"] = {"status": STATUS_OK, "loss": 0.5}
    trials = trials_from_docs(documents)
    (again,) = trials.new_trial_ids(1)
    assert again == 2
    trials.insert_trial_docs(gbqr(seed=1)([again], domain, trials, 0))
    trials.refresh()
    reader = TrialReader(translate(X))
    history = reader.read(trials, trials._dynamic_trials)
    assert sorted(history.number.tolist()) == [-3 - 2**32, 0, 1, 2]
    assert len(set(history.vectors[:, 0].tolist())) == 4
    (document,) = gbqr(seed=1)([3], domain, trials, 0)
    assert 0.0 <= values_of(document)["x"] <= 1.0


def test_of_two_trials_of_one_number_the_new_one_begins() -> None:
    """As when trials of two searches were put together."""
    trials = minimise(lambda values: values["x"], X, rand.suggest, 1)
    (old,) = trials.trials
    (new,) = rand.suggest([old["tid"]], Domain(lambda values: 0.0, X), trials, 1)
    begin(trials, new)
    assert [d["state"] for d in trials.trials] == [JOB_STATE_DONE, JOB_STATE_RUNNING]
