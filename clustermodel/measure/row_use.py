"""Rows of the Ousterhout matrix in use, context switches, and nodes that are idle while gangs of other rows are stopped.

Such nodes count as lost capacity only while a job waits (Zhang et al. 2003, eq. (3)).  Time sharing leaves few jobs waiting,
so most of this idle time is outside of kappa, though it slows gangs down: a gang that has a row of several to itself runs no
faster than one that shares its row.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from clustermodel.recording.ledger import Amount
from clustermodel.recording.matrix_history import LoggedRotation


class RowUse(NamedTuple):
    """How the rows of the Ousterhout matrix were used in a run."""

    mean_rows: float
    """Mean number of rows in use, over the time in which a gang is in the matrix; ``nan`` if none ever is."""
    idle_beside_stopped: Amount
    """Node-ticks of nodes that are idle in the running row while gangs of other rows are stopped; part of the idle account."""


class SwitchCount(NamedTuple):
    """Context switches, counted once for each node that a switch holds up."""

    begun: int
    cut: int
    """Those that the next scheduling event cut short."""


def switch_count(rotations: Iterable[LoggedRotation], quantum: int, switch: int) -> SwitchCount:
    """Return how many context switches there were, and how many of them events cut short and so started over.

    Args:
        rotations: of a run whose events end the running slice, from its slice log.
        quantum: length of a time slice, ticks.
        switch: length of a context switch, ticks.
    """
    begun = cut = 0
    for rotation in rotations:
        rows = len(rotation.held)
        if not rows:
            continue
        full, rest = divmod(rotation.length, quantum)
        slices = full + (rest > 0)
        for place, (first, later) in enumerate(rotation.switching[:slices]):
            begun += first + (-(-(slices - place) // rows) - 1) * later
        if 0 < rest < switch:
            cut += rotation.switching[full % rows][full >= rows]
    return SwitchCount(begun, cut)


def row_use(rotations: Iterable[LoggedRotation], quantum: int) -> RowUse:
    """Return how the rows were used.

    Args:
        rotations: of the run, from its slice log.
        quantum: length of a time slice, ticks.
    """
    used = in_rows = 0
    idle = {False: 0, True: 0}
    for rotation in rotations:
        rows = len(rotation.held)
        if not rows:
            continue
        used += rotation.length
        in_rows += rows * rotation.length
        if rows == 1:
            continue
        laps, rest = divmod(rotation.begun + rotation.length, rows * quantum)
        idle[rotation.waiting] -= (rotation.up - rotation.held[0]) * rotation.begun
        for place, held in enumerate(rotation.held):
            length = laps * quantum + min(max(rest - place * quantum, 0), quantum)
            idle[rotation.waiting] += (rotation.up - held) * length
    return RowUse(in_rows / used if used else float("nan"), Amount(queue_empty=idle[False], job_waiting=idle[True]))
