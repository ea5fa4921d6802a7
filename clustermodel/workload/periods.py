"""Periods of a log: its jobs by the month in which they were submitted, or by equal parts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import groupby, pairwise
from math import inf
from typing import Literal
from zoneinfo import ZoneInfo

import numpy as np

from clustermodel.errors import SpecificationError
from clustermodel.job import JobRow
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.validation import require_whole
from clustermodel.workload.table import Workload
from clustermodel.workload.transforms import JobFilter


def by_month(workload: Workload) -> dict[str, Workload]:
    """Return the jobs by month of submission, in the time zone of the machine.

    Args:
        workload: a trace whose SWF header has ``UnixStartTime`` and ``TimeZoneString``.

    Returns:
        A workload for each month that has jobs, by its name, such as ``"1996-09"``; times of submission stay as they are.

    Raises:
        SpecificationError: the header does not say when and where the trace begins.
    """
    header = workload.provenance.header
    try:
        began, zone = int(header["UnixStartTime"]), ZoneInfo(header["TimeZoneString"])
    except (KeyError, ValueError, OSError):  # an unknown zone is a KeyError, a damaged name one of the others
        raise SpecificationError(
            f"by_month: the header of {workload.name} is not allowed; it must have UnixStartTime and TimeZoneString, for "
            "example 843480031 and Europe/Stockholm"
        ) from None
    months = groupby(
        workload.rows(), key=lambda row: f"{datetime.fromtimestamp(began + row.submit // TICKS_PER_SECOND, zone):%Y-%m}"
    )
    return {month: _period(workload, rows, month) for month, rows in months}


def in_parts(workload: Workload, parts: int, *, equal: Literal["time", "jobs"] = "time") -> dict[str, Workload]:
    """Return the successive parts of a log, ``"part 1"``, ``"part 2"``, ...; times of submission stay as they are.

    Args:
        workload: any log.
        parts: their number.
        equal: whether parts are equally long, between the first and the last submission, or have as many jobs.

    Raises:
        SpecificationError: the number of parts is not allowed.
    """
    count = require_whole("parts", parts, at_least=1)
    if equal == "time":
        ends = [0.0, *(number * workload.span_s / count for number in range(1, count)), inf]
        chosen = [workload.select(JobFilter(window_s=window)) for window in pairwise(ends)]
    else:
        rows, last = list(workload.rows()), np.linspace(0, len(workload), count + 1).astype(int)
        chosen = [
            _period(workload, rows[first:end], f"{number} of {count}") for number, (first, end) in enumerate(pairwise(last), 1)
        ]
    return {f"part {number}": part for number, part in enumerate(chosen, 1)}


def _period(workload: Workload, rows: Iterable[JobRow], name: str) -> Workload:
    return Workload(
        rows,
        name=f"{workload.name} {name}",
        provenance=workload.provenance,
        machine_nodes=workload.machine_nodes,
        extra=workload.extra,
    )
