"""Cases by blocks, resumed where they stopped: ``make fuzz``, or ``python tests/fuzz/fuzz.py``.

A block is some cases of one target, drawn by Hypothesis with the number of the block as its seed.
The journal has a line for each block that was done with the present code.
"""

# ruff: noqa: E402  # what the tests share is found first

from __future__ import annotations

import argparse
import hashlib
import io
import json
import logging
import random
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / "shared")]

import hypothesis
from core_targets import TARGETS as CORE
from histories import Case, cases
from hyperopt_targets import TARGETS as HYPEROPT
from hypothesis import HealthCheck, Phase, given
from hypothesis.errors import HypothesisWarning
from judging import Outcome, judge
from optuna_targets import TARGETS as OPTUNA
from smac_targets import TARGETS as SMAC

TARGETS: dict[str, Callable[[Case], None]] = {**CORE, **OPTUNA, **HYPEROPT, **SMAC}
BLOCK = 250
#: Targets that are cheap get what is left of the cases when each has its share.
CHEAP = ("policy", "schedules", "design", "Optuna SuccessiveFilteringPruner", "Optuna several")
_ARMS = ("Bandit", "BOASF", "Weighted", "bandit", "boasf", "weighted")
_MEMORY = (
    "memory",
    "tst",
    "pmf",
    "blended",
    "TST",
    "PMF",
    "Blended",
    "nitial",
    "design",
    "Config",
)


def strategy(name: str) -> Any:
    """The cases of a target."""
    return cases(
        arm=any(word in name for word in _ARMS),
        tasks=any(word in name for word in _MEMORY) or name == "Optuna several objectives",
        most_rows=300
        if name.startswith(("SMAC", "Hyperopt boasf", "Hyperopt bandit"))
        else 10_000,
    )


def settings(n: int, *phases: Phase) -> hypothesis.settings:
    return hypothesis.settings(
        max_examples=n,
        phases=phases or (Phase.generate,),
        database=None,
        deadline=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
        verbosity=hypothesis.Verbosity.quiet,
    )


def try_block(name: str, block: int, size: int = BLOCK) -> list[tuple[Outcome, str]]:
    """Outcomes of a block, each with its case in words where it failed."""
    found: list[tuple[Outcome, str]] = []

    @hypothesis.seed(block)
    @settings(size)
    @given(strategy(name))
    def attempt(case: Case) -> None:
        outcome = judge(TARGETS[name], case)
        found.append((outcome, repr(case)[:4000] if outcome.failure else ""))

    attempt()
    return found


def minimise(name: str, block: int, place: str) -> str:
    """The smallest case that fails at a place."""

    def fails(case: Case) -> bool:
        return judge(TARGETS[name], case).place == place

    rng = random.Random(block)
    options = settings(2000, Phase.generate, Phase.shrink)
    return repr(hypothesis.find(strategy(name), fails, settings=options, random=rng))


# --- blocks -----------------------------------------------------------------------------------


def plan(total: int, share: int, names: list[str]) -> Iterator[tuple[str, int]]:
    """Blocks in turn: ``share`` cases of each target first, the rest of the cheap ones."""
    done = Counter[str]()
    n, least = 0, -(-share // BLOCK)
    for block in range(least):
        for name in names:
            yield name, block
            done[name] += 1
            n += BLOCK
    cheap = [name for name in names if name.startswith(CHEAP)] or names
    while n < total:
        for name in cheap:
            yield name, done[name]
            done[name] += 1
            n += BLOCK


def digest() -> str:
    """Identifies the code that is tried, and what tries it."""
    root, found = Path(__file__).parents[2], hashlib.blake2b(digest_size=8)
    for folder in ("automl_plugins", "adapters", "tests/fuzz"):
        for file in sorted((root / folder).rglob("*.py")):
            if not file.name.startswith("test_"):
                found.update(file.read_bytes())
    return found.hexdigest()


@contextmanager
def quiet() -> Iterator[None]:
    """Without what the frameworks say of each trial."""
    loggers = [
        logging.getLogger(name) for name in ("automl_plugins", "smac", "hyperopt", "optuna")
    ]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    # Hyperopt prints the expression that it could not draw from.
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore", HypothesisWarning)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def run_block(job: tuple[str, int]) -> dict[str, Any]:
    name, block = job
    started = time.process_time()
    with quiet():
        found = try_block(name, block)
    failures: dict[str, dict[str, Any]] = {}
    for outcome, case in found:
        if outcome.failure:
            known = failures.setdefault(
                outcome.place, {"n": 0, "failure": outcome.failure[:1000], "case": case}
            )
            known["n"] += 1
            if len(case) < len(known["case"]):
                known |= {"failure": outcome.failure[:1000], "case": case}
    return {
        "target": name,
        "block": block,
        "verdicts": Counter(outcome.verdict for outcome, _ in found),
        "slowest": max((outcome.seconds for outcome, _ in found), default=0.0),
        "seconds": time.process_time() - started,
        "failures": failures,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000, help="in total")
    parser.add_argument("--share", type=int, default=1000, help="of each target, at least")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--journal", type=Path, default=Path("build/fuzz.jsonl"))
    parser.add_argument("--only", default="", help="part of the names of targets")
    parser.add_argument("--minimise", nargs=3, metavar=("TARGET", "BLOCK", "PLACE"))
    given_ = parser.parse_args()
    if given_.minimise:
        name, block, place = given_.minimise
        with quiet():
            found = minimise(name, int(block), place)
        print(found)
        return 0
    names = [name for name in TARGETS if given_.only in name]
    journal: Path = given_.journal
    journal.parent.mkdir(parents=True, exist_ok=True)
    lines = journal.read_text().splitlines() if journal.exists() else []
    code = digest()
    rows = [row for row in map(json.loads, lines) if row["code"] == code]
    done = {(row["target"], row["block"]) for row in rows}
    jobs = [job for job in plan(given_.cases, given_.share, names) if job not in done]
    with ProcessPoolExecutor(given_.jobs) as pool, journal.open("a") as file:
        for row in pool.map(run_block, jobs):
            row["code"] = code
            rows.append(row)
            file.write(json.dumps(row) + "\n")
            file.flush()
            for place, known in row["failures"].items():
                print(
                    f"{row['target']} {row['block']}: {known['n']} x {place}\n  {known['failure']}"
                )
            sys.stdout.flush()
    print(table(rows, names))
    return int(any(row["failures"] for row in rows))


def table(rows: list[dict[str, Any]], names: list[str]) -> str:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    slowest: dict[str, float] = defaultdict(float)
    for row in rows:
        counts[row["target"]] += Counter(row["verdicts"])
        slowest[row["target"]] = max(slowest[row["target"]], row["slowest"])
    lines = ["| target | cases | valid | documented errors | failures | slowest, s of CPU |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    total = Counter[str]()
    for name in names:
        if n := sum(counts[name].values()):
            valid, failed = counts[name]["valid"], counts[name]["failure"]
            errors = n - valid - failed
            total += Counter(n=n, valid=valid, errors=errors, failed=failed)
            cells = f"{n} | {valid} | {errors} | {failed} | {slowest[name]:.1f}"
            lines.append(f"| {name} | {cells} |")
    lines.append(
        f"| all | {total['n']} | {total['valid']} | {total['errors']} | {total['failed']} |"
        f" {max(slowest.values(), default=0.0):.1f} |"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
