"""Progress bars say nothing that is not known."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from clustermodel import Machine, Scenario, SwfStream, synthetic_workload, write_trace
from clustermodel.cli.standard_streams import progress_of_run, progress_of_sweep
from clustermodel.experiment.executor import Progress


def console() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=120)


def text_of(notes: Console) -> str:
    assert isinstance(notes.file, io.StringIO)
    return notes.file.getvalue()


def test_before_the_number_of_runs_is_known() -> None:
    notes = console()
    with progress_of_sweep(notes):
        pass
    assert "None" not in text_of(notes)
    assert "0 of ?" in text_of(notes)


def test_when_the_number_of_runs_is_known() -> None:
    notes = console()
    with progress_of_sweep(notes) as advance:
        advance(Progress(7, 2, 1, 1))
    assert "2 of 7" in text_of(notes)
    assert "1 running, 1 failed" in text_of(notes)


def test_off_a_terminal_a_line_every_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    notes, clock = Console(file=io.StringIO(), width=120), iter([0.0, 1.0, 10.5, 12.0, 25.0])
    monkeypatch.setattr("clustermodel.cli.standard_streams.monotonic", lambda: next(clock))
    with progress_of_sweep(notes) as advance:
        for done in range(1, 5):
            advance(Progress(1200, done, 1, int(done > 3)))
    assert text_of(notes).splitlines() == ["2 of 1,200 runs done after 10 s", "4 of 1,200 runs done, 1 failed after 25 s"]


def test_a_run_off_a_terminal_counts_its_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    notes, clock = Console(file=io.StringIO(), width=120), iter([0.0, 4.0, 11.0])
    monkeypatch.setattr("clustermodel.cli.standard_streams.monotonic", lambda: next(clock))
    with progress_of_run(Scenario(workload=synthetic_workload(jobs=3000, nodes=4), policy="fcfs"), notes) as advance:
        advance(1000)
        advance(500)
    assert text_of(notes) == "fcfs: 1,500 of 3,000 jobs after 11 s\n"


def test_a_stream_of_unknown_length(tmp_path: Path) -> None:
    path = tmp_path / "jobs.swf"
    write_trace(path, synthetic_workload(jobs=5, nodes=4))
    notes = console()
    with progress_of_run(Scenario(workload=SwfStream(path), machine=Machine(nodes=4), stream=True), notes):
        pass
    assert "None" not in text_of(notes)
