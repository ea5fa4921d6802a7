"""What an accounting log shows of its machine: its size, and whether jobs share nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from clustermodel.arrays import BoolArray, IntArray

_MOST_JOBS: Final = 100_000  # looked at to see whether jobs share nodes
_MOST_NODES: Final = 2_000_000
_SHARED: Final = 0.05
_OVERLAP_S: Final = 60  # a node may be given away before the epilog of its last job is in the log


class Peak(NamedTuple):
    """Largest number of units that jobs of a log held at the same time."""

    units: int
    at: int
    """Time at which it was reached first, in the unit of the times given."""


def peak_in_use(start: IntArray, end: IntArray, units: IntArray) -> Peak:
    """Return the largest number of units in use at the same time; jobs hold them from start (included) to end (excluded).

    Args:
        start: of the jobs, shape ``(jobs,)``, as ``end`` and ``units``.
        end: of the jobs.
        units: that each of them holds.
    """
    times = np.concatenate([end, start])
    change = np.concatenate([-units, units])
    order = np.argsort(times, kind="stable")  # ends come before starts of the same time
    in_use = np.cumsum(change[order])
    highest = int(np.argmax(in_use))
    return Peak(int(in_use[highest]), int(times[order[highest]]))


def peak_with_suspensions(start: IntArray, end: IntArray, run: IntArray, size: IntArray, nodes: Sequence[list[int]]) -> Peak:
    """Return the largest number of units in use at the same time in a log with suspended jobs, whose nodes others may use.

    Args:
        start: of the jobs, shape ``(jobs,)``, as ``end``, ``run`` and ``size``.
        end: of the jobs.
        run: how long each of them executed.
        size: units of each of them.
        nodes: numbers of each job's nodes.  If they are as many as its units, a node that several jobs hold counts once; else
            a job counts with the share of its time for which it executed, and no less than the largest job is returned.
    """
    held = np.array([len(one) for one in nodes])
    if (held == size).all():
        job = np.repeat(np.arange(len(size)), size)
        node = np.fromiter((number for one in nodes for number in one), dtype=np.int64, count=len(job))
        order = np.lexsort((start[job], node))
        node, begin, until = node[order], start[job][order], end[job][order]
        base = node * (int(end.max()) - int(start.min()) + 1)  # each node in a time of its own: one running maximum for all
        latest = np.maximum.accumulate(base + until - int(start.min()))
        first = np.append(True, base[1:] + begin[1:] - int(start.min()) > latest[:-1])
        first |= np.append(True, node[1:] != node[:-1])
        last = np.append(first[1:], True)
        ends = latest[last] - base[last] + int(start.min())
        return peak_in_use(begin[first], ends, np.ones(int(first.sum()), dtype=np.int64))
    peak = peak_in_use(start, end, -(-size * run // np.maximum(end - start, 1)))
    return max(peak, Peak(int(size.max()), int(start[size.argmax()])))


class NodeUse(NamedTuple):
    """Node names of a log."""

    distinct: int
    """Number of different names."""
    shared: float | None
    """Share of the jobs that started on a node that another job held; ``None`` where the log has no node names."""


def node_use(
    start: IntArray,
    end: IntArray,
    suspended: BoolArray,
    lists: IntArray,
    texts: Sequence[str],
    names: Callable[[str], list[str]],
) -> NodeUse:
    """Return the number of nodes that the log names, and how often jobs share one.

    Only the first 100,000 jobs and the first node lists, of two million names together, are looked at.

    Args:
        start: of the jobs, seconds, shape ``(jobs,)``, as ``end`` and ``lists``.
        end: of the jobs, seconds.
        suspended: whether a job was suspended, shape ``(jobs,)``: its nodes were then another job's, which shares nothing.
        lists: numbers of the jobs' node lists in ``texts``, -1 for none.
        texts: the different node lists.
        names: splits a node list into names.
    """
    distinct: dict[str, int] = {}
    members: dict[int, list[int]] = {}
    expanded = 0
    for code in np.unique(lists[lists >= 0]).tolist():
        nodes = [distinct.setdefault(name, len(distinct)) for name in names(texts[code])]
        members[code] = nodes
        expanded += len(nodes)
        if expanded > _MOST_NODES:
            break
    released: dict[int, int] = {}
    looked_at = sharing = 0
    order = np.argsort(start, kind="stable")
    order = order[~suspended[order]][:_MOST_JOBS]
    for code, begin, until in zip(lists[order].tolist(), start[order].tolist(), end[order].tolist(), strict=True):
        nodes = members.get(code, [])
        if not nodes:
            continue
        looked_at += 1
        before = [released.get(node, begin) for node in nodes]
        sharing += max(before) > begin + _OVERLAP_S
        for node, earlier in zip(nodes, before, strict=True):
            if until > earlier or node not in released:
                released[node] = until
    return NodeUse(len(distinct), sharing / looked_at if looked_at else None)


def shared_by_cores(nodes: IntArray, cores: IntArray, group: IntArray) -> bool | None:
    """Return whether jobs take parts of nodes, by their cores per node; ``None`` if the log does not say.

    Whole nodes are assumed where 90 % of the jobs have the most cores per node of their partition.

    Args:
        nodes: of the jobs, shape ``(jobs,)``, as ``cores`` and ``group``.
        cores: of the jobs.
        group: partition or queue of the jobs.
    """
    known = (nodes > 0) & (cores > 0)
    if not known.any():
        return None
    per_node = cores[known] / nodes[known]
    _, partition = np.unique(group[known], return_inverse=True)
    most = np.zeros(partition.max() + 1)
    np.maximum.at(most, partition, per_node)
    return bool((per_node < most[partition]).mean() > 0.1)


def is_shared(use: NodeUse) -> bool | None:
    """Return whether jobs share nodes, by the node names; ``None`` if the log has none."""
    return None if use.shared is None else use.shared > _SHARED
