"""The plot of latent places."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from automl_plugins.meta.factorization import MatrixFactorization
from automl_plugins.visualization.pipeline_embedding import plot_pipeline_embedding

pytest.importorskip("plotly")


@pytest.fixture(scope="module")
def model() -> MatrixFactorization:
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(12, 2)) @ rng.normal(size=(2, 20)) + 0.01 * rng.normal(size=(12, 20))
    return MatrixFactorization(4, kernel="linear", epochs=0, scaling=None).fit(Y)


def test_main_axes_are_those_of_all_dimensions(model: MatrixFactorization) -> None:
    figure = plot_pipeline_embedding(model)
    (points,) = figure.data
    centred = model.embedding_ - model.embedding_.mean(axis=0)
    assert np.var(points.x) == pytest.approx(np.linalg.eigvalsh(centred.T @ centred / 12)[-1])
    assert np.var(points.x) > np.var(points.y)
    assert figure.layout.xaxis.title.text.startswith("Main axis 1 (")
    np.testing.assert_array_equal(points.marker.color, model.mean_)


def test_two_dimensions_may_be_chosen(model: MatrixFactorization) -> None:
    points = plot_pipeline_embedding(model, dimensions=(2, 0)).data[0]
    np.testing.assert_array_equal(points.x, model.embedding_[:, 2])
    np.testing.assert_array_equal(points.y, model.embedding_[:, 0])


def test_each_label_has_its_points(model: MatrixFactorization) -> None:
    large = MatrixFactorization(2, epochs=0).fit(np.random.default_rng(0).normal(size=(60, 5)))
    assert len(plot_pipeline_embedding(large, labels=list(range(60))).data) == 60
    labels = ["svm", "tree", "svm"] * 4
    names = [f"pipeline {i}" for i in range(12)]
    figure = plot_pipeline_embedding(model, labels=labels, names=names)
    assert {trace.name: len(trace.x) for trace in figure.data} == {"svm": 8, "tree": 4}
    assert list(figure.data[1].text) == [f"pipeline {i}" for i in (1, 4, 7, 10)]
    assert len({trace.marker.color for trace in figure.data}) == 2
    # By place, whatever the index of a series.
    pandas = pytest.importorskip("pandas")
    index = [*range(1, 12), 0]
    shown = plot_pipeline_embedding(
        model, labels=pandas.Series(labels, index), names=pandas.Series(names, index)
    )
    assert shown == figure


def test_names_of_pipelines_are_no_html(model: MatrixFactorization) -> None:
    points = plot_pipeline_embedding(model, names=["a<b>c & d"] * 12).data[0]
    assert set(points.text) == {"a&lt;b&gt;c &amp; d"}


def test_values_are_colours(model: MatrixFactorization) -> None:
    points = plot_pipeline_embedding(model, values=[float(i) for i in range(12)]).data[0]
    np.testing.assert_array_equal(points.marker.color, np.arange(12.0))


def test_one_dimension_and_one_pipeline_are_drawn() -> None:
    for Y in (np.zeros((1, 3)), np.arange(6.0).reshape(3, 2)):
        assert len(plot_pipeline_embedding(MatrixFactorization(1, epochs=0).fit(Y)).data[0].x)


def test_of_very_many_an_even_part_is_drawn() -> None:
    Y = np.random.default_rng(0).normal(size=(20_003, 2))
    figure = plot_pipeline_embedding(MatrixFactorization(1, epochs=0).fit(Y))
    assert len(figure.data[0].x) == 20_000
    assert "20000 of 20003" in figure.layout.title.subtitle.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": ["a"]}, "labels must have one entry for each of 12"),
        ({"names": ["a"]}, "names must have one entry for each of 12"),
        ({"values": [1.0]}, "values must have one entry for each of 12"),
        ({"labels": ["a"] * 12, "values": [1.0] * 12}, "one of them"),
        ({"dimensions": (0, 4)}, "two in"),
    ],
)
def test_what_is_refused(
    model: MatrixFactorization, options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        plot_pipeline_embedding(model, **options)  # type: ignore[arg-type]


def test_an_unfitted_model_is_refused() -> None:
    with pytest.raises(NotFittedError):
        plot_pipeline_embedding(MatrixFactorization())
