"""A plan for the whole machine: the running jobs' profile with reservations for waiting jobs in it.

EASY keeps reservations for the first few jobs of the queue, conservative backfilling for all.  Both improve their reservations
with :meth:`Plan.compress`, which moves none to a later start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush

from clustermodel.schedule.reservations import Reservable, Reservation, ReservationBook, Shapes, earliest_completion
from clustermodel.schedule.running_profile import RunningProfile


class Plan(ReservationBook):
    """Reservations among the running jobs of a machine; times in ticks.

    Args:
        profile: the running jobs.
    """

    __slots__ = ("_alarm", "_starts", "profile")

    def __init__(self, profile: RunningProfile) -> None:
        super().__init__([profile])
        self.profile = profile
        self._alarm: int | None = None
        self._starts: list[tuple[int, int]] = []  # heap of (reserved start, job id); an entry that moved since is stale

    def earliest(self, shapes: Shapes) -> Reservation:
        """Return where a job of one of these shapes completes first; of equally good places that of the first shape."""
        return earliest_completion(shapes, self.profiles)

    def start_reserved(self, job: Reservable) -> Reservation:
        """Start ``job`` in its reservation, which has begun, and return the reservation."""
        held = self.reserved.pop(job.id)
        self.profile.note_start(job.id, held.nodes, held.end)
        return held

    def compress(self, jobs: Iterable[Reservable], now: int) -> None:
        """Move each reservation, in the order of ``jobs``, to the earliest start possible with the others in place.

        The result is that of taking each job out and placing it again (Talby & Feitelson 1999, long version, section 3.2).
        But a job is tested where it stands (:meth:`~clustermodel.schedule.profile.Profile.earlier`) and moved only if it can
        be; an equally large job that has just failed bounds the search.  Jobs without a reservation are passed over.
        """
        reserved, profile = self.reserved, self.profile
        failed: dict[tuple[int, ...], int] = {}  # no job of this length and so many nodes can start before this time
        for job in jobs:
            if (held := reserved.get(job.id)) is None:
                continue
            old, length, nodes, _ = held
            shape: tuple[int, ...] = held[1:3]  # with so many numbers declared, compiled modules would make it twice
            not_before = now
            if (bound := failed.get(shape)) is not None and profile.free_just_before(old) < nodes:
                # An equal job cannot start before ``bound``, and there is no gap here that this job's own nodes could extend.
                if bound >= old:
                    continue
                not_before = bound
            new = profile.earlier(nodes, length, old, not_before)
            if new == old:
                failed[shape] = old
            else:
                self.move(job, Reservation(new, length, nodes))
                failed.clear()

    def reshape(self, jobs: Iterable[Reservable], shapes: Mapping[int, Shapes]) -> None:
        """Compress moldable jobs: take out each job and enter it again where it completes first.

        The new reservation starts no later than the old one, which is a guaranteed start.

        Args:
            jobs: in the order in which they choose.
            shapes: job id -> its shapes.
        """
        profile = self.profile
        for job in jobs:
            best = held = self.reserved[job.id]
            profile.release(held.start, held.end, held.nodes)
            for nodes, length in shapes[job.id]:
                start = profile.earliest(nodes, length, min(held.start, best.end - length))
                if start >= 0 and (start + length, start) < (best.end, best.start):
                    best = Reservation(start, length, nodes)
            self.keep(job, best)

    def next_start(self) -> int | None:
        """Return the earliest reserved start, ``None`` without reservations."""
        starts, reserved = self._starts, self.reserved
        while starts:
            start, job_id = starts[0]
            if (held := reserved.get(job_id)) is not None and held.start == start:
                return start
            heappop(starts)
        return None

    def new_alarm(self) -> int | None:
        """Return the earliest reserved start if it is not the one returned last, for the policy's alarm."""
        start = self.next_start()
        if start is None or start == self._alarm:
            return None
        self._alarm = start
        return start

    def due(self, now: int) -> list[int]:
        """Return the jobs whose reserved start has come, the earliest start first, then the lowest id.

        Each is returned once: the caller starts it, or moves or cancels its reservation.
        """
        due: list[int] = []
        while (start := self.next_start()) is not None and start <= now:
            job_id = heappop(self._starts)[1]
            if not due or due[-1] != job_id:  # entered twice if it was dropped and entered at the same start again
                due.append(job_id)
        return due

    def _enter(self, job_id: int, reservation: Reservation) -> None:
        self.reserved[job_id] = reservation
        heappush(self._starts, (reservation.start, job_id))
