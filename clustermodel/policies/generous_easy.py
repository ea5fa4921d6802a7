"""A generous reading of EASY backfilling: extra nodes are not used up, so that each backfilled job may take all of them.

With :class:`~clustermodel.policies.easy.Easy`, the nodes left over at the shadow time shrink as backfilled jobs take them.
Here they do not, so several backfilled jobs together can delay the first job in the queue.  Yuan et al. 2010, table 4, has more
backfilled jobs under EASY than Easy backfills; this reading was tried for that reason.
"""

from __future__ import annotations

from math import isinf

from clustermodel.policies.copies import CopiedWithoutRun
from clustermodel.policies.interface import Decision, Setup, Start
from clustermodel.policies.view import Batch, View
from clustermodel.schedule.profile import Profile
from clustermodel.ticks import to_ticks
from clustermodel.validation import require_number

_FOR_EVER = 2**60
"""Ticks."""


class GenerousEasy(CopiedWithoutRun):
    """EASY whose extra nodes are not used up.

    Args:
        late_s: how much longer a job that has outlived its estimate is expected to run, seconds; ``inf`` for ever, so that its
            nodes never count as free.

    Raises:
        SpecificationError: ``late_s`` is not a number > 0.
    """

    name = "generous-easy"

    def __init__(self, late_s: float = 1.0) -> None:
        self.late_s = require_number("GenerousEasy.late_s", late_s, "a number > 0, in seconds", lambda x: x > 0)

    def begin(self, setup: Setup) -> None:
        """Note the size of the machine."""
        self._nodes = setup.nodes
        self._late = _FOR_EVER if isinf(self.late_s) else to_ticks(self.late_s)

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Start what fits; backfill as shadow time and extra nodes allow."""
        now, idle = view.now, view.idle
        running = [(gang.expected_end, gang.nodes) for gang in view.running.values()]
        load = [(end if end > now else now + self._late, nodes) for end, nodes in running]
        starts: list[Decision] = []
        waiting = iter(view.waiting.values())
        for head in waiting:
            if head.nodes > idle:
                break
            starts.append(Start(job=head))
            load.append((now + head.estimate, head.nodes))
            idle -= head.nodes
        else:
            return starts
        profile = Profile.of_running(self._nodes, now, load)
        shadow = profile.earliest(head.nodes, 1)
        extra = profile.free_at(shadow) - head.nodes
        for job in waiting if idle else ():
            if job.nodes <= idle and (now + job.estimate <= shadow or job.nodes <= extra):
                starts.append(Start(job=job))
                idle -= job.nodes
        return starts
