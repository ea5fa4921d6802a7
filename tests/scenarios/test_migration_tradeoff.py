"""The study of costly and limited migration runs small, and its table is the one that is checked in.

After a deliberate change: ``python scenarios/migration_tradeoff.py --jobs 500 --replications 2 --workers 1 --json
tests/scenarios/migration_tradeoff.json``.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.scenarios.conftest import Study


@pytest.mark.long
def test_small(small_study: Callable[[str], Study]) -> None:
    study = small_study("migration_tradeoff")
    assert study.figure.stat().st_size > 10_000
    assert "Figure 14, mean slowdown" in study.printed
    assert "Figure 15" in study.printed
    compared = study.runs.at(figure=15)
    for factor in compared.distinct("factor")[-1:]:  # where the machine is full
        slowdown = {
            policy: compared.at(policy=policy, factor=factor).interval("slowdown").mean for policy in study.script.POLICIES
        }
        assert slowdown["mgs"] <= slowdown["gs"]
        assert slowdown["bgs"] <= slowdown["gs"]
        assert slowdown["mbgs"] <= slowdown["mgs"]
