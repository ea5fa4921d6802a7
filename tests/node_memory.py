"""The memory that jobs have on each node, worked out from the records of a run alone."""

from collections.abc import Iterator, Sequence

from clustermodel.experiment.result import Result
from clustermodel.machine.node_set import members
from clustermodel.measure.job_table import executed
from clustermodel.measure.timeline import GangPlacement, gangs_in_matrix, gangs_in_space
from clustermodel.policies.interface import Decision, Kill, Policy, Setup, decide_of
from clustermodel.policies.registry import make_policy
from clustermodel.policies.view import Batch, View
from clustermodel.recording.run_attempts import Status


class Noted:
    """A policy, of which it is written down when it discards what is suspended of waiting jobs."""

    def __init__(self, policy: str) -> None:
        self._policy: Policy = make_policy(policy)
        self.name = self._policy.name
        self.discarded: dict[int, list[int]] = {}

    def start(self, setup: Setup) -> object:
        self.discarded.clear()
        self._decide = decide_of(self._policy, setup)
        return self

    def decide(self, batch: Batch, view: View) -> Sequence[Decision]:
        decisions = list(self._decide(batch, view))
        for decision in decisions:
            if isinstance(decision, Kill) and decision.job.id in view.waiting:
                self.discarded.setdefault(decision.job.id, []).append(view.now)
        return decisions


def most_memory(result: Result, discarded: dict[int, list[int]] | None = None) -> list[int]:
    """Return the most memory that tasks have at a time on each node, KiB.

    A running gang has its memory from its start to the end of the run attempt, and a job that has been suspended on its last
    nodes until it starts again, one of these nodes fails, or what is saved of it is discarded.  While a suspended job is
    restored elsewhere, its old nodes are left out: nothing in the records says until when it is there.

    Args:
        result: of a run with a history.
        discarded: id of a job -> when a policy has discarded what was suspended of it, ticks.
    """
    intervals: set[tuple[int, int, int, int]] = set()  # node, job, from, until
    places: dict[tuple[int, int], GangPlacement] = {}  # (job, attempt) -> the last one
    for place in _placements(result):
        for node in members(place.columns):
            intervals.add((node, place.job, place.begin, place.end))
        known = places.get((place.job, place.attempt))
        if known is None or place.end > known.end:
            places[place.job, place.attempt] = place
    starts = {(job, number): start for job, number, start, _, _ in _attempts(result)}
    ids = result.records.column("id").tolist()
    for job, number, _, ended_as, spent in _attempts(result):
        place = places.get((job, number))
        if ended_as is not Status.SUSPENDED or not spent or place is None:
            continue
        failed = [time for node, time in _failures(result) if node in members(place.columns) and time >= place.end]
        told = [time for time in (discarded or {}).get(ids[job], ()) if time >= place.end]
        until = min([starts.get((job, number + 1), result.ledger.end), *failed, *told])
        intervals |= {(node, job, place.end, until) for node in members(place.columns)}
    memory = result.records.column("memory").clip(min=0).tolist()
    return [_most([one for one in intervals if one[0] == node], memory) for node in range(result.machine.nodes)]


def _placements(result: Result) -> list[GangPlacement]:
    if result.slices is None:
        return gangs_in_space(result.records)
    return gangs_in_matrix(result.records, result.history, result.ledger.end)


def _attempts(result: Result) -> Iterator[tuple[int, int, int, Status, int]]:
    """Yield job, number, start, outcome and executed ticks of each run attempt."""
    runs = result.records.runs
    numbers: dict[int, int] = {}
    for job, start, ended_as, spent in zip(
        *(column.tolist() for column in (runs.job, runs.start, runs.ended_as, executed(result.records))), strict=True
    ):
        numbers[job] = numbers.get(job, 0) + 1
        yield job, numbers[job], start, Status(ended_as), spent


def _failures(result: Result) -> list[tuple[int, int]]:
    outages = result.records.outages
    return list(zip(outages.node.tolist(), outages.start.tolist(), strict=True))


def _most(intervals: list[tuple[int, int, int, int]], memory: list[int]) -> int:
    most = 0
    for _, _, begin, end in intervals:
        if begin < end:
            there = {job for _, job, since, until in intervals if since <= begin < until}
            most = max(most, sum(memory[job] for job in there))
    return most
