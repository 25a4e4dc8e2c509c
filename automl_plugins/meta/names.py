"""What libraries call their hyperparameters, also with a step's prefix, and their defaults."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace

from automl_plugins.records.task_record import TaskRecord
from automl_plugins.spaces.choices import DECODERS, ENCODERS

# Of LightGBM, XGBoost and CatBoost, whose native interfaces and whose scikit-learn classes differ.
_SYNONYMS = """
    reg_alpha lambda_l1 alpha
    reg_lambda lambda_l2 lambda l2_leaf_reg
    learning_rate eta
    n_estimators iterations num_iterations num_boost_round num_round num_trees nrounds
    colsample_bytree feature_fraction
    subsample bagging_fraction
    min_child_samples min_data_in_leaf
    gamma min_split_loss
    depth max_depth
    rsm colsample_bylevel
"""
_OTHER_NAMES = {
    name: tuple(n for n in line.split() if n != name)
    for line in _SYNONYMS.splitlines()
    for name in line.split()
}
_FOREST = {
    "max_depth": -1,  # for None: no limit
    "max_leaf_nodes": None,
    "min_impurity_decrease": 0.0,
    "min_weight_fraction_leaf": 0.0,
    "ccp_alpha": 0.0,
}
_LIGHTGBM = {
    "boosting_type": "gbdt",
    "colsample_bynode": 1.0,
    "extra_trees": False,
    "linear_tree": False,
    "max_bin": 255,
    "max_delta_step": 0.0,
    "max_depth": -1,
    "min_child_weight": 1e-3,
    "min_split_gain": 0.0,
    "path_smooth": 0.0,
    "scale_pos_weight": 1.0,
    "subsample_freq": 1,  # not the library's 0, with which ``subsample`` would change nothing
}
_XGBOOST = {
    "booster": "gbtree",
    "colsample_bylevel": 1.0,
    "colsample_bynode": 1.0,
    "grow_policy": "depthwise",
    "max_bin": 256,
    "max_delta_step": 0.0,
    "num_parallel_tree": 1,
    "scale_pos_weight": 1.0,
}
# By learner: what all runs of the memory that comes with the package had, though it is not part of
# them. But for the number of trees, and of iterations, these are the defaults of the libraries.
_HELD: dict[str, dict[str, Any]] = {
    "lightgbm": _LIGHTGBM,
    "lightgbm_regression": _LIGHTGBM,
    "xgboost": _XGBOOST,
    "xgboost_regression": _XGBOOST,
    "catboost": {
        "bagging_temperature": 1.0,
        "border_count": 254,
        "grow_policy": "SymmetricTree",
        "min_data_in_leaf": 1,
    },
    "hist_gradient_boosting": {"max_depth": -1, "max_bins": 255, "early_stopping": False},
    "random_forest": _FOREST,
    "extra_trees": _FOREST,
    "random_forest_regression": _FOREST | {"criterion": "squared_error"},
    "svm": {"shrinking": True, "tol": 1e-3},
    "mlp": {
        "beta_1": 0.9,
        "beta_2": 0.999,
        "learning_rate": "constant",
        "momentum": 0.9,
        "n_iter_no_change": 10,
        "solver": "adam",
        "tol": 1e-4,
    },
    "knn": {"algorithm": "auto", "leaf_size": 30, "metric": "minkowski"},
}
_SEPARATORS = "_.:/"  # between a prefix and a name
# ``log_C`` is no ``C``: before a name these words say that its value is another one.
_OF_VALUES = {
    *("log", "ln", "log2", "log10", "log1p", "exp"),
    *("sqrt", "inv", "neg", "min", "max", "delta"),
}


def spelling(names: Iterable[str], known: Collection[str], least: int = 2) -> dict[str, str]:
    """The other names that ``known`` hyperparameters have among ``names``, by known name.

    They may have a prefix, such as ``clf__``, where the known ones have none, or the reverse: see
    ``prefix_of``. They may also be other names that LightGBM, XGBoost or CatBoost have for the
    same hyperparameters, if at least ``least`` are shared in all: a single one may be of another
    learner, as ``alpha`` is also that of a lasso.
    """
    names = list(names)
    prefix = prefix_of(names, known)
    left_out = "" if prefix else prefix_of(known, names)
    bare = {name.removeprefix(prefix): name for name in names if name.startswith(prefix)}
    found, other = dict[str, str](), dict[str, str]()
    for name in known:
        own = name.removeprefix(left_out)
        found[name] = prefix + own
        if own not in bare:
            # A synonym that is known itself stands for that one, not for this.
            same = (
                n for n in _OTHER_NAMES.get(own, ()) if n in bare and left_out + n not in known
            )
            if (new := next(same, None)) is not None and bare[new] not in other.values():
                other[name] = bare[new]
    if sum(new in names for new in found.values()) + len(other) >= least:
        found |= other
    return {name: new for name, new in found.items() if new != name}


def prefix_of(names: Iterable[str], known: Collection[str]) -> str:
    """The prefix that the ``known`` ones have among ``names``; empty if they have none.

    It is the prefix of a step, see ``is_step``, or one that ends in ``_`` and that several names
    share: a single ``log_alpha`` is not the ``alpha`` of something called ``log``. Empty if a name
    is known without a prefix, or if two prefixes have equally many names.
    """
    every = {*known, *(other for name in known for other in _OTHER_NAMES.get(name, ()))}
    names = list(names)
    if any(name in every for name in names):
        return ""
    counts = Counter(prefix for name in names if (prefix := _before_known(name, every)))
    found = [(p, n) for p, n in counts.most_common() if n > 1 or is_step(p)]
    # With an empty prefix at the end, because there may be none.
    (prefix, most), *others = [*found, ("", 0)]
    return prefix if not others or others[0][1] < most else ""


def is_step(prefix: str) -> bool:
    """Whether a prefix is that of a step: ``clf__``, ``clf.``, ``clf:`` or ``clf/``."""
    return prefix.endswith(("__", ".", ":", "/"))


def _before_known(name: str, known: Collection[str]) -> str:
    """What comes before the longest of ``known`` in which ``name`` ends; else empty."""
    # From the left: the first end that fits leaves the longest name.
    ends = (i for i, letter in enumerate(name, start=1) if letter in _SEPARATORS)
    found = next((name[:end] for end in ends if name[end:] in known), "")
    # The prefix ends in a separator, so its last word comes before an empty text.
    last = re.split(f"[{_SEPARATORS}]+", found)[-2:-1]
    return "" if _OF_VALUES.intersection(last) else found


def held_values(learner: str, names: Iterable[str], recorded: Collection[str]) -> dict[str, Any]:
    """What all runs of a bundled memory had of hyperparameters that it does not have.

    They are called as in ``names``, by which the ``recorded`` ones may have other names, too.
    Empty for a learner without such a memory.
    """
    held = _HELD.get(learner, {})
    new = spelling(names, dict.fromkeys([*recorded, *held]))
    return {new.get(name, name): value for name, value in held.items() if name not in recorded}


def respell(names: Iterable[str], records: Iterable[TaskRecord]) -> list[TaskRecord]:
    """The records, with their hyperparameters called as in ``names``."""
    names = list(names)
    spaces: dict[Any, ConfigurationSpace] = {}  # records of one memory share theirs
    found = []
    for record in records:
        space, runs = record.space, record.configurations
        known = [*(space or ()), *(name for run in runs for name in run)]
        spelled = spelling(names, dict.fromkeys(known))
        # The others keep the names by which they were recorded, for a report to name.
        new = {own: name for own, name in spelled.items() if name in names}
        if not new:
            found.append(record)
            continue
        if space is not None:
            key = id(space), tuple(new.items())
            if key not in spaces:
                spaces[key] = rename_all(space, new)
            space = spaces[key]
        runs = [{new.get(name, name): value for name, value in run.items()} for run in runs]
        found.append(replace(record, configurations=runs, space=space))
    return found


@np.errstate(over="ignore")  # ConfigSpace rounds defaults, however large they are
def rename_all(space: ConfigurationSpace, names: Mapping[str, str]) -> ConfigurationSpace:
    """The space with other names of its hyperparameters, also in conditions and clauses."""
    written = space.to_serialized_dict(ENCODERS)
    for part in ("hyperparameters", "conditions", "forbiddens"):
        written[part] = [_rename_item(item, names) for item in written[part]]
    return ConfigurationSpace.from_serialized_dict(written, DECODERS)


def _rename_item(written: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    new = dict(written)
    for key in ("name", "child", "parent", "left", "right"):
        if key in new:
            new[key] = names.get(new[key], new[key])
    for key in ("conditions", "clauses"):
        if key in new:
            new[key] = [_rename_item(item, names) for item in new[key]]
    return new
