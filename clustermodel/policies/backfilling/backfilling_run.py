"""One run of a backfilling scheduler: the scheduling cycles, and what is kept from one to the next."""

from __future__ import annotations

from clustermodel.policies.backfilling.guarantees import FirstPhase
from clustermodel.policies.backfilling.moldable import Sizes, StartTimeWidening, shapes_of
from clustermodel.policies.backfilling.scheduling_cycle import Scheduler, SchedulingCycle
from clustermodel.policies.backfilling.speculation import Speculation
from clustermodel.policies.interface import Decision, Setup, WakeAt
from clustermodel.policies.view import Batch, View


class BackfillingRun:
    """One run of a backfilling scheduler.

    Args:
        scheduler: what the scheduling cycles share.
        guarantees: the first phase.
        speculation: the second phase, if there is one.
        widening: the last phase, if there is one.
        sizes: the shapes that a job can have.
        setup: of the run.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        guarantees: FirstPhase,
        speculation: Speculation | None,
        widening: StartTimeWidening | None,
        sizes: Sizes,
        setup: Setup,
    ) -> None:
        self._scheduler = scheduler
        self._plan = scheduler.plan
        self._shapes = scheduler.shapes
        self._sorter = scheduler.sorter
        self._guarantees = guarantees
        self._speculation = speculation
        self._widening = widening
        self._sizes = sizes
        self._setup = setup

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Run one scheduling cycle: the phases, one after the other."""
        plan, lengths, shapes = self._plan, self._scheduler.lengths, self._shapes
        if not lengths.are_estimates:
            lengths.observe(batch, view)
        nodes_freed = self._forget(batch, view)
        if batch.submitted:
            self._sorter.submitted(batch.submitted)
        for job in batch.submitted:
            shapes[job.id] = shapes_of(job, lengths.of(job), self._sizes, self._setup)
        for job in batch.requeued:
            if (nodes := view.saved_on(job)) is not None:  # it goes on, after the failure of a node, on as many nodes as before
                run_time = self._setup.speedup.time_on(lengths.predicted(job), job.nodes, nodes)
                shapes[job.id] = ((nodes, self._setup.holding(job, run_time)),)
                if (held := plan.reserved.get(job.id)) is not None and held.nodes != nodes:
                    plan.drop(job)  # it kept that during a test run, which has saved it with another number of tasks
                    nodes_freed = True
        current = SchedulingCycle(self._scheduler, batch, view, nodes_freed=nodes_freed)
        late = plan.profile.overrunning(view.now, view.running)
        if late or batch.failed:
            self._replan(late, current)
        self._guarantees.schedule(current)
        if self._speculation is not None:
            self._speculation.schedule(current)
        if self._widening is not None and current.dispatched:
            self._widening.schedule(current)
        decisions = current.decisions()
        alarm = plan.new_alarm()
        if alarm is None and lengths.may_overrun:
            # A running job may outlive the end at which its nodes were to be free; the policy decides again at that time.
            alarm = current.next_held_start
        if alarm is not None:
            decisions.append(WakeAt(time=alarm))
        return decisions

    def _forget(self, batch: Batch, view: View) -> bool:
        """Take out the jobs that have completed or stopped; return whether reserved nodes were freed."""
        plan, shapes, waiting = self._plan, self._shapes, view.waiting
        nodes_freed = plan.profile.catch_up(batch.ended, view.now, failed=batch.failed, repaired=batch.repaired)
        for gang in batch.ended:
            job = gang.job
            if job.id in waiting:
                continue  # stopped at its speculated time, or by the failure of a node
            del shapes[job.id]
            self._sorter.left(job)
            if self._speculation is not None:
                self._speculation.left(job)
                if job.id in plan.reserved:  # it completed in a speculative run attempt and no longer needs its reservation
                    plan.drop(job)
                    nodes_freed = True
        return nodes_freed

    def _replan(self, late: list[int], current: SchedulingCycle) -> None:
        """Place all jobs again because running jobs have outlived their expected ends, or nodes have failed; guaranteed starts
        may be missed.
        """
        plan, waiting = current.plan, current.view.waiting
        jobs = [job for job in current.queue if job.id in plan.reserved]
        for job_id in [job_id for job_id in plan.reserved if job_id not in waiting]:
            plan.drop(current.view.running[job_id].job)
        for job in jobs:
            plan.drop(job)
        plan.profile.extend(late, current.now, self._scheduler.lengths.delays(current.view.running))
        for job in () if current.batch.failed else jobs:  # after a failure all are placed again, with the jobs that it stopped
            plan.keep(job, current.earliest(job))
        current.nodes_freed = False
