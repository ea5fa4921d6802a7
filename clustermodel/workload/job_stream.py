"""A builder of job streams: an arrival process, and a distribution for each attribute of a job.

Each ingredient has random numbers of its own, by seed, name of the stream, and purpose.  So another arrival rate or load
changes no size and no run time (common random numbers), and another number of jobs none of the first ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple
from zlib import crc32

import numpy as np

from clustermodel.arrays import FloatArray, IntArray, dot
from clustermodel.errors import SpecificationError, quoted
from clustermodel.job import UNSET, JobRow
from clustermodel.memory_units import KIB_PER_GIB, LARGEST_GIB
from clustermodel.ticks import LAST_TICK, TICKS_PER_SECOND
from clustermodel.validation import (
    LARGEST_WHOLE,
    LONGEST_S,
    MOST_JOBS,
    require_jobs,
    require_number,
    require_seconds,
    require_whole,
)
from clustermodel.workload.arrivals import DAY_S, ArrivalProcess, arrival_process
from clustermodel.workload.distributions import BySize, Distribution, draw, require_distribution
from clustermodel.workload.estimates import EstimateModel, FactorEstimates, require_estimate_model
from clustermodel.workload.extra_columns import PRECEDING, THINK, ExtraColumns
from clustermodel.workload.sessions import ClosedUsers, Sessions
from clustermodel.workload.table import Provenance, Workload

RANDOM_NUMBERS: Final = "random numbers"
"""Key of the provenance's options that identifies the random numbers of a generated stream."""

_LONGEST_SOURCE: Final = 500  # characters; a distribution may be a list of a million values


class _Chains(NamedTuple):
    """Which session each job belongs to; shapes ``(jobs,)``, in order of session, then of submission."""

    session: IntArray
    first: IntArray
    """Position of the session's first job."""


@dataclass(frozen=True, kw_only=True)
class JobStream:
    """Specification of a job stream, from which workloads are generated.

    :mod:`clustermodel.workload.distributions` says what may stand for a distribution.

    Raises:
        SpecificationError: a field is not what it must be.
    """

    arrivals: ArrivalProcess | Workload | Distribution | Sessions | ClosedUsers
    """When jobs are submitted: an arrival process; the distribution of seconds between arrivals; a workload, for its
    submission times; or :class:`~clustermodel.workload.sessions.Sessions` or
    :class:`~clustermodel.workload.sessions.ClosedUsers`, for submissions that depend on completions."""
    nodes: Distribution
    """Sizes; rounded to whole numbers of at least one."""
    run_s: Distribution | BySize
    """Run times on a dedicated machine, seconds; :class:`~clustermodel.workload.distributions.BySize` lets them depend on
    the size.  Cut to the range from a tick to 1e10 s."""
    estimates: EstimateModel = field(default_factory=FactorEstimates)
    """The users' estimates; by default exact."""
    priority: Distribution = 0
    """Queue priorities, rounded: higher first."""
    users: Distribution | None = None
    """User numbers, rounded: ``range(1, 21)`` for twenty users who submit equally often, ``Zipf(20)`` for a few busy ones.
    Each session has one user."""
    memory_gib: Distribution | None = None
    """Memory per node, GiB, for machines whose nodes have a limited memory."""
    name: str = "jobs"
    """Name of the workload, and of its random numbers: streams of different names are independent under one seed."""

    def __post_init__(self) -> None:
        if not isinstance(self.arrivals, Sessions | ClosedUsers):
            object.__setattr__(self, "arrivals", arrival_process("JobStream.arrivals", self.arrivals))
        for name in ("nodes", "run_s", "priority", "users", "memory_gib"):
            value = getattr(self, name)
            optional = name in ("users", "memory_gib") and value is None
            if not optional and not (name == "run_s" and isinstance(value, BySize)):
                require_distribution(f"JobStream.{name}", value)
        require_estimate_model("JobStream.estimates", self.estimates)
        if not isinstance(self.name, str) or not self.name or not self.name.isprintable():
            raise SpecificationError(f"JobStream.name: {quoted(self.name)} is not allowed; it must be a line of text")

    def generate(
        self,
        *,
        jobs: int | None = None,
        days: float | None = None,
        seed: int = 1,
        load: float | None = None,
        machine_nodes: int | None = None,
    ) -> Workload:
        """Return jobs of this stream, numbered from 1 in order of submission.

        Args:
            jobs: number of jobs; or
            days: length of the workload: jobs (of sessions: those that begin) within that time.
            seed: of the random numbers.
            load: offered load, sum of nodes x run time / (machine nodes x length): times between arrivals are multiplied by
                one factor, before any daily cycle, so that the jobs drawn offer it.  The length is ``days``, or the time from
                0 to the last submission (to the end of the pause, if that is followed by a pause of the cycle).  Not for
                streams with feedback, whose load depends on the schedule.
            machine_nodes: size of the machine; needed with ``load``, and the default machine of scenarios.

        Raises:
            SpecificationError: an argument is not allowed, or a value that no job can have is drawn.
        """
        if (jobs is None) == (days is None):
            raise SpecificationError("JobStream.generate: give either jobs or days")
        arguments = {"stream": self, "jobs": jobs, "days": days, "seed": seed, "load": load, "machine_nodes": machine_nodes}
        workload = self._generated(jobs, days, seed, load, machine_nodes)
        return workload.made_by("job_stream", arguments)

    def _generated(
        self, jobs: int | None, days: float | None, seed: int, load: float | None, machine_nodes: int | None
    ) -> Workload:
        if jobs is None:
            assert days is not None
            return draw_streams({"": self}, days=days, seed=seed, load=load, machine_nodes=machine_nodes)[""]
        jobs = require_jobs(jobs)
        _require_load(self, seed, load, machine_nodes)
        if isinstance(self.arrivals, ClosedUsers):
            return self._of_users(self.arrivals, jobs, seed, machine_nodes)
        if isinstance(self.arrivals, Sessions):
            sizes = self._session_sizes(self.arrivals, jobs, seed)
            begins = self._own_times(seed, arrivals=len(sizes))
            return self._of_sessions(self.arrivals, begins, sizes, jobs, seed, machine_nodes)
        own = self._own_times(seed, arrivals=jobs)
        if load is not None:
            assert machine_nodes is not None
            nodes, run = self._sizes_and_runs(jobs, seed)
            length = dot(nodes, run) / (load * machine_nodes)
            if not own[-1] > 0:
                raise SpecificationError("JobStream.arrivals: all jobs are submitted at once; no factor gives them a load")
            own = own * (self._process.to_own_clock(length) / own[-1])
        return self._workload(self._process.to_time(own), seed, machine_nodes)

    @property
    def _process(self) -> ArrivalProcess:
        process = self.arrivals.arrivals if isinstance(self.arrivals, Sessions) else self.arrivals
        assert isinstance(process, ArrivalProcess)
        return process

    def _rng(self, seed: int, purpose: str) -> np.random.Generator:
        """Return the random number generator of one ingredient; different seeds, names and purposes are independent."""
        key = (crc32(b"job stream"), crc32(self.name.encode()), crc32(purpose.encode()))
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))

    def _own_times(self, seed: int, *, arrivals: int | None = None, until_s: float = 0.0) -> FloatArray:
        """Return the first arrivals, or those until a time, on the process's own clock, seconds; shape ``(arrivals,)``."""
        times: list[FloatArray] = []
        last, number = 0.0, 0
        for gaps in self._process.gaps(self._rng(seed, "arrivals")):
            if len(gaps) and not gaps.min() >= 0:
                raise SpecificationError(f"JobStream.arrivals: {gaps.min():g} s was drawn between arrivals; it must be >= 0")
            chunk = last + np.cumsum(gaps)
            times.append(chunk)
            number += len(chunk)
            last = float(chunk[-1]) if len(chunk) else last
            if (number >= arrivals) if arrivals is not None else last > until_s:
                break
            if number > MOST_JOBS:
                raise SpecificationError(
                    f"JobStream.arrivals: more than {MOST_JOBS:,} jobs arrive by {until_s:g} s; give a lower rate or fewer days"
                )
        together = np.concatenate(times)
        return together[:arrivals] if arrivals is not None else together[together <= until_s]

    def _sizes_and_runs(self, jobs: int, seed: int) -> tuple[FloatArray, FloatArray]:
        """Return sizes (whole numbers) and run times in seconds; shapes ``(jobs,)``."""
        nodes = np.rint(draw("JobStream.nodes", self.nodes, self._rng(seed, "nodes"), jobs))
        _require_range("JobStream.nodes", nodes, 1, LARGEST_WHOLE)
        if isinstance(self.run_s, BySize):
            run = self.run_s.draw_for("JobStream.run_s", nodes, self._rng(seed, "run times"))
        else:
            run = draw("JobStream.run_s", self.run_s, self._rng(seed, "run times"), jobs)
        _require_range("JobStream.run_s", run, 0, np.inf)
        return nodes, np.clip(run, 1 / TICKS_PER_SECOND, LONGEST_S)

    def _of_users(self, closed: ClosedUsers, jobs: int, seed: int, machine_nodes: int | None) -> Workload:
        users = min(closed.users, jobs)
        session = np.repeat(np.arange(users), [len(range(user, jobs, users)) for user in range(users)])
        first = np.flatnonzero(np.diff(session, prepend=-1))
        chains = _Chains(session, first[session])
        think = self._think(closed.think_time_s, jobs, seed)
        return self._workload(think[first][session], seed, machine_nodes, chains, think, users=session + 1)

    def _session_sizes(self, sessions: Sessions, jobs: int, seed: int) -> IntArray:
        """Return the numbers of jobs of the first sessions that have ``jobs`` jobs together; shape ``(sessions,)``."""
        drawn = draw("Sessions.jobs", sessions.jobs, self._rng(seed, "jobs of sessions"), jobs)
        sizes = np.maximum(1, np.rint(drawn)).astype(np.int64)
        return sizes[: int(np.searchsorted(np.cumsum(sizes), jobs)) + 1]

    def _of_sessions(
        self, sessions: Sessions, begins: FloatArray, sizes: IntArray, jobs: int | None, seed: int, nodes: int | None
    ) -> Workload:
        session = np.repeat(np.arange(len(sizes)), sizes)[:jobs]
        first = np.flatnonzero(np.diff(session, prepend=-1))
        think = self._think(sessions.think_time_s, len(session), seed)
        return self._workload(self._process.to_time(begins)[session], seed, nodes, _Chains(session, first[session]), think)

    def _think(self, think_time_s: Distribution, jobs: int, seed: int) -> FloatArray:
        think = draw("think_time_s", think_time_s, self._rng(seed, "think times"), jobs)
        _require_range("think_time_s", think, 0, LONGEST_S)
        return think

    def _workload(
        self,
        begin_s: FloatArray,
        seed: int,
        machine_nodes: int | None,
        chains: _Chains | None = None,
        think_s: FloatArray | None = None,
        users: IntArray | None = None,
    ) -> Workload:
        """Return the jobs that are submitted, or whose sessions begin, at ``begin_s``, seconds; shape ``(jobs,)``."""
        jobs = len(begin_s)
        if not jobs:
            raise SpecificationError(f"JobStream {self.name}: no job arrives in that time; give more days or a higher rate")
        nodes, run_s = self._sizes_and_runs(jobs, seed)
        estimate_s = np.asarray(self.estimates.estimate(run_s, self._rng(seed, "estimates")), dtype=np.float64)
        _require_range("JobStream.estimates", estimate_s, 0, np.inf)
        priority = np.rint(draw("JobStream.priority", self.priority, self._rng(seed, "priorities"), jobs))
        if self.users is not None:
            drawn = np.rint(draw("JobStream.users", self.users, self._rng(seed, "users"), jobs)).astype(np.int64)
            users = drawn if chains is None else drawn[chains.session]
        run, estimate = (np.maximum(1, _ticks(np.minimum(time, LONGEST_S))) for time in (run_s, estimate_s))
        _require_range(f"JobStream {self.name}: submission", begin_s, 0, LAST_TICK / TICKS_PER_SECOND / 2)
        submit = _ticks(begin_s)
        columns: dict[str, IntArray] = {}
        preceding = np.full(jobs, UNSET)
        if chains is not None and think_s is not None:
            think = _ticks(think_s)
            follows = np.arange(jobs) > chains.first
            # The recorded submissions are those on a machine on which no job waits.
            steps = np.cumsum(np.where(follows, np.roll(run, 1) + think, 0))
            submit += steps - steps[chains.first]
            preceding = np.where(follows, np.arange(jobs) - 1, UNSET)
            columns[THINK] = np.where(follows, think, UNSET)
        order = np.argsort(submit, kind="stable")
        number = np.empty(jobs, dtype=np.int64)
        number[order] = np.arange(1, jobs + 1)
        if chains is not None:
            columns[PRECEDING] = np.where(preceding == UNSET, UNSET, number[preceding])
        memory = unknown = np.full(jobs, UNSET)
        if self.memory_gib is not None:
            gib = draw("JobStream.memory_gib", self.memory_gib, self._rng(seed, "memory"), jobs)
            _require_range("JobStream.memory_gib", gib, 0, LARGEST_GIB)
            memory = np.rint(gib * KIB_PER_GIB).astype(np.int64)
        table = (
            submit, number, nodes.astype(np.int64), run, estimate, unknown if users is None else users, unknown,
            priority.astype(np.int64), unknown, memory,
        )  # fmt: skip
        return Workload(
            (JobRow(*values) for values in np.stack(table, axis=1)[order].tolist()),
            name=self.name,
            provenance=Provenance(
                source=f"{' '.join(repr(self).split())[:_LONGEST_SOURCE]}, seed {seed}",
                options={"seed": seed, RANDOM_NUMBERS: f"name {self.name!r}, seed {seed}"},
            ),
            machine_nodes=machine_nodes,
            extra=ExtraColumns(ids=number, columns=columns) if columns else None,
        )


def draw_streams(
    streams: Mapping[str, JobStream], *, days: float, seed: int, load: float | None, machine_nodes: int | None
) -> dict[str, Workload]:
    """Return the jobs that several streams submit within ``days``; see :meth:`JobStream.generate`.

    A label that is not empty names the random numbers of its stream.
    """
    length = require_seconds("days", days, positive=True) * DAY_S
    named = {label: replace(stream, name=label) if label else stream for label, stream in streams.items()}
    for stream in named.values():
        _require_load(stream, seed, load, machine_nodes)
        if isinstance(stream.arrivals, ClosedUsers):
            raise SpecificationError("days: not allowed with ClosedUsers, who submit for ever; give jobs to JobStream.generate")
    factor = 1.0 if load is None or machine_nodes is None else _rate_factor(named, length, seed, load * machine_nodes * length)
    made = {}
    for label, stream in named.items():
        own = stream._own_times(seed, until_s=factor * stream._process.to_own_clock(length)) / factor
        if isinstance(stream.arrivals, Sessions):
            drawn = draw("Sessions.jobs", stream.arrivals.jobs, stream._rng(seed, "jobs of sessions"), len(own))
            sizes = np.maximum(1, np.rint(drawn)).astype(np.int64)
            made[label] = stream._of_sessions(stream.arrivals, own, sizes, None, seed, machine_nodes)
        else:
            made[label] = stream._workload(stream._process.to_time(own), seed, machine_nodes)
    return made


def _rate_factor(streams: Mapping[str, JobStream], length: float, seed: int, work: float) -> float:
    """Return the factor of all arrival rates with which the jobs within ``length`` seconds have that much work, node-seconds.

    A job with arrival u on its process's clock is within the length if u <= factor x the clock at the end.  So the factor is
    that of the job that completes the work.
    """
    factor = 1.0
    for _ in range(100):
        factors, works = [], []
        for stream in streams.values():
            end = stream._process.to_own_clock(length)
            own = stream._own_times(seed, until_s=factor * end)
            nodes, run = stream._sizes_and_runs(len(own), seed)
            factors.append(own / end)
            works.append(nodes * run)
        together = np.concatenate(factors)
        order = np.argsort(together, kind="stable")
        total = np.cumsum(np.concatenate(works)[order])
        if len(total) and total[-1] >= work:
            return float(together[order][np.searchsorted(total, work)]) * (1 + 1e-12)
        factor *= 1.5 if not len(total) else min(max(1.5, 1.2 * work / float(total[-1])), 100.0)
    raise SpecificationError("load: it cannot be reached; give a lower load, or jobs with more work")


def _require_load(stream: JobStream, seed: int, load: float | None, machine_nodes: int | None) -> None:
    require_whole("seed", seed, at_least=0)
    if machine_nodes is not None:
        require_whole("machine_nodes", machine_nodes, at_least=1)
    if load is None:
        return
    require_number("load", load, "> 0 and < 10", lambda x: 0 < x < 10)
    if machine_nodes is None:
        raise SpecificationError("machine_nodes: none is given; load needs it")
    if isinstance(stream.arrivals, Sessions | ClosedUsers):
        raise SpecificationError("load: not allowed with sessions, whose submissions depend on the schedule")


def _require_range(field: str, values: FloatArray, least: float, most: float) -> None:
    wrong = values[~((values >= least) & (values <= most))]
    if len(wrong):
        allowed = f">= {least:g}" if most == np.inf else f">= {least:g} and <= {most:g}"
        raise SpecificationError(f"{field}: {wrong[0]:g} was drawn; it must be {allowed}")


def _ticks(seconds: FloatArray) -> IntArray:
    return np.rint(seconds * TICKS_PER_SECOND).astype(np.int64)
