"""The coordinating process: it lets each instant settle, asks the policy once, and carries out what it decides.

It knows no policy.  Each decision type has one method that carries it out, found in a table; a new type (preempt,
replicate, migrate, reshape) is a new entry, and nothing else here changes.  An impossible decision is refused loudly.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Generator, Iterable
from types import MappingProxyType
from typing import Any, Final

from simpy import Event, Process

from clustermodel.errors import DecisionError, SpecificationError, StrandedJobsError, counted
from clustermodel.job import JobRow
from clustermodel.machine import Machine
from clustermodel.policies.interface import (
    Batch,
    Checkpoint,
    Kill,
    Migrate,
    Policy,
    QueuedJob,
    Reason,
    Rehome,
    Replicate,
    Reserve,
    RunningJob,
    Start,
    Suspend,
    View,
    WakeAt,
    Withdraw,
)
from clustermodel.recording.job_records import PREEMPTIONS, JobRecords, Status
from clustermodel.recording.ledger import Account, Ledger
from clustermodel.recording.matrix_history import Cell, History, Moment
from clustermodel.recording.slice_log import SliceLog
from clustermodel.schedule.node_set import as_mask, is_node_set
from clustermodel.sim.events import AlarmClock, Clock, InstantSettled
from clustermodel.sim.job_process import Stop, run_gang, run_sliced_gang
from clustermodel.sim.node_pool import NodePool
from clustermodel.sim.saved_work import Image, Preemption
from clustermodel.sim.time_sharing.matrix_rows import MatrixRows, SlicedGang
from clustermodel.sim.time_sharing.rotation import Rotation, TimeSliceProcess
from clustermodel.speedup import LINEAR, Speedup

_TO_BE_CONTINUED: Final = (Status.REQUEUED, *PREEMPTIONS)
"""How a run ends that does not end its job."""


class Coordinator:
    """The state that the coordinating process owns, and the process itself (:meth:`run`).

    Args:
        env: the simulation.
        machine: what jobs run on.
        policy: what decides; ``begin`` has been called.
        streams: number of job streams that will call :meth:`stream_finished`.
        explain: keep the reasons of all starts.
        history: keep every state of the Ousterhout matrix.
        speedup: how run times change where jobs are started with another width than they asked for.
        time_slices: makes the time-slice process, if the policy shares nodes in time.
    """

    def __init__(
        self,
        env: Clock,
        machine: Machine,
        policy: Policy,
        streams: int,
        *,
        explain: bool,
        history: bool = False,
        speedup: Speedup = LINEAR,
        time_slices: Callable[[Clock, Machine, Ledger, SliceLog], TimeSliceProcess] = Rotation,
    ) -> None:
        self.records = JobRecords()
        self.ledger = Ledger(machine.nodes)
        self.reasons: dict[int, Reason] | None = {} if explain else None
        """Job id -> why it started; ``None`` when the log is off."""
        self.history = History(machine.time_slicing.quantum) if history else None
        """Every state of the Ousterhout matrix; ``None`` when it is not kept."""
        self._env = env
        self._machine = machine
        self._policy = policy
        self._speedup = speedup
        self._pool = NodePool(env, machine.nodes)
        self._preemption = Preemption(env, machine, self.ledger, self.records)
        self._make_time_slices = time_slices
        self._slices: TimeSliceProcess | None = None  # holds the whole machine, once a job has been started in a row
        self.slice_log: SliceLog | None = None
        """What ran between scheduling events, where nodes are shared in time."""
        self._open_streams = streams
        self._waiting: dict[int, QueuedJob] = {}  # in queue order
        self._running: dict[int, RunningJob] = {}
        self._ids: set[int] = set()  # of all jobs submitted so far
        self._index: dict[int, int] = {}  # id of a job in the system -> its record
        self._run_time: dict[int, int] = {}  # id of a job in the system -> its run time, which no policy sees
        self._gangs: dict[int, tuple[Process, int]] = {}  # id of a running job -> its process, dispatch number
        self._dispatches = 0
        self._batch_ended: list[RunningJob] = []
        self._batch_submitted: list[QueuedJob] = []
        self._batch_requeued: list[QueuedJob] = []
        self._batch_alarm = False
        self._started: list[QueuedJob] = []
        self._told_to_stop: set[int] = set()  # ids of jobs, while decisions are carried out
        self._goes_on = False  # whether one of them frees its nodes at this very instant
        self._left = 0  # jobs that have left the queue since its dictionary was last laid anew
        self._head: QueuedJob | None = None  # the job that was last left at the head of the queue
        self._settled = InstantSettled(env)
        self._alarm = AlarmClock(env, self._ring)
        self._carry_out: dict[type, Callable[[Any], None]] = {
            Start: self._start,
            Kill: self._kill,
            Checkpoint: self._checkpoint,
            Suspend: self._suspend,
            Reserve: self._reserve,
            WakeAt: self._wake_at,
            Replicate: self._replicate,
            Withdraw: self._withdraw,
            Rehome: self._rehome,
            Migrate: self._migrate,
        }
        self._view = View()
        self._view.waiting = MappingProxyType(self._waiting)
        self._view.running = MappingProxyType(self._running)
        self._view.progress = self._progress
        self._view.overhead_left = _overhead_left
        self._view.saved = self._preemption.saved
        self._view.can_suspend = self._preemption.can_suspend

    # What the other processes tell the coordinator.

    def submit(self, row: JobRow) -> None:
        """A job stream submits a job."""
        if row.id in self._ids:
            raise SpecificationError(f"job id {row.id} is submitted twice; ids must be unique among all streams")
        self._ids.add(row.id)
        index = self.records.submitted(row)
        self._settled.arm()
        if not 0 < row.nodes <= self._machine.nodes:
            self.records.rejected(index)
            return
        self._index[row.id] = index
        self._run_time[row.id] = row.run
        self._batch_submitted.append(QueuedJob(row.id, row.nodes, row.submit, row.estimate, row.user, row.group, row.priority))

    def stream_finished(self) -> None:
        """A job stream has submitted its last job."""
        self._open_streams -= 1
        self._settled.arm()

    def gang_ended(self, gang: RunningJob, status: Status) -> None:
        """A gang's process reports its end, or that it has reached its time limit; its nodes are idle again."""
        job, now = gang.job, self._env.now
        del self._running[job.id]
        del self._gangs[job.id]
        if self._slices is not None and isinstance(gang, SlicedGang):
            worked = self._slices.progress(gang) if status is Status.ABORTED else gang.duration
            lost = worked if status is Status.ABORTED else 0
            before = 0
            self._slices.dismiss(gang)
        else:
            before = self._preemption.saved(job)
            worked, lost = self._preemption.ended(gang, status)
        gang.ran = before + worked
        self._batch_ended.append(gang)
        if status in _TO_BE_CONTINUED:
            self.records.stopped(self._index[job.id], now, status, worked, lost)
            self._batch_requeued.append(job)
            if job is self._head:
                self._head = None
        else:
            self.records.ended(self._index.pop(job.id), now, status, gang.ran)
            del self._run_time[job.id]
        self.ledger.charge(Account.USEFUL, gang.nodes * (worked - lost))
        if lost:
            self.ledger.charge(Account.LOST, gang.nodes * lost)
        self._settled.arm()

    # The process.

    def run(self) -> Generator[Event, object, None]:
        """Settle instant after instant until all streams have finished and no job waits or runs.

        Raises:
            DecisionError: the policy asked for something impossible.
            StrandedJobsError: jobs wait, and nothing will ever happen again.
        """
        while self._open_streams or self._waiting or self._running or self._batch_submitted:
            yield self._settled
            self._settled = InstantSettled(self._env)
            if self._batch_ended or self._batch_submitted or self._batch_alarm:
                self._settle(self._env.now)
            if self._waiting and not (self._running or self._open_streams or self._alarm.at):
                self._strand()
        self.ledger.close()

    def _settle(self, now: int) -> None:
        ended, submitted, requeued = self._batch_ended, self._batch_submitted, self._batch_requeued
        batch = Batch(ended, submitted, self._batch_alarm, requeued)
        self._batch_ended, self._batch_submitted, self._batch_alarm = [], [], False
        waiting = self._waiting
        if len(ended) > 1:
            ended.sort(key=lambda gang: gang.job.queue_order)
        if requeued:
            self._batch_requeued = []
        for jobs in (requeued, submitted):
            if jobs:
                self._enqueue(jobs)

        state_changes = bool(ended or submitted)  # an alarm alone changes nothing, and may ring when all is over
        slices = self._slices
        cut = slices is None or state_changes or bool(waiting or self._running)  # nothing is cut on an idle machine
        if slices is not None and cut:
            slices.settle(now)
        view = self._view
        view.now = now
        view.idle = 0 if slices is not None else self._pool.idle
        decisions = list(self._policy.decide(batch, view))
        try:
            for decision in decisions:
                self._carry_out.get(type(decision), self._refuse)(decision)
            if self._slices is not None and cut:
                self._slices.resume(waiting=bool(waiting))
                if self.history is not None:
                    self._remember(self.history, self._slices.rows)
        except DecisionError as problem:
            raise DecisionError(f"policy {self._policy.name}: {problem}") from None

        if state_changes or self._started:
            self.ledger.settle(now, 0 if self._slices is not None else self._pool.idle, bool(waiting))
        if not self._instant_goes_on():
            self._note_queue(waiting, now)

    def _instant_goes_on(self) -> bool:
        """Tell whether gangs have been stopped whose nodes come free at this very instant, which will be settled once more."""
        goes_on, self._goes_on = self._goes_on, False
        self._told_to_stop.clear()
        return goes_on

    def _note_queue(self, waiting: dict[int, QueuedJob], now: int) -> None:
        """Record who is blocked at the head of the queue, and who has overtaken it."""
        started, self._started = self._started, []
        if not waiting:
            return
        head = next(iter(waiting.values()))
        if head is not self._head:
            self._head = head
            self.records.blocked(self._index[head.id], now)
        for job in started:
            if job.queue_order > head.queue_order and job.id in self._running:
                self.records.backfilled(self._index[job.id])
        if self._left > len(waiting) // 8 + 64:
            self._lay_queue_anew(waiting.values())

    def _remember(self, history: History, rows: MatrixRows) -> None:
        contents = tuple(
            tuple(Cell(gang.job.id, gang.mask, replica=gang.home != row) for gang in gangs.values())
            for row, gangs in enumerate(rows.gangs)
        )
        amounts = {account: self.ledger.amount(account) for account in Account}
        history.moments.append(Moment(self._env.now, contents, tuple(rows.rotation()), amounts))

    def _enqueue(self, jobs: list[QueuedJob]) -> None:
        """Append to the queue, which stays in queue order: submissions come last unless their priority is higher, jobs that
        have run in vain do not.
        """
        waiting = self._waiting
        if len(jobs) > 1:
            jobs.sort(key=lambda job: job.queue_order)
        last = next(reversed(waiting.values())) if waiting else jobs[0]
        for job in jobs:
            waiting[job.id] = job
        if jobs[0].queue_order < last.queue_order:
            self._lay_queue_anew(sorted(waiting.values(), key=lambda job: job.queue_order))

    def _lay_queue_anew(self, jobs: Iterable[QueuedJob]) -> None:
        """Put the queue's dictionary in the order of ``jobs``, without the gaps of those that have left.

        A dictionary finds its first entry by walking over the gaps before it: a long queue that drains from the head
        would take quadratic time.
        """
        in_order = [(job.id, job) for job in jobs]
        self._waiting.clear()
        self._waiting.update(in_order)
        self._left = 0

    def _strand(self) -> None:
        ids = list(self._waiting)
        shown = ", ".join(map(str, ids[:5])) + (", ..." if len(ids) > 5 else "")
        raise StrandedJobsError(
            f"policy {self._policy.name}: {counted(len(ids), 'job')} left waiting for ever on an idle machine (job {shown}): "
            "it neither starts them nor sets its alarm clock"
        )

    # Decisions.

    def _refuse(self, decision: object) -> None:
        kinds = ", ".join(kind.__name__ for kind in self._carry_out)
        raise DecisionError(f"{decision!r} is not a decision; it must be one of {kinds}")

    def _start(self, decision: Start) -> None:
        job, now = decision.job, self._env.now
        if self._waiting.get(job.id) is not job:
            state = "it is running already" if job.id in self._running else "it is not in the queue"
            raise DecisionError(f"job {job.id} cannot start: {state}")
        image = self._preemption.image_of(job)
        nodes, duration, length, status = self._terms(decision, image)
        dispatch = self._dispatches + 1
        if decision.row is None:
            request = self._pool.request(job.id, nodes)
            wanted = decision.columns
            if wanted is None and image is not None and image.columns is not None and self._pool.has_idle(image.columns):
                wanted = image.columns  # where it is in memory
            columns = self._pool.grant(request, wanted)
            gang = RunningJob(job, now, columns, nodes, length)
            if image is not None:
                gang.expected_end += self._preemption.cost_of_fetching(job, columns)
                gang.fetching = True
            life = run_gang(self._env, self._pool, request, gang, duration, status, dispatch, self._preemption, self.gang_ended)
        elif decision.limit is not None or nodes != job.nodes or image is not None:
            raise DecisionError(
                f"job {job.id} cannot start in row {decision.row} with a time limit, another width, or work that was saved"
            )
        else:
            gang = self._admit_to_row(decision, now, duration, dispatch)
            life = run_sliced_gang(gang, status, dispatch, self.gang_ended)
        del self._waiting[job.id]
        self._left += 1
        self._dispatches = dispatch
        self._running[job.id] = gang
        self._gangs[job.id] = (Process(self._env, life), dispatch)
        self._started.append(job)
        self.records.started(self._index[job.id], now, gang.columns)
        if self.reasons is not None:
            self.reasons[job.id] = decision.reason or Reason(f"started by {self._policy.name}")

    def _terms(self, decision: Start, image: Image | None) -> tuple[int, int, int, Status]:
        """Return on how many nodes a job starts, for how long it will work and can be expected to, and how that ends."""
        job, nodes, limit = decision.job, decision.nodes, decision.limit
        if nodes is not None or limit is not None:
            nodes, limit = (_plain(number, f"job {job.id} cannot start") for number in (nodes, limit))
        duration, length, status = self._run_time[job.id], job.estimate, Status.COMPLETED
        if nodes is None or nodes == job.nodes:
            nodes = job.nodes
        elif 1 <= nodes <= self._machine.nodes:
            duration, length = (self._speedup.time_on(ticks, job.nodes, nodes) for ticks in (duration, length))
        else:
            raise DecisionError(f"job {job.id} cannot start on {nodes} nodes: the machine has {self._machine.nodes}")
        if self._machine.kill_at_estimate and duration > length:
            duration, status = length, Status.KILLED
        if image is not None:
            if nodes != image.nodes:
                raise DecisionError(f"job {job.id} cannot start on {nodes} nodes: it has been saved with {image.nodes} tasks")
            duration, length = duration - image.work, max(length - image.work, 1)
        if limit is not None:
            if limit <= 0:
                raise DecisionError(f"job {job.id} cannot start with a time limit of {limit} ticks")
            length = min(length, limit)
            if limit < duration:
                duration, status = limit, Status.REQUEUED
        return nodes, duration, length, status

    def _admit_to_row(self, decision: Start, now: int, duration: int, dispatch: int) -> SlicedGang:
        """Start a gang in a row of the Ousterhout matrix; at the first one the whole machine goes to the time-slice process."""
        job, row, columns = decision.job, decision.row, decision.columns
        assert row is not None
        if (
            not columns
            or not is_node_set(columns)
            or not 0 <= columns[0] < columns[-1] <= self._machine.nodes
            or (mask := as_mask(columns)).bit_count() != job.nodes
        ):
            raise DecisionError(
                f"job {job.id} cannot start in row {row} on columns {columns!r}: "
                f"they must be ascending ranges, (low, high, ...), of {job.nodes} nodes in all"
            )
        slices = self._slices
        if slices is None:
            self._pool.take_whole_machine()
            self.slice_log = SliceLog()
            slices = self._slices = self._make_time_slices(self._env, self._machine, self.ledger, self.slice_log)
        gang = SlicedGang(job, now, columns, mask, row, duration, Event(self._env), dispatch)
        slices.admit(gang)
        slices.rows.place(gang, row)
        return gang

    def _kill(self, decision: Kill) -> None:
        gang = self._gang_to_stop(decision.job, "killed")
        if decision.requeue:
            self._preempt(gang, Status.PREEMPTED)
            return
        in_time = self._env.now < gang.expected_end or isinstance(gang, SlicedGang)
        self._stop(gang, Status.ABORTED if in_time or gang.stopping else Status.KILLED)
        self._goes_on = True

    def _checkpoint(self, decision: Checkpoint) -> None:
        self._preempt(self._gang_to_stop(decision.job, "checkpointed"), Status.CHECKPOINTED)

    def _suspend(self, decision: Suspend) -> None:
        self._preempt(self._gang_to_stop(decision.job, "suspended"), Status.SUSPENDED)

    def _gang_to_stop(self, job: QueuedJob, how: str) -> RunningJob:
        if job.id not in self._gangs:
            raise DecisionError(f"job {job.id} cannot be {how}: it is not running")
        if job.id in self._told_to_stop:
            raise DecisionError(f"job {job.id} cannot be {how}: it has been told to stop at this instant already")
        return self._running[job.id]

    def _preempt(self, gang: RunningJob, status: Status) -> None:
        if isinstance(gang, SlicedGang):
            raise DecisionError(f"job {gang.job.id} cannot be preempted: it shares its nodes in time slices")
        self._goes_on |= self._preemption.stop(gang, status)
        self._stop(gang, status)

    def _stop(self, gang: RunningJob, status: Status) -> None:
        self._told_to_stop.add(gang.job.id)
        process, dispatch = self._gangs[gang.job.id]
        process.interrupt(Stop(dispatch, status))

    def _reserve(self, decision: Reserve) -> None:
        job = decision.job
        if self._waiting.get(job.id) is not job:
            raise DecisionError(f"job {job.id} cannot hold a reservation: it does not wait")
        self.records.reserved(self._index[job.id], decision.start)

    def _wake_at(self, decision: WakeAt) -> None:
        time, now = _plain(decision.time, "the alarm clock cannot be set"), self._env.now
        if time is not None and time <= now:
            raise DecisionError(f"the alarm clock cannot be set to {time}: it is {now} already")
        self._alarm.set(time)

    def _ring(self) -> None:
        self._batch_alarm = True
        self._settled.arm()

    # Decisions about rows.

    def _replicate(self, decision: Replicate) -> None:
        slices, gang = self._sliced(decision.job)
        slices.rows.place(gang, decision.row)

    def _withdraw(self, decision: Withdraw) -> None:
        slices, gang = self._sliced(decision.job)
        slices.rows.withdraw(gang, decision.row)

    def _rehome(self, decision: Rehome) -> None:
        slices, gang = self._sliced(decision.job)
        slices.rows.rehome(gang, decision.row)

    def _migrate(self, decision: Migrate) -> None:
        moves = []
        for job, columns in decision.moves:
            slices, gang = self._sliced(job)
            moves.append((gang, columns))
        blocked = [self._sliced(job)[1] for job in decision.blocked]
        slices.migrate(moves, blocked)

    def _sliced(self, job: QueuedJob) -> tuple[TimeSliceProcess, SlicedGang]:
        gang = self._running.get(job.id)
        if self._slices is None or not isinstance(gang, SlicedGang):
            raise DecisionError(f"job {job.id} has no rows: it does not run in a time slice")
        return self._slices, gang

    def _progress(self, gang: RunningJob) -> int:
        if self._slices is not None and isinstance(gang, SlicedGang):
            return self._slices.progress(gang)
        return self._preemption.saved(gang.job) + self._preemption.worked(gang)

    def run_time(self, job: QueuedJob) -> int:
        """Return how long a job in the system would run if nothing killed it, ticks."""
        return self._run_time[job.id]


def _plain(number: int | None, refused: str) -> int | None:
    """Return a number of a decision as Python's own: numpy's would turn clock and ledger into numbers of 64 bits."""
    try:
        return None if number is None else operator.index(number)
    except TypeError:
        raise DecisionError(f"{refused}: {number!r} is not a whole number") from None


def _overhead_left(gang: RunningJob) -> int:
    return gang.debt if isinstance(gang, SlicedGang) else 0
