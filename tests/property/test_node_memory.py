"""Memory of the nodes: no node is ever over it, whatever fails, and the two fidelities agree."""

from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from clustermodel import Checkpointing, Machine, TimeSlicing
from clustermodel.experiment.result import Result
from clustermodel.recording.run_attempts import Status
from clustermodel.validation import to_gib
from clustermodel.workload.job import JobRow
from tests.gang_runs import POLICIES, GangCase, gang_cases, run, seen, seen_in_time
from tests.node_memory import Noted, most_memory
from tests.property.strategies import cases
from tests.property.test_failures import failing
from tests.property.test_gang import attempts_of

quick = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
SUSPENDING = ("bgs:urgent=suspend", "mbgs:urgent=suspend") * 3
IN_ROWS = (*POLICIES, "adaptive", *SUSPENDING, "bgs:urgent=checkpoint", "bgs:urgent=kill")
DEDICATED = (
    "pv-easy:mode=suspend", "pv-easy:mode=suspend,vb=false", "ss", "ss:sf=1.1", "fifo-preempt:mode=suspend",
    "srtf:mode=suspend", "las:mode=suspend", "easy", "server-filling",
)  # fmt: skip
MOST = 6


@st.composite
def with_memory(draw: st.DrawFn, cases: st.SearchStrategy[GangCase]) -> GangCase:
    """Return a case whose nodes have 6 KiB of memory, and whose jobs need 0 to 7 on each node, or an unknown amount."""
    machine, rows = draw(cases)
    costs = machine.checkpointing
    if costs.max_tasks_per_slice == 0:
        machine = replace(machine, checkpointing=replace(costs, max_tasks_per_slice=1))
    amounts = st.sampled_from((-1, 0, 1, 2, 3, 4, 5, 6, MOST + 1))
    rows = [row._replace(memory=draw(amounts)) for row in rows]
    return GangCase(replace(machine, node_memory_gib=to_gib(MOST)), rows)


def checked(case: GangCase, policy: str) -> Result:
    """Run a case, and check its books and the memory of its nodes."""
    noted = Noted(policy)
    result = run(case, noted)
    assert max(most_memory(result, noted.discarded)) <= MOST
    ticks, in_use = result.records.memory_in_use
    assert ((in_use >= 0) & (in_use <= MOST * case.machine.nodes)).all()
    assert not in_use[-1:].any()
    log = result.events.ticks
    every = np.union1d(ticks, log)  # the states over time have the mean until the next event
    known = np.append(0, in_use)[np.searchsorted(ticks, every, side="right")]
    used = np.append(0, np.cumsum(known[:-1] * np.diff(every)))[np.searchsorted(every, log)]
    share = result.states["memory_share"].to_numpy() * MOST * case.machine.nodes
    assert np.allclose(share[:-1] * np.diff(log), np.diff(used))
    assert result.slices is not None or np.isin(ticks, log).all()
    records = result.records
    rejected = (
        (records.column("nodes") < 1) | (records.column("nodes") > case.machine.nodes) | (records.column("memory") > MOST)
    )
    assert ((records.column("ended_as") == Status.REJECTED) == rejected).all()
    assert (records.column("ended_as") != Status.UNFINISHED).all()
    for outcome in sorted({Status(one).label for one in records.stopped_runs.ended_as.tolist()}):
        event(outcome)
    event(f"what is suspended is discarded: {bool(noted.discarded)}")
    return result


RESTORED_ELSEWHERE = [
    JobRow(submit=submit, id=number, nodes=1, run=run, estimate=run, user=-1, group=-1, priority=urgent, status=-1, memory=1)
    for number, submit, run, urgent in ((1, 0, 5_000, 0), (2, 1_000, 1_000, 1), (3, 1_000, 8_000, 1))
]
"""Job 1 is suspended on node 0, and restored on node 1 while job 3 runs on node 0."""


def restored_elsewhere(restart_s: float, at_events: str) -> GangCase:
    machine = Machine(
        nodes=2,
        kill_at_estimate=False,
        time_slicing=TimeSlicing(quantum_s=0.001, mpl=1, at_events=at_events),
        checkpointing=Checkpointing(restart_s=restart_s),
        node_memory_gib=to_gib(MOST),
    )
    return GangCase(machine, RESTORED_ELSEWHERE)


@example(case=restored_elsewhere(1e-6, "cut"), policy="bgs:urgent=suspend")
@example(case=restored_elsewhere(1e-3, "cut"), policy="bgs:urgent=suspend")
@example(case=restored_elsewhere(3e-3, "keep"), policy="bgs:urgent=suspend")
@settings(quick, max_examples=cases(250))
@given(case=with_memory(failing(gang_cases(), in_rows=True)), policy=st.sampled_from(IN_ROWS))
def test_no_node_is_over_its_memory_in_rows_and_both_fidelities_agree(case: GangCase, policy: str) -> None:
    fast = checked(case, policy)
    if fast.slices is None:
        return
    node = run(case, policy, fidelity="node")
    assert seen_in_time(fast) == seen_in_time(node)
    assert attempts_of(fast) == attempts_of(node)
    logs = [[column.tolist() for column in result.records.memory_in_use] for result in (fast, node)]
    assert logs[0] == logs[1]


@settings(quick, max_examples=cases(250))
@given(case=with_memory(failing(gang_cases(), in_rows=False)), policy=st.sampled_from(DEDICATED))
def test_no_node_is_over_its_memory_on_dedicated_nodes(case: GangCase, policy: str) -> None:
    checked(case, policy)


@settings(quick, max_examples=cases(200))
@given(case=with_memory(gang_cases()), policy=st.sampled_from((*IN_ROWS, *DEDICATED)))
def test_memory_that_is_enough_for_all_jobs_together_changes_nothing(case: GangCase, policy: str) -> None:
    without = run(GangCase(replace(case.machine, node_memory_gib=None), case.rows), policy)
    rows = [row._replace(memory=row.id) for row in case.rows]
    ample = replace(case.machine, node_memory_gib=to_gib(sum(row.id for row in rows)))
    assert seen(run(GangCase(ample, rows), policy)) == seen(without)
