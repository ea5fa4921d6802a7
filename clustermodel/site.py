"""The rules of a site, beside machine and policy: how much of the machine users, accounts, partitions may have at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any, Final, Self

from clustermodel.errors import SpecificationError
from clustermodel.tables import Place, made, plain, read_file, require_keys, text_of_table
from clustermodel.ticks import to_ticks
from clustermodel.validation import LARGEST_WHOLE, require, require_number, seconds_fields, whole_fields

EACH: Final = "*"
"""Stands for each user, account and so on, with a limit of its own."""
SUBJECTS: Final = ("user", "group", "account", "partition", "qos", "queue")
"""What jobs are limited by."""
_LIMITS: Final = ("running_jobs", "nodes", "node_hours", "submitted_jobs", "wall_time_s")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of some jobs together, as those of a user, or of each user in a partition.

    >>> from clustermodel import Limits
    >>> Limits(user="*", running_jobs=2).of_whom
    'each user'
    >>> Limits(user="ann", partition="debug", nodes=4).of_whom
    'user ann in partition debug'

    The first six fields say whose jobs: each a name or a number, ``"*"`` for each one separately, ``None`` for all together.  A
    job that lacks such a name, as the log or the table has none, is not limited.  At least one limit is given.  A value that is
    not allowed is a ``SpecificationError``.
    """

    user: str | int | None = None
    group: str | int | None = None
    account: str | int | None = None
    partition: str | int | None = None
    qos: str | int | None = None
    queue: str | int | None = None
    running_jobs: int | None = None
    """Largest number of jobs that run, or may start, at a time (Slurm: MaxJobs, GrpJobs)."""
    nodes: int | None = None
    """Largest number of nodes that these jobs ask for (Slurm: GrpTRES=node); a wider job is rejected."""
    node_hours: float | None = None
    """Largest sum of nodes x estimate of these jobs, hours (Slurm: GrpTRESRunMins); a larger job is rejected."""
    submitted_jobs: int | None = None
    """Largest number of jobs that wait or run: others are held as if they were submitted later (Slurm: MaxSubmitJobs)."""
    wall_time_s: float | None = None
    """Largest estimate, seconds: jobs with a larger one are rejected (Slurm: MaxWall, MaxTime)."""

    def __post_init__(self) -> None:
        for name in SUBJECTS:
            value = getattr(self, name)
            if value is not None:
                known = isinstance(value, (str, int)) and not isinstance(value, bool) and value != ""
                require(known, f"Limits.{name}", value, "it must be a name, a number, or '*' for each")
                object.__setattr__(self, name, str(value))
        whole_fields(self, "Limits.", running_jobs=1, nodes=1, submitted_jobs=1)
        if self.node_hours is not None:
            hours = "a number of hours > 0"
            require_number("Limits.node_hours", self.node_hours, hours, lambda given: 0 < given <= LARGEST_WHOLE)
        seconds_fields(self, "Limits.", "wall_time_s", positive=True)
        if all(getattr(self, name) is None for name in _LIMITS):
            raise SpecificationError(f"Limits: no limit is given; one of {', '.join(_LIMITS)} is needed")

    @property
    def of_whom(self) -> str:
        """Whose jobs these are, in words."""
        named = [(name, getattr(self, name)) for name in SUBJECTS if getattr(self, name) is not None]
        words = [f"each {name}" if value == EACH else f"{name} {value}" for name, value in named]
        return " in ".join(words) or "all jobs"

    @property
    def node_ticks(self) -> int | None:
        """``node_hours`` in ticks."""
        return None if self.node_hours is None else to_ticks(self.node_hours * 3600)


@dataclass(frozen=True, kw_only=True)
class Site:
    """The rules of a site; jobs that they keep from starting are *held*: no policy sees them (docs/site)."""

    limits: Sequence[Limits] = ()

    def __post_init__(self) -> None:
        if isinstance(self.limits, Limits):
            object.__setattr__(self, "limits", (self.limits,))
        known = isinstance(self.limits, Sequence) and all(isinstance(limit, Limits) for limit in self.limits)
        require(known, "Site.limits", self.limits, "they must be Limits")
        object.__setattr__(self, "limits", tuple(self.limits))

    @property
    def subjects(self) -> tuple[str, ...]:
        """Which of :data:`SUBJECTS` the rules name."""
        return tuple(name for name in SUBJECTS if any(getattr(limit, name) is not None for limit in self.limits))

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> Self:
        """Return the rules of a site file: a table ``[[limits]]`` for each :class:`Limits`, with the names of its fields."""
        table, place = read_file(Path(path))
        return cls(**site_fields(table, place))

    def to_toml(self, path: str | PathLike[str] | None = None) -> str:
        """Return the rules as TOML, of which :meth:`from_toml` makes equal ones, and write them to ``path``, if given."""
        text = text_of_table(plain(self, Place("Site.to_toml", Path())))
        if path is not None:
            from clustermodel.files import write_file  # noqa: PLC0415

            write_file(path, text)
        return text


def site_fields(table: Any, place: Place) -> dict[str, Any]:
    """Return the fields of the :class:`Site` that a table of a file describes."""
    require_keys(table, [field.name for field in fields(Site)], place)
    given, place = table.get("limits", []), place.at("limits")
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise place.refused(given, "tables [[limits]]")
    return {"limits": [made(Limits, each, place.at(number)) for number, each in enumerate(given)]}
