"""What must hold in every run, worked out from the tables of its result and what was asked for.

Nothing here looks into the simulator: :func:`differences` reads ``Result.jobs``, ``run_attempts``, ``placements``, ``energy``,
the ledger, and the logs of time slices, of the matrix and of overheads; and the scenario and its jobs.  What a policy has told,
reservations and what it discards, is noted by :class:`Noting`.  Times are ticks.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import pairwise
from math import inf, isnan, lcm
from typing import Any, Final, NamedTuple

from clustermodel import Job, Limits, NodeType, Reservation, Result, make_policy
from clustermodel.machine.costs import CostTicks
from clustermodel.machine.node_type import has_features
from clustermodel.policies.interface import Decision, Kill, Policy, Reserve, Setup, decide_of
from clustermodel.policies.view import Batch, View
from clustermodel.recording.ledger import Account
from clustermodel.ticks import TICKS_PER_SECOND, duration_to_ticks, to_ticks

SUBJECTS: Final = ("user", "group", "account", "partition", "qos", "queue")
AMOUNTS: Final = ("running_jobs", "submitted_jobs", "nodes", "processors", "node_hours", "processor_hours")
RESERVING: Final = ("easy", "conservative", "bf")
IN_QUEUE_ORDER: Final = ("fcfs", "easy", "fifo-preempt")
"""Policies under which the first job of the queue starts as soon as it fits."""
_ENDED: Final = ("completed", "killed", "aborted", "rejected")
_OF_WORK: Final = (Account.USEFUL, Account.LOST)
_FREE: Final = (Account.IDLE, Account.RESERVED, Account.OFF)
Arrays = Mapping[int, tuple[int, int]]
"""By job, its array, and how many tasks of that may run."""


class Reserved(NamedTuple):
    """A reservation that a policy has made."""

    now: int
    job: int
    start: int


class Noting:
    """A policy of which is noted what it reserves, and when it discards what is suspended of waiting jobs."""

    def __init__(self, policy: str) -> None:
        self._policy: Policy = make_policy(policy)
        self.name = self._policy.name
        self.reserved: list[Reserved] = []
        self.discarded: dict[int, list[int]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def start(self, setup: Setup) -> object:
        self.reserved.clear()
        self.discarded.clear()
        self._decide = decide_of(self._policy, setup)
        return self

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        decisions = list(self._decide(batch, view))
        for each in decisions:
            if isinstance(each, Reserve):
                self.reserved.append(Reserved(view.now, each.job.id, each.start))
            elif isinstance(each, Kill) and each.job.id in view.waiting:
                self.discarded.setdefault(each.job.id, []).append(view.now)
        return decisions


class Attempt(NamedTuple):
    """A run attempt, or the part of it on a number of nodes."""

    job: int
    start: int
    end: int
    nodes: int
    executed: int
    lost: int
    outcome: str


class Placed(NamedTuple):
    """A range of processors that a gang has for a time."""

    job: int
    begin: int
    end: int
    row: int
    first: int
    nodes: int

    @property
    def processors(self) -> range:
        """Which."""
        return range(self.first, self.first + self.nodes)


class Window(NamedTuple):
    """When processors are reserved, or known to be down."""

    processors: frozenset[int]
    begin: int
    end: int
    every: int
    reservation: Reservation | None

    def turns(self, until: float) -> Iterator[tuple[int, int]]:
        """Yield begin and end of each turn that begins before."""
        begin, end = self.begin, self.end
        while begin < until:
            yield begin, end
            if not self.every:
                return
            begin, end = begin + self.every, end + self.every


class Option(NamedTuple):
    """Processors that a job may have, by one of the partitions that it names, and what that adds to its priority."""

    processors: frozenset[int]
    priority: int


def differences(
    result: Result,
    jobs: Sequence[Job],
    arrays: Arrays | None = None,
    reserved: Sequence[Reserved] = (),
    discarded: Mapping[int, Sequence[int]] | None = None,
) -> list[str]:
    """Return in words what does not hold in a run; nothing if all does.

    Args:
        result: of the run, with a history.
        jobs: that were submitted.
        arrays: of jobs in arrays whose limit is enforced.
        reserved: what the policy has reserved, if that was noted.
        discarded: id of a job -> when the policy has discarded what was suspended of it, if that was noted.
    """
    run = _Run(result, jobs, arrays or {}, reserved, discarded or {})
    rules: tuple[Callable[[], Iterator[str]], ...] = (
        run.ends, run.rejections, run.order, run.work, run.sizes, run.occupancy, run.nodes, run.shapes, run.memory, run.windows,
        run.dependencies, run.holding, run.limits, run.first_come, run.conserving, run.bounds, run.guarantees, run.store,
        run.overheads, run.ledger, run.kept_free, run.cap, run.off, run.energy,
    )  # fmt: skip
    return [found for rule in rules for found in rule()]


def _ticks(seconds: Iterable[float]) -> list[int]:
    return [-1 if isnan(time) else round(time * TICKS_PER_SECOND) for time in seconds]


def _s(ticks: float) -> str:
    return f"{ticks / TICKS_PER_SECOND:.6f}".rstrip("0").rstrip(".") if abs(ticks) < inf else str(ticks)


def listed(nodes: str) -> set[int]:
    """Return the nodes of a text as ``0-3,7``."""
    ends = [part.partition("-")[::2] for part in nodes.split(",")]
    return {node for low, high in ends for node in range(int(low), int(high or low) + 1)}


class _Run:
    """The tables of a run, and what was asked for."""

    def __init__(
        self,
        result: Result,
        jobs: Sequence[Job],
        arrays: Arrays,
        reserved: Sequence[Reserved],
        discarded: Mapping[int, Sequence[int]],
    ) -> None:
        self.result, self.machine, self.site = result, result.machine, result.scenario.used_site
        self.policy, self.speedup = make_policy(result.scenario.policy), result.scenario.speedup
        self.in_time = result.slices is not None
        self.qos = () if self.site is None else self.site.qos
        self.jobs, self.arrays = {job.id: job for job in jobs}, arrays
        self.reserved, self.discarded = reserved, discarded
        self._nodes()
        self.submit = {job.id: to_ticks(job.submit_s) for job in jobs}
        self.run = {job.id: duration_to_ticks(job.run_s) for job in jobs}
        self.estimate = {job.id: duration_to_ticks(job.estimate_s) if job.estimate_s else self.run[job.id] for job in jobs}
        self._tables()
        self.options = {job.id: self._options(job) for job in jobs}
        self.size = {job.id: self._size(job) for job in jobs}
        self.windows_of = self._windows()
        self.outages = self._outages()

    # What was asked for

    def _nodes(self) -> None:
        machine = self.machine
        per_node = max(machine.gpus_per_node, machine.processors_per_node)
        sizes = [per_node] * machine.nodes
        self.speeds = [1.0] * machine.nodes
        self.memory_of: list[float | None] = [machine.node_memory_gib] * machine.nodes
        self.types: list[NodeType | None] = [None] * machine.nodes
        for each in machine.node_types:
            for node in listed(str(each.nodes)):
                self.types[node], self.speeds[node] = each, each.speed
                sizes[node] = each.processors_per_node or per_node
                self.memory_of[node] = each.memory_gib or self.memory_of[node]
        self.sizes_of_nodes = sizes
        self.node_of = [node for node, size in enumerate(sizes) for _ in range(size)]
        self.processors = len(self.node_of)
        self.shared = max(sizes) > 1

    def _tables(self) -> None:
        jobs, attempts = self.result.jobs, self.result.run_attempts
        ids = jobs["job"].tolist()
        times = {name: _ticks(jobs[f"{name}_s"]) for name in ("submit", "start", "end", "reserved", "run")}
        self.table = {
            job: {"status": status, **dict(zip(times, values, strict=True))}
            for job, status, *values in zip(ids, jobs["status"].tolist(), *times.values(), strict=True)
        }
        self.held = dict.fromkeys(ids, 0)
        if "held_s" in jobs:
            self.held = {job: max(0, held) for job, held in zip(ids, _ticks(jobs["held_s"]), strict=True)}
        self.joined = {job: row["submit"] + self.held[job] for job, row in self.table.items()}
        columns = [attempts["job"].tolist(), *(_ticks(attempts[name]) for name in ("start_s", "end_s"))]
        columns += [attempts["nodes"].tolist(), *(_ticks(attempts[name]) for name in ("executed_s", "lost_s"))]
        self.phases: dict[int, list[Attempt]] = defaultdict(list)
        for each in map(Attempt, *columns, attempts["outcome"].tolist()):
            self.phases[each.job].append(each)
        self.attempts = {job: list(_together(phases)) for job, phases in self.phases.items()}
        self.first_start = {job: phases[0].start for job, phases in self.phases.items()}
        self.end: dict[int, int] = {job: row["end"] for job, row in self.table.items() if job in self.phases}
        self.started = [job for job in self.jobs if job in self.phases]
        self.places: list[Placed] = []
        if self.phases:
            places = self.result.placements
            whole = [places[name].tolist() for name in ("row", "first_node", "nodes")]
            begins, ends = _ticks(places["begin_s"]), _ticks(places["end_s"])
            self.places = list(map(Placed, places["job"].tolist(), begins, ends, *whole))
        self.of_job: dict[int, list[Placed]] = defaultdict(list)
        for place in self.places:
            self.of_job[place.job].append(place)
        self.last_places: dict[int, set[int]] = {}  # processors of the last attempt
        for job, attempts_of in self.attempts.items():
            since = 0 if self.in_time else attempts_of[-1][0].start
            self.last_places[job] = {each for place in self.of_job[job] if place.begin >= since for each in place.processors}
        moments = {*self.joined.values(), *self.submit.values(), *self.end.values()}
        moments |= {time for phases in self.phases.values() for each in phases for time in (each.start, each.end)}
        self.instants = sorted(moments)

    def _options(self, job: Job) -> list[Option]:
        """Return the sets of processors of which a job may have one, by partitions, types, features and memory."""
        nodes = [(frozenset(range(self.machine.nodes)), 0)]
        named = job.partition or next((each.name for each in self.machine.partitions if each.default), None)
        lifts = [each for each in self.qos if each.name == job.qos]
        lifts_time, lifts_nodes = (
            any(getattr(each, f"lifts_partition_{what}") for each in lifts) for what in ("time", "nodes")
        )
        if self.machine.partitions and named is not None:
            nodes = [
                (frozenset(listed(str(each.nodes))), each.priority)
                for each in self.machine.partitions
                if each.name in named.split(",")
                and (each.max_wall_time_s is None or lifts_time or self.estimate[job.id] <= to_ticks(each.max_wall_time_s))
                and (each.max_nodes is None or lifts_nodes or job.nodes <= each.max_nodes)
            ]
        fit = {node for node in range(self.machine.nodes) if self._fits_node(job, node)}
        return [
            Option(frozenset(each for each, node in enumerate(self.node_of) if node in of & fit), priority)
            for of, priority in nodes
        ]

    def _fits_node(self, job: Job, node: int) -> bool:
        kind, memory = self.types[node], self.memory_of[node]
        has = frozenset(() if kind is None else kind.features)
        return not (
            (job.node_type is not None and (kind is None or kind.name not in job.node_type.split(",")))
            or (job.features is not None and not has_features(has, job.features))
            or (memory is not None and (job.memory_gib or 0) > memory)
        )

    def _size(self, job: Job) -> int:
        """Return how many processors a job has, with all those of its nodes, which are alike, if it asks for them."""
        counts = [Counter(self.node_of[each] for each in option.processors) for option in self.options[job.id]]
        all_of_a_node = max((size for count in counts for size in count.values()), default=0)
        if not job.whole_nodes or not all_of_a_node:
            return job.nodes
        return -(-job.nodes // (job.processors_per_node or all_of_a_node)) * all_of_a_node

    def _fits(self, job: Job, processors: Collection[int]) -> bool:
        """Return whether a job fits on processors of the empty machine."""
        rooms, on_node = [], Counter(self.node_of[each] for each in processors)
        for node, size in on_node.items():
            memory = self.memory_of[node]
            rooms.append(min(size, int(memory / job.memory_gib)) if memory and job.memory_gib else size)
        each = max(on_node.values(), default=0) if job.whole_nodes else job.processors_per_node or 0
        rooms = [each for room in rooms if room >= each] if each else sorted(rooms, reverse=True)
        return 0 < self.least(job.id) <= sum(rooms[: job.max_nodes_used])

    def least(self, job: int) -> int:
        """Return the least number of processors on which a job may start."""
        return self.size[job]

    @cached_property
    def _may_use(self) -> float:
        """The number of processors that may be in use at a time, by the power cap."""
        if self.machine.power_cap is None or len(self.machine.draws) != 1:
            return inf
        (_, unused, most), cap = self.machine.draws[0], self.machine.power_cap
        return (cap - self.processors * unused) // (most - unused) if most > unused else inf

    @cached_property
    def _is_capped_in_parts(self) -> bool:
        kinds = self.machine.partitions or self.machine.node_types or any(w.reservation for w in self.windows_of)
        return self.machine.power_cap is not None and bool(kinds)

    def _speed(self, processors: Collection[int]) -> float:
        return min((self.speeds[self.node_of[each]] for each in processors), default=1.0)

    def _limits_of(self, job: int) -> list[int]:
        """Return the wall-time limits that a job may have: on the slowest nodes that it may use."""
        slowest = {self._speed(option.processors) for option in self.options[job]}
        slowest.add(min(slowest, default=1.0))
        return [max(1, round(self.estimate[job] / speed)) for speed in sorted(slowest)]  # the longest first

    def _windows(self) -> list[Window]:
        windows = []
        for each in self.machine.reservations:
            nodes = set(range(self.machine.nodes)) if each.nodes is None else listed(str(each.nodes))
            of = frozenset(processor for processor, node in enumerate(self.node_of) if node in nodes)
            every = 0 if each.every_s is None else to_ticks(each.every_s)
            windows.append(Window(of, to_ticks(each.start_s), to_ticks(each.end_s), every, each))
        announced = getattr(self.machine.failures, "announced", None)
        known = () if announced is None else announced()
        return windows + [Window(frozenset({node}), time, time + repair, 0, None) for time, node, repair in known]

    def _outages(self) -> list[tuple[int, int, int]]:
        """Return node, begin and end of the outages that were asked for."""
        if self.machine.failures is None:
            return []
        failures = self.machine.failures.failures(self.processors, None)  # type: ignore[arg-type]
        return [(node, time, time + repair) for time, node, repair in failures]

    def _barred(self, job: int) -> list[Window]:
        """Return the windows whose processors a job may not have."""
        asked = {name for each in self.jobs.values() for name in (each.reservation or "").split(",") if name}
        mine, own = self.jobs[job], (self.jobs[job].reservation or "").split(",")
        barred = []
        for window in self.windows_of:
            each = window.reservation
            if each is None:
                admits = False
            elif each.name in asked:
                admits = each.name in own
            else:
                named = bool(each.accounts or each.users)
                admits = named and (not each.accounts or mine.account in each.accounts)
                admits = admits and (not each.users or (mine.user >= 0 and str(mine.user) in each.users))
            if not admits:
                barred.append(window)
        return barred

    def _cost(self, name: str, job: int, nodes: int) -> int:
        own = getattr(self.jobs[job], f"{name}_s")
        return CostTicks(name, getattr(self.machine, f"{name}_s")).of(nodes) if own is None else to_ticks(own)

    # Jobs and run attempts

    def ends(self) -> Iterator[str]:
        if sorted(self.table) != sorted(self.jobs):
            yield f"jobs: {len(self.table)} in the table, {len(self.jobs)} submitted"
        for job, row in self.table.items():
            if row["status"] not in _ENDED:
                yield f"jobs: job {job} is {row['status']}"
            if (row["status"] == "rejected") != (job not in self.phases):
                yield f"jobs: job {job} is {row['status']} after {len(self.phases[job])} attempts"

    def rejections(self) -> Iterator[str]:
        """Yield jobs that are rejected or aborted without a reason, and those that are not, with one."""
        for job, row in self.table.items():
            why, status = self._never(self.jobs[job]), row["status"]
            if why and status != "rejected":
                yield f"rejections: job {job} is {status}; it cannot run: {why}"
            if status == "rejected" and not why and self._could_start(job):
                yield f"rejections: job {job} is rejected without a reason"

    @cached_property
    def _refused(self) -> set[int]:
        """The jobs that no empty machine, or limit, ever lets start."""
        return {number for number, job in self.jobs.items() if self._too_much(job)}

    def _too_much(self, job: Job) -> str:
        for limit in () if self.site is None else self.site.limits:
            if self._of_limit(limit, job) is None:
                continue
            size, estimate, fewest = self.size[job.id], self.estimate[job.id], self._fewest(job)
            for name, amount in (
                ("nodes", fewest), ("job_nodes", fewest), ("processors", size), ("job_processors", size),
                ("wall_time_s", estimate), ("node_hours", fewest * estimate), ("processor_hours", size * estimate),
            ):  # fmt: skip
                if amount > self._most(limit, job, name):
                    return f"more than the limit {name} of {limit.of_whom}"
        if not any(self._fits(job, option.processors) for option in self.options[job.id]):
            return "it fits on no nodes that it may have"
        if not self._is_capped_in_parts and self.least(job.id) > self._may_use:
            return "more nodes than the power cap allows"
        return ""

    def _never(self, job: Job) -> str:
        if why := self._too_much(job):
            return why
        for other in job.after_ok:
            if other in self.table and self.table[other]["status"] != "completed":
                return f"job {other} has not completed"
        for other in job.after_not_ok:
            if other in self.table and self.table[other]["status"] == "completed":
                return f"job {other} has completed"
        return ""

    def _could_start(self, number: int) -> bool:
        """Return whether a job could start again and again for all that is known, however late."""
        job = self.jobs[number]
        if self._is_capped_in_parts:  # each pool of nodes loses its part: how many are left of each is not written down
            return not self.windows_of and any(self._fits_capped(job, option.processors) for option in self.options[number])
        barred = [window for window in self._barred(number) if window.every]
        if not barred:
            return True
        if (length := self._longest_stay(number)) is None:
            return False
        period, last = lcm(*(window.every for window in barred)), max(window.end for window in barred)
        horizon = last + period + length
        turns = [(begin, end, window.processors) for window in barred for begin, end in window.turns(horizon)]
        for start in sorted({last, *(end for _, end, _ in turns if end >= last)}):
            if start > last + period:
                return False
            taken = {each for begin, end, of in turns if begin < start + length and start < end for each in of}
            if any(self._fits(job, option.processors - taken) for option in self.options[number]):
                return True
        return False

    def _fits_capped(self, job: Job, processors: Collection[int]) -> bool:
        """Return whether a job fits under the cap for sure: each pool loses a node too many at most."""
        draws = self.machine.draws
        total = sum(most for bounds, _, most in draws for _ in _members(bounds))
        unused = sum(least for bounds, least, _ in draws for _ in _members(bounds))
        cap = self.machine.power_cap
        assert cap is not None
        share = 1.0 if total == unused else min(1.0, (cap - unused) / (total - unused))
        kinds = 2 ** len((*self.machine.partitions, *self.machine.node_types, *self.machine.reservations))
        return bool(self.least(job.id) <= len(processors) * share - min(kinds, len(processors)))

    def _longest_stay(self, job: int) -> int | None:
        """Return for how long a job may be expected to have nodes, at most; ``None``: it depends on others."""
        costs, mine = self.machine.checkpointing, self.jobs[job]
        if costs.interval_s is not None or mine.checkpoint_interval_s is not None or getattr(self.policy, "mode", None):
            return None  # on other gangs at the checkpoint store
        sizes = range(1, self.processors + 1)
        length = max(self._limits_of(job))
        length += max(self._cost("startup", job, n) for n in sizes) + max(self._cost("epilog", job, n) for n in sizes)
        length += self.machine.boot
        if hasattr(self.policy, "mpl"):
            length = self.machine.time_slicing.longest(length, self._rows, self.machine.switch_ticks)
        return length

    @property
    def _rows(self) -> int:
        return min(self.machine.time_slicing.mpl, getattr(self.policy, "mpl", None) or self.machine.time_slicing.mpl)

    def order(self) -> Iterator[str]:
        for job, phases in self.phases.items():
            row = self.table[job]
            if row["submit"] != self.submit[job] or phases[0].start < self.joined[job]:
                yield f"order: job {job} starts at {_s(phases[0].start)}, before its submission at {_s(self.joined[job])}"
            if any(later.start < one.end for one, later in pairwise(phases)) or any(one.end < one.start for one in phases):
                yield f"order: job {job}: attempts overlap"
            if any(later.start != one.end for one, later in pairwise(phases) if one.outcome == "resized"):
                yield f"order: job {job} is resized, and does not go on at once"
            last = self.attempts[job][-1]
            if (last[0].start, last[-1].end, last[-1].outcome) != (row["start"], row["end"], row["status"]):
                yield f"order: job {job}: its last attempt and the job table differ"
            if any(one.outcome in _ENDED for one in phases[:-1]):
                yield f"order: job {job}: goes on after its end"

    def _whole(self, job: int, ticks: int, nodes: int) -> int:
        return ticks if nodes == self.size[job] else self.speedup.time_on(ticks, self.size[job], nodes)

    def work(self) -> Iterator[str]:
        """Yield jobs that execute more or less than they should."""
        for job, phases in self.phases.items():
            if self._is_resized(job):
                yield from self._malleable_work(job)
                continue
            last, worked, kill = phases[-1], self.table[job]["run"], self.machine.kill_at_estimate
            run = self._whole(job, max(1, round(self.run[job] / self._speed(self.last_places[job]))), last.nodes)
            limits = [self._whole(job, limit, last.nodes) for limit in self._limits_of(job)]
            kept = sum(one.executed - one.lost for one in phases[:-1]) + last.executed
            if kept != worked and len({one.nodes for one in phases}) == 1:
                yield f"work: job {job}: {_s(worked)} in the job table, {_s(kept)} in its attempts"
            if kill and worked > max(limits):
                yield f"kills: job {job} executes {_s(worked)} of at most {_s(max(limits))}"
            if last.outcome == "completed" and worked != run:
                yield f"kills: job {job} completes after {_s(worked)} of {_s(run)}"
            if last.outcome == "killed" and kill and not (worked in limits and worked < run):
                yield f"kills: job {job} is killed after {_s(worked)}; its limit is {_s(max(limits))}, its run time {_s(run)}"

    def _is_resized(self, job: int) -> bool:
        """Return whether a job may change its size: none does where nodes differ in speed."""
        return self.jobs[job].malleable and self.machine.node_speeds is None

    def _malleable_work(self, job: int) -> Iterator[str]:
        done, rounding = Fraction(0), Fraction(0)
        due_on = dict[int, int]()
        for one in self.phases[job]:
            due, limit = (self._whole(job, ticks, one.nodes) for ticks in (self.run[job], self.estimate[job]))
            due_on[one.nodes] = whole = min(due, limit) if self.machine.kill_at_estimate else due
            done += Fraction(one.executed - one.lost, whole)
            rounding += Fraction(2, whole)  # a resize, and a checkpoint before a failure, round down to a tick of this size
        if self.table[job]["status"] == "aborted":
            return
        if not 1 <= done <= 1 + rounding:
            yield f"work: malleable job {job} has done {float(done):.6f} of its work, at sizes that take {due_on}"

    def sizes(self) -> Iterator[str]:
        """Yield gangs on another number of nodes than their jobs may have."""
        widths = getattr(self.policy, "width", "asked") != "asked"
        for job, phases in self.phases.items():
            mine = self.jobs[job]
            for one in phases:
                if mine.malleable:
                    low, high = mine.min_nodes or 1, mine.max_nodes or self.processors
                    if not low <= one.nodes <= high:
                        yield f"sizes: job {job} has {one.nodes} nodes at {_s(one.start)}; it may have {low} to {high}"
                elif one.nodes != self.size[job] and not widths:
                    yield f"sizes: job {job} has {one.nodes} nodes at {_s(one.start)}, not {self.size[job]}"
                elif one.outcome == "resized":
                    yield f"sizes: job {job} is resized at {_s(one.end)}, and is not malleable"

    # Where gangs are

    def occupancy(self) -> Iterator[str]:
        mpl = self._rows if self.in_time else 1
        held: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
        of_gang: dict[tuple[int, int, int, int], int] = defaultdict(int)
        for place in self.places:
            if not (0 <= place.first < place.first + place.nodes <= self.processors and 0 <= place.row < mpl):
                yield f"occupancy: {place}"
            of_gang[place.job, place.begin, place.end, place.row] += place.nodes
            for node in place.processors:
                held[node, place.row].append((place.begin, place.end, place.job))
        for (node, row), gangs in held.items():
            gangs.sort()
            for one, later in pairwise(gangs):
                if later[0] < one[1]:
                    yield f"occupancy: jobs {one[2]} and {later[2]} on node {node} of row {row} at {_s(later[0])}"
        for (job, begin, _, _), nodes in of_gang.items():
            if nodes not in (has := {one.nodes for one in self.phases[job]}):
                yield f"occupancy: job {job} has {nodes} nodes at {_s(begin)}, not one of {sorted(has)}"
        down: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for node, begin, end in self.outages:
            down[node].append((begin, end))
        for (node, _), gangs in held.items():
            for begin, end, job in gangs:
                if any(begin < up and fails < end for fails, up in down[node]):
                    yield f"occupancy: job {job} on node {node} at {_s(begin)}, which is down"

    def _gangs(self) -> dict[tuple[int, int, int], set[int]]:
        """Return the processors of each gang, from one time to another."""
        gangs: dict[tuple[int, int, int], set[int]] = defaultdict(set)
        for place in self.places:
            gangs[place.job, place.begin, place.end].update(place.processors)
        return gangs

    def nodes(self) -> Iterator[str]:
        """Yield jobs on nodes that they may not have: those of one of their partitions."""
        for (job, begin, _), processors in self._gangs().items():
            if not any(option.processors >= processors for option in self.options[job]):
                may = [sorted(option.processors) for option in self.options[job]]
                yield f"nodes: job {job} on {sorted(processors)} at {_s(begin)}; it may have {may}"

    def shapes(self) -> Iterator[str]:
        """Yield jobs whose processors do not lie on nodes as they asked for, and nodes of too little memory."""
        if not self.shared:
            return
        changes: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for (number, begin, end), processors in self._gangs().items():
            job, on_nodes = self.jobs[number], Counter(self.node_of[each] for each in processors)
            for node, size in on_nodes.items():
                if size != (self.sizes_of_nodes[node] if job.whole_nodes else job.processors_per_node or size):
                    yield f"shapes: job {number} has {size} processors of node {node} at {_s(begin)}"
                changes[node] += [(end, -size * (job.memory_gib or 0)), (begin, size * (job.memory_gib or 0))]
            if len(on_nodes) > (job.max_nodes_used or inf):
                yield f"shapes: job {number} has {dict(on_nodes)} at {_s(begin)}"
        for node, of_node in changes.items():
            in_use = 0.0
            for time, gib in sorted(of_node):
                in_use += gib
                if in_use > (self.memory_of[node] or inf) + 1e-9:
                    yield f"memory: {in_use} GiB on node {node} at {_s(time)} of {self.memory_of[node]}"

    def memory(self) -> Iterator[str]:
        """Yield nodes whose tasks, running or suspended there, need more memory than they have."""
        if self.shared or not any(self.memory_of):
            return
        stays: dict[int, set[tuple[int, int, int]]] = defaultdict(set)  # of a node: begin, end, job
        for place in self.places:
            for node in place.processors:
                stays[node].add((place.begin, place.end, place.job))
        for job, phases in self.phases.items():
            for one, later in zip(phases, [*phases[1:], None], strict=True):
                if one.outcome != "suspended" or not one.executed:
                    continue
                last = [place for place in self.of_job[job] if one.start <= place.begin < place.end == one.end]
                nodes = {node for place in last for node in place.processors}
                failed = [time for node, time, _ in self.outages if node in nodes and time >= one.end]
                told = [time for time in self.discarded.get(job, ()) if time >= one.end]
                until = min([self.result.ledger.end if later is None else later.start, *failed, *told])
                for node in nodes:
                    stays[node].add((one.end, until, job))
        for node, of_node in stays.items():
            for now in sorted({begin for begin, _, _ in of_node}):
                there = {job for begin, end, job in of_node if begin <= now < end}
                need = sum(self.jobs[job].memory_gib or 0 for job in there)
                if need > (self.memory_of[node] or inf) + 1e-9:
                    yield f"memory: jobs {sorted(there)} need {need} GiB on node {node} at {_s(now)} of {self.memory_of[node]}"

    def windows(self) -> Iterator[str]:
        """Yield jobs on nodes that are reserved for others, or would be before they can be expected to leave them."""
        if not self.windows_of:
            return
        places = sorted(self.places, key=lambda place: place.begin)
        for place in places:
            expected = place.begin + self._expected(place)
            until = max(expected, place.end if self.machine.kill_at_estimate and not self.in_time else 0)
            own = self._had_before(place, places)
            for window in self._barred(place.job):
                if not (on_nodes := window.processors.intersection(place.processors) - own):
                    continue
                if any(place.begin < end and begin < until for begin, end in window.turns(until)):
                    if self._shrunk_by_failure(place):
                        continue
                    what = f"from {_s(place.begin)}, to {_s(place.end)}, perhaps {_s(expected)}"
                    yield f"windows: job {place.job} on {sorted(on_nodes)} {what}: {window.reservation or window}"
                    break

    def _shrunk_by_failure(self, place: Placed) -> bool:
        """Return whether a gang goes on on what a failure has left of it, for longer than it was expected to."""
        times = {time for _, time, _ in self.outages}
        return self.machine.on_failure == "shrink" and any(
            one.outcome == "resized" and one.end in times and one.end <= place.begin for one in self.phases[place.job]
        )

    def _had_before(self, place: Placed, places: Sequence[Placed]) -> set[int]:
        """Return the processors that a gang had already when it got others, or other rows."""
        if any(attempt[0].start == place.begin for attempt in self.attempts[place.job]):
            return set()
        if not self.in_time:
            return set()
        before = (each for each in places if each.job == place.job and each.begin < place.begin <= each.end)
        return {node for each in before for node in each.processors}

    def _expected(self, place: Placed) -> int:
        """Return for how long a gang that gets nodes can be expected to keep them, at the earliest if it is moved."""
        job, begin = place.job, place.begin
        if self.jobs[job].malleable or getattr(self.policy, "width", "asked") != "asked":
            return 1
        since = max(attempt[0].start for attempt in self.attempts[job] if attempt[0].start <= begin)
        kept = sum(one.executed - one.lost for one in self.phases[job] if one.start < since)
        if any(one.nodes != self.size[job] for one in self.phases[job]):
            return 1
        left = min(self._limits_of(job)) - kept - (begin - since)
        if not self.in_time or begin != since:
            return max(left, 1)
        quantum = self.machine.time_slicing.quantum
        return max(left, 1) * self._rows * quantum // (quantum - self.machine.switch_ticks)

    # Rules of the site

    def _left(self, number: int, unknown: float) -> float:
        """Return when a job has left the system, if it is one of the workload."""
        if number in self.end:
            return self.end[number]
        if number not in self.jobs:
            return 0
        if number in self._refused:
            return self.submit[number]
        job = self.jobs[number]
        lost = [other for other in job.after_ok if other in self.table and self.table[other]["status"] != "completed"]
        lost += [other for other in job.after_not_ok if other in self.table and self.table[other]["status"] == "completed"]
        if not lost or self.windows_of or self._is_capped_in_parts:  # perhaps rejected for these; no table says when
            return unknown
        return max(self.submit[number], min(self._left(other, unknown) for other in lost))

    def _ready(self, job: Job, unknown: float) -> float:
        """Return when a job no longer depended on others."""
        began = [self.first_start.get(other, -1) for other in job.after]
        began = [self._left(other, unknown) if time < 0 else time for other, time in zip(job.after, began, strict=True)]  # type: ignore[misc]
        ended = [self._left(other, unknown) for other in (*job.after_ok, *job.after_not_ok, *job.after_any)]
        if job.singleton:  # jobs without a user are together
            for other in self.jobs.values():
                earlier = (self.submit[other.id], other.id) < (self.submit[job.id], job.id)
                if earlier and (other.user, other.job_name) == (job.user, job.job_name):
                    ended.append(self._left(other.id, unknown))
        return max([self.submit[job.id], *began, *ended])

    def dependencies(self) -> Iterator[str]:
        """Yield jobs that leave their hold before what they depend on has happened."""
        for job in self.started:
            if self.joined[job] < (ready := self._ready(self.jobs[job], 0)):
                yield f"dependencies: job {job} depends on what happens at {_s(ready)}, and is let go at {_s(self.joined[job])}"

    def holding(self) -> Iterator[str]:
        for job in self.started:
            if self.joined[job] > self.first_start[job]:
                wait = self.first_start[job] - self.submit[job]
                yield f"holding: job {job} is held for {_s(self.held[job])} of {_s(wait)} s of waiting"

    def _qos_of(self, job: Job) -> list[str]:
        """Return the QOS whose limits hold for a job, the one first whose limits override the other's."""
        default = next((each.name for each in self.machine.partitions if each.default), "")
        named = [name.strip() for name in (job.partition or default).split(",")]
        of_partitions = {next((each.name for each in self.qos if name in each.partitions), None) for name in named}
        order = [of_partitions.pop() if len(of_partitions) == 1 else None, job.qos]
        if any(each.name == job.qos and each.over_partition_qos for each in self.qos):
            order.reverse()
        return [name for name in order if name is not None]

    def _of_limit(self, limit: Limits, job: Job) -> tuple[object, ...] | None:
        """Return with whom a limit counts a job; ``None``: it does not."""
        key = []
        for name in SUBJECTS:
            if wanted := limit.names(name):
                value = getattr(job, name, None)
                if name == "qos" and wanted != ("*",):
                    value = next((each for each in self._qos_of(job) if each in wanted), None)
                if value in (None, -1) or (wanted != ("*",) and str(value) not in wanted):
                    return None
                key.append(str(value) if wanted == ("*",) else "")
        return tuple(key)

    def _holds(self, limit: Limits, job: Job, name: str) -> bool:
        """Return whether an amount of a limit that counts a job holds for it, or that of another QOS does."""
        assert self.site is not None
        counting = [other for other in self.site.limits if self._of_limit(other, job) is not None]
        of_qos = [other for other in counting if other.qos is not None and getattr(other, name, None) is not None]
        if (yields := limit.yields_to_qos) is not None:
            single = name in ("wall_time_s", "job_nodes", "job_processors")
            if yields in {
                "max" if single or other.user is not None or other.account is not None else "grp" for other in of_qos
            }:
                return False
        if limit.qos is None:
            return True
        order = self._qos_of(job)

        def place(other: Limits) -> int:
            wanted = other.names("qos")
            return order.index(str(job.qos)) if wanted == ("*",) else min(order.index(each) for each in order if each in wanted)

        same = [subject for subject in SUBJECTS if subject != "qos"]
        alike = [other for other in of_qos if all(getattr(other, each) == getattr(limit, each) for each in same)]
        return place(limit) == min(map(place, alike))

    def _most(self, limit: Limits, job: Job, name: str) -> float:
        """Return the amount of a limit that holds for a job, times in ticks."""
        most = getattr(limit, name, None)
        if most is None or not self._holds(limit, job, name):
            return inf
        return to_ticks(most * 3600) if name.endswith("_hours") else to_ticks(most) if name.endswith("_s") else most

    def _fewest(self, job: Job) -> int:
        """Return the least number of nodes on which a job fits."""
        if not self.shared:
            return self.size[job.id]
        for nodes in range(1, (job.max_nodes_used or self.machine.nodes) + 1):
            if any(self._fits(replace(job, max_nodes_used=nodes), option.processors) for option in self.options[job.id]):
                return nodes
        return 0

    def _left_of(self, job: int, now: int) -> tuple[int, int]:
        """Return the least and the largest time for which a job that has been let go may still be expected to run."""
        estimate, starts = self.estimate[job], [one.start for one in self.phases[job] if one.start <= now]
        if not starts:
            return estimate, estimate
        first = self.phases[job][0]  # stopped, or resized: how much of it is left no table says
        if len(starts) > 1 or first.end <= now or self.machine.node_speeds is not None or self.size[job] != first.nodes:
            return 0, estimate
        left = max(estimate - (now - starts[0]), 0)
        spends = self.in_time or self.machine.boot or self.machine.checkpointing.interval_s is not None
        spends = spends or any(self._cost(name, job, self.size[job]) for name in ("startup", "epilog"))
        return left, estimate if spends else left

    def _allows(self, limit: Limits, jobs: Collection[int], now: int, new: int | None) -> bool:
        """Return whether a limit allows a job beside others that have been let go; without a ``new`` one, whether these.

        The remaining times of jobs may not be known exactly: then it allows them, but not necessarily one more.
        """
        every = [*jobs, *(() if new is None else (new,))]
        asked = every if new is None else [new]
        most = {name: max((self._most(limit, self.jobs[job], name) for job in asked), default=inf) for name in AMOUNTS}
        size = sum(self.size[job] for job in every)
        hours = sum(self.size[job] * self._left_of(job, now)[new is not None] for job in every)
        if self.shared:
            in_use = {self.node_of[each] for job in jobs for each in self._at(job, now)}
            if (new is not None and min(most["nodes"], most["node_hours"]) < inf) or len(in_use) > most["nodes"]:
                return False  # which nodes jobs that wait may have no table says
        elif size > most["nodes"] or hours > most["node_hours"]:
            return False
        return (
            len(every) <= min(most["running_jobs"], most["submitted_jobs"])
            and size <= most["processors"]
            and hours <= most["processor_hours"]
        )

    def _counters(self) -> Iterator[tuple[str, set[int], Callable[[Collection[int], int, int | None], bool]]]:
        """Yield each limit's name, whose jobs it counts together, and whether it allows some of them."""
        for limit in () if self.site is None else self.site.limits:
            together: dict[tuple[object, ...], set[int]] = defaultdict(set)
            for job in self.started:
                if (key := self._of_limit(limit, self.jobs[job])) is not None:
                    together[key].add(job)
            for key, jobs in together.items():
                yield f"{limit.of_whom} {key}", jobs, partial(self._allows, limit)
        if self.site is not None and self.site.array_limits:
            for array, most in set(self.arrays.values()):
                tasks = {job for job in self.started if self.arrays.get(job, (None,))[0] == array}

                def few(jobs: Collection[int], _now: int, new: int | None, most: int = most) -> bool:
                    return len(jobs) + (new is not None) <= most

                yield f"array {array}", tasks, few

    def limits(self) -> Iterator[str]:
        """Yield limits that are exceeded between two instants, and jobs that none of them holds there."""
        counters = list(self._counters())
        # A job is let go once there is room: just before, there was none.
        instants = [*self.instants, *(self.joined[job] - 2 for job in self.started if self.held[job] > 0)]
        let_go: dict[tuple[int, int], set[int]] = {}
        for number, (name, of_limit, allows) in enumerate(counters):
            for time in instants:
                jobs = let_go[number, time] = {job for job in of_limit if self.joined[job] <= time < self.end[job]}
                if not allows(jobs, time, None):
                    yield f"limits: {name}: jobs {sorted(jobs)} at {_s(time)}"
        if self.site is not None and any(limit.submitted_jobs is not None for limit in self.site.limits):
            return  # which of these jobs are in the system no table says
        if any(row["status"] == "rejected" and not self._never(self.jobs[job]) for job, row in self.table.items()):
            return  # until when these counted no table says
        for job in self.started:
            ready = self._ready(self.jobs[job], inf)
            for time in instants:
                if ready <= time < self.joined[job] - 1 and all(
                    job not in of_limit or allows(let_go[number, time], time, job)
                    for number, (_, of_limit, allows) in enumerate(counters)
                ):
                    yield f"holding: job {job} is held at {_s(time)} by nothing"

    # The queue

    def _order_of(self, job: int) -> tuple[int, int, int, int]:
        priority = self.jobs[job].priority + max((option.priority for option in self.options[job]), default=0)
        return -priority, self.joined[job], self.submit[job], job

    @cached_property
    def _keeps_order(self) -> bool:
        ordered = self.site is not None and self.site.order is not None
        several = any(len(options) > 1 for options in self.options.values())
        return not ordered and not several and self.machine.failures is None

    def _first_processors(self, job: int) -> frozenset[int]:
        return frozenset().union(*(option.processors for option in self.options[job]))

    def first_come(self) -> Iterator[str]:
        """Yield jobs that start before others that came first and may have some of the same nodes."""
        if self.policy.name != "fcfs" or not self._keeps_order:
            return
        one_by_one = self.result.scenario.events == "one-by-one"  # what else happens at an instant is told later
        for first in self.started:
            since = self.joined[first] + (one_by_one or self.held[first] > 0)  # perhaps it is released by the start
            for later in self.started:
                start = self.first_start[later]
                if (
                    self._order_of(first) < self._order_of(later)
                    and since <= start < self.first_start[first]
                    and self._first_processors(first) & self._first_processors(later)
                ):
                    yield f"first come: job {later} starts at {_s(start)}, before job {first}"

    def conserving(self) -> Iterator[str]:
        """Yield when the first job of the queue waits although it fits, or the machine is idle although a job would fit."""
        if self.shared or any(self.memory_of) or self.machine.round or self._is_capped_in_parts or not self._keeps_order:
            return
        if getattr(self.policy, "round_s", None) or self.in_time:
            return
        heads = self.policy.name in IN_QUEUE_ORDER and not any(len(attempts) > 1 for attempts in self.attempts.values())
        if not heads or getattr(self.policy, "order", "order") not in ("order",):
            return
        if getattr(self.policy, "queue_order", "arrival") != "arrival":
            return
        if self.policy.name == "easy" and len({self._first_processors(job) for job in self.started}) > 1:
            return  # there are several reservations, which move in queue order, once
        for now, later in pairwise(self.instants):
            waiting = [job for job in self.started if self.joined[job] <= now < self.first_start[job]]
            if not waiting or later == now:
                continue
            head = min(waiting, key=self._order_of)
            busy = {each for place in self.places if place.begin <= now < place.end for each in place.processors}
            if len(busy) + self.size[head] > self._may_use:
                continue
            stay, windows = self._longest_stay(head), self._barred(head)
            if windows and stay is None:
                continue
            barred = {
                each
                for window in windows
                if any(now < end for _, end in window.turns(now + (stay or 0)))
                for each in window.processors
            }
            if any(len(option.processors - busy - barred) >= self.size[head] for option in self.options[head]):
                yield f"conserving: job {head}, the first of the queue, fits at {_s(now)}, and waits"

    @cached_property
    def _as_planned(self) -> bool:
        """Whether jobs take as long as they say, at most, and keep their nodes."""
        own_intervals = any(job.checkpoint_interval_s is not None for job in self.jobs.values())
        machine = self.machine
        checkpoints = machine.checkpointing.interval_s is not None or own_intervals
        return machine.failures is None and machine.kill_at_estimate and not checkpoints

    def bounds(self) -> Iterator[str]:
        """Yield jobs that slack-based backfilling starts after their bounds; each job that waits has one."""
        if self.policy.name != "slack" or not self._as_planned:
            return
        for job in self.started:
            bound = self.table[job]["reserved"]
            if self.first_start[job] > (self.joined[job] if bound < 0 else bound):
                yield f"guarantees: job {job} starts at {_s(self.first_start[job])}; its bound is {_s(bound)}"

    def guarantees(self) -> Iterator[str]:
        """Yield reservations that are missing, not the earliest ones, become later, or are not kept."""
        machine, policy = self.machine, self.policy
        limits = () if self.site is None else self.site.limits
        if self.shared and any(each.nodes or each.job_nodes or each.node_hours for each in limits):
            return  # which nodes limits leave to jobs no table says
        if policy.name not in RESERVING or getattr(policy, "predictor", "estimate") != "estimate" or machine.node_speeds:
            return
        if getattr(policy, "queue_order", "arrival") != "arrival" or not self._keeps_order or not self._as_planned:
            return
        in_order = len({self._order_of(job)[0] for job in self.started}) <= 1 and not self._overtakes
        if policy.name == "conservative" or in_order:
            promised: dict[int, int] = {}
            for now, job, start in self.reserved:
                if start > promised.get(job, inf):
                    yield f"guarantees: job {job}: its reservation for {_s(promised[job])} becomes {_s(start)} at {_s(now)}"
                promised[job] = start
            for job in self.started:
                first = self.table[job]["reserved"]
                if self.first_start[job] > min(promised.get(job, inf), inf if first < 0 else first):
                    yield f"guarantees: job {job} starts at {_s(self.first_start[job])}, not at {_s(first)} as guaranteed"
        if in_order and not machine.node_types and self.result.scenario.events == "together":
            yield from self._missing()
            yield from self._earliest()

    @property
    def _overtakes(self) -> bool:
        """Return whether a job that a start releases goes before one that joined the queue earlier in that instant."""
        late = [job for job in self.started if self.jobs[job].after and self.held[job]]
        return any(
            self.joined[job] == self.joined[other] and self._order_of(job) < self._order_of(other)
            for job in late
            for other in self.started
            if other != job
        )

    def _missing(self) -> Iterator[str]:
        sets = {self._first_processors(job) for job in self.started}
        if self.policy.name == "easy" and getattr(self.policy, "backfill_order", "arrival") != "arrival":
            return
        barred = {tuple(self._barred(job)) for job in self.started}
        if len(barred) > 1:
            return
        for time in self.instants:
            waiting = sorted(
                (job for job in self.started if self.joined[job] <= time < self.first_start[job]), key=self._order_of
            )
            must = waiting
            if self.policy.name == "easy":
                of_set = [[job for job in waiting if self._first_processors(job) == nodes] for nodes in sets]
                must = [jobs[0] for jobs in of_set if jobs]
            for job in must:
                if self.table[job]["reserved"] < 0:
                    yield f"guarantees: job {job} waits at {_s(time)}, and has no reservation"

    def _stay(self, job: int) -> int:
        size = self.size[job]
        return max(self._limits_of(job)) + self._cost("startup", job, size) + self._cost("epilog", job, size)

    def _earliest(self) -> Iterator[str]:
        """Yield reservations that are not for when running jobs leave enough nodes, where no other job has one."""
        first_made: dict[int, int] = {}
        for now, job, _ in self.reserved:
            first_made.setdefault(job, now)
        if self.machine.idle_off_s is not None or self.machine.power_cap_w is not None:
            return
        memory = any(self.memory_of) and any(job.memory_gib for job in self.jobs.values())
        for now, job, start in self.reserved:
            free = dict.fromkeys(self._first_processors(job), now)
            for other in self.started:
                if self.first_start[other] <= now < self.end[other]:
                    until = self.first_start[other] + self._stay(other)
                    free |= dict.fromkeys(self.last_places[other] & free.keys(), until)
            earliest = sorted(free.values())[self.size[job] - 1]
            others = [each for each in first_made if each != job and first_made[each] <= now < self.first_start[each]]
            if start < earliest or (start > earliest and not (others or self.shared or self.windows_of or memory)):
                yield f"guarantees: job {job}: reserved for {_s(start)} at {_s(now)}; the nodes are free at {_s(earliest)}"

    # Node time, memory of the store, power

    def store(self) -> Iterator[str]:
        """Yield where more tasks are at the checkpoint store, or migrate into a row, than Q."""
        costs = self.machine.checkpointing
        limit = costs.max_tasks_per_slice if costs.store is None else costs.store.max_concurrent_tasks
        if limit is None:
            return
        if self.in_time:
            yield from self._migrations(limit)
            return
        held, accounts = self.result.records.overheads, list(Account)
        changes: list[tuple[int, int]] = []
        columns = (column.tolist() for column in (held.start, held.end, held.nodes, held.account))
        for start, end, nodes, account in zip(*columns, strict=True):
            if accounts[account] in (Account.CHECKPOINT, Account.RESTART) and end > start:
                tasks = (nodes - 1) % limit + 1 if limit else nodes  # at least: those of its last round, where it has several
                changes += [(start, tasks), (end, -tasks)]
        there = 0
        for time, change in sorted(changes):
            there += change
            if there > limit:
                yield f"store: {there} tasks at the store at {_s(time)}, and {limit} are allowed"

    def _migrations(self, limit: int) -> Iterator[str]:
        counts = self.machine.checkpointing.counts
        started = {(job, one.start) for job, phases in self.phases.items() for one in phases}
        for before, moment in pairwise(self.result.history.moments):
            was = {cell.job: cell.columns for cells in before.rows for cell in cells}
            for row, cells in enumerate(moment.rows):
                moved = {
                    cell.job: (cell.columns.bit_count(), (cell.columns & ~was[cell.job]).bit_count())
                    for cell in cells
                    if was.get(cell.job, cell.columns) != cell.columns and (cell.job, moment.ticks) not in started
                }
                tasks = sum(
                    size if counts == "gang" else min(new, limit) if counts == "spread" else new for size, new in moved.values()
                )
                if tasks > limit:
                    where = f"in row {row} at {_s(moment.ticks)}"
                    yield f"store: {tasks} tasks of {sorted(moved)} migrate {where}, and {limit} are allowed"

    def overheads(self) -> Iterator[str]:
        """Yield run attempts that are shorter than what they have to spend, and wrong accounts of start-up and epilog."""
        if self.in_time:
            return
        least = {Account.STARTUP: 0, Account.EPILOG: 0}
        most = {Account.STARTUP: 0, Account.EPILOG: 0}
        for job, attempts in self.attempts.items():
            for number, phases in enumerate(attempts):
                first, last, executed = phases[0], phases[-1], sum(one.executed for one in phases)
                startup, epilog = self._cost("startup", job, first.nodes), self._cost("epilog", job, last.nodes)
                ends = last.outcome in ("completed", "killed") and not self._fails(job, last.end)
                most[Account.STARTUP] += startup * first.nodes
                most[Account.EPILOG] += epilog * last.nodes
                ends_there = [one[-1].end for one in attempts[:number] if one[-1].outcome == "suspended"]
                if any(self._at(job, end - 1) == self._at(job, first.start) for end in ends_there):
                    startup = 0  # it is still there
                least[Account.STARTUP] += startup * first.nodes if executed else 0
                least[Account.EPILOG] += epilog * last.nodes if ends else 0
                if ends and last.end - first.start < startup + executed + epilog:
                    what = f"{_s(startup)} + {_s(executed)} + {_s(epilog)}"
                    yield f"overheads: job {job} from {_s(first.start)} to {_s(last.end)} has to spend {what}"
        if self.machine.on_failure == "requeue":
            for account, low in least.items():
                if not low <= (spent := self.spent(account)) <= most[account]:
                    yield f"overheads: {account} {spent}; the tables say {low} to {most[account]}"

    def _at(self, job: int, time: int) -> set[int]:
        """Return the processors that a job has at a time."""
        return {each for place in self.of_job[job] if place.begin <= time < place.end for each in place.processors}

    def _fails(self, job: int, time: int) -> bool:
        """Return whether a node of a job fails at a time, which ends its epilog."""
        return bool(self._at(job, time - 1) & {node for node, begin, _ in self.outages if begin == time})

    def spent(self, account: Account) -> int:
        """Return an account of the ledger."""
        return sum(self.result.ledger.amount(account))

    def ledger(self) -> Iterator[str]:
        ledger = self.result.ledger
        if not self.phases:
            return
        submitted, ended = min(self.submit[job] for job in self.started), max(self.end.values())
        lost = useful = 0
        for job, phases in self.phases.items():
            if self._is_resized(job):
                of_last = 0 if phases[-1].outcome == "aborted" else 1
                useful += of_last * sum(one.nodes * (one.executed - one.lost) for one in phases)
                lost += sum(one.nodes * (one.lost if of_last else one.executed) for one in phases)
                continue
            lost += sum(one.nodes * one.lost for one in phases[:-1])
            worked = phases[-1].nodes * self.table[job]["run"]
            if phases[-1].outcome == "aborted":
                lost += worked
            else:
                useful += worked
        spent = {account: self.spent(account) for account in Account}
        if spent[Account.USEFUL] != useful or spent[Account.LOST] != lost:
            yield f"ledger: useful {spent[Account.USEFUL]}, lost {spent[Account.LOST]}; the tables say {useful}, {lost}"
        if ledger.capacity and abs(ledger.capacity_loss - self.result.kappa_by_formula) > 1e-9:
            yield f"ledger: kappa {ledger.capacity_loss}; by the events it is {self.result.kappa_by_formula}"
        if (ledger.start, ledger.end) != (submitted, ended):
            yield f"horizon: from {_s(ledger.start)} to {_s(ledger.end)}; the tables say {_s(submitted)} to {_s(ended)}"
        if sum(spent.values()) != self.processors * (ledger.end - ledger.start) or any(ticks < 0 for ticks in spent.values()):
            yield f"ledger: {spent} from {_s(ledger.start)} to {_s(ledger.end)}"
        down = sum(max(0, min(end, ledger.end) - max(begin, ledger.start)) for _, begin, end in self.outages)
        if spent[Account.DOWN] != down:
            yield f"ledger: down {spent[Account.DOWN]}; the outages say {down}"
        yield from self._idle()

    def _idle(self) -> Iterator[str]:
        ledger = self.result.ledger
        idle = self._idle_of_slices() if self.in_time else self._idle_of_attempts(ledger.start, ledger.end)
        unused = tuple(map(sum, zip(*(ledger.amount(account) for account in _FREE), strict=True)))
        waited = [job for job, row in self.table.items() if row["status"] == "rejected" and not self._never(self.jobs[job])]
        waited += [job for job, row in self.table.items() if row["status"] == "aborted"]  # perhaps as it waited again
        if waited:  # until when they waited no table says
            unused, idle = (sum(unused), 0), (sum(idle), 0)
        if unused != idle:
            yield f"ledger: idle {unused}; the tables say {idle}"

    def _idle_of_attempts(self, start: int, until: int) -> tuple[int, int]:
        """Return the node-ticks without a gang on nodes that are up: while no job waits, and while one does."""
        changes: list[tuple[int, int, int]] = []  # time, idle nodes, waiting jobs
        for job, phases in self.phases.items():
            since, goes_on = self.joined[job], False
            for one in phases:
                changes += [(one.start, -one.nodes, 0), (one.end, one.nodes, 0)]
                if not goes_on:
                    changes += [(since, 0, 1), (one.start, 0, -1)]
                since, goes_on = one.end, one.outcome == "resized"
        for _, begin, end in self.outages:
            if begin < until:
                changes += [(max(begin, start), -1, 0), (max(end, start), 1, 0)]
        return _integrated(changes, self.processors, start, until)

    def _idle_of_slices(self) -> tuple[int, int]:
        """Return the same, slice by slice, from the log of time slices, which begins with the first gang."""
        quantum, ledger, amounts = self.machine.time_slicing.quantum, self.result.ledger, [0, 0]
        rotations = list(self.result.slices or ())
        now = ledger.end - sum(rotation.length for rotation in rotations)
        before, events = self._idle_of_attempts(ledger.start, now), self.result.events
        ticks, kept_free = events.ticks.tolist(), events.reserved.tolist()
        for rotation in rotations:
            left, row, ran = rotation.length, 0, rotation.begun
            up = rotation.up + (kept_free[bisect_right(ticks, now) - 1] if ticks else 0)
            if not rotation.held:  # nodes may fail meanwhile without an event
                down = sum(max(0, min(end, now + left) - max(begin, now)) for _, begin, end in self.outages)
                amounts[rotation.waiting] += self.processors * left - down
            now += left
            lap = quantum * len(rotation.held)
            if rotation.held and (laps := (left - lap) // lap) > 1:  # whole rotations at once
                amounts[rotation.waiting] += laps * quantum * sum(up - held for held in rotation.held)
                left -= laps * lap
            while rotation.held and left > 0:
                slice_ = min(quantum - ran, left)
                amounts[rotation.waiting] += (up - rotation.held[row % len(rotation.held)]) * slice_
                left, row, ran = left - slice_, row + 1, 0
        return before[0] + amounts[0], before[1] + amounts[1]

    def _used(self) -> dict[int, list[tuple[int, int, bool]]]:
        """Return of each processor from when to when a gang has it (true), or it is down."""
        used: dict[int, list[tuple[int, int, bool]]] = defaultdict(list)
        for place in self.places:
            for node in place.processors:
                used[node].append((place.begin, place.end, True))
        for node, begin, end in self.outages:
            used[node].append((begin, end, False))
        return used

    def kept_free(self) -> Iterator[str]:
        """Yield the account of nodes that are kept free, if it is not the time without a gang on nodes that are up."""
        ledger, used, free = self.result.ledger, self._used(), 0
        for processor in range(self.processors):
            kept = [
                (max(begin, ledger.start), min(end, ledger.end))
                for window in self.windows_of
                if window.reservation is not None and processor in window.processors
                for begin, end in window.turns(ledger.end)
            ]
            cuts = sorted(
                {time for begin, end in kept for time in (begin, end)} | {t for b, e, _ in used[processor] for t in (b, e)}
            )
            for begin, end in pairwise(cuts):
                is_kept = any(low <= begin < high for low, high in kept)
                if is_kept and not any(low <= begin < high for low, high, _ in used[processor]):
                    free += end - begin
        reserved = self.spent(Account.RESERVED)
        if reserved > free or (reserved < free and self.machine.idle_off_s is None):
            yield f"reserved: {reserved} node-ticks in the ledger; the tables say {free}"

    def cap(self) -> Iterator[str]:
        """Yield when all nodes together may draw more than the cap allows, whatever the gangs do."""
        cap, jobs = self.machine.power_cap, self.result.jobs
        if cap is None:
            return
        if (
            self.machine.failures is None
            and (longer := jobs[jobs["power_cap_wait_s"] > jobs["wait_s"].fillna(0) + 1e-9])["job"].any()
        ):
            yield f"cap: jobs {longer['job'].tolist()} wait for it for longer than they wait"
        draws = {}
        for power, sets in self.machine.powers.items():
            off, boots = (power.off, power.booting) if self.machine.idle_off_s is not None else (0, 0)
            idle = max(power.idle, off)
            for node in (node for bounds in sets for node in _members(bounds)):
                draws[node] = (idle, max(power.busy, power.switching, idle, boots), power.down)
        used = self._used()
        for now in sorted({time for of_node in used.values() for begin, _, _ in of_node for time in (begin,)}):
            watts = 0
            for node, (idle, busy, down) in draws.items():
                there = [by_gang for begin, end, by_gang in used[node] if begin <= now < end]
                watts += busy if any(there) else down if there else idle
            if watts > cap and now < self.result.ledger.end:
                yield f"cap: {watts / 1e6:g} W at {_s(now)}, and {cap / 1e6:g} are allowed"

    def off(self) -> Iterator[str]:
        """Yield the accounts of nodes that are off and that boot, if they are not what gangs and failures say, node by node."""
        after, boot, ledger = self.machine.idle_off, self.machine.boot, self.result.ledger
        suspends = any(one.outcome == "suspended" for phases in self.phases.values() for one in phases)
        if after is None or not self.phases or suspends:
            return
        used, off, booting = self._used(), 0, 0
        for node in range(self.processors):
            goes_off = after  # when the node is off, unless something happens before
            for since, until, by_gang in [*sorted(used[node]), (max(ledger.end, 0), 0, False)]:
                if is_off := goes_off <= since:
                    off += max(min(since, ledger.end) - max(goes_off, ledger.start), 0)
                boots = is_off and by_gang and boot > 0
                booting += min(boot, until - since) if boots else 0
                goes_off = until if boots and until < since + boot else until + after
        found = self.spent(Account.OFF), self.spent(Account.BOOT)
        if found != (off, booting):
            yield f"off: {found} node-ticks off and booting; the tables say {off}, {booting}"

    def energy(self) -> Iterator[str]:
        """Yield sums of energy that do not follow from the power of the nodes and the ledger."""
        result, powers = self.result, self.machine.powers
        if not powers or not self.phases:
            return
        of_accounts = result.energy["energy_j"]
        total = float(of_accounts.sum())
        if len(powers) == 1:
            (power,) = powers
            watts = dict.fromkeys(Account, power.switching) | {
                Account.USEFUL: power.busy, Account.LOST: power.busy, Account.IDLE: power.idle, Account.RESERVED: power.idle,
                Account.DOWN: power.down, Account.OFF: power.off, Account.BOOT: power.booting,
            }  # fmt: skip
            for account in Account:
                due = watts[account] * self.spent(account) / 1e12
                if abs(float(of_accounts[str(account)]) - due) > 1e-9 * max(1.0, due):
                    yield f"energy: {account} {of_accounts[str(account)]} J; by the ledger it is {due}"
        if abs(sum(result.power_draw.picojoules) / 1e12 - total) > 1e-9 * max(1.0, total):
            yield f"energy: {sum(result.power_draw.picojoules) / 1e12} J over time, {total} by account"
        if not self.in_time:
            free = float(sum(of_accounts[str(account)] for account in (*_FREE, Account.DOWN)))
            of_jobs = float(result.jobs["energy_kwh"].sum()) * 3.6e6
            if abs(of_jobs + free - total) > 1e-6 * max(1.0, total):
                yield f"energy: {of_jobs} J of jobs and {free} of free nodes; by account it is {total}"


def _together(phases: Sequence[Attempt]) -> Iterator[list[Attempt]]:
    """Yield the parts of each run attempt, which differ in size."""
    attempt: list[Attempt] = []
    for one in phases:
        attempt.append(one)
        if one.outcome != "resized":
            yield attempt
            attempt = []
    if attempt:
        yield attempt


def _members(bounds: Sequence[int]) -> Iterator[int]:
    for low, high in zip(bounds[::2], bounds[1::2], strict=True):
        yield from range(low, high)


def _integrated(changes: list[tuple[int, int, int]], nodes: int, start: int, end: int) -> tuple[int, int]:
    amounts, idle, waiting, since = [0, 0], nodes, 0, start
    by_time: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for time, free, more in changes:
        by_time[time][0] += free
        by_time[time][1] += more
    for time in sorted(by_time):
        amounts[waiting > 0] += idle * max(0, min(time, end) - max(since, start))
        since, idle, waiting = time, idle + by_time[time][0], waiting + by_time[time][1]
    amounts[waiting > 0] += idle * max(0, end - max(since, start))
    return amounts[0], amounts[1]
