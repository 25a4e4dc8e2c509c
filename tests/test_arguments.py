"""Checks of arguments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from automl_plugins._arguments import check_finite


@pytest.mark.parametrize("kind", [float, np.float16, np.float32, np.float64])
def test_finite_numbers_of_any_precision(kind: Any) -> None:
    check_finite("x", kind(0.5), positive=True)  # single precision ends far below 1.8e308
    for wrong in (-1.0, 0.0, math.inf, math.nan):
        with pytest.raises(ValueError, match=r"x must be a finite number > 0, got"):
            check_finite("x", kind(wrong), positive=True)
