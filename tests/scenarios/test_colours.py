"""A policy has the same colour in the figures of all studies; scenarios leave colours to the package."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D

from clustermodel.figures.style import policy_colour

ROOT = Path(__file__).parents[2]
NAMES = {
    "BF", "GS-2", "GS-3", "GS-5", "BGS-2", "BGS-3", "BGS-5", "bgs", "mgs", "mbgs", "bf", "conservative", "easy", "ss", "D",
    "P", "R", "1/L", "P/L", "R/L", "D-NG", "P-NG", "R-NG", "1/L-NG", "P/L-NG", "R/L-NG", "EASY", "EASY-Last", "PV-EASY",
    "FCFS-EASY", "SJF-EASY", "gs",
}  # fmt: skip
"""Policies, as legends have them."""


def colour_of(handle: Any) -> str:
    if isinstance(handle, tuple):
        handle = handle[0]
    if isinstance(handle, BarContainer):
        handle = handle.patches[0]
    return to_hex(handle.get_color() if isinstance(handle, Line2D) else handle.get_facecolor())


@pytest.mark.whole
def test_a_policy_has_one_colour_in_all_figures() -> None:
    make_studies = runpy.run_path(str(ROOT / "docs" / "make_studies.py"))
    seen: dict[str, set[str]] = {}
    for study in make_studies["documented_studies"]():
        for figure in make_studies["shown"](study).figures.values():
            for legend in [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]:
                for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
                    if text.get_text() in NAMES and handle is not None:
                        seen.setdefault(text.get_text(), set()).add(colour_of(handle))
    assert {name: {policy_colour(name).lower()} for name in seen} == seen
    assert len(seen) > 25


def test_no_scenario_has_colours_of_its_own() -> None:
    for path in (ROOT / "scenarios").rglob("*.py"):
        assert not re.search(r"#[0-9A-Fa-f]{6}\b", path.read_text()), path.name
