"""The journal of ``build_memory.py`` as the files that come with the package.

Not an example by itself. One file for each learner; a data set has a record for each metric.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from memory_data import load
from memory_journal import Results, results
from tqdm.auto import tqdm

from automl_plugins.meta import TaskRecord, meta_features
from automl_plugins.meta.files import write_records
from automl_plugins.records.trial import Status

_STATUS = {"complete": Status.COMPLETE, "timeout": Status.FAILED, "failed": Status.FAILED}
_DIGITS = 5  # significant ones of losses and meta-features; folds have 2 000 rows at most


def pack(journal: Path, out: Path) -> None:
    """Write a file for each learner to the folder ``out``."""
    for found in results(journal):
        described = {task: describe(task, journal) for task in tqdm(found.tasks, found.learner)}
        path = out / f"{found.learner}.json.xz"
        write_records(path, records(found, described))
        print(f"{path}: {len(found.tasks)} tasks, {path.stat().st_size / 1024:.0f} KiB")


def records(found: Results, described: dict[str, dict[str, float]]) -> Iterator[TaskRecord]:
    """A record for each data set and metric."""
    for metric, losses in found.losses.items():
        for t, (task, family) in enumerate(zip(found.tasks, found.families, strict=True)):
            yield TaskRecord(
                task,
                found.configurations,
                _rounded(losses[t]),
                seconds=_rounded(found.seconds[t]),
                status=np.array([_STATUS[s] for s in found.status[t]], dtype=np.int64),
                space=found.space,
                meta_features=described[task],
                tags={"metric": metric, "family": family},
            )


def describe(task: str, folder: Path) -> dict[str, float]:
    """Meta-features of a data set; computed once, then read from the folder."""
    path = folder / "meta_features" / f"{task}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        X, y = load(task)
        found = meta_features(X, y, task="classification")
        known = {name: float(f"{v:.{_DIGITS}g}") for name, v in found.items() if np.isfinite(v)}
        path.write_text(json.dumps(known, indent=0), encoding="utf-8")
    return dict(json.loads(path.read_text(encoding="utf-8")))


def _rounded(values: np.ndarray) -> np.ndarray:
    return np.array([float(f"{v:.{_DIGITS}g}") for v in values])
