"""Small runs of the studies in ``scenarios/``: their tables equal those that are checked in, and their exhibits can be made."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from clustermodel.experiment.exhibits import exhibits_of
from clustermodel.experiment.script import load_experiment

SCENARIOS = Path(__file__).parents[2] / "scenarios"
NAMES = {
    "rho": "utilization",
    "wait_s": "mean_wait_s",
    "response_s": "mean_response_s",
    "slowdown": "mean_bounded_slowdown",
    "mbs": "mean_bounded_slowdown",
    "mwbs": "mean_weighted_bounded_slowdown",
    "waste": "wasted_load",
}
"""What the first edition called columns of the table, where its name was another one."""


class Small(NamedTuple):
    """A small run of a study, and the columns of the checked-in table by the names that they have now."""

    script: str
    known: str
    settings: Mapping[str, str]
    names: Mapping[str, str] = {}
    row: Callable[[dict[str, Any]], dict[str, Any]] = dict
    """Returns a row of the checked-in table with the labels that levels have now."""
    subset: bool = False
    """Whether the study has points, or measures of points, that the checked-in table has not."""


def migration_row(row: dict[str, Any]) -> dict[str, Any]:
    """Without migration the first edition had policies MGS and MBGS, and no cost."""
    found = {name: value for name, value in row.items() if name != "figure"}
    if row["limit"] == "no migration":
        found |= {"policy": row["policy"].removeprefix("m"), "cost_s": 10.0, "limit": 64}
    elif row["limit"] == 0:
        found |= {"cost_s": 10.0}
    elif row["limit"] == "no limit":
        found |= {"limit": None}
    return found


def capacity_row(row: dict[str, Any]) -> dict[str, Any]:
    """Machines shared in space have no context switches."""
    shares = {"context_switch_share": row["context_switch"], "blocked_share": row["blocked"]}
    charge = "every-slice" if row["charge"] == "none" else row["charge"]
    left_out = ("context_switch", "migration", "blocked")
    return {name: value for name, value in row.items() if name not in left_out} | shares | {"charge": charge}


def overestimation_row(row: dict[str, Any]) -> dict[str, Any]:
    """The mean wait of no jobs was 0, and is missing."""
    empty = {f"wait_s_{number}" for number in range(10) if not row[f"jobs_{number}"]}
    return {name: None if name in empty else value for name, value in row.items()}


def slack_row(row: dict[str, Any]) -> dict[str, Any]:
    """Heuristics are policies; a job that started after its bound is a violation, whoever is to blame for it."""
    left_out = ("policy", "heuristic", "part", "late")
    return {name: value for name, value in row.items() if name not in left_out} | {
        "month": "in one run" if row["part"] == "all" else row["part"],
        "policy": row["heuristic"] if row["policy"] == "slack" else row["policy"],
        "reservation_violations": row["late"],
    }


SLACK = "papers/talby_1999/slack.py"
SLACK_NAMES = {"wait_s": "total_wait_s", "remove": "compression"}

SMALL_TECHNIQUES = {
    "as asked": "as asked",
    "half": "half",
    "quarter": "quarter",
    "greedy 1, 1/2, 2": "greedy to double",
    "half, widening": "half + widening",
    "half, speculation, widening": "half + speculation + widening",
}
"""Techniques of the checked-in table and what they are called now."""


def adaptation_row(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"technique": SMALL_TECHNIQUES[row["technique"]]}


PERKOVIC_2000 = "papers/perkovic_2000"
PERKOVIC_NAMES = {
    "algorithm": "policy",
    "percentage": "speculation",
    "slowdown": "mean_bounded_slowdown_perkovic",
    "at_once": "started_at_once",
    **{f"ratio_{name}": f"guaranteed_over_actual_{name}" for name in ("mean", "p15", "p50", "p85")},
}
ZHANG_2003 = "papers/zhang_2003"
SIZE = {"jobs": "500", "replications": "2"}
NINE = {**SIZE, "factors": "1.0,1.4,1.8"}
STUDIES = [
    Small(
        "papers/zhang_2003/context_switch.py",
        "context_switch_tradeoff",
        {"jobs": "500", "replications": "2", "factors": "1.0,1.4,1.8", "switches": "0,0.05", "levels": "2,5"},
    ),
    Small(f"{ZHANG_2003}/table1_migration.py", "table1_migration", NINE),
    Small(f"{ZHANG_2003}/job_sizes.py", "job_sizes", NINE),
    Small(f"{ZHANG_2003}/overestimation.py", "overestimation", {**NINE, "phis": "0.2,0.6,1.0"}, row=overestimation_row),
    Small(
        f"{ZHANG_2003}/migration.py",
        "migration_tradeoff",
        {**NINE, "costs_s": "10,30", "limits": "0,64"},
        row=migration_row,
        subset=True,
    ),
    Small(f"{ZHANG_2003}/capacity_loss.py", "capacity_loss", {**SIZE, "factors": "1.0,2.2"}, row=capacity_row, subset=True),
    Small(SLACK, "slack_kth", {"jobs": "900", "slack_factors": "3", "gaps": "0,2"}, SLACK_NAMES, slack_row, subset=True),
    Small(
        SLACK,
        "slack_factor",
        {"jobs": "900", "slack_factors": "0,1,3,9", "gaps": "0,1,2", "heuristics": "ast"},
        SLACK_NAMES,
        slack_row,
        subset=True,
    ),
    Small(f"{PERKOVIC_2000}/queue_order.py", "queue_order", SIZE, PERKOVIC_NAMES),
    Small(f"{PERKOVIC_2000}/randomization.py", "randomization", SIZE, PERKOVIC_NAMES),
    Small(
        f"{PERKOVIC_2000}/speculation.py",
        "speculation",
        {**SIZE, "policies": "D,1/L-NG,R/L-NG", "ratios": "0.2,0.9"},
        PERKOVIC_NAMES,
    ),
    Small(
        f"{PERKOVIC_2000}/adaptation.py",
        "adaptation",
        {**SIZE, "policies": "D,1/L-NG,R/L-NG", "techniques": ",".join(SMALL_TECHNIQUES.values())},
        PERKOVIC_NAMES,
        row=adaptation_row,
    ),
    Small(f"{PERKOVIC_2000}/flurry.py", "flurry", SIZE),
]


WHOLE = {"capacity_loss", "migration_tradeoff"}
"""Studies whose small runs take ten seconds."""


@pytest.mark.parametrize(
    "small",
    [
        pytest.param(small, id=name, marks=[pytest.mark.whole] if name in WHOLE else [])
        for small in STUDIES
        for name in [small.known]
    ],
)
@pytest.mark.long
def test_small_tables_are_those_that_are_checked_in(small: Small) -> None:
    path = SCENARIOS / small.script
    study = load_experiment(path, path.read_text(), small.settings)
    table = study.run(workers=1)
    known = json.loads(Path(__file__).with_name(f"{small.known}.json").read_text())
    names = {**NAMES, **small.names}
    rows = [small.row(dict(zip(known["columns"], row, strict=True))) for row in known["rows"]]
    columns = [names.get(name, name) for name in rows[0]]
    factors = [name for name in columns if name in (*table.factors, "replication")]
    records = table.frame.astype(object).where(table.frame.notna(), None).to_dict("records")
    ours = {tuple(row[name] for name in factors): row for row in records}
    assert len(ours) == len(rows) or small.subset
    for row in rows:
        expected = dict(zip(columns, row.values(), strict=True))
        found = ours[tuple(expected[name] for name in factors)]
        for name, value in expected.items():
            assert _same(found[name], value), (name, expected, found[name])
    exhibits = exhibits_of(study, table)
    assert not exhibits.problems
    assert exhibits.figures
    assert exhibits.tables


def _same(found: Any, known: Any) -> bool:
    """Return whether values are equal; means may be summed in another order by another numpy."""
    if known is None:
        return found is None or found != found  # noqa: PLR0124  nan
    return bool(found == (pytest.approx(known, rel=1e-9, abs=1e-12) if isinstance(known, float) else known))
