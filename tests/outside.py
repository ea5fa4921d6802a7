"""What must hold in every run, whatever the policy, worked out from the tables of its result and what was asked for.

Nothing here looks into the simulator: :func:`differences` reads ``Result.jobs``, ``run_attempts`` and ``placements``, the
ledger, and the logs of time slices, of the matrix and of overheads.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from math import isnan
from typing import Final, NamedTuple

from clustermodel import make_policy
from clustermodel.experiment.result import Result
from clustermodel.job import JobRow
from clustermodel.recording.ledger import Account
from clustermodel.speedup import LINEAR
from clustermodel.ticks import TICKS_PER_SECOND
from tests.node_memory import most_memory

GUARANTEED: Final = ("easy", "conservative")
"""Policies that keep the first guaranteed start where jobs of equal priority run on dedicated nodes as long as they said."""
_ENDED: Final = ("completed", "killed", "aborted", "rejected")


class Attempt(NamedTuple):
    """A run attempt, ticks."""

    job: int
    start: int
    end: int
    nodes: int
    executed: int
    lost: int
    outcome: str


def differences(
    result: Result,
    rows: Sequence[JobRow],
    discarded: dict[int, list[int]] | None = None,
    refused: Collection[int] = (),
) -> list[str]:
    """Return in words what does not hold in a run; nothing if all does.

    Args:
        result: of the run, with a history.
        rows: the jobs that were submitted.
        discarded: id of a job -> when the policy has discarded what was suspended of it, ticks.
        refused: ids of jobs that the rules of a site reject (:mod:`tests.outside_site`).
    """
    run = _Run(result, rows, refused)
    return [
        *run.all_jobs_end(),
        *run.order(),
        *run.kills(),
        *run.guaranteed_starts(),
        *run.occupancy(),
        *run.limit(),
        *run.ledger(),
        *_memory(result, discarded),
    ]


def _ticks(seconds: Iterable[float]) -> list[int]:
    return [-1 if isnan(time) else round(time * TICKS_PER_SECOND) for time in seconds]


def _memory(result: Result, discarded: dict[int, list[int]] | None) -> Iterator[str]:
    limit = result.machine.node_memory
    if limit is not None and result.records.finished.any() and (most := max(most_memory(result, discarded))) > limit:
        yield f"memory: {most} KiB on a node of {limit}"


class _Run:
    """The tables of a run."""

    def __init__(self, result: Result, rows: Sequence[JobRow], refused: Collection[int]) -> None:
        self.result, self.machine, self.refused = result, result.machine, refused
        self.in_time = result.slices is not None
        self.rows = {row.id: row for row in rows}
        jobs, attempts = result.jobs, result.run_attempts
        names = ("submit_s", "start_s", "end_s", "reserved_s", "run_s")
        columns = [jobs["job"].tolist(), *(_ticks(jobs[name]) for name in names), jobs["status"].tolist()]
        self.jobs = {job: rest for job, *rest in zip(*columns, strict=True)}
        self.held = dict.fromkeys(self.jobs, 0)
        if "held_s" in jobs:
            self.held = dict(zip(jobs["job"].tolist(), _ticks(jobs["held_s"]), strict=True))
        columns = [attempts["job"].tolist(), *(_ticks(attempts[name]) for name in ("start_s", "end_s"))]
        columns += [attempts["nodes"].tolist(), *(_ticks(attempts[name]) for name in ("executed_s", "lost_s"))]
        self.attempts: dict[int, list[Attempt]] = defaultdict(list)
        for one in map(Attempt, *columns, attempts["outcome"].tolist()):
            self.attempts[one.job].append(one)

    def all_jobs_end(self) -> Iterator[str]:
        if sorted(self.jobs) != sorted(self.rows):
            yield f"jobs: {len(self.jobs)} in the table, {len(self.rows)} submitted"
        limit = self.machine.node_memory
        for job, row in self.rows.items():
            status = self.jobs[job][-1]
            refused = not 0 < row.nodes <= self.machine.processors or (limit is not None and row.memory > limit)
            refused = refused or job in self.refused
            if status not in _ENDED or refused != (status == "rejected"):
                yield f"job {job}: {status}"
            if (status == "rejected") != (job not in self.attempts):
                yield f"job {job}: {status} after {len(self.attempts[job])} attempts"

    def order(self) -> Iterator[str]:
        for job, attempts in self.attempts.items():
            submit, start, end, *_ = self.jobs[job]
            if submit != self.rows[job].submit or attempts[0].start < submit:
                yield f"order: job {job} starts at {attempts[0].start}, before its submission at {submit}"
            if any(later.start < one.end for one, later in pairwise(attempts)) or any(one.end < one.start for one in attempts):
                yield f"order: job {job}: attempts overlap"
            if (attempts[-1].start, attempts[-1].end, attempts[-1].outcome) != (start, end, self.jobs[job][-1]):
                yield f"order: job {job}: its last attempt and the job table differ"
            if any(one.outcome in _ENDED for one in attempts[:-1]):
                yield f"order: job {job}: goes on after its end"

    def kills(self) -> Iterator[str]:
        for job, attempts in self.attempts.items():
            row, last = self.rows[job], attempts[-1]
            run, limit = (LINEAR.time_on(ticks, row.nodes, last.nodes) for ticks in (row.run, row.estimate))
            worked = self.jobs[job][4]
            kept = sum(one.executed - one.lost for one in attempts[:-1]) + last.executed
            if kept != worked:
                yield f"work: job {job}: {worked} in the job table, {kept} in its attempts"
            if self.machine.kill_at_estimate and worked > limit:
                yield f"kills: job {job} executes {worked} of at most {limit}"
            if last.outcome == "completed" and worked != run:
                yield f"kills: job {job} completes after {worked} of {run}"
            if last.outcome == "killed" and self.machine.kill_at_estimate and not worked == limit < run:
                yield f"kills: job {job} is killed after {worked}; its limit is {limit}, its run time {run}"

    def guaranteed_starts(self) -> Iterator[str]:
        machine, policy = self.machine, make_policy(self.result.scenario.policy).name
        if (
            policy not in GUARANTEED
            or not machine.kill_at_estimate
            or machine.failures is not None
            or machine.checkpointing.interval_s is not None
            or len({row.priority for row in self.rows.values()}) > 1
            or any(each.priority for each in machine.partitions)
            or self.result.scenario.site is not None
        ):
            return
        for job, (_, start, _, reserved, *_) in self.jobs.items():
            if reserved >= 0 and start > reserved:
                yield f"guaranteed start: job {job} starts at {start}, not at {reserved}"

    def occupancy(self) -> Iterator[str]:
        if not self.attempts:
            return
        places, mpl = self.result.placements, self.machine.time_slicing.mpl if self.in_time else 1
        columns = [places[name].tolist() for name in ("job", "row", "first_node", "nodes")]
        held: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
        of_gang: dict[tuple[int, int, int, int], int] = defaultdict(int)
        for begin, end, job, row, first, nodes in zip(
            _ticks(places["begin_s"]), _ticks(places["end_s"]), *columns, strict=True
        ):
            if not (0 <= first < first + nodes <= self.machine.processors and 0 <= row < mpl):
                yield f"occupancy: job {job} on nodes {first}..{first + nodes - 1} of row {row}"
            of_gang[job, begin, end, row] += nodes
            for node in range(first, first + nodes):
                held[node, row].append((begin, end, job))
        for (node, row), gangs in held.items():
            gangs.sort()
            for one, later in pairwise(gangs):
                if later[0] < one[1]:
                    yield f"occupancy: jobs {one[2]} and {later[2]} on node {node} of row {row} at {later[0]}"
        yield from self._sizes(of_gang)
        yield from self._on_nodes_that_are_down(held)

    def _sizes(self, of_gang: dict[tuple[int, int, int, int], int]) -> Iterator[str]:
        sizes = {job: {one.nodes for one in attempts} for job, attempts in self.attempts.items()}
        for (job, begin, _, _), nodes in of_gang.items():
            if nodes not in sizes[job]:
                yield f"occupancy: job {job} has {nodes} nodes at {begin}, not one of {sorted(sizes[job])}"

    def _on_nodes_that_are_down(self, held: dict[tuple[int, int], list[tuple[int, int, int]]]) -> Iterator[str]:
        down: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for node, begin, end in self._outages():
            down[node].append((begin, end))
        for (node, _), gangs in held.items():
            for begin, end, job in gangs:
                if any(begin < up and fails < end for fails, up in down[node]):
                    yield f"occupancy: job {job} on node {node} at {begin}, which is down"

    def _outages(self) -> Iterator[tuple[int, int, int]]:
        """Yield node, begin and end of the outages that were asked for."""
        if self.machine.failures is not None:
            for time, node, repair in self.machine.failures.failures(self.machine.processors, None):
                yield node, time, time + repair

    def limit(self) -> Iterator[str]:
        """Yield where more tasks are at the checkpoint store, or migrate into a row, than Q."""
        costs = self.machine.checkpointing
        limit = costs.max_tasks_per_slice if costs.store is None else costs.store.max_concurrent_tasks
        if limit is None:
            return
        if self.in_time:
            yield from self._migrations(limit)
            return
        held, accounts = self.result.records.overheads, list(Account)
        changes: list[tuple[int, int]] = []
        for start, end, nodes, account in zip(
            *(column.tolist() for column in (held.start, held.end, held.nodes, held.account)), strict=True
        ):
            if accounts[account] in (Account.CHECKPOINT, Account.RESTART) and end > start:
                tasks = (nodes - 1) % limit + 1  # at least: those of its last round, where it has several
                changes += [(start, tasks), (end, -tasks)]
        there = 0
        for time, change in sorted(changes):
            there += change
            if there > limit:
                yield f"Q: {there} tasks at the store at {time}, and {limit} are allowed"

    def _migrations(self, limit: int) -> Iterator[str]:
        counts, started = (
            self.machine.checkpointing.counts,
            {(job, one.start) for job, attempts in self.attempts.items() for one in attempts},
        )
        for before, moment in pairwise(self.result.history.moments):
            was = {cell.job: cell.columns for cells in before.rows for cell in cells}
            for row, cells in enumerate(moment.rows):
                moved = {
                    cell.job: (cell.columns.bit_count(), (cell.columns & ~was[cell.job]).bit_count())
                    for cell in cells
                    if was.get(cell.job, cell.columns) != cell.columns and (cell.job, moment.ticks) not in started
                }
                tasks = sum(
                    size if counts == "gang" else min(new, limit) if counts == "spread" else new for size, new in moved.values()
                )
                if tasks > limit:
                    yield f"Q: {tasks} tasks of {sorted(moved)} migrate in row {row} at {moment.ticks}, and {limit} are allowed"

    def ledger(self) -> Iterator[str]:
        ledger, nodes = self.result.ledger, self.machine.processors
        if not self.attempts:
            return
        accepted = [job for job in self.jobs if job in self.attempts]
        submitted = min(self.rows[job].submit for job in accepted)
        ended = max(self.jobs[job][2] for job in accepted)
        lost = useful = 0
        for attempts in self.attempts.values():
            lost += sum(one.nodes * one.lost for one in attempts[:-1])
            if attempts[-1].outcome == "aborted":
                lost += attempts[-1].nodes * self.jobs[attempts[-1].job][4]
            else:
                useful += attempts[-1].nodes * self.jobs[attempts[-1].job][4]
        spent = {account: sum(ledger.amount(account)) for account in Account}
        if spent[Account.USEFUL] != useful or spent[Account.LOST] != lost:
            yield f"ledger: useful {spent[Account.USEFUL]}, lost {spent[Account.LOST]}; the tables say {useful}, {lost}"
        if ledger.capacity and abs(ledger.capacity_loss - self.result.kappa_by_formula) > 1e-9:
            yield f"ledger: kappa {ledger.capacity_loss}; by the events it is {self.result.kappa_by_formula}"
        if (ledger.start, ledger.end, sum(spent.values())) != (submitted, ended, nodes * (ended - submitted)):
            yield f"ledger: {sum(spent.values())} from {ledger.start} to {ledger.end}; the tables say {submitted} to {ended}"
        down = sum(
            max(0, min(end, ledger.end) - max(begin, ledger.start)) for _, begin, end in self._outages() if begin < ledger.end
        )
        if spent[Account.DOWN] != down:
            yield f"ledger: down {spent[Account.DOWN]}; the outages say {down}"
        idle = self._idle_of_slices() if self.in_time else self._idle_of_attempts(ledger.end)
        unused = tuple(map(sum, zip(ledger.amount(Account.IDLE), ledger.amount(Account.RESERVED), strict=True)))
        if unused != idle:
            yield f"ledger: idle {unused}; the tables say {idle}"

    def _idle_of_attempts(self, until: int) -> tuple[int, int]:
        """Return the node-ticks without a gang on nodes that are up: while no job waits, and while one does."""
        start = self.result.ledger.start
        changes: list[tuple[int, int, int]] = []  # time, idle nodes, waiting jobs
        for job, attempts in self.attempts.items():
            since = self.rows[job].submit + self.held[job]
            for one in attempts:
                changes += [(one.start, -one.nodes, 0), (one.end, one.nodes, 0), (since, 0, 1), (one.start, 0, -1)]
                since = one.end
        for _, begin, end in self._outages():
            if begin < until:
                changes += [(max(begin, start), -1, 0), (max(end, start), 1, 0)]
        return _integrated(changes, self.machine.processors, start, until)

    def _idle_of_slices(self) -> tuple[int, int]:
        """Return the same, slice by slice, from the log of time slices, which begins with the first gang."""
        quantum, ledger, amounts = self.machine.time_slicing.quantum, self.result.ledger, [0, 0]
        rotations = list(self.result.slices or ())
        now = ledger.end - sum(rotation.length for rotation in rotations)
        before, events = self._idle_of_attempts(now), self.result.events
        ticks, kept_free = events.ticks.tolist(), events.reserved.tolist()
        for rotation in rotations:
            left, row, ran = rotation.length, 0, rotation.begun
            up = rotation.up + (kept_free[bisect_right(ticks, now) - 1] if ticks else 0)
            if not rotation.held:  # nodes may fail meanwhile without an event
                down = sum(max(0, min(end, now + left) - max(begin, now)) for _, begin, end in self._outages())
                amounts[rotation.waiting] += self.machine.processors * left - down
            now += left
            lap = quantum * len(rotation.held)
            if rotation.held and (laps := (left - lap) // lap) > 1:  # whole rotations at once
                amounts[rotation.waiting] += laps * quantum * sum(up - held for held in rotation.held)
                left -= laps * lap
            while rotation.held and left > 0:
                slice_ = min(quantum - ran, left)
                amounts[rotation.waiting] += (up - rotation.held[row % len(rotation.held)]) * slice_
                left, row, ran = left - slice_, row + 1, 0
        return before[0] + amounts[0], before[1] + amounts[1]


def _integrated(changes: list[tuple[int, int, int]], nodes: int, start: int, end: int) -> tuple[int, int]:
    amounts, idle, waiting, since = [0, 0], nodes, 0, start
    by_time: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for time, free, more in changes:
        by_time[time][0] += free
        by_time[time][1] += more
    for time in sorted(by_time):
        amounts[waiting > 0] += idle * max(0, min(time, end) - max(since, start))
        since, idle, waiting = time, idle + by_time[time][0], waiting + by_time[time][1]
    amounts[waiting > 0] += idle * max(0, end - max(since, start))
    return amounts[0], amounts[1]
