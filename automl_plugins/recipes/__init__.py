"""The methods by name, each a set of parts: what every framework's classes are made of.

This is the only place of their defaults. All recipes take ``n_startup``, ``n_candidates``,
``failed_trials`` and ``max_rows`` of ``ProposerSettings``. The presets that
follow a source (``thesis=True``, ``paper=True``) have defaults of their own for these; None stands
for them.
"""

from typing import TYPE_CHECKING

from automl_plugins._lazy import import_when_used

if TYPE_CHECKING:
    from .auto import auto
    from .with_memory import blended, pmf, tst
    from .without_memory import (
        ei_per_second,
        gbqr,
        gbqr_surrogate,
        gbqr_thesis,
        make_proposer,
        surrogate,
    )

import_when_used(
    __name__,
    {
        "auto": ["auto"],
        "with_memory": ["blended", "pmf", "tst"],
        "without_memory": [
            "ei_per_second",
            "gbqr",
            "gbqr_surrogate",
            "gbqr_thesis",
            "make_proposer",
            "surrogate",
        ],
    },
)

__all__ = [
    "auto",
    "blended",
    "ei_per_second",
    "gbqr",
    "gbqr_surrogate",
    "gbqr_thesis",
    "make_proposer",
    "pmf",
    "surrogate",
    "tst",
]
