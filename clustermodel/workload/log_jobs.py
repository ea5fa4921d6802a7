"""The jobs of an accounting log while it is read: their columns, the names in it, and what became of each line."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from clustermodel.arrays import BoolArray, IntArray
from clustermodel.job import UNSET
from clustermodel.workload.extra_columns import ARRAY_LIMIT
from clustermodel.workload.import_report import JOBS

MOST_EXAMPLES: Final = 10
"""Number of damaged lines that a report shows."""
_MOST_REASONS: Final = 30
_LIMIT: Final = re.compile(r"%(\d{1,9})", re.ASCII)
_MOST_CLUSTERS: Final = 2**10 - 1
DAMAGED: Final = "damaged lines"
BACKWARDS: Final = "ending before their start"
REPEATED: Final = "repeated records"
COMPONENTS: Final = "components of heterogeneous jobs, added to their first component"


class LogJob(NamedTuple):
    """A run attempt of a job in an accounting log; times in seconds since 1970, :data:`UNSET` for what is not known."""

    line: int
    key: int
    """Number of the job's full identifier; run attempts of a job have the same."""
    number: int
    """The number that the log gives the job."""
    heterogeneous: int
    """Number of the heterogeneous job that it is a component of."""
    cluster: int
    submit: int
    start: int
    run: int
    """Time for which it ran, without the time for which it was suspended."""
    suspended: int
    limit: int
    nodes: int
    cores: int
    gpus: int
    memory: int
    """KiB of the whole job."""
    user: int
    group: int
    account: int
    partition: int
    qos: int
    queue: int
    job_name: int
    status: int
    """SWF status: 1 completed, 0 failed, 5 cancelled."""
    requeued: int
    """1 if the job went back to the queue after this attempt."""
    restarts: int
    """Attempts before this one, as the log says; 0 where it does not."""
    node_list: int


def task_key(number: int, task: int = 0, component: int = 0, cluster: int = UNSET) -> int:
    """Return the key of a job; ``task`` and ``component`` count from 1, 0 for what it is not.

    One number: a tuple for each job would take much more memory.
    """
    return (((number << 30 | task) << 30) | component) << 10 | cluster + 1


class _Numbers(dict[Hashable, int]):
    """Gives new names the next number from 1."""

    def __missing__(self, name: Hashable) -> int:
        if not name:
            return UNSET
        number = self[name] = len(self) + 1
        return number


class Names:
    """Numbers the texts that it is given from 1, in order of appearance."""

    def __init__(self) -> None:
        self._numbers = _Numbers()

    def number(self, name: Hashable) -> int:
        """Return the number of a name; :data:`UNSET` for an empty one."""
        return self._numbers[name]

    def numbers(self, names: Iterable[Hashable]) -> Iterator[int]:
        """Yield the numbers of names, as :meth:`number` returns them one by one."""
        return map(self._numbers.__getitem__, names)

    def __iter__(self) -> Iterator[Hashable]:
        """Yield the names in order of their numbers."""
        return iter(self._numbers)

    def texts(self) -> tuple[str, ...]:
        """Return the names in order of their numbers."""
        return tuple(map(str, self._numbers))


class LogJobs:
    """Collects the jobs of a log, and counts what became of each line.

    Args:
        path: of the log, for messages.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.counts: Counter[str] = Counter()
        """Lines by what became of them; :data:`JOBS` are those that gave jobs."""
        self.repaired: Counter[str] = Counter()
        self.several_tasks = 0
        """Lines that describe several tasks of a job array."""
        self.array_limits: dict[tuple[int, str], int] = {}
        """Largest number of tasks that may run at a time, by number and cluster of the job array."""
        self.clock_change = 0
        """Jobs whose start and end are an hour further apart, or less, than they ran: local times with daylight saving."""
        self.eligible_later = 0
        """Jobs that could not start for more than a minute after their submission: dependencies, holds, begin times."""
        self.examples: list[str] = []
        self.users, self.groups, self.accounts, self.partitions = Names(), Names(), Names(), Names()
        self.qos, self.queues, self.job_names = Names(), Names(), Names()
        self.clusters, self.node_lists, self.keys, self.heterogeneous = Names(), Names(), Names(), Names()
        self._values = array("q")

    def add(self, job: LogJob) -> None:
        """Add a job; its line is counted by :meth:`left_out` as :data:`JOBS` by the caller.

        Raises:
            ValueError: a number of the job is too large for a column.
        """
        try:
            self._values.extend(array("q", job))
        except OverflowError:
            raise ValueError(f"a size or an amount is {max(job)}; it must be below {2**63}") from None

    def add_table(self, table: IntArray) -> None:
        """Add jobs: rows of :class:`LogJob`, shape ``(jobs, fields)``."""
        self._values.frombytes(np.ascontiguousarray(table, dtype=np.int64).tobytes())

    def note_array(self, number: int, cluster: str, tasks: str) -> None:
        """Keep the limit of a job array whose tasks are ``1-4%2``: so many may run at a time."""
        if (found := _LIMIT.search(tasks)) and (limit := int(found[1])):
            self.array_limits[number, cluster] = limit

    def repair(self, reason: str, jobs: BoolArray) -> None:
        """Count the jobs in which a value was filled in or corrected."""
        if number := int(jobs.sum()):
            self.repaired[reason] += number

    def damaged(self, line: int, problem: object, lines: int = 1) -> None:
        """Count a line that cannot be used; the report shows the first ones."""
        self.counts[DAMAGED] += lines
        if len(self.examples) < MOST_EXAMPLES:
            self.examples.append(f"{self.path}:{line}: {problem}")

    def left_out(self, reason: str, lines: int = 1) -> None:
        """Count a line that gives no job; a damaged file may have many different reasons, of which the first are kept apart."""
        if reason not in self.counts and len(self.counts) >= _MOST_REASONS:
            reason = "for other reasons"
        self.counts[reason] += lines

    def __len__(self) -> int:
        return len(self._values) // len(LogJob._fields)

    def columns(self) -> dict[str, IntArray]:
        """Return the columns of :class:`LogJob`, shape ``(jobs,)``."""
        table = np.frombuffer(self._values, dtype=np.int64).reshape(-1, len(LogJob._fields)).T
        columns = dict(zip(LogJob._fields, table, strict=True))
        return {**columns, ARRAY_LIMIT: self._limits()[columns["key"]]} if self.array_limits else columns

    def _limits(self) -> IntArray:
        """Return the limits of the job arrays of keys, by their number; :data:`UNSET` where there is none."""
        clusters = ("", "", *self.clusters.texts())
        arrays = ((key >> 70, clusters[key & _MOST_CLUSTERS]) for key in self.keys if isinstance(key, int))
        return np.array([UNSET, *(self.array_limits.get(array, UNSET) for array in arrays)])

    def kept(self, columns: dict[str, IntArray], keep: BoolArray, reason: str) -> dict[str, IntArray]:
        """Return the columns of the jobs to ``keep``; lines of which no job is left are counted by ``reason``."""
        if keep.all():
            return columns
        lost = np.setdiff1d(columns["line"][~keep], columns["line"][keep]).size
        if lost:
            self.counts[JOBS] -= lost
            self.counts[reason] += lost
        return {name: column[keep] for name, column in columns.items()}
