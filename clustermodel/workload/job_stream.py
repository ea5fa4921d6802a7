"""Job streams: an arrival process, or sessions of users, and a distribution for each attribute of a job.

Each ingredient has random numbers of its own, by seed, name of the stream, and purpose.  So another arrival rate or load
changes no size and no run time (common random numbers), and another number of jobs none of the first ones.

An arrival process yields the times between arrivals on a clock of its own, on which its mean rate is constant.  A
:class:`Cycle` maps that clock to the time of the simulation, so every process can have a cycle; a load is reached by
stretching the process's own clock, so the cycle keeps its hours.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle
from typing import Final, cast
from zlib import crc32

import numpy as np

from clustermodel import validation
from clustermodel.arrays import FloatArray, IntArray, dot
from clustermodel.errors import SpecificationError, refused
from clustermodel.ticks import LAST_TICK, TICKS_PER_SECOND
from clustermodel.validation import KIB_PER_GIB, LARGEST_GIB, LARGEST_WHOLE, LONGEST_S, MOST_JOBS, Checked, positive, require
from clustermodel.workload.distributions import CHUNK, BySize, Distribution, draw, require_weight
from clustermodel.workload.distributions import require_distribution as distribution
from clustermodel.workload.estimate_models import EstimateModel, FactorEstimates, require_estimate_model
from clustermodel.workload.job import UNSET
from clustermodel.workload.job_columns import PRECEDING, THINK, table_of
from clustermodel.workload.provenance import Provenance
from clustermodel.workload.table import Workload

HOUR_S: Final = 3600.0
DAY_S: Final = 24 * HOUR_S
LUBLIN_FEITELSON_GAMMA: Final = (8.1737, 3.9631)
"""Shape and scale of the daily cycle of Lublin & Feitelson 2003, in half hours."""
_FIRST_HALF_HOUR: Final = 11  # where the model's day begins: 5 a.m.; the tail of the gamma distribution wraps around midnight


class ArrivalProcess(ABC):
    """An arrival process; a user-defined process needs only :meth:`ArrivalProcess.gaps`."""

    @abstractmethod
    def gaps(self, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Yield interarrival times, seconds on the process's own clock, in arrays of any length, endlessly."""

    def to_time(self, own_s: FloatArray) -> FloatArray:
        """Return the time of the simulation, seconds, for times on the process's own clock."""
        return own_s

    def to_own_clock(self, time_s: float) -> float:
        """Return the time on the process's own clock, seconds, for a time of the simulation."""
        return time_s


def arrival_process(field: str, given: object) -> ArrivalProcess:
    """Return ``given`` as an arrival process: a workload as its submission times, a distribution as that of the gaps."""
    if isinstance(given, ArrivalProcess):
        return given
    if isinstance(given, Workload):
        return TraceArrivals(given)
    try:
        distribution(field, given)
    except SpecificationError:
        must = "an arrival process, as Poisson(per_hour=30), a Workload, or the distribution of the seconds between arrivals"
        raise refused(field, given, f"it must be {must}") from None
    return Renewal(given)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Renewal(Checked, ArrivalProcess, gap_s=distribution):
    """Independent times between arrivals with one distribution, as ``HyperErlang.from_mean(300, cv=2)``."""

    gap_s: Distribution

    def gaps(self, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Yield seconds between arrivals."""
        while True:
            yield draw("Renewal.gap_s", self.gap_s, rng, CHUNK)


@dataclass(frozen=True, kw_only=True)
class Poisson(Checked, ArrivalProcess, per_hour=positive):
    """Independent arrivals at a constant rate."""

    per_hour: float
    """Mean number of arrivals per hour."""

    def gaps(self, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Yield seconds between arrivals."""
        while True:
            yield rng.exponential(HOUR_S / self.per_hour, CHUNK)


@dataclass(frozen=True, kw_only=True)
class MarkovModulated(ArrivalProcess):
    """A Poisson process whose rate alternates between two values, for exponentially distributed times (MMPP(2))."""

    per_hour: tuple[float, float]
    """The two rates, arrivals per hour, of which one may be zero."""
    mean_s: tuple[float, float]
    """Mean length of a period of each rate, seconds."""

    def __post_init__(self) -> None:
        for name in ("per_hour", "mean_s"):
            pair = getattr(self, name)
            require(isinstance(pair, Sequence) and len(pair) == 2, f"MarkovModulated.{name}", pair, "it must be two numbers")
        for rate, mean in zip(self.per_hour, self.mean_s, strict=True):
            require_weight("MarkovModulated.per_hour", rate)
            validation.require_seconds("MarkovModulated.mean_s", mean, positive=True)
        require(any(self.per_hour), "MarkovModulated.per_hour", (0, 0), "one rate must be > 0")

    def gaps(self, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Yield seconds between arrivals; the process is in equilibrium when it begins."""
        first = int(rng.random() >= self.mean_s[0] / sum(self.mean_s))
        order = [first, 1 - first] * 64
        rate, mean = np.array(self.per_hour)[order] / HOUR_S, np.array(self.mean_s)[order]
        last = begin = 0.0
        while True:
            length = rng.exponential(mean)
            counts = rng.poisson(rate * length)
            starts = begin + np.cumsum(length) - length
            times = np.sort(np.repeat(starts, counts) + rng.random(counts.sum()) * np.repeat(length, counts))
            yield np.diff(times, prepend=last)
            last = times[-1] if len(times) else last
            begin += length.sum()


class _Modified(Checked, ArrivalProcess, arrivals=arrival_process):
    """A process that changes another one, whose clock it shares."""

    arrivals: ArrivalProcess | Workload | Distribution

    @property
    def process(self) -> ArrivalProcess:
        """The field ``arrivals``, which has been made one of."""
        return cast("ArrivalProcess", self.arrivals)

    def to_time(self, own_s: FloatArray) -> FloatArray:
        """Return the time of the simulation, seconds, for times on the process's own clock."""
        return self.process.to_time(own_s)

    def to_own_clock(self, time_s: float) -> float:
        """Return the time on the process's own clock, seconds, for a time of the simulation."""
        return self.process.to_own_clock(time_s)


@dataclass(frozen=True, kw_only=True)
class Bursts(_Modified, jobs=distribution, gap_s=distribution):
    """Several jobs at each arrival of another process, one ``gap_s`` after the other.

    The time to the next burst counts from the last job of a burst.
    """

    arrivals: ArrivalProcess | Workload | Distribution
    """When bursts begin."""
    jobs: Distribution
    """Jobs in a burst, rounded, at least one; ``scipy.stats.geom(1 / 5)`` has a mean of five."""
    gap_s: Distribution = 0.0
    """Seconds between two jobs of a burst."""

    def gaps(self, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Yield seconds between arrivals."""
        begins, sizes, inside = rng.spawn(3)
        for gaps in self.process.gaps(begins):
            jobs = np.maximum(1, np.rint(draw("Bursts.jobs", self.jobs, sizes, len(gaps)))).astype(np.int64)
            between = draw("Bursts.gap_s", self.gap_s, inside, int(jobs.sum()))
            between[np.cumsum(jobs) - jobs] = gaps
            yield between


@dataclass(frozen=True)
class TraceArrivals(ArrivalProcess):
    """The submission times of a workload, again from its beginning, a mean time later, where more are needed.

    For times between arrivals drawn from a trace in random order, give ``np.diff(trace.seconds("submit"))`` as distribution.
    """

    trace: Workload

    def gaps(self, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Yield seconds between submissions; the first one is at its time in the trace."""
        submit = self.trace.seconds("submit")
        again = np.diff(submit, prepend=submit[0] - max(self.trace.span_s / max(1, len(submit) - 1), 1e-6))
        yield np.concatenate([submit[:1], again[1:]])
        yield from cycle([again])


def lublin_feitelson_day() -> FloatArray:
    """Return weights of the 48 half hours of a day, from midnight on (Lublin & Feitelson 2003); shape ``(48,)``, mean 1.

    Those of half hours i from 1 are the probabilities of (i - 1/2, i + 1/2] under a gamma distribution that begins at 5 a.m.
    """
    from scipy.special import gammainc

    shape, scale = LUBLIN_FEITELSON_GAMMA
    slots = np.arange(_FIRST_HALF_HOUR, _FIRST_HALF_HOUR + 48)
    weights = np.empty(48)
    weights[(slots - 1) % 48] = gammainc(shape, (slots + 0.5) / scale) - gammainc(shape, (slots - 0.5) / scale)
    normed: FloatArray = weights / weights.mean()
    return normed


def _weights(field: str, given: object) -> tuple[float, ...]:
    weights = given if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) else ()
    require(len(weights), field, given, "it must be a list of weights")
    numbers = tuple(require_weight(field, each) for each in weights)
    require(any(numbers), field, given, "one weight at least must be > 0")
    return numbers


def _hours(field: str, given: object) -> tuple[float, ...]:
    return _weights(field, lublin_feitelson_day().tolist() if given is None else given)


def _days(field: str, given: object) -> tuple[float, ...]:
    if len(weights := _weights(field, given)) != 7:
        raise SpecificationError(f"{field}: {len(weights)} weights are given; there must be 7")
    return weights


@dataclass(frozen=True)
class Cycle(_Modified, hours=_hours, days=_days):
    """An arrival process with a daily and weekly cycle: the clock of another process runs faster where the rate is higher.

    Over a week the mean rate is that of the process.  Time 0 is the beginning of the first day of ``days``.
    """

    arrivals: ArrivalProcess | Workload | Distribution
    hours: Sequence[float] | None = None
    """Relative rates over the day, in slots of equal length from midnight on (24 weights: hours); by default
    :func:`lublin_feitelson_day`."""
    days: Sequence[float] = (1, 1, 1, 1, 1, 1, 1)
    """Relative rates of the seven days of the week."""

    def gaps(self, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Yield seconds between arrivals on the process's own clock."""
        return self.process.gaps(rng)

    def _week(self) -> tuple[FloatArray, FloatArray]:
        """Return the ends of all slots of a week, and the process's own clock there; shapes ``(slots + 1,)``."""
        assert self.hours is not None
        rate = np.outer(self.days, self.hours).ravel()
        ends = np.linspace(0, 7 * DAY_S, len(rate) + 1)
        return ends, np.concatenate([[0.0], np.cumsum(rate / rate.sum())]) * 7 * DAY_S

    def to_time(self, own_s: FloatArray) -> FloatArray:
        """Return the time of the simulation, seconds, for times on the process's own clock."""
        ends, own = self._week()
        week, rest = np.divmod(self.process.to_time(own_s), 7 * DAY_S)
        return week * 7 * DAY_S + np.interp(rest, own, ends)

    def to_own_clock(self, time_s: float) -> float:
        """Return the time on the process's own clock, seconds, for a time of the simulation."""
        ends, own = self._week()
        week, rest = divmod(time_s, 7 * DAY_S)
        return self.process.to_own_clock(week * 7 * DAY_S + float(np.interp(rest, ends, own)))


@dataclass(frozen=True, kw_only=True)
class Sessions(Checked, arrivals=arrival_process, jobs=distribution, think_time_s=distribution):
    """Sessions started by an arrival process: a session's first job arrives then, each further job after its predecessor."""

    arrivals: ArrivalProcess | Workload | Distribution
    """When sessions begin."""
    jobs: Distribution
    """Jobs in a session, rounded, at least one; ``scipy.stats.geom(1 / 5)`` has a mean of five."""
    think_time_s: Distribution
    """Seconds from the completion of a job to the next submission of the session."""


@dataclass(frozen=True, kw_only=True)
class ClosedUsers(Checked, users=partial(validation.require_whole, at_least=1), think_time_s=distribution):
    """A fixed number of users, each of whom thinks, submits a job, waits for its completion, and thinks again.

    Every user has a user number, from 1, and the same number of jobs, or one more.  Users complete their
    last jobs at different times, so fewer users are active towards the end of a run.
    """

    users: int
    think_time_s: Distribution
    """Seconds from the completion of a job (for the first job: from time 0) to the next submission."""


RANDOM_NUMBERS: Final = "random numbers"
"""Key of the provenance's options that identifies the random numbers of a generated stream."""

_LONGEST_SOURCE: Final = 500  # characters; a distribution may be a list of a million values


@dataclass(frozen=True, kw_only=True)
class JobStream:
    """Specification of a job stream, from which workloads are generated.

    :mod:`clustermodel.workload.distributions` says what may stand for a distribution.
    """

    arrivals: ArrivalProcess | Workload | Distribution | Sessions | ClosedUsers
    """When jobs are submitted: an arrival process; the distribution of seconds between arrivals; a workload, for its
    submission times; or :class:`~clustermodel.workload.job_stream.Sessions` or
    :class:`~clustermodel.workload.job_stream.ClosedUsers`, for submissions that depend on completions."""
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
                distribution(f"JobStream.{name}", value)
        require_estimate_model("JobStream.estimates", self.estimates)
        is_line = isinstance(self.name, str) and self.name and self.name.isprintable()
        require(is_line, "JobStream.name", self.name, "it must be a line of text")

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
        """
        if (jobs is None) == (days is None):
            raise SpecificationError("JobStream.generate: give either jobs or days")
        arguments = {"stream": self, "jobs": jobs, "days": days, "seed": seed, "load": load, "machine_nodes": machine_nodes}
        if jobs is None:
            assert days is not None
            made = draw_streams({"": self}, days=days, seed=seed, load=load, machine_nodes=machine_nodes)[""]
        else:
            made = self._first_jobs(validation.require_jobs(jobs), seed, load, machine_nodes)
        return made.made_by("job_stream", arguments)

    def _first_jobs(self, jobs: int, seed: int, load: float | None, machine_nodes: int | None) -> Workload:
        _require_load(self, seed, load, machine_nodes)
        if isinstance(self.arrivals, ClosedUsers):
            users = min(self.arrivals.users, jobs)
            return self._of_sessions(None, [len(range(user, jobs, users)) for user in range(users)], jobs, seed, machine_nodes)
        if isinstance(self.arrivals, Sessions):
            sizes = self._session_sizes(jobs, seed)
            sizes = sizes[: int(np.searchsorted(np.cumsum(sizes), jobs)) + 1]
            begins = self._own_times(seed, arrivals=len(sizes))
            return self._of_sessions(begins, sizes, jobs, seed, machine_nodes)
        own = self._own_times(seed, arrivals=jobs)
        if load is not None:
            assert machine_nodes is not None
            length = dot(*self._sizes_and_runs(jobs, seed)) / (load * machine_nodes)
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

    def _session_sizes(self, sessions: int, seed: int) -> IntArray:
        """Return the numbers of jobs of sessions, shape ``(sessions,)``."""
        assert isinstance(self.arrivals, Sessions)
        drawn = draw("Sessions.jobs", self.arrivals.jobs, self._rng(seed, "jobs of sessions"), sessions)
        return np.maximum(1, np.rint(drawn)).astype(np.int64)

    def _of_sessions(
        self, begins: FloatArray | None, sizes: IntArray | list[int], jobs: int | None, seed: int, machine_nodes: int | None
    ) -> Workload:
        """Return the first jobs of sessions that begin at these own times; those of closed users begin after a think time."""
        assert isinstance(self.arrivals, Sessions | ClosedUsers)
        session = np.repeat(np.arange(len(sizes)), sizes)[:jobs]
        first = np.flatnonzero(np.diff(session, prepend=-1))
        think = draw("think_time_s", self.arrivals.think_time_s, self._rng(seed, "think times"), len(session))
        _require_range("think_time_s", think, 0, LONGEST_S)
        begin = think[first] if begins is None else self._process.to_time(begins)
        users = session + 1 if begins is None else None
        return self._workload(begin[session], seed, machine_nodes, first[session], think, users)

    def _workload(
        self,
        begin_s: FloatArray,
        seed: int,
        machine_nodes: int | None,
        first: IntArray | None = None,
        think_s: FloatArray | None = None,
        users: IntArray | None = None,
    ) -> Workload:
        """Return the jobs that are submitted, or whose sessions begin, at ``begin_s``, seconds.

        All shapes are ``(jobs,)``.  The jobs of a session follow each other; ``first`` is the position of its first one, and
        ``think_s`` the time from the completion of the job before.
        """
        jobs = len(begin_s)
        if not jobs:
            raise SpecificationError(f"JobStream {self.name}: no job arrives in that time; give more days or a higher rate")
        nodes, run_s = self._sizes_and_runs(jobs, seed)
        estimate_s = np.asarray(self.estimates.estimate(run_s, self._rng(seed, "estimates")), dtype=np.float64)
        _require_range("JobStream.estimates", estimate_s, 0, np.inf)
        run, estimate = (np.maximum(1, _ticks(np.minimum(time, LONGEST_S))) for time in (run_s, estimate_s))
        _require_range(f"JobStream {self.name}: submission", begin_s, 0, LAST_TICK / TICKS_PER_SECOND / 2)
        submit, place = _ticks(begin_s), np.arange(jobs)
        if first is not None and think_s is not None:
            think, follows = _ticks(think_s), place > first
            # The recorded submissions are those on a machine on which no job waits.
            steps = np.cumsum(np.where(follows, np.roll(run, 1) + think, 0))
            submit += steps - steps[first]
        order = np.argsort(submit, kind="stable")
        number = np.empty(jobs, dtype=np.int64)
        number[order] = np.arange(1, jobs + 1)
        of_job = {"submit": submit, "id": number, "nodes": nodes, "run": run, "estimate": estimate}
        if first is not None:
            of_job |= {PRECEDING: np.where(follows, number[place - 1], UNSET), THINK: np.where(follows, think, UNSET)}
        of_job["priority"] = np.rint(draw("JobStream.priority", self.priority, self._rng(seed, "priorities"), jobs))
        if self.users is not None:
            drawn = np.rint(draw("JobStream.users", self.users, self._rng(seed, "users"), jobs))
            users = drawn if first is None else drawn[np.cumsum(place == first) - 1]  # one for each session
        if users is not None:
            of_job["user"] = users
        if self.memory_gib is not None:
            gib = draw("JobStream.memory_gib", self.memory_gib, self._rng(seed, "memory"), jobs)
            _require_range("JobStream.memory_gib", gib, 0, LARGEST_GIB)
            of_job["memory"] = np.rint(gib * KIB_PER_GIB)
        return Workload(
            table_of(**of_job),
            name=self.name,
            provenance=Provenance(
                source=f"{' '.join(repr(self).split())[:_LONGEST_SOURCE]}, seed {seed}",
                options={"seed": seed, RANDOM_NUMBERS: f"name {self.name!r}, seed {seed}"},
            ),
            machine_nodes=machine_nodes,
            extra=() if first is None else (PRECEDING, THINK),
        )


def draw_streams(
    streams: Mapping[str, JobStream], *, days: float, seed: int, load: float | None, machine_nodes: int | None
) -> dict[str, Workload]:
    """Return the jobs that each stream submits within ``days``; a label that is not empty names the stream's random numbers."""
    length = validation.require_seconds("days", days, positive=True) * DAY_S
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
            made[label] = stream._of_sessions(own, stream._session_sizes(len(own), seed), None, seed, machine_nodes)
        else:
            made[label] = stream._workload(stream._process.to_time(own), seed, machine_nodes)
    return made


def _rate_factor(streams: Mapping[str, JobStream], length: float, seed: int, work: float) -> float:
    """Return the factor of all arrival rates with which the jobs within ``length`` seconds have that work, node-seconds."""
    # A job that arrives at u on its process's clock is within the length if u <= factor x the clock at the end.
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
    validation.require_whole("seed", seed, at_least=0)
    if machine_nodes is not None:
        validation.require_whole("machine_nodes", machine_nodes, at_least=1)
    if load is None:
        return
    validation.require_number("load", load, "> 0 and < 10", lambda x: 0 < x < 10)
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
