"""Columns that few workloads have: they stand beside the table of :class:`~clustermodel.workload.job.JobRow`.

So workloads without them cost nothing.  They are the stream of a job, the job that its submission depends on, and what an
accounting log has recorded of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import IntArray
from clustermodel.workload.job import COSTS, NUMBERS, SHAPE, SINGLETON, SIZES, UNSET

STREAM, PRECEDING, THINK = EXTRA_COLUMNS = ("stream", "preceding", "think")
"""Position of the job's label in ``streams``; number of the job on whose completion the submission depends; ticks from that
completion to the submission.  ``UNSET`` where a job has no value."""
ACCOUNT, PARTITION, QOS, QUEUE, JOB_NAME, *_ = NAMED_COLUMNS = (
    "account", "partition", "qos", "queue", "job_name", "node_type", "features",
    "reservation",
)  # fmt: skip
"""Recorded columns whose numbers stand for names."""
WAIT, SUSPENDED, HELD, REQUEUES, ARRAY, ARRAY_LIMIT, NODE_COUNT, CORES, GPUS, *_ = RECORDED_COLUMNS = (
    "wait", "suspended", "held", "requeues", "array", "array_limit", "node_count", "cores", "gpus", *SHAPE, SINGLETON,
    *SIZES, *COSTS, *NAMED_COLUMNS,
)  # fmt: skip
"""What an accounting log records of a job, on which no schedule depends unless a site says so: ticks, of the wait also those
in which it was not eligible (dependencies, holds, begin times); numbers of run attempts before this one, of its job array, if
that has a limit, and of tasks of it that may run at a time; nodes, cores, GPUs; the shape of the job, whether it waits for
others of its name, between which sizes it may change, and costs of its own, which a run respects; numbers of names."""
_MOST_NUMBERS: Final = 1_000_000  # of users that have names


def table_of(**columns: npt.ArrayLike) -> IntArray:
    """Return a table of the columns ``NUMBERS``, then others in the order given; missing priorities are 0, others -1."""
    names = [*NUMBERS, *(name for name in columns if name not in NUMBERS)]
    rows = np.full((len(np.asarray(columns["id"])), len(names)), UNSET, dtype=np.int64)
    for name, values in {"priority": 0, **columns}.items():
        rows[:, names.index(name)] = values
    return rows


def names_in_a_row(names: Mapping[int, str]) -> tuple[str, ...]:
    """Return the names of the numbers 1, 2, ..., the number itself where one has none; no names if a number is too large."""
    last = max(names, default=0)
    return tuple(names.get(number, str(number)) for number in range(1, last + 1)) if last <= _MOST_NUMBERS else ()
