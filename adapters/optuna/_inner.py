"""The samplers inside the arms, and their proposals for a trial of their arm."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from inspect import Parameter, signature
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler, GridSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from automl_plugins.streams import Streams, code_of

from . import _private
from ._arm_reader import Grid
from ._arms import Arms, Choices
from ._steps import Numeric
from ._union import UnionSpace
from .proposer_sampler import ProposerSampler
from .seeded_sampler import SeededSampler
from .space import Distributions, single_value

Factory = Callable[..., BaseSampler]
Inner = BaseSampler | Factory | None
Copies = dict[int | None, BaseSampler]  # by arm; the one of None serves trials without an arm
_REDRAWS = 3  # further draws if the arm has tried the configuration
_PART = 1e-3  # share of a range's width: TPE divides by kernels of 1e-2, which must not be 0


def tpe(n_arms: int) -> Factory:
    """Factory of Optuna's TPE; its number of random trials at the start depends on ``n_arms``.

    With up to four arms each has Optuna's 10, with more an equal share of 40, but at least 3: ten
    for each of 16 arms would be a random search of 160 trials.
    """
    return partial(TPESampler, n_startup_trials=min(10, max(3, math.ceil(40 / n_arms))))


class InnerSamplers:
    """Creates the samplers of the arms from ``inner``, see ``BanditSampler``.

    Raises:
        TypeError: If ``inner`` is neither a sampler nor a factory of one.
    """

    def __init__(self, inner: Inner, streams: Streams) -> None:
        self._takes_keyword = True  # ``seed``, to which functions may give another name
        self._proposing: ProposerSampler | None = None  # one for all trials, if inner is its class
        if inner is not None and not isinstance(inner, BaseSampler):
            # One is made at once, so that a function that returns no sampler fails here, not
            # later.
            made, fault = inner, ""
            try:
                taken = signature(inner)
                kinds = {name: p.kind for name, p in taken.parameters.items()}
                self._takes_keyword = "seed" in kinds or Parameter.VAR_KEYWORD in kinds.values()
                self._make(taken.bind, 0)  # fails if it takes no seed
            except (TypeError, ValueError) as error:  # not callable, or without a signature
                fault = f": {error}"
            else:
                made = self._make(inner, 0)
                fault = f", which returns {made!r}"
            if not isinstance(made, BaseSampler):
                raise TypeError(
                    "inner must be a sampler, a function of a seed that returns one, or None;"
                    f" got {inner!r}{fault}."
                )
            is_class = isinstance(getattr(inner, "func", inner), type)  # also in a partial
            self._proposing = made if is_class and isinstance(made, ProposerSampler) else None
        self._inner = inner
        self.default = inner is None  # whether the samplers are not the user's
        self.streams = streams

    @cached_property
    def name(self) -> str:
        """Class name of the samplers."""
        # Only its class matters here: any number of arms and any seed will do.
        sampler = self._inner if isinstance(self._inner, BaseSampler) else self._fresh(1, 0)
        return type(sampler).__name__

    def of_trial(self, arm: int | None, copies: Copies, n_arms: int, number: int) -> BaseSampler:
        """The sampler of trial ``number`` in an arm.

        If ``inner`` is a sampler, each arm has a copy of it, which is kept in ``copies``.
        """
        if not isinstance(self._inner, BaseSampler):
            return self._fresh(n_arms, self.streams.integer("inner", number))
        if arm not in copies:
            # If two threads come at once, both use the copy that was stored first.
            copies.setdefault(arm, copy.deepcopy(self._inner))
        return copies[arm]

    def of_name(self, sampler: BaseSampler, n_arms: int, index: Sequence[int]) -> BaseSampler:
        """The sampler of a single parameter of a trial whose sampler is ``sampler``.

        A new one is seeded by ``index`` (trial, name, attempt), so its value does not depend on
        the parameters asked for before.
        """
        if isinstance(self._inner, BaseSampler) or isinstance(sampler, SeededSampler):
            return sampler  # ours have streams by name, and know what they proposed
        return self._fresh(n_arms, self.streams.integer("inner of a name", *index))

    def reseed_rng(self, copies: Iterable[BaseSampler]) -> None:
        """Reseed ``inner``, if it is a sampler, and its ``copies`` made by ``of_trial``.

        Samplers made by a factory are seeded by the streams: they differ between trials already.
        """
        if isinstance(self._inner, BaseSampler):
            for sampler in (self._inner, *copies):
                sampler.reseed_rng()

    def _fresh(self, n_arms: int, seed: int) -> BaseSampler:
        if self._proposing is not None:  # it has read its memory, once for all trials
            return self._proposing.with_seed(seed)
        factory = self._inner or tpe(n_arms)
        made: BaseSampler = self._make(factory, seed)
        if isinstance(made, GridSampler):  # all trials need the order that one seed gives
            made = self._make(factory, self.streams.integer("order of a grid"))
        return made

    def _make(self, factory: Any, seed: int) -> Any:
        return factory(seed=seed) if self._takes_keyword else factory(seed)


@dataclass(eq=False, kw_only=True)
class Pull:
    """A running trial with its arm; without an arm, the sampler decides everything."""

    arms: Arms | None  # None if they are not known
    arm: int | None  # index of the trial's arm; None if it is not known
    sampler: BaseSampler  # of the arm
    study: Study  # as that sampler sees it
    grid: Grid | None  # the arm's configurations, if they are few
    samplers: InnerSamplers
    has_changed: Callable[[str, BaseDistribution], bool]  # see ``ArmReader``
    joint: dict[str, BaseDistribution] = field(default_factory=dict)  # of the joint proposal

    @property
    def parameter(self) -> Choices | None:
        """The arms, if they are choices."""
        return self.arms if isinstance(self.arms, Choices) else None

    @property
    def choice(self) -> Any:
        """The arm as the objective's choice."""
        assert self.parameter is not None and self.arm is not None
        return self.parameter.distribution.choices[self.arm]

    def space(self, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters that can be proposed before the objective asks, the arm included."""
        inferred = self.sampler.infer_relative_search_space(self.study, self._decided(trial))
        self.joint = {name: d for name, d in inferred.items() if can_be_sampled(d)}
        space: dict[str, BaseDistribution] = {}
        if self.parameter is not None:
            # The arm's own sampler must not propose the arm.
            self.joint.pop(self.parameter.key, None)
            if not self.parameter.distribution.single():
                space[self.parameter.key] = self.parameter.distribution
        if self.grid is not None:
            space |= self.grid.union.distributions
        # Cells announce whole ranges, not their parts: Optuna fails a trial whose objective asks
        # for other choices than were announced.
        whole = {} if self.arms is None else self.arms.whole
        space |= {name: whole.get(name, d) for name, d in self.joint.items()}
        return dict(sorted(space.items()))

    def propose(self, study: Study, trial: FrozenTrial, space: Distributions) -> dict[str, Any]:
        """The joint proposal for the inferred ``space``, or a part of it, the arm included."""
        key = "" if self.parameter is None else self.parameter.key
        others = {name: d for name, d in space.items() if name != key}
        if self.grid is None:
            values = self._jointly(trial, others)
        else:
            values = self._distinct(self.grid, study, trial, others)
        if key in space and self.arm is not None:
            values[key] = self.choice
        return values

    def foretell(self, trial: FrozenTrial) -> None:
        """Let the arm's sampler propose jointly what the objective will ask for.

        Called for an arm that became known only when the objective asked for it, so that ``space``
        was inferred without it. Other samplers propose only what the arm's trials have asked for.
        """
        if isinstance(self.sampler, ProposerSampler):
            own = self._decided(trial)
            self.sampler.infer_relative_search_space(self.study, own)
            self.sampler.sample_relative(self.study, own, {})

    def ask(
        self, trial: FrozenTrial, name: str, distribution: BaseDistribution, attempt: int = 0
    ) -> Any:
        """Ask the arm's sampler for a single parameter."""
        n_arms = 1 if self.arms is None else len(self.arms)
        own = distribution
        if self.arms is not None and self.arm is not None:
            own = self.arms.narrow(self.arm, name, distribution)
            # Optuna never asks samplers for a range with one value: they may not be able to.
            if own.single() and not distribution.single():
                return single_value(own)
        index = (trial.number, code_of(name), attempt)
        if not can_be_sampled(own):
            rng = self.samplers.streams.generator("beyond reckoning", *index)
            space = UnionSpace({name: own})  # the core's scales have no such limits
            return space.values(space.vectors.sample(1, rng)[0], rng)[name]
        sampler = self.samplers.of_name(self.sampler, n_arms, index)
        seen = self.study
        if self.has_changed(name, distribution):
            seen = _private.without_foreign(seen, name, own)
        return sampler.sample_independent(seen, self._decided(trial), name, own)

    def _jointly(self, trial: FrozenTrial, space: Distributions) -> dict[str, Any]:
        # ``space`` has whole ranges: the sampler gets the parts that it inferred itself, to
        # propose within the cell.
        own = {name: self.joint.get(name, d) for name, d in space.items()}
        values = self.sampler.sample_relative(self.study, self._decided(trial), own)
        if not values:  # the sampler is still in its start-up
            self.joint = {}
        return dict(values)

    def _distinct(
        self, grid: Grid, study: Study, trial: FrozenTrial, space: Distributions
    ) -> dict[str, Any]:
        """A proposal that the arm has not tried: redrawn, else the nearest untried one."""
        held = _private.held_values(study, trial)
        joint = {name: d for name, d in space.items() if name in self.joint}
        for attempt in range(_REDRAWS + 1):
            values = self._jointly(trial, joint)
            for name in sorted(space.keys() - values.keys()):
                values[name] = self.ask(trial, name, space[name], attempt)
            vector = grid.vector(values | held)
            # If every configuration has been tried, a repeat is accepted.
            if not len(grid.untried) or grid.is_untried(vector):
                break
        else:
            rng = self.samplers.streams.generator("untried", trial.number)
            nearest = grid.nearest(vector, held, rng)
            if nearest is not None:
                # The arm's sampler may know parameters that only failed trials asked for.
                values, vector = values | grid.union.values(nearest, rng), nearest
        # From now on it counts as tried in the grids of other workers.
        _private.write_proposal(study, trial, grid.union.internals(vector))
        return {name: values[name] for name in space}

    def _decided(self, trial: FrozenTrial) -> FrozenTrial:
        """The trial as if it had asked for its arm already."""
        if self.parameter is None or self.arm is None or self.parameter.key in trial.params:
            return trial
        own = copy.copy(trial)
        own.params = trial.params | {self.parameter.key: self.choice}
        own.distributions = trial.distributions | {self.parameter.key: self.parameter.distribution}
        return own


def can_be_sampled(distribution: BaseDistribution) -> bool:
    """Whether Optuna's samplers can compute with a range.

    They divide by parts of its width: where these are 0 or infinite as floats, TPE returns NaN and
    ``RandomSampler`` raises. Where floats cannot resolve half a step, as with integers beyond
    2^51, TPE gives every value the probability 0.
    """
    if isinstance(distribution, CategoricalDistribution) or distribution.single():
        return True
    assert isinstance(distribution, Numeric)
    low, high, step = float(distribution.low), float(distribution.high), distribution.step or 0.0
    if distribution.log:
        # Steps are nearest to each other at the upper end: log(high) - log(high - step).
        low, high, step = math.log(low), math.log(high), step / high
    if 0.0 < step < 4.0 * math.ulp(max(-low, high)):
        return False
    sums = (high - low + step, high + step, high + low)  # TPE's kernels are made of their halves
    return (high - low) * _PART > 0.0 and all(map(math.isfinite, sums))
