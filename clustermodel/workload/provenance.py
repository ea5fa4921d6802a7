"""Where a workload came from: the source, how it was made, how each line of a log was used, and jobs dropped or repaired."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from clustermodel.errors import counted, visible

Source = Literal["trace", "model", "synthetic", "job_stream", "job_streams", "merge"]
"""What makes the jobs: a trace file, a workload model, ``synthetic_workload``, one or several ``JobStream``, or ``merge``."""
KEEP: Final = "keep"
SCALE: Final = "scale"
ESTIMATES: Final = "estimates"
MEMORY: Final = "default_memory_gib"
SHAPES: Final = "recorded_shapes"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a workload was made, so that it can be made again; workloads of rows have none."""

    source: Source
    arguments: Mapping[str, Any]  # of the function, by name
    name: str
    machine_nodes: int | None  # like the name, as the function has given it; it may have been changed since
    steps: tuple[tuple[str, object], ...] = ()
    """Transformations, in order: ``keep`` with a filter, ``scale`` with factors, ``estimates`` with the arguments of the phi
    model or ``None`` for the run times, ``default_memory_gib`` with an amount, ``recorded_shapes`` with ``True``, ``malleable``
    with a rule, ``resample`` with what is drawn."""


JOBS: Final = "jobs"  # key of ImportReport.counts for the lines that gave jobs
_PLURAL: Final = re.compile(r"^((?:\w+ )?(?:break|component|header|job|line|message|record|step))s\b")


def counts_in_words(counts: Mapping[str, int]) -> str:
    """Return ``"4,100 jobs, 1 step, 65 never started"``."""
    singular = {reason: _PLURAL.sub(r"\1", reason) for reason, count in counts.items() if count == 1}
    return ", ".join(f"{count:,} {singular.get(reason, reason)}" for reason, count in counts.items())


@dataclass(frozen=True, kw_only=True)
class ImportReport:
    """How each line of an accounting log was used; ``print`` it, or read its fields."""

    source: str
    """File name."""
    format: str
    """Kind of log that was recognised, as ``sacct with a header line``."""
    lines: int
    counts: Mapping[str, int]
    """Number of lines by use, ``jobs`` first; they sum to ``lines``."""
    jobs: int
    """Number of jobs of the workload: more than lines where a line describes several tasks of a job array."""
    unit: str
    """The unit counted as a node of the workload: ``nodes``, ``cores`` or ``gpus``."""
    remarks: tuple[str, ...] = ()
    """How the unit and the size of the machine were found, and other choices based on the log."""
    examples: tuple[str, ...] = ()
    """The first damaged lines, as ``file:line: what is wrong``."""
    named_nodes: int = 0
    """Number of nodes that the log names."""

    def texts(self) -> list[str]:
        """Return the counts (``4,285 lines: 4,100 jobs, 120 steps``), the remarks, the first damaged lines."""
        return [f"{counted(self.lines, 'line')}: {counts_in_words(self.counts)}", *self.remarks, *self.examples]

    def __str__(self) -> str:
        return visible("\n".join((f"{self.source}: {self.format}", *self.texts())), keep="\n")


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where a workload came from.  The counters grow while a stream is read."""

    source: str
    """File name, or the generator and its seed."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Options with which it was read or made."""
    header: Mapping[str, str] = field(default_factory=dict)
    """SWF header comments; values of repeated keys are joined with newlines."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Number of jobs left out, by reason."""
    repaired: Counter[str] = field(default_factory=Counter)
    """Number of jobs with a value filled in or corrected, by reason."""
    partial: Counter[str] = field(default_factory=Counter)
    """Number of partial executions read (SWF status 2 to 4), by whether the file has a line of the whole job too."""
    notes: tuple[str, ...] = ()
    """Further remarks on the jobs, a line each."""
    report: ImportReport | None = None
    """The use of each line of the accounting log that the jobs come from; ``None`` for any other source."""

    @property
    def unit(self) -> str:
        """What a node of the jobs stands for, in the singular: ``"node"``, or the ``"core"`` or ``"GPU"`` that a log counts."""
        return {"cores": "core", "gpus": "GPU"}.get(str(self.options.get("unit")), "node")

    def lines(self) -> list[str]:
        """Return what an import reports, notes, and a line per reason of drops and repairs and kind of partial executions."""
        lines = [*(() if self.report is None else self.report.texts()), *self.notes]
        for what, verb, counts in (
            ("job", "dropped", self.dropped),
            ("job", "repaired", self.repaired),
            ("partial execution", "read", self.partial),
        ):
            lines += [f"{counted(count, what)} {verb}: {reason}" for reason, count in sorted(counts.items())]
        return lines
