"""Periods of a log: its jobs by the month in which they were submitted."""

from __future__ import annotations

from datetime import datetime
from itertools import groupby
from zoneinfo import ZoneInfo

from clustermodel.errors import SpecificationError
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.table import Workload


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
    return {
        month: Workload(
            rows,
            name=f"{workload.name} {month}",
            provenance=workload.provenance,
            machine_nodes=workload.machine_nodes,
            extra=workload.extra,
        )
        for month, rows in months
    }
