r"""How close does fair sharing in rounds come to the published numbers of Themis?

Zhao et al. 2022 (Muri) compare with Themis, in a simulator and on a testbed.  Both decide whenever a job arrives or completes;
``finish-time-fair`` decides in every round of 360 s, as in Gavel's program, and a job pays for a restart when it starts.

Small (15 s on two cores): the testbed jobs and one trace; mean completion times are 5 to 20 % above the published ones.

    clustermodel sweep scenarios/papers/zhao_2022/themis.py --out small \
        --set traces=../shared/traces/gpu --set workloads=testbed_jobs,trace3

Full (about 2.5 min on two cores): the traces are fixed, so there are no intervals.

    clustermodel sweep scenarios/papers/zhao_2022/themis.py --out full --set traces=../shared/traces/gpu
"""

from pathlib import Path

import pandas as pd
from restart_charges import MEASURES, OVER, PUBLISHED_S, TESTBED, jobs, machine, makespan_s, p99_response_s

from clustermodel import Scenario, Study, StudyTable

THEMIS = "Themis"


def beside_published(table: StudyTable) -> pd.DataFrame:
    rows = []
    for workload in map(str, table.levels("workload")):
        numbers = PUBLISHED_S[workload]
        for (measure, name), published, muri in zip(MEASURES.items(), numbers[THEMIS], numbers[OVER[THEMIS]], strict=True):
            ours = table.interval(measure, workload=workload).mean
            seconds, ratios = (f"{ours:,.0f}", f"{published:,.0f}"), (f"{ours / muri:.2f}", f"{published / muri:.2f}")
            rows.append((workload, name, *seconds, f"{ours / published - 1:+.1%}", *ratios))
    over = f"over {OVER[THEMIS]}"
    columns = ["workload", "completion time", "ours (s)", "published (s)", "difference", over, f"{over}, published"]
    return pd.DataFrame(rows, columns=columns)


def study(traces: str = "../shared/traces/gpu", workloads: tuple[str, ...] = tuple(PUBLISHED_S)) -> Study:
    """Return the study; ``traces`` is the folder with the workloads."""
    return Study(
        name="finish-time fairness",
        factors={"workload": list(workloads)},
        scenario=lambda workload, seed: Scenario(
            machine=machine(TESTBED, "on start"),
            workload=jobs(Path(traces, f"muri_{workload}.csv"), "on start"),
            policy="finish-time-fair",
            seed=seed,
        ),
        measures={"makespan_s": makespan_s, "p99_response_s": p99_response_s},
        shown=("mean_response_s", "restart_share", "makespan_s", "p99_response_s", "preempted"),
        tables={"Themis, as it is here and as published": beside_published},
        text=__doc__ or "",
    )
