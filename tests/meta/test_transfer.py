"""TransferTemplate: TwoStageTransfer for the space that is searched, its first stage kept."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, Float

from automl_plugins.meta import MetaDataset, MetaStore, TaskRecord, transfer
from automl_plugins.meta.memories import TaskMemory
from automl_plugins.meta.transfer import TransferTemplate
from automl_plugins.spaces.vector_space import VectorSpace
from automl_plugins.surrogates import Sources, TwoStageTransfer

RNG = np.random.default_rng(7)


def a_space(categorical: bool = False) -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(Float("x", (0.0, 1.0)))
    if categorical:
        space.add(Categorical("kind", ["a", "b"]))
    return space


def records(bests: tuple[float, ...] = (0.2, 0.3, 0.8)) -> list[TaskRecord]:
    found = []
    for best in bests:
        x = RNG.random(12)
        found.append(
            TaskRecord(
                f"task {best}",
                [{"x": float(v)} for v in x],
                (x - best) ** 2,
                space=a_space(),
                meta_features={"best": best},
            )
        )
    return found


MEMORY = MetaDataset.from_records(records(), a_space())
SPACE = VectorSpace(a_space())
GRID = np.linspace(0.0, 1.0, 21)[:, None]
X = np.array([[0.25], [0.7], [0.4]])
Y = (X[:, 0] - 0.25) ** 2


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A name for each first stage that is fitted."""
    made: list[str] = []
    plain = Sources.fit.__func__  # type: ignore[attr-defined]

    def counted(cls: type[Sources], /, memory: MetaDataset, **options: Any) -> Sources:
        made.append(options["kernel"])
        sources: Sources = plain(cls, memory, **options)
        return sources

    monkeypatch.setattr(Sources, "fit", classmethod(counted))
    return made


def test_the_first_stage_is_fitted_once_for_each_space(fits: list[str]) -> None:
    maker = TransferTemplate(TaskMemory(MEMORY))
    first, second = maker.for_space(SPACE), maker.for_space(SPACE)
    assert first is not second and first.sources is second.sources
    assert len(fits) == 1
    other = maker.for_space(VectorSpace(a_space(categorical=True)))
    assert len(fits) == 2
    assert isinstance(other.sources, Sources) and other.sources.n_features == 2
    again = pickle.loads(pickle.dumps(maker)).for_space(SPACE)
    assert len(fits) == 3
    np.testing.assert_array_equal(again.fit(X, Y).predict(GRID), first.fit(X, Y).predict(GRID))


def test_the_papers_settings(fits: list[str]) -> None:
    made = TransferTemplate(TaskMemory(MEMORY), paper=True, max_rows=50).for_space(SPACE)
    paper = TwoStageTransfer.paper(max_rows=50).get_params(deep=False)
    assert made.get_params(deep=False) | {"sources": None} == paper
    assert fits == ["se"]


def test_meta_features_weigh_the_tasks() -> None:
    options: dict[str, Any] = {"distance": "meta_features", "meta_features": {"best": 0.78}}
    made = TransferTemplate(TaskMemory(MEMORY), **options).for_space(SPACE).fit(X, Y)
    shares = made.shares_
    assert shares["task 0.8"] > max(shares["task 0.2"], shares["task 0.3"])


def test_a_store_keeps_the_first_stage(tmp_path: Path, fits: list[str]) -> None:
    with MetaStore(tmp_path / "memory.db") as store:
        for record in records():
            store.add(record)
        expected = TransferTemplate(TaskMemory(store)).for_space(SPACE).fit(X, Y).predict(GRID)
        assert len(fits) == 1
        kept = TransferTemplate(TaskMemory(store)).for_space(SPACE)
        np.testing.assert_allclose(kept.fit(X, Y).predict(GRID), expected, rtol=1e-12)
        assert len(fits) == 1
        # Another kernel, another memory: nothing that was kept fits.
        TransferTemplate(TaskMemory(store), paper=True).for_space(SPACE)
        TransferTemplate(TaskMemory(store, task="task 0.8")).for_space(SPACE)
        assert len(fits) == 3
        store.add(
            TaskRecord("new", [{"x": 0.1}, {"x": 0.9}], np.array([0.0, 1.0]), space=a_space())
        )
        TransferTemplate(TaskMemory(store)).for_space(SPACE)
        assert len(fits) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"distance": "meta_features"}, "needs the meta-features"),
        ({"bandwidth": -1.0}, "bandwidth must be positive"),
        ({"max_rows": 1}, "max_rows"),
    ],
)
def test_illegal_options_are_refused_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TransferTemplate(TaskMemory(MEMORY), **options)


def test_what_is_kept_is_told_apart_by_all_that_it_depends_on() -> None:
    def version(dataset: MetaDataset, kernel: Any = "se", max_rows: int = 300) -> str:
        return transfer._version(dataset, kernel, max_rows)

    first = version(MEMORY)
    assert first == version(MetaDataset.from_records(MEMORY.records(), a_space()))
    changed = [
        replace(MEMORY, losses=MEMORY.losses + np.arange(len(MEMORY))),
        replace(MEMORY, vectors=MEMORY.vectors[::-1].copy()),
        replace(MEMORY, status=np.where(np.arange(len(MEMORY)) == 3, 2, MEMORY.status)),
        MEMORY.without("task 0.3"),
    ]
    versions = {first, *map(version, changed)}
    versions |= {version(MEMORY, "matern52"), version(MEMORY, "se", 200)}
    assert len(versions) == 7
