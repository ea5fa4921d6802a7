"""Which jobs are malleable: fields of a job, columns of tables, shares of a workload, rules of a site, options."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from clustermodel import Job, LoadScale, Workload, merge, read_csv
from clustermodel.experiment.run_key import digest_of_jobs
from clustermodel.job import UNSET, Sizes
from clustermodel.validation import LARGEST_WHOLE
from clustermodel.workload.streams import JobStreams
from tests.conftest import refusal


def job(number: int, nodes: int = 4, **fields: Any) -> Job:
    return Job(id=number, submit_s=number, nodes=nodes, run_s=10, **fields)


RESIZABLE = [
    job(1),
    job(2, malleable=True),
    job(3, malleable=True, min_nodes=2, max_nodes=8, resize_s=0),
    job(4, malleable=True, resize_s=1.5),
]
SIZES = {2: Sizes(1, LARGEST_WHOLE, UNSET), 3: Sizes(2, 8, 0), 4: Sizes(1, LARGEST_WHOLE, 1_500_000)}


def sizes_of(*sources: Workload) -> dict[int, Sizes]:
    return JobStreams(list(sources)).sizes()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"min_nodes": 2}, "min_nodes: 2 is not allowed of a job that is not malleable; it must be None"),
        ({"max_nodes": 8}, "max_nodes: 8 is not allowed of a job that is not malleable; it must be None"),
        ({"resize_s": 0}, "resize_s: 0 is not allowed of a job that is not malleable; it must be None"),
        ({"malleable": 1}, "malleable: 1 is not allowed; it must be True or False"),
        ({"malleable": True, "min_nodes": 5}, "min_nodes: 5 is not allowed; it must be at most its nodes, 4"),
        ({"malleable": True, "max_nodes": 3}, "max_nodes: 3 is not allowed; it must be at least its nodes, 4"),
        ({"malleable": True, "min_nodes": 0}, "min_nodes: 0 is not allowed; it must be an integer >= 1"),
        ({"malleable": True, "resize_s": -1}, "resize_s: -1 is not allowed; it must be a finite number of seconds >= 0"),
        ({"malleable": True, "whole_nodes": True}, "whole_nodes: True is not allowed of a malleable job; a job with a shape"),
        ({"malleable": True, "max_nodes_used": 2}, "max_nodes_used: 2 is not allowed of a malleable job; a job with a shape"),
    ],
)
def test_refused_jobs(fields: dict[str, Any], message: str) -> None:
    assert refusal(lambda: job(1, **fields)).startswith(f"Job 1: {message}")


def test_sizes_in_tables() -> None:
    workload = Workload.from_jobs(RESIZABLE)
    assert sizes_of(workload) == SIZES
    again = Workload.from_frame(workload.frame)
    assert digest_of_jobs(again) == digest_of_jobs(workload)
    assert sizes_of(Workload.from_jobs(workload.jobs())) == SIZES
    assert not Workload.from_jobs([job(1), job(2)]).extra


def test_sizes_of_several_streams() -> None:
    workload = Workload.from_jobs(RESIZABLE)
    both = {**SIZES, **{number + 4: sizes for number, sizes in SIZES.items()}}
    assert sizes_of(workload, workload) == both
    assert sizes_of(merge(a=workload, b=workload)) == both
    assert sizes_of(workload, Workload.from_jobs([job(9)])) == SIZES


def test_scaled_sizes() -> None:
    # 4 nodes between 2 and 8 become 3 between 2 (1.5, to the even number) and 6; what has no number has none.
    scaled = Workload.from_jobs(RESIZABLE).scaled(LoadScale(size=0.75, run_time=2))
    assert sizes_of(scaled) == {**SIZES, 3: Sizes(2, 6, 0)}


def test_csv_files_with_sizes(tmp_path: Path) -> None:
    path, names = tmp_path / "jobs.csv", ("submit_s", "nodes", "run_s", "malleable", "min_nodes", "max_nodes", "resize_s")
    path.write_text(",".join(names) + "\n0,4,9,1,2,8,0.5\n1,4,9,0,2,8,0.5\n2,4,9,1,,,\n3,4,9,,,,\n")
    workload = read_csv(path, columns={name: name for name in names})
    assert sizes_of(workload) == {1: Sizes(2, 8, 500_000), 3: Sizes(1, LARGEST_WHOLE, UNSET)}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"min_nodes": 1}, "Workload.from_frame: column 'malleable' is missing; 'min_nodes' needs it"),
        ({"resize_s": 1}, "Workload.from_frame: column 'malleable' is missing; 'resize_s' needs it"),
        ({"malleable": 2}, "Workload.from_frame: row 0: malleable: 2 is not allowed; it must be True or False"),
        (
            {"malleable": True, "min_nodes": 0},
            "job 1: min_nodes: 0 is not allowed; it must be at least 1 and at most the nodes",
        ),
        (
            {"malleable": True, "min_nodes": 5},
            "job 1: min_nodes: 5 is not allowed; it must be at least 1 and at most the nodes",
        ),
        ({"malleable": True, "max_nodes": 3}, "job 1: max_nodes: 3 is not allowed; it must be at least the nodes that the job"),
        (
            {"malleable": True, "whole_nodes": True},
            "job 1: malleable: a job with a shape (processors_per_node, max_nodes_used, whole_nodes) keeps its size",
        ),
    ],
)
def test_refused_tables(columns: dict[str, Any], message: str) -> None:
    frame = pd.DataFrame({"submit_s": [0], "nodes": 4, "run_s": 9, **columns})
    assert refusal(lambda: sizes_of(Workload.from_frame(frame))).startswith(message)
