"""The study of randomization runs small, its table is the one that is checked in, and it changes one thing at a time.

After a deliberate change: ``python scenarios/randomization.py --jobs 500 --replications 2 --workers 1 --json
tests/scenarios/randomization.json``.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

from clustermodel import synthetic_workload
from tests.scenarios.conftest import Study


def test_small(small_study: Callable[[str], Study]) -> None:
    study = small_study("randomization")
    assert study.figure.stat().st_size > 10_000
    assert study.runs.distinct("change") == [
        "as it is", "long-narrow exact", "all others exact", "all exact", "on 256 nodes",
    ]  # fmt: skip


def test_exact(load: Callable[[str], ModuleType]) -> None:
    script, workload = load("randomization"), synthetic_workload(jobs=300)
    changed = script.exact(workload, shapes=["long-narrow"], narrow=None, nodes=128)
    long_narrow = load("shapes").shape_of(workload, None, 128)[1][2]
    assert (changed.column("estimate") == changed.column("run"))[long_narrow].all()
    assert (changed.column("estimate") == workload.column("estimate"))[~long_narrow].all()
    for name in ("submit", "nodes", "run"):
        assert (changed.column(name) == workload.column(name)).all()
    everything = script.exact(workload, shapes=load("shapes").SHAPES, narrow=None, nodes=128)
    assert (everything.column("estimate") == everything.column("run")).all()


@pytest.mark.parametrize("other", [100, 512])
def test_same_load(load: Callable[[str], ModuleType], other: int) -> None:
    workload = synthetic_workload(jobs=300)
    changed = load("randomization").at_same_load(workload, nodes=128, other=other)

    def load_on(jobs: object, nodes: int) -> float:
        size, run, submit = jobs.column("nodes"), jobs.column("run"), jobs.column("submit")
        return float((size * run)[size <= nodes].sum()) / (nodes * np.ptp(submit))

    assert load_on(changed, other) == pytest.approx(load_on(workload, 128), rel=1e-6)
