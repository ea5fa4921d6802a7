"""Jobs that the rules of a site keep from the queue: each limit has a counter, and jobs for which it has no room are held."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from clustermodel.job import JobRow
from clustermodel.sim.job_process import JobInSystem
from clustermodel.site import EACH, SUBJECTS, Limits
from clustermodel.ticks import to_ticks

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

    def __init__(self, limits: Sequence[Limits], facts: Facts) -> None:
        self._limits, self._facts = limits, facts
        self._counters: dict[tuple[object, ...], tuple[_Counter | None, _Counter | None]] = {}
        self._counted: dict[int, list[_Counter]] = {}  # job id -> what it counts against
        self._ahead: dict[int, list[list[_Counter]]] = {}  # id of a held job -> those that it has still to pass, in stages

    def refuses(self, row: JobRow) -> bool:
        """Return whether a limit never lets a job start."""
        for limit in self._limits:
            if self._key(limit, row) is not None and (
                (limit.wall_time_s is not None and row.estimate > to_ticks(limit.wall_time_s))
                or (limit.nodes is not None and row.nodes > limit.nodes)
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
        self._counted[job.row.id] = []
        self._ahead[job.row.id] = [of_submission, of_running]
        return self._passes(job)

    def left(self, job: JobInSystem) -> list[JobInSystem]:
        """Note that a job has left the system; return the jobs that join the queue now."""
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
            if (wanted := getattr(limit, name)) is not None:
                value = self._facts[name].get(row.id)
                if value is None or wanted not in (EACH, value):
                    return None
                key.append(value)
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
