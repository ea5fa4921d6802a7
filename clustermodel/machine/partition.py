"""Partitions: named sets of nodes with limits of their own."""

from collections.abc import Sequence
from dataclasses import dataclass

import clustermodel.validation as check
from clustermodel.machine.node_ranges import bounds_of, ranges_of
from clustermodel.validation import require, seconds_fields, whole_fields


@dataclass(frozen=True, kw_only=True)
class Partition:
    """A named set of nodes with its own limits; partitions may overlap.

    >>> from clustermodel import Machine, Partition
    >>> debug = Partition(name="debug", nodes="60-63", max_wall_time_s=1800, priority=1)
    >>> batch = Partition(name="batch", nodes=range(60), default=True)
    >>> machine = Machine(nodes=64, partitions=[debug, batch])
    >>> [partition.nodes for partition in machine.partitions]
    ['60-63', '0-59']
    """

    name: str
    """The name that jobs give (column ``partition`` of a workload); a job that gives several, separated by commas, runs in one
    of them."""
    nodes: str | Sequence[int]
    """Its nodes, counted from 0: as text, ``"0-59,62"``, or a sequence of numbers; or shares of the machine, as ``"all"`` or
    ``"0%-80%"``: those of a site grow with the machine."""
    max_wall_time_s: float | None = None
    """Longest estimate, seconds; a job with a longer one is rejected, unless it names another partition that can hold it."""
    max_nodes: int | None = None
    """Largest number of nodes of a job."""
    priority: int = 0
    """Added to the priority of jobs that name the partition.  Of several partitions, the highest counts, and is tried first."""
    default: bool = False
    """Whether jobs without a partition belong here; without a default partition they may use all nodes."""

    def __post_init__(self) -> None:
        known = isinstance(self.name, str) and self.name and "," not in self.name
        require(known, "Partition.name", self.name, "it must be a text without commas")
        object.__setattr__(self, "nodes", ranges_of("Partition.nodes", self.nodes))
        seconds_fields(self, "Partition.", "max_wall_time_s", positive=True)
        whole_fields(self, "Partition.", max_nodes=1, priority=None)
        check.flag("Partition.default", self.default)

    @property
    def node_set(self) -> tuple[int, ...]:
        """Its nodes as ranges, (first, after the last, ...)."""
        return bounds_of("Partition.nodes", self.nodes)
