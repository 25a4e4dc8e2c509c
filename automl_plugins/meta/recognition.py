"""The memory of a search: the one it was given, or that of the learner that it tunes."""

from __future__ import annotations

import copy
import logging
from collections.abc import Collection
from typing import Any, NamedTuple, Self

import numpy as np
from ConfigSpace.hyperparameters import Hyperparameter

from automl_plugins.meta.coverage import MemoryMismatch
from automl_plugins.meta.dataset import MetaDataset
from automl_plugins.meta.readings import speak_alike
from automl_plugins.meta.tasks import check_task
from automl_plugins.meta.units import has_words
from automl_plugins.newest import Newest
from automl_plugins.records.history import History
from automl_plugins.records.task_record import TaskRecord
from automl_plugins.records.trial import Status
from automl_plugins.spaces.values import choices_of, numbers_of
from automl_plugins.spaces.vector_space import VectorSpace

from .bundled_memories import HYPERPARAMETERS, LEARNERS, REGRESSIONS, bundled
from .memories import AlignedMemory, TaskMemory, log_own
from .names import is_step, prefix_of, spelling
from .sources import AUTO, Memory

_logger = logging.getLogger(__name__)

# Of each of these libraries, by name of its memory: what it calls the hyperparameters that are
# tuned, in any of its interfaces, recorded or not. ``num_leaves`` of CatBoost and ``max_leaves``
# of LightGBM are left out: they are taken for the sake of those who know the other library.
_TUNED = {
    "lightgbm": """
        num_leaves max_depth learning_rate eta shrinkage_rate n_estimators num_iterations
        num_iteration num_boost_round num_round num_rounds num_trees nrounds min_child_samples
        min_data_in_leaf min_child_weight min_sum_hessian_in_leaf min_split_gain min_gain_to_split
        subsample bagging_fraction subsample_freq bagging_freq pos_bagging_fraction
        neg_bagging_fraction colsample_bytree feature_fraction colsample_bynode
        feature_fraction_bynode reg_alpha lambda_l1 reg_lambda lambda_l2 lambda linear_lambda
        boosting boosting_type data_sample_strategy objective class_weight is_unbalance
        scale_pos_weight max_bin min_data_in_bin subsample_for_bin bin_construct_sample_cnt
        max_delta_step path_smooth extra_trees linear_tree drop_rate skip_drop max_drop
        uniform_drop top_rate other_rate min_data_per_group cat_smooth cat_l2 max_cat_threshold
        max_cat_to_onehot
    """,
    "xgboost": """
        eta learning_rate gamma min_split_loss max_depth min_child_weight max_delta_step subsample
        sampling_method colsample_bytree colsample_bylevel colsample_bynode lambda reg_lambda
        alpha reg_alpha n_estimators num_boost_round num_round nrounds booster tree_method
        grow_policy max_leaves max_bin num_parallel_tree scale_pos_weight base_score objective
        sample_type normalize_type rate_drop one_drop skip_drop max_cat_to_onehot
        max_cat_threshold
    """,
    "catboost": """
        iterations n_estimators num_boost_round num_trees learning_rate eta depth max_depth
        l2_leaf_reg reg_lambda rsm colsample_bylevel random_strength bagging_temperature
        subsample bootstrap_type boosting_type sampling_frequency mvs_reg border_count max_bin
        min_data_in_leaf min_child_samples max_leaves grow_policy score_function auto_class_weights
        scale_pos_weight one_hot_max_size leaf_estimation_iterations leaf_estimation_method
        fold_len_multiplier langevin diffusion_temperature model_shrink_rate model_size_reg
        loss_function objective
    """,
    "hist_gradient_boosting": """
        learning_rate max_iter max_leaf_nodes max_depth min_samples_leaf l2_regularization
        max_features max_bins early_stopping n_iter_no_change validation_fraction tol loss
        class_weight
    """,
    **dict.fromkeys(
        ("random_forest", "extra_trees"),
        """
        n_estimators max_depth max_leaf_nodes max_features max_samples min_samples_leaf
        min_samples_split min_weight_fraction_leaf min_impurity_decrease ccp_alpha bootstrap
        criterion class_weight
        """,
    ),
}
_OWN_NAMES = {learner: frozenset(text.split()) for learner, text in _TUNED.items()}
# Models of other kinds have them, too: forests, kernel methods, penalised regressions.
_COMMON = {"n_estimators", "max_depth", "alpha", "gamma", "lambda", "tol"}
# If a booster has no other name of the space, it is as likely a network's, or, with ``alpha`` or
# ``lambda``, one of reinforcement learning. With a third name, as in CatBoost's iterations, depth
# and learning rate, it is a booster's.
_WITH_RATE = "alpha", "depth", "iterations", "max_iter", "lambda", "gamma alpha", "gamma lambda"
_OF_NETWORKS = {frozenset(f"learning_rate {others}".split()) for others in _WITH_RATE}
# Names, or words of names, that a learner never has: with these it is another model, such as a
# network, gradient boosting, a linear model trained step by step, or a search for outliers.
_NETWORK = "batch dropout epochs hidden momentum optimizer weight_decay"  # also dropout_rate
_FOREIGN = {
    **dict.fromkeys(("lightgbm", "xgboost", "catboost"), _NETWORK),
    "hist_gradient_boosting": f"{_NETWORK} n_estimators",
    **dict.fromkeys(("random_forest", "extra_trees"), "learning_rate contamination"),
    "svm": "penalty",
    "logistic_regression": "alpha",
    "mlp": "l1_ratio penalty",
    "knn": "contamination",
}
# Their libraries take words for numbers: "sqrt" of ``max_features``, "scale" of ``gamma``.
_WITH_WORDS = {"random_forest", "extra_trees", "random_forest_regression", "svm"}
_SHOWN = 3  # complete trials that have shown whether there are several algorithms


class Recognition(NamedTuple):
    """Learners whose hyperparameters a search space has."""

    learners: tuple[str, ...]  # memories to use: none, one, or one of each kind of task
    candidates: tuple[str, ...]  # of which the space has the most: more, if it is not clear
    line: str  # for the log
    # Categoricals of the space that are not the learner's. Numbers above 1 choose no algorithm.
    choices: tuple[str, ...] = ()


class _Match(NamedTuple):
    """What a search space has of a learner."""

    names: list[str]  # of the space, that the memory has
    of_library: frozenset[str]  # those that the library has, whatever the values, in its spelling
    rank: tuple[int, int, int]  # names of the library, of the memory, those in its spelling


def recognise(space: VectorSpace) -> Recognition:
    """The memories of the learner whose hyperparameters a space has, see ``RecognisedMemory``."""
    varying = [n for n, size in zip(space.names, space.n_values, strict=True) if size > 1]
    found = {learner: _match(space, varying, learner) for learner in HYPERPARAMETERS}
    known = {learner: match for learner, match in found.items() if match is not None}
    most = max((match.rank for match in known.values()), default=None)
    best = {learner: match for learner, match in known.items() if match.rank == most}
    if not best or all(match.of_library in _OF_NETWORKS for match in best.values()):
        line = (
            "The search space is that of no learner with a bundled memory"
            f" ({', '.join(LEARNERS)}): the search continues without one."
        )
        return Recognition((), (), line)
    # In the order of the memories: forests before extra trees, regressions last.
    first = next(iter(best))
    name = REGRESSIONS.get(first, first)
    listed = ", ".join(best[first].names)
    twins = tuple(learner for learner in best if REGRESSIONS.get(learner, learner) == name)
    others = [learner for learner in best if learner not in twins]
    # With the same hyperparameters, as forests and extra trees have, the first is taken.
    if any(HYPERPARAMETERS[other] != HYPERPARAMETERS[first] for other in others):
        line = (
            f"The search space may be that of {' or '.join(best)} ({listed}): the search"
            " continues without a memory. If one of them is meant, pass its name:"
            f" memory={first!r}."
        )
        return Recognition((), tuple(best), line)
    same = f" That of {' or '.join(others)} would fit as well." if others else ""
    used = "memory is" if len(twins) == 1 else f"memories {' and '.join(twins)} are"
    line = (
        f"The search space is that of {name} ({listed}), whose bundled {used} used."
        f"{same} memory=None turns it off, the name of a memory chooses that one."
    )
    choices = [n for n, c in zip(space.names, space.categorical, strict=True) if c]
    foreign = tuple(
        n
        for n in choices
        if n in varying
        and n not in best[first].names
        and not (numbers_of(choices_of(space.space[n]) or ()) > 1.0).any()
    )
    return Recognition(twins, tuple(best), line, foreign)


def _match(space: VectorSpace, varying: list[str], learner: str) -> _Match | None:
    """What a space has of a learner among the names that can vary; None if it is not enough."""
    names, least = HYPERPARAMETERS[learner], max(2.0, len(varying) / 2)
    prefix, new = prefix_of(varying, names), spelling(varying, names)
    called = {new.get(name, name): name for name in names}
    bare = {n: n.removeprefix(prefix) for n in varying if n.startswith(prefix)}
    # Libraries share the table of other names: XGBoost itself has no ``depth``.
    classifier = REGRESSIONS.get(learner, learner)
    library = _OWN_NAMES.get(classifier, names)
    words = {word for name in bare.values() for word in (name, *name.split("_"))}
    if not words.isdisjoint(_FOREIGN.get(classifier, "").split()):
        return None
    if len(bare) < len(varying) and not is_step(prefix):
        return None  # ``lgbm_`` and ``xgb_``, say: it is not clear what the others are of
    had = [name for name in bare if bare[name] in library]
    shared = [name for name in had if name in called]
    if learner not in _WITH_WORDS:
        shared = [name for name in shared if not has_words(space.space[name])]
    if len(shared) >= least:  # only then are its runs read
        memory = bundled(learner)
        shared = [n for n in shared if _means_the_same(memory, called[n], space.space[n])]
    if len(shared) < least or all(bare[n] in _COMMON for n in shared):
        return None
    if len(_without_foreign_parents(space, shared)) < 2:
        return None
    # Also what was not recorded of it, such as ``max_depth`` of LightGBM, but not what has values
    # of something else.
    own = frozenset(bare[n] for n in had if n in shared or n not in called)
    rank = len(own), len(shared), sum(bare[n] == called[n] for n in shared)
    return _Match(shared, frozenset(bare[n] for n in had), rank)


def _means_the_same(memory: MetaDataset, name: str, asked: Hyperparameter[Any, Any]) -> bool:
    """Whether the recorded values of ``name`` mean something for a hyperparameter of a search."""
    column = memory.vectors[:, memory.space.index_of[name]]
    return speak_alike(memory.space[name], asked, column[~np.isnan(column)])


def _together(learners: tuple[str, ...]) -> MetaDataset | list[TaskRecord]:
    """The bundled memory of a learner, or the runs of its two."""
    if len(learners) == 1:
        return bundled(learners[0])
    return [record for learner in learners for record in bundled(learner).records()]


def _without_foreign_parents(space: VectorSpace, names: list[str]) -> list[str]:
    """Those of ``names`` that are active whatever parameters outside ``names`` are.

    The hyperparameters of one algorithm among several depend on the choice of it.
    """
    found: list[str] = []
    for name in space.names:  # parents first
        parents = [p.name for p in space.space.parents_of[name] if p.size > 1]
        if name in names and all(parent in found for parent in parents):
            found.append(name)
    return found


class RecognisedMemory(AlignedMemory):
    """The bundled memory of the learner whose hyperparameters the search space has, if any.

    ``docs/memory.md`` has the rules: how many names of a learner a space must have, which of them
    are not enough, that their values must lie in its ranges, and which of several learners is
    taken. A search among several algorithms is of no learner: at least two of the hyperparameters
    must be active whatever the choices that are not the learner's.

    An INFO line says what was recognised, and how to turn it off or choose another one; also if
    the learner is not clear, or is no longer recognised. Otherwise a DEBUG line says that the
    space has no learner. If none is recognised, ``on`` raises an expected mismatch, so that a
    search continues without a memory and without a warning; every new search space is looked at
    again.

    Args:
        task: Name of the task that is searched: the runs on the data set of that name are left
            out.
        logger: Takes the line.

    Attributes:
        growing: Whether parameters and conditions of the space are discovered by the trials.
    """

    def __init__(
        self,
        *,
        task: str | None = None,
        logger: logging.Logger = _logger,
    ) -> None:
        self.exclude = frozenset() if task is None else frozenset({task})
        self.growing = False
        self.logger = logger
        self._said: str | tuple[str, ...] = ""
        self._opened: dict[tuple[str, ...], TaskMemory] = {}
        self._recognised: Newest[Recognition] = Newest()

    def without(self, names: Collection[str]) -> Self:
        """The same memory without the runs on data sets of these names, known or not."""
        other = copy.copy(self)
        other.exclude = self.exclude | set(names)
        opened = self._opened.copy().items()  # threads may add others meanwhile
        other._opened = {learners: known.without(names) for learners, known in opened}
        return other

    def on(self, space: VectorSpace) -> MetaDataset:
        """The runs of the learner in the vectors of ``space``; else an expected mismatch."""
        found = self._recognise(space)
        if not (learners := found.learners):
            is_news = bool(found.candidates) or isinstance(self._said, tuple)  # one was in use
            self._say(found.line, logging.INFO if is_news else logging.DEBUG)
            raise MemoryMismatch(found.line, expected=True)
        if learners not in self._opened:
            runs = _together(learners)
            known = TaskMemory(runs, growing=True, chosen=False, logger=self.logger)
            log_own(self.logger, self.exclude & set(known.names))
            self._opened[learners] = known.without(self.exclude)
        try:
            aligned = self._opened[learners].on(space)
        except MemoryMismatch as mismatch:
            of = f"Bundled memory of {' and '.join(learners)}"
            self._say(f"{of}: {mismatch} The search continues without a memory.", logging.INFO)
            raise MemoryMismatch(str(mismatch), expected=True) from None
        self._say(found.line, logging.INFO, about=learners)
        return aligned

    def learner_in(self, space: VectorSpace) -> str:
        """The learner that is recognised, also of the runs of its regressions; else empty."""
        return next(iter(self._recognise(space).learners), "")

    def waits(self, space: VectorSpace, history: History) -> bool:
        """Whether the next trials may show that the search is one among several algorithms.

        So it may be in a space that grows, as long as all complete trials have the same value of a
        choice that is not the learner's; three are enough.
        """
        if not self.growing or (history.status == Status.COMPLETE).sum() >= _SHOWN:
            return False
        columns = [space.space.index_of[name] for name in self._recognise(space).choices]
        return bool(columns) and bool((history.n_tried[columns] < 2).any())

    def _recognise(self, space: VectorSpace) -> Recognition:
        return self._recognised.get(space, lambda: recognise(space))

    def _say(self, line: str, level: int, *, about: tuple[str, ...] = ()) -> None:
        """Log the choice of a learner once, also in a space that grows."""
        if (news := about or line) != self._said:
            self._said = news
            self.logger.log(level, line)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_opened": {}}  # bundled memories are read again, not pickled

    def __repr__(self) -> str:
        return "RecognisedMemory()"


def task_memory(memory: Memory | AlignedMemory, *, task: str | None = None) -> AlignedMemory:
    """``memory`` itself if it is an ``AlignedMemory``, else its ``TaskMemory``, with its errors.

    ``"auto"`` is a ``RecognisedMemory``.
    """
    check_task(task)
    if isinstance(memory, AlignedMemory):
        return memory
    if isinstance(memory, str) and memory == AUTO:
        return RecognisedMemory(task=task)
    return TaskMemory(memory, task=task)
