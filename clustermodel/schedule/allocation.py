"""Which processors a gang gets on a machine whose nodes have several, and how often too few of a node are idle together."""

from __future__ import annotations

from clustermodel.schedule.node_set import IdleNodes, NodeSet, from_mask, lowest


class Allocation:
    """Chooses idle processors, and counts the starts for which they were scattered over too many nodes.

    Node i has the processors i x per_node to (i + 1) x per_node - 1; the ``rule`` is that of ``Machine.allocation``.
    """

    def __init__(self, per_node: int, rule: str) -> None:
        self._per_node = per_node
        self._consolidates = rule == "consolidate"
        self.fragmented_starts = 0
        """Starts of gangs that fitted by count and not by node: any choice took more nodes than the gang's size needs."""

    def take(self, idle: IdleNodes, processors: int) -> NodeSet:
        """Remove and return ``processors`` idle ones; the caller has checked that so many are idle."""
        chosen, nodes = consolidated(idle.as_set(), processors, self._per_node)
        self.fragmented_starts += nodes > -(-processors // self._per_node)
        if not self._consolidates:
            return idle.take_lowest(processors)
        taken = idle.take(chosen)
        assert taken, "only idle processors are chosen"
        return chosen


def consolidated(idle: NodeSet, processors: int, per_node: int) -> tuple[NodeSet, int]:
    """Return idle processors of as few nodes as possible, and the number of these nodes.

    The nodes with the most idle processors come first, of equal ones the lowest.  What is left for the last node is on the node
    with the fewest idle processors that has as many, so that others stay whole; there it has the lowest ones.
    """
    free: dict[int, int] = {}  # node -> bitmask of its idle processors
    for low, high in zip(idle[::2], idle[1::2], strict=True):
        for node in range(low // per_node, -(-high // per_node)):
            begin = node * per_node
            first, end = max(low - begin, 0), min(high - begin, per_node)
            free[node] = free.get(node, 0) | (1 << end) - (1 << first)
    chosen, left, nodes = 0, processors, 0
    for node in sorted(free, key=lambda node: (-free[node].bit_count(), node)):
        mask = free[node]
        if mask.bit_count() >= left:
            break
        chosen |= free.pop(node) << node * per_node
        left -= mask.bit_count()
        nodes += 1
    last = min((node for node in free if free[node].bit_count() >= left), key=lambda node: (free[node].bit_count(), node))
    chosen |= lowest(free[last], left) << last * per_node
    return from_mask(chosen), nodes + 1
