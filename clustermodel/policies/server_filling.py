"""ServerFilling: the oldest jobs that can fill the machine run, the largest first.

I. Grosof, M. Harchol-Balter and A. Scheller-Wolf, "WCFS: A New Framework for Analyzing Multiserver Systems", Queueing Systems
102, 2022: where sizes are powers of two and divide the machine, no node is idle as long as the jobs in the
system need that many, and the mean response time is within a constant of that of one fast server.

* The *candidates* are the shortest prefix of the jobs in the system, running or waiting, in queue order, that need at least
  all nodes together; all jobs if these need fewer.
* Candidates run in order of decreasing size, equal sizes in queue order, each if it still fits.  All other jobs are preempted.

In the paper preemption is free and nodes are interchangeable: a preempted job resumes on any nodes.  So jobs are preempted by
checkpoint, which costs nothing by default (``Machine.checkpointing``) and lets a job restart anywhere; a suspended job resumes
without a checkpoint only on its own nodes.  Where a checkpoint takes time, the gang holds its nodes until it is written.

With other sizes, candidates that do not fit beside larger ones wait although nodes are idle, and a small candidate can wait as
long as larger jobs keep arriving.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge
from operator import attrgetter
from typing import ClassVar, Final, Self

from clustermodel.policies.interface import Checkpoint, Decision, Reason, Setup, Start
from clustermodel.policies.preemption_modes import require_store
from clustermodel.policies.view import Batch, QueuedJob, View

_IN_QUEUE_ORDER = attrgetter("queue_order")
_REASON: Final = Reason("one of the oldest jobs that can fill the machine, the largest first")


@dataclass(frozen=True, kw_only=True)
class ServerFilling:
    """ServerFilling: the oldest jobs that can fill the machine run, the largest first, by free preemption (Grosof et al. 2022).

    Raises:
        SpecificationError: (``start``) the machine takes no checkpoints.
    """

    name: ClassVar[str] = "server-filling"
    depends_on: ClassVar[frozenset[str]] = frozenset({"checkpointing"})

    def start(self, setup: Setup) -> Self:
        """Return the policy itself: it remembers nothing."""
        require_store(self.name, "checkpoint", setup.machine)
        return self

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Preempt running jobs that are not among those to run; start those that fit into the idle nodes."""
        to_run = self._to_run(view)
        chosen = {job.id for job in to_run}
        decisions: list[Decision] = [
            Checkpoint(job=gang.job) for gang in view.running.values() if gang.job.id not in chosen and not gang.stopping
        ]
        idle = view.idle
        for job in to_run:
            if job.id in view.waiting and job.nodes <= idle:  # otherwise gangs still hold its nodes
                idle -= job.nodes
                decisions.append(Start(job=job, reason=_REASON))
        return decisions

    def _to_run(self, view: View) -> list[QueuedJob]:
        """Return the jobs that run if all preempted gangs have left, the largest first."""
        left = view.up
        to_run = []
        for job in sorted(self._candidates(view), key=lambda job: (-job.nodes, job.queue_order)):
            if job.nodes <= left:
                left -= job.nodes
                to_run.append(job)
        return to_run

    def _candidates(self, view: View) -> Iterator[QueuedJob]:
        running = sorted((gang.job for gang in view.running.values()), key=_IN_QUEUE_ORDER)
        needed = 0
        for job in merge(running, view.waiting.values(), key=_IN_QUEUE_ORDER):
            yield job
            needed += job.nodes
            if needed >= view.up:
                return
