"""Merging job streams into one: unique job numbers, and the label of its stream on each job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import overload

import numpy as np

from clustermodel.errors import SpecificationError, quoted
from clustermodel.job import JobRow
from clustermodel.workload.extra_columns import STREAM, ExtraColumns, joined
from clustermodel.workload.job_stream import RANDOM_NUMBERS, JobStream, draw_streams
from clustermodel.workload.streams import JobStreams
from clustermodel.workload.table import JobSource, Provenance, Workload


@dataclass(frozen=True)
class JobStreamMix:
    """Several job streams that are generated together; :func:`merge` makes it."""

    streams: Mapping[str, JobStream]
    """The streams by label; the label is also the name of the stream's random numbers."""

    def generate(self, *, days: float, seed: int = 1, load: float | None = None, machine_nodes: int | None = None) -> Workload:
        """Return the merged jobs that the streams submit within ``days``.

        Args:
            days: length of the workload; later jobs are left out.
            seed: of the random numbers, which are independent between streams.
            load: offered load of all streams together; one factor then multiplies the rates of all arrival processes.
            machine_nodes: size of the machine; needed with ``load``.

        Raises:
            SpecificationError: an argument is not allowed, or a stream draws a value that no job can have.
        """
        parts = draw_streams(self.streams, days=days, seed=seed, load=load, machine_nodes=machine_nodes)
        arguments = {"streams": self.streams, "days": days, "seed": seed, "load": load, "machine_nodes": machine_nodes}
        return merge(**parts).made_by("job_streams", arguments)


@overload
def merge(**streams: JobStream) -> JobStreamMix: ...
@overload
def merge(**streams: JobSource) -> Workload: ...
def merge(**streams: JobSource | JobStream) -> Workload | JobStreamMix:
    """Return several job streams as one, as in ``merge(day=..., night=...)``.

    The names of the arguments become labels: the column ``stream`` of ``Result.jobs``, and the rows of
    ``Result.by_stream``.  Jobs are renumbered as in ``Scenario(workload=[...])``, with the same schedule: streams without a
    job number in common keep their numbers, otherwise the first stream does.  A stream that is read from a file is read into
    memory.  Feedback is kept; labels of earlier merges are replaced.

    Args:
        streams: workloads, which give a workload; or :class:`~clustermodel.workload.job_stream.JobStream` builders, which
            give a :class:`JobStreamMix`, to be generated together with independent random numbers.

    Raises:
        SpecificationError: no stream is given, streams and builders are mixed, a stream has no jobs, or two generated streams
            have the same random numbers.
    """
    if not streams:
        raise SpecificationError("merge: no stream is given; at least one is needed, as in merge(day=..., night=...)")
    builders = {label: stream for label, stream in streams.items() if isinstance(stream, JobStream)}
    if len(builders) == len(streams):
        return JobStreamMix(builders)
    sources: dict[str, JobSource] = {}
    for label, source in streams.items():
        if isinstance(source, JobStream) or not isinstance(source, JobSource):
            raise SpecificationError(
                f"merge: {label}: {quoted(source)} is not allowed; all streams must be workloads, or all JobStream(...)"
            )
        sources[label] = source
    return _merged(sources)


def _merged(sources: Mapping[str, JobSource]) -> Workload:
    _require_different_random_numbers(sources)
    rows: list[JobRow] = []
    parts: list[ExtraColumns] = []
    for code, stream in enumerate(JobStreams(list(sources.values()))):
        mine = list(stream.rows())
        if not mine:
            raise SpecificationError(f"merge: {list(sources)[code]}: it has no jobs; at least one is needed")
        rows += mine
        ids = np.array([row.id for row in mine], dtype=np.int64)
        columns = {}
        if isinstance(stream, Workload) and stream.extra is not None:
            columns = stream.extra.of(ids)
        parts.append(ExtraColumns(ids=ids, columns={**columns, STREAM: np.full(len(ids), code)}))
    extra = joined(parts)
    provenances = {label: source.provenance for label, source in sources.items()}
    known = [source.machine_nodes for source in sources.values() if source.machine_nodes]
    return Workload(
        rows,
        name="+".join(sources),
        provenance=Provenance(
            source=f"merge({', '.join(f'{label}={one.source}' for label, one in provenances.items())})",
            options={label: one.options for label, one in provenances.items()},
            dropped=sum((one.dropped for one in provenances.values()), Counter()),
            repaired=sum((one.repaired for one in provenances.values()), Counter()),
            partial=sum((one.partial for one in provenances.values()), Counter()),
        ),
        machine_nodes=max(known, default=None),
        extra=ExtraColumns(ids=extra.ids, columns=extra.columns, labels=tuple(sources)),
    ).made_by("merge", {"workloads": dict(sources)})


def _require_different_random_numbers(sources: Mapping[str, JobSource]) -> None:
    """Refuse streams that were generated with the same random numbers: their jobs would not be independent."""
    seen: dict[object, str] = {}
    for label, source in sources.items():
        numbers = source.provenance.options.get(RANDOM_NUMBERS)
        if numbers is not None and numbers in seen:
            raise SpecificationError(
                f"merge: {seen[numbers]} and {label} were generated with the same random numbers ({numbers}); give the "
                "JobStreams different names, or merge before generating: merge(...=JobStream(...)).generate(...)"
            )
        seen[numbers] = label
