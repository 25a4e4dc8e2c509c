"""Meta-learned initial designs: configurations for a new task from the runs of earlier ones.

Every design has the same form, ``design(space, memory, task, k)``: the user's search space, a
``MetaDataset``, the meta-features of the new task (None where they are not known) and the number
of configurations. All are deterministic.

==============  =====================================================================
``diverse``     the portfolio of what the new task may be like; the default
``portfolio``   greedy: best on average over all tasks, then what complements it most
``knn``         the best configuration of each of the nearest tasks (auto-sklearn)
``top_k``       the best predicted (GBQR thesis 6.4); weak, since these are near-copies
``delta``       the thesis's trade between predicted rank and spread
``opt``         nearest by the true rank correlation: the thesis's reference, for benchmarks only
``bad_start``   the worst predicted: a control that must lose
==============  =====================================================================
"""

from automl_plugins.meta.designs.design import InitialDesign
from automl_plugins.meta.designs.methods import (
    bad_start,
    delta,
    diverse,
    knn,
    opt,
    portfolio,
    top_k,
)

__all__ = [
    "InitialDesign",
    "bad_start",
    "delta",
    "diverse",
    "knn",
    "opt",
    "portfolio",
    "top_k",
]
