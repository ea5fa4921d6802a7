"""Several job streams merged into one workload, or generated together.

``Result.jobs`` has the stream of each job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from clustermodel.arrays import IntArray
from clustermodel.errors import SpecificationError, quoted
from clustermodel.workload.job import NUMBERS, UNSET
from clustermodel.workload.job_columns import NAMED_COLUMNS, PRECEDING, RECORDED_COLUMNS, STREAM, THINK, table_of
from clustermodel.workload.job_stream import RANDOM_NUMBERS, JobStream, draw_streams
from clustermodel.workload.provenance import Provenance
from clustermodel.workload.streams_of_run import JobStreams
from clustermodel.workload.table import JobSource, Workload

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class JobStreamMix:
    """Several job streams that are generated together; :func:`merge` makes it."""

    streams: Mapping[str, JobStream]
    """The streams by label; the label is also the name of the stream's random numbers."""

    def generate(self, *, days: float, seed: int = 1, load: float | None = None, machine_nodes: int | None = None) -> Workload:
        """Return the merged jobs that the streams submit within ``days``; later jobs are left out.

        ``seed`` gives random numbers that are independent between streams.  With ``load``, the offered load of all streams
        together on ``machine_nodes``, one factor multiplies the rates of all arrival processes.
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
    memory.  Feedback and what logs have recorded are kept; users (queues, ...) of one name are one, so that numbers may differ
    from those of the streams where any of these has names.  Labels of earlier merges are replaced.  Workloads give a workload;
    builders, :class:`~clustermodel.workload.job_stream.JobStream`, a :class:`JobStreamMix`, to be generated together with
    independent random numbers.

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
    seen: dict[object, str] = {}
    for label, source in streams.items():
        if isinstance(source, JobStream) or not isinstance(source, JobSource):
            raise SpecificationError(
                f"merge: {label}: {quoted(source)} is not allowed; all streams must be workloads, or all JobStream(...)"
            )
        numbers = source.provenance.options.get(RANDOM_NUMBERS)
        if numbers is not None and numbers in seen:  # the jobs would not be independent
            raise SpecificationError(
                f"merge: {seen[numbers]} and {label} were generated with the same random numbers ({numbers}); give the "
                "JobStreams different names, or merge before generating: merge(...=JobStream(...)).generate(...)"
            )
        sources[label], seen[numbers] = source, label
    parts: list[Workload] = []
    for label, stream in zip(sources, JobStreams(list(sources.values())), strict=True):
        if not isinstance(stream, Workload) and not (rows := list(stream.rows())):
            raise SpecificationError(f"merge: {label}: it has no jobs; at least one is needed")
        parts.append(stream if isinstance(stream, Workload) else Workload(rows, name="+".join(sources)))
    extra = [PRECEDING, THINK] if any(part.has_feedback for part in parts) else []
    extra += [name for name in RECORDED_COLUMNS if any(part.has(name) for part in parts)]
    columns = {name: [part.column(name) for part in parts] for name in (*NUMBERS, *extra)}
    names: dict[str, tuple[str, ...]] = {}
    for name in ("user", "group", *NAMED_COLUMNS):
        if any(part.names.get(name) for part in parts):
            columns[name], names[name] = _with_common_names([part.labels(name) for part in parts])
    columns[STREAM] = [np.full(len(part), number) for number, part in enumerate(parts)]
    extra.append(STREAM)
    table = table_of(**{name: np.concatenate(of_parts) for name, of_parts in columns.items()})
    provenances = [source.provenance for source in sources.values()]
    counts: dict[str, Any] = {
        name: sum((getattr(provenance, name) for provenance in provenances), Counter())
        for name in ("dropped", "repaired", "partial")
    }
    of = ", ".join(f"{label}={each.source}" for label, each in zip(sources, provenances, strict=True))
    return Workload(
        table,
        name="+".join(sources),
        provenance=Provenance(
            source=f"merge({of})",
            options={label: each.options for label, each in zip(sources, provenances, strict=True)},
            **counts,
        ),
        machine_nodes=max((source.machine_nodes for source in sources.values() if source.machine_nodes), default=None),
        extra=extra,
        streams=tuple(sources),
        names=names,
        dependencies=JobStreams(list(sources.values())).dependencies(),
    ).made_by("merge", {"workloads": dict(sources)})


def _with_common_names(labels: Sequence[pd.Categorical[str]]) -> tuple[list[IntArray], tuple[str, ...]]:
    """Return the names in a column of several workloads as numbers from 1, ``UNSET`` where a job has none, and the names."""
    texts: dict[str, int] = {}
    numbers = []
    for own in labels:
        codes = [texts.setdefault(str(text), len(texts) + 1) for text in own.categories]
        numbers.append(np.array([*codes, UNSET])[own.codes])  # the code of no name is -1
    return numbers, tuple(texts)
