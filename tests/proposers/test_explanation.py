"""Explanations: the member that proposed, from stored facts that may be invalid."""

from __future__ import annotations

from typing import Any

import pytest

from automl_plugins.proposers.explanation import Explanation, read_trust

TRUST = {"trees": 0.17, "process": 0.83}


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        (
            {"member": "process", "trust": TRUST},
            "; the process proposed it (trusted with 83%, trees 17%)",
        ),
        (
            {"member": "trees", "trust": TRUST},
            "; the trees proposed it (trusted with 17%, process 83%)",
        ),
        (
            {"member": "trees", "trust": {"trees": 1.0}},
            "; the trees proposed it (trusted with 100%)",
        ),
        ({"member": "trees"}, "; the trees proposed it"),
        ({"member": "forest", "trust": {"trees": 1.0}}, "; the forest proposed it (trees 100%)"),
        ({"trust": TRUST}, ""),
        ({"member": 3, "trust": "all"}, ""),
    ],
)
def test_who_proposed_and_was_trusted(facts: dict[str, Any], told: str) -> None:
    said = Explanation.from_proposal(9, {"origin": "model", "n_rows": 7, **facts})
    assert str(said) == f"Trial 9 was chosen by the surrogate model, fitted on 7 trials{told}."


def test_trust_is_ordered_without_invalid_numbers() -> None:
    given = {"trees": 0.2, "process": 0.7, "a": float("nan"), "b": True, "c": "x"}
    trust = read_trust({"trust": given})
    assert trust is not None and list(trust.items()) == [("process", 0.7), ("trees", 0.2)]
    for facts in (None, 3, "text", {}, {"trust": None}, {"trust": [0.5]}):
        assert read_trust(facts) is None
    assert Explanation.from_proposal(0, None).trust is None


def test_a_bound_equal_to_the_value_is_left_out() -> None:
    facts = {"origin": "model", "value": 0.5, "bound": 0.25, "n_rows": 3}
    assert "predicted value 0.5; optimistic bound 0.25" in str(Explanation.from_facts(1, facts))
    same = str(Explanation.from_facts(1, {**facts, "bound": 0.5}))
    assert "predicted value 0.5" in same and "bound" not in same
