"""The persistent memory: a database of finished runs."""

from typing import TYPE_CHECKING

from automl_plugins._imports import import_when_used

if TYPE_CHECKING:
    from .connection import StoreError as StoreError
    from .metastore import MetaStore as MetaStore
    from .rows import SearchInfo as SearchInfo

import_when_used(
    __name__,
    {"connection": ["StoreError"], "metastore": ["MetaStore"], "rows": ["SearchInfo"]},
)
