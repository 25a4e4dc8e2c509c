"""Sources of transfer samplers: all that they may be given as, and what is refused."""

from __future__ import annotations

import logging
import shutil
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from automl_plugins.adapters.optuna import (
    ADAPTER,
    AutoSampler,
    BlendedSampler,
    PMFSampler,
    TSTSampler,
    explain,
    meta_dataset_from_studies,
    source_shares,
)
from automl_plugins.adapters.optuna._sources import Sources, read_sources
from automl_plugins.adapters.optuna.space import widest
from ConfigSpace import ConfigurationSpace
from objectives import earlier, search, studied
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from storages import storage_in

from automl_plugins.meta import MetaDataset, MetaStore, memories
from automl_plugins.meta.memories import TaskMemory
from automl_plugins.meta.sources import open_memory
from automl_plugins.meta.store import StoreError
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.records.trial import Status
from automl_plugins.spaces.vector_space import VectorSpace

read_task = ADAPTER.read_task


def bowl(trial: optuna.Trial) -> float:
    return trial.suggest_float("x", -5, 5) ** 2 + trial.suggest_int("i", 0, 9)


def losses_of(sources: Sources) -> dict[str, list[float]]:
    known = sources.memory.known
    records = known if isinstance(known, list) else known.records()
    return {record.name: record.losses.tolist() for record in records}


# --- what they are given as -------------------------------------------------------------------


def test_studies_in_every_form(tmp_path: Path) -> None:
    address, journal = f"sqlite:///{tmp_path / 'study.db'}", str(tmp_path / "study.log")
    storage = storage_in(tmp_path, "sqlite")
    studies = [studied(f"s{seed}", bowl, n=4, seed=seed) for seed in (0, 1)]
    for place, study in product((storage, storage_in(tmp_path, "journal")), studies):
        optuna.create_study(study_name=study.study_name, storage=place).add_trials(study.trials)
    expected = {f"s{i}": [t.value for t in study.trials] for i, study in enumerate(studies)}
    other = shutil.copy(journal, tmp_path / "study.journal")
    for given in (studies, tuple(studies), storage, address, journal, str(other)):
        assert losses_of(read_sources(given)) == expected
    assert losses_of(read_sources(studies[1])) == {"s1": expected["s1"]}
    named = read_sources({"first": studies[0], "second": studies[1]})
    assert losses_of(named) == {"first": expected["s0"], "second": expected["s1"]}


def test_a_study_of_the_same_name_in_another_storage_is_a_source() -> None:
    twin, other = studied("churn", bowl), studied("b", bowl, seed=1)
    study = studied("churn", bowl, seed=2)

    def left_out(sources: Any) -> set[str]:
        memory = read_sources(sources).without(study)
        assert isinstance(memory, TaskMemory)
        return set(memory.exclude) - {""}

    assert left_out([twin, other]) == set()
    assert left_out([study, other]) == {"churn"}
    assert left_out({"a": study, "b": other}) >= {"a"}
    assert left_out([read_task(study), read_task(other)]) == {"churn"}
    # Runs of one table are of one task, whatever the study.
    for same in (twin, study):
        same.set_user_attr("table", "churn of 2024")
    assert left_out([twin, other]) == {"churn of 2024"}


@pytest.mark.parametrize("first", ["waits", "runs"])
def test_a_study_knows_itself_though_its_first_trial_had_not_ended(first: str) -> None:
    study, other = optuna.create_study(study_name="churn"), studied("b", bowl, seed=1)
    study.enqueue_trial({"x": 1.0, "i": 2})
    running = study.ask() if first == "runs" else None
    study.add_trials(studied("churn", bowl).trials)
    sources = read_sources([study, other])
    study.tell(running or study.ask(), 3.0)
    assert "churn" in sources.without(study).exclude


def test_studies_that_wait_for_their_first_trial_are_not_the_same(
    log: pytest.LogCaptureFixture,
) -> None:
    studies = []
    for seed in (0, 1):
        studies.append(optuna.create_study(study_name="churn"))
        studies[-1].enqueue_trial({"x": 1.0, "i": 2})
        studies[-1].add_trials(studied("churn", bowl, seed=seed).trials)
    memory = read_sources({"a": studies[0], "b": studies[1]}).memory
    assert memory.names == ("a", "b") and "left out" not in log.text


def test_memories_in_every_form(tmp_path: Path) -> None:
    studies = earlier(2)
    dataset = meta_dataset_from_studies([studied("a", bowl), studied("b", bowl, seed=1)])
    records = [read_task(study) for study in studies]
    with MetaStore(tmp_path / "store.db") as store:
        for record in records:
            store.add(record)
        for given in (records, store, tmp_path / "store.db", f"sqlite:///{tmp_path / 'store.db'}"):
            found = read_sources(given)
            assert found.memory.names == ("task 0", "task 1")
    assert read_sources(dataset).memory.names == ("a", "b")
    assert read_sources(dataset).foresight.distributions == {
        "x": FloatDistribution(-5, 5),
        "i": IntDistribution(0, 9),
    }
    bundled = read_sources("svm")
    assert len(bundled.memory.names) > 20 and "C" in bundled.foresight.distributions


def test_trials_of_other_algorithms_are_left_out() -> None:
    """A study chose among algorithms behind one scaler; the search has one of them."""

    def several(trial: optuna.Trial) -> float:
        shift = trial.suggest_float("shift", 0, 1)
        if trial.suggest_categorical("algorithm", ["svm", "boosting"]) == "svm":
            return shift - trial.suggest_float("C", 0, 1)
        return shift + trial.suggest_float("rate", 0, 1)

    sources = read_sources([studied("a", several, n=12), studied("b", several, n=12, seed=1)])
    memory = sources.memory.on(
        VectorSpace(ConfigurationSpace({"shift": (0.0, 1.0), "rate": (0.0, 1.0)}))
    )
    assert isinstance(sources.memory.known, list)
    for task, record in enumerate(sources.memory.known):
        boosted = [
            loss
            for loss, values in zip(record.losses, record.configurations, strict=True)
            if "rate" in values
        ]
        assert 0 < len(boosted) < 12
        assert memory.losses[memory.rows[task]].tolist() == boosted
        assert memory.coverage[task].n_unrelated == 12 - len(boosted)


def test_the_widest_distributions_are_expected() -> None:
    def objective(trial: optuna.Trial, high: int, kinds: list[Any]) -> float:
        trial.suggest_int("step", 0, 4 * high, step=4)
        trial.suggest_float("log", 1e-3, high, log=True)
        trial.suggest_categorical("kind", kinds)
        if high > 1:
            trial.suggest_float("other", 0, 1)
        else:
            trial.suggest_categorical("other", [0, 1])
        return trial.number

    studies = [
        studied("a", lambda t: objective(t, 1, ["a", None]), n=2),
        studied("b", lambda t: objective(t, 3, [None, True]), n=2),
    ]
    assert read_sources(studies).foresight.distributions == {
        "step": IntDistribution(0, 12, step=4),
        "log": FloatDistribution(1e-3, 3, log=True),
        "kind": CategoricalDistribution(["a", None, True]),
    }


@pytest.mark.parametrize(
    ("wide", "single", "expected"),
    [
        (IntDistribution(1, 9, log=True), IntDistribution(0, 0), IntDistribution(0, 9)),
        (FloatDistribution(1, 9, log=True), FloatDistribution(0, 0), FloatDistribution(0, 9)),
        (
            FloatDistribution(1, 9, log=True),
            FloatDistribution(0.5, 0.5),
            FloatDistribution(0.5, 9, log=True),
        ),
        (IntDistribution(0, 9, step=3), IntDistribution(4, 4), IntDistribution(0, 9)),
        (IntDistribution(0, 9, step=3), IntDistribution(11, 11), IntDistribution(0, 11)),
        (IntDistribution(0, 9, step=3), IntDistribution(12, 12), IntDistribution(0, 12, step=3)),
        (
            FloatDistribution(0, 1, step=0.1),
            FloatDistribution(0.3, 0.3),
            FloatDistribution(0, 1, step=0.1),
        ),
        (
            FloatDistribution(0, 1, step=0.5),
            FloatDistribution(0.3, 0.3),
            FloatDistribution(0, 1),
        ),
        (  # the fourth and the eighth value in steps of 0.1, as a search proposes them
            FloatDistribution(0, 0.2, step=0.1),
            FloatDistribution(3 * 0.1, 3 * 0.1),
            FloatDistribution(0, 0.3, step=0.1),
        ),
        (
            FloatDistribution(-0.1, 0.1, step=0.1),
            FloatDistribution(-0.1 + 8 * 0.1, -0.1 + 8 * 0.1),
            FloatDistribution(-0.1, 0.7, step=0.1),
        ),
        (
            FloatDistribution(0.5, 1, step=0.1),
            FloatDistribution(3 * 0.1, 3 * 0.1),
            FloatDistribution(0.3, 1, step=0.1),
        ),
    ],
)
def test_a_single_value_is_expected_too(wide: Any, single: Any, expected: Any) -> None:
    for given in ([wide, single], [single, wide]):
        assert widest(given) == expected


def test_a_study_with_a_single_value_below_a_logarithmic_range_is_a_source() -> None:
    studies = [
        studied("a", lambda t: t.suggest_int("n", 1, 9, log=True) + t.number, n=3),
        studied("b", lambda t: t.suggest_int("n", 0, 0) + t.suggest_float("x", 0, 1), n=3),
    ]
    expected = read_sources(studies).foresight.distributions["n"]
    assert expected == IntDistribution(0, 9)


def test_the_first_study_of_a_storage_may_learn_from_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    address = f"sqlite:///{tmp_path / 'studies.db'}"
    optuna.logging.enable_propagation()
    warned = []
    for name in "abc":
        study = optuna.create_study(storage=address, study_name=name)
        study.sampler = AutoSampler(address, seed=1)
        study.optimize(bowl, 4)
        # Some are logged twice.
        warned.append({r.getMessage() for r in caplog.records if r.levelno == logging.WARNING})
        caplog.clear()
    (message,), *later = warned
    # Nor is any of them a source of itself that was left out.
    assert "does without a memory" in message and not any(later)
    assert explain(study.trials[0]).origin == "suggested"


@pytest.mark.parametrize("asks", ["at once", "on a branch", "says before"])
def test_a_name_that_no_trial_asks_for_is_a_warning(
    asks: str, caplog: pytest.LogCaptureFixture
) -> None:
    rng = np.random.default_rng(0)
    rows = [{"x": rng.random(), "lr": rng.random()} for _ in range(8)]
    memory = [TaskRecord(task, rows[i:], rng.random(8 - i)) for i, task in enumerate("ab")]

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        if asks == "on a branch":
            if trial.suggest_categorical("solver", ["sgd", "none"]) == "sgd":
                x += trial.suggest_float("lr", 0, 1)
            return x
        return x + trial.suggest_float("learning_rate", 0, 1)

    def warned() -> list[str]:
        messages = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
        return [m for m in dict.fromkeys(messages) if "this search does not have" in m]

    optuna.logging.enable_propagation()
    told = "lr in 15 of 15 recorded runs. The search has learning_rate, which no run has."
    known = {name: FloatDistribution(0, 1) for name in ("x", "learning_rate")}
    options: Any = {"search_space": known} if asks == "says before" else {}
    sampler = BlendedSampler(memory, seed=1, **options)
    assert [told in message for message in warned()] == [True] * (asks == "says before")
    study = optuna.create_study(sampler=sampler)
    if asks == "on a branch":  # the first trials do not ask for it
        for _ in range(2):
            study.enqueue_trial({"solver": "none"})
    study.optimize(objective, 4)
    assert [told in message for message in warned()] == [True] * (asks != "on a branch")


# --- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sources", "error", "match"),
    [
        ([], ValueError, "no sources to learn from"),
        ({}, ValueError, "no sources to learn from"),
        (None, TypeError, "memory must be optuna studies"),
        (42, TypeError, r"Got 42\. A seed is given by its name: seed=42\."),
        ([1, 2], TypeError, "memory must be optuna studies"),
        (["svm", "knn"], TypeError, r"are a memory: \[\*bundled\('svm'\)\.records\(\), \*bun"),
        (["a.db", "b.db"], TypeError, "The first item is the text 'a.db', which is no address"),
        (  # with and without a driver
            "postgresql://me:x@nohost.invalid/s",
            (ValueError, ModuleNotFoundError),
            r"'postgresql://me:\*\*\*@nohost\.invalid/s' (cannot be read|needs a driver)",
        ),
        ({"a": 1}, TypeError, "memory by name must be optuna studies"),
        ("no such memory", ValueError, "no such memory"),
        ("sqlite:///no/such/file.db", ValueError, "no database"),
        ("no/such/journal.log", ValueError, "no memory"),
        (["sqlite:///no/such/file.db"], ValueError, "no database"),
        (pd.DataFrame({"x": range(99)}), TypeError, r"Got <DataFrame>\. TaskRecord\.from_frame"),
        ([pd.DataFrame({"x": [1]})], TypeError, r"Got <list of 1>\. TaskRecord\.from_frame"),
        ({"a": pd.DataFrame({"x": [1]})}, TypeError, r"got <dict of 1>\. TaskRecord\.from_frame"),
    ],
)
def test_what_is_no_source(sources: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        TSTSampler(sources, seed=0)


def test_a_memory_may_be_left_out_where_it_is_not_required() -> None:
    assert AutoSampler(None, seed=0).seed == 0
    for make in (TSTSampler, TSTSampler.paper, PMFSampler, BlendedSampler):
        with pytest.raises(TypeError, match=r"memory must be optuna studies .* Got None"):
            make(seed=0)


def test_the_memory_was_called_sources_before() -> None:
    old: Any = {"sources": earlier(2), "seed": 0}
    for make in (TSTSampler, TSTSampler.paper):
        found = [
            search(sampler, bowl, 3).trials
            for sampler in (make(**old), make(memory=earlier(2), seed=0))
        ]
        assert [t.params for t in found[0]] == [t.params for t in found[1]]
    with pytest.raises(TypeError, match="takes no argument sources"):
        TSTSampler(earlier(2), **old)


def test_several_storages_are_one_memory(tmp_path: Path) -> None:
    addresses = []
    for seed, name in enumerate("ab"):
        addresses.append(f"sqlite:///{tmp_path / name}.db")
        sampler = optuna.samplers.RandomSampler(seed=seed)
        study = optuna.create_study(storage=addresses[-1], study_name=name, sampler=sampler)
        study.optimize(bowl, 6)
    storage = optuna.storages.RDBStorage(addresses[1])
    for memory in (addresses, [addresses[0], storage]):
        assert set(losses_of(read_sources(memory))) == {"a", "b"}
    assert set(losses_of(read_sources([*addresses, studied("c", bowl, n=6, seed=5)]))) == {
        "a",
        "b",
        "c",
    }


def test_a_damaged_file_is_named_by_its_address_too(tmp_path: Path) -> None:
    path = tmp_path / "damaged.db"
    path.write_bytes(b"no database" * 1000)
    for sources in (str(path), f"sqlite:///{path}"):
        with pytest.raises(StoreError, match="is not an SQLite file, or it is damaged"):
            TSTSampler(sources)


def test_studies_mixed_with_others_and_of_several_objectives() -> None:
    with pytest.raises(TypeError, match="Expected optuna studies"):
        TSTSampler([studied("a", bowl, n=2), 3])
    several = optuna.create_study(directions=["minimize", "maximize"])
    with pytest.raises(ValueError, match="2 objectives"):
        TSTSampler(several)


def test_a_study_of_several_objectives_does_not_spoil_its_storage(
    tmp_path: Path, log: pytest.LogCaptureFixture
) -> None:
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    optuna.create_study(
        study_name="two", storage=storage, directions=["minimize", "maximize"]
    ).optimize(lambda trial: (trial.suggest_float("x", 0, 1), 1.0), n_trials=2)
    study = optuna.create_study(study_name="one", storage=storage)
    study.add_trials(studied("one", bowl, n=5).trials)
    learner = optuna.create_study(sampler=TSTSampler(storage, seed=0))
    learner.optimize(bowl, n_trials=2)
    assert set(explain(learner.trials[1]).shares or {}) == {"one"}
    assert "'two' is left out: it has several objectives" in log.text


def test_what_tells_nothing_is_left_out_and_said_so(log: pytest.LogCaptureFixture) -> None:
    good = studied("good", bowl)
    again = optuna.create_study(study_name="copied")
    again.add_trials(good.trials)
    failing = optuna.create_study(study_name="failing")
    for value in (1.0, float("inf"), float("-inf"), None):
        trial = failing.ask({"x": FloatDistribution(-5, 5)})
        state = optuna.trial.TrialState.FAIL if value is None else None
        failing.tell(trial, value, state=state)
    bad = [
        studied("one", bowl, n=1),
        studied("constant", lambda t: 0.0 * bowl(t)),
        optuna.create_study(study_name="empty"),
        failing,
        again,
        good,
    ]
    sources = read_sources([good, *bad])
    assert sources.memory.names == ("good",)
    assert losses_of(sources)["good"] == [t.value for t in good.trials]  # once, not twice
    told = "\n".join(r.message for r in log.records if r.levelno == logging.WARNING)
    for name, reason in (
        ("good", "the same study was given before"),
        ("one", "1 complete trial of"),
        ("constant", "all its losses are 0"),
        ("empty", "0 complete trials"),
        ("failing", "1 complete trial of"),
        ("copied", "the same runs as good"),
    ):
        assert any(name in line and reason in line for line in told.splitlines()), name
    with pytest.raises(ValueError, match="one: 1 complete trial of"):
        TSTSampler(bad[:3])


def test_a_memory_is_cleaned_likewise(log: pytest.LogCaptureFixture) -> None:
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    runs = [{"x": 0.1}, {"x": 0.7}, {"x": 0.9}]
    records = [
        TaskRecord("good", runs, np.array([1.0, 2.0, np.nan]), space=space),
        TaskRecord("flat", runs, np.array([1.0, 1.0, np.nan]), space=space),
        TaskRecord(
            "pruned",
            runs,
            np.array([1.0, 2.0, 3.0]),
            status=np.array([Status.PRUNED, Status.PRUNED, Status.COMPLETE]),
            space=space,
        ),
    ]
    for known in (records, MetaDataset.from_records(records)):
        assert read_sources(known).memory.names == ("good",)
    assert sum("2 of 3 sources are left out" in r.message for r in log.records) == 2


def test_a_declared_space_without_common_choices_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="No run of the memory lies"):
        TSTSampler(
            studied("a", lambda t: len(t.suggest_categorical("kind", ["svm", "tree"]))),
            search_space={"kind": CategoricalDistribution(["mlp", "forest"])},
        )


@pytest.mark.parametrize("memory", ["auto", "svm"])
def test_a_memory_is_aligned_to_a_declared_space_once(
    memory: str, monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture
) -> None:
    """When the sampler is made; but for a study that is a task of it, which is left out."""
    aligned: list[Any] = []

    def opening(*of: Any, **options: Any) -> MetaDataset:
        aligned.append(options["exclude"])
        return open_memory(*of, **options)

    monkeypatch.setattr(memories, "open_memory", opening)
    wide = FloatDistribution(1e-3, 1e3, log=True)
    space = {"C": wide, "gamma": wide, "coef0": FloatDistribution(0, 1)}

    def objective(trial: optuna.Trial) -> float:
        return sum(trial.suggest_float(n, d.low, d.high, log=d.log) for n, d in space.items())

    sampler = AutoSampler(memory, search_space=space, seed=0)
    for _ in range(2):
        search(sampler, objective, 2)
    assert len(aligned) == 1
    said = [r.message for r in log.records if r.message.startswith("coef0 ")]
    assert said and len(set(said)) == len(said)
    search(sampler, objective, 1, study_name="iris")
    assert len(aligned) == 2 and "iris" in aligned[1] and "iris" not in aligned[0]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"bandwidth": 0.0}, "bandwidth"),
        ({"distance": "euclid"}, "distance"),
        ({"distance": "meta_features"}, "meta_features"),
        ({"n_candidates": 0}, "n_candidates"),
        ({"max_rows": 1}, "max_rows"),
        ({"n_startup_trials": -1}, "n_startup_trials"),
        ({"failed_trials": "hide"}, "failed_trials"),
        ({"task": "task 0"}, "the task itself"),
    ],
)
def test_illegal_arguments(arguments: dict[str, Any], match: str) -> None:
    for make in (TSTSampler, TSTSampler.paper):
        with pytest.raises(ValueError, match=match):
            make(earlier(1), **arguments)


def test_running_times_are_not_weighed() -> None:
    for make in (TSTSampler, PMFSampler, BlendedSampler):
        instead = r"takes no argument cost \(cost: AutoSampler\(memory=..., cost=...\) learns"
        with pytest.raises(TypeError, match=instead):
            make(earlier(1), cost="duration")


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution")
@pytest.mark.parametrize("choices", [[(64,), (64, 64)], [[64], [64, 64]]])
def test_choices_may_be_lists(choices: Any, tmp_path: Path) -> None:
    """A storage on disk turns tuples into lists, which have no hash."""

    def objective(trial: optuna.Trial) -> float:
        layers = trial.suggest_categorical("layers", choices)
        return len(layers) + trial.suggest_float("rate", 0, 1)

    address = f"sqlite:///{tmp_path / 'studies.db'}"
    old = optuna.create_study(storage=address, sampler=optuna.samplers.RandomSampler(seed=0))
    old.optimize(objective, n_trials=12)
    study = optuna.create_study(sampler=TSTSampler(address, seed=1))
    study.optimize(objective, n_trials=6)
    assert study.best_trial.params["layers"] == choices[0]
    assert set(source_shares(study)) >= {1, 2}
