"""Forty runs of three seconds or so, for the bench of sweeps: few workloads, many policies.

Starting two processes takes a second, which shorter runs do not make up for.
"""

from clustermodel import Machine, synthetic_workload
from clustermodel.experiment.study import Study
from tests.bench.timing import size

study = Study.grid(
    name="forty",
    machines={str(nodes): Machine(nodes=nodes) for nodes in (128, 160)},
    workloads={"made": lambda seed: synthetic_workload(jobs=size(60_000), seed=seed)},
    policies=["pv-easy", *(f"easy:reserve_depth={depth}" for depth in range(1, 10))],
    replications=2,
)
