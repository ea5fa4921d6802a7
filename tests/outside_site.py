"""What must hold in every run under the rules of a site, worked out from the tables of its result and what was asked for.

Nothing here looks into the simulator: :func:`differences_of_site` reads ``Result.jobs``, ``run_attempts`` and ``placements``,
the machine, the site and the jobs.  Reservations that a policy has made are what it told (:class:`Noting`).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import inf, isnan
from operator import itemgetter
from typing import Any, Final, NamedTuple

from clustermodel import Job, Limits, NodeType, Partition, Reservation, Result, make_policy
from clustermodel.job import JobRow
from clustermodel.policies.interface import Decision, Policy, Reserve, Setup, decide_of
from clustermodel.policies.view import Batch, View
from clustermodel.recording.ledger import Account
from tests.outside import differences

SUBJECTS: Final = ("user", "group", "account", "partition", "qos")
AMOUNTS: Final = ("running_jobs", "submitted_jobs", "nodes", "processors", "node_hours", "processor_hours")
RESERVING: Final = ("easy", "conservative", "bf")
Arrays = Mapping[int, tuple[int, int]]
"""By job, its array, and how many tasks of that may run."""


class Reserved(NamedTuple):
    """A reservation, seconds."""

    now: float
    job: int
    start: float


class Noting:
    """A policy whose reservations are noted."""

    def __init__(self, policy: str) -> None:
        self._policy: Policy = make_policy(policy)
        self.name = self._policy.name
        self.reserved: list[Reserved] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def start(self, setup: Setup) -> object:
        self.reserved.clear()
        self._decide = decide_of(self._policy, setup)
        return self

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        decisions = list(self._decide(batch, view))
        self.reserved += [
            Reserved(view.now / 1e6, each.job.id, each.start / 1e6) for each in decisions if isinstance(each, Reserve)
        ]
        return decisions


def differences_of_site(
    result: Result, jobs: Sequence[Job], arrays: Arrays | None = None, reserved: Sequence[Reserved] = ()
) -> list[str]:
    """Return in words what does not hold in a run; nothing if all does."""
    run = _Run(result, jobs, arrays or {}, reserved)
    found = [*run.rejections(), *run.dependencies(), *run.holding(), *run.limits(), *run.nodes()]
    found += [*run.shapes(), *run.windows(), *run.kept_free(), *run.first_come(), *run.reservations()]
    return found + differences(result, run.rows(), refused=run.rejected)


class _Run:
    """The tables of a run, times in seconds."""

    def __init__(self, result: Result, jobs: Sequence[Job], arrays: Arrays, reserved: Sequence[Reserved]) -> None:
        self.result, self.machine, self.site = result, result.machine, result.scenario.site
        self.jobs, self.arrays, self.reserved = {job.id: job for job in jobs}, arrays, reserved
        self.per_node = max(self.machine.gpus_per_node, self.machine.processors_per_node)
        self.speeds, self.node_of = [1.0] * self.machine.nodes, list[int]()
        sizes = [self.per_node] * self.machine.nodes
        self.memory: list[float | None] = [self.machine.node_memory_gib] * self.machine.nodes
        self.types: list[NodeType | None] = [None] * self.machine.nodes
        for each in self.machine.node_types:
            for node in _listed(str(each.nodes)):
                self.types[node], self.speeds[node] = each, each.speed
                sizes[node] = each.processors_per_node or self.per_node
                self.memory[node] = each.memory_gib or self.memory[node]
        for node, size in enumerate(sizes):
            self.node_of += [node] * size
        self.shared = max(sizes) > 1
        self.table = result.jobs.set_index("job").to_dict("index")
        self.first_start = result.run_attempts.groupby("job")["start_s"].min().to_dict()
        self.attempts: dict[int, dict[float, tuple[float, float]]] = defaultdict(dict)  # work and lost work by start
        for job, *attempt in result.run_attempts[["job", "start_s", "executed_s", "lost_s"]].itertuples(index=False):
            self.attempts[job][attempt[0]] = attempt[1], attempt[2]
        self.end = {job: row["end_s"] for job, row in self.table.items()}
        self.joined = {job: row["submit_s"] + row.get("held_s", 0.0) for job, row in self.table.items()}
        self.started = [job for job in self.jobs if job in self.first_start]
        self.sets = {job.id: self._sets(job) for job in jobs}
        self.priority = {job.id: self._of_partitions(job) for job in jobs}
        self.size = {job.id: self._size(job) for job in jobs}
        self.rejected = self._rejected()
        self._all_places = list(self._places("begin_s", "end_s", "first_node", "nodes"))
        self.placed: dict[int, set[int]] = defaultdict(set)  # processors of the last attempt
        for job, begin, first, nodes in self._places("begin_s", "first_node", "nodes"):
            if result.slices is not None or begin >= self.table[job]["start_s"]:
                self.placed[job] |= set(range(first, first + nodes))
        self.instants = sorted({*self.joined.values(), *self.end.values(), *(job.submit_s for job in jobs)} - {inf})
        self.instants = [time for time in self.instants if not isnan(time)]

    def _places(self, *columns: str) -> Iterator[tuple[Any, ...]]:
        """Yield which job had which processors, and other columns."""
        if len(self.first_start):
            yield from self.result.placements[["job", *columns]].itertuples(index=False, name=None)

    def _partitions(self, job: Job) -> list[Partition] | None:
        """Return the partitions that a job may run in, in the order in which they are tried; ``None``: all nodes."""
        named = job.partition or next((each.name for each in self.machine.partitions if each.default), None)
        if not self.machine.partitions or named is None:
            return None
        qos = [each for each in (() if self.site is None else self.site.qos) if each.name == job.qos]
        lifts_time, lifts_nodes = (any(getattr(each, f"lifts_partition_{name}") for each in qos) for name in ("time", "nodes"))
        by_name = {each.name: each for each in self.machine.partitions}
        chosen = [
            each
            for each in map(by_name.get, named.split(","))
            if each is not None
            and (each.max_wall_time_s is None or lifts_time or (job.estimate_s or job.run_s) <= each.max_wall_time_s)
            and (each.max_nodes is None or lifts_nodes or job.nodes <= each.max_nodes)
            and len(self._processors(_listed(str(each.nodes)))) >= job.nodes
        ]
        return sorted(chosen, key=lambda each: -each.priority)

    def _of_partitions(self, job: Job) -> int:
        """Return what is added to the priority of a job."""
        return max([each.priority for each in self._partitions(job) or ()], default=0)

    def _processors(self, nodes: Collection[int]) -> frozenset[int]:
        return frozenset(processor for processor, node in enumerate(self.node_of) if node in nodes)

    def _sets(self, job: Job) -> tuple[frozenset[int], ...]:
        """Return the sets of processors of which a job has those of one: of each partition, if others do not have them all."""
        partitions = self._partitions(job)
        whole = set(range(self.machine.nodes))
        of_partitions = [whole] if partitions is None else [_listed(str(each.nodes)) for each in partitions]
        sets = [self._processors(self._suitable(job, nodes)) for nodes in of_partitions]
        sets = list(dict.fromkeys(each for each in sets if len(each) >= job.nodes))
        return tuple(each for each in sets if not any(each < other for other in sets))

    def _suitable(self, job: Job, nodes: set[int]) -> set[int]:
        """Return which nodes a job may have by types, features and memory."""
        for node in list(nodes):
            kind, memory = self.types[node], self.memory[node]
            has = () if kind is None else kind.features
            wanted = [] if job.features is None else [either.split("&") for either in job.features.split("|")]
            if (
                (job.node_type is not None and (kind is None or kind.name not in job.node_type.split(",")))
                or (wanted and not any(set(each) <= set(has) for each in wanted))
                or (memory is not None and (job.memory_gib or 0) > memory)
            ):
                nodes.remove(node)
        return nodes

    def _size(self, job: Job) -> int:
        """Return how many processors a job has, with all those of its nodes, which are alike, if it asks for them."""
        if not job.whole_nodes or not self.sets[job.id]:
            return job.nodes
        all_of_a_node = max(Counter(self.node_of[processor] for processor in self._nodes_of(job.id)).values())
        return -(-job.nodes // (job.processors_per_node or all_of_a_node)) * all_of_a_node

    def _fits(self, job: Job, allowed: frozenset[int]) -> bool:
        """Return whether a job fits on the empty machine."""
        rooms = []
        for node, processors in Counter(self.node_of[processor] for processor in allowed).items():
            memory = self.memory[node]
            rooms.append(min(processors, int(memory / job.memory_gib)) if memory and job.memory_gib else processors)
        each = max(Counter(self.node_of[processor] for processor in allowed).values(), default=0)
        each = each if job.whole_nodes else job.processors_per_node or 0
        rooms = [each for room in rooms if room >= each] if each else sorted(rooms, reverse=True)
        return 0 < self.size[job.id] <= sum(rooms[: job.max_nodes_used])

    def _estimate(self, job: int) -> float:
        """Return the wall-time limit of a job on the slowest nodes that it may have."""
        return (self.jobs[job].estimate_s or self.jobs[job].run_s) / self._speed(self._nodes_of(job))

    def _speed(self, processors: Collection[int]) -> float:
        return min((self.speeds[self.node_of[processor]] for processor in processors), default=1.0)

    def rows(self) -> list[JobRow]:
        """Return the jobs as they were on the nodes that they had."""
        rows = []
        for job in self.jobs.values():
            row, slowest = job.row()._replace(nodes=self.size[job.id]), self._speed(self._nodes_of(job.id))
            run, estimate = round(row.run / self._speed(self.placed[job.id])), round(row.estimate / slowest)
            rows.append(row._replace(run=max(1, run), estimate=max(1, estimate)))
        return rows

    def _qos(self, job: Job) -> list[str]:
        """Return the QOS whose limits hold for a job, the one first whose limits override the other's."""
        default = next((each.name for each in self.machine.partitions if each.default), "")
        named = [name.strip() for name in (job.partition or default).split(",")]
        qos = () if self.site is None else self.site.qos
        of_partitions = {next((each.name for each in qos if name in each.partitions), None) for name in named}
        order = [of_partitions.pop() if len(of_partitions) == 1 else None, job.qos]
        if any(each.name == job.qos and each.over_partition_qos for each in qos):
            order.reverse()
        return [name for name in order if name is not None]

    def _of_limit(self, limit: Limits, job: Job) -> tuple[object, ...] | None:
        """Return with whom a limit counts a job; ``None``: it does not."""
        key = []
        for name in SUBJECTS:
            wanted, value = getattr(limit, name), getattr(job, name)
            if wanted is not None:
                if name == "qos" and wanted != "*":
                    value = next((each for each in self._qos(job) if each == wanted), None)
                if value in (None, -1) or wanted not in ("*", str(value)):
                    return None
                key.append(value)
        return tuple(key)

    def _holds(self, limit: Limits, job: Job, field: str) -> bool:
        """Return whether an amount of a limit that counts a job holds for it, or that of another QOS does."""
        assert self.site is not None
        counting = [other for other in self.site.limits if self._of_limit(other, job) is not None]
        of_qos = [other for other in counting if other.qos is not None and getattr(other, field) is not None]
        if limit.yields_to_qos is not None:
            single = field in ("wall_time_s", "job_nodes", "job_processors")
            kinds = {"max" if single or other.user is not None or other.account is not None else "grp" for other in of_qos}
            if limit.yields_to_qos in kinds:
                return False
        if limit.qos is None:
            return True
        order = self._qos(job)

        def place(other: Limits) -> int:
            return order.index(str(job.qos) if other.qos == "*" else str(other.qos))

        same = ("user", "group", "account", "partition")
        alike = [other for other in of_qos if all(getattr(other, name) == getattr(limit, name) for name in same)]
        return place(limit) == min(map(place, alike))

    def _most(self, limit: Limits, job: Job, field: str) -> float:
        """Return the amount of a limit that holds for a job."""
        most = getattr(limit, field)
        return inf if most is None or not self._holds(limit, job, field) else float(most)

    def _fewest(self, job: Job) -> int:
        """Return the least number of nodes on which a job fits."""
        allowed = self.allowed[job.id]
        if not self.shared or allowed is None:
            return self.size[job.id]
        several = range(1, self.machine.nodes + 1)
        return next((k for k in several if self._fits(replace(job, max_nodes_used=k), allowed[0])), 0)

    def _rejected(self) -> set[int]:
        """Return the jobs that can never start."""
        rejected = set[int]()
        for job in self.jobs.values():
            estimate = job.estimate_s or job.run_s
            for limit in () if self.site is None else self.site.limits:
                if self._of_limit(limit, job) is None:
                    continue
                nodes, size, most = self._fewest(job), self.size[job.id], partial(self._most, limit, job)
                if (
                    nodes > min(most("nodes"), most("job_nodes"))
                    or size > min(most("processors"), most("job_processors"))
                    or estimate > most("wall_time_s")
                    or nodes * estimate > most("node_hours") * 3600 + 1e-6
                    or size * estimate > most("processor_hours") * 3600 + 1e-6
                ):
                    rejected.add(job.id)
            if not any(self._fits(job, allowed) for allowed in self.sets[job.id]):
                rejected.add(job.id)
        self.never = frozenset(rejected)  # whatever becomes of others
        known = -1  # what has become of the others decides about those that depend on them
        while known != len(rejected):
            known = len(rejected)
            for job in self.jobs.values():
                ok = {other: other not in rejected and self.table[other]["status"] == "completed" for other in self.jobs}
                if any(not ok.get(other, True) for other in job.after_ok) or any(map(ok.get, job.after_not_ok)):
                    rejected.add(job.id)
        return rejected

    def rejections(self) -> Iterator[str]:
        for job, row in self.table.items():
            if (row["status"] == "rejected") != (job in self.rejected):
                yield f"job {job} is {row['status']}; to be rejected are {sorted(self.rejected)}"

    def _ready(self, job: Job) -> float:
        """Return when a job that has started no longer depended on others."""
        began = [self.first_start.get(other, self._left(other)) for other in job.after]
        return max([job.submit_s, *began, *map(self._left, (*job.after_ok, *job.after_not_ok, *job.after_any))])

    def _left(self, number: int) -> float:
        """Return when a job has left the system, if it is one of the workload."""
        if number not in self.jobs or number not in self.rejected:
            return self.end.get(number, 0.0)
        job = self.jobs[number]
        if number in self.never:
            return job.submit_s
        lost = [other for other in job.after_ok if other in self.jobs and self.table[other]["status"] != "completed"]
        lost += [other for other in job.after_not_ok if other in self.jobs and self.table[other]["status"] == "completed"]
        return max(job.submit_s, min(map(self._left, lost), default=0.0))

    def dependencies(self) -> Iterator[str]:
        """Yield jobs that leave their hold before what they depend on has happened."""
        for job in self.started:
            if self.joined[job] < (ready := self._ready(self.jobs[job])):
                yield f"job {job} depends on what happens at {ready}, and is let go at {self.joined[job]}"

    def holding(self) -> Iterator[str]:
        for job, row in self.table.items():
            if row.get("held_s", 0.0) < 0 or (job in self.first_start and self.joined[job] > self.first_start[job]):
                yield f"job {job} is held for {row['held_s']} of {row['wait_s']} s of waiting"

    def _left_of(self, job: Job, time: float) -> tuple[float, float]:
        """Return the least and the largest time for which a job that has been let go may still be expected to run."""
        estimate = job.estimate_s or job.run_s
        starts = [start for start in self.attempts[job.id] if start <= time]
        if not starts:
            return estimate, estimate
        if len(self.attempts[job.id]) > 1 or max(self.speeds) != min(self.speeds):
            return 0.0, estimate
        left = max(estimate - (time - starts[0]), 0.0)
        return left, estimate if self.result.slices is not None else left

    def _nodes_in_use(self, job: Job, time: float) -> set[int]:
        """Return the nodes on which a job runs at a time."""
        return {
            node
            for number, begin, end, first, nodes in self._all_places
            if number == job.id and begin <= time < end
            for node in self.node_of[first : first + nodes]
        }

    def _allows(self, limit: Limits, jobs: Sequence[Job], time: float, new: Job | None = None) -> bool:
        """Return whether a limit allows a job beside others that have been let go; without ``new``, whether it allows these.

        The remaining times of jobs may not be known exactly: then it allows them, but not necessarily one more.
        """
        every = [*jobs, *([] if new is None else [new])]
        most = {name: max((self._most(limit, job, name) for job in ([new] if new else every)), default=inf) for name in AMOUNTS}
        size = sum(self.size[job.id] for job in every)
        hours = sum(self.size[job.id] * self._left_of(job, time)[new is not None] for job in every) / 3600
        if self.shared:
            in_use = set().union(*(self._nodes_in_use(job, time) for job in jobs))
            if (new is not None and min(most["nodes"], most["node_hours"]) < inf) or len(in_use) > most["nodes"]:
                return False  # which nodes jobs that wait may have, no table says
        elif size > most["nodes"] or hours > most["node_hours"] + 1e-10:
            return False
        return (
            len(every) <= min(most["running_jobs"], most["submitted_jobs"])
            and size <= most["processors"]
            and hours <= most["processor_hours"] + 1e-10
        )

    def _counters(self) -> Iterator[tuple[str, list[Job], Callable[..., bool]]]:
        """Yield each limit's name, whose jobs it counts together, and whether it allows some of them."""
        for limit in () if self.site is None else self.site.limits:
            together: dict[tuple[object, ...], list[Job]] = defaultdict(list)
            for job in self.started:
                if (key := self._of_limit(limit, self.jobs[job])) is not None:
                    together[key].append(self.jobs[job])
            for key, jobs in together.items():
                yield f"{limit.of_whom} {key}", jobs, partial(self._allows, limit)
        if self.site is not None and self.site.array_limits:
            for array, most in set(self.arrays.values()):
                tasks = [self.jobs[job] for job in self.started if self.arrays.get(job, (None,))[0] == array]

                def allows(jobs: Sequence[Job], _: float, new: Job | None = None, most: int = most) -> bool:
                    return len(jobs) + (new is not None) <= most

                yield f"array {array}", tasks, allows

    def limits(self) -> Iterator[str]:
        """Yield limits that are exceeded between two instants, and jobs that none of them holds there."""
        counters = list(self._counters())
        # A job is let go once there is room: just before, there was none.
        instants = [*self.instants, *(self.joined[job] - 2e-6 for job in self.started if self.table[job].get("held_s", 0) > 0)]
        let_go = {
            (number, time): [job for job in jobs if self.joined[job.id] <= time < self.end[job.id]]
            for number, (_, jobs, _) in enumerate(counters)
            for time in instants
        }
        for (number, time), jobs in let_go.items():
            if not counters[number][2](jobs, time):
                yield f"limit of {counters[number][0]}: jobs {[job.id for job in jobs]} at {time}"
        if self.site is not None and any(limit.submitted_jobs is not None for limit in self.site.limits):
            return  # which of these jobs are in the system no table says
        for job in map(self.jobs.__getitem__, self.started):
            for time in instants:
                if self._ready(job) <= time < self.joined[job.id] - 1e-6 and all(
                    job not in jobs or allows(let_go[number, time], time, job)
                    for number, (_, jobs, allows) in enumerate(counters)
                ):
                    yield f"job {job.id} is held at {time} by nothing"

    def nodes(self) -> Iterator[str]:
        """Yield jobs on nodes that they may not have, or not together."""
        runs: dict[int, list[tuple[float, float, range]]] = defaultdict(list)
        for job, begin, end, first, nodes in self._places("begin_s", "end_s", "first_node", "nodes"):
            runs[job].append((begin, end, range(first, first + nodes)))
        for job, parts in runs.items():
            for time in {begin for begin, _, _ in parts}:
                there = {processor for begin, end, part in parts if begin <= time < end for processor in part}
                if not any(allowed.issuperset(there) for allowed in self.sets[job]):
                    sets = [sorted(allowed) for allowed in self.sets[job]]
                    yield f"job {job} on nodes {sorted(there)} at {time}: it may have {sets}"

    def windows(self) -> Iterator[str]:
        """Yield jobs on nodes that are reserved for others, or would be before they can be expected to leave them."""
        if not self.machine.reservations:
            return
        places = sorted(self._places("begin_s", "end_s", "first_node", "nodes"), key=itemgetter(1))
        for reserved in self.machine.reservations:
            nodes = set(range(self.machine.nodes)) if reserved.nodes is None else _listed(str(reserved.nodes))
            turns = [(reserved.start_s + shift, reserved.end_s + shift) for shift in self._shifts(reserved)]
            for job, begin, end, first, count in places:
                account, user = self.jobs[job].account, str(self.jobs[job].user)
                known = (not reserved.accounts or account in reserved.accounts) and (
                    not reserved.users or user in reserved.users
                )
                on_nodes = nodes & set(self.node_of[first : first + count]) - self._had_before(job, begin, places)
                if (known and (reserved.accounts or reserved.users)) or not on_nodes:
                    continue
                limit = max(self._expected_end(job, begin), end if self.machine.kill_at_estimate and not self._in_time else 0)
                if any(begin < last and start < limit - 1e-6 for start, last in turns):
                    yield f"job {job} from node {first} on from {begin}, perhaps to {limit}: {reserved}"

    @property
    def _in_time(self) -> bool:
        return self.result.slices is not None

    def _shifts(self, reserved: Reservation) -> Iterator[float]:
        """Yield by how much a reservation is later in each turn of the run."""
        turns = 1 if reserved.every_s is None else int(max(self.instants, default=0) // reserved.every_s) + 2
        yield from (turn * (reserved.every_s or 0) for turn in range(turns))

    def _had_before(self, job: int, now: float, places: Sequence[tuple[Any, ...]]) -> set[int]:
        """Return the nodes on which a gang in rows was already when it got others, or other rows."""
        if not self._in_time or now in self.attempts[job]:
            return set()
        return {
            node
            for other, begin, end, first, count in places
            if other == job and begin < now <= end
            for node in self.node_of[first : first + count]
        }

    def _expected_end(self, job: int, begin: float) -> float:
        """Return when a job that gets nodes can be expected to leave them, at the earliest if it is moved."""
        since = max(start for start in self.attempts[job] if start <= begin)
        kept = sum(executed - lost for start, (executed, lost) in self.attempts[job].items() if start < since)
        slicing = self.machine.time_slicing
        own = slicing.quantum_s - self.machine.switch_ticks / 1e6
        stretch = slicing.mpl * slicing.quantum_s / own if self._in_time and begin == since else 1
        return begin + max(self._estimate(job) - kept - (begin - since), 1e-5) * stretch

    def kept_free(self) -> Iterator[str]:
        """Yield the account of nodes that are kept free, if it is not the time without a gang on nodes that are up."""
        ledger, free = self.result.ledger, 0.0
        used: dict[int, list[tuple[float, float]]] = defaultdict(list)
        for begin, end, first, count in (place[1:] for place in self._places("begin_s", "end_s", "first_node", "nodes")):
            for node in range(first, first + count):
                used[node].append((begin, end))
        if self.machine.failures is not None:
            for time, node, repair in self.machine.failures.failures(self.machine.processors, None):
                used[node].append((time / 1e6, (time + repair) / 1e6))
        for processor, node in enumerate(self.node_of):
            kept = [
                (max(reserved.start_s + shift, ledger.start / 1e6), min(reserved.end_s + shift, ledger.end / 1e6))
                for reserved in self.machine.reservations
                if reserved.nodes is None or node in _listed(str(reserved.nodes))
                for shift in self._shifts(reserved)
            ]
            cuts = sorted({time for begin, end in (*kept, *used[processor]) for time in (begin, end)})
            for begin, end in pairwise(cuts):
                is_kept = any(low <= begin < high for low, high in kept)
                if is_kept and not any(low <= begin < high for low, high in used[processor]):
                    free += end - begin
        if abs(free - sum(ledger.amount(Account.RESERVED)) / 1e6) > 1e-5:
            yield f"reserved: {sum(ledger.amount(Account.RESERVED)) / 1e6} node-seconds in the ledger; the tables say {free}"

    def shapes(self) -> Iterator[str]:
        """Yield jobs whose processors do not lie on nodes as they asked for, and nodes of too little memory."""
        if not self.shared:
            return
        used: dict[tuple[int, float, float], Counter[int]] = defaultdict(Counter)
        for job, begin, end, first, nodes in self._places("begin_s", "end_s", "first_node", "nodes"):
            used[job, begin, end].update(self.node_of[first : first + nodes])
        sizes = Counter(self.node_of)
        for (number, begin, _), on_nodes in used.items():
            job = self.jobs[number]
            for node, processors in on_nodes.items():
                if processors != (sizes[node] if job.whole_nodes else job.processors_per_node or processors):
                    yield f"job {number} has {processors} processors of node {node} at {begin}"
            if len(on_nodes) > (job.max_nodes_used or inf):
                yield f"job {number} has {dict(on_nodes)} at {begin}"
        for time in self.instants:
            in_use = Counter[int]()
            for (number, begin, end), on_nodes in used.items():
                if begin <= time < end:
                    in_use.update({node: tasks * (self.jobs[number].memory_gib or 0) for node, tasks in on_nodes.items()})
            if any(gib > (self.memory[node] or inf) for node, gib in in_use.items()):
                yield f"memory of nodes at {time}: {dict(in_use)} of {self.memory}"

    def _order(self, job: int) -> tuple[float, float, int]:
        return (-self.jobs[job].priority - self.priority[job], self.joined[job], job)

    @property
    def _keeps_order(self) -> bool:
        ordered = self.site is not None and self.site.order is not None
        return not ordered and self.machine.failures is None

    def first_come(self) -> Iterator[str]:
        """Yield jobs that start before others that came first and may have some of the nodes of their partition."""
        if make_policy(self.result.scenario.policy).name != "fcfs" or not self._keeps_order:
            return
        for first in self.started:
            for later in self.started:
                start = self.first_start[later]
                there = [allowed for allowed in self.sets[later] if allowed >= self.placed[later]]
                if (
                    self._order(first) < self._order(later)
                    and self.joined[first] <= start < self.first_start[first]
                    and all(self._nodes_of(first) & allowed for allowed in there)
                ):
                    yield f"job {later} starts at {start}, before job {first}"

    def _nodes_of(self, job: int) -> frozenset[int]:
        return frozenset[int]().union(*self.sets[job])

    def reservations(self) -> Iterator[str]:
        """Yield reservations that are missing, not the earliest ones, become later, or are not kept."""
        policy, sets = make_policy(self.result.scenario.policy), {self.sets[job] for job in self.started}
        machine = self.machine
        if machine.failures is not None or not machine.kill_at_estimate:
            return
        if policy.name == "slack":  # each job that waits has a bound
            for job in self.started:
                bound = self.table[job]["reserved_s"]
                if self.first_start[job] > (self.joined[job] if isnan(bound) else bound):
                    yield f"job {job} starts at {self.first_start[job]}; its bound is {bound}"
        if policy.name not in RESERVING:
            return
        limits = () if self.site is None else self.site.limits
        if self.shared and any(each.nodes or each.job_nodes or each.node_hours for each in limits):
            return  # which nodes limits leave to jobs, no table says
        in_order = self._keeps_order and len({self._order(job)[0] for job in self.started}) <= 1
        if policy.name == "conservative" or in_order:
            promised: dict[int, float] = {}
            for now, job, start in self.reserved:
                if start > promised.get(job, inf):
                    yield f"job {job}: its reservation for {promised[job]} becomes {start} at {now}"
                promised[job] = start
            for job in self.started:
                reserved = self.table[job]["reserved_s"]
                if self.first_start[job] > min(promised.get(job, inf), inf if isnan(reserved) else reserved):
                    yield f"job {job} starts at {self.first_start[job]}; reserved was {promised.get(job)}, first {reserved}"
        if in_order:
            yield from self._missing(policy.name, sets)
            yield from self._earliest()

    def _missing(self, policy: str, sets: set[tuple[frozenset[int], ...]]) -> Iterator[str]:
        for time in self.instants:
            waiting = sorted((job for job in self.started if self.joined[job] <= time < self.first_start[job]), key=self._order)
            must = waiting
            if policy == "easy":
                must = [
                    next(job for job in waiting if self.sets[job] == nodes)
                    for nodes in sets & {self.sets[job] for job in waiting}
                ]
            for job in must:
                if isnan(self.table[job]["reserved_s"]):
                    yield f"job {job} waits at {time}, and has no reservation"

    def _earliest(self) -> Iterator[str]:
        """Yield reservations that are not for when running jobs leave enough nodes, where nobody else has one."""
        first_made: dict[int, float] = {}
        for now, job, _ in self.reserved:
            first_made.setdefault(job, now)
        for now, job, start in self.reserved:
            free = dict.fromkeys(self._nodes_of(job), now)
            for other in self.started:
                if self.first_start[other] <= now < self.end[other]:
                    until = self.first_start[other] + self._estimate(other)
                    free |= dict.fromkeys(self.placed[other] & free.keys(), until)
            in_sets = [sorted(free[processor] for processor in allowed) for allowed in self.sets[job]]
            earliest = min(times[self.size[job] - 1] for times in in_sets if len(times) >= self.size[job])
            others = [each for each in first_made if each != job and first_made[each] <= now < self.first_start[each]]
            if start < earliest or (start > earliest and not (others or self.shared or self.machine.reservations)):
                yield f"job {job}: reserved for {start} at {now}; the nodes are free at {earliest}"


def _listed(nodes: str) -> set[int]:
    """Return the nodes of a text as ``0-3,7``."""
    ends = [part.partition("-")[::2] for part in nodes.split(",")]
    return {node for low, high in ends for node in range(int(low), int(high or low) + 1)}
