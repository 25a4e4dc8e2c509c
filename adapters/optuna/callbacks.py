"""Callbacks for ``study.optimize``."""

from __future__ import annotations

from math import inf, isfinite

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from automl_plugins._arguments import check_finite, check_integer
from automl_plugins.records.trial import is_feasible

from . import _private
from .studies import is_maximized


class NoImprovement:
    """Stop a study that has not improved for a while.

    It depends on the stored trials only, so workers can share the callback, and a resumed study
    continues counting where it stopped. Counting begins with the first trial that is feasible and
    has a finite value: before it there is nothing to improve on.

    Args:
        patience: Complete trials without an improvement after which the study stops.
        min_delta: Improvements up to this do not count, in units of the objective.

    Raises:
        ValueError: If ``patience`` < 1 or ``min_delta`` < 0; on a multi-objective study.
        TypeError: If they are not numbers.

    Example::

        study.optimize(objective, n_trials=1000, callbacks=[NoImprovement(patience=50)])
    """

    def __init__(self, patience: int, *, min_delta: float = 0.0) -> None:
        check_integer("patience", patience, 1)
        check_finite("min_delta", min_delta)
        self.patience = patience
        self.min_delta = min_delta

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Stop ``study`` if the last ``patience`` complete trials brought no improvement."""
        sign = -1.0 if is_maximized(study) else 1.0
        best, since = inf, 0
        trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        for other in sorted(trials, key=lambda t: t.number):
            feasible = is_feasible(_private.constraints_of(other))
            assert other.value is not None
            # An infinite value is a failure, also one that no other could improve on.
            loss = sign * other.value if feasible and isfinite(other.value) else inf
            if loss < best - self.min_delta:
                best, since = loss, 0
            elif best < inf:
                since += 1
        if since >= self.patience:
            study.stop()
