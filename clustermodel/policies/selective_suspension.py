"""Selective suspension: a waiting job preempts running jobs whose expansion factors are much smaller than its own.

R. Kettimuthu, V. Subramani, S. Srinivasan, T. Gopalsamy, D. K. Panda and P. Sadayappan, "Selective Preemption Strategies for
Parallel Job Scheduling", ICPP 2002, and IJHPCN 3(2/3), 2005: the scheme SS (selective suspension), without its tuned form TSS.

The *expansion factor* (xfactor) of a job is (wait time + estimate) / estimate, with all its waits together: it grows while the
job waits, the faster the shorter the job, and stays as it is while the job runs.

* Jobs start in the order of their xfactors, the largest first, wherever they fit.  No job holds a reservation or starves: one
  that waits long enough can preempt.
* Once a minute, a waiting job may preempt running jobs whose xfactors are at most 1/SF of its own, SF being the *suspension
  factor*.  A job does not preempt jobs that are more than twice as large as itself.
* A suspended job resumes on its own nodes only (*local preemption*).  To get them back, it may preempt jobs of any size.

We did not have the paper's text; docs/selective_suspension says what is known of the rule and what was decided.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import inf
from operator import or_
from typing import ClassVar, Final, NamedTuple

from clustermodel.errors import SpecificationError
from clustermodel.machine.node_set import from_mask
from clustermodel.plans.make import free_nodes_of
from clustermodel.plans.masks import Kept
from clustermodel.policies.interface import Decision, Reason, Setup, Start, WakeAt
from clustermodel.policies.preemption import (
    DEPENDENCIES,
    can_be_saved,
    enough_for,
    preempt,
    require_own_memory,
    require_store,
    victims_for,
)
from clustermodel.policies.view import Batch, QueuedJob, RunningJob, View
from clustermodel.ticks import duration_to_ticks
from clustermodel.validation import choice, require_number, require_seconds

MOST_NODES: Final = 10**7  # a set of nodes is a bitmask for each job; beyond any machine they would fill the memory


@dataclass(frozen=True, kw_only=True)
class SelectiveSuspension:
    """Selective suspension: running jobs yield to jobs with much larger expansion factors (Kettimuthu et al. 2005).

    Args:
        sf: suspension factor SF, > 1: how many times the xfactor of a running job a waiting job needs to preempt it.
        mode: what preemption does to a job: ``"suspend"`` (the paper's), ``"checkpoint"`` or ``"kill"``.  A job that does not
            fit into memory beside the job that preempts it and other suspended jobs runs on.  A checkpointed or killed job
            starts again on any nodes.
        interval_s: preemption is considered at the multiples of this time, seconds.
    """

    name: ClassVar[str] = "ss"
    takes_partitions: ClassVar[bool] = True
    takes_order: ClassVar[bool] = False
    takes_reservations: ClassVar[bool] = True
    takes_shapes: ClassVar[bool] = True
    sf: float = 2.0
    mode: str = "suspend"
    interval_s: float = 60.0

    def __post_init__(self) -> None:
        require_number("ss: sf", self.sf, "a finite number > 1", lambda factor: 1 < factor < inf)
        choice("ss: mode", self.mode, DEPENDENCIES)
        require_seconds("ss: interval_s", self.interval_s, positive=True)

    @property
    def depends_on(self) -> frozenset[str]:
        return DEPENDENCIES[self.mode]

    def start(self, setup: Setup) -> SelectiveSuspensionRun:
        return SelectiveSuspensionRun(self, setup)


class _Running(NamedTuple):
    """A running job that may be preempted; those that yield first sort first."""

    bar: Fraction  # SF times its xfactor: the xfactor that a job needs to preempt it
    latest_first: tuple[int, ...]  # its place in queue order, reversed: of equal xfactors the last in queue order yields first
    job: QueuedJob


class SelectiveSuspensionRun:
    """One run of selective suspension."""

    def __init__(self, policy: SelectiveSuspension, setup: Setup) -> None:
        self._mode = policy.mode
        if self._mode == "checkpoint":
            require_store("ss", self._mode, setup.machine)
        require_own_memory("ss", self._mode, setup)
        if setup.nodes > MOST_NODES:
            raise SpecificationError(f"ss: a machine of {setup.nodes:,} nodes is not allowed; nodes must be <= {MOST_NODES:,}")
        self._may_lack = self._mode == "suspend" or (self._mode == "checkpoint" and bool(setup.machine.windows))
        self._windows = bool(setup.machine.windows)
        self._sf = Fraction(str(policy.sf))  # 1.1 is meant, not the binary number next to it
        self._interval = duration_to_ticks(policy.interval_s)
        self._explain, self._one_by_one, self._occupies = setup.explain, setup.one_by_one, setup.occupies
        self._where = free_nodes_of(setup)
        self._shares_memory = self._where.shares_memory
        self._idle = (1 << setup.nodes) - 1  # sets of nodes are bitmasks here
        self._stopping = 0  # nodes of preempted jobs whose work is being saved, and of jobs in their epilog
        self._claimed = 0  # nodes of all claims, which do not overlap
        self._claims: dict[int, int] = {}  # id of a waiting job that has preempted others -> the nodes that it waits for
        self._held: dict[int, int] = {}  # id of a job that holds nodes -> its nodes
        self._memory_of: dict[int, int] = {}  # and the memory of each of its tasks, KiB
        self._own: dict[int, int] = {}  # id of a suspended job -> its own nodes
        self._running: list[_Running] = []  # sorted, without those that have been preempted
        self._dispatched: dict[int, int] = {}  # id of a waiting job -> for how long it held nodes in earlier runs, ticks
        self._considered_at = -1  # when preemption was last considered
        self._alarm: int | None = None

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Start what fits, the largest xfactor first; at the multiples of the interval, preempt for what does not fit."""
        now = view.now
        self._memory = view.free_memory() if self._mode == "suspend" else None
        for gang in batch.ended:
            self._take_back(gang, requeued=gang.job.id in view.waiting, now=now)
        if batch.ended and view.down:  # told of one by one, an end may come after the failure of its nodes
            self._idle &= ~sum(1 << node for node in view.down)
        if self._occupies:
            self._note_epilogs(view)
        self._observe_outages(batch)
        if self._windows:
            self._give_up(
                job_id for job_id, nodes in self._claims.items() if not self._may_have(nodes, view.waiting.get(job_id))
            )
        considers = now % self._interval == 0 and now != self._considered_at
        if considers:
            self._considered_at = now
        decisions: list[Decision] = []
        started: list[_Running] = []  # no job is preempted at the instant at which it starts
        if self._idle or considers:
            waiting = [job for job in view.waiting.values() if job.id not in self._claims]
            waiting.sort(key=lambda job: (-self._waited(job, now) / job.estimate, job.queue_order))
            for job in (*[view.waiting[job_id] for job_id in self._claims], *waiting):
                if nodes := self._nodes_for(job, view):
                    decisions.append(self._start(job, nodes, started, now))
                elif considers and job.id not in self._claims:
                    decisions += self._preempt_for(job, view)
        for running in started:
            insort(self._running, running)
        alarm = self._next_preemption(view)
        if alarm != self._alarm or batch.alarm:
            self._alarm = alarm
            decisions.append(WakeAt(time=alarm))
        return decisions

    def _take_back(self, gang: RunningJob, *, requeued: bool, now: int) -> None:
        job_id = gang.job.id
        nodes = self._held.pop(job_id)
        del self._memory_of[job_id]
        self._idle |= nodes
        if self._stopping & nodes:
            self._stopping ^= nodes
        else:
            self._running = [other for other in self._running if other.job.id != job_id]
        if not requeued:
            self._dispatched.pop(job_id, None)
            return
        self._dispatched[job_id] = self._dispatched.get(job_id, 0) + now - gang.start
        if self._mode == "suspend":
            self._own[job_id] = nodes

    def _note_epilogs(self, view: View) -> None:
        """Take note of jobs that have ended, and whose nodes will be free after the epilog."""
        for other in [each for each in self._running if (gang := view.running.get(each.job.id)) and gang.stopping]:
            self._running.remove(other)
            self._stopping |= self._held[other.job.id]

    def _observe_outages(self, batch: Batch) -> None:
        """Take away nodes that have failed, with the claims to them and what is suspended there; take back those repaired."""
        if failed := sum(1 << outage.node for outage in batch.failed):
            self._idle &= ~failed
            self._give_up(job_id for job_id, nodes in self._claims.items() if nodes & failed)
            self._own = {job_id: nodes for job_id, nodes in self._own.items() if not nodes & failed}
        for outage in batch.repaired:
            self._idle |= 1 << outage.node

    def _give_up(self, claims: Iterable[int]) -> None:
        for job_id in list(claims):
            self._claimed &= ~self._claims.pop(job_id)

    def _may_have(self, nodes: int, job: QueuedJob | None) -> bool:
        return job is not None and self._where.may_have(nodes, job)

    def _waited(self, job: QueuedJob, now: int) -> int:
        return now - job.submit - self._dispatched.get(job.id, 0)

    def _reaches(self, job: QueuedJob, bar: Fraction) -> int:
        """Return the first tick at which a waiting job has an xfactor of at least ``bar``."""
        waited = -(-bar.numerator * job.estimate // bar.denominator) - job.estimate
        return job.submit + self._dispatched.get(job.id, 0) + waited

    def _nodes_for(self, job: QueuedJob, view: View) -> int:
        """Return the nodes on which a job can start now, 0 if none: first those kept for it, last those of suspended jobs."""
        claim = self._claims.get(job.id, 0)
        parts = [self._idle & (~self._claimed | claim) & suitable for suitable in self._suitable(job)]
        if own := self._own.get(job.id):
            return own if any(not own & ~free for free in parts) else 0
        kept = self._kept(job, view) if self._shares_memory else ()
        if (free := next((part for part in parts if self._where.fits(job, part, kept)), None)) is None:
            return 0
        owned = reduce(or_, self._own.values(), 0)
        # First its claim: otherwise the jobs that it has preempted could resume there.
        return self._where.choose(job, free, (claim, ~owned & ~claim, owned & ~claim), kept)

    def _kept(self, job: QueuedJob, view: View, victims: Iterable[_Running] | None = None) -> Kept:
        """Return what others leave a waiting job no memory of: those that hold nodes, and those for which nodes are kept.

        With ``victims``, these have left, and all that are stopping.
        """
        if victims is None:
            stay = [*self._held]
        else:
            gone = {other.job.id for other in victims}
            stay = [job_id for job_id, nodes in self._held.items() if not (nodes & self._stopping or job_id in gone)]
        kept = [(self._held[job_id], self._memory_of[job_id]) for job_id in stay]
        kept += [(nodes, view.waiting[job_id].memory) for job_id, nodes in self._claims.items() if job_id != job.id]
        return kept

    def _suitable(self, job: QueuedJob) -> list[int]:
        """Return the nodes of a waiting job on which it has, or could have, its memory beside all that has memory now.

        They are those of each of the sets of nodes of which it may have those of one.
        """
        sets = self._where.sets(job)
        if self._memory is None:
            return sets
        has_memory = self._memory.nodes_with(job.memory) | self._own.get(job.id, 0)
        return [eligible & has_memory for eligible in sets]

    def _start(self, job: QueuedJob, nodes: int, started: list[_Running], now: int) -> Start:
        xfactor = Fraction(self._waited(job, now) + job.estimate, job.estimate)
        why = "jobs were preempted for it" if job.id in self._claims else "it fits"
        self._claimed &= ~self._claims.pop(job.id, 0)
        if self._memory is not None and job.id not in self._own:
            self._memory.take(from_mask(nodes), job.memory)
        self._own.pop(job.id, None)
        self._idle ^= nodes
        self._held[job.id], self._memory_of[job.id] = nodes, job.memory
        started.append(_Running(self._sf * xfactor, tuple(-place for place in job.queue_order), job))
        reason = Reason(f"xfactor {float(xfactor):.2f}, and {why}") if self._explain else None
        return Start(job=job, columns=from_mask(nodes), reason=reason)

    def _victims(self, job: QueuedJob, view: View) -> list[tuple[int, Sequence[_Running]]]:
        """Return the nodes that a waiting job would have, and whom it has to preempt, the largest xfactor last.

        So it is for each of the sets of nodes of which it may have those of one, but for those where it would not fit.
        """
        found = [(suitable, self._victims_on(suitable, job, view)) for suitable in self._suitable(job)]
        possible = [(suitable, victims) for suitable, victims in found if victims is not None]
        return possible if all(victims for _, victims in possible) else []  # else it fits without a victim

    def _victims_on(self, suitable: int, job: QueuedJob, view: View) -> Sequence[_Running] | None:
        free = (self._idle | self._stopping) & ~self._claimed & suitable
        if own := self._own.get(job.id):
            there = [other for other in self._running if self._held[other.job.id] & own and self._can_stop(other, view)]
            short = own & ~suitable or own & ~reduce(or_, (self._held[other.job.id] for other in there), free)
            return None if short else there

        def gained_from(other: _Running) -> int:  # counting the bits of a mask takes long on a large machine
            return other.job.nodes if suitable == -1 else (self._held[other.job.id] & suitable).bit_count()

        def first(missing: int) -> list[_Running]:
            small = (other for other in self._running if other.job.nodes <= 2 * job.nodes)
            return victims_for(
                missing, (other for other in small if gained_from(other) and self._can_stop(other, view)), gained_from
            )

        def suffice(victims: Iterable[_Running]) -> bool:
            gained = reduce(or_, [self._held[other.job.id] for other in victims], 0)
            kept = self._kept(job, view, victims) if self._shares_memory else ()
            return self._where.fits(job, free | gained & suitable, kept)

        if suffice(()):
            return ()
        missing = job.nodes - free.bit_count()
        return enough_for(max(missing, 1), first, gained_from, suffice if self._where.has_shapes else None) or None

    def _can_stop(self, other: _Running, view: View) -> bool:
        gang = view.running.get(other.job.id)  # there is none yet for a job that starts now
        if gang is None and self._one_by_one:
            return False  # it has ended now
        return not self._may_lack or gang is None or can_be_saved(gang, self._mode, view)

    def _preempt_for(self, job: QueuedJob, view: View) -> Iterator[Decision]:
        """Preempt jobs for a waiting one, if its xfactor is large enough, and keep the nodes for it."""
        possible = [each for each in self._victims(job, view) if self._reaches(job, each[1][-1].bar) <= view.now]
        if not possible:
            return
        suitable, victims = possible[0]
        kept = self._kept(job, view, victims) if self._shares_memory else ()
        free = (self._idle | self._stopping) & ~self._claimed
        for other in victims:
            self._running.remove(other)
            self._stopping |= self._held[other.job.id]
            free |= self._held[other.job.id]
            yield preempt(other.job, self._mode)
        self._claims[job.id] = self._own.get(job.id) or self._where.choose(job, free & suitable, (-1,), kept)
        self._claimed |= self._claims[job.id]

    def _next_preemption(self, view: View) -> int | None:
        """Return the first multiple of the interval, after now, at which a job can preempt if nothing happens until then."""
        victims_of: dict[tuple[object, ...], list[tuple[int, Sequence[_Running]]]] = {}  # of jobs that are alike
        reached = []
        for job in view.waiting.values():
            if job.id in self._held or job.id in self._claims:
                continue
            # A suspended job is a kind of its own.  (Its nodes would say the same; their hash takes long on a large machine.)
            memory = job.memory if self._memory is not None or self._shares_memory else 0
            kind = (job.nodes, job.id if job.id in self._own else None, memory, job.layout, job.sets_eligible())
            if kind not in victims_of:
                victims_of[kind] = self._victims(job, view)
            reached += [max(self._reaches(job, victims[-1].bar), view.now + 1) for _, victims in victims_of[kind]]
        return -(-min(reached) // self._interval) * self._interval if reached else None
