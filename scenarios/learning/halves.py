"""The jobs of a trace in two halves: windows of the first one are to learn from, those of the second one are unseen."""

from functools import lru_cache

import numpy as np

from clustermodel import SpecificationError, Workload, synthetic_workload
from clustermodel.workload.synthetic import study_jobs

EPISODE = 256
"""Jobs of an episode."""


@lru_cache(maxsize=2)
def halves(trace: str | None, jobs: int, nodes: int) -> tuple[Workload, Workload]:
    """Return the two halves of a trace (of its first ``jobs``, unless that is 0), or of synthetic jobs."""
    whole = synthetic_workload(jobs=jobs or 10_000, nodes=nodes, load=1.0) if trace is None else study_jobs(trace, jobs=jobs)
    first = np.arange(len(whole)) < len(whole) // 2
    return whole.part(first, f"{whole.name}, first half"), whole.part(~first, f"{whole.name}, second half")


def windows(workload: Workload) -> int:
    """Return how many windows of ``EPISODE`` jobs there are that have no job in common."""
    return len(workload) // EPISODE


def window(workload: Workload, number: int) -> Workload:
    """Return one of these windows; they count from 1."""
    if not 1 <= number <= (last := windows(workload)):
        raise SpecificationError(f"replications: {workload.name} has {last} windows of {EPISODE} jobs; give at most as many")
    which = np.arange(len(workload)) // EPISODE == number - 1
    return workload.part(which, f"{workload.name}, window {number}")
