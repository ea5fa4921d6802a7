"""Slurm's accounting: the output of ``sacct --parsable2``, or of ``sacct --json``, as a workload.

Slurm writes one record for each allocation, and further ones for its steps; docs/guide_own_log says how each state and each
field is read.  The fields are described in the manual page of sacct (Slurm 20 to 24), the layout without a header line in the
documentation of Open XDMoD.

Lines that are no records as they stand (separators or line breaks in job names, damage) are put together first, or counted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from clustermodel.errors import TraceError, quoted
from clustermodel.logs import log_jobs as logs
from clustermodel.logs import values as log_values
from clustermodel.logs.json_files import content_of_json, kind_of_json
from clustermodel.logs.log_jobs import LogJobs
from clustermodel.text.files import text_lines
from clustermodel.workload.job import DEPENDENCIES, UNSET
from clustermodel.workload.provenance import JOBS
from clustermodel.workload.table import Workload

SACCT_COMMAND: Final = (
    "TZ=UTC sacct --parsable2 --allusers --allocations --duplicates --starttime 2025-01-01 --endtime 2025-02-01 "
    "--format=JobID,JobIDRaw,Cluster,Partition,QOS,Account,Group,User,Constraints,Reservation,Submit,Eligible,Start,"
    "End,ElapsedRaw,Suspended,State,AllocNodes,AllocCPUS,ReqMem,ReqTRES,AllocTRES,TimelimitRaw,NodeList,JobName"
)
"""Writes a log with all that an import keeps."""
_AGAIN: Final = (
    "PREEMPTED", "REQUEUED", "NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED", "RESIZING", "SPECIAL_EXIT", "REQUEUE_HOLD",
)  # fmt: skip
"""States after which a further record of the job is a further run attempt."""
STATUS: Final = {
    "COMPLETED": 1,
    **dict.fromkeys(("FAILED", "TIMEOUT", "OUT_OF_MEMORY", "DEADLINE", "RECONFIG_FAIL", *_AGAIN), 0),
    **dict.fromkeys(("CANCELLED", "REVOKED"), 5),
}
"""SWF status of the states in which a run attempt has ended."""
_WAITING: Final = ("PENDING", "REQUEUE_FED", "RESV_DEL_HOLD")
_RUNNING: Final = (
    "RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "SIGNALING", "STAGE_OUT", "STOPPED", "POWER_UP_NODE", "EXPEDITING",
)  # fmt: skip
_UNFINISHED: Final = {**dict.fromkeys(_WAITING, "still waiting"), **dict.fromkeys(_RUNNING, "still running or suspended")}

_NEEDED: Final = {
    "Submit": "submit",
    "Start": "start",
    "End or ElapsedRaw": "end elapsed elapsedraw",
    "AllocNodes, AllocCPUS or AllocTRES": "nnodes allocnodes ncpus alloccpus alloctres nodelist reqtres reqcpus reqnodes",
}
"""Of each line one field."""
_OWN: Final = (
    "jobidraw", "cluster", "jobname", "submit", "eligible", "start", "end", "elapsedraw", "elapsed", "nodelist",
)  # fmt: skip
"""Fields that are read in each record."""
_NAMED: Final = "cluster", "user", "uid", "group", "gid", "account", "partition", "qos", "constraints", "reservation"
"""Fields with names that many jobs have in common."""
_CODED: Final = "cluster", "user", "group", "account", "partition", "qos", "reservation"
_COMMON: Final = (
    "suspended", "timelimitraw", "timelimit", "state", "allocnodes", "nnodes", "alloccpus/ncpus", "reqnodes", "reqcpus",
    "alloctres", "reqtres", "allocgres", "reqgres", "reqmem", "restarts",
)  # fmt: skip
"""Fields with few different texts, or the one after the stroke where a log does not have the first: read once together."""
_HEADERS: Final = "header lines"
_LONGEST_CHANGE_S: Final = 3600  # by which clocks are changed
_MOST_TASKS: Final = 1_000_000
_MOST_KEPT: Final = 65_536


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
    """Read a log of Slurm's sacct, as ``--parsable2``, ``--parsable`` or ``--json`` writes it, into memory.

    Each run attempt is a job: after a requeue the job is submitted again.  Components of a heterogeneous job that started
    together are one job.  Every line is counted in ``provenance.report``.  The columns ``wait``, ``suspended``, ``requeues``,
    ``cores``, ``gpus`` and others keep what the log has recorded (``RECORDED_COLUMNS``).

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
    options = {"unit": unit, "cluster": cluster, "timezone": timezone, "processors_from": processors_from}
    jobs = LogJobs(path, **options, use_estimates=use_estimates, feedback=feedback)
    reader = _Reader(jobs, log_values.Clock(timezone))
    reader.read()
    return jobs.workload(reader.kind, log_values.node_names)


def is_sacct(text: str) -> bool:
    """Return whether a line is a header of sacct, or a record in the layout of Open XDMoD."""
    return _header_layout(text) is not None or _headerless_layout(text) is not None


@lru_cache(maxsize=4096)
def state_of(text: str) -> str:
    """Return the state of ``CANCELLED by 1001``, or of ``OUT_OF_ME+``, as sacct cuts it in a narrow column."""
    state = text.split(" ", 1)[0].upper()
    if not state.endswith("+"):
        return state
    whole_states = [known for known in (*STATUS, *_UNFINISHED) if known.startswith(state[:-1])]
    return whole_states[0] if len(whole_states) == 1 else state


class _Facts(dict[tuple[str, ...], Any]):
    """What the texts of the :data:`_COMMON` fields say that a layout has, and a list of nodes if they do not say how many.

    Why the record counts as no job, what is wrong with the suspended time and with the limit (empty texts if nothing is);
    these times, nodes, cores, GPUs, KiB, status, attempts before this one, what is wrong with these numbers; whether a further
    attempt follows, whether it is known that the job ran, whether the preferred size is missing.
    """

    def __init__(self, layout: _Layout, processors_from: str) -> None:
        super().__init__()
        self._fields, self._processors_from = (*layout.common, "", "", "nodelist"), processors_from

    def __missing__(self, texts: tuple[str, ...]) -> Any:
        text = dict.fromkeys((*_COMMON, "nodelist"), "") | dict(zip(self._fields, texts, strict=False))
        amount, gres = log_values.whole, log_values.gres_gpus
        granted_cores, granted_nodes, granted_kib, granted_gpus = log_values.tres(text["alloctres"])
        asked_cores, asked_nodes, asked_kib, asked_gpus = log_values.tres(text["reqtres"])
        first = (
            granted_nodes or amount(text["allocnodes"]) or amount(text["nnodes"]),
            granted_cores or amount(text["alloccpus/ncpus"]),
        )
        second = asked_nodes or amount(text["reqnodes"]), asked_cores or amount(text["reqcpus"])
        if self._processors_from == "requested":
            first, second = second, first
        nodes = first[0] or second[0] or len(log_values.node_names(text["nodelist"]))
        cores = first[1] or second[1]
        asked_gpus = asked_gpus or (gres(text["reqgres"]) or gres(text["reqtres"])) * max(nodes, 1)
        of_job, of_node, of_core = log_values.requested_kib(text["reqmem"])
        asked_kib = asked_kib or of_job + of_node * max(nodes, 1) + of_core * max(cores, 1)
        sizes = nodes, cores, granted_gpus or gres(text["allocgres"]) or asked_gpus, granted_kib or asked_kib or UNSET
        suspended, limit, wrong = 0, UNSET, ["", ""]
        try:
            suspended = round(_duration("suspended", text["suspended"]) or 0)
        except ValueError as problem:
            wrong[0] = str(problem)
        try:
            most = _duration("timelimitraw", text["timelimitraw"], 60)
            most = _duration("timelimit", text["timelimit"], 60) if most is None else most
            limit = UNSET if most is None else round(most)
        except ValueError as problem:
            wrong[1] = str(problem)
        state, restarts = state_of(text["state"]), amount(text["restarts"])
        no_job = ""
        if state not in STATUS and "state" in self._fields:
            no_job = _UNFINISHED.get(state, f"of unknown state {quoted(text['state'].strip())}")
        if len(self) > _MOST_KEPT:
            self.clear()
        facts = self[texts] = (
            no_job, *wrong, suspended, limit, *sizes, STATUS.get(state, UNSET), restarts,
            logs.problem_of_size(max(*sizes, restarts)), state in _AGAIN, granted_cores > 0 or state == "COMPLETED",
            not any(first) and (nodes or cores) > 0,
        )  # fmt: skip
        return facts


class _Codes(dict[tuple[str, ...], tuple[int, ...]]):
    """Numbers of cluster, user, group, account, partition, quality of service, reservation and features, by the :data:`_NAMED`
    fields of a layout, then 1 if the features cannot be read.
    """

    def __init__(self, layout: _Layout, jobs: LogJobs) -> None:
        super().__init__()
        self._fields, self._names = layout.named, jobs.names

    def __missing__(self, texts: tuple[str, ...]) -> tuple[int, ...]:
        text = dict.fromkeys(_NAMED, "") | dict(zip(self._fields, texts, strict=False))
        text |= {"user": text["user"] or text["uid"], "group": text["group"] or text["gid"]}
        asked = _given(text["constraints"])
        features = asked if _FEATURES.fullmatch(asked) else ""
        if len(self) > _MOST_KEPT:
            self.clear()
        text["reservation"] = _given(text["reservation"])
        numbers = (self._names[name][text[name]] for name in _CODED)
        codes = self[texts] = (*numbers, self._names["features"][features], int(asked != features))
        return codes


def _tasks(text: str) -> list[int]:
    """Return the tasks of ``1-3,7,20-30:5%2``, counted from 1."""
    pattern = r"\s*(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?\s*"
    matches = [re.fullmatch(pattern, part, re.ASCII) for part in text.partition("%")[0].split(",")]
    ranges = [range(int(match[1]) + 1, int(match[2] or match[1]) + 2, int(match[3] or 1) or 1) for match in matches if match]
    if sum(map(len, ranges)) > _MOST_TASKS:
        raise ValueError(f"field JobID: {quoted(text)} are more than {_MOST_TASKS:,} tasks")
    if not all(matches) or not any(ranges):
        raise ValueError(f"field JobID: the tasks {quoted(text)} cannot be read")
    return list(chain.from_iterable(ranges))


class _Reader:
    """Reads the records of a log into ``jobs``."""

    def __init__(self, jobs: LogJobs, clock: log_values.Clock) -> None:
        self.kind = "sacct"
        self._jobs, self._clock = jobs, clock
        self._layout: _Layout | None = None
        self._checked: _Layout | None = None
        self._facts: _Facts
        self._codes: _Codes
        other_names = itemgetter("key", "heterogeneous", "job_name", "node_list")(jobs.names)
        self._keys, self._heterogeneous, self._job_names, self._node_lists = other_names
        self._pending: list[str] = []  # lines of a record that has not ended
        self._begun = 0  # number of the first of them
        self._complete = False  # whether the line before ended a record

    def read(self) -> None:
        """Read the file."""
        path = Path(self._jobs.path)
        jobs = self._jobs
        for text in _json_lines(path) if kind_of_json(path) else text_lines(path):
            jobs.lines += 1
            self._take_line(text)
        self._give_up()
        if self._checked is None and not self._jobs.counts[_HEADERS]:
            raise TraceError(
                f"{path}: it is no output of sacct --parsable2 with a header line, nor one in the layout of Open XDMoD; "
                f"write a log with {SACCT_COMMAND}"
            )

    def _take_line(self, text: str) -> None:
        """Take up a line that may be a record, part of one, or none."""
        jobs, layout = self._jobs, self._layout
        if layout is not None:
            fields = layout.split(text)
            if len(fields) == layout.size and (identity := _JOB_ID.fullmatch(fields[layout.id_at])):
                if self._pending:
                    self._give_up()
                self._take(layout, jobs.lines, fields, identity)
                return
        if layout is None or (text[:1].isalpha() and "jobid" in text.lower()):
            announced = _header_layout(text) or (_headerless_layout(text) if layout is None else None)
            if announced is not None:
                self._give_up()
                self._layout, self._complete = announced, False
                self._facts, self._codes = _Facts(announced, jobs.processors_from), _Codes(announced, jobs)
                if announced.has_header:
                    jobs.counts[_HEADERS] += 1
                else:
                    self._take_line(text)
                return
        blank = not text.strip()
        if (blank and not self._pending) or text.startswith(("sacct: ", "slurm_", "srun: ")):
            jobs.counts[logs.BLANK if blank else "messages of sacct"] += 1
        elif layout is None:
            jobs.damaged(jobs.lines, "it stands before the first record")
        else:
            self._assemble(layout, text, fields)

    def _assemble(self, layout: _Layout, text: str, fields: list[str]) -> None:
        """Take the record that ends with this line, if it has separators or line breaks in its texts; else count the line."""
        jobs, pending = self._jobs, self._pending
        if len(fields) > layout.size and (record := layout.aligned(fields)) is not None:
            self._give_up()
            self._take(layout, jobs.lines, record)
            return
        if pending:
            pending.append(text)
            parts = layout.split("\n".join(pending))
            if (record := layout.aligned(parts)) is not None:
                jobs.counts[logs.BROKEN] += len(pending) - 1
                pending.clear()
                self._take(layout, self._begun, record)
                return
            if len(pending) < 1000 and sum(map(len, pending)) < 2**20 and len(parts) < layout.size:
                return
            pending.pop()
            self._give_up()
        if self._complete and layout.may_continue(fields):
            jobs.counts[logs.BROKEN] += 1
        elif layout.begins_like_a_record(fields):
            pending.append(text)
            self._begun, self._complete = jobs.lines, False
        elif len(fields) == layout.size:
            jobs.damaged(jobs.lines, f"field JobID: {quoted(fields[layout.id_at])} is not a job number")
        else:
            jobs.damaged(jobs.lines, f"{len(fields)} fields; a record has {layout.size}")

    def _give_up(self) -> None:
        """Count the lines of a record that does not end."""
        if self._pending:
            assert self._layout is not None
            fields = len(self._layout.split("\n".join(self._pending)))
            self._jobs.damaged(self._begun, f"{fields} fields; a record has {self._layout.size}", len(self._pending))
            self._pending.clear()

    def _take(self, layout: _Layout, line: int, fields: list[str], identity: re.Match[str] | None = None) -> None:
        """Take the jobs of a record, and count its line."""
        if self._checked is not layout:
            self._checked = layout
            self.kind = f"sacct {'with a header line' if layout.has_header else 'in the layout of Open XDMoD'}"
            missing = [name for name, fields in _NEEDED.items() if not {*fields.split()} & {*layout.names}]
            if missing:
                raise TraceError(
                    f"{self._jobs.path}:{max(1, line - 1)}: the log has no field {', no field '.join(missing)}; "
                    f"write it with {SACCT_COMMAND}"
                )
        self._complete = True
        try:
            reason = self._record(layout, line, fields, identity or _JOB_ID.fullmatch(fields[layout.id_at]))
        except ValueError as problem:
            self._jobs.damaged(line, problem)
        else:
            self._jobs.left_out(reason)

    def _record(  # noqa: PLR0911, PLR0912, PLR0915  in the order in which the fields of a record matter
        self, layout: _Layout, line: int, fields: list[str], identity: re.Match[str] | None
    ) -> str:
        """Add the jobs of a record; return what its line counts as.  ``ValueError`` says what is wrong with it."""
        assert identity is not None
        fields.append("")  # of what the log does not have
        jobs, clock, own_fields = self._jobs, self._clock, layout.own_fields(fields)
        raw, cluster, job_name, submitted, became_eligible, started, ended, elapsed_raw, elapsed, node_list = own_fields
        mark, task, listed, component, step = identity.group(1, 2, 3, 4, 5)
        number = int(mark)
        if listed is not None:
            jobs.note_array(number, cluster, listed)
        if step is not None:
            return "steps"
        texts = layout.common_fields(fields)
        (
            no_job, wrong_suspended, wrong_limit, suspended, limit, nodes, cores, gpus, memory, status, restarts, wrong_size,
            again, busy, missing,
        ) = self._facts[texts]  # fmt: skip
        if no_job:
            return str(no_job)
        submit, start, end = clock.time("submit", submitted), clock.time("start", started), clock.time("end", ended)
        later_start, later_end = start, end
        if clock.has_zone:
            later_start, later_end = clock.second_pass(started, start), clock.second_pass(ended, end)
        if wrong_suspended:
            raise ValueError(wrong_suspended)
        length = _duration("elapsedraw", elapsed_raw) if elapsed_raw else None
        if length is None and elapsed:
            length = _duration("elapsed", elapsed)
        if start < submit <= later_start and start != UNSET:
            start = later_start
        if length is None and UNSET not in (start, end):
            if end < start <= later_end:
                end = later_end
            if end < start:
                return logs.BACKWARDS
            length = log_values.checked_run(max(0, end - start - suspended))
        if start == UNSET:
            return "without a start time" if length else logs.NEVER
        if length is None:
            return logs.NO_LENGTH
        run = round(length)
        if node_list:
            node_list = _given(node_list)
        if not run:
            return logs.NO_TIME if busy or node_list else logs.NEVER
        if submit == UNSET:
            return logs.NO_SUBMISSION
        if end != UNSET and (later_start > start or later_end > end):
            start = _later_pass(start, later_start, end - run - suspended)
            end = _later_pass(end, later_end, start + run + suspended)
        eligible = UNSET  # in a log that does not say
        if became_eligible:
            eligible = submit if became_eligible == submitted else clock.time("eligible", became_eligible)
        if wrong_limit:
            raise ValueError(wrong_limit)
        tasks = [int(task) + 1 if task else 0] if listed is None else _tasks(listed)
        if not nodes and node_list:
            nodes, cores, gpus, memory, _, _, wrong_size, *_, missing = self._facts[*texts, node_list][5:]
        if wrong_size:
            raise ValueError(wrong_size)
        if missing:
            jobs.repaired[jobs.size_missing] += 1
        off = 0 if end == UNSET else end - start - run - suspended
        if not -logs.MOST_SUSPICIOUS_S <= off <= logs.MOST_SUSPICIOUS_S:
            if abs(abs(off) - _LONGEST_CHANGE_S) <= 2 and clock.changes(start, end):
                jobs.clock_change += 1
            elif off > 0:
                suspended += off
                jobs.repaired["elapsed time less than end - start - suspended time, the rest counted as suspended"] += 1
            else:
                jobs.repaired["elapsed time is not end - start - suspended time, elapsed time used"] += 1
        job, part = number, int(component) + 1 if component else 0
        if raw and raw != mark and (raw_number := _JOB_ID.fullmatch(raw)) and not raw_number[5]:
            job = int(raw_number[1])
        codes = self._codes[layout.named_fields(fields)]
        cluster_code, user, group, account, partition, qos, reservation, features, unread = codes
        if unread:
            jobs.unread_features += len(tasks)
        waits_for_its_name, waits_for = False, _NOBODY
        if layout.line_at < layout.size:
            waits_for_its_name, waits_for, unread = _dependencies(fields[layout.line_at])
            jobs.unread_waits += unread
        whole, job_code, list_code, keys = UNSET, self._job_names[job_name], self._node_lists[node_list], self._keys
        for each in tasks:
            if part:
                whole = self._heterogeneous[number, each, cluster_code]
            key = logs.task_key(number, each, part, cluster_code)  # nearly always a new one
            if waits_for_its_name:
                jobs.singletons.add(keys.setdefault(key, len(keys)))
            for kind, other, other_task in waits_for:
                its_task = each if other_task == _SAME_TASK else other_task
                jobs.dependencies.append((line, keys.setdefault(key, len(keys)), kind, other, its_task))
            jobs.append(
                logs.packed(
                    line, job, submit, start, run, limit, nodes, cores, gpus, memory, status, eligible, suspended, again,
                    restarts, keys.setdefault(key, len(keys)), whole, cluster_code, user, group, account, partition, qos, UNSET,
                    job_code, list_code, features, reservation,
                )
            )  # fmt: skip
        jobs.several_tasks += len(tasks) > 1
        return JOBS


def _dependencies(line: str) -> tuple[bool, tuple[tuple[int, int, int], ...], int]:
    """Return what a command line says a job waits for: whether all of its name; kind, number and task of others; unread ones.

    ``afterok:71:72_3,singleton`` has jobs 71 and task 3 of 72, counted from 1; 0 stands for all tasks of an array.
    """
    match = _DEPENDENCY.search(line)
    if match is None:
        return False, (), 0
    parts = match[1].split(",")
    if "?" in match[1]:
        return False, (), len(re.split("[,?]", match[1]))
    others, unread = [], 0
    for kind, *jobs in (part.split(":") for part in parts if part != "singleton"):
        for job in jobs or [""]:
            identity = re.fullmatch(r"(\d{1,18})(?:_(\d{1,9}|\*))?", job, re.ASCII)
            if identity is None or kind not in _KINDS:
                unread += 1
                continue
            task = int(identity[2]) + 1 if (identity[2] or "*") != "*" else _SAME_TASK if kind == "aftercorr" else 0
            others.append((_KINDS[kind], int(identity[1]), task))
    return "singleton" in parts, tuple(others), unread


@lru_cache(maxsize=4096)
def _given(text: str) -> str:
    return "" if (text := text.strip()).lower() in log_values.NO_VALUE else text


def _duration(name: str, text: str, unit: int = 1) -> float | None:
    if text.isdecimal() and len(text) < 9:
        return int(text) * unit
    try:
        return log_values.duration(text, unit)
    except ValueError as problem:
        raise ValueError(f"field {name}: {problem}") from None


def _later_pass(first: int, second: int, expected: int) -> int:
    """Return a time or, in an hour that daylight saving repeats, its second pass, whichever is nearer to ``expected``."""
    return second if second > first and abs(second - expected) < abs(first - expected) else first


_JOB_ID: Final = re.compile(r"(\d{1,18})(?:_(?:(\d{1,9})|\[([^\]]*)\]?))?(?:\+(\d{1,9}))?(\..+)?", re.ASCII)
"""Groups: number, task, tasks that have not been split off, component, step."""
_DEPENDENCY: Final = re.compile(r"(?:^|\s)(?:--depend(?:ency)?[=\s]\s*|-d\s*)((?:singleton|after|expand)\S*)")
# In a log the job began, so that the condition was met: those that were to fail did, and need not fail when simulated.
_KINDS: Final = {
    name: DEPENDENCIES.index(kind)
    for name, kind in (
        ("after", "after"), ("afterok", "after_ok"), ("aftercorr", "after_ok"), ("afterany", "after_any"),
        ("afternotok", "after_any"),
    )
}  # fmt: skip
_SAME_TASK: Final = -1
_FEATURES: Final = re.compile(r"[^\s&|,*()\[\]]+(?:(?:[&,][^\s&|,*()\[\]]+)+|(?:\|[^\s&|,*()\[\]]+)+)?")
"""Features of nodes, all of them or one of them."""
_NOBODY: Final[tuple[tuple[int, int, int], ...]] = ()  # where a log has no command lines
_XDMOD: Final = (
    "jobid", "jobidraw", "cluster", "partition", "qos", "account", "group", "gid", "user", "uid", "submit", "eligible",
    "start", "end", "elapsed", "exitcode", "state", "nnodes", "ncpus", "reqcpus", "reqmem", "reqtres", "alloctres",
    "timelimit", "nodelist", "jobname",
)  # fmt: skip
"""The layout of Open XDMoD since version 11; before, it had no QOS, and at first no resources either."""
_ISO: Final = r"\d{4}-\d\d-\d\dT"
_XDMOD_LAYOUTS: Final = (
    ([name for name in _XDMOD if name != "qos"], _ISO),
    (_XDMOD, rf"{_ISO}|\d{{9,10}}$"),
    ([name for name in _XDMOD if name not in ("qos", "reqtres", "alloctres")], _ISO),
)
"""The layouts, and what the time of submission looks like; a user number may look like seconds since 1970."""
_TYPES: Final = {
    name: re.compile(pattern, re.ASCII)
    for names, pattern in (
        ("jobid jobidraw", _JOB_ID.pattern),
        ("submit eligible start end", r"(?:\d{4}-\d\d-\d\d[T ][\d:.+Z-]+|\d{0,12}|[A-Za-z/() ]{1,16})"),
        ("elapsed suspended timelimit planned reserved resvcpu plannedcpu cputime totalcpu", r"(?:[\d:.-]*|[A-Za-z_]{3,16})"),
        (
            "nnodes ncpus alloccpus allocnodes reqcpus elapsedraw cputimeraw uid gid priority qosraw restarts dbindex associd "
            "consumedenergyraw ntasks",
            r"\d*(?:\.\d+)?[KMGTP]?",
        ),
        ("reqtres alloctres", r"[\w/:.=,()-]*"),  # Open XDMoD 8 has gpu:2 in its place
        ("state", r"[A-Z_]+\+?(?: by \S+)?"),
        ("exitcode derivedexitcode", r"(?:\d+:\d+)?"),
        ("reqmem", r"[\d.]*[A-Za-z?]{0,2}"),
        ("timelimitraw", r"\d*|[A-Za-z_]+"),
        ("cluster", r"[\w.-]*"),
    )
    for name in names.split()
}
"""What fields look like that are not free text."""
_LISTS: Final = {
    **{name: _TYPES[name] for name in ("jobid", "reqtres", "alloctres")},
    **dict.fromkeys(("reqgres", "allocgres"), re.compile(".*", re.DOTALL)),
    "nodelist": re.compile(r"(?:[\w.-]|\[[\d,-]*\])+(?:,(?:[\w.-]|\[[\d,-]*\])+)*", re.ASCII),
}
"""Fields with commas of their own, and what they look like if they have some."""
_FREE: Final = (
    "jobname", "comment", "admincomment", "systemcomment", "workdir", "submitline", "constraints", "wckey", "extra",
    "stdout", "stderr", "stdin", "container", "reason", "licenses", "reservation",
)  # fmt: skip
"""Fields that may have separators and line breaks in them."""
_KNOWN_FIELDS: Final = {*_TYPES, *_FREE, "partition", "qos", "account", "group", "user", "nodelist"}
_LONGEST_TAIL: Final = 3  # separators in the second line of a job name
_MOST_SEPARATORS: Final = 200  # in the texts of a record


def _fits(name: str, text: str) -> bool:
    return name not in _TYPES or _TYPES[name].fullmatch(text) is not None


class _Layout:
    """The fields of a log, in lower case, and how they are separated; ``closed``: a separator also ends each record."""

    def __init__(self, names: Sequence[str], separator: str = "|", *, closed: bool = False, header: bool = True) -> None:
        self.names, self.size, self.has_header = names, len(names), header
        self._separator, self._closed = separator, closed or not header
        self.id_at, self.line_at = self._place("jobid/jobidraw"), self._place("submitline")
        self.named, self.common = ([name for name in each if self._place(name) < self.size] for each in (_NAMED, _COMMON))
        self.own_fields, self.named_fields, self.common_fields = (
            itemgetter(*map(self._place, fields)) for fields in (_OWN, [*self.named, "", ""], [*self.common, "", ""])
        )  # two of none, so that they are always tuples

    def _place(self, field: str) -> int:
        """Return where a field is in a record, or the one after the stroke; behind all of them if the log has neither."""
        return next((self.names.index(name) for name in field.split("/") if name in self.names), self.size)

    def split(self, text: str) -> list[str]:
        """Return the fields of a text."""
        fields = text.split(self._separator)
        if len(fields) > self.size and self._closed and fields[-1] == "":
            fields.pop()
        return fields

    def may_continue(self, fields: Sequence[str]) -> bool:
        """Return whether ``fields`` can be a further line of the last field of the record before."""
        if self.names[-1] not in _FREE or len(fields) > _LONGEST_TAIL + 1:
            return False
        if self.names[-1] == "workdir" or self.id_at < len(fields) - 1:
            return len(fields) == 1 or not self.begins_like_a_record(fields)
        return True

    def begins_like_a_record(self, fields: Sequence[str]) -> bool:
        """Return whether ``fields``, of which the last one may be cut, can be the beginning of a record."""
        uncut = fields[:-1]
        if not uncut or len(uncut) >= self.size or (self.id_at < len(uncut) and not _JOB_ID.fullmatch(uncut[self.id_at])):
            return False
        return all(map(_fits, self.names, uncut))

    def aligned(self, fields: list[str]) -> list[str] | None:
        """Return the fields of a record with separators in its texts, joined in the first way that fits, or ``None``."""
        spare = len(fields) - self.size
        if not 0 <= spare <= _MOST_SEPARATORS:
            return None
        ways: dict[int, list[str]] = {len(fields): []}  # the record from a field of the layout on, by where it begins
        for place, name in reversed(list(enumerate(self.names))):
            most = 1 + spare if name in _FREE or (self._separator == "," and name in _LISTS) else 1
            further, ways = ways, {}
            for begin in range(place, place + spare + 1):
                for end in range(begin + 1, begin + most + 1):
                    text = self._separator.join(fields[begin:end])
                    whole = (
                        _LISTS[name].fullmatch(text) is not None if end > begin + 1 and name in _LISTS else _fits(name, text)
                    )
                    if whole and end in further:
                        ways[begin] = [text, *further[end]]
                        break
        return ways.get(0)


def _header_layout(text: str) -> _Layout | None:
    """Return the layout that a header line of sacct announces, ``None`` if it is none."""
    begin = re.match(r"\s*([A-Za-z]+)([^\w\s%]+|\t)[A-Za-z]", text)
    if not begin:
        return None
    names = [name.strip().lower() for name in text.strip("\r\n ").split(begin[2])]
    closed = names[-1] == ""
    names = names[:-1] if closed else names
    if not {"jobid", "jobidraw"} & {*names} or len(_KNOWN_FIELDS & {*names}) < min(3, len(names)):
        return None
    return _Layout(names, begin[2], closed=closed)


def _headerless_layout(text: str) -> _Layout | None:
    """Return the layout of Open XDMoD that a line has, ``None`` if it has none."""
    fields = text.split("|")
    for names, stamp in _XDMOD_LAYOUTS:
        if len(fields) >= len(names) and _JOB_ID.fullmatch(fields[0]) and re.match(stamp, fields[names.index("submit")]):
            return _Layout(names, header=False)
    return None


def _json_lines(path: Path) -> Iterator[str]:
    """Yield the jobs of ``sacct --json`` as lines of ``sacct --parsable2``, the header first."""
    jobs = content_of_json(path, "sacct --json writes one")["jobs"]
    if jobs and not any(isinstance(job, dict) and {"job_id", "time"} & job.keys() for job in jobs):
        raise TraceError(
            f"{path}: it is JSON with a list 'jobs', but none of them has 'job_id' or 'time', as sacct --json writes it"
        )
    yield "\x01".join(_fields_of_json({}))
    for job in jobs:
        values = _fields_of_json(job if isinstance(job, dict) else {}).values()
        yield "\x01".join(" ".join(str(value).split()).replace("\x01", " ") for value in values)


_JSON: Final = {
    **{name: name.lower() for name in ("Cluster", "Partition", "QOS", "Account", "Group", "User")},
    **{name: f"time/{name.lower()}" for name in ("Eligible", "Start", "End", "Suspended")},
    "Constraints": "constraints",
    "Reservation": "reservation/name",
    "Submit": "time/submission",
    "ElapsedRaw": "time/elapsed",
    "AllocNodes": "allocation_nodes",
    "ReqCPUS": "required/CPUs",
    "TimelimitRaw": "time/limit",
    "NodeList": "nodes",
    "JobName": "name",
    "SubmitLine": "submit_line",
}
"""Fields of sacct --parsable2, and where their values are in a job of sacct --json."""


def _fields_of_json(job: dict[str, Any]) -> dict[str, object]:
    """Return the fields of a job as sacct --parsable2 would write them."""

    def value_of(keys: str) -> Any:
        """Return a value, of ``{"set": true, "number": 4}`` the number; empty where it is not set."""
        value: Any = job
        for key in keys.split("/"):
            value = value.get(key, "") if isinstance(value, dict) else ""
        if isinstance(value, dict):
            return value.get("number", "") if value.get("set") and not value.get("infinite") else ""
        return "" if value is None else value

    array, task, het, offset = map(value_of, ("array/job_id", "array/task_id", "het/job_id", "het/job_offset"))
    if limit := value_of("array/limits/max/running/tasks"):
        task = f"[{value_of('array/task') if task == '' else task}%{limit}]"
    number, state, granted = job.get("job_id", ""), value_of("state/current"), value_of("tres/allocated")
    amounts = []
    for resource in filter(lambda each: isinstance(each, dict), granted if isinstance(granted, list) else ()):
        kind, name, count = map(resource.get, ("type", "name", "count"))
        amounts.append(f"{kind}{f'/{name}' if name else ''}={count}{'M' if kind == 'mem' else ''}")
    each_node, each_core = value_of("required/memory_per_node"), value_of("required/memory_per_cpu")
    return {
        "JobID": f"{array}_{task}" if array and task != "" else f"{het}+{offset}" if het and offset != "" else number,
        "JobIDRaw": number,
        "State": state[0] if isinstance(state, list) and state else state,
        "ReqMem": f"{each_node}Mn" if each_node else f"{each_core}Mc" if each_core else "",
        "AllocTRES": ",".join(amounts),
        **{name: value_of(keys) for name, keys in _JSON.items()},
    }
