"""Sets of nodes as sorted, disjoint, half-open ranges, and bisection of ascending lists.

A gang on a machine of 93,312 nodes usually holds one to three runs of neighbouring nodes.  Ranges take as much memory in a
job's record, and as long to find the lowest idle nodes, as there are runs; bitmasks grow with the size of the machine
(docs/design has the measurement).
"""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from operator import le, lt
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64  # an integer of the machine, where this is compiled

NodeSet = tuple[int, ...]  # bounds of the ranges, flat and ascending: ``(0, 4, 7, 8)`` is nodes 0, 1, 2, 3 and 7
_NARROW: Final = 1024  # a mask of up to so many bits is walked bit by bit (_set_bits) or run by run (lowest)
_MANY: Final = 16  # bits after which it halves the rest of a wider mask
_BEYOND: Final = 2**60  # beyond all nodes


def count(nodes: NodeSet) -> int:
    """Return the number of nodes in the set."""
    if len(nodes) == 2:
        return nodes[1] - nodes[0]
    return sum(nodes[1::2]) - sum(nodes[::2])


def members(nodes: NodeSet) -> Iterator[int]:
    """Yield the nodes of the set, ascending."""
    for low, high in zip(nodes[::2], nodes[1::2], strict=True):
        yield from range(low, high)


def from_members(nodes: Iterable[int]) -> NodeSet:
    """Return the set of some nodes."""
    bounds: list[int] = []
    for node in sorted(set(nodes)):
        if bounds and bounds[-1] == node:
            bounds[-1] += 1
        else:
            bounds += [node, node + 1]
    return tuple(bounds)


def holds_any(nodes: NodeSet, some: Collection[int]) -> bool:
    """Return whether one of some nodes is in the set."""
    return any(bisect.bisect_right(nodes, node) % 2 for node in some)  # an odd number of bounds up to it: a range is open there


def is_node_set(nodes: NodeSet) -> bool:
    """Return whether the bounds come in pairs, ascend and do not overlap, as those of a ``NodeSet`` must."""
    if len(nodes) == 2:
        return nodes[0] < nodes[1]
    ranges_ascend = all(map(lt, nodes[::2], nodes[1::2])) and all(map(le, nodes[1:-1:2], nodes[2::2]))
    return len(nodes) % 2 == 0 and ranges_ascend


def lowest_part(nodes: NodeSet, number: int) -> NodeSet:
    """Return the lowest ``number`` nodes of a set, which has as many."""
    for place in range(0, len(nodes), 2):
        low, high = nodes[place], nodes[place + 1]
        if number <= high - low:
            return (*nodes[:place], low, low + number) if number else nodes[:place]
        number -= high - low
    return nodes


def union(nodes: NodeSet, others: NodeSet) -> NodeSet:
    """Return the nodes of either set."""
    bounds: list[int] = []
    for low, high in sorted([*zip(nodes[::2], nodes[1::2], strict=True), *zip(others[::2], others[1::2], strict=True)]):
        if bounds and low <= bounds[-1]:
            bounds[-1] = max(bounds[-1], high)
        else:
            bounds += [low, high]
    return tuple(bounds)


def without(nodes: NodeSet, others: NodeSet) -> NodeSet:
    """Return the nodes of a set that are not in another one."""
    bounds: list[int] = []
    index = 0
    for place in range(0, len(nodes), 2):
        low, high = nodes[place], nodes[place + 1]
        while index < len(others) and others[index + 1] <= low:
            index += 2
        k = index
        while k < len(others) and others[k] < high:
            if low < others[k]:
                bounds += [low, others[k]]
            low = max(low, others[k + 1])
            k += 2
        if low < high:
            bounds += [low, high]
    return tuple(bounds)


def text(nodes: NodeSet) -> str:
    """Return the set as an interval string, ``"0-3 7"``: the notation of Batsim and evalys."""
    return " ".join(
        str(low) if high == low + 1 else f"{low}-{high - 1}" for low, high in zip(nodes[::2], nodes[1::2], strict=True)
    )


def as_mask(nodes: NodeSet) -> int:
    """Return the set as an integer bitmask, node 0 in the lowest bit."""
    mask, bounds = 0, iter(nodes)
    for low in bounds:
        mask |= (1 << next(bounds)) - (1 << low)
    return mask


mask_of: Final = lru_cache(maxsize=256)(as_mask)  # of sets that are asked for again and again


def from_mask(mask: int) -> NodeSet:
    """Return the set of an integer bitmask, node 0 in the lowest bit."""
    # A bit is unlike the one below it where a range begins, and where one ends.
    return tuple(_set_bits(mask ^ mask << 1))


def _set_bits(bits: int) -> list[int]:
    bounds: list[int] = []  # descending
    while (length := bits.bit_length()) > _NARROW:
        if len(bounds) >= _MANY:  # each look copies the whole mask
            half = length // 2
            bounds.reverse()
            return _set_bits(bits & ((1 << half) - 1)) + [bit + half for bit in _set_bits(bits >> half)] + bounds
        bounds.append(length - 1)
        bits ^= 1 << length - 1
    while bits:
        length = bits.bit_length() - 1
        bounds.append(length)
        bits ^= 1 << length
    bounds.reverse()
    return bounds


def lowest(mask: int, nodes: int) -> int:
    """Return the ``nodes`` lowest nodes of a bitmask, which has as many; an empty one is a ValueError."""
    if not nodes:
        return 0
    length = mask.bit_length()
    if length <= _NARROW:
        return _lowest_run_by_run(mask, nodes)
    part, low, width = mask, 0, 1 << length.bit_length()  # the last node sought is in this part, which begins at node `low`
    while width > _NARROW:
        width >>= 1
        lower = part & _all_of(width)
        if (held := lower.bit_count()) < nodes:
            part >>= width
            low += width
            nodes -= held
        else:
            part = lower
    return mask & ((1 << low + _lowest_run_by_run(part, nodes).bit_length()) - 1)


@lru_cache(maxsize=32)
def _all_of(width: int) -> int:
    return (1 << width) - 1


def _lowest_run_by_run(mask: int, nodes: int) -> int:
    taken = 0
    while mask:
        first = mask & -mask
        run = mask & ~(mask + first)  # adding the lowest bit carries it through the lowest run of bits
        held = run.bit_count()
        if held >= nodes:
            return taken | (first << nodes) - first
        taken |= run
        mask ^= run
        nodes -= held
    raise ValueError(f"{nodes} nodes of an empty set are asked for")


@lru_cache(maxsize=4096)
def places(mask: int) -> tuple[int, ...]:
    """Return which bits of a small mask are set, ascending: the rows in a set of rows."""
    return tuple(place for place in range(mask.bit_length()) if mask >> place & 1)


class IdleNodes:
    """The nodes that no gang holds: the lowest ones or particular ones can be taken, and given back."""

    __slots__ = ("_bounds", "count")

    def __init__(self, nodes: int) -> None:
        self._bounds = [0, nodes]  # ascending like a NodeSet; ranges that touch are always merged
        self.count = nodes

    def as_set(self) -> NodeSet:
        """Return the idle nodes."""
        return tuple(self._bounds)

    def take_lowest(self, nodes: int) -> NodeSet:
        """Remove and return the ``nodes`` lowest idle nodes; the caller has checked that so many are idle."""
        if not nodes:
            return ()
        bounds = self._bounds
        self.count -= nodes
        low = bounds[0]
        if bounds[1] - low > nodes:  # the usual case: the lowest range is long enough
            bounds[0] = low + nodes
            return (low, low + nodes)
        whole = 0
        while nodes and bounds[whole + 1] - bounds[whole] <= nodes:
            nodes -= bounds[whole + 1] - bounds[whole]
            whole += 2
        taken = bounds[:whole]
        del bounds[:whole]
        if nodes:
            taken += (bounds[0], bounds[0] + nodes)
            bounds[0] += nodes
        return tuple(taken)

    def lowest_of(self, eligible: NodeSet, nodes: int) -> NodeSet | None:
        """Return the ``nodes`` lowest idle ones of those ``eligible``; ``None`` if fewer are idle."""
        bounds, chosen = self._bounds, list[int]()
        for place in range(0, len(eligible), 2):
            low, high = eligible[place], eligible[place + 1]
            index = bisect_right(bounds, low)
            for k in range(index - index % 2, len(bounds), 2):
                begin, end = bounds[k], bounds[k + 1]
                if begin >= high:
                    break
                begin = max(begin, low)
                end = min(end, high)
                if end - begin >= nodes:
                    return (*chosen, begin, begin + nodes)
                chosen += begin, end
                nodes -= end - begin
        return None

    def has(self, nodes: NodeSet) -> bool:
        """Return whether these nodes are all idle."""
        return all(self._place_of(low, high) >= 0 for low, high in zip(nodes[::2], nodes[1::2], strict=True))

    def _place_of(self, low: int, high: int) -> int:
        """Return where the idle range begins of which a range is a part, in the list of bounds; -1 if there is none."""
        bounds = self._bounds
        index = bisect_right(bounds, low) - 1
        return index if index >= 0 and not index % 2 and low < high <= bounds[index + 1] else -1

    def take(self, nodes: NodeSet) -> bool:
        """Remove exactly ``nodes``; return ``False``, with nothing changed, unless all of them are idle."""
        bounds = self._bounds
        taken, given = 0, iter(nodes)
        for low in given:
            high = next(given)
            index = self._place_of(low, high)
            if index < 0:
                self.give_back(nodes[:taken])
                return False
            before = [bounds[index], low] if bounds[index] < low else []
            after = [high, bounds[index + 1]] if high < bounds[index + 1] else []
            bounds[index : index + 2] = before + after
            self.count -= high - low
            taken += 2
        return True

    def give_back(self, nodes: NodeSet) -> None:
        """Add ``nodes``; neighbouring ranges merge.  A node that is idle already is a ValueError."""
        bounds, given = self._bounds, iter(nodes)
        for low in given:
            high = next(given)
            index = bisect_left(bounds, low)
            joins_left = index % 2  # then bounds[index] is where the idle range on the left ends
            right = index + joins_left
            begin = bounds[right] if right < len(bounds) else _BEYOND  # of the idle range on the right
            if begin < high or (joins_left and bounds[index] != low):
                raise ValueError(f"nodes {low}-{high - 1} overlap nodes that are idle already")
            self.count += high - low
            if joins_left:
                if begin == high:
                    del bounds[index : index + 2]
                else:
                    bounds[index] = high
            elif begin == high:
                bounds[index] = low
            else:
                bounds[index:index] = (low, high)


class Allocation:
    """Chooses idle processors by a rule of ``Machine.allocation``: node i has i x per_node to (i + 1) x per_node - 1."""

    # It counts the starts of gangs that fitted by count and not by node: any choice took more nodes than the gang's size needs.

    def __init__(self, per_node: int, rule: str) -> None:
        self._per_node = per_node
        self._consolidates = rule == "consolidate"
        self.fragmented_starts = 0

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
    """Return idle processors of as few nodes as possible, and the number of these nodes."""
    # The nodes with the most idle processors come first, of equal ones the lowest.  What is left for the last node is on the
    # node with the fewest idle processors that has as many, so that others stay whole; there it has the lowest ones.
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


# Compiled, these functions compare whole numbers without a call, two to three times as fast as the standard library, which
# compares objects.  Interpreted, the library's functions take their places.


def bisect_left(values: list[int], value: int, low: i64 = 0) -> i64:
    """Return the first place from ``low`` on whose value is not below ``value``, the length of the list if there is none."""
    high: i64 = len(values)
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


def bisect_right(values: list[int], value: int, low: i64 = 0) -> i64:
    """Return the first place from ``low`` on whose value is above ``value``, the length of the list if there is none."""
    high: i64 = len(values)
    while low < high:
        middle = (low + high) >> 1
        if value < values[middle]:
            high = middle
        else:
            low = middle + 1
    return low


if __file__.endswith(".py"):
    globals().update(bisect_left=bisect.bisect_left, bisect_right=bisect.bisect_right)
