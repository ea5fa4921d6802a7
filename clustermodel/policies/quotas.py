"""Quotas: how many node-seconds users and groups may use, what they have used, and what becomes of jobs over quota.

The papers (Talby & Feitelson 1999: short version, section 2.2; long version, section 2.3) assume an accounting system that
knows who is over quota.  This is a small one.  A job over quota has infinite slack: it may be delayed for every other job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite
from numbers import Integral
from typing import Final

from clustermodel.errors import SpecificationError
from clustermodel.policies.view import QueuedJob
from clustermodel.schedule.profile import Profile
from clustermodel.ticks import TICKS_PER_SECOND, to_ticks
from clustermodel.validation import require_number

Limits = Mapping[int, float] | float | None

_UNKNOWN: Final = -1
"""The number of an unknown user or group."""


@dataclass(frozen=True, kw_only=True)
class Quotas:
    """How much users and groups may use in a run, node-seconds.

    Raises:
        SpecificationError: a quota is not a finite number >= 0, or a key not a whole number.
    """

    user: Limits = None
    """User number -> quota, or one quota for each user; ``None`` is no limit.  Users who are not listed have no limit; unknown
    users (-1) have a limit only if they are listed."""
    group: Limits = None
    """The same for groups."""

    def __hash__(self) -> int:
        of_fields = (limits.items() if isinstance(limits, Mapping) else [limits] for limits in (self.user, self.group))
        return hash(tuple(map(frozenset, of_fields)))

    def __post_init__(self) -> None:
        for name in ("user", "group"):
            limits = getattr(self, name)
            if limits is None:
                continue
            if not isinstance(limits, Mapping):
                _require_quota(f"Quotas.{name}", limits)
                continue
            for number, quota in limits.items():
                if isinstance(number, bool) or not isinstance(number, Integral):
                    raise SpecificationError(f"Quotas.{name}: key {number!r} is not allowed; it must be a whole number")
                _require_quota(f"Quotas.{name}[{number}]", quota)


def _require_quota(name: str, value: object) -> None:
    require_number(name, value, "a finite number of node-seconds >= 0", lambda quota: isfinite(quota) and quota >= 0)


class Accounts:
    """What has been charged to users and groups in one run."""

    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas
        self._used: Counter[tuple[str, int]] = Counter()  # ("user" or "group", number) -> node-ticks

    def charge(self, job: QueuedJob) -> bool:
        """Charge nodes x estimate for a job just submitted; return whether its user or group is now over its quota."""
        self._add(job, job.nodes * job.estimate)
        return self.over(job)

    def settle(self, job: QueuedJob, ran: int) -> None:
        """Charge what a job that has ended really used, ``ran`` ticks on each node, in place of its estimate."""
        self._add(job, job.nodes * (ran - job.estimate))

    def over(self, job: QueuedJob) -> bool:
        """Return whether more than the quota of the job's user, or of its group, has been charged."""
        return any(self._used[key] > limit for key in _keys(job) if (limit := self._limit(*key)) is not None)

    def used(self, kind: str, number: int) -> int:
        """Return what has been charged to the ``"user"`` or ``"group"`` of this number, node-ticks."""
        return self._used[kind, number]

    def _add(self, job: QueuedJob, amount: int) -> None:
        for key in _keys(job):
            self._used[key] += amount

    def _limit(self, kind: str, number: int) -> int | None:
        limits: Limits = getattr(self._quotas, kind)
        if isinstance(limits, Mapping):
            limits = limits.get(number)
        elif number == _UNKNOWN:
            return None
        if limits is None or limits * TICKS_PER_SECOND == inf:  # more than any job uses
            return None
        return to_ticks(limits)


class OverQuota:
    """The jobs over quota of one run: planned behind all other jobs, in order of arrival, so that they delay no job."""

    def __init__(self, quotas: Quotas) -> None:
        self._accounts = Accounts(quotas)
        self._waiting: dict[int, tuple[QueuedJob, int]] = {}  # job id -> waiting job and its planned start, in order of arrival
        self.running: set[int] = set()
        """Ids of the running jobs over quota."""

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def admit(self, job: QueuedJob, now: int) -> bool:
        """Charge a submitted job; return whether it is over quota and waits here."""
        over = self._accounts.charge(job)
        if over:
            self._waiting[job.id] = (job, now)
        return over

    def ended(self, job: QueuedJob, ran: int) -> None:
        """Settle the account of a job that has ended after ``ran`` ticks."""
        self._accounts.settle(job, ran)
        self.running.discard(job.id)

    def plan(self, profile: Profile, now: int) -> list[QueuedJob]:
        """Plan the waiting jobs into the profile of running jobs and reservations within quota; return those that start now."""
        starting = []
        for job, _ in list(self._waiting.values()):
            start = profile.book(job.nodes, job.estimate)
            if start == now:
                del self._waiting[job.id]
                self.running.add(job.id)
                starting.append(job)
            else:
                self._waiting[job.id] = (job, start)
        return starting

    def starts(self) -> list[int]:
        """Return the planned starts of the waiting jobs, ticks."""
        return [start for _, start in self._waiting.values()]


def _keys(job: QueuedJob) -> tuple[tuple[str, int], tuple[str, int]]:
    return ("user", job.user), ("group", job.group)
