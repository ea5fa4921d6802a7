"""One run of the mechanism: job streams and other processes are made, the clock runs until the last job has ended."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, get_args

import numpy as np
from simpy import Event, Process, Timeout

from clustermodel.errors import SpecificationError
from clustermodel.machine.machine import Machine
from clustermodel.machine.node_set import NodeSet
from clustermodel.policies.interface import Policy, Reason, Setup, decide_of
from clustermodel.policies.view import QueuedJob
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import Ledger
from clustermodel.recording.matrix_history import History, SliceLog
from clustermodel.sim.coordinator import Coordinator
from clustermodel.sim.held_jobs import HeldJobs
from clustermodel.sim.job_process import JobInSystem
from clustermodel.sim.partitions import NO_LIFTING, Lifting, Partitions
from clustermodel.sim.parts import Parts
from clustermodel.sim.phases import AFTER, BEFORE, Phases
from clustermodel.sim.signals import signals_between_events
from clustermodel.sim.site_order import SiteOrder
from clustermodel.ticks import LAST_TICK, to_seconds
from clustermodel.workload.job import NO_DEMANDS, Demands, JobRow
from clustermodel.workload.speedup import LINEAR, Speedup
from clustermodel.workload.streams_of_run import Follower, JobsWithFeedback

Fidelity = Literal["fast", "node"]
FIDELITIES: Final = get_args(Fidelity)
Events = Literal["together", "one-by-one"]
EVENTS: Final = get_args(Events)
PROGRESS_STEP = 1024  # submissions between two calls of a progress function


class Estimates:
    """The questions of :class:`~clustermodel.policies.interface.Setup`, with the same names; ticks."""

    def __init__(self, jobs: Mapping[int, JobInSystem], phases: Phases) -> None:
        self._jobs, self._phases = jobs, phases

    def run_time(self, job: QueuedJob) -> int:
        return self._jobs[job.id].run_time

    def holding(self, job: QueuedJob, ticks: int, nodes: int | None = None) -> int:
        return self._phases.holding(self._jobs[job.id], ticks, nodes)

    def transfer_times(self, job: QueuedJob) -> tuple[int, int]:
        return self._phases.transfers.of(self._jobs[job.id], job.nodes)

    def resize_time(self, job: QueuedJob, before: int, after: int) -> int:
        return self._phases.takes(self._phases.resize(self._jobs[job.id], before, after))

    def switch_time(self, job: QueuedJob) -> int:
        return self._phases.switch(self._jobs[job.id].row, job.nodes)

    def occupied(self, job: QueuedJob, nodes: int) -> tuple[int, int]:
        phases, row = self._phases, self._jobs[job.id].row
        return phases.takes(phases.occupying(BEFORE, row, nodes)), phases.takes(phases.occupying(AFTER, row, nodes))


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
    records = JobRecords() if records is None else records
    run = Parts(
        machine, policy, speedup, records, demands, lifting, held, order, explain=explain, history=history, fidelity=fidelity,
        events=events, by_node=by_node,
    )  # fmt: skip
    env, estimates = run.env, Estimates(run.jobs, run.phases)
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
            node_sets=() if run.places is None else machine.sets_of_nodes(),
            disjoint=disjoint_parts(run),
            by_node=run.requests is not None,
            one_by_one=run.one_by_one,
            switch_time=estimates.switch_time,
            own_switches=run.phases.switch_of_all is None,
            occupies=run.phases.occupy,
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


def _cut_logs(run: Parts) -> None:
    """Let the logs of time slices end with the books."""
    if (slices := run.sharing.slice_log) is not None:
        starts = run.records.runs.start
        slices.cut(run.ledger.end - int(starts.min()) if len(starts) else 0)
    if run.history is not None:
        run.history.cut(run.ledger)


def disjoint_parts(run: Parts) -> list[NodeSet]:
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
