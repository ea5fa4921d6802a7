"""Urgent jobs of gang scheduling: a job of higher priority gets its nodes in every row, and runs undivided.

The gangs in its way, which all have lower priorities, are preempted at the machine's costs, wait at their places in the queue,
and go on later where there is room.  The combination of gang scheduling and preemption is this package's own; in the paper
all gangs are equal (Zhang et al. 2003, section 4).
"""

from collections.abc import Iterable, Iterator
from functools import reduce
from operator import or_

from clustermodel.machine.node_set import NodeSet, as_mask
from clustermodel.plans.ousterhout import InTheWay, Occupant, OusterhoutMatrix, clear
from clustermodel.policies.interface import Decision, Kill, Setup
from clustermodel.policies.preemption import preempt, require_store
from clustermodel.policies.view import Batch, QueuedJob, View


class UrgentJobs:
    """Which jobs are urgent, the columns set aside for them, and the gangs that have been preempted for them."""

    # A job is urgent if a job of lower priority has been submitted in the run.  A gang that does not fit into memory beside the
    # urgent job and other suspended ones is killed, whatever the mode.

    def __init__(self, name: str, mode: str, setup: Setup, matrix: OusterhoutMatrix) -> None:
        require_store(name, mode, setup.machine, parameter="urgent")
        self._mode, self._matrix = mode, matrix
        self._limit = setup.machine.checkpointing.max_tasks_per_slice
        self._suspended_are_limited = setup.machine.suspended_per_node is not None
        self._transfer_times = setup.transfer_times
        self._all = (1 << setup.nodes) - 1
        self._lowest: int | None = None  # priority of all jobs submitted so far
        self._discarded: list[QueuedJob] = []  # jobs whose images in memory have been discarded in the last cycle
        self.saved: set[int] = set()  # ids of jobs that have been checkpointed or suspended
        self._in_memory: dict[int, int] = {}  # id of a job that has been suspended -> the columns that held it then
        self._stopping: set[int] = set()  # ids of running jobs that have been preempted
        self.claims: dict[int, tuple[QueuedJob, int]] = {}
        """Id of an urgent job that waits for gangs to leave -> job and columns, a bitmask."""
        self.wait_for_store = False
        """Whether a gang could not be saved or restored because others take the checkpoint store in its row."""

    def decide(self, batch: Batch, view: View) -> Iterator[Decision]:
        """Preempt gangs for urgent jobs, and put those into the matrix whose columns are free."""
        self.wait_for_store = False
        self._view = view
        for job in self._discarded:
            if job.id in view.waiting and not view.saved(job):
                self.saved.discard(job.id)
        self._discarded.clear()
        self._suspended_now = 0  # columns of the gangs that are told to suspend at this event, a bitmask
        self._stopping -= {gang.job.id for gang in batch.ended}
        if batch.failed:
            self._forget_lost(batch, view)
        for job in batch.submitted:
            self._lowest = job.priority if self._lowest is None else min(self._lowest, job.priority)
        for occupant in self._matrix.occupants.values():
            gang = view.running[occupant.job.id]
            in_rounds = gang.fetching or gang.stopping
            self._matrix.note_migrating(occupant, migrates=gang.migrating, in_rounds=in_rounds)
        for job in view.waiting.values():  # in queue order: those of the highest priority come first
            if self._lowest is None or job.priority <= self._lowest:
                return
            if job.id not in self.claims and not self._claim(job, view):
                continue
            _, columns = self.claims[job.id]
            short = self._short_of_memory(job, columns)
            in_the_way = [other for other in self._matrix.occupants.values() if other.columns & columns]
            for other in in_the_way:
                if other.job.id not in self._stopping:
                    yield from self._preempt(other, keeps_memory=not other.columns & short)
            if not in_the_way and self._may_restore(job, range(self._matrix.mpl)):
                yield from self._discard_behind(job, short)
                if not self._short_of_memory(job, columns):
                    del self.claims[job.id]
                    self._matrix.add_undivided(job, columns, kept=self.kept_on(job)).migrating = job.id in self.saved

    def _forget_lost(self, batch: Batch, view: View) -> None:
        """Forget the claims to nodes that have failed, and the images that were lost with them."""
        failed = sum(1 << outage.node for outage in batch.failed)
        self._give_up(job for job, columns in self.claims.values() if columns & failed)
        hit = [job for job in view.waiting.values() if self._in_memory.get(job.id, 0) & failed]
        for job in (*hit, *batch.requeued):
            if job.id in self.saved and not view.saved(job):
                self.saved.discard(job.id)
                self._in_memory.pop(job.id, None)

    def give_up_barred(self, view: View) -> None:
        """Give up claims to columns that will be reserved for others too soon, and those of jobs that have been rejected."""
        claims = self.claims.values()
        self._give_up(job for job, columns in claims if job.id not in view.waiting or columns & ~self._matrix.eligible(job))

    def _give_up(self, jobs: Iterable[QueuedJob]) -> None:
        for job in list(jobs):
            del self.claims[job.id]
            self._matrix.give_up(job.id)

    def _claim(self, job: QueuedJob, view: View) -> bool:
        """Set columns aside for an urgent job, if gangs of lower priority hold no others; return whether that was possible."""
        matrix = self._matrix
        # Those of lower priority claim columns again when the turn is their own.
        self._give_up(other for other, _ in self.claims.values() if other.priority < job.priority)
        columns = self._all & ~matrix.set_aside
        claimed = reduce(or_, (claim for _, claim in self.claims.values()), 0)
        lower: list[Occupant] = []
        for gang in matrix.occupants.values():
            if gang.job.priority >= job.priority:
                columns &= ~gang.columns
                continue
            if gang.job.id in matrix.undivided:
                columns |= gang.columns & ~claimed
            if gang.job.id not in self._stopping:
                lower.append(gang)
        columns &= self._with_memory(job)
        kills = self._mode == "kill"  # a gang's loss is what is discarded, node-ticks, or how many tasks have to be saved
        losses = [gang.nodes * (view.progress(view.running[gang.job.id]) if kills else 1) for gang in lower]
        gangs = [InTheWay(gang.columns, loss) for gang, loss in zip(lower, losses, strict=True)]
        found = [clear(job.nodes, columns & eligible, gangs) for eligible in matrix.sets_of_columns(job)]
        clearings = [each for each in found if each is not None]
        if not clearings:
            return False
        clearing = min(clearings, key=lambda each: (len(each.preempted), sum(losses[index] for index in each.preempted)))
        self.claims[job.id] = (job, clearing.columns)
        matrix.keep_free(clearing.columns, job.id)
        return True

    def _preempt(self, occupant: Occupant, *, keeps_memory: bool) -> Iterator[Decision]:
        job, gang = occupant.job, self._view.running[occupant.job.id]
        if self._mode == "checkpoint" and not gang.fetching:
            rows = range(self._matrix.mpl) if job.id in self._matrix.undivided else (occupant.home,)
            if not self._store_has_room(gang.nodes, rows, occupant.moving if occupant.migrating else 0):
                return
        if self._mode == "suspend" and self._suspended_are_limited:
            if occupant.columns & self._suspended_now:
                return  # what memory is left will be known when the other one has been suspended
            self._suspended_now |= occupant.columns
        self._stopping.add(job.id)
        self._matrix.note_migrating(occupant, migrates=True, in_rounds=True)
        suspends = keeps_memory and self._view.can_suspend(gang)
        mode = "kill" if self._mode == "suspend" and not suspends else self._mode
        if mode == "kill":
            self._in_memory.pop(job.id, None)
        else:
            self.saved.add(job.id)
        if mode == "suspend" and not gang.fetching:
            self._in_memory[job.id] = occupant.columns
        yield preempt(job, mode)

    def kept_on(self, job: QueuedJob) -> int:
        """Return the nodes whose memory keeps a waiting job that is suspended, a bitmask."""
        return 0 if job in self._discarded else as_mask(self._view.suspended_on(job) or ())

    def _with_memory(self, job: QueuedJob) -> int:
        """Return the nodes that have enough memory for an urgent job without the jobs of lower priority, a bitmask."""
        free = self._view.free_memory()
        if free is None:
            return self._all
        for gang in self._view.running.values():
            if gang.job.priority < job.priority:
                free.give_back(gang.columns, gang.job.memory)
        for other, columns in self._suspended_behind(job):
            free.give_back(columns, other.memory)
        return free.nodes_with(job.memory) | self.kept_on(job)

    def _short_of_memory(self, job: QueuedJob, columns: int) -> int:
        """Return those of ``columns`` on which an urgent job does not fit beside all that has memory now, a bitmask."""
        free = self._matrix.memory
        return 0 if free is None else columns & ~(free.nodes_with(job.memory) | self.kept_on(job))

    def _suspended_behind(self, job: QueuedJob) -> list[tuple[QueuedJob, NodeSet]]:
        """Return the suspended jobs of lower priority, and the nodes whose memory keeps them."""
        behind = [other for other in self._view.waiting.values() if other.priority < job.priority]
        kept = ((other, self._view.suspended_on(other)) for other in behind if other not in self._discarded)
        return [(other, nodes) for other, nodes in kept if nodes is not None]

    def _discard_behind(self, job: QueuedJob, short: int) -> Iterator[Decision]:
        """Discard what is suspended of jobs of lower priority on nodes on which an urgent job lacks memory."""
        for other, nodes in self._suspended_behind(job) if short else ():
            if as_mask(nodes) & short:
                self._in_memory.pop(other.id, None)
                self._discarded.append(other)
                if self._matrix.memory is not None:
                    self._matrix.memory.give_back(nodes, other.memory)
                yield Kill(job=other, requeue=True)

    def length(self, job: QueuedJob) -> int:
        """Return how long a waiting job can be expected to hold nodes of its own, ticks: its overheads included."""
        if job.id not in self.saved:
            return job.estimate
        checkpoint, restart = self._transfer_times(job)
        restore = checkpoint + restart if job.id in self._in_memory else restart
        return max(job.estimate - self._view.saved(job), 1) + restore

    def place_of(self, job: QueuedJob, rows: list[int], end: int | None = None) -> tuple[int, int | None] | None:
        """Return the row and columns in which a saved job can go on, of fit ``rows``: where it is in memory if it can."""
        if (own := self._in_memory.get(job.id)) is not None:
            for row in rows:
                if self._matrix.is_free_for(job, own, row, end):
                    return row, own
        return next(((row, None) for row in rows if self._may_restore(job, [row])), None)

    def _may_restore(self, job: QueuedJob, rows: range | list[int]) -> bool:
        """Return whether a job can be read from the checkpoint store in these rows, if it has to be."""
        return job.id not in self.saved or self._store_has_room(job.nodes, rows)

    def _store_has_room(self, tasks: int, rows: Iterable[int], moving: int = 0) -> bool:
        """Return whether the store takes so many tasks in these rows, of which ``moving`` migrate there already."""
        if self._limit is None:
            return True
        room = min(tasks, self._limit) + max(map(self._matrix.tasks_migrating, rows)) - moving <= self._limit
        self.wait_for_store |= not room
        return room
