"""Every error a user can cause on the command line: one clear line, a non-zero exit, no traceback, finished work kept."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from clustermodel import Scenario, synthetic_workload
from clustermodel.cli import main
from clustermodel.policies.registry import policy_names

GOOD_LINE = "1 0 -1 100 2 -1 -1 2 200 -1 1 7 1 -1 -1 -1 -1 -1"


@pytest.fixture
def fails(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command that must fail with ``code`` and return its one line on standard error."""

    def run(*arguments: object, code: int = 2) -> str:
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        assert stopped.value.code == code
        lines = capsys.readouterr().err.splitlines()
        complaints = [line for line in lines if line.startswith("clustermodel: error: ")]
        assert len(complaints) == 1
        assert lines[-1] == complaints[0]
        assert "Traceback" not in "".join(lines)
        return complaints[0].removeprefix("clustermodel: error: ")

    return run


def swf(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines))
    return path


def test_a_time_constant_below_a_tick_is_a_tick(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["run", "--jobs", "20", "--nodes", "8", "--policy", "adaptive:window_s=1e-7", "--json"])
    assert stopped.value.code == 0
    assert json.loads(capsys.readouterr().out)[0]["jobs"] == 20


def test_files_that_are_no_whole_gzip(fails: Callable[..., str], tmp_path: Path) -> None:
    path = swf(tmp_path / "a.swf.gz", GOOD_LINE)
    assert fails("run", "--trace", path).startswith(f"{path}: not readable as gzip")
    data = bytearray(gzip.compress("".join(f"{n} {GOOD_LINE[2:]}\n" for n in range(5000)).encode()))
    path.write_bytes(data[:-200])
    message = fails("run", "--trace", path)
    assert message.startswith(f"{path}: the compressed data ends early, after line ")
    assert message.endswith("the file is truncated")
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    assert fails("run", "--trace", path).startswith(f"{path}:")  # what is damaged may still unpack, to nonsense lines


def test_lenient_counts_and_skips_malformed_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = swf(tmp_path / "bad.swf", "; MaxProcs: 4", GOOD_LINE, "1 2 3", GOOD_LINE.replace("1 0", "2 5", 1))
    with pytest.raises(SystemExit) as stopped:
        main(["run", "--trace", str(path), "--policy", "easy", "--json", "--lenient"])
    assert stopped.value.code == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)[0]["jobs"] == 2
    assert "1 job dropped: malformed line" in printed.err


def test_two_jobs_of_one_number(fails: Callable[..., str], tmp_path: Path) -> None:
    path = swf(tmp_path / "twice.swf", GOOD_LINE, GOOD_LINE)
    assert fails("run", "--trace", path) == (
        f"{path}:2: field job_number: 1 is used by 2 jobs, first on line 1; job numbers must be unique"
    )


@pytest.mark.parametrize(
    ("lines", "because"),
    [
        ((), "the file has no job lines"),
        (("; only a comment",), "the file has no job lines"),
        ((GOOD_LINE.replace(" 100 ", " 0 ", 1),), "1 job dropped: run time zero"),
    ],
)
def test_an_empty_trace_says_why_nothing_is_left(
    fails: Callable[..., str], tmp_path: Path, lines: tuple[str, ...], because: str
) -> None:
    path = swf(tmp_path / "empty.swf", *lines)
    assert fails("run", "--trace", path) == f"{path}: no usable job: {because}"


@pytest.mark.long
@pytest.mark.parametrize("policy", policy_names())
def test_jobs_that_take_longer_than_64_bit_ticks_are_refused_in_one_line(
    fails: Callable[..., str], tmp_path: Path, policy: str
) -> None:
    longest = GOOD_LINE.replace(" 100 ", " 1e10 ").replace(" 200 ", " 1e10 ")
    path = swf(tmp_path / "long.swf", "; MaxProcs: 2", *(f"{n} {longest[2:]}" for n in range(1, 1001)))
    # five gangs at a time do not take less time than one after the other
    in_rounds = ("--round", "1e9") if policy in ("max-min", "finish-time-fair") else ()
    message = fails("run", "--trace", path, "--policy", policy, "--quantum", "1e9", *in_rounds)
    assert message.startswith("the jobs take too long: at ")
    assert message.endswith("beyond the 9.22337e+12 s that fit 64-bit ticks; give shorter times, fewer jobs or more nodes")


@pytest.mark.parametrize(("nodes", "mpl"), [(2**52, 5), (8, 2**52), (10**6, 11)])
@pytest.mark.parametrize("policy", ["gs", "mbgs", "adaptive"])
def test_a_matrix_that_would_fill_the_memory_is_refused(
    fails: Callable[..., str], tmp_path: Path, policy: str, nodes: int, mpl: int
) -> None:
    path = swf(tmp_path / "jobs.swf", GOOD_LINE)
    message = fails("run", "--trace", path, "--policy", policy, "--nodes", nodes, "--mpl", mpl)
    assert message.startswith(f"{policy}: a matrix of ")
    assert message.endswith(" nodes is not allowed; mpl x nodes must be <= 10,000,000")


def test_selective_suspension_refuses_bitmasks_that_would_fill_the_memory(fails: Callable[..., str], tmp_path: Path) -> None:
    path = swf(tmp_path / "jobs.swf", GOOD_LINE)
    message = fails("run", "--trace", path, "--policy", "ss", "--nodes", 10**12)
    assert message == "ss: a machine of 1,000,000,000,000 nodes is not allowed; nodes must be <= 10,000,000"


def test_a_synthetic_year_for_a_machine_that_its_jobs_cannot_load_is_refused(fails: Callable[..., str]) -> None:
    message = fails("run", "--jobs", 2, "--nodes", 2**52)
    assert message.startswith(f"nodes: {2**52} is not allowed with 2 jobs and load 0.65: an estimate would be ")
    assert message.endswith(" s, and must be <= 1e+10; make more jobs or a smaller machine")


@pytest.mark.parametrize("command", ["info", "fit"])
def test_a_machine_larger_than_any_is_refused_by_the_trace_commands(
    fails: Callable[..., str], tmp_path: Path, command: str
) -> None:
    path = swf(tmp_path / "jobs.swf", GOOD_LINE)
    message = fails("trace", command, path, "--nodes", 10**400)
    assert message == f"--nodes: 1{'0' * 29}... (401 characters) is not allowed; it must be >= 1 and <= 2^53"


def test_unwritable_files_from_python_are_output_errors(tmp_path: Path) -> None:
    result = Scenario(workload=synthetic_workload(jobs=5)).run()
    for write in (result.to_csv, result.to_swf):
        with pytest.raises(OSError, match=r"cannot be written: No such file or directory"):
            write(tmp_path / "nowhere" / "file")
