"""Points of load curves: where a curve reaches a limit, and where one curve overtakes another."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isnan

import numpy as np
import pytest

from clustermodel import SpecificationError, StudyTable
from clustermodel.experiment.load_curves import break_even, highest_utilization, load_curve, overtaking, utilization_at


def table_of(**curves: tuple[Sequence[float], Sequence[float]]) -> StudyTable:
    """Return a table with a curve for each policy: utilizations and slowdowns at factors 0, 1, ..."""
    rows = [
        {"run": f"{policy} {factor}", "policy": policy, "factor": factor, "replication": 1, "utilization": x, "slowdown": y}
        for policy, points in curves.items()
        for factor, (x, y) in enumerate(zip(*points, strict=True))
    ]
    return StudyTable.of_rows(rows, ["policy", "factor"], "curves")


def crossing(x: Sequence[float], y: Sequence[float], other_x: Sequence[float], other_y: Sequence[float]) -> float:
    table = table_of(one=(x, np.exp(y)), other=(other_x, np.exp(other_y)))  # curves are straight in the logarithm
    return overtaking(table, "slowdown", "factor", {"policy": "one"}, {"policy": "other"})


def test_overtaking() -> None:
    x = [0.0, 1.0, 2.0]
    assert crossing(x, [2.0, 2.0, 2.0], x, [1.0, 1.5, 3.5]) == pytest.approx(1.25)
    assert isnan(crossing(x, [2.0, 2.0, 2.0], x, [1.0, 1.5, 1.9]))
    assert isnan(crossing(x, [2.0, 2.0, 2.0], x, [3.5, 1.5, 1.0]))  # from below
    bent = [0.0, 1.0, 0.9]  # a saturated policy: utilization falls when the load rises
    assert crossing(x, [2.0, 2.0, 2.0], bent, [1.0, 1.5, 2.5]) == pytest.approx(0.95)


def test_utilization_at() -> None:
    x = [0.5, 0.7, 0.9]
    table = table_of(a=(x, [1.0, 10.0, 1000.0]), b=(x, [1.0, 10.0, 20.0]), c=(x, [30.0, 40.0, 50.0]))
    assert utilization_at(table, "slowdown", 100.0, "factor", policy="a") == pytest.approx(0.8)
    assert utilization_at(table, "slowdown", 20.0, "factor", policy="b") == inf
    assert isnan(utilization_at(table, "slowdown", 20.0, "factor", policy="c"))


def test_load_curve() -> None:
    table = table_of(a=([0.5, 0.7], [1.0, 10.0]))
    utilization, slowdown = load_curve(table, "slowdown", "factor", policy="a")
    assert utilization.tolist() == [0.5, 0.7]
    assert slowdown.tolist() == [1.0, 10.0]


def test_the_highest_utilization_and_where_it_is_reached() -> None:
    table = table_of(a=([0.5, 0.9, 0.8], [1.0, 2.0, 3.0]), b=([0.95], [1.0]))
    level, reached = highest_utilization(table, "factor", policy="a")
    assert (level, reached.mean) == (1, 0.9)


def break_even_of(*means: float, levels: Sequence[object] = (0, 10, 100)) -> float:
    rows = [
        {"run": f"{mode} {cost}", "mode": mode, "cost_s": cost, "replication": 1, "x": value}
        for mode, values in (("base", (3.0, 3.0, 3.0)), ("other", means))
        for cost, value in zip(levels, values, strict=True)
    ]
    return break_even(StudyTable.of_rows(rows, ["mode", "cost_s"], "t"), "x", "cost_s", {"mode": "other"}, {"mode": "base"})


def test_break_even_is_interpolated_between_levels() -> None:
    assert break_even_of(1, 2, 4) == pytest.approx(55)
    assert break_even_of(1, 3, 4) == pytest.approx(10)
    assert break_even_of(1, 2, 2.9) == inf
    assert isnan(break_even_of(3, 2, 4))
    with pytest.raises(SpecificationError, match=r"^break_even: cost_s 'b' is not allowed; the levels must be numbers$"):
        break_even_of(1, 2, 4, levels=(0, "b", 2))
