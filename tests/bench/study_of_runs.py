"""A study for benches: few or many runs, long or short ones, or runs that wait instead of working where cores are missing."""

import time
from typing import Any

from clustermodel import Result, synthetic_workload
from clustermodel.experiment.study import Study

POLICIES = ("easy", "conservative", "mbgs", "slack")


def study(jobs: int = 2_000, replications: int = 50, policies: tuple[str, ...] = POLICIES, sleep_s: float = 0.0) -> Study:
    """Return the study of policies on the same jobs, in so many replications; each run waits for ``sleep_s``."""

    def slept_s(_: Result) -> float:
        time.sleep(sleep_s)
        return sleep_s

    more: dict[str, Any] = {"measures": {"slept_s": slept_s}} if sleep_s else {}
    workloads = {"made": lambda seed: synthetic_workload(jobs=jobs, seed=seed)}
    return Study.grid(name="runs", workloads=workloads, policies=policies, replications=replications, **more)
