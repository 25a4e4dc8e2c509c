"""Plots that compare methods: regret and ranks over a search, and the rank diagram."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from automl_plugins.statistics import BudgetComparison, Comparison, compare
from automl_plugins.visualization import plot_rank_diagram, plot_ranks, plot_regret

go = pytest.importorskip("plotly.graph_objects")

# regret after trials 1, 2 and 3, by table, method and seed
REGRETS = {
    ("t1", "a", 0): [0.75, 0.5, 0.25],
    ("t1", "a", 1): [0.5, 0.5, 0.0],
    ("t1", "b", 0): [0.625, 0.75, 0.75],
    ("t1", "b", 1): [0.625, 0.25, 0.25],
    ("t2", "a", 0): [1.0, 1.0, 0.6],
    ("t2", "a", 1): [0.8, 0.6, 0.6],
    ("t2", "b", 0): [0.5, 0.5, 0.4],
    ("t2", "b", 1): [0.3, 0.3, 0.0],
}
# means over the seeds, tables x trials
SEED_MEANS = {
    "a": np.array([[0.625, 0.5, 0.125], [0.9, 0.8, 0.6]]),
    "b": np.array([[0.625, 0.5, 0.5], [0.4, 0.4, 0.2]]),
}


def frame(regrets: dict[tuple[str, str, int], list[float]]) -> pd.DataFrame:
    rows = [
        {"table": t, "method": m, "seed": s, "trial": i, "seconds": 10.0 ** min(i, 9), "regret": r}
        for (t, m, s), run in regrets.items()
        for i, r in enumerate(run, start=1)
    ]
    return pd.DataFrame(rows)


RUNS = frame(REGRETS)
ENDLESS = RUNS.assign(seconds=RUNS["seconds"].where(RUNS["trial"] < 3, np.inf))


def line(figure: Any, name: str) -> Any:
    (trace,) = [t for t in figure.data if t.name == name and t.fill is None]
    return trace


def ends(figure: Any, name: str) -> tuple[Any, Any]:
    """Lower and upper end of a band."""
    (trace,) = [t for t in figure.data if t.name == name and t.fill == "toself"]
    upper, lower = np.split(np.asarray(trace.y), 2)
    assert list(trace.x) == [*line(figure, name).x, *line(figure, name).x[::-1]]
    return lower[::-1], upper


# Curves


def test_seconds_are_steps_on_a_common_logarithmic_grid() -> None:
    runs = frame({("t", "a", 0): [0.8, 0.4, 0.2], ("t", "b", 0): [0.6, 0.3]})
    runs.loc[runs["method"] == "b", "seconds"] = [50.0, 10_000.0]
    figure = plot_regret(runs, unit="seconds", band=None)
    x = np.asarray(line(figure, "a").x)
    assert figure.layout.xaxis.type == "log"
    assert x[0] == 10 and x[-1] == 10_000
    np.testing.assert_allclose(np.diff(np.log(x)), np.log(1000) / (len(x) - 1))
    expected = np.select([x < 100, x < 1000], [0.8, 0.4], 0.2)  # a ends at 1000 seconds
    assert np.array_equal(line(figure, "a").y, expected)
    assert np.array_equal(line(figure, "b").y, np.select([x < 50, x < 10_000], [1.0, 0.6], 0.3))
    assert np.array_equal(line(figure, "b").x, x)


def test_many_trials_are_thinned_out_with_both_ends_kept() -> None:
    figure = plot_regret(frame({("t", "a", 0): list(np.linspace(1, 0.1, 2500))}))
    x = np.asarray(line(figure, "a").x)
    assert (x[0], x[-1], len(x)) == (1, 2500, 1000)
    np.testing.assert_allclose(line(figure, "a").y, 1 - 0.9 * (x - 1) / 2499)


@pytest.mark.parametrize("band", ["ci", "quartiles"])
def test_bands_by_hand(band: Any) -> None:
    lower, upper = ends(plot_regret(RUNS, band=band, log_y=False), "a")
    low, high = np.sort(SEED_MEANS["a"], axis=0)
    # sd / sqrt(2) of two values is half their distance; quartiles lie a quarter in
    half = (high - low) * (0.98 if band == "ci" else 0.25)
    np.testing.assert_allclose(lower, (low + high) / 2 - half)
    np.testing.assert_allclose(upper, (low + high) / 2 + half)


def test_no_band_on_request_and_for_one_table() -> None:
    one = plot_regret(RUNS[RUNS["table"] == "t1"])
    assert all(t.fill is None for t in (*plot_regret(RUNS, band=None).data, *one.data))
    assert one.layout.title.subtitle.text == "1 table"


def test_bands_on_a_logarithmic_axis_end_at_its_lower_end() -> None:
    figure = plot_regret(RUNS)
    low, high = figure.layout.yaxis.range
    assert low == -1  # the decade below the least mean, 0.35
    everything = np.concatenate([t.y for t in figure.data])
    assert everything.min() == 0.1 and everything.max() <= 10**high
    assert figure.layout.yaxis.type == "log"
    assert plot_regret(RUNS, log_y=False).layout.yaxis.type is None


def test_means_above_the_upper_quartile_are_within_the_axis() -> None:
    runs = {(f"t{i}", "a", 0): [float(i == 0), 0.001 * (i == 0)] for i in range(5)}
    figure = plot_regret(frame(runs), band="quartiles")
    assert line(figure, "a").y.tolist() == pytest.approx([0.2, 0.0002])
    assert figure.layout.yaxis.range[1] > np.log10(0.2)
    assert figure.layout.yaxis.exponentformat == "power"  # else 0.0001 is 100 micro


def test_the_axis_is_linear_where_all_means_are_zero() -> None:
    assert plot_regret(RUNS.assign(regret=0.0)).layout.yaxis.type is None


def test_colours_follow_the_first_appearance_or_the_given_order() -> None:
    regret, ranks = plot_regret(RUNS), plot_ranks(RUNS)
    diagram = plot_rank_diagram(compare(RUNS, budgets=3))
    for method in "ab":
        colours = {line(f, method).line.color for f in (regret, ranks, diagram)}
        assert len(colours) == 1
    given = plot_regret(RUNS, methods=["b", "a"])
    assert line(given, "b").line.color == line(regret, "a").line.color
    assert [t.name for t in given.data if t.showlegend] == ["b", "a"]


def test_colours_repeat_with_another_dash() -> None:
    figure = plot_regret(frame({("t", f"m{i}", 0): [0.5] for i in range(12)}))
    assert len({(t.line.color, t.line.dash) for t in figure.data}) == 12
    assert {t.mode for t in figure.data} == {"markers"}  # one point makes no line


def test_tables_without_all_methods_are_left_out_and_counted() -> None:
    runs = pd.concat([RUNS, frame({("t3", "a", 0): [0.1, 0.1, 0.1]})], ignore_index=True)
    figure = plot_regret(runs)
    np.testing.assert_allclose(line(figure, "a").y, SEED_MEANS["a"].mean(axis=0))
    assert "2 of 3 tables" in figure.layout.title.subtitle.text
    assert "3 tables" in plot_regret(runs, methods=["a"]).layout.title.subtitle.text


def test_ranks_with_ties() -> None:
    figure = plot_ranks(RUNS, band="quartiles")
    # t1: they tie at 0.625 and 0.5, then a wins; t2: b wins
    np.testing.assert_array_equal(line(figure, "a").y, [1.75, 1.75, 1.5])
    np.testing.assert_array_equal(line(figure, "b").y, [1.25, 1.25, 1.5])
    lower, upper = ends(figure, "a")
    np.testing.assert_allclose(lower, [1.625, 1.625, 1.25])
    np.testing.assert_allclose(upper, [1.875, 1.875, 1.75])


def test_curves_are_those_of_compare() -> None:
    rng = np.random.default_rng(0)
    runs = frame(
        {
            (f"t{t}", m, s): list(np.minimum.accumulate(rng.random(rng.integers(3, 9)).round(1)))
            for t in range(6)
            for m in "abcd"
            for s in range(3)
        }
    )
    comparison = compare(runs, budgets=range(1, 9))
    for method in "abcd":
        ranks = [b.ranks[method] for b in comparison.budgets]
        np.testing.assert_allclose(line(plot_ranks(runs), method).y, ranks)
        means = [b.scores[method].mean() for b in comparison.budgets]
        np.testing.assert_allclose(line(plot_regret(runs), method).y, means)


@pytest.mark.parametrize("plot", [plot_regret, plot_ranks])
@pytest.mark.parametrize(
    ("runs", "options", "message"),
    [
        (RUNS, {"unit": "epochs"}, "unit must be one of 'trials', 'seconds', got 'epochs'"),
        (RUNS, {"band": "sd"}, "band must be one of 'ci', 'quartiles', got 'sd'"),
        (RUNS, {"methods": ["a", "c"]}, "No runs of c; there are runs of a, b"),
        (RUNS, {"methods": []}, "methods is empty; there are runs of a, b"),
        (RUNS.assign(seconds=0.0), {"unit": "seconds"}, "above 0 somewhere"),
        (ENDLESS, {"unit": "seconds"}, "must be finite"),
        (RUNS.iloc[:0], {}, "no rows"),
        (RUNS[(RUNS["table"] == "t1") == (RUNS["method"] == "a")], {}, "No table has runs of"),
    ],
)
def test_bad_input_of_curves(
    plot: Any, runs: pd.DataFrame, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        plot(runs, **options)


# Rank diagram


def comparison_of(
    ranks: dict[str, float],
    different: dict[tuple[str, str], bool],
    *,
    control: str | None = None,
    budgets: tuple[float, ...] = (30.0,),
) -> Comparison:
    pairs = pd.DataFrame(
        [(a, b, 0.01 if d else 0.5, d) for (a, b), d in different.items()],
        columns=["method_a", "method_b", "p_finner", "different"],
    )
    mean = pd.Series(ranks, dtype=float)
    results = tuple(BudgetComparison(b, pd.DataFrame(), mean, mean, None, pairs) for b in budgets)
    return Comparison(tuple(sorted(ranks)), control, "trials", 0.05, (), results)


RANKS = {"c": 1.4, "a": 2.1, "d": 2.9, "b": 3.6}


def groups(figure: Any) -> list[tuple[list[float], set[float]]]:
    """Where the markers of each bar are, and its heights."""
    bars = [t for t in figure.data if t.legendgroup == "groups"]
    assert all(t.mode == "lines+markers" for t in bars)
    return [(list(t.x), set(t.y)) for t in bars]


def test_bars_have_markers_at_their_members_only() -> None:
    # a differs from c and d, between which it lies; nobody else differs but c and b
    different = {
        **{("c", "a"): True, ("c", "d"): False, ("c", "b"): True},
        **{("a", "d"): True, ("a", "b"): False, ("d", "b"): False},
    }
    figure = plot_rank_diagram(comparison_of(RANKS, different))
    assert isinstance(figure, go.Figure)
    assert groups(figure) == [([1.4, 2.9], {-1}), ([2.1, 3.6], {-2}), ([2.9, 3.6], {-3})]
    bar = next(t for t in figure.data if t.legendgroup == "groups")
    assert list(bar.marker.color) == [line(figure, m).line.color for m in "cd"]
    title = figure.layout.title
    assert title.text == "Average ranks at 30 trials"
    assert title.subtitle.text == "joined: not different at alpha=0.05, Wilcoxon with Finner"


def test_methods_are_labelled_with_their_ranks_best_left() -> None:
    figure = plot_rank_diagram(comparison_of(RANKS, {("c", "a"): True}))
    assert [n.text for n in figure.layout.annotations] == ["c 1.40", "a 2.10", "d 2.90", "b 3.60"]
    assert [n.xanchor for n in figure.layout.annotations] == ["right", "right", "left", "left"]
    for method, rank in RANKS.items():
        assert (line(figure, method).x[0], line(figure, method).y[0]) == (rank, 0)
    low, high = figure.layout.xaxis.range
    assert low < 1 and high > 4
    assert groups(figure) == []


def test_names_are_shown_as_they_are_and_make_room_for_themselves() -> None:
    odd, long = "a<b & c>d", "a sampler with many arguments in its name, " * 2
    wide = pd.DataFrame({odd: [1.0, 2.0, 3.0], long: [2.0, 3.0, 5.0], "z": [4.0, 4.0, 6.0]})
    figure = plot_rank_diagram(compare(wide[[odd, "z"]], control=odd))
    assert figure.layout.annotations[0].text == "a&lt;b &amp; c&gt;d (control) 1.00"
    assert figure.layout.title.subtitle.text.endswith("with a&lt;b &amp; c&gt;d only")
    assert figure.layout.width is None  # that of the window
    layout = plot_rank_diagram(compare(wide)).layout
    assert layout.width - layout.margin.l - layout.margin.r == 400
    for curves in (plot_regret(RUNS.replace("a", odd)), plot_ranks(RUNS.replace("a", odd))):
        assert line(curves, "a&lt;b &amp; c&gt;d").showlegend


def test_control_is_joined_with_each_method_not_different_from_it() -> None:
    different = {("a", "c"): False, ("a", "d"): True, ("a", "b"): False}
    figure = plot_rank_diagram(comparison_of(RANKS, different, control="a"))
    assert groups(figure) == [([1.4, 2.1], {-1}), ([2.1, 3.6], {-2})]
    assert "a (control) 2.10" in [n.text for n in figure.layout.annotations]
    assert figure.layout.title.subtitle.text.endswith("; compared with a only")


def test_budget_must_be_chosen_if_there_are_several() -> None:
    comparison = comparison_of(RANKS, {("c", "a"): True}, budgets=(10.0, 30.0))
    with pytest.raises(ValueError, match=r"several budgets, 10, 30: use .* budget=\."):
        plot_rank_diagram(comparison)
    with pytest.raises(ValueError, match=r"No budget 20; there are 10, 30\."):
        plot_rank_diagram(comparison, budget=20)
    assert "at 10 trials" in plot_rank_diagram(comparison, budget=10).layout.title.text


def test_diagram_of_a_wide_frame_and_of_one_task() -> None:
    wide = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [2.0, 3.0, 5.0]})
    assert plot_rank_diagram(compare(wide)).layout.title.text == "Average ranks"
    one = plot_rank_diagram(compare(wide.iloc[:1]))
    assert one.layout.title.subtitle.text == "one task only: nothing could be tested"
    assert groups(one) == []


@pytest.mark.parametrize("given", [3, None, [0.5]])
def test_what_is_no_frame_or_comparison_is_refused(given: Any) -> None:
    for plot in (plot_regret, plot_ranks):
        with pytest.raises(TypeError, match=r"as replay\(...\) returns it, got a"):
            plot(given)
    with pytest.raises(TypeError, match=r"as statistics.compare\(...\) returns it; got a"):
        plot_rank_diagram(given)
