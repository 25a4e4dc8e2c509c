"""``AutoSampler`` of automl_plugins: a committee of models, one of which proposes."""

from automl_plugins.adapters.optuna import AutoSampler, explain, member_trust

__all__ = ["AutoSampler", "explain", "member_trust"]
