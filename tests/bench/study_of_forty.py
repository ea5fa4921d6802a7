"""Forty runs of about a second each, for the bench of sweeps."""

from clustermodel import LoadScale, synthetic_workload
from clustermodel.study.sweep import Study

WORKLOAD = synthetic_workload(jobs=20_000, seed=1)

study = Study(
    name="forty",
    workloads={str(part): WORKLOAD.scaled(LoadScale(interarrival=1 + part / 100)) for part in range(20)},
    policies=["easy", "pv-easy"],
)
