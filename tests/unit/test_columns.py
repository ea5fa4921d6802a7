"""Tables of runs as columns of numpy: the same as those of pandas, also in Parquet files."""

import io

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet as pq

from clustermodel import Machine, Scenario, SpecificationError, Workload, synthetic_workload
from clustermodel.arrays import Coded
from clustermodel.measure.columns import frame, parquet


@pytest.mark.parametrize("policy", ["fcfs", "pv-easy", "mbgs"])
@pytest.mark.parametrize("table", ["jobs", "states", "placements"])
def test_columns_and_their_files_are_the_tables_of_pandas(policy: str, table: str) -> None:
    streams = [synthetic_workload(jobs=60, nodes=16, seed=seed) for seed in (1, 2)]
    result = Scenario(machine=Machine(nodes=16), workload=streams, policy=policy, history=True).run()
    columns, expected = result.columns(table), getattr(result, table)
    assert not isinstance(columns, pd.DataFrame)
    pd.testing.assert_frame_equal(frame(columns), expected)
    pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(parquet(columns))), expected)


def test_jobs_with_recorded_facts_are_a_table_of_pandas() -> None:
    jobs = synthetic_workload(jobs=9, nodes=16)
    with_account = jobs.frame.assign(account=["a", "b", "c"] * 3)
    result = Scenario(machine=Machine(nodes=16), workload=Workload.from_frame(with_account), policy="fcfs").run()
    assert result.columns("jobs") is result.jobs


def test_a_value_that_is_not_a_number_is_missing_in_a_file() -> None:
    columns = {
        "time": np.array([1.5, np.nan]), "count": np.array([1, 2], dtype=np.int32), "flag": np.array([True, False]),
        "text": np.array(["a", "zwölf"]), "stream": Coded(np.array([1, 0]), ("day", "night")),
    }  # fmt: skip
    table = pq.read_table(io.BytesIO(parquet(columns)))
    assert table.to_pydict() == {
        "time": [1.5, None], "count": [1, 2], "flag": [True, False], "text": ["a", "zwölf"], "stream": ["night", "day"],
    }  # fmt: skip
    assert [str(kind) for kind in table.schema.types[:4]] == ["double", "int32", "bool", "string"]


def test_a_table_without_rows_keeps_its_columns() -> None:
    columns = {"text": np.array([], dtype=str), "time": np.array([]), "stream": Coded(np.array([], dtype=np.int64), ("day",))}
    assert pq.read_table(io.BytesIO(parquet(columns))).to_pydict() == {"text": [], "time": [], "stream": []}


def test_an_unknown_table_is_refused() -> None:
    result = Scenario(machine=Machine(nodes=16), workload=synthetic_workload(jobs=9, nodes=16), policy="fcfs").run()
    with pytest.raises(SpecificationError, match="table: 'job' is not allowed"):
        result.columns("job")
