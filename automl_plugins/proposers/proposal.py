"""What a proposer answers, and what adapters need of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from automl_plugins.records.history import History
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

FloatArray = npt.NDArray[np.float64]
Origin = Literal["design", "random", "model"]


class SurrogateFailure(RuntimeError):
    """A surrogate could not be fitted or asked; the cause is chained."""


@dataclass(frozen=True)
class Proposal:
    """A configuration and why it was chosen.

    Attributes:
        vector: The configuration (d,).
        origin: ``"design"`` (start or interleaved), ``"random"`` or ``"model"``.
        loss: Predicted loss; None when no model was asked, or it knows no scale of losses yet.
        bound: Predicted lower bound of the loss; None as for the loss.
        seconds: Predicted seconds; None where costs are not modelled.
        success: Predicted probability of success; None where nothing has failed yet.
        n_rows: Finished rows the model was fitted on.
        fit_seconds: Time of a fit made for this proposal; None if the model was reused.
        shares: Share of each earlier task in the decision, by name; what is left to 1 is that of
            the search's own evaluations. None where no earlier tasks are known.
    """

    vector: FloatArray
    origin: Origin
    loss: float | None = None
    bound: float | None = None
    seconds: float | None = None
    success: float | None = None
    n_rows: int = 0
    fit_seconds: float | None = None
    shares: Mapping[str, float] | None = None

    def __repr__(self) -> str:
        known = ("loss", "bound", "seconds", "success")
        told = [f"{name} {v:.4g}" for name in known if (v := getattr(self, name)) is not None]
        if self.n_rows:
            told.append(f"{self.n_rows} rows")
        if self.shares:
            told.append(f"{len(self.shares)} earlier tasks")
        return f"Proposal({', '.join([f'{len(self.vector)} parameters by {self.origin}', *told])})"


class Proposer(Protocol):
    """What every adapter drives: a pure function of its arguments, but for caches."""

    @property
    def timed(self) -> bool:
        """Whether the seconds of the history matter."""
        ...

    def propose(
        self,
        space: VectorSpace,
        history: History,
        streams: Streams,
        k: int,
        fixed: FloatArray | None = None,
    ) -> Proposal:
        """The configuration to evaluate as number ``k``; see ``ModelBasedProposer.propose``."""
        ...
