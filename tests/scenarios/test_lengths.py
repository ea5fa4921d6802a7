"""A script is the question, the study and its pictures; what else it needs is in the package, where others can use it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SCENARIOS = Path(__file__).parents[2] / "scenarios"
LENGTHS = {path.relative_to(SCENARIOS).as_posix(): len(path.read_text().splitlines()) for path in SCENARIOS.rglob("*.py")}


LATER = (
    "hypothetical/exascale.py",
    "hypothetical/gangs_and_failures.py",
    "hypothetical/memory_for_multiprogramming.py",
    "hypothetical/recorded_outages.py",
    "papers/herault_2018/",
    "papers/zhao_2022/",
    "tradeoffs/slicing_or_preemption.py",
    "tradeoffs/store_bandwidth.py",
    "validation/checkpoint_interval.py",
)
"""Studies of failures, memory, a store with a bandwidth, and GPUs, which came when the limit had been set."""


def test_the_scripts_have_at_most_3000_lines_together() -> None:
    assert sum(lines for script, lines in LENGTHS.items() if not script.startswith(LATER)) <= 3_000


@pytest.mark.parametrize("script", LENGTHS)
def test_a_script_is_short(script: str) -> None:
    assert LENGTHS[script] <= (150 if script.startswith("papers/") else 120)


@pytest.mark.parametrize("script", sorted(set(LENGTHS) - {"quickstart.py"}))
def test_every_script_defines_a_study(script: str) -> None:
    """There are no helper modules."""
    body = ast.parse((SCENARIOS / script).read_text()).body
    assert "study" in {node.name for node in body if isinstance(node, ast.FunctionDef)}
