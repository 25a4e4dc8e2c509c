"""Comparison of methods over tasks: average ranks, Iman-Davenport, Wilcoxon, Finner, ADTM."""

from automl_plugins.statistics.adtm import distance_to_minimum
from automl_plugins.statistics.comparison import compare
from automl_plugins.statistics.omnibus import OmnibusTest, iman_davenport
from automl_plugins.statistics.pairwise import finner, wilcoxon_pairs
from automl_plugins.statistics.ranks import average_ranks, cliques
from automl_plugins.statistics.results import BudgetComparison, Comparison

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
