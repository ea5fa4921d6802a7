"""The study of context switches runs small, and its table is the one that is checked in.

After a deliberate change: ``python scenarios/context_switch_tradeoff.py --jobs 500 --replications 2 --workers 1 --json
tests/scenarios/context_switch_tradeoff.json``.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from types import ModuleType

import numpy as np
import pytest

from tests.scenarios.conftest import Study


@pytest.mark.long
def test_small(small_study: Callable[[str], Study]) -> None:
    study = small_study("context_switch_tradeoff")
    assert study.figure.stat().st_size > 10_000
    assert "Utilization at which BF overtakes" in study.printed
    here = study.runs.at(factor=study.runs.distinct("factor")[-1])  # where the machine is full
    slowdown = {(row["strategy"], row["switch"]): 0.0 for row in here.rows}
    for strategy, switch in slowdown:
        slowdown[strategy, switch] = here.at(strategy=strategy, switch=switch).interval("slowdown").mean
    for level in (2, 5):
        assert slowdown[f"BGS-{level}", 0.0] < slowdown[f"BGS-{level}", 0.05]
        for switch in (0.0, 0.05):
            assert slowdown[f"BGS-{level}", switch] < slowdown[f"GS-{level}", switch]
    assert slowdown["BGS-5", 0.0] < slowdown["BF", 0.0]
    assert slowdown["BGS-5, on change", 0.05] < slowdown["BGS-5", 0.05]


def test_crossing(load: Callable[[str], ModuleType]) -> None:
    crossing = load("context_switch_tradeoff").crossing
    x = np.array([0.0, 1.0, 2.0])
    assert crossing(x, np.array([2.0, 2.0, 2.0]), x, np.array([1.0, 1.5, 3.5])) == pytest.approx(1.25)
    assert isnan(crossing(x, np.array([2.0, 2.0, 2.0]), x, np.array([1.0, 1.5, 1.9])))
    assert isnan(crossing(x, np.array([2.0, 2.0, 2.0]), x, np.array([3.5, 1.5, 1.0])))  # from below
    bent = np.array([0.0, 1.0, 0.9])  # a curve that goes back when the load rises
    assert crossing(x, np.array([2.0, 2.0, 2.0]), bent, np.array([1.0, 1.5, 2.5])) == pytest.approx(0.95)


def test_highest_below(load: Callable[[str], ModuleType]) -> None:
    highest_below = load("replications").highest_below
    rho = np.array([0.5, 0.7, 0.9])
    assert highest_below(rho, np.array([1.0, 10.0, 1000.0]), 100.0) == pytest.approx(0.8)
    assert highest_below(rho, np.array([1.0, 10.0, 20.0]), 20.0) == np.inf
    assert isnan(highest_below(rho, np.array([30.0, 40.0, 50.0]), 20.0))
