"""Framework objects in, framework objects out; the thinking is done in the core.

One folder for each framework, installed as ``automl_plugins.adapters``. No folder imports another
one, so each needs its own framework only.
"""
