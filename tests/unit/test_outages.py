"""Outages: files of Los Alamos and plain tables, what is left out, merged outages, facts."""

import gzip
import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clustermodel import Failure, Outages, SpecificationError, TraceError, fit_weibull, outage_facts, read_outages, to_ticks
from clustermodel.machine.failure import FailureSource
from tests.shared_data import SHARED

HOUR = 3600.0
LOS_ALAMOS = SHARED / "traces" / "failures" / "lanl_systems_18_19_20.csv.gz"
LOS_ALAMOS_HEADER = "system,nodes,node,started,fixed,down_minutes,cause"


def los_alamos(system: int | None) -> Outages:
    if not LOS_ALAMOS.is_file():
        pytest.skip(f"{LOS_ALAMOS} is not here; the traces are not part of the repository")
    return read_outages(LOS_ALAMOS, system=system)


def written(tmp_path: Path, *lines: str, name: str = "outages.csv") -> Path:
    path = tmp_path / name
    text = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


def some(**fields: Any) -> Outages:
    return Outages(**{"node": [2, 0, 2], "down_s": [10.0, 5.0, 30.0], "up_s": [20.0, 50.0, 31.0], "nodes": 4, **fields})


@pytest.mark.parametrize(
    ("system", "nodes", "mtbf_h", "mean_h", "median_h", "shape"),
    [(18, 1024, 7.3, 3.0, 0.97, 0.82), (19, 1024, 7.7, 3.5, 0.95, 0.89), (20, 512, 13.2, 3.5, 1.25, 0.65)],
)
def test_the_facts_of_los_alamos(system: int, nodes: int, mtbf_h: float, mean_h: float, median_h: float, shape: float) -> None:
    """The figures of ../shared/traces/failures/README.md, to its digits."""
    outages = los_alamos(system)
    facts = outage_facts(outages)
    assert facts["nodes"] == nodes
    assert round(facts["mtbf_s"] / HOUR, 1) == mtbf_h
    assert round(facts["mean_repair_s"] / HOUR, 1) == mean_h
    assert round(facts["median_repair_s"] / HOUR, 2) == median_h
    fit = fit_weibull(outages.times_between_failures_s)
    assert round(fit.shape, 2) == shape
    assert fit.shape_interval[0] < shape < fit.shape_interval[1] < 1
    assert (fit.zeros, fit.times + fit.zeros) == (facts["simultaneous_failures"], len(outages) - 1)


def test_counts_of_los_alamos() -> None:
    outages = los_alamos(18)
    facts = outage_facts(outages)
    assert len(outages) == facts["failures"] == 3997
    assert facts["failures_of_nodes_already_down"] == 21
    assert facts["simultaneous_failures"] == 79
    assert facts["unavailability"] == pytest.approx(3.9555e-4, rel=1e-4)
    assert (outages.name, outages.origin) == ("LANL system 18", "2002-05-06T08:45")
    assert (outages.dropped, outages.adjusted) == ({}, {"fixed - started is not down_minutes, down_minutes used": 6})
    causes = facts["causes"]
    assert {cause: row["failures"] for cause, row in causes.items()} == {
        "Hardware": 2977, "Software": 687, "Undetermined": 284, "Facilities": 20, "Network": 17, "Human Error": 12,
    }  # fmt: skip
    assert list(causes)[:2] == ["Hardware", "Software"]
    assert sum(row["share"] for row in causes.values()) == pytest.approx(1)


def test_the_failures_of_los_alamos_have_the_down_time_of_its_records() -> None:
    outages = los_alamos(20)
    facts = outage_facts(outages)
    failures = list(outages.failures(512))
    assert len(failures) == len(outages) - facts["failures_of_nodes_already_down"] == 2461
    assert sum(failure.repair for failure in failures) == to_ticks(facts["unavailability"] * 512 * outages.span_s)
    assert all((a.time, a.node) < (b.time, b.node) for a, b in pairwise(failures))
    by_node = sorted(failures, key=lambda failure: (failure.node, failure.time))
    assert all(a.time + a.repair < b.time for a, b in pairwise(by_node) if a.node == b.node)


def test_a_file_of_several_systems_asks_which() -> None:
    with pytest.raises(SpecificationError, match=r"^system: .*csv\.gz has the systems 18, 19, 20; choose one of them$"):
        los_alamos(None)
    with pytest.raises(SpecificationError, match=r"^system: '21' is not allowed; .*csv\.gz has 18, 19, 20$"):
        los_alamos(21)


@pytest.mark.parametrize("name", ["mine.csv", "mine.csv.gz"])
def test_a_table_of_ones_own(tmp_path: Path, name: str) -> None:
    """Any order of columns and rows, other columns, blank lines, a byte order mark."""
    path = written(tmp_path, "\ufeffdown_s, node ,ticket,up_s,Cause", "30,2,x,31.5,disk", "", "5,0,y,50,", name=name)
    outages = read_outages(path)
    assert (outages.name, outages.nodes, outages.source) == ("mine", 3, str(path))
    assert outages.node.tolist() == [0, 2]
    assert outages.down_s.tolist() == [5, 30]
    assert outages.up_s.tolist() == [50, 31.5]
    assert outages.cause == ("", "disk")
    assert read_outages(path, nodes=8).nodes == 8


def test_what_has_no_usable_time_is_left_out_and_counted(tmp_path: Path) -> None:
    path = written(
        tmp_path, LOS_ALAMOS_HEADER,
        "7,4,0,6/7/2002 16:00,6/7/2002 17:00,60,Hardware",
        "7,4,1,,6/7/2002 17:00,60,Hardware",
        "7,4,1,6/7/2002 18:00,,,Software",
        "7,4,2,6/7/2002 18:00,,30,Software",
        "7,4,3,6/7/2002 19:00,6/7/2002 20:00,,Network",
        "7,4,3,4/5/2003 23:00,4/6/2003 4:00,240,Network",
        "7,4,3,6/8/2003 19:00,6/8/2003 18:00,-60,Network",
    )  # fmt: skip
    outages = read_outages(path)
    assert len(outages) == 4
    assert outages.dropped == {"no usable time": 2, "repaired before the failure": 1}
    assert outages.adjusted == {
        "down_minutes missing, fixed - started used": 1,
        "fixed - started is not down_minutes, down_minutes used": 1,  # summer time began
    }
    assert outages.repair_s.tolist() == [3600, 1800, 3600, 4 * 3600]
    assert outages.down_s.tolist()[:3] == [0, 2 * 3600, 3 * 3600]
    assert outages.origin == "2002-06-07T16:00"
    plain = read_outages(written(tmp_path, "node,down_s,up_s", "0,1,2", "0,,4", "1,9,3"))
    assert plain.dropped == {"no usable time": 1, "repaired before the failure": 1}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((), ": the file is empty; the first line must name the columns node, down_s, up_s"),
        (("node,start",), ":1: columns 'node, start' are not those of outages; there must be node, down_s, up_s, or"),
        (("node,node,down_s,up_s",), ":1: column 'node' is there more than once"),
        (("node,down_s,up_s",), ": no usable outage: the file has no data lines"),
        (("node,down_s,up_s", "1,3,2"), ": no usable outage: 1 left out: repaired before the failure"),
        (("node,down_s,up_s", "1,2"), ":2: the line has 2 fields; the header has 3"),
        (("node,down_s,up_s", "", "x,1,2"), ":3: field node: 'x' is not allowed; it must be an integer from 0 to"),
        (("node,down_s,up_s", "-1,1,2"), ":2: field node: '-1' is not allowed"),
        (("node,down_s,up_s", "0,nan,2"), ":2: field down_s: 'nan' is not allowed; it must be a number >= 0 and <= 1e+10"),
        (("node,down_s,up_s", "0,1,2e10"), ":2: field up_s: '2e10' is not allowed"),
        (("node,down_s,up_s", '0,1,"2'), ":2: not readable as CSV"),
        ((LOS_ALAMOS_HEADER, "7,4,4,6/7/2002 16:00,,60,"), ":2: field node: '4' is not allowed"),
        ((LOS_ALAMOS_HEADER, "7,4,3,6/7/0202 16:00,,60,"), ":2: field started: '6/7/0202 16:00' is not allowed"),
        ((LOS_ALAMOS_HEADER, "7,4,3,6/7/2002 16:00,,6e7,"), ":2: field down_minutes: '6e7' is not allowed"),
        ((LOS_ALAMOS_HEADER, "7,4,3,7.6.2002,,60,"), ":2: field started: '7.6.2002' is not allowed; it must be month/day/year"),
        (
            (LOS_ALAMOS_HEADER, "7,4,3,6/7/2002 16:00,,60,", "7,5,3,6/7/2002 16:00,,60,"),
            ":3: field nodes: 5 is not 4, as on the lines above of the system",
        ),
    ],
)  # fmt: skip
def test_a_bad_line_is_named(tmp_path: Path, lines: tuple[str, ...], message: str) -> None:
    path = written(tmp_path, *lines)
    with pytest.raises(TraceError) as refused:
        read_outages(path)
    assert str(refused.value).startswith(f"{path}{message}")
    assert "\n" not in str(refused.value)


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    path = tmp_path / "outages.csv.gz"
    path.write_bytes(gzip.compress(b"node,down_s,up_s\n" + b"0,1,2\n" * 5000)[:-20])
    with pytest.raises(TraceError, match=r"outages\.csv\.gz: the compressed data ends early, after line \d+"):
        read_outages(path)
    with pytest.raises(TraceError, match=r"missing\.csv: cannot be read: No such file or directory$"):
        read_outages(tmp_path / "missing.csv")


def test_options_that_do_not_fit_the_file(tmp_path: Path) -> None:
    plain = written(tmp_path, "node,down_s,up_s", "3,1,2")
    with pytest.raises(SpecificationError, match=r"^system: 18 is not allowed; .*outages\.csv is a table of one machine$"):
        read_outages(plain, system=18)
    with pytest.raises(TraceError, match=r":2: field node: '3' is not allowed; it must be an integer from 0 to 2$"):
        read_outages(plain, nodes=3)
    with pytest.raises(SpecificationError, match=r"^nodes: 0 is not allowed"):
        read_outages(plain, nodes=0)
    theirs = written(tmp_path, LOS_ALAMOS_HEADER, "7,4,3,6/7/2002 16:00,,60,", name="theirs.csv")
    assert read_outages(theirs, nodes=6).nodes == 6
    with pytest.raises(SpecificationError, match=r"^nodes: 3 is not allowed; system 7 of .*theirs\.csv has 4 nodes$"):
        read_outages(theirs, nodes=3)


def test_outages_of_a_node_that_overlap_or_adjoin_are_merged() -> None:
    outages = some(
        node=[0, 1, 0, 0, 0, 1], down_s=[0, 0, 3, 5, 20, 8], up_s=[10, 7, 4, 12, 21, 9], nodes=2, cause=tuple("abcdef")
    )  # fmt: skip
    merged = outages.merged()
    assert list(zip(merged.node, merged.down_s, merged.up_s, merged.cause, strict=True)) == [
        (0, 0, 12, "a"), (1, 0, 7, "b"), (1, 8, 9, "f"), (0, 20, 21, "e"),
    ]  # fmt: skip
    assert merged.merged() == merged
    adjoining = some(node=[0, 0], down_s=[0, 5], up_s=[5, 6]).merged()
    assert (adjoining.down_s.tolist(), adjoining.up_s.tolist()) == ([0], [6])
    within_a_tick = some(node=[0, 0], down_s=[0.1, 0.1 + 0.2], up_s=[0.3, 10.0]).merged()
    assert (within_a_tick.down_s.tolist(), within_a_tick.up_s.tolist()) == ([0.1], [10.0])
    facts = outage_facts(outages)
    assert (facts["failures"], facts["failures_of_nodes_already_down"]) == (6, 2)
    assert facts["unavailability"] == (12 + 1 + 7 + 1) / (2 * 21)
    assert facts["node_mtbf_s"] == (2 * 21 - 21) / 4
    assert facts["simultaneous_failures"] == 1


def test_failures_are_those_of_the_table() -> None:
    assert list(some().failures(4)) == [
        Failure(5_000_000, 0, 45_000_000),
        Failure(10_000_000, 2, 10_000_000),
        Failure(30_000_000, 2, 1_000_000),
    ]
    assert {type(value) for failure in some().failures(3) for value in failure} == {int}
    assert isinstance(some(), FailureSource)
    with pytest.raises(SpecificationError, match=r"^Outages: 'outages' has an outage of node 2, and the machine has 2 nodes; "):
        some().failures(2)


def test_outages_are_a_value() -> None:
    outages = some()
    assert outages == some() == pickle.loads(pickle.dumps(outages)) != some(nodes=5)
    assert hash(outages) == hash(some())
    assert outages != "outages"
    assert outages.node.tolist() == [0, 2, 2]  # in order of time
    with pytest.raises(ValueError, match="read-only"):
        outages.down_s[0] = 1
    assert outages.span_s == 50
    assert outages.times_between_failures_s.tolist() == [5, 20]


def test_one_outage_has_no_time_between_failures() -> None:
    facts = outage_facts(Outages(node=np.array([0]), down_s=np.array([0.0]), up_s=np.array([0.0]), nodes=1))
    assert facts["mtbf_s"] is None
    assert facts["unavailability"] is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"nodes": 0}, "Outages.nodes: 0 is not allowed"),
        ({"nodes": 2}, "Outages.node: 2 of outage 0 is not allowed; it must be an integer >= 0 and < 2 nodes"),
        ({"node": [0, 1]}, "Outages: 2 nodes, 3 down_s, 3 up_s and 0 causes are not allowed"),
        ({"cause": ("disk",)}, "Outages: 3 nodes, 3 down_s, 3 up_s and 1 causes are not allowed"),
        ({"node": [], "down_s": [], "up_s": []}, "Outages: there is no outage; there must be at least one"),
        ({"node": [0.5, 1, 2]}, "Outages.node: [0.5, 1, 2] is not allowed; it must be a list or an array of numbers"),
        ({"down_s": [-1, 0, 0]}, "Outages.down_s: -1.0 of outage 0 is not allowed; it must be a number of seconds >= 0"),
        ({"down_s": [0, float("nan"), 0]}, "Outages.down_s: nan of outage 1 is not allowed"),
        ({"up_s": [20, 4, 31]}, "Outages.up_s: 4.0 of outage 1 is not allowed; it must be a number of seconds >= 0"),
    ],
)  # fmt: skip
def test_bad_columns_are_refused_in_one_line(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecificationError) as refused:
        some(**fields)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)
