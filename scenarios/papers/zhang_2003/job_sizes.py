r"""How do large and small jobs fare under backfilling, with and without gang scheduling?

Zhang et al. 2003, section 5.3, figure 11: mean slowdown and mean wait of large jobs (more than 32 nodes) and small jobs under
BF and BGS with MPL 5, against utilization; free context switches, phi 0.2.

Small (15 s on two cores): BGS lowers the slowdown of large jobs by more than half; small jobs also wait less.

    clustermodel sweep scenarios/papers/zhang_2003/job_sizes.py --out small \
        --set jobs=1000 --set replications=15 --set factors=1.2,1.6

Full (3 min on two cores):

    clustermodel sweep scenarios/papers/zhang_2003/job_sizes.py --out full
"""

from blue_pacific import SIZES, blue_pacific_scenario, size_of
from matplotlib.figure import Figure

from clustermodel import RUN_TIME_FACTORS, Scenario, Study, StudyTable
from clustermodel.report.measure_table import by_class, class_measures

SLOWDOWN, WAIT = MEANS = ("mean_bounded_slowdown", "mean_wait_s")


def study(jobs: int = 10_000, replications: int = 10, factors: tuple[float, ...] = RUN_TIME_FACTORS) -> Study:
    """Return the study; ``factors`` multiply the run times."""

    def scenario(policy: str, factor: float, seed: int) -> Scenario:
        return blue_pacific_scenario(policy, jobs=jobs, seed=seed, run_time_factor=factor)

    return Study(
        name="job sizes",
        factors={"policy": ["bf", "bgs"], "factor": factors},
        scenario=scenario,
        replications=replications,
        measures=class_measures(size_of, SIZES, {f"{name}_{{}}": name for name in MEANS}),
        shown=("utilization", "kappa", *MEANS),
        tables={
            "Figure 11, mean slowdown ± 95 % interval": lambda table: by_strategy(table).pivot(SLOWDOWN, columns="strategy"),
            "Figure 11, mean wait (s) ± 95 % interval": lambda table: by_strategy(table).pivot(WAIT, columns="strategy"),
        },
        figures={"Figure 11": picture},
    )


def by_strategy(table: StudyTable) -> StudyTable:
    found = by_class(table, "size", {size: {name: f"{name}_{size}" for name in MEANS} for size in SIZES})
    strategy = found.frame["policy"].str.upper() + ", " + found.frame["size"]
    return StudyTable(found.frame.assign(strategy=strategy), ["factor", "strategy"], table.name)


def picture(table: StudyTable) -> Figure:
    return by_strategy(table).plot.curves(x="utilization", at="factor", y=MEANS, by="strategy", log=True)
