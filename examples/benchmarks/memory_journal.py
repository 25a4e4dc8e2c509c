"""The journal of ``build_memory.py``: finished configurations, one JSON object a line.

Not an example by itself. A line is appended when a configuration has been trained, so a stop at
any time loses what was under way and nothing else. ``results`` makes matrices of the lines.
"""

from __future__ import annotations

import fcntl
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
from ConfigSpace import ConfigurationSpace
from memory_data import DATA_KEY, SOURCES
from memory_evaluation import METRICS, Record
from memory_learners import LEARNERS, N_CONFIGURATIONS, Values, configurations, design_key, space

FloatArray = npt.NDArray[np.float64]
Key = tuple[str, str, int]  # learner, data set, index of the configuration


def key_of(learner: str) -> str:
    """What a result depends on besides its ``Key``: the learner's design, rows and folds."""
    return f"{design_key(learner)}-{DATA_KEY}"


def read(folder: Path) -> dict[Key, Record]:
    """The finished configurations; those of another design and torn lines are passed over."""
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
            continue  # torn when the machine went down, the header of a run, or another design
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
    """One line, in the hands of the operating system when this returns."""
    file.write(json.dumps(record) + "\n")
    file.flush()


# --- results ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Results:
    """The results of one learner, as matrices of data sets (n) by configurations (m).

    Attributes:
        learner: Its name.
        space: Its search space.
        configurations: The m configurations; inactive hyperparameters are absent.
        tasks: Names of the n data sets of which all configurations are finished.
        families: Their families.
        losses: By metric, (n, m); NaN where the status is not "complete".
        seconds: CPU seconds (n, m), lower bounds where the status is "timeout", NaN if unknown.
        status: "complete", "timeout" or "failed", (n, m).
    """

    learner: str
    space: ConfigurationSpace
    configurations: tuple[Values, ...]
    tasks: tuple[str, ...]
    families: tuple[str, ...]
    losses: dict[str, FloatArray]
    seconds: FloatArray
    status: npt.NDArray[np.str_]


def results(folder: Path) -> Iterator[Results]:
    """The results of each learner so far; X and y of a task are ``memory_data.load(task)``."""
    done = read(folder)
    indices = range(N_CONFIGURATIONS)
    for learner in LEARNERS:
        tasks = [n for n in SOURCES if all((learner, n, i) in done for i in indices)]
        records = [[done[learner, name, i] for i in indices] for name in tasks]

        def matrix(column: str, records: list[list[Record]] = records) -> FloatArray:
            cells = [[record[column] for record in row] for row in records]
            return np.array(cells, dtype=np.float64).reshape(-1, N_CONFIGURATIONS)  # None: NaN

        yield Results(
            learner,
            space(learner),
            configurations(learner),
            tuple(tasks),
            tuple(SOURCES[name].family for name in tasks),
            {metric: matrix(metric) for metric in METRICS},
            matrix("seconds"),
            np.array([[r["status"] for r in row] for row in records], dtype=np.str_).reshape(
                -1, N_CONFIGURATIONS
            ),
        )


def status(folder: Path) -> str:
    """How far it is, and for each learner: outcomes, CPU seconds, and what failed most often."""
    done = read(folder)
    wanted = len(LEARNERS) * len(SOURCES) * N_CONFIGURATIONS
    full = [
        name
        for name in SOURCES
        if all((le, name, i) in done for le in LEARNERS for i in range(N_CONFIGURATIONS))
    ]
    lines = [
        f"{len(done)} of {wanted} configurations ({100 * len(done) / wanted:.1f} %), "
        f"{len(full)} of {len(SOURCES)} data sets with all learners",
        f"{'learner':20} {'complete':>9} {'timeout':>8} {'failed':>7} {'CPU s':>9}  spread",
    ]
    for learner in LEARNERS:
        records = [record for key, record in done.items() if key[0] == learner]
        outcomes = Counter(record["status"] for record in records)
        seconds = sum(record["seconds"] or 0.0 for record in records)
        counts = [outcomes[outcome] for outcome in ("complete", "timeout", "failed")]
        lines.append(
            f"{learner:20} {counts[0]:9} {counts[1]:8} {counts[2]:7} {seconds:9.0f}  "
            f"{_spread(records):.3f}"
        )
        messages = Counter(r["message"] for r in records if r["status"] == "failed")
        lines += [f"    {count} x {message}" for message, count in messages.most_common(3)]
    return "\n".join(lines)


def _spread(records: Sequence[Record]) -> float:
    """Median over data sets of the standard deviation of the configurations' error."""
    errors: dict[str, list[float]] = {}
    for record in records:
        if record["error"] is not None:
            errors.setdefault(record["data"], []).append(record["error"])
    return float(np.median([np.std(e) for e in errors.values()])) if errors else float("nan")
