"""The persistent memory: a database of finished runs."""

from typing import TYPE_CHECKING

from automl_plugins._lazy import import_when_used

if TYPE_CHECKING:
    from .connection import StoreError
    from .metastore import MetaStore
    from .rows import SearchInfo

import_when_used(
    __name__,
    {"connection": ["StoreError"], "metastore": ["MetaStore"], "rows": ["SearchInfo"]},
)

__all__ = ["MetaStore", "SearchInfo", "StoreError"]
