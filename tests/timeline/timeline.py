"""Hand-worked timelines: jobs written as text, the schedule as ``job: start-end`` in seconds."""

from __future__ import annotations

from typing import Any

from clustermodel import Job, Machine, Scenario, Workload
from clustermodel.experiment.result import Result
from clustermodel.policies.interface import Policy


def play(nodes: int, jobs: str, policy: str | Policy, *, explain: bool = False, **machine: Any) -> Result:
    """Run jobs given as lines ``id submit nodes run [estimate [priority]]``; ``machine`` has further fields of the machine."""
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
            )
        )
    return Scenario(
        machine=Machine(nodes=nodes, **machine), workload=Workload.from_jobs(specifications), policy=policy, explain=explain
    ).run()


def spans(result: Result) -> dict[int, tuple[float, float]]:
    """Return job -> (start, end) in seconds."""
    jobs = result.jobs
    return {int(job): (start, end) for job, start, end in zip(jobs["job"], jobs["start_s"], jobs["end_s"], strict=True)}
