"""Methods that propose configurations: from trials, failures, run times and earlier searches.

The core: arrays in, arrays out. It knows ConfigSpace, the language of search spaces, and no
optimisation framework; those are served by ``automl_plugins.adapters``.

One word means one thing::

    trial      one evaluation of the objective
    search     all trials of one optimiser on one task, in order
    task       a data set or problem that is searched
    history    what the search at hand has observed
    memory     what searches of earlier tasks left
    source     an earlier task that votes in a transfer surrogate
    surrogate  a model of losses or seconds: fit, predict
    proposal   the configuration to evaluate next, and why
    proposer   what makes proposals from a history
    recipe     a named method: a proposer with its parts and defaults
    design     the configurations that a search begins with
    arm        an algorithm, or a cell of the space, that a bandit gives trials to
    pull       one trial of an arm

``docs/architecture.md`` in the repository says how the parts stand on each other.
"""

from importlib.metadata import version

from ._versions import refuse_outdated_dependencies

refuse_outdated_dependencies()

__version__ = version("automl_plugins")
