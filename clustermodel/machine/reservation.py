"""Reservations: nodes that are kept free for a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import clustermodel.validation as check
from clustermodel.errors import SpecificationError, quoted, refused
from clustermodel.machine.node_ranges import bounds_of, ranges_of
from clustermodel.ticks import to_ticks
from clustermodel.validation import require, seconds_fields

SHORTEST_PERIOD_S: Final = 1.0
"""Of recurring reservations: each begin and each end is an event of the simulation."""


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """Nodes that are kept free for a time, once or every so often, as for maintenance, or for jobs of some accounts or users.

    No other job starts there that by its estimate would still run when the reservation begins.

    >>> from clustermodel import Machine, Reservation
    >>> monday = Reservation(start_s=8 * 3600, end_s=12 * 3600, every_s=7 * 86_400)
    >>> course = Reservation(nodes="0-15", start_s=86_400, end_s=90_000, accounts="bio")
    >>> machine = Machine(nodes=64, reservations=[monday, course])
    """

    nodes: str | Sequence[int] | None = None
    """Its nodes, in the form of :attr:`Partition.nodes <clustermodel.machine.partition.Partition.nodes>`; ``None`` is all."""
    start_s: float
    """When it begins, seconds on the clock of the jobs."""
    end_s: float
    """When it ends, seconds."""
    every_s: float | None = None
    """Period of a recurring reservation, seconds (a week is 604,800); ``None``: it takes place once."""
    accounts: Sequence[str] = ()
    """Accounts (names of the log) whose jobs may use the nodes; ``["-bio", "-chem"]``: all but those.  Without accounts and
    users, no job may; with both, jobs of these users in these accounts (as in Slurm)."""
    users: Sequence[str] = ()
    """The same, by user."""
    name: str = ""
    """If any job names it (:attr:`Job.reservation <clustermodel.workload.job.Job.reservation>`), it is for the jobs that do,
    whatever their accounts and users."""

    def __post_init__(self) -> None:
        seconds_fields(self, "Reservation.", "start_s", "end_s")
        seconds_fields(self, "Reservation.", "every_s", positive=True)
        long = self.every_s is None or self.every_s >= SHORTEST_PERIOD_S
        must = f"it must be at least {SHORTEST_PERIOD_S:g} s, as each begin and each end is an event, or None"
        require(long, "Reservation.every_s", self.every_s, must)
        later = to_ticks(self.end_s) > to_ticks(self.start_s)
        require(later, "Reservation.end_s", self.end_s, f"it must be after start_s, {self.start_s:g}")
        apart = self.every_s is None or to_ticks(self.every_s) > to_ticks(self.end_s) - to_ticks(self.start_s)
        length = self.end_s - self.start_s
        require(apart, "Reservation.every_s", self.every_s, f"it must be longer than the reservation, {length:g} s")
        require(isinstance(self.name, str), "Reservation.name", self.name, "it must be a text")
        if self.nodes is not None:
            object.__setattr__(self, "nodes", ranges_of("Reservation.nodes", self.nodes))
        for name in ("accounts", "users"):
            given = getattr(self, name)
            names: object = [given] if isinstance(given, str | int) else given
            known = isinstance(names, Sequence) and all(isinstance(each, str | int) and str(each) for each in names)
            require(known, f"Reservation.{name}", given, "they must be names or numbers")
            assert isinstance(names, Sequence)
            texts = tuple(map(str, names))
            alike = len({text.startswith("-") for text in texts}) < 2 and "-" not in texts
            require(alike, f"Reservation.{name}", given, "either all names have a minus, for all but those, or none has")
            object.__setattr__(self, name, texts)

    def admits(self, account: str | None, user: str | None) -> bool:
        """Return whether a job of this account and this user may have the nodes; ``None``: the log names none."""
        return bool(self.accounts or self.users) and _admits(self.accounts, account) and _admits(self.users, user)

    @property
    def node_set(self) -> tuple[int, ...] | None:
        """Its nodes as ranges, (first, after the last, ...); ``None``: all."""
        return None if self.nodes is None else bounds_of("Reservation.nodes", self.nodes)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the reservation that a text describes: ``"0-63,start_s=86400,end_s=90000,every_s=604800,accounts=bio,chem"``.

        What stands before the fields are its nodes, ``"all"`` or nothing for all nodes.
        """
        fields: dict[str, list[str]] = {"nodes": []}
        key = "nodes"
        for part in text.split(","):
            name, equals, value = (each.strip() for each in part.partition("="))
            if equals:
                key = check.choice("reservation", name, [each for each in cls.__dataclass_fields__ if each != "nodes"])
                require(key not in fields, f"reservation: {key}", value, "it is given twice")
                fields[key] = [value]
            else:
                several = key in ("nodes", "accounts", "users")
                require(several, f"reservation: {key}", name, "write key=value,key=value behind the nodes")
                fields[key].append(name)
        nodes = ",".join(fields.pop("nodes"))
        values: dict[str, Any] = {} if nodes in ("", "all") else {"nodes": nodes}
        for key, given in fields.items():
            values[key] = given if key in ("accounts", "users") else given[0]
            if key.endswith("_s"):
                try:
                    values[key] = float(given[0])
                except ValueError:
                    raise refused(f"reservation: {key}", given[0], "it must be a number of seconds") from None
        for key in ("start_s", "end_s"):
            if key not in values:
                raise SpecificationError(f"reservation: {key} is missing in {quoted(text)}; write NODES,start_s=...,end_s=...")
        return cls(**values)


def _admits(names: Sequence[str], name: str | None) -> bool:
    """Return whether a name is one of ``names``, or if these have a minus, none of them; no names admit every one."""
    if names and names[0].startswith("-"):
        return f"-{name}" not in names
    return not names or name in names
