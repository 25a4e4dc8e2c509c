"""What proposers of the core raise reaches the user."""

from __future__ import annotations

from typing import Any

import pytest
from automl_plugins.adapters.hyperopt.proposing import ProposerAlgorithm
from hyperopt import hp
from hyperopt_runs import minimise

from automl_plugins.proposers.proposal import Proposer


class Mistaken:
    """A proposer with a mistake in its code."""

    timed = False

    def propose(self, *_: Any) -> Any:
        raise KeyError("a mistake")


def test_a_mistake_in_the_code_is_no_failure_of_a_surrogate() -> None:
    def mistaken() -> Proposer:
        return Mistaken()

    algo = ProposerAlgorithm(mistaken)
    with pytest.raises(KeyError, match="a mistake"):
        minimise(lambda x: x, hp.uniform("x", 0, 1), algo, 2)
