"""Preemptive schedulers that run the first jobs of an order which changes over time, and preempt the rest.

The order is a policy's own: by remaining time (:class:`Srtf`) or service (:class:`Srsf`), by attained service
(:mod:`clustermodel.policies.least_attained`), or the queue order (:class:`FifoPreempt`).  At each decision jobs take nodes in
that order, running or waiting, as long as they fit; running jobs that get none are preempted.  This is the rule of the
simulator of Zhao et al. 2022 (section 6), which preempts by checkpoint and restart on interchangeable GPUs.

Y. Zhao, Y. Liu, Y. Peng, Y. Zhu, X. Liu and X. Jin, "Multi-Resource Interleaving for Deep Learning Training", SIGCOMM 2022,
section 6, compares its scheduler Muri with SRTF and SRSF; J. Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep
Learning", NSDI 2019, section 3.2, calls the second one "shortest-remaining-service-first".
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from clustermodel.policies.interface import Checkpoint, Decision, Kill, Reason, Setup, Start, Suspend, WakeAt, dependencies_of
from clustermodel.policies.predictors import Lengths, Predictor, predictor_of
from clustermodel.policies.preemption_modes import Mode, mode_of, require_store, uses_of_mode
from clustermodel.policies.suspension_memory import IdleMemory
from clustermodel.policies.view import Batch, QueuedJob, RunningJob, View
from clustermodel.schedule.node_set import from_mask
from clustermodel.ticks import to_ticks
from clustermodel.validation import choice, flag, require_seconds

VictimChoice = Callable[[RunningJob, int], int]
VICTIMS: Final[dict[str, VictimChoice | None]] = {
    "order": None,
    "least-lost": lambda gang, now: gang.nodes * (now - gang.start),
    "latest-start": lambda gang, _now: -gang.start,
    "largest": lambda gang, _now: -gang.nodes,
}
"""Which of the running jobs behind a waiting one yield first: the smallest value first; ``None``: the last in the order."""


@dataclass(frozen=True, kw_only=True)
class PreemptiveScheduler:
    """What the preemptive schedulers share.

    Args:
        mode: what preemption does to a job: ``"checkpoint"``, ``"suspend"`` or ``"kill"``.  A job that would be one suspended
            job too many on a node runs on.  What is suspended of a job is discarded where one before it needs the memory.
        round_s: decisions are made at the multiples of this time only, seconds; 0: at every event; ``None``: as the machine has
            it (``Machine.round_s``).
        min_run_s: guaranteed run time: a job is not preempted before this time has passed since its start, seconds.
        victim: which running jobs yield to a waiting one.  ``"order"``: those that get no nodes if jobs take them in the
            scheduler's order.  Otherwise jobs run on as long as they can, and a waiting job preempts only as many of the jobs
            behind it as it needs: those that have held the least node time since their start (``"least-lost"``), those
            that started last (``"latest-start"``), or the largest (``"largest"``); of equal ones the last in the order.
        skip: whether jobs behind one that does not fit may start.

    Raises:
        SpecificationError: an argument has a value that is not allowed, or (``start``) the machine takes no checkpoints.
    """

    name: ClassVar[str]
    mode: str | Mode = "checkpoint"
    round_s: float | None = None
    min_run_s: float = 0.0
    victim: str = "order"
    skip: bool = True

    def __post_init__(self) -> None:
        name = self.name
        mode_of(name, self.mode)
        if self.round_s is not None:
            require_seconds(f"{name}: round_s", self.round_s)
        require_seconds(f"{name}: min_run_s", self.min_run_s)
        choice(f"{name}: victim", self.victim, VICTIMS)
        flag(f"{name}: skip", self.skip)

    @property
    def depends_on(self) -> frozenset[str]:
        """The costs of preemption."""
        return uses_of_mode(mode_of(self.name, self.mode))

    @abstractmethod
    def start(self, setup: Setup) -> PreemptiveRun:
        """Start a run."""


class PreemptiveRun:
    """One run of a preemptive scheduler.

    Args:
        policy: what it does.
        setup: of the run.
        rule: why a job starts, for :class:`~clustermodel.policies.interface.Reason`.
    """

    def __init__(self, policy: PreemptiveScheduler, setup: Setup, rule: str) -> None:
        self._mode = mode_of(policy.name, policy.mode)
        require_store(policy.name, self._mode, setup.machine)
        self._nodes = setup.nodes
        self._round = setup.machine.round if policy.round_s is None else to_ticks(policy.round_s)
        self._min_run = to_ticks(policy.min_run_s)
        self._victim = VICTIMS[policy.victim]
        self._skip = policy.skip
        self._reason = Reason(rule) if setup.explain else None
        self._order: list[QueuedJob] = []  # all jobs in the system; equal ones stay as they were
        self._to_start: list[QueuedJob] = []  # jobs that nodes have been assigned to, which other jobs still hold
        self._undecided = False  # whether something has happened since the last decision
        self._alarm: int | None = None

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Preempt running jobs that are not among those to run; start those that fit into the idle nodes."""
        self._observe(batch, view)
        decisions: list[Decision] = []
        self._undecided = True
        if not (self._round and view.now % self._round):
            self._undecided = False
            self._sort(view)
            decisions += self._choose(view)
        decisions += self._start_what_fits(view)
        alarm = self._next_decision(view, _running_after(decisions, view))
        if alarm != self._alarm or batch.alarm:
            self._alarm = alarm
            decisions.append(WakeAt(time=alarm))
        return decisions

    def _observe(self, batch: Batch, view: View) -> None:
        """Take note of jobs that have arrived or left."""
        left = {gang.job.id for gang in batch.ended if gang.job.id not in view.waiting}
        if left:
            self._order = [job for job in self._order if job.id not in left]
        self._order += batch.submitted

    # The order.

    @abstractmethod
    def _sort(self, view: View) -> None:
        """Bring ``_order`` up to date; jobs that are equal keep their places."""

    def _next_change(self, view: View, running: Mapping[QueuedJob, int]) -> int | None:
        """Return when, after now, the order will change although nothing happens, ticks; ``None``: never.

        Args:
            view: of the machine.
            running: the jobs that run from now on, with their starts.
        """
        return None

    # Choosing.

    def _choose(self, view: View) -> Iterable[Decision]:
        """Decide which jobs are to run; return the preemptions, and remember the jobs to start."""
        kept = {gang.job.id for gang in view.running.values() if not gang.stopping and not self._may_stop(gang, view)}
        choose = self._by_order if self._victim is None else self._by_victims
        self._to_start, stops = choose(view, kept)
        return [self._stop(gang.job) for gang in stops]

    def _may_stop(self, gang: RunningJob, view: View) -> bool:
        if view.now < gang.start + self._min_run:
            return False
        return self._mode != "suspend" or view.can_suspend(gang)

    def _by_order(self, view: View, kept: Collection[int]) -> tuple[list[QueuedJob], list[RunningJob]]:
        """Let jobs take nodes in order; return those to start, and those that get none."""
        running, waiting = view.running, view.waiting
        left = view.up - sum(running[job_id].nodes for job_id in kept)
        to_run, starts = set(kept), []
        for job in self._order:
            if job.id in kept or (job.id in running and running[job.id].stopping):
                continue
            if job.nodes <= left:
                left -= job.nodes
                to_run.add(job.id)
                if job.id in waiting:
                    starts.append(job)
                if not left:
                    break
            elif not self._skip:
                break
        return starts, [gang for gang in running.values() if gang.job.id not in to_run and not gang.stopping]

    def _by_victims(self, view: View, kept: Collection[int]) -> tuple[list[QueuedJob], list[RunningJob]]:
        """Let waiting jobs, in order, preempt as many of the jobs behind them as they need; return who starts and who stops."""
        running = view.running
        free = view.idle + sum(gang.nodes for gang in running.values() if gang.stopping)
        behind = {
            job.id: running[job.id]
            for job in self._order
            if job.id in running and job.id not in kept and not running[job.id].stopping
        }  # in order
        to_gain = sum(gang.nodes for gang in behind.values())
        starts, stops = [], []
        for job in self._order:
            if (gang := behind.pop(job.id, None)) is not None:
                to_gain -= gang.nodes
            elif job.id not in view.waiting:
                continue
            elif job.nodes <= free + to_gain:
                for gang in self._victims(behind, job.nodes - free, view.now):
                    stops.append(behind.pop(gang.job.id))
                    free += gang.nodes
                    to_gain -= gang.nodes
                free -= job.nodes
                starts.append(job)
            elif not self._skip:
                break
            if not free + to_gain:
                break
        return starts, stops

    def _victims(self, behind: dict[int, RunningJob], missing: int, now: int) -> list[RunningJob]:
        """Return the jobs that yield so that ``missing`` nodes come free, without those that need not."""
        victims: list[RunningJob] = []
        if missing > 0:
            assert self._victim is not None
            by_value = [(self._victim(gang, now), -place, gang) for place, gang in enumerate(behind.values())]
            for _, _, gang in sorted(by_value):
                victims.append(gang)
                missing -= gang.nodes
                if missing <= 0:
                    break
        for gang in victims[::-1]:
            if missing + gang.nodes <= 0:
                victims.remove(gang)
                missing += gang.nodes
        return victims

    def _stop(self, job: QueuedJob) -> Decision:
        if self._mode == "kill":
            return Kill(job=job, requeue=True)
        return Suspend(job=job) if self._mode == "suspend" else Checkpoint(job=job)

    def _start_what_fits(self, view: View) -> list[Decision]:
        """Start the jobs that were chosen and fit; the others wait until the preempted jobs have left their nodes."""
        decisions: list[Decision] = []
        idle, later, memory = view.idle, [], self._idle_memory(view)
        for job in self._to_start:
            if job.id not in view.waiting:
                continue
            place = None if memory is None or job.nodes > idle else memory.place(job)
            if memory is not None and place is not None:
                memory.take(job, place)
                decisions += [Kill(job=other, requeue=True) for other in place.discarded]
            if job.nodes <= idle and (memory is None or place is not None):
                idle -= job.nodes
                columns = None if place is None else from_mask(place.nodes)
                decisions.append(Start(job=job, columns=columns, reason=self._reason))
            else:
                later.append(job)
        self._to_start = later
        return decisions

    def _idle_memory(self, view: View) -> IdleMemory | None:
        """Return the idle nodes and their memory, ``None`` where no suspended job can be in the way."""
        free = view.free_memory() if self._to_start and self._mode == "suspend" else None
        if free is None:
            return None
        rank = {job: place for place, job in enumerate(self._order)}
        return IdleMemory(view, self._nodes, free, rank.__getitem__)

    def _next_decision(self, view: View, running: Mapping[QueuedJob, int]) -> int | None:
        """Return when to decide next although nothing happens until then, ticks."""
        due: list[int] = []
        if view.waiting and self._min_run:
            due += [end for start in running.values() if (end := start + self._min_run) > view.now]
        if (change := self._next_change(view, running)) is not None:
            due.append(change)
        if self._undecided and view.waiting:
            due.append(view.now)
        if not due:
            return None
        return min(due) if not self._round else -(-min(due) // self._round) * self._round


def _running_after(decisions: Iterable[Decision], view: View) -> dict[QueuedJob, int]:
    """Return the jobs that run once these decisions have been carried out, with their starts."""
    running = {gang.job: gang.start for gang in view.running.values() if not gang.stopping}
    for decision in decisions:
        if isinstance(decision, Start):
            running[decision.job] = view.now
        elif isinstance(decision, Checkpoint | Suspend | Kill):
            running.pop(decision.job, None)  # a waiting job of which what is suspended is discarded does not run
    return running


@dataclass(frozen=True, kw_only=True)
class FifoPreempt(PreemptiveScheduler):
    """Preemptive first come, first served: jobs take nodes in queue order and preempt those behind them.

    The baseline of the preemptive schedulers.  Jobs behind one that does not fit run until it does.
    """

    name: ClassVar[str] = "fifo-preempt"

    def start(self, setup: Setup) -> PreemptiveRun:
        """Start a run."""
        return _FifoRun(self, setup, "it fits, in queue order")


class _FifoRun(PreemptiveRun):
    def _sort(self, view: View) -> None:
        self._order.sort(key=lambda job: job.queue_order)


@dataclass(frozen=True, kw_only=True)
class Predicted(PreemptiveScheduler):
    """A preemptive scheduler that goes by expected run times.

    Args:
        predictor: of run times: a name (:data:`~clustermodel.policies.predictors.PREDICTORS`) or an object; asked once for
            each job, when it is submitted.
        mode, round_s, min_run_s, victim, skip: as for :class:`PreemptiveScheduler`.

    Raises:
        SpecificationError: as for :class:`PreemptiveScheduler`.
    """

    predictor: str | Predictor = "perfect"

    def __post_init__(self) -> None:
        super().__post_init__()
        predictor_of(self.name, self.predictor)

    @property
    def depends_on(self) -> frozenset[str]:
        """The costs of preemption, and what the predictor depends on."""
        return super().depends_on | dependencies_of(predictor_of(self.name, self.predictor))


@dataclass(frozen=True, kw_only=True)
class Srtf(Predicted):
    """Shortest remaining time first: jobs take nodes in the order of their remaining run times.

    With perfect predictions, free preemption and jobs of one processor, no schedule of one processor has a lower mean response
    time (Schrage 1968).  Jobs with equal remaining times keep their order.
    """

    name: ClassVar[str] = "srtf"

    def start(self, setup: Setup) -> PreemptiveRun:
        """Start a run."""
        return _PredictedRun(self, setup, "it fits, in the order of remaining times", by_service=False)


@dataclass(frozen=True, kw_only=True)
class Srsf(Predicted):
    """Shortest remaining service first: jobs take nodes in the order of remaining run time times nodes."""

    name: ClassVar[str] = "srsf"

    def start(self, setup: Setup) -> PreemptiveRun:
        """Start a run."""
        return _PredictedRun(self, setup, "it fits, in the order of remaining service", by_service=True)


class _PredictedRun(PreemptiveRun):
    def __init__(self, policy: Predicted, setup: Setup, rule: str, *, by_service: bool) -> None:
        super().__init__(policy, setup, rule)
        self._by_service = by_service
        self._lengths = Lengths(predictor_of(policy.name, policy.predictor), setup, once=True)
        self._left: dict[int, int] = {}  # job id -> expected remaining run time when it was last known, ticks

    def _observe(self, batch: Batch, view: View) -> None:
        super()._observe(batch, view)
        self._lengths.observe(batch, view)
        for gang in batch.ended:
            self._left.pop(gang.job.id, None)
        for job in (*batch.submitted, *batch.requeued):
            self._left[job.id] = max(self._lengths.predicted(job) - view.saved(job), 1)

    def _sort(self, view: View) -> None:
        left = self._left
        for gang in view.running.values():  # one tick is left where a prediction has expired
            left[gang.job.id] = max(self._lengths.predicted(gang.job) - view.progress(gang), 1)
        if self._by_service:
            self._order.sort(key=lambda job: left[job.id] * job.nodes)
        else:
            self._order.sort(key=lambda job: left[job.id])
