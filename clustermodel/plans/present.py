"""The plan of a policy of your own: what is free from now on, on any machine, laid out anew in each scheduling cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clustermodel.plans.make import nodes_of, plan_of, pools_of

if TYPE_CHECKING:
    from clustermodel.plans.pool_plans import Chooser, RunningPlan
    from clustermodel.plans.pools import Split
    from clustermodel.policies.interface import Setup
    from clustermodel.policies.view import QueuedJob, View


class PresentPlan:
    """What is free from now on: without running jobs until their expected ends, and what the policy has reserved since.

    Jobs are planned for as long as they are expected to hold their nodes by their estimates.  Partitions, reservations of the
    machine, node types, shapes and the memory of nodes are in the plan: a place, which is opaque, is one that a job may have.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup, self._pools, self._nodes = setup, pools_of(setup), nodes_of(setup)
        self._plan: RunningPlan
        self._idle: Chooser
        self._now = 0

    def begin(self, view: View) -> None:
        """Begin a scheduling cycle: nothing is reserved."""
        self._now = now = view.now
        self._plan = plan = plan_of(self._pools, self._nodes, may_overrun=False)
        self._idle = plan.chooser(view)
        plan.advance(now)
        held = [(gang.expected_end, plan.split_of(gang.columns, gang.job.memory)) for gang in view.running.values()]
        held += [(each.expected_end, plan.split_of((each.node, each.node + 1))) for each in view.down.values()]
        for end, split in held:  # what is late is expected to end at any moment
            plan.reserve(now, max(end - now, 1), split, beyond_capacity=True)

    def earliest(self, job: QueuedJob) -> tuple[int, Split]:
        """Return when a waiting job can start first, ticks, and where; -1 if reservations of the machine let it start never."""
        return self._plan.earliest(self._length(job), job, self._plan.group_of(job))

    def hold(self, job: QueuedJob, start: int, place: Split) -> None:
        """Keep a place for a job from a time on, for the rest of the cycle, whether or not it starts."""
        if start >= 0:
            self._plan.reserve(start, self._length(job), place)

    def nodes(self, place: Split) -> tuple[int, ...] | None:
        """Return the ``columns`` of a job that starts now; ``None``: the machine chooses them."""
        return self._idle.take_split(place)

    def _length(self, job: QueuedJob) -> int:
        return self._setup.holding(job, job.estimate)
