"""The search for the cheapest schedule of slack-based backfilling (Talby & Feitelson 1999), by the trials of a plan.

Section numbers are those of the long version.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from clustermodel.plans.slack_prices import Moves, Schedule, SlackReservation, Weights, cost, price_of_start
from clustermodel.plans.trials import Trials
from clustermodel.ticks import TICKS_PER_SECOND

MOST_PERMUTED: Final = 7  # jobs that :meth:`Search.optimal` puts back in every order: 5,040 of them


class Search:
    """One search for the cheapest schedule; it leaves the plan as it was."""

    # At each slot, it takes out the waiting jobs that are scheduled at or after it, puts the arriving job there, puts the
    # others back at their earliest times in the order of a heuristic, and prices the result (sections 4.2 to 4.6).  Without an
    # arriving job, the slots are the starts of the waiting jobs.

    def __init__(self, trials: Trials, weights: Weights) -> None:
        self._trials, self._weights = trials, weights
        arriving = trials.arriving
        self._nodes, self._favour = (0, 1.0) if arriving is None else (arriving.job.nodes, arriving.favour)
        self._last: Sequence[SlackReservation] = ()  # jobs that `optimal` puts back after all permuted ones
        self._best: Schedule | None = None  # of the present search, so far

    def cheapest(self, slots: Iterable[int] | None = None, ranked: Sequence[SlackReservation] | None = None) -> Schedule | None:
        """Return the cheapest schedule that puts jobs back in the order of ``ranked``, by default (faster) of their starts.

        Slots are all that the trials have, unless some are given.  ``None``: all schedules cost infinity.
        """
        if ranked is None:
            return self._cheapest_by_start(slots)
        trials = self._trials
        for _, slot in trials.begun(trials.staying(trials.slots(slots))):
            taken = [job for job in ranked if job.start >= slot]
            starts = trials.put_back(taken)
            if len(starts) == len(taken):
                self._offer(slot, self._own(slot), _moved(taken, starts))
        return self._found()

    def _cheapest_by_start(self, slots: Iterable[int] | None) -> Schedule | None:
        """Return the cheapest schedule that puts jobs back in the order of their starts."""
        # The jobs that stay and those that are put back are then the beginning and the end of one sequence.
        trials = self._trials
        jobs, planned, count = trials.jobs, trials.planned, len(trials.jobs)
        weights, now, nodes = [job.weight for job in jobs], trials.now, self._nodes
        is_linear, unit = self._weights.t == 1, self._favour * TICKS_PER_SECOND
        gain = sum(weights) * (planned[-1] - now) / unit if planned else 0.0  # at most
        for first, slot in trials.begun(trials.by_start(slots)):
            starts = trials.put_back_from(first)
            if len(starts) < count - first:
                continue
            own = price_of_start(nodes, (slot - now) / TICKS_PER_SECOND, self._weights) if nodes else 0.0
            best = self._best
            if best is not None and is_linear:
                costs = 0.0
                for weight_of_job, start, before in zip(weights[first:], starts, planned[first:]):  # noqa: B905
                    costs += weight_of_job * (start - before)
                if best.is_surely_cheaper(own + costs / unit, gain):
                    continue
            self._offer(slot, own, _moved(jobs[first:], starts))
        return self._found()

    def cheapest_in_place(self, ranked: Sequence[SlackReservation]) -> Schedule | None:
        """Return the cheapest schedule, without an arriving job, that moves one job up after the other from where they are.

        ``None`` if none can move.
        """
        same_until = -1
        for slot in self._trials.planned:
            if slot <= same_until:
                continue  # of the jobs that stay now as well, none found another place
            moves = self._trials.pull(ranked, slot)
            if not moves:
                break
            self._offer(slot, 0.0, moves)
            same_until = min([job.start for job, _ in moves])
        return self._found()

    def cheapest_shifted(self, slots: Iterable[int] | None, ranked: Sequence[SlackReservation]) -> Schedule | None:
        """Return the cheapest schedule that delays jobs from a slot on by the arriving job's estimate and compresses them."""
        # Compressing moves one job up after the other, in the order of `ranked`, to the earliest time at or after the slot
        # (short version, section 2.4; long version, section 4.5): before it, the paper assumes, the schedule was optimal.
        trials = self._trials
        for _, slot in trials.begun(trials.staying(trials.slots(slots))):
            moves = trials.shift(ranked, slot)
            if moves is not None:
                self._offer(slot, self._own(slot), moves)
        return self._found()

    def optimal(self, slots: Sequence[int] | None = None) -> Schedule | None:
        """Return the cheapest schedule over all orders of putting jobs back; ``None`` if all cost infinity."""
        # Orders of the first MOST_PERMUTED jobs are tried depth first.  A beginning of an order is given up when it costs at
        # least as much as the best schedule so far even if each of the jobs still out were alone in what is left.
        self._best = self.cheapest(slots)
        trials = self._trials
        for stay, slot in trials.begun(trials.staying(trials.slots(slots))):
            taken = trials.jobs[stay:]
            self._last = taken[MOST_PERMUTED:]
            self._try_orders(list(taken[:MOST_PERMUTED]), slot, self._own(slot), [])
        return self._found()

    def _try_orders(
        self, out: list[SlackReservation], slot: int, own: float, moves: list[tuple[SlackReservation, int]]
    ) -> None:
        """Put jobs back, after those that have made ``moves``, in every order that can still be the best."""
        trials, rest, alone = self._trials, [*out, *self._last], moves[:]
        for job in rest:
            start = trials.earliest(job)
            if start < 0:
                return
            if start != job.start:
                alone.append((job, start))
        if self._best is not None and not self._priced(slot, own, alone).goes_before(self._best):
            return
        if not out or len(rest) == 1:
            starts = trials.put_back(rest)
            if len(starts) == len(rest):
                self._offer(slot, own, [*moves, *_moved(rest, starts)])
            return
        before = trials.state()
        tried: set[tuple[int, int, int, int, float]] = set()
        for index, job in enumerate(out):
            if trials.alike:
                # Of jobs that are the same in all that counts, the first is put back first.
                same = (job.nodes, job.length, job.start, job.latest, job.weight)
                if same in tried or (self._weights.t == 1 and any(map(job.may_follow, out))):
                    continue
                tried.add(same)
            trials.take(before)
            start = trials.book(job)
            with_this = moves if start == job.start else [*moves, (job, start)]
            self._try_orders([*out[:index], *out[index + 1 :]], slot, own, with_this)

    def _own(self, slot: int) -> float:
        """Return what it costs that the arriving job starts at a slot."""
        if not self._nodes:
            return 0.0
        return price_of_start(self._nodes, (slot - self._trials.now) / TICKS_PER_SECOND, self._weights)

    def _priced(self, slot: int, own: float, moves: Moves) -> Schedule:
        alpha_t, favour = self._weights.t, self._favour
        costs = [cost(job.weight, (start - job.start) / TICKS_PER_SECOND, favour, alpha_t) for job, start in moves]
        return Schedule(slot, own, moves, costs)

    def _offer(self, slot: int, own: float, moves: Moves) -> None:
        """Keep the schedule of the present trial if it is cheaper than the best one so far."""
        schedule = self._priced(slot, own, moves)
        if self._best is None or schedule.goes_before(self._best):
            schedule.split, schedule.state = self._trials.split, self._trials.state()
            self._best = schedule

    def _found(self) -> Schedule | None:
        self._trials.finish()
        best, self._best = self._best, None
        return best


def _moved(taken: Sequence[SlackReservation], starts: Sequence[int]) -> list[tuple[SlackReservation, int]]:
    """Return which jobs that have been put back start at another time than before, and when."""
    return [(taken[k], start) for k, start in enumerate(starts) if start != taken[k].start]
