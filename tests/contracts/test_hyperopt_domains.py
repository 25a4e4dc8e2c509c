"""Hyperopt's own test domains, with the thresholds that its tests ask of its own algorithms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.hyperopt import (
    auto,
    bandit,
    blended,
    boasf,
    ei_per_second,
    gbqr,
    pmf,
    surrogate,
    tst,
    weighted,
)
from hyperopt import Domain, Trials, rand
from hyperopt.tests.unit.test_domains import CasePerDomain
from hyperopt_runs import minimise

Algo = Callable[..., Any]

#: From ``hyperopt.tests.unit.test_tpe.TestOpt`` in 0.3.0: the loss to reach, and trials for it.
THRESHOLDS = {
    "quadratic1": (1e-5, 1000),
    "q1_lognormal": (0.01, 250),
    "distractor": (-1.96, 100),
    "gauss_wave": (-2.0, 50),
    "gauss_wave2": (-2.0, 75),
    "n_arms": (-2.5, 50),
    "many_dists": (0.0005, 200),
    "branin": (0.7, 200),
}
#: Easier losses. The distractor is a narrow peak next to a long slope: Hyperopt tests TPE on it
#: with special settings, and annealing with this loss.
EASIER = {("gbqr", "distractor"): -0.96, ("ei_per_second", "distractor"): -0.96}
#: One algorithm needs few trials: it has to stay below a number near what it takes.
FEWER = {"n_arms": 20, "gauss_wave": 10, "many_dists": 50, "branin": 20}
SEARCHING = ("auto", "gbqr", "ei_per_second", "tst")

#: The choices that can be arms; the other domains have none.
CHOICES = {"n_arms": "x", "gauss_wave": "curve", "gauss_wave2": "hf", "many_dists": "a"}


def earlier(domain: Domain) -> dict[str, Trials]:
    """A random search of the same domain."""
    return {"earlier": minimise(lambda loss: loss, domain.expr, rand.suggest, 30, seed=9)}


ALGOS: Mapping[str, Callable[[Domain], Algo]] = {
    "auto": lambda domain: auto(seed=0),
    "gbqr": lambda domain: gbqr(seed=0),
    "ei_per_second": lambda domain: ei_per_second(seed=0),
    "surrogate": lambda domain: surrogate(surrogate="gaussian_process", seed=0),
    "auto_with_memory": lambda domain: auto(memory=earlier(domain), seed=0),
    "tst": lambda domain: tst(memory=earlier(domain), seed=0),
    "pmf": lambda domain: pmf(memory=earlier(domain), seed=0),
    "blended": lambda domain: blended(memory=earlier(domain), seed=0),
}
ARMS: Mapping[str, Callable[[str], Algo]] = {
    "weighted": lambda label: weighted(label=label, seed=0),
    "bandit": lambda label: bandit(label=label, seed=0),
    "boasf": lambda label: boasf(max_evals=1000, label=label, seed=0),
}


class _Case(CasePerDomain):  # type: ignore[misc]
    """Runs ``fmin`` on ``self.bandit``, which the cases set; as there, an overflow is an error."""

    bandit: Domain

    def run(self, algo: Algo, n: int, loss_threshold: float | None = None) -> Trials:
        with np.errstate(all="raise", under="ignore"):
            return minimise(
                lambda loss: loss, self.bandit.expr, algo, n, loss_threshold=loss_threshold
            )


@pytest.mark.slow
@pytest.mark.parametrize("name", SEARCHING)
class TestThresholds(_Case):
    """The search ends when the loss is reached."""

    @pytest.fixture(autouse=True)
    def given(self, name: str) -> None:
        self.name = name

    def work(self) -> None:
        threshold, n = THRESHOLDS[self.bandit.name]
        if self.name == "gbqr":
            n = FEWER.get(self.bandit.name, n)
        threshold = EASIER.get((self.name, self.bandit.name), threshold)
        trials = self.run(ALGOS[self.name](self.bandit), n, threshold)
        assert min(trials.losses()) < threshold


@pytest.mark.parametrize("name", sorted({*ALGOS, *ARMS} - {*SEARCHING}))
class TestItRuns(_Case):
    """Ten trials of each, as in Hyperopt's tests of TPE and annealing."""

    @pytest.fixture(autouse=True)
    def given(self, name: str) -> None:
        self.name = name

    def work(self) -> None:
        domain = self.bandit
        if self.name in ALGOS:
            algo = ALGOS[self.name](domain)
        elif domain.name in CHOICES:
            algo = ARMS[self.name](CHOICES[domain.name])
        else:
            with pytest.raises(ValueError, match="choice"):
                self.run(ARMS[self.name]("x"), 1)
            return
        trials = self.run(algo, 10)
        # a bandit over options without hyperparameters ends when each was tried
        assert 0 < len(trials) <= 10 and np.isfinite(trials.losses()).all()
