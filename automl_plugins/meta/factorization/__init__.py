"""Probabilistic matrix factorisation of pipelines x data sets (Fusi, Sheth and Elibol 2018)."""

from automl_plugins.meta.factorization.model import FactorizationFileError
from automl_plugins.meta.factorization.posterior import Scaling
from automl_plugins.meta.factorization.recommendation import (
    Pick,
    by_distance,
    complementary,
    of_nearest,
)

from .model import MatrixFactorization
from .posterior import Conditioned
from .recommendation import Recommendation, Recommender

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
