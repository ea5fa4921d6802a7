"""The data of a run's interactive figures, in as few bytes as hold them: jobs, placements of gangs, and events."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from clustermodel.measure.metrics import bounded_slowdown
from clustermodel.measure.timeline import KINDS
from clustermodel.recording.run_attempts import Status

STATUSES: Final = tuple(status.label for status in Status)
Columns = dict[str, npt.NDArray[np.generic]]


class ViewedRun(NamedTuple):
    """The data of one run's figures; times in seconds since the first submission."""

    label: str
    machine_nodes: int
    shared: bool
    """Whether gangs share nodes in time, so that the matrix has several rows."""
    jobs: Columns
    """``id``, ``user``, ``nodes``, ``submit``, ``wait``, ``response``, ``slowdown``, ``reserved`` (the first guaranteed start,
    -1 for none), ``head`` (when it was first left waiting at the head of the queue, -1 for never), ``attempts``,
    ``backfilled``, ``status`` (position in ``STATUSES``); shapes ``(jobs,)``.  Durations have seven digits."""
    stays: Columns
    """A gang in one row: ``job`` (position in ``jobs``), ``begin``, ``end``, ``row``, ``kind`` (position in ``KINDS``)."""
    pieces: Columns
    """A contiguous range of nodes: ``stay`` (position in ``stays``), ``first``, ``nodes``."""
    events: Columns
    """The machine after each event: ``time``, ``waiting`` (jobs), ``down`` (nodes), ``row``."""
    overview: Columns
    """The share of busy nodes over time: ``x`` (in the unit of the axes), ``y``."""

    @property
    def rows(self) -> int:
        """The number of rows of the matrix."""
        return int(self.stays["row"].max(initial=0)) + 1

    @property
    def size(self) -> int:
        """The size of the data, bytes."""
        tables = (self.jobs, self.stays, self.pieces, self.events, self.overview)
        return sum(values.nbytes for table in tables for values in table.values())


def viewed_run(
    label: str, machine_nodes: int, records: pd.DataFrame, placements: pd.DataFrame, states: pd.DataFrame, overview: Columns
) -> ViewedRun:
    """Return the data of a run's figures.

    Args:
        label: of the run in the lists.
        machine_nodes: size of its machine.
        records: :attr:`Result.jobs <clustermodel.experiment.result.Result.jobs>`.
        placements: :attr:`Result.placements <clustermodel.experiment.result.Result.placements>`.
        states: :attr:`Result.states <clustermodel.experiment.result.Result.states>`.
        overview: see :class:`ViewedRun`.
    """
    start = float(states["time_s"].iloc[0])
    of_stay = ["job", "begin_s", "end_s", "row", "kind"]
    stays, unique = placements.groupby(of_stay, sort=False).ngroup(), placements.drop_duplicates(of_stay)
    return ViewedRun(
        label,
        machine_nodes,
        bool((states["running_row"] >= 0).any()),
        _jobs(records, start),
        _stays(unique, records, start),
        {"stay": _whole(stays), "first": _whole(placements["first_node"]), "nodes": _whole(placements["nodes"])},
        {
            "time": states["time_s"].to_numpy(dtype=float) - start,
            "waiting": _whole(states["waiting_jobs"]),
            "down": _whole(states["down_nodes"]),
            "row": _whole(states["running_row"]),
        },
        overview,
    )


def _jobs(records: pd.DataFrame, start: float) -> Columns:
    response = records["response_s"].to_numpy(dtype=float)
    slowdown = bounded_slowdown(response, records["run_s"].to_numpy(dtype=float))
    return {
        "id": _whole(records["job"]),
        "user": _whole(records["user"]),
        "nodes": _whole(records["nodes"]),
        "submit": records["submit_s"].to_numpy(dtype=float) - start,
        "wait": records["wait_s"].to_numpy(dtype=np.float32),
        "response": response.astype(np.float32),
        "slowdown": slowdown.astype(np.float32),
        "reserved": _since(records["reserved_s"], start),
        "head": _since(records["head_since_s"], start),
        "attempts": _whole(records["tries"]),
        "backfilled": records["backfilled"].to_numpy(dtype=np.int8),
        "status": _whole(records["status"].map({status: number for number, status in enumerate(STATUSES)})),
    }


def _stays(stays: pd.DataFrame, records: pd.DataFrame, start: float) -> Columns:
    position = pd.Series(np.arange(len(records)), index=records["job"])
    return {
        "job": _whole(stays["job"].map(position)),
        "begin": stays["begin_s"].to_numpy(dtype=float) - start,
        "end": stays["end_s"].to_numpy(dtype=float) - start,
        "row": _whole(stays["row"]),
        "kind": _whole(stays["kind"].map({kind: number for number, kind in enumerate(KINDS)})),
    }


def _since(times: pd.Series, start: float) -> npt.NDArray[np.generic]:
    """Return times since the first submission, -1 for those that are unknown."""
    since = times.to_numpy(dtype=float) - start
    return np.where(np.isfinite(since), since, -1.0).astype(np.float32)


def _whole(values: pd.Series) -> npt.NDArray[np.generic]:
    """Return whole numbers in the smallest type that holds them and that Bokeh supports.

    Raises:
        ValueError: one is missing, as only damaged tables have it.
    """
    if values.isna().any():
        raise ValueError(f"{values.name}: a value is missing")
    numbers = values.to_numpy(dtype=np.int64)
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return numbers.astype(kind)
    return numbers.astype(np.float64)
