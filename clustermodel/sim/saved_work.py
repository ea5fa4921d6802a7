"""Saved work of preempted jobs: where it is stored, what saving and restoring spend, and the memory it needs.

A preempted job waits again.  What it has executed is discarded (*kill*), or becomes its image: in the checkpoint store
(*checkpoint*), or in the memory of its nodes (*suspend*).  The gang spends what that costs on its own nodes, when it has
been stopped and before it goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clustermodel.errors import DecisionError
from clustermodel.machine.node_set import NodeSet, as_mask, count, from_mask, holds_any, text
from clustermodel.plans.free_memory import FreeMemory
from clustermodel.plans.profile import Profile
from clustermodel.policies.view import RESTORING, RETURNING, RUNNING, STOPPING, RunningJob
from clustermodel.recording.ledger import Account
from clustermodel.recording.run_attempts import PREEMPTIONS, Status
from clustermodel.sim.job_process import ENDS, SAVING, Execution, JobInSystem, Overhead, image_after
from clustermodel.sim.transfer_costs import TransferCosts
from clustermodel.validation import to_gib

if TYPE_CHECKING:
    from clustermodel.sim.simulation import RunContext

TRANSFERS: Final = (Account.CHECKPOINT, Account.RESTART)  # overheads that take room in the checkpoint store


class SavedWork:
    """The overheads of saving and restoring (transfers of one round, but for :meth:`in_all`), and the memory of the nodes."""

    # The tasks that run on a node, in whichever rows, and those suspended there must fit.

    def __init__(self, run: RunContext) -> None:
        machine, self._run = run.machine, run
        self.costs = TransferCosts(machine)  # what checkpoints and restarts cost
        self._restarts_at_starts = machine.checkpointing.restart_charge == "on-start"
        self._job_costs = run.costs
        self._quantum = machine.time_slicing.quantum
        self._most_suspended, of_nodes = machine.suspended_per_node, machine.node_memories
        # How many more suspended tasks each node holds; the steps of this profile are node numbers, not times.
        self._suspended = Profile(self._most_suspended or 0)
        self._of_nodes = of_nodes
        self.free = None if of_nodes is None else FreeMemory.of_nodes(of_nodes, machine.node_sizes)  # if it is limited
        self.of_empty = None if self.free is None else self.free.copy()  # the same on an empty machine
        self.is_busy_at_starts = self.free is not None or self.costs.are_periodic  # for any job; always for saved ones
        self._is_shared_in_space = of_nodes is not None and machine.has_shared_nodes
        self._boot = machine.boot  # how long nodes take to boot that are switched off when they are idle, ticks
        self._in_memory: set[int] = set()  # jobs that have been suspended, by id; some of them go on again

    def can_suspend(self, gang: RunningJob) -> bool:
        """Return whether the nodes of a gang can hold one more suspended task each."""
        if gang.fetching or self._most_suspended is None:
            return True
        ranges = zip(gang.columns[::2], gang.columns[1::2], strict=True)
        return all(self._suspended.fits_at(low, 1, high - low) for low, high in ranges)

    def begin(self, gang: Execution) -> None:
        """Let a gang that starts have its memory, plan its periodic checkpoints, and restore what was saved of the job."""
        job = gang.owner
        if self.free is not None:
            self.hold(job, gang.columns, job.suspended_on)
        if self.costs.are_periodic:
            gang.plan_checkpoints(*self.checkpoints_of(job, gang.nodes))
        if job.image is not None:
            gang.begin_by_restoring(self.in_all(self.restoring(job, gang.columns), gang.nodes))

    def stop(self, gang: Execution, how: Status) -> None:
        """Let a running gang execute no more, and take the memory for its image if it is suspended."""
        refused = f"job {gang.job.id} cannot be"
        if how in SAVING and gang.stopping:
            raise DecisionError(f"{refused} preempted: it has been already, and still holds its nodes")
        if how is Status.CHECKPOINTED and self.costs.tasks_at_a_time == 0:
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

    def saving(self, gang: Execution, how: Status) -> list[Overhead]:
        """Return what a gang spends before it frees its nodes; nothing if its image is still where it was."""
        if how not in SAVING or gang.fetching:
            return []
        return self.checkpoint(gang) if how is Status.CHECKPOINTED else self._switch(gang.owner, gang.nodes)

    def restoring(self, job: JobInSystem, columns: NodeSet) -> list[Overhead]:
        """Return what a saved job spends on ``columns`` before it goes on there."""
        image = job.image
        assert image is not None
        if image.columns == columns:
            return self._switch(job, image.nodes)
        if self.costs.tasks_at_a_time == 0:
            where = f"it is in the memory of nodes {text(image.columns or ())}"
            raise DecisionError(f"job {job.queued.id} cannot start elsewhere: {where}, and the store takes no tasks")
        checkpoint, restart = self._at_start(job, image.nodes)
        return _costing((Account.CHECKPOINT, 0 if image.columns is None else checkpoint), (Account.RESTART, restart))

    def migration(self, gang: Execution, rounds: int = 1) -> list[Overhead]:
        """Return what a gang spends on its new nodes when it migrates."""
        # A round begins a quantum of its own slices after the one before it, or later, when that is over.
        checkpoint, restart = self._at_start(gang.owner, gang.nodes)
        transfers = _costing((Account.CHECKPOINT, checkpoint), (Account.RESTART, restart))
        if rounds == 1 or not transfers:
            return transfers
        waiting = _costing((Account.BLOCKED, max(0, self._quantum - checkpoint - restart)))
        return [*(transfers + waiting) * (rounds - 1), *transfers]

    def _at_start(self, job: JobInSystem, nodes: int) -> tuple[int, int]:
        """Return what a checkpoint and a restart cost when a gang starts or migrates, ticks: restarts may be charged later."""
        checkpoint, restart = self.costs.of(job, nodes)
        return checkpoint, restart if self._restarts_at_starts else 0

    def checkpoint(self, gang: Execution) -> list[Overhead]:
        return _costing((Account.CHECKPOINT, self.costs.of(gang.owner, gang.nodes)[0]))

    def in_all(self, overheads: list[Overhead], nodes: int) -> list[Overhead]:
        """Return the same overheads with all rounds of a gang's transfers."""
        rounds = self.costs.rounds(nodes)
        return [(account, ticks * (rounds if account in TRANSFERS else 1)) for account, ticks in overheads]

    def checkpoints_of(self, job: JobInSystem, nodes: int) -> tuple[int | None, int]:
        """Return how long a gang executes between two periodic checkpoints, if it has some, and how long one takes, ticks."""
        interval = self.costs.interval(job, nodes)
        return interval, 0 if interval is None else self.costs.in_all(job, nodes)[0]

    def _switch(self, job: JobInSystem, nodes: int) -> list[Overhead]:
        return _costing((Account.CONTEXT_SWITCH, self._job_costs.switch(job.row, nodes)))

    def holding(self, job: JobInSystem, ticks: int, on: int | None = None) -> int:
        """Return how long a waiting job can be expected to hold nodes from now on if it executes for ``ticks`` in all.

        It does so on as many nodes as it asked for, or was saved with, unless its start-up and epilog are those ``on`` others.
        """
        nodes, image, restoring = job.queued.nodes, job.image, 0
        if image is not None:
            nodes, ticks = image.nodes, max(ticks - image.work, 1)
            checkpoint, restoring = self.costs.in_all(job, nodes)
            if image.columns is not None:  # in memory: of other nodes at worst
                restoring = max(checkpoint + restoring, self._job_costs.switch(job.row, nodes))
        interval, checkpoint = self.checkpoints_of(job, nodes)
        checkpoints = 0 if interval is None else (ticks - 1) // interval
        held = self._boot + restoring + ticks + checkpoints * checkpoint
        if self._job_costs.occupy:
            nodes = on or nodes
            held += self._job_costs.startup(job.row, nodes) + self._job_costs.epilog(job.row, nodes)
        return held

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
        if gang.outcome is Status.SUSPENDED and self._run.switched_off is not None:
            self._in_memory.add(gang.job.id)
        return discarded

    def nodes_with_images(self) -> int:
        """Return the nodes whose memory keeps suspended jobs, a bitmask."""
        jobs = self._run.jobs
        self._in_memory = {number for number in self._in_memory if number in jobs and jobs[number].suspended_on}
        mask = 0
        for number in self._in_memory:
            mask |= as_mask(jobs[number].suspended_on or ())
        return mask

    def must_stay_on(self, job: JobInSystem) -> NodeSet | None:
        """Return the nodes on which alone a job can go on that is suspended in their memory; ``None`` if it can elsewhere."""
        return job.suspended_on if self.costs.tasks_at_a_time == 0 else None

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
            self._run.records.memory_changed(self._run.env.now if since is None else since, kib * more)

    def require_room(self) -> None:
        """Check that the tasks of all nodes fit, now that the decisions of the present have been carried out."""
        if self.free is None or self._of_nodes is None:
            return
        node, free = self.free.least()
        if free < 0:
            in_all, of_a_node = to_gib(self._of_nodes[node] - free), to_gib(self._of_nodes[node])
            there = sorted(number for number, job in self._run.jobs.items() if holds_any(job.memory_on, [node]))
            tasks = ", ".join(f"{number}{'' if number in self._run.running else ' (suspended)'}" for number in there)
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


def _costing(*overheads: Overhead) -> list[Overhead]:
    return [(account, ticks) for account, ticks in overheads if ticks]
