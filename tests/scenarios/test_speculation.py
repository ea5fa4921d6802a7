"""The study of speculation runs small, and its table is the one that is checked in.

After a deliberate change: ``python scenarios/speculation.py --jobs 500 --replications 2 --workers 1 --json
tests/scenarios/speculation.json``.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.scenarios.conftest import Study


def test_small(small_study: Callable[[str], Study]) -> None:
    study = small_study("speculation")
    assert study.figure.stat().st_size > 10_000
    for title in ("Figure 5", "Figure 6", "Waste"):
        assert title in study.printed
    for row in study.runs.rows:
        if row["percentage"] is None:
            assert row["waste"] == row["retried"] == 0
        assert (row["waste"] > 0) == (row["retried"] > 0)
        assert 0 <= row["waste"] < 0.2
    script, runs = study.script, study.runs
    with_tests = script.at(runs, "D", 0.9, True).values("slowdown")
    without = script.at(runs, "D", 0.9, False).values("slowdown")
    assert script.improvement(runs, "D", 0.9, True).mean == pytest.approx((1 - with_tests / without).mean())
    base = script.at(runs, "D", None, False).values("slowdown")
    assert script.improvement(runs, "D", 0.9, False).mean == pytest.approx((1 - without / base).mean())
