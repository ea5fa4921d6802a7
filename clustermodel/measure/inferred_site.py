"""Which limits of a site a log shows: jobs of a user wait while nodes are idle, until a job of the same user ends.

A wait is *unexplained* as far as at least as many nodes were idle as the job asked for.  A limit of some jobs together
explains it as far as these had, at that time, as much as they ever had: as many running jobs, or so many nodes that with the
job it would have been more.  It is taken for a rule of the site only if it explains nearly all that was unexplained, if jobs
started soon after one of their own had ended, and if that happened often.  That a user never had more than one job is no
evidence by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from clustermodel.arrays import BoolArray, FloatArray, IntArray
from clustermodel.errors import SpecificationError, counted
from clustermodel.job import UNSET
from clustermodel.site import EACH, SUBJECTS, Limits, Site
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.table import NAMED_COLUMNS, SUSPENDED, WAIT, Workload

SHARE_EXPLAINED: Final = 0.9
"""Of the unexplained waiting time of some jobs, the least share that a limit must explain."""
SHARE_PROMPT: Final = 0.5
"""Of the jobs that a limit kept waiting, the least share that started soon after one of theirs ended."""
PROMPT_S: Final = 120
"""What "soon" is, seconds: schedulers look at their queue every half minute or minute."""
FEWEST: Final = 20
"""Jobs that a limit must have kept waiting."""
LEAST_WAIT_S: Final = 60
"""Shorter waits are those of a scheduler's cycles."""
KINDS: Final = ("running_jobs", "nodes")
"""Kinds of limits that are looked for: fields of :class:`~clustermodel.site.Limits`."""
_ALIKE: Final = 3  # equal limits that make one of each user, if nobody had more
_MOMENTS: Final = 0.001
_LEAST_SHARE: Final = 0.01  # of all unexplained waiting time that a rule must explain


class InferredLimit(NamedTuple):
    """A limit that a log shows, and how it shows it."""

    kind: str
    """``"running_jobs"`` or ``"nodes"``, a field of :class:`~clustermodel.site.Limits`."""
    of: str
    """``"user"``, ``"account"`` and so on: a field of ``Limits`` too."""
    who: str
    """The name or number of the user, account and so on."""
    limit: int
    jobs: int
    """Number of jobs that waited because of it."""
    explained_s: float
    """For how long they waited because of it although enough nodes were idle, seconds, together."""
    share: float
    """Share of the waiting time of these users' jobs with enough idle nodes that it explains."""
    prompt: float
    """Share of the jobs that waited because of it that started within two minutes of the end of another one of theirs."""

    @property
    def limits(self) -> Limits:
        """The limit as a rule of a site."""
        subject: Any = {self.of: self.who}
        return Limits(**subject, **{self.kind: self.limit})

    def as_json(self) -> dict[str, object]:
        """Return the rule and its evidence as values for JSON."""
        values = self._asdict()
        rule = {name: values.pop(name) for name in ("kind", "of", "who", "limit")}
        return {**rule, "evidence": values}

    def __str__(self) -> str:
        what = counted(self.limit, "job" if self.kind == "running_jobs" else "node")
        return (
            f"{self.of} {self.who}: at most {what} at a time: {counted(self.jobs, 'job')} waited with enough idle nodes, "
            f"{100 * self.share:.1f} % of that time at this limit; {100 * self.prompt:.0f} % of them started within "
            f"{PROMPT_S} s of the end of another one"
        )


def infer_limits(workload: Workload, nodes: int) -> list[InferredLimit]:
    """Return the limits that a log with recorded waits shows, the one that explains most first.

    Of several limits for the same jobs (a user who is the only one of an account), the one that explains most is returned, and
    of equal ones that of the user, then of the group, account, partition, QOS, queue.  Where several have the same limit and
    nobody ever had more, it is one of each (``who`` is ``"*"``).  ``nodes`` is the size of the machine.  A log without waits
    is a ``SpecificationError``.
    """
    log = _Log(workload, nodes)
    candidates = [each for field in SUBJECTS for each in log.candidates(field)]
    candidates.sort(key=lambda pair: -pair[0].explained_s)  # stable: equal ones stay in the order of SUBJECTS
    found: list[InferredLimit] = []
    least, explained = _LEAST_SHARE * log.unexplained.sum(), np.zeros(len(log.unexplained), dtype=bool)
    for limit, jobs in candidates:
        if log.unexplained[jobs & ~explained].sum() > max(least, 0.5 * log.unexplained[jobs].sum()):
            found.append(limit)
            explained |= jobs
    return found


def inferred_site(limits: list[InferredLimit]) -> Site:
    """Return the rules of a site with these limits."""
    return Site(limits=[each.limits for each in limits])


class _Log:
    """A recorded schedule, times in seconds."""

    def __init__(self, workload: Workload, nodes: int) -> None:
        wait = workload.column(WAIT)
        if not (known := wait != UNSET).any():
            raise SpecificationError(f"{workload.name} has no recorded waits, which show the rules of a site")
        self._workload, self._known = workload, known
        occupied = workload.column("run") + np.maximum(workload.column(SUSPENDED), 0)
        self.submit: FloatArray = workload.column("submit")[known] / TICKS_PER_SECOND
        self.start: FloatArray = self.submit + wait[known] / TICKS_PER_SECOND
        self.end: FloatArray = self.start + occupied[known] / TICKS_PER_SECOND
        self.nodes: IntArray = workload.column("nodes")[known]
        times, in_use = _steps(self.start, self.end, self.nodes)
        self._times, idle = times, nodes - in_use
        # Up to each time, how long at least as many nodes were idle as a job of a size asks for.
        self._idle_for: dict[int, FloatArray] = {
            size: np.append(0.0, np.cumsum(np.diff(times) * (idle[:-1] >= size))) for size in np.unique(self.nodes).tolist()
        }
        self.unexplained = self._with_idle_nodes(self.start) - self._with_idle_nodes(self.submit)

    def _with_idle_nodes(self, moments: FloatArray) -> FloatArray:
        """Return for how long, up to one moment of each job, enough nodes for it were idle."""
        total = np.zeros(len(self.nodes))
        for size, idle_for in self._idle_for.items():
            of_size = self.nodes == size
            total[of_size] = np.interp(moments[of_size], self._times, idle_for)
        return total

    def candidates(self, field: str) -> Iterator[tuple[InferredLimit, BoolArray]]:
        """Yield the limits of each user, account and so on that may be rules, with the jobs that each kept waiting."""
        column = self._workload.column(field)[self._known]
        texts, least = self._workload.names.get(field, ()), 1 if field in NAMED_COLUMNS else 0
        waited = (self.unexplained > LEAST_WAIT_S) & (column >= least)
        codes, jobs = np.unique(column[waited], return_counts=True)
        limits: list[tuple[InferredLimit, BoolArray]] = []
        for code in codes[jobs >= FEWEST].tolist():
            who, own = texts[code - 1] if 0 < code <= len(texts) else str(code), column == code
            of_kinds = [limit for kind in KINDS if (limit := self._limit(kind, field, who, own)) is not None]
            if of_kinds:
                limits.append((max(of_kinds, key=lambda limit: round(limit.share, 2)), own & waited))
        for same in {(limit.kind, limit.limit) for limit, _ in limits}:
            alike = [pair for pair in limits if (pair[0].kind, pair[0].limit) == same]
            if len(alike) >= _ALIKE and self._nobody_had_more(column, least, *same):
                limits = [pair for pair in limits if pair not in alike]
                yield _of_each([limit for limit, _ in alike]), np.any([jobs for _, jobs in alike], axis=0)
        yield from limits

    def _nobody_had_more(self, column: IntArray, least: int, kind: str, limit: int) -> bool:
        """Return whether no user, account and so on ever had more than a limit."""
        for code in np.unique(column[column >= least]).tolist():
            own = column == code
            if _most(*_steps(self.start[own], self.end[own], _amounts(kind, self.nodes[own]))) > limit:
                return False
        return True

    def _limit(self, kind: str, field: str, who: str, own: BoolArray) -> InferredLimit | None:
        """Return the limit that some jobs may have had, if it explains their waits."""
        start, end, nodes = self.start[own], self.end[own], self.nodes[own]
        times, in_use = _steps(start, end, _amounts(kind, nodes))
        most = _most(times, in_use)
        unexplained, explained = self.unexplained[own], np.zeros(len(nodes))
        waited = unexplained > LEAST_WAIT_S
        for size in np.unique(nodes[waited]).tolist():
            of_size = waited & (nodes == size)
            at_limit = in_use + (1 if kind == "running_jobs" else size) > most
            idle_for = np.interp(times, self._times, self._idle_for[size])
            spent = np.append(0.0, np.cumsum(np.diff(idle_for) * at_limit[:-1]))
            for moments, sign in ((start[of_size], 1), (self.submit[own][of_size], -1)):
                # Between two events of these jobs the limit is reached or not, and nodes are idle for part of the time.
                before = np.searchsorted(times, moments, side="right") - 1
                place = np.maximum(before, 0)
                rest = np.interp(moments, self._times, self._idle_for[size]) - idle_for[place]
                explained[of_size] += sign * np.where(before < 0, 0.0, spent[place] + rest * at_limit[place])
        share = float(explained[waited].sum() / unexplained[waited].sum())
        bound = waited & (explained > LEAST_WAIT_S)
        if share < SHARE_EXPLAINED or bound.sum() < FEWEST:
            return None
        ends = np.sort(end)
        before = np.searchsorted(ends, start[bound], side="right") - 1
        prompt = float(((before >= 0) & (start[bound] - ends[np.maximum(before, 0)] <= PROMPT_S)).mean())
        if prompt < SHARE_PROMPT:
            return None
        return InferredLimit(kind, field, who, most, int(bound.sum()), float(explained[bound].sum()), share, prompt)


def _of_each(limits: list[InferredLimit]) -> InferredLimit:
    """Return several equal limits as one of each user, account and so on."""
    jobs, explained_s = sum(limit.jobs for limit in limits), sum(limit.explained_s for limit in limits)
    share = explained_s / sum(limit.explained_s / limit.share for limit in limits)
    prompt = sum(limit.prompt * limit.jobs for limit in limits) / jobs
    return limits[0]._replace(who=EACH, jobs=jobs, explained_s=explained_s, share=share, prompt=prompt)


def _amounts(kind: str, nodes: IntArray) -> IntArray:
    return np.ones_like(nodes) if kind == "running_jobs" else nodes


def _most(times: FloatArray, in_use: IntArray) -> int:
    """Return the most that jobs had at a time, but for moments: a thousandth of the time in which they had some."""
    lasted = np.diff(times, append=times[-1:])
    levels, places = np.unique(in_use, return_inverse=True)
    at_level = np.bincount(places, lasted)
    at_or_above = np.cumsum(at_level[::-1])[::-1]
    busy = at_level[levels > 0].sum()
    return int(levels[at_or_above > _MOMENTS * busy].max(initial=0))


def _steps(start: FloatArray, end: FloatArray, amount: IntArray) -> tuple[FloatArray, IntArray]:
    """Return the times at which something changes that jobs have from their start to their end, and how much it is then."""
    times, places = np.unique(np.concatenate([start, end]), return_inverse=True)
    change = np.zeros(len(times), dtype=np.int64)
    np.add.at(change, places, np.concatenate([amount, -amount]))
    return times, np.cumsum(change)
