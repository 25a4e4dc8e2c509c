"""A running trial with its arm, and the sampler that proposes everything else."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from automl_plugins.streams import Streams

from . import _private
from ._arm_grids import Grid
from ._inner import InnerSamplers

_REDRAWS = 3  # of a configuration that the arm has tried already


class Pull:
    """One pull of an arm; without an arm, a trial of which the sampler decides everything.

    Args:
        name: Of the arm parameter.
        distribution: Of the arm parameter; None if it is not known.
        arm: Index of the choice; None if it is not known.
        sampler: The arm's.
        study: As that sampler sees it.
        grid: The arm's configurations, if they are few.
        samplers: Where the sampler comes from.
        streams: Source of randomness.

    Attributes:
        joint: Names that the sampler proposes jointly.
    """

    def __init__(
        self,
        *,
        name: str,
        distribution: CategoricalDistribution | None,
        arm: int | None,
        sampler: BaseSampler,
        study: Study,
        grid: Grid | None,
        samplers: InnerSamplers,
        streams: Streams,
    ) -> None:
        self.distribution = distribution
        self.arm = arm
        self.sampler = sampler
        self.study = study
        self.joint: set[str] = set()
        self._name = name
        self._grid = grid
        self._samplers = samplers
        self._streams = streams

    @property
    def choice(self) -> Any:
        """The arm, as the objective calls it."""
        assert self.distribution is not None and self.arm is not None
        return self.distribution.choices[self.arm]

    def space(self, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """What can be proposed before the objective asks, the arm included."""
        joint = self.sampler.infer_relative_search_space(self.study, self._decided(trial))
        self.joint = joint.keys() - {self._name}
        space = {} if self._grid is None else dict(self._grid.union.distributions)
        space |= {name: joint[name] for name in self.joint}
        if self.distribution is not None and not self.distribution.single():
            space[self._name] = self.distribution
        return dict(sorted(space.items()))

    def propose(
        self, study: Study, trial: FrozenTrial, space: Mapping[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The joint proposal for ``space``, the arm included.

        Args:
            study: As Optuna gave it to us.
            trial: The trial.
            space: What was inferred, or less of it.
        """
        others = {name: d for name, d in space.items() if name != self._name}
        if self._grid is None:
            values = self._jointly(trial, others)
        else:
            values = self._distinct(self._grid, study, trial, others)
        if self._name in space and self.arm is not None:
            values[self._name] = self.choice
        return values

    def ask(
        self, trial: FrozenTrial, name: str, distribution: BaseDistribution, attempt: int = 0
    ) -> Any:
        """The arm's sampler on one parameter alone."""
        n_arms = 1 if self.distribution is None else len(self.distribution.choices)
        sampler = self._samplers.of_name(self.sampler, n_arms, trial.number, name, attempt)
        return sampler.sample_independent(self.study, self._decided(trial), name, distribution)

    def _jointly(
        self, trial: FrozenTrial, space: Mapping[str, BaseDistribution]
    ) -> dict[str, Any]:
        values = self.sampler.sample_relative(self.study, self._decided(trial), dict(space))
        if not values:  # it is still in its start-up
            self.joint = set()
        return dict(values)

    def _distinct(
        self, grid: Grid, study: Study, trial: FrozenTrial, space: Mapping[str, BaseDistribution]
    ) -> dict[str, Any]:
        """A proposal that the arm has not tried: another draw, else the nearest one left."""
        held = _private.held_values(study, trial)
        joint = {name: d for name, d in space.items() if name in self.joint}
        for attempt in range(_REDRAWS + 1):
            values = self._jointly(trial, joint)
            for name in sorted(space.keys() - values.keys()):
                values[name] = self.ask(trial, name, space[name], attempt)
            vector = grid.vector(values | held)
            if not len(grid.untried) or grid.is_untried(vector):
                break
        else:
            rng = self._streams.generator("untried", trial.number)
            nearest = grid.nearest(vector, held, rng)
            if nearest is not None:
                values, vector = grid.values(nearest, rng), nearest
        _private.write_proposal(study, trial, grid.internal(vector))
        return {name: values[name] for name in space}

    def _decided(self, trial: FrozenTrial) -> FrozenTrial:
        """The trial as if it had asked for its arm already."""
        if self.arm is None or self._name in trial.params:
            return trial
        assert self.distribution is not None
        own = copy.copy(trial)
        own.params = trial.params | {self._name: self.choice}
        own.distributions = trial.distributions | {self._name: self.distribution}
        return own
