"""Methods that propose configurations: from trials, failures, run times and earlier searches.

The core: arrays in, arrays out. It knows ConfigSpace, the language of search spaces, and no
optimisation framework; those are served by ``automl_plugins.adapters``.

``docs/architecture.md`` in the repository describes the layers and defines the terms.
"""

from importlib.metadata import version

from ._imports import refuse_outdated_dependencies

refuse_outdated_dependencies()

__version__ = version("automl_plugins")
