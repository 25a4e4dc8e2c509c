"""What Optuna's random search completes is searched: every value legal, as many different ones."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters.optuna import (
    BlendedSampler,
    EIPerSecondSampler,
    GBQRSampler,
    PMFSampler,
    SurrogateSampler,
    TSTSampler,
    meta_dataset_from_studies,
)
from automl_plugins.adapters.optuna.space import UnionSpace, space_of_trials
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler

N = 12

EXTREMES: list[BaseDistribution] = [
    FloatDistribution(1e-14, 1e-3, log=True),
    FloatDistribution(100.0, 100.00000000000001),
    FloatDistribution(0.1, 0.10000000000004),
    FloatDistribution(1e-15, 2e-15),
    FloatDistribution(5e-324, 1e-320, log=True),
    FloatDistribution(5e-324, 1e308, log=True),
    FloatDistribution(-1.7e308, 1.7e308),
    FloatDistribution(1e295, 1e296),
    FloatDistribution(0.0, 1e16, step=1e-3),
    FloatDistribution(1e16, 1e16 + 10, step=0.5),
    FloatDistribution(0.0, 1e300, step=1e290),
    FloatDistribution(7.0, 7.0),
    IntDistribution(-(2**62), 2**62),
    IntDistribution(1, 2**63 - 1, log=True),
    IntDistribution(0, 10**30),
    IntDistribution(10**18, 10**18 + 1000),
    IntDistribution(10**15, 10**15 + 10, log=True),
    IntDistribution(2**53 - 5, 2**53 + 5),
    IntDistribution(3, 3 + 7 * 2**60, step=2**60),
]


def suggest(trial: optuna.Trial, name: str, distribution: BaseDistribution) -> Any:
    ask = trial.suggest_int if isinstance(distribution, IntDistribution) else trial.suggest_float
    return ask(name, **{k: v for k, v in vars(distribution).items()})


def searched(sampler: BaseSampler, distribution: BaseDistribution, n: int = N) -> list[Any]:
    """Values of ``n`` trials, whose loss is least in the middle."""
    study = optuna.create_study(sampler=sampler)
    low, high = distribution.low, distribution.high  # type: ignore[attr-defined]

    def objective(trial: optuna.Trial) -> float:
        value = suggest(trial, "x", distribution)
        return float(abs(value / 2 - (low / 2 + high / 2) / 2))

    study.optimize(objective, n_trials=n)
    return [trial.params["x"] for trial in study.trials]


def n_different(distribution: BaseDistribution) -> int:
    """What random search gives in as many trials, 0 if it fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's, which are not about us
        try:
            return len(set(searched(RandomSampler(seed=0), distribution)))
        except OverflowError:
            return 0


def check(sampler: BaseSampler, distribution: BaseDistribution) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "The distribution is specified")  # Optuna's, of decimals
        values = searched(sampler, distribution)
    assert all(distribution._contains(distribution.to_internal_repr(v)) for v in values)
    assert len(set(values)) >= n_different(distribution)


@pytest.mark.parametrize("distribution", EXTREMES, ids=str)
def test_extremes_are_searched(
    distribution: BaseDistribution, caplog: pytest.LogCaptureFixture
) -> None:
    check(GBQRSampler(seed=0, n_candidates=100), distribution)
    assert "independently" not in caplog.text


def distributions() -> st.SearchStrategy[BaseDistribution]:
    exponents = st.floats(-320, 307)
    tens = exponents.map(lambda e: max(10.0**e, 5e-324))
    signed = tens | tens.map(lambda x: -x) | st.just(0.0)
    integers = st.integers(-(2**62), 2**62) | st.integers(-20, 20)

    def floats(low: float, high: float, log: bool) -> FloatDistribution:
        low, high = min(low, high), max(low, high)
        return FloatDistribution(low, high, log=log and low > 0)

    def nearby(low: float, n: int, log: bool) -> FloatDistribution:
        return FloatDistribution(low, low + n * math.ulp(low), log=log and low > 0)

    def stepped(low: float, n: int, share: float) -> FloatDistribution:
        step = max(abs(low) * share, 1e-300)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Optuna's: a range that steps do not divide
            try:
                return FloatDistribution(low, low + n * step, step=step)
            except ArithmeticError:  # nor can Optuna divide all decimals
                reject()

    def ints(low: int, width: int, step: int, log: bool) -> IntDistribution:
        log = log and low > 0
        step = 1 if log else step
        return IntDistribution(low, low + width // step * step, log=log, step=step)

    return st.one_of(
        st.builds(floats, signed, signed, st.booleans()),
        st.builds(nearby, signed, st.integers(0, 30), st.booleans()),
        st.builds(stepped, signed, st.integers(0, 10**9), st.sampled_from([0.1, 0.3, 1e-6, 7.0])),
        st.builds(ints, integers, st.integers(0, 2**62) | st.integers(0, 20),
                  st.integers(1, 9) | st.just(2**40), st.booleans()),
    )  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(distributions())
def test_any_distribution_is_searched(distribution: BaseDistribution) -> None:
    assume(n_different(distribution))
    check(GBQRSampler(seed=0, n_candidates=50, n_startup_trials=9), distribution)


@settings(max_examples=100, deadline=None)
@given(distributions(), st.lists(st.floats(0.0, 1.0), min_size=2, max_size=6))
def test_the_way_there_and_back(distribution: BaseDistribution, units: list[float]) -> None:
    assume(not distribution.single())
    union = UnionSpace({"x": distribution})
    vectors = union.vectors.canonical(np.sort(np.array(units))[:, None])[:, 0]
    values = [union.decode("x", v) for v in vectors]
    assert values == sorted(values)
    internal = np.array([distribution.to_internal_repr(v) for v in values])
    again = [union.decode("x", v) for v in union.encode("x", internal)]
    for value, other in zip(values, again, strict=True):
        assert other == value or math.isclose(other, value, rel_tol=1e-12, abs_tol=0.0) or (
            isinstance(distribution, FloatDistribution)
            and abs(other - value) <= 1e-15 * (distribution.high - distribution.low)
        )  # fmt: skip


SAMPLERS: dict[str, Callable[[optuna.Study], BaseSampler]] = {
    "ei": lambda _: EIPerSecondSampler(seed=0, n_startup_trials=3),
    "gp": lambda _: SurrogateSampler(
        surrogate="gaussian_process", seed=0, n_startup_trials=3, n_candidates=100
    ),
    "tst": lambda study: TSTSampler(study, seed=0),
    "blended": lambda study: BlendedSampler(study, seed=0, n_suggested=2),
    "pmf": lambda study: PMFSampler(study, seed=0, n_start=2),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_other_samplers_search_several_extremes_at_once(name: str) -> None:
    chosen = {f"x{i}": d for i, d in enumerate(EXTREMES) if n_different(d)}

    def objective(trial: optuna.Trial) -> float:
        values = [suggest(trial, name, d) for name, d in chosen.items()]
        return float(sum(0.1 * (v > 1) for v in values)) + trial.number % 3

    earlier = optuna.create_study(sampler=RandomSampler(seed=1))
    earlier.optimize(objective, n_trials=6)
    study = optuna.create_study(sampler=SAMPLERS[name](earlier))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study.optimize(objective, n_trials=8)
    for parameter, distribution in chosen.items():
        values = [trial.params[parameter] for trial in study.trials]
        assert all(distribution._contains(distribution.to_internal_repr(v)) for v in values)
    origins = [t.user_attrs["automl_plugins"]["origin"] for t in study.trials[1:]]
    assert "model" in origins or name == "pmf"


def test_earlier_studies_and_replays_keep_such_values() -> None:
    chosen = {f"x{i}": d for i, d in enumerate(EXTREMES) if n_different(d)}

    def objective(trial: optuna.Trial) -> float:
        return trial.number + sum(float(suggest(trial, n, d) > 0) for n, d in chosen.items())

    study = optuna.create_study(sampler=RandomSampler(seed=0))
    study.optimize(objective, n_trials=6)
    space = space_of_trials(study.trials)
    assert space is not None
    for trial in study.trials:
        for name, value in trial.params.items():
            if name in space and hasattr(space[name], "to_vector"):
                assert space[name].legal_value(value) or "step" in str(trial.distributions[name])
    dataset = meta_dataset_from_studies({"a": study})
    assert len(dataset) == 6 and np.isfinite(dataset.vectors).all()


def test_a_condition_on_a_large_integer_holds() -> None:
    low = 10**15

    def objective(trial: optuna.Trial) -> float:
        n = trial.suggest_int("n", low, low + 10)
        return trial.suggest_float("child", 0, 1) if n > low + 4 else 0.5

    study = optuna.create_study(sampler=GBQRSampler(seed=0, n_startup_trials=8))
    study.optimize(objective, n_trials=12)
    sampler = study.sampler
    assert isinstance(sampler, GBQRSampler)
    memory = sampler._reader(study)
    view = memory.view(study, study.trials[-1])
    union = memory.space(view, {})
    below = union.encode("n", np.array([low + 2.0, low + 9.0]))
    vectors = np.full((2, 2), 0.5)
    vectors[:, union.column["n"]] = below
    active = union.vectors.activate(vectors)[:, union.column["child"]]
    assert np.isnan(active).tolist() == [True, False]


def test_values_that_optuna_cannot_store_are_spoken_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    distribution = IntDistribution(10**18, 10**18 + 10)
    assert set(searched(GBQRSampler(seed=0), distribution)) == {10**18}
    told = [r.message for r in caplog.records if r.levelname == "WARNING"]
    assert len(told) == 1 and "64-bit floats" in told[0] and "suggest_int" in told[0]
