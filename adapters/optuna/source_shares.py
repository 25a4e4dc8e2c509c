"""``source_shares``: what part earlier tasks had in the trials of a study."""

from __future__ import annotations

from optuna.study import Study

from . import _private


def source_shares(study: Study) -> dict[int, dict[str, float]]:
    """Share of each earlier task in the proposal of each trial; what is left to 1 is the search's.

    Args:
        study: A study of a sampler that learns from earlier tasks.

    Returns:
        Shares by name of the source, by number of the trial; trials that such a sampler did not
        propose are absent.
    """
    found = {t.number: _private.read_shares(t) for t in study.get_trials(deepcopy=False)}
    return {number: shares[1] for number, shares in found.items() if shares is not None}
