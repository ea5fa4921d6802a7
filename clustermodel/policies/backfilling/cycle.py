"""One run of a backfilling scheduler, and its scheduling cycles (Perkovic & Keleher 2000, figure 2).

A cycle collects what the phases decide and subtracts it from the plan at once, so that each phase sees what the phases before
it have left.  The plan knows where jobs can be, the phases say which.
"""

from __future__ import annotations

from collections.abc import Sequence

from clustermodel.plans.make import running_plan_of
from clustermodel.plans.pool_plans import Chooser, Group, Reservation, RunningPlan, Shapes, Steps
from clustermodel.plans.pools import Split
from clustermodel.policies.backfilling.guarantees import EveryJob, FirstPhase
from clustermodel.policies.backfilling.head import HeadRun
from clustermodel.policies.backfilling.moldable import ASKED, Fit, Sizes, StartTimeWidening, shapes_of
from clustermodel.policies.backfilling.speculation import Speculation
from clustermodel.policies.interface import Decision, Reason, Reserve, Setup, Start, WakeAt
from clustermodel.policies.predictors import Lengths
from clustermodel.policies.queue_order import QueueSorter
from clustermodel.policies.view import Batch, QueuedJob, RunningJob, View
from clustermodel.ticks import NEVER


class BackfillingRun:
    """One run of a backfilling scheduler: its phases, and what they share from one scheduling cycle to the next.

    ``guarantees`` are the first phase; ``speculation`` starts jobs that it has left, and ``widening`` gives more nodes to jobs
    that start.
    """

    def __init__(
        self,
        setup: Setup,
        lengths: Lengths,
        guarantees: FirstPhase,
        sorter: QueueSorter | None = None,
        *,
        sizes: Sizes = ASKED,
        speculation: Speculation | None = None,
        widening: StartTimeWidening | None = None,
    ) -> None:
        self.setup, self.lengths = setup, lengths
        self.sorter = QueueSorter("arrival", 1, 0.0, setup.rng) if sorter is None else sorter
        self.plan: RunningPlan = running_plan_of(setup, may_overrun=lengths.may_overrun)  # running jobs and reservations
        self.sizes, self.explain, self.speculation, self.widening = sizes, setup.explain, speculation, widening
        self.molds = sizes is not ASKED or widening is not None  # whether jobs run on other nodes than they ask for
        self._guarantees = guarantees
        self.head: HeadRun | None = guarantees if isinstance(guarantees, HeadRun) else None
        self.shapes: dict[int, Shapes] = {}  # where it molds: job id -> the shapes it can have, the preferred one first
        self.unplaced: set[int] = set()  # jobs that were to hold a reservation, but windows let them start at no time
        # Whether no later phase changes what starts, or explains it.
        self.starts_at_once = self.head is not None or (
            type(guarantees) is EveryJob and not (speculation or widening or setup.explain)
        )
        self._sets_alarms = self.head is None or self.head.depth > 1
        self._cycle = SchedulingCycle(self)
        self._alarm: int | None = None
        windows = bool(setup.machine.windows)
        # Whether a job that is blocked may fit later although none of its nodes has become free.
        self.reconsiders = windows or setup.by_node or setup.one_by_one or lengths.may_overrun
        if windows and (self.molds or speculation is not None or not lengths.are_estimates):
            self.plan.longest_of = self._longest_of

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Run one scheduling cycle."""
        plan, lengths, now = self.plan, self.lengths, view.now
        ended, submitted, _, requeued, failed, repaired, windows_change = batch
        if not lengths.are_estimates:
            lengths.observe(batch, view)
        nodes_freed = plan.catch_up(ended, now, failed, repaired)
        if ended:
            nodes_freed |= self._forget(ended, view)
        if submitted:
            self._enter(submitted)
        if requeued and self.molds:
            nodes_freed |= self._reshape(requeued, view)
        if windows_change:
            self._forget_rejected(view)
        late = plan.overrunning(now, view.running)
        if not (view.waiting or plan.reserved or late or failed):
            return []
        current = self._cycle
        current.begin(batch, view, nodes_freed=nodes_freed)
        if late or failed:
            self._replan(late, current)
        self._guarantees.schedule(current)
        if not self.starts_at_once:
            self._go_through_other_phases(current)
        decisions = current.announced
        if self._sets_alarms or plan.sets_alarms():
            # A single reservation on equal nodes begins when a job is expected to end, which is an event already.
            alarm = plan.next_start()
            if alarm not in (self._alarm, NEVER):
                self._alarm = alarm
                decisions.append(WakeAt(time=alarm))
        return decisions

    def _go_through_other_phases(self, current: SchedulingCycle) -> None:
        if self.speculation is not None:
            self.speculation.schedule(current)
        if self.widening is not None and current.dispatched:
            self.widening.schedule(current)
        current.settle()
        if self.lengths.may_overrun and (later := [start for start in current.trial_starts.values() if start > current.now]):
            # A running job may outlive the end at which its nodes were to be free; the policy decides again at that time.
            current.announce(WakeAt(time=min(later)))

    def shapes_of(self, job: QueuedJob) -> Shapes:
        """Return the shapes that a waiting job can have, the preferred one first."""
        return self.shapes[job.id] if self.molds else ((job.nodes, self.lengths.of(job)),)

    def _enter(self, submitted: Sequence[QueuedJob]) -> None:
        plan = self.plan
        if self.sorter.draws_priorities:
            self.sorter.submitted(submitted)
        for job in submitted:
            plan.enter(job)
            if self.molds:
                self.shapes[job.id] = shapes_of(job, self.lengths.of(job), self.sizes, self.setup)

    def _longest_of(self, job: QueuedJob) -> int:
        """Return for how long the machine takes a job to hold its nodes: by its estimate, also on those that it asks for."""
        asked, setup = self._cycle.view.waiting.get(job.id, job), self.setup
        longest = setup.holding(asked, asked.estimate)
        if job.nodes != asked.nodes:
            ticks = setup.speedup.time_on(asked.estimate, asked.nodes, job.nodes)
            longest = max(longest, setup.holding(asked, ticks, job.nodes))
        return longest

    def _forget(self, ended: Sequence[RunningJob], view: View) -> bool:
        """Forget the jobs that have left the system; return whether reserved nodes were freed."""
        nodes_freed = False
        for gang in ended:
            job = gang.job
            if job.id in view.waiting:
                continue  # stopped at its speculated time, or by the failure of a node
            if self.speculation is not None:
                self.speculation.left(job)
                if job.id in self.plan.reserved:  # it completed in a speculative run attempt and needs its reservation no more
                    self.plan.note_freed(self.plan.drop(job.id).split)
                    nodes_freed = True
            self.plan.leave(job.id)
            if self.molds:
                del self.shapes[job.id]
            if self.sorter.draws_priorities:
                self.sorter.left(job)
        return nodes_freed

    def _forget_rejected(self, view: View) -> None:
        """Forget jobs that have been rejected because they have missed their last chance to start before a window."""
        plan = self.plan
        for job_id in [job_id for job_id in plan.reserved if job_id not in view.waiting and job_id not in view.running]:
            plan.note_freed(plan.drop(job_id).split)
        self.unplaced.intersection_update(view.waiting)

    def _reshape(self, requeued: Sequence[QueuedJob], view: View) -> bool:
        """Change the shapes of jobs that have been saved on a number of nodes; return whether reserved nodes were freed."""
        plan, nodes_freed = self.plan, False
        for job in requeued:
            if (nodes := view.saved_on(job)) is not None:  # it restarts after a node failure, on as many nodes
                run_time = self.setup.speedup.time_on(self.lengths.predicted(job), job.nodes, nodes)
                self.shapes[job.id] = ((nodes, self.setup.holding(job, run_time, nodes)),)
                if (reservation := plan.reserved.get(job.id)) is not None and reservation.nodes != nodes:
                    plan.note_freed(plan.drop(job.id).split)  # kept during a test run, which saved it with another number
                    nodes_freed = True
        return nodes_freed

    def _replan(self, late: list[int], current: SchedulingCycle) -> None:
        """Place all jobs again, perhaps later than guaranteed: jobs outlive their expected ends, or nodes have failed."""
        plan, view = self.plan, current.view
        keeps_places = self.head is None and plan.reserved and not current.batch.failed
        jobs = [job for job in current.queue if job.id in plan.reserved] if keeps_places else []
        for job_id in list(plan.reserved):
            plan.drop(job_id)
        plan.extend(late, current.now, self.lengths.delays(view.running))
        plan.freed = -1  # of all
        current.nodes_freed, current.is_replanned = False, True
        for job in jobs:  # after a failure all are placed again, with the jobs that it stopped
            current.place(job)


class Dispatch:
    """A job that starts in this cycle, on ``nodes`` until its expected end, or at most for ``limit`` ticks.

    ``fits`` says why it can start, in words, and ``why`` why it may, although other jobs wait; or ``reason`` says both.
    """

    __slots__ = ("fits", "job", "length", "limit", "nodes", "reason", "split", "why")

    def __init__(self, job: QueuedJob, fit: Fit, limit: int | None, fits: str, why: str, reason: Reason | None = None) -> None:
        self.job, self.limit, self.fits, self.why, self.reason = job, limit, fits, why, reason
        self.nodes, self.length, self.split = fit

    def fit(self) -> Fit:
        return Fit(self.nodes, self.length, self.split)


class SchedulingCycle:
    """The state of one scheduling cycle; ``nodes_freed`` says whether a job ended before its expected end."""

    batch: Batch
    view: View

    def __init__(self, run: BackfillingRun) -> None:
        self.run = run
        self.now = 0
        self.nodes_freed = False
        self.is_replanned = False  # whether all reservations have been made again
        self.plan: RunningPlan = run.plan
        """Free nodes as the phases see them, with the reservations that outlast this cycle."""
        self.dispatched: dict[int, Dispatch] = {}  # job id -> how it starts
        self.trial_starts: dict[int, int] = {}  # job id -> start of its reservation in this cycle only
        self._queue: Sequence[QueuedJob] | None = None
        self.announced: list[Decision] = []
        """What has been decided."""
        self._before: Steps | None = None  # what was free when the trial began
        self._idle: Chooser | None = None  # the nodes of jobs that start at once

    def begin(self, batch: Batch, view: View, *, nodes_freed: bool) -> None:
        """Begin a scheduling cycle."""
        self.batch, self.view, self.now, self.nodes_freed = batch, view, view.now, nodes_freed
        self.is_replanned, self._queue, self._before, self._idle = False, None, None, None
        self.announced = []
        if self.dispatched:
            self.dispatched = {}
        if self.trial_starts:
            self.trial_starts = {}

    @property
    def queue(self) -> Sequence[QueuedJob]:
        """All waiting jobs in the order of this cycle, the same for all phases."""
        if self._queue is None:
            self._queue = self.run.sorter.sort(self.view.waiting.values(), self.now)
        return self._queue

    @property
    def idle(self) -> int:
        """Nodes that are still idle."""
        return self.plan.idle()

    def _arriving(self) -> Sequence[QueuedJob]:
        """Return submitted and requeued jobs, after a failure all, that have no reservation, in the order of the cycle."""
        jobs, requeued, reserved, unplaced = self.batch.submitted, self.batch.requeued, self.plan.reserved, self.run.unplaced
        if self.batch.failed:
            return [job for job in self.queue if job.id not in reserved]
        if requeued or unplaced:
            waiting = self.view.waiting
            again = [job for job in requeued if job.id not in reserved and job.id not in unplaced]
            again += [waiting[job_id] for job_id in unplaced]
            jobs = sorted([*again, *jobs], key=lambda job: job.queue_order)
        return self.run.sorter.sort(jobs, self.now) if len(jobs) > 1 else jobs

    def guarantee(self, job: QueuedJob, start: int) -> None:
        """Give a job a guaranteed start: when it will start at the latest."""
        lengths = self.run.lengths
        certain = not lengths.may_overrun if self.run.head is None else lengths.are_estimates
        self.announced.append(Reserve(job=job, start=start, guaranteed=certain))

    def shapes(self, job: QueuedJob) -> Shapes:
        """Return the shapes that a job can have, the preferred one first: pairs of a number of nodes and a length, ticks."""
        return self.run.shapes_of(job)

    def group(self, job: QueuedJob) -> Group:
        """Return the group of jobs that may have the same nodes as a job."""
        return self.plan.group(job)

    def earliest(self, job: QueuedJob, shapes: Shapes | None = None) -> Reservation | None:
        """Return where a job would complete first, in any of its shapes; ``None`` if windows let it start at no time."""
        return self.plan.earliest_completion(job, shapes or self.run.shapes_of(job), self.plan.group(job))

    def place(self, job: QueuedJob) -> int:
        """Enter a reservation for a job where it completes first, and return its start; -1 if windows let it start never."""
        plan, shapes = self.plan, self.run.shapes_of(job)
        if len(shapes) == 1:
            ((nodes, length),) = shapes
            start = plan.place(job.sized(nodes), length, plan.group(job))
        else:
            best = self.earliest(job, shapes)
            start = -1 if best is None else best.start
            if best is not None:
                plan.keep(job.id, best)
        if start < 0:
            self.run.unplaced.add(job.id)
        elif self.run.unplaced:
            self.run.unplaced.discard(job.id)
        return start

    def fitting(self, job: QueuedJob) -> Fit | None:
        """Return the shape in which a job fits now and completes first, ``None`` if it does not fit."""
        plan, now, idle, best = self.plan, self.now, self.plan.idle(), None
        for nodes, length in self.run.shapes_of(job):
            if nodes <= idle and (best is None or length < best.length):
                split = plan.split(now, length, job.sized(nodes), plan.group(job))
                if split is not None:
                    best = Fit(nodes, length, split)
        return best

    def compress(self) -> None:
        """Move reservations to earlier starts, in the order of the cycle, if a job has ended early or windows have changed."""
        plan, changes = self.plan, self.batch.reservations
        if not (plan.reserved and (self.nodes_freed or changes)):
            return
        if self.run.molds:
            jobs = [job for job in self.queue if job.id in plan.reserved]
            if any(len(self.shapes(job)) > 1 for job in jobs):
                for job in jobs:
                    if changes or plan.gains(plan.group(job)):
                        plan.reshape(job, self.shapes(job))
                return
        plan.compress(self.queue, windows_change=changes)

    def place_arriving(self) -> None:
        """Give each arriving job a reservation where it completes first, and guarantee it if that is later than now."""
        for job in self._arriving():
            if (start := self.place(job)) > self.now:
                self.guarantee(job, start)

    def start_due(self) -> None:
        """Start the jobs whose reserved time has come."""
        plan, waiting = self.plan, self.view.waiting
        for job_id in plan.due(self.now):
            _, length, nodes, split, _, _ = plan.take(job_id)
            if self.run.starts_at_once:
                plan.note_start(job_id, split, self.now + length)
                self.commit(waiting[job_id], nodes, split)
            else:
                words = "its reserved time has come", "which delays no waiting job"
                self.dispatched[job_id] = Dispatch(waiting[job_id], Fit(nodes, length, split), None, *words)

    def start(self, job: QueuedJob, fit: Fit, why: str = "", limit: int | None = None, reason: Reason | None = None) -> None:
        """Start a job that fits now."""
        if limit is not None and limit < fit.length:
            fit = fit._replace(length=limit)
        self.plan.reserve(self.now, fit.length, fit.split)
        self.dispatched[job.id] = Dispatch(job, fit, limit, "it fits", why, reason)

    def announce(self, decision: Decision) -> None:
        """Add a decision that starts no job."""
        self.announced.append(decision)

    def commit(self, job: QueuedJob, nodes: int, split: Split, reason: Reason | None = None) -> None:
        """Start a job that has been entered into the plan, in a way that no later phase changes."""
        if not self.run.lengths.are_estimates:
            self.run.lengths.started(job)
        if self._idle is None:
            self._idle = self.plan.chooser(self.view)
        size = None if nodes == job.nodes else nodes
        self.announced.append(Start(job=job, columns=self._idle.take_split(split), reason=reason, nodes=size))

    def begin_trial(self) -> None:
        """From here on, reservations hold for this cycle only; jobs that start do so for good."""
        self._before = self.plan.steps()

    def hold(self, job: QueuedJob, reservation: Reservation | None) -> None:
        """Enter a reservation, if there is one, for this cycle only, after :meth:`begin_trial`."""
        if reservation is not None:
            self.plan.reserve(reservation.start, reservation.length, reservation.split)
            self.trial_starts[job.id] = reservation.start

    def reserved_start(self, job: QueuedJob) -> int | None:
        """Return the start of a job's reservation, ``None`` if it has none."""
        reserved = self.plan.reserved.get(job.id)
        return self.trial_starts.get(job.id) if reserved is None else reserved.start

    def settle(self) -> None:
        """Add the starts to what has been decided, and enter them into the plan."""
        if self._before is not None:
            self.plan.take_steps(self._before)
        if not self.dispatched:
            return
        run, plan, now = self.run, self.plan, self.now
        idle = plan.chooser(self.view)
        for job_id, dispatch in self.dispatched.items():
            job, nodes, length, split = dispatch.job, dispatch.nodes, dispatch.length, dispatch.split
            if self._before is not None:
                plan.reserve(now, length, split)
            plan.note_start(job_id, split, now + length)
            if not run.lengths.are_estimates:
                run.lengths.started(job)
            reason = None
            if run.explain:
                reason = self._reason(dispatch) if dispatch.reason is None else dispatch.reason
            size, columns = None if nodes == job.nodes else nodes, idle.take_split(split)
            self.announce(Start(job=job, columns=columns, reason=reason, nodes=size, limit=dispatch.limit))

    def _reason(self, dispatch: Dispatch) -> Reason:
        """Explain a start, now that it is known which jobs continue to wait."""
        job = dispatch.job
        waiting = (other for other in self.view.waiting.values() if other is not job and other.id not in self.dispatched)
        holder = next(waiting, None)
        if holder is None or job.queue_order < holder.queue_order:
            return Reason(f"head of the queue, and {dispatch.fits}", reserved=self.now)
        reserved = self.plan.reserved.get(holder.id)
        shadow = None if reserved is None else reserved.start
        return Reason(f"backfilled: {dispatch.fits}, {dispatch.why}", holder=holder.id, shadow=shadow, reserved=self.now)
