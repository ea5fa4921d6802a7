"""Does the order in which EASY backfills matter?  Five policies on the same jobs, one of them defined here.

python scenarios/quickstart.py                              check the policy, compare all five, explain one job
clustermodel run scenarios/quickstart.py                    the comparison; with --json, --jobs-csv or --figure
clustermodel sweep scenarios/quickstart.py --out results    the comparison as a study, whose results are kept
"""

from __future__ import annotations

from clustermodel import Batch, Machine, Scenario, Setup, Start, View, check_policy, comparison_table, synthetic_workload


class Greedy:
    """First fit: start every waiting job that fits, in queue order, without reservations.

    Large jobs starve while small jobs keep arriving.
    """

    name = "greedy"

    def start(self, setup: Setup) -> Greedy:
        """Return what decides in a run: the policy itself, which remembers nothing."""
        return self

    def decide(self, batch: Batch, view: View) -> list[Start]:
        """Assign the idle nodes."""
        idle = view.idle
        starts = []
        for job in view.waiting.values():
            if job.nodes <= idle:
                idle -= job.nodes
                starts.append(Start(job=job))
        return starts


machine = Machine(nodes=128)
workload = synthetic_workload(jobs=5_000, nodes=128, load=0.85, seed=1)
scenarios = [
    Scenario(machine=machine, workload=workload, policy=policy, seed=1, explain=True)
    for policy in ("fcfs", "easy", "easy:backfill_order=shortest", "conservative", Greedy())
]


def main() -> None:
    broken = check_policy(Greedy())
    print("greedy keeps every rule" if not broken else "\n".join(map(str, broken)))
    results = [scenario.run() for scenario in scenarios]
    print(comparison_table(results))
    easy = results[1]
    waited = easy.jobs[easy.jobs["backfilled"] & (easy.jobs["wait_s"] > 0)]
    print(easy.explain(int(waited["job"].iloc[0])))


if __name__ == "__main__":
    main()
