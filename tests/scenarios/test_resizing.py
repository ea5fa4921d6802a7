"""Small runs of the scenarios of resizing, and what their page says of the stored tables."""

from pathlib import Path

import pytest

from clustermodel import Job, Machine, Scenario, Workload, sweep
from clustermodel.experiment.exhibits import exhibits_of
from tests.scripts import SCENARIOS, stored, study_of

SMALL = {"weeks": "1", "replications": "2"}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trace") / "weeks.swf"
    jobs = [
        Job(id=day * 4 + turn, nodes=16 * turn + 8, submit_s=86_400 * day + 600 * turn, run_s=3600, user=turn)
        for day in range(28)
        for turn in range(4)
    ]
    Scenario(machine=Machine(nodes=100), workload=Workload.from_jobs(jobs), policy="easy").run().to_swf(path)
    return path


@pytest.mark.parametrize("script", ["cost", "crossing", "cost_and_share"])
@pytest.mark.long
def test_a_small_run_has_all_its_tables_and_figures(script: str, trace: Path, tmp_path: Path) -> None:
    settings, name = {"trace": str(trace), **SMALL}, f"tradeoffs/resizing/{script}"
    table = sweep(SCENARIOS / f"{name}.py", tmp_path, settings=settings, workers=1)
    exhibits = exhibits_of(study_of(name, settings), table)
    assert not table.failures
    assert not exhibits.problems
    assert exhibits.tables
    assert exhibits.figures


def test_resizes_pay_while_they_cost_little_and_not_at_half_an_hour() -> None:
    table = stored("resize_cost")
    for policy in ("equipartition", "shrink-to-admit"):
        for cost_s in (0, 10, 60):
            at_cost = {"cost_s": cost_s}
            difference = table.difference("log10_response", {"policy": policy, **at_cost}, {"policy": "easy", **at_cost})
            assert difference.high < 0
    for policy in ("equipartition", "expand"):
        of_policy = {"policy": policy, "cost_s": 1800}
        assert table.difference("log10_response", of_policy, {"policy": "easy", "cost_s": 1800}).low > 0
    # More than a quarter of the machine is spent on resizes then, though those that do not pay are left out.
    assert table.interval("resize_share", policy="equipartition", cost_s=1800).low > 0.25
