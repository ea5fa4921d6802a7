"""What are the traces like on which the studies of Yuan et al. 2010 run?

Yuan et al. 2010, table 3 (section 5.1): nodes, jobs, load, mean parallelism and mean run time.  KTH-SP2 replaces SDSC-DS.  The
load is the work of all jobs per capacity between the first and the last submission, with run times as recorded; jobs without a
run time are left out.  The scheduling policy does not matter.

    clustermodel sweep scenarios/papers/yuan_2010/traces.py --out results --set traces=../shared/traces
"""

from pathlib import Path

import numpy as np
import pandas as pd

from clustermodel import Machine, Result, Scenario, Study
from clustermodel.experiment.measure_table import Columns, Scaled, measure_table, published_table
from clustermodel.workload.study_jobs import study_jobs

TRACES = {
    "CTC-SP2": ("CTC-SP2-1996-3.1-cln.swf.gz", 430),
    "SDSC-BLUE": ("SDSC-BLUE-2000-4.2-cln.swf.gz", 1152),
    "KTH-SP2": ("KTH-SP2-1996-2.2.swf.gz", 100),
}
"""Files, and sizes of the machines."""
PAPER = published_table(__file__, "table 3")
COLUMNS: Columns = {
    "nodes": "machine_nodes", "days": "days", "jobs": "jobs", "load (%)": Scaled("load", 100),
    "mean nodes of a job": "mean_nodes", "mean run time (s)": "mean_run_s",
}  # fmt: skip


def study(traces: str = "../shared/traces", jobs: int = 0) -> Study:
    """Return the study; ``jobs`` is 0 for all jobs."""

    def scenario(trace: str, seed: int) -> Scenario:
        name, nodes = TRACES[trace]
        workload = study_jobs(Path(traces) / name, jobs=jobs or None)
        return Scenario(machine=Machine(nodes=nodes, kill_at_estimate=False), workload=workload, policy="fcfs", seed=seed)

    return Study(
        name="traces",
        factors={"trace": list(TRACES)},
        scenario=scenario,
        measures={
            "machine_nodes": lambda result: result.machine.nodes,
            "days": lambda result: float(np.ptp(of_jobs(result)["submit_s"])) / 86_400,
            "mean_nodes": lambda result: float(of_jobs(result)["nodes"].mean()),
            "mean_run_s": lambda result: float(of_jobs(result)["run_s"].mean()),
        },
        shown=("jobs", "load"),
        tables={"Table 3, the traces": lambda table: measure_table(table, COLUMNS, by=["trace"], published=PAPER)},
    )


def of_jobs(result: Result) -> pd.DataFrame:
    return result.jobs[result.jobs["end_s"].notna()]
