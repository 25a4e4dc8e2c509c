"""Any Hyperopt suggest function, and BOASF, as a method of ``automl_plugins.replay``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from hyperopt import JOB_STATE_DONE, STATUS_FAIL, STATUS_OK, Trials

from automl_plugins._arguments import check_call, check_kind
from automl_plugins.frameworks import Method, NamedMethod, Outcome, Problem, Proposal, TrialStatus
from automl_plugins.records.trial import CLOCK_START
from automl_plugins.spaces.values import to_vector
from automl_plugins.spaces.vector_space import VectorSpace

from .algos import boasf, full_name_of
from .boasf import boasf_fmin
from .expressions import ExpressionSpace
from .suggest import Suggest
from .trials import Document, begin, values_of

_MAX_FORBIDDEN = 1000  # forbidden proposals in a row after which a search gives up


def optimizer(algo: Suggest | str, *, name: str | None = None, **options: Any) -> Method:
    """A suggest function of Hyperopt, or BOASF, to be replayed.

    Every search repeats ``fmin`` with ``rstate=np.random.default_rng(seed)`` on the simulated
    clock: ``book_time`` and ``refresh_time`` of a trial are its recorded duration apart.
    A forbidden configuration fails at once, without an evaluation.

    Args:
        algo: A suggest function such as ``hyperopt.tpe.suggest``, or its name: ``"tpe"``,
            ``"rand"``, ``"anneal"``, ``"atpe"``, one of this package such as ``"auto"``, or
            ``"package.module:attribute"``. ``"boasf"`` is ``boasf_fmin``, whose arms are the
            options of the one categorical with children; it is charged the recorded seconds.
        name: Label in the results.
        **options: Keyword arguments of ``algo``. Without ``budget_seconds`` or ``max_evals`` BOASF
            has the budget of the replay; if that is in seconds, multiplied by its workers.

    Raises:
        ValueError: For an unknown name, or an option of BOASF outside its range.
        TypeError: For anything but a suggest function, or an option that it does not take.
    """
    if algo == "boasf" or algo is boasf_fmin or algo is boasf:
        boasf(**_with_budget(options, {"max_evals": 1}))  # bad options fail here, not later
        return NamedMethod(name or "automl_plugins.boasf", partial(_start_boasf, options))
    suggest = _named(algo) if isinstance(algo, str) else algo
    check_kind(
        "optimizer", suggest, Callable, "a suggest function, such as tpe.suggest, or a name"
    )
    label = name if name is not None else full_name_of(suggest)
    check_call(label, "options", suggest, [], None, None, 0, **options)
    suggest = partial(suggest, **options) if options else suggest
    return NamedMethod(label, partial(HyperoptSearch, suggest))


def _named(name: str) -> Suggest:
    module, colon, attribute = name.partition(":")
    places = [(module, attribute)]
    if not colon:
        module, _, attribute = name.removeprefix("hyperopt.").partition(".")
        places = [(f"hyperopt.{module}", attribute or "suggest"), (str(__package__), name)]
    for module, attribute in places:
        try:
            found: Any = getattr(import_module(module), attribute, None)
        except ModuleNotFoundError as error:
            if not f"{module}.".startswith(f"{error.name}."):
                raise  # the module exists, but one of its own imports failed
            continue
        if callable(found):
            suggest: Suggest = found
            return suggest
    raise ValueError(
        f"No suggest function {name!r}: name one of Hyperopt's, such as 'tpe', 'rand' or"
        " 'anneal', one of this package, such as 'auto', or any other as"
        " 'package.module:attribute'."
    )


def _start_boasf(options: Mapping[str, Any], problem: Problem) -> HyperoptSearch:
    budget: dict[str, float | None] = {"max_evals": problem.n_trials}
    if problem.seconds is not None:  # of the clock; BOASF adds up the seconds of all evaluations
        budget = {"budget_seconds": problem.seconds * problem.n_workers}
    options = {"seed": problem.seed} | _with_budget(options, budget)
    return HyperoptSearch(boasf(**options), problem)


def _with_budget(options: Mapping[str, Any], budget: Mapping[str, float | None]) -> dict[str, Any]:
    has_one = not options.keys().isdisjoint(("budget_seconds", "max_evals"))
    return dict(options) if has_one else {**options, **budget}


class HyperoptSearch:
    """A running search: ``fmin``, step by step, on its ``trials``."""

    def __init__(self, algo: Suggest, problem: Problem) -> None:
        self._algo = algo
        self._rstate = np.random.default_rng(problem.seed)
        self._vectors = VectorSpace(problem.space)
        self._known = ExpressionSpace(problem.space)
        self.trials = Trials()

    def ask(self) -> Proposal | None:
        """The next configuration, as in ``FMinIter.run``; None if none, or only forbidden ones."""
        for _ in range(_MAX_FORBIDDEN):
            ids = self.trials.new_trial_ids(1)
            self.trials.refresh()
            seed = self._rstate.integers(2**31 - 1)
            if not (documents := self._algo(ids, self._known.domain, self.trials, seed)):
                return None
            document = begin(self.trials, documents[0])
            config = self._known.values(values_of(document))
            vector = to_vector(self._vectors.space, config)
            if self._vectors.allowed(vector[None])[0]:
                return Proposal(config, token=document)
            # A failed trial, so that a suggest function may learn to avoid such configurations.
            self._finish(document, {"status": STATUS_FAIL}, 0.0, 0.0)
        return None

    def tell(self, proposal: Proposal, outcome: Outcome) -> None:
        """Finish the trial at its time on the simulated clock."""
        result: dict[str, Any] = {"status": STATUS_FAIL}
        if outcome.status == TrialStatus.COMPLETE:
            result = {"status": STATUS_OK, "loss": outcome.loss, "seconds": outcome.seconds}
        self._finish(proposal.token, result, outcome.started, outcome.finished)

    def _finish(
        self, document: Document, result: dict[str, Any], started: float, finished: float
    ) -> None:
        document["result"] = result
        document["book_time"] = CLOCK_START + timedelta(seconds=started)
        document["refresh_time"] = CLOCK_START + timedelta(seconds=finished)
        document["state"] = JOB_STATE_DONE
        self.trials.refresh()
