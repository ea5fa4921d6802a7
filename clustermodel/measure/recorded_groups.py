"""Recorded beside simulated waits by group: which users, partitions or sizes make up how much of the difference."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from clustermodel.measure.metrics import doubling_classes
from clustermodel.site.limits import SUBJECTS
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.job import UNSET
from clustermodel.workload.job_columns import HELD, WAIT
from clustermodel.workload.streams_of_run import JobStreams
from clustermodel.workload.table import Workload

if TYPE_CHECKING:
    import pandas as pd

    from clustermodel.recording.job_records import JobRecords

SIZE: Final = "size"
GROUPINGS: Final = (*SUBJECTS, SIZE)
"""What jobs can be grouped by."""
NO_NAME: Final = "(none)"


class Group(NamedTuple):
    """The jobs of one group whose recorded wait is known."""

    who: str
    jobs: int
    recorded_mean_wait_s: float
    mean_wait_s: list[float]
    """Of each simulation; ``nan`` where all jobs of the group were rejected."""
    recorded_mean_wait_since_eligible_s: float
    """Of the jobs of which the log says when they were eligible, as the next one; ``nan`` where there are none."""
    mean_wait_since_eligible_s: list[float]
    """Of all jobs of the group, in each simulation: without the time for which rules or other jobs held them."""
    gap_share: float
    """Share of the group in the difference between recorded and simulated waiting time of all jobs, of the first simulation.
    Groups that waited longer in the simulation have negative ones."""

    @property
    def was_held(self) -> bool:
        """Whether the log says since when jobs were eligible, and it, or a simulation, has held some before."""
        if isnan(self.recorded_mean_wait_since_eligible_s):
            return False
        waits = (self.recorded_mean_wait_s, *self.mean_wait_s)
        since = (self.recorded_mean_wait_since_eligible_s, *self.mean_wait_since_eligible_s)
        return any(wait != later and not isnan(later) for wait, later in zip(waits, since, strict=True))


class RecordedGroups:
    """The groups of a log's jobs, by user, partition, size and so on."""

    def __init__(self, workload: Workload, by: str) -> None:
        import pandas as pd

        self.by = by
        self._order: list[str]  # of sizes
        known = workload.column(WAIT) != UNSET
        ids, wait_s = workload.column("id")[known], workload.column(WAIT)[known] / TICKS_PER_SECOND
        if by == SIZE:
            classes = doubling_classes(workload.column("nodes")[known])
            labels, self._order = classes.astype(str).tolist(), list(classes.cat.categories)
        else:
            names = JobStreams([workload]).names_of_jobs(by)
            labels, self._order = [names.get(job, NO_NAME) for job in ids.tolist()], []
        held = workload.column(HELD)[known]
        since = np.where(held == UNSET, np.nan, wait_s - held / TICKS_PER_SECOND)
        self._frame = pd.DataFrame({"who": labels, "recorded": wait_s}, index=pd.Index(ids))
        self._since = pd.DataFrame({"who": labels, "recorded": since}, index=pd.Index(ids))

    def add(self, records: JobRecords) -> None:
        """Note the waits of a simulation of these jobs."""
        ids, start = records.column("id").tolist(), records.seconds("start")
        for frame, since in ((self._frame, "submit"), (self._since, "eligible")):
            waits = dict(zip(ids, (start - records.seconds(since)).tolist(), strict=True))
            frame[len(frame.columns)] = [waits.get(job, np.nan) for job in frame.index.tolist()]

    def groups(self) -> list[Group]:
        """Return the groups: sizes in order, others by their part in the recorded waiting time."""
        grouped = self._frame.groupby("who", sort=False)
        means, simulated = grouped.mean(), list(self._frame.columns[2:])
        since = self._since.groupby("who", sort=False).mean()
        gap: pd.Series[Any] = self._frame["recorded"] - self._frame[simulated[0]] if simulated else self._frame["recorded"]
        gaps, jobs = gap.groupby(self._frame["who"], sort=False).sum(), grouped.size()
        total = float(gaps.sum())
        groups = [
            Group(
                str(who),
                int(jobs[who]),
                float(means.loc[who, "recorded"]),
                [float(means.loc[who, name]) for name in simulated],
                float(since.loc[who, "recorded"]),
                [float(since.loc[who, name]) for name in simulated],
                float(gaps[who]) / total if total else 0.0,
            )
            for who in means.index
        ]
        if self._order:
            return sorted(groups, key=lambda group: self._order.index(group.who))
        return sorted(groups, key=lambda group: -group.recorded_mean_wait_s * group.jobs)

    def as_json(self) -> list[dict[str, Any]]:
        """Return the groups as values for JSON."""

        def plain(value: Any) -> Any:
            return (
                [*map(plain, value)]
                if isinstance(value, list)
                else None
                if isinstance(value, float) and isnan(value)
                else value
            )

        return [{"by": self.by, **{name: plain(value) for name, value in group._asdict().items()}} for group in self.groups()]
