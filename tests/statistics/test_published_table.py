"""Figures of a published table, computed from its thirty rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import friedmanchisquare, wilcoxon

from automl_plugins.statistics import compare

METHODS = ["SelectBest", "RandomForest&TPE", "AutoSklearn", "BOASF"]


def boasf(hours: int) -> pd.DataFrame:
    """Balanced accuracies after some hours, data sets x methods."""
    path = Path(__file__).with_name("boasf_table_1.csv")
    table = pd.read_csv(path, comment="#", index_col="Dataset")
    columns = [f"{hours} h {method}" for method in METHODS]
    return table[columns].set_axis(METHODS, axis=1)


def test_the_table_is_complete() -> None:
    assert boasf(2).shape == boasf(4).shape == (30, 4)
    np.testing.assert_allclose(boasf(2).loc["openml_276"], [0.35, 0.393, 0.463, 0.604])
    np.testing.assert_allclose(boasf(4).loc["openml_783"], [0.742, 0.722, 0.867, 0.794])


@pytest.mark.parametrize(
    ("hours", "chi2", "F", "ranks"),
    [
        (2, 49.934, 36.14, [3.417, 3.133, 2.050, 1.400]),
        (4, 63.384, 69.06, [3.533, 3.233, 2.017, 1.217]),
    ],
)
def test_omnibus_and_ranks(hours: int, chi2: float, F: float, ranks: list[float]) -> None:
    scores = boasf(hours)
    comparison = compare(scores, higher_is_better=True)
    test = comparison.iman_davenport
    assert test is not None
    assert test.chi2 == pytest.approx(chi2, abs=5e-4)
    assert test.chi2 == pytest.approx(friedmanchisquare(*scores.to_numpy().T).statistic, rel=1e-9)
    np.testing.assert_allclose(test.F, F, atol=5e-3)
    assert test.df == (3, 87)
    np.testing.assert_allclose(comparison.ranks[METHODS], ranks, atol=5e-4)
    assert list(comparison.ranks.index) == METHODS[::-1]


@pytest.mark.parametrize(("hours", "wins"), [(2, 20), (4, 23)])
def test_boasf_against_autosklearn(hours: int, wins: int) -> None:
    scores = boasf(hours)
    comparison = compare(scores, higher_is_better=True, control="BOASF")
    pair = comparison.pairs.iloc[0]
    assert (pair["method_a"], pair["method_b"]) == ("BOASF", "AutoSklearn")
    assert (pair["wins"], pair["ties"], pair["losses"]) == (wins, 3, 27 - wins)
    difference = scores["BOASF"] - scores["AutoSklearn"]
    assert pair["median_difference"] == pytest.approx(difference.median())
    expected = wilcoxon(difference, zero_method="zsplit").pvalue
    assert pair["p_wilcoxon"] == pytest.approx(expected, rel=1e-9)
    assert comparison.pairs["different"].all()
