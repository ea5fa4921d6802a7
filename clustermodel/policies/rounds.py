"""Fair sharing of gangs in rounds: which gangs run is decided for one round after the other, and each runs its share of them.

The mechanism is that of Gavel (D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning
Workloads", OSDI 2020, section 5, and its published program) on processors that are all alike.  Jobs take nodes in the order of
what they have had of their shares.  A gang that is chosen again keeps its nodes and runs on (its lease is extended); any other
is checkpointed, or restarts.

Where jobs differ in the nodes that they may have, their shares depend on who competes for these
(:class:`~clustermodel.plans.fair_shares.FairShares`).  Neither shapes nor reservations change the shares; both count when jobs
take nodes, and a job that does not fit in a round waits for another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from clustermodel.errors import SpecificationError
from clustermodel.machine.machine import Machine
from clustermodel.plans.fair_shares import FairShares
from clustermodel.plans.make import are_alike, reallocation_of
from clustermodel.plans.pools import Split
from clustermodel.policies.interface import Decision, Migrate, Setup, Start, WakeAt, dependencies_of
from clustermodel.policies.predictors import Lengths, Predictor, predictor_of
from clustermodel.policies.preemption import Preemption, preempt
from clustermodel.policies.preemptive import PreemptiveRun, PreemptiveScheduler, in_order
from clustermodel.policies.view import Batch, QueuedJob, View
from clustermodel.ticks import to_seconds, to_ticks
from clustermodel.validation import require, require_seconds

ROUND_S: Final = 360.0  # the default of Gavel's program


@dataclass(frozen=True, kw_only=True)
class RoundScheduler(PreemptiveScheduler):
    """What the schedulers in rounds share.

    Args:
        round_s: length of a round, seconds; ``None``: as the machine has it (``Machine.round_s``), or else 360.
        reset_s: shares are computed anew when jobs have come or left, and so much time has passed since the last time, seconds.
        ahead_s: a round is decided so long before ``round_s`` of the one before are over, seconds; half of it in the program.
            Jobs that come later wait for the next one, and nodes of a chosen job that has ended before stay idle in it.
        start_s: how long the scheduler takes to start a gang, one after the other; the round is so much longer, seconds.
        mode: ``"checkpoint"``; jobs that take turns would lose what they have executed otherwise.
        min_run_s, victim, preempts, skip: as for the preemptive schedulers.
    """

    rule = "it fits, in the order of what jobs have had of their shares"
    reset_s: float = 1000.0
    ahead_s: float = 0.0
    start_s: float = 0.0
    in_run: ClassVar[type[_InRounds]]

    def __post_init__(self) -> None:
        super().__post_init__()
        must = "it must be 'checkpoint': jobs that take turns would lose what they have executed"
        require(self.mode == "checkpoint", f"{self.name}: mode", self.mode, must)
        for field in ("reset_s", "ahead_s", "start_s"):
            require_seconds(f"{self.name}: {field}", getattr(self, field))
        others = {"min_run_s": self.min_run_s > 0, "victim": self.victim != "order", "preempts": self.preempts != "behind"}
        if self.ahead_s and any(others.values()):
            field = next(name for name, is_set in others.items() if is_set)
            raise SpecificationError(f"{self.name}: {field} is not allowed with ahead_s; every gang that is not chosen stops")

    def round_on(self, machine: Machine) -> int:
        return super().round_on(machine) or (to_ticks(ROUND_S) if self.round_s is None else 0)

    def step_on(self, machine: Machine) -> int:
        """Return 0: a round may begin at any time, as each begins when the one before it is over."""
        return 0


class _InRounds(PreemptiveRun):
    """Rounds, shares and what jobs have had of them."""

    def __init__(self, policy: Any, setup: Setup) -> None:
        super().__init__(policy, setup)
        self._ahead = to_ticks(policy.ahead_s)
        if self._round <= self._ahead:
            must = f"longer than ahead_s, {policy.ahead_s:g}"
            raise SpecificationError(f"{policy.name}: round_s: {to_seconds(self._round):g} is not allowed; it must be {must}")
        self._between_resets, self._per_start = to_ticks(policy.reset_s), to_ticks(policy.start_s)
        machine = setup.machine
        packs = machine.gpus_per_node > 1 and machine.allocation == "consolidate" and machine.node_memory_gib is None
        packs = packs and are_alike(self._pools) and self._nodes is None
        self._of_node = machine.gpus_per_node if packs else 0  # processors of a node, where gangs are packed into nodes
        self._next = 0  # when the next round begins, ticks
        self._decided_at = 0  # when it is decided ahead which jobs run then
        self._is_decided = False
        # By job id, which jobs run then, and the nodes of those that start; ``None``: whichever fit when it begins.
        self._chosen_jobs: dict[int, Split | None] | None = None
        self._has_changed = False  # whether jobs have come or left since shares were computed
        self._last_reset: int | None = None
        self._share: dict[int, float] = {}  # by job id: the part of the time in which a job is to run
        self._before: dict[int, int] = {}  # how long a job had executed at the last reset, ticks
        self._deficit: dict[int, float] = {}  # how much too little a job has had before that, ticks

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Begin a round if it is time: preempt the gangs that are not chosen, move and start others."""
        self._observe(batch, view)
        if batch.reservations and not view.running:  # whatever waits may have been waiting for that
            self._next = self._decided_at = view.now
            self._is_decided = False
        if view.now > self._next:  # no job has waited for rounds to begin; on an empty machine one begins at once
            skipped = -(-(view.now - self._next) // self._round) * self._round if view.running else view.now - self._next
            self._next += skipped
            self._decided_at += skipped
        if view.waiting and not self._is_decided and view.now >= (self._decided_at if self._ahead else self._next):
            self._sort(view)
            self._chosen_jobs = self._first_that_fit(view) if self._ahead else None
            self._is_decided = True
        decisions: list[Decision] = []
        begins = view.now == self._next and self._is_decided
        if begins:
            decisions += self._choose_decided(view)
            self._is_decided = False
            self._decided_at = view.now + self._round - self._ahead
            self._next += self._round + self._per_start * len(self._to_start)
        decisions += self._start_in_round(view, decides=begins)
        at = self._decided_at if self._ahead and not self._is_decided else self._next
        alarm = at if view.waiting else None
        if alarm == self._alarm and not batch.alarm:
            return decisions
        self._alarm = alarm
        return [*decisions, WakeAt(time=alarm)]

    def _observe(self, batch: Batch, view: View) -> None:
        super()._observe(batch, view)
        self._has_changed = self._has_changed or bool(self._gone or batch.submitted)
        for job_id in self._gone:
            for of_job in (self._share, self._before, self._deficit):
                of_job.pop(job_id, None)
        for job in batch.submitted:
            self._before[job.id], self._deficit[job.id] = 0, 0.0

    def _sort(self, view: View) -> None:
        """Put those first that have had the least of their shares, and of these those with the largest deficit."""
        running, saved, progress, half = view.running, view.saved, view.progress, self._round // 2
        jobs, now, since = self._order, view.now, self._last_reset
        done = {job.id: progress(running[job.id]) if job.id in running else saved(job) for job in jobs}
        before, share, deficit = self._before, self._share, self._deficit
        if self._has_changed and (since is None or now - since >= self._between_resets):
            shares = self._shares(FairShares(self._pools, jobs, view), view, done)
            for job in jobs:
                deficit[job.id] += share.get(job.id, 0) * (now - (since or 0)) - (done[job.id] - before[job.id])
                before[job.id] = done[job.id]
            share.update(shares)
            self._last_reset, self._has_changed = now, False
        if arrived := [job for job in jobs if job.id not in share]:
            fair = FairShares(self._pools, jobs, view)
            share.update({job.id: fair.equal(job) for job in arrived})
        had = {job.id: (half + done[job.id] - before[job.id]) / share[job.id] for job in jobs}
        jobs.sort(key=lambda job: (had[job.id], -deficit[job.id], job.queue_order))

    def _first_that_fit(self, view: View) -> dict[int, Split | None]:
        stays = {job.id: gang for job in self._order if (gang := view.running.get(job.id)) and not gang.stopping}
        stopping = [gang for gang in view.running.values() if gang.stopping]
        nodes = reallocation_of(self._pools, self._nodes, view, stays.values(), stopping)
        before = [*stays]
        there = {job.id for job in self._order}
        to_start = in_order(nodes, self._order, there, stays, skip=self._skip)
        chosen: dict[int, Split | None] = {job_id: None for job_id in before if job_id not in stays}
        return chosen | {job.id: split for job, split in to_start.items()}

    def _choose_decided(self, view: View) -> list[Preemption]:
        """Preempt and remember to start what was decided ahead, or decide now."""
        if (chosen := self._chosen_jobs) is None:
            return self._choose(view)
        self._to_start = {job: chosen[job.id] for job in self._order if job.id in chosen and job.id in view.waiting}
        stops = [gang for gang in view.running.values() if gang.job.id not in chosen and not gang.stopping]
        self._preempted.update([gang.job.id for gang in stops])
        return [preempt(gang.job, self._mode) for gang in stops]

    def _shares(self, fair: FairShares, view: View, done: Mapping[int, int]) -> dict[int, float]:
        """Return the shares of all jobs, each more than 0 and at most 1; ``done``: how long they have executed, ticks."""
        raise NotImplementedError

    def _start_what_fits(self, view: View) -> list[Decision]:
        return self._pack(view) if self._of_node else super()._start_what_fits(view)

    def _pack(self, view: View) -> list[Decision]:
        """Start the chosen jobs when all preempted gangs have left; gangs that are in the way of larger ones move."""
        if self._preempted:
            return []
        running = [gang for gang in view.running.values() if not gang.stopping]
        left = view.idle
        waiting: list[QueuedJob] = []
        later: dict[QueuedJob, Split | None] = {}
        for job, split in self._to_start.items():
            if job.id not in view.waiting:
                continue
            if job.nodes <= left:
                left -= job.nodes
                waiting.append(job)
            else:  # a node has failed
                later[job] = split
        self._to_start = later
        if not waiting:
            return []
        idle = view.idle_nodes()
        free = {node for low, high in zip(idle[::2], idle[1::2], strict=True) for node in range(low, high)}
        at_present = {gang.job: _nodes(gang.columns) for gang in running}
        places = packed(at_present, waiting, free, self._of_node)
        moves = tuple((job, places[job]) for job, nodes in at_present.items() if places[job] != nodes)
        self._next += self._per_start * len(moves)
        starts = [Start(job=job, columns=places[job], reason=self._reason) for job in waiting]
        return [*([Migrate(moves=moves)] if moves else []), *starts]


def _nodes(columns: Sequence[int]) -> list[int]:
    return [node for low, high in zip(columns[::2], columns[1::2], strict=True) for node in range(low, high)]


def packed(
    running: Mapping[QueuedJob, list[int]], waiting: Iterable[QueuedJob], idle: Iterable[int], of_node: int
) -> dict[QueuedJob, list[int]]:
    """Return nodes for gangs that run on and for those that start, the largest first, so that few are spread over nodes.

    Of each size those that run keep what they have as long as no larger one has taken it; the others take the first node with
    enough processors left, or the first processors that are left.
    """
    free = dict.fromkeys(sorted({*idle, *(node for nodes in running.values() for node in nodes)}))
    places: dict[QueuedJob, list[int]] = {}
    by_size: dict[int, list[QueuedJob]] = {}
    for job in (*running, *waiting):
        by_size.setdefault(len(running[job]) if job in running else job.nodes, []).append(job)
    for size, jobs in sorted(by_size.items(), reverse=True):
        for job in jobs:
            if job in running and all(processor in free for processor in running[job]):
                places[job] = running[job]
                for processor in places[job]:
                    del free[processor]
        for job in jobs:
            if job not in places:
                on_node: dict[int, list[int]] = {}
                for processor in free:
                    on_node.setdefault(processor // of_node, []).append(processor)
                places[job] = next((left[:size] for left in on_node.values() if len(left) >= size), list(free)[:size])
                for processor in places[job]:
                    del free[processor]
    return places


def max_min_shares(rivals: Iterable[QueuedJob], nodes: float, jobs: Iterable[QueuedJob] = ()) -> dict[int, float]:
    """Return shares such that the rival with the fewest nodes x time has as much as possible, then the next one, and so on.

    Other ``jobs`` have as much as the one with the most of them, if they need it.
    """
    shares, left, level = {}, float(max(nodes, 1)), 0.0
    ascending = sorted(rivals, key=lambda job: job.nodes)
    for place, job in enumerate(ascending):
        level = min(float(job.nodes), left / (len(ascending) - place))
        shares[job.id] = level / job.nodes
        left -= level
    return {job.id: min(1.0, level / job.nodes) for job in jobs} | shares


class _MaxMinRun(_InRounds):
    def _shares(self, fair: FairShares, view: View, done: Mapping[int, int]) -> dict[int, float]:
        return fair.of_all(max_min_shares)


@dataclass(frozen=True, kw_only=True)
class MaxMin(RoundScheduler):
    """Max-min fairness in rounds: each job runs so often that all have the same nodes x time (Narayanan et al. 2020: Gavel).

    In each round those jobs run that have had the least of that, as many as fit: *least attained service*.
    """

    name = "max-min"
    in_run = _MaxMinRun


class _FinishTimeRun(_InRounds):
    def __init__(self, policy: Any, setup: Setup) -> None:
        super().__init__(policy, setup)
        self._lengths = Lengths(policy, setup, once=True)
        self._expected: dict[int, int] = {}  # run times, ticks
        self._alone: dict[int, float] = {}  # how long what was executed before the last reset takes with an equal share
        self._equal: dict[int, float] = {}  # that share since then

    def _observe(self, batch: Batch, view: View) -> None:
        super()._observe(batch, view)
        self._lengths.observe(batch, view)
        for job_id in self._gone:
            for of_job in (self._expected, self._alone, self._equal):
                of_job.pop(job_id, None)
        for job in batch.submitted:
            self._expected[job.id], self._alone[job.id] = self._lengths.predicted(job), 0.0

    def _shares(self, fair: FairShares, view: View, done: Mapping[int, int]) -> dict[int, float]:
        spent, left, with_equal = {}, {}, {}
        for job in self._order:
            equal = fair.equal(job)
            self._alone[job.id] += (done[job.id] - self._before[job.id]) / self._equal.get(job.id, equal)
            self._equal[job.id] = equal
            spent[job.id] = view.now - job.submit
            left[job.id] = max(self._expected[job.id] - done[job.id], 1)
            with_equal[job.id] = self._alone[job.id] + left[job.id] / equal

        def shares(stretch: float, jobs: Iterable[QueuedJob]) -> dict[int, float]:
            in_time = {job.id: stretch * with_equal[job.id] - spent[job.id] for job in jobs}
            return {job_id: 1.0 if time <= left[job_id] else left[job_id] / time for job_id, time in in_time.items()}

        def level(rivals: Sequence[QueuedJob], nodes: float, jobs: Sequence[QueuedJob]) -> dict[int, float]:
            of_rivals = {job.id: job.nodes for job in rivals}
            return shares(least_stretch(lambda stretch: shares(stretch, rivals), of_rivals, nodes), jobs)

        return fair.of_all(level)


def least_stretch(shares: Callable[[float], dict[int, float]], nodes: Mapping[int, int], up: float) -> float:
    """Return the least stretch with whose shares jobs fit, by bisection; more stretch, smaller shares."""
    low, high = 0.0, 1.0
    most = max(up, 1)

    def fits(stretch: float) -> bool:
        return sum(share * nodes[job_id] for job_id, share in shares(stretch).items()) <= most

    while not fits(high):
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


@dataclass(frozen=True, kw_only=True)
class FinishTimeFair(RoundScheduler):
    """Finish-time fairness in rounds: the largest ratio of finish times is as small as possible (Mahajan et al. 2020: Themis).

    The ratio compares the time from submission to completion with what it would be if each of the jobs had as many nodes, as
    Narayanan et al. 2020 compute it: shares are such that the largest ratio is as small as possible, then the next one.

    Args:
        predictor: of run times: a name (:data:`~clustermodel.policies.predictors.PREDICTORS`) or an object; asked once for
            each job, when it is submitted.
    """

    name = "finish-time-fair"
    in_run = _FinishTimeRun
    predictor: str | Predictor = "perfect"

    def __post_init__(self) -> None:
        super().__post_init__()
        predictor_of(self.name, self.predictor)

    @property
    def depends_on(self) -> frozenset[str]:
        return super().depends_on | dependencies_of(predictor_of(self.name, self.predictor))
