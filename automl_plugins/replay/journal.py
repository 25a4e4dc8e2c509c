"""The file of finished runs, with which an interrupted replay is continued."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from automl_plugins.addresses import as_path

if TYPE_CHECKING:
    import pandas as pd

Key = tuple[str, str, int]  # table, method, seed


class Journal:
    """Appends finished runs to a CSV file and keeps account of them.

    Beside ``runs.csv``, the tidy frame, ``runs.csv.journal`` has the settings in its first line
    and, for each run that was written in full, a line with its key and the length of the file
    after it. Anything after the last such length belongs to a run that a crash cut short.

    All runs in the file must share the ``settings`` (JSON values), and what is recorded of their
    tables, whose hashes are ``digests``.

    Raises:
        ValueError: If the file has runs with other settings or on other data, was not written by
            a replay, or has lost rows since.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        settings: dict[str, Any],
        digests: Mapping[str, str],
    ) -> None:
        self.path = as_path(path)
        self._digests = digests
        self._log = Path(f"{self.path}.journal")
        self.done: set[Key] = set()
        self._end = 0  # bytes of the file that are accounted for
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self._log.exists() and b"\n" in self._log.read_bytes():
            self._resume(settings)
        elif self.path.exists():
            raise ValueError(
                f"{self.path} exists but was not written by a replay (no {self._log.name} beside"
                " it): choose another file."
            )
        else:
            self._log.unlink(missing_ok=True)  # a crash cut its first line
            _append(self._log, json.dumps(settings) + "\n")

    def _resume(self, settings: dict[str, Any]) -> None:
        content = self._log.read_bytes()
        complete = content[: content.rfind(b"\n") + 1]  # a crash may have cut the last line
        try:
            lines = [json.loads(line) for line in complete.decode().splitlines()]
            stored, entries = dict(lines[0]), lines[1:]
            done = {(e["table"], e["method"], e["seed"]) for e in entries}
            seen = {(e["table"], e.get("data")) for e in entries}
            end = self._end = int(entries[-1]["end"]) if entries else 0
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise ValueError(
                f"{self._log} is damaged, no replay wrote it so ({error}). Restore a copy of it,"
                f" or delete it and {self.path.name} to begin anew."
            ) from None
        changed = [
            f"{key} {stored.get(key)!r}, now {settings.get(key)!r}"
            for key in sorted(stored.keys() | settings.keys())
            if stored.get(key) != json.loads(json.dumps(settings.get(key)))
        ]
        if changed:
            raise ValueError(
                f"{self.path} holds runs with {'; '.join(changed)}: continue with the same"
                " settings, or choose another file."
            )
        # Tables that this call does not have are not compared.
        if other := sorted(t for t, data in seen if data and self._digests.get(t, data) != data):
            raise ValueError(
                f"{self.path} holds runs on table {', '.join(other)} as it was before its records"
                " changed (or its search space): choose another file."
            )
        size = self._size()
        if size < end:
            what = f"has {size} bytes of {end} written: it was cut or changed"
            raise ValueError(
                f"{self.path} {what if size else 'is gone or empty'}. To begin anew, delete"
                f" {self._log.name} too."
            )
        if size > end:
            os.truncate(self.path, end)
        if complete != content:
            os.truncate(self._log, len(complete))
        self.done = done

    def _size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def write(self, key: Key, frame: pd.DataFrame) -> None:
        """Append one run; it counts as done only once it is on the disk.

        Raises:
            ValueError: For a name with a carriage return, which a CSV file does not keep, and
                where something else has written to the file.
        """
        if any("\r" in str(name) for name in key):
            raise ValueError(
                f"{self.path} cannot keep the carriage return in the name of {key[:2]!r}: rename"
                " the table or the method."
            )
        # Rows that are not accounted for would be cut off at the next start.
        if self._size() != self._end:
            raise ValueError(
                f"{self.path} was changed while this replay ran. If another one writes to it, let"
                " that end, then run this again: it continues with what is missing."
            )
        # Line ends of one byte on every system, as lengths are counted.
        text = frame.to_csv(index=False, header=not self._end, lineterminator="\n")
        self._end = _append(self.path, text)
        table, method, seed = key
        entry = {"table": table, "method": method, "seed": seed, "end": self._end}
        _append(self._log, json.dumps(entry | {"data": self._digests.get(table)}) + "\n")
        self.done.add(key)


def _append(path: Path, text: str) -> int:
    """Add text to the end of a file, on the disk; returns the length of the file."""
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
        return file.tell()
