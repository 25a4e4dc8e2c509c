"""Probabilistic matrix factorisation of pipelines x data sets (Fusi, Sheth and Elibol 2018)."""

from automl_plugins.meta.factorization.model import FactorizationFileError, MatrixFactorization
from automl_plugins.meta.factorization.processes import Conditioned, Scaling
from automl_plugins.meta.factorization.recommendation import (
    Pick,
    Recommendation,
    Recommender,
    complementary,
    of_nearest,
)

__all__ = [
    "Conditioned",
    "FactorizationFileError",
    "MatrixFactorization",
    "Pick",
    "Recommendation",
    "Recommender",
    "Scaling",
    "complementary",
    "of_nearest",
]
