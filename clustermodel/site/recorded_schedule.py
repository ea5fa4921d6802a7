"""A log as a schedule that a site's rules have shaped, and the rules that are read from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from clustermodel.arrays import BoolArray, FloatArray, IntArray
from clustermodel.errors import SpecificationError
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.job import UNSET
from clustermodel.workload.job_columns import NAMED_COLUMNS, SUSPENDED, WAIT
from clustermodel.workload.table import Workload

FEWEST: Final = 20
"""Jobs that a rule must have concerned."""
LEAST_WAIT_S: Final = 60
"""Shorter waits are those of a scheduler's cycles."""
PROMPT_S: Final = 120
"""What "soon" is, seconds: schedulers look at their queue every half minute or minute."""


class InferredRule(NamedTuple):
    """A rule of a site that a log shows, and how it shows it."""

    kind: str
    """A field of :class:`~clustermodel.site.limits.Limits`, or ``"priority"``."""
    of: str
    """``"user"``, ``"account"`` and so on: a field of ``Limits`` too."""
    who: str
    """The name or number of the user, account and so on."""
    limit: float
    """The limit, or the value of a priority, from 0 to 1."""
    evidence: Mapping[str, object]
    words: str
    """Rule and evidence in one line; empty where the line of another rule says it."""

    def as_json(self) -> dict[str, object]:
        """Return the rule and its evidence as values for JSON."""
        values = self._asdict()
        del values["words"]
        return values


class RecordedSchedule:
    """The jobs of a log whose waits are recorded: times in seconds, one value per job."""

    def __init__(self, workload: Workload, nodes: int) -> None:
        wait = workload.column(WAIT)
        if not (known := wait != UNSET).any():
            raise SpecificationError(f"{workload.name} has no recorded waits, which show the rules of a site")
        self._workload, self._known, self.machine_nodes = workload, known, nodes
        occupied = workload.column("run") + np.maximum(workload.column(SUSPENDED), 0)
        self.submit: FloatArray = workload.column("submit")[known] / TICKS_PER_SECOND
        self.start: FloatArray = self.submit + wait[known] / TICKS_PER_SECOND
        self.end: FloatArray = self.start + occupied[known] / TICKS_PER_SECOND
        self.estimate: FloatArray = workload.column("estimate")[known] / TICKS_PER_SECOND
        self.nodes: IntArray = workload.column("nodes")[known]
        # Jobs of nobody known are each their own user's.
        user = workload.column("user")[known]
        self.user: IntArray = np.where(user >= 0, user, -2 - np.arange(len(user)))
        self.times, in_use = steps(self.start, self.end, self.nodes)
        self.idle: IntArray = nodes - in_use  # from each of the times on

    @property
    def header(self) -> Mapping[str, str]:
        """What the log says about itself."""
        return self._workload.provenance.header

    def column(self, field: str) -> tuple[IntArray, int]:
        """Return the numbers of the jobs' users, accounts and so on, and the least one that stands for somebody."""
        return self._workload.column(field)[self._known], 1 if field in NAMED_COLUMNS else 0

    def name(self, field: str, code: int) -> str:
        """Return the name, or the number, that a log has for a user, account and so on."""
        texts = self._workload.names.get(field, ())
        return texts[code - 1] if 0 < code <= len(texts) else str(code)

    @cached_property
    def _ranges(self) -> IntArray:
        """Job, first node and number of nodes of each recorded placement, shape ``(placements, 3)``."""
        if not self._workload.has_recorded_placements:
            return np.empty((0, 3), dtype=np.int64)
        return self._workload.recorded_placements[["job", "first_node", "nodes"]].to_numpy()

    def nodes_used(self, own: BoolArray) -> int:
        """Return the number of different nodes on which some jobs ran; 0 if the log does not name them."""
        if not len(self._ranges):
            return 0
        its = np.isin(self._ranges[:, 0], self._workload.column("id")[self._known][own])
        ranges = np.unique(self._ranges[its, 1:], axis=0)
        return len({node for first, nodes in ranges.tolist() for node in range(first, first + nodes)})

    def members(self, field: str) -> Iterator[tuple[str, BoolArray]]:
        """Yield the partitions, queues and so on that have enough jobs, each with its jobs."""
        column, least = self.column(field)
        codes, jobs = np.unique(column[column >= least], return_counts=True)
        for code in codes[jobs >= FEWEST].tolist():
            yield self.name(field, code), column == code

    def idle_at(self, moments: FloatArray) -> IntArray:
        """Return how many nodes are idle after what happens at each moment."""
        place = np.searchsorted(self.times, moments, side="right") - 1
        return np.where(place < 0, self.machine_nodes, self.idle[np.maximum(place, 0)])


def steps(start: FloatArray, end: FloatArray, amount: IntArray) -> tuple[FloatArray, IntArray]:
    """Return the times at which something changes that jobs have from their start to their end, and how much it is then."""
    times, places = np.unique(np.concatenate([start, end]), return_inverse=True)
    change = np.zeros(len(times), dtype=np.int64)
    np.add.at(change, places, np.concatenate([amount, -amount]))
    return times, np.cumsum(change)
