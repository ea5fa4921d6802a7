"""One run of the mechanism: job streams and other processes are made, the clock runs until the last job has ended."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from simpy import Event, Process, Timeout

from clustermodel.errors import SpecificationError
from clustermodel.machine.machine import Machine
from clustermodel.machine.node_set import NodeSet
from clustermodel.policies.interface import Policy, Reason, Setup, decide_of
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import Ledger
from clustermodel.recording.matrix_history import History, SliceLog
from clustermodel.sim.checkpoint_store import Store
from clustermodel.sim.coordinator import Coordinator
from clustermodel.sim.dedicated_nodes import DedicatedNodes
from clustermodel.sim.estimates import Estimates
from clustermodel.sim.events import Clock, InstantSettled
from clustermodel.sim.guard import Guard, is_shipped
from clustermodel.sim.held_jobs import HeldJobs
from clustermodel.sim.job_costs import JobCosts
from clustermodel.sim.job_process import Execution, JobInSystem
from clustermodel.sim.node_failures import NodeStates
from clustermodel.sim.node_pool import NodePool
from clustermodel.sim.node_requests import NodeChoice, NodeRequests, requests_of
from clustermodel.sim.node_types import NodeTypes, Speeds, places_of
from clustermodel.sim.partitions import NO_LIFTING, Lifting, Partitions
from clustermodel.sim.power_cap import CapWaits, cap_of
from clustermodel.sim.reservations import Reservations
from clustermodel.sim.resizing import Resizes
from clustermodel.sim.rules import Rule
from clustermodel.sim.saved_work import SavedWork
from clustermodel.sim.signals import signals_between_events
from clustermodel.sim.site_order import SiteOrder
from clustermodel.sim.switching_off import SwitchedOff
from clustermodel.sim.unreported_ends import UnreportedEnds
from clustermodel.ticks import LAST_TICK, to_seconds
from clustermodel.workload.job import NO_DEMANDS, Demands, JobRow
from clustermodel.workload.speedup import LINEAR, Speedup
from clustermodel.workload.streams_of_run import Follower, JobsWithFeedback

if TYPE_CHECKING:
    from clustermodel.sim.time_sharing.shared_nodes import TimeSharing

    Sharing: TypeAlias = DedicatedNodes | TimeSharing

Fidelity = Literal["fast", "node"]
FIDELITIES: Final = get_args(Fidelity)
Events = Literal["together", "one-by-one"]
EVENTS: Final = get_args(Events)
PROGRESS_STEP = 1024  # submissions between two calls of a progress function


class RunContext:
    """What the parts of one run share: the simulation, the machine, its nodes, the jobs and the books."""

    def __init__(
        self,
        machine: Machine,
        speedup: Speedup,
        records: JobRecords,
        *,
        explain: bool,
        history: bool,
        fidelity: str,
        events: str,
        held: HeldJobs | None,
        order: SiteOrder | None,
        places: Partitions | NodeTypes | None,
        requests: NodeRequests | None,
        demands: Demands,
        rows: int,
        guard: Guard | None,
        step: int,
    ) -> None:
        self.machine, self.speedup, self.records = machine, speedup, records
        self.guard = guard  # what keeps a user's policy from assigning to jobs; ``None`` where the policy is of this package
        self.node_by_node, self.one_by_one = fidelity == "node", events == "one-by-one"
        self.reasons: dict[int, Reason] | None = {} if explain else None  # job id -> why it started; ``None`` unless asked for
        self.history = History(machine.time_slicing.quantum) if history else None  # states of the Ousterhout matrix
        self.places = places  # which nodes jobs may have; ``None`` where each may have all
        self.rows = rows  # of the Ousterhout matrix; 0 where gangs do not share nodes in time
        self.requests = requests  # what jobs ask of nodes; ``None`` where that is a number of processors
        speeds = machine.node_speeds
        self.speeds = None if speeds is None else Speeds(speeds, machine.node_sizes)  # of nodes, if these differ
        self.held = held  # the jobs that rules of the site keep from the queue; ``None`` without rules
        self.env = Clock()
        self.jobs: dict[int, JobInSystem] = {}  # the jobs in the system by id
        self.running: dict[int, Execution] = {}  # the running gangs by job id
        self.settled = InstantSettled(self.env)  # what ends an instant: whatever the coordinator has to know of arms it
        self.ledger = Ledger(machine.processors)
        self.pool = NodePool(self.env, machine)  # the nodes, and the queue for them
        self.store = Store(self.env, machine)  # where gangs are checkpointed
        self.costs = JobCosts(machine, demands)  # what gangs pay by their number of nodes
        self.saved = SavedWork(self)  # what is saved of preempted jobs
        self.choice = NodeChoice(self.pool, self.saved, requests)  # which idle nodes a job would have
        self.cap = cap_of(machine)  # which nodes are out of service because of the power cap; ``None`` where none are
        self.states = NodeStates(self)  # which nodes are down
        self.switched_off = None if machine.idle_off is None else SwitchedOff(self, machine.idle_off)  # which nodes are off
        self.pool.switched_off = self.switched_off
        self.resizes = Resizes(self)
        # When nodes are kept free.
        self.reservations = Reservations(self, demands, rows, step) if machine.windows else None
        # Whether all jobs may have all nodes at any time, so that nothing of this kind has to be looked at.
        self.any_node = places is None and requests is None and self.speeds is None and self.reservations is None
        self.sharing: Sharing = DedicatedNodes(self)  # gives nodes to gangs; time sharing from a first row on
        # Where each event of an instant is a scheduling cycle.
        self.unreported = UnreportedEnds(self.pool, self.saved, self.choice)
        # How long jobs wait because of the power cap.
        self.cap_waits: CapWaits | None = None
        if self.cap is not None and not records.ids_rise:
            self.cap_waits = CapWaits(self.env, records, self.cap, machine.processors, self._unused)
        if order is not None:
            order.begin(self.env, self.pool, self.running)
        self.rules: tuple[Rule, ...] = tuple(
            [rule for rule in (self.reservations, held, order, self.cap_waits) if rule is not None]
        )

    def _unused(self) -> int:
        """Return the nodes that no gang has, a bitmask, however gangs share nodes by now."""
        return self.sharing.unused()


class Outcome(NamedTuple):
    """What a run leaves behind."""

    records: JobRecords
    ledger: Ledger
    reasons: dict[int, Reason] | None  # job id -> why it started; ``None`` unless asked for
    slices: SliceLog | None  # what ran between scheduling events; ``None`` where nodes are not shared in time
    history: History | None  # every state of the Ousterhout matrix; ``None`` unless asked for
    fragmented_starts: int  # of gangs that fitted into fewer nodes than any choice of idle processors had


def simulate(
    machine: Machine,
    streams: Sequence[Iterable[JobRow]],
    policy: Policy,
    rng: np.random.Generator,
    *,
    explain: bool = False,
    fidelity: Fidelity = "fast",
    events: Events = "together",
    history: bool = False,
    speedup: Speedup = LINEAR,
    progress: Callable[[int], None] | None = None,
    failure_rng: np.random.Generator | None = None,
    records: JobRecords | None = None,
    held: HeldJobs | None = None,
    order: SiteOrder | None = None,
    demands: Demands = NO_DEMANDS,
    lifting: Lifting = NO_LIFTING,
    by_node: bool = False,
) -> Outcome:
    """Run ``policy`` on ``machine`` until every job of every stream has ended.

    Streams are in order of submission, and merge.  Of :class:`~clustermodel.workload.streams_of_run.JobsWithFeedback`, jobs
    that follow others are submitted after these have completed.  ``rng`` is the policy's random stream, ``failure_rng`` that of
    failures, by default with seed 0; ``explain``, ``fidelity``, ``events`` and ``history`` are those of
    :class:`~clustermodel.experiment.scenario.Scenario`; ``progress`` is called now and then with the number of jobs submitted
    since the last call.  ``held`` keeps jobs from the queue and ``order`` the queue in order, by the rules of a site;
    ``demands`` are all demands that jobs of the streams have, which some parts of the mechanism have to know before.
    ``lifting``: whose jobs are exempt from limits of partitions; ``by_node``: whether it matters on which of the nodes with
    several processors jobs are.

    Raises:
        DecisionError: the policy asked for something impossible, or left jobs waiting for ever.
        LedgerError: the books do not balance.
        SpecificationError: the jobs take so long that a time no longer fits 64-bit ticks.
        TraceError: a stream read from a file is malformed.
    """
    process = os.getpid()
    places, requests = places_of(machine, demands, lifting), requests_of(machine, demands, by_node=by_node)
    records = JobRecords() if records is None else records
    run = RunContext(
        machine,
        speedup,
        records,
        explain=explain,
        history=history,
        fidelity=fidelity,
        events=events,
        held=held,
        order=order,
        places=places,
        requests=requests,
        demands=demands,
        rows=getattr(policy, "rows_on", lambda _machine: 0)(machine),
        guard=None if is_shipped(policy) else Guard(policy.name),
        step=getattr(policy, "step_on", lambda _machine: 0)(machine),
    )
    env, estimates = run.env, Estimates(run.jobs, run.saved, run.resizes, run.costs)
    decide = decide_of(
        policy,
        Setup(
            machine.processors,
            machine.kill_at_estimate,
            rng,
            explain,
            machine,
            speedup,
            run_time=estimates.run_time,
            holding=estimates.holding,
            transfer_times=estimates.transfer_times,
            resize_time=estimates.resize_time,
            node_sets=() if places is None else machine.sets_of_nodes(),
            disjoint=disjoint_parts(run),
            by_node=requests is not None,
            one_by_one=run.one_by_one,
            switch_time=estimates.switch_time,
            own_switches=run.costs.switch_of_all is None,
            occupies=run.costs.occupy,
            occupied=estimates.occupied,
        ),
    )
    coordinator = Coordinator(run, policy.name, decide, len(streams))
    coordinating = env.process(coordinator.run())
    if machine.failures is not None:
        failures = machine.failures.failures(machine.processors, failure_rng or np.random.default_rng(0))
        env.process(run.states.follow(failures))
    for rows in streams:
        submit: Callable[[JobRow], object] = coordinator.submit
        if isinstance(rows, JobsWithFeedback):
            submit = Feedback(rows.followers, coordinator, progress).submit
        env.process(submit_jobs(coordinator, iter(rows), submit, progress))
    try:
        with signals_between_events(env):
            env.run_with(coordinating, run.settled)
    except (OverflowError, struct.error) as problem:
        raise SpecificationError(
            f"the jobs take too long: at {to_seconds(env.now):g} s, a start or an end lies beyond the "
            f"{to_seconds(LAST_TICK):g} s that fit 64-bit ticks; give shorter times, fewer jobs or more nodes"
        ) from problem
    finally:
        if os.getpid() != process:  # the policy has forked: a second run of the same would report its results once more
            os._exit(1)
    if run.ledger.is_cut:
        _cut_logs(run)
    fragmented = 0 if run.pool.allocation is None else run.pool.allocation.fragmented_starts
    return Outcome(run.records, run.ledger, run.reasons, run.sharing.slice_log, run.history, fragmented)


def _cut_logs(run: RunContext) -> None:
    """Let the logs of time slices end with the books."""
    if (slices := run.sharing.slice_log) is not None:
        starts = run.records.runs.start
        slices.cut(run.ledger.end - int(starts.min()) if len(starts) else 0)
    if run.history is not None:
        run.history.cut(run.ledger)


def disjoint_parts(run: RunContext) -> list[NodeSet]:
    """Return the parts of the machine that can be scheduled separately; none if that is one, or something ties them."""
    machine = run.machine
    ordered = any(isinstance(rule, SiteOrder) for rule in run.rules)
    tied = machine.failures or machine.windows or run.cap or ordered or run.requests or run.speeds or run.one_by_one
    return run.places.disjoint() if isinstance(run.places, Partitions) and not tied else []


def _report(progress: Callable[[int], None], jobs: int) -> None:
    try:
        progress(jobs)
    except StopIteration as problem:  # as in the coordinating process
        raise RuntimeError("generator raised StopIteration") from problem


def submit_jobs(
    coordinator: Coordinator, rows: Iterator[JobRow], submit: Callable[[JobRow], object], progress: Callable[[int], None] | None
) -> Generator[Event, object, None]:
    """Submit each row at its time; rows must be in order of submission."""
    env, now, reported = coordinator.env, coordinator.env.now, 0
    for row in rows:
        due = row.submit
        if due > now:
            yield Timeout(env, due - now)
            now = due
        submit(row)
        if progress is not None:
            reported += 1
            if reported == PROGRESS_STEP:
                _report(progress, reported)
                reported = 0
    if progress is not None:
        _report(progress, reported)
    coordinator.stream_finished()


class Feedback:
    """Submits the jobs of a stream, and after the completion of each those that follow it, each in a process of its own."""

    # A job that was killed, aborted or rejected has completed too.  With a think time of zero, the next job is submitted at the
    # time of the completion, so the same scheduling cycle sees both.

    def __init__(
        self, followers: Mapping[int, Sequence[Follower]], coordinator: Coordinator, progress: Callable[[int], None] | None
    ) -> None:
        self._followers, self._coordinator, self._progress = followers, coordinator, progress

    def submit(self, row: JobRow) -> None:
        """Submit a job, and let its followers wait for its completion."""
        life = self._coordinator.submit(row)
        for follower in self._followers.get(row.id, ()):
            Process(self._coordinator.env, self._follow(life, follower))

    def _follow(self, life: Process | None, follower: Follower) -> Generator[Event, object, None]:
        coordinator, env = self._coordinator, self._coordinator.env
        if life is not None:
            yield life
        coordinator.open_streams += 1
        if follower.think:
            yield Timeout(env, follower.think)
        self.submit(follower.row._replace(submit=env.now))
        coordinator.stream_finished()
        if self._progress is not None:
            _report(self._progress, 1)
