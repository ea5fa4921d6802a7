"""What users import, in the pages that they read: the public names, and modules where a page is about what is inside."""

import ast
import doctest
import inspect
import pydoc
import re
from pathlib import Path

import pytest

import clustermodel
from clustermodel.sim.compiled import is_compiled

ROOT = Path(clustermodel.__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

MODULES_A_PAGE_NAMES = {
    "failures.md": {"theory.checkpointing"},
    "guide_policy.md": {"policies.easy"},
    "learning.md": {"gym"},
    "outputs.md": {"theory.capacity_loss"},
}
"""Modules that a page imports from on purpose: it is about what is inside, about formulas, or about the command line."""

FOR_PICTURES_ONLY = {"policy_colour", "policy_styles"}


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_import_public_names_or_name_a_module_on_purpose(page: Path) -> None:
    found = imported(examples(page))
    assert {name for module, name in found if not module} <= set(clustermodel.__all__)
    assert {module for module, _ in found if module} == MODULES_A_PAGE_NAMES.get(page.name, set())


def test_pages_have_examples_that_import() -> None:
    importing = {page.name for page in PAGES if imported(examples(page))}
    assert importing >= {"README.md", "01_machine_and_jobs.md", "08_study.md", "outputs.md", "pictures.md", "studies.md"}
    assert importing >= {page.name for page in PAGES if page.name.startswith("guide_")} - {"guide_cluster.md"}


def test_every_public_class_and_function_is_described_on_one_page() -> None:
    pages = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "api").glob("*.md"))]
    blocks = re.findall(r"```\{public-names\}\n(.*?)```", "\n".join(pages), re.DOTALL)
    described = " ".join(blocks).split()
    public = [name for name in clustermodel.__all__ if callable(getattr(clustermodel, name)) and name != "Decision"]
    assert sorted(described) == sorted(public)
    for name in set(clustermodel.__all__) - set(public):
        assert any(name in page for page in pages)


@pytest.mark.parametrize("script", sorted((ROOT / "scenarios").glob("*.py")), ids=lambda script: script.name)
def test_scenarios_import_public_names_from_the_package(script: Path) -> None:
    found = imported(script.read_text(encoding="utf-8"))
    assert not {name for module, name in found if module} & set(clustermodel.__all__)


def test_what_serves_pictures_only_is_not_public() -> None:
    assert not FOR_PICTURES_ONLY & set(clustermodel.__all__)


@pytest.mark.skipif(is_compiled(), reason="a compiled class has no texts of attributes")
@pytest.mark.parametrize("seen", [clustermodel.View, clustermodel.QueuedJob, clustermodel.RunningJob])
def test_help_says_what_policies_see(seen: type) -> None:
    texts = {name: text for name, text in seen.__slots__.items() if text}  # type: ignore[attr-defined]
    shown = pydoc.render_doc(seen, renderer=pydoc.plaintext)
    assert all(f" |  {name}\n |      {inspect.cleandoc(text).splitlines()[0]}" in shown for name, text in texts.items())
    assert len(texts) > 4
