"""Why was this trial proposed?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from optuna.trial import FrozenTrial, Trial

from . import _private

_ORIGINS = {
    "design": "fills the search space (start or interleaved)",
    "random": "was drawn at random (start)",
    "model": "was chosen by the surrogate model",
}
_SUGGESTED = "belongs to the start that earlier tasks suggest"


@dataclass(frozen=True)
class Explanation:
    """What was known about a configuration when it was proposed; None where it was not modelled.

    Attributes:
        number: The trial.
        origin: ``"design"``, ``"random"`` or ``"model"``.
        value: Predicted objective value.
        bound: Predicted optimistic bound of the objective value.
        seconds: Predicted seconds.
        success: Predicted probability of success.
        n_rows: Finished trials behind the prediction.
        own_share: Share of the search's own trials in the decision, in [0, 1].
        shares: Share of each earlier task by name, largest first; None without earlier tasks.
    """

    number: int
    origin: str
    value: float | None = None
    bound: float | None = None
    seconds: float | None = None
    success: float | None = None
    n_rows: int = 0
    own_share: float | None = None
    shares: Mapping[str, float] | None = None

    @property
    def source(self) -> str | None:
        """The earlier task with the largest share; None if none has any."""
        return max(self.shares, key=self.shares.__getitem__) if self.shares else None

    @property
    def source_share(self) -> float:
        """Its share."""
        return self.shares[self.source] if self.shares and self.source else 0.0

    def __str__(self) -> str:
        suggested = self.origin == "design" and bool(self.shares)
        origin = _SUGGESTED if suggested else _ORIGINS[self.origin]
        facts = [f"Trial {self.number} {origin}"]
        if self.origin == "model":
            facts.append(f"fitted on {self.n_rows} trials")
        for text, fact in (
            ("predicted value {:.6g}", self.value),
            ("optimistic bound {:.6g}", self.bound),
            ("predicted cost {:.3g} s", self.seconds),
            ("probability of success {:.0%}", self.success),
        ):
            if fact is not None:
                facts.append(text.format(fact))
        if self.own_share is not None:
            facts.append(f"own share {self.own_share:.0%}")
        if self.source is not None:
            facts.append(f"among the sources {self.source!r} weighs most, {self.source_share:.0%}")
        return ", ".join(facts) + "."


def explain(trial: FrozenTrial | Trial) -> Explanation:
    """Why ``trial`` was proposed.

    It is read from the user attributes ``automl_plugins`` and, for samplers that learn from
    earlier tasks, ``automl_plugins:sources``: ``{"own": share, "sources": {name: share}}``.

    Raises:
        ValueError: If no sampler of this package proposed the trial.
    """
    facts = _private.read_explanation(trial)
    if not facts:
        raise ValueError(
            f"Trial {trial.number} was not proposed by a sampler of automl_plugins: it was"
            " enqueued or added, its first trial, or sampled by another sampler."
        )
    own, shares = _private.read_shares(trial) or (None, None)
    return Explanation(number=trial.number, own_share=own, shares=shares, **facts)
