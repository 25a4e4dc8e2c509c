"""Does matrix factorisation of recorded runs find good pipelines sooner?

    benchmark_pmf.py oboe  # seven folds of data sets
    benchmark_pmf.py pmf --pipelines 4000  # the paper's training and test sets, some pipelines
    benchmark_pmf.py oboe --removed 0.9  # 90 % of the training entries removed
    benchmark_pmf.py training  # seconds and memory at full size

Regret is (best so far - best) / (worst - best) of a data set. A pipeline that has no loss on a
test data set failed there: its regret is 1, and the search is told of the failure. Failures on
training data sets count as the worst loss. The start is the greedy portfolio. With meta-features
(pmf) it weights data sets by their nearness, except in the method ``pmf_portfolio``.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from common import mean_regrets, run_command
from recorded_tables import read_array, read_csv
from sklearn.model_selection import KFold

from automl_plugins.arrays import FloatArray
from automl_plugins.meta.factorization import (
    MatrixFactorization,
    Pick,
    Recommender,
    complementary,
)
from automl_plugins.meta.tasks import by_distance
from automl_plugins.statistics import compare

BUDGETS = (1, 2, 3, 5, 7, 10, 20, 30, 50, 100, 200)
RANDOM = {"random": 1, "random-2x": 2, "random-4x": 4}
N_START = 20
METHODS = (*RANDOM, "portfolio", "svd", "pmf")

MODELS: dict[str, MatrixFactorization] = {
    "pmf": MatrixFactorization(),
    "pmf_portfolio": MatrixFactorization(),
    "pmf_sparse": MatrixFactorization(20, learning_rate=1e-2, epochs=40),
    "untrained": MatrixFactorization(epochs=0),
    "svd": MatrixFactorization(20, kernel="linear", epochs=0, own_share=0.0),
}


# --- the tables ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Matrix:
    """Losses of the same pipelines on many data sets.

    Attributes:
        Y: Losses (N, D), smaller is better; NaN for a failed or unknown one.
        data_sets: Names (D).
        train: Mask (D,) of the data sets that the table's authors trained on; None if they have
            no split.
        meta_features: Meta-features of the data sets (D rows); None if not recorded.
    """

    Y: FloatArray
    data_sets: list[str]
    train: npt.NDArray[np.bool_] | None = None
    meta_features: pd.DataFrame | None = None


def load_pmf() -> Matrix:
    """38 151 pipelines on 493 data sets, with the split of the paper (Fusi et al. 2018)."""
    # Columns are stored in an order that reveals which pipelines are good.
    back = np.argsort(read_array("pmf/column_pipeline_id.npy.xz"))
    stored = read_array("pmf/error_u16.npy.xz")[:, back].T
    Y = np.where(stored == 65535, np.float32(np.nan), stored / np.float32(10_000))
    sets = read_csv("pmf/datasets.csv")
    features = read_csv("pmf_metafeatures/metafeatures.csv.gz").set_index("dataset_id")
    return Matrix(
        np.ascontiguousarray(Y, dtype=np.float32),
        [str(i) for i in sets.dataset_id],
        (sets.paper_split == "train").to_numpy(),
        features.drop(columns="paper_split").loc[sets.dataset_id.to_numpy()],
    )


def load_oboe() -> Matrix:
    """219 configurations of 12 algorithms on 358 data sets, balanced error; nothing is missing."""
    frame = read_csv("oboe/oboe.csv.gz")
    wide = frame.pivot(index="config_id", columns="dataset_id", values="balanced_error_rate")
    return Matrix(wide.to_numpy(dtype=np.float32), list(map(str, wide.columns)))


# --- the searches --------------------------------------------------------------------------


@dataclass(frozen=True)
class Split:
    """A training matrix and test data sets."""

    train: FloatArray  # (N, D) losses, NaN = unknown
    test: FloatArray  # (N, V) losses, NaN = fails
    names: list[str]
    gaps: list[FloatArray] | None  # distances of the training data sets from each test one


def splits(matrix: Matrix, removed: float, rows: npt.NDArray[np.int64]) -> Iterator[Split]:
    """The paper's split, or seven folds of data sets, for the pipelines ``rows``."""
    Y = matrix.Y[rows]
    varies = np.nanmax(Y, axis=0) > np.nanmin(Y, axis=0)
    if matrix.train is None:
        parts = [test for _, test in KFold(7, shuffle=True, random_state=0).split(Y.T)]
    else:
        parts = [np.flatnonzero(~matrix.train)]
    for part in parts:
        test = part[varies[part]]
        train = np.setdiff1d(np.flatnonzero(varies), part)
        known = Y[:, train]
        known = np.where(np.isnan(known), np.nanmax(known, axis=0), known)
        if removed:
            known[np.random.default_rng(0).random(known.shape) < removed] = np.nan
        gaps = None
        if matrix.train is not None and matrix.meta_features is not None:
            ranks = matrix.meta_features.rank(pct=True).fillna(0.5).to_numpy()
            gaps = [np.abs(ranks[train] - ranks[d]).mean(axis=1) for d in test]
        yield Split(known, Y[:, test], [matrix.data_sets[d] for d in test], gaps)


def regrets(losses: FloatArray) -> FloatArray:
    """Normalised regrets (N,) of a data set; 1 where a pipeline has no loss."""
    low, high = float(np.nanmin(losses)), float(np.nanmax(losses))
    return np.where(np.isnan(losses), 1.0, (losses - low) / (high - low))


def search(
    recommender: Recommender, losses: FloatArray, trials: int, seconds: list[float]
) -> list[int]:
    """Pipelines tried, in order."""
    tried: list[int] = []
    allowed = np.ones(len(losses), dtype=bool)
    for _ in range(min(trials, len(losses))):
        seen = losses[tried]
        known = seen[~np.isnan(seen)]
        seen = np.where(np.isnan(seen), known.max() if len(known) else np.nan, seen)
        begin = time.perf_counter()
        row = recommender.next(tried, seen, [], allowed).row
        seconds.append(time.perf_counter() - begin)
        tried.append(row)
        allowed[row] = False
    return tried


def at_random(regret: FloatArray, several: int, trials: int, seed: int) -> FloatArray:
    """Mean best regret (trials,) of 20 random searches with a multiple of the evaluations."""
    rng = np.random.default_rng(seed)
    drawn = [regret[rng.permutation(len(regret))[: several * trials]] for _ in range(20)]
    best = np.minimum.accumulate(drawn, axis=1)[:, several - 1 :: several].mean(axis=0)
    return np.append(best, np.full(trials - len(best), best[-1]))


def curves(split: Split, methods: Sequence[str], trials: int) -> dict[str, list[FloatArray]]:
    """Regret of the best so far, by method and test data set."""
    scaled = MatrixFactorization().scaled(split.train)
    with np.errstate(invalid="ignore"):
        means = np.nan_to_num(np.nanmean(scaled, axis=1), nan=1.0)
    start = complementary(scaled, means, min(max(trials, N_START), len(scaled)))
    truth = [regrets(losses) for losses in split.test.T]
    out: dict[str, list[FloatArray]] = {}
    for method in methods:
        if method in RANDOM:
            out[method] = [at_random(r, RANDOM[method], trials, i) for i, r in enumerate(truth)]
        elif method == "portfolio":
            order = list(dict.fromkeys([*(pick.row for pick in start), *np.argsort(means)]))
            out[method] = [np.minimum.accumulate(r[order[:trials]]) for r in truth]
        else:
            out[method] = _searches(split, method, start[:N_START], truth, trials)
    return out


def _searches(
    split: Split, method: str, start: list[Pick], truth: list[FloatArray], trials: int
) -> list[FloatArray]:
    model, begin = MODELS[method], time.perf_counter()
    model.fit(split.train)
    fitted = time.perf_counter() - begin
    scaled = model.scaled(split.train)
    seconds: list[float] = []
    found = []
    for i, regret in enumerate(truth):
        first = start
        if split.gaps is not None and method != "pmf_portfolio":
            weights = by_distance(split.gaps[i])
            first = [*complementary(scaled, model.mean_, 5, weights), *first]
        losses = np.asarray(split.test[:, i], dtype=np.float64)
        rows = search(Recommender(model, split.train, first), losses, trials, seconds)
        found.append(np.minimum.accumulate(regret[rows]))
    best = int(np.argmin(model.scores_)) if model.scores_ else 0
    print(
        f"  {method}: fit {fitted:.1f} s, {best} epochs; proposal median"
        f" {1e3 * float(np.median(seconds)):.1f} ms, largest {1e3 * max(seconds):.0f} ms",
        flush=True,
    )
    return found


def oboe(
    methods: Sequence[str] = METHODS, removed: float = 0.0, pipelines: int = 0, trials: int = 100
) -> None:
    """Seven folds of the data sets of oboe; see ``show``."""
    show("oboe", load_oboe(), methods, removed, pipelines, trials)


def pmf(
    methods: Sequence[str] = METHODS, removed: float = 0.0, pipelines: int = 0, trials: int = 200
) -> None:
    """The paper's training and test sets; see ``show``."""
    show("pmf", load_pmf(), methods, removed, pipelines, trials)


def show(
    source: str,
    matrix: Matrix,
    methods: Sequence[str],
    removed: float,
    pipelines: int,
    trials: int,
) -> None:
    """Print regrets, ranks and tests of the methods on a table.

    ``removed`` is the share of training entries to remove, ``pipelines`` the number used (0: all).
    """
    n = len(matrix.Y)
    rows = np.sort(np.random.default_rng(0).permutation(n)[: pipelines or n])
    found = [
        (name, method, trial, regret)
        for split in splits(matrix, removed, rows)
        for method, all_curves in curves(split, methods, trials).items()
        for name, curve in zip(split.names, all_curves, strict=True)
        for trial, regret in enumerate(curve, start=1)
    ]
    runs = pd.DataFrame(found, columns=["table", "method", "trial", "regret"]).assign(seed=0)
    n_tables = runs.table.nunique()
    print(f"\n{source}: {n_tables} data sets, {len(rows)} pipelines; mean regret in percent")
    print(mean_regrets(runs, BUDGETS).to_string())
    result = compare(runs, budgets=[b for b in BUDGETS if b <= trials], control=methods[-1])
    print("\nAverage rank")
    print(pd.DataFrame({b.budget: b.ranks for b in result.budgets}).round(2).to_string())
    print(result)
    every = mean_regrets(runs, range(1, trials + 1))
    for method in MODELS.keys() & every.index if "portfolio" in every.index else ():
        over = int((every.T[method] > every.T["portfolio"]).sum())
        print(f"{method} is above the portfolio at {over} budgets")


def training() -> None:
    """Print the seconds and the memory of training on all of ``pmf``, missing left missing."""
    matrix = load_pmf()
    assert matrix.train is not None
    Y = matrix.Y[:, matrix.train]
    begin = time.perf_counter()
    model = MatrixFactorization(20, progress=True).fit(Y)
    spent = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{Y.shape}, Q = 20: {spent:.0f} s, peak {peak:.2f} GiB, scores {model.scores_}")


if __name__ == "__main__":
    run_command(__doc__, oboe, pmf, training, methods=[*RANDOM, "portfolio", *MODELS])
