"""What Optuna takes is searched: every range, list of choices and loss, by all samplers."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import optuna
import pytest
from automl_plugins.adapters.optuna import (
    AutoSampler,
    BanditSampler,
    BlendedSampler,
    BOASFSampler,
    EIPerSecondSampler,
    GBQRSampler,
    PMFSampler,
    SurrogateSampler,
    TSTSampler,
    WeightedModelSampler,
    _private,
    explain,
    meta_dataset_from_studies,
)
from automl_plugins.adapters.optuna._steps import steps_of
from automl_plugins.adapters.optuna._union import UnionSpace
from automl_plugins.adapters.optuna.space import space_of_trials
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from objectives import Objective, params, search, studied
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, RandomSampler, TPESampler

N = 12

SAMPLERS: dict[str, Callable[[optuna.Study], BaseSampler]] = {
    "auto": lambda _: AutoSampler(n_startup_trials=3, seed=0),
    "gbqr": lambda _: GBQRSampler(n_startup_trials=3, seed=0),
    "ei": lambda _: EIPerSecondSampler(n_startup_trials=3, seed=0),
    "gp": lambda _: SurrogateSampler(
        surrogate="gaussian_process", n_startup_trials=3, n_candidates=100, seed=0
    ),
    "tst": lambda study: TSTSampler(study, seed=0),
    "blended": lambda study: BlendedSampler(study, n_suggested=2, seed=0),
    "pmf": lambda study: PMFSampler(study, n_start=2, seed=0),
}
ARMS: dict[str, Callable[[str], BaseSampler]] = {
    "bandit": lambda arm: BanditSampler(arm, seed=0),
    "BOASF": lambda arm: BOASFSampler(arm, n_trials=5, seed=0),
    "weighted": lambda arm: WeightedModelSampler(arm, seed=0),
}


# --- ranges -----------------------------------------------------------------------------------

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
    FloatDistribution(-1e300, 2e299, step=3e299),
    FloatDistribution(1e4, 1e4 + 1.0, step=1e-5),
    FloatDistribution(7.0, 7.0),
    IntDistribution(-(2**62), 2**62),
    IntDistribution(1, 2**63 - 1, log=True),
    IntDistribution(0, 10**30),
    IntDistribution(10**18, 10**18 + 1000),
    IntDistribution(10**18, 10**18 + 15_000, step=3),
    IntDistribution(10**15, 10**15 + 10, log=True),
    IntDistribution(2**53 - 5, 2**53 + 5),
    IntDistribution(3, 3 + 7 * 2**60, step=2**60),
]


def suggest(trial: optuna.Trial, name: str, distribution: BaseDistribution) -> Any:
    ask = trial.suggest_int if isinstance(distribution, IntDistribution) else trial.suggest_float
    return ask(name, **{k: v for k, v in vars(distribution).items()})


def values_of(sampler: BaseSampler, distribution: BaseDistribution) -> list[Any]:
    """Values of ``N`` trials, whose loss is least in the middle."""
    low, high = distribution.low, distribution.high  # type: ignore[attr-defined]

    def objective(trial: optuna.Trial) -> float:
        value = suggest(trial, "x", distribution)
        return float(abs(value / 2 - (low / 2 + high / 2) / 2))

    return [values["x"] for values in params(search(sampler, objective, N))]


def n_different(distribution: BaseDistribution) -> int:
    """What random search gives in as many trials, 0 if it fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's, which are not about us
        try:
            return len(set(values_of(RandomSampler(seed=0), distribution)))
        except OverflowError:
            return 0


def check(sampler: BaseSampler, distribution: BaseDistribution) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "The distribution is specified")  # Optuna's, of decimals
        values = values_of(sampler, distribution)
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
    assume(not distribution.single() and n_different(distribution))
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


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SAMPLERS if name != "gbqr"])
def test_other_samplers_search_several_extremes_at_once(name: str) -> None:
    chosen = {f"x{i}": d for i, d in enumerate(EXTREMES) if n_different(d)}

    def objective(trial: optuna.Trial) -> float:
        values = [suggest(trial, name, d) for name, d in chosen.items()]
        return float(sum(0.1 * (v > 1) for v in values)) + trial.number % 3

    earlier = studied("earlier", objective, n=6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study = search(SAMPLERS[name](earlier), objective, 8)
    for trial in study.trials:
        assert all(d._contains(d.to_internal_repr(trial.params[n])) for n, d in chosen.items())
    assert "model" in [explain(t).origin for t in study.trials[1:]] or name == "pmf"
    space = space_of_trials(earlier.trials)  # studies and replays keep such values
    assert space is not None
    for trial in earlier.trials:
        for parameter, value in trial.params.items():
            if parameter in space and hasattr(space[parameter], "to_vector"):
                legal = space[parameter].legal_value(value)
                assert legal or "step" in str(trial.distributions[parameter])
    dataset = meta_dataset_from_studies({"a": earlier})
    assert len(dataset) == 6 and np.isfinite(dataset.vectors).all()


def test_a_condition_on_a_large_integer_holds() -> None:
    low = 10**15

    def objective(trial: optuna.Trial) -> float:
        n = trial.suggest_int("n", low, low + 10)
        return trial.suggest_float("child", 0, 1) if n > low + 4 else 0.5

    sampler = GBQRSampler(seed=0, n_startup_trials=8)
    study = search(sampler, objective, 12)
    reader = sampler._reader(study)
    union = reader.space(reader.view(study, study.trials[-1]), {})
    vectors = np.full((2, 2), 0.5)
    vectors[:, union.column["n"]] = union.encode("n", np.array([low + 2.0, low + 9.0]))
    active = union.vectors.activate(vectors)[:, union.column["child"]]
    assert np.isnan(active).tolist() == [True, False]


def test_a_range_of_which_optuna_can_store_one_value_is_no_parent_and_no_axis() -> None:
    low = 10**18

    def objective(trial: optuna.Trial) -> float:
        n = trial.suggest_int("n", low, low + (1000 if trial.number < 8 else 10))
        x = trial.suggest_float("x", 0.0, 1.0)
        return x + trial.suggest_float("y", 0.0, 1.0) if n > low + 500 else x

    for sampler in (GBQRSampler(seed=1), AutoSampler(seed=1, memory=None)):
        assert len(search(sampler, objective, 14).trials) == 14

    def narrow(trial: optuna.Trial) -> float:
        return trial.suggest_int("n", low, low + 10) - low + trial.suggest_float("x", 0.0, 1.0)

    halves = search(BOASFSampler(split=2, n_trials=20, seed=1), narrow, 20)
    assert {t.user_attrs["automl_plugins:arm"]["arm"] for t in halves.trials if t.number} == {
        "x in [0, 0.5)",
        "x in [0.5, 1]",
    }


@pytest.mark.parametrize("step", [3, 6, 12, 768])
@pytest.mark.parametrize("low", [2**60 + 4, 2**60 + 5, -(2**60) - 2**24 + 4])
def test_a_grid_beyond_the_floats_keeps_all_values_that_are_floats(low: int, step: int) -> None:
    distribution = IntDistribution(low, low + 9000 * step, step=step)
    found = steps_of(distribution)
    assert found is not None
    exact = [value for value in range(low, distribution.high + 1, step) if float(value) == value]
    values = [found.value(i) for i in range(found.n)]
    # If none is a float, those that are nearest to one float each.
    assert values == (exact or list(range(low, distribution.high + 1, max(step, 256))))


def test_values_that_optuna_cannot_store_are_named_once(log: pytest.LogCaptureFixture) -> None:
    distribution = IntDistribution(10**18, 10**18 + 10)
    assert set(values_of(GBQRSampler(seed=0), distribution)) == {10**18}
    (told,) = [r.message for r in log.records if r.levelname == "WARNING"]
    assert "64-bit floats" in told and "suggest_int" in told


# --- choices ----------------------------------------------------------------------------------

Lists = Mapping[str, list[Any]]

KNOWN: Lists = {
    "bools": [True, False],
    "numbers and a bool": [1.5, True],
    "equal": [1, True, 1.0],
    "None": ["auto", None, 0.5],
    "text of values": ["True", True, "1", 1, "None", None],
    "nan": [float("nan"), None, float("inf")],
    "huge": [2**60 + 1, 0.5, 2**63, -1],
}


def choosing(lists: Lists) -> Objective:
    def of(trial: optuna.Trial) -> float:
        loss = trial.suggest_float("x", 0, 1)
        for i, (name, choices) in enumerate(lists.items()):
            value = trial.suggest_categorical(name, choices)
            assert any(value is choice for choice in choices)
            loss += len(repr(value))
            if i % 2 and value is choices[0]:
                loss += trial.suggest_float(f"{name} u", 0, 1)
        return loss

    return of


@pytest.mark.parametrize("name", [*SAMPLERS, *ARMS])
def test_lists_that_users_write(name: str) -> None:
    objective = choosing(KNOWN)
    source = studied("earlier", objective, n=12)
    sampler = ARMS[name](next(iter(KNOWN))) if name in ARMS else SAMPLERS[name](source)
    states = [trial.state.name for trial in search(sampler, objective, 5).trials]
    assert states == ["COMPLETE"] * 5


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("gbqr", [0.5, 1.0, 1]),
        ("auto in batches", ["a", None, 1, True]),
        ("auto in batches", ["a", "b", "a"]),
    ],
    ids=str,
)
def test_equal_choices_are_one(name: str, choices: list[Any]) -> None:
    distributions: Any = {
        "c": CategoricalDistribution(choices),
        "i": IntDistribution(0, 9),
        "j": IntDistribution(0, 9),
    }
    in_batches = name == "auto in batches"
    study = optuna.create_study(sampler=AutoSampler(seed=1) if in_batches else GBQRSampler(seed=1))
    for _ in range(3 if in_batches else 30):
        for trial in [study.ask(distributions) for _ in range(10 if in_batches else 1)]:
            study.tell(trial, (trial.params["i"] - 3) ** 2 + (trial.params["j"] - 6) ** 2)
    # Optuna stores the first of equal choices.
    assert len({tuple(map(repr, t.params.values())) for t in study.trials}) == 30
    assert {repr(t.params["c"]) for t in study.trials} == {
        repr(c) for i, c in enumerate(choices) if c not in choices[:i]
    }


def test_a_choice_that_is_sampled_alone_is_not_an_equal_one() -> None:
    first = {
        repr(study.ask().suggest_categorical("c", [1, True, 1.0, "a", "b"]))
        for study in (optuna.create_study(sampler=GBQRSampler(seed=i)) for i in range(20))
    }
    assert first == {"1", "'a'", "'b'"}


# --- losses -----------------------------------------------------------------------------------

LARGEST = sys.float_info.max
ODD = [LARGEST, 1e308, math.inf, -LARGEST, -math.inf]


def odd_losses(trial: optuna.Trial) -> float:
    """Largest and infinite losses among others; what recipes make of them is tested there."""
    arm = trial.suggest_categorical("arm", ["a", "b"])
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    sign = 1.0 if trial.study.direction.name == "MINIMIZE" else -1.0
    if trial.number % 3 == 2:
        return sign * ODD[trial.number // 3 % len(ODD)]
    return sign * ((x - 0.3) ** 2 + (y - 0.7) ** 2) * (1 if arm == "a" else 2)


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        ("gbqr", "minimize"),
        ("ei", "maximize"),
        ("tst", "maximize"),
        ("bandit", "minimize"),
        ("bandit", "maximize"),
        ("weighted", "minimize"),
    ],
)
def test_odd_losses_do_not_stop_a_search(name: str, direction: str) -> None:
    earlier = search(RandomSampler(seed=1), odd_losses, 16, direction=direction)
    sampler = ARMS[name]("arm") if name in ARMS else SAMPLERS[name](earlier)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study = search(sampler, odd_losses, 16, direction=direction)
    if name in ARMS:
        assert {values["arm"] for values in params(study)[6:]} == {"a", "b"}
    else:
        origins = [explain(trial).origin for trial in study.trials[1:]]
        assert "independent" not in origins and origins.count("model") >= 6


def test_an_infinite_loss_keeps_the_search_away() -> None:
    def half(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        return math.inf if x > 0.5 else (x - 0.2) ** 2

    study = search(GBQRSampler(seed=0), half, 24)
    assert sum(values["x"] > 0.5 for values in params(study)) <= 12


def test_a_condition_on_a_choice_that_is_gone_is_forgotten() -> None:
    def trial(outer: Any, choices: list[str], **inner: float) -> optuna.trial.FrozenTrial:
        distributions: dict[str, BaseDistribution] = {
            "outer": optuna.distributions.CategoricalDistribution(choices)
        }
        distributions |= {name: FloatDistribution(0, 1) for name in inner}
        return optuna.trial.create_trial(
            value=0.5, params={"outer": outer, **inner}, distributions=distributions
        )

    trials = [trial("c", ["a", "b", "c"], x=0.1 * i) for i in range(8)]
    trials += [trial("a", ["a", "b"]) for _ in range(8)]
    study = optuna.create_study(sampler=GBQRSampler(seed=0))
    study.add_trials(trials)
    assert 0.0 <= study.ask().suggest_float("x", 0, 1) <= 1.0
    space = space_of_trials(study.trials)
    assert space is not None and space.conditions == []


def test_a_choice_that_was_a_number_once_has_no_other_value() -> None:
    choice = optuna.distributions.CategoricalDistribution(["a", "b"])
    union = UnionSpace({"x": choice})
    old = np.array([-5.0, 0.3, 7.0, 0.0, 1.0, math.nan])
    np.testing.assert_array_equal(
        union.encode("x", old), [math.nan, math.nan, math.nan, 0.0, 1.0, math.nan]
    )
    trials = [
        optuna.trial.create_trial(
            value=0.5,
            params={"x": -5} | ({"y": 0.5} if i % 2 else {}),
            distributions={"x": IntDistribution(-9, 9)}
            | ({"y": FloatDistribution(0, 1)} if i % 2 else {}),
        )
        for i in range(8)
    ]
    study = optuna.create_study(sampler=GBQRSampler(seed=0))
    study.add_trials(trials)
    study.add_trial(
        optuna.trial.create_trial(value=1.0, params={"x": "a"}, distributions={"x": choice})
    )
    assert 0.0 <= study.ask().suggest_float("y", 0, 1) <= 1.0


def test_numbers_that_configspace_cannot_round_have_conditions() -> None:
    distributions: dict[str, BaseDistribution] = {
        "kind": optuna.distributions.CategoricalDistribution(["a", "b"]),
        "huge": FloatDistribution(1e300, 1e308),
    }
    trials = [
        optuna.trial.create_trial(value=0.5, params=values, distributions=asked)
        for values in ({"kind": "a", "huge": 1e305}, {"kind": "b"})
        for asked in [{name: distributions[name] for name in values}]
    ]
    space = space_of_trials(trials)
    assert space is not None and [str(c) for c in space.conditions] == ["huge | kind in {'a'}"]


def test_an_old_value_more_widths_away_than_floats_hold_is_unknown() -> None:
    union = UnionSpace({"x": FloatDistribution(0.1, 0.3)})
    found = union.encode("x", np.array([1e308, -1e308, 0.2]))
    np.testing.assert_allclose(found, [math.nan, math.nan, 0.5])


# --- inside an arm --------------------------------------------------------------------------

INNER: dict[str, Any] = {
    "default": None,
    "random": RandomSampler,
    "joint": partial(TPESampler, multivariate=True, n_startup_trials=2),
}
BEYOND = [
    FloatDistribution(-1e308, 1e308),
    FloatDistribution(0.0, 5e-324),
    FloatDistribution(1e16, 1e16 + 4, log=True),
    IntDistribution(2**53 - 1, 2**53 + 1, log=True),
    FloatDistribution(0.0, 1.5e308, step=1.5e308),
    IntDistribution(1, 2**62),
    IntDistribution(1, 2**62, log=True),
    IntDistribution(-(2**53), -(2**53) + 8, step=2),
]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("inner", INNER.values(), ids=INNER)
def test_ranges_that_optuna_s_samplers_cannot_reckon_with(inner: Any) -> None:
    ranges = {str(distribution): distribution for distribution in BEYOND}

    def objective(trial: optuna.Trial) -> float:
        trial.suggest_categorical("algorithm", ["a", "b"])
        for name, distribution in ranges.items():
            trial._suggest(name, distribution)
        return trial.suggest_float("x", 0, 1)

    study = search(BanditSampler(seed=0, inner=inner), objective, 30)
    for name, distribution in ranges.items():
        values = [trial.params[name] for trial in study.trials]
        assert all(distribution._contains(float(value)) for value in values), name
        assert len(set(values)) > 1, name  # and Optuna checked them, which raises for NaN


@pytest.mark.parametrize("old", ["text", -math.inf], ids=str)
def test_the_sampler_of_an_arm_is_not_shown_values_of_another_kind(old: Any) -> None:
    arm = optuna.distributions.CategoricalDistribution(["a", "b"])
    choice = optuna.distributions.CategoricalDistribution([old, "other"])
    study = optuna.create_study(sampler=BanditSampler(seed=0, inner=TPESampler(seed=0)))
    for i in range(30):  # Optuna checks added trials against nothing, others against the first
        params = {"algorithm": "ab"[i % 2], "x": old if i else 3, "y": 0.5}
        kinds: dict[str, BaseDistribution] = {"algorithm": arm, "y": FloatDistribution(0, 1)}
        kinds["x"] = choice if i else IntDistribution(0, 9)
        study.add_trial(
            optuna.trial.create_trial(value=0.1 * i, params=params, distributions=kinds)
        )
    for _ in range(3):  # TPE itself raises, or warns of infinities
        trial = study.ask()
        trial.suggest_categorical("algorithm", ["a", "b"])
        assert 0 <= trial.suggest_int("x", 0, 9) <= 9
        study.tell(trial, trial.suggest_float("y", 0, 1))
    shown = _private.without_foreign(study, "x", choice).get_trials(deepcopy=False)
    assert ["x" in trial.params for trial in shown] == [False] + [True] * 29 + [False] * 3
