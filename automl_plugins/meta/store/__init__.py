"""The persistent memory: a database of finished runs."""

from typing import TYPE_CHECKING

from automl_plugins._lazy import import_when_used

if TYPE_CHECKING:
    from .connection import StoreError
    from .metastore import MetaStore
    from .reading import SearchInfo

import_when_used(
    __name__,
    {"connection": ["StoreError"], "metastore": ["MetaStore"], "reading": ["SearchInfo"]},
)

__all__ = ["MetaStore", "SearchInfo", "StoreError"]
