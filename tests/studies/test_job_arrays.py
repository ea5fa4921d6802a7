"""The scripts of docs/studies.md for job arrays, run as far as the tools are installed; else their commands are run."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import clustermodel
from clustermodel import Store

pytestmark = pytest.mark.long

ROOT = Path(clustermodel.__file__).parents[1]
PAGE = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
SECTION = PAGE[PAGE.index("## Job arrays") :]
BASH = re.findall(r"```bash\n(.*?)```", SECTION, re.DOTALL)
PYTHON = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
STUDY = """
from clustermodel import Study, synthetic_workload
study = Study.grid(name="s", workloads={"w": lambda seed: synthetic_workload(jobs=20, seed=seed)},
                   policies=["easy", "fcfs"], replications=6)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a study and the command ``clustermodel`` of these sources."""
    (tmp_path / "study.py").write_text(STUDY)
    command = tmp_path / "bin" / "clustermodel"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m clustermodel "$@"\n')
    command.chmod(0o755)
    return tmp_path


def run(folder: Path, *command: str, **variables: str) -> str:
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    pythons = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": pythons, **variables}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def assert_whole(folder: Path) -> None:
    with Store.read(folder / "results") as store:
        assert store.states() == {"pending": 0, "done": 12, "failed": 0}
        assert store.verify() == []
    lists = {f"study-{number}-of-4.json" for number in range(1, 5)}
    assert {path.name for path in (folder / "results").iterdir()} == {*lists, "runs", "records", "states", "placements"}


def test_the_script_for_sbatch(folder: Path) -> None:
    """Run by bash, as SLURM runs it for each task of the array."""
    (script,) = [text for text in BASH if "SBATCH" in text]
    (folder / "shards.sbatch").write_text(script)
    tasks = re.search(r"^#SBATCH --array=(\d+)-(\d+)$", script, re.MULTILINE)
    assert tasks is not None
    for number in range(int(tasks[1]), int(tasks[2]) + 1):
        run(folder, "bash", "shards.sbatch", SLURM_ARRAY_TASK_ID=str(number))
    assert_whole(folder)


def test_the_command_for_gnu_parallel(folder: Path) -> None:
    (line,) = [text.strip() for text in BASH if text.startswith("parallel ")]
    if shutil.which("parallel"):
        run(folder, "bash", "-c", line)
    else:  # what it would run
        command, _, arguments = line.removeprefix("parallel ").partition(" ::: ")
        for number in arguments.split():
            run(folder, *shlex.split(command.replace("{}", number)))
    assert_whole(folder)


def test_the_rules_for_snakemake(folder: Path) -> None:
    (rules,) = [text for text in PYTHON if text.startswith("rule ")]
    (folder / "Snakefile").write_text(rules)
    if shutil.which("snakemake"):
        run(folder, "snakemake", "--cores", "2")
    else:  # what it would run
        shells = dict(re.findall(r"rule (\w+):.*?shell:\s*\"(.*?)\"\n", rules, re.DOTALL))
        for number in range(1, 5):
            run(folder, *shlex.split(shells["shard"].replace("{wildcards.i}", str(number))))
            assert (folder / f"results/study-{number}-of-4.json").is_file()  # its output
        run(folder, *shlex.split(shells["table"].replace("{output}", "results.csv")))
    assert len(pd.read_csv(folder / "results.csv")) == 12
    assert_whole(folder)


def test_the_script_for_submitit(folder: Path) -> None:
    pytest.importorskip("submitit", reason="needs submitit")
    (script,) = [text for text in PYTHON if text.startswith("import submitit")]
    assert "AutoExecutor(folder=" in script
    (folder / "submit.py").write_text(
        script.replace('AutoExecutor(folder="logs")', 'AutoExecutor(folder="logs", cluster="local")')
    )
    assert run(folder, sys.executable, "submit.py") == "12 trials\n"
    assert_whole(folder)
