"""The evidence page and its picture: as measured, also where a sampler falls short."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from family_memories import HONEST, LIES
from family_report import (
    BUDGETS,
    FLOOR,
    FUNCTIONS,
    LAST,
    SMOOTH,
    against,
    blocks,
    families_of,
    family_table,
    hardest,
    methods_of,
    trials_to,
)
from family_searches import NO_MEMORY, NUMBERS_ONLY, OTHERS, OURS, SLOW
from static_figures import save_svg

from automl_plugins.statistics import compare
from automl_plugins.visualization import plot_ranks

_SUGGESTED = 5  # first configurations of a memory, as ``AutoSampler`` takes by default
_INTRODUCTION = """\
# Evidence

How `{control}` compares with the samplers one would use instead, on {n_families} families of
problems. Its defaults were chosen on every second table of a family; the figures are from the
other tables, at most 20 of each family, spread evenly. Losses are shown like wins. Written from
the kept searches by

    python examples/benchmarks/benchmark_families.py page

![Average rank by trials]({picture})

50 trials (60 on smooth functions). Seeds: {seeds}. Every search has a seed of its own.

- *Regret* is the gap between the best loss so far and the best known one.
    - Recorded tables: in percent of the distance between the best and the worst loss of the table.
    - `lcbench` and `rbv2_xgboost` (surrogates of YAHPO Gym, smooth networks fitted to recorded
      runs): the best known loss is the best of all searches and of 20 000 random configurations,
      the distance is from there to the median of these configurations.
    - Smooth functions: the decimal logarithm of the gap itself, at least -8.
- A *block* is a table, or a smooth function, with the mean of its seeds. In families of ten
  recorded tables or fewer it is a table with one seed.
- `random 2x` is random search with two evaluations for a trial.
- SMAC, the slowest, and CMA-ES, for numbers only, did not search every table: they are compared on
  the tables that they searched.
- All methods run with their defaults unless the name says more. Optuna's TPE is multivariate with
  constant liar by default since version 5.

| family | what | parameters | problems, judged | published by |
|:--|:--|:--|:--|:--|
| svm_grid | accuracy of SVMs, a full grid | 4, conditional | 40, 20 | Wistuba et al. 2016 |
| oboe | 12 algorithms, balanced error | 23, conditional | 60, 20 | Yang et al. 2019 |
| adaboost | AdaBoost on CC18, random runs | 5 | 54, 20 | Rakotoarison et al. 2022 |
| xgboost_random | XGBoost, random runs | 8 | 10, 5 | Salinas et al. 2020 |
| hpobench_mlp | networks, a full grid | 5 | 8, 4 | Eggensperger et al. 2021 |
| hpolib_fcnet | networks for regression, a full grid | 9 | 4, 2 | Klein and Hutter 2019 |
| lcbench | networks, a surrogate | 7 | 35, 17 | Pfisterer et al. 2022 |
| rbv2_xgboost | XGBoost, a surrogate | 14, conditional | 119, 20 | Pfisterer et al. 2022 |
| smooth | functions, rotated and shifted | 2 to 20 | 18, 9 | `smooth_functions.py` |

Where the parameters have the names of a learner, `AutoSampler` begins with its memory that comes
with the package: on {recognised}.
Runs on the searched data set, and on others of its source, were left out of it. A memory knows the
values of a grid, so `AutoSampler` is asked for these; all others are asked for the numbers of the
values in their order. `{no_memory}` is `AutoSampler(memory=None)`; on the other families both
propose the same.
"""


def page(
    curves: pd.DataFrame,
    times: pd.Series[float],
    control: str,
    peers: Sequence[str],
    picture: str,
) -> str:
    """The whole page as markdown, with a picture beside it."""
    made = methods_of(curves, control)
    peers = [p for p in peers if p in made]
    families = [f for f, method in sorted(families_of(curves)) if method == control]
    everywhere = [p for p in peers if p not in SLOW]
    widely = [p for p in peers if p not in NUMBERS_ONLY]
    variants = [NO_MEMORY] if NO_MEMORY in made and control != NO_MEMORY else []
    budgets = (*BUDGETS, LAST)
    parts = [
        _INTRODUCTION.format(
            control=control,
            n_families=len(families),
            picture=picture,
            seeds=count_seeds(curves, [control, *peers]),
            recognised=", ".join(f"`{f}`" for f in differing(curves, [control, *variants]))
            or "none of these",
            no_memory=NO_MEMORY,
        ).strip(),
        against_best(curves, control, peers, families, budgets),
        *(against_best(curves, v, peers, families, budgets, title=v) for v in variants),
        _trials(curves, [control, *variants], peers, families),
        "## Average ranks\n\nBy trials: the mean over the families, all of the same weight (in"
        " brackets: over all blocks). The second table has only the searches that the slow"
        f" samplers made, too. The last row has the ranks of {NO_MEMORY} in the place of"
        f" {control}.",
        ranks(curves, [control, *everywhere], BUDGETS, variants),
        ranks(curves, [control, *widely], BUDGETS, variants),
        f"## Significance\n\nBlocks that {control} wins/ties/loses, by trials, and the p-value of"
        " Wilcoxon's signed-rank test adjusted by Finner (* at most 0.05). Smooth functions are"
        " left out: their regret has another scale.",
        significance(curves, control, everywhere, BUDGETS),
        significance(curves, control, widely, BUDGETS),
    ]
    if others := [m for m in (*OURS, *OTHERS) if m in made and m != control]:
        parts.append(_others(curves, control, others))
    if memory := _memories(curves, control, peers, families):
        parts.append(memory)
    for family in families:
        shown = [control, *(v for v in variants if family in differing(curves, [control, v]))]
        parts.append(of_family(curves, times, shown, peers, everywhere, family))
    return "\n\n".join(parts) + "\n"


def markdown(rows: dict[str, list[str]], columns: Sequence[object]) -> str:
    """A table, from the cells of each row."""
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=[str(c) for c in columns])
    return str(frame.to_markdown(disable_numparse=True))


def count_seeds(curves: pd.DataFrame, methods: Sequence[str]) -> str:
    """How many seeds each method has; the fewest and the most where that differs by table."""
    n = curves.reset_index().groupby(["method", "family", "task"])["seed"].nunique()
    found = []
    for method in methods:
        low, high = n.loc[[method]].min(), n.loc[[method]].max()
        found.append(f"{method} {low}" + (f" to {high}" if high > low else ""))
    return ", ".join(found)


def differing(curves: pd.DataFrame, methods: Sequence[str]) -> list[str]:
    """The families on which not all of the methods have the same regrets."""
    every = blocks(curves, methods).groupby(["family", "block"])
    spread = (every.max() - every.min()).max(axis=1)
    return sorted(set(spread[spread > 0].index.get_level_values("family")))


def against_best(
    curves: pd.DataFrame,
    control: str,
    peers: Sequence[str],
    families: Sequence[str],
    budgets: Sequence[int],
    title: str = "",
) -> str:
    """The section with the ratio of regrets to the best peer, by family.

    With a ``title`` it is a further table of the section.
    """
    rows = {}
    for family in families:
        cells = []
        for budget in budgets:
            if budget == LAST and family != SMOOTH:
                cells.append("")
                continue
            peer, ratio = hardest(curves, control, peers, family, budget)
            loose = against(curves, control, peer, family, budget, FLOOR / 10)
            more = "" if family in FUNCTIONS else f" [{loose:.2f}]"
            cells.append(f"{ratio:{'+' if family in FUNCTIONS else ''}.2f}{more} {peer}")
        rows[family] = cells
    table = markdown(rows, budgets)
    if title:
        return f"### {title}\n\n{table}"
    return (
        f"## {control} against the best peer\n\nRatio of geometric mean regrets by trials, below 1"
        f" where {control} is ahead. The peer is the sampler with the largest ratio. Regrets below"
        f" {FLOOR} % count as {FLOOR} %; in brackets the ratio with a floor of {FLOOR / 10} %. On"
        f" functions: difference of mean log10 regret.\n\n{table}"
    )


def _trials(
    curves: pd.DataFrame, ours: Sequence[str], peers: Sequence[str], families: Sequence[str]
) -> str:
    rows: dict[str, list[str]] = {}
    every: list[pd.DataFrame] = []
    for family in families:
        peer, _ = hardest(curves, ours[0], peers, family, 50)
        every.append(pd.DataFrame({m: trials_to(curves, m, peer, family) for m in ours}))
        rows[family] = [peer, *medians(every[-1])]
    rows["all"] = ["", *medians(pd.concat(every))]
    return (
        f"## Trials until {ours[0]} is as good as the best peer after 50\n\nMedian over blocks,"
        " in brackets the share of blocks on which it never is; 51 stands for never.\n\n"
        + markdown(rows, ("peer", "blocks", *ours))
    )


def medians(needed: pd.DataFrame, budget: int = 50) -> list[str]:
    """The number of blocks; by method the median of trials and the share of never."""
    columns = [found for _, found in needed.items()]
    shares = [float((found > budget).mean()) for found in columns]
    return [
        str(len(needed)),
        *(f"{c.median():.0f} ({s:.0%})" for c, s in zip(columns, shares, strict=True)),
    ]


def ranks(
    curves: pd.DataFrame,
    methods: Sequence[str],
    budgets: Sequence[int],
    variants: Sequence[str] = (),
) -> str:
    """Average ranks over families and, in brackets, over blocks.

    The rows of ``variants`` are their ranks in the place of the first method.
    """
    rows = _ranks(curves, methods, budgets)
    for variant in variants:
        rows[variant] = _ranks(curves, [variant, *methods[1:]], budgets)[variant]
    return markdown(rows, budgets)


def _ranks(
    curves: pd.DataFrame, methods: Sequence[str], budgets: Sequence[int]
) -> dict[str, list[str]]:
    every = blocks(curves, methods)
    rows: dict[str, list[str]] = {m: [] for m in methods}
    for budget in budgets:
        found = every[budget].unstack("method").rank(axis=1)
        equal = found.groupby("family").mean().mean()
        for method in methods:
            rows[method].append(f"{equal[method]:.2f} ({found[method].mean():.2f})")
    return rows


def significance(
    curves: pd.DataFrame, control: str, peers: Sequence[str], budgets: Sequence[int]
) -> str:
    """Wins, ties, losses and adjusted p-values, without functions."""
    every = blocks(curves, [control, *peers])
    recorded = every[~every.index.get_level_values("family").isin(FUNCTIONS)]
    rows: dict[str, list[str]] = {p: [] for p in peers}
    for budget in budgets:
        wide = recorded[budget].unstack("method").reset_index(drop=True)
        for pair in compare(wide, control=control).budgets[0].pairs.itertuples():
            sign = "*" if pair.different else ""
            rows[str(pair.method_b)].append(
                f"{pair.wins}/{pair.ties}/{pair.losses}, p {pair.p_finner:.2g}{sign}"
            )
    return markdown(rows, budgets)


def _others(curves: pd.DataFrame, control: str, others: Sequence[str]) -> str:
    """The other samplers of this package: ranks, then wins and losses."""
    return (
        "## The other samplers of this package\n\nForest EI is `SurrogateSampler` with a random"
        " forest, GBQR thesis is `GBQRSampler.thesis()`. First the average ranks, then the blocks"
        f" that {control} wins/ties/loses, as above.\n\n"
        f"{ranks(curves, [control, *others], BUDGETS)}\n\n"
        f"{significance(curves, control, others, BUDGETS)}"
    )


def _memories(
    curves: pd.DataFrame, control: str, peers: Sequence[str], families: Sequence[str]
) -> str:
    """What a memory of the other data sets brings, and what a lying one costs."""
    made = families_of(curves)
    without = NO_MEMORY if any(method == NO_MEMORY for _, method in made) else control
    rows, lies = {}, {}
    for family in families:
        remembering = [f"{control}, {how} memory" for how in HONEST]
        if any((family, method) in made for method in remembering):
            peer, _ = hardest(curves, control, peers, family, 50)
            rows[family] = [peer]
            for method in (without, *remembering):
                searched = (family, method) in made
                rows[family].append(_needed(curves, method, peer, family) if searched else "")
        for how in LIES:
            method = f"{control}, {how} memory"
            if (family, method) in made:
                both = blocks(curves, [without, method]).loc[[family]]
                by_method = both.groupby("method").mean()
                means = by_method[range(20, 51)].mean(axis=1)
                behind = by_method[range(20 - _SUGGESTED, 51 - _SUGGESTED)].mean(axis=1)[without]
                shown = [f"{means[m]:.2f}" for m in (without, method)]
                changes = [f"{mean / means[without] - 1:+.0%}" for mean in (means[method], behind)]
                lies[f"{family}, {how}"] = [*shown, *changes]
    if not rows:
        return ""
    honest = ("peer", "without memory", *(f"{how} memory" for how in HONEST))
    columns = ("without memory", "with the lie", "change", f"{_SUGGESTED} trials later")
    return (
        f"## With a memory\n\nMedian number of trials until {control} is as good as the best peer"
        " after 50, in brackets the blocks on which it never is. The memory has the other data"
        " sets of the family, without copies of the searched one; *described*: the search is also"
        " given the meta-features of its data set. Searches with a memory have fewer seeds.\n\n"
        f"{markdown(rows, honest)}\n\nMemories that lie: mean regret from trial 20 on, in"
        f" percent. The last column shows what {_SUGGESTED} wasted trials cost, as many as a"
        f" memory suggests first: the change if the searches without memory began {_SUGGESTED}"
        f" trials later.\n\n{markdown(lies, columns)}"
    )


def _needed(curves: pd.DataFrame, method: str, peer: str, family: str) -> str:
    needed = trials_to(curves, method, peer, family)
    return f"{needed.median():.0f} ({(needed > 50).sum()} of {len(needed)})"


def of_family(
    curves: pd.DataFrame,
    times: pd.Series[float],
    ours: Sequence[str],
    peers: Sequence[str],
    everywhere: Sequence[str],
    family: str,
    budgets: Sequence[int] = (),
) -> str:
    """Means of a family: the methods that made all searches, then all on what is common."""
    made = families_of(curves)
    present = [p for p in peers if (family, p) in made]
    parts = [f"## {family}"]
    for methods in [everywhere] + [present] * (len(present) > len(everywhere)):
        n, table = family_table(curves, times, [*ours, *methods], family, budgets=budgets)
        if not n:  # no search that all of these made
            continue
        what = "log10 regret" if family in FUNCTIONS else "regret in percent (geometric mean)"
        parts.append(
            f"{n} blocks, mean {what} by trials, milliseconds of a proposal.\n\n"
            + str(table.to_markdown(disable_numparse=True))
        )
    return "\n\n".join(parts)


def save_picture(curves: pd.DataFrame, methods: Sequence[str], path: Path) -> None:
    """Write the average rank of the methods by trial over all blocks, as SVG."""
    regrets = blocks(curves, methods)[range(1, BUDGETS[-1] + 1)].rename_axis(columns="trial")
    runs = pd.Series(regrets.stack(), name="best").dropna().reset_index()
    runs["table"] = runs.pop("family") + "/" + runs.pop("block")
    save_svg(plot_ranks(runs.assign(seed=0), methods=methods), path)


def publish(text: str, folder: Path, path: Path) -> None:
    """Write a page, with the notes in ``folder`` on how its searches came about, and print it."""
    if (notes := folder / "notes.md").exists():
        # The page is a folder above the notes.
        text += "\n" + notes.read_text(encoding="utf-8").replace("](../", "](")
    path.write_text(text, encoding="utf-8")
    print(text)
