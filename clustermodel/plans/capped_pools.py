"""The power cap: how many nodes of each pool may be in use so that what all nodes draw never exceeds it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from clustermodel.machine.node_set import NodeSet, as_mask
from clustermodel.plans.pools import Pools


class CappedPool(NamedTuple):
    """Nodes that no job can tell apart and that draw the same."""

    nodes: int  # a bitmask
    most: int  # how many of them may be in use


def capped_pools(
    nodes: int, sets: Iterable[NodeSet], draws: Sequence[tuple[NodeSet, int, int]], cap: int | None
) -> list[CappedPool]:
    """Return how many nodes of each pool may be in use; nothing where all may, or there is no cap.

    ``sets`` are those to which jobs may be limited; ``draws`` the most that nodes draw when they are not in use, and at any
    time.  Of each pool the same share may be in use, as far as whole nodes allow.
    """
    if cap is None:
        return []
    masks = [(as_mask(bounds), unused, most) for bounds, unused, most in draws]
    pools = Pools(nodes, [*sets, *(bounds for bounds, _, _ in draws)]).masks
    sizes = [pool.bit_count() for pool in pools]
    of_pools = [next((unused, most) for mask, unused, most in masks if mask & pool) for pool in pools]
    more = [most - unused for unused, most in of_pools]  # that a node draws when it is in use
    in_all = cap - sum(size * unused for size, (unused, _) in zip(sizes, of_pools, strict=True))
    wanted = sum(size * each for size, each in zip(sizes, more, strict=True))
    if in_all >= wanted:
        return []
    allowed = [size * in_all // wanted for size in sizes]
    left = in_all - sum(number * each for number, each in zip(allowed, more, strict=True))
    for pool in sorted(range(len(pools)), key=lambda pool: (-(sizes[pool] * in_all % wanted), pool)):
        if more[pool] <= left and allowed[pool] < sizes[pool]:
            allowed[pool] += 1
            left -= more[pool]
    return [CappedPool(*pair) for pair in zip(pools, allowed, strict=True)]


def most_in_use(pools: Sequence[CappedPool], nodes: int, allowed: NodeSet | None = None) -> int:
    """Return how many of the nodes that a job may have can be in use at a time; ``None``: of all ``nodes``."""
    mask = (1 << nodes) - 1 if allowed is None else as_mask(allowed)
    return sum(min(pool.most, (pool.nodes & mask).bit_count()) for pool in pools) if pools else mask.bit_count()
