"""``GBQRSampler`` of automl_plugins: Bayesian optimisation with quantile boosting."""

from automl_plugins.adapters.optuna import GBQRSampler, explain

__all__ = ["GBQRSampler", "explain"]
