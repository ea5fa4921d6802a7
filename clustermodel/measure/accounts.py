"""The accounts of a ledger as columns of a table: node-seconds, and shares of the capacity."""

from __future__ import annotations

from typing import Final

from clustermodel.recording.ledger import OVERHEADS, Account, Ledger
from clustermodel.ticks import TICKS_PER_SECOND


def account_column(account: Account, unit: str) -> str:
    """Return the name of the column of an account.

    Args:
        account: of the ledger.
        unit: ``"node_s"``, node-seconds; ``"share"``, share of the capacity; or ``"waiting_share"``, share of the capacity
            while a job waited, which only overheads and idle time have.
    """
    return f"{account.value.replace(' ', '_')}_{unit}"


def account_columns(ledger: Ledger) -> dict[str, float | None]:
    """Return the columns of all accounts; shares are ``None`` for a run without any length.

    The shares of all accounts sum to 1; the shares while a job waited sum to kappa, the loss of capacity (Zhang et al. 2003,
    eqs. (2) and (3)).
    """
    capacity = ledger.capacity
    columns: dict[str, float | None] = {}
    for account in Account:
        amount = ledger.amount(account)
        columns[account_column(account, "node_s")] = sum(amount) / TICKS_PER_SECOND
        columns[account_column(account, "share")] = sum(amount) / capacity if capacity else None
        if account in OVERHEADS:
            columns[account_column(account, "waiting_share")] = amount.job_waiting / capacity if capacity else None
    return columns


ACCOUNT_COLUMNS: Final = tuple(account_columns(Ledger(1)))
"""The names of all columns."""
