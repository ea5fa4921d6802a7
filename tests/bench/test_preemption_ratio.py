"""PV-EASY against EASY, on the KTH year, in one run."""

from __future__ import annotations

import pytest

from clustermodel import Machine, Scenario
from tests.bench.timing import best_of, require, trace

pytestmark = pytest.mark.bench


@pytest.mark.parametrize("mode", ["kill", "checkpoint", "suspend"])
def test_pv_easy_costs_at_most_twice_what_easy_does(mode: str) -> None:
    workload, machine = trace("KTH-SP2-1996-2.2"), Machine(nodes=100)
    easy, pv_easy = (Scenario(machine=machine, workload=workload, policy=name).run for name in ("easy", f"pv-easy:mode={mode}"))
    easy_s, pv_easy_s = best_of(easy, pv_easy, rounds=2)
    print(f"\npv-easy:mode={mode} on KTH: {pv_easy_s / easy_s:.2f}x EASY")
    require(holds=pv_easy_s <= 2 * easy_s)
