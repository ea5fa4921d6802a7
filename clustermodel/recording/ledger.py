"""The capacity ledger: every node-tick of a run is charged to exactly one account.

Idle time and every overhead are split by whether a job was waiting, because only then they count as lost capacity (delta in
Zhang et al. 2003, eqs. (2) and (3)).  The amounts are Python integers, so the books balance exactly.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from clustermodel.errors import LedgerError, counted
from clustermodel.text.formatting import duration, html_table, time_unit
from clustermodel.ticks import ratio, to_seconds

if TYPE_CHECKING:
    import pandas as pd


class Account(StrEnum):
    """An account of node time."""

    USEFUL = "useful"
    """Useful work, including that of jobs killed at their wall-time limit (the archive's convention)."""
    LOST = "lost"
    """Discarded work: of jobs that a policy killed, whether they are restarted or not, of runs stopped at a time limit, and
    what a job had executed since its last checkpoint when one of its nodes failed."""
    CONTEXT_SWITCH = "context switch"
    CHECKPOINT = "checkpoint"
    RESTART = "restart"
    RESIZE = "resize"
    """Changes of the number of a gang's nodes."""
    BOOT = "boot"
    """Of nodes that boot, which were switched off, for the gang that has them."""
    STARTUP = "startup"
    """Of a gang that has its nodes and does not execute yet: prolog, image, launch."""
    EPILOG = "epilog"
    """Of a gang that has executed, until its nodes are free."""
    BLOCKED = "blocked"
    """Held by a gang that waits for another gang's checkpoint, for the checkpoint store, or until its other nodes are on."""
    IDLE = "idle"
    DOWN = "down"
    """Of failed nodes under repair.  Not part of kappa, the loss caused by a scheduler; see also
    :attr:`Ledger.capacity_loss_with_outages`."""
    RESERVED = "reserved"
    """Of idle nodes while a reservation keeps them free.  Not lost capacity."""
    OFF = "off"
    """Of idle nodes that are switched off."""


WHILE_HELD = (
    Account.CONTEXT_SWITCH, Account.CHECKPOINT, Account.RESTART, Account.RESIZE, Account.BOOT, Account.STARTUP, Account.EPILOG,
    Account.BLOCKED,
)  # fmt: skip
"""Accounts of nodes that a gang holds and on which it does not execute; figures and tables show them in this order."""
OVERHEADS = (*WHILE_HELD, Account.IDLE, Account.OFF)
"""Accounts that count as lost capacity while a job waits."""
CHARGED = (*OVERHEADS, Account.DOWN, Account.RESERVED)  # charged as time passes; work is charged when a run attempt ends


class Amount(NamedTuple):
    """Node-ticks of one account, by whether a job was waiting."""

    queue_empty: int
    job_waiting: int


class _Bound:
    """A time at which the books may begin, or end."""

    __slots__ = ("amounts", "jobs", "ticks")

    def __init__(self, ticks: int, amounts: dict[Account, list[int]]) -> None:
        self.ticks, self.amounts = ticks, amounts  # what had been charged by then, but for work
        self.jobs = 0  # that were submitted then, without those that have been rejected since


class Ledger:
    """The books of one run, to the last end from the first submission (t = 0 in Zhang et al. 2003) of a job not rejected."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.start = 0  # first submission, ticks
        self.end = 0  # last end, ticks
        self._amounts = {account: [0, 0] for account in Account}
        self._idle_ticks = self._amounts[Account.IDLE]  # updated at every instant
        self._useful, self._lost = self._amounts[Account.USEFUL], self._amounts[Account.LOST]  # and at every end
        self._held: dict[Account, int] = {}  # overhead -> nodes held for it now
        self._since = -1
        self._idle = nodes
        # Where jobs may be rejected that have been submitted long before: when jobs were submitted before any had started, how
        # many of these are not rejected, and what had been charged by then.  And when the last gang has ended, likewise.
        self._beginnings: list[_Bound] = []
        self._last_end: _Bound | None = None
        self.is_cut = False  # whether times were charged before the books began, or after their end, perhaps
        self._before: dict[Account, list[int]] = {}  # what had been charged when the books began
        self.waiting = False  # whether a job has been waiting since the last settled instant

    def settle(self, now: int, idle: int, waiting: bool) -> None:
        """Charge the time since the last instant to *idle* and to what is held, then set the state from ``now`` on.

        ``idle`` nodes are held by no gang, those that are down included.
        """
        if self._since >= 0:
            passed = now - self._since
            self._idle_ticks[self.waiting] += self._idle * passed
            if self._held:
                for account, nodes in self._held.items():
                    self._amounts[account][self.waiting] += nodes * passed
        else:
            self.start = now
        self._since = now
        self._idle = idle
        self.waiting = waiting

    def submitted(self, now: int, idle: int) -> None:
        """Note that a job is submitted that may still be rejected, before any has started; ``idle`` nodes: as to settle."""
        self.is_cut = True
        self.settle(now, idle, self.waiting)
        if not self._beginnings or self._beginnings[-1].ticks != now:
            self._beginnings.append(_Bound(now, self._passed()))
        self._beginnings[-1].jobs += 1

    def first_started(self, submitted: int) -> None:
        """Note when the first jobs were submitted of those that start first: the books begin then, if not earlier."""
        while self._beginnings and self._beginnings[-1].ticks > submitted:
            self._beginnings.pop()

    def rejected(self, submitted: int) -> None:
        """Note that a job is rejected, and when it was submitted."""
        for bound in self._beginnings:
            bound.jobs -= bound.ticks == submitted

    def emptied(self, now: int) -> None:
        """Note that no gang runs from the settled instant ``now`` on."""
        self._last_end = _Bound(now, self._passed())

    def _passed(self) -> dict[Account, list[int]]:
        return {account: self._amounts[account].copy() for account in CHARGED}

    def _cut(self) -> None:
        """Let the books extend from the first submission of a job that is not rejected to the last end."""
        first, last = next((bound for bound in self._beginnings if bound.jobs), None), self._last_end
        if first is None or last is None:
            self.start = self._since = 0
            self._amounts = {account: [0, 0] for account in Account}
            return
        self.start, self._since, self._before = first.ticks, last.ticks, first.amounts
        for account, before in first.amounts.items():
            self._amounts[account] = [end - begin for end, begin in zip(last.amounts[account], before, strict=True)]

    def from_start(self, account: Account, amount: Amount) -> Amount:
        """Return what has been charged since the books began, of what had been charged at some time during the run."""
        empty, waiting = self._before.get(account, (0, 0))
        return Amount(amount.queue_empty - empty, amount.job_waiting - waiting)

    def hold(self, now: int, account: Account, nodes: int) -> None:
        """Charge ``nodes`` more, or fewer if negative, to an overhead or an outage from ``now`` on."""
        if self._since >= 0:
            self.settle(now, self._idle, self.waiting)
        self._held[account] = self._held.get(account, 0) + nodes

    def charge(self, account: Account, node_ticks: int, *, waiting: bool = False) -> None:
        """Charge ``node_ticks`` to an account of time that passes, by whether a job was waiting."""
        self._amounts[account][waiting] += node_ticks

    def charge_idle(self, node_ticks: int, waiting: bool) -> None:
        """Charge ``node_ticks`` of idle nodes, as :meth:`charge` does, without a search for the account."""
        self._idle_ticks[waiting] += node_ticks

    def charge_work(self, useful: int, discarded: int) -> None:
        """Charge the node-ticks executed by a completed run attempt, or move work between accounts."""
        self._useful[0] += useful
        self._lost[0] += discarded

    def close(self) -> None:
        """End the books at the last settled instant.

        Raises:
            LedgerError: the accounts do not add up to nodes x horizon.
        """
        if self.is_cut:
            self._cut()
        self.end = max(self._since, 0)
        total = sum(map(sum, self._amounts.values()))
        if total != self.capacity:
            raise LedgerError(
                f"the ledger's accounts sum to {total} node-ticks, but {self.nodes} nodes x {self.end - self.start} "
                f"ticks are {self.capacity}: {self!r}"
            )

    @property
    def capacity(self) -> int:
        """Nodes x horizon, node-ticks."""
        return self.nodes * (self.end - self.start)

    def amount(self, account: Account) -> Amount:
        """Return what has been charged to ``account``, node-ticks."""
        return Amount(*self._amounts[account])

    @property
    def utilization(self) -> float:
        """rho: useful work per capacity (Zhang et al. 2003, eq. (1)); ``nan`` for an empty horizon."""
        return self.share(Account.USEFUL)

    @property
    def waste(self) -> float:
        """Discarded work per capacity; ``nan`` for an empty horizon."""
        return self.share(Account.LOST)

    @property
    def down_share(self) -> float:
        """Node time of outages per capacity; ``nan`` for an empty horizon."""
        return self.share(Account.DOWN)

    @property
    def capacity_loss(self) -> float:
        """kappa: idle nodes and overheads while a job waits, per capacity (Zhang et al. 2003, eqs. (2), (3))."""
        return self._lost_while_waiting(OVERHEADS)

    @property
    def capacity_loss_with_outages(self) -> float:
        """Kappa plus the nodes that were down while a job waited: the loss by the machine and its scheduler together."""
        return self._lost_while_waiting((*OVERHEADS, Account.DOWN))

    def _lost_while_waiting(self, accounts: Collection[Account]) -> float:
        lost = sum(self.amount(account).job_waiting for account in accounts)
        return ratio(lost, self.capacity) if self.capacity else float("nan")

    @property
    def frame(self) -> pd.DataFrame:
        """The books as pandas, a row per account: node-seconds while the queue was empty, while a job waited, in all (*useful*
        and *lost* have only that), and the share of capacity.
        """
        import pandas as pd

        rows = {}
        for account in Account:
            seconds: list[float | None] = [to_seconds(ticks) for ticks in self.amount(account)]
            empty, waiting = seconds if account in OVERHEADS else (None, None)
            rows[account.value] = {"queue_empty_node_s": empty, "job_waiting_node_s": waiting}
            rows[account.value] |= {"total_node_s": to_seconds(sum(self.amount(account))), "share": self.share(account)}
        return pd.DataFrame(rows.values(), index=pd.Index(rows, name="account"))

    def share(self, *accounts: Account) -> float:
        """Return what has been charged to these accounts together, per capacity; ``nan`` for an empty horizon."""
        charged = sum(sum(self.amount(account)) for account in accounts)
        return ratio(charged, self.capacity) if self.capacity else float("nan")

    def _repr_html_(self) -> str:
        """Return the books for a notebook, in a legible unit of node time."""
        length_s = to_seconds(self.end - self.start)
        unit, frame = time_unit(length_s), self.frame.astype(object)
        columns: list[tuple[str, list[Any]]] = [("account", frame.index.to_list())]
        for title, (_, amounts) in zip(("queue empty", "job waiting", "total"), frame.iloc[:, :3].items(), strict=True):
            values = [None if value is None else value / unit.seconds for value in amounts.where(amounts.notna(), None)]
            columns.append((f"{title} (node-{unit.symbol})", values))
        columns.append(("share (%)", [100 * self.share(account) for account in Account]))
        return html_table(f"Ledger of {counted(self.nodes, 'node')} over {duration(length_s)}", columns)

    def __repr__(self) -> str:
        amounts = ", ".join(f"{account}: {sum(self.amount(account))}" for account in Account)
        return f"<Ledger of {self.nodes} nodes; {amounts}>"


class UnusedNodes:
    """Nodes that no gang has and that are charged to another account than *idle*: down, reserved, or switched off."""

    # While no job is in the system, that is put off until the next submission: the books end with the last job.

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.uncharged: list[tuple[int, Account, int]] = []  # from when how many more nodes belong to an account

    def put_off(self, now: int, account: Account, nodes: int) -> None:
        """Note that so many more nodes, or fewer, are to be charged to an account instead of *idle* from now on."""
        self.uncharged.append((now, account, nodes))

    def charge(self) -> None:
        """Charge what has been put off, from when it was noted."""
        for time, account, nodes in self.uncharged:
            self._ledger.hold(time, account, nodes)
            self._ledger.hold(time, Account.IDLE, -nodes)
        self.uncharged.clear()
