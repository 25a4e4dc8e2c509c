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
from automl_plugins.meta.tasks import by_distance

__all__ = [
    "Conditioned",
    "FactorizationFileError",
    "MatrixFactorization",
    "Pick",
    "Recommendation",
    "Recommender",
    "Scaling",
    "by_distance",
    "complementary",
    "of_nearest",
]
