"""Slow, obvious twins of the policies: plain loops over lists, no profile, no SimPy, no shared code with the package.

Each returns job id -> start time.  Jobs are killed at their estimates.  Times are integers.
"""

from collections.abc import Callable
from typing import NamedTuple


class TwinJob(NamedTuple):
    submit: int
    id: int
    nodes: int
    run: int
    estimate: int
    priority: int = 0
    user: int = -1

    @property
    def order(self) -> tuple[int, int, int]:
        return (-self.priority, self.submit, self.id)


class Running(NamedTuple):
    job: TwinJob
    start: int

    @property
    def end(self) -> int:
        return self.start + min(self.job.run, self.job.estimate)

    @property
    def expected_end(self) -> int:
        return self.start + self.job.estimate


Pass = Callable[[int, list[TwinJob], list[Running], list[Running]], list[TwinJob]]
"""(now, queue in order, running, just ended) -> jobs to start."""


def simulate_twin(nodes: int, jobs: list[TwinJob], schedule: Pass, extra_instants: Callable[[], list[int]]) -> dict[int, int]:
    """Run one scheduling pass at every instant at which something happens."""
    jobs = [job for job in jobs if 0 < job.nodes <= nodes]
    to_come = sorted(jobs)
    queue: list[TwinJob] = []
    running: list[Running] = []
    starts: dict[int, int] = {}
    now = -1
    while to_come or queue or running:
        instants = [job.submit for job in to_come] + [gang.end for gang in running] + extra_instants()
        now = min(instant for instant in instants if instant > now)
        ended = [gang for gang in running if gang.end == now]
        running = [gang for gang in running if gang.end != now]
        queue += [job for job in to_come if job.submit == now]
        to_come = [job for job in to_come if job.submit != now]
        queue.sort(key=lambda job: job.order)
        for job in schedule(now, list(queue), list(running), ended):
            queue.remove(job)
            running.append(Running(job, now))
            starts[job.id] = now
            assert sum(gang.job.nodes for gang in running) <= nodes
    return starts


def fcfs_twin(nodes: int, jobs: list[TwinJob]) -> dict[int, int]:
    def schedule(now: int, queue: list[TwinJob], running: list[Running], ended: list[Running]) -> list[TwinJob]:
        free = nodes - sum(gang.job.nodes for gang in running)
        started = []
        while queue and queue[0].nodes <= free:
            started.append(queue.pop(0))
            free -= started[-1].nodes
        return started

    return simulate_twin(nodes, jobs, schedule, list)


def easy_twin(nodes: int, jobs: list[TwinJob], *, shortest_first: bool = False) -> dict[int, int]:
    """Talby & Feitelson 1999 (long), section 3.1, word by word: shadow time, extra nodes, conditions 1 and 2."""

    def schedule(now: int, queue: list[TwinJob], running: list[Running], ended: list[Running]) -> list[TwinJob]:
        free = nodes - sum(gang.job.nodes for gang in running)
        started = []
        while queue and queue[0].nodes <= free:
            started.append(queue.pop(0))
            free -= started[-1].nodes
        if not queue:
            return started
        head, candidates = queue[0], queue[1:]
        holding = running + [Running(job, now) for job in started]
        available = free
        shadow = now
        for gang in sorted(holding, key=lambda gang: gang.expected_end):
            if available >= head.nodes:
                break
            available += gang.job.nodes
            shadow = gang.expected_end
        at_shadow = free + sum(gang.job.nodes for gang in holding if gang.expected_end <= shadow)
        extra = at_shadow - head.nodes
        if shortest_first:
            candidates.sort(key=lambda job: (job.estimate, job.order))
        for job in candidates:
            ends_in_time = now + job.estimate <= shadow
            if job.nodes <= free and (ends_in_time or job.nodes <= extra):
                started.append(job)
                free -= job.nodes
                if not ends_in_time:
                    extra -= job.nodes
        return started

    return simulate_twin(nodes, jobs, schedule, list)


def conservative_twin(nodes: int, jobs: list[TwinJob]) -> tuple[dict[int, int], dict[int, int]]:
    """Talby & Feitelson 1999 (long), section 3.2, with a full re-plan at every early end; returns starts, guarantees."""
    reserved: dict[int, int] = {}
    guarantees: dict[int, int] = {}

    def earliest(now: int, job: TwinJob, holding: list[tuple[int, int, int]]) -> int:
        """First time at which ``job`` fits beside the (start, end, nodes) rectangles of ``holding``."""
        for start in sorted({now} | {end for _, end, _ in holding if end > now}):
            end = start + job.estimate
            moments = {start} | {begin for begin, _, _ in holding if start < begin < end}
            if all(
                job.nodes + sum(size for begin, finish, size in holding if begin <= moment < finish) <= nodes
                for moment in moments
            ):
                return start
        raise AssertionError("a job that fits the machine fits at the end of the plan")

    def schedule(now: int, queue: list[TwinJob], running: list[Running], ended: list[Running]) -> list[TwinJob]:
        def others(job: TwinJob) -> list[tuple[int, int, int]]:
            rectangles = [(gang.start, gang.expected_end, gang.job.nodes) for gang in running]
            return rectangles + [
                (reserved[other.id], reserved[other.id] + other.estimate, other.nodes)
                for other in queue
                if other.id in reserved and other.id != job.id
            ]

        if any(gang.expected_end > now for gang in ended):
            for job in queue:
                if job.id in reserved:
                    again = earliest(now, job, others(job))
                    assert again <= reserved[job.id]
                    reserved[job.id] = again
        for job in queue:
            if job.id not in reserved:
                reserved[job.id] = guarantees[job.id] = earliest(now, job, others(job))
        started = [job for job in queue if reserved[job.id] <= now]
        for job in started:
            del reserved[job.id]
        return started

    starts = simulate_twin(nodes, jobs, schedule, lambda: list(reserved.values()))
    return starts, guarantees
