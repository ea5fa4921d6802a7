"""The specification of one run: machine, workload, policy, seed and options; a scenario runs itself."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any, Final, NoReturn, Self
from weakref import WeakKeyDictionary
from zlib import crc32

import numpy as np

from clustermodel.arrays import IntArray
from clustermodel.errors import SpecificationError
from clustermodel.experiment.result import Result
from clustermodel.experiment.specification import Specification
from clustermodel.machine.machine import Machine
from clustermodel.measure.columns import arrow_table
from clustermodel.measure.job_table import Jobs, job_columns
from clustermodel.measure.metrics import Sums
from clustermodel.policies.interface import MEASURED, Calibrated, Policy, Waits
from clustermodel.policies.registry import is_shipped, make_policy, policy_names
from clustermodel.recording.job_records import JobRecords, StreamedJob, StreamedRecords, in_seconds
from clustermodel.recording.run_attempts import UNKNOWN
from clustermodel.sim.held_jobs import HeldJobs, counts_nodes
from clustermodel.sim.node_requests import requests_of
from clustermodel.sim.node_types import places_of
from clustermodel.sim.partitions import Lifting
from clustermodel.sim.simulation import Outcome, simulate
from clustermodel.sim.site_order import SiteOrder
from clustermodel.site.order import FairShare, Multifactor
from clustermodel.site.site import Site
from clustermodel.workload.dependencies import require_no_circle
from clustermodel.workload.table import Workload

NOTHING_PLAYED: Final = "Scenario.fidelity: 'node'"  # begins the warning that the slow mode had no time slice to simulate

_log = logging.getLogger(__name__)


def nothing_played(labels: Sequence[str]) -> str:
    """Return what there is to say about runs in the slow mode that had no time slice to simulate; of many, three are named."""
    names = list(dict.fromkeys(labels))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (
        f"no gang shared its nodes in time under {', '.join(names[:3])}{more}; there was nothing to play, and the result "
        "is that of fidelity fast"
    )


@dataclass(frozen=True, kw_only=True)
class Scenario(Specification):
    """Specification of one run, which runs itself; a field that is not allowed is a ``SpecificationError``."""

    @classmethod
    def from_toml(cls, source: str | PathLike[str]) -> Self:
        """Return the scenario that a TOML file describes; docs/scenario_files has the keys.

        ``source`` is the path of the file, or its text, which has a line break or an equals sign.
        """
        from clustermodel.experiment.scenario_file import scenario_from  # noqa: PLC0415  with all kinds of workloads

        return scenario_from(cls, source)

    def to_toml(self, path: str | PathLike[str] | None = None) -> str:
        """Return the scenario as TOML, of which :meth:`from_toml` makes an equal one, and write it to ``path``, if given.

        Paths of traces are relative to the folder of ``path``, unless they are absolute.  A policy, speedup model or workload
        that exists in memory only is a ``SpecificationError``.
        """
        from clustermodel.experiment.scenario_file import text_of  # noqa: PLC0415  the same

        text = text_of(self, Path() if path is None else Path(path).parent)
        if path is not None:
            from clustermodel.text.files import write_file  # noqa: PLC0415  the same

            write_file(path, text)
        return text

    def run(self, *, progress: Callable[[int], None] | None = None) -> Result:
        """Simulate the scenario; a streamed run shows its summary and its ledger only.

        ``progress`` is called from time to time with the number of jobs submitted since the last call.

        Raises:
            DecisionError: the policy made an impossible decision, or never started a waiting job.
            TraceError: a streamed trace is malformed.
        """
        machine, began = self.used_machine, perf_counter()
        nodes = f"{machine.processors:,}"
        _log.info(
            "run %s: %s on %s nodes, seed %d, fidelity %s", self.label, self.workload_name, nodes, self.seed, self.fidelity
        )
        _log.debug("machine of %s: %s", self.label, machine)
        if self.stream is False:
            only = self.sources[0] if len(self.sources) == 1 else None
            workload = only if isinstance(only, Workload) else None
            policy = calibrate(make_policy(self.policy), lambda other: self._measured(other, machine, workload))
            outcome = self._simulate(machine, policy, records=JobRecords(), **self._options(progress))
            if workload is not None and self.policy == MEASURED and self.events == "together":
                _last_measured[workload] = (MEASURED, machine, self.used_site, self.seed), waits_in(outcome.records)
            result = Result(self, machine, outcome)
        else:
            result = self._run_streamed(machine, progress)
        result.simulation_s = perf_counter() - began
        _log.info("run %s: %s jobs in %.2f s", self.label, f"{result.submitted:,}", result.simulation_s)
        if result.nothing_played:
            warnings.warn(f"{NOTHING_PLAYED}: {nothing_played([self.label])}", UserWarning, stacklevel=2)
        return result

    def _options(self, progress: Callable[[int], None] | None) -> dict[str, Any]:
        """Return what a run is asked for beside its schedule, and what only some policies depend on."""
        names = "explain", "fidelity", "events", "history", "speedup"
        return {"progress": progress, **{name: getattr(self, name) for name in names}}

    def _measured(self, other: str, machine: Machine, workload: Workload | None) -> _NodesAndWaits:
        """Return the waits of another policy on the same machine and jobs, under the same rules of the site."""
        # Those on a workload in memory are measured once for all policies compared on it with the same machine and seed.
        measured_for = (other, machine, self.used_site, self.seed)
        last = None if workload is None else _last_measured.get(workload)
        if last is None or last[0] != measured_for:
            last = measured_for, waits_in(self._simulate(machine, make_policy(other), records=JobRecords()).records)
            if workload is not None:
                _last_measured[workload] = last
        return last[1]

    def _simulate(self, machine: Machine, policy: Policy, **options: Any) -> Outcome:
        lifting = self._lifting(machine)
        streams, demands = self.streams.submissions(_names_read(machine, lifting))
        nodes = "partitions" if machine.partitions else "types of nodes"
        places = places_of(machine, demands, lifting)
        shrinks = self.streams.has_malleable and machine.on_failure == "shrink"
        by_node = machine.has_shared_nodes and counts_nodes((self.used_site or Site()).limits)
        windows = "on a machine with reservations" if machine.reservations else "where outages are known in advance"
        for takes, is_needed, where in (
            ("takes_partitions", places is not None, f"on a machine with {nodes}"),
            ("takes_reservations", bool(machine.windows), windows),
            ("takes_shapes", requests_of(machine, demands) is not None, "where jobs have shapes, or share the memory of nodes"),
            ("takes_shapes", by_node, "where limits count nodes that have several processors (Limits.processors counts those)"),
            ("takes_resizes", shrinks, "where failures shrink malleable jobs"),
        ):
            # Where it depends on parameters, the policy says itself which of them.
            if is_needed and not getattr(type(policy), takes, getattr(policy, takes, False)):
                known = ", ".join(name for name in policy_names() if getattr(make_policy(name), takes, False))
                hint = f"those that know them are {known}" if is_shipped(policy) else f"a class with {takes} = True knows them"
                raise SpecificationError(f"policy {self.label}: not allowed {where}; {hint}")
        outcome = simulate(
            machine,
            streams,
            policy,
            random_stream(self.seed, "policy"),
            failure_rng=random_stream(self.seed, "failures"),
            held=self._held_jobs(machine),
            order=self._site_order(machine),
            demands=demands,
            lifting=lifting,
            by_node=by_node,
            **options,
        )
        self.streams.require_jobs(len(outcome.records))
        return outcome

    def _lifting(self, machine: Machine) -> Lifting:
        """Return the QOS whose jobs are exempt from limits of partitions."""
        qos = (self.used_site or Site()).qos if machine.partitions else ()
        return Lifting(
            frozenset(each.name for each in qos if each.lifts_partition_time),
            frozenset(each.name for each in qos if each.lifts_partition_nodes),
        )

    def _held_jobs(self, machine: Machine) -> HeldJobs | None:
        site, dependencies = self.used_site or Site(), self.streams.dependencies()
        arrays = self.streams.array_limits() if site.array_limits else {}
        singletons = self.streams.singletons()
        if not (site.limits or len(dependencies) or arrays or singletons):
            return None
        if singletons and len(dependencies):
            require_no_circle(dependencies, singletons)
        facts = {name: self.streams.names_of_jobs(name) for name in site.subjects}
        default = next((each.name for each in machine.partitions if each.default), None)
        return HeldJobs(site, facts, dependencies, arrays, singletons, default)

    def _site_order(self, machine: Machine) -> SiteOrder | None:
        site = self.used_site
        if site is None or not isinstance(site.order, FairShare | Multifactor):
            return None
        facts = {name: self.streams.names_of_jobs(name) for name in ("account", "user", "partition", "qos", "queue")}
        return SiteOrder(site.order, facts, machine.processors)

    def _run_streamed(self, machine: Machine, progress: Callable[[int], None] | None) -> Result:
        """Run in memory that does not grow with the number of jobs: jobs that have left go to running sums, and to a file."""
        feedback = any(isinstance(source, Workload) and source.has_feedback for source in self.sources)
        for what, wrong in (
            ("several job streams are", len(self.sources) > 1),
            ("a workload with feedback is", feedback),
            ("a machine with failures is", machine.failures is not None),
            ("a machine with a price of energy is", machine.price is not None),
            ("a decision log (explain) is", self.explain),
            ("a history is", self.history),
            ("a site is", self.used_site is not None and not self.used_site.only_malleable),
            ("a machine with partitions is", bool(machine.partitions)),
            ("a machine with types of nodes is", bool(machine.node_types)),
            ("a workload with shapes is", self.streams.has_shapes),
            ("a machine with reservations is", bool(machine.reservations)),
            ("a workload with dependencies is", self.streams.has_dependencies),
        ):
            if wrong:
                raise SpecificationError(f"stream: {what} not allowed in a streamed run, whose memory is constant")

        def refuse(other: str) -> NoReturn:
            raise SpecificationError(f"stream: policy {self.label} is calibrated by a run of {other}, which keeps all jobs")

        policy, sums = make_policy(self.policy), Sums(constant_memory=True)
        policy = calibrate(policy, refuse)
        with nullcontext() if self.stream is True else _jobs_file(str(self.stream), self.streams.has_malleable) as write:

            def take(left: list[StreamedJob]) -> None:
                jobs = Jobs.of_streamed(left)
                sums.add(jobs)
                if write is not None:
                    write(jobs)

            records = StreamedRecords(take)
            outcome = self._simulate(machine, policy, records=records, **self._options(progress))
            records.close()
        return Result(self, machine, outcome, sums)


def _names_read(machine: Machine, lifting: Lifting) -> list[str]:
    """Return which of the names that jobs give the machine reads; without the others, more jobs have the same demand."""
    read = {
        "partition": machine.partitions,
        "qos": any(lifting),
        "node_type": machine.node_types,
        "features": machine.node_types,
        **dict.fromkeys(("account", "user", "reservation"), machine.reservations),
    }
    return [name for name, is_read in read.items() if is_read]


@contextmanager
def _jobs_file(path: str, has_malleable: bool) -> Iterator[Callable[[Jobs], None]]:
    """Yield what writes jobs to a Parquet file; the file is there when the block has ended without an error."""
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # noqa: PLC0415

    from clustermodel.text.files import replacing  # noqa: PLC0415  few runs need it

    def table_of(jobs: Jobs) -> Any:
        return arrow_table({**job_columns(jobs, malleable=has_malleable), "dedicated_run_s": in_seconds(jobs.dedicated)})

    schema = table_of(Jobs.of_streamed([])).schema
    with replacing(path) as file, pq.ParquetWriter(file, schema) as writer:
        yield lambda jobs: writer.write_table(table_of(jobs))


_NodesAndWaits = tuple[IntArray, IntArray]
# Of each workload, for which policy, machine, site and seed its waits were measured last.
_last_measured: WeakKeyDictionary[Workload, tuple[tuple[str, Machine, Site | None, int], _NodesAndWaits]] = WeakKeyDictionary()


def calibrate(policy: Policy, measure: Callable[[str], _NodesAndWaits]) -> Policy:
    """Return ``policy``, calibrated with the waits of another policy on the same machine and jobs if it asks for that."""
    if not isinstance(policy, Calibrated):
        return policy
    return policy.calibrated(lambda other: Waits(*(tuple(column.tolist()) for column in measure(other))))


def waits_in(records: JobRecords) -> _NodesAndWaits:
    """Return nodes and waits in the queue, ticks, of the jobs that started: not the time for which the site held them."""
    start = records.column("start")
    started = start != UNKNOWN
    return records.column("nodes")[started], (start - records.column("eligible"))[started]


def random_stream(seed: int, purpose: str) -> np.random.Generator:
    """Return the random number generator for ``purpose`` under a root seed; different purposes get independent streams."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(crc32(purpose.encode()),)))
