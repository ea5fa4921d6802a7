"""Partitions of the machine: which nodes a job may have, by the partitions that it names.

A job that names several runs in one of them.  They are tried in the order of their priorities, of equal ones as they are named.
One that has no nodes beside those of another one is not tried: that one has room wherever it has.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, reduce
from operator import or_
from typing import Final, NamedTuple

from clustermodel.machine.machine import Machine
from clustermodel.machine.node_set import NodeSet, as_mask, count, from_mask
from clustermodel.ticks import NEVER, to_ticks
from clustermodel.workload.job import Demand, Demands, JobRow


class Place(NamedTuple):
    """The nodes that a job may have."""

    allowed: NodeSet | None
    """All of them, ``None`` for those of the machine."""
    alternatives: tuple[NodeSet, ...] = ()
    """As of :class:`~clustermodel.policies.view.QueuedJob`."""
    priority: int = 0
    """What is added to its priority."""


def place_in(sets: Iterable[NodeSet], priority: int) -> Place:
    """Return the place of a job that may have the nodes of one of some sets, in the order in which they are tried."""
    masks = {each: as_mask(each) for each in sets}
    alone = [each for each, mask in masks.items() if all(mask == other or mask & ~other for other in masks.values())]
    if len(alone) == 1:
        return Place(alone[0], (), priority)
    return Place(from_mask(reduce(or_, masks.values())), tuple(alone), priority)


class _Limits(NamedTuple):
    """The limits of a partition, ticks and nodes."""

    name: str
    longest: int
    most: int
    size: int


class Lifting(NamedTuple):
    """The QOS whose jobs are exempt from limits of partitions: from those of wall time, and from those of nodes."""

    time: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()


NO_LIFTING: Final = Lifting()


class Partitions:
    """The partitions of a machine in one run."""

    def __init__(self, machine: Machine, demands: Demands, lifting: Lifting = NO_LIFTING) -> None:
        partitions = machine.partitions
        self._nodes, self._lifting = machine.processors, lifting
        self._by_name = {partition.name: partition for partition in partitions}
        self._sets = dict(zip(self._by_name, machine.sets_of_nodes(), strict=False))
        self._default = next((partition.name for partition in partitions if partition.default), None)
        self._sizes = {name: count(nodes) for name, nodes in self._sets.items()}
        named = {self._names_of(demand) for demand in demands}
        self._may_have_all = None in named  # whether some job may
        self._named = {names for names in (*named, self._default) if names is not None}
        self._limits = lru_cache(maxsize=4096)(self._limits_of)
        self._place = lru_cache(maxsize=4096)(self._place_in)

    def _names_of(self, demand: Demand | None) -> str | None:
        """Return the partitions of which a job may have one, separated by commas; ``None``: it may have all nodes."""
        return self._default if demand is None or demand.partition is None else demand.partition

    def of(self, row: JobRow) -> Place | None:
        """Return the nodes that a job may have; ``None``: none of its partitions can ever hold it."""
        demand = row.demand
        if (names := self._names_of(demand)) is None:
            return ANYWHERE
        qos, nodes, estimate = None if demand is None else demand.qos, row.nodes, row.estimate
        if qos in self._lifting.time:
            estimate = 0
        allowed = tuple(
            [
                each.name
                for each in self._limits(names)
                if estimate <= each.longest and nodes <= (each.size if qos in self._lifting.nodes else each.most)
            ]
        )
        return self._place(allowed) if allowed else None

    def disjoint(self) -> list[NodeSet]:
        """Return parts of the machine without common nodes, where each job may have nodes of one of them only.

        There are none where that is one, or it is not known.
        """
        if self._may_have_all:
            return []
        parts: list[int] = []
        for names in self._named:
            if mask := self._mask(each.name for each in self._limits(names)):
                apart = [part for part in parts if not part & mask]
                parts = [*apart, mask | sum(part for part in parts if part & mask)]
        return [from_mask(part) for part in parts] if len(parts) > 1 else []

    def _limits_of(self, names: str) -> list[_Limits]:
        chosen = [self._by_name[name] for part in names.split(",") if (name := part.strip()) in self._by_name]
        chosen.sort(key=lambda each: -each.priority)
        return [
            _Limits(
                each.name,
                NEVER if each.max_wall_time_s is None else to_ticks(each.max_wall_time_s),
                min(self._sizes[each.name], self._sizes[each.name] if each.max_nodes is None else each.max_nodes),
                self._sizes[each.name],
            )
            for each in chosen
        ]

    def _mask(self, names: Iterable[str]) -> int:
        mask = 0
        for name in names:
            mask |= as_mask(self._sets[name])
        return mask

    def _place_in(self, names: tuple[str, ...]) -> Place:
        """Return what jobs have that may run in some partitions, which are in order."""
        place = place_in([self._sets[name] for name in names], self._by_name[names[0]].priority)
        return place._replace(allowed=None) if not place.alternatives and place.allowed == (0, self._nodes) else place


ANYWHERE: Final = Place(None)  # all nodes, and no other priority
