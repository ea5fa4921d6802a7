"""Accounting records of PBS (OpenPBS, PBS Professional, TORQUE) as a workload.

A record is ``MM/DD/YYYY HH:MM:SS;TYPE;ID;key=value key=value ...``; an E record ends a job, an R record a run attempt after
which the job is queued again.  What ``grep`` writes in front is skipped.  docs/guide_own_log says
what becomes of the other types.  The records are described in the PBS Professional Reference Guide and in the TORQUE
Administrator's Guide.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

from clustermodel.errors import TraceError, quoted
from clustermodel.job import UNSET
from clustermodel.workload import log_workload as logs
from clustermodel.workload.log_file import log_lines
from clustermodel.workload.log_values import checked_run, duration, kib, whole
from clustermodel.workload.log_workload import LogJobs, LogOptions
from clustermodel.workload.table import JOBS, Workload

_RECORD: Final = re.compile(
    r"(?:[^;=\n]{1,4096}?[:-])?(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d)(?:\.\d+)?;([A-Za-z]);([^;]*);(.*)", re.ASCII | re.DOTALL
)
_ID: Final = re.compile(r"(\d{1,18})(\[\])?", re.ASCII)
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
    what the log has recorded (:data:`~clustermodel.workload.table.RECORDED_COLUMNS`).

    Arguments, result and errors are those of :func:`~clustermodel.workload.sacct.read_sacct`; an estimate is
    ``Resource_List.walltime``.
    """
    options = LogOptions(unit=unit, processors_from=processors_from, use_estimates=use_estimates, feedback=feedback)
    reader = _Reader(LogJobs(path, options))
    reader.read()
    return reader.jobs.workload("accounting records of PBS", lambda text: text.split(","))


def is_pbs(text: str) -> bool:
    """Return whether a line is an accounting record of PBS."""
    return _RECORD.fullmatch(text) is not None


class _Reader:
    """Reads the records of a log into :attr:`jobs`."""

    def __init__(self, jobs: LogJobs) -> None:
        self.jobs = jobs
        self._started: dict[str, tuple[int, str]] = {}  # when and how attempts began whose end has not been read, by job
        self._suspended_at: dict[str, int] = {}
        self._suspended: dict[str, int] = {}  # seconds for which a running job has been suspended

    def read(self) -> None:
        """Read the file."""
        jobs, any_record = self.jobs, False
        for text in log_lines(jobs.path):
            jobs.lines += 1
            match = _RECORD.fullmatch(text)
            if match is not None:
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
        if kind == "S":
            if len(self._started) < _MOST_RUNNING:
                self._started[job] = _local_s(stamp), text
        elif kind == "z":
            self._suspended_at[job] = _local_s(stamp)
        elif kind == "r":
            self._resume(job, stamp)
        elif kind in ("E", "R"):
            return self._attempt(stamp, job, text, requeued=kind == "R")
        return _TYPES.get(kind, f"records of unknown type {quoted(kind)}")

    def _resume(self, job: str, stamp: str) -> None:
        since = self._suspended_at.pop(job, None)
        if since is not None:
            self._suspended[job] = self._suspended.get(job, 0) + max(0, _local_s(stamp) - since)

    def _attempt(self, stamp: str, job: str, text: str, *, requeued: bool) -> str:
        """Add the run attempt that a record ends; return what its line counts as."""
        jobs, identity = self.jobs, _ID.match(job)
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
        start, end = _field(values, "start", _epoch), _field(values, "end", _epoch)
        used = _field(values, "resources_used.walltime", duration)
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
        submit = next((time for name in ("ctime", "qtime", "etime") if (time := _field(values, name, _epoch))), None)
        if submit is None:
            return logs.NO_SUBMISSION
        limit = _field(values, "Resource_List.walltime", duration)
        resources, project = resources_of(values), values.get("project", "")
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
            status=_status(values.get("Exit_status", "")),
            suspended=suspended,
            requeued=int(requeued),
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
        day = datetime(int(stamp[6:10]), int(stamp[:2]), int(stamp[3:5]), int(stamp[11:13]), int(stamp[14:16]), tzinfo=UTC)
        if int(stamp[17:]) > 60:
            raise ValueError
    except ValueError:
        raise ValueError(f"{quoted(stamp)} is not a time") from None
    return int(day.timestamp()) + int(stamp[17:])


def _values(text: str) -> dict[str, str]:
    """Return the values of a record by key; of a key that is given twice, the first."""
    pairs = (pair.partition("=") for pair in reversed(text.split()))
    return {key: value.strip('"') for key, equals, value in pairs if equals}


def _field(values: Mapping[str, str], name: str, read: Callable[[str], Any]) -> Any:
    """Return what a field says; an error names it."""
    try:
        return read(values.get(name, ""))
    except ValueError as problem:
        raise ValueError(f"field {name}: {problem}") from None


def _epoch(text: str) -> int | None:
    """Return a time in seconds since 1970; ``None`` if it is missing or 0."""
    if text and not re.fullmatch(r"\d{1,11}(\.\d*)?", text, re.ASCII):
        raise ValueError(f"{quoted(text)} is not a time in seconds since 1970")
    return int(float(text or 0)) or None


def _status(text: str) -> int:
    return _STATUS.get(int(text), 0) if re.fullmatch(r"-?\d{1,9}", text, re.ASCII) else UNSET


class Resources(NamedTuple):
    """What a job was given and what it asked for; 0 where the record does not say, memory in KiB."""

    hosts: list[str]
    """The different hosts that it was given."""
    allocated: tuple[int, int]
    """Nodes and cores."""
    requested: tuple[int, int]
    gpus: int
    memory: int


def resources_of(values: Mapping[str, str]) -> Resources:
    """Return the resources in the values of a record."""
    hosts, vnodes = values.get("exec_host", ""), values.get("exec_vnode", "").replace("(", "").replace(")", "")
    if hosts:
        parts = (part.partition("/")[0] for part in hosts.split("+") if part)
    else:
        parts = (re.sub(r"\[\d+\]$", "", chunk.partition(":")[0]) for chunk in vnodes.split("+") if chunk)
    names = list(dict.fromkeys(parts))

    def asked(name: str) -> str:
        return values.get(f"Resource_List.{name}", "")

    # The value of nodect is a number, but some sites write a whole specification there.
    spec, select = _specification(asked("nodes") or asked("nodect"), 1), _specification(asked("select"), 0)
    given = _amounts("+".join(chunk.partition(":")[2] for chunk in vnodes.split("+")), 0) if vnodes else _NOTHING
    cores, nodes = whole(asked("ncpus")), whole(asked("nodect").partition(":")[0])
    gpus = next((whole(asked(name)) for name in ("ngpus", "gpus", "gpu") if f"Resource_List.{name}" in values), 0)
    devices = values.get("exec_gpus", "")
    each_core = kib(asked("pmem"), "b") * max(cores or spec.cores, 1)
    return Resources(
        hosts=names,
        allocated=(len(names), given.cores or _slots(hosts)),
        requested=(
            nodes or spec.chunks or select.chunks or min(cores, 1),  # ncpus alone are cores of one node
            spec.cores if "Resource_List.nodes" in values else cores or select.cores or spec.cores,
        ),
        gpus=given.gpus or (devices.count("+") + 1 if devices else 0) or gpus or spec.gpus or select.gpus,
        memory=kib(asked("mem"), "b") or given.memory or select.memory or each_core,
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


class _Amounts(NamedTuple):
    """Sums over the chunks of a specification."""

    chunks: int
    cores: int
    gpus: int
    memory: int


def _amounts(text: str, default_cores: int) -> _Amounts:
    """Return the sums over chunks such as ``2:ppn=4:gpus=1+host7:ppn=8``, which begin with a number or a name.

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
    return _Amounts(chunks, cores, gpus, memory)


_NOTHING: Final = _Amounts(0, 0, 0, 0)
_specification: Final = lru_cache(maxsize=16_384)(_amounts)
