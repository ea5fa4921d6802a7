"""Placements: which job held which nodes, and when; the table that simulated and recorded schedules have in common.

A log names the nodes of a job, and how long the job was suspended, but not when.  Suspended time is placed where a job that
began later held nodes of the suspended one, if that explains all of it; otherwise the placement says that it is not known.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import IntArray
from clustermodel.errors import SpecificationError, quoted
from clustermodel.ticks import TICKS_PER_SECOND

if TYPE_CHECKING:
    import pandas as pd

KINDS: Final = ("run", "saved", "lost", "replica", "failed", "partly")
"""A run to the end of the job, or after which its work was saved, or discarded; a replica; a run that a failed node ended; a
recorded job that executed for part of this time, the log does not show when."""
COLUMNS: Final = ("job", "begin_s", "end_s", "row", "first_node", "nodes", "kind")
_RUN, _PARTLY = KINDS.index("run"), KINDS.index("partly")
_AGREE: Final = 60 * TICKS_PER_SECOND  # up to which times of a log agree: it suspends, and frees nodes, with a delay


def placement_columns(
    job: IntArray, begin: IntArray, end: IntArray, row: IntArray, first_node: IntArray, nodes: IntArray, kind: IntArray
) -> dict[str, npt.NDArray[Any]]:
    """Return the table of placements, a row for each contiguous range of nodes, in order; times are given in ticks."""
    order = np.lexsort((first_node, row, begin))
    times = {"job": job, "begin_s": begin / TICKS_PER_SECOND, "end_s": end / TICKS_PER_SECOND}
    place = {"row": row.astype(np.int32), "first_node": _narrow(first_node), "nodes": _narrow(nodes)}
    return {name: column[order] for name, column in {**times, **place, "kind": np.array(KINDS)[kind]}.items()}


def _narrow(numbers: IntArray) -> npt.NDArray[np.int32] | IntArray:
    """Return numbers of nodes in 32 bits if they fit: the table has a row for each range of nodes."""
    return numbers.astype(np.int32) if numbers.max(initial=0) <= np.iinfo(np.int32).max else numbers


def checked_placements(frame: Any) -> pd.DataFrame:
    """Return a table of placements, in order; refuse one that is none."""
    import pandas as pd

    def refused(problem: str) -> SpecificationError:
        return SpecificationError(f"Workload.with_recorded_placements: {problem}")

    if not isinstance(frame, pd.DataFrame):
        raise refused(f"{quoted(frame)} is not allowed; it must be a pandas.DataFrame")
    frame = frame.assign(**{name: value for name, value in (("row", 0), ("kind", "run")) if name not in frame})
    if missing := [name for name in COLUMNS if name not in frame]:
        raise refused(f"column {missing[0]!r} is missing; it must have job, begin_s, end_s, first_node and nodes")
    if (unknown := frame.loc[~frame["kind"].isin(KINDS), "kind"]).size:
        raise refused(f"kind: {quoted(unknown.iloc[0])} is not allowed; it must be one of {', '.join(KINDS)}")
    numbers = frame[list(COLUMNS[:-1])].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)
    _, begin, end, row, first, nodes = numbers.T
    for wrong, what in (
        (~np.isfinite(numbers).all(axis=1), "a number is missing"),
        (end < begin, "it ends before it begins"),
        ((row < 0) | (first < 0) | (nodes < 1), "row and first_node must be >= 0, and nodes >= 1"),
    ):
        if wrong.any():
            raise refused(f"row {int(np.argmax(wrong))}: {what}")
    begin, end = (np.rint(times * TICKS_PER_SECOND).astype(np.int64) for times in (begin, end))
    job, row, first, nodes = (frame[name].to_numpy(dtype=np.int64) for name in ("job", "row", "first_node", "nodes"))
    kind = frame["kind"].map(KINDS.index).to_numpy(dtype=np.int64)
    return pd.DataFrame(placement_columns(job, begin, end, row, first, nodes, kind))


@dataclass(frozen=True, eq=False)
class GivenPlacements:
    """Recorded placements that were read as a table."""

    table: pd.DataFrame

    @property
    def digest(self) -> str:
        """Identity of the placements."""
        return hashlib.sha256(self.table.to_csv(index=False).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class NodeLists:
    """The nodes of the jobs of a log, as it names them: arrays of shape ``(jobs,)``, times in ticks."""

    job: IntArray  # numbers
    begin: IntArray
    end: IntArray
    suspended: IntArray  # for how long, at most ``end - begin``
    of_job: IntArray  # position in ``lists``
    lists: tuple[str, ...]
    nodes_of: Callable[[str], list[str]]  # splits a list

    @property
    def digest(self) -> str:
        """Identity of the placements."""
        columns = np.stack([self.job, self.begin, self.end, self.suspended, self.of_job])
        return hashlib.sha256(columns.astype("<i8").tobytes() + "\0".join(self.lists).encode()).hexdigest()

    @cached_property
    def table(self) -> pd.DataFrame:
        """The placements of all jobs of the log.  Nodes are numbered by their names in natural order: ``n2`` before ``n10``.

        Jobs that hold a node at the same time are in different rows, each in the first row that is free on all of its nodes.
        """
        import pandas as pd

        nodes = self._node_numbers()
        place, begin, end, kind = np.array(list(self._pieces(nodes)), dtype=np.int64).reshape(-1, 4).T
        order = np.lexsort((place, begin))
        place, begin, end, kind = place[order], begin[order], end[order], kind[order]
        lists = self.of_job[place]
        row = _rows([nodes[each] for each in lists.tolist()], begin, end)
        starts = [np.flatnonzero(np.diff(each, prepend=-2) != 1) for each in nodes]  # of the ranges of each list
        first = [each[at] for each, at in zip(nodes, starts, strict=True)]
        length = [np.diff(at, append=len(each)) for each, at in zip(nodes, starts, strict=True)]
        ranges = np.array([len(each) for each in starts], dtype=np.int64)[lists]
        columns = (np.repeat(column, ranges) for column in (self.job[place], begin, end, row, kind))
        job, begin, end, row, kind = columns
        first_node, count = (np.concatenate([each[of] for of in lists.tolist()] or [lists]) for each in (first, length))
        return pd.DataFrame(placement_columns(job, begin, end, row, first_node, count, kind))

    def _node_numbers(self) -> list[IntArray]:
        """Return the nodes of each list, ascending."""
        names = [dict.fromkeys(filter(None, self.nodes_of(text))) for text in self.lists]
        in_order = sorted({name for each in names for name in each}, key=_natural)
        number = {name: place for place, name in enumerate(in_order)}
        return [np.sort(np.array([number[name] for name in each], dtype=np.int64)) for each in names]

    def _pieces(self, nodes: list[IntArray]) -> Iterator[tuple[int, int, int, int]]:
        """Yield when jobs were on their nodes: place of the job, begin, end, position in ``KINDS``."""
        lists = [nodes[each] for each in self.of_job.tolist()]
        others = _LaterJobs(lists, self.begin, self.end) if (self.suspended > 0).any() else None
        columns = (column.tolist() for column in (self.begin, self.end, self.suspended))
        for place, (begin, end, suspended) in enumerate(zip(*columns, strict=True)):
            if suspended <= 0 or others is None:
                yield place, begin, end, _RUN
                continue
            covered = others.beside(place)
            more = sum(until - since for since, until in covered) - suspended
            agree = _AGREE * max(len(covered), 1)
            outside = _PARTLY if more < -agree else _RUN
            bounds = [begin, *(time for each in covered for time in each), end]
            for number, (since, until) in enumerate(pairwise(bounds)):
                is_covered = number % 2 == 1
                if since < until and (not is_covered or more > agree):  # else it was suspended then
                    yield place, since, until, _PARTLY if is_covered else outside


class _LaterJobs:
    """Finds when jobs that began later held nodes of a job."""

    def __init__(self, lists: list[IntArray], begin: IntArray, end: IntArray) -> None:
        self._lists, self._first = lists, int(begin.min(initial=0))
        self._begin, self._end = begin - self._first, end - self._first
        self._span = int(self._begin.max(initial=0)) + 1
        job = np.repeat(np.arange(len(lists)), [len(each) for each in lists])
        keys = np.concatenate([*lists, np.empty(0, dtype=np.int64)]) * self._span + self._begin[job]
        order = np.argsort(keys, kind="stable")  # by node, then by begin
        self._keys, self._jobs = keys[order], job[order]

    def beside(self, place: int) -> list[tuple[int, int]]:
        """Return the times in a job's stay, ascending and apart, in which later jobs held some of its nodes."""
        begin, end = int(self._begin[place]), int(self._end[place])
        nodes = self._lists[place] * self._span
        first = np.searchsorted(self._keys, nodes + begin, side="right").tolist()
        last = np.searchsorted(self._keys, nodes + min(end, self._span)).tolist()
        others = {job for low, high in zip(first, last, strict=True) for job in self._jobs[low:high].tolist()}
        times: list[tuple[int, int]] = []
        for since, until in sorted((int(self._begin[job]), min(int(self._end[job]), end)) for job in others):
            if times and since <= times[-1][1]:
                times[-1] = times[-1][0], max(until, times[-1][1])
            else:
                times.append((since, until))
        return [(since + self._first, until + self._first) for since, until in times]


def _natural(name: str) -> tuple[list[Any], str]:
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)], name


def _rows(lists: list[IntArray], begin: IntArray, end: IntArray) -> IntArray:
    """Return a row for each stay on a list of nodes, the first that is free on all of them; stays in order of their begins."""
    size = max((int(nodes[-1]) + 1 for nodes in lists if len(nodes)), default=0)
    held_until = [np.full(size, begin.min(initial=0), dtype=np.int64)]  # by row and node
    rows = np.zeros(len(lists), dtype=np.int64)
    for place, (nodes, since, until) in enumerate(zip(lists, begin.tolist(), end.tolist(), strict=True)):
        row = 0
        # A node may be given away before the epilog of its last job is in the log.
        while held_until[row][nodes].max(initial=since) > since + _AGREE:
            row += 1
            if row == len(held_until):
                held_until.append(np.full(size, since, dtype=np.int64))
        held_until[row][nodes] = np.maximum(held_until[row][nodes], until)
        rows[place] = row
    return rows
