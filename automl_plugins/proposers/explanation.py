"""Why a configuration was proposed, as data and as a sentence, in every framework."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from automl_plugins.formats import format_count
from automl_plugins.proposers.proposal import COUNTS
from automl_plugins.records.trial import finite_or_none, finite_parts

ORIGINS = {  # each origin, and how the sentence of an explanation continues
    "design": "fills a gap in the search space, no model chose it (start design, or interleaved)",
    "random": "was drawn at random",
    "suggested": "was suggested by earlier tasks (initial design)",
    "model": "was chosen by the surrogate model",
    "inner": "was proposed inside its arm",
    "independent": "had no joint proposal: each parameter was chosen by itself, by default evenly"
    " over its range, beginning in the middle",
    "enqueued": "was enqueued by the user",
    "given": "has only values that were decided beforehand",
    "foreign": "was not proposed by automl_plugins: another sampler proposed it, or it was added",
    "constant": "had nothing to be proposed: each of its parameters has one value",
    "unasked": "asked for no parameter",
    "pending": "has not been proposed yet",
}
MEMBERS = {  # what is behind the names of the members of a committee
    "trees": "quantile boosting",
    "process": "a Gaussian process of the losses",
    "log process": "a Gaussian process of the logarithms of regrets",
    "local process": "a Gaussian process of the region around the best trial",
    "earlier tasks": "models of earlier tasks, weighed by how they rank these trials",
    "meta-learner": "a model of configurations and meta-features over earlier tasks",
}
_NUMBERS = ("value", "bound", "seconds", "success")
_PREDICTING = ("model", "suggested")  # origins whose numbers are predictions of this proposal


@dataclass(frozen=True)
class ArmFacts:
    """Which arm a configuration belongs to, and why this arm was chosen.

    Attributes:
        parameter: Name of the parameter that selects the arm; empty where arms are cells.
        arm: The arm, as text; None where it is unknown.
        reason: Why this arm, in words.
        score: The score by which the policy compared arms; None where it compared none.
        round: Round of successive filtering, from 1; None where there are no rounds.
        sampler: Name of the sampler inside the arm.
    """

    parameter: str = ""
    arm: str | None = None
    reason: str = ""
    score: float | None = None
    round: int | None = None
    sampler: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without unknown facts."""
        return {name: fact for name, fact in asdict(self).items() if fact not in (None, "")}

    @classmethod
    def from_dict(cls, data: Any) -> ArmFacts | None:
        """The inverse of ``to_dict``; invalid facts are left out, and None if none is left."""
        if not isinstance(data, Mapping):
            return None
        texts = ("parameter", "arm", "reason", "sampler")
        known = {name: data[name] for name in texts if isinstance(data.get(name), str)}
        if type(number := data.get("round")) is int:  # True is an instance of int
            known["round"] = number
        facts = cls(**known, score=finite_or_none(data.get("score")))
        return facts if facts != cls() else None

    def __str__(self) -> str:
        name = f"{self.parameter}={self.arm}" if self.parameter else str(self.arm)
        terms = [] if self.round is None else [f"round {self.round}"]
        terms += [self.reason] if self.reason else []
        terms += [] if self.score is None else [f"score {self.score:.3g}"]
        return f"{name} ({', '.join(terms)})" if terms else name


@dataclass(frozen=True)
class Explanation:
    """The facts known about a configuration when it was proposed; None if they were not modelled.

    Attributes:
        number: The trial.
        origin: ``"design"``, ``"random"``, ``"suggested"``, ``"model"``, ``"inner"``,
            ``"independent"``, ``"enqueued"``, ``"given"``, ``"foreign"``, ``"constant"``,
            ``"unasked"`` or ``"pending"``, see ``ORIGINS``.
        value: Predicted value of the objective.
        bound: Predicted optimistic bound of the objective value.
        seconds: Predicted seconds.
        unit: Unit of ``seconds``; empty if it is unknown, as ``cost=`` is a function or names
            another user attribute than ``"seconds"``.
        success: Predicted probability of success.
        n_rows: Finished trials behind the prediction.
        n_diverged: How many of these count as failures, as they are far worse than all others.
        n_infeasible: How many of these are complete as long as none is feasible, so that the
            violation of the constraints is minimised; 0 once a trial is feasible.
        own_share: Share of the search's own trials in the decision, in [0, 1].
        shares: Share of each earlier task by name, largest first; None without earlier tasks.
        member: The member of a committee that proposed; None if none did.
        trust: Probability of drawing each member, by name, largest first; None without a
            committee, and for trials for which no member was drawn.
        arm: The arm and why it was chosen; None without arms.
        fixed: Names of parameters whose values the user decided beforehand.
        independent: Names of parameters that were not part of the joint proposal.

    Example::

        study.optimize(objective, n_trials=30)
        why = explain(study.best_trial)
        print(why, why.origin, why.shares)
    """

    number: int
    origin: str
    value: float | None = None
    bound: float | None = None
    seconds: float | None = None
    unit: str = "s"
    success: float | None = None
    n_rows: int = 0
    n_diverged: int = 0
    n_infeasible: int = 0
    own_share: float | None = None
    shares: Mapping[str, float] | None = None
    member: str | None = None
    trust: Mapping[str, float] | None = None
    arm: ArmFacts | None = None
    fixed: tuple[str, ...] = ()
    independent: tuple[str, ...] = ()

    @classmethod
    def from_facts(
        cls,
        number: int,
        facts: Any,
        *,
        own_share: float | None = None,
        shares: Mapping[str, float] | None = None,
        arm: ArmFacts | None = None,
        origin: str = "foreign",
        fixed: Sequence[str] = (),
        independent: Sequence[str] = (),
    ) -> Explanation:
        """An explanation from stored facts, which anybody may have edited.

        The facts are the origin, predictions, counts, ``member`` and ``trust`` by name;
        invalid ones are left out. ``origin`` is used if no valid origin is stored.
        """
        known = facts if isinstance(facts, Mapping) else {}
        stored = known.get("origin")
        found = stored if isinstance(stored, str) and stored in ORIGINS else origin
        if found == "design" and shares:  # suggestions of a memory share, other designs do not
            found = "suggested"
        predicted = known if found in _PREDICTING else {}
        numbers: dict[str, Any] = {n: finite_or_none(predicted.get(n)) for n in _NUMBERS}
        numbers |= {n: c for n in COUNTS if isinstance(c := predicted.get(n), int) and c >= 0}
        member = known.get("member")
        return cls(
            number=number,
            origin=found,
            **numbers,
            unit="" if known.get("unit") == "" else "s",
            own_share=own_share,
            shares=shares,
            member=member if isinstance(member, str) else None,
            trust=read_parts(known, "trust"),
            arm=arm,
            fixed=tuple(fixed),
            independent=tuple(independent),
        )

    @classmethod
    def from_proposal(
        cls, number: int, stored: Any, *, origin: str = "foreign", arm: ArmFacts | None = None
    ) -> Explanation:
        """An explanation from the stored ``Proposal.to_dict()`` of a trial.

        ``origin`` is used where no valid one is stored.
        """
        facts = stored if isinstance(stored, Mapping) else {}
        shares = read_parts(facts, "shares")
        return cls.from_facts(
            number,
            {**facts, "value": facts.get("loss")},
            # Rounded shares may add up to a little more than 1.
            own_share=None if shares is None else max(0.0, 1.0 - sum(shares.values())),
            shares=shares,
            origin=origin,
            arm=arm,
        )

    @property
    def source(self) -> str | None:
        """The earlier task with the largest share; None without shares."""
        return max(self.shares, key=self.shares.__getitem__) if self.shares else None

    @property
    def source_share(self) -> float:
        """The share of ``source``; 0 without one."""
        return max(self.shares.values()) if self.shares else 0.0

    def __str__(self) -> str:
        facts = [f"Trial {self.number} {self._origin()}"]
        if self.member is not None:
            facts.append(self._member())
        # Predictions are kept in the observed range, so that both are often the best value.
        bound = None if self.bound == self.value else self.bound
        for text, fact in (
            ("predicted value {:.6g}", self.value),
            ("may be as good as {:.6g}", bound),
            (f"predicted cost {{:.3g}} {self.unit}".strip(), self.seconds),
            ("probability of success {:.0%}", self.success),
        ):
            if fact is not None:
                facts.append(text.format(fact))
        if (n := self.n_infeasible) == 1:
            facts.append("the only complete trial is not feasible: its violation is minimised")
        elif n:
            facts.append(
                f"none of the {n} complete trials that the model knew is feasible: their"
                " violations are minimised"
            )
        if n := self.n_diverged:
            facts.append(f"{format_count(n, 'trial')} far worse than all others counted as failed")
        # Without shares of earlier tasks, all is said already where a member proposed, or where
        # no model was asked.
        is_own_model = self.member is None and self.origin in _PREDICTING
        if self.own_share is not None and (self.shares or is_own_model):
            facts.append(self._shares(self.own_share))
        if self.arm is not None and self.arm.arm is not None:
            facts.append(f"arm: {self.arm}")
        if self.fixed and self.origin not in ("enqueued", "given"):
            facts.append(f"{', '.join(self.fixed)} decided beforehand")
        if self.independent:
            facts.append(f"{', '.join(self.independent)} chosen independently")
        return "; ".join(facts) + "."

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show the sentence where a notebook shows the last value of a cell."""
        printer.text(str(self))

    def _member(self) -> str:
        """The member that proposed; if it was drawn, trust in it, then in the others."""
        member, trust = str(self.member), dict(self.trust or {})
        about = f" ({MEMBERS[member]})" if member in MEMBERS else ""
        if self.origin not in _PREDICTING:  # it completes a start design without its model
            terms = [f"{name!r} {part:.0%}" for name, part in trust.items()]
            trusted = f" (trust: {', '.join(terms)})" if terms else ""
            return f"its turn fell to the member {member!r}, which asked no model{trusted}"
        own = trust.pop(member, None)
        terms = [] if own is None else [f"trusted with {own:.0%}"]
        terms += [f"{name!r} {part:.0%}" for name, part in trust.items()]
        trusted = f", {', '.join(terms)}" if terms else ""
        return f"the member {member!r}{about} proposed it{trusted}"

    def _shares(self, own_share: float) -> str:
        """The shares of this search and of the earlier tasks, in words."""
        own = f"in its model this search's own trials count {own_share:.0%}"
        if self.shares is None or self.source is None:
            return own
        name, _, learner = self.source.partition(" of ")
        if len(self.shares) == 1 and name == "meta-learner":  # it has no shares of single tasks
            memory = f"memory {learner!r}" if learner else "memory"
            return f"{own}, the meta-learner of the {memory} {self.source_share:.0%}"
        largest = f"{self.source!r} the most ({self.source_share:.0%})"
        return f"{own}, earlier tasks {sum(self.shares.values()):.0%}, of them {largest}"

    def _origin(self) -> str:
        if self.origin == "model" and self.n_rows:
            return f"{ORIGINS['model']}, fitted on {format_count(self.n_rows, 'trial')}"
        if self.origin == "inner" and self.arm is not None and self.arm.sampler:
            inside = ", the sampler of its arm" if self.arm.arm is not None else ""
            return f"was proposed by {self.arm.sampler}{inside}"
        return ORIGINS.get(self.origin, self.origin)


Parts = Literal["shares", "trust"]


def read_parts(facts: Any, which: Parts) -> dict[str, float] | None:
    """Shares of earlier tasks, or trust in members, of stored facts; None without any.

    The largest comes first.
    """
    return finite_parts(facts.get(which)) if isinstance(facts, Mapping) else None
