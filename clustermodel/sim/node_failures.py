"""Nodes that fail and are repaired: a process that follows the machine's failures, whatever the policy does."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Protocol

from simpy import Event

from clustermodel.sim.events import Clock


class Failing(Protocol):
    """What is told of failures and repairs: the coordinator."""

    def node_failed(self, node: int) -> None:
        """A node fails now."""

    def node_repaired(self, node: int) -> None:
        """A node that has failed is up again."""


def fail_nodes(env: Clock, outages: Iterable[tuple[int, int, int]], coordinator: Failing) -> Generator[Event, object, None]:
    """Let nodes fail and be repaired, for as long as the run lasts.

    Args:
        env: the simulation.
        outages: (failed at, node, up again at), ticks, in order.
        coordinator: is told.
    """
    for failed, node, repaired in outages:
        if failed > env.now:
            yield env.timeout(failed - env.now)
        coordinator.node_failed(node)
        env.process(_repair(env, node, repaired - failed, coordinator))


def _repair(env: Clock, node: int, ticks: int, coordinator: Failing) -> Generator[Event, object, None]:
    yield env.timeout(ticks)
    coordinator.node_repaired(node)
