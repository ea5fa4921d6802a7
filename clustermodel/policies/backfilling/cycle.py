"""One run of a backfilling scheduler, and its scheduling cycles (Perkovic & Keleher 2000, figure 2).

A cycle collects what the phases decide and subtracts it from the profile at once, so that each phase sees what the phases
before it have left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from clustermodel.machine.node_set import count
from clustermodel.plans.profile import Plan, Profile, Reservation, RunningProfile, Shape, Shapes, earliest_completion
from clustermodel.policies.backfilling.guarantees import EveryJob, FirstPhase
from clustermodel.policies.backfilling.moldable import ASKED, Sizes, StartTimeWidening, shapes_of, sizes_of
from clustermodel.policies.backfilling.speculation import Speculation
from clustermodel.policies.interface import Decision, Reason, Reserve, Setup, Start, WakeAt
from clustermodel.policies.predictors import Lengths
from clustermodel.policies.queue_order import QueueSorter
from clustermodel.policies.view import Batch, QueuedJob, RunningJob, View

if TYPE_CHECKING:
    from clustermodel.policies.backfilling.scheduler import Backfilling


class BackfillingRun:
    """One run of a backfilling scheduler: its phases, and what they share from one scheduling cycle to the next."""

    def __init__(self, policy: Backfilling, setup: Setup, guarantees: FirstPhase) -> None:
        self.setup = setup
        self.lengths = lengths = Lengths(policy, setup, once=True)  # expected run times on the nodes that jobs ask for
        self.plan = Plan(RunningProfile(setup.nodes, may_overrun=lengths.may_overrun))  # running jobs and reservations
        self.sorter = QueueSorter(policy.order, policy.levels, policy.starvation_weight, setup.rng)
        self.shapes: dict[int, Shapes] = {}  # id of a job in the system -> the shapes it can have, the preferred one first
        self._sizes: Sizes = sizes_of(policy.width)
        self._guarantees = guarantees
        self.speculation: Speculation | None = policy.speculative_phase()  # starts jobs that the first phase has left
        self.widening: StartTimeWidening | None = policy.last_phase()  # gives more nodes to jobs that start
        self.molds, self.explain = self._sizes is not ASKED, setup.explain
        # Whether cycles only keep reservations for all jobs, unless a job is late or a node has failed.
        others = self.speculation or self.widening or self.molds or self.explain
        self._only_reserves = type(self._guarantees) is EveryJob and not others

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Run one scheduling cycle."""
        plan, profile, lengths, now = self.plan, self.plan.profile, self.lengths, view.now
        ended, submitted, _, requeued, failed, repaired, _ = batch
        if not lengths.are_estimates:
            lengths.observe(batch, view)
        nodes_freed = profile.catch_up(ended, now, failed, repaired)
        if ended:
            nodes_freed |= self._forget(ended, view)
        if submitted:
            if self.sorter.draws_priorities:
                self.sorter.submitted(submitted)
            for job in submitted:
                self.shapes[job.id] = shapes_of(job, lengths.of(job), self._sizes, self.setup)
        if requeued:
            nodes_freed |= self._reshape(requeued, view)
        late = profile.overrunning(now, view.running)
        if not (view.waiting or plan.reserved or late or failed):
            return []
        if self._only_reserves and not (late or failed or requeued):
            decisions = self._reserve_for_all(submitted, view, nodes_freed)
        else:
            decisions = self._go_through_phases(batch, view, late, nodes_freed=nodes_freed)
        if (alarm := plan.new_alarm()) is not None:
            decisions.append(WakeAt(time=alarm))
        return decisions

    def _go_through_phases(self, batch: Batch, view: View, late: list[int], *, nodes_freed: bool) -> list[Decision]:
        """Run the phases of a cycle, one after the other."""
        current = SchedulingCycle(self, batch, view, nodes_freed=nodes_freed)
        if late or batch.failed:
            self._replan(late, current)
        self._guarantees.schedule(current)
        if self.speculation is not None:
            self.speculation.schedule(current)
        if self.widening is not None and current.dispatched:
            self.widening.schedule(current)
        decisions = current.decisions()
        if self.lengths.may_overrun and (later := [start for start in current.trial_starts.values() if start > current.now]):
            # A running job may outlive the end at which its nodes were to be free; the policy decides again at that time.
            decisions.append(WakeAt(time=min(later)))
        return decisions

    def _reserve_for_all(self, submitted: Sequence[QueuedJob], view: View, nodes_freed: bool) -> list[Decision]:
        """Run a cycle of :class:`EveryJob` in which nothing else can matter, without the steps that only others need."""
        plan, shapes, now, waiting = self.plan, self.shapes, view.now, view.waiting
        decisions: list[Decision] = []
        if nodes_freed and plan.reserved:
            plan.compress(self.sorter.sort(waiting.values(), now))
        for job in self.sorter.sort(submitted, now) if len(submitted) > 1 else submitted:
            start = plan.place(job, shapes[job.id]).start
            if start > now:
                decisions.append(Reserve(job=job, start=start, guaranteed=not self.lengths.may_overrun))
        for job_id in plan.due(now):
            job = waiting[job_id]
            nodes = plan.start_reserved(job).nodes
            decisions.append(Start(job=job, nodes=None if nodes == job.nodes else nodes))
        return decisions

    def _forget(self, ended: Sequence[RunningJob], view: View) -> bool:
        """Forget the jobs that have left the system; return whether reserved nodes were freed."""
        plan, nodes_freed = self.plan, False
        for gang in ended:
            job = gang.job
            if job.id in view.waiting:
                continue  # stopped at its speculated time, or by the failure of a node
            del self.shapes[job.id]
            if self.sorter.draws_priorities:
                self.sorter.left(job)
            if self.speculation is not None:
                self.speculation.left(job)
                if job.id in plan.reserved:  # it completed in a speculative run attempt and no longer needs its reservation
                    plan.drop(job)
                    nodes_freed = True
        return nodes_freed

    def _reshape(self, requeued: Sequence[QueuedJob], view: View) -> bool:
        """Change the shapes of jobs that have been saved on a number of nodes; return whether reserved nodes were freed."""
        plan, nodes_freed = self.plan, False
        for job in requeued:
            if (nodes := view.saved_on(job)) is not None:  # it restarts after a node failure, on as many nodes
                run_time = self.setup.speedup.time_on(self.lengths.predicted(job), job.nodes, nodes)
                self.shapes[job.id] = ((nodes, self.setup.holding(job, run_time, nodes)),)
                if (reservation := plan.reserved.get(job.id)) is not None and reservation.nodes != nodes:
                    plan.drop(job)  # it kept that during a test run, which has saved it with another number of tasks
                    nodes_freed = True
        return nodes_freed

    def _replan(self, late: list[int], current: SchedulingCycle) -> None:
        """Place all jobs again, perhaps later than guaranteed: jobs outlive their expected ends, or nodes have failed."""
        plan, view = current.plan, current.view
        jobs = [job for job in current.queue if job.id in plan.reserved]
        for job_id in [job_id for job_id in plan.reserved if job_id not in view.waiting]:
            plan.drop(view.running[job_id].job)
        for job in jobs:
            plan.drop(job)
        plan.profile.extend(late, current.now, self.lengths.delays(view.running))
        for job in () if current.batch.failed else jobs:  # after a failure all are placed again, with the jobs that it stopped
            plan.place(job, self.shapes[job.id])
        current.nodes_freed = False


class Dispatch:
    """A job that starts in this cycle, on ``nodes`` until its expected end, or at most for ``limit`` ticks.

    ``fits`` says why it can start, in words, and ``why`` why it may, although other jobs wait.
    """

    __slots__ = ("fits", "job", "length", "limit", "nodes", "why")

    def __init__(self, job: QueuedJob, nodes: int, length: int, limit: int | None, fits: str, why: str) -> None:
        self.job, self.nodes, self.length, self.limit, self.fits, self.why = job, nodes, length, limit, fits, why


class SchedulingCycle:
    """The state of one scheduling cycle; ``nodes_freed`` says whether a job ended before its expected end."""

    def __init__(self, run: BackfillingRun, batch: Batch, view: View, *, nodes_freed: bool) -> None:
        self.run = run
        self.batch = batch
        self.view = view
        self.now = view.now
        self.nodes_freed = nodes_freed
        self.plan = run.plan  # the reservations that outlast this cycle
        self.profile: Profile = run.plan.profile
        """Free nodes as the phases see them: the plan's profile, or after :meth:`begin_trial` a copy."""
        self.shapes = run.shapes
        # Nodes that are still idle; the plan knows of gangs that end now and are still to be reported.
        self.idle = count(view.idle_or_ended()) if run.setup.one_by_one else view.idle
        self.dispatched: dict[int, Dispatch] = {}  # job id -> how it starts
        self._queue: Sequence[QueuedJob] | None = None
        self.trial_starts: dict[int, int] = {}  # job id -> start of its reservation in this cycle only
        self._announced: list[Decision] = []

    @property
    def queue(self) -> Sequence[QueuedJob]:
        """All waiting jobs in the order of this cycle, the same for all phases."""
        if self._queue is None:
            self._queue = self.run.sorter.sort(self.view.waiting.values(), self.now)
        return self._queue

    def _arriving(self) -> Sequence[QueuedJob]:
        """Return submitted and requeued jobs, after a failure all, that have no reservation, in the order of the cycle."""
        _, jobs, _, requeued, failed, _, _ = self.batch
        if failed:
            return [job for job in self.queue if job.id not in self.plan.reserved]
        if requeued:
            again = [job for job in requeued if job.id not in self.plan.reserved]
            jobs = sorted([*again, *jobs], key=lambda job: job.queue_order)
        return self.run.sorter.sort(jobs, self.now) if len(jobs) > 1 else jobs

    def guarantee(self, job: QueuedJob, start: int) -> None:
        """Give a job a guaranteed start: when it will start at the latest."""
        self._announced.append(Reserve(job=job, start=start, guaranteed=not self.run.lengths.may_overrun))

    def earliest(self, job: QueuedJob) -> Reservation:
        """Return where a job would complete first, in any of its shapes."""
        return earliest_completion(self.shapes[job.id], (self.profile,))

    def fitting(self, job: QueuedJob) -> Shape | None:
        """Return the shape in which a job fits now and completes first, ``None`` if it does not fit."""
        fits = self.profile.fits
        shapes = [shape for shape in self.shapes[job.id] if shape[0] <= self.idle and fits(*shape)]
        return min(shapes, key=lambda shape: shape[1]) if shapes else None

    def compress(self) -> None:
        """Move reservations to earlier starts, in the order of the cycle, if a job has ended early."""
        plan, shapes = self.plan, self.shapes
        if not (self.nodes_freed and plan.reserved):
            return
        if self.run.molds:
            jobs = [job for job in self.queue if job.id in plan.reserved]
            if any(len(shapes[job.id]) > 1 for job in jobs):
                plan.reshape(jobs, shapes)
                return
        plan.compress(self.queue)

    def place_arriving(self) -> None:
        """Give each arriving job a reservation where it completes first, and guarantee it if that is later than now."""
        for job in self._arriving():
            reservation = self.plan.place(job, self.shapes[job.id])
            if reservation.start > self.now:
                self.guarantee(job, reservation.start)

    def start_due(self) -> None:
        """Start the jobs whose reserved time has come."""
        for job_id in self.plan.due(self.now):
            _, length, nodes, _ = self.plan.take(job_id)
            self.idle -= nodes
            words = "its reserved time has come", "which delays no waiting job"
            self.dispatched[job_id] = Dispatch(self.view.waiting[job_id], nodes, length, None, *words)

    def start(self, job: QueuedJob, shape: Shape, why: str, limit: int | None = None) -> None:
        """Start a job that fits now."""
        nodes, length = shape
        if limit is not None and limit < length:
            length = limit
        self.profile.reserve(self.now, self.now + length, nodes)
        self.idle -= nodes
        self.dispatched[job.id] = Dispatch(job, nodes, length, limit, "it fits", why)

    def begin_trial(self) -> None:
        """From here on, reservations hold for this cycle only; jobs that start do so for good."""
        self.profile = self.plan.profile.copy()

    def hold(self, job: QueuedJob, reservation: Reservation) -> None:
        """Enter a reservation for this cycle only, after :meth:`begin_trial`."""
        self.profile.reserve(reservation.start, reservation.end, reservation.nodes)
        self.trial_starts[job.id] = reservation.start

    def reserved_start(self, job: QueuedJob) -> int | None:
        """Return the start of a job's reservation, ``None`` if it has none."""
        reserved = self.plan.reserved.get(job.id)
        return self.trial_starts.get(job.id) if reserved is None else reserved.start

    def decisions(self) -> list[Decision]:
        """Return what the phases have decided, and enter the starts into the plan."""
        running, now = self.plan.profile, self.now
        decisions = self._announced
        for job_id, dispatch in self.dispatched.items():
            job, nodes, end = dispatch.job, dispatch.nodes, now + dispatch.length
            if self.profile is not running:
                running.reserve(now, end, nodes)
            running.note_start(job_id, nodes, end)
            reason = self._reason(dispatch) if self.run.explain else None
            size = None if nodes == job.nodes else nodes
            decisions.append(Start(job=job, reason=reason, nodes=size, limit=dispatch.limit))
        return decisions

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
