"""What the mechanism asks of a source of failures: one failure after the other, in order of time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np


class Failure(NamedTuple):
    """A node fails and is down until it is repaired."""

    time: int
    """When the node fails, ticks."""
    node: int
    """Which node, from 0."""
    repair: int
    """Ticks until the node is up again; 0 is a failure that only stops what runs on the node."""


@runtime_checkable
class FailureSource(Protocol):
    """Source of a machine's failures: :class:`~clustermodel.failures.node_failures.NodeFailures` or
    :class:`~clustermodel.failures.outages.Outages`.
    """

    @property
    def mean_repair_s(self) -> float:
        """Mean time from a failure until the node is up again, seconds: what a scheduler expects."""

    def node_mtbf_s(self, nodes: int) -> float:
        """Return the mean time between the failures of one node of a machine of ``nodes`` nodes, seconds."""

    def failures(self, nodes: int, rng: np.random.Generator) -> Iterator[Failure]:
        """Return the failures of a machine of ``nodes`` nodes in order of time, those of one time in order of node.

        Failures come one at a time and may be without end.  All nodes are up at time 0.  A node that is down does not fail: its
        next failure is at least one tick after its repair.  Nothing depends on what the machine executes, so all policies see
        the same failures.

        Args:
            nodes: of the machine.
            rng: random numbers of this purpose alone, new for each run.

        Raises:
            SpecificationError: the source does not fit a machine of that many nodes.
        """
