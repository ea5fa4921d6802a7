"""One run of PV-EASY, preemptive venture EASY backfilling (Yuan et al. 2010, section 4).

Jobs start in queue order until the first one is *blocked*: too few nodes are idle for it.  Then

* *shadow load preemption* (section 4.2): running jobs of lower priority, the *shadow load*, are preempted if, and only if, the
  blocked job can then start at once.  So where priorities are equal and preemption costs no time, lower-priority jobs never
  delay the job at the head of the queue (they can delay jobs deeper in the queue: docs/pv_easy);
* *venture backfilling* (section 4.3): if the blocked job cannot start, jobs that are predicted to end by its reservation are
  backfilled, the shortest first; then any job that fits, in queue order, because the shadow load remains preemptible.

The rest of the running load has higher priority than all waiting jobs: the *sunny load*.  No job preempts it, and the
reservation considers nothing else.  A job passes from the shadow to the sunny load when the last job ahead of it starts.

Where jobs may differ in the nodes that they may have, those that may have the same nodes are of one kind, and the first one of
each kind that does not fit is blocked.  Its shadow load is the running jobs behind it that hold nodes which it may have; its
reservation counts the jobs ahead of it that run or are blocked.  First, jobs are backfilled that are predicted to end by the
reservations of all blocked jobs that share nodes with them.  No blocked job keeps those of other kinds from starting in their
turn, as it can preempt them; but without venture backfilling they must not delay its reservation, as under EASY.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from clustermodel.machine.node_set import NodeSet, from_mask
from clustermodel.plans.make import are_alike, pools_of, row_plan_of
from clustermodel.plans.pool_plans import Group, IdlePools, split_of
from clustermodel.plans.pools import Split
from clustermodel.plans.profile import SHORTEST_EXTENSION
from clustermodel.policies import predictors
from clustermodel.policies.interface import Decision, Reason, Reserve, Setup, Start
from clustermodel.policies.predictors import Lengths
from clustermodel.policies.preemption import IdleMemory, Preemption, can_be_saved, preempt, require_store
from clustermodel.policies.view import Batch, QueuedJob, RunningJob, View
from clustermodel.ticks import NEVER

if TYPE_CHECKING:
    from clustermodel.policies.pv_easy import PVEasy


class _Running(NamedTuple):
    """A job of the running load."""

    job: QueuedJob
    end: int  # predicted, ticks; of a job that is being preempted, when its nodes will be free
    split: Split
    stopping: bool = False


class _Leaving(NamedTuple):
    """A job that is being preempted."""

    job: QueuedJob
    end: int  # when its nodes will be free
    nodes: list[int]  # by pool, without those that are kept for a blocked job


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
        self._explain, self._one_by_one = setup.explain, setup.one_by_one
        self._lengths = Lengths(policy, setup, predictors.a_second_more)
        self._holds_longer = predictors.holds_longer(setup)
        self._memory_is_limited = self._mode == "suspend" and machine.node_memory is not None
        self._guarantees = (
            self._slp and self._lengths.are_estimates and not (saving_costs or setup.occupies or self._memory_is_limited)
        )
        self._pools, self._holding = pools_of(setup), setup.holding
        self._alike = are_alike(self._pools)  # then nodes are numbers: no job needs particular ones
        # Is laid out anew for each reservation; load, outages and reservations may overlap.
        self._plan = row_plan_of(self._pools, alike=self._alike, most_overbooked=3)
        self._parts = list(range(len(self._pools)))  # by pool; pools that jobs connect are of the same part of the machine
        # Of jobs: those of one kind may have the same nodes at any time.
        self._kinds: dict[tuple[tuple[tuple[int, ...], ...], int], Group] = {}
        self._kind_of: dict[int, Group] = {}  # by job id
        self._load: dict[int, _Running] = {}  # the running load by job id
        self._told: dict[Group, QueuedJob] = {}  # the blocked jobs that know their reservations
        self._blocked: dict[Group, QueuedJob] = {}  # those for which nothing more could be done, if no nodes are being freed
        self._blocked_at: dict[int, Any] = {}  # where these were in the queue, by id
        self._some_leave = False  # whether a job may be leaving its nodes
        # In a scheduling cycle.
        self._decisions: list[Decision] = []
        self._free: list[int] = []  # by pool, idle nodes that are not kept for a blocked job
        self._leaving: list[_Leaving] = []  # in queue order
        self._heads: dict[Group, QueuedJob] = {}  # the blocked jobs, in queue order
        self._claimed: set[int] = set()  # those for which nodes are coming
        self._is_planned = False  # whether the plan has their reservations
        self._starts: dict[int, int] = {}  # when they are expected to start; NEVER where windows let them start at no time

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Start jobs in queue order; preempt for each that is the first one blocked of its kind; backfill."""
        self._observe(batch, view)
        if self._blocked and not self._may_start(batch):
            return []
        self._begin_cycle()
        behind = self._start_in_turn(batch)
        if behind is None:
            return self._decisions  # nodes become free at the current time, so another scheduling cycle follows
        heads = self._heads
        if behind and self._vb:
            self._venture(behind)
        elif behind:
            for job in behind:
                self._starts_now(job, _DELAYS_NOBODY, heads[self._kind_of[job.id]])
        self._told = {kind: job for kind, job in heads.items() if job.id not in self._claimed}
        if self._vb and not self._claimed and self._pools.windows is None:
            self._blocked = heads
            self._blocked_at = {job.id: job.queue_order for job in heads.values()}
        return self._decisions

    def _may_start(self, batch: Batch) -> bool:
        """Return whether a job may start or preempt others, when after the last cycle none could."""
        view = self._view
        if batch.ended or batch.failed or batch.repaired or self._some_leave or len(self._blocked) > 1 or self._one_by_one:
            return True
        [(kind, head)] = self._blocked.items()
        if next(iter(view.waiting.values())) is not head or not self._stays_blocked(head, self._blocked):
            return True
        return any(job.nodes <= view.idle or self._kind_of[job.id] is not kind for job in batch.submitted)

    def _start_in_turn(self, batch: Batch) -> list[QueuedJob] | None:
        """Start jobs until one of each kind is blocked; return others that may fit, ``None`` if nodes become free now."""
        heads, kind_of, before = self._heads, self._kind_of, self._blocked
        self._blocked = {}
        # Venture backfilling leaves no job waiting that fits: if no nodes were freed since, only submitted jobs can start.
        nothing_freed = bool(before) and not (batch.ended or batch.failed or batch.repaired)
        kinds = len({*before, *[kind_of[job.id] for job in batch.submitted]}) if nothing_freed else len(self._kinds)
        behind: list[QueuedJob] = []
        waiting = iter(self._view.waiting.values())
        for job in waiting:
            head = heads.get(kind_of[job.id])
            if head is not None:
                if self._vb:
                    behind.append(job)
                else:
                    self._starts_now(job, _DELAYS_NOBODY, head)
            elif not self._starts_now(job, _IN_TURN):
                if not (nothing_freed and self._stays_blocked(job, before)) and self._preempts_at_once(job):
                    self._told.pop(kind_of[job.id], None)
                    return None
                self._reserve(job)
                if len(heads) == kinds:
                    unchanged = nothing_freed and all(heads.get(kind) is head for kind, head in before.items())
                    candidates: Iterable[QueuedJob] = batch.submitted if unchanged else waiting
                    order, most = job.queue_order, sum(self._free)
                    return behind + [each for each in candidates if each.nodes <= most and each.queue_order > order]
        return behind

    def _stays_blocked(self, head: QueuedJob, before: dict[Group, QueuedJob]) -> bool:
        """Return whether a job that could not start, whomever it preempted, still cannot, where no nodes have been freed since.

        What has started meanwhile can be preempted on the nodes that were idle.
        """
        known = before.get(self._kind_of[head.id]) is head and self._blocked_at[head.id] == head.queue_order
        return known and not self._some_leave and self._memory is None

    def _begin_cycle(self) -> None:
        view = self._view
        self._decisions, self._heads, self._claimed, self._is_planned = [], {}, set(), False
        if self._alike:
            self._free = [view.idle]
        else:
            self._idle = IdlePools(self._pools, view.idle_nodes)
            self._free = [*self._idle.counts()]
        leaving = [each for each in self._load.values() if each.stopping] if self._some_leave else []
        self._some_leave = bool(leaving)
        if leaving:
            leaving.sort(key=lambda each: each.job.queue_order)
        self._leaving = [_Leaving(each.job, max(each.end, view.now), self._numbers(each.split)) for each in leaving]

    def _observe(self, batch: Batch, view: View) -> None:
        self._view = view
        self._lengths.observe(batch, view)
        free = view.free_memory() if self._memory_is_limited else None
        self._memory = None if free is None else IdleMemory(view, free)
        for gang in batch.ended:
            self._load.pop(gang.job.id, None)
            if gang.job.id not in view.waiting:
                del self._kind_of[gang.job.id]
        for job in batch.submitted:
            self._kind_of[job.id] = self._kind(job)
        if self._occupied is not None:
            self._note_epilogs(view)
        if self._one_by_one:  # others may have ended now
            self._load = {job_id: running for job_id, running in self._load.items() if job_id in view.running}

    def _kind(self, job: QueuedJob) -> Group:
        sets = tuple(_ANY_NODES) if self._alike else tuple([self._pools.of(each) for each in job.sets_allowed()])
        kind = sets, job.barred
        if (group := self._kinds.get(kind)) is None:
            group = self._kinds[kind] = self._plan.group_of(job)
            joined = {self._parts[pool] for pool in self._pools.of(job.allowed)}
            self._parts = [min(joined) if part in joined else part for part in self._parts]
        return group

    def _numbers(self, split: Split) -> list[int]:
        """Return how many nodes of each pool a split has."""
        numbers = [0 for _ in self._free]
        for pool, nodes in split:
            numbers[pool] = nodes
        return numbers

    def _note_epilogs(self, view: View) -> None:
        """Note jobs that have ended, and whose nodes will be free after the epilog."""
        for job, end, split, stopping in list(self._load.values()):
            gang = view.running.get(job.id)
            if not stopping and gang is not None and gang.stopping:
                self._load[job.id] = _Running(job, min(end, view.now + self._epilog(job)), split, stopping=True)
                self._some_leave = True

    def _epilog(self, job: QueuedJob) -> int:
        return 0 if self._occupied is None else self._occupied(job, job.nodes)[1]

    # Starts.

    def _starts_now(self, job: QueuedJob, rule: str, head: QueuedJob | None = None) -> bool:
        """Start a job if it fits, on the nodes where it is suspended if it may have these."""
        if self._alike and job.nodes > self._free[0]:
            return False
        split = self._split(job, self._free)
        if split is None:
            return False
        columns: NodeSet | None = None
        if self._memory is not None:
            places = [self._memory.place(job), *[self._memory.place(job, (each,)) for each in job.sets_eligible()[1:]]]
            fitting = [each for each in places if each is not None and self._may_have(job, from_mask(each.nodes))]
            if not fitting:
                return False
            place, columns = fitting[0], from_mask(fitting[0].nodes)
            split = self._pools.counts(columns)
            self._decisions += self._memory.take(job, place)
        elif not self._alike:
            own = self._view.suspended_on(job)
            if own is not None and self._may_have(job, own) and self._idle.take_nodes(own):
                columns, split = own, self._pools.counts(own)
            else:
                columns = self._idle.take_split(split)
        self._lengths.started(job)
        now, length = self._view.now, self._length(job)
        self._load[job.id] = _Running(job, now + length, split)
        for pool, nodes in split:
            self._free[pool] -= nodes
        if self._is_planned and not self._vb:
            self._plan.reserve(now, length, split, beyond_capacity=True)
        reason = self._reason(rule, now + length, head) if self._explain else None
        self._decisions.append(Start(job=job, columns=columns, reason=reason))
        return True

    def _reason(self, rule: str, end: int, head: QueuedJob | None) -> Reason:
        if head is None:
            return Reason(rule)
        shadow = self._starts[head.id]
        if rule == _DELAYS_NOBODY and len(self._heads) == 1:
            rule = _BY_SHADOW_TIME if end <= shadow else _EXTRA_NODES
        return Reason(rule, holder=head.id, shadow=None if shadow == NEVER else shadow)

    def _may_have(self, job: QueuedJob, nodes: NodeSet) -> bool:
        """Return whether a job can start now on all of some nodes, as far as their pools tell."""
        counts = [0 for _ in self._free]
        for pool, number in self._pools.counts(nodes):
            counts[pool] = min(number, self._free[pool])
        return self._split(job, counts) is not None

    def _split(self, job: QueuedJob, free: Sequence[int], delay: int = 0, without: Collection[int] = ()) -> Split | None:
        """Return from which pools a job can have its nodes, where so many are free, now or later; ``None``: too few."""
        split = split_of(free, job.nodes, self._ways(job, delay))
        if split is None or self._vb or not self._heads:
            return split
        # It has to leave the blocked jobs their reservations, as if some others were not running.
        plan, steps = self._plan, self._plan.steps() if without and self._is_planned else None
        if without:
            self._reservations(without)
        else:
            self._require_plan()
        free = list(map(min, free, plan.least_free(self._view.now + delay, self._length(job))))
        if steps is not None:
            plan.take_steps(steps)
        return split_of(free, job.nodes, self._ways(job, delay))

    def _ways(self, job: QueuedJob, delay: int = 0) -> list[tuple[int, ...]]:
        """Return the pools of each set of nodes of which a job may have those of one, if it starts now, or later."""
        if self._alike:
            return _ANY_NODES
        ways, windows = self._pools.ways(job), self._pools.windows
        if not delay or windows is None:
            return ways
        barred = windows.barred(self._view.now + delay, self._longest(job), job.barred)
        return [tuple([pool for pool in pools if not self._pools.masks[pool] & barred]) for pools in ways]

    def _longest(self, job: QueuedJob) -> int:
        """Return how long before a window a job has to start."""
        return max(self._length(job), self._holding(job, job.estimate))

    # Preemption.

    def _preempts_at_once(self, head: QueuedJob) -> bool:
        """Preempt others for a blocked job, or keep nodes for it; return whether nodes become free at the current time."""
        coming = self._coming(head) if self._leaving else []
        free = _with(self._free, coming) if coming else self._free
        if self._slp and split_of(free, head.nodes, self._ways(head)) is None:
            victims = self._shadow_load(head, coming, free)
            times = [self._time_to_leave(gang, head) for gang in victims]
            self._decisions += [self._preempt(gang, head) for gang in victims]
            if 0 in times:
                return True
            if victims:
                left = [self._load[gang.job.id] for gang in victims]
                self._leaving += [_Leaving(each.job, each.end, self._numbers(each.split)) for each in left]
                self._leaving.sort(key=lambda each: each.job.queue_order)
                coming = self._coming(head)
        if coming:
            self._claim(head, coming)
        return False

    def _coming(self, head: QueuedJob) -> list[_Leaving]:
        """Return the jobs behind a blocked one that are leaving nodes which it may have; one ahead takes its nodes back."""
        pools = self._pools.of(None if self._alike else head.eligible)
        behind = [each for each in self._leaving if each.job.queue_order > head.queue_order]
        return [each for each in behind if any(each.nodes[pool] for pool in pools)]

    def _shadow_load(self, head: QueuedJob, coming: list[_Leaving], free: list[int]) -> list[RunningJob]:
        """Return the jobs to preempt, the lowest first, as many as the blocked job needs; none if it could not start then.

        They are those on the first of its sets of nodes on which it can start.
        """
        order = head.queue_order
        shadow_load = [each for each in self._load.values() if each.job.queue_order > order and not each.stopping]
        if sum([each.job.nodes for each in shadow_load], sum(free)) < head.nodes:
            return []
        shadow_load.sort(key=lambda each: each.job.queue_order, reverse=True)
        for pools in self._ways(head):
            left, missing, victims = [*free], head.nodes - sum(free[pool] for pool in pools), list[RunningJob]()
            for running in shadow_load:
                if gained := [(pool, nodes) for pool, nodes in running.split if pool in pools]:
                    victims.append(self._view.running[running.job.id])
                    for pool, nodes in gained:
                        left[pool] += nodes
                        missing -= nodes
                    if missing <= 0:
                        break
            if missing > 0:
                continue
            times = [each.end - self._view.now for each in coming] + [self._time_to_leave(gang, head) for gang in victims]
            if self._split(head, left, max(times), [gang.job.id for gang in victims]) is not None:
                return victims
        return []

    def _preempt(self, gang: RunningJob, head: QueuedJob) -> Preemption:
        mode = self._mode if self._saves(gang, head) else "kill"
        load = self._load[gang.job.id]
        self._load[gang.job.id] = load._replace(end=self._view.now + self._to_leave(gang.job, mode), stopping=True)
        self._some_leave = True
        return preempt(gang.job, mode)

    def _saves(self, gang: RunningJob, head: QueuedJob) -> bool:
        fits = self._memory is None or self._memory.has_beside(gang.columns, head)
        return fits and can_be_saved(gang, self._mode, self._view)

    def _time_to_leave(self, gang: RunningJob, head: QueuedJob) -> int:
        mode = self._mode if self._saves(gang, head) else "kill"
        if gang.fetching:  # it saves nothing
            return 0 if mode == "suspend" else self._epilog(gang.job)
        return self._to_leave(gang.job, mode)

    def _to_leave(self, job: QueuedJob, mode: str) -> int:
        """Return how long a job that is preempted holds its nodes, ticks: to save what it has executed, and for its epilog."""
        if mode == "suspend":
            return self._times(job)[0]
        return (0 if mode == "kill" else self._times(job)[0]) + self._epilog(job)

    def _claim(self, head: QueuedJob, coming: list[_Leaving]) -> None:
        """Keep nodes for a blocked job if it can start when others have left theirs: of these first."""
        delay = max(each.end for each in coming) - self._view.now
        if (split := self._split(head, _with(self._free, coming), delay)) is None:
            return
        self._claimed.add(head.id)
        left, there = head.nodes, {pool for pool, _ in split}
        pools = next(pools for pools in self._ways(head, delay) if there.issubset(pools))
        for nodes in (*(each.nodes for each in coming), self._free):
            for pool in pools:
                kept = min(nodes[pool], left)
                nodes[pool] -= kept
                left -= kept

    # Reservations and backfilling.

    def _reserve(self, head: QueuedJob) -> None:
        """Let a blocked job have a reservation, and tell it once."""
        kind = self._kind_of[head.id]
        self._heads[kind], self._is_planned = head, False
        if head.id in self._claimed or self._told.get(kind) is head:
            return
        self._require_plan()
        if (start := self._starts[head.id]) < NEVER:
            # Jobs that are preempted for one ahead of it could come back before it.
            parts = [self._part(other) for other in self._heads.values() if other is not head]
            guaranteed = self._guarantees and self._part(head) not in parts
            self._decisions.append(Reserve(job=head, start=start, guaranteed=guaranteed))
            self._told[kind] = head

    def _part(self, job: QueuedJob) -> int:
        return self._parts[self._pools.of(job.allowed)[0]]

    def _require_plan(self) -> None:
        """Lay out the plan, with the reservations of the blocked jobs, unless that is done."""
        if not self._is_planned:
            self._starts = self._reservations()
            self._is_planned = True

    def _reservations(self, without: Collection[int] = ()) -> dict[int, int]:
        """Lay out the plan with reservations for the blocked jobs, and return their starts by id."""
        plan = self._plan
        reserved: list[tuple[int, int, Split]] = []
        starts: dict[int, int] = {}
        for head in self._heads.values():
            if not reserved or self._vb:  # each has its own sunny load
                plan.hold_only(self._view.now, self._held(head, without))
                for start, length, split in reserved:
                    plan.reserve(start, length, split, beyond_capacity=True)
            # Equal nodes of the sunny load only become free, so that any length has the same start.
            length = 1 if self._alike and self._vb else self._length(head)
            longest = length if self._pools.windows is None else self._longest(head)
            start, split = plan.soonest(head, longest, NEVER)
            starts[head.id] = start if start >= 0 else NEVER
            if start >= 0:
                reserved.append((start, length, split))
                if not self._vb:
                    plan.reserve(start, length, split, beyond_capacity=True)
        return starts

    def _held(self, head: QueuedJob, without: Collection[int]) -> list[tuple[int, Split]]:
        """Return until when the sunny load of a blocked job holds its nodes, without venture backfilling the whole load."""
        # Nodes that are down are not free either.
        now, order, vb = self._view.now, head.queue_order, self._vb
        ends: list[tuple[int, Split]] = []
        for job, end, split, stopping in self._load.values():
            if (vb and job.queue_order > order) or job.id in without:
                continue
            ends.append((end if end > now else end + self._lengths.delay(None if stopping else job, now - end), split))
        for outage in self._view.down.values():
            end = outage.expected_end
            end = end if end > now else end + self._lengths.delay(None, now - end)
            ends.append((end, self._plan.split_of((outage.node, outage.node + 1))))
        return ends

    def _venture(self, behind: list[QueuedJob]) -> None:
        """Backfill jobs that complete by the reservations on their nodes, then any job that fits: it remains preemptible."""
        fitting = behind
        if not self._alike:
            fitting = [job for job in behind if split_of(self._free, job.nodes, self._ways(job)) is not None]
        if len(fitting) == 1 and not self._explain:
            self._starts_now(fitting[0], _VENTURED)  # whether or not it is predicted to end by the reservations
            return
        if not fitting:
            return
        self._require_plan()
        reserved = [(set(self._pools.of(head.allowed)), self._starts[head.id]) for head in self._heads.values()]
        by_length: list[tuple[int, Any, QueuedJob]] = []
        for job in fitting:
            length = self._length(job)
            for pools, start in reserved:
                if self._view.now + length > start and not pools.isdisjoint(self._pools.of(job.allowed)):
                    break
            else:
                by_length.append((length, job.queue_order, job))
        safe = [job for _, _, job in sorted(by_length)]
        started = set[int]()
        for place, job in enumerate((*safe, *fitting)):
            if self._alike and job.nodes > self._free[0]:
                continue
            rule = _IN_TIME if place < len(safe) else _VENTURED
            if job.id not in started and self._starts_now(job, rule, self._heads[self._kind_of[job.id]]):
                started.add(job.id)

    def _length(self, job: QueuedJob) -> int:
        """Return for how long a job is predicted to hold its nodes if it starts now."""
        if self._holds_longer:
            return self._lengths.of(job)
        length, saved = self._lengths.of(job), self._view.saved(job)
        return self._times(job)[1] + max(length - saved, SHORTEST_EXTENSION) if saved else length


def _with(free: list[int], coming: Iterable[_Leaving]) -> list[int]:
    """Return how many nodes of each pool are free when others have left theirs."""
    return [sum(numbers) for numbers in zip(free, *(each.nodes for each in coming), strict=True)]


_ANY_NODES: Final[list[tuple[int, ...]]] = [(0,)]
_IN_TURN: Final = "head of the queue, and it fits"
_IN_TIME: Final = "backfilled: predicted to end by the reservation"
_DELAYS_NOBODY: Final = "backfilled: it delays no reservation"
_VENTURED: Final = "ventured: it may be preempted"
_BY_SHADOW_TIME: Final = "backfilled: predicted to end by the shadow time"
_EXTRA_NODES: Final = "backfilled: it takes no more than the extra nodes"
