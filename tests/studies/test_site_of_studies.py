"""Studies with the rules of a site file: applied to all scenarios, and run again when the file changes."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from clustermodel.experiment.store import Store
from tests.conftest import Finished

SCRIPT = """
from clustermodel import Job, Machine, Scenario, Study, Workload

def scenario(policy, seed):
    jobs = [Job(id=number, nodes=1, submit_s=0, run_s=10, user=1) for number in range(1, 5)]
    return Scenario(machine=Machine(nodes=4), workload=Workload.from_jobs(jobs), policy=policy, seed=seed)

study = Study(name="site", scenario=scenario, replications=1, factors={"policy": ["fcfs", "easy"]})
"""


def waits(directory: Path) -> dict[str, float]:
    with Store.read(directory) as store:
        frame: pd.DataFrame = store.table().frame
    return dict(zip(frame["policy"], frame["mean_wait_s"], strict=True))


def test_a_study_under_the_rules_of_a_site(command_line: Callable[..., Finished], tmp_path: Path) -> None:
    script, site, out = tmp_path / "study.py", tmp_path / "site.toml", tmp_path / "results"
    script.write_text(SCRIPT)
    site.write_text('order = "fair-share"\n[[limits]]\nuser = 1\nrunning_jobs = 1\n[[partitions]]\nname = "a"\nnodes = "0-3"\n')
    sweep = ("sweep", script, "--out", out, "--workers", 1, "--site", site)
    assert command_line(*sweep).code == 0
    assert waits(out) == {"fcfs": 15, "easy": 15}
    site.write_text(site.read_text().replace("running_jobs = 1", "running_jobs = 2"))
    other = command_line("sweep", script, "--out", tmp_path / "other", "--workers", 1, "--site", site)
    assert other.code == 0
    assert waits(tmp_path / "other") == {"fcfs": 5, "easy": 5}
    # The same directory does not mix the two.
    again = command_line(*sweep)
    assert (again.code, waits(out)) == (0, {"fcfs": 5, "easy": 5})
    assert command_line("sweep", script, "--out", tmp_path / "third", "--site", tmp_path / "none.toml").code != 0
