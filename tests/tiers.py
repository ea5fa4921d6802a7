"""The part of a long list of cases that the second tier takes; all of them have the command of ``whole``."""

from collections.abc import Iterable
from typing import Any

import pytest


def some(cases: Iterable[Any], *, one_in: int) -> list[Any]:
    """Return parameters: one in so many, the first included, is for the second tier, the others are marked ``whole``."""
    return [
        pytest.param(case, marks=pytest.mark.whole if place % one_in else pytest.mark.long) for place, case in enumerate(cases)
    ]
