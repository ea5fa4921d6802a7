"""The structure of docs/design: which part may import which at run time, no import circle, and one part that knows SimPy."""

import ast
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import clustermodel
from clustermodel.cli.main import COMMANDS

ROOT = Path(clustermodel.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
PACKAGES = {".".join(path.parent.relative_to(ROOT).parts) for path in MODULES if path.name == "__init__.py"}

FOUNDATION = {"errors", "ticks", "arrays", "validation", "plugins", "text"}
RULES = {f"site.{module}" for module in ("site", "limits", "qos", "order", "concerns")}
"""Of a site; the other modules of site/ say what a log shows of them."""
SPECIFICATION = FOUNDATION | RULES | {"machine", "workload", "logs"}
DECISION = SPECIFICATION | {"plans", "policies"}
RECORDING = DECISION | {"recording"}
MECHANISM = RECORDING | {"sim", "theory"}
MEASUREMENT = RECORDING | {"measure", "site", "theory"}
FIGURES = MEASUREMENT | {"figures"}
EXPERIMENT = MECHANISM | FIGURES | {"experiment"}

MAY_IMPORT = {
    "errors": set(),
    "ticks": set(),
    "arrays": set(),
    "text": {"errors", "validation", "text"},
    "validation": {"errors"},
    "plugins": {"errors"},
    "machine": FOUNDATION | {"machine", "logs.values"},  # outages are read from logs
    "site": SPECIFICATION - {"logs"} | {"site"},
    "workload": FOUNDATION | RULES | {"machine", "workload"},
    "logs": SPECIFICATION,
    "plans": FOUNDATION | {"machine.node_set", "plans", "theory"},
    "policies": FOUNDATION | {"machine", "workload.speedup", "plans", "policies"},
    "recording": FOUNDATION | {"machine.node_set", "workload.job", "plans", "recording"},
    "sim": MECHANISM,
    "measure": RECORDING | {"measure"},
    "theory": FOUNDATION | {"theory"},
    "experiment": EXPERIMENT,
    "figures": FIGURES,
    "report": EXPERIMENT | {"report"},
    "gym": EXPERIMENT,
    "cli": EXPERIMENT | {"report", "cli"},
    "__init__": EXPERIMENT | {"report"},
    "__main__": {"cli"},
}
"""What each part may import: parts, or single modules of parts (``workload.speedup``)."""


@cache
def imports(path: Path, *, types: bool = False) -> set[str]:
    """Every module that a file imports: at run time, at the top or in a function, and with ``types`` for types only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in () if types else tree.body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}  # one of these may be a module
    return found


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def name_of(path: Path) -> str:
    return ".".join(("clustermodel", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


def import_graph(*, types: bool = False) -> dict[str, set[str]]:
    """Module -> the modules of the package that it imports; the package itself looks names up on use."""
    modules = {name_of(path): path for path in MODULES if path != ROOT / "__init__.py"}
    graph = {name: imports(path, types=types) & modules.keys() - {name} for name, path in modules.items()}
    graph["clustermodel.cli.main"] |= {f"clustermodel.cli.{module}" for module, _ in COMMANDS.values()}  # when they are used
    return graph


def test_a_module_imports_only_what_its_part_may() -> None:
    modules = {name_of(path).removeprefix("clustermodel.") for path in MODULES}
    offenders = []
    for path in MODULES:
        for name in imports(path):
            module = name.removeprefix("clustermodel.")
            if module == name or module not in modules or module in PACKAGES:
                continue  # another package, a name in a module, or the docstring of a part
            if not {module, module.partition(".")[0]} & MAY_IMPORT[part_of(path)]:
                offenders.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not offenders


def test_there_is_no_import_circle() -> None:
    graph = import_graph()
    assert {
        "clustermodel.experiment.scenario",
        "clustermodel.figures.result_plots",
        "clustermodel.cli.run_command",
    } <= graph.keys()
    assert "clustermodel.sim.coordinator" in graph["clustermodel.sim.simulation"]
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as problem:
        pytest.fail(" -> ".join(reversed(problem.args[1])))


@pytest.mark.parametrize("part", ["experiment", "sim"])
def test_nor_is_there_one_of_types_in(part: str) -> None:
    """Two modules that know each other's types are one thing, or one of them holds two."""
    within = {name for name in import_graph() if name.startswith(f"clustermodel.{part}.")}
    graph = {name: known & within for name, known in import_graph(types=True).items() if name in within}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as problem:
        pytest.fail(" -> ".join(reversed(problem.args[1])))


def test_only_the_mechanism_imports_simpy() -> None:
    using = {part_of(path) for path in MODULES if any(name.split(".")[0] == "simpy" for name in imports(path))}
    assert using == {"sim"}


def test_every_module_says_what_it_is_responsible_for() -> None:
    for path in MODULES:
        assert ast.get_docstring(ast.parse(path.read_text())), f"{path} has no module docstring"


def test_the_coordinator_does_not_ask_where_a_gang_runs() -> None:
    assert not any(name.startswith("clustermodel.sim.time_sharing") for name in imports(ROOT / "sim" / "coordinator.py"))


def test_theory_does_not_know_the_simulator() -> None:
    for path in (ROOT / "theory").glob("*.py"):
        assert not any(name.startswith(("clustermodel.sim", "clustermodel.measure")) for name in imports(path))


def test_only_predictors_look_at_run_times() -> None:
    looking = {path.name for path in (ROOT / "policies").rglob("*.py") if ".run_time" in path.read_text(encoding="utf-8")}
    assert looking == {"predictors.py"}


def test_at_most_ten_modules_are_at_the_top() -> None:
    assert len(list(ROOT.glob("*.py"))) <= 10


def test_no_two_modules_have_one_name() -> None:
    names = Counter(path.name for path in MODULES if path.name != "__init__.py")
    assert not [name for name, times in names.items() if times > 1]
