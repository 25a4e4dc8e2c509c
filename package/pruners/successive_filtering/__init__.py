"""``SuccessiveFilteringPruner`` of automl_plugins: trials advance by chance."""

from automl_plugins.adapters.optuna import SuccessiveFilteringPruner

__all__ = ["SuccessiveFilteringPruner"]
