"""The study of a flurry runs small, its table is the one that is checked in, and the flurry is what 003's tables say.

After a deliberate change: ``python scenarios/flurry.py --jobs 500 --replications 2 --workers 1 --json
tests/scenarios/flurry.json``.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

from clustermodel import synthetic_workload
from tests.scenarios.conftest import Study


def test_small(small_study: Callable[[str], Study]) -> None:
    study = small_study("flurry")
    assert study.figure.stat().st_size > 10_000
    cleaned = study.runs.at(jobs="cleaned")
    assert all(row["slowdown"] == pytest.approx(row["slowdown_others"]) for row in cleaned.rows)


def test_flurry(load: Callable[[str], ModuleType]) -> None:
    script, workload = load("flurry"), synthetic_workload(jobs=30_000)
    changed = script.with_flurry(workload, 1)
    added = changed.column("id") > workload.column("id").max()
    assert added.sum() == round(30_000 * 2080 / 77205)
    assert (np.delete(changed.column("submit"), np.flatnonzero(added)) == workload.column("submit")).all()
    assert set(changed.column("nodes")[added].tolist()) == {1}
    run, estimate = changed.seconds("run")[added], changed.seconds("estimate")[added]
    assert run.mean() == pytest.approx(100, rel=0.15)
    assert (estimate / run).mean() == pytest.approx(857, rel=0.15)
    between = np.flatnonzero(added)[[0, -1]] - [0, added.sum()]
    assert between / 30_000 == pytest.approx([script.FIRST, script.LAST], abs=1e-3)
