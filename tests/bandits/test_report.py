"""What each arm got, as rows, a frame, text and Markdown."""

from __future__ import annotations

import dataclasses
import math
import re
import sys
from typing import Any

import numpy as np
import pytest

from automl_plugins.bandits.records import ArmRecords, Pulls
from automl_plugins.bandits.report import ArmReport, ArmRow, describe_round
from automl_plugins.bandits.successive_filtering import Decision, Round
from automl_plugins.records.trial import Status

NAN = float("nan")
DONE, PRUNED, FAILED, RUNNING = Status.COMPLETE, Status.PRUNED, Status.FAILED, Status.RUNNING

RECORDS = ArmRecords.of(
    [0, 1, 2, 0, 1, 0, 0],
    [0.8, 0.5, NAN, 0.6, 0.9, 0.1, NAN],
    seconds=[1.0, 2.0, 3.0, NAN, 4.0, 0.5, 9.0],
    status=[DONE, DONE, FAILED, DONE, PRUNED, DONE, RUNNING],
)
LOSSES = [0.2, 0.5, NAN, 0.4, 0.1, 0.9, NAN]
ROUNDS = (
    Round(
        0,
        3.0,
        tuple(Decision(a, True, None, None, 1.0, 1.0, "first round") for a in range(3)),
    ),
    Round(
        1,
        7.0,
        (
            Decision(0, True, 0.75, 0.4, 1.0, 3.0, "drawn to advance"),
            Decision(1, True, 0.9, 1.0, 3.0, 4.0, "best"),
            Decision(2, False, None, 0.0, 0.0, 1.0, "failed every time"),
        ),
        finished=3,
    ),
    Round(
        2,
        8.0,
        (
            Decision(0, False, 0.65, 0.0, 0.0, 3.0, "worst"),
            Decision(1, True, 0.9, 1.0, 1.0, 5.0, "best"),
        ),
        finished=5,
    ),
)
REPORT = ArmReport(
    names=("svm", "forest", "bayes"),
    records=RECORDS,
    losses=LOSSES,
    rounds=ROUNDS,
    notes=("losses lie in [0, 1]: the reward is 1 - loss",),
)
EMPTY = ArmReport(("a", "b"), ArmRecords.of([], []), [])


# --- table ----------------------------------------------------------------------------------


def test_table_by_hand() -> None:
    svm, forest, bayes = REPORT.table()
    # The seconds of the running pull are still to come.
    expected = ArmRow("svm", 4, 1, 0, 4 / 7, 1.5, 1.5 / 10.5, 0.2, 0.5, 3, "worst")
    assert dataclasses.astuple(svm) == pytest.approx(dataclasses.astuple(expected))
    # A pruned value is none of the whole budget.
    expected = ArmRow("forest", 2, 0, 0, 2 / 7, 6.0, 6.0 / 10.5, 0.5, 0.7, None, "")
    assert dataclasses.astuple(forest) == pytest.approx(dataclasses.astuple(expected))
    assert (bayes.failed, bayes.mean_reward, bayes.left) == (1, 0.0, 2)
    assert math.isnan(bayes.best)


def test_best_follows_the_direction_and_the_users_sign() -> None:
    larger = dataclasses.replace(REPORT, losses=[-x for x in LOSSES], maximize=True)
    assert [row.best for row in larger.table()][:2] == [-0.2, -0.5]
    largest = dataclasses.replace(REPORT, maximize=True).table()
    assert [row.best for row in largest][:2] == [0.9, 0.5]
    # Infinite values count and missing ones do not.
    records = ArmRecords.of([0, 0, 1], [0.0, 0.5, 0.0])
    rows = ArmReport(("a", "b"), records, [math.inf, NAN, math.inf]).table()
    assert [row.best for row in rows] == [math.inf, math.inf]


def test_no_pulls_at_all() -> None:
    for row in EMPTY.table():
        assert (row.pulls, row.running, row.failed, row.seconds) == (0, 0, 0, 0.0)
        assert (row.left, row.reason) == (None, "")
        for value in (row.pull_share, row.seconds_share, row.best, row.mean_reward):
            assert math.isnan(value)
    assert str(EMPTY).startswith("2 arms, 0 pulls\n")
    assert EMPTY.round_lines() == []
    assert len(EMPTY.to_frame()) == 2


# --- frame ----------------------------------------------------------------------------------


def test_frame_has_the_rows_of_the_table() -> None:
    frame = REPORT.to_frame()
    assert list(frame["arm"]) == ["svm", "forest", "bayes"]
    for name in ("pulls", "seconds", "best", "mean_reward", "reason"):
        np.testing.assert_equal(list(frame[name]), [getattr(r, name) for r in REPORT.table()])
    assert frame["left"].isna().tolist() == [False, True, False]
    assert frame["left"].dropna().tolist() == [3, 2]


# --- text -----------------------------------------------------------------------------------


def test_text_has_a_summary_and_the_best_arm_first() -> None:
    lines = str(REPORT).splitlines()
    assert lines[0] == "3 arms, 7 pulls (1 running, 1 failed), 10.5 s; best 0.2, by svm"
    assert lines[2].split()[:4] == ["Arm", "Pulls", "Running", "Failed"]
    assert set(lines[3]) == {"-", " "}
    assert [line.split()[0] for line in lines[4:7]] == ["svm", "forest", "bayes"]
    assert re.sub(" +", " ", lines[4]) == "svm 4 1 0 57.1 1.5 14.3 0.2 0.500 round 3: worst"
    assert lines[6].split()[7] == "-"  # no value
    assert lines[lines.index("Notes") + 1] == f"- {REPORT.notes[0]}"
    start = lines.index("Rounds") + 1
    assert lines[start : start + 3] == [f"- {line}" for line in REPORT.round_lines()]
    upwards = dataclasses.replace(REPORT, maximize=True)
    assert "best 0.9, by svm" in str(upwards)


@pytest.mark.parametrize("names", [("支持向量", "é", "e\u0301"), ("a" * 40, "", "ß")])
def test_columns_stay_aligned_for_names_of_any_script(names: tuple[str, ...]) -> None:
    import unicodedata

    def columns(line: str) -> int:
        """Place of the second column: where the digit of the pulls ends."""
        place = next(i for i, c in enumerate(line) if c.isdigit())
        return sum(
            0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
            for c in line[:place]
        )

    report = dataclasses.replace(REPORT, names=names)
    body = str(report).splitlines()[4:7]
    assert len({columns(line) for line in body}) == 1
    assert all(name in str(report) for name in names)


def test_names_and_notes_stay_on_one_line() -> None:
    names = ("two\nlines", "b", "c")
    report = dataclasses.replace(REPORT, names=names, notes=("a\nnote",))
    lines = str(report).splitlines()
    assert any(line.startswith("two lines ") for line in lines)
    assert "- a note" in lines
    assert "two lines" in report.to_markdown()


def test_markdown_can_be_read_back() -> None:
    names = ("a|b", "<script>*x*", r"back\slash")
    text = dataclasses.replace(REPORT, names=names).to_markdown()
    lines = [line for line in text.splitlines() if line.startswith("|")]
    header, rule, *body = (
        [re.sub(r"\\(.)", r"\1", cell.strip()) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in lines
    )
    assert all(re.fullmatch(r":?-+:?", cell) for cell in rule)
    rows = [dict(zip(header, row, strict=True)) for row in body]
    assert [row["Arm"] for row in rows] == list(names)  # best first, which is their order
    assert [row["Pulls"] for row in rows] == ["4", "2", "1"]
    assert [row["Dropped in"] for row in rows] == [
        "round 3: worst",
        "",
        "round 2: failed every time",
    ]
    assert "### Rounds" in text and "### Notes" in text
    assert text.count("\n- ") == 4


@pytest.mark.parametrize(
    ("package", "method"), [("pandas", "to_frame"), ("tabulate", "to_markdown")]
)
def test_a_missing_package_is_named(
    package: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    message = rf"bandits needs {package} .* automl_plugins\[evidence\]"
    with pytest.raises(ModuleNotFoundError, match=message):
        getattr(REPORT, method)()
    assert "svm" in str(REPORT)


# --- rounds ---------------------------------------------------------------------------------


def test_lines_of_the_rounds_by_hand() -> None:
    assert REPORT.round_lines() == [
        "Round 1 (3 trials): svm, forest, bayes (share 33 % each)",
        "Round 2 (2 trials): forest (score 0.900, p 1.00, share 75 %),"
        " svm (score 0.750, p 0.40, share 25 %);"
        " left: bayes (no score, p 0.00: failed every time)",
        "Round 3 (2 trials): forest (score 0.900, p 1.00, share 100 %);"
        " left: svm (score 0.650, p 0.00: worst)",
    ]


def test_rounds_show_what_they_spent_and_add_up() -> None:
    # Shares of what is left of the budget do not: what a round leaves is shared again.
    lines = dataclasses.replace(REPORT, rounds=ROUNDS[:2]).round_lines()
    assert [line[:19] for line in lines] == ["Round 1 (3 trials):", "Round 2 (4 trials):"]
    lines = dataclasses.replace(REPORT, unit="seconds").round_lines()
    # Neither unknown seconds nor those of a running pull, which has not ended.
    assert [line[:16] for line in lines] == [
        f"Round {n} s):" for n in ("1 (6.0", "2 (4.0", "3 (0.5")
    ]


def test_those_who_left_are_listed_by_score() -> None:
    decisions = (
        Decision(0, False, 0.1, 0.0, reason="worst"),
        Decision(1, False, None, 0.0, reason="failed every time"),
        Decision(2, False, 0.4, 0.2, reason="drawn to leave"),
        Decision(3, True, 0.9, 1.0, 2.0, 3.0, "best"),
    )
    line = describe_round(Round(1, 3.0, decisions), "abcd")
    assert re.findall(r"([abcd]) \(", line) == ["d", "c", "a", "b"]


def test_an_arm_that_was_taken_back_has_not_left() -> None:
    back = Round(2, 8.0, (Decision(2, True, None, 1.0, 1.0, 5.0, "no result yet"),))
    report = dataclasses.replace(REPORT, rounds=(*ROUNDS[:2], back))
    assert [row.left for row in report.table()] == [None, None, None]


@pytest.mark.parametrize(
    ("maximize", "ends"),
    [(False, "-2 counts as reward 0 and -4 as 1"), (True, "2 counts as reward 0 and 4 as 1")],
)
def test_the_scale_is_told_in_the_users_values(maximize: bool, ends: str) -> None:
    pulls = Pulls.from_losses([0, 0, 0], [-4.0, -3.0, -2.0], seconds=[1.0] * 3, status=[DONE] * 3)
    report = ArmReport.from_pulls(("svm",), pulls, [0], maximize=maximize)
    assert report.notes == (f"Rewards: values lie outside [0, 1]: {ends}.",)


# --- bad input, pickles ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"losses": [0.1]}, r"losses must have one value for each of the 7 pulls, got 1\."),
        ({"names": ("a", "b")}, r"names must name all 3 arms, got 2\."),
        ({"unit": "epochs"}, "unit must be one of 'trials', 'seconds', got 'epochs'"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(REPORT, **change)


def test_arms_of_rounds_need_names_too() -> None:
    rounds = (Round(0, 1.0, (Decision(4, True, None, None, 1.0, 1.0, ""),)),)
    with pytest.raises(ValueError, match="all 5 arms"):
        ArmReport(("a",), ArmRecords.of([], []), [], rounds)
