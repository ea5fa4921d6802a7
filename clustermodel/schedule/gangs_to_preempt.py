"""Which gangs to preempt so that a job gets columns of its own in every row of the Ousterhout matrix."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import Final, NamedTuple

from clustermodel.schedule.node_set import lowest

_MOST_CHOICES: Final = 2_000  # choices of gangs of one number that are compared; beyond that the search is greedy


class InTheWay(NamedTuple):
    """A gang that may be preempted."""

    columns: int  # a bitmask
    loss: int  # what preempting it costs, in any unit


class Clearing(NamedTuple):
    """Columns for a job."""

    columns: int  # a bitmask
    preempted: tuple[int, ...]  # positions of the gangs that have to leave


def clear(nodes: int, columns: int, gangs: Sequence[InTheWay]) -> Clearing | None:
    """Return columns for a job of which the fewest gangs have to be preempted, and of these choices one with the least loss."""
    # A covering problem: choices of k gangs are compared one by one, for k = 0, 1, 2 and so on, as long as there are at most
    # 2,000 of a k; beyond that, the gang that frees most columns is added until there are enough.  None if `columns`, a bitmask
    # of those that the job may have, are too few.
    if columns.bit_count() < nodes:
        return None
    for number in range(len(gangs) + 1):
        if comb(len(gangs), number) > _MOST_CHOICES:
            break
        choices = combinations(range(len(gangs)), number)
        enough = [chosen for chosen in choices if _free(columns, gangs, chosen).bit_count() >= nodes]
        if enough:
            cheapest = min(enough, key=lambda chosen: sum(gangs[index].loss for index in chosen))
            return Clearing(lowest(_free(columns, gangs, cheapest), nodes), cheapest)
    greedy = _greedy(nodes, columns, gangs)
    return Clearing(lowest(_free(columns, gangs, greedy), nodes), greedy)


def _greedy(nodes: int, columns: int, gangs: Sequence[InTheWay]) -> tuple[int, ...]:
    chosen: list[int] = []

    def gain(index: int) -> tuple[int, int, int]:
        freed = _free(columns, gangs, [*chosen, index]).bit_count()
        return min(freed, nodes), (gangs[index].columns & columns).bit_count(), -gangs[index].loss

    while _free(columns, gangs, chosen).bit_count() < nodes:
        chosen.append(max((index for index in range(len(gangs)) if index not in chosen), key=gain))
    for index in sorted(chosen, key=lambda index: gangs[index].loss, reverse=True):  # some may turn out not to be in the way
        rest = [other for other in chosen if other != index]
        if _free(columns, gangs, rest).bit_count() >= nodes:
            chosen = rest
    return tuple(sorted(chosen))


def _free(columns: int, gangs: Sequence[InTheWay], preempted: Sequence[int]) -> int:
    """Return the columns that no gang holds but those that are preempted, a bitmask."""
    for index, gang in enumerate(gangs):
        if index not in preempted:
            columns &= ~gang.columns
    return columns
