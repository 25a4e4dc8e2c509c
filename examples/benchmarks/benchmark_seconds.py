"""Searches by the clock: trainings that run out of memory, and tables with recorded seconds.

    benchmark_seconds.py scale  # once
    benchmark_seconds.py run --families llm --seeds 10
    benchmark_seconds.py run --families oboe nasbench201 rbv2_xgboost --seeds 3
    benchmark_seconds.py page  # from the kept searches
    benchmark_seconds.py pack

Searches are kept in docs/evidence/seconds; a search that is there is not run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from common import run_command
from family_page import publish
from family_searches import pack as pack_results
from family_searches import read_results, write_scales
from family_searches import run as run_searches
from public.llm_trainings import N_TRIALS as N_TRAININGS
from public.seconds_page import page as write_page
from public.seconds_page import write_validation
from public.suites import LLM, TIMED, TIMED_TRIALS, timed

KEPT = Path("docs/evidence/seconds")
METHODS = ("AutoSampler", "Optuna TPE", "Hyperopt TPE", "random")
WHERE = {  # what else searches: where trainings fail, where they differ in seconds
    LLM: ("GBQR", "Optuna TPE, failures as 100", "Optuna CMA-ES, failures as 100"),
}
COST_AWARE = ("AutoSampler, cost", "EIPerSecondSampler")


def run(
    families: Sequence[str] = tuple(TIMED),
    methods: Sequence[str] = (),
    seeds: int = 3,
    n_trials: int | None = None,
    n_jobs: int = 1,
    limit: int | None = None,
    out: Path = KEPT,
) -> None:
    """Run the searches that are missing; without ``methods`` those of the page."""
    for family in families:
        run_searches(
            [family],
            methods or (*METHODS, *WHERE.get(family, COST_AWARE)),
            timed,
            range(seeds),
            out / "searches",
            n_trials=n_trials or (N_TRAININGS if family == LLM else TIMED_TRIALS),
            n_jobs=n_jobs,
            limit=limit,
        )


def scale(families: Sequence[str] = tuple(TIMED), draws: int = 20_000, out: Path = KEPT) -> None:
    """Write the best and the worst loss of each task, and how well the trainings are modelled."""
    tables = [family for family in families if family != LLM]
    write_scales(tables, timed, lambda _: draws, out)
    if LLM in families:
        write_validation(out)


def page(out: Path = KEPT, path: Path = Path("docs/evidence/seconds.md")) -> None:
    """Write the page, and print it."""
    text = write_page(list(read_results(out / "searches")), out)
    publish(text, out, path)


def pack(out: Path = KEPT) -> None:
    """Pack the searches; they are still read, and added to."""
    pack_results(out / "searches")


if __name__ == "__main__":
    run_command(__doc__, run, scale, page, pack, families=TIMED)
