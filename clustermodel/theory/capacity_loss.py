"""Utilization and loss of capacity by the formulas of Zhang et al. 2003, section 2.3."""

from collections.abc import Iterable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import dot


def utilization(nodes: npt.ArrayLike, execution_s: npt.ArrayLike, last_finish_s: float, machine_nodes: int) -> float:
    """Return rho = sum_i n_i t^e_i / (t^f_m N), Zhang et al. 2003, eq. (1).

    Args:
        nodes: n_i, shape ``(jobs,)``.
        execution_s: t^e_i, seconds, shape ``(jobs,)``.
        last_finish_s: t^f_m, the last job's finish, seconds after the first arrival.
        machine_nodes: N.
    """
    work = dot(nodes, execution_s)
    return work / (last_finish_s * machine_nodes)


class EventInterval(Protocol):
    """The interval i between two scheduling events, as eq. (3) needs it; all times in one unit, which the caller chooses."""

    @property
    def length(self) -> int:
        """psi_{i+1} - psi_i."""

    @property
    def waiting(self) -> bool:
        """delta_i."""

    @property
    def held(self) -> tuple[int, ...]:
        """n_i of each row of the rotation, in the order in which the rows ran; empty if nothing ran."""

    @property
    def switching(self) -> tuple[tuple[int, int], ...]:
        """Nodes that a context switch holds up at the start of each row's slice, in the first lap and in later laps."""

    @property
    def migration(self) -> int:
        """Node time of migrations: eqs. (4) and (5)."""

    @property
    def up(self) -> int:
        """Number of nodes that are neither down nor reserved: such nodes are neither empty nor lost capacity."""

    @property
    def begun(self) -> int:
        """How long the first slice had run before psi_i: event i did not cut it short."""


def gang_capacity_loss(intervals: Iterable[EventInterval], quantum: int, switch: int, machine_nodes: int) -> float:
    """Return kappa of Zhang et al. 2003, eq. (3), slice by slice, for a machine whose nodes are shared in time.

    kappa = sum_i [e_i (psi_{i+1} - psi_i) + T CS s_i n_i] delta_i / (t^f_m N).  With several rows, e_i and n_i differ from
    slice to slice and are taken slice by slice; a slice that an event cuts short counts with the length, and the context
    switch, that it really had.  With ``charge="every-slice"`` all n_i nodes are held up by the switch, as in the paper;
    with ``"on-change"`` those of gangs that really switch.  The node time of migrations (eqs. (4), (5)) is lost capacity too.
    Where events do not cut slices short, the first slice of an interval is the rest of one, and ``migration`` has the switches.

    Args:
        intervals: what ran between consecutive scheduling events, without gaps.
        quantum: T.
        switch: T x CS.
        machine_nodes: N.

    Returns:
        kappa; ``nan`` without any time.
    """
    lost = total = 0
    for interval in intervals:
        total += interval.length
        if not interval.waiting:
            continue
        lost += interval.migration
        rows = len(interval.held)
        if not rows:
            lost += interval.up * interval.length
            continue
        slices, rest = divmod(interval.begun + interval.length, quantum)
        lost -= (interval.up - interval.held[0]) * interval.begun
        for place, (held, (first, later)) in enumerate(zip(interval.held, interval.switching, strict=True)):
            full = -(-max(slices - place, 0) // rows)  # complete slices of this row
            lost += full * (interval.up - held) * quantum
            lost += ((first + (full - 1) * later) if full else 0) * min(quantum, switch)
            if place == slices % rows:  # its slice was cut short by the event
                lost += (interval.up - held) * rest + (later if full else first) * min(rest, switch)
    return lost / (total * machine_nodes) if total else float("nan")


def capacity_loss(event_s: npt.ArrayLike, empty: npt.ArrayLike, waiting: npt.ArrayLike, machine_nodes: int) -> float:
    """Return kappa = sum_i e_i (psi_{i+1} - psi_i) delta_i / (t^f_m N): Zhang et al. 2003, eq. (2), space sharing.

    Args:
        event_s: psi_i, ascending, seconds after the first arrival; the last one is t^f_m.  Shape ``(events,)``.
        empty: e_i, nodes left empty from event i on, shape ``(events,)``.
        waiting: jobs (or truth values) waiting from event i on: delta_i is whether there are any; shape ``(events,)``.
        machine_nodes: N.

    Returns:
        kappa; ``nan`` without any time.

    Raises:
        ValueError: the arrays differ in length, or the events are not in order.
    """
    times = np.asarray(event_s, dtype=float)
    nodes = np.asarray(empty, dtype=float)
    delta = np.asarray(waiting) > 0
    if not len(times) == len(nodes) == len(delta):
        raise ValueError(f"event_s, empty, waiting: lengths {len(times)}, {len(nodes)}, {len(delta)} must be equal")
    lengths = np.diff(times)
    if (lengths < 0).any():
        raise ValueError("event_s: event times must be in ascending order")
    lost = float(np.sum(nodes[:-1] * lengths * delta[:-1]))
    span = float(times[-1] - times[0]) if len(times) else 0.0
    return lost / (span * machine_nodes) if span else float("nan")
