"""Titles, notes and axes count what jobs ask for: nodes, or the cores or GPUs of a log or of nodes that have several."""

import re
from pathlib import Path
from typing import Any

import pytest

from clustermodel import Job, Machine, Scenario, Workload, comparison_table
from clustermodel.cli.main import main
from clustermodel.figures.tables import percentile_table
from clustermodel.logs.trace_file import read_trace
from clustermodel.measure.input_notes import run_notes
from clustermodel.workload.trace_facts import trace_facts

MURI = """\
job_id,num_gpu,submit_time,iterations,model_name,iteration_time
0,8,0,100,dqn,1000
1,32,1000,100,dqn,2000
2,16,1500,100,dqn,2000
"""
SACCT = """\
JobID|Submit|Start|End|State|AllocNodes|AllocCPUS|AllocTRES
1|2026-01-05T10:00:00|2026-01-05T10:00:00|2026-01-05T11:00:00|COMPLETED|1|16|cpu=16,gres/gpu=4,node=1
2|2026-01-05T10:10:00|2026-01-05T10:30:00|2026-01-05T11:30:00|COMPLETED|2|32|cpu=32,gres/gpu=8,node=2
"""


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    shown = capsys.readouterr()
    assert not end.value.code, shown.err
    return shown.out + shown.err


def counts(text: str) -> set[str]:
    """Return what the lines of a table's title and the notes count."""
    return set(re.findall(r"\b[0-9]+ (nodes|cores|GPUs|gpus|processors)\b", text))


@pytest.mark.parametrize(("unit", "name"), [("gpus", "GPUs"), ("cores", "cores"), ("nodes", "nodes")])
def test_commands_count_what_the_log_counts(unit: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "jobs.sacct"
    log.write_text(SACCT)
    info = printed(capsys, "trace", "info", str(log), "--unit", unit)
    assert counts(re.sub("the log names.*", "", info)) == {name}
    asked = printed(capsys, "whatif", "--trace", str(log), "--unit", unit, "--nodes", "40", "--policy", "easy")
    assert f"machine: 40 {name}, as asked for" in asked


def test_tables_notes_and_figures_count_gpus(tmp_path: Path) -> None:
    trace = tmp_path / "muri.csv"
    trace.write_text(MURI)
    workload = read_trace(trace)
    runs = [
        Scenario(machine=Machine(nodes=2, gpus_per_node=8), workload=workload, policy=policy).run()
        for policy in ("fcfs", "easy")
    ]
    assert comparison_table(runs).title.startswith("muri.csv on 16 GPUs, offered load ")
    assert "1 job is rejected: larger than the machine of 16 GPUs" in str(run_notes(runs)[0])
    assert runs[0].plot.gantt().axes[0].get_ylabel() == "GPU"
    assert "capacity of 16 GPUs" in runs[0].plot.capacity().get_suptitle()
    assert percentile_table(trace_facts(workload, 16), workload.provenance.unit).keys[0].cells[0] == "GPUs"
    assert "64 GPUs" in workload._repr_html_()
    assert runs[0].scenario.unit == "GPU"


def test_nodes_with_several_processors_are_counted_as_these_and_names_of_rows_say_which() -> None:
    workload = Workload.from_jobs([Job(id=1, submit_s=0, run_s=10, nodes=2)], name="w")
    machines = [Machine(nodes=2), Machine(nodes=2, gpus_per_node=4)]
    runs = [Scenario(machine=machine, workload=workload, policy="easy").run() for machine in machines]
    table = comparison_table(runs)
    assert table.title == "w on several machines"
    assert table.plain["policy"] == ["easy, 2 nodes", "easy, 8 GPUs"]


def test_a_table_of_several_workloads_names_them_in_its_rows() -> None:
    workloads = [Workload.from_jobs([Job(id=1, submit_s=0, run_s=10, nodes=2)], name=name) for name in ("kth", "ctc")]
    runs = [Scenario(machine=Machine(nodes=4), workload=workload, policy="easy").run() for workload in workloads]
    table = comparison_table(runs)
    assert table.title == "several workloads on 4 nodes"
    assert table.plain["policy"] == ["easy, kth", "easy, ctc"]


def test_whatif_of_a_gpu_log_on_nodes_of_several_gpus_simulates_as_many_as_were_in_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def recorded(**given: Any) -> Scenario:
        sizes.append(given["machine"].processors)
        return Scenario(**given)

    monkeypatch.setattr("clustermodel.cli.options.Scenario", recorded)
    log = tmp_path / "jobs.sacct"
    log.write_text(SACCT)
    printed(capsys, "whatif", "--trace", str(log), "--unit", "gpus", "--gpus-per-node", "4", "--policy", "easy")
    assert sizes == [12]
