"""What an optimizer must offer to be replayed, and what a replay tells it.

The core drives optimizers of any framework through these few types and imports none of them; the
adapters' ``optimizer(...)`` satisfy them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from ConfigSpace import ConfigurationSpace

from automl_plugins.records.trial import Status

TrialStatus = Status


@dataclass(frozen=True)
class Problem:
    """What an optimizer knows when its search starts.

    Attributes:
        space: The search space; a copy of its own for every search, seeded with ``seed``.
        seed: Seed of this search.
        n_trials: Evaluations it may make; None when the budget is in seconds.
        n_workers: Evaluations that run at the same time.
        steps: Steps of the learning curves, ascending; empty where there are none.
    """

    space: ConfigurationSpace
    seed: int
    n_trials: int | None = None
    n_workers: int = 1
    steps: tuple[float, ...] = ()


@dataclass(frozen=True)
class Proposal:
    """A configuration to be evaluated.

    Attributes:
        config: Values of the active hyperparameters by name; inactive ones are ignored.
        step: The step of the learning curve at which to stop; None evaluates in full.
        token: The optimizer's own handle of the trial.
    """

    config: Mapping[str, Any]
    step: float | None = None
    token: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Outcome:
    """What an evaluation came to.

    Attributes:
        status: How it ended.
        loss: To be minimised; NaN for a failed evaluation, the last report for a pruned one.
        started: Simulated seconds from the start of the search to that of the evaluation.
        finished: The same for its end.
    """

    status: Status
    loss: float
    started: float
    finished: float

    @property
    def seconds(self) -> float:
        """Simulated duration of the evaluation."""
        return self.finished - self.started


@runtime_checkable
class Optimizer(Protocol):
    """A search under way: asked for configurations, told what they came to.

    With several workers it is asked again before it is told; results come in the order in which
    they finish. Two methods are optional: ``report`` (see ``Prunes``) and ``close()``, which is
    called when the search is over.
    """

    def ask(self) -> Proposal | None:
        """The next configuration; None when there is none before a further result, or at all."""
        ...

    def tell(self, proposal: Proposal, outcome: Outcome) -> None:
        """Take the result of an earlier proposal."""
        ...


@runtime_checkable
class Prunes(Protocol):
    """An optimizer that watches learning curves."""

    def report(self, proposal: Proposal, step: float, loss: float) -> bool:
        """Take an intermediate loss; True stops the evaluation there."""
        ...


@runtime_checkable
class Method(Protocol):
    """A way of searching, as ``optimizer(...)`` of an adapter returns it; picklable."""

    @property
    def name(self) -> str:
        """What results are labelled with where the caller gives no name."""
        ...

    def start(self, problem: Problem) -> Optimizer:
        """A fresh search."""
        ...
