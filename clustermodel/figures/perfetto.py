"""Runs as a Perfetto trace, to be looked at in https://ui.perfetto.dev: gangs on nodes, time slices, the queue, the ledger.

Each run is a process.  A gang is one slice, on the track of its lowest node: gangs that hold nodes at the same time hold
different ones, so slices of a track never overlap.  With time sharing each row of the Ousterhout matrix has such tracks.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clustermodel.errors import counted, visible
from clustermodel.figures.perfetto_packets import Event, Packets
from clustermodel.figures.time_slices import Slice, slices_between
from clustermodel.measure.account_rates import AccountRates, rates_in_matrix, rates_in_space
from clustermodel.measure.timeline import KINDS, GangPlacement, gangs_in_matrix, gangs_in_space
from clustermodel.output_files import replacing
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.matrix_history import Cell, History
from clustermodel.recording.run_attempts import Status
from clustermodel.schedule.node_set import count, text

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result

MOST_TIME_SLICES: Final = 200_000
"""If a run has more time slices, all rows that take turns between two scheduling events are one slice of the trace."""
_MOST_TRACKS: Final = 64  # without headings of node ranges
_MOST_RANGES: Final = 32
_JOB_FACTS: Final = (
    "job", "attempt", "nodes", "node numbers", "user", "submit_s", "wait_s", "run_s", "estimate_s", "outcome",
)  # fmt: skip
_EVENT_FACTS: Final = ("job", "attempt")
_SLICE_FACTS: Final = ("rows", "gangs", "nodes in use")


def write_perfetto(runs: Sequence[Result], path: str | PathLike[str]) -> None:
    """Write runs to one Perfetto trace, on the clock of their workloads.

    Args:
        runs: a process each.
        path: the file; ``.gz`` is compressed.

    Raises:
        OutputError: the file cannot be written.
        SpecificationError: the package perfetto is missing, a run with time sharing kept no history, or a time is beyond what
            the format holds.
    """
    packets = Packets()
    for run in runs:
        _add_run(packets, run)
    with replacing(path) as file:
        if Path(path).suffix != ".gz":
            packets.write(file)
            return
        with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as compressed:
            packets.write(compressed)  # type: ignore[arg-type]


def _add_run(packets: Packets, run: Result) -> None:
    records, nodes = run.records, run.machine.processors
    label, workload = visible(run.scenario.label), visible(run.scenario.workload_name)
    size = counted(nodes, run.scenario.unit)
    process = packets.process(f"{label}: {size}", f"{workload} on {size} under {label}")
    events = run.events
    packets.counter(process, "waiting jobs", 0, "jobs", events.ticks, events.waiting)
    if run.slices is None:
        _add_accounts(packets, process, rates_in_space(records, run.ledger))
        placements = gangs_in_space(records)
        _add_gangs(packets, records, placements, _NodeTracks(packets, process, nodes, first_rank=4))
    else:
        history = run.history
        _add_accounts(packets, process, rates_in_matrix(history, run.ledger))
        turns = packets.track(process, "time slices", 3, description="which row of the Ousterhout matrix runs")
        packets.slices(_turns(turns, history, run.ledger.end))
        placements = gangs_in_matrix(records, history, run.ledger.end)
        rows = sorted({gang.row for gang in placements})
        tracks = {row: _NodeTracks(packets, packets.track(process, f"row {row}", 4 + row), nodes, first_rank=0) for row in rows}
        _add_gangs(packets, records, placements, lambda gang: tracks[gang.row](gang))
    _add_events(packets, process, records, placements)


def _add_accounts(packets: Packets, process: int, rates: AccountRates) -> None:
    heading = packets.track(process, "ledger", 1, description="node-seconds per second by account")
    for rank, (account, nodes) in enumerate(rates.nodes.items()):
        if nodes.any():
            packets.counter(heading, account, rank, "nodes", rates.ticks, nodes)


class _NodeTracks:
    """The tracks of gangs by their lowest node, under headings of node ranges where there are many; made when used.

    Args:
        packets: of the trace.
        parent: uuid of the process or track under which they stand.
        nodes: size of the machine.
        first_rank: place of the first track under the parent.
    """

    def __init__(self, packets: Packets, parent: int, nodes: int, *, first_rank: int) -> None:
        self._packets = packets
        self._parent = parent
        self._nodes = nodes
        self._first_rank = first_rank
        self._range = nodes if nodes <= _MOST_TRACKS else max(16, 1 << ((nodes - 1) // _MOST_RANGES).bit_length())
        self._headings: dict[int, int] = {}
        self._tracks: dict[int, int] = {}

    def __call__(self, gang: GangPlacement) -> int:
        """Return the uuid of the track of a gang."""
        node = gang.columns[0]
        track = self._tracks.get(node)
        if track is None:
            number = node // self._range
            parent, rank = self._heading(number), node - number * self._range
            track = self._tracks[node] = self._packets.track(
                parent, f"node {node}", rank, description=f"gangs whose lowest node is {node}"
            )
        return track

    def _heading(self, number: int) -> int:
        heading = self._headings.get(number)
        if heading is None:
            first, last = number * self._range, min((number + 1) * self._range, self._nodes) - 1
            heading = self._headings[number] = self._packets.track(
                self._parent, f"nodes {first}-{last}" if last > first else f"node {first}", self._first_rank + number
            )
        return heading


def _add_gangs(
    packets: Packets, records: JobRecords, placements: Sequence[GangPlacement], track_of: Callable[[GangPlacement], int]
) -> None:
    """Add a slice for each placement, with the facts of its job; arrows connect the placements of one job."""
    outcomes: list[list[str]] = [[] for _ in range(len(records))]
    runs = records.runs
    for job, ended_as in zip(runs.job.tolist(), runs.ended_as.tolist(), strict=True):
        outcomes[job].append(Status(ended_as).label)
    ids, users = (records.column(name).tolist() for name in ("id", "user"))
    submit, start, run, estimate = (records.seconds(name) for name in ("submit", "start", "worked", "estimate"))
    facts = list(zip(submit.tolist(), (start - submit).tolist(), run.tolist(), estimate.tolist(), strict=True))
    replica = KINDS.index("replica")
    last: dict[int, GangPlacement] = {}
    several: dict[int, int] = {}  # index of a job with several placements -> number of its flow
    for gang in sorted(placements, key=lambda gang: (gang.begin, gang.end)):
        if gang.kind == replica:
            continue
        if gang.job in last and gang.job not in several:
            several[gang.job] = packets.flow()
        last[gang.job] = gang
    packets.slices(
        [
            Event(
                track_of(gang),
                gang.begin,
                gang.end,
                f"job {ids[gang.job]}",
                KINDS[gang.kind],
                (
                    ids[gang.job],
                    gang.attempt,
                    count(gang.columns),
                    text(gang.columns),
                    users[gang.job],
                    *facts[gang.job],
                    outcomes[gang.job][gang.attempt - 1],
                ),
                _JOB_FACTS,
                0 if gang.kind == replica else several.get(gang.job, 0),
                last_of_flow=last.get(gang.job) is gang,
            )
            for gang in placements
        ]
    )


def _turns(track: int, history: History, end: int) -> list[Event]:
    """Return the time slices, those of one row that follow each other as one; or whole rotations if there are too many."""
    first = history.moments[0].ticks
    slices = list(islice(_merged(slices_between(history, first, end, end)), MOST_TIME_SLICES + 1))
    if len(slices) <= MOST_TIME_SLICES:
        return [_turn(track, one.begin, one.end, (one.row,), one.gangs) for one in slices]
    ends = [moment.ticks for moment in history.moments[1:]] + [end]
    return [
        _turn(track, moment.ticks, stop, rows, [gang for row in rows for gang in moment.rows[row]])
        for moment, stop in zip(history.moments, ends, strict=True)
        if (rows := tuple(sorted(moment.rotation))) and stop > moment.ticks
    ]


def _turn(track: int, begin: int, end: int, rows: Sequence[int], gangs: Sequence[Cell]) -> Event:
    names = ", ".join(map(str, rows))
    label = f"row {names}" if len(rows) == 1 else f"rows {names}"
    held = sum(gang.columns.bit_count() for gang in gangs)
    return Event(track, begin, end, label, "time slice", (names, len(gangs), held / len(rows)), _SLICE_FACTS)


def _merged(slices: Iterator[Slice]) -> Iterator[Slice]:
    """Yield slices, those of one row with the same gangs that follow each other as one."""
    last: Slice | None = None
    for one in slices:
        if last is not None and (last.end, last.row, last.gangs) == (one.begin, one.row, one.gangs):
            last = last._replace(end=one.end)
            continue
        if last is not None:
            yield last
        last = one
    if last is not None:
        yield last


def _add_events(packets: Packets, process: int, records: JobRecords, placements: Sequence[GangPlacement]) -> None:
    """Add an instant for each preemption, migration and rejection."""
    ids, submit = records.column("id").tolist(), records.column("submit").tolist()
    happened = [(ticks, ids[job], attempt, what) for job, attempt, ticks, what in (*_stops(records), *_migrations(placements))]
    rejected = (records.column("ended_as") == Status.REJECTED).nonzero()[0].tolist()
    happened += [(submit[job], ids[job], 0, Status.REJECTED.label) for job in rejected]
    if happened:
        track = packets.track(process, "events", 2, description="preemptions, migrations and rejections")
        packets.instants(
            [
                Event(track, ticks, ticks, f"job {job} {what}", what, (job, attempt), _EVENT_FACTS)
                for ticks, job, attempt, what in sorted(happened)
            ]
        )


def _stops(records: JobRecords) -> Iterator[tuple[int, int, int, str]]:
    """Yield index of the job, number of the run attempt, ticks and what happened, where jobs returned to the queue."""
    attempts: Counter[int] = Counter()
    for stopped in records.each_stopped_run():
        attempts[stopped.job] += 1
        yield stopped.job, attempts[stopped.job], stopped.end, stopped.ended_as.label


def _migrations(placements: Sequence[GangPlacement]) -> Iterator[tuple[int, int, int, str]]:
    """Yield the same where gangs went on on other nodes."""
    replica = KINDS.index("replica")
    home = sorted((gang for gang in placements if gang.kind != replica), key=lambda gang: gang[:4])
    for before, after in pairwise(home):
        if (before.job, before.attempt, before.end) == (
            after.job,
            after.attempt,
            after.begin,
        ) and before.columns != after.columns:
            yield after.job, after.attempt, after.begin, "migrated"
