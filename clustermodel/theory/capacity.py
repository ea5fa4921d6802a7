"""Utilization and loss of capacity by the formulas of 002 (002_8335dd3215a2768d.txt, section 2.3)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def utilization(nodes: npt.ArrayLike, execution_s: npt.ArrayLike, last_finish_s: float, machine_nodes: int) -> float:
    """Return rho = sum_i n_i t^e_i / (t^f_m N), 002 eq. (1).

    Args:
        nodes: n_i, shape ``(jobs,)``.
        execution_s: t^e_i, seconds, shape ``(jobs,)``.
        last_finish_s: t^f_m, the last job's finish, seconds after the first arrival.
        machine_nodes: N.
    """
    work = float(np.dot(np.asarray(nodes, dtype=float), np.asarray(execution_s, dtype=float)))
    return work / (last_finish_s * machine_nodes)


def capacity_loss(event_s: npt.ArrayLike, empty: npt.ArrayLike, waiting: npt.ArrayLike, machine_nodes: int) -> float:
    """Return kappa = sum_i e_i (psi_{i+1} - psi_i) delta_i / (t^f_m N), 002 eq. (2), for space sharing.

    Args:
        event_s: psi_i, ascending, seconds after the first arrival; the last one is t^f_m.  Shape ``(events,)``.
        empty: e_i, nodes left empty from event i on, shape ``(events,)``.
        waiting: jobs (or truth values) waiting from event i on: delta_i is whether there are any; shape ``(events,)``.
        machine_nodes: N.

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
    return lost / (float(times[-1] - times[0]) * machine_nodes)
