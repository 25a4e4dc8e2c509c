"""Logs of frameworks that are hidden for a while."""

from __future__ import annotations

import logging
from itertools import permutations

import pytest

from automl_plugins.logs import hidden


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_blocks_end_in_any_order(order: tuple[int, ...]) -> None:
    one, other = logging.getLogger("one.framework"), logging.getLogger("another.framework")
    one.setLevel(logging.INFO)
    levels = (logging.ERROR, logging.WARNING, logging.ERROR)
    blocks = [hidden("one.framework", level) for level in levels]
    with hidden("another.framework", logging.CRITICAL):
        for block in blocks:
            block.__enter__()
        assert (one.level, other.level) == (logging.ERROR, logging.CRITICAL)
        for n in order:
            blocks[n].__exit__(None, None, None)
        assert (one.level, other.level) == (logging.INFO, logging.CRITICAL)
    assert other.level == logging.NOTSET


def test_a_logger_that_says_less_is_left_alone() -> None:
    logger = logging.getLogger("silent.framework")
    logger.setLevel(logging.CRITICAL)
    with pytest.raises(KeyError), hidden("silent.framework", logging.WARNING):
        assert logger.level == logging.CRITICAL
        raise KeyError
    assert logger.level == logging.CRITICAL
    logger.setLevel(logging.INFO)  # by the user, in between
    with hidden("silent.framework", logging.WARNING):
        assert logger.level == logging.WARNING
    assert logger.level == logging.INFO


def test_what_a_parent_hides_stays_hidden() -> None:
    parent, logger = logging.getLogger("quiet"), logging.getLogger("quiet.framework")
    parent.setLevel(logging.CRITICAL)
    with hidden("quiet.framework", logging.ERROR):
        assert not logger.isEnabledFor(logging.ERROR)
    assert logger.level == logging.NOTSET
