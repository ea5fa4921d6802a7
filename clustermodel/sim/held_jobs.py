"""Jobs that are kept from the queue: by jobs that they depend on, and by limits of a site, each of which has a counter."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from clustermodel.arrays import IntArray
from clustermodel.machine.node_set import NodeSet, as_mask, from_mask
from clustermodel.plans.by_node import ANY, Layout
from clustermodel.sim.events import AlarmClock
from clustermodel.sim.job_process import JobInSystem, progress
from clustermodel.sim.rules import Rule
from clustermodel.site.concerns import Concerns, Facts
from clustermodel.site.limits import BITS, Limits
from clustermodel.site.site import Site
from clustermodel.ticks import NEVER
from clustermodel.workload.dependencies import Singletons
from clustermodel.workload.job import DEPENDENCIES

if TYPE_CHECKING:
    from clustermodel.sim.simulation import RunContext

AFTER, AFTER_OK, AFTER_NOT_OK, AFTER_ANY, ALONE = range(len(DEPENDENCIES) + 1)
_RUNNING, _NODES, _PROCESSORS, _NODE_TIME, _PROCESSOR_TIME, _SUBMITTED, _WALL_TIME, _JOB_NODES, _JOB_PROCESSORS = BITS.values()
_TIMES: Final = _NODE_TIME | _PROCESSOR_TIME
_ON_NODES: Final = _NODES | _NODE_TIME | _JOB_NODES  # of which nodes with several processors make a difference
_TOGETHER: Final = _RUNNING | _NODES | _PROCESSORS | _TIMES


def counts_nodes(limits: Iterable[Limits]) -> bool:
    """Return whether limits count nodes, not processors."""
    return any(BITS[name] & _ON_NODES for limit in limits for name in limit.given)


class _Counter:
    """How much the jobs under one limit have, and which of them it holds, in the order in which they came to it."""

    __slots__ = ("all_by_number", "held", "jobs", "members", "most", "processors", "rung")

    def __init__(self, most: Mapping[int, int]) -> None:
        self.most = most  # by the bit of what is limited
        self.jobs = self.processors = 0
        self.members: dict[int, JobInSystem] = {}  # those counted, by id
        self.held: OrderedDict[int, tuple[JobInSystem, int]] = OrderedDict()  # with the bits that hold for them
        self.all_by_number = True  # whether all of those are under its limit of jobs, if it has one
        self.rung = -1  # when an alarm was to release a job

    def count(self, job: JobInSystem, sign: int) -> None:
        self.jobs += sign
        self.processors += sign * job.row.nodes
        if sign > 0:
            self.members[job.row.id] = job
        else:
            del self.members[job.row.id]


_Stage = list[tuple[_Counter, int]]
"""Counters that a job has to pass together, each with the bits that hold for it."""


class HeldJobs(Rule):
    """What counts against the limits of a site, and the jobs that they hold."""

    rejects_late: ClassVar[bool] = True

    # A job that has been let go counts from then on until it leaves the system, whether it waits, runs or has been preempted.
    # So no policy can exceed a limit, whatever it starts.

    def __init__(
        self,
        site: Site,
        facts: Facts,
        dependencies: IntArray,
        arrays: Mapping[int, tuple[int, int]] = MappingProxyType({}),
        singletons: Singletons = MappingProxyType({}),
        default_partition: str | None = None,
    ) -> None:
        self._singletons = singletons
        self._together: dict[tuple[str, str], dict[int, None]] = {}  # user and name -> ids in the system, as submitted
        self._limits, self._arrays = site.limits, arrays  # the latter by job id: its array, and how many of that may run
        self._concerns = Concerns(site, facts, default_partition)
        self._most = [{BITS[name]: limit.most(name) for name in limit.given} for limit in site.limits]
        self._pending: dict[int, set[tuple[int, int]]] = {}  # job id -> kinds and ids of the jobs that it still depends on
        self._dependents: dict[int, list[int]] = {}  # job id -> ids of the jobs that depend on it
        for job, kind, other in dependencies.tolist():
            self._pending.setdefault(job, set()).add((kind, other))
            self._dependents.setdefault(other, []).append(job)
        self._never: set[int] = set()  # ids of jobs that depend on what cannot happen any more
        self._waiting: dict[int, JobInSystem] = {}  # jobs that depend on others
        self._counters: dict[tuple[object, ...], tuple[_Counter | None, _Counter | None]] = {}
        self._counted: dict[int, list[_Counter]] = {}  # job id -> what it counts against
        self._ahead: dict[int, list[_Stage]] = {}  # id of a held job -> those that it has still to pass, in stages
        self._shares_nodes = False
        self._fewest: dict[int, int] = {}  # job id -> the least number of nodes on which it fits
        self._claims: dict[int, tuple[int, int]] = {}  # job id -> how many nodes, or a bitmask of those, it may have
        # Counters whose room changes although no job of theirs leaves: as time passes, or with the nodes that are idle.
        self.changing: dict[int, _Counter] = {}

    def begin(self, run: RunContext, alarm: AlarmClock) -> None:
        """Be told of the run, and of the alarm at which it looks after :meth:`due`."""
        self._run, self._alarm = run, alarm
        self._shares_nodes = run.machine.has_shared_nodes
        self._awaits_cycle = False  # whether a job has been released for nodes that are idle
        self._settled = 0  # when gangs in rows were last brought up to date

    def admits(self, job: JobInSystem) -> bool:
        """Return whether no limit, and no job that it depends on, keeps a job from starting for ever."""
        row = job.row
        if row.id in self._never:
            return False
        fewest = None  # nodes, where it is asked for
        for number, _, applies in self._concerns.of(row.id) if self._limits else ():
            for bit, most in self._most[number].items():
                if not bit & applies or bit & (_RUNNING | _SUBMITTED):
                    continue
                if bit & _ON_NODES and fewest is None:
                    fewest = self._fewest_nodes(job)
                if (bit == _WALL_TIME and row.estimate > most) or (
                    bit & (_PROCESSORS | _JOB_PROCESSORS) and row.nodes > most
                ) or (bit == _PROCESSOR_TIME and row.nodes * row.estimate > most):  # fmt: skip
                    return False
                if bit & _ON_NODES and fewest is not None and fewest * (row.estimate if bit == _NODE_TIME else 1) > most:
                    return False
        return True

    def holds(self, job: JobInSystem) -> bool:
        """Return whether a job that is submitted is held; otherwise it joins the queue at once."""
        of_submission: _Stage = []
        of_running: _Stage = []
        for number, key, applies in self._concerns.of(job.row.id) if self._limits else ():
            submitted, running = self._counters_of(number, key)
            if submitted is not None:
                of_submission.append((submitted, applies))
            if running is not None:
                of_running.append((running, applies))
            if self._shares_nodes and applies & _JOB_NODES:
                self._limit_nodes(job, self._most[number][_JOB_NODES])
        if (array := self._arrays.get(job.row.id)) is not None:
            of_array = self._counters.setdefault(array, (None, _Counter({_RUNNING: array[1]})))[1]
            of_running += [] if of_array is None else [(of_array, _RUNNING)]
        group, alone = self._singletons.get(job.row.id, (None, False))
        if group is not None:
            together = self._together.setdefault(group, {})
            if alone and together:
                self._pending.setdefault(job.row.id, set()).add((ALONE, job.row.id))
            together[job.row.id] = None
        self._counted[job.row.id] = []
        self._ahead[job.row.id] = [of_submission, of_running]
        if job.row.id in self._pending:
            self._waiting[job.row.id] = job
            return True
        return not self._passes(job)

    def began(self, job: int) -> list[JobInSystem]:
        """Note that a job has begun; return the jobs that join the queue now."""
        return [other for other in self._resolved(job, (AFTER,)) if self._passes(other)]

    def ended(self, job: int, *, ok: bool) -> tuple[list[JobInSystem], list[JobInSystem]]:
        """Note how a job has ended, or that it was rejected; return jobs that join the queue, and those that never will."""
        lost = AFTER_NOT_OK if ok else AFTER_OK
        never = []
        for other in self._dependents.get(job, ()):
            if (lost, job) in self._pending.get(other, ()):
                del self._pending[other]
                self._never.add(other)
                if (held := self._waiting.pop(other, None)) is not None:
                    del self._ahead[other], self._counted[other]
                    never.append(held)
        met = AFTER, AFTER_ANY, AFTER_OK if ok else AFTER_NOT_OK
        free = [*self._resolved(job, met), *self._first_of_its_name(job)]
        return [other for other in free if self._passes(other)], never

    def _resolved(self, job: int, kinds: tuple[int, ...]) -> list[JobInSystem]:
        """Return the jobs in the system that depend on nothing any more, as something has happened to a job."""
        met = {(kind, job) for kind in kinds}
        return [held for other in self._dependents.get(job, ()) for held in self._freed(other, met)]

    def _first_of_its_name(self, job: int) -> list[JobInSystem]:
        """Return the job that waited for jobs of its user and name alone, of which one has ended."""
        group, _ = self._singletons.get(job, (None, False))
        if group is None or (together := self._together.get(group)) is None:
            return []
        together.pop(job, None)
        first = next(iter(together), None)
        return [] if first is None else self._freed(first, {(ALONE, first)})

    def _freed(self, job: int, met: set[tuple[int, int]]) -> list[JobInSystem]:
        """Return a job, if it depended on nothing else than what has happened, and is in the system."""
        if (pending := self._pending.get(job)) is None:
            return []
        pending -= met
        if pending:
            return []
        del self._pending[job]
        held = self._waiting.pop(job, None)
        return [] if held is None else [held]

    def left(self, job: JobInSystem) -> list[JobInSystem]:
        """Note that a job has left the system; return the jobs that join the queue now, as limits have room for them."""
        counters = self._counted.pop(job.row.id)
        self._claims.pop(job.row.id, None)
        self._fewest.pop(job.row.id, None)
        for counter in counters:
            counter.count(job, -1)
        # Jobs that wait for their turn to run come before those that enter.
        return [held for counter in reversed(counters) for held in self._released(counter)]

    def due(self, *, cycled: bool) -> list[JobInSystem]:
        """Return the jobs that join the queue as time has passed, or for idle nodes; if there are none, set the alarm.

        Asked at the end of an instant, after the scheduling cycle, if there was one.
        """
        if not self.changing:
            return []
        now = self._run.env.now
        if cycled:
            self._settled = now
        elif self._run.rows and self._settled < now:  # what gangs in rows have executed until now a cycle tells
            self._alarm.set(now)
            return []
        self._awaits_cycle = False
        released: list[JobInSystem] = []
        for number, counter in list(self.changing.items()):
            released += self._released(counter, settled=True)
            if not counter.held:
                del self.changing[number]
        at = NEVER
        if not released:
            for counter in self.changing.values():
                counter.rung = self._room_at(counter)
                at = min(at, counter.rung)
        self._alarm.set(None if at == NEVER else at)
        return released

    def _released(self, counter: _Counter, *, settled: bool = False) -> list[JobInSystem]:
        """Return the jobs that a counter held and nothing holds any more, in order; others may be held by another one now."""
        released, gone = [], []
        most = counter.most.get(_RUNNING, counter.most.get(_SUBMITTED, NEVER))
        for job, applies in counter.held.values():
            if counter.jobs >= most and counter.all_by_number:
                break
            if self._has_room(counter, job, applies):
                holding = self._holding(job, settled=settled)
                if holding is not counter:
                    gone.append(job.row.id)
                if holding is None:
                    released.append(job)
        for number in gone:
            del counter.held[number]
        return released

    def _passes(self, job: JobInSystem) -> bool:
        return self._holding(job) is None

    def _holding(self, job: JobInSystem, *, settled: bool = False) -> _Counter | None:
        """Count a job against its limits, stage by stage; return the counter that holds it, if any does."""
        stages = self._ahead[job.row.id]
        while stages:
            for counter, applies in stages[0]:
                if not self._has_room(counter, job, applies):
                    return self._hold(counter, job, applies)
            if self._shares_nodes:
                on_nodes = [(counter, applies) for counter, applies in stages[0] if applies & _NODES]
                if on_nodes and not self._choose_nodes(job, [counter for counter, _ in on_nodes], settled=settled):
                    return self._hold(on_nodes[0][0], job, on_nodes[0][1])
                for counter, applies in stages[0]:
                    if applies & _NODE_TIME:  # on no more nodes than there is room for
                        left = counter.most[_NODE_TIME] - self._time(counter, _NODE_TIME)
                        self._limit_nodes(job, left // job.row.estimate)
            for counter, _ in stages[0]:
                counter.count(job, 1)
                self._counted[job.row.id].append(counter)
            stages.pop(0)
        del self._ahead[job.row.id]
        return None

    def _hold(self, counter: _Counter, job: JobInSystem, applies: int) -> _Counter:
        counter.held[job.row.id] = job, applies
        counter.all_by_number = counter.all_by_number and applies & (_RUNNING | _SUBMITTED) != 0
        if any(bit & (_TIMES | (_NODES if self._shares_nodes else 0)) for bit in counter.most):
            self.changing[id(counter)] = counter
        return counter

    def _has_room(self, counter: _Counter, job: JobInSystem, applies: int) -> bool:
        """Return whether a job may join those counted, as far as limits are concerned that ``applies`` has for it."""
        nodes = job.row.nodes
        for bit, most in counter.most.items():
            if not bit & applies:
                continue
            if bit & (_RUNNING | _SUBMITTED):
                if counter.jobs >= most:
                    return False
            elif bit == _PROCESSORS or (bit == _NODES and not self._shares_nodes):
                if counter.processors + nodes > most:
                    return False
            elif bit & _TIMES:
                if self._run.rows and self._settled < self._run.env.now:
                    return False
                if self._time(counter, bit) + self._demand(job, bit) > most:
                    return False
        return True

    # Limits of nodes x remaining time.

    def _size(self, job: JobInSystem, bit: int) -> int:
        """Return by how many nodes, or processors, the remaining time of a job counts."""
        return self._nodes_of(job) if bit == _NODE_TIME and self._shares_nodes else job.row.nodes

    def _demand(self, job: JobInSystem, bit: int) -> int:
        """Return by how much a job that is held adds to such a sum, at least."""
        return (self._fewest_nodes(job) if bit == _NODE_TIME else job.row.nodes) * job.row.estimate

    def _time(self, counter: _Counter, bit: int) -> int:
        """Return the sum of nodes, or processors, x remaining time of the jobs counted."""
        now, running = self._run.env.now, self._run.running
        time = 0
        for number, job in counter.members.items():
            left = max(job.row.estimate - job.saved, 0)
            if (gang := running.get(number)) is not None:
                left = max(job.row.estimate - progress(gang), 0) if gang.rows else min(left, max(gang.expected_end - now, 0))
            time += self._size(job, bit) * left
        return time

    def _room_at(self, counter: _Counter) -> int:
        """Return the first time at which a counter can have room for a job that it holds, if no job starts, ends or is stopped.

        Where gangs share nodes in time, there may still be too little room then.
        """
        bits = [bit for bit in counter.most if bit & _TIMES]
        demands = set[tuple[int, ...]]()
        for job, applies in counter.held.values():
            demand = tuple(self._demand(job, bit) if bit & applies else 0 for bit in bits)
            if any(demand) and self._has_room(counter, job, applies & ~_TIMES):
                demands.add(demand)
        if len(bits) == 1 and demands:
            demands = {min(demands)}
        first = NEVER
        for demand in demands:
            at = max(self._falls_to(counter, bit, counter.most[bit] - amount) for bit, amount in zip(bits, demand, strict=True))
            if at >= 0:
                first = min(first, at)
        return first

    def _falls_to(self, counter: _Counter, bit: int, allowed: int) -> int:
        """Return when the sum of nodes x remaining time has fallen to what is ``allowed``; -1: it has already."""
        now, running = self._run.env.now, self._run.running
        time = self._time(counter, bit)
        if time <= allowed:
            return -1
        changes: list[tuple[int, int]] = []  # when it begins, or ceases, to fall by so much in each tick
        in_rows = 0
        for number, job in counter.members.items():
            if (gang := running.get(number)) is None:
                continue
            size = self._size(job, bit)
            if gang.rows:
                in_rows += size
            elif gang.expected_end > now:
                changes.append((max(gang.expected_end - max(job.row.estimate - job.saved, 0), now), size))
                changes.append((gang.expected_end, -size))
        if in_rows:  # at the earliest; where there was no room then, a slice of other gangs may be running
            ticks = -(-(time - allowed) // in_rows)
            if counter.rung == now == self._settled:
                ticks = max(ticks, self._run.machine.time_slicing.quantum)
            return max(self._settled + ticks, now)
        at, rate = now, 0
        for change, by in sorted(changes):
            if rate and at + (ticks := -(-(time - allowed) // rate)) <= change:
                return at + ticks
            time -= rate * (change - at)
            at, rate = change, rate + by
        return NEVER

    # Limits of nodes that have several processors: a node counts once.

    def _layout(self, job: JobInSystem) -> Layout:
        return job.queued.layout or ANY

    def _limit_nodes(self, job: JobInSystem, most: int) -> None:
        """Let a job have at most so many nodes."""
        per_node, most_nodes = self._layout(job)
        if not most_nodes or most_nodes > most:
            job.queued.layout = Layout(per_node, most)

    def _fewest_nodes(self, job: JobInSystem) -> int:
        """Return the least number of nodes on which a job fits."""
        if not self._shares_nodes:
            return job.row.nodes
        if (known := self._fewest.get(job.row.id)) is not None:
            return known
        fewest, most = 1, self._most_nodes(job)
        while fewest < most:
            middle = (fewest + most) // 2
            if self._fits_on(job, middle):
                most = middle
            else:
                fewest = middle + 1
        self._fewest[job.row.id] = fewest
        return fewest

    def _fits_on(self, job: JobInSystem, nodes: int) -> bool:
        """Return whether a job fits on so many nodes of the empty machine."""
        assert self._run.requests is not None
        of_machine, queued = self._run.requests.nodes, job.queued
        layout = queued.layout
        queued.layout = Layout(self._layout(job).per_node, nodes)
        fits = of_machine.choose_of(queued, queued.nodes, of_machine.total, queued.sets_allowed()) is not None
        queued.layout = layout
        return fits

    def _most_nodes(self, job: JobInSystem) -> int:
        """Return the largest number of nodes that a job may have."""
        assert self._run.requests is not None
        per_node, most_nodes = self._layout(job)
        most = min(job.row.nodes // (per_node or 1), self._run.requests.nodes.count)
        return min(most, most_nodes) if most_nodes else most

    def _nodes_of(self, job: JobInSystem) -> int:
        """Return how many nodes a job has, or while it waits, may have."""
        gang = self._run.running.get(job.row.id)
        if gang is not None:
            return self._mask_of(gang.columns).bit_count()
        claimed, mask = self._claims.get(job.row.id, (0, 0))
        return claimed or mask.bit_count() or self._most_nodes(job)

    def _mask_of(self, columns: NodeSet) -> int:
        """Return the nodes of some processors, a bitmask of nodes."""
        assert self._run.requests is not None
        nodes = self._run.requests.nodes
        return sum([1 << node for node, _ in nodes.split(columns, 0)])

    def _choose_nodes(self, job: JobInSystem, counters: list[_Counter], *, settled: bool) -> bool:
        """Limit a job to as many nodes as counters have left, or to nodes of their jobs on which it fits now.

        Return whether that is possible.
        """
        used, room = -1, NEVER  # the nodes that jobs of all counters have
        for counter in counters:
            mask, claimed = 0, 0
            for number, other in counter.members.items():
                if (gang := self._run.running.get(number)) is not None:
                    mask |= self._mask_of(gang.columns)
                else:
                    nodes, own = self._claims.get(number, (self._most_nodes(other), 0))
                    mask, claimed = mask | own, claimed + nodes
            used, room = used & mask, min(room, counter.most[_NODES] - mask.bit_count() - claimed)
        if room > 0 and self._fits_on(job, min(room, self._most_nodes(job))):
            self._limit_nodes(job, room)
            self._claims[job.row.id] = self._most_nodes(job), 0
            return True
        if not settled or self._awaits_cycle:  # the next cycle may take nodes that are idle now
            return False
        run, queued = self._run, job.queued
        assert run.requests is not None
        of_machine = run.requests.nodes
        free = of_machine.free(run.pool.idle_nodes.as_set(), None if run.saved.free is None else run.saved.free.by_node())
        idle = free[: of_machine.count].tolist()
        for allowed in queued.sets_allowed():
            may_have = of_machine.having(allowed).tolist()
            others = [node for node, number in enumerate(idle) if number and may_have[node] and not used >> node & 1]
            others.sort(key=lambda node: (-idle[node], node))
            mask = used | sum([1 << node for node in others[: max(room, 0)]])
            split = of_machine.choose(queued, queued.nodes, free, self._processors_of(mask, allowed))
            if split is not None:
                break
        else:
            return False
        mask = used | sum([1 << node for node, _ in split if node < of_machine.count and not used >> node & 1])
        queued.allowed = queued.eligible = self._processors_of(mask, allowed)
        queued.alternatives = ()
        self._claims[job.row.id] = 0, mask
        self._awaits_cycle = True
        return True

    def _processors_of(self, nodes: int, allowed: NodeSet | None) -> NodeSet:
        """Return the processors of some nodes, a bitmask of nodes, that a job may have."""
        assert self._run.requests is not None
        first, mask = self._run.requests.nodes.first, 0
        for node in range(nodes.bit_length()):
            if nodes >> node & 1:
                mask |= (1 << first[node + 1]) - (1 << first[node])
        return from_mask(mask if allowed is None else mask & as_mask(allowed))

    def _counters_of(self, number: int, key: tuple[str, ...]) -> tuple[_Counter | None, _Counter | None]:
        """Return the counters of jobs in the system, and of those that may run."""
        place = (number, *key)
        if place not in self._counters:
            most = self._most[number]
            running = {bit: amount for bit, amount in most.items() if bit & _TOGETHER}
            submitted = _Counter({_SUBMITTED: most[_SUBMITTED]}) if _SUBMITTED in most else None
            self._counters[place] = submitted, _Counter(running) if running else None
        return self._counters[place]
