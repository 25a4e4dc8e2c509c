"""Helpers of the benchmarks: quiet methods, searches kept in files, means, spoilt memories."""

from __future__ import annotations

import argparse
import logging
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd

from automl_plugins.meta import MetaDataset
from automl_plugins.replay import Method, Problem


def run_command(doc: str | None, *commands: Callable[..., None], **choices: Iterable[str]) -> None:
    """Run a command from the command line; its options are the arguments of the function.

    A bool is a flag, a sequence takes several values. A function called main needs no name on the
    command line.

    Args:
        doc: The module's docstring.
        commands: Functions whose arguments all have a default.
        choices: The values that an argument may have, by its name.
    """
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    names = None if commands[0].__name__ == "main" else parser.add_subparsers(required=True)
    for command in commands:
        own = (
            names.add_parser(command.__name__, help=(command.__doc__ or "").replace("%", "%%"))
            if names
            else parser
        )
        own.set_defaults(command=command)
        kinds = get_type_hints(command)
        for name, parameter in signature(command).parameters.items():
            option: dict[str, Any] = {"default": parameter.default, "choices": choices.get(name)}
            if get_origin(kinds[name]) is Sequence:
                option |= {"type": get_args(kinds[name])[0], "nargs": "+"}
            elif kinds[name] is bool:
                option = {"action": "store_true"}
            else:  # X, or X | None
                option["type"] = (*get_args(kinds[name]), kinds[name])[0]
            own.add_argument(f"--{name.replace('_', '-')}", **option)
    options = vars(parser.parse_args())
    silence()
    options.pop("command")(**options)


def silence() -> None:
    """Turn off warnings and logs of the frameworks: a benchmark runs thousands of searches."""
    warnings.simplefilter("ignore")
    for library in ("optuna", "hyperopt", "automl_plugins"):
        logging.getLogger(library).setLevel(logging.ERROR)


class Quiet:
    """A method without warnings and logs of its frameworks, in worker processes too."""

    def __init__(self, method: Method) -> None:
        self.method, self.name = method, method.name

    def start(self, problem: Problem) -> Any:
        silence()
        return self.method.start(problem)


def keep_rows(
    path: Path,
    key: Sequence[str],
    wanted: Iterable[tuple[Any, ...]],
    run: Callable[..., dict[str, Any]],
) -> pd.DataFrame:
    """A row for each wanted search: read from a file, or run now and appended to it.

    Args:
        path: A csv file.
        key: The columns that name a search.
        wanted: Their values, for each search.
        run: Returns the other columns of a search, given the values of its key.
    """
    wanted = list(wanted)
    path.parent.mkdir(parents=True, exist_ok=True)
    done = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=list(key))
    there = set(done[list(key)].itertuples(index=False, name=None))
    for place in wanted:
        if place not in there:
            row = pd.DataFrame([dict(zip(key, place, strict=True)) | run(*place)])
            row.to_csv(path, mode="a", header=not path.exists(), index=False)
    found = pd.read_csv(path)
    chosen = found.set_index(list(key)).index.isin(wanted)
    return pd.DataFrame(found[chosen])


def mean_regrets(runs: pd.DataFrame, at: Iterable[int]) -> pd.DataFrame:
    """Mean regret in percent after some trials, and over all: methods x trials.

    A search that ended early keeps its last regret.
    """
    wide = runs.pivot_table(index=["method", "table", "seed"], columns="trial", values="regret")
    curves = 100.0 * wide.ffill(axis=1).groupby("method", sort=False).mean()
    return curves[[n for n in at if n in curves]].assign(mean=curves.mean(axis=1)).round(2)


def by_search(runs: pd.DataFrame) -> dict[Any, dict[Any, pd.DataFrame]]:
    """The rows of each search: by method, then by table and seed."""
    return {
        name: dict(list(rows.groupby(["table", "seed"]))) for name, rows in runs.groupby("method")
    }


def spoil(memory: MetaDataset, how: str) -> MetaDataset:
    """The memory with every task's losses ``"negated"`` or ``"shuffled"``."""
    losses = memory.losses.copy()
    rng = np.random.default_rng(0)
    for rows in memory.rows:
        losses[rows] = -losses[rows] if how == "negated" else rng.permutation(losses[rows])
    return replace(memory, losses=losses)
