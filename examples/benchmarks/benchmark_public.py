"""Samplers on well-known benchmarks: tables, surrogates, functions, real training.

    pip install --no-deps -r examples/benchmarks/public/requirements.txt
    benchmark_public.py scale  # once
    benchmark_public.py run --seeds 5
    benchmark_public.py run --seeds 2 --methods SMAC "Optuna GP" --every 3  # GP needs torch
    benchmark_public.py page  # from the kept searches, with the picture
    benchmark_public.py pack

Searches are kept in docs/evidence/public; a search that is there is not run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from common import run_command
from family_page import publish
from family_report import read_curves
from family_searches import OURS, PEERS, write_scales
from family_searches import pack as pack_results
from family_searches import run as run_searches
from public.page import draw
from public.page import page as write_page
from public.suites import N_TRIALS, REAL, SUITES, TRAINED, suite
from static_figures import save_svg

KEPT = Path("docs/evidence/public")
EVERYWHERE = (*OURS, *PEERS, "Optuna CMA-ES", "random")


def run(
    families: Sequence[str] = tuple(SUITES),
    methods: Sequence[str] = EVERYWHERE,
    seeds: int = 5,
    n_trials: int = N_TRIALS,
    n_jobs: int = 1,
    limit: int | None = None,
    every: int = 1,
    out: Path = KEPT,
) -> None:
    """Run the searches that are missing."""
    run_searches(
        families,
        methods,
        suite,
        range(seeds),
        out / "searches",
        n_trials=n_trials,
        n_jobs=n_jobs,
        limit=limit,
        every=every,
    )


def scale(
    families: Sequence[str] = tuple(SUITES),
    draws: int = 20_000,
    trainings: int = 100,
    limit: int | None = None,
    out: Path = KEPT,
) -> None:
    """Write the best and the worst loss of each task.

    They are those of random configurations: ``draws`` of surrogates, ``trainings`` of real ones.
    """
    n_draws = dict.fromkeys(SUITES, draws) | dict.fromkeys(TRAINED, trainings)
    write_scales(families, suite, n_draws.__getitem__, out, limit)


def page(
    control: str = "AutoSampler",
    out: Path = KEPT,
    path: Path = Path("docs/evidence/public.md"),
) -> None:
    """Write the page and its picture, and print the page."""
    learners = dict.fromkeys(TRAINED, REAL)  # one family, since each has few tables
    curves, times = read_curves(out, "searches")
    curves = curves.rename(index=learners, level="family")
    times = times.rename(index=learners, level="family")
    picture = path.with_suffix(".svg")
    save_svg(draw(curves, control), picture)
    text = write_page(curves, times, control, picture.name)
    publish(text, out, path)


def pack(out: Path = KEPT) -> None:
    """Pack the searches; packed files can still be read and extended."""
    pack_results(out / "searches")


if __name__ == "__main__":
    run_command(__doc__, run, scale, page, pack, families=SUITES)
