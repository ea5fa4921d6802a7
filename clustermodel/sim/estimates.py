"""What a policy may ask about jobs in the system before it decides: how long things would take."""

from __future__ import annotations

from collections.abc import Mapping

from clustermodel.policies.view import QueuedJob
from clustermodel.sim.job_process import JobInSystem
from clustermodel.sim.phases import AFTER, BEFORE, Phases


class Estimates:
    """The questions of :class:`~clustermodel.policies.interface.Setup`, with the same names; ticks."""

    def __init__(self, jobs: Mapping[int, JobInSystem], phases: Phases) -> None:
        self._jobs, self._phases = jobs, phases

    def run_time(self, job: QueuedJob) -> int:
        return self._jobs[job.id].run_time

    def holding(self, job: QueuedJob, ticks: int, nodes: int | None = None) -> int:
        return self._phases.holding(self._jobs[job.id], ticks, nodes)

    def transfer_times(self, job: QueuedJob) -> tuple[int, int]:
        return self._phases.transfers.of(self._jobs[job.id], job.nodes)

    def resize_time(self, job: QueuedJob, before: int, after: int) -> int:
        return self._phases.takes(self._phases.resize(self._jobs[job.id], before, after))

    def switch_time(self, job: QueuedJob) -> int:
        return self._phases.switch(self._jobs[job.id].row, job.nodes)

    def occupied(self, job: QueuedJob, nodes: int) -> tuple[int, int]:
        phases, row = self._phases, self._jobs[job.id].row
        return phases.takes(phases.occupying(BEFORE, row, nodes)), phases.takes(phases.occupying(AFTER, row, nodes))
