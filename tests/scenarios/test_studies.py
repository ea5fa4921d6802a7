"""Small runs of the studies in ``scenarios/``: their tables equal those that are checked in, and their exhibits can be made."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from clustermodel.experiment.exhibits import exhibits_of
from tests.scripts import study_of


class Small(NamedTuple):
    """A small run of a study, and the checked-in table, of the first edition in the names of now."""

    script: str
    known: str
    settings: Mapping[str, str]
    subset: bool = False
    """Whether the study has points, or measures of points, that the checked-in table has not."""


SLACK = "papers/talby_1999/slack.py"

TECHNIQUES = "as asked,half,quarter,greedy to double,half + widening,half + speculation + widening"
PERKOVIC_2000 = "papers/perkovic_2000"
ZHANG_2003 = "papers/zhang_2003"
SIZE = {"jobs": "500", "replications": "2"}
NINE = {**SIZE, "factors": "1.0,1.4,1.8"}
STUDIES = [
    Small(f"{ZHANG_2003}/context_switch.py", "context_switch_tradeoff", {**NINE, "switches": "0,0.05", "levels": "2,5"}),
    Small(f"{ZHANG_2003}/table1_migration.py", "table1_migration", NINE),
    Small(f"{ZHANG_2003}/job_sizes.py", "job_sizes", NINE),
    Small(f"{ZHANG_2003}/overestimation.py", "overestimation", {**NINE, "phis": "0.2,0.6,1.0"}),
    Small(f"{ZHANG_2003}/migration.py", "migration_tradeoff", {**NINE, "costs_s": "10,30", "limits": "0,64"}, subset=True),
    Small(f"{ZHANG_2003}/capacity_loss.py", "capacity_loss", {**SIZE, "factors": "1.0,2.2"}, subset=True),
    Small(SLACK, "slack_kth", {"jobs": "900", "slack_factors": "3", "gaps": "0,2"}, subset=True),
    Small(
        SLACK, "slack_factor", {"jobs": "900", "slack_factors": "0,1,3,9", "gaps": "0,1,2", "heuristics": "ast"}, subset=True
    ),
    Small(f"{PERKOVIC_2000}/queue_order.py", "queue_order", SIZE),
    Small(f"{PERKOVIC_2000}/randomization.py", "randomization", SIZE),
    Small(f"{PERKOVIC_2000}/speculation.py", "speculation", {**SIZE, "policies": "D,1/L-NG,R/L-NG", "ratios": "0.2,0.9"}),
    Small(f"{PERKOVIC_2000}/adaptation.py", "adaptation", {**SIZE, "policies": "D,1/L-NG,R/L-NG", "techniques": TECHNIQUES}),
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
    study = study_of(small.script.removesuffix(".py"), small.settings)
    table = study.run(workers=1)
    known = json.loads(Path(__file__).with_name(f"{small.known}.json").read_text())
    rows = [dict(zip(known["columns"], row, strict=True)) for row in known["rows"]]
    factors = [name for name in known["columns"] if name in (*table.factors, "replication")]
    records = table.frame.astype(object).where(table.frame.notna(), None).to_dict("records")
    ours = {tuple(row[name] for name in factors): row for row in records}
    assert len(ours) == len(rows) or small.subset
    for expected in rows:
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
