"""What preempted jobs have executed so far: where that is kept, what it costs to save and to restore, and the room for it.

A preempted job waits again.  What it has executed is discarded (*kill*), or becomes its image: in the checkpoint store
(*checkpoint*), or in the memory of its nodes (*suspend*).  The gang spends what that costs on its own nodes, when it has
been stopped and before it goes on.
"""

from __future__ import annotations

from typing import Final

from clustermodel.errors import DecisionError
from clustermodel.machine import Machine
from clustermodel.policies.view import RunningJob
from clustermodel.recording.ledger import Account
from clustermodel.recording.run_attempts import Status
from clustermodel.schedule.node_set import NodeSet, text
from clustermodel.sim.job_image import ENDS, SAVING, image_after
from clustermodel.sim.job_process import Execution, JobInSystem
from clustermodel.sim.node_memory import NodeMemory
from clustermodel.sim.transfer_costs import TransferCosts

Overhead = tuple[Account, int]
"""What a gang spends time on without executing, and for how long, ticks."""
TRANSFERS: Final = (Account.CHECKPOINT, Account.RESTART)
"""Overheads that take room in the checkpoint store."""


class SavedWork:
    """The costs of saving and restoring, and the memory that jobs have.

    Args:
        machine: its costs and limits.
    """

    def __init__(self, machine: Machine) -> None:
        self.costs = TransferCosts(machine)
        """What checkpoints and restarts cost."""
        self._restarts_at_starts = machine.checkpointing.restart_charge == "on-start"
        self._switch = machine.switch_ticks
        self._quantum = machine.time_slicing.quantum
        self.memory = NodeMemory(machine)
        """The memory of the nodes."""

    def can_suspend(self, gang: RunningJob) -> bool:
        """Return whether the nodes of a gang can hold one more suspended task each."""
        return gang.fetching or self.memory.has_room(gang.columns)

    def prepare_to_stop(self, gang: Execution, how: Status) -> None:
        """Check that a running gang can be stopped, and take the memory for its image if it is suspended.

        Raises:
            DecisionError: it has been preempted already, or the store or the memory of its nodes has no room for it.
        """
        job_id = gang.job.id
        if how in SAVING and gang.stopping:
            raise DecisionError(f"job {job_id} cannot be preempted: it has been already, and still holds its nodes")
        if how is Status.CHECKPOINTED and self.costs.tasks_at_a_time == 0:
            raise DecisionError(f"job {job_id} cannot be checkpointed: the store takes no tasks (max_tasks_per_slice=0)")
        if how is Status.SUSPENDED and not self.can_suspend(gang):
            full = f"a node of {text(gang.columns)} holds {self.memory.most_suspended} suspended tasks already"
            raise DecisionError(f"job {job_id} cannot be suspended: {full}")
        if gang.stopping and gang.outcome is Status.SUSPENDED:  # killed while it is being suspended
            self.memory.resume(gang.columns)
        elif how is Status.SUSPENDED and not gang.fetching:
            self.memory.suspend(gang.columns)

    def require_movable(self, gang: Execution) -> None:
        """Check that a gang can migrate.

        Raises:
            DecisionError: it has been preempted, it migrates already, or the store takes no tasks.
        """
        refused = f"job {gang.job.id} cannot migrate"
        if gang.stopping:
            raise DecisionError(f"{refused}: it has been preempted, and still holds its nodes")
        if gang.migrating:
            raise DecisionError(f"{refused}: it has not been restarted yet where it migrated last")
        if self.costs.tasks_at_a_time == 0:
            raise DecisionError(f"{refused}: the store takes no tasks (max_tasks_per_slice=0)")

    # What it costs.

    def overheads_of_saving(self, gang: Execution, how: Status) -> list[Overhead]:
        """Return what a gang spends before it frees its nodes; nothing if its image is still where it was."""
        if how not in SAVING or gang.fetching:
            return []
        return self.overheads_of_a_checkpoint(gang) if how is Status.CHECKPOINTED else _costing([self._one_switch])

    def overheads_of_restoring(self, job: JobInSystem, columns: NodeSet) -> list[Overhead]:
        """Return what a saved job spends on ``columns`` before it goes on there; the transfers are those of one round.

        Raises:
            DecisionError: it is in the memory of other nodes, and the store takes no tasks.
        """
        image = job.image
        assert image is not None
        if image.columns == columns:
            return _costing([self._one_switch])
        if self.costs.tasks_at_a_time == 0:
            where = f"it is in the memory of nodes {text(image.columns or ())}"
            raise DecisionError(f"job {job.queued.id} cannot start elsewhere: {where}, and the store takes no tasks")
        checkpoint, restart = self._at_start(job, image.nodes)
        writing = [] if image.columns is None else [(Account.CHECKPOINT, checkpoint)]
        return _costing([*writing, (Account.RESTART, restart)])

    def overheads_of_migration(self, gang: Execution, rounds: int = 1) -> list[Overhead]:
        """Return what a gang spends on its new nodes when it migrates; the transfers are those of one round.

        A round begins a quantum of its own slices after the one before it, or later, when that is over.
        """
        checkpoint, restart = self._at_start(gang.owner, gang.nodes)
        transfers = _costing([(Account.CHECKPOINT, checkpoint), (Account.RESTART, restart)])
        if not transfers:
            return []
        waiting = _costing([(Account.BLOCKED, max(0, self._quantum - checkpoint - restart))])
        return [*(transfers + waiting) * (rounds - 1), *transfers]

    def _at_start(self, job: JobInSystem, nodes: int) -> tuple[int, int]:
        """Return what a checkpoint and a restart cost when a gang starts or migrates, ticks: restarts may be charged later."""
        checkpoint, restart = self.costs.of(job, nodes)
        return checkpoint, restart if self._restarts_at_starts else 0

    def restart_ticks(self, job: JobInSystem, nodes: int) -> int:
        """Return how long a restart of a job on ``nodes`` takes if the store has room at once, all rounds together, ticks."""
        return self.costs.of(job, nodes)[1] * self.costs.rounds(nodes)

    def in_all(self, overheads: list[Overhead], nodes: int) -> list[Overhead]:
        """Return the same overheads with all rounds of a gang's transfers."""
        rounds = self.costs.rounds(nodes)
        return [(account, ticks * (rounds if account in TRANSFERS else 1)) for account, ticks in overheads]

    @property
    def _one_switch(self) -> Overhead:
        return Account.CONTEXT_SWITCH, self._switch

    # Periodic checkpoints.

    def overheads_of_a_checkpoint(self, gang: Execution) -> list[Overhead]:
        """Return what a gang spends on a checkpoint; the transfer is that of one round."""
        return _costing([(Account.CHECKPOINT, self.costs.of(gang.owner, gang.nodes)[0])])

    def checkpoints_of(self, job: JobInSystem, nodes: int) -> tuple[int | None, int]:
        """Return how long a gang of a job executes between two periodic checkpoints, and how long one takes, ticks.

        The interval is ``None`` where there are none; the time is that of all rounds, if the store has room at once.
        """
        interval = self.costs.interval(job, nodes)
        return interval, 0 if interval is None else self.costs.of(job, nodes)[0] * self.costs.rounds(nodes)

    def holding(self, job: JobInSystem, ticks: int) -> int:
        """Return how long a waiting job that starts now can be expected to hold its nodes to execute for ``ticks`` in all.

        That is without what has been saved of it, but with restoring that and with periodic checkpoints.
        """
        nodes, image, restoring = job.queued.nodes, job.image, 0
        if image is not None:
            nodes, ticks = image.nodes, max(ticks - image.work, 1)
            restoring = self.costs.of(job, nodes)[1] * self.costs.rounds(nodes)
        interval, checkpoint = self.checkpoints_of(job, nodes)
        checkpoints = 0 if interval is None else (ticks - 1) // interval
        return restoring + ticks + checkpoints * checkpoint

    # What becomes of images.

    def restored(self, gang: Execution, since: int | None = None) -> None:
        """Note that what had been saved of a gang's job is on its nodes again; ``since`` when, ticks, ``None`` is now."""
        job = gang.owner
        image = job.image
        assert image is not None
        self.memory.resume(image.columns)
        job.image = image.restored_on(gang.columns)
        gang.fetching = False
        self.memory.hold(job, gang.columns, since=since)

    def ended(self, gang: Execution, executed: int) -> int:
        """Settle what is saved of a gang's job at the end of a run attempt; return how much work is discarded, ticks.

        What was saved before may be discarded now as well: then it is more than the attempt has executed.
        """
        job, before = gang.owner, gang.owner.image
        if before is None and gang.outcome in ENDS and self.memory.free is None:
            return 0
        if before is not None and gang.fetching:
            if gang.outcome in SAVING:
                self.memory.hold(job, before.columns)
                return 0  # it was stopped before it had its image, which is where it was
            self.memory.resume(before.columns)
        job.image, discarded = image_after(
            before, gang.outcome, executed, gang.nodes, gang.columns, checkpointed=gang.checkpointed
        )
        if self.memory.free is not None:
            self.memory.hold(job, job.suspended_on)
        return discarded

    def lose(self, job: JobInSystem) -> int:
        """Discard what is saved of a waiting job in the memory of nodes; return how much, ticks.

        It goes on from what is in the checkpoint store.
        """
        image = job.image
        assert image is not None
        self.memory.resume(image.columns)
        self.memory.hold(job)
        job.image, discarded = image_after(image, Status.FAILED, 0, image.nodes, ())
        return discarded


def _costing(overheads: list[Overhead]) -> list[Overhead]:
    return [(account, ticks) for account, ticks in overheads if ticks]
