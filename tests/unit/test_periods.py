"""Months of a trace, and its equal parts."""

from __future__ import annotations

import pytest

from clustermodel import SpecificationError, Workload, read_swf
from clustermodel.job import JobRow
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.periods import by_month, in_parts
from clustermodel.workload.table import Provenance
from tests.shared_data import trace_path


def log(header: dict[str, str], *submit_s: int) -> Workload:
    rows = [
        JobRow._make([0] * len(JobRow._fields))._replace(
            id=number, submit=second * TICKS_PER_SECOND, nodes=1, run=1, estimate=1
        )
        for number, second in enumerate(submit_s)
    ]
    return Workload(rows, name="log", provenance=Provenance(source="log", header=header), machine_nodes=8)


def test_months_change_at_midnight_of_the_time_zone() -> None:
    """843480031 is Mon Sep 23 14:00:31 CEST 1996; October begins 7 days and 9:59:29 hours later."""
    until_october = 7 * 86_400 + 9 * 3600 + 59 * 60 + 29
    header = {"UnixStartTime": "843480031", "TimeZoneString": "Europe/Stockholm"}
    months = by_month(log(header, 0, until_october - 1, until_october))
    assert {name: list(part.column("id")) for name, part in months.items()} == {"1996-09": [0, 1], "1996-10": [2]}
    assert months["1996-10"].name == "log 1996-10"
    assert months["1996-10"].column("submit").tolist() == [until_october * TICKS_PER_SECOND]
    assert months["1996-10"].machine_nodes == 8


@pytest.mark.parametrize(
    "header", [{}, {"UnixStartTime": "0"}, {"UnixStartTime": "x", "TimeZoneString": "UTC"},
    {"UnixStartTime": "0", "TimeZoneString": "Nowhere"}, {"UnixStartTime": "0", "TimeZoneString": "../x"}],
)  # fmt: skip
def test_a_header_that_does_not_say_when_is_refused(header: dict[str, str]) -> None:
    with pytest.raises(
        SpecificationError, match=r"^by_month: the header of log is not allowed; it must have UnixStartTime and"
    ):
        by_month(log(header, 0))


def test_the_months_of_kth() -> None:
    workload = read_swf(trace_path("KTH-SP2-1996-2.2"))
    months = by_month(workload)
    assert [len(months[name]) for name in ("1996-09", "1996-10", "1997-08")] == [106, 2406, 1926]
    assert sum(map(len, months.values())) == len(workload)


def test_parts_are_equally_long_or_have_as_many_jobs() -> None:
    workload = log({}, 0, 1, 2, 3, 50, 60, 99)
    by_time = in_parts(workload, 3)
    assert {name: part.seconds("submit").tolist() for name, part in by_time.items()} == {
        "part 1": [0, 1, 2, 3], "part 2": [50, 60], "part 3": [99],
    }  # fmt: skip
    by_jobs = in_parts(workload, 3, equal="jobs")
    assert [part.column("id").tolist() for part in by_jobs.values()] == [[0, 1], [2, 3], [4, 5, 6]]
    assert by_jobs["part 2"].name == "log 2 of 3"
    with pytest.raises(SpecificationError, match=r"^parts: 0 is not allowed"):
        in_parts(workload, 0)
