"""Waits since jobs were eligible, as a log has recorded and as a run has simulated them, and notes on what was simulated."""

import json
from collections.abc import Callable
from math import isnan
from pathlib import Path
from typing import Any

import pytest

from clustermodel import Job, Limits, Machine, Scenario, Site, Workload, read_pbs, read_sacct, write_trace
from clustermodel.cli.whatif_command import SUSPENDING
from clustermodel.measure.input_notes import run_notes
from clustermodel.measure.metrics import SINCE_ELIGIBLE, observed_schedule
from clustermodel.sim.compiled import LONG_S, advice
from tests.conftest import Finished
from tests.shared_data import SHARED

Command, Write = Callable[..., Finished], Callable[..., Path]
HEADER = "JobID|User|Submit|Eligible|Start|End|ElapsedRaw|State|AllocNodes|TimelimitRaw|SubmitLine"
DAY = "2026-03-02T"


def record(
    number: object, eligible: str, start: str, *, submit: str = "08:00:00", run_s: int = 600, line: str = "sbatch s.sh"
) -> str:
    """Return a record of a job of two nodes; an empty ``eligible`` is one that is not known."""
    times = (f"{DAY}{submit}", f"{DAY}{eligible}" if eligible else "Unknown", f"{DAY}{start}")
    return f"{number}|kim|{'|'.join(times)}|Unknown|{run_s}|COMPLETED|2|60|{line}"


def chain(write: Write) -> Path:
    """Return a log in which job 2 waits for job 1, which waits for 5 minutes; job 2 waits for 10 minutes after it."""
    return write(
        HEADER,
        record(1, "08:00:00", "08:05:00"),
        record(2, "08:15:00", "08:25:00", line="sbatch --dependency=afterok:1 s.sh"),
        name="chain.sacct",
    )


def test_the_log_of_a_chain(command_line: Command) -> None:
    path = SHARED / "cases" / "sites" / "d03_chain.sacct"
    if not path.is_file():
        pytest.skip(f"{path} is not here; the cases are not part of the repository")
    finished = command_line("whatif", "--trace", path, "--policy", "easy", "--json")
    observed, easy = json.loads(finished.out)
    assert (observed["mean_wait_s"], observed["mean_wait_since_eligible_s"]) == (40_190, 2400)
    assert (easy["mean_wait_s"], easy["mean_wait_since_eligible_s"]) == (35_990, 0)
    assert "dependencies" not in finished.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("submit", "eligible", "start", "held"),
    [
        ("08:00:00", "08:00:00", "08:10:00", 0),
        ("08:00:00", "08:04:00", "08:10:00", 240),
        ("08:00:00", "08:10:00", "08:10:00", 600),
        ("08:00:00", "07:50:00", "08:10:00", 0),  # it never waited less than not at all
        ("08:00:00", "08:11:00", "08:10:00", None),  # a job is not eligible after its start
        ("08:00:00", "", "08:10:00", None),
    ],
)
def test_how_long_a_log_says_that_a_job_was_held(
    write_trace: Write, submit: str, eligible: str, start: str, held: float
) -> None:
    path = write_trace(HEADER, record(1, eligible, start, submit=submit), record(2, "08:30:00", "08:30:00"), name="log")
    frame = read_sacct(path).frame
    assert [None if isnan(value) else value for value in frame["held_s"].tolist()] == [held, 1800]
    assert frame["wait_s"].tolist() == [600, 1800]
    known = [600 - held, 0] if held is not None else [0]
    assert observed_schedule(read_sacct(path)).mean_wait_since_eligible_s == sum(known) / len(known)


def test_a_log_that_does_not_say_has_no_such_waits(write_trace: Write) -> None:
    fields = HEADER.split("|")
    place = fields.index("Eligible")
    lines = [HEADER, record(1, "08:00:00", "08:10:00")]
    path = write_trace(*("|".join(line.split("|")[:place] + line.split("|")[place + 1 :]) for line in lines), name="log")
    workload = read_sacct(path)
    assert not workload.has("held")
    assert observed_schedule(workload).mean_wait_since_eligible_s is None


def test_pbs_says_when_a_job_was_eligible(write_trace: Write) -> None:
    path = write_trace(
        "03/27/2015 00:06:27;E;25.b0;user=u4 ctime=1427422000 etime=1427422600 start=1427422975 end=1427423975 exec_host=b1/0",
        name="pbs",
    )
    assert read_pbs(path).frame[["wait_s", "held_s"]].to_numpy().tolist() == [[975, 600]]


def test_a_table_may_say_how_long_jobs_were_held() -> None:
    jobs = Workload.from_jobs([Job(id=1, nodes=1, submit_s=0, run_s=10)]).frame.assign(wait_s=100.0, held_s=70.0)
    workload = Workload.from_frame(jobs)
    assert observed_schedule(workload).median_wait_since_eligible_s == 30
    recorded = Scenario(workload=workload, machine=Machine(nodes=1), policy="fcfs").run().jobs
    assert recorded[["recorded_wait_s", "recorded_held_s"]].to_numpy().tolist() == [[100, 70]]


def test_swf_has_no_field_for_it(write_trace: Write, tmp_path: Path) -> None:
    (note,) = write_trace_of(chain(write_trace), tmp_path / "x.swf")
    assert "time before jobs were eligible" in note


def write_trace_of(log: Path, path: Path) -> list[str]:
    return write_trace(path, read_sacct(log))


def test_simulated_waits_since_eligible_are_waits_less_what_was_held() -> None:
    jobs = [Job(id=number, nodes=1, submit_s=0, run_s=100, user=1, after_ok=[1] if number == 3 else []) for number in (1, 2, 3)]
    site = Site(limits=[Limits(user="1", running_jobs=1)])
    for rules in (None, site):
        run = Scenario(workload=Workload.from_jobs(jobs), machine=Machine(nodes=1), policy="fcfs", site=rules).run()
        since = (run.jobs["wait_s"] - run.jobs["held_s"]).tolist()
        summary, groups = run.summary(), run.by_user()
        assert summary.mean_wait_since_eligible_s == pytest.approx(sum(since) / 3)
        assert summary.median_wait_since_eligible_s == sorted(since)[1]
        assert groups["mean_wait_since_eligible_s"].tolist() == [pytest.approx(sum(since) / 3)]
        assert summary.as_dict()["mean_wait_since_eligible_s"] == summary.mean_wait_since_eligible_s
        assert run.summary(warm_up_s=0).mean_wait_s >= (summary.mean_wait_since_eligible_s or 0)


def test_runs_in_which_nothing_holds_jobs_have_no_such_columns() -> None:
    run = Scenario(workload=Workload.from_jobs([Job(id=1, nodes=1, submit_s=0, run_s=9)]), machine=Machine(nodes=1)).run()
    assert not {*SINCE_ELIGIBLE} & run.summary().as_dict().keys()
    assert not [name for name in run.by_user() if "eligible" in name]


def test_whatif_shows_both_waits(command_line: Command, terminal: Command, write_trace: Write) -> None:
    path = chain(write_trace)
    options = ("whatif", "--trace", path, "--policy", "easy", "--by", "user")
    answer = json.loads(command_line(*options, "--json").out)
    (row,), (group,) = answer["rows"], answer["groups"]
    assert (answer["recorded_mean_wait_s"], answer["recorded_mean_wait_since_eligible_s"]) == (900, 450)
    assert (row["mean_wait_s"], row["mean_wait_since_eligible_s"]) == (300, 0)
    assert (group["recorded_mean_wait_since_eligible_s"], group["mean_wait_since_eligible_s"]) == (450, [0])
    shown = terminal(*options).out
    assert shown.count("since eligible") == 2  # of the groups, recorded and simulated
    assert "since elig." in shown  # of the rows
    plain = [line.split("\t") for line in command_line(*options).out.splitlines()]
    assert [row[plain[0].index("mean_wait_since_eligible_s")] for row in plain[1:3]] == ["450", "0"]
    run = json.loads(command_line("run", "--trace", path, "--policy", "easy", "--by", "user", "--json").out)[0]
    assert run["mean_wait_since_eligible_s"] == run["groups"][0]["mean_wait_since_eligible_s"] == 0


def test_waits_are_shown_once_where_nothing_was_held(terminal: Command, write_trace: Write) -> None:
    path = write_trace(HEADER, record(1, "08:00:00", "08:05:00"), record(2, "08:00:00", "08:25:00"), name="log")
    assert "eligible" not in terminal("whatif", "--trace", path, "--policy", "easy", "--by", "user").out


GAP = "observed and simulated mean waits differ by more than 10 %"


def test_the_note_on_the_gap_says_what_was_not_simulated(command_line: Command, write_trace: Write, tmp_path: Path) -> None:
    def gap(path: Path, *options: object) -> str:
        lines = command_line("whatif", "--trace", path, "--policy", "easy", *options).err.splitlines()
        (line,) = [line for line in lines if line.startswith(GAP)]
        return line.removeprefix(GAP)

    dependent, others = chain(write_trace), "reservations, downtime, priorities and limits per user"
    assert gap(dependent) == f": not simulated are {others} (--infer-site looks for some)"
    alone = write_trace(HEADER, record(1, "08:00:00", "08:05:00"), name="alone.sacct")
    assert gap(alone) == f": not simulated are {others.replace(' and ', ', ')} and dependencies (--infer-site looks for some)"
    (rules := tmp_path / "site.toml").write_text('order = "fair-share"\n[[limits]]\nuser = "kim"\nrunning_jobs = 9\n')
    assert gap(dependent, "--site", rules) == ": not simulated are reservations and downtime"
    outage = tmp_path / "outages.csv"
    outage.write_text("node,down_s,up_s\n0,900000,900001\n")
    options = ("--site", rules, "--reservation", "0,start_s=900000,end_s=900001")
    assert gap(dependent, *options) == ": not simulated is downtime"


def test_held_jobs_may_be_the_whole_gap(command_line: Command, write_trace: Write) -> None:
    path = write_trace(
        HEADER, record(1, "08:55:00", "08:55:00"), record(2, "09:10:00", "09:10:00", submit="09:10:00"), name="log"
    )
    said = command_line("whatif", "--trace", path, "--policy", "easy").err
    assert f"{GAP}, those since eligible do not: the jobs were held (dependencies, holds, begin times)\n" in said


@pytest.mark.parametrize(("nodes", "told"), [(1, True), (2, False), (3, False)])
def test_a_smaller_machine_than_the_log_used_does_not_compare(
    command_line: Command, write_trace: Write, nodes: int, told: bool
) -> None:
    said = command_line("whatif", "--trace", chain(write_trace), "--policy", "easy", "--nodes", nodes).err
    line = f"observed: the recorded row is of 2 nodes, the simulated ones of {nodes}: do not compare them\n"
    assert (line in said) == told


@pytest.mark.parametrize(("nodes", "told"), [(3, True), (4, False), (5, True)])
def test_another_machine_than_that_of_the_header_does_not_compare(
    command_line: Command, write_trace: Write, nodes: int, told: bool
) -> None:
    path = write_trace("; MaxProcs: 4", "1 0 5 60 2 -1 -1 2 60 -1 1 1 1 -1 1 -1 -1 -1", name="log.swf")
    said = command_line("whatif", "--trace", path, "--policy", "easy", "--nodes", nodes).err
    assert (f"of 4 nodes, the simulated ones of {nodes}: do not compare them\n" in said) == told
    assert "do not compare" not in command_line("whatif", "--trace", path, "--policy", "easy").err


def test_whatif_says_which_costs_nobody_pays(command_line: Command, write_trace: Write) -> None:
    options = ("whatif", "--trace", chain(write_trace), "--restart", 60, "--policy", "gs")
    assert "note: restarts of 60 s: no effect under gs; leave it out" in command_line(*options).err
    assert "restarts of" not in command_line(*options, "--policy", SUSPENDING[1]).err


@pytest.mark.parametrize(
    ("malleable", "resize_s", "pays"), [(False, None, False), (True, None, True), (True, 5.0, False), (False, 5.0, False)]
)
def test_policies_that_resize_pay_checkpoints_for_resizes_alone(malleable: bool, resize_s: float | None, pays: bool) -> None:
    from clustermodel import Checkpointing

    sizes: dict[str, Any] = {"malleable": True, "min_nodes": 1, "max_nodes": 4} if malleable else {}
    jobs = [Job(id=number, nodes=2, submit_s=10 * number, run_s=100, **sizes) for number in (1, 2, 3)]
    machine = Machine(nodes=4, resize_s=resize_s, checkpointing=Checkpointing(checkpoint_s=7))
    run = Scenario(workload=Workload.from_jobs(jobs), machine=machine, policy="equipartition").run()
    assert any("checkpoints of 7 s" in note.fact for note in run_notes([run])) != pays


def test_whatif_says_why_jobs_are_rejected(command_line: Command, write_trace: Write) -> None:
    options = ("whatif", "--trace", chain(write_trace), "--policy", "easy")
    large = "simulated: 2 jobs are rejected: larger than the machine of 1 node, or of none"
    assert large in command_line(*options, "--nodes", 1).err
    memory = command_line(*options, "--node-memory", 1, "--default-memory", 2).err
    assert "simulated: 2 jobs are rejected because they need more memory than the 1 GiB of a node" in memory
    assert "larger than" not in memory


def test_rules_hold_whom_they_hold() -> None:
    jobs = [Job(id=1, nodes=1, submit_s=0, run_s=10), Job(id=2, nodes=1, submit_s=0, run_s=10, after=[1], user=3)]
    notes = {}
    for site in (Site(order="fair-share"), Site(limits=[Limits(user="3", running_jobs=1)])):
        run = Scenario(workload=Workload.from_jobs(jobs), machine=Machine(nodes=2), policy="easy", site=site).run()
        notes[site.order] = [note.fact for note in run_notes([run]) if "hold" in note.fact]
    assert [fact.partition(" hold ")[0] for facts in notes.values() for fact in facts] == []  # job 1 begins at once
    jobs[1] = Job(id=2, nodes=1, submit_s=0, run_s=10, after_any=[1], user=3)
    for site, who in (
        (Site(order="fair-share"), "dependencies"),
        (Site(limits=[Limits(user="3", running_jobs=1)]), "rules of the site and dependencies"),
    ):
        run = Scenario(workload=Workload.from_jobs(jobs), machine=Machine(nodes=2), policy="easy", site=site).run()
        (fact,) = [note.fact for note in run_notes([run]) if " hold " in note.fact]
        assert fact == f"{who} hold 1 job under easy, 5 s of the mean wait"


def test_equal_results_of_jobs_that_wait_for_others_only() -> None:
    jobs = [Job(id=1, nodes=1, submit_s=0, run_s=10), Job(id=2, nodes=1, submit_s=5, run_s=10, after_ok=[1])]
    runs = [
        Scenario(workload=Workload.from_jobs(jobs), machine=Machine(nodes=8), policy=name).run() for name in ("fcfs", "easy")
    ]
    assert [note.fact for note in run_notes(runs) if note.fact.startswith("all 2")] == [
        "all 2 policies give the same results, because jobs wait only as long as rules or jobs that they depend on hold them"
    ]


def test_tasks_of_an_array_and_attempts_repair_nothing(write_trace: Write) -> None:
    reason = "job number used by an earlier job, new number given"
    tasks = [record(f"5312850_{task}", "08:00:00", "08:10:00") for task in (12, 13, 14)]
    workload = read_sacct(write_trace(HEADER, *tasks, name="log"))
    assert workload.column("id").tolist() == [5_312_850, 5_312_851, 5_312_852]
    assert reason not in workload.provenance.repaired
    again = [record(7, "08:00:00", "08:10:00").replace("COMPLETED", "NODE_FAIL"), record(7, "08:30:00", "08:30:00")]
    assert reason not in read_sacct(write_trace(HEADER, *again, name="again")).provenance.repaired
    other = record("5312850", "08:00:00", "09:00:00").replace("kim", "lee")
    recycled = read_sacct(write_trace(HEADER, *tasks, other, name="recycled"))
    assert recycled.provenance.repaired[reason] == 1


def test_the_advice_to_compile_is_about_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clustermodel.sim.compiled.is_compiled", lambda: False)
    assert advice(LONG_S) is None
    assert (advice(LONG_S + 1) or "").startswith(f"{LONG_S + 1} s of simulation in pure Python; ")


def test_reading_and_writing_are_no_simulation(
    command_line: Command, write_trace: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[float] = []
    monkeypatch.setattr("clustermodel.cli.run_command.advice", told.append)
    clock = iter(range(0, 10**6, 100))  # a second between two looks at a clock is a hundred here
    monkeypatch.setattr("clustermodel.cli.run_command.perf_counter", lambda: next(clock))
    monkeypatch.setattr("clustermodel.experiment.scenario.perf_counter", lambda: 0.0)
    command_line("run", "--trace", chain(write_trace), "--policy", "easy", "--jobs-csv", tmp_path)
    assert told == [0.0]
