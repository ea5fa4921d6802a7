"""The import direction of docs/design: specification -> decision -> mechanism -> measurement -> study."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import clustermodel
from clustermodel.cli.main import COMMANDS

ROOT = Path(clustermodel.__file__).parent

FOUNDATION = {"errors", "ticks", "arrays", "output_files"}
SPECIFICATION = FOUNDATION | {"machine", "job", "speedup", "workload"}
DECISION = SPECIFICATION | {"schedule", "policies", "predict"}
MEASUREMENT = DECISION | {"measure"}
MECHANISM = MEASUREMENT | {"sim"}
EVERYTHING = MECHANISM | {"theory", "study", "report"}

MAY_IMPORT = {
    "errors": set(),
    "ticks": set(),
    "arrays": set(),
    "output_files": {"errors"},
    "machine": FOUNDATION,
    "job": SPECIFICATION,
    "speedup": SPECIFICATION,
    "workload": SPECIFICATION,
    "schedule": FOUNDATION | {"schedule"},
    "policies": FOUNDATION | {"machine", "speedup", "schedule", "policies", "predict"},
    "predict": FOUNDATION | {"machine", "policies"},
    "measure": FOUNDATION | {"job", "schedule", "policies", "measure"},
    "sim": MECHANISM,
    "theory": FOUNDATION | {"theory"},
    "report": EVERYTHING,
    "study": EVERYTHING,
    "cli": EVERYTHING | {"cli"},
    "__init__": EVERYTHING,
    "__main__": {"cli"},
}


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module)
    return found


def part_of(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


MODULES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_what_its_part_may(path: Path) -> None:
    allowed = MAY_IMPORT[part_of(path)]
    for name in imports(path):
        package, _, rest = name.partition(".")
        if package == "clustermodel":
            assert rest.split(".")[0] in allowed, f"{path.name} imports {name}"


def test_the_command_line_has_no_import_circle_not_even_for_types() -> None:
    modules = {".".join(("clustermodel", *path.relative_to(ROOT).with_suffix("").parts)): path for path in MODULES}
    modules = {name.removesuffix(".__init__"): path for name, path in modules.items() if name.startswith("clustermodel.cli.")}
    assert {"clustermodel.cli", "clustermodel.cli.main", "clustermodel.cli.run"} <= modules.keys()
    graph = {name: imports(path) & modules.keys() for name, path in modules.items()}
    graph["clustermodel.cli.main"] |= {f"clustermodel.cli.{module}" for module, _ in COMMANDS.values()}  # when they are used
    assert list(TopologicalSorter(graph).static_order())  # a circle raises CycleError


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_mechanism_imports_simpy(path: Path) -> None:
    uses_simpy = any(name.split(".")[0] == "simpy" for name in imports(path))
    assert not uses_simpy or part_of(path) == "sim"


def test_every_module_says_what_it_is_responsible_for() -> None:
    for path in MODULES:
        assert ast.get_docstring(ast.parse(path.read_text())), f"{path} has no module docstring"


def test_theory_does_not_know_the_simulator() -> None:
    for path in (ROOT / "theory").glob("*.py"):
        assert not any(name.startswith(("clustermodel.sim", "clustermodel.measure")) for name in imports(path))


def test_only_predictors_look_at_run_times() -> None:
    looking = {path.name for path in (ROOT / "policies").glob("*.py") if ".run_time" in path.read_text(encoding="utf-8")}
    assert looking == set()
    assert ".run_time" in (ROOT / "predict.py").read_text(encoding="utf-8")
