"""Plots of shares: of the arms in the pulls of a search, of earlier tasks in its proposals."""

from __future__ import annotations

import dataclasses
import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest

from automl_plugins.bandits.records import ArmRecords
from automl_plugins.bandits.report import ArmReport
from automl_plugins.bandits.successive_filtering import Decision, Round
from automl_plugins.records.trial import Status
from automl_plugins.statistics import compare
from automl_plugins.visualization import (
    plot_arm_allocation,
    plot_member_trust,
    plot_rank_diagram,
    plot_ranks,
    plot_regret,
    plot_source_weights,
)

go = pytest.importorskip("plotly.graph_objects")

NAN = float("nan")
RECORDS = ArmRecords.of(
    [0, 1, 1, 0, 1, 1],
    [0.5, 0.6, 0.7, NAN, 0.8, NAN],
    seconds=[1.0, 3.0, 4.0, 0.0, NAN, 7.0],
    status=[Status.COMPLETE] * 3 + [Status.FAILED, Status.COMPLETE, Status.RUNNING],
)


def opening(index: int, limit: float, finished: int = 0) -> Round:
    decisions = (
        Decision(0, index < 2, 0.5, 0.0, float(index < 2), limit / 2, "worst <of all>"),
        Decision(1, True, 0.9, 1.0, 1.0, limit / 2, "best"),
    )
    return Round(index, limit, decisions, finished)


ROUNDS = opening(0, 2.0), opening(1, 4.0, 1), opening(2, 6.0, 4)
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


@pytest.mark.parametrize(
    ("unit", "x", "svm", "title", "note"),
    [
        ("trials", [1, 2, 3, 4, 5, 6], [100, 50, 100 / 3, 50, 40, 100 / 3], "Pulls", ""),
        # neither the unknown nor the running pull counts
        (
            *("seconds", [1, 4, 8, 8, 8, 8], [100, 25, 12.5, 12.5, 12.5, 12.5]),
            *("Seconds of all pulls", "; without the seconds of 1, which are unknown"),
        ),
    ],
)
def test_shares_of_arms_by_hand(
    unit: Any, x: list[float], svm: list[float], title: str, note: str
) -> None:
    figure = plot_arm_allocation(REPORT, unit=unit)
    assert isinstance(figure, go.Figure)
    own, other = arms(figure)["svm"], arms(figure)["forêt"]
    assert list(own.x) == list(other.x) == x
    np.testing.assert_allclose(own.y, svm)
    np.testing.assert_allclose(np.add(own.y, other.y), 100.0)
    assert own.stackgroup == other.stackgroup
    assert figure.layout.xaxis.title.text == title
    assert figure.layout.title.subtitle.text == f"6 pulls, 2 arms{note}"


def test_names_of_arms_are_no_html() -> None:
    figure = plot_arm_allocation(dataclasses.replace(REPORT, names=("a<b>c", "d & e")))
    assert set(arms(figure)) == {"a&lt;b&gt;c", "d &amp; e"}


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


@pytest.mark.parametrize("unit", ["trials", "seconds"])
def test_few_pulls(unit: Any) -> None:
    one = ArmReport(("a",), ArmRecords.of([0], [0.5], seconds=[1.0]), [0.5])
    figure = plot_arm_allocation(one, unit=unit)
    assert "markers" in arms(figure)["a"].mode
    assert figure.layout.title.subtitle.text == "1 pull, 1 arm"
    none = ArmReport(("a", "b"), ArmRecords.of([], []), [], ROUNDS[:1])
    figure = plot_arm_allocation(none, unit=unit)
    assert list(lines(figure)) == ["round 1"] and arms(figure) == {}
    assert figure.layout.title.subtitle.text == "0 pulls, 2 arms"


def places(figure: Any) -> list[float]:
    assert all(len(set(t.x)) == 1 for t in lines(figure).values())
    return [t.x[0] for t in lines(figure).values()]


@pytest.mark.parametrize(
    ("changes", "trials", "seconds"),
    [
        ({}, [0, 1, 4], [0, 1, 8]),
        ({"unit": "seconds"}, [0, 1, 4], [0, 1, 8]),
        # more than there are pulls, for some trials were deleted
        ({"rounds": (opening(0, 50.0), opening(1, 90.0, 9))}, [0, 6], [0, 8]),
    ],
)
def test_where_rounds_are(
    changes: dict[str, Any], trials: list[float], seconds: list[float]
) -> None:
    report = dataclasses.replace(REPORT, **changes)
    assert places(plot_arm_allocation(report)) == trials
    assert places(plot_arm_allocation(report, unit="seconds")) == seconds


def test_pointing_at_a_round_shows_its_decisions() -> None:
    figure = plot_arm_allocation(REPORT)
    hover = lines(figure)["round 3"]
    text = hover.hovertext.replace("<br>", " ")
    assert "left: svm (score 0.500, p 0.00: worst &lt;of all&gt;)" in text
    assert "forêt (score 0.900, p 1.00, share 100 %)" in text
    assert hover.hoverinfo == "text" and len(hover.y) > 10
    assert (min(hover.y), max(hover.y)) == (0, 100)
    assert all(len(part) < 120 for part in hover.hovertext.split("<br>"))


def test_a_study_is_read_by_its_adapter() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda t: len(t.suggest_categorical("model", ["a", "bb"])), n_trials=9)
    figure = plot_arm_allocation(study, arm="model")
    assert set(arms(figure)) == {"a", "bb"} and lines(figure) == {}
    with pytest.raises(ValueError, match="with the help of earlier tasks"):
        plot_source_weights(study)
    shares = {"own": 0.25, "sources": {"first": 0.5, "second": 0.25}}
    attributes = {"automl_plugins:sources": shares}
    study.add_trial(optuna.trial.create_trial(value=1.0, user_attrs=attributes))
    figure = plot_source_weights(study)
    assert areas(figure) == {"this search": [25.0], "first": [50.0], "second": [25.0]}
    assert list(figure.data[0].x) == [9]
    with pytest.raises(ValueError, match="proposed by a committee: use AutoSampler"):
        plot_member_trust(study)
    note = {"origin": "model", "member": "trees", "trust": {"trees": 0.25, "process": 0.75}}
    study.add_trial(optuna.trial.create_trial(value=1.0, user_attrs={"automl_plugins": note}))
    figure = plot_member_trust(study)
    assert areas(figure) == {"process": [75.0], "trees": [25.0]}
    assert list(figure.data[0].x) == [10]


UNTIMED = ArmReport(("a",), ArmRecords.of([0], [0.5]), [0.5])


@pytest.mark.parametrize(
    ("plot", "options", "error", "message"),
    [
        (plot_arm_allocation, {"source": [REPORT]}, TypeError, "arms of a list: pass an ArmRep"),
        (plot_arm_allocation, {"unit": "epochs"}, ValueError, "'trials', 'seconds', got 'epochs'"),
        (plot_arm_allocation, {"arm": "x"}, TypeError, "A report takes no options, got arm"),
        (
            *(plot_arm_allocation, {"source": UNTIMED, "unit": "seconds"}, ValueError),
            "No finished pull has known seconds above 0",
        ),
        (plot_source_weights, {"source": {}}, ValueError, "with the help of earlier tasks"),
        (plot_source_weights, {"source": 3}, TypeError, "Cannot read the sources of a int"),
        (
            plot_member_trust,
            {"source": {}},
            ValueError,
            "No evaluation was proposed by a committee",
        ),
        (plot_member_trust, {"source": 3}, TypeError, "Cannot read the members' trust of a int"),
        (plot_source_weights, {"source": {12: 3}}, TypeError, "by name, .* got 3 for 12"),
        (plot_member_trust, {"source": {"a": [3]}}, TypeError, r"by name, .* got \[3\] for 'a'"),
        (plot_member_trust, {"source": {3: {"a": NAN}}}, ValueError, "got nan of 'a' for 3"),
        (plot_source_weights, {"source": {3: {"a": None}}}, ValueError, "got None of 'a' for 3"),
        (plot_source_weights, {"n_sources": -1}, ValueError, "n_sources"),
        (plot_source_weights, {"n_sources": 1.5}, TypeError, "n_sources"),
        (plot_source_weights, {"n_sources": True}, TypeError, "n_sources"),
    ],
)
def test_errors_teach(plot: Any, options: Any, error: type[Exception], message: str) -> None:
    given = {"source": REPORT if plot is plot_arm_allocation else SHARES} | options
    with pytest.raises(error, match=message):
        plot(**given)


# Sources


def test_sources_are_ordered_by_mean_share_and_those_without_any_are_absent() -> None:
    figure = plot_source_weights(SHARES)
    assert list(areas(figure).items()) == [
        ("this search", [25.0, 25.0, 87.5]),
        ("b", [25.0, 50.0, 12.5]),
        ("a", [25.0, 25.0, 0.0]),
        ("c", [25.0, 0.0, 0.0]),
    ]
    assert {trace.stackgroup for trace in figure.data} == {"shares"}
    assert [list(trace.x) for trace in figure.data] == [[0, 4, 7]] * 4
    assert figure.layout.title.subtitle.text == "3 proposals, 3 sources with a share"


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


# Members


def test_members_are_ordered_by_mean_trust_and_those_without_any_are_absent() -> None:
    trust = {5: {"trees": 0.75, "process": 0.25, "tasks": 0.0}, 3: {"process": 1.0}}
    figure = plot_member_trust(trust)
    assert list(areas(figure).items()) == [("process", [100.0, 25.0]), ("trees", [0.0, 75.0])]
    assert [list(trace.x) for trace in figure.data] == [[3, 5]] * 2
    assert {trace.stackgroup for trace in figure.data} == {"shares"}
    assert figure.layout.title.subtitle.text == "2 proposals, 2 members with trust"


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
    "members": lambda: plot_member_trust(SHARES),
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
    folder = Path(__file__).resolve().parents[2] / "examples" / "benchmarks"
    return SimpleNamespace(**runpy.run_path(str(folder / "static_figures.py")))


@pytest.mark.parametrize("band", ["ci", None])
def test_svg_is_the_same_every_time(band: Any, static_figures: Any, tmp_path: Path) -> None:
    figure = plot_ranks(RUNS, band=band)
    paths = tmp_path / "1.svg", tmp_path / "2.svg"
    for path in paths:
        static_figures.save_svg(figure, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    text = paths[0].read_text(encoding="utf-8")
    assert figure.layout.title.text in text and figure.layout.xaxis.title.text in text


def test_svg_follows_the_page_and_takes_matplotlib(static_figures: Any, tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    figure.subplots().plot([1, 2])
    static_figures.save_svg(figure, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "prefers-color-scheme:dark" in text
    assert not re.search("#000000|#ffffff", text)
