"""The energy of a run: by account of the ledger, by job and over time, and what it costs.

Energy is counted in picojoules, microwatts x ticks, as whole numbers.  Where all nodes draw the same, the ledger says all;
where types of nodes differ, the records say which nodes gangs held when.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import fsum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from clustermodel.arrays import FloatArray, IntArray
from clustermodel.errors import SpecificationError
from clustermodel.machine.machine import Machine
from clustermodel.machine.power import MICROWATTS, PICOJOULES_PER_JOULE, PICOJOULES_PER_KWH, Power
from clustermodel.machine.price import Price
from clustermodel.measure.job_table import Jobs, useful
from clustermodel.measure.timeline import event_log, idle_before, lost_intervals, rates_in_space, row_times, switch_time
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import Account, Ledger
from clustermodel.recording.matrix_history import SliceLog
from clustermodel.recording.run_attempts import UNKNOWN
from clustermodel.ticks import ratio

if TYPE_CHECKING:
    import pandas as pd

_STATES: Final = {
    "useful": "busy", "lost": "busy", "idle": "idle", "reserved": "idle", "down": "down", "off": "off", "boot": "booting",
}  # fmt: skip
"""What nodes draw in the accounts of the ledger, fields of Power; in all others, in which gangs hold them, ``switching``."""
Picojoules = dict[Account, int]


class PowerDraw(NamedTuple):
    """What the machine draws over time."""

    ticks: list[int]  # ascending
    picojoules: list[int]  # between each two of them

    def means(self, ticks: IntArray) -> FloatArray:
        """Return the mean from each of some times, ascending, until the next, watts; 0 at the last; shape ``(times,)``."""
        sums = [0]
        for energy in self.picojoules:
            sums.append(sums[-1] + energy)

        def integral(now: int, part: int) -> float:
            if part >= len(self.picojoules) or now == self.ticks[part]:
                return sums[min(part, len(sums) - 1)]
            return sums[part] + self.picojoules[part] * (now - self.ticks[part]) / (self.ticks[part + 1] - self.ticks[part])

        parts = np.searchsorted(np.array(self.ticks), ticks, side="right") - 1
        values = [integral(*pair) for pair in zip(ticks.tolist(), parts.tolist(), strict=True)]
        lengths = np.diff(ticks).tolist()
        means = [(after - before) / length for (before, after), length in zip(pairwise(values), lengths, strict=True)]
        return np.array([*means, 0.0][: len(ticks)], dtype=np.float64) / MICROWATTS

    def between(self, begin: int, end: int, bins: int) -> FloatArray:
        """Return the means in equal intervals, of whole ticks, between two times, watts; shape ``(bins,)``."""
        return self.means(np.array([begin + (end - begin) * place // bins for place in range(bins + 1)]))[:-1]


class Cost(NamedTuple):
    """What the energy of a schedule costs."""

    energy_cost: float
    """In the currency of the price."""
    carbon_kg: float | None
    """Carbon emitted, kilograms; ``None`` where its intensity is not known."""


def microwatts(power: Power, account: Account) -> int:
    """Return what a node draws whose time is charged to an account."""
    drawn: int = getattr(power, _STATES.get(account.value, "switching"))
    return drawn


def uniform(machine: Machine) -> Power | None:
    """Return what all nodes draw; ``None`` where they differ."""
    powers = machine.powers
    if not powers:
        raise SpecificationError("energy: it is not known what nodes draw; give Machine(power=Power(busy_w=..., idle_w=...))")
    return next(iter(powers)) if len(powers) == 1 else None


def energy_by_account(records: JobRecords, ledger: Ledger, machine: Machine) -> Picojoules:
    """Return the energy by account; where types of nodes differ, that of reserved nodes is part of *idle*."""
    power = uniform(machine)
    if power is not None:
        return {account: microwatts(power, account) * sum(ledger.amount(account)) for account in Account}
    energy = dict.fromkeys(Account, 0)
    for drawn, amounts in _Types(records, ledger, machine).node_ticks().items():
        for account, node_ticks in amounts.items():
            energy[account] += microwatts(drawn, account) * node_ticks
    return energy


def energy_table(energy: Picojoules) -> pd.DataFrame:
    """Return the energy by account as pandas."""
    import pandas as pd

    total = sum(energy.values())
    rows = {
        account.value: {
            "energy_j": ratio(amount, PICOJOULES_PER_JOULE), "energy_kwh": kwh(amount),
            "share": ratio(amount, total) if total else float("nan"),
        } for account, amount in energy.items()
    }  # fmt: skip
    return pd.DataFrame(rows.values(), index=pd.Index(rows, name="account"))


def kwh(picojoules: int) -> float:
    """Return picojoules as kWh."""
    return ratio(picojoules, PICOJOULES_PER_KWH)


def energy_of_jobs(records: JobRecords, ledger: Ledger, machine: Machine, slices: SliceLog | None) -> list[int]:
    """Return the energy of the nodes of each job while it held them, picojoules; the rest of a run's is that of no job.

    Of gangs that shared their nodes in time it is what they executed: whose overheads there were is not recorded.
    """
    power, energy = uniform(machine), [0] * len(records)
    if slices is not None:
        assert power is not None
        work = (amounts.tolist() for amounts in (useful(records), Jobs.of(records).wasted))
        return [power.busy * (executed + lost) for executed, lost in zip(*work, strict=True)]
    if power is None:
        return _Types(records, ledger, machine).of_jobs()
    runs, held = records.runs, records.overheads
    for job, start, end, nodes in zip(
        *(column.tolist() for column in (runs.job, runs.start, runs.end, runs.nodes)), strict=True
    ):
        energy[job] += power.busy * nodes * (end - start) if end != UNKNOWN else 0
    more = [microwatts(power, account) - power.busy for account in Account]  # than executing
    for start, end, nodes, job, account in zip(*(column.tolist() for column in held), strict=True):
        energy[job] += more[account] * nodes * (end - start)
    return energy


def draw_of(records: JobRecords, ledger: Ledger, machine: Machine, slices: SliceLog | None) -> PowerDraw:
    """Return what the machine draws over time; where gangs share nodes in time, the mean between scheduling events."""
    power = uniform(machine)
    if slices is not None:
        assert power is not None
        return _draw_in_rows(records, machine, power, slices)
    if power is None:
        return _Types(records, ledger, machine).draw()
    rates = rates_in_space(records, ledger)
    watts: Any = sum(rates.nodes[account.value].astype(object) * microwatts(power, account) for account in Account)
    return PowerDraw(rates.ticks.tolist(), (watts[:-1] * np.diff(rates.ticks).astype(object)).tolist())


def _draw_in_rows(records: JobRecords, machine: Machine, power: Power, slices: SliceLog) -> PowerDraw:
    nodes, quantum, switch = machine.processors, machine.time_slicing.quantum, machine.uniform_switch or 0
    log = event_log(records, nodes)
    ticks, energy = log.ticks[:1].tolist(), []
    down = np.concatenate([[0], np.cumsum(np.diff(log.ticks).astype(object) * log.down[:-1])])  # node-ticks until each event
    for interval in [*idle_before(records, slices, nodes), *slices]:
        if not interval.length:
            continue
        begin, end = ticks[-1], ticks[-1] + interval.length
        parts = np.searchsorted(log.ticks, [begin, end], side="right") - 1
        until = [
            down[part] + int(log.down[part]) * (now - int(log.ticks[part]))
            for part, now in zip(parts, (begin, end), strict=True)
        ]
        failed = until[1] - until[0]
        held = sum(nodes * time for nodes, time in row_times(interval, quantum))
        overhead = switch_time(interval, quantum, switch) + interval.migration
        idle = nodes * interval.length - held - failed
        energy.append(power.busy * (held - overhead) + power.switching * overhead + power.down * failed + power.idle * idle)
        ticks.append(end)
    return PowerDraw(ticks, energy)


class _Stay(NamedTuple):
    """A gang on one set of nodes."""

    since: int  # ticks
    until: int
    nodes: tuple[int, ...]  # of each power


class _Change(NamedTuple):
    """Nodes whose time is charged to another account for a while."""

    begin: int  # ticks
    end: int
    job: int  # index of its record; -1: of none
    nodes: tuple[int, ...]  # of each power
    account: Account
    instead_of: Account


class _Types:
    """What dedicated nodes did over time, by what they draw, where types of nodes differ in that."""

    def __init__(self, records: JobRecords, ledger: Ledger, machine: Machine) -> None:
        self._records, self._ledger, self._powers = records, ledger, list(machine.powers)
        below = []  # of each power, how many processors below each draw it
        for sets in machine.powers.values():
            draws = np.zeros(machine.processors + 1, dtype=np.int64)
            for bounds in sets:
                for low, high in zip(bounds[::2], bounds[1::2], strict=True):
                    draws[low + 1 : high + 1] = 1
            below.append(np.cumsum(draws))
        self._below = np.array(below)
        self._sizes = tuple(self._below[:, -1].tolist())
        self._stays = self._stays_of_jobs()

    def _count(self, low: IntArray, high: IntArray) -> IntArray:
        """Return how many processors of each power are in ranges, shape ``(ranges, powers)``."""
        counts: IntArray = (self._below[:, high] - self._below[:, low]).T
        return counts

    def _stays_of_jobs(self) -> dict[int, list[_Stay]]:
        ranges, runs = self._records.node_ranges, self._records.runs
        counts = self._count(ranges.first_node, ranges.first_node + ranges.nodes).tolist()
        stays: dict[int, dict[tuple[int, int], tuple[int, ...]]] = {}
        of_ranges = (runs.job[ranges.run].tolist(), ranges.since.tolist(), ranges.until.tolist(), counts)
        for job, since, until, nodes in zip(*of_ranges, strict=True):
            if until != UNKNOWN:
                of_job = stays.setdefault(job, {})
                of_job[since, until] = tuple(map(sum, zip(of_job.get((since, until), self._nothing), nodes, strict=True)))
        return {job: [_Stay(*time, nodes) for time, nodes in sorted(of_job.items())] for job, of_job in stays.items()}

    @property
    def _nothing(self) -> tuple[int, ...]:
        return (0,) * len(self._powers)

    def _during(self, job: int, begin: int, end: int) -> Iterator[_Stay]:
        """Yield where a job was between two times."""
        for stay in self._stays.get(job, []):
            since, until = max(stay.since, begin), min(stay.until, end)
            if since < until:
                yield _Stay(since, until, stay.nodes)

    def _changes(self) -> Iterator[_Change]:
        records, ledger = self._records, self._ledger
        for job, stays in self._stays.items():
            for stay in stays:
                yield _Change(stay.since, stay.until, job, stay.nodes, Account.USEFUL, Account.IDLE)
        accounts = list(Account)
        for start, end, _, job, account in zip(*(column.tolist() for column in records.overheads), strict=True):
            for stay in self._during(job, start, end):
                yield _Change(stay.since, stay.until, job, stay.nodes, accounts[account], Account.USEFUL)
        for job, start, end, _ in lost_intervals(records):
            for stay in self._during(job, start, end):
                yield _Change(stay.since, stay.until, job, stay.nodes, Account.LOST, Account.USEFUL)
        outages = records.outages
        counts = self._count(outages.node, outages.node + 1).tolist()
        for start, end, nodes in zip(outages.start.tolist(), outages.end.tolist(), counts, strict=True):
            since, until = max(start, ledger.start), ledger.end if end == UNKNOWN else min(end, ledger.end)
            if since < until:
                yield _Change(since, until, -1, tuple(nodes), Account.DOWN, Account.IDLE)

    def node_ticks(self) -> dict[Power, dict[Account, int]]:
        """Return the node-ticks of the nodes of each power by account; idle nodes that are reserved are *idle*."""
        length = self._ledger.end - self._ledger.start
        amounts = [{**dict.fromkeys(Account, 0), Account.IDLE: size * length} for size in self._sizes]
        for change in self._changes():
            for of_power, nodes in zip(amounts, change.nodes, strict=True):
                of_power[change.account] += nodes * (change.end - change.begin)
                of_power[change.instead_of] -= nodes * (change.end - change.begin)
        return dict(zip(self._powers, amounts, strict=True))

    def _more(self, change: _Change) -> int:
        """Return how much more is drawn because of a change, microwatts."""
        return sum(
            nodes * (microwatts(power, change.account) - microwatts(power, change.instead_of))
            for power, nodes in zip(self._powers, change.nodes, strict=True)
        )

    def of_jobs(self) -> list[int]:
        """Return the energy of each job, picojoules."""
        energy = [0] * len(self._records)
        for change in self._changes():
            if change.job >= 0:
                more = self._more(change)
                if change.instead_of is Account.IDLE:
                    more = sum(nodes * power.busy for power, nodes in zip(self._powers, change.nodes, strict=True))
                energy[change.job] += more * (change.end - change.begin)
        return energy

    def draw(self) -> PowerDraw:
        """Return what all nodes draw over time."""
        idle = sum(size * power.idle for size, power in zip(self._sizes, self._powers, strict=True))
        changes = {self._ledger.start: idle, self._ledger.end: 0}
        for change in self._changes():
            more = self._more(change)
            changes[change.begin] = changes.get(change.begin, 0) + more
            changes[change.end] = changes.get(change.end, 0) - more
        ticks, drawn, energy = sorted(changes), 0, []
        for begin, end in pairwise(ticks):
            drawn += changes[begin]
            energy.append(drawn * (end - begin))
        return PowerDraw(ticks, energy)


def cost_of(drawn: PowerDraw, price: Price) -> Cost:
    """Return what the energy costs, and its carbon: exact integrals over the steps of draw and price."""
    energy = [0] * len(price.time_s)
    lengths = [after - before for before, after in pairwise([*price.starts, price.every])]  # of a series that recurs
    for picojoules, (begin, end) in zip(drawn.picojoules, pairwise(drawn.ticks), strict=True):
        rest, since = picojoules, begin
        if price.every and (turns := (end - begin) // price.every) > 1:
            for step, length in enumerate(lengths):
                amount = picojoules * turns * length // (end - begin)
                energy[step] += amount
                rest -= amount
            since += turns * price.every
        for (now, step), (until, _) in pairwise([*price.steps(since, end), (end, 0)]):
            amount = rest if until == end else picojoules * (until - now) // (end - begin)
            energy[step] += amount
            rest -= amount
        if rest and since == end:
            energy[-1] += rest
    emitted = None
    if price.carbon:
        emitted = fsum(carbon * kwh(amount) for carbon, amount in zip(price.carbon, energy, strict=True)) / 1000
    return Cost(fsum(of_step * kwh(amount) for of_step, amount in zip(price.price, energy, strict=True)), emitted)
