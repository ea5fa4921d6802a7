"""Several job streams in one run: numbers that no two jobs share, and where each job came from."""

import pickle
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustermodel import Job, Machine, Result, Scenario, SpecificationError, SwfStream, TraceError, Workload, synthetic_workload
from clustermodel.experiment.run_key import Opened
from clustermodel.experiment.study import Study
from clustermodel.workload.job import JobRow
from clustermodel.workload.streams_of_run import JobStreams

MACHINE = Machine(nodes=64)


def workload(*numbers: int, name: str = "workload") -> Workload:
    jobs = [Job(id=number, nodes=1, submit_s=at, run_s=5) for at, number in enumerate(numbers)]
    return Workload.from_jobs(jobs, name=name)


def numbers(*sources: Workload | SwfStream) -> list[list[int]]:
    return [[row.id for row in stream.rows()] for stream in JobStreams(sources)]


def streams_of(result: Result) -> dict[int, str]:
    return dict(zip(result.jobs["job"].tolist(), result.jobs["stream"].tolist(), strict=True))


def test_numbers_that_no_two_streams_share_stay() -> None:
    assert numbers(workload(1, 4, 7), workload(2, 9), workload(3)) == [[1, 4, 7], [2, 9], [3]]
    assert numbers(workload(5)) == [[5]]


def test_where_two_collide_each_is_moved_by_the_largest_numbers_before_it() -> None:
    assert numbers(workload(1, 4), workload(2, 9), workload(4, 5)) == [[1, 4], [6, 13], [17, 18]]


def test_a_later_number_of_zero_meets_no_other() -> None:
    assert numbers(workload(0, 4), workload(0, 2), workload(1)) == [[0, 4], [5, 7], [8]]


@given(st.lists(st.lists(st.integers(-3, 12), min_size=1, max_size=6, unique=True), min_size=2, max_size=4))
def test_no_two_jobs_of_a_run_have_one_number_and_each_is_known_by_its_stream(given: list[list[int]]) -> None:
    sources = [
        Workload([JobRow(at, number, 1, 1, 1, -1, -1, 0, -1) for at, number in enumerate(ids)], name="a") for ids in given
    ]
    streams = JobStreams(sources)
    final = [[row.id for row in stream.rows()] for stream in streams]
    flat = [number for ids in final for number in ids]
    assert len(set(flat)) == len(flat)
    assert final[0] == given[0]
    for ids, moved in zip(given, final, strict=True):
        assert np.diff(moved).tolist() == np.diff(ids).tolist()
    expected = [streams.names()[at] for at, ids in enumerate(final) for _ in ids]
    assert streams.of(np.array(flat)).tolist() == expected


def test_the_job_table_says_which_stream_a_job_came_from() -> None:
    day, night = workload(1, 2, name="day"), workload(1, 2, name="night")
    result = Scenario(machine=MACHINE, workload=[day, night, day, workload(1, name="day (2)")], explain=True).run()
    assert streams_of(result) == {1: "day", 2: "day", 3: "night", 4: "night", 5: "day (2)", 6: "day (2)", 7: "day (2) (2)"}
    assert isinstance(result.jobs["stream"].dtype, pd.CategoricalDtype)
    assert result.explain(5).job == 5
    alone = Scenario(machine=MACHINE, workload=day).run()
    assert streams_of(alone) == {1: "day", 2: "day"}


def test_a_workload_split_into_streams_keeps_its_numbers_and_its_results() -> None:
    whole = synthetic_workload(jobs=300, nodes=64)
    for policy in ("easy", "slack"):  # the second one is calibrated on the same streams
        together, apart = (
            Scenario(machine=MACHINE, workload=jobs, policy=policy).run() for jobs in (whole, whole.split("user"))
        )
        pd.testing.assert_frame_equal(
            *(one.jobs.drop(columns="stream").sort_values("job", ignore_index=True) for one in (together, apart))
        )
        user = apart.jobs["user"].map(lambda number: f"{whole.name} user {number}")
        assert apart.jobs["stream"].tolist() == user.tolist()


@pytest.mark.parametrize("policy", ["easy", "slack", "mbgs", "pv-easy"])
def test_two_generated_streams_run_together_under_every_kind_of_policy(tmp_path: Path, policy: str) -> None:
    one, other = (synthetic_workload(jobs=150, nodes=64, seed=seed) for seed in (1, 2))
    for sources in ([one, other], [one, one]):
        result = Scenario(machine=MACHINE, workload=sources, policy=policy).run()
        assert sorted(result.jobs["job"]) == list(range(1, 301))
        assert result.jobs["stream"].value_counts().tolist() == [150, 150]
        assert (result.jobs["submit_s"][result.jobs["job"] > 150]).tolist() == sources[1].seconds("submit").tolist()
        result.to_swf(path := tmp_path / "both.swf")
        assert [row.id for row in SwfStream(path).rows()] == result.jobs["job"].tolist()


def trace(write_trace: Callable[..., Path], name: str, *jobs: int) -> SwfStream:
    lines = [f"{number} {at} -1 5 1 -1 -1 1 9 -1 1 1 1 -1 -1 -1 -1 -1" for at, number in enumerate(jobs)]
    return SwfStream(write_trace("; MaxProcs: 8", *lines, name=f"{name}.swf"))


def test_traces_read_as_streams_are_renumbered_one_job_at_a_time(write_trace: Callable[..., Path]) -> None:
    first, second = trace(write_trace, "first", 3, 5), trace(write_trace, "second", 8, 9)
    assert numbers(first, second, workload(1)) == [[3, 5], [13, 14], [15]]  # whatever they are, they are not known before
    scenario = Scenario(workload=[first, second, first])
    assert streams_of(scenario.run()) == {3: "first", 5: "first", 13: "second", 14: "second", 17: "first (2)", 19: "first (2)"}
    rows = next(iter(list(scenario.streams)[1:])).rows()
    assert next(rows).id == 13
    assert first.provenance.lines() == []


def test_a_stream_without_jobs_takes_no_numbers(write_trace: Callable[..., Path]) -> None:
    assert numbers(trace(write_trace, "none"), workload(1, 2), trace(write_trace, "none"), workload(1)) == [[], [1, 2], [], [3]]
    streams = JobStreams([trace(write_trace, "none"), workload(1, 2), trace(write_trace, "none"), workload(1)])
    assert streams.of(np.array([1, 2, 3])).tolist() == ["workload", "workload", "workload (2)"]


def test_a_damaged_trace_among_streams_is_named(write_trace: Callable[..., Path]) -> None:
    with pytest.raises(TraceError, match=r"bad\.swf:1: 1 field;"):
        Scenario(machine=MACHINE, workload=[workload(1), SwfStream(write_trace("x", name="bad.swf"))]).run()


def test_numbers_that_do_not_fit_are_refused() -> None:
    huge = Workload([JobRow(0, 2**62, 1, 1, 1, -1, -1, 0, -1)])
    with pytest.raises(SpecificationError, match="job numbers of the streams, one after the other, do not fit 64 bits"):
        Scenario(machine=MACHINE, workload=[huge, huge]).run()


def test_a_study_tells_streams_apart_by_the_jobs_that_are_run() -> None:
    one, other = (synthetic_workload(jobs=20, nodes=64, seed=seed) for seed in (1, 2))
    scenarios = [
        Scenario(machine=MACHINE, workload=jobs, name=str(at))
        for at, jobs in enumerate(([one, other], [other, one], [one, one], [one], one.split("user")))
    ]
    study = Study.of_scenarios("streams", scenarios)
    runs = study.runs(study.trials(study.first_table()), Opened(study))
    assert len({run.key for run in runs}) == len(scenarios)
    scenario = pickle.loads(pickle.dumps(scenarios[0]))  # as it is sent to a worker
    assert scenario.run().jobs.equals(scenarios[0].run().jobs)


@pytest.mark.parametrize("name", ["made", "=1+1", "\udcff", "a\nb"])
def test_the_job_table_survives_parquet(name: str) -> None:
    pytest.importorskip("pyarrow")
    jobs = Scenario(machine=MACHINE, workload=[workload(1, name=name), workload(1, name=name)]).run().jobs
    jobs.to_parquet(buffer := BytesIO(), index=False)
    pd.testing.assert_frame_equal(pd.read_parquet(buffer), jobs)
