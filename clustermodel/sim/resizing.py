"""Changes of the size of running gangs: which nodes a gang would have, what that costs, and what becomes of its work.

What a gang has executed counts in ticks of its present number of nodes.  What it has executed on each number of nodes is kept
beside that, segment by segment, so that the books of useful and discarded work are exact.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from clustermodel.errors import DecisionError
from clustermodel.machine.node_set import (
    NodeSet,
    as_mask,
    count,
    from_mask,
    from_members,
    is_node_set,
    lowest_part,
    text,
    union,
    without,
)
from clustermodel.policies.view import RUNNING, RunningJob
from clustermodel.recording.job_records import EndedSegment
from clustermodel.recording.run_attempts import REQUEUING, UNKNOWN, Status
from clustermodel.sim.job_process import ENDS, SAVING, Execution, Image, JobInSystem, Phase, Segment, image_after
from clustermodel.sim.node_pool import may_have

if TYPE_CHECKING:
    from clustermodel.sim.simulation import RunContext


class WholeJob(NamedTuple):
    """How long a job executes in all on a number of nodes, ticks, can be expected to, and how that ends."""

    duration: int
    length: int
    outcome: Status


def times_on(run: RunContext, job: JobInSystem, nodes: int) -> tuple[int, int]:
    """Return how long a job runs on a number of nodes if nothing kills it, and its estimate there, ticks."""
    run_time, estimate, asked = job.run_time, job.queued.estimate, job.queued.nodes
    if nodes == asked:
        return run_time, estimate
    speedup: Any = run.speedup  # may be a user's, which may return a number of numpy
    return operator.index(speedup.time_on(run_time, asked, nodes)), operator.index(speedup.time_on(estimate, asked, nodes))


def whole(run: RunContext, job: JobInSystem, nodes: int) -> WholeJob:
    """Return how long a job executes in all on a number of nodes."""
    duration, length = times_on(run, job, nodes)
    if duration > length and run.machine.kill_at_estimate:
        return WholeJob(length, length, Status.KILLED)
    return WholeJob(duration, length, Status.COMPLETED)


def converted(ticks: int, before: WholeJob, after: WholeJob) -> int:
    """Return what has been executed on one number of nodes as ticks of another, rounded down."""
    return ticks * after.duration // before.duration


def image_on(run: RunContext, job: JobInSystem, image: Image | None, nodes: int) -> Image | None:
    """Return what has been saved of a job, an image, as one with another number of tasks."""
    if image is None:
        return None
    before, after = whole(run, job, image.nodes), whole(run, job, nodes)
    work, stored = (converted(ticks, before, after) for ticks in (image.work, image.stored))
    return Image(work, stored, nodes, image.columns)


def end_segment(run: RunContext, gang: Execution, outcome: Status) -> EndedSegment:
    """Charge what a malleable job's gang has executed on its present number of nodes, and what is discarded as this ends."""
    job, records = gang.owner, run.records
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
    run.ledger.charge_work(segment.nodes * executed - wasted, wasted)
    return EndedSegment(executed, own_lost, in_all)


def discard_saved(run: RunContext, job: JobInSystem) -> None:
    """Charge what is discarded of a waiting malleable job that was suspended on nodes that have failed."""
    for segment, lost in _discarded(job, Status.FAILED):
        run.records.lost(job.index, segment.attempt, segment.nodes, lost)
        run.ledger.charge_work(-segment.nodes * lost, segment.nodes * lost)


def abort(run: RunContext, job: JobInSystem) -> None:
    """Discard all that has been saved of a waiting job that never goes on, and record its last run attempt as aborted."""
    records, ledger, now, image = run.records, run.ledger, run.env.now, job.image
    if job.sizes is None:
        discarded = 0 if image is None else image.work
        if image is not None:
            ledger.charge_work(-image.nodes * discarded, image.nodes * discarded)
        records.aborted_late(job.index, now, discarded)
    else:
        in_all = sum(segment.executed for segment in job.segments)
        for segment, lost in _discarded(job, Status.ABORTED):
            records.lost(job.index, segment.attempt, segment.nodes, lost)
            ledger.charge_work(-segment.nodes * lost, segment.nodes * lost)
        records.aborted_late(job.index, now, 0, in_all)
    run.saved.abandon(job)


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


class Resizes:
    """Resizes of gangs on dedicated nodes."""

    def __init__(self, run: RunContext) -> None:
        self._run, self._phases = run, run.phases
        self.changed = False  # whether a gang has been resized since the books were last settled

    def nodes_for(self, gang: RunningJob, nodes: int) -> NodeSet | None:
        """Return the nodes that a gang would have if it were resized now; ``None`` where it cannot be."""
        assert isinstance(gang, Execution)
        if self._refusal(gang, nodes) is not None:
            return None
        return self._choose(gang, nodes)

    def _refusal(self, gang: Execution, nodes: int, *, fails: bool = False) -> str | None:
        """Return why a gang cannot have a number of nodes, wherever they are."""
        run, sizes, transfers = self._run, gang.owner.sizes, self._phases.transfers
        if sizes is None:
            return "its job is not malleable"
        if not sizes.least <= nodes <= sizes.most:
            return f"its job may have {sizes.least} to {sizes.most} nodes"
        executes = gang.state is RUNNING or (fails and gang.resizing)
        closed = transfers.tasks_at_a_time == 0 and any(each.tasks for each in self._phases.resize(gang.owner, 1, 1))
        for refuses, why in (
            (gang.rows, "its nodes are shared in time"),
            (run.speeds is not None, "nodes differ in speed (NodeType.speed)"),
            (run.sharing.is_settled, "restarts are not charged on-start (Checkpointing.restart_charge)"),
            (gang.outcome is Status.REQUEUED, "it has been started with a time limit"),
            (not executes, f"it is {gang.state.value}"),
            (closed, "the store takes no tasks"),
        ):
            if refuses:
                return why
        return None

    def _choose(self, gang: Execution, nodes: int) -> NodeSet | None:
        """Return the lowest of its own nodes, or these and the lowest idle ones that it may have."""
        run, more = self._run, nodes - gang.nodes
        if more <= 0:
            columns: NodeSet | None = lowest_part(gang.columns, nodes)
        else:
            others = run.choice.idle_for(gang.job, more, self._eligible(gang, nodes))
            columns = None if others is None else union(gang.columns, others)
        if columns is None or ((barred := self.barred(gang, nodes)) and barred & as_mask(columns)):
            return None
        return columns

    def _eligible(self, gang: Execution, nodes: int) -> list[NodeSet | None]:
        """Return the sets of nodes of one of which a gang can have more: those that have all its own."""
        sets = [each for each in gang.job.sets_allowed() if may_have(gang.columns, (each,))]
        if (reservations := self._run.reservations) is None:
            return sets
        end = self._expected_end(gang, nodes) + self._run.machine.boot
        return [reservations.free_until(each, gang.job.barred, end) for each in sets]

    def barred(self, gang: RunningJob, nodes: int) -> int:
        """Return the nodes, a bitmask, that are reserved before a gang ends on so many; of its own only others."""
        if (reservations := self._run.reservations) is None:
            return 0
        assert isinstance(gang, Execution)
        now = self._run.env.now
        late = reservations.windows.barred(now, max(gang.expected_end - now, 1), gang.job.barred) & as_mask(gang.columns)
        ticks = max(self._expected_end(gang, nodes) + self._run.machine.boot - now, 1)
        return reservations.windows.barred(now, ticks, gang.job.barred) & ~late

    def _expected_end(self, gang: Execution, nodes: int) -> int:
        """Return when a gang can be expected to end that is resized now."""
        job, executed = gang.owner, gang.executed()
        before, after = whole(self._run, job, gang.nodes), whole(self._run, job, nodes)
        work = executed if job.image is None else job.image.work + executed
        left = max(after.length - converted(work, before, after), 1)
        phases = [*self._phases.resize(job, gang.nodes, nodes), *self._phases.execution(job, nodes, left)]
        return self._run.env.now + self._phases.takes(phases)

    def carry_out(self, gang: Execution, nodes: int | None, columns: NodeSet | None) -> None:
        """Resize a gang; ``columns`` are of nodes that its job may have at some time."""
        refused = f"job {gang.job.id} cannot be resized"
        if columns is not None:
            if not is_node_set(columns) or columns[:1] < (0,):
                raise DecisionError(f"{refused} to columns {columns!r}: they must be ascending ranges, (low, high, ...)")
            if nodes is not None and count(columns) != nodes:
                raise DecisionError(f"{refused} to {nodes} nodes: {count(columns)} columns are given ({text(columns)})")
            nodes = count(columns)
        if nodes is None:
            raise DecisionError(f"{refused}: neither nodes nor columns are given")
        refused += f" to {nodes} nodes"
        if (why := self._refusal(gang, nodes)) is not None:
            raise DecisionError(f"{refused}: {why}")
        if columns is None:
            if (columns := self._choose(gang, nodes)) is None:
                raise DecisionError(f"{refused}: too few nodes that it may have are idle until it ends")
        elif (barred := self.barred(gang, nodes)) and (barred := barred & as_mask(columns)):
            raise DecisionError(f"{refused}: nodes {text(from_mask(barred))} are reserved, or known to be down, before it ends")
        self._require_idle(gang, columns, refused)
        run, job, now = self._run, gang.owner, self._run.env.now
        phases = self._phases.resize(job, gang.nodes, nodes)
        before, after, image = whole(run, job, gang.nodes), whole(run, job, nodes), image_on(run, job, job.image, nodes)
        run.records.resized(job.index, now, columns, nodes, end_segment(run, gang, Status.RESIZED))
        saved, counts_from = (0 if each is None else each.work for each in (job.image, image))
        executed, gang.begun, gang.checkpointed = (
            converted(saved + ticks, before, after) - counts_from if ticks else 0
            for ticks in (gang.executed(), gang.begun, gang.checkpointed)
        )
        self._change(gang, columns, image, executed, phases)

    def _require_idle(self, gang: Execution, columns: NodeSet, refused: str) -> None:
        busy = without(without(columns, gang.columns), self._run.pool.idle_nodes.as_set())
        if busy:
            raise DecisionError(f"{refused}: nodes {text(busy)} are not idle")

    def may_shrink(self, gang: Execution, failing: Iterable[int]) -> bool:
        """Return whether a gang of which nodes fail goes on with its others: unless it would then reach into a window."""
        left = as_mask(gang.columns) & ~as_mask(from_members(failing))
        if self._refusal(gang, nodes := left.bit_count(), fails=True) is not None:
            return False
        if (reservations := self._run.reservations) is None:
            return True
        image, phases = self._left_by_failure(gang, nodes)[1:]
        phases += self._phases.execution(gang.owner, nodes, self._rest(gang.owner, nodes, image))
        ticks = self._phases.takes(phases)
        if gang.resizing:  # nodes of it may boot
            ticks += self._run.machine.boot
        now = self._run.env.now
        late = reservations.windows.barred(now, max(gang.expected_end - now, 1), gang.job.barred)  # it was before
        return not reservations.windows.barred(now, ticks, gang.job.barred) & left & ~late

    def _left_by_failure(self, gang: Execution, nodes: int) -> tuple[Image | None, Image | None, list[Phase]]:
        """Return what a failure leaves saved of a job, the same as an image of so many tasks, and what the restart costs."""
        job = gang.owner
        saved, _ = image_after(job.image, Status.FAILED, 0, gang.nodes, (), checkpointed=gang.checkpointed)
        image, phases = image_on(self._run, job, saved, nodes), self._phases.resize(job, gang.nodes, nodes, fails=True)
        # Without an image it begins again, and nothing is read.
        return saved, image, [phase for phase in phases if image is not None or not phase.tasks]

    def _rest(self, job: JobInSystem, nodes: int, image: Image | None) -> int:
        """Return how long a job is expected to execute on so many nodes from an image on, ticks."""
        return max(whole(self._run, job, nodes).length - (0 if image is None else image.work), 1)

    def shrink(self, gang: Execution, failing: Iterable[int]) -> None:
        """Let a gang go on with the nodes that do not fail, from what is in the checkpoint store of its job."""
        run, job = self._run, gang.owner
        columns = from_mask(as_mask(gang.columns) & ~as_mask(from_members(failing)))
        nodes = count(columns)
        run.records.resized(job.index, run.env.now, columns, nodes, end_segment(run, gang, Status.FAILED))
        job.image, image, phases = self._left_by_failure(gang, nodes)
        gang.begun = gang.checkpointed = 0
        self._change(gang, columns, image, 0, phases)

    def _change(self, gang: Execution, columns: NodeSet, image: Image | None, executed: int, phases: list[Phase]) -> None:
        """Give a gang other nodes, of whose number it has executed for so many ticks; it goes on after ``phases``."""
        run, job, nodes = self._run, gang.owner, count(columns)
        duration, length, gang.outcome = whole(run, job, nodes)
        job.image = image
        behind = 0 if image is None else image.work
        gang.duration, gang.length = duration - behind, max(length - behind, 1)
        run.pool.give_back(gang.columns)
        run.pool.take(gang.job, nodes, columns, to="be resized")
        gang.resize_to(columns, nodes, executed, phases)
        run.saved.hold(job, columns, job.suspended_on)
        self.changed = True
