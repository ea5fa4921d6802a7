"""How much of a machine's limited resources is in use over time: the memory of its nodes, and its checkpoint store."""

from __future__ import annotations

from typing import Final

import numpy as np

from clustermodel.arrays import FloatArray, IntArray
from clustermodel.machine import CheckpointStore, Machine
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import Account

_TRANSFERS: Final = [list(Account).index(account) for account in (Account.CHECKPOINT, Account.RESTART)]
SHARE_OF: Final = {"node_memory_gib": "memory_share", "checkpointing": "store_share"}
"""Columns of shares, by the field of :class:`~clustermodel.machine.Machine` that limits what is shared."""


def shares_over_time(records: JobRecords, machine: Machine, ticks: IntArray) -> dict[str, FloatArray]:
    """Return the columns of :attr:`~clustermodel.experiment.result.Result.states` for the resources that are limited.

    Args:
        records: of the run.
        machine: of the run.
        ticks: times of all scheduling events, ascending, shape ``(events,)``.

    Returns:
        ``memory_share`` where the memory of nodes is limited, and ``store_share`` where the checkpoint store has a bandwidth:
        shares in use from each event on, shapes ``(events,)``.
    """
    shares = {}
    if machine.node_memory is not None:
        shares[SHARE_OF["node_memory_gib"]] = memory_share(records, machine.nodes * machine.node_memory, ticks)
    store = machine.checkpointing.store
    if store is not None and store.bandwidth is not None:
        shares[SHARE_OF["checkpointing"]] = _store_share(records, store, store.bandwidth, ticks)
    return shares


def memory_share(records: JobRecords, memory: int, ticks: IntArray) -> FloatArray:
    """Return the share of the memory that running and suspended jobs have from each event until the next, shape ``(events,)``.

    It is the mean where it changes in between: where nodes are shared in time, a gang that is restored on other nodes leaves
    its memory on the old ones between two events.

    Args:
        records: of the run.
        memory: of all nodes, KiB.
        ticks: times of all scheduling events, ascending.
    """
    log = records.memory.in_use
    known = np.append(0, log.kib)  # nothing is in use before the first change
    share: FloatArray = known[np.searchsorted(log.ticks, ticks, side="right")] / memory
    between = np.flatnonzero(~np.isin(log.ticks, ticks))
    for tick, change in zip(log.ticks[between].tolist(), np.diff(known)[between].tolist(), strict=True):
        event = int(np.searchsorted(ticks, tick)) - 1
        if 0 <= event < len(ticks) - 1:
            share[event] += change / memory * float((ticks[event + 1] - tick) / (ticks[event + 1] - ticks[event]))
    return share


def _store_share(records: JobRecords, store: CheckpointStore, bandwidth: int, ticks: IntArray) -> FloatArray:
    """Return the share of the store's bandwidth that transfers use from each event on, shape ``(events,)``.

    The records say which gangs hold their nodes for a transfer, and so how many tasks are written or read at a time.  They use
    all of the bandwidth, unless the bandwidth of their nodes is less.

    Args:
        records: of the run, on dedicated nodes.
        store: its bandwidth of a node, and how many tasks of a gang it takes at a time.
        bandwidth: of the store, bytes a second.
        ticks: times of all scheduling events, ascending; transfers begin and end at scheduling events.
    """
    held = records.overheads
    moving = np.isin(held.account, _TRANSFERS)
    tasks = held.nodes[moving]
    if store.max_concurrent_tasks is not None:
        tasks = np.minimum(tasks, store.max_concurrent_tasks)
    changes = np.zeros(len(ticks), dtype=np.int64)
    np.add.at(changes, np.searchsorted(ticks, held.start[moving]), tasks)
    np.add.at(changes, np.searchsorted(ticks, held.end[moving]), -tasks)
    at_the_store = np.cumsum(changes)
    if store.node_bandwidth is None:
        return (at_the_store > 0).astype(np.float64)
    share: FloatArray = np.minimum(at_the_store * (store.node_bandwidth / bandwidth), 1.0)
    return share
