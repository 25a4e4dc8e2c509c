"""An arm report as plain text and as Markdown, and a round in one line."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from automl_plugins._optional import require

from .rounds import Decision, Round
from .successive_filtering import Unit

if TYPE_CHECKING:
    from .report import ArmReport, ArmRow

_HEADERS = (
    *("Arm", "Pulls", "Running", "Failed", "Pulls (%)", "Seconds", "Seconds (%)"),
    *("Best", "Mean reward", "Left"),
)


def text(report: ArmReport) -> str:
    """Plain text."""
    blocks = [_summary(report), "\n".join(_aligned([_HEADERS, *_cells(report)]))]
    for title, lines in _lists(report):
        blocks.append("\n".join([title, *(f"- {line}" for line in lines)]))
    return "\n\n".join(blocks)


def markdown(report: ArmReport) -> str:
    """Markdown.

    Raises:
        ModuleNotFoundError: If tabulate is not installed.
    """
    from automl_plugins.statistics.rendering import MARKDOWN

    rows = [[MARKDOWN.cell(cell) for cell in row] for row in _cells(report)]
    table: str = require(
        "tabulate", needed_by="automl_plugins.bandits", extra="evidence"
    ).tabulate(
        rows,
        headers=_HEADERS,
        tablefmt=MARKDOWN.table,
        # tabulate 0.9.0 does not align the columns of a table without rows.
        colalign=["left", *["right"] * (len(_HEADERS) - 2), "left"] if rows else None,
        disable_numparse=True,
    )
    blocks = [MARKDOWN.escape(_summary(report)), table]
    for title, lines in _lists(report):
        blocks += [MARKDOWN.heading(title), MARKDOWN.items(map(MARKDOWN.escape, lines))]
    return "\n\n".join(blocks) + "\n"


def round_line(outcome: Round, names: Sequence[str], unit: Unit) -> str:
    """Who takes part in a round with what, the largest share first; who left and why."""
    total = sum(d.share for d in outcome.decisions)
    stays = sorted((d for d in outcome.decisions if d.advances), key=lambda d: -d.share)
    leaves = sorted((d for d in outcome.decisions if not d.advances), key=_score, reverse=True)
    line = f"Round {outcome.index + 1} ({_amount(total, unit)}): "
    if len({(d.score, d.probability, round(d.share, 9)) for d in stays}) == 1:
        each = " each" if len(stays) > 1 else ""
        line += f"{', '.join(names[d.arm] for d in stays)} ({_terms(stays[0], total)}{each})"
    else:
        line += ", ".join(f"{names[d.arm]} ({_terms(d, total)})" for d in stays)
    if leaves:
        line += "; left: "
        line += ", ".join(f"{names[d.arm]} ({_terms(d, None)}: {d.reason})" for d in leaves)
    return _one_line(line)


def lost_incumbent_line(outcome: Round, name: str) -> str:
    """What to say of a round that dropped the arm with the best trial."""
    return _one_line(
        f"Round {outcome.index + 1} drops {name}, the arm of the best trial so far: score='mean'"
        " compares mean rewards. score='maximum' would keep it."
    )


def _terms(decision: Decision, total: float | None) -> str:
    """Score, probability and share of a total, as far as there are such."""
    terms = []
    if decision.score is not None or decision.probability is not None:
        terms.append("no score" if decision.score is None else f"score {decision.score:.3f}")
    if decision.probability is not None:
        terms.append(f"p {decision.probability:.2f}")
    if total is not None:
        terms.append(f"share {100 * decision.share / total if total else 0:.0f} %")
    return ", ".join(terms)


def _score(decision: Decision) -> float:
    return -math.inf if decision.score is None else decision.score


def _amount(value: float, unit: Unit) -> str:
    return f"{value:.1f} s" if unit == "seconds" else f"{value:.4g} trial{'s' * (value != 1)}"


# --- the parts of a report ------------------------------------------------------------------


def _summary(report: ArmReport) -> str:
    rows = report.table()
    counts = (("running", sum(r.running for r in rows)), ("failed", sum(r.failed for r in rows)))
    asides = ", ".join(f"{n} {what}" for what, n in counts if n)
    line = f"{_count(len(rows), 'arm')}, {_count(len(report.records), 'pull')}"
    line += f" ({asides})" if asides else ""
    seconds = sum(row.seconds for row in rows if not math.isnan(row.seconds))
    line += f", {seconds:.1f} s" if seconds else ""
    valued = [row for row in _sorted(report) if not math.isnan(row.best)]
    return line + (f"; best {valued[0].best:.6g}, by {_one_line(valued[0].arm)}" if valued else "")


def _sorted(report: ArmReport) -> list[ArmRow]:
    """The best arm first, arms without a value last."""
    sign = -1.0 if report.maximize else 1.0
    return sorted(report.table(), key=lambda r: math.inf if math.isnan(r.best) else sign * r.best)


def _cells(report: ArmReport) -> Iterator[tuple[str, ...]]:
    for row in _sorted(report):
        yield (
            _one_line(row.arm),
            *map(str, (row.pulls, row.running, row.failed)),
            _number(100 * row.pull_share, ".1f"),
            _number(row.seconds, ".1f" if row.seconds >= 10 else ".3g"),
            _number(100 * row.seconds_share, ".1f"),
            _number(row.best, ".6g"),
            _number(row.mean_reward, ".3f"),
            "" if row.left is None else _one_line(f"round {row.left}: {row.reason}"),
        )


def _lists(report: ArmReport) -> Iterator[tuple[str, list[str]]]:
    if report.rounds:
        yield "Rounds", report.round_lines()
    if report.notes:
        yield "Notes", [_one_line(note) for note in report.notes]


def _number(value: float, form: str) -> str:
    return "-" if math.isnan(value) else format(value, form)


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of a table whose first and last columns are left and whose numbers are right."""
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    rule = ["-" * width for width in widths]
    for row in [rows[0], rule, *rows[1:]]:
        gaps = [" " * (w - _width(cell)) for cell, w in zip(row, widths, strict=True)]
        middle = [gap + cell for gap, cell in zip(gaps[1:-1], row[1:-1], strict=True)]
        yield "  ".join([row[0] + gaps[0], *middle, row[-1]]).rstrip()


def _width(line: str) -> int:
    """Columns of a terminal that it takes."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in line)
    return len(line) + wide - sum(bool(unicodedata.combining(c)) for c in line)


def _one_line(line: str) -> str:
    return " ".join(line.split())
