"""What commands print: on full disks, into closed streams, on ASCII terminals; and names that drive terminals."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from clustermodel.figures.terminal import literal
from tests.conftest import Finished
from tests.tiers import some

Command = Callable[..., Finished]

TRACE = (
    "; Computer: caf\u00e9",
    "; MaxProcs: 4",
    "1 0 -1 20 2 -1 -1 -1 20 -1 1 7 1 -1 -1 -1 -1 -1",
    "2 3 -1 5 4 -1 -1 -1 5 -1 1 7 1 -1 -1 -1 -1 -1",
    "3 5 -1 5 4 -1 -1 -1 5 -1 1 7 1 -1 -1 -1 -1 -1",
)
COMMANDS = (
    "--help", "--version", "run --trace jobs.swf", "run --trace jobs.swf --json", "trace info jobs.swf",
    "trace info jobs.swf --json", "trace fit jobs.swf", "policies",
)  # fmt: skip
HOSTILE = "\x1b[31mred\x1b[0m \x9b2J \x1b]0;title\x07 \u202egnp.exe [bold]b[/bold] :warning: end"
"""Colours, a control sequence in one letter, a title of the window, a mark of direction, markup and an emoji of rich."""
ACTS = {"\x1b", "\x9b", "\x07", "\u202e", "\x00", "\r"}


@pytest.fixture
def shell(write_trace: Callable[..., Path], tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command line of the shell, in which ``clustermodel`` is the command, beside a trace."""
    write_trace(*TRACE)

    def run(line: str, **variables: str) -> subprocess.CompletedProcess[str]:
        defined = f'clustermodel() {{ "{sys.executable}" -m clustermodel "$@"; }}; {line}'
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # completion calls the command through env
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(Path(__file__).parents[2]), **variables}
        environment.pop("PYTHONUNBUFFERED", None)
        return subprocess.run(
            ["bash", "-c", defined], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
        )

    return run


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", some(COMMANDS, one_in=2))
def test_a_full_disk_and_a_closed_output_are_one_line(shell: Callable[..., Finished], words: str) -> None:
    for redirection, reason in ((">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")):
        done = shell(f"clustermodel {words} {redirection}")
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == f"clustermodel: error: standard output cannot be written: {reason}"
        assert done.stderr.count("clustermodel: error") == 1
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr


def test_a_script_that_prints_to_a_full_disk_is_one_line_too(shell: Callable[..., Finished], tmp_path: Path) -> None:
    (tmp_path / "prints.py").write_text("print('hello')\n")
    for redirection in (">/dev/full", ">&-"):
        done = shell(f"clustermodel run prints.py {redirection}")
        assert done.returncode != 0
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_where_standard_error_cannot_be_written_results_still_are(shell: Callable[..., Finished], redirection: str) -> None:
    done = shell(f"clustermodel run --trace jobs.swf --json {redirection}")
    assert (done.returncode, len(json.loads(done.stdout)), done.stderr) == (0, 3, "")
    assert shell(f"clustermodel run --trace no.swf {redirection}").returncode == 2


def test_a_file_that_is_opened_does_not_take_the_place_of_a_closed_stream(
    shell: Callable[..., Finished], tmp_path: Path
) -> None:
    done = shell("clustermodel trace fit jobs.swf -o model.json 0<&- >&- 2>&-")
    assert done.returncode == 0
    assert json.loads((tmp_path / "model.json").read_text())["nodes"] == 4


@pytest.mark.parametrize("words", some(COMMANDS, one_in=2))
def test_a_reader_that_has_seen_enough_is_no_error_to_talk_about(shell: Callable[..., Finished], words: str) -> None:
    done = shell(f"(clustermodel {words}; echo $? >code) | true; cat code")
    assert done.stdout == "1\n"
    assert "error" not in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.long
def test_a_terminal_that_knows_only_ascii_gets_escapes(shell: Callable[..., Finished], words: str) -> None:
    done = shell(f"clustermodel {words}", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert (done.stdout + done.stderr).isascii()
    if words == "trace info jobs.swf":
        assert done.stdout.startswith("Computer: caf\\xe9\n")
    if "--json" in words:
        json.loads(done.stdout)


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_shells_get_a_script_that_completes_the_command(shell: Callable[..., Finished], name: str) -> None:
    done = shell("clustermodel", _CLUSTERMODEL_COMPLETE=f"{name}_source")
    assert (done.returncode, done.stderr) == (0, "")
    assert "_CLUSTERMODEL_COMPLETE" in done.stdout
    if shutil.which(name):
        checked = subprocess.run([name, "-n"], input=done.stdout, text=True, capture_output=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("tr", "trace"), ("trace in", "info"), ("run --kil", "--kill-at-estimate"), ("run --policy eas", "easy"),
        ("run --model b", "blue-pacific blue-pacific-2"), ("run --fidelity n", "node"),
    ],
)  # fmt: skip
@pytest.mark.long
def test_commands_options_and_names_are_completed(shell: Callable[..., Finished], words: str, expected: str) -> None:
    completed = shell(
        'eval "$(_CLUSTERMODEL_COMPLETE=bash_source clustermodel)"; ' + f"COMP_WORDS=(clustermodel {words}); "
        f'COMP_CWORD={len(words.split())}; _clustermodel_completion clustermodel; echo "${{COMPREPLY[@]}}"'
    )
    assert completed.stderr == ""
    assert completed.stdout.split() == expected.split()


def test_a_literal_is_printed_letter_by_letter() -> None:
    assert literal("[bold]x\x1b[0m\x00\n") == "\\[bold]x\\x1b[0m\\x00\\n"
    assert literal(Path("a b.swf")) == "a b.swf"


def assert_harmless(finished: Finished, *, shown: bool = True) -> None:
    text = str(finished.out) + str(finished.err)
    assert not ACTS & set(text)
    assert "Traceback" not in text
    if shown:
        expected = r"\x1b[31mred\x1b[0m \x9b2J \x1b]0;title\x07 \u202egnp.exe [bold]b[/bold] :warning: end"
        assert expected in " ".join(text.split())


SCRIPT = """
from clustermodel import Job, Machine, Scenario, Workload
jobs = Workload.from_jobs([Job(id=n, nodes=2, submit_s=n, run_s=10) for n in range(1, 5)], name={workload!r})
class Mine:
    name = {policy!r}
    def start(self, setup):
        return self
    def decide(self, batch, view):
        {decide}
scenario = Scenario(machine=Machine(nodes=4), workload=jobs, policy={used}, name={name!r})
"""


def script(
    tmp_path: Path, *, decide: str = "pass", used: str = "'easy'", name: str = "", workload: str = "w", policy: str = "p"
) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(SCRIPT.format(decide=decide, used=used, name=name, workload=workload, policy=policy))
    return path


def test_the_name_of_a_workload_does_not_drive_the_terminal(terminal: Command, tmp_path: Path) -> None:
    finished = terminal("run", script(tmp_path, workload=HOSTILE), columns=200)
    assert finished.code == 0
    assert_harmless(finished)


def test_the_name_of_a_scenario_is_refused_without_driving_the_terminal(command_line: Command, tmp_path: Path) -> None:
    finished = command_line("run", script(tmp_path, name=HOSTILE))
    assert finished.code == 2
    assert "it must be a line of text without control characters" in finished.err
    assert_harmless(finished, shown=False)


@pytest.mark.parametrize("decide", [f"raise ValueError({HOSTILE!r})", "return []", "return [1]"])
def test_names_and_errors_of_a_policy_do_not_drive_the_terminal(command_line: Command, tmp_path: Path, decide: str) -> None:
    path = script(tmp_path, used="Mine()", policy=HOSTILE, decide=decide)
    finished = command_line("run", path)
    assert finished.code in (1, 2)
    assert_harmless(finished)
    assert not ACTS & set(str(command_line("run", path, "--traceback").err))


def test_names_of_files_do_not_drive_the_terminal(
    command_line: Command, write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    name = HOSTILE.replace("/", "")  # in which no file can have a slash
    there = write_trace(*TRACE, name=f"{name}.swf")
    for arguments in (
        ("run", "--trace", there), ("run", "--trace", tmp_path / f"no {HOSTILE}"), ("run", tmp_path / f"no {HOSTILE}.py"),
        ("run", "--policy", HOSTILE), ("trace", "fit", there, "-o", tmp_path / f"{name}.json"), (HOSTILE,),
        ("trace", "fit", there, "-o", tmp_path / "no" / HOSTILE), ("results", tmp_path / f"no {HOSTILE}"),
    ):  # fmt: skip
        assert_harmless(command_line(*arguments), shown=False)
    assert "\\x1b[31mred" in str(command_line("trace", "fit", there, "-o", tmp_path / name).err)
