"""Which limits of a site a log shows: what users have together, and how long and how large a job may be.

A wait is *unexplained* as far as at least as many nodes were idle as the job asked for.  A limit of some jobs together
explains it as far as these had, at that time, as much as they ever had: as many running jobs, or so many nodes that with the
job it would have been more.  It is taken for a rule of the site only if most of the jobs that it kept waiting started soon
after one of their own had ended, if that happened often, and if it explains a part of what was unexplained: on a busy machine
jobs also wait beside idle nodes that others have reserved.  That a user never had more than one job is no evidence by itself.

The largest request of a partition, QOS or queue is taken for a limit of each job only if many jobs of several users asked
for exactly that, and the requests of the others make it all but impossible that nobody wanted more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from clustermodel.arrays import BoolArray, FloatArray, IntArray
from clustermodel.errors import counted
from clustermodel.site.limits import EACH, SUBJECTS
from clustermodel.site.recorded_schedule import (
    FEWEST,
    LEAST_WAIT_S,
    PROMPT_S,
    InferredRule,
    RecordedSchedule,
    steps,
)  # fmt: skip

SHARE_EXPLAINED: Final = 0.1
"""Of the unexplained waiting time of some jobs, the least share that a limit must explain; reservations explain others."""
SHARE_PROMPT: Final = 0.5
"""Of the jobs that a limit kept waiting, the least share that started soon after one of theirs ended."""
KINDS: Final = ("running_jobs", "nodes")
"""Kinds of limits of jobs together that are looked for: fields of :class:`~clustermodel.site.limits.Limits`."""
CHANCE: Final = 0.001
"""The most likely that something may be that is taken for a rule, if it is none."""
CLASSES: Final = ("partition", "qos", "queue")
"""What has limits of each job, and priorities."""
_ALIKE: Final = 3  # equal limits that make one of each user, if nobody had more
_MOMENTS: Final = 0.001
_LEAST_SHARE: Final = 0.01  # of all unexplained waiting time that a rule must explain, of a class's jobs that ask for the most
_USERS: Final = 3  # who ask for exactly the most


class _Limit(NamedTuple):
    """A limit of jobs together."""

    kind: str
    of: str
    who: str
    limit: int
    jobs: int  # that waited because of it
    explained_s: float  # for how long they waited because of it although enough nodes were idle
    share: float  # of the waiting time of these users' jobs with enough idle nodes that it explains
    prompt: float  # share of the jobs that waited because of it that started soon after the end of another one of theirs
    confined: int = 0  # to as many nodes as they had at a time: the number of nodes on which all their jobs ran

    @property
    def rule(self) -> InferredRule:
        what = counted(self.limit, "job" if self.kind == "running_jobs" else "node")
        words = (
            f"{self.of} {self.who}: at most {what} at a time: {counted(self.jobs, 'job')} waited with enough idle nodes, "
            f"{100 * self.share:.1f} % of that time at this limit; {100 * self.prompt:.0f} % of them started within "
            f"{PROMPT_S} s of the end of another one"
        )
        if self.confined:
            words += (
                f"; but all their jobs ran on the same {counted(self.confined, 'node')}: "
                "a partition or a request for these nodes explains that without a limit"
            )
        evidence = {name: getattr(self, name) for name in ("jobs", "explained_s", "share", "prompt", "confined")}
        return InferredRule(self.kind, self.of, self.who, self.limit, evidence, words)


def limits_together(log: RecordedSchedule) -> tuple[list[InferredRule], BoolArray]:
    """Return the limits of jobs together, the one that explains most first, and which jobs they kept waiting.

    Of several limits for the same jobs (a user who is the only one of an account), the one that explains most is returned, and
    of equal ones that of the user, then of the group, account, partition, QOS, queue.  Where several have the same limit and
    nobody ever had more, it is one of each (``who`` is ``"*"``).
    """
    waits = _Waits(log)
    candidates = [each for field in SUBJECTS for each in waits.candidates(field)]
    candidates.sort(key=lambda pair: -pair[0].explained_s)  # stable: equal ones stay in the order of SUBJECTS
    rules: list[InferredRule] = []
    least, explained = _LEAST_SHARE * waits.unexplained.sum(), np.zeros(len(waits.unexplained), dtype=bool)
    for limit, jobs in candidates:
        if waits.unexplained[jobs & ~explained].sum() > max(least, 0.5 * waits.unexplained[jobs].sum()):
            rules.append(limit.rule)
            explained |= jobs
    return rules, explained


def limits_of_each_job(log: RecordedSchedule, together: Sequence[InferredRule]) -> list[InferredRule]:
    """Return the limits of the estimates and sizes of jobs that do not follow from limits of jobs together."""
    rules: list[InferredRule] = []
    for kind, amounts, unit in (("wall_time_s", log.estimate, "s"), ("job_nodes", log.nodes, "nodes")):
        # Equal requests of a user count once, as one job is often submitted many times.
        requests = np.stack([log.user.astype(float), amounts])
        classes = [(field, who, own) for field in CLASSES for who, own in log.members(field)]
        classes.sort(key=lambda each: -int(each[2].sum()))
        explained: list[tuple[float, BoolArray]] = []
        for field, who, own in classes:
            most = amounts[own].max()
            at_most = own & (amounts == most)
            users = len(np.unique(log.user[at_most]))
            if at_most.sum() < max(FEWEST, _LEAST_SHARE * own.sum()) or users < _USERS or own.all():
                continue
            above = float((np.unique(requests[:, ~own], axis=1)[1] > most).mean())
            chance = (1 - above) ** np.unique(requests[:, own], axis=1).shape[1]
            known = any(limit <= most and 2 * (at_most & jobs).sum() > at_most.sum() for limit, jobs in explained)
            follows = kind == "job_nodes" and any(
                rule.kind == "nodes" and rule.of == field and rule.who in (who, EACH) and rule.limit <= most
                for rule in together
            )
            if chance < CHANCE and not known and not follows:
                jobs, share = int(at_most.sum()), float(at_most.sum() / own.sum())
                evidence = {"jobs": jobs, "share": share, "users": users, "others_above": above, "chance": chance}
                words = (
                    f"{field} {who}: jobs of at most {most:,g} {unit}: {jobs:,} of them ({100 * share:.1f} %), of {users:,} "
                    f"users, ask for exactly that, none for more, {100 * above:.1f} % of the requests of other jobs"
                )
                rules.append(InferredRule(kind, field, who, int(most) if most == int(most) else float(most), evidence, words))
                explained.append((float(most), own))
    return rules


class _Waits:
    """Waits that are unexplained."""

    def __init__(self, log: RecordedSchedule) -> None:
        self._log = log
        self.submit, self.start, self.end, self.nodes = log.submit, log.start, log.end, log.nodes
        self._times = times = log.times
        # Up to each time, how long at least as many nodes were idle as a job of a size asks for.
        self._idle_for: dict[int, FloatArray] = {
            size: np.append(0.0, np.cumsum(np.diff(times) * (log.idle[:-1] >= size))) for size in np.unique(self.nodes).tolist()
        }
        self.unexplained = self._with_idle_nodes(self.start) - self._with_idle_nodes(self.submit)

    def _with_idle_nodes(self, moments: FloatArray) -> FloatArray:
        """Return for how long, up to one moment of each job, enough nodes for it were idle."""
        total = np.zeros(len(self.nodes))
        for size, idle_for in self._idle_for.items():
            of_size = self.nodes == size
            total[of_size] = np.interp(moments[of_size], self._times, idle_for)
        return total

    def candidates(self, field: str) -> Iterator[tuple[_Limit, BoolArray]]:
        """Yield the limits of each user, account and so on that may be rules, with the jobs that each kept waiting."""
        column, least = self._log.column(field)
        waited = (self.unexplained > LEAST_WAIT_S) & (column >= least)
        codes, jobs = np.unique(column[waited], return_counts=True)
        limits: list[tuple[_Limit, BoolArray]] = []
        for code in codes[jobs >= FEWEST].tolist():
            who, own = self._log.name(field, code), column == code
            of_kinds = [limit for kind in KINDS if (limit := self._limit(kind, field, who, own)) is not None]
            if of_kinds:
                limit = max(of_kinds, key=lambda limit: round(limit.share, 2))
                limits.append((limit._replace(confined=self._confined(own)), own & waited))
        for same in {(limit.kind, limit.limit) for limit, _ in limits}:
            alike = [pair for pair in limits if (pair[0].kind, pair[0].limit) == same]
            if len(alike) >= _ALIKE and self._nobody_had_more(column, least, *same):
                limits = [pair for pair in limits if pair not in alike]
                yield _of_each([limit for limit, _ in alike]), np.any([jobs for _, jobs in alike], axis=0)
        yield from limits

    def _confined(self, own: BoolArray) -> int:
        """Return the number of nodes on which some jobs ran, if they had all of these at a time; otherwise 0."""
        used = self._log.nodes_used(own)
        return used if used <= _most(*steps(self.start[own], self.end[own], self.nodes[own])) else 0

    def _nobody_had_more(self, column: IntArray, least: int, kind: str, limit: int) -> bool:
        """Return whether no user, account and so on ever had more than a limit."""
        for code in np.unique(column[column >= least]).tolist():
            own = column == code
            if _most(*steps(self.start[own], self.end[own], _amounts(kind, self.nodes[own]))) > limit:
                return False
        return True

    def _limit(self, kind: str, field: str, who: str, own: BoolArray) -> _Limit | None:
        """Return the limit that some jobs may have had, if it explains their waits."""
        start, end, nodes = self.start[own], self.end[own], self.nodes[own]
        times, in_use = steps(start, end, _amounts(kind, nodes))
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
        return _Limit(kind, field, who, most, int(bound.sum()), float(explained[bound].sum()), share, prompt)


def _of_each(limits: list[_Limit]) -> _Limit:
    """Return several equal limits as one of each user, account and so on."""
    jobs, explained_s = sum(limit.jobs for limit in limits), sum(limit.explained_s for limit in limits)
    share = explained_s / sum(limit.explained_s / limit.share for limit in limits)
    prompt = sum(limit.prompt * limit.jobs for limit in limits) / jobs
    return limits[0]._replace(who=EACH, jobs=jobs, explained_s=explained_s, share=share, prompt=prompt, confined=0)


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
