"""Compiled and interpreted modules alike: whatever whole numbers a user's own code gives, and what it gives that is none."""

import ast
import inspect
import os
import pydoc
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

import clustermodel as cm
from clustermodel.policies.easy import Easy
from clustermodel.policies.fcfs import Fcfs
from clustermodel.policies.gang import GangScheduling
from clustermodel.policies.interface import Decision, Place, Rows, Setup
from clustermodel.policies.view import Batch, QueuedJob, View
from clustermodel.sim.compiled import is_compiled
from clustermodel.workload.provenance import Provenance
from tests.conftest import Finished

ROOT = Path(__file__).parents[2]
ROWS = [(0, 1, 4, 10_000_000, 20_000_000, -1, -1, 0, -1), (5, 2, 3, 7_000_000, 9_000_000, -1, -1, 0, -1)]


class Stream:
    """A job source of a user's own, whose rows have numbers of numpy, or others."""

    name = "own"
    provenance = Provenance(source="own")
    machine_nodes = None

    def __init__(self, kind: type) -> None:
        self._kind = kind

    def rows(self) -> Iterator[cm.JobRow]:
        for row in ROWS:
            yield cm.JobRow(*map(self._kind, row))


def test_rows_of_numpy_numbers_give_the_schedule_of_plain_ones() -> None:
    plain = cm.Scenario(machine=cm.Machine(nodes=4), workload=cm.Workload([cm.JobRow(*row) for row in ROWS])).run()
    own = cm.Scenario(machine=cm.Machine(nodes=4), workload=Stream(np.int64)).run()
    assert own.records.column("end").tolist() == plain.records.column("end").tolist() == [10_000_000, 17_000_000]
    assert own.ledger.capacity == plain.ledger.capacity


def test_a_row_with_a_number_that_is_not_whole_is_refused_in_one_line() -> None:
    with pytest.raises(cm.SpecificationError, match=r"^job 1\.0: submit 0\.0 is not a whole number$"):
        cm.Scenario(machine=cm.Machine(nodes=4), workload=Stream(float)).run()


class InRows(Fcfs):
    """Starts jobs in row 0, on columns and in rows that are numbers of a kind."""

    name = "in rows"

    def __init__(self, kind: type) -> None:
        self._kind = kind

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        found: list[Decision] = []
        for row, job in enumerate(view.waiting.values()):
            found.append(cm.Reserve(job=job, start=self._kind(view.now)))
            found.append(Rows(places=(Place(job, (self._kind(0), self._kind(job.nodes)), (self._kind(row),)),)))
        return found


def test_columns_rows_and_reservations_of_numpy_numbers() -> None:
    machine = cm.Machine(nodes=4, time_slicing=cm.TimeSlicing(quantum_s=1.0, mpl=2))
    jobs = cm.Workload([cm.JobRow(*row)._replace(submit=0) for row in ROWS])
    ends = [
        cm.Scenario(machine=machine, workload=jobs, policy=InRows(kind)).run().records.column("end") for kind in (int, np.int64)
    ]
    assert ends[0].tolist() == ends[1].tolist()
    with pytest.raises(
        cm.DecisionError, match=r"^policy in rows: job 1 cannot hold a reservation: 0\.0 is not a whole number$"
    ):
        cm.Scenario(machine=machine, workload=jobs, policy=InRows(float)).run()


class Half:
    """A speedup model of a user's own that returns numbers of numpy."""

    def time_on(self, ticks: int, asked: int, nodes: int) -> np.int64:
        return np.int64(ticks * asked // nodes)


class OnTwo(Fcfs):
    name = "on two"

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        return [cm.Start(job=job, nodes=2) for job in list(view.waiting.values())[: view.idle // 2]]


def test_a_speedup_model_may_return_numbers_of_numpy() -> None:
    jobs = cm.Workload([cm.JobRow(*row)._replace(nodes=4) for row in ROWS])
    result = cm.Scenario(machine=cm.Machine(nodes=4), workload=jobs, policy=OnTwo(), speedup=Half()).run()  # type: ignore[arg-type]
    assert result.records.column("end").tolist() == [20_000_000, 14_000_005]
    assert result.records.column("end").dtype == np.int64


class Unlucky(Fcfs):
    """Looks for a job in the queue that has not been submitted yet."""

    name = "unlucky"

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        next(job for job in view.waiting.values() if job.id == 2)
        return super().decide(batch, view)


class NoTime:
    def time_on(self, ticks: int, asked: int, nodes: int) -> int:
        return next(iter(()))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("policy", "speedup"), [(Unlucky(), cm.LinearSpeedup()), (OnTwo(), NoTime())])
def test_an_iterator_that_is_exhausted_in_a_users_code_is_an_error_and_not_the_end(
    policy: Fcfs, speedup: cm.LinearSpeedup, *, stream: bool
) -> None:
    jobs = cm.Workload([cm.JobRow(*row)._replace(nodes=4) for row in ROWS])
    with pytest.raises(RuntimeError, match=r"^generator raised StopIteration$"):
        cm.Scenario(machine=cm.Machine(nodes=4), workload=jobs, policy=policy, speedup=speedup, stream=stream).run()


class NoIdea:
    """Predicts the estimates, but has none of job 3 when it is asked first, to backfill it."""

    name = "no idea"

    def start(self, setup: Setup) -> object:
        self._asked: list[int] = []
        return self

    def submitted(self, job: QueuedJob) -> None: ...
    def ended(self, job: QueuedJob, ran: int) -> None: ...

    def predict(self, job: QueuedJob) -> int:
        self._asked.append(job.id)
        return next(estimate for estimate in (job.estimate,) if self._asked.count(3) != 1 or job.id != 3)


def test_so_it_is_while_candidates_are_backfilled() -> None:
    rows = [cm.JobRow(*row) for row in (*ROWS, (6, 3, 1, 5_000_000, 5_000_000, -1, -1, 0, -1))]
    rows[0] = rows[0]._replace(nodes=3)
    assert (
        cm.Scenario(machine=cm.Machine(nodes=4), workload=cm.Workload(rows), policy="easy").run().jobs["backfilled"].sum() == 1
    )
    with pytest.raises(RuntimeError, match=r"^generator raised StopIteration$"):
        cm.Scenario(machine=cm.Machine(nodes=4), workload=cm.Workload(rows), policy=Easy(predictor=NoIdea())).run()


def test_so_it_is_in_what_reports_progress() -> None:
    calls = iter((1,))
    scenario = cm.Scenario(machine=cm.Machine(nodes=128), workload=cm.synthetic_workload(jobs=2_500))
    with pytest.raises(RuntimeError, match=r"^generator raised StopIteration$"):
        scenario.run(progress=lambda _: print(next(calls)))


def test_policies_of_the_package_can_be_inherited_from() -> None:
    class Mine(Easy):
        name = "mine"

    class Rows(GangScheduling):
        name = "rows"
        backfilling = True

    jobs = cm.synthetic_workload(jobs=200, nodes=32, load=0.9)
    for own, shipped in ((Mine(), "easy"), (Rows(), "bgs")):
        ends = [
            cm.Scenario(machine=cm.Machine(nodes=32), workload=jobs, policy=policy).run().records.column("end")
            for policy in (own, shipped)
        ]
        assert ends[0].tolist() == ends[1].tolist()


def wheel_made(folder: Path, **environment: str) -> tuple[int, list[str], str]:
    """Build a wheel with what is installed here; return pip's exit code, the wheels, and what pip says."""
    pip = ["-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), "-v", str(ROOT)]
    own = {name: value for name, value in os.environ.items() if name != "CLUSTERMODEL_COMPILE"}
    done = subprocess.run([sys.executable, *pip], env={**own, **environment}, capture_output=True, text=True, check=False)
    return done.returncode, [path.name for path in folder.glob("*.whl")], done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.parametrize("environment", [{}, {"CLUSTERMODEL_COMPILE": "0"}, {"CLUSTERMODEL_COMPILE": "", "CC": "/no/cc"}])
def test_a_wheel_is_pure_python_unless_compiling_is_asked_for(tmp_path: Path, environment: dict[str, str]) -> None:
    code, wheels, _ = wheel_made(tmp_path, **environment)
    assert (code, wheels) == (0, ["clustermodel-0.1.0-py3-none-any.whl"])
    with ZipFile(tmp_path / wheels[0]) as wheel:
        assert {f"clustermodel/{path.relative_to(ROOT)}" for path in (ROOT / "scenarios").rglob("*.py")} < set(wheel.namelist())
        assert "clustermodel/scenarios/first_cluster/jobs.sacct" in wheel.namelist()


@pytest.mark.whole
def test_where_compiling_is_asked_for_and_impossible_no_wheel_is_made_and_one_line_says_why(tmp_path: Path) -> None:
    code, wheels, said = wheel_made(tmp_path, CLUSTERMODEL_COMPILE="1", CC="/no/cc")
    assert (code, wheels) == (1, [])
    said_why = "CLUSTERMODEL_COMPILE is set, and clustermodel cannot be compiled: .*No such file or directory: '/no/cc'"
    assert re.search(said_why, said)


@pytest.mark.parametrize(("seconds", "compiled", "told"), [(10, False, False), (11, False, True), (11, True, False)])
def test_a_long_run_in_pure_python_says_once_how_to_halve_it(
    monkeypatch: pytest.MonkeyPatch, command_line: Callable[..., Finished], seconds: int, *, compiled: bool, told: bool
) -> None:
    monkeypatch.setattr("clustermodel.sim.compiled.is_compiled", lambda: compiled)
    clock = iter(range(0, 10_000, seconds))
    monkeypatch.setattr("clustermodel.experiment.scenario.perf_counter", lambda: next(clock))
    finished = command_line("run", "--jobs", 9, "--policy", "fcfs", "--policy", "easy")  # each takes so long
    assert finished.code == 0
    assert finished.err.count("CLUSTERMODEL_COMPILE=1 pip install .") == told


def test_the_version_says_whether_modules_are_compiled() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "clustermodel", "--version"], capture_output=True, text=True, check=True
    ).stdout
    assert said.strip().endswith(", compiled" if is_compiled() else ", pure Python")


@pytest.mark.parametrize("policy", ["ss:mode=checkpoint", "pv-easy:mode=checkpoint", "las:thresholds=60/600"])
def test_a_run_leaves_no_exception_behind(policy: str) -> None:
    """An exception that is raised later has no interrupt of a gang as its context."""
    machine = cm.Machine(nodes=32, checkpointing=cm.Checkpointing(checkpoint_s=20, restart_s=20))
    result = cm.Scenario(machine=machine, workload=cm.synthetic_workload(jobs=300, nodes=32, load=1.0), policy=policy).run()
    assert result.summary().preempted > 0
    with pytest.raises(ValueError, match="later") as raised:
        raise ValueError("later")
    assert raised.value.__context__ is None


@pytest.mark.skipif(not is_compiled(), reason="no module is compiled")
def test_a_handler_that_raises_does_not_abort_the_process() -> None:
    """It aborted ("fatal: out of memory") where the signal came in the middle of a multiplication in compiled code."""
    program = """
import signal
from clustermodel import Machine, Scenario, synthetic_workload
from clustermodel.policies.fcfs import Fcfs

signal.signal(signal.SIGALRM, signal.default_int_handler)
jobs, interrupted = synthetic_workload(jobs=400, nodes=64, seed=1), 0
for k in range(1500):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002 + 0.00007 * (k % 200))
        Scenario(workload=jobs, machine=Machine(nodes=64), policy=Fcfs()).run()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupted += 1
print(interrupted)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


@pytest.mark.parametrize(
    "name", ["Account", "Batch", "JobRecords", "Ledger", "Outage", "Profile", "QueuedJob", "RunningJob", "View"]
)
def test_help_has_the_texts_of_the_source(name: str) -> None:
    """The compiler leaves docstrings out; hatch_build.py adds them."""
    kind = getattr(cm, name)
    source = Path(cm.__file__).parents[1].joinpath(*kind.__module__.split(".")).with_suffix(".py").read_text("utf-8")
    tree = ast.parse(source)
    (definition,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    functions = [node for node in definition.body if isinstance(node, ast.FunctionDef) and ast.get_docstring(node)]
    if issubclass(kind, tuple):  # whose methods are classes of the compiler's
        functions = []
    assert inspect.getdoc(sys.modules[kind.__module__]) == ast.get_docstring(tree)
    assert inspect.getdoc(kind) == ast.get_docstring(definition)
    for function in functions:
        assert inspect.getdoc(getattr(kind, function.name)) == ast.get_docstring(function), function.name


def test_help_describes_the_fields_of_a_job() -> None:
    assert "Submission time, ticks." in pydoc.plain(pydoc.render_doc(cm.QueuedJob))
