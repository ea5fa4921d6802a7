"""Logs of the Parallel Workloads Archive: their files, and the sizes of the machines that recorded them."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from clustermodel.validation import choice
from clustermodel.workload.study_jobs import study_jobs
from clustermodel.workload.table import Workload


class ArchiveLog(NamedTuple):
    """A log of the archive."""

    file: str
    nodes: int
    """Size of the machine; of CTC-SP2 its batch partition."""


ARCHIVE: Final = MappingProxyType(
    {
        "KTH-SP2": ArchiveLog("KTH-SP2-1996-2.2.swf.gz", 100),
        "CTC-SP2": ArchiveLog("CTC-SP2-1996-3.1-cln.swf.gz", 430),
        "SDSC-SP2": ArchiveLog("SDSC-SP2-1998-4.2-cln.swf.gz", 128),
        "SDSC-BLUE": ArchiveLog("SDSC-BLUE-2000-4.2-cln.swf.gz", 1152),
    }
)
"""Logs by name, in the versions that the studies of this package use."""


def archive_jobs(folder: str | PathLike[str], log: str, *, jobs: int | None = None) -> Workload:
    """Return the jobs of a log of the archive.

    Args:
        folder: where its file is.
        log: its name, one of :data:`ARCHIVE`.
        jobs: the number of the first jobs; by default all.

    Raises:
        SpecificationError: there is no such log.
        TraceError: its file cannot be read.
    """
    return study_jobs(Path(folder) / ARCHIVE[choice("log", log, ARCHIVE)].file, jobs=jobs)
