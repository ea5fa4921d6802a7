"""Types of nodes, on a machine whose nodes differ."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import clustermodel.validation as check
from clustermodel.machine.node_ranges import bounds_of, ranges_of
from clustermodel.machine.power import Power
from clustermodel.validation import require, whole_fields


@dataclass(frozen=True, kw_only=True)
class NodeType:
    """A type of identical nodes, on a machine whose nodes differ.

    >>> from clustermodel import Machine, NodeType
    >>> fast = NodeType(name="fast", nodes="0-3", speed=2, features=["ib", "avx512"])
    >>> big = NodeType(name="big", nodes="4-5", memory_gib=512)
    >>> machine = Machine(nodes=16, node_memory_gib=64, node_types=[fast, big])
    >>> machine.node_types[0].features
    ('ib', 'avx512')
    """

    name: str
    """The name that jobs give (:attr:`Job.node_type <clustermodel.workload.job.Job.node_type>`)."""
    nodes: str | Sequence[int]
    """Its nodes, in the form of :attr:`Partition.nodes`; each node has at most one type."""
    processors_per_node: int | None = None
    """Processors of each node; ``None``, here and below: as of the machine's other nodes."""
    memory_gib: float | None = None
    """Memory of each node, GiB: jobs that need more do not get these nodes."""
    speed: float = 1.0
    """Speed relative to nodes of speed 1, to which run times and estimates refer."""
    features: str | Sequence[str] = ()
    """Features of its nodes, which jobs may ask for (:attr:`Job.features <clustermodel.workload.job.Job.features>`)."""
    power: Power | None = None
    """Power drawn by each of its nodes."""

    def __post_init__(self) -> None:
        known = isinstance(self.name, str) and self.name and "," not in self.name
        require(known, "NodeType.name", self.name, "it must be a text without commas")
        object.__setattr__(self, "nodes", ranges_of("NodeType.nodes", self.nodes))
        whole_fields(self, "NodeType.", processors_per_node=1)
        if self.memory_gib is not None:
            check.require_gib("NodeType.memory_gib", self.memory_gib, positive=True)
        check.require_number("NodeType.speed", self.speed, "a number > 0 and <= 1000", lambda speed: 0 < speed <= 1000)
        features = (self.features,) if isinstance(self.features, str) else self.features
        must = "they must be names without '&', '|', ',' and spaces"
        known = isinstance(features, Sequence) and all(
            isinstance(each, str) and re.fullmatch("[^&|, ]+", each) for each in features
        )
        require(known, "NodeType.features", self.features, must)
        object.__setattr__(self, "features", tuple(features))
        require(isinstance(self.power, Power | None), "NodeType.power", self.power, "it must be a Power(...) or None")

    @property
    def node_set(self) -> tuple[int, ...]:
        """Its nodes as ranges, (first, after the last, ...)."""
        return bounds_of("NodeType.nodes", self.nodes)


def has_features(features: frozenset[str], asked: str) -> bool:
    """Return whether nodes with these features have those asked for: ``"a&b"`` or ``"a,b"`` both, ``"a|b"`` one of them."""
    return any({part.strip() for part in re.split("[&,]", either)} <= features for either in asked.split("|"))
