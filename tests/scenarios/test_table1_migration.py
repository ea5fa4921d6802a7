"""The study of 002's table 1 runs small, and its table is the one that is checked in.

After a deliberate change: ``python scenarios/table1_migration.py --jobs 500 --replications 2 --workers 1 --json
tests/scenarios/table1_migration.json``.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.scenarios.conftest import Study


def test_small(small_study: Callable[[str], Study]) -> None:
    study = small_study("table1_migration")
    assert study.figure.stat().st_size > 10_000
    assert "Table 1, BGS and MBGS" in study.printed
    assert "What 002 concludes" in study.printed
    runs = study.runs
    for factor in runs.distinct("factor"):
        here = {policy: runs.at(policy=policy, factor=factor) for policy in study.script.POLICIES}
        for without, with_migration in study.script.PAIRS:
            slowdowns = [here[policy].interval("slowdown").mean for policy in (with_migration, without)]
            assert slowdowns[0] <= slowdowns[1]
        for one in here.values():  # a mean over all jobs lies between those of its halves
            short, long, both = (one.values(name) for name in ("slowdown_short", "slowdown_long", "slowdown"))
            assert ((short + long) / 2 == pytest.approx(both, rel=0.01)) or ((short >= both) & (both >= long)).all()


def test_improvements_of_the_paper_follow_from_its_slowdowns(load: Callable[[str], object]) -> None:
    script = load("table1_migration")
    for without, with_migration in script.PAIRS:
        pairs = zip(script.PAPER[without], script.PAPER[with_migration], script.PAPER_BETTER[with_migration], strict=True)
        for (_, before), (_, after), percent in pairs:
            least, most = 1 - (after + 0.05) / (before - 0.05), 1 - (after - 0.05) / (before + 0.05)  # rounded to 0.1
            assert 100 * least - 0.05 <= percent <= 100 * most + 0.05
