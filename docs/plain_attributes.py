"""What the API pages leave out: attributes of classes, which docstrings describe in one list."""

from __future__ import annotations

from typing import Any

from griffe import Extension, Module


class PlainAttributes(Extension):
    """Drops the values that attributes have by default; properties stay."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Called when a package is loaded with all of its modules."""
        drop_attributes(pkg)


def drop_attributes(owner: Any) -> None:
    """Drop those of all classes in a module or class."""
    for name, member in list(owner.members.items()):
        if member.is_alias:
            continue
        if member.is_module or member.is_class:
            drop_attributes(member)
        elif owner.is_class and member.is_attribute and "property" not in member.labels:
            del owner.members[name]
