"""Accounting records of IBM Spectrum LSF, the file ``lsb.acct``, as a workload.

A record is a line of fields separated by blanks, texts in double quotes: ``"JOB_FINISH" "10.1" 1656313251 905984 ...``.  Its
type, version and time are followed by fields of that type.  They are described in the LSF Configuration Reference, lsb.acct.
"""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Final, NamedTuple

from clustermodel.errors import TraceError, quoted
from clustermodel.job import UNSET
from clustermodel.workload.log_file import log_lines
from clustermodel.workload.log_values import checked_run
from clustermodel.workload.log_workload import LogJob, LogJobs, LogOptions, requested_first, task_key, workload_of
from clustermodel.workload.table import JOBS, Workload

NO_LSF: Final = 'it has no records "JOB_FINISH" of LSF, as the file lsb.acct has them'

_RECORD: Final = re.compile(r'"([A-Z][A-Z0-9_]*)" "\d[\d.]*" \d{1,12}(?: .*)?', re.ASCII | re.DOTALL)
_FINISH: Final = "JOB_FINISH"
_MOST_LINES: Final = 1000  # of a record
_MOST_TEXT: Final = 2**20
_MOST_HOSTS: Final = 1_000_000

NEVER: Final = "never started"
NO_TIME: Final = "with run time zero"
BROKEN: Final = "line breaks inside fields"
_STATUS: Final = {64: 1, 32: 0}  # JOB_STAT_DONE, JOB_STAT_EXIT
_KILLED: Final = (8, 9, 14, 15)
"""Values of exitInfo: killed by the owner or an administrator."""
_REQUEUED: Final = (10, 11)
"""Values of exitInfo: killed and put back into the queue."""


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
    (:class:`~clustermodel.workload.table.ExtraColumns`).

    The arguments are those of :func:`~clustermodel.workload.sacct.read_sacct`.  By default a node of the workload is a slot
    (a core), which is what LSF allocates; with ``unit="nodes"`` it is a host.

    Returns:
        The workload; its ``machine_nodes`` is the largest number of units in use at the same time.

    Raises:
        TraceError: the file cannot be read, has no such records, or no usable job.
        SpecificationError: an option has a value that is not allowed.
    """
    options = LogOptions(unit=unit, use_estimates=use_estimates, feedback=feedback)
    reader = _Reader(LogJobs(os.fspath(path)), requested_first=requested_first(processors_from))
    lines = reader.read()
    workload = workload_of(
        reader.jobs, options, kind="accounting records of LSF", lines=lines, names=lambda text: text.split(" "), slots=True
    )
    return workload.made_by("trace", {"trace": Path(path), **asdict(options)})


def is_lsf(text: str) -> bool:
    """Return whether a line is a record of LSF."""
    return _RECORD.fullmatch(text) is not None


class _Hosts(NamedTuple):
    """Hosts of a job, and the position of the field after them."""

    slots: dict[str, int]
    after: int


class _Reader:
    """Reads the records of a log into :attr:`jobs`."""

    def __init__(self, jobs: LogJobs, *, requested_first: bool) -> None:
        self.jobs = jobs
        self._requested_first = requested_first

    def read(self) -> int:
        """Read the file; return its number of lines."""
        line, any_record = 0, False
        pending: list[str] = []
        """Lines of a record with a line break in a text."""
        for line, text in enumerate(log_lines(self.jobs.path), start=1):
            is_record = is_lsf(text)
            if pending and is_record:
                self._give_up(line, pending)
            if pending or is_record:
                any_record = True
                pending.append(text)
                whole = "\n".join(pending)
                if whole.count('"') % 2 and len(pending) < _MOST_LINES and len(whole) < _MOST_TEXT:
                    continue
                self._take(line + 1 - len(pending), whole, len(pending))
                pending.clear()
            elif text.strip():
                self.jobs.damaged(line, "it is no accounting record of LSF")
            else:
                self.jobs.left_out("blank lines")
        if pending:
            self._give_up(line + 1, pending)
        if not any_record:
            raise TraceError(f"{self.jobs.path}: {NO_LSF}")
        return line

    def _give_up(self, line: int, pending: list[str]) -> None:
        """Count the lines before ``line`` of a record that does not end."""
        self.jobs.damaged(line - len(pending), "a text without a closing quotation mark", lines=len(pending))
        pending.clear()

    def _take(self, line: int, text: str, lines: int) -> None:
        """Add the job of a record that begins in a line, and count its lines."""
        match = _RECORD.fullmatch(text)
        assert match is not None
        if match[1] != _FINISH:
            self.jobs.left_out(f"records {quoted(match[1])}", lines)
            return
        try:
            fields = next(csv.reader([text], delimiter=" ", skipinitialspace=True, strict=True))
            reason = self._job(line, fields)
        except (ValueError, csv.Error) as problem:
            self.jobs.damaged(line, problem, lines)
        else:
            self.jobs.left_out(reason)
            if lines > 1:
                self.jobs.left_out(BROKEN, lines - 1)

    def _job(self, line: int, fields: list[str]) -> str:
        """Add the job of a record; return what its line counts as.

        Raises:
            ValueError: a field is missing or has a value that cannot be read; the message names it.
        """
        end, number = _whole(fields, 2, "event time"), _whole(fields, 3, "jobId")
        asked = _whole(fields, 6, "numProcessors")
        submit, start = _whole(fields, 7, "submitTime"), _whole(fields, 10, "startTime")
        place = 23 + _whole(fields, 22, "numAskedHosts")  # after the names of the hosts asked for
        hosts = _hosts(fields, place)
        status, name = _whole(fields, hosts.after, "jStatus"), _text(fields, hosts.after + 2, "jobName")
        after = hosts.after + 23  # after the command and 19 fields of resources used
        project = _text(fields, after + 1, "projectName")
        index = _whole(fields, after + 6, "idx")
        exit_info = _whole(fields, after + 15, "exitInfo") if after + 15 < len(fields) else 0
        if not start:
            return NEVER
        if end < start:
            raise ValueError(f"startTime: {start} is after the event time {end}")
        run = checked_run(end - start)
        if not run:
            return NO_TIME
        slots, jobs = sum(hosts.slots.values()), self.jobs
        sizes = ((0, asked), (0, slots)) if self._requested_first else ((0, slots), (0, asked))
        _, cores = jobs.size_of(*sizes, requested=self._requested_first)
        if index:
            jobs.note_array(number, "", name.rpartition("]")[2])
        jobs.add(
            LogJob(
                line=line,
                key=jobs.keys.number(task_key(number, index + 1 if index else 0)),
                number=number,
                submit=submit or start,
                start=start,
                run=run,
                nodes=len(hosts.slots),
                cores=cores,
                user=jobs.users.number(_text(fields, 11, "userName")),
                account=jobs.accounts.number(project),
                queue=jobs.queues.number(_text(fields, 12, "queue")),
                job_name=jobs.job_names.number(name),
                status=5 if status == 32 and exit_info in _KILLED else _STATUS.get(status, UNSET),
                requeued=int(exit_info in _REQUEUED),
                node_list=jobs.node_lists.number(" ".join(hosts.slots)),
            )
        )
        return JOBS


def _hosts(fields: list[str], place: int) -> _Hosts:
    """Return the hosts whose number stands at a position: a name for each slot, or ``4*name`` for four."""
    count = _whole(fields, place, "numExHosts")
    if count > _MOST_HOSTS or place + count >= len(fields):
        raise ValueError(f"{len(fields)} fields; the record ends before the last of its {count} hosts")
    slots: Counter[str] = Counter()
    for text in fields[place + 1 : place + 1 + count]:
        several, star, name = text.partition("*")
        if star and several.isascii() and several.isdecimal() and len(several) <= 9:
            slots[name] += int(several)
        else:
            slots[text] += 1
    return _Hosts(dict(slots), place + 1 + count)


def _text(fields: list[str], place: int, name: str) -> str:
    if place >= len(fields):
        raise ValueError(f"{len(fields)} fields; the record ends before {name}")
    return fields[place]


def _whole(fields: list[str], place: int, name: str) -> int:
    """Return a number; 0 for -1, which stands for a number that is not known."""
    text = _text(fields, place, name)
    if not re.fullmatch(r"-?\d{1,15}", text, re.ASCII):
        raise ValueError(f"field {name}: {quoted(text)} is not a whole number")
    return max(0, int(text))
