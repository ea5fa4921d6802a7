"""What ``whatif`` says about rules of a site and figures, on a log of three jobs."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from clustermodel import Scenario, Site
from tests.conftest import Finished

Command, Write = Callable[..., Finished], Callable[..., Path]
HEADER = "JobID|User|Partition|Submit|Start|End|ElapsedRaw|State|AllocNodes|AllocCPUS|TimelimitRaw"
JOBS = (("ann", "a", 2, "n[1-2]"), ("ann", "a", 2, "n[3-4]"), ("bob", "b", 4, "n[1-4]"))
RULES = '[[limits]]\nuser = "Ann"\nrunning_jobs = 1\n[[partitions]]\nname = "a"\nnodes = "0-3"\n'


@pytest.fixture
def log(write_trace: Write) -> Path:
    """Return a log of three jobs of ten minutes, one of partition b, which name their nodes."""
    return write_trace(f"{HEADER}|NodeList", *lines(named=True), name="jobs.sacct")


def lines(*, named: bool) -> list[str]:
    """Return the lines of the log, with the names of nodes or without."""
    times = ("00|10:00:00|10:10:00", "01|10:01:00|10:11:00", "02|10:11:00|10:21:00")
    return [
        f"{number}|{user}|{partition}|2025-03-03T10:{'|2025-03-03T'.join(time.replace('|', ':00|', 1).split('|'))}"
        f"|600|COMPLETED|{nodes}|{8 * nodes}|10{f'|{node_list}' * named}"
        for number, ((user, partition, nodes, node_list), time) in enumerate(zip(JOBS, times, strict=True), start=1)
    ]


def test_whatif_says_of_a_site_what_run_says(
    command_line: Command, terminal: Command, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (site := Path("site.toml")).write_text(RULES)
    options = ("--trace", log, "--policy", "easy", "--policy", "fcfs", "--site", site)
    said = [line for line in command_line("run", *options).err.splitlines() if line.endswith(" (--site)")]
    assert len(said) == 2
    finished = command_line("whatif", *options, "--by", "partition")
    told = [line.replace(f"{site}: ", "") for line in finished.err.splitlines() if line.startswith("note: ")]
    assert told == said
    assert "1 job is rejected: no partition b is there" in told[0]
    assert "no job has user Ann (did you mean 'ann'?)" in told[1]
    assert finished.err.count(f"{site}: its rows compare 2 of 3 jobs; the others are rejected\n") == 1
    assert "larger than" not in finished.err
    shown = terminal("whatif", *options[:4], "--site", site, "--by", "partition").out
    assert "nan" not in shown
    assert shown.splitlines()[-2].split() == ["b", "1", "540", "540", "-", "0.0"]


def test_several_sites_are_compared_each_in_rows_of_its_own(command_line: Command, log: Path, tmp_path: Path) -> None:
    sites = [tmp_path / "present.toml", tmp_path / "drained.toml"]
    sites[0].write_text('[[limits]]\nuser = "ann"\nrunning_jobs = 1\n')
    sites[1].write_text("[[reservations]]\nstart_s = 0\nend_s = 3600\n")
    options = ("--trace", log, "--policy", "easy", "--json", *(part for site in sites for part in ("--site", site)))
    rows = json.loads(command_line("whatif", *options).out)["rows"]
    assert [row["site"] for row in rows] == ["none", *map(str, sites)]
    # With the limit job 2 runs after job 3; with the reservation all jobs wait for an hour.
    assert [row["mean_wait_s"] for row in rows] == [180.0, 540.0, 3740.0]


@pytest.mark.parametrize(("options", "row"), [((), "easy"), (("--order", "fair-share"), "easy, fair-share")])
def test_the_figure_is_of_the_first_policy_with_the_rules_if_there_are_any(
    command_line: Command, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], row: str
) -> None:
    drawn: list[Scenario] = []
    monkeypatch.setattr("clustermodel.figures.run._recorded_figure", lambda run, *_: drawn.append(run.scenario))
    monkeypatch.setattr("clustermodel.figures.style.save", lambda *_: None)
    picture = tmp_path / "held.png"
    finished = command_line("whatif", "--trace", log, "--policy", "easy", "--policy", "fcfs", "--figure", picture, *options)
    assert f"figure: {picture} ({row})\n" in finished.err
    assert [(scenario.policy, scenario.site is not None) for scenario in drawn] == [("easy", bool(options))]


@pytest.mark.parametrize(
    ("named", "options", "message"),
    [
        (
            True,
            ("--unit", "cores"),
            "its jobs are counted in cores, which logs do not name; count them in nodes (--unit nodes)",
        ),
        (False, ("--unit", "cores"), "it does not say which nodes its jobs held"),
        (False, ("--unit", "nodes"), "it does not say which nodes its jobs held"),
        (True, ("--nodes", 1), "recorded: no job ran; there is nothing to draw"),
    ],
)
def test_a_figure_that_cannot_be_drawn_does_not_cost_the_answer(
    command_line: Command, write_trace: Write, tmp_path: Path, named: bool, options: tuple[object, ...], message: str
) -> None:
    path = write_trace(f"{HEADER}{'|NodeList' * named}", *lines(named=named), name="jobs.sacct")
    picture = tmp_path / "held.png"
    finished = command_line("whatif", "--trace", path, "--policy", "easy", "--figure", picture, *options)
    assert (finished.code, picture.exists()) == (2, False)
    assert [line.split("\t")[0] for line in finished.out.splitlines()] == ["policy", "observed", "easy"]
    assert finished.err.splitlines()[-1].startswith("clustermodel: error: --figure: recorded")
    assert message in finished.err.splitlines()[-1]


def test_the_figure_is_written_though_nobody_reads_the_answer(
    command_line: Command, write_trace: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("clustermodel.cli.whatif_command.print_table", closed)
    path, picture = write_trace(f"{HEADER}|NodeList", *lines(named=True), name="jobs.sacct"), tmp_path / "held.png"
    finished = command_line("whatif", "--trace", path, "--policy", "easy", "--figure", picture)
    assert (finished.code, picture.exists()) == (1, True)


def test_a_log_without_rules_has_inferred_rows_of_the_same_runs(
    command_line: Command, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[Any] = []
    simulate = Scenario.run
    monkeypatch.setattr(Scenario, "run", lambda self, **options: runs.append(self) or simulate(self, **options))
    site = tmp_path / "site.toml"
    options = ("--trace", log, "--policy", "easy", "--policy", "fcfs", "--infer-site", "--write-site", site, "--json")
    finished = command_line("whatif", *options, "--by", "user")
    answer = json.loads(finished.out)
    assert [(row.pop("policy"), row.pop("site")) for row in answer["rows"]] == [
        (policy, site) for policy in ("easy", "fcfs") for site in ("none", "inferred")
    ]
    assert answer["rows"][0] == answer["rows"][1]
    assert [len(group["mean_wait_s"]) for group in answer["groups"]] == [4, 4]
    assert len(runs) == 2
    assert "site: the log shows no limits" in finished.err
    assert site.read_text() == "# The log shows no limits, and no priorities of partitions, QOS or queues.\n"
    assert Site.from_toml(site) == Site()
    runs.clear()
    refused = command_line("whatif", "--trace", log, "--write-site", tmp_path / "no" / "site.toml")
    assert refused.err == f"clustermodel: error: --write-site: {tmp_path}/no: is not a directory that can be written to\n"
    assert (refused.code, runs) == (1, [])


def test_jobs_without_queues_are_one_group_of_run_and_whatif(command_line: Command, log: Path) -> None:
    options = ("--trace", log, "--policy", "easy", "--by", "queue", "--json")
    (row,) = json.loads(command_line("run", *options).out)
    groups = json.loads(command_line("whatif", *options).out)["groups"]
    assert [(each["who"], each["jobs"]) for each in row["groups"]] == [("(none)", 3)]
    assert [(each["who"], each["jobs"]) for each in groups] == [("(none)", 3)]


# Machines, loads, rules and policies that are compared, and the answers in words.


@pytest.fixture
def fortnight(write_trace: Write) -> Path:
    """Return a log of three weeks, twelve jobs a day of two hours each on four nodes; each waited for half an hour."""
    records = []
    for job in range(12 * 22):
        submit = datetime(2025, 3, 3, 8, tzinfo=UTC) + timedelta(days=job // 12, hours=job % 12)
        start, nodes = submit + timedelta(minutes=30), (3, 2, 4, 1)[job % 4]
        times = "|".join(f"{moment:%Y-%m-%dT%H:%M:%S}" for moment in (submit, start, start + timedelta(hours=2)))
        records.append(f"{job + 1}|{'ann' if job % 3 else 'bob'}|a|{times}|7200|COMPLETED|{nodes}|{nodes}|240")
    return write_trace(HEADER, *records, name="jobs.sacct")


def asked(command_line: Command, log: Path, *options: object) -> dict[str, Any]:
    finished = command_line("whatif", "--trace", log, "--policy", "easy", "--json", *options)
    assert finished.code == 0, finished.err
    return dict(json.loads(finished.out))


def test_machines_are_compared_in_one_call_with_an_answer(command_line: Command, fortnight: Path) -> None:
    whole = asked(command_line, fortnight, "--nodes", "4,6,+100%")
    assert [(row["nodes"], row["site"], row["policy"]) for row in whole["rows"]] == [(n, "none", "easy") for n in (4, 6, 8)]
    alone = [asked(command_line, fortnight, "--nodes", n, "--by", "user")["rows"][0] for n in (4, 6, 8)]
    assert [row["mean_wait_s"] for row in whole["rows"]] == [row["mean_wait_s"] for row in alone]
    first, second = whole["answers"]
    assert (first["question"], second["question"]) == (
        "What do 6 nodes change, instead of 4?", "What do 8 nodes change, instead of 4?",
    )  # fmt: skip
    waits = [row["mean_wait_s"] for row in whole["rows"]]
    assert (first["from"], first["to"]) == pytest.approx((waits[0], waits[1]))
    assert first["estimate"] == pytest.approx(waits[1] - waits[0])
    assert first["low"] <= first["estimate"] <= first["high"]
    assert first["sentence"].startswith("With 6 nodes the mean wait falls from ")


def test_nodes_that_a_site_gives_as_shares_grow_with_the_machine(
    command_line: Command, fortnight: Path, tmp_path: Path
) -> None:
    site, fixed = tmp_path / "site.toml", tmp_path / "fixed.toml"
    site.write_text('[[partitions]]\nname = "a"\nnodes = "all"\n[[reservations]]\nnodes = "75%-100%"\nstart_s = 0\nend_s = 1\n')
    fixed.write_text('[[partitions]]\nname = "a"\nnodes = "0-3"\n')
    whole = asked(command_line, fortnight, "--nodes", "4,8", "--site", site, "--site", fixed)
    found = {(row["nodes"], row["site"]): row["mean_wait_s"] for row in whole["rows"]}
    assert found[8, str(site)] < found[4, str(site)]
    assert found[8, str(fixed)] == found[4, str(fixed)]
    questions = [each["question"] for each in whole["answers"]]
    assert questions == ["What do 8 nodes change, instead of 4?", f"What does {fixed} change, instead of {site}?"]
    assert whole["answers"][0]["sentence"].startswith(
        "With 8 nodes nothing changes for any job of the log"
    )  # under the last rules


def test_loads_and_resamples(command_line: Command, fortnight: Path) -> None:
    whole = asked(command_line, fortnight, "--nodes", 4, "--load", "1.5", "--resample", "weeks", "--replications", 3)
    assert [row["load"] for row in whole["rows"]] == [1.0, 1.5]
    [answer] = whole["answers"]
    assert answer["question"] == "What does 1.5 times the load change?"
    assert answer["from"] < answer["to"]
    assert not answer["certain"]
    assert answer["sentence"].endswith("The log has 2 weeks: others could be unlike them.")


def test_the_last_lines_are_the_answers(terminal: Command, fortnight: Path) -> None:
    finished = terminal("whatif", "--trace", fortnight, "--nodes", "4,6", "--policy", "easy", "--policy", "fcfs")
    lines = finished.err.splitlines() or finished.out.splitlines()
    text = " ".join(lines)
    assert "With 6 nodes under easy the mean wait falls from" in text
    assert "With fcfs instead of easy" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--nodes", "4,x"), "'x' is not a number of nodes from 1 on, as 64, or so many more, as +20%"),
        (("--nodes", "0"), "'0' is not a number of nodes"),
        (("--nodes", "4,+1%"), "--nodes: +1% is not allowed; it is less than a node of 4"),
        (("--load", "0"), "'0' is not LOAD,LOAD,..., multiples of the recorded load from 0.01 to 100"),
        (("--resample", "years"), "'years' is not 'weeks', 'users' or a number of seconds"),
    ],
)
def test_wrong_sizes_and_loads_are_a_line(
    command_line: Command, fortnight: Path, options: tuple[str, ...], message: str
) -> None:
    finished = command_line("whatif", "--trace", fortnight, *options)
    assert finished.code == 2
    assert message in finished.err.splitlines()[-1]
