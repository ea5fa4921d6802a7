"""Run one large synthetic workload in a process of its own: ``python -m tests.bench.scale JOBS`` prints JSON.

A fresh process is the only one whose peak memory means something.
"""

from __future__ import annotations

import json
import resource
import sys
from time import process_time

from clustermodel import Scenario, synthetic_workload


def main(jobs: int) -> None:
    workload = synthetic_workload(jobs=jobs)
    began = process_time()
    result = Scenario(workload=workload, policy="easy").run()
    seconds = process_time() - began
    assert len(result.records) == jobs
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"jobs": jobs, "us_per_job": seconds / jobs * 1e6, "peak_kb": peak_kb}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
