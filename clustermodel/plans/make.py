"""Which plan a run needs: by what jobs may differ in the nodes that they may have, and in how these must lie."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from clustermodel.machine.node_set import count
from clustermodel.plans.by_node import IdleProcessors, NodePlan, Nodes
from clustermodel.plans.masks import FreeNodes, FreeProcessors
from clustermodel.plans.one_pool import OnePool
from clustermodel.plans.pool_plans import IdleNodes, IdlePools, PoolPlan, RowPlan, RunningPlan
from clustermodel.plans.pools import Pools
from clustermodel.plans.reallocation import NodeReallocation, NumberReallocation, PoolReallocation, Reallocation
from clustermodel.plans.windows import Windows

if TYPE_CHECKING:
    from clustermodel.policies.interface import Setup
    from clustermodel.policies.view import RunningJob, View


def in_pools(setup: Setup) -> bool:
    """Return whether jobs may differ in the nodes that they may have, or in how these must lie."""
    # A bitmask of all nodes takes long on a wide machine.
    return setup.by_node or bool(setup.machine.windows) or (bool(setup.node_sets) and len(pools_of(setup)) > 1)


def pools_of(setup: Setup) -> Pools:
    """Return the pools of a machine, which is one if it has neither partitions nor windows."""
    machine = setup.machine
    windows = Windows(machine.windows, len(machine.reservations)) if machine.windows else None
    return Pools(setup.nodes, setup.node_sets, windows)


def nodes_of(setup: Setup) -> Nodes | None:
    """Return the nodes of a machine where plans are by node."""
    if not setup.by_node:
        return None
    machine = setup.machine
    return Nodes(machine.node_sizes, machine.node_memories, setup.node_sets, consolidates=machine.allocation == "consolidate")


def running_plan_of(setup: Setup, *, may_overrun: bool) -> RunningPlan:
    """Return an empty plan of the machine; ``may_overrun``: jobs may outlive their expected ends."""
    return plan_of(pools_of(setup), nodes_of(setup), may_overrun=may_overrun)


def plan_of(pools: Pools, nodes: Nodes | None, *, may_overrun: bool) -> RunningPlan:
    """Return an empty plan, by node where ``nodes`` are given; ``may_overrun``: jobs may outlive their expected ends."""
    if nodes is None:
        return OnePool(pools, may_overrun=may_overrun) if are_alike(pools) else PoolPlan(pools, may_overrun=may_overrun)
    return NodePlan(nodes, pools, may_overrun=may_overrun)


def row_plan_of(pools: Pools, *, alike: bool, most_overbooked: int) -> RowPlan:
    """Return an empty plan that can be laid out anew, from which all nodes may be subtracted so many times.

    Jobs are ``alike`` if any of them may have any nodes at any time (:func:`are_alike`).
    """
    if alike:
        return OnePool(pools, may_overrun=False)
    return PoolPlan(pools, may_overrun=False, most_overbooked=most_overbooked)


def idle_now(pools: Pools, nodes: Nodes | None, view: View, *, planned: bool = False) -> IdlePools | IdleProcessors:
    """Return the idle nodes, by pool or, where ``nodes`` are given, by node; ``planned``: as a plan may know them."""
    idle = view.idle_or_ended if planned else view.idle_nodes
    return IdlePools(pools, idle) if nodes is None else IdleProcessors(pools, nodes, idle, view.free_memory)


def idle_to_take(
    pools: Pools, nodes: Nodes | None, view: View, *, planned: bool = False
) -> IdleNodes | IdlePools | IdleProcessors:
    """:func:`idle_now`; where all nodes are alike only their number, and the machine chooses those of a job that starts."""
    if nodes is None and are_alike(pools):
        return IdleNodes(count(view.idle_or_ended()) if planned else view.idle)
    return idle_now(pools, nodes, view, planned=planned)


def reallocation_of(
    pools: Pools, nodes: Nodes | None, view: View, gains: Iterable[RunningJob], leaving: Iterable[RunningJob] = ()
) -> Reallocation:
    """Return the nodes of a scheduling cycle in which jobs may be preempted: idle ones, and those of running jobs."""
    if nodes is not None:
        return NodeReallocation(pools, nodes, view, gains, leaving)
    if are_alike(pools):
        return NumberReallocation(view.idle, gains, leaving)
    return PoolReallocation(pools, view, gains, leaving)


def free_nodes_of(setup: Setup) -> FreeNodes:
    """Return what chooses nodes for jobs out of bitmasks of free ones."""
    pools, nodes = pools_of(setup), nodes_of(setup)
    if nodes is None:
        return FreeNodes(pools)
    return FreeProcessors(pools, nodes, shares_memory=setup.machine.node_memories is not None)


def are_alike(pools: Pools) -> bool:
    """Return whether any job may have any nodes of a machine at any time."""
    return pools.are_alike
