"""The table of a study as a Dataset of xarray: factors are dimensions, missing points are nan, units are attributes."""

import sys

import numpy as np
import pandas as pd
import pytest

from clustermodel import Machine, Scenario, SpecificationError, Study, StudyTable, synthetic_workload

pytestmark = pytest.mark.long

pytest.importorskip("xarray", reason="the package xarray is not installed; pip install '.[xarray]' brings it")


def make(load: float, policy: str, seed: int) -> Scenario | None:
    if (load, policy) == (0.9, "fcfs"):
        return None
    jobs = synthetic_workload(jobs=30, nodes=32, load=load, seed=seed)
    return Scenario(machine=Machine(nodes=32), workload=jobs, policy=policy, seed=seed)


@pytest.fixture(scope="module")
def table() -> StudyTable:
    factors = {"load": [0.9, 0.5], "policy": ["fcfs", "easy", "bgs"]}
    measures = {"longest_wait_s": lambda result: result.jobs["wait_s"].max(), "never": lambda _: None}
    return Study(name="s", factors=factors, scenario=make, measures=measures, replications=2).run(workers=1)


def test_dimensions_are_the_factors_and_the_replications_and_attributes_names_and_units(table: StudyTable) -> None:
    data = table.to_xarray()
    assert dict(data.sizes) == {"load": 2, "policy": 3, "replication": 2}
    assert data.attrs == {"name": "s"}
    assert sorted(data["load"].values.tolist()) == [0.5, 0.9]
    assert data["load"].dtype == np.float64
    assert set(data["policy"].values.tolist()) == {"fcfs", "easy", "bgs"}
    assert not {"run", "seed", "replication", "workload"} & set(data.data_vars)
    # Names are attributes, and units where they are known.
    assert data["mean_wait_s"].attrs == {"long_name": "mean wait", "units": "s"}
    assert data["utilization"].attrs["units"] == "1"
    assert data["jobs"].attrs["units"] == "jobs"
    assert data["idle_node_s"].attrs == {"long_name": "idle", "units": "node-seconds"}
    assert data["context_switch_share"].attrs == {"long_name": "context switch, share of capacity", "units": "1"}
    assert data["longest_wait_s"].attrs == {"long_name": "longest wait", "units": "s"}
    assert data["never"].attrs == {"long_name": "never"}


def test_every_value_is_at_its_place_and_missing_points_are_nan(table: StudyTable) -> None:
    data = table.to_xarray("mean_wait_s", "longest_wait_s", "never", "delayed")
    assert list(data.data_vars) == ["mean_wait_s", "longest_wait_s", "never", "delayed"]
    for row in table.frame.itertuples():
        place = {"load": row.load, "policy": row.policy, "replication": row.replication}
        assert float(data["mean_wait_s"].sel(place)) == row.mean_wait_s
        assert float(data["longest_wait_s"].sel(place)) == row.longest_wait_s
    assert np.isnan(data["mean_wait_s"].sel(load=0.9, policy="fcfs")).all()
    assert int(np.isnan(data["mean_wait_s"]).sum()) == 2
    assert np.isnan(data["never"]).all()
    assert np.isnan(data["delayed"].sel(policy="bgs", load=0.5)).all()
    mean = data["mean_wait_s"].mean("replication").sel(load=0.5, policy="easy")
    assert float(mean) == pytest.approx(table.interval("mean_wait_s", load=0.5, policy="easy").mean)


def test_levels_of_several_kinds_stay_apart() -> None:
    levels = [None, True, 1, "1", 2.5]
    rows = [{"run": str(at), "x": level, "replication": 1, "seed": 1, "m": float(at)} for at, level in enumerate(levels)]
    data = StudyTable(rows, ["x"], "kinds").to_xarray()
    assert data["x"].dtype == object
    assert data["m"].values[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert [*map(type, data["x"].values)] == [type(None), bool, int, str, float]


def test_a_table_without_factors_or_trials_is_a_dataset_too() -> None:
    one = StudyTable(pd.DataFrame({"run": ["a"], "replication": [1], "m": [2.0]}), [], "one").to_xarray()
    assert dict(one.sizes) == {"replication": 1}
    assert StudyTable([], ["x"], "none").to_xarray().sizes == {"x": 0, "replication": 0}


def test_a_column_that_is_no_measure_is_one_line(table: StudyTable) -> None:
    with pytest.raises(
        SpecificationError, match=r"^table of s: there is no column 'mean_wait' \(did you mean 'mean_wait_s'\?\)$"
    ):
        table.to_xarray("mean_wait")
    with pytest.raises(SpecificationError, match=r"^table of s: workload is not a column of numbers$"):
        table.to_xarray("workload")


def test_without_the_package_one_line_says_what_to_install(table: StudyTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ImportError, match=r"^StudyTable\.to_xarray: the package xarray is missing; pip install '\.\[xarray\]'"):
        table.to_xarray()
