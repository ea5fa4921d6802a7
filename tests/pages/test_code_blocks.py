"""Code on pages fits its column: at most 88 characters a line."""

import ast
import doctest
import re
from collections.abc import Iterator
from pathlib import Path

from clustermodel.logs.sacct import SACCT_COMMAND

ROOT = Path(__file__).parents[2]
WIDEST = 88
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = [path for path in sorted((ROOT / "docs" / "examples").rglob("*")) if path.suffix in {".py", ".toml"}]
MODULES = sorted((ROOT / "clustermodel").rglob("*.py"))


def code(page: str) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line in the fenced blocks of a page, but those of containers, which have text."""
    fence, is_code = "", False
    for number, line in enumerate(page.splitlines(), start=1):
        mark = re.match(r"(?:[-*\d.]*\s*)(`{3,}|~{3,})", line)
        if mark and (not fence or line.strip() == fence):
            fence, is_code = "" if fence else mark[1], "{container}" not in line
        elif fence and is_code:
            yield number, line


def test_lines_of_code_fit_their_column() -> None:
    wide = []
    for path in (*PAGES, *EXAMPLES):
        text = path.read_text(encoding="utf-8")
        lines = code(text) if path.suffix == ".md" else enumerate(text.splitlines(), start=1)
        wide += [f"{path.relative_to(ROOT)}:{number}: {len(line)}" for number, line in lines if len(line) > WIDEST]
    assert wide == []


def test_blocks_of_code_are_found() -> None:
    page = "text\n```python\na\n```\n- item\n  ````text\n  ```\n  b\n  ````\ntext\n"
    assert list(code(page)) == [(3, "a"), (7, "  ```"), (8, "  b")]


def test_examples_of_docstrings_fit_their_column() -> None:
    parser = doctest.DocTestParser()
    wide = []
    for path in MODULES:
        for part in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(part, ast.Module | ast.ClassDef | ast.FunctionDef):
                continue
            for example in parser.get_examples(ast.get_docstring(part) or ""):
                source = [f">>> {line}" for line in example.source.splitlines()]  # or "... ", which is as long
                wide += [f"{path}: {line}" for line in (*source, *example.want.splitlines()) if len(line) > WIDEST]
    assert wide == []


def test_the_guide_shows_the_command_that_messages_name() -> None:
    page = (ROOT / "docs" / "guide_own_log.md").read_text(encoding="utf-8")
    command = re.search(r"^\$ (TZ=UTC sacct.*?) > jobs\.sacct$", page, re.MULTILINE | re.DOTALL)
    assert command is not None
    assert re.sub(r"\\\n +", "", command[1]).replace("\\\n", "") == SACCT_COMMAND
