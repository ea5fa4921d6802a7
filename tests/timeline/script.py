"""A policy that plays a script: at which second it decides what about which job."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from clustermodel import Batch, DecisionError, Kill, Start, View
from clustermodel.machine.node_set import NodeSet
from clustermodel.policies.interface import Checkpoint, Decision, Migrate, Place, Resize, Rows, Setup, Suspend, WakeAt
from clustermodel.policies.view import QueuedJob, RunningJob
from clustermodel.ticks import TICKS_PER_SECOND, to_ticks
from tests.timeline.timeline import play_quietly

Order = Callable[[Mapping[int, QueuedJob]], Decision]
"""A line of a script: it makes the decision from the jobs in the system, by id."""


def _order(kind: type[Any], job: int, **fields: object) -> Order:
    return lambda jobs: kind(job=jobs[job], **fields)


def start(job: int, *, columns: NodeSet | None = None, row: int | None = None, **fields: Any) -> Order:
    """Start a job, on nodes of its own or in a row."""
    if row is None:
        return lambda jobs: Start(job=jobs[job], columns=columns, **fields)
    assert columns is not None
    return place({job: (columns, row)}, **fields)


def place(
    places: Mapping[int, tuple[Any, ...]], *, migrations: Sequence[tuple[Sequence[int], Sequence[int]]] = (), **fields: Any
) -> Order:
    """Say where jobs run: job -> columns, home row and further rows."""
    return lambda jobs: Rows(
        places=tuple(Place(jobs[job], columns, tuple(rows), **fields) for job, (columns, *rows) in places.items()),
        migrations=tuple(
            (tuple(map(jobs.__getitem__, moves)), tuple(map(jobs.__getitem__, waits))) for moves, waits in migrations
        ),
    )


kill = partial(_order, Kill, requeue=True)
abort = partial(_order, Kill)
checkpoint = partial(_order, Checkpoint)
suspend = partial(_order, Suspend)
resize = partial(_order, Resize)


def migrate(moves: Mapping[int, NodeSet]) -> Order:
    """Move jobs to other nodes of their own."""
    return lambda jobs: Migrate(moves=tuple((jobs[job], columns) for job, columns in moves.items()))


def then(jobs: Mapping[int, QueuedJob]) -> Decision:
    """End a scheduling cycle; what follows is decided in the next cycle of the same instant."""
    raise NotImplementedError


Timetable = Mapping[int, Sequence[Order]] | Mapping[float, Sequence[Order]]
"""Seconds -> what is decided then, in order."""


class Script:
    """Decides what its script says when it says so, nothing else, and notes what ``watch`` sees of each running gang."""

    name: Final = "script"
    takes_resizes: Final = True

    def __init__(self, script: Timetable, watch: Callable[[View, RunningJob], object] | None = None) -> None:
        self._script = {to_ticks(second): orders for second, orders in script.items()}
        self._watch = watch

    def start(self, setup: Setup) -> object:
        self._now, self._left = -1, list[Order]()
        self.waiting: dict[float, list[int]] = {}
        """Seconds -> the jobs that wait, in queue order, in the last scheduling cycle then."""
        self.seen: dict[float, dict[int, object]] = {}
        """Seconds -> what has been noted of each running gang in the last scheduling cycle then."""
        return self

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        if view.now != self._now:
            assert not self._left, f"there was no other cycle at {self._now / TICKS_PER_SECOND:g} s"
            self._now, self._left = view.now, list(self._script.get(view.now, ()))
        second = view.now / TICKS_PER_SECOND
        self.waiting[second] = list(view.waiting)
        if self._watch is not None:
            self.seen[second] = {job: self._watch(view, gang) for job, gang in view.running.items()}
        cycle = self._left.index(then) if then in self._left else len(self._left)
        orders, self._left = self._left[:cycle], self._left[cycle + 1 :]
        jobs = {**view.waiting, **{job: gang.job for job, gang in view.running.items()}}
        later = min((time for time in self._script if time > view.now), default=None)
        return [*(order(jobs) for order in orders), WakeAt(time=later)]


def refusal(nodes: int, jobs: str, script: Timetable, **machine: Any) -> str:
    """Return why a decision of a script is refused, which is the same on both fidelities."""
    reasons = set()
    for fidelity in ("fast", "node"):
        try:
            play_quietly(nodes, jobs, Script(script), fidelity=fidelity, **machine)
        except DecisionError as refused:
            reasons.add(str(refused))
        else:
            raise AssertionError("nothing is refused")
    (reason,) = reasons
    return reason.removeprefix("policy script: ")
