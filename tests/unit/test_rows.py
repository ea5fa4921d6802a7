"""The rows of the machine refuse what is impossible, and say which job, which row and why."""

from collections.abc import Callable

import pytest

from clustermodel import Checkpointing, DecisionError, Job, Machine, Scenario, TimeSlicing, Workload
from clustermodel.experiment.result import Result
from clustermodel.machine.node_set import NodeSet
from clustermodel.policies.interface import Decision, Migrate, Place, Rows, Setup, Start
from clustermodel.policies.view import Batch, QueuedJob, View
from clustermodel.sim.time_sharing.shared_nodes import MatrixRows

Says = Callable[[QueuedJob, QueuedJob], list[Decision]]


class Scripted:
    """A policy that decides once, when two jobs are submitted."""

    name = "scripted"

    def __init__(self, decisions: Says) -> None:
        self._decisions = decisions

    def start(self, setup: Setup) -> object:
        return self

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        if not batch.submitted:
            return []
        first, second = batch.submitted
        return self._decisions(first, second)


def play(decisions: Says, *, limit: int | None = None, fidelity: str = "fast") -> Result:
    """Let a policy decide about job 1 of one node and job 2 of two, on a machine of three nodes and two rows."""
    machine = Machine(
        nodes=3,
        time_slicing=TimeSlicing(quantum_s=10, mpl=2),
        checkpointing=Checkpointing(max_tasks_per_slice=limit),
    )
    jobs = [Job(id=number, nodes=number, submit_s=0, run_s=5) for number in (1, 2)]
    scenario = Scenario(
        machine=machine,
        workload=Workload.from_jobs(jobs),
        policy=Scripted(decisions),
        fidelity=fidelity,  # type: ignore[arg-type]
    )
    return scenario.run()


def refusal(decisions: Says, *, limit: int | None = None) -> str:
    """Return why the decisions are refused, which is the same on both fidelities."""
    reasons = set()
    for fidelity in ("fast", "node"):
        with pytest.raises(DecisionError) as refused:
            play(decisions, limit=limit, fidelity=fidelity)
        reasons.add(str(refused.value))
    (reason,) = reasons
    return reason


def rows(*places: Place, migrations: tuple[tuple[tuple[QueuedJob, ...], tuple[QueuedJob, ...]], ...] = ()) -> list[Decision]:
    return [Rows(places=places, migrations=migrations)]


def both(first: QueuedJob, second: QueuedJob) -> list[Decision]:
    return rows(Place(first, (0, 1), (0,)), Place(second, (1, 3), (0,)))


def test_the_script_that_others_are_variations_of_is_possible() -> None:
    assert play(both).jobs["end_s"].tolist() == [5, 5]


@pytest.mark.parametrize("row", [-1, 2, 99])
def test_a_row_beyond_the_multiprogramming_level(row: int) -> None:
    expected = f"policy scripted: job 1 cannot run in row {row}: the multiprogramming level is 2"
    assert refusal(lambda first, _: rows(Place(first, (0, 1), (row,)))) == expected
    assert refusal(lambda first, second: [*both(first, second), *rows(Place(first, (0, 1), (0, row)))]) == expected


@pytest.mark.parametrize("columns", [(), (0, 1), (0, 3), (2, 4), (-1, 1), (0, 1, 1), (1, 0, 2, 3), (0, 1, 0, 1)])
def test_columns_that_are_not_a_set_of_as_many_nodes_of_the_machine(columns: NodeSet) -> None:
    assert refusal(lambda _, second: rows(Place(second, columns, (0,)))) == (
        f"policy scripted: job 2 cannot start in row 0 on columns {columns!r}: "
        "they must be ascending ranges, (low, high, ...), of 2 nodes in all"
    )
    if columns != (0, 1):
        assert refusal(lambda first, second: [*both(first, second), *rows(Place(second, columns, (1,)))]) == (
            f"policy scripted: job 2 cannot migrate to columns {columns!r}: its gang needs 2 nodes"
        )


ALONE = "nodes cannot be shared in time while 1 of 3 are held without a row; a policy starts either all jobs in rows or none"


@pytest.mark.parametrize(
    ("decisions", "message"),
    [
        (
            lambda first, second: rows(Place(first, (1, 2), (0,)), Place(second, (0, 2), (0,))),
            "job 2 cannot run in row 0 on columns 0-1: not all of them are free there",
        ),
        (
            lambda first, second: rows(Place(first, (0, 1), (0, 1)), Place(second, (0, 2), (1,))),
            "job 1 cannot run in row 1 on columns 0: not all of them are free there",
        ),
        (
            lambda first, second: [*both(first, second), *rows(Place(first, (0, 1), ()))],
            "job 1 is left in no row: each running gang must be in at least one",
        ),
        (
            lambda first, _: rows(Place(first, (0, 1), (0,)), Place(first, (0, 1), (1,))),
            "job 1 has two places in one decision",
        ),
        (
            lambda first, second: [
                *rows(Place(first, (0, 1), (0,))),
                *rows(Place(first, (2, 3), (0,)), migrations=(((first,), (second,)),)),
            ],
            "job 2 cannot wait for a migration: it is not running",
        ),
        (
            lambda first, second: [*both(first, second), Migrate(moves=((first, (2, 3)),))],
            "job 1 cannot migrate without a row: nodes are shared in time, use Rows",
        ),
        (lambda first, second: [Start(job=first), *rows(Place(second, (1, 3), (0,)))], ALONE),
        (lambda first, _: [Start(job=first), *rows(Place(first, (0, 1), (0,)))], ALONE),
        (
            lambda first, second: [*rows(Place(second, (1, 3), (0,))), Start(job=first)],
            "job 1 cannot start without a row: nodes are shared in time, and none is idle",
        ),
    ],
)
def test_what_is_impossible_in_rows(decisions: Says, message: str) -> None:
    assert refusal(decisions) == f"policy scripted: {message}"


def test_all_gangs_leave_rows_before_one_enters() -> None:
    # They change places; migration is free.
    exchanged = play(
        lambda first, second: [*both(first, second), *rows(Place(first, (2, 3), (0,)), Place(second, (0, 2), (0,)))]
    )
    assert exchanged.jobs["end_s"].tolist() == [5, 5]
    # Both run alone in a slice of ten seconds.
    apart = play(lambda first, second: [*both(first, second), *rows(Place(first, (0, 1), (1,)))])
    assert apart.jobs["end_s"].tolist() == [10, 5]


def test_more_tasks_than_q_in_a_slice() -> None:
    def migrates(first: QueuedJob, second: QueuedJob, row: int = 0) -> list[Decision]:
        return [*both(first, second), *rows(Place(first, (2, 3), (0,)), Place(second, (0, 2), (row,)))]

    assert refusal(migrates, limit=2) == "policy scripted: 3 tasks would migrate in a slice of row 0: at most Q = 2 can"
    assert refusal(migrates, limit=0) == "policy scripted: 3 tasks would migrate in a slice of row 0: at most Q = 0 can"
    assert play(migrates, limit=3).jobs["end_s"].tolist() == [5, 5]
    # In different slices both can.
    apart = play(lambda first, second: migrates(first, second, 1), limit=2)
    assert apart.jobs["end_s"].tolist() == [5, 10]


def test_an_empty_matrix_has_no_rotation() -> None:
    rows = MatrixRows(Machine(nodes=3, time_slicing=TimeSlicing(mpl=4)))
    assert rows.rotation() == []
    rows.held[:] = [1, 0, 2, 3]  # nodes in use in each row
    rows.last = 2
    assert rows.rotation() == [3, 0, 2]
    rows.last = 3
    assert rows.rotation() == [0, 2, 3]
    rows.last = -1
    assert rows.rotation() == [0, 2, 3]
