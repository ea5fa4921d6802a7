"""Accounting records of Grid Engine (SGE, Son of Grid Engine, Univa, Altair), the file ``accounting``, as a workload.

A record is a line of fields separated by colons: queue, host, group, owner, job name, job number, account and so on, as the
manual page accounting(5) has them.  Names of jobs and resource requests may have colons of their own; the numbers between
them tell where they end.
"""

import os
import re
from functools import lru_cache
from operator import methodcaller
from typing import Final

from clustermodel.errors import TraceError, quoted
from clustermodel.logs import log_jobs as logs
from clustermodel.logs.values import checked_run, duration
from clustermodel.text.files import text_lines
from clustermodel.workload.job import UNSET
from clustermodel.workload.provenance import JOBS
from clustermodel.workload.table import Workload

_NUMBER: Final = r"-?\d[\d.]*(?:[eE][-+]?\d+)?"
_RECORD: Final = re.compile(
    r"(?P<queue>[^:\s][^:]*):(?P<host>[^:]*):(?P<group>[^:]*):(?P<user>[^:]*):(?P<name>.*?):(?P<number>\d{1,15}):"
    r"(?P<account>[^:]*):-?\d{1,9}:(?P<submit>\d{1,13}):(?P<start>\d{1,13}):(?P<end>\d{1,13}):(?P<failed>\d{1,4}):"
    rf"(?P<status>-?\d{{1,9}}):(?P<wallclock>{_NUMBER})(?::{_NUMBER}){{17}}:(?P<project>[^:]*):[^:]*:(?P<environment>[^:]*):"
    rf"(?P<slots>\d{{1,9}}):(?P<task>\d{{1,9}})(?::{_NUMBER}){{3}}:(?P<requests>.*?)"
    rf"(?::\d+\.\d*:(?P<part>[^:]*):{_NUMBER}(?::.*)?)?",
    re.ASCII | re.DOTALL,
)
"""Requests are followed by waits for input and output, the task of a parallel environment, and the largest virtual memory."""
_LIMIT: Final = re.compile(r"(?:^|[\s,])h_rt=([^,\s]*)", re.ASCII)
_NONE: Final = ("NONE", "none", "UNKNOWN")
_AGAIN: Final = (24, 25)
"""Values of ``failed``: migrating and rescheduling, after which the job is queued again."""
_MILLISECONDS: Final = 10**11  # times above are those of Univa Grid Engine since 8.2


def read_sge(
    path: str | os.PathLike[str],
    *,
    unit: str = "auto",
    processors_from: str = "allocated",
    use_estimates: bool = True,
    feedback: bool = False,
) -> Workload:
    """Read accounting records of Grid Engine (``accounting``) into memory.

    Each record of a job, or of a task of a job array, that started is a job; it runs from ``start_time`` to ``end_time``.  The
    estimate is the hard limit ``h_rt`` of its requests, else the run time.  Records of the tasks of a parallel environment
    (``pe_taskid``) are parts of a job, and are left out.  Every line is counted in ``provenance.report``.  The columns
    ``wait``, ``cores``, ``queue`` and others keep what the log has recorded (``RECORDED_COLUMNS``).

    Arguments, result and errors are those of :func:`~clustermodel.logs.sacct.read_sacct`.  By default a node of the workload is
    a slot, which is what Grid Engine allocates.  With ``unit="nodes"`` it is a host; of jobs in a parallel environment
    the records name only the first one, so that they are left out.
    """
    options = {"unit": unit, "processors_from": processors_from, "use_estimates": use_estimates, "feedback": feedback}
    jobs = logs.LogJobs(path, **options)
    _read(jobs)
    return jobs.workload("accounting records of Grid Engine", methodcaller("split", " "), slots=True)


def is_sge(text: str) -> bool:
    """Return whether a line is an accounting record of Grid Engine."""
    return _RECORD.fullmatch(text) is not None


def _read(jobs: logs.LogJobs) -> None:
    any_record = False
    for text in text_lines(jobs.path):
        jobs.lines += 1
        if match := _RECORD.fullmatch(text):
            any_record = True
            try:
                jobs.left_out(_job(jobs, match))
            except ValueError as problem:
                jobs.damaged(jobs.lines, problem)
        elif text.startswith("#"):
            jobs.left_out("comment lines")
        elif len(text.strip()) <= 1:  # which qacct ignores too
            jobs.left_out(logs.BLANK)
        else:
            jobs.damaged(jobs.lines, "it is no accounting record of Grid Engine")
    if not any_record:
        raise TraceError(
            f"{jobs.path}: it has no accounting records of Grid Engine, as SGE_ROOT/SGE_CELL/common/accounting has them"
        )


def _job(jobs: logs.LogJobs, record: re.Match[str]) -> str:
    """Add the job of a record; return what its line counts as.  ``ValueError`` names a field that cannot be read."""
    number, task, slots, failed = (int(record[name]) for name in ("number", "task", "slots", "failed"))
    submit, start, end = (_seconds(record[name]) for name in ("submit", "start", "end"))
    if record["part"] not in (None, "", *_NONE):
        return "steps"
    if not start:
        return logs.NEVER
    wallclock = float(record["wallclock"])
    if not end:
        end = start + round(wallclock)
    if end < start:
        return logs.BACKWARDS
    if not (run := checked_run(end - start)):
        return logs.NO_TIME
    if not submit:
        return logs.NO_SUBMISSION
    if wallclock and abs(run - wallclock) > logs.MOST_SUSPICIOUS_S:
        jobs.repaired["ru_wallclock is not end_time - start_time, which is used"] += 1
    one_host = record["environment"] in _NONE
    jobs.add(
        line=jobs.lines,
        number=number,
        submit=submit,
        start=start,
        run=run,
        limit=_limit(record["requests"]),
        nodes=1 if one_host else 0,
        cores=slots,
        status=int(failed == 0 and record["status"] == "0"),
        requeued=failed in _AGAIN,
        key=logs.task_key(number, task),
        user=record["user"],
        group=_given(record["group"]),
        account=_given(record["project"]) or ("" if record["account"] == "sge" else _given(record["account"])),
        queue=_given(record["queue"]),
        job_name=record["name"],
        node_list=_given(record["host"]),
    )
    return JOBS


def _seconds(text: str) -> int:
    time = int(text)
    return time // 1000 if time > _MILLISECONDS else time


def _given(text: str) -> str:
    return "" if text in _NONE else text


@lru_cache(maxsize=16_384)
def _limit(requests: str) -> int:
    """Return the hard limit of the run time in the requests of a job, seconds; ``UNSET`` if there is none."""
    match = _LIMIT.search(requests)
    if match is None or match[1].upper() == "INFINITY":
        return UNSET
    try:
        limit = duration(match[1])
    except ValueError:
        raise ValueError(f"field category: h_rt={quoted(match[1])} is not a duration") from None
    return UNSET if limit is None else round(limit)
