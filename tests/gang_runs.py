"""Runs of policies that share nodes in time, whose books check themselves; machines, jobs and a meddling policy to run."""

import random
from collections.abc import Sequence
from fractions import Fraction
from math import isnan
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from clustermodel import Checkpointing, ContextSwitch, Machine, Scenario, TimeSlicing, Workload
from clustermodel.experiment.result import Result
from clustermodel.machine.checkpoints import COUNTS
from clustermodel.machine.node_set import NodeSet, as_mask, from_mask
from clustermodel.machine.time_slicing import AT_EVENTS, AtEvents
from clustermodel.measure import job_table
from clustermodel.policies.interface import Checkpoint, Decision, Kill, Place, Policy, Rows, Setup, Suspend, WakeAt, decide_of
from clustermodel.policies.view import Batch, QueuedJob, RunningJob, View
from clustermodel.recording.ledger import Account, Amount
from clustermodel.recording.run_attempts import Status
from clustermodel.sim.simulation import Fidelity
from clustermodel.ticks import TICKS_PER_SECOND, to_seconds
from clustermodel.workload.job import JobRow
from clustermodel.workload.speedup import LINEAR
from tests.property.strategies import LATE, one_in, refused_sizes

POLICIES = ("gs", "bgs", "mgs", "mbgs")
BY_JOB = ("id", "start", "end", "worked", "ended_as", "reserved", "backfilled", "head_since")


class GangCase(NamedTuple):
    """A machine and its jobs."""

    machine: Machine
    rows: list[JobRow]


def run(case: GangCase, policy: str | Policy, *, fidelity: Fidelity = "fast") -> Result:
    """Run a case, and check what must hold in every run whatever the policy."""
    machine, rows = case
    result = Scenario(machine=machine, workload=Workload(rows), policy=policy, fidelity=fidelity, history=True).run()
    check_books(result)
    return result


def check_books(result: Result) -> None:
    """Check that the ledger balances to the tick, that jobs worked as long as they should, and that eq. (3) gives kappa."""
    records, ledger = result.records, result.ledger
    accepted = records.column("ended_as") != Status.REJECTED
    worked, size, ended_as, run_time, estimate, start, end, submit = (
        records.column(name)[accepted] for name in ("worked", "nodes", "ended_as", "run", "estimate", "start", "end", "submit")
    )
    if ledger.capacity:
        assert abs(result.kappa_by_formula - ledger.capacity_loss) <= 1e-9
        assert 0 <= ledger.capacity_loss <= 1
    else:
        assert isnan(result.kappa_by_formula)
        assert isnan(ledger.capacity_loss)
    horizon = int(end.max() - submit.min()) if accepted.any() else 0
    assert sum(sum(ledger.amount(account)) for account in Account) == ledger.nodes * horizon
    assert all(amount >= 0 for account in Account for amount in ledger.amount(account))
    attempts, held = records.stopped_runs, records.allocated[accepted]
    if (malleable := records.malleable[accepted]).any():
        check_work(result)
        worked, size, ended_as, run_time, estimate, held = (
            column[~malleable] for column in (worked, size, ended_as, run_time, estimate, held)
        )
    else:
        lost = ended_as == Status.ABORTED
        discarded = int(np.dot(held[lost], worked[lost]) + np.dot(attempts.nodes, attempts.lost))
        assert sum(ledger.amount(Account.USEFUL)) == int(np.dot(held[~lost], worked[~lost]))
        assert sum(ledger.amount(Account.LOST)) == discarded
    lost = ended_as == Status.ABORTED
    killed = ended_as == Status.KILLED
    asked = np.minimum(run_time, estimate) if result.machine.kill_at_estimate else run_time
    due, limit = (
        np.array([LINEAR.time_on(*numbers) for numbers in zip(*columns, strict=True)], dtype=int)
        for columns in ((asked.tolist(), size.tolist(), held.tolist()), (estimate.tolist(), size.tolist(), held.tolist()))
    )
    # Where nothing kills jobs at their estimates, a policy may: then their work counts as well.
    by_policy = killed & (not result.machine.kill_at_estimate)
    assert (worked[~lost & ~by_policy] == due[~lost & ~by_policy]).all()
    assert (worked[by_policy] >= limit[by_policy]).all()
    assert (worked[lost] <= due[lost]).all()
    down = result.records.outages
    first, last = ledger.start, ledger.end
    ends = np.where(down.end < 0, last, down.end).clip(first, last)
    assert sum(ledger.amount(Account.DOWN)) == int((ends - down.start.clip(first, last)).sum())
    once = np.bincount(attempts.job, minlength=len(records))[accepted] == 0
    assert (end - start >= records.column("worked")[accepted])[once].all()


def check_work(result: Result) -> None:
    """Check, run attempt by run attempt, that malleable jobs have done their work to the tick, and that its books are exact."""
    records, runs, ledger = result.records, result.records.runs, result.ledger
    executed = job_table.executed(records)
    assert sum(job_table.useful(records).tolist()) == sum(ledger.amount(Account.USEFUL))
    of_attempts = zip(*(column.tolist() for column in (runs.nodes, executed, runs.lost)), strict=True)
    amounts = [(nodes * (ticks - lost), nodes * lost) for nodes, ticks, lost in of_attempts]
    assert tuple(map(sum, zip(*amounts, strict=True))) == (
        sum(ledger.amount(Account.USEFUL)),
        sum(ledger.amount(Account.LOST)),
    )
    jobs = zip(*(records.column(name).tolist() for name in ("nodes", "run", "estimate", "ended_as")), strict=True)
    for index, (asked, run_time, estimate, ended_as) in enumerate(jobs):
        own = np.flatnonzero(runs.job == index)
        done, rounding = Fraction(0), Fraction(0)
        for nodes, ticks in zip(runs.nodes[own].tolist(), (executed - runs.lost)[own].tolist(), strict=True):
            due, limit = (
                ticks if nodes == asked else result.scenario.speedup.time_on(ticks, asked, nodes)
                for ticks in (run_time, estimate)
            )
            whole = min(due, limit) if result.machine.kill_at_estimate else due
            done += Fraction(ticks, whole)
            rounding += Fraction(2, whole)  # a resize, and a checkpoint before a failure, round down to a tick of this size
        if ended_as in (Status.COMPLETED, Status.KILLED):
            assert 1 <= done <= 1 + rounding
        else:
            assert done <= 1


def seen(result: Result) -> tuple[dict[str, list[int]], dict[Account, Amount]]:
    """Return everything that the two fidelities, or two runs, must agree on."""
    columns = {name: result.records.column(name).tolist() for name in BY_JOB}
    return columns, {account: result.ledger.amount(account) for account in Account}


def seen_in_time(result: Result) -> tuple[object, ...]:
    """Return what the two fidelities must agree on besides, if gangs shared their nodes: all that says what happened when."""
    log = result.events
    happened = [column.tolist() for column in log], result.states.to_dict("list")
    if result.slices is None:
        return *seen(result), *happened
    last = {moment.ticks: moment for moment in result.history.moments}  # of each instant
    return *seen(result), *happened, list(result.slices), [*last.values()], result.placements.to_dict("list")


def spans(result: Result) -> dict[int, tuple[int, int]]:
    """Return job -> (start, end) in ticks."""
    columns = (result.records.column(name).tolist() for name in ("id", "start", "end"))
    return {number: (start, end) for number, start, end in zip(*columns, strict=True)}


@st.composite
def gang_cases(
    draw: st.DrawFn,
    *,
    mpl: int | None = None,
    free: bool = False,
    kill: bool | None = None,
    exact_estimates: bool = False,
    priorities: bool = True,
    units: Sequence[int] = (1, 1_000, 1_000_000),
    quanta: tuple[int, int] = (1, 12),
    runs: tuple[int, int] = (1, 30),
    widest: int = 6,
    largest: int = 10,
    perhaps_none_runs: bool = False,
    at_events: AtEvents | None = None,
) -> GangCase:
    """Return a small machine and jobs close together; times are around whole ``units`` of ticks, so that instants collide.

    Some jobs are twins of others, some are submitted when all others have long ended, and the machine rejects some.

    ``quanta``, shortest and longest, and ``runs`` are in units; ``free`` is without context switches and costs of migration;
    ``perhaps_none_runs`` lets the machine reject all jobs.  What is ``None`` is drawn.
    """
    nodes = draw(st.integers(1, widest))
    unit = draw(st.sampled_from(units))
    odd = st.sampled_from((0, 0, 0, 1, 3)) if unit > 3 else st.just(0)
    quantum = draw(st.integers(*quanta)) * unit + draw(odd)
    cost = st.integers(0, 3 * quantum)
    limit = draw(st.none() | st.integers(0, nodes + 1))
    machine = Machine(
        nodes=nodes,
        kill_at_estimate=draw(st.booleans()) if kill is None else kill,
        time_slicing=TimeSlicing(
            quantum_s=to_seconds(quantum),
            mpl=mpl or draw(st.integers(1, 5)),
            at_events=at_events or draw(st.sampled_from(AT_EVENTS)),
        ),
        context_switch=ContextSwitch() if free else draw(switches(quantum)),
        checkpointing=Checkpointing(
            checkpoint_s=0 if free else to_seconds(draw(st.just(0) | cost)),
            restart_s=0 if free else to_seconds(draw(st.just(0) | cost)),
            max_tasks_per_slice=limit,
            counts=draw(st.sampled_from(COUNTS)),
        ),
        suspended_per_node=draw(st.none() | st.integers(0, 2)),
    )
    rows: list[JobRow] = []
    for number in range(1, draw(st.integers(1, largest)) + 1):
        if rows and draw(one_in(8)):
            rows.append(rows[-1]._replace(id=number))
            continue
        refused = (rows or perhaps_none_runs) and draw(one_in(8))
        run_time = draw(st.integers(*runs)) * unit + draw(odd)
        slack = 0 if exact_estimates else draw(st.sampled_from((0, 0, 1, 2, -1, -2))) * run_time // 3
        submit = (draw(st.integers(0, 40)) + (LATE if draw(one_in(8)) else 0)) * unit
        size = draw(refused_sizes(nodes) if refused else st.integers(1, nodes))
        priority = draw(st.sampled_from((0, 0, 1))) if priorities else 0
        rows.append(JobRow(submit, number, size, run_time, max(1, run_time + slack), -1, -1, priority, -1))
    return GangCase(machine, sorted(rows))


def switches(quantum: int) -> st.SearchStrategy[ContextSwitch]:
    """Return context switches that leave something of a quantum, by fraction or seconds, with both charges."""
    fractions = [share for share in (0.0, 0.01, 0.05, 1 / 3, 0.5, 0.9) if round(share * quantum) < quantum]
    seconds = st.integers(0, quantum * 9 // 10).map(to_seconds)  # with less left of a slice the twin takes ages
    charges = st.sampled_from(("on-change", "every-slice"))
    return st.one_of(
        st.builds(ContextSwitch, charge=charges),
        st.builds(ContextSwitch, fraction=st.sampled_from(fractions), charge=charges),
        st.builds(ContextSwitch, seconds=seconds, charge=charges),
    )


class Gang(NamedTuple):
    """What a policy was shown of a running gang."""

    rows: int
    columns: int
    """A bitmask."""
    progress: int
    overhead_left: int
    migrating: bool


class Migration(NamedTuple):
    """Gangs that migrate together, with their new columns, and gangs that wait meanwhile."""

    moves: list[tuple[QueuedJob, NodeSet]]
    blocked: tuple[QueuedJob, ...]


class Call(NamedTuple):
    """One call of ``decide``."""

    now: int
    running: dict[int, Gang]
    decisions: list[Decision]

    @property
    def migrations(self) -> list[Migration]:
        migrations = []
        for decision in self.decisions:
            if isinstance(decision, Rows):
                columns = {place.job: place.columns for place in decision.places}
                migrations += [
                    Migration([(job, columns[job]) for job in moves], blocked) for moves, blocked in decision.migrations
                ]
        return migrations


def expected_left(view: View, gang: RunningJob) -> int:
    """Return for how long a gang is expected to need its nodes, or slices, as the view has it for all gangs."""
    left = gang.job.estimate - view.progress(gang)
    if left <= 0:
        left = max(TICKS_PER_SECOND, -left)
    return view.overhead_left(gang) + (0 if gang.stopping else left)


class Watched:
    """A policy whose calls are written down."""

    def __init__(self, policy: Policy) -> None:
        self.name = policy.name
        self.calls: list[Call] = []
        self._policy = policy

    def start(self, setup: Setup) -> object:
        self.calls.clear()
        self._decide = decide_of(self._policy, setup)
        return self

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        running = {
            number: Gang(gang.rows, as_mask(gang.columns), view.progress(gang), view.overhead_left(gang), gang.migrating)
            for number, gang in view.running.items()
        }
        assert view.expected_left() == {number: expected_left(view, gang) for number, gang in view.running.items()}
        decisions = list(self._decide(batch, view))
        self.calls.append(Call(view.now, running, decisions))
        return decisions


class Meddler:
    """Starts, replicates, withdraws, rehomes, migrates, blocks, kills and wakes up at random, as far as that is allowed.

    It ``preempts`` so many gangs, or starts them with a time limit; then it starts jobs on other numbers of nodes too.
    """

    name = "meddler"

    def __init__(self, seed: int, *, preempts: int = 0) -> None:
        self._seed = seed
        self._most_preemptions = preempts
        self.decided: set[str] = set()

    def start(self, setup: Setup) -> object:
        machine = setup.machine
        self._draw = random.Random(self._seed)
        self._nodes = setup.nodes
        self._all = (1 << setup.nodes) - 1
        self._mpl = machine.time_slicing.mpl
        self._quantum = machine.time_slicing.quantum
        self._limit, self._counts = machine.checkpointing.max_tasks_per_slice, machine.checkpointing.counts
        self._kills, self._alarms, self._preemptions = 3, 30, self._most_preemptions
        self._moved: dict[int, int] = {}  # job id -> how many of its tasks got another node when it migrated last
        self._home: dict[int, int] = {}  # job id -> its home row
        self._size: dict[int, int] = {}  # job id -> on how many nodes it was started
        self._in_memory: dict[int, int] = {}  # id of a job that was suspended -> the columns it was suspended on
        self._saved: set[int] = set()  # ids of jobs that may have been saved at some time
        self._actions = [self._replicate, self._replicate, self._withdraw, self._rehome, self._move, self._kill]
        if self._most_preemptions:
            self._actions += [self._requeue, self._checkpoint, self._suspend]
        return self

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        draw = self._draw
        self._decisions: list[Decision] = []
        self._view = view
        self._jobs = {number: gang.job for number, gang in view.running.items()}
        self._rows = {n: {row for row in range(self._mpl) if gang.rows >> row & 1} for n, gang in view.running.items()}
        self._columns = {number: as_mask(gang.columns) for number, gang in view.running.items()}
        self._moving = {number for number, gang in view.running.items() if gang.migrating}
        self._in_rounds = {number for number, gang in view.running.items() if gang.stopping or gang.fetching}
        self._stopping = {number for number, gang in view.running.items() if gang.stopping}
        waiting = list(view.waiting.values())
        draw.shuffle(waiting)
        for job in waiting:
            if draw.random() < 0.8 or not self._jobs:
                self._start(job)
        for _ in range(draw.randrange(6)):
            if self._jobs:
                number = draw.choice(list(self._jobs))
                draw.choice(self._actions)(number)
        if not self._jobs:
            self._decisions.append(WakeAt(time=None if not view.waiting else view.now + self._quantum))
        elif self._alarms and draw.random() < 0.4:
            self._alarms -= 1
            self._decisions.append(WakeAt(time=view.now + draw.randint(1, 3 * self._quantum)))
        self.decided |= {type(decision).__name__ for decision in self._decisions}
        return self._decisions

    def _free(self, row: int, *, but: int = -1) -> int:
        taken = sum(self._columns[number] for number, rows in self._rows.items() if row in rows and number != but)
        return self._all & ~taken

    def _store_has_room(self, number: int, row: int) -> bool:
        if self._limit is None:
            return True
        others = [other for other in self._moving if row in self._rows[other] and other != number]
        return sum(self._tasks_at_the_store(other) for other in (*others, number)) <= self._limit

    def _tasks_at_the_store(self, number: int) -> int:
        in_rounds = number in self._in_rounds
        tasks = self._columns[number].bit_count()
        if not in_rounds and self._counts != "gang":
            tasks = max(1, self._moved.get(number, 0))
        return min(tasks, self._limit or 0) if in_rounds or self._counts == "spread" else tasks

    def _pick(self, free: int, nodes: int) -> int:
        return sum(1 << column for column in self._draw.sample([c for c in range(free.bit_length()) if free >> c & 1], nodes))

    def _start(self, job: QueuedJob) -> None:
        draw, image = self._draw, job.id in self._in_memory or (self._limit != 0 and job.id in self._saved)
        size = self._size.get(job.id, job.nodes)
        if self._most_preemptions and job.id not in self._saved:
            size = draw.choice((job.nodes, job.nodes, draw.randint(1, self._nodes)))
        rows = [row for row in range(self._mpl) if self._free(row).bit_count() >= size]
        if not rows:
            return
        row = draw.choice(rows)
        columns = self._pick(self._free(row), size)
        in_memory = self._in_memory.get(job.id)
        if in_memory is not None and not in_memory & ~self._free(row) and (self._limit == 0 or draw.random() < 0.7):
            columns = in_memory  # where it is in memory
        self._columns[job.id], self._rows[job.id] = columns, {row}
        if image and columns != in_memory:
            self._in_rounds.add(job.id)
            if self._limit == 0 or not self._store_has_room(job.id, row):
                self._in_rounds.discard(job.id)
                del self._columns[job.id], self._rows[job.id]
                return
            self._moving.add(job.id)
        if image:
            self._in_rounds.add(job.id)
        if self._limit != 0:  # else a job that is stopped while it resumes can only be resumed there again
            self._in_memory.pop(job.id, None)
        self._jobs[job.id], self._size[job.id] = job, size
        limit = None
        if self._preemptions and draw.random() < 0.2:
            self._preemptions -= 1
            limit = draw.randint(1, 3 * self._quantum)
        place = Place(job, from_mask(columns), (row,), nodes=size, limit=limit)
        self._home[job.id] = row
        self._decisions.append(Rows(places=(place,)))

    def _place(self, number: int, blocked: list[int] | None = None) -> None:
        """Say where a gang runs now; it moves to its columns if others wait for that."""
        job, rows = self._jobs[number], self._rows[number]
        home = self._home[number] = self._home[number] if self._home[number] in rows else min(rows)
        place = Place(job, from_mask(self._columns[number]), (home, *sorted(rows - {home})))
        pairs = () if blocked is None else (((job,), tuple(self._jobs[other] for other in blocked)),)
        self._decisions.append(Rows(places=(place,), migrations=pairs))

    def _replicate(self, number: int) -> None:
        row = self._draw.randrange(self._mpl)
        if self._columns[number] & ~self._free(row) or row in self._rows[number]:
            return
        if number not in self._moving or self._store_has_room(number, row):
            self._rows[number].add(row)
            self._place(number)

    def _withdraw(self, number: int) -> None:
        if len(self._rows[number]) > 1:
            row = self._draw.choice(sorted(self._rows[number]))
            self._rows[number].remove(row)
            self._place(number)

    def _rehome(self, number: int) -> None:
        self._home[number] = self._draw.choice(sorted(self._rows[number]))
        self._place(number)

    def _move(self, number: int) -> None:
        row = self._draw.randrange(self._mpl)
        size = self._columns[number].bit_count()
        free = self._free(row, but=number)
        if number in self._in_rounds or free.bit_count() < size or self._limit == 0:
            return
        columns, before = self._pick(free, size), self._moved.get(number, 0)
        moved = (columns & ~self._columns[number]).bit_count()
        self._moved[number] = max(moved, before) if number in self._moving else moved
        if not self._store_has_room(number, row):
            self._moved[number] = before
            return
        others = [other for other in self._jobs if other != number and other not in self._stopping]
        blocked = self._draw.sample(others, min(len(others), self._draw.randrange(3)))
        self._columns[number], self._rows[number] = columns, {row}
        self._moving.add(number)
        self._place(number, blocked)

    def _kill(self, number: int) -> None:
        if self._kills:
            self._kills -= 1
            self._in_memory.pop(number, None)
            self._decisions.append(Kill(job=self._jobs.pop(number)))  # its tasks are in their rows until the instant is over

    def _requeue(self, number: int) -> None:
        if self._preemptions:
            self._preemptions -= 1
            self._in_memory.pop(number, None)
            self._decisions.append(Kill(job=self._jobs.pop(number), requeue=True))

    def _checkpoint(self, number: int) -> None:
        if not self._preemptions or number in self._stopping or (not self._limit and self._limit is not None):
            return
        rounds = number in self._in_rounds
        self._in_rounds.add(number)
        if not all(self._store_has_room(number, row) for row in self._rows[number]):
            if not rounds:
                self._in_rounds.discard(number)
            return
        self._preemptions -= 1
        self._moving.add(number)
        self._saved.add(number)
        self._decisions.append(Checkpoint(job=self._jobs.pop(number)))

    def _suspend(self, number: int) -> None:
        gang = self._view.running.get(number)
        if not self._preemptions or gang is None or gang.stopping or not self._view.can_suspend(gang):
            return
        suspended = [decision.job.id for decision in self._decisions if isinstance(decision, Suspend)]
        if any(self._columns[number] & self._columns[other] for other in suspended):
            return  # the memory that the view showed may be taken
        self._preemptions -= 1
        self._saved.add(number)
        if not gang.fetching:
            self._in_memory[number] = self._columns[number]
        self._decisions.append(Suspend(job=self._jobs.pop(number)))
