r"""Which readings of EASY, the Last Model and delays reproduce the numbers of Yuan et al. 2010?

The paper does not say

* when EASY makes a reservation: again whenever running jobs end early (*renewed*, as usual), or once, when the job is blocked
  (*kept*): its reservation is "guaranteed by EASY" (section 3.2);
* what is assumed of a job that outlives its prediction: the paper criticizes EASY-Last for it, and PV-EASY depends on it;
* which "last job of the same user" corrects the estimate: the last one completed, or the last one submitted, as if its run time
  were known;
* whether a job is delayed by every later job, or only by those that were backfilled *over it*: since it was blocked.

The kept reservation, the count of jobs backfilled over a blocked job and the time at which violations are judged were chosen on
CTC-SP2, where many readings were tried; SDSC-BLUE tests the same choices.  Run times are as recorded.

Small (15 s on two cores): in synthetic jobs, only a third of the reservation violations under EASY-Last are caused by jobs
backfilled over the delayed job.

    clustermodel sweep scenarios/papers/yuan_2010/other_readings.py --out small --set jobs=2000 --set replications=10

Full (40 s on two cores): the log of CTC-SP2, which is fixed, so without intervals.

    clustermodel sweep scenarios/papers/yuan_2010/other_readings.py --out full \
        --set trace=../shared/traces/CTC-SP2-1996-3.1-cln.swf.gz --set nodes=430
"""

from functools import partial

import pandas as pd
from fairness_measures import fairness_measure

from clustermodel import Machine, Scenario, Study, StudyTable
from clustermodel.experiment.design import MEASURED
from clustermodel.report.measure_table import Columns, Scaled, measure_table, published_table, readings_table
from clustermodel.workload.synthetic import study_jobs

READINGS = {
    "EASY": "easy",
    "EASY, kept": "easy:reservation=kept",
    "EASY-Last": "easy:predictor=last",
    "EASY-Last, kept": "easy:predictor=last,reservation=kept",
    "EASY-Last, corrected": "easy:predictor=last,correction=estimate",
    "PV-EASY, not corrected": "pv-easy:correction=second",
    "PV-EASY": "pv-easy",
    "PV-EASY, last submitted": "pv-easy:predictor=last-submitted",
}
SLOWDOWNS: Columns = {
    "MBS": "mean_bounded_slowdown", "MWBS": "mean_weighted_bounded_slowdown", "backfilled": "backfilled", "blocked": "blocked",
}  # fmt: skip
COLUMNS: dict[str, Columns] = {
    "EASY": {
        **SLOWDOWNS, "delayed by any later job": "delayed", "delayed": "delayed_over_it",
        "mean delay (min)": Scaled("mean_delay_by_later_s_over_it", 1 / 60),
        "longest (h)": Scaled("longest_delay_by_later_s_over_it", 1 / 3600),
    },
    "EASY-Last": {
        **SLOWDOWNS, "violations by any later job": "reservation_violations", "violations": "reservation_violations_over_it",
        "mean nodes": "mean_violation_nodes_over_it", "mean DTR (min)": Scaled("mean_violation_s_over_it", 1 / 60),
        "mean SI": "mean_slowdown_increment_over_it", "longest DTR (h)": Scaled("longest_violation_s_over_it", 1 / 3600),
    },
    "PV-EASY": {
        **SLOWDOWNS, "total load (%)": Scaled("total_load", 100), "wasted load (%)": Scaled("wasted_load", 100),
        "preempted": "preempted", "preempted (%)": Scaled("preempted_rate", 100), "MKT": "mean_killed_times",
        "RTW (%)": Scaled("runtime_waste", 100),
    },
}  # fmt: skip
"""The published quantities of each policy; delays and violations are by jobs backfilled over it, unless said otherwise."""
OF_BLOCKED: Columns = {
    f"{title}, {name}": f"{group}_blocked_{measure}"
    for title, measure in (("MBS", "bounded_slowdown"), ("MWBS", "weighted_bounded_slowdown"))
    for group, name in (("wide", "big"), ("narrow", "small"))
}
MARKS = "bold: within 5 %; in italics: within 10 %"


def study(trace: str | None = None, nodes: int = 128, jobs: int = 0, replications: int = 1) -> Study:
    """Return the study; ``jobs`` is 0 for all jobs of the trace, or 20,000 synthetic ones."""
    paper = published_table(__file__, "table 1", "table 2", "table 4", "tables 5 and 6", trace=trace)

    def scenario(policy: str, seed: int) -> Scenario:
        workload = study_jobs(trace, jobs=jobs, nodes=nodes, seed=seed)
        return Scenario(
            machine=Machine(nodes=nodes, kill_at_estimate=False), workload=workload, policy=READINGS[policy], seed=seed
        )

    own = [
        one if isinstance(one, str) else one.measure for columns in (*COLUMNS.values(), OF_BLOCKED) for one in columns.values()
    ]
    return Study(
        name="other readings",
        factors={"policy": list(READINGS)},
        scenario=scenario,
        measures={name: fairness_measure(name) for name in own if name not in MEASURED},
        replications=replications,
        shown=[name for name in dict.fromkeys(own) if name in MEASURED],
        tables={
            **{f"{policy} ({MARKS})": partial(readings_of, policy=policy, published=paper) for policy in COLUMNS},
            "Figures 2 and 3, blocked jobs": partial(measure_table, columns=OF_BLOCKED, by=["policy"]),
        },
        figures={"Other readings": lambda table: table.plot.bars(y=["blocked", "delayed_over_it", "mean_bounded_slowdown"])},
    )


def readings_of(table: StudyTable, policy: str, published: pd.DataFrame) -> pd.DataFrame:
    """Return which reading of a policy gives which number that the paper has of it."""
    known = published.loc[policy].to_dict() if policy in published.index else {}
    here = table.at(policy=[one for one in table.levels("policy") if str(one).split(",")[0] == policy])
    return readings_table(here, COLUMNS[policy], known, of="policy")
