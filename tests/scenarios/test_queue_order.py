"""The study of queue orders runs small, and its table is the one that is checked in.

After a deliberate change: ``python scenarios/queue_order.py --jobs 500 --replications 2 --workers 1 --json
tests/scenarios/queue_order.json``.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

from clustermodel import Job, Machine, Scenario, Workload, synthetic_workload
from tests.scenarios.conftest import Study


def test_small(small_study: Callable[[str], Study]) -> None:
    study = small_study("queue_order")
    assert study.figure.stat().st_size > 10_000
    for title in ("Table 1", "Table 2", "Table 3", "Figures 3 and 4"):
        assert title in study.printed
    facts = study.runs.facts
    assert sum(count for count, _, _ in facts["shapes"].values()) == facts["jobs"] == 500
    for row in study.runs.rows:
        assert (row["ratio_mean"] is None) == (row["algorithm"] != "D")
        assert min(row[f"slowdown_{shape}"] for shape in facts["shapes"]) <= row["slowdown"]
        assert max(row[f"slowdown_{shape}"] for shape in facts["shapes"]) >= row["slowdown"]
    guaranteed = study.runs.at(algorithm="D")
    assert (guaranteed.values("ratio_p15") >= 1).all()  # nobody starts after the guaranteed time
    assert (guaranteed.values("ratio_p15") <= guaranteed.values("ratio_p50")).all()


def test_shapes(load: Callable[[str], ModuleType]) -> None:
    """Every job that the machine can hold has one shape; medians are taken over those jobs."""
    jobs = [(1, 10, 1), (1, 60, 2), (3, 10, 4), (3, 60, 8), (9, 1, 1)]
    workload = Workload.from_jobs(
        Job(id=number, submit_s=number, nodes=nodes, run_s=run, estimate_s=10.0 * estimate)
        for number, (nodes, estimate, run) in enumerate(jobs)
    )
    held, shapes = load("shapes").shape_of(workload, None, 8)
    assert held.tolist() == [True, True, True, True, False]
    assert np.array(shapes, dtype=int).tolist() == np.eye(4, dtype=int)[[0, 2, 1, 3]].tolist()
    _, shapes = load("shapes").shape_of(workload, 3, 8)
    assert [int(members.sum()) for members in shapes] == [2, 0, 2, 0]
    with_wide = load("shapes").shape_of(workload, None, 9)[0]
    assert with_wide.all()


def test_measures(load: Callable[[str], ModuleType]) -> None:
    """Slowdowns of shapes average to that of all jobs."""
    workload = synthetic_workload(jobs=400, load=0.9)
    result = Scenario(machine=Machine(nodes=128), workload=workload, policy="D").run()
    _, shapes = load("shapes").shape_of(workload, None, 128)
    found = load("queue_order").measure(result, workload, narrow=None)
    for name in ("slowdown", "wait_s"):
        parts = [found[f"{name}_{shape}"] * members.sum() for shape, members in zip(load("shapes").SHAPES, shapes, strict=True)]
        assert sum(parts) / 400 == pytest.approx(found[name])
    waited = result.jobs[result.jobs["wait_s"] > 0]
    assert found["at_once"] == pytest.approx(1 - len(waited) / 400)
