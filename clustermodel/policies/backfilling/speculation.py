"""Speculative backfilling and speculative test runs (003_96c4631de6a07f8a.txt, section 6).

Users overestimate.  A job that does not fit now if its estimate is believed may fit if it is not: it is started in a hole of
the plan for a *speculated time* shorter than its estimate.  If it has not ended by then it is stopped, and waits again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from clustermodel.errors import SpecificationError
from clustermodel.policies.backfilling.scheduling_cycle import Pass
from clustermodel.policies.interface import QueuedJob
from clustermodel.ticks import duration_to_ticks
from clustermodel.validation import require_number, require_seconds

LONG_S: Final = 3 * 3600.0
"""003, section 6.1: "longer than 3 hours"."""
SHORTEST_TEST_S: Final = 5 * 60.0
LONGEST_TEST_S: Final = 15 * 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class TestRuns:
    """Short runs of jobs that are estimated to be long, to see whether they fail at once (003, section 6.1).

    Raises:
        SpecificationError: a time is not a positive number of seconds, or the shortest run is longer than the longest.
    """

    __test__ = False  # not a test, though pytest would take it for one

    longer_than_s: float = LONG_S
    """Only jobs with estimates above this, seconds."""
    shortest_s: float = SHORTEST_TEST_S
    """A test run needs a hole of at least this length, seconds."""
    longest_s: float = LONGEST_TEST_S
    """It runs as long as the hole, but not longer than this, seconds."""

    def __post_init__(self) -> None:
        for name in ("longer_than_s", "shortest_s", "longest_s"):
            require_seconds(f"TestRuns.{name}", getattr(self, name), positive=True)
        if self.longest_s < self.shortest_s:
            raise SpecificationError(
                f"TestRuns.longest_s: {self.longest_s} is not allowed; it must be >= shortest_s, which is {self.shortest_s}"
            )


class Speculation:
    """The speculative phase: it goes through the jobs that the first phase has left, in the same order.

    The first time, a job needs a hole of ``percentage`` of its estimate; if it has run in vain, of the mean of its last
    speculated time and its estimate, but never of less than ``percentage``, as it would after a test run.  It is given the
    whole hole.  A job that holds a reservation keeps it meanwhile, and is
    stopped at the latest when its reserved time has come.

    Args:
        percentage: the ratio of speculated time to estimate, in (0, 1]; with 1 there are only test runs.
        test_runs: what is tried if that is not possible; ``None`` for nothing.

    Raises:
        SpecificationError: ``percentage`` is outside (0, 1].
    """

    def __init__(self, percentage: float, test_runs: TestRuns | None = None) -> None:
        self._percentage = require_number("backfilling: speculation", percentage, "a number > 0 and <= 1", lambda p: 0 < p <= 1)
        self._tests = None
        if test_runs is not None:
            times = test_runs.longer_than_s, test_runs.shortest_s, test_runs.longest_s
            self._tests = tuple(map(duration_to_ticks, times))

    def begin(self) -> None:
        """Forget any earlier run."""
        self._last: dict[int, float] = {}  # id of a job that has run in vain -> its last speculated time per estimate
        self._tested: set[int] = set()

    def left(self, job: QueuedJob) -> None:
        """Forget a job that has left the system."""
        self._last.pop(job.id, None)
        self._tested.discard(job.id)

    def schedule(self, current: Pass) -> None:
        """Start jobs in holes of the plan."""
        plan, now = current.plan, current.now
        for job in current.queue:
            if not current.idle:
                break
            nodes, length = shape = current.shapes[job.id][0]
            if nodes > current.idle or job.id in current.dispatched:
                continue
            until = plan.free_until(nodes)
            if (held := current.held_from(job)) is not None:
                until = held if until is None else min(until, held)
            if until is None or until <= now:
                continue
            if (limit := self._speculated_time(job, length, until - now)) is not None:
                current.start(job, shape, "if it ends by its speculated time", limit)

    def _speculated_time(self, job: QueuedJob, length: int, hole: int) -> int | None:
        """Return for how long a job may run in a hole, ``None`` if it should not start there; ticks."""
        last = self._last.get(job.id)
        needed = self._percentage if last is None else max(self._percentage, (last + 1) / 2)
        if hole >= needed * length and needed < 1:
            limit = hole
        elif self._tests is None or job.id in self._tested:
            return None
        else:
            longer_than, shortest, longest = self._tests
            if length <= longer_than or hole < shortest:
                return None
            limit = min(hole, longest)
            self._tested.add(job.id)
        self._last[job.id] = limit / length
        return limit
