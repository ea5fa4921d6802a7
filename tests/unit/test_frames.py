"""Workloads as pandas tables: there and back, and what is refused, with the row."""

import numpy as np
import pandas as pd
import pytest

from clustermodel import JobStream, Lognormal, Poisson, Sessions, SpecificationError, Workload, merge, synthetic_workload

BASE = pd.DataFrame({"submit_s": [5.0, 0.0], "nodes": [1, 2], "run_s": [10.0, 20.0]})


def test_a_table_gives_the_workload_it_came_from() -> None:
    whole = synthetic_workload(jobs=200)
    again = Workload.from_frame(whole.frame, name="again", machine_nodes=64)
    assert list(again.rows()) == list(whole.rows())
    assert (again.name, again.machine_nodes, again.extra) == ("again", 64, ())


def test_a_table_with_every_column_survives() -> None:
    sessions = Sessions(arrivals=Poisson(per_hour=60), jobs=[1, 3], think_time_s=30)
    one = JobStream(arrivals=sessions, nodes=[1, 8], run_s=Lognormal(mean=60, cv=2), memory_gib=[0.5, 16], users=[1, 2])
    merged = merge(one=one, other=one).generate(days=0.2)
    shuffled = merged.frame.sample(frac=1, random_state=1)
    again = Workload.from_frame(shuffled)
    pd.testing.assert_frame_equal(again.frame, merged.frame)
    assert again.streams == ("one", "other")


def test_missing_columns_have_defaults_and_jobs_are_numbered_in_order_of_submission() -> None:
    jobs = Workload.from_frame(BASE).frame
    assert jobs.to_dict("list") == {
        "job": [1, 2], "submit_s": [0, 5], "nodes": [2, 1], "run_s": [20, 10], "estimate_s": [20, 10],
        "user": [-1, -1], "group": [-1, -1], "priority": [0, 0], "status": [-1, -1],
    }  # fmt: skip


def test_values_may_be_missing_where_a_job_has_none() -> None:
    frame = BASE.assign(
        job=[7, 3], estimate_s=[np.nan, 0], user=[4, np.nan], memory_gib=[np.nan, 2], preceding=[3, None], think_time_s=np.nan
    )
    jobs = Workload.from_frame(frame)
    assert jobs.column("estimate").tolist() == [20_000_000, 10_000_000]
    assert jobs.column("user").tolist() == [-1, 4]
    assert jobs.column("memory").tolist() == [2 * 2**20, -1]
    assert jobs.column("preceding").tolist() == [-1, 3]
    assert jobs.column("think").tolist() == [0, 0]
    assert jobs.column("stream").tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ([1], r"\[1\] is not allowed; it must be a pandas.DataFrame"),
        (BASE.drop(columns="nodes"), "column 'nodes' is missing; submit_s, nodes, run_s are needed"),
        (
            BASE.assign(estimates=1),
            r"column 'estimates' is not known \(did you mean 'estimate_s'\?\); it must be one of submit_s",
        ),
        (pd.concat([BASE, BASE["nodes"]], axis=1), "two columns have the same name"),
        (BASE.assign(run_s=[1, -3.5]), "row 1: run_s: -3.5 is not allowed; it must be a finite number of seconds > 0"),
        (BASE.assign(run_s=[1, np.nan]), "row 1: run_s: nan is not allowed"),
        (BASE.assign(submit_s=["noon", 1]), "row 0: submit_s: 'noon' is not a number"),
        (BASE.assign(nodes=[1, 1.5]), "row 1: nodes: 1.5 is not a whole number"),
        (BASE.assign(job=[3, 3]), "job id 3 appears 2 times; ids must be unique"),
        (BASE.assign(stream=["day", None]), "row 1: stream: it is missing; it must be a label"),
        (
            BASE.assign(memory_gib=[-1.0, 1]),
            "row 0: memory_gib: -1.0 is not allowed; it must be a number of GiB >= 0",
        ),
        (BASE.assign(preceding=[-1, 1]), "column 'job' is missing; 'preceding' needs it"),
        (BASE.assign(think_time_s=1), "column 'preceding' is missing; 'think_time_s' needs it"),
        (BASE.assign(job=[1, 2], preceding=[2, 9]), "row 1: preceding: there is no job 9; it must be the number of a job"),
        (BASE.assign(job=[1, 2], preceding=[2, 1]), "preceding: job 2 would wait for itself"),
        (BASE.iloc[:0], "it has no jobs; at least one is needed"),
    ],
)
def test_what_cannot_be_a_workload_is_refused_in_one_line(frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(SpecificationError, match=message) as refused:
        Workload.from_frame(frame)
    assert "\n" not in str(refused.value)
