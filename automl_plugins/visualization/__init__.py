"""Plots of replayed or real searches and of comparisons, as figures of plotly (extra ``plot``)."""

from automl_plugins.visualization.comparisons import plot_rank_diagram, plot_ranks, plot_regret
from automl_plugins.visualization.pipeline_embedding import plot_pipeline_embedding
from automl_plugins.visualization.shares import (
    plot_arm_allocation,
    plot_member_trust,
    plot_source_weights,
)

__all__ = [
    "plot_arm_allocation",
    "plot_member_trust",
    "plot_pipeline_embedding",
    "plot_rank_diagram",
    "plot_ranks",
    "plot_regret",
    "plot_source_weights",
]
