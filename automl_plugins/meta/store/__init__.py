"""The persistent memory: a database of finished runs."""

from .errors import StoreError
from .metastore import MetaStore
from .reader import SearchInfo

__all__ = ["MetaStore", "SearchInfo", "StoreError"]
