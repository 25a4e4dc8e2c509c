"""``GBQRFacade`` and ``AutoFacade``: their parts, the committee, replays, what they refuse."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from automl_plugins.adapters.smac import (
    AutoFacade,
    CostAndSecondsEncoder,
    CostEncoder,
    EIPerSecond,
    ExplainCallback,
    GBQRFacade,
    ProposerConfigSelector,
    QuantileBound,
    SurrogateModel,
    member_trust,
    optimizer,
    source_shares,
)
from automl_plugins.adapters.smac.replaying import SMACSearch
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition
from smac import HyperparameterOptimizationFacade, Scenario
from smac.acquisition.function import EI, EIPS, LCB
from smac.acquisition.maximizer import LocalAndSortedRandomSearch
from smac.callback import Callback
from smac.facade.abstract_facade import AbstractFacade
from smac.initial_design import RandomInitialDesign
from smac.intensifier.intensifier import Intensifier
from smac.main.config_selector import ConfigSelector
from smac.model.random_model import RandomModel
from smac.multi_objective import MeanAggregationStrategy
from smac.random_design import ModulusRandomDesign, ProbabilityRandomDesign
from smac.runhistory.encoder import (
    RunHistoryEIPSEncoder,
    RunHistoryEncoder,
    RunHistoryLogScaledEncoder,
)
from smac_runs import (
    BUDGETS,
    QUICKLY,
    StopAfter,
    Watched,
    facade,
    few_candidates,
    origins,
    scenario,
    search,
    search_space,
    selector_of,
    target,
)

from automl_plugins.frameworks import Outcome, Problem, TrialStatus
from automl_plugins.meta import TaskRecord
from automl_plugins.recipes import gbqr, gbqr_thesis
from automl_plugins.records.trial import Status
from automl_plugins.surrogates import RandomForest

# --- parts of the facade -----------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Please use `dict:DeprecationWarning")  # SMAC's meta
def test_additional_and_default_configurations(tmp_path: Path) -> None:
    more, default = search_space().sample_configuration(2), search_space()
    design = partial(GBQRFacade.get_initial_design, additional_configs=more)
    given: dict[str, Any] = {"initial_design": design, "config_selector": QUICKLY}
    smac = facade(tmp_path, use_default_config=True, **given)
    found = [smac.ask().config for _ in range(3)]
    assert found == [*more, default.get_default_configuration()]
    assert len(more) == 2  # SMAC appends the default to the list it is given


@pytest.mark.parametrize(
    ("given", "n"),
    [
        ({"n_configs": 5, "max_ratio": 1.0}, 5),
        ({"n_configs": 5}, 3),  # a quarter of the trials
        ({"n_configs_per_hyperparameter": 1}, 3),
        ({"n_configs": 2, "n_configs_per_hyperparameter": 4}, 2),
    ],
)
def test_points_of_the_initial_design_are_asked_for_as_in_smacs_facades(
    tmp_path: Path, given: dict[str, Any], n: int
) -> None:
    own = partial(GBQRFacade.get_initial_design, **given)
    smac = facade(tmp_path / "a", Watched(), initial_design=own)
    found = [smac.ask().config for _ in range(n + 1)]
    usual = partial(HyperparameterOptimizationFacade.get_initial_design, **given)
    smac = facade(tmp_path / "b", Watched(), initial_design=usual)
    assert found[:n] == [smac.ask().config for _ in range(n)]
    assert found[n].origin == "Proposer: model"


def test_an_intensifier_is_used(tmp_path: Path) -> None:
    smac = facade(tmp_path, intensifier=partial(Intensifier, max_config_calls=1))
    assert smac.intensifier.meta["max_config_calls"] == 1


@partial
def forest(run: Scenario) -> SurrogateModel:
    return SurrogateModel(run.configspace, RandomForest(), seed=run.seed)


@pytest.mark.parametrize(
    "part",
    [
        {"model": forest},
        {"acquisition_function": EIPerSecond()},
        {"acquisition_function": QuantileBound()},
        {"runhistory_encoder": partial(CostAndSecondsEncoder)},
        {"runhistory_encoder": partial(RunHistoryEncoder)},
        {"acquisition_function": EIPS(), "runhistory_encoder": partial(RunHistoryEIPSEncoder)},
        {"acquisition_maximizer": few_candidates},
    ],
    ids=["model", "EIPerSecond", "QuantileBound", "seconds", "encoder", "EIPS", "maximizer"],
)
def test_parts_of_the_model_hand_over_to_smac(tmp_path: Path, part: dict[str, Any]) -> None:
    smac = facade(tmp_path, n_trials=8, **({"acquisition_maximizer": few_candidates} | part))
    assert len(search(smac)) == 8
    assert type(smac.intensifier.config_selector) is ConfigSelector
    assert smac.intensifier.config_selector.meta["retrain_after"] == 1
    assert "Initial Design: Sobol" in origins(smac) and "Proposer: design" not in origins(smac)
    meta = smac.scenario.meta
    assert meta["model"]["name"] == "SurrogateModel"
    seconds = meta["runhistory_encoder"]["name"] == "CostAndSecondsEncoder"
    assert seconds == (meta["acquisition_function"]["name"] == "EIPerSecond")
    if "runhistory_encoder" not in part:  # the facade's own: GBQR sees costs as normal scores
        assert meta["runhistory_encoder"]["target"] == "normal_scores"


def test_a_design_beside_the_model_needs_no_room_for_the_usual_one(tmp_path: Path) -> None:
    design = partial(RandomInitialDesign, n_configs=0)
    given: dict[str, Any] = {"n_trials": 1, "use_default_config": True, "initial_design": design}
    assert len(search(facade(tmp_path, acquisition_function=LCB(), **given))) == 1


class OwnModel(GBQRFacade):  # type: ignore[misc]
    """A facade that is varied as those of SMAC are."""

    @staticmethod
    def get_model(scenario: Scenario) -> SurrogateModel:
        return SurrogateModel(scenario.configspace, RandomForest(), seed=scenario.seed)

    @staticmethod
    def get_initial_design(scenario: Scenario) -> RandomInitialDesign:
        return RandomInitialDesign(scenario, n_configs=3, max_ratio=1.0)

    @staticmethod
    def get_acquisition_function(scenario: Scenario) -> LCB:
        return LCB()

    @staticmethod
    def get_acquisition_maximizer(
        scenario: Scenario,
    ) -> LocalAndSortedRandomSearch:
        return few_candidates(scenario)


def test_parts_of_a_subclass_are_used(tmp_path: Path) -> None:
    smac = facade(tmp_path, kind=OwnModel, n_trials=5)
    assert len(search(smac)) == 5
    selector = smac.intensifier.config_selector
    assert type(selector) is ConfigSelector
    assert isinstance(selector._acquisition_function, LCB)
    assert isinstance(selector._model, SurrogateModel)
    assert isinstance(selector._model.surrogate, RandomForest)
    assert smac.scenario.meta["initial_design"]["n_configs"] == 3
    assert "Initial Design: Random" in origins(smac)
    assert "Initial Design: Sobol" not in origins(smac)

    given = QuantileBound()
    smac = facade(tmp_path / "given", kind=OwnModel, acquisition_function=given)
    assert smac.intensifier.config_selector._acquisition_function is given
    with pytest.raises(ValueError, match="n_startup would not be used: acquisition_function"):
        facade(tmp_path, kind=OwnModel, n_startup=4)


def test_a_later_selector_of_a_subclass_chooses(tmp_path: Path) -> None:
    class Later(OwnModel):
        @staticmethod
        def get_config_selector(scenario: Scenario) -> ProposerConfigSelector:
            return ProposerConfigSelector(scenario, Watched())

    smac = facade(tmp_path, kind=Later)
    assert isinstance(selector_of(smac).proposer, Watched)


def test_the_random_design_of_a_subclass_is_used(tmp_path: Path) -> None:
    class OwnRandom(GBQRFacade):  # type: ignore[misc]
        @staticmethod
        def get_random_design(scenario: Scenario) -> ProbabilityRandomDesign:
            return ProbabilityRandomDesign(1.0, seed=0)

    smac = facade(tmp_path / "own", kind=OwnRandom, n_trials=6)
    search(smac)
    assert origins(smac) == ["Proposer: random"] * 6
    none = ProbabilityRandomDesign(0.0, seed=0)
    selector = partial(ProposerConfigSelector, proposer=Watched(), random_design=none)
    smac = facade(tmp_path / "given", kind=OwnRandom, n_trials=6, config_selector=selector)
    search(smac)
    assert origins(smac) == ["Proposer: model"] * 6


def test_another_proposer_or_smacs_selector(tmp_path: Path) -> None:
    smac = facade(tmp_path / "a", gbqr_thesis(), n_trials=5)
    search(smac)
    assert origins(smac)[:4] == ["Proposer: random"] * 3 + ["Proposer: model"]
    own = partial(ConfigSelector, retrain_after=4)
    smac = facade(tmp_path / "b", config_selector=own, acquisition_maximizer=few_candidates)
    assert len(search(smac)) == 12 and type(smac.intensifier.config_selector) is ConfigSelector


# --- the committee as a facade ------------------------------------------------------------------


EARLIER = [
    TaskRecord(
        name,
        [{"kind": "linear", "x": x / 9} for x in range(10)],
        np.array([(x / 9 - best) ** 2 for x in range(10)]),
        space=search_space(),
    )
    for name, best in (("iris", 0.9), ("wine", 0.4), ("digits", 0.3))
]


def test_the_committee_needs_no_argument(tmp_path: Path) -> None:
    smac = facade(tmp_path, kind=AutoFacade, n_trials=9)
    assert min(run["cost"] for run in search(smac)) < 0.1
    assert sum(member_trust(smac)[9].values()) == pytest.approx(1.0)
    assert smac.scenario.meta["facade"] == {"name": "AutoFacade"}


def test_a_memory_suggests_first_and_leaves_the_task_itself_out(tmp_path: Path) -> None:
    given: dict[str, Any] = {"kind": AutoFacade, "memory": EARLIER, "n_trials": 7}
    smac = facade(tmp_path, name="iris", **given)
    found = search(smac)
    assert found[0]["kind"] == "linear" and found[0]["x"] < 0.5
    said = [selector_of(smac).explain(config) for config in smac.runhistory.get_configs()]
    assert said[0].origin == "suggested" and said[-1].shares is not None
    shares = source_shares(smac)
    assert shares == source_shares(smac.runhistory)
    assert shares[len(said)] == said[-1].shares
    assert "iris" not in said[-1].shares
    # whatever SMAC calls a scenario without a name, it is not another run
    run = scenario(tmp_path / "unnamed", n_trials=2)
    names = [
        AutoFacade(run, target, memory=EARLIER, logging_level=False).scenario.name
        for _ in range(2)
    ]
    assert names[0] == names[1]


def test_random_configurations_of_a_budgeted_search_come_after_the_suggestions(
    tmp_path: Path,
) -> None:
    for seed in range(4):
        given: dict[str, Any] = {"memory": EARLIER, "n_suggested": 4, **BUDGETS}
        smac = facade(tmp_path / str(seed), kind=AutoFacade, seed=seed, **given)
        asked = [smac.ask().config for _ in range(12)]
        found = [selector_of(smac).explain(c).origin for c in dict.fromkeys(asked)]
        assert found[:4] == ["suggested"] * 4 and "random" not in found[:4]


def test_a_configuration_of_no_run_is_not_explained(tmp_path: Path) -> None:
    smac = facade(tmp_path, kind=AutoFacade, n_trials=3)
    search(smac)
    with pytest.raises(ValueError, match="The configuration is not among the 3 of this run"):
        selector_of(smac).explain(search_space().sample_configuration(9)[8])


def test_a_run_whose_trials_are_in_the_memory_by_now_is_continued(tmp_path: Path) -> None:
    def made(memory: list[TaskRecord], **given: Any) -> AbstractFacade:
        return facade(tmp_path, kind=AutoFacade, name="own", memory=memory, n_trials=9, **given)

    begun = search(made(EARLIER, callbacks=[StopAfter(4)]))
    own = TaskRecord("own", begun, np.arange(4.0), space=search_space())
    second = made([*EARLIER, own], overwrite=False)
    assert search(second)[:4] == begun and len(second.runhistory) == 9
    described = selector_of(second).meta
    assert described == selector_of(made(EARLIER)).meta
    assert described != selector_of(made(EARLIER[1:])).meta


def test_seconds_and_further_arguments_of_the_committee(tmp_path: Path) -> None:
    smac = facade(tmp_path, kind=AutoFacade, per_second=True, n_trials=8)
    search(smac)
    assert selector_of(smac).explain(smac.runhistory.get_configs()[-1]).seconds is not None
    made = partial(AutoFacade.get_config_selector, memory=EARLIER, task="wine", n_suggested=1)
    smac = facade(tmp_path / "b", kind=AutoFacade, config_selector=made, n_trials=3)
    search(smac)
    assert origins(smac)[0] == "Proposer: design"
    assert member_trust(smac).keys() == {2, 3}


def test_arguments_of_the_selector_may_be_given_to_the_facade(tmp_path: Path) -> None:
    given: dict[str, Any] = {"task": "wine", "n_suggested": 1, "n_startup": 3, "min_trials": 2}
    run, quiet = scenario(tmp_path / "a", n_trials=5), {"logging_level": False}
    smac = AutoFacade(run, target, memory=EARLIER, **given, **quiet)
    smac.optimize()
    selector = AutoFacade.get_config_selector(run, memory=EARLIER, **given)
    assert selector_of(smac).meta == selector.meta
    last = smac.runhistory.get_configs()[-1]
    assert smac.explain(last) == selector_of(smac).explain(last)
    own = GBQRFacade(scenario(tmp_path / "b"), target, alpha=0.2, doubt=0.0, **quiet)
    selector = GBQRFacade.get_config_selector(own.scenario, alpha=0.2, doubt=0.0)
    assert selector_of(own).meta == selector.meta
    other = GBQRFacade(scenario(tmp_path / "c"), target, acquisition_function=EI(), **quiet)
    with pytest.raises(TypeError, match="ConfigSelector chooses, which explains nothing"):
        other.explain(last)
    with pytest.raises(TypeError, match=r"\(seed: an argument of Scenario\); it takes model, .*X"):
        AutoFacade(run, target, seed=1)


def test_smacs_own_selector_has_one_model(tmp_path: Path) -> None:
    given: dict[str, Any] = {"acquisition_function": EI()}
    given |= {"acquisition_maximizer": few_candidates}
    smac = facade(tmp_path, kind=AutoFacade, n_trials=4, **given)
    assert type(smac.intensifier.config_selector) is ConfigSelector
    assert smac.scenario.meta["model"]["name"] == "SurrogateModel"


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ({"memory": 3}, TypeError, "memory must be a MetaDataset"),
        ({"memory": [], "name": "a"}, ValueError, "no sources to learn from"),
        (
            {"memory": EARLIER, "acquisition_function": EI()},
            *(ValueError, "memory would not be used: acquisition_function given here replaces"),
        ),
        (
            {"n_suggested": 3, "model": forest},
            *(ValueError, r"get_config_selector\(scenario, n_suggested=\.\.\.\)"),
        ),
        (
            {"memroy": EARLIER},
            TypeError,
            r"takes no argument memroy; it takes .*Did you mean 'memory'\?",
        ),
        ({"cost": "x"}, TypeError, r"cost: SMAC measures the seconds: per_second=True"),
        ({"alpha": 0.2}, TypeError, "AutoFacade takes no argument alpha"),
        ({"model": EI}, TypeError, "model must be an object, got the class EI"),
        ({"callbacks": [Callback]}, TypeError, "each of callbacks must be an object, got the cla"),
        (
            {"memory": EARLIER, "per_second": True, "config_selector": QUICKLY},
            *(ValueError, "memory and per_second would not be used"),
        ),
        ({"objectives": ["a", "b"]}, ValueError, "AutoFacade takes one objective"),
    ],
)
def test_what_the_committee_refuses(
    tmp_path: Path, parts: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        facade(tmp_path, kind=AutoFacade, **parts)


# --- in a replay -------------------------------------------------------------------------------


def test_the_facade_is_replayed_with_its_seconds() -> None:
    method = optimizer(GBQRFacade, config_selector=partial(QUICKLY, per_second=True))
    assert method.name == "smac.GBQR"
    running = method.start(Problem(search_space(), seed=1, n_trials=9))
    assert isinstance(running, SMACSearch)
    for k in range(8):
        proposal = running.ask()
        assert proposal is not None
        status = TrialStatus.FAILED if k == 5 else TrialStatus.COMPLETE
        cost = math.nan if k == 5 else target(proposal.config)
        end = 10.0 * k + (9.0 if proposal.config["kind"] == "rbf" else 1.0)
        running.tell(proposal, Outcome(status, cost, 10.0 * k, end))
    selector = selector_of(running.facade)
    history = selector.history()
    rbf = history.vectors[:, selector.space.space.index_of["kind"]] == 1.0
    np.testing.assert_array_equal(history.seconds, np.where(rbf, 9.0, 1.0))
    assert history.status.tolist().count(Status.FAILED) == 1
    last = selector.explain(running.facade.runhistory.get_configs()[-1])
    assert last.seconds is not None and 0.5 < last.seconds < 20.0


# --- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        *(
            ({"proposer": proposer}, TypeError, r"recipes\.gbqr\(\)")
            for proposer in (gbqr, "gbqr", None, GBQRFacade)
        ),
        ({"min_trials": 0}, ValueError, "min_trials must be an integer >= 1, or None, got 0"),
        ({"random_design": 0.5}, TypeError, "random_design must be one of SMAC's"),
        (
            {"objectives": ["a", "b"]},
            ValueError,
            "ProposerConfigSelector takes one objective, the scenario has 2",
        ),
    ],
)
def test_selectors_check_their_arguments(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    run = scenario(tmp_path, objectives=options.pop("objectives", ["cost"]))
    with pytest.raises(error, match=message):
        ProposerConfigSelector(run, **({"proposer": gbqr()} | options))


def reordered() -> ConfigurationSpace:
    """A space that is equal to ``search_space`` by ==, with other vectors."""
    space = ConfigurationSpace()
    space.add(Categorical("kind", ["rbf", "linear"], default="linear"))
    space.add(search_space()["C"], search_space()["x"])
    space.add(EqualsCondition(space["C"], space["kind"], "rbf"))
    assert space == search_space()
    return space


def other_selector(run: Scenario, space: ConfigurationSpace) -> ProposerConfigSelector:
    return ProposerConfigSelector(Scenario(space, output_directory=run.output_directory), gbqr())


SECONDS = partial(CostAndSecondsEncoder)
DESIGNED = partial(
    ProposerConfigSelector, proposer=gbqr(), random_design=ProbabilityRandomDesign(0.5)
)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"objectives": ["cost", "time"]}, "takes one objective"),
        ({"n_trials": 0}, "n_trials of the scenario must be at least 1, got 0"),
        (
            {"multi_objective_algorithm": partial(MeanAggregationStrategy)},
            "would not be used: GBQRFacade takes one objective. Leave it out",
        ),
        (
            {"config_selector": QUICKLY, "acquisition_function": EI()},
            "acquisition_function would not be used",
        ),
        (
            {"config_selector": QUICKLY, "model": forest, "acquisition_maximizer": few_candidates},
            "acquisition_maximizer and model would not be used",
        ),
        (
            {
                "acquisition_function": EIPerSecond(),
                "runhistory_encoder": partial(RunHistoryLogScaledEncoder),
            },
            "needs seconds, which RunHistoryLogScaledEncoder does not encode",
        ),
        (
            {"acquisition_function": EIPerSecond(), "runhistory_encoder": partial(CostEncoder)},
            "needs seconds, which CostEncoder does not encode",
        ),
        (
            {"acquisition_function": EI(), "runhistory_encoder": SECONDS},
            "encodes seconds, which EI does not use",
        ),
        (
            {"runhistory_encoder": partial(RunHistoryEIPSEncoder)},
            "only SMAC's EIPS reads them",
        ),
        (
            {"acquisition_function": EIPerSecond(), "model": RandomModel(search_space())},
            "RandomModel does not predict seconds",
        ),
        (
            {"config_selector": partial(other_selector, space=ConfigurationSpace({"z": (0, 1)}))},
            "made for another search space: make it from the same scenario",
        ),
        (
            {"config_selector": partial(other_selector, space=reordered())},
            "made for another search space",
        ),
        (
            {"config_selector": DESIGNED, "random_design": ModulusRandomDesign(2)},
            "random_design was given twice",
        ),
    ],
)
def test_combinations_that_make_no_sense(
    tmp_path: Path, parts: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        facade(tmp_path, **parts)


@pytest.mark.parametrize(
    ("part", "given"),
    [
        *(("model", model) for model in (RandomForest(), "gbqr")),
        *(("random_design", "x"), ("initial_design", [1]), ("config_selector", gbqr())),
        *(("intensifier", "hyperband"), ("runhistory_encoder", "log")),
        *(("acquisition_function", "ei"), ("acquisition_maximizer", "local")),
    ],
)
def test_what_is_no_part_of_smacs_is_refused(tmp_path: Path, part: str, given: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{part} must be one of SMAC's, got .*get_{part}\("):
        facade(tmp_path, **{part: given})


@pytest.mark.parametrize("given", [StopAfter(3), "log", [3]])
def test_what_is_no_list_of_callbacks_is_refused(tmp_path: Path, given: Any) -> None:
    with pytest.raises(TypeError, match=r"callbacks must be a list of SMAC's callbacks, got "):
        facade(tmp_path, callbacks=given)


def test_a_replay_makes_callbacks_for_each_search() -> None:
    optimizer(GBQRFacade, callbacks=lambda run: [StopAfter(3)])  # which was iterated over


@pytest.mark.parametrize(
    "make",
    [
        GBQRFacade,
        CostEncoder,
        partial(ProposerConfigSelector, proposer=gbqr()),
        GBQRFacade.get_config_selector,
        GBQRFacade.get_runhistory_encoder,
    ],
)
def test_what_takes_a_scenario_says_so(make: Any) -> None:
    with pytest.raises(TypeError, match="takes a Scenario first; got <ConfigurationSpace"):
        make(search_space())


def test_a_model_takes_the_space_of_the_scenario(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"SurrogateModel takes .* scenario\.configspace, .* got "):
        SurrogateModel(scenario(tmp_path))


def test_explanations_need_a_selector_that_has_them(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="takes the ProposerConfigSelector of the facade; got"):
        ExplainCallback(ConfigSelector(scenario(tmp_path)))


@pytest.mark.parametrize("kind", ["one", "values"])
def test_what_is_no_list_of_configurations_is_refused(tmp_path: Path, kind: str) -> None:
    config = search_space().sample_configuration()
    given: Any = config if kind == "one" else [dict(config)]
    with pytest.raises(TypeError, match="additional_configs must be a list of configurations"):
        GBQRFacade.get_initial_design(scenario(tmp_path), additional_configs=given)


def test_a_probability_is_no_percentage(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"probability must be a number in \[0, 1\], got 20"):
        GBQRFacade.get_random_design(scenario(tmp_path), probability=20)
