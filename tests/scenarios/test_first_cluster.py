"""``clustermodel init`` writes a small cluster, whose commands all work, and ``clustermodel scenarios`` copies studies."""

import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest

from clustermodel import Scenario, Site, check_policy, read_sacct
from clustermodel.logs.sacct import SACCT_COMMAND
from tests.conftest import Finished, missing
from tests.scripts import SCENARIOS, defined_in

Command = Callable[..., Finished]
SHIPPED = SCENARIOS / "first_cluster"
FILES = ("README.md", "jobs.sacct", "site.toml", "policy.py", "study.py")
BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)
COMMANDS = BLOCK.findall((SHIPPED / "README.md").read_text())[0].replace("\\\n", "").splitlines()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that ``clustermodel init`` has written."""
    folder = tmp_path_factory.mktemp("first") / "cluster"
    ran = in_shell(f"clustermodel init {folder}", folder.parent)
    assert ran.returncode == 0, ran.stderr
    return folder


def in_shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as it is pasted into a terminal of 80 columns, in an activated environment."""
    program, *arguments = shlex.split(command)
    words = {"clustermodel": [sys.executable, "-m", "clustermodel"], "python": [sys.executable]}[program]
    environment = {"COLUMNS": "80", "PATH": sysconfig.get_path("scripts"), "PYTHONPATH": str(SCENARIOS.parent)}
    return subprocess.run(
        [*words, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


def test_init_writes_the_files_and_says_what_is_next(command_line: Command, tmp_path: Path) -> None:
    ran = command_line("init", tmp_path / "a b")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.splitlines()[-2:] == [f"  cd '{tmp_path}/a b'", "  clustermodel whatif --trace jobs.sacct"]
    assert {path.name: path.read_bytes() for path in (tmp_path / "a b").iterdir()} == {
        name: (SHIPPED / name).read_bytes() for name in FILES
    }


@pytest.mark.parametrize("name", FILES)
def test_init_overwrites_nothing(command_line: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    ran = command_line("init", tmp_path)
    assert ran.code == 2
    assert ran.err == f"clustermodel: error: {tmp_path / name}: exists; nothing is written; give another folder\n"
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_the_readme_is_short_and_tries_every_kind_of_command() -> None:
    text = (SHIPPED / "README.md").read_text()
    assert len(text.splitlines()) <= 24
    tried = {command.split()[1] for command in COMMANDS if command.startswith("clustermodel")}
    assert tried == {"whatif", "run", "sweep", "results", "report"}
    assert max(len(line) for name in ("README.md", "site.toml") for line in (SHIPPED / name).read_text().splitlines()) <= 80


@pytest.mark.parametrize("command", [each for each in COMMANDS if "results" not in each])
@pytest.mark.long
def test_a_command_of_the_readme_works(cluster: Path, command: str) -> None:
    ran = in_shell(command, cluster)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout
    if "--report" in command:
        assert "With 72 nodes the mean wait falls from 4.3 to 2.3 h" in ran.stdout + ran.stderr
        assert "With 72 nodes" in (cluster / "nodes.html").read_text()
    if "--figure" in command:
        assert (cluster / "waits.png").stat().st_size > 10_000


@pytest.mark.long
def test_the_study_of_the_readme_and_its_report(cluster: Path) -> None:
    for command in [each for each in COMMANDS if "results" in each]:
        if "clustermodel report" in command and missing("bokeh"):
            continue
        ran = in_shell(command, cluster)
        assert ran.returncode == 0, ran.stderr
    assert not re.search(r"failed: |offered load", ran.stderr)


def test_pytest_runs_the_test_of_the_policy(cluster: Path) -> None:
    assert "1 passed" in in_shell("python -m pytest -p no:cacheprovider policy.py", cluster).stdout


def test_the_policy_keeps_every_rule_and_is_short() -> None:
    policy = defined_in("first_cluster/policy").ShortestFirst()
    assert check_policy(policy) == []
    text = (SHIPPED / "policy.py").read_text()
    lines = text[text.index("    def decide") : text.index("def nodes_of")].strip().splitlines()
    assert len(lines) <= 12


def test_the_log_is_what_its_script_makes() -> None:
    assert defined_in("first_cluster/make_log").log() == (SHIPPED / "jobs.sacct").read_text()
    assert (SHIPPED / "jobs.sacct").stat().st_size < 320_000


def test_the_log_has_the_fields_of_the_recommended_command() -> None:
    fields = re.findall(r"--format=(\S+)", SACCT_COMMAND)[0].split(",")
    assert (SHIPPED / "jobs.sacct").read_text().splitlines()[0].split("|") == fields


def test_easy_under_the_rules_of_the_site_waits_as_recorded() -> None:
    log, site = read_sacct(SHIPPED / "jobs.sacct"), Site.from_toml(SHIPPED / "site.toml")
    assert log.machine_nodes == 60
    assert len(log.resampled("weeks", seed=1)) > 1_000  # it has two whole weeks
    recorded = log.seconds("wait")
    result = Scenario(workload=log, policy="easy", site=site).run()
    assert result.jobs["wait_s"].tolist() == recorded.tolist()
    assert 3 < recorded.mean() / 3600 < 6
    weekday = (log.seconds("submit") + 18 * 3600) // 86_400 % 7  # the log begins on a Sunday, at 18:02
    assert not median(recorded[weekday == 0])
    assert median(recorded[(weekday > 0) & (weekday < 6)]) > 3600


def test_scenarios_are_listed_with_their_questions(command_line: Command, terminal: Command) -> None:
    lines = command_line("scenarios").out.splitlines()
    assert "tradeoffs/slice_length: How long should a time slice be?" in lines
    listed = [line.partition(": ")[0] for line in lines]
    assert listed == sorted(listed)
    assert all((SCENARIOS / f"{name}.py").is_file() for name in listed)
    assert not {"first_cluster/make_log", "papers/zhang_2003/load_curves"} & set(listed)
    shown = terminal("scenarios").out.splitlines()
    assert max(map(len, shown)) <= 80
    assert " ".join(" ".join(shown).split()) == " ".join(" ".join(lines).split())


def test_a_copied_scenario_has_what_it_needs(command_line: Command, tmp_path: Path) -> None:
    ran = command_line("scenarios", "papers/zhang_2003/migration", tmp_path)
    names = ["migration.py", "blue_pacific.py", "load_curves.py", "published.toml"]
    assert ran.err.splitlines() == [
        f"{tmp_path}: {', '.join(names)}",
        f"next: clustermodel sweep {tmp_path / 'migration.py'} --out results (its first lines say more)",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    again = command_line("scenarios", "migration", tmp_path)
    assert (again.code, len(again.err.splitlines())) == (2, 1)


def test_a_scenario_may_be_named_by_its_end_or_its_path(
    command_line: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command_line("scenarios", "scenarios/validation/mmc.py").err.splitlines()[-1].startswith(
        "next: clustermodel validate mmc.py --out results"
    )  # fmt: skip
    assert command_line("scenarios", "quickstart", "q").code == 0
    assert command_line("run", "q/quickstart.py").code == 0


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("slice_lenth", "NAME: there is no scenario 'slice_lenth' (did you mean 'slice_length'?); "
         "clustermodel scenarios lists them"),
        ("study", ""),
        ("load_curves", "NAME: there is no scenario 'load_curves'; clustermodel scenarios lists them"),
    ],
)  # fmt: skip
def test_an_unknown_scenario_is_refused(command_line: Command, tmp_path: Path, name: str, problem: str) -> None:
    ran = command_line("scenarios", name, tmp_path / "new")
    assert ran.err.startswith(f"clustermodel: error: {problem}") if problem else ran.code == 0
    assert (tmp_path / "new").exists() is not bool(problem)
