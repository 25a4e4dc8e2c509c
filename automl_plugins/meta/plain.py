"""Configurations, tasks and search spaces as plain JSON values, for files and databases.

A value is text, a number, a bool or None. Whoever reads it back may not know who wrote it: it is
data and never code, and it is checked before it is used.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace

from automl_plugins._arguments import check_kind
from automl_plugins.arrays import FloatArray, refuse_rows
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.spaces.choices import DECODERS, ENCODERS
from automl_plugins.spaces.values import choices_of, plain

_MOST_BITS = 14_000  # of a whole number: Python writes no more than 4300 digits
_DEPTH = 10  # of conditions: the time that ConfigSpace takes doubles with each further one

PLAIN_TYPES = frozenset({str, int, float, bool, type(None)})
COLUMNS = ("losses", "seconds", "budget", "times")  # of floats
VALUE_RULE = "a value is text, a number, a bool or None"
_INSTEAD = 'Offer it as text, such as "inf", and turn it into the number where it is used.'

# Sorted, so that equal configurations are equal text.
encode = json.JSONEncoder(allow_nan=False, separators=(",", ":"), sort_keys=True).encode


def plain_configuration(configuration: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """Values by name as builtins; NaN is an inactive hyperparameter and left out.

    Errors call it ``where``: TypeError for a name that is not text, or a value that is neither
    text, number, bool nor None, ValueError for an infinite value or an endless whole number.
    """
    found = {}
    for name, value in configuration.items():
        kind = type(value)
        if kind not in PLAIN_TYPES:
            value = plain(value) if isinstance(value, np.generic) else value
            if type(value) not in PLAIN_TYPES:
                raise TypeError(
                    f"{where}: {name}={value!r} is a {kind.__name__}; {VALUE_RULE}. Record its"
                    " repr, or its place among the choices."
                )
        if type(name) not in (str, np.str_):
            raise TypeError(f"{where}: {name!r} names a hyperparameter, but it is not a text.")
        if isinstance(value, float) and not math.isfinite(value):
            if math.isinf(value):
                raise ValueError(f"{where}: {name}={value} must be finite. {_INSTEAD}")
            continue
        if isinstance(value, int) and value.bit_length() > _MOST_BITS:
            raise ValueError(f"{where}: {name} has too many digits, record it as a text or float.")
        found[str(name)] = value
    return found


def plain_configurations(record: TaskRecord) -> list[dict[str, Any]]:
    """``plain_configuration`` of each run; an error names the task and the run."""
    prefix = f"Task {record.name!r}, run "
    return [
        plain_configuration(configuration, where=prefix + str(row))
        for row, configuration in enumerate(record.configurations)
    ]


def plain_float(value: Any, *, name: str) -> float:
    """A number as a float; ValueError for a whole number that is too large for one."""
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} is a whole number too large for a float.") from None


def plain_columns(record: TaskRecord) -> dict[str, list[float | None]]:
    """``COLUMNS`` by name, with None for NaN; ValueError for an infinite entry."""
    columns: dict[str, FloatArray] = {name: getattr(record, name) for name in COLUMNS}
    for name, values in columns.items():
        of = f"Task {record.name!r}: {name}"
        refuse_rows(of, values, np.isinf(values), "must be finite or NaN")
    return {n: [None if x != x else x for x in known.tolist()] for n, known in columns.items()}


def plain_meta_features(meta_features: Mapping[str, Any], *, task: str) -> dict[str, float | None]:
    """Meta-features by name as floats, None for NaN; an error for what cannot be stored."""
    check_kind("meta_features", meta_features, Mapping, "numbers by name, as meta_features(X, y)")
    plain: dict[str, float | None] = {}
    for name, value in meta_features.items():
        value = math.nan if value is None else value
        number = isinstance(value, int | float | np.integer | np.floating | np.bool_)
        if not number or type(name) is not str:
            raise TypeError(
                f"Task {task!r}: the meta-feature {name!r} must be a number, {value!r}."
            )
        check_text(name, f"Task {task!r}: the name of a meta-feature")
        value = plain_float(value, name=f"Task {task!r}: the meta-feature {name}")
        if math.isinf(value):
            raise ValueError(
                f"Task {task!r}: the meta-feature {name} must be finite or NaN, not {value}."
            )
        plain[name] = None if math.isnan(value) else value
    return plain


def parse_meta_features(plain: Mapping[str, float | None], *, task: str) -> dict[str, float]:
    """The inverse of ``plain_meta_features``, with the same errors."""
    checked = plain_meta_features(plain, task=task)
    return {name: math.nan if value is None else value for name, value in checked.items()}


def plain_tags(tags: Mapping[str, str], *, task: str) -> dict[str, str]:
    """Tags by name, with the errors of ``check_text``."""
    check_kind("tags", tags, Mapping, "texts by name")
    for name, value in tags.items():
        check_text(name, f"Task {task!r}: the name of a tag")
        check_text(value, f"Task {task!r}: the tag {name!r}")
    return {str(name): str(value) for name, value in tags.items()}


def plain_task(
    name: str, meta_features: Mapping[str, Any], tags: Mapping[str, str]
) -> dict[str, Any]:
    """A task as it is stored; an error for what cannot be."""
    return {
        "name": check_name(name, "The name of a task"),
        "meta_features": plain_meta_features(meta_features, task=name),
        "tags": plain_tags(tags, task=name),
    }


def plain_space(space: ConfigurationSpace) -> dict[str, Any]:
    """ConfigSpace's own serialised form, without its version: equal spaces, equal text.

    The seed and the ``meta`` of the space as a whole are not part of it.
    """
    for name, hyperparameter in space.items():
        for value in choices_of(hyperparameter) or ():
            if type(value) not in PLAIN_TYPES:
                raise TypeError(
                    f"The search space cannot be stored: {name} has the choice {value!r}, a"
                    f" {type(value).__name__}; {VALUE_RULE}."
                )
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(
                    f"The search space cannot be stored: {name} has the choice {value}, and"
                    f" numbers in a store are finite. {_INSTEAD}"
                )
    plain: dict[str, Any] = space.to_serialized_dict(ENCODERS)
    del plain["python_module_version"]
    # What is read back: lists in place of tuples, no numbers of NumPy.
    return dict(json.loads(json.dumps(plain, default=plain_item)))


@np.errstate(over="ignore")  # ConfigSpace rounds defaults, however large they are
def parse_space(plain: Mapping[str, Any]) -> ConfigurationSpace:
    """The inverse of ``plain_space``; ValueError for anything that it never writes."""
    copy = json.loads(json.dumps(plain))  # ConfigSpace takes the dictionary to pieces
    for hyperparameter in copy["hyperparameters"]:
        known = [hyperparameter[key] for key in ("choices", "sequence") if key in hyperparameter]
        known += [[hyperparameter["value"]]] if "value" in hyperparameter else []
        if not all(known):
            raise ValueError(f"{hyperparameter['name']!r} has no choice")
        if not all(PLAIN_TYPES.issuperset(map(type, values)) for values in known):
            raise ValueError(
                f"{hyperparameter['name']!r} has a choice of an illegal type; {VALUE_RULE}"
            )
    for clause in _parts([*copy["conditions"], *copy.get("forbiddens", ())]):
        if "values" in clause and not clause["values"]:
            raise ValueError("a condition or forbidden clause has no value")
    _check_depth(copy["conditions"])
    return ConfigurationSpace.from_serialized_dict(copy, DECODERS)


def _check_depth(conditions: Iterable[Mapping[str, Any]]) -> None:
    """ValueError for conditions on conditional parents, too many of them one above the other."""
    parents: dict[str, set[str]] = {}
    for condition in _parts(conditions):
        if "parent" in condition:
            parents.setdefault(condition["child"], set()).add(condition["parent"])
    # Each round leaves the children with one more conditional parent above them.
    reached = set(parents)
    for _ in range(_DEPTH):
        reached = {child for child in reached if not parents[child].isdisjoint(reached)}
    if reached:
        raise ValueError(
            f"the conditions of {', '.join(sorted(reached)[:3])} are nested deeper than {_DEPTH}"
        )


def _parts(clauses: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Conditions or forbidden clauses, and those that they are made of."""
    # Not recursive: how deep they are nested is up to whoever wrote the file.
    open_ones = list(clauses)
    while open_ones:
        clause = open_ones.pop()
        open_ones += [*clause.get("conditions", ()), *clause.get("clauses", ())]
        yield clause


def plain_item(value: Any) -> Any:
    """``default`` of ``json.dumps``: a number of numpy as that of Python, else TypeError."""
    if isinstance(value, np.generic):
        return plain(value)
    raise TypeError(f"{value!r} is a {type(value).__name__}; {VALUE_RULE}.")


def digest(*parts: object, size: int = 16) -> str:
    """Hash of some values, ``size`` bytes as hexadecimal text."""
    # No stored text has this character, so no two lists of parts are one text.
    text = "\0".join(map(str, parts))
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()


LONGEST_NAME = 500  # characters: an index of PostgreSQL has a limit


def check_name(name: str, what: str) -> str:
    """A name that every database can hold, else TypeError or ValueError."""
    if not 0 < len(check_text(name, what)) <= LONGEST_NAME:
        raise ValueError(f"{what} must have 1 to {LONGEST_NAME} characters, got {len(name)}.")
    return name


def check_texts(**given: str | None) -> None:
    """The errors of ``check_text`` for the arguments that are given."""
    for argument, text in given.items():
        if text is not None:
            check_text(text, argument)


def check_text(text: str, what: str) -> str:
    """Text that every database can hold, else TypeError or ValueError."""
    if not isinstance(text, str):
        raise TypeError(f"{what} must be text, got {text!r}.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} is not a valid text: {text!r}.") from None
    if "\0" in text:
        raise ValueError(f"{what} has a character that cannot be stored: {text!r}.")
    return text
