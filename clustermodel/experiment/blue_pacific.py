"""The setting of Zhang et al. 2003, sections 2 and 5: 320 nodes, slices of 200 s, jobs of one of the two calibrated models."""

from __future__ import annotations

from typing import Final

from clustermodel.experiment.scenario import Scenario
from clustermodel.machine import Checkpointing, ContextSwitch, Machine, TimeSlicing
from clustermodel.policies.interface import Policy
from clustermodel.workload.blue_pacific import NODES
from clustermodel.workload.estimates import PHI
from clustermodel.workload.model import load_model

QUANTUM_S: Final = 200.0
"""Length of a time slice, seconds (section 5.3)."""
MPL: Final = 5
"""The highest multiprogramming level of the paper (section 5.1)."""


def blue_pacific_scenario(
    policy: str | Policy,
    *,
    jobs: int,
    seed: int,
    run_time_factor: float = 1.0,
    phi: float = PHI,
    time_slicing: TimeSlicing | None = None,
    context_switch: ContextSwitch | None = None,
    checkpointing: Checkpointing | None = None,
    model: str = "blue-pacific",
) -> Scenario:
    """Return a policy on the machine and the jobs of Zhang et al. 2003.

    >>> from clustermodel.experiment.blue_pacific import blue_pacific_scenario
    >>> blue_pacific_scenario("bgs", jobs=500, seed=1, run_time_factor=1.4).machine.nodes
    320

    Args:
        policy: a policy, or its name with parameters.
        jobs: their number.
        seed: of the jobs, and of the policy's random numbers.
        run_time_factor: multiplies run times; 1.0 to 1.8 are the paper's workloads 0 to 8 (section 2.2).
        phi: the fraction of exact estimates (section 2.1), the same jobs for all.
        time_slicing: of the machine; by default slices of 200 s and MPL 5.
        context_switch: its cost; by default nothing.
        checkpointing: the cost and the limit of migration; by default nothing and none.
        model: ``"blue-pacific"`` or ``"blue-pacific-2"``; see :mod:`clustermodel.workload.blue_pacific`.

    Raises:
        SpecificationError: an argument is not allowed.
    """
    machine = Machine(
        nodes=NODES,
        time_slicing=time_slicing or TimeSlicing(quantum_s=QUANTUM_S, mpl=MPL),
        context_switch=context_switch or ContextSwitch(),
        checkpointing=checkpointing or Checkpointing(),
    )
    workload = load_model(model).generate(jobs=jobs, seed=seed, run_time_factor=run_time_factor, phi=phi)
    return Scenario(machine=machine, workload=workload, policy=policy, seed=seed)
