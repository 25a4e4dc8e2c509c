"""Comparison of methods over tasks: average ranks, Iman-Davenport, Wilcoxon, Finner, ADTM."""

from automl_plugins.statistics.comparison import compare
from automl_plugins.statistics.results import BudgetComparison, Comparison
from automl_plugins.statistics.significance import (
    OmnibusTest,
    average_ranks,
    cliques,
    distance_to_minimum,
    finner,
    iman_davenport,
    wilcoxon_pairs,
)

__all__ = [
    "BudgetComparison",
    "Comparison",
    "OmnibusTest",
    "average_ranks",
    "cliques",
    "compare",
    "distance_to_minimum",
    "finner",
    "iman_davenport",
    "wilcoxon_pairs",
]
