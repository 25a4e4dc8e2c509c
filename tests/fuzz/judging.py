"""What may come of a case: a valid proposal, or an error that is documented."""

from __future__ import annotations

import random
import re
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import numpy as np
from documented import ERRORS, WARNINGS
from histories import Case

SECONDS = 30.0  # of CPU that one case may take, however large its history
_PACKAGE = re.compile(r".*/(automl_plugins|adapters|tests/fuzz)/")


class TooSlow(Exception):
    """A case takes too long."""


@dataclass(frozen=True)
class Outcome:
    """What came of a case.

    Attributes:
        verdict: "valid", the reason of a documented error, or "failure".
        seconds: CPU time.
        failure: What is wrong, in a line; empty where nothing is.
        place: Where, to tell one failure from another.
    """

    verdict: str
    seconds: float
    failure: str = ""
    place: str = ""


def judge(target: Callable[[Case], None], case: Case, limit: float = SECONDS) -> Outcome:
    """Try a target on a case."""
    ours, theirs = np.random.get_state(), random.getstate()  # noqa: NPY002
    started = time.process_time()
    verdict, failure, place = "valid", "", ""
    with warnings.catch_warnings(record=True) as heard, _stopped_after(limit):
        warnings.simplefilter("always")
        try:
            target(case)
        except Exception as error:
            verdict = reason_of(error)
            if not verdict:
                verdict, place = "failure", _place(error)
                failure = f"{type(error).__name__}: {error}"
    seconds = time.process_time() - started
    if not failure:
        failure, place = _complaint(heard)
    if not failure and not _same_state(ours, np.random.get_state()):  # noqa: NPY002
        failure = place = "numpy's global random state has moved"
    if not failure and random.getstate() != theirs:
        failure = place = "Python's global random state has moved"
    return Outcome("failure" if failure else verdict, seconds, failure, place)


@contextmanager
def _stopped_after(limit: float) -> Iterator[None]:
    """TooSlow after so many seconds of CPU: what never ends would end the fuzzer."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise TooSlow(f"it takes more than {limit:g} s of CPU")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def _same_state(a: object, b: object) -> bool:
    return repr(a) == repr(b) and np.array_equal(a[1], b[1])  # type: ignore[index]


def _complaint(heard: list[warnings.WarningMessage]) -> tuple[str, str]:
    for warning in heard:
        text = str(warning.message)
        if not any(
            issubclass(warning.category, w.kind) and re.search(w.text, text) for w in WARNINGS
        ):
            where = f"{warning.filename.split('site-packages/')[-1]}:{warning.lineno}"
            return f"{warning.category.__name__} at {where}: {text}", where
    return "", ""


def reason_of(error: Exception) -> str:
    """Why an error is right; empty for one that is not documented."""
    for known in ERRORS:
        if type(error) in known.kinds and re.search(known.text, str(error), re.DOTALL):
            return known.reason
    return ""


def _place(error: Exception) -> str:
    """The innermost line of ours, and the kind of error."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if _PACKAGE.match(f.filename) and "site-packages" not in f.filename]
    frame = (own or list(frames))[-1]
    return f"{type(error).__name__} at {'/'.join(frame.filename.split('/')[-2:])}:{frame.lineno}"
