"""The study of loss of capacity runs small, its table is the one that is checked in, and formulas agree with the ledger.

After a deliberate change: ``python scenarios/capacity_loss.py --jobs 500 --replications 2 --workers 1 --json
tests/scenarios/capacity_loss.json``.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.scenarios.conftest import Study


@pytest.mark.long
def test_small(small_study: Callable[[str], Study]) -> None:
    study = small_study("capacity_loss")
    assert study.figure.stat().st_size > 10_000
    assert "highest utilization" in study.printed
    for row in study.runs.rows:
        assert row["kappa_by_formula"] == pytest.approx(row["kappa"], abs=1e-9)
        assert row["rho"] + row["kappa"] <= 1 + 1e-12  # the rest is idle, or overhead, while no job waits
        overhead = row["context_switch"] + row["migration"] + row["blocked"]
        assert row["rho"] + overhead <= 1 + 1e-12
        assert (overhead > 0) == (row["charge"] != "none")
    every, on_change = (study.runs.at(policy="bgs", charge=charge, factor=1.0) for charge in study.script.CHARGES)
    assert (on_change.values("context_switch") < every.values("context_switch")).all()
