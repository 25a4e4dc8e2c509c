"""Does matrix factorisation of recorded runs find good pipelines sooner?

    benchmark_pmf.py oboe  # seven folds of data sets
    benchmark_pmf.py pmf  # the paper's training and test sets
    benchmark_pmf.py pmf --removed 0.9  # 90 % of the training entries removed
    benchmark_pmf.py pmf --pipelines 4000 --methods svd pmf
    benchmark_pmf.py pmf --recorded-only  # no method proposes what failed
    benchmark_pmf.py training  # seconds and memory at full size

Regret is (best so far - best) / (worst - best) of a data set. A pipeline that has no loss on a
test data set failed there: its regret is 1, and the search knows that it failed. With
``--recorded-only`` every method chooses among those that have one, as in the program of the
paper's authors. Failures of training data sets count as the worst. The start is the greedy
portfolio; where there are meta-features (pmf) data sets count in it by their nearness, except for
``pmf_portfolio`` (all alike) and ``pmf_nearest`` (the bests of the nearest, as in the paper).
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from recorded_matrices import MATRICES, Matrix, pmf
from sklearn.model_selection import KFold

from automl_plugins.meta.factorization import (
    MatrixFactorization,
    Pick,
    Recommender,
    by_distance,
    complementary,
    of_nearest,
)
from automl_plugins.statistics import compare

BUDGETS = (1, 2, 3, 5, 7, 10, 20, 30, 50, 100, 200)
RANDOM = {"random": 1, "random-2x": 2, "random-4x": 4}
SPARE = 20

FloatArray = npt.NDArray[Any]

# The model, and how meta-features choose the start where there are any.
MODELS: dict[str, tuple[MatrixFactorization, str]] = {
    "pmf": (MatrixFactorization(), "weighted"),
    "pmf_portfolio": (MatrixFactorization(), "alike"),
    "pmf_nearest": (MatrixFactorization(), "nearest"),
    "pmf_20": (MatrixFactorization(20), "weighted"),
    "pmf_sparse": (MatrixFactorization(20, learning_rate=1e-2, epochs=40), "weighted"),
    "untrained": (MatrixFactorization(epochs=0), "weighted"),
    "linear": (MatrixFactorization(kernel="linear"), "weighted"),
    "svd": (MatrixFactorization(20, kernel="linear", epochs=0, own_share=0.0), "weighted"),
    "svd_raw": (
        MatrixFactorization(
            20, kernel="linear", epochs=0, own_share=0.0, scaling=None, noise="shared"
        ),
        "weighted",
    ),
    "paper": (MatrixFactorization.paper(), "nearest"),
}


@dataclass(frozen=True)
class Split:
    """A training matrix and test data sets."""

    train: FloatArray  # (N, D) losses, NaN = unknown
    test: FloatArray  # (N, V) losses, NaN = fails
    names: list[str]
    gaps: list[FloatArray] | None  # distances of the training data sets from each test one


def splits(matrix: Matrix, removed: float, rows: npt.NDArray[np.int64]) -> Iterator[Split]:
    """The paper's split, or seven folds of data sets; of some pipelines."""
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
    recommender: Recommender,
    losses: FloatArray,
    candidates: npt.NDArray[np.bool_],
    trials: int,
    seconds: list[float],
) -> list[int]:
    """Pipelines tried, in order; all candidates if they are fewer than the trials."""
    tried: list[int] = []
    allowed = candidates.copy()
    for _ in range(min(trials, int(candidates.sum()))):
        told = losses[tried]
        known = told[~np.isnan(told)]
        told = np.where(np.isnan(told), known.max() if len(known) else np.nan, told)
        begin = time.perf_counter()
        row = recommender.next(tried, told, [], allowed).row
        seconds.append(time.perf_counter() - begin)
        tried.append(row)
        allowed[row] = False
    return tried


def at_random(
    regret: FloatArray, several: int, trials: int, repeats: int, seed: int
) -> FloatArray:
    """Mean best regret (trials,) of random search with a multiple of the evaluations.

    ``regret`` holds the candidates.
    """
    rng = np.random.default_rng(seed)
    total = np.zeros(trials)
    for _ in range(repeats):
        drawn = regret[rng.permutation(len(regret))[: several * trials]]
        total += filled(np.minimum.accumulate(drawn)[several - 1 :: several], trials)
    return total / repeats


def filled(curve: FloatArray, trials: int) -> FloatArray:
    """A curve of best regrets (trials,) that stays where it is after its last trial."""
    return np.append(curve, np.full(trials - len(curve), curve[-1]))


def curves(
    split: Split, methods: list[str], trials: int, recorded_only: bool = False
) -> dict[str, list[FloatArray]]:
    """Regret of the best so far, by method and test data set."""
    scaled = MatrixFactorization().scaled(split.train)
    guess = np.nanmean(scaled, axis=1) if not np.isnan(scaled).all(axis=1).any() else None
    means = guess if guess is not None else np.nan_to_num(np.nanmean(scaled, axis=1), nan=1.0)
    longest = SPARE
    if "portfolio" in methods:
        longest = min(max(2 * trials if recorded_only else trials, SPARE), len(scaled))
    start = complementary(scaled, means, longest)
    truth = [regrets(losses) for losses in split.test.T]
    candidates = ~np.isnan(split.test.T) | (not recorded_only)
    out: dict[str, list[FloatArray]] = {}
    for method in methods:
        if method in RANDOM:
            several = RANDOM[method]
            out[method] = [
                at_random(r[c], several, trials, 20, i)
                for i, (r, c) in enumerate(zip(truth, candidates, strict=True))
            ]
        elif method == "portfolio":
            order = list(dict.fromkeys([*(pick.row for pick in start), *np.argsort(means)]))
            listed = [[row for row in order if c[row]][:trials] for c in candidates]
            out[method] = [
                filled(np.minimum.accumulate(r[rows]), trials)
                for r, rows in zip(truth, listed, strict=True)
            ]
        else:
            out[method] = _searches(split, method, start, truth, candidates, trials)
    return out


def _searches(
    split: Split,
    method: str,
    start: list[Pick],
    truth: list[FloatArray],
    candidates: npt.NDArray[np.bool_],
    trials: int,
) -> list[FloatArray]:
    model, kind = MODELS[method]
    begin = time.perf_counter()
    model.fit(split.train)
    fitted = time.perf_counter() - begin
    scaled = model.scaled(split.train)
    seconds: list[float] = []
    found = []
    failed = []
    for i, regret in enumerate(truth):
        first = start[:SPARE]
        if kind == "weighted" and split.gaps is not None:
            weights = by_distance(split.gaps[i])
            first = [*complementary(scaled, model.mean_, 5, weights), *first]
        if kind == "nearest" and split.gaps is not None:
            first = [*of_nearest(split.train, np.argsort(split.gaps[i], kind="stable"), 5), *first]
        recommender = Recommender(model, split.train, first)
        losses = np.asarray(split.test[:, i], dtype=np.float64)
        rows = search(recommender, losses, candidates[i], trials, seconds)
        found.append(filled(np.minimum.accumulate(regret[rows]), trials))
        failed.append(int(np.isnan(losses[rows[:50]]).sum()))
    best = int(np.argmin(model.scores_)) if model.scores_ else 0
    print(
        f"  {method}: fit {fitted:.1f} s, {best} epochs; proposal median"
        f" {1e3 * float(np.median(seconds)):.1f} ms, largest {1e3 * max(seconds):.0f} ms;"
        f" {np.mean(failed):.1f} of the first 50 proposals fail, at random"
        f" {50.0 * float(np.isnan(split.test).mean()):.1f}",
        flush=True,
    )
    return found


def run(
    source: str,
    methods: list[str],
    removed: float,
    pipelines: int,
    trials: int,
    recorded_only: bool = False,
) -> None:
    """Print regrets, ranks and tests of the methods on a table."""
    matrix = MATRICES[source]()
    n = len(matrix.Y)
    rows = np.sort(np.random.default_rng(0).permutation(n)[: pipelines or n])
    found: dict[str, list[FloatArray]] = {method: [] for method in methods}
    names: list[str] = []
    for split in splits(matrix, removed, rows):
        names += split.names
        for method, new in curves(split, methods, trials, recorded_only).items():
            found[method] += new
    budgets = [b for b in BUDGETS if b <= trials]
    means = pd.DataFrame({m: 100.0 * np.mean(c, axis=0) for m, c in found.items()})
    means.index += 1
    table = means.loc[budgets].T
    table["mean"] = means.mean()
    print(f"\n{source}: {len(names)} data sets, {len(rows)} pipelines; mean regret in percent")
    print(table.round(2).to_string())
    tidy = pd.DataFrame(
        [
            (name, method, trial, regret)
            for method, all_curves in found.items()
            for name, curve in zip(names, all_curves, strict=True)
            for trial, regret in enumerate(curve, start=1)
        ],
        columns=["table", "method", "trial", "regret"],
    ).assign(seed=0)
    result = compare(tidy, budgets=budgets, control=methods[-1])
    ranks = pd.DataFrame({b.budget: b.ranks for b in result.budgets})
    print("\nAverage rank")
    print(ranks.round(2).to_string())
    print(result)
    if "portfolio" in means:
        for method in methods:
            over = means[method] - means["portfolio"]
            if method in MODELS:
                print(
                    f"{method} is above the portfolio at {int((over > 1e-9).sum())} budgets, by"
                    f" at most {max(float(over.max()), 0.0):.3f} points"
                )


def training() -> None:
    """Print the seconds and the memory of training on all of ``pmf``, missing left missing."""
    matrix = pmf()
    assert matrix.train is not None
    Y = matrix.Y[:, matrix.train]
    begin = time.perf_counter()
    model = MatrixFactorization(20, progress=True).fit(Y)
    spent = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{Y.shape}, Q = 20: {spent:.0f} s, peak {peak:.2f} GiB, scores {model.scores_}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=[*MATRICES, "training"])
    parser.add_argument("--methods", nargs="+", choices=[*RANDOM, "portfolio", *MODELS])
    parser.add_argument("--removed", type=float, default=0.0, help="share of training entries")
    parser.add_argument("--pipelines", type=int, default=0, help="so many at random; 0: all")
    parser.add_argument("--trials", type=int)
    parser.add_argument(
        "--recorded-only", action="store_true", help="choose among pipelines that have a result"
    )
    args = parser.parse_args()
    if args.what == "training":
        training()
        return
    methods = args.methods or [*RANDOM, "portfolio", "svd", "pmf"]
    trials = args.trials or (200 if args.what == "pmf" else 100)
    run(args.what, methods, args.removed, args.pipelines, trials, args.recorded_only)


if __name__ == "__main__":
    main()
