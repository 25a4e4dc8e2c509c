"""What is kept of models between proposals."""

from __future__ import annotations

from automl_plugins.proposers.refits import total_seconds


def test_unknown_seconds_are_left_out_of_a_sum() -> None:
    assert total_seconds(1.0, None, 2.0) == 3.0 and total_seconds(0.0) == 0.0
    assert total_seconds(None, None) is None
