"""Which gangs to preempt so that a job gets columns of its own in every row of the Ousterhout matrix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import comb
from typing import Final, NamedTuple

from clustermodel.schedule.node_set import lowest

_MOST_CHOICES: Final = 2_000
"""Most choices of gangs of one number that are compared one by one; beyond that the search is greedy."""


class InTheWay(NamedTuple):
    """A gang that may be preempted: its columns, a bitmask, and what preempting it costs, in any unit."""

    columns: int  # a bitmask
    loss: int  # what preempting it costs, in any unit


class Clearing(NamedTuple):
    """Columns for a job, a bitmask, and the positions of the gangs that have to leave them."""

    columns: int  # a bitmask
    preempted: tuple[int, ...]  # positions of the gangs that have to leave


def clear(nodes: int, columns: int, gangs: Sequence[InTheWay]) -> Clearing | None:
    """Return columns for a job of which the fewest gangs have to be preempted, and of these choices one with the least loss.

    A covering problem: choices of k gangs are compared one by one, for k = 0, 1, 2 and so on, as long as there are at most
    2,000 of a k; beyond that, the gang that frees most columns is added until there are enough.  ``None`` if ``columns``, a
    bitmask of those that the job may have, are too few.
    """
    if columns.bit_count() < nodes:
        return None
    for number in range(len(gangs) + 1):
        if comb(len(gangs), number) > _MOST_CHOICES:
            break
        enough = [chosen for chosen in combinations(range(len(gangs)), number) if _freed(columns, gangs, chosen) >= nodes]
        if enough:
            return _cleared(nodes, columns, gangs, min(enough, key=lambda chosen: sum(gangs[index].loss for index in chosen)))
    return _cleared(nodes, columns, gangs, _greedy(nodes, columns, gangs))


def _greedy(nodes: int, columns: int, gangs: Sequence[InTheWay]) -> tuple[int, ...]:
    chosen: list[int] = []

    def gain(index: int) -> tuple[int, int, int]:
        freed = _freed(columns, gangs, [*chosen, index])
        return min(freed, nodes), (gangs[index].columns & columns).bit_count(), -gangs[index].loss

    while _freed(columns, gangs, chosen) < nodes:
        chosen.append(max((index for index in range(len(gangs)) if index not in chosen), key=gain))
    for index in sorted(chosen, key=lambda index: gangs[index].loss, reverse=True):  # some may turn out not to be in the way
        rest = [other for other in chosen if other != index]
        if _freed(columns, gangs, rest) >= nodes:
            chosen = rest
    return tuple(sorted(chosen))


def _free_without(columns: int, gangs: Sequence[InTheWay], preempted: Iterable[int]) -> int:
    """Return the columns that no gang holds but those that are preempted, a bitmask."""
    gone = set(preempted)
    for index, gang in enumerate(gangs):
        if index not in gone:
            columns &= ~gang.columns
    return columns


def _freed(columns: int, gangs: Sequence[InTheWay], preempted: Iterable[int]) -> int:
    return _free_without(columns, gangs, preempted).bit_count()


def _cleared(nodes: int, columns: int, gangs: Sequence[InTheWay], preempted: tuple[int, ...]) -> Clearing:
    return Clearing(lowest(_free_without(columns, gangs, preempted), nodes), preempted)
