"""A factorisation as one ``.npz`` file: plain arrays and a JSON header, nothing pickled."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .kernels import Parameters
from .scaling import ScalePrior

if TYPE_CHECKING:
    from .model import MatrixFactorization

Model = TypeVar("Model", bound="MatrixFactorization")

FORMAT, VERSION = "automl_plugins.MatrixFactorization", 1
_PARAMETERS = ("places", "log_noise", "log_lengths", "log_amplitude")
_PRIOR = ("log_stretch", "line", "deviation")


class FactorizationFileError(ValueError):
    """A file that holds no factorisation that this version can read."""


def write(model: MatrixFactorization, path: str | os.PathLike[str]) -> None:
    """Write a fitted model; what is there stays until the new file is complete."""
    header = {
        "format": FORMAT,
        "version": VERSION,
        "arguments": model.get_params(),
        "n_data_sets": int(model.n_data_sets_),
    }
    arrays: dict[str, Any] = {
        "header": np.array(json.dumps(header)),
        "mean": model.mean_,
        "scores": np.array(model.scores_, dtype=np.float64),
    }
    arrays |= {name: getattr(model.parameters_, name) for name in _PARAMETERS}
    arrays |= {name: np.asarray(getattr(model.scale_prior_, name)) for name in _PRIOR}
    target = Path(path)
    partial = target.with_name(target.name + ".partial")
    try:
        with partial.open("wb") as file:
            np.savez(file, **arrays)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def read(cls: type[Model], path: str | os.PathLike[str]) -> Model:
    """A model that ``write`` wrote.

    Raises:
        FactorizationFileError: For anything else.
        FileNotFoundError: If there is no file.
    """
    try:
        # Opened here: numpy leaves a file that it cannot read open.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(str(arrays["header"]))
        version = header["version"] if header["format"] == FORMAT else None
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError) as error:
        raise _unreadable(path, error) from error
    except zipfile.BadZipFile as error:
        raise _unreadable(path, error) from error
    if not isinstance(version, int):
        raise FactorizationFileError(f"{path} is a {header['format']!r}, no factorisation.")
    if version > VERSION:
        raise FactorizationFileError(
            f"{path} has version {version} of the format, this release reads up to {VERSION}:"
            " install a newer release, or fit the model anew."
        )
    try:
        return _filled(cls(**header["arguments"]), header, arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise _unreadable(path, error) from error


def _filled(model: Model, header: dict[str, Any], arrays: dict[str, Any]) -> Model:
    parameters = Parameters(**{name: arrays[name] for name in _PARAMETERS})
    n, q = parameters.places.shape
    shapes = {"log_noise": (n,), "mean": (n,), "log_lengths": (q,), "log_amplitude": (1,)}
    for name, shape in shapes.items():
        if arrays[name].shape != shape or not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} has shape {arrays[name].shape}, not {shape}")
    model.check_arguments()
    model.mean_ = arrays["mean"]
    model.scores_ = arrays["scores"].tolist()
    model.scale_prior_ = ScalePrior(
        arrays["log_stretch"], arrays["line"], float(arrays["deviation"])
    )
    model.n_data_sets_ = int(header["n_data_sets"])
    model._set(parameters)
    return model


def _unreadable(path: str | os.PathLike[str], error: Exception) -> FactorizationFileError:
    return FactorizationFileError(
        f"{path} is no factorisation, or damaged ({type(error).__name__}: {error}). Copy it again,"
        " or fit the model anew and save it."
    )
