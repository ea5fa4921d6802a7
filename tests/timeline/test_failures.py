"""Hand-worked timelines of nodes that fail and are repaired, and of periodic checkpoints, on dedicated nodes and in rows."""

from collections.abc import Sequence

import pytest

import clustermodel as cm
from clustermodel.machine.recorded_outages import Outages, read_outages
from clustermodel.policies.interface import Decision, Policy
from clustermodel.policies.view import Batch, View
from clustermodel.recording.ledger import Account
from clustermodel.sim.job_process import JobInSystem
from clustermodel.sim.transfer_costs import TransferCosts
from clustermodel.ticks import TICKS_PER_SECOND
from tests.shared_data import SHARED
from tests.timeline.script import Script, refusal, start, suspend
from tests.timeline.timeline import accounts, play, play_both, spans, spent, stopped

TWO_ROWS = cm.TimeSlicing(quantum_s=10, mpl=2)
EVERY_20 = cm.Checkpointing(checkpoint_s=5, restart_s=3, interval_s=20)


def down(*outages: tuple[int, float, float], nodes: int) -> Outages:
    """Return outages given as (node, from, until), seconds."""
    node, since, until = zip(*outages, strict=True)
    return Outages(node=list(node), down_s=list(since), up_s=list(until), nodes=nodes)  # type: ignore[arg-type]


def test_a_job_runs_again_when_its_node_is_repaired() -> None:
    result = play(2, "1 0 2 100", "fcfs", failures=down((1, 30, 50), nodes=2))
    assert stopped(result) == [(1, 0, 30, "failed", 30)]
    assert spans(result) == {1: (50, 150)}
    assert accounts(result) == {Account.USEFUL: 200, Account.LOST: 60, Account.IDLE: 20, Account.DOWN: 20}
    summary = result.summary()
    assert (summary.failures, summary.failed_attempts, summary.down_share) == (1, 1, 20 / 300)
    # Node 0 is idle while the job waits; node 1 is down, which is no loss of capacity.
    assert result.ledger.capacity_loss == result.kappa_by_formula == 20 / 300
    assert result.ledger.capacity_loss_with_outages == 40 / 300  # the job waits while node 1 is down


def test_an_outage_during_which_no_job_waits_is_no_loss_by_any_count() -> None:
    ledger = play(2, "1 0 1 100", "fcfs", failures=down((1, 30, 50), nodes=2)).ledger
    assert ledger.down_share == 20 / 200
    assert ledger.capacity_loss == ledger.capacity_loss_with_outages == 0


def test_other_jobs_run_on_the_nodes_that_are_up() -> None:
    # When node 1 fails, 2 (one node) starts on node 0 at once: 1 needs both.
    result = play(2, "1 0 2 100\n2 1 1 10", "easy", failures=down((1, 30, 50), nodes=2))
    assert spans(result) == {1: (50, 150), 2: (30, 40)}


def test_a_job_goes_on_from_its_last_periodic_checkpoint() -> None:
    # Checkpoints end at 25 and 50, with 40 s behind the job; 10 s are discarded at 60.  From 70 on: 3 s to restart, then 60 s
    # of work with checkpoints after 20 and 40 of them, and none at the end.
    result = play(1, "1 0 1 100", "fcfs", checkpointing=EVERY_20, failures=down((0, 60, 70), nodes=1))
    assert stopped(result) == [(1, 0, 60, "failed", 10)]
    assert spans(result) == {1: (70, 143)}
    expected = {Account.USEFUL: 100, Account.LOST: 10, Account.CHECKPOINT: 20, Account.RESTART: 3, Account.DOWN: 10}
    assert accounts(result) == expected


@pytest.mark.parametrize(("fails", "discarded", "ends"), [(25, 0, 25 + 1 + 3 + 25), (24, 20, 24 + 1 + 45 + 5)])
def test_a_checkpoint_counts_from_the_instant_at_which_it_is_written(fails: int, discarded: int, ends: int) -> None:
    failures = down((0, fails, fails + 1), nodes=1)
    result = play(1, "1 0 1 45", "fcfs", checkpointing=EVERY_20, failures=failures)
    assert stopped(result) == [(1, 0, fails, "failed", discarded)]
    assert spans(result)[1][1] == ends + 5


def test_a_job_that_completes_when_its_node_fails_has_completed() -> None:
    result = play(1, "1 0 1 30\n2 0 1 10", "fcfs", failures=down((0, 30, 35), nodes=1))
    assert stopped(result) == []
    assert spans(result) == {1: (0, 30), 2: (35, 45)}


def test_a_failure_may_take_no_time() -> None:
    result = play(1, "1 0 1 30", "fcfs", failures=down((0, 10, 10), nodes=1))
    assert stopped(result) == [(1, 0, 10, "failed", 10)]
    assert spans(result) == {1: (10, 40)}
    assert spent(result, Account.DOWN) == 0
    assert result.summary().failures == 1


@pytest.mark.parametrize("policy", ["easy", "easy:reserve_depth=2", "conservative"])
def test_a_job_can_outlive_the_same_expected_end_in_two_attempts(policy: str) -> None:
    # 1 is stopped at 10, behind a checkpoint, and starts at once with the same end as before, 20, which it outlives.
    jobs = "1 0 3 30 20\n2 0 1 10\n3 10 1 10"
    costs = cm.Checkpointing(interval_s=10)
    result = play(4, jobs, policy, checkpointing=costs, failures=down((0, 10, 10), nodes=4), kill_at_estimate=False)
    assert spans(result) == {1: (10, 30), 2: (0, 10), 3: (10, 20)}


def test_what_is_suspended_in_the_memory_of_a_failing_node_is_lost() -> None:
    # 1 is suspended on nodes 0 and 1 after 10 s.  Node 1 fails while it waits: it begins anew, on any nodes.
    script = {0: [start(1)], 10: [suspend(1)], 30: [start(1, columns=(2, 4))]}
    result = play(4, "1 0 2 30", Script(script), failures=down((1, 15, 20), nodes=4))
    assert spans(result) == {1: (30, 60)}
    assert stopped(result) == [(1, 0, 10, "suspended", 10)]
    assert (spent(result, Account.USEFUL), spent(result, Account.LOST)) == (60, 20)


def test_a_node_that_is_down_before_the_first_job_counts_from_its_submission_on() -> None:
    result = play(2, "1 10 1 20", "fcfs", failures=down((1, 0, 15), nodes=2))
    assert accounts(result) == {Account.USEFUL: 20, Account.IDLE: 15, Account.DOWN: 5}


def test_the_books_end_with_the_last_job() -> None:
    failures = down((0, 30, 40), (1, 50, 60), (0, 95, 200), nodes=2)
    result = play(2, "1 0 2 20\n2 90 1 20\n3 100 9 1", "fcfs", failures=failures)
    assert spans(result)[2] == (95, 115)  # node 0 failed at 95; the job began again on node 1
    assert result.ledger.end == 115 * TICKS_PER_SECOND
    assert spent(result, Account.DOWN) == 10 + 10 + 20


def test_a_guaranteed_start_that_a_failure_breaks_is_counted_apart() -> None:
    # 2 is guaranteed to start at 100.  When node 0 fails, 1 runs again first: from 60 to 160.
    result = play(2, "1 0 2 100\n2 1 2 10", "conservative", failures=down((0, 50, 60), nodes=2))
    assert spans(result) == {1: (60, 160), 2: (160, 170)}
    summary = result.summary()
    assert (summary.failure_violations, summary.reservation_violations, summary.benign_violations) == (1, 0, 0)


def test_a_failed_node_stops_the_gangs_of_all_rows() -> None:
    # 1 has executed for 10 s, 2 for 5 s.
    result = play_both(1, "1 0 1 20\n2 0 1 20", "gs", time_slicing=TWO_ROWS, failures=down((0, 15, 25), nodes=1))
    assert sorted(stopped(result)) == [(1, 0, 15, "failed", 10), (2, 0, 15, "failed", 5)]
    assert spans(result) == {1: (25, 55), 2: (25, 65)}
    assert accounts(result) == {Account.USEFUL: 40, Account.LOST: 15, Account.DOWN: 10}


def test_a_failed_node_leaves_the_gangs_on_other_nodes_alone() -> None:
    result = play_both(2, "1 0 1 20\n2 0 2 20", "gs", time_slicing=TWO_ROWS, failures=down((1, 15, 25), nodes=2))
    assert stopped(result) == [(2, 0, 15, "failed", 5)]
    assert spans(result)[1] == (0, 25)  # alone from 15 on: the first row again


def test_gangs_write_periodic_checkpoints_in_their_own_slices() -> None:
    # 1 executes in 0-10 and 20-25, writes in 25-27, executes in 27-30 and 40-42; 2 follows, and has a new slice at 42.
    costs = cm.Checkpointing(checkpoint_s=2, interval_s=15)
    result = play_both(1, "1 0 1 20\n2 0 1 20", "gs", time_slicing=TWO_ROWS, checkpointing=costs)
    assert spans(result) == {1: (0, 42), 2: (0, 44)}
    assert accounts(result) == {Account.USEFUL: 40, Account.CHECKPOINT: 4}


def test_a_gang_in_rows_goes_on_from_its_last_checkpoint() -> None:
    # At 28, 1 has 15 s in the store and 1 s more behind it; 2 has nothing.
    machine = {"checkpointing": cm.Checkpointing(checkpoint_s=2, restart_s=1, interval_s=15), "time_slicing": TWO_ROWS}
    result = play_both(1, "1 0 1 20\n2 0 1 20", "gs", failures=down((0, 28, 30), nodes=1), **machine)
    assert sorted(stopped(result)) == [(1, 0, 28, "failed", 1), (2, 0, 28, "failed", 10)]
    assert spent(result, Account.RESTART) == 1
    # 2 has the first slice, because 1 ran last.  1 restarts in 40-41 and executes until 46; then 2 has a new slice: it executes
    # until 51, writes until 53, and executes for 5 s more.
    assert spans(result) == {1: (30, 46), 2: (30, 58)}


class Stubborn(Policy):
    """Starts the first job on node 0 in row 0, whether it is up or not."""

    name = "stubborn"

    def start(self, setup: object) -> object:
        return self

    def decide(self, batch: Batch, view: View) -> Sequence[Decision]:
        return [start(job.id, columns=(0, 1), row=0)({job.id: job}) for job in view.waiting.values()][:1]


def test_no_gang_starts_on_a_node_that_is_down() -> None:
    script = {0: [start(1)], 10: [start(2, columns=(1, 2))]}
    failures = down((1, 5, 50), nodes=3)
    assert refusal(3, "1 0 1 5\n2 8 1 9", script, failures=failures) == (
        "job 2 cannot start on columns 1: not all of them are idle"
    )
    with pytest.raises(cm.DecisionError, match="job 1 cannot run in row 0 on columns 0: 0 are down"):
        play(2, "1 10 1 5", Stubborn(), failures=down((0, 5, 50), nodes=2))
    with pytest.raises(cm.DecisionError, match="job 1 cannot run in row 0 on columns 0: 0 are down"):  # no node is up
        play(1, "1 10 1 5", Stubborn(), failures=down((0, 5, 50), nodes=1))


def test_policies_see_which_nodes_are_down() -> None:
    seen = []

    class Watching(Script):
        def decide(self, batch: Batch, view: View) -> list[Decision]:
            second = view.now / TICKS_PER_SECOND
            failed, repaired = ([outage.node for outage in outages] for outages in (batch.failed, batch.repaired))
            seen.append((second, failed, repaired, view.up, view.idle, sorted(view.down), len(batch.requeued)))
            return super().decide(batch, view)

    play(3, "1 0 2 50", Watching({0: [start(1)], 20: [start(1)]}), failures=down((0, 10, 20), nodes=3))
    assert seen[:2] == [(0, [], [], 3, 3, [], 0), (10, [0], [], 2, 2, [0], 1)]
    assert seen[2:] == [(20, [], [0], 3, 3, [], 0), (70, [], [], 3, 3, [], 0)]


def test_young_and_daly_depend_on_the_nodes_of_the_gang() -> None:
    saving = cm.Checkpointing(checkpoint_s=50, interval_s="young")
    machine = cm.Machine(nodes=4, failures=cm.NodeFailures(mtbf_s=40_000, repair_s=0), checkpointing=saving)
    # sqrt(2 x 50 x 40,000 / 4) = 1,000 s.
    costs, job = TransferCosts(machine), JobInSystem(cm.Job(id=1, submit_s=0, nodes=4, run_s=1).row(), 0)
    assert [costs.interval(job, nodes) for nodes in (1, 4)] == [2_000 * TICKS_PER_SECOND, 1_000 * TICKS_PER_SECOND]


def test_specifications_that_are_refused() -> None:
    with pytest.raises(cm.SpecificationError, match="interval_s: 'young' is not allowed on a machine without failures"):
        cm.Machine(nodes=1, checkpointing=cm.Checkpointing(checkpoint_s=1, interval_s="young"))
    with pytest.raises(cm.SpecificationError, match="interval_s: 'daly' is not allowed where checkpoints take no time"):
        cm.Checkpointing(interval_s="daly")
    with pytest.raises(cm.SpecificationError, match="interval_s: 'dali' is not allowed"):
        cm.Checkpointing(checkpoint_s=1, interval_s="dali")
    with pytest.raises(cm.SpecificationError, match=r"Machine.failures: 5 is not allowed; it must be NodeFailures\(...\)"):
        cm.Machine(nodes=1, failures=5)  # type: ignore[arg-type]
    with pytest.raises(cm.SpecificationError, match="interval_s and max_tasks_per_slice are not allowed together"):
        play(2, "1 0 1 9", "gs", checkpointing=cm.Checkpointing(checkpoint_s=1, interval_s=3, max_tasks_per_slice=2))


def test_a_context_switch_follows_a_repair() -> None:
    # After the repair node 0 holds no task: both gangs switch in their first slices.
    machine = {"context_switch": cm.ContextSwitch(seconds=1), "time_slicing": TWO_ROWS}
    result = play_both(1, "1 0 1 20", "gs", failures=down((0, 15, 25), nodes=1), **machine)
    assert spans(result) == {1: (25, 46)}
    assert spent(result, Account.CONTEXT_SWITCH) == 2


def test_a_job_that_never_completes_is_one_line_and_not_a_run_without_end() -> None:
    # 1,000 s without checkpoints where a node fails every 10 s.
    said = r"job 1 \(1 node, 1000 s\) has been started 10,000 times and not completed"
    with pytest.raises(cm.SpecificationError, match=said):
        play(1, "1 0 1 1000", "fcfs", failures=cm.NodeFailures(mtbf_s=10, repair_s=0))


def test_explain_names_the_node_that_failed() -> None:
    result = play(2, "1 0 2 100", "fcfs", explain=True, failures=down((1, 30, 50), nodes=2))
    assert str(result.explain(1)).splitlines()[-1] == "  restarted after node 1 failed at 30 s"


@pytest.mark.parametrize("system", ["18", "19", "20"])
def test_the_outages_of_los_alamos_are_those_of_the_run(system: str) -> None:
    path = SHARED / "traces" / "failures" / "lanl_systems_18_19_20.csv.gz"
    if not path.is_file():
        pytest.skip(f"{path} is not here; the records are not part of the repository")
    outages = read_outages(path, system=system)
    merged = outages.merged()
    end = float(merged.up_s.max())
    # Two jobs on nodes of their own make the run as long as the records.
    nodes = outages.nodes + 1
    jobs = f"1 0 1 1\n2 {end + 1} 1 1"
    result = play(nodes, jobs, "fcfs", failures=outages)
    summary = result.summary()
    assert summary.failures == len(merged)
    down_s = float((merged.up_s - merged.down_s).sum())
    assert summary.down_share * nodes * summary.horizon_s == pytest.approx(down_s, rel=1e-9)


def test_attempts_that_a_failure_ended_and_outages_are_seen_in_tables_and_figures() -> None:
    result = play(2, "1 0 2 100", "fcfs", failures=down((1, 30, 50), nodes=2))
    assert result.placements["kind"].tolist() == ["failed", "run"]
    assert result.placements[["begin_s", "end_s"]].to_numpy().tolist() == [[0, 30], [50, 150]]
    assert result.states["down_nodes"].max() == 1
    black = [bar for bar in result.plot.gantt().axes[0].collections if bar.get_facecolor().tolist() == [[0, 0, 0, 1]]]
    (outage,) = [path.get_extents().bounds for bar in black for path in bar.get_paths()]
    assert outage == (30, 0.5, 20, 1)
