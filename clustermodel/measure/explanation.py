"""The decision log: why each job started when it did.  Off by default; without it a run spends one comparison per start."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from clustermodel.errors import counted
from clustermodel.machine.node_set import members
from clustermodel.policies.interface import Reason
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import Account
from clustermodel.recording.run_attempts import UNKNOWN, Status
from clustermodel.ticks import to_seconds


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one job started when it did; ``print`` it, or read the fields (times in seconds)."""

    job: int
    nodes: int
    submit_s: float
    start_s: float
    rule: str
    holder: int | None
    """The waiting job that held the first reservation."""
    shadow_s: float | None
    """When that job was expected to start: the shadow time (Talby & Feitelson 1999, long version)."""
    extra_nodes: int | None
    """Nodes that remain idle at the shadow time when that job starts."""
    reserved_s: float | None
    """The first guaranteed start of this job."""
    head_since_s: float | None
    """When the job was first left waiting at the head of the queue."""

    failed: tuple[tuple[int, float], ...] = ()
    """The failures that stopped earlier run attempts of the job: (node, second)."""
    store_wait_s: float = 0.0
    """How long the job has waited for the checkpoint store in all, with its nodes to itself."""
    power_cap_wait_s: float = 0.0
    """How long the job has waited while enough nodes were idle, of which the power cap let too few be used."""

    def __str__(self) -> str:
        lines = [
            f"job {self.job} ({counted(self.nodes, 'node')}) was submitted at {self.submit_s:,.0f} s and started at "
            f"{self.start_s:,.0f} s, after waiting {self.start_s - self.submit_s:,.0f} s",
            f"  rule: {self.rule}",
        ]
        if self.holder is not None:
            holder = f"  job {self.holder}, ahead of it in the queue, kept waiting"
            if self.shadow_s is not None:
                expected = f"expected to start at {self.shadow_s:,.0f} s (shadow time)"
                holder = f"  reservation held by job {self.holder}, {expected}"
            lines.append(holder if self.extra_nodes is None else f"{holder}; extra nodes: {self.extra_nodes}")
        if self.head_since_s is not None:
            lines.append(f"  blocked at the head of the queue since {self.head_since_s:,.0f} s")
        if self.reserved_s is not None:
            lines.append(f"  first guaranteed start: {self.reserved_s:,.0f} s")
        lines += [f"  restarted after node {node} failed at {second:,.0f} s" for node, second in self.failed]
        if self.store_wait_s:
            lines.append(f"  waited for the checkpoint store, on its nodes, for {self.store_wait_s:,.0f} s")
        if self.power_cap_wait_s:
            lines.append(f"  the power cap kept enough idle nodes from it for {self.power_cap_wait_s:,.0f} s")
        return "\n".join(lines)


def explanation(records: JobRecords, job: int, reason: Reason) -> Explanation:
    """Return the explanation of a job's start, for which the policy gave a reason."""
    index = int(np.flatnonzero(records.column("id") == job)[0])
    overheads = records.overheads
    waits = (overheads.job == index) & (overheads.account == list(Account).index(Account.BLOCKED))
    times = {
        "submit_s": records.column("submit")[index],
        "start_s": records.column("start")[index],
        "shadow_s": UNKNOWN if reason.shadow is None else reason.shadow,
        "reserved_s": records.column("reserved")[index],
        "head_since_s": records.blocked_since[index],
        "store_wait_s": (overheads.end[waits] - overheads.start[waits]).sum(),
        "power_cap_wait_s": records.cap_waits.get(index, 0),
    }
    failed = []
    for attempt in records.each_stopped_run():
        if attempt.job == index and attempt.ended_as is Status.FAILED:
            then = set(records.outages.node[records.outages.start == attempt.end].tolist())
            failed.append((min(then.intersection(members(attempt.columns)) or then), to_seconds(attempt.end)))
    seconds: Any = {name: None if ticks == UNKNOWN else to_seconds(int(ticks)) for name, ticks in times.items()}
    about: Any = {"rule": reason.rule, "holder": reason.holder, "extra_nodes": reason.extra, "failed": tuple(failed)}
    return Explanation(job=job, nodes=int(records.column("nodes")[index]), **about, **seconds)
