"""Digests of job tables and ledgers of every registered policy: what a refactoring must not change.

``python -m tests.golden.digests`` compares with the stored ones and prints what differs; ``--write`` stores new ones, after a
change that is meant to change numbers.  The runs: KTH-SP2, the first 10,000 jobs of CTC-SP2, and the model blue-pacific, each
without costs and with context switches, checkpoints, restarts and a limit of the checkpoint store.
"""

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from clustermodel import Checkpointing, ContextSwitch, Machine, Scenario, Workload, load_model, policy_names, read_swf
from clustermodel.experiment.user_code import is_ours
from clustermodel.policies.registry import policy_factory
from clustermodel.recording.ledger import Account
from tests.shared_data import SHARED

STORED: Final = Path(__file__).with_name("digests.json")
COLUMNS: Final = (
    "job", "submit_s", "start_s", "end_s", "nodes", "allocated_nodes", "run_s", "estimate_s", "user", "status", "reserved_s",
    "blocked", "backfilled", "tries", "wasted_node_s",
)  # fmt: skip
VARIANTS: Final = (
    "easy:predictor=last", "conservative:predictor=last-two", "pv-easy:correction=second", "pv-easy:mode=checkpoint",
    "pv-easy:mode=suspend", "backfilling:speculation=0.9,test_runs=true",
)  # fmt: skip
"""Ways of the mechanism that no policy goes by default."""
IN_ROUNDS: Final = {name: f"{name}:round_s=3600" for name in ("max-min", "finish-time-fair")}
"""Here restarts in rounds of six minutes take half of the machine, so that the queue grows without end."""
ALWAYS: Final = ("useful", "lost", "context switch", "checkpoint", "restart", "blocked", "idle")
"""Accounts in every digest; others are in those of runs that charge something to them: a new account changes no others."""
TRACES: Final = {"kth": ("KTH-SP2-1996-2.2.swf.gz", 100), "ctc": ("CTC-SP2-1996-3.1-cln.swf.gz", 430)}
JOBS: Final = 10_000
"""Of CTC-SP2 and of the model."""


class Case(NamedTuple):
    """One run."""

    workload: str
    costs: bool
    policy: str

    @property
    def name(self) -> str:
        return f"{self.workload}, {'with' if self.costs else 'without'} costs, {self.policy}"


def cases() -> Iterator[Case]:
    """Yield all runs; tests may have registered policies of their own."""
    ours = [policy for policy in policy_names() if is_ours(getattr(factory := policy_factory(policy), "func", factory))]
    for workload in ("kth", "ctc", "blue-pacific"):
        for costs in (False, True):
            for policy in (*ours, *VARIANTS):
                yield Case(workload, costs, IN_ROUNDS.get(policy, policy))


@cache
def workload(name: str) -> Workload:
    """Return the jobs of one of the three workloads."""
    if name == "blue-pacific":
        return load_model(name).generate(jobs=JOBS, seed=1).with_phi_estimates(seed=1)
    file, nodes = TRACES[name]
    jobs = read_swf(SHARED / "traces" / file)
    rows = list(jobs.rows())[: None if name == "kth" else JOBS]
    return Workload(rows, name=name, machine_nodes=nodes)


def digest(case: Case) -> str:
    """Run one case and return the digest of its job table and of its ledger."""
    jobs = workload(case.workload)
    assert jobs.machine_nodes is not None
    machine = Machine(nodes=jobs.machine_nodes)
    if case.costs:
        machine = Machine(
            nodes=jobs.machine_nodes,
            context_switch=ContextSwitch(fraction=0.02),
            checkpointing=Checkpointing(checkpoint_s=60.0, restart_s=90.0, max_tasks_per_slice=jobs.machine_nodes // 2),
        )
    result = Scenario(machine=machine, workload=jobs, policy=case.policy, seed=7).run()
    table = result.jobs[list(COLUMNS)].to_csv(index=False, lineterminator="\n")
    amounts = {account: result.ledger.amount(account) for account in Account}
    books = {account.value: list(amount) for account, amount in amounts.items() if any(amount) or account in ALWAYS}
    return hashlib.sha256((table + json.dumps(books, sort_keys=True)).encode()).hexdigest()


def main() -> int:
    """Compare all digests with the stored ones, or store them; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="store what is found")
    parser.add_argument("--only", default="", help="runs whose names have this text")
    arguments = parser.parse_args()
    chosen = [case for case in cases() if arguments.only in case.name]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = dict(zip((case.name for case in chosen), pool.map(digest, chosen), strict=True))
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    differing = [name for name, value in found.items() if stored.get(name) != value]
    for name in differing:
        print(name, "is new" if name not in stored else "differs")
    if arguments.write:
        STORED.write_text(json.dumps(stored | found, indent=1, sort_keys=True) + "\n")
    print(f"{len(found)} runs, {len(differing)} not as stored")
    return 1 if differing and not arguments.write else 0


if __name__ == "__main__":
    sys.exit(main())
