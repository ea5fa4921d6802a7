"""Runs in constant memory: jobs that have left the system go to a Parquet file, and to the running sums of the summary."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn

from clustermodel.errors import SpecificationError
from clustermodel.experiment.random_streams import random_stream
from clustermodel.experiment.result import Result
from clustermodel.machine import Machine
from clustermodel.measure.metrics import Summary
from clustermodel.measure.running_summary import RunningSummary, dedicated_run
from clustermodel.policies.calibrated import Calibrated
from clustermodel.policies.registry import make_policy
from clustermodel.recording.run_attempts import UNKNOWN
from clustermodel.recording.streamed_records import StreamedJob, StreamedRecords
from clustermodel.sim.simulation import Outcome, simulate
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.feedback import submissions
from clustermodel.workload.table import Workload

if TYPE_CHECKING:
    from clustermodel.experiment.scenario import Scenario

Take = Callable[[list[StreamedJob]], None]


class StreamedRun(Result):
    """What a streamed run showed: its summary and its ledger.  What needs the jobs is refused in one line.

    All fields of the summary are exact, but for the median and the 95th percentile of the waits
    (:mod:`clustermodel.measure.running_summary`).  Delays by lower-priority jobs and violated reservations are ``None`` or
    ``nan``: they depend on the whole schedule.  No warm-up can be left out later.

    Args:
        scenario: what was run.
        machine: the machine.
        outcome: of the simulation.
        sums: of the jobs that have left the system.
    """

    def __init__(self, scenario: Scenario, machine: Machine, outcome: Outcome, sums: RunningSummary) -> None:
        super().__init__(scenario, machine, outcome)
        self._sums = sums

    @cached_property
    def _summary(self) -> Summary:
        names = {"policy": self.scenario.label, "workload": self.scenario.workload_name}
        return self._sums.summary(self.ledger, seed=self.scenario.seed, **names)


def streamed(
    scenario: Scenario, path: str | os.PathLike[str] | None = None, *, progress: Callable[[int], None] | None = None
) -> StreamedRun:
    """Simulate a scenario in memory that does not grow with the number of jobs, if its workload's does not.

    Args:
        scenario: one job stream, without feedback, whose job numbers rise, on a machine whose nodes do not fail and under a
            policy that does not share them in time.  :class:`~clustermodel.workload.swf.SwfStream` reads a trace job by job.
        path: a Parquet file for the jobs, in the order in which they leave the system; the columns of ``Result.jobs``
            without waits, responses and ``stream``, and with ``dedicated_run_s``.  By default they are not kept.
        progress: called from time to time with the number of jobs submitted since the last call.

    Raises:
        SpecificationError: the scenario cannot be streamed, or a package is missing.
        OutputError: the file cannot be written.
        DecisionError: the policy made an impossible decision, or never started a waiting job.
        TraceError: a streamed trace is malformed.
        LedgerError: the books do not balance.
    """
    machine, policy = scenario.used_machine, make_policy(scenario.policy)
    _require_streamable(scenario, machine)
    if isinstance(policy, Calibrated):

        def refuse(other: str) -> NoReturn:
            raise SpecificationError(f"stream: policy {scenario.label} is calibrated by a run of {other}, which keeps all jobs")

        policy.calibrate(refuse)
    sums = RunningSummary()
    with _jobs_file(path) as write:

        def take(left: list[StreamedJob]) -> None:
            sums.add(left)
            write(left)

        records = StreamedRecords(take)
        outcome = simulate(
            machine,
            [submissions(source) for source in scenario.streams],
            policy,
            random_stream(scenario.seed, "policy"),
            events=scenario.events,
            speedup=scenario.speedup,
            progress=progress,
            records=records,
        )
        records.close()
        scenario.streams.require_jobs(len(records))
    return StreamedRun(scenario, machine, outcome, sums)


def _require_streamable(scenario: Scenario, machine: Machine) -> None:
    for what, wrong in (
        ("several job streams are", len(scenario.sources) > 1),
        ("a workload with feedback is", any(isinstance(one, Workload) and one.has_feedback for one in scenario.sources)),
        ("a machine with failures is", machine.failures is not None),
        ("a decision log (explain) is", scenario.explain),
        ("a history is", scenario.history),
    ):
        if wrong:
            raise SpecificationError(f"stream: {what} not allowed in a streamed run, whose memory is constant")


def _columns(left: list[StreamedJob]) -> dict[str, list[object]]:
    def seconds(ticks: int) -> float | None:
        return None if ticks == UNKNOWN else ticks / TICKS_PER_SECOND

    return {
        "job": [job.row.id for job in left],
        "submit_s": [seconds(job.row.submit) for job in left],
        "start_s": [seconds(job.start) for job in left],
        "end_s": [seconds(job.end) for job in left],
        "nodes": [job.row.nodes for job in left],
        "allocated_nodes": [job.allocated for job in left],
        "run_s": [seconds(job.executed) for job in left],
        "dedicated_run_s": [seconds(dedicated_run(job)) for job in left],
        "estimate_s": [seconds(job.row.estimate) for job in left],
        "user": [job.row.user for job in left],
        "group": [job.row.group for job in left],
        "priority": [job.row.priority for job in left],
        "status": [job.status.label for job in left],
        "reserved_s": [seconds(job.reserved) for job in left],
        "head_since_s": [seconds(job.head_since) for job in left],
        "blocked": [job.blocked for job in left],
        "backfilled": [job.backfilled for job in left],
        "tries": [job.attempts for job in left],
        "wasted_node_s": [job.discarded / TICKS_PER_SECOND for job in left],
    }


@contextmanager
def _jobs_file(path: str | os.PathLike[str] | None) -> Iterator[Take]:
    """Yield what writes jobs to a Parquet file; the file is there when the block has ended without an error."""
    if path is None:
        yield lambda _: None
        return
    import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415  a quarter of a second
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # noqa: PLC0415

    from clustermodel.output_files import replacing  # noqa: PLC0415  few runs need it

    kinds = dict.fromkeys(_columns([]), pa.int64()) | dict.fromkeys(("blocked", "backfilled"), pa.bool_())
    kinds |= {name: pa.float64() for name in kinds if name.endswith("_s")} | {"status": pa.string()}
    schema = pa.schema(list(kinds.items()))
    with replacing(path) as file, pq.ParquetWriter(file, schema) as writer:
        yield lambda left: writer.write_table(pa.table(_columns(left), schema=schema))
