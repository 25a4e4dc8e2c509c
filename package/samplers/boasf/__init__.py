"""``BOASFSampler`` and ``BanditSampler`` of automl_plugins: algorithm selection as a bandit."""

from automl_plugins.adapters.optuna import BanditSampler, BOASFSampler, arm_report

__all__ = ["BOASFSampler", "BanditSampler", "arm_report"]
