"""Moldable jobs: sizes that adapt to the load (Perkovic & Keleher 2000, section 7).

Sizes say which shapes a job can have when it is placed; start-time widening is a last phase, which gives idle nodes to the jobs
that start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf
from numbers import Real
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Protocol, runtime_checkable

from clustermodel.errors import SpecificationError
from clustermodel.machine.node_set import count
from clustermodel.plans.pool_plans import Shapes
from clustermodel.plans.pools import Split
from clustermodel.policies.interface import NOTHING, Setup
from clustermodel.policies.view import QueuedJob
from clustermodel.validation import choice, require, require_number, require_whole

if TYPE_CHECKING:
    from clustermodel.policies.backfilling.cycle import SchedulingCycle

_DECIMALS: Final = 9  # products of nodes and factors are rounded to so many decimals: the last digits of a float mean nothing


class Fit(NamedTuple):
    """Where a job can start now: on how many nodes, for how long, and which; ``split`` is the plan's own."""

    nodes: int
    length: int
    split: Split


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
    if sizes is ASKED or job.layout is not None:  # its processors are to lie on nodes in a way that goes with their number
        return ((job.nodes, length),)
    most = most_nodes(job, setup)
    alternatives = sizes.sizes(job.nodes, most)
    if not alternatives or not all(0 < require_whole("backfilling: width", nodes) <= most for nodes in alternatives):
        raise SpecificationError(
            f"backfilling: width: {type(sizes).__name__} gives a job of {job.nodes} nodes the alternatives "
            f"{list(alternatives)}; there must be at least one, and each must be from 1 to {most}"
        )
    if job.sizes is not None:  # a malleable job has its own bounds
        least, widest = job.sizes
        alternatives = tuple(dict.fromkeys(max(least, min(nodes, widest)) for nodes in alternatives))
    return [(nodes, length if nodes == job.nodes else _length_on(nodes, job, length, setup)) for nodes in alternatives]


def most_nodes(job: QueuedJob, setup: Setup) -> int:
    """Return how many nodes a job could have at most."""
    if job.sizes is not None:
        return job.sizes[1]
    return max([setup.nodes if allowed is None else count(allowed) for allowed in job.sets_allowed()])


def _length_on(nodes: int, job: QueuedJob, length: int, setup: Setup) -> int:
    """Return how long a job holds so many nodes that holds those it asked for for ``length``."""
    before, after = (sum(setup.occupied(job, number)) for number in (job.nodes, nodes)) if setup.occupies else (0, 0)
    return after + setup.speedup.time_on(max(length - before, 1), job.nodes, nodes)


class StartTimeWidening:
    """The last phase gives idle nodes to the jobs that start, in queue order (Perkovic & Keleher 2000, section 7.1)."""

    # A job gets the nodes that stay free until its new expected end, so that no waiting job is delayed; at most `widest` times
    # the number it asked for.

    def __init__(self, widest: float) -> None:
        self._widest = require_factor("backfilling: widening", widest)

    def schedule(self, current: SchedulingCycle) -> None:
        """Give more nodes to the jobs that start, except speculative run attempts."""
        plan, now = current.plan, current.now
        for job in current.queue:
            if not current.idle:
                break
            dispatch = current.dispatched.get(job.id)
            if dispatch is None or dispatch.limit is not None or current.view.saved_on(job) is not None:
                continue
            if job.layout is not None:
                continue
            most = min(job.nodes * self._widest, most_nodes(job, current.run.setup), dispatch.nodes + current.idle)
            plan.release(now, dispatch.length, dispatch.split)
            dispatch.nodes, dispatch.length, dispatch.split = self._widened(
                current, job, dispatch.fit(), int(round(most, _DECIMALS))
            )
            plan.reserve(now, dispatch.length, dispatch.split)

    def _widened(self, current: SchedulingCycle, job: QueuedJob, fit: Fit, most: int) -> Fit:
        run, plan, group = current.run, current.plan, current.group(job)
        while most > fit.nodes:
            shorter = _length_on(most, job, run.lengths.of(job), run.setup)
            if shorter >= fit.length:
                break
            # On fewer nodes it takes longer, so no size in between fits either.
            free = plan.most(shorter, job, group)
            if free >= most:
                split = plan.split(current.now, shorter, job.sized(most), group)
                return fit if split is None else Fit(most, shorter, split)
            most = free
        return fit
