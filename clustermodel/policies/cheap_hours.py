"""Cheap hours: EASY backfilling whose jobs may wait for a time at which energy is cheaper.

A job that EASY would start now is looked at once.  It starts now, or holds a reservation for the time, at most ``max_delay_s``
later, from which its energy is expected to cost least: so many nodes that draw the same all the time cost as much as the mean
price until its expected end.  Jobs behind it do not delay it, so the delay is bounded, unless running jobs outlive their
estimates or nodes fail; and it takes no nodes from the reservation of the first blocked job.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from clustermodel.machine.price import Price
from clustermodel.plans.profile import RunningProfile
from clustermodel.policies import predictors
from clustermodel.policies.interface import Decision, Reason, Reserve, Run, Setup, Start, WakeAt, dependencies_of
from clustermodel.policies.predictors import Correction, Lengths, Predictor, correction_of, predictor_of
from clustermodel.policies.view import Batch, QueuedJob, View
from clustermodel.ticks import NEVER, to_ticks
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
        return _Run(self, setup)


class _Run:
    """One run: the running jobs, and until when jobs wait for cheaper hours."""

    def __init__(self, policy: CheapHours, setup: Setup) -> None:
        price = setup.machine.price if policy.price is None else policy.price
        if price is not None and policy.by == "carbon":
            require(price.carbon, "cheap-hours: by", "carbon", "it must be 'price'", " where the carbon intensity is not known")
            price = replace(price, price=price.carbon, carbon=())
        self._price, self._most, self._saving = price, to_ticks(policy.max_delay_s), policy.min_saving
        self._lengths = Lengths(policy, setup, predictors.a_second_more)
        self._profile = RunningProfile(setup.nodes, may_overrun=self._lengths.may_overrun)
        self._until: dict[int, int] = {}  # by id of a job that waits for a cheaper hour: when that is, ticks
        self._told: dict[int, int] = {}  # by id of a waiting job: the start that it has been told last, ticks
        self._started: set[int] = set()  # the jobs started in this scheduling cycle, by id
        self._alarm: int | None = None

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Start what is due and what fits, unless it waits for a cheaper hour; protect the first blocked job."""
        profile, now = self._profile, view.now
        if not self._lengths.are_estimates:
            self._lengths.observe(batch, view)
        profile.catch_up(batch.ended, now, batch.failed, batch.repaired)
        if late := profile.overrunning(now, view.running):
            profile.extend(late, now, self._lengths.delays(view.running))
        for job in [*batch.requeued, *(gang.job for gang in batch.ended)]:
            self._until.pop(job.id, None)
            self._told.pop(job.id, None)
        decisions = self._schedule(view)
        waits = [start for start in self._until.values() if start > now]
        alarm = min(waits, default=None)
        if alarm != self._alarm or batch.alarm:
            self._alarm = alarm
            decisions.append(WakeAt(time=alarm))
        return decisions

    def _schedule(self, view: View) -> list[Decision]:
        profile, now, idle = self._profile, view.now, view.idle
        decisions: list[Decision] = []
        reserved: list[tuple[int, int, int]] = []  # start, end and nodes, in this scheduling cycle
        for job in self._delayed(view):  # nothing delays them but what runs
            length, due = self._lengths.of(job), self._until[job.id]
            if due <= now and job.nodes <= idle and profile.fits(job.nodes, length):
                idle -= job.nodes
                del self._until[job.id]
                decisions.append(self._start(job, length, now, _CHEAP))
            else:
                decisions += self._reserve(job, length, max(due, now), reserved)
        blocked = False
        for job in view.waiting.values():
            if job.id in self._until or job.id in self._started:
                continue
            length = self._lengths.of(job)
            if job.nodes <= idle and profile.fits(job.nodes, length):
                until = self._cheapest(job, length, now)
                if until == now:
                    idle -= job.nodes
                    decisions.append(self._start(job, length, now, _BACKFILLED if blocked else _HEAD))
                else:
                    self._until[job.id] = until
                    decisions += self._reserve(job, length, until, reserved)
            elif not blocked:
                blocked = True
                decisions += self._reserve(job, length, now, reserved)
            if blocked and not idle:
                break
        self._started.clear()
        for start, end, nodes in reserved:
            profile.release(start, end, nodes)
        return decisions

    def _delayed(self, view: View) -> list[QueuedJob]:
        """Return the jobs that wait for a cheaper hour, the first to start first."""
        jobs = [view.waiting[job_id] for job_id in self._until]
        return sorted(jobs, key=lambda job: (self._until[job.id], job.queue_order))

    def _start(self, job: QueuedJob, length: int, now: int, reason: Reason) -> Start:
        self._lengths.started(job)
        self._profile.start(job.id, job.nodes, now, now + length)
        self._started.add(job.id)
        return Start(job=job, reason=reason)

    def _reserve(self, job: QueuedJob, length: int, due: int, reserved: list[tuple[int, int, int]]) -> Iterator[Reserve]:
        """Subtract a job from the profile for the rest of the cycle, from when it is due or as soon as it fits then."""
        profile, nodes = self._profile, job.nodes
        due = profile.book(nodes, length, not_before=due)
        reserved.append((due, due + length, nodes))
        if self._told.get(job.id) != due:
            self._told[job.id] = due
            certain = job.id in self._until or self._price is None or not self._most  # else it may be delayed then
            yield Reserve(job=job, start=due, guaranteed=certain and self._lengths.are_estimates)

    def _cheapest(self, job: QueuedJob, length: int, now: int) -> int:
        """Return when a job is to start that could start now."""
        price, last = self._price, now + self._most
        if price is None or last == now:
            return now
        starts = {last}
        settled = next(time for time in reversed(self._profile.times()) if time < NEVER)  # nothing is known to change after
        if price.every and (again := settled + price.every) < last:  # a later start is as dear as one a period before
            starts, last = set(), again
        # The mean is least where the job begins or ends as the price changes, or at the end of the delay.
        for shift in (0, length):
            changes = [begin - shift for begin, _ in price.steps(now + shift, last + shift)]
            starts.update(changes[1:])
        cost = price.mean(now, now + length)
        best, most = now, cost - self._saving * abs(cost)
        for start in sorted(starts):
            if (cost := price.mean(start, start + length)) < most and self._profile.fits_at(start, job.nodes, length):
                best, most = start, cost
        return best


_HEAD: Final = Reason("head of the queue, and it fits")
_BACKFILLED: Final = Reason("backfilled: it delays no reservation")
_CHEAP: Final = Reason("it has waited for a cheaper hour")
