"""Forty runs, for the bench of sweeps: few workloads, many policies.  ``JOBS_OF_FORTY`` says how many jobs each has."""

import os

from clustermodel import Machine, synthetic_workload
from clustermodel.study.sweep import Study

JOBS = int(os.environ["JOBS_OF_FORTY"])

study = Study(
    name="forty",
    machines={str(nodes): Machine(nodes=nodes) for nodes in (128, 160)},
    workloads={"made": lambda seed: synthetic_workload(jobs=JOBS, seed=seed)},
    policies=["pv-easy", *(f"easy:reserve_depth={depth}" for depth in range(1, 10))],
    replications=2,
)
