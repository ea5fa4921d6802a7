"""What the numbers of a :class:`~clustermodel.measure.metrics.Summary` are called on the axes of figures, with their units."""

from __future__ import annotations

from typing import Final, NamedTuple

from clustermodel.figures.style import plain


class Quantity(NamedTuple):
    """A name and a unit."""

    name: str
    unit: str = ""
    """Empty for a number without one."""

    def label(self, of: str = "") -> str:
        """Return what stands on an axis.

        Args:
            of: which jobs, or compared with what; stands between name and unit.
        """
        return self.name + (f", {of}" if of else "") + (f" ({self.unit})" if self.unit else "")


_JOBS: Final = "jobs"
QUANTITIES: Final = {
    "nodes": Quantity("size of the machine", "nodes"),
    "jobs": Quantity("jobs that ended", _JOBS),
    "rejected": Quantity("jobs rejected", _JOBS),
    "killed": Quantity("jobs killed at their estimates", _JOBS),
    "aborted": Quantity("jobs killed by the policy", _JOBS),
    "retried": Quantity("jobs that had to run again", _JOBS),
    "mean_wait_s": Quantity("mean wait", "s"),
    "median_wait_s": Quantity("median wait", "s"),
    "p95_wait_s": Quantity("95th percentile of waits", "s"),
    "std_wait_s": Quantity("standard deviation of waits", "s"),
    "mean_response_s": Quantity("mean response time", "s"),
    "mean_bounded_slowdown": Quantity("mean bounded slowdown"),
    "mean_bounded_slowdown_perkovic": Quantity("mean bounded slowdown of 003"),
    "mean_weighted_bounded_slowdown": Quantity("mean weighted bounded slowdown"),
    "utilization": Quantity("utilization ρ"),
    "total_load": Quantity("total load"),
    "wasted_load": Quantity("wasted load"),
    "kappa": Quantity("loss of capacity κ"),
    "load": Quantity("load until the last submission"),
    "load_until_end": Quantity("load until the last end"),
    "backfilled": Quantity("jobs backfilled", _JOBS),
    "blocked": Quantity("jobs blocked", _JOBS),
    "delayed": Quantity("jobs delayed by later ones", _JOBS),
    "mean_delay_by_later_s": Quantity("mean delay by later jobs", "s"),
    "longest_delay_by_later_s": Quantity("longest delay by later jobs", "s"),
    "reservation_violations": Quantity("reservation violations", _JOBS),
    "benign_violations": Quantity("benign violations", _JOBS),
    "preempted": Quantity("jobs preempted", _JOBS),
    "mean_killed_times": Quantity("mean killed times MKT"),
    "runtime_waste": Quantity("run time waste RTW"),
    "horizon_s": Quantity("first submission to last end", "s"),
    "warm_up_s": Quantity("warm-up", "s"),
}
"""By the fields of :class:`~clustermodel.measure.metrics.Summary`; quantities without a unit are ratios."""


def axis_label(column: str) -> str:
    """Return what stands on the axis of a column: a quantity's name and unit, or, of another column, its own name."""
    known = QUANTITIES.get(column)
    return known.label() if known else plain(column.replace("_", " ").strip() or column, longest=90)
