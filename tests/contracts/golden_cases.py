"""All cases of all goldens."""

from __future__ import annotations

import golden_proposals
import golden_round_trips
import golden_searches
from goldens import Case


def cases() -> list[Case]:
    return [
        *golden_proposals.cases(),
        *golden_round_trips.cases(),
        *golden_searches.cases(),
    ]
