"""The methods by name: each assembles a proposer of its parts, for the classes of all frameworks.

This is the only place of their defaults. All recipes take ``n_startup``, ``n_candidates``,
``failed_trials`` and ``max_rows`` of ``ProposerSettings``. The presets that follow a publication
(``thesis=True``, ``paper=True``) have their own defaults for these, which None selects.
"""

from typing import TYPE_CHECKING

from automl_plugins._imports import import_when_used

if TYPE_CHECKING:
    from .with_memory import auto as auto
    from .with_memory import blended as blended
    from .with_memory import pmf as pmf
    from .with_memory import tst as tst
    from .without_memory import ei_per_second as ei_per_second
    from .without_memory import gbqr as gbqr
    from .without_memory import gbqr_surrogate as gbqr_surrogate
    from .without_memory import gbqr_thesis as gbqr_thesis
    from .without_memory import make_proposer as make_proposer
    from .without_memory import surrogate as surrogate

import_when_used(
    __name__,
    {
        "with_memory": ["auto", "blended", "pmf", "tst"],
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
