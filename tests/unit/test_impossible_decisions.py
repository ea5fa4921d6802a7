"""What a policy may not return, or give a decision: one line with the policy's name; and runs that would never end."""

from collections.abc import Callable
from itertools import count, repeat
from typing import Any

import pytest

import clustermodel as cm
from clustermodel.policies.view import View
from clustermodel.sim import node_failures

JOBS = cm.Workload.from_jobs([cm.Job(id=1, nodes=1, submit_s=0, run_s=100), cm.Job(id=2, nodes=1, submit_s=10, run_s=100)])


class Mine:
    """A policy of one function, which is asked from job 2 on; before, job 1 starts."""

    name = "mine"

    def __init__(self, decide: Callable[[View], Any]) -> None:
        self._decide = decide

    def start(self, setup: object) -> object:
        return self

    def decide(self, batch: object, view: View) -> Any:
        return self._decide(view) if view.now else [cm.Start(job=job) for job in view.waiting.values()]


def waiting(view: View) -> Any:
    return next(iter(view.waiting.values()))


@pytest.mark.parametrize(
    ("decide", "words"),
    [
        (lambda _: None, "decide returned nothing (None); it must return a list of decisions"),
        (lambda view: cm.Start(job=waiting(view)), "it must return a list of decisions"),
        (
            lambda view: repeat(cm.WakeAt(time=view.now + 1)),
            "decide yields more than 48 decisions in one cycle, which is the most with 2 jobs in the system",
        ),
        (
            lambda view: [cm.Rows(places=repeat(cm.Place(waiting(view), (0, 1), (0,))))],
            "Rows has more than 4 places, which is the most with 2 jobs in the system",
        ),
        (lambda view: [cm.Migrate(moves=repeat((waiting(view), (0, 1))))], "Migrate has more than 4 moves, which is the most"),
        (lambda _: [cm.Rows(places=(), migrations=repeat(((), ())))], "Rows has more than 4 migrations, which is the most"),
        (lambda view: [cm.Start(job=waiting(view), columns=count())], "they must be a list or a range of nodes, or ranges"),
        (lambda _: "start", "decide returned 'start'; it must return a list of decisions"),
        (lambda _: [None], "None is not a decision; it must be one of Start, "),
        (lambda _: [cm.Start(job=3)], "Start is given 3 as a job; it must be given the job, view.waiting[3] or gang.job"),
        (lambda view: [cm.Start(job=waiting(view), columns="0-1")], "job 2 cannot run on nodes '0-1': they must be a list or"),
        (lambda view: [cm.Start(job=waiting(view), columns=[1, 2])], "job 2 cannot start on 2 columns (1-2): its gang needs 1"),
        (lambda view: [cm.Start(job=waiting(view), columns=[-1])], "job 2 cannot start on columns"),
        (
            lambda view: [cm.Start(job=waiting(view), columns=(3,))],
            "job 2 cannot run on columns (3,): a tuple has the bounds of ",
        ),
        (lambda _: [cm.Reserve(job=None, start=5)], "Reserve is given None as a job"),
        (lambda _: [cm.Rows(places=None)], "Rows is given places None; they must be a tuple of Place(...)"),
        (lambda _: [cm.Rows(places=(3,))], "Rows is given a place 3; it must be Place(job, columns, rows)"),
        (lambda _: [cm.Rows(places=(cm.Place(3, (0, 1), (0,)),))], "Place is given 3 as a job"),
        (
            lambda view: [cm.Rows(places=(cm.Place(waiting(view), (0, 1), 0),))],
            "cannot run in rows 0: they are not a tuple of whole",
        ),
        (lambda view: [cm.Rows(places=(cm.Place(waiting(view), None, (0,)),))], "cannot run on nodes None: they must be a"),
        *(
            (lambda view, kind=kind: [kind(job=view.running[1])], f"{kind.__name__} is given the running gang of job 1; it")
            for kind in (cm.Start, cm.Kill, cm.Checkpoint, cm.Suspend)
        ),
        (lambda _: [cm.Migrate(moves=None)], "Migrate is given moves None"),
        (lambda _: [cm.Migrate(moves=(3,))], "they must be pairs (job, columns)"),
        (lambda view: [cm.Migrate(moves=((view.running[1], (0, 1)),))], "Migrate is given the running gang of job 1"),
        (lambda _: [cm.Migrate(moves=((3, (0, 1)),))], "Migrate is given 3 as a job"),
        (
            lambda view: [cm.Reserve(job=waiting(view), start=-1)],
            "job 2 cannot hold a reservation at -1: it is 10000000 already",
        ),
        (lambda view: [cm.Reserve(job=waiting(view), start=view.now - 1)], "job 2 cannot hold a reservation at 9999999"),
    ],
)
def test_what_is_no_decision_is_one_line_with_the_name_of_the_policy(decide: Callable[[View], Any], words: str) -> None:
    with pytest.raises(cm.DecisionError) as refused:
        cm.Scenario(machine=cm.Machine(nodes=4), workload=JOBS, policy=Mine(decide)).run()
    message = str(refused.value)
    assert message.startswith("policy mine: ")
    assert words in message
    assert "\n" not in message


def test_nodes_may_be_a_list_a_range_or_ranges_and_the_view_knows_the_idle_ones() -> None:
    idle = []

    def decide(view: View) -> list[cm.Start]:
        idle.append(view.idle_nodes())
        return [cm.Start(job=waiting(view), columns=next(columns))] if view.waiting else []

    jobs = cm.Workload.from_jobs([cm.Job(id=n, nodes=2 if n else 1, submit_s=n, run_s=9) for n in range(4)])
    columns = iter(([5, 2], range(3, 5), (6, 8)))
    result = cm.Scenario(machine=cm.Machine(nodes=8), workload=jobs, policy=Mine(decide)).run()
    assert [result.records.columns_of(n) for n in range(4)] == [(0, 1), (2, 3, 5, 6), (3, 5), (6, 8)]
    assert idle[:3] == [(1, 8), (1, 2, 3, 5, 6, 8), (1, 2, 6, 8)]


def test_a_tuple_of_nodes_is_told_from_ranges() -> None:
    four = cm.Workload.from_jobs([cm.Job(id=1, nodes=4, submit_s=1, run_s=9)])
    policy = Mine(lambda view: [cm.Start(job=job, columns=(0, 1, 2, 3)) for job in view.waiting.values()])
    with pytest.raises(
        cm.DecisionError,
        match=r"^policy mine: job 1 cannot run on columns \(0, 1, 2, 3\): a tuple has the bounds of ranges, \(first, after the "
        r"last, ...\); nodes are a list, \[0, 1, 2, 3\]$",
    ):
        cm.Scenario(machine=cm.Machine(nodes=4), workload=four, policy=policy).run()


class Old:
    name = "old"

    def begin(self, setup: object) -> None: ...

    def decide(self, batch: object, view: View) -> Any: ...


class Nameless:
    def start(self, setup: object) -> object: ...


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (Old(), "begin is called start now, and must return the run: self, if the policy itself has decide"),
        (Nameless(), "it must be a name, an object with name and start, or a function of setup"),
    ],
)
def test_what_is_no_policy_is_refused_in_one_line(policy: Any, words: str) -> None:
    with pytest.raises(cm.SpecificationError, match=rf"^policy: <.* is not allowed; {words}$"):
        cm.Scenario(machine=cm.Machine(nodes=4), workload=JOBS, policy=policy)


def test_a_start_that_returns_no_run_is_one_line() -> None:
    def forgetful(setup: object) -> None:
        """Return nothing."""

    with pytest.raises(
        cm.SpecificationError, match=r"^policy forgetful: start returned None; it must return the run, an object "
    ):
        cm.Scenario(machine=cm.Machine(nodes=4), workload=JOBS, policy=forgetful).run()


def test_a_policy_that_kills_a_job_again_and_again_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def decide(view: View) -> list[Any]:
        return [
            *(cm.Kill(job=gang.job, requeue=True) for gang in view.running.values()),
            *(cm.Start(job=job) for job in view.waiting.values()),
            cm.WakeAt(time=view.now + 1),
        ]

    monkeypatch.setattr(node_failures, "MOST_ATTEMPTS", 50)
    with pytest.raises(
        cm.SpecificationError, match=r"^policy mine: job \d \(1 node, 100 s\) has been started 50 times"
    ) as refused:
        cm.Scenario(machine=cm.Machine(nodes=4), workload=JOBS, policy=Mine(decide)).run()
    assert "let preemption keep its work" in str(refused.value)


@pytest.mark.parametrize("interval_s", [10, "own", "daly"])
def test_no_periodic_checkpoints_where_the_store_takes_no_tasks(interval_s: float | str) -> None:
    with pytest.raises(cm.SpecificationError, match=r"^Checkpointing.interval_s: .* is not allowed with max_tasks_per_slice=0"):
        cm.Checkpointing(checkpoint_s=1, interval_s=interval_s, max_tasks_per_slice=0)


@pytest.mark.parametrize("policy", ["bgs", "mbgs"])
def test_an_undivided_gang_that_is_restored_counts_in_rows_that_come_into_use(policy: str) -> None:
    jobs = [
        cm.Job(id=number, nodes=nodes, submit_s=submit, run_s=100, priority=priority)
        for number, nodes, submit, priority in ((111, 1, 0, 0), (759, 4, 0, -1), (958, 8, 17, 1))
    ]
    machine = cm.Machine(
        nodes=8,
        kill_at_estimate=False,
        time_slicing=cm.TimeSlicing(quantum_s=10, mpl=2),
        checkpointing=cm.Checkpointing(restart_s=3, max_tasks_per_slice=4),
    )
    result = cm.Scenario(machine=machine, workload=cm.Workload.from_jobs(jobs), policy=f"{policy}:urgent=checkpoint").run()
    assert result.summary().preempted == 2


@pytest.mark.parametrize(("interval_s", "checkpoint_s", "estimate_s"), [(20, 30, 600), (20, 30, 1000), (10, 3, 10_000)])
def test_a_job_saved_in_a_test_run_gives_up_its_reservation_of_another_size(
    interval_s: float, checkpoint_s: float, estimate_s: float
) -> None:
    jobs = [
        cm.Job(id=565, nodes=1, submit_s=0, run_s=500),
        cm.Job(id=750, nodes=3, submit_s=0, run_s=2000, estimate_s=10_000),
        cm.Job(id=779, nodes=2, submit_s=60, run_s=20, estimate_s=estimate_s, checkpoint_interval_s=1),
        cm.Job(id=140, nodes=2, submit_s=0, run_s=2000, estimate_s=20_000),
    ]
    costs = cm.Checkpointing(checkpoint_s=checkpoint_s, interval_s=interval_s)
    machine = cm.Machine(nodes=5, kill_at_estimate=False, checkpointing=costs)
    result = cm.Scenario(machine=machine, workload=cm.Workload.from_jobs(jobs), policy="1/L:test_runs=true,width=greedy").run()
    assert result.summary().jobs == 4


MACHINES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({"nodes": 4}, {}),
    "partitions": (
        {"nodes": 4, "partitions": (cm.Partition(name="a", nodes="0-1"), cm.Partition(name="b", nodes="2-3"))},
        {"partition": "a"},
    ),
    "reservations": ({"nodes": 4, "reservations": (cm.Reservation(nodes="0-1", start_s=1_000, end_s=2_000),)}, {}),
    "shapes": ({"nodes": 2, "processors_per_node": 2, "node_memory_gib": 4}, {"memory_gib": 1}),
    "speeds": (
        {"nodes": 4, "node_types": (cm.NodeType(name="x", nodes="0-1", speed=2.0), cm.NodeType(name="y", nodes="2-3"))},
        {},
    ),
}
"""Fields of the machine, and of its job."""
BEGIN: dict[str, Callable[[cm.QueuedJob, Any], Any]] = {
    "start": lambda job, columns: cm.Start(job=job, columns=columns),
    "rows": lambda job, columns: cm.Rows(places=(cm.Place(job, columns, (0,)),)),
}
CHANGE: dict[str, Callable[[cm.QueuedJob, Any], Any]] = {
    "rows": BEGIN["rows"],
    "migrate": lambda job, columns: cm.Migrate(moves=((job, columns),)),
    "resize": lambda job, columns: cm.Resize(job=job, nodes=None, columns=columns),
}


class Tolerant(Mine):
    """A policy of one function for every machine."""

    takes_partitions = takes_shapes = takes_reservations = takes_node_types = takes_resizes = True

    def decide(self, batch: object, view: View) -> Any:
        return self._decide(view)


@pytest.mark.parametrize(
    "columns", [[], range(0), [-1], (-1, 1), (1, 0), (0, 1, 1), (3, 9), [9], (0, 1, 2), (0, 2, 1, 3)], ids=str
)
@pytest.mark.parametrize("machine", MACHINES)
def test_columns_that_no_gang_can_have_are_refused_on_every_machine(machine: str, columns: Any) -> None:
    fields, of_job = MACHINES[machine]
    slices = {} if machine in {"shapes", "speeds"} else {"time_slicing": cm.TimeSlicing(quantum_s=10, mpl=2)}

    def refused(decide: Callable[[View], Any], **malleable: bool) -> None:
        jobs = cm.Workload.from_jobs([cm.Job(id=1, submit_s=0, nodes=1, run_s=10, **of_job, **malleable)])
        with pytest.raises(cm.DecisionError, match=r"^policy mine: job 1 "):
            cm.Scenario(machine=cm.Machine(**fields, **slices), workload=jobs, policy=Tolerant(decide)).run()

    for name, begin in BEGIN.items():
        if slices or name != "rows":
            refused(lambda view, begin=begin: [begin(job, columns) for job in view.waiting.values()])
    for name, change in CHANGE.items():
        if not slices and name == "rows":
            continue

        def in_turn(view: View, change: Callable[[cm.QueuedJob, Any], Any] = change, *, in_row: bool = name == "rows") -> Any:
            if not view.waiting:
                return [change(gang.job, columns) for gang in view.running.values()]
            begin = BEGIN["rows" if in_row else "start"]
            starts = [begin(job, (0, 1) if in_row else None) for job in view.waiting.values()]
            return [*starts, cm.WakeAt(time=view.now + 1_000_000)]

        refused(in_turn, **({"malleable": True} if name == "resize" else {}))


def test_a_job_that_never_gets_further_than_its_time_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = Mine(lambda view: [cm.Start(job=job, limit=1_000_000) for job in view.waiting.values()])
    monkeypatch.setattr(node_failures, "MOST_ATTEMPTS", 20)
    with pytest.raises(cm.SpecificationError, match=r"not completed, because its time limit ends before; give longer ones"):
        cm.Scenario(machine=cm.Machine(nodes=2), workload=JOBS, policy=policy).run()


@pytest.mark.parametrize(("given", "left_s"), [({"nodes": 2}, 40), ({"limit": 20_000_000}, 10), ({}, 90)])
def test_what_a_running_gang_is_expected_to_need_is_that_of_its_nodes_and_limit(given: dict[str, int], left_s: int) -> None:
    seen = []

    def decide(view: View) -> list[cm.Start]:
        if view.now == 10_000_000:
            seen.extend([view.expected_left()[1], view.running[1].expected_end - view.now])
        return [cm.Start(job=job, **given if view.now == 0 else {}) for job in view.waiting.values()]

    jobs = [cm.Job(id=1, submit_s=0, nodes=1, run_s=100), cm.Job(id=2, submit_s=10, nodes=1, run_s=5)]
    cm.Scenario(machine=cm.Machine(nodes=4), workload=cm.Workload.from_jobs(jobs), policy=Tolerant(decide)).run()
    assert seen == [left_s * 1_000_000] * 2
