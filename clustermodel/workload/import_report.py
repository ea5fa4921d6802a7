"""The report of an import: what became of each line of an accounting log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from clustermodel.errors import counted, visible

JOBS: Final = "jobs"
"""Key of :attr:`ImportReport.counts` for the lines that gave jobs."""


_PLURAL: Final = re.compile(r"^((?:\w+ )?(?:break|component|header|job|line|message|record|step))s\b")


def counts_in_words(counts: Mapping[str, int]) -> str:
    """Return ``"4,100 jobs, 1 step, 65 never started"``."""
    singular = {reason: _PLURAL.sub(r"\1", reason) for reason, count in counts.items() if count == 1}
    return ", ".join(f"{count:,} {singular.get(reason, reason)}" for reason, count in counts.items())


@dataclass(frozen=True, kw_only=True)
class ImportReport:
    """What became of each line of an accounting log; ``print`` it, or read its fields."""

    source: str
    """File name."""
    format: str
    """Kind of log that was recognised: ``sacct with a header line``, ``sacct in the layout of Open XDMoD`` or ``PBS``."""
    lines: int
    """Number of lines of the file."""
    counts: Mapping[str, int]
    """Number of lines by what became of them, ``jobs`` first; they sum to :attr:`lines`."""
    jobs: int
    """Number of jobs of the workload: more than lines where a line describes several tasks of a job array."""
    unit: str
    """What a node of the workload is: ``nodes``, ``cores`` or ``gpus``."""
    remarks: tuple[str, ...] = ()
    """How the unit and the size of the machine were found, and what else was decided from the log."""
    examples: tuple[str, ...] = ()
    """The first damaged lines, as ``file:line: what is wrong``."""

    def summary(self) -> str:
        """Return the counts as one sentence: ``4,285 lines: 4,100 jobs, 120 steps, 65 never started``."""
        return f"{counted(self.lines, 'line')}: {counts_in_words(self.counts)}"

    def texts(self) -> list[str]:
        """Return the report, a line of text each: the counts, the remarks, the first damaged lines."""
        return [self.summary(), *self.remarks, *self.examples]

    def __str__(self) -> str:
        return visible("\n".join((f"{self.source}: {self.format}", *self.texts())), keep="\n")
