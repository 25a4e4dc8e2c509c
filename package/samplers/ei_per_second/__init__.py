"""``EIPerSecondSampler`` of automl_plugins: expected improvement per predicted second."""

from automl_plugins.adapters.optuna import SECONDS, EIPerSecondSampler, explain

__all__ = ["SECONDS", "EIPerSecondSampler", "explain"]
