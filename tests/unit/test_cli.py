"""The command line: what it prints and writes, and one line with the right exit code for every error."""

import csv
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import matplotlib.image
import pytest

from clustermodel import Scenario, policy_names
from clustermodel.experiment.result import Result
from clustermodel.policies.interface import dependencies_of
from clustermodel.policies.registry import make_policy
from tests.conftest import Finished

Command = Callable[..., Finished]

JSON_KEYS = {
    "policy", "jobs", "mean_wait_s", "mean_bounded_slowdown", "utilization", "kappa", "backfilled", "blocked", "delayed",
    "rejected",
}  # fmt: skip
CSV_HEADER = "job,submit_s,start_s,end_s,nodes,run_s,estimate_s,user,status"
SHORT = ("--window", "0:864000")  # the first ten days of the synthetic year


def job_line(number: int, submit: int, run: float, nodes: int, estimate: int = -1, user: int = 7) -> str:
    return f"{number} {submit} -1 {run} {nodes} -1 -1 -1 {estimate} -1 1 {user} 1 -1 -1 -1 -1 -1"


@pytest.fixture
def trace(write_trace: Callable[..., Path]) -> Path:
    """Five jobs on four nodes.

    FCFS: 1 from 0 to 20 on two nodes; 2 from 20 to 25 on four; 3 from 25 to 33 on two; 4 from 25 to 41.5, killed at its
    estimate, on one; 5 is too wide.  EASY and conservative: 3 is backfilled, from 2 to 10.
    """
    return write_trace(
        "; Computer: a small machine",
        "; MaxProcs: 4",
        job_line(1, 0, 20, 2, 20),
        job_line(2, 0, 5, 4, 5),
        job_line(3, 2, 8, 2),
        job_line(4, 4, 30.25, 1, 16, user=8),
        job_line(5, 4, 1, 9, 1),
        job_line(6, 5, 0, 1, 1),
    )


@pytest.fixture
def complaint(command_line: Command) -> Callable[..., str]:
    """Run a command that must fail with ``code``, saying so in the only line on standard error, and return what it says."""

    def run(*arguments: object, code: int = 2) -> str:
        finished = command_line(*arguments)
        assert finished.code == code
        assert finished.err.endswith("\n")
        assert len(finished.err.splitlines()) == 1
        assert finished.err.startswith("clustermodel: error: ")
        assert "Traceback" not in finished.err + finished.out
        return finished.err.removeprefix("clustermodel: error: ").rstrip("\n")

    return run


COMMANDS = ["", "run", "whatif", "sweep", "validate", "results", "report", "policies", "trace", "trace info", "trace import",
            "trace fit"]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_80_columns(command_line: Command, command: str) -> None:
    finished = command_line(*command.split(), "--help")
    assert (finished.code, finished.err) == (0, "")
    lines = finished.out.splitlines()
    assert len(lines) > 3
    assert [line for line in lines if len(line) > 80] == []


def test_help_groups_the_options_of_a_run(command_line: Command) -> None:
    lines = command_line("run", "--help-all").out.splitlines()
    titles = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles == [
        f"{title}:"
        for title in (
            "Jobs",
            "Runs",
            "Output",
            "Machine",
            "Time sharing",
            "Checkpoints",
            "Energy",
            "Failures",
            "Logs",
            "Other options",
        )
    ]


@pytest.mark.parametrize("command", ["run", "whatif", "crossover"])
def test_help_shows_the_usual_options_and_how_to_see_the_others(command_line: Command, command: str) -> None:
    usual, every = (
        re.findall(r"^  (?:-h, )?(--[\w-]+)", command_line(command, option).out, re.MULTILINE)
        for option in ("--help", "--help-all")
    )
    assert set(usual) < set(every)
    assert 10 < len(usual) < 32
    assert len(every) > 60
    assert usual[-2:] == ["--help", "--help-all"]


def test_set_changes_any_field_of_the_scenario(command_line: Command) -> None:
    def row(*arguments: str) -> dict[str, float]:
        return json.loads(command_line("run", "--jobs", 60, "--policy", "gs", "--json", *arguments).out)[0]

    same = row("--quantum", "60", "--mpl", "2", "--context-switch", "0.1", "--seed", "2")
    fields = ("quantum_s=60", "mpl=2")
    settings = [f"machine.time_slicing.{field}" for field in fields] + ["machine.context_switch.seconds=6", "machine.nodes=128"]
    assert row("--seed", "2", *(word for text in settings for word in ("--set", text))) == same != row()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("machine.time_slicing.mpl=0", "machine.time_slicing.mpl: 0 is not allowed; it must be an integer >= 1"),
        (
            "machine.time_slicing.quantm=1",
            "machine.time_slicing.quantm: unknown key (did you mean 'quantum_s'?); known are quantum_s, mpl, at_events",
        ),
        ("workload.jobs=1", "workload: not allowed; options of the trace or the model say what the jobs are"),
        ("policy.depth=2", "policy.depth: not allowed; policy is 'fcfs', which has no fields"),
        ("seed", "'seed' is not allowed; it must be NAME=VALUE"),
    ],
)
def test_set_names_the_field_and_what_is_allowed(complaint: Callable[..., str], setting: str, message: str) -> None:
    assert complaint("run", "--jobs", 9, "--set", setting) == f"--set: {message}"


def test_the_table_has_a_row_per_policy_and_goes_to_standard_output(command_line: Command, trace: Path) -> None:
    finished = command_line("run", "--trace", trace)
    assert finished.code == 0
    rows = [line.split("\t") for line in finished.out.splitlines()]
    assert [row[0] for row in rows] == ["policy", "fcfs", "easy", "conservative"]
    easy = dict(zip(rows[0], map(float, ["nan", *rows[2][1:]]), strict=True))
    # EASY: waits 0, 20, 0, 21 and responses 20, 25, 8, 37 s; max(response, 10) / max(run, 10) = 1, 2.5, 1, 37/16, weighted
    # by 2, 4, 2, 1 nodes; work 40 + 20 + 16 + 16 = 92 of 4 x 41; two nodes idle for 2 + 10 s while 2 waits: 24 of 164
    expected = {
        "jobs": 4, "mean_wait_s": 10.25, "median_wait_s": 10, "mean_response_s": 22.5, "mean_bounded_slowdown": 1.703125,
        "mean_weighted_bounded_slowdown": (2 + 10 + 2 + 37 / 16) / 9, "utilization": 92 / 164, "idle_share": 72 / 164,
        "kappa": 24 / 164, "lost_share": 0, "backfilled": 1, "blocked": 2, "delayed": 0, "killed": 1, "rejected": 1,
    }  # fmt: skip
    assert {name: easy[name] for name in expected} == pytest.approx(expected)
    assert "jobs: 1 job dropped: run time zero\n" in finished.err
    assert "jobs: 1 job repaired: requested_time missing, run_time used\n" in finished.err


def test_json_is_a_list_of_objects_and_nothing_else(command_line: Command, trace: Path) -> None:
    finished = command_line("run", "--trace", trace, "--json", "--policy", "fcfs", "--policy", "easy:reserve_depth=2")
    runs = json.loads(finished.out)
    assert [run["policy"] for run in runs] == ["fcfs", "easy:reserve_depth=2"]
    for run in runs:
        assert run.keys() >= JSON_KEYS
        assert (run["jobs"], run["rejected"], run["killed"], run["nodes"]) == (4, 1, 1, 4)
    # FCFS: waits 0, 20, 23, 21
    assert runs[0]["mean_wait_s"] == 64 / 4
    assert (runs[0]["backfilled"], runs[0]["blocked"], runs[0]["delayed"]) == (0, 2, 0)


def test_what_does_not_exist_is_null_in_json(command_line: Command, write_trace: Callable[..., Path]) -> None:
    path = write_trace(job_line(1, 0, 5, 9))
    finished = command_line("run", "--trace", path, "--nodes", 4, "--policy", "easy", "--json")
    assert json.loads(finished.out, parse_constant=pytest.fail)[0]["mean_wait_s"] is None
    # one job, or several at one instant, have no offered load; NaN is not JSON
    facts = command_line("trace", "info", path, "--nodes", 9, "--json").out
    assert json.loads(facts, parse_constant=pytest.fail)["offered_load"] is None


def test_options_reach_the_simulation(command_line: Command, trace: Path) -> None:
    def easy(*options: object) -> dict[str, object]:
        finished = command_line("run", "--trace", trace, "--policy", "easy", "--json", *options)
        assert finished.code == 0
        return json.loads(finished.out)[0]

    assert easy("--nodes", 9)["rejected"] == 0
    assert easy("--no-kill-at-estimate")["killed"] == 0
    assert easy("--estimates", "run-time")["killed"] == 0
    assert easy("--window", "0:4")["jobs"] == 3
    assert easy("--window", "3:")["jobs"] == 1
    assert easy("--size", "2:")["jobs"] == 3
    assert easy("--size", ":2")["rejected"] == 0
    assert easy("--user", 8)["jobs"] == 1
    assert easy("--user", 8, "--user", 7)["jobs"] == 4
    assert easy("--scale-size", 0.4)["rejected"] == 0  # 9 x 0.4 = 3.6
    assert easy("--scale-run-time", 2)["mean_wait_s"] > easy()["mean_wait_s"]
    assert easy("--scale-interarrival", 100)["mean_wait_s"] < easy()["mean_wait_s"]


def test_jobs_csv_has_the_contracted_header_and_a_row_per_job(command_line: Command, trace: Path, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "out"
    command_line("run", "--trace", trace, "--policy", "fcfs", "--policy", "easy:backfill_order=shortest", "--jobs-csv", folder)
    assert sorted(path.name for path in folder.iterdir()) == ["easy:backfill_order=shortest.csv", "fcfs.csv"]
    assert (folder / "fcfs.csv").read_text() == (
        f"{CSV_HEADER}\n"
        "1,0,0,20,2,20,20,7,completed\n"
        "2,0,20,25,4,5,5,7,completed\n"
        "3,2,25,33,2,8,8,7,completed\n"
        "4,4,25,41,1,16,16,8,killed\n"
        "5,4,,,9,,1,7,rejected\n"
    )


def test_times_that_are_not_whole_have_six_decimals_in_the_csv(command_line: Command, trace: Path, tmp_path: Path) -> None:
    command_line("run", "--trace", trace, "--policy", "fcfs", "--no-kill-at-estimate", "--jobs-csv", tmp_path)
    rows = list(csv.DictReader((tmp_path / "fcfs.csv").read_text().splitlines()))
    assert [row["run_s"] for row in rows] == ["20.000000", "5.000000", "8.000000", "30.250000", ""]
    assert [row["start_s"] for row in rows] == ["0", "20", "25", "25", ""]


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf", "PNG"])
@pytest.mark.long
def test_the_figure_is_an_image_of_its_suffix(command_line: Command, trace: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out.{suffix}"
    finished = command_line("run", "--trace", trace, "--figure", path)
    assert finished.code == 0
    if suffix.lower() == "png":
        height, width, _ = matplotlib.image.imread(path).shape
        assert height > 300
        assert width > 300
    else:
        assert path.read_bytes().startswith({"svg": b"<?xml", "pdf": b"%PDF"}[suffix])
    assert f"figure: {path}\n" in finished.err


def test_the_same_seed_gives_the_same_bytes_and_another_one_does_not(command_line: Command, tmp_path: Path) -> None:
    def run(seed: int, folder: str) -> tuple[str, list[bytes]]:
        finished = command_line("run", *SHORT, "--seed", seed, "--json", "--jobs-csv", tmp_path / folder)
        return finished.out, [path.read_bytes() for path in sorted((tmp_path / folder).iterdir())]

    first, again, other = run(7, "a"), run(7, "b"), run(8, "c")
    assert first == again
    assert len(first[1]) == 3
    assert first[0] != other[0]
    assert first[1] != other[1]


def test_trace_info_as_text(command_line: Command, trace: Path) -> None:
    finished = command_line("trace", "info", trace)
    assert (finished.code, finished.err) == (0, "")
    lines = finished.out.splitlines()
    assert "Computer: a small machine" in lines
    assert "5 jobs of 2 users, submitted over 0.0 days" in lines
    # 2 x 20 + 4 x 5 + 2 x 8 + 1 x 16 + 9 x 1 = 101 node-s over 4 nodes x 4 s; 30.25 instead of 16 s without killing
    assert "offered load on 4 nodes: 6.3125 (7.2031 if nothing is killed at its estimate)" in lines
    assert "jobs wider than the machine: 1" in lines
    assert "jobs that run past their estimate: 1" in lines
    assert "1 job dropped: run time zero" in lines
    assert "1 job repaired: requested_time missing, run_time used" in lines
    at = lines.index("percentiles over jobs")  # a pipe gets tabs
    assert lines[at + 1 : at + 3] == ["quantity\tp0\tp25\tp50\tp75\tp90\tp99\tp100", "nodes\t1\t2\t2\t4\t7\t8.8\t9"]


def test_trace_info_as_json(command_line: Command, trace: Path) -> None:
    facts = json.loads(command_line("trace", "info", trace, "--json").out)
    assert (facts["jobs"], facts["users"], facts["span_s"], facts["machine_nodes"]) == (5, 2, 4, 4)
    assert facts["offered_load"] == 101 / 16
    assert facts["offered_load_without_killing"] == 115.25 / 16
    assert (facts["jobs_wider_than_machine"], facts["jobs_beyond_estimate"]) == (1, 1)
    assert facts["dropped"] == {"run time zero": 1}
    assert facts["repaired"] == {"requested_time missing, run_time used": 1}
    assert facts["header"] == {"Computer": "a small machine", "MaxProcs": "4"}
    # nodes 1, 2, 2, 4, 9; run times 1, 5, 8, 20, 30.25; percentile p lies at position p x 4 of the sorted values
    assert facts["nodes"] == pytest.approx({"p0": 1, "p25": 2, "p50": 2, "p75": 4, "p90": 7, "p99": 8.8, "p100": 9})
    assert facts["run_s"]["p50"] == 8
    assert facts["estimate_over_run"]["p0"] == 16 / 30.25


def test_trace_info_takes_the_machine_and_the_options_of_a_run(command_line: Command, trace: Path) -> None:
    facts = json.loads(command_line("trace", "info", trace, "--nodes", 8, "--size", "2:4", "--json").out)
    assert (facts["jobs"], facts["machine_nodes"]) == (3, 8)
    assert facts["dropped"]["outside the size range"] == 2
    trace.write_text(trace.read_text().replace("MaxProcs", "OtherProcs"))
    unknown = json.loads(command_line("trace", "info", trace, "--json").out)
    keys = ("machine_nodes", "offered_load", "offered_load_without_killing", "jobs_wider_than_machine")
    assert [unknown[key] for key in keys] == [None] * 4


def test_policies_lists_every_name_with_parameters_and_a_summary(command_line: Command) -> None:
    finished = command_line("policies")
    assert (finished.code, finished.err) == (0, "")
    lines = finished.out.splitlines()
    assert "easy:backfill_order=arrival,reserve_depth=1,predictor=estimate,correction=None,reservation=renewed" in lines
    assert lines[lines.index("fcfs") + 1] == "    First come, first served."
    assert set(policy_names()) <= {line.partition(":")[0] for line in lines}
    named, _, rules = finished.out.partition("rules that policies respect")
    assert rules.splitlines()[1].split() == ["policies", "order", "partitions", "reservations", "shapes"]
    assert any(line.startswith("fcfs, ") and line.split()[-4:] == ["yes"] * 4 for line in rules.splitlines())
    assert named.endswith("""
predictors, easy:predictor=NAME
    estimate, last, last-submitted, last-two, perfect, virtual:X
corrections, easy:correction=NAME
    second, estimate, tsafrir, double
queue orders, gs:queue_order=NAME
    arrival, shortest, narrowest, widest
orders of a site, easy:order=NAME
    fair-share, multifactor
readers of traces, --format NAME
    pbs, lsf, sge, sacct, muri, batsim, swf
""")


def test_policies_are_listed_in_groups_and_explained_one_by_one(command_line: Command) -> None:
    lines = command_line("policies").out.splitlines()
    groups = ["space sharing", "time sharing: gangs in time slices", "preemptive", "for malleable jobs"]
    assert [line for line in lines if line in groups] == groups
    for group, first in zip(groups, ("fcfs", "gs:mpl=None,queue_order=arrival", "pv-easy:", "equipartition:"), strict=True):
        assert lines[lines.index(group) + 1].startswith(first)
    in_groups = "\n".join(lines).partition("preemptive\n")[0]
    saving = [name for name in policy_names() if "checkpointing" in dependencies_of(make_policy(name)) and name[-2:] != "gs"]
    assert not [name for name in saving if f"\n{name}:" in in_groups]
    explained = command_line("policies", "easy").out
    assert explained.startswith(
        "easy  (space sharing)\n    EASY backfilling.\n    Parameters and defaults: backfill_order=arrival"
    )
    assert "\n      reserve_depth: how many blocked jobs are protected by a reservation; 1 is\n" in explained
    assert explained.endswith("dependencies: order, partitions,\n    reservations, shapes.\n")
    for name in policy_names():
        text = command_line("policies", name).out
        assert max(map(len, text.splitlines())) <= 80
        assert "`" not in text
    assert command_line("policies", "esay").err.startswith("clustermodel: error: policy: 'esay' is unknown (did you mean")


@pytest.mark.parametrize("arguments", [("run", "-h"), ("--version",)])
def test_help_and_version_are_no_errors(command_line: Command, arguments: tuple[str, ...]) -> None:
    finished = command_line(*arguments)
    assert (finished.code, finished.err) == (0, "")
    assert "clustermodel" in finished.out


SCRIPT = """
from clustermodel import Job, Machine, Scenario, Workload

jobs = Workload.from_jobs([Job(id=n, nodes=2, submit_s=n, run_s=10) for n in range(1, 5)], name="made by hand")
"""


def script(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "study.py"
    path.write_text(SCRIPT + text)
    return path


def test_a_script_that_defines_one_scenario(command_line: Command, tmp_path: Path) -> None:
    """The seed, of numpy, can be printed as JSON; the script is not run as a main program."""
    scenario = "Scenario(machine=Machine(nodes=4), workload=jobs, policy='fcfs', seed=numpy.int64(3), name='mine')"
    path = script(tmp_path, f"import numpy\nscenario = {scenario}\nif __name__ == '__main__':\n    1 / 0")
    finished = command_line("run", path, "--json", "--jobs-csv", tmp_path / "out")
    (run,) = json.loads(finished.out)
    assert (run["policy"], run["workload"], run["jobs"], run["nodes"], run["seed"]) == ("mine", "made by hand", 4, 4, 3)
    assert (tmp_path / "out" / "mine.csv").read_text().startswith(CSV_HEADER)


@pytest.mark.parametrize(
    "several", ["scenarios = [{} for n in (2, 4)]", "def scenarios():\n    yield from ({} for n in (2, 4))"]
)
def test_a_script_that_defines_several(command_line: Command, tmp_path: Path, several: str) -> None:
    path = script(tmp_path, several.format("Scenario(machine=Machine(nodes=n), workload=jobs, name=f'{n} nodes')"))
    runs = json.loads(command_line("run", path, "--json").out)
    # two nodes: the jobs of 10 s, submitted at 1 to 4, start at 1, 11, 21, 31; four nodes: at 1, 2, 11, 12
    assert [(run["policy"], run["mean_wait_s"]) for run in runs] == [("2 nodes", 54 / 4), ("4 nodes", 16 / 4)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jobs / 2", "{path}:5: TypeError: unsupported operand type(s) for /: 'Workload' and 'int'"),
        ("def f():\n    return 1 / 0\nf()", "{path}:6: ZeroDivisionError: division by zero"),
        ("import nothing_of_this_name", "{path}:5: ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("raise ValueError('two\\nlines')", "{path}:5: ValueError: two lines"),
        ("x = (", "{path}:5: '(' was never closed"),
        ("Machine(nodes=0)", "Machine.nodes: 0 is not allowed; it must be an integer >= 1"),
        ("scenario = Scenario(workload=jobs)", "Scenario.machine: none is given and made by hand does not name its size; "
         "give machine=Machine(nodes=...)"),
        ("", "{path}: defines neither `scenario` (a Scenario) nor `scenarios` (a list of them) at module level"),
        ("scenario = 3", "{path}: defines neither `scenario` (a Scenario) nor `scenarios` (a list of them) at module level"),
        ("scenarios = []", "{path}: defines neither `scenario` (a Scenario) nor `scenarios` (a list of them) at module level"),
        ("scenarios = ['easy']", "{path}: defines neither `scenario` (a Scenario) nor `scenarios` (a list of them) at module "
         "level"),
        ("def scenarios():\n    return 1 / 0", "{path}: scenarios: {path}:6: ZeroDivisionError: division by zero"),
        ("scenarios = [Scenario(machine=Machine(nodes=4), workload=jobs)] * 2", "policy: 'easy' is asked for twice; names must "
         "be unique"),
    ],
)  # fmt: skip
def test_a_script_that_is_no_good_is_refused_in_one_line(
    complaint: Callable[..., str], tmp_path: Path, text: str, message: str
) -> None:
    path = script(tmp_path, text)
    assert complaint("run", path) == message.format(path=path)


def test_a_script_that_is_not_there(complaint: Callable[..., str], tmp_path: Path) -> None:
    for path in (tmp_path / "no.py", "x" * 5000):
        assert complaint("run", path) == f"{path}: no such scenario script"
    assert complaint("run", tmp_path) == f"{tmp_path}: is a directory, not a scenario script"


@pytest.mark.parametrize(
    "options", [("--trace", "a.swf"), ("--model", "m"), ("--jobs", "9"), ("--nodes", "4"), ("--policy", "easy")]
)
def test_a_script_beside_options_that_it_brings_itself(
    complaint: Callable[..., str], tmp_path: Path, options: tuple[str, str]
) -> None:
    path = script(tmp_path, "scenario = Scenario(machine=Machine(nodes=4), workload=jobs)")
    assert complaint("run", path, *options) == f"{path}: {options[0]}: a script brings its own; only files take it"


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("esay", "policy: 'esay' is unknown (did you mean 'easy'?); 'clustermodel policies' lists all"),
        ("FCFS", "policy: 'FCFS' is unknown (did you mean 'fcfs'?); 'clustermodel policies' lists all"),
        ("sjf-2000", "policy: 'sjf-2000' is unknown; 'clustermodel policies' lists all"),
        ("easy:reserve_deph=2", "policy easy: parameter 'reserve_deph' is unknown (did you mean 'reserve_depth'?); "
         "parameters: backfill_order, reserve_depth"),
        ("easy:reserve_depth=0", "easy: reserve_depth: 0 is not allowed; it must be an integer >= 1"),
        ("easy:reserve_depth=1.5", "easy: reserve_depth: 1.5 is not a whole number"),
        ("easy:reserve_depth=two", "easy: reserve_depth: 'two' is not a whole number; it must be an integer >= 1"),
        ("easy:reserve_depth", "policy easy: 'reserve_depth' is not allowed; write reserve_depth=value"),
        ("easy:backfill_order=random", "easy: backfill_order: 'random' is not allowed; it must be one of arrival, shortest, "
         "or a callable"),
        ("fcfs:x=1", "policy fcfs: parameter 'x' is unknown; parameters: it has none"),
    ],
)  # fmt: skip
def test_a_policy_that_does_not_exist_or_has_wrong_parameters(
    complaint: Callable[..., str], monkeypatch: pytest.MonkeyPatch, policy: str, message: str, forgetful_registry: None
) -> None:
    monkeypatch.setattr(
        "clustermodel.logs.trace_file.read_trace", lambda *_, **__: pytest.fail("time was spent on reading the trace")
    )
    found = complaint("run", "--trace", "a.swf", "--policy", "fcfs", "--policy", policy)
    assert found.startswith(message)  # other tests may have registered more names


@pytest.mark.parametrize("nodes", ["0", "-1"])
def test_a_machine_without_nodes(complaint: Callable[..., str], trace: Path, nodes: str) -> None:
    message = f"Machine.nodes: {nodes} is not allowed; it must be an integer >= 1"
    assert complaint("run", "--nodes", nodes) == complaint("run", "--trace", trace, "--nodes", nodes) == message


def test_files_that_cannot_be_read(complaint: Callable[..., str], tmp_path: Path, write_trace: Callable[..., Path]) -> None:
    assert complaint("run", "--trace", "no.swf") == "no.swf: cannot be read: No such file or directory"
    assert complaint("run", "--trace", tmp_path) == f"{tmp_path}: cannot be read: Is a directory"
    path = write_trace(job_line(1, 0, 5, 1), "1 2 3")
    assert complaint("run", "--trace", path) == f"{path}:2: 3 fields; a data line has 18"
    assert complaint("run", "--trace", write_trace()) == f"{path}: no usable job: the file has no job lines"


def test_a_file_name_that_looks_like_markup_is_printed_as_it_is(terminal: Command, trace: Path) -> None:
    odd = trace.rename(trace.with_name("[bold]x.swf"))
    finished = terminal("run", "--trace", odd, "--policy", "easy")
    assert finished.code == 0
    assert finished.out.startswith("[bold]x on 4 nodes")
    assert "[bold]x: 1 job dropped" in finished.err


def test_a_trace_that_does_not_say_how_large_its_machine_is(
    complaint: Callable[..., str], write_trace: Callable[..., Path]
) -> None:
    path = write_trace(job_line(1, 0, 5, 1, 9))
    assert (
        complaint("run", "--trace", path)
        == f"--nodes: neither MaxProcs nor MaxNodes of {path} is the size of a machine; give one"
    )


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--window", "5", "--window: '5' is not LOW:HIGH, two numbers of which either may be left out"),
        ("--size", "1.5:2", "--size: '1.5:2' is not LOW:HIGH, two numbers of which either may be left out"),
        ("--window", "9:5", "JobFilter.window_s: (9.0, 5.0) is not allowed; it must be (low, high), low <= high"),
        ("--size", "9:2", "JobFilter.nodes: (9, 2) is not allowed; it must be (low, high), low <= high"),
        ("--scale-interarrival", "0", "LoadScale.interarrival: 0.0 is not allowed; it must be a finite number > 0"),
        ("--scale-size", "nan", "LoadScale.size: nan is not allowed; it must be a finite number > 0"),
        ("--scale-run-time", "inf", "LoadScale.run_time: inf is not allowed; it must be a finite number > 0"),
        ("--seed", "-1", "--seed: -1 is not allowed; it must be >= 0"),
        ("--seed", "x", "--seed: 'x' is not a whole number; it must be >= 0"),
        ("--jobs", "0", "--jobs: 0 is not allowed; it must be >= 1 and <= 1,000,000"),
    ],
)
def test_an_option_out_of_range_is_named(
    complaint: Callable[..., str], trace: Path, option: str, value: str, message: str
) -> None:
    assert complaint("run", "--trace", trace, option, value) == message


def test_unknown_options_and_commands(complaint: Callable[..., str]) -> None:
    assert complaint("run", "--polcy", "easy").startswith("No such option '--polcy'")
    assert complaint("rum").startswith("No such command 'rum'")
    assert complaint("run", "--trace") == "Option '--trace' requires an argument."


@pytest.mark.parametrize(
    ("option", "value"), [("--window", "0:inf"), ("--scale-run-time", "1e300"), ("--scale-interarrival", "1e300")]
)
def test_numbers_beyond_all_bounds_are_an_error_or_work_but_never_a_traceback(
    command_line: Command, trace: Path, option: str, value: str
) -> None:
    finished = command_line("run", "--trace", trace, "--policy", "fcfs", option, value)
    assert finished.code in (0, 2)
    assert (finished.code == 2) == ("clustermodel: error: " in finished.err)


# Names of files, and what a terminal must not see
@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (("a/b", "a_b"), "--jobs-csv: 'a/b' and 'a_b' would have one file, {out}/a_b.csv"),
        (("a_b", "c", "a/b"), "--jobs-csv: 'a_b' and 'a/b' would have one file, {out}/a_b.csv"),
        (
            ("é" * 126,),
            f"--jobs-csv: {'é' * 30}... (126 characters): the name of its file would have 256 bytes; at most 255 are allowed",
        ),
        (("a\\0b",), "Scenario.name: 'a\\x00b' is not allowed; it must be a line of text without control characters"),
    ],
)
def test_names_that_can_be_no_files_are_refused_before_any_run(
    command_line: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], complaint: str
) -> None:
    monkeypatch.setattr(Scenario, "run", lambda *_, **__: pytest.fail("a simulation was started"))
    listed = ", ".join(f"Scenario(machine=Machine(nodes=4), workload=jobs, name='{name}')" for name in names)
    path, out = script(tmp_path, f"scenarios = [{listed}]"), tmp_path / "out"
    finished = command_line("run", path, "--jobs-csv", out)
    assert finished.code == 2
    assert finished.err == f"clustermodel: error: {complaint.format(out=out)}\n"
    assert not out.exists()


def test_any_other_name_gets_a_file_in_the_folder(command_line: Command, tmp_path: Path) -> None:
    names = ["..", ".", "...", "../up", "/etc/x", " ", "x" * 251, "[red]", "-rf"]
    listed = ", ".join(f"Scenario(machine=Machine(nodes=4), workload=jobs, name={name!r})" for name in names)
    path, out = script(tmp_path, f"scenarios = [{listed}]"), tmp_path / "out"
    assert command_line("run", path, "--jobs-csv", out).code == 0
    assert {one.name for one in out.iterdir()} == {name.replace("/", "_") + ".csv" for name in names}
    assert all(one.read_text().startswith(CSV_HEADER) for one in out.iterdir())
    assert {one.name for one in tmp_path.iterdir()} == {path.name, "out"}


def test_control_characters_of_a_trace_and_its_name_are_made_visible(command_line: Command, tmp_path: Path) -> None:
    path = tmp_path / "evil\x1b]0;x\x07.swf"
    header = ("; Computer: \x1b[31mred\x9b", "; Computer: two", "; MaxProcs: 8")
    lines = [job_line(number, 60 * number, 5, 2).replace("-1 -1", "? -1", 1) for number in range(1, 9)]
    path.write_text("\n".join((*header, *lines)) + "\n")
    for arguments in (("trace", "info"), ("trace", "info", "--json"), ("trace", "fit"), ("run", "--policy", "easy", "--trace")):
        finished = command_line(*arguments, path)
        assert all(letter.isprintable() for letter in (finished.out + finished.err).replace("\n", "").replace("\t", ""))
    out = command_line("trace", "info", path).out
    assert out.startswith("Computer: \\x1b[31mred\\x9b\ntwo\nMaxProcs: 8\n")
    assert r"evil\x1b]0;x\x07: 8 jobs repaired: " in command_line("run", "--trace", path).err
    path.write_text("nonsense\n")
    finished = command_line("trace", "info", path)
    assert finished.err == f"clustermodel: error: {tmp_path}/evil\\x1b]0;x\\x07.swf:1: 1 field; a data line has 18\n"


def test_outputs_that_cannot_be_written_are_refused_before_any_time_is_spent(
    command_line: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, write_trace: Callable[..., Path]
) -> None:
    monkeypatch.setattr(Scenario, "run", lambda *_, **__: pytest.fail("a simulation was started"))
    path = write_trace("; MaxProcs: 4", job_line(1, 0, 5, 1, 9))
    for option, target, message in (
        ("--jobs-csv", path, f"--jobs-csv: {path}: cannot be made: File exists"),
        ("--jobs-csv", path / "out", f"--jobs-csv: {path}/out: cannot be made: Not a directory"),
        ("--figure", path / "a.png", f"--figure: {path}: is not a directory that can be written to"),
        ("--figure", tmp_path / "no" / "a.png", f"--figure: {tmp_path}/no: is not a directory that can be written to"),
        ("--figure", tmp_path / "a.gif", f"--figure: {tmp_path}/a.gif: format '.gif' is unknown; use .png, .svg or .pdf"),
        ("--figure", tmp_path / "a", f"--figure: {tmp_path}/a: format '' is unknown; use .png, .svg or .pdf"),
    ):
        finished = command_line("run", "--trace", path, option, target)
        assert (finished.code, finished.out, finished.err) == (1, "", f"clustermodel: error: {message}\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_without_write_permission(command_line: Command, trace: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    for option, target in (("--jobs-csv", closed), ("--figure", closed / "a.png")):
        finished = command_line("run", "--trace", trace, option, target)
        assert finished.code == 1
        assert f"{option}: {closed}: is not a directory that can be written to" in finished.err


@pytest.mark.parametrize(
    ("option", "target", "taken", "finished_runs"),
    [("--figure", "a.png", "a.png", ["fcfs", "easy", "conservative"]), ("--jobs-csv", ".", "easy.csv", ["fcfs"])],
)
def test_an_output_that_fails_at_the_last_moment_leaves_the_runs_before_it(
    command_line: Command, trace: Path, tmp_path: Path, option: str, target: str, taken: str, finished_runs: list[str]
) -> None:
    (tmp_path / taken).mkdir()
    finished = command_line("run", "--trace", trace, "--json", option, tmp_path / target)
    assert finished.code == 1
    assert [run["policy"] for run in json.loads(finished.out)] == finished_runs
    assert finished.err.endswith(f"clustermodel: error: {tmp_path}/{taken}: cannot be written: Is a directory\n")


@pytest.fixture
def interrupted_easy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Press Ctrl-C whenever EASY is about to run."""
    run = Scenario.run

    def interrupt(self: Scenario, **options: object) -> Result:
        if self.policy == "easy":
            raise KeyboardInterrupt
        return run(self)

    monkeypatch.setattr(Scenario, "run", interrupt)


@pytest.mark.usefixtures("interrupted_easy")
def test_ctrl_c_reports_the_policies_that_had_finished_and_keeps_their_files(
    command_line: Command, trace: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    finished = command_line("run", "--trace", trace, "--json", "--jobs-csv", out, "--figure", tmp_path / "a.png")
    assert finished.code == 130
    assert [run["policy"] for run in json.loads(finished.out)] == ["fcfs"]
    assert [path.name for path in out.iterdir()] == ["fcfs.csv"]
    assert matplotlib.image.imread(tmp_path / "a.png").size > 0
    assert finished.err.endswith("clustermodel: interrupted during easy; 1 of 3 runs had finished and are reported\n")
    assert "Traceback" not in finished.err
    table = command_line("run", "--trace", trace).out
    assert [line.split()[0] for line in table.splitlines()] == ["policy", "fcfs"]


@pytest.mark.usefixtures("interrupted_easy")
def test_ctrl_c_before_anything_has_finished(command_line: Command, trace: Path, tmp_path: Path) -> None:
    finished = command_line("run", "--trace", trace, "--policy", "easy", "--json", "--figure", tmp_path / "a.png")
    assert (finished.code, json.loads(finished.out)) == (130, [])
    assert "0 of 1 runs had finished" in finished.err
    assert not (tmp_path / "a.png").exists()


def test_ctrl_c_while_the_trace_is_read(command_line: Command, monkeypatch: pytest.MonkeyPatch, trace: Path) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("clustermodel.logs.trace_file.read_trace", interrupt)
    finished = command_line("run", "--trace", trace)
    # a line feed first: the terminal shows ^C where the cursor is
    assert (finished.code, finished.out, finished.err) == (130, "", "\nclustermodel: error: interrupted\n")


def test_ctrl_c_in_the_middle_of_a_simulation_passes_through_simpy(command_line: Command, tmp_path: Path) -> None:
    text = """
class Interrupted:
    name = "interrupted"

    def start(self, setup):
        return self

    def decide(self, batch, view):
        raise KeyboardInterrupt

scenarios = [Scenario(machine=Machine(nodes=4), workload=jobs, policy=policy) for policy in ("fcfs", Interrupted(), "easy")]
"""
    finished = command_line("run", script(tmp_path, text), "--json")
    assert finished.code == 130
    assert [run["policy"] for run in json.loads(finished.out)] == ["fcfs"]
    assert finished.err.endswith("clustermodel: interrupted during interrupted; 1 of 3 runs had finished and are reported\n")


def test_the_slow_mode_under_space_sharing_is_one_note(command_line: Command, trace: Path) -> None:
    finished = command_line(
        "run", "--trace", trace, "--policy", "fcfs", "--policy", "gs", "--policy", "easy", "--fidelity", "node"
    )
    assert finished.code == 0
    assert [line for line in finished.err.splitlines() if line.startswith("fidelity")] == [
        "fidelity node: no gang shared its nodes in time under fcfs, easy; there was nothing to play, "
        "and the result is that of fidelity fast"
    ]
    assert "Warning" not in finished.err
    assert "fidelity" not in command_line("run", "--trace", trace, "--policy", "gs", "--fidelity", "node").err


def test_memory_of_nodes_and_of_jobs_that_have_none_recorded(
    command_line: Command, complaint: Callable[..., str], trace: Path
) -> None:
    # All jobs need 3 of 4 GiB, so that none shares its nodes, and gang scheduling is FCFS.
    options = ("--trace", trace, "--json", "--policy", "gs", "--quantum", 5)
    shared, fcfs = ("--node-memory", 4, "--default-memory", 3), ("run", "--trace", trace, "--json", "--policy", "fcfs")
    (alone,) = json.loads(command_line("run", *options, *shared).out)
    (expected,) = json.loads(command_line(*fcfs).out)
    (together,) = json.loads(command_line("run", *options, "--node-memory", 6, "--default-memory", 3).out)
    assert alone["mean_wait_s"] == expected["mean_wait_s"]
    assert together["mean_wait_s"] < alone["mean_wait_s"]
    finished = command_line("run", *options[:2], "--policy", "gs", "--node-memory", 2)
    assert "the memory of 5 of 5 jobs is unknown: they count as needing none" in " ".join(finished.err.split())
    finished = command_line("run", *options[:2], "--policy", "easy", *shared[:2], "--default-memory", 5)
    assert "memory unknown, 5 GiB per node used" in finished.err
    assert "4 jobs are rejected because they need more memory than the 4 GiB of a node" in " ".join(finished.err.split())
    assert complaint("run", "--node-memory", 0) == (
        "Machine.node_memory_gib: 0.0 is not allowed; it must be a number of GiB > 0 and <= 2^33"
    )
    assert complaint("run", "--default-memory", -1).startswith("Workload.with_default_memory: -1.0 is not allowed")
