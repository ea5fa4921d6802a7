"""The workload table, what is derived from it, and the synthetic workload against its docstring."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from math import isnan, log, log2, nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

import clustermodel as cm
from clustermodel.workload.job import NUMBERS, Demand, JobRow, OwnCosts
from clustermodel.workload.provenance import Provenance
from tests.conftest import refusal

SECOND = 1_000_000


def row(number: int, submit_s: float, nodes: int = 1, run_s: float = 10, estimate_s: float = 20, **more: int) -> JobRow:
    given = JobRow(round(submit_s * SECOND), number, nodes, round(run_s * SECOND), round(estimate_s * SECOND), -1, -1, 0, -1)
    return given._replace(**more)


FOUR = [
    row(4, 5, nodes=2, run_s=30, estimate_s=60, user=1),
    row(2, 0, nodes=4, run_s=10, estimate_s=10, user=2, group=3, priority=7, status=1),
    row(3, 5, nodes=8, run_s=50, estimate_s=20, user=1, status=0),
    row(9, 25.5, nodes=1, run_s=0.5, estimate_s=100, user=2),
]
"""In order of submission, then id: 2, 3, 4, 9."""


class Own:
    """A job source of a user's own."""

    name = "own"
    provenance = Provenance(source="own")
    machine_nodes = None

    def __init__(self, rows: list[JobRow]) -> None:
        self._rows = rows

    def rows(self) -> Iterator[JobRow]:
        return iter(self._rows)


def ids(workload: cm.Workload) -> list[int]:
    return [job.id for job in workload.rows()]


@given(
    st.lists(st.tuples(st.integers(0, 10**18), st.integers(1, 2**40)), min_size=1, max_size=50, unique_by=lambda pair: pair[1])
)
def test_rows_go_in_and_come_out_the_same(pairs: list[tuple[int, int]]) -> None:
    rows = [row(number, 0)._replace(submit=submit, nodes=number % 7, run=number) for submit, number in pairs]
    workload = cm.Workload(rows)
    assert list(workload.rows()) == sorted(rows)
    assert list(cm.Workload(workload.rows()).rows()) == sorted(rows)


def test_rows_are_plain_integers_read_as_often_as_wanted_across_chunks() -> None:
    rows = [row(number, number % 100) for number in range(10_000)]  # the table hands them out a few thousand at a time
    workload = cm.Workload(rows)
    assert len(workload) == 10_000
    assert list(workload.rows()) == list(workload.rows()) == sorted(rows)
    assert {type(value) for one in workload.rows() for value in one[:-1]} == {int}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cm.Workload([], name="w"), "Workload 'w': it has no jobs; at least one is needed"),
        (lambda: cm.Workload(FOUR, name="w").select(cm.JobFilter(window_s=(100, 200))), "Workload 'w': it has no jobs; at "
         "least one is needed"),
        (lambda: cm.Workload([row(1, 0), *(row(7, number) for number in range(3))], name="w"), "Workload 'w': job id 7 appears "
         "3 times; ids must be unique"),
        (lambda: cm.Workload(FOUR).split("colour"), "Workload.split by: 'colour' is not allowed; it must be one of submit, id, "
         "nodes, run, estimate, user, group, priority, status, memory"),
        (lambda: cm.Workload(FOUR).with_default_memory(-1), "Workload.with_default_memory: -1 is not allowed; it must be a "
         "number of GiB >= 0 and <= 2^33"),
    ],
)  # fmt: skip
def test_what_is_no_workload_is_refused(make: Callable[[], object], message: str) -> None:
    assert refusal(make) == message


def test_columns_are_in_ticks_and_cannot_be_changed() -> None:
    workload = cm.Workload(FOUR)
    assert workload.column("id").tolist() == [2, 3, 4, 9]
    assert workload.column("submit").tolist() == [0, 5 * SECOND, 5 * SECOND, 25_500_000]
    assert workload.seconds("run").tolist() == [10, 50, 30, 0.5]
    for name in NUMBERS:
        with pytest.raises(ValueError, match="read-only"):
            workload.column(name)[0] = 1


def test_the_frame_has_seconds_and_the_documented_columns() -> None:
    frame = cm.Workload(FOUR).frame
    assert list(frame) == ["job", "submit_s", "nodes", "run_s", "estimate_s", "user", "group", "priority", "status"]
    assert frame.to_numpy().tolist() == [
        [2, 0, 4, 10, 10, 2, 3, 7, 1],
        [3, 5, 8, 50, 20, 1, -1, 0, 0],
        [4, 5, 2, 30, 60, 1, -1, 0, -1],
        [9, 25.5, 1, 0.5, 100, 2, -1, 0, -1],
    ]


def test_jobs_in_seconds_go_in_and_come_out_the_same() -> None:
    jobs = [
        cm.Job(id=2, nodes=3, submit_s=1.5, run_s=2, estimate_s=4, user=1, group=2, priority=3),
        cm.Job(id=1, nodes=0, submit_s=9, run_s=0.25, estimate_s=0.25),
    ]
    workload = cm.Workload.from_jobs(reversed(jobs), name="two", machine_nodes=8)
    assert list(workload.jobs()) == jobs
    assert (workload.name, workload.machine_nodes, workload.provenance.source) == ("two", 8, "two")


def test_the_text_of_a_workload_says_how_many_jobs_over_how_long() -> None:
    days = cm.Workload([row(1, 86_400), row(2, 3.5 * 86_400)], name="short")
    assert days.span_s == 2.5 * 86_400
    assert repr(days) == "<Workload 'short': 2 jobs over 2.5 days>"


def test_selecting_keeps_the_rest_counted_by_reason_and_leaves_the_original_alone() -> None:
    whole = cm.Workload(FOUR, name="w", machine_nodes=8)
    wide = cm.JobFilter(nodes=(2, 9))
    first = whole.select(wide)
    assert ids(first) == [2, 3, 4]
    assert first.provenance.dropped == Counter({"outside the size range": 1})
    second = first.select(cm.JobFilter(users={1}))
    assert ids(second) == [3, 4]
    assert second.provenance.dropped == Counter({"outside the size range": 1, "user not selected": 1})
    assert second.provenance.lines() == ["1 job dropped: outside the size range", "1 job dropped: user not selected"]
    assert (second.name, second.machine_nodes) == ("w", 8)
    assert first.provenance.options == {"filter": wide}
    assert ids(whole) == [2, 3, 4, 9]
    assert not whole.provenance.dropped


@pytest.mark.parametrize(
    ("field", "ticks", "least"), [("submit", -1, 0), ("run", 0, 1), ("run", -5, 1), ("estimate", 0, 1), ("estimate", -1, 1)]
)
def test_a_time_that_no_job_has_is_refused(field: str, ticks: int, least: int) -> None:
    rows = [FOUR[0], FOUR[1]._replace(**{field: ticks})]
    said = f"job {FOUR[1].id}: {field} {ticks} is not allowed; it must be >= {least}, in ticks"
    early = [FOUR[0]._replace(submit=9), FOUR[1]._replace(submit=4)]
    assert refusal(lambda: cm.Workload(rows, name="w")) == f"Workload 'w': {said}"
    assert refusal(lambda: cm.Scenario(machine=cm.Machine(nodes=64), workload=Own(rows)).run()) == said
    assert refusal(lambda: cm.Scenario(machine=cm.Machine(nodes=64), workload=Own(early)).run()) == (
        "own: job 2: submit 4 is not allowed; it must be >= 9, the submission of the job before, in ticks"
    )


@pytest.mark.parametrize(
    ("field", "demand"),
    [
        ("partition", Demand(partition="a")),
        ("costs", Demand(costs=OwnCosts(startup=5))),
        ("singleton", Demand(singleton=True)),
    ],
)
def test_a_stream_that_is_not_in_memory_has_no_demands_that_a_run_must_know_before(field: str, demand: Demand) -> None:
    rows = [FOUR[0]._replace(demand=demand)]
    assert refusal(lambda: cm.Scenario(machine=cm.Machine(nodes=64), workload=Own(rows)).run()) == (
        f"own: job {FOUR[0].id}: {field} is not allowed in a stream that is not in memory, only costs of checkpoints and "
        "restarts; make a Workload of its rows"
    )
    saved = [FOUR[0]._replace(demand=Demand(costs=OwnCosts(checkpoint=5, restart=7, checkpoint_interval=9)))]
    assert len(cm.Scenario(machine=cm.Machine(nodes=64), workload=Own(saved)).run().jobs) == len(saved)


@pytest.mark.parametrize("field", ["submit", "run", "estimate", "user", "group", "priority"])
@pytest.mark.parametrize("stream", [False, True])
def test_numbers_of_a_row_must_fit_64_bits(field: str, *, stream: bool) -> None:
    rows = [FOUR[0]._replace(**{field: 2**70})]
    with pytest.raises(cm.SpecificationError, match=rf"^job 4: {field} {2**70} is not allowed; it must fit 64 bits$"):
        cm.Scenario(machine=cm.Machine(nodes=64), workload=Own(rows), stream=stream).run()


def test_scaling_keeps_the_first_submission_where_it_is() -> None:
    scale = cm.LoadScale(interarrival=2, run_time=0.5, size=3)
    scaled = cm.Workload([one._replace(submit=one.submit + 7 * SECOND) for one in FOUR]).scaled(scale)
    # first at 7 s; then 7 + 2 x 5 = 17 s twice, 7 + 2 x 25.5 = 58 s
    assert scaled.seconds("submit").tolist() == [7, 17, 17, 58]
    assert scaled.seconds("run").tolist() == [5, 25, 15, 0.25]
    assert scaled.seconds("estimate").tolist() == [5, 10, 30, 50]
    assert scaled.column("nodes").tolist() == [12, 24, 6, 3]
    assert scaled.provenance.options == {"scale": scale}
    # ids fall as submissions rise; once all are submitted in the same tick, the id decides
    assert ids(cm.Workload([row(3, 0), row(2, 1), row(1, 2)]).scaled(cm.LoadScale(interarrival=1e-9))) == [1, 2, 3]
    far = cm.Workload.from_jobs([cm.Job(id=1, nodes=1, submit_s=0, run_s=1e9)])
    assert "too large for 64-bit ticks" in refusal(lambda: far.scaled(cm.LoadScale(run_time=1e9)))


def test_perfect_estimates_are_the_run_times_and_nothing_else_changes() -> None:
    perfect = cm.Workload(FOUR).with_perfect_estimates()
    assert list(perfect.rows()) == [one._replace(estimate=one.run) for one in cm.Workload(FOUR).rows()]
    assert perfect.provenance.options == {"estimates": "run time"}


@pytest.mark.parametrize(
    ("by", "parts"),
    [("user", {1: [3, 4], 2: [2, 9]}), ("nodes", {1: [9], 2: [4], 4: [2], 8: [3]}), ("submit", {0: [2]})],
)
def test_splitting_gives_a_part_for_each_value_of_a_column(by: str, parts: dict[int, list[int]]) -> None:
    split = cm.Workload(FOUR, name="w", machine_nodes=8).split(by)
    found = {int(part.column(by)[0]): ids(part) for part in split}
    assert found.items() >= parts.items()
    assert sorted(one for part in split for one in part.rows()) == sorted(FOUR)
    for value in parts:
        assert f"w {by} {value}" in [part.name for part in split]
    assert {part.machine_nodes for part in split} == {8}


def test_jobs_of_unknown_memory_get_the_default_of_the_workload() -> None:
    jobs = cm.Workload([*FOUR[:3], FOUR[3]._replace(memory=7)])
    filled = jobs.with_default_memory(0.5)
    assert jobs.column("memory").tolist() == [-1, -1, -1, 7]
    assert filled.column("memory").tolist() == [2**19] * 3 + [7]
    assert filled.provenance.lines() == ["3 jobs repaired: memory unknown, 0.5 GiB per node used"]
    assert filled.with_default_memory(1).provenance.lines() == filled.provenance.lines()


def test_so_do_those_of_a_stream(write_trace: Callable[..., Path]) -> None:
    """Field 10, requested memory, else field 7, used memory; in the second job both are unknown."""
    lines = "1 0 0 9 1 -1 -1 1 9 2048 1 1 1 1 1 1 -1 -1", "2 1 0 9 1 -1 -1 1 9 -1 1 1 1 1 1 1 -1 -1"
    path = write_trace(*lines)
    stream = cm.SwfStream(path, default_memory_gib=0.5)
    assert [row.memory for row in stream.rows()] == [2048, 2**19]
    assert stream.provenance.lines() == ["1 job repaired: memory unknown, 0.5 GiB per node used"]
    assert [row.memory for row in cm.SwfStream(path).rows()] == [2048, -1]
    assert stream == cm.SwfStream(path, default_memory_gib=0.5) != cm.SwfStream(path)
    message = refusal(lambda: cm.SwfStream(path, default_memory_gib=-1))
    assert message.startswith("SwfStream.default_memory_gib: -1 is not allowed; it must be a number of GiB")


def test_provenance_lines_say_how_many_jobs_and_why() -> None:
    provenance = Provenance(source="s")
    provenance.repaired["b"] += 1200
    provenance.dropped["z"] += 1
    provenance.dropped["a"] += 2
    assert provenance.lines() == ["2 jobs dropped: a", "1 job dropped: z", "1,200 jobs repaired: b"]


def test_offered_load_is_work_over_capacity_while_jobs_arrive() -> None:
    workload = cm.Workload(FOUR)
    # 4 x 10 + 8 x min(50, 20) + 2 x 30 + 1 x 0.5 = 260.5 node-s over 16 nodes x 25.5 s
    assert workload.offered_load(16) == 260.5 / (16 * 25.5)
    # 8 x 50 instead of 8 x 20
    assert workload.offered_load(16, kill_at_estimate=False) == 500.5 / (16 * 25.5)
    # jobs without nodes offer no work; without time between submissions it is nan
    assert cm.Workload([row(1, 0, nodes=-5), row(2, 10, nodes=2)]).offered_load(4) == 2 * 10 / (4 * 10)
    assert isnan(cm.Workload([row(1, 3), row(2, 3)]).offered_load(4))


# The synthetic workload.  Where a share or a quantile of random values is compared with its expectation, the allowance is
# five standard errors, computed from the number of jobs: one seed in two million misses it.
JOBS = 30_000  # exactly 365 days


@pytest.fixture(scope="module")
def year() -> cm.Workload:
    return cm.synthetic_workload(jobs=JOBS, nodes=128, load=0.65, seed=1)


def assert_share(found: float, expected: float) -> None:
    assert found == pytest.approx(expected, abs=5 * sqrt(expected * (1 - expected) / JOBS))


def test_the_same_seed_gives_the_same_rows_and_another_one_does_not() -> None:
    first, again, other = (cm.synthetic_workload(jobs=500, nodes=64, load=0.8, seed=seed) for seed in (3, 3, 4))
    assert list(first.rows()) == list(again.rows())
    assert list(first.rows()) != list(other.rows())


def test_a_size_and_run_times_that_change_leave_submissions_and_users_alone() -> None:
    # one stream per attribute: common random numbers
    light, heavy = (cm.synthetic_workload(jobs=500, nodes=64, load=load, seed=3) for load in (0.3, 0.9))
    for name in ("submit", "nodes", "user"):
        assert light.column(name).tolist() == heavy.column(name).tolist()
    wider = cm.synthetic_workload(jobs=500, nodes=256, load=0.3, seed=3)
    assert light.column("submit").tolist() == wider.column("submit").tolist()


@pytest.mark.parametrize(("nodes", "load", "seed"), [(128, 0.65, 1), (16, 0.2, 2), (1000, 1.3, 3), (1, 0.9, 4)])
def test_the_offered_load_is_the_one_asked_for(nodes: int, load: float, seed: int) -> None:
    workload = cm.synthetic_workload(jobs=2000, nodes=nodes, load=load, seed=seed)
    size, run = workload.column("nodes"), workload.seconds("run")
    # Each run time is off by half a tick of rounding at most, and by less than a second if it was made one second.
    work_off = float(np.dot(size, np.where(run == 1, 1.0, 0.5e-6)))
    found = workload.offered_load(nodes)
    assert found == pytest.approx(load, abs=work_off / (nodes * workload.span_s) + 1e-12)
    assert work_off / (nodes * workload.span_s) < 0.01 * load  # the claim above is not empty


def test_numbers_sizes_and_names(year: cm.Workload) -> None:
    assert ids(year) == list(range(1, JOBS + 1))
    assert year.column("nodes").min() == 1
    assert 64 < year.column("nodes").max() <= 128
    assert (year.name, year.machine_nodes) == ("synthetic-1", 128)
    assert year.provenance.source == "synthetic_workload(jobs=30000, nodes=128, load=0.65, seed=1)"
    assert year.provenance.options == {"jobs": 30000, "nodes": 128, "load": 0.65, "seed": 1}
    assert {*year.column("group"), *year.column("status")} == {-1}


def test_submissions_are_whole_seconds_spread_over_a_year_four_times_as_dense_by_day(year: cm.Workload) -> None:
    submit = year.seconds("submit")
    assert (submit % 1 == 0).all()
    assert 0 <= submit.min() <= submit.max() <= 365 * 86_400
    hour = submit / 3600 % 24
    # The density is 1 + 0.6 cos(2 pi (t - 14) / 24), between 1.6 and 0.4.  Over two hours around the extremes its integral
    # is 2 +- 0.6 x 24/pi x sin(pi/12), out of 24 for the day.
    swing = 0.6 * 24 / np.pi * np.sin(np.pi / 12)
    assert_share(float(np.mean((hour >= 13) & (hour < 15))), (2 + swing) / 24)
    assert_share(float(np.mean((hour >= 1) & (hour < 3))), (2 - swing) / 24)


def test_a_quarter_of_the_jobs_is_serial_besides_those_whose_size_is_rounded_to_one(year: cm.Workload) -> None:
    # 2^u rounds to one node when u < log2(1.5), or u < 0.5 where u itself is rounded; u is log2(128) = 7 times Beta(1, 2.5)
    rounded = 0.5 * beta.cdf(0.5 / 7, 1, 2.5) + 0.5 * beta.cdf(log2(1.5) / 7, 1, 2.5)
    assert_share(float(np.mean(year.column("nodes") == 1)), 0.25 + 0.75 * rounded)


def test_run_times_are_lognormal_and_cut(year: cm.Workload) -> None:
    run = np.sort(year.seconds("run"))
    # sigma 2: the 84.13 % quantile lies two natural logarithms above the median, wherever the median was scaled to.
    # Standard error of a quantile: sqrt(p (1 - p) / jobs) / density, with sigma = 2.
    median_error = 2 * sqrt(0.25 / JOBS) / 0.39894
    upper_error = 2 * sqrt(0.8413 * 0.1587 / JOBS) / 0.24197
    median, upper = np.quantile(run, [0.5, 0.8413])
    assert log(upper / median) == pytest.approx(2, abs=5 * (median_error + upper_error))
    # the cut at 36 hours, 129,600 s over a median of 680 s, is reached by more than one job
    assert log(run[-1] / median) == pytest.approx(log(129_600 / 680), abs=5 * median_error)
    assert run[-1] == run[-2]
    assert run[0] >= 1


def test_estimates_follow_the_phi_model_cut_at_fifty_times_the_run_time(year: cm.Workload) -> None:
    run, estimate = year.column("run"), year.column("estimate")
    assert (estimate >= run).all()
    assert_share(float(np.mean(estimate == run)), 0.2)  # phi
    # factor (1 - phi) / (1 - y) exceeds f for y > 1 - 0.8 / f: a share of 0.8 / f of all jobs; 0.8 / 50 are cut
    assert_share(float(np.mean(estimate > 4 * run)), 0.8 / 4)
    # run and 50 x run are rounded to ticks separately: they differ by 50 x 0.5 + 0.5 ticks at most
    assert (estimate <= 50 * run + 25.5).all()
    assert_share(float(np.mean(estimate >= 50 * run - 25.5)), 0.8 / 50)


def test_users_are_drawn_with_probabilities_that_fall_as_one_over_rank(year: cm.Workload) -> None:
    users = year.column("user")
    harmonic = sum(1 / rank for rank in range(1, 101))
    for rank in (1, 2, 10):
        assert_share(float(np.mean(users == rank)), 1 / rank / harmonic)
    assert (users.min(), users.max()) == (1, 100)


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("jobs", 1, "jobs: 1 is not allowed; it must be an integer >= 2"),
        ("jobs", 1e3, "jobs: 1000.0 is not a whole number; it must be an integer >= 2"),
        ("nodes", 0, "nodes: 0 is not allowed; it must be an integer >= 1"),
        ("seed", -1, "seed: -1 is not allowed; it must be an integer >= 0"),
        ("seed", None, "seed: None is not a whole number; it must be an integer >= 0"),
        ("load", 0, "load: 0 is not allowed; it must be > 0 and < 10"),
        ("load", 10, "load: 10 is not allowed; it must be > 0 and < 10"),
        ("load", nan, "load: nan is not allowed; it must be > 0 and < 10"),
    ],
)
def test_an_argument_out_of_range_is_named(argument: str, value: Any, message: str) -> None:
    assert refusal(lambda: cm.synthetic_workload(**{argument: value})) == message


def test_jobs_do_not_depend_on_the_number_of_threads() -> None:
    """A product of arrays that BLAS adds up on one thread has other last digits than on two: estimates differed by a tick."""
    program = (
        "from clustermodel import load_model, synthetic_workload\n"
        "from clustermodel.experiment.run_key import digest_of_jobs\n"
        "made = [synthetic_workload(jobs=60_000, seed=2), load_model('blue-pacific').generate(jobs=30_000, seed=2)]\n"
        "print(*map(digest_of_jobs, made))"
    )
    found = set()
    for threads in ("1", "2"):
        names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {**os.environ, **dict.fromkeys(names, threads)}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
        found.add(done.stdout)
    assert len(found) == 1
