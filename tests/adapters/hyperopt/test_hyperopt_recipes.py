"""``gbqr`` and ``ei_per_second`` as ``algo=`` of ``fmin``."""

from __future__ import annotations

import importlib
import inspect
import json
import logging
import math
import pickle
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import (
    bandit,
    blended,
    ei_per_second,
    gbqr,
    optimizer,
    pmf,
    surrogate,
    tst,
)
from automl_plugins.adapters.hyperopt.proposing import ProposerAlgorithm
from automl_plugins.adapters.hyperopt.trials import values_of
from hyperopt import (
    JOB_STATE_DONE,
    JOB_STATE_ERROR,
    JOB_STATE_NEW,
    JOB_STATE_RUNNING,
    STATUS_FAIL,
    STATUS_OK,
    Domain,
    Trials,
    anneal,
    fmin,
    hp,
    rand,
    space_eval,
    tpe,
)
from hyperopt.base import SONify
from hyperopt.exceptions import AllTrialsFailed
from hyperopt.fmin import FMinIter
from hyperopt.utils import coarse_utcnow
from hyperopt_runs import explanation

from automl_plugins import recipes
from automl_plugins.proposers.proposal import Proposal, Proposer, SurrogateFailure
from automl_plugins.recipes.without_memory import Options
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.surrogates import RandomForest

ALL = {
    "gbqr": gbqr,
    "ei_per_second": ei_per_second,
    "surrogate": surrogate,
    "tst": tst,
    "pmf": pmf,
    "blended": blended,
}
#: Small models: what they propose is the same to most tests.
quick = partial(gbqr, n_models=1, n_candidates=60)


def space() -> Any:
    return {
        "model": hp.choice(
            "model",
            [
                {"type": "svm", "C": hp.loguniform("C", -5, 5)},
                {"type": "rf", "depth": hp.randint("depth", 2, 9), "f": hp.normal("f", 0, 1)},
                {"type": "nb"},
            ],
        ),
        "q": hp.quniform("q", 0, 1, 0.1),
    }


def loss_of(config: Mapping[str, Any]) -> float:
    model, q = config["model"], float(config["q"])
    if model["type"] == "svm":
        return 0.1 + 0.05 * abs(math.log(model["C"]) - 1) + q
    return 1.0 + q if model["type"] == "nb" else 0.5 + 0.1 * abs(float(model["depth"]) - 4) + q


def with_seconds(config: Mapping[str, Any]) -> dict[str, Any]:
    loss = loss_of(config)
    return {"status": STATUS_OK, "loss": loss, "seconds": 1.0 + loss}


def minimise(
    algo: Any,
    n: int,
    *,
    trials: Trials | None = None,
    rstate: Any = 0,
    fn: Any = with_seconds,
    where: Any = None,
    **options: Any,
) -> Trials:
    trials = Trials() if trials is None else trials
    fmin(
        fn,
        space() if where is None else where,
        algo=algo,
        max_evals=n,
        trials=trials,
        rstate=np.random.default_rng(rstate) if isinstance(rstate, int) else rstate,
        show_progressbar=False,
        verbose=False,
        **options,
    )
    return trials


def values(trials: Trials) -> list[dict[str, Any]]:
    return [values_of(document) for document in trials.trials]


# --- documents --------------------------------------------------------------------------------


def test_documents_are_those_of_hyperopt() -> None:
    domain, trials = Domain(None, space(), pass_expr_memo_ctrl=False), Trials()
    ours = quick([0, 1, 2, 3], domain, trials, 5)
    theirs = rand.suggest([0, 1, 2, 3], domain, trials, 5)
    for own, reference in zip(ours, theirs, strict=True):
        assert set(own) == set(reference)
        misc = dict(own["misc"])
        assert set(misc) == set(reference["misc"]) | {"automl_plugins"}
        for part in ("idxs", "vals"):
            assert set(misc[part]) == set(domain.params)
        for label in domain.params:
            assert misc["idxs"][label] == [own["tid"]] * len(misc["vals"][label])
        assert {k: own[k] for k in own if k != "misc"} == {
            k: reference[k] for k in reference if k != "misc"
        }
        assert {k: misc[k] for k in ("tid", "cmd", "workdir")} == {
            k: reference["misc"][k] for k in ("tid", "cmd", "workdir")
        }
        evaluated = space_eval(space(), values_of(own))
        assert ("C" in values_of(own)) == (evaluated["model"]["type"] == "svm")
        assert all(type(v) in (int, float) for v in values_of(own).values())
        written = json.dumps({k: own[k] for k in own if "time" not in k}, allow_nan=False)
        assert json.loads(written)["misc"]["vals"] == misc["vals"] and SONify(own) == own


def test_proposals_are_explained_in_the_document() -> None:
    trials = minimise(ei_per_second(seed=4, n_candidates=60), 14)
    first, last = explanation(trials.trials[0]), explanation(trials.trials[-1])
    assert first == {"algo": "ei_per_second", "seed": 4, "origin": "design"}
    assert last["origin"] == "model" and last["n_rows"] == 13
    assert last["bound"] <= last["loss"] and last["seconds"] > 0
    assert explanation(minimise(rand.suggest, 1).trials[0]) == {}


def test_other_algorithms_go_on_with_our_documents_and_we_with_theirs() -> None:
    trials = Trials()
    for n, algo in (
        (8, partial(tpe.suggest, n_startup_jobs=4)),
        (16, quick),
        (20, partial(tpe.suggest, n_startup_jobs=4)),
        (24, partial(ei_per_second, n_candidates=60)),
        (28, anneal.suggest),
        (32, bandit(label="model", inner=quick)),
        (34, quick),
    ):
        minimise(algo, n, trials=trials)
        assert len(trials) == n
    notes = [explanation(document).get("algo") for document in trials.trials]
    assert notes[8:16] == ["gbqr"] * 8 and notes[20:24] == ["ei_per_second"] * 4
    assert notes[16:20] == [None] * 4 and explanation(trials.trials[16]) == {}
    assert explanation(trials.trials[-1])["n_rows"] == 33  # all of them


# --- several workers --------------------------------------------------------------------------


class Queue(Trials):  # type: ignore[misc]
    """Asynchronous trials behind a database: documents are copies, a job ends some polls later."""

    asynchronous = True

    def __init__(self) -> None:
        self.pending: list[int] = []
        self._dynamic_trials: list[dict[str, Any]] = []
        super().__init__()

    def _insert_trial_docs(self, docs: Any) -> Any:
        stored = pickle.loads(pickle.dumps(docs))
        for document in stored:
            document["misc"] |= json.loads(json.dumps({"vals": document["misc"]["vals"]}))
        return super()._insert_trial_docs(stored)

    def refresh(self) -> None:
        self._dynamic_trials = [pickle.loads(pickle.dumps(d)) for d in self._dynamic_trials]
        if "FMinIter_Domain" in self.attachments:
            self._work()
        super().refresh()

    def _work(self) -> None:
        waiting = [d for d in self._dynamic_trials if d["state"] < JOB_STATE_DONE]
        self.pending.append(len(waiting))
        for document in waiting:
            document["state"] = JOB_STATE_RUNNING
            document["book_time"] = document["book_time"] or coarse_utcnow()
        if waiting and (len(waiting) >= 3 or len(self.pending) % 3 == 0):
            domain = pickle.loads(self.attachments["FMinIter_Domain"])
            done = waiting[0]
            done["result"] = domain.evaluate(values_of(done), None)
            done["refresh_time"], done["state"] = coarse_utcnow(), JOB_STATE_DONE


def test_asynchronous_trials() -> None:
    trials = Queue()
    FMinIter(
        quick,
        Domain(with_seconds, space()),
        trials,
        np.random.default_rng(0),
        max_queue_len=2,
        poll_interval_secs=0.01,
        max_evals=12,
    ).exhaust()
    seen = [tuple(sorted(v.items())) for v in values(trials)]
    assert len(seen) == len(set(seen)) == 12 and max(trials.pending) >= 3


def test_eight_workers_get_eight_configurations() -> None:
    domain, trials = Domain(None, space(), pass_expr_memo_ctrl=False), minimise(quick, 12)
    together = quick(trials.new_trial_ids(8), domain, trials, 1)
    assert len({json.dumps(d["misc"]["vals"]) for d in together}) == 8
    # one after the other is the same, where each is published before the next
    for document in together:
        (alone,) = quick([document["tid"]], domain, trials, 1)
        assert alone["misc"] == document["misc"]
        trials.insert_trial_docs([alone])
        trials.refresh()


# --- seeds ------------------------------------------------------------------------------------


@pytest.mark.parametrize("algo", [quick(seed=3), ei_per_second(seed=3, n_candidates=60)])
def test_halves_are_the_whole_with_a_seed(algo: Any) -> None:
    whole = minimise(algo, 18, rstate=1)
    halves = minimise(algo, 9, rstate=2)
    halves = pickle.loads(pickle.dumps(halves))
    minimise(algo, 18, trials=halves, rstate=3)
    assert values(halves) == values(whole)


def test_halves_are_the_whole_with_one_generator() -> None:
    rng = np.random.default_rng(1)
    halves = minimise(quick, 9, rstate=rng)
    minimise(quick, 18, trials=halves, rstate=rng)
    assert values(halves) == values(minimise(quick, 18, rstate=1))
    assert values(halves) != values(minimise(quick, 18, rstate=2))


def pickle_copy(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


def test_a_model_that_was_kept_is_the_one_that_would_be_fitted() -> None:
    """Beyond 64 trials models are used again, but never those of another seed."""
    algo = partial(gbqr, n_models=1, n_candidates=40, n_startup=60)
    trials = minimise(rand.suggest, 65)
    domain = Domain(None, space(), pass_expr_memo_ctrl=False)
    for seed in (1, 2):
        fresh = Domain(None, space(), pass_expr_memo_ctrl=False)
        (kept,), (new,) = (algo([65], d, trials, seed) for d in (domain, fresh))
        assert kept["misc"] == new["misc"]


def test_seeds_and_numbers_tell_proposals_apart() -> None:
    domain, trials = Domain(None, space(), pass_expr_memo_ctrl=False), Trials()

    def proposed(algo: Any, tid: int, seed: int) -> Any:
        return values_of(algo([tid], domain, trials, seed)[0])

    assert proposed(quick, 0, 1) == proposed(quick, 0, 1) != proposed(quick, 0, 2)
    fixed = quick(seed=1)
    assert proposed(fixed, 0, 8) == proposed(fixed, 0, 9) == proposed(quick, 0, 1)
    assert proposed(fixed, 0, 8) != proposed(fixed, 1, 8)


# --- failures, seconds ------------------------------------------------------------------------


def test_nothing_but_failures() -> None:
    def fn(config: Any) -> Any:
        return {"status": STATUS_FAIL}

    trials = Trials()
    with pytest.raises(AllTrialsFailed):  # fmin itself: there is no best one
        minimise(quick, 12, fn=fn, trials=trials)
    assert len(trials) == 12
    minimise(quick, 18, trials=trials)
    assert explanation(trials.trials[-1])["origin"] == "model"


def test_seconds_count_where_they_are_asked_for() -> None:
    """Equal losses on both sides; one side is a hundred times cheaper."""

    def fn(x: float) -> dict[str, Any]:
        return {"status": STATUS_OK, "loss": abs(x), "seconds": 100.0 if x > 0 else 1.0}

    where = hp.uniform("x", -1, 1)

    def cheap(algo: Any) -> int:
        return sum(v["x"] <= 0 for v in values(minimise(algo, 25, fn=fn, where=where))[8:])

    assert cheap(ei_per_second(seed=0, n_candidates=60)) >= 12
    boosted = gbqr(seed=0, n_candidates=60)
    assert cheap(partial(boosted, per_second=True)) > cheap(boosted)
    assert cheap(ei_per_second(seed=0, n_candidates=60, cost_exponent=0.0)) < 14


def test_times_of_documents_are_seconds_too() -> None:
    trials = minimise(rand.suggest, 12, fn=loss_of)
    for document in trials._dynamic_trials:
        document["refresh_time"] = document["book_time"] + timedelta(seconds=5)
    domain = Domain(None, space(), pass_expr_memo_ctrl=False)
    (document,) = ei_per_second([12], domain, trials, 0)
    assert explanation(document)["seconds"] == pytest.approx(5.0, rel=0.01)


def test_stale_documents_of_a_killed_search_do_not_stop_it() -> None:
    trials = minimise(quick, 8)
    trials._dynamic_trials[3]["state"] = JOB_STATE_RUNNING
    trials._dynamic_trials[3]["result"] = {"status": "new"}
    trials._dynamic_trials[5]["state"] = JOB_STATE_ERROR
    domain = Domain(None, space(), pass_expr_memo_ctrl=False)
    (document,) = quick([8], domain, trials, 0)
    assert document["state"] == JOB_STATE_NEW and explanation(document)["n_rows"] == 7


# --- small and strange spaces -----------------------------------------------------------------


def test_a_space_without_hyperparameters_is_evaluated_as_often_as_asked() -> None:
    trials = minimise(quick, 5, where={"a": 1}, fn=lambda config: float(config["a"]))
    assert trials.losses() == [1.0] * 5 and trials.vals == {}


def test_everything_once_and_then_again_as_tpe_does() -> None:
    where = {"a": hp.choice("a", [1, 2]), "b": hp.randint("b", 3), "one": hp.choice("one", [7])}
    trials = minimise(quick, 14, where=where, fn=lambda c: float(c["a"] + c["b"]))
    configurations = [tuple(sorted(v.items())) for v in values(trials)]
    assert len(set(configurations[:6])) == 6 and len(trials) == 14


def test_an_option_with_probability_zero_is_never_proposed() -> None:
    where = hp.pchoice("p", [(0.0, hp.uniform("x", 0, 1)), (0.5, hp.uniform("y", 0, 1)), (0.5, 2)])
    trials = minimise(quick, 15, where=where, fn=lambda v: -float(v))
    assert {v["p"] for v in values(trials)} == {1, 2}


def test_arithmetic_on_hyperparameters_belongs_to_the_objective() -> None:
    where = {"x": hp.uniform("x", 0, 1) * 10 + hp.randint("i", 3)}
    trials = minimise(quick, 12, where=where, fn=lambda c: float((c["x"] - 5) ** 2))
    assert set(values(trials)[0]) == {"x", "i"}


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (
            lambda: {"y": hp.uniform("y", 0, 1 + hp.uniform("x", 0, 1))},
            r"high of 'y' depends on other hyperparameters: .*uniform\('x'\).*must be constant",
        ),
        (lambda: hp.normal("y", hp.randint("m", 3), 1), r"mu of 'y' depends on .*randint\('m'\)"),
    ],
)
def test_spaces_that_cannot_be_translated(where: Any, message: str) -> None:
    trials = Trials()
    with pytest.raises(ValueError, match=message):
        minimise(quick, 5, where=where(), trials=trials)
    assert len(trials) == 0


# --- options ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"alfa": 0.1}, TypeError, r"gbqr: .*'alfa'.*Its options are alpha, n_models, doubt"),
        ({"alpha": 1.5}, ValueError, r"alpha must lie in \(0, 1\), got 1.5"),
        ({"seed": -1}, ValueError, "seed must be >= 0"),
        ({"seed": "0"}, TypeError, "seed must be an integer"),
    ],
)
def test_bad_options_are_refused_at_once(options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        gbqr(**options)
    trials = Trials()
    with pytest.raises(error, match=message):
        minimise(partial(gbqr, **options), 3, trials=trials)
    assert len(trials) == 0


@pytest.mark.parametrize("name", ["tst", "pmf", "blended"])
def test_without_a_memory(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name}: missing a required .*'memory'"):
        minimise(ALL[name], 3)


@pytest.mark.parametrize("name", list(ALL))
def test_what_they_are_called_and_take(name: str) -> None:
    algo = ALL[name]
    assert algo.__name__ == name and (algo.__doc__ or "").count("\n") > 3
    assert pickle.loads(pickle.dumps(algo)) is algo
    parameters = inspect.signature(algo).parameters
    recipe = inspect.signature(getattr(recipes, name)).parameters
    assert [p for p in recipe if p != "options"] == list(parameters)[4 : 4 + len(recipe) - 1]
    for option in (*recipe, "n_startup", "n_candidates", "max_rows", "failed_trials", "seed"):
        if option == "options":
            continue
        shared = option in Options.__annotations__ or option == "seed"
        described = importlib.import_module(algo.__module__).__doc__ if shared else algo.__doc__
        assert option in (described or "")
        if option in recipe:
            assert parameters[option].default == recipe[option].default


def test_replays_take_them_with_options() -> None:
    assert optimizer(gbqr).name.endswith("gbqr")
    suggest: Any = optimizer(gbqr, alpha=0.2).algo
    assert suggest.keywords == {"alpha": 0.2}
    with pytest.raises(TypeError, match="alfa"):
        optimizer(gbqr, alfa=0.2)


def test_options_given_by_call_and_partial_are_the_same() -> None:
    called = minimise(gbqr(n_models=2, n_candidates=40, seed=1), 12)
    partially = minimise(partial(gbqr, n_models=2, n_candidates=40, seed=1), 12)
    assert values(called) == values(partially)
    assert values(called) != values(minimise(gbqr(n_models=2, n_candidates=41, seed=1), 12))


# --- any proposer -----------------------------------------------------------------------------


class Failing(RandomForest):
    """Cannot be fitted."""

    def fit(self, X: Any, y: Any) -> Any:
        raise FloatingPointError("singular")


def test_a_model_that_fails_is_replaced_by_chance_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @ProposerAlgorithm  # type: ignore[untyped-decorator]
    def failing(*, n_startup: int = 3) -> Proposer:
        return recipes.make_proposer(Failing(), target="raw", n_startup=n_startup)

    with caplog.at_level(logging.WARNING, logger="automl_plugins"):
        trials = minimise(failing(n_startup=3), 8)
    assert len(trials) == 8
    assert [explanation(d)["origin"] for d in trials.trials[3:]] == ["random"] * 5
    (record,) = [r for r in caplog.records if "drawn at random instead" in r.message]
    assert record.message.startswith("failing: ")


def test_any_proposer_can_be_driven() -> None:
    class First:
        """Not a class of the core."""

        timed = True

        def propose(
            self, space: VectorSpace, history: Any, streams: Any, k: int, fixed: Any = None
        ) -> Proposal:
            if k == 2:
                raise SurrogateFailure("on purpose")
            assert len(history) == k
            vector = space.sample(1, np.random.default_rng(k))[0]
            return Proposal(vector, "model", shares={"earlier.task": np.float64(0.25)})

    @ProposerAlgorithm  # type: ignore[untyped-decorator]
    def first() -> Proposer:
        return First()

    trials = minimise(first, 4)
    assert explanation(trials.trials[3])["shares"] == {"earlier.task": 0.25}
    assert type(explanation(trials.trials[3])["shares"]["earlier.task"]) is float
