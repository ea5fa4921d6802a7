"""Studies that run themselves: in scripts without a guard, from standard input, in cells of a notebook."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import clustermodel

pytestmark = pytest.mark.long

SCRIPT = """
from pathlib import Path
import clustermodel
from clustermodel import Machine, Scenario, Study, register_policy, synthetic_workload
from clustermodel.policies.fcfs import Fcfs

print("the script runs")
LEAST = 7

class Late(Fcfs):
    name = "late"
    def decide(self, batch, view):
        return super().decide(batch, view)

class Own(Late):
    name = "own"

register_policy("late", Late)

study = Study(
    name="plain",
    factors={"nodes": [32, 64], "policy": ["late", Own(), "easy"]},
    scenario=lambda nodes, policy, seed: Scenario(
        machine=Machine(nodes=nodes), workload=synthetic_workload(jobs=20, nodes=32, seed=seed), policy=policy, seed=seed
    ),
    measures={"late_jobs": lambda result: (result.jobs["wait_s"] > LEAST).sum()},
    replications=2,
)
table = study.run(OUT, workers=WORKERS)
print(len(table), len(table.failures), table.frame["late_jobs"].sum() >= 0, table.frame["mean_wait_s"].sum())
"""


def python(*arguments: str, folder: Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(Path(clustermodel.__file__).parents[1]), "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, input=text, capture_output=True, text=True, timeout=300, check=False
    )


def text_of(workers: int, out: str = "'out'") -> str:
    return SCRIPT.replace("WORKERS", str(workers)).replace("OUT", out)


def kinds(folder: Path) -> list[object]:
    return [json.loads(path.read_bytes())["state"] for path in (folder / "out" / "runs").iterdir()]


def test_a_script_without_a_guard_runs_on_two_processes(tmp_path: Path) -> None:
    """With lambdas, a policy of its own and a registered one; results of one process and of two are the same."""
    text = (
        SCRIPT.replace("WORKERS", "int(sys.argv[2])")
        .replace("OUT", "sys.argv[1]")
        .replace("from pathlib", "import sys\nfrom pathlib")
    )
    for name in ("plain.py", "serial.py"):
        (tmp_path / name).write_text(text)
    done = python("plain.py", "out", "2", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()  # the script runs once, not in every process
    assert (first, second.split()[:3]) == ("the script runs", ["12", "0", "True"])
    again = python("serial.py", "other", "1", folder=tmp_path)
    assert again.stdout.splitlines()[1] == second
    names = [sorted(path.name for path in (tmp_path / name / "runs").iterdir()) for name in ("out", "other")]
    assert names[0] == names[1]  # the keys do not depend on the script's name or on the processes
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "runs").iterdir()}
    assert python("plain.py", "out", "2", folder=tmp_path).stdout == done.stdout
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_an_imported_module_beside_the_script_is_found_by_the_processes(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("def jobs():\n    return 20\n")
    text = text_of(2).replace("jobs=20", "jobs=beside.jobs()").replace("from pathlib", "import beside\nfrom pathlib")
    (tmp_path / "plain.py").write_text(text)
    done = python(str(tmp_path / "plain.py"), folder=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[1].split()[:2]) == (0, ["12", "0"]), done.stderr


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("how", ["stdin", "-c"])
def test_a_program_without_a_file_runs(tmp_path: Path, how: str, workers: int) -> None:
    """Its functions have no source, so that its runs are repeated."""
    text = text_of(workers)
    done = python("-", folder=tmp_path, text=text) if how == "stdin" else python("-c", text, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1].split()[:2] == ["12", "0"]
    assert kinds(tmp_path) == ["done"] * 12


NOTEBOOK = """
import linecache, sys
text = {text!r}
for number, cell in enumerate(text.split("study = ")):
    cell = cell if number == 0 else "study = " + cell
    name = f"<ipython-input-{{number}}>"
    linecache.cache[name] = len(cell), None, cell.splitlines(keepends=True), name
    exec(compile(cell, name, "exec"), vars(sys.modules["__main__"]))
"""


def test_cells_of_a_notebook_run_on_two_processes(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(NOTEBOOK.format(text=text_of(2)))
    done = python("kernel.py", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1].split()[:2] == ["12", "0"]


def test_an_edited_cell_is_another_run(tmp_path: Path) -> None:
    for text in (text_of(1), text_of(1).replace("LEAST = 7", "LEAST = 8")):
        assert python("-", folder=tmp_path, text=text).returncode == 0
    assert kinds(tmp_path) == ["done"] * 24


@pytest.mark.parametrize("made", ["measures={'own': given['measure']}", "factors={'policy': [given['Made']()]}"])
def test_code_without_a_file_counts_by_itself(tmp_path: Path, made: str) -> None:
    fields = "" if made.startswith("factors") else "factors={'policy': ['easy']}, "
    text = (
        "from clustermodel import *\n"
        "from clustermodel.policies.fcfs import Fcfs\n"
        "given = {'Fcfs': Fcfs, '__name__': 'elsewhere'}\n"
        "exec('measure = lambda result: 1.0', given)\n"
        "exec('class Made(Fcfs):\\n    name = \"made\"', given)\n"
        "make = lambda policy, seed: Scenario(workload=synthetic_workload(jobs=5, seed=seed), policy=policy)\n"
        f"study = Study(name='s', {fields}{made}, scenario=make)\n"
        "print(len(study.run('out', workers=1).frame))\n"
    )
    done = python("-", folder=tmp_path, text=text)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1\n"
