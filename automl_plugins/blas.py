"""One thread for the linear algebra of a proposal.

The matrices of a proposal have some hundred rows. Threads that share them wait for each other
longer than they calculate, and much longer where the other cores are busy with the evaluations
that the proposals are for.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

# Loaded before the BLAS libraries are looked up: numpy and scipy bring their own.
import numpy  # noqa: F401
import scipy.linalg  # noqa: F401
from threadpoolctl import ThreadpoolController

_held = threading.Lock()  # by the thread that has set the limit
_limiter: Any = None  # the object that lifts the limit


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in the block, and restore the number of threads afterwards.

    The limit holds for the whole process: products in other threads use one thread, too. Blocks
    may be nested, and several threads may enter them. The first thread sets the limit and lifts it
    (OpenBLAS takes both from the same thread only); the blocks of other threads may then use more.

    Example::

        with one_blas_thread():
            proposal = proposer.propose(space, history, streams, k)
    """
    global _limiter
    held = _held  # a child forked in the block has a new lock, but leaves this block, too
    if not held.acquire(blocking=False):
        yield
        return
    try:
        with _controller().limit(limits=1) as _limiter:
            yield
    finally:
        _limiter = None
        held.release()


@cache
def _controller() -> ThreadpoolController:
    # Looks through all loaded libraries, which takes 15 ms.
    return ThreadpoolController().select(user_api="blas")


def _after_fork() -> None:
    """Lift the limit in a child that was forked in the block: no other thread lives there."""
    global _held
    _held = threading.Lock()
    if _limiter is not None:
        _limiter.restore_original_limits()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
