"""Run many jobs in a process of its own: ``python -m tests.bench.scale JOBS [stream]`` prints JSON.

A fresh process is the only one whose peak memory means something.  The jobs are drawn in small numbers, so that the peak is
that of the simulator, not of the workload.
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time

import numpy as np

from clustermodel import Machine, Provenance, Scenario
from clustermodel.workload.job import JobRow

NODES = 128
LOAD = 0.75
DRAWN_AT_ONCE = 10_000


@dataclass(frozen=True)
class ManyJobs:
    """A job stream in constant memory: Poisson arrivals, sizes 1 to 64, exponential run times, estimates up to five times."""

    jobs: int
    name: str = "many jobs"
    machine_nodes: int = NODES
    scale: int = 1
    """Multiplies the sizes; on a machine that is multiplied as well, the schedule stays the same."""
    is_uneven: bool = False
    """Each size is reduced by less than the scale, at random: few jobs have equal sizes."""
    provenance: Provenance = field(default_factory=lambda: Provenance(source="drawn"))

    def rows(self) -> Iterator[JobRow]:
        rng, reduction = np.random.default_rng(1), np.random.default_rng(2)
        last, mean_run_s = 0.0, 3600.0
        mean_size = self.scale * 127 / 7
        for first in range(0, self.jobs, DRAWN_AT_ONCE):
            number = min(DRAWN_AT_ONCE, self.jobs - first)
            times = last + np.cumsum(rng.exponential(mean_size * mean_run_s / (self.machine_nodes * LOAD), number))
            last = float(times[-1])
            size = self.scale * 2 ** rng.integers(0, 7, number)
            run = np.maximum(1.0, rng.exponential(mean_run_s, number))
            estimate = run * rng.uniform(1, 5, number)
            if self.is_uneven:
                size -= reduction.integers(0, self.scale, number)
            columns = [(1e6 * values).astype(np.int64).tolist() for values in (times, run, estimate)]
            for job, (submit, nodes, ran, asked) in enumerate(
                zip(columns[0], size.tolist(), *columns[1:], strict=True), first + 1
            ):
                yield JobRow(submit, job, nodes, ran, asked, -1, -1, 0, 1)


def peak_kb() -> int:
    """Return the peak memory of this process: not ru_maxrss, which begins with that of the process that started this one."""
    return int(re.findall(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[0])


def main(jobs: int, how: str) -> None:
    scenario = Scenario(workload=ManyJobs(jobs), machine=Machine(nodes=NODES), policy="easy", stream=how == "stream")
    began = process_time()
    result = scenario.run()
    seconds = process_time() - began
    assert result.submitted == jobs
    summary = result.summary().as_dict() if how == "stream" else {}
    found = {
        "jobs": jobs,
        "us_per_job": seconds / jobs * 1e6,
        "peak_kb": peak_kb(),
        "mean_wait_s": summary.get("mean_wait_s"),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), (sys.argv[2:] or ["keep"])[0])
