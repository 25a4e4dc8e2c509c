"""What is known of an earlier task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from automl_plugins.meta.known_meanings import TaskFacts


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
    def facts(self) -> TaskFacts | None:
        """Sizes of its data, if the meta-features tell them."""
        try:
            return TaskFacts(
                int(self.meta_features["NumberOfInstances"]),
                int(self.meta_features["NumberOfFeatures"]),
            )
        except (KeyError, ValueError, OverflowError):
            return None
