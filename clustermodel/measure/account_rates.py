"""The capacity ledger over time: how many nodes were charged to each account, from event to event.

Node-seconds per second are nodes; integrated over time, each curve is the amount in the ledger.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from clustermodel.arrays import FloatArray, IntArray
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import CHARGED, Account, Ledger
from clustermodel.recording.matrix_history import History
from clustermodel.recording.run_attempts import UNKNOWN

WORK: Final = "work"
"""Useful and lost work together: where nodes are shared in time, which work is lost is known when a run attempt ends."""


class AccountRates(NamedTuple):
    """Nodes by account over time."""

    ticks: IntArray
    """When the values hold from, ascending, the end of the run last; shape ``(times,)``."""
    nodes: dict[str, IntArray | FloatArray]
    """Account -> nodes charged to it from then on, each of shape ``(times,)``; 0 at the end."""


def rates_in_space(records: JobRecords, ledger: Ledger) -> AccountRates:
    """Return the accounts over time of a run on dedicated nodes, exactly.

    Work that is discarded later is *lost* while it is executed.
    """
    runs, held = records.runs, records.overheads
    ended = runs.end != UNKNOWN
    lost = list(_lost_intervals(records))
    begins, ends, widths = np.array(lost, dtype=np.int64).reshape(-1, 3).T
    outages = records.outages
    fails = outages.start.clip(ledger.start, ledger.end)
    repaired = np.where(outages.end == UNKNOWN, ledger.end, outages.end).clip(ledger.start, ledger.end)
    changes = [  # when each begins and ends, nodes, account
        (runs.start[ended], runs.end[ended], runs.nodes[ended], Account.USEFUL, Account.IDLE),
        (begins, ends, widths, Account.LOST, Account.USEFUL),
        (fails, repaired, np.ones_like(fails), Account.DOWN, Account.IDLE),
        *(
            (held.start[of], held.end[of], held.nodes[of], account, Account.USEFUL)
            for position, account in enumerate(Account)
            if (of := held.account == position).any()
        ),
    ]
    bounds = [np.array([ledger.start, ledger.end])]
    ticks = np.unique(np.concatenate([*bounds, *(times for begin, end, *_ in changes for times in (begin, end))]))
    nodes = {account: np.zeros(len(ticks), dtype=np.int64) for account in Account}
    nodes[Account.IDLE][0] = ledger.nodes
    nodes[Account.IDLE][-1] -= ledger.nodes
    for begin, end, width, account, instead_of in changes:
        for at, sign in ((np.searchsorted(ticks, begin), 1), (np.searchsorted(ticks, end), -1)):
            np.add.at(nodes[account], at, sign * width)
            np.add.at(nodes[instead_of], at, -sign * width)
    return AccountRates(ticks, {account.value: np.cumsum(change) for account, change in nodes.items()})


def _lost_intervals(records: JobRecords) -> Iterator[tuple[int, int, int]]:
    """Yield when work was executed that was discarded later: begin, end (ticks) and nodes."""
    runs, held = records.runs, records.overheads
    concerned = np.unique(runs.job[runs.lost > 0])
    overheads: dict[int, list[tuple[int, int]]] = {}
    for at in np.flatnonzero(np.isin(held.job, concerned)).tolist():
        overheads.setdefault(int(held.job[at]), []).append((int(held.start[at]), int(held.end[at])))
    executed: dict[int, list[tuple[int, int, int]]] = {}  # index of a job -> what it has executed and not lost, by time
    for at in np.flatnonzero(np.isin(runs.job, concerned)).tolist():
        job, begin, end, nodes, lost = (int(column[at]) for column in (runs.job, runs.start, runs.end, runs.nodes, runs.lost))
        kept = executed.setdefault(job, [])
        for first, last in overheads.get(job, []):
            if begin <= first and last <= end:
                kept.append((begin, first, nodes))
                begin = last
        kept.append((begin, end, nodes))
        while lost > 0:  # the work executed last
            first, last, nodes = kept.pop()
            if last - first > lost:
                kept.append((first, last - lost, nodes))
                first = last - lost
            lost -= last - first
            yield first, last, nodes


def rates_in_matrix(history: History, ledger: Ledger) -> AccountRates:
    """Return the accounts over time of a run with time sharing: means from one scheduling event to the next.

    Useful and lost work are one account, :data:`WORK`.
    """
    moments = history.moments
    ticks = [ledger.start, *(moment.ticks for moment in moments), ledger.end]
    charged = {
        account: [0, *(sum(moment.ledger[account]) for moment in moments), sum(ledger.amount(account))] for account in CHARGED
    }
    lengths = np.diff(np.array(ticks, dtype=np.int64))
    some = np.flatnonzero(lengths)
    rates: dict[str, IntArray | FloatArray] = {}
    work = np.full(len(some), float(ledger.nodes))
    for account, amounts in charged.items():
        mean = np.array([(amounts[at + 1] - amounts[at]) / int(lengths[at]) for at in some.tolist()], dtype=np.float64)
        work -= mean
        rates[account.value] = np.append(mean, 0.0)
    work[np.abs(work) < ledger.nodes * np.finfo(np.float64).eps * len(CHARGED)] = 0  # the rounding of a difference
    begins = np.array(ticks, dtype=np.int64)[:-1][some]
    return AccountRates(np.append(begins, ledger.end), {WORK: np.append(work, 0.0), **rates})
