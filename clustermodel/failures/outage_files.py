"""Reading outages: the failure data of Los Alamos National Laboratory, and a plain table of one's own.

Both are CSV files, plain or compressed with gzip, bzip2 or xz.  The first line names the columns, in any order; others are
ignored.

*A table of one's own* has ``node`` (from 0), ``down_s`` and ``up_s`` (seconds from a second 0 of one's choice), and may have
``cause``.

*Los Alamos* (LANL 2005) has ``system``, ``nodes``, ``node``, ``started``, ``fixed`` (month/day/year hour:minute, local
time), ``down_minutes`` and ``cause``.  ``down_minutes`` is the time that has passed, so it differs from ``fixed`` - ``started``
where the clocks were changed in between, and it is used where both are there.

*Slurm* has ``NodeName``, ``TimeStart`` and ``TimeEnd``, as ``sacctmgr show event --parsable2`` writes them, separated by ``|``.
A node without an end is down until the end of the run.  Nodes are numbered in the order of their names.
"""

from __future__ import annotations

import csv
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sized
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple, TypedDict

import numpy as np

from clustermodel.arrays import FloatArray, IntArray
from clustermodel.errors import SpecificationError, TraceError, counted, quoted
from clustermodel.failures.outages import Outages
from clustermodel.text_files import numbered_lines, without_compression
from clustermodel.validation import LARGEST_WHOLE, LONGEST_S, require_whole
from clustermodel.workload.log_values import Clock
from clustermodel.workload.node_names import node_names

_PLAIN: Final = ("node", "down_s", "up_s")
_LOS_ALAMOS: Final = ("system", "nodes", "node", "started", "fixed", "down_minutes")
_SLURM: Final = ("nodename", "timestart", "timeend")
_CAUSE: Final = "cause"
_DATE: Final = "%m/%d/%Y %H:%M"
_YEARS: Final = (1970, 2100)
_LONGEST_MIN: Final = 5e7  # 95 years, which with the years keeps every time within the longest of any field
_LONGEST_NUMBER: Final = 40  # characters

_NO_TIME: Final = "no usable time"
_NEGATIVE: Final = "repaired before the failure"
_DIFFERS: Final = "fixed - started is not down_minutes, down_minutes used"
_NO_MINUTES: Final = "down_minutes missing, fixed - started used"

_Rows = Iterator[tuple[str, dict[str, str]]]


class _Recorded(NamedTuple):
    """A usable outage of a file."""

    node: int
    down_s: float
    up_s: float
    cause: str


class _Columns(TypedDict):
    node: IntArray
    down_s: FloatArray
    up_s: FloatArray
    cause: tuple[str, ...]


def read_outages(path: str | os.PathLike[str], *, system: str | int | None = None, nodes: int | None = None) -> Outages:
    """Read the outages of one machine from a CSV file (:mod:`clustermodel.failures.outage_files` has the columns).

    A recorded outage without a usable time, or with a repair before the failure, is left out and counted by reason in
    ``Outages.dropped``; one whose times contradict each other is counted in ``Outages.adjusted``.  Outages of one node
    that overlap stay as recorded; :meth:`Outages.merged <clustermodel.failures.outages.Outages.merged>` joins them.

    Args:
        path: a CSV file; it may be compressed with gzip, bzip2 or xz.
        system: which machine of a file of Los Alamos; not needed if the file has one only.
        nodes: number of nodes; by default that of the file, or the highest node of a plain table + 1.

    Returns:
        The outages; second 0 is the first failure in the data of Los Alamos and of Slurm, and the table's own in a plain table.

    Raises:
        TraceError: the file cannot be read, is damaged, lacks a column, has a wrong value, or no usable outage.
        SpecificationError: ``system`` or ``nodes`` does not fit the file.
    """
    file = Path(path)
    rows = _rows(file)
    place, columns = next(rows, ("", {}))
    if set(_LOS_ALAMOS) <= set(columns):
        return _los_alamos(file, rows, None if system is None else str(system), nodes)
    if set(_PLAIN) <= set(columns):
        if system is not None:
            raise SpecificationError(f"system: {quoted(system)} is not allowed; {file} is a table of one machine")
        return _plain(file, rows, nodes)
    if set(_SLURM) <= set(columns):
        if system is not None:
            raise SpecificationError(f"system: {quoted(system)} is not allowed; {file} has the events of one cluster")
        return _slurm(file, rows, nodes)
    if not columns:
        raise TraceError(f"{file}: the file is empty; the first line must name the columns {', '.join(_PLAIN)}")
    raise TraceError(
        f"{place}: columns {quoted(', '.join(columns))} are not those of outages; there must be {', '.join(_PLAIN)}, "
        f"or those of Los Alamos: {', '.join(_LOS_ALAMOS)}"
    )


def _plain(file: Path, rows: _Rows, nodes: int | None) -> Outages:
    dropped: Counter[str] = Counter()
    recorded: list[_Recorded] = []
    most = LARGEST_WHOLE if nodes is None else require_whole("nodes", nodes, at_least=1)
    for place, row in rows:
        node = _whole(place, "node", row["node"], least=0, most=most - 1)
        down_s, up_s = (_number(place, name, row[name], least=0) for name in ("down_s", "up_s"))
        if down_s is None or up_s is None:
            dropped[_NO_TIME] += 1
        elif up_s < down_s:
            dropped[_NEGATIVE] += 1
        else:
            recorded.append(_Recorded(node, down_s, up_s, row.get(_CAUSE, "")))
    _require_some(file, recorded, dropped)
    return Outages(
        **_columns(recorded),
        nodes=nodes or max(one.node for one in recorded) + 1,
        name=without_compression(file.name).removesuffix(".csv"),
        source=str(file),
        dropped=dropped,
    )


def _slurm(file: Path, rows: _Rows, nodes: int | None) -> Outages:
    """Return the events of nodes; second 0 is the first of them, and an event without an end lasts for all of a run."""
    clock = Clock()
    numbers: dict[str, int] = {}
    dropped: Counter[str] = Counter()
    found: list[tuple[str, int, int | None, str]] = []
    for place, row in rows:
        times = []
        for name in _SLURM[1:]:
            try:
                times.append(clock.seconds(row[name]))
            except ValueError as problem:
                raise TraceError(f"{place}: field {name}: {problem}") from None
        start, end = times
        names = node_names(row["nodename"])
        if not names:
            dropped["events of the whole cluster"] += 1
        elif start is None:
            dropped[_NO_TIME] += 1
        elif end is not None and end < start:
            dropped[_NEGATIVE] += 1
        else:
            cause = " ".join(word for word in (row.get("state", ""), row.get("reason", "")) if word)
            found += [(name, start, end, cause) for name in names]
    _require_some(file, found, dropped)
    for name in sorted({name for name, *_ in found}):
        numbers[name] = len(numbers)
    if nodes is not None and require_whole("nodes", nodes, at_least=1) < len(numbers):
        raise SpecificationError(f"nodes: {nodes} is not allowed; {file} names {len(numbers)} nodes")
    origin = min(start for _, start, *_ in found)
    return Outages(
        **_columns(
            [
                _Recorded(numbers[name], start - origin, LONGEST_S if end is None else end - origin, cause)
                for name, start, end, cause in found
            ]
        ),
        nodes=nodes or len(numbers),
        name=file.name,
        source=str(file),
        origin=datetime.fromtimestamp(origin, UTC).isoformat(timespec="minutes"),
        dropped=dropped,
    )


def _los_alamos(file: Path, rows: _Rows, system: str | None, nodes: int | None) -> Outages:
    dropped: Counter[str] = Counter()
    adjusted: Counter[str] = Counter()
    found: list[tuple[datetime, float, int, str]] = []  # start, seconds until the repair, node, cause
    sizes: dict[str, int] = {}  # nodes of each system
    for place, row in rows:
        size = _whole(place, "nodes", row["nodes"], least=1, most=LARGEST_WHOLE)
        if sizes.setdefault(row["system"], size) != size:
            raise TraceError(f"{place}: field nodes: {size} is not {sizes[row['system']]}, as on the lines above of the system")
        node = _whole(place, "node", row["node"], least=0, most=size - 1)
        started, fixed = (_date(place, name, row[name]) for name in ("started", "fixed"))
        minutes = _number(place, "down_minutes", row["down_minutes"], least=-_LONGEST_MIN, most=_LONGEST_MIN)
        if row["system"] != (system or next(iter(sizes))):
            continue
        elapsed_s = (fixed - started).total_seconds() if started and fixed else None
        repair_s = elapsed_s if minutes is None else minutes * 60
        if started is None or repair_s is None:
            dropped[_NO_TIME] += 1
        elif repair_s < 0:
            dropped[_NEGATIVE] += 1
        else:
            found.append((started, repair_s, node, row.get(_CAUSE, "")))
            if minutes is None:
                adjusted[_NO_MINUTES] += 1
            elif elapsed_s not in (None, repair_s):
                adjusted[_DIFFERS] += 1
    names = ", ".join(sizes)
    if system is None and len(sizes) > 1:
        raise SpecificationError(f"system: {file} has the systems {names}; choose one of them")
    if system is not None and sizes and system not in sizes:
        raise SpecificationError(f"system: {quoted(system)} is not allowed; {file} has {names}")
    _require_some(file, found, dropped)
    chosen = system or names
    if nodes is not None and require_whole("nodes", nodes, at_least=1) < sizes[chosen]:
        raise SpecificationError(f"nodes: {nodes} is not allowed; system {chosen} of {file} has {sizes[chosen]} nodes")
    origin = min(started for started, *_ in found)
    recorded = []
    for started, repair_s, node, cause in found:
        down_s = (started - origin).total_seconds()
        recorded.append(_Recorded(node, down_s, down_s + repair_s, cause))
    return Outages(
        **_columns(recorded),
        nodes=nodes or sizes[chosen],
        name=f"LANL system {chosen}",
        source=str(file),
        origin=origin.isoformat(timespec="minutes"),
        dropped=dropped,
        adjusted=adjusted,
    )


def _columns(recorded: list[_Recorded]) -> _Columns:
    node, down_s, up_s, cause = zip(*recorded, strict=True)
    return {
        "node": np.array(node, dtype=np.int64),
        "down_s": np.array(down_s),
        "up_s": np.array(up_s),
        "cause": cause if any(cause) else (),
    }


def _require_some(file: Path, outages: Sized, dropped: Mapping[str, int]) -> None:
    if not len(outages):
        because = "; ".join(f"{count} left out: {reason}" for reason, count in dropped.items())
        raise TraceError(f"{file}: no usable outage: {because or 'the file has no data lines'}")


def _rows(file: Path) -> _Rows:
    """Yield (``file:line``, column -> text without margins) of the lines that are not blank; the first one is the header."""
    header: list[str] = []
    separator = ","
    for number, line in numbered_lines(file):
        place = f"{file}:{number}"
        try:
            if not header:
                separator = "|" if "|" in line else ","
            words = [word.strip() for word in next(csv.reader([line], strict=separator == ",", delimiter=separator), [])]
        except csv.Error as problem:
            raise TraceError(f"{place}: not readable as CSV: {problem}") from None
        if not any(words):
            continue
        if not header:
            header = [word.lower() for word in words]
            repeated = [name for name, times in Counter(header).items() if times > 1]
            if repeated:
                raise TraceError(f"{place}: column {quoted(repeated[0])} is there more than once")
        if len(words) != len(header):
            raise TraceError(f"{place}: {counted(len(words), 'column')}; there must be {len(header)}, as in the first line")
        yield place, dict(zip(header, words, strict=True))


def _whole(place: str, field: str, text: str, *, least: int, most: int) -> int:
    if text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER and least <= int(text) <= most:
        return int(text)
    allowed = f"an integer from {least} to {most}"
    raise TraceError(f"{place}: field {field}: {quoted(text)} is not allowed; it must be {allowed}")


def _number(place: str, field: str, text: str, *, least: float, most: float = LONGEST_S) -> float | None:
    """Return a number, ``None`` where there is none."""
    if not text:
        return None
    try:
        value = float(text) if len(text) <= _LONGEST_NUMBER else math.nan
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        allowed = f"a number >= {least:g} and <= {most:g}"
        raise TraceError(f"{place}: field {field}: {quoted(text)} is not allowed; it must be {allowed}")
    return value


def _date(place: str, field: str, text: str) -> datetime | None:
    """Return a date and time, ``None`` where there is none."""
    if not text:
        return None
    first, last = _YEARS
    try:
        date = datetime.strptime(text, _DATE)  # noqa: DTZ007  local time; see above
    except ValueError:
        date = None
    if date is None or not first <= date.year <= last:
        allowed = f"month/day/year hour:minute from {first} to {last}, as 6/7/2002 16:00"
        raise TraceError(f"{place}: field {field}: {quoted(text)} is not allowed; it must be {allowed}")
    return date
