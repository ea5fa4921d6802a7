"""How long a job executes on a number of nodes, and what malleable jobs have executed on each, segment by segment.

What a gang has executed counts in ticks of its present number of nodes.  What it has executed on each number of nodes is kept
beside that, so that the books of useful and discarded work are exact.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, NamedTuple

from clustermodel.recording.job_records import EndedSegment, JobRecords
from clustermodel.recording.ledger import Ledger
from clustermodel.recording.run_attempts import REQUEUING, UNKNOWN, Status
from clustermodel.sim.job_process import ENDS, SAVING, Execution, Image, JobInSystem, Segment
from clustermodel.sim.saved_work import SavedWork
from clustermodel.workload.speedup import Speedup


class WholeJob(NamedTuple):
    """How long a job executes in all on a number of nodes, ticks, can be expected to, and how that ends."""

    duration: int
    length: int
    outcome: Status


class JobTimes:
    """How long jobs execute, and what has been saved of them, on any number of nodes."""

    def __init__(self, speedup: Speedup, *, kill_at_estimate: bool) -> None:
        self._speedup: Any = speedup  # may be a user's, which may return a number of numpy
        self._kill_at_estimate = kill_at_estimate

    def on(self, job: JobInSystem, nodes: int) -> tuple[int, int]:
        """Return how long a job runs on a number of nodes if nothing kills it, and its estimate there, ticks."""
        run_time, estimate, asked = job.run_time, job.queued.estimate, job.queued.nodes
        if nodes == asked:
            return run_time, estimate
        time_on = self._speedup.time_on
        return operator.index(time_on(run_time, asked, nodes)), operator.index(time_on(estimate, asked, nodes))

    def whole(self, job: JobInSystem, nodes: int) -> WholeJob:
        """Return how long a job executes in all on a number of nodes."""
        duration, length = self.on(job, nodes)
        if duration > length and self._kill_at_estimate:
            return WholeJob(length, length, Status.KILLED)
        return WholeJob(duration, length, Status.COMPLETED)

    def image_on(self, job: JobInSystem, image: Image | None, nodes: int) -> Image | None:
        """Return what has been saved of a job, an image, as one with another number of tasks."""
        if image is None:
            return None
        before, after = self.whole(job, image.nodes), self.whole(job, nodes)
        work, stored = (converted(ticks, before, after) for ticks in (image.work, image.stored))
        return Image(work, stored, nodes, image.columns)


def converted(ticks: int, before: WholeJob, after: WholeJob) -> int:
    """Return what has been executed on one number of nodes as ticks of another, rounded down."""
    return ticks * after.duration // before.duration


def end_segment(gang: Execution, outcome: Status, records: JobRecords, ledger: Ledger) -> EndedSegment:
    """Charge what a malleable job's gang has executed on its present number of nodes, and what is discarded as this ends."""
    job = gang.owner
    stored = max(gang.checkpointed - gang.resized_at, 0)
    segment = Segment(records.attempt_of(job.index), gang.nodes, gang.executed() - gang.resized_at, stored)
    job.segments.append(segment)
    executed, is_over = segment.executed, outcome is not Status.RESIZED and outcome not in REQUEUING
    in_all = sum(each.executed for each in job.segments) if is_over else UNKNOWN
    own_lost = wasted = 0
    if not (gang.fetching and outcome in SAVING):  # else its image is still where it was
        for each, lost in _discarded(job, outcome):
            wasted += each.nodes * lost
            if each is segment:
                own_lost = lost
            else:
                records.lost(job.index, each.attempt, each.nodes, lost)
    ledger.charge_work(segment.nodes * executed - wasted, wasted)
    return EndedSegment(executed, own_lost, in_all)


def discard_saved(job: JobInSystem, outcome: Status, records: JobRecords, ledger: Ledger) -> None:
    """Charge what is discarded of a waiting malleable job, which never goes on or was suspended on nodes that have failed."""
    for segment, lost in _discarded(job, outcome):
        records.lost(job.index, segment.attempt, segment.nodes, lost)
        ledger.charge_work(-segment.nodes * lost, segment.nodes * lost)


def abort(job: JobInSystem, now: int, saved: SavedWork, records: JobRecords, ledger: Ledger) -> None:
    """Discard all that has been saved of a waiting job that never goes on, and record its last run attempt as aborted."""
    image = job.image
    if job.sizes is None:
        discarded = 0 if image is None else image.work
        if image is not None:
            ledger.charge_work(-image.nodes * discarded, image.nodes * discarded)
        records.aborted_late(job.index, now, discarded)
    else:
        in_all = sum(segment.executed for segment in job.segments)
        discard_saved(job, Status.ABORTED, records, ledger)
        records.aborted_late(job.index, now, 0, in_all)
    saved.abandon(job)


def _discarded(job: JobInSystem, outcome: Status) -> Iterator[tuple[Segment, int]]:
    """Yield the segments of which work is discarded, and how much, ticks."""
    if outcome is Status.CHECKPOINTED:
        job.store_all()
    if outcome in ENDS or outcome in SAVING or outcome is Status.RESIZED:
        return
    for segment in job.segments:
        kept = segment.stored if outcome in REQUEUING else 0
        if lost := segment.executed - kept:
            segment.executed = segment.stored = kept
            yield segment, lost
