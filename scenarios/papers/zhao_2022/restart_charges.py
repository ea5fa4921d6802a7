"""How much does the charging convention of restarts change the results on a GPU cluster?

Zhao et al. 2022 (Muri) compare preemptive schedulers on traces from Microsoft's Philly clusters: 64 GPUs, each job with the
start-up cost that was measured for its model and size.  In the authors' simulator every running job pays that cost after every
decision.  Here each scheduler runs without the cost, with the cost charged when a preempted job restarts, and with the cost
charged repeatedly: after every decision, or for the jobs of the authors' testbed in every round of 360 s.

Small and full (15 s on two cores): the traces are fixed, so there are no intervals.

    clustermodel sweep scenarios/papers/zhao_2022/restart_charges.py --out full --set traces=../shared/traces/gpu
"""

from pathlib import Path

import pandas as pd

from clustermodel import Checkpointing, Machine, Result, Scenario, Study, StudyTable, Workload, read_trace

TESTBED = "testbed_jobs"
POLICIES = {"srtf": "SRTF", "srsf": "SRSF", "las:thresholds=3250/7200": "Tiresias"}
CHARGES = ("none", "on start", "repeatedly")
MEASURES = {"mean_response_s": "mean", "makespan_s": "makespan", "p99_response_s": "99th percentile"}
OVER = {"SRTF": "Muri-S", "SRSF": "Muri-S", "Tiresias": "Muri-L", "Themis": "Muri-L"}
"""Which of the authors' schedulers, with or without known run times, the paper divides by."""
PUBLISHED_S = {
    "trace1": {
        "SRTF": (1_370_603.198, 26_045_465.532945, 16_647_148.09074),
        "SRSF": (980_140.5699, 26_065_759.044845, 15_529_913.227905),
        "Muri-S": (867_705.7941, 18_446_535.222645, 10_618_148.302723),
        "Tiresias": (3_330_371.307, 23_556_410.217355, 14_739_851.5052),
        "Themis": (1_823_179.078, 24_658_268.63, 17_159_064.05),
        "Muri-L": (1_072_009.71, 18_593_245.706217, 11_322_989.635491),
    },
    "trace1_pr": {
        "SRTF": (2_303_543.816, 24_513_543.937825, 19_871_388.29092),
        "SRSF": (1_801_859.995, 24_272_529.59311, 18_267_307.81118),
        "Muri-S": (1_467_191.905, 16_596_420.784624, 13_395_942.722876),
        "Tiresias": (6_921_682.793, 21_990_477.824095, 21_765_400.784095),
        "Themis": (3_314_303.178, 23_369_493.47, 20_555_281.24),
        "Muri-L": (2_141_936.535, 16_639_500.393368, 13_214_336.412037),
    },
    "trace3": {
        "SRTF": (193_081.796, 8_174_135.28, 4_538_890.607),
        "SRSF": (185_021.8802, 8_174_135.28, 4_189_699.177),
        "Muri-S": (85_502.55387, 8_174_135.28, 992_405.062),
        "Tiresias": (347_213.2481, 8_174_226.28, 4_983_397.254),
        "Themis": (397_058.802, 8_172_104.51, 2_967_333.366),
        "Muri-L": (88_686.97313, 8_174_135.28, 927_167.0483),
    },
    "trace3_pr": {
        "SRTF": (844_394.78, 7_261_795.828, 6_363_099.549),
        "SRSF": (798_057.6829, 6_907_790.403, 6_228_160.594),
        "Muri-S": (537_776.6163, 4_400_674.99, 4_105_513.658),
        "Tiresias": (2_213_110.128, 6_761_641.42, 6_739_568.999),
        "Themis": (1_502_768.219, 6_760_041.974, 6_496_197.725),
        "Muri-L": (921_094.7449, 4_403_652.203, 4_167_478.347),
    },
    TESTBED: {
        "SRTF": (249_140.176953, 4_156_633.26289, 2_723_588.792933),
        "SRSF": (238_612.092932, 4_223_121.821402, 3_138_494.38375),
        "Muri-S": (117_634.554467, 2_662_548.294849, 822_571.676997),
        "Tiresias": (336_533.171665, 3_959_796.871355, 2_812_808.288529),
        "Themis": (461_456.234115, 3_924_818.880355, 2_876_142.917767),
        "Muri-L": (129_744.660102, 2_666_872.437762, 1_106_155.678542),
    },
}
"""Published completion times by workload and policy in the order of the measures, seconds.

Behind figures 9 and 10: ``simulator/draw_fig9-10.py`` in the authors' repository; tables 3 and 4, of the testbed:
``cluster_exp/results``.
"""
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


def p99_response_s(result: Result) -> float:
    """Return the 99th percentile as the authors' ``calc.py`` takes it: one of the completion times."""
    completions = result.jobs["response_s"].sort_values()
    return float(completions.iloc[int(0.99 * len(completions))])


def by_charge(table: StudyTable, measure: str) -> pd.DataFrame:
    """Return a measure by workload and policy, a column for each convention, and as published."""
    means = table.means(measure).set_index(["workload", "policy", "charge"])[measure].unstack()[list(CHARGES)]
    place = list(MEASURES).index(measure)
    return means.assign(published=[PUBLISHED_S[workload][POLICIES[policy]][place] for workload, policy in means.index])


def means_beside_published(table: StudyTable) -> pd.DataFrame:
    means = by_charge(table, "mean_response_s")
    shown = means.map("{:,.1f}".format)
    shown["repeatedly / on start"] = (means["repeatedly"] / means["on start"]).map("{:.3f}".format)
    starts = table.at(charge="on start").means("fragmented").set_index(["workload", "policy"])["fragmented"]
    shown["fragmented starts"] = starts.map("{:.0f}".format)
    return shown.rename(index=POLICIES, level="policy").reset_index()


def others_beside_published(table: StudyTable) -> pd.DataFrame:
    shown = {
        MEASURES[measure]: by_charge(table, measure)[[*CHARGES[1:], "published"]].map("{:,.0f}".format)
        for measure in ("makespan_s", "p99_response_s")
    }
    joined = pd.concat(shown, axis="columns").rename(index=POLICIES, level="policy")
    return joined.set_axis([", ".join(column) for column in joined.columns], axis="columns").reset_index()


def over_muri(table: StudyTable) -> pd.DataFrame:
    """Return all measures over Muri's published ones; ours are the nearest to the published rule."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for place, (measure, name) in enumerate(MEASURES.items()):
        numbers = by_charge(table, measure)
        for workload, policy in numbers.index:
            label, charge = POLICIES[policy], "on start" if workload == TESTBED else "repeatedly"
            muri = PUBLISHED_S[workload][OVER[label]][place]
            ours, published = (numbers[column][workload, policy] / muri for column in (charge, "published"))
            cells.setdefault((label, name), {})[workload] = f"{ours:.2f} / {published:.2f}"
    return pd.DataFrame.from_dict(cells, orient="index").rename_axis(["policy", "measure"]).reset_index()


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
        measures={
            "makespan_s": makespan_s,
            "p99_response_s": p99_response_s,
            "fragmented": lambda result: result.fragmented_starts,
        },
        shown=("mean_response_s", "restart_share", "makespan_s", "p99_response_s", "fragmented", "preempted"),
        tables={
            "Mean completion times by charging convention (s), and as published": means_beside_published,
            "Makespans and 99th percentiles of completion times by charging convention (s), and as published": (
                others_beside_published
            ),
            "Over Muri: ours / published": over_muri,
        },
        text=__doc__ or "",
    )
