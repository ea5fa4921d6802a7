"""Nodes that fail and are repaired: a process that follows the machine's failures, whatever the policy does."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Protocol

from simpy import Event

from clustermodel.failures.failure import Failure
from clustermodel.sim.events import Clock


class Operator(Protocol):
    """What is told of failures and repairs: the coordinator."""

    def node_failed(self, node: int) -> None:
        """A node fails now."""

    def node_repaired(self, node: int) -> None:
        """A node that has failed is up again."""


def fail_nodes(env: Clock, failures: Iterable[Failure], operator: Operator) -> Generator[Event, object, None]:
    """Let nodes fail and be repaired, for as long as the run lasts.

    Args:
        env: the simulation.
        failures: in order of time.
        operator: is told.
    """
    for time, node, repair in failures:
        if time > env.now:
            yield env.timeout(time - env.now)
        operator.node_failed(node)
        env.process(_repair(env, node, repair, operator))


def _repair(env: Clock, node: int, ticks: int, operator: Operator) -> Generator[Event, object, None]:
    yield env.timeout(ticks)
    operator.node_repaired(node)
