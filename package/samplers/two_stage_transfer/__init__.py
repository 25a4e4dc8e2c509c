"""``TSTSampler`` of automl_plugins: earlier studies vote as long as they agree with this one."""

from automl_plugins.adapters.optuna import TSTSampler, explain, source_shares

__all__ = ["TSTSampler", "explain", "source_shares"]
