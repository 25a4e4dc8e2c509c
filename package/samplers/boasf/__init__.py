"""``BOASFSampler`` and ``BanditSampler`` of automl_plugins: which algorithm gets the trials."""

from automl_plugins.adapters.optuna import BanditSampler, BOASFSampler, arm_report

__all__ = ["BOASFSampler", "BanditSampler", "arm_report"]
