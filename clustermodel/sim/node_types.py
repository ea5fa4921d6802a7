"""Types of nodes: which nodes a job may have by the types and features that it names and its memory, and how fast they are."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from clustermodel.machine.machine import Machine
from clustermodel.machine.node_set import NodeSet, as_mask, from_mask
from clustermodel.machine.node_type import has_features
from clustermodel.sim.partitions import ANYWHERE, NO_LIFTING, Lifting, Partitions, Place, place_in
from clustermodel.validation import to_kib
from clustermodel.workload.job import Demands, JobRow


class _Group(NamedTuple):
    """Nodes of a type, or of none, as processors."""

    name: str | None
    features: frozenset[str]
    memory: int | None
    mask: int


class NodeTypes:
    """The types of the nodes of a machine, perhaps in partitions, in one run."""

    def __init__(self, machine: Machine, partitions: Partitions | None) -> None:
        self._partitions = partitions
        self._whole = (1 << machine.processors) - 1
        rest, memories = self._whole, machine.node_memories
        self._groups: list[_Group] = []
        for each, processors in zip(machine.node_types, machine.sets_of_nodes()[len(machine.partitions) :], strict=True):
            memory = None if memories is None else memories[each.node_set[0]]
            self._groups.append(_Group(each.name, frozenset(each.features), memory, as_mask(processors)))
            rest &= ~as_mask(processors)
        if rest:
            memory = None if machine.node_memory_gib is None else to_kib(machine.node_memory_gib)
            self._groups.append(_Group(None, frozenset(), memory, rest))

    def of(self, row: JobRow) -> Place | None:
        """Return the nodes that a job may have; ``None``: it may have too few."""
        place = ANYWHERE if self._partitions is None else self._partitions.of(row)
        if place is None:
            return None
        types, features = (None, None) if row.demand is None else (row.demand.node_type, row.demand.features)
        mask = 0
        for group in self._groups:
            named = types is None or group.name in re.split(r"\s*,\s*", types.strip())
            large = group.memory is None or row.memory <= group.memory
            if named and large and (features is None or has_features(group.features, features)):
                mask |= group.mask
        if mask == self._whole:
            return place
        parts = [mask if each is None else mask & as_mask(each) for each in place.alternatives or (place.allowed,)]
        sets = [from_mask(each) for each in parts if each.bit_count() >= row.nodes]
        return place_in(sets, place.priority) if sets else None


def places_of(machine: Machine, demands: Demands, lifting: Lifting = NO_LIFTING) -> Partitions | NodeTypes | None:
    """Return which nodes jobs may have, by what they demand; ``None`` where each may have all."""
    partitions = Partitions(machine, demands, lifting) if machine.partitions else None
    named = any(demand is not None and (demand.node_type or demand.features) for demand in demands)
    if not machine.node_types or not (named or any(each.memory_gib for each in machine.node_types)):
        return partitions
    return NodeTypes(machine, partitions)


class Speeds:
    """How fast the nodes of a machine are; a gang is as fast as the slowest of its nodes."""

    def __init__(self, speeds: list[float], sizes: list[int]) -> None:
        self._speeds = np.repeat(np.array(speeds), sizes)

    def slowest(self, nodes: NodeSet | None) -> float:
        """Return the speed of the slowest of some nodes, ``None`` for all."""
        if nodes is None:
            return float(self._speeds.min())
        return min(float(self._speeds[low:high].min()) for low, high in zip(nodes[::2], nodes[1::2], strict=True))


def at_speed(ticks: int, speed: float) -> int:
    """Return how long nodes of a speed take for what takes ``ticks`` at speed 1."""
    return max(1, round(ticks / speed))
