"""Which partitions, QOS or queues come first, by who overtakes whom.

A job overtakes another one that waits when it is submitted and that is neither larger nor longer, if it starts first and
leaves too few idle nodes for it.  The other one could have started in its place, also by backfilling, so that it was not its
turn.  First come, first served never does that; fair shares, dependencies and limits do, but not always in favour of the same
queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Final

import numpy as np

from clustermodel.arrays import BoolArray, FloatArray, IntArray
from clustermodel.site.inferred_limits import CHANCE
from clustermodel.site.recorded_schedule import FEWEST, LEAST_WAIT_S, InferredRule, RecordedSchedule

ONE_WAY: Final = 0.9
"""Of the overtaking between two queues, the least share that goes one way."""
_USERS: Final = 3  # whose jobs are overtaken, none of them more than half
_MOST_CLASSES: Final = 32
_BLOCK: Final = 256  # jobs that are compared with those that wait, together
_MOST_PAIRS: Final = 500_000_000  # of jobs that are compared


def priorities(log: RecordedSchedule, fields: Sequence[str], held: BoolArray) -> list[InferredRule]:
    """Return who comes first in the field that shows most of it; ``held`` are the jobs that limits have kept waiting."""
    best: list[InferredRule] = []
    most = 0
    for field in fields:
        rules, overtaking = _of_field(log, field, held)
        if overtaking > most:
            best, most = rules, overtaking
    return best


def _of_field(log: RecordedSchedule, field: str, held: BoolArray) -> tuple[list[InferredRule], int]:
    """Return the values of queues, and how much overtaking they stand for."""
    members = sorted(log.members(field), key=lambda each: -int(each[1].sum()))[:_MOST_CLASSES]
    if len(members) < 2:
        return [], 0
    names = [who for who, _ in members]
    code = np.full(len(log.nodes), -1)
    for place, (_, own) in enumerate(members):
        code[own] = place
    counts, of_several, chances = _overtaking(log, code, held, len(members))
    pairs = np.argwhere(of_several).tolist()
    before = [(first, second) for first, second in pairs if _is_before(first, second, counts, chances)]
    graph: dict[int, set[int]] = {place: set() for pair in before for place in pair}
    for first, second in before:
        graph[first].add(second)
    levels: dict[int, int] = {}
    try:
        for place in TopologicalSorter(graph).static_order():
            levels[place] = max((levels[below] + 1 for below in graph[place]), default=0)
    except CycleError:
        return [], 0
    against = [(low, high) for high in levels for low in levels if levels[high] > levels[low]]
    if not levels or any(_at_least(counts[pair], counts[pair] + counts[pair[::-1]], 0.5) < CHANCE for pair in against):
        return [], 0
    rules = []
    for place in sorted(levels, key=lambda place: -levels[place]):
        below, above = sorted(graph[place]), sorted(other for other in graph if place in graph[other])
        evidence = {
            "passed": {names[other]: [int(counts[place, other]), int(counts[other, place])] for other in below},
            "passed_by": {names[other]: [int(counts[other, place]), int(counts[place, other])] for other in above},
        }
        how_often = ", ".join(f"{names[other]} ({counts[place, other]:,} : {counts[other, place]:,})" for other in below)
        words = (
            f"{field} {names[place]}: before {how_often}: jobs that passed ones that were no larger and no longer, "
            "and the other way round"
        )
        value = levels[place] / max(levels.values())
        rules.append(InferredRule("priority", field, names[place], value, evidence, words if below else ""))
    return rules, int(sum(counts[pair] for pair in before))


def _is_before(first: int, second: int, counts: IntArray, chances: FloatArray) -> bool:
    """Return whether one queue overtakes another one nearly always, and not only because its jobs differ in size."""
    forth, back = int(counts[first, second]), int(counts[second, first])
    if forth < max(FEWEST, ONE_WAY * (forth + back)) or _at_least(forth, forth + back, 0.5) >= CHANCE:
        return False
    # A queue of large jobs has more chances; where the other way has none, an order by size looks like one by queue.
    expected = chances[first, second] / (chances[first, second] + chances[second, first])
    return _at_least(forth, forth + back, expected) < CHANCE


def _at_least(number: int, of: int, chance: float) -> float:
    """Return how likely it is that so many or more of some go one way (a one-sided sign test)."""
    from scipy.special import bdtrc

    return float(bdtrc(number - 1, of, chance)) if number else 1.0


def _overtaking(log: RecordedSchedule, code: IntArray, held: BoolArray, classes: int) -> tuple[IntArray, BoolArray, FloatArray]:
    """Return by pairs of queues how many jobs overtook, whether those overtaken are of several users, and how many pairs of
    jobs there are of which one could have overtaken the other.

    Of the jobs that overtook and those that were overtaken, the fewer count: a job that waits while a hundred others pass is
    one.
    """
    order = np.argsort(log.submit, kind="stable")
    order = order[code[order] >= 0]
    submit, start, estimate = (column[order] for column in (log.submit, log.start, log.estimate))
    code, nodes, user, idle_after = code[order], log.nodes[order], log.user[order], log.idle_at(start)
    can_wait = (start - submit > LEAST_WAIT_S) & ~held[order]
    is_of = np.eye(classes, dtype=np.float32)[code]
    overtook, overtaken = np.zeros_like(is_of, dtype=bool), np.zeros_like(is_of, dtype=bool)
    chances = np.zeros((classes, classes))
    # Of logs with very long queues, every second, third, ... job.
    queued = np.searchsorted(submit, submit) - np.searchsorted(np.sort(start), submit)
    every = -(-int(queued.sum()) // _MOST_PAIRS) or 1
    waiting = np.empty(0, dtype=np.int64)
    for begin in range(0, len(order), _BLOCK):
        later = np.arange(begin, min(begin + _BLOCK, len(order)))
        waiting = np.concatenate([waiting[start[waiting] > submit[begin]], later[can_wait[later]]])
        later = later[::every]
        arrived, queue = later[:, None], waiting[None, :]
        could = (submit[queue] < submit[arrived]) & (start[queue] > submit[arrived])
        could &= (nodes[queue] <= nodes[arrived]) & (estimate[queue] <= estimate[arrived])
        did = could & (start[arrived] < start[queue]) & (nodes[queue] > idle_after[arrived])
        chances += is_of[later].T @ could.astype(np.float32) @ is_of[waiting]
        overtook[later] = did.astype(np.float32) @ is_of[waiting] > 0
        overtaken[waiting] |= did.T.astype(np.float32) @ is_of[later] > 0
    counts, of_several = np.zeros((classes, classes), dtype=np.int64), np.zeros((classes, classes), dtype=bool)
    for first, second in np.ndindex(classes, classes):
        passed = user[overtaken[:, first] & (code == second)]
        counts[first, second] = min(len(passed), (overtook[:, second] & (code == first)).sum())
        by_user = np.unique(passed, return_counts=True)[1]
        of_several[first, second] = first != second and len(by_user) >= _USERS and 2 * by_user.max() <= len(passed)
    return counts, of_several, chances
