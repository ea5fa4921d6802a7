"""Time slices of a run, from the history of its Ousterhout matrix: which row runs when, with which gangs on which nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from clustermodel.measure.event_log import event_log
from clustermodel.recording.matrix_history import Cell, History
from clustermodel.schedule.node_set import from_mask

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result


class Slice(NamedTuple):
    """A time slice, in which one row of the Ousterhout matrix runs."""

    begin: int
    """Ticks."""
    end: int
    """Ticks: a quantum after the begin, or earlier if a scheduling event cuts the slice short.  Where events do not, what runs
    before an event and after it are two."""
    row: int
    gangs: tuple[Cell, ...]
    at_event: bool
    """Whether the slice begins with a scheduling event."""


def node_ranges(cell: Cell) -> list[tuple[int, int]]:
    """Return the contiguous ranges of a gang's nodes, as (lowest node, number of nodes)."""
    bounds = from_mask(cell.columns)
    return [(low, high - low) for low, high in zip(bounds[::2], bounds[1::2], strict=True)]


def running_row(history: History, ticks: int) -> int | None:
    """Return the row that runs at a time, ticks (at a boundary of slices: the later one); ``None`` if nothing runs."""
    moment = history.at(ticks)
    if not moment.rotation or ticks < moment.ticks:
        return None
    return moment.rotation[(moment.begun + ticks - moment.ticks) // history.quantum % len(moment.rotation)]


def waiting_at(run: Result, ticks: int) -> int:
    """Return the number of waiting jobs at a time within the run, ticks."""
    log = event_log(run.records, run.machine.processors)
    return int(log.waiting[np.searchsorted(log.ticks, ticks, side="right") - 1])


def slices_between(history: History, first: int, last: int, end: int) -> Iterator[Slice]:
    """Yield the slices that overlap a time interval and in which a gang runs, in order.

    Args:
        history: the states of the matrix.
        first: begin of the interval, ticks.
        last: end of the interval, ticks.
        end: end of the run, ticks.
    """
    moments, quantum = history.moments, history.quantum
    ends = [moment.ticks for moment in moments[1:]] + [end]
    for moment, stop in zip(moments, ends, strict=True):
        if moment.ticks >= last:
            return
        rotation = moment.rotation
        since = moment.ticks - moment.begun
        number = (max(first, moment.ticks) - since) // quantum
        begin = since + number * quantum
        while rotation and begin < min(stop, last) and first < stop:
            row = rotation[number % len(rotation)]
            yield Slice(max(begin, moment.ticks), min(begin + quantum, stop), row, moment.rows[row], at_event=not number)
            number, begin = number + 1, begin + quantum
