"""The parts of a backfilling scheduler (Perkovic & Keleher 2000): guarantees, job sizes, speculation and widening.

Guarantees decide in the first phase of a scheduling cycle which waiting jobs hold a reservation: they go through these in the
order of the cycle and start those that may start now.  Sizes adapt to the load (section 7): they say which shapes a job can
have when it is placed, and a last phase gives idle nodes to the jobs that start.  Speculation (section 6) makes use of
overestimates: a job whose estimate does not fit into any backfill window is started for a *speculated time* shorter than its
estimate.  A job that has not completed by then is stopped and requeued.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from math import ceil, inf
from numbers import Real
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, runtime_checkable

from clustermodel.errors import SpecificationError
from clustermodel.policies.interface import NOTHING, Setup, Stateless
from clustermodel.policies.view import QueuedJob
from clustermodel.schedule.profile import Reservation, Shape, Shapes, earliest_completion
from clustermodel.ticks import duration_to_ticks
from clustermodel.validation import choice, require, require_number, require_whole, seconds_fields

if TYPE_CHECKING:
    from clustermodel.policies.backfilling.cycle import SchedulingCycle

_DECIMALS: Final = 9
"""Products of nodes and factors are rounded to so many decimals: the last digits of a float mean nothing."""


class FirstPhase(Protocol):
    """Guarantees in one run."""

    def schedule(self, current: SchedulingCycle) -> None:
        """Start the jobs that may start, and enter reservations for others."""


@runtime_checkable
class Guarantees(Protocol):
    """A part of :class:`~clustermodel.policies.backfilling.scheduler.Backfilling`: a specification, as a policy is."""

    def start(self, setup: Setup) -> FirstPhase:
        """Return the first phase of a new run; itself, if it remembers nothing between scheduling cycles."""


@dataclass(frozen=True)
class EveryJob(Stateless):
    """``all``: every waiting job holds a reservation that never becomes later: conservative backfilling.

    A submitted job is placed where it completes first; that start is guaranteed.  When a job completes before its estimate,
    each waiting job in turn is taken out of the plan and put back, never later: *compression* (Talby & Feitelson 1999, long
    version, section 3.2; Perkovic & Keleher 2000, section 2).
    """

    def schedule(self, current: SchedulingCycle) -> None:
        current.compress()
        current.place_arriving()
        current.start_due()


@dataclass(frozen=True)
class NoJob(Stateless):
    """``none``: each scheduling cycle places all waiting jobs again (no-guarantee: Perkovic & Keleher 2000, section 4).

    The cycle ends as soon as no job can start or be widened: its further reservations would have no effect.
    """

    def schedule(self, current: SchedulingCycle) -> None:
        current.begin_trial()
        run, profile, now, queue = current.run, current.profile, current.now, current.queue
        smallest = [min(nodes for nodes, _ in current.shapes[job.id]) for job in queue]
        last = len(queue)
        for place, job in enumerate(queue):
            while last and smallest[last - 1] > current.idle:
                last -= 1
            can_start = last and (place < last or run.speculation is not None)
            if not current.idle or not (can_start or (run.widening is not None and current.dispatched)):
                break
            start, length, nodes, _ = current.earliest(job)
            if start == now:
                current.start(job, (nodes, length), "which no waiting job was placed to prevent")
            else:
                profile.reserve(start, start + length, nodes)


@dataclass(frozen=True)
class Selective(Stateless):
    """``selective``: a job is given a reservation once its expected slowdown has passed a threshold; then none may delay it.

    The expected slowdown of a job is (wait + estimate) / estimate, as if it started now; with a threshold of 1 every job that
    cannot start at once gets a reservation (Srinivasan, Kettimuthu, Subramani and Sadayappan, Selective reservation strategies
    for backfill job scheduling, 2002).
    """

    threshold: float = 2.0

    def __post_init__(self) -> None:
        require_number("backfilling: threshold", self.threshold, "a number >= 1", lambda value: value >= 1)

    def schedule(self, current: SchedulingCycle) -> None:
        plan, now = current.plan, current.now
        current.compress()
        current.start_due()
        for job in current.queue:
            if job.id in plan.reserved or job.id in current.dispatched:
                continue
            if (shape := current.fitting(job)) is not None:
                current.start(job, shape, "which delays no job that holds a reservation")
            elif now - job.submit + job.estimate >= self.threshold * job.estimate:
                plan.keep(job, reservation := current.earliest(job))
                current.guarantee(job, reservation.start)


@dataclass(frozen=True)
class Relaxed:
    """``relaxed``: the first blocked job may be delayed, by at most a share of its expected wait; no other job is protected.

    If it could start at s among the running jobs, it must be able to start by s + ``relaxation`` x (s - submit).  The first
    such bound is guaranteed and never grows, not even when a job of higher priority arrives (Ward, Mahood and West, Scheduling
    jobs on parallel systems using a relaxed backfill strategy, 2002).  With a relaxation of 0 and equal priorities it is EASY.
    """

    depends_on: ClassVar[frozenset[str]] = NOTHING
    relaxation: float = 0.5

    def __post_init__(self) -> None:
        require_number("backfilling: relaxation", self.relaxation, "a finite number >= 0", lambda value: 0 <= value < inf)

    def start(self, setup: Setup) -> FirstPhase:
        return _RelaxedRun(self.relaxation)


class _RelaxedRun:
    def __init__(self, relaxation: float) -> None:
        self._relaxation = relaxation
        self._bound: tuple[QueuedJob, int] | None = None  # the first blocked job and its latest start

    def schedule(self, current: SchedulingCycle) -> None:
        current.begin_trial()
        if self._bound is not None:
            first, latest = self._bound
            waits = first.id in current.view.waiting
            if not waits and first.id not in current.view.running:  # it completed in a speculative run attempt
                self._bound = None
            elif waits and (shape := current.fitting(first)) is not None:
                current.start(first, shape, "and its guaranteed start is due")
                self._bound = None
            else:
                self._set_bound(current, first, latest)
        for job in current.queue:
            if not current.idle and self._bound is not None:
                break
            if job.id in current.dispatched:
                continue
            if (shape := current.fitting(job)) is None:
                if self._bound is None:
                    self._set_bound(current, job)
            elif self._bound is None:
                current.start(job, shape, "which delays no guaranteed start")
            elif self._keeps_bound(current, *self._bound, *shape):
                current.start(job, shape, "and the first blocked job can still start by its guaranteed start")
        if self._bound is not None:  # for the later phases
            current.hold(self._bound[0], self._earliest(current, *self._bound))

    def _set_bound(self, current: SchedulingCycle, job: QueuedJob, latest: int | None = None) -> None:
        start = self._earliest(current, job, latest).start
        bound = start + round(self._relaxation * (start - job.submit))
        if latest is None:
            current.guarantee(job, bound)
        # A running job that outlives its estimate can break the bound; then the earliest possible start takes its place.
        self._bound = job, bound if latest is None else max(start, min(latest, bound))

    def _keeps_bound(self, current: SchedulingCycle, first: QueuedJob, latest: int, nodes: int, length: int) -> bool:
        profile, now = current.profile, current.now
        profile.reserve(now, now + length, nodes)
        kept = self._earliest(current, first, latest).start <= latest
        profile.release(now, now + length, nodes)
        return kept

    def _earliest(self, current: SchedulingCycle, job: QueuedJob, latest: int | None) -> Reservation:
        """Return where a job completes first, in the shapes that keep its bound if there are any."""
        profile, shapes = current.profile, current.shapes[job.id]
        if latest is not None and len(shapes) > 1:
            shapes = [shape for shape in shapes if profile.earliest(*shape, latest) >= 0] or shapes
        return earliest_completion(shapes, (profile,))


@runtime_checkable
class Sizes(Protocol):
    """A choice of job sizes, a part of :class:`~clustermodel.policies.backfilling.scheduler.Backfilling`."""

    def sizes(self, nodes: int, most: int) -> Sequence[int]:
        """Return the numbers of nodes that a job which asked for ``nodes`` can have on a machine of ``most``."""


@dataclass(frozen=True)
class QuarterSize:
    """Jobs of more than four nodes get a quarter of their nodes, others half (Perkovic & Keleher 2000, section 7.1)."""

    depends_on: ClassVar[frozenset[str]] = NOTHING

    def sizes(self, nodes: int, most: int) -> Sequence[int]:
        return (ceil(nodes / 4) if nodes > 4 else ceil(nodes / 2),)


@dataclass(frozen=True)
class Greedy:
    """A job gets the size with the shortest response time each time it is placed (Perkovic & Keleher 2000, section 7.1).

    Args:
        factors: the sizes as shares of the nodes asked for, rounded up, but at most the machine; of equally good ones the first
            is taken.  A single one is the size of every job: 1/2 is half-size, 2 is double-size.
    """

    depends_on: ClassVar[frozenset[str]] = NOTHING
    factors: Sequence[float] = (1.0, 0.5, 2.0)

    def __post_init__(self) -> None:
        several = isinstance(self.factors, tuple | list) and self.factors
        require(several, "backfilling: width", self.factors, "Greedy needs a sequence of alternatives, as (1, 0.5, 2)")
        factors = tuple(require_factor("backfilling: width", factor) for factor in self.factors)
        object.__setattr__(self, "factors", factors)

    def sizes(self, nodes: int, most: int) -> Sequence[int]:
        """Return the alternatives, each once; 0.07 of 100 nodes is 7, as the decimals mean it."""
        shares = (round(min(nodes * factor, most), _DECIMALS) for factor in self.factors)
        return tuple(dict.fromkeys(max(1, ceil(share)) for share in shares))


def require_factor(name: str, factor: object) -> float:
    """Return ``factor`` as a ``float``; refuse what is not a finite number > 0."""
    return require_number(name, factor, "a finite number > 0", lambda value: 0 < value < inf)


ASKED: Final = Greedy((1.0,))
"""Every job gets the nodes that it asked for."""
SIZES: Final[dict[str, Sizes]] = {"asked": ASKED, "half": Greedy((0.5,)), "quarter": QuarterSize(), "greedy": Greedy()}


def sizes_of(width: str | float | Sizes) -> Sizes:
    """Return the choice of sizes that ``width`` names, gives as a share of the nodes asked for, or is; refuse other widths."""
    if isinstance(width, Real):
        return Greedy((width,))  # type: ignore[arg-type]  # which refuses what is no number to multiply with
    if isinstance(width, Sizes) and not isinstance(width, type):
        return width
    return SIZES[choice("backfilling: width", width, SIZES, other=", a number > 0, or an object with sizes")]


def shapes_of(job: QueuedJob, length: int, sizes: Sizes, setup: Setup) -> Shapes:
    """Return the shapes of a job: each size with the expected run time, which is ``length`` on the nodes it asked for."""
    if sizes is ASKED:
        return ((job.nodes, length),)
    speedup, alternatives = setup.speedup, sizes.sizes(job.nodes, setup.nodes)
    if not alternatives or not all(0 < require_whole("backfilling: width", nodes) <= setup.nodes for nodes in alternatives):
        raise SpecificationError(
            f"backfilling: width: {type(sizes).__name__} gives a job of {job.nodes} nodes the alternatives "
            f"{list(alternatives)}; there must be at least one, and each must be from 1 to {setup.nodes}"
        )
    return [(nodes, length if nodes == job.nodes else speedup.time_on(length, job.nodes, nodes)) for nodes in alternatives]


class StartTimeWidening:
    """The last phase gives idle nodes to the jobs that start, in queue order (Perkovic & Keleher 2000, section 7.1).

    A job gets the nodes that stay free until its new expected end, so that no waiting job is delayed; at most ``widest`` times
    the number it asked for.
    """

    def __init__(self, widest: float) -> None:
        self._widest = require_factor("backfilling: widening", widest)

    def schedule(self, current: SchedulingCycle) -> None:
        """Give more nodes to the jobs that start, except speculative run attempts."""
        profile, now = current.profile, current.now
        for job in current.queue:
            if not current.idle:
                break
            dispatch = current.dispatched.get(job.id)
            if dispatch is None or dispatch.limit is not None or current.view.saved_on(job) is not None:
                continue
            nodes, length = self._widened(current, job, dispatch.nodes, dispatch.length)
            if nodes > dispatch.nodes:
                profile.release(now, now + dispatch.length, dispatch.nodes)
                profile.reserve(now, now + length, nodes)
                current.idle -= nodes - dispatch.nodes
                dispatch.nodes, dispatch.length = nodes, length

    def _widened(self, current: SchedulingCycle, job: QueuedJob, nodes: int, length: int) -> Shape:
        run, setup = current.run, current.run.setup
        most = int(round(min(job.nodes * self._widest, setup.nodes, nodes + current.idle), _DECIMALS))
        while most > nodes:
            shorter = setup.speedup.time_on(run.lengths.of(job), job.nodes, most)
            if shorter >= length:
                break
            # The job's own nodes are free for it.  On fewer nodes it takes longer, so no size in between fits either.
            free = nodes + current.profile.least_free(shorter)
            if free >= most:
                return most, shorter
            most = free
        return nodes, length


@dataclass(frozen=True, kw_only=True, slots=True)
class TestRuns:
    """Short runs of jobs with long estimates, to see whether they fail at once (Perkovic & Keleher 2000, section 6.1)."""

    __test__ = False  # not a test, though pytest would take it for one

    longer_than_s: float = 3 * 3600.0
    """Only jobs with longer estimates get test runs, seconds; the paper's are "longer than 3 hours"."""
    shortest_s: float = 5 * 60.0
    """A test run needs a backfill window of at least this length, seconds."""
    longest_s: float = 15 * 60.0
    """It may run as long as the window, but not longer than this, seconds."""

    def __post_init__(self) -> None:
        seconds_fields(self, "TestRuns.", "longer_than_s", "shortest_s", "longest_s", positive=True)
        must = f"it must be >= shortest_s, which is {self.shortest_s}"
        require(self.longest_s >= self.shortest_s, "TestRuns.longest_s", self.longest_s, must)


class Speculation:
    """The speculative phase of one run goes through the jobs that the first phase has left, in the same order.

    For its first run attempt a job needs a backfill window of ``percentage`` of its estimate.  After a discarded attempt it
    needs the mean of its last speculated time and its estimate, but at least ``percentage``: a test run can be shorter.  It is
    given the whole window.  A job that holds a reservation keeps it, and is stopped at the latest when its reserved time has
    come.  With a ``percentage`` of 1 there are only test runs, which are tried where the window is too short.
    """

    def __init__(self, percentage: float, test_runs: TestRuns | None = None) -> None:
        self._percentage = require_number("backfilling: speculation", percentage, "a number > 0 and <= 1", lambda p: 0 < p <= 1)
        self._tests = None if test_runs is None else tuple(map(duration_to_ticks, astuple(test_runs)))
        self._last: dict[int, float] = {}  # id of a job with a discarded run attempt -> its last speculated time per estimate
        self._tested: set[int] = set()

    def left(self, job: QueuedJob) -> None:
        """Forget a job that has left the system."""
        self._last.pop(job.id, None)
        self._tested.discard(job.id)

    def schedule(self, current: SchedulingCycle) -> None:
        """Start jobs in backfill windows."""
        now = current.now
        for job in current.queue:
            if not current.idle:
                break
            nodes, length = shape = current.shapes[job.id][0]
            if nodes > current.idle or job.id in current.dispatched:
                continue
            until = current.profile.free_until(nodes)
            if (reservation := current.reserved_start(job)) is not None:
                until = reservation if until is None else min(until, reservation)
            if until is None or until <= now:
                continue
            if (limit := self._speculated_time(job, length, until - now)) is not None:
                self._last[job.id] = limit / length
                current.start(job, shape, "if it ends by its speculated time", limit)

    def _speculated_time(self, job: QueuedJob, length: int, window: int) -> int | None:
        """Return for how long a job may run in a backfill window, ``None`` if it should not start there; ticks."""
        last = self._last.get(job.id)
        needed = self._percentage if last is None else max(self._percentage, (last + 1) / 2)
        if window >= needed * length and needed < 1:
            return window
        if self._tests is None or job.id in self._tested:
            return None
        longer_than, shortest, longest = self._tests
        if length <= longer_than or window < shortest:
            return None
        self._tested.add(job.id)
        return min(window, longest)
