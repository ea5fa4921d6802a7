"""Adapting the width of moldable jobs to the load (003_96c4631de6a07f8a.txt, section 7).

Which shapes a job can have when it is placed (always half, always a quarter, or the one that ends first), and the phase
that widens starting jobs into nodes that would be left idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from numbers import Real
from typing import Final, Protocol, runtime_checkable

from clustermodel.errors import SpecificationError, did_you_mean
from clustermodel.policies.backfilling.scheduling_cycle import Pass
from clustermodel.policies.interface import QueuedJob, Setup
from clustermodel.schedule.reservation import Shape, Shapes
from clustermodel.speedup import Speedup
from clustermodel.validation import require_number, require_whole

_DECIMALS: Final = 9
"""To which products of nodes and factors are rounded: the last digits of a float mean nothing."""


@runtime_checkable
class Widths(Protocol):
    """A part of :class:`~clustermodel.policies.backfilling.scheduler.Backfilling`: the alternatives of a job."""

    def widths(self, nodes: int, most: int) -> Sequence[int]:
        """Return the numbers of nodes that a job which asked for ``nodes`` can have on a machine of ``most``."""


class Fraction:
    """Every job gets this share of the nodes it asked for, rounded up.

    Args:
        fraction: above 0; 1/2 is half-size, 2 double-size; never more nodes than the machine has.

    Raises:
        SpecificationError: ``fraction`` is zero, negative or not finite.
    """

    def __init__(self, fraction: float) -> None:
        self._fraction = require_width("backfilling: width", fraction)

    def widths(self, nodes: int, most: int) -> Sequence[int]:
        """Return the one width."""
        return (_share(nodes, self._fraction, most),)


class QuarterSize:
    """A quarter of the nodes for jobs wider than four, half for others; sequential jobs stay as they are (003, section 7.1)."""

    def widths(self, nodes: int, most: int) -> Sequence[int]:
        """Return the one width."""
        return (ceil(nodes / 4) if nodes > 4 else ceil(nodes / 2),)


class Greedy:
    """Of several widths, the one with the least response time at each attempt to place the job (003, section 7.1).

    Args:
        factors: the alternatives as shares of the nodes asked for; of equally good ones the first.

    Raises:
        SpecificationError: there is none, or one is zero, negative or not finite.
    """

    def __init__(self, factors: Sequence[float] = (1.0, 0.5, 2.0)) -> None:
        if not isinstance(factors, tuple | list) or not factors:
            raise SpecificationError(
                f"backfilling: width: {factors!r} is not allowed; Greedy needs a sequence of alternatives, as (1, 0.5, 2)"
            )
        self._factors = [require_width("backfilling: width", factor) for factor in factors]

    def widths(self, nodes: int, most: int) -> Sequence[int]:
        """Return the alternatives, each once."""
        return tuple(dict.fromkeys(_share(nodes, factor, most) for factor in self._factors))


def _share(nodes: int, factor: float, most: int) -> int:
    """Return ``nodes`` x ``factor``, rounded up, as the decimals that ``factor`` is written with mean it: 0.07 of 100 is 7."""
    return max(1, ceil(round(min(nodes * factor, most), _DECIMALS)))


def require_width(name: str, factor: object) -> float:
    """Return ``factor`` as a ``float``.

    Raises:
        SpecificationError: a width alternative is not a finite number > 0.
    """
    return require_number(name, factor, "a finite number > 0", lambda value: 0 < value < float("inf"))


ASKED: Final = Fraction(1.0)
"""Every job gets the nodes that it asked for."""
WIDTHS: Final[dict[str, Widths]] = {
    "asked": ASKED,
    "half": Fraction(0.5),
    "quarter": QuarterSize(),
    "greedy": Greedy(),
}
"""Named choices of width."""


def widths_of(width: str | float | Widths) -> Widths:
    """Return the choice of width that ``width`` names, gives as a share of the nodes asked for, or is.

    Raises:
        SpecificationError: it is none of these.
    """
    if isinstance(width, str) and width in WIDTHS:
        return WIDTHS[width]
    if isinstance(width, Real):
        return Fraction(width)  # type: ignore[arg-type]  # which refuses what is no number to multiply with
    if isinstance(width, Widths) and not isinstance(width, type):
        return width
    hint = did_you_mean(width, WIDTHS) if isinstance(width, str) else ""
    raise SpecificationError(
        f"backfilling: width: {width!r} is not allowed{hint}; "
        f"it must be one of {', '.join(WIDTHS)}, a number > 0, or an object with widths"
    )


def shapes_of(job: QueuedJob, length: int, widths: Widths, setup: Setup) -> Shapes:
    """Return the shapes of ``job``: each width with the time it is expected to run on so many nodes.

    Args:
        job: the job.
        length: how long it is expected to run on the nodes it asked for, ticks.
        widths: the part that chooses alternatives.
        setup: of the run.

    Raises:
        SpecificationError: ``widths``, a part of one's own, gives no alternative, or one that the machine does not have.
    """
    if widths is ASKED:
        return ((job.nodes, length),)
    speedup, alternatives = setup.speedup, widths.widths(job.nodes, setup.nodes)
    if not alternatives or not all(0 < require_whole("backfilling: width", nodes) <= setup.nodes for nodes in alternatives):
        raise SpecificationError(
            f"backfilling: width: {type(widths).__name__} gives a job of {job.nodes} nodes the alternatives "
            f"{list(alternatives)}; there must be at least one, and each must be from 1 to {setup.nodes}"
        )
    return [(nodes, length if nodes == job.nodes else speedup.time_on(length, job.nodes, nodes)) for nodes in alternatives]


class StartTimeWidening:
    """The last phase: jobs that start get nodes that are left idle, in the order of the pass (003, section 7.1).

    A job is widened as far as there are nodes that stay free until its new expected end, and no waiting job is delayed.

    Args:
        widest: how wide a job may become, as a multiple of the nodes it asked for.

    Raises:
        SpecificationError: ``widest`` is zero, negative or not finite.
    """

    def __init__(self, widest: float = 1.0) -> None:
        self._widest = require_width("backfilling: widening", widest)

    def begin(self, setup: Setup) -> None:
        """Get ready for a run."""
        self._speedup: Speedup = setup.speedup
        self._nodes = setup.nodes

    def schedule(self, current: Pass) -> None:
        """Widen the jobs that start with their whole estimates."""
        for job in current.queue:
            if not current.idle:
                break
            dispatch = current.dispatched.get(job.id)
            if dispatch is None or dispatch.limit is not None:
                continue
            nodes, length = self._widened(current, job, dispatch.nodes, dispatch.length)
            if nodes > dispatch.nodes:
                current.plan.release(current.now, current.now + dispatch.length, dispatch.nodes)
                current.plan.reserve(current.now, current.now + length, nodes)
                current.idle -= nodes - dispatch.nodes
                dispatch.nodes, dispatch.length = nodes, length

    def _widened(self, current: Pass, job: QueuedJob, nodes: int, length: int) -> Shape:
        most = int(round(min(job.nodes * self._widest, self._nodes, nodes + current.idle), _DECIMALS))
        while most > nodes:
            shorter = self._speedup.time_on(current.length_of(job), job.nodes, most)
            if shorter >= length:
                break
            # The job's own room is free for it.  With fewer nodes it takes longer, so nothing between the two can fit either.
            free = nodes + current.plan.least_free(shorter)
            if free >= most:
                return most, shorter
            most = free
        return nodes, length
