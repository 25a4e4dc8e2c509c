"""What goes wrong with a store as a whole."""


class StoreError(RuntimeError):
    """A store that cannot be used: damaged, of a newer version, something else, busy, away."""
