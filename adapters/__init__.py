"""Translate between the frameworks' objects and the core, which does the computing.

One folder for each framework, installed as ``automl_plugins.adapters``. No folder imports
another, so each needs its own framework only.
"""
