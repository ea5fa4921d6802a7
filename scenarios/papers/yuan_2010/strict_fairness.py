r"""What does strict fairness cost, and how long do lower-priority jobs delay others under EASY?

Yuan et al. 2010, tables 1, 2 and 4 to 6 and figures 2, 3, 5 and 6 (sections 3 and 5): PV-EASY, EASY, EASY with predictions of
the Last Model (EASY-Last), and PV-EASY without one of its parts or with another predictor.

The paper says that a job that reaches its estimate is killed (section 2.1), and that run times are "faithful to the original
workload" (section 5.1.3), where many exceed the estimate.  Each policy therefore runs twice, with run times as recorded and cut
at the estimate.  The last table shows the runs with times cut at the estimate; all others show run times as recorded, whose
loads are closer to the paper's.  Big jobs need more than a quarter of the machine; short jobs run for less than 10 minutes.

Small (30 s on two cores): in synthetic jobs, EASY lets lower-priority jobs delay others and PV-EASY does not, which costs
PV-EASY capacity in discarded work.

    clustermodel sweep scenarios/papers/yuan_2010/strict_fairness.py --out small --set jobs=2000 --set replications=10

Full (75 s on two cores): the log of CTC-SP2, which is fixed, so without intervals.

    clustermodel sweep scenarios/papers/yuan_2010/strict_fairness.py --out full \
        --set trace=../shared/traces/CTC-SP2-1996-3.1-cln.swf.gz --set nodes=430
"""

from functools import partial

import numpy as np
import pandas as pd
from fairness_measures import delayed_measure, fairness_measure
from matplotlib.figure import Figure

from clustermodel import Machine, Scenario, Study, StudyTable
from clustermodel.experiment.design import MEASURED
from clustermodel.report.measure_table import Columns, Scaled, by_class, class_measures, measure_table, published_table
from clustermodel.workload.synthetic import study_jobs

POLICIES = {
    "EASY": "easy", "EASY-Last": "easy:predictor=last", "PV-EASY": "pv-easy", "PV-EASY without VB": "pv-easy:vb=false",
    "PV-EASY without SLP": "pv-easy:slp=false", "PV-EASY, estimates": "pv-easy:predictor=estimate",
    "PV-EASY, perfect predictions": "pv-easy:predictor=perfect", "EASY, perfect predictions": "easy:predictor=perfect",
}  # fmt: skip
COMPARED = ("PV-EASY", "EASY", "EASY-Last")
"""The policies of figures 2, 3, 5 and 6."""
AS_RECORDED, CUT = "as recorded", "cut at the estimate"
MBS, MWBS = "mean_bounded_slowdown", "mean_weighted_bounded_slowdown"
OF_BLOCKED = {"MBS": "blocked_bounded_slowdown", "MWBS": "blocked_weighted_bounded_slowdown", "blocked": "blocked"}
LOADS = {"total load (%)": Scaled("total_load", 100), "wasted load (%)": Scaled("wasted_load", 100)}
OVERALL = {"MBS": MBS, "MWBS": MWBS, "mean wait (s)": "mean_wait_s"}
TABLES: dict[str, Columns] = {
    "Table 1, jobs delayed by lower-priority jobs": {
        "delayed": "delayed", "mean delay (min)": Scaled("mean_delay_by_later_s", 1 / 60),
        "longest (h)": Scaled("longest_delay_by_later_s", 1 / 3600), "over 1 min": "delayed_over_60_s",
        "over 10 min": "delayed_over_600_s", "also while no node was idle": "delayed_literally",
        "by jobs backfilled over it": "delayed_over_it",
    },
    "Table 2, reservation violations": {
        "violations": "reservation_violations", "mean nodes": "mean_violation_nodes",
        "mean DTR (min)": Scaled("mean_violation_s", 1 / 60), "mean SI": "mean_slowdown_increment",
        "longest DTR (h)": Scaled("longest_violation_s", 1 / 3600), "largest SI": "largest_slowdown_increment",
        "benign violations": "benign_violations", "by jobs backfilled over it": "reservation_violations_over_it",
    },
    "Tables 4 to 6, backfilled and blocked jobs, cost of preemption": {
        "backfilled": "backfilled", "blocked": "blocked", **LOADS, "preempted": "preempted",
        "preempted (%)": Scaled("preempted_rate", 100), "MKT": "mean_killed_times", "RTW (%)": Scaled("runtime_waste", 100),
    },
    "Figures 2 and 3, blocked jobs": {
        f"{title}, {name}": f"{group}_{measure}"
        for title, measure in OF_BLOCKED.items() for group, name in (("wide", "big"), ("narrow", "small"))
    },
    "Figures 5 and 6, all jobs": {
        **OVERALL, "MBS, big": f"wide_{MBS}", "MBS, small": f"narrow_{MBS}",
        **{f"MBS, {which}": f"{which}_{MBS}" for which in ("short", "long", "preempted")},
    },
}  # fmt: skip
DELAYED = {
    "delayed_over_60_s": delayed_measure(over_s=60),
    "delayed_over_600_s": delayed_measure(over_s=600),
    "delayed_literally": delayed_measure(only_with_idle_nodes=False),
}
COUNTS = {name: name for name in ("blocked", "delayed", "reservation_violations", "preempted")}


def study(trace: str | None = None, nodes: int = 128, jobs: int = 0, replications: int = 1) -> Study:
    """Return the study; ``jobs`` is 0 for all jobs of the trace, or 20,000 synthetic ones."""
    paper = published_table(__file__, "table 1", "table 2", "table 4", "tables 5 and 6", trace=trace)

    def scenario(policy: str, run_times: str, seed: int) -> Scenario:
        machine = Machine(nodes=nodes, kill_at_estimate=run_times == CUT)
        workload = study_jobs(trace, jobs=jobs, nodes=nodes, seed=seed)
        return Scenario(machine=machine, workload=workload, policy=POLICIES[policy], seed=seed)

    own = [one if isinstance(one, str) else one.measure for columns in TABLES.values() for one in columns.values()]
    measures = class_measures(
        lambda result: np.where(result.jobs["run_s"] < 600, "short", "long"), ("short", "long"), {f"{{}}_{MBS}": MBS}
    )
    measures |= class_measures(
        lambda result: np.where(result.jobs["tries"] > 1, "preempted", "never"), ["preempted"], {f"{{}}_{MBS}": MBS}
    )
    measures |= DELAYED
    measures |= {name: fairness_measure(name) for name in own if name not in (*MEASURED, *measures)}
    return Study(
        name="strict fairness",
        factors={"policy": list(POLICIES), "run_times": [AS_RECORDED, CUT]},
        scenario=scenario,
        measures=measures,
        replications=replications,
        shown=[*dict.fromkeys(name for name in own if name in MEASURED), "horizon_s"],
        tables={
            **{title: partial(means, columns=columns, paper=paper) for title, columns in TABLES.items()},
            f"Run times {CUT}": partial(means, columns={**OVERALL, **COUNTS, **LOADS}, run_times=CUT),
        },
        figures={f"Blocked jobs and all jobs, run times {AS_RECORDED}": picture},
    )


def means(table: StudyTable, columns: Columns, paper: pd.DataFrame | None = None, run_times: str = AS_RECORDED) -> pd.DataFrame:
    return measure_table(table.at(run_times=run_times), columns, by=["policy"], published=paper)


def picture(table: StudyTable) -> Figure:
    prefixes = {"big, blocked": "wide_blocked_", "small, blocked": "narrow_blocked_", "all": "mean_"}
    columns = {group: {mean: mean.replace("mean_", prefix) for mean in (MBS, MWBS)} for group, prefix in prefixes.items()}
    found = by_class(table.at(run_times=AS_RECORDED, policy=COMPARED), "group", columns)
    return found.plot.bars(y=[MBS, MWBS], x="group")
