"""Resampling a log: whole weeks or users drawn with replacement."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from clustermodel import Job, JobFilter, Machine, Scenario, SpecificationError, Study, StudyTable, Workload, merge
from clustermodel.cli.main import main
from clustermodel.measure.statistics import Interval, of_sample_paths
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.provenance import Provenance
from clustermodel.workload.swf import read_swf, write_trace
from clustermodel.workload.transforms import WEEK_S
from tests.conftest import refusal

DAY_S = 86_400
STEP = 1000
"""Numbers of jobs of the first draw are below it."""
MONDAY = 4 * DAY_S
"""1970-01-05, 0:00 UTC, a Monday."""


def log(weeks: float = 10, jobs: int = 400, users: int = 7, began: int | None = None) -> Workload:
    """Return jobs of distinct run times, spread over time 0 to some weeks; the header may say when the log begins."""
    rng = np.random.default_rng(1)
    submit = np.sort(rng.integers(1, round(weeks * WEEK_S), size=jobs - 2)).tolist()
    rows = [
        Job(
            id=number, submit_s=at, nodes=1 + number % 5, run_s=100 * number, estimate_s=200 * number, user=number % users
        ).row()
        for number, at in enumerate([0, *submit, round(weeks * WEEK_S)], 1)
    ]
    header = {} if began is None else {"UnixStartTime": str(began), "TimeZoneString": "UTC"}
    return Workload(rows, name="log", provenance=Provenance(source="log", header=header))


@pytest.mark.parametrize("of", ["weeks", "users", 3 * DAY_S])
def test_the_seed_decides(of: str | float) -> None:
    one, same, other = (log().resampled(of, seed=seed) for seed in (3, 3, 4))  # type: ignore[arg-type]
    assert one == same
    assert one != other


@pytest.mark.parametrize("of", ["weeks", 3 * DAY_S])
def test_each_job_is_one_of_the_log_at_its_time_in_the_block(of: str | float) -> None:
    block = WEEK_S if of == "weeks" else float(of)
    jobs = log().frame.set_index("job")
    for seed in range(5):
        drawn = log().resampled(of, seed=seed).frame  # type: ignore[arg-type]
        original = jobs.loc[drawn["job"] % STEP].reset_index()
        assert (drawn["submit_s"] % block).to_list() == (original["submit_s"] % block).to_list()
        kept = ["nodes", "run_s", "estimate_s", "user"]
        pd.testing.assert_frame_equal(drawn[kept], original[kept])
        assert (drawn["submit_s"] // block).to_list() == (drawn["job"] // STEP).to_list()
        assert drawn["submit_s"].max() <= jobs["submit_s"].max()


def test_blocks_are_whole_and_those_before_the_cut_complete() -> None:
    trace = log(weeks=5.5)
    sizes = Counter((trace.column("submit") // (WEEK_S * TICKS_PER_SECOND)).tolist())
    seen: set[int] = set()
    for seed in range(20):
        drawn = trace.resampled(seed=seed).frame
        weeks = drawn.groupby(drawn["job"] // STEP)
        drawn_from = trace.frame.set_index("job")["submit_s"].loc[weeks["job"].first() % STEP].to_numpy() // WEEK_S
        assert drawn_from.max() <= 4
        assert all(len(jobs) == sizes[drawn_from[week]] for week, jobs in weeks if week < 5)
        assert list(weeks.groups) == list(range(6))
        seen |= set(drawn_from)
    assert seen == set(range(5))


def test_weeks_begin_on_monday_where_the_header_says_when_the_log_begins() -> None:
    thursday = log(began=MONDAY + 3 * DAY_S + 7200)
    drawn = thursday.resampled(seed=2).frame
    begin = 4 * DAY_S - 7200
    assert (drawn["submit_s"] >= begin).all()
    assert ((drawn["submit_s"] - begin) // WEEK_S).to_list() == (drawn["job"] // STEP).to_list()
    assert "drawn with replacement from 9" in thursday.resampled().provenance.notes[0]


def test_on_average_the_load_is_that_of_the_whole_weeks() -> None:
    trace = log(weeks=10)
    loads = [trace.resampled(seed=seed).offered_load(64) for seed in range(200)]
    assert np.mean(loads) == pytest.approx(trace.offered_load(64), rel=4 * np.std(loads) / trace.offered_load(64) / 200**0.5)


def test_users_are_drawn_with_all_their_jobs_and_a_user_drawn_twice_is_two() -> None:
    trace = log()
    jobs = trace.frame.set_index("job")
    for seed in range(5):
        drawn = trace.resampled("users", seed=seed).frame
        original = jobs.loc[drawn["job"] % STEP].reset_index()
        kept = ["submit_s", "nodes", "run_s", "estimate_s"]
        pd.testing.assert_frame_equal(drawn[kept], original[kept])
        pairs = pd.DataFrame({"new": drawn["user"], "draw": drawn["job"] // STEP, "user": original["user"]}).drop_duplicates()
        assert pairs["new"].is_unique
        assert len(pairs) == 7
        for (draw, user), own in original.groupby([drawn["job"] // STEP, "user"]):
            assert len(own) == (jobs["user"] == user).sum(), (draw, user)


def test_names_of_users_drawn_again_tell_them_apart() -> None:
    trace = log(users=3)
    assert trace.extra == ()
    users = pd.DataFrame(
        {"job": [1, 2, 3], "submit_s": [0.0, 1, 2], "nodes": 1, "run_s": 5.0, "user": [1, 2, 2], "account": ["a"] * 3}
    )
    named = Workload.from_frame(users)
    named.names = {**named.names, "user": ("ann", "bob")}
    twice = next(one for seed in range(50) if len(one := named.resampled("users", seed=seed)) == 4)
    assert twice.names["user"] == ("ann", "bob", "bob (2)")
    assert sorted(twice.column("user").tolist()) == [2, 2, 3, 3]


def test_feedback_is_kept_within_a_draw_and_cut_between() -> None:
    frame = log(weeks=6).frame
    frame["preceding"] = [-1, *frame["job"].to_list()[:-1]]
    frame["think_time_s"] = 60.0
    trace = Workload.from_frame(frame)
    drawn = trace.resampled(seed=5).frame
    week = drawn["job"] // STEP
    first = ~week.duplicated()
    assert (drawn["preceding"][first] == -1).all()
    assert (drawn["preceding"][~first] == drawn["job"][~first] - 1).all()
    Scenario(machine=Machine(nodes=8), workload=trace.resampled(seed=5), policy="easy").run()


def test_streams_keep_their_labels() -> None:
    both = merge(a=log(jobs=50), b=log(jobs=60).renumbered(500))
    drawn = both.resampled(seed=1)
    assert drawn.streams == ("a", "b")
    assert ((drawn.frame["stream"] == "b") == (drawn.frame["job"] % STEP > 500)).all()


def test_few_blocks_have_a_note() -> None:
    assert log(weeks=7.5).resampled().provenance.lines() == [
        "8 weeks drawn with replacement from 7, the last one cut; fewer than 8 are too few for intervals"
    ]
    assert "too few" not in log(weeks=8.5).resampled().provenance.lines()[0]


@pytest.mark.parametrize(
    ("of", "message"),
    [
        ("months", "of: 'months' is not allowed; it must be 'weeks', 'users' or a number of seconds"),
        (0, "of: 0 is not allowed; it must be a finite number of seconds > 0 and <= 1e+10"),
        ("weeks", "of: 'weeks' is not allowed; the jobs span 12.6 days, less than two whole blocks"),
        ("users", "of: 'users' is not allowed; the jobs have fewer than two users"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(of: str | float, message: str) -> None:
    assert refusal(lambda: log(weeks=1.8, users=1).resampled(of)) == message


def test_numbers_that_are_too_large_are_refused() -> None:
    with pytest.raises(SpecificationError, match="job numbers up to 2000000000000000399 are too large to tell draws apart"):
        log().renumbered(2 * 10**18).resampled()


def paired_study(replications: int = 4) -> Study:
    trace = log(weeks=9)
    return Study.grid(
        name="resampled",
        workloads={"log": trace, "resampled": lambda seed: trace.resampled(seed=seed)},
        policies=["fcfs", "easy"],
        machines={"small": Machine(nodes=6)},
        replications=replications,
    )


def test_policies_of_a_replication_run_the_same_jobs_and_intervals_are_of_sample_paths(tmp_path: Path) -> None:
    table = paired_study().run(workers=1)
    for path in (None, tmp_path / "table.csv"):
        if path is not None:
            table.to_csv(path, columns=["mean_wait_s", "jobs"])
            table = StudyTable.read_csv(path)
        drawn = {"workload": "resampled"}
        counts = [table.values("jobs", policy=policy, **drawn).tolist() for policy in ("fcfs", "easy")]
        assert counts[0] == counts[1]
        assert len(set(counts[0])) > 1
        waits = table.values("mean_wait_s", policy="easy", **drawn)
        assert table.interval("mean_wait_s", policy="easy", **drawn).half == pytest.approx(
            3.182446 * np.std(waits, ddof=1) * (1 + 1 / 4) ** 0.5
        )
        ratio = table.difference("mean_wait_s", {"policy": "easy", **drawn}, {"policy": "fcfs", **drawn}, ratio=True)
        ratios = waits / table.values("mean_wait_s", policy="fcfs", **drawn)
        assert ratio.mean == pytest.approx(np.mean(ratios))
        assert ratio.half == pytest.approx(3.182446 * np.std(ratios, ddof=1) * (1 + 1 / 4) ** 0.5)
        recorded = table.interval("mean_wait_s", policy="easy", workload="log")
        assert np.isnan(recorded.half)
        assert recorded.count == 1


def test_more_resamples_do_not_narrow_an_interval_of_sample_paths() -> None:
    assert of_sample_paths(Interval(2.0, 0.1, 0.95, 99)) == Interval(2.0, 1.0, 0.95, 99)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[str, str]]:
    """Run a command, and return what it prints to standard output and to standard error."""

    def run(*arguments: object) -> tuple[str, str]:
        with pytest.raises(SystemExit):
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return printed.out, printed.err

    return run


@pytest.mark.parametrize("scaling", [[], ["--scale-interarrival", "0.5"]])
def test_the_command_resamples_between_selecting_and_scaling(
    command: Callable[..., tuple[str, str]], tmp_path: Path, scaling: list[str]
) -> None:
    write_trace(tmp_path / "log.swf", log(began=MONDAY))
    expected = read_swf(tmp_path / "log.swf").select(JobFilter(nodes=(1, 3))).resampled(seed=7)
    options = ["--nodes", "8", "--size", "1:3", "--resample", "weeks", "--seed", "7", "--policy", "easy", "--json", *scaling]
    shown, notes = command("run", "--trace", tmp_path / "log.swf", *options)
    load = expected.offered_load(8) * (2 if scaling else 1)
    (run,) = json.loads(shown)
    assert (run["jobs"], run["load"]) == (len(expected), pytest.approx(load, rel=0.01))
    assert "log: 11 weeks drawn with replacement from 10, the last one cut" in notes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--resample", "months"], "'months' is not 'weeks', 'users' or a number of seconds above 0"),
        (["run", "--trace", "log.swf", "--stream", "--resample", "weeks"], "--resample: not allowed with --stream"),
        (["run", "jobs.toml", "--resample", "weeks"], "jobs.toml: --resample: the jobs are those of the file"),
    ],
)
def test_the_command_refuses_what_makes_no_sense(
    command: Callable[..., tuple[str, str]], arguments: list[str], message: str
) -> None:
    assert message in command(*arguments)[1]
