"""Named, independent random streams: the same seed and place give the same numbers, always.

No generator is ever advanced across proposals. Every use of randomness has a name and an index
(the trial number, the refit point, a bandit round), so a proposal can be repeated after a crash,
in another process or on another worker.
"""

from __future__ import annotations

import zlib

import numpy as np

from automl_plugins._arguments import check_integer


class Streams:
    """Factory of generators, one for each (name, index...).

    Args:
        seed: Non-negative integer; None draws one from the operating system.

    Attributes:
        seed: The seed in use, worth logging when it was drawn.
    """

    def __init__(self, seed: int | None = None) -> None:
        check_integer("seed", seed, 0, optional=True)
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        self.seed = int(seed)

    def generator(self, name: str, *index: int) -> np.random.Generator:
        """The generator of stream ``name`` at ``index``; equal calls give equal generators.

        Raises:
            ValueError: For an index outside [0, 2^32).
        """
        for i in index:
            if not 0 <= i < 2**32:  # more than one word of the key: (2^32,) would be (0, 1)
                raise ValueError(f"index must lie in [0, 2^32), got {i}.")
        # A spawn key, not a list of entropy: default_rng([5, 0]) and default_rng(5) coincide.
        key = (code_of(name), *index)
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))

    def integer(self, name: str, *index: int) -> int:
        """A 31-bit seed of stream ``name`` at ``index`` for libraries that want an integer."""
        return int(self.generator(name, *index).integers(2**31))


def code_of(text: str) -> int:
    """A number in [0, 2^32) for a text, the same in every process, unlike that of ``hash``."""
    # Names may have what UTF-8 cannot write, such as lone surrogates of a file's name.
    return zlib.crc32(text.encode(errors="surrogatepass"))
