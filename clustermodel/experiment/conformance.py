"""Conformance of policies: ``check_policy`` runs a policy on small adversarial machines and reports the rules that it breaks.

The mechanism refuses impossible decisions; the check finds them before a long run does.  It adds rules that a single run cannot
show: the schedule does not depend on the order of simultaneous events, and a guaranteed start is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from clustermodel.errors import DecisionError, counted
from clustermodel.experiment.scenario import calibrate, waits_in
from clustermodel.machine.checkpoints import Checkpointing
from clustermodel.machine.context_switch import ContextSwitch
from clustermodel.machine.machine import Machine
from clustermodel.machine.node_type import NodeType
from clustermodel.machine.partition import Partition
from clustermodel.machine.recorded_outages import Outages
from clustermodel.machine.reservation import Reservation
from clustermodel.machine.time_slicing import TimeSlicing
from clustermodel.policies.interface import (
    RANDOM_NUMBERS,
    Decision,
    Policy,
    Reserve,
    Resize,
    Setup,
    Start,
    decide_of,
    dependencies_of,
)
from clustermodel.policies.registry import make_policy
from clustermodel.policies.view import Batch, View
from clustermodel.recording.run_attempts import UNKNOWN, Status
from clustermodel.sim.simulation import Outcome, simulate
from clustermodel.text.formatting import html_table
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.validation import to_kib
from clustermodel.workload.job import Demand, JobRow, JobShape, Sizes, demands_of

_RANDOM_CASES = 60
_ONE_IN = 3  # of so many cases one has a twin with partitions
_ENOUGH_GIB = 5  # memory of a node on which each job fits alone in most cases, GiB
_CALLS_PER_JOB = 200  # calls of a policy per job, above which the policy counts as stuck
_SLICES = TimeSlicing(quantum_s=7.0, mpl=3)


class BrokenRule(NamedTuple):
    """A violation of a rule by a policy, and the case that shows it."""

    rule: str
    case: str
    detail: str

    def __str__(self) -> str:
        return f"{self.rule} [{self.case}]: {self.detail}"


class PolicyCheck(list[BrokenRule]):
    """The answer of :func:`check_policy`: the list of broken rules, which says how many machines were tried."""

    def __init__(self, broken: Iterable[BrokenRule], machines: int) -> None:
        super().__init__(broken)
        self.machines = machines

    def __repr__(self) -> str:
        found = f"{counted(len(self), 'rule')} broken" if self else "no rule broken"
        return "\n".join([f"{counted(self.machines, 'machine')}, {found}", *map(str, self)])

    def _repr_html_(self) -> str:
        """Return the answer for a notebook."""
        heading = repr(self).partition("\n")[0]
        if not self:
            return f"<div>{heading}</div>"
        return html_table(heading, [(name, [getattr(each, name) for each in self]) for name in BrokenRule._fields])


class Case(NamedTuple):
    """A small machine and its jobs."""

    name: str
    machine: Machine
    jobs: tuple[JobRow, ...]


class _StuckError(Exception):
    pass


class _Watched:
    """The policy under test, with a limit on its calls and a record of its chosen job sizes and reserved starts."""

    def __init__(self, policy: Policy, case: Case) -> None:
        self.name = policy.name
        self.policy, self.predictor = policy, getattr(policy, "predictor", "estimate")
        self._calls_left = _CALLS_PER_JOB * (len(case.jobs) + 1)
        self.chosen: dict[int, int | None] = {}  # job id -> nodes last chosen by the policy, if any
        self.guaranteed: dict[int, bool] = {}  # job id -> whether its first reserved start was guaranteed
        self.resized: set[int] = set()  # ids of jobs that the policy has resized

    def rows_on(self, machine: Machine) -> int:
        """Return how many rows the policy has; 0: none."""
        return int(getattr(self.policy, "rows_on", lambda _: 0)(machine))

    def step_on(self, machine: Machine) -> int:
        """Return at multiples of which time alone the policy decides, ticks; 0: at any."""
        return int(getattr(self.policy, "step_on", lambda _: 0)(machine))

    def start(self, setup: Setup) -> _Watched:
        self._decide = decide_of(self.policy, setup)
        return self

    def decide(self, batch: Batch, view: View) -> Sequence[Decision]:
        self._calls_left -= 1
        if self._calls_left < 0:
            raise _StuckError
        decisions = list(self._decide(batch, view))
        for decision in decisions:
            if isinstance(decision, Start):
                self.chosen[decision.job.id] = decision.nodes
            elif isinstance(decision, Resize):
                self.resized.add(decision.job.id)
            elif isinstance(decision, Reserve):
                self.guaranteed.setdefault(decision.job.id, decision.guaranteed)
        return decisions


def check_policy(policy: str | Policy, *, seed: int = 1, failures: bool = False) -> PolicyCheck:
    """Run ``policy`` on small adversarial machines and return the list of rules that it breaks, empty if it conforms.

    The rules: Every job that fits the machine starts, on all its nodes or on the number that the policy chooses, and completes.
    The policy makes no impossible decision.  The schedule does not depend on how jobs are split into streams.  If jobs are
    killed at their wall-time limits and have equal priorities, no job starts after a guaranteed first ``Reserve``, unless nodes
    fail.  A policy that resizes jobs keeps malleable ones within their sizes.  Parts of the machine, and random numbers, on
    which the policy does not declare to depend
    (:func:`~clustermodel.policies.interface.dependencies_of`) do not change its schedule.

    A policy that ``takes_partitions`` runs on machines with overlapping partitions too, one that ``takes_reservations`` where
    nodes are reserved, and one that ``takes_shapes`` where nodes have two processors and, if it takes partitions, types.  One
    that ``takes_resizes`` runs with ``failures`` also where the failure of a node shrinks a malleable job.

    The seed is that of the random cases and of the policy's random stream.  With ``failures``, nodes fail in further cases: a
    policy that counts free nodes itself must follow ``Batch.failed`` and ``Batch.repaired`` there.
    """
    made = make_policy(policy)
    checked = [*cases(seed, failures=failures)]
    if failures and getattr(made, "takes_resizes", False):
        checked += _malleable_cases(seed, fail=True)
    usual, has_types = checked, getattr(made, "takes_partitions", False)
    if has_types:
        checked = [*checked, *map(_in_partitions, usual[::_ONE_IN])]
    if getattr(made, "takes_reservations", False):
        checked = [*checked, *map(_with_reservations, usual[1::_ONE_IN])]
    if getattr(made, "takes_shapes", False):
        alike = [case for case in usual[2::_ONE_IN] if case.machine.failures is None and case.machine.node_memory_gib is None]
        checked = [*checked, *[_with_shapes(case, types=has_types) for case in alike]]
    return PolicyCheck((broken for case in checked for broken in _check(made, case, seed)), len(checked))


def _in_partitions(case: Case) -> Case:
    """Return a case with two partitions that share a node, unless there is one only; some jobs may have all nodes."""
    middle = case.machine.nodes // 2
    partitions = [Partition(name="a", nodes=range(middle + 1)), Partition(name="b", nodes=range(middle, case.machine.nodes))]
    jobs = [
        job._replace(demand=(job.demand or Demand())._replace(partition=("a", "b", "a,b")[job.id % 3])) if job.id % 4 else job
        for job in case.jobs
    ]
    machine = replace(case.machine, partitions=partitions)
    return Case(f"{case.name}, in partitions", machine, tuple(jobs))


def _with_reservations(case: Case) -> Case:
    """Return a case with a reservation of all nodes, and later one of every other node that comes again twice a minute."""
    once = Reservation(start_s=20, end_s=25)
    often = Reservation(nodes=range(0, case.machine.nodes, 2), start_s=40, end_s=43, every_s=30)
    return Case(f"{case.name}, with reservations", replace(case.machine, reservations=[once, often]), case.jobs)


def _with_shapes(case: Case, *, types: bool) -> Case:
    """Return a case on nodes of two processors, perhaps of two types, where some jobs ask for one or both of each node."""
    nodes = -(-case.machine.nodes // 2)
    machine = replace(case.machine, nodes=nodes, gpus_per_node=2, allocation=("lowest", "consolidate")[len(case.jobs) % 2])
    if types and nodes > 1:
        machine = replace(machine, node_types=[NodeType(name="a", nodes="0"), NodeType(name="b", nodes=f"1-{nodes - 1}")])
    jobs = []
    for job in case.jobs:
        demand, per_node = job.demand or Demand(), job.id % 3
        if demand.sizes is None and per_node and job.nodes % per_node == 0:
            demand = demand._replace(shape=JobShape(processors_per_node=per_node))
        if machine.node_types and job.id % 4 == 0:
            demand = demand._replace(node_type="b")
        jobs.append(job._replace(demand=None if demand == Demand() else demand))
    return Case(f"{case.name}, with shapes", machine, tuple(jobs))


def cases(seed: int, *, failures: bool) -> Iterator[Case]:
    """Yield the cases: hand-made corners, then random ones, and the same with ``failures`` of nodes."""

    def case(name: str, nodes: int, *rows: JobRow, kill: bool = True) -> Case:
        # Slices far shorter than any job make the guaranteed starts of gang schedulers precise.
        return Case(name, Machine(nodes=nodes, kill_at_estimate=kill, time_slicing=TimeSlicing(quantum_s=0.01, mpl=3)), rows)

    yield case("one job on one node", 1, row(1, 0, 1, 60, 60))
    yield case("first job long after the start", 2, row(1, 1e6, 2, 60, 60), row(2, 1e6, 1, 1, 1))
    yield case("too large, then normal", 4, row(1, 0, 5, 9, 9), row(2, 0, 4, 9, 9), row(3, 1, 99, 9, 9), row(4, 2, 1, 9, 9))
    yield case("no nodes asked for", 2, row(1, 0, 0, 9, 9), row(2, 0, -3, 9, 9), row(3, 0, 2, 9, 9))
    yield case("burst at one instant", 8, *(row(n, 5, 1 + n % 8, 10 + n, 40) for n in range(1, 17)))
    yield case("large job behind small ones", 8, *(row(n, n, 1, 20, 30) for n in range(1, 20)), row(20, 3, 8, 10, 10))
    yield case("ends and submissions together", 4, *(row(n, 10 * (n // 2), 2, 10, 10) for n in range(12)))
    yield case("every job completes early", 4, *(row(n, n, 1 + n % 4, 5, 500) for n in range(1, 15)))
    yield case("killed at the estimate", 4, *(row(n, n, 1 + n % 4, 500, 7) for n in range(1, 15)))
    yield case("runs on past the estimate", 4, *(row(n, n, 1 + n % 4, 50, 7) for n in range(1, 15)), kill=False)
    yield case("idle between jobs", 2, *(row(n, 1000 * n, 2, 10, 20) for n in range(1, 6)))
    yield case("priorities against the arrival order", 4, *(row(n, n, 3, 30, 40, n % 5) for n in range(1, 15)))
    yield case("one microsecond", 2, *(row(n, 0, 1 + n % 2, 1e-6, 1e-6) for n in range(1, 8)))
    slow: dict[str, Any] = {"checkpoint_s": 1.0, "restart_s": 9.0, "max_tasks_per_slice": 3}
    costs: dict[str, dict[str, Any]] = {
        "switches that cost half a slice": {"context_switch": ContextSwitch(fraction=0.5)},
        "switches paid for in every slice": {"context_switch": ContextSwitch(seconds=3.0, charge="every-slice")},
        "costly migration": {"checkpointing": Checkpointing(checkpoint_s=2.0, restart_s=1.0)},
        "few tasks migrate at a time": {"checkpointing": Checkpointing(**slow, counts="gang")},
        "few tasks change their nodes at a time": {"checkpointing": Checkpointing(**slow, counts="moved")},
        "gangs migrate over several slices": {"checkpointing": Checkpointing(**slow, counts="spread")},
    }
    for name, cost in costs.items():
        machine = Machine(nodes=8, time_slicing=_SLICES, **cost)
        yield Case(name, machine, tuple(row(n, 4 * n, 1 + 3 * n % 8, 5 + 7 * n % 40, 60) for n in range(1, 25)))
    of_a_node = 2 * _ENOUGH_GIB - 1
    machine = Machine(nodes=4, time_slicing=_SLICES, node_memory_gib=of_a_node)
    yield Case("little memory", machine, tuple(row(n, 4 * n, 1 + n % 4, 5 + 7 * n % 40, 60) for n in range(1, 25)))
    too_much = row(7, 3, 2, 9, 9)._replace(memory=to_kib(2 * _ENOUGH_GIB))
    just_enough = too_much._replace(id=8, memory=to_kib(of_a_node))
    yield Case("too much memory, then the whole of a node", machine, (too_much, just_enough))
    rng = np.random.default_rng(seed)
    for number in range(_RANDOM_CASES):
        nodes = int(rng.integers(1, 9))
        rows = [
            row(n, float(rng.integers(0, 60)), int(rng.integers(1, nodes + 2)), run := float(rng.integers(1, 40)),
                run + float(rng.integers(-3, 40)) if run > 3 else run)
            for n in range(1, int(rng.integers(2, 25)))
        ]  # fmt: skip
        yield case(f"random {number}", nodes, *rows, kill=bool(number % 4))
    yield from _malleable_cases(seed)
    if not failures:
        return

    def failing(name: str, nodes: int, outages: Sequence[tuple[int, float, float]], *rows: JobRow) -> Case:
        node, down_s, up_s = (np.array(column) for column in zip(*outages, strict=True))
        recorded = Outages(node=node, down_s=down_s, up_s=up_s, nodes=nodes)
        return Case(name, Machine(nodes=nodes, time_slicing=_SLICES, failures=recorded), rows)

    rng = np.random.default_rng([seed, _RANDOM_CASES])
    several = [row(n, 4 * n, 1 + 3 * n % 4, 5 + 7 * n % 40, 60) for n in range(1, 17)]
    yield failing("a node fails under a job", 4, [(1, 5, 30)], row(1, 0, 4, 20, 30), row(2, 1, 2, 9, 9), row(3, 2, 1, 50, 60))
    yield failing("nodes fail one after the other", 4, [(n % 4, 9 * n, 9 * n + 25) for n in range(12)], *several)
    yield failing("all nodes are down when jobs arrive", 2, [(0, 5, 40), (1, 5, 60)], row(1, 0, 2, 9, 9), *several[2:6])
    at_an_end = row(1, 0, 2, 10, 10), row(2, 0, 2, 10, 20), row(3, 1, 4, 10, 10), row(4, 30, 1, 9, 9)
    yield failing("a node fails when its job ends, is repaired when another does", 4, [(0, 10, 20), (3, 10, 10)], *at_an_end)
    for number in range(_RANDOM_CASES // 10):
        nodes = int(rng.integers(2, 9))
        outages = [(int(rng.integers(nodes)), begin := int(rng.integers(150)), begin + int(rng.integers(60))) for _ in range(9)]
        rows = [
            row(n, int(rng.integers(60)), int(rng.integers(1, nodes + 1)), int(rng.integers(1, 40)), 40) for n in range(1, 20)
        ]
        yield failing(f"random failures {number}", nodes, outages, *rows)


def _malleable_cases(seed: int, *, fail: bool = False) -> Iterator[Case]:
    """Yield random cases in which three jobs in four are malleable; resizes are free or cost time."""
    rng = np.random.default_rng([seed, _RANDOM_CASES, 1 + fail])
    for number in range(_RANDOM_CASES // (20 if fail else 10)):
        nodes = int(rng.integers(2, 9))
        rows = [
            row(n, int(rng.integers(60)), int(rng.integers(1, nodes + 1)), run := int(rng.integers(1, 40)), run + n % 9)
            for n in range(1, 20)
        ]
        for place, each in enumerate(rows):
            if each.id % 4:
                sizes = Sizes(int(rng.integers(1, each.nodes + 1)), int(rng.integers(each.nodes, nodes + 1)))
                rows[place] = each._replace(demand=Demand(sizes=sizes))
        costs = Checkpointing(checkpoint_s=0.5, restart_s=0.7)
        machine = Machine(nodes=nodes, resize_s=(0.0, 1.5, None)[number % 3], checkpointing=costs)
        if fail:
            begins = rng.integers(90, size=5).astype(float)
            outages = Outages(node=rng.integers(nodes, size=5), down_s=begins, up_s=begins + 20, nodes=nodes)
            machine = replace(machine, failures=outages, on_failure="shrink")
        yield Case(f"malleable {number}{', nodes fail' if fail else ''}", machine, tuple(rows))


def row(number: int, submit: float, nodes: int, run: float, estimate: float, priority: int = 0) -> JobRow:
    """Return a job; times in seconds."""
    memory = to_kib(1 + number % _ENOUGH_GIB)
    submitted, running, estimated = (round(time * TICKS_PER_SECOND) for time in (submit, run, estimate))
    return JobRow(submitted, number, nodes, running, estimated, number % 3, -1, priority, -1, memory)


def _check(policy: Policy, case: Case, seed: int) -> list[BrokenRule]:
    jobs, machine = sorted(case.jobs), case.machine
    run = _run(policy, case, machine, [jobs], seed)
    if isinstance(run, BrokenRule):
        return [run]
    watched, outcome = run
    records, schedule, broken = outcome.records, _schedule(run), []

    def rule(name: str, detail: str) -> None:
        broken.append(BrokenRule(name, case.name, detail))

    # Machines that differ in one part each.
    slicing = machine.time_slicing
    others: dict[str, Any] = {
        "time_slicing": TimeSlicing(quantum_s=1000 * slicing.quantum_s, mpl=slicing.mpl + 1),
        "context_switch": ContextSwitch(fraction=0.25),
        "checkpointing": Checkpointing(checkpoint_s=3.0, restart_s=5.0, max_tasks_per_slice=2),
        "suspended_per_node": 1,
        "node_memory_gib": machine.node_memory_gib or _ENOUGH_GIB,
    }
    if machine.has_shared_nodes:
        del others["node_memory_gib"]  # jobs that share it can always be in each other's way
    used = dependencies_of(policy)
    for part, other in others.items():
        if part not in used and _schedule(_run(policy, case, replace(machine, **{part: other}), [jobs], seed)) != schedule:
            rule("depends only on what it declares", f"another {part} gave another schedule")
    if RANDOM_NUMBERS not in used and _schedule(_run(policy, case, machine, [jobs], seed + 1)) != schedule:
        rule("depends only on what it declares", f"another seed of the {RANDOM_NUMBERS} gave another schedule")
    # Two streams, one of which lists simultaneous jobs in reverse.
    streams = [jobs[1::2], sorted(jobs[::2], key=lambda row: (row.submit, -row.id))]
    if not broken and _schedule(_run(policy, case, machine, streams, seed)) != schedule:
        rule("schedule does not depend on the order of simultaneous events", "two streams gave another schedule")
    # A guarantee holds against lower-priority jobs; a job of higher priority that arrives later may overtake.
    # With time sharing, each scheduling event can delay a gang by one cycle of the rotation.
    # What a failure breaks is not the policy's fault.
    equal = len({row.priority for row in jobs}) == 1
    if machine.failures is None and machine.kill_at_estimate and equal and machine.uniform_switch == 0:
        ids, start, reserved = (records.column(name) for name in ("id", "start", "reserved"))
        lap = slicing.mpl * slicing.quantum if outcome.slices is not None else 0
        guaranteed = np.isin(ids, [job for job, certain in watched.guaranteed.items() if certain])
        late = ids[(reserved != UNKNOWN) & guaranteed & (start > reserved + 2 * len(jobs) * lap)]
        if len(late):
            rule("keeps guaranteed starts", f"job {late[0]} started after its first guaranteed start")
    if watched.resized and (detail := next(_outside_sizes(case, outcome), None)):
        rule("keeps malleable jobs within their sizes", detail)
    unfinished = records.column("id")[records.column("ended_as") == Status.UNFINISHED]
    if len(unfinished):
        rule("leaves no job behind", f"job {unfinished[0]} never ended")
    return broken


def _run(
    policy: Policy, case: Case, machine: Machine, streams: Sequence[Sequence[JobRow]], seed: int
) -> tuple[_Watched, Outcome] | BrokenRule:
    """Run one case, perhaps on another machine; return the rule that stopped it, if one did."""
    watched = _Watched(policy, case)

    def simulated(policy: Policy) -> Outcome:
        rng = np.random.default_rng(seed)
        return simulate(machine, streams, policy, rng, demands=demands_of(case.jobs))

    try:
        watched.policy = calibrate(policy, lambda other: waits_in(simulated(make_policy(other)).records))
        outcome = simulated(watched)
    except DecisionError as problem:
        return BrokenRule("never asks for the impossible, leaves no job behind", case.name, str(problem))
    except _StuckError:
        detail = f"called more than {_CALLS_PER_JOB} times per job without an end in sight"
        return BrokenRule("comes to an end", case.name, detail)
    except Exception as problem:  # an exception of the policy is a broken rule, not a failure of the check
        return BrokenRule("raises nothing", case.name, f"{type(problem).__name__}: {problem}")
    records, sizes_of = outcome.records, _sizes_of(case)
    for job, nodes, allocated in zip(records.column("id"), records.column("nodes"), records.allocated, strict=True):
        resized = int(job) in watched.resized or (int(job) in sizes_of and machine.on_failure == "shrink")
        if allocated and not resized and allocated != (watched.chosen.get(int(job)) or nodes):
            detail = f"job {job} held another number of nodes than it had asked for or was given"
            return BrokenRule("starts gangs whole", case.name, detail)
    return watched, outcome


def _sizes_of(case: Case) -> dict[int, Sizes]:
    """Return the sizes of malleable jobs, by number."""
    return {job.id: job.demand.sizes for job in case.jobs if job.demand is not None and job.demand.sizes is not None}


def _outside_sizes(case: Case, outcome: Outcome) -> Iterator[str]:
    """Yield run attempts of malleable jobs on fewer or more nodes than these may have."""
    ids, attempts, sizes_of = outcome.records.column("id").tolist(), outcome.records.runs, _sizes_of(case)
    for index, nodes in zip(attempts.job.tolist(), attempts.nodes.tolist(), strict=True):
        sizes = sizes_of.get(ids[index])
        if sizes is not None and nodes and not sizes.least <= nodes <= sizes.most:
            yield f"job {ids[index]} had {nodes} nodes; it may have {sizes.least} to {sizes.most}"


def _schedule(run: tuple[_Watched, Outcome] | BrokenRule) -> object:
    """Return start, end and status of each job, by which runs are compared; a broken rule is no schedule."""
    if isinstance(run, BrokenRule):
        return run
    columns = (run[1].records.column(name).tolist() for name in ("id", "start", "end", "ended_as"))
    return {number: rest for number, *rest in zip(*columns, strict=True)}
