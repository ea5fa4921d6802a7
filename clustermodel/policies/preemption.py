"""What preemption does to a job, whom it hits, and nodes for jobs where suspended jobs keep a part of the memory."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple, TypeVar

from clustermodel.errors import SpecificationError
from clustermodel.machine.machine import Machine
from clustermodel.machine.node_set import NodeSet, as_mask, from_mask, lowest
from clustermodel.plans.free_memory import FreeMemory
from clustermodel.plans.reallocation import Lack
from clustermodel.policies.interface import NOTHING, PARTS, Checkpoint, Kill, Setup, Suspend
from clustermodel.policies.view import QueuedJob, RunningJob, View

DEPENDENCIES: Final = {"kill": NOTHING, "checkpoint": frozenset({"checkpointing"}), "suspend": frozenset(PARTS)}
"""The modes, and the parts of the machine on which preemption in a mode depends."""
Preemption = Kill | Checkpoint | Suspend
T = TypeVar("T")


def can_be_saved(gang: RunningJob, mode: str, view: View) -> bool:
    """Return whether a running job may be preempted: its nodes have memory for it, and it leaves them before reservations."""
    return mode == "kill" or ((mode != "suspend" or view.can_suspend(gang)) and view.saved_in_time(gang, mode == "suspend"))


def require_store(policy: str, mode: str, machine: Machine, *, parameter: str = "mode") -> None:
    """Refuse a mode that keeps work where the machine takes no checkpoints."""
    if mode != "kill" and machine.checkpointing.max_tasks_per_slice == 0:
        raise SpecificationError(
            f"{policy}: {parameter}={mode}: the machine takes no checkpoints (max_tasks_per_slice=0), "
            "so that no job could go on on other nodes"
        )


def require_own_memory(policy: str, mode: str, setup: Setup) -> None:
    """Refuse a mode that keeps jobs in the memory of nodes where these share it with others."""
    if mode == "suspend" and setup.by_node and setup.machine.node_memories is not None:
        raise SpecificationError(
            f"{policy}: mode=suspend is not allowed where several jobs share the memory of a node (node_memory_gib); "
            "it must be checkpoint or kill"
        )


def preempt(job: QueuedJob, mode: str) -> Preemption:
    """Return the decision to preempt a running job."""
    if mode == "kill":
        return Kill(job=job, requeue=True)
    return Suspend(job=job) if mode == "suspend" else Checkpoint(job=job)


def victims_for(missing: int, candidates: Iterable[T], nodes_of: Callable[[T], int]) -> list[T]:
    """Return the first candidates that free ``missing`` nodes, without those that are not needed; none if all are too few."""
    victims: list[T] = []
    for candidate in candidates if missing > 0 else ():
        victims.append(candidate)
        missing -= nodes_of(candidate)
        if missing <= 0:
            break
    if missing > 0:
        return []
    for victim in victims[::-1]:
        if missing + (nodes := nodes_of(victim)) <= 0:
            victims.remove(victim)
            missing += nodes
    return victims


def enough_for(
    missing: int, choose: Callable[[int], list[T]], nodes_of: Callable[[T], int], suffice: Callable[[Iterable[T]], bool] | None
) -> list[T]:
    """Return the victims that ``choose`` gives for ``missing`` nodes; for as many more as it takes until they ``suffice``.

    None of them can be spared then.
    """
    victims = choose(missing)
    if suffice is None:
        return victims
    while victims and not suffice(victims):
        victims = choose(sum(map(nodes_of, victims)) + 1)
    for victim in victims[::-1]:
        others = [other for other in victims if other is not victim]
        if suffice(others):
            victims = others
    return victims


def fewest_for(missing: int, candidates: Sequence[T], nodes_of: Callable[[T], int]) -> list[T]:
    """Return the fewest candidates that free ``missing`` nodes, of equally few the first ones; none if all are too few."""
    # No set of k frees more than the k largest, so that the least k of which these are enough is the fewest.  Then a candidate
    # is taken, in order, whenever it and the largest of those behind it, one less than are left to choose, are still enough.
    sizes = sorted(map(nodes_of, candidates))
    freed = list(accumulate(reversed(sizes)))
    if missing <= 0 or not freed or freed[-1] < missing:
        return []
    left = bisect_left(freed, missing) + 1  # how many are still to be chosen
    others = freed[left - 1] - sizes[-left]  # what the largest left - 1 of `sizes` free
    chosen: list[T] = []
    for candidate in candidates:
        nodes = nodes_of(candidate)
        place = bisect_left(sizes, nodes)
        if place > len(sizes) - left:  # it is one of the largest left - 1; the next one takes its place
            others += sizes[-left] - nodes
        del sizes[place]
        if nodes + others < missing:
            continue
        chosen.append(candidate)
        missing -= nodes
        left -= 1
        if not left:
            break
        others -= sizes[-left]
    return chosen


_MOST_STEPS: Final = 50_000
"""Candidates times missing nodes, up to which the victims that lose least are found exactly."""


def least_lost_for(missing: int, candidates: Sequence[T], nodes_of: Callable[[T], int], loss_of: Callable[[T], int]) -> list[T]:
    """Return candidates that free ``missing`` nodes with the least loss together, of equal ones few; none if all are too few.

    Beyond 50,000 candidates x missing nodes a heuristic: those that lose least one by one, without those that are not needed.
    """
    # The knapsack problem of covering, by dynamic programming over the freed nodes, of which more than `missing` are as many.
    if len(candidates) * missing > _MOST_STEPS:
        return victims_for(missing, sorted(candidates, key=loss_of), nodes_of)
    best: dict[int, tuple[int, int, Any]] = {0: (0, 0, None)}  # by freed nodes: loss, number, the last one and those before
    for candidate in candidates:
        nodes, loss = nodes_of(candidate), loss_of(candidate)
        for freed, (lost, number, chosen) in list(best.items()):
            if freed >= missing:
                continue
            reached, with_it = min(freed + nodes, missing), (lost + loss, number + 1)
            if reached not in best or with_it < best[reached][:2]:
                best[reached] = (*with_it, (candidate, chosen))
    victims: list[T] = []
    last = best[missing][2] if missing in best else None
    while last is not None:
        victim, last = last
        victims.append(victim)
    return victims


Rule = Callable[[int, Sequence[RunningJob], Callable[[RunningJob], int], int], list[RunningJob]]
"""Chooses victims: (missing nodes, the jobs that may be preempted, the last in the order first, nodes that one frees, now)."""
PREEMPTS: Final = ("behind", "lower-priority")
"""Which running jobs a waiting one may preempt: those behind it in the policy's order, or of these those of lower priority."""
VICTIMS: Final[Mapping[str, Rule]] = {
    "order": lambda missing, gangs, nodes_of, _now: victims_for(missing, gangs, nodes_of),
    "fewest": lambda missing, gangs, nodes_of, _now: fewest_for(missing, gangs, nodes_of),
    "least-lost": lambda missing, gangs, nodes_of, now: least_lost_for(
        missing, gangs, nodes_of, lambda gang: gang.nodes * (now - gang.start)
    ),
    "latest-start": lambda missing, gangs, nodes_of, _now: fewest_for(
        missing, sorted(gangs, key=lambda gang: -gang.start), nodes_of
    ),
    "largest": lambda missing, gangs, nodes_of, _now: fewest_for(
        missing, sorted(gangs, key=lambda gang: -gang.nodes), nodes_of
    ),
}
"""Which of the running jobs that a waiting one may preempt do yield to it."""


class Victims:
    """Which running jobs yield to a waiting one, and which jobs have been preempted in this way and wait."""

    # A job that has been preempted takes no nodes back from jobs of its priority that were spared then, as it may stand before
    # them: otherwise two jobs would stop where one is enough.

    def __init__(self, rule: str, *, lower_priority: bool) -> None:
        self._rule, self._lower = VICTIMS[rule], lower_priority
        self._preempted: dict[int, int] = {}  # by job id: when, ticks

    def begin(self, view: View) -> None:
        """Begin a decision: forget which of the jobs that run again, or have ended, were preempted."""
        for job_id in list(self._preempted):
            gang = view.running.get(job_id)
            if not (job_id in view.waiting or (gang is not None and gang.stopping)):
                del self._preempted[job_id]

    def may_preempt(self, job: QueuedJob, behind: Mapping[int, RunningJob]) -> list[RunningJob]:
        """Return those of the running jobs behind a waiting one that it may preempt, the last in the order first."""
        gangs = list(behind.values())[::-1]
        if self._lower:
            return [gang for gang in gangs if gang.job.priority < job.priority]
        if (since := self._preempted.get(job.id)) is None:
            return gangs
        return [gang for gang in gangs if gang.start > since or gang.job.priority < job.priority]

    def choose(self, lacks: Iterable[Lack], now: int) -> list[RunningJob]:
        """Return which gangs yield so that a waiting job lacks nothing on the first set of nodes on which that is possible."""
        for lack in lacks:
            if victims := self._of_one_set(lack, now):
                for gang in victims:
                    self._preempted[gang.job.id] = now
                return victims
        return []

    def _of_one_set(self, lack: Lack, now: int) -> list[RunningJob]:
        missing, gangs, nodes_of, suffice = lack
        return enough_for(missing, lambda nodes: self._rule(nodes, gangs, nodes_of, now), nodes_of, suffice)


class Nodes(NamedTuple):
    """Nodes for a job, a bitmask, and the suspended jobs of which what is saved there has to be discarded."""

    nodes: int
    discarded: list[QueuedJob]


class IdleMemory:
    """The idle nodes and the free memory during one scheduling cycle."""

    # A job may have the memory of suspended jobs behind it: those of a higher `rank`, by default in queue order.

    def __init__(self, view: View, free: FreeMemory, rank: Callable[[QueuedJob], Any] = lambda job: job.queue_order) -> None:
        self._rank, self._free = rank, free
        self._idle = as_mask(view.idle_nodes())
        suspended = ((job, view.suspended_on(job)) for job in view.waiting.values())
        self._suspended: dict[QueuedJob, NodeSet] = {job: kept for job, kept in suspended if kept is not None}

    def has_beside(self, nodes: NodeSet, job: QueuedJob) -> bool:
        """Return whether a job fits on those of ``nodes`` that it may have beside all that has memory there."""
        eligible = -1 if job.eligible is None else as_mask(job.eligible)
        return not as_mask(nodes) & eligible & ~self._free.nodes_with(job.memory)

    def place(self, job: QueuedJob, sets: Sequence[NodeSet | None] = ()) -> Nodes | None:
        """Return idle nodes for a job: where it is suspended if they are idle, else those where nothing is discarded first.

        They are of one of some sets, by default of those that it may have.
        """
        own = as_mask(self._suspended.get(job, ()))
        parts = [self._idle if each is None else self._idle & as_mask(each) for each in sets or job.sets_eligible()]
        if own and any(not own & ~idle for idle in parts):
            return Nodes(own, [])
        behind = [other for other in self._suspended if self._rank(other) > self._rank(job)]
        without = self._free.copy()
        for other in behind:
            without.give_back(self._suspended[other], other.memory)
        has_memory, could_have_it = (each.nodes_with(job.memory) | own for each in (self._free, without))
        idle = next((part for part in parts if (part & has_memory).bit_count() >= job.nodes), None)
        idle = next((part for part in parts if (part & could_have_it).bit_count() >= job.nodes), 0) if idle is None else idle
        at_once, possible = idle & has_memory, idle & could_have_it
        if possible.bit_count() < job.nodes:
            return None
        nodes = lowest(at_once, min(job.nodes, at_once.bit_count()))
        nodes |= lowest(possible & ~nodes, job.nodes - nodes.bit_count())
        return Nodes(nodes, [other for other in behind if as_mask(self._suspended[other]) & nodes & ~at_once])

    def take(self, job: QueuedJob, place: Nodes) -> list[Kill]:
        """Start a job where :meth:`place` said; return the decisions that discard what is saved of others there."""
        for other in place.discarded:
            self._free.give_back(self._suspended.pop(other), other.memory)
        self._idle &= ~place.nodes
        self._free.take(from_mask(place.nodes & ~as_mask(self._suspended.pop(job, ()))), job.memory)
        return [Kill(job=other, requeue=True) for other in place.discarded]
