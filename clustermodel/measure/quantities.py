"""Names and units of numbers, as the names of their columns say them, and the accounts of the ledger as columns."""

from typing import Final, NamedTuple

from clustermodel.recording.ledger import OVERHEADS, Account, Ledger
from clustermodel.ticks import TICKS_PER_SECOND


class Quantity(NamedTuple):
    """The name and the unit of a number; the unit is empty for a number without one."""

    name: str
    unit: str = ""

    def label(self, of: str = "") -> str:
        """Return the label of an axis, with a qualification, such as which jobs, between name and unit.

        Numbers of what the name says, such as *completed jobs*, are without their unit.
        """
        known = f" {self.unit} " in f" {self.name} "
        return self.name + (f", {of}" if of else "") + (f" ({self.unit})" if self.unit and not known else "")


_TIMES: Final = {"s": "s", "ms": "ms", "us": "µs", "h": "h"}
_SIZES: Final = {name.lower(): name for name in ("KiB", "MiB", "GiB", "TiB", "kB", "MB", "GB", "TB")}
_UNITS: Final = {  # by the words that end the names of columns and factors
    **_TIMES,
    **_SIZES,
    "w": "W",
    "wh": "Wh",
    "kwh": "kWh",
    "kg": "kg",
    **{f"{size}_{per}{time}": f"{_SIZES[size]}/{_TIMES[time]}" for size in _SIZES for per in ("", "per_") for time in _TIMES},
    **{f"{one}_{time}": f"{one}-{_TIMES[time]}" for one in ("node", "core", "processor") for time in _TIMES},
    **{f"gpu_{time}": f"GPU-{symbol}" for time, symbol in _TIMES.items()},
}
_MOST_WORDS: Final = 3  # of a unit
_ACRONYMS: Final = {name.lower(): name for name in ("MTBF", "MPL", "GPU", "GPUs", "CPU", "CPUs", "QOS")}


_NEVER_NEGATIVE: Final = {
    "share", "utilization", "slowdown", "wait", "waste", "response", "makespan", "jobs", "load", "overestimation", "kappa",
    "capacity",
}  # fmt: skip
"""Words that end the names of quantities without unit that cannot be negative."""


def never_negative(column: str) -> bool:
    """Return whether the name of a column says that it cannot be negative: a time, a share, a size, a slowdown, a number."""
    words = column.replace(" ", "_").split("_")
    return words[0] not in {"log", "log10"} and (bool(named(column).unit) or words[-1] in _NEVER_NEGATIVE)


def named(column: str) -> Quantity:
    """Return the name in words and the unit that a column's or factor's own name says: ``bandwidth_gib_s`` is in GiB/s."""
    if "_" in column and column in _UNITS:
        return Quantity(_UNITS[column])
    words = column.split("_")
    for count in range(_MOST_WORDS, 0, -1):
        stem, unit = words[:-count], _UNITS.get("_".join(words[-count:]))
        if unit is not None and any(stem):
            name = _in_words(stem)
            return Quantity(f"{name} {unit}") if stem[-1] == "per" else Quantity(name, unit)
    return Quantity(_in_words(words) or column)


def _in_words(words: list[str]) -> str:
    return " ".join(_ACRONYMS.get(word, word) for word in words).strip()


def column_heading(column: str, unit: str = "s") -> str:
    """Return the heading of any column: its name in words, with its unit in brackets; ``unit`` is that of times."""
    quantity = named(column)
    return quantity._replace(unit={"s": unit, "node-s": f"node-{unit}"}.get(quantity.unit, quantity.unit)).label()


def account_column(account: Account, unit: str) -> str:
    """Return the name of an account's column: ``"node_s"``, a ``"share"`` of the capacity, or ``"waiting_share"``."""
    return f"{account.value.replace(' ', '_')}_{unit}"


def account_columns(ledger: Ledger) -> dict[str, float | None]:
    """Return the columns of all accounts; shares, which sum to 1, are ``None`` for a run without any length."""
    columns: dict[str, float | None] = {}
    for account in Account:
        amount = ledger.amount(account)
        shares = {"share": sum(amount)} | ({"waiting_share": amount.job_waiting} if account in OVERHEADS else {})
        columns[account_column(account, "node_s")] = sum(amount) / TICKS_PER_SECOND
        for name, ticks in shares.items():
            columns[account_column(account, name)] = ticks / ledger.capacity if ledger.capacity else None
    return columns


ACCOUNT_COLUMNS: Final = tuple(account_columns(Ledger(1)))
ACCOUNT_QUANTITIES: Final = {
    account_column(account, ending): Quantity(account.value + qualification, unit)
    for account in Account
    for ending, qualification, unit in (
        ("node_s", "", "node-seconds"),
        ("share", ", share of capacity", ""),
        ("waiting_share", ", share of capacity while jobs wait", ""),
    )
}
