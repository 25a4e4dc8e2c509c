"""The report of a search among arms: which arm got what, when it left, and why."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, get_args

import numpy as np

from automl_plugins._arguments import check_choice
from automl_plugins._imports import require
from automl_plugins.arrays import FloatArray
from automl_plugins.formats import MARKDOWN, align_columns, format_count, join_names, one_line
from automl_plugins.records.trial import Status

from .records import ArmRecords, ArmStatistics, Pulls
from .successive_filtering import Decision, Round, Unit

if TYPE_CHECKING:
    import pandas as pd

_HEADERS = (
    *("Arm", "Pulls", "Running", "Failed", "Pulls (%)", "Seconds", "Seconds (%)"),
    *("Best", "Mean reward", "Dropped in"),
)
_LISTED = 16  # arms that the line of a round names


@dataclass(frozen=True)
class ArmRow:
    """One row of a report: the pulls, seconds and results of an arm; NaN where unknown."""

    arm: str
    pulls: int  # running ones included
    running: int
    failed: int
    pull_share: float  # of all pulls, in [0, 1]
    seconds: float  # sum over its finished pulls whose seconds are known
    seconds_share: float  # of the known seconds of all arms, in [0, 1]
    best: float  # best value of a complete pull, in the user's own sign
    mean_reward: float  # in [0, 1], failed pulls counted as 0
    left: int | None  # round in which it left, counted from 1; None if it did not
    reason: str  # why it left; empty if it did not


@dataclass(frozen=True)
class ArmReport:
    """How a search shared its trials and seconds among its arms.

    Adapters make it from a study or from trials; ``print`` shows it.

    Attributes:
        names: Names of the arms, in the order of their numbers.
        records: All pulls, in the order in which they finished, then the running ones.
        losses: Loss or objective value of each pull (n,), in the user's own sign; NaN if none.
        rounds: Rounds of successive filtering; empty for other policies.
        notes: What else should be known, one sentence each: how rewards were scaled, arms given
            up because they always failed, arms that ran out of configurations.
        maximize: Whether larger values in ``losses`` are better.
        unit: Unit of the rounds' shares and limits.

    Raises:
        ValueError: If the parts do not fit each other.

    Example::

        print(ArmReport(("svm", "forest"), records, losses=[0.6, 0.3, math.nan]))
    """

    names: tuple[str, ...]
    records: ArmRecords
    losses: Sequence[float]
    rounds: tuple[Round, ...] = ()
    notes: tuple[str, ...] = ()
    maximize: bool = False
    unit: Unit = "trials"

    @classmethod
    def from_pulls(
        cls,
        names: Sequence[str],
        pulls: Pulls,
        left: Sequence[int],
        *,
        rounds: Sequence[Round] = (),
        notes: Sequence[str] = (),
        maximize: bool = False,
        unit: Unit = "trials",
    ) -> ArmReport:
        """The report of a search; ``left`` are the arms that have something left to try.

        ``notes`` are added to the notes made here; the other arguments are those of the class.
        """
        said = [f"Rewards: {pulls.scale.describe(maximize=maximize)}.", *notes]
        said += [f"{names[a]} failed in all of its trials." for a in sorted(pulls.given_up())]
        empty = sorted(set(range(len(names))) - set(left))
        said += [f"{names[a]} has no configuration left to try." for a in empty]
        for before, after in itertools.pairwise(rounds):
            back = ", ".join(names[a] for a in after.arms if a not in before.arms)
            if back:
                said.append(
                    f"Round {after.index + 1} takes back {back}: nothing was left to try in the"
                    " arms of the round before."
                )
        losses = (-pulls.losses if maximize else pulls.losses).tolist()
        return cls(tuple(names), pulls.records, losses, tuple(rounds), tuple(said), maximize, unit)

    def __post_init__(self) -> None:
        n, decided = len(self.records), [d.arm for r in self.rounds for d in r.decisions]
        if len(self.losses) != n:
            raise ValueError(
                f"losses must have one value for each of the {n} pulls, got {len(self.losses)}."
            )
        n_arms = max([*self.records.arm.tolist(), *decided], default=-1) + 1
        if len(self.names) < n_arms:
            raise ValueError(f"names must name all {n_arms} arms, got {len(self.names)}.")
        check_choice("unit", self.unit, get_args(Unit))

    def __repr__(self) -> str:
        sizes = {"arm": len(self.names), "pull": len(self.records)}
        sizes |= {"round": len(self.rounds)} if self.rounds else {}
        return f"ArmReport({join_names(format_count(n, w) for w, n in sizes.items())}; print it)"

    @property
    def opened(self) -> tuple[int, ...]:
        """How many pulls had finished when each round was opened."""
        return tuple(r.finished for r in self.rounds)

    def table(self) -> list[ArmRow]:
        """A row for each arm, in the order of their numbers."""
        records, n_arms, n = self.records, len(self.names), len(self.records)
        of = ArmStatistics.from_records(records, n_arms)
        # 0 if no pull of the arm has finished; NaN if none of its finished pulls was timed.
        seconds = np.where((of.timed == 0) & (of.scored > 0), np.nan, of.seconds)
        total = float(of.seconds.sum())
        values = self._sign * np.asarray(self.losses, dtype=np.float64).reshape(-1)
        known = (records.status == Status.COMPLETE) & ~np.isnan(values)
        best = np.full(n_arms, np.nan)
        np.fmin.at(best, records.arm[known], values[known])  # ``fmin`` ignores NaN
        # Only the newest decision on an arm counts: a later round may have taken it back.
        last = {d.arm: (r.index + 1, d) for r in self.rounds for d in r.decisions}
        left = {k: (number, d.reason) for k, (number, d) in last.items() if not d.advances}
        return [
            ArmRow(
                arm=name,
                pulls=int(of.pulls[k]),
                running=int(of.pulls[k] - of.scored[k]),
                failed=int(of.failed[k]),
                pull_share=float(of.pulls[k]) / n if n else np.nan,
                seconds=float(seconds[k]),
                seconds_share=float(seconds[k]) / total if total else np.nan,
                best=float(self._sign * best[k]),
                mean_reward=float(of.mean[k]) if of.scored[k] else np.nan,
                left=left.get(k, (None, ""))[0],
                reason=left.get(k, (None, ""))[1],
            )
            for k, name in enumerate(self.names)
        ]

    def to_frame(self) -> pd.DataFrame:
        """The table as a data frame of pandas, a column for each attribute of ``ArmRow``."""
        pandas = require("pandas", needed_by="automl_plugins.bandits", extra="evidence")
        rows = [asdict(row) for row in self.table()]
        frame: pd.DataFrame = pandas.DataFrame(rows, columns=[f.name for f in fields(ArmRow)])
        return frame.astype({"left": "Int64"})

    def round_lines(self) -> list[str]:
        """A line for each round: what it spent so far, who takes part, who left and why.

        A pull counts for the round in which it finished, a running one for the last round.
        """
        costs, lines = self.costs(self.unit), []
        for r, after in itertools.zip_longest(self.rounds, self.opened[1:]):
            # Pulls are in the order in which they finished, running ones last; the last round has
            # no ``after`` and takes all that are left.
            spent = costs[r.finished : after].sum()
            in_seconds = self.unit == "seconds"
            amount = f"{spent:.1f} s" if in_seconds else format_count(int(spent), "trial")
            lines.append(describe_round(r, self.names, f" ({amount})"))
        return lines

    def costs(self, unit: Unit) -> FloatArray:
        """Cost of each pull (n,), 0 where its seconds are unknown; ``unit`` as in the class."""
        if unit == "trials":
            return np.ones(len(self.records))
        return np.where(self.records.finished, np.nan_to_num(self.records.seconds), 0.0)

    def __str__(self) -> str:
        """Plain text: a summary, the table with the best arm first, the rounds and the notes."""
        right = [False, *[True] * (len(_HEADERS) - 2), False]
        table = align_columns([_HEADERS, *self._cells()], right, rule=True)
        blocks = [self._summary(), "\n".join(table)]
        for title, lines in self._lists():
            blocks.append("\n".join([title, *(f"- {line}" for line in lines)]))
        return "\n\n".join(blocks)

    def to_markdown(self) -> str:
        """The report in Markdown; needs the library tabulate."""
        align = ["left", *["right"] * (len(_HEADERS) - 2), "left"]
        table = MARKDOWN.tabulate(
            _HEADERS, list(self._cells()), align, needed_by="automl_plugins.bandits"
        )
        blocks = [MARKDOWN.escape(self._summary()), table]
        for title, lines in self._lists():
            blocks += [MARKDOWN.heading(title), MARKDOWN.items(map(MARKDOWN.escape, lines))]
        return "\n\n".join(blocks) + "\n"

    # --- parts ----------------------------------------------------------------------------

    @property
    def _sign(self) -> float:
        return -1.0 if self.maximize else 1.0

    def _sorted(self) -> list[ArmRow]:
        """The best arm first, arms without a value last."""
        return sorted(
            self.table(), key=lambda r: math.inf if math.isnan(r.best) else self._sign * r.best
        )

    def _summary(self) -> str:
        rows = self._sorted()
        totals = {"running": sum(r.running for r in rows), "failed": sum(r.failed for r in rows)}
        asides = ", ".join(f"{n} {what}" for what, n in totals.items() if n)
        counts = {"arm": len(rows), "pull": len(self.records)}
        line = ", ".join(format_count(n, what) for what, n in counts.items())
        line += f" ({asides})" if asides else ""
        seconds = sum(row.seconds for row in rows if not math.isnan(row.seconds))
        line += f", {seconds:.1f} s" if seconds else ""
        valued = [row for row in rows if not math.isnan(row.best)]
        if valued:
            line += f"; best {valued[0].best:.6g}, by {one_line(valued[0].arm)}"
        return line

    def _cells(self) -> Iterator[tuple[str, ...]]:
        for row in self._sorted():
            yield (
                one_line(row.arm),
                *map(str, (row.pulls, row.running, row.failed)),
                _number(100 * row.pull_share, ".1f"),
                _number(row.seconds, ".1f" if row.seconds >= 10 else ".3g"),
                _number(100 * row.seconds_share, ".1f"),
                _number(row.best, ".6g"),
                _number(row.mean_reward, ".3f"),
                "" if row.left is None else one_line(f"round {row.left}: {row.reason}"),
            )

    def _lists(self) -> Iterator[tuple[str, list[str]]]:
        if self.rounds:
            yield "Rounds", self.round_lines()
        if self.notes:
            yield "Notes", [one_line(note) for note in self.notes]


def describe_round(outcome: Round, names: Sequence[str], spent: str = "") -> str:
    """A line on a round: its arms, the largest share first, then those that left, and why.

    ``spent`` is inserted after the number of the round, such as " (12 trials)".
    """
    total = sum(d.share for d in outcome.decisions)
    stays = sorted((d for d in outcome.decisions if d.advances), key=lambda d: -d.share)
    leaves = [d for d in outcome.decisions if not d.advances]
    leaves.sort(key=lambda d: math.inf if d.score is None else -d.score)
    line = f"Round {outcome.index + 1}{spent}: "
    # Terms that all arms share are written once; softmax shares differ in their last digits.
    if len({(d.score, d.probability, round(d.share, 9)) for d in stays}) == 1:
        each = " each" if len(stays) > 1 else ""
        line += f"{_list(names[d.arm] for d in stays)} ({_terms(stays[0], total)}{each})"
    else:
        line += _list(f"{names[d.arm]} ({_terms(d, total)})" for d in stays)
    if leaves:
        line += "; left: "
        line += _list(f"{names[d.arm]} ({_terms(d, None)}: {d.reason})" for d in leaves)
    return one_line(line)


def describe_dropped_best(
    opened: Iterable[Round], records: ArmRecords, arms: Sequence[int], names: Sequence[str]
) -> list[str]:
    """A line for each round that drops the arm of the best trial, although it can still be pulled.

    ``records`` are the pulls from which the rounds were drawn, ``arms`` the numbers of the arms
    that can still be pulled, ``names`` the names of all arms.
    """
    best = records.incumbents()
    return [
        one_line(
            f"Round {each.index + 1} drops {names[min(best)]}, the arm of the best trial so far:"
            " score='mean' compares mean rewards. score='maximum' would keep it."
        )
        for each in opened
        # If several arms tie for the best, it is enough that one of them stays.
        if best and best <= {d.arm for d in each.decisions if not d.advances} & set(arms)
    ]


def _list(arms: Iterable[str]) -> str:
    listed = list(arms)
    more = f" and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
    return ", ".join(listed[:_LISTED]) + more


def _terms(decision: Decision, total: float | None) -> str:
    """The score and probability that are known, and the share of ``total`` unless it is None."""
    terms = []
    if decision.score is not None or decision.probability is not None:
        terms.append("no score" if decision.score is None else f"score {decision.score:.3f}")
    if decision.probability is not None:
        terms.append(f"p {decision.probability:.2f}")
    if total is not None:
        terms.append(f"share {100 * decision.share / total if total else 0:.0f} %")
    return ", ".join(terms)


def _number(value: float, form: str) -> str:
    return "-" if math.isnan(value) else format(value, form)
