"""Preemption of gangs that have their nodes to themselves: where their work is kept, and what it costs to keep and to fetch it.

A preempted job waits again.  What it has done so far is lost (*kill*), or is its *image*: in the checkpoint store
(*checkpoint*), or in the memory of its nodes (*suspend*).  The gang's own process spends what that costs, on the gang's
nodes, before it works and after it has been stopped.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final, NamedTuple

from simpy import Event

from clustermodel.errors import DecisionError
from clustermodel.machine import Machine
from clustermodel.policies.interface import QueuedJob, RunningJob
from clustermodel.recording.job_records import JobRecords, Status
from clustermodel.recording.ledger import Account, Ledger
from clustermodel.schedule.node_set import NodeSet, text
from clustermodel.schedule.profile import Profile
from clustermodel.sim.checkpoint_store import CheckpointStore
from clustermodel.sim.events import Clock

_SAVING: Final = (Status.CHECKPOINTED, Status.SUSPENDED)


class Image(NamedTuple):
    """What has been saved of a job."""

    work: int
    """How much of its run time is behind it, ticks."""
    stored: int
    """How much of that is in the checkpoint store, ticks: all of it, unless the image is in memory."""
    nodes: int
    """How many tasks it has; it can go on with no other number of nodes."""
    columns: NodeSet | None = None
    """The nodes whose memory holds it; ``None`` where it is in the checkpoint store."""


class Preemption:
    """The images of all jobs, and the memory and the store that hold them.

    Args:
        env: the simulation.
        machine: its costs.
        ledger: where the costs are charged.
        records: where they are noted.
    """

    def __init__(self, env: Clock, machine: Machine, ledger: Ledger, records: JobRecords) -> None:
        self._env = env
        self._ledger = ledger
        self._records = records
        self._checkpoint = machine.checkpointing.checkpoint
        self._restart = machine.checkpointing.restart
        self._switch = machine.switch_ticks
        self._store = CheckpointStore(env, machine.checkpointing.max_tasks_per_slice)
        self._most_suspended = most = machine.suspended_per_node
        self._room = Profile(0 if most is None else most)  # for how many more tasks each node has memory: steps along the nodes
        self._images: dict[int, Image] = {}  # job id -> what has been saved of it
        self._working_since: dict[int, int] = {}  # id of a running job that has an image -> when it began to work
        self._stopped_at: dict[int, int] = {}  # id of a running job that has been preempted -> when it stopped working

    # What the coordinator asks.

    def image_of(self, job: QueuedJob) -> Image | None:
        """Return what has been saved of a job."""
        return self._images.get(job.id)

    def saved(self, job: QueuedJob) -> int:
        """Return how much of a job's run time has been saved, ticks."""
        image = self._images.get(job.id)
        return image.work if image is not None else 0

    def can_suspend(self, gang: RunningJob) -> bool:
        """Tell whether the memory of a gang's nodes has room for it."""
        if self._most_suspended is None or gang.fetching:
            return True
        return all(self._room.fits_at(low, 1, high - low) for low, high in _ranges(gang.columns))

    def cost_of_fetching(self, job: QueuedJob, columns: NodeSet) -> int:
        """Return for how long ``columns`` are held before a saved job goes on there, ticks, if it need not wait for the store.

        Raises:
            DecisionError: it is in the memory of other nodes, and the store takes no tasks.
        """
        image = self._images[job.id]
        if image.columns == columns:
            return self._switch
        if self._store.max_tasks == 0:
            where = f"it is in the memory of nodes {text(image.columns or ())}"
            raise DecisionError(f"job {job.id} cannot start elsewhere: {where}, and the store takes no tasks")
        rounds = -(-image.nodes // (self._store.max_tasks or image.nodes))
        return rounds * (self._restart if image.columns is None else self._checkpoint + self._restart)

    def stop(self, gang: RunningJob, how: Status) -> bool:
        """Note that a gang is told to stop working now; tell whether its nodes come free at this very instant.

        Raises:
            DecisionError: it has been told before, or what it needs is not there.
        """
        job_id, now = gang.job.id, self._env.now
        if how in _SAVING and gang.stopping:
            raise DecisionError(f"job {job_id} cannot be preempted: it has been already, and still holds its nodes")
        if how is Status.CHECKPOINTED and self._store.max_tasks == 0:
            raise DecisionError(f"job {job_id} cannot be checkpointed: the store takes no tasks (max_tasks_per_slice=0)")
        if how is Status.SUSPENDED and not self.can_suspend(gang):
            full = f"a node of {text(gang.columns)} holds {self._most_suspended} suspended tasks already"
            raise DecisionError(f"job {job_id} cannot be suspended: {full}")
        gang.stopping = True
        self._stopped_at.setdefault(job_id, now)
        return not self._cost_of_saving(gang, how)

    def worked(self, gang: RunningJob) -> int:
        """Return for how long a gang has worked since it was dispatched, ticks."""
        job_id, now = gang.job.id, self._env.now
        since = self._working_since.get(job_id, now) if job_id in self._images else gang.start
        return max(self._stopped_at.get(job_id, now) - since, 0)

    def ended(self, gang: RunningJob, status: Status) -> tuple[int, int]:
        """Settle the account of a gang that has ended; return how much it has worked, and how much of that is lost, ticks.

        What was saved before may be lost now as well; then more is lost than it has worked since it was dispatched.
        """
        job_id, worked = gang.job.id, self.worked(gang)
        image = self._images.pop(job_id, None)
        self._working_since.pop(job_id, None)
        self._stopped_at.pop(job_id, None)
        before, stored = (image.work, image.stored) if image is not None else (0, 0)
        if status in _SAVING:
            kept, in_memory = before + worked, status is Status.SUSPENDED
            if image is not None and gang.fetching:
                self._images[job_id] = image  # it was stopped before it had its image, which is where it was
            else:
                self._images[job_id] = Image(
                    kept, stored if in_memory else kept, gang.nodes, gang.columns if in_memory else None
                )
                if in_memory:
                    self._remember(gang.columns, 1)
            return worked, 0
        if image is not None and gang.fetching and image.columns is not None:
            self._remember(image.columns, -1)
        if status is Status.ABORTED:
            return worked, before + worked
        if status in (Status.PREEMPTED, Status.REQUEUED):
            if stored:
                self._images[job_id] = Image(stored, stored, gang.nodes)
            return worked, before + worked - stored
        return worked, 0

    # What the gang's process does.

    def fetch(self, gang: RunningJob) -> Generator[Event, object, None]:
        """Hold the gang's nodes until its image is there."""
        job_id = gang.job.id
        image = self._images[job_id]
        if image.columns == gang.columns:
            yield from self._switch_context(gang)
        else:
            if image.columns is not None:
                yield from self._transfer(gang, Account.CHECKPOINT, self._checkpoint)
            yield from self._transfer(gang, Account.RESTART, self._restart)
        if image.columns is not None:
            self._remember(image.columns, -1)
            if image.columns != gang.columns:
                image = image._replace(stored=image.work)
            self._images[job_id] = image._replace(columns=None)
        self._working_since[job_id] = self._env.now
        gang.fetching = False

    def save(self, gang: RunningJob, how: Status) -> Generator[Event, object, None]:
        """Hold the gang's nodes until its image is where it is to be kept."""
        if not self._cost_of_saving(gang, how):
            return
        if how is Status.CHECKPOINTED:
            yield from self._transfer(gang, Account.CHECKPOINT, self._checkpoint)
        else:
            yield from self._switch_context(gang)

    def _cost_of_saving(self, gang: RunningJob, how: Status) -> int:
        if how not in _SAVING or gang.fetching:  # then its image is still where it was
            return 0
        return self._checkpoint if how is Status.CHECKPOINTED else self._switch

    def _transfer(self, gang: RunningJob, account: Account, ticks: int) -> Generator[Event, object, None]:
        if ticks:
            queueing, moving = (partial(self._held, gang, spent_on) for spent_on in (Account.BLOCKED, account))
            yield from self._store.transfer(gang.nodes, ticks, queueing=queueing, moving=moving)

    def _switch_context(self, gang: RunningJob) -> Generator[Event, object, None]:
        if self._switch:
            with self._held(gang, Account.CONTEXT_SWITCH):
                yield self._env.timeout(self._switch)

    @contextmanager
    def _held(self, gang: RunningJob, account: Account) -> Iterator[None]:
        """Charge the gang's nodes to ``account``."""
        began = self._env.now
        self._ledger.hold(began, account, gang.nodes)
        try:
            yield
        finally:
            ends = self._env.now
            self._ledger.hold(ends, account, -gang.nodes)
            if ends > began:
                self._records.overhead(began, ends, gang.nodes)

    def _remember(self, columns: NodeSet, tasks: int) -> None:
        """Add ``tasks`` to the suspended tasks of each node."""
        if self._most_suspended is not None:
            for low, high in _ranges(columns):
                self._room.release(low, high, -tasks)


def _ranges(columns: NodeSet) -> Iterator[tuple[int, int]]:
    return zip(columns[::2], columns[1::2], strict=True)
