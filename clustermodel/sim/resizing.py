"""Changes of the size of running gangs: which nodes a gang would have, and how it goes on with them."""

from __future__ import annotations

from collections.abc import Iterable

from clustermodel.errors import DecisionError
from clustermodel.machine.machine import Machine
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
from clustermodel.plans.windows import Windows
from clustermodel.policies.view import RUNNING, RunningJob
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import Ledger
from clustermodel.recording.run_attempts import Status
from clustermodel.sim.events import Clock
from clustermodel.sim.job_process import Execution, Image, JobInSystem, Phase, image_after
from clustermodel.sim.node_pool import NodePool, may_have
from clustermodel.sim.node_requests import NodeChoice
from clustermodel.sim.phases import Phases
from clustermodel.sim.saved_work import SavedWork
from clustermodel.sim.segments import JobTimes, converted, end_segment


class Resizes:
    """Resizes of gangs on dedicated nodes."""

    def __init__(
        self, env: Clock, machine: Machine, phases: Phases, times: JobTimes, pool: NodePool, choice: NodeChoice,
        saved: SavedWork, records: JobRecords, ledger: Ledger, windows: Windows | None,
    ) -> None:  # fmt: skip
        self._env, self._phases, self._times, self._pool, self._choice = env, phases, times, pool, choice
        self._saved, self._records, self._ledger, self._windows = saved, records, ledger, windows
        self._boot, self._differ = machine.boot, machine.node_speeds is not None
        self._is_charged_at_starts = machine.checkpointing.restart_charge == "on-start"
        self._shrinks = machine.on_failure == "shrink"
        self._whole = (1 << machine.processors) - 1 if windows is not None else 0
        self.changed = False  # whether a gang has been resized since the books were last settled

    def nodes_for(self, gang: RunningJob, nodes: int) -> NodeSet | None:
        """Return the nodes that a gang would have if it were resized now; ``None`` where it cannot be."""
        assert isinstance(gang, Execution)
        if self._refusal(gang, nodes) is not None:
            return None
        return self._choose(gang, nodes)

    def _refusal(self, gang: Execution, nodes: int, *, fails: bool = False) -> str | None:
        """Return why a gang cannot have a number of nodes, wherever they are."""
        sizes, transfers = gang.owner.sizes, self._phases.transfers
        if sizes is None:
            return "its job is not malleable"
        if not sizes.least <= nodes <= sizes.most:
            return f"its job may have {sizes.least} to {sizes.most} nodes"
        executes = gang.state is RUNNING or (fails and gang.resizing)
        closed = transfers.tasks_at_a_time == 0 and any(each.tasks for each in self._phases.resize(gang.owner, 1, 1))
        for refuses, why in (
            (gang.rows, "its nodes are shared in time"),
            (self._differ, "nodes differ in speed (NodeType.speed)"),
            (not self._is_charged_at_starts, "restarts are not charged on-start (Checkpointing.restart_charge)"),
            (gang.outcome is Status.REQUEUED, "it has been started with a time limit"),
            (not executes, f"it is {gang.state.value}"),
            (closed, "the store takes no tasks"),
        ):
            if refuses:
                return why
        return None

    def _choose(self, gang: Execution, nodes: int) -> NodeSet | None:
        """Return the lowest of its own nodes, or these and the lowest idle ones that it may have."""
        more = nodes - gang.nodes
        if more <= 0:
            columns: NodeSet | None = lowest_part(gang.columns, nodes)
        else:
            others = self._choice.idle_for(gang.job, more, self._eligible(gang, nodes))
            columns = None if others is None else union(gang.columns, others)
        if columns is None or ((barred := self.barred(gang, nodes)) and barred & as_mask(columns)):
            return None
        return columns

    def _eligible(self, gang: Execution, nodes: int) -> list[NodeSet | None]:
        """Return the sets of nodes of one of which a gang can have more: those that have all its own."""
        sets = [each for each in gang.job.sets_allowed() if may_have(gang.columns, (each,))]
        if self._windows is None:
            return sets
        now = self._env.now
        barred = self._windows.barred(now, max(self._expected_end(gang, nodes) + self._boot - now, 1), gang.job.barred)
        return [from_mask((self._whole if each is None else as_mask(each)) & ~barred) for each in sets]

    def barred(self, gang: RunningJob, nodes: int) -> int:
        """Return the nodes, a bitmask, that are reserved before a gang ends on so many; of its own only others."""
        if self._windows is None:
            return 0
        assert isinstance(gang, Execution)
        now = self._env.now
        late = self._windows.barred(now, max(gang.expected_end - now, 1), gang.job.barred) & as_mask(gang.columns)
        ticks = max(self._expected_end(gang, nodes) + self._boot - now, 1)
        return self._windows.barred(now, ticks, gang.job.barred) & ~late

    def _expected_end(self, gang: Execution, nodes: int) -> int:
        """Return when a gang can be expected to end that is resized now."""
        job, executed = gang.owner, gang.executed()
        before, after = self._times.whole(job, gang.nodes), self._times.whole(job, nodes)
        work = executed if job.image is None else job.image.work + executed
        left = max(after.length - converted(work, before, after), 1)
        phases = [*self._phases.resize(job, gang.nodes, nodes), *self._phases.execution(job, nodes, left)]
        return self._env.now + self._phases.takes(phases)

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
        job, times = gang.owner, self._times
        phases = self._phases.resize(job, gang.nodes, nodes)
        before, after, image = times.whole(job, gang.nodes), times.whole(job, nodes), times.image_on(job, job.image, nodes)
        ended = end_segment(gang, Status.RESIZED, self._records, self._ledger)
        self._records.resized(job.index, self._env.now, columns, nodes, ended)
        saved, counts_from = (0 if each is None else each.work for each in (job.image, image))
        executed, gang.begun, gang.checkpointed = (
            converted(saved + ticks, before, after) - counts_from if ticks else 0
            for ticks in (gang.executed(), gang.begun, gang.checkpointed)
        )
        self._change(gang, columns, image, executed, phases)

    def _require_idle(self, gang: Execution, columns: NodeSet, refused: str) -> None:
        busy = without(without(columns, gang.columns), self._pool.idle_nodes.as_set())
        if busy:
            raise DecisionError(f"{refused}: nodes {text(busy)} are not idle")

    def shrink_all(self, hit: list[Execution], failing: list[int]) -> list[Execution]:
        """Let gangs of which nodes fail go on with their others where they may; return those that may not."""
        stopped = []
        for gang in hit:
            if self._shrinks and self._may_shrink(gang, failing):
                self._shrink(gang, failing)
            else:
                stopped.append(gang)
        return stopped

    def _may_shrink(self, gang: Execution, failing: Iterable[int]) -> bool:
        """Return whether a gang of which nodes fail goes on with its others: unless it would then reach into a window."""
        left = as_mask(gang.columns) & ~as_mask(from_members(failing))
        if self._refusal(gang, nodes := left.bit_count(), fails=True) is not None:
            return False
        if self._windows is None:
            return True
        image, phases = self._left_by_failure(gang, nodes)[1:]
        phases += self._phases.execution(gang.owner, nodes, self._rest(gang.owner, nodes, image))
        ticks = self._phases.takes(phases)
        if gang.resizing:  # nodes of it may boot
            ticks += self._boot
        now = self._env.now
        late = self._windows.barred(now, max(gang.expected_end - now, 1), gang.job.barred)  # it was before
        return not self._windows.barred(now, ticks, gang.job.barred) & left & ~late

    def _left_by_failure(self, gang: Execution, nodes: int) -> tuple[Image | None, Image | None, list[Phase]]:
        """Return what a failure leaves saved of a job, the same as an image of so many tasks, and what the restart costs."""
        job = gang.owner
        saved, _ = image_after(job.image, Status.FAILED, 0, gang.nodes, (), checkpointed=gang.checkpointed)
        image, phases = self._times.image_on(job, saved, nodes), self._phases.resize(job, gang.nodes, nodes, fails=True)
        # Without an image it begins again, and nothing is read.
        return saved, image, [phase for phase in phases if image is not None or not phase.tasks]

    def _rest(self, job: JobInSystem, nodes: int, image: Image | None) -> int:
        """Return how long a job is expected to execute on so many nodes from an image on, ticks."""
        return max(self._times.whole(job, nodes).length - (0 if image is None else image.work), 1)

    def _shrink(self, gang: Execution, failing: Iterable[int]) -> None:
        """Let a gang go on with the nodes that do not fail, from what is in the checkpoint store of its job."""
        job = gang.owner
        columns = from_mask(as_mask(gang.columns) & ~as_mask(from_members(failing)))
        nodes = count(columns)
        ended = end_segment(gang, Status.FAILED, self._records, self._ledger)
        self._records.resized(job.index, self._env.now, columns, nodes, ended)
        job.image, image, phases = self._left_by_failure(gang, nodes)
        gang.begun = gang.checkpointed = 0
        self._change(gang, columns, image, 0, phases)

    def _change(self, gang: Execution, columns: NodeSet, image: Image | None, executed: int, phases: list[Phase]) -> None:
        """Give a gang other nodes, of whose number it has executed for so many ticks; it goes on after ``phases``."""
        job, nodes = gang.owner, count(columns)
        duration, length, gang.outcome = self._times.whole(job, nodes)
        job.image = image
        behind = 0 if image is None else image.work
        gang.duration, gang.length = duration - behind, max(length - behind, 1)
        self._pool.give_back(gang.columns)
        self._pool.take(gang.job, nodes, columns, to="be resized")
        gang.resize_to(columns, nodes, executed, phases)
        self._saved.hold(job, columns, job.suspended_on)
        self.changed = True
