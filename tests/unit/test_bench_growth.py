"""Growth of CPU time and memory: what is measured, the stored table, and the page made of it."""

import json
from pathlib import Path

import pandas as pd
import pytest

from clustermodel import Machine, Scenario
from tests.bench import growth, record
from tests.bench.growth import POINTS, UNEVEN, Point
from tests.bench.scale import ManyJobs


def measured_quickly(point: Point) -> dict[str, float]:
    """Return what would be measured."""
    return {"us_per_job": 1e6 / point.nodes, "floor_us_per_job": 5.0, "bytes_per_job": 300.0}


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a table in which the command keeps points, instead of that of the page; nothing is measured."""
    monkeypatch.setattr(growth, "STORED", tmp_path / "growth.csv")
    monkeypatch.setattr(growth, "show", lambda _: None)
    monkeypatch.setattr(record, "git", lambda *_: b"")
    monkeypatch.setattr(growth, "measure", measured_quickly)
    return tmp_path / "growth.csv"


def test_the_page_shows_every_point_of_the_stored_table_and_its_figure() -> None:
    table = growth.read()
    assert [Point(*row) for row in table[list(Point._fields)].itertuples(index=False, name=None)] == list(POINTS)
    page = growth.PAGE.read_text(encoding="utf-8")
    assert growth.with_summary(page, table) == page
    assert f"(figures/{growth.PICTURE.name})" in page
    assert growth.PICTURE.stat().st_size > 10_000


def test_stored_times_grow_with_jobs_in_proportion_and_hardly_with_nodes() -> None:
    found = {(one.growth, one.policy): one.exponent for one in growth.series_of(growth.read())}
    most = {key: 1.05 if key[0] == "jobs" else 0.18 if key[1] == "mbgs" else 0.02 for key in found}
    assert {key: value for key, value in found.items() if value > most[key]} == {}


def test_the_exponent_is_that_of_a_power_law() -> None:
    assert growth.exponent([10, 100, 1000], [3.0, 30.0, 300.0]) == pytest.approx(1)
    assert growth.exponent([10, 100, 1000], [7.0, 7.0, 7.0]) == pytest.approx(0)
    assert growth.exponent([10, 1000], [5.0, 50_000.0]) == pytest.approx(2)


@pytest.mark.parametrize("policy", ["easy", "mbgs"])
def test_even_sizes_keep_the_schedule_on_more_nodes(policy: str) -> None:
    few, many = (Point("nodes", policy, 200, nodes) for nodes in (100, 1_000))
    starts = [
        Scenario(workload=point.stream(), machine=Machine(nodes=point.nodes), policy=policy).run().jobs["start_s"].tolist()
        for point in (few, many)
    ]
    assert starts[0] == starts[1]


def test_uneven_sizes_are_smaller_by_less_than_the_scale() -> None:
    even, uneven = (list(Point(growth, "easy", 500, 10_000).stream().rows()) for growth in ("nodes", UNEVEN))
    reductions = [before.nodes - after.nodes for before, after in zip(even, uneven, strict=True)]
    assert min(reductions) == 0
    assert max(reductions) == 99
    assert [row._replace(nodes=0) for row in even] == [row._replace(nodes=0) for row in uneven]
    assert len({row.nodes for row in uneven}) > 40 * len({row.nodes for row in even})


def test_uneven_sizes_on_the_fewest_nodes_are_the_even_ones() -> None:
    assert list(Point(UNEVEN, "easy", 50, 100).stream().rows()) == list(ManyJobs(50, machine_nodes=100).rows())


@pytest.mark.long
@pytest.mark.parametrize("point", [Point("jobs", "mbgs", 300, 128), Point(UNEVEN, "easy", 300, 1_000)])
def test_a_point_is_measured_here(point: Point, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(growth, "POINTS", [point])
    growth.main(["--here", point.name])
    found = json.loads(capsys.readouterr().out)
    assert min(found["us_per_job"], found["floor_us_per_job"]) > 0
    assert found["bytes_per_job"] >= 0


def test_a_point_is_stored_as_soon_as_it_is_measured_and_replaces_the_earlier_one(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    growth.main(["--only", "mbgs", "10000", "nodes"])
    assert pd.read_csv(stored)[["growth", "nodes", "us_per_job"]].values.tolist() == [
        ["nodes", 10_000, 100.0],
        [UNEVEN, 10_000, 100.0],
    ]
    growth.main(["--only", "easy", "1000", "uneven"])
    growth.main(["--only", "mbgs", "10000", "uneven"])
    assert pd.read_csv(stored)["policy"].tolist() == ["mbgs", "easy", "mbgs"]  # in the order of the points
    assert "uneven nodes mbgs 10000: 100.0 us, 20.00 times the floor, 300 bytes per job" in capsys.readouterr().out


def test_unknown_words_and_an_uncommitted_package_are_refused(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="no point has the words fcfs; the last one is uneven nodes mbgs 100000"):
        growth.main(["--only", "fcfs"])
    monkeypatch.setattr(record, "git", lambda *_: b" M clustermodel/workload/job.py\n")
    with pytest.raises(SystemExit, match=r"clustermodel/workload/job\.py differs from the commit"):
        growth.main(["--only", "easy"])
    assert not stored.exists()
