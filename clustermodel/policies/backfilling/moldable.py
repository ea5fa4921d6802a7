"""Moldable jobs: sizes that adapt to the load (Perkovic & Keleher 2000, section 7).

Sizes say which shapes a job can have when it is placed; start-time widening is a last phase, which gives idle nodes to the jobs
that start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf
from numbers import Real
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, runtime_checkable

from clustermodel.errors import SpecificationError
from clustermodel.plans.profile import Shape, Shapes
from clustermodel.policies.interface import NOTHING, Setup
from clustermodel.policies.view import QueuedJob
from clustermodel.validation import choice, require, require_number, require_whole

if TYPE_CHECKING:
    from clustermodel.policies.backfilling.cycle import SchedulingCycle

_DECIMALS: Final = 9  # products of nodes and factors are rounded to so many decimals: the last digits of a float mean nothing


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
    alternatives = sizes.sizes(job.nodes, setup.nodes)
    if not alternatives or not all(0 < require_whole("backfilling: width", nodes) <= setup.nodes for nodes in alternatives):
        raise SpecificationError(
            f"backfilling: width: {type(sizes).__name__} gives a job of {job.nodes} nodes the alternatives "
            f"{list(alternatives)}; there must be at least one, and each must be from 1 to {setup.nodes}"
        )
    if job.sizes is not None:  # a malleable job has its own bounds
        least, widest = job.sizes
        alternatives = tuple(dict.fromkeys(max(least, min(nodes, widest)) for nodes in alternatives))
    return [(nodes, length if nodes == job.nodes else _length_on(nodes, job, length, setup)) for nodes in alternatives]


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
        widest = setup.nodes if job.sizes is None else job.sizes[1]
        most = int(round(min(job.nodes * self._widest, widest, nodes + current.idle), _DECIMALS))
        while most > nodes:
            shorter = _length_on(most, job, run.lengths.of(job), setup)
            if shorter >= length:
                break
            # The job's own nodes are free for it.  On fewer nodes it takes longer, so no size in between fits either.
            free = nodes + current.profile.least_free(shorter)
            if free >= most:
                return most, shorter
            most = free
        return nodes, length
