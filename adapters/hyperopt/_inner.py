"""What proposes inside an arm: a suggest function that sees that arm's trials only."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Set
from functools import partial
from typing import Any

from hyperopt import rand, tpe

from automl_plugins.streams import Streams

from ._arms import Arm, Values
from ._documents import Document, own_trials, values_of

logger = logging.getLogger(__name__)

#: ``algo(new_ids, domain, trials, seed)`` returns trial documents.
Suggest = Callable[..., list[Document]]

_NAMED: dict[str, Suggest] = {"random": rand.suggest, "tpe": tpe.suggest}

_STARTUP_JOBS = 20  # of Hyperopt's TPE, for the whole space
_FEWEST = 3  # below that TPE has nothing to compare
_REDRAWS = 3  # of a configuration that was tried before


def inner_of(inner: Suggest | str, n_arms: int) -> Suggest:
    """The suggest function to be used in each of ``n_arms`` arms.

    Hyperopt's TPE starts with ``n_startup_jobs=20`` random trials. Unless the number is given
    (``functools.partial(tpe.suggest, n_startup_jobs=...)``) the arms share them: 20 / ``n_arms``
    each, rounded up, but at least 3.

    Raises:
        ValueError: For an unknown name.
        TypeError: For anything else that is not a function.
    """
    if isinstance(inner, str):
        if inner not in _NAMED:
            raise ValueError(
                f"inner must be 'random', 'tpe' or a suggest function such as"
                f" hyperopt.tpe.suggest, got {inner!r}."
            )
        inner = _NAMED[inner]
    if not callable(inner):
        raise TypeError(
            f"inner must be 'random', 'tpe' or a suggest function such as hyperopt.tpe.suggest,"
            f" got {inner!r}."
        )
    function: Any = inner
    given: dict[str, Any] = {}
    while isinstance(function, partial):
        given = function.keywords | given
        function = function.func
    if function is not tpe.suggest:
        return inner
    share = max(_FEWEST, math.ceil(_STARTUP_JOBS / max(n_arms, 1)))
    return partial(inner, **({"n_startup_jobs": share, "verbose": False} | given))


def propose(
    arm: Arm,
    tid: int,
    documents: Iterable[Document],
    inner: Suggest,
    streams: Streams,
    tried: Set[Any] = frozenset(),
) -> Values | None:
    """A configuration of an arm; None if ``inner`` has none.

    One that was tried before is drawn again a few times; then, if all configurations of the arm
    can be listed, one that was not tried is taken at random.

    Args:
        arm: Where.
        tid: Number of the trial; the same number and trials give the same proposal.
        documents: The arm's trials.
        inner: Suggest function.
        streams: Source of seeds.
        tried: Identities of configurations to avoid, see ``Arm.key``.
    """
    if not arm.labels:
        return arm.outer({})
    own = own_trials(arm, documents)
    values: Values | None = None
    for attempt in range(_REDRAWS if tried else 1):
        proposed = inner([tid], arm.domain, own, streams.integer("inner", tid, attempt))
        if not proposed:
            return None
        values = arm.outer(values_of(proposed[0]))
        if arm.key(values) not in tried:
            return values
    untried = [v for v in arm.grid or () if arm.key(v) not in tried]
    if untried:
        return untried[int(streams.generator("untried", tid).integers(len(untried)))]
    return values
