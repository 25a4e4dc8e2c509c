"""Your optimizer, with a memory and a sense of cost.

The core: arrays in, arrays out. It knows ConfigSpace, the language of search spaces, and no
optimisation framework; those are served by ``automl_plugins.adapters``.
"""

from importlib.metadata import version

from ._versions import refuse_outdated_dependencies

refuse_outdated_dependencies()

__version__ = version("automl_plugins")
