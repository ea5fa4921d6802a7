"""The coordinating process: it lets each instant settle, asks the policy once, and has its decisions carried out.

It knows neither policies nor kinds of gangs: see :mod:`clustermodel.sim.decisions` and :mod:`clustermodel.sim.simulation`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

from simpy import Event, Process

from clustermodel.errors import DecisionError, StrandedJobsError, counted, shown
from clustermodel.policies.interface import Decide
from clustermodel.policies.view import Batch, Outage, QueuedJob, View
from clustermodel.recording.job_records import submitted_twice
from clustermodel.recording.run_attempts import REQUEUING, UNKNOWN, Status
from clustermodel.sim.decisions import Decisions, listed
from clustermodel.sim.events import AlarmClock, JobProcess
from clustermodel.sim.job_process import Execution, JobInSystem, job_life, overhead_left, progress
from clustermodel.sim.node_failures import NO_OUTAGES, require_progress
from clustermodel.sim.node_types import at_speed
from clustermodel.sim.partitions import ANYWHERE, Place
from clustermodel.sim.parts import Parts
from clustermodel.sim.rules import Rule
from clustermodel.sim.segments import abort, end_segment
from clustermodel.workload.job import JobRow

MOST_DECISIONS: Final = 16
"""Of a policy in one scheduling cycle, for each job in the system and for the alarm clock."""
BY_START: Final = attrgetter("start")
_new_tuple: Final = tuple.__new__  # calling Batch takes thrice the time


class Coordinator:
    """The state that the coordinating process owns, and the process itself (:meth:`run`)."""

    __slots__ = (
        "_alarm", "_any_node", "_cap", "_decide", "_decisions", "_ended", "_gave_up", "_guard", "_head",
        "_ids", "_is_busy", "_is_open", "_jobs", "_largest", "_ledger", "_node_memory", "_nodes", "_places",
        "_policy", "_pool", "_records", "_rejects_late", "_requests", "_resizes", "_rings", "_rules", "_run",
        "_running", "_saved", "_settled", "_speeds", "_states", "_unused", "_view", "env", "open_streams",
    )  # fmt: skip

    def __init__(self, run: Parts, policy: str, decide: Decide, streams: int) -> None:
        self._run = run
        self.env = run.env
        self._settled, self._jobs, self._running = run.settled, run.jobs, run.running
        self._pool, self._ledger, self._records, self._states = run.pool, run.ledger, run.records, run.states
        self._cap, self._saved, self._unused = run.cap, run.saved, run.unused
        self._nodes, self._node_memory = run.machine.processors, run.machine.node_memory
        self._largest = self._nodes if run.cap is None else run.cap.most()  # size of a job
        self._guard = run.guard
        self._policy, self._decide = policy, decide
        self._places, self._requests = run.places, run.requests
        self._speeds, self._any_node = run.speeds, run.any_node
        self._resizes = run.resizes
        self._rules: tuple[Rule, ...] = run.rules
        self._rejects_late = any(rule.rejects_late for rule in run.rules)  # whether jobs may be that have waited
        self._is_busy = False  # of those: whether a gang has started since no gang was known to run
        self._is_open = self._rejects_late  # whether the first submission of a job that is not rejected is still to be known
        self.open_streams = streams
        self._ids = None if run.records.ids_rise else set[int]()
        self._ended: list[Execution] = []
        self._rings = False
        self._gave_up = False  # whether jobs have been rejected in the present cycle that waited
        self._head: QueuedJob | None = None  # the job that was last left at the head of the queue
        self._alarm = AlarmClock(run.env, self._ring)
        self._decisions = Decisions(run, self._alarm)
        if run.held is not None:
            alarm = AlarmClock(run.env, self._ring if run.rows else self._arm)
            run.held.begin(run.env, run.machine, alarm, run.running, run.pool, run.saved, run.requests, run.rows)
        self._view = view = View()
        view.now, view.idle, view.up = 0, self._pool.idle_nodes.count, self._nodes - len(run.states.down)
        view.waiting, view.running = MappingProxyType(run.pool.waiting), MappingProxyType(run.running)
        view.progress, view.overhead_left = progress, overhead_left
        view.expected_left = lambda: run.sharing.expected_left(run.running)
        view.down = MappingProxyType(run.states.down)
        view.saved = lambda job: run.jobs[job.id].saved
        view.idle_nodes = run.pool.idle_nodes.as_set
        view.idle_or_ended = run.unreported.idle_or_ended if run.one_by_one else view.idle_nodes
        view.saved_on = lambda job: run.jobs[job.id].saved_on
        view.suspended_on = lambda job: run.jobs[job.id].suspended_on
        view.can_suspend = run.saved.can_suspend
        view.saved_in_time = lambda gang, suspends: all(rule.saved_in_time(gang, suspends) for rule in run.rules)
        view.free_memory = lambda: None if run.saved.free is None else run.saved.free.copy()
        view.fits = lambda job: run.choice.idle_for(job, job.nodes, job.sets_eligible())
        view.resizable, view.barred_if_resized = run.resizes.nodes_for, run.resizes.barred
        if run.guard is not None:
            self._decide = run.guard.guarded(decide, view)

    def submit(self, row: JobRow) -> Process | None:
        """A job stream submits a job: its life, a process, begins, unless the machine rejects it."""
        number = row.id
        if self._ids is not None:
            if number in self._ids:
                raise submitted_twice(number)
            self._ids.add(number)
        place: Place | None = ANYWHERE
        if not self._any_node:
            row, place = self._asked(row)
        nodes = row.nodes
        index = self._records.submitted(row)
        self._settled.is_armed = True
        job = JobInSystem(row, index)
        if self._guard is not None:
            self._guard.lock(job.queued)
        if (
            not 0 < nodes <= self._largest
            or (self._node_memory is not None and row.memory > self._node_memory)
            or not (self._any_node or self._may_have_nodes(job, place))
            or (self._rules and not self._is_admitted(job))
        ):
            self._records.rejected(index)
            self._tell_dependents(number, ok=False)
            return None
        if row.demand is not None and row.demand.sizes is not None:
            job.set_sizes(row.demand.sizes, self._nodes if self._cap is None else self._cap.most(job.queued.sets_allowed()))
        self._jobs[number] = job
        if self._is_open:
            self._unused.charge()
            self._ledger.submitted(self.env.now, self._pool.idle_nodes.count + self._pool.down)
        job.process = process = JobProcess(self.env, job_life(job, self._pool.request_again, self._attempt_ended))
        if not (self._rules and any(rule.holds(job) for rule in self._rules)):
            self._pool.submitted.append(job.queued)
        return process

    def _is_admitted(self, job: JobInSystem) -> bool:
        return all(rule.admits(job) for rule in self._rules)

    def _asked(self, row: JobRow) -> tuple[JobRow, Place | None]:
        """Return a job with its size in processors, and which nodes it may have, if any."""
        place = ANYWHERE if self._places is None else self._places.of(row)
        if self._requests is not None and place is not None:
            row = self._requests.row_of(row, place.allowed)
        return row, place

    def _may_have_nodes(self, job: JobInSystem, place: Place | None) -> bool:
        """Note which nodes a job may have and how long it may take there; return whether it can ever have them."""
        queued = job.queued
        if place is None:
            return False
        if place is not ANYWHERE:
            queued.eligible = queued.allowed = place.allowed
            queued.alternatives = place.alternatives
            if place.priority:
                queued.priority += place.priority
                queued.queue_order = (-queued.priority, queued.submit, queued.id)
        if self._speeds is not None:  # its limit is its estimate on the slowest nodes that it may have
            queued.estimate = at_speed(queued.estimate, self._speeds.slowest(queued.eligible))
        fits = self._requests is None or self._requests.lay_out(queued, job.row.demand)
        return fits and (self._cap is None or queued.nodes <= self._cap.most(queued.sets_allowed()))

    def stream_finished(self) -> None:
        self.open_streams -= 1
        self._settled.is_armed = True

    def _attempt_ended(self, job: JobInSystem) -> None:
        del self._running[job.queued.id]
        self._ended.append(job.execution)
        self._settled.is_armed = True
        if self._rules and not self._run.one_by_one:
            self._release(job)

    def _release(self, job: JobInSystem) -> None:
        """Let jobs join the queue that were held by one whose run attempt has ended."""
        if (outcome := job.execution.outcome) not in REQUEUING:
            self._leave_rules(job, ok=outcome is Status.COMPLETED)

    def _leave_rules(self, job: JobInSystem, *, ok: bool) -> None:
        for rule in self._rules:
            self._join(rule.left(job))
        self._tell_dependents(job.row.id, ok=ok)

    def _join(self, released: Iterable[JobInSystem]) -> None:
        """Let jobs that were held join the queue, or reject them if they can start at no time any more."""
        for job in released:
            self._records.held(job.index, self.env.now)
            self._settled.is_armed = True
            if all(rule.admits_later(job) for rule in self._rules):
                self._pool.join(job)
            else:
                self._give_up(job)

    def _tell_dependents(self, job: int, *, ok: bool) -> None:
        """Let the jobs that depend on one that has ended join the queue, or reject them."""
        for rule in self._rules:
            released, never = rule.ended(job, ok=ok)
            self._join(released)
            for dependent in never:
                self._records.rejected(dependent.index)
                self._leave(dependent)
                self._tell_dependents(dependent.row.id, ok=False)

    def _leave(self, job: JobInSystem) -> None:
        """Let a job that does not run leave the system."""
        number = job.row.id
        del self._jobs[number]
        if not job.attempts:
            self._ledger.rejected(job.queued.submit)
        job.is_cancelled = True
        job.process.go_on_in_turn()  # its process ends, for jobs whose submission follows it
        self._settled.is_armed = True

    def _give_up(self, job: JobInSystem) -> None:
        """Reject a waiting job, or abort it if it has run: no time is left in which it could end.  The others go on."""
        number, now = job.row.id, self.env.now
        if job.attempts:
            abort(job, now, self._saved, self._records, self._ledger)
        else:
            self._records.rejected_late(job.index, now)
        self._records.in_no_window.add(job.index)
        if number in self._pool.waiting:
            self._pool.queue.leave(number)
        if job.queued is self._head:
            self._head = None
        self._leave(job)
        self._gave_up = True
        for rule in self._rules:
            rule.gave_up()
        self._leave_rules(job, ok=False)

    def _ring(self) -> None:
        self._rings = True
        self._settled.is_armed = True

    def _arm(self) -> None:
        self._settled.is_armed = True

    def run(self) -> Generator[Event, object, None]:
        """Settle instant after instant until all streams have finished and no job is left in the system."""
        settled, pool, states, view, one_by_one = self._settled, self._pool, self._states, self._view, self._run.one_by_one
        waiting, running, rules = self._pool.waiting, self._running, self._rules
        while self.open_streams or self._jobs or settled.is_armed:  # jobs may follow one that has been rejected
            yield settled
            failed, repaired = NO_OUTAGES
            if one_by_one:
                self._run.unreported.give_back()
            if nodes_change := states.changing:  # perhaps only nodes that are out of service because of the power cap
                failed, repaired = yield from self._change_nodes()
                view.up = self._nodes - len(states.down)
            later = self._leave_others(bool(failed or repaired)) if one_by_one else None
            submitted, requeued = pool.take_arrivals() if pool.submitted or pool.requeued else ([], [])
            if rules:
                submitted = self._arrange(submitted, requeued)
            cycles = bool(self._ended or submitted or self._rings or nodes_change)
            if cycles or (rules and any(rule.changed for rule in rules)):
                cycles = True
                try:
                    self._cycle(submitted, requeued, failed, repaired)
                except StopIteration as problem:  # of a user's code: a compiled generator would simply end
                    raise RuntimeError("generator raised StopIteration") from problem
                if rules:
                    self._note_rules(cycled=True)
                if later is not None and any(later):
                    self._ended[:0], pool.submitted[:0] = later
                    settled.is_armed = True
                    continue
            elif rules:
                self._note_rules(cycled=False)
            if rules and (released := [job for rule in rules for job in rule.due(cycled=cycles)]):
                self._join(released)
                continue
            if waiting and not (running or self.open_streams):
                self._require_a_next_cycle()
        self._ledger.close()

    def _require_a_next_cycle(self) -> None:
        """Check that something will happen after which the jobs that wait on an idle machine may start."""
        if self._alarm.at or self._states.broken or not all(rule.is_over for rule in self._rules):
            return
        waiting = [self._jobs[number] for number in self._pool.waiting]
        if never := [job for rule in self._rules for job in rule.hopeless(waiting)]:
            for job in never:
                self._give_up(job)
            return
        ids = list(self._pool.waiting)
        shown_ids = ", ".join(map(str, ids[:5])) + (", ..." if len(ids) > 5 else "")
        raise StrandedJobsError(
            f"policy {self._policy}: {counted(len(ids), 'job')} left waiting for ever on an idle machine (job "
            f"{shown_ids}): the policy must start them or return WakeAt(...)"
        )

    def _arrange(self, submitted: list[QueuedJob], requeued: list[QueuedJob]) -> list[QueuedJob]:
        """Let rules arrange the queue, and reject jobs that are too late to start; return the others submitted."""
        for rule in self._rules:
            if late := rule.before_cycle(submitted, requeued):
                for job in late:
                    self._give_up(job)
                submitted = [queued for queued in submitted if queued.id in self._pool.waiting]
        return submitted

    def _note_rules(self, *, cycled: bool) -> None:
        if cycled and self._is_busy and not (self._running or self._run.unreported.gangs):
            self._is_busy = False
            self._ledger.emptied(self.env.now)
        for rule in self._rules:
            rule.after_instant(cycled=cycled)

    def _leave_others(self, nodes_change: bool) -> tuple[list[Execution], list[QueuedJob]]:
        """:meth:`_all_but_one_event`, where the gangs of other events keep their nodes, and the jobs that they hold."""
        later = self._all_but_one_event(nodes_change)
        self._run.unreported.hold(later[0])
        if self._rules:
            for gang in self._ended:
                self._release(gang.owner)
        return later

    def _all_but_one_event(self, nodes_change: bool) -> tuple[list[Execution], list[QueuedJob]]:
        """Leave one event of this instant to the next cycle; return the gangs and the jobs of the others."""
        # Failures, repairs, alarms and preemptions come first and together, then submissions one by one, then ends, in the
        # order in which the gangs have started.  What an end releases, nodes, memory and jobs that were held, it does in turn.
        pool, ended, submitted = self._pool, self._ended, self._pool.submitted
        stopped = [gang for gang in ended if gang.outcome in REQUEUING]
        if stopped or nodes_change or self._rings:
            self._ended, pool.submitted = stopped, []
            return [gang for gang in ended if gang.outcome not in REQUEUING], submitted
        if submitted:
            self._ended, pool.submitted = [], submitted[:1]
            return ended, submitted[1:]
        ended = sorted(ended, key=BY_START)
        self._ended = ended[:1]
        return ended[1:], []

    def _change_nodes(self) -> Generator[Event, object, tuple[list[Outage], list[Outage]]]:
        """Stop the gangs on nodes that fail now, take those nodes down, put repaired ones up; return the outages of both."""
        # Whatever else ends at this instant has ended: a job that completes, a checkpoint that is written.
        if self._jobs:
            self._run.sharing.settle(self.env.now)
        if hit := self._resizes.shrink_all(self._states.hit(self._running.values()), self._states.failing):
            for gang in hit:
                gang.stop(Status.FAILED)
            self._settled.is_armed = True
            yield self._settled  # they leave their nodes
        outages = self._states.carry_out(self._run.sharing.change_nodes)
        if self._jobs:
            self._unused.charge()
        return outages

    def _close(self, ended: list[Execution], now: int) -> None:
        """Record the outcomes of run attempts and charge their executed times as useful or discarded work."""
        records = self._records
        for gang in ended:
            job, outcome, executed = gang.owner, gang.outcome, gang.executed()
            gang.ran = executed if job.image is None else job.image.work + executed
            discarded, requeued, in_all = self._saved.ended(gang, executed), outcome in REQUEUING, UNKNOWN
            if job.sizes is None:
                self._ledger.charge_work(gang.nodes * (executed - discarded), gang.nodes * discarded)
                worked = executed if requeued else gang.ran
            else:
                worked, discarded, in_all = end_segment(gang, outcome, records, self._ledger)
            if requeued:
                require_progress(job, self._policy)
                records.stopped(job.index, now, outcome, worked, discarded)
                if gang.job is self._head:
                    self._head = None
            else:
                records.ended(job.index, now, outcome, worked, discarded, in_all)
                del self._jobs[gang.job.id], job.execution  # gang and job would keep each other alive
        if len(ended) > 1:
            ended.sort(key=lambda gang: gang.job.queue_order)

    def _cycle(
        self, submitted: list[QueuedJob], requeued: list[QueuedJob], failed: list[Outage], repaired: list[Outage]
    ) -> None:
        """One scheduling cycle: close run attempts that have ended, settle, ask the policy, carry out its decisions, go on."""
        run, pool, decisions, view, now = self._run, self._pool, self._decisions, self._view, self.env.now
        waiting, ended, rings = pool.waiting, self._ended, self._rings
        self._ended, self._rings = [], False
        if ended:
            self._close(ended, now)
        if requeued or failed:
            self._look_after_images(requeued, failed)
        noted = [rule.note_eligible(waiting, now) for rule in self._rules] if self._rules else ()
        batch = _new_tuple(Batch, (ended, submitted, rings, requeued, failed, repaired, True in noted))
        without_changes = not (ended or submitted)  # alarms and outages change nothing, and may come when all is over
        if submitted and self._unused.uncharged:
            self._unused.charge()
        idles = without_changes and not (self._jobs or self._gave_up)  # nothing is cut short on an empty machine
        if run.sharing.is_settled and not idles:
            run.sharing.settle(now)
        view.now, view.idle = now, pool.idle_nodes.count
        decide = self._decide  # called as a variable, not as an attribute: CPython 3.11 specializes no call of the latter
        decided: Any = decide(batch, view)  # a user's code may return anything
        if type(decided) is not list:
            decided = self._listed(decided)
        try:
            if decided:
                decisions.carry_out(decided, now, self._policy)
            if run.sharing.is_settled and not idles:
                run.sharing.resume(bool(waiting), bool(ended or submitted or rings or failed or repaired))
        except DecisionError as problem:
            raise DecisionError(f"policy {self._policy}: {problem}") from None
        started = decisions.started
        if not without_changes or started or self._gave_up or self._resizes.changed:
            self._gave_up = self._resizes.changed = False
            self._ledger.settle(now, pool.idle_nodes.count + pool.down, bool(waiting))
        if decided and decisions.frees_nodes:
            return  # another cycle follows
        if waiting and (head := next(iter(waiting.values()))) is not self._head:
            self._head = head
            self._records.blocked(self._jobs[head.id].index, now)
        if started:
            self._note_starts(started)
            decisions.begin_granted()

    def _look_after_images(self, requeued: list[QueuedJob], failed: list[Outage]) -> None:
        """Discard what was saved on nodes that have failed; abort jobs that have run and cannot end in time for a window."""
        if failed:
            self._states.discard_images(failed)
        if not self._rejects_late:
            return
        for job in [self._jobs[number] for number in self._pool.waiting]:
            if job.attempts and not all(rule.lets_start(job) for rule in self._rules):
                self._give_up(job)
                if job.queued in requeued:
                    requeued.remove(job.queued)

    def _listed(self, decided: Any) -> list[Any]:
        """Return what a policy has decided as a list."""
        if not isinstance(decided, Iterable) or isinstance(decided, str):
            returned = "nothing (None)" if decided is None else shown(repr(decided))
            raise DecisionError(f"policy {self._policy}: decide returned {returned}; it must return a list of decisions")
        # Each job may start or stop, and hold a reservation; some policies say a few things of it one after the other.
        most = MOST_DECISIONS * (len(self._jobs) + 1)
        return listed(decided, most, f"policy {self._policy}: decide yields", "decisions in one cycle", len(self._jobs))

    def _note_starts(self, started: list[QueuedJob]) -> None:
        """Record which of the jobs that have ``started`` overtook the one that is blocked at the head of the queue."""
        if self._pool.waiting:
            assert self._head is not None
            order = self._head.queue_order
            for job in started:
                if job.queue_order > order and job.id in self._running:
                    self._records.backfilled(self._jobs[job.id].index)
        self._is_busy = self._rejects_late
        if self._is_open:
            self._is_open = False
            self._ledger.first_started(min(job.submit for job in started))
        for rule in self._rules:
            for job in started:
                self._join(rule.began(job.id))
        self._states.without_start = 0
        started.clear()
