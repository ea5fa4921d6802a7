"""The papers' metrics of a run, and of groups of its jobs: response, wait, slowdown, utilization, load, counts.

Formulas: Zhang et al. 2003, section 2.3; Perkovic & Keleher 2000, section 2; Yuan et al. 2010, sections 5.1.2 and 5.2.4, and
tables 1 to 6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil, exp, floor, inf, isnan, log, nan, sqrt
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import BoolArray, FloatArray, IntArray, dot
from clustermodel.errors import SpecificationError, quoted
from clustermodel.formatting import html_table
from clustermodel.measure.fairness import Violations, delays_by_later_jobs, reservation_violations
from clustermodel.measure.job_table import Jobs, node_seconds, useful
from clustermodel.measure.quantities import Quantity, quantity
from clustermodel.recording.job_records import JobRecords, in_seconds
from clustermodel.recording.ledger import Ledger
from clustermodel.recording.run_attempts import UNKNOWN, Status
from clustermodel.ticks import TICKS_PER_SECOND, to_seconds, to_ticks
from clustermodel.validation import require_seconds, require_whole

if TYPE_CHECKING:
    import pandas as pd

GAMMA_S: Final = 10.0  # slowdown bound Gamma (Zhang et al. 2003, section 2.3)
LARGE_ABOVE_NODES: Final = 32  # a job of more nodes is *large* (Zhang et al. 2003, section 2.2)
PERCENTILES: Final = (90, 95, 99)
QUANTILE_ERROR: Final = 0.001
"""Largest relative error of the median and of the 95th percentile of the waits of more than :data:`EXACT` streamed jobs."""
EXACT: Final = 10_000
"""Number of streamed jobs up to which both are exact: interpolated between neighbours, as for runs that keep their jobs."""


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
        columns: list[tuple[str, Sequence[object]]] = [
            ("field", list(fields)), ("meaning", [of_field.name for of_field in known]),
            ("value", list(fields.values())), ("unit", [of_field.unit for of_field in known]),
        ]  # fmt: skip
        return html_table(f"{self.policy} on {self.workload}", columns, right=(False, False, True, False))


_MEANS: Final = ("wait_s", "response_s", "bounded_slowdown", "bounded_slowdown_perkovic")
"""Times and ratios whose plain means are in a summary."""


class QuantileSketch:
    """Counts of times in bins whose bounds grow by a constant factor: quantiles within :data:`QUANTILE_ERROR`, in 180 KiB.

    The bins are those of DDSketch (Masson et al. 2019, section 2).
    """

    _STEP: Final = log((1 + QUANTILE_ERROR) / (1 - QUANTILE_ERROR))
    _BINS: Final = ceil(log(2.0**63) / _STEP) + 2  # the first is that of 0, the last that of the largest number of ticks

    def __init__(self) -> None:
        self._counts = np.zeros(self._BINS, dtype=np.int64)

    def add(self, times_s: FloatArray) -> None:
        """Count times, none negative."""
        bins = np.ceil(np.log(np.maximum(times_s * TICKS_PER_SECOND, 1)) / self._STEP).astype(np.int64)
        self._counts += np.bincount(np.where(times_s > 0, bins + 1, 0), minlength=self._BINS)

    def quantile(self, q: float) -> float:
        """Return the time at position floor(q (n - 1)) of the n sorted times, within the error."""
        position = floor(q * (int(self._counts.sum()) - 1))
        index = int(np.searchsorted(np.cumsum(self._counts), position, side="right"))
        return (1 - QUANTILE_ERROR) * exp((index - 1) * self._STEP) / TICKS_PER_SECOND if index else 0.0


class Sums:
    """Sums over jobs, added all at once or block by block, and the summary that follows from them.

    With ``constant_memory``, of more than :data:`EXACT` waits quantiles come from a :class:`QuantileSketch`.
    """

    def __init__(self, *, constant_memory: bool = False) -> None:
        self.jobs = 0  # that ran to an end
        self.work = 0.0  # of these, node-seconds
        self._totals = dict.fromkeys((*_MEANS, "nodes", "weighted"), 0.0)
        self._squares = 0.0  # of the deviations from the mean wait
        self._waits: list[FloatArray] = []
        self._sketch = QuantileSketch() if constant_memory else None
        self._counts = dict.fromkeys(("rejected", "killed", "aborted", "retried", "backfilled", "blocked", "preempted"), 0)
        self._preemptions, self._waste = 0, 0.0
        self._first_s, self._last_s = inf, -inf  # submissions

    def add(self, jobs: Jobs) -> None:
        """Add jobs that have left the system."""
        accepted, preempted = jobs.status != Status.REJECTED, jobs.preemptions > 0
        which = {
            "rejected": ~accepted, "killed": jobs.status == Status.KILLED, "aborted": jobs.status == Status.ABORTED,
            "retried": jobs.requeued, "backfilled": jobs.backfilled, "blocked": jobs.blocked_since != UNKNOWN,
            "preempted": preempted,
        }  # fmt: skip
        for name, chosen in which.items():
            self._counts[name] += int(chosen.sum())
        self._preemptions += int(jobs.preemptions.sum())
        self._waste += float((jobs.lost / np.maximum(jobs.executed, 1))[preempted].sum())  # Yuan et al. 2010, eq. (3)
        submit_s = in_seconds(jobs.submit[accepted])
        self._first_s = float(submit_s.min(initial=self._first_s))
        self._last_s = float(submit_s.max(initial=self._last_s))
        ran = jobs.end != UNKNOWN
        submit_s, start_s, end_s, run_s = (in_seconds(of[ran]) for of in (jobs.submit, jobs.start, jobs.end, jobs.dedicated))
        self.add_times(start_s - submit_s, end_s - submit_s, run_s, jobs.nodes[ran])

    def add_times(self, wait_s: FloatArray, response_s: FloatArray, run_s: FloatArray, nodes: IntArray) -> None:
        """Add jobs that ran to an end: waits, responses, run times and sizes, shapes ``(jobs,)``."""
        if not len(wait_s):
            return
        slowdown = bounded_slowdown(response_s, run_s)
        mean = wait_s.sum() / len(wait_s)
        deviation = wait_s - mean
        self._squares += float((deviation * deviation).sum())
        if self.jobs:  # the squares of two parts, each about its own mean (Chan et al. 1983)
            between = mean - self._totals["wait_s"] / self.jobs
            self._squares += float(between * between) * self.jobs * len(wait_s) / (self.jobs + len(wait_s))
        self.jobs += len(wait_s)
        self.work += dot(nodes, run_s)
        of_jobs = (wait_s, response_s, slowdown, bounded_slowdown_perkovic(response_s, run_s), nodes, slowdown * nodes)
        for name, values in zip(self._totals, of_jobs, strict=True):
            self._totals[name] += float(values.sum())
        if self._sketch is not None:
            self._sketch.add(wait_s)
        if self._sketch is None or self.jobs <= EXACT:
            self._waits.append(wait_s)

    def statistics(self) -> dict[str, Any]:
        """Return wait, response and slowdown of the jobs that ran to an end; ``nan`` where there are none."""
        if not self.jobs:
            half, p95 = nan, nan
        elif self._sketch is not None and self.jobs > EXACT:
            half, p95 = self._sketch.quantile(0.5), self._sketch.quantile(0.95)
        else:
            waits = np.concatenate(self._waits)
            half, p95 = float(np.median(waits)), float(np.percentile(waits, 95))
        return {
            **{f"mean_{name}": _per(self._totals[name], self.jobs) for name in _MEANS},
            "mean_weighted_bounded_slowdown": _per(self._totals["weighted"], self._totals["nodes"]),
            "median_wait_s": half,
            "p95_wait_s": p95,
            "std_wait_s": sqrt(_per(self._squares, self.jobs)),
        }

    def summary(
        self,
        ledger: Ledger,
        *,
        policy: str,
        workload: str,
        seed: int,
        delays: tuple[FloatArray, Violations] | None = None,
        failures: int = 0,
        failed_attempts: int = 0,
    ) -> Summary:
        """Return the summary of a run; ``delays``, where known, are by lower-priority jobs, seconds, and violations."""
        horizon_s = to_seconds(ledger.end - ledger.start)
        by_later: dict[str, Any] = {"delayed": None, "mean_delay_by_later_s": nan, "longest_delay_by_later_s": nan}
        by_later |= dict.fromkeys(("reservation_violations", "benign_violations", "failure_violations"))
        if delays is not None:
            delayed, violations = delays[0][delays[0] > 0], delays[1]
            by_later = {
                "delayed": len(delayed),
                "mean_delay_by_later_s": float(delayed.mean()) if len(delayed) else 0.0,
                "longest_delay_by_later_s": float(delayed.max(initial=0.0)),
                "reservation_violations": int(violations.by_later.sum()),
                "benign_violations": int(violations.benign.sum()),
                "failure_violations": int(violations.by_failure.sum()),
            }
        return Summary(
            policy=policy,
            workload=workload,
            nodes=ledger.nodes,
            seed=seed,
            jobs=self.jobs,
            **self._counts,
            **self.statistics(),
            utilization=ledger.utilization,
            total_load=ledger.utilization + ledger.waste,
            wasted_load=ledger.waste,
            kappa=ledger.capacity_loss,
            load=_per(self.work, ledger.nodes * max(self._last_s - self._first_s, 0.0)),
            load_until_end=_per(self.work, ledger.nodes * horizon_s),
            **by_later,
            mean_killed_times=_per(self._preemptions, self._counts["preempted"], otherwise=0.0),
            runtime_waste=_per(self._waste, self._counts["preempted"], otherwise=0.0),
            failures=failures,
            failed_attempts=failed_attempts,
            down_share=ledger.down_share,
            horizon_s=horizon_s,
        )


def summarize(
    records: JobRecords, ledger: Ledger, *, policy: str, workload: str, seed: int, shared_in_time: bool = False
) -> Summary:
    """Return the summary of a run; delays are unknown if gangs shared nodes in time, as no number of idle nodes exists."""
    sums = Sums()
    sums.add(Jobs.of(records))
    nodes, failed = ledger.nodes, records.outages.start
    return sums.summary(
        ledger,
        policy=policy,
        workload=workload,
        seed=seed,
        delays=None if shared_in_time else (delays_by_later_jobs(records, nodes), reservation_violations(records, nodes)),
        failures=int(((failed >= ledger.start) & (failed <= ledger.end)).sum()),
        failed_attempts=int((records.stopped_runs.ended_as == Status.FAILED).sum()),
    )


def after_warm_up(summary: Summary, records: JobRecords, ledger: Ledger, warm_up_s: float) -> Summary:
    """Return a summary in which jobs, waits, responses and slowdowns are those of jobs submitted after the warm-up."""
    jobs, sums = Jobs.of(records), Sums()
    sums.add(jobs.where(jobs.submit >= ledger.start + to_ticks(warm_up_s)))
    if not sums.jobs:
        raise SpecificationError(f"warm_up_s: {warm_up_s:g} is not allowed; no job that was submitted later ran to an end")
    return replace(summary, warm_up_s=warm_up_s, jobs=sums.jobs, **sums.statistics())


def by_group(records: JobRecords, groups: pd.Series[str] | npt.ArrayLike, *, warm_up_s: float = 0.0) -> pd.DataFrame:
    """Return the metrics of each group of jobs, by group; of a categorical column also groups without jobs have a row.

    ``groups`` has the group of each job; jobs submitted sooner than ``warm_up_s`` after the first count nowhere in the table.
    """
    import pandas as pd

    labels = pd.Categorical(groups if isinstance(groups, pd.Series) else np.asarray(groups))
    if len(labels) != len(records):
        raise SpecificationError(f"by_group: {len(labels)} groups are given for {len(records)} jobs; give one for each job")
    jobs = Jobs.of(records)
    counted = np.full(len(labels), True)
    if warm_up_ticks := to_ticks(require_seconds("warm_up_s", warm_up_s)):
        accepted = jobs.submit[jobs.status != Status.REJECTED]
        counted = jobs.submit >= (accepted.min() if len(accepted) else 0) + warm_up_ticks

    def grouped(values: npt.ArrayLike, which: BoolArray = counted) -> Any:
        return pd.Series(np.asarray(values)[which]).groupby(pd.Series(labels[which]), observed=False)

    ran = (jobs.end != UNKNOWN) & counted
    submit_s, start_s, end_s, run_s = map(in_seconds, (jobs.submit, jobs.start, jobs.end, jobs.dedicated))
    response_s = end_s - submit_s
    counts = {"jobs": ran, **{name: jobs.status == Status[name.upper()] for name in ("rejected", "killed", "aborted")}}
    columns: dict[str, pd.Series[float]] = {name: grouped(chosen).sum().astype(int) for name, chosen in counts.items()}
    metrics = {"wait_s": start_s - submit_s, "response_s": response_s, "bounded_slowdown": bounded_slowdown(response_s, run_s)}
    for metric, values in metrics.items():
        of_groups = grouped(values, ran)
        columns |= {
            f"mean_{metric}": of_groups.mean(),
            f"median_{metric}": of_groups.median(),
            f"std_{metric}": of_groups.std(ddof=0),
            **{f"p{percent}_{metric}": of_groups.quantile(percent / 100) for percent in PERCENTILES},
            f"max_{metric}": of_groups.max(),
            f"mean_weighted_{metric}": grouped(values * jobs.nodes, ran).sum() / grouped(jobs.nodes, ran).sum(),
        }
    columns["mean_bounded_slowdown_perkovic"] = grouped(bounded_slowdown_perkovic(response_s, run_s), ran).mean()
    for name, work in {"useful_node_s": useful(records), "wasted_node_s": jobs.wasted}.items():
        columns[name] = grouped(node_seconds(work)).sum()
    columns["share_of_work"] = columns["useful_node_s"] / (columns["useful_node_s"].sum() or nan)
    return pd.DataFrame(columns).set_axis(pd.Index(labels.categories, name=getattr(groups, "name", None) or "group"))


def by_class(records: JobRecords, *, large_above: int = LARGE_ABOVE_NODES) -> pd.DataFrame:
    """Return statistics of wait, response and bounded slowdown for all, small and large jobs (Zhang et al. 2003, section 2.3).

    A row per (class, metric); ``weighted_mean`` is weighted by nodes, ``std`` is the population's.
    """
    import pandas as pd

    large = (records.column("nodes") > large_above).astype(int)
    classes = [(0 * large, pd.Index(["all"])), (large, pd.Index(["small", "large"]))]
    groups = pd.concat([by_group(records, pd.Series(pd.Categorical.from_codes(*of))) for of in classes])
    names = ("mean", "std", "median", *(f"p{percent}" for percent in PERCENTILES), "max", "mean_weighted")
    rows = {
        (str(label), metric): {"jobs": int(group["jobs"]), **{name: group[f"{name}_{metric}"] for name in names}}
        for label, group in groups.iterrows()
        for metric in ("wait_s", "response_s", "bounded_slowdown")
    }
    frame = pd.DataFrame.from_dict(rows, orient="index").rename(columns={"mean_weighted": "weighted_mean"})
    return frame.rename_axis(["class", "metric"])


def size_classes(nodes: npt.NDArray[np.int64], boundaries: Sequence[int]) -> pd.Series[str]:
    """Return the size class of each job as text: ``"1-8"``, ``"9-64"``, ``"> 64"`` with boundaries 8 and 64."""
    import pandas as pd

    bounds = [require_whole("boundaries", bound, at_least=1) for bound in boundaries]
    if not bounds or bounds != sorted(set(bounds)):
        raise SpecificationError(f"boundaries: {quoted(list(boundaries))} is not allowed; it must be sizes that rise")
    first = [1, *(bound + 1 for bound in bounds)]
    names = [str(low) if low == high else f"{low}-{high}" for low, high in zip(first, bounds, strict=False)]
    names.append(f"> {bounds[-1]}")
    classes = pd.Categorical.from_codes(np.searchsorted(bounds, nodes), categories=pd.Index(names), ordered=True)
    return pd.Series(classes, name="nodes")


def fairness_by_width(records: JobRecords, ledger: Ledger) -> pd.DataFrame:
    """Return blocked, delayed, late-started and preempted jobs: all jobs, ``wide`` and ``narrow`` ones, on dedicated nodes.

    A job is wide if it asks for more than a quarter of the machine.  These are the numbers of Yuan et al. 2010, tables 1, 2 and
    4 to 6 and, for blocked jobs, figures 2 and 3.
    """
    import pandas as pd

    jobs = Jobs.of(records)
    nodes, ran = jobs.nodes, jobs.end != UNKNOWN
    response_s, run_s = in_seconds(jobs.end) - in_seconds(jobs.submit), jobs.dedicated / TICKS_PER_SECOND
    slowdown = bounded_slowdown(response_s, run_s)
    late = {}
    for suffix, over_it in (("", False), ("_over_it", True)):
        violations = reservation_violations(records, ledger.nodes, over_it=over_it)
        # Compared with a job that starts, and so ends, as much earlier as it was late.
        increment = slowdown - bounded_slowdown(response_s - violations.late_s, run_s)
        late[suffix] = delays_by_later_jobs(records, ledger.nodes, over_it=over_it), violations, increment
    violations = late[""][1]
    waste = jobs.lost / np.maximum(jobs.executed, 1)
    wide, useful_work = 4 * nodes > ledger.nodes, useful(records)
    rows = {}
    for name, members in {"all": ran, "wide": ran & wide, "narrow": ran & ~wide}.items():
        blocked, benign = members & (jobs.blocked_since != UNKNOWN), members & violations.benign
        preempted = members & (jobs.preemptions > 0)
        discarded, done = (int(work[members].sum()) for work in (jobs.wasted, useful_work))
        rows[name] = {
            "jobs": int(members.sum()),
            "mean_bounded_slowdown": _statistic(np.mean, slowdown[members]),
            "mean_weighted_bounded_slowdown": weighted_mean(slowdown[members], nodes[members]),
            "backfilled": int(jobs.backfilled[members].sum()),
            "blocked": int(blocked.sum()),
            "blocked_bounded_slowdown": _statistic(np.mean, slowdown[blocked]),
            "blocked_weighted_bounded_slowdown": weighted_mean(slowdown[blocked], nodes[blocked]),
            **_by_later(members, nodes, *late[""]),
            "benign_violations": int(benign.sum()),
            "mean_benign_violation_s": _statistic(np.mean, violations.late_s[benign]),
            "preempted": int(preempted.sum()),
            "preempted_rate": _per(float(preempted.sum()), float(members.sum())),
            "mean_killed_times": _statistic(np.mean, jobs.preemptions[preempted].astype(float)),
            "runtime_waste": _statistic(np.mean, waste[preempted]),
            "total_load": _per(discarded + done, ledger.capacity),
            "wasted_load": _per(discarded, ledger.capacity),
            **{f"{name}_over_it": value for name, value in _by_later(members, nodes, *late["_over_it"]).items()},
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def _by_later(
    members: BoolArray, nodes: IntArray, delays: FloatArray, violations: Violations, increment: FloatArray
) -> dict[str, float]:
    """Return how many jobs, and by how much, lower-priority jobs delay, and reservations they violate."""
    delayed, violated = members & (delays > 0), members & violations.by_later
    return {
        "delayed": int(delayed.sum()),
        "mean_delay_by_later_s": _statistic(np.mean, delays[delayed]),
        "longest_delay_by_later_s": _statistic(np.max, delays[delayed]),
        "reservation_violations": int(violated.sum()),
        "mean_violation_nodes": _statistic(np.mean, nodes[violated].astype(float)),
        "mean_violation_s": _statistic(np.mean, violations.late_s[violated]),
        "longest_violation_s": _statistic(np.max, violations.late_s[violated]),
        "mean_slowdown_increment": _statistic(np.mean, increment[violated]),
        "largest_slowdown_increment": _statistic(np.max, increment[violated]),
    }


def _statistic(statistic: Callable[[FloatArray], np.floating[Any] | float], values: FloatArray) -> float:
    return float(statistic(values)) if len(values) else nan


def _per(work: float, capacity: float, *, otherwise: float = nan) -> float:
    return work / capacity if capacity else otherwise
