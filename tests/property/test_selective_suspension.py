"""Selective suspension against the rule as it is written down (Kettimuthu et al. 2005), worked out from the runs alone."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clustermodel import Checkpointing, ContextSwitch, Machine, make_policy
from clustermodel.machine.node_set import NodeSet
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import Account
from clustermodel.recording.run_attempts import PREEMPTIONS
from clustermodel.sim.simulation import Outcome, simulate
from clustermodel.workload.job import JobRow
from tests.property.strategies import cases, machines_and_rows

SECOND = 1_000_000
Case = tuple[int, list[JobRow]]

MODES = st.sampled_from(["suspend", "checkpoint", "kill"])
FACTORS = st.sampled_from(["1.01", "1.3", "1.5", "2", "3"])
INTERVALS = st.sampled_from([1, 4, 7])
workloads = machines_and_rows(underestimates=True)


def jobs(*rows: tuple[int, int, int, int]) -> list[JobRow]:
    """Return jobs of (submit, id, nodes, run time) in seconds, whose estimates are right."""
    return [JobRow(submit * SECOND, job, nodes, run * SECOND, run * SECOND, -1, -1, 0, -1) for submit, job, nodes, run in rows]


OWN_NODES_TAKEN: Case = (
    3,
    jobs((0, 1, 2, 2), (0, 2, 1, 1), (0, 3, 3, 1), *((0, job, 1, 1) for job in range(5, 16)), (1, 16, 2, 1), (1, 17, 1, 2)),
)
"""At 6 s job 16 starts on one of the two nodes of job 1, which is suspended; 17 on the other was preempted for nothing."""


class Run(NamedTuple):
    """A stretch of time for which a job held nodes."""

    start: int
    end: int
    nodes: frozenset[int]
    preempted: bool


def nodes_of(columns: NodeSet) -> frozenset[int]:
    return frozenset(node for low, high in zip(columns[::2], columns[1::2], strict=True) for node in range(low, high))


def run(case: Case, policy: str, **machine: object) -> Outcome:
    nodes, rows = case
    specified = Machine(nodes=nodes, **machine)  # type: ignore[arg-type]
    return simulate(specified, [rows], make_policy(policy), np.random.default_rng(1))


def runs_of(records: JobRecords) -> dict[int, list[Run]]:
    """Return the runs of each job, by id, in order."""
    ids = records.column("id").tolist()
    runs: dict[int, list[Run]] = {job: [] for job in ids}
    for one in records.each_stopped_run():
        assert one.ended_as in PREEMPTIONS
        runs[ids[one.job]].append(Run(one.start, one.end, nodes_of(one.columns), True))
    for index, (job, start, end) in enumerate(zip(ids, records.column("start"), records.column("end"), strict=True)):
        runs[job].append(Run(int(start), int(end), nodes_of(records.columns_of(index)), False))
    return {job: sorted(of_job) for job, of_job in runs.items()}


def xfactor(row: JobRow, runs: list[Run], now: int) -> Fraction:
    """Return (wait time + estimate) / estimate; the wait time is what a job has not held nodes for."""
    held = sum(min(one.end, now) - one.start for one in runs if one.start < now)
    return Fraction(now - row.submit - held + row.estimate, row.estimate)


def own_nodes(mode: str, runs: list[Run], now: int) -> frozenset[int]:
    """Return the nodes that a job that waits, or starts now, is bound to: those of its last run, where it was suspended."""
    before = [one for one in runs if one.end <= now and one.preempted]
    return before[-1].nodes if before and mode == "suspend" else frozenset()


def instants_of_preemption(runs: Mapping[int, list[Run]]) -> Iterator[tuple[int, list[int], list[int]]]:
    """Yield when jobs were preempted, which, and which started then; saving takes no time here."""
    for now in sorted({one.end for of_job in runs.values() for one in of_job if one.preempted}):
        stopped = [job for job, of_job in runs.items() if any(one.end == now and one.preempted for one in of_job)]
        started = [job for job, of_job in runs.items() if any(one.start == now for one in of_job)]
        yield now, stopped, started


@settings(max_examples=cases(300))
@given(case=workloads, mode=MODES, sf=FACTORS, interval=INTERVALS)
@example(case=OWN_NODES_TAKEN, mode="suspend", sf="1.01", interval=1)
def test_whoever_is_preempted_yields_to_a_job_with_an_xfactor_sf_times_as_large(
    case: Case, mode: str, sf: str, interval: int
) -> None:
    row = {one.id: one for one in case[1]}
    runs = runs_of(run(case, f"ss:sf={sf},mode={mode},interval_s={interval}").records)
    for now, stopped, started in instants_of_preemption(runs):
        assert now % (interval * SECOND) == 0
        for victim in stopped:
            needed = Fraction(sf) * xfactor(row[victim], runs[victim], now)
            assert any(
                xfactor(row[job], runs[job], now) >= needed
                and (own_nodes(mode, runs[job], now) or row[victim].nodes <= 2 * row[job].nodes)
                for job in started
            )


@settings(max_examples=cases(300))
@given(case=workloads, mode=MODES, sf=FACTORS, interval=INTERVALS)
@example(case=OWN_NODES_TAKEN, mode="suspend", sf="1.01", interval=1)
def test_no_job_goes_back_and_forth_at_one_instant(case: Case, mode: str, sf: str, interval: int) -> None:
    # Whoever starts by preempting has a larger xfactor than whoever yields, and at one instant xfactors do not change.
    runs = runs_of(run(case, f"ss:sf={sf},mode={mode},interval_s={interval}").records)
    assert all(one.start < one.end for of_job in runs.values() for one in of_job)  # no job yields where it has just started
    for _, stopped, started in instants_of_preemption(runs):
        # No job is suspended without effect.  On other nodes, a job may start again on what a later one has left over.
        assert mode != "suspend" or not set(stopped) & set(started)


@settings(max_examples=cases(300))
@given(case=workloads, mode=MODES, sf=FACTORS, interval=INTERVALS)
@example(case=OWN_NODES_TAKEN, mode="suspend", sf="1.01", interval=1)
def test_no_job_that_can_preempt_is_left_waiting_and_no_job_that_fits(case: Case, mode: str, sf: str, interval: int) -> None:
    nodes, rows = case
    row = {one.id: one for one in rows}
    runs = runs_of(run(case, f"ss:sf={sf},mode={mode},interval_s={interval}").records)
    events = {time for of_job in runs.values() for one in of_job for time in (one.start, one.end)} | {
        one.submit for one in rows
    }
    minutes = set(range(0, max(events), interval * SECOND))
    calm = minutes - {now for now, *_ in instants_of_preemption(runs)}
    for now in events | minutes:
        running = {job: one for job, of_job in runs.items() for one in of_job if one.start <= now < one.end}
        idle = frozenset(range(nodes)).difference(*(one.nodes for one in running.values()))
        for job, of_job in runs.items():
            if row[job].submit > now or job in running or of_job[-1].end <= now:
                continue
            own = own_nodes(mode, of_job, now)
            assert not own <= idle if own else len(idle) < row[job].nodes
            if now in calm:
                mine = xfactor(row[job], of_job, now)
                yielding = {
                    other: one.nodes
                    for other, one in running.items()
                    if one.start < now
                    and mine >= Fraction(sf) * xfactor(row[other], runs[other], now)
                    and (own or row[other].nodes <= 2 * row[job].nodes)
                }
                free = idle.union(*yielding.values())
                assert not own <= free if own else len(free) < row[job].nodes


@settings(max_examples=cases(300))
@given(
    case=workloads, mode=MODES, sf=FACTORS, cost=st.integers(0, 5), kill=st.booleans(), memory=st.sampled_from([None, 0, 1, 2])
)
def test_no_job_is_lost_and_a_node_holds_one_job_at_a_time_whatever_saving_costs(
    case: Case, mode: str, sf: str, cost: int, kill: bool, memory: int | None
) -> None:
    outcome = run(
        case,
        f"ss:sf={sf},mode={mode},interval_s=4",
        kill_at_estimate=kill,
        checkpointing=Checkpointing(checkpoint_s=cost, restart_s=cost),
        context_switch=ContextSwitch(seconds=cost),
        suspended_per_node=memory,
    )
    runs = runs_of(outcome.records)
    held: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for one in case[1]:
        assert not runs[one.id][-1].preempted
        assert runs[one.id][-1].end > 0
        for stretch in runs[one.id]:
            assert len(stretch.nodes) == one.nodes
            for holder in (("job", one.id), *(("node", node) for node in stretch.nodes)):
                held.setdefault(holder, []).append((stretch.start, stretch.end))
        if mode == "suspend":
            assert len({stretch.nodes for stretch in runs[one.id]}) == 1
    for intervals in held.values():
        assert all(first[1] <= second[0] for first, second in pairwise(sorted(intervals)))
    work = sum(one.nodes * (min(one.run, one.estimate) if kill else one.run) for one in case[1])
    ledger = outcome.ledger
    assert sum(ledger.amount(Account.USEFUL)) == work
    assert mode == "kill" or not any(ledger.amount(Account.LOST))
    assert mode != "suspend" or memory != 0 or all(len(of_job) == 1 for of_job in runs.values())
