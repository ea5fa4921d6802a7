"""The study of overestimation runs small, and its table is the one that is checked in.

After a deliberate change: ``python scenarios/overestimation.py --jobs 500 --replications 2 --workers 1 --json
tests/scenarios/overestimation.json``.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.scenarios.conftest import Study


def test_small(small_study: Callable[[str], Study]) -> None:
    study = small_study("overestimation")
    assert study.figure.stat().st_size > 10_000
    for title in ("Figure 5, BF", "Figure 6, BF", "Figure 8, BGS"):
        assert title in study.printed
    for row in study.runs.rows:
        counts = [row[f"jobs_{number}"] for number in study.script.CLASSES]
        assert sum(counts) == 500
        assert counts[9] >= row["phi"] * 500 * 0.8  # those that are exact, and a share of the others
        waits = sum(row[f"wait_s_{number}"] * count for number, count in enumerate(counts))
        assert waits / 500 == pytest.approx(row["wait_s"], rel=1e-9, abs=1e-9)
        if row["phi"] == 1.0:
            assert counts[9] == 500
