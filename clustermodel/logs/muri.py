"""The workloads of GPU clusters that Zhao et al. 2022 (Muri) have published."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from clustermodel.errors import TraceError
from clustermodel.logs.csv_jobs import lines_of
from clustermodel.ticks import LAST_TICK, TICKS_PER_SECOND
from clustermodel.workload.job import Demand, JobRow, OwnCosts
from clustermodel.workload.provenance import Provenance
from clustermodel.workload.table import Workload

COLUMNS: Final = ("job_id", "num_gpu", "submit_time", "iterations", "iteration_time", "model_name")
_GPUS: Final = 64
_TICKS: Final = 1015  # microseconds per millisecond of iterations: the authors' factor of 1.015
_RESTARTS: Final[dict[str, tuple[int, ...]]] = {
    "vgg16": (7, 7, 8, 9, 9, 10),
    "vgg19": (7, 7, 8, 9, 10, 10),
    "resnet18": (4, 5, 5, 7, 7, 7),
    "shufflenet_v2_x1_0": (4, 4, 5, 5, 7, 8),
    "bert": (10, 10, 10, 10, 10, 10),
    "gpt2": (10, 10, 10, 10, 10, 10),
    "a2c": (38, 39, 39, 46, 46, 46),
    "dqn": (5, 5, 6, 6, 8, 8),
}
"""Start-up cost of a model on 1, 2, 4, 8, 16 and 32 GPUs, seconds, as the authors of Muri measured it."""
_SIZES: Final = (1, 2, 4, 8, 16, 32)
_OTHER_RESTART: Final = 10


def is_muri(text: str) -> bool:
    """Return whether a line is the header of a workload of Zhao et al. 2022."""
    return set(COLUMNS) <= set(text.split(","))


def read_muri(path: str | os.PathLike[str]) -> Workload:
    """Read a workload of a GPU cluster as published with Zhao et al. 2022 (Muri), a line for each job.

    Columns: ``job_id``, ``num_gpu``, ``submit_time`` (ms), ``iterations``, ``iteration_time`` (ms), ``model_name``; others are
    ignored.  A node of the simulation is a GPU.  A job runs for iterations x iteration time x 1.015, the authors' factor.  Its
    ``restart_s`` is the start-up cost that the authors measured for its model and size, and 10 s where they give none.  The
    machine has 64 GPUs.  A file that cannot be read, or a malformed line, is a TraceError.
    """
    text = os.fspath(path)
    lines = list(lines_of(text, COLUMNS))
    if not lines:
        raise TraceError(f"{text}: it has no jobs; at least one is needed")
    rows: dict[int, JobRow] = {}
    for line in lines:
        gpus, iterations = line.whole("num_gpu", least=1), line.whole("iterations", least=1)
        run = round(iterations * line.number("iteration_time", "a number > 0", lambda value: value > 0) * _TICKS)
        if run > LAST_TICK:
            raise line.refused("iterations", "the job takes longer than fits 64-bit ticks")
        costs = dict(zip(_SIZES, _RESTARTS.get(line.fields["model_name"], ()), strict=False))
        submit, job = line.whole("submit_time", least=0) * 1000, line.whole("job_id", least=0)
        if job in rows:
            raise line.refused("job_id", "another line has the same; numbers must be unique")
        restart = costs.get(gpus, _OTHER_RESTART) * TICKS_PER_SECOND
        demand = Demand(costs=OwnCosts(restart=restart))
        rows[job] = JobRow(submit, job, gpus, run, run, user=-1, group=-1, priority=0, status=-1, demand=demand)
    provenance = Provenance(source=text, options={"unit": "gpus"})
    workload = Workload(rows.values(), name=Path(text).name, provenance=provenance, machine_nodes=_GPUS)
    return workload.made_by("trace", {"trace": Path(path)})
