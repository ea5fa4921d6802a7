"""Memory of the nodes, by hand: rows share it, suspended jobs keep it, failures free it; the same on both fidelities."""

from typing import Any, Final

import pytest

from clustermodel import Checkpointing, SpecificationError, TimeSlicing
from clustermodel.experiment.result import Result
from clustermodel.machine.recorded_outages import Outages
from clustermodel.measure.input_notes import run_notes
from tests.node_memory import most_memory
from tests.timeline.script import Order, Script, kill, migrate, place, refusal, start, suspend
from tests.timeline.test_selective_suspension import SHORT_BEHIND_LONG
from tests.timeline.timeline import play, play_both, spans, stopped

GIB: Final = 2**20
SLICES: Final = {"time_slicing": TimeSlicing(quantum_s=10, mpl=3)}


def rows(nodes: int, jobs: str, policy: str | Script, memory: float | None, **more: Any) -> Result:
    """Play on both fidelities in three rows of 10 s, and check that no node is over its memory."""
    result = play_both(nodes, jobs, policy, node_memory_gib=memory, **SLICES, **more)
    assert memory is None or max(most_memory(result)) <= memory * GIB
    return result


# Rows.

SHARED = "1 0 1 20 20 0 3\n2 0 1 20 20 0 2\n3 0 1 10 10 0 1"


def test_the_first_job_that_lacks_memory_blocks_the_others() -> None:
    # 1 leaves 1 GiB.  From 20 on 2 and 3 share the node, the row after that of 1 first: 20-30 job 3, 30-50 job 2.
    assert spans(rows(1, SHARED, "gs", 4)) == {1: (0, 20), 2: (20, 50), 3: (20, 30)}
    # With 6 GiB all share it: 1 2 3 in turn.
    assert spans(rows(1, SHARED, "gs", 6)) == spans(rows(1, SHARED, "gs", None)) == {1: (0, 40), 2: (0, 50), 3: (0, 30)}


def test_no_job_behind_gets_the_memory_that_a_job_waits_for() -> None:
    # 1 is predicted to end at 60, after its 20 s in one of three rows.  2 needs 2 GiB on both nodes, and is promised 60.
    # 3 would have 3 GiB of node 1 until 90; 4 has 2 GiB there, which it may.
    jobs = "1 0 1 20 20 0 3\n2 0 2 20 20 0 2\n3 0 1 30 30 0 3\n4 0 1 20 20 0 2"
    result = rows(2, jobs, "bgs", 4, explain=True)
    assert spans(result) == {1: (0, 20), 2: (20, 40), 3: (40, 70), 4: (0, 20)}
    assert "; it lacked memory on node 0\n" in f"{result.explain(2)}\n"
    assert "memory" not in str(result.explain(4))


def test_the_memory_that_a_job_waits_for_may_be_used_until_then() -> None:
    # 3 is predicted to end at 30.  From 20 on, 2 and 4 share node 1: 20-30 job 2, 30-40 job 4, 40-50 job 2.
    jobs = "1 0 1 20 20 0 3\n2 0 2 20 20 0 2\n3 0 1 10 10 0 3\n4 0 1 20 20 0 2"
    assert spans(rows(2, jobs, "bgs", 4)) == {1: (0, 20), 2: (20, 50), 3: (0, 10), 4: (10, 40)}


def test_a_job_needs_its_memory_once_whatever_rows_it_runs_in() -> None:
    # 1 has 3 of 4 GiB, and is replicated in the rows of 2 and 3 when these have ended.
    result = rows(2, "1 0 1 40 40 0 3\n2 0 1 5 5 0 4\n3 5 1 5 5 0 1", "bgs", 4)
    assert spans(result) == {1: (0, 40), 2: (0, 5), 3: (5, 10)}


def test_a_script_that_overfills_a_node_is_refused() -> None:
    both: list[Order] = [start(1, columns=(0, 1), row=0), start(2, columns=(0, 1), row=1)]
    assert refusal(1, SHARED, {0: both}, node_memory_gib=4, **SLICES) == (
        "node 0 has 4 GiB of memory, and jobs 1, 2 need 5 GiB there"
    )


def test_gangs_may_change_places_at_one_instant() -> None:
    # Neither fits beside the other.
    begin: list[Order] = [start(1, columns=(0, 1), row=0), start(2, columns=(1, 2), row=0)]
    change: list[Order] = [place({1: ((1, 2), 0), 2: ((0, 1), 0)})]
    result = rows(2, "1 0 1 20 20 0 3\n2 0 1 20 20 0 3", Script({0: begin, 5: change}), 4)
    assert spans(result) == {1: (0, 20), 2: (0, 20)}
    half: list[Order] = [place({1: ((1, 2), 1)})]
    assert refusal(2, "1 0 1 20 20 0 3\n2 0 1 20 20 0 3", {0: begin, 5: half}, node_memory_gib=4, **SLICES) == (
        "node 1 has 4 GiB of memory, and jobs 1, 2 need 6 GiB there"
    )


def test_a_failure_frees_memory() -> None:
    # Node 0 fails at 10: job 1 leaves node 1 too, where job 2 then has memory.
    failures = Outages(node=[0], down_s=[10], up_s=[100], nodes=2)
    result = rows(2, "1 0 2 20 20 0 3\n2 0 1 20 20 0 3", "bgs", 4, failures=failures)
    assert spans(result) == {1: (100, 120), 2: (10, 30)}


# Jobs that no node can hold, and jobs without a value.


def test_a_job_that_needs_more_than_a_node_has_is_rejected() -> None:
    result = play(2, "1 0 1 20 20 0 5\n2 0 1 20 20 0 4\n3 0 1 20 20\n4 0 3 20 20 0 9", "fcfs", node_memory_gib=4)
    assert result.jobs["status"].tolist() == ["rejected", "completed", "completed", "rejected"]
    assert [note.with_option() for note in run_notes([result])] == [
        "1 job is rejected: larger than the machine of 2 nodes, or of none; give a larger machine, or leave such jobs out "
        "(--nodes, --size 1:2)",
        "1 job is rejected because it needs more memory than the 4 GiB of a node; give nodes more memory (--node-memory)",
        "the memory of 1 of 4 jobs is unknown: they count as needing none; give such jobs a default (--default-memory)",
    ]
    assert all("memory" not in str(note) for note in run_notes([play(2, "1 0 1 20 20", "fcfs")]))


# Suspension on dedicated nodes and in rows.

TWO: Final = "1 0 1 30 30 0 3\n2 0 1 10 10 0 2"


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ({}, "job 2 cannot start: it needs 1 nodes with 2 GiB of free memory, and 0 of the 1 idle nodes have that"),
        ({"columns": (0, 1)}, "node 0 has 4 GiB of memory, and jobs 1 (suspended), 2 need 5 GiB there"),
        ({"columns": (0, 1), "row": 1}, "node 0 has 4 GiB of memory, and jobs 1 (suspended), 2 need 5 GiB there"),
    ],
)
def test_a_suspended_job_keeps_its_memory(where: dict[str, Any], reason: str) -> None:
    first = {**where, "row": 0} if "row" in where else where
    script = {0: [start(1, **first)], 5: [suspend(1)], 6: [start(2, **where)]}
    assert refusal(1, TWO, script, node_memory_gib=4, **SLICES) == reason


@pytest.mark.parametrize("row", [None, 0])
def test_what_is_suspended_may_be_discarded_for_its_memory(row: int | None) -> None:
    # 1 executes 0-5 for nothing.  2 runs 6-16, then 1 begins again.
    where = {"columns": (0, 1), "row": row}
    script = {0: [start(1, **where)], 5: [suspend(1)], 6: [kill(1), start(2, **where)], 16: [start(1, **where)]}
    result = play_both(1, TWO, Script(script), node_memory_gib=4, **SLICES)
    assert spans(result) == {1: (16, 46), 2: (6, 16)}
    assert stopped(result) == [(1, 0, 5, "suspended", 5)]


@pytest.mark.parametrize("row", [None, 0])
def test_a_job_restored_elsewhere_keeps_its_old_memory_until_then_and_needs_it_once_on_nodes_that_stay(row: int | None) -> None:
    # 1 is in the memory of nodes 0 and 1 and is restored on 1 and 2, 10-16; on node 1 it has 3 of 4 GiB, not 6.
    jobs, costs = "1 0 2 30 30 0 3\n2 0 1 10 10 0 2", {"checkpointing": Checkpointing(checkpoint_s=4, restart_s=2)}
    old, new, node_0 = ({"columns": columns, "row": row} for columns in ((0, 2), (1, 3), (0, 1)))
    script: dict[float, list[Order]] = {0: [start(1, **old)], 5: [suspend(1)], 10: [start(1, **new)]}
    early = refusal(3, jobs, {**script, 15: [start(2, **node_0)]}, node_memory_gib=4, **costs, **SLICES)
    assert early == "node 0 has 4 GiB of memory, and jobs 1, 2 need 5 GiB there"
    result = play_both(3, jobs, Script({**script, 17: [start(2, **node_0)]}), node_memory_gib=4, **costs, **SLICES)
    assert spans(result) == {1: (10, 41), 2: (17, 27)}


def test_dedicated_gangs_move_with_their_memory() -> None:
    # 1 is suspended on node 0, 2 moves from node 1 to node 2; 3 then has 3 GiB on node 1, not beside 1.
    jobs = "1 0 1 30 30 0 3\n2 0 1 30 30 0 3\n3 0 1 10 10 0 3"
    script = {0: [start(1), start(2)], 5: [suspend(1)], 6: [migrate({2: (2, 3)}), start(3)], 50: [start(1)]}
    result = play(3, jobs, Script(script), node_memory_gib=4)
    assert spans(result) == {1: (50, 75), 2: (0, 30), 3: (6, 16)}
    assert max(most_memory(result)) == 3 * GIB


# Policies that suspend.


@pytest.mark.parametrize(("memory", "how"), [(4, "preempted"), (5, "suspended")])
def test_pv_easy_suspends_what_fits_beside_the_blocked_job(memory: int, how: str) -> None:
    # At 10, 1 ends, and 2 gets the nodes of 3, which has ventured.
    jobs = "1 0 2 10 10 0 1\n2 1 4 10 10 0 2\n3 2 2 30 30 0 3"
    result = play(4, jobs, "pv-easy:mode=suspend", node_memory_gib=memory)
    assert [attempt[3] for attempt in stopped(result)] == [how]
    assert spans(result)[2] == (10, 20)


def test_pv_easy_discards_what_is_suspended_of_jobs_behind_the_first() -> None:
    # At 10, 3 is suspended for 2, whose end at 20 lets 4 start; 4 has a higher priority than 3, and needs all memory.
    jobs = "1 0 2 10 10 0 1\n2 1 4 10 10 0 2\n3 2 4 30 30 -1 2\n4 15 4 10 10 0 4"
    result = play(4, jobs.replace("3 2 4", "3 2 2"), "pv-easy:mode=suspend", node_memory_gib=4)
    assert stopped(result) == [(3, 2, 10, "suspended", 8)]
    assert spans(result) == {1: (0, 10), 2: (10, 20), 3: (30, 60), 4: (20, 30)}


@pytest.mark.parametrize(("memory", "suspends"), [(4, False), (6, True)])
def test_selective_suspension_asks_for_the_memory_of_both(memory: int, suspends: bool) -> None:
    jobs = "\n".join(f"{line} {line.split()[3]} 0 3" for line in SHORT_BEHIND_LONG.strip().splitlines())
    result = play(4, jobs, "ss", node_memory_gib=memory)
    without = play(4, SHORT_BEHIND_LONG, "ss", suspended_per_node=None if suspends else 0)
    assert spans(result) == spans(without)
    assert bool(stopped(result)) is suspends


@pytest.mark.parametrize(("second", "how", "resumes"), [(2, "suspended", 15), (3, "preempted", 15)])
def test_an_urgent_job_suspends_what_fits_beside_it(second: int, how: str, resumes: int) -> None:
    # 2 has the node 5-15; then 1 has 25 s left if it was suspended, else 30.
    result = rows(1, f"1 0 1 30 30 0 2\n2 5 1 10 10 1 {second}", "bgs:urgent=suspend", 4)
    assert [attempt[3] for attempt in stopped(result)] == [how]
    assert spans(result) == {1: (resumes, 40 if how == "suspended" else 45), 2: (5, 15)}


def test_an_urgent_job_discards_what_is_suspended_of_jobs_of_lower_priority() -> None:
    # 1 is suspended for 2 at 5.  3 needs 3 GiB at 8: 2 is killed, and what is saved of 1 is discarded.
    jobs = "1 0 1 30 30 0 2\n2 5 1 10 10 1 2\n3 8 1 10 10 2 3"
    result = play_both(1, jobs, "bgs:urgent=suspend", node_memory_gib=4, **SLICES)
    assert stopped(result) == [(1, 0, 5, "suspended", 5), (2, 5, 8, "preempted", 3)]
    assert spans(result) == {1: (28, 58), 2: (18, 28), 3: (8, 18)}


def test_jobs_that_wait_for_memory_that_others_keep_do_not_wait_for_ever() -> None:
    # One row.  2 waits for the end of 4 at 5; 1 is backfilled and suspended for 3, 3-13.  Then 2 needs the memory that 1 keeps,
    # and 1 the node that was reserved for 2: 1 goes on first.
    jobs = "4 0 2 5 5 1 1\n2 1 3 30 30 0 4\n1 1.5 1 3 3 0 3\n3 3 1 10 10 2 1"
    one_row = TimeSlicing(quantum_s=10, mpl=1)
    result = play_both(3, jobs, "bgs:urgent=suspend", node_memory_gib=4, time_slicing=one_row)
    assert stopped(result) == [(1, 1.5, 3, "suspended", 0)]
    assert spans(result) == {1: (13, 14.5), 2: (14.5, 44.5), 3: (3, 13), 4: (0, 5)}


# The memory in use.


def test_the_memory_in_use_is_logged_and_drawn() -> None:
    # In slices of 10 s: 1 has 3 GiB of node 0 until 10, 2 has 1 GiB of both nodes until 30.
    result = play(2, "1 0 1 10 10 0 3\n2 0 2 20 20 0 1", "gs", node_memory_gib=4, **SLICES)
    log = result.records.memory_in_use
    assert (log.ticks // 10**6).tolist() == [0, 10, 30]
    assert (log.kib // GIB).tolist() == [5, 2, 0]
    (stairs,) = result.plot.memory(bins=2).axes[0].patches
    assert stairs.get_data().values == pytest.approx([(10 * 5 + 5 * 2) / 15 / 8, 2 / 8])
    assert result.states[["time_s", "memory_share"]].to_numpy().tolist() == [[0, 5 / 8], [10, 2 / 8], [30, 0]]


def test_suspended_jobs_are_in_the_memory_in_use() -> None:
    script = Script({0: [start(1)], 10: [suspend(1)], 30: [start(1)]})
    result = play(1, "1 0 1 20 20 0 3", script, node_memory_gib=4)
    log = result.records.memory_in_use
    assert (log.ticks.tolist(), log.kib.tolist()) == ([0, 40_000_000], [3 * GIB, 0])
    states = result.states[["time_s", "busy_nodes", "memory_share"]]
    assert states.to_numpy().tolist() == [[0, 1, 0.75], [10, 0, 0.75], [30, 1, 0.75], [40, 0, 0]]


def test_without_a_limit_there_is_no_memory_to_draw() -> None:
    result = play(1, "1 0 1 20 20 0 3", "fcfs")
    assert len(result.records.memory_in_use.ticks) == 0
    assert "memory_share" not in result.states
    with pytest.raises(SpecificationError, match=r"^memory: nodes have as much as jobs need; give Machine\(node_memory_gib"):
        result.plot.memory()
