"""The specification of one run: machine, workload, policy, seed and options; a scenario runs itself."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from time import perf_counter
from typing import Any, Final, NoReturn, Self
from unicodedata import category
from weakref import WeakKeyDictionary
from zlib import crc32

import numpy as np

from clustermodel.arrays import IntArray
from clustermodel.errors import SpecificationError, counted, refused
from clustermodel.experiment.result import Result
from clustermodel.machine.machine import Machine
from clustermodel.measure.columns import arrow_table
from clustermodel.measure.job_table import Jobs, job_columns
from clustermodel.measure.metrics import Sums
from clustermodel.policies.interface import MEASURED, Calibrated, Policy, Waits
from clustermodel.policies.registry import make_policy, policy_label, policy_names, site_order_of
from clustermodel.recording.job_records import JobRecords, StreamedJob, StreamedRecords, in_seconds
from clustermodel.recording.run_attempts import UNKNOWN
from clustermodel.sim.held_jobs import HeldJobs, counts_nodes
from clustermodel.sim.node_requests import requests_of
from clustermodel.sim.node_types import places_of
from clustermodel.sim.partitions import Lifting
from clustermodel.sim.simulation import EVENTS, FIDELITIES, Events, Fidelity, Outcome, simulate
from clustermodel.sim.site_order import SiteOrder
from clustermodel.site.order import FairShare, Multifactor
from clustermodel.site.site import Site
from clustermodel.text.formatting import html_fields
from clustermodel.validation import choice, flag, require, whole_fields
from clustermodel.workload.dependencies import require_no_circle
from clustermodel.workload.job import MALLEABLE
from clustermodel.workload.speedup import LINEAR, Speedup
from clustermodel.workload.streams_of_run import JobStreams
from clustermodel.workload.table import JobSource, Workload

_NOT_IN_A_LINE: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Unicode categories that a name must not contain: control characters, surrogates, line and paragraph separators."""
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
class Scenario:
    """Specification of one run; a field that is not allowed is a ``SpecificationError``."""

    workload: JobSource | Sequence[JobSource]
    """The jobs: a :class:`~clustermodel.workload.table.Workload`, an :class:`~clustermodel.workload.swf.SwfStream`, or several
    job streams, which the machine merges; duplicate job numbers are renumbered in the later ones."""
    policy: str | Policy = "easy"
    """A registered name, ``"name:key=value"``, or a policy of your own: an object with name and start, or a function."""
    machine: Machine | None = None
    """The machine; by default one of the size on which the workload was recorded."""
    seed: int = 1
    """Root seed of the policy's random stream."""
    explain: bool = False
    """Keep the decision log, for :meth:`Result.explain <clustermodel.experiment.result.Result.explain>`."""
    fidelity: Fidelity = "fast"
    """How time slices are simulated: ``"fast"`` computes progress between scheduling events in closed form; ``"node"``, the
    slow mode, simulates every slice on every node, with the same results to the tick, and warns where no gang shares nodes."""
    events: Events = "together"
    """Whether a policy is told of several events at one instant ``"together"``, in one scheduling cycle, or ``"one-by-one"``,
    submissions first, then ends, as by the program of Gaussier et al. 2015.  For dedicated nodes only."""
    history: bool = False
    """Keep every state of the Ousterhout matrix and of the ledger, for the figures of ``Result.plot``."""
    stream: bool | str | PathLike[str] = False
    """Run in constant memory: no job is kept after it has left the system, and the summary is made of running sums
    (docs/outputs says what can be streamed, and which results there are).  A path is that of a Parquet file for the jobs."""
    site: Site | None = None
    """The rules of the site, as limits of users; jobs that they hold are no policy's (docs/site)."""
    speedup: Speedup = LINEAR
    """How the run time of a job depends on its size, for policies that choose the size (Perkovic & Keleher 2000, section 7)."""
    name: str = ""
    """A label; by default the policy as requested."""

    def __post_init__(self) -> None:
        whole_fields(self, "Scenario.", seed=0)
        if isinstance(self.workload, (str, PathLike)):
            must = "a path must be read first, as in Scenario(workload=read_swf(path))"
            raise refused("Scenario.workload", str(self.workload), must)
        if isinstance(self.workload, Sequence):
            object.__setattr__(self, "workload", tuple(self.workload))
        if not self.sources:
            raise SpecificationError("Scenario.workload: no job stream is given; at least one is needed")
        for source in self.sources:
            require(isinstance(source, JobSource), "Scenario.workload", source, "it must be a Workload or an SwfStream")
        require(isinstance(self.machine, Machine | None), "Scenario.machine", self.machine, "it must be a Machine")
        require(isinstance(self.site, Site | None), "Scenario.site", self.site, "it must be a Site, as Site.from_toml(path)")
        flag("Scenario.explain", self.explain)
        flag("Scenario.history", self.history)
        if isinstance(self.stream, (str, PathLike)):
            object.__setattr__(self, "stream", fspath(self.stream))
        streamed = "it must be True, False or the path of a Parquet file"
        require(isinstance(self.stream, bool | str), "Scenario.stream", self.stream, streamed)
        choice("Scenario.fidelity", self.fidelity, FIDELITIES)
        choice("Scenario.events", self.events, EVENTS)
        speedup = isinstance(self.speedup, Speedup) and not isinstance(self.speedup, type)
        allowed = "it must be a LinearSpeedup, a DowneySpeedup, or an object with time_on"
        require(speedup, "Scenario.speedup", self.speedup, allowed)
        policy = make_policy(self.policy)
        if not isinstance(self.policy, str):
            object.__setattr__(self, "policy", policy)
        line = isinstance(self.name, str) and not any(category(letter) in _NOT_IN_A_LINE for letter in self.name)
        require(line, "Scenario.name", self.name, "it must be a line of text without control characters")
        _ = self.used_machine, self.used_site  # its size must be known, and its order one

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

    @property
    def sources(self) -> tuple[JobSource, ...]:
        """The job streams as specified."""
        return tuple(self.workload) if isinstance(self.workload, Sequence) else (self.workload,)

    @cached_property
    def streams(self) -> JobStreams:
        """The job streams with the job numbers of the run, which are unique; some jobs malleable, as the site says."""
        return JobStreams([self._resizable(source) for source in self.sources])

    @property
    def may_have_malleable(self) -> bool:
        """Whether the site or a workload has malleable jobs."""
        of_site = self.site is not None and bool(self.site.malleable)
        return of_site or any(isinstance(source, Workload) and source.has(MALLEABLE) for source in self.sources)

    def _resizable(self, source: JobSource) -> JobSource:
        for rule in () if self.site is None else self.site.malleable:
            if not isinstance(source, Workload):
                problem = f"not allowed for {source.name}, which is read job by job; read it into memory"
                raise SpecificationError(f"Site.malleable: {problem}")
            source = source.with_malleable(rule)
        return source

    @cached_property
    def used_machine(self) -> Machine:
        """The specified machine, or one of the size on which the workload was recorded, with the site's rules for nodes."""
        machine = self._machine()
        of_site = ("partitions", "node_types", "reservations", "power", "price", "power_cap_w")
        changes = {name: own for name in of_site if (own := getattr(self.site, name, ()))}
        return replace(machine, **changes) if changes else machine

    @cached_property
    def used_site(self) -> Site | None:
        """The rules of the site, with the order that the policy asks for."""
        if (name := site_order_of(self.policy)) is None:
            return self.site
        site = self.site or Site()
        if site.order is not None and not isinstance(site.order, str) and site.order.name == name:
            return self.site
        if site.order is not None:
            raise SpecificationError(f"policy {self.label}: the order of the site is another one; give one of the two")
        return replace(site, order=name)

    def _machine(self) -> Machine:
        if self.machine is not None:
            return self.machine
        known = [source.machine_nodes for source in self.sources if source.machine_nodes]
        if not known:
            unknown = f"none is given and {self.workload_name} does not name its size"
            raise SpecificationError(f"Scenario.machine: {unknown}; give machine=Machine(nodes=...)")
        return Machine(nodes=max(known))

    @property
    def workload_name(self) -> str:
        """The names of the job streams."""
        names = [source.name for source in self.sources]
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"

    @property
    def unit(self) -> str:
        """The unit of job sizes: ``"node"``, ``"core"`` or ``"GPU"``; ``"processor"`` where job streams differ."""
        units = {source.provenance.unit for source in self.sources}
        if units == {"node"} and self.used_machine.has_shared_nodes:
            return "GPU" if self.used_machine.gpus_per_node > 1 else "processor"
        return units.pop() if len(units) == 1 else "processor"

    @property
    def label(self) -> str:
        """The name, or the policy as requested."""
        return self.name or policy_label(self.policy)

    def _repr_html_(self) -> str:
        """Return the scenario for a notebook."""
        fields: dict[str, object] = {
            "workload": ", ".join(source.name for source in self.sources),
            "machine": counted(self.used_machine.processors, self.unit),
            "policy": policy_label(self.policy),
            "seed": str(self.seed),
        }
        others = ("fidelity", "events", "site", "speedup", "explain", "history", "stream")
        fields |= {name: getattr(self, name) for name in others if getattr(self, name) != getattr(Scenario, name)}
        return html_fields(f"Scenario {self.label}", fields.items())

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
                known = [name for name in policy_names() if getattr(make_policy(name), takes, False)]
                raise SpecificationError(
                    f"policy {self.label}: not allowed {where}; those that know them are {', '.join(known)}"
                )
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
        others = {"resizes": jobs.resizes} if has_malleable else {}
        return arrow_table({**job_columns(jobs), "dedicated_run_s": in_seconds(jobs.dedicated), **others})

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
