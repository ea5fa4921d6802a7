"""``clustermodel run --stream``: traces read job by job, runs in constant memory, and what does not go with that."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from clustermodel.cli.selection import filter_of, scale_of
from clustermodel.errors import SpecificationError
from clustermodel.workload.readers import SWF
from clustermodel.workload.swf import SwfStream
from clustermodel.workload.trace_file import recognised

_NOT_FOR_STREAMS: Final = ("unit", "timezone", "cluster", "format", "feedback", "resample")
"""Options that need the whole trace, or are of other formats."""


def require_streamable(*, jobs_parquet: object, stream: bool, outputs: Mapping[str, object]) -> None:
    """Refuse options that do not go with ``--stream``, or that need it.

    Args:
        jobs_parquet: the value of ``--jobs-parquet``.
        stream: whether ``--stream`` is given.
        outputs: the values of the options that need all jobs.

    Raises:
        SpecificationError: one does not.
    """
    if jobs_parquet is not None and not stream:
        raise SpecificationError("--jobs-parquet: it needs --stream; --jobs-csv writes the jobs of a run that is not streamed")
    for option, value in outputs.items():
        if stream and value is not None:
            raise SpecificationError(f"{option}: not allowed with --stream, which keeps no jobs")


def stream_of(trace: Path, options: Mapping[str, Any], given: Mapping[str, Any]) -> SwfStream:
    """Return a trace in SWF as a stream, filtered and rescaled as the options say.

    Args:
        trace: the file.
        options: of the workload, with their defaults.
        given: those that the user has given.

    Raises:
        SpecificationError: an option is not allowed with a stream.
        TraceError: the file cannot be read.
    """
    for name in _NOT_FOR_STREAMS:
        if name in given:
            raise SpecificationError(f"--{name.replace('_', '-')}: not allowed with --stream, which reads SWF job by job")
    estimates = options["estimates"]
    if isinstance(estimates, float):
        raise SpecificationError("--estimates: phi is not allowed with --stream; it draws the estimates of all jobs at once")
    if (reader := recognised(trace)) not in (SWF, None):
        raise SpecificationError(
            f"--stream: {trace} is read as {reader.name}, but only SWF job by job; 'clustermodel trace import' makes SWF of it"
        )
    return SwfStream(
        trace,
        processors_from=options["processors_from"],
        use_estimates=estimates == "user",
        keep=filter_of(options),
        scale=scale_of(options),
        lenient=options["lenient"],
        default_memory_gib=options["default_memory"],
    )
