"""What a policy may ask about jobs in the system before it decides: how long things would take."""

from __future__ import annotations

from collections.abc import Mapping

from clustermodel.policies.view import QueuedJob
from clustermodel.sim.job_costs import JobCosts
from clustermodel.sim.job_process import JobInSystem
from clustermodel.sim.resizing import Resizes
from clustermodel.sim.saved_work import SavedWork


class Estimates:
    """The questions of :class:`~clustermodel.policies.interface.Setup`, with the same names; ticks."""

    def __init__(self, jobs: Mapping[int, JobInSystem], saved: SavedWork, resizes: Resizes, costs: JobCosts) -> None:
        self._jobs, self._saved, self._resizes, self._costs = jobs, saved, resizes, costs

    def run_time(self, job: QueuedJob) -> int:
        return self._jobs[job.id].run_time

    def holding(self, job: QueuedJob, ticks: int, nodes: int | None = None) -> int:
        return self._saved.holding(self._jobs[job.id], ticks, nodes)

    def transfer_times(self, job: QueuedJob) -> tuple[int, int]:
        return self._saved.costs.of(self._jobs[job.id], job.nodes)

    def resize_time(self, job: QueuedJob, before: int, after: int) -> int:
        return self._resizes.ticks(self._jobs[job.id], before, after)

    def switch_time(self, job: QueuedJob) -> int:
        return self._costs.switch(self._jobs[job.id].row, job.nodes)

    def occupied(self, job: QueuedJob, nodes: int) -> tuple[int, int]:
        row = self._jobs[job.id].row
        return self._costs.startup(row, nodes), self._costs.epilog(row, nodes)
