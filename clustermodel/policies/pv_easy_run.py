"""One run of PV-EASY, preemptive venture EASY backfilling (Yuan et al. 2010, section 4).

Jobs start in queue order until the first one is *blocked*: too few nodes are idle for it.  Then

* *shadow load preemption* (section 4.2): running jobs of lower priority, the *shadow load*, are preempted if, and only if, the
  blocked job can then start at once.  So where priorities are equal and preemption costs no time, lower-priority jobs never
  delay the job at the head of the queue (they can delay jobs deeper in the queue: docs/pv_easy);
* *venture backfilling* (section 4.3): if the blocked job cannot start, jobs that are predicted to end by its reservation are
  backfilled, the shortest first; then any job that fits, in queue order, because the shadow load remains preemptible.

The rest of the running load has higher priority than all waiting jobs: the *sunny load*.  No job preempts it, and the
reservation considers nothing else.  A job passes from the shadow to the sunny load when the last job ahead of it starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from clustermodel.node_set import from_mask
from clustermodel.plans.profile import SHORTEST_EXTENSION, Profile
from clustermodel.policies import predictors
from clustermodel.policies.easy_run import backfill
from clustermodel.policies.interface import Decision, Kill, Reason, Reserve, Setup, Start
from clustermodel.policies.predictors import Lengths
from clustermodel.policies.preemption import IdleMemory, Preemption, can_be_saved, preempt, require_store
from clustermodel.policies.view import Batch, QueuedJob, RunningJob, View

if TYPE_CHECKING:
    from clustermodel.policies.pv_easy import PVEasy


class Running(NamedTuple):
    """A job of the running load."""

    job: QueuedJob
    end: int  # predicted, ticks; of a job that is being preempted, when its nodes will be free
    stopping: bool = False


class PVEasyRun:
    """One run of PV-EASY."""

    def __init__(self, policy: PVEasy, setup: Setup) -> None:
        machine = setup.machine
        costs = machine.checkpointing
        self._slp, self._vb, self._mode = policy.slp, policy.vb, policy.mode
        require_store("pv-easy", self._mode, machine)
        self._times = setup.transfer_times if self._mode == "checkpoint" else lambda job: (setup.switch_time(job),) * 2
        switches = machine.uniform_switch != 0 or setup.own_switches
        saving_costs = {"kill": False, "checkpoint": bool(costs.checkpoint or costs.store), "suspend": switches}[self._mode]
        self._occupied = setup.occupied if setup.occupies else None
        self._nodes, self._explain, self._one_by_one = setup.nodes, setup.explain, setup.one_by_one
        self._lengths = Lengths(policy, setup, predictors.a_second_more)
        self._holds_longer = predictors.holds_longer(setup)
        self._memory_is_limited = self._mode == "suspend" and machine.node_memory is not None
        self._guarantees = (
            self._slp and self._lengths.are_estimates and not (saving_costs or setup.occupies or self._memory_is_limited)
        )
        self._load: dict[int, Running] = {}  # the running load by job id
        self._blocked: QueuedJob | None = None  # head of the queue for which nothing more could be done

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Start jobs in queue order; preempt for the first one that is blocked; backfill."""
        self._observe(batch, view)
        decisions: list[Decision] = []
        idle = view.idle
        waiting = iter(view.waiting.values())
        for head in waiting:
            if head.nodes > idle or not self._has_memory(head):
                break
            decisions += self._start(head, "head of the queue, and it fits")
            idle -= head.nodes
        else:
            self._blocked = None
            return decisions

        # The head of the queue gets nodes from jobs being saved, but such a job ahead of it takes its nodes back.
        order = head.queue_order
        coming = sum(job.nodes for job, _, stopping in self._load.values() if stopping and job.queue_order > order)
        if self._slp and idle + coming < head.nodes:
            preempted = self._shadow_load_preemption(head, idle + coming)
            orders = [self._preempt(view.running[job.id], head) for job in preempted]
            decisions += orders
            killed = {order.job.id for order in orders if isinstance(order, Kill)}
            if any(not self._to_save(job) or job.id in killed or view.running[job.id].fetching for job in preempted):
                self._blocked = None
                return decisions  # nodes become free at the current time, so another scheduling cycle follows
            coming += sum(job.nodes for job in preempted)
        claimed = coming > 0 and idle + coming >= head.nodes
        if claimed:
            idle = min(idle, idle + coming - head.nodes)  # the other nodes are kept for the head of the queue

        # Venture backfilling leaves no job waiting that fits: if no nodes were freed since, only submitted jobs can start.
        nothing_freed = self._vb and head is self._blocked and not (batch.ended or batch.failed or batch.repaired)
        candidates: Iterable[QueuedJob] = batch.submitted if nothing_freed else waiting
        fitting = [job for job in candidates if job.nodes <= idle and job.queue_order > head.queue_order]
        if fitting or head is not self._blocked:
            profile, start = self._reservation(head)
            if head is not self._blocked and not claimed:
                decisions.append(Reserve(job=head, start=start, guaranteed=self._guarantees))
            if self._vb:
                decisions += self._venture_backfilling(fitting, idle, head, start)
            else:
                decisions += self._easy_backfilling(profile, fitting, idle, head, start)
        self._blocked = None if claimed else head
        return decisions

    def _observe(self, batch: Batch, view: View) -> None:
        self._view = view
        self._lengths.observe(batch, view)
        free = view.free_memory() if self._memory_is_limited else None
        self._memory = None if free is None else IdleMemory(view, free)
        for gang in batch.ended:
            self._load.pop(gang.job.id, None)
        if self._occupied is not None:
            self._note_epilogs(view)
        if self._one_by_one:  # others may have ended now
            self._load = {job_id: running for job_id, running in self._load.items() if job_id in view.running}

    def _note_epilogs(self, view: View) -> None:
        """Note jobs that have ended, and whose nodes will be free after the epilog."""
        for job, end, stopping in list(self._load.values()):
            gang = view.running.get(job.id)
            if not stopping and gang is not None and gang.stopping:
                self._load[job.id] = Running(job, min(end, view.now + self._epilog(job)), stopping=True)

    def _epilog(self, job: QueuedJob) -> int:
        return 0 if self._occupied is None else self._occupied(job, job.nodes)[1]

    def _shadow_load_preemption(self, head: QueuedJob, free: int) -> Sequence[QueuedJob]:
        """Return the jobs to preempt for ``head`` (section 4.2): as many of the shadow load as it needs, the lowest first."""
        shadow_load = [job for job, _, stopping in self._load.values() if job.queue_order > head.queue_order and not stopping]
        if free + sum(job.nodes for job in shadow_load) < head.nodes:
            return ()  # the head of the queue could not start at once
        shadow_load.sort(key=lambda job: job.queue_order, reverse=True)
        needed = accumulate((job.nodes for job in shadow_load), initial=free)
        return [job for job, before in zip(shadow_load, needed, strict=False) if before < head.nodes]

    def _has_memory(self, job: QueuedJob) -> bool:
        return self._memory is None or self._memory.place(job) is not None

    def _preempt(self, gang: RunningJob, head: QueuedJob) -> Preemption:
        mode = self._mode if self._saves(gang, head) else "kill"
        self._load[gang.job.id] = Running(gang.job, self._view.now + self._to_leave(gang.job, mode), stopping=True)
        return preempt(gang.job, mode)

    def _saves(self, gang: RunningJob, head: QueuedJob) -> bool:
        fits = self._memory is None or self._memory.has_beside(gang.columns, head)
        return fits and can_be_saved(gang, self._mode, self._view)

    def _to_save(self, job: QueuedJob) -> int:
        """Return how long a job that is preempted holds its nodes, ticks."""
        return self._to_leave(job, self._mode)

    def _to_leave(self, job: QueuedJob, mode: str) -> int:
        """Return the same by what happens to it: to save what it has executed, and for its epilog."""
        if mode == "suspend":
            return self._times(job)[0]
        return (0 if mode == "kill" else self._times(job)[0]) + self._epilog(job)

    def _reservation(self, head: QueuedJob) -> tuple[Profile, int]:
        """Step 1 of section 4.3: return the profile of the running load and the expected start of the first blocked job."""
        # Only the sunny load counts, and the nodes that are down.  Without venture backfilling the whole load does, as in EASY.
        now = self._view.now
        holders: list[tuple[QueuedJob | None, int, int]] = [
            (None if stopping else job, end, job.nodes)
            for job, end, stopping in self._load.values()
            if not (self._vb and job.queue_order > head.queue_order)
        ]
        holders += [(None, outage.expected_end, outage.nodes) for outage in self._view.down.values()]
        ends = [(end if end > now else end + self._lengths.delay(job, now - end), nodes) for job, end, nodes in holders]
        profile = Profile.of_running(self._nodes, now, ends)
        return profile, profile.earliest(head.nodes, 1)  # running jobs only complete, so the nodes stay free

    def _venture_backfilling(self, fitting: list[QueuedJob], idle: int, head: QueuedJob, start: int) -> Iterator[Decision]:
        """Steps 2 to 4: backfill jobs that complete by the reservation, then any job that fits: it remains preemptible."""
        by_length = sorted((self._length(job), job.queue_order, job) for job in fitting)
        safe = [job for length, _order, job in by_length if self._view.now + length <= start]
        started = set()
        for place, job in enumerate((*safe, *fitting)):
            if job.nodes <= idle and job.id not in started and self._has_memory(job):
                idle -= job.nodes
                started.add(job.id)
                rule = (
                    "backfilled: predicted to end by the reservation" if place < len(safe) else "ventured: it may be preempted"
                )
                yield from self._start(job, rule, head, start)

    def _easy_backfilling(
        self, profile: Profile, fitting: list[QueuedJob], idle: int, head: QueuedJob, start: int
    ) -> Iterator[Decision]:
        """EASY backfilling, with predictions (:func:`clustermodel.policies.easy_run.backfill`)."""
        profile.reserve(start, start + self._length(head), head.nodes)
        for job in backfill(profile, fitting, idle, self._length):
            if not self._has_memory(job):
                continue
            end = self._view.now + self._length(job)
            rule = "predicted to end by the shadow time" if end <= start else "it takes no more than the extra nodes"
            yield from self._start(job, f"backfilled: {rule}", head, start)
            profile.reserve(self._view.now, end, job.nodes)

    def _length(self, job: QueuedJob) -> int:
        """Return for how long a job is predicted to hold its nodes if it starts now."""
        if self._holds_longer:
            return self._lengths.of(job)
        length, saved = self._lengths.of(job), self._view.saved(job)
        return self._times(job)[1] + max(length - saved, SHORTEST_EXTENSION) if saved else length

    def _start(self, job: QueuedJob, rule: str, head: QueuedJob | None = None, shadow: int | None = None) -> Iterator[Decision]:
        columns = None
        if self._memory is not None and (place := self._memory.place(job)) is not None:
            yield from self._memory.take(job, place)
            columns = from_mask(place.nodes)
        self._lengths.started(job)
        self._load[job.id] = Running(job, self._view.now + self._length(job))
        reason = Reason(rule, holder=head.id if head else None, shadow=shadow) if self._explain else None
        yield Start(job=job, columns=columns, reason=reason)
