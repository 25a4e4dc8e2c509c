"""Probabilistic matrix factorisation of pipelines x data sets (Fusi, Sheth and Elibol 2018)."""

from .files import FactorizationFileError
from .model import MatrixFactorization
from .portfolio import Pick, by_distance, complementary, of_nearest
from .posterior import Conditioned
from .recommendation import Recommendation, Recommender
from .scaling import Scaling

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
