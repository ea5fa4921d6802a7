"""Nodes that fail and are repaired: the process that follows the machine's failures, and which nodes are down.

Nothing here depends on what the policy does, so all policies see the same failures.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Final

from simpy import Event

from clustermodel.errors import SpecificationError, counted
from clustermodel.machine.failure import Failure
from clustermodel.machine.machine import Machine
from clustermodel.machine.node_set import NodeSet, from_members, holds_any
from clustermodel.plans.windows import Windows
from clustermodel.policies.view import Outage
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import Account, Ledger, UnusedNodes
from clustermodel.recording.run_attempts import Status
from clustermodel.sim.events import Clock, InstantSettled
from clustermodel.sim.job_process import Execution, JobInSystem, needs_any
from clustermodel.sim.node_pool import NodePool
from clustermodel.sim.power_cap import PowerCap
from clustermodel.sim.saved_work import SavedWork
from clustermodel.sim.segments import discard_saved
from clustermodel.ticks import NEVER, duration_to_ticks, to_seconds

MOST_ATTEMPTS: Final = 10_000  # run attempts of a job, one after the other, that save nothing of it, after which a run ends
MOST_FAILURES: Final = 200_000  # failures of nodes, one after the other, during which no job starts, after which a run ends
NO_OUTAGES: Final[tuple[list[Outage], list[Outage]]] = ([], [])


def require_progress(job: JobInSystem, policy: str) -> None:
    """Refuse to start a job for ever that is always stopped before more of it has been saved."""
    if job.saved > job.most_saved:
        job.most_saved, job.without_progress = job.saved, 0
        return
    job.without_progress += 1
    if job.without_progress >= MOST_ATTEMPTS:
        started = (
            f"job {job.queued.id} ({counted(job.queued.nodes, 'node')}, {to_seconds(job.run_time):g} s) "
            f"has been started {MOST_ATTEMPTS:,} times and not completed, because"
        )
        if job.execution.outcome is Status.FAILED:
            raise SpecificationError(
                f"Machine.failures: {started} its nodes fail before; "
                "give it checkpoints (Checkpointing.interval_s), or nodes that fail less often"
            )
        if job.execution.outcome is Status.REQUEUED:
            raise SpecificationError(f"policy {policy}: {started} its time limit ends before; give longer ones (Start.limit)")
        raise SpecificationError(
            f"policy {policy}: {started} it is preempted before; "
            "let preemption keep its work (checkpoint or suspend instead of kill), or preempt less often"
        )


class NodeStates:
    """Which nodes are down, and which fail or are repaired at the present instant."""

    def __init__(
        self, env: Clock, machine: Machine, settled: InstantSettled, ledger: Ledger, unused: UnusedNodes, records: JobRecords,
        cap: PowerCap | None, windows: Windows | None, saved: SavedWork, pool: NodePool, jobs: Mapping[int, JobInSystem],
    ) -> None:  # fmt: skip
        failures = machine.failures
        # The outages of the nodes that are down, or out of service because of the power cap, by node.
        self.down: dict[int, Outage] = {}
        self.broken = 0  # number of nodes that have failed and are not repaired
        self.changing = False  # whether nodes fail or are repaired at the present instant
        self.without_start = 0  # failures since the last start of a job
        self._env, self._settled, self._ledger, self._unused, self._records = env, settled, ledger, unused, records
        self._cap, self._windows, self._saved, self._pool, self._jobs = cap, windows, saved, pool, jobs
        self._mean_repair = 0 if failures is None else duration_to_ticks(failures.mean_repair_s)  # how long an outage may last
        self.failing: list[int] = []  # nodes that fail at the present instant, and that gangs may still hold
        self._repaired: list[int] = []  # nodes that are up again
        self._out: list[int] = [] if cap is None else cap.first_out  # nodes to take out of service when the run begins
        if self._out:
            self.changing = True
            settled.is_armed = True

    def follow(self, failures: Iterable[Failure]) -> Generator[Event, object, None]:
        """Let nodes fail and be repaired, for as long as the run lasts: a process."""
        for time, node, repair in failures:
            self.without_start += 1
            if self.without_start > MOST_FAILURES:
                raise SpecificationError(
                    f"Machine.failures: nodes have failed {MOST_FAILURES:,} times by {to_seconds(time):g} s since a job last "
                    "started; let them fail less often"
                )
            if time > self._env.now:
                yield self._env.timeout(time - self._env.now)
            self._change(self.failing, node)
            self._env.process(self._repair(node, repair))

    def _repair(self, node: int, ticks: int) -> Generator[Event, object, None]:
        yield self._env.timeout(ticks)
        self._change(self._repaired, node)

    def _change(self, nodes: list[int], node: int) -> None:
        """Let the coordinator change nodes when everything else of the instant is known."""
        nodes.append(node)
        self.changing = True
        self._settled.is_armed = True

    def hit(self, running: Iterable[Execution]) -> list[Execution]:
        """Return the gangs that have a task, or their image, on a failing node."""
        return [gang for gang in running if needs_any(gang, self.failing)] if self.failing else []

    def carry_out(self, change_nodes: Callable[[NodeSet, bool], None]) -> tuple[list[Outage], list[Outage]]:
        """Take failing nodes, which no gang holds any more, down, put repaired ones up; return the outages of both."""
        now = self._env.now
        failing, repaired = sorted(self.failing), sorted(self._repaired)
        self.failing.clear()
        self._repaired.clear()
        self.changing = False
        for node in failing:
            self._records.node_failed(node, now)
        for node in repaired:
            self._records.node_repaired(node, now)
        if change := len(failing) - len(repaired):
            self.broken += change
            self._unused.put_off(now, Account.DOWN, change)
        if (switched_off := self._pool.switched_off) is not None:
            switched_off.taken(from_members(failing))
            switched_off.idle(from_members(repaired))
        leaving, entering = dict.fromkeys(failing, False), repaired  # nodes that leave service, perhaps for good
        if self._cap is not None:
            leaving, entering = self._cap.exchange(failing, repaired)
            leaving.update(dict.fromkeys(self._out, True))
            self._out.clear()
        for node, for_good in leaving.items():
            known = 0 if self._windows is None else self._windows.down_until(node, now)
            self.down[node] = Outage(node, now, NEVER if for_good else known or now + self._mean_repair)
            change_nodes((node, node + 1), True)
        outages = [self.down[node] for node in leaving], [self.down.pop(node) for node in entering]
        for node in entering:
            change_nodes((node, node + 1), False)
        return outages

    def discard_images(self, failed: Iterable[Outage]) -> None:
        """Discard what is suspended in the memory of nodes that have failed; the jobs go on from the checkpoint store."""
        nodes = {outage.node for outage in failed}
        for job in [self._jobs[job_id] for job_id in self._pool.waiting]:
            if (image := job.image) is not None and image.columns and holds_any(image.columns, nodes):
                self.discard_image(job)

    def discard_image(self, job: JobInSystem) -> None:
        """Discard what is suspended in the memory of nodes of a waiting job; it goes on from the checkpoint store."""
        image = job.image
        assert image is not None
        if job.sizes is not None:
            self._saved.lose(job)
            discard_saved(job, Status.FAILED, self._records, self._ledger)
        elif discarded := self._saved.lose(job):
            self._records.discarded(job.index, discarded)
            self._ledger.charge_work(-image.nodes * discarded, image.nodes * discarded)
