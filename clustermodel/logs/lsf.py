"""Accounting records of IBM Spectrum LSF, the file ``lsb.acct``, as a workload.

A record is a line of fields separated by blanks, texts in double quotes: ``"JOB_FINISH" "10.1" 1656313251 905984 ...``.  Its
type, version and time are followed by fields of that type.  They are described in the LSF Configuration Reference, lsb.acct.
"""

import csv
import os
import re
from collections import Counter
from itertools import chain
from operator import methodcaller
from typing import Final

from clustermodel.errors import TraceError, quoted
from clustermodel.logs import log_jobs as logs
from clustermodel.logs.values import checked_run
from clustermodel.text.files import text_lines
from clustermodel.workload.job import UNSET
from clustermodel.workload.provenance import JOBS
from clustermodel.workload.table import Workload

_RECORD: Final = re.compile(r'"([A-Z][A-Z0-9_]*)" "\d[\d.]*" \d{1,12}(?: .*)?', re.ASCII | re.DOTALL)
_MOST_LINES: Final = 1000  # of a record
_MOST_TEXT: Final = 2**20
_MOST_HOSTS: Final = 1_000_000
_STATUS: Final = {64: 1, 32: 0}  # JOB_STAT_DONE, JOB_STAT_EXIT
_KILLED: Final = (8, 9, 14, 15)  # values of exitInfo: killed by the owner or an administrator
_REQUEUED: Final = (10, 11)  # killed and put back into the queue


def read_lsf(
    path: str | os.PathLike[str],
    *,
    unit: str = "auto",
    processors_from: str = "allocated",
    use_estimates: bool = True,
    feedback: bool = False,
) -> Workload:
    """Read accounting records of LSF (``lsb.acct``) into memory.

    Each record ``JOB_FINISH`` of a job that was dispatched is a job; it runs from ``startTime`` until the time of the record.
    Records have no time limit that is always there, so estimates are run times.  Every line is counted in
    ``provenance.report``.  The columns ``wait``, ``cores``, ``queue`` and others keep what the log has recorded
    (``RECORDED_COLUMNS``).

    Arguments, result and errors are those of :func:`~clustermodel.logs.sacct.read_sacct`.  By default a node of the
    workload is a slot (a core), which is what LSF allocates; with ``unit="nodes"`` it is a host.
    """
    options = {"unit": unit, "processors_from": processors_from, "use_estimates": use_estimates, "feedback": feedback}
    jobs = logs.LogJobs(path, **options)
    _read(jobs)
    return jobs.workload("accounting records of LSF", methodcaller("split", " "), slots=True)


def is_lsf(text: str) -> bool:
    """Return whether a line is a record of LSF."""
    return _RECORD.fullmatch(text) is not None


def _read(jobs: logs.LogJobs) -> None:
    pending: list[str] = []  # lines of a record with a line break in a text
    any_record = False
    for text in chain(text_lines(jobs.path), [None]):
        begins = text is None or is_lsf(text)
        if begins and pending:
            jobs.damaged(jobs.lines + 1 - len(pending), "a text without a closing quotation mark", len(pending))
            pending.clear()
        if text is None:
            break
        jobs.lines += 1
        if pending or begins:
            any_record = True
            pending.append(text)
            record = "\n".join(pending)
            if record.count('"') % 2 == 0 or len(pending) >= _MOST_LINES or len(record) >= _MOST_TEXT:
                _take(jobs, record, len(pending))
                pending.clear()
        elif text.strip():
            jobs.damaged(jobs.lines, "it is no accounting record of LSF")
        else:
            jobs.left_out(logs.BLANK)
    if not any_record:
        raise TraceError(f'{jobs.path}: it has no records "JOB_FINISH" of LSF, as the file lsb.acct has them')


def _take(jobs: logs.LogJobs, text: str, lines: int) -> None:
    """Add the job of a record, whose last line has been read, and count its lines."""
    kind = text.split('"', 2)[1]
    if kind != "JOB_FINISH":
        jobs.left_out(f"records {quoted(kind)}", lines)
        return
    line = jobs.lines + 1 - lines
    try:
        jobs.left_out(_job(jobs, line, next(csv.reader([text], delimiter=" ", skipinitialspace=True, strict=True))))
    except (ValueError, csv.Error) as problem:
        jobs.damaged(line, problem, lines)
    else:
        if lines > 1:
            jobs.left_out(logs.BROKEN, lines - 1)


def _job(jobs: logs.LogJobs, line: int, fields: list[str]) -> str:
    """Add the job of a record; return what its line counts as.  ``ValueError`` names a field that cannot be read."""

    def text(place: int, name: str) -> str:
        if place >= len(fields):
            raise ValueError(f"{len(fields)} fields; the record ends before {name}")
        return fields[place]

    def whole(place: int, name: str) -> int:
        """Return a number; 0 for -1, which stands for a number that is not known."""
        if not re.fullmatch(r"-?\d{1,15}", text(place, name), re.ASCII):
            raise ValueError(f"field {name}: {quoted(fields[place])} is not a whole number")
        return max(0, int(fields[place]))

    end, number, asked = whole(2, "event time"), whole(3, "jobId"), whole(6, "numProcessors")
    submit, start = whole(7, "submitTime"), whole(10, "startTime")
    place = 23 + whole(22, "numAskedHosts")  # after the names of the hosts asked for
    count = whole(place, "numExHosts")
    after = place + 1 + count
    if count > _MOST_HOSTS or after > len(fields):
        raise ValueError(f"{len(fields)} fields; the record ends before the last of its {count} hosts")
    slots: Counter[str] = Counter()  # by host: a name for each slot, or 4*name for four
    for host in fields[place + 1 : after]:
        several, _, name = host.partition("*")
        slots.update({name: int(several)} if re.fullmatch(r"\d{1,9}\*.*", host, re.ASCII | re.DOTALL) else {host: 1})
    status, job_name = whole(after, "jStatus"), text(after + 2, "jobName")
    after += 23  # after the command and 19 fields of resources used
    project, index = text(after + 1, "projectName"), whole(after + 6, "idx")
    exit_info = whole(after + 15, "exitInfo") if after + 15 < len(fields) else 0
    if not start:
        return logs.NEVER
    if end < start:
        raise ValueError(f"startTime: {start} is after the event time {end}")
    if not (run := checked_run(end - start)):
        return logs.NO_TIME
    _, cores = jobs.size_of((0, slots.total()), (0, asked))
    if index:
        jobs.note_array(number, "", job_name.rpartition("]")[2])
    jobs.add(
        line=line,
        number=number,
        submit=submit or start,
        start=start,
        run=run,
        nodes=len(slots),
        cores=cores,
        status=5 if status == 32 and exit_info in _KILLED else _STATUS.get(status, UNSET),
        requeued=exit_info in _REQUEUED,
        key=logs.task_key(number, index + 1 if index else 0),
        user=text(11, "userName"),
        account=project,
        queue=text(12, "queue"),
        job_name=job_name,
        node_list=" ".join(slots),
    )
    return JOBS
