"""Ctrl-C, several times in quick succession: one line, exit code 130, and nothing about threads or processes."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from clustermodel.cli import main
from clustermodel.cli.interrupts import one_interrupt
from clustermodel.experiment.user_code import interrupts_held
from clustermodel.sim.compiled import is_compiled
from tests.processes import started

ROOT = Path(__file__).parents[2]
RUN = ["run", "--scale-run-time", "1.4", "--policy", "fcfs", "--policy", "conservative"]
NOISE = ("Traceback", "Exception ignored", "threading", "multiprocessing", "resource_tracker", "Process ")


STARTED = "clustermodel.cli.interrupts"
"""Python reports that it has imported this; before that, in its own start, there is nothing to be done."""


def interrupted(arguments: list[str], *, line: str = STARTED, after: float = 0.0, group: bool = False) -> tuple[int, str]:
    """Start ``clustermodel``, press Ctrl-C three times some time after a line, and return exit code and standard error."""
    with started(
        [sys.executable, "-X", "importtime", "-m", "clustermodel", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stderr is not None
        while line not in process.stderr.readline():
            assert process.poll() is None
        time.sleep(0.02 + after)
        for _ in range(3):
            if process.poll() is None:
                (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
            time.sleep(0.03)
        _, err = process.communicate(timeout=120)
    return process.returncode, "\n".join(said for said in err.splitlines() if not said.startswith("import time:"))


def assert_quiet(code: int, err: str) -> None:
    assert code == 130
    assert not [noise for noise in NOISE if noise in err], err
    assert len([line for line in err.splitlines() if "interrupted" in line]) == 1, err


@pytest.mark.skipif(is_compiled(), reason="an interrupt while a compiled module is imported ends Python: fatal: out of memory")
@pytest.mark.parametrize("after", [0.0, 0.3, 0.7, *(pytest.param(after, marks=pytest.mark.whole) for after in (0.1, 0.5, 1.0))])
def test_three_interrupts_while_it_starts(after: float) -> None:
    code, err = interrupted(RUN, after=after)
    assert_quiet(code, err)


def test_an_interrupt_while_a_dataclass_is_made_has_the_exit_code_of_any_other(tmp_path: Path) -> None:
    """``python -m`` ends by the signal, -2, where ``exec`` was interrupted."""
    (tmp_path / "own.py").write_text(
        "import os, signal\n"
        "class Own:\n"
        "    name = 'own'\n"
        "    def start(self, setup):\n"
        "        exec('os.kill(os.getpid(), signal.SIGINT)\\nfor _ in range(10**6): pass')\n"
        "    def decide(self, batch, view):\n"
        "        return []\n"
    )
    command = [sys.executable, "-m", "clustermodel", "run", "--jobs", "9", "--policy", "own:Own"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{tmp_path}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert_quiet(done.returncode, done.stderr)


def test_three_interrupts_in_the_middle_of_a_simulation() -> None:
    code, err = interrupted(RUN, line="fcfs: 30,000 jobs")
    assert_quiet(code, err)
    assert err.splitlines()[-1] == ("clustermodel: interrupted during conservative; 1 of 2 runs had finished and are reported")


@pytest.mark.parametrize("after", [1.0, *(pytest.param(after, marks=pytest.mark.whole) for after in (0.5, 1.5, 2.0, 3.0))])
def test_three_interrupts_during_a_sweep_on_two_processes(tmp_path: Path, after: float) -> None:
    study = tmp_path / "study.py"
    study.write_text(
        "from clustermodel import Machine, synthetic_workload\n"
        "from clustermodel.experiment.study import Study\n"
        "study = Study.grid(name='s', machines={'m': Machine(nodes=128)}, policies=['easy', 'conservative'], replications=9,\n"
        "    workloads={'w': lambda seed: synthetic_workload(seed=seed)})\n"
    )
    arguments = ["sweep", str(study), "--out", str(tmp_path / "out"), "--workers", "2"]
    assert_quiet(*interrupted(arguments, after=after, group=True))


def test_a_second_interrupt_is_ignored_until_the_first_has_had_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    now = [100.0]
    monkeypatch.setattr("clustermodel.cli.interrupts.time.monotonic", lambda: now[0])
    try:
        with one_interrupt(for_good=False):
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            now[0] += 1.0
            signal.raise_signal(signal.SIGINT)
            now[0] += 6.0  # code of a user has caught it
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        with one_interrupt(for_good=True):
            pass
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        with one_interrupt(for_good=False):  # as in the background of a shell
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_held_whichever_thread_receives_them(number: signal.Signals) -> None:
    """The main thread blocks Ctrl-C while processes start, so the kernel may give it to another thread."""
    leave = threading.Event()
    other = threading.Thread(target=leave.wait)
    other.start()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    held = []

    def receive_one() -> None:
        with interrupts_held():
            signal.pthread_kill(other.ident or 0, number)
            time.sleep(0.05)
            held.append(number)

    try:
        with pytest.raises(KeyboardInterrupt):
            receive_one()
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, before)
        leave.set()
        other.join()
    assert held == [number]


def test_a_program_that_imports_the_package_keeps_its_own_ctrl_c() -> None:
    program = "import signal, clustermodel; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout == "True\n"


def test_an_interrupt_before_the_command_begins_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupting() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["clustermodel.cli.main"], "one_interrupt", lambda **_: interrupting())
    with pytest.raises(SystemExit) as end:
        main(["policies"])
    assert end.value.code == 130
    assert capsys.readouterr().err == "clustermodel: error: interrupted\n"
