r"""Does slack-based backfilling shorten waits compared with conservative backfilling, and do high-priority jobs wait less?

Talby & Feitelson 1999, short version, tables 1 to 5 (section 3); long version, tables 1 to 3, figures 9 and 10 (section 5).
Mean wait by month, by slack factor, by UP + PP of every fifth job (gap; 0 for the others) and by heuristic; "slack" is the wait
of all jobs.  As in the paper each month is a separate run on 128 processors, AWT is the mean wait of the year under
conservative backfilling, and means of the year are total waits by numbers of jobs.  "in one run" is the log without a break.

Without a trace the log is synthetic, cut into three parts of equal length.

Small (20 s on two cores): in a synthetic log, AST with slack factors of 3 and 9 shortens waits by more than the interval; the
effect of priorities needs the full study.

    clustermodel sweep scenarios/papers/talby_1999/slack.py --out small \
        --set jobs=9000 --set parts=30 --set slack_factors=0,3,9 --set gaps=0,2 --set heuristics=ast

Full (100 s on two cores): a year of KTH-SP2, a fixed log, so without intervals.

    clustermodel sweep scenarios/papers/talby_1999/slack.py --out full --set trace=../shared/traces/KTH-SP2-1996-2.2.swf.gz
"""

from functools import cache, partial

import pandas as pd
from matplotlib.figure import Figure
from periods import NODES, SHORTER_S, mean_wait_s, names_of_parts, periods, shorter_s

from clustermodel import (
    Interval,
    Machine,
    Scenario,
    Slack,
    Study,
    StudyTable,
    Workload,
    bars,
    curves,
    read_swf,
    synthetic_workload,
)
from clustermodel.experiment.factors import Label
from clustermodel.measure.statistics import interval
from clustermodel.report.measure_table import PAPER, published_table, with_published

YEAR, WHOLE = "year", "in one run"
BASE, SLACK, FIFTH, OTHERS, EQUAL = "conservative", "slack", "every fifth", "the others", "equal"
SHORTER = "shorter than conservative's by (%)"
USUAL: dict[str, Label] = {"policy": "ast", "compression": "afresh", "slack_factor": 3.0, "gap": 0.0}
PAPER_MONTHS, PAPER_HEURISTICS = (published_table(__file__, name) for name in ("tables 1 and 3", "table 5"))
HEURISTICS = tuple(PAPER_HEURISTICS.index)


def study(
    trace: str = "",
    jobs: int = 3_000,
    parts: int = 3,
    slack_factors: tuple[float, ...] = (0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 9.0, 11.0),
    gaps: tuple[float, ...] = (0.0, 0.5, 1.0, 1.5, 2.0),
    heuristics: tuple[str, ...] = HEURISTICS,
) -> Study:
    """Return the study; a gap is UP + PP of every fifth job, 0 of the others; the synthetic log has ``jobs`` in ``parts``."""

    def scenario(month: str, policy: str, compression: str, slack_factor: float, gap: float, seed: int) -> Scenario | None:
        usual = (policy, compression) == ("ast", "afresh")
        if (
            (slack_factor != 3.0 and not (usual and gap == 0.0))  # table 2
            or (gap not in {0.0, 2.0} and not usual)  # table 4
            or (policy not in HEURISTICS and (compression, gap) != ("afresh", 0.0))
            or (policy == "ast" and compression != "afresh")  # in the order of starts both are the same
            or (month == WHOLE and not (policy == BASE or (usual and slack_factor == 3.0 and gap in {0.0, 2.0})))
        ):
            return None
        workload = months_and_year(trace, jobs, parts)[month]
        chosen: str | Slack = policy
        if policy in HEURISTICS:
            fifth = frozenset(workload.column("id")[4::5].tolist())
            chosen = Slack(
                heuristic=policy, compression=compression, slack_factor=slack_factor,
                awt=awt_s(trace, jobs, parts, month == WHOLE),
                user_priority=lambda job: min(gap, 1.0) if job.id in fifth else 0.0,
                political_priority=lambda job: max(gap - 1.0, 0.0) if job.id in fifth else 0.0,
            )  # fmt: skip
        return Scenario(machine=Machine(nodes=NODES), workload=workload, policy=chosen, seed=seed)

    return Study(
        name="slack-based backfilling",
        factors={
            "month": [*(PAPER_MONTHS.index[:-1] if trace else names_of_parts(parts)), WHOLE],
            "policy": (BASE, "easy", *heuristics), "compression": ("afresh", "in-place"),
            "slack_factor": slack_factors, "gap": gaps,
        },
        scenario=scenario,
        measures={
            "total_wait_s": lambda result: float(result.jobs["wait_s"].sum()),
            "longest_wait_s": lambda result: float(result.jobs["wait_s"].max()),
            "fifth_jobs": lambda result: len(result.jobs.iloc[4::5]),
            "fifth_wait_s": lambda result: float(result.jobs["wait_s"].iloc[4::5].sum()),
        },
        shown=("jobs", "mean_wait_s", "mean_bounded_slowdown", "reservation_violations", "benign_violations"),
        tables={
            "Table 1, mean wait (s)": months,
            "Table 2, mean wait (s) by slack factor": factors,
            "Table 3, mean wait (s), UP = PP = 1 for every fifth job": unequal_months,
            "Table 4, mean wait (s) by UP + PP of every fifth job": gap_sizes,
            "Table 5, mean wait (s); equal: UP = PP = 0 for all jobs, else 1 for every fifth": by_heuristic,
        },
        figures={
            "Table 1": lambda table: drawn(months(table), [BASE, SLACK], as_bars=True),
            "Figure 9": lambda table: drawn(factors(table), [SLACK]),
            "Figure 10": lambda table: drawn(gap_sizes(table), [SLACK, FIFTH, OTHERS]),
            "Table 5": lambda table: drawn(by_heuristic(table), [EQUAL], as_bars=True),
        },
    )  # fmt: skip


@cache
def months_and_year(trace: str, jobs: int, parts: int) -> dict[str, Workload]:
    whole = read_swf(trace) if trace else synthetic_workload(jobs=jobs, nodes=NODES, load=0.75)
    return {**periods(trace, jobs, parts), WHOLE: whole}


@cache
def awt_s(trace: str, jobs: int, parts: int, whole: bool) -> float:
    each = months_and_year(trace, jobs, parts).items()
    return mean_wait_s(workload for month, workload in each if (month == WHOLE) == whole)


def waits(table: StudyTable, **levels: object) -> pd.DataFrame:
    """Return mean waits at these levels by the other factors ("*"); those of the year are total waits by numbers of jobs."""
    year = table.frame[table.frame["month"] != WHOLE].assign(month=YEAR)
    sums = pd.concat([table.frame, year]).groupby(list(table.factors), sort=False).sum(numeric_only=True)
    jobs, waited, fifth, fifth_waited = (sums[name] for name in ("jobs", "total_wait_s", "fifth_jobs", "fifth_wait_s"))
    found = pd.DataFrame({SLACK: waited / jobs, FIFTH: fifth_waited / fifth, OTHERS: (waited - fifth_waited) / (jobs - fifth)})
    for factor, level in ({"month": YEAR} | USUAL | levels).items():
        found = found if level == "*" else found.xs(level, level=factor)  # type: ignore[assignment]
    return found


def by(table: StudyTable, factor: str, paper: pd.DataFrame, **levels: float) -> pd.DataFrame:
    """Return mean waits by a factor, and by how much they are shorter than under conservative backfilling."""
    found, base = waits(table, **{factor: "*"}, **levels), waits(table, policy=BASE, month="*")[SLACK]
    if factor == "month":
        found.insert(0, BASE, base)
        found.insert(1, "EASY", waits(table, policy="easy", month="*")[SLACK])
    found[SHORTER] = 100 * (1 - found[SLACK] / found.get(BASE, base[YEAR]))
    theirs = paper.assign(**{SHORTER: 100 * (1 - paper[SLACK] / paper.get(BASE, PAPER_MONTHS[BASE][YEAR]))})
    if "1996-09" in table.levels("month"):
        return with_published(found, theirs)
    if factor != "month":
        found[SHORTER_S] = pd.Series([shorter_in_parts(table, **{factor: level}) for level in found.index], found.index)
    if factor == "gap":
        found[f"{FIFTH}, {SHORTER_S}"] = pd.Series([fifth_shorter_in_parts(table, gap) for gap in found.index], found.index)
    return found


def in_parts(table: StudyTable) -> StudyTable:
    return table.at(month=[month for month in table.levels("month") if month != WHOLE])


def shorter_in_parts(table: StudyTable, **levels: Label) -> Interval:
    return shorter_s(in_parts(table), USUAL | levels, {**USUAL, "policy": BASE})


def fifth_shorter_in_parts(table: StudyTable, gap: float) -> Interval:
    rows = in_parts(table).at(**{**USUAL, "gap": gap}).frame
    fifth_s = rows["fifth_wait_s"] / rows["fifth_jobs"]
    others_s = (rows["total_wait_s"] - rows["fifth_wait_s"]) / (rows["jobs"] - rows["fifth_jobs"])
    return interval(others_s - fifth_s)


months = partial(by, factor="month", paper=PAPER_MONTHS[[BASE, EQUAL]].set_axis([BASE, SLACK], axis="columns"))
unequal_months = partial(by, factor="month", paper=PAPER_MONTHS[[BASE, SLACK, FIFTH, OTHERS]], gap=2.0)
factors = partial(by, factor="slack_factor", paper=published_table(__file__, "table 2"))
gap_sizes = partial(by, factor="gap", paper=published_table(__file__, "table 4"))


def by_heuristic(table: StudyTable) -> pd.DataFrame:
    equal, unequal = (waits(table, policy="*", compression="*", gap=gap) for gap in (0.0, 2.0))
    unequal.insert(0, EQUAL, equal[SLACK])
    if "1996-09" not in table.levels("month"):
        points = [{"policy": policy, "compression": compression} for policy, compression in unequal.index]
        unequal[f"{EQUAL}, {SHORTER_S}"] = pd.Series([shorter_in_parts(table, **point) for point in points], unequal.index)
        return unequal
    paper = PAPER_HEURISTICS.loc[unequal.index.get_level_values("policy")]
    return with_published(unequal, paper.set_axis(unequal.index))


def drawn(table: pd.DataFrame, columns: list[str], as_bars: bool = False) -> Figure:
    """Return a figure of columns of mean waits and of their published values over the table's index."""
    shown = table[[name for name in table if str(name).removeprefix(PAPER) in columns]]
    x = " and ".join(map(str, shown.index.names))
    if shown.index.nlevels > 1:
        shown = shown.set_axis([", ".join(map(str, levels)) for levels in shown.index])
    rows = shown.rename_axis(x).reset_index().melt(id_vars=x, var_name="series", value_name="mean_wait_s").dropna()
    rows = rows.assign(replication=1)
    if as_bars:
        return bars(rows, y="mean_wait_s", x=x, by="series")
    return curves(rows, y="mean_wait_s", x=x, at=x, by="series")
