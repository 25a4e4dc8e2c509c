"""Files of recorded runs: exact, compact, all or nothing."""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ConfigSpace import (
    Beta,
    Categorical,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    Float,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    InCondition,
    Integer,
    Normal,
    OrConjunction,
)
from hypothesis import given
from hypothesis import strategies as st
from known_runs import assert_same, write_records

from automl_plugins.meta import TaskRecord, files
from automl_plugins.meta.files import (
    VERSION,
    read_records,
)
from automl_plugins.meta.plain import parse_space, plain_item, plain_space
from automl_plugins.records.trial import Status

finite = st.floats(allow_nan=False, allow_infinity=False)
values = st.one_of(finite, st.integers(), st.booleans(), st.none(), st.text())


def full_space() -> ConfigurationSpace:
    space = ConfigurationSpace("full")
    kind = Categorical("kind", ["a", True, 1.5, None, 3], weights=[1, 2, 3, 4, 5])
    number = Integer("number", (1, 50), log=True)
    gamma = Float("gamma", (1e-5, 8.123), log=True, meta={"unit": "1"})
    space.add(kind, number, gamma, Constant("fixed", "x"))
    space.add(Categorical("order", [1, 2, 4, 8], ordered=True))
    space.add(Float("normal", (0.1, 10), distribution=Normal(1, 2), default=0.3))
    space.add(Integer("beta", (1, 9), distribution=Beta(1.5, 2)))
    space.add(
        OrConjunction(InCondition(gamma, kind, ["a", 1.5]), EqualsCondition(gamma, number, 3))
    )
    space.add(
        ForbiddenAndConjunction(ForbiddenEqualsClause(number, 2), ForbiddenEqualsClause(kind, 3))
    )
    return space


def record(name: str = "iris", **changes: Any) -> TaskRecord:
    given: dict[str, Any] = {
        "configurations": [{"kind": "a", "x": 1}, {"x": 1.0}, {"kind": "a", "x": 1}, {}],
        "losses": np.array([0.1, np.nan, 1 / 3, -0.0]),
        "seconds": np.array([1.0, 2.0, np.nan, 0.0]),
        "status": np.array([Status.COMPLETE, Status.FAILED, Status.PRUNED, Status.COMPLETE]),
        "budget": np.array([np.nan, np.nan, 3.0, np.nan]),
        "times": np.array([1.7e9, np.nan, 1.7e9 + 1e-6, 0.0]),
        "space": full_space(),
        "meta_features": {"NumberOfInstances": 150.0, "Skewness": np.nan},
        "tags": {"source": "été"},
        "framework": "optuna",
        "seed": 2**70,
    }
    return TaskRecord(name, **given | changes)


def runs_of(*values: Any, name: str = "x", **more: Any) -> TaskRecord:
    return TaskRecord("iris", [{name: value} for value in values], np.zeros(len(values)), **more)


@pytest.mark.parametrize("name", ["runs.json", "runs.json.xz"])
def test_everything_comes_back(tmp_path: Path, name: str) -> None:
    empty = TaskRecord("empty", [], np.empty(0), meta_features={"n": 1.0})
    alike = runs_of(1, 1.0, True, 0, 0.0, -0.0, False, "1", None)
    failed = TaskRecord("failed", [{"x": 1}, {"x": 2}], np.full(2, np.nan))
    records = [record(), record("wine", space=None, seed=None), empty, alike, failed]
    write_records(tmp_path / name, records)
    found = read_records(tmp_path / name)
    for left, right in zip(records, found, strict=True):
        assert_same(left, right)
    assert found[0].space == full_space()
    assert [path.name for path in tmp_path.iterdir()] == [name]


@given(
    st.lists(
        st.tuples(st.dictionaries(st.text(min_size=1), values, max_size=3), finite), max_size=6
    )
)
def test_values_come_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[dict[str, Any], float]]
) -> None:
    path = tmp_path_factory.mktemp("files") / "runs.json"
    configurations = [dict(sorted(c.items())) for c, _ in rows]
    left = TaskRecord("t", configurations, np.array([loss for _, loss in rows]))
    write_records(path, [left])
    assert_same(left, read_records(path)[0])


def test_what_repeats_is_written_once(tmp_path: Path) -> None:
    write_records(tmp_path / "a.json", [record(), record("wine"), record("digits")])
    document = json.loads((tmp_path / "a.json").read_text(), parse_constant=pytest.fail)
    assert len(document["spaces"]) == 1
    assert sum(block["n"] for block in document["configurations"]) == 3
    places = [entry["configurations"] for entry in document["records"]]
    assert places == [[0, 1, 0, 2]] * 3


def test_numpy_scalars_become_builtins_and_nan_is_inactive(tmp_path: Path) -> None:
    given = (np.float64(0.1), np.int32(3), np.bool_(True), np.str_("x"), np.float32(0.1))
    write_records(tmp_path / "a.json", [runs_of(*given, float("nan"))])
    *found, last = read_records(tmp_path / "a.json")[0].configurations
    assert [(type(c["x"]), c["x"]) for c in found] == [
        (float, 0.1),
        (int, 3),
        (bool, True),
        (str, "x"),
        (float, 0.1),
    ]
    assert last == {}
    assert plain_item(np.float32(0.1)) == 0.1


def test_a_text_of_numpy_names_a_hyperparameter(tmp_path: Path) -> None:
    name: Any = np.str_("x")
    write_records(tmp_path / "a.json", [TaskRecord("t", [{name: 1}], np.zeros(1))])
    ((found,),) = (record.configurations for record in read_records(tmp_path / "a.json"))
    assert found == {"x": 1} and [*map(type, found)] == [str]


def space_of_choices(*choices: Any) -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(Categorical("penalty", choices))
    return space


@pytest.mark.parametrize(
    ("wrong", "error", "told"),
    [
        (runs_of(0, (10, 20)), TypeError, r"run 1: x=\(10, 20\) is a tuple"),
        (runs_of([1]), TypeError, "is a list"),
        (runs_of(np.zeros(2)), TypeError, "is a ndarray"),
        (runs_of(float("inf")), ValueError, "x=inf must be finite"),
        (runs_of(1, 10**4300), ValueError, "'iris', run 1: x has too many digits"),
        (runs_of(1, name=3), TypeError, "3 names a hyperparameter"),  # type: ignore[arg-type]
        (runs_of(1, meta_features={"n": np.inf}), ValueError, "n must be finite"),
        (runs_of(1, meta_features={"n": "many"}), TypeError, "must be a number"),
        (runs_of(1, tags={"a": 1}), TypeError, "must be text, got 1"),
        (runs_of(1, 1, budget=np.array([1, np.inf])), ValueError, "budget .* row 1"),
        (runs_of(1, space=space_of_choices((1, 2), (3,))), TypeError, r"the choice \(1, 2\)"),
        (runs_of(1, space=space_of_choices(1.0, np.inf)), ValueError, "choice inf, .* as text"),
        (runs_of(1, space=space_of_choices(1.0, np.nan)), ValueError, "choice nan, .* as text"),
        (record(seed=-1), ValueError, "seed must be an integer >= 0, .*got -1"),
        (record("x" * 501), ValueError, "name of a task must have 1 to 500 .*, got 501"),
        (record(framework="a\0b"), ValueError, "framework has a character that cannot be stored"),
    ],
)
def test_a_file_is_written_in_full_or_not_at_all(
    tmp_path: Path, wrong: TaskRecord, error: type[Exception], told: str
) -> None:
    path = tmp_path / "a.json"
    write_records(path, [record()])
    before = path.read_bytes()
    with pytest.raises(error, match=told):
        write_records(path, [record("wine"), wrong])
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["a.json"]


def test_a_file_is_written_fast_unless_it_is_to_be_small(tmp_path: Path) -> None:
    usual, small = tmp_path / "usual.json.xz", tmp_path / "small.json.xz"
    write_records(usual, [record()])
    files.write_searches(small, [files.StoredSearch(record())], preset=6)
    text = lzma.decompress(usual.read_bytes())
    assert usual.read_bytes() == lzma.compress(text, preset=1)
    assert small.read_bytes() == lzma.compress(text, preset=6)


def test_a_path_may_begin_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(tmp_path))
    write_records("~/a.json", [record()])
    assert (tmp_path / "a.json").exists()
    assert_same(record(), read_records("~/a.json")[0])


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"a.json cannot be written: .* no folder .*b\.$"):
        write_records(tmp_path / "b" / "a.json", [record()])


def test_a_failing_disk_leaves_no_half_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    write_records(path, [record()])

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_records(path, [record("wine")])
    assert read_records(path)[0].name == "iris"
    assert [found.name for found in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize(
    ("limit", "value", "told"),
    [("LARGEST", 2**20, "more than 1 MB of JSON"), ("_PARTS", 10**5, "more than 100000 lists")],
)
def test_what_could_not_be_read_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, told: str
) -> None:
    path, large = tmp_path / "a.json.xz", runs_of("[" * 2**20)
    write_records(path, [large])
    with monkeypatch.context() as less:
        less.setattr(files, limit, value)
        with pytest.raises(
            ValueError, match=rf"a\.json\.xz is too large: it has {told}"
        ) as refused:
            read_records(path)
        assert "damaged" not in str(refused.value)
        with pytest.raises(
            ValueError, match=rf"was not written, .* {told}.* some tasks at a time"
        ):
            write_records(path, [large])
    assert_same(large, read_records(path)[0])
    assert [found.name for found in tmp_path.iterdir()] == ["a.json.xz"]


def test_a_cut_or_changed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json.xz"
    write_records(path, [record()])
    whole = path.read_bytes()
    cut = [whole[:length] for length in range(0, len(whole), 37)]
    changed = [
        whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]
        for place in range(len(whole) // 3, len(whole), 97)
    ]
    for content, told in [(c, "damaged or cut short") for c in cut] + [
        (c, "damaged") for c in changed
    ]:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=told):
            read_records(path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{}", "does not say 'automl_plugins records'"),
        ("[1, 2]", "does not say"),
        ('{"x": NaN}', "NaN is not JSON"),
        ("kernel,loss\nrbf,0.1", "not a file of recorded runs"),
        ("", "not a file of recorded runs"),
        ("\udcff", "not a file of recorded runs"),
    ],
)
def test_a_foreign_file_is_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=told):
        read_records(path)


@pytest.mark.parametrize(
    ("document", "entry", "told"),
    [
        ({"version": VERSION + 1}, {}, f"has version {VERSION + 1} .* a newer automl_plugins"),
        ({"spaces": []}, {}, "is damaged: IndexError"),
        ({}, {"configurations": [-1] * 4}, "is damaged"),
        ({}, {"losses": [1.0]}, "is damaged"),
        ({}, {"task": None, "space": "x"}, "is damaged"),
    ],
)
def test_version_and_inner_damage(
    tmp_path: Path, document: dict[str, Any], entry: dict[str, Any], told: str
) -> None:
    path = tmp_path / "a.json.xz"
    write_records(path, [record()])
    found = json.loads(lzma.decompress(path.read_bytes()))
    found["records"][0] |= entry
    path.write_text(json.dumps(found | document))
    with pytest.raises(ValueError, match=told):
        read_records(path)


# --- files of others ----------------------------------------------------------------------


def changed(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """A file with one thing changed, as somebody may write it: without a digest."""
    write_records(path, [record()])
    document = json.loads(path.read_bytes())
    del document["digest"]
    change(document)
    path.write_text(json.dumps(document))


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("a.json", "a.json.xz"):
        path = tmp_path / name
        write_records(path, [record()])
        whole, known = path.read_bytes(), read_records(path)
        for place in rng.choice(len(whole), 150, replace=False):
            flipped = bytearray(whole)
            flipped[place] ^= 1 << int(rng.integers(8))
            path.write_bytes(flipped)
            try:
                found = read_records(path)
            except ValueError as error:
                assert "damaged" in str(error) or "recorded runs" in str(error)
            else:  # the digest itself was hit so that it is none; what it is of is whole
                assert place < 50
                for left, right in zip(known, found, strict=True):
                    assert_same(left, right)


def test_a_file_changed_on_purpose_is_read_without_its_digest(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_records(path, [record()])
    path.write_text(path.read_text().replace('"task":"iris"', '"task":"rose"'))
    with pytest.raises(ValueError, match='remove the "digest" at its beginning'):
        read_records(path)
    changed(path, lambda document: document["records"][0].update(task="rose"))
    assert read_records(path)[0].name == "rose"


def chain(n: int) -> dict[str, Any]:
    """A space of n parameters, each conditional on the one before."""
    known: dict[str, Any] = json.loads(json.dumps(plain_space(space_of_choices("a", "b"))))
    (first,) = known["hyperparameters"]
    known["hyperparameters"] = [{**first, "name": f"k{i}"} for i in range(n)]
    known["conditions"] = [
        {"child": f"k{i + 1}", "parent": f"k{i}", "type": "EQ", "value": "a"} for i in range(n - 1)
    ]
    return known


def nested(depth: int) -> list[Any]:
    return [nested(depth - 1)] if depth else []


NOTHING = {"name": "kernel", "values": [], "type": "IN"}
STRANGE = {"type": "constant", "name": "c", "value": {"a": [1]}, "meta": None}

HOSTILE: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda d: d["configurations"].append({"names": [], "columns": [], "n": 10**12}), "without a"),
    (lambda d: d["configurations"][0]["columns"].__setitem__(0, [[1], {}]), "else than values"),
    (lambda d: d["configurations"][0].update(names=[1]), "else than values"),
    (lambda d: d["records"][0].update(task=["iris"]), "name of a task must be text"),
    (lambda d: d["records"][0].update(task="a\0b"), "cannot be stored"),
    (lambda d: d["records"][0].update(tags={"a": 1}), "must be text, got 1"),
    (lambda d: d["records"][0].update(meta_features={"a": "1"}), "must be a number"),
    (lambda d: d["records"][0].update(framework={}), "framework must be text"),
    (lambda d: d["records"][0].update(search="s", keys=[{}]), "must be text"),
    (lambda d: d["records"][0].update(losses=[[1.0]] * 4), "damaged"),
    (lambda d: d["records"][0].update(losses=[10**400] * 4), "damaged: OverflowError"),
    (lambda d: d["records"][0].update(meta_features={"a": 10**400}), "too large for a float"),
    (lambda d: d["spaces"].append(chain(60)), "k11, k12, k13 are nested deeper than 10"),
    (lambda d: d["spaces"][0]["hyperparameters"][1].update(choices=[["x"]]), "damaged"),
    (lambda d: d["spaces"][0]["hyperparameters"][0].update(type="os.system"), "damaged"),
    (lambda d: d["spaces"][0]["hyperparameters"][1].update(choices=[]), "has no choice"),
    (lambda d: d["spaces"][0]["conditions"][0].update(type="IN", values=[]), "has no value"),
    (
        lambda d: d["spaces"][0].update(forbiddens=[{"type": "AND", "clauses": [NOTHING]}]),
        "has no value",
    ),
    (lambda d: d["spaces"][0].update(hyperparameters=[STRANGE], conditions=[]), "illegal type"),
    (lambda d: d.update(more=nested(400)), ""),
]


@pytest.mark.parametrize(("change", "told"), HOSTILE)
def test_what_is_in_a_file_is_checked(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], told: str
) -> None:
    path = tmp_path / "a.json"
    changed(path, change)
    if not told:  # what no release knows is left alone
        assert len(read_records(path)) == 1
        return
    with pytest.raises(ValueError, match=told):
        read_records(path)


@pytest.mark.parametrize("kind", ["exact_categorical", "exact_ordinal", "ordinal"])
def test_a_parameter_without_choices_is_refused(kind: str) -> None:
    item: dict[str, Any] = {
        "name": "k",
        "type": kind,
        "choices": [],
        "sequence": [],
        "weights": None,
    }
    space = {**chain(1), "hyperparameters": [item]}
    with pytest.raises(ValueError, match="'k' has no choice"):
        parse_space(space)


def test_conditions_of_ten_levels_come_back(tmp_path: Path) -> None:
    write_records(tmp_path / "a.json", [record(space=parse_space(chain(11)))])
    assert len(read_records(tmp_path / "a.json")[0].space or ()) == 11


def packed(size: int, piece: bytes, head: bytes = b"") -> bytes:
    """``size`` times a piece, compressed; never all of it in memory."""
    packer = lzma.LZMACompressor(preset=0)
    parts = [packer.compress(head)]
    parts += [packer.compress(piece * 2**20) for _ in range(size >> 20)]
    return b"".join([*parts, packer.flush()])


# A file, and what is said of it, where 16 MB of JSON are allowed.
BOMBS: dict[str, tuple[Callable[[], bytes], str]] = {
    "zeros": (lambda: packed(2**26, bytes(1)), "it does not hold JSON"),
    "numbers": (lambda: packed(9 * 2**20, b"1,", b'{"a":['), "more than 16 MB of JSON"),
    "plain": (lambda: b'{"a":"' + b"a" * 2**24 + b'"}', "more than 16 MB of JSON"),
    "deep": (lambda: b'{"a":' + b"[" * 10**6, "recursion"),
    "lists": (lambda: b'{"a":[' + b"[]," * 4_500_000 + b"[]]}", "more than 4194304 lists"),
    "dictionary": (
        lambda: lzma.compress(
            b"{}", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1_500_000_000}]
        ),
        "Memory usage limit",
    ),
    "more": (lambda: lzma.compress(b"{}") + b"more", "something follows"),
}

READ = """
import resource, sys
from automl_plugins.meta import files
files.LARGEST = 2**24
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[1:]:
    try:
        files.read_records(path)
    except ValueError as error:
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024, error)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kB on Linux")
def test_bombs_are_refused_in_bounded_memory(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.json.xz" for name in BOMBS]
    for path, (make, _) in zip(paths, BOMBS.values(), strict=True):
        path.write_bytes(make())
    command = [sys.executable, "-c", READ, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for line, (_, told) in zip(done.stdout.splitlines(), BOMBS.values(), strict=True):
        megabytes, said = line.split(" ", 1)
        assert ("is too large" if "more than" in told else "or it is damaged") in said
        assert told in said
        assert int(megabytes) < 100, line
