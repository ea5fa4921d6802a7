"""Jobs that are kept from the queue: by jobs that they depend on, and by limits of a site, each of which has a counter."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from clustermodel.arrays import IntArray
from clustermodel.job import DEPENDENCIES, JobRow
from clustermodel.sim.job_process import JobInSystem
from clustermodel.site import EACH, SUBJECTS, Limits
from clustermodel.ticks import to_ticks
from clustermodel.workload.table import Singletons

AFTER, AFTER_OK, AFTER_NOT_OK, AFTER_ANY, ALONE = range(len(DEPENDENCIES) + 1)
_EACH = (EACH,)
Facts = Mapping[str, Mapping[int, str]]
"""What jobs have by the names of :data:`~clustermodel.site.SUBJECTS`, then by job id."""


class _Counter:
    """How much the jobs under one limit have, and which of them it holds, in the order in which they came to it."""

    __slots__ = ("held", "jobs", "most_jobs", "most_node_ticks", "most_nodes", "node_ticks", "nodes")

    def __init__(self, jobs: int | None, nodes: int | None, node_ticks: int | None) -> None:
        self.most_jobs, self.most_nodes, self.most_node_ticks = jobs, nodes, node_ticks
        self.jobs = self.nodes = self.node_ticks = 0
        self.held: OrderedDict[int, JobInSystem] = OrderedDict()

    def has_room(self, row: JobRow) -> bool:
        return (
            (self.most_jobs is None or self.jobs < self.most_jobs)
            and (self.most_nodes is None or self.nodes + row.nodes <= self.most_nodes)
            and (self.most_node_ticks is None or self.node_ticks + row.nodes * row.estimate <= self.most_node_ticks)
        )

    def count(self, row: JobRow, sign: int) -> None:
        self.jobs += sign
        self.nodes += sign * row.nodes
        self.node_ticks += sign * row.nodes * row.estimate


class HeldJobs:
    """What counts against the limits of a site, and the jobs that they hold."""

    # A job that has been let go counts from then on until it leaves the system, whether it waits, runs or has been preempted.
    # So no policy can exceed a limit, whatever it starts.

    def __init__(
        self,
        limits: Sequence[Limits],
        facts: Facts,
        dependencies: IntArray,
        arrays: Mapping[int, tuple[int, int]] = MappingProxyType({}),
        singletons: Singletons = MappingProxyType({}),
    ) -> None:
        self._singletons = singletons
        self._together: dict[tuple[str, str], dict[int, None]] = {}  # user and name -> ids in the system, as submitted
        self._limits, self._facts, self._arrays = limits, facts, arrays  # the last: by job id, its array, and the limit of that
        self._pending: dict[int, set[tuple[int, int]]] = {}  # job id -> kinds and ids of the jobs that it still depends on
        self._dependents: dict[int, list[int]] = {}  # job id -> ids of the jobs that depend on it
        for job, kind, other in dependencies.tolist():
            self._pending.setdefault(job, set()).add((kind, other))
            self._dependents.setdefault(other, []).append(job)
        self._never: set[int] = set()  # ids of jobs that depend on what cannot happen any more
        self._waiting: dict[int, JobInSystem] = {}  # jobs that depend on others
        self._counters: dict[tuple[object, ...], tuple[_Counter | None, _Counter | None]] = {}
        self._counted: dict[int, list[_Counter]] = {}  # job id -> what it counts against
        self._ahead: dict[int, list[list[_Counter]]] = {}  # id of a held job -> those that it has still to pass, in stages

    def refuses(self, row: JobRow) -> bool:
        """Return whether a limit, or a job that it depends on, never lets a job start."""
        if row.id in self._never:
            return True
        for limit in self._limits:
            if self._key(limit, row) is not None and (
                (limit.wall_time_s is not None and row.estimate > to_ticks(limit.wall_time_s))
                or (limit.nodes is not None and row.nodes > limit.nodes)
                or (limit.job_nodes is not None and row.nodes > limit.job_nodes)
                or (limit.node_ticks is not None and row.nodes * row.estimate > limit.node_ticks)
            ):
                return True
        return False

    def lets_go(self, job: JobInSystem) -> bool:
        """Return whether a job that is submitted joins the queue at once; otherwise it is held."""
        of_submission, of_running = [], []
        for limit in self._limits:
            if (key := self._key(limit, job.row)) is not None:
                submitted, running = self._counters_of(limit, key)
                of_submission += [] if submitted is None else [submitted]
                of_running += [] if running is None else [running]
        if (array := self._arrays.get(job.row.id)) is not None:
            of_array = self._counters.setdefault(array, (None, _Counter(array[1], None, None)))[1]
            of_running += [] if of_array is None else [of_array]
        group, alone = self._singletons.get(job.row.id, (None, False))
        if group is not None:
            together = self._together.setdefault(group, {})
            if alone and together:
                self._pending.setdefault(job.row.id, set()).add((ALONE, job.row.id))
            together[job.row.id] = None
        self._counted[job.row.id] = []
        self._ahead[job.row.id] = [of_submission, of_running]
        if job.row.id in self._pending:
            self._waiting[job.row.id] = job
            return False
        return self._passes(job)

    def began(self, job: int) -> list[JobInSystem]:
        """Note that a job has begun; return the jobs that join the queue now."""
        return [other for other in self._resolved(job, (AFTER,)) if self._passes(other)]

    def ended(self, job: int, *, ok: bool) -> tuple[list[JobInSystem], list[JobInSystem]]:
        """Note how a job has ended, or that it was rejected; return jobs that join the queue, and those that never will."""
        lost = AFTER_NOT_OK if ok else AFTER_OK
        never = []
        for other in self._dependents.get(job, ()):
            if (lost, job) in self._pending.get(other, ()):
                del self._pending[other]
                self._never.add(other)
                if (held := self._waiting.pop(other, None)) is not None:
                    del self._ahead[other], self._counted[other]
                    never.append(held)
        met = AFTER, AFTER_ANY, AFTER_OK if ok else AFTER_NOT_OK
        free = [*self._resolved(job, met), *self._first_of_its_name(job)]
        return [other for other in free if self._passes(other)], never

    def _resolved(self, job: int, kinds: tuple[int, ...]) -> list[JobInSystem]:
        """Return the jobs in the system that depend on nothing any more, as something has happened to a job."""
        met = {(kind, job) for kind in kinds}
        return [held for other in self._dependents.get(job, ()) for held in self._freed(other, met)]

    def _first_of_its_name(self, job: int) -> list[JobInSystem]:
        """Return the job that waited for jobs of its user and name alone, of which one has ended."""
        group, _ = self._singletons.get(job, (None, False))
        if group is None or (together := self._together.get(group)) is None:
            return []
        together.pop(job, None)
        first = next(iter(together), None)
        return [] if first is None else self._freed(first, {(ALONE, first)})

    def _freed(self, job: int, met: set[tuple[int, int]]) -> list[JobInSystem]:
        """Return a job, if it depended on nothing else than what has happened, and is in the system."""
        if (pending := self._pending.get(job)) is None:
            return []
        pending -= met
        if pending:
            return []
        del self._pending[job]
        held = self._waiting.pop(job, None)
        return [] if held is None else [held]

    def left(self, job: JobInSystem) -> list[JobInSystem]:
        """Note that a job has left the system; return the jobs that join the queue now, as limits have room for them."""
        released = []
        counters = self._counted.pop(job.row.id)
        for counter in counters:
            counter.count(job.row, -1)
        for counter in reversed(counters):  # jobs that wait for their turn to run come before those that enter
            while (held := next((each for each in counter.held.values() if counter.has_room(each.row)), None)) is not None:
                del counter.held[held.row.id]
                if self._passes(held):
                    released.append(held)
        return released

    def _passes(self, job: JobInSystem) -> bool:
        """Count a job against its limits, stage by stage; return whether nothing holds it any more."""
        stages = self._ahead[job.row.id]
        while stages:
            for counter in stages[0]:
                if not counter.has_room(job.row):
                    counter.held[job.row.id] = job
                    return False
            for counter in stages[0]:
                counter.count(job.row, 1)
            self._counted[job.row.id] += stages.pop(0)
        del self._ahead[job.row.id]
        return True

    def _key(self, limit: Limits, row: JobRow) -> tuple[str, ...] | None:
        """Return which of a limit's jobs this one is counted with; ``None`` if the limit does not concern it."""
        key = []
        for name in SUBJECTS:
            if wanted := limit.names(name):
                value = self._facts[name].get(row.id)
                if value is None or (value not in wanted and wanted != _EACH):
                    return None
                key.append(value if wanted == _EACH else "")
        return tuple(key)

    def _counters_of(self, limit: Limits, key: tuple[str, ...]) -> tuple[_Counter | None, _Counter | None]:
        """Return the counters of jobs in the system, and of those that may run."""
        place = (id(limit), *key)
        if place not in self._counters:
            submitted = None if limit.submitted_jobs is None else _Counter(limit.submitted_jobs, None, None)
            of_running = (limit.running_jobs, limit.nodes, limit.node_ticks)
            running = None if of_running == (None, None, None) else _Counter(*of_running)
            self._counters[place] = submitted, running
        return self._counters[place]
