"""Columns that few workloads have: the stream of a job, the job that its submission depends on, and what an accounting log
has recorded of it.

They stand beside the table of :class:`~clustermodel.job.JobRow`, so that workloads without them cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from clustermodel.arrays import IntArray
from clustermodel.errors import SpecificationError
from clustermodel.job import UNSET
from clustermodel.ticks import TICKS_PER_SECOND

if TYPE_CHECKING:
    import pandas as pd

STREAM: Final = "stream"
PRECEDING: Final = "preceding"
THINK: Final = "think"
EXTRA_COLUMNS: Final = (STREAM, PRECEDING, THINK)

WAIT: Final = "wait"
SUSPENDED: Final = "suspended"
REQUEUES: Final = "requeues"
ARRAY_LIMIT: Final = "array_limit"
NODE_COUNT: Final = "node_count"
CORES: Final = "cores"
GPUS: Final = "gpus"
ACCOUNT: Final = "account"
PARTITION: Final = "partition"
QOS: Final = "qos"
QUEUE: Final = "queue"
JOB_NAME: Final = "job_name"
NAMED_COLUMNS: Final = (ACCOUNT, PARTITION, QOS, QUEUE, JOB_NAME)
"""Recorded columns whose numbers stand for names."""
RECORDED_COLUMNS: Final = (WAIT, SUSPENDED, REQUEUES, ARRAY_LIMIT, NODE_COUNT, CORES, GPUS, *NAMED_COLUMNS)
"""What an accounting log records of a job; no schedule depends on it."""


@dataclass(frozen=True, kw_only=True)
class ExtraColumns:
    """Extra columns by job number; they may cover more jobs than the workload that has them.

    ``stream``: position of the job's label in :attr:`labels`; ``preceding``: number of the job on whose completion the
    submission depends; ``think``: ticks from that completion to the submission.  :data:`~clustermodel.job.UNSET` where a job
    has no value.

    Recorded by an accounting log: ``wait``: ticks from the submission to the start; ``suspended``: ticks for which the job was
    suspended; ``requeues``: number of run attempts before this one; ``array_limit``: largest number of tasks of its job array
    that may run at a time; ``node_count``, ``cores``, ``gpus``: allocated; ``account``, ``partition``, ``qos``, ``queue``,
    ``job_name``: numbers of :attr:`names`.
    """

    ids: IntArray
    """Job numbers, shape ``(jobs,)``, in any order, each once."""
    columns: Mapping[str, IntArray]
    """Some of ``EXTRA_COLUMNS`` and :data:`RECORDED_COLUMNS`, each of shape ``(jobs,)``."""
    labels: tuple[str, ...] = ()
    """Names of the streams."""
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The names that the numbers 1, 2, ... of a column stand for; of :data:`NAMED_COLUMNS`, ``user`` and ``group``."""

    def of(self, ids: IntArray) -> dict[str, IntArray]:
        """Return the columns of the jobs ``ids``, shape ``(jobs,)``, in that order; a predecessor must be among them.

        Raises:
            SpecificationError: jobs wait for each other.
        """
        order = np.argsort(self.ids)
        place = order[np.searchsorted(self.ids, ids, sorter=order)]
        columns = {name: column[place] for name, column in self.columns.items()}
        if PRECEDING in columns:
            columns[PRECEDING] = np.where(np.isin(columns[PRECEDING], ids), columns[PRECEDING], UNSET)
            _require_an_order(ids, columns[PRECEDING])
            columns.setdefault(THINK, np.zeros(len(ids), dtype=np.int64))
        for column in columns.values():
            column.setflags(write=False)
        return columns

    def with_column(self, name: str, values: IntArray, labels: tuple[str, ...] | None = None) -> ExtraColumns:
        """Return the same with one column more, or another one of that name."""
        return replace(self, columns={**self.columns, name: values}, labels=self.labels if labels is None else labels)

    def without_streams(self) -> ExtraColumns:
        """Return the same without the column of streams."""
        return replace(self, columns={name: column for name, column in self.columns.items() if name != STREAM}, labels=())

    def think_times_scaled(self, factor: float) -> ExtraColumns:
        """Return the same with think times multiplied by ``factor``."""
        if factor == 1 or THINK not in self.columns:
            return self
        think = self.columns[THINK]
        return self.with_column(THINK, np.where(think > 0, np.rint(think * factor), think).astype(np.int64))

    def renumbered(self, shift: int) -> ExtraColumns:
        """Return the same with ``shift`` added to all job numbers."""
        columns = dict(self.columns)
        if PRECEDING in columns:
            columns[PRECEDING] = np.where(columns[PRECEDING] == UNSET, UNSET, columns[PRECEDING] + shift)
        return replace(self, ids=self.ids + shift, columns=columns)


def joined(parts: Sequence[ExtraColumns]) -> ExtraColumns:
    """Return the columns of several workloads without a job number in common; labels of streams are the caller's business.

    Recorded columns are left out: their numbers stand for different names in each log.
    """
    names = [name for name in EXTRA_COLUMNS if any(name in part.columns for part in parts)]
    columns = {
        name: np.concatenate([part.columns.get(name, np.full(len(part.ids), UNSET, dtype=np.int64)) for part in parts])
        for name in names
    }
    return ExtraColumns(ids=np.concatenate([part.ids for part in parts]), columns=columns)


def _require_an_order(ids: IntArray, preceding: IntArray) -> None:
    """Refuse jobs of which each waits for another one, so that none would ever be submitted."""
    order = np.argsort(ids)
    none = len(ids)
    before = np.where(preceding == UNSET, none, order[np.searchsorted(ids, preceding, sorter=order).clip(max=none - 1)])
    ancestor = np.append(before, none)
    for _ in range(len(ids).bit_length()):  # each step doubles how far an ancestor is away
        ancestor = ancestor[ancestor]
    circular = np.flatnonzero(ancestor[:-1] != none)
    if len(circular):
        raise SpecificationError(
            f"preceding: job {ids[circular[0]]} would wait for itself, through the jobs before it; "
            "each chain of preceding jobs must begin with a job that has none"
        )


_TIMES: Final = {WAIT: "wait_s", SUSPENDED: "suspended_s"}
_NUMBERS: Final = (REQUEUES, ARRAY_LIMIT, NODE_COUNT, CORES, GPUS)
RECORDED_FIELDS: Final = tuple(_TIMES.get(name, name) for name in RECORDED_COLUMNS)
"""Names of the recorded columns in a table."""


def add_recorded(frame: pd.DataFrame, columns: Mapping[str, IntArray], names: Mapping[str, tuple[str, ...]]) -> None:
    """Add those of ``columns`` that are recorded ones to ``frame``: times in seconds, names as categories."""
    import pandas as pd

    for name, values in columns.items():
        if name in _TIMES:
            frame[_TIMES[name]] = np.where(values == UNSET, np.nan, values / TICKS_PER_SECOND)
        elif name in NAMED_COLUMNS:
            frame[name] = pd.Categorical.from_codes(np.maximum(values - 1, -1), categories=pd.Index(names.get(name, ())))
        elif name in _NUMBERS:
            frame[name] = values


def recorded_of_frame(
    frame: pd.DataFrame,
    times: Callable[[pd.DataFrame, str], IntArray],
    numbers: Callable[[pd.DataFrame, str], IntArray],
) -> tuple[dict[str, IntArray], dict[str, tuple[str, ...]]]:
    """Return the recorded columns of a table, and the names that their numbers stand for.

    Args:
        frame: the table.
        times: returns a column of seconds as ticks, :data:`UNSET` where it has none.
        numbers: returns a column of whole numbers, :data:`UNSET` where it has none.
    """
    import pandas as pd

    columns = {name: times(frame, field) for name, field in _TIMES.items() if field in frame}
    columns |= {name: numbers(frame, name) for name in _NUMBERS if name in frame}
    names: dict[str, tuple[str, ...]] = {}
    for name in NAMED_COLUMNS:
        if name in frame:
            codes, labels = pd.factorize(frame[name].astype(object))
            columns[name] = np.where(codes < 0, UNSET, codes + 1).astype(np.int64)
            names[name] = tuple(map(str, labels))
    return columns, names
