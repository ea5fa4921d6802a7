"""The summary of a streamed run from running sums: exact, but for the median and the 95th percentile of many waits.

Up to :data:`EXACT` jobs these two are exact.  Of more they come from a quantile sketch (DDSketch; Masson et al. 2019,
section 2): each is within :data:`QUANTILE_ERROR` of the wait that stands at position floor(q (n - 1)) of the n sorted waits.
The sketch is deterministic, and its memory depends on the range of the waits only.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import fsum, sqrt
from typing import TYPE_CHECKING, Final

import numpy as np

from clustermodel.arrays import FloatArray, percentile
from clustermodel.errors import SpecificationError, missing_package
from clustermodel.measure.metrics import JobStatistics, Summary, bounded_slowdown, bounded_slowdown_perkovic
from clustermodel.recording.ledger import Ledger
from clustermodel.recording.run_attempts import Status
from clustermodel.recording.streamed_records import StreamedJob
from clustermodel.ticks import TICKS_PER_SECOND, to_seconds

if TYPE_CHECKING:
    from ddsketch import DDSketch

QUANTILE_ERROR: Final = 0.001
"""Largest relative error of the median and of the 95th percentile of the waits."""
EXACT: Final = 10_000
"""Number of jobs up to which both are exact: interpolated between neighbours, as for runs that keep their jobs."""
_NAN: Final = float("nan")


class RunningSummary:
    """Running sums over the jobs that have left the system, in constant memory.

    Raises:
        SpecificationError: the package ddsketch is missing.
    """

    def __init__(self) -> None:
        self._waits = _sketch()
        self._first_waits: list[int] = []  # ticks; of at most EXACT jobs and one more
        self._jobs = self._rejected = self._killed = self._aborted = self._retried = 0
        self._backfilled = self._blocked = self._preempted = self._preemptions = 0
        self._wait = self._squared_wait = self._response = self._work = self._nodes = 0  # ticks, ticks squared, node-ticks
        self._slowdown = self._slowdown_perkovic = self._weighted_slowdown = self._waste = 0.0
        self._first: int | None = None
        self._last = 0

    def add(self, left: Iterable[StreamedJob]) -> None:
        """Add jobs that have left the system."""
        ran = []
        for job in left:
            self._count(job)
            if job.status is not Status.REJECTED:
                ran.append(job)
        if not ran:
            return
        waits = [job.start - job.row.submit for job in ran]
        for wait in waits:
            self._waits.add(wait)
        self._first_waits += waits[: EXACT + 1 - len(self._first_waits)]
        responses, run = [job.end - job.row.submit for job in ran], [dedicated_run(job) for job in ran]
        nodes = [job.row.nodes for job in ran]
        self._jobs += len(ran)
        self._wait += sum(waits)
        self._squared_wait += sum(wait * wait for wait in waits)
        self._response += sum(responses)
        self._work += sum(number * ticks for number, ticks in zip(nodes, run, strict=True))
        self._nodes += sum(nodes)
        response_s, run_s = (np.array(ticks, dtype=np.float64) / TICKS_PER_SECOND for ticks in (responses, run))
        slowdown = bounded_slowdown(response_s, run_s)
        self._slowdown = _plus(self._slowdown, slowdown)
        self._slowdown_perkovic = _plus(self._slowdown_perkovic, bounded_slowdown_perkovic(response_s, run_s))
        self._weighted_slowdown = _plus(self._weighted_slowdown, slowdown * np.array(nodes, dtype=np.float64))

    def _count(self, job: StreamedJob) -> None:
        if job.status is Status.REJECTED:
            self._rejected += 1
            return
        submit = job.row.submit
        self._first = submit if self._first is None else min(self._first, submit)
        self._last = max(self._last, submit)
        self._killed += job.status is Status.KILLED
        self._aborted += job.status is Status.ABORTED
        self._retried += job.requeued
        self._backfilled += job.backfilled
        self._blocked += job.blocked
        if job.preemptions:
            self._preempted += 1
            self._preemptions += job.preemptions
            self._waste += job.lost / max(job.executed, 1)

    def summary(self, ledger: Ledger, *, policy: str, workload: str, seed: int) -> Summary:
        """Return the summary of a run that has ended.

        Delays by lower-priority jobs and violated reservations depend on the whole schedule: they are ``None`` (``nan``).

        Args:
            ledger: of the run.
            policy: its label.
            workload: its name.
            seed: of the policy's random stream.
        """
        work_s = self._work / TICKS_PER_SECOND
        horizon_s = to_seconds(ledger.end - ledger.start)
        span_s = 0.0 if self._first is None else to_seconds(self._last - self._first)
        return Summary(
            policy=policy,
            workload=workload,
            nodes=ledger.nodes,
            seed=seed,
            jobs=self._jobs,
            rejected=self._rejected,
            killed=self._killed,
            aborted=self._aborted,
            retried=self._retried,
            **self._statistics(),
            utilization=ledger.utilization,
            total_load=ledger.utilization + ledger.waste,
            wasted_load=ledger.waste,
            kappa=ledger.capacity_loss,
            load=_ratio(work_s, ledger.nodes * span_s),
            load_until_end=_ratio(work_s, ledger.nodes * horizon_s),
            backfilled=self._backfilled,
            blocked=self._blocked,
            delayed=None,
            mean_delay_by_later_s=_NAN,
            longest_delay_by_later_s=_NAN,
            reservation_violations=None,
            benign_violations=None,
            failure_violations=None,
            preempted=self._preempted,
            mean_killed_times=self._preemptions / self._preempted if self._preempted else 0.0,
            runtime_waste=self._waste / self._preempted if self._preempted else 0.0,
            failures=0,
            failed_attempts=0,
            down_share=ledger.down_share,
            horizon_s=horizon_s,
        )

    def _statistics(self) -> JobStatistics:
        jobs = self._jobs
        variance = Fraction(jobs * self._squared_wait - self._wait**2, jobs**2) if jobs else Fraction(0)
        return {
            "mean_wait_s": _ratio(self._wait / TICKS_PER_SECOND, jobs),
            "median_wait_s": self._quantile(0.5),
            "p95_wait_s": self._quantile(0.95),
            "std_wait_s": sqrt(variance) / TICKS_PER_SECOND if jobs else _NAN,
            "mean_response_s": _ratio(self._response / TICKS_PER_SECOND, jobs),
            "mean_bounded_slowdown": _ratio(self._slowdown, jobs),
            "mean_bounded_slowdown_perkovic": _ratio(self._slowdown_perkovic, jobs),
            "mean_weighted_bounded_slowdown": _ratio(self._weighted_slowdown, self._nodes),
        }

    def _quantile(self, q: float) -> float:
        if 0 < self._jobs <= EXACT:
            return percentile(np.array(self._first_waits, dtype=np.float64) / TICKS_PER_SECOND, 100 * q)
        ticks = self._waits.get_quantile_value(q)
        return _NAN if ticks is None else ticks / TICKS_PER_SECOND


def dedicated_run(job: StreamedJob) -> int:
    """Return the run time of a job on the nodes it asked for, ticks: the denominator of its slowdown."""
    if job.allocated == job.row.nodes:
        return job.executed
    return job.row.run if job.status is Status.COMPLETED else min(job.row.run, job.row.estimate)


def _plus(total: float, values: FloatArray) -> float:
    return fsum([total, *values.tolist()])


def _ratio(amount: float, of: float) -> float:
    return amount / of if of else _NAN


def _sketch() -> DDSketch:
    try:
        from ddsketch import DDSketch  # noqa: PLC0415  few runs are streamed
    except ModuleNotFoundError:
        raise SpecificationError(missing_package("stream", "ddsketch", "stream")) from None
    return DDSketch(QUANTILE_ERROR)
