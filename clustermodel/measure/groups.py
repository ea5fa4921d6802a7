"""The metrics of a run by groups of jobs: by stream, by size class, by user, or by any column of the job table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import BoolArray, FloatArray, IntArray
from clustermodel.errors import SpecificationError, quoted
from clustermodel.measure.job_table import dedicated, useful, wasted
from clustermodel.measure.metrics import PERCENTILES, bounded_slowdown, bounded_slowdown_perkovic
from clustermodel.measure.node_time import node_seconds
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.run_attempts import Status
from clustermodel.ticks import TICKS_PER_SECOND, to_ticks
from clustermodel.validation import require_seconds, require_whole

if TYPE_CHECKING:
    import pandas as pd


def by_group(records: JobRecords, groups: pd.Series[str] | npt.ArrayLike, *, warm_up_s: float = 0.0) -> pd.DataFrame:
    """Return the metrics of each group of jobs.

    Args:
        records: of a run.
        groups: the group of each job, shape ``(jobs,)``; of a categorical column also groups without jobs have a row.
        warm_up_s: jobs submitted sooner than this after the first submission count nowhere in the table, seconds.

    Returns:
        A row per group, in ascending order or that of the categories.  docs/outputs lists the columns.

    Raises:
        SpecificationError: ``warm_up_s`` is no time, or there is not one group per job.
    """
    import pandas as pd

    labels = pd.Categorical(groups if isinstance(groups, pd.Series) else np.asarray(groups))
    if len(labels) != len(records):
        raise SpecificationError(f"by_group: {len(labels)} groups are given for {len(records)} jobs; give one for each job")
    submit = records.column("submit")
    ended_as = records.column("ended_as")
    counted = np.full(len(records), True)
    if warm_up_ticks := to_ticks(require_seconds("warm_up_s", warm_up_s)):
        accepted = submit[ended_as != Status.REJECTED]
        counted = submit >= (accepted.min() if len(accepted) else 0) + warm_up_ticks
    measured = _Measured(records)
    codes = np.where(counted, labels.codes, -1)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(labels.categories) + 1))
    name = getattr(groups, "name", None) or "group"
    frame = pd.DataFrame(measured.of(order, bounds), index=pd.Index(labels.categories, name=name))
    frame["share_of_work"] = frame["useful_node_s"] / (frame["useful_node_s"].sum() or np.nan)
    return frame


def size_classes(nodes: npt.NDArray[np.int64], boundaries: Sequence[int]) -> pd.Series[str]:
    """Return the size class of each job as text: ``"1-8"``, ``"9-64"``, ``"> 64"`` with boundaries 8 and 64.

    Args:
        nodes: sizes, shape ``(jobs,)``.
        boundaries: largest sizes of all classes but the last one, rising.

    Raises:
        SpecificationError: the boundaries do not rise, or are not whole numbers of at least one.
    """
    import pandas as pd

    bounds = [require_whole("boundaries", bound, at_least=1) for bound in boundaries]
    if not bounds or bounds != sorted(set(bounds)):
        raise SpecificationError(f"boundaries: {quoted(list(boundaries))} is not allowed; it must be sizes that rise")
    first = [1, *(bound + 1 for bound in bounds)]
    names = [str(low) if low == high else f"{low}-{high}" for low, high in zip(first, bounds, strict=False)]
    names.append(f"> {bounds[-1]}")
    classes = pd.Categorical.from_codes(np.searchsorted(bounds, nodes), categories=pd.Index(names), ordered=True)
    return pd.Series(classes, name="nodes")


class _Measured:
    """What the metrics of a group are made of, computed once for all jobs; shapes ``(jobs,)``."""

    def __init__(self, records: JobRecords) -> None:
        submit, start, end = (records.seconds(name) for name in ("submit", "start", "end"))
        run = dedicated(records) / TICKS_PER_SECOND
        self._ran: BoolArray = records.finished
        self._ended_as = records.column("ended_as")
        self._nodes = records.column("nodes")
        self._wait, self._response = start - submit, end - submit
        self._slowdown = bounded_slowdown(self._response, run)
        self._perkovic = bounded_slowdown_perkovic(self._response, run)
        self._useful, self._wasted = (np.asarray(node_seconds(one(records)), dtype=float) for one in (useful, wasted))

    def of(self, jobs: IntArray, bounds: IntArray) -> dict[str, npt.NDArray[np.generic]]:
        """Return the metrics of groups, shape ``(groups,)`` each.

        Args:
            jobs: positions of jobs, one group after the other.
            bounds: where in ``jobs`` each group begins, and where the last one ends, shape ``(groups + 1,)``.
        """
        ended_as, has_run = self._ended_as[jobs], np.concatenate([[0], np.cumsum(self._ran[jobs])])
        ran, ran_bounds = jobs[self._ran[jobs]], has_run[bounds]

        def number(chosen: BoolArray) -> IntArray:
            return np.diff(np.concatenate([[0], np.cumsum(chosen)])[bounds])

        every = _Groups(jobs, bounds)
        finished = _Groups(ran, ran_bounds)
        return {
            "jobs": np.diff(ran_bounds),
            "rejected": number(ended_as == Status.REJECTED),
            "killed": number(ended_as == Status.KILLED),
            "aborted": number(ended_as == Status.ABORTED),
            **_statistics("wait_s", finished, self._wait, self._nodes),
            **_statistics("response_s", finished, self._response, self._nodes),
            **_statistics("bounded_slowdown", finished, self._slowdown, self._nodes),
            "mean_bounded_slowdown_perkovic": finished.each(partial(np.mean, axis=1), self._perkovic),
            "useful_node_s": every.each(partial(np.sum, axis=1), self._useful, empty=0.0),
            "wasted_node_s": every.each(partial(np.sum, axis=1), self._wasted, empty=0.0),
        }


class _Groups:
    """Groups of jobs; those of one size are the rows of a table, so that a statistic is computed once for all of them.

    Args:
        jobs: positions of jobs, one group after the other.
        bounds: where in ``jobs`` each group begins, and where the last one ends, shape ``(groups + 1,)``.
    """

    def __init__(self, jobs: IntArray, bounds: IntArray) -> None:
        sizes = np.diff(bounds)
        self._number = len(sizes)
        order = np.argsort(sizes, kind="stable")
        different, first = np.unique(sizes[order], return_index=True)
        self._tables = [
            (groups, jobs[bounds[groups, np.newaxis] + np.arange(size)])
            for size, groups in zip(different.tolist(), np.split(order, first[1:]), strict=True)
            if size
        ]

    def each(self, statistic: Callable[..., npt.ArrayLike], *values: npt.NDArray[Any], empty: float = math.nan) -> FloatArray:
        """Return a statistic of each group, shape ``(groups,)``; ``empty`` for groups without jobs.

        Args:
            statistic: returns it for tables of values, shape ``(groups, jobs)``.
            values: of all jobs.
            empty: of a group without jobs.
        """
        result = np.full(self._number, empty)
        for groups, table in self._tables:
            result[groups] = statistic(*(column[table] for column in values))
        return result


def _statistics(metric: str, groups: _Groups, values: FloatArray, nodes: IntArray) -> dict[str, FloatArray]:
    percents = (50, *PERCENTILES)
    median, *high = (groups.each(partial(np.percentile, q=percent, axis=1), values) for percent in percents)
    return {
        f"mean_{metric}": groups.each(partial(np.mean, axis=1), values),
        f"median_{metric}": median,
        f"std_{metric}": groups.each(partial(np.std, axis=1), values),
        **{f"p{percent}_{metric}": value for percent, value in zip(PERCENTILES, high, strict=True)},
        f"max_{metric}": groups.each(partial(np.max, axis=1), values),
        f"mean_weighted_{metric}": groups.each(_weighted, values, nodes),
    }


def _weighted(values: FloatArray, nodes: IntArray) -> FloatArray:
    """Return the means of rows, weighted by the nodes of the jobs, shape ``(groups,)``."""
    return np.asarray(np.average(values, axis=1, weights=nodes))
