"""How much energy does switching idle nodes off save on recorded logs?

KTH-SP2, CTC-SP2 and SDSC-SP2 as recorded, under EASY.  Nodes draw 350 W in use, 120 W when they are idle, and 5 W when they are
off; they boot in two minutes, for which the gang that gets them waits.  Nodes are switched off when they have been idle for a
minute to four hours, or never.  A log is one run, so there are no intervals: a boot of two minutes also changes which jobs are
backfilled, by which waits of thousands of seconds move up or down.

    clustermodel sweep scenarios/tradeoffs/switching_off.py --out results
"""

from pathlib import Path

import pandas as pd

from clustermodel import Account, Machine, Power, Result, Scenario, Study, StudyTable
from clustermodel.workload.synthetic import study_jobs

TRACES = {
    "KTH-SP2": ("KTH-SP2-1996-2.2.swf.gz", 100),
    "CTC-SP2": ("CTC-SP2-1996-3.1-cln.swf.gz", 338),
    "SDSC-SP2": ("SDSC-SP2-1998-4.2-cln.swf.gz", 128),
}
OFF_AFTER_S = ("never", 14_400, 3_600, 900, 300, 60)
_NEVER = OFF_AFTER_S[0]


def boots(result: Result) -> float:
    """Return how many nodes boot for a job, on average."""
    power = result.machine.power
    assert power is not None
    booted = sum(result.ledger.amount(Account.BOOT)) / power.boot
    return booted / result.summary().jobs


def energy_per_job(result: Result) -> float:
    return 1000 * result.energy_kwh / result.summary().jobs


MEASURES = {"boots_per_job": boots, "energy_per_job_wh": energy_per_job}


def beside_never(table: StudyTable) -> pd.DataFrame:
    """Return the energy saved, of all, and the wait added, by log and by when nodes are switched off."""
    runs = table.frame.to_dict("records")
    without = {row["log"]: row for row in runs if row["off_after_s"] == _NEVER}
    rows = []
    for row in runs:
        never = without[row["log"]]
        saved = 100 * (1 - row["energy_kwh"] / never["energy_kwh"])
        added = row["mean_wait_s"] - never["mean_wait_s"]
        rows.append(
            {
                "log": row["log"], "off after (s)": row["off_after_s"], "energy (MWh)": f"{row['energy_kwh'] / 1000:,.1f}",
                "saved (%)": f"{saved:.1f}", "mean wait (s)": f"{row['mean_wait_s']:,.0f}", "added (s)": f"{added:+,.0f}",
                "mean slowdown": f"{row['mean_bounded_slowdown']:.1f}", "nodes booted per job": f"{row['boots_per_job']:.2f}",
            }
        )  # fmt: skip
    return pd.DataFrame(rows).set_index(["log", "off after (s)"])


def study(
    traces: Path = Path("../shared/traces"),
    jobs: int = 0,
    idle_w: float = 120,
    off_w: float = 5,
    boot_s: float = 120,
    policy: str = "easy",
) -> Study:
    """Return the study; ``traces`` is the folder of the three logs, of which the first ``jobs`` are run, 0 for all."""
    workloads = {log: study_jobs(f"{traces}/{file}", jobs=jobs) for log, (file, _) in TRACES.items()}

    def scenario(log: str, off_after_s: object, seed: int) -> Scenario:
        machine = Machine(
            nodes=TRACES[log][1],
            power=Power(busy_w=350, idle_w=idle_w, off_w=off_w, boot_s=boot_s),
            idle_off_s=None if off_after_s == _NEVER else float(str(off_after_s)),
        )
        return Scenario(machine=machine, workload=workloads[log], policy=policy, seed=seed)

    return Study(
        name="switching off",
        factors={"log": list(TRACES), "off_after_s": list(OFF_AFTER_S)},
        scenario=scenario,
        replications=1,
        measures=MEASURES,
        shown=(*MEASURES, "energy_kwh", "mean_wait_s", "mean_bounded_slowdown", "utilization"),
        tables={"Energy saved and wait added": beside_never},
        figures={
            "Energy per job": lambda table: table.plot.bars(x="log", y="energy_per_job_wh", by="off_after_s"),
        },
        text=__doc__ or "",
    )
