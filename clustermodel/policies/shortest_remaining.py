"""Shortest remaining time and shortest remaining service first: SRTF and SRSF, which need to know run times.

Y. Zhao, Y. Liu, Y. Peng, Y. Zhu, X. Liu and X. Jin, "Multi-Resource Interleaving for Deep Learning Training", SIGCOMM 2022,
section 6, compares its scheduler Muri with both; J. Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep
Learning", NSDI 2019, section 3.2, calls the second one "shortest-remaining-service-first".
"""

from __future__ import annotations

from clustermodel.policies.preemptive import Predicted
from clustermodel.policies.view import View


class Srtf(Predicted):
    """Shortest remaining time first: jobs take nodes in the order of their remaining run times.

    With perfect predictions, free preemption and jobs of one processor, no schedule of one processor has a lower mean response
    time (Schrage 1968).  Jobs with equal remaining times keep their order.
    """

    name = "srtf"
    _rule = "it fits, in the order of remaining times"

    def _sort(self, view: View) -> None:
        left = self._update(view)
        self._order.sort(key=lambda job: left[job.id])


class Srsf(Predicted):
    """Shortest remaining service first: jobs take nodes in the order of remaining run time times nodes."""

    name = "srsf"
    _rule = "it fits, in the order of remaining service"

    def _sort(self, view: View) -> None:
        left = self._update(view)
        self._order.sort(key=lambda job: left[job.id] * job.nodes)
