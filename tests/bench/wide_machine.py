"""A month of a machine of 158,976 nodes under EASY: ``python -m tests.bench.wide_machine JOBS`` prints JSON.

The time is compared with the bare-SimPy floor on the same jobs, in the same process and in turn.
"""

import json
import sys
from time import process_time

import numpy as np

from clustermodel import Machine, Scenario, Workload
from clustermodel.workload.job import JobRow
from tests.bench.floor import bare_simpy

NODES = 158_976
MONTH_S = 30 * 86_400
JOBS = 1_300_000
LOAD = 0.8


def wide_workload(jobs: int) -> Workload:
    """Return a month's jobs: Poisson arrivals, sizes of 1 to 2**16 nodes, most of them small, lognormal run times.

    Args:
        jobs: in a month; with fewer, the month is shorter.
    """
    rng = np.random.default_rng(1)
    span = MONTH_S * jobs / JOBS
    submit = np.sort(rng.uniform(0, span, jobs))
    size = np.floor(2 ** (16 * rng.beta(0.6, 2.5, jobs))).astype(np.int64)
    run = np.minimum(rng.lognormal(0, 1.5, jobs), 20)
    run = np.maximum(1.0, run * LOAD * NODES * span / float((run * size).sum()))
    estimate = run * rng.uniform(1, 5, jobs)
    ticks = [(1e6 * seconds).astype(np.int64).tolist() for seconds in (submit, run, estimate)]
    rows = [
        JobRow(begin, number, nodes, ran, asked, -1, -1, 0, 1)
        for number, (begin, nodes, ran, asked) in enumerate(zip(ticks[0], size.tolist(), *ticks[1:], strict=True), 1)
    ]
    return Workload(rows, name="a month of a wide machine")


def main(jobs: int) -> None:
    workload = wide_workload(jobs)
    floor_jobs = [(row.submit, min(row.run, row.estimate)) for row in workload.rows()]
    scenario = Scenario(machine=Machine(nodes=NODES), workload=workload, policy="easy")
    began = process_time()
    bare_simpy(floor_jobs)
    middle = process_time()
    result = scenario.run()
    ended = process_time()
    found = {"jobs": len(result.records), "run_s": ended - middle, "ratio_to_floor": (ended - middle) / (middle - began)}
    print(json.dumps(found))


if __name__ == "__main__":
    main(int((sys.argv[1:] or [str(JOBS)])[0]))
