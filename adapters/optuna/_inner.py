"""The samplers inside the arms: one for each arm, or a fresh one for each trial."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable
from functools import partial
from typing import Any
from zlib import crc32

from optuna.samplers import BaseSampler, RandomSampler, TPESampler

from automl_plugins.streams import Streams

Factory = Callable[..., BaseSampler]
Inner = BaseSampler | Factory | None
Key = tuple[int, int, int | None]  # storage, study, arm

START_UP = 40  # random trials of the default inner samplers of all arms together


def startup_trials(n_arms: int) -> int:
    """Random trials with which each arm's default TPE begins.

    Optuna's 10 for up to four arms, then an equal part of 40, at least 3: ten for each of 16 arms
    would be a random search of 160 trials.
    """
    return min(10, max(3, math.ceil(START_UP / n_arms)))


def tpe(n_arms: int) -> Factory:
    """Factory of Optuna's TPE with a start-up for ``n_arms`` arms."""
    return partial(TPESampler, n_startup_trials=startup_trials(n_arms))


def random(n_arms: int) -> Factory:
    """Factory of Optuna's random sampler."""
    return RandomSampler


class InnerSamplers:
    """Gives out the sampler of an arm.

    Args:
        inner: An instance, of which every arm gets a copy; a factory that takes a seed, called
            for every trial; None for the default.
        default: Factory for a number of arms, in place of None.
        streams: Source of the seeds.

    Raises:
        TypeError: If ``inner`` is neither, or its factory makes something else.
    """

    def __init__(self, inner: Inner, default: Callable[[int], Factory], streams: Streams) -> None:
        self._takes_keyword = inner is None or _takes_keyword(inner)
        if inner is not None and not isinstance(inner, BaseSampler):
            made = self._make(inner, 0) if callable(inner) else inner
            if not isinstance(made, BaseSampler):
                raise TypeError(
                    "inner must be a sampler, a function of a seed that returns one, or None;"
                    f" got {inner!r}" + (f", which returns {made!r}." if callable(inner) else ".")
                )
        self._inner = inner
        self._default = default
        self._streams = streams
        self._copies: dict[Key, BaseSampler] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_copies": {}}  # the keys are of this process

    @property
    def default(self) -> bool:
        """Whether they are those of the recipe, not the user's."""
        return self._inner is None

    @property
    def name(self) -> str:
        """Class of the samplers."""
        sampler = self._inner if isinstance(self._inner, BaseSampler) else self._fresh(1, 0)
        return type(sampler).__name__

    def of_trial(self, key: Key, n_arms: int, number: int) -> BaseSampler:
        """The sampler of trial ``number`` in the arm of ``key``."""
        if isinstance(self._inner, BaseSampler):
            if key not in self._copies:
                self._copies.setdefault(key, copy.deepcopy(self._inner))
            return self._copies[key]
        return self._fresh(n_arms, self._streams.integer("inner", number))

    def of_name(
        self, sampler: BaseSampler, n_arms: int, number: int, name: str, attempt: int = 0
    ) -> BaseSampler:
        """The sampler of one parameter that trial ``number``, served by ``sampler``, asks alone.

        A parameter has a stream of its own, so its value does not depend on what was asked before.
        """
        if isinstance(self._inner, BaseSampler):
            return sampler
        index = (number, crc32(name.encode()), attempt)
        return self._fresh(n_arms, self._streams.integer("inner of a name", *index))

    def reseed_rng(self) -> None:
        """Reseed the copies; what is seeded by the streams differs by its trial already."""
        if isinstance(self._inner, BaseSampler):
            for sampler in (self._inner, *self._copies.values()):
                sampler.reseed_rng()

    def _fresh(self, n_arms: int, seed: int) -> BaseSampler:
        factory = self._default(n_arms) if self._inner is None else self._inner
        made: BaseSampler = self._make(factory, seed)
        return made

    def _make(self, factory: Any, seed: int) -> Any:
        return factory(seed=seed) if self._takes_keyword else factory(seed)


def _takes_keyword(factory: Any) -> bool:
    """Samplers take their seed as a keyword only, functions perhaps under another name."""
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):  # no callable, or one that cannot be looked into
        return False
    return "seed" in parameters or any(p.kind == p.VAR_KEYWORD for p in parameters.values())
