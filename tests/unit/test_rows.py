"""The rows of the machine refuse what is impossible, and say which job, which row and why."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clustermodel import Checkpointing, DecisionError, Job, Machine, Scenario, TimeSlicing, Workload
from clustermodel.experiment.result import Result
from clustermodel.policies.interface import Decision, Migrate, Rehome, Replicate, Setup, Start, Withdraw
from clustermodel.policies.view import Batch, QueuedJob, View
from clustermodel.schedule.node_set import NodeSet
from clustermodel.sim.time_sharing.matrix_rows import MatrixRows

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


def both(first: QueuedJob, second: QueuedJob) -> list[Decision]:
    return [Start(job=first, columns=(0, 1), row=0), Start(job=second, columns=(1, 3), row=0)]


def test_the_script_that_others_are_variations_of_is_possible() -> None:
    assert play(both).jobs["end_s"].tolist() == [5, 5]


@pytest.mark.parametrize("row", [-1, 2, 99])
def test_a_row_beyond_the_multiprogramming_level(row: int) -> None:
    expected = f"policy scripted: job 1 cannot run in row {row}: the multiprogramming level is 2"
    assert refusal(lambda first, _: [Start(job=first, columns=(0, 1), row=row)]) == expected
    assert refusal(lambda first, second: [*both(first, second), Replicate(job=first, row=row)]) == expected
    assert refusal(lambda first, second: [*both(first, second), Withdraw(job=first, row=row)]) == (
        f"policy scripted: job 1 cannot be withdrawn from row {row}: it is not in it"
    )
    assert refusal(lambda first, second: [*both(first, second), Rehome(job=first, row=row)]) == (
        f"policy scripted: job 1 cannot have its home in row {row}: it is not in it"
    )


@pytest.mark.parametrize("columns", [None, (), (0, 1), (0, 3), (2, 4), (-1, 1), (0, 1, 1), (1, 0, 2, 3), (0, 1, 0, 1)])
def test_columns_that_are_not_a_set_of_as_many_nodes_of_the_machine(columns: NodeSet | None) -> None:
    assert refusal(lambda _, second: [Start(job=second, columns=columns, row=0)]) == (
        f"policy scripted: job 2 cannot start in row 0 on columns {columns!r}: "
        "they must be ascending ranges, (low, high, ...), of 2 nodes in all"
    )


def test_two_tasks_on_a_node_in_a_slice() -> None:
    assert refusal(
        lambda first, second: [Start(job=first, columns=(1, 2), row=0), Start(job=second, columns=(0, 2), row=0)]
    ) == ("policy scripted: job 2 cannot run in row 0 on columns 0-1: not all of them are free there")
    apart = [(0, 1), (0, 2)]
    assert refusal(
        lambda first, second: [
            Start(job=first, columns=apart[0], row=0),
            Start(job=second, columns=apart[1], row=1),
            Replicate(job=first, row=1),
        ]
    ) == ("policy scripted: job 1 cannot run in row 1 on columns 0: not all of them are free there")


def test_a_replica_where_the_gang_is_already() -> None:
    assert refusal(lambda first, second: [*both(first, second), Replicate(job=first, row=0)]) == (
        "policy scripted: job 1 cannot be replicated in row 0: it is in it already"
    )


def test_a_gang_that_is_left_in_no_row() -> None:
    assert refusal(lambda first, second: [*both(first, second), Withdraw(job=first, row=0)]) == (
        "policy scripted: job 1 is left in no row: each running gang must be in at least one"
    )


def test_a_gang_may_be_in_no_row_while_decisions_are_carried_out() -> None:
    result = play(
        lambda first, second: [
            *both(first, second),
            Withdraw(job=first, row=0),
            Replicate(job=first, row=1),
            Rehome(job=first, row=1),
        ]
    )
    # Both run alone in a slice of ten seconds: 0-5 row 0, 5-10 row 1.
    assert result.jobs["end_s"].tolist() == [10, 5]


def test_a_migration_of_a_gang_that_is_in_a_row() -> None:
    assert refusal(lambda first, second: [*both(first, second), Migrate(moves=((first, (2, 3)),), blocked=())]) == (
        "policy scripted: job 1 cannot migrate: it must be withdrawn from all its rows first"
    )


MIGRATIONS = [
    (),
    (0, 1),
    (0, 3),
    (2, 4),
    (0, 1, 1),
    (1, 0, 2, 3),
    (-1, 1),
]


@pytest.mark.parametrize("columns", MIGRATIONS)
def test_a_migration_to_columns_that_are_not_as_many_nodes_of_the_machine(columns: NodeSet) -> None:
    assert (
        refusal(
            lambda first, second: [
                *both(first, second),
                Withdraw(job=second, row=0),
                Migrate(moves=((second, columns),), blocked=()),
                Replicate(job=second, row=1),
            ]
        )
        == f"policy scripted: job 2 cannot migrate to columns {columns!r}: its gang needs 2 nodes"
    )


def test_more_tasks_than_q_in_a_slice() -> None:
    def migrates(first: QueuedJob, second: QueuedJob) -> list[Decision]:
        return [
            *both(first, second),
            Withdraw(job=first, row=0),
            Withdraw(job=second, row=0),
            Migrate(moves=((first, (2, 3)), (second, (0, 2))), blocked=()),
            Replicate(job=first, row=0),
            Replicate(job=second, row=0),
        ]

    assert refusal(migrates, limit=2) == "policy scripted: 3 tasks would migrate in a slice of row 0: at most Q = 2 can"
    assert refusal(migrates, limit=0) == "policy scripted: 3 tasks would migrate in a slice of row 0: at most Q = 0 can"
    assert play(migrates, limit=3).jobs["end_s"].tolist() == [5, 5]
    # In different slices both can.
    assert play(lambda first, second: [*migrates(first, second)[:-1], Replicate(job=second, row=1)], limit=2).jobs[
        "end_s"
    ].tolist() == [
        5,
        10,
    ]


@pytest.mark.parametrize(
    ("make", "action"), [(Replicate, "be replicated"), (Withdraw, "be withdrawn"), (Rehome, "have its home elsewhere")]
)
def test_a_decision_about_the_rows_of_a_job_that_has_none(make: Callable[..., Decision], action: str) -> None:
    assert refusal(lambda first, second: [Start(job=first, columns=(0, 1), row=0), make(job=second, row=0)]) == (
        f"policy scripted: job 2 cannot {action}: it is not running"
    )
    assert refusal(lambda first, _: [Start(job=first), make(job=first, row=0)]) == (
        "policy scripted: job 1 has no rows: it does not run in a time slice"
    )


def test_a_migration_that_blocks_a_job_that_does_not_run() -> None:
    assert refusal(
        lambda first, second: [
            Start(job=first, columns=(0, 1), row=0),
            Withdraw(job=first, row=0),
            Migrate(moves=((first, (2, 3)),), blocked=(second,)),
            Replicate(job=first, row=0),
        ]
    ) == ("policy scripted: job 2 cannot wait for a migration: it is not running")


def test_jobs_in_rows_and_jobs_with_nodes_of_their_own_do_not_mix() -> None:
    assert refusal(lambda first, second: [Start(job=first), Start(job=second, columns=(1, 3), row=0)]) == (
        "policy scripted: nodes cannot be shared in time while 1 of 3 are held without a row; "
        "a policy starts either all jobs in rows or none"
    )
    assert refusal(lambda first, second: [Start(job=second, columns=(1, 3), row=0), Start(job=first)]) == (
        "policy scripted: job 1 cannot start without a row: nodes are shared in time, and none is idle"
    )


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
