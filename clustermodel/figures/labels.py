"""Axis labels: names and units of the numbers of a :class:`~clustermodel.measure.metrics.Summary`."""

from __future__ import annotations

from typing import Final, NamedTuple

from clustermodel.figures.style import plain


class Quantity(NamedTuple):
    """The name and the unit of a number."""

    name: str
    unit: str = ""
    """Empty for a number without one."""

    def label(self, of: str = "") -> str:
        """Return the label of an axis.

        Args:
            of: a qualification, such as which jobs or which baseline; it stands between name and unit.
        """
        return self.name + (f", {of}" if of else "") + (f" ({self.unit})" if self.unit else "")


_JOBS: Final = "jobs"
QUANTITIES: Final = {
    "nodes": Quantity("size of the machine", "nodes"),
    "jobs": Quantity("completed jobs", _JOBS),
    "rejected": Quantity("rejected jobs", _JOBS),
    "killed": Quantity("jobs killed at the wall-time limit", _JOBS),
    "aborted": Quantity("jobs killed by the policy", _JOBS),
    "retried": Quantity("restarted jobs", _JOBS),
    "mean_wait_s": Quantity("mean wait", "s"),
    "median_wait_s": Quantity("median wait", "s"),
    "p95_wait_s": Quantity("95th percentile of waits", "s"),
    "std_wait_s": Quantity("standard deviation of waits", "s"),
    "mean_response_s": Quantity("mean response time", "s"),
    "mean_bounded_slowdown": Quantity("mean bounded slowdown"),
    "mean_bounded_slowdown_perkovic": Quantity("mean bounded slowdown, Perkovic & Keleher 2000"),
    "mean_weighted_bounded_slowdown": Quantity("mean weighted bounded slowdown"),
    "utilization": Quantity("utilization ρ"),
    "total_load": Quantity("total load"),
    "wasted_load": Quantity("wasted load"),
    "kappa": Quantity("loss of capacity κ"),
    "load": Quantity("load until the last submission"),
    "load_until_end": Quantity("load until the last completion"),
    "backfilled": Quantity("backfilled jobs", _JOBS),
    "blocked": Quantity("blocked jobs", _JOBS),
    "delayed": Quantity("jobs delayed by lower-priority jobs", _JOBS),
    "mean_delay_by_later_s": Quantity("mean delay by lower-priority jobs", "s"),
    "longest_delay_by_later_s": Quantity("longest delay by lower-priority jobs", "s"),
    "reservation_violations": Quantity("reservation violations", _JOBS),
    "benign_violations": Quantity("benign violations", _JOBS),
    "preempted": Quantity("preempted jobs", _JOBS),
    "mean_killed_times": Quantity("mean killed times MKT"),
    "runtime_waste": Quantity("run time waste RTW"),
    "horizon_s": Quantity("makespan", "s"),
    "warm_up_s": Quantity("warm-up", "s"),
}
"""By the fields of :class:`~clustermodel.measure.metrics.Summary`; quantities without a unit are ratios."""


def axis_label(column: str) -> str:
    """Return the axis label of a column: a quantity's name and unit, or the name of any other column, seconds as a unit."""
    known = QUANTITIES.get(column)
    if known:
        return known.label()
    name, seconds, _ = column.rpartition("_s")
    text = f"{name} (s)" if seconds and column.endswith("_s") else column
    return plain(text.replace("_", " ").strip() or column, longest=90)


def factor_label(name: str) -> str:
    """Return the axis label of a factor: its name; a name that ends in ``_s`` is a time in seconds."""
    stem = name.removesuffix("_s")
    return plain(stem.replace("_", " ").strip() or name, longest=90) + (" (s)" if stem not in {name, ""} else "")
