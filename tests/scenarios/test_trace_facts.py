"""What 004's table 3 says of traces: computed from jobs, and stored for ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from clustermodel import Job, Workload
from tests.scenarios.conftest import FIGURES
from tests.shared_data import trace_path


def test_by_hand(load: Callable[[str], ModuleType]) -> None:
    """Load is until the last submission; a job that the machine cannot hold does not count."""
    jobs = [(0, 2, 86_400.0), (43_200, 9, 1.0), (86_400, 4, 21_600.0)]
    workload = Workload.from_jobs(
        Job(id=number, submit_s=submit, nodes=nodes, run_s=run) for number, (submit, nodes, run) in enumerate(jobs)
    )
    facts = load("trace_facts").measure(workload, 8)
    assert (facts["jobs"], facts["days"], facts["parallelism"], facts["run_s"]) == (2, 1, 3, 54_000)
    assert facts["load"] == pytest.approx((2 * 86_400 + 4 * 21_600) / (8 * 86_400))


def test_small(load: Callable[[str], ModuleType], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script, table, figure = load("trace_facts"), tmp_path / "table.json", tmp_path / "figure.png"
    script.main(["--jobs", "500", "--json", str(table), "--figure", str(figure)])
    assert "Table 3" in capsys.readouterr().out
    assert figure.stat().st_size > 10_000
    (row,) = load("reporting").read(table).rows
    assert (row["jobs"], row["nodes"]) == (500, 128)
    script.main(["--stored", str(table), "--markdown"])
    assert "| 128 |" in capsys.readouterr().out


def test_a_trace_needs_the_size_of_its_machine(load: Callable[[str], ModuleType], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        load("trace_facts").main(["--traces", "trace.swf"])
    assert "'trace.swf' is not allowed; write FILE:NODES" in capsys.readouterr().err


def test_stored(load: Callable[[str], ModuleType]) -> None:
    script = load("trace_facts")
    stored = {row["workload"]: row for row in load("reporting").read(FIGURES / "trace_facts.json").rows}
    workload = load("traces").Jobs(trace_path("KTH-SP2-1996-2.2"), 100, None).workload(1)
    assert script.measure(workload, 100) == pytest.approx(stored["KTH-SP2-1996-2.2"])
    for start, paper in script.PAPER.items():
        ours = next((row for name, row in stored.items() if name.startswith(start)), None)
        if ours:
            assert ours["load"] * 100 == pytest.approx(paper.load, abs=1)
            assert ours["parallelism"] == pytest.approx(paper.parallelism, rel=0.01)
