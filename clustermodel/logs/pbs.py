"""Accounting records of PBS (OpenPBS, PBS Professional, TORQUE) as a workload.

A record is ``MM/DD/YYYY HH:MM:SS;TYPE;ID;key=value key=value ...``; an E record ends a job, an R record a run attempt after
which the job is queued again.  What ``grep`` writes in front is skipped.  docs/guide_own_log says
what becomes of the other types.  The records are described in the PBS Professional Reference Guide and in the TORQUE
Administrator's Guide.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from operator import methodcaller
from typing import Any, Final, NamedTuple

from clustermodel.errors import TraceError, quoted
from clustermodel.logs import log_jobs as logs
from clustermodel.logs.values import checked_run, duration, kib, whole
from clustermodel.text.files import text_lines
from clustermodel.workload.job import UNSET
from clustermodel.workload.provenance import JOBS
from clustermodel.workload.table import Workload

_RECORD: Final = re.compile(
    r"(?:[^;=\n]{1,4096}?[:-])?(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d)(?:\.\d+)?;([A-Za-z]);([^;]*);(.*)", re.ASCII | re.DOTALL
)
_TYPES: Final = {
    "Q": "queue records (Q)", "S": "start records (S)", "D": "deletion records (D)", "A": "abort records (A)",
    "R": "rerun records (R)", "C": "checkpoint records (C)", "T": "restart records (T)", "L": "license records (L)",
    "M": "move records (M)", "P": "provisioning records (P)", "p": "provisioning records (p)", "a": "change records (a)",
    "z": "suspension records (z)", "r": "resumption records (r)", "s": "start records (s)", "e": "end records of phases (e)",
    "c": "end records of phases (c)", "u": "release records (u)",
    **{letter: f"reservation records ({letter})" for letter in "BFKkUY"},
}  # fmt: skip
"""Records that are no run attempts, by their letter."""
_STATUS: Final = {0: 1, 256 + 15: 5}  # SWF status of an exit status: 5 of a job killed by SIGTERM, as qdel does
_MOST_RUNNING: Final = 1_000_000


def read_pbs(
    path: str | os.PathLike[str],
    *,
    unit: str = "auto",
    processors_from: str = "allocated",
    use_estimates: bool = True,
    feedback: bool = False,
) -> Workload:
    """Read accounting records of PBS or TORQUE into memory.

    Each run attempt is a job.  It runs from ``start`` to ``end``, less the time for which it was suspended (records z and r).
    Every line is counted in ``provenance.report``.  The columns ``wait``, ``requeues``, ``cores``, ``gpus`` and others keep
    what the log has recorded (``RECORDED_COLUMNS``).

    Arguments, result and errors are those of :func:`~clustermodel.logs.sacct.read_sacct`; an estimate is
    ``Resource_List.walltime``.
    """
    options = {"unit": unit, "processors_from": processors_from, "use_estimates": use_estimates, "feedback": feedback}
    jobs = logs.LogJobs(path, **options)
    _Reader(jobs).read()
    return jobs.workload("accounting records of PBS", methodcaller("split", ","))


def is_pbs(text: str) -> bool:
    """Return whether a line is an accounting record of PBS."""
    return _RECORD.fullmatch(text) is not None


class _Reader:
    """Reads the records of a log into ``jobs``."""

    def __init__(self, jobs: logs.LogJobs) -> None:
        self._jobs = jobs
        self._started: dict[str, tuple[int, str]] = {}  # when and how attempts began whose end has not been read, by job
        self._suspended_at: dict[str, int] = {}
        self._suspended: Counter[str] = Counter()  # seconds for which a running job has been suspended

    def read(self) -> None:
        """Read the file."""
        jobs, any_record = self._jobs, False
        for text in text_lines(jobs.path):
            jobs.lines += 1
            if match := _RECORD.fullmatch(text):
                any_record = True
                try:
                    jobs.left_out(self._record(*match.groups()))
                except ValueError as problem:
                    jobs.damaged(jobs.lines, problem)
            elif text.strip():
                jobs.damaged(jobs.lines, "it is no accounting record of PBS")
            else:
                jobs.left_out(logs.BLANK)
        if not any_record:
            raise TraceError(
                f"{jobs.path}: it has no accounting records of PBS, as PBS_HOME/server_priv/accounting has them, a file for "
                "each day: MM/DD/YYYY HH:MM:SS;E;ID;key=value ..."
            )

    def _record(self, stamp: str, kind: str, job: str, text: str) -> str:
        """Take up a record; return what its line counts as.  ``ValueError`` names a field that cannot be read."""
        if kind in ("E", "R"):
            return self._attempt(stamp, job, text, requeued=kind == "R")
        if kind == "S" and len(self._started) < _MOST_RUNNING:
            self._started[job] = _local_s(stamp), text
        elif kind == "z":
            self._suspended_at[job] = _local_s(stamp)
        elif kind == "r":
            self._resume(job, stamp)
        return _TYPES.get(kind, f"records of unknown type {quoted(kind)}")

    def _resume(self, job: str, stamp: str) -> None:
        if (since := self._suspended_at.pop(job, None)) is not None:
            self._suspended[job] += max(0, _local_s(stamp) - since)

    def _attempt(self, stamp: str, job: str, text: str, *, requeued: bool) -> str:
        """Add the run attempt that a record ends; return what its line counts as."""
        jobs, identity = self._jobs, re.match(r"(\d{1,18})(\[\])?", job, re.ASCII)
        if identity is None:
            raise ValueError(f"{quoted(job)} is not a job identifier")
        if identity[2]:
            return "records of whole job arrays"
        self._resume(job, stamp)
        suspended = self._suspended.pop(job, 0)
        started, start_text = self._started.pop(job, (None, ""))
        values = _values(text)
        if requeued:  # an R record may have few fields of its own
            values = {**_values(start_text), **values}

        def field(name: str, read: Callable[[str], Any] = _epoch) -> Any:
            try:
                return read(values.get(name, ""))
            except ValueError as problem:
                raise ValueError(f"field {name}: {problem}") from None

        start, end, used = field("start"), field("end"), field("resources_used.walltime", duration)
        if start is None:
            return _TYPES["R"] if requeued else logs.NEVER
        if end is None and started is not None:
            end = start + max(0, _local_s(stamp) - started)
        elif end is None and used is not None:
            end = start + round(used)
        if end is None or end < start:
            return logs.NO_LENGTH
        if used and abs(end - start - suspended - used) > logs.MOST_SUSPICIOUS_S:
            jobs.repaired["resources_used.walltime is not end - start - suspended time, which is used"] += 1
        run = checked_run(end - start - suspended)
        if run <= 0:
            return logs.NO_TIME
        submit = field("ctime") or field("qtime") or field("etime")
        if submit is None:
            return logs.NO_SUBMISSION
        limit = field("Resource_List.walltime", duration)
        resources, project, status = resources_of(values), values.get("project", ""), values.get("Exit_status", "")
        nodes, cores = jobs.size_of(resources.allocated, resources.requested)
        jobs.add(
            line=jobs.lines,
            number=int(identity[1]),
            submit=submit,
            start=start,
            run=run,
            limit=UNSET if limit is None else round(limit),
            nodes=nodes,
            cores=cores,
            gpus=resources.gpus,
            memory=resources.memory or UNSET,
            status=_STATUS.get(int(status), 0) if re.fullmatch(r"-?\d{1,9}", status, re.ASCII) else UNSET,
            eligible=field("etime") or UNSET,
            suspended=suspended,
            requeued=requeued,
            restarts=max(0, whole(values.get("run_count", "")) - 1),
            key=job,
            account=values.get("account", "") or (project if project != "_pbs_project_default" else ""),
            job_name=values.get("jobname", ""),
            node_list=",".join(resources.hosts),
            **{name: values.get(name, "") for name in ("user", "group", "qos", "queue")},
        )
        return JOBS


def _local_s(stamp: str) -> int:
    """Return the stamp of a record, ``MM/DD/YYYY HH:MM:SS`` in the server's time, as seconds."""
    try:
        minute = datetime.fromisoformat(f"{stamp[6:10]}-{stamp[:2]}-{stamp[3:5]}T{stamp[11:16]}+00:00")
        if int(stamp[17:]) > 60:
            raise ValueError
    except ValueError:
        raise ValueError(f"{quoted(stamp)} is not a time") from None
    return int(minute.timestamp()) + int(stamp[17:])


def _values(text: str) -> dict[str, str]:
    """Return the values of a record by key; of a key that is given twice, the first."""
    pairs = (pair.partition("=") for pair in reversed(text.split()))
    return {key: value.strip('"') for key, equals, value in pairs if equals}


def _epoch(text: str) -> int | None:
    """Return a time in seconds since 1970; ``None`` if it is missing or 0."""
    if text and not re.fullmatch(r"\d{1,11}(\.\d*)?", text, re.ASCII):
        raise ValueError(f"{quoted(text)} is not a time in seconds since 1970")
    return int(float(text or 0)) or None


class Resources(NamedTuple):
    """What a job was given and what it asked for; 0 where the record does not say."""

    hosts: list[str]  # the different hosts that it was given
    allocated: tuple[int, int]  # nodes and cores
    requested: tuple[int, int]
    gpus: int
    memory: int  # KiB


def resources_of(values: Mapping[str, str]) -> Resources:
    """Return the resources in the values of a record."""
    hosts, vnodes = values.get("exec_host", ""), re.sub("[()]", "", values.get("exec_vnode", ""))
    if hosts:
        parts = [part.partition("/")[0] for part in hosts.split("+") if part]
    else:
        parts = [re.sub(r"\[\d+\]$", "", chunk.partition(":")[0]) for chunk in vnodes.split("+") if chunk]

    def asked(name: str) -> str:
        return values.get(f"Resource_List.{name}", "")

    # The value of nodect is a number, but some sites write a whole specification there.
    chunks, spec_cores, spec_gpus, _ = _specification(asked("nodes") or asked("nodect"), 1)
    select_chunks, select_cores, select_gpus, select_memory = _specification(asked("select"), 0)
    given = "+".join(chunk.partition(":")[2] for chunk in vnodes.split("+"))
    _, given_cores, given_gpus, given_memory = _amounts(given, 0)
    cores, nodes = whole(asked("ncpus")), whole(asked("nodect").partition(":")[0])
    gpus = next((whole(asked(name)) for name in ("ngpus", "gpus", "gpu") if f"Resource_List.{name}" in values), 0)
    devices = values.get("exec_gpus", "")
    each_core = kib(asked("pmem"), "b") * max(cores or spec_cores, 1)
    return Resources(
        hosts=(names := list(dict.fromkeys(parts))),
        allocated=(len(names), given_cores or _slots(hosts)),
        requested=(
            nodes or chunks or select_chunks or min(cores, 1),  # ncpus alone are cores of one node
            spec_cores if "Resource_List.nodes" in values else cores or select_cores or spec_cores,
        ),
        gpus=given_gpus or (devices.count("+") + 1 if devices else 0) or gpus or spec_gpus or select_gpus,
        memory=kib(asked("mem"), "b") or given_memory or select_memory or each_core,
    )


def _slots(hosts: str) -> int:
    """Return the slots of ``a/0+a/1``, ``a/0*13+b/0*13``, ``a/0-3+b/0,2,4-7``; of PBS Professional ``a/0*0`` is none."""
    total = 0
    for part in filter(None, hosts.split("+")):
        slots, star, count = part.partition("/")[2].partition("*")
        for low, dash, high in [slot.partition("-") for slot in slots.split(",")] if not star else ():
            total += max(0, whole(high) - whole(low)) + 1 if dash else 1
        total += whole(count)
    return total


def _amounts(text: str, default_cores: int) -> tuple[int, int, int, int]:
    """Return chunks, cores, GPUs and KiB of ``2:ppn=4:gpus=1+host7:ppn=8``, of chunks that begin with a number or a name.

    A chunk that names no cores has ``default_cores``.
    """
    chunks = cores = gpus = memory = 0
    for chunk in filter(None, text.partition("#")[0].split("+")):
        first = chunk.partition(":")[0]
        times = whole(first) if first.isdecimal() else 1
        given = dict(part.split("=", 1) for part in chunk.split(":") if "=" in part)
        chunks += times
        cores += times * (whole(given.get("ppn", "")) or whole(given.get("ncpus", "")) or default_cores)
        gpus += times * next((whole(given[name]) for name in ("ngpus", "gpus", "gpu") if name in given), 0)
        memory += times * kib(given.get("mem", ""), "b")
    return chunks, cores, gpus, memory


_specification: Final = lru_cache(maxsize=16_384)(_amounts)
