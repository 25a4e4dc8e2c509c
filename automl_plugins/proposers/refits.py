"""When models are fitted, and what is kept of them between proposals."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy.typing as npt

from automl_plugins.newest import Newest
from automl_plugins.records.history import History

if TYPE_CHECKING:
    from automl_plugins.surrogates import Constraints, Feasibility, RunningTime

M = TypeVar("M", "Constraints", "Feasibility", "RunningTime")

_MANY_ROWS = 512  # from here on a model sees a part of them only (``max_rows``)


def refit_point(n: int, *, conditional: bool = False) -> int:
    """Number of finished rows that the model for ``n`` finished rows is fitted on.

    Every row below 64, then every 2nd, from 128 every 4th, from 256 every 8th, from 512 every 32nd
    and from 1024 every 64th: the model is never more than 1/32, and from 512 on 1/16, of the rows
    behind, and with a capped number of rows the cost of a fit is spread over ever more proposals.
    A ``conditional`` model is fitted half as often from 64 to 511 rows, too: it takes in the rows
    between two fits, up to the first failure.
    """
    step = 1 << min(5, max(0, n.bit_length() - 6))
    is_rare = n >= _MANY_ROWS or (conditional and step > 1)
    return n - n % (2 * step if is_rare else step)


def key_of_rows(history: History, seed: int) -> tuple[object, ...]:
    """The seed and the contents of the rows that a model is fitted with."""
    # Bytes, not a digest of them, which takes longer than to copy and compare them. Not the
    # curves: those of a finished row, known by its number, do not change.
    columns = ("number", "vectors", "losses", "seconds", "status", "budget", "constraints")
    return seed, *(getattr(history, column).tobytes() for column in columns)


def total_seconds(*parts: float | None) -> float | None:
    """The sum of the known ``parts``; None if none is known."""
    known = [seconds for seconds in parts if seconds is not None]
    return sum(known) if known else None


class SharedFits:
    """The newest model of each kind, for members of a committee that learn from the same rows.

    There is no lock: threads that fit the same model fit equal ones.
    """

    def __init__(self) -> None:
        self._newest: dict[str, Newest[Any]] = defaultdict(Newest)

    def fit(self, model: M, *data: npt.NDArray[Any]) -> M:
        """``model`` fitted to ``data``, or the equal one that was fitted before."""
        # Members set nothing but the seed of these models, and what follows from their space, so
        # seed and data identify one.
        contents = [(array.shape, array.tobytes()) for array in data]
        key = getattr(model, "random_state", None), contents
        return cast(M, self._newest[type(model).__name__].get(key, lambda: model.fit(*data)))
