r"""Do the formulas and the ledger agree on the loss of capacity, and does it explain saturation?

Zhang et al. 2003, section 2.3, define the loss of capacity kappa by eq. (2), and for time-shared machines by eq. (3), and say
that at saturation kappa = 1 - rho_max.  Here kappa is computed from the log of events and slices by eqs. (2) and (3), and
compared with the ledger, in which the simulation accounts for every node-microsecond: for space sharing and gang scheduling,
with context switches of 2 % charged in every slice, as in eq. (3), or on change only, and with migrations of 10 s.  (Migration
time, eqs. (4) and (5), counts as lost; the paper's eq. (3) has no term for it.)

"Blocked" nodes wait for other nodes of their gang, which switch or migrate.  "No job waits" is 1 - rho - kappa: idle nodes and
overheads while the queue is empty.  It is why kappa is less than 1 - rho: in a finite run, the machine fills and drains.
Factors beyond 1.8 overload the machine.

Small (30 s on two cores): formulas and ledger agree to rounding errors; FCFS loses the most capacity, then BF, BGS and MBGS.

    clustermodel sweep scenarios/papers/zhang_2003/capacity_loss.py --out small \
        --set jobs=1000 --set replications=5 --set factors=1.0,2.2

Full (about 40 min on two cores):

    clustermodel sweep scenarios/papers/zhang_2003/capacity_loss.py --out full
"""

from functools import partial

import pandas as pd
from blue_pacific import blue_pacific_scenario
from load_curves import highest_utilization
from matplotlib.figure import Figure

from clustermodel import Account, Checkpointing, ContextSwitch, Scenario, Study, StudyTable
from clustermodel.figures.style import add_to_legend

SPACE_SHARING = ("fcfs", "bf")
TIME_SHARING = ("gs", "bgs", "mgs", "mbgs", "adaptive")
CHARGES = ("every-slice", "on-change")


def study(jobs: int = 10_000, replications: int = 10, factors: tuple[float, ...] = (1.0, 1.4, 1.8, 2.2)) -> Study:
    """Return the study; ``factors`` multiply the run times."""

    def scenario(policy: str, charge: str, factor: float, seed: int) -> Scenario:
        setting = partial(blue_pacific_scenario, policy, jobs=jobs, seed=seed, run_time_factor=factor)
        if policy in SPACE_SHARING:  # neither switches nor migrations: both charges are the same run
            return setting()
        switch = ContextSwitch(fraction=0.02, charge="every-slice" if charge == "every-slice" else "on-change")
        return setting(context_switch=switch, checkpointing=Checkpointing(checkpoint_s=5, restart_s=5))

    return Study(
        name="capacity loss",
        factors={"policy": [*SPACE_SHARING, *TIME_SHARING], "charge": CHARGES, "factor": factors},
        scenario=scenario,
        replications=replications,
        measures={
            "kappa_by_formula": lambda result: result.kappa_by_formula,
            "migration_share": lambda result: result.ledger.share(Account.CHECKPOINT, Account.RESTART),
        },
        shown=("utilization", "kappa", "mean_bounded_slowdown", "mean_wait_s", "context_switch_share", "blocked_share"),
        tables={"Shares of capacity at the highest utilization ± 95 % interval": at_highest_utilization},
        figures={"Switches charged in every slice, eq. (3), and on change": picture},
    )  # fmt: skip


def at_highest_utilization(table: StudyTable) -> pd.DataFrame:
    rows = []
    for point in table.points(["policy", "charge"]):
        if point["policy"] in SPACE_SHARING and point["charge"] != "every-slice":
            continue
        of_all = table.at(**point)
        factor, rho = highest_utilization(of_all, "factor")
        here = of_all.at(factor=factor)
        by_formula, kappa = here.interval("kappa_by_formula"), here.interval("kappa")
        row = {**point, "factor": factor, "ρ": rho, "1 - ρ": f"{1 - rho.mean:.3f}"}
        row |= {"κ, eq. (2) or (3)": by_formula, "κ, ledger": kappa}
        row["largest difference"] = f"{(of_all.frame['kappa_by_formula'] - of_all.frame['kappa']).abs().max():.0e}"
        row["no job waits"] = f"{1 - rho.mean - kappa.mean:.3f}"
        shares = ("context_switch", "migration", "blocked")
        rows.append({**row, **{name: f"{here.interval(f'{name}_share').mean:.3f}" for name in shares}})
    return pd.DataFrame(rows)


def picture(table: StudyTable) -> Figure:
    labels = {"every-slice": "in every slice", "on-change": "on change", "charge": "context switches charged"}
    figure = table.plot.curves(x="utilization", at="factor", y="kappa", panels="charge", labels=labels)
    for axes in figure.axes:
        low, high = axes.get_xlim()
        full = axes.axline((1, 0), slope=-1, color="0.4", linestyle=":", linewidth=1)  # kappa = 1 - rho
        axes.set_xlim(low, high)
        axes.set_ylim(bottom=0)
    add_to_legend(figure, {"κ = 1 - ρ": full})
    return figure
