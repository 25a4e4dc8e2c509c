"""All cases of all goldens."""

from __future__ import annotations

import golden_proposals
from goldens import Case


def cases() -> list[Case]:
    return [*golden_proposals.cases()]
