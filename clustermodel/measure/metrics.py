"""The papers' metrics of a run, and of groups of its jobs: response, wait, slowdown, utilization, load, counts.

Formulas: Zhang et al. 2003, section 2.3; Perkovic & Keleher 2000, section 2; Yuan et al. 2010, sections 5.1.2 and 5.2.4, and
tables 1 to 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from math import ceil, exp, floor, inf, isnan, log, nan, sqrt
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import BoolArray, FloatArray, IntArray, dot
from clustermodel.errors import SpecificationError, quoted
from clustermodel.logs.log_jobs import peak_of_executing
from clustermodel.measure.fairness import Violations, delays_by_later_jobs, reservation_violations
from clustermodel.measure.job_table import Jobs, bounded_slowdown, bounded_slowdown_perkovic, node_seconds, useful
from clustermodel.measure.quantities import Quantity, account_quantity
from clustermodel.recording.job_records import JobRecords, in_seconds
from clustermodel.recording.ledger import Ledger
from clustermodel.recording.run_attempts import UNKNOWN, Status
from clustermodel.text.formatting import html_table
from clustermodel.ticks import TICKS_PER_SECOND, to_seconds, to_ticks
from clustermodel.validation import require_seconds, require_whole
from clustermodel.workload.job import UNSET
from clustermodel.workload.job_columns import HELD, SUSPENDED, WAIT
from clustermodel.workload.table import Workload

if TYPE_CHECKING:
    import pandas as pd

LARGE_ABOVE_NODES: Final = 32  # a job of more nodes is *large* (Zhang et al. 2003, section 2.2)
PERCENTILES: Final = (90, 95, 99)
ENERGY: Final = ("energy_kwh", "energy_cost", "carbon_kg")
"""Fields of a summary that are there only where it is known what nodes draw, and what that costs."""
SINCE_ELIGIBLE: Final = ("mean_wait_since_eligible_s", "median_wait_since_eligible_s", "p95_wait_since_eligible_s")
"""Fields that are there only where rules of a site, or jobs that they depend on, may hold jobs."""
OPTIONAL: Final = (*SINCE_ELIGIBLE, *ENERGY)
QUANTILE_ERROR: Final = 0.001  # relative, of the median and the 95th percentile of the waits of more streamed jobs than
EXACT: Final = 10_000  # up to which they are exact: interpolated between neighbours, as for runs that keep their jobs


def _quantity(name: str, unit: str = "", **default: Any) -> Any:
    return field(metadata={"quantity": Quantity(name, unit)}, **default)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One run in one row; unless a field says otherwise, it is over the jobs that ran to an end.

    Scripts depend on the field names: they are the keys of ``clustermodel run --json``.
    """

    policy: str
    workload: str
    nodes: int = _quantity("size of the machine", "nodes")
    seed: int
    jobs: int = _quantity("completed jobs", "jobs")
    """Jobs that ran to an end."""
    rejected: int = _quantity("rejected jobs", "jobs")
    """Jobs larger than the machine, or of no nodes."""
    killed: int = _quantity("jobs killed at the wall-time limit", "jobs")
    aborted: int = _quantity("jobs killed by the policy", "jobs")
    retried: int = _quantity("restarted jobs", "jobs")
    """Jobs stopped at a time limit of the policy and restarted at least once."""
    mean_wait_s: float = _quantity("mean wait", "s")
    median_wait_s: float = _quantity("median wait", "s")
    p95_wait_s: float = _quantity("95th percentile of waits", "s")
    std_wait_s: float = _quantity("standard deviation of waits", "s")
    mean_response_s: float = _quantity("mean response time", "s")
    mean_bounded_slowdown: float = _quantity("mean bounded slowdown")
    """Mean of max(response, 10 s) / max(run, 10 s): the slowdown of Zhang et al. 2003, MBS of Yuan et al. 2010."""
    mean_bounded_slowdown_perkovic: float = _quantity("mean bounded slowdown, Perkovic & Keleher 2000")
    """Mean of response / max(run, 10 s): the bounded slowdown of Perkovic & Keleher 2000."""
    mean_weighted_bounded_slowdown: float = _quantity("mean weighted bounded slowdown")
    """Mean bounded slowdown weighted by nodes: MWBS of Yuan et al. 2010."""
    utilization: float = _quantity("utilization ρ")
    """rho: useful work per capacity (Zhang et al. 2003, eq. (1))."""
    total_load: float = _quantity("total load")
    """All work per capacity until the last end, discarded work included (Yuan et al. 2010, table 5)."""
    wasted_load: float = _quantity("wasted load")
    """Discarded work (jobs killed by the policy, runs stopped at a time limit) per capacity (Yuan et al. 2010, table 5)."""
    kappa: float = _quantity("loss of capacity κ")
    """Loss of capacity (Zhang et al. 2003, eq. (2); eq. (3) where nodes are shared in time)."""
    load: float = _quantity("load until the last submission")
    """Work / (nodes x (last - first submission)) (Yuan et al. 2010, table 3)."""
    load_until_end: float = _quantity("load until the last completion")
    """Work / (nodes x (last end - first submission)); work as in :attr:`load`."""
    backfilled: int = _quantity("backfilled jobs", "jobs")
    """Jobs that started while a job ahead in the queue kept waiting."""
    blocked: int = _quantity("blocked jobs", "jobs")
    """Jobs ever left waiting at the head of the queue."""
    delayed: int | None = _quantity("jobs delayed by lower-priority jobs", "jobs")
    """Blocked jobs delayed by lower-priority jobs (Yuan et al. 2010, section 3.1); ``None`` where nodes are shared in time."""
    mean_delay_by_later_s: float = _quantity("mean delay by lower-priority jobs", "s")
    """Mean delay of the delayed jobs; 0 if there are none, ``nan`` where nodes are shared in time."""
    longest_delay_by_later_s: float = _quantity("longest delay by lower-priority jobs", "s")
    reservation_violations: int | None = _quantity("reservation violations", "jobs")
    """Jobs late for their first guaranteed start due to lower-priority jobs (Yuan et al. 2010, section 3.2), or ``None``."""
    benign_violations: int | None = _quantity("benign violations", "jobs")
    """Jobs that started after their first guaranteed start because of jobs ahead in the queue."""
    failure_violations: int | None = _quantity("late starts with failures of nodes", "jobs")
    """Jobs that started after their first guaranteed start, and for which a node failed while they waited."""
    preempted: int = _quantity("preempted jobs", "jobs")
    """Jobs preempted at least once (Yuan et al. 2010, table 6)."""
    mean_killed_times: float = _quantity("mean killed times MKT")
    """Mean number of preemptions per preempted job: MKT of Yuan et al. 2010; 0 if there are none."""
    runtime_waste: float = _quantity("run time waste RTW")
    """Mean of (executed time - run time) / run time of the preempted jobs: RTW of Yuan et al. 2010, eq. (3); or 0."""
    resizes: int = _quantity("resizes", "resizes")
    """How often the number of a gang's nodes was changed."""
    failures: int = _quantity("failures of nodes", "failures")
    """Failures of nodes within the makespan."""
    failed_attempts: int = _quantity("failed run attempts", "run attempts")
    down_share: float = _quantity("down nodes, share of capacity")
    horizon_s: float = _quantity("makespan", "s")
    """Makespan: last end - first submission."""
    mean_wait_since_eligible_s: float | None = _quantity("mean wait since eligible", "s", default=None)
    """Mean of the waits from when nothing but the scheduler kept a job from starting: waits without the time for which rules of
    the site, or jobs that it depends on, held it.  This, median and 95th percentile only where jobs may be held."""
    median_wait_since_eligible_s: float | None = _quantity("median wait since eligible", "s", default=None)
    p95_wait_since_eligible_s: float | None = _quantity("95th percentile of waits since eligible", "s", default=None)
    energy_kwh: float | None = _quantity("energy", "kWh", default=None)
    """Energy of all nodes in the makespan; this and what follows from it only if it is known what nodes draw."""
    energy_cost: float | None = _quantity("cost of energy", default=None)
    """Cost of the energy, where a price is known."""
    carbon_kg: float | None = _quantity("carbon", "kg", default=None)
    """Carbon that it emits, where that is known."""
    warm_up_s: float = _quantity("warm-up", "s", default=0.0)
    """Jobs submitted within this time after the first submission do not count in :attr:`jobs` and in the statistics of waits,
    responses and slowdowns; all other fields cover the whole run."""

    def as_dict(self) -> dict[str, object]:
        """Return the fields by name, optional ones if they are known; ``nan`` becomes ``None``, which JSON can hold."""
        values = {key: value for key, value in asdict(self).items() if value is not None or key not in OPTIONAL}
        return {key: None if isinstance(value, float) and isnan(value) else value for key, value in values.items()}

    def _repr_html_(self) -> str:
        """Return the summary for a notebook: field, meaning, value and unit."""
        values = self.as_dict()
        known = [QUANTITIES.get(name) or Quantity(name) for name in values]
        columns: list[tuple[str, Sequence[object]]] = [
            ("field", list(values)), ("meaning", [of_field.name for of_field in known]),
            ("value", list(values.values())), ("unit", [of_field.unit for of_field in known]),
        ]  # fmt: skip
        return html_table(f"{self.policy} on {self.workload}", columns, right=(False, False, True, False))


QUANTITIES: Final[dict[str, Quantity]] = {part.name: part.metadata["quantity"] for part in fields(Summary) if part.metadata}
"""Names and units of the fields; quantities without a unit are ratios."""


def quantity(column: str) -> Quantity | None:
    """Return the name and the unit of a column of runs; ``None`` for any other column."""
    return QUANTITIES.get(column) or account_quantity(column)


_NONE: Final[Mapping[str, FloatArray]] = MappingProxyType({})
_MEANS: Final = ("wait_s", "response_s", "bounded_slowdown", "bounded_slowdown_perkovic")  # plain, in a summary


class QuantileSketch:
    """Counts of times in bins of DDSketch (Masson et al. 2019, section 2): quantiles within the error, in 180 KiB."""

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
    """Sums over jobs, added all at once or block by block; in ``constant_memory`` quantiles of many waits are estimates."""

    def __init__(self, *, constant_memory: bool = False) -> None:
        self.jobs = 0  # that ran to an end
        self.work = 0.0  # of these, node-seconds
        self._totals = dict.fromkeys((*_MEANS, "nodes", "weighted"), 0.0)
        self._squares = 0.0  # of the deviations from the mean wait
        self._waits: list[FloatArray] = []
        self._sketch = QuantileSketch() if constant_memory else None
        counted = ("rejected", "killed", "aborted", "retried", "backfilled", "blocked", "preempted")
        self._counts: dict[str, Any] = dict.fromkeys(counted, 0)
        self._preemptions, self._resizes, self._waste = 0, 0, 0.0
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
        self._resizes += int(jobs.resizes.sum())
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
        half = p95 = nan
        if self._sketch is not None and self.jobs > EXACT:
            half, p95 = self._sketch.quantile(0.5), self._sketch.quantile(0.95)
        elif self.jobs:
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
        self, ledger: Ledger, *, delays: tuple[FloatArray, Violations] | None = None, failures: int = 0,
        failed_attempts: int = 0, **about: Any,
    ) -> Summary:  # fmt: skip
        """Return the summary of a run with policy, workload and seed; ``delays`` are by lower-priority jobs, where known."""
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
            **about,
            nodes=ledger.nodes,
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
            resizes=self._resizes,
            failures=failures,
            failed_attempts=failed_attempts,
            down_share=ledger.down_share,
            horizon_s=horizon_s,
        )


def summarize(records: JobRecords, ledger: Ledger, *, defines_delays: bool = True, **about: Any) -> Summary:
    """Return the summary of a run; delays are unknown if gangs shared nodes in time, as no number of idle nodes exists."""
    sums = Sums()
    sums.add(Jobs.of(records))
    nodes, failed = ledger.nodes, records.outages.start
    return sums.summary(
        ledger,
        **about,
        delays=(delays_by_later_jobs(records, nodes), reservation_violations(records, nodes)) if defines_delays else None,
        failures=int(((failed >= ledger.start) & (failed <= ledger.end)).sum()),
        failed_attempts=int((records.stopped_runs.ended_as == Status.FAILED).sum()),
    )


def after_warm_up(summary: Summary, records: JobRecords, ledger: Ledger, warm_up_s: float) -> Summary:
    """Return a summary in which jobs, waits, responses and slowdowns are those of jobs submitted after the warm-up."""
    jobs, sums = Jobs.of(records), Sums()
    later = jobs.submit >= ledger.start + to_ticks(warm_up_s)
    sums.add(jobs.where(later))
    if not sums.jobs:
        raise SpecificationError(f"warm_up_s: {warm_up_s:g} is not allowed; no job that was submitted later ran to an end")
    held: dict[str, Any] = (
        {} if summary.mean_wait_since_eligible_s is None else since_eligible(waits_since_eligible(records)[later])
    )
    return replace(summary, warm_up_s=warm_up_s, jobs=sums.jobs, **sums.statistics(), **held)


def waits_since_eligible(records: JobRecords) -> FloatArray:
    """Return how long each job waited for its last start since nothing held it any more, seconds; ``nan`` if it never ran."""
    wait = in_seconds(records.column("start")) - in_seconds(records.column("eligible"))
    return np.where(records.column("end") == UNKNOWN, nan, wait)


def since_eligible(waits_s: FloatArray) -> dict[str, float]:
    """Return the fields :data:`SINCE_ELIGIBLE` of waits since eligible, without those that are unknown (``nan``)."""
    known = waits_s[~np.isnan(waits_s)]
    if not len(known):
        return dict.fromkeys(SINCE_ELIGIBLE, nan)
    values = (float(known.mean()), float(np.median(known)), float(np.percentile(known, 95)))
    return dict(zip(SINCE_ELIGIBLE, values, strict=True))


@dataclass(frozen=True, kw_only=True)
class Observed:
    """The recorded schedule of a trace, by the definitions of :class:`~clustermodel.measure.metrics.Summary`."""

    jobs: int  # with a recorded wait that are not larger than the machine
    without_wait: int  # jobs whose wait is not recorded
    peak_nodes: int  # most nodes in use at the same time
    mean_wait_s: float
    median_wait_s: float
    p95_wait_s: float
    mean_bounded_slowdown: float
    utilization: float  # executed work per capacity, from the first submission to the last end
    mean_wait_since_eligible_s: float | None = None  # these three of the jobs of which the log says when they were eligible
    median_wait_since_eligible_s: float | None = None
    p95_wait_since_eligible_s: float | None = None


def observed_schedule(workload: Workload, nodes: int | None = None) -> Observed:
    """Return what a trace with the column ``wait`` has recorded, on a machine as large as the most nodes in use by default."""
    wait = workload.column(WAIT)
    known = wait != UNSET
    if not known.any():
        raise SpecificationError(
            f"whatif: {workload.name} has no recorded waits (SWF field 3; wait_s or start_s of --columns; of your reader: "
            "wait_s in Workload.from_frame), so there is nothing to compare with; `clustermodel run` simulates it"
        )
    occupied = workload.column("run") + np.maximum(workload.column(SUSPENDED), 0)
    start = workload.column("submit") + wait
    of_jobs = (column[known] for column in (start, start + occupied, workload.column("run"), workload.column("nodes")))
    peak = peak_of_executing(*of_jobs)[0]
    if workload.machine_nodes is not None and (workload.column(SUSPENDED)[known] > 0).any():
        peak = min(peak, workload.machine_nodes)  # nodes of a suspended job are another one's
    size = peak if nodes is None else nodes
    members = known & (workload.column("nodes") <= size)
    if not members.any():
        raise SpecificationError(f"--nodes: {size} is not allowed; every job of {workload.name} is larger")
    columns = (workload.column("submit"), wait, occupied, workload.column("run"), workload.column("nodes"))
    submit, wait, occupied, run, sizes = (column[members] for column in columns)
    held = workload.column(HELD)[members]
    is_known = held != UNSET
    waits_eligible = since_eligible((wait - held)[is_known] / TICKS_PER_SECOND) if is_known.any() else {}
    capacity_s = size * int((submit + wait + occupied).max() - submit.min()) / TICKS_PER_SECOND
    sums = Sums()
    sums.add_times(wait / TICKS_PER_SECOND, (wait + occupied) / TICKS_PER_SECOND, run / TICKS_PER_SECOND, sizes)
    statistics = sums.statistics()
    means = {name: statistics[name] for name in ("mean_wait_s", "median_wait_s", "p95_wait_s", "mean_bounded_slowdown")}
    without_wait, utilization = int((~known).sum()), sums.work / capacity_s
    return Observed(
        jobs=sums.jobs, without_wait=without_wait, peak_nodes=peak, **means, utilization=utilization, **waits_eligible
    )


def other_machine(workload: Workload, own_size: int, nodes: int) -> bool:
    """Return whether a machine is another one than that of the log, so that recorded and simulated waits do not compare.

    ``own_size`` is the size in the log's header, or else the most nodes in use at the same time: the least that it had.
    """
    is_known = workload.provenance.report is None and workload.machine_nodes is not None
    return nodes < own_size or (is_known and nodes != own_size)


def by_group(
    records: JobRecords,
    groups: pd.Series[str] | npt.ArrayLike,
    *,
    warm_up_s: float = 0.0,
    sums: Mapping[str, FloatArray] = _NONE,
    held: bool = False,
) -> pd.DataFrame:
    """Return the metrics of each group of jobs, by group; of a categorical column also groups without jobs have a row.

    ``groups`` has the group of each job; jobs submitted sooner than ``warm_up_s`` after the first count nowhere in the table.
    ``sums`` are numbers of jobs by name, whose sums are columns too.  With ``held``, waits since eligible are a metric too.
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
    if held:
        metrics["wait_since_eligible_s"] = waits_since_eligible(records)
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
    columns |= {name: grouped(values).sum() for name, values in sums.items()}
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


def doubling_classes(nodes: npt.NDArray[np.int64]) -> pd.Series[str]:
    """Return the size class of each job, with powers of two as boundaries."""
    return size_classes(nodes, [2**power for power in range(max(int(nodes.max(initial=1)) - 1, 1).bit_length() + 1)])


def _per(work: float, capacity: float, *, otherwise: float = nan) -> float:
    return work / capacity if capacity else otherwise
