"""Draw the pictures of docs/ideas, each with the code that it explains.

python examples/benchmarks/idea_pictures.py [NAME ...] [--out docs/ideas]    # under a minute
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace, Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from static_figures import save_svg

from automl_plugins.arrays import FloatArray
from automl_plugins.bandits import ArmRecords, MaxUCB, SuccessiveFiltering, failure_probability
from automl_plugins.bandits.model_weights import weights_from_counts
from automl_plugins.meta import MatrixFactorization, MetaDataset, bundled, diverse, portfolio
from automl_plugins.proposers.acquisition import log_score
from automl_plugins.proposers.committee import trust_in
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.records.trial import Status
from automl_plugins.replay import regret
from automl_plugins.streams import Streams
from automl_plugins.surrogates import (
    AveragedProcess,
    DistanceAware,
    QuantileBoosting,
    RunningTime,
    TwoStageTransfer,
)
from automl_plugins.surrogates.base import expected_improvement, log_expected_improvement

BLUE, RED, GREEN, PURPLE, GREY = "#4c72d0", "#dd6633", "#229966", "#9966cc", "#7f7f7f"
COLORS = [BLUE, RED, GREEN, PURPLE]


def make_axes(n: int = 1, **options: Any) -> tuple[Figure, list[Axes]]:
    """A picture of ``n`` plots side by side."""
    figure = Figure(figsize=(6.8, 3.2), layout="constrained")
    axes = figure.subplots(1, n, squeeze=False, **options)[0]
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    return figure, list(axes)


def show_names(figure: Figure, ax: Axes) -> None:
    """Name the areas of ``ax`` below all plots: text on an area is hard to read."""
    handles, names = ax.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False, fontsize=9)


# --- one search --------------------------------------------------------------------------------


def loss_of(x: FloatArray) -> FloatArray:
    """An invented loss on [0, 1] with two valleys."""
    return np.asarray(
        1.0 - np.exp(-(((x - 0.2) / 0.1) ** 2)) - 0.8 * np.exp(-(((x - 0.75) / 0.15) ** 2))
    )


def gbqr() -> Figure:
    """Predictions of a bootstrap ensemble, without and with doubt that grows with distance."""
    rng = np.random.default_rng(3)
    x = np.sort(np.append(rng.uniform(0.0, 0.58, 24), [0.9, 0.93, 0.97]))
    y, line = loss_of(x), np.linspace(0.0, 1.0, 401)
    ensemble = QuantileBoosting(
        n_trees=30, num_leaves=16, learning_rate=0.3, alpha=0.3, random_state=1
    )
    figure, axes = make_axes(2, sharey=True)
    titles = ("five bootstrap models", "doubt grows with the distance")
    models: tuple[Any, ...] = (ensemble, DistanceAware(ensemble, strength=0.6, random_state=1))
    for ax, model, title in zip(axes, models, titles, strict=True):
        mean, std = model.fit(x[:, None], y).predict(line[:, None])
        ax.plot(line, loss_of(line), color=GREY, linestyle="--", label="loss")
        ax.plot(line, mean, color=BLUE, label="mean")
        ax.fill_between(line, mean - std, mean + std, color=BLUE, alpha=0.25, linewidth=0)
        gain = expected_improvement(mean, std, float(y.min()))
        ax.fill_between(
            line, -0.5, -0.5 + 0.35 * gain / gain.max(), color=RED, alpha=0.6, label="gain"
        )
        ax.plot(x, y, "o", color=GREEN, label="trials")
        ax.set(title=title, xlabel="hyperparameter")
    axes[0].set_ylabel("loss")
    axes[0].legend(frameon=False, loc="lower right")
    return figure


def ei_per_second() -> Figure:
    """Where the gain is largest, and where the gain per second is."""
    x = np.array([0.02, 0.13, 0.2, 0.33, 0.42, 0.52, 0.6, 0.68, 0.84, 0.92, 0.99])
    seconds = 10.0 ** (2.0 * x)
    y, line = loss_of(1.0 - x), np.linspace(0.0, 1.0, 401)
    mean, std = AveragedProcess().fit(x[:, None], y).predict(line[:, None])
    predicted = RunningTime(random_state=0).fit(x[:, None], seconds).predict_seconds(line[:, None])
    log_gain = log_expected_improvement(mean, std, float(y.min()))
    figure, axes = make_axes(2)
    axes[0].plot(line, loss_of(1.0 - line), color=GREY, linestyle="--", label="loss")
    axes[0].plot(line, mean, color=BLUE, label="predicted loss")
    axes[0].fill_between(line, mean - std, mean + std, color=BLUE, alpha=0.25, linewidth=0)
    axes[0].plot(x, y, "o", color=GREEN)
    axes[0].plot(line, predicted / 100.0, color=PURPLE, label="predicted seconds / 100")
    for name, score_of, color in (
        ("gain", log_gain, RED),
        ("gain per second", log_score(log_gain, log_seconds=np.log(predicted)), BLUE),
    ):
        score = np.exp(score_of - score_of.max())
        axes[1].plot(line, score, color=color, label=name)
        axes[1].axvline(line[score.argmax()], color=color, linestyle=":")
    axes[1].set_ylabel("share of its maximum")
    for ax in axes:
        ax.set_xlabel("hyperparameter")
    axes[1].legend(frameon=False, loc="upper center", fontsize=9)
    show_names(figure, axes[0])
    return figure


def committee() -> Figure:
    """How fast trust moves to the member whose ranks are right."""
    figure, (ax,) = make_axes()
    n = np.arange(1, 61)
    names = ("trees, rank correlation 0.5", "process, 0.7", "log process, 0.8")
    merits, prior = np.array([0.5, 0.7, 0.8]), np.array([1.0, 1.5, 1.5])
    shares = np.array([trust_in(merits, int(k), prior, 0.5) for k in n])
    ax.stackplot(n, 100.0 * shares.T, colors=COLORS, alpha=0.75, labels=names, linewidth=0)
    ax.set(xlabel="finished trials", ylabel="trust (%)", xlim=(1, 60), ylim=(0, 100))
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), reverse=True)
    return figure


# --- earlier tasks -----------------------------------------------------------------------------


def memory() -> Figure:
    """Regret of the first suggestions, each task left out of the memory in turn."""
    known = bundled("svm")
    records = {record.name: record for record in known.records()}
    scored: dict[str, list[FloatArray]] = {"diverse": [], "portfolio": [], "random": []}
    for task in known.tasks[::4]:
        family = task.tags["family"]
        rest = known.without(*(t.name for t in known.tasks if t.tags["family"] == family))
        losses = _losses_by_configuration(records[task.name])
        of_best = partial(regret, best=min(losses.values()), worst=max(losses.values()))
        for name, design in (("diverse", diverse), ("portfolio", portfolio)):
            picked = design(known.space, rest, task.meta_features, 5).configurations
            scored[name].append(of_best([losses[_key(c)] for c in picked]))
        rng = np.random.default_rng(0)
        drawn = rng.permuted(np.tile([*losses.values()], (200, 1)), axis=1)[:, :5]
        scored["random"].append(np.mean([of_best(row) for row in drawn], axis=0))
    figure, (ax,) = make_axes()
    for (name, curves), color in zip(scored.items(), (BLUE, GREEN, GREY), strict=True):
        ax.plot(range(1, 6), 100.0 * np.mean(curves, axis=0), "o-", color=color, label=name)
    ax.set(
        xlabel="suggestions evaluated",
        ylabel="mean regret (%)",
        xticks=range(1, 6),
        ylim=(0, None),
    )
    ax.legend(frameon=False)
    return figure


def _key(configuration: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(sorted((name, str(value)) for name, value in configuration.items()))


def _losses_by_configuration(record: TaskRecord) -> dict[tuple[Any, ...], float]:
    pairs = zip(record.configurations, record.losses, strict=True)
    return {_key(c): float(loss) for c, loss in pairs if np.isfinite(loss)}


def tst() -> Figure:
    """Two sources that agree with the trials, one that does not, and their joint vote."""
    space = ConfigurationSpace()
    space.add(Float("x", (0.0, 1.0)))
    recorded, line = np.linspace(0.0, 1.0, 12), np.linspace(0.0, 1.0, 401)
    sources = {
        "a bit to the left": loss_of(recorded + 0.04),
        "half as deep": 0.5 * loss_of(recorded) + 0.1,
        "the other way round": 1.0 - loss_of(recorded),
    }
    configurations = [{"x": float(value)} for value in recorded]
    records = [TaskRecord(n, configurations, y, space=space) for n, y in sources.items()]
    earlier, tried, shares = MetaDataset.from_records(records, space), list[float](), []
    for _ in range(12):
        x = np.array(tried)[:, None]
        model = TwoStageTransfer(earlier).fit(x, loss_of(x[:, 0]))
        shares.append([model.own_share_, *(model.shares_.get(name, 0.0) for name in sources)])
        mean, std = model.predict(line[:, None])
        best = float(loss_of(x[:, 0]).min()) if tried else float(mean.min())
        if len(tried) == 4:
            shown = mean, std, x[:, 0]
        tried.append(float(line[log_expected_improvement(mean, std, best).argmax()]))
    figure, axes = make_axes(2)
    mean, std, x = shown
    axes[0].plot(line, loss_of(line), color=GREY, linestyle="--", label="loss")
    axes[0].plot(line, mean, color=BLUE, label="vote after 4 trials")
    axes[0].fill_between(line, mean - std, mean + std, color=BLUE, alpha=0.25, linewidth=0)
    axes[0].plot(x, loss_of(x), "o", color=GREEN, label="trials")
    axes[0].set(xlabel="hyperparameter", ylabel="loss", ylim=(-0.6, 1.2))
    axes[0].legend(frameon=False, loc="lower right", fontsize=8)
    names = ["the search itself", *sources]
    votes = 100.0 * np.array(shares).T
    axes[1].stackplot(range(12), votes, labels=names, colors=COLORS, alpha=0.75, linewidth=0)
    axes[1].set(xlabel="trials", ylabel="share of the vote (%)", xlim=(0, 11), ylim=(0, 100))
    show_names(figure, axes[1])
    return figure


# --- algorithms --------------------------------------------------------------------------------


def weighted_models() -> Figure:
    """The paper's probability of missing the best configuration, for its 11 models."""
    counts = [8, 6, 11, 10, 2, 3, 1, 8, 3, 4, 1]  # table 3
    theta = 2.0 ** np.array(counts)
    uniform, by_size = np.full(11, 1.0 / 11.0), weights_from_counts(counts)
    draws = np.unique(np.geomspace(1, 30_000, 60).astype(int))
    figure, (ax,) = make_axes()
    for name, weights, color in (("uniform", uniform, GREY), ("2^N", by_size, BLUE)):
        missed = [failure_probability(weights, theta, int(k)) for k in draws]
        ax.plot(draws, missed, color=color, label=name)
    ax.set(xscale="log", xlabel="draws", ylabel="probability of missing the best")
    ax.legend(frameon=False)
    return figure


def bandits() -> Figure:
    """Trials of each arm under successive filtering with 90 trials, and under MaxUCB."""
    ends, spread = np.array([0.80, 0.86, 0.90, 0.92]), np.array([0.05, 0.2, 0.05, 0.2])
    rng = np.random.default_rng(2)
    rewards = np.maximum(0.0, ends - rng.exponential(spread, (90, 4)))
    figure, axes = make_axes(2, sharey=True)
    filtering, rounds = SuccessiveFiltering(90), list[Any]()

    def filtered(records: ArmRecords, k: int) -> int:
        turn = filtering.next(range(4), records, rounds, Streams(1), k)
        rounds.extend(turn.opened)
        assert turn.arm is not None
        return turn.arm

    def bounded(records: ArmRecords, k: int) -> int:
        return MaxUCB().choose(range(4), records, Streams(1), k)

    for ax, title, choose in (
        (axes[0], "BOASF, three rounds", filtered),
        (axes[1], "MaxUCB", bounded),
    ):
        pulled: list[int] = []
        for k in range(90):
            done = [float(rewards[i, arm]) for i, arm in enumerate(pulled)]
            records = ArmRecords.of(
                pulled, done, seconds=np.ones(k), status=np.full(k, Status.COMPLETE)
            )
            pulled.append(choose(records, k))
        shares = np.cumsum(np.eye(4)[pulled], axis=0)
        names = [
            f"best reward {end:.2f}, spread {s:.2f}" for end, s in zip(ends, spread, strict=True)
        ]
        ax.stackplot(range(1, 91), shares.T, colors=COLORS, alpha=0.75, labels=names, linewidth=0)
        ax.set(title=title, xlabel="trials", xlim=(1, 90), ylim=(0, 90))
    axes[0].set_ylabel("trials of each arm")
    show_names(figure, axes[0])
    return figure


def pmf() -> Figure:
    """Pipelines of three learners in the plane of the first two latent dimensions."""
    learners = ("svm", "extra_trees", "knn")
    records = {name: bundled(name).records() for name in learners}
    tasks = sorted(set.intersection(*({r.name for r in found} for found in records.values())))
    rows: list[FloatArray] = []
    owner: list[int] = []
    for index, found in enumerate(records.values()):
        by_task = {r.name: _losses_by_configuration(r) for r in found}
        # Not the library's default, whose numbers may depend on the data.
        keys = sorted(set.intersection(*(set(by_task[t]) for t in tasks)))
        rows += [np.array([by_task[t][key] for t in tasks]) for key in keys]
        owner += [index] * len(keys)
    model = MatrixFactorization(5, epochs=20, random_state=0).fit(np.array(rows))
    figure, (ax,) = make_axes()
    for index, name in enumerate(learners):
        places = model.embedding_[np.array(owner) == index]
        ax.scatter(places[:, 0], places[:, 1], s=18, color=COLORS[index], alpha=0.8, label=name)
    ax.set(xlabel="first latent dimension", ylabel="second")
    ax.legend(frameon=False)
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    "gbqr": gbqr,
    "ei_per_second": ei_per_second,
    "committee": committee,
    "memory": memory,
    "tst": tst,
    "weighted_models": weighted_models,
    "bandits": bandits,
    "pmf": pmf,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PICTURES)}")
    parser.add_argument("--out", type=Path, default=Path("docs/ideas"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.names or PICTURES:
        save_svg(PICTURES[name](), args.out / f"{name}.svg")


if __name__ == "__main__":
    main()
