"""Node time at the limits of a specification: 2^53 nodes and 10^10 s, where products no longer fit into 64 bits.

Tables are compared with sums of Python's integers over what the mechanism noted of each job.
"""

from fractions import Fraction
from math import isnan, ulp
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustermodel import Checkpointing, ContextSwitch, Machine, Scenario, SpecificationError, TimeSlicing, Workload
from clustermodel.experiment.result import Result
from clustermodel.machine.node_set import count
from clustermodel.measure.job_table import Jobs
from clustermodel.recording.ledger import Account
from clustermodel.recording.run_attempts import UNKNOWN, Status
from clustermodel.ticks import LAST_TICK, TICKS_PER_SECOND, to_seconds, to_ticks
from clustermodel.validation import LARGEST_WHOLE, LONGEST_S
from clustermodel.workload.job import JobRow
from tests.property.strategies import cases, machines_and_rows, one_in

DAY = 86_400 * TICKS_PER_SECOND
POLICIES = [
    "fcfs", "easy", "conservative", "pv-easy", "pv-easy:mode=checkpoint", "pv-easy:mode=suspend", "slack:awt=1e9",
    "R/L-NG:width=half",
]  # fmt: skip
few = settings(max_examples=cases(50, fewest=8))
LONGEST = to_ticks(LONGEST_S)
IN_ROWS = 10**6
"""Nodes of a machine whose rows are bitmasks."""


def near(largest: int) -> st.SearchStrategy[int]:
    """Return whole numbers of every size, the largest among them."""
    return st.one_of(st.just(largest), st.integers(1, largest), st.integers(1, 30), st.integers(largest // 2, largest))


@st.composite
def extremes(draw: st.DrawFn, *, most_nodes: int = LARGEST_WHOLE, longest: int = LONGEST) -> tuple[Machine, list[JobRow]]:
    """Return a machine and a few jobs of any size, some of them as large and as long as can be."""
    nodes, costs = draw(near(most_nodes)), st.sampled_from((0.0, 1e-6, 3600.0, LONGEST_S))
    machine = Machine(
        nodes=nodes,
        kill_at_estimate=draw(st.booleans()),
        time_slicing=TimeSlicing(quantum_s=draw(st.sampled_from((1.0, 1e6, LONGEST_S))), mpl=draw(st.integers(1, 3))),
        context_switch=ContextSwitch(fraction=draw(st.sampled_from((0.0, 0.25)))),
        checkpointing=Checkpointing(checkpoint_s=draw(costs), restart_s=draw(costs)),
        suspended_per_node=draw(st.none() | st.integers(0, 2)),
    )
    rows = []
    for number in range(1, draw(st.integers(1, 9)) + 1):
        run = draw(near(longest))
        submit = draw(st.just(0) | st.integers(0, 30) | near(longest))
        size = LARGEST_WHOLE if draw(one_in(10)) else draw(near(nodes))
        estimate, priority = draw(st.just(run) | near(longest)), draw(st.integers(0, 1))
        rows.append(JobRow(submit, number, size, run, estimate, -1, -1, priority, -1))
    return machine, sorted(rows)


class Books(NamedTuple):
    """What a run's jobs did, node-ticks."""

    useful: dict[int, int]
    """By index of the record."""
    lost: dict[int, int]
    start: int
    end: int
    idle_while_waiting: int
    """Idle node-ticks while a job waited."""


def books(result: Result) -> Books:
    """Add up what the records say, run by run and instant by instant, in Python's integers."""
    records, nodes = result.records, result.machine.nodes
    status, worked, submit, start, end = (
        records.column(name).tolist() for name in ("ended_as", "worked", "submit", "start", "end")
    )
    ran = [index for index, how in enumerate(status) if how != Status.REJECTED]
    held = {index: count(records.columns_of(index)) for index in ran}
    useful = {index: held[index] * worked[index] if status[index] != Status.ABORTED else 0 for index in ran}
    lost = {index: held[index] * worked[index] - useful[index] for index in ran}
    changes: list[tuple[int, int, int]] = []  # when; nodes that work more, jobs that wait more
    for index in ran:
        changes += [(submit[index], 0, 1), (start[index], held[index], -1), (end[index], -held[index], 0)]
    for one in records.each_stopped_run():
        lost[one.job] += count(one.columns) * one.lost
        changes += [(one.start, count(one.columns), -1), (one.end, -count(one.columns), 1)]
    for begin, stop, size in zip(*(column.tolist() for column in records.overheads[:3]), strict=True):
        changes += [(begin, -size, 0), (stop, size, 0)]
    idle = working = waiting = last = 0
    for when, more_work, more_wait in sorted(changes):
        if waiting:
            idle += (nodes - working) * (when - last)
        last, working, waiting = when, working + more_work, waiting + more_wait
    first = min((submit[index] for index in ran), default=0)
    return Books(useful, lost, first, max((end[index] for index in ran), default=0), idle)


def share(amount: int, capacity: int) -> float:
    return float(Fraction(amount, capacity)) if capacity else float("nan")


def same(found: float, expected: float) -> bool:
    return found == expected or (isnan(found) and isnan(expected))


def check_jobs(result: Result, expected: Books) -> None:
    jobs, records = result.jobs, result.records
    for index, found in enumerate(jobs.itertuples()):
        lost = expected.lost.get(index, 0)
        assert found.wasted_node_s == float(Fraction(lost, TICKS_PER_SECOND))
        assert found.allocated_nodes == count(records.columns_of(index))
        submit, start, end = (int(records.column(name)[index]) for name in ("submit", "start", "end"))
        if start != UNKNOWN:
            # Waits are differences of two times in seconds, each of which is a floating point number to an ulp or so.
            room = 4 * ulp(to_seconds(end))
            assert abs(Fraction(found.wait_s) - Fraction(start - submit, TICKS_PER_SECOND)) <= room
            assert abs(Fraction(found.response_s) - Fraction(end - submit, TICKS_PER_SECOND)) <= room


def check_loads(result: Result, expected: Books, *, kappa: bool = True) -> None:
    """Check everything that is node time: it is the nearest floating point number to the exact ratio."""
    ledger, summary = result.ledger, result.summary()
    capacity = result.machine.nodes * (expected.end - expected.start)
    useful, lost = sum(expected.useful.values()), sum(expected.lost.values())
    assert ledger.capacity == capacity
    assert sum(sum(ledger.amount(account)) for account in Account) == capacity
    assert sum(ledger.amount(Account.USEFUL)) == useful
    assert sum(ledger.amount(Account.LOST)) == lost
    assert same(summary.utilization, share(useful, capacity))
    assert same(summary.wasted_load, share(lost, capacity))
    assert same(summary.total_load, share(useful, capacity) + share(lost, capacity))
    assert same(summary.kappa, share(expected.idle_while_waiting, capacity)) or not kappa
    assert result.kappa_by_formula == pytest.approx(summary.kappa, rel=1e-9, abs=1e-9, nan_ok=True)


def check_fairness(result: Result, expected: Books) -> None:
    table, records, nodes = result.fairness(), result.records, result.machine.nodes
    capacity, size = result.ledger.capacity, records.column("nodes").tolist()
    for name, chosen in (
        ("all", list(expected.useful)),
        ("wide", [index for index in expected.useful if 4 * size[index] > nodes]),
        ("narrow", [index for index in expected.useful if 4 * size[index] <= nodes]),
    ):
        lost = sum(expected.lost[index] for index in chosen)
        done = sum(expected.useful[index] for index in chosen)
        assert table.loc[name, "jobs"] == len(chosen)
        assert same(table.loc[name, "total_load"], share(lost + done, capacity))
        assert same(table.loc[name, "wasted_load"], share(lost, capacity))
        weights = [size[index] for index in chosen]
        slowdown = bounded_slowdowns(result, chosen)
        weighted = sum(weight * one for weight, one in zip(weights, slowdown, strict=True))
        mean = float(weighted / sum(weights)) if chosen else float("nan")
        # A response of 10 s or more is the difference of two times of an ulp each.
        room = 4 * ulp(to_seconds(result.ledger.end)) / 10 + 1e-9
        assert table.loc[name, "mean_weighted_bounded_slowdown"] == pytest.approx(mean, rel=room, nan_ok=True)


def bounded_slowdowns(result: Result, chosen: list[int]) -> list[Fraction]:
    records, bound = result.records, 10 * TICKS_PER_SECOND
    submit, end, run = records.column("submit").tolist(), records.column("end").tolist(), Jobs.of(records).dedicated.tolist()
    return [Fraction(max(end[index] - submit[index], bound), max(run[index], bound)) for index in chosen]


def check_placements(result: Result) -> None:
    records = result.records
    columns = [records.columns_of(index) for index in range(len(records))] + [one.columns for one in records.each_stopped_run()]
    expected = [(low, high - low) for one in columns for low, high in zip(one[::2], one[1::2], strict=True)]
    found = result.placements[["first_node", "nodes"]].itertuples(index=False, name=None)
    assert sorted(found) == sorted(expected)


def outcome(machine: Machine, rows: list[JobRow], policy: str, **options: bool) -> Result | str:
    """Run a case; return why it is refused, if it is."""
    try:
        return Scenario(machine=machine, workload=Workload(rows), policy=policy, **options).run()
    except SpecificationError as refused:
        return str(refused)


def finished(machine: Machine, rows: list[JobRow], policy: str, **options: bool) -> Result:
    """Run a case whose times fit 64 bits."""
    result = outcome(machine, rows, policy, **options)
    assert isinstance(result, Result), result
    return result


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "slack", "pv-easy", "bf"])
@pytest.mark.long
def test_a_million_nodes_and_200_days_of_nine_tenths_of_them(policy: str) -> None:
    # 200 x 900,000 x 1 day is 1.6 x 10^19 node-ticks; nothing else fits beside a job, so 0.9 of the machine works all the time.
    rows = [JobRow(number, number, 900_000, DAY, DAY, -1, -1, 0, -1) for number in range(200)]
    result = Scenario(machine=Machine(nodes=1_000_000), workload=Workload(rows), policy=policy).run()
    assert result.summary().total_load == result.fairness().loc["all", "total_load"] == 0.9
    assert Workload(rows).offered_load(10**6) == pytest.approx(200 * 900_000 * DAY / (10**6 * 199), rel=1e-12)


@pytest.mark.parametrize("policy", POLICIES)
@few
@given(case=extremes())
def test_node_time_is_exact_on_the_largest_machine(policy: str, case: tuple[Machine, list[JobRow]]) -> None:
    result = finished(*case, policy)
    expected = books(result)
    check_jobs(result, expected)
    check_loads(result, expected)
    check_fairness(result, expected)
    check_placements(result)


@pytest.mark.parametrize("policy", POLICIES)
@few
@given(case=extremes(longest=LAST_TICK))
def test_times_beyond_64_bits_are_refused_in_one_line(policy: str, case: tuple[Machine, list[JobRow]]) -> None:
    result = outcome(*case, policy)
    if isinstance(result, str):
        assert "\n" not in result
        assert result.endswith("fit 64-bit ticks; give shorter times, fewer jobs or more nodes")
        machine, rows = case
        costs = machine.checkpointing.checkpoint + machine.checkpointing.restart
        latest = sum(2 * max(row.run, row.estimate) + costs for row in rows) + max(row.submit for row in rows)
        assert latest > LAST_TICK, "the jobs one after the other, each twice, would fit"
    else:
        expected = books(result)
        check_jobs(result, expected)
        check_loads(result, expected)
        check_fairness(result, expected)


@pytest.mark.parametrize("policy", ["gs", "bgs", "mgs", "mbgs"])
@few
@given(case=extremes(most_nodes=IN_ROWS))
def test_node_time_is_exact_where_nodes_are_shared_in_time(policy: str, case: tuple[Machine, list[JobRow]]) -> None:
    result = finished(*case, policy, history=True)
    expected = books(result)
    check_jobs(result, expected)
    check_loads(result, expected, kappa=False)


@pytest.mark.parametrize("policy", ["gs", "bgs", "mgs", "mbgs", "adaptive"])
def test_rows_wider_than_a_bitmask_can_be_are_refused_in_one_line(policy: str) -> None:
    workload = Workload([JobRow(0, 1, LARGEST_WHOLE, LONGEST, LONGEST, -1, -1, 0, -1)])
    with pytest.raises(SpecificationError, match=r"^[^\n]* rows x 9,007,199,254,740,992 nodes is not allowed[^\n]*$"):
        Scenario(machine=Machine(nodes=LARGEST_WHOLE), workload=workload, policy=policy).run()


@pytest.mark.parametrize("policy", [*POLICIES[:5], "slack:awt=20,heuristic=du", "R/L-NG"])
@few
@given(case=machines_and_rows(priorities=True, underestimates=True, awkward=True))
@pytest.mark.long
def test_a_machine_and_jobs_2_to_the_50_times_as_wide_give_the_same_summary_and_fairness(
    policy: str, case: tuple[int, list[JobRow]]
) -> None:
    nodes, rows = case
    factor = LARGEST_WHOLE // 8
    wide = [row._replace(nodes=row.nodes * factor) for row in rows]
    small, large = (
        Scenario(machine=Machine(nodes=size), workload=Workload(jobs), policy=policy).run()
        for size, jobs in ((nodes, rows), (nodes * factor, wide))
    )
    assert {**small.summary().as_dict(), "nodes": 0} == {**large.summary().as_dict(), "nodes": 0}
    ours, theirs = small.fairness(), large.fairness()
    ours[["mean_violation_nodes", "mean_violation_nodes_over_it"]] *= factor
    assert ours.equals(theirs)
    assert (small.jobs["wasted_node_s"] * factor).tolist() == large.jobs["wasted_node_s"].tolist()
