"""Cheap hours: EASY backfilling whose jobs may wait for a time at which energy is cheaper.

A job that EASY would start now is looked at once.  It starts now, or holds a reservation for the time, at most ``max_delay_s``
later, from which its energy is expected to cost least: so many nodes that draw the same all the time cost as much as the mean
price until its expected end.  Jobs behind it do not delay it, so the delay is bounded, unless running jobs outlive their
estimates or nodes fail; and it takes no nodes from the reservation of the first blocked job.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final

from clustermodel.machine.price import Price
from clustermodel.plans.pool_plans import Group
from clustermodel.policies import predictors
from clustermodel.policies.backfilling.cycle import BackfillingRun, SchedulingCycle
from clustermodel.policies.interface import Reason, Reserve, Run, Setup, WakeAt, dependencies_of
from clustermodel.policies.predictors import Correction, Lengths, Predictor, correction_of, predictor_of
from clustermodel.policies.view import QueuedJob
from clustermodel.ticks import to_ticks
from clustermodel.validation import choice, require, require_seconds, share

BY: Final = ("price", "carbon")


@dataclass(frozen=True, kw_only=True)
class CheapHours:
    """EASY backfilling that delays jobs to cheaper hours.

    Args:
        max_delay_s: the longest delay of a job beyond the time at which it could have started, seconds; 0 is EASY.
        min_saving: the smallest share of a job's expected cost for which it is delayed, 0 to 1.
        by: the cost to reduce: ``"price"``, or ``"carbon"`` (carbon intensity).
        price: of energy over time, a :class:`~clustermodel.machine.price.Price`; ``None`` is that of the machine.
        predictor: of run times, as of EASY.
        correction: of a prediction that has expired, as of EASY.

    Without a price series the policy equals EASY.
    """

    name: ClassVar[str] = "cheap-hours"
    max_delay_s: float = 6 * 3600.0
    min_saving: float = 0.0
    by: str = "price"
    price: Price | None = None
    predictor: str | Predictor = "estimate"
    correction: str | Correction | None = None

    def __post_init__(self) -> None:
        require_seconds("cheap-hours: max_delay_s", self.max_delay_s)
        share("cheap-hours: min_saving", self.min_saving)
        choice("cheap-hours: by", self.by, BY)
        require(isinstance(self.price, Price | None), "cheap-hours: price", self.price, "it must be a Price(...) or None")
        predictor_of(self.name, self.predictor)
        correction_of(self.name, self.correction)

    @property
    def depends_on(self) -> frozenset[str]:
        return dependencies_of(predictor_of(self.name, self.predictor))

    def start(self, setup: Setup) -> Run:
        lengths = Lengths(self, setup, predictors.a_second_more)
        return BackfillingRun(setup, lengths, _CheapHoursRun(self, setup, lengths))


class _CheapHoursRun:
    """One run: until when jobs wait for cheaper hours."""

    def __init__(self, policy: CheapHours, setup: Setup, lengths: Lengths) -> None:
        price = setup.machine.price if policy.price is None else policy.price
        if price is not None and policy.by == "carbon":
            require(price.carbon, "cheap-hours: by", "carbon", "it must be 'price'", " where the carbon intensity is not known")
            price = replace(price, price=price.carbon, carbon=())
        self._price, self._most, self._saving = price, to_ticks(policy.max_delay_s), policy.min_saving
        self._lengths = lengths
        self._until: dict[int, int] = {}  # by id of a job that waits for a cheaper hour: when that is, ticks
        self._told: dict[int, int] = {}  # by id of a waiting job: the start that it has been told last, ticks
        self._alarm: int | None = None

    def schedule(self, current: SchedulingCycle) -> None:
        """Start what is due and what fits, unless it waits for a cheaper hour; protect the first blocked jobs."""
        batch, now, waiting = current.batch, current.now, current.view.waiting
        for job in [*batch.requeued, *(gang.job for gang in batch.ended)]:
            self._until.pop(job.id, None)
            self._told.pop(job.id, None)
        if batch.reservations:  # jobs may have been rejected
            self._until = {job_id: until for job_id, until in self._until.items() if job_id in waiting}
        current.begin_trial()
        self._start_delayed(current)
        self._start_others(current)
        alarm = min([start for start in self._until.values() if start > now], default=None)
        if alarm != self._alarm or batch.alarm:
            self._alarm = alarm
            current.announce(WakeAt(time=alarm))

    def _start_delayed(self, current: SchedulingCycle) -> None:
        """Start the jobs whose cheaper hour has come; reserve for the others."""
        now, waiting = current.now, current.view.waiting
        delayed = [waiting[job_id] for job_id in self._until]
        for job in sorted(delayed, key=lambda job: (self._until[job.id], job.queue_order)):  # delayed only by what runs
            due = self._until[job.id]
            if due <= now and (fit := current.fitting(job)) is not None:
                del self._until[job.id]
                current.start(job, fit, reason=_CHEAP)
            else:
                self._reserve(current, job, max(due, now))

    def _start_others(self, current: SchedulingCycle) -> None:
        """Start the jobs that EASY would start, or let them wait; protect the first blocked ones."""
        now, blocked = current.now, set[Group]()
        for job in current.view.waiting.values():
            if job.id in self._until or job.id in current.dispatched:
                continue
            group = current.group(job)
            if (fit := current.fitting(job)) is not None:
                until = self._cheapest(current, job, fit.length)
                if until == now:
                    current.start(job, fit, reason=_BACKFILLED if group in blocked else _HEAD)
                else:
                    self._until[job.id] = until
                    self._reserve(current, job, until)
            elif group not in blocked:
                blocked.add(group)
                self._reserve(current, job, now)
            if not current.idle and len(blocked) == len(current.plan.groups):
                break

    def _reserve(self, current: SchedulingCycle, job: QueuedJob, due: int) -> None:
        """Subtract a job from the plan for the rest of the cycle, from when it is due or as soon as it fits then."""
        plan, length = current.plan, self._lengths.of(job)
        due, split = plan.around_windows(length, job, current.group(job), not_before=due)
        if due < 0:
            return  # windows let it start at no time
        plan.reserve(due, length, split)
        if self._told.get(job.id) != due:
            self._told[job.id] = due
            certain = job.id in self._until or self._price is None or not self._most  # else it may be delayed then
            current.announce(Reserve(job=job, start=due, guaranteed=certain and self._lengths.are_estimates))

    def _cheapest(self, current: SchedulingCycle, job: QueuedJob, length: int) -> int:
        """Return when a job is to start that could start now."""
        price, plan, now, last = self._price, current.plan, current.now, current.now + self._most
        if price is None or last == now:
            return now
        starts, settled = {last}, plan.settled()  # nothing is known to change after
        if price.every and (again := settled + price.every) < last:  # a later start is as dear as one a period before
            starts, last = set(), again
        # The mean is least where the job begins or ends as the price changes, or at the end of the delay.
        for shift in (0, length):
            changes = [begin - shift for begin, _ in price.steps(now + shift, last + shift)]
            starts.update(changes[1:])
        cost = price.mean(now, now + length)
        best, most = now, cost - self._saving * abs(cost)
        for start in sorted(starts):
            cost = price.mean(start, start + length)
            if cost < most and plan.split(start, length, job, current.group(job)) is not None:
                best, most = start, cost
        return best


_HEAD: Final = Reason("head of the queue, and it fits")
_BACKFILLED: Final = Reason("backfilled: it delays no reservation")
_CHEAP: Final = Reason("it has waited for a cheaper hour")
