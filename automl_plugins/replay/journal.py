"""A file of finished runs that an interrupted replay goes on with.

``runs.csv`` is the tidy frame, ``runs.csv.journal`` has the settings in its first line and, for
each run that was written in full, a line with its key and the length of the file after it.
Whatever stands behind the last such length is a run cut short by a crash.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

Key = tuple[str, str, int]  # table, method, seed


class Journal:
    """Appends finished runs to a CSV file and knows which ones are there.

    Args:
        path: The CSV file; made when the first run is written.
        settings: What all runs of one file must have in common; JSON values.

    Raises:
        ValueError: If the file holds runs made with other settings, was not written by a replay,
            or has lost rows since.
    """

    def __init__(self, path: str | os.PathLike[str], settings: dict[str, Any]) -> None:
        self.path = Path(path)
        self._log = Path(f"{self.path}.journal")
        self.done: set[Key] = set()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self._log.exists() and b"\n" in self._log.read_bytes():
            self._resume(settings)
        elif self.path.exists():
            raise ValueError(
                f"{self.path} exists but was not written by a replay (no {self._log.name} beside"
                " it): choose another file."
            )
        else:
            self._log.unlink(missing_ok=True)  # cut before its first line was written
            self._append(json.dumps(settings))

    def _resume(self, settings: dict[str, Any]) -> None:
        text = self._log.read_text(encoding="utf-8")
        complete = text[: text.rfind("\n") + 1]  # a crash may have cut the last line
        first, *lines = complete.splitlines()
        stored = json.loads(first)
        changed = [
            f"{key} {stored.get(key)!r}, now {settings.get(key)!r}"
            for key in sorted(stored.keys() | settings.keys())
            if stored.get(key) != json.loads(json.dumps(settings.get(key)))
        ]
        if changed:
            raise ValueError(
                f"{self.path} holds runs with {'; '.join(changed)}: go on with the same settings,"
                " or choose another file."
            )
        entries = [json.loads(line) for line in lines]
        size = self.path.stat().st_size if self.path.exists() else 0
        end = entries[-1]["end"] if entries else 0
        if size < end:
            raise ValueError(
                f"{self.path} has {size} bytes of {end} written: it was cut or changed."
            )
        if size > end:
            os.truncate(self.path, end)
        if complete != text:
            os.truncate(self._log, len(complete.encode()))
        self.done = {(e["table"], e["method"], e["seed"]) for e in entries}

    def write(self, key: Key, frame: pd.DataFrame) -> None:
        """Append one run; on the disk before it counts as done."""
        new = not self.path.exists() or not self.path.stat().st_size
        with self.path.open("a", encoding="utf-8", newline="") as file:
            file.write(frame.to_csv(index=False, header=new, lineterminator="\n"))
            file.flush()
            os.fsync(file.fileno())
            end = file.tell()
        table, method, seed = key
        self._append(json.dumps({"table": table, "method": method, "seed": seed, "end": end}))
        self.done.add(key)

    def _append(self, line: str) -> None:
        with self._log.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())

    def read(self) -> pd.DataFrame | None:
        """All runs written so far, None when there is none."""
        if not self.done:
            return None
        return read_runs(self.path)


def read_csv(path: str | os.PathLike[str], **options: Any) -> pd.DataFrame:
    """``pandas.read_csv``, numbers to the last bit."""
    import pandas as pd

    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):  # exact by default since then
        options["float_precision"] = "round_trip"
    frame: pd.DataFrame = pd.read_csv(path, **options)
    return frame


def read_runs(path: str | os.PathLike[str]) -> pd.DataFrame:
    """A file of runs as the data frame that was written, numbers to the last bit."""
    return read_csv(
        path,
        dtype={"table": str, "method": str, "status": str},
        keep_default_na=False,
        na_values={c: [""] for c in ("seconds", "loss", "best", "regret", "step", "overhead")},
    )
