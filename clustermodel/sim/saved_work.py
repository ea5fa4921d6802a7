"""Saved work of preempted jobs: where it is stored, and the memory it needs.

A preempted job waits again.  What it has executed is discarded (*kill*), or becomes its image: in the checkpoint store
(*checkpoint*), or in the memory of its nodes (*suspend*).  What that costs are phases of its run attempts
(:mod:`clustermodel.sim.phases`).
"""

from __future__ import annotations

from collections.abc import Mapping

from clustermodel.errors import DecisionError
from clustermodel.machine.machine import Machine
from clustermodel.machine.node_set import NodeSet, as_mask, count, from_mask, holds_any, text
from clustermodel.plans.free_memory import FreeMemory
from clustermodel.plans.profile import Profile
from clustermodel.policies.view import RESTORING, RETURNING, RUNNING, STOPPING, RunningJob
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.run_attempts import PREEMPTIONS, Status
from clustermodel.sim.events import Clock
from clustermodel.sim.job_process import ENDS, SAVING, Execution, JobInSystem, image_after
from clustermodel.sim.transfer_costs import TransferCosts
from clustermodel.validation import to_gib


class SavedWork:
    """What is saved of each job, and the memory of the nodes."""

    # The tasks that run on a node, in whichever rows, and those suspended there must fit.

    def __init__(
        self, env: Clock, machine: Machine, transfers: TransferCosts, records: JobRecords, jobs: Mapping[int, JobInSystem],
        running: Mapping[int, Execution],
    ) -> None:  # fmt: skip
        self._env, self._transfers, self._records, self._jobs, self._running = env, transfers, records, jobs, running
        self._notes_images = machine.idle_off is not None  # whether it matters which nodes have images in their memory
        self._most_suspended, of_nodes = machine.suspended_per_node, machine.node_memories
        # How many more suspended tasks each node holds; the steps of this profile are node numbers, not times.
        self._suspended = Profile(self._most_suspended or 0)
        self._of_nodes = of_nodes
        self.free = None if of_nodes is None else FreeMemory.of_nodes(of_nodes, machine.node_sizes)  # if it is limited
        self.of_empty = None if self.free is None else self.free.copy()  # the same on an empty machine
        self._is_shared_in_space = of_nodes is not None and machine.has_shared_nodes
        self._in_memory: set[int] = set()  # jobs that have been suspended, by id; some of them go on again

    def can_suspend(self, gang: RunningJob) -> bool:
        """Return whether the nodes of a gang can hold one more suspended task each."""
        if gang.fetching or self._most_suspended is None:
            return True
        ranges = zip(gang.columns[::2], gang.columns[1::2], strict=True)
        return all(self._suspended.fits_at(low, 1, high - low) for low, high in ranges)

    def stop(self, gang: Execution, how: Status) -> None:
        """Let a running gang execute no more, and take the memory for its image if it is suspended."""
        refused = f"job {gang.job.id} cannot be"
        if how in SAVING and gang.stopping:
            raise DecisionError(f"{refused} preempted: it has been already, and still holds its nodes")
        if how is Status.CHECKPOINTED and self._transfers.tasks_at_a_time == 0:
            raise DecisionError(f"{refused} checkpointed: the store takes no tasks (max_tasks_per_slice=0)")
        if how is Status.SUSPENDED and self._is_shared_in_space:
            raise DecisionError(f"{refused} suspended: several jobs share the memory of a node")
        if how is Status.SUSPENDED and not self.can_suspend(gang):
            full = f"a node of {text(gang.columns)} holds {self._most_suspended} suspended tasks already"
            raise DecisionError(f"{refused} suspended: {full}")
        if gang.stopping and gang.outcome is Status.SUSPENDED:  # killed while it is being suspended
            self._note_suspended(gang.columns, -1)
        elif how is Status.SUSPENDED and not gang.fetching:
            self._note_suspended(gang.columns, 1)
        gang.outcome = how
        if how in PREEMPTIONS and not gang.stopping:  # otherwise it is killed while it is saved
            gang.enter(RETURNING if gang.state is RESTORING else STOPPING)

    def restored(self, gang: Execution, since: int | None = None) -> None:
        """Note that what had been saved of a gang's job is on its nodes again; ``since`` when, ticks, ``None`` is now."""
        job = gang.owner
        image = job.image
        assert image is not None
        self._note_suspended(image.columns, -1)
        # On other nodes than those whose memory had it, it has come through the store.
        stored = image.stored if image.columns in (None, gang.columns) else image.work
        job.image = image._replace(columns=None, stored=stored)
        if stored == image.work:
            job.store_all()
        gang.enter(RUNNING)
        self.hold(job, gang.columns, since=since)

    def ended(self, gang: Execution, executed: int) -> int:
        """Settle what is saved at the end of a run attempt; return how much work is discarded, of earlier ones too, ticks."""
        job, before = gang.owner, gang.owner.image
        if before is None and gang.outcome in ENDS and self.free is None:
            return 0
        if gang.fetching and gang.outcome in SAVING:
            self.hold(job, job.suspended_on)
            return 0  # it was stopped before it had its image, which is where it was, or before its nodes had booted
        if before is not None and gang.fetching:
            self._note_suspended(before.columns, -1)
        job.image, discarded = image_after(
            before, gang.outcome, executed, gang.nodes, gang.columns, checkpointed=gang.checkpointed
        )
        self.hold(job, job.suspended_on)
        if gang.outcome is Status.SUSPENDED and self._notes_images:
            self._in_memory.add(gang.job.id)
        return discarded

    def nodes_with_images(self) -> int:
        """Return the nodes whose memory keeps suspended jobs, a bitmask."""
        jobs = self._jobs
        self._in_memory = {number for number in self._in_memory if number in jobs and jobs[number].suspended_on}
        mask = 0
        for number in self._in_memory:
            mask |= as_mask(jobs[number].suspended_on or ())
        return mask

    def must_stay_on(self, job: JobInSystem) -> NodeSet | None:
        """Return the nodes on which alone a job can go on that is suspended in their memory; ``None`` if it can elsewhere."""
        return job.suspended_on if self._transfers.tasks_at_a_time == 0 else None

    def abandon(self, job: JobInSystem) -> None:
        """Discard all that is saved of a waiting job that never goes on."""
        if job.image is not None:
            self._note_suspended(job.image.columns, -1)
            job.image = None
            self.hold(job)

    def lose(self, job: JobInSystem) -> int:
        """Discard what is saved of a waiting job in the memory of nodes; return how much, ticks."""
        image = job.image
        assert image is not None
        self._note_suspended(image.columns, -1)
        self.hold(job)
        job.image, discarded = image_after(image, Status.FAILED, 0, image.nodes, ())
        return discarded

    def hold(self, job: JobInSystem, *places: NodeSet | None, since: int | None = None) -> None:
        """Let a job have its memory on the nodes of all ``places``, and on no others; ``since`` when, ``None`` is now."""
        kib, before, nodes = job.queued.memory, job.memory_on, 0
        if self.free is None or not kib:
            return
        for place in places:
            nodes |= as_mask(place or ())
        job.memory_on = from_mask(nodes)
        self.free.give_back(before, kib)
        self.free.take(job.memory_on, kib)
        if more := nodes.bit_count() - count(before):
            self._records.memory_changed(self._env.now if since is None else since, kib * more)

    def require_room(self) -> None:
        """Check that the tasks of all nodes fit, now that the decisions of the present have been carried out."""
        if self.free is None or self._of_nodes is None:
            return
        node, free = self.free.least()
        if free < 0:
            in_all, of_a_node = to_gib(self._of_nodes[node] - free), to_gib(self._of_nodes[node])
            there = sorted(number for number, job in self._jobs.items() if holds_any(job.memory_on, [node]))
            tasks = ", ".join(f"{number}{'' if number in self._running else ' (suspended)'}" for number in there)
            raise DecisionError(f"node {node} has {of_a_node:g} GiB of memory, and jobs {tasks} need {in_all:g} GiB there")

    def nodes_for(self, job: JobInSystem) -> int:
        """Return the nodes with enough free memory for a task of a job, a bitmask; where it is suspended it has its memory."""
        assert self.free is not None
        return self.free.nodes_with(job.queued.memory) | as_mask(job.suspended_on or ())

    def _note_suspended(self, columns: NodeSet | None, tasks: int) -> None:
        """Note that each of ``columns`` holds so many more suspended tasks, or fewer if negative."""
        if self._most_suspended is not None and columns is not None:
            for low, high in zip(columns[::2], columns[1::2], strict=True):
                self._suspended.release(low, high, -tasks)
