"""What is known of an earlier task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from .known_meanings import DataSize


@dataclass(frozen=True)
class MetaTask:
    """An earlier task.

    Attributes:
        name: Its name, unique in a ``MetaDataset``.
        meta_features: Properties of its data by name; empty where they were not extracted.
        tags: What else is known of it.
    """

    name: str
    meta_features: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        tags = f", {dict(self.tags)}" if self.tags else ""
        return f"MetaTask({self.name!r}, {len(self.meta_features)} meta-features{tags})"

    @property
    def size(self) -> DataSize:
        """Sizes of its data, as far as the meta-features contain them."""
        sizes = [self.meta_features.get(f"NumberOf{what}") for what in ("Instances", "Features")]
        return DataSize(*(int(n) if n is not None and 1 <= n < np.inf else None for n in sizes))
