"""What a proposer answers, and what adapters need of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

import numpy as np
import numpy.typing as npt

from automl_plugins.records.history import History
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.streams import Streams

FloatArray = npt.NDArray[np.float64]
Origin = Literal["design", "random", "model"]

_FACTS = ("loss", "bound", "seconds", "success")  # numbers, None where they are not modelled


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

    def to_dict(self) -> dict[str, Any]:
        """What is known besides the vector, as builtins that JSON keeps; None is left out."""
        known: dict[str, Any] = {"origin": self.origin}
        for name in _FACTS:
            if (fact := getattr(self, name)) is not None:
                known[name] = float(fact)
        if self.n_rows:
            known["n_rows"] = int(self.n_rows)
        if self.shares is not None:
            known["shares"] = {str(name): float(share) for name, share in self.shares.items()}
        return known

    @classmethod
    def from_dict(cls, vector: FloatArray, known: Mapping[str, Any]) -> Self:
        """A proposal of ``vector`` with what ``to_dict`` returned.

        Raises:
            TypeError: For a name that is no attribute.
        """
        return cls(vector, **known)

    def __repr__(self) -> str:
        told = [f"{name} {v:.4g}" for name in _FACTS if (v := getattr(self, name)) is not None]
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
