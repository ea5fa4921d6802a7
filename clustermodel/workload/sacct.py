"""Slurm's accounting: the output of ``sacct --parsable2`` as a workload.

Slurm writes one record for each allocation, and further ones for its steps; docs/guide_own_log says how each state and each
field is read.  The fields are described in the manual page of sacct (Slurm 20 to 24), the layout without a header line in the
documentation of Open XDMoD.
"""

from __future__ import annotations

import lzma
import os
import re
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Final, NamedTuple

from clustermodel.errors import SpecificationError, TraceError, quoted
from clustermodel.job import UNSET
from clustermodel.workload.import_report import JOBS
from clustermodel.workload.log_file import log_blocks
from clustermodel.workload.log_jobs import BACKWARDS, LogJob, LogJobs, task_key
from clustermodel.workload.log_values import (
    LONGEST_CHANGE_S,
    NO_VALUE,
    Clock,
    checked_run,
    duration,
    gres_gpus,
    requested_kib,
    tres,
    whole,
)
from clustermodel.workload.log_workload import LogOptions, workload_of
from clustermodel.workload.node_names import node_names
from clustermodel.workload.plain_sacct import PlainReader
from clustermodel.workload.sacct_fields import (
    MOST_SUSPICIOUS_S,
    NEVER,
    NO_LENGTH,
    NO_START,
    NO_SUBMISSION,
    NO_TIME,
    OTHER_TIME,
    REQUEUED,
    SIZE_MISSING,
    STATUS,
    STEP,
    SUSPENSION,
    Fields,
    state_of,
    why_not_ended,
)
from clustermodel.workload.sacct_json import is_json, json_blocks
from clustermodel.workload.sacct_records import HEADERS, JOB_ID, Layout, Records, header_layout, headerless_layout
from clustermodel.workload.table import Workload

SACCT_COMMAND: Final = (
    "TZ=UTC sacct --parsable2 --allusers --allocations --duplicates --starttime 2025-01-01 --endtime 2025-02-01 "
    "--format=JobID,JobIDRaw,Cluster,Partition,QOS,Account,Group,User,Submit,Eligible,Start,End,ElapsedRaw,Suspended,State,"
    "AllocNodes,AllocCPUS,ReqMem,ReqTRES,AllocTRES,TimelimitRaw,NodeList,JobName"
)
"""Writes a log with all that an import keeps."""
NO_SACCT: Final = (
    "it is no output of sacct --parsable2 with a header line, nor one in the layout of Open XDMoD; write a log with "
    f"{SACCT_COMMAND}"
)

_MOST_TASKS: Final = 1_000_000
_NEEDED: Final = {
    "Submit": ("submit",),
    "Start": ("start",),
    "End or ElapsedRaw": ("end", "elapsed", "elapsedraw"),
    "AllocNodes, AllocCPUS or AllocTRES": (
        "nnodes", "allocnodes", "ncpus", "alloccpus", "alloctres", "nodelist", "reqtres", "reqcpus", "reqnodes",
    ),
}  # fmt: skip


def read_sacct(
    path: str | os.PathLike[str],
    *,
    unit: str = "auto",
    timezone: str | None = None,
    cluster: str | None = None,
    processors_from: str = "allocated",
    use_estimates: bool = True,
    feedback: bool = False,
) -> Workload:
    """Read a log of Slurm's sacct, as ``--parsable2`` or ``--parsable`` writes it, into memory.

    Each run attempt is a job: after a requeue the job is submitted again.  Components of a heterogeneous job that started
    together are one job.  Every line is counted in ``provenance.report``.  The columns ``wait``, ``suspended``, ``requeues``,
    ``cores``, ``gpus`` and others keep what the log has recorded (:mod:`clustermodel.workload.extra_columns`).

    Args:
        path: a file, plain or compressed with gzip, bzip2 or xz; with a header line, or in the layout of Open XDMoD.
        unit: what a node of the workload stands for: ``"nodes"``, ``"cores"`` or ``"gpus"``; by default cores where the log
            shows that jobs share nodes, else nodes.
        timezone: name of the time zone of time stamps without an offset; by default they are read as UTC.
        cluster: of which cluster to use the jobs; by default of the one with the most jobs.
        processors_from: ``"allocated"`` or ``"requested"`` nodes and cores; the other is used where one is missing.
        use_estimates: when false, every estimate is the run time, not the time limit.
        feedback: when true, a further run attempt is submitted after the simulated end of the one before, as much later as in
            the log; by default at its recorded time.

    Returns:
        The workload; its ``machine_nodes`` is the largest number of units in use at the same time.

    Raises:
        TraceError: the file cannot be read, is no log of sacct, lacks a field that is needed, or has no usable job.
        SpecificationError: an option has a value that is not allowed.
    """
    options = LogOptions(unit=unit, cluster=cluster, timezone=timezone, use_estimates=use_estimates, feedback=feedback)
    reader = _Reader(LogJobs(os.fspath(path)), Clock(timezone), processors_from)
    lines = reader.read()
    workload = workload_of(reader.jobs, options, kind=reader.kind, lines=lines, names=node_names)
    return workload.made_by("trace", {"trace": Path(path), **asdict(options)})


def is_sacct(text: str) -> bool:
    """Return whether a line is a header of sacct, or a record in the layout of Open XDMoD."""
    return header_layout(text) is not None or headerless_layout(text) is not None


def looks_like_json(path: Path) -> bool:
    """Return whether a file looks like the output of ``sacct --json``; false if it cannot be read."""
    try:
        return path.is_file() and is_json(path)
    except (EOFError, OSError, lzma.LZMAError, zlib.error):
        return False


class _Times(NamedTuple):
    """Times of a run attempt, seconds."""

    submit: int
    start: int
    run: int
    suspended: int


class _Reader:
    """Reads the records of a log into :attr:`jobs`."""

    def __init__(self, jobs: LogJobs, clock: Clock, processors_from: str) -> None:
        if processors_from not in ("allocated", "requested"):
            raise SpecificationError(
                f"processors_from: {processors_from!r} is not allowed; it must be 'allocated' or 'requested'"
            )
        self.jobs = jobs
        self.kind = "sacct"
        self._clock = clock
        self._requested_first = processors_from == "requested"

    def read(self) -> int:
        """Read the file; return its number of lines."""
        records = Records(self.jobs)
        by_columns = PlainReader(self.jobs, self._clock, self.read_one, requested_first=self._requested_first)
        at: Fields | None = None
        path = Path(self.jobs.path)
        for block in records.of(json_blocks(path) if looks_like_json(path) else log_blocks(path)):
            if at is None or at.layout is not block.layout:
                at = Fields(self._checked(block.layout, block.line))
            by_columns.read(at, block)
        if at is None and not self.jobs.counts[HEADERS]:
            raise TraceError(f"{self.jobs.path}: {NO_SACCT}")
        return records.lines

    def read_one(self, at: Fields, line: int, fields: list[str]) -> None:
        """Add the jobs of a record, and count it.

        Args:
            at: where the fields stand.
            line: number of its first line.
            fields: of the record; an empty one is appended.
        """
        fields.append("")  # for the position -1
        try:
            reason = self._record(at, line, fields)
        except ValueError as problem:
            self.jobs.damaged(line, f"{self._wrong_field(at, fields)}{problem}")
        else:
            self.jobs.left_out(reason)

    def _checked(self, layout: Layout, line: int) -> Layout:
        """Refuse a log without a field that is needed."""
        self.kind = f"sacct {'with a header line' if layout.has_header else 'in the layout of Open XDMoD'}"
        missing = [name for name, fields in _NEEDED.items() if layout.position(*fields) < 0]
        if missing:
            raise TraceError(
                f"{self.jobs.path}:{max(1, line - 1)}: the log has no field {', no field '.join(missing)}; "
                f"write it with {SACCT_COMMAND}"
            )
        return layout

    def _record(self, at: Fields, line: int, fields: list[str]) -> str:
        """Add the jobs of a record; return what its line counts as.

        Raises:
            ValueError: a field has a value that cannot be read; the message names it.
        """
        identity = JOB_ID.fullmatch(fields[at.job_id])
        assert identity is not None
        if identity[5]:
            return STEP
        if identity[3]:
            self.jobs.note_array(int(identity[1]), fields[at.cluster], identity[3])
        state = state_of(fields[at.state])
        status = STATUS.get(state) if at.state >= 0 else UNSET
        if status is None:
            return why_not_ended(fields[at.state])
        times = self._times(at, fields, state)
        if isinstance(times, str):
            return times
        self._add(at, line, fields, identity, state, status, times)
        return JOBS

    def _wrong_field(self, at: Fields, fields: list[str]) -> str:
        """Return the beginning of a message about the first field that cannot be read."""
        stamps = ("submit", "start", "end", "eligible")
        for name in (*stamps, "elapsedraw", "elapsed", "suspended", "timelimitraw", "timelimit"):
            text = fields[at.layout.position(name)]
            try:
                self._clock.seconds(text) if name in stamps else duration(text)
            except ValueError:
                return f"field {name}: "
        return ""

    def _times(self, at: Fields, fields: list[str], state: str) -> _Times | str:
        """Return the times of a run attempt, or why there is none."""
        seconds = self._clock.seconds
        submit, start, end = seconds(fields[at.submit]), seconds(fields[at.start]), seconds(fields[at.end])
        suspended = round(duration(fields[at.suspended]) or 0)
        length = duration(fields[at.elapsed_raw])
        if length is None:
            length = duration(fields[at.elapsed])
        if start is not None and submit is not None:
            start = self._clock.not_before(fields[at.start].strip(), start, submit)
        if length is None and start is not None and end is not None:
            end = self._clock.not_before(fields[at.end].strip(), end, start)
            if end < start:
                return BACKWARDS
            length = checked_run(end - start - suspended)
        if start is None:
            return NO_START if length and length > 0 else NEVER
        if length is None:
            return NO_LENGTH
        run = round(length)
        if run <= 0:
            idle = fields[at.node_list].strip().lower() in NO_VALUE and not tres(fields[at.alloc_tres]).cores
            return NEVER if idle and state != "COMPLETED" else NO_TIME
        if submit is None:
            return NO_SUBMISSION
        if end is not None:
            start = self._clock.later_pass(fields[at.start].strip(), start, end - run - suspended)
            end = self._clock.later_pass(fields[at.end].strip(), end, start + run + suspended)
            suspended += self._unexplained(start, end, run + suspended)
        if fields[at.eligible] != fields[at.submit]:
            eligible = seconds(fields[at.eligible])
            self.jobs.eligible_later += eligible is not None and submit + MOST_SUSPICIOUS_S < eligible <= start
        return _Times(submit, start, run, suspended)

    def _unexplained(self, start: int, end: int, ran: int) -> int:
        """Return the seconds for which a job held its nodes and did not run, beyond those that its record calls suspended.

        A job whose times do not agree is counted; the run time is what its record says.
        """
        off = end - start - ran
        if abs(abs(off) - LONGEST_CHANGE_S) <= 2 and self._clock.changes(start, end):
            self.jobs.clock_change += 1
        elif off > MOST_SUSPICIOUS_S:
            self.jobs.repaired[SUSPENSION] += 1
            return off
        elif off < -MOST_SUSPICIOUS_S:
            self.jobs.repaired[OTHER_TIME] += 1
        return 0

    def _add(
        self,
        at: Fields,
        line: int,
        fields: list[str],
        identity: re.Match[str],
        state: str,
        status: int,
        times: _Times,
    ) -> None:
        """Add the job of a record, or a job for each task."""
        jobs = self.jobs
        granted, asked = tres(fields[at.alloc_tres]), tres(fields[at.req_tres])
        lists = fields[at.node_list].strip()
        node_list = UNSET if lists.lower() in NO_VALUE else jobs.node_lists.number(lists)
        got = (
            granted.nodes or whole(fields[at.alloc_nodes]) or whole(fields[at.nnodes]),
            granted.cores or whole(fields[at.alloc_cpus]),
        )
        wanted = (asked.nodes or whole(fields[at.req_nodes]), asked.cores or whole(fields[at.req_cpus]))
        first, second = (wanted, got) if self._requested_first else (got, wanted)
        nodes, cores = (one or other for one, other in zip(first, second, strict=True))
        if not nodes and node_list > 0:
            nodes = len(node_names(lists))
        if not any(first) and (nodes or cores):
            jobs.repaired[SIZE_MISSING[self._requested_first]] += 1
        limit = duration(fields[at.limit_raw], 60)
        if limit is None:
            limit = duration(fields[at.limit], 60)
        number, task, tasks, component, _ = identity.groups()
        cluster = jobs.clusters.number(fields[at.cluster])
        raw = JOB_ID.fullmatch(fields[at.raw_id])
        each = [int(task)] if task else [UNSET] if tasks is None else _tasks(tasks)
        keys = [jobs.keys.number(task_key(int(number), one, int(component or UNSET), cluster)) for one in each]
        job = LogJob(
            line=line,
            key=keys[0],
            number=int(raw[1]) if raw and not raw[5] else int(number),
            heterogeneous=jobs.heterogeneous.number((number, task, cluster)) if component else UNSET,
            cluster=cluster,
            submit=times.submit,
            start=times.start,
            run=times.run,
            suspended=times.suspended,
            limit=UNSET if limit is None else round(limit),
            nodes=nodes,
            cores=cores,
            gpus=granted.gpus
            or gres_gpus(fields[at.alloc_gres])
            or asked.gpus
            or (gres_gpus(fields[at.req_gres]) or gres_gpus(fields[at.req_tres])) * max(nodes, 1),
            memory=granted.memory or asked.memory or requested_kib(fields[at.req_mem], nodes, cores) or UNSET,
            user=jobs.users.number(fields[at.user] or fields[at.uid]),
            group=jobs.groups.number(fields[at.group] or fields[at.gid]),
            account=jobs.accounts.number(fields[at.account]),
            partition=jobs.partitions.number(fields[at.partition]),
            qos=jobs.qos.number(fields[at.qos]),
            queue=UNSET,
            job_name=jobs.job_names.number(fields[at.job_name]),
            status=status,
            requeued=int(state in REQUEUED),
            restarts=whole(fields[at.restarts]),
            node_list=node_list,
        )
        jobs.add(job)
        jobs.several_tasks += len(keys) > 1
        for key in keys[1:]:
            jobs.add(job._replace(key=key))


def _tasks(text: str) -> list[int]:
    """Return the tasks of ``1-3,7,20-30:5%2``.

    Raises:
        ValueError: they cannot be read, or are more than a million.
    """
    tasks: list[int] = []
    for one in text.partition("%")[0].split(","):
        found = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?\s*", one, re.ASCII)
        if not found:
            raise ValueError(f"field JobID: the tasks {quoted(text)} cannot be read")
        low = int(found[1])
        chosen = range(low, int(found[2] or low) + 1, int(found[3] or 1) or 1)
        if len(tasks) + len(chosen) > _MOST_TASKS:
            raise ValueError(f"field JobID: {quoted(text)} are more than {_MOST_TASKS:,} tasks")
        tasks += chosen
    if not tasks:
        raise ValueError(f"field JobID: the tasks {quoted(text)} cannot be read")
    return tasks
