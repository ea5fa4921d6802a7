"""The table of ``clustermodel run``: whole at any width, in legible units, with overheads; plain in a pipe; notes below it."""

import io
import math
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from clustermodel import (
    ContextSwitch,
    Machine,
    Scenario,
    StudyTable,
    TimeSlicing,
    Workload,
    comparison_table,
    policy_names,
    synthetic_workload,
)
from clustermodel.experiment.result import Result
from clustermodel.figures.run_tables import PLAIN, run_row
from clustermodel.workload.job import Job
from tests.conftest import Finished

Command = Callable[..., Finished]
GANGS = ("--model", "blue-pacific", "--jobs", 200, "--context-switch", 0.05, "--checkpoint", 60, "--restart", 60, "--policy",
         "bf", "--policy", "bgs", "--policy", "mbgs", "--scale-run-time", 1.3)  # fmt: skip
SCRIPT = """
from clustermodel import Machine, Scenario, synthetic_workload
day, night = (synthetic_workload(jobs=60, nodes=32, load=0.4, seed=seed) for seed in (1, 2))
scenarios = [Scenario(machine=Machine(nodes=32), workload=[day, night], policy=policy) for policy in ("easy", "bgs")]
"""


def plain(finished: Finished) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(finished.out), sep="\t")


def headings(finished: Finished) -> str:
    """Return all lines above the rules of the table."""
    lines = finished.out.splitlines()
    rules = [at for at, line in enumerate(lines) if line.startswith("──")]
    return " ".join(" ".join(lines[at - 3 : at]) for at in rules)


@pytest.mark.parametrize("columns", [80, 120, 160])
def test_no_number_is_cut_at_any_width(terminal: Command, command_line: Command, columns: int) -> None:
    finished = terminal("run", "--jobs", 200, columns=columns)
    assert finished.code == 0
    assert "…" not in finished.out
    assert max(map(len, finished.out.splitlines())) <= columns
    rows = [line.split() for line in finished.out.splitlines() if line.startswith("fcfs")]
    fcfs = plain(command_line("run", "--jobs", 200)).iloc[0]
    assert (fcfs["policy"], fcfs["jobs"]) == ("fcfs", 200)
    cells = [cell for row in rows for cell in row[1:]]
    assert cells[:3] == ["200", f"{fcfs['mean_wait_s'] / 3600:.2f}", f"{fcfs['median_wait_s'] / 3600:.2f}"]
    assert f"{100 * fcfs['kappa']:.2f}" in cells
    assert f"{fcfs['blocked']:.0f}" in cells
    assert {80: 2, 120: 2, 160: 1}[columns] == len(rows)


def test_where_nodes_are_shared_in_time_response_and_slowdown_come_first(terminal: Command) -> None:
    space = headings(terminal("run", "--jobs", 100, columns=160))
    assert space.index("wait") < space.index("response") < space.index("bounded")
    time = headings(terminal("run", *GANGS, columns=160))
    assert time.index("response") < time.index("bounded") < time.index("wait")


def test_the_cost_of_switching_is_visible(terminal: Command, command_line: Command) -> None:
    finished = terminal("run", *GANGS)
    shown = headings(finished)
    assert all(word in shown for word in ("context", "switch", "checkpoint", "restart", "blocked", "gangs", "loss of"))
    frame = plain(command_line("run", *GANGS)).set_index("policy")
    assert (frame.loc[["bgs", "mbgs"], "context_switch_share"] > 0.01).all()
    assert frame.loc["mbgs", "checkpoint_share"] > 0
    assert frame.loc["bf", "context_switch_share"] == 0
    for policy in ("bgs", "mbgs"):
        assert f"{100 * frame.loc[policy, 'context_switch_share']:.2f}" in finished.out


def test_accounts_and_counts_without_an_amount_are_left_out(terminal: Command) -> None:
    shown = headings(terminal("run", "--jobs", 100))
    assert not [word for word in ("context", "checkpoint", "discarded", "preempted", "rejected") if word in shown]
    assert "discarded" in headings(terminal("run", "--jobs", 300, "--policy", "pv-easy"))


@pytest.mark.parametrize("columns", [80, 120])
def test_all_policies_fit(terminal: Command, columns: int) -> None:
    names = [name for name in policy_names() if name not in ("slack",)]  # slow
    long = "slack:slack_factor=3.0,heuristic=ast,compression=shift,awt=conservative,alpha_u=1.0,alpha_t=0.5"
    wanted = [part for name in [*names, long] for part in ("--policy", name)]
    finished = terminal("run", "--jobs", 40, *wanted, columns=columns)
    assert finished.code == 0
    assert "…" not in finished.out
    assert max(map(len, finished.out.splitlines())) <= columns
    first_words = [line.split()[0] for line in finished.out.splitlines() if line.strip()]
    assert all(name in first_words for name in names)


def test_a_real_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    script = f"stty cols 80 <&1; {sys.executable} -m clustermodel run --jobs 50"
    done = subprocess.Popen(
        ["bash", "-c", script], stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 65_536):
            seen += chunk
    except OSError:  # Linux says so at the end
        pass
    os.close(ours)
    assert done.wait(60) == 0
    text = seen.decode()
    assert "fcfs" in text
    assert "…" not in text
    assert "\x1b[1m" in text  # headings are bold


def test_words_stand_for_greek_letters_everywhere(terminal: Command, command_line: Command) -> None:
    for command in (terminal, command_line):
        text = command("run", *GANGS).out
        assert "utilization" in text
        assert not set("ρκ") & set(text)
    finished = terminal("run", *GANGS, encoding="ascii")
    assert finished.out.isascii()
    assert "\\u" not in finished.out
    assert "loss of" in finished.out


def result(*jobs: Job, policy: str = "fcfs", nodes: int = 4) -> Result:
    return Scenario(machine=Machine(nodes=nodes), workload=Workload.from_jobs(jobs, name="w"), policy=policy).run()


def test_very_long_times_are_days() -> None:
    text = str(comparison_table([result(*(Job(id=n, submit_s=n, run_s=1e9, nodes=4) for n in (1, 2, 3)))]))
    assert "(d)" in text
    assert f"{1e9 / 86_400 * 2:,.0f}" in text.replace("\n", " ")  # the mean response


def test_undefined_values_are_dashes_and_nan(terminal: Command, command_line: Command, tmp_path: Path) -> None:
    table = comparison_table([result(Job(id=1, submit_s=0, run_s=5, nodes=9))])
    lines = str(table).splitlines()
    row = next(line for line in lines if line.startswith("fcfs"))
    assert row.split()[:4] == ["fcfs", "0", "-", "-"]
    values = dict(zip(*(line.split("\t") for line in table.plain_text().splitlines()), strict=True))
    assert (values["mean_wait_s"], values["rejected"], values["jobs"]) == ("nan", "1", "0")
    assert lines[-1].startswith("note: 1 job is rejected")


def test_several_streams_are_one_row(terminal: Command, tmp_path: Path) -> None:
    path = tmp_path / "two.py"
    path.write_text(SCRIPT)
    finished = terminal("run", path)
    assert finished.code == 0
    assert finished.out.startswith("synthetic-1 and 1 more on 32 nodes, offered load ")
    assert [line.split()[1] for line in finished.out.splitlines() if line.startswith(("easy", "bgs"))][:2] == ["120", "120"]


def test_a_pipe_gets_the_same_columns_whatever_the_width_and_the_numbers(
    command_line: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = []
    for columns in ("40", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        outputs.append(command_line("run", "--jobs", 100).out)
    assert outputs[0] == outputs[1]
    gangs = command_line("run", *GANGS).out
    header = "\t".join(("policy", *PLAIN))
    assert [text.splitlines()[0] for text in (outputs[0], gangs)] == [header, header]
    for line in (outputs[0] + gangs).splitlines():
        assert line.isascii()
        assert "\x1b" not in line
        assert len(line.split("\t")) == len(line.split()) == len(PLAIN) + 1


def test_shares_of_node_time_sum_to_one(command_line: Command) -> None:
    frame = plain(command_line("run", *GANGS))
    shares = frame[["utilization", *(name for name in frame if name.endswith("_share"))]].sum(axis=1)
    assert shares.tolist() == pytest.approx([1.0] * 3, abs=1e-8)


def test_the_plain_table_and_json_have_the_numbers_of_the_run() -> None:
    run = Scenario(machine=Machine(nodes=32), workload=synthetic_workload(jobs=80, nodes=32), policy="bgs").run()
    row: dict[str, Any] = run_row(run)
    summary = run.summary()
    assert row["kappa"] == summary.kappa
    assert row["context_switch_share"] == run.ledger.frame.loc["context switch", "share"]
    assert row["delayed"] is None
    values = pd.read_csv(io.StringIO(comparison_table([run]).plain_text()), sep="\t").iloc[0]
    assert values["mean_response_s"] == pytest.approx(summary.mean_response_s, rel=1e-9)
    assert math.isnan(values["delayed"])


def test_notes_are_lines_of_standard_error_with_options(command_line: Command) -> None:
    finished = command_line("run", "--jobs", 100, "--scale-interarrival", 0.3)
    assert "note" not in finished.out
    (note,) = [line for line in finished.err.splitlines() if line.startswith("note: ")]
    assert note.startswith("note: the offered load is 2.17: more work arrives than 128 nodes can do")
    assert note.endswith("(--nodes, --scale-interarrival 2.5)")
    assert "note: " not in command_line("run", "--jobs", 100, "--scale-interarrival", 0.3, "--json").out


def test_rows_of_machines_of_one_size_say_what_differs() -> None:
    workload = synthetic_workload(jobs=30, nodes=32)

    def names(*machines: Machine) -> list[str]:
        runs = [Scenario(machine=machine, workload=workload, policy="bgs").run() for machine in machines]
        return pd.read_csv(io.StringIO(comparison_table(runs).plain_text()), sep="\t")["policy"].tolist()

    switches = [Machine(nodes=32, context_switch=ContextSwitch(fraction=share)) for share in (0.0, 0.1)]
    assert names(*switches) == ["bgs, context switch fraction 0", "bgs, context switch fraction 0.1"]
    levels = [Machine(nodes=32, time_slicing=TimeSlicing(mpl=level)) for level in (2, 5)]
    assert names(*levels) == ["bgs, MPL 2", "bgs, MPL 5"]
    memory = [Machine(nodes=32, node_memory_gib=gib) for gib in (None, 8)]
    assert names(*memory) == ["bgs, node memory none", "bgs, node memory 8 GiB"]
    assert names(Machine(nodes=32), Machine(nodes=64)) == ["bgs, 32 nodes", "bgs, 64 nodes"]


def test_a_tail_of_few_jobs_is_noted() -> None:
    jobs = [Job(id=number, submit_s=20 * number, nodes=8, run_s=10, estimate_s=10) for number in range(1, 11)]
    tail = Job(id=11, submit_s=200, nodes=1, run_s=600, estimate_s=600)

    def notes(*jobs: Job) -> list[str]:
        run = Scenario(machine=Machine(nodes=8), workload=Workload.from_jobs(jobs), policy="easy").run()
        return [str(note) for note in comparison_table([run]).notes if "after the last submission" in str(note)]

    (note,) = notes(*jobs, tail)  # work 1,400 node-s, 180 s until the last submission, 790 s in all
    assert note == (
        "77 % of the makespan under easy is after the last submission, when ever fewer jobs are left: at an offered load of "
        "0.97, the work is only 0.22 of the capacity; give more jobs, or shorter ones"
    )
    assert not notes(*jobs)


def test_means_whose_intervals_reach_below_0_are_noted() -> None:
    rows = [
        {"run": f"{policy}{number}", "policy": policy, "replication": number, "mean_wait_s": wait, "gain": wait}
        for policy, waits in (("easy", (1.0, 1000.0)), ("fcfs", (999.0, 1000.0)))
        for number, wait in enumerate(waits, 1)
    ]
    table = StudyTable(rows, ["policy"], "made", shown=["mean_wait_s", "gain"])
    assert "note: intervals reach below 0, where mean wait cannot be: they are to be read as ending at 0" in str(table)
    assert "note" not in str(table.at(policy="fcfs"))
