"""The log of the paper by months, or another log in parts of equal length: each is a run of its own."""

from collections.abc import Iterable
from datetime import datetime
from itertools import pairwise
from math import inf
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from clustermodel import TICKS_PER_SECOND, JobFilter, Machine, Scenario, Workload, read_swf, synthetic_workload

NODES = 128


def periods(trace: str, jobs: int) -> dict[str, Workload]:
    """Return the months of a trace, or three parts of a synthetic log of so many jobs."""
    if trace:
        return by_month(read_swf(trace))
    return in_parts(synthetic_workload(jobs=jobs, nodes=NODES, load=0.75), 3)


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
    return {f"part {number}": workload.select(JobFilter(window_s=window)) for number, window in enumerate(pairwise(ends), 1)}
