"""Outages of the nodes of a real machine: when each node failed and was up again, read from files, and their facts.

:func:`read_outages` reads CSV files, plain or compressed with gzip, bzip2 or xz.  The first line names the columns, in any
order; others are ignored.

*A table of one's own* has ``node`` (from 0), ``down_s`` and ``up_s`` (seconds from a second 0 of one's choice), and may have
``cause`` and ``known``, ``true`` for an outage that is known in advance, so that no job starts that would reach into it.

*Los Alamos* (LANL 2005) has ``system``, ``nodes``, ``node``, ``started``, ``fixed`` (month/day/year hour:minute, local
time), ``down_minutes`` and ``cause``.  ``down_minutes`` is the time that has passed, so it differs from ``fixed`` - ``started``
where the clocks were changed in between, and it is used where both are there.

*Slurm* has ``NodeName``, ``TimeStart`` and ``TimeEnd``, as ``sacctmgr show event --parsable2`` writes them, separated by ``|``.
A node without an end is down until the end of the run.  Nodes are numbered in the order of their names.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import FloatArray, IntArray
from clustermodel.errors import SpecificationError, TraceError, quoted
from clustermodel.logs.values import Clock, node_names
from clustermodel.machine.failure import Failure
from clustermodel.text.files import table_rows, without_compression
from clustermodel.ticks import to_ticks
from clustermodel.validation import LARGEST_WHOLE, LONGEST_S, flag, require_whole


@dataclass(frozen=True, kw_only=True, eq=False)
class Outages:
    """Recorded outages in order of time: an immutable value, which
    :func:`~clustermodel.machine.recorded_outages.read_outages` reads from a file.

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
    known: tuple[bool, ...] = ()
    """Whether each outage is known in advance: no job starts that by its estimate would reach into it; empty: none is."""
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
        if not len(node) == len(down) == len(up) == (len(self.cause) or len(node)) == (len(self.known) or len(node)):
            known = f", {len(self.known)} known" if self.known else ""
            raise SpecificationError(
                f"Outages: {len(node)} nodes, {len(down)} down_s, {len(up)} up_s and {len(self.cause)} causes{known} are not "
                "allowed; the columns must have equal lengths"
            )
        for known_one in self.known:
            flag("Outages.known", known_one)
        if not len(node):
            raise SpecificationError("Outages: there is no outage; there must be at least one")
        allowed = f"a number of seconds >= 0 and <= {LONGEST_S:g}"
        for name, values, fits, must in (
            ("node", node, (node >= 0) & (node < self.nodes), f"an integer >= 0 and < {self.nodes} nodes"),
            ("down_s", down, (down >= 0) & (down <= LONGEST_S), allowed),
            ("up_s", up, (up >= down) & (up <= LONGEST_S), f"{allowed}, and not before down_s"),
        ):
            if not fits.all():
                place = int(np.argmin(fits))
                raise SpecificationError(f"Outages.{name}: {values[place]} of outage {place} is not allowed; it must be {must}")
        order = np.lexsort((up, node, down))
        for name, column in (("node", node), ("down_s", down), ("up_s", up)):
            values = column[order]
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        object.__setattr__(self, "cause", tuple(self.cause[place] for place in order) if self.cause else ())
        object.__setattr__(self, "known", tuple(self.known[place] for place in order) if any(self.known) else ())

    def __len__(self) -> int:
        return len(self.node)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Outages) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        columns = (column.tobytes() for column in (self.node, self.down_s, self.up_s))
        return (*columns, self.cause, self.known, self.nodes, self.name, self.origin)

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
        """Time from second 0 to the last repair, or begin of an outage that lasts to the end of a run, seconds."""
        return float(np.where(self.up_s < LONGEST_S, self.up_s, self.down_s).max())

    def merged(self) -> Outages:
        """Return the same with outages of one node that overlap or adjoin joined; a joined outage has the first one's cause.

        Which are known in advance is not kept.
        """
        order = np.lexsort((self.up_s, self.down_s, self.node))
        node, down, up = self.node[order], self.down_s[order], self.up_s[order].copy()
        first = 0
        keep = np.ones(len(node), dtype=np.bool_)
        for place in range(1, len(node)):
            # In ticks, as they are played: a failure at the instant of a repair would be of a node that is down.
            keep[place] = node[place] != node[first] or to_ticks(float(down[place])) > to_ticks(float(up[first]))
            first = place if keep[place] else first
            up[first] = max(up[first], up[place])
        cause = tuple(self.cause[place] for place in order[keep]) if self.cause else ()
        return replace(self, node=node[keep], down_s=down[keep], up_s=up[keep], cause=cause, known=())

    @property
    def mean_repair_s(self) -> float:
        """Mean time from a failure until the node is up again, seconds; those that last to the end of a run do not count."""
        times = self.repair_s[self.up_s < LONGEST_S]
        return float(times.mean()) if len(times) else 0.0

    def node_mtbf_s(self, nodes: int) -> float:
        """Return the mean time between the failures of one node, seconds: that of the recorded machine, whatever ``nodes``."""
        return self.span_s * self.nodes / len(self)

    def failures(self, nodes: int, rng: np.random.Generator | None = None) -> Iterator[Failure]:
        """Return the failures of the merged outages in order of time, those of one time in order of node; ``rng`` is not used.

        Raises:
            SpecificationError: an outage is of a node that the simulated machine, of so many ``nodes``, does not have.
        """
        highest = int(self.node.max())
        if require_whole("nodes", nodes, at_least=1) <= highest:
            raise SpecificationError(
                f"Outages: {quoted(self.name)} has an outage of node {highest}, and the machine has {nodes} nodes; "
                f"it must have at least {highest + 1}"
            )
        return self.merged()._as_failures()

    def announced(self) -> Iterator[Failure]:
        """Return the outages that are known in advance, merged among themselves, as :meth:`failures` returns all."""
        if not self.known:
            return iter(())
        known = np.array(self.known)
        return replace(
            self, node=self.node[known], down_s=self.down_s[known], up_s=self.up_s[known], cause=(), known=()
        ).failures(self.nodes)

    def _as_failures(self) -> Iterator[Failure]:
        down, up = ([to_ticks(time) for time in times.tolist()] for times in (self.down_s, self.up_s))
        return (Failure(time, node, end - time) for time, node, end in zip(down, self.node.tolist(), up, strict=True))


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
    ``mtbf_s`` of :class:`~clustermodel.machine.failure.NodeFailures` for ``per="machine"`` and ``per="node"``.
    """
    merged = outages.merged()
    repair = outages.repair_s
    between = outages.times_between_failures_s
    node_s = outages.nodes * outages.span_s
    down_s = float(merged.repair_s.sum())
    causes: dict[str, dict[str, float]] = {}
    for cause, failures in sorted(Counter(outages.cause).items(), key=lambda item: (-item[1], item[0])):
        of_cause = repair[np.array(outages.cause) == cause]
        causes[cause] = {
            "failures": failures,
            "share": failures / len(outages),
            "down_node_s": float(of_cause.sum()),
            "mean_repair_s": float(of_cause.mean()),
            "median_repair_s": float(np.median(of_cause)),
        }
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
        "causes": causes,
        "dropped": dict(sorted(outages.dropped.items())),
        "adjusted": dict(sorted(outages.adjusted.items())),
    }


_PLAIN: Final = ("node", "down_s", "up_s")
_LOS_ALAMOS: Final = ("system", "nodes", "node", "started", "fixed", "down_minutes")
_SLURM: Final = ("nodename", "timestart", "timeend")
_YES: Final = ("true", "yes", "1")
_NO: Final = ("false", "no", "0", "")
_YEARS: Final = (1970, 2100)
_LONGEST_MIN: Final = 5e7  # 95 years, which with the years keeps every time within the longest of any field
_LONGEST_NUMBER: Final = 40  # characters

_Rows = Iterator[tuple[str, dict[str, str]]]


def read_outages(
    path: str | os.PathLike[str], *, system: str | int | None = None, nodes: int | None = None, known: bool = False
) -> Outages:
    """Read the outages of one machine from a CSV file (:mod:`clustermodel.machine.recorded_outages` has the columns).

    A recorded outage without a usable time, or with a repair before the failure, is left out and counted by reason in
    ``Outages.dropped``; one whose times contradict each other is counted in ``Outages.adjusted``.  Outages of one node
    that overlap stay as recorded; :meth:`Outages.merged <clustermodel.machine.recorded_outages.Outages.merged>` joins them.

    Args:
        path: a CSV file; it may be compressed with gzip, bzip2 or xz.
        system: which machine of a file of Los Alamos; not needed if the file has one only.
        nodes: number of nodes; by default that of the file, or the highest node of a plain table + 1.
        known: whether all outages are known in advance; a plain table may say so of each, in a column ``known``.

    Returns:
        The outages; second 0 is the first failure in the data of Los Alamos and of Slurm, and the table's own in a plain table.

    Raises:
        TraceError: the file cannot be read, is damaged, lacks a column, has a wrong value, or no usable outage.
        SpecificationError: ``system`` or ``nodes`` does not fit the file.
    """
    file, all_known = Path(path), flag("known", known)
    rows = _rows(file)
    place, columns = next(rows, ("", {}))
    read: Callable[[Path, _Rows, int | None], Outages] | None = None
    if set(_LOS_ALAMOS) <= set(columns):
        read = partial(_los_alamos, system=None if system is None else str(system))
    for names, of_one, what in (
        (_PLAIN, _plain, "is a table of one machine"),
        (_SLURM, _slurm, "has the events of one cluster"),
    ):
        if read is None and set(names) <= set(columns):
            if system is not None:
                raise SpecificationError(f"system: {quoted(system)} is not allowed; {file} {what}")
            read = of_one
    if read is not None:
        outages = read(file, rows, nodes)
        return replace(outages, known=(True,) * len(outages)) if all_known else outages
    if not columns:
        raise TraceError(f"{file}: the file is empty; the first line must name the columns {', '.join(_PLAIN)}")
    raise TraceError(
        f"{place}: columns {quoted(', '.join(columns))} are not those of outages; there must be {', '.join(_PLAIN)}, "
        f"or those of Los Alamos: {', '.join(_LOS_ALAMOS)}"
    )


class _Recorded:
    """Outages of a file: node, start, end and cause of those that can be used, and how many cannot, by reason."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.dropped: Counter[str] = Counter()
        self.adjusted: Counter[str] = Counter()
        self.rows: list[tuple[Any, Any, Any, str, bool]] = []

    def add(
        self, nodes: Iterable[int | str], start: float | None, end: float | None, cause: str, *, known: bool = False
    ) -> bool:
        """Add an outage of each of ``nodes``; return whether it can be used."""
        if start is None or end is None:
            self.dropped["no usable time"] += 1
            return False
        if end < start:
            self.dropped["repaired before the failure"] += 1
            return False
        self.rows += [(node, start, end, cause, known) for node in nodes]
        return True

    def first_s(self) -> float:
        """Return when the first outage begins; refuse a file without a usable one."""
        if not self.rows:
            because = "; ".join(f"{count} left out: {reason}" for reason, count in self.dropped.items())
            raise TraceError(f"{self.file}: no usable outage: {because or 'the file has no data lines'}")
        return float(min(start for _, start, *_ in self.rows))

    def outages(self, nodes: int, name: str, origin: float = 0, begin: str = "") -> Outages:
        """Return the outages; second 0 is ``origin`` in the times of the rows, ``begin`` as a date."""
        node, start, end, cause, known = zip(*self.rows, strict=True)
        return Outages(
            node=np.array(node, dtype=np.int64),
            down_s=np.array(start) - origin,
            up_s=np.minimum(np.array(end) - origin, LONGEST_S),
            nodes=nodes,
            cause=cause if any(cause) else (),
            known=known if any(known) else (),
            name=name,
            source=str(self.file),
            origin=begin,
            dropped=self.dropped,
            adjusted=self.adjusted,
        )


def _plain(file: Path, rows: _Rows, nodes: int | None) -> Outages:
    recorded = _Recorded(file)
    most = LARGEST_WHOLE if nodes is None else require_whole("nodes", nodes, at_least=1)
    for place, row in rows:
        node = _whole(place, row, "node", 0, most - 1)
        down_s, up_s = (_number(place, row, name, 0, LONGEST_S) for name in ("down_s", "up_s"))
        recorded.add([node], down_s, up_s, row.get("cause", ""), known=_yes(place, row, "known"))
    recorded.first_s()
    highest = max(node for node, *_ in recorded.rows)
    return recorded.outages(nodes or highest + 1, without_compression(file.name).removesuffix(".csv"))


def _slurm(file: Path, rows: _Rows, nodes: int | None) -> Outages:
    """Return the events of nodes; second 0 is the first of them, and an event without an end lasts for all of a run."""
    clock, recorded = Clock(), _Recorded(file)
    for place, row in rows:
        try:
            start, end = (clock.time(name, row[name]) for name in _SLURM[1:])
        except ValueError as problem:
            raise TraceError(f"{place}: {problem}") from None
        names = node_names(row["nodename"])
        if names:
            cause = " ".join(filter(None, (row.get("state"), row.get("reason"))))
            recorded.add(names, None if start < 0 else start, math.inf if end < 0 else end, cause)
        else:
            recorded.dropped["events of the whole cluster"] += 1
    origin = recorded.first_s()
    numbers = {name: number for number, name in enumerate(sorted({name for name, *_ in recorded.rows}))}
    if nodes is not None and require_whole("nodes", nodes, at_least=1) < len(numbers):
        raise SpecificationError(f"nodes: {nodes} is not allowed; {file} names {len(numbers)} nodes")
    recorded.rows = [(numbers[name], *others) for name, *others in recorded.rows]
    begin = datetime.fromtimestamp(origin, UTC).isoformat(timespec="minutes")
    return recorded.outages(nodes or len(numbers), file.name, origin, begin)


def _los_alamos(file: Path, rows: _Rows, nodes: int | None, system: str | None) -> Outages:
    recorded = _Recorded(file)
    sizes: dict[str, int] = {}  # nodes of each system
    for place, row in rows:
        size = _whole(place, row, "nodes", 1, LARGEST_WHOLE)
        if sizes.setdefault(row["system"], size) != size:
            raise TraceError(f"{place}: field nodes: {size} is not {sizes[row['system']]}, as on the lines above of the system")
        node = _whole(place, row, "node", 0, size - 1)
        started, fixed = (_date(place, row, name) for name in ("started", "fixed"))
        minutes = _number(place, row, "down_minutes", -_LONGEST_MIN, _LONGEST_MIN)
        if row["system"] != (system or next(iter(sizes))):
            continue
        end = fixed if minutes is None or started is None else started + minutes * 60
        if recorded.add([node], started, end, row.get("cause", "")):
            if minutes is None:
                recorded.adjusted["down_minutes missing, fixed - started used"] += 1
            elif fixed not in (None, end):
                recorded.adjusted["fixed - started is not down_minutes, down_minutes used"] += 1
    names = ", ".join(sizes)
    if system is None and len(sizes) > 1:
        raise SpecificationError(f"system: {file} has the systems {names}; choose one of them")
    if system is not None and sizes and system not in sizes:
        raise SpecificationError(f"system: {quoted(system)} is not allowed; {file} has {names}")
    origin, chosen = recorded.first_s(), system or names
    if nodes is not None and require_whole("nodes", nodes, at_least=1) < sizes[chosen]:
        raise SpecificationError(f"nodes: {nodes} is not allowed; system {chosen} of {file} has {sizes[chosen]} nodes")
    begin = datetime.fromtimestamp(origin, UTC).replace(tzinfo=None).isoformat(timespec="minutes")
    return recorded.outages(nodes or sizes[chosen], f"LANL system {chosen}", origin, begin)


def _rows(file: Path) -> _Rows:
    """Yield (``file:line``, column -> text without margins) of the lines that are not blank; the first one is the header."""
    header: list[str] = []
    for place, fields in table_rows(file, "|,", strict=True):
        if not header:
            header = [name.strip().lower() for name in fields]
            if repeated := [name for name, times in Counter(header).items() if times > 1]:
                raise TraceError(f"{place}: column {quoted(repeated[0])} is there more than once")
        yield place, dict(zip(header, map(str.strip, fields), strict=True))


def _refused(place: str, row: dict[str, str], field: str, allowed: str) -> TraceError:
    return TraceError(f"{place}: field {field}: {quoted(row[field])} is not allowed; it must be {allowed}")


def _whole(place: str, row: dict[str, str], field: str, least: int, most: int) -> int:
    text = row[field]
    if text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER and least <= int(text) <= most:
        return int(text)
    raise _refused(place, row, field, f"an integer from {least} to {most}")


def _number(place: str, row: dict[str, str], field: str, least: float, most: float) -> float | None:
    """Return a number, ``None`` where there is none."""
    value = math.nan
    with suppress(ValueError):
        value = float(row[field] if len(row[field]) <= _LONGEST_NUMBER else "nan")
    if row[field] and not least <= value <= most:
        raise _refused(place, row, field, f"a number >= {least:g} and <= {most:g}")
    return value if row[field] else None


def _yes(place: str, row: dict[str, str], field: str) -> bool:
    text = row.get(field, "").lower()
    if text not in _YES + _NO:
        raise _refused(place, row, field, "true or false")
    return text in _YES


def _date(place: str, row: dict[str, str], field: str) -> float | None:
    """Return a date and time as seconds since 1970 of the same clock, ``None`` where there is none."""
    if not row[field]:
        return None
    first, last = _YEARS
    with suppress(ValueError):
        date = datetime.strptime(row[field], "%m/%d/%Y %H:%M").replace(tzinfo=UTC)
        if first <= date.year <= last:
            return date.timestamp()
    raise _refused(place, row, field, f"month/day/year hour:minute from {first} to {last}, as 6/7/2002 16:00")
