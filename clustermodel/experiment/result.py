"""The result of a run: its job table, summary, ledger, event log, explanations, figures and files."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from clustermodel.arrays import Columns, FloatArray
from clustermodel.errors import SpecificationError, counted, did_you_mean, quoted, visible
from clustermodel.experiment.specification import Specification
from clustermodel.machine.machine import Machine
from clustermodel.machine.price import Price
from clustermodel.measure import fairness, metrics, timeline
from clustermodel.measure.columns import frame
from clustermodel.measure.energy import (
    Cost,
    Picojoules,
    PowerDraw,
    cost_of,
    draw_of,
    energy_by_account,
    energy_of_jobs,
    energy_table,
    kwh,
)  # fmt: skip
from clustermodel.measure.explanation import Explanation, explanation
from clustermodel.measure.job_table import Jobs, attempt_table, job_columns
from clustermodel.measure.recorded_groups import GROUPINGS, NO_NAME, SIZE
from clustermodel.recording.job_records import JobRecords, in_seconds
from clustermodel.recording.ledger import Amount, Ledger
from clustermodel.recording.matrix_history import History, SliceLog
from clustermodel.sim.simulation import Outcome
from clustermodel.theory.capacity_loss import capacity_loss, gang_capacity_loss
from clustermodel.ticks import to_seconds
from clustermodel.validation import choice, require, require_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import pandas as pd

    from clustermodel.figures.result_plots import ResultPlots


class Result:
    """The result of a scenario.  Tables are pandas, times in seconds; docs/outputs lists every column.

    After a streamed run, attributes that need the jobs raise a ``SpecificationError``.  Files that cannot be written raise an
    ``OutputError``.
    """

    def __init__(self, scenario: Specification, machine: Machine, outcome: Outcome, sums: metrics.Sums | None = None) -> None:
        self.scenario = scenario
        self.machine = machine
        self.submitted = len(outcome.records)
        """Number of submitted jobs."""
        self._records = outcome.records
        self._sums = sums  # of a streamed run, which keeps no jobs
        self.ledger: Ledger = outcome.ledger
        """The capacity ledger."""
        self.slices: SliceLog | None = outcome.slices
        """The time slices between each two scheduling events, an iterable; ``None`` without time sharing."""
        self._reasons = outcome.reasons
        self._history = outcome.history
        self.fragmented_starts = outcome.fragmented_starts
        """Starts of gangs that fitted by count and not by node: too few processors of a node were idle together.  0 where nodes
        have one processor."""
        self.simulation_s = 0.0
        """Wall time of the simulation, seconds; of a streamed run with the reading of its jobs."""

    def __repr__(self) -> str:
        return visible(
            f"<Result of {self.scenario.label} on {self.scenario.workload_name}: {self.submitted:,} jobs, "
            f"utilization {self.ledger.utilization:.3f}>"
        )

    def _repr_html_(self) -> str:
        """Return what matters most for a notebook, with notes on input that looks wrong."""
        from clustermodel.figures.run_tables import comparison_table  # noqa: PLC0415

        return comparison_table([self])._repr_html_()

    @property
    def streamed(self) -> bool:
        """Whether the run was streamed and kept no jobs."""
        return self._sums is not None

    @property
    def records(self) -> JobRecords:
        """Job records in ticks, for further measurement."""
        if self.streamed:
            instead = "give stream the path of a Parquet file for them, or do not stream"
            raise SpecificationError(f"Scenario.stream: a streamed run keeps no jobs; {instead}")
        return self._records

    @property
    def nothing_played(self) -> bool:
        """Whether the slow mode was requested although no gang shared its nodes in time."""
        return self.scenario.fidelity == "node" and self.slices is None

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """The job table: one row per job, in order of submission; recorded columns such as ``account`` are last."""
        return frame(self._job_columns()).assign(**self.scenario.streams.recorded(self.records.column("id")))

    def _job_columns(self) -> Columns:
        streams = self.scenario.streams
        columns: dict[str, Any] = job_columns(Jobs.of(self.records), malleable=streams.has_malleable)
        columns["stream"] = streams.of(self.records.column("id"))
        if self.may_hold_jobs:
            columns["held_s"] = in_seconds(self.records.column("eligible") - self.records.column("submit"))
        if self.machine.power_cap_w is not None:
            columns["power_cap_wait_s"] = in_seconds(self.records.column("cap_wait"))
        if self.machine.powers:
            columns["energy_kwh"] = self._energy_of_jobs
        return columns

    def columns(self, table: str) -> Columns | pd.DataFrame:
        """Return the table ``"jobs"``, ``"placements"`` or ``"states"`` for writing, without pandas, which is slow to import.

        Columns are arrays of NumPy, shape ``(rows,)``; one of repeated texts is :class:`~clustermodel.arrays.Coded`.  Jobs with
        recorded facts, such as accounts, are a table of pandas.

        Raises:
            SpecificationError: there is no such table.
        """
        if table == "jobs" and self.scenario.streams.has_recorded_facts:
            return self.jobs
        tables = {"jobs": self._job_columns, "placements": self._placement_columns, "states": self._state_columns}
        return tables[choice("table", table, tables)]()

    @property
    def run_attempts(self) -> pd.DataFrame:
        """The run attempts: a row for each, by job, then by time (``start_s``, ``end_s``, ``outcome`` and others)."""
        return attempt_table(self.records)

    @property
    def may_hold_jobs(self) -> bool:
        """Whether rules of a site, or jobs that they depend on, may hold jobs back after their submission."""
        site = self.scenario.used_site
        return (site is not None and not site.only_malleable) or self.scenario.streams.has_dependencies

    @property
    def _has_site_order(self) -> bool:
        return self.scenario.used_site is not None and self.scenario.used_site.order is not None

    @cached_property
    def _summary(self) -> metrics.Summary:
        scenario = self.scenario
        about: dict[str, Any] = {"policy": scenario.label, "workload": scenario.workload_name, "seed": scenario.seed}
        if self.machine.powers:
            about["energy_kwh"] = self.energy_kwh
            if self.machine.price is not None:
                about |= self.cost()._asdict()
        if self._sums is not None:
            return self._sums.summary(self.ledger, **about)
        if self.may_hold_jobs:
            about |= metrics.since_eligible(metrics.waits_since_eligible(self.records))
        return metrics.summarize(
            self.records, self.ledger, **about, defines_delays=not (self.slices is not None or self._has_site_order)
        )

    def summary(self, *, warm_up_s: float = 0.0) -> metrics.Summary:
        """Return the metrics of the run in one row.

        Jobs submitted sooner than ``warm_up_s`` after the first submission do not count in waits, responses and slowdowns;
        :func:`~clustermodel.experiment.result.suggest_warm_up` suggests a length.
        """
        if not (warm_up_s := require_seconds("warm_up_s", warm_up_s)):
            return self._summary
        return metrics.after_warm_up(self._summary, self.records, self.ledger, warm_up_s)

    def by_class(self) -> pd.DataFrame:
        """Return mean, deviation, median and percentiles of wait, response and slowdown for all, small and large jobs."""
        return metrics.by_class(self.records)

    def by_stream(self, *, warm_up_s: float = 0.0) -> pd.DataFrame:
        """Return the metrics of each job stream, as ``result.by_stream().loc["day", "mean_wait_s"]``; see :meth:`by_group`."""
        return self.by_group("stream", warm_up_s=warm_up_s)

    def by_user(self, *, warm_up_s: float = 0.0) -> pd.DataFrame:
        """Return the metrics of each user, by name where the workload has names; see :meth:`by_group`."""
        return self.by_group("user", warm_up_s=warm_up_s)

    def by_size(self, boundaries: Sequence[int], *, warm_up_s: float = 0.0) -> pd.DataFrame:
        """Return the metrics of each size class, as ``by_size([8, 64])`` of ``1-8``, ``9-64`` and ``> 64`` nodes."""
        return self.by_group(metrics.size_classes(self.records.column("nodes"), boundaries), warm_up_s=warm_up_s)

    def by_group(self, by: str | npt.ArrayLike, *, warm_up_s: float = 0.0) -> pd.DataFrame:
        """Return the metrics of groups of jobs: a row per group, a column per metric; docs/outputs lists them.

        ``by`` is a column of :attr:`jobs`, ``"size"`` for classes between powers of two, or the group of each job in their
        order.  ``"user"`` and ``"group"`` are names where the workload has them, and jobs without a queue or the like are the
        group ``"(none)"``.  Jobs submitted sooner than ``warm_up_s`` after the first submission count nowhere in the table.
        """
        groups = self._group_of_jobs(by) if isinstance(by, str) else by
        sums = {"energy_kwh": self._energy_of_jobs} if self.machine.powers else {}
        return metrics.by_group(self.records, groups, warm_up_s=warm_up_s, sums=sums, held=self.may_hold_jobs)

    def _group_of_jobs(self, by: str) -> pd.Series[Any]:
        if choice("by", by, dict.fromkeys([*self.jobs.columns, *GROUPINGS])) == SIZE:
            return metrics.doubling_classes(self.records.column("nodes")).rename(SIZE)
        if by not in self.jobs:
            return self.jobs["job"].map(lambda _: NO_NAME).rename(by)
        column = self.jobs[by]
        if by in ("user", "group") and f"{by}_name" in self.jobs:
            numbers = column.astype(str).where(column >= 0, NO_NAME)
            return self.jobs[f"{by}_name"].astype(object).fillna(numbers).rename(by)
        is_text = column.dtype.kind not in "biuf"
        return column.astype(object).fillna(NO_NAME).rename(by) if is_text and column.isna().any() else column

    @cached_property
    def _energy(self) -> Picojoules:
        return energy_by_account(self._records, self.ledger, self.machine)

    @property
    def energy(self) -> pd.DataFrame:
        """The energy by account of the ledger: ``energy_j``, ``energy_kwh`` and the ``share`` of all (docs/energy).

        Raises:
            SpecificationError: the machine has no power.
        """
        return energy_table(self._energy)

    @property
    def energy_kwh(self) -> float:
        """The energy of all nodes, from the first submission to the last end, kWh; errors as of :attr:`energy`."""
        return kwh(sum(self._energy.values()))

    @cached_property
    def _energy_of_jobs(self) -> FloatArray:
        of_jobs = energy_of_jobs(self.records, self.ledger, self.machine, self.slices)
        return np.array(list(map(kwh, of_jobs)), dtype=np.float64)

    @cached_property
    def power_draw(self) -> PowerDraw:
        """Total power over time; where nodes are shared in time, the mean between scheduling events."""
        return draw_of(self.records, self.ledger, self.machine, self.slices)

    def cost(self, price: Price | pd.DataFrame | None = None) -> Cost:
        """Return the cost and the carbon emissions of the energy, by a price series (by default the machine's).

        Raises:
            SpecificationError: the machine has no power, or there is no price.
        """
        price = self.machine.price if price is None else Price.of(price)
        if price is None:
            raise SpecificationError("cost: no price is given; give one, or Machine(price=...)")
        return cost_of(self.power_draw, price)

    def fairness(self) -> pd.DataFrame:
        """Return the numbers of blocked, delayed, late-started and preempted jobs for all, wide and narrow jobs.

        A run with time sharing is refused: delays by lower-priority jobs are not defined there.
        """
        if self.slices is not None:
            defined = "delays by lower-priority jobs are defined for dedicated nodes only"
            raise SpecificationError(f"fairness: {self.scenario.label} shares nodes in time; {defined}")
        if self._has_site_order:
            raise SpecificationError("fairness: the order of the site changes with time; no job has a lower priority for good")
        return fairness.fairness_by_width(self.records, self.ledger)

    @cached_property
    def events(self) -> timeline.EventLog:
        """Idle nodes (with time sharing: the mean until the next event) and queue length after each scheduling event."""
        if self.slices is not None:
            quantum = self.machine.time_slicing.quantum
            return timeline.sliced_event_log(self.records, self.slices, self.machine.processors, quantum)
        return timeline.event_log(self.records, self.machine.processors)

    @property
    def placements(self) -> pd.DataFrame:
        """The nodes of each gang over time: a row for each contiguous range of nodes, by time.

        Columns ``job``, ``begin_s``, ``end_s``, ``row`` of the Ousterhout matrix, ``first_node``, ``nodes`` and ``kind``.
        With time sharing, the run must have kept the history of the matrix.
        """
        return frame(self._placement_columns())

    def _placement_columns(self) -> Columns:
        return timeline.placements(self.records, None if self.slices is None else self.history, self.ledger.end)

    @property
    def states(self) -> pd.DataFrame:
        """The state of the machine after each scheduling event.

        Columns ``time_s``, ``busy_nodes`` (with time sharing: the mean until the next event), ``down_nodes``, ``waiting_jobs``,
        ``running_row`` of the Ousterhout matrix (-1 if none), ``reserved_nodes`` if reservations keep any free, the
        ``memory_share`` and ``store_share`` in use, and ``power_w``, the total power (the mean until the next event), if
        known.
        """
        return frame(self._state_columns())

    def _state_columns(self) -> Columns:
        shares = timeline.shares_over_time(self.records, self.machine, self.events.ticks)
        if self.machine.powers:
            shares["power_w"] = self.power_draw.means(self.events.ticks)
        return timeline.states(self.events, self.machine.processors, self._history, shares)

    @property
    def kappa_by_formula(self) -> float:
        """Loss of capacity recomputed from the event log alone (Zhang et al. 2003, eq. (2); eq. (3) with time sharing)."""
        machine = self.machine
        if self.slices is not None:
            intervals = [*timeline.idle_before(self.records, self.slices, machine.processors), *self.slices]
            return gang_capacity_loss(intervals, machine.time_slicing.quantum, machine.switch_ticks, machine.processors)
        log = self.events
        return capacity_loss(log.time_s, log.empty + log.held_up, log.waiting, machine.processors)

    @property
    def row_use(self) -> timeline.RowUse:
        """Rows of the Ousterhout matrix in use, and idle nodes beside stopped gangs; one row without time sharing."""
        if self.slices is None:
            return timeline.RowUse(1.0 if self.records.finished.any() else float("nan"), Amount(0, 0))
        return timeline.row_use(self.slices, self.machine.time_slicing.quantum)

    @property
    def history(self) -> History:
        """Every state of the Ousterhout matrix and of the ledger, if the run kept them."""
        if not self.records.finished.any():
            raise SpecificationError("history: no job ran; there is no matrix to show")
        if self.slices is None:
            raise SpecificationError(f"history: {self.scenario.label} does not share nodes in time; there is no matrix to show")
        if self._history is None:
            raise SpecificationError("history: it is not kept; run Scenario(..., history=True)")
        return self._history

    @property
    def plot(self) -> ResultPlots:
        """Figures of this run."""
        from clustermodel.figures.result_plots import ResultPlots  # noqa: PLC0415  matplotlib takes a second to import

        return ResultPlots(self)

    @property
    def provenance(self) -> Mapping[str, object]:
        """The origin of this result: versions, workload, machine, policy, requested fidelity, seed."""
        from importlib.metadata import version  # noqa: PLC0415  it takes long to import

        return {
            **{name: version(name) for name in ("clustermodel", "simpy", "numpy")},
            "python": platform.python_version(),
            "workload": [source.provenance.source for source in self.scenario.sources],
            "machine": repr(self.machine),
            "policy": self.scenario.label,
            "speedup": repr(self.scenario.speedup),
            "fidelity": self.scenario.fidelity,
            "events": self.scenario.events,
            "seed": self.scenario.seed,
        }

    def explain(self, job: int) -> Explanation:
        """Return why ``job`` (its id) started when it did; ``print`` the answer, or read its fields."""
        if self._reasons is None:
            raise SpecificationError("explain: the decision log is off; run Scenario(..., explain=True)")
        if job not in self._reasons:
            raise SpecificationError(f"explain: job {quoted(job)} is not in this run, or was never started")
        return explanation(self.records, job, self._reasons[job])

    def to_csv(self, path: str | PathLike[str], *, layout: str = "evalys") -> None:
        """Write the job records as CSV: Batsim's columns, which evalys reads; with ``layout="jobs"`` those of ``--jobs-csv``.

        An unknown layout, or one without columns for what the run did, is refused.
        """
        from clustermodel.experiment.schedule_files import evalys_text, jobs_text  # noqa: PLC0415  with the formats of all files
        from clustermodel.text.files import write_file  # noqa: PLC0415  the same

        if choice("layout", layout, ("evalys", "jobs")) == "jobs":
            write_file(path, jobs_text(self.records))
            return
        if self.slices is not None:
            raise SpecificationError(
                "layout: 'evalys' is not allowed: its rows are gangs that have their nodes to themselves, and "
                f"{visible(self.scenario.label)} shares nodes in time; it must be 'jobs'"
            )
        write_file(path, evalys_text(self.records, self.jobs, self.scenario.workload_name))

    def to_swf(self, path: str | PathLike[str]) -> None:
        """Write the simulated schedule in the Standard Workload Format (``.gz`` is compressed).

        A job that was preempted, or shared its nodes in time, has lines of partial executions too, one for each run attempt;
        :func:`~clustermodel.workload.schedule.read_schedule` reads them.
        """
        from clustermodel.experiment.schedule_files import write_schedule  # noqa: PLC0415  the same

        write_schedule(self.records, self.scenario, path)

    def to_perfetto(self, path: str | PathLike[str]) -> None:
        """Write the run as a trace for https://ui.perfetto.dev, in Chrome's JSON format (``.gz`` is compressed).

        docs/outputs describes it.  A run with time sharing must have kept its history.
        :func:`~clustermodel.figures.perfetto.write_perfetto` writes several runs to one file.
        """
        from clustermodel.figures.perfetto import write_perfetto  # noqa: PLC0415  matplotlib takes a second to import

        write_perfetto([self], path)


class WarmUp(NamedTuple):
    """A suggested warm-up."""

    seconds: float
    """Time from the first submission on, for ``Result.summary(warm_up_s=...)``."""
    jobs: int
    """Number of jobs of a run that MSER-5 leaves out."""
    settled: bool
    """``False`` if the runs are too short for a suggestion."""


def suggest_warm_up(*results: Result, column: str = "wait_s") -> WarmUp:
    """Return the warm-up that MSER-5 suggests; see :func:`~clustermodel.measure.statistics.mser5`.

    The values of a numeric ``column`` of ``result.jobs`` are averaged over the runs: the first jobs, the second jobs and so on.
    At least ten jobs of each run must have completed.  The noise of single runs, which can move the cut by half their length,
    averages out; the transient remains.  The warm-up lasts until the first counted job has been submitted in all runs.  Choose
    one for all replications and policies, and measure with ``result.summary(warm_up_s=...)``.
    """
    from clustermodel.measure.statistics import MSER_BATCH, mser5  # noqa: PLC0415  runs do without

    if not results:
        raise SpecificationError("results: none is given; at least one is needed")
    for result in results:
        require(isinstance(result, Result), "results", result, "each must be a Result, of Scenario.run")
    runs = [result.jobs[result.records.finished] for result in results]  # in order of submission
    numbers = list(map(str, runs[0].select_dtypes("number")))
    near = did_you_mean(column, numbers)
    require(column in numbers, "column", column, "it must be a column of numbers of result.jobs", near)
    length = min(map(len, runs))
    if length < 2 * MSER_BATCH:
        enough = f"at least {2 * MSER_BATCH} are needed in each"
        raise SpecificationError(f"results: {counted(length, 'job')} that ran to an end in a run cannot be enough; {enough}")
    drop, settled = mser5(np.mean([run[column].iloc[:length] for run in runs], axis=0))
    first = [run["submit_s"].iloc[drop] - to_seconds(result.ledger.start) for run, result in zip(runs, results, strict=True)]
    return WarmUp(float(max(first)) if drop else 0.0, drop, settled)
