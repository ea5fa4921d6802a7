"""What are the traces like on which the studies of Yuan et al. 2010 run?

Yuan et al. 2010, table 3 (section 5.1): nodes, jobs, load, mean parallelism and mean run time.  KTH-SP2 replaces SDSC-DS.  The
load is the work of all jobs per capacity between the first and the last submission, with run times as recorded; jobs without a
run time are left out.  The scheduling policy does not matter.

    clustermodel sweep scenarios/papers/yuan_2010/traces.py --out results --set traces=../shared/traces
"""

import numpy as np

from clustermodel import Machine, Scenario, Study
from clustermodel.experiment.job_facts import job_fact
from clustermodel.experiment.measure_table import Columns, Scaled, measure_table, published_table
from clustermodel.workload.archive import ARCHIVE, archive_jobs

TRACES = ("CTC-SP2", "SDSC-BLUE", "KTH-SP2")
PAPER = published_table(__file__, "table 3")
COLUMNS: Columns = {
    "nodes": "machine_nodes", "days": "days", "jobs": "jobs", "load (%)": Scaled("load", 100),
    "mean nodes of a job": "mean_nodes", "mean run time (s)": "mean_run_s",
}  # fmt: skip


def study(traces: str = "../shared/traces", jobs: int = 0) -> Study:
    """Return the study; ``jobs`` is 0 for all jobs."""

    def scenario(trace: str, seed: int) -> Scenario:
        machine = Machine(nodes=ARCHIVE[trace].nodes, kill_at_estimate=False)
        return Scenario(machine=machine, workload=archive_jobs(traces, trace, jobs=jobs or None), policy="fcfs", seed=seed)

    return Study(
        name="traces",
        factors={"trace": TRACES},
        scenario=scenario,
        measures={
            "machine_nodes": lambda result: result.machine.nodes,
            "days": lambda result: float(np.ptp(result.jobs["submit_s"][result.records.finished])) / 86_400,
            "mean_nodes": job_fact("nodes"),
            "mean_run_s": job_fact("run_s"),
        },
        shown=("jobs", "load"),
        tables={"Table 3, the traces": lambda table: measure_table(table, COLUMNS, by=["trace"], published=PAPER)},
    )
