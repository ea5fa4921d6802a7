"""What the scripts of scenarios/ define, for tests."""

from __future__ import annotations

import runpy
from functools import cache
from pathlib import Path
from types import SimpleNamespace

from clustermodel.experiment.script import read_script, run_script

SCENARIOS = Path(__file__).parents[1] / "scenarios"


@cache
def defined_in(name: str) -> SimpleNamespace:
    """Return the global names of a script, such as ``"papers/zhang_2003/load_curves"``; it may import others of its folder."""
    path = SCENARIOS / f"{name}.py"
    return SimpleNamespace(**run_script(path, read_script(path)))


@cache
def make_studies() -> SimpleNamespace:
    """Return the global names of docs/make_studies.py."""
    return SimpleNamespace(**runpy.run_path(str(SCENARIOS.parent / "docs" / "make_studies.py")))
