"""BOASF as ask and tell: arms share a budget in rounds, a suggest function proposes in each."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hyperopt import (
    JOB_STATE_DONE,
    JOB_STATE_ERROR,
    JOB_STATE_NEW,
    JOB_STATE_RUNNING,
    STATUS_OK,
    Domain,
    Trials,
)

from automl_plugins.bandits.report import describe_lost_incumbent, describe_round
from automl_plugins.bandits.successive_filtering import Round, SuccessiveFiltering, lost_incumbent
from automl_plugins.streams import Streams

from ._arms import Arms, Suggest, Values
from ._documents import NOTE, Document, new_document, note_of, values_of
from ._private import all_documents
from ._pulls import UNFINISHED, PullReader, Pulls, number, seconds_of

logger = logging.getLogger("automl_plugins.adapters.hyperopt.boasf")

#: None, a key of the result, or a function of the result: the seconds an evaluation is charged.
Cost = str | Callable[[dict[str, Any]], float] | None


@dataclass(frozen=True)
class Opened:
    """A round and how many pulls had finished when it was opened."""

    round: Round
    finished: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a document."""
        return {"round": self.round.to_dict(), "finished": self.finished}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Opened:
        """What ``to_dict`` returned."""
        return cls(Round.from_dict(data["round"]), int(data["finished"]))


class BoasfSearch:
    """A search under way. All that it must remember is in the trials.

    The rounds of an earlier search with the same settings are taken up where they are; a search
    with other settings opens rounds of its own, and what the trials have cost so far is spent.

    Args:
        domain: What is searched.
        trials: Where trials are and go. Those that are new, or were running when an earlier
            search was killed, are evaluated first.
        arms: The arms.
        filtering: Budget and rules.
        settings: What tells this search from others in the same trials; plain data.
        inner: Suggest function inside the arms.
        streams: Source of randomness.
        cost: What an evaluation is charged, see ``boasf_fmin``.
        reward_range: The best and the worst loss there may be.
        points: Configurations to be evaluated first.
    """

    def __init__(
        self,
        domain: Domain,
        trials: Trials,
        arms: Arms,
        filtering: SuccessiveFiltering,
        *,
        settings: dict[str, Any],
        inner: Suggest,
        streams: Streams,
        cost: Cost = None,
        reward_range: tuple[float, float] | None = None,
        points: Sequence[Values] = (),
    ) -> None:
        self.trials = trials
        self._domain, self._arms, self._filtering = domain, arms, filtering
        self._settings, self._inner, self._streams = settings, inner, streams
        self._cost, self._range = cost, reward_range
        self._reader = PullReader(arms, None if cost is None else self._charge_known)
        documents = all_documents(trials)
        known = [values_of(document) for document in documents]
        self._points = [point for point in points if point not in known]
        self._waiting = [d for d in documents if d["state"] in UNFINISHED]
        for document in self._waiting:
            document["state"] = JOB_STATE_NEW
            _complete(document, domain)
        stored = opened_in(documents, settings)
        self._round = stored[-1].round if stored else None
        self._fresh: list[Opened] = []  # opened since the last trial

    # --- ask ------------------------------------------------------------------------------

    def ask(self) -> Document | None:
        """The next trial, inserted and running; None if there is none before a result, or at all.

        The end has come when it is None while nothing is running.
        """
        pulls = self.pulls()
        if self.spent(pulls) >= self._filtering.budget:
            return None
        if self._waiting:
            return self._start(self._waiting.pop(0))
        if self._points:
            return self._insert(self._points.pop(0))
        left = pulls.left(self._arms)
        k = len(all_documents(self.trials))
        arm = self._choose(pulls, left, k) if left else None
        if arm is None:
            return None
        tried: Set[Any] = pulls.tried.get(arm, frozenset())
        values = self._arms.arms[arm].propose(
            k, pulls.documents(arm), self._inner, self._streams, tried
        )
        return None if values is None else self._insert(values)

    def _choose(self, pulls: Pulls, left: Sequence[int], k: int) -> int | None:
        """The arm of pull k, opening rounds as they end."""
        rounds = [] if self._round is None else [self._round]
        turn = self._filtering.next(left, pulls.records, rounds, self._streams, k)
        for opened in turn.opened:
            self._open(opened, pulls, left)
        return turn.arm

    def _open(self, opened: Round, pulls: Pulls, left: Sequence[int]) -> None:
        self._fresh.append(Opened(opened, int(pulls.records.finished.sum())))
        self._round = opened
        best = "" if math.isinf(pulls.best) else f" Best loss {pulls.best:.6g}."
        logger.info("%s.%s", describe_round(opened, self._arms.names, self._filtering.unit), best)
        lost = lost_incumbent(opened, pulls.records, left)
        if lost is not None:
            logger.warning(describe_lost_incumbent(opened, self._arms.names[lost]))

    def _insert(self, values: Values) -> Document:
        (tid,) = self.trials.new_trial_ids(1)
        document = new_document(self.trials, self._domain, tid, values)
        note: dict[str, Any] = {"arm": self._arms.find(values)}
        if self._round is not None:
            note["round"] = self._round.index
        if self._fresh:
            note |= {"settings": self._settings, "opened": [o.to_dict() for o in self._fresh]}
            self._fresh = []
        document["misc"][NOTE] = note
        self.trials.insert_trial_docs([document])
        self.trials.refresh()
        # As inserted, which may be a copy.
        return self._start(next(d for d in reversed(self.trials.trials) if d["tid"] == tid))

    def _start(self, document: Document) -> Document:
        document["state"] = JOB_STATE_RUNNING
        return document

    # --- tell -----------------------------------------------------------------------------

    def tell(
        self,
        document: Document,
        result: dict[str, Any] | None,
        *,
        began: datetime,
        ended: datetime,
        seconds: float,
        error: BaseException | None = None,
    ) -> None:
        """Finish a trial.

        Args:
            document: What ``ask`` returned.
            result: What the evaluation came to; None if it raised.
            began: When it began.
            ended: When it ended.
            seconds: How long it took.
            error: What it raised.

        Raises:
            ValueError: If ``cost`` finds no seconds in the result of a trial that did not fail.
        """
        document["book_time"], document["refresh_time"] = began, ended
        if result is None:
            document["state"] = JOB_STATE_ERROR
            document["misc"]["error"] = (str(type(error)), str(error))
        else:
            document["state"], document["result"] = JOB_STATE_DONE, result
        self.trials.refresh()
        charged = self._charge(document, seconds)
        document["misc"][NOTE] = {**note_of(document), "seconds": charged}

    def _charge_known(self, document: Document) -> float:
        """Seconds that a finished trial is charged, which another search may have made."""
        return self._charge(document, seconds_of(document))

    def _charge(self, document: Document, seconds: float) -> float:
        """Seconds that a trial is charged; one that failed need not say them."""
        if self._cost is None:
            return seconds
        result = document["result"]
        failed = result.get("status") != STATUS_OK
        try:
            given = self._cost(result) if callable(self._cost) else result.get(self._cost)
        except Exception:
            if not failed:
                raise
            given = None
        charged = number(given)
        if charged >= 0 and math.isfinite(charged):
            return charged
        if given is None and failed:
            return seconds
        raise ValueError(
            f"cost={self._cost!r} must give seconds >= 0, got {given!r} for trial"
            f" {document['tid']} with the result {result!r}."
        )

    # --- read -----------------------------------------------------------------------------

    def pulls(self) -> Pulls:
        """All trials as pulls of arms."""
        return self._reader.read(all_documents(self.trials), self._range)

    def spent(self, pulls: Pulls) -> float:
        """Trials that were started, or known seconds so far."""
        if self._filtering.unit == "trials":
            return float(len(pulls.rows) - len(self._waiting))
        return math.fsum(row.seconds for row in pulls.rows if not math.isnan(row.seconds))


def opened_in(documents: Sequence[Document], settings: dict[str, Any]) -> list[Opened]:
    """Rounds that a search with these settings has stored, in their order."""
    notes = [note_of(document) for document in sorted(documents, key=lambda d: d["tid"])]
    return [
        Opened.from_dict(data)
        for note in notes
        if note.get("settings") == settings
        for data in note["opened"]
    ]


def last_settings(documents: Sequence[Document]) -> dict[str, Any] | None:
    """Settings of the last search that has stored any."""
    newest = sorted(documents, key=lambda d: d["tid"], reverse=True)
    return next((note_of(d)["settings"] for d in newest if "settings" in note_of(d)), None)


def _complete(document: Document, domain: Domain) -> None:
    """Give a document the labels that it lacks."""
    for column in ("idxs", "vals"):
        for label in domain.params:
            document["misc"][column].setdefault(label, [])
