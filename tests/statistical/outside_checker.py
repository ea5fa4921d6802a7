"""Random cases of every policy, checked from the tables of their results alone (:mod:`tests.outside`).

``python -m tests.statistical.outside_checker --cases 20000`` prints how many cases of which policies were run, and each case
that fails or differs, with the batch that repeats it: ``--seed``.  Machines and jobs are those of the random tests
(tests/property): failures, limited memory, periodic checkpoints, stores with a bandwidth, nodes of several processors, urgent
jobs with a limit Q, moldable jobs.  Where nodes are shared in time, one case in three is replayed slice by slice as well.
"""

import argparse
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from clustermodel.machine import ALLOCATIONS
from clustermodel.validation import to_gib
from tests.gang_runs import POLICIES, GangCase, gang_cases, run, seen_in_time
from tests.node_memory import Noted
from tests.outside import differences
from tests.property.test_failures import DEDICATED as SPACE_SHARING
from tests.property.test_failures import failing, storing
from tests.property.test_node_memory import DEDICATED as SUSPENDING
from tests.property.test_node_memory import IN_ROWS, with_memory

BATCH: Final = 250
"""Cases that are drawn together."""
ROWS: Final = tuple(dict.fromkeys((*POLICIES, *IN_ROWS, "mbgs:urgent=checkpoint", "mbgs:urgent=kill", "gs:mpl=1", "bf")))
OTHERS: Final = (
    "easy:backfill_order=shortest", "easy:reservation=kept", "slack:awt=20,heuristic=dc", "slack:awt=20,compression=shift",
    "pv-easy:mode=suspend", "srtf", "srsf:mode=kill", "las", "las:thresholds=5/20", "fifo-preempt:mode=checkpoint", "R/L",
    "1/L:test_runs=true,width=greedy", "R/L-NG:width=half,widening=1", "backfilling:width=greedy",
)  # fmt: skip
DEDICATED: Final = tuple(dict.fromkeys((*SPACE_SHARING, *SUSPENDING, *OTHERS)))
KINDS: Final = ("plain", "failures", "store", "failures and store", "memory", "failures and memory", "processors")


class Case(NamedTuple):
    """What is run."""

    policy: str
    kind: str
    case: GangCase


@st.composite
def outside_cases(draw: st.DrawFn) -> Case:
    """Return a random case of any policy."""
    policy, kind = draw(st.sampled_from(ROWS) | st.sampled_from(DEDICATED)), draw(st.sampled_from(KINDS))
    in_rows = policy in ROWS
    strategy = gang_cases(perhaps_none_runs=False, largest=draw(st.sampled_from((4, 10, 16))))
    if "failures" in kind:
        strategy = failing(strategy, in_rows=in_rows)
    if "store" in kind:
        strategy = storing(strategy, in_rows=in_rows)
    if "memory" in kind:
        strategy = with_memory(strategy)
    case = draw(strategy)
    if "store" in kind and draw(st.booleans()):
        most = max(row.memory for row in case.rows)
        case = GangCase(replace(case.machine, node_memory_gib=to_gib(max(most, 1) * draw(st.integers(1, 3)))), case.rows)
    if kind == "processors":
        per_node = draw(st.sampled_from((2, 4)))
        rows = [row._replace(nodes=row.nodes * draw(st.integers(1, per_node))) for row in case.rows]
        machine = replace(case.machine, gpus_per_node=per_node, allocation=draw(st.sampled_from(ALLOCATIONS)))
        case = GangCase(machine, rows)
    if case.machine.checkpointing.max_tasks_per_slice == 0 and policy not in POLICIES:
        costs = replace(case.machine.checkpointing, max_tasks_per_slice=1)
        case = GangCase(replace(case.machine, checkpointing=costs), case.rows)
    return Case(policy, kind, case)


def check(policy: str, case: GangCase, *, replayed: bool) -> list[str]:
    """Run a case; return what does not hold, or the exception that ended it."""
    noted = Noted(policy)  # which hides what the slack policy measures before a run
    by_name = case.machine.node_memory_gib is None or policy == "slack"
    try:
        result = run(case, policy if by_name else noted)
        found = differences(result, case.rows, noted.discarded)
        if replayed and result.slices is not None and seen_in_time(result) != seen_in_time(run(case, policy, fidelity="node")):
            found.append("the slow mode differs")
    except Exception as problem:  # of whatever kind: it is reported with its case
        return [" ".join(f"{type(problem).__name__}: {problem}".split())]
    return found


def each_case(cases: int, first_seed: int, take: Callable[[int, int, Case], None]) -> None:
    """Draw cases and call ``take(seed, number, case)`` with each; the same seed draws the same :data:`BATCH`."""
    for batch in range(-(-cases // BATCH)):
        number = 0
        size = min(BATCH, cases - batch * BATCH)

        @seed(first_seed + batch)
        @settings(
            max_examples=size, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
        )
        @given(case=outside_cases())
        def draw(case: Case) -> None:
            nonlocal number
            number += 1
            take(first_seed + batch, number, case)  # noqa: B023  it is called in this pass of the loop

        draw()


def main() -> None:
    """Check random cases of every policy from the tables of their results."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--cases", type=int, default=20_000, help="how many; the default is 20,000")
    parser.add_argument("--seed", type=int, default=1, help="of the first batch")
    asked = parser.parse_args()
    ran: Counter[str] = Counter()
    differing: Counter[str] = Counter()

    def take(batch: int, number: int, case: Case) -> None:
        found = check(case.policy, case.case, replayed=number % 3 == 0)
        ran[case.policy] += 1
        if found:
            differing[case.policy] += 1
            print(
                f"--seed {batch}, case {number}, {case.policy}, {case.kind}: {'; '.join(found[:3])}\n    {case.case}",
                flush=True,
            )

    with suppress(KeyboardInterrupt):
        each_case(asked.cases, asked.seed, take)
    for policy, cases in sorted(ran.items()):
        print(f"{policy}: {cases:,} cases, {differing[policy]:,} differ")
    print(f"{sum(ran.values()):,} cases, {sum(differing.values()):,} differ")
    raise SystemExit(bool(differing))


if __name__ == "__main__":
    main()
