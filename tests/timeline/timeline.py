"""Hand-worked timelines: jobs written as text, the schedule as ``job: start-end`` in seconds."""

import warnings
from collections.abc import Mapping
from typing import Any, get_args

from clustermodel import Job, Machine, Scenario, Speedup, Workload
from clustermodel.experiment.result import Result
from clustermodel.experiment.scenario import NOTHING_PLAYED
from clustermodel.policies.interface import Policy
from clustermodel.recording.ledger import Account
from clustermodel.sim.simulation import Fidelity
from clustermodel.ticks import to_seconds
from clustermodel.workload.speedup import LINEAR
from tests.gang_runs import check_books, seen_in_time


def play(
    nodes: int,
    jobs: str,
    policy: str | Policy,
    *,
    explain: bool = False,
    fidelity: Fidelity = "fast",
    history: bool = False,
    speedup: Speedup = LINEAR,
    each: Mapping[str, Any] | None = None,
    **machine: Any,
) -> Result:
    """Run jobs given as lines ``id submit nodes run [estimate [priority [memory_gib]]]``.

    ``each`` has further fields of all jobs, ``machine`` of the machine.
    """
    specifications = []
    for line in jobs.strip().splitlines():
        number, submit, size, run, *rest = line.split()
        specifications.append(
            Job(
                id=int(number),
                submit_s=float(submit),
                nodes=int(size),
                run_s=float(run),
                estimate_s=float(rest[0]) if rest else None,
                priority=int(rest[1]) if len(rest) > 1 else 0,
                **{"memory_gib": float(rest[2]) if len(rest) > 2 else None, **(each or {})},
            )
        )
    return Scenario(
        machine=Machine(nodes=nodes, **machine),
        workload=Workload.from_jobs(specifications),
        policy=policy,
        explain=explain,
        fidelity=fidelity,
        history=history,
        speedup=speedup,
    ).run()


def play_both(nodes: int, jobs: str, policy: str | Policy, **more: Any) -> Result:
    """Run jobs on both fidelities, check the books of each, and check that they agree in everything that happened."""
    fast, node = (play_quietly(nodes, jobs, policy, fidelity=fidelity, history=True, **more) for fidelity in get_args(Fidelity))
    check_books(fast)
    check_books(node)
    assert seen_in_time(fast) == seen_in_time(node)
    assert sorted(stopped(fast)) == sorted(stopped(node))  # of those stopped at one time, none comes first
    return fast


def play_quietly(nodes: int, jobs: str, policy: str | Policy, **more: Any) -> Result:
    """Run jobs without the warning that the slow mode has nothing to play on dedicated nodes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", NOTHING_PLAYED)
        return play(nodes, jobs, policy, **more)


def spans(result: Result) -> dict[int, tuple[float, float]]:
    """Return job -> (start, end) in seconds."""
    jobs = result.jobs
    return {int(job): (start, end) for job, start, end in zip(jobs["job"], jobs["start_s"], jobs["end_s"], strict=True)}


def stopped(result: Result) -> list[tuple[int, float, float, str, float]]:
    """Return the run attempts after which jobs waited again: job, start, end, why, seconds of discarded work."""
    ids = result.records.column("id").tolist()
    return [
        (ids[run.job], to_seconds(run.start), to_seconds(run.end), run.ended_as.label, to_seconds(run.lost))
        for run in result.records.each_stopped_run()
    ]


def spent(result: Result, account: Account) -> float:
    """Return node-seconds."""
    return to_seconds(sum(result.ledger.amount(account)))


def accounts(result: Result) -> dict[Account, float]:
    """Return the accounts of the ledger that are not empty, node-seconds."""
    return {account: amount for account in Account if (amount := spent(result, account))}
