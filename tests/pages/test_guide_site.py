"""The commands of the guide from a log to an answer print what the page shows."""

import doctest
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Finished

PAGE = Path(__file__).parents[2] / "docs" / "guide_site.md"


@pytest.mark.long
def test_the_commands_print_what_the_page_shows(terminal: Callable[..., Finished], monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {}
    monkeypatch.chdir(".")  # so that the test ends where it began
    for kind, block in re.findall(r"```(python|toml|console)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        if kind == "toml":
            Path("site.toml").write_text(block, encoding="utf-8")
        elif kind == "python":
            for example in doctest.DocTestParser().get_examples(block):
                exec(compile(example.source, PAGE.name, "exec"), names)
            if Path(names["folder"].name).is_dir():  # which the last lines of the page remove
                os.chdir(names["folder"].name)
        elif kind == "console":
            command, _, shown = block.removeprefix("$ ").replace("\\\n", "").partition("\n")
            if command.startswith("clustermodel "):
                ran = terminal(*shlex.split(command)[1:], columns=88)
                assert not ran.code
                printed = " ".join((ran.err + ran.out).split())
                assert [
                    part for part in re.split(r"^\.{3}$", shown, flags=re.MULTILINE) if " ".join(part.split()) not in printed
                ] == []
