"""Partitions of the machine: which nodes a job may have, by the partitions that it names."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from clustermodel.job import JobRow
from clustermodel.machine import Machine
from clustermodel.schedule.node_set import NodeSet, as_mask, count, from_mask
from clustermodel.ticks import NEVER, to_ticks


class _Limits(NamedTuple):
    """The limits of a partition, ticks and nodes."""

    name: str
    longest: int
    most: int


class Lifted(NamedTuple):
    """By number, the jobs for which limits of partitions do not hold: those of wall time, and those of nodes."""

    time: Container[int]
    nodes: Container[int]


NONE_LIFTED: Final = Lifted((), ())


class Partitions:
    """The partitions of a machine in one run, in which all jobs name some or, as far as is known, some do not."""

    def __init__(self, machine: Machine, named: Mapping[int, str], *, all_named: bool, lifted: Lifted = NONE_LIFTED) -> None:
        self._nodes, self._named = machine.processors, named  # by job id, the partitions that a job names, separated by commas
        partitions = machine.partitions
        self._lifted = lifted
        self._by_name = {partition.name: partition for partition in partitions}
        self._sets = dict(zip(self._by_name, machine.sets_of_nodes(), strict=False))
        self._default = next((partition.name for partition in partitions if partition.default), None)
        self._may_have_all = self._default is None and not all_named
        self._limits = lru_cache(maxsize=4096)(self._limits_of)
        self._place = lru_cache(maxsize=4096)(self._place_in)

    def of(self, row: JobRow) -> tuple[NodeSet | None, int] | None:
        """Return the nodes that a job may have, ``None`` for all, and what is added to its priority; ``None``: it has none."""
        if (names := self._named.get(row.id, self._default)) is None:
            return None, 0
        nodes, lifted = row.nodes, self._lifted
        estimate = 0 if row.id in lifted.time else row.estimate
        size = 0 if row.id in lifted.nodes else nodes
        allowed = tuple([name for name, longest, most in self._limits(names) if estimate <= longest and size <= most])
        if not allowed:
            return None
        size, place = self._place(allowed)
        return None if size < nodes else place

    def disjoint(self) -> list[NodeSet]:
        """Return parts of the machine without common nodes, where each job may have nodes of one of them only.

        There are none where that is one, or it is not known.
        """
        if self._may_have_all:
            return []
        parts: list[int] = []
        for names in {*self._named.values(), *([] if self._default is None else [self._default])}:
            if mask := self._mask(name for name, _, _ in self._limits(names)):
                apart = [part for part in parts if not part & mask]
                parts = [*apart, mask | sum(part for part in parts if part & mask)]
        return [from_mask(part) for part in parts] if len(parts) > 1 else []

    def _limits_of(self, names: str) -> list[_Limits]:
        chosen = [self._by_name[name] for part in names.split(",") if (name := part.strip()) in self._by_name]
        return [
            _Limits(
                each.name,
                NEVER if each.max_wall_time_s is None else to_ticks(each.max_wall_time_s),
                NEVER if each.max_nodes is None else each.max_nodes,
            )
            for each in chosen
        ]

    def _mask(self, names: Iterable[str]) -> int:
        mask = 0
        for name in names:
            mask |= as_mask(self._sets[name])
        return mask

    def _place_in(self, names: tuple[str, ...]) -> tuple[int, tuple[NodeSet | None, int]]:
        """Return the number of nodes of some partitions, and what jobs that may have them have."""
        eligible, priority = from_mask(self._mask(names)), max(self._by_name[name].priority for name in names)
        return count(eligible), (None if eligible == (0, self._nodes) else eligible, priority)
