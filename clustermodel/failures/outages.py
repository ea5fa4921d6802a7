"""Outages of the nodes of a real machine: when each node failed, and when it was up again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import FloatArray, IntArray
from clustermodel.errors import SpecificationError, quoted
from clustermodel.failures.failure import Failure
from clustermodel.ticks import to_ticks
from clustermodel.validation import LONGEST_S, require_whole


@dataclass(frozen=True, kw_only=True, eq=False)
class Outages:
    """Recorded outages in order of time: an immutable value, which
    :func:`~clustermodel.failures.outage_files.read_outages` reads from a file.

    Second 0 is ``origin``.  Recorded outages of one node may overlap: they are failures of their own in
    :attr:`times_between_failures_s` and in the repair times, but a node that is down cannot fail, so :meth:`merged` joins them.

    Raises:
        SpecificationError: the columns differ in length or have values that are not allowed, or there is no outage.
    """

    node: IntArray
    """Which node, from 0, shape ``(outages,)``."""
    down_s: FloatArray
    """When the node failed, seconds, shape ``(outages,)``."""
    up_s: FloatArray
    """When the node was up again, seconds, shape ``(outages,)``."""
    nodes: int
    """Number of nodes of the machine."""
    cause: tuple[str, ...] = ()
    """Recorded cause of each outage; empty if none is recorded."""
    name: str = "outages"
    """Name of the machine."""
    source: str = ""
    """File name."""
    origin: str = ""
    """Date and time of second 0, in ISO format; empty if the file has none."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Number of recorded outages left out, by reason."""
    adjusted: Mapping[str, int] = field(default_factory=dict)
    """Number of outages with a time filled in or corrected, by reason."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", require_whole("Outages.nodes", self.nodes, at_least=1))
        node = _column("Outages.node", self.node, "iu").astype(np.int64)
        down, up = (_column(f"Outages.{name}", getattr(self, name), "iuf").astype(np.float64) for name in ("down_s", "up_s"))
        if not len(node) == len(down) == len(up) == (len(self.cause) or len(node)):
            raise SpecificationError(
                f"Outages: {len(node)} nodes, {len(down)} down_s, {len(up)} up_s and {len(self.cause)} causes are not allowed; "
                "the columns must have equal lengths"
            )
        if not len(node):
            raise SpecificationError("Outages: there is no outage; there must be at least one")
        self._refuse_first("node", node, (node < 0) | (node >= self.nodes), f"an integer >= 0 and < {self.nodes} nodes")
        allowed = f"a number of seconds >= 0 and <= {LONGEST_S:g}"
        self._refuse_first("down_s", down, ~((down >= 0) & (down <= LONGEST_S)), allowed)
        self._refuse_first("up_s", up, ~((up >= down) & (up <= LONGEST_S)), f"{allowed}, and not before down_s")
        order = np.lexsort((up, node, down))
        for name, column in (("node", node), ("down_s", down), ("up_s", up)):
            values = column[order]
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        object.__setattr__(self, "cause", tuple(self.cause[place] for place in order) if self.cause else ())

    @staticmethod
    def _refuse_first(name: str, values: npt.NDArray[np.generic], wrong: npt.NDArray[np.bool_], allowed: str) -> None:
        if wrong.any():
            place = int(np.flatnonzero(wrong)[0])
            raise SpecificationError(f"Outages.{name}: {values[place]} of outage {place} is not allowed; it must be {allowed}")

    def __len__(self) -> int:
        return len(self.node)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Outages) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        columns = (self.node.tobytes(), self.down_s.tobytes(), self.up_s.tobytes(), self.cause)
        return (*columns, self.nodes, self.name, self.origin)

    @property
    def repair_s(self) -> FloatArray:
        """Time until the node was up again, of each recorded outage, seconds, shape ``(outages,)``."""
        times: FloatArray = self.up_s - self.down_s
        return times

    @property
    def times_between_failures_s(self) -> FloatArray:
        """Times between consecutive failures of the machine, seconds, shape ``(outages - 1,)``; 0 where two start together."""
        return np.diff(self.down_s)

    @property
    def span_s(self) -> float:
        """Time from second 0 to the last repair, seconds."""
        return float(self.up_s.max())

    def merged(self) -> Outages:
        """Return the same with outages of one node that overlap or adjoin joined; a joined outage has the first one's cause."""
        order = np.lexsort((self.up_s, self.down_s, self.node))
        node, down, up = self.node[order], self.down_s[order], self.up_s[order].copy()
        first = 0
        keep = np.ones(len(node), dtype=np.bool_)
        for place in range(1, len(node)):
            if node[place] == node[first] and down[place] <= up[first]:
                up[first] = max(up[first], up[place])
                keep[place] = False
            else:
                first = place
        kept = order[keep]
        return Outages(
            node=node[keep],
            down_s=down[keep],
            up_s=up[keep],
            nodes=self.nodes,
            cause=tuple(self.cause[place] for place in kept) if self.cause else (),
            name=self.name,
            source=self.source,
            origin=self.origin,
            dropped=self.dropped,
            adjusted=self.adjusted,
        )

    @property
    def mean_repair_s(self) -> float:
        """Mean time from a failure until the node is up again, seconds."""
        return float(self.repair_s.mean())

    def node_mtbf_s(self, nodes: int) -> float:
        """Return the mean time between the failures of one node, seconds: that of the recorded machine, whatever ``nodes``."""
        return self.span_s * self.nodes / len(self)

    def failures(self, nodes: int, rng: np.random.Generator | None = None) -> Iterator[Failure]:
        """Return the failures of the merged outages in order of time, those of one time in order of node.

        Args:
            nodes: of the simulated machine.
            rng: not used; other sources of failures need it.

        Raises:
            SpecificationError: an outage is of a node that the simulated machine does not have.
        """
        highest = int(self.node.max())
        if require_whole("nodes", nodes, at_least=1) <= highest:
            raise SpecificationError(
                f"Outages: {quoted(self.name)} has an outage of node {highest}, and the machine has {nodes} nodes; "
                f"it must have at least {highest + 1}"
            )
        merged = self.merged()
        return map(_failure, merged.down_s.tolist(), merged.node.tolist(), merged.up_s.tolist())


def _failure(down_s: float, node: int, up_s: float) -> Failure:
    time = to_ticks(down_s)
    return Failure(time, node, to_ticks(up_s) - time)


def _column(name: str, values: npt.ArrayLike, kinds: str) -> npt.NDArray[np.generic]:
    column = np.asarray(values)
    if column.ndim != 1 or (len(column) and column.dtype.kind not in kinds):
        raise SpecificationError(f"{name}: {quoted(values)} is not allowed; it must be a list or an array of numbers")
    return column


def outage_facts(outages: Outages) -> dict[str, object]:
    """Return the facts of a machine's outages as values for JSON; times in seconds, times between failures ``None`` for one.

    Failures and repair times are those recorded.  Unavailability is the node time in which nodes were down over all node time
    from second 0 to the last repair; time in which outages of one node overlap counts once.  ``mtbf_s`` is the mean time
    between consecutive failures of the machine, ``node_mtbf_s`` the mean time for which a node is up between two failures: the
    ``mtbf_s`` of :class:`~clustermodel.failures.failure.NodeFailures` for ``per="machine"`` and ``per="node"``.
    """
    merged = outages.merged()
    repair = outages.repair_s
    between = outages.times_between_failures_s
    node_s = outages.nodes * outages.span_s
    down_s = float(merged.repair_s.sum())
    return {
        "name": outages.name,
        "source": outages.source,
        "origin": outages.origin or None,
        "nodes": outages.nodes,
        "nodes_that_failed": len(np.unique(outages.node)),
        "failures": len(outages),
        "failures_of_nodes_already_down": len(outages) - len(merged),
        "span_s": outages.span_s,
        "unavailability": down_s / node_s if node_s else None,
        "mtbf_s": float(between.mean()) if len(between) else None,
        "node_mtbf_s": (node_s - down_s) / len(merged),
        "simultaneous_failures": int((between == 0).sum()),
        "mean_repair_s": float(repair.mean()),
        "median_repair_s": float(np.median(repair)),
        "causes": {cause: _of_cause(outages, cause) for cause in _by_frequency(outages.cause)},
        "dropped": dict(sorted(outages.dropped.items())),
        "adjusted": dict(sorted(outages.adjusted.items())),
    }


def _by_frequency(causes: tuple[str, ...]) -> list[str]:
    return sorted(set(causes), key=lambda cause: (-causes.count(cause), cause))


def _of_cause(outages: Outages, cause: str) -> dict[str, float]:
    repair = outages.repair_s[np.array(outages.cause) == cause]
    return {
        "failures": len(repair),
        "share": len(repair) / len(outages),
        "down_node_s": float(repair.sum()),
        "mean_repair_s": float(repair.mean()),
        "median_repair_s": float(np.median(repair)),
    }
