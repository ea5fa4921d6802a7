"""Tables for people: intervals and paired ratios by the levels of a factor.  Shared runs count once, in figures too."""

from math import isnan

import numpy as np
import pandas as pd
import pytest

from clustermodel import SpecificationError, StudyTable, bars, improvements
from clustermodel.measure.statistics import paired_ratio


@pytest.fixture
def table() -> StudyTable:
    """A policy that draws random numbers, with three seeds, and one that draws none; a factor with ``None`` among numbers."""
    rng = np.random.default_rng(1)
    rows = []
    for policy in ("fixed", "random"):
        for share in (None, 0.5, 0.9):
            for replication in (1, 2, 3):
                shared = policy == "fixed"
                wait = 10 * (1 + (share or 0)) if shared else 10 + 5 * rng.random()
                run = f"{policy} {share} {1 if shared else replication}"
                rows.append({"run": run, "policy": policy, "share": share, "replication": replication, "wait": wait})
    return StudyTable(pd.DataFrame(rows), ["policy", "share"], "study")


def test_none_among_numbers_is_a_column(table: StudyTable) -> None:
    found = table.pivot("wait", columns="share")
    assert list(found.columns) == [None, 0.5, 0.9]
    assert found.loc["fixed", 0.5].mean == 15
    assert isnan(found.loc["fixed", 0.5].half)
    assert [interval.mean for interval in found.loc["fixed"]] == [10, 15, 19]
    assert found.loc["random", 0.9].count == 3


def test_ratios_are_paired(table: StudyTable) -> None:
    found = table.pivot("wait", columns="policy", relative_to={"policy": "fixed", "share": None})
    values = table.values("wait", policy="random", share=0.9)
    assert found.loc[0.9, "random"] == paired_ratio(values, np.full(3, 10.0))
    assert (found.loc[0.5, "fixed"].mean, found.loc[0.5, "fixed"].count) == (1.5, 1)
    chosen = table.pivot("wait", columns="policy", relative_to={"share": None}, share=0.9)
    assert chosen.loc["wait", "fixed"].mean == 1.9
    base = table.values("wait", policy="random", share=None)
    assert chosen.loc["wait", "random"] == paired_ratio(values, base)


def test_a_baseline_that_is_not_there_is_one_line(table: StudyTable) -> None:
    with pytest.raises(SpecificationError, match=r"table of study: no finished trial has share 0\.1, policy fixed"):
        table.pivot("wait", columns="policy", relative_to={"share": 0.1})


def test_figures_draw_no_interval_for_one_run(table: StudyTable) -> None:
    """Three trials of one run are one observation, without an interval."""
    frame = table.frame[table.frame["share"] == 0.5]
    axes = bars(frame, y="wait", by="policy").axes[0]
    assert [patch.get_height() for patch in axes.patches] == pytest.approx(
        [15, table.values("wait", policy="random", share=0.5).mean()]
    )
    drawn = [segment for lines in axes.collections for segment in lines.get_segments() if np.isfinite(segment).any()]
    assert len(drawn) == 1  # the interval of the policy with three runs
    axes = improvements(frame, y="wait", baseline="fixed").axes[0]
    values = 100 * (1 - table.values("wait", policy="random", share=0.5) / 15)
    assert [patch.get_height() for patch in axes.patches] == pytest.approx([values.mean()])
