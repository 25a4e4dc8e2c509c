"""The plot of the sources' weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import optuna
import pytest

pytest.importorskip("plotly")

from automl_plugins.visualization import plot_source_weights
from automl_plugins.visualization.shares import by_source

SHARES = {
    4: {"b": 0.5, "a": 0.25},
    0: {"a": 0.25, "b": 0.25, "c": 0.25},
    7: {"b": 0.125, "d": 0.0},
}


def areas(figure: Any) -> dict[str, list[float]]:
    return {trace.name: list(trace.y) for trace in figure.data}


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


def test_a_search_that_no_source_has_a_share_in() -> None:
    assert areas(plot_source_weights({3: {}})) == {"this search": [100.0]}


def test_many_sources_have_styles_of_their_own() -> None:
    figure = plot_source_weights({0: {f"s{i}": 0.02 for i in range(40)}}, n_sources=25)
    styles = [(trace.line.color, trace.line.dash) for trace in figure.data]
    assert len(set(styles)) == len(styles) == 27


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="with the help of earlier tasks"):
        plot_source_weights({})
    with pytest.raises(ValueError, match="with the help of earlier tasks"):
        plot_source_weights(optuna.create_study())
    with pytest.raises(TypeError, match="Cannot read the sources of a int"):
        plot_source_weights(3)
    for wrong in (-1, 1.5, True):
        with pytest.raises(ValueError, match="n_sources"):
            plot_source_weights(SHARES, n_sources=wrong)  # type: ignore[arg-type]
