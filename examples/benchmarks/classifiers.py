"""The 16 classifiers of the BOASF paper (Zhu 2020, section 5.2), and data to try them on.

The paper took the hyperparameters of auto-sklearn, and so do we, with these changes:

- ensembles have 40 members, so that an evaluation takes seconds and a search minutes;
- scikit-learn's histogram boosting stands in for XGBoost, which is not part of it;
- passive-aggressive learning is a schedule of ``SGDClassifier`` since scikit-learn 1.8;
- tolerances are left at their defaults, and at most 30 neighbours are asked for.

Gaussian naive Bayes has no hyperparameters: an arm that is exhausted after one evaluation.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, Float, InCondition, Integer
from ConfigSpace.hyperparameters import Hyperparameter
from sklearn import discriminant_analysis, ensemble
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

DATA = {"digits": load_digits, "breast_cancer": load_breast_cancer}
_SEED = 0  # of folds and models: equal configurations have equal scores
_seeded = partial(partial, random_state=_SEED)
_of_forty = partial(_seeded, n_estimators=40)
_sgd = _seeded(SGDClassifier, max_iter=1000)


def _ada_boost(max_depth: int, **options: Any) -> Any:
    tree = DecisionTreeClassifier(max_depth=max_depth, random_state=_SEED)
    return _of_forty(ensemble.AdaBoostClassifier)(tree, **options)


def _yes_no(name: str) -> Hyperparameter[Any, Any]:
    return Categorical(name, [True, False])


_LEAF = Integer("min_samples_leaf", (1, 20))
_TREE = (
    Categorical("criterion", ["gini", "entropy"]),
    Integer("min_samples_split", (2, 20)),
    _LEAF,
)
_FOREST = (Float("max_features", (0.05, 1.0)), _yes_no("bootstrap"), *_TREE)
_NAIVE = (Float("alpha", (1e-2, 100.0), log=True), _yes_no("fit_prior"))
_RATE = Float("learning_rate", (0.01, 1.0), log=True)
_COST = Float("C", (2.0**-5, 2.0**15), log=True)
_LOSSES = ("hinge", "log_loss", "modified_huber", "squared_hinge", "perceptron")

#: How to make each, and its hyperparameters.
CLASSIFIERS: dict[str, tuple[Callable[..., Any], tuple[Hyperparameter[Any, Any], ...]]] = {
    "ada_boost": (
        _ada_boost,
        (Float("learning_rate", (0.01, 2.0), log=True), Integer("max_depth", (1, 10))),
    ),
    "bernoulli_nb": (BernoulliNB, _NAIVE),
    "decision_tree": (
        _seeded(DecisionTreeClassifier),
        (Integer("max_depth", (1, 20)), *_TREE),
    ),
    "extra_trees": (_of_forty(ensemble.ExtraTreesClassifier), _FOREST),
    "gradient_boosting": (
        _of_forty(ensemble.GradientBoostingClassifier),
        (
            *(_RATE, _LEAF, Integer("max_depth", (1, 6))),
            *(Float("subsample", (0.2, 1.0)), Float("max_features", (0.05, 0.5))),
        ),
    ),
    "hist_gradient_boosting": (
        _seeded(ensemble.HistGradientBoostingClassifier, max_iter=40, early_stopping=False),
        (
            *(_RATE, Integer("max_leaf_nodes", (3, 31), log=True)),
            Integer("min_samples_leaf", (1, 100), log=True),
            Float("l2_regularization", (1e-10, 1.0), log=True),
        ),
    ),
    "passive_aggressive": (
        partial(_sgd, loss="hinge", penalty=None),
        (
            Float("eta0", (1e-5, 10.0), log=True),
            *(Categorical("learning_rate", ["pa1", "pa2"]), _yes_no("average")),
        ),
    ),
    "lda": (
        discriminant_analysis.LinearDiscriminantAnalysis,
        (Categorical("solver", ["svd", "lsqr"]), Float("shrinkage", (0.0, 1.0))),
    ),
    "qda": (
        partial(discriminant_analysis.QuadraticDiscriminantAnalysis, solver="eigen"),
        (Float("shrinkage", (0.01, 1.0)),),
    ),
    "svm": (
        _seeded(SVC, max_iter=1000),
        (
            *(_COST, Float("gamma", (2.0**-15, 8.0), log=True), _yes_no("shrinking")),
            Categorical("kernel", ["rbf", "poly", "sigmoid"]),
            *(Integer("degree", (1, 5)), Float("coef0", (-1.0, 1.0))),
        ),
    ),
    "linear_svm": (
        _seeded(LinearSVC, max_iter=1000),
        (
            *(_COST, Categorical("penalty", ["l1", "l2"])),
            Categorical("loss", ["hinge", "squared_hinge"]),
        ),
    ),
    "multinomial_nb": (MultinomialNB, _NAIVE),
    "gaussian_nb": (GaussianNB, ()),
    "sgd": (
        _sgd,
        (
            *(Categorical("loss", _LOSSES), Float("alpha", (1e-7, 1e-1), log=True)),
            *(_yes_no("average"), Categorical("penalty", ["l1", "l2", "elasticnet"])),
            Float("l1_ratio", (1e-9, 1.0), log=True),
        ),
    ),
    "random_forest": (_of_forty(ensemble.RandomForestClassifier), _FOREST),
    "k_nearest_neighbors": (
        KNeighborsClassifier,
        (
            Integer("n_neighbors", (1, 30), log=True),
            *(Categorical("weights", ["uniform", "distance"]), Categorical("p", [1, 2])),
        ),
    ),
}
#: Conditional hyperparameters of a classifier: the parent of each, and its activating values.
_CONDITIONS = {
    ("lda", "shrinkage"): ("solver", ["lsqr"]),
    ("svm", "degree"): ("kernel", ["poly"]),
    ("svm", "coef0"): ("kernel", ["poly", "sigmoid"]),
    ("linear_svm", "loss"): ("penalty", ["l2"]),
    ("sgd", "l1_ratio"): ("penalty", ["elasticnet"]),
}


def search_space() -> ConfigurationSpace:
    """The choice of a classifier, and below it the hyperparameters of each: ``svm:C``."""
    space = ConfigurationSpace()
    choice = Categorical("classifier", list(CLASSIFIERS))
    space.add(choice)
    for name, (_, hyperparameters) in CLASSIFIERS.items():
        branch = ConfigurationSpace()
        branch.add(hyperparameters)
        for (owner, child), (parent, values) in _CONDITIONS.items():
            if owner == name:
                branch.add(InCondition(branch[child], branch[parent], values))
        space.add_configuration_space(
            name, branch, parent_hyperparameter={"parent": choice, "value": name}
        )
    return space


def build(configuration: Mapping[str, Any]) -> Any:
    """A scaler and the classifier of a configuration."""
    name = configuration["classifier"]
    options = {k.partition(":")[2]: v for k, v in configuration.items() if k != "classifier"}
    scaler = MinMaxScaler(clip=True) if name == "multinomial_nb" else StandardScaler()
    return make_pipeline(scaler, CLASSIFIERS[name][0](**options))


class Task:
    """A data set: three quarters to tune on with 3 folds as in the paper, a quarter to test on.

    Scores are balanced accuracies, and deterministic. A model that does not converge within its
    iterations is scored without a warning.
    """

    def __init__(self, name: str) -> None:
        self.X, self.y = DATA[name](return_X_y=True)
        self.train, self.test = train_test_split(
            np.arange(len(self.y)), train_size=0.75, stratify=self.y, random_state=_SEED
        )
        folds = StratifiedKFold(3, shuffle=True, random_state=_SEED)
        parts = folds.split(self.train, self.y[self.train])
        self.folds = [(self.train[fit], self.train[valid]) for fit, valid in parts]

    def score(self, configuration: Mapping[str, Any]) -> float:
        """Mean over the folds.

        Raises:
            ValueError: If scikit-learn cannot fit the configuration.
        """
        return float(np.mean([self._score(configuration, *fold) for fold in self.folds]))

    def test_score(self, configuration: Mapping[str, Any]) -> float:
        """Score on the quarter that was not tuned on."""
        return self._score(configuration, self.train, self.test)

    def _score(self, configuration: Mapping[str, Any], train: Any, test: Any) -> float:
        # One thread: small fits gain little from more, and lose minutes on a busy machine.
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = build(configuration).fit(self.X[train], self.y[train])
            return float(balanced_accuracy_score(self.y[test], model.predict(self.X[test])))
