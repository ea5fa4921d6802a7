"""A run over time: the tables say what the records, the ledger and the history say."""

import numpy as np
import pandas as pd
import pytest

import clustermodel as cm
from clustermodel.experiment.result import Result
from clustermodel.machine.node_set import from_mask
from clustermodel.recording.ledger import Account
from clustermodel.ticks import to_seconds, to_ticks

NODES = 64


@pytest.fixture(scope="module")
def preempting() -> Result:
    machine = cm.Machine(nodes=NODES, checkpointing=cm.Checkpointing(checkpoint_s=30, restart_s=40))
    workload = cm.synthetic_workload(jobs=600, nodes=NODES, load=1.1)
    return cm.Scenario(machine=machine, workload=workload, policy="pv-easy:mode=checkpoint").run()


@pytest.fixture(scope="module")
def sliced() -> Result:
    machine = cm.Machine(nodes=NODES, time_slicing=cm.TimeSlicing(quantum_s=300, mpl=3))
    workload = cm.synthetic_workload(jobs=200, nodes=NODES, load=1.1)
    return cm.Scenario(machine=machine, workload=workload, policy="bgs", history=True).run()


def node_ticks(placements: pd.DataFrame) -> int:
    begin, end = (placements[name].map(to_ticks) for name in ("begin_s", "end_s"))
    return int(((end - begin) * placements["nodes"]).sum())


@pytest.mark.parametrize("policy", ["easy", "pv-easy", "pv-easy:mode=checkpoint", "R/L-NG:speculation=0.5"])
def test_placements_hold_all_node_time_that_is_not_idle(policy: str) -> None:
    workload = cm.synthetic_workload(jobs=600, nodes=NODES, load=1.1)
    result = cm.Scenario(machine=cm.Machine(nodes=NODES), workload=workload, policy=policy).run()
    taken = sum(sum(result.ledger.amount(account)) for account in Account if account is not Account.IDLE)
    assert node_ticks(result.placements) == taken
    lost = result.placements[result.placements["kind"] == "lost"]
    assert bool(len(lost)) == bool(sum(result.ledger.amount(Account.LOST)))


def test_no_node_has_two_gangs_at_once(preempting: Result) -> None:
    placements = preempting.placements
    assert (placements["row"] == 0).all()
    for node in range(NODES):
        here = placements[(placements["first_node"] <= node) & (node < placements["first_node"] + placements["nodes"])]
        here = here.sort_values("begin_s")
        assert (here["end_s"].to_numpy()[:-1] <= here["begin_s"].to_numpy()[1:]).all()


def test_placements_are_those_of_jobs_and_stopped_runs(preempting: Result) -> None:
    records = preempting.records
    ids = records.column("id").tolist()
    expected = [
        (ids[index], to_seconds(start), to_seconds(end), low, high - low)
        for index, start, end, columns in [
            *((i, records.column("start")[i], records.column("end")[i], records.columns_of(i)) for i in range(len(ids))),
            *((one.job, one.start, one.end, one.columns) for one in records.each_stopped_run()),
        ]
        for low, high in zip(columns[::2], columns[1::2], strict=True)
    ]
    found = preempting.placements[["job", "begin_s", "end_s", "first_node", "nodes"]].itertuples(index=False, name=None)
    assert sorted(found) == sorted(expected)
    assert {"run", "saved"} == set(preempting.placements["kind"])


def test_placements_in_the_matrix_are_its_history(sliced: Result) -> None:
    placements, history = sliced.placements, sliced.history
    kinds = set()
    for moment in history.moments[::7]:
        at = to_seconds(moment.ticks)
        here = placements[(placements["begin_s"] <= at) & (at < placements["end_s"])]
        found = here[["row", "job", "first_node", "nodes", "kind"]].itertuples(index=False, name=None)
        expected = [
            (row, cell.job, low, high - low, "replica" if cell.replica else "run")
            for row, cells in enumerate(moment.rows)
            for cell in cells
            for low, high in zip(from_mask(cell.columns)[::2], from_mask(cell.columns)[1::2], strict=True)
        ]
        assert sorted(found) == sorted(expected)
        kinds |= {kind for *_, kind in expected}
    assert kinds == {"run", "replica"}


def test_a_gang_that_starts_again_at_once_where_it_failed_has_two_placements() -> None:
    # Node 0 fails at 5 s and is up again at once; the slice of job 2 comes next.
    outages = cm.Outages(node=np.array([0]), down_s=np.array([5.0]), up_s=np.array([5.0]), nodes=1)
    jobs = [cm.Job(id=number, nodes=1, submit_s=0, run_s=10) for number in (1, 2)]
    machine = cm.Machine(nodes=1, time_slicing=cm.TimeSlicing(quantum_s=2, mpl=2), failures=outages)
    placements = cm.Scenario(machine=machine, workload=cm.Workload.from_jobs(jobs), policy="gs", history=True).run().placements
    first = placements[placements["job"] == 1]
    assert first[["begin_s", "end_s", "kind"]].to_numpy().tolist() == [[0, 5, "failed"], [5, 25, "run"]]


def test_states_are_the_log_of_events(sliced: Result, preempting: Result) -> None:
    for result in (sliced, preempting):
        states = result.states
        assert states["time_s"].is_monotonic_increasing
        assert (states["busy_nodes"].to_numpy() == result.machine.nodes - result.events.empty).all()
        assert (states["waiting_jobs"].to_numpy() == result.events.waiting).all()
        assert list(states) == ["time_s", "busy_nodes", "down_nodes", "waiting_jobs", "running_row"]  # and no limits
    assert (preempting.states["running_row"] == -1).all()
    for time, row in sliced.states[["time_s", "running_row"]].iloc[::5].itertuples(index=False):
        moment = sliced.history.at(to_ticks(time))
        first = moment.rotation[0] if moment.rotation and moment.ticks <= to_ticks(time) else -1
        assert row == first


def test_work_is_the_integral_of_busy_nodes(preempting: Result) -> None:
    states = preempting.states
    integral = float((states["busy_nodes"].to_numpy()[:-1] * np.diff(states["time_s"])).sum())
    assert integral == pytest.approx(to_seconds(node_ticks(preempting.placements)), rel=1e-12)


def test_a_run_without_history_has_no_placements_but_states() -> None:
    machine = cm.Machine(nodes=NODES, time_slicing=cm.TimeSlicing(quantum_s=300))
    result = cm.Scenario(machine=machine, workload=cm.synthetic_workload(jobs=20, nodes=NODES), policy="gs").run()
    with pytest.raises(cm.SpecificationError, match="history: it is not kept"):
        _ = result.placements
    assert (result.states["running_row"] == -1).all()
