"""When models are fitted, and which fits are kept between proposals."""

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

    A model is fitted at every row below 64, then at every 2nd, from 128 every 4th, from 256 every
    8th, from 512 every 32nd and from 1024 every 64th. It never lacks more than 1/32 of the rows,
    from 512 on 1/16, and the cost of a fit to at most ``max_rows`` is spread over ever more
    proposals. A ``conditional`` model is fitted half as often from 64 to 511 rows: it takes in
    the rows between two fits, up to the first failure.
    """
    step = 1 << min(5, max(0, n.bit_length() - 6))
    is_rare = n >= _MANY_ROWS or (conditional and step > 1)
    return n - n % (2 * step if is_rare else step)


def key_of_rows(history: History, seed: int) -> tuple[object, ...]:
    """The seed and the contents of the rows that a model is fitted on, as a key of caches."""
    # Bytes are copied and compared faster than a digest is computed. Without the curves, which do
    # not change once a row, known by its number, has finished.
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
        # Seed and data identify a model: members set nothing else, except arguments that follow
        # from their common space.
        contents = [(array.shape, array.tobytes()) for array in data]
        key = getattr(model, "random_state", None), contents
        return cast(M, self._newest[type(model).__name__].get(key, lambda: model.fit(*data)))
