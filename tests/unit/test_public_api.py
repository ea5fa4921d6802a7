"""What users import, in the pages that they read: the public names, and the modules that the pages of docs/api list."""

from __future__ import annotations

import ast
import doctest
import re
from pathlib import Path

import pytest

import clustermodel

ROOT = Path(clustermodel.__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
API = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "api").glob("*.md"))}
"""The pages of the reference: index, user, policies (for their authors) and internals."""

MODULES_A_PAGE_NAMES = {
    "design.md": {
        "experiment.design",
        "policies.backfilling.scheduler",
        "schedule.node_set",
        "schedule.reservations",
        "schedule.profile",
        "sim.events",
    },
    "failures.md": {"theory.checkpointing"},
    "guide_policy.md": {"policies.easy"},
    "model.md": {"schedule.node_set"},
    "outputs.md": {"theory.capacity"},
    "studies.md": {"experiment.measure_table"},
    "workloads.md": {"theory.queueing", "workload.flurry"},
}
"""Modules that a page imports from on purpose: it is about what is inside, about formulas, or about the command line."""

FOR_PICTURES_ONLY = {"Rehome", "policy_colour", "policy_styles"}

INTERNAL = {
    "arrays",
    "experiment.dask_cluster",
    "experiment.processes",
    "experiment.user_code",
    "experiment.worker",
    "leftovers",
    "figures.terminal",
    "html",
    "output_files",
    "readable",
    "tables",
    "text_files",
    "validation",
    "workload.log_file",
    "workload.log_jobs",
    "workload.log_workload",
    "workload.node_names",
    "workload.notebook",
    "workload.pbs_resources",
    "workload.sacct_json",
    "workload.recorded_frames",
    "workload.sacct_records",
}
"""Modules that only other modules of the package use.  The part ``cli`` is internal too: its interface is the commands."""

PARTS = {
    "Specifications": {"machine", "failures", "job", "speedup", "memory_units", "ticks"},
    "Workloads": {"workload"},
    "Schedules": {"schedule"},
    "Policies": {"policies"},
    "Recording": {"recording"},
    "Mechanism": {"sim", "compiled"},
    "Measurement": {"measure"},
    "Theory": {"theory"},
    "Statistics": {"statistics", "equivalence"},
    "Figures": {"figures"},
    "Studies": {"experiment"},
    "Reports": {"report"},
    "Plug-ins": {"plugins"},
    "Errors": {"errors"},
}
"""The sections of the pages in docs/api, and the parts of the package whose modules they list."""


def examples(page: Path) -> str:
    """Return the code of a page's examples: doctests, and what the plot directive runs."""
    text = page.read_text(encoding="utf-8")
    plots = re.findall(r"^   (?:from clustermodel|import clustermodel).*$", text, re.MULTILINE)
    shown = re.findall(r"^\.\.\. (from clustermodel.*|import clustermodel.*)$", text, re.MULTILINE)  # a script in an example
    tests = [example.source for example in doctest.DocTestParser().get_examples(text)]
    return "\n".join([*tests, *(line.strip() for line in plots), *shown])


def imported(code: str) -> set[tuple[str, str]]:
    """Return what a program imports from the package: module, relative to it, and name."""
    nodes = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom) and node.module]
    return {
        (node.module.removeprefix("clustermodel").removeprefix("."), alias.name)
        for node in nodes
        if node.module.partition(".")[0] == "clustermodel"
        for alias in node.names
    }


def has_public_members(path: Path) -> bool:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return any(isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_") for node in body)


def modules() -> set[str]:
    """Return the modules with public functions or classes, by their names relative to the package."""
    package = ROOT / "clustermodel"
    return {
        ".".join(path.relative_to(package).with_suffix("").parts) for path in package.rglob("*.py") if has_public_members(path)
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_import_public_names_or_name_a_module_on_purpose(page: Path) -> None:
    found = imported(examples(page))
    assert {name for module, name in found if not module} <= set(clustermodel.__all__)
    assert {module for module, _ in found if module} == MODULES_A_PAGE_NAMES.get(page.name, set())


def test_pages_have_examples_that_import() -> None:
    importing = {page.name for page in PAGES if imported(examples(page))}
    assert importing >= {"README.md", "index.md", "tutorial.md", "outputs.md", "pictures.md", "studies.md"}
    assert importing >= {page.name for page in PAGES if page.name.startswith("guide_")} - {"guide_cluster.md"}


@pytest.mark.parametrize("script", sorted((ROOT / "scenarios").glob("*.py")), ids=lambda script: script.name)
def test_scenarios_import_public_names_from_the_package(script: Path) -> None:
    found = imported(script.read_text(encoding="utf-8"))
    assert not {name for module, name in found if module} & set(clustermodel.__all__)


def test_what_serves_pictures_only_is_not_public() -> None:
    assert not FOR_PICTURES_ONLY & set(clustermodel.__all__)


def listed(page: str) -> list[str]:
    """Return the modules that a page of the reference lists, by their names relative to the package."""
    return re.findall(r"automodule:: clustermodel\.(\S+)", API[page])


def test_the_reference_lists_every_module_once() -> None:
    every = [name for page in API for name in listed(page)]
    assert len(every) == len(set(every))
    assert modules() == {*every, *INTERNAL, *(name for name in modules() if name.startswith("cli."))}
    assert not INTERNAL & set(every)


@pytest.mark.parametrize("page", API)
def test_the_reference_lists_modules_in_the_section_of_their_part(page: str) -> None:
    sections = re.split(r"^## (.+)$", API[page], flags=re.MULTILINE)[1:]
    for title, text in zip(sections[::2], sections[1::2], strict=True):
        assert {name.partition(".")[0] for name in re.findall(r"automodule:: clustermodel\.(\S+)", text)} <= PARTS[title]


@pytest.mark.parametrize("page", API)
def test_the_reference_has_a_heading_for_each_module(page: str) -> None:
    headings = re.findall(r"^### (\S+)$", API[page], re.MULTILINE)
    assert headings == [f"clustermodel.{name}" for name in listed(page)]


def test_public_names_are_defined_in_modules_for_users_and_authors_of_policies() -> None:
    assert set(clustermodel._MODULES.values()) <= {*listed("user"), *listed("policies")}
