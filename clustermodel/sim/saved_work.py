"""Saved work of preempted jobs: where it is stored, what saving and restoring cost, and the memory it needs.

A preempted job waits again.  What it has executed is discarded (*kill*), or becomes its image: in the checkpoint store
(*checkpoint*), or in the memory of its nodes (*suspend*).  The gang spends what that costs on its own nodes, when it has
been stopped and before it goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from clustermodel.errors import DecisionError, SpecificationError, counted
from clustermodel.job import UNSET
from clustermodel.machine import Machine
from clustermodel.policies.view import RUNNING, RunningJob
from clustermodel.recording.ledger import Account
from clustermodel.recording.run_attempts import Status
from clustermodel.schedule.free_memory import FreeMemory
from clustermodel.schedule.node_set import NodeSet, as_mask, from_mask, text
from clustermodel.schedule.profile import Profile
from clustermodel.sim.checkpoint_store import SharedBandwidth
from clustermodel.sim.job_process import ENDS, SAVING, Execution, JobInSystem, image_after
from clustermodel.theory.checkpointing import daly_interval_s, young_interval_s
from clustermodel.ticks import duration_to_ticks, to_seconds
from clustermodel.validation import to_gib

if TYPE_CHECKING:
    from clustermodel.sim.context import RunContext

Overhead = tuple[Account, int]  # what a gang spends time on without executing, and for how long, ticks
TRANSFERS: Final = (Account.CHECKPOINT, Account.RESTART)  # overheads that take room in the checkpoint store
_BYTES_PER_KIB = 1024


class SavedWork:
    """The costs of saving and restoring, and the memory that jobs have."""

    def __init__(self, run: RunContext) -> None:
        machine = run.machine
        self.costs = TransferCosts(machine)  # what checkpoints and restarts cost
        self._restarts_at_starts = machine.checkpointing.restart_charge == "on-start"
        self._switch = machine.switch_ticks
        self._quantum = machine.time_slicing.quantum
        self.memory = NodeMemory(run)  # the memory of the nodes

    def can_suspend(self, gang: RunningJob) -> bool:
        """Return whether the nodes of a gang can hold one more suspended task each."""
        return gang.fetching or self.memory.has_room(gang.columns)

    def prepare_to_stop(self, gang: Execution, how: Status) -> None:
        """Check that a running gang can be stopped, and take the memory for its image if it is suspended."""
        job_id = gang.job.id
        if how in SAVING and gang.stopping:
            raise DecisionError(f"job {job_id} cannot be preempted: it has been already, and still holds its nodes")
        if how is Status.CHECKPOINTED and self.costs.tasks_at_a_time == 0:
            raise DecisionError(f"job {job_id} cannot be checkpointed: the store takes no tasks (max_tasks_per_slice=0)")
        if how is Status.SUSPENDED and not self.can_suspend(gang):
            full = f"a node of {text(gang.columns)} holds {self.memory.most_suspended} suspended tasks already"
            raise DecisionError(f"job {job_id} cannot be suspended: {full}")
        if gang.stopping and gang.outcome is Status.SUSPENDED:  # killed while it is being suspended
            self.memory.note_suspended(gang.columns, -1)
        elif how is Status.SUSPENDED and not gang.fetching:
            self.memory.note_suspended(gang.columns, 1)

    def require_movable(self, gang: Execution) -> None:
        refused = f"job {gang.job.id} cannot migrate"
        if gang.stopping:
            raise DecisionError(f"{refused}: it has been preempted, and still holds its nodes")
        if gang.migrating:
            raise DecisionError(f"{refused}: it has not been restarted yet where it migrated last")
        if self.costs.tasks_at_a_time == 0:
            raise DecisionError(f"{refused}: the store takes no tasks (max_tasks_per_slice=0)")

    def overheads_of_saving(self, gang: Execution, how: Status) -> list[Overhead]:
        """Return what a gang spends before it frees its nodes; nothing if its image is still where it was."""
        if how not in SAVING or gang.fetching:
            return []
        return self.overheads_of_a_checkpoint(gang) if how is Status.CHECKPOINTED else _costing([self._one_switch])

    def overheads_of_restoring(self, job: JobInSystem, columns: NodeSet) -> list[Overhead]:
        """Return what a saved job spends on ``columns`` before it goes on there; the transfers are those of one round."""
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

    def in_all(self, overheads: list[Overhead], nodes: int) -> list[Overhead]:
        """Return the same overheads with all rounds of a gang's transfers."""
        rounds = self.costs.rounds(nodes)
        return [(account, ticks * (rounds if account in TRANSFERS else 1)) for account, ticks in overheads]

    @property
    def _one_switch(self) -> Overhead:
        return Account.CONTEXT_SWITCH, self._switch

    def overheads_of_a_checkpoint(self, gang: Execution) -> list[Overhead]:
        return _costing([(Account.CHECKPOINT, self.costs.of(gang.owner, gang.nodes)[0])])

    def checkpoints_of(self, job: JobInSystem, nodes: int) -> tuple[int | None, int]:
        """Return how long a gang executes between two periodic checkpoints, if it has some, and how long one takes, ticks."""
        interval = self.costs.interval(job, nodes)
        return interval, 0 if interval is None else self.costs.in_all(job, nodes)[0]

    def holding(self, job: JobInSystem, ticks: int) -> int:
        """Return how long a waiting job can be expected to hold nodes from now on if it executes for ``ticks`` in all."""
        nodes, image, restoring = job.queued.nodes, job.image, 0
        if image is not None:
            nodes, ticks = image.nodes, max(ticks - image.work, 1)
            restoring = self.costs.in_all(job, nodes)[1]
        interval, checkpoint = self.checkpoints_of(job, nodes)
        checkpoints = 0 if interval is None else (ticks - 1) // interval
        return restoring + ticks + checkpoints * checkpoint

    def restored(self, gang: Execution, since: int | None = None) -> None:
        """Note that what had been saved of a gang's job is on its nodes again; ``since`` when, ticks, ``None`` is now."""
        job = gang.owner
        image = job.image
        assert image is not None
        self.memory.note_suspended(image.columns, -1)
        job.image = image.restored_on(gang.columns)
        gang.enter(RUNNING)
        self.memory.hold(job, gang.columns, since=since)

    def ended(self, gang: Execution, executed: int) -> int:
        """Settle what is saved at the end of a run attempt; return how much work is discarded, of earlier ones too, ticks."""
        job, before = gang.owner, gang.owner.image
        if before is None and gang.outcome in ENDS and self.memory.free is None:
            return 0
        if before is not None and gang.fetching:
            if gang.outcome in SAVING:
                self.memory.hold(job, before.columns)
                return 0  # it was stopped before it had its image, which is where it was
            self.memory.note_suspended(before.columns, -1)
        job.image, discarded = image_after(
            before, gang.outcome, executed, gang.nodes, gang.columns, checkpointed=gang.checkpointed
        )
        if self.memory.free is not None:
            self.memory.hold(job, job.suspended_on)
        return discarded

    def lose(self, job: JobInSystem) -> int:
        """Discard what is saved of a waiting job in the memory of nodes; return how much, ticks."""
        image = job.image
        assert image is not None
        self.memory.note_suspended(image.columns, -1)
        self.memory.hold(job)
        job.image, discarded = image_after(image, Status.FAILED, 0, image.nodes, ())
        return discarded


def _costing(overheads: list[Overhead]) -> list[Overhead]:
    return [(account, ticks) for account, ticks in overheads if ticks]


class TransferCosts:
    """How long a job's checkpoints and restarts take, and how often it is checkpointed.

    The job's own costs count if it has some, else what the bandwidth of the store says, else the machine's constants.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        costs = machine.checkpointing
        self._constants = costs.checkpoint, costs.restart
        self._store = store = costs.store
        self._bandwidth = None if store is None else SharedBandwidth(store.bandwidth, store.node_bandwidth)
        self.tasks_at_a_time = costs.max_tasks_per_slice if store is None else store.max_concurrent_tasks
        """The most tasks that the store takes at a time; ``None`` is no limit."""
        self._spreads_migrations = costs.counts == "spread"
        self.are_periodic = costs.interval_s is not None  # whether gangs are checkpointed periodically
        self._intervals: dict[tuple[int, int], int | None] = {}  # nodes, ticks of a checkpoint -> the machine's interval

    def of(self, job: JobInSystem, nodes: int) -> tuple[int, int]:
        """Return how long a checkpoint and a restart of a job take on ``nodes``, ticks; of constant costs, one round."""
        own_checkpoint, own_restart = job.row.checkpoint, job.row.restart
        if UNSET not in (own_checkpoint, own_restart):
            return own_checkpoint, own_restart
        checkpoint, restart = self._constants if self._bandwidth is None else self._by_bandwidth(job, nodes)
        return checkpoint if own_checkpoint == UNSET else own_checkpoint, restart if own_restart == UNSET else own_restart

    def in_all(self, job: JobInSystem, nodes: int) -> tuple[int, int]:
        """Return :meth:`of` all rounds together, if the store has room at once."""
        checkpoint, restart = self.of(job, nodes)
        return checkpoint * self.rounds(nodes), restart * self.rounds(nodes)

    def _by_bandwidth(self, job: JobInSystem, nodes: int) -> tuple[int, int]:
        assert self._bandwidth is not None
        if job.row.memory == UNSET:
            raise SpecificationError(
                f"CheckpointStore: job {job.queued.id} has no memory_gib, from which the size of its image follows; "
                "give the memory of each job, or costs of its own"
            )
        size = nodes * job.row.memory * _BYTES_PER_KIB
        ticks = self._bandwidth.ticks_alone(min(nodes, self.tasks_at_a_time or nodes), size)
        return ticks, ticks

    def rounds(self, nodes: int) -> int:
        """Return in how many rounds a gang's tasks are written or read; one, where the bandwidth says how long all take."""
        return 1 if self._bandwidth is not None else -(-nodes // (self.tasks_at_a_time or nodes))

    def rounds_of_migration(self, moved: int) -> int:
        """Return over how many slices the migration of a gang in rows is spread, of which so many tasks get another node."""
        if not self._spreads_migrations or not self.tasks_at_a_time:
            return 1
        return max(1, -(-moved // self.tasks_at_a_time))

    def interval(self, job: JobInSystem, nodes: int) -> int | None:
        """Return how long a gang executes between two periodic checkpoints, ticks; ``None``: there are none."""
        asked = self._machine.checkpointing.interval_s
        if asked is None:
            return None
        if (own := job.row.checkpoint_interval) != UNSET:
            return own
        if asked == "own":
            return None
        ticks = self.in_all(job, nodes)[0] if isinstance(asked, str) else 0
        if (nodes, ticks) not in self._intervals:
            if isinstance(asked, str) and not ticks:
                raise SpecificationError(
                    f"Checkpointing.interval_s: {asked!r} is not allowed for job {job.queued.id} "
                    f"({counted(nodes, 'node')}), whose checkpoints take no time; it must be a number of seconds"
                )
            self._intervals[nodes, ticks] = self._interval(asked, nodes, ticks)
        return self._intervals[nodes, ticks]

    def _interval(self, asked: float | str, nodes: int, ticks: int) -> int:
        """Return the interval in seconds, or the one of a name for checkpoints that take so many ticks."""
        if isinstance(asked, str):
            failures = self._machine.failures
            assert failures is not None
            formula = {"young": young_interval_s, "daly": daly_interval_s}[asked]
            asked = formula(to_seconds(ticks), failures.node_mtbf_s(self._machine.processors) / nodes)
        return max(1, duration_to_ticks(asked))


class NodeMemory:
    """The memory of the nodes: the tasks that run on a node, in whichever rows, and those suspended there must fit."""

    def __init__(self, run: RunContext) -> None:
        machine = run.machine
        self._env, self._log = run.env, run.records.memory
        self.most_suspended = machine.suspended_per_node
        # How many more suspended tasks each node holds: the steps of this profile are node numbers, not times.
        self._room = Profile(self.most_suspended or 0)
        self._of_a_node = machine.node_memory
        self.free = None if self._of_a_node is None else FreeMemory.of(machine.nodes, self._of_a_node)
        """The free memory; ``None`` where memory is not limited."""
        self._held: dict[int, NodeSet] = {}  # job id -> the nodes on which it has memory

    def as_planned(self) -> FreeMemory | None:
        return None if self.free is None else self.free.copy()

    def hold(self, job: JobInSystem, *places: NodeSet | None, since: int | None = None) -> None:
        """Let a job have its memory on the nodes of all ``places``, and on no others; ``since`` when, ``None`` is now."""
        if self.free is None:
            return
        kib, number = job.queued.memory, job.queued.id
        if before := self._held.pop(number, None):
            self.free.give_back(before, kib)
        nodes = 0
        for place in places:
            nodes |= as_mask(place or ())
        if nodes and kib:
            self._held[number] = columns = from_mask(nodes)
            self.free.take(columns, kib)
        if more := kib * (nodes.bit_count() - sum(high - low for low, high in _ranges(before or ()))):
            self._log.changed(self._env.now if since is None else since, more)

    def require_room(self, running: Iterable[Execution]) -> None:
        """Check that the tasks of all nodes fit, now that the decisions of the present have been carried out."""
        if self.free is None or self._of_a_node is None:
            return
        node, free = self.free.least()
        if free < 0:
            in_all, of_a_node = to_gib(self._of_a_node - free), to_gib(self._of_a_node)
            runs = {gang.job.id for gang in running}
            there = [number for number, nodes in self._held.items() if as_mask(nodes) >> node & 1]
            tasks = ", ".join(f"{number}{'' if number in runs else ' (suspended)'}" for number in sorted(there))
            raise DecisionError(f"node {node} has {of_a_node:g} GiB of memory, and jobs {tasks} need {in_all:g} GiB there")

    def nodes_for(self, job: JobInSystem) -> int:
        """Return the nodes with enough free memory for a task of a job, a bitmask; where it is suspended it has its memory."""
        assert self.free is not None
        return self.free.nodes_with(job.queued.memory) | as_mask(job.suspended_on or ())

    def has_room(self, columns: NodeSet) -> bool:
        """Return whether each of ``columns`` can hold one more suspended task."""
        return self.most_suspended is None or all(self._room.fits_at(low, 1, high - low) for low, high in _ranges(columns))

    def note_suspended(self, columns: NodeSet | None, tasks: int) -> None:
        """Note that each of ``columns`` holds so many more suspended tasks, or fewer if negative."""
        if self.most_suspended is not None and columns is not None:
            for low, high in _ranges(columns):
                self._room.release(low, high, -tasks)


def _ranges(columns: NodeSet) -> Iterator[tuple[int, int]]:
    return zip(columns[::2], columns[1::2], strict=True)
