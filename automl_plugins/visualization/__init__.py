"""Plots of replayed searches and of their comparison, as plotly figures."""

from automl_plugins.visualization.progress import plot_ranks, plot_regret
from automl_plugins.visualization.rank_diagram import plot_rank_diagram

__all__ = ["plot_rank_diagram", "plot_ranks", "plot_regret"]
