"""The journal of ``build_memory.py``: finished configurations, one JSON object a line.

A line is appended when a configuration has been trained, so an interruption loses only unfinished
trainings. ``pack`` converts the lines to the files that come with the package.
"""

from __future__ import annotations

import fcntl
import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from memory_data import DATA_KEY, load
from memory_learners import LEARNERS, METRICS, configurations, design_key, space
from memory_sources import SOURCES
from memory_training import Record
from tqdm.auto import tqdm

from automl_plugins.meta import TaskRecord, meta_features
from automl_plugins.meta.files import StoredSearch, write_searches
from automl_plugins.records.trial import Status

JOURNAL = Path("build/memory")  # folder
_STATUS = {"complete": Status.COMPLETE, "timeout": Status.FAILED, "failed": Status.FAILED}
_PRESET = 6  # of xz: the files come with the package
_DIGITS = 5  # significant digits of losses and meta-features; folds have at most 2 000 rows
Key = tuple[str, str, int]  # learner, data set, index of the configuration


def key_of(learner: str) -> str:
    """A fingerprint of the learner's design, the rows and the folds."""
    return f"{design_key(learner)}-{DATA_KEY}"


def read(folder: Path) -> dict[Key, Record]:
    """The finished configurations; those of another design and torn lines are skipped."""
    found: dict[Key, Record] = {}
    path = folder / "journal.jsonl"
    if not path.exists():
        return found
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            record = json.loads(line)
            key = (record["learner"], record["data"], int(record["index"]))
            if record["design"] == key_of(key[0]):
                found[key] = record
        except (ValueError, KeyError, TypeError):
            continue  # a torn line, the header of a run, or another design
    return found


@contextmanager
def writing(folder: Path) -> Iterator[IO[str]]:
    """The journal, open for appending by this process only.

    Raises:
        BlockingIOError: If another process is writing to it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "journal.jsonl").open("a+", encoding="utf-8", errors="replace") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(f"{folder} is being written to by another run.") from None
        file.seek(0)
        if not ("\n" + file.read()).endswith("\n"):
            file.write("\n")  # ends the torn line
        yield file


def append(file: IO[str], record: Record) -> None:
    """Append a line, and flush it to the operating system."""
    file.write(json.dumps(record) + "\n")
    file.flush()


def status(journal: Path = JOURNAL) -> None:
    """Print the progress, and by learner outcomes, CPU seconds and the most frequent failures."""
    done = read(journal)
    n_data = Counter(source.task for source in SOURCES.values())
    wanted = sum(len(learner.indices) * n_data[learner.task] for learner in LEARNERS.values())
    full = finished(done, LEARNERS)
    lines = [
        f"{len(done)} of {wanted} configurations ({100 * len(done) / wanted:.1f} %), "
        f"{len(full)} of {len(SOURCES)} data sets with all learners",
        f"{'learner':20} {'complete':>9} {'timeout':>8} {'failed':>7} {'CPU s':>9}",
    ]
    for learner in LEARNERS:
        records = [record for key, record in done.items() if key[0] == learner]
        outcomes = Counter(record["status"] for record in records)
        seconds = sum(record["seconds"] or 0.0 for record in records)
        counts = [outcomes[outcome] for outcome in ("complete", "timeout", "failed")]
        lines.append(f"{learner:20} {counts[0]:9} {counts[1]:8} {counts[2]:7} {seconds:9.0f}")
        messages = Counter(r["message"] for r in records if r["status"] == "failed")
        lines += [f"    {count} x {message}" for message, count in messages.most_common(3)]
    print("\n".join(lines))


# --- the files that come with the package ----------------------------------------------------


def pack(
    learners: Sequence[str] = tuple(LEARNERS),
    journal: Path = JOURNAL,
    out: Path = Path("automl_plugins/data"),
) -> None:
    """Write the files that come with the package, one for each learner that was trained."""
    done = read(journal)
    for learner in learners:
        complete = [name for name in finished(done, [learner]) if not SOURCES[name].outside]
        described = {task: describe(task, journal) for task in tqdm(complete, learner)}
        if described:
            path = out / f"{learner}.json.xz"
            searches = [StoredSearch(record) for record in records(done, learner, described)]
            write_searches(path, searches, preset=_PRESET)
            print(f"{path}: {len(described)} tasks, {path.stat().st_size / 1024:.0f} KiB")


def finished(done: Mapping[Key, Record], learners: Collection[str]) -> list[str]:
    """The data sets on which all learners of their task have been trained."""
    found = []
    for name, source in SOURCES.items():
        own = [learner for learner in learners if LEARNERS[learner].task == source.task]
        if own and all((le, name, i) in done for le in own for i in LEARNERS[le].indices):
            found.append(name)
    return found


def records(
    done: Mapping[Key, Record], learner: str, described: Mapping[str, dict[str, float]]
) -> Iterator[TaskRecord]:
    """A record for each metric and each data set in ``described``."""
    own, common = LEARNERS[learner], configurations(learner)
    for metric in METRICS[own.task]:
        for task, features in described.items():
            runs = [done[learner, task, i] for i in own.indices]
            yield TaskRecord(
                task,
                [*common, *(run["values"] for run in runs[len(common) :])],
                _round([run.get(metric) for run in runs]),
                seconds=_round([run["seconds"] for run in runs]),
                status=np.array([_STATUS[run["status"]] for run in runs], dtype=np.int64),
                space=space(learner),
                meta_features=features,
                tags={"metric": metric, "family": SOURCES[task].family},
            )


def describe(task: str, folder: Path) -> dict[str, float]:
    """Meta-features of a data set; computed once, then read from the folder."""
    path = folder / "meta_features" / f"{task.replace('/', '-')}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        found = meta_features(*load(task), task=SOURCES[task].task)
        known = {name: float(f"{v:.{_DIGITS}g}") for name, v in found.items() if np.isfinite(v)}
        path.write_text(json.dumps(known, indent=0), encoding="utf-8")
    return dict(json.loads(path.read_text(encoding="utf-8")))


def _round(values: list[float | None]) -> np.ndarray:
    return np.array([math.nan if v is None else float(f"{v:.{_DIGITS}g}") for v in values])
