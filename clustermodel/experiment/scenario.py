"""A scenario: one machine, one workload, one policy, one seed; and the result of running it."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from os import PathLike
from typing import TYPE_CHECKING, Final
from unicodedata import category
from zlib import crc32

import numpy as np

from clustermodel.errors import SpecificationError, quoted
from clustermodel.experiment.schedule_files import write_jobs, write_schedule
from clustermodel.job import JobRow
from clustermodel.machine import Machine
from clustermodel.measure.event_log import EventLog, event_log, sliced_event_log
from clustermodel.measure.explanation import Explanation, explanation
from clustermodel.measure.job_table import job_table
from clustermodel.measure.metrics import Summary, after_warm_up, by_class, fairness_by_width, summarize
from clustermodel.measure.timeline import placements_in_matrix, placements_in_space, states
from clustermodel.policies.calibration import Calibrated, Waits
from clustermodel.policies.interface import Policy
from clustermodel.policies.registry import make_policy, policy_label
from clustermodel.recording.job_records import UNKNOWN, JobRecords
from clustermodel.recording.ledger import Ledger
from clustermodel.recording.matrix_history import History
from clustermodel.recording.slice_log import SliceLog
from clustermodel.sim.simulation import FIDELITIES, Fidelity, Outcome, simulate
from clustermodel.speedup import LINEAR, Speedup
from clustermodel.theory.capacity import capacity_loss, gang_capacity_loss
from clustermodel.validation import require_seconds, require_whole
from clustermodel.workload.streams import JobStreams
from clustermodel.workload.table import JobSource

if TYPE_CHECKING:
    import pandas as pd

    from clustermodel.figures.single_run import ResultPlots


_NO_LETTER = {"Cc", "Cs", "Zl", "Zp"}  # control characters, halves of characters, ends of lines and paragraphs
NOTHING_PLAYED: Final = "Scenario.fidelity: 'node'"
"""How the warning begins that says so."""


def random_stream(seed: int, purpose: str) -> np.random.Generator:
    """Return the generator of one named purpose under one root seed; streams of different names are independent."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(crc32(purpose.encode()),)))


def calibrate(policy: Policy, machine: Machine, streams: Callable[[], Sequence[Iterable[JobRow]]], seed: int) -> None:
    """Let ``policy``, if it wants to, measure another policy on the same machine and jobs.

    Args:
        policy: what is going to run.
        machine: the machine.
        streams: returns the job streams; called for each measurement.
        seed: root of the other policy's random stream.

    Raises:
        DecisionError: the other policy asked for something impossible.
    """

    def measure(other: str) -> Waits:
        records = simulate(machine, streams(), make_policy(other), random_stream(seed, "policy")).records
        ran = records.column("start") != UNKNOWN
        wait = records.column("start") - records.column("submit")
        return Waits(tuple(records.column("nodes")[ran].tolist()), tuple(wait[ran].tolist()))

    if isinstance(policy, Calibrated):
        policy.calibrate(measure)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One question to the simulator.

    Raises:
        SpecificationError: a field has a value that is not allowed, or no machine is given and none is known.
    """

    workload: JobSource | Sequence[JobSource]
    """The jobs: a :class:`~clustermodel.workload.table.Workload`, an :class:`~clustermodel.workload.swf.SwfStream`, or
    several, which run as separate streams that merge; where they share job numbers, later ones are renumbered
    (:class:`~clustermodel.workload.streams.JobStreams`)."""
    policy: str | Policy = "easy"
    """A registered name, ``"name:key=value"``, or an object of your own."""
    machine: Machine | None = None
    """What the jobs run on; by default a machine of the size the workload was recorded on."""
    seed: int = 1
    """Root of the policy's random stream."""
    explain: bool = False
    """Keep the decision log, for :meth:`Result.explain`."""
    fidelity: Fidelity = "fast"
    """How time slices are simulated: ``"fast"`` computes what happens between two scheduling events; ``"node"``, the slow mode,
    plays every slice on every node, far more slowly, with the same results to the tick.  It exists for time sharing only:
    where no gang shares its nodes there is nothing to play, and a warning says so."""
    history: bool = False
    """Keep every state of the Ousterhout matrix and of the ledger, for the pictures of :attr:`Result.plot`."""
    speedup: Speedup = LINEAR
    """How run times change where a policy gives a job another width than it asked for (003, section 7)."""
    name: str = ""
    """A label; by default the policy as it was asked for."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", require_whole("Scenario.seed", self.seed, at_least=0))
        if isinstance(self.workload, (str, PathLike)):
            raise SpecificationError(
                f"Scenario.workload: {quoted(str(self.workload))} is not allowed; a path must be read first, as in "
                "Scenario(workload=read_swf(path))"
            )
        if not self.sources:
            raise SpecificationError("Scenario.workload: no job stream is given; at least one is needed")
        for source in self.sources:
            if not isinstance(source, JobSource):
                raise SpecificationError(
                    f"Scenario.workload: {quoted(source)} is not allowed; it must be a Workload or an SwfStream"
                )
        if self.machine is not None and not isinstance(self.machine, Machine):
            raise SpecificationError(f"Scenario.machine: {quoted(self.machine)} is not allowed; it must be a Machine")
        if not isinstance(self.fidelity, str) or self.fidelity not in FIDELITIES:
            allowed = ", ".join(map(repr, FIDELITIES))
            raise SpecificationError(f"Scenario.fidelity: {quoted(self.fidelity)} is not allowed; it must be one of {allowed}")
        if isinstance(self.speedup, type) or not isinstance(self.speedup, Speedup):
            raise SpecificationError(
                f"Scenario.speedup: {quoted(self.speedup)} is not allowed; it must be a LinearSpeedup, a DowneySpeedup, "
                "or an object with time_on"
            )
        make_policy(self.policy)
        if not isinstance(self.name, str) or any(category(letter) in _NO_LETTER for letter in self.name):
            raise SpecificationError(
                f"Scenario.name: {quoted(self.name)} is not allowed; it must be a line of text without control characters"
            )
        _ = self.used_machine

    @property
    def sources(self) -> tuple[JobSource, ...]:
        """The job streams, as they were given."""
        return tuple(self.workload) if isinstance(self.workload, Sequence) else (self.workload,)

    @cached_property
    def streams(self) -> JobStreams:
        """The job streams with the numbers that their jobs have in the run, no two of them the same."""
        return JobStreams(self.sources)

    @property
    def used_machine(self) -> Machine:
        """The machine given, or the one the workload was recorded on."""
        if self.machine is not None:
            return self.machine
        known = [source.machine_nodes for source in self.sources if source.machine_nodes]
        if not known:
            raise SpecificationError(
                f"Scenario.machine: none is given and {self.workload_name} does not name its size; "
                "give machine=Machine(nodes=...)"
            )
        return Machine(nodes=max(known))

    @property
    def workload_name(self) -> str:
        """The names of the job streams."""
        names = [source.name for source in self.sources]
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"

    @property
    def label(self) -> str:
        """The name, or the policy as it was asked for."""
        return self.name or policy_label(self.policy)

    def run(self, *, progress: Callable[[int], None] | None = None) -> Result:
        """Simulate the scenario.

        Args:
            progress: called now and then with the number of jobs submitted since its last call.

        Warns:
            UserWarning: the slow mode was asked for, and no gang shared its nodes in time.

        Raises:
            DecisionError: the policy asked for something impossible, or left jobs waiting for ever.
            TraceError: a trace that is read as a stream is malformed.
        """
        machine, policy = self.used_machine, make_policy(self.policy)
        calibrate(policy, machine, lambda: [stream.rows() for stream in self.streams], self.seed)
        outcome = simulate(
            machine,
            [stream.rows() for stream in self.streams],
            policy,
            random_stream(self.seed, "policy"),
            explain=self.explain,
            fidelity=self.fidelity,
            history=self.history,
            speedup=self.speedup,
            progress=progress,
        )
        result = Result(self, machine, outcome)
        if result.nothing_played:
            warnings.warn(
                f"{NOTHING_PLAYED}: no gang shared its nodes in time under {self.label}, so that the slow mode had nothing to "
                "play; the result is that of fidelity='fast'",
                UserWarning,
                stacklevel=2,
            )
        return result


class Result:
    """What a scenario showed.  Tables are pandas, times in seconds; docs/outputs lists every column."""

    def __init__(self, scenario: Scenario, machine: Machine, outcome: Outcome) -> None:
        self.scenario = scenario
        self.machine = machine
        self.records: JobRecords = outcome.records
        """Job records in ticks, for further measurement."""
        self.ledger: Ledger = outcome.ledger
        """The capacity ledger."""
        self.slices: SliceLog | None = outcome.slices
        """What ran between each two scheduling events, ``None`` where nodes are not shared in time; iterate over it."""
        self._reasons = outcome.reasons
        self._history = outcome.history

    def __repr__(self) -> str:
        return (
            f"<Result of {self.scenario.label} on {self.scenario.workload_name}: {len(self.records):,} jobs, "
            f"utilization {self.ledger.utilization:.3f}>"
        )

    @property
    def nothing_played(self) -> bool:
        """Whether the slow mode was requested although no gang shared its nodes in time."""
        return self.scenario.fidelity == "node" and self.slices is None

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """One row per job, in order of submission."""
        return job_table(self.records).assign(stream=self.scenario.streams.of(self.records.column("id")))

    @cached_property
    def _summary(self) -> Summary:
        return summarize(
            self.records,
            self.ledger,
            policy=self.scenario.label,
            workload=self.scenario.workload_name,
            seed=self.scenario.seed,
            shared_in_time=self.slices is not None,
        )

    def summary(self, *, warm_up_s: float = 0.0) -> Summary:
        """Return the run in one row.

        Args:
            warm_up_s: jobs submitted sooner than this after the first submission are left out of waits, responses and
                slowdowns, seconds; :func:`~clustermodel.experiment.replicate.suggest_warm_up` suggests how long.

        Raises:
            SpecificationError: ``warm_up_s`` is no time, or leaves no job.
        """
        if not (warm_up_s := require_seconds("warm_up_s", warm_up_s)):
            return self._summary
        return after_warm_up(self._summary, self.records, self.ledger, warm_up_s)

    def by_class(self) -> pd.DataFrame:
        """Return mean, deviation, median and percentiles of wait, response and slowdown for all, small, large jobs."""
        return by_class(self.records)

    def fairness(self) -> pd.DataFrame:
        """Return who was blocked, delayed by later jobs, started after a promise and preempted: all, wide and narrow jobs.

        Raises:
            SpecificationError: nodes are shared in time, where nobody can say which nodes a job could have had.
        """
        if self.slices is not None:
            raise SpecificationError(
                f"fairness: {self.scenario.label} shares nodes in time; delays by later jobs are defined for whole nodes"
            )
        return fairness_by_width(self.records, self.ledger)

    @cached_property
    def events(self) -> EventLog:
        """Idle nodes and queue length after each event, rebuilt from the job records; where nodes are shared in time, the mean
        number of idle nodes until the next event, from the slice log.
        """
        if self.slices is not None:
            return sliced_event_log(self.records, self.slices, self.machine.nodes, self.machine.time_slicing.quantum)
        return event_log(self.records, self.machine.nodes)

    @property
    def placements(self) -> pd.DataFrame:
        """Which nodes each gang held from when until when: a row for each run of neighbouring nodes, by time.

        Columns ``job``, ``begin_s``, ``end_s``, ``row`` of the Ousterhout matrix (0 where nodes are not shared in time),
        ``first_node``, ``nodes``, ``kind``: one of :data:`~clustermodel.measure.timeline.KINDS`.

        Raises:
            SpecificationError: nodes are shared in time, and the history of the matrix was not kept.
        """
        if self.slices is None:
            return placements_in_space(self.records)
        return placements_in_matrix(self.history, self.ledger.end)

    @property
    def states(self) -> pd.DataFrame:
        """The state of the machine from each event on.

        Columns ``time_s``, ``busy_nodes`` (the mean until the next event where nodes are shared in time), ``waiting_jobs``,
        and ``running_row``: which row of the Ousterhout matrix comes first then, -1 if none, or if its history was not kept.
        """
        return states(self.events, self.machine.nodes, self._history)

    @property
    def kappa_by_formula(self) -> float:
        """Loss of capacity recomputed from the event log alone, by 002 eq. (2), or eq. (3) where nodes are shared in time."""
        machine = self.machine
        if self.slices is not None:
            return gang_capacity_loss(self.slices, machine.time_slicing.quantum, machine.switch_ticks, machine.nodes)
        log = self.events
        return capacity_loss(log.time_s, log.empty + log.held_up, log.waiting, machine.nodes)

    @property
    def history(self) -> History:
        """Every state of the Ousterhout matrix and of the ledger.

        Raises:
            SpecificationError: it was not kept, no job ran, or nodes are not shared in time.
        """
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
        from clustermodel.figures.single_run import ResultPlots  # noqa: PLC0415  matplotlib takes a second to import

        return ResultPlots(self)

    @property
    def provenance(self) -> Mapping[str, object]:
        """What this result was made from: versions, workload, machine, policy, the fidelity asked for, seed."""
        return {
            "clustermodel": version("clustermodel"),
            "simpy": version("simpy"),
            "numpy": version("numpy"),
            "python": platform.python_version(),
            "workload": [source.provenance.source for source in self.scenario.sources],
            "machine": repr(self.machine),
            "policy": self.scenario.label,
            "speedup": repr(self.scenario.speedup),
            "fidelity": self.scenario.fidelity,
            "seed": self.scenario.seed,
        }

    def explain(self, job: int) -> Explanation:
        """Return why ``job`` (its id) started when it did; ``print`` the answer, or read its fields.

        Raises:
            SpecificationError: the decision log was off, or the job did not run.
        """
        if self._reasons is None:
            raise SpecificationError("explain: the decision log is off; run Scenario(..., explain=True)")
        if job not in self._reasons:
            raise SpecificationError(f"explain: job {job} is not in this run, or was never started")
        index = int(np.flatnonzero(self.records.column("id") == job)[0])
        value = {name: int(self.records.column(name)[index]) for name in ("nodes", "submit", "start", "reserved")}
        head_since = int(self.records.blocked_since[index])
        return explanation(
            job,
            nodes=value["nodes"],
            submit=value["submit"],
            start=value["start"],
            reason=self._reasons[job],
            reserved=None if value["reserved"] == UNKNOWN else value["reserved"],
            head_since=None if head_since == UNKNOWN else head_since,
        )

    def to_csv(self, path: str | PathLike[str], *, layout: str = "evalys") -> None:
        """Write the job records as CSV.

        Args:
            path: the file.
            layout: ``"evalys"``, Batsim's columns, which evalys reads; or ``"jobs"``, the columns of ``--jobs-csv``.

        Raises:
            OutputError: the file cannot be written.
            SpecificationError: unknown layout.
        """
        write_jobs(self, path, layout)

    def to_swf(self, path: str | PathLike[str]) -> None:
        """Write the simulated schedule in the Standard Workload Format (``.gz`` is compressed).

        Raises:
            OutputError: the file cannot be written.
        """
        write_schedule(self, path)
