"""Job streams with feedback: jobs that are submitted a think time after another job has completed (SWF fields 17 and 18)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from clustermodel.errors import SpecificationError
from clustermodel.job import UNSET, JobRow, checked_row
from clustermodel.workload.extra_columns import PRECEDING, THINK
from clustermodel.workload.table import JobSource, Workload


class Follower(NamedTuple):
    """A job that is submitted after another one has completed."""

    row: JobRow
    think: int
    """Ticks from that completion to the submission."""


class JobsWithFeedback:
    """The jobs of one stream for the simulator; iterating yields those that are submitted at their recorded times.

    Args:
        first: returns these jobs, in order of submission.
        followers: the other jobs, by the number of the job that they follow.
    """

    def __init__(self, first: Callable[[], Iterator[JobRow]], followers: Mapping[int, Sequence[Follower]]) -> None:
        self._first = first
        self.followers = followers

    def __iter__(self) -> Iterator[JobRow]:
        """Yield the jobs that follow no other one."""
        return self._first()


def submissions(source: JobSource) -> Iterable[JobRow]:
    """Return the jobs of a stream as the simulator takes them: its rows, or :class:`JobsWithFeedback` where it has feedback."""
    if not isinstance(source, Workload):
        return _checked(source)
    if not source.has_feedback:
        return source.rows()
    followers: dict[int, list[Follower]] = {}
    columns = source.column(PRECEDING).tolist(), source.column(THINK).tolist()
    for row, preceding, think in zip(source.rows(), *columns, strict=True):
        if preceding != UNSET:
            followers.setdefault(preceding, []).append(Follower(row, max(0, think)))

    def first() -> Iterator[JobRow]:
        pairs = zip(source.rows(), columns[0], strict=True)
        return (row for row, preceding in pairs if preceding == UNSET)

    return JobsWithFeedback(first, followers)


def _checked(source: JobSource) -> Iterator[JobRow]:
    """Yield the rows of a source that may be a user's.

    Raises:
        SpecificationError: a number is not whole, a time is not allowed, or the rows are not in order of submission.
    """
    last = 0
    for row in map(checked_row, source.rows()):
        if row.submit < last:
            raise SpecificationError(
                f"{source.name}: job {row.id}: submit {row.submit} is not allowed; it must be >= {last}, the submission of the "
                "job before, in ticks"
            )
        last = row.submit
        yield row
