"""A small study that the tests run in several ways: two workloads, a policy that fails on one of them, a policy of its own."""

from __future__ import annotations

from dataclasses import dataclass

from clustermodel import Batch, Machine, Start, View, synthetic_workload
from clustermodel.experiment.study import Study
from clustermodel.policies.interface import Decision


@dataclass(frozen=True)
class Greedy:
    """Starts whatever fits."""

    jobs_at_most: int
    name = "greedy"

    def start(self, setup: object) -> GreedyRun:
        """Count from the beginning."""
        return GreedyRun(self.jobs_at_most)


class GreedyRun:
    def __init__(self, left: int) -> None:
        self._left = left

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Start whatever fits, and give up after so many jobs."""
        idle, starts = view.idle, []
        for job in view.waiting.values():
            if job.nodes <= idle:
                starts.append(Start(job=job))
                idle -= job.nodes
        self._left -= len(starts)
        if self._left < 0:
            raise RuntimeError("too many jobs for me")
        return starts


study = Study.grid(
    name="example",
    machines={"small": Machine(nodes=128), "large": Machine(nodes=192)},
    workloads={"made": lambda seed: synthetic_workload(jobs=300, seed=seed), "fixed": synthetic_workload(jobs=120, seed=7)},
    policies=["easy", "R/L-NG", Greedy(250)],
    replications=2,
    seed=5,
    job_tables="all",
)
