"""What goes wrong in one run stays in that run; what ends the study leaves no process behind and no work undone."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from clustermodel import Scenario, read_swf, synthetic_workload
from clustermodel.errors import OutputError
from clustermodel.experiment.exhibits import Exhibits, write_exhibits
from clustermodel.experiment.store import STUDY_FILE, Store
from clustermodel.experiment.study import Study
from clustermodel.text.files import write_file
from tests.processes import started
from tests.studies.test_sweep import SCRIPT, assert_same, command, runs_of, serial, swept, whole
from tests.tiers import some

pytestmark = pytest.mark.long

__all__ = ["command", "whole"]

ENDLESS = """
import itertools
from clustermodel import WakeAt, synthetic_workload
from clustermodel.policies.fcfs import Fcfs
from clustermodel.experiment.study import Study

class Loop(Fcfs):
    name = "loop"
    def decide(self, batch, view):
        for _ in itertools.count():
            try:
                pass
            except Exception:
                pass

class Alarms(Fcfs):
    name = "alarms"
    def decide(self, batch, view):
        return [WakeAt(time=view.now + 1)]

study = Study.grid(name="endless", workloads={"jobs": synthetic_workload(jobs=20)}, policies=[Loop(), "easy", Alarms()])
"""

RAISING = """
from clustermodel import synthetic_workload
from clustermodel.policies.fcfs import Fcfs
from clustermodel.experiment.study import Study

class Raising(Fcfs):
    name = "raising"
    def {method}(self, *_):
        raise {problem}

study = Study.grid(name="raising", workloads={{"jobs": synthetic_workload(jobs=20)}}, policies=["easy", Raising(), "fcfs"])
"""


@pytest.mark.parametrize(
    ("method", "problem", "workers"),
    [
        ("decide", "SystemExit", 1),
        ("decide", "SystemExit(0)", 2),
        ("decide", "GeneratorExit", 1),
        ("decide", "KeyboardInterrupt", 2),
        ("decide", "BaseException('x')", 2),
        ("start", "TypeError('there is no start')", 1),
    ],
)
def test_whatever_a_policy_raises_fails_its_run_only(method: str, problem: str, workers: int, tmp_path: Path) -> None:
    script = tmp_path / "raising.py"
    script.write_text(RAISING.format(method=method, problem=problem))
    assert swept(script, tmp_path / "out", workers=workers) == {"pending": 0, "done": 2, "failed": 1}
    with Store.read(tmp_path / "out") as store:
        ((factors, error),) = store.failures()
    assert "policy raising" in factors
    kind, _, text = problem.partition("(")
    expected = kind + (": " + text.strip("')") if text else "")
    assert error.splitlines()[-1] == f"{script}:9: {expected}"  # their file and line


def test_an_interrupt_in_this_process_stops_the_study_and_keeps_what_is_done(tmp_path: Path) -> None:
    script = tmp_path / "raising.py"
    script.write_text(RAISING.format(method="decide", problem="KeyboardInterrupt"))
    with pytest.raises(KeyboardInterrupt):
        serial(script, tmp_path / "out")
    with Store.read(tmp_path / "out") as store:
        assert store.states() == {"pending": 2, "done": 1, "failed": 0}


def test_a_failed_run_shows_where_and_the_whole_only_if_asked(
    command: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    script = tmp_path / "raising.py"
    script.write_text(RAISING.format(method="decide", problem="ValueError('deep')"))
    arguments = "sweep", script, "--out", tmp_path / "out", "--workers", "1"
    code, _, err = command(*arguments)
    assert (code, "Traceback" in err) == (1, False)
    assert f"policy raising, replication 1: {script}:9: ValueError: deep" in err
    code, _, err = command(*arguments, "--traceback")
    assert "Traceback (most recent call last)" in err
    assert "Traceback" not in command("results", tmp_path / "out")[2]
    assert "Traceback" in command("results", tmp_path / "out", "--traceback")[2]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("raised", ["RuntimeError('no second day')", "SystemExit"])
def test_a_workload_that_cannot_be_made_for_one_seed_fails_its_runs_only(tmp_path: Path, workers: int, raised: str) -> None:
    script = tmp_path / "some.py"
    text = (
        "from clustermodel import synthetic_workload\n"
        "from clustermodel.experiment.study import Study\n"
        "def jobs(seed):\n"
        f"    if seed == 2: raise {raised}\n"
        "    return synthetic_workload(jobs=20, seed=seed)\n"
        "study = Study.grid(name='some', workloads={'jobs': jobs}, policies=['easy', 'fcfs'], replications=3)\n"
    )
    script.write_text(text)
    assert swept(script, tmp_path / "out", workers=workers) == {"pending": 0, "done": 4, "failed": 2}
    with Store.read(tmp_path / "out") as store:
        failures = store.failures()
        done = store.results()["run"].tolist()
    assert [error.splitlines()[-1].partition(": ")[::2] for _, error in failures] == [
        (f"{script}:4", raised.replace("('", ": ").replace("')", ""))
    ] * 2
    script.write_text(text.replace("seed == 2", "seed == 0"))  # mended: nothing else runs again, and no failure is left
    before = {f"{key}.json": (tmp_path / "out" / "runs" / f"{key}.json").stat().st_mtime_ns for key in done}
    assert swept(script, tmp_path / "out") == {"pending": 0, "done": 6, "failed": 0}
    assert {name: (tmp_path / "out" / "runs" / name).stat().st_mtime_ns for name in before} == before
    assert len(before) == len(done) == 4


@pytest.mark.parametrize(("raised", "said"), [("RuntimeError('none')", "RuntimeError: none"), ("SystemExit", "SystemExit")])
def test_where_no_jobs_can_be_made_at_all_the_command_ends_with_that_error(
    command: Callable[..., tuple[int, str, str]], tmp_path: Path, raised: str, said: str
) -> None:
    script = tmp_path / "none.py"
    script.write_text(
        "from clustermodel.experiment.study import Study\n"
        "def jobs(seed):\n"
        f"    raise {raised}\n"
        "study = Study.grid(name='none', workloads={'jobs': jobs}, policies=['easy', 'fcfs'], replications=3)\n"
    )
    code, _, err = command("sweep", script, "--out", tmp_path / "out", "--workers", "1")
    assert (code, err) == (2, f"clustermodel: error: study none: no scenario can be made: {script}:3: {said}\n")


def test_a_workload_that_does_not_seed_is_found_on_one_process_and_on_two(tmp_path: Path) -> None:
    script = tmp_path / "unseeded.py"
    script.write_text(
        "import random\n"
        "from clustermodel import synthetic_workload\n"
        "from clustermodel.experiment.study import Study\n"
        "workloads = {'luck': lambda seed: synthetic_workload(jobs=20, seed=random.randrange(10**9)),\n"
        "             'seeded': lambda seed: synthetic_workload(jobs=20, seed=seed)}\n"
        "study = Study.grid(name='unseeded', workloads=workloads, policies=['easy', 'fcfs'])\n"
    )
    for workers in (1, 2):
        directory = tmp_path / str(workers)
        assert swept(script, directory, workers=workers) == {"pending": 0, "done": 2, "failed": 2}
        with Store.read(directory) as store:
            for factors, error in store.failures():
                assert "workload luck" in factors
                assert error.startswith("it was run on other jobs: 20 there and 20 here, or of other values; ")
                assert "seed its random generators" in error


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_that_never_ends_is_stopped_and_the_others_go_on(tmp_path: Path, workers: int) -> None:
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS)
    assert swept(script, tmp_path / "out", workers=workers, run_timeout_s=3) == {"pending": 0, "done": 1, "failed": 2}
    with Store.read(tmp_path / "out") as store:
        assert [error for _, error in store.failures()] == ["it ran longer than 3 s (--run-timeout), and was stopped"] * 2


def test_a_run_is_stopped_where_the_sweep_is_started_in_another_thread(tmp_path: Path) -> None:
    """Only a main thread receives the alarm, so the runs get a process."""
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS)
    with ThreadPoolExecutor(1) as thread:
        states = thread.submit(swept, script, tmp_path / "out", workers=1, run_timeout_s=3).result()
    assert states == {"pending": 0, "done": 1, "failed": 2}


CATCHING = """
import time
from clustermodel import synthetic_workload
from clustermodel.policies.fcfs import Fcfs
from clustermodel.experiment.study import Study

class Catching(Fcfs):
    name = "catching"
    def decide(self, batch, view):
        for _ in range({times}):
            try:
                time.sleep(0.4)
            except:
                pass
        return super().decide(batch, view)

study = Study.grid(name="catching", workloads={{"jobs": synthetic_workload(jobs=2)}}, policies=["easy", Catching(), "fcfs"])
"""


@pytest.mark.whole
@pytest.mark.parametrize("times", [10, 10**9])
def test_a_run_that_catches_its_timeout_does_not_pass(tmp_path: Path, times: int) -> None:
    script = tmp_path / "catching.py"
    script.write_text(CATCHING.format(times=times))
    assert swept(script, tmp_path / "out", run_timeout_s=3) == {"pending": 0, "done": 2, "failed": 1}
    with Store.read(tmp_path / "out") as store:
        ((factors, _),) = store.failures()
    assert "policy catching" in factors


@pytest.mark.parametrize(
    ("text", "last", "workers"),
    [
        (
            "class Bad(Exception):\n    def __str__(self): raise KeyError\nproblem = Bad()",
            "Bad: (it cannot say what is wrong)",
            1,
        ),
        ("class Bad(Exception):\n    def __str__(self): raise KeyboardInterrupt\nproblem = Bad()", "Bad: (it ", 2),
        ("problem = ValueError('x' * 3_000_000)", "(3,000,012 characters)", 2),
    ],
)
def test_errors_that_cannot_be_shown_as_they_are(tmp_path: Path, text: str, last: str, workers: int) -> None:
    script = tmp_path / "raising.py"
    script.write_text(text + "\n" + RAISING.format(method="decide", problem="problem"))
    assert swept(script, tmp_path / "out", workers=workers) == {"pending": 0, "done": 2, "failed": 1}
    with Store.read(tmp_path / "out") as store:
        ((_, error),) = store.failures()
    assert last in error.splitlines()[-1]
    assert len(error) < 200_000


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("line", ["os.chdir(Path(__file__).parent)", "sys.path[:] = sys.path[2:]"])
def test_a_script_that_changes_its_surroundings_runs(tmp_path: Path, workers: str, line: str) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "study.py").write_text(
        f"import os, sys\nfrom pathlib import Path\n{line}\n" + RAISING.format(method="decide", problem="ValueError")
    )
    arguments = [sys.executable, "-m", "clustermodel", "sweep", "inner/study.py", "--out", "results", "--workers", workers]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "results: 2 of 3 runs done" in done.stderr
    with Store.read(tmp_path / "results") as store:
        assert store.states() == {"pending": 0, "done": 2, "failed": 1}


def test_names_of_files_that_are_no_text_can_be_read_again(
    tmp_path: Path, command: Callable[..., tuple[int, str, str]]
) -> None:
    trace = tmp_path / "a\udcff.swf"
    trace.write_text("; MaxProcs: 8\n1 0 -1 5 2 -1 -1 2 9 -1 1 1 1 1 1 1 -1 -1\n")
    serial(Study.of_scenarios("s", [Scenario(workload=read_swf(trace))]), tmp_path / "out")
    for more in ([], ["--csv", tmp_path / "t.csv"], ["--parquet", tmp_path / "t.parquet"], ["--verify"]):
        assert command("results", tmp_path / "out", *more)[0] == 0
    assert command("report", tmp_path / "out")[0] == 0


def test_names_that_are_too_long_are_one_line(tmp_path: Path, command: Callable[..., tuple[int, str, str]]) -> None:
    long = tmp_path / ("x" * 300)
    for arguments in (["sweep", SCRIPT, "--out", long, "--workers", "1"], ["results", long], ["report", long]):
        code, _, err = command(*arguments)
        assert code in (1, 2)
        assert len(err.strip().splitlines()) == 1


# Signals.


def _children(pid: int) -> set[int]:
    """Return the processes that descend from one, as the kernel lists them."""
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found |= {child} | _children(child)
    return found


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


LONG = """
from clustermodel import synthetic_workload
from clustermodel.experiment.study import Study
study = Study.grid(name="long", workloads={"jobs": lambda seed: synthetic_workload(jobs=3000, seed=seed)},
              policies=["conservative"], replications=200)
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc to list processes")
@pytest.mark.parametrize("number", [signal.SIGKILL, *some([signal.SIGTERM, signal.SIGHUP], one_in=2)])
def test_workers_end_with_the_process_that_started_them(number: signal.Signals, tmp_path: Path) -> None:
    script, out = tmp_path / "long.py", tmp_path / "out"
    script.write_text(LONG)
    arguments = [sys.executable, "-m", "clustermodel", "sweep", str(script), "--out", str(out), "--workers", "2"]
    with started(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while len(list((out / "runs").glob("*.json"))) < 2 and process.poll() is None:
            time.sleep(0.02)
        workers = _children(process.pid)
        assert len(workers) >= 2
        process.send_signal(number)
        _, err = process.communicate(timeout=300)  # it also ends when the last one has closed its output
    until = time.monotonic() + 120
    while any(map(_alive, workers)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not [pid for pid in workers if _alive(pid)]
    if number == signal.SIGKILL:
        assert process.returncode == -number
    else:
        assert process.returncode == 128 + number
        assert f"clustermodel: stopped by {number.name}; " in err
        assert "runs are done, and the same command goes on from there" in err.replace("\n", " ")
    assert "Traceback" not in err


# What cannot be written.


@pytest.mark.parametrize("limit", [5_000, 10_000])
def test_a_full_disk_stops_the_study_and_marks_nothing_as_failed(tmp_path: Path, whole: Path, limit: int) -> None:
    """Bytes of a file: less than the file of the study needs, or than the largest table."""
    out = tmp_path / "out"
    sizes = {path.name: path.stat().st_size for path in whole.rglob("*.*")}
    assert (sizes[STUDY_FILE] > limit) == (limit == 5_000)
    assert max(sizes.values()) > limit
    program = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}));"
        "from clustermodel.cli import main; main()"
    )
    for workers in ("1", "2"):
        command = [sys.executable, "-B", "-c", program, "sweep", str(SCRIPT), "--out", str(out), "--workers", workers]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 1
        assert len(done.stderr.strip().splitlines()) == 1
        assert "cannot be written: " in done.stderr
    with Store.read(out) as store:
        states, failures = store.states(), store.failures()
    assert (states["pending"] > 0) == (limit == 10_000)
    assert all("too many jobs for me" in error for _, error in failures)
    assert not list(out.rglob("*.part"))
    serial(SCRIPT, out)
    assert_same(out, whole)


def test_the_first_failed_write_stops_the_study(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    study = Study.grid(
        name="s",
        workloads={"jobs": lambda seed: synthetic_workload(jobs=5, seed=seed)},
        policies=["easy"],
        replications=9,
        job_tables="all",
    )
    calls = []

    def full(path: Path, content: str | bytes, **options: bool) -> None:
        if path.suffix == ".json":
            write_file(path, content, **options)
            return
        calls.append(1)
        if len(calls) > 6:  # three tables a run
            raise OutputError("records/x: cannot be written: No space left on device")

    monkeypatch.setattr("clustermodel.experiment.store.write_file", full)
    with pytest.raises(OutputError, match="No space left on device"):
        serial(study, tmp_path)
    assert len(calls) == 7
    states = [json.loads(path.read_bytes())["state"] for path in (tmp_path / "runs").iterdir()]
    assert states == ["done"] * 2


# Links.


def test_a_linked_folder_of_exhibits_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "exhibits").symlink_to(tmp_path / "precious")
    with pytest.raises(OutputError, match="exhibits: is a symbolic link; a study's directory must have its own exhibits"):
        write_exhibits(Exhibits({}, {}, []), tmp_path)
    assert not list((tmp_path / "precious").iterdir())


def test_links_among_the_files_are_replaced_and_not_followed(tmp_path: Path) -> None:
    study = Study.grid(name="s", workloads={"jobs": synthetic_workload(jobs=5)}, policies=["easy"])
    out, precious = tmp_path / "out", tmp_path / "precious"
    precious.write_text("precious")
    key = runs_of(study)[0].key
    for folder, name in (
        ("records", f"{key}.parquet"),
        ("records", f".{'1' * 16}.part"),
        ("runs", f"{key}.json"),
        ("runs", f".{'1' * 16}.part"),
    ):
        (out / folder).mkdir(parents=True, exist_ok=True)
        (out / folder / name).symlink_to(precious)
    (out / "report.html.part").symlink_to(precious)
    (out / f".{'0' * 16}.part").symlink_to(precious)
    serial(study, out)
    assert precious.read_text() == "precious"
    with Store.read(out) as store:
        assert len(store.records(key)) == 5
        assert not store.damaged()
