"""``gbqr`` and ``ei_per_second`` as ``algo=`` of ``fmin``."""

from __future__ import annotations

import inspect
import json
import math
import pickle
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import (
    auto,
    bandit,
    blended,
    ei_per_second,
    gbqr,
    optimizer,
    pmf,
    surrogate,
    tst,
    weighted,
)
from automl_plugins.adapters.hyperopt.proposing import ProposerAlgorithm
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
    hp,
    rand,
    space_eval,
    tpe,
)
from hyperopt.base import SONify
from hyperopt.exceptions import AllTrialsFailed
from hyperopt.fmin import FMinIter
from hyperopt.sklearn import HyperoptSearchCV
from hyperopt.utils import coarse_utcnow
from hyperopt_runs import configs, explanation, minimise, values_of
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.svm import SVC

from automl_plugins import recipes
from automl_plugins.proposers.proposal import Proposal, Proposer, SurrogateFailure
from automl_plugins.spaces.vector_space import VectorSpace

ALL = {
    "auto": auto,
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


def search(
    algo: Any, n: int, *, fn: Any = with_seconds, where: Any = None, **options: Any
) -> Trials:
    return minimise(fn, space() if where is None else where, algo, n, **options)


def domain_of() -> Domain:
    return Domain(None, space(), pass_expr_memo_ctrl=False)


# --- documents --------------------------------------------------------------------------------


def test_documents_are_those_of_hyperopt() -> None:
    domain, trials = domain_of(), Trials()
    ours = quick([0, 1, 2, 3], domain, trials, 5)
    theirs = rand.suggest([0, 1, 2, 3], domain, trials, 5)
    for own, reference in zip(ours, theirs, strict=True):
        misc, theirs_misc = own["misc"], reference["misc"]
        assert {**own, "misc": None} == {**reference, "misc": None}
        assert set(misc) == {*theirs_misc, "automl_plugins"}
        assert all(misc[key] == theirs_misc[key] for key in ("tid", "cmd", "workdir"))
        assert set(misc["idxs"]) == set(misc["vals"]) == set(domain.params)
        for label in domain.params:
            assert misc["idxs"][label] == [own["tid"]] * len(misc["vals"][label])
        evaluated = space_eval(space(), values_of(own))
        assert ("C" in values_of(own)) == (evaluated["model"]["type"] == "svm")
        assert all(type(v) in (int, float) for v in values_of(own).values())
        written = json.dumps({k: own[k] for k in own if "time" not in k}, allow_nan=False)
        assert json.loads(written)["misc"]["vals"] == misc["vals"] and SONify(own) == own


def test_an_algorithm_may_be_written_as_those_of_hyperopt() -> None:
    domain, trials = domain_of(), Trials()
    assert gbqr.suggest([0], domain, trials, 5) == gbqr([0], domain, trials, 5)


def test_proposals_are_explained_in_the_document() -> None:
    trials = search(ei_per_second(seed=4, n_candidates=60), 14)
    first, last = explanation(trials.trials[0]), explanation(trials.trials[-1])
    assert first == {"algo": "ei_per_second", "seed": 4, "origin": "design"}
    assert last["origin"] == "model" and last["n_rows"] == 13
    assert last["bound"] <= last["loss"] and last["seconds"] > 0
    assert explanation(search(rand.suggest, 1).trials[0]) == {}


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
        search(algo, n, trials=trials)
        assert len(trials) == n
    notes = [explanation(document).get("algo") for document in trials.trials]
    assert notes[8:16] == ["gbqr"] * 8 and notes[20:24] == ["ei_per_second"] * 4
    assert notes[16:20] == [None] * 4 and explanation(trials.trials[16]) == {}
    assert explanation(trials.trials[-1])["n_rows"] == 33  # all of them


def test_a_search_keeps_the_seed_that_it_began_with() -> None:
    whole = search(quick, 14, seed=3)
    half = search(quick, 3, trials=search(rand.suggest, 2, seed=8), seed=3)
    for n, seed in ((9, 4), (14, 5)):
        search(quick, n, trials=half, seed=seed)
    seeds = [explanation(document).get("seed") for document in half.trials]
    assert seeds[:2] == [None, None] and len(set(seeds[2:])) == 1
    begun = search(quick, 8, seed=3)
    search(quick, 14, trials=begun, seed=6)
    assert [values_of(d) for d in begun.trials] == [values_of(d) for d in whole.trials]
    assert {
        explanation(d)["seed"] for d in search(quick(seed=9), 16, trials=begun).trials[14:]
    } == {9}


@pytest.mark.parametrize("noted", [-1, "1", 1.5, True, None])
def test_a_damaged_seed_is_left_aside(noted: Any) -> None:
    trials = search(quick, 2)
    for document in trials.trials:
        document["misc"]["automl_plugins"]["proposal"]["seed"] = noted
    (new,) = quick([2], domain_of(), trials, 11)
    assert explanation(new)["seed"] == 11


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
    options: dict[str, Any] = {"max_queue_len": 2, "poll_interval_secs": 0.01, "max_evals": 12}
    domain, rstate = Domain(with_seconds, space()), np.random.default_rng(0)
    FMinIter(quick, domain, trials, rstate, **options).exhaust()
    seen = [tuple(sorted(v.items())) for v in configs(trials)]
    assert len(seen) == len(set(seen)) == 12 and max(trials.pending) >= 3


def test_eight_workers_get_eight_configurations() -> None:
    domain, trials = domain_of(), search(quick, 12)
    together = quick(trials.new_trial_ids(8), domain, trials, 1)
    assert len({json.dumps(d["misc"]["vals"]) for d in together}) == 8
    # one after the other is the same, where each is published before the next
    for document in together:
        (alone,) = quick([document["tid"]], domain, trials, 1)
        assert alone["misc"] == document["misc"]
        trials.insert_trial_docs([alone])
        trials.refresh()


# --- seeds ------------------------------------------------------------------------------------


def test_halves_are_the_whole_with_a_seed() -> None:
    algo = ei_per_second(seed=3, n_candidates=60)
    whole = search(algo, 18, seed=1)
    halves = search(algo, 9, seed=2)
    halves = pickle.loads(pickle.dumps(halves))
    search(algo, 18, trials=halves, seed=3)
    assert configs(halves) == configs(whole)


def test_halves_are_the_whole_with_one_generator() -> None:
    rng = np.random.default_rng(1)
    halves = search(quick, 9, seed=rng)
    search(quick, 18, trials=halves, seed=rng)
    assert configs(halves) == configs(search(quick, 18, seed=1))
    assert configs(halves) != configs(search(quick, 18, seed=2))


def test_a_model_that_was_kept_is_the_one_that_would_be_fitted() -> None:
    """Beyond 64 trials models are used again, but never those of another seed."""
    algo = partial(gbqr, n_models=1, n_candidates=40, n_startup=60)
    trials = search(rand.suggest, 65)
    domain = domain_of()
    for seed in (1, 2):
        (kept,), (new,) = (algo([65], d, trials, seed) for d in (domain, domain_of()))
        assert kept["misc"] == new["misc"]


def test_seeds_and_numbers_tell_proposals_apart() -> None:
    domain, trials = domain_of(), Trials()

    def proposed(algo: Any, tid: int, seed: int) -> Any:
        return values_of(algo([tid], domain, trials, seed)[0])

    assert proposed(quick, 0, 1) == proposed(quick, 0, 1) != proposed(quick, 0, 2)
    fixed = quick(seed=1)
    assert proposed(fixed, 0, 8) == proposed(fixed, 0, 9) == proposed(quick, 0, 1)
    assert proposed(fixed, 0, 8) != proposed(fixed, 1, 8)


# --- failures, seconds ------------------------------------------------------------------------


def test_nothing_but_failures() -> None:
    trials = Trials()
    with pytest.raises(AllTrialsFailed):  # fmin itself: there is no best one
        search(quick, 12, fn=lambda config: {"status": STATUS_FAIL}, trials=trials)
    assert len(trials) == 12
    search(quick, 18, trials=trials)
    assert explanation(trials.trials[-1])["origin"] == "model"


def test_times_of_documents_are_seconds_too() -> None:
    trials = search(rand.suggest, 12, fn=loss_of)
    for document in trials._dynamic_trials:
        document["refresh_time"] = document["book_time"] + timedelta(seconds=5)
    (document,) = ei_per_second([12], domain_of(), trials, 0)
    assert explanation(document)["seconds"] == pytest.approx(5.0, rel=0.01)


def test_stale_documents_of_a_killed_search_do_not_stop_it() -> None:
    trials = search(quick, 8)
    trials._dynamic_trials[3]["state"] = JOB_STATE_RUNNING
    trials._dynamic_trials[3]["result"] = {"status": "new"}
    trials._dynamic_trials[5]["state"] = JOB_STATE_ERROR
    (document,) = quick([8], domain_of(), trials, 0)
    assert document["state"] == JOB_STATE_NEW and explanation(document)["n_rows"] == 7


# --- small and strange spaces -----------------------------------------------------------------


def test_a_space_without_hyperparameters_is_evaluated_as_often_as_asked() -> None:
    trials = search(quick, 5, where={"a": 1}, fn=lambda config: float(config["a"]))
    assert trials.losses() == [1.0] * 5 and trials.vals == {}


def test_everything_once_and_then_again_as_tpe_does() -> None:
    where = {"a": hp.choice("a", [1, 2]), "b": hp.randint("b", 3), "one": hp.choice("one", [7])}
    trials = search(quick, 14, where=where, fn=lambda c: float(c["a"] + c["b"]))
    configurations = [tuple(sorted(v.items())) for v in configs(trials)]
    assert len(set(configurations[:6])) == 6 and len(trials) == 14


def test_an_option_with_probability_zero_is_never_proposed() -> None:
    y = hp.uniform("y", 0, 1) * 10 + hp.randint("i", 3)  # the arithmetic is the objective's
    where = hp.pchoice("p", [(0.0, hp.uniform("x", 0, 1)), (0.5, y), (0.5, 2)])
    trials = search(quick, 15, where=where, fn=lambda v: -float(v))
    assert {frozenset(v) for v in configs(trials)} == {frozenset("p"), frozenset("pyi")}
    assert {v["p"] for v in configs(trials)} == {1, 2}


def test_nothing_is_searched_where_the_space_cannot_be_translated() -> None:
    trials, where = Trials(), {"y": hp.uniform("y", 0, 1 + hp.uniform("x", 0, 1))}
    with pytest.raises(ValueError, match="high of 'y' depends on other hyperparameters"):
        search(quick, 5, where=where, trials=trials)
    assert len(trials) == 0


# --- options ----------------------------------------------------------------------------------


def test_an_algorithm_with_options_shows_them_in_one_short_line() -> None:
    algorithm = auto(X=np.zeros((40, 13)), y=np.arange(40), seed=1)
    shown = "<suggest function auto(X=<ndarray>, y=<ndarray>, seed=1)>"
    assert repr(algorithm) == repr(pickle.loads(pickle.dumps(algorithm))) == shown


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: auto("lightgbm"),
            r"auto takes its options by keyword, .*=auto\(memory='lightgbm'\)",
        ),
        (lambda: gbqr(0.2), r"gbqr\(alpha=0.2\): its options are alpha, n_models"),
        (lambda: auto(3), r"seed\. A seed is given by its name: seed=3\."),
        (lambda: surrogate("random_forest"), r"surrogate\(surrogate='random_forest'\)"),
        (lambda: tst({"a": Trials()}, "b"), r"tst\(memory=<dict of 1>\)"),
    ],
)
def test_options_without_a_name_are_answered_with_one(call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"alfa": 0.1}, TypeError, r"gbqr takes no argument alfa; it takes alpha, n_models"),
        ({"alfa": 0.1}, TypeError, r"Did you mean 'alpha'\?$"),
        ({"trials": 3}, TypeError, r"gbqr takes no argument trials; it takes alpha, n_models"),
        ({"n_startup_trials": 3}, TypeError, r"\(n_startup_trials: here it is n_startup=\)"),
        ({"n_startup_jobs": 3}, TypeError, r"\(n_startup_jobs: here it is n_startup=\)"),
        ({"n_EI_candidates": 3}, TypeError, r"\(n_EI_candidates: here it is n_candidates=\)"),
        ({"cost": "seconds"}, TypeError, r"\(cost: here it is per_second=\)"),
        ({"n_trials": 3}, TypeError, r"gbqr takes no argument n_trials; it takes alpha, n_mode"),
        ({"alpha": 1.5}, ValueError, r"alpha must lie in \(0, 1\), got 1.5"),
        ({"seed": -1}, ValueError, "seed must be an integer >= 0"),
        ({"seed": "0"}, TypeError, "seed must be an integer"),
    ],
)
def test_bad_options_are_refused_at_once(options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        gbqr(**options)
    trials = Trials()
    with pytest.raises(error, match=message):
        search(partial(gbqr, **options), 3, trials=trials)
    assert len(trials) == 0


def test_only_an_option_that_there_is_is_named_for_a_foreign_one() -> None:
    with pytest.raises(TypeError, match=r"^weighted takes no argument cost; it takes label, "):
        weighted(cost="seconds")


@pytest.mark.parametrize("name", ["tst", "pmf", "blended"])
def test_without_a_memory(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name}: missing a required .*'memory'"):
        search(ALL[name], 3)


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
        assert f"\n    {option}: " in (algo.__doc__ or "")
        if option in recipe:
            assert parameters[option].default == recipe[option].default


def test_replays_take_them_with_options() -> None:
    assert optimizer(gbqr).name.endswith("gbqr")
    with pytest.raises(TypeError, match="alfa"):
        optimizer(gbqr, alfa=0.2)


@pytest.mark.parametrize("algo", [quick(n_startup=2, seed=1), bandit(label="kernel")])
def test_a_search_of_scikit_learn_takes_them(algo: Any) -> None:
    X, y = load_iris(return_X_y=True)
    where = {"C": hp.loguniform("C", -5, 5), "kernel": hp.choice("kernel", ["rbf", "linear"])}
    given = HyperoptSearchCV(SVC(), where, 4, algo=algo, random_state=0, cv=3, warm_start=True)
    copied = clone(given)  # as scikit-learn does for each fold of a nested validation
    for one in (given, copied):
        one.fit(X, y)
        one.set_params(max_evals=6).fit(X, y)
    assert len(given.trials_) == 6 and configs(given.trials_) == configs(copied.trials_)


def test_options_given_by_call_and_partial_are_the_same() -> None:
    called = search(gbqr(n_models=2, n_candidates=40, seed=1), 12)
    partially = search(partial(gbqr, n_models=2, n_candidates=40, seed=1), 12)
    assert configs(called) == configs(partially)
    assert configs(called) != configs(search(gbqr(n_models=2, n_candidates=41, seed=1), 12))


# --- any proposer -----------------------------------------------------------------------------


def test_a_mistake_in_the_code_is_no_failure_of_a_surrogate() -> None:
    class Mistaken:
        timed = False

        def propose(self, *_: Any) -> Any:
            raise KeyError("a mistake")

    with pytest.raises(KeyError, match="a mistake"):
        search(ProposerAlgorithm(Mistaken), 2)


def test_without_a_model_no_configuration_is_repeated() -> None:
    class Broken:
        timed = False

        def propose(self, *_: Any) -> Proposal:
            raise SurrogateFailure("On purpose.")

    where = {"n": hp.randint("n", 12)}
    trials = search(ProposerAlgorithm(Broken), 13, fn=lambda c: 0.5, where=where)
    drawn = [document["misc"]["vals"]["n"][0] for document in trials.trials]
    assert sorted(drawn[:12]) == list(range(12)) and len(drawn) == 13
    assert len(search(ProposerAlgorithm(Broken), 2, fn=lambda c: 0.5, where={"n": 1})) == 2


def test_any_proposer_can_be_driven_and_its_failure_is_replaced_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class First:
        """Not a class of the core."""

        timed = True

        def propose(
            self, space: VectorSpace, history: Any, streams: Any, k: int, fixed: Any = None
        ) -> Proposal:
            if k in (1, 2):
                raise SurrogateFailure("On purpose.")
            assert len(history) == k
            vector = space.sample(1, np.random.default_rng(k))[0]
            return Proposal(vector, "model", shares={"earlier.task": np.float64(0.25)})

    @ProposerAlgorithm  # type: ignore[untyped-decorator]
    def first() -> Proposer:
        return First()

    trials = search(first, 4)
    found = [explanation(document) for document in trials.trials]
    assert [note["origin"] for note in found] == ["model", "random", "random", "model"]
    assert found[3]["shares"] == {"earlier.task": 0.25}
    assert type(found[3]["shares"]["earlier.task"]) is float
    (record,) = caplog.records
    assert record.message == "On purpose. Random configurations are tried instead."
