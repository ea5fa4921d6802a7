"""Accounting records of PBS (OpenPBS, PBS Professional, TORQUE) as a workload.

A record is ``MM/DD/YYYY HH:MM:SS;TYPE;ID;key=value key=value ...``; an E record ends a job, an R record a run attempt after
which the job is queued again.  What ``grep`` writes in front is skipped.  docs/guide_own_log says
what becomes of the other types.  The records are described in the PBS Professional Reference Guide and in the TORQUE
Administrator's Guide.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from clustermodel.errors import TraceError, quoted
from clustermodel.job import UNSET
from clustermodel.workload.log_file import log_lines
from clustermodel.workload.log_values import checked_run, duration, kib, local_stamp, whole
from clustermodel.workload.log_workload import LogJob, LogJobs, LogOptions, requested_first, workload_of
from clustermodel.workload.table import JOBS, Workload

NO_PBS: Final = (
    "it has no accounting records of PBS, as PBS_HOME/server_priv/accounting has them, a file for each day: "
    "MM/DD/YYYY HH:MM:SS;E;ID;key=value ..."
)

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

ARRAY: Final = "records of whole job arrays"
NEVER: Final = "never started"
NO_TIME: Final = "with run time zero"
NO_SUBMISSION: Final = "without a submission time"
NO_LENGTH: Final = "without a run time"

_KILLED: Final = 256 + 15  # by SIGTERM, as qdel does
_MOST_SUSPICIOUS_S: Final = 60
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
    what the log has recorded (:class:`~clustermodel.workload.table.ExtraColumns`).

    The arguments are those of :func:`~clustermodel.workload.sacct.read_sacct`; an estimate is ``Resource_List.walltime``.

    Returns:
        The workload; its ``machine_nodes`` is the largest number of units in use at the same time.

    Raises:
        TraceError: the file cannot be read, has no such records, or no usable job.
        SpecificationError: an option has a value that is not allowed.
    """
    options = LogOptions(unit=unit, use_estimates=use_estimates, feedback=feedback)
    reader = _Reader(LogJobs(os.fspath(path)), requested_first=requested_first(processors_from))
    lines = reader.read()
    kind = "accounting records of PBS"
    workload = workload_of(reader.jobs, options, kind=kind, lines=lines, names=lambda text: text.split(","))
    return workload.made_by("trace", {"trace": Path(path), **asdict(options)})


def is_pbs(text: str) -> bool:
    """Return whether a line is an accounting record of PBS."""
    return _RECORD.fullmatch(text) is not None


class Resources(NamedTuple):
    """What a job was given and what it asked for; 0 where the record does not say, memory in KiB."""

    hosts: list[str]
    """The different hosts that it was given."""
    nodes: int
    cores: int
    asked_nodes: int
    asked_cores: int
    gpus: int
    memory: int


class _Amounts(NamedTuple):
    """Sums over the chunks of a specification."""

    chunks: int
    cores: int
    gpus: int
    memory: int


class _Started(NamedTuple):
    """An S record: when it was written, in the server's time, and its text."""

    stamp: int
    text: str


class _Reader:
    """Reads the records of a log into :attr:`jobs`."""

    def __init__(self, jobs: LogJobs, *, requested_first: bool) -> None:
        self.jobs = jobs
        self._requested_first = requested_first
        self._started: dict[str, _Started] = {}
        """Attempts whose end has not been read, by job."""
        self._suspended_at: dict[str, int] = {}
        self._suspended: dict[str, int] = {}
        """Seconds for which a running job has been suspended."""

    def read(self) -> int:
        """Read the file; return its number of lines."""
        line, any_record = 0, False
        for line, text in enumerate(log_lines(self.jobs.path), start=1):
            match = _RECORD.fullmatch(text)
            if match is None:
                if text.strip():
                    self.jobs.damaged(line, "it is no accounting record of PBS")
                else:
                    self.jobs.left_out("blank lines")
                continue
            any_record = True
            try:
                reason = self._record(line, match[1], match[2], match[3], match[4])
            except ValueError as problem:
                self.jobs.damaged(line, problem)
            else:
                self.jobs.left_out(reason)
        if not any_record:
            raise TraceError(f"{self.jobs.path}: {NO_PBS}")
        return line

    def _record(self, line: int, stamp: str, kind: str, job: str, text: str) -> str:
        """Take up a record; return what its line counts as.

        Raises:
            ValueError: a field has a value that cannot be read; the message names it.
        """
        if kind == "S":
            if len(self._started) < _MOST_RUNNING:
                self._started[job] = _Started(local_stamp(stamp), text)
        elif kind == "z":
            self._suspended_at[job] = local_stamp(stamp)
        elif kind == "r":
            self._resume(job, stamp)
        elif kind in ("E", "R"):
            return self._attempt(line, stamp, job, text, requeued=kind == "R")
        return _TYPES.get(kind, f"records of unknown type {quoted(kind)}")

    def _resume(self, job: str, stamp: str) -> None:
        since = self._suspended_at.pop(job, None)
        if since is not None:
            self._suspended[job] = self._suspended.get(job, 0) + max(0, local_stamp(stamp) - since)

    def _attempt(self, line: int, stamp: str, job: str, text: str, *, requeued: bool) -> str:
        """Add the run attempt that a record ends; return what its line counts as."""
        identity = _ID.match(job)
        if identity is None:
            raise ValueError(f"{quoted(job)} is not a job identifier")
        if identity[2]:
            return ARRAY
        self._resume(job, stamp)
        suspended = self._suspended.pop(job, 0)
        started = self._started.pop(job, None)
        values = _values(text)
        if requeued and started is not None:  # an R record may have few fields of its own
            values = {**_values(started.text), **values}
        start, end = _epoch(values, "start"), _epoch(values, "end")
        used = _duration(values, "resources_used.walltime")
        if start is None:
            return _TYPES["R"] if requeued else NEVER
        if end is None and started is not None:
            end = start + max(0, local_stamp(stamp) - started.stamp)
        elif end is None and used is not None:
            end = start + round(used)
        if end is None or end < start:
            return NO_LENGTH
        if used is not None and used > 0 and abs(end - start - suspended - used) > _MOST_SUSPICIOUS_S:
            self.jobs.repaired["resources_used.walltime is not end - start - suspended time, which is used"] += 1
        run = checked_run(end - start - suspended)
        if run <= 0:
            return NO_TIME
        submit = next((time for name in ("ctime", "qtime", "etime") if (time := _epoch(values, name)) is not None), None)
        if submit is None:
            return NO_SUBMISSION
        limit = _duration(values, "Resource_List.walltime")
        resources = resources_of(values)
        allocated, asked = (resources.nodes, resources.cores), (resources.asked_nodes, resources.asked_cores)
        preferred, other = (asked, allocated) if self._requested_first else (allocated, asked)
        nodes, cores = self.jobs.size_of(preferred, other, requested=self._requested_first)
        jobs = self.jobs
        jobs.add(
            LogJob(
                line=line,
                key=jobs.keys.number(job),
                number=int(identity[1]),
                submit=submit,
                start=start,
                run=run,
                suspended=suspended,
                limit=UNSET if limit is None else round(limit),
                nodes=nodes,
                cores=cores,
                gpus=resources.gpus,
                memory=resources.memory or UNSET,
                user=jobs.users.number(values.get("user", "")),
                group=jobs.groups.number(values.get("group", "")),
                account=jobs.accounts.number(values.get("account", "") or _project(values)),
                qos=jobs.qos.number(values.get("qos", "")),
                queue=jobs.queues.number(values.get("queue", "")),
                job_name=jobs.job_names.number(values.get("jobname", "")),
                status=_status(values.get("Exit_status", "")),
                requeued=int(requeued),
                restarts=max(0, whole(values.get("run_count", "")) - 1),
                node_list=jobs.node_lists.number(",".join(resources.hosts)),
            )
        )
        return JOBS


def _values(text: str) -> dict[str, str]:
    """Return the values of a record by key; of a key that is given twice, the first."""
    values: dict[str, str] = {}
    for pair in text.split():
        key, equals, value = pair.partition("=")
        if equals and key not in values:
            values[key] = value.strip('"')
    return values


def _epoch(values: dict[str, str], name: str) -> int | None:
    """Return a time in seconds since 1970; ``None`` if it is missing or 0.

    Raises:
        ValueError: it is not such a time.
    """
    text = values.get(name, "")
    if not text:
        return None
    if not re.fullmatch(r"\d{1,11}(\.\d*)?", text, re.ASCII):
        raise ValueError(f"field {name}: {quoted(text)} is not a time in seconds since 1970")
    return int(float(text)) or None


def _duration(values: dict[str, str], name: str) -> float | None:
    """Return a duration in seconds; ``None`` if it is missing.

    Raises:
        ValueError: it is no duration.
    """
    try:
        return duration(values.get(name, ""))
    except ValueError as problem:
        raise ValueError(f"field {name}: {problem}") from None


def _status(text: str) -> int:
    """Return the SWF status of an exit status: completed, cancelled, or failed."""
    if not re.fullmatch(r"-?\d{1,9}", text, re.ASCII):
        return UNSET
    return {0: 1, _KILLED: 5}.get(int(text), 0)


def _project(values: dict[str, str]) -> str:
    project = values.get("project", "")
    return "" if project == "_pbs_project_default" else project


def resources_of(values: Mapping[str, str]) -> Resources:
    """Return the resources in the values of a record."""
    hosts = _hosts(values)
    vnodes = _vnodes(values.get("exec_vnode", ""))
    # The value of nodect is a number, but some sites write a whole specification there.
    spec = _chunks(values.get("Resource_List.nodes", "") or values.get("Resource_List.nodect", ""), 1)
    select = _chunks(values.get("Resource_List.select", ""))
    cores = _whole(values, "Resource_List.ncpus")
    nodect = whole(values.get("Resource_List.nodect", "").partition(":")[0])
    return Resources(
        hosts=hosts,
        nodes=len(hosts),
        cores=vnodes.cores or _slots(values.get("exec_host", "")),
        asked_nodes=nodect or spec.chunks or select.chunks or min(cores, 1),  # ncpus alone are cores of one node
        asked_cores=spec.cores if "Resource_List.nodes" in values else cores or select.cores or spec.cores,
        gpus=_gpus(values, vnodes, spec, select),
        memory=_memory(values, vnodes, select, cores or spec.cores),
    )


def _hosts(values: Mapping[str, str]) -> list[str]:
    """Return the different hosts of a job, from ``exec_host`` or else ``exec_vnode``."""
    hosts = values.get("exec_host", "")
    if hosts:
        return list(dict.fromkeys(part.partition("/")[0] for part in hosts.split("+") if part))
    chunks = re.sub(r"[()]", "", values.get("exec_vnode", "")).split("+")
    return list(dict.fromkeys(re.sub(r"\[\d+\]$", "", chunk.partition(":")[0]) for chunk in chunks if chunk))


def _slots(hosts: str) -> int:
    """Return the slots of ``a/0+a/1``, ``a/0*13+b/0*13``, ``a/0-3+b/0,2,4-7``; of PBS Professional ``a/0*0`` is none."""
    total = 0
    for part in hosts.split("+"):
        _, slash, slots = part.partition("/")
        if not slash:
            total += bool(part)
            continue
        _, star, count = slots.partition("*")
        if star:
            total += whole(count)
            continue
        for part_slots in slots.split(","):
            low, dash, high = part_slots.partition("-")
            total += max(0, whole(high) - whole(low)) + 1 if dash else 1
    return total


def _vnodes(text: str) -> _Amounts:
    """Return the sums over the chunks of ``(a[0]:ncpus=24:mem=8gb:ngpus=2+a[1]:ncpus=24)``."""
    return _Amounts(
        chunks=text.count("+") + 1 if text else 0,
        cores=sum(map(whole, re.findall(r"\bncpus=(\d+)", text))),
        gpus=sum(map(whole, re.findall(r"\bngpus=(\d+)", text))) if "gpus" in text else 0,
        memory=sum(kib(amount, "b") or 0 for amount in re.findall(r"\bmem=(\w+)", text)),
    )


@lru_cache(maxsize=16_384)
def _chunks(text: str, default_cores: int = 0) -> _Amounts:
    """Return the sums over chunks such as ``2:ppn=4:gpus=1+host7:ppn=8``, which begin with a number or a name.

    Args:
        text: the specification.
        default_cores: cores of a chunk that names none.
    """
    chunks = cores = gpus = memory = 0
    for chunk in text.partition("#")[0].split("+"):
        if not chunk:
            continue
        first, *rest = chunk.split(":")
        times = whole(first) if first.isdecimal() else 1
        given = dict(part.split("=", 1) for part in (first, *rest) if "=" in part)
        chunks += times
        cores += times * (whole(given.get("ppn", "")) or whole(given.get("ncpus", "")) or default_cores)
        gpus += times * next((whole(given[name]) for name in ("ngpus", "gpus", "gpu") if name in given), 0)
        memory += times * (kib(given.get("mem", ""), "b") or 0)
    return _Amounts(chunks, cores, gpus, memory)


def _gpus(values: Mapping[str, str], vnodes: _Amounts, spec: _Amounts, select: _Amounts) -> int:
    listed = next(
        (_whole(values, f"Resource_List.{name}") for name in ("ngpus", "gpus", "gpu") if f"Resource_List.{name}" in values), 0
    )
    devices = values.get("exec_gpus", "")
    return vnodes.gpus or (devices.count("+") + 1 if devices else 0) or listed or spec.gpus or select.gpus


def _memory(values: Mapping[str, str], vnodes: _Amounts, select: _Amounts, cores: int) -> int:
    each = kib(values.get("Resource_List.pmem", ""), "b") or 0
    return kib(values.get("Resource_List.mem", ""), "b") or vnodes.memory or select.memory or each * max(cores, 1)


def _whole(values: Mapping[str, str], name: str) -> int:
    return whole(values.get(name, ""))
