"""Qualities of service: which limits come first, and what they lift."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clustermodel.validation import flag, require


@dataclass(frozen=True, kw_only=True)
class QOS:
    """A quality of service as Slurm has it: which limits come first, and what it lifts.

    >>> from clustermodel import QOS
    >>> long = QOS(name="long", lifts_partition_time=True)
    >>> gpu = QOS(name="gpu", partitions="gpu")

    Its limits are :class:`Limits` with this ``qos``.  If a job's partition has a QOS too, one of the two sets each limit: that
    of the partition if it has such a limit, else the job's.  *Such a limit* is the same field of :class:`Limits` for the same
    users, accounts and so on.  A value that is not allowed is a ``SpecificationError``.
    """

    name: str
    """The name that jobs give (column ``qos`` of a workload)."""
    partitions: Sequence[str] = ()
    """The partitions whose QOS it is (Slurm: ``QOS=`` of a partition): their jobs are under its limits, whatever their own."""
    over_partition_qos: bool = False
    """Whether its limits come before those of the partition's QOS (Slurm: OverPartQOS)."""
    lifts_partition_time: bool = False
    """Whether its jobs may exceed the partition's wall-time limit (Slurm: PartitionTimeLimit)."""
    lifts_partition_nodes: bool = False
    """Whether its jobs may exceed the partition's ``max_nodes`` (Slurm: PartitionMaxNodes)."""

    def __post_init__(self) -> None:
        require(isinstance(self.name, str) and self.name, "QOS.name", self.name, "it must be a text")
        names: object = [self.partitions] if isinstance(self.partitions, str) else self.partitions
        known = isinstance(names, Sequence) and all(isinstance(name, str) and name for name in names)
        require(known, "QOS.partitions", self.partitions, "they must be names of partitions")
        assert isinstance(names, Sequence)
        object.__setattr__(self, "partitions", tuple(dict.fromkeys(names)))
        for name in ("over_partition_qos", "lifts_partition_time", "lifts_partition_nodes"):
            flag(f"QOS.{name}", getattr(self, name))
