"""Workloads in which some jobs are different."""

from __future__ import annotations

import numpy as np
import pytest

from clustermodel import SpecificationError, Workload, synthetic_workload
from clustermodel.workload.changed_jobs import at_load, at_load_of, with_exact_estimates, with_urgent_jobs


@pytest.fixture(scope="module")
def jobs() -> Workload:
    return synthetic_workload(jobs=300, nodes=128, load=0.8, seed=1)


def test_exact_estimates_of_some_jobs(jobs: Workload) -> None:
    large = jobs.column("nodes") > 8
    changed = with_exact_estimates(jobs, large)
    assert (changed.column("estimate") == np.where(large, jobs.column("run"), jobs.column("estimate"))).all()
    for name in ("id", "submit", "nodes", "run", "priority"):
        assert (changed.column(name) == jobs.column(name)).all()
    assert changed.machine_nodes == jobs.machine_nodes
    with pytest.raises(SpecificationError, match=r"^with_exact_estimates: which has shape \(2,\); it must"):
        with_exact_estimates(jobs, [True, False])


def test_urgent_jobs_are_drawn_from_the_seed(jobs: Workload) -> None:
    drawn = [with_urgent_jobs(jobs, 0.2, seed).column("priority").tolist() for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert set(drawn[0]) == {0, 1}
    assert 30 < sum(drawn[0]) < 90
    more = with_urgent_jobs(jobs, 0.5, 1).column("priority")
    assert (more >= np.array(drawn[0])).all()  # a higher probability makes more jobs urgent, and keeps those
    with pytest.raises(SpecificationError, match=r"^probability: 1\.5 is not allowed"):
        with_urgent_jobs(jobs, 1.5, 1)


def test_a_load_of_choice(jobs: Workload) -> None:
    changed = at_load(jobs, 0.5, 128)
    assert changed.offered_load(128) == pytest.approx(0.5, rel=1e-6)
    assert (changed.column("run") == jobs.column("run")).all()
    with pytest.raises(SpecificationError, match=r"^load: 0 is not allowed; it must be a finite number > 0$"):
        at_load(jobs, 0, 128)
    with pytest.raises(SpecificationError, match=r"^at_load: all jobs are submitted at once"):
        at_load(Workload(list(jobs.rows())[:1]), 0.5, 128)


def test_another_machine_at_the_same_load_does_not_count_what_it_rejects(jobs: Workload) -> None:
    changed = at_load_of(jobs, 128, 16)
    small = jobs.column("nodes") <= 16
    work = (jobs.column("nodes") * jobs.column("run"))[small].sum()
    assert work / (16 * changed.span_s * 1e6) == pytest.approx(jobs.offered_load(128), rel=1e-6)
    with pytest.raises(SpecificationError, match=r"^at_load_of: a machine of 0 nodes can hold none of the jobs$"):
        at_load_of(jobs, 128, 0)
