"""The papers' metrics, computed from job records: response, wait, slowdown, utilization, load, counts.

Formulas: Zhang et al. 2003, section 2.3; Perkovic & Keleher 2000, section 2; Yuan et al. 2010, sections 5.1.2 and 5.2.4, and
tables 1 to 6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from math import isnan
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import BoolArray, FloatArray, IntArray, distinct, dot, median, percentile
from clustermodel.errors import SpecificationError
from clustermodel.html import html_table
from clustermodel.measure.fairness import Violations, delays_by_later_jobs, reservation_violations
from clustermodel.measure.job_table import dedicated, lost, preemptions, useful, wasted
from clustermodel.measure.quantities import Quantity, quantity
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import Ledger
from clustermodel.recording.run_attempts import UNKNOWN, Status
from clustermodel.ticks import TICKS_PER_SECOND, to_seconds, to_ticks

if TYPE_CHECKING:
    import pandas as pd


GAMMA_S: Final = 10.0
"""Slowdown bound Gamma, seconds (Zhang et al. 2003, section 2.3)."""
LARGE_ABOVE_NODES: Final = 32
"""A job of more nodes than this is *large* (Zhang et al. 2003, section 2.2)."""
PERCENTILES: Final = (90, 95, 99)


def bounded_slowdown(response_s: FloatArray, run_s: FloatArray, gamma_s: float = GAMMA_S) -> FloatArray:
    """Return max(t^r, Gamma) / max(t^e, Gamma) for each job, at least 1 (Zhang et al. 2003, section 2.3; Yuan et al. 2010)."""
    slowdown: FloatArray = np.maximum(response_s, gamma_s) / np.maximum(run_s, gamma_s)
    return slowdown


def bounded_slowdown_perkovic(response_s: FloatArray, run_s: FloatArray, bound_s: float = GAMMA_S) -> FloatArray:
    """Return (finish - submit) / max(run, bound) for each job (Perkovic & Keleher 2000, section 2).

    It is below 1 for a short job that does not wait.
    """
    slowdown: FloatArray = response_s / np.maximum(run_s, bound_s)
    return slowdown


def weighted_mean(values: FloatArray, weights: npt.ArrayLike) -> float:
    """Return the mean of ``values`` weighted by ``weights``; ``nan`` if there are none."""
    return float(np.average(values, weights=np.asarray(weights))) if len(values) else float("nan")


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One run in one row; unless a field says otherwise, it is over the jobs that ran to an end.

    Scripts depend on the field names: they are the keys of ``clustermodel run --json``.
    """

    policy: str
    workload: str
    nodes: int
    """Size of the machine."""
    seed: int
    jobs: int
    """Jobs that ran to an end."""
    rejected: int
    """Jobs larger than the machine, or of no nodes."""
    killed: int
    """Jobs killed at their wall-time limit."""
    aborted: int
    """Jobs killed by the policy."""
    retried: int
    """Jobs stopped at a time limit of the policy and restarted at least once."""
    mean_wait_s: float
    median_wait_s: float
    p95_wait_s: float
    std_wait_s: float
    mean_response_s: float
    mean_bounded_slowdown: float
    """Mean of max(response, 10 s) / max(run, 10 s): the slowdown of Zhang et al. 2003, MBS of Yuan et al. 2010."""
    mean_bounded_slowdown_perkovic: float
    """Mean of response / max(run, 10 s): the bounded slowdown of Perkovic & Keleher 2000."""
    mean_weighted_bounded_slowdown: float
    """Mean bounded slowdown weighted by nodes: MWBS of Yuan et al. 2010."""
    utilization: float
    """rho: useful work per capacity (Zhang et al. 2003, eq. (1))."""
    total_load: float
    """All work per capacity until the last end, discarded work included (Yuan et al. 2010, table 5)."""
    wasted_load: float
    """Discarded work (jobs killed by the policy, runs stopped at a time limit) per capacity (Yuan et al. 2010, table 5)."""
    kappa: float
    """Loss of capacity (Zhang et al. 2003, eq. (2); eq. (3) where nodes are shared in time)."""
    load: float
    """Work / (nodes x (last - first submission)) (Yuan et al. 2010, table 3)."""
    load_until_end: float
    """Work / (nodes x (last end - first submission)); work as in :attr:`load`."""
    backfilled: int
    """Jobs that started while a job ahead in the queue kept waiting."""
    blocked: int
    """Jobs ever left waiting at the head of the queue."""
    delayed: int | None
    """Blocked jobs delayed by lower-priority jobs (Yuan et al. 2010, section 3.1); ``None`` where nodes are shared in time."""
    mean_delay_by_later_s: float
    """Mean delay of the delayed jobs; 0 if there are none, ``nan`` where nodes are shared in time."""
    longest_delay_by_later_s: float
    reservation_violations: int | None
    """Jobs that started after their first guaranteed start because of lower-priority jobs (Yuan et al. 2010, section 3.2);
    ``None`` where nodes are shared in time."""
    benign_violations: int | None
    """Jobs that started after their first guaranteed start because of jobs ahead in the queue."""
    failure_violations: int | None
    """Jobs that started after their first guaranteed start, and for which a node failed while they waited."""
    preempted: int
    """Jobs preempted at least once (Yuan et al. 2010, table 6)."""
    mean_killed_times: float
    """Mean number of preemptions per preempted job: MKT of Yuan et al. 2010; 0 if there are none."""
    runtime_waste: float
    """Mean of (executed time - run time) / run time of the preempted jobs: RTW of Yuan et al. 2010, eq. (3); 0 if there are
    none."""
    failures: int
    """Failures of nodes within the makespan."""
    failed_attempts: int
    """Run attempts that the failure of a node stopped."""
    down_share: float
    """Node time of outages per capacity."""
    horizon_s: float
    """Makespan: last end - first submission."""
    warm_up_s: float = 0.0
    """Jobs submitted within this time after the first submission do not count in :attr:`jobs` and in the statistics of waits,
    responses and slowdowns; all other fields cover the whole run."""

    def as_dict(self) -> dict[str, object]:
        """Return the fields by name; ``nan`` becomes ``None``, which JSON can hold."""
        return {key: None if isinstance(value, float) and isnan(value) else value for key, value in asdict(self).items()}

    def _repr_html_(self) -> str:
        """Return the summary for a notebook: field, meaning, value and unit."""
        fields = self.as_dict()
        known = [quantity(name) or Quantity(name) for name in fields]
        return html_table(
            f"{self.policy} on {self.workload}",
            [
                ("field", list(fields)),
                ("meaning", [one.name for one in known]),
                ("value", list(fields.values())),
                ("unit", [one.unit for one in known]),
            ],
            right=(False, False, True, False),
        )


class JobStatistics(TypedDict):
    """The fields of a :class:`Summary` that are statistics over jobs."""

    mean_wait_s: float
    median_wait_s: float
    p95_wait_s: float
    std_wait_s: float
    mean_response_s: float
    mean_bounded_slowdown: float
    mean_bounded_slowdown_perkovic: float
    mean_weighted_bounded_slowdown: float


def job_statistics(records: JobRecords, members: BoolArray) -> JobStatistics:
    """Return wait, response and slowdown of some of the jobs that ran to an end; ``nan`` where there are none.

    Args:
        records: of a run.
        members: which of them, shape ``(jobs,)``.
    """
    nodes = records.column("nodes")[members]
    submit, start, end = (records.seconds(name)[members] for name in ("submit", "start", "end"))
    wait, response, run = start - submit, end - submit, dedicated(records)[members] / TICKS_PER_SECOND
    slowdown = bounded_slowdown(response, run)
    return {
        "mean_wait_s": _statistic(np.mean, wait),
        "median_wait_s": _statistic(median, wait),
        "p95_wait_s": _percentile(wait, 95),
        "std_wait_s": _statistic(np.std, wait),
        "mean_response_s": _statistic(np.mean, response),
        "mean_bounded_slowdown": _statistic(np.mean, slowdown),
        "mean_bounded_slowdown_perkovic": _statistic(np.mean, bounded_slowdown_perkovic(response, run)),
        "mean_weighted_bounded_slowdown": weighted_mean(slowdown, nodes),
    }


def summarize(
    records: JobRecords, ledger: Ledger, *, policy: str, workload: str, seed: int, shared_in_time: bool = False
) -> Summary:
    """Return the summary of a run.

    Args:
        records: of the run.
        ledger: of the run.
        policy: its label.
        workload: its name.
        seed: of the policy's random stream.
        shared_in_time: whether gangs shared nodes in time slices, so that no number of idle nodes exists.
    """
    ran = records.finished
    ended_as = records.column("ended_as")
    work = dot(records.column("nodes")[ran], dedicated(records)[ran] / TICKS_PER_SECOND)
    accepted = records.seconds("submit")[ended_as != Status.REJECTED]
    delays = None if shared_in_time else delays_by_later_jobs(records, ledger.nodes)
    delayed = np.empty(0) if delays is None else delays[delays > 0]
    violations = None if shared_in_time else reservation_violations(records, ledger.nodes)
    preempted = _preempted(records)
    stopped = records.stopped_runs
    no_delay = float("nan") if shared_in_time else 0.0
    return Summary(
        policy=policy,
        workload=workload,
        nodes=ledger.nodes,
        seed=seed,
        jobs=int(ran.sum()),
        rejected=int((ended_as == Status.REJECTED).sum()),
        killed=int((ended_as == Status.KILLED).sum()),
        aborted=int((ended_as == Status.ABORTED).sum()),
        retried=len(distinct(stopped.job[stopped.ended_as == Status.REQUEUED])),
        **job_statistics(records, ran),
        utilization=ledger.utilization,
        total_load=ledger.utilization + ledger.waste,
        wasted_load=ledger.waste,
        kappa=ledger.capacity_loss,
        load=_per(work, ledger.nodes * float(np.ptp(accepted)) if len(accepted) else 0.0),
        load_until_end=_per(work, ledger.nodes * to_seconds(ledger.end - ledger.start)),
        backfilled=int(records.column("backfilled").sum()),
        blocked=int((records.blocked_since != UNKNOWN).sum()),
        delayed=None if shared_in_time else len(delayed),
        mean_delay_by_later_s=float(delayed.mean()) if len(delayed) else no_delay,
        longest_delay_by_later_s=float(delayed.max()) if len(delayed) else no_delay,
        reservation_violations=None if violations is None else int(violations.by_later.sum()),
        benign_violations=None if violations is None else int(violations.benign.sum()),
        failure_violations=None if violations is None else int(violations.by_failure.sum()),
        preempted=int(preempted.jobs.sum()),
        mean_killed_times=_per(float(preempted.times.sum()), int(preempted.jobs.sum()), otherwise=0.0),
        runtime_waste=_per(float(preempted.waste[preempted.jobs].sum()), int(preempted.jobs.sum()), otherwise=0.0),
        failures=int(((records.outages.start >= ledger.start) & (records.outages.start <= ledger.end)).sum()),
        failed_attempts=int((stopped.ended_as == Status.FAILED).sum()),
        down_share=ledger.down_share,
        horizon_s=to_seconds(ledger.end - ledger.start),
    )


def after_warm_up(summary: Summary, records: JobRecords, ledger: Ledger, warm_up_s: float) -> Summary:
    """Return a summary in which jobs, waits, responses and slowdowns are those of jobs submitted after the warm-up.

    Args:
        summary: of the run.
        records: of the run.
        ledger: of the run.
        warm_up_s: length of the warm-up from the first submission on, seconds.

    Raises:
        SpecificationError: no job that was submitted later ran to an end.
    """
    members = records.finished & (records.column("submit") >= ledger.start + to_ticks(warm_up_s))
    if not members.any():
        raise SpecificationError(f"warm_up_s: {warm_up_s:g} is not allowed; no job that was submitted later ran to an end")
    return replace(summary, warm_up_s=warm_up_s, jobs=int(members.sum()), **job_statistics(records, members))


def by_class(records: JobRecords, *, large_above: int = LARGE_ABOVE_NODES) -> pd.DataFrame:
    """Return statistics of wait, response and bounded slowdown for all, small and large jobs (Zhang et al. 2003, section 2.3).

    Args:
        records: of a run.
        large_above: a job of more nodes than this is large.

    Returns:
        A row per (class, metric); columns ``jobs, mean, std, median, p90, p95, p99, max, weighted_mean`` (weighted by
        nodes).  Times in seconds; ``std`` is the population's.
    """
    import pandas as pd

    ran = records.finished
    nodes = records.column("nodes")[ran]
    submit, start, end = (records.seconds(name)[ran] for name in ("submit", "start", "end"))
    metrics = {
        "wait_s": start - submit,
        "response_s": end - submit,
        "bounded_slowdown": bounded_slowdown(end - submit, dedicated(records)[ran] / TICKS_PER_SECOND),
    }
    classes = {"all": np.full(len(nodes), True), "small": nodes <= large_above, "large": nodes > large_above}
    rows = {}
    for class_name, members in classes.items():
        for metric, values in metrics.items():
            of_class = values[members]
            rows[class_name, metric] = {
                "jobs": len(of_class),
                "mean": _statistic(np.mean, of_class),
                "std": _statistic(np.std, of_class),
                "median": _statistic(median, of_class),
                **{f"p{p}": _percentile(of_class, p) for p in PERCENTILES},
                "max": _statistic(np.max, of_class),
                "weighted_mean": weighted_mean(of_class, nodes[members]),
            }
    frame = pd.DataFrame.from_dict(rows, orient="index")
    frame.index = frame.index.set_names(["class", "metric"])
    return frame


class _Preempted(NamedTuple):
    """Which jobs were preempted, how often, and their share of discarded work; shapes ``(jobs,)``."""

    jobs: BoolArray
    times: FloatArray
    waste: FloatArray
    """(executed time - run time) / run time (Yuan et al. 2010, eq. (3))."""


def _preempted(records: JobRecords) -> _Preempted:
    times, executed = preemptions(records), records.column("worked")
    return _Preempted(times > 0, times.astype(float), lost(records) / np.maximum(executed, 1))


def fairness_by_width(records: JobRecords, ledger: Ledger) -> pd.DataFrame:
    """Return blocked, delayed, late-started and preempted jobs by size class: all jobs, ``wide`` jobs and ``narrow`` jobs.

    A job is wide if it asks for more than a quarter of the machine.  These are the numbers of Yuan et al. 2010, tables 1, 2 and
    4 to 6 and, for blocked jobs, figures 2 and 3.

    Args:
        records: of a run in which nodes were not shared in time.
        ledger: of the run.

    Returns:
        A row each for ``all``, ``wide`` and ``narrow``.  docs/outputs lists the columns.
    """
    import pandas as pd

    nodes, ran = records.column("nodes"), records.finished
    submit, end = records.seconds("submit"), records.seconds("end")
    run = dedicated(records) / TICKS_PER_SECOND
    slowdown = bounded_slowdown(end - submit, run)
    counts = {
        suffix: (
            delays_by_later_jobs(records, ledger.nodes, over_it=over_it),
            violations := reservation_violations(records, ledger.nodes, over_it=over_it),
            # Compared with a job that starts, and so ends, as much earlier as it was late.
            slowdown - bounded_slowdown(end - submit - violations.late_s, run),
        )
        for suffix, over_it in (("", False), ("_over_it", True))
    }
    benign_violations, benign_late_s = counts[""][1].benign, counts[""][1].late_s
    preempted = _preempted(records)
    blocked = records.blocked_since != UNKNOWN
    wide = 4 * nodes > ledger.nodes
    rows = {}
    for name, members in {"all": ran, "wide": ran & wide, "narrow": ran & ~wide}.items():
        stuck, benign = members & blocked, members & benign_violations
        stopped = members & preempted.jobs
        discarded, done = (int(work[members].sum()) for work in (wasted(records), useful(records)))
        rows[name] = {
            "jobs": int(members.sum()),
            "mean_bounded_slowdown": _statistic(np.mean, slowdown[members]),
            "mean_weighted_bounded_slowdown": weighted_mean(slowdown[members], nodes[members]),
            "backfilled": int(records.column("backfilled")[members].sum()),
            "blocked": int(stuck.sum()),
            "blocked_bounded_slowdown": _statistic(np.mean, slowdown[stuck]),
            "blocked_weighted_bounded_slowdown": weighted_mean(slowdown[stuck], nodes[stuck]),
            **_by_later(members, nodes, *counts[""]),
            "benign_violations": int(benign.sum()),
            "mean_benign_violation_s": _statistic(np.mean, benign_late_s[benign]),
            "preempted": int(stopped.sum()),
            "preempted_rate": _per(float(stopped.sum()), float(members.sum())),
            "mean_killed_times": _statistic(np.mean, preempted.times[stopped]),
            "runtime_waste": _statistic(np.mean, preempted.waste[stopped]),
            "total_load": _per(discarded + done, ledger.capacity),
            "wasted_load": _per(discarded, ledger.capacity),
            **{f"{name}_over_it": value for name, value in _by_later(members, nodes, *counts["_over_it"]).items()},
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def _by_later(
    members: BoolArray, nodes: IntArray, delays: FloatArray, violations: Violations, increment: FloatArray
) -> dict[str, float]:
    """Return how many jobs, and by how much, lower-priority jobs delay, and reservations they violate."""
    late, violated = members & (delays > 0), members & violations.by_later
    return {
        "delayed": int(late.sum()),
        "mean_delay_by_later_s": _statistic(np.mean, delays[late]),
        "longest_delay_by_later_s": _statistic(np.max, delays[late]),
        "reservation_violations": int(violated.sum()),
        "mean_violation_nodes": _statistic(np.mean, nodes[violated].astype(float)),
        "mean_violation_s": _statistic(np.mean, violations.late_s[violated]),
        "longest_violation_s": _statistic(np.max, violations.late_s[violated]),
        "mean_slowdown_increment": _statistic(np.mean, increment[violated]),
        "largest_slowdown_increment": _statistic(np.max, increment[violated]),
    }


def _statistic(statistic: Callable[[FloatArray], np.floating[Any] | float], values: FloatArray) -> float:
    return float(statistic(values)) if len(values) else float("nan")


def _percentile(values: FloatArray, percent: float) -> float:
    return percentile(values, percent) if len(values) else float("nan")


def _per(work: float, capacity: float, *, otherwise: float = float("nan")) -> float:
    return work / capacity if capacity else otherwise
