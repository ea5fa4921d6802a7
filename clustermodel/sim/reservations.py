"""Reservations, and outages that are known in advance: which nodes a job may have now, and what is kept free."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from heapq import heappop, heappush
from math import gcd
from typing import ClassVar, Final

from clustermodel.errors import DecisionError
from clustermodel.machine.machine import Machine
from clustermodel.machine.node_set import NodeSet, as_mask, from_mask, text
from clustermodel.plans.windows import Windows
from clustermodel.policies.view import QueuedJob, RunningJob
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import Account, UnusedNodes
from clustermodel.recording.run_attempts import Status
from clustermodel.sim.events import AlarmClock, Clock, InstantSettled
from clustermodel.sim.job_process import Execution, JobInSystem
from clustermodel.sim.node_failures import NodeStates
from clustermodel.sim.node_pool import NodePool
from clustermodel.sim.node_requests import NodeChoice
from clustermodel.sim.phases import Phases
from clustermodel.sim.power_cap import PowerCap
from clustermodel.sim.rules import Rule
from clustermodel.sim.segments import JobTimes
from clustermodel.ticks import NEVER, to_seconds
from clustermodel.validation import require
from clustermodel.workload.job import Demand, Demands, JobRow

MOST_OFFSETS: Final = 1000  # after which a policy that decides at times of its own is not waited for any longer
_Bars = tuple[list[int], list[NodeSet | None]]  # begins of windows, and what a job may have that ends by the first, second, ...


class KeptFree:
    """The nodes that no gang has and that windows keep free."""

    def __init__(
        self, env: Clock, windows: Windows, pool: NodePool, cap: PowerCap | None, unused: UnusedNodes, records: JobRecords,
        jobs: Mapping[int, JobInSystem],
    ) -> None:  # fmt: skip
        self._env, self._windows, self._pool, self._cap = env, windows, pool, cap
        self._unused, self._records, self._jobs = unused, records, jobs
        self._charged = 0  # how many are charged as reserved

    def number(self) -> int:
        """Return how many there are now; those that are switched off do not count."""
        if not (reserved := self._windows.reserved(self._env.now)):
            return 0
        unused = self._pool.unused() | (0 if self._cap is None else self._cap.spare)
        off = 0 if self._pool.switched_off is None else self._pool.switched_off.off
        return (reserved & unused & ~off).bit_count()

    def charge(self) -> None:
        """Charge them from now on."""
        now, number = self._env.now, self.number()
        if number != self._charged:
            self._unused.put_off(now, Account.RESERVED, number - self._charged)
            self._records.kept_free(now, number)
            self._charged = number
        if self._jobs:
            self._unused.charge()


class Reservations(Rule):
    """The windows of a machine in one run."""

    rejects_late: ClassVar[bool] = True

    # Where gangs share nodes in time, in `rows` rows, jobs are expected to leave them as late as they may; 0: they do not.
    # Jobs start at multiples of `step` ticks only.  The policy `may_miss` all times at which a job could start.

    def __init__(
        self, env: Clock, settled: InstantSettled, machine: Machine, windows: Windows, demands: Demands, records: JobRecords,
        jobs: Mapping[int, JobInSystem], running: Mapping[int, Execution], pool: NodePool, choice: NodeChoice, phases: Phases,
        times: JobTimes, states: NodeStates, kept_free: KeptFree, rows: int, step: int, *,
        may_miss: bool,
    ) -> None:  # fmt: skip
        charge, must = machine.checkpointing.restart_charge, "it must be 'on-start'"
        require(charge == "on-start", "Checkpointing.restart_charge", charge, must, " where nodes are kept free")
        self._env, self._settled, self._records, self._jobs, self._running = env, settled, records, jobs, running
        self._pool, self._choice, self._phases, self._times = pool, choice, phases, times
        self._states, self._kept_free = states, kept_free
        self._rows, self._time_slicing, self._step = rows, machine.time_slicing, max(step, 1)
        self._may_miss = may_miss
        self.windows: Final = windows
        # After how many turns of all windows these begin as long after a multiple of the step again.
        self._offsets = min(self._step // gcd(self._step, windows.period), MOST_OFFSETS) if windows.period else 1
        self.changed = False  # whether one begins or ends at the present instant
        self._specified = machine.reservations
        # Reservations that jobs name.
        asked = [demand.reservation for demand in demands if demand is not None and demand.reservation is not None]
        self._by_name = {name for names in asked for name in names.split(",")}
        self._whole = (1 << machine.processors) - 1
        self._alarm = AlarmClock(env, self._ring)
        # How often since a gang last ran, a node was down or a job joined the queue, and all that is there once is over.
        self._rung = 0
        self._last_starts: list[
            tuple[int, int]
        ] = []  # heap of the last times at which jobs can start, where there are, and ids
        # Job id -> on how many nodes, and how long, windows let it run again and again.
        self._at_any_time: dict[int, tuple[int, int]] = {}

    def admits(self, job: JobInSystem) -> bool:
        """Return whether windows let a job start at any time; note it if they do not."""
        if not self.admits_later(job):
            self._records.in_no_window.add(job.index)
            return False
        return True

    def admits_later(self, job: JobInSystem) -> bool:
        """Note from which windows a job is barred; return whether these let it start at any time."""
        queued, demand, bit = job.queued, job.row.demand or Demand(), self.windows.bits
        asked = (demand.reservation or "").split(",")
        for reservation, window in zip(self._specified, self.windows.reservations, strict=True):
            if reservation.name in self._by_name:
                admits = reservation.name in asked
            else:
                admits = reservation.admits(demand.account, demand.user)
            if admits:
                bit &= ~window.bit
        queued.barred = bit
        return self.lets_start(job)

    def lets_start(self, job: JobInSystem) -> bool:
        """Return whether windows let a job start at any time from now on; note until when, if they do not again and again."""
        needs = job.saved_on or job.queued.nodes, self._expected(job)
        if (known := self._at_any_time.get(job.queued.id)) is not None and known[0] == needs[0] and known[1] >= needs[1]:
            return True
        last = self._last_start(job, *needs)
        if last == NEVER:
            self._at_any_time[job.queued.id] = needs
        elif last >= 0:
            heappush(self._last_starts, (last, job.queued.id))
        return last >= 0

    def left(self, job: JobInSystem) -> list[JobInSystem]:
        """Forget a job that has left the system."""
        self._at_any_time.pop(job.row.id, None)
        return []

    def before_cycle(self, submitted: list[QueuedJob], requeued: list[QueuedJob]) -> list[JobInSystem]:
        """Return the jobs in the queue that cannot start any more before windows that do not end."""
        if submitted or requeued:
            self.wait_again()
        late: dict[int, JobInSystem] = {}
        while self._last_starts and self._last_starts[0][0] < self._env.now:
            number = heappop(self._last_starts)[1]
            if number in self._pool.waiting and not self.lets_start(job := self._jobs[number]):
                late[number] = job
        return list(late.values())

    def note_eligible(self, waiting: Mapping[int, QueuedJob], now: int) -> bool:
        """Note which nodes each waiting job may have if it starts now; return whether a reservation begins or ends."""
        changed, self.changed = self.changed, False
        if not waiting:
            return changed
        ends = {job_id: now + self._expected(self._jobs[job_id]) for job_id in waiting}
        near = self.windows.near(now, max(ends.values()))
        known: dict[tuple[NodeSet | None, int], _Bars] = {}
        for job in waiting.values():
            key = job.allowed, job.barred
            if key not in known:
                barring = [(begin, window.mask) for begin, window in near if window.bit & job.barred]
                mask, sets = self._mask(job.allowed), [job.allowed]
                for _, barred in barring:
                    mask &= ~barred
                    sets.append(from_mask(mask))
                known[key] = [begin for begin, _ in barring], sets
            begins, sets = known[key]
            job.eligible = sets[bisect_left(begins, ends[job.id])]
        return changed

    def require_free(self, gang: Execution, columns: NodeSet, before: NodeSet = ()) -> None:
        """Refuse a gang on nodes that it may not have, or where it would reach into a window, unless it had them before."""
        if columns == before:
            return
        job, now = gang.job, self._env.now
        ends = max(gang.expected_end, now + 1)
        if self._rows:
            left = max(gang.length - gang.executed(), 1) + gang.overhead_to_come()
            ends = now + self._stretched(left, gang.owner.row, gang.nodes)
        barred = self.windows.barred(now, ends - now, job.barred) & as_mask(columns) & ~as_mask(before)
        if barred:
            nodes, until_s = text(from_mask(barred)), to_seconds(ends)
            raise DecisionError(
                f"job {job.id} cannot run on nodes {nodes} until {until_s:g} s: they are reserved, or known to be down, before"
            )

    def saved_in_time(self, gang: RunningJob, suspends: bool) -> bool:
        """Return whether a gang that is checkpointed, or suspended, from now on is gone before windows on its nodes begin."""
        now, barred_from = self._env.now, gang.job.barred
        assert isinstance(gang, Execution)
        how = Status.SUSPENDED if suspends else Status.CHECKPOINTED
        ticks = self._phases.takes(gang.leaving(how))
        begun = self.windows.barred(now, 0, barred_from)  # a gang that is there already leaves the sooner
        return (
            not self.windows.barred(now, self._stretched(ticks, gang.owner.row, gang.nodes), barred_from)
            & ~begun
            & as_mask(gang.columns)
        )

    def after_instant(self, *, cycled: bool) -> None:
        """Charge idle nodes, also where jobs have been submitted that are held."""
        self.note()

    def note(self) -> None:
        """Charge idle nodes that are reserved from now on, and wait for the next begin or end."""
        now = self._env.now
        self._kept_free.charge()
        if self._running or self._states.broken:
            self.wait_again()
        change = self.windows.next_change(now)
        if self._last_starts:
            change = min(change, max(self._last_starts[0][0] + 1, now))  # perhaps of a job that was held then
        if change != self._alarm.at != now:  # what rings at this instant is still to ring, if a node is switched off before
            self._alarm.set(None if change == NEVER else change)

    def wait_again(self) -> None:
        """Let each window come again before none lets a job start."""
        self._rung = 0

    def gave_up(self) -> None:
        """Let the policy be asked, as others may start now."""
        self.changed = True

    def hopeless(self, waiting: list[JobInSystem]) -> list[JobInSystem]:
        """Return the waiting jobs that no window lets start any more, or one of those that the policy starts in none."""
        never = [job for job in waiting if not self.lets_start(job)]
        if not never and self._may_miss and self._alarm.at is not None:  # of windows that recur
            never = waiting[:1]
        if never:
            self.wait_again()
        return never

    @property
    def is_over(self) -> bool:
        """Whether no window can let a job start any more that none has let start until now, on an idle machine."""
        return self._alarm.at is None or self._rung > 2 * self.windows.turns * self._offsets

    def _last_start(self, job: JobInSystem, nodes: int, ticks: int) -> int:
        queued, known = job.queued, dict[int, bool]()

        def enough(mask: int) -> bool:
            if mask not in known:
                known[mask] = self._choice.fits_alone(job, nodes, mask)
            return known[mask]

        last, now = self.windows.last_start, self._env.now
        sets = queued.sets_allowed()
        return max([last(now, ticks, enough, self._mask(each), queued.barred, self._step) for each in sets])

    def _expected(self, job: JobInSystem) -> int:
        """Return how long a waiting job can be expected to have its nodes if it starts now, ticks."""
        ticks = job.queued.estimate if job.image is None else self._times.on(job, job.image.nodes)[1]
        return self._stretched(self._phases.holding(job, ticks), job.row, job.saved_on or job.queued.nodes)

    def _stretched(self, ticks: int, job: JobRow, nodes: int) -> int:
        if not self._rows:
            return ticks
        return self._time_slicing.longest(ticks, self._rows, self._phases.switch(job, nodes))

    def _mask(self, nodes: NodeSet | None) -> int:
        return self._whole if nodes is None else as_mask(nodes)

    def _ring(self) -> None:
        self.changed = True
        self._rung += self._env.now >= self.windows.settled  # until then windows may keep a job back that are there once
        self._settled.is_armed = True
