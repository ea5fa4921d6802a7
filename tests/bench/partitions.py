"""Sites of four partitions for benches, and the single machines that they are compared with."""

from collections.abc import Callable
from functools import cache
from typing import Final

import pandas as pd

from clustermodel import Machine, Partition, Scenario, Workload
from tests.bench.timing import simulation

PARTITIONS: Final = 4
NODES: Final = 100
"""Of a partition, as many as the KTH-SP2 has."""


@cache
def quarters(workload: Workload) -> list[pd.DataFrame]:
    """Cut a workload into four parts of as many jobs each, in order of submission, that all begin at 0."""
    frame = workload.frame
    size = -(-len(frame) // PARTITIONS)
    parts = [frame.iloc[first : first + size] for first in range(0, len(frame), size)]
    return [part.assign(submit_s=part["submit_s"] - part["submit_s"].iloc[0]) for part in parts]


def site(workload: Workload, policy: str, *, overlaps: bool = False) -> Scenario:
    """Return a site of four partitions, each with the jobs of one quarter; with ``overlaps``, every tenth job may have two."""
    parts = []
    for number, part in enumerate(quarters(workload)):
        names = pd.Series(f"p{number}", index=part.index)
        if overlaps:
            names.iloc[::10] = f"p{number},p{(number + 1) % PARTITIONS}"
        parts.append(part.assign(partition=names))
    jobs = pd.concat(parts).sort_values("submit_s", kind="stable")
    partitions = [
        Partition(name=f"p{number}", nodes=range(number * NODES, (number + 1) * NODES)) for number in range(PARTITIONS)
    ]
    machine = Machine(nodes=PARTITIONS * NODES, partitions=partitions)
    return Scenario(machine=machine, workload=Workload.from_frame(jobs), policy=policy)


def single_machines(workload: Workload, policy: str) -> Callable[[], object]:
    """Return four simulations, one after the other: of machines that have the nodes and the jobs of one partition each."""
    programs = [simulation(Workload.from_frame(part), NODES, policy) for part in quarters(workload)]
    return lambda: [program() for program in programs]
