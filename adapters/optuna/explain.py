"""Why was this trial proposed?"""

from __future__ import annotations

from dataclasses import dataclass

from optuna.trial import FrozenTrial, Trial

from . import _private

_ORIGINS = {
    "design": "fills the search space (start or interleaved)",
    "random": "was drawn at random (start)",
    "model": "was chosen by the surrogate model",
}


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
    """

    number: int
    origin: str
    value: float | None = None
    bound: float | None = None
    seconds: float | None = None
    success: float | None = None
    n_rows: int = 0

    def __str__(self) -> str:
        facts = [f"Trial {self.number} {_ORIGINS[self.origin]}"]
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
        return ", ".join(facts) + "."


def explain(trial: FrozenTrial | Trial) -> Explanation:
    """Why ``trial`` was proposed, read from its user attribute ``automl_plugins``.

    Raises:
        ValueError: If no sampler of this package proposed the trial.
    """
    facts = _private.read_explanation(trial)
    if not facts:
        raise ValueError(
            f"Trial {trial.number} was not proposed by a sampler of automl_plugins: it was"
            " enqueued or added, its first trial, or sampled by another sampler."
        )
    return Explanation(number=trial.number, **facts)
