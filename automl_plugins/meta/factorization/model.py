"""Matrix factorisation of losses by processes over a latent space of pipelines."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, fields
from numbers import Real
from typing import IO, Any, Self, get_args
from zipfile import BadZipFile, ZipFile

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from automl_plugins._arguments import check_choice, check_finite, check_integer
from automl_plugins._imports import require
from automl_plugins.addresses import as_path, replacing
from automl_plugins.arrays import FloatArray
from automl_plugins.meta.factorization.processes import (
    LARGEST,
    Conditioned,
    Kernel,
    Parameters,
    ScalePrior,
    Scaling,
    ScalingName,
    scales,
    variance,
)
from automl_plugins.meta.factorization.training import (
    Optimizer,
    Report,
    Schedule,
    fit_parameters,
    pipeline_means,
    principal_components,
)
from automl_plugins.meta.files import DAMAGE
from automl_plugins.meta.plain import plain_item

_TOO_FAR_APART = (
    "The losses are too large or too far apart to be taken as they are: scale them, or pass"
    " scaling='regret'."
)
_SINGLE = 4_000_000  # entries from which the matrix is kept in single precision

# A saved model is one ``.npz`` file: plain arrays and a JSON header, nothing pickled.
FORMAT, VERSION = "automl_plugins.MatrixFactorization", 1
_PARAMETERS = [field.name for field in fields(Parameters)]
_PRIOR = [field.name for field in fields(ScalePrior)]
_LARGEST_FILE = 2**30  # bytes, unpacked
# What reading a damaged file may raise; RuntimeError if an entry seems encrypted.
_DAMAGE = (*DAMAGE, BadZipFile, zlib.error, EOFError, MemoryError, OSError, RuntimeError)


class FactorizationFileError(ValueError):
    """A file without a factorisation that this version can read.

    Example::

        try:
            MatrixFactorization.load("README.md")
        except FactorizationFileError as error:
            print(error)
    """


@dataclass(eq=False, repr=False)
class MatrixFactorization(Schedule, BaseEstimator):  # type: ignore[misc]
    """Probabilistic matrix factorisation with Gaussian processes (Fusi, Sheth, Elibol 2018).

    Pipeline n has a latent place ``x_n``, data set d a process ``f_d`` over places, and
    ``z_nd = mean_n + f_d(x_n) + noise``, z the losses on the scale of their data set. Places,
    kernel and noise maximise the likelihood of all observed entries, starting from principal
    components; what is missing is left out of it.

    What differs from the paper by default, because it measured better: every data set's losses
    are scaled to [0, 1] before (``scaling``), processes vary around the pipelines' means
    (``centred``), and each pipeline has a noise of its own, what it does on a data set beside all
    others. Training is by Adam, stops early, and has more dimensions and fewer epochs; where the
    paper takes all pipelines of a data set at once, larger matrices train on random blocks of
    them, see ``block``. ``paper`` has the paper's settings. It does not say how principal
    components are scaled to begin with, nor what a missing loss is then.

    Args:
        n_components: Latent dimensions Q (the paper: 20, or 5 where hardly anything is observed);
            None for as many as the matrix can have.
        kernel: ``"se"`` (SE-ARD) or ``"linear"``, which is probabilistic PCA.
        scaling: ``"regret"`` (best 0, worst 1), ``"standardised"`` or None (losses as they are).
            Shift and stretch of a new data set are inferred from its losses.
        noise: ``"own"`` for each pipeline, or ``"shared"`` as in the paper.
        own_share: Share of a pipeline's variance that is its own to begin with, in [0, 1).
        epochs: Largest number of training epochs; 0 keeps the principal components: with
            ``kernel="linear"`` the centred singular value decomposition.
        learning_rate: Learning rate of the optimizer.
        block: Pipelines that are trained on together.
        batch: Data sets in a mini-batch.
        validation: Share of the data sets with at least two losses that training does not see.
            The parameters kept are those of the epoch that best predicts entries of these data
            sets from others. 0 keeps the last epoch.
        patience: Epochs without a better prediction before training stops.
        progress: Whether to show a progress bar (needs tqdm).
        random_state: Seed.
        optimizer: ``"adam"``, or ``"sgd"``: plain gradient descent at a constant rate.
        centred: Whether processes vary around the pipelines' means; False is around 0, as in the
            paper.

    Attributes:
        embedding_: Latent places (N, Q), dimensions in units of their length scale.
        mean_: Mean scaled loss of each pipeline (N,).
        noise_: Variance of each pipeline's scaled losses that its place does not explain (N,).
        parameters_: The kernel and all else that was trained.
        scale_prior_: How shift and stretch are distributed among data sets.
        scores_: Validation score before and after each epoch, smaller is better.
        n_pipelines_: N.
        n_data_sets_: Data sets with any observation.

    Example::

        model = MatrixFactorization(5, epochs=2).fit(Y)  # pipelines x data sets, NaN where unknown
        mean, std = model.posterior([0, 3], [0.2, 0.4])
    """

    n_components: int | None = 100
    _: KW_ONLY
    scaling: Scaling = "regret"
    own_share: float = 0.01
    progress: bool = False
    centred: bool = True

    @classmethod
    def paper(cls, **options: Any) -> Self:
        """The model of the paper (sections 3 and 4.2); ``options`` replace single ones.

        Q = 20, SE-ARD, one noise, losses as they are around a mean of 0, 300 epochs of gradient
        descent at 1e-7 over mini-batches of 50 data sets with all their pipelines, the last epoch
        taken. For 90 % missing entries the paper has ``n_components=5, optimizer="adam",
        learning_rate=1e-2``; Adam's rate falls to a tenth of it here.

        As the mean is 0, losses should be negated scores on a scale where guessing reaches 0 (in
        the paper, rescaled balanced accuracy). What it does not say is chosen here: missing
        entries are the pipeline's mean for the principal components, which give the first
        amplitude and noise too; length scales begin at 1; kernel and noise are descended as
        logarithms. All pipelines in one block take N x N memory: give ``block`` for more than some
        thousands. The determinant has the factor 1/2 of the Gaussian, not the printed N_d/2.
        """
        own: dict[str, Any] = {
            "n_components": 20,
            "kernel": "se",
            "scaling": None,
            "noise": "shared",
            "epochs": 300,
            "learning_rate": 1e-7,
            "block": 1_000_000,
            "batch": 50,
            "validation": 0.0,
            "optimizer": "sgd",
            "centred": False,
        }
        return cls(**(own | options))

    def fit(self, Y: npt.ArrayLike) -> Self:
        """Learn the embedding of the pipelines.

        Args:
            Y: Losses (N, D) of N pipelines on D data sets, smaller is better; NaN where there is
                none. A run that failed is not a missing loss: give it the worst of its data set.

        Raises:
            ValueError: For illegal constructor arguments, another shape, infinite losses, a
                matrix without any loss, or losses too large or too far apart for ``scaling=None``.
            ModuleNotFoundError: If a progress bar is asked for and tqdm is not installed.
        """
        self.check_arguments()
        losses = _matrix(Y)
        # A data set without any loss has no scale, and says nothing.
        losses = losses[:, ~np.isnan(losses).all(axis=0)]
        n, d = losses.shape
        shift, stretch = scales(losses, self.scaling)
        kind = np.float32 if losses.size >= _SINGLE else np.float64
        z: npt.NDArray[Any] = ((losses - shift) / stretch).astype(kind)
        self.scale_prior_ = ScalePrior.learn(shift, stretch, self.scaling)
        self.mean_ = pipeline_means(z) if self.centred else np.zeros(n)
        z -= self.mean_[:, None].astype(kind)
        q = min(n, d) if self.n_components is None else self.n_components
        with self._progress() as report:
            try:
                parameters, self.scores_ = fit_parameters(
                    lambda part: self._start(part, q), z, self, report
                )
            except np.linalg.LinAlgError as error:
                if self.scaling is None:
                    raise ValueError(_TOO_FAR_APART) from error
                raise
        self._set(parameters)
        self.n_data_sets_ = d
        return self

    def posterior(
        self, rows: Sequence[int] | npt.NDArray[np.int64], losses: npt.ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Predict all pipelines on a new data set.

        Args:
            rows: Pipelines observed on it (n,), n >= 0; a repeated one counts with its mean.
            losses: Their losses (n,), in any unit.

        Returns:
            Mean and standard deviation (N,), in the units of the losses; without losses, on the
            common scale of the data sets.

        Raises:
            NotFittedError: If ``fit`` was not called.
            ValueError: For rows beyond the pipelines, or losses that are not finite.
        """
        conditioned = self.conditioned()
        rows = np.asarray(rows)
        values = np.asarray(losses, dtype=np.float64)
        if rows.ndim != 1 or rows.shape != values.shape:
            raise ValueError(
                f"rows and losses must have one shape (n,), got {rows.shape} and {values.shape}."
            )
        if len(rows) and not np.issubdtype(rows.dtype, np.integer):
            raise ValueError(f"rows must be integers, got {rows.dtype}.")
        if len(rows) and (rows.min() < 0 or rows.max() >= self.n_pipelines_):
            raise ValueError(f"rows must lie in [0, {self.n_pipelines_}).")
        if not np.isfinite(values).all():
            raise ValueError("losses must be finite: give failed pipelines the worst loss.")
        # As ``fit`` does.
        values = np.clip(values, -LARGEST, LARGEST)
        # A repeated one is observed once, with its mean, in the order of ``conditioned.rows``.
        for row in rows.tolist():
            conditioned.observe(row)
        return conditioned.posterior(
            np.array([values[rows == r].mean() for r in conditioned.rows])
        )

    def conditioned(self) -> Conditioned:
        """The processes of a new data set, to be conditioned on one loss after the other."""
        check_is_fitted(self, "parameters_")
        return Conditioned(self.kernel, self.parameters_, self.mean_, self.scale_prior_)

    def scaled(self, Y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Losses (N, D) with every data set on the common scale."""
        shift, stretch = scales(Y, self.scaling)
        return np.asarray((Y - shift) / stretch)

    @property
    def prior_variance(self) -> FloatArray:
        """Variance (N,) of the scaled losses of each pipeline on a new data set."""
        return variance(self.kernel, self.parameters_) + self.noise_

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file, in place of what was there.

        Raises:
            NotFittedError: If ``fit`` was not called.
        """
        check_is_fitted(self, "parameters_")
        header = {
            "format": FORMAT,
            "version": VERSION,
            "arguments": self.get_params(),
            "n_data_sets": int(self.n_data_sets_),
        }
        arrays: dict[str, Any] = {
            "header": np.array(json.dumps(header, default=plain_item)),
            "mean": self.mean_,
            "scores": np.array(self.scores_, dtype=np.float64),
        }
        arrays |= {name: getattr(self.parameters_, name) for name in _PARAMETERS}
        arrays |= {name: np.asarray(getattr(self.scale_prior_, name)) for name in _PRIOR}
        with replacing(path) as file:
            np.savez(file, **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load a model that ``save`` wrote.

        Raises:
            FactorizationFileError: If the file is of another kind, damaged, or of a newer release.
            FileNotFoundError: If there is no file.
        """
        try:
            with as_path(path).open("rb") as file:
                arrays = _read_arrays(file)
            header = json.loads(str(arrays["header"]))
            if header["format"] != FORMAT or not isinstance(header["version"], int):
                raise FactorizationFileError(
                    f"{path} is a {header['format']!r}, not a factorisation."
                )
            if header["version"] > VERSION:
                raise FactorizationFileError(
                    f"{path} has version {header['version']} of the format, this release reads up"
                    f" to {VERSION}: install a newer release, or fit the model anew."
                )
            model = cls(**header["arguments"])
            # Nothing in a file is believed: it may be of anybody.
            model.check_arguments()
            parameters = Parameters(**{name: arrays[name] for name in _PARAMETERS})
            n, q = parameters.places.shape
            shapes = {
                "log_noise": (n,),
                "mean": (n,),
                "log_lengths": (q,),
                "log_amplitude": (1,),
                "log_stretch": (arrays["log_stretch"].size,),  # of any length
                "line": (2,),
                "deviation": (),
            }
            for name, shape in shapes.items():
                if arrays[name].shape != shape or not np.isfinite(arrays[name]).all():
                    raise ValueError(f"{name} must be finite and have shape {shape}")
            if arrays["deviation"] < 0.0:
                raise ValueError(f"deviation must be >= 0, not {arrays['deviation']}")
            model.mean_ = arrays["mean"]
            model.scores_ = arrays["scores"].tolist()
            log_stretch, line, deviation = (arrays[name] for name in _PRIOR)
            model.scale_prior_ = ScalePrior(log_stretch, line, float(deviation))
            model.n_data_sets_ = int(header["n_data_sets"])
            model._set(parameters)
        except (FileNotFoundError, FactorizationFileError):
            raise
        except _DAMAGE as error:
            raise FactorizationFileError(
                f"{path} is not a factorisation, or damaged ({type(error).__name__}: {error})."
                " Copy it again, or fit the model anew and save it."
            ) from error
        return model

    # --- the parts ------------------------------------------------------------------------------

    def _start(self, z: FloatArray, q: int) -> Parameters:
        if not self.centred:  # 0 is not a guess of what is missing
            z = np.where(np.isnan(z), pipeline_means(z)[:, None], z)
        start = principal_components(self.kernel, z, q, self.own_share)
        if self.noise == "shared":
            # The mean of variances, not of their logarithms.
            start.log_noise[:] = np.log(np.exp(start.log_noise).mean())
        return start

    def _set(self, parameters: Parameters) -> None:
        self.parameters_ = parameters
        self.embedding_ = parameters.embedding
        self.noise_ = parameters.noise
        self.n_pipelines_ = len(parameters.places)

    @contextmanager
    def _progress(self) -> Iterator[Report]:
        if not self.progress:
            yield lambda epoch, most, score: None
            return
        tqdm = require("tqdm", needed_by="MatrixFactorization(progress=True)", extra="evidence")
        with tqdm.tqdm(total=self.epochs, unit="epoch", desc="factorisation") as bar:

            def report(epoch: int, most: int, score: float) -> None:
                if epoch == 1:  # the training on all data sets comes second
                    bar.reset(most)
                bar.update()
                bar.set_postfix_str("" if np.isnan(score) else f"score={score:.4f}")

            yield report

    def check_arguments(self) -> None:
        """Raise ValueError or TypeError for the first illegal argument."""
        integers = {"n_components": 1, "epochs": 0, "block": 2, "batch": 1, "patience": 1}
        for name, least in {**integers, "random_state": 0}.items():
            check_integer(name, getattr(self, name), least, optional=name == "n_components")
        check_choice("kernel", self.kernel, get_args(Kernel))
        check_choice("optimizer", self.optimizer, get_args(Optimizer))
        check_choice("noise", self.noise, ("own", "shared"))
        if self.scaling is not None and self.scaling not in get_args(ScalingName):
            raise ValueError(
                f"scaling must be 'regret', 'standardised' or None, got {self.scaling!r}."
            )
        for name in ("own_share", "validation"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0.0 <= float(value) < 1.0:
                raise ValueError(f"{name} must lie in [0, 1), got {value!r}.")
        check_finite("learning_rate", self.learning_rate, positive=True)


def _read_arrays(file: IO[bytes]) -> dict[str, npt.NDArray[Any]]:
    """The arrays by name of an npz file; an error of ``_DAMAGE`` for objects, or too much."""
    with ZipFile(file) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
        if size > _LARGEST_FILE:
            raise ValueError(f"{size >> 20} MB of arrays, {_LARGEST_FILE >> 20} MB at most")
        return {
            name.removesuffix(".npy"): np.lib.format.read_array(archive.open(name))
            for name in archive.namelist()
        }


def _matrix(Y: npt.ArrayLike) -> FloatArray:
    """Losses (N, D), checked."""
    losses = np.asarray(Y)
    if losses.dtype.kind != "f":
        losses = losses.astype(np.float64)
    if losses.ndim != 2 or 0 in losses.shape:
        raise ValueError(
            f"Y must be losses of pipelines (rows) on data sets (columns), got shape"
            f" {losses.shape}."
        )
    if np.isinf(losses).any():
        row, column = map(int, np.argwhere(np.isinf(losses))[0])
        raise ValueError(
            f"Y must be finite, or NaN where there is no loss; pipeline {row} on data set"
            f" {column} is {losses[row, column]}. Give failed runs the worst loss."
        )
    if np.isnan(losses).all():
        raise ValueError("Y has no loss at all: nothing to learn from.")
    largest = min(LARGEST, float(np.finfo(losses.dtype).max))  # 1e300 is inf in single precision
    return np.asarray(np.clip(losses, -largest, largest))
