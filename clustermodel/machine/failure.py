"""Failures of nodes: what the mechanism asks of a source of them, and random failures and repairs.

Random failures are stationary renewal processes (Cox 1962): the machine has been in operation for long when the simulation
begins.  So the time to the first failure has the distribution of the time that remains at a random moment; clocks that start
anew at time 0 would give too many failures at first, where ``shape`` is below 1.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError
from clustermodel.ticks import duration_to_ticks, to_ticks
from clustermodel.validation import choice, require_number, require_seconds, require_whole


class Failure(NamedTuple):
    """A node (from 0) fails at ``time`` and is up again ``repair`` ticks later; 0 only stops what runs on the node."""

    time: int
    node: int
    repair: int


@runtime_checkable
class FailureSource(Protocol):
    """Source of a machine's failures: :class:`~clustermodel.machine.failure.NodeFailures` or
    :class:`~clustermodel.machine.recorded_outages.Outages`.
    """

    @property
    def mean_repair_s(self) -> float:
        """Mean time from a failure until the node is up again, seconds: what a scheduler expects."""

    def node_mtbf_s(self, nodes: int) -> float:
        """Return the mean time between the failures of one node of a machine of ``nodes`` nodes, seconds."""

    def failures(self, nodes: int, rng: np.random.Generator) -> Iterator[Failure]:
        """Return the failures of a machine of ``nodes`` nodes in order of time, those of one time in order of node.

        They may be without end.  All nodes are up at time 0.  A node that is down does not fail: its next failure is at least
        one tick after its repair.  Nothing depends on what the machine executes.  ``rng`` is new for each run, and for this
        purpose alone.  A source that does not fit the machine raises a ``SpecificationError``.
        """


_CHUNK: Final = 1024  # random numbers drawn at a time
MOST_NODES: Final = 10_000_000  # that each have a clock; on larger machines ``per="machine"`` draws the failures


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeFailures:
    """Failures at random times, and repairs; a value that is not allowed is a ``SpecificationError``."""

    mtbf_s: float
    """Mean time between failures, seconds: with ``per="node"`` from a node's repair to its next failure, with ``per="machine"``
    from one failure of any node to the next one."""
    repair_s: float
    """Time from a failure until the node is up again, seconds; 0 is a failure that only stops what runs on the node."""
    per: Literal["node", "machine"] = "node"
    """Each node fails on its own, or the machine as a whole has failures, each of them of a node drawn uniformly from those
    that are up; a failure when no node is up hits nothing."""
    distribution: Literal["exponential", "weibull"] = "exponential"
    """Of the times between failures."""
    shape: float = 1.0
    """Shape of the Weibull distribution, in [0.1, 100]: below 1 failures come in bursts, 1 is the exponential distribution."""

    def __post_init__(self) -> None:
        require_seconds("NodeFailures.mtbf_s", self.mtbf_s, positive=True)
        require_seconds("NodeFailures.repair_s", self.repair_s)
        choice("NodeFailures.per", self.per, ("node", "machine"))
        choice("NodeFailures.distribution", self.distribution, ("exponential", "weibull"))
        shape = require_number("NodeFailures.shape", self.shape, "a number >= 0.1 and <= 100", lambda x: 0.1 <= x <= 100)
        if self.distribution == "exponential" and shape != 1:
            why = "not allowed with exponential times, whose shape is 1; give distribution='weibull'"
            raise SpecificationError(f"NodeFailures.shape: {self.shape:g} is {why}")

    @property
    def scale_s(self) -> float:
        """Scale of the Weibull distribution, seconds: mtbf_s / Gamma(1 + 1 / shape)."""
        return self.mtbf_s / math.gamma(1 + 1 / self.shape)

    @property
    def mean_repair_s(self) -> float:
        """Mean time from a failure until the node is up again, seconds."""
        return self.repair_s

    def node_mtbf_s(self, nodes: int) -> float:
        """Return the mean time between the failures of one node of a machine of ``nodes`` nodes, seconds."""
        return self.mtbf_s if self.per == "node" else self.mtbf_s * nodes

    def failures(self, nodes: int, rng: np.random.Generator) -> Iterator[Failure]:
        """Return the failures of a machine in order of time, without end; at most 10,000,000 nodes with ``per="node"``."""
        count = require_whole("nodes", nodes, at_least=1)
        if self.per == "node" and count > MOST_NODES:
            raise SpecificationError(
                f"NodeFailures.per: 'node' is not allowed on {count:,} nodes; it must be 'machine', or nodes <= {MOST_NODES:,}"
            )
        lives, _, choices = rng.spawn(3)  # the second one drew repair times; the others stay as they were
        between = _one_by_one(lambda size: self.scale_s * lives.weibull(self.shape, size))
        repair = to_ticks(self.repair_s)
        # Times that remain at a random moment: a uniform share of a time drawn with a weight equal to its length.  For Weibull
        # times with shape k, (time / scale)^k so weighted has a gamma distribution with parameter 1 + 1 / k.
        size = count if self.per == "node" else 1
        first_s: FloatArray = self.scale_s * lives.gamma(1 + 1 / self.shape, size=size) ** (1 / self.shape) * lives.random(size)
        if self.per == "node":
            return _of_each_node(first_s, between, repair)
        return _of_the_machine(count, to_ticks(float(first_s[0])), between, repair, choices)


def _one_by_one(draw: Callable[[int], FloatArray]) -> Iterator[int]:
    """Yield random times in ticks, drawn in chunks."""
    while True:
        yield from map(duration_to_ticks, draw(_CHUNK).tolist())


def _of_each_node(first_s: FloatArray, between: Iterator[int], repair: int) -> Iterator[Failure]:
    """Yield the failures of nodes that each have a clock, which stands still while the node is down."""
    pending: list[tuple[int, int]] = []  # heap of (time, node): the next failures of nodes, but for first ones that lie later
    order = np.argsort(first_s, kind="stable")
    chunks = (order[begin : begin + _CHUNK] for begin in range(0, len(order), _CHUNK))
    first = (pair for nodes in chunks for pair in zip(map(to_ticks, first_s[nodes].tolist()), nodes.tolist(), strict=True))
    upcoming: tuple[int, int] | None = next(first)
    while True:
        while upcoming is not None and (not pending or upcoming[0] <= pending[0][0]):
            heapq.heappush(pending, upcoming)
            upcoming = next(first, None)
        time, node = pending[0]
        failure = Failure(time, node, repair)
        heapq.heapreplace(pending, (time + failure.repair + next(between), node))
        yield failure


def _of_the_machine(nodes: int, time: int, between: Iterator[int], repair: int, rng: np.random.Generator) -> Iterator[Failure]:
    """Yield the failures of a machine with one clock, which keeps running while nodes are down, from the first ``time`` on."""
    down: list[int] = []  # nodes, ascending
    repaired: list[tuple[int, int]] = []  # heap of (time, node)
    while True:
        while repaired and repaired[0][0] < time:
            del down[bisect_left(down, heapq.heappop(repaired)[1])]
        if len(down) < nodes:
            node = int(rng.integers(nodes - len(down)))  # among the nodes that are up
            for other in down:
                node += other <= node
            failure = Failure(time, node, repair)
            insort(down, node)
            heapq.heappush(repaired, (time + failure.repair, node))
            yield failure
        time += next(between)
