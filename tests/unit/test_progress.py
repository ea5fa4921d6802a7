"""Progress bars say nothing that is not known."""

import io
from pathlib import Path

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


def test_a_stream_of_unknown_length(tmp_path: Path) -> None:
    path = tmp_path / "jobs.swf"
    write_trace(path, synthetic_workload(jobs=5, nodes=4))
    notes = console()
    with progress_of_run(Scenario(workload=SwfStream(path), machine=Machine(nodes=4), stream=True), notes):
        pass
    assert "None" not in text_of(notes)
