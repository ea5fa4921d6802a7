"""Policies that fail during ``clustermodel run``: one line with the user's file and line, after the runs that had finished."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from clustermodel import Job, Scenario, Workload
from clustermodel.experiment.user_code import failure_line
from tests.conftest import Finished

Command = Callable[..., Finished]

SCRIPT = """
import json
from clustermodel import Job, Machine, Scenario, Workload
from beside import divide

class Greedy:
    name = "greedy"

    def decide(self, batch, view):
        {decide}

    def start(self, setup):
        {begin}
        return self

class Strange(Exception):
    def __init__(self, *, number):
        super().__init__(f"number {{number}}")

jobs = Workload.from_jobs([Job(id=n, nodes=2, submit_s=n, run_s=10) for n in range(1, 5)], machine_nodes=4)
scenarios = [Scenario(workload=jobs, policy=policy) for policy in ("fcfs", Greedy(), "easy")]
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Write a script, and a module that it imports, into the working directory; return its name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "beside", raising=False)
    (tmp_path / "beside.py").write_text("def divide(a, b):\n    return a / b\n")

    def write(decide: str, begin: str = "pass") -> Path:
        (tmp_path / "my.py").write_text(SCRIPT.format(begin=begin, decide=decide))
        return Path("my.py")

    return write


@pytest.mark.parametrize(
    ("decide", "message"),
    [
        ("return 1 / 0", "my.py:10: ZeroDivisionError: division by zero"),
        ("return divide(1, 0)", "{folder}/beside.py:2: ZeroDivisionError: division by zero"),
        ("return json.loads('{')", "my.py:10: JSONDecodeError: Expecting property name enclosed in double quotes: "
         "line 1 column 2 (char 1)"),
        ("raise Strange(number=3)", "my.py:10: Strange: number 3"),
        ("raise ValueError('two\\n  lines')", "my.py:10: ValueError: two lines"),
        ("assert not view", "my.py:10: AssertionError"),
        ("raise SystemExit('enough')", "my.py:10: SystemExit: enough"),
        ("exit(0)", "my.py:10: SystemExit: 0"),
    ],
)  # fmt: skip
def test_a_policy_that_fails_is_one_line_after_the_runs_that_had_finished(
    command_line: Command, script: Callable[..., Path], tmp_path: Path, decide: str, message: str
) -> None:
    finished = command_line("run", script(decide), "--json")
    assert finished.code == 1
    assert [run["policy"] for run in json.loads(finished.out)] == ["fcfs"]
    noted, complaint = finished.err.splitlines()
    assert noted.startswith("fcfs: 4 jobs")
    expected = message.format(folder=tmp_path) if "folder" in message else message
    assert complaint == f"clustermodel: error: {expected} (policy greedy; --traceback shows all)"


def test_begin_is_code_of_the_policy_too(command_line: Command, script: Callable[..., Path]) -> None:
    finished = command_line("run", script("return []", begin="setup.machines"), "--json")
    assert finished.code == 1
    assert (
        "error: my.py:13: AttributeError: 'Setup' object has no attribute 'machines' (did you mean 'machine'?) (policy greedy;"
        in finished.err
    )


def test_traceback_prints_all_of_it(command_line: Command, script: Callable[..., Path]) -> None:
    finished = command_line("run", script("return divide(1, 0)"), "--traceback")
    assert finished.code == 1
    assert "Traceback (most recent call last):\n" in finished.err
    assert '  File "my.py", line 10, in decide\n    return divide(1, 0)\n' in finished.err
    assert finished.err.endswith("beside.py:2: ZeroDivisionError: division by zero (policy greedy)\n")


def test_what_a_policy_may_not_ask_for_is_no_failure_of_its_code(command_line: Command, script: Callable[..., Path]) -> None:
    finished = command_line("run", script("return [1]"))
    assert finished.code == 2
    assert finished.err.splitlines()[-1].startswith(
        "clustermodel: error: policy greedy: 1 is not a decision; it must be one of"
    )


def test_a_script_that_leaves_is_refused(command_line: Command, tmp_path: Path) -> None:
    path = tmp_path / "leaves.py"
    path.write_text("import sys\nsys.exit(0)\n")
    finished = command_line("run", path)
    assert (finished.code, finished.err) == (2, f"clustermodel: error: {path}:2: SystemExit: 0\n")


def test_a_script_of_a_study_is_for_sweep(command_line: Command, tmp_path: Path) -> None:
    path = tmp_path / "study.py"
    path.write_text(
        "from clustermodel.experiment.study import Study\n"
        "from clustermodel import Machine, synthetic_workload\n"
        "study = Study.grid(name='s', machines={'m': Machine(nodes=9)}, policies=['fcfs'],\n"
        "    workloads={'w': synthetic_workload(jobs=9)})\n"
    )
    finished = command_line("run", path)
    assert finished.code == 2
    assert finished.err == (
        f"clustermodel: error: {path}: defines a study; run it with: clustermodel sweep {path} --out DIRECTORY\n"
    )


class Broken:
    """A policy of this file."""

    name = "broken"

    def start(self, setup: object) -> object:
        """Nothing to remember."""
        return self

    def decide(self, batch: object, view: object) -> list[object]:
        """Fail inside the standard library."""
        return [json.loads("{")]


def test_a_failure_names_the_innermost_file_of_the_user() -> None:
    jobs = Workload.from_jobs([Job(id=1, nodes=1, submit_s=0, run_s=1)], machine_nodes=1)
    line = next(number for number, text in enumerate(Path(__file__).read_text().splitlines(), 1) if 'json.loads("{")]' in text)
    with pytest.raises(json.JSONDecodeError) as failed:
        Scenario(workload=jobs, policy=Broken()).run()
    assert failure_line(failed.value).startswith(f"{__file__}:{line}: JSONDecodeError: ")
    copy = ValueError("a copy, as SimPy makes them")
    copy.__cause__ = failed.value
    assert failure_line(copy) == f"{__file__}:{line}: ValueError: a copy, as SimPy makes them"


def test_a_failure_names_no_place_if_no_file_of_the_user_took_part() -> None:
    assert failure_line(KeyError()) == "KeyError"
    with pytest.raises(json.JSONDecodeError) as failed:
        json.loads("{")
    failed.value.__traceback__ = failed.tb.tb_next  # without this file
    assert failure_line(failed.value).startswith("JSONDecodeError: ")
