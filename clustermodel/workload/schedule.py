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
from clustermodel.workload.swf import (
    ALLOCATED,
    AVERAGE_CPU,
    CANCELLED,
    COMPLETED,
    COMPLETED_PART,
    CONTINUED_PART,
    ESTIMATE,
    FAILED,
    FAILED_PART,
    GROUP,
    NUMBER,
    PARTIAL,
    REQUESTED,
    RUN,
    STATUS,
    SUBMIT,
    SWF_FIELDS,
    UNKNOWN,
    USER,
    WAIT,
    DataLine,
    data_lines,
    read_header,
)
from clustermodel.workload.table import Provenance

if TYPE_CHECKING:
    import pandas as pd

_NEEDED: Final = (NUMBER, SUBMIT, WAIT, RUN, ALLOCATED)
_STATUS: Final = {COMPLETED: "completed", FAILED: "failed", CANCELLED: "cancelled"}
_OUTCOME: Final = {
    COMPLETED: "completed",
    COMPLETED_PART: "completed",
    FAILED: "failed",
    FAILED_PART: "failed",
    CANCELLED: "cancelled",
    CONTINUED_PART: "continued",
}
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
    """A run attempt of a job, times in ticks."""

    start: int
    end: int
    nodes: int
    executed_s: float
    outcome: str


def read_schedule(path: str | os.PathLike[str], *, lenient: bool = False) -> Schedule:
    """Read when each job ran: waits, starts, ends, and the run attempts of jobs that were preempted.

    A job that has lines of partial executions (status 2 to 4) has a run attempt for each; the wait of the first counts from the
    submission, that of any other from the end of the one before.  Any other job has one run attempt, if its wait is known.

    Args:
        path: a ``.swf`` or ``.swf.gz`` file: a log, or what :meth:`Result.to_swf
            <clustermodel.experiment.result.Result.to_swf>` has written.
        lenient: count and skip a malformed line instead of raising.

    Raises:
        TraceError: the file cannot be read, is damaged, has a malformed line, no job, or two jobs with the same number.
        SpecificationError: ``lenient`` is neither true nor false.
    """
    import pandas as pd

    path = Path(path)
    provenance = Provenance(source=str(path), options={"lenient": flag("lenient", lenient)}, header=read_header(path))
    lines = data_lines(path, _NEEDED, lenient=lenient, dropped=provenance.dropped, messages=[])
    jobs: list[tuple[object, ...]] = []
    run_attempts: list[tuple[object, ...]] = []
    first_line: dict[int, int] = {}
    for number, group in groupby(lines, key=lambda line: int(line.values[NUMBER])):
        of_job = list(group)
        parts = [line for line in of_job if line.values[STATUS] in PARTIAL]
        whole = [line for line in of_job if line.values[STATUS] not in PARTIAL]
        if number in first_line or len(whole) > 1:
            first, second = (first_line[number], of_job[0].line) if number in first_line else (whole[0].line, whole[1].line)
            raise TraceError(
                f"{path}:{second}: field {SWF_FIELDS[NUMBER]}: {number} is used by two jobs, first on line {first}; job "
                "numbers must be unique, and the partial executions of a job follow each other"
            )
        first_line[number] = of_job[0].line
        if parts:
            provenance.partial["with the line of the whole job" if whole else "without a line of the whole job"] += len(parts)
        attempts = list(_attempts(parts or whole, (whole or parts)[0].values[SUBMIT]))
        jobs.append(_job(number, (whole or parts)[0], parts, attempts))
        run_attempts += [
            (number, start / TICKS_PER_SECOND, end / TICKS_PER_SECOND, nodes, executed_s, outcome)
            for start, end, nodes, executed_s, outcome in attempts
        ]
    if not jobs:
        raise TraceError(f"{path}: no job: {'; '.join(provenance.lines()) or 'the file has no job lines'}")
    attempt_columns = ["job", *_Attempt._fields]
    attempt_columns[1:3] = ["start_s", "end_s"]
    return Schedule(
        jobs=pd.DataFrame(jobs, columns=list(_JOB_COLUMNS)),
        run_attempts=pd.DataFrame(run_attempts, columns=attempt_columns),
        provenance=provenance,
    )


_JOB_COLUMNS: Final = (
    "job", "submit_s", "start_s", "end_s", "nodes", "allocated_nodes", "run_s", "estimate_s", "user", "group", "status",
    "wait_s", "response_s", "tries",
)  # fmt: skip


def _attempts(lines: Sequence[DataLine], submit: float) -> Iterator[_Attempt]:
    """Yield the run attempts of a job up to the first one whose times are not known."""
    if submit < 0:
        return
    queued = to_ticks(submit)
    for line in lines:
        values = line.values
        if values[WAIT] < 0 or values[RUN] < 0:
            return
        start = queued + to_ticks(values[WAIT])
        queued = start + to_ticks(values[RUN])
        executed_s = nan if values[AVERAGE_CPU] < 0 else values[AVERAGE_CPU]
        yield _Attempt(start, queued, _allocated(line), executed_s, _OUTCOME.get(int(values[STATUS]), _UNKNOWN))


def _allocated(line: DataLine) -> int:
    """Return the number of allocated processors, or where that is missing of requested ones, 0 if both are."""
    return max(0, int(line.values[ALLOCATED])) or max(0, int(line.values[REQUESTED]))


def _job(number: int, line: DataLine, parts: Sequence[DataLine], attempts: Sequence[_Attempt]) -> tuple[object, ...]:
    """Return the row of a job, given by its whole line or else its first part."""
    values = line.values
    submit, run, estimate = values[SUBMIT], values[RUN], values[ESTIMATE]
    status = _STATUS.get(int(values[STATUS]), _UNKNOWN)
    if values[STATUS] in PARTIAL:
        run = sum(known) if (known := [part.values[RUN] for part in parts if part.values[RUN] >= 0]) else UNKNOWN
        status = _UNKNOWN if (last := int(parts[-1].values[STATUS])) == CONTINUED_PART else _OUTCOME[last]
    start, end = (attempts[-1].start, attempts[-1].end) if attempts else (nan, nan)
    start_s, end_s, submit_s = start / TICKS_PER_SECOND, end / TICKS_PER_SECOND, nan if submit < 0 else submit
    ran = attempts or run > 0
    return (
        number,
        submit_s,
        start_s,
        end_s,
        max(0, int(values[REQUESTED])) or _allocated(line),
        (attempts[-1].nodes if attempts else _allocated(line)) if ran else 0,
        nan if run < 0 else run,
        nan if estimate < 0 else estimate,
        int(values[USER]),
        int(values[GROUP]),
        status,
        start_s - submit_s,
        end_s - submit_s,
        len(attempts),
    )
