"""One search by the simulated clock: who is told what, when, and what it cost."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from effort import Clock

from automl_plugins.replay import (
    Outcome,
    Problem,
    Proposal,
    Table,
    TrialStatus,
    regret,
    replay,
)
from automl_plugins.replay.simulation import Budget, Simulation

NAN = math.nan
FAILED, PRUNED, COMPLETE = TrialStatus.FAILED, TrialStatus.PRUNED, TrialStatus.COMPLETE


def table_of(losses: Sequence[float], **arguments: Any) -> Table:
    """Configurations {"n": 0}, {"n": 1}, ...: the row is the value."""
    n = len(losses)
    space = ConfigurationSpace({"n": (0, n - 1)})
    return Table("t", space, [{"n": i} for i in range(n)], losses, **arguments)


@dataclass
class Listed:
    """Proposes rows of a list in turn and writes down all that happens, in order."""

    rows: Sequence[int | tuple[int, float] | None]
    events: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._next = iter(self.rows)

    def ask(self) -> Proposal | None:
        row = next(self._next, None)
        self.events.append(("ask", row))
        if row is None:
            return None
        if isinstance(row, tuple):
            return Proposal({"n": row[0]}, step=row[1], token=row)
        return Proposal({"n": row}, token=row)

    def tell(self, proposal: Proposal, outcome: Outcome) -> None:
        self.events.append(("tell", proposal.token, outcome))

    @property
    def told(self) -> list[tuple[Any, Outcome]]:
        return [(e[1], e[2]) for e in self.events if e[0] == "tell"]

    @property
    def names(self) -> list[str]:
        return [f"{e[0]} {e[1]}" for e in self.events]


@dataclass
class Watching(Listed):
    """Stops the evaluations named in ``stops`` at their step."""

    stops: frozenset[tuple[int, float]] = frozenset()

    def report(self, proposal: Proposal, step: float, loss: float) -> bool:
        self.events.append(("report", proposal.token, step, loss))
        return (proposal.token, step) in self.stops


def run(table: Table, optimizer: Listed, n_trials: int = 100, **budget: Any) -> Simulation:
    simulation = Simulation(table, optimizer, Budget(n_trials, **budget))
    simulation.run()
    return simulation


def curved(**arguments: Any) -> Table:
    """Two runs of 8 and 4 seconds with three steps each."""
    given = {"seconds": [8.0, 4.0], "curves": [[9.0, 5.0, 1.0], [8.0, 6.0, 3.0]]}
    return table_of([0.5, 2.5], **{"steps": (1, 2, 4), **given, **arguments})


@pytest.mark.parametrize(
    ("seconds", "budget", "n"), [(0.1, 0.3, 3), (0.1, 1.0, 10), (0.1, 2.0, 20)]
)
def test_sums_of_seconds_fill_a_budget(seconds: float, budget: float, n: int) -> None:
    """In floats 0.1 + 0.1 + 0.1 is more than 0.3, and the sum of ten 0.1 less than 1.0."""
    optimizer = Listed([0] * (n + 5))
    Simulation(table_of([1.0, 2.0], seconds=seconds), optimizer, Budget(n + 5, budget)).run()
    assert optimizer.names == ["ask 0", "tell 0"] * n


# --- what is told, and when -----------------------------------------------------------------

OK, BAD, CUT = COMPLETE, FAILED, PRUNED


@pytest.mark.parametrize(
    ("table", "rows", "options", "told"),
    [
        (
            table_of([1, 2, 3], seconds=[5.0, 0.0, 2.5]),
            [0, 1, 2],
            {},
            [(0, OK, 1, 0, 5), (1, OK, 2, 5, 5), (2, OK, 3, 5, 7.5)],
        ),
        (
            table_of([NAN, math.inf, 3.0, -math.inf], seconds=1.0),
            [0, 1, 2, 3],
            {},
            [(0, BAD, None, 0, 1), (1, BAD, None, 1, 2), (2, OK, 3, 2, 3), (3, BAD, None, 3, 4)],
        ),
        # Worker 2 gets nothing at first; it is asked again when 0 is told.
        (
            table_of([0, 1, 2], seconds=1.0),
            [0, None, 1, 2],
            {"n_workers": 2},
            [(0, OK, 0, 0, 1), (1, OK, 1, 1, 2), (2, OK, 2, 1, 2)],
        ),
        # Nothing to propose, and nothing under way.
        (table_of([0, 1]), [0, None, 1], {}, [(0, OK, 0, 0, 1)]),
        # A: 0 ends at 3, 2 at 7. B: 1 ends at 4, 3 would end at 8.
        (
            table_of([0.0, 1, 2, 3, 4], seconds=[3.0, 4, 4, 4, 1]),
            range(5),
            {"seconds": 7.0, "n_workers": 2},
            [(0, OK, 0, 0, 3), (1, OK, 1, 0, 4), (2, OK, 2, 3, 7)],
        ),
        # A step costs the seconds of its curve and does not count.
        (
            curved(),
            [(0, 1), (1, 2), 0],
            {},
            [((0, 1), OK, 9, 0, 2), ((1, 2), OK, 6, 2, 4), (0, OK, 0.5, 4, 12)],
        ),
        # A step between two recorded ones is the lower one.
        (
            curved(),
            [(0, 3.9), (0, 4), (0, 100)],
            {},
            [((0, 3.9), OK, 5, 0, 4), ((0, 4), OK, 1, 4, 12), ((0, 100), OK, 1, 12, 20)],
        ),
        # A step behind the end of a run.
        (
            curved(curves=[[9.0, NAN, NAN], [8, 6, 3]]),
            [(0, 2), (0, 1)],
            {},
            [((0, 2), BAD, None, 0, 4), ((0, 1), OK, 9, 4, 6)],
        ),
        # What is stopped ends at the second of its step, and frees its worker then.
        (
            curved(),
            [0, 0, 1],
            {"stops": {(0, 2)}},
            [(0, CUT, 5, 0, 4), (0, CUT, 5, 4, 8), (1, OK, 2.5, 8, 12)],
        ),
    ],
)
def test_what_is_told_and_when(table: Table, rows: Any, options: Any, told: list[Any]) -> None:
    budget = {name: value for name, value in options.items() if name != "stops"}
    stops = options.get("stops")
    optimizer = Watching(rows, stops=frozenset(stops)) if stops else Listed(rows)
    simulation = run(table, optimizer, **budget)
    found = [
        (row, o.status, None if math.isnan(o.loss) else o.loss, o.started, o.finished)
        for row, o in optimizer.told
    ]
    assert found == told and simulation.clock == told[-1][4]


def test_all_that_ends_at_one_moment_is_told_before_the_next_question() -> None:
    optimizer = Listed([0, 1, 2, 3])
    run(table_of([0, 1, 2, 3], seconds=[2.0, 1.0, 1.0, 1.0]), optimizer, 4, n_workers=2)
    # 0 and 2 both end at second 2.
    assert optimizer.names == [
        *("ask 0", "ask 1", "tell 1", "ask 2"),
        *("tell 0", "tell 2", "ask 3", "tell 3"),
    ]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_workers", [1, 3, 7])
def test_the_clock_is_that_of_a_list_of_free_workers(seed: int, n_workers: int) -> None:
    """An independent account: each evaluation goes to the worker that is free first."""
    seconds = np.random.default_rng(seed).exponential(size=40)
    optimizer = Listed(range(40))
    run(table_of([0.0] * 40, seconds=seconds), optimizer, n_workers=n_workers)
    free = [0.0] * n_workers
    expected = []
    for row in range(40):
        worker = min(range(n_workers), key=free.__getitem__)
        started = free[worker]
        free[worker] += seconds[row]
        expected.append((free[worker], row, started))
    found = [(o.finished, row, o.started) for row, o in optimizer.told]
    assert found == sorted(expected)


@pytest.mark.parametrize("table", [curved(), table_of([1.0, 2.0])])
def test_a_step_that_no_curve_has_is_refused(table: Table) -> None:
    with pytest.raises(ValueError, match=r"A proposal for step 0.5, but table 't' has the steps"):
        run(table, Listed([(0, 0.5)]))


# --- pruning --------------------------------------------------------------------------------


def test_without_a_reason_to_stop_the_final_loss_is_told() -> None:
    optimizer = Watching([0])
    run(curved(), optimizer)
    assert optimizer.events[1:4] == [
        ("report", 0, 1, 9),
        ("report", 0, 2, 5),
        ("report", 0, 4, 1),
    ]
    (_, outcome) = optimizer.told[0]
    assert outcome == Outcome(COMPLETE, 0.5, 0.0, 8.0)


def test_what_happens_at_one_moment_happens_in_the_order_of_the_trials() -> None:
    optimizer = Watching([0, 1])
    run(curved(), optimizer, n_workers=2)
    # Run 0 reports at 2, 4, 8; run 1 at 1, 2, 4.
    reports = [(e[1], e[2]) for e in optimizer.events if e[0] == "report"]
    assert reports == [(1, 1), (0, 1), (1, 2), (0, 2), (1, 4), (0, 4)]


def test_gaps_of_a_curve_are_not_reported() -> None:
    optimizer = Watching([0])
    run(curved(curves=[[9.0, NAN, 1.0], [8, 6, 3]]), optimizer)
    assert [e[2] for e in optimizer.events if e[0] == "report"] == [1, 4]


@pytest.mark.parametrize(
    ("seconds", "stop", "finished"),
    [([1, 2, 99], 4, 8), ([5, 1, 8], 2, 5), ([5, NAN, 8], 2, 5)],
    ids=["late", "out of order", "unknown"],
)
def test_the_clock_never_goes_back(seconds: list[float], stop: float, finished: float) -> None:
    optimizer = Watching([0], stops=frozenset({(0, stop)}))
    run(curved(curve_seconds=[seconds, [1, 2, 4]]), optimizer)
    assert optimizer.told[0][1].finished == finished


@pytest.mark.parametrize("seconds", [1.0, None], ids=["recorded", "unknown"])
def test_epochs_counted_from_0_take_as_long_as_those_from_1(seconds: float | None) -> None:
    moments = []
    for first in (0, 1):
        table = curved(seconds=seconds, steps=(first, first + 1, first + 2))
        optimizer = Watching([0], stops=frozenset({(0, first)}))
        run(table, optimizer)
        moments.append(optimizer.told[0][1].finished)
    assert moments == pytest.approx([1 / 3, 1 / 3])


# --- overhead -------------------------------------------------------------------------------


class Slow(Listed):
    def ask(self) -> Proposal | None:
        time.sleep(0.25)
        return super().ask()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.mark.usefixtures("clock")
def test_the_optimizers_own_seconds_may_pass_on_the_clock() -> None:
    table = table_of([0, 1], seconds=1.0)
    with_it = run(table, slow := Slow([0, 1]), 2, overhead=True)
    without = run(table, Slow([0, 1]), 2)
    assert without.clock == 2.0
    assert with_it.clock == 2.5
    assert all(e.overhead == 0.25 for e in [*with_it.evaluations, *without.evaluations])
    # The evaluation itself is as long as recorded.
    assert [o.seconds for _, o in slow.told] == pytest.approx([1.0, 1.0])


# --- through replay -------------------------------------------------------------------------


@dataclass
class ListedMethod:
    rows: Sequence[Any]
    kind: type[Listed] = Listed
    name: str = "listed"
    closed: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def start(self, problem: Problem) -> Listed:
        self.problems.append(problem)
        optimizer = self.kind(self.rows)
        optimizer.close = lambda: self.closed.append("closed")  # type: ignore[attr-defined]
        return optimizer


def test_the_frame_of_a_search_by_hand() -> None:
    table = curved()
    frame = replay(ListedMethod([(0, 2), 1, 0]), table, budget=3, seed=7, progress=False)
    assert frame.drop(columns=["best", "regret", "step"]).to_dict("list") == {
        "table": ["t"] * 3,
        "method": ["listed"] * 3,
        "seed": [7] * 3,
        "trial": [1, 2, 3],
        "seconds": [4.0, 8.0, 16.0],
        "loss": [5.0, 2.5, 0.5],
        "status": ["complete"] * 3,
        "row": [0, 1, 0],
        "distance": [0.0] * 3,
    }
    np.testing.assert_array_equal(frame["best"], [NAN, 2.5, 0.5])
    np.testing.assert_array_equal(frame["regret"], [1.0, 1.0, 0.0])
    np.testing.assert_array_equal(frame["step"], [2.0, NAN, NAN])


def test_best_is_unknown_before_the_first_success() -> None:
    frame = replay(ListedMethod([0, 1, 2, 0]), table_of([NAN, 4.0, 2.0]), budget=4, progress=False)
    np.testing.assert_array_equal(frame["best"], [NAN, 4.0, 2.0, 2.0])
    np.testing.assert_array_equal(frame["loss"], [NAN, 4.0, 2.0, NAN])
    np.testing.assert_array_equal(frame["regret"], [1.0, 1.0, 0.0, 0.0])
    assert frame["status"].tolist() == ["failed", "complete", "complete", "failed"]
    assert frame["seconds"].isna().all()


@pytest.mark.usefixtures("clock")
def test_overhead_is_a_column_where_it_is_asked_for() -> None:
    method, table = ListedMethod([0, 1], Slow), table_of([1.0, 2.0], seconds=1.0)
    plain = replay(method, table, budget=2, progress=False)
    assert "overhead" not in plain
    frame = replay(method, table, budget=2, overhead=True, progress=False)
    assert frame.columns[-1] == "overhead"
    assert (frame["overhead"] == 0.25).all()
    assert (frame["seconds"] > plain["seconds"]).all()


def test_the_method_is_told_its_problem() -> None:
    method = ListedMethod([0])
    replay(method, curved(), budget=2, n_workers=3, progress=False)
    replay(method, curved(), budget=9.0, unit="seconds", progress=False)
    trials, seconds = method.problems
    assert (trials.n_trials, trials.n_workers, trials.steps) == (2, 3, (1.0, 2.0, 4.0))
    assert seconds.n_trials is None
    assert trials.seed == seconds.seed
    assert trials.space == seconds.space
    assert trials.space is not seconds.space


def test_a_search_is_closed_also_after_an_error() -> None:
    method = ListedMethod([0, 1])
    replay(method, table_of([1.0, 2.0]), budget=2, seed=[0, 1], progress=False)
    assert method.closed == ["closed", "closed"]
    method = ListedMethod([0, 77])
    with pytest.raises(ValueError, match="n=77 is not a value"):
        replay(method, table_of([1.0, 2.0]), budget=2, progress=False)
    assert method.closed == ["closed"]


def test_a_search_that_never_stops_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    table, method = table_of([1.0, 2.0], seconds=0.0), ListedMethod([0] * 9)
    arguments: Any = {"budget": 1.0, "unit": "seconds", "progress": False}
    frame = replay(method, table, max_trials=5, **arguments)
    assert len(frame) == 5
    assert "stopped at max_trials=5" in caplog.text
    caplog.clear()
    assert len(replay(method, table, max_trials=50, **arguments)) == 9
    assert not caplog.records


def test_a_limit_reached_with_runs_under_way_is_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = table_of([1.0, 2.0], seconds=[1.0, 100.0])
    arguments: Any = {"budget": 10.0, "unit": "seconds", "n_workers": 2, "progress": False}
    frame = replay(ListedMethod([1, *[0] * 99]), table, max_trials=2, **arguments)
    assert len(frame) == 1  # without the limit there would be ten
    assert "max_trials=2" in caplog.text


# --- regret ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("losses", "bounds", "expected"),
    [
        ([8.0, 10.0, 4.0, 6.0, 0.0], (None, None), [0.8, 0.8, 0.4, 0.4, 0.0]),
        ([8.0, 4.0], (0.0, 16.0), [0.5, 0.25]),
        ([NAN, math.inf, 3.0, -math.inf, 1.0], (1.0, 5.0), [1.0, 1.0, 0.5, 0.5, 0.0]),
        ([NAN, NAN], (0.0, 1.0), [1.0, 1.0]),
        ([9.0, -9.0], (0.0, 1.0), [1.0, 0.0]),
        ([2.0, NAN, 2.0], (None, None), [0.0, 0.0, 0.0]),
        ([], (0.0, 1.0), []),
    ],
)
def test_regret_by_hand(losses: Any, bounds: Any, expected: Any) -> None:
    best, worst = bounds
    np.testing.assert_array_equal(regret(losses, best=best, worst=worst), expected)


@pytest.mark.parametrize(
    ("losses", "arguments", "message"),
    [
        ([NAN], {}, "No finite loss"),
        ([], {"best": 0.0}, "No finite loss"),
        ([1.0], {"best": 2.0, "worst": 1.0}, r"must not exceed worst, got 2.0 and 1.0"),
        ([1.0], {"best": 2.0}, "must not exceed"),
        ([1.0], {"best": NAN}, "must not exceed"),
    ],
)
def test_regret_without_bounds_is_refused(losses: Any, arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        regret(losses, **arguments)
