"""One run of the mechanism: processes are made, the clock runs until the last job has ended."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf, isinf
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, get_args

import numpy as np

from clustermodel.errors import SpecificationError
from clustermodel.job import JobRow
from clustermodel.machine import Machine
from clustermodel.policies.interface import Policy, Reason, Setup
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import Ledger
from clustermodel.recording.matrix_history import History
from clustermodel.recording.slice_log import SliceLog
from clustermodel.recording.streamed_records import StreamedRecords
from clustermodel.schedule.allocation import Allocation
from clustermodel.sim.checkpoint_store import LimitedStore
from clustermodel.sim.coordinator import Coordinator
from clustermodel.sim.events import Clock
from clustermodel.sim.job_streams import Feedback, submit_jobs
from clustermodel.sim.node_failures import NodeStates
from clustermodel.sim.node_pool import NodePool
from clustermodel.sim.restart_charges import dedicated_nodes
from clustermodel.sim.saved_work import SavedWork
from clustermodel.sim.shared_store import SharedStore
from clustermodel.speedup import LINEAR, Speedup
from clustermodel.ticks import LAST_TICK, duration_to_ticks, to_seconds
from clustermodel.workload.feedback import JobsWithFeedback

if TYPE_CHECKING:
    from clustermodel.sim.time_sharing.shared_nodes import TimeSharing

Fidelity = Literal["fast", "node"]
FIDELITIES: Final = get_args(Fidelity)
Events = Literal["together", "one-by-one"]
EVENTS: Final = get_args(Events)
PROGRESS_STEP = 1024
"""Submissions between two calls of a progress function."""


class Outcome(NamedTuple):
    """What a run leaves behind."""

    records: JobRecords
    ledger: Ledger
    reasons: dict[int, Reason] | None
    """Job id -> why it started; ``None`` unless asked for."""
    slices: SliceLog | None
    """What ran between scheduling events; ``None`` where nodes are not shared in time."""
    history: History | None
    """Every state of the Ousterhout matrix; ``None`` unless asked for."""
    fragmented_starts: int
    """Starts of gangs that fitted into fewer nodes than any choice of idle processors had, where nodes have several."""


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
) -> Outcome:
    """Run ``policy`` on ``machine`` until every job of every stream has ended.

    Args:
        machine: what the jobs run on.
        streams: each in order of submission; they merge.  Of :class:`~clustermodel.workload.feedback.JobsWithFeedback`, jobs
            that follow others are submitted after these have completed.
        policy: what decides.
        rng: the policy's random stream.
        explain: keep the reasons of all starts.
        fidelity: how time slices are simulated: ``"fast"`` computes what happens between scheduling events, ``"node"`` plays
            every slice on every node; the results are the same.
        events: whether a scheduling cycle sees all events of an instant, ``"together"``, or each is a cycle of its own,
            ``"one-by-one"``: submissions in their order, then ends in the order in which the gangs have started, as in Gaussier
            et al. 2015.
        history: keep every state of the Ousterhout matrix and the ledger.
        speedup: how run times change where jobs are started on another number of nodes than they asked for.
        progress: called now and then with the number of jobs submitted since the last call.
        failure_rng: the random stream of the failures of nodes; one with seed 0 by default.
        records: where to record what happens to jobs; by default new ones, that keep all.

    Raises:
        DecisionError: the policy asked for something impossible, or left jobs waiting for ever.
        LedgerError: the books do not balance.
        SpecificationError: the jobs take so long that a time no longer fits 64-bit ticks.
        TraceError: a stream read from a file is malformed.
    """
    process = os.getpid()
    env, ledger = Clock(), Ledger(machine.processors)
    records = JobRecords() if records is None else records
    allocation = Allocation(machine.gpus_per_node, machine.allocation) if machine.gpus_per_node > 1 else None
    states = History(machine.time_slicing.quantum) if history else None
    pool, saved = NodePool(env, machine.processors, allocation), SavedWork(machine)
    saved.memory.changed = lambda kib, when: records.memory.changed(env.now if when is None else when, kib)
    store = _store(env, machine)
    sharing = dedicated_nodes(
        machine,
        env,
        pool,
        store,
        saved,
        ledger,
        records,
        lambda: _time_sharing(env, machine, ledger, saved, states, fidelity, events, records),
    )
    node_states = NodeStates(env, 0.0 if machine.failures is None else machine.failures.mean_repair_s, saved, ledger, records)
    coordinator = Coordinator(
        env,
        machine,
        policy,
        len(streams),
        pool=pool,
        sharing=sharing,
        saved=saved,
        ledger=ledger,
        records=records,
        states=node_states,
        explain=explain,
        one_by_one=events == "one-by-one",
        speedup=speedup,
    )
    policy.begin(
        Setup(
            machine.processors,
            machine.kill_at_estimate,
            rng,
            explain,
            machine,
            speedup,
            run_time=lambda job: coordinator.in_system(job).run_time,
            holding=lambda job, ticks: saved.holding(coordinator.in_system(job), ticks),
            transfer_times=lambda job: saved.costs.of(coordinator.in_system(job), job.nodes),
            one_by_one=events == "one-by-one",
        )
    )
    finished = env.process(coordinator.run())
    if machine.failures is not None:
        failures = machine.failures.failures(machine.processors, failure_rng or np.random.default_rng(0))
        env.process(node_states.follow(failures))
    for rows in streams:
        source = iter(rows) if progress is None else _reported(rows, progress)
        submit: Callable[[JobRow], object] = coordinator.submit
        if isinstance(rows, JobsWithFeedback):
            submit = Feedback(env, rows.followers, coordinator, progress).submit
        env.process(submit_jobs(env, source, submit, coordinator.stream_finished))
    try:
        env.run(until=finished)
    except (OverflowError, struct.error) as problem:
        raise SpecificationError(
            f"the jobs take too long: at {to_seconds(env.now):g} s, a start or an end lies beyond the "
            f"{to_seconds(LAST_TICK):g} s that fit 64-bit ticks; give shorter times, fewer jobs or more nodes"
        ) from problem
    finally:
        if os.getpid() != process:  # the policy has forked: a second run of the same would report its results once more
            os._exit(1)
    fragmented = 0 if allocation is None else allocation.fragmented_starts
    return Outcome(records, ledger, coordinator.reasons, coordinator.sharing.slice_log, states, fragmented)


def _time_sharing(
    env: Clock,
    machine: Machine,
    ledger: Ledger,
    saved: SavedWork,
    states: History | None,
    fidelity: Fidelity,
    events: Events,
    records: JobRecords,
) -> TimeSharing:
    """Return nodes that gangs share in time; runs without such gangs do not import the modules."""
    if isinstance(records, StreamedRecords):
        raise SpecificationError("stream: the policy shares nodes in time, and the log of time slices grows with the run")
    if events == "one-by-one":
        raise SpecificationError("events: 'one-by-one' is for dedicated nodes, and the policy shares nodes in time")
    from clustermodel.sim.time_sharing.kept_node_by_node import KeptNodeByNode  # noqa: PLC0415
    from clustermodel.sim.time_sharing.kept_slices import KeptSlices  # noqa: PLC0415
    from clustermodel.sim.time_sharing.node_by_node import NodeByNode  # noqa: PLC0415
    from clustermodel.sim.time_sharing.shared_nodes import MakeTimeSlices, TimeSharing  # noqa: PLC0415
    from clustermodel.sim.time_sharing.slices import ComputedSlices  # noqa: PLC0415

    time_slices: MakeTimeSlices
    if machine.time_slicing.at_events == "keep":
        time_slices = KeptSlices if fidelity == "fast" else KeptNodeByNode
    else:
        time_slices = ComputedSlices if fidelity == "fast" else NodeByNode
    return TimeSharing(env, machine, ledger, saved, states, time_slices)


def _store(env: Clock, machine: Machine) -> LimitedStore | SharedStore:
    """Return the checkpoint store of the machine: with constant costs, or with a bandwidth."""
    costs, failures = machine.checkpointing, machine.failures
    if costs.store is None:
        return LimitedStore(env, costs.max_tasks_per_slice)
    mtbf_s = inf if failures is None else failures.node_mtbf_s(machine.processors)
    return SharedStore(env, costs.store, None if isinf(mtbf_s) else duration_to_ticks(mtbf_s))


def _reported(rows: Iterable[JobRow], progress: Callable[[int], None]) -> Iterator[JobRow]:
    """Yield rows, and report now and then how many have been yielded since the last call."""
    done = 0
    for done, row in enumerate(rows, 1):
        yield row
        if done % PROGRESS_STEP == 0:
            _report(progress, PROGRESS_STEP)
    _report(progress, done % PROGRESS_STEP)


def _report(progress: Callable[[int], None], jobs: int) -> None:
    try:
        progress(jobs)
    except StopIteration as problem:  # as in the coordinating process
        raise RuntimeError("generator raised StopIteration") from problem
