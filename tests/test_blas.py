"""The limit of BLAS threads: set once, restored, shared by threads, left by a forked child."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace, Float
from threadpoolctl import ThreadpoolController

from automl_plugins.blas import one_blas_thread
from automl_plugins.proposers.proposal import Proposal, ask
from automl_plugins.records.history import History
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

BLAS = ThreadpoolController().select(user_api="blas")


def n_threads() -> set[int]:
    """Threads of each BLAS library."""
    return {library.num_threads for library in BLAS.lib_controllers}


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    """BLAS with two threads, whatever the environment says."""
    with BLAS.limit(limits=2):
        if n_threads() != {2}:
            pytest.skip(f"BLAS has {n_threads()} threads and cannot have two")
        yield


def test_one_thread_within_and_as_many_as_before_afterwards() -> None:
    with one_blas_thread():
        assert n_threads() == {1}
        with one_blas_thread():
            assert n_threads() == {1}
        assert n_threads() == {1}
    assert n_threads() == {2}


def test_an_error_lifts_the_limit() -> None:
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        raise ZeroDivisionError
    assert n_threads() == {2}


def test_what_another_thread_does_within_changes_nothing() -> None:
    seen: list[set[int]] = []

    def enter_and_leave() -> None:
        with one_blas_thread():
            seen.append(n_threads())

    with one_blas_thread():
        other = threading.Thread(target=enter_and_leave)
        other.start()
        other.join(60.0)
        assert [*seen, n_threads()] == [{1}, {1}]
    assert n_threads() == {2}


def _report(answers: multiprocessing.SimpleQueue[set[int]]) -> None:
    answers.put(n_threads())
    with one_blas_thread():
        answers.put(n_threads())
    answers.put(n_threads())


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="there is no fork"
)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_within_the_limit_does_not_inherit_it() -> None:
    context = multiprocessing.get_context("fork")
    answers: multiprocessing.SimpleQueue[set[int]] = context.SimpleQueue()
    with one_blas_thread():
        child = context.Process(target=_report, args=(answers,))
        child.start()
        child.join(60.0)
    assert [answers.get() for _ in range(3)] == [{2}, {1}, {2}]


def test_proposals_are_made_with_one_thread() -> None:
    seen: list[set[int]] = []

    class Watched:
        def propose(self, space: VectorSpace, *_: object) -> Proposal:
            seen.append(n_threads())
            return Proposal(np.zeros(space.d), "random")

    space = ConfigurationSpace()
    space.add(Float("x", (0.0, 1.0)))
    history = History.of([[0.5]], [1.0])
    ask(Watched(), VectorSpace(space), history, Streams(0), 1)
    assert seen == [{1}]
    assert n_threads() == {2}
