"""Periods of some weeks of a log, one after the other, in which jobs are malleable."""

from functools import lru_cache
from math import log10
from pathlib import Path

from clustermodel import DowneySpeedup, JobFilter, Result, Workload, read_swf

TRACE = Path("../shared/traces/KTH-SP2-1996-2.2.swf.gz")
NODES = 100
WEEK_S = 7 * 86_400
SPEEDUP = DowneySpeedup(sigma=1)
"""The average parallelism of a job is the number of nodes that it asks for: on more nodes it gains less and less."""
FROM, TO = "0.25x", "4x"
"""The sizes of a malleable job, in multiples of the nodes that it asks for."""
POLICIES = ("equipartition", "shrink-to-admit", "expand")


@lru_cache(maxsize=4)
def malleable_weeks(trace: Path, weeks: int, period: int, share: float = 1) -> Workload:
    """Return a period of a log, the first one, the second, ..., of which a share of the jobs is malleable."""
    first_s = (period - 1) * weeks * WEEK_S
    jobs = read_swf(trace).select(JobFilter(window_s=(first_s, first_s + weeks * WEEK_S)))
    return jobs.with_malleable(share=share, min_nodes=FROM, max_nodes=TO)


def log10_response(result: Result) -> float:
    """Return the logarithm of the mean response time, s: busy periods and quiet ones are compared by ratios."""
    return log10(result.summary().mean_response_s)
