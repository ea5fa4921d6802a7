"""The process of one running gang: it lives from the job's start to its end, and nothing of it stays behind."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import NamedTuple

from simpy import Event, Interrupt

from clustermodel.policies.interface import RunningJob
from clustermodel.recording.job_records import Status
from clustermodel.sim.events import Clock
from clustermodel.sim.node_pool import GangRequest, NodePool
from clustermodel.sim.saved_work import Preemption
from clustermodel.sim.time_sharing.matrix_rows import SlicedGang


class Stop(NamedTuple):
    """The cause of an interrupt: which dispatch it is meant for, and how the gang ends.

    Interrupts come from the coordinator alone, at most one at an instant for a dispatch.
    """

    dispatch: int
    status: Status


def run_gang(
    env: Clock,
    pool: NodePool,
    request: GangRequest,
    gang: RunningJob,
    duration: int,
    status: Status,
    dispatch: int,
    preemption: Preemption,
    ended: Callable[[RunningJob, Status], None],
) -> Generator[Event, object, None]:
    """Hold the gang's nodes for ``duration`` ticks, or until the coordinator stops it, and report the end.

    The nodes are held for longer by a job that was preempted before, until what has been saved of it is there, and by one
    that is preempted, until its work is saved.

    Args:
        env: the simulation.
        pool: where the nodes are held.
        request: the gang's request, granted by the coordinator.
        gang: the job and where it runs.
        duration: how long it will run, ticks: the run time, or the estimate where that comes first and kills, less what has
            been saved.
        status: how it ends if nothing stops it.
        dispatch: number of this dispatch, to recognise interrupts meant for it.
        preemption: what has been saved of jobs, and what saving costs.
        ended: called once, at the end, after the nodes are idle again.
    """
    try:
        yield request
        if preemption.image_of(gang.job) is not None:
            yield from preemption.fetch(gang)
        yield env.timeout(duration)
    except Interrupt as interrupt:
        status = _stopped(interrupt, dispatch)
    if gang.stopping:
        try:
            yield from preemption.save(gang, status)
        except Interrupt as interrupt:  # there is no time to save it
            status = _stopped(interrupt, dispatch)
    pool.release(gang.columns)
    ended(gang, status)


def run_sliced_gang(
    gang: SlicedGang, status: Status, dispatch: int, ended: Callable[[RunningJob, Status], None]
) -> Generator[Event, object, None]:
    """Wait until the time-slice process has let the gang run for its duration, or the coordinator stops it; report the end.

    Args:
        gang: the job, its nodes and rows.
        status: how it ends if nothing stops it.
        dispatch: number of this dispatch, to recognise interrupts meant for it.
        ended: called once, at the end.
    """
    try:
        yield gang.finished
    except Interrupt as interrupt:
        status = _stopped(interrupt, dispatch)
    ended(gang, status)


def _stopped(interrupt: Interrupt, dispatch: int) -> Status:
    stop = interrupt.cause
    assert isinstance(stop, Stop)
    assert stop.dispatch == dispatch, "an interrupt meant for another dispatch"
    return stop.status
