"""The coordinating process: it lets each instant settle, asks the policy once, and carries out what it decides.

It knows no policy.  Each decision type has one method that carries it out, found in a table; a new type (preempt,
replicate, migrate, reshape) is a new entry, and nothing else here changes.  An impossible decision is refused loudly.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from types import MappingProxyType
from typing import Any

from simpy import Event, Process

from clustermodel.errors import DecisionError, SpecificationError, StrandedJobsError, counted
from clustermodel.job import JobRow
from clustermodel.machine import Machine
from clustermodel.measure.ledger import Account, Ledger
from clustermodel.measure.records import JobRecords, Status
from clustermodel.policies.base import (
    Batch,
    Kill,
    Policy,
    QueuedJob,
    Reason,
    Reserve,
    RunningJob,
    Start,
    View,
    WakeAt,
)
from clustermodel.sim.gang import Stop, run_gang
from clustermodel.sim.kernel import Clock, InstantSettled
from clustermodel.sim.nodes import NodePool


class Coordinator:
    """The state that the coordinating process owns, and the process itself (:meth:`run`).

    Args:
        env: the simulation.
        machine: what jobs run on.
        policy: what decides; ``begin`` has been called.
        streams: number of job streams that will call :meth:`stream_finished`.
        explain: keep the reasons of all starts.
    """

    def __init__(self, env: Clock, machine: Machine, policy: Policy, streams: int, *, explain: bool) -> None:
        self.records = JobRecords()
        self.ledger = Ledger(machine.nodes)
        self.reasons: dict[int, Reason] | None = {} if explain else None
        """Job id -> why it started; ``None`` when the log is off."""
        self._env = env
        self._machine = machine
        self._policy = policy
        self._pool = NodePool(env, machine.nodes)
        self._open_streams = streams
        self._waiting: dict[int, QueuedJob] = {}  # in queue order
        self._running: dict[int, RunningJob] = {}
        self._ids: set[int] = set()  # of all jobs submitted so far
        self._index: dict[int, int] = {}  # id of a job in the system -> its record
        self._run_time: dict[int, int] = {}  # id of a waiting job -> its run time, which no policy sees
        self._gangs: dict[int, tuple[Process, int]] = {}  # id of a running job -> its process, dispatch number
        self._dispatches = 0
        self._batch_ended: list[RunningJob] = []
        self._batch_submitted: list[QueuedJob] = []
        self._batch_alarm = False
        self._started: list[QueuedJob] = []
        self._left = 0  # jobs that have left the queue since its dictionary was last laid anew
        self._head: QueuedJob | None = None  # the job that was last left at the head of the queue
        self._settled = InstantSettled(env)
        self._alarm_at: int | None = None
        self._alarms_armed: list[int] = []  # times of timeouts that will come, earliest last
        self._carry_out: dict[type, Callable[[Any], None]] = {
            Start: self._start,
            Kill: self._kill,
            Reserve: self._reserve,
            WakeAt: self._wake_at,
        }
        self._view = View()
        self._view.waiting = MappingProxyType(self._waiting)
        self._view.running = MappingProxyType(self._running)

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
        """A gang's process reports its end; its nodes are idle again."""
        job, now = gang.job, self._env.now
        del self._running[job.id]
        self._gangs.pop(job.id, None)  # already gone when the coordinator stopped it
        self.records.ended(self._index.pop(job.id), now, status)
        account = Account.LOST if status is Status.ABORTED else Account.USEFUL
        self.ledger.charge(account, job.nodes * (now - gang.start))
        self._batch_ended.append(gang)
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
            if self._waiting and not (self._running or self._open_streams or self._alarm_at):
                self._strand()
        self.ledger.close()

    def _settle(self, now: int) -> None:
        ended, submitted = self._batch_ended, self._batch_submitted
        batch = Batch(ended, submitted, self._batch_alarm)
        self._batch_ended, self._batch_submitted, self._batch_alarm = [], [], False
        waiting = self._waiting
        if len(ended) > 1:
            ended.sort(key=lambda gang: gang.job.queue_order)
        if submitted:
            self._enqueue(submitted)

        state_changes = bool(ended or submitted)  # an alarm alone changes nothing, and may ring when all is over
        view = self._view
        view.now = now
        view.idle = self._pool.idle
        for decision in list(self._policy.decide(batch, view)):
            try:
                carry_out = self._carry_out[type(decision)]
            except KeyError:
                raise DecisionError(
                    f"policy {self._policy.name}: {decision!r} is not a decision; "
                    f"it must be one of {', '.join(kind.__name__ for kind in self._carry_out)}"
                ) from None
            carry_out(decision)

        if waiting:
            head = next(iter(waiting.values()))
            if head is not self._head:
                self._head = head
                self.records.blocked(self._index[head.id], now)
            if self._started:
                self._note_backfilled(head.queue_order)
            if self._left > len(waiting) + 64:
                self._lay_queue_anew(waiting.values())
        if state_changes or self._started:
            self.ledger.settle(now, self._pool.idle, bool(waiting))
        self._started.clear()

    def _note_backfilled(self, head: tuple[int, int, int]) -> None:
        for job in self._started:
            if job.queue_order > head:
                self.records.backfilled(self._index[job.id])

    def _enqueue(self, submitted: list[QueuedJob]) -> None:
        """Append to the queue, which stays in queue order: later submissions come last unless their priority is higher."""
        waiting = self._waiting
        if len(submitted) > 1:
            submitted.sort(key=lambda job: job.queue_order)
        last = next(reversed(waiting.values())) if waiting else submitted[0]
        for job in submitted:
            waiting[job.id] = job
        if submitted[0].priority > last.priority:
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

    def _start(self, decision: Start) -> None:
        job, now = decision.job, self._env.now
        if self._waiting.get(job.id) is not job:
            state = "it is running already" if job.id in self._running else "it is not in the queue"
            raise DecisionError(f"policy {self._policy.name}: job {job.id} cannot start: {state}")
        request = self._pool.request(job.id, job.nodes)
        try:
            columns = self._pool.grant(request, decision.columns)
        except DecisionError as problem:
            raise DecisionError(f"policy {self._policy.name}: {problem}") from None
        gang = RunningJob(job, now, columns)
        del self._waiting[job.id]
        self._left += 1
        duration, status = self._run_time.pop(job.id), Status.COMPLETED
        if self._machine.kill_at_estimate and duration > job.estimate:
            duration, status = job.estimate, Status.KILLED
        self._dispatches += 1
        process = self._env.process(
            run_gang(self._env, self._pool, request, gang, duration, status, self._dispatches, self.gang_ended)
        )
        self._running[job.id] = gang
        self._gangs[job.id] = (process, self._dispatches)
        self._started.append(job)
        self.records.started(self._index[job.id], now, gang.columns)
        if self.reasons is not None:
            self.reasons[job.id] = decision.reason or Reason(f"started by {self._policy.name}")

    def _kill(self, decision: Kill) -> None:
        if decision.job.id not in self._gangs:
            raise DecisionError(f"policy {self._policy.name}: job {decision.job.id} cannot be killed: it is not running")
        process, dispatch = self._gangs.pop(decision.job.id)
        process.interrupt(Stop(dispatch, Status.ABORTED))

    def _reserve(self, decision: Reserve) -> None:
        job = decision.job
        if self._waiting.get(job.id) is not job:
            raise DecisionError(f"policy {self._policy.name}: job {job.id} cannot hold a reservation: it does not wait")
        self.records.reserved(self._index[job.id], decision.start)

    def _wake_at(self, decision: WakeAt) -> None:
        time, now = decision.time, self._env.now
        if time <= now:
            raise DecisionError(f"policy {self._policy.name}: the alarm clock cannot be set to {time}: it is {now} already")
        self._alarm_at = time
        if not self._alarms_armed or time < self._alarms_armed[-1]:
            self._arm_alarm(time)

    def _arm_alarm(self, time: int) -> None:
        # A timeout cannot be taken back, so a later alarm is armed only when an earlier one has rung in vain.
        self._alarms_armed.append(time)
        timeout = self._env.timeout(time - self._env.now)
        assert timeout.callbacks is not None
        timeout.callbacks.append(self._ring)

    def _ring(self, _: Event) -> None:
        self._alarms_armed.pop()
        wanted = self._alarm_at
        if wanted is None:
            return
        if wanted == self._env.now:
            self._alarm_at = None
            self._batch_alarm = True
            self._settled.arm()
        elif not self._alarms_armed or wanted < self._alarms_armed[-1]:
            self._arm_alarm(wanted)
