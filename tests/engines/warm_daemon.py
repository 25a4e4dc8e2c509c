"""Spark's daemon of Python workers, with Hyperopt imported: else each trial imports it anew."""

import hyperopt  # noqa: F401
from pyspark.daemon import manager

if __name__ == "__main__":
    manager()
