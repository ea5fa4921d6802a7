"""Where the reference schedules are, and what ../shared/reference/README.md says of them."""

import gzip
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


def trace_path(name: str) -> Path:
    path = SHARED / "traces" / f"{name}.swf.gz"
    if not path.is_file():
        pytest.skip(f"{path} is not here; the traces are not part of the repository")
    return path


def gpu_workload(name: str) -> Path:
    """Return a workload of Zhao et al. 2022, as ``trace1`` or ``testbed_jobs``."""
    path = SHARED / "traces" / "gpu" / f"muri_{name}.csv"
    if not path.is_file():
        pytest.skip(f"{path} is not here; the traces are not part of the repository")
    return path


def reference_starts(policy: str) -> dict[int, int]:
    """Return job -> start time in seconds of the KTH reference schedule."""
    path = SHARED / "reference" / f"kth_{policy}.csv.gz"
    if not path.is_file():
        pytest.skip(f"{path} is not here; the reference schedules are not part of the repository")
    with gzip.open(path, "rt") as file:
        next(file)
        return {int(job): int(start) for job, start in (line.split(",") for line in file)}


def site_case(name: str) -> Path:
    """Return a configuration or log of a cluster, with the right values in ../shared/cases/README.md."""
    path = SHARED / "cases" / "sites" / name
    if not path.is_file():
        pytest.skip(f"{path} is not here; the cases are not part of the repository")
    return path
