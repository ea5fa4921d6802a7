"""Schedules that were recorded: when and on how many nodes each job of a file in the Standard Workload Format ran.

A trace is read as a workload by :func:`clustermodel.workload.swf.read_swf`, which leaves out what the system did.  Here waits,
starts, ends and partial executions are read, of a real log as of a simulated schedule.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from clustermodel.errors import TraceError
from clustermodel.ticks import TICKS_PER_SECOND, to_ticks
from clustermodel.validation import flag
from clustermodel.workload import swf
from clustermodel.workload.table import Provenance

if TYPE_CHECKING:
    import pandas as pd

_NEEDED: Final = (swf.NUMBER, swf.SUBMIT, swf.WAIT, swf.RUN, swf.ALLOCATED)
_STATUS: Final = {swf.COMPLETED: "completed", swf.FAILED: "failed", swf.CANCELLED: "cancelled"}
_OUTCOME: Final = {
    **_STATUS, swf.COMPLETED_PART: "completed", swf.FAILED_PART: "failed", swf.CONTINUED_PART: "continued",
}  # fmt: skip
_UNKNOWN: Final = "unknown"


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A schedule as it was recorded.  Tables are pandas, times in seconds on the clock of the file."""

    jobs: pd.DataFrame
    """A row for each job, in order of the file.  Columns as in :attr:`Result.jobs
    <clustermodel.experiment.result.Result.jobs>`: ``job``, ``submit_s``, ``start_s``, ``end_s`` (of the last run attempt),
    ``nodes``, ``allocated_nodes`` (0 if the job never ran), ``run_s``, ``estimate_s``, ``user``, ``group``, ``status``
    (``completed``, ``failed``, ``cancelled`` or ``unknown``), ``wait_s``, ``response_s``, ``tries``; ``nan`` is unknown."""
    run_attempts: pd.DataFrame
    """A row for each run attempt whose start is known, by job, then by time.  Columns as in :attr:`Result.run_attempts
    <clustermodel.experiment.result.Result.run_attempts>`: ``job``, ``start_s``, ``end_s``, ``nodes``, ``executed_s`` (average
    CPU time) and ``outcome``: ``continued`` if another attempt follows, ``completed``, ``failed``, ``cancelled`` or
    ``unknown``."""
    provenance: Provenance
    """The file, its header, and counts of skipped lines and of partial executions."""


class _Attempt(NamedTuple):
    start: int
    """Ticks."""
    end: int
    nodes: int
    executed_s: float
    outcome: str


def read_schedule(path: str | os.PathLike[str], *, lenient: bool = False) -> Schedule:
    """Read when each job ran: waits, starts, ends, and the run attempts of jobs that were preempted.

    A job that has lines of partial executions (status 2 to 4) has a run attempt for each; the wait of the first counts from the
    submission, that of any other from the end of the one before.  Any other job has one run attempt, if its wait is known.
    The file, ``.swf`` or ``.swf.gz``, is a log, or what :meth:`Result.to_swf <clustermodel.experiment.result.Result.to_swf>`
    has written.  If ``lenient``, malformed lines are counted and skipped.

    Raises:
        TraceError: the file cannot be read, is damaged, has a malformed line, no job, or two jobs with the same number.
    """
    import pandas as pd

    path = Path(path)
    provenance = Provenance(source=str(path), options={"lenient": flag("lenient", lenient)}, header=swf.read_header(path))
    blocks = swf.data_lines(path, _NEEDED, lenient=lenient, dropped=provenance.dropped, messages=[])
    lines = (line for block in blocks for line in zip(block.numbers.tolist(), block.table.tolist(), strict=True))
    jobs: list[tuple[object, ...]] = []
    run_attempts: list[tuple[object, ...]] = []
    first_line: dict[int, int] = {}
    for number, group in groupby(lines, key=lambda line: int(line[1][swf.NUMBER])):
        of_job = list(group)
        parts = [values for _, values in of_job if values[swf.STATUS] in swf.PARTIAL]
        whole = [(line, values) for line, values in of_job if values[swf.STATUS] not in swf.PARTIAL]
        if number in first_line or len(whole) > 1:
            first, second = (first_line[number], of_job[0][0]) if number in first_line else (whole[0][0], whole[1][0])
            raise TraceError(
                f"{path}:{second}: field job_number: {number} is used by two jobs, first on line {first}; job "
                "numbers must be unique, and the partial executions of a job follow each other"
            )
        first_line[number] = of_job[0][0]
        if parts:
            provenance.partial["with the line of the whole job" if whole else "without a line of the whole job"] += len(parts)
        job = whole[0][1] if whole else parts[0]
        attempts = list(_attempts(parts or [job], job[swf.SUBMIT]))
        jobs.append(_job(number, job, parts, attempts))
        run_attempts += [
            (number, start / TICKS_PER_SECOND, end / TICKS_PER_SECOND, nodes, executed_s, outcome)
            for start, end, nodes, executed_s, outcome in attempts
        ]
    if not jobs:
        raise TraceError(f"{path}: no job: {'; '.join(provenance.lines()) or 'the file has no job lines'}")
    return Schedule(
        jobs=pd.DataFrame(jobs, columns=list(_JOB_COLUMNS)),
        run_attempts=pd.DataFrame(run_attempts, columns=["job", "start_s", "end_s", "nodes", "executed_s", "outcome"]),
        provenance=provenance,
    )


_JOB_COLUMNS: Final = (
    "job", "submit_s", "start_s", "end_s", "nodes", "allocated_nodes", "run_s", "estimate_s", "user", "group", "status",
    "wait_s", "response_s", "tries",
)  # fmt: skip


def _attempts(lines: Sequence[Sequence[float]], submit: float) -> Iterator[_Attempt]:
    """Yield the run attempts of a job up to the first one whose times are not known."""
    if submit < 0:
        return
    queued = to_ticks(submit)
    for values in lines:
        if values[swf.WAIT] < 0 or values[swf.RUN] < 0:
            return
        start = queued + to_ticks(values[swf.WAIT])
        queued = start + to_ticks(values[swf.RUN])
        executed_s = nan if values[swf.AVERAGE_CPU] < 0 else values[swf.AVERAGE_CPU]
        yield _Attempt(start, queued, _allocated(values), executed_s, _OUTCOME.get(int(values[swf.STATUS]), _UNKNOWN))


def _allocated(values: Sequence[float]) -> int:
    """Return the number of allocated processors, or where that is missing of requested ones, 0 if both are."""
    return max(0, int(values[swf.ALLOCATED])) or max(0, int(values[swf.REQUESTED]))


def _job(
    number: int, values: Sequence[float], parts: Sequence[Sequence[float]], attempts: Sequence[_Attempt]
) -> tuple[object, ...]:
    """Return the row of a job, given by its whole line or else its first part."""
    submit_s, run_s, estimate_s = (nan if values[time] < 0 else values[time] for time in (swf.SUBMIT, swf.RUN, swf.ESTIMATE))
    status = _STATUS.get(int(values[swf.STATUS]), _UNKNOWN)
    if values[swf.STATUS] in swf.PARTIAL:
        known = [part[swf.RUN] for part in parts if part[swf.RUN] >= 0]
        run_s = sum(known) if known else nan
        status = _UNKNOWN if (last := int(parts[-1][swf.STATUS])) == swf.CONTINUED_PART else _OUTCOME[last]
    start_s, end_s, nodes = nan, nan, _allocated(values) if run_s > 0 else 0
    if attempts:
        last_attempt = attempts[-1]
        start_s, end_s, nodes = last_attempt.start / TICKS_PER_SECOND, last_attempt.end / TICKS_PER_SECOND, last_attempt.nodes
    return (
        number, submit_s, start_s, end_s, max(0, int(values[swf.REQUESTED])) or _allocated(values), nodes, run_s, estimate_s,
        int(values[swf.USER]), int(values[swf.GROUP]), status, start_s - submit_s, end_s - submit_s, len(attempts),
    )  # fmt: skip
