"""Explanations: the member that proposed, from stored facts that may be invalid."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from automl_plugins.proposers.committee import LOCAL
from automl_plugins.proposers.explanation import MEMBERS, Explanation, read_parts
from automl_plugins.recipes import auto

TRUST = {"trees": 0.17, "process": 0.83}


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        (
            {"member": "process", "trust": TRUST},
            "; the member 'process' (a Gaussian process of the losses) proposed it, trusted with"
            " 83%, 'trees' 17%",
        ),
        (
            {"member": "trees", "trust": TRUST},
            "; the member 'trees' (quantile boosting) proposed it, trusted with 17%,"
            " 'process' 83%",
        ),
        (
            {"member": "trees", "trust": {"trees": 1.0}},
            "; the member 'trees' (quantile boosting) proposed it, trusted with 100%",
        ),
        ({"member": "trees"}, "; the member 'trees' (quantile boosting) proposed it"),
        (
            {"member": "forest", "trust": {"trees": 1.0}},
            "; the member 'forest' proposed it, 'trees' 100%",
        ),
        ({"trust": TRUST}, ""),
        ({"member": 3, "trust": "all"}, ""),
    ],
)
def test_who_proposed_and_was_trusted(facts: dict[str, Any], told: str) -> None:
    said = Explanation.from_proposal(9, {"origin": "model", "n_rows": 7, **facts})
    assert str(said) == f"Trial 9 was chosen by the surrogate model, fitted on 7 trials{told}."


def test_every_member_of_the_committee_is_described() -> None:
    with_memory: Any = auto("svm")
    assert {*with_memory.proposer.proposer.members, LOCAL} == set(MEMBERS)


def test_a_point_of_the_start_design_is_no_proposal_of_a_model() -> None:
    facts = {"origin": "design", "member": "trees", "trust": {"trees": 1.0}}
    said = str(Explanation.from_proposal(3, facts))
    assert said == (
        "Trial 3 fills a gap in the search space, no model chose it (start design, or"
        " interleaved); its turn fell to the member 'trees', which asked no model (trust:"
        " 'trees' 100%)."
    )
    del facts["trust"]
    assert str(Explanation.from_proposal(3, facts)).endswith(", which asked no model.")


def test_shares_say_whose_they_are() -> None:
    def said(shares: dict[str, float], **facts: str) -> str:
        return str(Explanation.from_proposal(3, {"origin": "model", "shares": shares} | facts))

    own = "in its model this search's own trials count"
    assert said({"wine": 0.05, "churn": 0.25}).endswith(
        f"; {own} 70%, earlier tasks 30%, of them 'churn' the most (25%)."
    )
    assert said({"meta-learner": 0.25}).endswith(
        f"; {own} 75%, the meta-learner of the memory 25%."
    )
    assert said({"meta-learner of svm": 0.25}).endswith(
        f"; {own} 75%, the meta-learner of the memory 'svm' 25%."
    )
    assert said({}).endswith(f"; {own} 100%.")
    # Of a member that never looks at earlier tasks it would say nothing.
    assert own not in said({}, member="process")
    assert own in said({"wine": 0.0}, member="earlier tasks")
    # A start-up trial has no model.
    assert own not in said({}, origin="design") and own not in said({}, origin="random")


def test_a_notebook_shows_the_sentence() -> None:
    why = Explanation.from_proposal(3, {"origin": "random"})
    shown: list[str] = []
    why._repr_pretty_(SimpleNamespace(text=shown.append), False)
    assert shown == [str(why)]


def test_trust_is_ordered_without_invalid_numbers() -> None:
    given = {"trees": 0.2, "process": 0.7, "a": float("nan"), "b": True, "c": "x"}
    trust = read_parts({"trust": given}, "trust")
    assert trust is not None and list(trust.items()) == [("process", 0.7), ("trees", 0.2)]
    for facts in (None, 3, "text", {}, {"trust": None}, {"trust": [0.5]}):
        assert read_parts(facts, "trust") is None
    assert Explanation.from_proposal(0, None).trust is None


def test_a_bound_equal_to_the_value_is_left_out() -> None:
    facts = {"origin": "model", "value": 0.5, "bound": 0.25, "n_rows": 3}
    assert "predicted value 0.5; may be as good as 0.25" in str(Explanation.from_facts(1, facts))
    same = str(Explanation.from_facts(1, {**facts, "bound": 0.5}))
    assert "predicted value 0.5" in same and "as good as" not in same


def test_the_unit_of_a_cost_that_a_function_returns_is_not_known() -> None:
    facts = {"origin": "model", "seconds": 3.0, "success": 0.5}
    assert "; predicted cost 3 s; " in str(Explanation.from_facts(1, facts))
    assert "; predicted cost 3; " in str(Explanation.from_facts(1, facts | {"unit": ""}))
    assert "; predicted cost 3 s; " in str(Explanation.from_facts(1, facts | {"unit": 7}))


def test_trials_far_worse_than_all_others_are_told() -> None:
    def said(origin: str, n: Any) -> str:
        return str(Explanation.from_proposal(9, {"origin": origin, "n_rows": 7, "n_diverged": n}))

    told = "; {} far worse than all others counted as failed."
    assert said("model", 1).endswith(told.format("1 trial"))
    assert said("model", 3).endswith(told.format("3 trials"))
    for origin, n in (("model", 0), ("model", -1), ("model", "x"), ("design", 3)):
        assert "far worse" not in said(origin, n)


def test_that_no_trial_is_feasible_yet_is_told() -> None:
    def said(n: Any) -> str:
        facts = {"origin": "model", "n_rows": 7, "success": 0.5, "n_infeasible": n}
        return str(Explanation.from_proposal(9, facts))

    assert said(5).endswith(
        "; probability of success 50%;"
        " none of the 5 complete trials that the model knew is feasible: their violations are"
        " minimised."
    )
    assert "; the only complete trial is not feasible: its violation is minimised." in said(1)
    assert "feasible" not in said(0) + said(None)
