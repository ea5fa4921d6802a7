"""The metrics of a run by groups of jobs: by stream, by size class, by user, or by any column of the job table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import BoolArray, FloatArray
from clustermodel.errors import SpecificationError, quoted
from clustermodel.measure.job_table import dedicated, useful, wasted
from clustermodel.measure.metrics import PERCENTILES, bounded_slowdown, bounded_slowdown_perkovic, weighted_mean
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
    rows = [measured.of(order[low:high]) for low, high in pairwise(bounds)]
    name = getattr(groups, "name", None) or "group"
    frame = pd.DataFrame(rows, index=pd.Index(labels.categories, name=name), columns=list(measured.of(order[:0])))
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

    def of(self, jobs: npt.NDArray[np.intp]) -> dict[str, float]:
        """Return the metrics of the jobs at these positions."""
        ran, ended_as = jobs[self._ran[jobs]], self._ended_as[jobs]
        nodes, slowdown = self._nodes[ran], self._slowdown[ran]
        return {
            "jobs": len(ran),
            "rejected": int((ended_as == Status.REJECTED).sum()),
            "killed": int((ended_as == Status.KILLED).sum()),
            "aborted": int((ended_as == Status.ABORTED).sum()),
            **_statistics("wait_s", self._wait[ran], nodes),
            **_statistics("response_s", self._response[ran], nodes),
            **_statistics("bounded_slowdown", slowdown, nodes),
            "mean_bounded_slowdown_perkovic": float(np.mean(self._perkovic[ran])) if len(ran) else float("nan"),
            "useful_node_s": float(self._useful[jobs].sum()),
            "wasted_node_s": float(self._wasted[jobs].sum()),
        }


def _statistics(metric: str, values: FloatArray, nodes: npt.NDArray[np.int64]) -> dict[str, float]:
    if not len(values):
        values, nodes = np.array([np.nan]), np.ones(1, dtype=np.int64)
    median, *high = np.percentile(values, (50, *PERCENTILES)).tolist()
    return {
        f"mean_{metric}": float(np.mean(values)),
        f"median_{metric}": median,
        f"std_{metric}": float(np.std(values)),
        **{f"p{percent}_{metric}": value for percent, value in zip(PERCENTILES, high, strict=True)},
        f"max_{metric}": float(np.max(values)),
        f"mean_weighted_{metric}": weighted_mean(values, nodes),
    }
