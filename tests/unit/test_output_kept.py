"""Output that is kept whatever its readers, signals or the code of users do."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import started

ROOT = Path(__file__).resolve().parents[2]
POLICY = """
import multiprocessing, os, subprocess, sys, threading, time
from concurrent.futures import ProcessPoolExecutor
from clustermodel import Machine, Scenario, Start, synthetic_workload


class Left:
    name = "left"

    def start(self, setup):
        self.first = True
        return self

    def decide(self, batch, view):
        if self.first:
            self.first = False
            {left}
        for job in view.waiting.values():
            if job.nodes <= view.idle:
                return [Start(job=job)]
            break
        return []


workload = synthetic_workload(jobs=5, nodes=8)
"""
SCENARIO = "scenario = Scenario(machine=Machine(nodes=8), workload=workload, policy=Left())\n"
STUDY = """
from clustermodel import Study


def scenario(load, policy, seed):
    return Scenario(machine=Machine(nodes=8), workload=synthetic_workload(jobs=5, nodes=8, load=load), policy=Left())


study = Study(name="left", factors={{"load": [0.5, 0.7], "policy": ["left"]}}, scenario=scenario)
"""


def shell(tmp_path: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell in which ``$MODEL`` is the command."""
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MODEL": f"{sys.executable} -m clustermodel"},
    )


LEFT = {
    "thread": "threading.Thread(target=time.sleep, args=(3600,)).start()",
    "process": "multiprocessing.get_context('fork').Process(target=time.sleep, args=(3600,)).start()",
    "fork": "os.fork() or time.sleep(3600)",
    "forks of forks": "os.fork() or (os.fork(), time.sleep(3600))",
    "pool": "self.pool = ProcessPoolExecutor(1); self.pool.submit(time.sleep, 3600)",
    "fork that returns": "os.fork()",  # last: spawned processes of a pool that the fork made would outlive it
}


@pytest.mark.long
@pytest.mark.parametrize("left", LEFT)
def test_what_a_policy_leaves_does_not_keep_a_run_or_its_reader_waiting(tmp_path: Path, left: str) -> None:
    (tmp_path / "s.py").write_text(POLICY.format(left=LEFT[left]) + SCENARIO)
    finished = shell(tmp_path, "$MODEL run s.py --json | cat")
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout)[0]["jobs"] == 5


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_nor_a_sweep(tmp_path: Path, workers: int) -> None:
    (tmp_path / "s.py").write_text(POLICY.format(left="; ".join(LEFT.values())) + STUDY.format())
    finished = shell(tmp_path, f"$MODEL sweep s.py --out out --workers {workers} 2>&1 | cat")
    assert finished.returncode == 0, finished.stdout
    assert "2 of 2 runs done" in finished.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    "printing",
    ["print('policy')", "os.write(1, b'policy')", "subprocess.run(['echo', 'policy'])", "sys.__stdout__.write('policy')"],
)
def test_what_a_policy_prints_is_not_in_the_json(tmp_path: Path, printing: str) -> None:
    (tmp_path / "s.py").write_text(POLICY.format(left=printing) + "print('script')\n" + SCENARIO)
    finished = shell(tmp_path, "$MODEL run s.py --json")
    assert json.loads(finished.stdout)[0]["policy"] == "left"
    assert "policy" in finished.stderr
    assert "script" in finished.stderr


@pytest.mark.long
@pytest.mark.parametrize("reader", ["head -c 1", "true"])
def test_files_are_written_though_nobody_reads_the_table(tmp_path: Path, reader: str) -> None:
    command = "$MODEL run --jobs 200 --policy fcfs --policy easy --figure a.png --jobs-csv out"
    shell(tmp_path, f"{command} 2>&1 | {reader}")
    assert (tmp_path / "a.png").is_file()
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"fcfs.csv", "easy.csv"}
    (tmp_path / "s.py").write_text(POLICY.format(left="pass") + STUDY.format())
    shell(tmp_path, f"$MODEL sweep s.py --out results --workers 1 2>&1 | {reader}")
    shell(tmp_path, f"$MODEL results results --csv b.csv 2>&1 | {reader}")
    assert len((tmp_path / "b.csv").read_text().splitlines()) == 3


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_no_part_of_a_file(tmp_path: Path, number: signal.Signals) -> None:
    """The policy sends the signal, in the middle of the run."""
    sending = f"os.kill(os.getpid(), {int(number)})"
    (tmp_path / "s.py").write_text(POLICY.format(left=sending) + SCENARIO)
    command = [sys.executable, "-m", "clustermodel", "run", "s.py", "--stream", "--jobs-parquet", "out"]
    with started(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number, err
    assert "0 of 1 runs had finished" in err
    assert "Traceback" not in err
    assert list((tmp_path / "out").iterdir()) == []
