"""How often answers that say *certain* are wrong, over random comparisons whose truth is known.

``python -m tests.statistical.answers --comparisons 200 --seed 1``.  Half of the comparisons have a difference of 0: the waits
of two logs of the same kind.  In the others the machine is larger, or the policy another one, and the truth is the mean over
many logs of the same kind; where that is not clear itself, its sign is not known, and *certain* counts as wrong.
"""

import argparse
from collections import Counter
from functools import cache
from typing import Final

import numpy as np

from clustermodel import Machine, Scenario, synthetic_workload
from clustermodel.arrays import FloatArray
from clustermodel.experiment.comparisons import times_of
from clustermodel.measure.answers import answer_of_log
from clustermodel.measure.statistics import interval

LOGS: Final = 20  # of one kind, for the truth
POLICIES: Final = ("fcfs", "easy", "conservative", "easy:backfill_order=shortest")


@cache
def _waits(jobs: int, load: float, nodes: int, policy: str, seed: int) -> FloatArray:
    workload = synthetic_workload(jobs=jobs, nodes=64, load=load, seed=seed)
    return times_of(workload.column("id"), Scenario(machine=Machine(nodes=nodes), workload=workload, policy=policy).run()).wait


def _verdict(rng: np.random.Generator, *, null: bool) -> str:
    jobs, load = int(rng.choice([500, 1_000, 3_000])), float(rng.choice([0.5, 0.7, 0.85]))
    first, second = rng.choice(POLICIES, 2, replace=False).tolist()
    nodes = 64 if rng.random() < 0.5 else int(rng.choice([65, 68, 72]))
    seed = int(rng.integers(1, 10**6))
    before, after = (64, first), (nodes, first if nodes > 64 else second)

    def waits(case: tuple[int, str], of: int) -> FloatArray:
        return _waits(jobs, load, *case, of)

    if null:
        compared, truth = (waits(before, seed), waits(before, seed + 1)), 0
    else:
        compared = waits(before, seed), waits(after, seed)
        kind = range(10**7, 10**7 + LOGS)
        differences = interval([waits(after, of).mean() - waits(before, of).mean() for of in kind], level=0.99)
        truth = int(np.sign(differences.mean)) if differences.excludes(0) else 0
    found = answer_of_log("", "", *compared, log_s=0)
    if not found.certain:
        return "not certain"
    return "right" if np.sign(found.difference.mean) == truth else "wrong"


def main() -> None:
    """Print how many comparisons are certain, and how many of these are wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comparisons", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    for name, null in (("no difference", True), ("with a difference", False)):
        found = Counter(_verdict(rng, null=null) for _ in range(options.comparisons // 2))
        print(f"{name}: {dict(found)}")


if __name__ == "__main__":
    main()
