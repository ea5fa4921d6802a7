"""What the policies that resize running jobs share: whether a resize pays, when a gang can be resized, and a cycle's nodes.

A malleable job may run on any number of nodes between its least and its most.  Its run time on so many follows from what it is
expected to take on those that it asked for (``Setup.speedup``).  Nodes are counted by pool: those that no job can tell apart.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from math import isnan
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple

from clustermodel.errors import SpecificationError
from clustermodel.machine.node_set import as_mask, from_mask, lowest
from clustermodel.plans.make import plan_of, pools_of
from clustermodel.plans.pool_plans import Group, RunningPlan
from clustermodel.plans.pools import Split
from clustermodel.policies import predictors
from clustermodel.policies.disjoint_partitions import runs_of_partitions
from clustermodel.policies.interface import (
    RANDOM_NUMBERS,
    Decision,
    Reason,
    Reserve,
    Resize,
    Run,
    Setup,
    Start,
    WakeAt,
    dependencies_of,
)
from clustermodel.policies.predictors import Correction, Lengths, Predictor, correction_of, holds_longer, predictor_of
from clustermodel.policies.view import RUNNING, Batch, QueuedJob, RunningJob, View
from clustermodel.ticks import TICKS_PER_SECOND, to_ticks
from clustermodel.validation import require_number, require_seconds

_ROUNDING: Final = 2  # ticks by which times on several numbers of nodes may differ from their ratios
_PARTS: Final = 1024  # in which idle nodes are given away, so that the time that takes does not grow with the machine
Begin = Callable[[QueuedJob, int, Split], object]
Admit = Callable[[QueuedJob, RunningPlan, Group], bool]
Order = Callable[[QueuedJob, int, int], Any]
"""Sorting key of jobs that may have another node, given the job, its start and its number of nodes with that one."""
ORDERS: Final = ("efficiency", "age")
"""Which gang gets an idle node first: the one that uses it best, or the one that started first."""


@dataclass(frozen=True, kw_only=True)
class ResizingPolicy:
    """What the policies that resize running jobs share.

    Args:
        predictor: of run times, by name or an object (:mod:`clustermodel.policies.predictors`).
        correction: of a prediction that has expired, by name or a function; ``None`` is a second from now.
        min_gain: a gang grows only if it is then expected to complete earlier, what the resize costs included, by at least this
            share of its expected rest; below 0 it may lose so much, and ``-inf`` lets it grow at any cost.
        min_interval_s: a gang is not resized again before this time has passed, seconds.
    """

    name: ClassVar[str]
    takes_partitions: ClassVar[bool] = True
    takes_reservations: ClassVar[bool] = True
    takes_resizes: ClassVar[bool] = True
    in_run: ClassVar[type[ResizingRun]]
    predictor: str | Predictor = "estimate"
    correction: str | Correction | None = None
    min_gain: float = 0.0
    min_interval_s: float = 0.0

    def __post_init__(self) -> None:
        predictor_of(self.name, self.predictor)
        correction_of(self.name, self.correction)
        require_number(f"{self.name}: min_gain", self.min_gain, "a number < 1", lambda share: not isnan(share) and share < 1)
        require_seconds(f"{self.name}: min_interval_s", self.min_interval_s)

    @property
    def depends_on(self) -> frozenset[str]:
        return dependencies_of(predictor_of(self.name, self.predictor)) | {"checkpointing"}

    def start(self, setup: Setup) -> Run:
        machine = setup.machine
        refused = {
            "where nodes differ in speed (NodeType.speed)": machine.node_speeds is not None,
            "where restarts are charged again and again (Checkpointing.restart_charge)": (
                machine.checkpointing.restart_charge != "on-start"
            ),
            "where the store takes no tasks (max_tasks_per_slice=0), without Machine.resize_s": (
                machine.resize_s is None and machine.checkpointing.max_tasks_per_slice == 0
            ),
        }
        for where, is_so in refused.items():
            if is_so:
                raise SpecificationError(f"policy {self.name}: not allowed {where}: gangs cannot be resized there")
        if setup.disjoint and RANDOM_NUMBERS not in self.depends_on:
            return runs_of_partitions(self, setup, resizes=True)
        return self.in_run(self, setup)


class ResizingRun:
    """One run of such a policy: what it knows of gangs beside the view."""

    def __init__(self, policy: Any, setup: Setup) -> None:
        self.setup, self.pools = setup, pools_of(setup)
        self.lengths = Lengths(policy, setup, predictors.a_second_more)
        self._holds_longer = holds_longer(setup)
        self._min_gain, self._min_interval = policy.min_gain, to_ticks(policy.min_interval_s)
        self._explain = setup.explain
        self._ends: dict[int, tuple[int, int]] = {}  # job id, or that of an outage -> assumed end, expected end
        self._sizes: dict[int, int] = {}  # job id -> number of its gang's nodes
        self._ready: dict[int, int] = {}  # job id -> when its gang can be resized again
        self._told: set[int] = set()  # ids of waiting jobs that hold a reservation, or have held one
        self._alarm: int | None = None
        self._view: View

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Take note of what has happened, schedule, and wake up when gangs can be resized again that cannot now."""
        self._view = view
        self._observe(batch, view)
        cycle = Cycle(self, view)
        decisions = [*self.schedule(cycle), *cycle.decisions()]
        alarm = self._next_chance(view)
        if alarm != self._alarm or (batch.alarm and alarm is not None):
            self._alarm = alarm
            decisions.append(WakeAt(time=alarm))
        return decisions

    def schedule(self, cycle: Cycle) -> Iterable[Decision]:
        """Say in ``cycle`` what starts and what is resized; return other decisions."""
        raise NotImplementedError

    def _observe(self, batch: Batch, view: View) -> None:
        now, ends, sizes = view.now, self._ends, self._sizes
        self.lengths.observe(batch, view)
        for gang in batch.ended:
            for of_gang in (ends, sizes, self._ready):
                of_gang.pop(gang.job.id, None)
            self.forget(gang.job)
        for outage in batch.repaired:
            ends.pop(outage.id, None)
        for outage in batch.failed:
            if outage.node in view.down:
                ends[outage.id] = outage.expected_end, outage.expected_end
        if batch.failed:
            for gang in view.running.values():
                if gang.nodes != sizes[gang.job.id]:  # it goes on on the nodes that it has left
                    self._note_shrunk(gang, view)
        delay = self.lengths.delays(view.running)
        for number, (end, expected) in ends.items():
            if end <= now and (number < 0 or number in view.running):
                ends[number] = expected + delay(number, now - expected), expected

    def _note_shrunk(self, gang: RunningJob, view: View) -> None:
        """Expect a later end of a gang of which a node has failed."""
        job, now = gang.job, view.now
        rest = self.time_on(job, gang.nodes, self.lengths.predicted(job)) - view.progress(gang)
        cost = self.setup.resize_time(job, self._sizes[job.id], gang.nodes)
        end = now + cost + max(rest, 1) + self._epilog(job, gang.nodes)
        self._ends[job.id], self._sizes[job.id], self._ready[job.id] = (end, end), gang.nodes, now + cost

    def forget(self, job: QueuedJob) -> None:
        """Forget the gang of a job, which has ended."""

    # Run times.

    def time_on(self, job: QueuedJob, nodes: int, ticks: int) -> int:
        """Return how long a job executes on so many nodes that takes ``ticks`` on those that it asked for."""
        return ticks if nodes == job.nodes else int(self.setup.speedup.time_on(ticks, job.nodes, nodes))

    def length(self, job: QueuedJob, nodes: int) -> int:
        """Return how long a waiting job is expected to hold so many nodes."""
        saved_on = None if job.sizes is None else self._view.saved_on(job)
        if nodes == job.nodes and saved_on in (None, nodes):
            return self.lengths.of(job)
        predicted = self.lengths.predicted(job)
        ticks = self.time_on(job, nodes, predicted)
        if saved_on not in (None, nodes):  # what is saved counts in ticks of another number of nodes
            saved = self._view.saved(job)
            ticks += saved - saved * ticks // self.time_on(job, saved_on, predicted)
        return self.setup.holding(job, ticks, nodes) if self._holds_longer else ticks

    def end(self, gang: RunningJob, nodes: int, now: int) -> int:
        """Return when a gang is expected to end if it has so many nodes from now on."""
        job, end = gang.job, self._ends[gang.job.id][0]
        if nodes == gang.nodes:
            return end
        before, after = (self.time_on(job, number, job.estimate) for number in (gang.nodes, nodes))
        rest = max(end - now - self._epilog(job, gang.nodes), 1)
        return now + self.setup.resize_time(job, gang.nodes, nodes) + -(-rest * after // before) + self._epilog(job, nodes)

    def outage_end(self, number: int) -> int:
        return self._ends[number][0]

    def _epilog(self, job: QueuedJob, nodes: int) -> int:
        return self.setup.occupied(job, nodes)[1] if self.setup.occupies else 0

    def efficiency(self, job: QueuedJob, nodes: int) -> float:
        """Return the speed per node of a job on so many nodes, relative to that on the nodes that it asked for."""
        return job.estimate * job.nodes / (nodes * self.time_on(job, nodes, job.estimate))

    # Resizes.

    def can_be_resized(self, gang: RunningJob, now: int) -> bool:
        """Return whether a gang is malleable and executes, and its last resize is long enough ago."""
        return gang.job.sizes is not None and gang.state is RUNNING and self._ready.get(gang.job.id, 0) <= now

    def may_shrink(self, gang: RunningJob, nodes: int, view: View) -> bool:
        """Return whether a gang that can be resized may have fewer nodes."""
        return view.resizable(gang, nodes) is not None and self._keeps_clear(gang, nodes)

    def may_grow(self, gang: RunningJob, nodes: int, now: int, pools: Iterable[int] = ()) -> bool:
        """Return whether a gang gains enough by growing to so many nodes, and may have them if some are of these pools."""
        end = self.end(gang, gang.nodes, now)
        gain = end - self.end(gang, nodes, now)
        pays = gain >= self._min_gain * max(end - now, 1) and (gain > 0 or self._min_gain < 0)
        return pays and self._keeps_clear(gang, nodes, pools)

    def _keeps_clear(self, gang: RunningJob, nodes: int, pools: Iterable[int] = ()) -> bool:
        """Return whether a gang does not reach into a reservation of its present nodes, or of some pools, by a resize."""
        if self.pools.windows is None:
            return True
        barred = self._view.barred_if_resized(gang, nodes)
        return not (barred & as_mask(gang.columns) or any(barred & self.pools.masks[pool] for pool in pools))

    def note_resize(self, gang: RunningJob, nodes: int, now: int) -> None:
        end, job = self.end(gang, nodes, now), gang.job
        cost = self.setup.resize_time(job, gang.nodes, nodes)
        self._ends[job.id], self._sizes[job.id] = (end, end), nodes
        self._ready[job.id] = now + max(cost, self._min_interval)

    def note_start(self, job: QueuedJob, nodes: int, now: int) -> None:
        self.lengths.started(job)
        self._told.discard(job.id)
        end = now + self.length(job, nodes)
        self._ends[job.id], self._sizes[job.id] = (end, end), nodes

    def _next_chance(self, view: View) -> int | None:
        """Return when the first gang can be resized that cannot be now although its job is malleable."""
        due = []
        for gang in view.running.values():
            if gang.job.sizes is None:
                continue
            ready = self._ready.get(gang.job.id, 0)
            if ready > view.now:
                due.append(ready)
            elif gang.state is not RUNNING:  # it waits for the checkpoint store, or is restored: nothing tells when that ends
                due.append(view.now + max(TICKS_PER_SECOND, *self.setup.transfer_times(gang.job)))
        return min(due, default=None)

    # Which nodes jobs may have.

    def may_choose(self, job: QueuedJob) -> bool:
        """Return whether a waiting job may start on any of its sizes."""
        if job.sizes is None or self._view.saved_on(job) is None:
            return job.sizes is not None
        # How long it then takes is not known as exactly as reservations want to know.
        return self._view.suspended_on(job) is None and self.pools.windows is None

    def needs(self, job: QueuedJob) -> int:
        """Return on how many nodes a waiting job is to start: as many as it asked for, unless it was saved with others."""
        return job.nodes if job.sizes is None or self.may_choose(job) else self._view.saved_on(job) or job.nodes

    def least(self, job: QueuedJob) -> int:
        """Return the least number of nodes on which a waiting job can start."""
        return job.sizes[0] if job.sizes is not None and self.may_choose(job) else self.needs(job)

    def on(self, job: QueuedJob, nodes: int) -> QueuedJob:
        """Return a waiting job as it would have to be described if it asked for so many nodes, for plans."""
        if nodes == job.nodes:
            return job
        estimate = self.time_on(job, nodes, job.estimate)
        return job.on(nodes, estimate)

    def ways_for(self, job: QueuedJob, nodes: int, now: int, closed: Container[int] = ()) -> list[tuple[int, ...]]:
        """Return the pools of each set of nodes of which a waiting job has those of one if it starts on so many now.

        Sets of which some pools are closed are not among them.
        """
        ways, windows = [self.pools.of(each) for each in job.sets_allowed()], self.pools.windows
        if closed:
            ways = [pools for pools in ways if not any(pool in closed for pool in pools)]
        if windows is None:
            return ways
        ticks = max(self.setup.holding(job, self.time_on(job, nodes, job.estimate), nodes), self.length(job, nodes))
        ticks += 0 if nodes == job.nodes else _ROUNDING
        barred = windows.barred(now, ticks, job.barred)
        return [tuple(pool for pool in pools if not self.pools.masks[pool] & barred) for pools in ways]

    def pools_around(self, job: QueuedJob, split: Split) -> tuple[int, ...]:
        """Return the pools of the first set of nodes of a job that has all the pools of which it has nodes."""
        ways, own = [self.pools.of(each) for each in job.sets_allowed()], {pool for pool, _ in split}
        return next(pools for pools in ways if own.issubset(pools))

    def pools_of_start(self, job: QueuedJob, split: Split, now: int) -> tuple[int, ...]:
        """Return the pools from which a job that starts on nodes of some pools now can have more."""
        ways, own = self.ways_for(job, sum(number for _, number in split), now), {pool for pool, _ in split}
        return next((pools for pools in ways if own.issubset(pools)), ())

    def may_start(self, job: QueuedJob, nodes: int, pools: Iterable[int], now: int) -> bool:
        """Return whether a waiting job can have nodes of all of some pools if it starts on so many now."""
        return self.pools.windows is None or any(set(way).issuperset(pools) for way in self.ways_for(job, nodes, now))

    def pools_to_grow(self, gang: RunningJob, now: int) -> tuple[int, ...]:
        """Return the pools from which a gang can have more nodes."""
        job, windows = gang.job, self.pools.windows
        pools = self.pools_around(job, self.pools.counts(gang.columns)) if job.alternatives else self.pools.of(job.allowed)
        if windows is None or job.sizes is None:
            return pools
        # With more nodes it ends earlier, but for the cost of the resize, for nodes that boot, and for rounding.
        cost = (
            self.setup.machine.boot
            + _ROUNDING
            + max(self.setup.resize_time(job, gang.nodes, number) for number in {gang.nodes + 1, job.sizes[1]})
        )
        barred = windows.barred(now, max(gang.expected_end - now, 1) + cost, job.barred)
        return tuple(pool for pool in pools if not self.pools.masks[pool] & barred)

    # Plans.

    def plan(self, cycle: Cycle, lent: Mapping[int, Split] = MappingProxyType({})) -> RunningPlan:
        """Return what is free from now on, by the expected ends of gangs.

        What is ``lent`` to a gang, by job id, is free now, and the gang is expected to end without it.
        """
        view, pools, now = cycle.view, self.pools, cycle.view.now
        plan = plan_of(pools, None, may_overrun=False)
        if pools.windows is not None and not self.lengths.are_estimates:
            plan.longest_of = lambda job: self.setup.holding(job, job.estimate)
        plan.advance(now)
        left = list(pools.sizes)
        for pool, idle in enumerate(cycle.idle):
            left[pool] -= idle
        for gang in view.running.values():
            split, nodes = cycle.split(gang), gang.nodes
            for pool, number in split:
                left[pool] -= number
            if borrowed := dict(lent.get(gang.job.id, ())):
                nodes -= sum(borrowed.values())
                split = tuple((pool, rest) for pool, number in split if (rest := number - borrowed.get(pool, 0)))
            plan.reserve(now, max(self.end(gang, nodes, now) - now, 1), split, beyond_capacity=True)
        for outage in view.down.values():
            split = pools.counts((outage.node, outage.node + 1))
            left[split[0][0]] -= 1
            plan.reserve(now, max(self.outage_end(outage.id) - now, 1), split, beyond_capacity=True)
        if unknown := tuple((pool, number) for pool, number in enumerate(left) if number > 0):
            plan.reserve(now, 1, unknown, beyond_capacity=True)  # of gangs whose ends are still to be reported
        return plan

    def backfill(self, cycle: Cycle, plan: RunningPlan, start: Begin, admit: Admit | None = None) -> Iterator[Reserve]:
        """Start jobs as under EASY backfilling, in queue order; yield the first reservations.

        ``start`` is called with each job that fits into the plan, its number of nodes and where it has them; ``admit`` with the
        first blocked job of each set of nodes: if it returns true the job starts.
        """
        view, now = cycle.view, cycle.now
        groups = [plan.group_of(job) for job in view.waiting.values()]
        plan.count_idle()
        for job, group in zip(view.waiting.values(), groups, strict=True):
            if group.protected and group.idle <= 0:
                if len(plan.groups) == 1:
                    break
                continue
            nodes = self.needs(job)
            if group.protected and nodes > group.idle:
                continue
            length, sized = self.length(job, nodes), self.on(job, nodes)
            split = plan.split(now, length, sized, group) if nodes <= group.idle else None
            if split is not None:
                plan.reserve(now, length, split, beyond_capacity=True)  # gangs that shrink may take longer than a plan had them
                start(job, nodes, split)
            elif group.protected:
                continue
            elif admit is None or not admit(job, plan, group):
                at_the_latest, split = plan.earliest(length, sized, group)
                if at_the_latest >= 0:
                    plan.reserve(at_the_latest, length, split, beyond_capacity=True)
                    group.protected = 1
                    if job.id not in self._told:
                        self._told.add(job.id)
                        yield Reserve(job=job, start=at_the_latest, guaranteed=False)  # gangs may be resized before
            plan.count_idle()


def order_of(run: ResizingRun, name: str) -> Order:
    """Return the order of a name."""
    if name == "age":
        return lambda job, start, _: (start, job.queue_order)
    return lambda job, start, nodes: (-run.efficiency(job, nodes), start, job.queue_order)


class Cycle:
    """The nodes of one scheduling cycle as the decisions so far leave them, by pool."""

    def __init__(self, run: ResizingRun, view: View) -> None:
        self.run, self.view, self.now = run, view, view.now
        self.pools = run.pools
        self._plain = len(run.pools) == 1
        self.idle = [view.idle] if self._plain else run.pools.numbers(as_mask(view.idle_nodes()))
        self._splits: dict[int, Split] = {}  # of the gangs that are resized, by job id
        self._gangs: dict[int, RunningJob] = {}
        self._starts: dict[int, tuple[QueuedJob, Split, Reason]] = {}

    def split(self, gang: RunningJob) -> Split:
        """Return the nodes of a gang by pool."""
        if (split := self._splits.get(gang.job.id)) is not None:
            return split
        return ((0, gang.nodes),) if self._plain else self.pools.counts(gang.columns)

    def nodes(self, gang: RunningJob) -> int:
        """Return the number of a gang's nodes."""
        return sum(number for _, number in self._splits[gang.job.id]) if gang.job.id in self._splits else gang.nodes

    @staticmethod
    def without(split: Split, nodes: int, first: Iterable[int] = ()) -> Split:
        """Return a split with so many nodes less, of some pools ``first``, then of the last ones first."""
        left = dict(split)
        for pool in [*first, *reversed([pool for pool, _ in split])]:
            taken = min(left.get(pool, 0), nodes)
            if taken:
                left[pool] -= taken
                nodes -= taken
        return tuple((pool, number) for pool, number in left.items() if number)

    def give_up(self, gang: RunningJob, nodes: int, pools: Iterable[int]) -> None:
        """Let a gang give up so many nodes, of some pools first; they are idle."""
        self.change(gang, self.without(self.split(gang), nodes, pools))

    def grow(self, gang: RunningJob, more: Mapping[int, int]) -> None:
        """Give a gang so many idle nodes of each pool more."""
        self.change(gang, _added(self.split(gang), more))

    def change(self, gang: RunningJob, split: Split) -> None:
        """Give a gang so many nodes of each pool instead of its own."""
        before = self.split(gang)
        if split == before:
            return
        for pool, number in before:
            self.idle[pool] += number
        for pool, number in split:
            self.idle[pool] -= number
        self._gangs[gang.job.id], self._splits[gang.job.id] = gang, split

    def start(self, job: QueuedJob, split: Split, reason: Reason) -> None:
        """Start a job on so many idle nodes of each pool."""
        for pool, number in split:
            self.idle[pool] -= number
        self._starts[job.id] = job, split, reason

    def starts(self) -> list[tuple[QueuedJob, int, Split]]:
        """Return the jobs that start, their numbers of nodes, and how many these are of each pool."""
        return [(job, sum(number for _, number in split), split) for job, split, _ in self._starts.values()]

    def pools_of_start(self, job: QueuedJob) -> list[int]:
        """Return from which pools a job has nodes that starts."""
        return [pool for pool, _ in self._starts[job.id][1]]

    def grow_start(self, job: QueuedJob, more: Mapping[int, int]) -> None:
        """Give a job that starts so many idle nodes of each pool more."""
        _, split, reason = self._starts[job.id]
        self.start(job, _added(split, more), reason)
        for pool, number in split:
            self.idle[pool] += number

    def wanted(self) -> set[int]:
        """Return the pools of which jobs that do not start now may have nodes."""
        waiting = {job.allowed for job in self.view.waiting.values() if job.id not in self._starts}
        return {pool for allowed in waiting for pool in self.pools.of(allowed)}

    def is_resized(self, gang: RunningJob) -> bool:
        return gang.job.id in self._splits

    def idle_of(self, pools: Iterable[int]) -> int:
        return sum(self.idle[pool] for pool in pools)

    def decisions(self) -> Iterator[Decision]:
        """Yield what has been decided: gangs shrink, jobs start, gangs grow."""
        run, now = self.run, self.now
        if self._plain:  # the mechanism chooses the nodes
            yield from self._plain_decisions()
            return
        mask = as_mask(self.view.idle_nodes())
        resized = [(gang, self.nodes(gang), self._splits[number]) for number, gang in self._gangs.items()]
        for gang, nodes, split in resized:
            if nodes < gang.nodes:
                own = as_mask(gang.columns)
                kept = self._lowest(own, split)
                mask |= own & ~kept
                run.note_resize(gang, nodes, now)
                yield Resize(job=gang.job, nodes=nodes, columns=from_mask(kept))
        for job, split, reason in self._starts.values():
            nodes = sum(number for _, number in split)
            chosen = self._lowest(mask, split)
            mask &= ~chosen
            run.note_start(job, nodes, now)
            yield Start(job=job, nodes=None if nodes == job.nodes else nodes, columns=from_mask(chosen), reason=reason)
        for gang, nodes, split in resized:
            if nodes > gang.nodes:
                own = as_mask(gang.columns)
                counts = dict(self.pools.counts(gang.columns))
                added = self._lowest(mask, tuple((pool, number - counts.get(pool, 0)) for pool, number in split))
                mask &= ~added
                run.note_resize(gang, nodes, now)
                yield Resize(job=gang.job, nodes=nodes, columns=from_mask(own | added))

    def _plain_decisions(self) -> Iterator[Decision]:
        run, now = self.run, self.now
        resized = [(gang, self.nodes(gang)) for gang in self._gangs.values()]
        for gang, nodes in resized:
            if nodes < gang.nodes:
                run.note_resize(gang, nodes, now)
                yield Resize(job=gang.job, nodes=nodes)
        for job, split, reason in self._starts.values():
            nodes = sum(number for _, number in split)
            run.note_start(job, nodes, now)
            yield Start(job=job, nodes=None if nodes == job.nodes else nodes, reason=reason)
        for gang, nodes in resized:
            if nodes > gang.nodes:
                run.note_resize(gang, nodes, now)
                yield Resize(job=gang.job, nodes=nodes)

    def _lowest(self, mask: int, split: Split) -> int:
        """Return the lowest nodes of each pool."""
        chosen = 0
        for pool, number in split:
            chosen |= lowest(mask & self.pools.masks[pool], number)
        return chosen


def _added(split: Split, more: Mapping[int, int]) -> Split:
    after = dict(split)
    for pool, number in more.items():
        after[pool] = after.get(pool, 0) + number
    return tuple(sorted(after.items()))


class _Candidate(NamedTuple):
    """A job that may have more nodes: it runs, or it starts now, without a resize (``gang`` is ``None``)."""

    job: QueuedJob
    gang: RunningJob | None
    start: int
    nodes: int
    most: int
    pools: tuple[int, ...]


def grow(
    cycle: Cycle, gangs: Iterable[RunningJob], order: Order, most_of: Callable[[QueuedJob], int], closed: Container[int] = ()
) -> None:
    """Give idle nodes, one by one, to the first job in an order that may have more: running ones, and those that start.

    Where more than 1,024 are idle that a job may have, it gets a 1,024th of them at a time, rounded up.
    Pools that are ``closed`` stay as they are.  Gangs that give up nodes in this cycle get none,
    and neither do jobs for which their growth does not pay.
    """
    run, now = cycle.run, cycle.now
    candidates = [
        _Candidate(gang.job, gang, gang.start, gang.nodes, most_of(gang.job), run.pools_to_grow(gang, now))
        for gang in gangs
        if not cycle.is_resized(gang)
    ]
    candidates += [
        _Candidate(job, None, now, nodes, most_of(job), run.pools_of_start(job, split, now))
        for job, nodes, split in cycle.starts()
        if run.may_choose(job)
    ]
    idle = [0 if pool in closed else number for pool, number in enumerate(cycle.idle)]
    while candidates and any(idle):
        added = _part_by_part(idle[:], candidates, order)
        grown = [(each, more) for each, more in zip(candidates, added, strict=True) if more]
        refused = [each for each, more in grown if not _pays(cycle, each, more)]
        if not refused:
            for each, more in grown:
                if each.gang is None:
                    cycle.grow_start(each.job, more)
                else:
                    cycle.grow(each.gang, more)
            return
        last = max(refused, key=lambda each: order(each.job, each.start, each.nodes + 1))
        candidates = [each for each in candidates if each is not last]


def _pays(cycle: Cycle, candidate: _Candidate, more: Mapping[int, int]) -> bool:
    run, job, nodes = cycle.run, candidate.job, candidate.nodes + sum(more.values())
    if candidate.gang is not None:
        return run.may_grow(candidate.gang, nodes, cycle.now, more)
    pools = {*more, *cycle.pools_of_start(job)}
    return run.length(job, nodes) < run.length(job, candidate.nodes) and run.may_start(job, nodes, pools, cycle.now)


def _part_by_part(idle: list[int], candidates: list[_Candidate], order: Order) -> list[dict[int, int]]:
    """Return how many nodes of each pool candidates get if idle ones go to the first that may have another one."""
    targets, added = [each.nodes for each in candidates], [dict[int, int]() for _ in candidates]
    parts = [-(-sum([idle[pool] for pool in each.pools]) // _PARTS) for each in candidates]
    heap = [
        (order(each.job, each.start, min(each.nodes + parts[place], each.most)), place)
        for place, each in enumerate(candidates)
        if each.nodes < each.most
    ]
    heapify(heap)
    while heap and any(idle):
        place = heap[0][1]
        each = candidates[place]
        pool = next((pool for pool in each.pools if idle[pool]), None)
        if pool is not None:
            more = min(parts[place], idle[pool], each.most - targets[place])
            idle[pool] -= more
            targets[place] += more
            added[place][pool] = added[place].get(pool, 0) + more
        if pool is None or targets[place] == each.most:
            heappop(heap)
        else:
            heapreplace(heap, (order(each.job, each.start, min(targets[place] + parts[place], each.most)), place))
    return added
