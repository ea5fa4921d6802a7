"""Which jobs should start first?

Three policies on two weeks of days that are drawn from the log, at its load and at nine tenths of it.

clustermodel sweep study.py --out results
"""

from pathlib import Path

from policy import ShortestFirst

from clustermodel import LoadScale, Machine, Policy, Scenario, Site, Study, read_sacct

FOLDER = Path(__file__).parent
LOG, SITE = read_sacct(FOLDER / "jobs.sacct"), Site.from_toml(FOLDER / "site.toml")
DAY_S = 86_400


def scenario(load: float, policy: str | Policy, seed: int) -> Scenario:
    """Return one run; runs of one seed have the same days."""
    jobs = LOG.resampled(DAY_S, seed=seed).scaled(LoadScale(interarrival=1 / load))
    return Scenario(machine=Machine(nodes=60), workload=jobs, policy=policy, site=SITE)


study = Study(
    name="which jobs first",
    factors={"load": [0.9, 1.0], "policy": ["easy", "conservative", ShortestFirst()]},
    scenario=scenario,
    replications=5,
    tables={
        "Mean wait (s)": lambda table: table.pivot("mean_wait_s", columns="load"),
        "Mean wait, divided by that of EASY on the same days": lambda table: table.pivot(
            "mean_wait_s", columns="load", relative_to={"policy": "easy"}
        ),
    },
    figures={"Mean wait": lambda table: table.plot.curves(x="load", y="mean_wait_s")},
)
