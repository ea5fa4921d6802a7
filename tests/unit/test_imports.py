"""The public names, each where it is said to be; and that nothing is imported before it is needed."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import clustermodel
from clustermodel.cli import cli

MAIN = import_module("clustermodel.cli.main")  # not the function of this name
LOADED = """
import atexit, sys
before = set(sys.modules)
atexit.register(lambda: print("\\nloaded:", *sorted(set(sys.modules) - before), file=sys.stderr))
"""
SLOW = {"bokeh", "distributed", "matplotlib", "pandas", "pyarrow", "scipy"}
OF_STUDIES = ["clustermodel.experiment.study", "clustermodel.measure.statistics", "sysconfig"]
OF_FEW_RUNS = [
    "clustermodel.logs.sacct", "clustermodel.policies.preemptive", "clustermodel.theory.checkpointing",
    "clustermodel.workload.distributions", "clustermodel.workload.job_stream", "clustermodel.workload.model", "html", "tomllib",
]  # fmt: skip


def python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2], timeout=120)


def loaded(program: str, *arguments: str) -> set[str]:
    """Return the modules that a program has imported when it ends."""
    done = python(LOADED + program, *arguments)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.rpartition("\nloaded:")[2].split())


def test_importing_the_package_imports_none_of_its_modules_and_nothing_slow() -> None:
    found = loaded("import clustermodel")
    assert {name for name in found if name.startswith("clustermodel")} == {"clustermodel"}
    assert not found & (SLOW | {"numpy", "simpy", "click", "rich"})


@pytest.mark.parametrize(
    ("arguments", "unneeded"),
    [
        (["--help"], ["numpy", "simpy", "rich"]),
        (["sweep", "--help"], []),
        (["run", "--jobs", "9", "--policy", "easy"], [*OF_FEW_RUNS, *OF_STUDIES, "rich.progress"]),
    ],
    ids=" ".join,
)
def test_a_command_imports_only_what_it_needs(arguments: list[str], unneeded: list[str], tmp_path: Path) -> None:
    if "run" in arguments:
        arguments = [*arguments, "--jobs-csv", str(tmp_path)]
    found = loaded("from clustermodel.cli import main; main()", *arguments)
    assert "clustermodel.cli.main" in found
    assert not found & SLOW.union(unneeded)


def test_a_study_imports_only_what_it_needs_and_its_workers_no_more_than_runs_and_files_of_tables(tmp_path: Path) -> None:
    program = (
        "from clustermodel import Machine, Scenario, Study, sweep, synthetic_workload\n"
        "def scenario(policy, seed):\n"
        "    return Scenario(machine=Machine(nodes=128), workload=synthetic_workload(jobs=9, seed=seed), policy=policy)\n"
        "def unneeded(result):\n"
        f"    found = sys.modules.keys() & {SLOW.union(OF_FEW_RUNS, ['click', 'rich']) - {'pyarrow'}}\n"
        "    assert not found, found\n"
        "    return 0\n"
        "study = Study(name='s', factors={'policy': ['fcfs', 'easy']}, scenario=scenario, measures={'unneeded': unneeded},\n"
        "              replications=2)\n"
        "table = sweep(study, sys.argv[1], workers=2)\n"
        "assert (len(table), table.failures) == (4, ()), table.failures\n"
    )
    found = loaded(program, str(tmp_path / "out"))
    assert not found & SLOW


def test_processes_of_a_study_have_one_thread_for_products_of_matrices_unless_asked_for_more(tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "from clustermodel import Machine, Scenario, Study, sweep, synthetic_workload\n"
        "def scenario(policy, seed):\n"
        "    return Scenario(machine=Machine(nodes=128), workload=synthetic_workload(jobs=9), policy=policy)\n"
        "def threads(name):\n"
        "    return lambda result: int(os.environ[name])\n"
        "os.environ['MKL_NUM_THREADS'] = '2'\n"
        "before = dict(os.environ)\n"
        "measures = {name: threads(name) for name in ('OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS')}\n"
        "study = Study(name='s', factors={'policy': ['fcfs', 'easy']}, scenario=scenario, measures=measures)\n"
        "table = sweep(study, sys.argv[1], workers=2)\n"
        "print(*table.frame['OPENBLAS_NUM_THREADS'], *table.frame['MKL_NUM_THREADS'], dict(os.environ) == before)\n"
    )
    done = python(program, str(tmp_path / "out"))
    assert (done.returncode, done.stdout.split()) == (0, ["1", "1", "2", "2", "True"]), done.stderr


def test_pandas_is_imported_by_the_first_table_of_a_result_and_nothing_else_slow() -> None:
    program = (
        "from clustermodel import Machine, Scenario, synthetic_workload\n"
        "result = Scenario(machine=Machine(nodes=128), workload=synthetic_workload(jobs=9), policy='easy').run()\n"
        "result.summary(), result.records, result.events\n"
    )
    assert not loaded(program) & SLOW
    assert loaded(program + "result.jobs") & (SLOW - {"pyarrow"}) == {"pandas"}  # which looks for pyarrow


def test_every_public_name_can_be_imported_and_is_defined_where_the_stub_says() -> None:
    stub = ast.parse(Path(clustermodel.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    names = [(alias.name, node.module) for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(name for name, _ in names) == sorted(clustermodel.__all__) == dir(clustermodel)
    for name, module in names:
        defined = getattr(import_module(f"clustermodel.{module}"), name)
        assert getattr(clustermodel, name) is defined
        assert getattr(defined, "__module__", "").removeprefix("clustermodel.") in (module, "", "typing", "types")


OF_EXTRAS = ("bokeh", "distributed", "greenlet", "gymnasium", "jinja2", "markdown_it", "xarray")
NONE_OF_THEM = f"import sys; sys.modules.update(dict.fromkeys({OF_EXTRAS}))\n"


def test_the_base_installation_has_every_public_name() -> None:
    names = "write_report, Study, validate, crossover, tradeoff_map, sweep"
    done = python(NONE_OF_THEM + f"from clustermodel import *; print({names})")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_base_installation_runs_a_study_and_reads_its_results(tmp_path: Path) -> None:
    program = (
        "from clustermodel import Machine, Scenario, Store, Study, sweep, synthetic_workload\n"
        "def scenario(policy, seed):\n"
        "    jobs = synthetic_workload(jobs=30, nodes=32, seed=seed)\n"
        "    return Scenario(machine=Machine(nodes=32), workload=jobs, policy=policy)\n"
        "study = Study(name='s', factors={'policy': ['fcfs', 'easy']}, scenario=scenario, replications=2)\n"
        "table = sweep(study, sys.argv[1], workers=1)\n"
        "with Store.read(sys.argv[1]) as store:\n"
        "    print(len(table), len(store.results()))\n"
    )
    done = python(NONE_OF_THEM + program, str(tmp_path / "out"))
    assert (done.returncode, done.stdout.split()) == (0, ["4", "4"]), done.stderr


def test_a_missing_package_of_an_extra_is_named_with_what_installs_it(tmp_path: Path) -> None:
    done = python(NONE_OF_THEM + f"from clustermodel import write_report\nwrite_report({str(tmp_path)!r}, 'r.html')")
    assert done.stderr.splitlines()[-1] == (
        "clustermodel.errors.SpecificationError: report: the package bokeh is missing; "
        "pip install '.[report]' in a clone of clustermodel installs it"
    )


def test_environments_say_what_installs_gymnasium() -> None:
    done = python(NONE_OF_THEM + "from clustermodel import AgentPolicy\nAgentPolicy\nimport clustermodel.gym")
    assert done.stderr.splitlines()[-1] == (
        "clustermodel.errors.SpecificationError: clustermodel.gym: the package gymnasium is missing; "
        "pip install '.[gym]' in a clone of clustermodel installs it"
    )


def test_commands_are_listed_by_the_first_lines_of_their_help() -> None:
    assert list(cli.commands) == list(MAIN.COMMANDS)
    for name, (module, first_line) in MAIN.COMMANDS.items():
        command = getattr(import_module(f"clustermodel.cli.{module}"), name)
        assert command.name == name
        assert command.help.split("\n\n")[0] == first_line
        for width in (20, 45, 80):
            assert cli.commands[name].get_short_help_str(width) == command.get_short_help_str(width)
