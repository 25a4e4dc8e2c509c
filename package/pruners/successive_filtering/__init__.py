"""``SuccessiveFilteringPruner`` of automl_plugins: a draw decides who goes on."""

from automl_plugins.adapters.optuna import SuccessiveFilteringPruner

__all__ = ["SuccessiveFilteringPruner"]
