"""A log of Slurm's sacct with many jobs, as the documented command writes it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from clustermodel.arrays import IntArray
from clustermodel.workload.sacct import SACCT_COMMAND

FIELDS = SACCT_COMMAND.split("--format=")[1].replace(",", "|")
BEGIN = np.datetime64("2025-01-01T00:00:00")
NODES, CORES = 400, 32


def write_long_log(path: Path, jobs: int) -> None:
    """Write a log of jobs of 200 users: 3 % never start, 3 % are array tasks, one in a thousand is a component.

    Args:
        path: of the log.
        jobs: number of records.
    """
    rng = np.random.default_rng(1)
    submit = np.cumsum(rng.integers(0, 300, jobs))
    start = submit + rng.integers(0, 7200, jobs)
    run = rng.integers(1, 40_000, jobs)
    nodes, first = rng.integers(1, 9, jobs), rng.integers(0, NODES - 8, jobs)
    user, never, kind = rng.integers(0, 200, jobs), rng.random(jobs) < 0.03, rng.random(jobs)
    limit = 60 * rng.integers(1, 25, jobs)
    times = [_stamps(seconds) for seconds in (submit, start, start + run)]
    columns = [values.tolist() for values in (run, nodes, first, user, never, kind, limit)]
    lines = [FIELDS]
    for number, (asked, began, ended, ran, size, node, who, idle, which, minutes) in enumerate(
        zip(*times, *columns, strict=True), 1
    ):
        mark = f"{number}+1" if which < 0.001 else f"{number}_4" if which < 0.03 else str(number)
        state, length = ("COMPLETED", ran) if not idle else (f"CANCELLED by {who}", 0)
        granted = f"billing={CORES * size},cpu={CORES * size},mem={4 * size}G,node={size}"
        held = "None assigned" if idle else f"cn[{node:03d}-{node + size - 1:03d}]"
        lines.append(
            f"{mark}|{number}|oak|{('short', 'main')[size > 2]}|normal|account{who % 20}|group{who % 20}|user{who}|"
            f"{asked}|{asked}|{'Unknown' if idle else began}|{ended}|{length}|00:00:00|{state}|{size}|{CORES * size}|"
            f"{4 * size}G|{granted}|{'' if idle else granted}|{minutes}|{held}|step {number % 5000}"
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _stamps(seconds: IntArray) -> list[str]:
    """Return times after :data:`BEGIN` as sacct writes them."""
    return np.datetime_as_string(BEGIN + seconds.astype("timedelta64[s]")).tolist()
