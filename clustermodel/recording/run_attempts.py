"""How jobs and their run attempts end, and the tables of run attempts, nodes and overheads as analyses read them."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import BoolArray, IntArray
from clustermodel.machine.node_set import NodeSet

UNKNOWN: Final = -1  # in a tick column: it never happened


class Status(IntEnum):
    """How a job or one of its run attempts ended."""

    UNFINISHED = 0
    COMPLETED = 1
    KILLED = 2
    """Killed at its wall-time limit; its work still counts as useful (the archive's convention)."""
    ABORTED = 3
    """Killed by the policy; its work is discarded."""
    REJECTED = 4
    """Asked for more nodes than the machine has, or for none."""
    REQUEUED = 5
    """Stopped at a time limit of the policy; the job returned to the queue.  Of run attempts only."""
    PREEMPTED = 6
    """Killed by the policy; the job returned to the queue.  Of run attempts only."""
    CHECKPOINTED = 7
    """Preempted, the job's work written to the checkpoint store.  Of run attempts only."""
    SUSPENDED = 8
    """Preempted, the job's work kept in the memory of its nodes.  Of run attempts only."""
    FAILED = 9
    """Stopped by the failure of a node; the job returned to the queue.  Of run attempts only."""
    RESIZED = 10
    """The gang went on with another number of nodes; the next run attempt begins.  Of run attempts only."""

    @property
    def label(self) -> str:
        """The word used in tables and files."""
        return self.name.lower()


PREEMPTIONS: Final = (Status.PREEMPTED, Status.CHECKPOINTED, Status.SUSPENDED)  # so that other jobs could run
REQUEUING: Final = frozenset({Status.REQUEUED, Status.FAILED, *PREEMPTIONS})  # after these the job waits again


class RunAttempt(NamedTuple):
    """One run attempt after which the job returned to the queue; the fields are explained at :class:`RunAttempts`."""

    job: int
    start: int
    end: int
    columns: NodeSet  # the nodes that the gang held
    backfilled: bool
    ended_as: Status
    worked: int
    lost: int


class RunAttempts(NamedTuple):
    """Run attempts as columns, shapes ``(attempts,)``."""

    job: IntArray  # index of the job's record
    start: IntArray  # ticks
    end: IntArray  # ticks; ``UNKNOWN`` while it lasts
    nodes: IntArray  # number of nodes that the gang held
    backfilled: IntArray  # 1 if the attempt started while a job ahead in the queue kept waiting
    head_since: IntArray  # when the job was left waiting at the head of the queue before; ``UNKNOWN`` if it was not
    worked: IntArray  # how long the gang executed, ticks
    lost: IntArray  # work of the job discarded at the end of the attempt, ticks; perhaps of earlier attempts too
    ended_as: IntArray  # a :class:`Status`: why the attempt was stopped, and what became of the job's work

    def where(self, which: BoolArray | npt.NDArray[np.integer]) -> RunAttempts:
        """Return some of the attempts, chosen by a mask or by positions."""
        return RunAttempts(*(column[which] for column in self))


class NodeRanges(NamedTuple):
    """The nodes of all run attempts: a row per range of neighbouring nodes, in order of start; shapes ``(ranges,)``."""

    run: IntArray  # position in JobRecords.runs
    first_node: IntArray
    nodes: IntArray  # number of nodes from ``first_node`` on
    since: IntArray  # when the gang got them, ticks: at the start of the run attempt, or by a migration
    until: IntArray  # when it gave them up, ticks: at the end, or by a migration; ``UNKNOWN`` while the gang runs


class NodeOutages(NamedTuple):
    """When nodes were down, ticks, in order of their failures; shapes ``(outages,)``."""

    node: IntArray
    start: IntArray
    end: IntArray  # ticks; ``UNKNOWN`` while it lasts


class Overheads(NamedTuple):
    """When gangs on dedicated nodes were held up by checkpoints, restarts and context switches; shapes ``(intervals,)``."""

    start: IntArray
    end: IntArray
    nodes: IntArray
    job: IntArray  # index of the job's record
    account: IntArray  # position of the account in :class:`~clustermodel.recording.ledger.Account`
