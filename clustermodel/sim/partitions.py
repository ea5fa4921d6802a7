"""Partitions of the machine: which nodes a job may have, by the partitions that it names."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from clustermodel.job import JobRow
from clustermodel.machine import Machine, Partition
from clustermodel.schedule.node_set import NodeSet, as_mask, count, from_mask
from clustermodel.ticks import to_ticks


class Partitions:
    """The partitions of a machine in one run."""

    def __init__(self, machine: Machine, named: Mapping[int, str]) -> None:
        self._nodes, self._named = machine.processors, named  # by job id, the partitions that a job names, separated by commas
        partitions = machine.partitions
        self._by_name = {partition.name: partition for partition in partitions}
        self._sets = dict(zip(self._by_name, machine.sets_of_nodes(), strict=False))
        self._default = next((partition.name for partition in partitions if partition.default), None)
        self._union = lru_cache(maxsize=4096)(self._nodes_of)

    def of(self, row: JobRow) -> tuple[NodeSet | None, int] | None:
        """Return the nodes that a job may have, ``None`` for all, and what is added to its priority; ``None``: it has none."""
        if (names := self._named.get(row.id, self._default)) is None:
            return None, 0
        chosen = [self._by_name[name] for part in names.split(",") if (name := part.strip()) in self._by_name]
        allowed = tuple(partition.name for partition in chosen if self._allows(partition, row))
        if not allowed or count(eligible := self._union(allowed)) < row.nodes:
            return None
        whole = eligible == (0, self._nodes)
        return None if whole else eligible, max(self._by_name[name].priority for name in allowed)

    def _allows(self, partition: Partition, row: JobRow) -> bool:
        longest, most = partition.max_wall_time_s, partition.max_nodes
        return (longest is None or row.estimate <= to_ticks(longest)) and (most is None or row.nodes <= most)

    def _nodes_of(self, names: tuple[str, ...]) -> NodeSet:
        mask = 0
        for name in names:
            mask |= as_mask(self._sets[name])
        return from_mask(mask)
