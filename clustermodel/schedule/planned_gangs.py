"""Gangs in the Ousterhout matrix as a policy plans it, and what a new plan changes on the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from clustermodel.schedule.node_set import NodeSet, places


class MatrixJob(Protocol):
    """What the matrix needs to know of a job."""

    @property
    def id(self) -> int:
        """Unique number."""

    @property
    def nodes(self) -> int:
        """Number of tasks, a column each."""

    @property
    def memory(self) -> int:
        """Memory of each task, in any unit."""


Job = TypeVar("Job", bound=MatrixJob)


class Occupant(Generic[Job]):
    """A gang in the matrix."""

    __slots__ = (
        "columns",
        "columns_on_machine",
        "home",
        "home_on_machine",
        "job",
        "migrating",
        "moving",
        "nodes",
        "order",
        "rows",
        "rows_on_machine",
    )

    def __init__(self, job: Job, columns: int, home: int, order: int) -> None:
        self.job = job
        self.order = order
        """Its number in the order of starts."""
        self.nodes = job.nodes
        self.columns = columns
        """Its columns, a bitmask."""
        self.home = home
        """Its home row."""
        self.rows = 1 << home
        """The rows it stands in, the home row and those with a replica: a bitmask."""
        self.migrating = False
        """Whether it has been moved to other columns and has still to pay for that; it is not moved again until then."""
        self.moving = job.nodes
        """How many of its tasks count as migrating while it is."""
        self.columns_on_machine = 0
        """Its columns as the machine has them; 0 before the gang has started."""
        self.rows_on_machine = 0
        """Its rows as the machine has them; 0 before the gang has started."""
        self.home_on_machine = home
        """Its home row as the machine has it."""

    @property
    def on_machine(self) -> bool:
        """Whether it has started."""
        return self.rows_on_machine != 0

    @property
    def is_changed(self) -> bool:
        """Whether it is otherwise than on the machine, or has not started."""
        return self.rows != self.rows_on_machine or self.columns != self.columns_on_machine or self.home != self.home_on_machine

    @property
    def has_moved(self) -> bool:
        """Whether it has other columns than on the machine."""
        return self.rows_on_machine != 0 and self.columns_on_machine != self.columns


STARTING_ORDER: Final = attrgetter("order")


class Migration(NamedTuple, Generic[Job]):
    """Which gangs get new columns, and which wait meanwhile: options 1 and 2 of Zhang et al. 2003, section 5.4."""

    moves: Sequence[Occupant[Job]]
    blocked: Sequence[Occupant[Job]]


class Change(NamedTuple, Generic[Job]):
    """What has to change on the machine, to be done in the order of the fields."""

    withdrawn: list[tuple[Job, int]]
    """Gangs and rows to take them out of."""
    migrations: list[tuple[list[tuple[Job, NodeSet]], list[Job]]]
    """Gangs and their new columns; gangs that wait meanwhile."""
    started: list[tuple[Job, NodeSet, int]]
    """New gangs, their columns, their home rows."""
    replicated: list[tuple[Job, int]]
    """Gangs and rows to let them run in as well."""
    rehomed: list[tuple[Job, int]]
    """Gangs and their new home rows."""


def changes_to(
    moved: Iterable[Occupant[Job]],
    replicas: Iterable[Occupant[Job]],
    migrations: Sequence[Migration[Job]],
    nodes_of: Callable[[int], NodeSet],
) -> Change[Job]:
    """Return the difference between a plan and what the machine has, and take it for done.

    Args:
        moved: gangs that have started, or may have another home or other columns than on the machine.
        replicas: gangs that may have other replicas than on the machine.  A gang may be there, and among ``moved``, repeatedly.
        migrations: in order.
        nodes_of: returns the nodes of a set of columns, a bitmask.
    """
    change: Change[Job] = Change([], [], [], [], [])
    for moves, blocked in migrations:
        # One that came back to its own columns, which happens where migration is free, has not moved.
        to = [(gang.job, nodes_of(gang.columns)) for gang in moves if gang.has_moved]
        if to:
            change.migrations.append((to, [gang.job for gang in blocked]))
    changed = [gang for gang in replicas if gang.rows != gang.rows_on_machine and gang.rows]
    changed += [gang for gang in moved if gang.is_changed and gang.rows]
    if len(changed) > 1:
        changed.sort(key=STARTING_ORDER)
    previous = None
    for gang in changed:
        if gang is not previous:
            _note_change(gang, change, nodes_of)
            previous = gang
    return change


def _note_change(gang: Occupant[Job], change: Change[Job], nodes_of: Callable[[int], NodeSet]) -> None:
    rows, rows_then = gang.rows, gang.rows_on_machine
    if not rows_then:
        change.started.append((gang.job, nodes_of(gang.columns), gang.home))
        rows_then = 1 << gang.home
    else:
        if gang.home != gang.home_on_machine:
            change.rehomed.append((gang.job, gang.home))
        leaving = rows_then if gang.columns != gang.columns_on_machine else rows_then & ~rows
        if leaving:
            for row in places(leaving):
                change.withdrawn.append((gang.job, row))
            rows_then ^= leaving
    if entering := rows & ~rows_then:
        for row in places(entering):
            change.replicated.append((gang.job, row))
    gang.columns_on_machine, gang.rows_on_machine, gang.home_on_machine = gang.columns, rows, gang.home
