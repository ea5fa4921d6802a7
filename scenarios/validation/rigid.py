"""Rigid jobs of 1 to 8 nodes, and the machines that share their nodes in time, of the validations of Zhang et al. 2003."""

import numpy as np
from jobs import MEAN_S, poisson, run_times, sizes_of, workload

from clustermodel import Checkpointing, ContextSwitch, Machine, TimeSlicing, Workload

NODES = 8
LOAD = 0.75
"""More than FCFS can carry."""
SIZES = dict.fromkeys(range(1, NODES + 1), 1 / NODES)
QUANTUM_S, SWITCH, CHECKPOINT_S, RESTART_S = 20.0, 0.02, 3.0, 7.0
"""A restart is longer than a checkpoint, so that eqs. (4) and (5) cannot be mistaken for each other."""
ABOUT = "the same for all"


def shared_machine(switches: str, nodes: int = NODES) -> Machine:
    """Return a machine with time slices and migration; ``"none"``: without; ``"free"``: switches take no time."""
    if switches == "none":
        return Machine(nodes=nodes)
    charge = "on-change" if switches == "on-change" else "every-slice"
    return Machine(
        nodes=nodes,
        time_slicing=TimeSlicing(quantum_s=QUANTUM_S, mpl=4),
        context_switch=ContextSwitch() if switches == "free" else ContextSwitch(fraction=SWITCH, charge=charge),
        checkpointing=Checkpointing(checkpoint_s=CHECKPOINT_S, restart_s=RESTART_S),
    )


def rigid_jobs(jobs: int, seed: int, nodes: int) -> Workload:
    """Return jobs that arrive at a load of 0.75."""
    rate = LOAD * nodes / (sum(size * share for size, share in SIZES.items()) * MEAN_S)
    submit, run = poisson(rate, jobs, seed, ABOUT), run_times("exponential", jobs, seed, ABOUT)
    return workload(submit, run, sizes_of(SIZES, jobs, seed, ABOUT))


def at_once(jobs: int, seed: int) -> Workload:
    """Return jobs that are all submitted at the same time."""
    return workload(np.zeros(jobs), run_times("exponential", jobs, seed, ABOUT), sizes_of(SIZES, jobs, seed, ABOUT))
