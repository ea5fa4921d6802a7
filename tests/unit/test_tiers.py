"""The tiers of the tests: between them, the commands of .ci and of README.md run every test."""

import re
import tomllib
from itertools import chain, combinations
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTEST = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
DECLARED = {marker.partition(":")[0] for marker in PYTEST["markers"]}
OF_PYTEST = {"filterwarnings", "parametrize", "skip", "skipif", "usefixtures", "xfail"}
OWN_COMMAND = {"statistical", "whole"}
"""Markers of tests that belong to neither tier."""


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")


def selections(name: str) -> list[str]:
    """Return the marker expressions of the pytest commands in a file."""
    return [quoted or word for quoted, word in re.findall(r'(?:-m pytest|run\[@\])[^\n]*? -m (?:"([^"]+)"|(\w+))', text(name))]


FIRST = PYTEST["addopts"][PYTEST["addopts"].index("-m") + 1]
BENCHES, SECOND = selections(".ci/test-long")
MARKERS = sorted(DECLARED | {"hypothesis"})  # which hypothesis gives to every test that draws random cases


def selects(expression: str, markers: set[str]) -> bool:
    chosen: bool = eval(expression, {marker: marker in markers for marker in MARKERS})
    return chosen


def possible_markers() -> list[set[str]]:
    """Return all sets of markers that a test may have: a bench is slow or not."""
    every = chain.from_iterable(combinations(MARKERS, size) for size in range(len(MARKERS) + 1))
    return [found for markers in every if not {"bench", "slow_bench"} <= (found := set(markers))]


def test_every_test_is_in_a_tier_or_has_its_own_command_in_the_readme() -> None:
    for markers in possible_markers():
        tiers = [expression for expression in (FIRST, SECOND, BENCHES) if selects(expression, markers)]
        if markers & OWN_COMMAND:
            assert any(selects(expression, markers) for expression in selections("CONTRIBUTING.md")), markers
            assert FIRST not in tiers, markers
            assert SECOND not in tiers, markers
        else:
            assert tiers, markers
        assert (FIRST in tiers) == (not markers & {"long", "whole", "bench", "slow_bench", "statistical"}), markers


def test_every_marker_is_declared_and_used() -> None:
    used = {name for path in ROOT.glob("tests/**/*.py") for name in re.findall(r"pytest\.mark\.(\w+)", path.read_text())}
    assert used - OF_PYTEST == DECLARED


def test_the_test_commands_install_nothing_outside_the_environment() -> None:
    for name in (".ci/test", ".ci/compiled", ".ci/test-long"):
        assert "apt" not in re.findall(r"\w+", text(name))
        assert all(".venv/bin/" in line for line in text(name).splitlines() if "pip install" in line)
