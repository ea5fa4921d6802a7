"""Jobs that ran in several parts: the lines of partial executions in the Standard Workload Format, status 2 to 4.

A job that was preempted, or swapped out, may have a line of its own and, next to it, a line for each part: 2, the job ran
again later; 3 or 4, the last part, after which the job had completed or failed (header ``Preemption: Double``).  Only the line
of the whole job belongs to the workload.  A job may also have lines of its parts only (``Preemption: Yes``); then it is summed
up from them.  All lines of a job follow each other.  (Chapin et al. 1999)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from clustermodel.errors import TraceError
from clustermodel.validation import LONGEST_S
from clustermodel.workload.swf_line import (
    COMPLETED,
    COMPLETED_PART,
    FAILED,
    FAILED_PART,
    NUMBER,
    PARTIAL,
    RUN,
    STATUS,
    SWF_FIELDS,
    UNKNOWN,
    DataLine,
)

_STATUS_OF_JOB: Final = {COMPLETED_PART: COMPLETED, FAILED_PART: FAILED}
_WITH_WHOLE: Final = "the line of the whole job was used"
_SUMMED_UP: Final = "no line of the whole job, summed up from its partial executions"


def whole_jobs(path: Path, lines: Iterable[DataLine], partial: Counter[str]) -> Iterator[DataLine]:
    """Yield a line for each job: the line of the whole job, or one that sums up its partial executions.

    In the latter, the run time is the sum of the parts, the status follows from the last part, and all else is that of the
    first part.

    Args:
        path: the file, for messages.
        lines: its data lines.
        partial: where partial executions are counted.

    Raises:
        TraceError: the parts of a job run longer than any job may.
    """
    whole: float = UNKNOWN  # number of the job whose line was yielded last
    parts: DataLine | None = None  # what the partial executions before this line sum up to
    number_of_parts = 0
    for line in lines:
        values = line.values
        number, is_partial = values[NUMBER], values[STATUS] in PARTIAL
        if parts is not None and (number != parts.values[NUMBER] or not is_partial):
            if number == parts.values[NUMBER]:
                partial[_WITH_WHOLE] += number_of_parts
            else:
                partial[_SUMMED_UP] += number_of_parts
                yield parts
            parts = None
        if not is_partial:
            whole = number
            yield line
        elif number == whole:
            partial[_WITH_WHOLE] += 1
        elif parts is None:
            parts, number_of_parts = _first_part(line), 1
        else:
            parts, number_of_parts = _with_part(path, parts, line), number_of_parts + 1
    if parts is not None:
        partial[_SUMMED_UP] += number_of_parts
        yield parts


def _first_part(line: DataLine) -> DataLine:
    values = line.values.copy()
    values[STATUS] = _STATUS_OF_JOB.get(int(values[STATUS]), UNKNOWN)
    return DataLine(line.at, values, [*line.repairs, _SUMMED_UP])


def _with_part(path: Path, parts: DataLine, line: DataLine) -> DataLine:
    """Return the sum of a job's first partial executions and of another one."""
    values, run = parts.values, line.values[RUN]
    if run >= 0:
        values[RUN] = max(0.0, values[RUN]) + run
    if values[RUN] > LONGEST_S:
        raise TraceError(
            f"{path}:{line.at}: field {SWF_FIELDS[RUN]}: the partial executions of job {values[NUMBER]:g} sum up to "
            f"{values[RUN]:g} s; at most {LONGEST_S:g} s are allowed"
        )
    values[STATUS] = _STATUS_OF_JOB.get(int(line.values[STATUS]), UNKNOWN)
    return parts
