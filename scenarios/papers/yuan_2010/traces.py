"""How large and how heavily loaded are the machines in the traces of Yuan et al. 2010?

Yuan et al. 2010, table 3 (section 5.1): nodes, jobs, load, mean parallelism and mean run time.  KTH-SP2 replaces SDSC-DS.  The
load is the work of all jobs per capacity between the first and the last submission, with run times as recorded; jobs without a
run time are left out.  The scheduling policy does not matter.

Small and full (15 s on two cores): the logs are fixed, so there are no intervals.

    clustermodel sweep scenarios/papers/yuan_2010/traces.py --out full --set traces=../shared/traces
"""

import numpy as np

from clustermodel import Machine, Scenario, Study
from clustermodel.report.measure_table import Columns, Scaled, measure_table, published_table
from clustermodel.workload.synthetic import study_jobs

TRACES = {
    "CTC-SP2": ("CTC-SP2-1996-3.1-cln.swf.gz", 430),
    "SDSC-BLUE": ("SDSC-BLUE-2000-4.2-cln.swf.gz", 1152),
    "KTH-SP2": ("KTH-SP2-1996-2.2.swf.gz", 100),
}
"""Files and machine sizes; of CTC-SP2 its batch partition."""
PAPER = published_table(__file__, "table 3")
COLUMNS: Columns = {
    "nodes": "machine_nodes", "days": "days", "jobs": "jobs", "load (%)": Scaled("load", 100),
    "mean nodes of a job": "mean_nodes", "mean run time (s)": "mean_run_s",
}  # fmt: skip


def study(traces: str = "../shared/traces", jobs: int = 0) -> Study:
    """Return the study; ``jobs`` is 0 for all jobs."""

    def scenario(trace: str, seed: int) -> Scenario:
        file, nodes = TRACES[trace]
        machine, workload = Machine(nodes=nodes, kill_at_estimate=False), study_jobs(f"{traces}/{file}", jobs=jobs)
        return Scenario(machine=machine, workload=workload, policy="fcfs", seed=seed)

    return Study(
        name="traces",
        factors={"trace": list(TRACES)},
        scenario=scenario,
        measures={
            "machine_nodes": lambda result: result.machine.nodes,
            "days": lambda result: float(np.ptp(result.jobs["submit_s"][result.records.finished])) / 86_400,
            "mean_nodes": lambda result: float(result.records.column("nodes")[result.records.finished].mean()),
            "mean_run_s": lambda result: float(result.records.seconds("run")[result.records.finished].mean()),
        },
        shown=("jobs", "load"),
        tables={"Table 3, the traces": lambda table: measure_table(table, COLUMNS, by=["trace"], published=PAPER)},
    )
