"""What is the charging convention of restarts worth on a GPU cluster?

Zhao et al. 2022 (Muri) compare preemptive schedulers on traces from Microsoft's Philly clusters: 64 GPUs, each job with the
start-up cost that was measured for its model and size.  In the authors' simulator every running job pays that cost after every
decision.  Here each scheduler runs without cost, with the cost paid when a preempted job restarts, and with the cost paid
repeatedly: after every decision, and for the jobs of the authors' testbed in every round of 360 s.

    clustermodel sweep scenarios/papers/zhao_2022/restart_charges.py --out results --set traces=../shared/traces/gpu
"""

from pathlib import Path

import pandas as pd

from clustermodel import Checkpointing, Machine, Result, Scenario, Study, StudyTable, Workload, read_trace

TESTBED = "testbed_jobs"
POLICIES = {"srtf": "SRTF", "srsf": "SRSF", "las:thresholds=3250/7200": "Tiresias"}
CHARGES = ("none", "on start", "repeatedly")
PUBLISHED_S = {  # figures 9 and 10, with the authors' program; the testbed's runs
    "trace1": (1_370_603.198, 980_140.5699, 3_330_371.307),
    "trace1_pr": (2_303_543.816, 1_801_859.995, 6_921_682.793),
    "trace3": (193_081.796, 185_021.8802, 347_213.2481),
    "trace3_pr": (844_394.78, 798_057.6829, 2_213_110.128),
    TESTBED: (249_140, 238_612, None),
}
"""Published mean completion times by workload, in the order of the policies, seconds."""
ROUND_S = 360


def machine(workload: str, charge: str) -> Machine:
    """Return 64 GPUs with a charging convention; the testbed decides in rounds."""
    rounds = workload == TESTBED
    convention = ("every-round" if rounds else "every-decision") if charge == "repeatedly" else "on-start"
    return Machine(
        nodes=8,
        gpus_per_node=8,
        allocation="consolidate",
        checkpointing=Checkpointing(restart_charge=convention),
        round_s=ROUND_S if rounds else 0,
    )


def jobs(path: Path, charge: str) -> Workload:
    found = read_trace(path)
    return found if charge != "none" else Workload.from_frame(found.frame.drop(columns="restart_s"), name=found.name)


def makespan_s(result: Result) -> float:
    return float(result.jobs["end_s"].max() - result.jobs["submit_s"].min())


def beside_published(table: StudyTable) -> pd.DataFrame:
    means = (
        table.means("mean_response_s").set_index(["workload", "policy", "charge"])["mean_response_s"].unstack()[list(CHARGES)]
    )
    published = {(name, policy): mean for name, row in PUBLISHED_S.items() for policy, mean in zip(POLICIES, row, strict=True)}
    shown = means.assign(published=pd.Series(published))
    shown["repeatedly / on start"] = (shown["repeatedly"] / shown["on start"]).map("{:.3f}".format)
    starts = table.at(charge="on start").means("fragmented").set_index(["workload", "policy"])["fragmented"]
    shown["fragmented starts"] = starts.map("{:.0f}".format)
    for column in (*CHARGES, "published"):
        shown[column] = [f"{mean:,.1f}" if mean == mean else "" for mean in shown[column]]  # noqa: PLR0124  not nan
    return shown.rename(index=POLICIES, level="policy").reset_index()


def study(traces: str = "../shared/traces/gpu", workloads: tuple[str, ...] = tuple(PUBLISHED_S)) -> Study:
    """Return the study; ``traces`` is the folder with the workloads."""
    return Study(
        name="charging conventions of restarts",
        factors={"workload": list(workloads), "policy": list(POLICIES), "charge": list(CHARGES)},
        scenario=lambda workload, policy, charge, seed: Scenario(
            machine=machine(workload, charge),
            workload=jobs(Path(traces, f"muri_{workload}.csv"), charge),
            policy=policy,
            seed=seed,
        ),
        measures={"makespan_s": makespan_s, "fragmented": lambda result: result.fragmented_starts},
        shown=("mean_response_s", "restart_share", "makespan_s", "fragmented", "preempted"),
        tables={"Mean completion times by charging convention (s), and as published": beside_published},
        text=__doc__ or "",
    )
