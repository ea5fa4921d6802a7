"""Speculation makes use of overestimates (Perkovic & Keleher 2000, section 6).

A job whose estimate does not fit into any backfill window is started for a *speculated time* shorter than its estimate.  A job
that has not completed by then is stopped and requeued.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

from clustermodel.policies.backfilling.moldable import Fit
from clustermodel.policies.view import QueuedJob
from clustermodel.ticks import NEVER, duration_to_ticks
from clustermodel.validation import require, require_number, seconds_fields

if TYPE_CHECKING:
    from clustermodel.policies.backfilling.cycle import SchedulingCycle


@dataclass(frozen=True, kw_only=True, slots=True)
class TestRuns:
    """Short runs of jobs with long estimates, to see whether they fail at once (Perkovic & Keleher 2000, section 6.1)."""

    __test__ = False  # not a test, though pytest would take it for one

    longer_than_s: float = 3 * 3600.0
    """Only jobs with longer estimates get test runs, seconds; the paper's are "longer than 3 hours"."""
    shortest_s: float = 5 * 60.0
    """A test run needs a backfill window of at least this length, seconds."""
    longest_s: float = 15 * 60.0
    """It may run as long as the window, but not longer than this, seconds."""

    def __post_init__(self) -> None:
        seconds_fields(self, "TestRuns.", "longer_than_s", "shortest_s", "longest_s", positive=True)
        must = f"it must be >= shortest_s, which is {self.shortest_s}"
        require(self.longest_s >= self.shortest_s, "TestRuns.longest_s", self.longest_s, must)


class Speculation:
    """The speculative phase of one run goes through the jobs that the first phase has left, in the same order.

    For its first run attempt a job needs a backfill window of ``percentage`` of its estimate.  After a discarded attempt it
    needs the mean of its last speculated time and its estimate, but at least ``percentage``: a test run can be shorter.  It is
    given the whole window.  A job that holds a reservation keeps it, and is stopped at the latest when its reserved time has
    come.  With a ``percentage`` of 1 there are only test runs, which are tried where the window is too short.
    """

    def __init__(self, percentage: float, test_runs: TestRuns | None = None) -> None:
        self._percentage = require_number("backfilling: speculation", percentage, "a number > 0 and <= 1", lambda p: 0 < p <= 1)
        self._tests = None if test_runs is None else tuple(map(duration_to_ticks, astuple(test_runs)))
        self._last: dict[int, float] = {}  # id of a job with a discarded run attempt -> its last speculated time per estimate
        self._tested: set[int] = set()

    def left(self, job: QueuedJob) -> None:
        """Forget a job that has left the system."""
        self._last.pop(job.id, None)
        self._tested.discard(job.id)

    def schedule(self, current: SchedulingCycle) -> None:
        """Start jobs in backfill windows."""
        now = current.now
        for job in current.queue:
            if not current.idle:
                break
            nodes, length = current.shapes(job)[0]
            if nodes > current.idle or job.id in current.dispatched:
                continue
            sized, group = job.sized(nodes), current.group(job)
            until = current.plan.free_until(sized, group)
            if (reservation := current.reserved_start(job)) is not None:
                until = min(until, reservation)
            if not now < until < NEVER:
                continue
            if (limit := self._speculated_time(job, length, until - now)) is not None:
                self._last[job.id] = limit / length
                length = min(length, limit)
                split = current.plan.split(now, length, sized, group)
                assert split is not None, "it can have its nodes until then"
                current.start(job, Fit(nodes, length, split), "if it ends by its speculated time", limit)

    def _speculated_time(self, job: QueuedJob, length: int, window: int) -> int | None:
        """Return for how long a job may run in a backfill window, ``None`` if it should not start there; ticks."""
        last = self._last.get(job.id)
        needed = self._percentage if last is None else max(self._percentage, (last + 1) / 2)
        if window >= needed * length and needed < 1:
            return window
        if self._tests is None or job.id in self._tested:
            return None
        longer_than, shortest, longest = self._tests
        if length <= longer_than or window < shortest:
            return None
        self._tested.add(job.id)
        return min(window, longest)
