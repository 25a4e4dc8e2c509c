"""Plots of shares: of the arms in the pulls of a search, of earlier tasks in its proposals."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest

from automl_plugins import frameworks
from automl_plugins.bandits.records import ArmRecords
from automl_plugins.bandits.report import ArmReport
from automl_plugins.bandits.successive_filtering import Decision, Round
from automl_plugins.records.trial import Status
from automl_plugins.statistics import compare
from automl_plugins.visualization import (
    plot_arm_allocation,
    plot_rank_diagram,
    plot_ranks,
    plot_regret,
    plot_source_weights,
)
from automl_plugins.visualization.shares import by_source, cumulative_shares

go = pytest.importorskip("plotly.graph_objects")

NAN = float("nan")
RECORDS = ArmRecords.of(
    [0, 1, 1, 0, 1, 1],
    [0.5, 0.6, 0.7, NAN, 0.8, NAN],
    seconds=[1.0, 3.0, 4.0, 0.0, NAN, 7.0],
    status=[Status.COMPLETE] * 3 + [Status.FAILED, Status.COMPLETE, Status.RUNNING],
)


def opening(index: int, limit: float) -> Round:
    decisions = (
        Decision(0, index < 2, 0.5, 0.0, float(index < 2), limit / 2, "worst <of all>"),
        Decision(1, True, 0.9, 1.0, 1.0, limit / 2, "best"),
    )
    return Round(index, limit, decisions)


ROUNDS = tuple(opening(i, limit) for i, limit in enumerate([2.0, 4.0, 6.0]))
REPORT = ArmReport(("svm", "forêt"), RECORDS, [0.5] * 6, ROUNDS)
SHARES = {
    4: {"b": 0.5, "a": 0.25},
    0: {"a": 0.25, "b": 0.25, "c": 0.25},
    7: {"b": 0.125, "d": 0.0},
}


def arms(figure: Any) -> dict[str, Any]:
    return {t.name: t for t in figure.data if t.showlegend}


def lines(figure: Any) -> dict[str, Any]:
    return {t.name: t for t in figure.data if t.legendgroup == "rounds"}


def areas(figure: Any) -> dict[str, list[float]]:
    return {trace.name: list(trace.y) for trace in figure.data}


# Arms


def test_shares_of_pulls_by_hand() -> None:
    figure = plot_arm_allocation(REPORT)
    assert isinstance(figure, go.Figure)
    svm, forest = arms(figure)["svm"], arms(figure)["forêt"]
    assert list(svm.x) == list(forest.x) == [1, 2, 3, 4, 5, 6]
    np.testing.assert_allclose(svm.y, [100, 50, 100 / 3, 50, 40, 100 / 3])
    np.testing.assert_allclose(np.add(svm.y, forest.y), 100.0)
    assert svm.stackgroup == forest.stackgroup
    assert figure.layout.xaxis.title.text == "Pulls"
    assert figure.layout.title.subtitle.text == "6 pulls, 2 arms"


def test_shares_of_seconds_by_hand() -> None:
    figure = plot_arm_allocation(REPORT, unit="seconds")
    svm = arms(figure)["svm"]
    assert list(svm.x) == [1, 4, 8, 8, 8, 8]  # neither the unknown nor the running pull counts
    np.testing.assert_allclose(svm.y, [100, 25, 12.5, 12.5, 12.5, 12.5])
    assert "without the seconds of 1, which are unknown" in figure.layout.title.subtitle.text


def test_shares_against_a_loop() -> None:
    rng = np.random.default_rng(0)
    arm, cost = rng.integers(0, 5, 200), rng.random(200).round(1)
    shares = cumulative_shares(arm, cost, 6)
    for t in range(200):
        for k in range(6):
            total = sum(cost[: t + 1])
            own = sum(c for a, c in zip(arm[: t + 1], cost[: t + 1], strict=True) if a == k)
            np.testing.assert_allclose(shares[k, t], own / total if total else 0.0)


def test_legend_is_ordered_by_the_final_share_and_colours_by_the_arms() -> None:
    names = tuple("abcdefghijklmnop")
    rng = np.random.default_rng(1)
    arm = np.concatenate([np.repeat(np.arange(15), 1 + rng.permutation(15)), [3] * 20])
    records = ArmRecords.of(arm, rng.random(len(arm)))
    figure = plot_arm_allocation(ArmReport(names, records, [0.0] * len(arm)))
    shown = [t for t in figure.data if t.showlegend]
    final = [t.y[-1] for t in shown]
    assert final == sorted(final, reverse=True)
    assert shown[0].name == "d" and shown[-1].name == "p" and final[-1] == 0.0
    assert figure.layout.legend.traceorder == "normal"  # plotly reverses it for stacked areas
    assert len({(t.line.color, t.line.dash) for t in shown}) == 16
    assert len({t.fillcolor for t in shown}) == 16
    by_name = plot_arm_allocation(ArmReport(names, ArmRecords.of([0], [0.5]), [0.5]))
    for name, trace in arms(by_name).items():
        assert trace.line.color == arms(figure)[name].line.color


def test_one_pull_is_a_marker() -> None:
    figure = plot_arm_allocation(ArmReport(("a",), ArmRecords.of([0], [0.5]), [0.5]))
    assert "markers" in arms(figure)["a"].mode
    assert figure.layout.title.subtitle.text == "1 pull, 1 arm"


@pytest.mark.parametrize("unit", ["trials", "seconds"])
def test_no_pulls_give_an_empty_figure_that_says_so(unit: Any) -> None:
    figure = plot_arm_allocation(ArmReport(("a", "b"), ArmRecords.empty(), []), unit=unit)
    assert len(figure.data) == 0
    assert figure.layout.title.subtitle.text == "0 pulls, 2 arms"
    begun = plot_arm_allocation(
        ArmReport(("a", "b"), ArmRecords.empty(), [], ROUNDS[:1]), unit=unit
    )
    assert list(lines(begun)) == ["round 1"]


def places(figure: Any) -> list[float]:
    assert all(len(set(t.x)) == 1 for t in lines(figure).values())
    return [t.x[0] for t in lines(figure).values()]


def test_rounds_are_where_the_adapter_says() -> None:
    report = dataclasses.replace(REPORT, opened=(0, 1, 4))
    assert places(plot_arm_allocation(report)) == [0, 1, 4]
    assert places(plot_arm_allocation(report, unit="seconds")) == [0, 1, 8]


def test_rounds_are_else_where_the_limits_were_reached() -> None:
    assert places(plot_arm_allocation(REPORT)) == [0, 2, 4]
    assert places(plot_arm_allocation(REPORT, unit="seconds")) == [0, 4, 8]
    timed = dataclasses.replace(REPORT, unit="seconds")
    assert places(plot_arm_allocation(timed)) == [0, 2, 2]  # the second pull ends at 4 seconds
    beyond = dataclasses.replace(REPORT, rounds=(opening(0, 50.0), opening(1, 90.0)))
    assert places(plot_arm_allocation(beyond)) == [0, 6]


def test_pointing_at_a_round_shows_its_decisions() -> None:
    figure = plot_arm_allocation(REPORT)
    hover = lines(figure)["round 3"]
    text = hover.hovertext.replace("<br>", " ")
    assert "left: svm (score 0.500, p 0.00: worst &lt;of all&gt;)" in text
    assert "forêt (score 0.900, p 1.00, share 100 %)" in text
    assert hover.hoverinfo == "text" and len(hover.y) > 10
    assert (min(hover.y), max(hover.y)) == (0, 100)
    assert all(len(part) < 120 for part in hover.hovertext.split("<br>"))


def test_other_sources_are_read_by_their_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    source, asked = SimpleNamespace(), []

    def arm_report(thing: Any, **options: Any) -> ArmReport:
        asked.append((thing, options))
        return REPORT

    own = SimpleNamespace(arm_report=arm_report)
    monkeypatch.setattr(frameworks, "adapter_of", lambda thing: own if thing is source else None)
    figure = plot_arm_allocation(source, arm="algorithm")
    assert asked == [(source, {"arm": "algorithm"})]
    assert figure == plot_arm_allocation(REPORT)


def test_studies_and_trials_are_read_by_the_adapters() -> None:
    from automl_plugins.adapters.hyperopt import boasf_fmin
    from hyperopt import Trials, hp

    space = hp.choice("model", [{"type": "a", "x": hp.uniform("x", 0, 1)}, {"type": "b"}])
    trials = Trials()
    boasf_fmin(
        lambda point: point.get("x", 0.5),
        space,
        max_evals=6,
        rounds=2,
        trials=trials,
        rstate=np.random.default_rng(0),
        show_progressbar=False,
    )
    figure = plot_arm_allocation(trials, space=space)
    assert set(arms(figure)) == {"a", "b"} and list(lines(figure)) == ["round 1", "round 2"]
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda t: len(t.suggest_categorical("model", ["a", "bb"])), n_trials=9)
    figure = plot_arm_allocation(study, arm="model")
    assert set(arms(figure)) == {"a", "bb"} and lines(figure) == {}


def test_bad_options() -> None:
    with pytest.raises(TypeError, match="arms of a list: pass an ArmReport, an Optuna study or"):
        plot_arm_allocation([REPORT])
    with pytest.raises(ValueError, match="unit must be one of 'trials', 'seconds', got 'epochs'"):
        plot_arm_allocation(REPORT, unit="epochs")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="A report takes no options, got arm"):
        plot_arm_allocation(REPORT, arm="algorithm")
    untimed = ArmReport(("a",), ArmRecords.of([0], [0.5]), [0.5])
    with pytest.raises(ValueError, match="No finished pull has known seconds above 0"):
        plot_arm_allocation(untimed, unit="seconds")


# Sources


def test_sources_are_ordered_by_mean_share_and_those_without_any_are_absent() -> None:
    numbers, names, table = by_source(SHARES)
    assert numbers.tolist() == [0, 4, 7]
    assert names == ("b", "a", "c")
    np.testing.assert_array_equal(table, [[0.25, 0.5, 0.125], [0.25, 0.25, 0.0], [0.25, 0.0, 0.0]])


def test_areas_add_up() -> None:
    figure = plot_source_weights(SHARES)
    assert areas(figure) == {
        "this search": [25.0, 25.0, 87.5],
        "b": [25.0, 50.0, 12.5],
        "a": [25.0, 25.0, 0.0],
        "c": [25.0, 0.0, 0.0],
    }
    assert {trace.stackgroup for trace in figure.data} == {"shares"}
    assert [list(trace.x) for trace in figure.data] == [[0, 4, 7]] * 4
    assert figure.layout.title.subtitle.text == "3 proposals, 3 sources with a share"
    assert figure.to_json()


@pytest.mark.parametrize(
    ("n", "rest", "values"),
    [
        (1, "2 other sources", [50.0, 25.0, 0.0]),
        (0, "sources", [75.0, 75.0, 12.5]),
    ],
)
def test_the_others_are_drawn_together(n: int, rest: str, values: list[float]) -> None:
    found = areas(plot_source_weights(SHARES, n_sources=n))
    assert list(found)[-1] == rest and len(found) == n + 2
    assert found[rest] == values
    assert np.sum(list(found.values()), axis=0) == pytest.approx(100.0)


def test_a_study_is_read_by_its_adapter() -> None:
    study = optuna.create_study()
    for i in range(3):
        shares = {"own": 0.25, "sources": {"first": 0.5, "second": 0.25}}
        trial = optuna.trial.create_trial(
            value=float(i), user_attrs={"automl_plugins:sources": shares} if i else None
        )
        study.add_trial(trial)
    figure = plot_source_weights(study)
    assert areas(figure) == {
        "this search": [25.0, 25.0],
        "first": [50.0, 50.0],
        "second": [25.0, 25.0],
    }
    assert list(figure.data[0].x) == [1, 2]


def test_many_sources_have_styles_of_their_own() -> None:
    figure = plot_source_weights({0: {f"s{i}": 0.02 for i in range(40)}}, n_sources=25)
    styles = [(trace.line.color, trace.line.dash) for trace in figure.data]
    assert len(set(styles)) == len(styles) == 27


def test_bad_input() -> None:
    assert areas(plot_source_weights({3: {}})) == {"this search": [100.0]}
    with pytest.raises(ValueError, match="with the help of earlier tasks"):
        plot_source_weights({})
    with pytest.raises(ValueError, match="with the help of earlier tasks"):
        plot_source_weights(optuna.create_study())
    with pytest.raises(TypeError, match="Cannot read the sources of a int"):
        plot_source_weights(3)
    for wrong in (-1, 1.5, True):
        with pytest.raises(ValueError, match="n_sources"):
            plot_source_weights(SHARES, n_sources=wrong)  # type: ignore[arg-type]


# All plots


TABLE, METHOD, TRIAL = np.indices((3, 2, 4)).reshape(3, -1)
RUNS = pd.DataFrame(
    {
        "table": TABLE,
        "method": np.array(["a", "b"])[METHOD],
        "seed": 0,
        "trial": TRIAL + 1,
        "seconds": 10.0**TRIAL,
        "loss": np.random.default_rng(0).random(len(TABLE)),
    }
)
PLOTS: dict[str, Any] = {
    "regret": lambda: plot_regret(RUNS, unit="seconds", band="quartiles"),
    "ranks": lambda: plot_ranks(RUNS, band=None),
    "diagram": lambda: plot_rank_diagram(compare(RUNS, budgets=3)),
    "arms": lambda: plot_arm_allocation(REPORT),
    "sources": lambda: plot_source_weights(SHARES),
}


@pytest.mark.parametrize("kind", PLOTS)
def test_missing_plotly_gives_one_helpful_sentence(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == "plotly"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install automl_plugins\[plot\]"):
        PLOTS[kind]()


@pytest.fixture(scope="module")
def static_figures() -> Any:
    pytest.importorskip("matplotlib")
    path = Path(__file__).resolve().parents[2] / "examples" / "benchmarks" / "static_figures.py"
    spec = importlib.util.spec_from_file_location("static_figures", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", PLOTS)
def test_svg_is_the_same_every_time(kind: str, static_figures: Any, tmp_path: Path) -> None:
    figure = PLOTS[kind]()
    paths = tmp_path / "1.svg", tmp_path / "2.svg"
    for path in paths:
        static_figures.save_svg(figure, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    text = paths[0].read_text(encoding="utf-8")
    assert figure.layout.title.text in text and figure.layout.xaxis.title.text in text
