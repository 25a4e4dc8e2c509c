"""The evidence page: samplers on nine families of problems, half for tuning, half for judging.

    benchmark_families.py scale  # once for a folder
    benchmark_families.py run --half tuned --families svm_grid --methods GBQR mine --extra mine.py
    benchmark_families.py report

The searches of the judged half are kept in docs/evidence/families, and the page is made of them:

    benchmark_families.py run --half judged --seeds 5 --out docs/evidence/families
    benchmark_families.py run --half judged --seeds 2 --methods "Optuna CMA-ES" "Optuna GP" \\
        --out docs/evidence/families  # needs torch
    benchmark_families.py run --half judged --seeds 2 --methods SMAC --every 3 \\
        --out docs/evidence/families  # and families of few tables without --every
    benchmark_families.py run --half judged --seeds 3 --families svm_grid oboe adaboost \\
        --methods "AutoSampler, honest memory" --out docs/evidence/families  # described, ...
    benchmark_families.py page
    benchmark_families.py pack --out docs/evidence/families
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from common import run_command
from families import FAMILIES, family
from families import half as half_of
from family_page import page as write_page
from family_page import publish, save_picture
from family_report import families_of, family_table, read_curves
from family_searches import OURS, PEERS, SLOW, write_scales
from family_searches import pack as pack_results
from family_searches import run as run_searches

FOLDER = Path("build/families")  # of unfinished searches
KEPT = Path("docs/evidence/families")


def run(
    half: str = "tuned",
    families: Sequence[str] = tuple(FAMILIES),
    methods: Sequence[str] = (*OURS, *PEERS),
    seeds: int = 2,
    n_trials: int | None = None,
    n_jobs: int = 1,
    limit: int | None = None,
    every: int = 1,
    extra: Path | None = None,
    out: Path = FOLDER,
) -> None:
    """Run the searches that are missing."""
    run_searches(
        families,
        methods,
        partial(half_of, which=half),
        range(seeds),
        out / half,
        extra=extra,
        n_trials=n_trials,
        n_jobs=n_jobs,
        limit=limit,
        every=every,
    )


def scale(
    families: Sequence[str] = tuple(FAMILIES), draws: int = 20_000, out: Path = FOLDER
) -> None:
    """Write the best and the worst loss of each task: regret is a share of their distance."""
    write_scales(families, family, lambda _: draws, out)


def report(
    half: str = "tuned",
    families: Sequence[str] = tuple(FAMILIES),
    methods: Sequence[str] = (),
    budgets: Sequence[int] = (),
    out: Path = FOLDER,
) -> None:
    """Print mean and geometric mean regret, on the searches that all the methods made."""
    curves, times = read_curves(out, half)
    made = sorted(families_of(curves))
    for name in families:
        shown = [m for f, m in made if f == name and (not methods or m in methods)]
        if shown:
            n, table = family_table(curves, times, shown, name, budgets)
            print(f"\n{name}: {n} blocks\n{table.to_string()}")


def page(
    half: str = "judged",
    control: str = "AutoSampler",
    out: Path = KEPT,
    path: Path = Path("docs/evidence/README.md"),
) -> None:
    """Write the page of the judged half with its picture, and print it."""
    curves, times = read_curves(out, half)
    peers = [*PEERS, *SLOW]
    picture = path.with_name("families.svg")
    made = set(curves.index.get_level_values("method"))
    save_picture(curves, [control, *(p for p in PEERS if p in made)], picture)
    text = write_page(curves, times, control, peers, picture.name)
    publish(text, out, path)


def pack(half: str = "judged", out: Path = FOLDER) -> None:
    """Pack the searches of a half; packed files can still be read and extended."""
    pack_results(out / half)


if __name__ == "__main__":
    run_command(
        __doc__, run, scale, report, page, pack, half=("tuned", "judged"), families=FAMILIES
    )
