"""Which jobs of a workload are used, and how they are rescaled, as the options say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clustermodel.workload.transforms import JobFilter, LoadScale


def filter_of(options: Mapping[str, Any]) -> JobFilter | None:
    """Return the requested filter, ``None`` for all jobs."""
    keep = JobFilter(
        window_s=options["window"],
        nodes=options["size"],
        statuses=frozenset(options["status"]) or None,
        users=frozenset(options["user"]) or None,
    )
    return None if keep == JobFilter() else keep


def scale_of(options: Mapping[str, Any], *, run_time: float | None = None) -> LoadScale | None:
    """Return the requested factors, ``None`` if all are one.

    Args:
        options: with their defaults.
        run_time: the factor of the run times, in place of that of the options.
    """
    scale = LoadScale(
        interarrival=options["scale_interarrival"],
        run_time=options["scale_run_time"] if run_time is None else run_time,
        size=options["scale_size"],
    )
    return None if scale == LoadScale() else scale
