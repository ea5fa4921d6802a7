"""What the scripts of scenarios/ define, and the stored tables of their studies, for tests."""

import runpy
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

from clustermodel import StudyTable
from clustermodel.experiment.script import load_experiment, read_script, run_script

SCENARIOS = Path(__file__).parents[1] / "scenarios"


@cache
def defined_in(name: str) -> SimpleNamespace:
    """Return the global names of a script, such as ``"papers/zhang_2003/load_curves"``; it may import others of its folder."""
    path = SCENARIOS / f"{name}.py"
    return SimpleNamespace(**run_script(path, read_script(path)))


def study_of(name: str, settings: Mapping[str, str] = MappingProxyType({})) -> Any:
    """Return the experiment of a script with these values of its parameters."""
    path = SCENARIOS / f"{name}.py"
    return load_experiment(path, read_script(path), settings)


@cache
def stored(name: str) -> StudyTable:
    """Return a table of docs/data."""
    return StudyTable.read_csv(SCENARIOS.parent / "docs" / "data" / f"{name}.csv")


def mean(table: StudyTable, measure: str, **levels: Any) -> float:
    return table.interval(measure, **levels).mean


@cache
def make_studies() -> SimpleNamespace:
    """Return the global names of docs/make_studies.py."""
    return SimpleNamespace(**runpy.run_path(str(SCENARIOS.parent / "docs" / "make_studies.py")))
