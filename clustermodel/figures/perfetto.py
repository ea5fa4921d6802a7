"""Runs as a trace for https://ui.perfetto.dev, in Chrome's JSON format: gangs on nodes, time slices, the queue, the ledger.

Its unit of time, the microsecond, is a tick.  Each run is a process; so is each range of its nodes, with time sharing in each
row of the Ousterhout matrix.  A gang is one slice, on the thread of its lowest node, where slices never overlap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from json import JSONEncoder
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clustermodel.arrays import FloatArray, IntArray
from clustermodel.errors import SpecificationError, counted, visible
from clustermodel.machine.node_set import count, text
from clustermodel.measure.timeline import GangPlacement, gangs_in_matrix, gangs_in_space, rates_in_matrix, rates_in_space
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.matrix_history import History, Slice
from clustermodel.recording.run_attempts import Status
from clustermodel.text.files import write_file
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.placements import KINDS

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result

MOST_TIME_SLICES: Final = 200_000
"""If a run has more time slices, all rows that take turns between two scheduling events are one slice of the trace."""
_MOST_TOGETHER: Final = 64  # nodes of a machine whose gangs are in one process
_MOST_RANGES: Final = 32
_LAST_S: Final = (2**63 - 1) // 10**9  # Perfetto counts nanoseconds in 64 bits
_TURNS: Final = 1  # the thread of time slices
_REPLICA: Final = KINDS.index("replica")
_JOB_FACTS: Final = (
    "job", "attempt", "nodes", "node numbers", "user", "submit_s", "wait_s", "run_s", "estimate_s", "outcome",
)  # fmt: skip
_encode: Final = JSONEncoder(separators=(",", ":")).encode


def write_perfetto(runs: Sequence[Result], path: str | PathLike[str]) -> None:
    """Write runs to one trace for https://ui.perfetto.dev, a process each, on the clock of their workloads.

    A ``.gz`` file is compressed, to about a tenth; Perfetto tells the format by the content, whatever the name.

    Raises:
        OutputError: the file cannot be written.
        SpecificationError: a run with time sharing kept no history, or a time is beyond what Perfetto holds.
    """
    # Numbers of processes are above those of nodes: a thread with the number of its process would stand first.
    last = 10 ** len(str(max((run.machine.processors for run in runs), default=0)))
    trace = _Trace()
    for run in runs:
        if run.ledger.end > _LAST_S * TICKS_PER_SECOND:
            raise SpecificationError(
                f"to_perfetto: the run ends at {run.ledger.end / TICKS_PER_SECOND:g} s; "
                f"the format holds times up to {_LAST_S:g} s"
            )
        last = trace.add_run(run, last + 1)
    write_file(path, '{"traceEvents":[\n' + ",\n".join(trace.events) + "\n]}\n")


class _Trace:
    def __init__(self) -> None:
        self.events: list[str] = []  # encoded

    def add_run(self, run: Result, process: int) -> int:
        """Add a run from the number of its first process on; return that of its last."""
        records, label = run.records, visible(run.scenario.label)
        size = counted(run.machine.processors, run.scenario.unit)
        self._name_process(process, f"{label}: {visible(run.scenario.workload_name)} on {size}")
        self._name_thread(process, process, "events")
        self._count(process, "waiting", run.events.ticks, {"jobs": run.events.waiting})
        if run.slices is None:
            rates, gangs = rates_in_space(records, run.ledger), gangs_in_space(records)
        else:
            rates = rates_in_matrix(records, run.history, run.ledger)
            gangs = gangs_in_matrix(records, run.history, run.ledger.end)
            self._name_thread(process, _TURNS, "time slices")
            for begin, end, name, arguments in _turns(run.history, run.ledger.end):
                self._add_slice((process, _TURNS), begin, end, name=name, cat="time slice", args=arguments)
        self._count(process, "ledger", rates.ticks, {name: nodes for name, nodes in rates.nodes.items() if nodes.any()})
        for now, job, attempt, what in _instants(records, gangs):
            about = {"name": f"job {job} {what}", "cat": what, "args": {"job": job, "attempt": attempt}}
            self._add(ph="i", s="t", pid=process, tid=process, ts=now, **about)
        return self._add_gangs(run, gangs, process)

    def _add(self, **event: Any) -> None:
        self.events.append(_encode(event))

    def _name_process(self, process: int, name: str) -> None:
        """Name a process; processes stand in the order of their numbers."""
        self._add(ph="M", pid=process, tid=process, name="process_name", args={"name": name})
        self._add(ph="M", pid=process, tid=process, name="process_sort_index", args={"sort_index": process})

    def _name_thread(self, process: int, thread: int, name: str) -> None:
        self._add(ph="M", pid=process, tid=thread, name="thread_name", args={"name": name})

    def _count(self, process: int, name: str, ticks: IntArray, columns: Mapping[str, IntArray | FloatArray]) -> None:
        """Add the values of counters where they change; values hold from ticks on, shapes ``(times,)``."""
        changed = np.array([np.append(True, values[1:] != values[:-1])[: len(ticks)] for values in columns.values()])
        some = np.flatnonzero(changed.any(axis=0))
        rows = zip(*(values[some].tolist() for values in columns.values()), strict=True)
        for now, row, new in zip(ticks[some].tolist(), rows, changed.T[some].tolist(), strict=True):
            values = {key: value for key, value, differs in zip(columns, row, new, strict=True) if differs}
            self._add(ph="C", pid=process, ts=now, name=name, args=values)

    def _add_slice(self, thread: tuple[int, int], begin: int, end: int, **what: Any) -> None:
        self._add(ph="X", pid=thread[0], tid=thread[1], ts=begin, dur=end - begin, **what)

    def _add_gangs(self, run: Result, gangs: Sequence[GangPlacement], process: int) -> int:
        """Add a slice for each placement, with the facts of its job; return the number of the last process."""
        records, nodes, label = run.records, run.machine.processors, visible(run.scenario.label)
        together = nodes if nodes <= _MOST_TOGETHER else max(16, 1 << ((nodes - 1) // _MOST_RANGES).bit_length())
        processes: dict[tuple[int, int], int] = {}
        for row, number, node in sorted({(gang.row, gang.columns[0] // together, gang.columns[0]) for gang in gangs}):
            if (row, number) not in processes:
                process = processes[row, number] = process + 1
                of_row = "" if run.slices is None else f"row {row}, "
                last = min((number + 1) * together, nodes) - 1
                self._name_process(process, f"{label}: {of_row}nodes {number * together}-{last}")
            self._name_thread(process, node, f"node {node}")
        outcomes: list[list[str]] = [[] for _ in range(len(records))]
        for job, ended_as in zip(records.runs.job.tolist(), records.runs.ended_as.tolist(), strict=True):
            outcomes[job].append(Status(ended_as).label)
        ids, users = (records.column(name).tolist() for name in ("id", "user"))
        submit, start, worked, estimate = (records.column(name) for name in ("submit", "start", "worked", "estimate"))
        times = (np.column_stack([submit, start - submit, worked, estimate]) / TICKS_PER_SECOND).tolist()
        ordered = sorted(gangs, key=lambda gang: (gang.begin, gang.end))
        of_job = Counter(gang.job for gang in ordered if gang.kind != _REPLICA)
        shown: Counter[int] = Counter()
        for gang in ordered:
            job, node = gang.job, gang.columns[0]
            flow: dict[str, Any] = {}  # arrows between the placements of one job
            if gang.kind != _REPLICA and of_job[job] > 1:
                shown[job] += 1
                flow = {"bind_id": hex((process << 32) + job), "flow_in": shown[job] > 1, "flow_out": shown[job] < of_job[job]}
            facts = (ids[job], gang.attempt, count(gang.columns), text(gang.columns), users[job], *times[job])
            arguments = dict(zip(_JOB_FACTS, (*facts, outcomes[job][gang.attempt - 1]), strict=True))
            what = {"name": f"job {ids[job]}", "cat": KINDS[gang.kind], "args": arguments, **flow}
            self._add_slice((processes[gang.row, node // together], node), gang.begin, gang.end, **what)
        return process


def _turns(history: History, end: int) -> Iterator[tuple[int, int, str, dict[str, Any]]]:
    """Yield begin, end, name and arguments of time slices, those of a row that follow each other as one."""
    first = history.moments[0].ticks if history.moments else end
    merged = islice(_merged(history.slices(first, end, end)), MOST_TIME_SLICES + 1)
    turns: list[Any] = [(turn.begin, turn.end, (turn.row,), turn.gangs) for turn in merged]
    if len(turns) > MOST_TIME_SLICES:  # then the rows that take turns between two scheduling events are one
        ends = [moment.ticks for moment in history.moments[1:]] + [end]
        turns = [
            (moment.ticks, stop, rows, tuple(gang for row in rows for gang in moment.rows[row]))
            for moment, stop in zip(history.moments, ends, strict=True)
            if (rows := tuple(sorted(moment.rotation))) and stop > moment.ticks
        ]
    for begin, stop, rows, gangs in turns:
        names = ", ".join(map(str, rows))
        used = sum(gang.columns.bit_count() for gang in gangs) / len(rows)
        yield begin, stop, f"row{'s' * (len(rows) > 1)} {names}", {"rows": names, "gangs": len(gangs), "nodes in use": used}


def _merged(slices: Iterator[Slice]) -> Iterator[Slice]:
    """Yield slices, those of one row with the same gangs that follow each other as one."""
    merged = next(slices, None)
    if merged is None:
        return
    for following in slices:
        if (merged.end, merged.row, merged.gangs) == (following.begin, following.row, following.gangs):
            merged = merged._replace(end=following.end)
        else:
            yield merged
            merged = following
    yield merged


def _instants(records: JobRecords, gangs: Sequence[GangPlacement]) -> list[tuple[int, int, int, str]]:
    """Return preemptions, migrations and rejections: tick, id of the job, run attempt, and what happened."""
    ids, submit = records.column("id").tolist(), records.column("submit").tolist()
    rejected = np.flatnonzero(records.column("ended_as") == Status.REJECTED).tolist()
    happened = [(submit[job], ids[job], 0, Status.REJECTED.label) for job in rejected]
    attempts: Counter[int] = Counter()
    for stopped in records.each_stopped_run():
        attempts[stopped.job] += 1
        happened.append((stopped.end, ids[stopped.job], attempts[stopped.job], stopped.ended_as.label))
    home = sorted((gang for gang in gangs if gang.kind != _REPLICA), key=lambda gang: gang[:4])
    for before, after in pairwise(home):
        same_attempt = (before.job, before.attempt, before.end) == (after.job, after.attempt, after.begin)
        if same_attempt and before.columns != after.columns:
            happened.append((after.begin, ids[after.job], after.attempt, "migrated"))
    return sorted(happened)
