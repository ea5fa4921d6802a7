"""Preemptive schedulers that run the first jobs of an order which changes over time, and preempt the rest.

At each decision jobs take nodes in a policy's order, running or waiting, as long as they fit; running jobs that get none are
preempted.  This is the rule of the simulator of Zhao et al. 2022, which preempts by checkpoint and restart on interchangeable
GPUs.  Y. Zhao et al., "Multi-Resource Interleaving for Deep Learning Training", SIGCOMM 2022, section 6, compares its scheduler
Muri with SRTF and SRSF; J. Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep Learning", NSDI 2019, section 3.2,
calls the second one "shortest-remaining-service-first".
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from heapq import merge
from math import ceil, inf
from operator import attrgetter
from typing import Any, ClassVar, Final

from clustermodel.errors import SpecificationError, refused
from clustermodel.machine.machine import Machine
from clustermodel.machine.node_set import NodeSet, from_mask
from clustermodel.plans.make import idle_to_take, nodes_of, pools_of, reallocation_of
from clustermodel.plans.pools import Split
from clustermodel.plans.reallocation import NodesUp, Reallocation
from clustermodel.policies import preemption
from clustermodel.policies.interface import Checkpoint, Decision, Reason, Run, Setup, Start, WakeAt, dependencies_of
from clustermodel.policies.predictors import Lengths, Predictor, predictor_of
from clustermodel.policies.preemption import DEPENDENCIES, PREEMPTS, VICTIMS, Preemption, Victims
from clustermodel.policies.view import Batch, QueuedJob, RunningJob, View
from clustermodel.ticks import TICKS_PER_SECOND, to_ticks
from clustermodel.validation import choice, flag, require_number, require_seconds

_IN_QUEUE_ORDER, _NODES = attrgetter("queue_order"), attrgetter("nodes")


@dataclass(frozen=True, kw_only=True)
class PreemptiveScheduler:
    """What the preemptive schedulers share.

    Args:
        mode: what preemption does to a job: ``"checkpoint"``, ``"suspend"`` or ``"kill"``.  A job that would be one suspended
            job too many on a node runs on.  What is suspended of a job is discarded where one before it needs the memory.
        round_s: decisions are made at the multiples of this time only, seconds; 0: at every event; ``None``: as the machine has
            it (``Machine.round_s``).  Jobs are preempted then, and start then or, if they were chosen for nodes of preempted
            jobs, when these have left; nodes in the epilog of a job that has completed are not assigned.
        min_run_s: guaranteed run time: a job is not preempted before this time has passed since its start, seconds.
        victim: which running jobs yield to a waiting one.  ``"order"``: those that get no nodes if jobs take them in the
            scheduler's order.  Otherwise jobs run on as long as they can, and a waiting job preempts only as many jobs as it
            needs: ``"fewest"`` jobs, of equally few the last in the order; as few, those that started last
            (``"latest-start"``) or the ``"largest"``; or those that together have held the least node time since their starts
            (``"least-lost"``).  Only nodes that the waiting job may have count; where its shape or memory is in the way, more
            yield until it fits.  A job that has been preempted in this way takes no nodes back from jobs of its priority that
            ran on.
        preempts: which running jobs a waiting one may preempt: ``"behind"``, those behind it in the scheduler's order, or
            ``"lower-priority"``, of these only those of lower priority, as Slurm's ``preempt/qos`` and
            ``preempt/partition_prio``: jobs of equal priority never preempt each other.  Jobs then run on as long as they can
            with ``victim="order"`` too, and the last in the order yield.
        skip: whether jobs behind one that does not fit may start.
    """

    name: ClassVar[str]
    takes_partitions: ClassVar[bool] = True
    takes_reservations: ClassVar[bool] = True
    takes_shapes: ClassVar[bool] = True
    rule: ClassVar[str]  # why a job starts
    in_run: ClassVar[type[PreemptiveRun]]
    mode: str = "checkpoint"
    round_s: float | None = None
    min_run_s: float = 0.0
    victim: str = "order"
    preempts: str = "behind"
    skip: bool = True

    def __post_init__(self) -> None:
        choice(f"{self.name}: mode", self.mode, DEPENDENCIES)
        if self.round_s is not None:
            require_seconds(f"{self.name}: round_s", self.round_s)
        require_seconds(f"{self.name}: min_run_s", self.min_run_s)
        choice(f"{self.name}: victim", self.victim, VICTIMS)
        choice(f"{self.name}: preempts", self.preempts, PREEMPTS)
        flag(f"{self.name}: skip", self.skip)

    @property
    def depends_on(self) -> frozenset[str]:
        return DEPENDENCIES[self.mode]

    def round_on(self, machine: Machine) -> int:
        """Return the length of a round, ticks; 0: decisions are made at every event."""
        return machine.round if self.round_s is None else to_ticks(self.round_s)

    def step_on(self, machine: Machine) -> int:
        """Return of which time, ticks, decisions are made at the multiples only; 0: at any time."""
        return self.round_on(machine)

    def start(self, setup: Setup) -> PreemptiveRun:
        return self.in_run(self, setup)


class PreemptiveRun:
    """One run of a preemptive scheduler."""

    def __init__(self, policy: Any, setup: Setup) -> None:
        self._mode, self._skip = policy.mode, policy.skip
        preemption.require_store(policy.name, self._mode, setup.machine)
        preemption.require_own_memory(policy.name, self._mode, setup)
        self._round = policy.round_on(setup.machine)
        self._min_run = to_ticks(policy.min_run_s)
        lower = policy.preempts == "lower-priority"
        in_order = policy.victim == "order" and not lower  # who runs then follows from the order alone
        self._victims = None if in_order else Victims(policy.victim, lower_priority=lower)
        self._reason = Reason(policy.rule) if setup.explain else None
        self._order: list[QueuedJob] = []  # all jobs in the system; equal ones stay as they were
        self._gone: set[int] = set()  # ids of those that have left it
        self._pools, self._nodes = pools_of(setup), nodes_of(setup)
        self._may_lack = self._mode == "suspend" or (self._mode == "checkpoint" and bool(setup.machine.windows))
        self._to_start: dict[QueuedJob, Split | None] = {}  # with the nodes assigned to them, which others may still hold
        self._preempted: set[int] = set()  # ids of jobs that have been preempted, and still hold their nodes
        self._have_left = False  # whether some of them have left these now
        self._alarm: int | None = None

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Preempt running jobs that are not among those to run; start those that fit into the idle nodes."""
        self._observe(batch, view)
        decisions: list[Decision] = []
        decides = not (self._round and view.now % self._round)
        if decides:
            self._sort(view)
            decisions += self._choose(view)
        decisions += self._start_in_round(view, decides=decides)
        alarm = self._next_decision(view, decisions, decides=decides)
        if alarm == self._alarm and not batch.alarm:
            return [*decisions]
        self._alarm = alarm
        return [*decisions, WakeAt(time=alarm)]

    def _start_in_round(self, view: View, *, decides: bool) -> list[Decision]:
        """Start chosen jobs that fit; in rounds when these begin, and when preempted jobs have left, not when others end."""
        starts = self._start_what_fits(view) if decides or self._have_left or not self._round else []
        if self._round and not self._preempted:
            self._to_start = {}  # those that do not fit now wait for the next round
        return starts

    def _observe(self, batch: Batch, view: View) -> None:
        """Take note of jobs that have arrived or left."""
        self._have_left = bool(self._preempted) and any(gang.job.id in self._preempted for gang in batch.ended)
        if self._have_left:
            self._preempted.difference_update([gang.job.id for gang in batch.ended])
        gone = {gang.job.id for gang in batch.ended if gang.job.id not in view.waiting}
        if batch.reservations:  # those that have missed their last chance are not told of
            gone.update([job.id for job in self._order if job.id not in view.waiting and job.id not in view.running])
        if gone:
            self._order = [job for job in self._order if job.id not in gone]
        self._gone = gone
        self._order += batch.submitted

    def _sort(self, view: View) -> None:
        """Bring ``_order`` up to date, by default with queue order; jobs that are equal keep their places."""
        self._order.sort(key=_IN_QUEUE_ORDER)

    def _next_change(self, view: View, running: Mapping[QueuedJob, int]) -> int | None:
        """Return when the order will change next although nothing happens; ``running`` are jobs from now on, with starts."""
        return None

    def _choose(self, view: View) -> list[Preemption]:
        """Decide which jobs are to run; return the preemptions, and remember the jobs to start."""
        mode, may_lack, latest, running = self._mode, self._may_lack, view.now - self._min_run, view.running
        stoppable: dict[int, RunningJob] = {}  # in order
        leaving: list[RunningJob] = []  # whose nodes can be assigned to jobs that start then; in rounds, preempted ones
        for job in self._order:
            if job.id not in running:
                continue
            gang = running[job.id]
            if gang.stopping:
                if not self._round or job.id in self._preempted:
                    leaving.append(gang)
            elif gang.start <= latest and not (may_lack and not preemption.can_be_saved(gang, mode, view)):
                stoppable[job.id] = gang
        nodes = reallocation_of(self._pools, self._nodes, view, stoppable.values(), leaving)
        if self._victims is None:
            self._to_start = in_order(nodes, self._order, view.waiting, stoppable, skip=self._skip)
            stops = [gang for gang in running.values() if gang.job.id in stoppable]
        else:
            self._to_start, stops = self._by_victims(nodes, view, stoppable, self._victims)
        self._preempted.update([gang.job.id for gang in stops])
        return [preemption.preempt(gang.job, self._mode) for gang in stops]

    def _by_victims(
        self, nodes: Reallocation, view: View, behind: dict[int, RunningJob], victims: Victims
    ) -> tuple[dict[QueuedJob, Split | None], list[RunningJob]]:
        """Let waiting jobs, in order, preempt as few of the jobs behind them as they need; return those to start, and these."""
        victims.begin(view)
        to_start: dict[QueuedJob, Split | None] = {}
        stops: list[RunningJob] = []
        for job in self._order:
            if job.id in behind:
                nodes.lose(behind.pop(job.id))
                continue
            if job.id not in view.waiting:
                continue
            if job.nodes <= nodes.most:
                split = nodes.take_free(job)
                if split is None and (chosen := victims.choose(nodes.lacks(job, victims.may_preempt(job, behind)), view.now)):
                    for gang in chosen:
                        stops.append(behind.pop(gang.job.id))
                        nodes.gain(gang)
                    split = nodes.take_free(job)
                if split is not None:
                    to_start[job] = split
                    continue
            if not self._skip:
                nodes.close(job)
            if not nodes.most:
                break
        return to_start, stops

    def _start_what_fits(self, view: View) -> list[Decision]:
        """Start the jobs that were chosen and fit; the others wait until the preempted jobs have left their nodes."""
        if not self._to_start:
            return []
        decisions: list[Decision] = []
        later: dict[QueuedJob, Split | None] = {}
        memory, suspends = None, self._mode == "suspend"
        if suspends and (free := view.free_memory()) is not None:  # suspended jobs can be in the way
            rank = {job: place for place, job in enumerate(self._order)}
            memory = preemption.IdleMemory(view, free, rank.__getitem__)
        idle = idle_to_take(self._pools, self._nodes, view)
        for job, split in self._to_start.items():
            if job.id not in view.waiting:
                continue
            if memory is not None:
                if (place := memory.place(job)) is None:
                    later[job] = split
                    continue
                decisions += memory.take(job, place)
                columns: NodeSet | None = from_mask(place.nodes)
            elif split is None or not idle.may_take(job, split):  # the jobs that had the nodes may have taken too long to leave
                later[job] = split
                continue
            else:
                columns = idle.take_split(split, view.suspended_on(job) if suspends else None)
            decisions.append(Start(job=job, columns=columns, reason=self._reason))
        self._to_start = later
        return decisions

    def _next_decision(self, view: View, decisions: Iterable[Any], *, decides: bool) -> int | None:
        """Return when to decide next although nothing happens until then, ticks."""
        running = {gang.job: gang.start for gang in view.running.values() if not gang.stopping}
        for decision in decisions:
            if isinstance(decision, Start):
                running[decision.job] = view.now
            else:
                running.pop(decision.job, None)  # it does not run if only what is suspended of it is discarded
        due = [] if decides or not view.waiting else [view.now]
        if view.waiting and self._min_run:
            due += [end for start in running.values() if (end := start + self._min_run) > view.now]
        if (change := self._next_change(view, running)) is not None:
            due.append(change)
        if not due:
            return None
        return min(due) if not self._round else -(-min(due) // self._round) * self._round


def in_order(
    nodes: Reallocation,
    order: Iterable[QueuedJob],
    may_start: Container[int],
    stoppable: dict[int, RunningJob],
    *,
    skip: bool,
) -> dict[QueuedJob, Split | None]:
    """Let jobs take nodes in order; return those to start, with these.

    Of the running jobs that are ``stoppable``, only those are left there that do not keep their nodes.
    """
    to_start: dict[QueuedJob, Split | None] = {}
    for job in order:
        if job.id in stoppable:
            if nodes.keep(stoppable[job.id]):
                del stoppable[job.id]
                if not nodes.most:
                    break
                continue
        elif job.id not in may_start:
            continue
        elif job.nodes <= nodes.most and (split := nodes.take(job)) is not None:
            to_start[job] = split
            if not nodes.most:
                break
            continue
        if not skip:
            nodes.close(job)
            if not nodes.most:
                break
    return to_start


@dataclass(frozen=True, kw_only=True)
class FifoPreempt(PreemptiveScheduler):
    """Preemptive first come, first served: jobs take nodes in queue order and preempt those behind them, as few as they need.

    The baseline of the preemptive schedulers.  Jobs behind one that does not fit run until it does.  With
    ``preempts="lower-priority"`` only priorities preempt, not places in the queue.

    Args:
        victim: as for :class:`PreemptiveScheduler`; here ``"fewest"`` is the default.
        mode, round_s, min_run_s, preempts, skip: as for :class:`PreemptiveScheduler`.
    """

    name = "fifo-preempt"
    rule = "it fits, in queue order"
    in_run = PreemptiveRun
    victim: str = "fewest"


class _PredictedRun(PreemptiveRun):
    def __init__(self, policy: Any, setup: Setup) -> None:
        super().__init__(policy, setup)
        self._by_service = policy.by_service
        self._lengths = Lengths(policy, setup, once=True)
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
        by_service = self._by_service
        self._order.sort(key=lambda job: left[job.id] * job.nodes if by_service else left[job.id])


@dataclass(frozen=True, kw_only=True)
class Srtf(PreemptiveScheduler):
    """Shortest remaining time first: jobs take nodes in the order of their remaining run times.

    With perfect predictions, free preemption and jobs of one processor, no schedule of one processor has a lower mean response
    time (Schrage 1968).  Jobs with equal remaining times keep their order.

    Args:
        predictor: of run times: a name (:data:`~clustermodel.policies.predictors.PREDICTORS`) or an object; asked once for
            each job, when it is submitted.
        mode, round_s, min_run_s, victim, preempts, skip: as for :class:`PreemptiveScheduler`.
    """

    name = "srtf"
    rule = "it fits, in the order of remaining times"
    in_run = _PredictedRun
    takes_order: ClassVar[bool] = False
    by_service: ClassVar[bool] = False  # whether remaining times count times nodes
    predictor: str | Predictor = "perfect"

    def __post_init__(self) -> None:
        super().__post_init__()
        predictor_of(self.name, self.predictor)

    @property
    def depends_on(self) -> frozenset[str]:
        return super().depends_on | dependencies_of(predictor_of(self.name, self.predictor))


@dataclass(frozen=True, kw_only=True)
class Srsf(Srtf):
    """Shortest remaining service first: jobs take nodes in the order of remaining run time times nodes."""

    name = "srsf"
    rule = "it fits, in the order of remaining service"
    by_service = True


Thresholds = float | str | Iterable[float | str]


@dataclass
class _Service:
    """What a job has had in :class:`Las`."""

    queue: int = 0
    held: int = 0  # for how long it has held its nodes, ticks
    waited: int = 0  # for how long it has waited since its first start or last promotion, ticks


class _LasRun(PreemptiveRun):
    def __init__(self, policy: Any, setup: Setup) -> None:
        super().__init__(policy, setup)
        self._thresholds = [round(limit * TICKS_PER_SECOND) for limit in _ascending(policy.thresholds) if limit < inf]
        self._promote: float | None = policy.promote
        self._of: dict[int, _Service] = {}  # by job id
        self._updated = 0

    def _observe(self, batch: Batch, view: View) -> None:
        super()._observe(batch, view)
        since, self._updated = self._updated, view.now
        for job in batch.submitted:
            self._of[job.id] = _Service()
        for gang in (*batch.ended, *view.running.values()):  # a gang that has ended and is not stopping was hit by a failure
            if not gang.stopping:
                self._of[gang.job.id].held += view.now - max(since, gang.start)
        for gang in batch.ended:
            if gang.job.id not in view.waiting:
                del self._of[gang.job.id]
        if self._promote is not None:
            requeued = {job.id for job in batch.requeued}
            for job_id in view.waiting:
                if self._of[job_id].held and job_id not in requeued:
                    self._of[job_id].waited += view.now - since

    def _sort(self, view: View) -> None:
        moved = [job for job in self._order if self._moves(job, view)]
        if moved:
            ids = {job.id for job in moved}
            self._order = [job for job in self._order if job.id not in ids] + sorted(moved, key=_IN_QUEUE_ORDER)
        self._order.sort(key=lambda job: self._of[job.id].queue)

    def _moves(self, job: QueuedJob, view: View) -> bool:
        """Demote or promote a job by one decision; return whether it is in another queue now."""
        service = self._of[job.id]
        if job.id in view.waiting:
            if self._promote is None or not service.queue or service.waited < self._promote * service.held:
                return False
            self._of[job.id] = _Service()
            return True
        if service.queue == len(self._thresholds) or service.held * job.nodes < self._thresholds[service.queue]:
            return False
        service.queue += 1
        return True

    def _choose(self, view: View) -> list[Preemption]:
        stops = super()._choose(view)
        runs = (view.running.keys() - {stop.job.id for stop in stops}) | {job.id for job in self._to_start}
        self._order.sort(key=lambda job: (self._of[job.id].queue, job.id not in runs))
        return stops

    def _next_change(self, view: View, running: Mapping[QueuedJob, int]) -> int | None:
        """Return when the next job reaches a threshold or is promoted, ticks."""
        times = []
        for job in running:
            service = self._of[job.id]
            if service.queue < len(self._thresholds):
                whole_seconds = -(-self._thresholds[service.queue] // (job.nodes * TICKS_PER_SECOND))
                times.append(view.now + max(whole_seconds * TICKS_PER_SECOND - service.held, 1))
        if self._promote is not None:
            waiting = (self._of[job_id] for job_id in view.waiting)
            times += [view.now + max(ceil(self._promote * of.held) - of.waited, 1) for of in waiting if of.queue]
        return min(times, default=None)


@dataclass(frozen=True, kw_only=True)
class Las(PreemptiveScheduler):
    """Least attained service: jobs take nodes queue after queue, by how much node time they have had (Gu et al. 2019).

    Preemptive scheduling without knowing run times: the discretised two-dimensional LAS of Tiresias, section 3.2.

    * The *attained service* of a job is its nodes times the time for which it has held them running, overheads included.
    * A job enters the first queue.  When its attained service reaches a threshold, it moves to the end of the next queue.
    * Jobs take nodes queue after queue; in each queue running jobs come before waiting ones, else they keep their order.
    * A job that has waited long enough may return to the first queue, with no attained service (promotion).

    A demotion takes effect as in the simulator that Zhao et al. 2022 published (``dlas_sim_jobs`` in ``simulator/run_sim.py``),
    which has thresholds of 3,250 and 7,200 GPU-seconds: a decision is made when a running job has held its nodes for the
    threshold over its nodes, rounded up to a second.  The paper leaves that open.

    Args:
        thresholds: attained service at which a job moves to the next queue, node-seconds: one for two queues, or several in
            ascending order, as ``(3250, 7200)`` or ``"3250/7200"``; ``inf``: there is one queue.
        promote: a job returns to the first queue when it has waited, since its first start or its last return, for so many
            times the time for which it has held its nodes; ``None``: never.  Where the thresholds are shorter than what
            preemption costs, jobs that return may preempt each other for ever.
        mode, round_s, min_run_s, victim, preempts, skip: as for :class:`PreemptiveScheduler`.
    """

    name = "las"
    rule = "it fits, in the order of attained service"
    in_run = _LasRun
    takes_order: ClassVar[bool] = False
    thresholds: Thresholds = 3250.0
    promote: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.thresholds, str | float | int):
            object.__setattr__(self, "thresholds", _ascending(self.thresholds))
        _ascending(self.thresholds)
        if self.promote is not None:
            require_number("las: promote", self.promote, "a finite number > 0, or None", lambda factor: 0 < factor < inf)
            if self.mode == "kill":
                raise SpecificationError(
                    f"las: promote: {self.promote:g} is not allowed with mode=kill, where jobs that return to the first queue "
                    "can kill each other for ever; it must be None, or mode checkpoint or suspend"
                )


def _ascending(thresholds: Thresholds) -> tuple[float, ...]:
    """Return the thresholds as numbers; refuse what is not positive or does not ascend."""
    given = thresholds.split("/") if isinstance(thresholds, str) else thresholds
    try:
        numbers = [float(part) for part in (given if isinstance(given, Iterable) else [given])]
    except (TypeError, ValueError):
        numbers = []
    if not numbers or not all(low < high for low, high in zip([0.0, *numbers], numbers, strict=False)):
        must = "it must be a number of node-seconds > 0, or several that ascend, as 3250/7200"
        raise refused("las: thresholds", thresholds, must)
    return tuple(numbers)


@dataclass(frozen=True, kw_only=True)
class ServerFilling:
    """ServerFilling: the oldest jobs that can fill the machine run, the largest first, by free preemption (Grosof et al. 2022).

    The *candidates* are the shortest prefix of the jobs in the system, running or waiting, in queue order, that need at least
    all nodes together.  They run in order of decreasing size, equal sizes in queue order, each if it still fits; all other jobs
    are preempted.  In the paper that is free, and a preempted job resumes on any nodes.  So jobs are preempted by checkpoint,
    which costs nothing by default; where it takes time, the gang holds its nodes until it is written.

    I. Grosof, M. Harchol-Balter and A. Scheller-Wolf, "WCFS: A New Framework for Analyzing Multiserver Systems", Queueing
    Systems 102, 2022: where sizes are powers of two and divide the machine, no node is idle as long as the jobs in the system
    need that many, and the mean response time is within a constant of that of one fast server.  With other sizes, candidates
    that do not fit beside larger ones wait although nodes are idle, and a small one can wait as long as larger jobs arrive.
    """

    name: ClassVar[str] = "server-filling"
    takes_partitions: ClassVar[bool] = True
    takes_reservations: ClassVar[bool] = True
    takes_shapes: ClassVar[bool] = True
    depends_on: ClassVar[frozenset[str]] = DEPENDENCIES["checkpoint"]

    def start(self, setup: Setup) -> Run:
        preemption.require_store(self.name, "checkpoint", setup.machine)
        return _ServerFillingRun(setup)


class _ServerFillingRun:
    def __init__(self, setup: Setup) -> None:
        self._pools, self._nodes, self._windows = pools_of(setup), nodes_of(setup), bool(setup.machine.windows)

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Preempt running jobs that are not among those to run; start those that fit into the idle nodes."""
        running = sorted([gang.job for gang in view.running.values()], key=_IN_QUEUE_ORDER)
        candidates, up = [], NodesUp(self._pools, view)
        for job in merge(running, view.waiting.values(), key=_IN_QUEUE_ORDER):
            if not up.left:
                break
            if up.take_some(job):
                candidates.append(job)
        candidates.sort(key=_NODES, reverse=True)  # equal ones stay in queue order
        gangs = dict(view.running)
        if self._windows:
            saved = preemption.can_be_saved
            gangs = {job: gang for job, gang in gangs.items() if gang.stopping or saved(gang, "checkpoint", view)}
        nodes = reallocation_of(self._pools, self._nodes, view, gangs.values())
        chosen = in_order(nodes, candidates, view.waiting, gangs, skip=True)
        decisions: list[Decision] = [Checkpoint(job=gang.job) for gang in gangs.values() if not gang.stopping]
        if not chosen:
            return decisions
        idle = idle_to_take(self._pools, self._nodes, view)
        for job, split in chosen.items():
            if split is not None and idle.may_take(job, split):  # otherwise gangs still hold its nodes
                decisions.append(Start(job=job, columns=idle.take_split(split), reason=_REASON))
        return decisions


_REASON: Final = Reason("one of the oldest jobs that can fill the machine, the largest first")
