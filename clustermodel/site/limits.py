"""Limits of users, accounts, partitions and so on: what their jobs may have at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from clustermodel.errors import SpecificationError
from clustermodel.ticks import to_ticks
from clustermodel.validation import LARGEST_WHOLE, choice, require, require_number, seconds_fields, whole_fields

EACH: Final = "*"
"""Stands for each user, account and so on, with a limit of its own."""
SUBJECTS: Final = ("user", "group", "account", "partition", "qos", "queue")
"""What jobs are limited by."""
LIMITS: Final = (
    "running_jobs", "nodes", "processors", "node_hours", "processor_hours", "submitted_jobs", "wall_time_s", "job_nodes",
    "job_processors",
)  # fmt: skip
"""What is limited: the fields of :class:`Limits` with an amount."""
BITS: Final = {name: 1 << number for number, name in enumerate(LIMITS)}
"""A bit for each of them."""
OF_EACH_JOB: Final = ("wall_time_s", "job_nodes", "job_processors")
"""Those of them that are limits of single jobs."""
Kind = Literal["max", "grp"]
"""In Slurm's words: a limit of each job, user or account, or of a group of jobs together."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of some jobs together, as those of a user, or of each user in a partition.

    >>> from clustermodel import Limits
    >>> Limits(user="*", running_jobs=2).of_whom
    'each user'
    >>> Limits(user="ann", partition="debug", nodes=4).of_whom
    'user ann in partition debug'
    >>> Limits(account=["bio", "astro"], nodes=64).of_whom
    'account bio or astro'

    The first six fields say whose jobs: each a name or a number, several for these together, ``"*"`` for each one separately,
    ``None`` for all together.  A job that lacks such a name, as the log or the table has none, is not limited.  Jobs of a
    partition also count as jobs of its QOS (:class:`QOS`).  At least one limit is given.  A value that is not allowed is a
    ``SpecificationError``.
    """

    user: str | int | Sequence[str | int] | None = None
    group: str | int | Sequence[str | int] | None = None
    account: str | int | Sequence[str | int] | None = None
    partition: str | int | Sequence[str | int] | None = None
    qos: str | int | Sequence[str | int] | None = None
    queue: str | int | Sequence[str | int] | None = None
    running_jobs: int | None = None
    """Largest number of jobs that run, or may start, at a time (Slurm: MaxJobs, GrpJobs)."""
    nodes: int | None = None
    """Largest number of nodes of these jobs (Slurm: GrpTRES=node); a wider job is rejected.  Where nodes have several
    processors, a node counts once, however many of these jobs run on it."""
    processors: int | None = None
    """Largest number of processors that these jobs ask for (Slurm: GrpTRES=cpu); a wider job is rejected."""
    node_hours: float | None = None
    """Largest sum of nodes x remaining time of these jobs, hours (Slurm: GrpTRESRunMins=node).  The remaining time of a job is
    its estimate until it starts, and falls to 0 while it runs; a job that is larger by itself is rejected."""
    processor_hours: float | None = None
    """The same for processors (Slurm: GrpTRESRunMins=cpu)."""
    submitted_jobs: int | None = None
    """Largest number of jobs that wait or run: others are held as if they were submitted later (Slurm: MaxSubmitJobs)."""
    wall_time_s: float | None = None
    """Largest estimate, seconds: jobs with a larger one are rejected (Slurm: MaxWall, MaxTime)."""
    job_nodes: int | None = None
    """Largest number of nodes of a job: wider ones are rejected (Slurm: MaxTRES=node)."""
    job_processors: int | None = None
    """Largest number of processors of a job: wider ones are rejected (Slurm: MaxTRES=cpu)."""
    yields_to_qos: Kind | None = None
    """``"max"`` or ``"grp"``: these limits apply only to jobs of which neither the QOS nor the partition's QOS has the same
    limit, of each job, user or account (``"max"``), or of its jobs together (``"grp"``).  So limits of associations of Slurm
    yield to those of QOS."""

    def __post_init__(self) -> None:
        for name in SUBJECTS:
            value = getattr(self, name)
            if value is not None:
                several = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
                known = all(isinstance(each, (str, int)) and not isinstance(each, bool) and each != "" for each in several)
                known = known and several != () and (EACH not in several or several == (EACH,))
                require(known, f"Limits.{name}", value, "it must be a name, a number, several of them, or '*' for each")
                texts = tuple(dict.fromkeys(map(str, several)))
                object.__setattr__(self, name, texts if len(texts) > 1 else texts[0])
        whole_fields(self, "Limits.", running_jobs=1, nodes=1, processors=1, submitted_jobs=1, job_nodes=1, job_processors=1)
        for name in ("node_hours", "processor_hours"):
            if (hours := getattr(self, name)) is not None:
                require_number(f"Limits.{name}", hours, "a number of hours > 0", lambda given: 0 < given <= LARGEST_WHOLE)
        seconds_fields(self, "Limits.", "wall_time_s", positive=True)
        if self.yields_to_qos is not None:
            choice("Limits.yields_to_qos", self.yields_to_qos, get_args(Kind))
        if not self.given:
            raise SpecificationError(f"Limits: no limit is given; one of {', '.join(LIMITS)} is needed")

    @property
    def of_whom(self) -> str:
        """The limited jobs, in words."""
        named = [(name, getattr(self, name)) for name in SUBJECTS if getattr(self, name) is not None]
        words = [
            f"each {name}" if value == EACH else f"{name} {value if isinstance(value, str) else ' or '.join(value)}"
            for name, value in named
        ]
        return " in ".join(words) or "all jobs"

    def names(self, subject: str) -> tuple[str, ...]:
        """Return the names in a field of :data:`SUBJECTS`; none, if it is ``None``."""
        value = getattr(self, subject)
        return (value,) if isinstance(value, str) else value or ()

    @property
    def given(self) -> tuple[str, ...]:
        """Which of :data:`LIMITS` are given."""
        return tuple(name for name in LIMITS if getattr(self, name) is not None)

    def most(self, name: str) -> int:
        """Return a limit that is given; times in ticks."""
        value = getattr(self, name)
        if name == "wall_time_s":
            return to_ticks(value)
        return to_ticks(value * 3600) if name.endswith("_hours") else int(value)

    def kind_of(self, name: str) -> Kind:
        """Return the kind of one of the limits."""
        return "max" if name in OF_EACH_JOB or self.user is not None or self.account is not None else "grp"
