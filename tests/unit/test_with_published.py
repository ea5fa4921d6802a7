"""Tables and figures with published values."""

from __future__ import annotations

from math import isnan

import pandas as pd
import pytest

from clustermodel import SpecificationError
from clustermodel.experiment.measure_table import draw_with_published, with_published

FOUND = pd.DataFrame({"wait": [1.0, 2.0], "slowdown": [3.0, 4.0]}, index=pd.Index(["a", "b"], name="policy"))
PAPER = pd.DataFrame({"wait": [20.0, 30.0], "other": [5.0, 6.0]}, index=["b", "c"])


def test_published_values_stand_before_ours_in_the_same_row() -> None:
    table = with_published(FOUND, PAPER)
    assert list(table) == ["paper, wait", "wait", "slowdown"]
    assert table["paper, wait"]["b"] == 20
    assert isnan(table["paper, wait"]["a"])
    pd.testing.assert_frame_equal(table[["wait", "slowdown"]], FOUND)


def test_without_a_common_row_the_table_stays() -> None:
    pd.testing.assert_frame_equal(with_published(FOUND, PAPER.loc[["c"]]), FOUND)


def test_a_row_that_is_there_twice_is_refused() -> None:
    with pytest.raises(SpecificationError, match=r"^with_published: b is there twice; rows must be unique$"):
        with_published(FOUND, PAPER.set_axis(["b", "b"]))


def test_the_figure_has_the_published_values_as_series_of_their_own() -> None:
    numeric = with_published(FOUND.set_axis(pd.Index([1.0, 2.0], name="load")), PAPER.set_axis([2.0, 3.0]))
    lines = draw_with_published(numeric, ["wait"], y="mean_wait_s").axes[0].get_lines()
    assert sorted(line.get_xydata().tolist() for line in lines) == [[[1.0, 1.0], [2.0, 2.0]], [[2.0, 20.0]]]
    both = FOUND.set_axis(pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["policy", "mpl"]))
    axes = draw_with_published(both, ["wait"], y="mean_wait_s", as_bars=True).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a, 1", "b, 2"]
    assert [bar.get_height() for bar in axes.patches] == [1.0, 2.0]
