"""One data line of the Standard Workload Format: its fields, the values each may have, and which wrong ones are tolerated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from clustermodel.errors import quoted, shown
from clustermodel.ticks import to_ticks
from clustermodel.validation import LONGEST_S

SWF_FIELDS: Final = (
    "job_number",
    "submit_time",
    "wait_time",
    "run_time",
    "allocated_processors",
    "average_cpu_time",
    "used_memory",
    "requested_processors",
    "requested_time",
    "requested_memory",
    "status",
    "user_id",
    "group_id",
    "executable",
    "queue",
    "partition",
    "preceding_job",
    "think_time",
)
"""The 18 fields of a data line, in order."""

UNKNOWN: Final = -1
"""Stands for a missing value in a trace."""
NUMBER: Final = 0
SUBMIT: Final = 1
WAIT: Final = 2
RUN: Final = 3
ALLOCATED: Final = 4
AVERAGE_CPU: Final = 5
USED_MEMORY: Final = 6
REQUESTED: Final = 7
ESTIMATE: Final = 8
REQUESTED_MEMORY: Final = 9
STATUS: Final = 10
USER: Final = 11
GROUP: Final = 12
PRECEDING_JOB: Final = 16
THINK_TIME: Final = 17
WHOLE_FIELDS: Final = (NUMBER, ALLOCATED, REQUESTED, STATUS, USER, GROUP)
_TIME_FIELDS: Final = (SUBMIT, RUN, ESTIMATE)
DECISIVE_FIELDS: Final = (NUMBER, SUBMIT, RUN)  # they decide whether a line is a job
_LABEL_FIELDS: Final = (STATUS, USER, GROUP)  # kept with the job; no schedule depends on them

FAILED: Final = 0
COMPLETED: Final = 1
CANCELLED: Final = 5
CONTINUED_PART: Final = 2
COMPLETED_PART: Final = 3
FAILED_PART: Final = 4
PARTIAL: Final = (CONTINUED_PART, COMPLETED_PART, FAILED_PART)
"""Statuses of partial executions: one that is followed by another one, and the last one of a job that completed or failed."""


class DataLine(NamedTuple):
    """A data line of a file."""

    at: int
    """Line number, from 1."""
    values: list[float]
    """The 18 numbers; :data:`UNKNOWN` where a value is missing or wrong."""
    repairs: Sequence[str]
    """What was corrected."""


def parse_line(text: str, needed: Sequence[int]) -> tuple[list[float], Sequence[str]]:
    """Return the 18 numbers of a data line, and what was corrected in it.

    Raises:
        ValueError: a field on which results depend, one of ``needed``, has an invalid value; the message names the field.
    """
    words = text.split()
    if len(words) != len(SWF_FIELDS):
        raise ValueError(f"{len(words)} fields; a data line has {len(SWF_FIELDS)}")
    try:
        values = list(map(float, words))
    except ValueError:
        values = [math.nan]
    # A cheap check of the whole line; only suspicious lines are checked field by field.
    if (
        not text.isascii()
        or "_" in text
        or not math.isfinite(sum(values))
        or max(values) > LONGEST_S
        or values[0] < 0
        or [value for value in values if value < 0 and value != UNKNOWN]
        or [index for index in WHOLE_FIELDS if values[index] % 1]
    ):
        return _corrected(words, needed)
    return values, ()


def parse_line_with_feedback(
    feedback: dict[int, tuple[int, int]], text: str, needed: Sequence[int]
) -> tuple[list[float], Sequence[str]]:
    """Return what :func:`parse_line` does, and note in ``feedback`` the preceding job and the think time (ticks) of the job.

    Raises:
        ValueError: as of :func:`parse_line`, also for these two fields.
    """
    values, repairs = parse_line(text, (*needed, PRECEDING_JOB, THINK_TIME))
    preceding, think = values[PRECEDING_JOB], values[THINK_TIME]
    if preceding % 1:
        raise ValueError(f"field {SWF_FIELDS[PRECEDING_JOB]}: {preceding:g} is not a whole number")
    if think > LONGEST_S:
        raise ValueError(f"field {SWF_FIELDS[THINK_TIME]}: {think:g} is not allowed; it must be <= {LONGEST_S:g}")
    if preceding != UNKNOWN:
        feedback[int(values[0])] = int(preceding), to_ticks(max(0.0, think))
    return values, repairs


def _corrected(words: Sequence[str], needed: Sequence[int]) -> tuple[list[float], Sequence[str]]:
    """Return the numbers of a suspicious line, with :data:`UNKNOWN` for invalid ones on which no result depends."""
    values: list[float] = []
    wrong: dict[int, ValueError] = {}
    for index, word in enumerate(words):
        try:
            values.append(_value(index, word))
        except ValueError as problem:
            values.append(UNKNOWN)
            wrong[index] = problem
    counts = (values[SUBMIT] >= 0 and values[RUN] > 0) or values[STATUS] in PARTIAL  # else the line is left out anyway
    for index in needed if counts else DECISIVE_FIELDS:
        if index in wrong:
            raise wrong[index]
    return values, [f"{SWF_FIELDS[at]} invalid, {'unknown (-1) used' if at in _LABEL_FIELDS else 'ignored'}" for at in wrong]


def _value(index: int, word: str) -> float:
    """Return ``word`` as a number; raise ``ValueError`` unless it is valid in field ``index``."""
    field = SWF_FIELDS[index]
    try:
        # Python's float accepts more than the format: 1_000, and the digits of all scripts.
        value = float(word) if word.isascii() and "_" not in word else None
    except ValueError:
        value = None
    if value is None:
        raise ValueError(f"field {field}: {quoted(word)} is not a number")
    if not math.isfinite(value):
        raise ValueError(f"field {field}: {quoted(word)} is not a finite number")
    if value < 0 and (value != UNKNOWN or index == 0) and index != ESTIMATE:  # a negative estimate is a missing one
        allowed = ">= 0" if index == 0 else ">= 0, or -1 for unknown"
        raise ValueError(f"field {field}: {shown(word)} is not allowed; it must be {allowed}")
    if index in WHOLE_FIELDS and value % 1:
        raise ValueError(f"field {field}: {shown(word)} is not a whole number")
    if value > LONGEST_S and index in WHOLE_FIELDS + _TIME_FIELDS:
        raise ValueError(f"field {field}: {shown(word)} is not allowed; it must be <= {LONGEST_S:g}")
    return value
