"""Users who wait for their jobs: sessions of jobs each of which is submitted a think time after the one before has completed.

Such submissions depend on the schedule: a slow scheduler gets fewer jobs per day (Shmueli & Feitelson 2006).  With open
arrivals of sessions the stream is *partly open*, with a fixed number of users *closed* (Schroeder et al. 2006).
"""

from __future__ import annotations

from dataclasses import dataclass

from clustermodel.validation import require_whole
from clustermodel.workload.arrivals import ArrivalProcess, arrival_process
from clustermodel.workload.distributions import Distribution, require_distribution
from clustermodel.workload.table import Workload


@dataclass(frozen=True, kw_only=True)
class Sessions:
    """Sessions that begin by an arrival process: the first job at that time, each other job after the one before it.

    Raises:
        SpecificationError: a part is not what it must be.
    """

    arrivals: ArrivalProcess | Workload | Distribution
    """When sessions begin."""
    jobs: Distribution
    """Jobs in a session, rounded, at least one; ``scipy.stats.geom(1 / 5)`` has a mean of five."""
    think_time_s: Distribution
    """Seconds from the completion of a job to the next submission of the session."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "arrivals", arrival_process("Sessions.arrivals", self.arrivals))
        require_distribution("Sessions.jobs", self.jobs)
        require_distribution("Sessions.think_time_s", self.think_time_s)


@dataclass(frozen=True, kw_only=True)
class ClosedUsers:
    """A fixed number of users, each of whom thinks, submits a job, waits for its completion, and thinks again.

    Every user has a user number, from 1, and the same number of jobs, or one more.  As users complete their last jobs at
    different times, the end of such a run has fewer users.

    Raises:
        SpecificationError: a part is not what it must be.
    """

    users: int
    think_time_s: Distribution
    """Seconds from the completion of a job (for the first job: from time 0) to the next submission."""

    def __post_init__(self) -> None:
        require_whole("ClosedUsers.users", self.users, at_least=1)
        require_distribution("ClosedUsers.think_time_s", self.think_time_s)
