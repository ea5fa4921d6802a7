"""What each decision of a policy does on the machine: one table, decision by decision."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any, Final

from clustermodel.errors import DecisionError, counted, shown
from clustermodel.machine.node_set import NodeSet, as_mask, count, from_mask, from_members, is_node_set, text
from clustermodel.policies.interface import (
    Checkpoint,
    Kill,
    MaskedPlace,
    Migrate,
    Place,
    Reason,
    Reserve,
    Resize,
    Rows,
    RowsAsMasks,
    Start,
    Suspend,
    WakeAt,
)
from clustermodel.policies.view import QueuedJob, RunningJob
from clustermodel.recording.run_attempts import Status
from clustermodel.sim.events import AlarmClock, JobProcess
from clustermodel.sim.job_process import SAVING, Execution, JobInSystem, Terms
from clustermodel.sim.node_pool import may_have, one_of
from clustermodel.sim.node_types import at_speed
from clustermodel.sim.parts import Parts

if TYPE_CHECKING:
    from clustermodel.policies.interface import Decision
    from clustermodel.sim.time_sharing.shared_nodes import TimeSharing

_DIFFER: Final = "where nodes differ in speed, what has been executed on some is not saved for others"
_COMPLETED: Final = Status.COMPLETED  # a global name is looked up faster than a member of an enumeration


class Decisions:
    """Carries out decisions; an impossible one is refused."""

    def __init__(self, run: Parts, alarm: AlarmClock) -> None:
        self.started: list[QueuedJob] = []  # jobs started in the present cycle, or in earlier ones at the same time
        self.frees_nodes = False  # whether a gang stopped in the last cycle frees its nodes now, so that another follows
        self._run = run
        self._jobs, self._running, self._pool, self._records = run.jobs, run.running, run.pool, run.records
        self._waiting, self._leave_queue = run.pool.waiting, run.pool.queue.leave
        self._any_node, self._rules, self._reasons, self._machine = run.any_node, run.rules, run.reasons, run.machine
        self._processors, self._limits_memory = run.machine.processors, run.saved.free is not None
        self._alarm, self._unreported = alarm, run.unreported
        self._in_rows: TimeSharing | None = None  # since a first job was placed in rows
        self._stopped: set[int] = set()  # ids of jobs stopped in the present cycle
        self._granted: list[JobProcess] = []  # of jobs started in the present cycle, which begin to run at its end
        self._interrupts = False  # whether gangs have been interrupted in the present cycle
        self._now = 0
        self._by_policy = ""
        self._table: dict[type, Callable[[Any], None]] = {
            Start: self._start,
            Kill: self._kill,
            Checkpoint: lambda decision: self._stop(decision.job, Status.CHECKPOINTED, "checkpointed"),
            Suspend: lambda decision: self._stop(decision.job, Status.SUSPENDED, "suspended"),
            Reserve: self._reserve,
            WakeAt: self._wake_at,
            Rows: self._place_in_rows,
            RowsAsMasks: self._place_by_masks,
            Migrate: self._migrate,
            Resize: self._resize,
        }

    def carry_out(self, decisions: Iterable[Decision], now: int, by_policy: str) -> None:
        self._now, self._by_policy = now, by_policy
        if self._interrupts:
            self._stopped.clear()
            self._interrupts = self.frees_nodes = False
        table = self._table
        for decision in decisions:
            if (carry_out := table.get(type(decision))) is None:
                kinds = ", ".join(kind.__name__ for kind in table if kind is not RowsAsMasks)
                raise DecisionError(f"{shown(repr(decision))} is not a decision; it must be one of {kinds}")
            try:
                carry_out(decision)
            except (AttributeError, TypeError):
                _require_well_formed(decision)
                raise
        if self._limits_memory:
            self._run.saved.require_room()

    def begin_granted(self) -> None:
        """Let the jobs that have been started in the present cycle, and have not begun yet, begin to run."""
        for process in self._granted:
            process.go_on()
        self._granted.clear()

    def _begin_in_turn(self) -> None:
        # Interrupts take effect by events, in the order of the decisions: if there are any, jobs begin by events too.
        self._interrupts = True
        for process in self._granted:
            process.go_on_in_turn()
        self._granted.clear()

    def _start(self, decision: Any) -> None:
        queued: QueuedJob = decision.job
        if self._waiting.get(queued.id) is not queued:
            state = "it is running already" if queued.id in self._running else "it is not in the queue"
            raise DecisionError(f"job {queued.id} cannot start: {state}")
        job, columns = self._jobs[queued.id], decision.columns
        terms = self._terms(decision, job)
        if columns is not None:
            columns = _plain_columns(columns, queued, terms[0])
            if not (self._any_node or self._are_columns(terms[0], columns)):
                needed = f"they must be ascending ranges, (low, high, ...), of {terms[0]} nodes in all"
                raise DecisionError(f"job {queued.id} cannot start on columns {columns!r}: {needed}")
        if self._unreported.gangs:
            self._unreported.free_for(queued, terms[0], columns)
        if self._any_node:
            gang = self._run.sharing.start(job, terms, columns)
        else:
            gang = self._start_where_allowed(decision, job, terms, columns)
        self._begin(job, gang, decision.reason)

    def _start_where_allowed(self, decision: Any, job: JobInSystem, terms: Terms, columns: NodeSet | None) -> Execution:
        """Give a job nodes that it may have, for as long as it takes there."""
        run, queued = self._run, job.queued
        if run.requests is not None:
            columns = run.requests.take(queued, terms[0], columns, self._pool.idle_nodes.as_set(), run.saved)
        elif queued.eligible is not None:
            columns = self._eligible_nodes(job, terms[0], columns)
        if run.speeds is not None:
            columns = run.choice.idle_for(queued, terms[0], queued.sets_eligible()) if columns is None else columns
            if columns is not None:  # else the node pool refuses
                terms = self._terms(decision, job, run.speeds.slowest(columns))
        gang = run.sharing.start(job, terms, columns)
        if run.reservations is not None:
            run.reservations.require_free(gang, gang.columns)
        return gang

    def _eligible_nodes(self, job: JobInSystem, nodes: int, columns: NodeSet | None) -> NodeSet | None:
        """Return nodes for a job that may not have all: as decided, those that keep its image, or the lowest idle ones."""
        image, saved = job.image, self._run.saved
        if columns is None and image is None and saved.free is None:
            return None  # the node pool knows
        if columns is None and image is not None and image.columns and self._pool.idle_nodes.has(image.columns):
            columns = image.columns
            if as_mask(columns) & ~as_mask(job.queued.eligible or ()):  # they are reserved for others
                columns = None
        return self._pool.eligible_nodes(job.queued, nodes, columns, -1 if saved.free is None else saved.nodes_for(job))

    def _begin(self, job: JobInSystem, gang: Execution, reason: Reason | None) -> None:
        queued = job.queued
        job.execution = self._running[queued.id] = gang
        if self._run.guard is not None:
            self._run.guard.lock(gang)
        self._leave_queue(queued.id)
        job.attempts += 1
        process = job.process  # which waits to go on
        if self._interrupts:
            process.go_on_in_turn()
        else:
            self._granted.append(process)
        self.started.append(queued)
        for rule in self._rules:
            rule.started(job)
        self._records.started(job.index, self._now, gang.columns, gang.nodes)
        if self._reasons is not None:
            self._reasons[queued.id] = reason or Reason(f"started by {self._by_policy}")

    def _terms(self, decision: Any, job: JobInSystem, speed: float = 1.0) -> Terms:
        """Return on how many nodes a job starts, for how long it will execute and can be expected to, and how that ends."""
        queued, machine, nodes, limit = job.queued, self._machine, None, None
        if decision.nodes is not None or decision.limit is not None:
            nodes, limit = (_plain(number, f"job {queued.id} cannot start") for number in (decision.nodes, decision.limit))
        duration, length, outcome = job.run_time, queued.estimate, _COMPLETED
        if nodes is None or nodes == queued.nodes:
            nodes = queued.nodes
        elif 1 <= nodes <= self._processors:
            duration, length = self._run.times.on(job, nodes)
        else:
            raise DecisionError(f"job {queued.id} cannot start on {nodes} nodes: the machine has {self._processors}")
        if speed != 1:
            duration = at_speed(duration, speed)
        if duration > length and machine.kill_at_estimate:
            duration, outcome = length, Status.KILLED
        if job.image is not None:
            if nodes != (saved := job.image.nodes):
                if job.sizes is None or job.image.columns:
                    raise DecisionError(f"job {queued.id} cannot start on {nodes} nodes: it has been saved with {saved} tasks")
                job.image = self._run.times.image_on(job, job.image, nodes)
                assert job.image is not None
            duration, length = duration - job.image.work, max(length - job.image.work, 1)
        if limit is not None:
            if limit <= 0:
                raise DecisionError(f"job {queued.id} cannot start with a time limit of {limit} ticks")
            length = min(length, limit)
            if limit < duration:
                duration, outcome = limit, Status.REQUEUED
        return nodes, duration, length, outcome

    def _kill(self, decision: Kill) -> None:
        waits = self._pool.waiting.get(decision.job.id) is decision.job
        if decision.requeue and waits and (job := self._jobs[decision.job.id]).suspended_on:
            self._run.states.discard_image(job)
            return
        if decision.requeue:
            self._stop(decision.job, Status.PREEMPTED, "killed")
            return
        gang = self._gang_of(decision.job, "be killed")
        has_had_its_time = gang.executed() >= gang.length and not gang.stopping
        self._stop(decision.job, Status.KILLED if has_had_its_time else Status.ABORTED, "killed")

    def _stop(self, job: QueuedJob, outcome: Status, how: str) -> None:
        gang = self._gang_of(job, f"be {how}")
        if outcome in SAVING and self._run.speeds is not None:
            raise DecisionError(f"job {job.id} cannot be {how}: {_DIFFER}")
        self._begin_in_turn()
        frees_nodes = gang.stop(outcome)
        self._stopped.add(job.id)
        self.frees_nodes |= frees_nodes

    def _gang_of(self, job: QueuedJob, what: str, *, goes_on: bool = True) -> Execution:
        """Return the running gang of a job; one that ``goes_on`` has not been stopped in the present cycle."""
        gang = self._running.get(job.id)
        if gang is None or gang.job is not job:
            raise DecisionError(f"job {job.id} cannot {what}: it is not running")
        if goes_on and job.id in self._stopped:
            raise DecisionError(f"job {job.id} cannot {what}: it has been stopped at this time already")
        return gang

    def _migrate(self, decision: Any) -> None:
        moves: dict[Execution, NodeSet] = {}
        try:
            moved = self._listed(decision.moves, "Migrate has", "moves")
            given = [(job, columns) for job, columns in moved]
        except (TypeError, ValueError):
            raise _not("Migrate", "moves", decision.moves, "they must be pairs (job, columns)") from None
        if given and self._run.speeds is not None:
            raise DecisionError(f"job {given[0][0].id} cannot migrate: {_DIFFER}")
        for job, _ in given:
            _require_job(job, "Migrate")
        for job, columns in given:
            gang = self._gang_of(job, "migrate")
            if gang in moves:
                raise DecisionError(f"job {job.id} cannot migrate: the decision moves it twice")
            moves[gang] = _allowed_columns(columns, job, gang.nodes)
        if not self._run.sharing.is_settled:  # running gangs are interrupted
            self._begin_in_turn()
        before = {gang: gang.columns for gang in moves}
        self._run.sharing.migrate(list(moves.items()))
        if (reservations := self._run.reservations) is not None:
            for gang, columns in before.items():
                reservations.require_free(gang, gang.columns, columns)

    def _resize(self, decision: Any) -> None:
        job: QueuedJob = decision.job
        gang, columns = self._gang_of(job, "be resized"), decision.columns
        nodes = _plain(decision.nodes, f"job {job.id} cannot be resized")
        if columns is not None:
            columns = _allowed_columns(columns, job, -1 if nodes is None else nodes)
        self._begin_in_turn()
        self._run.resizes.carry_out(gang, nodes, columns)

    def _place_in_rows(self, decision: Any) -> None:
        """Find out what the new places mean, and check them."""
        waiting, running = self._pool.waiting, self._running
        stay: list[tuple[Execution, int, int, int]] = []
        start: list[tuple[JobInSystem, Terms, int, int, int, Reason | None]] = []
        places = tuple(self._listed(decision.places, "Rows has", "places"))
        if len(places) > 1:
            _require_different_jobs(places)
        for place in places:
            job: QueuedJob = place.job
            columns = place.columns
            rows, home = self._rows(place)
            if waiting.get(job.id) is job:
                terms = self._terms(place, in_system := self._jobs[job.id])
                nodes = terms[0]
                plain = _allowed_columns(columns, job, nodes)
                if not self._are_columns(nodes, plain):
                    raise DecisionError(
                        f"job {job.id} cannot start in row {home} on columns {plain!r}: "
                        f"they must be ascending ranges, (low, high, ...), of {nodes} nodes in all"
                    )
                start.append((in_system, terms, as_mask(plain), rows, home, place.reason))
                continue
            gang = running.get(job.id)
            if gang is None or gang.job is not job:
                gang = self._gang_of(job, "be placed in rows")
            if type(columns) is not tuple or columns != gang.columns:
                columns = _allowed_columns(columns, job, gang.nodes)
                if columns != gang.columns:
                    self._gang_of(job, "migrate")
                    if not self._are_columns(gang.nodes, columns):
                        refused = f"job {job.id} cannot migrate to columns {columns!r}"
                        raise DecisionError(f"{refused}: its gang needs {gang.nodes} nodes")
            stay.append((gang, as_mask(columns), rows, home))
        self._arrange(
            start, stay, [self._migration(pair) for pair in self._listed(decision.migrations, "Rows has", "migrations")]
        )

    def _are_columns(self, nodes: int, columns: NodeSet) -> bool:
        """Return whether ``columns`` are a set of ``nodes`` nodes of the machine."""
        within = bool(columns) and 0 <= columns[0] < columns[-1] <= self._processors
        return within and is_node_set(columns) and count(columns) == nodes

    def _place_by_masks(self, decision: Any) -> None:
        """Carry out a decision on rows that has bitmasks, those of a policy of this package, which are not checked."""
        running, reasons = self._running, decision.reasons
        stay: list[tuple[Execution, int, int, int]] = []
        start: list[tuple[JobInSystem, Terms, int, int, int, Reason | None]] = []
        places: list[MaskedPlace] = decision.masks
        for job, columns, rows, home in places:
            if (gang := running.get(job.id)) is not None:
                stay.append((gang, columns, rows, home))
                continue
            in_system = self._jobs[job.id]
            start.append((in_system, self._terms(decision, in_system), columns, rows, home, reasons.get(job.id)))
        migrations: list[tuple[list[Execution], list[Execution]]] = []
        for moves, blocked in decision.migrations:
            migrations.append(([running[job.id] for job in moves], [running[job.id] for job in blocked]))
        self._arrange(start, stay, migrations)

    def _arrange(
        self,
        start: list[tuple[JobInSystem, Terms, int, int, int, Reason | None]],
        stay: list[tuple[Execution, int, int, int]],
        migrations: list[tuple[list[Execution], list[Execution]]],
    ) -> None:
        """Let gangs leave rows, migrate, start and enter rows, in this order; all have columns, rows and a home row."""
        if self._in_rows is None:
            self._in_rows = self._run.share_in_time()
        sharing = self._in_rows
        if (reservations := self._run.reservations) is not None:
            for gang, columns, _, _ in stay:
                reservations.require_free(gang, from_mask(columns), gang.columns)
        sharing.rearrange(stay, migrations)
        for in_system, terms, columns, rows, home, reason in start:
            begun = sharing.start_in_row(in_system, terms, columns, home)
            if reservations is not None:
                reservations.require_free(begun, begun.columns)
            self._begin(in_system, begun, reason)
            if rows != begun.rows:
                stay.append((begun, columns, rows, home))
        sharing.enter(stay)

    def _rows(self, place: Any) -> tuple[int, int]:
        """Return the rows of a place, a bitmask, and the home row."""
        job_id, mpl, given = place.job.id, self._run.machine.time_slicing.mpl, place.rows
        try:
            rows = tuple(map(operator.index, given[:]))
        except (TypeError, KeyError):  # a set has no order, a dictionary no slice
            shown_rows = shown(repr(given))
            raise DecisionError(
                f"job {job_id} cannot run in rows {shown_rows}: they are not a tuple of whole numbers"
            ) from None
        if not rows:
            raise DecisionError(f"job {job_id} is left in no row: each running gang must be in at least one")
        mask = 0
        for row in rows:
            if not 0 <= row < mpl:
                raise DecisionError(f"job {job_id} cannot run in row {row}: the multiprogramming level is {mpl}")
            mask |= 1 << row
        return mask, rows[0]

    def _migration(self, pair: Any) -> tuple[list[Execution], list[Execution]]:
        """Return the gangs that migrate together, and those that wait meanwhile."""
        try:
            moves, blocked = (self._listed(jobs, "Rows has", "jobs in a migration") for jobs in pair)
        except (TypeError, ValueError):
            raise _not("Rows", "a migration", pair, "it must be a pair (jobs, jobs)") from None
        for job in (*moves, *blocked):
            _require_job(job, "Rows")
        gangs = [self._gang_of(job, "migrate", goes_on=False) for job in moves]
        return gangs, [self._gang_of(job, "wait for a migration", goes_on=False) for job in blocked]

    def _listed(self, values: Iterable[Any], has: str, what: str) -> list[Any]:
        return listed(values, 2 * len(self._jobs), has, what, len(self._jobs))  # a job that is there twice is refused below

    def _reserve(self, decision: Any) -> None:
        job: QueuedJob = decision.job
        if self._pool.waiting.get(job.id) is not job:
            raise DecisionError(f"job {job.id} cannot hold a reservation: it does not wait")
        start = _plain(decision.start, refused := f"job {job.id} cannot hold a reservation")
        if start is None:
            raise DecisionError(f"{refused}: it has no start")
        if start < self._now:
            raise DecisionError(f"{refused} at {start}: it is {self._now} already")
        self._records.reserved(self._jobs[job.id].index, start, self._now)

    def _wake_at(self, decision: Any) -> None:
        time = _plain(decision.time, "the alarm clock cannot be set")
        if time is not None and time <= self._now:
            raise DecisionError(f"the alarm clock cannot be set to {time}: it is {self._now} already")
        self._alarm.set(time)


# What a policy writes into a decision is read as ``Any``: it may be a number of numpy, which would turn clock and ledger into
# 64 bits, or no number at all.


def listed(values: Iterable[Any], most: int, has: str, what: str, jobs: int) -> list[Any]:
    """Return what a policy gives as a list; more than there can be, perhaps without end, is refused."""
    kept = list(islice(values, most + 1))
    if len(kept) > most:
        raise DecisionError(f"{has} more than {most:,} {what}, which is the most with {counted(jobs, 'job')} in the system")
    return kept


def _not(decision: str, given: str, value: object, must: str) -> DecisionError:
    return DecisionError(f"{decision} is given {given} {shown(repr(value))}; {must}")


def _require_well_formed(decision: Any) -> None:
    """Refuse a decision that is given something else than jobs, or places of jobs."""
    if type(decision) is Rows:
        if not isinstance(decision.places, Iterable):
            raise _not("Rows", "places", decision.places, "they must be a tuple of Place(...)")
        for place in decision.places:
            if type(place) is not Place:
                raise _not("Rows", "a place", place, "it must be Place(job, columns, rows)")
            _require_job(place.job, "Place")
    elif type(decision) not in (Migrate, WakeAt):
        _require_job(decision.job, type(decision).__name__)


def _require_different_jobs(places: tuple[Any, ...]) -> None:
    if len({place.job.id for place in places}) < len(places):
        twice = next(place.job.id for place, another in combinations(places, 2) if place.job.id == another.job.id)
        raise DecisionError(f"job {twice} has two places in one decision")


def _require_job(job: Any, decision: str) -> None:
    if isinstance(job, QueuedJob):
        return
    if isinstance(job, RunningJob):
        raise DecisionError(f"{decision} is given the running gang of job {job.job.id}; it must be given the job, gang.job")
    by_id = f"view.waiting[{job}]" if type(job) is int else "one of view.waiting"
    raise DecisionError(f"{decision} is given {shown(repr(job))} as a job; it must be given the job, {by_id} or gang.job")


def _plain(number: Any, refused: str) -> int | None:
    """Return a number of a decision as Python's own."""
    try:
        return None if number is None else operator.index(number)
    except TypeError:
        raise DecisionError(f"{refused}: {number!r} is not a whole number") from None


def _plain_columns(columns: Any, job: QueuedJob, nodes: int) -> NodeSet:
    """Return the columns of a decision as ranges: a tuple has the bounds of ranges, a list, range or set has the nodes."""
    try:
        len(columns)  # what has no end is no set of nodes
        plain = tuple(map(operator.index, columns))
    except TypeError:
        raise DecisionError(
            f"job {job.id} cannot run on nodes {shown(repr(columns))}: they must be a list or a range of nodes, or ranges as "
            "those of view.idle_nodes()"
        ) from None
    if type(columns) is not tuple:
        return from_members(plain)
    if len(plain) == nodes != 2 and not (is_node_set(plain) and count(plain) == nodes):
        raise DecisionError(
            f"job {job.id} cannot run on columns {plain}: a tuple has the bounds of ranges, (first, after the last, ...); "
            f"nodes are a list, {list(plain)}"
        )
    return plain


def _allowed_columns(columns: Any, job: QueuedJob, nodes: int) -> NodeSet:
    """Return the columns of a decision as ranges, of nodes that the job may have."""
    plain = _plain_columns(columns, job, nodes)
    if job.allowed is not None and plain and is_node_set(plain) and plain[0] >= 0 and not may_have(plain, job.sets_allowed()):
        raise DecisionError(f"job {job.id} cannot run on nodes {text(plain)}: it may have {one_of(job.sets_allowed())} only")
    return plain
