r"""How accurate must run-time predictions be for EASY to have lower slowdowns than PV-EASY?

Yuan et al. 2010, figure 4 (section 5.2.2): MBS and MWBS of PV-EASY, FCFS-EASY and SJF-EASY with the same "virtual" predictor,
by its maximum error.  The predictor multiplies the run time by a factor that is uniform in 1 ± the maximum error; within a
replication a job has the same factor under every policy.  Error None is the predictor used in practice: users' estimates for
FCFS-EASY and SJF-EASY, the Last Model for PV-EASY (dashed lines).  Run times are as recorded.  The paper prints no numbers; it
says that PV-EASY is better than both from a maximum error of 10 % on.

Small (15 s on two cores): in synthetic jobs, PV-EASY has higher slowdowns than SJF-EASY with exact predictions, and lower ones
than FCFS-EASY with errors of up to 100 %.

    clustermodel sweep scenarios/papers/yuan_2010/prediction_error.py --out small \
        --set jobs=1000 --set replications=15 --set errors=0,0.4,1.0

Full (about 14 min on two cores): the log of CTC-SP2; the intervals are those of random prediction errors.

    clustermodel sweep scenarios/papers/yuan_2010/prediction_error.py --out full \
        --set trace=../shared/traces/CTC-SP2-1996-3.1-cln.swf.gz --set nodes=430
"""

from functools import partial

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from clustermodel import Machine, Scenario, Study, StudyTable
from clustermodel.figures.style import add_to_legend
from clustermodel.workload.synthetic import study_jobs

POLICIES = {"PV-EASY": "pv-easy", "FCFS-EASY": "easy", "SJF-EASY": "easy:backfill_order=shortest"}
MBS, MWBS = "mean_bounded_slowdown", "mean_weighted_bounded_slowdown"


def study(
    trace: str | None = None,
    nodes: int = 128,
    jobs: int = 0,
    replications: int = 10,
    errors: tuple[float, ...] = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0),
) -> Study:
    """Return the study; ``jobs`` is 0 for all jobs of the trace, or 20,000 synthetic ones.

    ``errors`` are maximum errors, twice the paper's mean absolute errors.
    """

    def scenario(policy: str, error: float | None, seed: int) -> Scenario:
        name = POLICIES[policy]
        predictor = "" if error is None else f"{',' if ':' in name else ':'}predictor=virtual:{error}"
        machine = Machine(nodes=nodes, kill_at_estimate=False)
        workload = study_jobs(trace, jobs=jobs, nodes=nodes, seed=seed)
        return Scenario(machine=machine, workload=workload, policy=name + predictor, seed=seed)

    return Study(
        name="prediction error",
        factors={"policy": list(POLICIES), "error": [None, *errors]},
        scenario=scenario,
        replications=replications,
        shown=(MBS, MWBS, "delayed", "reservation_violations", "wasted_load"),
        tables={
            "Figure 4, MBS ± 95 % interval": partial(by_error, measure=MBS),
            "Figure 4, MWBS ± 95 % interval": partial(by_error, measure=MWBS),
            "MBS of PV-EASY, paired ratio ± 95 % interval": partial(ratios, measure=MBS),
            "MWBS of PV-EASY, paired ratio ± 95 % interval": partial(ratios, measure=MWBS),
            "Jobs delayed by lower-priority jobs": partial(by_error, measure="delayed"),
            "Reservation violations": partial(by_error, measure="reservation_violations"),
            "Wasted load": partial(by_error, measure="wasted_load"),
        },
        figures={"Figure 4": picture},
    )


def by_error(table: StudyTable, measure: str) -> pd.DataFrame:
    return table.pivot(measure, columns="error").rename(columns=title)


def ratios(table: StudyTable, measure: str) -> pd.DataFrame:
    others = [other for other in POLICIES if other != "PV-EASY"]
    found = [table.pivot(measure, columns="error", relative_to={"policy": other}).loc["PV-EASY"] for other in others]
    names = [f"relative to {other}" for other in others]
    return pd.DataFrame(found, index=pd.Index(names, name="policy")).rename(columns=title)


def title(error: object) -> str:
    return "in practice" if error is None else f"± {error:.0%}"


def picture(table: StudyTable) -> Figure:
    frame = table.frame[table.frame["error"].notna()]
    figure = StudyTable(frame, table.factors, table.name).plot.curves(x="error", y=[MBS, MWBS])
    for measure, axes in zip((MBS, MWBS), figure.axes, strict=True):
        for line, policy in zip(axes.get_lines(), table.levels("policy"), strict=False):
            axes.axhline(table.interval(measure, policy=policy, error=None).mean, color=line.get_color(), linestyle="--")
        axes.set_xlabel("maximum error of the predictions")
        axes.set_ylim(bottom=0)
    add_to_legend(figure, {"as in practice: users' estimates": Line2D([], [], color="0.3", linestyle="--")})
    return figure
