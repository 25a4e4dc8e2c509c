"""The 16 classifiers of the BOASF paper (Zhu 2020, section 5.2): one list, two search spaces.

Not an example by itself: ``boasf_hyperopt.py``, ``boasf_optuna.py`` and ``weighted_hyperband.py``
tune what is declared here. The paper took the hyperparameters of auto-sklearn, and so do we, with
these changes:

- ensembles have 40 members, so that an evaluation takes seconds and a search minutes;
- scikit-learn's histogram boosting stands in for XGBoost, which is not part of it;
- passive-aggressive learning is a schedule of ``SGDClassifier`` since scikit-learn 1.8;
- tolerances are left at their defaults, and at most 30 neighbours are asked for, because a ninth
  of a training fold may not have more rows.

Gaussian naive Bayes has no hyperparameters: an arm that is exhausted after one evaluation.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
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
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

if TYPE_CHECKING:
    import optuna

DATA = {"digits": load_digits, "breast_cancer": load_breast_cancer}
_SEED = 0  # of folds and models: equal configurations have equal scores
_MEMBERS = 40
_MAX_ITER = 1000


@dataclass(frozen=True)
class Number:
    """A float, or an integer if ``low`` is one."""

    low: float
    high: float
    log: bool = False

    @property
    def whole(self) -> bool:
        return isinstance(self.low, int)


@dataclass(frozen=True)
class OneOf:
    """A category; each may bring parameters of its own."""

    options: Mapping[Any, Mapping[str, Number | OneOf]]

    @classmethod
    def of(cls, *values: Any) -> OneOf:
        return cls({value: {} for value in values})


Parameters = Mapping[str, Number | OneOf]


@dataclass(frozen=True)
class Classifier:
    """How to make it, its hyperparameters, and the scaler before it."""

    make: Callable[..., Any]
    parameters: Parameters = field(default_factory=dict)
    scaler: Callable[[], Any] = StandardScaler


seeded = partial(partial, random_state=_SEED)
of_forty = partial(seeded, n_estimators=_MEMBERS)


def ada_boost(max_depth: int, **parameters: Any) -> Any:
    tree = DecisionTreeClassifier(max_depth=max_depth, random_state=_SEED)
    return of_forty(ensemble.AdaBoostClassifier)(tree, **parameters)


YES_NO = OneOf.of(True, False)
TREE: Parameters = {
    "criterion": OneOf.of("gini", "entropy"),
    "min_samples_split": Number(2, 20),
    "min_samples_leaf": Number(1, 20),
}
FOREST: Parameters = {"max_features": Number(0.05, 1.0), "bootstrap": YES_NO, **TREE}
NAIVE: Parameters = {"alpha": Number(1e-2, 100.0, log=True), "fit_prior": YES_NO}
RATE = Number(0.01, 1.0, log=True)
GAMMA = Number(2.0**-15, 8.0, log=True)
COST = Number(2.0**-5, 2.0**15, log=True)

CLASSIFIERS: dict[str, Classifier] = {
    "ada_boost": Classifier(
        ada_boost,
        {"learning_rate": Number(0.01, 2.0, log=True), "max_depth": Number(1, 10)},
    ),
    "bernoulli_nb": Classifier(BernoulliNB, NAIVE),
    "decision_tree": Classifier(
        seeded(DecisionTreeClassifier),
        {"max_depth": Number(1, 20), **TREE},
    ),
    "extra_trees": Classifier(of_forty(ensemble.ExtraTreesClassifier), FOREST),
    "gradient_boosting": Classifier(
        of_forty(ensemble.GradientBoostingClassifier),
        {
            "learning_rate": RATE,
            "max_depth": Number(1, 6),
            "subsample": Number(0.2, 1.0),
            "max_features": Number(0.05, 0.5),
            "min_samples_leaf": Number(1, 20),
        },
    ),
    "hist_gradient_boosting": Classifier(
        seeded(ensemble.HistGradientBoostingClassifier, max_iter=_MEMBERS, early_stopping=False),
        {
            "learning_rate": RATE,
            "max_leaf_nodes": Number(3, 31, log=True),
            "min_samples_leaf": Number(1, 100, log=True),
            "l2_regularization": Number(1e-10, 1.0, log=True),
        },
    ),
    "passive_aggressive": Classifier(
        seeded(SGDClassifier, loss="hinge", penalty=None, max_iter=_MAX_ITER),
        {
            "eta0": Number(1e-5, 10.0, log=True),
            "learning_rate": OneOf.of("pa1", "pa2"),
            "average": YES_NO,
        },
    ),
    "lda": Classifier(
        discriminant_analysis.LinearDiscriminantAnalysis,
        {"solver": OneOf({"svd": {}, "lsqr": {"shrinkage": Number(0.0, 1.0)}})},
    ),
    "qda": Classifier(
        partial(discriminant_analysis.QuadraticDiscriminantAnalysis, solver="eigen"),
        {"shrinkage": Number(0.01, 1.0)},
    ),
    "svm": Classifier(
        seeded(SVC, max_iter=_MAX_ITER),
        {
            "C": COST,
            "gamma": GAMMA,
            "shrinking": YES_NO,
            "kernel": OneOf(
                {
                    "rbf": {},
                    "poly": {"degree": Number(1, 5), "coef0": Number(-1.0, 1.0)},
                    "sigmoid": {"coef0": Number(-1.0, 1.0)},
                }
            ),
        },
    ),
    "linear_svm": Classifier(
        seeded(LinearSVC, max_iter=_MAX_ITER),
        {
            "C": COST,
            "penalty": OneOf({"l1": {}, "l2": {"loss": OneOf.of("hinge", "squared_hinge")}}),
        },
    ),
    "multinomial_nb": Classifier(MultinomialNB, NAIVE, lambda: MinMaxScaler(clip=True)),
    "gaussian_nb": Classifier(GaussianNB),
    "sgd": Classifier(
        seeded(SGDClassifier, max_iter=_MAX_ITER),
        {
            "loss": OneOf.of("hinge", "log_loss", "modified_huber", "squared_hinge", "perceptron"),
            "alpha": Number(1e-7, 1e-1, log=True),
            "average": YES_NO,
            "penalty": OneOf(
                {"l1": {}, "l2": {}, "elasticnet": {"l1_ratio": Number(1e-9, 1.0, log=True)}}
            ),
        },
    ),
    "random_forest": Classifier(of_forty(ensemble.RandomForestClassifier), FOREST),
    "k_nearest_neighbors": Classifier(
        KNeighborsClassifier,
        {
            "n_neighbors": Number(1, 30, log=True),
            "weights": OneOf.of("uniform", "distance"),
            "p": OneOf.of(1, 2),
        },
    ),
}


# --- one list, two search spaces ------------------------------------------------------------
# Configurations are flat: {"classifier": "svm", "C": 1.0, "kernel": "poly", "degree": 2, ...}.


def hyperopt_space() -> Any:
    """The choice of a classifier, and in each option its hyperparameters."""
    from hyperopt import hp

    return hp.choice(
        "classifier",
        [
            {"classifier": name, **_expressions(name, classifier.parameters)}
            for name, classifier in CLASSIFIERS.items()
        ],
    )


def _expressions(prefix: str, parameters: Parameters) -> dict[str, Any]:
    from hyperopt import hp, pyll

    found: dict[str, Any] = {}
    for name, parameter in parameters.items():
        label = f"{prefix}.{name}"
        if isinstance(parameter, OneOf):
            options = [
                {name: value, **_expressions(f"{prefix}.{value}", below)}
                for value, below in parameter.options.items()
            ]
            found[name] = hp.choice(label, options)
        elif parameter.log:
            ends = math.log(parameter.low), math.log(parameter.high)
            found[name] = hp.loguniform(label, *ends)
            if parameter.whole:
                found[name] = pyll.scope.int(hp.qloguniform(label, *ends, 1))
        else:
            draw = hp.uniformint if parameter.whole else hp.uniform
            found[name] = draw(label, parameter.low, parameter.high)
    return found


def flat(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration of ``hyperopt_space`` whose nested choices are dicts, as a flat one."""
    found: dict[str, Any] = {}
    for name, value in configuration.items():
        found.update(flat(value) if isinstance(value, Mapping) else {name: value})
    return found


def suggest(trial: optuna.trial.BaseTrial) -> dict[str, Any]:
    """The same, define-by-run: only what the chosen classifier needs is asked for."""
    name = trial.suggest_categorical("classifier", list(CLASSIFIERS))
    return {"classifier": name, **_suggested(trial, name, CLASSIFIERS[name].parameters)}


def _suggested(
    trial: optuna.trial.BaseTrial, prefix: str, parameters: Parameters
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, parameter in parameters.items():
        label = f"{prefix}.{name}"
        if isinstance(parameter, OneOf):
            value = trial.suggest_categorical(label, list(parameter.options))
            found |= {name: value}
            found |= _suggested(trial, f"{prefix}.{value}", parameter.options[value])
            continue
        draw: Callable[..., Any] = trial.suggest_int if parameter.whole else trial.suggest_float
        found[name] = draw(label, parameter.low, parameter.high, log=parameter.log)
    return found


# --- the objective --------------------------------------------------------------------------


def build(configuration: Mapping[str, Any]) -> Any:
    """A scaler and the classifier of a flat configuration."""
    parameters = dict(configuration)
    classifier = CLASSIFIERS[parameters.pop("classifier")]
    return make_pipeline(classifier.scaler(), classifier.make(**parameters))


class Task:
    """A data set: three quarters to tune on with 3 folds as in the paper, a quarter to test on.

    Scores are balanced accuracies, and deterministic. What does not converge within the
    iterations allowed is scored as it is, without a warning.
    """

    def __init__(self, name: str) -> None:
        self.X, self.y = DATA[name](return_X_y=True)
        self.train, self.test = self._part(np.arange(len(self.y)), 0.75)
        folds = StratifiedKFold(3, shuffle=True, random_state=_SEED)
        parts = folds.split(self.train, self.y[self.train])
        self.folds = [(self.train[fit], self.train[valid]) for fit, valid in parts]

    def score(self, configuration: Mapping[str, Any], fraction: float = 1.0) -> float:
        """Mean over the folds, trained on a stratified ``fraction`` of the training rows.

        Raises:
            ValueError: If scikit-learn cannot fit the configuration.
        """
        scores = []
        for train, valid in self.folds:
            rows = self._part(train, fraction)[0] if fraction < 1.0 else train
            scores.append(_score(configuration, self.X, self.y, rows, valid))
        return float(np.mean(scores))

    def test_score(self, configuration: Mapping[str, Any]) -> float:
        """On the quarter that was not tuned on."""
        return _score(configuration, self.X, self.y, self.train, self.test)

    def _part(self, rows: Any, fraction: float) -> Any:
        """A stratified part of the rows, and the others."""
        y = self.y[rows]
        return train_test_split(rows, train_size=fraction, stratify=y, random_state=_SEED)


def _score(configuration: Mapping[str, Any], X: Any, y: Any, train: Any, test: Any) -> float:
    # One thread: fits this small gain little by more, and on a busy machine lose minutes.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = build(configuration).fit(X[train], y[train])
        return float(balanced_accuracy_score(y[test], model.predict(X[test])))
