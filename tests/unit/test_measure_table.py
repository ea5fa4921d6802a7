"""Tables of measures for people: intervals, units, missing values, published values."""

from __future__ import annotations

import pytest

from clustermodel import SpecificationError, StudyTable
from clustermodel.experiment.measure_table import Relative, Scaled, measure_table


def table(replications: int = 2) -> StudyTable:
    rows = [
        {
            "run": f"{policy} {number}",
            "policy": policy,
            "load": 0.5,
            "replication": number,
            "wait_s": wait_s + 60 * number,
            "rare": 1.0 if policy == "fcfs" else None,
        }
        for policy, wait_s in (("fcfs", 0), ("easy", 600))
        for number in range(1, replications + 1)
    ]
    return StudyTable.of_rows(rows, ["policy", "load"], "waits")


def test_several_replications_have_intervals_in_the_unit_of_the_column() -> None:
    frame = measure_table(table(), {"wait (min)": Scaled("wait_s", 1 / 60), "wait (s)": "wait_s"}, by=["policy"])
    assert list(frame.columns) == ["policy", "wait (min)", "wait (s)"]
    minutes, seconds = frame["wait (min)"][1], frame["wait (s)"][1]
    assert (minutes.mean, minutes.count) == (pytest.approx(11.5), 2)
    assert minutes.half == pytest.approx(seconds.half / 60)
    assert seconds.half == pytest.approx(table().interval("wait_s", policy="easy").half)


def test_one_run_has_plain_numbers_and_a_missing_measure_is_empty() -> None:
    frame = measure_table(table(1), {"wait": "wait_s", "rare": "rare"})
    assert frame.to_dict("records") == [
        {"policy": "fcfs", "wait": 60.0, "rare": 1.0},
        {"policy": "easy", "wait": 660.0, "rare": ""},
    ]


def test_published_values_come_before_those_of_their_row_and_column() -> None:
    frame = measure_table(table(1), {"wait": "wait_s", "rare": "rare"}, published={"easy": {"wait": 700, "other": 1}})
    assert list(frame.columns) == ["policy", "paper, wait", "wait", "rare"]
    assert frame["paper, wait"].isna().tolist() == [True, False]
    assert frame["paper, wait"][1] == 700


def test_unknown_columns_and_factors_are_refused() -> None:
    with pytest.raises(SpecificationError, match="there is no column"):
        measure_table(table(), {"wait": "wait"})
    with pytest.raises(SpecificationError, match="is no factor"):
        measure_table(table(), {"wait": "wait_s"}, by=["nodes"])


def test_comparisons_with_a_baseline_are_paired_and_have_no_row_for_it() -> None:
    columns = {
        "ratio": Relative("wait_s", {"policy": "fcfs"}),
        "difference": Relative("wait_s", {"policy": "fcfs"}, ratio=False),
    }
    frame = measure_table(table(), columns, by=["policy"])
    assert frame["policy"].tolist() == ["easy"]
    assert frame["ratio"][0] == table().difference("wait_s", {"policy": "easy"}, {"policy": "fcfs"}, ratio=True)
    assert (frame["difference"][0].mean, frame["difference"][0].half) == (600, 0)
    both = measure_table(table(), {"wait": "wait_s", **columns}, by=["policy"])
    assert both["policy"].tolist() == ["fcfs", "easy"]
    assert both["ratio"][0].mean == 1


def test_several_levels_of_a_factor_choose_rows() -> None:
    assert table().at(policy=("easy", "fcfs")).frame["policy"].tolist() == ["fcfs", "fcfs", "easy", "easy"]
    with pytest.raises(SpecificationError, match="no finished trial has policy"):
        table().at(policy=["ss", "gs"])
