"""Each script of a paper names a small size, which takes at most two minutes, and the full one, with the time that it takes."""

import ast
import inspect
import re
import shlex
from typing import Any, NamedTuple

import pytest

from clustermodel.experiment.script import value_of
from tests.scripts import SCENARIOS, defined_in, make_studies

SIZE = re.compile(r"^(Small|Full|Small and full) \(([^()]+)\):[^\n]*\n(?:\S[^\n]*\n)*\n((?: {4}.*\n?)+)", re.MULTILINE)
TIME = re.compile(r"(?:about )?(\d+(?:\.\d)?) (s|min|h) on two cores")
IN_SECONDS = {"s": 1, "min": 60, "h": 3600}
MOST_S, LONGEST = 120, 20
"""The longest time of a small size, seconds, and the most words of a question."""


class Size(NamedTuple):
    """A size of a study that the docstring of its script names."""

    time: str
    command: list[str]

    @property
    def seconds(self) -> float:
        found = TIME.fullmatch(self.time)
        assert found, f"{self.time!r} is no time such as '70 s on two cores'"
        return float(found[1]) * IN_SECONDS[found[2]]

    @property
    def settings(self) -> dict[str, str]:
        """The parameters that the command sets."""
        return dict(setting.split("=", 1) for setting in self.command[5:][1::2])


def docstrings() -> dict[str, str]:
    """Return the docstrings of scripts that define a study, by names such as ``"papers/zhang_2003/migration"``."""
    found = {}
    for path in sorted((SCENARIOS / "papers").rglob("*.py")):
        module = ast.parse(path.read_text())
        if any(isinstance(part, ast.FunctionDef) and part.name == "study" for part in module.body):
            found[path.relative_to(SCENARIOS).with_suffix("").as_posix()] = ast.get_docstring(module) or ""
    return found


DOCSTRINGS = docstrings()


def sizes(name: str) -> dict[str, Size]:
    """Return the small and the full size of a script, which may be one."""
    found: dict[str, Size] = {}
    for names, time, command in SIZE.findall(DOCSTRINGS[name] + "\n"):
        for one in names.lower().split(" and "):
            assert one not in found, f"{name} has two {one} sizes"
            found[one] = Size(time, shlex.split(command.replace("\\\n", " ")))
    return found


@pytest.mark.parametrize("name", DOCSTRINGS)
@pytest.mark.long
def test_the_commands_run_the_script_with_parameters_of_its_study(name: str) -> None:
    known = inspect.signature(vars(defined_in(name))["study"]).parameters
    named = sizes(name)
    assert set(named) == {"small", "full"}
    for size in named.values():
        sweep, options = size.command[:4], size.command[5:]
        assert sweep == ["clustermodel", "sweep", f"scenarios/{name}.py", "--out"]
        assert set(options[::2]) <= {"--set"}
        for parameter, text in size.settings.items():
            assert parameter in known
            value_of(parameter, text, known[parameter].default)


@pytest.mark.parametrize("name", DOCSTRINGS)
def test_a_small_size_takes_two_minutes_at_most_and_no_longer_than_the_full_one(name: str) -> None:
    named = sizes(name)
    assert named["small"].seconds <= MOST_S
    assert named["small"].seconds <= named["full"].seconds


@pytest.mark.parametrize("name", DOCSTRINGS)
def test_the_full_size_is_a_study_of_the_documentation(name: str) -> None:
    studies: list[Any] = list(make_studies().documented_studies())
    documented = [dict(study.settings) for study in studies if study.script == SCENARIOS / f"{name}.py"]
    assert sizes(name)["full"].settings in documented


@pytest.mark.parametrize("name", DOCSTRINGS)
def test_the_first_line_is_a_short_question(name: str) -> None:
    first, blank, *_ = DOCSTRINGS[name].splitlines()
    assert first.endswith("?")
    assert not blank
    assert len(first.split()) <= LONGEST
