"""The log of the paper by months, or another log in parts of equal length: each is a run of its own."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import pairwise
from math import inf
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from clustermodel import (
    TICKS_PER_SECOND,
    Interval,
    JobFilter,
    Machine,
    Scenario,
    StudyTable,
    Workload,
    read_swf,
    synthetic_workload,
)
from clustermodel.experiment.factors import Label

NODES = 128
SHORTER_S = "shorter by (s), mean of the parts ± 95 % interval"


def periods(trace: str, jobs: int, parts: int = 3) -> dict[str, Workload]:
    """Return the months of a trace, or the parts of a synthetic log of so many jobs."""
    if trace:
        return by_month(read_swf(trace))
    return in_parts(synthetic_workload(jobs=jobs, nodes=NODES, load=0.75), parts)


def mean_wait_s(workloads: Iterable[Workload]) -> float:
    """Return the mean wait of the jobs of all periods under conservative backfilling, seconds: AWT of the year."""
    runs = [Scenario(machine=Machine(nodes=NODES), workload=each, policy="conservative").run() for each in workloads]
    return float(pd.concat([run.jobs["wait_s"] for run in runs]).mean())


def by_month(workload: Workload) -> dict[str, Workload]:
    """Return the jobs by month of submission, such as ``"1996-09"``, in the time zone of the machine that the header names."""
    header = workload.provenance.header
    began, zone = int(header["UnixStartTime"]), ZoneInfo(header["TimeZoneString"])
    months = np.array(
        [
            f"{datetime.fromtimestamp(began + submit // TICKS_PER_SECOND, zone):%Y-%m}"
            for submit in workload.column("submit").tolist()
        ]
    )
    return {month: workload.part(months == month, f"{workload.name} {month}") for month in dict.fromkeys(months.tolist())}


def in_parts(workload: Workload, parts: int) -> dict[str, Workload]:
    """Return successive parts of equal length between the first and the last submission, ``"part 1"``, ``"part 2"``, ..."""
    ends = [0.0, *(number * workload.span_s / parts for number in range(1, parts)), inf]
    windows = zip(names_of_parts(parts), pairwise(ends), strict=True)
    return {name: workload.select(JobFilter(window_s=window)) for name, window in windows}


def names_of_parts(parts: int) -> list[str]:
    return [f"part {number + 1}" for number in range(parts)]


def shorter_s(table: StudyTable, of: Mapping[str, Label], base: Mapping[str, Label]) -> Interval:
    """Return by how many seconds the mean wait is shorter than at the levels ``base``, paired: periods are replications."""
    numbers = {period: number for number, period in enumerate(table.levels("month"), 1)}
    frame = table.frame.assign(replication=table.frame["month"].map(numbers))
    factors = [name for name in table.factors if name != "month"]
    return StudyTable(frame, factors, table.name).difference("mean_wait_s", base, of)
